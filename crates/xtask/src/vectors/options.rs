//! Which option bits may stand together, worked out by trying every set.
//!
//! It owns the sets that the vectors use: each bit with what it requires, everything that goes together, and what must
//! not.

use crate::respb::Field;

/// The bits of an options field.
#[derive(Debug)]
pub struct Bits<'a> {
    field: &'a Field,
    requires: Vec<u16>,
    exclusive: Vec<u16>,
}

impl<'a> Bits<'a> {
    /// Reads `exclusive` and `requires` of a field.
    #[must_use]
    pub fn new(field: &'a Field) -> Self {
        let position =
            |name: &String| field.bits.iter().position(|bit| bit.label() == name).map_or(0, |i| 1 << i);
        let requires = field.bits.iter().map(|bit| bit.requires.as_ref().map_or(0, position)).collect();
        let exclusive = field.exclusive.iter().map(|set| set.iter().map(position).sum()).collect();
        Bits { field, requires, exclusive }
    }

    fn count(&self) -> usize {
        self.field.bits.len()
    }

    /// The set with everything that its bits require.
    #[must_use]
    pub fn closure(&self, mut set: u16) -> u16 {
        loop {
            let more = self
                .requires
                .iter()
                .enumerate()
                .filter(|(i, _)| set >> i & 1 == 1)
                .fold(set, |all, (_, r)| all | r);
            if more == set {
                return set;
            }
            set = more;
        }
    }

    fn fits(&self, set: u16) -> bool {
        self.closure(set) == set && self.exclusive.iter().all(|pair| (pair & set).count_ones() <= 1)
    }

    /// What a set is called in a comment.
    #[must_use]
    pub fn names(&self, set: u16) -> String {
        let names: Vec<&str> =
            (0..self.count()).filter(|i| set >> i & 1 == 1).map(|i| self.field.bits[i].label()).collect();
        names.join(", ")
    }

    /// Each bit with what it requires.
    #[must_use]
    pub fn single(&self) -> Vec<(String, u16)> {
        (0..self.count()).map(|i| (self.field.bits[i].label().into(), self.closure(1 << i))).collect()
    }

    /// Each set that no further bit fits into, unless it is one of [`single`](Self::single).
    #[must_use]
    pub fn together(&self) -> Vec<(String, u16)> {
        let single: Vec<u16> = self.single().into_iter().map(|(_, set)| set).collect();
        let full =
            |set: u16| (0..self.count()).all(|i| set >> i & 1 == 1 || !self.fits(self.closure(set | 1 << i)));
        let sets = (1..1u32 << self.count()).map(|set| set as u16);
        let maximal = sets.filter(|&set| self.fits(set) && full(set) && !single.contains(&set));
        maximal.map(|set| (self.names(set).replace(", ", "-"), set)).collect()
    }

    /// Sets that are refused, with a name and the error.
    #[must_use]
    pub fn wrong(&self) -> Vec<(String, u16, &'static str)> {
        let width = 8; // of an opts8
        let mut wrong = Vec::new();
        let mut unknown = vec![self.count(), width - 1];
        unknown.dedup();
        for bit in unknown.into_iter().filter(|&bit| bit >= self.count() && bit < width) {
            wrong.push((format!("bit-{bit}"), 1 << bit, "unknown-bit"));
        }
        for a in 0..self.count() {
            for b in a + 1..self.count() {
                let pair = 1u16 << a | 1 << b;
                if self.exclusive.iter().any(|set| set & pair == pair) {
                    wrong.push((
                        self.names(pair).replace(", ", "-and-"),
                        self.closure(pair),
                        "exclusive-bits",
                    ));
                }
            }
        }
        for (i, required) in self.requires.iter().enumerate().filter(|(_, required)| **required != 0) {
            let name = format!("{}-without-{}", self.field.bits[i].label(), self.names(*required));
            wrong.push((name, 1 << i, "missing-bit"));
        }
        wrong
    }
}
