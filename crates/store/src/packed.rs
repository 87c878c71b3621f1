//! Owns: the compact form of hashes and sets: byte strings one after the other in one buffer. Does not own: what they
//! mean, and when a collection is too large for it.
//!
//! ```text
//!  0          4
//! +----------+----------------------------------------------------+
//! | count    | length, LEB128 | bytes | length, LEB128 | bytes | … |
//! | u32 *    |                |       |                |       |   |
//! +----------+----------------------------------------------------+
//!  * its highest bit is the owner's mark
//! ```
//! An element of up to 127 bytes costs 1 byte. The buffer is empty when there are none. A search is a walk over the
//! lengths: the limits (`hash-max-listpack-entries` and its like) bound it.

use crate::counted::{self, Counted, HEAD_BYTES};
use crate::leb;
use std::ops::Range;

/// The most elements of a compact form, whatever the configured limit: a search walks over all.
pub(crate) const COUNT_MAX: usize = 65_535;

/// A compact form, borrowed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PackedRef<'a>(&'a [u8]);

impl<'a> PackedRef<'a> {
    /// Elements.
    pub(crate) fn count(self) -> usize {
        counted::count(self.0)
    }
    /// Whether its owner has marked it.
    pub(crate) fn is_marked(self) -> bool {
        counted::is_marked(self.0)
    }
    /// The whole buffer.
    pub(crate) const fn bytes(self) -> &'a [u8] {
        self.0
    }
    /// The element at a byte offset, and the offset after it.
    #[inline]
    pub(crate) fn element(self, at: usize) -> Option<(&'a [u8], usize)> {
        let rest = self.0.get(at..).filter(|rest| !rest.is_empty())?;
        let (len, head) = leb::read(rest);
        Some((&rest[head..head + len], at + head + len))
    }
    /// The offset of the first element.
    pub(crate) const fn first(self) -> usize {
        HEAD_BYTES
    }
    /// The elements from a byte offset on, each with its offset.
    pub(crate) fn walk_from(self, at: usize) -> Walk<'a> {
        Walk { packed: self, at }
    }
    /// The elements.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.walk_from(HEAD_BYTES).map(|(_, element)| element)
    }
    /// The offset of the first element that equals `wanted` among every `stride`th one.
    pub(crate) fn find(self, wanted: &[u8], stride: usize) -> Option<usize> {
        self.find_in(wanted, stride, HEAD_BYTES..usize::MAX)
    }
    /// The same where all of them differ, from an offset of one of them on and then before it.
    pub(crate) fn find_near(self, wanted: &[u8], stride: usize, near: usize) -> Option<usize> {
        let behind = self.find_in(wanted, stride, near..usize::MAX);
        behind.or_else(|| self.find_in(wanted, stride, HEAD_BYTES..near))
    }
    #[inline]
    fn find_in(self, wanted: &[u8], stride: usize, offsets: Range<usize>) -> Option<usize> {
        let mut at = offsets.start;
        while at < offsets.end {
            let (element, mut next) = self.element(at)?;
            // Of elements of one kind the last byte differs more often than the first.
            if element.len() == wanted.len() && element.last() == wanted.last() && element == wanted {
                return Some(at);
            }
            for _ in 1..stride {
                next = self.element(next)?.1;
            }
            at = next;
        }
        None
    }
}

/// Elements with their offsets.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    packed: PackedRef<'a>,
    at: usize,
}

impl<'a> Iterator for Walk<'a> {
    type Item = (usize, &'a [u8]);
    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let (element, next) = self.packed.element(at)?;
        self.at = next;
        Some((at, element))
    }
}

/// That an element is a byte string.
#[derive(Clone, Debug)]
pub(crate) enum Strings {}

/// A compact form.
pub(crate) type Packed = Counted<Strings>;

impl<'a> From<&'a [u8]> for PackedRef<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl Packed {
    pub(crate) fn as_ref(&self) -> PackedRef<'_> {
        PackedRef(&self.0)
    }
    /// Adds an element at the end.
    pub(crate) fn push(&mut self, element: &[u8]) {
        self.begin(leb::size(element.len()) + element.len());
        leb::push(&mut self.0, element.len());
        self.0.extend_from_slice(element);
        self.add_count(1);
    }
    /// Replaces the element at a byte offset.
    pub(crate) fn replace(&mut self, at: usize, element: &[u8]) {
        let Some((old, next)) = self.as_ref().element(at) else { return };
        if old.len() == element.len() {
            self.0[next - element.len()..next].copy_from_slice(element);
            return;
        }
        let head = leb::size(element.len());
        let size = head + element.len();
        if size > next - at {
            self.open(next, size - (next - at));
        } else {
            self.0.drain(at + size..next);
        }
        leb::write(&mut self.0[at..at + head], element.len());
        self.0[at + head..at + size].copy_from_slice(element);
    }
    /// Removes `count` elements from a byte offset on.
    pub(crate) fn remove(&mut self, at: usize, count: usize) {
        self.take_out(at, count, |bytes, at| Some(PackedRef(bytes).element(at)?.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Rng, XorShift};

    fn offset(packed: &Packed, index: usize) -> usize {
        let walk = packed.as_ref().walk_from(HEAD_BYTES);
        walk.map(|(at, _)| at).nth(index).unwrap_or(packed.0.len())
    }

    #[test]
    fn behaves_like_a_vector() {
        for seed in 1..30 {
            println!("seed {seed}");
            let mut rng = XorShift::new(seed);
            let mut packed = Packed::default();
            let mut model: Vec<Vec<u8>> = Vec::new();
            for _ in 0..800 {
                let len = [0, 1, 5, 127, 128, 300][rng.below(6) as usize];
                let element = vec![rng.below(4) as u8; len];
                let index = rng.below(model.len() as u32 + 1) as usize;
                match rng.below(4) {
                    0 => {
                        packed.push(&element);
                        model.push(element);
                    }
                    1 if index < model.len() => {
                        packed.replace(offset(&packed, index), &element);
                        model[index] = element;
                    }
                    2 if index < model.len() => {
                        let count = (1 + rng.below(3) as usize).min(model.len() - index);
                        packed.remove(offset(&packed, index), count);
                        model.drain(index..index + count);
                    }
                    _ => {
                        let expected = model.iter().position(|other| *other == element);
                        assert_eq!(
                            packed.as_ref().find(&element, 1),
                            expected.map(|index| offset(&packed, index))
                        );
                    }
                }
                assert_eq!(packed.as_ref().count(), model.len());
                assert!(packed.as_ref().iter().eq(model.iter().map(Vec::as_slice)));
                assert_eq!(packed.0.is_empty(), model.is_empty());
            }
        }
    }
}
