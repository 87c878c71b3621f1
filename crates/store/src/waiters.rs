//! Owns: one shard's queues of sessions blocked on keys, and the claim that decides who wakes one. Does not own: what a
//! woken session does, timeouts, the reply.
//!
//! A session that blocks on several keys stands in several queues, in several shards, with clones of one [`Claim`].
//! Hand-over, timeout, CANCEL and KILL each try the claim; one compare-and-swap decides, the others see that they lost.
//! Places of a claimed waiter are skipped and dropped when they are met, and removed by `leave` from the queues it
//! still stands in.

use std::collections::{HashMap, VecDeque};
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
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
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

/// One shard's queues.
#[derive(Debug, Default)]
pub struct Waiters {
    queues: HashMap<(u8, Box<[u8]>), VecDeque<Waiter>>,
    places: usize,
}

impl Waiters {
    /// Whether any session waits in this shard: the test that every push makes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places == 0
    }
    /// Puts a waiter at the end of a key's queue. `false` when the shard is full.
    #[must_use]
    pub fn join(&mut self, db: u8, key: &[u8], waiter: Waiter) -> bool {
        if self.places >= WAITERS_PER_SHARD_MAX {
            return false;
        }
        self.places += 1;
        self.queues.entry((db, key.into())).or_default().push_back(waiter);
        true
    }
    /// The waiters on a key that nobody has claimed yet, in the order in which they came. Drops claimed places at the
    /// front.
    #[must_use]
    pub fn waiting(&mut self, db: u8, key: &[u8]) -> Vec<Waiter> {
        if self.is_empty() {
            return Vec::new();
        }
        let name = (db, Box::from(key));
        let Some(queue) = self.queues.get_mut(&name) else { return Vec::new() };
        while queue.front().is_some_and(|waiter| waiter.claim.outcome().is_some()) {
            queue.pop_front();
            self.places -= 1;
        }
        let found = queue.iter().filter(|waiter| waiter.claim.outcome().is_none()).cloned().collect();
        if queue.is_empty() {
            self.queues.remove(&name);
        }
        found
    }
    /// Takes a wait out of a key's queue, if it stands there, and all that are claimed: a walk over the queue.
    pub fn leave(&mut self, db: u8, key: &[u8], claim: &Claim) {
        let name = (db, Box::from(key));
        let Some(queue) = self.queues.get_mut(&name) else { return };
        let before = queue.len();
        queue.retain(|waiter| !waiter.claim.is(claim) && waiter.claim.outcome().is_none());
        self.places -= before - queue.len();
        if queue.is_empty() {
            self.queues.remove(&name);
        }
    }
    /// The keys of a database on which anyone waits: after SWAPDB they may have got values.
    #[must_use]
    pub fn keys(&self, db: u8) -> Vec<Box<[u8]>> {
        self.queues.keys().filter(|(in_db, _)| *in_db == db).map(|(_, key)| key.clone()).collect()
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
        for each in [&other, &one, &two] {
            assert!(waiters.join(0, b"k", each.clone()));
        }
        let waiting = |waiters: &mut Waiters, db| {
            waiters.waiting(db, b"k").iter().map(|waiter| waiter.token).collect::<Vec<_>>()
        };
        assert!(waiting(&mut waiters, 1).is_empty());
        assert_eq!(waiting(&mut waiters, 0), [3, 1, 2]);
        assert!(one.claim.take(Outcome::TimedOut));
        assert!(!one.claim.take(Outcome::HandOver));
        assert_eq!(one.claim.outcome(), Some(Outcome::TimedOut));
        assert_eq!(waiting(&mut waiters, 0), [3, 2], "in order, without the claimed one");
        waiters.leave(0, b"k", &two.claim);
        assert_eq!(waiting(&mut waiters, 0), [3]);
        assert_eq!(waiters.keys(0).len(), 1);
        waiters.leave(0, b"k", &other.claim);
        assert!(waiters.is_empty() && waiters.keys(0).is_empty());
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
        for _ in 0..WAITERS_PER_SHARD_MAX {
            assert!(waiters.join(0, b"k", one.clone()));
        }
        assert!(!waiters.join(0, b"k", one.clone()));
        waiters.leave(0, b"k", &one.claim);
        assert!(waiters.is_empty() && waiters.join(0, b"k", one));
    }
}
