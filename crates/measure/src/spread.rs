//! The rounds of a figure. Owns the median.

use serde::{Deserialize, Serialize};

/// Medians of rounds, and how far apart they lie.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle one; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// Every round, in order.
    pub rounds: Vec<f64>,
}

impl Spread {
    /// That of some rounds; of none all is 0.
    pub fn of(rounds: Vec<f64>) -> Spread {
        let mut sorted = rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
        Spread { median: median(&sorted), low: at(0), high: at(sorted.len().saturating_sub(1)), rounds }
    }
}

/// The median of what is in order.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) && middle > 0 {
        (at(middle - 1) + at(middle)) / 2.0
    } else {
        at(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0, 10.0]);
        assert_eq!((spread.median, spread.low, spread.high), (2.5, 1.0, 10.0));
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(Spread::of(Vec::new()), Spread::default());
    }
}
