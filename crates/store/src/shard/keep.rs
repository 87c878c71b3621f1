//! Owns: keeping what a key holds before it is changed by an operation that may be taken back. Does not own: the
//! journal, taking back (`crate::undo`).

use super::{Op, ShardGuard};
use crate::effect::wants;
use crate::entry::heap::{Found, Key};
use crate::entry::{Garbage, ValueMut};
use crate::undo::{Before, IMAGE_BYTES_MAX, Inverse, Undo, ValueBefore};
use crate::value::{NewValue, Object, ValueRef};

/// What stands inside an entry; what it owns out of line is still to come.
pub(crate) struct Image {
    value: Option<ValueBefore>,
    expire_ms: u64,
    clock: u32,
    raw: bool,
    spare: bool,
}

impl Image {
    /// With what the entry owned, if it owned anything.
    pub(crate) fn with(self, garbage: Garbage) -> Before {
        let owned = match garbage {
            Garbage::Nothing => None,
            Garbage::Shared(bytes) => Some(ValueBefore::Shared(bytes)),
            Garbage::Object(object) => Some(ValueBefore::Object(object)),
        };
        let value = self.value.or(owned).unwrap_or(ValueBefore::Int(0));
        let Self { expire_ms, clock, raw, spare, .. } = self;
        Before { value, expire_ms, clock, raw, spare }
    }
}

/// A key that is about to be replaced or removed, and is to be kept as a whole.
pub(crate) struct Keeping(Option<Image>);

impl Keeping {
    /// It was, and owned this.
    #[cold]
    pub(crate) fn end(self, op: &mut Op<'_>, key: &Key<'_>, garbage: Garbage) -> Garbage {
        if let Some(journal) = &mut op.recorder.journal {
            journal.keep(op.db, key, self.0.map(|image| image.with(garbage)));
        }
        Garbage::Nothing
    }
}

impl ShardGuard<'_> {
    /// What stands inside an entry, copied.
    pub(crate) fn inline_image(&self, db: u8, found: Found) -> Image {
        let entry = self.heap().entry(db as usize, found);
        let value = match (entry.packed(), entry.value()) {
            (Some((kind, bytes)), _) => Some(ValueBefore::Packed(kind, bytes.into())),
            (None, ValueRef::Bytes(bytes)) => Some(ValueBefore::Text(bytes.into())),
            (None, ValueRef::Int(value)) => Some(ValueBefore::Int(value)),
            (None, ValueRef::Shared(_) | ValueRef::Object(_)) => None,
        };
        let raw = entry.raw() && entry.packed().is_none();
        let (expire_ms, clock, spare) = (entry.expire_ms(), entry.clock(), entry.spare());
        Image { value, expire_ms, clock, raw, spare }
    }
    /// All that a key holds, copied; shared bytes are shared.
    pub(crate) fn image(&self, db: u8, found: Found) -> Before {
        let garbage = match self.heap().entry(db as usize, found).value() {
            ValueRef::Shared(bytes) => Garbage::Shared(bytes.clone()),
            ValueRef::Object(object) => Garbage::Object(object.duplicate()),
            ValueRef::Bytes(_) | ValueRef::Int(_) => Garbage::Nothing,
        };
        self.inline_image(db, found).with(garbage)
    }

    /// Before a key is replaced, made or removed.
    pub(crate) fn keep_whole(
        &self,
        op: &Op<'_>,
        key: &Key<'_>,
        found: Option<Found>,
        wanted: u32,
    ) -> Option<Keeping> {
        if wanted & wants::UNDO == 0 || self.is_kept(op, key) {
            return None;
        }
        Some(Keeping(found.map(|found| self.inline_image(op.db, found))))
    }
    fn is_kept(&self, op: &Op<'_>, key: &Key<'_>) -> bool {
        op.recorder.journal.as_ref().is_none_or(|journal| journal.keeps(op.db, key))
    }
    fn push(op: &mut Op<'_>, inverse: Inverse) {
        if let Some(journal) = &mut op.recorder.journal {
            journal.push(inverse);
        }
    }
    fn keep(op: &mut Op<'_>, key: &Key<'_>, before: Before) {
        if let Some(journal) = &mut op.recorder.journal {
            journal.keep(op.db, key, Some(before));
        }
    }

    /// Before a string is changed that is in its entry. An object is of the wrong type, and stays what it is.
    #[cold]
    pub(super) fn keep_image(&self, op: &mut Op<'_>, key: &Key<'_>, found: Found) {
        if self.heap().entry(op.db as usize, found).value().is_string() && !self.is_kept(op, key) {
            Self::keep(op, key, self.image(op.db, found));
        }
    }
    /// Before `len` bytes are written into a string at `offset`.
    #[cold]
    pub(super) fn keep_text(
        &self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        found: Found,
        (offset, len): (usize, usize),
    ) {
        let ValueRef::Shared(text) = self.heap().entry(op.db as usize, found).value() else {
            return self.keep_image(op, key, found);
        };
        if !self.is_kept(op, key) {
            let text = text.as_slice();
            let from = offset.min(text.len());
            let bytes = text[from..(offset + len).clamp(from, text.len())].into();
            let undo = Undo::Text { offset: from, bytes, len: text.len() };
            Self::push(op, Inverse::Member { db: op.db, key: key.bytes.into(), undo });
        }
    }
    /// Before a key gets another expiry.
    #[cold]
    pub(super) fn keep_expiry(&self, op: &mut Op<'_>, key: &Key<'_>, found: Found) {
        if !self.is_kept(op, key) {
            let entry = self.heap().entry(op.db as usize, found);
            let (expire_ms, spare) = (entry.expire_ms(), entry.spare());
            Self::push(op, Inverse::Expire { db: op.db, key: key.bytes.into(), expire_ms, spare });
        }
    }

    /// Before an object is changed: what is wanted of the operation, and what of its primitives. Small and compact ones
    /// are kept as a whole, and their primitives need no inverses.
    #[inline]
    pub(super) fn before_change(&mut self, op: &mut Op<'_>, key: &Key<'_>, found: Found) -> (u32, u32) {
        let wanted = self.wanted(op, key);
        if wanted == 0 { (0, 0) } else { (wanted, self.before_wanted_change(op, key, found, wanted)) }
    }
    #[cold]
    fn before_wanted_change(&mut self, op: &mut Op<'_>, key: &Key<'_>, found: Found, wanted: u32) -> u32 {
        self.enter_group(op, wanted);
        let inside = wanted & !wants::UNDO;
        if wanted & wants::UNDO == 0 || self.is_kept(op, key) {
            return inside;
        }
        let image = self.inline_image(op.db, found);
        let ValueMut::Object(object) = self.data.heap.value_mut(op.db as usize, found) else {
            // A string is of the wrong type, and stays what it is.
            if matches!(image.value, Some(ValueBefore::Packed(..))) {
                Self::keep(op, key, image.with(Garbage::Nothing));
            }
            return inside;
        };
        let before = object.memory_bytes();
        if before > IMAGE_BYTES_MAX && !object.is_compact() {
            return wanted;
        }
        // The copy goes on, so that what comes back is what was there, to the byte that it takes.
        let copy = *object.view().duplicate();
        let was = Box::new(std::mem::replace(object, copy));
        let after = object.memory_bytes();
        self.data.heap.grow_owned(before, after);
        Self::keep(op, key, image.with(Garbage::Object(was)));
        inside
    }
}

impl ValueBefore {
    /// As a value to put under a key; `text` keeps the bytes of a short string.
    pub(crate) fn into_new(self, text: &mut Box<[u8]>) -> NewValue<'_> {
        match self {
            Self::Text(bytes) => {
                *text = bytes;
                NewValue::Bytes(text)
            }
            Self::Packed(kind, bytes) => {
                NewValue::Object(Box::new(Object::from_packed(kind, bytes.into_vec())))
            }
            Self::Int(value) => NewValue::Int(value),
            Self::Shared(bytes) => NewValue::Shared(bytes),
            Self::Object(object) => NewValue::Object(object),
        }
    }
}
