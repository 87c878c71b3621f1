//! Owns: choosing some of many without repetition. Does not own: chance itself (`crate::clock::Rng`).

use crate::clock::Rng;
use std::collections::HashSet;

/// Goes through indexes below `len` in order and says of each whether it is among `count` chosen ones: each set of
/// `count` is equally likely.
pub(crate) struct Selection {
    left: usize,
    wanted: usize,
}

impl Selection {
    pub(crate) fn new(len: usize, count: usize) -> Self {
        Self { left: len, wanted: count.min(len) }
    }
    /// Whether all have been chosen.
    pub(crate) const fn done(&self) -> bool {
        self.wanted == 0
    }
    /// Whether the next one is chosen.
    pub(crate) fn take(&mut self, rng: &mut dyn Rng) -> bool {
        if self.left == 0 {
            return false;
        }
        let chosen = index_below(rng, self.left) < self.wanted;
        self.left -= 1;
        self.wanted -= usize::from(chosen);
        chosen
    }
}

/// A number below `bound`, which is not 0.
pub(crate) fn index_below(rng: &mut dyn Rng, bound: usize) -> usize {
    match u32::try_from(bound) {
        Ok(bound) => rng.below(bound) as usize,
        Err(_) => (rng.next_u64() % bound as u64) as usize,
    }
}

/// Whether so many are wanted that a walk over all is cheaper than rolling for each.
pub(crate) const fn better_walk(len: usize, count: usize) -> bool {
    count.saturating_mul(3) > len
}

/// Rolls until `count` different ones are found. `count` must be well below their number ([`better_walk`]).
pub(crate) fn roll_distinct<T>(
    count: usize,
    mut roll: impl FnMut() -> Option<(usize, T)>,
    mut visit: impl FnMut(T),
) {
    let mut met = HashSet::with_capacity(count);
    while met.len() < count {
        let Some((name, item)) = roll() else { return };
        if met.insert(name) {
            visit(item);
        }
    }
}
