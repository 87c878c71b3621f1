//! Owns: running a change on an object under the lock, with everything that must follow it: memory count, watches,
//! removal of what became empty. Does not own: the types (`crate::list` and its siblings), the effect, which the
//! handler emits.

use super::{Op, ShardGuard, WrongType};
use crate::effect::{Cause, NoEffects};
use crate::entry::ValueMut;
use crate::entry::heap::Key;
use crate::list::List;
use crate::shard::Expiry;
use crate::stream::Stream;
use crate::value::{NewValue, Object};

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
    /// An object that is empty afterwards is removed, which is emitted; the change itself is for the caller to emit.
    pub fn change_object<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        create: Option<fn() -> Object>,
        change: impl FnOnce(&mut Object) -> Result<Changed<R>, WrongType>,
    ) -> Result<Option<R>, WrongType> {
        let Some(found) = self.live(op, key) else {
            let Some(create) = create else { return Ok(None) };
            let mut object = Box::new(create());
            let Changed { result, changed } = change(&mut object)?;
            if changed && !object.is_empty() {
                self.put_object(op, key, object);
            }
            return Ok(Some(result));
        };
        let (now_ms, mode, db) = (self.time(op), self.mode(), op.db as usize);
        let data = &mut *self.data;
        let clock = data.heap.entry(db, found).clock();
        data.heap.entry(db, found).set_clock(mode.touched(clock, now_ms, &mut data.rng));
        let ValueMut::Object(object) = data.heap.value_mut(db, found) else { return Err(WrongType) };
        let before = object.memory_bytes();
        let outcome = change(object);
        let (after, empty) = (object.memory_bytes(), object.is_empty());
        data.heap.grow_owned(before, after);
        let Changed { result, changed } = outcome?;
        if empty {
            drop(self.remove_found(op, key, found, Cause::Deleted));
        } else if changed {
            self.wrote(op.db, key);
        }
        Ok(Some(result))
    }

    /// [`ShardGuard::change_object`] for lists.
    pub fn change_list<R>(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        create: bool,
        change: impl FnOnce(&mut List) -> Changed<R>,
    ) -> Result<Option<R>, WrongType> {
        let create = create.then_some((|| Object::List(List::default())) as fn() -> Object);
        self.change_object(op, key, create, |object| match object {
            Object::List(list) => Ok(change(list)),
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
        change: impl FnOnce(&mut Stream) -> Changed<R>,
    ) -> Result<Option<R>, WrongType> {
        let create = create.then_some((|| Object::Stream(Box::default())) as fn() -> Object);
        self.change_object(op, key, create, |object| match object {
            Object::Stream(stream) => Ok(change(stream)),
            _ => Err(WrongType),
        })
    }

    /// Adds a fresh object without an effect: the change that filled it is emitted by its handler.
    fn put_object(&mut self, op: &Op<'_>, key: &Key<'_>, object: Box<Object>) {
        let mut silent = Op { db: op.db, now_ms: op.now_ms, touch: true, sink: &mut NoEffects };
        self.set(&mut silent, key, NewValue::Object(object), Expiry::None);
    }
}
