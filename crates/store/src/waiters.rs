//! Owns: one shard's queues of sessions blocked on keys, and the claim that decides who wakes one. Does not own: what a
//! woken session does, timeouts, the reply.
//!
//! A session that blocks on several keys stands in several queues, in several shards, with clones of one [`Claim`].
//! Hand-over, timeout, CANCEL and KILL each try the claim; one compare-and-swap decides, the others see that they lost.
//! Places of a claimed waiter are dropped when they are met; whoever ends a wait gives back the others by `leave`.
//!
//! Those who wait for one key stand in lines, by what they wait for: whoever has written finds those whom his value
//! serves without a look at the others, however many they are. A list serves the first of one line, a sorted set the
//! first of another. Readers of a stream stand in the order of the ids behind which they read, so that an entry finds
//! those who have not got that far. Those who read with a group are served one after the other, as the group goes on:
//! each group of a key has a line of its own, and what it is known to have read stands in an order too, so that an
//! entry finds the groups that have not.
//!
//! All places of a shard are in one ordered map. Thousands may wait for one key, or one client for thousands of keys: a
//! place comes, is found and goes in logarithmic time, and takes [`PLACE_BYTES`] beside the key's name.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::stream::StreamId;

/// The most places in the queues of one shard; a command that would exceed it is refused.
pub const WAITERS_PER_SHARD_MAX: usize = 1 << 20;
/// What a place takes at most, with a key that nobody else waits for, beside its name.
pub const PLACE_BYTES: usize = 256;
/// What the line of a group takes beside the group's name.
pub const GROUP_LINE_BYTES: usize = 512;

/// Who ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ClaimOutcome {
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
    pub fn take(&self, outcome: ClaimOutcome) -> bool {
        self.0.compare_exchange(0, outcome as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
    /// How the wait ended, if it has.
    #[must_use]
    pub fn outcome(&self) -> Option<ClaimOutcome> {
        match self.0.load(Ordering::Acquire) {
            1 => Some(ClaimOutcome::HandOver),
            2 => Some(ClaimOutcome::TimedOut),
            3 => Some(ClaimOutcome::Cancelled),
            4 => Some(ClaimOutcome::Killed),
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

/// One line of those who wait for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// They want an element of a list.
    List,
    /// A member of a sorted set.
    SortedSet,
    /// Entries of a stream behind an id.
    Readers,
    /// The same, of those who read other keys too.
    WideReaders,
    /// What a group of a stream has not read, and to hear of the group's end.
    Group(&'a [u8]),
}

/// Where somebody stands in a line: behind which id he reads ([`StreamId::MIN`] but for readers), and the number of his
/// place; the higher number has come later.
pub type Spot = (StreamId, u64);

/// The place where a line stands in the order of all lines of the shard.
type LineId = u64;
/// Lines of a key that are there by themselves: all but those of groups.
const OWN_LINES: u64 = 4;

/// Those who wait for a key.
#[derive(Debug)]
struct Queue {
    /// The first of its own lines.
    first: LineId,
    places: u32,
    /// Those of them that are in lines of groups.
    with_group: u32,
}

/// The line of a group.
#[derive(Debug)]
struct GroupLine {
    id: LineId,
    places: u32,
    /// It is known to have read up to here.
    read: StreamId,
}

/// One shard's queues.
#[derive(Debug, Default)]
pub struct Waiters {
    /// By database.
    queues: BTreeMap<u8, HashMap<Box<[u8]>, Queue>>,
    places: BTreeMap<(LineId, Spot), Waiter>,
    /// By the key's first line and the group's name, as [`group_name`] puts them together.
    groups: HashMap<Arc<[u8]>, GroupLine>,
    /// The same, in the order of keys and of what the groups are known to have read.
    by_read: BTreeMap<(LineId, StreamId, LineId), Arc<[u8]>>,
    figures: Figures,
    /// The number of the next place.
    next: u64,
    next_line: LineId,
}

/// How many keys are waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// By anybody.
    pub keys: usize,
    /// By those who also hear of their end.
    pub keys_heard_of_end: usize,
}

/// How a group is called among those of all keys.
fn group_name(key: LineId, name: &[u8]) -> Vec<u8> {
    [&key.to_be_bytes(), name].concat()
}

impl Queue {
    fn line(&self, groups: &HashMap<Arc<[u8]>, GroupLine>, line: Line<'_>) -> Option<LineId> {
        match line {
            Line::List => Some(self.first),
            Line::SortedSet => Some(self.first + 1),
            Line::Readers => Some(self.first + 2),
            Line::WideReaders => Some(self.first + 3),
            Line::Group(name) => groups.get(&*group_name(self.first, name)).map(|group| group.id),
        }
    }
}

impl Waiters {
    /// Whether any session waits in this shard: the test that every push makes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
    /// How many keys are waited for.
    #[must_use]
    pub const fn figures(&self) -> Figures {
        self.figures
    }
    /// Puts a waiter into a line of a key, behind an id if it reads, and gives the number of its place. Nothing when
    /// the shard is full.
    #[must_use]
    pub fn join(
        &mut self,
        (db, key): (u8, &[u8]),
        (line, after): (Line<'_>, StreamId),
        waiter: Waiter,
    ) -> Option<u64> {
        if self.places.len() >= WAITERS_PER_SHARD_MAX {
            return None;
        }
        let queues = self.queues.entry(db).or_default();
        if !queues.contains_key(key) {
            queues.insert(key.into(), Queue { first: self.next_line, places: 0, with_group: 0 });
            self.next_line += OWN_LINES;
            self.figures.keys += 1;
        }
        let queue = queues.get_mut(key)?;
        queue.places += 1;
        if let Line::Group(name) = line {
            self.figures.keys_heard_of_end += usize::from(queue.with_group == 0);
            queue.with_group += 1;
            let name: Arc<[u8]> = group_name(queue.first, name).into();
            let group = self.groups.entry(Arc::clone(&name)).or_insert_with(|| {
                let id = self.next_line;
                self.next_line += 1;
                self.by_read.insert((queue.first, StreamId::MIN, id), name);
                GroupLine { id, places: 0, read: StreamId::MIN }
            });
            group.places += 1;
        }
        let id = queue.line(&self.groups, line)?;
        let number = self.next;
        self.next += 1;
        self.places.insert((id, (after, number)), waiter);
        Some(number)
    }
    /// The number that the next place gets: whoever comes later has it or a higher one.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.next
    }
    /// The first waiter in a line of a key, within these spots, whom nobody has claimed yet, and where he stands. Drops
    /// claimed places that it meets.
    #[must_use]
    pub fn first(
        &mut self,
        (db, key): (u8, &[u8]),
        line: Line<'_>,
        spots: Range<Spot>,
    ) -> Option<(Spot, Waiter)> {
        if self.is_empty() || spots.start >= spots.end {
            return None;
        }
        let id = self.queues.get(&db)?.get(key)?.line(&self.groups, line)?;
        loop {
            let (&(_, spot), waiter) = self.places.range((id, spots.start)..(id, spots.end)).next()?;
            if waiter.claim.outcome().is_none() {
                return Some((spot, waiter.clone()));
            }
            self.leave((db, key), line, spot);
        }
    }
    /// Gives a place in a line of a key back, if it is still there.
    pub fn leave(&mut self, (db, key): (u8, &[u8]), line: Line<'_>, spot: Spot) {
        let Some(queues) = self.queues.get_mut(&db) else { return };
        let Some(queue) = queues.get_mut(key) else { return };
        let Some(id) = queue.line(&self.groups, line) else { return };
        if self.places.remove(&(id, spot)).is_none() {
            return;
        }
        queue.places -= 1;
        if let Line::Group(name) = line {
            queue.with_group -= 1;
            self.figures.keys_heard_of_end -= usize::from(queue.with_group == 0);
            let name = group_name(queue.first, name);
            if let Some(group) = self.groups.get_mut(&*name) {
                group.places -= 1;
                if group.places == 0 {
                    self.by_read.remove(&(queue.first, group.read, group.id));
                    self.groups.remove(&*name);
                }
            }
        }
        if queue.places == 0 {
            queues.remove(key);
            self.figures.keys -= 1;
        }
        if self.places.is_empty() {
            // With the memory that they keep for others.
            *self = Self { next: self.next, next_line: self.next_line, ..Self::default() };
        }
    }
    /// The groups with which a key is waited for: all, or those that are not known to have read up to an id.
    #[must_use]
    pub fn groups(&self, (db, key): (u8, &[u8]), up_to: Option<StreamId>) -> Vec<Box<[u8]>> {
        let Some(queue) = self.queues.get(&db).and_then(|queues| queues.get(key)) else { return Vec::new() };
        let start = (queue.first, StreamId::MIN, 0);
        let end = up_to.map_or((queue.first + 1, StreamId::MIN, 0), |id| (queue.first, id, 0));
        self.by_read.range(start..end).map(|(_, name)| name[size_of::<LineId>()..].into()).collect()
    }
    /// A group has read up to an id: nobody who waits with it has use for anything up to there.
    pub fn has_read(&mut self, (db, key): (u8, &[u8]), name: &[u8], id: StreamId) {
        let Some(queue) = self.queues.get(&db).and_then(|queues| queues.get(key)) else { return };
        let Some((name, group)) = self.groups.get_key_value(&*group_name(queue.first, name)) else { return };
        let (name, before, line) = (Arc::clone(name), group.read, group.id);
        if before != id {
            self.by_read.remove(&(queue.first, before, line));
            self.by_read.insert((queue.first, id, line), Arc::clone(&name));
            if let Some(group) = self.groups.get_mut(&name) {
                group.read = id;
            }
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

    const K: (u8, &[u8]) = (0, b"k");
    const LIST: (Line<'static>, StreamId) = (Line::List, StreamId::MIN);

    fn waiter(token: u64) -> Waiter {
        Waiter { token, claim: Claim::default() }
    }
    fn id(ms: u64) -> StreamId {
        StreamId::new(ms, 0)
    }
    /// Who stands in a line of `k`, in its order.
    fn line(waiters: &mut Waiters, line: Line<'_>, spots: Range<Spot>) -> Vec<u64> {
        let (mut tokens, mut from) = (Vec::new(), spots.start);
        while let Some(((after, number), waiter)) = waiters.first(K, line, from..spots.end) {
            tokens.push(waiter.token);
            from = (after, number + 1);
        }
        tokens
    }
    fn all(waiters: &Waiters) -> Range<Spot> {
        (StreamId::MIN, 0)..(StreamId::MAX, waiters.end())
    }

    #[test]
    fn first_come_first_served_and_claimed_once() {
        let mut waiters = Waiters::default();
        let (one, two, other) = (waiter(1), waiter(2), waiter(3));
        let numbers =
            [&other, &one, &two].map(|each| waiters.join(K, LIST, each.clone()).expect("there is room"));
        let spots = all(&waiters);
        let waiting = |waiters: &mut Waiters| line(waiters, Line::List, spots.clone());
        assert!(waiters.first((1, b"k"), Line::List, spots.clone()).is_none());
        assert_eq!(waiting(&mut waiters), [3, 1, 2]);
        assert!(one.claim.take(ClaimOutcome::TimedOut));
        assert!(!one.claim.take(ClaimOutcome::HandOver));
        assert_eq!(one.claim.outcome(), Some(ClaimOutcome::TimedOut));
        assert_eq!(waiting(&mut waiters), [3, 2], "in order, without the claimed one");
        assert_eq!(waiters.places.len(), 2, "whose place is gone");
        for number in [numbers[1], numbers[2], numbers[2]] {
            waiters.leave(K, Line::List, (StreamId::MIN, number));
        }
        assert_eq!(waiting(&mut waiters), [3]);
        assert_eq!(waiters.keys(0).len(), 1);
        waiters.leave(K, Line::List, (StreamId::MIN, numbers[0]));
        assert!(waiters.is_empty() && waiters.keys(0).is_empty() && waiters.queues.is_empty());
        assert_eq!(waiters.figures(), Figures::default());
    }

    #[test]
    fn each_line_of_a_key_has_its_order() {
        let mut waiters = Waiters::default();
        let lines = [Line::SortedSet, Line::List, Line::Group(b"g"), Line::SortedSet, Line::Group(b"h")];
        for (token, of) in (0..).zip(lines) {
            assert_eq!(waiters.join(K, (of, StreamId::MIN), waiter(token)), Some(token));
        }
        for (of, tokens) in [
            (Line::List, &[1][..]),
            (Line::SortedSet, &[0, 3]),
            (Line::Group(b"g"), &[2]),
            (Line::Group(b"h"), &[4]),
            (Line::Group(b"i"), &[]),
            (Line::Readers, &[]),
        ] {
            let spots = all(&waiters);
            assert_eq!(line(&mut waiters, of, spots), tokens, "{of:?}");
        }
        let before = (StreamId::MIN, 0)..(StreamId::MIN, 3);
        assert_eq!(line(&mut waiters, Line::SortedSet, before), [0], "who comes later is not in the range");
    }

    #[test]
    fn readers_stand_in_the_order_of_what_they_wait_for() {
        let mut waiters = Waiters::default();
        for (token, after) in [(1, 7), (2, 5), (3, 9), (4, 5)] {
            assert!(waiters.join(K, (Line::Readers, id(after)), waiter(token)).is_some());
        }
        let below =
            |waiters: &mut Waiters, last| line(waiters, Line::Readers, (StreamId::MIN, 0)..(id(last), 0));
        assert_eq!(below(&mut waiters, 5), [] as [u64; 0]);
        assert_eq!(below(&mut waiters, 7), [2, 4]);
        assert_eq!(below(&mut waiters, 8), [2, 4, 1]);
        waiters.leave(K, Line::Readers, (id(5), 1));
        assert_eq!(below(&mut waiters, 100), [4, 1, 3]);
    }

    #[test]
    fn groups_are_found_by_what_they_have_read_and_gone_with_their_last() {
        let mut waiters = Waiters::default();
        let names =
            |waiters: &Waiters, up_to: Option<u64>| -> Vec<u8> { waiters.groups(K, up_to.map(id)).concat() };
        for (token, group) in [(1, b"g"), (2, b"h"), (3, b"g")] {
            assert!(waiters.join(K, (Line::Group(group), StreamId::MIN), waiter(token)).is_some());
        }
        // A key of the same shard, with a group of the same name.
        assert!(waiters.join((0, b"l"), (Line::Group(b"g"), StreamId::MIN), waiter(4)).is_some());
        assert_eq!(waiters.figures(), Figures { keys: 2, keys_heard_of_end: 2 });
        assert_eq!(names(&waiters, Some(1)), b"gh");
        waiters.has_read(K, b"g", id(5));
        waiters.has_read(K, b"nobody", id(5));
        assert_eq!(names(&waiters, Some(5)), b"h");
        assert_eq!(names(&waiters, Some(6)), b"hg");
        assert_eq!(names(&waiters, None), b"hg");
        waiters.leave(K, Line::Group(b"g"), (StreamId::MIN, 0));
        assert_eq!(names(&waiters, None), b"hg", "another waits with it");
        waiters.leave(K, Line::Group(b"g"), (StreamId::MIN, 2));
        assert_eq!(names(&waiters, None), b"h");
        assert_eq!(waiters.groups((0, b"l"), None).concat(), b"g");
        waiters.leave((0, b"l"), Line::Group(b"g"), (StreamId::MIN, 3));
        waiters.leave(K, Line::Group(b"h"), (StreamId::MIN, 1));
        assert!(waiters.is_empty() && waiters.groups.is_empty() && waiters.by_read.is_empty());
        assert_eq!(waiters.figures(), Figures::default());
    }

    #[test]
    fn one_of_many_claimers_wins() {
        for _ in 0..50 {
            let claim = Claim::default();
            let wins = std::sync::atomic::AtomicU8::new(0);
            std::thread::scope(|scope| {
                for outcome in [
                    ClaimOutcome::HandOver,
                    ClaimOutcome::TimedOut,
                    ClaimOutcome::Cancelled,
                    ClaimOutcome::Killed,
                ] {
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
            assert_eq!(waiters.join(K, LIST, one.clone()), Some(number));
        }
        assert_eq!(waiters.join(K, LIST, one.clone()), None);
        waiters.leave(K, Line::List, (StreamId::MIN, 7));
        assert!(waiters.join(K, LIST, one).is_some());
    }
}
