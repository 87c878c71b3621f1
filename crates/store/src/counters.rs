//! Owns: the figures that workers add up without contention: each worker writes its own lines only, with plain stores,
//! and a reader adds all of them. Does not own: what is counted when.
//!
//! A sum is exact when nobody is writing; otherwise it may miss what is in flight, and a worker's part may be negative
//! (it frees what another allocated) while the sum is not.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Databases at most; the counters have a place for each.
pub const DATABASES_MAX: usize = 16;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Memory of entries, values and tables.
    UsedBytes,
    /// Lookups by reading commands that found a key.
    Hits,
    /// Lookups by reading commands that did not.
    Misses,
    /// Keys removed because their time had come.
    Expired,
    /// Keys removed for memory.
    Evicted,
    /// Writes since the start (`rdb_changes_since_last_save`).
    Writes,
    /// Fields of hashes removed because their time had come.
    ExpiredFields,
    /// Deleted values that maintenance has freed (`lazyfreed_objects`).
    LazyFreed,
    /// Entries that compaction has moved out of sparse pages.
    MovedEntries,
    /// Their bytes.
    MovedBytes,
    /// Bytes of pages that were given back to the operating system.
    ReturnedBytes,
}

const COUNTERS: usize = 11;

/// One worker's counters.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    totals: [AtomicI64; COUNTERS],
    keys: [AtomicI64; DATABASES_MAX],
    expiring: [AtomicI64; DATABASES_MAX],
    with_fields: [AtomicI64; DATABASES_MAX],
}

#[inline]
fn bump(counter: &AtomicI64, by: i64) {
    // Not an atomic addition: the worker that owns the line is its only writer.
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

impl Counters {
    #[inline]
    pub(crate) fn add(&self, counter: Counter, by: i64) {
        bump(&self.totals[counter as usize], by);
    }
    #[inline]
    pub(crate) fn add_keys(&self, db: usize, by: i64) {
        bump(&self.keys[db], by);
    }
    #[inline]
    pub(crate) fn add_expiring(&self, db: usize, by: i64) {
        bump(&self.expiring[db], by);
    }
    #[inline]
    pub(crate) fn add_with_fields(&self, db: usize, by: i64) {
        bump(&self.with_fields[db], by);
    }
    pub(crate) fn get(&self, counter: Counter) -> i64 {
        self.totals[counter as usize].load(Relaxed)
    }
    pub(crate) fn keys(&self, db: usize) -> i64 {
        self.keys[db].load(Relaxed)
    }
    pub(crate) fn expiring(&self, db: usize) -> i64 {
        self.expiring[db].load(Relaxed)
    }
    pub(crate) fn with_fields(&self, db: usize) -> i64 {
        self.with_fields[db].load(Relaxed)
    }
    /// Two databases change places (under the world gate, so that no worker is writing).
    pub(crate) fn swap(&self, one: usize, two: usize) {
        for counters in [&self.keys, &self.expiring, &self.with_fields] {
            let first = counters[one].swap(counters[two].load(Relaxed), Relaxed);
            counters[two].store(first, Relaxed);
        }
    }
}
