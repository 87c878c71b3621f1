//! Owns: a set of integers: sorted in one buffer, all as wide as the widest needs. Does not own: when it is too large.
//!
//! ```text
//! +-----------+---------+---------+---+
//! | width, u8 | integer | integer | … |   2, 4 or 8 bytes each, little endian, ascending
//! +-----------+---------+---------+---+
//! ```

/// Integers, borrowed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntsRef<'a> {
    width: usize,
    bytes: &'a [u8],
}

fn width_of(value: i64) -> usize {
    if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

impl<'a> IntsRef<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        bytes.split_first().map_or_else(Self::default, |(&width, bytes)| Self { width: width.into(), bytes })
    }
    /// The buffer, copied.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        if self.bytes.is_empty() { Vec::new() } else { [&[self.width as u8], self.bytes].concat() }
    }
    pub(crate) fn len(self) -> usize {
        self.bytes.len().checked_div(self.width).unwrap_or(0)
    }
    /// The integer at `index`, which is below `len`.
    pub(crate) fn at(self, index: usize) -> i64 {
        let bytes = &self.bytes[index * self.width..];
        match self.width {
            2 => bytes.first_chunk().map_or(0, |bytes| i16::from_le_bytes(*bytes).into()),
            4 => bytes.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes).into()),
            _ => bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes)),
        }
    }
    /// Where a value is, or where it would be.
    pub(crate) fn find(self, value: i64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.at(middle).cmp(&value) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }
    pub(crate) fn iter(self) -> impl Iterator<Item = i64> + Clone + 'a {
        (0..self.len()).map(move |index| self.at(index))
    }
}

/// Integers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ints(Vec<u8>);

impl Ints {
    /// Takes over the buffer of another.
    pub(crate) const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
    /// The buffer.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
    /// The buffer, to be read.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
    pub(crate) fn as_ref(&self) -> IntsRef<'_> {
        IntsRef::new(&self.0)
    }
    pub(crate) const fn capacity(&self) -> usize {
        self.0.capacity()
    }
    /// Adds a value. Says whether it is new.
    pub(crate) fn add(&mut self, value: i64) -> bool {
        let Err(index) = self.as_ref().find(value) else { return false };
        let width = self.as_ref().width.max(width_of(value));
        if width != self.as_ref().width {
            self.widen(width);
        }
        if self.0.len() + width > self.0.capacity() {
            self.0.reserve_exact(width + self.0.len() / 8);
        }
        let at = 1 + index * width;
        let end = self.0.len();
        self.0.resize(end + width, 0);
        self.0.copy_within(at..end, at + width);
        self.0[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        true
    }
    fn widen(&mut self, width: usize) {
        let old = self.as_ref();
        let mut wide = Vec::with_capacity(1 + (old.len() + 1) * width);
        wide.push(width as u8);
        old.iter().for_each(|value| wide.extend_from_slice(&value.to_le_bytes()[..width]));
        self.0 = wide;
    }
    /// Removes a value. Says whether it was there.
    pub(crate) fn remove(&mut self, value: i64) -> bool {
        let Ok(index) = self.as_ref().find(value) else { return false };
        let width = self.as_ref().width;
        self.0.drain(1 + index * width..1 + (index + 1) * width);
        if self.0.len() == 1 {
            self.0.clear();
        }
        if self.0.capacity() > 64 && self.0.capacity() > 2 * self.0.len() {
            self.0.shrink_to_fit();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Rng, XorShift};
    use std::collections::BTreeSet;

    #[test]
    fn behaves_like_a_sorted_set() {
        for seed in 1..20 {
            println!("seed {seed}");
            let mut rng = XorShift::new(seed);
            let (mut ints, mut model) = (Ints::default(), BTreeSet::new());
            for step in 0..1000 {
                let bits = if step < 300 { 58 } else { [58, 40, 0][rng.below(3) as usize] };
                let value = (rng.next_u64() as i64) >> bits;
                if rng.below(3) < 2 {
                    assert_eq!(ints.add(value), model.insert(value));
                } else {
                    assert_eq!(ints.remove(value), model.remove(&value));
                }
                assert!(ints.as_ref().iter().eq(model.iter().copied()));
                assert_eq!(ints.as_ref().find(value).is_ok(), model.contains(&value));
            }
            for value in [i64::MIN, i64::MAX] {
                assert!(ints.add(value) && !ints.add(value));
            }
        }
    }
}
