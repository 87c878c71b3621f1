//! Owns: reads of several keys by what a batch has seen of them, with what is asked each time asked once. Does not own:
//! seeing (`crate::entry::sight`), a read of one key (`Batch::read`).

use super::{Batch, Counters};
use crate::access::AccessMode;
use crate::counters::Counter;
use crate::entry::heap::Key;
use crate::entry::sight::{Sights, Sole};
use crate::hash::shard_of;
use crate::shard::Op;
use crate::value::ValueRef;

impl Batch<'_> {
    /// [`Batch::read`] for many keys, with what it asks each time asked once. Nothing if the batch does not have the
    /// keyspace to itself.
    #[inline]
    pub fn reads(&mut self, now_ms: u64) -> Option<Reads<'_>> {
        let mode = self.keyspace.access_mode();
        let proof = self.alone.as_ref().filter(|_| mode == AccessMode::Lru)?;
        let (sights, sole, counters) = (&*self.sights, Sole::Alone(proof), self.counters);
        let times = (mode.fresh(now_ms), now_ms);
        Some(Reads { sights, sole, counters, mask: self.keyspace.mask, times, hits: 0 })
    }
    /// Reads of several keys with these hashes that are one command: nobody else comes to any of them meanwhile.
    pub fn reads_of(&mut self, now_ms: u64, hashes: impl Iterator<Item = u64>) -> ReadsOf<'_> {
        let (mode, mask) = (self.keyspace.access_mode(), self.keyspace.mask);
        let guards = self.lock_shards(hashes.map(|hash| shard_of(hash, mask)));
        let times = (mode == AccessMode::Lru).then(|| (mode.fresh(now_ms), now_ms));
        ReadsOf { sights: self.sights, sole: Sole::Guards(guards), counters: self.counters, mask, times }
    }
}

/// Reads of a batch that has the keyspace to itself.
pub struct Reads<'b> {
    sights: &'b Sights,
    sole: Sole<'b>,
    counters: &'b Counters,
    mask: u32,
    /// The access clock of what is read, and the time.
    times: (u32, u64),
    /// Not counted yet.
    hits: i64,
}

impl Reads<'_> {
    /// The string that stage two has seen as number `at`, if it still stands there, is the key's, has not expired and
    /// is shorter than `short_max`; counts a hit and an access. Nothing says nothing about the key.
    #[inline(always)]
    pub fn short(&mut self, at: usize, key: &Key<'_>, short_max: usize) -> Option<&[u8]> {
        let shard = shard_of(key.hash(), self.mask);
        let text = self.sights.short((at, key), (shard, &self.sole), self.times, short_max)?;
        self.hits += 1;
        Some(text)
    }
}

impl Drop for Reads<'_> {
    fn drop(&mut self) {
        self.counters.add(Counter::Hits, self.hits);
    }
}

/// Reads of several keys that are one command.
pub struct ReadsOf<'b> {
    sights: &'b Sights,
    sole: Sole<'b>,
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
        let text = self.sights.short((at, key), (shard, &self.sole), self.times?, usize::MAX)?;
        self.counters.add(Counter::Hits, 1);
        Some(text)
    }
    /// [`ShardGuard::get`] for one of the keys.
    pub fn get(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<ValueRef<'_>> {
        match &mut self.sole {
            Sole::Guards(guards) => guards.shard(key).get(op, key),
            Sole::Alone(_) | Sole::Locked(_) => None,
        }
    }
}
