//! Owns: the work that nobody waits for, in bounded steps: ending resizes, freeing flushed tables, compacting sparse
//! spans, giving memory back. Does not own: when it runs; the engine calls it when a worker is idle and a few times a
//! second, and for flushed tables when their memory is needed.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::counters::Counter;
use crate::evict::RoomOutcome;
use crate::keyspace::Batch;
use crate::shard::ShardGuard;

/// Buckets of a running resize moved under one lock: about 15 µs.
const RESIZE_BUCKETS: u32 = 64;
/// Buckets of a flushed table freed under one lock: about 50 µs.
const DRAIN_BUCKETS: u32 = 64;
/// Steps of so many buckets that who needs memory frees at most: about 0.4 ms.
const FLUSHED_STEPS_MAX: usize = 8;
/// Pieces of 64 KiB of deleted collections freed in one step, outside the lock: about 100 µs where their memory is in
/// the cache, a few times that where it is not.
const REAP_CHUNKS: usize = 4;
/// Entries moved out of sparse spans under one lock: about 25 µs.
const COMPACT_ENTRIES: usize = 64;
/// Regions whose free pages are given back in one step: each up to some 100 µs in the kernel.
const PURGE_REGIONS: usize = 1;
/// Rounds over all shards that find nothing before there is nothing to do: in the second a slab knows what has not
/// grown since the first.
const IDLE_ROUNDS: u32 = 2;
/// Steps between purges.
const PURGE_EVERY: u32 = 16;

/// What is known of tables that were thrown away and are not emptied: their memory counts as used until it is freed.
#[derive(Default)]
pub(crate) struct Flushed {
    /// There are some that maintenance has not begun to look for.
    new: AtomicBool,
    tables: AtomicUsize,
    /// The shard at which who needs their memory looks for them: all threads that do so go on from there.
    at: AtomicU32,
}

impl Flushed {
    /// A shard's table was thrown away: maintenance looks at all shards. To be called while the shard is held.
    pub(crate) fn note(&self) {
        self.tables.fetch_add(1, Relaxed);
        self.new.store(true, Relaxed);
    }
    /// Whether one was since this was asked last.
    fn take_new(&self) -> bool {
        self.new.load(Relaxed) && self.new.swap(false, Relaxed)
    }
    fn any(&self) -> bool {
        self.tables.load(Relaxed) > 0
    }
    /// So many are emptied.
    fn emptied(&self, tables: usize) {
        self.tables.fetch_sub(tables, Relaxed);
    }
}

/// Where maintenance stands. One for the server, or one for each worker.
#[derive(Debug, Default)]
pub struct Maintenance {
    at: u32,
    steps: u32,
    /// Shards in a row at which there was nothing to do.
    idle: u32,
}

/// What a step has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceStep {
    /// Entries moved by compaction.
    pub moved: usize,
    /// Bytes given back to the operating system.
    pub purged_bytes: usize,
    /// Whether anything was done under the lock, or freed.
    pub worked: bool,
    /// Two whole rounds have found nothing to do: no need to call again soon.
    pub idle: bool,
}

/// What the part of a step under the lock of a shard has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockedStep {
    /// Entries moved by compaction.
    pub moved: usize,
    /// Whether anything was done.
    pub worked: bool,
}

impl Maintenance {
    /// One step: one shard under its lock for at most about 100 µs, and now and then, outside it, pages back to the
    /// operating system (up to 0.5 ms).
    pub fn step(&mut self, batch: &Batch<'_>) -> MaintenanceStep {
        let locked = self.step_under_lock(batch);
        self.step_outside(batch, locked)
    }

    /// The part of a step that holds a shard: what a command may have to wait for.
    pub fn step_under_lock(&mut self, batch: &Batch<'_>) -> LockedStep {
        let keyspace = batch.keyspace();
        if keyspace.flushed.take_new() {
            self.idle = 0;
        }
        let mut guard = batch.lock_shard(self.at & (keyspace.shard_count() - 1));
        let env = guard.env();
        let resized = guard.heap_mut().advance_resize(env, RESIZE_BUCKETS);
        let mut locked = LockedStep { moved: 0, worked: guard.drain() | resized };
        if !locked.worked {
            let moved = guard.heap_mut().compact(env, COMPACT_ENTRIES);
            batch.count_kept_up(Counter::MovedEntries, moved.slots);
            batch.count_kept_up(Counter::MovedBytes, moved.bytes);
            locked.moved = moved.slots;
            locked.worked = moved.slots > 0;
        }
        locked
    }

    /// The part that holds nothing.
    pub fn step_outside(&mut self, batch: &Batch<'_>, locked: LockedStep) -> MaintenanceStep {
        let keyspace = batch.keyspace();
        let idle_steps = keyspace.shard_count() * IDLE_ROUNDS;
        let mut step = MaintenanceStep { moved: locked.moved, ..MaintenanceStep::default() };
        let reaped = keyspace.reaper().step(REAP_CHUNKS);
        batch.count_kept_up(Counter::LazyFreed, reaped.objects);
        step.worked = reaped.worked | locked.worked;
        self.steps = self.steps.wrapping_add(1);
        if locked.worked {
            self.idle = 0;
        } else {
            self.at = self.at.wrapping_add(1);
            self.idle = self.idle.saturating_add(1);
        }
        if reaped.worked {
            // What is freed is none of the shards': they need not be looked at again for it, only its pages.
            self.idle = self.idle.min(idle_steps - 1);
        }
        if self.steps.is_multiple_of(PURGE_EVERY) || self.idle == idle_steps {
            step.purged_bytes = keyspace.pages.purge(PURGE_REGIONS) + keyspace.directory.runs.purge();
            batch.count_kept_up(Counter::ReturnedBytes, step.purged_bytes);
            keyspace.directory.domain.collect();
            if step.purged_bytes > 0 {
                self.idle = 0;
            }
        }
        step.idle = self.idle >= idle_steps;
        step
    }
}

impl ShardGuard<'_> {
    /// Frees some entries of flushed tables, if there are any. Returns whether any are left.
    fn drain(&mut self) -> bool {
        let (env, keyspace) = (self.env(), self.keyspace);
        let heap = self.heap_mut();
        let before = heap.drains();
        let goes_on = heap.drain(env, DRAIN_BUCKETS, |garbage| keyspace.discard(garbage));
        keyspace.flushed.emptied(before - heap.drains());
        goes_on
    }
}

impl Batch<'_> {
    /// Frees what has been flushed, which nobody can reach, until used memory is at most `limit_bytes`, in a few of
    /// maintenance's steps: who flushes and writes need not wait for maintenance. The caller holds no lock.
    pub fn free_flushed(&self, limit_bytes: usize) -> RoomOutcome {
        let keyspace = self.keyspace();
        let (mut steps, mut empty) = (0, 0);
        while keyspace.flushed.any() && empty < keyspace.shard_count() {
            if keyspace.used_bytes() <= limit_bytes {
                return RoomOutcome::Enough;
            }
            if steps >= FLUSHED_STEPS_MAX {
                return RoomOutcome::More;
            }
            let at = keyspace.flushed.at.load(Relaxed);
            let shard = at & (keyspace.shard_count() - 1);
            let Some(mut guard) = self.lock_shard_in_time(shard) else { return RoomOutcome::More };
            if guard.heap().drains() > 0 {
                // Most shards of a small keyspace have no table.
                steps += usize::from(!guard.heap().drains_nothing());
                guard.drain();
                empty = 0;
            } else {
                // Who looked there meanwhile has gone on already.
                let _ = keyspace.flushed.at.compare_exchange(at, at.wrapping_add(1), Relaxed, Relaxed);
                empty += 1;
            }
        }
        if keyspace.used_bytes() <= limit_bytes { RoomOutcome::Enough } else { RoomOutcome::Nothing }
    }
}
