//! Owns: one buffer of list elements, packed, with room at both ends. Does not own: how many chunks a list has.
//!
//! An element can be walked over from either side:
//!
//! ```text
//!        start                                                       len
//! +-----+---------------------------------------+-------------------+
//! | gap | length, LEB128 | bytes | size, LEB128 backwards |  next …  |
//! +-----+---------------------------------------+-------------------+
//! ```
//! `size` counts the length and the bytes before it; its last byte comes first when read from the end. An element of up
//! to 126 bytes costs 2 bytes. A *bare* chunk leaves `size` out, and is walked over from the front only: a short list
//! inside its entry, where each byte counts and a walk is short. The gap makes pushes at the front O(1) amortised: it
//! is widened by up to [`GAP_BYTES_MAX`] at a time, and what pops leave behind is closed when it is more than half of
//! the buffer.

use crate::leb;

/// The most room made in front at once.
const GAP_BYTES_MAX: usize = 512;
/// The longest LEB128 of a length: 5 bytes say 2^35 − 1.
const VARINT_BYTES_MAX: usize = 5;
/// Up to here the length and the size of an element take a byte each.
const SHORT_BYTES_MAX: usize = 126;

#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    buf: Vec<u8>,
    start: u32,
    count: u32,
    /// Bytes of the sizes that a bare chunk leaves out.
    left_out: u32,
    bare: bool,
}

/// A chunk, to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkRef<'a> {
    buf: &'a [u8],
    start: u32,
    count: u32,
    bare: bool,
}

impl<'a> ChunkRef<'a> {
    /// Bare elements that stand alone. Counts them: a walk.
    pub(super) fn of_elements(buf: &'a [u8]) -> Self {
        let mut chunk = Self { buf, start: 0, count: 0, bare: true };
        let mut at = 0;
        while let Some((_, next)) = chunk.element(at) {
            at = next;
            chunk.count += 1;
        }
        chunk
    }
    pub(super) const fn count(self) -> usize {
        self.count as usize
    }
    pub(super) const fn is_bare(self) -> bool {
        self.bare
    }
    /// The element at a byte offset: its bytes, and the offset after it.
    #[inline]
    pub(super) fn element(self, at: usize) -> Option<(&'a [u8], usize)> {
        let rest = self.buf.get(at..).filter(|rest| !rest.is_empty())?;
        let (len, head) = leb::read(rest);
        let size = head + len;
        let tail = if self.bare { 0 } else { varint_bytes(size) };
        Some((&self.buf[at + head..at + size], at + size + tail))
    }
    /// The element before a byte offset: its bytes, and its own offset.
    pub(super) fn element_before(self, at: usize) -> Option<(&'a [u8], usize)> {
        if at <= self.start as usize {
            return None;
        }
        if self.bare {
            let mut start = self.first_offset();
            loop {
                let (element, next) = self.element(start)?;
                if next >= at {
                    return Some((element, start));
                }
                start = next;
            }
        }
        let last = self.buf[at - 1];
        let (size, tail) = if last < 128 { (last as usize, 1) } else { read_size_back(&self.buf[..at]) };
        let start = at - tail - size;
        let (len, head) = leb::read(&self.buf[start..]);
        Some((&self.buf[start + head..start + head + len], start))
    }
    pub(super) const fn first_offset(self) -> usize {
        self.start as usize
    }
    pub(super) const fn end_offset(self) -> usize {
        self.buf.len()
    }
    /// The offset of element `index`, from the nearer end. `index` may be the count: the end.
    pub(super) fn offset(self, index: usize) -> usize {
        if self.bare || index * 2 <= self.count() {
            let mut at = self.first_offset();
            for _ in 0..index {
                at = self.element(at).map_or(at, |(_, next)| next);
            }
            at
        } else {
            let mut at = self.end_offset();
            for _ in index..self.count() {
                at = self.element_before(at).map_or(at, |(_, start)| start);
            }
            at
        }
    }
}

fn read_size_back(bytes: &[u8]) -> (usize, usize) {
    let mut value = 0;
    for (at, &byte) in bytes.iter().rev().enumerate().take(VARINT_BYTES_MAX) {
        value |= ((byte & 127) as usize) << (7 * at);
        if byte < 128 {
            return (value, at + 1);
        }
    }
    (value, VARINT_BYTES_MAX)
}

#[inline]
const fn varint_bytes(value: usize) -> usize {
    let mut bytes = 1;
    let mut left = value >> 7;
    while left > 0 {
        bytes += 1;
        left >>= 7;
    }
    bytes
}

/// Bytes that an element takes in a chunk.
#[inline]
pub(super) const fn packed_bytes(len: usize) -> usize {
    if len <= SHORT_BYTES_MAX {
        return len + 2;
    }
    let size = varint_bytes(len) + len;
    size + varint_bytes(size)
}

fn write_varint(out: &mut [u8], mut value: usize) {
    let last = out.len() - 1;
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = (value & 127) as u8 | if at < last { 128 } else { 0 };
        value >>= 7;
    }
}

/// Writes an element over `out`, which has exactly its packed size, or that without the size behind.
#[inline]
fn write_element(out: &mut [u8], element: &[u8]) {
    let len = element.len();
    if len > SHORT_BYTES_MAX {
        return write_long(out, element);
    }
    out[0] = len as u8;
    out[1..=len].copy_from_slice(element);
    if let Some(last) = out.get_mut(len + 1) {
        *last = len as u8 + 1;
    }
}
fn write_long(out: &mut [u8], element: &[u8]) {
    let head = varint_bytes(element.len());
    let size = head + element.len();
    write_varint(&mut out[..head], element.len());
    out[head..size].copy_from_slice(element);
    if out.len() > size {
        write_varint(&mut out[size..], size);
        out[size..].reverse();
    }
}

/// Bytes of the size behind an element.
#[inline]
const fn tail_bytes(len: usize) -> usize {
    if len <= SHORT_BYTES_MAX {
        return 1;
    }
    varint_bytes(varint_bytes(len) + len)
}

impl Chunk {
    pub(super) const fn count(&self) -> usize {
        self.count as usize
    }
    /// An empty chunk that is bare.
    pub(super) const fn bare() -> Self {
        Self { buf: Vec::new(), start: 0, count: 0, left_out: 0, bare: true }
    }
    pub(super) const fn is_bare(&self) -> bool {
        self.bare
    }
    /// Bytes that the elements take.
    pub(super) const fn bytes(&self) -> usize {
        self.buf.len() - self.start as usize
    }
    /// Bytes that the elements take, or would take if the chunk were not bare.
    pub(super) const fn packed(&self) -> usize {
        self.bytes() + self.left_out as usize
    }
    /// Bytes that an element is about to take here, the left-out ones being counted.
    fn count_in(&mut self, len: usize) -> usize {
        self.count += 1;
        if self.bare {
            self.left_out += tail_bytes(len) as u32;
            return packed_bytes(len) - tail_bytes(len);
        }
        packed_bytes(len)
    }
    /// Makes a bare chunk one that can be walked over from both sides.
    pub(super) fn fill_in(&mut self) {
        if !self.bare {
            return;
        }
        let mut full = Self { buf: Vec::with_capacity(self.packed()), ..Self::default() };
        let mut at = self.first_offset();
        while let Some((element, next)) = self.element(at) {
            full.push_back(element);
            at = next;
        }
        *self = full;
    }
    /// Bytes allocated.
    pub(super) const fn capacity(&self) -> usize {
        self.buf.capacity()
    }

    pub(super) fn push_back(&mut self, element: &[u8]) {
        let len = element.len();
        if len > SHORT_BYTES_MAX {
            return self.insert_at(self.buf.len(), element);
        }
        let need = self.count_in(len);
        self.reserve(need);
        self.buf.push(len as u8);
        self.buf.extend_from_slice(element);
        if !self.bare {
            self.buf.push(len as u8 + 1);
        }
    }
    pub(super) fn push_front(&mut self, element: &[u8]) {
        let need = self.count_in(element.len());
        if (self.start as usize) < need {
            let gap = need + (self.bytes() / 2).min(GAP_BYTES_MAX);
            self.move_start(gap);
        }
        self.start -= need as u32;
        let start = self.start as usize;
        write_element(&mut self.buf[start..start + need], element);
    }
    /// Moves the elements so that they start at `gap`.
    fn move_start(&mut self, gap: usize) {
        let (start, packed) = (self.start as usize, self.bytes());
        if gap > start {
            self.buf.resize(gap + packed, 0);
        }
        self.buf.copy_within(start..start + packed, gap);
        self.buf.truncate(gap + packed);
        self.start = gap as u32;
    }

    pub(super) fn as_ref(&self) -> ChunkRef<'_> {
        ChunkRef { buf: &self.buf, start: self.start, count: self.count, bare: self.bare }
    }
    /// See [`ChunkRef::element`].
    pub(super) fn element(&self, at: usize) -> Option<(&[u8], usize)> {
        self.as_ref().element(at)
    }
    /// See [`ChunkRef::element_before`].
    pub(super) fn element_before(&self, at: usize) -> Option<(&[u8], usize)> {
        self.as_ref().element_before(at)
    }
    pub(super) const fn first_offset(&self) -> usize {
        self.start as usize
    }
    pub(super) const fn end_offset(&self) -> usize {
        self.buf.len()
    }
    /// See [`ChunkRef::offset`].
    pub(super) fn offset(&self, index: usize) -> usize {
        self.as_ref().offset(index)
    }

    /// The elements alone: what stands inside an entry.
    pub(super) fn elements(&self) -> &[u8] {
        &self.buf[self.start as usize..]
    }
    /// Takes over a buffer of bare elements alone. Counts them: a walk.
    pub(super) fn from_elements(buf: Vec<u8>) -> Self {
        let mut chunk = Self { buf, ..Self::bare() };
        let mut at = 0;
        while let Some((element, next)) = chunk.element(at) {
            chunk.left_out += tail_bytes(element.len()) as u32;
            chunk.count += 1;
            at = next;
        }
        chunk
    }
    /// The buffer, to be used again.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buf
    }

    /// Makes room behind the elements.
    #[inline]
    fn reserve(&mut self, need: usize) {
        let end = self.buf.len();
        if need > self.buf.capacity() - end {
            // A quarter more, not double: a compact list should stay compact.
            self.buf.reserve_exact(need + end / 4);
        }
    }
    /// Inserts before the element at offset `at`.
    pub(super) fn insert_at(&mut self, at: usize, element: &[u8]) {
        let need = self.count_in(element.len());
        let end = self.buf.len();
        self.reserve(need);
        self.buf.resize(end + need, 0);
        self.buf.copy_within(at..end, at + need);
        write_element(&mut self.buf[at..at + need], element);
    }
    /// Removes the first element after showing it to `taken`.
    pub(super) fn pop_front<R>(&mut self, taken: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let (element, next) = self.element(self.first_offset())?;
        let (len, result) = (element.len(), taken(element));
        self.start = next as u32;
        self.count_out(len);
        Some(result)
    }
    /// Removes the last element after showing it to `taken`.
    pub(super) fn pop_back<R>(&mut self, taken: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let (element, from) = self.element_before(self.end_offset())?;
        let (len, result) = (element.len(), taken(element));
        self.buf.truncate(from);
        self.count_out(len);
        Some(result)
    }
    /// An element of so many bytes has gone.
    #[inline]
    fn count_out(&mut self, len: usize) {
        self.count -= 1;
        if self.bare {
            self.left_out -= tail_bytes(len) as u32;
        }
        self.tighten();
    }
    /// Removes the element at offset `at`.
    pub(super) fn remove_at(&mut self, at: usize) {
        if let Some((_, next)) = self.element(at) {
            self.remove_span(at, next, 1);
        }
    }
    /// Removes `count` elements that lie in `from..to`.
    pub(super) fn remove_span(&mut self, from: usize, to: usize, count: usize) {
        self.count -= count as u32;
        let mut at = from;
        while self.bare
            && at < to
            && let Some((element, next)) = self.element(at)
        {
            self.left_out -= tail_bytes(element.len()) as u32;
            at = next;
        }
        if from == self.start as usize {
            self.start = to as u32;
        } else {
            self.buf.drain(from..to);
        }
        self.tighten();
    }
    fn tighten(&mut self) {
        let packed = self.bytes();
        if packed == 0 {
            self.start = 0;
            self.buf.clear();
        } else if self.start as usize > packed.max(64) {
            self.move_start(0);
        }
        if self.buf.capacity() > 64 && self.buf.capacity() > 4 * self.buf.len() {
            self.buf.shrink_to(2 * self.buf.len());
        }
    }
    /// Cuts off the elements from offset `at` (the one numbered `index`) on, as a chunk of their own. Not bare ones.
    pub(super) fn split_off(&mut self, at: usize, index: usize) -> Self {
        debug_assert!(!self.bare);
        let buf = self.buf[at..].to_vec();
        let count = self.count - index as u32;
        self.buf.truncate(at);
        self.count = index as u32;
        self.tighten();
        Self { buf, count, ..Self::default() }
    }
    /// Gives back the spare memory.
    pub(super) fn fit(&mut self) {
        self.move_start(0);
        self.buf.shrink_to_fit();
    }
}
