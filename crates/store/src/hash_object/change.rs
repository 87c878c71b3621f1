//! Owns: every way to change a hash. Each tells what it does and what takes it back, if anybody wants to know
//! (`crate::recorder`). Does not own: the structures.

use super::{FieldExpiry, Hash, HashLimits, HashRef, Repr, View, WIDE_BYTES_MAX, WIDE_FIELDS_MAX, expiry};
use crate::counted::HEAD_BYTES;
use crate::dict::{Dict, NEVER, Waste};
use crate::effect::Effect;
use crate::leb;
use crate::packed::{COUNT_MAX, Packed};
use crate::reaper::Backing;
use crate::recorder::Pen;
use crate::undo::Undo;

/// A field's value and expiry; nothing where it was not there.
type Before = Option<(Box<[u8]>, u64)>;

/// A hash, to be changed.
pub struct HashMut<'a> {
    hash: &'a mut Hash,
    limits: HashLimits,
    backing: Backing<'a>,
    now_ms: u64,
    pen: Option<Pen<'a>>,
    /// Compact: where the next field is looked for first, behind the one that was set last.
    near: usize,
}

impl<'a> HashMut<'a> {
    /// To change a hash that is not in a shard: when a value is built before it is set.
    pub const fn new(hash: &'a mut Hash, limits: HashLimits, backing: Backing<'a>) -> Self {
        Self { hash, limits, backing, now_ms: 0, pen: None, near: HEAD_BYTES }
    }
    pub(crate) fn with(mut self, now_ms: u64, pen: Option<Pen<'a>>) -> Self {
        (self.now_ms, self.pen) = (now_ms, pen);
        self
    }
    /// To read it.
    #[must_use]
    pub fn view(&self) -> HashRef<'_> {
        self.hash.view().at(self.now_ms)
    }
    /// Says that so many fields are about to be set: more than a compact hash may have make it a table first, as in
    /// Valkey, even if some of them are the same.
    pub fn announce(&mut self, fields: usize) {
        if fields > self.limits.entries_max {
            self.table();
        }
    }
    /// HSET: sets a field, which has no expiry afterwards. Says whether it is new.
    pub fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        self.set_with(field, value, FieldExpiry::None)
    }
    /// Sets a field and its expiry. Says whether it is new.
    pub fn set_with(&mut self, field: &[u8], value: &[u8], expiry: FieldExpiry) -> bool {
        if self.pen.is_none() {
            return self.put(field, value, expiry).0;
        }
        let before = self.keep(field);
        let (is_new, expire_ms) = self.put(field, value, expiry);
        let expire_ms = (expire_ms != NEVER).then_some(expire_ms);
        self.told(&Effect::HashSet { field, value, expire_ms }, field, before);
        is_new
    }
    /// Sets a field. Says whether it is new, and its expiry.
    #[inline]
    fn put(&mut self, field: &[u8], value: &[u8], expiry: FieldExpiry) -> (bool, u64) {
        if matches!(expiry, FieldExpiry::At(_)) {
            self.table();
        }
        if let Repr::Packed(packed) = &mut self.hash.0
            && let Some(is_new) = Self::put_packed((packed, &mut self.near), self.limits, field, value)
        {
            return (is_new, NEVER);
        }
        let (backing, now_ms) = (self.backing, self.now_ms);
        let dict = self.table();
        let found = dict.seek(field).map(|(spot, record)| (spot, record.expire_ms));
        let old_ms = found.map_or(now_ms, |(_, expire_ms)| expire_ms);
        let is_new = old_ms <= now_ms;
        let expire_ms = match expiry {
            FieldExpiry::Keep if !is_new => old_ms,
            FieldExpiry::None | FieldExpiry::Keep => NEVER,
            FieldExpiry::At(at) => at,
        };
        match found {
            Ok((spot, _)) => dict.replace_tidily(spot, value, expire_ms),
            Err(absent) => drop(dict.insert_sought(absent, (field, value, expire_ms), backing)),
        }
        (is_new, expire_ms)
    }
    /// Sets a field of a compact hash, and says whether it is new; nothing where the hash has to become a table.
    fn put_packed(
        (packed, near): (&mut Packed, &mut usize),
        limits: HashLimits,
        field: &[u8],
        value: &[u8],
    ) -> Option<bool> {
        let view = packed.as_ref();
        let was = view.find_near(field, 2, *near).and_then(|at| {
            let (_, value_at) = view.element(at)?;
            Some((value_at, view.element(value_at)?.1 - value_at))
        });
        // Those that it has count too: the limits may have been lowered since.
        let fields = view.count() / 2 + usize::from(was.is_none());
        let wide = view.is_marked() || field.len().max(value.len()) > limits.value_bytes_max;
        if wide {
            let [name, value] = [field, value].map(|text| leb::size(text.len()) + text.len());
            let bytes = packed.bytes().len().max(HEAD_BYTES) + value;
            if was.map_or(bytes + name, |(_, old)| bytes - old) > WIDE_BYTES_MAX {
                return None;
            }
        }
        let most = if wide { WIDE_FIELDS_MAX } else { COUNT_MAX / 2 };
        if fields > limits.entries_max.min(most) {
            return None;
        }
        match was {
            Some((value_at, _)) => {
                packed.replace(value_at, value);
                *near = value_at + leb::size(value.len()) + value.len();
            }
            None => {
                packed.push(field);
                packed.push(value);
            }
        }
        if wide {
            packed.mark();
        }
        Some(was.is_none())
    }
    /// Removes a field after showing its value to `taken`.
    pub fn remove<R>(&mut self, field: &[u8], taken: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if self.pen.is_none() {
            return self.take(field, taken);
        }
        let before = self.keep(field);
        let len = self.hash.view().len();
        let result = self.take(field, taken);
        // Also where its time had come, and it was as good as not there.
        if self.hash.view().len() < len {
            self.told(&Effect::HashDelete { field }, field, before);
        }
        result
    }
    #[inline]
    fn take<R>(&mut self, field: &[u8], taken: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match &mut self.hash.0 {
            Repr::Packed(packed) => {
                self.near = HEAD_BYTES;
                let at = packed.as_ref().find(field, 2)?;
                let (_, value_at) = packed.as_ref().element(at)?;
                let result = taken(packed.as_ref().element(value_at)?.0);
                packed.remove(at, 2);
                Some(result)
            }
            Repr::Table(dict) => {
                let spot = dict.find(field)?;
                let record = dict.at(spot);
                let result = (record.expire_ms > self.now_ms).then(|| taken(record.value));
                dict.remove(spot, self.backing);
                dict.tidy();
                result
            }
        }
    }
    /// Sets the absolute expiry of a field or removes it. Says whether the field is there.
    pub fn set_expire_ms(&mut self, field: &[u8], expire_ms: Option<u64>) -> bool {
        if self.pen.is_none() {
            return self.change_expiry(field, expire_ms);
        }
        let before = self.keep(field);
        let is_there = self.change_expiry(field, expire_ms);
        if is_there {
            self.told(&Effect::HashExpire { field, expire_ms }, field, before);
        }
        is_there
    }
    #[inline]
    fn change_expiry(&mut self, field: &[u8], expire_ms: Option<u64>) -> bool {
        if let Repr::Packed(packed) = &self.hash.0 {
            if packed.as_ref().find(field, 2).is_none() {
                return false;
            }
            if expire_ms.is_none() {
                return true;
            }
        }
        let now_ms = self.now_ms;
        let dict = self.table();
        let Some(spot) = dict.find(field).filter(|spot| dict.at(*spot).expire_ms > now_ms) else {
            return false;
        };
        dict.set_expire_ms(spot, expire_ms.unwrap_or(NEVER));
        dict.tidy();
        true
    }
    /// Removes fields whose time has come, about `max` at most. Returns how many.
    pub(crate) fn expire_due(&mut self, max: usize) -> usize {
        let pen = &mut self.pen;
        self.hash.expire_due(self.now_ms, max, self.backing, |record| {
            if let Some(pen) = pen {
                pen.tell(&Effect::FieldExpired { field: record.key });
                if pen.undoes() {
                    pen.undo(Undo::HashField(
                        record.key.into(),
                        Some((record.value.into(), record.expire_ms)),
                    ));
                }
            }
        })
    }

    /// What a field is before it changes, if it may have to come back.
    #[cold]
    fn keep(&self, field: &[u8]) -> Before {
        if !self.pen.as_ref().is_some_and(Pen::undoes) {
            return None;
        }
        match &self.hash.0 {
            Repr::Table(dict) => dict.get(field).map(|record| (record.value.into(), record.expire_ms)),
            // Compact ones are kept as a whole; this one was a table when the change began.
            Repr::Packed(_) => None,
        }
    }
    #[cold]
    fn told(&mut self, effect: &Effect<'_>, field: &[u8], before: Before) {
        if let Some(pen) = &mut self.pen {
            pen.tell(effect);
            if pen.undoes() {
                pen.undo(Undo::HashField(field.into(), before));
            }
        }
    }
    /// Takes a change back: a field is what it was.
    pub(crate) fn undo(&mut self, field: &[u8], before: Before) {
        match before {
            None => drop(self.take(field, |_| ())),
            Some((value, NEVER)) => drop(self.put(field, &value, FieldExpiry::None)),
            Some((value, at)) => drop(self.put(field, &value, FieldExpiry::At(at))),
        }
    }

    /// The table, made from the compact form if need be: at most `COUNT_MAX` elements, as many as the limits let in.
    fn table(&mut self) -> &mut Dict {
        if let Repr::Packed(packed) = &self.hash.0 {
            let mut dict = Dict::new(true, Waste::Little, self.backing);
            let pairs = HashRef { view: View::Packed(packed.as_ref()), now_ms: 0 };
            pairs.iter().for_each(|(field, value)| {
                dict.insert(field, value, NEVER, self.backing);
            });
            self.hash.0 = Repr::Table(Box::new(dict));
        }
        match &mut self.hash.0 {
            Repr::Table(dict) => dict,
            Repr::Packed(_) => unreachable!("made a table just now"),
        }
    }
}

impl HashRef<'_> {
    /// See [`crate::value::ObjectRef::tell_piece`]: places are those of HSCAN.
    pub(crate) fn tell_piece(self, pen: &mut Pen<'_>, from: u64, bytes_max: usize) -> Option<u64> {
        let View::Table(dict) = self.view else {
            self.iter()
                .for_each(|(field, value)| pen.tell(&Effect::HashSet { field, value, expire_ms: None }));
            return None;
        };
        let mut at = from;
        loop {
            at = dict.scan(at, 1, |record| {
                let expire_ms = expiry(record);
                pen.tell(&Effect::HashSet { field: record.key, value: record.value, expire_ms });
            });
            if at == 0 || pen.told_bytes() >= bytes_max {
                return (at != 0).then_some(at);
            }
        }
    }
}
