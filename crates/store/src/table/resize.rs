//! Owns: when a table grows and shrinks, and moving entries a few buckets at a time. Does not own: the arrays' layout.
//!
//! Why a resize always ends before an array fills, with at least two buckets moved by each write:
//! - n old buckets take at most n/2 writes. Growth starts at 6.33 n entries at most, so 6.33 n + n/2 < 7 n even if
//!   every new key falls into the part that has not moved; the new array has 7 · 1.14 n slots.
//! - A shrink starts below 3.5 n entries and goes to at least 3.5 n · 4/3 = 4.67 n slots; 3.5 n + n/2 < 4.67 n.
//!   One that waits for a quarter: 1.75 n, 2.33 n slots, and 1.75 n + n/2 < 2.33 n. One that has waited for longer goes
//!   to what holds n/2 entries, 0.67 n slots: below n/2 it moves eight buckets by each write, and n/2 + n/8 < 0.67 n.
//!
//! Why a table that is emptied in hash order, as SCAN and DEL or SSCAN and SREM do, waits: what is left of it stands in
//! its last part, as close together as before. In a smaller array it would stand closer than there is room, and each
//! entry would be looked for past all of that. So an array that has many full buckets for its few entries stays.

use super::array::{Array, SLOTS, Tagged, home, passed};
use super::head::Home;
use super::{Facts, Table, WRITE_MOVES_BUCKETS, grow_load, slots, step_for_len};
use crate::hash::{position_of, tag_of};

/// Arrays up to this many buckets are moved at once: at most 112 entries, about 5 µs.
const AT_ONCE_BUCKETS: u32 = 16;

/// Buckets that are looked at before an array of as many or more is given up for a smaller one.
const LOOKED_AT_BUCKETS: u32 = 256;

impl Table {
    pub(super) fn make_room(&mut self, facts: &impl Fn(Tagged) -> Facts, owner: &impl Home) {
        if self.next.is_some() {
            self.advance(WRITE_MOVES_BUCKETS, facts, owner);
            return;
        }
        let Some(main) = &self.main else {
            self.main = Some(owner.array(0));
            owner.publish(self.main.as_ref(), None);
            return;
        };
        if (self.len + 1) * 1024 > slots(main) * grow_load(self.jitter) {
            self.grow(owner);
            self.after_start(facts, owner);
        }
    }

    pub(super) fn make_tight(&mut self, facts: &impl Fn(Tagged) -> Facts, owner: &impl Home) {
        if self.next.is_some() {
            self.advance(WRITE_MOVES_BUCKETS, facts, owner);
        } else if self.len == 0 {
            if let Some(main) = self.main.take() {
                owner.publish(None, None);
                owner.retire(main);
            }
        } else if self.wants_shrink() {
            self.start(self.shrunken(), owner);
            self.after_start(facts, owner);
        }
    }

    fn wants_shrink(&self) -> bool {
        self.main.as_ref().is_some_and(|main| {
            self.len * usize::from(self.shrinks_at) < slots(main)
                && main.step() > 0
                && self.shrunken() < main.step()
                && !self.is_crowded(main)
        })
    }

    /// The step that it shrinks to.
    fn shrunken(&self) -> u8 {
        let least = self.main.as_ref().map_or(0, |main| main.count() as usize / 2);
        step_for_len(self.len.max(least))
    }

    /// Whether what is in the array stands in a part of it: full buckets of a sample stand for more than a quarter of
    /// all entries. Of entries that are spread, one bucket in fifteen is full at a load of a half, and none at less. It
    /// is looked at after each so many removals, and otherwise taken to be so: 256 lines of memory for 256 writes.
    fn is_crowded(&self, main: &Array) -> bool {
        if main.count() < LOOKED_AT_BUCKETS {
            return false;
        }
        if !self.len.is_multiple_of(LOOKED_AT_BUCKETS as usize) {
            return true;
        }
        let apart = main.count() / LOOKED_AT_BUCKETS;
        let full =
            (0..LOOKED_AT_BUCKETS).filter(|at| main.bucket(at * apart).occupied().count() == SLOTS).count();
        full * 4 * slots(main) > self.len * LOOKED_AT_BUCKETS as usize
    }

    /// Starts to grow by one step, or what its home says, unless a resize runs.
    pub(super) fn grow(&mut self, owner: &impl Home) {
        if let (Some(main), None) = (&self.main, &self.next) {
            let ahead = owner.ahead(self.len).map_or(0, step_for_len);
            self.start(ahead.max(main.step() + 1), owner);
        }
    }

    /// Brings a table that has grown ahead to the size that its entries need, all at once.
    pub(crate) fn fit(&mut self, facts: &impl Fn(Tagged) -> Facts, owner: &impl Home) {
        self.finish_resize(facts, owner);
        if let Some(main) = &self.main
            && main.step() > step_for_len(self.len) + 1
        {
            self.start(step_for_len(self.len), owner);
            self.finish_resize(facts, owner);
        }
    }

    fn start(&mut self, step: u8, owner: &impl Home) {
        self.next = Some(owner.array(step));
        self.migrated = 0;
        owner.publish(self.main.as_ref(), self.next.as_ref());
    }

    fn after_start(&mut self, facts: &impl Fn(Tagged) -> Facts, owner: &impl Home) {
        let small = self.main.as_ref().is_some_and(|main| main.count() <= AT_ONCE_BUCKETS);
        self.advance(if small { AT_ONCE_BUCKETS } else { WRITE_MOVES_BUCKETS }, facts, owner);
    }

    pub(super) fn finish_resize(&mut self, facts: &impl Fn(Tagged) -> Facts, owner: &impl Home) {
        self.advance(u32::MAX, facts, owner);
    }

    /// Whether a resize runs.
    pub(crate) const fn resizing(&self) -> bool {
        self.next.is_some()
    }

    /// Moves up to `buckets` buckets of a running resize: about 7 entries each, whose lines are asked for together, so
    /// about 0.2 µs a bucket in a large keyspace. Returns whether the resize is over.
    pub(crate) fn advance<H: Home>(
        &mut self,
        buckets: u32,
        facts: &impl Fn(Tagged) -> Facts,
        owner: &H,
    ) -> bool {
        let Some(mut next) = self.next.take() else { return true };
        let Some(main) = self.main.take() else { return true };
        let end = main.count().min(self.migrated.saturating_add(buckets));
        while self.migrated < end {
            if self.migrated + 1 < main.count() {
                main.bucket(self.migrated + 1).occupied().for_each(|(_, entry)| owner.ask_for(entry));
            }
            move_bucket(&main, &mut next, self.migrated, facts);
            self.migrated += 1;
            main.give_back(self.migrated, true);
        }
        if self.migrated < main.count() {
            owner.advance(self.migrated);
            self.main = Some(main);
            self.next = Some(next);
            return false;
        }
        self.migrated = 0;
        owner.publish(Some(&next), None);
        owner.retire(main);
        self.main = Some(next);
        true
    }
}

/// Moves every entry whose home is `bucket`, wherever it stands.
fn move_bucket(main: &Array, next: &mut Array, bucket: u32, facts: &impl Fn(Tagged) -> Facts) {
    let mut at = bucket;
    for _ in 0..main.count() {
        let source = main.bucket(at);
        let more = passed(source.meta());
        for (slot, entry) in source.occupied() {
            let (hash, expire_ms) = facts(entry);
            let position = position_of(hash);
            if home(position, main.count()) != bucket {
                continue;
            }
            main.take(super::Place { bucket: at, slot: slot as u8 }, position);
            let place = next
                .place(position, tag_of(hash), entry)
                .expect("the new array has more slots than there are entries (module comment)");
            if entry.marked() {
                next.note_expiry(place.bucket, expire_ms);
            }
        }
        if !more {
            return;
        }
        at = main.after(at);
    }
}
