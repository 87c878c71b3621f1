//! What may be said of figures that were measured in rounds: a ratio, how sure it is, and whether a goal is reached.
//!
//! Owns the bootstrap and the words. The rules, which hold for every page:
//!
//! - **Paired.** In a round all contestants run one after the other, so that the machine's mood of that moment is in
//!   all their figures. The ratio of a round is that of its two figures; the ratio is the median of the rounds'.
//! - **Interval.** 95 % of the medians of rounds drawn again, with replacement. Every drawing begins with the same
//!   seed: the same rounds give the same interval on every machine.
//! - **Verdict.** *Reached* where the whole interval lies on the goal's side, *missed* where it lies beyond, otherwise
//!   *open*.
//! - **Enough.** Rounds go on until the interval is within ±5 % of the ratio, up to a most; what is wider is said.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::spread::median;

/// Drawings for an interval.
const RESAMPLES: usize = 4_000;
/// The part of them that an interval leaves out on each side: 95 % are inside.
const OUTSIDE: f64 = 0.025;
/// The drawings are the same in every run over the same rounds.
const SEED: u64 = 7;
/// How far an interval may reach from its ratio, as a part of it, to count as close.
pub const CLOSE: f64 = 0.05;

/// A figure and the interval that it lies in with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The median of the rounds.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The median of `ours[i] / theirs[i]`; nothing unless each round has both.
pub fn paired(ours: &[f64], theirs: &[f64]) -> Option<Ratio> {
    interval(&ratios(ours, theirs)?)
}

/// The same of several cases: the geometric mean of their ratios, with the rounds of each drawn by themselves. Nothing
/// unless each case has both figures in all its rounds.
pub fn geometric(cases: &[(&[f64], &[f64])]) -> Option<Ratio> {
    let cases: Vec<Vec<f64>> =
        cases.iter().map(|(ours, theirs)| ratios(ours, theirs)).collect::<Option<_>>()?;
    if cases.is_empty() || cases.iter().flatten().any(|ratio| *ratio <= 0.0) {
        return None;
    }
    let mean = |medians: &mut dyn FnMut(&[f64]) -> f64| {
        let logs: f64 = cases.iter().map(|case| medians(case).ln()).sum();
        (logs / cases.len() as f64).exp()
    };
    Some(bootstrap(mean))
}

/// The median of figures that are ratios already, or whose own interval is wanted; nothing of none.
pub fn interval(values: &[f64]) -> Option<Ratio> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    Some(bootstrap(|median| median(values)))
}

fn ratios(ours: &[f64], theirs: &[f64]) -> Option<Vec<f64>> {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    let is_whole = ours.len() == theirs.len() && !ours.is_empty();
    Some(ratios).filter(|ratios| is_whole && ratios.iter().all(|ratio| ratio.is_finite()))
}

/// The percentile bootstrap of a figure that is made of medians of rounds: it is made once of the rounds as they are,
/// and then of rounds drawn again.
fn bootstrap(figure: impl Fn(&mut dyn FnMut(&[f64]) -> f64) -> f64) -> Ratio {
    let mut random = Random::new(SEED);
    let mut drawn = Vec::new();
    let middle = |rounds: &mut Vec<f64>| {
        rounds.sort_by(f64::total_cmp);
        median(rounds)
    };
    let value = figure(&mut |rounds| middle(&mut rounds.to_vec()));
    let mut figures: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            figure(&mut |rounds| {
                drawn.clear();
                drawn.extend((0..rounds.len()).map(|_| rounds[random.below(rounds.len() as u64) as usize]));
                middle(&mut drawn)
            })
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    let at = |part: f64| figures[((RESAMPLES - 1) as f64 * part).round() as usize];
    Ratio { value, low: at(OUTSIDE), high: at(1.0 - OUTSIDE) }
}

impl Ratio {
    /// Whether its ends are within [`CLOSE`] of it.
    pub fn is_close(self) -> bool {
        let reach = CLOSE * self.value.abs();
        self.high - self.value <= reach && self.value - self.low <= reach
    }
}

impl fmt::Display for Ratio {
    /// `0.48 (0.46–0.51)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.value, self.low, self.high)
    }
}

/// What is asked of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// So much or less.
    AtMost(f64),
    /// So much or more.
    AtLeast(f64),
}

/// What became of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval is on its side.
    Reached,
    /// The interval crosses it.
    Open,
    /// The whole interval is beyond it.
    Missed,
}

impl Goal {
    /// By the interval, never by the figure alone.
    pub fn verdict(self, ratio: Ratio) -> Verdict {
        let (all, any) = match self {
            Goal::AtMost(bound) => (ratio.high <= bound, ratio.low <= bound),
            Goal::AtLeast(bound) => (ratio.low >= bound, ratio.high >= bound),
        };
        match (all, any) {
            (true, _) => Verdict::Reached,
            (_, true) => Verdict::Open,
            _ => Verdict::Missed,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::AtMost(bound) => write!(f, "at most {bound}"),
            Goal::AtLeast(bound) => write!(f, "at least {bound}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Reached => "reached",
            Verdict::Open => "open",
            Verdict::Missed => "missed",
        })
    }
}

/// How many rounds are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// So many in any case: an interval of fewer says little.
    pub least: u32,
    /// So many at most.
    pub most: u32,
}

impl Rounds {
    /// Whether another round is wanted after so many, with what they have given. A ratio that could not be had wants
    /// no more rounds.
    pub fn go_on(self, done: u32, ratios: impl IntoIterator<Item = Option<Ratio>>) -> bool {
        let is_wide = |ratio: Option<Ratio>| ratio.is_some_and(|ratio| !ratio.is_close());
        done < self.least || (done < self.most && ratios.into_iter().any(is_wide))
    }
}

/// How the machine's speed has changed between rounds: the least and the greatest of what a fixed piece of work took,
/// over its median. What the stub takes for a request is such work.
pub fn drift(fixed: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = fixed.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = median(&sorted);
    Some((sorted.first()? / middle, sorted.last()? / middle))
        .filter(|(low, high)| low.is_finite() && high.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_halves_its_speed_does_not_widen_a_paired_ratio() {
        let theirs = [2.0, 4.0, 2.0, 4.1, 2.1];
        let ours = theirs.map(|theirs| theirs / 2.0);
        let found = paired(&ours, &theirs).unwrap();
        assert_eq!((found.low, found.value, found.high), (0.5, 0.5, 0.5));
    }

    #[test]
    fn a_ratio_lies_in_its_interval() {
        let found = paired(&[1.0, 1.1, 0.9, 1.0, 1.05], &[2.0; 5]).unwrap();
        assert_eq!(found.value, 0.5);
        assert!(found.low >= 0.45 && found.low < 0.5 && found.high > 0.5 && found.high <= 0.55, "{found:?}");
        assert_eq!(paired(&[], &[]), None);
        assert_eq!(paired(&[1.0], &[0.0]), None);
        assert_eq!(paired(&[1.0, 2.0], &[1.0]), None, "a round without one of them is no pair");
        assert_eq!(interval(&[]), None);
    }

    #[test]
    fn an_interval_is_as_wide_as_theory_says() {
        // Of 9 rounds, 95 % of the medians drawn again lie between the 2nd and the 8th of them; by counting the
        // binomial distribution: P(median <= 1st) = 0.0056, P(median <= 2nd) = 0.0331 of the drawings.
        let rounds: Vec<f64> = (1..=9).map(f64::from).collect();
        let found = interval(&rounds).unwrap();
        assert_eq!((found.low, found.value, found.high), (2.0, 5.0, 8.0));
    }

    #[test]
    fn verdicts_are_by_the_interval() {
        let ratio = |low, high| Ratio { value: (low + high) / 2.0, low, high };
        let most = Goal::AtMost(0.5);
        assert_eq!(most.verdict(ratio(0.40, 0.50)), Verdict::Reached);
        assert_eq!(most.verdict(ratio(0.40, 0.51)), Verdict::Open);
        assert_eq!(most.verdict(ratio(0.51, 0.60)), Verdict::Missed);
        let least = Goal::AtLeast(1.7);
        assert_eq!(least.verdict(ratio(1.7, 1.9)), Verdict::Reached);
        assert_eq!(least.verdict(ratio(1.6, 1.7)), Verdict::Open);
        assert_eq!(least.verdict(ratio(1.0, 1.6)), Verdict::Missed);
    }

    #[test]
    fn rounds_go_on_until_the_interval_is_close() {
        let rounds = Rounds { least: 3, most: 6 };
        let (close, wide) =
            (Ratio { value: 1.0, low: 0.96, high: 1.04 }, Ratio { value: 1.0, low: 0.9, high: 1.0 });
        assert!(rounds.go_on(2, [Some(close)]), "too few");
        assert!(!rounds.go_on(3, [Some(close), None]));
        assert!(rounds.go_on(3, [Some(close), Some(wide)]));
        assert!(!rounds.go_on(6, [Some(wide)]), "the most");
    }

    #[test]
    fn a_geometric_mean_weighs_factors() {
        let ones = [1.0; 5];
        let found = geometric(&[(&[0.25; 5], &ones), (&[1.0; 5], &ones)]).unwrap();
        assert!((found.value - 0.5).abs() < 1e-12 && (found.high - 0.5).abs() < 1e-12, "{found:?}");
        assert!(
            geometric(&[(&[0.25; 5], &ones), (&[1.0; 4], &ones[..4])]).is_some(),
            "each has rounds of its own"
        );
        assert_eq!(geometric(&[(&[0.25; 5], &ones), (&[1.0; 4], &ones)]), None);
        assert_eq!(geometric(&[]), None);
    }

    #[test]
    fn drift_is_what_fixed_work_took() {
        assert_eq!(drift(&[1.0, 2.0, 4.0]), Some((0.5, 2.0)));
        assert_eq!(drift(&[]), None);
    }
}
