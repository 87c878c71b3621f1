//! Owns: commit and rollback, under the locks of the operation. Does not own: the journal.

use super::{Before, Inverse, Savepoint, Undo, ValueBefore};
use crate::entry::heap::Key;
use crate::entry::{Draft, Garbage, Spare, ValueMut};
use crate::hash_object::{HashLimits, HashMut};
use crate::keyspace::Guards;
use crate::recorder::Recorder;
use crate::set::{SetLimits, SetMut};
use crate::shard::ShardGuard;
use crate::sorted_set::{SortedSetLimits, SortedSetMut};
use crate::value::{NewValue, Object};

impl Guards<'_> {
    /// Takes back what was done behind a savepoint. Its effects are forgotten; the journal goes on. The guards cover
    /// all that was touched: those of the operation, or the world.
    pub fn rollback(&mut self, recorder: &mut Recorder, to: Savepoint) {
        let Some(mut journal) = recorder.journal.take() else { return };
        while journal.inverses.len() > to.inverses
            && let Some(inverse) = journal.inverses.pop()
        {
            self.apply(inverse);
        }
        journal.bytes = to.bytes;
        journal.writes.truncate(to.writes);
        journal.counts = to.counts;
        journal.forget_kept();
        recorder.unwind(to.tape);
        recorder.journal = Some(journal);
    }

    /// What was done stays: watches are touched and counters counted. Returns what removed values owned, to be dropped
    /// after the locks. What was told can be read from now on.
    pub fn commit(&mut self, recorder: &mut Recorder) -> Vec<Garbage> {
        let Some(mut journal) = recorder.journal.take() else { return Vec::new() };
        let keyspace = self.keyspace();
        for &(db, hash) in &journal.writes {
            let shard = keyspace.shard_of(&Key { hash, bytes: b"" });
            self.shard_by_id(shard).data.rewrote(db, hash);
        }
        journal.counts().for_each(|(counter, by)| self.counters().add(counter, by));
        let garbage = journal.inverses.drain(..).filter_map(|inverse| self.give_up(inverse)).collect();
        recorder.end_undo(journal);
        garbage
    }
    /// What an inverse kept is needed no more.
    fn give_up(&mut self, inverse: Inverse) -> Option<Garbage> {
        match inverse {
            // Most own nothing, and then nothing is gathered.
            Inverse::Key { before: Some(before), .. } => {
                Some(before.into_garbage()).filter(|garbage| !matches!(garbage, Garbage::Nothing))
            }
            Inverse::Flush { shard, table, .. } => {
                self.shard_by_id(shard).heap_mut().give_up(table);
                self.keyspace().flushed.note();
                None
            }
            _ => None,
        }
    }

    fn apply(&mut self, inverse: Inverse) {
        match inverse {
            Inverse::Key { db, key, before } => {
                self.with(&key, |guard, key| guard.restore(db, key, before));
            }
            Inverse::Expire { db, key, expire_ms, spare } => self.with(&key, |guard, key| {
                let before = guard.lift(db, key).map(|now| Before { expire_ms, spare, ..now });
                guard.restore(db, key, before);
            }),
            Inverse::Member { db, key, undo } => self.with(&key, |guard, key| guard.undo(db, key, undo)),
            Inverse::Move { from, to } => {
                let content = self.with(&to.1, |guard, key| guard.lift(to.0, key));
                self.with(&from.1, |guard, key| guard.restore(from.0, key, content));
            }
            Inverse::Swap { one, two } => {
                let keyspace = self.keyspace();
                (0..keyspace.shard_count()).for_each(|id| self.shard_by_id(id).swap_raw(one, two));
                keyspace.swap_counters(one, two);
            }
            Inverse::Entry { section, name, before } => {
                self.keyspace().catalogue().put(section, &name, before);
            }
            Inverse::Flush { db, shard, table, fields } => {
                let guard = self.shard_by_id(shard);
                let (keys, expiring) = table.counts();
                let env = guard.env();
                guard.heap_mut().put_back(env, db as usize, table);
                guard.put_fields(db, fields);
                guard.counters.add_keys(db as usize, keys as i64);
                guard.counters.add_expiring(db as usize, expiring as i64);
                self.keyspace().flushed.note();
            }
        }
    }
    fn with<R>(&mut self, key: &[u8], work: impl FnOnce(&mut ShardGuard<'_>, &Key<'_>) -> R) -> R {
        let key = self.keyspace().key(key);
        work(self.shard(&key), &key)
    }
}

impl Before {
    fn into_garbage(self) -> Garbage {
        match self.value {
            ValueBefore::Shared(bytes) => Garbage::Shared(bytes),
            ValueBefore::Object(object) => Garbage::Object(object),
            ValueBefore::Text(_) | ValueBefore::Packed(..) | ValueBefore::Int(_) => Garbage::Nothing,
        }
    }
}

impl ShardGuard<'_> {
    /// Takes out what a key holds.
    fn lift(&mut self, db: u8, key: &Key<'_>) -> Option<Before> {
        let found = self.heap().find(db as usize, key)?;
        let image = self.inline_image(db, found);
        let garbage = self.remove_raw(db, key, found);
        Some(image.with(garbage))
    }

    /// Has a key hold what it held, whatever it holds now.
    fn restore(&mut self, db: u8, key: &Key<'_>, before: Option<Before>) {
        if let Some(found) = self.heap().find(db as usize, key) {
            let garbage = self.remove_raw(db, key, found);
            self.keyspace.discard(garbage);
        }
        let Some(Before { value, expire_ms, clock, raw, spare }) = before else { return };
        let due = if let ValueBefore::Object(object) = &value { object.next_due_ms() } else { u64::MAX };
        let mut room = Box::default();
        let (value, packed) = match value {
            ValueBefore::Packed(kind, bytes) => {
                room = bytes;
                (NewValue::Bytes(&room), Some(kind))
            }
            value => (value.into_new(&mut room), None),
        };
        let env = self.env();
        let draft = Draft { key: key.bytes, value, expire_ms, clock, raw, spare: Spare::Is(spare), packed };
        self.heap_mut().insert(env, db as usize, key.hash, draft);
        self.counters.add_keys(db as usize, 1);
        self.note_fields(db, key.hash, u64::MAX, due);
        self.expiry_changed(db, false, expire_ms);
    }

    /// Takes a change inside a large value back.
    fn undo(&mut self, db: u8, key: &Key<'_>, undo: Undo) {
        let Some(found) = self.heap().find(db as usize, key) else { return };
        let backing = self.keyspace.backing();
        let (before, after, due) = match self.data.heap.value_mut(db as usize, found) {
            ValueMut::Shared(text) => {
                let Undo::Text { offset, bytes, len } = undo else { return };
                let before = text.memory_bytes();
                let now = text.vec_mut();
                now.truncate(len);
                now[offset..offset + bytes.len()].copy_from_slice(&bytes);
                (before, text.memory_bytes(), (u64::MAX, u64::MAX))
            }
            ValueMut::Object(object) => {
                let (before, due_before) = (object.memory_bytes(), object.next_due_ms());
                match (&mut *object, undo) {
                    (Object::List(list), undo) => list.undo(undo),
                    (Object::Hash(hash), Undo::HashField(field, was)) => {
                        HashMut::new(hash, HashLimits::default(), backing).undo(&field, was);
                    }
                    (Object::Set(set), undo) => SetMut::new(set, SetLimits::default(), backing).undo(undo),
                    (Object::SortedSet(set), Undo::SortedSetMember(member, was)) => {
                        SortedSetMut::new(set, SortedSetLimits::default(), backing).undo(&member, was);
                    }
                    (Object::Stream(stream), Undo::Stream(undo)) => stream.undo(undo),
                    _ => debug_assert!(false, "a change is taken back where it was made"),
                }
                (before, object.memory_bytes(), (due_before, object.next_due_ms()))
            }
            ValueMut::Packed | ValueMut::Bytes(_) | ValueMut::Int(_) => return,
        };
        self.data.heap.grow_owned(before, after);
        self.note_fields(db, key.hash, due.0, due.1);
    }
}
