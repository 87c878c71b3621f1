//! Owns: the active expiry cycle. Does not own: expiry on sight (`crate::shard`), the index of expiries
//! (`crate::table`).
//!
//! Finding what is due costs next to nothing while nothing is: each shard publishes a lower bound of its next expiry,
//! so a round reads one word a shard; inside, each group of 32 buckets (about 180 keys) has a lower bound, and in a
//! group only marked entries are looked at. A bound is exact after each visit; between visits deletes and later
//! expiries leave it too early, which costs one visit.

use crate::effect::Cause;
use crate::entry::heap::Key;
use crate::keyspace::Batch;
use crate::recorder::Recorder;
use crate::shard::{Op, ShardGuard};
use std::sync::atomic::Ordering::Relaxed;

/// Keys removed under one lock; a group (224 at most) is always finished, so up to 223 more. Where few keys expire each
/// is of a group of its own, 32 buckets to look at: 4 µs a key, and 15 when memory is slow.
const KEYS_PER_LOCK: usize = 16;

/// The cycle's place. One for the server, or one for each worker with shards of its own.
#[derive(Debug, Default)]
pub struct ExpiryCycle {
    at: u32,
    key: Vec<u8>,
}

/// What a step has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiryStep {
    /// Keys removed.
    pub expired: usize,
    /// Whether the round over all shards is complete; else call again soon.
    pub round_done: bool,
}

impl ExpiryCycle {
    /// Removes due keys from where the last step ended, until about `keys_max` are removed or the round is complete.
    /// The lock of a shard is held for at most 239 removals (about 50 µs) at a time.
    pub fn step(
        &mut self,
        batch: &Batch<'_>,
        now_ms: u64,
        keys_max: usize,
        recorder: &mut Recorder,
    ) -> ExpiryStep {
        let keyspace = batch.keyspace();
        let mut expired = 0;
        while self.at < keyspace.shard_count() {
            if keyspace.shard(self.at).next_expiry_ms.load(Relaxed) <= now_ms {
                if expired >= keys_max {
                    return ExpiryStep { expired, round_done: false };
                }
                let mut guard = batch.lock_shard(self.at);
                let (removed, more) = guard.expire_due(now_ms, recorder, &mut self.key);
                recorder.end_group();
                drop(guard);
                expired += removed;
                if more {
                    continue;
                }
            }
            self.at += 1;
        }
        self.at = 0;
        ExpiryStep { expired, round_done: true }
    }
}

impl ShardGuard<'_> {
    /// Removes due keys of all databases, one group at a time. Returns how many, and whether to come again.
    fn expire_due(&mut self, now_ms: u64, recorder: &mut Recorder, key: &mut Vec<u8>) -> (usize, bool) {
        let mut removed = 0;
        let mut due = Vec::new();
        for db in 0..self.keyspace.database_count() {
            let mut start = 0;
            while let Some((number, group)) = self.heap().due_group(db, start, now_ms) {
                if removed >= KEYS_PER_LOCK {
                    return (removed, true);
                }
                let env = self.env();
                // The hint is set before anything is removed: removing may move entries to another array, and with them
                // the meaning of `group`. Entries that move note their expiry where they arrive.
                self.heap_mut().split_group(env, db, group, now_ms, &mut due);
                for (hash, pointer) in due.drain(..) {
                    let Some(found) = self.heap().find_pointer(db, hash, pointer) else { continue };
                    key.clear();
                    key.extend_from_slice(self.heap().entry(db, found).key());
                    let mut op = Op::new(db as u8, now_ms, recorder);
                    let garbage =
                        self.remove_found(&mut op, &Key { hash, bytes: key }, found, Cause::Expired);
                    self.keyspace.discard(garbage);
                    removed += 1;
                }
                start = number + 1;
            }
        }
        removed += self.expire_due_fields(now_ms, recorder, key, KEYS_PER_LOCK.saturating_sub(removed));
        let next = self.heap().next_expiry_ms().min(self.next_field_due_ms());
        self.keyspace.shard(self.id()).next_expiry_ms.store(next, Relaxed);
        (removed, next <= now_ms)
    }
}
