//! Owns: the stream type: a log of entries and its consumer groups. Does not own: keys, blocking, reading ids and
//! options that clients write.
//!
//! | module | owns |
//! |---|---|
//! | `id` | ids, their order and text |
//! | `block` | entries packed into a buffer |
//! | `log` | blocks in order; adding, ranges, deleting, trimming, counters |
//! | `group` | consumers, pending entries, lag |
//! | `change` | [`StreamMut`], [`GroupMut`]: every way to change one, which tells what it does |
//! | `undo` | what takes a change back |
//!
//! A stream without entries stays, until its key is deleted.

mod block;
mod change;
mod group;
mod id;
mod log;
mod undo;
mod varint;

pub use block::{ENTRY_BYTES_MAX, Entry, Fields, StreamLimit};
pub use change::{GroupMut, StreamMut};
pub use group::{Claim as StreamClaim, Claimed, Consumer, ConsumerId, Group, Pending};
pub use id::{ID_TEXT_BYTES_MAX, StreamId};
pub use log::{AppendError, BlockRef, Log, NewId, Range, RangeBack, Trim, TrimTo};

pub(crate) use undo::StreamUndo;

use std::collections::BTreeMap;

/// Memory of groups beside their names, their consumers and what is pending in them.
fn groups_bytes(groups: usize) -> usize {
    tree_bytes(groups, size_of::<(Box<[u8]>, Box<Group>)>()) + groups * size_of::<Group>()
}

/// Memory of a B-tree of so many items of so many bytes each that came in their order: nodes have room for eleven, and
/// a full leaf keeps six, gives one to the node above, and the rest to the next leaf.
const fn tree_bytes(items: usize, item_bytes: usize) -> usize {
    const ROOM: usize = 11;
    let leaf = ROOM * item_bytes + 16;
    match items {
        0 => 0,
        1..=ROOM => leaf,
        _ => {
            let leaves = (items + 2) / 7;
            leaves * leaf + leaves.div_ceil(7) * (leaf + (ROOM + 1) * size_of::<usize>())
        }
    }
}

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    log: Log,
    /// Boxed: most streams have one, and a leaf room for eleven.
    groups: BTreeMap<Box<[u8]>, Box<Group>>,
    /// Memory of what is in the groups, and their names, kept so that accounting is constant time.
    within_bytes: usize,
}

impl Stream {
    /// The entries.
    #[must_use]
    pub const fn log(&self) -> &Log {
        &self.log
    }
    /// Memory beyond the struct itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.log.memory_bytes() + groups_bytes(self.groups.len()) + self.within_bytes
    }

    /// Groups with their names, in the order of these.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> + '_ {
        self.groups.iter().map(|(name, group)| (&**name, &**group))
    }
    /// The group of this name.
    #[must_use]
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name).map(|group| &**group)
    }
    /// Adds a group, whose name is not there.
    fn put_group(&mut self, name: Box<[u8]>, group: Box<Group>) {
        self.within_bytes += name.len() + group.memory_bytes();
        self.groups.insert(name, group);
    }
    /// Removes a group.
    fn take_group(&mut self, name: &[u8]) -> Option<Box<Group>> {
        let group = self.groups.remove(name)?;
        self.within_bytes -= name.len() + group.memory_bytes();
        Some(group)
    }

    /// Frees up to `budget` blocks and pending entries of a stream that nobody needs any more, so that freeing a huge
    /// one can be spread. Says whether more is left; what is left at the end is small.
    pub fn free_some(&mut self, mut budget: usize) -> bool {
        if self.log.free_some(&mut budget) {
            return true;
        }
        while let Some(mut group) = self.groups.last_entry() {
            if group.get_mut().free_some(&mut budget) {
                return true;
            }
            group.remove();
        }
        false
    }
}

#[cfg(test)]
mod tests;
