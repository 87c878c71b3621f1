//! Owns: writing whole keys: SET, DEL, taking a key out for RENAME and MOVE, expiry, access clocks set by RESTORE. Does
//! not own: changes inside strings (`text`) and objects (`object`).

use super::{Op, ShardGuard};
use crate::access::AccessMode;
use crate::counters::Counter;
use crate::effect::{Cause, Effect, Text, wants};
use crate::entry::heap::{Found, Key};
use crate::entry::{Draft, Garbage, PackedKind, Spare};
use crate::recorder::Pen;
use crate::undo::{Before, ValueBefore};
use crate::value::NewValue;

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

/// A key's content on its way to another key: it is open only to [`ShardGuard::put`], which tells where it went.
#[derive(Debug)]
#[must_use = "what was taken belongs under another key"]
pub struct Taken {
    value: ValueBefore,
    expire_ms: u64,
    /// Whether a short string was edited in place, which OBJECT ENCODING goes on to show.
    raw: bool,
    spare: bool,
    /// Where it comes from, if anybody wants to know.
    from: Option<(u8, Box<[u8]>)>,
    /// Whether it is there no more.
    moved: bool,
}

/// How a key is set.
pub(super) struct Setting<'a> {
    expiry: Expiry,
    raw: bool,
    spare: Spare,
    effect_by: EffectBy<'a>,
}

enum EffectBy<'a> {
    /// By the value.
    Value,
    /// By those who have filled it.
    Already,
    /// By where it comes from.
    From(&'a (u8, Box<[u8]>), bool),
}

impl Setting<'_> {
    /// A value.
    #[inline]
    const fn value(expiry: Expiry) -> Self {
        Self { expiry, raw: false, spare: Spare::Keep, effect_by: EffectBy::Value }
    }
    /// A fresh object, whose members were told as they came.
    pub(super) const fn filled() -> Self {
        Self { effect_by: EffectBy::Already, ..Self::value(Expiry::None) }
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
        self.set_as(op, key, value, Setting::value(expiry))
    }

    /// Puts what was [taken](Self::take) or [copied](Self::copy) under a key, whatever that held: RENAME, MOVE, COPY.
    /// Returns what the old value owned.
    pub fn put(&mut self, op: &mut Op<'_>, key: &Key<'_>, content: Taken) -> Garbage {
        let Taken { value, expire_ms, raw, spare, from, moved } = content;
        let expiry = if expire_ms == u64::MAX { Expiry::None } else { Expiry::At(expire_ms) };
        let effect_by = from.as_ref().map_or(EffectBy::Already, |from| EffectBy::From(from, moved));
        let mut text = Box::default();
        let setting = Setting { expiry, raw, spare: Spare::Is(spare), effect_by };
        let garbage = self.set_as(op, key, value.into_new(&mut text), setting).0;
        if let (Some(journal), Some((db, from)), true) = (&mut op.recorder.journal, &from, moved) {
            journal.moved((*db, from), (op.db, key));
        }
        garbage
    }

    #[inline]
    pub(super) fn set_as(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        value: NewValue<'_>,
        setting: Setting<'_>,
    ) -> (Garbage, bool) {
        let Setting { expiry, raw, spare, effect_by } = setting;
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
        let wanted = self.wanted(op, key);
        let kept = if wanted != 0 {
            if wanted & !wants::UNDO != 0 {
                self.tell_set(op, (wanted, key), (&value, expire_ms), effect_by);
            }
            self.keep_whole(op, key, found, wanted)
        } else {
            None
        };
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
            && was == (expire_ms != u64::MAX)
            && !raw
            && spare == Spare::Keep
            && self.heap_mut().rewrite_text(found, text, clock)
        {
            if expire_ms != old_expire_ms {
                self.set_expiry_raw(op.db, found, expire_ms);
            }
            self.wrote(op, key, wanted);
            return (kept.map_or(Garbage::Nothing, |kept| kept.end(op, key, Garbage::Nothing)), false);
        }
        let draft = Draft { key: key.bytes, value, expire_ms, clock, raw, spare, packed };
        let env = self.env();
        let garbage = match found {
            Some(found) => self.heap_mut().overwrite(env, db, found, draft).1,
            None => {
                if wanted & wants::EVENTS != 0 {
                    self.tell(op, wanted, key.bytes, &Effect::Created);
                }
                self.heap_mut().insert(env, db, key.hash, draft);
                self.counters.add_keys(db, 1);
                Garbage::Nothing
            }
        };
        self.note_fields(op.db, key.hash, garbage.next_due_ms(), due);
        self.expiry_changed(op.db, was, expire_ms);
        self.wrote(op, key, wanted);
        let garbage = match kept {
            Some(kept) => kept.end(op, key, garbage),
            None => garbage,
        };
        (garbage, found.is_none())
    }

    /// Tells that a key holds a value now: a string as it is, a collection as an empty one and its members.
    #[cold]
    fn tell_set(
        &mut self,
        op: &mut Op<'_>,
        (wanted, key): (u32, &Key<'_>),
        (value, expire_ms): (&NewValue<'_>, u64),
        effect_by: EffectBy<'_>,
    ) {
        let expire_ms = (expire_ms != u64::MAX).then_some(expire_ms);
        let value = match (effect_by, value) {
            (EffectBy::Already, _) => return self.enter_group(op, wanted),
            (EffectBy::From((from_db, from), moved), _) => {
                let (to_db, to) = (op.db, key.bytes);
                let effect = if moved { Effect::Move { to_db, to } } else { Effect::Copy { to_db, to } };
                self.enter_group(op, wanted);
                return op.recorder.tell(wanted, *from_db, from, &effect);
            }
            (EffectBy::Value, NewValue::Bytes(bytes)) => Text::Bytes(bytes),
            (EffectBy::Value, NewValue::Int(value)) => Text::Int(*value),
            (EffectBy::Value, NewValue::Shared(bytes)) => Text::Bytes(bytes.as_slice()),
            (EffectBy::Value, NewValue::Object(object)) => {
                self.tell(op, wanted, key.bytes, &Effect::New { kind: object.kind(), expire_ms });
                // The journal keeps what was there before, not what comes.
                let pen = Pen::new(op.recorder, wanted & !wants::UNDO, op.db, key.bytes);
                return pen.into_iter().for_each(|mut pen| object.view().tell(&mut pen));
            }
        };
        self.tell(op, wanted, key.bytes, &Effect::Set { value, expire_ms });
    }

    /// DEL and UNLINK: what the value owned, to be dropped after the lock. `None` when there is no such key.
    pub fn remove(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Garbage> {
        let found = self.live(op, key)?;
        Some(self.remove_found(op, key, found, Cause::Deleted))
    }

    /// The same for a key that was given an expiry which has come: it counts and is told as expired.
    pub fn expire(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Garbage> {
        let found = self.live(op, key)?;
        Some(self.remove_found(op, key, found, Cause::Overdue))
    }

    pub(crate) fn remove_found(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        found: Found,
        cause: Cause,
    ) -> Garbage {
        let wanted = self.wanted(op, key);
        let kept = if wanted != 0 { self.keep_whole(op, key, Some(found), wanted) } else { None };
        let garbage = self.remove_raw(op.db, key, found);
        match cause {
            Cause::Deleted => {}
            Cause::Expired | Cause::Overdue => self.count(op, Counter::Expired, 1),
            Cause::Evicted => self.count(op, Counter::Evicted, 1),
        }
        if wanted & wants::EVENTS != 0 && matches!(cause, Cause::Expired | Cause::Evicted) {
            op.recorder.number_next(self.keyspace.catalogue().next_number());
        }
        if wanted != 0 {
            self.tell(op, wanted, key.bytes, &Effect::Delete { cause });
        }
        self.wrote_by(op, key, wanted, cause);
        match kept {
            Some(kept) => kept.end(op, key, garbage),
            None => garbage,
        }
    }

    /// Takes an entry out, and what is counted with it.
    pub(crate) fn remove_raw(&mut self, db: u8, key: &Key<'_>, found: Found) -> Garbage {
        let env = self.env();
        let garbage = self.heap_mut().remove(env, db as usize, found, key.hash);
        self.note_fields(db, key.hash, garbage.next_due_ms(), u64::MAX);
        self.counters.add_keys(db as usize, -1);
        self.expiry_changed(db, found.expires(), u64::MAX);
        garbage
    }

    /// Takes a key out with its value: for RENAME and MOVE. A string inside its entry is copied, everything else moves.
    pub fn take(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Taken> {
        let found = self.live(op, key)?;
        let wanted = self.wanted(op, key);
        let Before { value, expire_ms, raw, spare, .. } = {
            let image = self.inline_image(op.db, found);
            let garbage = self.remove_raw(op.db, key, found);
            image.with(garbage)
        };
        if wanted != 0 {
            self.enter_group(op, wanted);
        }
        self.wrote(op, key, wanted);
        let from = (wanted != 0).then(|| (op.db, Box::from(key.bytes)));
        Some(Taken { value, expire_ms, raw, spare, from, moved: true })
    }

    /// A key's content for COPY: shared bytes are shared, everything else is copied. No hit, no miss, no access. What
    /// is told names the key: its place is among the writes of this shard too.
    pub fn copy(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Taken> {
        let found = self.live(op, key)?;
        let Before { value, expire_ms, raw, spare, .. } = self.image(op.db, found);
        let wanted = self.wanted(op, key);
        self.enter_group(op, wanted);
        let from = (wanted != 0).then(|| (op.db, Box::from(key.bytes)));
        Some(Taken { value, expire_ms, raw, spare, from, moved: false })
    }

    /// EXPIREAT and PERSIST: sets the absolute expiry or removes it. A time that has come removes the key, unless keys
    /// are brought in. Says whether the key exists.
    pub fn set_expire_ms(&mut self, op: &mut Op<'_>, key: &Key<'_>, expire_ms: Option<u64>) -> bool {
        let Some(found) = self.live(op, key) else { return false };
        let has_come = expire_ms.is_some_and(|at| at <= self.data.now_ms.max(op.now_ms));
        if has_come && !self.keyspace.is_importing() {
            let garbage = self.remove_found(op, key, found, Cause::Deleted);
            self.keyspace.discard(garbage);
            return true;
        }
        let wanted = self.wanted(op, key);
        if wanted & wants::UNDO != 0 {
            self.keep_expiry(op, key, found);
        }
        self.set_expiry_raw(op.db, found, expire_ms.map_or(u64::MAX, |at| at.min(u64::MAX - 1)));
        if wanted != 0 {
            self.tell(op, wanted, key.bytes, &Effect::Expire { expire_ms });
        }
        self.wrote(op, key, wanted);
        true
    }
    pub(crate) fn set_expiry_raw(&mut self, db: u8, found: Found, expire_ms: u64) {
        let env = self.env();
        self.heap_mut().set_expiry(env, db as usize, found, expire_ms);
        self.expiry_changed(db, found.expires(), expire_ms);
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
