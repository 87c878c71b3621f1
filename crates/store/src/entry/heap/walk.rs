//! Owns: what goes over many entries of a heap: SCAN, samples, expiry, resizing, compaction, clearing. Does not own:
//! single entries (the module above), whose invariant all of this keeps.

use super::{Env, Found, Heap, Pointer, facts};
use crate::entry::{Entry, Garbage};
use crate::slab::Moved;
use crate::table::array::Tagged;
use crate::table::head::Private;
use crate::table::{Group, Table};
use crate::value::{Object, ValueRef};
use std::ops::ControlFlow;

/// Groups that one sample looks through in vain.
const LEFT_GROUPS_MAX: usize = 16;

/// A database's table that was set aside, of this heap: its entries are in no other. It goes back to the heap; dropped,
/// it leaks them.
pub(crate) struct SetAside(Table);

impl SetAside {
    /// Its entries, and those of them that expire.
    pub(crate) const fn counts(&self) -> (usize, usize) {
        (self.0.len(), self.0.marked())
    }
}

impl std::fmt::Debug for SetAside {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SetAside").field("len", &self.0.len()).finish()
    }
}

impl Heap {
    /// Visits the entries of one bucket in hash order from a position on; see [`Table::scan`].
    pub(crate) fn scan(
        &self,
        env: Env<'_>,
        db: usize,
        from: u32,
        mut visit: impl FnMut(Entry<'_>, u64),
    ) -> Option<u32> {
        let facts = facts(env.hasher);
        self.tables[db].scan(from, &|tagged| facts(tagged).0, |tagged, hash| {
            // SAFETY: pointers in the table are live entries, for the borrow of self.
            visit(unsafe { Entry::new(tagged.entry()) }, hash);
        })
    }

    /// Counts the memory of a database's entries one by one: what they own, and themselves.
    pub(crate) fn count_bytes(&self, env: Env<'_>, db: usize, (owned, entries): (&mut usize, &mut usize)) {
        let mut from = Some(0);
        while let Some(position) = from {
            from = self.scan(env, db, position, |entry, _| {
                *entries += entry.allocated_bytes();
                *owned += match entry.value() {
                    ValueRef::Shared(shared) => shared.memory_bytes(),
                    _ => entry.object().map_or(0, Object::memory_bytes),
                };
            });
        }
    }

    /// Visits entries near a position, with their marks; see [`Table::sample`].
    pub(crate) fn sample(
        &self,
        db: usize,
        position: u32,
        buckets: u32,
        only_expiring: bool,
        mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) {
        self.tables[db].sample(position, buckets, |tagged| {
            if only_expiring && !tagged.marked() {
                return ControlFlow::Continue(());
            }
            // SAFETY: pointers in the table are live entries, for the borrow of self.
            visit(unsafe { Entry::new(tagged.entry()) })
        });
    }

    /// The earliest expiry in the heap, or something earlier.
    pub(crate) fn next_expiry_ms(&self) -> u64 {
        self.tables.iter().map(Table::next_expiry_ms).min().unwrap_or(u64::MAX)
    }
    /// See [`Table::due_group`].
    pub(crate) fn due_group(&self, db: usize, start: u32, due_ms: u64) -> Option<(u32, Group)> {
        self.tables[db].due_group(start, due_ms)
    }
    /// Collects a group's due entries (at most 224) and sets its hint to the earliest of the others: every collected
    /// entry must be removed.
    pub(crate) fn split_group(
        &mut self,
        env: Env<'_>,
        db: usize,
        group: Group,
        due_ms: u64,
        due: &mut Vec<(u64, Pointer)>,
    ) {
        let facts = facts(env.hasher);
        let mut rest = u64::MAX;
        self.tables[db].visit_group(group, |tagged| crate::prefetch::line(tagged.entry().as_ptr()));
        self.tables[db].visit_group(group, |tagged| {
            let (hash, expire_ms) = facts(tagged);
            if expire_ms <= due_ms {
                due.push((hash, Pointer(tagged)));
            } else {
                rest = rest.min(expire_ms);
            }
        });
        self.tables[db].set_group_hint(group, rest);
    }
    /// Finds an entry by its identity, if it is still there.
    pub(crate) fn find_pointer(&self, db: usize, hash: u64, pointer: Pointer) -> Option<Found> {
        let pos = self.tables[db].find_pointer(hash, pointer.0)?;
        Some(Found { pos, tagged: self.tables[db].at(pos) })
    }
    /// Finds an entry by its whole hash.
    pub(crate) fn find_hash(&self, env: Env<'_>, db: usize, hash: u64) -> Option<Found> {
        let facts = facts(env.hasher);
        let pos = self.tables[db].find(hash, |tagged| facts(tagged).0 == hash)?;
        Some(Found { pos, tagged: self.tables[db].at(pos) })
    }
    /// Shows clock, expiry and hash of some entries near a position; of those that expire only, from the first group on
    /// that has any, if `volatile`: groups that have none any more, a few at a time, are passed from then on.
    pub(crate) fn sample_facts(
        &mut self,
        env: Env<'_>,
        (db, position, buckets, volatile): (usize, u32, u32, bool),
        mut visit: impl FnMut(u32, u64, u64) -> ControlFlow<()>,
    ) {
        let facts = facts(env.hasher);
        let mut show = |tagged: Tagged| {
            let (hash, expire_ms) = facts(tagged);
            // SAFETY: pointers in the table are live entries, for the borrow of self.
            visit(unsafe { Entry::new(tagged.entry()) }.clock(), expire_ms, hash)
        };
        let table = &mut self.tables[db];
        if !volatile {
            return table.sample(position, buckets, show);
        }
        let start = table.random_group(position);
        for _ in 0..LEFT_GROUPS_MAX {
            let found = table.due_group(start, u64::MAX - 1).or_else(|| table.due_group(0, u64::MAX - 1));
            let Some((_, group)) = found else { return };
            let mut has_any = false;
            table.sample_group(group, position & 31, |tagged| {
                has_any = true;
                show(tagged)
            });
            if has_any {
                return;
            }
            table.set_group_hint(group, u64::MAX);
        }
    }
    /// Entries of a database that have an expiry.
    pub(crate) fn count_expiring(&self, db: usize) -> usize {
        self.tables[db].marked()
    }

    /// Moves a resize on by some buckets. Returns whether any table is still resizing.
    pub(crate) fn advance_resize(&mut self, env: Env<'_>, buckets: u32) -> bool {
        let mut left = false;
        for db in 0..self.tables.len() {
            if self.tables[db].resizing() {
                let before = self.tables[db].bytes();
                left |= !self.tables[db].advance(buckets, &facts(env.hasher), &env.home(db));
                self.table_bytes = self.table_bytes + self.tables[db].bytes() - before;
            }
        }
        left
    }

    /// Moves up to `entries` entries out of a sparse span. Returns what was moved; nothing when nothing is sparse.
    pub(crate) fn compact(&mut self, env: Env<'_>, entries: usize) -> Moved {
        if !self.slab.choose_sparse() {
            return Moved::default();
        }
        let (tables, drains) = (&mut self.tables, &self.drains);
        if !drains.is_empty() {
            // Entries of a table that is being emptied cannot be found by hash; they are on their way out anyway.
            return Moved::default();
        }
        let facts = facts(env.hasher);
        // SAFETY: every live slot is an entry in exactly one table (invariant; no drains), found here by its hash, and
        // `&mut self` keeps borrows away.
        unsafe {
            let bytes_of = |slot| Entry::new(slot).allocated_bytes();
            self.slab.evacuate(entries, env.pages, bytes_of, |old, new| {
                let (hash, _) = facts(Tagged::new(new, false));
                let moved = tables.iter_mut().any(|table| {
                    let Some(pos) = table.find_pointer(hash, Tagged::new(old, false)) else { return false };
                    let before = table.at(pos);
                    let moved = Tagged::new(new, before.marked()).with_size_of(before);
                    table.replace(pos, moved, u64::MAX);
                    true
                });
                assert!(moved, "every entry is in a table");
            })
        }
    }

    /// Throws a table away in constant time; [`Heap::drain`] frees its entries. Returns how many there were.
    pub(crate) fn clear(&mut self, env: Env<'_>, db: usize) -> usize {
        let len = self.tables[db].len();
        self.drains.push(self.tables[db].take(&env.home(db)));
        len
    }
    /// Sets a table aside in constant time: [`Heap::put_back`] takes it back, and [`Heap::give_up`] throws it away.
    pub(crate) fn set_aside(&mut self, env: Env<'_>, db: usize) -> SetAside {
        let fresh = self.tables[db].fresh();
        fresh.publish(&env.home(db));
        SetAside(std::mem::replace(&mut self.tables[db], fresh))
    }
    /// Has a table be what it was when it was set aside.
    pub(crate) fn put_back(&mut self, env: Env<'_>, db: usize, aside: SetAside) {
        aside.0.publish(&env.home(db));
        let other = std::mem::replace(&mut self.tables[db], aside.0);
        self.give_up(SetAside(other));
    }
    /// Throws away what was set aside; [`Heap::drain`] frees its entries.
    pub(crate) fn give_up(&mut self, mut aside: SetAside) {
        self.drains.push(aside.0.take(&Private));
    }
    /// Exchanges two databases.
    pub(crate) fn swap(&mut self, env: Env<'_>, one: usize, two: usize) {
        self.tables.swap(one, two);
        self.tables[one].publish(&env.home(one));
        self.tables[two].publish(&env.home(two));
    }
    /// Tables thrown away and not yet emptied.
    pub(crate) const fn drains(&self) -> usize {
        self.drains.len()
    }
    /// Whether the next of them never had an entry: to drain it is no work.
    pub(crate) fn drains_nothing(&self) -> bool {
        self.drains.last().is_some_and(|drain| drain.bytes() == 0)
    }
    /// Frees entries of thrown-away tables, up to `buckets` buckets. Returns whether any are left.
    pub(crate) fn drain(&mut self, env: Env<'_>, buckets: u32, mut discard: impl FnMut(Garbage)) -> bool {
        let Some(mut drain) = self.drains.pop() else { return false };
        let before = drain.bytes();
        // The home's index does not matter for retiring.
        let done = drain.step(buckets, &env.home(0), |tagged| {
            // SAFETY: the pointer has just been taken out of its table.
            discard(unsafe { self.dispose(tagged.entry(), env) });
        });
        self.table_bytes = self.table_bytes + drain.bytes() - before;
        if !done {
            self.drains.push(drain);
        }
        !self.drains.is_empty()
    }
}
