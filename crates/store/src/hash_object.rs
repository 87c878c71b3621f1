//! Owns: the hash type: fields with values, some of which may expire. Does not own: keys, numbers (HINCRBY reads, adds
//! and sets).
//!
//! Compact (`listpack`) while it is small: fields and values in turn in one buffer. Then a table (`hashtable`). A
//! field's expiry makes it a table at once, as in Valkey. It never goes back.
//!
//! Few fields with long values, a record of a session or of a user, stay in one buffer all the same: a table of ten
//! would cost half as much again as they take, and each of them a place of its own in memory. The buffer is then marked
//! as *wide*, and the hash says that it is a `hashtable`, as Valkey's would be.
//!
//! [`Hash`] is the value itself, [`HashRef`] reads it and [`HashMut`] changes it. Both come from the shard
//! ([`crate::ShardGuard::get_hash`], [`crate::ShardGuard::change_hash`]), which first removes some hundreds of fields
//! whose time has come; those left are invisible in both.
//!
//! | command | calls |
//! |---|---|
//! | HGET, HEXISTS, HSTRLEN, HLEN | [`HashRef::get`], [`HashRef::len`] |
//! | HMGET | [`HashRef::get_each`] |
//! | HGETALL, HKEYS, HVALS | [`HashRef::iter`] |
//! | HRANDFIELD | [`HashRef::random_each`] (negative count), [`HashRef::random_distinct`] |
//! | HSCAN | [`HashRef::scan`] |
//! | HSET, HMSET, HSETNX, HSETEX | [`HashMut::set`], [`HashMut::set_with`]; [`HashMut::announce`] before many |
//! | HINCRBY, HINCRBYFLOAT | [`HashRef::get`], then [`HashMut::set_with`] and [`FieldExpiry::Keep`] |
//! | HDEL, HGETDEL | [`HashMut::remove`] |
//! | HEXPIRE…, HPERSIST, HGETEX | [`HashMut::set_expire_ms`] |
//! | HTTL, HEXPIRETIME … | [`HashRef::expire_ms`] |
//! | RESTORE, loading | [`HashMut::new`] with [`crate::Keyspace::backing`] |

mod change;

use crate::ahead::Ahead;
use crate::choice::{Selection, better_walk, index_below, roll_distinct};
use crate::clock::Rng;
use crate::dict::{Dict, NEVER, Record};
use crate::packed::{Packed, PackedRef};
use crate::prefetch;
use crate::reaper::Backing;
pub use change::HashMut;

/// Bytes of a wide hash: those behind a field that changes its length are moved.
const WIDE_BYTES_MAX: usize = 2048;
/// Fields of a wide hash: one is looked for among all.
const WIDE_FIELDS_MAX: usize = 32;
/// Expired fields that a random choice may meet before it takes the first live one.
const ROLLS_MAX: usize = 64;

/// When a hash stops being a `listpack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashLimits {
    /// `hash-max-listpack-entries`.
    pub entries_max: usize,
    /// `hash-max-listpack-value`: bytes of a field or a value.
    pub value_bytes_max: usize,
}

impl Default for HashLimits {
    fn default() -> Self {
        Self { entries_max: 512, value_bytes_max: 64 }
    }
}

/// What setting a field does to its expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldExpiry {
    /// The field has none afterwards: HSET.
    None,
    /// KEEPTTL, HINCRBY.
    Keep,
    /// Absolute, in milliseconds. The caller removes the field instead of setting a time that has come.
    At(u64),
}

/// A hash.
#[derive(Debug, Default)]
pub struct Hash(pub(crate) Repr);

#[derive(Debug)]
pub(crate) enum Repr {
    Packed(Packed),
    Table(Box<Dict>),
}

impl Default for Repr {
    fn default() -> Self {
        Self::Packed(Packed::default())
    }
}

impl Hash {
    /// Asks for what the next look-ups in a large one will touch.
    #[inline]
    pub(crate) fn look_ahead(&self, ahead: Ahead) {
        if let Repr::Table(dict) = &self.0 {
            dict.look_ahead(ahead);
        }
    }
    /// To read it, with every field visible: [`HashRef::at`] hides those whose time has come.
    #[must_use]
    pub fn view(&self) -> HashRef<'_> {
        let view = match &self.0 {
            Repr::Packed(packed) => View::Packed(packed.as_ref()),
            Repr::Table(dict) => View::Table(dict),
        };
        HashRef { view, now_ms: 0 }
    }
    pub(crate) const fn is_compact(&self) -> bool {
        matches!(self.0, Repr::Packed(_))
    }
    /// Memory beyond the struct itself. Constant time.
    #[inline]
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Repr::Packed(packed) => packed.capacity(),
            Repr::Table(dict) => size_of::<Dict>() + dict.memory_bytes(),
        }
    }
    pub(crate) const fn from_packed(bytes: Vec<u8>) -> Self {
        Self(Repr::Packed(Packed::from_bytes(bytes)))
    }
    pub(crate) fn packed(&self) -> Option<&[u8]> {
        if let Repr::Packed(packed) = &self.0 { Some(packed.bytes()) } else { None }
    }
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        if let Repr::Packed(packed) = self.0 { packed.into_bytes() } else { Vec::new() }
    }
    /// Gives memory back where more than half of a buffer is not used. Whoever changes one in a buffer that is used
    /// again does not want it.
    pub(crate) fn give_back(&mut self) {
        if let Repr::Packed(packed) = &mut self.0 {
            packed.give_back();
        }
    }
    /// Gives back what a buffer has allocated and does not use.
    pub(crate) fn fit(&mut self) {
        if let Repr::Packed(packed) = &mut self.0 {
            packed.fit();
        }
    }
    /// Asks for what it leads to.
    pub(crate) fn prefetch(&self) {
        match &self.0 {
            Repr::Packed(packed) => prefetch::line(packed.bytes().as_ptr()),
            Repr::Table(dict) => prefetch::value(&**dict),
        }
    }
    pub(crate) fn free_step(&mut self, chunks: usize) -> bool {
        match &mut self.0 {
            Repr::Packed(_) => true,
            Repr::Table(dict) => dict.free_step(chunks),
        }
    }
    /// The earliest expiry of a field or something earlier; `u64::MAX` without any.
    pub(crate) fn next_due_ms(&self) -> u64 {
        match &self.0 {
            Repr::Table(dict) if dict.expiring() > 0 => dict.next_due_ms(),
            Repr::Packed(_) | Repr::Table(_) => NEVER,
        }
    }
    /// Removes fields whose time has come, about `max` at most, showing each.
    pub(crate) fn expire_due(
        &mut self,
        now_ms: u64,
        max: usize,
        backing: Backing<'_>,
        gone: impl FnMut(Record<'_>),
    ) -> usize {
        match &mut self.0 {
            Repr::Packed(_) => 0,
            Repr::Table(dict) => {
                let removed = dict.expire_due(now_ms, max, backing, gone);
                dict.tidy();
                removed
            }
        }
    }
}

/// A hash, to be read. What it lends lives as long as the hash is not changed.
#[derive(Clone, Copy, Debug)]
pub struct HashRef<'a> {
    view: View<'a>,
    now_ms: u64,
}

#[derive(Clone, Copy, Debug)]
enum View<'a> {
    Packed(PackedRef<'a>),
    Table(&'a Dict),
}

impl<'a> HashRef<'a> {
    /// The same at a time: fields that expire then or before are hidden.
    #[must_use]
    pub const fn at(self, now_ms: u64) -> Self {
        Self { view: self.view, now_ms }
    }
    fn is_live(self, record: &Record<'_>) -> bool {
        record.expire_ms > self.now_ms
    }
    fn record(self, dict: &'a Dict, field: &[u8]) -> Option<Record<'a>> {
        dict.get(field).filter(|record| self.is_live(record))
    }
    pub(crate) fn packed(bytes: &'a [u8]) -> Self {
        Self { view: View::Packed(PackedRef::from(bytes)), now_ms: 0 }
    }
    /// A copy, for COPY: memory is copied as it stands, 10 ms for each million fields.
    #[must_use]
    pub fn duplicate(self) -> Hash {
        Hash(match self.view {
            View::Packed(packed) => Repr::Packed(Packed::from_bytes(packed.bytes().to_vec())),
            View::Table(dict) => Repr::Table(Box::new(dict.duplicate())),
        })
    }
    /// Fields. O(1) unless so many have come of age that the shard has not removed all: then a walk.
    #[must_use]
    pub fn len(self) -> usize {
        match self.view {
            View::Packed(packed) => packed.count() / 2,
            View::Table(dict) if self.now_ms < dict.next_due_ms() => dict.len(),
            View::Table(_) => self.fields().count(),
        }
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// `listpack` or `hashtable`.
    #[must_use]
    pub fn encoding(self) -> &'static str {
        match self.view {
            View::Packed(packed) if !packed.is_marked() => "listpack",
            View::Packed(_) | View::Table(_) => "hashtable",
        }
    }
    /// The value of a field.
    #[must_use]
    pub fn get(self, field: &[u8]) -> Option<&'a [u8]> {
        match self.view {
            View::Packed(packed) => {
                let (_, value) = packed.element(packed.find(field, 2)?)?;
                packed.element(value).map(|(value, _)| value)
            }
            View::Table(dict) => self.record(dict, field).map(|record| record.value),
        }
    }
    /// Shows the value of each of some fields. Of a compact hash each is looked for behind the one before first, since
    /// clients ask for them in the order in which they set them.
    pub fn get_each<'f>(
        self,
        fields: impl Iterator<Item = &'f [u8]>,
        mut visit: impl FnMut(Option<&'a [u8]>),
    ) {
        let View::Packed(packed) = self.view else { return fields.for_each(|field| visit(self.get(field))) };
        let mut near = packed.first();
        for field in fields {
            let found = packed.find_near(field, 2, near).and_then(|at| packed.element(packed.element(at)?.1));
            near = found.map_or(near, |(_, next)| next);
            visit(found.map(|(value, _)| value));
        }
    }
    /// Whether the field is there.
    #[must_use]
    pub fn contains(self, field: &[u8]) -> bool {
        match self.view {
            View::Packed(packed) => packed.find(field, 2).is_some(),
            View::Table(dict) => self.record(dict, field).is_some(),
        }
    }
    /// The absolute expiry of a field: `None` without the field, `Some(None)` without an expiry.
    #[must_use]
    pub fn expire_ms(self, field: &[u8]) -> Option<Option<u64>> {
        match self.view {
            View::Packed(packed) => packed.find(field, 2).map(|_| None),
            View::Table(dict) => self.record(dict, field).map(expiry),
        }
    }
    /// Whether some field has an expiry.
    #[must_use]
    pub fn has_expiring(self) -> bool {
        match self.view {
            View::Packed(_) => false,
            View::Table(dict) => dict.expiring() > 0,
        }
    }
    /// Fields and values, in no particular order once it is a table.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.fields().map(|field| (field.name, field.value))
    }
    /// Shows the fields and values that [`Self::iter`] gives, for half of the time.
    #[inline]
    pub fn visit(self, mut visit: impl FnMut(&'a [u8], &'a [u8])) {
        match self.view {
            View::Packed(packed) => {
                let mut at = packed.first();
                while let Some((field, next)) = packed.element(at)
                    && let Some((value, next)) = packed.element(next)
                {
                    visit(field, value);
                    at = next;
                }
            }
            View::Table(_) => self.iter().for_each(|(field, value)| visit(field, value)),
        }
    }
    /// Fields with values and expiries: for DUMP, snapshots and DEBUG.
    pub fn fields(self) -> Fields<'a> {
        match self.view {
            View::Packed(packed) => Fields(Source::Packed(packed, packed.first())),
            View::Table(dict) if self.now_ms < dict.next_due_ms() => {
                Fields(Source::Table(Box::new(dict.iter())))
            }
            View::Table(dict) => {
                Fields(Source::Table(Box::new(dict.iter().filter(move |record| self.is_live(record)))))
            }
        }
    }
    /// Visits fields and values from a cursor on; returns the next cursor, 0 at the end. A compact hash is shown whole.
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(&'a [u8], &'a [u8])) -> u64 {
        match self.view {
            View::Packed(_) => {
                self.iter().for_each(|(field, value)| visit(field, value));
                0
            }
            View::Table(dict) => dict.scan(cursor, count, |record| {
                if self.is_live(&record) {
                    visit(record.key, record.value);
                }
            }),
        }
    }
    /// Visits `count` fields by chance, each time any of them.
    pub fn random_each(self, count: usize, rng: &mut dyn Rng, mut visit: impl FnMut(&'a [u8], &'a [u8])) {
        match self.view {
            View::Packed(_) => {
                let all: Vec<_> = self.iter().collect();
                if all.is_empty() {
                    return;
                }
                for _ in 0..count {
                    let (field, value) = all[index_below(rng, all.len())];
                    visit(field, value);
                }
            }
            View::Table(dict) => {
                for _ in 0..count {
                    let Some(record) = self.roll(dict, rng) else { return };
                    visit(record.key, record.value);
                }
            }
        }
    }
    /// Visits up to `count` different fields by chance.
    pub fn random_distinct(self, count: usize, rng: &mut dyn Rng, mut visit: impl FnMut(&'a [u8], &'a [u8])) {
        if let View::Table(dict) = self.view
            && self.now_ms < dict.next_due_ms()
            && !better_walk(dict.len(), count)
        {
            let roll = || dict.random(rng).map(|record| (record.key.as_ptr() as usize, record));
            return roll_distinct(count, roll, |record: Record<'a>| visit(record.key, record.value));
        }
        let mut selection = Selection::new(self.len(), count);
        for (field, value) in self.iter() {
            if selection.done() {
                return;
            }
            if selection.take(rng) {
                visit(field, value);
            }
        }
    }
    /// A live record by chance.
    fn roll(self, dict: &'a Dict, rng: &mut dyn Rng) -> Option<Record<'a>> {
        for _ in 0..ROLLS_MAX {
            let record = dict.random(rng)?;
            if self.is_live(&record) {
                return Some(record);
            }
        }
        dict.iter().find(|record| self.is_live(record))
    }
}

fn expiry(record: Record<'_>) -> Option<u64> {
    (record.expire_ms != NEVER).then_some(record.expire_ms)
}

/// A field with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// Absolute expiry.
    pub expire_ms: Option<u64>,
}

/// Iterator over fields, from [`HashRef::fields`].
pub struct Fields<'a>(Source<'a>);

enum Source<'a> {
    Packed(PackedRef<'a>, usize),
    Table(Box<dyn Iterator<Item = Record<'a>> + 'a>),
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;
    fn next(&mut self) -> Option<Field<'a>> {
        match &mut self.0 {
            Source::Packed(packed, at) => {
                let (name, next) = packed.element(*at)?;
                let (value, next) = packed.element(next)?;
                *at = next;
                Some(Field { name, value, expire_ms: None })
            }
            Source::Table(records) => {
                let record = records.next()?;
                Some(Field { name: record.key, value: record.value, expire_ms: expiry(record) })
            }
        }
    }
}

#[cfg(test)]
mod tests;
