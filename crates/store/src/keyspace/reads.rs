//! Owns: reads of several keys by what a batch has seen of them, with what is asked each time asked once. Does not own:
//! seeing (`crate::entry::sight`), a read of one key (`Batch::read`).

use super::{Batch, Counters, Guards, Keyspace};
use crate::access::AccessMode;
use crate::counters::Counter;
use crate::entry::heap::Key;
use crate::entry::sight::Sights;
use crate::epoch::Closed;
use crate::hash::shard_of;
use crate::shard::{Op, ShardGuard};
use crate::table::array::Array;
use crate::value::ValueRef;

impl Batch<'_> {
    /// [`Batch::read`] for many keys, with what it asks each time asked once. Nothing if the batch does not have the
    /// keyspace to itself.
    #[inline]
    pub fn reads(&mut self, now_ms: u64) -> Option<Reads<'_, false>> {
        self.alone.as_ref()?;
        self.reads_by(now_ms)
    }
    /// The same under the lock of each key.
    #[inline]
    pub fn locked_reads(&mut self, now_ms: u64) -> Option<Reads<'_, true>> {
        self.reads_by(now_ms)
    }
    #[inline(always)]
    fn reads_by<const LOCKS: bool>(&mut self, now_ms: u64) -> Option<Reads<'_, LOCKS>> {
        let mode = self.keyspace.access_mode();
        (mode == AccessMode::Lru).then(|| Reads {
            sights: self.sights,
            keyspace: self.keyspace,
            alone: self.alone.as_ref(),
            counters: self.counters,
            mask: self.keyspace.mask,
            times: (mode.fresh(now_ms), now_ms),
            hits: 0,
        })
    }
    /// Reads of several keys with these hashes that are one command: nobody else comes to any of them meanwhile.
    /// Nothing where somebody keeps one of their shards for long.
    pub fn reads_of(&mut self, now_ms: u64, hashes: impl Iterator<Item = u64>) -> Option<ReadsOf<'_>> {
        let (mode, mask) = (self.keyspace.access_mode(), self.keyspace.mask);
        let guards = self.lock_shards_in_time(hashes.map(|hash| shard_of(hash, mask)))?;
        let times = (mode == AccessMode::Lru).then(|| (mode.fresh(now_ms), now_ms));
        Some(ReadsOf { sights: self.sights, guards, counters: self.counters, mask, times })
    }
}

/// Reads of a batch, one by one: each under its key's lock, or without locks by a batch that has the keyspace.
pub struct Reads<'b, const LOCKS: bool> {
    sights: &'b Sights,
    keyspace: &'b Keyspace,
    alone: Option<&'b Closed<'b, Array>>,
    counters: &'b Counters,
    mask: u32,
    /// The access clock of what is read, and the time.
    times: (u32, u64),
    /// Not counted yet.
    hits: i64,
}
impl<const LOCKS: bool> Reads<'_, LOCKS> {
    /// Has `read` the string that stage two has seen as number `at`, if it still stands there, is the key's, has not
    /// expired and is shorter than `short_max`; counts a hit and an access. `false` says nothing about the key.
    #[inline(always)]
    pub fn short(&mut self, at: usize, key: &Key<'_>, short_max: usize, read: impl FnOnce(&[u8])) -> bool {
        let shard = shard_of(key.hash(), self.mask);
        let (sight, times) = ((at, key), self.times);
        let is_read = if LOCKS {
            let Some(hold) = self.keyspace.shard(shard).hold_in_time(self.keyspace, None) else {
                return false;
            };
            self.sights.short(sight, (shard, &hold), times, short_max).map(read).is_some()
        } else {
            let Some(proof) = self.alone else { return false };
            self.sights.short(sight, (shard, proof), times, short_max).map(read).is_some()
        };
        self.hits += i64::from(is_read);
        is_read
    }
    /// Whether stage two has seen an entry as number `at`.
    #[inline]
    #[must_use]
    pub fn saw(&self, at: usize) -> bool {
        self.sights.has(at)
    }
    /// [`Batch::lock_in_time`].
    #[inline]
    pub fn lock_in_time(&self, key: &Key<'_>) -> Option<ShardGuard<'_>> {
        ShardGuard::open_in_time(self.keyspace, self.counters, shard_of(key.hash(), self.mask), self.alone)
    }
}

impl<const LOCKS: bool> Drop for Reads<'_, LOCKS> {
    fn drop(&mut self) {
        self.counters.add(Counter::Hits, self.hits);
    }
}

/// Reads of several keys that are one command.
pub struct ReadsOf<'b> {
    sights: &'b Sights,
    guards: Guards<'b>,
    counters: &'b Counters,
    mask: u32,
    /// The access clock of what is read, and the time; nothing where an access is more than that.
    times: Option<(u32, u64)>,
}

impl ReadsOf<'_> {
    /// The string that stage two has seen as number `at`, as [`Reads::short`] gives it.
    #[inline]
    pub fn seen(&mut self, at: usize, key: &Key<'_>) -> Option<&[u8]> {
        let shard = shard_of(key.hash(), self.mask);
        let text = self.sights.short((at, key), (shard, &self.guards), self.times?, usize::MAX)?;
        self.counters.add(Counter::Hits, 1);
        Some(text)
    }
    /// [`ShardGuard::get`] for one of the keys.
    pub fn get(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<ValueRef<'_>> {
        self.guards.shard(key).get(op, key)
    }
}
