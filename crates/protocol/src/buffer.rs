//! Where encoders write: a growing vector, or a slice that somebody else owns.
//!
//! Owns the two kinds of room. Knows no encoding: an encoder is written once, over [`Buffer`], and allocates nothing of
//! its own.

use alloc::vec::Vec;

/// Receives encoded bytes. Encoders only append, truncate to where they were before, and overwrite or insert a length
/// once they know it.
pub trait Buffer {
    /// Bytes written so far, those included for which a fixed buffer had no room.
    fn len(&self) -> usize;
    /// Appends a byte.
    fn push(&mut self, byte: u8);
    /// Appends bytes.
    fn extend_from_slice(&mut self, bytes: &[u8]);
    /// Forgets all but the first `len` bytes.
    fn truncate(&mut self, len: usize);
    /// Overwrites bytes that were written. `at + bytes.len()` is at most [`len`](Self::len).
    fn patch(&mut self, at: usize, bytes: &[u8]);
    /// Inserts bytes; what stands from `at` on moves back.
    fn insert_from_slice(&mut self, at: usize, bytes: &[u8]);
    /// Whether nothing was written.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Buffer for Vec<u8> {
    #[inline]
    fn len(&self) -> usize {
        Vec::len(self)
    }
    #[inline]
    fn push(&mut self, byte: u8) {
        Vec::push(self, byte);
    }
    #[inline]
    fn extend_from_slice(&mut self, bytes: &[u8]) {
        Vec::extend_from_slice(self, bytes);
    }
    #[inline]
    fn truncate(&mut self, len: usize) {
        Vec::truncate(self, len);
    }
    #[inline]
    fn patch(&mut self, at: usize, bytes: &[u8]) {
        self[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn insert_from_slice(&mut self, at: usize, bytes: &[u8]) {
        self.splice(at..at, bytes.iter().copied());
    }
}

/// A slice that counts what it has no room for, in the manner of `snprintf`. The bytes that are there are those that a
/// vector would have at the same places as long as [`len`](Buffer::len) is within the slice; beyond, only the count is
/// right.
#[derive(Debug)]
pub struct FixedBuffer<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl<'a> FixedBuffer<'a> {
    /// A buffer whose first `len` bytes are already written.
    pub const fn new(bytes: &'a mut [u8], len: usize) -> Self {
        FixedBuffer { bytes, len }
    }

    /// What was written, or as much of it as there is room for.
    pub fn written(&self) -> &[u8] {
        &self.bytes[..self.len.min(self.bytes.len())]
    }

    /// The part of `at..at + len` that exists.
    fn room(&mut self, at: usize, len: usize) -> &mut [u8] {
        let capacity = self.bytes.len();
        &mut self.bytes[at.min(capacity)..at.saturating_add(len).min(capacity)]
    }
}

impl Buffer for FixedBuffer<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.len
    }
    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
        }
        self.len = self.len.saturating_add(1);
    }
    #[inline]
    fn extend_from_slice(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        match self.bytes.get_mut(self.len..end) {
            Some(place) => place.copy_from_slice(bytes),
            None => self.patch(self.len, bytes),
        }
        self.len = end;
    }
    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
    #[inline]
    fn patch(&mut self, at: usize, bytes: &[u8]) {
        let place = self.room(at, bytes.len());
        place.copy_from_slice(&bytes[..place.len()]);
    }
    fn insert_from_slice(&mut self, at: usize, bytes: &[u8]) {
        let behind = self.len.saturating_sub(at).saturating_add(bytes.len());
        let place = self.room(at, behind);
        place.copy_within(..place.len().saturating_sub(bytes.len()), bytes.len().min(place.len()));
        self.patch(at, bytes);
        self.len = self.len.saturating_add(bytes.len());
    }
}

/// Where a reply's open aggregates are kept: a vector, or places that somebody else owns.
pub trait Stack<T> {
    /// Aggregates that are open.
    fn depth(&self) -> usize;
    /// Opens one. Where there is no place left, nothing happens: the owner of the places asks [`depth`](Self::depth)
    /// first.
    fn push(&mut self, value: T);
    /// Closes the innermost one.
    fn pop(&mut self) -> Option<T>;
    /// The innermost one.
    fn last(&self) -> Option<&T>;
    /// The innermost one.
    fn last_mut(&mut self) -> Option<&mut T>;
}

impl<T> Stack<T> for Vec<T> {
    #[inline]
    fn depth(&self) -> usize {
        self.len()
    }
    #[inline]
    fn push(&mut self, value: T) {
        Vec::push(self, value);
    }
    #[inline]
    fn pop(&mut self) -> Option<T> {
        Vec::pop(self)
    }
    #[inline]
    fn last(&self) -> Option<&T> {
        self.as_slice().last()
    }
    #[inline]
    fn last_mut(&mut self) -> Option<&mut T> {
        self.as_mut_slice().last_mut()
    }
}

/// A stack of at most `N`.
#[derive(Clone, Copy, Debug)]
pub struct FixedStack<T, const N: usize> {
    places: [Option<T>; N],
    depth: usize,
}

impl<T: Copy, const N: usize> FixedStack<T, N> {
    /// An empty stack.
    pub const fn new() -> Self {
        FixedStack { places: [None; N], depth: 0 }
    }
}

impl<T: Copy, const N: usize> Default for FixedStack<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy, const N: usize> Stack<T> for &mut FixedStack<T, N> {
    #[inline]
    fn depth(&self) -> usize {
        self.depth
    }
    #[inline]
    fn push(&mut self, value: T) {
        if let Some(place) = self.places.get_mut(self.depth) {
            *place = Some(value);
            self.depth += 1;
        }
    }
    #[inline]
    fn pop(&mut self) -> Option<T> {
        self.depth = self.depth.checked_sub(1)?;
        self.places.get_mut(self.depth)?.take()
    }
    #[inline]
    fn last(&self) -> Option<&T> {
        self.places.get(self.depth.checked_sub(1)?)?.as_ref()
    }
    #[inline]
    fn last_mut(&mut self) -> Option<&mut T> {
        self.places.get_mut(self.depth.checked_sub(1)?)?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few writes of every kind.
    fn write(out: &mut impl Buffer) {
        out.extend_from_slice(b"head");
        let at = out.len();
        out.extend_from_slice(&[0; 2]);
        out.push(b'x');
        out.extend_from_slice(b"dropped");
        out.truncate(at + 3);
        out.insert_from_slice(1, b"++");
        out.patch(at + 2, b"12");
        out.extend_from_slice(b"tail");
    }

    #[test]
    fn a_slice_of_any_length_counts_like_a_vector() {
        let mut whole = Vec::new();
        write(&mut whole);
        assert_eq!(whole, b"h++ead12xtail");
        for capacity in 0..24 {
            let mut bytes = [0; 24];
            let mut out = FixedBuffer::new(&mut bytes[..capacity], 0);
            write(&mut out);
            assert_eq!(out.len(), whole.len(), "{capacity}");
            if capacity >= whole.len() {
                assert_eq!(out.written(), whole);
            }
        }
    }

    #[test]
    fn a_stack_of_two_keeps_two() {
        let mut places = FixedStack::<u8, 2>::new();
        let mut stack = &mut places;
        for value in 1..=3 {
            stack.push(value);
        }
        assert_eq!((stack.depth(), stack.last().copied()), (2, Some(2)));
        assert_eq!([stack.pop(), stack.pop(), stack.pop()], [Some(2), Some(1), None]);
    }
}
