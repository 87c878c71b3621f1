//! Owns: one shard's queues of sessions blocked on keys, and the claim that decides who wakes one. Does not own: what a
//! woken session does, timeouts, the reply.
//!
//! A session that blocks on several keys stands in several queues, in several shards, with clones of one [`Claim`].
//! Hand-over, timeout, CANCEL and KILL each try the claim; one compare-and-swap decides, the others see that they lost.
//! Places of a claimed waiter are dropped when they are met; whoever ends a wait gives back the others by `leave`.
//!
//! A place has a number, by which it is given back, and a queue is sorted by it: thousands may wait for one key, and
//! each of them comes, is found and goes in logarithmic time. Waiters are of kinds, by what they wait for: whoever has
//! written passes over those that his value is not for without looking at each.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The most places in the queues of one shard; a command that would exceed it is refused.
pub const WAITERS_PER_SHARD_MAX: usize = 1 << 20;

/// Who ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// A writer hands a value over.
    HandOver = 1,
    /// Time is up.
    TimedOut = 2,
    /// CANCEL, CLIENT UNBLOCK or a closed channel.
    Cancelled = 3,
    /// The session was killed or went away.
    Killed = 4,
}

/// One wait, shared by all its places. Taken once.
#[derive(Clone, Debug, Default)]
pub struct Claim(Arc<AtomicU8>);

impl Claim {
    /// Ends the wait in this way, unless it has ended already. Whoever gets `true` must see it through.
    #[must_use]
    pub fn take(&self, outcome: Outcome) -> bool {
        self.0.compare_exchange(0, outcome as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
    /// How the wait ended, if it has.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match self.0.load(Ordering::Acquire) {
            1 => Some(Outcome::HandOver),
            2 => Some(Outcome::TimedOut),
            3 => Some(Outcome::Cancelled),
            4 => Some(Outcome::Killed),
            _ => None,
        }
    }
}

/// One place in a queue.
#[derive(Clone, Debug)]
pub struct Waiter {
    /// The engine's name for the blocked request.
    pub token: u64,
    /// The wait.
    pub claim: Claim,
}

/// What a waiter waits for: below [`KINDS`].
pub type Kind = u8;
/// How many kinds there are.
pub const KINDS: u8 = 8;

/// Those who wait for a key, by kind and number: the higher number has come later.
type Queue = BTreeMap<(Kind, u64), Waiter>;

/// One shard's queues.
#[derive(Debug, Default)]
pub struct Waiters {
    /// By database.
    queues: BTreeMap<u8, HashMap<Box<[u8]>, Queue>>,
    places: usize,
    /// The number of the next place.
    next: u64,
}

impl Waiters {
    /// Whether any session waits in this shard: the test that every push makes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places == 0
    }
    /// Puts a waiter at the end of a key's queue, and gives the number of its place. Nothing when the shard is full.
    #[must_use]
    pub fn join(&mut self, db: u8, key: &[u8], kind: Kind, waiter: Waiter) -> Option<u64> {
        if self.places >= WAITERS_PER_SHARD_MAX {
            return None;
        }
        let number = self.next;
        (self.places, self.next) = (self.places + 1, number + 1);
        self.queues.entry(db).or_default().entry(key.into()).or_default().insert((kind, number), waiter);
        Some(number)
    }
    /// The number that the next place gets: whoever comes later has it or a higher one.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.next
    }
    /// The first waiter on a key that nobody has claimed yet, of those whose number is in the range and whose kind is
    /// in the set, with its number. Drops claimed places that it meets.
    #[must_use]
    pub fn first(&mut self, db: u8, key: &[u8], kinds: u8, numbers: Range<u64>) -> Option<(u64, Waiter)> {
        if self.is_empty() {
            return None;
        }
        let queues = self.queues.get_mut(&db)?;
        let queue = queues.get_mut(key)?;
        let first = loop {
            let first = (0..KINDS).filter(|kind| kinds & 1 << kind != 0).filter_map(|kind| {
                let (place, waiter) = queue.range((kind, numbers.start)..(kind, numbers.end)).next()?;
                Some((*place, waiter))
            });
            let Some((place, waiter)) = first.min_by_key(|((_, number), _)| *number) else { break None };
            if waiter.claim.outcome().is_none() {
                break Some((place.1, waiter.clone()));
            }
            queue.remove(&place);
            self.places -= 1;
        };
        if queue.is_empty() {
            self.forget(db, key);
        }
        first
    }
    /// Gives a place in a key's queue back, if it is still there.
    pub fn leave(&mut self, db: u8, key: &[u8], (kind, number): (Kind, u64)) {
        let Some(queue) = self.queues.get_mut(&db).and_then(|queues| queues.get_mut(key)) else { return };
        self.places -= usize::from(queue.remove(&(kind, number)).is_some());
        if queue.is_empty() {
            self.forget(db, key);
        }
    }
    /// Nobody waits for a key any more.
    fn forget(&mut self, db: u8, key: &[u8]) {
        if let Some(queues) = self.queues.get_mut(&db) {
            queues.remove(key);
        }
        if self.places == 0 {
            self.queues.clear();
        }
    }
    /// The keys of a database on which anyone waits: after SWAPDB they may have got values.
    #[must_use]
    pub fn keys(&self, db: u8) -> Vec<Box<[u8]>> {
        self.queues.get(&db).into_iter().flat_map(|queues| queues.keys().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(token: u64) -> Waiter {
        Waiter { token, claim: Claim::default() }
    }

    #[test]
    fn first_come_first_served_and_claimed_once() {
        let mut waiters = Waiters::default();
        let (one, two, other) = (waiter(1), waiter(2), waiter(3));
        let numbers =
            [&other, &one, &two].map(|each| waiters.join(0, b"k", 0, each.clone()).expect("there is room"));
        let waiting = |waiters: &mut Waiters, db| {
            let (mut tokens, mut from) = (Vec::new(), 0);
            while let Some((number, waiter)) = waiters.first(db, b"k", 1, from..waiters.end()) {
                tokens.push(waiter.token);
                from = number + 1;
            }
            tokens
        };
        assert!(waiting(&mut waiters, 1).is_empty());
        assert_eq!(waiting(&mut waiters, 0), [3, 1, 2]);
        assert!(one.claim.take(Outcome::TimedOut));
        assert!(!one.claim.take(Outcome::HandOver));
        assert_eq!(one.claim.outcome(), Some(Outcome::TimedOut));
        assert_eq!(waiting(&mut waiters, 0), [3, 2], "in order, without the claimed one");
        assert_eq!(waiters.places, 2, "whose place is gone");
        for number in [numbers[1], numbers[2], numbers[2]] {
            waiters.leave(0, b"k", (0, number));
        }
        assert_eq!(waiting(&mut waiters, 0), [3]);
        assert_eq!(waiters.keys(0).len(), 1);
        waiters.leave(0, b"k", (0, numbers[0]));
        assert!(waiters.is_empty() && waiters.keys(0).is_empty() && waiters.queues.is_empty());
    }

    #[test]
    fn kinds_are_passed_over_and_keep_the_order_in_which_they_came() {
        let mut waiters = Waiters::default();
        for (token, kind) in (0..).zip([1, 0, 2, 1, 0]) {
            assert_eq!(waiters.join(0, b"k", kind, waiter(token)), Some(token));
        }
        let mut first =
            |kinds, numbers| waiters.first(0, b"k", kinds, numbers).map(|(_, waiter)| waiter.token);
        assert_eq!(first(0b001, 0..5), Some(1));
        assert_eq!(first(0b011, 0..5), Some(0));
        assert_eq!(first(0b011, 1..5), Some(1));
        assert_eq!(first(0b110, 1..5), Some(2));
        assert_eq!(first(0b010, 1..3), None, "who comes later is not in the range");
        assert_eq!(first(0b1000, 0..5), None);
    }

    #[test]
    fn one_of_many_claimers_wins() {
        for _ in 0..50 {
            let claim = Claim::default();
            let wins = std::sync::atomic::AtomicU8::new(0);
            std::thread::scope(|scope| {
                for outcome in [Outcome::HandOver, Outcome::TimedOut, Outcome::Cancelled, Outcome::Killed] {
                    let (claim, wins) = (claim.clone(), &wins);
                    scope.spawn(move || wins.fetch_add(u8::from(claim.take(outcome)), Ordering::Relaxed));
                }
            });
            assert_eq!(wins.into_inner(), 1);
        }
    }
    #[test]
    fn places_are_limited() {
        let mut waiters = Waiters::default();
        let one = waiter(1);
        for number in 0..WAITERS_PER_SHARD_MAX as u64 {
            assert_eq!(waiters.join(0, b"k", 0, one.clone()), Some(number));
        }
        assert_eq!(waiters.join(0, b"k", 0, one.clone()), None);
        waiters.leave(0, b"k", (0, 7));
        assert!(waiters.join(0, b"k", 0, one).is_some());
    }
}
