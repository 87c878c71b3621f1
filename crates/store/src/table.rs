//! Owns: the hash table from 64-bit hashes to tagged entry pointers: find, insert, remove, incremental resizing, the
//! scan in hash order, sampling, and the index of expiries. Does not own: entries (it never follows a pointer; what
//! needs the key behind one is passed in as a function), locks, epochs.
//!
//! The table is in hash order: `bucket = position * buckets >> 32`. So one comparison tells which of two arrays holds a
//! key during a resize (those below the frontier have moved), a scan cursor is a position that means the same in
//! every size, and any growth factor works.
//!
//! Growth is by one size step, ×1.14 to ×1.25, at a load of 6/7 plus up to 3/64 by shard, so that the shards of a
//! growing keyspace do not all resize at once and the memory of keys lies smoothly between 10.1 and 13.1 bytes of
//! bucket a key.

pub(crate) mod array;
mod drain;
pub(crate) mod head;
mod resize;
mod scan;

use crate::hash::{position_of, tag_of};
use crate::prefetch;
use array::{Array, Place, SLOTS, Tagged, home, step_for};
pub(crate) use drain::Drain;
use head::Home;
pub(crate) use scan::Group;

/// What a table must know of an entry to move it: its hash and its expiry (`u64::MAX` for none).
pub(crate) type Facts = (u64, u64);

/// Buckets that a write moves while a resize runs, about 1.5 µs in a large keyspace. With 2, a resize already ends
/// before either array can fill (`resize`); with 8, few shards have two arrays at a time.
const WRITE_MOVES_BUCKETS: u32 = 8;

/// Where an entry's pointer stands. Good until the table's next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pos {
    in_next: bool,
    place: Place,
}

/// The table. See the module's comment.
pub(crate) struct Table {
    main: Option<Array>,
    /// The array being moved to.
    next: Option<Array>,
    /// Buckets of `main` that have been moved, counted from position 0.
    migrated: u32,
    len: usize,
    /// Entries with the mark.
    marked: usize,
    /// 0 to 15: delays this table's growth, to spread resizes over time.
    jitter: u8,
    /// It shrinks when fewer than one slot in so many is taken.
    shrinks_at: u8,
}

impl Table {
    /// An empty table without memory of its own.
    pub(crate) const fn new(jitter: u8) -> Self {
        let jitter = jitter & 15;
        Self { main: None, next: None, migrated: 0, len: 0, marked: 0, jitter, shrinks_at: 2 }
    }
    /// The same table, which shrinks at a quarter rather than at half: what is taken out one by one until nothing is
    /// left moves a third of its entries on the way rather than each one and a half times.
    pub(crate) const fn slow_to_shrink(mut self) -> Self {
        self.shrinks_at = 4;
        self
    }
    /// Entries.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
    /// Entries that have an expiry.
    pub(crate) const fn marked(&self) -> usize {
        self.marked
    }
    /// Memory of the arrays.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.main.as_ref().map_or(0, Array::bytes) + self.next.as_ref().map_or(0, Array::bytes)
    }
    /// Publishes the arrays at another home, for a table that has changed places with another (under the world gate).
    pub(crate) fn publish(&self, owner: &impl Home) {
        owner.publish(self.main.as_ref(), self.next.as_ref());
        owner.advance(self.migrated);
    }
    /// An empty table of the same manner.
    pub(crate) const fn fresh(&self) -> Self {
        Self { main: None, next: None, migrated: 0, len: 0, marked: 0, ..*self }
    }
    /// A second table with the same entries, which must mean the same in both: names, not addresses.
    pub(crate) fn duplicate(&self) -> Self {
        let copy = |array: &Option<Array>| array.as_ref().map(Array::duplicate);
        Self { main: copy(&self.main), next: copy(&self.next), ..*self }
    }
    fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.main.iter().chain(self.next.iter())
    }

    #[inline]
    fn array(&self, in_next: bool) -> &Array {
        let array = if in_next { &self.next } else { &self.main };
        array.as_ref().expect("a Pos is made for an array that is there, and used before the next change")
    }
    #[inline]
    fn array_mut(&mut self, in_next: bool) -> &mut Array {
        let array = if in_next { &mut self.next } else { &mut self.main };
        array.as_mut().expect("a Pos is made for an array that is there, and used before the next change")
    }
    /// Whether keys at `position` have moved already. Needs `main`.
    #[inline]
    fn moved(&self, position: u32) -> bool {
        self.next.is_some()
            && self.main.as_ref().is_some_and(|main| home(position, main.count()) < self.migrated)
    }

    /// Finds the entry of `hash` for which `equal` holds: one cache line of the table, and one of each entry whose tag
    /// fits (a wrong one every 40 lookups).
    #[inline]
    pub(crate) fn find(&self, hash: u64, equal: impl FnMut(Tagged) -> bool) -> Option<Pos> {
        let position = position_of(hash);
        let main = self.main.as_ref()?;
        let in_next = self.moved(position);
        let array = if in_next { self.next.as_ref()? } else { main };
        let place = array.find(position, tag_of(hash), equal)?;
        Some(Pos { in_next, place })
    }

    /// Asks for the bucket in which a hash would be found.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        let position = position_of(hash);
        let array = if self.moved(position) { &self.next } else { &self.main };
        if let Some(array) = array {
            let bucket = array.bucket(home(position, array.count()));
            prefetch::line(std::ptr::from_ref(bucket).cast());
        }
    }

    /// The pointer at `pos`.
    #[inline]
    pub(crate) fn at(&self, pos: Pos) -> Tagged {
        self.array(pos.in_next)
            .bucket(pos.place.bucket)
            .slot(pos.place.slot as usize)
            .expect("a Pos points at an occupied slot until the next change")
    }

    /// Puts another pointer for the same key in its place: an entry that moved, or changed its expiry.
    #[inline]
    pub(crate) fn replace(&mut self, pos: Pos, entry: Tagged, expire_ms: u64) {
        self.marked = self.marked + usize::from(entry.marked()) - usize::from(self.at(pos).marked());
        let array = self.array_mut(pos.in_next);
        array.bucket(pos.place.bucket).put(pos.place.slot as usize, entry);
        if entry.marked() {
            array.note_expiry(pos.place.bucket, expire_ms);
        }
    }

    /// An entry has lost its mark in its place.
    pub(crate) const fn unmarked(&mut self) {
        self.marked -= 1;
    }

    /// Adds an entry whose key is not in the table. Moves a bounded part of a running resize first.
    pub(crate) fn insert(
        &mut self,
        (hash, expire_ms): Facts,
        entry: Tagged,
        facts: &impl Fn(Tagged) -> Facts,
        owner: &impl Home,
    ) -> Pos {
        self.make_room(facts, owner);
        let position = position_of(hash);
        let in_next = self.moved(position);
        let mut placed = self.array(in_next).place(position, tag_of(hash), entry);
        let mut in_next = in_next;
        while placed.is_none() {
            // Cannot happen by the arithmetic in `resize`; if it does, finishing the resize makes room.
            self.finish_resize(facts, owner);
            self.grow(owner);
            self.finish_resize(facts, owner);
            in_next = false;
            placed = self.array(false).place(position, tag_of(hash), entry);
        }
        let place = placed.expect("the loop ends when there is one");
        if entry.marked() {
            self.array_mut(in_next).note_expiry(place.bucket, expire_ms);
        }
        self.len += 1;
        self.marked += usize::from(entry.marked());
        Pos { in_next, place }
    }

    /// Takes the entry at `pos` out. Moves a bounded part of a running resize afterwards, and may start to shrink.
    pub(crate) fn remove(
        &mut self,
        pos: Pos,
        hash: u64,
        facts: &impl Fn(Tagged) -> Facts,
        owner: &impl Home,
    ) -> Tagged {
        let entry = self.at(pos);
        self.array(pos.in_next).take(pos.place, position_of(hash));
        self.len -= 1;
        self.marked -= usize::from(entry.marked());
        self.make_tight(facts, owner);
        entry
    }
}

/// The load at which a table grows, in 1/1024: 6/7 and up to 48/1024 more.
const fn grow_load(jitter: u8) -> usize {
    878 + 3 * jitter as usize
}

/// Slots of an array.
fn slots(array: &Array) -> usize {
    array.count() as usize * SLOTS
}

/// The step that holds `len` entries at a load of about 3/4.
fn step_for_len(len: usize) -> u8 {
    step_for((len as u64 * 4).div_ceil(3 * SLOTS as u64).max(1))
}

#[cfg(test)]
mod tests;
