//! Owns: taking many keys in at once, as a start does. Does not own: how far a table grows ahead (`crate::table`).

use super::{Keyspace, Worker};
use crate::table::head::NOT_FILLING;
use std::sync::atomic::Ordering::Relaxed;

impl Keyspace {
    /// Many keys come in, so many in all as far as is known: tables grow by more than a step at a time, until
    /// [`Worker::fit`] of all shards and [`Keyspace::is_filled`].
    pub fn is_filling(&self, expected: Option<usize>) {
        let expected = expected.map_or(0, |keys| keys / self.shards.len());
        self.directory.filling.store(expected.min(NOT_FILLING - 1), Relaxed);
    }
    /// They have come.
    pub fn is_filled(&self) {
        self.directory.filling.store(NOT_FILLING, Relaxed);
    }
}

impl Worker<'_> {
    /// Brings the tables of a shard to the size that they need, after [`Keyspace::is_filling`].
    pub fn fit(&mut self, shard: u32) {
        let keyspace = self.keyspace;
        let batch = self.enter();
        let mut guard = batch.lock_shard(shard);
        guard.heap_mut().fit(keyspace.env(shard));
    }
}
