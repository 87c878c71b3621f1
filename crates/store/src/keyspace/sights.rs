//! Owns: asking for keys before they are needed, without a lock, and taking what was seen then if it is still there.
//! Does not own: what is seen (`crate::entry::sight`), locks.

use super::Batch;
use crate::access::AccessMode;
use crate::counters::Counter;
use crate::entry::heap::Key;
use crate::hash::shard_of;
use crate::shard::Op;
use crate::table::head::{prefetch_entries, prefetch_passed};
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
    /// Asks for the entries that the tags in the buckets point out: stage two, some 10 commands after stage one, no
    /// lock. The hashes are those whose buckets were asked for, in the same order, from sight number `from` on; with
    /// each, whether its value is wanted too, not only whether there is one.
    #[inline(always)]
    pub fn prefetch_entries(&mut self, from: usize, keys: impl IntoIterator<Item = (u64, bool)>) {
        prefetch_entries(&self.pin, self.sights, from, keys);
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
    /// under LRU, and only of the database whose bucket was asked for as that number: what is there is compared with
    /// the key, which is the same in every database. `false` says nothing about the key.
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
    /// is to be told; counts a write. Only of the database whose bucket was asked for, as in [`Batch::read`]. `false`
    /// says nothing about the key, and nothing has changed.
    #[inline]
    pub fn rewrite(&mut self, at: usize, op: &mut Op<'_>, key: &Key<'_>, text: &[u8]) -> bool {
        let rewrites = self.rewrites((op.db, op.now_ms), op.recorder);
        rewrites.is_some_and(|mut rewrites| rewrites.untold_text(at, key, text))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Expiry, Keyspace, NewValue, Op, Recorder};

    /// Whoever holds one shard gets nothing of another: what is there may be freed meanwhile.
    #[test]
    fn a_sight_is_of_its_shard() {
        let keyspace = Keyspace::new(Config { shards: 4, ..Config::default() });
        let mut worker = keyspace.worker().expect("workers are left");
        let key = keyspace.key(b"key");
        let mut recorder = Recorder::default();
        let op = &mut Op::new(0, 1, &mut recorder);
        let mut batch = worker.enter_alone();
        batch.lock(&key).set(op, &key, NewValue::string(b"text"), Expiry::None);
        batch.prefetch_bucket(0, key.hash(), true);
        batch.prefetch_entries(0, [(key.hash(), true)]);
        let alone = batch.alone.as_ref().expect("nobody else is in the keyspace");
        let read = |shard| batch.sights.read((0, &key), (shard, alone), (0, 1), |_| true);
        let own = keyspace.shard_of(&key);
        assert!(read(own));
        (0..4)
            .filter(|shard| *shard != own)
            .for_each(|shard| assert!(!read(shard), "it is not of shard {shard}"));
    }
}
