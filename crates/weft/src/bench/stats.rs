//! Medians of rounds and how sure a ratio of them is. Owns the bootstrap.

use crate::wire::results::Spread;
use crate::workload::random::Random;

/// Samples that are drawn for an interval.
const RESAMPLES: usize = 10_000;
/// The part of them that an interval leaves out on each side: 95 % are inside.
const OUTSIDE: f64 = 0.025;
/// The samples are the same in every run over the same rounds.
const SEED: u64 = 7;

/// A ratio of medians and the interval that it lies in with 95 % confidence, by the percentile bootstrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The median of `ours` over that of `theirs`; nothing without rounds of both.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> Option<Ratio> {
    let value = Spread::of(ours.to_vec()).median / Spread::of(theirs.to_vec()).median;
    if ours.is_empty() || theirs.is_empty() || !value.is_finite() {
        return None;
    }
    let mut random = Random::new(SEED);
    let mut drawn = |rounds: &[f64]| {
        let draws = (0..rounds.len()).map(|_| rounds[random.below(rounds.len() as u64) as usize]).collect();
        Spread::of(draws).median
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| drawn(ours) / drawn(theirs)).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |part: f64| ratios[((RESAMPLES - 1) as f64 * part).round() as usize];
    Some(Ratio { value, low: at(OUTSIDE), high: at(1.0 - OUTSIDE) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_lies_in_its_interval() {
        let found = ratio(&[1.0, 1.1, 0.9, 1.0, 1.05], &[2.0, 2.2, 1.8, 2.0, 2.1]).unwrap();
        assert_eq!(found.value, 0.5);
        assert!(found.low < 0.5 && found.high > 0.5 && found.low > 0.4 && found.high < 0.62, "{found:?}");
        let sure = ratio(&[1.0; 5], &[4.0; 5]).unwrap();
        assert_eq!((sure.low, sure.value, sure.high), (0.25, 0.25, 0.25));
        assert_eq!(ratio(&[], &[1.0]), None);
        assert_eq!(ratio(&[1.0], &[0.0]), None);
    }
}
