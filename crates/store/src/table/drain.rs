//! Owns: what is left of a table that was thrown away (FLUSHALL, a deleted hash): its arrays, emptied a few buckets at
//! a time. Does not own: what is done with the entries.

use super::Table;
use super::array::{Array, Tagged};
use super::head::Home;

/// The arrays of a table that is no longer reachable. Must be emptied before it is dropped, or its entries leak.
pub(crate) struct Drain {
    arrays: Vec<Array>,
    at: u32,
}

impl Table {
    /// Leaves an empty table behind and hands out what was in it, in constant time.
    pub(crate) fn take(&mut self, owner: &impl Home) -> Drain {
        owner.publish(None, None);
        self.migrated = 0;
        (self.len, self.marked) = (0, 0);
        Drain { arrays: self.main.take().into_iter().chain(self.next.take()).collect(), at: 0 }
    }
}

impl Drain {
    /// Takes the entries out of up to `buckets` buckets. Returns whether nothing is left.
    pub(crate) fn step(&mut self, buckets: u32, owner: &impl Home, mut take: impl FnMut(Tagged)) -> bool {
        for _ in 0..buckets {
            let Some(array) = self.arrays.last() else { return true };
            if self.at < array.count() {
                for (slot, entry) in array.bucket(self.at).occupied() {
                    array.forget(self.at, slot);
                    take(entry);
                }
                self.at += 1;
                array.give_back(self.at, false);
            } else {
                self.at = 0;
                self.arrays.pop().into_iter().for_each(|array| owner.retire(array));
            }
        }
        self.arrays.is_empty()
    }

    /// Memory of the arrays that are left.
    pub(crate) fn bytes(&self) -> usize {
        self.arrays.iter().map(Array::bytes).sum()
    }
}
