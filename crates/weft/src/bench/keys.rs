//! Which key comes next: uniform, Zipf or one after the other. Owns the distributions.

use std::sync::Arc;

use anyhow::{Result, bail};

use super::cluster::{TAG_BYTES, Tags};
use weft_measure::Random;

/// How keys are chosen from a key space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Distribution {
    /// Each as likely as any other.
    Uniform,
    /// Key ranks as likely as 1 / rank^exponent, spread over the key space.
    Zipf(f64),
    /// One after the other.
    Sequential,
}

/// The exponent of `zipf` without one, as in YCSB.
const ZIPF_EXPONENT: f64 = 0.99;

impl Distribution {
    /// `uniform`, `zipf`, `zipf:1.2`, `sequential`.
    pub(super) fn parse(text: &str) -> Result<Distribution> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("uniform", "") => Ok(Distribution::Uniform),
            ("sequential", "") => Ok(Distribution::Sequential),
            ("zipf", "") => Ok(Distribution::Zipf(ZIPF_EXPONENT)),
            ("zipf", exponent) => match exponent.parse() {
                Ok(exponent) if exponent > 0.0 && exponent <= 5.0 => Ok(Distribution::Zipf(exponent)),
                _ => bail!("{exponent:?} is no exponent of zipf: a number above 0, at most 5"),
            },
            _ => bail!("{text:?} is none of uniform, zipf, zipf:EXPONENT, sequential"),
        }
    }
}

/// A stream of keys below a bound.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    space: u64,
    /// How often sequential keys have begun again, from a time on.
    passes: u64,
    random: Random,
    kind: Kind,
    part: Part,
}

/// The part of the keys that one master of a cluster has: every so many-th, from one on.
#[derive(Clone, Debug)]
struct Part {
    first: u64,
    of: u64,
    tags: Arc<Tags>,
}

#[derive(Clone, Debug)]
enum Kind {
    One,
    Uniform,
    Zipf(Zipf),
    Sequential(u64),
}

impl Keys {
    /// Keys below `space`; of 0 or 1 there is only key 0. Sequential keys begin at `first`.
    pub(super) fn new(distribution: Distribution, space: u64, first: u64, seed: u64) -> Keys {
        let kind = match distribution {
            _ if space <= 1 => Kind::One,
            Distribution::Uniform => Kind::Uniform,
            Distribution::Zipf(exponent) => Kind::Zipf(Zipf::new(space, exponent)),
            Distribution::Sequential => Kind::Sequential(first % space),
        };
        let part = Part { first: 0, of: 1, tags: Arc::default() };
        Keys { space, passes: hundredths(), random: Random::new(seed), kind, part }
    }

    /// A number that has grown by one whenever sequential keys have begun again, and that is greater in a run that
    /// begins later: no run goes round a hundred times in a second.
    pub(super) fn pass(&self) -> u64 {
        self.passes
    }

    /// Makes these the keys of one part of so many. Of how many keys it is one says [`part_of`].
    pub(super) fn in_part(mut self, index: u64, count: u64, tags: &Arc<Tags>) -> Keys {
        self.part = Part { first: index, of: count, tags: Arc::clone(tags) };
        self
    }

    /// Whether keys have tags.
    pub(super) fn is_tagged(&self) -> bool {
        !self.part.tags.is_empty()
    }

    /// The tag that belongs to a key; a key always has the same.
    #[inline]
    pub(super) fn tag(&self, key: u64) -> [u8; TAG_BYTES] {
        let tags = &self.part.tags;
        tags[((key / self.part.of) % tags.len() as u64) as usize]
    }

    /// What a word of a command is with a key's number and tag in it.
    pub(super) fn name(&self, word: &str, key: u64) -> String {
        let word = word.replace(super::template::RANDOM, &format!("{key:012}"));
        match self.part.tags.is_empty() {
            true => word,
            false => word.replace("tag}", &format!("{}}}", String::from_utf8_lossy(&self.tag(key)))),
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        let number = match &mut self.kind {
            Kind::One => 0,
            Kind::Uniform => self.random.below(self.space),
            // Popular keys are not neighbours in a real key space.
            Kind::Zipf(zipf) => scatter(zipf.rank(&mut self.random)) % self.space,
            Kind::Sequential(next) => {
                let key = *next;
                let ends = key + 1 == self.space;
                *next = if ends { 0 } else { key + 1 };
                self.passes += u64::from(ends);
                key
            }
        };
        number * self.part.of + self.part.first
    }
}

/// How many keys below `space` are in part `index` of `count`.
pub(super) fn part_of(space: u64, index: u64, count: u64) -> u64 {
    (space + count - 1 - index) / count
}

/// Hundredths of a second since 1970: twelve digits, for longer than anybody plans.
fn hundredths() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.as_millis() as u64 / 10
}

fn scatter(rank: u64) -> u64 {
    Random::new(rank).next()
}

/// Zipf ranks by rejection-inversion (Hörmann and Derflinger 1996): constant memory, about one attempt for each.
#[derive(Clone, Debug)]
struct Zipf {
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    fn new(count: u64, exponent: f64) -> Zipf {
        let mut zipf = Zipf { exponent, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(count as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the weight, which is a logarithm when the exponent is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        exp_minus_one_over((1.0 - self.exponent) * log) * log
    }

    fn inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.exponent)).max(-1.0);
        (log_one_plus_over(t) * x).exp()
    }

    /// A rank from 0.
    fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let unit = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
            let u = self.integral_last + unit * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let rank = x.round().max(1.0);
            if rank - x <= self.shortcut || u >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

/// (eˣ − 1) / x, also near 0.
fn exp_minus_one_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, also near 0.
fn log_one_plus_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_parsed() {
        assert_eq!(Distribution::parse("uniform").unwrap(), Distribution::Uniform);
        assert_eq!(Distribution::parse("zipf").unwrap(), Distribution::Zipf(0.99));
        assert_eq!(Distribution::parse("zipf:1").unwrap(), Distribution::Zipf(1.0));
        for bad in ["zipf:0", "zipf:6", "zipf:x", "gauss", "uniform:1", ""] {
            assert!(Distribution::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn zipf_ranks_are_as_likely_as_they_should_be() {
        for exponent in [0.5, 0.99, 1.0, 1.5] {
            let count = 1000u64;
            let zipf = Zipf::new(count, exponent);
            let mut random = Random::new(7);
            let draws = 400_000;
            let mut seen = vec![0u64; count as usize];
            for _ in 0..draws {
                seen[zipf.rank(&mut random) as usize] += 1;
            }
            let sum: f64 = (1..=count).map(|rank| (rank as f64).powf(-exponent)).sum();
            for rank in [1u64, 2, 3, 10, 100] {
                let expected = draws as f64 * (rank as f64).powf(-exponent) / sum;
                let found = seen[rank as usize - 1] as f64;
                let slack = 5.0 * expected.sqrt();
                assert!((found - expected).abs() < slack, "{exponent} rank {rank}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn sequential_keys_go_round() {
        let mut keys = Keys::new(Distribution::Sequential, 3, 2, 1);
        assert_eq!([(); 5].map(|()| keys.next()), [2, 0, 1, 2, 0]);
        let mut keys = Keys::new(Distribution::Uniform, 10, 0, 1);
        assert!((0..1000).all(|_| keys.next() < 10));
        let tags = Arc::new(vec![*b"aaa", *b"bbb"]);
        let (parts, mut seen) = (3, Vec::new());
        for part in 0..parts {
            let space = part_of(10, part, parts);
            let mut keys = Keys::new(Distribution::Sequential, space, 0, 1).in_part(part, parts, &tags);
            seen.extend((0..space).map(|_| keys.next()));
            assert_eq!(
                keys.name("key:{tag}:__rand_int__", part + 3),
                format!("key:{{bbb}}:{:012}", part + 3)
            );
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
        assert_eq!(Keys::new(Distribution::Uniform, 0, 0, 1).next(), 0);
    }
}
