//! Owns: the entries of a stream in blocks, its ids and counters, ranges, deleting, trimming. Does not own: groups.
//!
//! The block that grows stands apart from the full ones: appending touches no tree, and a small stream has none.

use super::block::{Block, ENTRY_BYTES_MAX, Entry, StreamLimit};
use super::id::StreamId;
use super::undo::BlockUndo;
use std::collections::BTreeMap;
use std::collections::btree_map;

/// The id that XADD asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewId {
    /// `*`: the present, or right after the last one.
    Auto,
    /// `ms-*`.
    AutoSeq(u64),
    /// Given in full.
    Exact(StreamId),
}

/// Why an entry was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendError {
    /// The id is not above the last one.
    NotAbove,
    /// Names and values are longer than [`ENTRY_BYTES_MAX`].
    TooLarge,
}

/// Up to where to trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimTo {
    /// Until so many entries are left.
    Length(u64),
    /// Until no id is below.
    Id(StreamId),
}

/// What XADD and XTRIM say about trimming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Up to where.
    pub to: TrimTo,
    /// `~`: whole blocks only.
    pub approximate: bool,
    /// The most entries to remove; 0 for no limit.
    pub limit: u64,
}

/// Memory of a block beside its buffer: itself, its place in the tree, two headers of an allocator.
const BLOCK_BYTES: usize = size_of::<Block>() + 64;

/// The entries of a stream, in the order of their ids.
#[derive(Debug, Default)]
pub struct Log {
    pub(super) full: BTreeMap<StreamId, Box<Block>>,
    /// The last block. None is in `full` without it; none of either is empty.
    pub(super) tail: Option<Box<Block>>,
    len: u64,
    first_id: StreamId,
    last_id: StreamId,
    max_deleted_id: StreamId,
    entries_added: u64,
    pub(super) block_bytes: usize,
}

/// What a log counts, beside its blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogCounters {
    len: u64,
    first_id: StreamId,
    last_id: StreamId,
    max_deleted_id: StreamId,
    entries_added: u64,
}

/// Blocks as they were before they were changed, for whoever may take the change back.
pub(super) type KeptBlocks<'a> = Option<&'a mut Vec<(StreamId, BlockUndo)>>;

/// Memory of a block.
pub(super) fn block_bytes(block: &Block) -> usize {
    BLOCK_BYTES + block.capacity()
}

/// A copy has no spare room in its buffers, so its memory is counted anew.
impl Clone for Log {
    fn clone(&self) -> Self {
        let mut copy = Self { full: self.full.clone(), tail: self.tail.clone(), ..*self };
        copy.block_bytes = copy.counted_bytes();
        copy
    }
}

impl Log {
    /// Entries there are.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }
    /// Whether there are none. A stream without entries stays.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The first entry's id, or `0-0`.
    #[must_use]
    pub const fn first_id(&self) -> StreamId {
        self.first_id
    }
    /// The last id given, whether its entry is still there or not.
    #[must_use]
    pub const fn last_id(&self) -> StreamId {
        self.last_id
    }
    /// The largest id removed by XDEL.
    #[must_use]
    pub const fn max_deleted_id(&self) -> StreamId {
        self.max_deleted_id
    }
    /// Entries ever added.
    #[must_use]
    pub const fn entries_added(&self) -> u64 {
        self.entries_added
    }
    /// Blocks there are.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.full.len() + usize::from(self.tail.is_some())
    }
    pub(super) fn memory_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Memory counted block by block.
    pub(super) fn counted_bytes(&self) -> usize {
        self.blocks_from(StreamId::MIN).map(block_bytes).sum()
    }

    pub(super) const fn counters(&self) -> LogCounters {
        let Self { len, first_id, last_id, max_deleted_id, entries_added, .. } = *self;
        LogCounters { len, first_id, last_id, max_deleted_id, entries_added }
    }
    pub(super) const fn restore(&mut self, counters: LogCounters) {
        let LogCounters { len, first_id, last_id, max_deleted_id, entries_added } = counters;
        (self.len, self.entries_added) = (len, entries_added);
        (self.first_id, self.last_id, self.max_deleted_id) = (first_id, last_id, max_deleted_id);
    }
    /// What [`Log::append`] would change.
    pub(super) fn before_append(
        &self,
        id: StreamId,
        bytes: u64,
        limit: StreamLimit,
    ) -> (StreamId, BlockUndo) {
        match &self.tail {
            Some(tail) if tail.fits(bytes, limit) => (tail.first, BlockUndo::End(tail.end_mark())),
            _ => (id, BlockUndo::Absent),
        }
    }

    /// XSETID, and what RDB knows of a stream: sets the counters. The caller has checked them.
    pub(super) fn set_counters(&mut self, last_id: StreamId, entries_added: u64, max_deleted_id: StreamId) {
        self.last_id = last_id;
        self.entries_added = entries_added;
        self.max_deleted_id = max_deleted_id;
    }

    /// The id that an entry added now would get.
    pub fn next_id(&self, want: NewId, now_ms: u64) -> Result<StreamId, AppendError> {
        let last = self.last_id;
        let id = match want {
            NewId::Auto if now_ms > last.ms => Some(StreamId::new(now_ms, 0)),
            NewId::Auto => last.next(),
            NewId::AutoSeq(ms) if ms == last.ms => last.seq.checked_add(1).map(|seq| StreamId::new(ms, seq)),
            NewId::AutoSeq(ms) => Some(StreamId::new(ms, 0)),
            NewId::Exact(id) => Some(id),
        };
        id.filter(|&id| id > last).ok_or(AppendError::NotAbove)
    }

    /// Adds an entry at the end: O(1) amortised, and O(log blocks) when a block is full. The id must be above the last
    /// one.
    pub(super) fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        limit: StreamLimit,
    ) -> Result<(), AppendError> {
        if id <= self.last_id {
            return Err(AppendError::NotAbove);
        }
        let bytes = fields.clone().map(|(name, value)| (name.len() + value.len()) as u64).sum();
        if bytes > ENTRY_BYTES_MAX {
            return Err(AppendError::TooLarge);
        }
        if self.tail.as_ref().is_none_or(|tail| !tail.fits(bytes, limit)) {
            self.begin_block(id, fields.clone().map(|(name, _)| name));
        }
        self.push(id, fields);
        Ok(())
    }

    /// Closes the last block and begins one.
    fn begin_block<'f>(&mut self, first: StreamId, names: impl Iterator<Item = &'f [u8]> + Clone) {
        if let Some(mut tail) = self.tail.take() {
            let before = tail.capacity();
            tail.fit();
            self.block_bytes -= before - tail.capacity();
            self.full.insert(tail.first, tail);
        }
        let block = Box::new(Block::new(first, names));
        self.block_bytes += BLOCK_BYTES + block.capacity();
        self.tail = Some(block);
    }
    fn push<'f>(&mut self, id: StreamId, fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone) {
        let Some(tail) = &mut self.tail else { return };
        let before = tail.capacity();
        tail.push(id, fields);
        self.block_bytes += tail.capacity() - before;
        self.len += 1;
        self.entries_added += 1;
        self.last_id = id;
        if self.len == 1 {
            self.first_id = id;
        }
    }

    /// Adds an entry read from a dump. Where the dump begins a block, `block` gives the id that it counts from and the
    /// names that its entries share. The ids must ascend.
    pub(super) fn load<'f>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        block: Option<(StreamId, impl Iterator<Item = &'f [u8]> + Clone)>,
    ) -> Result<(), AppendError> {
        if id <= self.last_id {
            return Err(AppendError::NotAbove);
        }
        if let Some((first, names)) = block {
            if first > id || (self.tail.is_some() && first <= self.last_id) {
                return Err(AppendError::NotAbove);
            }
            self.begin_block(first, names);
        }
        if self.tail.is_none() {
            self.begin_block(id, fields.clone().map(|(name, _)| name));
        }
        self.push(id, fields);
        Ok(())
    }

    /// The blocks from the one that may hold `id` on.
    fn blocks_from(&self, id: StreamId) -> impl Iterator<Item = &Block> {
        let first = self.full.range(..=id).next_back().map_or(id, |(&first, _)| first);
        let full = self.full.range(first..).map(|(_, block)| &**block);
        full.chain(self.tail.as_deref())
    }

    /// Entries with `start <= id <= end`, ascending. Seeks in O(log blocks) and one block's entries.
    #[must_use]
    pub fn range(&self, start: StreamId, end: StreamId) -> Range<'_> {
        // When the last block begins at or before the start, the others need not be looked at.
        let in_tail = self.tail.as_ref().is_some_and(|tail| tail.first <= start);
        let full = if in_tail || start > end {
            self.full.range(StreamId::MAX..)
        } else {
            let first = self.full.range(..=start).next_back().map_or(start, |(&first, _)| first);
            self.full.range(first..)
        };
        let tail = self.tail.as_deref().filter(|_| start <= end);
        Range { full, tail, current: None, start, end }
    }

    /// Entries with `start <= id <= end`, descending.
    #[must_use]
    pub fn range_back(&self, start: StreamId, end: StreamId) -> RangeBack<'_> {
        let none = start > end;
        let full = if none { self.full.range(StreamId::MAX..) } else { self.full.range(..=end) };
        let tail = self.tail.as_deref().filter(|_| !none);
        RangeBack { full, tail, current: None, start, end }
    }

    /// The blocks in order, each as its entries: for dumps.
    pub fn blocks(&self) -> impl Iterator<Item = BlockRef<'_>> {
        self.blocks_from(StreamId::MIN).map(BlockRef)
    }

    /// The entry with this id.
    #[must_use]
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    fn block_mut(&mut self, id: StreamId) -> Option<&mut Block> {
        match &mut self.tail {
            Some(tail) if tail.first <= id => Some(tail),
            _ => self.full.range_mut(..=id).next_back().map(|(_, block)| &mut **block),
        }
    }

    /// Removes the entry with this id, if there is one: as XDEL does, leaving its mark in `max_deleted_id`.
    pub(super) fn delete(&mut self, id: StreamId, kept: KeptBlocks<'_>) -> bool {
        let Some(block) = self.block_mut(id) else { return false };
        let (at, _) = block.seek(id);
        if block.entry(at).is_none_or(|(entry, _)| entry.id != id) {
            return false;
        }
        let (first, before) = (block.first, block.capacity());
        if let Some(kept) = kept {
            kept.push((first, BlockUndo::Was(Box::new(block.clone()))));
        }
        block.remove_at(at);
        let (live, after) = (block.live, block.capacity());
        self.block_bytes -= before - after;
        if live == 0 {
            self.remove_block(first);
        }
        self.len -= 1;
        self.max_deleted_id = self.max_deleted_id.max(id);
        if id == self.first_id || self.len == 0 {
            self.find_first();
        }
        true
    }

    /// Removes a whole block.
    fn remove_block(&mut self, first: StreamId) -> Option<Box<Block>> {
        let block = if self.tail.as_ref().is_some_and(|tail| tail.first == first) {
            let last_full = self.full.pop_last().map(|(_, block)| block);
            std::mem::replace(&mut self.tail, last_full)
        } else {
            self.full.remove(&first)
        };
        self.block_bytes -= block.as_ref().map_or(0, |block| block_bytes(block));
        block
    }

    fn find_first(&mut self) {
        self.first_id =
            self.range(StreamId::MIN, StreamId::MAX).next().map_or(StreamId::MIN, |entry| entry.id);
    }

    /// Trims from the front: whole blocks in O(log blocks) each, then inside one. Returns how many entries went.
    pub(super) fn trim(&mut self, trim: Trim, mut kept: KeptBlocks<'_>) -> u64 {
        let mut removed = 0;
        while !matches!(trim.to, TrimTo::Length(length) if self.len <= length) {
            let Some(block) = self.blocks_from(StreamId::MIN).next() else { break };
            let (first, live) = (block.first, block.live);
            if trim.limit > 0 && removed + live > trim.limit {
                break;
            }
            let whole = match trim.to {
                TrimTo::Length(length) => self.len - live >= length,
                TrimTo::Id(id) => block.last < id,
            };
            if whole {
                let block = self.remove_block(first);
                if let (Some(block), Some(kept)) = (block, &mut kept) {
                    kept.push((first, BlockUndo::Was(block)));
                }
                self.len -= live;
                removed += live;
                continue;
            }
            if !trim.approximate {
                removed += self.trim_inside(first, trim.to, kept);
            }
            break;
        }
        if removed > 0 {
            self.find_first();
        }
        removed
    }

    fn trim_inside(&mut self, first: StreamId, to: TrimTo, kept: KeptBlocks<'_>) -> u64 {
        let len = self.len;
        let Some(block) = self.block_mut(first) else { return 0 };
        let (at, count) = match to {
            TrimTo::Length(length) => block.skip_entries(len - length),
            TrimTo::Id(id) => block.seek(id),
        };
        if let Some(kept) = kept {
            kept.push((first, BlockUndo::Was(Box::new(block.clone()))));
        }
        let before = block.capacity();
        block.remove_front(at, count);
        let (live, after) = (block.live, block.capacity());
        self.block_bytes -= before - after;
        self.len -= count;
        if live == 0 {
            self.remove_block(first);
        }
        count
    }

    /// Frees up to `budget` blocks, and says whether any are left.
    pub(super) fn free_some(&mut self, budget: &mut usize) -> bool {
        while *budget > 0 && self.full.pop_first().is_some() {
            *budget -= 1;
        }
        !self.full.is_empty()
    }

    /// How many entries had ever been added up to `id`, if that can be known: before the first entry, at the last, or
    /// in a stream without entries. Deletions in between make it unknown.
    #[must_use]
    pub fn position_of(&self, id: StreamId) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if self.len == 0 && id <= self.last_id {
            return Some(self.entries_added);
        }
        if !id.is_zero() && id < self.max_deleted_id {
            return None;
        }
        if id >= self.last_id {
            return (id == self.last_id).then_some(self.entries_added);
        }
        let unbroken = self.max_deleted_id.is_zero() || self.max_deleted_id < self.first_id;
        if !unbroken || id > self.first_id {
            return None;
        }
        // XSETID can set a smaller count than there are entries only where that was not checked: wrap as a counter.
        let before_first = self.entries_added.wrapping_sub(self.len);
        Some(if id == self.first_id { before_first.wrapping_add(1) } else { before_first })
    }

    /// Whether XDEL has removed an entry at or after `start`, as far as is known.
    #[must_use]
    pub fn has_gap_from(&self, start: StreamId) -> bool {
        self.len > 0 && !self.max_deleted_id.is_zero() && start <= self.max_deleted_id
    }
}

/// A block, for dumps.
#[derive(Clone, Copy, Debug)]
pub struct BlockRef<'a>(&'a Block);

impl<'a> BlockRef<'a> {
    /// Its entries.
    pub fn entries(self) -> impl Iterator<Item = Entry<'a>> {
        let mut at = self.0.start();
        std::iter::from_fn(move || {
            let (entry, next) = self.0.entry(at)?;
            at = next;
            Some(entry)
        })
    }
    /// The id that a dump counts the others from.
    #[must_use]
    pub const fn first_id(self) -> StreamId {
        self.0.first
    }
    /// The names that most of its entries share.
    pub fn names(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.0.names_iter()
    }
    /// Number of entries.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.0.live
    }
    /// Whether it has none, which a block in a stream never has.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.live == 0
    }
}

/// Ascending entries.
#[derive(Debug)]
pub struct Range<'a> {
    full: btree_map::Range<'a, StreamId, Box<Block>>,
    tail: Option<&'a Block>,
    current: Option<(&'a Block, usize)>,
    start: StreamId,
    end: StreamId,
}

impl<'a> Iterator for Range<'a> {
    type Item = Entry<'a>;
    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            if let Some((block, at)) = self.current
                && let Some((entry, next)) = block.entry(at)
            {
                self.current = Some((block, next));
                return (entry.id <= self.end).then_some(entry);
            }
            let block = self.full.next().map(|(_, block)| &**block).or_else(|| self.tail.take())?;
            self.current = Some((block, block.seek(self.start).0));
        }
    }
}

/// Descending entries.
#[derive(Debug)]
pub struct RangeBack<'a> {
    full: btree_map::Range<'a, StreamId, Box<Block>>,
    tail: Option<&'a Block>,
    current: Option<(&'a Block, usize)>,
    start: StreamId,
    end: StreamId,
}

impl<'a> Iterator for RangeBack<'a> {
    type Item = Entry<'a>;
    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            if let Some((block, at)) = self.current
                && let Some(before) = block.before(at)
            {
                self.current = Some((block, before));
                let (entry, _) = block.entry(before)?;
                return (entry.id >= self.start).then_some(entry);
            }
            let tail = self.tail.take().filter(|tail| tail.first <= self.end);
            let block = tail.or_else(|| self.full.next_back().map(|(_, block)| &**block))?;
            // Only the first block visited can hold entries above the end.
            let at = match self.end.next() {
                Some(after) if block.last > self.end => block.seek(after).0,
                _ => block.end(),
            };
            self.current = Some((block, at));
        }
    }
}
