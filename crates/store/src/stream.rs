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

/// Memory of a group beside its name, its consumers and what they have pending.
const GROUP_BYTES: usize = size_of::<Group>() * 3 / 2 + 48;

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    log: Log,
    groups: BTreeMap<Box<[u8]>, Group>,
    /// Memory of the groups, kept so that accounting is constant time.
    groups_bytes: usize,
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
        self.log.memory_bytes() + self.groups_bytes
    }

    /// Groups with their names, in the order of these.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> + '_ {
        self.groups.iter().map(|(name, group)| (&**name, group))
    }
    /// The group of this name.
    #[must_use]
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }
    /// Removes a group.
    fn take_group(&mut self, name: &[u8]) -> Option<Group> {
        let group = self.groups.remove(name)?;
        self.groups_bytes -= GROUP_BYTES + name.len() + group.memory_bytes();
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
