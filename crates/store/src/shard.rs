//! Owns: one shard and what can be done under its lock: lookups, writes, expiry on sight, watches, waiters, counting
//! and emitting. Does not own: which shard a key is in, taking locks (`crate::keyspace`), bytes and pointers
//! (`crate::entry`).

mod fields;
mod object;
mod read;
mod text;
mod write;

use crate::access::AccessMode;
use crate::clock::XorShift;
use crate::counters::{Counter, Counters};
use crate::effect::{Cause, Effect, EffectSink};
use crate::entry::heap::{Env, Found, Heap, Key};
use crate::epoch::Closed;
use crate::held::{Held, Hold};
use crate::keyspace::Keyspace;
use crate::prefetch;
use crate::table::array::Array;
use crate::waiters::Waiters;
use crate::watch::Watches;
use fields::FieldIndex;
pub use object::Changed;
pub use read::KeyInfo;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
pub use text::{NumberError, WrongType};
pub use write::{Expiry, Taken, TakenValue};

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
}

impl ShardData {
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
}

/// A shard, on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Shard {
    data: Held<ShardData>,
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
        };
        let tables_address = data.heap.tables_address();
        Self { data: Held::new(data), next_expiry_ms: AtomicU64::new(u64::MAX), tables_address }
    }
    /// Holds the shard: by its lock, or without it for who proves that he has the keyspace to himself.
    #[inline]
    pub(crate) fn hold<'h>(&'h self, alone: Option<&'h Closed<'h, Array>>) -> Hold<'h, ShardData> {
        match alone {
            Some(proof) => self.data.alone(proof),
            None => self.data.lock(),
        }
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
    /// Where effects go.
    pub sink: &'e mut dyn EffectSink,
}

impl<'e> Op<'e> {
    /// An operation whose reads count as accesses.
    pub fn new(db: u8, now_ms: u64, sink: &'e mut dyn EffectSink) -> Self {
        Self { db, now_ms, touch: true, sink }
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
    pub(crate) data: Hold<'b, ShardData>,
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
        let data = keyspace.shard(id).hold(alone);
        let used_before = data.heap.used_bytes();
        Self { keyspace, counters, id, data, used_before }
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

    /// Emits an effect that the store cannot know itself: a change inside an object, with its members chosen.
    pub fn emit(&mut self, op: &mut Op<'_>, effect: &Effect<'_>) {
        emit(self.keyspace, op, effect);
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
        self.data.now_ms = self.time_at(op.now_ms);
        self.data.now_ms
    }
    /// The operation's time, or the shard's if that is a little later.
    fn time_at(&self, now_ms: u64) -> u64 {
        let lag_ms = self.data.now_ms.saturating_sub(now_ms);
        if lag_ms <= TIME_LAG_MS_MAX { now_ms + lag_ms } else { now_ms }
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
        let now_ms = self.time(op);
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

    /// Everything that goes with a write to a key, except the effect.
    #[inline]
    fn wrote(&mut self, op: &mut Op<'_>, key: &Key<'_>) {
        self.data.watches.touch(op.db, key.hash);
        self.tell_write(op, key);
        self.counters.add(Counter::Writes, 1);
    }

    /// One look at a number on a line that every operation reads, unless somebody listens.
    #[inline]
    fn tell_write(&self, op: &mut Op<'_>, key: &Key<'_>) {
        if self.keyspace.write_listeners().load(Relaxed) != 0 {
            op.sink.wrote(key.bytes);
        }
    }

    /// Keeps the expiry bookkeeping after an entry went from one expiry state to another.
    #[inline]
    fn expiry_changed(&mut self, db: u8, was: bool, expire_ms: u64) {
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

/// Emits an effect if there is a reader.
#[inline]
pub(crate) fn emit(keyspace: &Keyspace, op: &mut Op<'_>, effect: &Effect<'_>) {
    if op.sink.wants() || keyspace.write_listeners().load(Relaxed) != 0 {
        let sequence = keyspace.next_sequence();
        op.sink.emit(sequence, op.db, effect);
    }
}
