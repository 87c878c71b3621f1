//! Owns: every way to change a set. Each tells what it does and what takes it back, if anybody wants to know
//! (`crate::recorder`). Does not own: the structures.

use super::ints::Ints;
use super::{Member, Repr, Set, SetLimits, SetRef};
use crate::clock::Rng;
use crate::dict::{Dict, NEVER, Waste};
use crate::effect::Effect;
use crate::packed::{COUNT_MAX, Packed};
use crate::reaper::Backing;
use crate::recorder::Pen;
use crate::undo::Undo;
use crate::value::parse_int;

/// A set, to be changed.
pub struct SetMut<'a> {
    set: &'a mut Set,
    limits: SetLimits,
    backing: Backing<'a>,
    pen: Option<Pen<'a>>,
}

impl<'a> SetMut<'a> {
    /// To change a set that is not in a shard: when a value is built before it is set.
    pub const fn new(set: &'a mut Set, limits: SetLimits, backing: Backing<'a>) -> Self {
        Self { set, limits, backing, pen: None }
    }
    pub(crate) fn with(mut self, pen: Option<Pen<'a>>) -> Self {
        self.pen = pen;
        self
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
        let added = self.put(member);
        if added && let Some(pen) = &mut self.pen {
            pen.tell(&Effect::SetAdd { member });
            if pen.undoes() {
                pen.undo(Undo::SetRemove(member.into()));
            }
        }
        added
    }
    #[inline]
    fn put(&mut self, member: &[u8]) -> bool {
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
        let Err(absent) = dict.seek(member) else { return false };
        dict.insert_sought(absent, (member, b"", NEVER), backing);
        true
    }
    /// Removes a member. Says whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let removed = self.take(member);
        if removed && let Some(pen) = &mut self.pen {
            pen.tell(&Effect::SetRemove { member });
            if pen.undoes() {
                pen.undo(Undo::SetAdd(member.into()));
            }
        }
        removed
    }
    #[inline]
    fn take(&mut self, member: &[u8]) -> bool {
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
        if let (Repr::Table(dict), None) = (&mut self.set.0, &self.pen) {
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
        debug_assert!(self.pen.is_none(), "a result is settled before its key is set");
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
    /// Takes a change back.
    pub(crate) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::SetAdd(member) => drop(self.put(&member)),
            Undo::SetRemove(member) => drop(self.take(&member)),
            _ => debug_assert!(false, "only what a set does"),
        }
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

impl SetRef<'_> {
    /// See [`crate::value::ObjectRef::tell_piece`]: places are those of SSCAN.
    pub(crate) fn tell_piece(self, pen: &mut Pen<'_>, from: u64, bytes_max: usize) -> Option<u64> {
        let mut at = from;
        loop {
            at = self.scan(at, 1, |member| pen.tell(&Effect::SetAdd { member }));
            if at == 0 || pen.told_bytes() >= bytes_max {
                return (at != 0).then_some(at);
            }
        }
    }
}
