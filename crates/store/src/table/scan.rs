//! Owns: walking a table: in hash order for SCAN, at random for RANDOMKEY and eviction, by expiry hint for the expiry
//! cycle. Does not own: what the visitors do with an entry.

use super::array::{Array, GROUP_BUCKETS, Place, SLOTS, Tagged, first_position, home, passed};
use super::{Pos, Table};
use crate::clock::Rng;
use crate::hash::position_of;
use std::ops::ControlFlow;

/// A group of buckets that share an expiry hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    in_next: bool,
    index: u32,
}

impl Table {
    /// Visits the entries whose position is at or after `from` and in the same bucket, and returns where to go on, or
    /// nothing at the end. One bucket and what has overflowed from it, so about 6 entries.
    ///
    /// An entry that stays is met exactly once by a walk from 0, whatever resizes happen between the calls: what a call
    /// visits is a range of positions, and positions do not depend on the size.
    pub(crate) fn scan(
        &self,
        from: u32,
        hash_of: &impl Fn(Tagged) -> u64,
        mut visit: impl FnMut(Tagged, u64),
    ) -> Option<u32> {
        let main = self.main.as_ref()?;
        let (array, limit) = match &self.next {
            Some(next) if self.moved(from) => (next, first_position(self.migrated, main.count())),
            _ => (main, 1 << 32),
        };
        let bucket = home(from, array.count());
        let end = first_position(bucket + 1, array.count()).min(limit);
        let mut at = bucket;
        for _ in 0..array.count() {
            for (_, entry) in array.bucket(at).occupied() {
                let hash = hash_of(entry);
                let position = u64::from(position_of(hash));
                if (u64::from(from)..end).contains(&position) {
                    visit(entry, hash);
                }
            }
            if !passed(array.bucket(at).meta()) {
                break;
            }
            at = array.after(at);
        }
        u32::try_from(end).ok()
    }

    /// Visits the entries of the bucket at `position` and of those after it, until the visitor says stop or `buckets`
    /// have been visited. For samples: an entry that has overflowed is met in the bucket in which it stands.
    pub(crate) fn sample(
        &self,
        position: u32,
        buckets: u32,
        mut visit: impl FnMut(Tagged) -> ControlFlow<()>,
    ) {
        let Some(main) = &self.main else { return };
        let array = self.next.as_ref().filter(|_| self.moved(position)).unwrap_or(main);
        let mut at = home(position, array.count());
        for _ in 0..buckets.min(array.count()) {
            for (_, entry) in array.bucket(at).occupied() {
                if visit(entry).is_break() {
                    return;
                }
            }
            at = array.after(at);
        }
    }

    /// All entries, in no particular order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Tagged> + '_ {
        self.arrays().flat_map(|array| {
            (0..array.count()).flat_map(|bucket| array.bucket(bucket).occupied().map(|(_, entry)| entry))
        })
    }

    /// An entry by chance, each equally likely: rolls for a slot until it is a full one, which at the loads kept here
    /// takes 2 rolls, and 8 in a table of few entries. After `rolls_max` it takes the next full one.
    pub(crate) fn random(&self, rng: &mut dyn Rng, rolls_max: u32) -> Option<(Pos, Tagged)> {
        let main = self.main.as_ref().filter(|_| self.len > 0)?;
        let buckets = main.count() + self.next.as_ref().map_or(0, Array::count);
        let bucket_at = |at: u32| match &self.next {
            Some(next) if at >= main.count() => (true, at - main.count(), next.bucket(at - main.count())),
            _ => (false, at, main.bucket(at)),
        };
        for _ in 0..rolls_max {
            let (in_next, at, bucket) = bucket_at(rng.below(buckets));
            let slot = rng.below(SLOTS as u32) as u8;
            if let Some(entry) = bucket.slot(usize::from(slot)) {
                return Some((Pos { in_next, place: Place { bucket: at, slot } }, entry));
            }
        }
        let start = rng.below(buckets);
        (0..buckets).find_map(|step| {
            let (in_next, at, bucket) = bucket_at((start + step) % buckets);
            let (slot, entry) = bucket.occupied().next()?;
            Some((Pos { in_next, place: Place { bucket: at, slot: slot as u8 } }, entry))
        })
    }

    /// The earliest expiry of any entry or something earlier; `u64::MAX` when no entry has one.
    pub(crate) fn next_expiry_ms(&self) -> u64 {
        let hints = self.arrays().filter_map(|array| array.hints.as_deref());
        hints.flat_map(|hints| hints.iter().copied()).min().unwrap_or(u64::MAX)
    }

    /// The first group at or after `start` whose hint is at most `due_ms`. Groups are numbered through both arrays; the
    /// search reads 8 bytes for each 2 KiB of buckets.
    pub(crate) fn due_group(&self, start: u32, due_ms: u64) -> Option<(u32, Group)> {
        let mut number = 0;
        for (in_next, array) in [(false, &self.main), (true, &self.next)] {
            let Some(array) = array else { continue };
            let groups = array.count().div_ceil(GROUP_BUCKETS);
            if let Some(hints) = &array.hints {
                let skip = start.saturating_sub(number).min(groups);
                let found = hints[skip as usize..].iter().position(|&hint| hint <= due_ms);
                if let Some(found) = found {
                    let index = skip + found as u32;
                    return Some((number + index, Group { in_next, index }));
                }
            }
            number += groups;
        }
        None
    }

    /// A group number by a random position.
    pub(crate) fn random_group(&self, position: u32) -> u32 {
        home(position, self.arrays().map(|array| array.count().div_ceil(GROUP_BUCKETS)).sum::<u32>().max(1))
    }

    /// Visits the marked entries of a group: at most 224.
    pub(crate) fn visit_group(&self, group: Group, mut visit: impl FnMut(Tagged)) {
        self.sample_group(group, 0, |tagged| {
            visit(tagged);
            ControlFlow::Continue(())
        });
    }

    /// Visits the marked entries of a group from its bucket number `start` on, around to the one before, until told to
    /// stop.
    pub(crate) fn sample_group(
        &self,
        group: Group,
        start: u32,
        mut visit: impl FnMut(Tagged) -> ControlFlow<()>,
    ) {
        let array = if group.in_next { &self.next } else { &self.main };
        let Some(array) = array else { return };
        let first = group.index * GROUP_BUCKETS;
        let buckets = (array.count() - first).min(GROUP_BUCKETS);
        for step in 0..buckets {
            let bucket = array.bucket(first + (start + step) % buckets);
            for (_, entry) in bucket.occupied().filter(|(_, entry)| entry.marked()) {
                if visit(entry).is_break() {
                    return;
                }
            }
        }
    }

    /// Sets the hint of a group to what a visit has found.
    pub(crate) fn set_group_hint(&mut self, group: Group, expire_ms: u64) {
        let array = if group.in_next { &mut self.next } else { &mut self.main };
        if let Some(hint) =
            array.as_mut().and_then(|array| array.hints.as_mut()?.get_mut(group.index as usize))
        {
            *hint = expire_ms;
        }
    }

    /// The position of an entry's pointer itself, searched by its hash: how a moved entry finds its one reference.
    pub(crate) fn find_pointer(&self, hash: u64, entry: Tagged) -> Option<Pos> {
        self.find(hash, |other| other.entry() == entry.entry())
    }
}
