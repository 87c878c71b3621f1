//! Owns: the list type: one packed chunk while it is small, then a row of chunks with O(1) ends. Does not own: keys,
//! blocking.
//!
//! A walk to an index goes over chunks from the nearer end, then over elements from the nearer end of a chunk: an 8 KiB
//! chunk holds about 450 elements of 16 bytes. The limits are those of `list-max-listpack-size`, given with each call
//! that may grow the list, since CONFIG SET may change them.

mod change;
mod chunk;

use crate::entry::PACKED_BYTES_MAX;
use crate::prefetch;
pub use change::ListMut;
use chunk::{Chunk, ChunkRef, packed_bytes};
use std::collections::VecDeque;

/// What a compact list counts besides its elements: the frame of a listpack.
const FRAME_BYTES: usize = 7;

/// No limit: for a list that is compact already and stays so.
const COMPACT: ListLimit = ListLimit { chunk_bytes_max: u32::MAX, chunk_count_max: u32::MAX };

/// When a chunk is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimit {
    /// Packed bytes of a chunk.
    pub chunk_bytes_max: u32,
    /// Elements of a chunk.
    pub chunk_count_max: u32,
}

impl ListLimit {
    /// From `list-max-listpack-size`: a positive number of elements (and 8 KiB), or −1 to −5 for 4 to 64 KiB.
    #[must_use]
    pub const fn from_config(size: i64) -> Self {
        match size {
            1.. => Self {
                chunk_bytes_max: 8192,
                chunk_count_max: if size > u32::MAX as i64 { u32::MAX } else { size as u32 },
            },
            0 => Self { chunk_bytes_max: 8192, chunk_count_max: 1 },
            _ => {
                let step = if size < -5 { 5 } else { -size };
                Self { chunk_bytes_max: 2048 << step, chunk_count_max: u32::MAX }
            }
        }
    }
    /// Whether a single chunk is too small for what is to come. As Valkey has it: bytes that come count without what
    /// is stored around them, and one element alone may be too much.
    fn is_exceeded(self, chunk: &Chunk, bytes: usize, count: usize) -> bool {
        chunk.packed() + FRAME_BYTES + bytes > self.chunk_bytes_max as usize
            || chunk.count() + count > self.chunk_count_max as usize
    }
    fn fits(self, chunk: &Chunk, element: &[u8]) -> bool {
        chunk.count() == 0
            || (chunk.packed() + packed_bytes(element.len()) <= self.chunk_bytes_max as usize
                && chunk.count() < self.chunk_count_max as usize)
    }
}

impl Default for ListLimit {
    fn default() -> Self {
        Self::from_config(-2)
    }
}

#[derive(Clone, Debug)]
enum Repr {
    Compact(Chunk),
    /// Never without chunks; no chunk is empty.
    Chunked(VecDeque<Chunk>),
}

/// A list of byte strings; [`ListMut`] changes it. An element is at most 4 GiB, which the protocol's limits keep far
/// away.
#[derive(Clone, Debug)]
pub struct List {
    repr: Repr,
    len: usize,
    /// Memory of the chunks, kept so that accounting is constant time.
    chunk_bytes: usize,
}

/// One of a list's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Left.
    Front,
    /// Right.
    Back,
}

impl Default for List {
    fn default() -> Self {
        Self { repr: Repr::Compact(Chunk::bare()), len: 0, chunk_bytes: 0 }
    }
}

impl List {
    /// Elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    pub(crate) const fn is_compact(&self) -> bool {
        matches!(self.repr, Repr::Compact(_))
    }
    /// `listpack` or `quicklist`.
    #[must_use]
    pub const fn encoding(&self) -> &'static str {
        match self.repr {
            Repr::Compact(_) => "listpack",
            Repr::Chunked(_) => "quicklist",
        }
    }
    /// Memory beyond the struct itself.
    #[inline]
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.chunk_bytes
            + match &self.repr {
                Repr::Compact(_) => 0,
                Repr::Chunked(chunks) => chunks.capacity() * size_of::<Chunk>(),
            }
    }

    /// Asks for what it leads to: its ends.
    pub(crate) fn prefetch(&self) {
        if let Repr::Chunked(chunks) = &self.repr {
            chunks.front().into_iter().chain(chunks.back()).for_each(prefetch::value);
        }
    }
    /// Frees up to `chunks` chunks from the end of a list that nobody refers to any more. Returns whether that was all.
    pub(crate) fn free_step(&mut self, chunks: usize) -> bool {
        let Repr::Chunked(row) = &mut self.repr else { return true };
        for _ in 0..chunks {
            let Some(chunk) = row.pop_back() else { return true };
            self.chunk_bytes -= chunk.capacity();
        }
        row.is_empty()
    }

    fn chunk_count(&self) -> usize {
        match &self.repr {
            Repr::Compact(_) => 1,
            Repr::Chunked(chunks) => chunks.len(),
        }
    }
    fn chunk(&self, at: usize) -> &Chunk {
        match &self.repr {
            Repr::Compact(chunk) => chunk,
            Repr::Chunked(chunks) => &chunks[at],
        }
    }
    /// Changes one chunk and keeps the memory count.
    fn change<R>(&mut self, at: usize, change: impl FnOnce(&mut Chunk) -> R) -> R {
        let chunk = match &mut self.repr {
            Repr::Compact(chunk) => chunk,
            Repr::Chunked(chunks) => &mut chunks[at],
        };
        let before = chunk.capacity();
        let result = change(chunk);
        self.chunk_bytes = self.chunk_bytes + chunk.capacity() - before;
        result
    }
    /// The row of chunks, made from the single one if need be. None of them is bare.
    fn row(&mut self) -> &mut VecDeque<Chunk> {
        if matches!(self.repr, Repr::Compact(_)) {
            self.change(0, Chunk::fill_in);
        }
        if let Repr::Compact(chunk) = &mut self.repr {
            self.repr = Repr::Chunked(VecDeque::from([std::mem::take(chunk)]));
        }
        match &mut self.repr {
            Repr::Chunked(chunks) => chunks,
            Repr::Compact(_) => unreachable!("made a row just now"),
        }
    }
    fn insert_chunk(&mut self, at: usize, chunk: Chunk) {
        self.chunk_bytes += chunk.capacity();
        self.row().insert(at, chunk);
    }
    /// After a removal: drops chunk `at` if it is empty, and goes back to one chunk when that is at most half full.
    fn settle(&mut self, at: usize, limit: ListLimit) {
        let Repr::Chunked(chunks) = &mut self.repr else { return };
        if chunks[at].count() == 0 {
            self.chunk_bytes -= chunks[at].capacity();
            chunks.remove(at);
        }
        if chunks.len() > 1 {
            return;
        }
        let small = chunks.front().is_none_or(|last| {
            last.packed() + FRAME_BYTES <= limit.chunk_bytes_max as usize / 2
                && last.count() <= limit.chunk_count_max as usize / 2
        });
        if small {
            self.repr = Repr::Compact(chunks.pop_front().unwrap_or_default());
        }
    }

    /// Makes a compact list a row of chunks if `count` more elements of `bytes` together are too much for it. What adds
    /// several elements at once calls it before the first.
    pub(crate) fn expect(&mut self, bytes: usize, count: usize, limit: ListLimit) {
        if let Repr::Compact(chunk) = &self.repr
            && limit.is_exceeded(chunk, bytes, count)
        {
            self.row();
        }
    }
    /// Whether an element goes into chunk `at`: always if it is the only one of a list that stays compact.
    fn has_room(&mut self, at: usize, element: &[u8], limit: ListLimit) -> bool {
        self.expect(element.len(), 1, limit);
        self.fill_in_for(element);
        matches!(self.repr, Repr::Compact(_)) || limit.fits(self.chunk(at), element)
    }

    /// Before an element comes: what becomes too large for an entry is bare no longer.
    fn fill_in_for(&mut self, element: &[u8]) {
        if let Repr::Compact(chunk) = &self.repr
            && chunk.is_bare()
            && chunk.bytes() + packed_bytes(element.len()) > PACKED_BYTES_MAX
        {
            self.change(0, Chunk::fill_in);
        }
    }

    /// Adds an element at an end: O(1) amortised.
    pub(crate) fn push(&mut self, end: End, element: &[u8], limit: ListLimit) {
        let at = if end == End::Front { 0 } else { self.chunk_count() - 1 };
        if self.has_room(at, element, limit) {
            self.change(at, |chunk| match end {
                End::Front => chunk.push_front(element),
                End::Back => chunk.push_back(element),
            });
        } else {
            // What stands behind the growing end will not grow soon.
            self.change(at, Chunk::fit);
            let mut chunk = Chunk::default();
            chunk.push_back(element);
            self.insert_chunk(if end == End::Front { 0 } else { at + 1 }, chunk);
        }
        self.len += 1;
    }

    /// Removes the element at an end after showing it to `taken`: O(1) amortised.
    pub(crate) fn pop<R>(&mut self, end: End, limit: ListLimit, taken: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let at = if end == End::Front { 0 } else { self.chunk_count() - 1 };
        let result = self.change(at, |chunk| match end {
            End::Front => chunk.pop_front(taken),
            End::Back => chunk.pop_back(taken),
        })?;
        self.len -= 1;
        self.settle(at, limit);
        Some(result)
    }

    /// Replaces the element at `index`. Says whether there is one.
    pub(crate) fn set(&mut self, index: usize, element: &[u8], limit: ListLimit) -> bool {
        if index >= self.len {
            return false;
        }
        let (at, inner) = self.locate(index);
        self.fill_in_for(element);
        self.change(at, |chunk| chunk.remove_at(chunk.offset(inner)));
        self.len -= 1;
        if limit.fits(self.chunk(at), element) {
            self.change(at, |chunk| chunk.insert_at(chunk.offset(inner), element));
            self.len += 1;
            self.settle(at, limit);
        } else {
            self.settle(at, limit);
            self.insert(index, element, limit);
        }
        true
    }

    /// Inserts before `index` (at most `len`). A full chunk is split there.
    pub(crate) fn insert(&mut self, index: usize, element: &[u8], limit: ListLimit) {
        if index == 0 {
            return self.push(End::Front, element, limit);
        }
        if index >= self.len {
            return self.push(End::Back, element, limit);
        }
        let (at, inner) = self.locate(index);
        self.len += 1;
        if self.has_room(at, element, limit) {
            return self.change(at, |chunk| chunk.insert_at(chunk.offset(inner), element));
        }
        if inner > 0 {
            let rest = self.change(at, |chunk| chunk.split_off(chunk.offset(inner), inner));
            self.insert_chunk(at + 1, rest);
            if limit.fits(self.chunk(at), element) {
                return self.change(at, |chunk| chunk.push_back(element));
            }
        }
        let mut chunk = Chunk::default();
        chunk.push_back(element);
        self.insert_chunk(if inner > 0 { at + 1 } else { at }, chunk);
    }

    /// Removes elements equal to `element`: `count` from the front, −`count` from the back, all for 0. Returns how
    /// many.
    pub(crate) fn remove(&mut self, count: i64, element: &[u8], limit: ListLimit) -> usize {
        let wanted =
            if count == 0 { usize::MAX } else { usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) };
        let mut removed = 0;
        let mut visited = 0;
        while removed < wanted && visited < self.chunk_count() && self.len > 0 {
            let at = if count >= 0 { visited } else { self.chunk_count() - 1 - visited };
            let before = self.chunk_count();
            let gone = self.change(at, |chunk| remove_from(chunk, count < 0, wanted - removed, element));
            removed += gone;
            self.len -= gone;
            self.settle(at, limit);
            if self.chunk_count() == before {
                visited += 1;
            }
        }
        removed
    }

    /// Removes the element at `index`, if there is one.
    pub(crate) fn remove_at(&mut self, index: usize, limit: ListLimit) {
        if index < self.len {
            let (at, inner) = self.locate(index);
            self.change(at, |chunk| chunk.remove_at(chunk.offset(inner)));
            self.len -= 1;
            self.settle(at, limit);
        }
    }

    /// Keeps the elements `start..end`.
    pub(crate) fn trim(&mut self, start: usize, end: usize, limit: ListLimit) {
        let end = end.min(self.len);
        if start >= end {
            *self = Self::default();
            return;
        }
        self.cut(End::Back, self.len - end, limit);
        self.cut(End::Front, start, limit);
    }

    /// Removes `count` elements from an end: whole chunks at once.
    fn cut(&mut self, end: End, count: usize, limit: ListLimit) {
        let mut left = count;
        while left > 0 {
            let at = if end == End::Front { 0 } else { self.chunk_count() - 1 };
            let here = self.chunk(at).count().min(left);
            self.change(at, |chunk| {
                let keep = chunk.count() - here;
                let (from, to) = match end {
                    End::Front => (chunk.first_offset(), chunk.offset(here)),
                    End::Back => (chunk.offset(keep), chunk.end_offset()),
                };
                chunk.remove_span(from, to, here);
            });
            self.len -= here;
            left -= here;
            self.settle(at, limit);
        }
    }

    /// To read it.
    #[must_use]
    pub fn view(&self) -> ListRef<'_> {
        let row = match &self.repr {
            Repr::Compact(chunk) => Row::Compact(chunk.as_ref()),
            Repr::Chunked(chunks) => Row::Chunked(chunks),
        };
        ListRef { row, len: self.len }
    }
    fn locate(&self, index: usize) -> (usize, usize) {
        self.view().locate(index)
    }
    /// See [`ListRef::peek`].
    #[must_use]
    pub fn peek(&self, end: End) -> Option<&[u8]> {
        self.view().peek(end)
    }
    /// See [`ListRef::get`].
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.view().get(index)
    }
    /// See [`ListRef::iter_from`].
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = &[u8]> + '_ {
        self.view().iter_from(index)
    }
    /// See [`ListRef::iter_back_from`].
    pub fn iter_back_from(&self, end: usize) -> impl Iterator<Item = &[u8]> + '_ {
        self.view().iter_back_from(end)
    }
    /// All elements.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + '_ {
        self.iter_from(0)
    }

    /// The elements of a compact list that is bare.
    pub(crate) fn packed(&self) -> Option<&[u8]> {
        match &self.repr {
            Repr::Compact(chunk) if chunk.is_bare() => Some(chunk.elements()),
            _ => None,
        }
    }
    /// A compact list, from what [`List::packed`] gave.
    pub(crate) fn from_packed(bytes: Vec<u8>) -> Self {
        let chunk = Chunk::from_elements(bytes);
        Self { len: chunk.count(), chunk_bytes: chunk.capacity(), repr: Repr::Compact(chunk) }
    }
    /// The buffer of a compact list, to be used again.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        if let Repr::Compact(chunk) = self.repr { chunk.into_buffer() } else { Vec::new() }
    }
}

/// A list, to be read. What it lends lives as long as the list is not changed.
#[derive(Clone, Copy, Debug)]
pub struct ListRef<'a> {
    row: Row<'a>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
enum Row<'a> {
    Compact(ChunkRef<'a>),
    Chunked(&'a VecDeque<Chunk>),
}

impl<'a> ListRef<'a> {
    /// A compact list inside an entry. Counts the elements: a walk over a good KiB at most.
    pub(crate) fn packed(bytes: &'a [u8]) -> Self {
        let chunk = ChunkRef::of_elements(bytes);
        Self { len: chunk.count(), row: Row::Compact(chunk) }
    }
    /// A copy, for COPY.
    #[must_use]
    pub fn duplicate(self) -> List {
        match self.row {
            Row::Compact(_) => {
                let mut list = List::default();
                self.iter().for_each(|element| list.push(End::Back, element, COMPACT));
                list
            }
            Row::Chunked(chunks) => {
                let chunks = chunks.clone();
                let chunk_bytes = chunks.iter().map(Chunk::capacity).sum();
                List { repr: Repr::Chunked(chunks), len: self.len, chunk_bytes }
            }
        }
    }
    /// Elements.
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
    /// `listpack` or `quicklist`.
    #[must_use]
    pub const fn encoding(self) -> &'static str {
        match self.row {
            Row::Compact(_) => "listpack",
            Row::Chunked(_) => "quicklist",
        }
    }
    fn chunk_count(self) -> usize {
        match self.row {
            Row::Compact(_) => 1,
            Row::Chunked(chunks) => chunks.len(),
        }
    }
    fn chunk(self, at: usize) -> ChunkRef<'a> {
        match self.row {
            Row::Compact(chunk) => chunk,
            Row::Chunked(chunks) => chunks[at].as_ref(),
        }
    }
    /// The element at an end.
    #[must_use]
    pub fn peek(self, end: End) -> Option<&'a [u8]> {
        match end {
            End::Front => self.get(0),
            End::Back => self.get(self.len.wrapping_sub(1)),
        }
    }

    /// The chunk that holds `index` (below `len`), and the index inside it. Walks chunks from the nearer end.
    fn locate(self, index: usize) -> (usize, usize) {
        let Row::Chunked(chunks) = self.row else { return (0, index) };
        if index * 2 <= self.len {
            let mut left = index;
            for (at, chunk) in chunks.iter().enumerate() {
                if left < chunk.count() {
                    return (at, left);
                }
                left -= chunk.count();
            }
        } else {
            let mut after = self.len - index;
            for (at, chunk) in chunks.iter().enumerate().rev() {
                if after <= chunk.count() {
                    return (at, chunk.count() - after);
                }
                after -= chunk.count();
            }
        }
        unreachable!("the counts of the chunks add up to len")
    }

    /// The element at `index`.
    #[must_use]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        if index >= self.len {
            return None;
        }
        let (at, inner) = self.locate(index);
        let chunk = self.chunk(at);
        chunk.element(chunk.offset(inner)).map(|(element, _)| element)
    }

    /// The elements from `index` on.
    pub fn iter_from(self, index: usize) -> impl Iterator<Item = &'a [u8]> {
        let (mut at, inner) = if index < self.len { self.locate(index) } else { (self.chunk_count(), 0) };
        let mut offset = if at < self.chunk_count() { self.chunk(at).offset(inner) } else { 0 };
        std::iter::from_fn(move || {
            while at < self.chunk_count() {
                if let Some((element, next)) = self.chunk(at).element(offset) {
                    offset = next;
                    return Some(element);
                }
                at += 1;
                offset = if at < self.chunk_count() { self.chunk(at).first_offset() } else { 0 };
            }
            None
        })
    }

    /// Shows up to `count` elements from `index` on: what [`Self::iter_from`] gives, for half of the time.
    #[inline]
    pub fn visit(self, index: usize, count: usize, mut visit: impl FnMut(&'a [u8])) {
        let mut left = count.min(self.len.saturating_sub(index));
        if left == 0 {
            return;
        }
        let (mut at, inner) = self.locate(index);
        let mut offset = self.chunk(at).offset(inner);
        loop {
            let chunk = self.chunk(at);
            while let Some((element, next)) = chunk.element(offset) {
                visit(element);
                left -= 1;
                if left == 0 {
                    return;
                }
                offset = next;
            }
            at += 1;
            if at >= self.chunk_count() {
                return;
            }
            offset = self.chunk(at).first_offset();
        }
    }

    /// The elements backwards, from the last one before `end` on.
    pub fn iter_back_from(self, end: usize) -> impl Iterator<Item = &'a [u8]> {
        let end = end.min(self.len);
        // A bare chunk is walked over once, not once for each element.
        let mut bare: Option<Vec<&'a [u8]>> = match self.row {
            Row::Compact(chunk) if chunk.is_bare() => Some(self.iter_from(0).take(end).collect()),
            _ => None,
        };
        let (mut at, inner) = if end > 0 { self.locate(end - 1) } else { (0, 0) };
        let mut offset =
            if end > 0 { self.chunk(at).offset(inner + 1) } else { self.chunk(0).first_offset() };
        std::iter::from_fn(move || {
            if let Some(elements) = &mut bare {
                return elements.pop();
            }
            loop {
                if let Some((element, start)) = self.chunk(at).element_before(offset) {
                    offset = start;
                    return Some(element);
                }
                at = at.checked_sub(1)?;
                offset = self.chunk(at).end_offset();
            }
        })
    }

    /// All elements.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.iter_from(0)
    }
}

/// Removes up to `wanted` elements equal to `element` from one chunk.
fn remove_from(chunk: &mut Chunk, from_back: bool, wanted: usize, element: &[u8]) -> usize {
    let mut removed = 0;
    let mut at = if from_back { chunk.end_offset() } else { chunk.first_offset() };
    while removed < wanted {
        let end_before = chunk.end_offset() - at;
        let start_before = chunk.first_offset();
        let (found, from, next) = if from_back {
            let Some((bytes, start)) = chunk.element_before(at) else { break };
            (bytes == element, start, start)
        } else {
            let Some((bytes, next)) = chunk.element(at) else { break };
            (bytes == element, at, next)
        };
        if !found {
            at = next;
            continue;
        }
        let size = if from_back { at - from } else { next - from };
        chunk.remove_at(from);
        removed += 1;
        if chunk.count() == 0 {
            break;
        }
        // The chunk may have moved its elements: count from the end, which a removal before it leaves alone.
        at = chunk.end_offset() - if from_back { end_before } else { end_before - size };
        debug_assert!(at >= chunk.first_offset() || start_before > 0);
    }
    removed
}

#[cfg(test)]
mod tests;
