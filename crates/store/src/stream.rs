//! Owns: the stream type: a log of entries and its consumer groups. Does not own: keys, blocking, reading ids and
//! options that clients write, and effects.
//!
//! | module | owns |
//! |---|---|
//! | `id` | ids, their order and text |
//! | `block` | entries packed into a buffer |
//! | `log` | blocks in order; adding, ranges, deleting, trimming, counters |
//! | `group` | consumers, pending entries, lag |
//!
//! A stream without entries stays, until its key is deleted.

mod block;
mod group;
mod id;
mod log;
mod varint;

pub use block::{ENTRY_BYTES_MAX, Entry, Fields, StreamLimit};
pub use group::{Claim as StreamClaim, Claimed, Consumer, ConsumerId, Group, Pending};
pub use id::{ID_TEXT_BYTES_MAX, StreamId};
pub use log::{AppendError, BlockRef, Log, NewId, Range, RangeBack, Trim, TrimTo};

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

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
    /// The entries, to change them.
    pub const fn log_mut(&mut self) -> &mut Log {
        &mut self.log
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
    /// The group of this name, to change it, beside the entries.
    pub fn group_mut(&mut self, name: &[u8]) -> Option<(&Log, GroupMut<'_>)> {
        let group = self.groups.get_mut(name)?;
        let bytes_before = group.memory_bytes();
        Some((&self.log, GroupMut { group, bytes_before, groups_bytes: &mut self.groups_bytes }))
    }
    /// Adds a group. `false` if there is one of this name.
    pub fn create_group(&mut self, name: &[u8], group: Group) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        self.groups_bytes += GROUP_BYTES + name.len() + group.memory_bytes();
        self.groups.insert(name.into(), group);
        true
    }
    /// Removes a group. What it held may be large: drop it after the lock.
    pub fn remove_group(&mut self, name: &[u8]) -> Option<Group> {
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

/// A group open for change. Its memory is counted when this is dropped.
#[derive(Debug)]
pub struct GroupMut<'a> {
    group: &'a mut Group,
    bytes_before: usize,
    groups_bytes: &'a mut usize,
}

impl Deref for GroupMut<'_> {
    type Target = Group;
    fn deref(&self) -> &Group {
        self.group
    }
}

impl DerefMut for GroupMut<'_> {
    fn deref_mut(&mut self) -> &mut Group {
        self.group
    }
}

impl Drop for GroupMut<'_> {
    fn drop(&mut self) {
        *self.groups_bytes = *self.groups_bytes + self.group.memory_bytes() - self.bytes_before;
    }
}

#[cfg(test)]
mod tests;
