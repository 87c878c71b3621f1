//! Owns: groups of effects on their way from the workers to who reads them elsewhere: each worker's outbox, and the
//! order in which they come out. Does not own: what readers do with them; when a group ends (`crate::recorder`).
//!
//! ```text
//!  0        4        12       16
//! +--------+--------+--------+----------------------------+-------------------+
//! | length | epoch  | shards | shard, count | shard, … |   | effects: a tape   |
//! +--------+--------+--------+----------------------------+-------------------+
//!   u32      u64      u32      u32    u64
//! ```
//! **Order.** Under its locks a group takes the epoch and the next count of each shard that it writes. Locks are held
//! until the group ends, so both agree with the order in which groups became true: whoever comes behind another in some
//! shard has a later count there, and no earlier epoch. The merger begins an epoch, waits until every worker has left
//! those before it, and gives their groups: epoch by epoch, and inside one as soon as all those before it in each of
//! its shards were given. So nothing comes out before its cause, also where the cause was seen over a client.
//!
//! **Bounds.** [`Keyspace::is_behind`] says that the merger has more than its share waiting: the engine then holds
//! writes back, as during a pause. At twice that in small groups, groups are thrown away, and the merger says
//! [`Overrun`]: its readers begin anew. A large group, of one command or script, is no reason for that.

use crate::effect::tape::{self, SET_BYTES_MAX};
use crate::effect::{Read, wants};
use crate::entry::heap::Key;
use crate::keyspace::{Keyspace, Worker};
use crate::sync::{Mutex, MutexGuard, lock};
use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    fence,
};
use std::sync::{Arc, OnceLock};

/// Bytes of groups that may wait for the merger before writes are held back.
pub const BACKLOG_BYTES: usize = 64 << 20;
/// Bytes of a group from which on it does not count among those that are thrown away when too many wait: one command or
/// script has made it, and what it tells stands in memory already.
const LARGE_BYTES: usize = 1 << 20;
/// Bytes before the shards of a group.
const HEAD_BYTES: usize = 16;
/// Bytes of a shard with its count.
const SHARD_BYTES: usize = 12;

/// Readers have missed groups, since they were too slow. They must begin with a copy of the keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

/// Buffers that the merger has emptied and gives to workers again, and bytes of one.
const SPARES_MAX: usize = 4;
const SPARE_BYTES_MAX: usize = 8 << 20;
/// Bytes of groups that were given and still count as waiting, at most: who is held back is let go in good time.
const TAKEN_BYTES: usize = 64 << 10;

/// Where one worker's groups wait.
#[derive(Debug)]
pub(crate) struct Outbox {
    frames: Mutex<Vec<u8>>,
    backlog: Arc<Backlog>,
}

struct Backlog {
    bytes: AtomicUsize,
    /// Of large groups among them.
    large_bytes: AtomicUsize,
    bytes_max: AtomicUsize,
    overrun: AtomicBool,
    /// Told when more wait than should.
    on_behind: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for Backlog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backlog").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Backlog {
    /// Whether there is room for small groups, and large ones.
    fn has_room(&self) -> bool {
        let small_bytes = self.bytes.load(Relaxed).saturating_sub(self.large_bytes.load(Relaxed));
        small_bytes <= self.bytes_max.load(Relaxed).saturating_mul(2)
    }
    /// A group of so many bytes waits; whether it may.
    fn add_group(&self, len: usize) -> bool {
        if len > u32::MAX as usize || !self.has_room() {
            self.overrun.store(true, Relaxed);
            return false;
        }
        if len >= LARGE_BYTES {
            self.large_bytes.fetch_add(len, Relaxed);
        }
        self.add(len);
        true
    }
    /// So many bytes of groups wait.
    fn add(&self, len: usize) {
        if self.bytes.fetch_add(len, Relaxed) + len > self.bytes_max.load(Relaxed)
            && let Some(tell) = self.on_behind.get()
        {
            tell();
        }
    }
    /// So many bytes of groups wait no more, the last of which has `last`.
    fn take(&self, len: usize, last: usize) {
        self.bytes.fetch_sub(len, Relaxed);
        if last >= LARGE_BYTES {
            self.large_bytes.fetch_sub(last, Relaxed);
        }
    }
}

impl Outbox {
    /// Adds a group.
    pub(crate) fn push(&self, epoch: u64, shards: &[(u32, u64)], effects: &[u8]) {
        let len = HEAD_BYTES + shards.len() * SHARD_BYTES + effects.len();
        if !self.backlog.add_group(len) {
            return;
        }
        let mut frames = lock(&self.frames);
        frames.reserve(len);
        frames.extend_from_slice(&head(len, epoch, shards.len()));
        shards.iter().for_each(|place| frames.extend_from_slice(&shard_bytes(*place)));
        frames.extend_from_slice(effects);
    }
    /// Small groups that follow each other, unless too many wait.
    pub(crate) fn row(&self) -> Option<Row<'_>> {
        let frames = self.backlog.has_room().then(|| lock(&self.frames))?;
        Some(Row { from: frames.len(), frames, backlog: &self.backlog })
    }
}

/// Groups of one small effect each that a worker adds to its outbox one behind the other.
pub(crate) struct Row<'o> {
    frames: MutexGuard<'o, Vec<u8>>,
    /// Where they begin.
    from: usize,
    backlog: &'o Backlog,
}

impl Row<'_> {
    /// Adds the group of a short string that was set, and has no expiry.
    #[inline]
    pub(crate) fn set(&mut self, epoch: u64, shard: (u32, u64), db: u8, (key, text): (&[u8], &[u8])) {
        let (at, prefix) = (self.frames.len(), HEAD_BYTES + SHARD_BYTES);
        self.frames.reserve(prefix + key.len() + text.len() + SET_BYTES_MAX);
        self.frames.extend_from_slice(&head(0, epoch, 1));
        self.frames.extend_from_slice(&shard_bytes(shard));
        tape::set(&mut self.frames, db, key, text);
        let len = self.frames.len() - at;
        self.frames[at..at + 4].copy_from_slice(&(len as u32).to_le_bytes());
    }
}

impl Drop for Row<'_> {
    /// Counts them, before the merger can take them.
    fn drop(&mut self) {
        if self.frames.len() > self.from {
            self.backlog.add(self.frames.len() - self.from);
        }
    }
}

fn head(len: usize, epoch: u64, shards: usize) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&(len as u32).to_le_bytes());
    head[4..12].copy_from_slice(&epoch.to_le_bytes());
    head[12..].copy_from_slice(&(shards as u32).to_le_bytes());
    head
}

fn shard_bytes((shard, count): (u32, u64)) -> [u8; SHARD_BYTES] {
    let mut bytes = [0; SHARD_BYTES];
    bytes[..4].copy_from_slice(&shard.to_le_bytes());
    bytes[4..].copy_from_slice(&count.to_le_bytes());
    bytes
}

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
        let backlog = Backlog {
            bytes: AtomicUsize::new(0),
            large_bytes: AtomicUsize::new(0),
            bytes_max: AtomicUsize::new(BACKLOG_BYTES),
            overrun: AtomicBool::new(false),
            on_behind: OnceLock::new(),
        };
        Self {
            outboxes: Mutex::new(Vec::new()),
            backlog: Arc::new(backlog),
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
        let outbox = Arc::new(Outbox { frames: Mutex::new(Vec::new()), backlog: Arc::clone(&self.backlog) });
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
    /// Whether more groups wait for the merger than should, or more keys to be saved: writes are to be held back.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let Backlog { bytes, bytes_max, .. } = &*self.hub().backlog;
        bytes.load(Relaxed) > bytes_max.load(Relaxed) || self.saves().is_behind()
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

/// A group of effects as it comes out.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    epoch: u64,
    effects: &'a [u8],
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
}

/// Groups of one worker that were taken from its outbox, in the buffers that they stood in there.
#[derive(Default)]
struct Queue {
    pieces: VecDeque<Vec<u8>>,
    /// Where the first group of the first piece begins.
    at: usize,
}

impl Queue {
    /// The first group.
    #[inline]
    fn front(&self) -> Option<Frame<'_>> {
        let rest = &self.pieces.front()?[self.at..];
        let head = rest.first_chunk::<HEAD_BYTES>()?;
        let (len, epoch) =
            (word(head, 0) as usize, u64::from(word(head, 4)) | u64::from(word(head, 8)) << 32);
        Some(Frame { bytes: rest.get(..len)?, epoch, shards: word(head, 12) as usize })
    }
    /// Its epoch.
    fn epoch(&self) -> Option<u64> {
        self.front().map(|group| group.epoch)
    }
    /// The first group, of so many bytes, was given. A buffer in which nothing is any more comes back.
    #[inline]
    fn pass(&mut self, len: usize) -> Option<Vec<u8>> {
        self.at += len;
        if self.pieces.front()?.len() > self.at {
            return None;
        }
        self.at = 0;
        self.pieces.pop_front()
    }
}

/// A group where it waits.
struct Frame<'q> {
    bytes: &'q [u8],
    epoch: u64,
    shards: usize,
}

impl<'q> Frame<'q> {
    /// The shards that it writes, with its count of each.
    #[inline]
    fn shards(&self) -> impl Iterator<Item = (u32, u64)> + use<'q> {
        self.bytes[HEAD_BYTES..][..self.shards * SHARD_BYTES]
            .chunks_exact(SHARD_BYTES)
            .map(|place| (word(place, 0), u64::from(word(place, 4)) | u64::from(word(place, 8)) << 32))
    }
    #[inline]
    fn effects(&self) -> &'q [u8] {
        &self.bytes[HEAD_BYTES + self.shards * SHARD_BYTES..]
    }
    /// Whether it is of this epoch, and nothing is missing before it in any of its shards.
    #[inline]
    fn is_next(&self, epoch: u64, given: &[u64]) -> bool {
        self.epoch == epoch && self.shards().all(|(shard, count)| given[shard as usize] + 1 == count)
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
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
        // What was told to the one before and never taken.
        lock(&hub.outboxes).iter().for_each(|outbox| lock(&outbox.frames).clear());
        hub.backlog.bytes.store(0, Relaxed);
        hub.backlog.large_bytes.store(0, Relaxed);
        hub.backlog.overrun.store(false, Relaxed);
        let mut guards = world.guards();
        let given = (0..keyspace.shard_count()).map(|id| guards.shard_by_id(id).group_count()).collect();
        let bits = bits & !wants::UNDO | wants::GROUPS;
        keyspace.subscribe(bits);
        Some(Merger { keyspace, bits, given, queues: Vec::new(), spares: Vec::new() })
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
                while let Some(group) = queue.front()
                    && group.is_next(epoch, &self.given)
                {
                    group.shards().for_each(|(shard, count)| self.given[shard as usize] = count);
                    let effects = group.effects();
                    if !effects.is_empty() {
                        give(Group { epoch, effects });
                        given += 1;
                    }
                    has_moved = true;
                    let len = group.bytes.len();
                    taken += len;
                    if len >= LARGE_BYTES || taken >= TAKEN_BYTES {
                        hub.backlog.take(taken, len);
                        taken = 0;
                    }
                    if let Some(mut spare) = queue.pass(len)
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
        if given == 0 {
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
            if !frames.is_empty() {
                queue
                    .pieces
                    .push_back(std::mem::replace(&mut *frames, self.spares.pop().unwrap_or_default()));
            }
        }
        outboxes.retain(|outbox| !gone.contains(&Arc::as_ptr(outbox)));
        self.queues.retain(|(outbox, queue)| queue.front().is_some() || !gone.contains(&Arc::as_ptr(outbox)));
    }
}

impl Drop for Merger<'_> {
    fn drop(&mut self) {
        self.keyspace.unsubscribe(self.bits);
        self.keyspace.hub().has_merger.store(false, Relaxed);
    }
}
