//! Owns: writing whole keys: SET, DEL, taking a key out for RENAME and MOVE, expiry, access clocks set by RESTORE. Does
//! not own: changes inside strings (`text`) and objects (`object`).

use super::{Op, ShardGuard, emit};
use crate::access::AccessMode;
use crate::counters::Counter;
use crate::effect::{Cause, Effect};
use crate::entry::heap::{Found, Key};
use crate::entry::{Draft, Garbage, PackedKind};
use crate::value::{NewValue, ValueRef};

/// What SET does with the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The key has none afterwards.
    None,
    /// KEEPTTL.
    Keep,
    /// Absolute. The caller does not set a time that has come; it removes the key instead.
    At(u64),
}

/// A key's content, taken out of the store.
#[derive(Debug)]
pub struct Taken {
    /// The value.
    pub value: TakenValue,
    /// Absolute expiry.
    pub expire_ms: Option<u64>,
    /// Whether a short string was edited in place, which OBJECT ENCODING goes on to show.
    raw: bool,
}

/// A value that is no longer in the store.
#[derive(Debug)]
pub enum TakenValue {
    /// A string that was inside the entry.
    Text(Vec<u8>),
    /// Anything else.
    Other(NewValue<'static>),
}

impl TakenValue {
    /// As a value to put back in; `text` keeps the bytes of a short string.
    #[must_use]
    pub fn into_new(self, text: &mut Vec<u8>) -> NewValue<'_> {
        match self {
            Self::Text(bytes) => {
                *text = bytes;
                NewValue::Bytes(text)
            }
            Self::Other(value) => value,
        }
    }
}

impl ShardGuard<'_> {
    /// SET: makes the key hold `value`. Returns what the old value owned, to be dropped after the lock, and whether the
    /// key is new. In place when the class of memory is the same: no allocation, two cache lines.
    #[inline]
    pub fn set(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        value: NewValue<'_>,
        expiry: Expiry,
    ) -> (Garbage, bool) {
        self.set_as(op, key, value, (expiry, false))
    }

    /// Puts what was [taken](Self::take) or [copied](Self::copy) under a key, whatever that held: RENAME, MOVE, COPY.
    /// Returns what the old value owned.
    pub fn put(&mut self, op: &mut Op<'_>, key: &Key<'_>, content: Taken) -> Garbage {
        let expiry = content.expire_ms.map_or(Expiry::None, Expiry::At);
        let mut text = Vec::new();
        self.set_as(op, key, content.value.into_new(&mut text), (expiry, content.raw)).0
    }

    #[inline]
    fn set_as(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        value: NewValue<'_>,
        (expiry, raw): (Expiry, bool),
    ) -> (Garbage, bool) {
        let db = op.db as usize;
        let now_ms = self.time(op);
        let mode = self.mode();
        let found = self.live(op, key);
        let (was, old_expire_ms, clock) = match found {
            Some(found) => {
                let data = &mut *self.data;
                let entry = data.heap.entry(db, found);
                // A counter of accesses survives the overwriting; LRU is simply now.
                let clock = mode.touched(entry.clock(), now_ms, &mut data.rng);
                (found.expires(), entry.expire_ms(), clock)
            }
            None => (false, u64::MAX, mode.fresh(now_ms)),
        };
        let expire_ms = match expiry {
            Expiry::None => u64::MAX,
            Expiry::Keep => old_expire_ms,
            Expiry::At(at) => at.min(u64::MAX - 1),
        };
        if op.sink.wants() {
            let (value, expire_ms) = (value.as_ref(), (expire_ms != u64::MAX).then_some(expire_ms));
            emit(self.keyspace, op, &Effect::Set { key: key.bytes, value, expire_ms });
        }
        let due = if let NewValue::Object(object) = &value { object.next_due_ms() } else { u64::MAX };
        let (object, packed);
        let value = match value {
            NewValue::Object(whole) if whole.packed().is_some() => {
                object = whole;
                let (kind, bytes) = object.packed().unwrap_or((PackedKind::Set, &[]));
                packed = Some(kind);
                NewValue::Bytes(bytes)
            }
            value => {
                packed = None;
                value
            }
        };
        if let (Some(found), NewValue::Bytes(text), None) = (found, &value, packed)
            && old_expire_ms == expire_ms
            && !raw
            && self.heap_mut().rewrite_text(found, text, clock)
        {
            self.wrote(op, key);
            return (Garbage::Nothing, false);
        }
        let draft = Draft { key: key.bytes, value, expire_ms, clock, raw, packed };
        let env = self.env();
        let garbage = match found {
            Some(found) => self.heap_mut().overwrite(env, db, found, draft).1,
            None => {
                op.sink.created(op.db, key.bytes);
                self.heap_mut().insert(env, db, key.hash, draft);
                self.counters.add_keys(db, 1);
                Garbage::Nothing
            }
        };
        self.note_fields(op.db, key.hash, garbage.next_due_ms(), due);
        self.expiry_changed(op.db, was, expire_ms);
        self.wrote(op, key);
        (garbage, found.is_none())
    }

    /// DEL and UNLINK: what the value owned, to be dropped after the lock. `None` when there is no such key.
    pub fn remove(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Garbage> {
        let found = self.live(op, key)?;
        Some(self.remove_found(op, key, found, Cause::Deleted))
    }

    /// The same for a key that was given an expiry which has come: it counts and is emitted as expired.
    pub fn expire(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Garbage> {
        let found = self.live(op, key)?;
        Some(self.remove_found(op, key, found, Cause::Expired))
    }

    pub(crate) fn remove_found(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        found: Found,
        cause: Cause,
    ) -> Garbage {
        let env = self.env();
        let garbage = self.heap_mut().remove(env, op.db as usize, found, key.hash);
        self.note_fields(op.db, key.hash, garbage.next_due_ms(), u64::MAX);
        self.counters.add_keys(op.db as usize, -1);
        self.expiry_changed(op.db, found.expires(), u64::MAX);
        match cause {
            Cause::Deleted => {}
            Cause::Expired => self.counters.add(Counter::Expired, 1),
            Cause::Evicted => self.counters.add(Counter::Evicted, 1),
        }
        self.wrote(op, key);
        emit(self.keyspace, op, &Effect::Delete { key: key.bytes, cause });
        garbage
    }

    /// Takes a key out with its value: for RENAME, MOVE and GETDEL, emitted as a deletion. A string inside its entry is
    /// copied, everything else moves.
    pub fn take(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Taken> {
        let found = self.live(op, key)?;
        let entry = self.heap().entry(op.db as usize, found);
        let expire_ms = found.expires().then(|| entry.expire_ms());
        let raw = entry.raw() && entry.packed().is_none();
        let inside = match entry.value() {
            ValueRef::Bytes(bytes) => Some(TakenValue::Text(bytes.to_vec())),
            ValueRef::Int(number) => Some(TakenValue::Other(NewValue::Int(number))),
            ValueRef::Object(object) if entry.packed().is_some() => {
                Some(TakenValue::Other(NewValue::Object(object.duplicate())))
            }
            ValueRef::Shared(_) | ValueRef::Object(_) => None,
        };
        let garbage = self.remove_found(op, key, found, Cause::Deleted);
        let value = match inside {
            Some(value) => value,
            None => TakenValue::Other(garbage.into_value().expect("the value was out of line")),
        };
        Some(Taken { value, expire_ms, raw })
    }

    /// A key's content for COPY: shared bytes are shared, everything else is copied. No hit, no miss, no access.
    pub fn copy(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Taken> {
        let value = match self.peek(op, key)? {
            ValueRef::Bytes(bytes) => TakenValue::Text(bytes.to_vec()),
            ValueRef::Int(number) => TakenValue::Other(NewValue::Int(number)),
            ValueRef::Shared(bytes) => TakenValue::Other(NewValue::Shared(bytes.clone())),
            ValueRef::Object(object) => TakenValue::Other(NewValue::Object(object.duplicate())),
        };
        let found = self.live(op, key)?;
        let entry = self.heap().entry(op.db as usize, found);
        Some(Taken {
            value,
            expire_ms: found.expires().then(|| entry.expire_ms()),
            raw: entry.raw() && entry.packed().is_none(),
        })
    }

    /// EXPIREAT and PERSIST: sets the absolute expiry or removes it. A time that has come removes the key. Says whether
    /// the key exists.
    pub fn set_expire_ms(&mut self, op: &mut Op<'_>, key: &Key<'_>, expire_ms: Option<u64>) -> bool {
        let Some(found) = self.live(op, key) else { return false };
        if expire_ms.is_some_and(|at| at <= self.data.now_ms.max(op.now_ms)) {
            let garbage = self.remove_found(op, key, found, Cause::Deleted);
            self.keyspace.discard(garbage);
            return true;
        }
        let raw = expire_ms.map_or(u64::MAX, |at| at.min(u64::MAX - 1));
        let env = self.env();
        self.heap_mut().set_expiry(env, op.db as usize, found, raw);
        self.expiry_changed(op.db, found.expires(), raw);
        self.wrote(op, key);
        emit(self.keyspace, op, &Effect::Expire { key: key.bytes, expire_ms });
        true
    }

    /// Sets how long ago the key was used (RESTORE IDLETIME) or how often (FREQ), whichever the mode keeps.
    pub fn set_access(&mut self, op: &mut Op<'_>, key: &Key<'_>, idle_s: u32, frequency: u8) {
        let Some(found) = self.live(op, key) else { return };
        let clock = match self.mode() {
            AccessMode::Lru => AccessMode::Lru.fresh(op.now_ms.saturating_sub(u64::from(idle_s) * 1000)),
            mode @ AccessMode::Lfu { .. } => mode.fresh(op.now_ms) & !0xff | u32::from(frequency),
        };
        self.heap().entry(op.db as usize, found).set_clock(clock);
    }
}
