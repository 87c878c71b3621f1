//! Owns: the set type. Does not own: keys, and the algebra of many sets beyond [`intersect`].
//!
//! Integers alone are sorted in one buffer (`intset`), a few members of any kind stand in one buffer (`listpack`), many
//! in a table (`hashtable`). It converts by the limits that come with each change, as Valkey does, and never back.
//!
//! [`Set`] is the value itself, [`SetRef`] reads it, [`SetMut`] changes it. A [`Member`] is bytes, or an integer of
//! which it makes the digits without allocating.
//!
//! | command | calls |
//! |---|---|
//! | SISMEMBER, SMISMEMBER, SCARD | [`SetRef::contains`], [`SetRef::len`] |
//! | SMEMBERS | [`SetRef::visit`] |
//! | SUNION, SDIFF | [`SetRef::iter`], [`SetRef::contains`] |
//! | SINTER, SINTERCARD | [`intersect`] |
//! | SRANDMEMBER | [`SetRef::random_each`] (negative count), [`SetRef::random_distinct`] |
//! | SSCAN | [`SetRef::scan`] |
//! | SADD, SMOVE, …STORE | [`SetMut::add`]; [`SetMut::announce`] before many |
//! | SREM | [`SetMut::remove`] |
//! | SPOP | [`SetMut::pop`] |
//! | …STORE, RESTORE, loading | [`SetMut::new`] with [`crate::Keyspace::backing`], then set the finished [`Set`] |

mod change;
mod ints;

use crate::ahead::Ahead;
use crate::choice::{Selection, better_walk, index_below, roll_distinct};
use crate::clock::Rng;
use crate::dict::{Dict, Record};
use crate::entry::PackedKind;
use crate::packed::{Packed, PackedRef};
use crate::prefetch;
use crate::value::{Digits, parse_int};
pub use change::SetMut;
use ints::{Ints, IntsRef};
use std::ops::{ControlFlow, Deref};

/// When a set changes its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetLimits {
    /// `set-max-intset-entries`.
    pub ints_max: usize,
    /// `set-max-listpack-entries`.
    pub entries_max: usize,
    /// `set-max-listpack-value`: bytes of a member.
    pub value_bytes_max: usize,
}

impl Default for SetLimits {
    fn default() -> Self {
        Self { ints_max: 512, entries_max: 128, value_bytes_max: 64 }
    }
}

/// A set.
#[derive(Debug, Default)]
pub struct Set(pub(crate) Repr);

#[derive(Debug)]
pub(crate) enum Repr {
    Ints(Ints),
    Packed(Packed),
    Table(Box<Dict>),
}

impl Default for Repr {
    fn default() -> Self {
        Self::Ints(Ints::default())
    }
}

/// A member of a set: bytes, which [`Deref`] gives.
#[derive(Clone, Debug)]
pub struct Member<'a>(Text<'a>);

#[derive(Clone, Debug)]
enum Text<'a> {
    Bytes(&'a [u8]),
    Digits { digits: Digits, start: u8 },
}

impl<'a> Member<'a> {
    const fn bytes(bytes: &'a [u8]) -> Self {
        Self(Text::Bytes(bytes))
    }
    fn int(value: i64) -> Self {
        let mut digits = Digits::default();
        let len = digits.write(value).len();
        Self(Text::Digits { digits, start: (Digits::BYTES_MAX - len) as u8 })
    }
}

impl Deref for Member<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Text::Bytes(bytes) => bytes,
            Text::Digits { digits, start } => digits.from(*start as usize),
        }
    }
}

impl Set {
    /// Asks for what the next look-ups in a large one will touch.
    #[inline]
    pub(crate) fn look_ahead(&self, ahead: Ahead) {
        if let Repr::Table(dict) = &self.0 {
            dict.look_ahead(ahead);
        }
    }
    /// To read it.
    #[must_use]
    pub fn view(&self) -> SetRef<'_> {
        SetRef(match &self.0 {
            Repr::Ints(ints) => View::Ints(ints.as_ref()),
            Repr::Packed(packed) => View::Packed(packed.as_ref()),
            Repr::Table(dict) => View::Table(dict),
        })
    }
    pub(crate) const fn is_compact(&self) -> bool {
        !matches!(self.0, Repr::Table(_))
    }
    /// Memory beyond the struct itself. Constant time.
    #[inline]
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Repr::Ints(ints) => ints.capacity(),
            Repr::Packed(packed) => packed.capacity(),
            Repr::Table(dict) => size_of::<Dict>() + dict.memory_bytes(),
        }
    }
    pub(crate) const fn from_packed(bytes: Vec<u8>) -> Self {
        Self(Repr::Packed(Packed::from_bytes(bytes)))
    }
    pub(crate) const fn from_ints(bytes: Vec<u8>) -> Self {
        Self(Repr::Ints(Ints::from_bytes(bytes)))
    }
    pub(crate) fn packed(&self) -> Option<(PackedKind, &[u8])> {
        match &self.0 {
            Repr::Ints(ints) => Some((PackedKind::Ints, ints.bytes())),
            Repr::Packed(packed) => Some((PackedKind::Set, packed.bytes())),
            Repr::Table(_) => None,
        }
    }
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        match self.0 {
            Repr::Ints(ints) => ints.into_bytes(),
            Repr::Packed(packed) => packed.into_bytes(),
            Repr::Table(_) => Vec::new(),
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
            Repr::Ints(ints) => prefetch::line(ints.bytes().as_ptr()),
        }
    }
    pub(crate) fn free_step(&mut self, chunks: usize) -> bool {
        match &mut self.0 {
            Repr::Ints(_) | Repr::Packed(_) => true,
            Repr::Table(dict) => dict.free_step(chunks),
        }
    }
}

/// A set, to be read. What it lends lives as long as the set is not changed.
#[derive(Clone, Copy, Debug)]
pub struct SetRef<'a>(View<'a>);

#[derive(Clone, Copy, Debug)]
enum View<'a> {
    Ints(IntsRef<'a>),
    Packed(PackedRef<'a>),
    Table(&'a Dict),
}

impl<'a> SetRef<'a> {
    pub(crate) fn packed(bytes: &'a [u8]) -> Self {
        Self(View::Packed(PackedRef::from(bytes)))
    }
    pub(crate) fn ints(bytes: &'a [u8]) -> Self {
        Self(View::Ints(IntsRef::new(bytes)))
    }
    /// A copy, for COPY: memory is copied as it stands, 10 ms for each million members.
    #[must_use]
    pub fn duplicate(self) -> Set {
        Set(match self.0 {
            View::Ints(ints) => Repr::Ints(Ints::from_bytes(ints.to_bytes())),
            View::Packed(packed) => Repr::Packed(Packed::from_bytes(packed.bytes().to_vec())),
            View::Table(dict) => Repr::Table(Box::new(dict.duplicate())),
        })
    }
    /// Members.
    #[must_use]
    pub fn len(self) -> usize {
        match self.0 {
            View::Ints(ints) => ints.len(),
            View::Packed(packed) => packed.count(),
            View::Table(dict) => dict.len(),
        }
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// `intset`, `listpack` or `hashtable`.
    #[must_use]
    pub const fn encoding(self) -> &'static str {
        match self.0 {
            View::Ints(_) => "intset",
            View::Packed(_) => "listpack",
            View::Table(_) => "hashtable",
        }
    }
    /// Whether this is a member.
    #[must_use]
    pub fn contains(self, member: &[u8]) -> bool {
        match self.0 {
            View::Ints(ints) => parse_int(member).is_some_and(|value| ints.find(value).is_ok()),
            View::Packed(packed) => packed.find(member, 1).is_some(),
            View::Table(dict) => dict.contains(member),
        }
    }
    /// The members: integers ascending, a few in the order in which they came, many in none.
    pub fn iter(self) -> Members<'a> {
        Members(match self.0 {
            View::Ints(ints) => Source::Ints(ints, 0),
            View::Packed(packed) => Source::Packed(packed, packed.first()),
            View::Table(dict) => Source::Table(Box::new(dict.iter())),
        })
    }
    /// Shows the members that [`Self::iter`] gives, for half of the time.
    #[inline]
    pub fn visit(self, mut visit: impl FnMut(&[u8])) {
        match self.0 {
            View::Packed(packed) => {
                let mut at = packed.first();
                while let Some((member, next)) = packed.element(at) {
                    visit(member);
                    at = next;
                }
            }
            _ => self.iter().for_each(|member| visit(&member)),
        }
    }
    /// Visits members from a cursor on; returns the next cursor, 0 at the end. A set that is no table is shown whole.
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(&[u8])) -> u64 {
        if let View::Table(dict) = self.0 {
            return dict.scan(cursor, count, |record| visit(record.key));
        }
        self.iter().for_each(|member| visit(&member));
        0
    }
    /// One member by chance.
    #[must_use]
    pub fn random(self, rng: &mut dyn Rng) -> Option<Member<'a>> {
        if self.is_empty() {
            return None;
        }
        match self.0 {
            View::Ints(ints) => Some(Member::int(ints.at(index_below(rng, ints.len())))),
            View::Packed(packed) => packed.iter().nth(index_below(rng, packed.count())).map(Member::bytes),
            View::Table(dict) => dict.random(rng).map(|record| Member::bytes(record.key)),
        }
    }
    /// Visits `count` members by chance, each time any of them.
    pub fn random_each(self, count: usize, rng: &mut dyn Rng, mut visit: impl FnMut(&[u8])) {
        if let View::Packed(packed) = self.0 {
            let all: Vec<_> = packed.iter().collect();
            if !all.is_empty() {
                (0..count).for_each(|_| visit(all[index_below(rng, all.len())]));
            }
            return;
        }
        for _ in 0..count {
            let Some(member) = self.random(rng) else { return };
            visit(&member);
        }
    }
    /// Visits up to `count` different members by chance.
    pub fn random_distinct(self, count: usize, rng: &mut dyn Rng, mut visit: impl FnMut(&[u8])) {
        if let View::Table(dict) = self.0
            && !better_walk(dict.len(), count)
        {
            let roll = || dict.random(rng).map(|record| (record.key.as_ptr() as usize, record));
            return roll_distinct(count, roll, |record: Record<'a>| visit(record.key));
        }
        let mut selection = Selection::new(self.len(), count);
        for member in self.iter() {
            if selection.done() {
                return;
            }
            if selection.take(rng) {
                visit(&member);
            }
        }
    }
    /// Whether all members are integers in their shortest form, known without looking.
    #[must_use]
    pub const fn is_ints(self) -> bool {
        matches!(self.0, View::Ints(_))
    }
}

/// Iterator over members, from [`SetRef::iter`].
pub struct Members<'a>(Source<'a>);

enum Source<'a> {
    Ints(IntsRef<'a>, usize),
    Packed(PackedRef<'a>, usize),
    Table(Box<dyn Iterator<Item = Record<'a>> + 'a>),
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;
    fn next(&mut self) -> Option<Member<'a>> {
        match &mut self.0 {
            Source::Ints(ints, at) => {
                let index = *at;
                *at += 1;
                (index < ints.len()).then(|| Member::int(ints.at(index)))
            }
            Source::Packed(packed, at) => {
                let (element, next) = packed.element(*at)?;
                *at = next;
                Some(Member::bytes(element))
            }
            Source::Table(records) => records.next().map(|record| Member::bytes(record.key)),
        }
    }
}

/// Visits the members that all `sets` have, until told to stop: a walk over the smallest, and a look into each of the
/// others, the smaller ones first.
pub fn intersect(sets: &[SetRef<'_>], mut visit: impl FnMut(&[u8]) -> ControlFlow<()>) {
    let mut sets: Vec<SetRef<'_>> = sets.to_vec();
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return };
    if let View::Ints(ints) = smallest.0 {
        // Integers meet integers without their digits.
        for value in ints.iter() {
            let mut member = None;
            let common = others.iter().all(|other| match other.0 {
                View::Ints(ints) => ints.find(value).is_ok(),
                _ => other.contains(member.get_or_insert_with(|| Member::int(value))),
            });
            if common && visit(&member.unwrap_or_else(|| Member::int(value))).is_break() {
                return;
            }
        }
        return;
    }
    for member in smallest.iter() {
        if others.iter().all(|other| other.contains(&member)) && visit(&member).is_break() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
