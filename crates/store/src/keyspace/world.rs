//! Owns: the whole keyspace for one worker alone: FLUSHALL, SWAPDB, and walking over everything. Does not own: closing
//! the gate (`crate::epoch`), single shards.

use std::ops::RangeInclusive;

use super::{Guards, Keyspace};
use crate::counters::{Counter, Counters};
use crate::effect::Effect;
use crate::epoch::{Apart, Closed};
use crate::shard::{Op, ShardGuard};
use crate::table::array::Array;
use crate::undo::Inverse;
use crate::value::ValueRef;

/// The whole keyspace for one worker alone.
pub struct World<'w> {
    pub(super) keyspace: &'w Keyspace,
    pub(super) counters: &'w Counters,
    /// Ends before the gate opens. The epochs of the world are not those of any batch.
    pub(super) _inside: Apart<'w, Array>,
    pub(super) _closed: Closed<'w, Array>,
}

impl<'w> World<'w> {
    /// The keyspace.
    #[must_use]
    pub const fn keyspace(&self) -> &'w Keyspace {
        self.keyspace
    }
    /// Guards that lock a shard when it is first asked for: for commands that find out their keys while they run.
    pub fn guards(&self) -> Guards<'_> {
        Guards::world(self.keyspace, self.counters)
    }
    /// Shows all keys as they stand, with their databases and absolute expiries, whether they have expired or not.
    pub fn each_key(&self, mut visit: impl FnMut(u8, &[u8], ValueRef<'_>, Option<u64>)) {
        let mut guards = self.guards();
        for db in (0..self.keyspace.database_count() as u8).filter(|&db| !self.keyspace.is_empty(db)) {
            for id in 0..self.keyspace.shard_count() {
                let guard = guards.shard_by_id(id);
                guard.each_key(db, |key, value, expire_ms| visit(db, key, value, expire_ms));
            }
        }
    }
    /// Memory of values, for tests: what the shards keep as owned out of line, and what a walk over all keys counts of
    /// that, and of entries without the rounding of their slots.
    #[must_use]
    pub fn value_bytes(&self) -> (usize, usize, usize) {
        let mut guards = self.guards();
        let (mut kept, mut owned, mut entries) = (0, 0, 0);
        for id in 0..self.keyspace.shard_count() {
            let guard = guards.shard_by_id(id);
            kept += guard.heap().owned_bytes();
            for db in 0..self.keyspace.database_count() {
                guard.heap().count_bytes(guard.env(), db, (&mut owned, &mut entries));
            }
        }
        (kept, owned, entries)
    }
    /// FLUSHDB and FLUSHALL: makes databases empty. The tables are set aside in constant time for each shard, and their
    /// entries are freed by maintenance, a few at a time. Returns how many keys there were. Each shard is locked once,
    /// and databases without keys are passed over: 1,024 shards of 16 databases took over a millisecond.
    pub fn flush(&self, op: &mut Op<'_>, dbs: RangeInclusive<u8>) -> usize {
        let mut removed = 0;
        self.keyspace.saves.make_void();
        let filled: Vec<u8> = dbs.clone().filter(|&db| !self.keyspace.is_empty(db)).collect();
        let shards = if filled.is_empty() { 0 } else { self.keyspace.shard_count() };
        for id in 0..shards {
            let mut guard = ShardGuard::open(self.keyspace, self.counters, id, None);
            for &db in &filled {
                op.db = db;
                removed += guard.clear(op);
            }
        }
        match &mut op.recorder.journal {
            Some(journal) => drop(journal.count(Counter::Writes, removed as i64)),
            None => self.counters.add(Counter::Writes, removed as i64),
        }
        for db in dbs {
            op.db = db;
            self.tell(op, &Effect::Flush);
        }
        removed
    }
    /// Tells of a barrier: it is of every shard, but ordered by its epoch, so that one count is enough.
    fn tell(&self, op: &mut Op<'_>, effect: &Effect<'_>) {
        let mut guard = ShardGuard::open(self.keyspace, self.counters, 0, None);
        let wanted = self.keyspace.wanted() | op.recorder.wanted();
        if wanted != 0 {
            guard.tell(op, wanted, b"", effect);
        }
    }
    /// SWAPDB of the operation's database with another. Watched keys of both databases count as written.
    pub fn swap(&self, op: &mut Op<'_>, two: u8) {
        let one = op.db;
        if one == two {
            return;
        }
        self.keyspace.saves.make_void();
        for id in 0..self.keyspace.shard_count() {
            ShardGuard::open(self.keyspace, self.counters, id, None).swap(op, two);
        }
        self.keyspace.swap_counters(one, two);
        match &mut op.recorder.journal {
            Some(journal) => {
                journal.count(Counter::Writes, 1);
                journal.push(Inverse::Swap { one, two });
                journal.forget_kept();
            }
            None => self.counters.add(Counter::Writes, 1),
        }
        self.tell(op, &Effect::Swap { with: two });
    }
}

impl Keyspace {
    /// Behind the gate.
    pub(crate) fn swap_counters(&self, one: u8, two: u8) {
        self.counters.iter().for_each(|counters| counters.swap(one as usize, two as usize));
    }
}

impl ShardGuard<'_> {
    fn clear(&mut self, op: &mut Op<'_>) -> usize {
        let (env, db) = (self.env(), op.db);
        self.touch_all(op, (db, db));
        let (removed, expiring) = (self.heap().len(db as usize), self.heap().count_expiring(db as usize));
        if let Some(journal) = &mut op.recorder.journal {
            let (table, fields) = (self.data.heap.set_aside(env, db as usize), self.take_fields(db));
            journal.push(Inverse::Flush { db, shard: self.id(), table, fields });
            journal.forget_kept();
        } else {
            self.heap_mut().clear(env, db as usize);
            self.keyspace.flushed.note();
            self.forget_fields(db);
        }
        self.counters.add_keys(db as usize, -(removed as i64));
        self.counters.add_expiring(db as usize, -(expiring as i64));
        removed
    }
    fn swap(&mut self, op: &mut Op<'_>, two: u8) {
        let one = op.db;
        self.touch_all(op, (one, two));
        self.touch_all(op, (two, one));
        self.swap_raw(one, two);
    }
    pub(crate) fn swap_raw(&mut self, one: u8, two: u8) {
        let env = self.env();
        self.heap_mut().swap(env, one as usize, two as usize);
        self.swap_fields(one, two);
    }
    /// Counts as a write to the watched keys of `db` that are there, or in `other`: a key that was missing, or whose
    /// time had come, and stays so does not fail a transaction.
    fn touch_all(&mut self, op: &mut Op<'_>, (db, other): (u8, u8)) {
        let (env, now_ms) = (self.env(), self.time(op));
        let data = &mut *self.data;
        let is_there = |hash| {
            [usize::from(db), usize::from(other)].iter().any(|&db| {
                let found = data.heap.find_hash(env, db, hash);
                found.is_some_and(|found| data.heap.entry(db, found).expire_ms() > now_ms)
            })
        };
        match &mut op.recorder.journal {
            Some(journal) => {
                data.watches
                    .watched(db)
                    .filter(|&hash| is_there(hash))
                    .for_each(|hash| journal.wrote(db, hash));
            }
            None => data.watches.touch_all(db, is_there),
        }
    }
}
