//! Owns: asking for keys before they are needed, without a lock, and taking what was seen then if it is still there.
//! Does not own: what is seen (`crate::entry::sight`), locks.

use super::Batch;
use crate::access::AccessMode;
use crate::counters::Counter;
use crate::entry::heap::Key;
use crate::entry::sight::Passed;
use crate::hash::shard_of;
use crate::shard::Op;
use crate::table::head::{prefetch_entry, prefetch_passed};
use crate::value::ValueRef;

impl Batch<'_> {
    /// Asks for the bucket of a key's hash: stage one, no lock. What is seen of the key on the way is known by how many
    /// were asked for before it in this batch. `reads`: it is for [`Batch::read`], which needs no more than the entry.
    #[inline(always)]
    pub fn prefetch_bucket(&mut self, db: u8, hash: u64, reads: bool) {
        let keyspace = self.keyspace;
        let shard = shard_of(hash, keyspace.mask);
        match (reads, self.alone.is_some()) {
            (true, true) => {}
            (true, false) => keyspace.shard(shard).prefetch_lock(),
            (false, _) => keyspace.shard(shard).prefetch(db),
        }
        let head = keyspace.head_of(db, hash);
        keyspace.directory.prefetch_bucket(&self.pin, self.sights, (shard, head, hash));
    }
    /// Counts a key whose bucket has just been asked for: nothing of it is seen.
    #[inline]
    pub fn pass_bucket(&mut self) {
        self.sights.push(0, None);
    }
    /// Asks for the entries that the tags in the bucket of sight number `at` point out: stage two, some 10 commands
    /// after stage one, no lock. `whole`: the value is wanted too, not only whether there is one.
    #[inline(always)]
    pub fn prefetch_entry(&mut self, at: usize, hash: u64, whole: bool) {
        let Some(sight) = self.sights.at(at) else { return };
        if prefetch_entry(&self.pin, sight, hash, whole) {
            self.sights.push_passed(Passed { at, hash, whole });
        }
    }
    /// [`Batch::prefetch_entry`] of all keys whose buckets were asked for, in the same order.
    #[inline(always)]
    pub fn prefetch_entries(&mut self, keys: impl Iterator<Item = (u64, bool)>) {
        let (sights, passed) = self.sights.all();
        for (at, (sight, (hash, whole))) in sights.iter_mut().zip(keys).enumerate() {
            if prefetch_entry(&self.pin, sight, hash, whole) {
                passed.push(Passed { at, hash, whole });
            }
        }
    }
    /// Whether stage two has seen an entry as number `at`.
    #[inline]
    #[must_use]
    pub fn saw(&self, at: usize) -> bool {
        self.sights.has(at)
    }
    /// Goes on with those that stage two did not find where they belong, as they stand in another bucket: stage three,
    /// once for all.
    #[inline]
    pub fn prefetch_passed(&mut self) {
        prefetch_passed(&self.pin, self.sights);
    }
    /// Asks for the objects of the entries that have been seen: stage four, of a batch in which some request may want
    /// one. Only where the batch is alone: who has an entry's lock may free its object.
    pub fn prefetch_objects(&mut self) {
        if let Some(alone) = &self.alone {
            self.sights.prefetch_objects(alone);
        }
    }
    /// GET without a search: reads the value that stage two has seen as number `at`, if it still stands there, is the
    /// key's and has not expired, and counts a hit and an access unless `read` says that it wants another way. Only
    /// under LRU. `false` says nothing about the key.
    #[inline]
    pub fn read(
        &mut self,
        at: usize,
        key: &Key<'_>,
        now_ms: u64,
        read: impl FnOnce(&ValueRef<'_>) -> bool,
    ) -> bool {
        let mode = self.keyspace.access_mode();
        if mode != AccessMode::Lru {
            return false;
        }
        let shard = self.keyspace.shard_of(key);
        let times = (mode.fresh(now_ms), now_ms);
        let is_read = match &self.alone {
            // Nobody can hold the shard: a guard borrows the batch.
            Some(proof) => self.sights.read((at, key), (shard, proof), times, read),
            None if !self.sights.has(at) => return false,
            None => {
                let hold = self.keyspace.shard(shard).hold_in_time(self.keyspace, None);
                hold.is_some_and(|hold| self.sights.read((at, key), (shard, &hold), times, read))
            }
        };
        if is_read {
            self.counters.add(Counter::Hits, 1);
        }
        is_read
    }
    /// SET without a search: writes a string that is no number over the one that stage two has seen as number `at`, if
    /// that still stands there, is the key's, has not expired and has room, and nobody waits for a key of the shard or
    /// is to be told; counts a write. `false` says nothing about the key, and nothing has changed.
    #[inline]
    pub fn rewrite(&mut self, at: usize, op: &mut Op<'_>, key: &Key<'_>, text: &[u8]) -> bool {
        let rewrites = self.rewrites((op.db, op.now_ms), op.recorder);
        rewrites.is_some_and(|mut rewrites| rewrites.untold_text(at, key, text))
    }
}
