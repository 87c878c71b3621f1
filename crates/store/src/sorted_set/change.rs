//! Owns: every way to change a sorted set. Each tells what it does and what takes it back, if anybody wants to know
//! (`crate::recorder`). Does not own: reading it, the tree.

use super::compact::{COUNT_MAX, Compact};
use super::tree::{Item, Tree};
use super::{Large, Repr, Scored, SortedSet, SortedSetLimits, SortedSetRef, order_in, score_of};
use crate::dict::{Absent, Dict, NEVER, Waste};
use crate::effect::Effect;
use crate::reaper::Backing;
use crate::recorder::Pen;
use crate::undo::Undo;
use std::ops::Range;

/// A sorted set, to be changed.
pub struct SortedSetMut<'a> {
    set: &'a mut SortedSet,
    limits: SortedSetLimits,
    backing: Backing<'a>,
    pen: Option<Pen<'a>>,
}

impl<'a> SortedSetMut<'a> {
    /// To change a sorted set that is not in a shard: when a value is built before it is set.
    pub const fn new(set: &'a mut SortedSet, limits: SortedSetLimits, backing: Backing<'a>) -> Self {
        Self { set, limits, backing, pen: None }
    }
    pub(crate) fn with(mut self, pen: Option<Pen<'a>>) -> Self {
        self.pen = pen;
        self
    }
    /// To read it.
    #[must_use]
    pub fn view(&self) -> SortedSetRef<'_> {
        self.set.view()
    }
    /// Says that so many members are about to be added to an empty set, the longest of them so long: it takes the form
    /// that fits them, as in Valkey.
    pub fn announce(&mut self, members: usize, member_bytes_max: usize) {
        if members > self.limits.entries_max || member_bytes_max > self.limits.value_bytes_max {
            self.large();
        }
    }
    /// Makes a large form compact again, if the limits allow it: what Valkey does with the results of ZUNIONSTORE and
    /// its like, which it builds large. Looks at no more than `zset-max-listpack-entries`.
    pub fn settle(&mut self) {
        debug_assert!(self.pen.is_none(), "a result is settled before its key is set");
        let view = self.set.view();
        let SortedSetLimits { entries_max, value_bytes_max } = self.limits;
        if view.len() > entries_max.min(COUNT_MAX)
            || view.iter(0..view.len()).any(|element| element.member.len() > value_bytes_max)
        {
            return;
        }
        let mut compact = Compact::default();
        view.iter(0..view.len()).for_each(|element| compact.push(element));
        self.set.0 = Repr::Compact(compact);
    }
    /// Adds a member or gives it another score. Says whether it is new.
    pub fn add(&mut self, member: &[u8], score: f64) -> bool {
        self.update(member, |_| Some(score)).0.is_none()
    }
    /// Shows the member's score, if it has one, and sets the one that `choose` gives; with none, nothing changes. −0
    /// and 0 are two scores here: whoever holds them for one gives none. Returns the score before and the one after.
    /// O(log n).
    pub fn update(
        &mut self,
        member: &[u8],
        choose: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> (Option<f64>, Option<f64>) {
        let (old, new) = self.put(member, choose);
        if let (Some(pen), Some(score)) = (&mut self.pen, new)
            && !old.is_some_and(|old| same(old, score))
        {
            pen.tell(&Effect::SortedSetAdd { member, score });
            if pen.undoes() {
                pen.undo(Undo::SortedSetMember(member.into(), old));
            }
        }
        (old, new)
    }
    #[inline]
    fn put(
        &mut self,
        member: &[u8],
        choose: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> (Option<f64>, Option<f64>) {
        if let Repr::Compact(compact) = &mut self.set.0 {
            let found = compact.as_ref().find(member);
            let old = found.map(|(_, score)| score);
            let Some(new) = choose(old) else { return (old, old) };
            debug_assert!(!new.is_nan());
            if old.is_some_and(|old| same(old, new)) {
                return (old, old);
            }
            let SortedSetLimits { entries_max, value_bytes_max } = self.limits;
            let fits =
                member.len() <= value_bytes_max && compact.as_ref().count() < entries_max.min(COUNT_MAX);
            if let Some((at, _)) = found {
                compact.remove(at, 1);
                compact.insert(Scored { member, score: new });
            } else if fits {
                compact.insert(Scored { member, score: new });
            } else {
                let backing = self.backing;
                self.large().insert(Scored { member, score: new }, backing);
            }
            return (old, Some(new));
        }
        let backing = self.backing;
        self.large().update(member, choose, backing)
    }
    /// Removes a member. Returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let score = self.take(member)?;
        if let Some(pen) = &mut self.pen {
            told_removed(pen, Scored { member, score });
        }
        Some(score)
    }
    #[inline]
    fn take(&mut self, member: &[u8]) -> Option<f64> {
        match &mut self.set.0 {
            Repr::Compact(compact) => {
                let (at, score) = compact.as_ref().find(member)?;
                compact.remove(at, 1);
                Some(score)
            }
            Repr::Large(large) => {
                let (spot, record) = large.dict.find_record(member)?;
                let score = score_of(&record);
                let target = Scored { member, score };
                let Large { dict, tree, .. } = &mut **large;
                tree.remove(score, |item| order_in(dict, item, target).is_le());
                dict.remove(spot, self.backing);
                large.tidy();
                Some(score)
            }
        }
    }
    /// Removes the elements of some ranks after showing each, ascending. O(log n) each. Returns how many.
    pub fn remove_ranks(&mut self, ranks: Range<usize>, mut taken: impl FnMut(Scored<'_>)) -> usize {
        let count = ranks.end.min(self.set.view().len()).saturating_sub(ranks.start);
        let pen = &mut self.pen;
        let taken = |element: Scored<'_>| {
            taken(element);
            if let Some(pen) = pen {
                told_removed(pen, element);
            }
        };
        self.set.take_ranks((ranks.start, count), self.backing, taken);
        count
    }
    /// Takes a change back: a member has the score that it had.
    pub(crate) fn undo(&mut self, member: &[u8], before: Option<f64>) {
        match before {
            Some(score) => drop(self.put(member, |_| Some(score))),
            None => drop(self.take(member)),
        }
    }
    /// The large form, made from the compact one if need be: at most `COUNT_MAX` elements, as many as limits let in.
    fn large(&mut self) -> &mut Large {
        if let Repr::Compact(compact) = &self.set.0 {
            let dict = Dict::new(true, Waste::Much, self.backing);
            let mut large = Large { dict, tree: Tree::new(), moved: 0 };
            compact.as_ref().iter().for_each(|pair| large.insert(pair, self.backing));
            self.set.0 = Repr::Large(Box::new(large));
        }
        match &mut self.set.0 {
            Repr::Large(large) => large,
            Repr::Compact(_) => unreachable!("made large just now"),
        }
    }
}

#[cold]
fn told_removed(pen: &mut Pen<'_>, element: Scored<'_>) {
    pen.tell(&Effect::SortedSetRemove { member: element.member });
    if pen.undoes() {
        pen.undo(Undo::SortedSetMember(element.member.into(), Some(element.score)));
    }
}

impl SortedSetRef<'_> {
    /// See [`crate::value::ObjectRef::tell_piece`]: places are ranks.
    pub(crate) fn tell_piece(self, pen: &mut Pen<'_>, from: u64, bytes_max: usize) -> Option<u64> {
        for (rank, Scored { member, score }) in (from..).zip(self.iter(from as usize..self.len())) {
            if pen.told_bytes() >= bytes_max {
                return Some(rank);
            }
            pen.tell(&Effect::SortedSetAdd { member, score });
        }
        None
    }
}

impl SortedSet {
    /// Takes `count` elements out from rank `start` on.
    #[inline]
    fn take_ranks(
        &mut self,
        (start, count): (usize, usize),
        backing: Backing<'_>,
        mut taken: impl FnMut(Scored<'_>),
    ) {
        match &mut self.0 {
            Repr::Compact(compact) if count > 0 => {
                let at = compact.as_ref().offset(start);
                compact.as_ref().iter_from(at).take(count).for_each(taken);
                compact.remove(at, count);
            }
            Repr::Compact(_) => {}
            Repr::Large(large) => {
                for _ in 0..count {
                    let Some(item) = large.tree.remove_at(start) else { break };
                    large.dict.remove_handle(item.handle, backing, |record| {
                        taken(Scored { member: record.key, score: item.score });
                    });
                    large.tidy();
                    large.look_ahead(start > 0);
                }
            }
        }
    }
}

/// Whether two scores are the same to the bit.
fn same(one: f64, other: f64) -> bool {
    one.to_bits() == other.to_bits()
}

impl Large {
    fn insert(&mut self, pair: Scored<'_>, backing: Backing<'_>) {
        self.insert_sought(self.dict.absent(pair.member), pair, backing);
    }
    fn insert_sought(&mut self, absent: Absent, pair: Scored<'_>, backing: Backing<'_>) {
        let record = (pair.member, &pair.score.to_le_bytes()[..], NEVER);
        let handle = self.dict.insert_sought(absent, record, backing);
        let Self { dict, tree, .. } = self;
        tree.insert(Item { score: pair.score, handle }, |item| order_in(dict, item, pair).is_lt());
    }
    fn update(
        &mut self,
        member: &[u8],
        choose: impl FnOnce(Option<f64>) -> Option<f64>,
        backing: Backing<'_>,
    ) -> (Option<f64>, Option<f64>) {
        let found = self.dict.seek(member).map(|(spot, record)| (spot, score_of(&record)));
        let (spot, old) = match found {
            Ok(found) => found,
            Err(absent) => {
                let new = choose(None);
                if let Some(score) = new {
                    self.insert_sought(absent, Scored { member, score }, backing);
                }
                return (None, new);
            }
        };
        let chosen = choose(Some(old)).filter(|&score| !same(score, old));
        let Some(score) = chosen else { return (Some(old), Some(old)) };
        debug_assert!(!score.is_nan());
        let Self { dict, tree, .. } = self;
        // Both leaves are asked for before either is searched.
        tree.ask_for(score);
        tree.remove(old, |item| order_in(dict, item, Scored { member, score: old }).is_le());
        // The same length, so the record stays where it is.
        let handle = dict.replace(spot, &score.to_le_bytes(), NEVER);
        let pair = Scored { member, score };
        tree.insert(Item { score, handle }, |item| order_in(dict, item, pair).is_lt());
        (Some(old), Some(score))
    }
    /// Asks for what taking the next elements from an end will touch: the record of one that is some way off, and the
    /// bucket of a nearer one, whose record has come meanwhile.
    fn look_ahead(&self, last: bool) {
        let [near, far] = self.tree.near_end(last, [2, 4]);
        if let Some(handle) = far {
            self.dict.prefetch(handle);
        }
        if let Some(handle) = near {
            self.dict.prefetch_bucket(handle);
        }
    }
    /// After a removal: moves records if that pays, those of one leaf. From the last one on, since most are taken from
    /// the front; what removals from the end make it pass over is met in the next round.
    fn tidy(&mut self) {
        let Self { dict, tree, moved } = self;
        let Some(at_once) = dict.moves() else { return };
        loop {
            if dict.has_moved() {
                *moved = 0;
                return;
            }
            if *moved >= tree.len() {
                *moved = 0;
            }
            let rank = tree.len() - 1 - *moved;
            *moved += 1 + tree.change_handles(rank, |handles| dict.move_records(handles));
            if !at_once {
                return;
            }
        }
    }
}
