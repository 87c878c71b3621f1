//! Owns: which hashes of a shard have fields that expire, and removing those whose time has come: when the hash is
//! used, and by the expiry cycle. Does not own: the fields (`crate::hash_object`).
//!
//! Each hash with such fields stands in the index once, under a time at or before its earliest. A hash with a field
//! that expires is never compact, so most hashes cost a comparison here.

use super::{Op, ShardGuard};
use crate::counters::Counter;
use crate::effect::{Cause, Effect};
use crate::entry::ValueMut;
use crate::entry::heap::{Found, Key};
use crate::hash_object::{HashLimits, HashMut};
use crate::recorder::{Pen, Recorder};
use crate::value::Object;
use crate::wants;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

/// Fields removed from a hash at once, about: at most 223 more, so some 100 µs.
const FIELDS_AT_ONCE: usize = 128;
/// Times that before one use of a hash.
const ROUNDS_MAX: usize = 4;

/// For each database, hashes by time and by the hash of their key. One place for each hash.
#[derive(Debug, Default)]
pub(super) struct FieldIndex(Vec<BTreeSet<(u64, u64)>>);

impl FieldIndex {
    fn place(&mut self, db: u8) -> &mut BTreeSet<(u64, u64)> {
        let db = db as usize;
        if self.0.len() <= db {
            self.0.resize_with(db + 1, BTreeSet::new);
        }
        &mut self.0[db]
    }
}

impl ShardGuard<'_> {
    /// Keeps the index after a hash's earliest expiry went from `before` to `after`.
    #[inline]
    pub(crate) fn note_fields(&mut self, db: u8, hash: u64, before: u64, after: u64) {
        if before != after {
            self.move_fields(db, hash, before, after);
        }
    }

    #[inline(never)]
    fn move_fields(&mut self, db: u8, hash: u64, before: u64, after: u64) {
        let place = self.data.fields.place(db);
        place.remove(&(before, hash));
        let (had, has) = (before != u64::MAX, after != u64::MAX);
        self.counters.add_with_fields(db as usize, i64::from(has) - i64::from(had));
        if has {
            place.insert((after, hash));
            self.keyspace.shard(self.id).next_expiry_ms.fetch_min(after, Relaxed);
        }
    }

    /// Counts fields that a command removed because it gave them a time that has come.
    pub fn count_expired_fields(&mut self, op: &mut Op<'_>, count: usize) {
        self.count(op, Counter::ExpiredFields, count as i64);
    }

    /// FLUSHDB.
    pub(crate) fn forget_fields(&mut self, db: u8) {
        let place = self.data.fields.place(db);
        self.counters.add_with_fields(db as usize, -(place.len() as i64));
        place.clear();
    }
    /// FLUSHDB that may be taken back.
    pub(crate) fn take_fields(&mut self, db: u8) -> BTreeSet<(u64, u64)> {
        let taken = std::mem::take(self.data.fields.place(db));
        self.counters.add_with_fields(db as usize, -(taken.len() as i64));
        taken
    }
    /// Takes it back.
    pub(crate) fn put_fields(&mut self, db: u8, fields: BTreeSet<(u64, u64)>) {
        self.forget_fields(db);
        self.counters.add_with_fields(db as usize, fields.len() as i64);
        *self.data.fields.place(db) = fields;
    }
    /// SWAPDB.
    pub(crate) fn swap_fields(&mut self, one: u8, two: u8) {
        self.data.fields.place(one.max(two));
        self.data.fields.0.swap(one as usize, two as usize);
    }
    /// The earliest time in the index.
    pub(crate) fn next_field_due_ms(&self) -> u64 {
        let firsts = self.data.fields.0.iter().filter_map(|place| place.first());
        firsts.map(|&(due_ms, _)| due_ms).min().unwrap_or(u64::MAX)
    }

    /// Before a hash is used: removes fields whose time has come, up to a bound. Those that are left are invisible to
    /// `HashRef`.
    pub(super) fn purge_fields(&mut self, op: &mut Op<'_>, key: &Key<'_>) {
        if self.data.fields.0.get(op.db as usize).is_none_or(BTreeSet::is_empty) {
            return;
        }
        let now_ms = self.time(op);
        if op.sees_expired || self.keyspace.keeps_expired(now_ms) {
            return;
        }
        for _ in 0..ROUNDS_MAX {
            let Some(found) = self.live(op, key) else { return };
            if self.due_of(op.db as usize, found) > now_ms {
                return;
            }
            self.expire_fields(op, key, found, now_ms);
        }
    }

    /// Removes some due fields of one hash, with the effect, and the key if none is left. Returns how many.
    fn expire_fields(&mut self, op: &mut Op<'_>, key: &Key<'_>, found: Found, now_ms: u64) -> usize {
        let backing = self.keyspace.backing();
        let (wanted, inside) = self.before_change(op, key, found);
        let data = &mut *self.data;
        let ValueMut::Object(object) = data.heap.value_mut(op.db as usize, found) else { return 0 };
        let (before, due_before) = (object.memory_bytes(), object.next_due_ms());
        let Object::Hash(hash) = object else { return 0 };
        let pen = Pen::new(op.recorder, inside, op.db, key.bytes);
        let mut change = HashMut::new(hash, HashLimits::default(), backing).with(now_ms, pen);
        let removed = change.expire_due(FIELDS_AT_ONCE);
        let (after, due, empty) = (object.memory_bytes(), object.next_due_ms(), object.is_empty());
        data.heap.grow_owned(before, after);
        self.note_fields(op.db, key.hash, due_before, due);
        if removed > 0 {
            self.count(op, Counter::ExpiredFields, removed as i64);
            if empty && wanted & wants::EVENTS != 0 {
                op.recorder.number_next(self.keyspace.catalogue().next_number());
            }
            if wanted != 0 {
                self.tell(op, wanted, key.bytes, &Effect::FieldsExpired { last: empty });
            }
            self.wrote_by(op, key, wanted, Cause::Expired);
        }
        if empty {
            let garbage = self.remove_found(op, key, found, Cause::Deleted);
            self.keyspace.discard(garbage);
        }
        removed
    }

    /// For the expiry cycle: removes due fields of all databases, about `max`. Returns how many.
    pub(crate) fn expire_due_fields(
        &mut self,
        now_ms: u64,
        recorder: &mut Recorder,
        bytes: &mut Vec<u8>,
        max: usize,
    ) -> usize {
        let mut removed = 0;
        for db in 0..self.data.fields.0.len() {
            while removed < max
                && let Some(&(due_ms, hash)) = self.data.fields.0[db].first()
                && due_ms <= now_ms
            {
                let found = self.heap().find_hash(self.env(), db, hash);
                let Some(found) = found.filter(|found| self.due_of(db, *found) == due_ms) else {
                    // Not the hash that stood here: two keys with one 64-bit hash. Sight removes its fields.
                    self.data.fields.0[db].pop_first();
                    continue;
                };
                bytes.clear();
                bytes.extend_from_slice(self.heap().entry(db, found).key());
                let mut op = Op::new(db as u8, now_ms, recorder);
                removed += self.expire_fields(&mut op, &Key { hash, bytes }, found, now_ms).max(1);
            }
        }
        removed
    }

    fn due_of(&self, db: usize, found: Found) -> u64 {
        self.heap().entry(db, found).object().map_or(u64::MAX, Object::next_due_ms)
    }
}
