//! Owns: groups of effects on their way from the workers to who reads them elsewhere: the order in which they come
//! out. Does not own: where they wait (`outbox`); what readers do with them; when a group ends (`crate::recorder`).
//!
//! **Order.** Under its locks a group takes the next count of each shard that it writes, or copies from, and the epoch
//! of the last one: what is told of a copy names its source. Locks are held until the group ends, so both agree with
//! the order in which groups became true: whoever comes behind another in some shard has a later count there, and no
//! earlier epoch. The merger begins an epoch, waits until every worker has left those before it, and gives their
//! groups: epoch by epoch, and inside one as soon as all those before it in each of its shards were given. So nothing
//! comes out before its cause, also where the cause was seen over a client.
//!
//! **Bounds.** [`Keyspace::is_behind`] says that the merger has more than its share waiting: the engine then holds
//! writes back, as during a pause. At twice that in small groups, groups are thrown away, and the merger says
//! [`Overrun`]: its readers begin anew. A large group, of one command or script, is no reason for that.

mod outbox;

pub(crate) use outbox::{LARGE_BYTES, Outbox, Row};

use crate::effect::{Read, wants};
use crate::entry::heap::Key;
use crate::keyspace::{Keyspace, Worker};
use crate::sync::{Mutex, Pause, lock};
use outbox::{Backlog, Frames, Queue};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, fence,
};
use std::time::{Duration, Instant};

/// Bytes of groups that may wait for the merger before writes are held back.
pub const BACKLOG_BYTES: usize = 64 << 20;

/// Readers have missed groups, since they were too slow. They must begin with a copy of the keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

/// Buffers that the merger has emptied and gives to workers again, and bytes of one.
const SPARES_MAX: usize = 4;
const SPARE_BYTES_MAX: usize = 8 << 20;
/// Looks that give nothing, one behind the other, from which on each lets one of them go: between writes there are
/// some, and memory that is asked for anew is paid for page by page.
const IDLE_LOOKS: u32 = 32;
/// Bytes of groups that were given and still count as waiting, at most: who is held back is let go in good time.
const TAKEN_BYTES: usize = 64 << 10;

/// The outboxes of a keyspace, and who wants what of it.
#[derive(Debug)]
pub(crate) struct Hub {
    outboxes: Mutex<Vec<Arc<Outbox>>>,
    backlog: Arc<Backlog>,
    /// How many want each bit.
    readers: Mutex<[u32; 8]>,
    /// The bits that any of them wants.
    wanted: AtomicU32,
    has_merger: AtomicBool,
    /// The last epoch in which a group began.
    told: AtomicU64,
    noted: Noted,
}

/// Counts of noted keys by a part of their hash: 0 says that a key is not among them.
struct Noted(Box<[AtomicU32]>);

/// 64 KiB: with a few thousand noted keys most others are told from them.
const NOTED_PLACES: usize = 1 << 14;

impl Noted {
    #[inline]
    fn place(&self, hash: u64) -> &AtomicU32 {
        &self.0[(hash >> 20) as usize % NOTED_PLACES]
    }
    #[inline]
    fn has(&self, hash: u64) -> bool {
        self.place(hash).load(Relaxed) != 0
    }
    fn add(&self, hash: u64, count: u32) {
        self.place(hash).fetch_add(count, Relaxed);
    }
}

impl std::fmt::Debug for Noted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Noted").finish_non_exhaustive()
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            outboxes: Mutex::new(Vec::new()),
            backlog: Arc::default(),
            readers: Mutex::new([0; 8]),
            wanted: AtomicU32::new(0),
            has_merger: AtomicBool::new(false),
            told: AtomicU64::new(0),
            noted: Noted((0..NOTED_PLACES).map(|_| AtomicU32::new(0)).collect()),
        }
    }
}

impl Hub {
    pub(crate) fn join(&self) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox { frames: Mutex::default(), backlog: Arc::clone(&self.backlog) });
        lock(&self.outboxes).push(Arc::clone(&outbox));
        outbox
    }
    /// A group begins in an epoch, under the lock of its first shard. Epochs are long: the line is mostly read.
    pub(crate) fn begin_group(&self, epoch: u64) -> u64 {
        if self.told.load(Acquire) < epoch {
            self.told.fetch_max(epoch, AcqRel);
        }
        epoch
    }
    #[inline]
    pub(crate) fn wanted(&self) -> u32 {
        self.wanted.load(Relaxed)
    }
    /// What was told and never taken goes, and counts no more. Whoever is about to tell more still may: the next merger
    /// begins behind that.
    fn forget_waiting(&self) {
        lock(&self.outboxes).iter().for_each(|outbox| *lock(&outbox.frames) = Frames::default());
        self.backlog.bytes.store(0, Relaxed);
        self.backlog.large_bytes.store(0, Relaxed);
        self.backlog.overrun.store(false, Relaxed);
    }
    fn change(&self, bits: u32, change: impl Fn(&mut u32)) {
        let mut readers = lock(&self.readers);
        let mut wanted = 0;
        for (bit, count) in readers.iter_mut().enumerate() {
            if bits >> bit & 1 != 0 {
                change(count);
            }
            wanted |= u32::from(*count > 0) << bit;
        }
        self.wanted.store(wanted, Relaxed);
    }
}

impl Keyspace {
    /// Somebody wants to be told, as bits of [`wants`]: whoever counts himself in and locks a key then is told of every
    /// later write to it. Each call needs one of [`Keyspace::unsubscribe`].
    pub fn subscribe(&self, bits: u32) {
        self.hub().change(bits & !wants::UNDO, |count| *count += 1);
    }
    /// Somebody wants no more.
    pub fn unsubscribe(&self, bits: u32) {
        self.hub().change(bits & !wants::UNDO, |count| *count = count.saturating_sub(1));
    }
    /// What is wanted by anybody: one word on a line that every operation reads.
    #[inline]
    #[must_use]
    pub fn wanted(&self) -> u32 {
        self.hub().wanted()
    }
    /// What is wanted of an operation on a key.
    #[inline]
    pub(crate) fn wanted_of(&self, key: &Key<'_>) -> u32 {
        let wanted = self.wanted();
        if wanted & wants::NOTED_KEYS == 0 { wanted } else { self.wanted_of_noted(key, wanted) }
    }
    fn wanted_of_noted(&self, key: &Key<'_>, wanted: u32) -> u32 {
        let keys = if self.hub().noted.has(key.hash()) { wants::KEYS } else { 0 };
        wanted & !wants::NOTED_KEYS | keys
    }
    /// Who wants [`wants::NOTED_KEYS`] wants to know of writes to this key. The key is locked. Each call needs one of
    /// [`Keyspace::forget`].
    pub fn note(&self, key: &Key<'_>) {
        self.hub().noted.add(key.hash(), 1);
    }
    /// Who noted a key does not want to know any more.
    pub fn forget(&self, key: &Key<'_>) {
        self.hub().noted.add(key.hash(), u32::MAX);
    }
    /// The last epoch in which somebody told a merger of anything: whoever has seen a write has seen one of this epoch
    /// or an earlier one.
    #[inline]
    #[must_use]
    pub fn told_epoch(&self) -> u64 {
        self.hub().told.load(Acquire)
    }
    /// The epoch of batches that begin just now: when all up to it is given, those that had begun before are over.
    #[must_use]
    pub fn present_epoch(&self) -> u64 {
        self.directory.domain.epoch()
    }
    /// Waits until all batches are over that have begun, for so long at most. Says whether they are. Not inside of one.
    pub fn outlast_batches(&self, most: Duration) -> bool {
        let (domain, begun) = (&self.directory.domain, Instant::now());
        let (behind, mut pause) = (domain.epoch() + 1, Pause::default());
        while domain.advance() < behind {
            if begun.elapsed() >= most {
                return false;
            }
            pause.wait();
        }
        true
    }
    /// Whether more groups wait for the merger than should, or more keys to be saved: writes are to be held back. What
    /// no merger takes holds nobody back.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let Hub { backlog, has_merger, .. } = self.hub();
        let is_much = backlog.bytes.load(Relaxed) > backlog.bytes_max.load(Relaxed);
        is_much && has_merger.load(Relaxed) || self.saves().is_behind()
    }
    /// Who is told, by whoever writes, that more groups wait than should. Set once, before the first writer.
    pub fn on_behind(&self, tell: impl Fn() + Send + Sync + 'static) {
        let _ = self.hub().backlog.on_behind.set(Box::new(tell));
    }
    /// Bytes of groups that wait for the merger.
    #[must_use]
    pub fn backlog_bytes(&self) -> usize {
        self.hub().backlog.bytes.load(Relaxed)
    }
    /// Bytes of groups that may wait; [`BACKLOG_BYTES`] at first.
    pub fn set_backlog_bytes(&self, bytes: usize) {
        self.hub().backlog.bytes_max.store(bytes, Relaxed);
    }
}

/// A group of effects as it comes out, or some groups of one effect each that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    epoch: u64,
    effects: &'a [u8],
    /// So many groups of one effect each; 0 for one group.
    row: u32,
}

impl<'a> Group<'a> {
    /// The epoch that it became true in.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }
    /// Its effects, in order.
    #[must_use]
    pub const fn read(&self) -> Read<'a> {
        Read::new(self.effects)
    }
    /// Where it is several groups of one effect each: strings that were set, each as a frame of RESPB whose channel is
    /// the database, and how many.
    #[must_use]
    pub const fn row(&self) -> Option<(&'a [u8], u32)> {
        if self.row == 0 { None } else { Some((self.effects, self.row)) }
    }
}

/// What a look at the workers has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// Groups that were given.
    pub given: usize,
    /// All groups of epochs up to this one have been given.
    pub complete: u64,
}

/// Gives the groups of all workers in one order. One for a keyspace.
pub struct Merger<'k> {
    keyspace: &'k Keyspace,
    bits: u32,
    /// The last count given of each shard.
    given: Box<[u64]>,
    queues: Vec<(Arc<Outbox>, Queue)>,
    spares: Vec<Vec<u8>>,
    /// Looks in a row that have given nothing.
    idle: u32,
}

impl<'k> Worker<'k> {
    /// Begins to merge what workers tell from now on, as bits of [`wants`]. Closes the gate for a moment, so that no
    /// group is told by half. Nothing if there is a merger.
    #[must_use]
    pub fn merger(&mut self, bits: u32) -> Option<Merger<'k>> {
        let keyspace = self.keyspace();
        let hub = keyspace.hub();
        let world = self.world();
        if hub.has_merger.swap(true, Relaxed) {
            return None;
        }
        // What those who were in the middle of something when the one before went have told since.
        hub.forget_waiting();
        let mut guards = world.guards();
        let given = (0..keyspace.shard_count()).map(|id| guards.shard_by_id(id).group_count()).collect();
        let bits = bits & !wants::UNDO | wants::GROUPS;
        keyspace.subscribe(bits);
        Some(Merger { keyspace, bits, given, queues: Vec::new(), spares: Vec::new(), idle: 0 })
    }
}

impl Merger<'_> {
    /// Begins an epoch and gives all groups of those that every worker has left. Groups that were taken back are left
    /// out. Not inside a batch of the same thread, whose epoch would never be left.
    pub fn poll(&mut self, mut give: impl FnMut(Group<'_>)) -> Result<Polled, Overrun> {
        let hub = self.keyspace.hub();
        let left = self.keyspace.directory.domain.advance();
        // Behind the look at the epochs: what is complete is in the outboxes by now.
        self.collect();
        if hub.backlog.overrun.load(Relaxed) {
            return Err(Overrun);
        }
        let mut given = 0;
        while let Some(epoch) = self.queues.iter().filter_map(|(_, queue)| queue.epoch()).min()
            && epoch < left
        {
            let mut has_moved = false;
            for (_, queue) in &mut self.queues {
                let mut taken = 0;
                while let Some(frame) = queue.front()
                    && frame.epoch == epoch
                {
                    let (len, large, before) = (frame.bytes.len(), frame.large_bytes(), queue.given);
                    let lent = frame.lent_bytes();
                    let (done, is_whole) = frame.give(before, &mut self.given, &mut give);
                    has_moved |= is_whole || done > before;
                    given += done - before;
                    if !is_whole {
                        queue.given = done;
                        break;
                    }
                    taken += len + lent;
                    if large >= LARGE_BYTES || taken >= TAKEN_BYTES {
                        hub.backlog.take(taken, large);
                        taken = 0;
                    }
                    if let Some(mut spare) = queue.pass(len, lent > 0)
                        && spare.capacity() <= SPARE_BYTES_MAX
                        && self.spares.len() < SPARES_MAX
                    {
                        spare.clear();
                        self.spares.push(spare);
                    }
                }
                hub.backlog.take(taken, 0);
            }
            if !has_moved {
                debug_assert!(false, "the groups of an epoch that is over are complete");
                return Err(Overrun);
            }
        }
        self.idle = if given == 0 { self.idle.saturating_add(1) } else { 0 };
        if self.idle > IDLE_LOOKS {
            // Less memory, the longer nothing happens.
            self.spares.pop();
        }
        Ok(Polled { given, complete: left - 1 })
    }

    /// Takes what stands in the outboxes.
    fn collect(&mut self) {
        let mut outboxes = lock(&self.keyspace.hub().outboxes);
        for outbox in outboxes.iter() {
            if !self.queues.iter().any(|(own, _)| Arc::ptr_eq(own, outbox)) {
                self.queues.push((Arc::clone(outbox), Queue::default()));
            }
        }
        let mut gone = Vec::new();
        for (outbox, queue) in &mut self.queues {
            // Asked before its groups are taken: a worker that goes while they are may have added its last one behind.
            // The hub's and this one's are the only references to the outbox of a worker that is gone.
            if Arc::strong_count(outbox) <= 2 {
                fence(Acquire);
                gone.push(Arc::as_ptr(outbox));
            }
            let mut frames = lock(&outbox.frames);
            if !frames.bytes.is_empty() {
                let bytes = std::mem::replace(&mut frames.bytes, self.spares.pop().unwrap_or_default());
                queue.pieces.push_back(bytes);
                queue.lent.append(&mut frames.lent);
            }
        }
        outboxes.retain(|outbox| !gone.contains(&Arc::as_ptr(outbox)));
        self.queues.retain(|(outbox, queue)| queue.front().is_some() || !gone.contains(&Arc::as_ptr(outbox)));
    }
}

impl Drop for Merger<'_> {
    fn drop(&mut self) {
        self.keyspace.unsubscribe(self.bits);
        self.keyspace.hub().forget_waiting();
        self.keyspace.hub().has_merger.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::outbox::GROUP_BYTES_MAX;
    use super::*;

    /// One command may tell more than may wait, but no more than a group can say.
    #[test]
    fn a_group_has_at_most_4_gib() {
        let backlog = Backlog::default();
        assert!(backlog.add_group(GROUP_BYTES_MAX));
        assert!(backlog.has_room(), "a large one takes no room from small ones");
        assert!(!backlog.overrun.load(Relaxed));
        backlog.take(GROUP_BYTES_MAX, GROUP_BYTES_MAX);
        assert!(!backlog.add_group(GROUP_BYTES_MAX + 1));
        assert!(backlog.overrun.load(Relaxed), "readers begin anew");
        assert_eq!(backlog.bytes.load(Relaxed), 0, "it does not wait");
        assert_eq!(GROUP_BYTES_MAX + 1, 4 << 30);
    }

    /// Rows of several workers come out in the order of their shards' counts, however they are cut: where another one's
    /// group is missing in the middle of a row, where a key is too long for one, where the epoch changes.
    #[test]
    fn rows_come_out_in_the_order_of_counts() {
        let keyspace = Keyspace::new(crate::Config { shards: 4, ..crate::Config::default() });
        let mut worker = keyspace.worker().expect("there is a place");
        let mut merger = worker.merger(wants::VALUES).expect("it is the first");
        let outboxes = [keyspace.hub().join(), keyspace.hub().join()];
        let epoch = keyspace.directory.domain.epoch();
        // Too long for a row, and for a small group.
        let long = vec![b'k'; LARGE_BYTES];
        let keys: [&[u8]; 8] = [b"0", b"1", &[b'2'; 128], &long, b"4", b"5", b"6", b"7"];
        // Which worker has written which key, with its count of shard 1, and in which epoch.
        let told: [&[(usize, u64, u64)]; 2] =
            [&[(0, 1, 0), (2, 3, 0), (3, 4, 0), (7, 8, 1)], &[(1, 2, 0), (4, 5, 0), (5, 6, 0), (6, 7, 1)]];
        for (at, (outbox, told)) in outboxes.iter().zip(told).enumerate() {
            let mut row = outbox.row().expect("there is room");
            for (number, (key, count, later)) in told.iter().enumerate() {
                row.set(epoch + later, (1, *count), 3, (keys[*key], b"v"));
                // A shard of its own.
                row.set(epoch + later, (2 + at as u32, 1 + number as u64), 3, (b"beside", &[b'v'; 200]));
            }
        }
        let backlog = &keyspace.hub().backlog;
        assert!(backlog.large_bytes.load(Relaxed) > LARGE_BYTES, "it takes no room from small ones");
        let waiting = keyspace.backlog_bytes();
        assert_eq!(waiting, outboxes.iter().map(|outbox| lock(&outbox.frames).bytes.len()).sum::<usize>());
        let mut seen = Vec::new();
        let mut polls = 0;
        while seen.len() < keys.len() {
            polls += 1;
            assert!(polls < 10, "{seen:?}");
            let polled = merger.poll(|group| {
                for told in group.read() {
                    if told.key != b"beside" {
                        let at = keys.iter().position(|key| *key == told.key);
                        seen.push((at.expect("it is one of them"), group.epoch() - epoch, told.db));
                    }
                }
            });
            polled.expect("nothing is lost");
        }
        let expected: Vec<_> = (0..8).map(|at| (at, u64::from(at >= 6), 3)).collect();
        assert_eq!(seen, expected);
        assert_eq!(keyspace.backlog_bytes(), 0, "nothing waits any more");
        assert_eq!(backlog.large_bytes.load(Relaxed), 0);
    }
}
