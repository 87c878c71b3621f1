//! Owns: one shard and what can be done under its lock: lookups, writes, expiry on sight, watches, waiters, counting
//! and telling. Does not own: which shard a key is in, taking locks (`crate::keyspace`), bytes and pointers
//! (`crate::entry`).

mod fields;
mod keep;
mod object;
mod read;
mod text;
mod write;

use crate::access::AccessMode;
use crate::ahead::Ahead;
use crate::clock::XorShift;
use crate::counters::{Counter, Counters};
use crate::effect::{Cause, Effect, wants};
use crate::entry::heap::{Env, Found, Heap, Key};
use crate::epoch::Closed;
use crate::guarded::{Guard, Guarded};
use crate::keyspace::Keyspace;
use crate::prefetch;
use crate::recorder::Recorder;
use crate::save::Saving;
use crate::table::array::Array;
use crate::waiters::Waiters;
use crate::watch::Watches;
use fields::FieldIndex;
pub use object::Changed;
pub use read::KeyInfo;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
pub use text::{NumberError, WrongType};
pub use write::{Expiry, Taken};

/// A shard's time does not go back for an operation that is so much behind it: a worker whose batch has read the clock
/// a little before another's sees what has expired for the other as expired too. Who is further behind has a clock that
/// was set back, which the shard follows: otherwise whatever is given a time to live would be expired at once until the
/// clock has caught up. For a batch 100 ms are long; and no lock or session lives for less.
const TIME_LAG_MS_MAX: u64 = 100;
/// A cache line.
const LINE_BYTES: usize = 64;

/// What the lock of a shard protects.
pub(crate) struct ShardData {
    pub(crate) heap: Heap,
    pub(crate) watches: Watches,
    waiters: Waiters,
    rng: XorShift,
    /// The latest time seen: see [`TIME_LAG_MS_MAX`].
    now_ms: u64,
    /// Hashes with fields that expire.
    fields: FieldIndex,
    /// Where a compact collection stands while it is changed.
    scratch: Vec<u8>,
    /// Groups of effects that have written to it, since somebody wants to know.
    groups: u64,
    /// How far it is saved.
    pub(crate) saving: Saving,
}

impl ShardData {
    /// A group of one operation writes to the shard: its count.
    #[inline]
    pub(crate) const fn next_group(&mut self) -> u64 {
        self.groups += 1;
        self.groups
    }
    /// Whether somebody waits for a key of the shard.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiters.is_empty()
    }
    /// A string of the shard was written over, in its place.
    #[inline]
    pub(crate) fn rewrote(&mut self, db: u8, hash: u64) {
        self.watches.touch(db, hash);
    }
    /// The time at which an operation of `now_ms` runs here, which is the shard's from now on.
    #[inline]
    pub(crate) const fn time(&mut self, now_ms: u64) -> u64 {
        self.now_ms = self.time_at(now_ms);
        self.now_ms
    }
    /// The operation's time, or the shard's if that is a little later.
    const fn time_at(&self, now_ms: u64) -> u64 {
        let lag_ms = self.now_ms.saturating_sub(now_ms);
        if lag_ms <= TIME_LAG_MS_MAX { now_ms + lag_ms } else { now_ms }
    }
}

/// A shard, on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Shard {
    data: Guarded<ShardData>,
    /// No key of the shard expires before this. Written under the lock, read by the expiry cycle without it.
    pub(crate) next_expiry_ms: AtomicU64,
    /// Where the tables of the shard's heap stand.
    tables_address: usize,
}

impl Shard {
    pub(crate) fn new(databases: usize, jitter: u8, seed: u64) -> Self {
        let data = ShardData {
            heap: Heap::new(databases, jitter),
            watches: Watches::default(),
            waiters: Waiters::default(),
            rng: XorShift::new(seed),
            now_ms: 0,
            fields: FieldIndex::default(),
            scratch: Vec::new(),
            groups: 0,
            saving: Saving::default(),
        };
        let tables_address = data.heap.tables_address();
        Self { data: Guarded::new(data), next_expiry_ms: AtomicU64::new(u64::MAX), tables_address }
    }
    /// Holds the shard: by its lock, or without it for who proves that he has the keyspace to himself.
    #[inline]
    pub(crate) fn hold<'h>(&'h self, alone: Option<&'h Closed<'h, Array>>) -> Guard<'h, ShardData> {
        match alone {
            Some(proof) => self.data.alone(proof),
            None => self.data.lock(),
        }
    }
    /// The same; nothing where somebody keeps the lock for long (see [`Keyspace::set_kept`]).
    #[inline]
    pub(crate) fn hold_in_time<'h>(
        &'h self,
        keyspace: &Keyspace,
        alone: Option<&'h Closed<'h, Array>>,
    ) -> Option<Guard<'h, ShardData>> {
        match alone {
            Some(proof) => Some(self.data.alone(proof)),
            None => self.data.lock_in_time(&keyspace.directory.domain),
        }
    }
    /// Takes the lock, if nobody has it now.
    pub(crate) fn try_hold(&self) -> Option<Guard<'_, ShardData>> {
        self.data.try_lock()
    }
    /// Asks for the lock, for whoever takes it and needs nothing else of the shard.
    #[inline]
    pub(crate) fn prefetch_lock(&self) {
        prefetch::line_to_write(self.data.lock_address());
    }
    /// Asks for what a look-up reads before it comes to the bucket: the lock with its neighbours, and the table.
    #[inline]
    pub(crate) fn prefetch(&self, db: u8) {
        let shard = std::ptr::from_ref(self).cast::<u8>();
        for line in 0..size_of::<Self>() / LINE_BYTES {
            prefetch::line(shard.wrapping_add(line * LINE_BYTES));
        }
        self.prefetch_lock();
        let table = self.tables_address + usize::from(db) * Heap::TABLE_BYTES;
        prefetch::line(std::ptr::without_provenance(table));
        prefetch::line(std::ptr::without_provenance(table + Heap::TABLE_BYTES - 1));
    }
}

/// What a command brings to each call: where, when, for whom. One `now_ms` serves a whole command, EXEC or script.
pub struct Op<'e> {
    /// The database, below the keyspace's number of databases.
    pub db: u8,
    /// The time that the command runs at.
    pub now_ms: u64,
    /// Whether reading counts as an access (not under CLIENT NO-TOUCH, nor for OBJECT and similar).
    pub touch: bool,
    /// Whether what has expired is there as if it had not: for who brings keys in.
    pub sees_expired: bool,
    /// What the next requests will look for in the collection that this one is about.
    pub ahead: Ahead,
    /// Who writes down what it does.
    pub recorder: &'e mut Recorder,
}

impl<'e> Op<'e> {
    /// An operation whose reads count as accesses.
    pub fn new(db: u8, now_ms: u64, recorder: &'e mut Recorder) -> Self {
        Self { db, now_ms, touch: true, sees_expired: false, ahead: Ahead::default(), recorder }
    }
    /// An operation whose reads do not.
    pub fn untouched(db: u8, now_ms: u64, recorder: &'e mut Recorder) -> Self {
        Self { touch: false, ..Self::new(db, now_ms, recorder) }
    }
}

/// A locked shard. Everything a command does to keys goes through one of these.
///
/// What it lends (`ValueRef`) lives until it is next used for something that may change the shard, which the borrow
/// checker enforces. Keep it short: no I/O, nothing that waits.
pub struct ShardGuard<'b> {
    pub(crate) keyspace: &'b Keyspace,
    pub(crate) counters: &'b Counters,
    id: u32,
    pub(crate) data: Guard<'b, ShardData>,
    used_before: usize,
}

impl<'b> ShardGuard<'b> {
    /// Takes a shard: its lock, or without it for who proves that he has the keyspace to himself.
    #[inline]
    pub(crate) fn open(
        keyspace: &'b Keyspace,
        counters: &'b Counters,
        id: u32,
        alone: Option<&'b Closed<'b, Array>>,
    ) -> Self {
        Self::of(keyspace, counters, id, keyspace.shard(id).hold(alone))
    }
    /// The same; nothing where somebody keeps the lock for long.
    #[inline]
    pub(crate) fn open_in_time(
        keyspace: &'b Keyspace,
        counters: &'b Counters,
        id: u32,
        alone: Option<&'b Closed<'b, Array>>,
    ) -> Option<Self> {
        let data = keyspace.shard(id).hold_in_time(keyspace, alone)?;
        Some(Self::of(keyspace, counters, id, data))
    }
    #[inline]
    fn of(keyspace: &'b Keyspace, counters: &'b Counters, id: u32, data: Guard<'b, ShardData>) -> Self {
        let used_before = data.heap.used_bytes();
        Self { keyspace, counters, id, data, used_before }
    }

    /// Takes a shard's lock, if nobody has it now.
    pub(crate) fn try_open(keyspace: &'b Keyspace, counters: &'b Counters, id: u32) -> Option<Self> {
        Some(Self::of(keyspace, counters, id, keyspace.shard(id).try_hold()?))
    }

    /// The shard's number.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Whether a key is in this shard.
    #[inline]
    #[must_use]
    pub fn is_of(&self, key: &Key<'_>) -> bool {
        self.keyspace.shard_of(key) == self.id
    }

    /// This shard's watched keys.
    pub fn watches(&mut self) -> &mut Watches {
        &mut self.data.watches
    }
    /// This shard's blocked sessions.
    pub fn waiters(&mut self) -> &mut Waiters {
        &mut self.data.waiters
    }

    /// Adds what this guard has changed to the worker's counters. Happens by itself when the guard is dropped; needed
    /// before only to see `used_memory` exactly within one EXEC.
    pub fn settle(&mut self) {
        let used = self.data.heap.used_bytes();
        if used != self.used_before {
            self.counters.add(Counter::UsedBytes, used as i64 - self.used_before as i64);
            self.used_before = used;
        }
    }

    /// What is wanted of this operation, as bits of [`wants`]: one look at a word that every operation reads, and one
    /// at its own.
    #[inline]
    pub(crate) fn wanted(&self, op: &Op<'_>, key: &Key<'_>) -> u32 {
        let wanted = self.keyspace.wanted_of(key) | op.recorder.wanted();
        if wanted & wants::SAVE != 0 {
            self.save_first(op.db, key);
        }
        wanted
    }
    /// Tells of an effect on a key, which somebody wants.
    #[cold]
    pub(crate) fn tell(&mut self, op: &mut Op<'_>, wanted: u32, key: &[u8], effect: &Effect<'_>) {
        self.enter_group(op, wanted);
        op.recorder.tell(wanted, op.db, key, effect);
    }
    /// This shard is one that the operation's group writes to.
    pub(crate) fn enter_group(&mut self, op: &mut Op<'_>, wanted: u32) {
        if wanted & wants::GROUPS != 0 {
            let domain = &self.keyspace.directory.domain;
            let hub = self.keyspace.hub();
            op.recorder.enter_shard(self.id, &mut self.data.groups, || hub.begin_group(domain.epoch()));
        }
    }
    /// Groups that have written to the shard.
    pub(crate) fn group_count(&self) -> u64 {
        self.data.groups
    }
    /// Counts: at commit, if the operation may be taken back.
    pub(crate) fn count(&mut self, op: &mut Op<'_>, counter: Counter, by: i64) {
        if !op.recorder.journal.as_mut().is_some_and(|journal| journal.count(counter, by)) {
            self.counters.add(counter, by);
        }
    }

    pub(crate) fn env(&self) -> Env<'b> {
        self.keyspace.env(self.id)
    }
    pub(crate) fn heap(&self) -> &Heap {
        &self.data.heap
    }
    pub(crate) fn heap_mut(&mut self) -> &mut Heap {
        &mut self.data.heap
    }
    fn mode(&self) -> AccessMode {
        self.keyspace.access_mode()
    }
    /// The time at which an operation runs in this shard, which is the shard's from now on.
    pub(crate) fn time(&mut self, op: &Op<'_>) -> u64 {
        self.data.time(op.now_ms)
    }
    fn time_at(&self, now_ms: u64) -> u64 {
        self.data.time_at(now_ms)
    }

    /// The time at which an operation sees what has a time to live: at 0 nothing has expired.
    fn seen_at(&mut self, op: &Op<'_>) -> u64 {
        if op.sees_expired { 0 } else { self.time(op) }
    }

    /// Finds a key that has not expired. One that has is removed, with its effect: 2 cache lines more than a miss.
    #[inline]
    pub(crate) fn live(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Found> {
        let found = self.data.heap.find(op.db as usize, key)?;
        if found.expires() { self.live_expiring(op, key, found, false) } else { Some(found) }
    }

    /// As [`live`](Self::live), for what only reads: while expiry is paused, a key that has expired is not found and
    /// stays.
    #[inline]
    pub(crate) fn visible(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Found> {
        let found = self.data.heap.find(op.db as usize, key)?;
        if found.expires() { self.live_expiring(op, key, found, true) } else { Some(found) }
    }

    /// Out of line, so that keys without an expiry pay one test for it.
    #[inline(never)]
    fn live_expiring(&mut self, op: &mut Op<'_>, key: &Key<'_>, found: Found, reads: bool) -> Option<Found> {
        let now_ms = self.seen_at(op);
        if self.data.heap.entry(op.db as usize, found).expire_ms() <= now_ms {
            if reads && self.keyspace.keeps_expired(now_ms) {
                return None;
            }
            let garbage = self.remove_found(op, key, found, Cause::Expired);
            self.keyspace.discard(garbage);
            return None;
        }
        Some(found)
    }

    /// Everything that goes with a write to a key, except what became of it.
    #[inline]
    fn wrote(&mut self, op: &mut Op<'_>, key: &Key<'_>, wanted: u32) {
        if wanted != 0 && self.wrote_wanted(op, key, wanted, false) {
            return;
        }
        self.data.watches.touch(op.db, key.hash);
        self.counters.add(Counter::Writes, 1);
    }
    /// The same for a key that went by itself, or did not.
    fn wrote_by(&mut self, op: &mut Op<'_>, key: &Key<'_>, wanted: u32, cause: Cause) {
        if wanted != 0 && self.wrote_wanted(op, key, wanted, cause != Cause::Deleted) {
            return;
        }
        self.data.watches.touch(op.db, key.hash);
        self.counters.add(Counter::Writes, 1);
    }
    /// Tells of a write. Says whether what follows it waits for commit.
    #[cold]
    fn wrote_wanted(&mut self, op: &mut Op<'_>, key: &Key<'_>, wanted: u32, by_itself: bool) -> bool {
        if wanted & !wants::UNDO != 0 {
            self.tell(op, wanted, key.bytes, &Effect::Wrote { by_itself });
        }
        let Some(journal) = &mut op.recorder.journal else { return false };
        journal.wrote(op.db, key.hash);
        journal.count(Counter::Writes, 1);
        true
    }

    /// Keeps the expiry bookkeeping after an entry went from one expiry state to another.
    #[inline]
    pub(crate) fn expiry_changed(&mut self, db: u8, was: bool, expire_ms: u64) {
        let is = expire_ms != u64::MAX;
        if is {
            let next = &self.keyspace.shard(self.id).next_expiry_ms;
            if expire_ms < next.load(Relaxed) {
                next.store(expire_ms, Relaxed);
            }
        }
        if was != is {
            self.counters.add_expiring(db as usize, if is { 1 } else { -1 });
        }
    }
}

impl Drop for ShardGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.settle();
    }
}
