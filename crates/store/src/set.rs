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

mod ints;

use crate::ahead::Ahead;
use crate::choice::{Selection, better_walk, index_below, roll_distinct};
use crate::clock::Rng;
use crate::dict::{Dict, NEVER, Record, Waste};
use crate::entry::PackedKind;
use crate::packed::{COUNT_MAX, Packed, PackedRef};
use crate::reaper::Backing;
use crate::value::{Digits, parse_int};
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
    /// Memory beyond the struct itself. Constant time.
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

/// A set, to be changed.
pub struct SetMut<'a> {
    set: &'a mut Set,
    limits: SetLimits,
    backing: Backing<'a>,
}

impl<'a> SetMut<'a> {
    /// To change a set that is not in a shard: when a value is built before it is set.
    pub const fn new(set: &'a mut Set, limits: SetLimits, backing: Backing<'a>) -> Self {
        Self { set, limits, backing }
    }
    /// To read it.
    #[must_use]
    pub fn view(&self) -> SetRef<'_> {
        self.set.view()
    }
    /// Says that so many members are about to be added, `first` before the others: an empty set takes the form that
    /// fits them, another becomes a table if its form cannot have so many, as in Valkey.
    pub fn announce(&mut self, first: &[u8], members: usize) {
        let SetLimits { ints_max, entries_max, .. } = self.limits;
        if self.set.view().is_empty() {
            self.set.0 = if parse_int(first).is_some() && members <= ints_max {
                Repr::Ints(Ints::default())
            } else if members <= entries_max {
                Repr::Packed(Packed::default())
            } else {
                Repr::Table(Box::new(Dict::new(false, Waste::Little, self.backing)))
            };
            return;
        }
        match self.set.0 {
            Repr::Ints(_) if members > ints_max => drop(self.table()),
            Repr::Packed(_) if members > entries_max => drop(self.table()),
            _ => {}
        }
    }
    /// Adds a member. Says whether it is new.
    pub fn add(&mut self, member: &[u8]) -> bool {
        let SetLimits { ints_max, entries_max, value_bytes_max } = self.limits;
        let short = member.len() <= value_bytes_max;
        if let Repr::Ints(ints) = &mut self.set.0 {
            if let Some(value) = parse_int(member) {
                let added = ints.add(value);
                if added && ints.as_ref().len() > ints_max.min(COUNT_MAX) {
                    self.table();
                }
                return added;
            }
            let widest = ints.as_ref().len().checked_sub(1).map_or(0, |last| {
                Member::int(ints.as_ref().at(0)).len().max(Member::int(ints.as_ref().at(last)).len())
            });
            if ints.as_ref().len() < entries_max.min(COUNT_MAX) && short && widest <= value_bytes_max {
                let mut packed = Packed::default();
                ints.as_ref().iter().for_each(|value| packed.push(&Member::int(value)));
                self.set.0 = Repr::Packed(packed);
            }
        }
        if let Repr::Packed(packed) = &mut self.set.0 {
            if packed.as_ref().find(member, 1).is_some() {
                return false;
            }
            if packed.as_ref().count() < entries_max.min(COUNT_MAX) && short {
                packed.push(member);
                return true;
            }
        }
        let backing = self.backing;
        let dict = self.table();
        if dict.contains(member) {
            return false;
        }
        dict.insert(member, b"", NEVER, backing);
        true
    }
    /// Removes a member. Says whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.set.0 {
            Repr::Ints(ints) => parse_int(member).is_some_and(|value| ints.remove(value)),
            Repr::Packed(packed) => {
                let Some(at) = packed.as_ref().find(member, 1) else { return false };
                packed.remove(at, 1);
                true
            }
            Repr::Table(dict) => {
                let Some(spot) = dict.find(member) else { return false };
                dict.remove(spot, self.backing);
                dict.tidy();
                true
            }
        }
    }
    /// Removes a member by chance after showing it to `taken`.
    pub fn pop<R>(&mut self, rng: &mut dyn Rng, taken: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if let Repr::Table(dict) = &mut self.set.0 {
            let (spot, record) = dict.random_spot(rng)?;
            let result = taken(record.key);
            dict.remove(spot, self.backing);
            dict.tidy();
            return Some(result);
        }
        let member = self.set.view().random(rng)?.to_vec();
        self.remove(&member);
        Some(taken(&member))
    }
    /// Makes a set of integers in any form an `intset`, if it may have so many: what Valkey does with the result of
    /// SINTERSTORE. Looks at no more than `set-max-intset-entries`.
    pub fn settle_ints(&mut self) {
        let view = self.set.view();
        if view.is_ints() || view.len() > self.limits.ints_max {
            return;
        }
        let mut ints = Ints::default();
        for member in view.iter() {
            let Some(value) = parse_int(&member) else { return };
            ints.add(value);
        }
        self.set.0 = Repr::Ints(ints);
    }
    /// The table, made from another form if need be: at most `COUNT_MAX` members, as many as the limits let in.
    fn table(&mut self) -> &mut Dict {
        if !matches!(self.set.0, Repr::Table(_)) {
            let mut dict = Dict::new(false, Waste::Little, self.backing);
            self.set.view().iter().for_each(|member| {
                dict.insert(&member, b"", NEVER, self.backing);
            });
            self.set.0 = Repr::Table(Box::new(dict));
        }
        match &mut self.set.0 {
            Repr::Table(dict) => dict,
            _ => unreachable!("made a table just now"),
        }
    }
}

#[cfg(test)]
mod tests;
