//! Owns a set of hash slots, and how it is written. Does not own which key is in which slot.

use std::fmt;

/// Slots of a cluster.
pub(super) const SLOTS: u16 = 16_384;

const WORDS: usize = SLOTS as usize / 64;

/// Some of the slots.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Slots([u64; WORDS]);

impl Slots {
    pub(super) const fn new() -> Slots {
        Slots([0; WORDS])
    }

    pub(super) fn contains(&self, slot: u16) -> bool {
        self.0[usize::from(slot / 64)] & (1 << (slot % 64)) != 0
    }

    pub(super) fn insert(&mut self, slot: u16) {
        self.0[usize::from(slot / 64)] |= 1 << (slot % 64);
    }

    pub(super) fn remove(&mut self, slot: u16) {
        self.0[usize::from(slot / 64)] &= !(1 << (slot % 64));
    }

    pub(super) fn add(&mut self, others: &Slots) {
        self.0.iter_mut().zip(&others.0).for_each(|(word, other)| *word |= other);
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// In ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u16> {
        (0..SLOTS).filter(|&slot| self.contains(slot))
    }

    /// Those that are not in it.
    pub(super) fn missing(&self) -> Vec<u16> {
        (0..SLOTS).filter(|&slot| !self.contains(slot)).collect()
    }
}

impl FromIterator<u16> for Slots {
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> Slots {
        let mut all = Slots::new();
        slots.into_iter().for_each(|slot| all.insert(slot));
        all
    }
}

/// `[0-5460],[5462]`
impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut slots = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = slots.next() {
            let mut last = first;
            while slots.peek() == Some(&(last + 1)) {
                last += 1;
                slots.next();
            }
            match first == last {
                true => write!(f, "{comma}[{first}]")?,
                false => write!(f, "{comma}[{first}-{last}]")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_written_as_ranges() {
        let text = |slots: &[u16]| slots.iter().copied().collect::<Slots>().to_string();
        assert_eq!(text(&[]), "");
        assert_eq!(text(&[5]), "[5]");
        assert_eq!(text(&[0, 1, 2, 7, 16_382, 16_383]), "[0-2],[7],[16382-16383]");
        let mut all: Slots = (0..SLOTS).collect();
        assert_eq!((all.count(), all.to_string()), (16_384, "[0-16383]".into()));
        all.remove(3);
        assert_eq!((all.missing(), all.contains(3), all.contains(4)), (vec![3], false, true));
    }
}
