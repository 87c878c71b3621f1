//! Owns: the compact form of sorted sets: members with their scores one after the other in one buffer, in order. Does
//! not own: when a set is too large for it.
//!
//! ```text
//!  0          4
//! +----------+-------------------------------------------------+
//! | count    | length, LEB128 | member | score | length | …     |
//! | u32      |                |        |       |        |       |
//! +----------+-------------------------------------------------+
//! ```
//! A score is a byte that says its form, and as few bytes as give it back exactly ([`score`]). An element takes two
//! bytes beside member and digits. The buffer is empty when there are none. A search walks over all: the limits
//! (`zset-max-listpack-entries` and its like) bound it.

use super::score;
use super::{Scored, order};
use crate::counted::{self, Counted, HEAD_BYTES};
use crate::leb;

/// The most elements, whatever the configured limit.
pub(super) const COUNT_MAX: usize = 32_767;

/// Where an element was found: its member's bytes, and where it begins, its score stands, and the next one begins.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    member: &'a [u8],
    score_at: usize,
    next: usize,
}

/// A compact form, borrowed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompactRef<'a>(&'a [u8]);

impl<'a> From<&'a [u8]> for CompactRef<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> CompactRef<'a> {
    /// Elements.
    #[inline]
    pub(super) fn count(self) -> usize {
        counted::count(self.0)
    }
    /// The whole buffer.
    pub(super) const fn bytes(self) -> &'a [u8] {
        self.0
    }
    #[inline]
    fn place(self, at: usize) -> Option<Place<'a>> {
        let (len, head) = leb::read(self.0.get(at..).filter(|rest| !rest.is_empty())?);
        let start = at + head;
        let score_at = start + len;
        let member = self.0.get(start..score_at)?;
        let next = score_at + score::size(*self.0.get(score_at)?);
        Some(Place { member, score_at, next })
    }
    /// The element at an offset, and the offset of the next one.
    #[inline]
    pub(super) fn at(self, at: usize) -> Option<(Scored<'a>, usize)> {
        let Place { member, score_at, next } = self.place(at)?;
        Some((Scored { member, score: score::read(self.0, score_at) }, next))
    }
    /// Where the element of a rank begins, or the end.
    pub(super) fn offset(self, rank: usize) -> usize {
        let mut at = HEAD_BYTES.min(self.0.len());
        for _ in 0..rank {
            let Some(place) = self.place(at) else { break };
            at = place.next;
        }
        at
    }
    /// The elements.
    pub(super) fn iter(self) -> Pairs<'a> {
        self.iter_from(HEAD_BYTES)
    }
    /// The elements from an offset on.
    #[inline]
    pub(super) const fn iter_from(self, at: usize) -> Pairs<'a> {
        Pairs { compact: self, at }
    }
    /// Where a member begins, and its score.
    pub(super) fn find(self, member: &[u8]) -> Option<(usize, f64)> {
        let mut at = HEAD_BYTES;
        loop {
            let place = self.place(at)?;
            // Of members of one kind the last byte differs more often than the first.
            if place.member.len() == member.len()
                && place.member.last() == member.last()
                && place.member == member
            {
                return Some((at, score::read(self.0, place.score_at)));
            }
            at = place.next;
        }
    }
}

/// Elements in order.
#[derive(Clone, Debug)]
pub(super) struct Pairs<'a> {
    compact: CompactRef<'a>,
    at: usize,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Scored<'a>;
    #[inline]
    fn next(&mut self) -> Option<Scored<'a>> {
        let (pair, next) = self.compact.at(self.at)?;
        self.at = next;
        Some(pair)
    }
}

/// That an element is a member with its score.
#[derive(Clone, Debug)]
pub(super) enum Members {}

/// A compact form.
pub(super) type Compact = Counted<Members>;

impl Compact {
    /// To read it.
    pub(super) fn as_ref(&self) -> CompactRef<'_> {
        CompactRef(&self.0)
    }
    /// Puts an element that is not there at an offset, which may be the end.
    fn put(&mut self, at: usize, pair: Scored<'_>) {
        let mut buffer = [0; score::BYTES_MAX];
        let score = score::write(pair.score, &mut buffer);
        let (head, len) = (leb::size(pair.member.len()), pair.member.len());
        let more = head + len + score.len();
        self.begin(more);
        let at = at.max(HEAD_BYTES);
        self.open(at, more);
        let room = &mut self.0[at..at + more];
        leb::write(&mut room[..head], len);
        room[head..head + len].copy_from_slice(pair.member);
        room[head + len..].copy_from_slice(score);
        self.add_count(1);
    }
    /// Adds an element that comes behind all others.
    pub(super) fn push(&mut self, pair: Scored<'_>) {
        self.put(self.0.len(), pair);
    }
    /// Puts an element that is not there in its place.
    pub(super) fn insert(&mut self, pair: Scored<'_>) {
        let view = self.as_ref();
        let mut at = HEAD_BYTES;
        while let Some((other, next)) = view.at(at)
            && !order(other, pair).is_gt()
        {
            at = next;
        }
        self.put(at, pair);
    }
    /// Removes `count` elements from an offset on.
    pub(super) fn remove(&mut self, at: usize, count: usize) {
        self.take_out(at, count, |bytes, at| Some(CompactRef(bytes).place(at)?.next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Rng, XorShift};

    fn score(rng: &mut XorShift) -> f64 {
        match rng.below(6) {
            0 => 0.01 * f64::from(rng.below(100_000)),
            1 => rng.next_u64() as f64,
            2 => f64::from(rng.below(50)) / 7.0,
            3 => f64::INFINITY,
            _ => f64::from(rng.below(1000)) - 500.0,
        }
    }

    #[test]
    fn behaves_like_a_sorted_vector() {
        for seed in 1..30 {
            println!("seed {seed}");
            let mut rng = XorShift::new(seed);
            let mut compact = Compact::default();
            let mut model: Vec<(Vec<u8>, f64)> = Vec::new();
            for step in 0..800 {
                let len = [0, 1, 5, 127, 128, 300][rng.below(6) as usize];
                let member = vec![rng.below(8) as u8; len];
                let known = model.iter().position(|(other, _)| *other == member);
                let found = compact.as_ref().find(&member);
                let expected = known.map(|at| (compact.as_ref().offset(at), model[at].1));
                assert_eq!(found, expected);
                if let Some((at, _)) = found {
                    let count = (1 + rng.below(3) as usize).min(model.len() - known.unwrap_or(0));
                    compact.remove(at, count);
                    model.drain(known.unwrap_or(0)..known.unwrap_or(0) + count);
                } else {
                    let score = score(&mut rng);
                    compact.insert(Scored { member: &member, score });
                    model.push((member, score));
                    model.sort_by(|one, two| {
                        one.1.partial_cmp(&two.1).unwrap().then_with(|| one.0.cmp(&two.0))
                    });
                }
                assert_eq!(compact.as_ref().count(), model.len(), "step {step}");
                let all = compact.as_ref().iter().map(|pair| (pair.member.to_vec(), pair.score));
                assert!(all.eq(model.iter().cloned()), "step {step}");
                assert_eq!(compact.0.is_empty(), model.is_empty());
                assert_eq!(compact.as_ref().offset(model.len()), compact.0.len());
            }
        }
    }
}
