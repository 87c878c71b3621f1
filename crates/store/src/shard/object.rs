//! Owns: running a change on an object under the lock, with everything that must follow it: memory count, watches,
//! removal of what became empty. Does not own: the types (`crate::list` and its siblings), which tell what they do.

use super::write::Setting;
use super::{Op, ShardGuard, WrongType};
use crate::counters::Counter;
use crate::effect::Cause;
use crate::effect::{Effect, wants};
use crate::entry::heap::{Found, Key};
use crate::entry::{Draft, Spare, ValueMut};
use crate::hash_object::{Hash, HashLimits, HashMut, HashRef};
use crate::list::{List, ListLimit, ListMut};
use crate::recorder::Pen;
use crate::set::{Set, SetLimits, SetMut, SetRef};
use crate::sorted_set::{SortedSet, SortedSetLimits, SortedSetMut, SortedSetRef};
use crate::stream::StreamMut;
use crate::value::{NewValue, Object, ValueRef};

/// What a change says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed<R> {
    /// The handler's result.
    pub result: R,
    /// Whether anything was changed: if not, nothing is counted and no watch is touched.
    pub changed: bool,
}

impl<R> Changed<R> {
    /// A change.
    pub const fn yes(result: R) -> Self {
        Self { result, changed: true }
    }
    /// No change.
    pub const fn no(result: R) -> Self {
        Self { result, changed: false }
    }
}

impl ShardGuard<'_> {
    /// Runs `change` on the key's object. Without the key: on a fresh object from `create`, or not at all (`Ok(None)`).
    /// An object that is empty afterwards is removed.
    fn change_object<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        create: Option<fn() -> Object>,
        change: impl FnOnce(&mut Object, Option<Pen<'_>>) -> Result<Changed<R>, WrongType>,
    ) -> Result<Option<R>, WrongType> {
        let Some(found) = self.live(op, key) else {
            let Some(create) = create else { return Ok(None) };
            return self.create_object(op, key, create, change);
        };
        let (wanted, inside) = self.before_change(op, key, found);
        let (now_ms, mode, db) = (self.time(op), self.mode(), op.db as usize);
        let data = &mut *self.data;
        let clock = data.heap.entry(db, found).clock();
        let clock = mode.touched(clock, now_ms, &mut data.rng);
        data.heap.entry(db, found).set_clock(clock);
        if data.heap.entry(db, found).packed().is_some() {
            return self.change_packed(op, key, (found, clock), (wanted, inside), change);
        }
        let ValueMut::Object(object) = data.heap.value_mut(db, found) else { return Err(WrongType) };
        let (before, due_before) = (object.memory_bytes(), object.next_due_ms());
        let outcome = change(object, Pen::new(op.recorder, inside, op.db, key.bytes));
        if let Object::Hash(hash) = object {
            hash.give_back();
        }
        let (after, due, empty) = (object.memory_bytes(), object.next_due_ms(), object.is_empty());
        data.heap.grow_owned(before, after);
        self.note_fields(op.db, key.hash, due_before, due);
        let Changed { result, changed } = outcome?;
        if empty {
            let garbage = self.remove_found(op, key, found, Cause::Deleted);
            self.keyspace.discard(garbage);
        } else if changed {
            self.wrote(op, key, wanted);
        }
        Ok(Some(result))
    }

    /// [`ShardGuard::change_object`] where there is none yet.
    fn create_object<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        create: fn() -> Object,
        change: impl FnOnce(&mut Object, Option<Pen<'_>>) -> Result<Changed<R>, WrongType>,
    ) -> Result<Option<R>, WrongType> {
        let mut object = Box::new(create());
        let wanted = self.wanted(op, key);
        // A change that leaves nothing behind has not happened.
        let mark = op.recorder.tape().mark();
        if wanted != 0 {
            self.begin_object(op, wanted, key, &object);
        }
        let inside = wanted & !wants::UNDO;
        let outcome = change(&mut object, Pen::new(op.recorder, inside, op.db, key.bytes));
        let stays = matches!(outcome, Ok(Changed { changed: true, .. })) && !object.is_empty();
        if stays {
            self.set_as(op, key, NewValue::Object(object), Setting::filled());
        } else if wanted != 0 {
            op.recorder.unwind(mark);
        }
        outcome.map(|changed| Some(changed.result))
    }
    /// Tells of an empty object where none was.
    #[cold]
    fn begin_object(&mut self, op: &mut Op<'_>, wanted: u32, key: &Key<'_>, object: &Object) {
        let effect = Effect::New { kind: object.kind(), expire_ms: None };
        self.tell(op, wanted, key.bytes, &effect);
    }

    /// [`ShardGuard::change_object`] for a compact collection inside its entry: it is taken out into a buffer of the
    /// shard, changed and written back, or boxed if it has become too large. Two copies of a good KiB at most, about
    /// 40 ns.
    fn change_packed<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        (found, clock): (Found, u32),
        (wanted, inside): (u32, u32),
        change: impl FnOnce(&mut Object, Option<Pen<'_>>) -> Result<Changed<R>, WrongType>,
    ) -> Result<Option<R>, WrongType> {
        let (db, env) = (op.db as usize, self.env());
        let data = &mut *self.data;
        let entry = data.heap.entry(db, found);
        let Some((kind, bytes)) = entry.packed() else { return Err(WrongType) };
        let expire_ms = entry.expire_ms();
        let mut buffer = std::mem::take(&mut data.scratch);
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let mut object = Object::from_packed(kind, buffer);
        let outcome = change(&mut object, Pen::new(op.recorder, inside, op.db, key.bytes));
        let changed = matches!(outcome, Ok(Changed { changed: true, .. }));
        let spare = Spare::Keep;
        let taken = match object.packed() {
            _ if object.is_empty() && changed => {
                self.remove_found(op, key, found, Cause::Deleted);
                return self.end_change(object, outcome);
            }
            Some((kind, bytes)) if changed => (NewValue::Bytes(bytes), Some(kind)),
            // Nothing was changed, and nothing is written.
            Some(_) => return self.end_change(object, outcome),
            // It has become too large or taken another form, which may happen without a change.
            None => {
                let due = object.next_due_ms();
                // Its buffer has been that of many others.
                object.fit();
                let value = NewValue::Object(Box::new(object));
                let draft =
                    Draft { key: key.bytes, value, expire_ms, clock, raw: false, spare, packed: None };
                data.heap.overwrite(env, db, found, draft);
                self.note_fields(op.db, key.hash, u64::MAX, due);
                if changed {
                    self.wrote(op, key, wanted);
                }
                return outcome.map(|changed| Some(changed.result));
            }
        };
        let (value, packed) = taken;
        let draft = Draft { key: key.bytes, value, expire_ms, clock, raw: false, spare, packed };
        data.heap.overwrite(env, db, found, draft);
        self.wrote(op, key, wanted);
        self.end_change(object, outcome)
    }

    /// Gives the buffer back that a compact collection was changed in.
    fn end_change<R>(
        &mut self,
        object: Object,
        outcome: Result<Changed<R>, WrongType>,
    ) -> Result<Option<R>, WrongType> {
        self.data.scratch = object.into_buffer();
        outcome.map(|changed| Some(changed.result))
    }

    /// [`ShardGuard::change_object`] for lists.
    pub fn change_list<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        create: bool,
        limit: ListLimit,
        change: impl FnOnce(&mut ListMut<'_>) -> Changed<R>,
    ) -> Result<Option<R>, WrongType> {
        let create = create.then_some((|| Object::List(List::default())) as fn() -> Object);
        self.change_object(op, key, create, |object, pen| match object {
            Object::List(list) => Ok(change(&mut ListMut::with(list, limit, pen))),
            _ => Err(WrongType),
        })
    }

    /// [`ShardGuard::change_object`] for streams. One that is created stays only if the change says that it changed
    /// it.
    pub fn change_stream<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        create: bool,
        change: impl FnOnce(&mut StreamMut<'_>) -> Changed<R>,
    ) -> Result<Option<R>, WrongType> {
        let create = create.then_some((|| Object::Stream(Box::default())) as fn() -> Object);
        self.change_object(op, key, create, |object, pen| match object {
            Object::Stream(stream) => Ok(change(&mut StreamMut::with(stream, pen))),
            _ => Err(WrongType),
        })
    }

    /// As [`ShardGuard::change_stream`], for what stands beside the entries: groups, counters. A change counts as a
    /// write, but as in Valkey it ends no WATCH and invalidates nothing that a client has cached.
    pub fn change_beside_entries<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        change: impl FnOnce(&mut StreamMut<'_>) -> Changed<R>,
    ) -> Result<Option<R>, WrongType> {
        let done = self.change_stream(op, key, false, |stream| {
            let Changed { result, changed } = change(stream);
            Changed::no((result, changed))
        })?;
        if matches!(done, Some((_, true))) {
            self.count(op, Counter::Writes, 1);
        }
        Ok(done.map(|(result, _)| result))
    }

    /// [`ShardGuard::change_object`] for hashes. Fields whose time has come are removed first.
    pub fn change_hash<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        create: bool,
        limits: HashLimits,
        change: impl FnOnce(&mut HashMut<'_>) -> Changed<R>,
    ) -> Result<Option<R>, WrongType> {
        self.purge_fields(op, key);
        let now_ms = self.seen_at(op);
        let create = create.then_some((|| Object::Hash(Hash::default())) as fn() -> Object);
        let (keyspace, ahead) = (self.keyspace, op.ahead);
        self.change_object(op, key, create, |object, pen| match object {
            Object::Hash(hash) => Ok({
                hash.look_ahead(ahead);
                change(&mut HashMut::new(hash, limits, keyspace.backing()).with(now_ms, pen))
            }),
            _ => Err(WrongType),
        })
    }

    /// [`ShardGuard::change_object`] for sets.
    pub fn change_set<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        create: bool,
        limits: SetLimits,
        change: impl FnOnce(&mut SetMut<'_>) -> Changed<R>,
    ) -> Result<Option<R>, WrongType> {
        let create = create.then_some((|| Object::Set(Set::default())) as fn() -> Object);
        let (keyspace, ahead) = (self.keyspace, op.ahead);
        self.change_object(op, key, create, |object, pen| match object {
            Object::Set(set) => Ok({
                set.look_ahead(ahead);
                change(&mut SetMut::new(set, limits, keyspace.backing()).with(pen))
            }),
            _ => Err(WrongType),
        })
    }

    /// [`ShardGuard::change_object`] for sorted sets.
    pub fn change_sorted_set<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        create: bool,
        limits: SortedSetLimits,
        change: impl FnOnce(&mut SortedSetMut<'_>) -> Changed<R>,
    ) -> Result<Option<R>, WrongType> {
        let create = create.then_some((|| Object::SortedSet(SortedSet::default())) as fn() -> Object);
        let (keyspace, ahead) = (self.keyspace, op.ahead);
        self.change_object(op, key, create, |object, pen| match object {
            Object::SortedSet(set) => Ok({
                set.look_ahead(ahead);
                change(&mut SortedSetMut::new(set, limits, keyspace.backing()).with(pen))
            }),
            _ => Err(WrongType),
        })
    }

    /// [`ShardGuard::peek`] for hashes. Fields whose time has come are removed first.
    pub fn peek_hash(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Result<Option<HashRef<'_>>, WrongType> {
        self.purge_fields(op, key);
        let now_ms = self.seen_at(op);
        self.peek(op, key)
            .map(|value| value.as_hash().ok_or(WrongType).map(|hash| hash.at(now_ms)))
            .transpose()
    }
    /// [`ShardGuard::get`] for hashes. Fields whose time has come are removed first.
    pub fn get_hash(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Result<Option<HashRef<'_>>, WrongType> {
        self.purge_fields(op, key);
        let now_ms = self.seen_at(op);
        self.get(op, key)
            .map(|value| value.as_hash().ok_or(WrongType).map(|hash| hash.at(now_ms)))
            .transpose()
    }
    /// [`ShardGuard::get`] for sets.
    pub fn get_set(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Result<Option<SetRef<'_>>, WrongType> {
        self.get(op, key).map(|value| value.as_set().ok_or(WrongType)).transpose()
    }

    /// [`ShardGuard::get`] for sorted sets.
    pub fn get_sorted_set(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
    ) -> Result<Option<SortedSetRef<'_>>, WrongType> {
        self.get(op, key).map(|value| value.as_sorted_set().ok_or(WrongType)).transpose()
    }

    /// The value as it stands, without counting: for commands that read several keys at once, after they have called
    /// `get` or `exists` for each. What has expired and is kept, since expiry is paused, is not seen here either.
    #[must_use]
    pub fn view(&self, db: u8, key: &Key<'_>, now_ms: u64) -> Option<ValueRef<'_>> {
        let found = self.heap().find(db as usize, key)?;
        let entry = self.heap().entry(db as usize, found);
        (!found.expires() || entry.expire_ms() > self.time_at(now_ms)).then(|| entry.value())
    }
}
