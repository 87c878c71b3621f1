//! Owns: how often something took how long, in one thread's counters that others may read meanwhile. Does not own: what
//! is measured.
//!
//! A value falls into one of 16 parts of its power of two, so a percentile is at most a sixteenth too high. The common
//! crate for this cannot be read while somebody writes; here one thread writes with plain stores, and readers see
//! every counter as it was a moment ago. 4.6 KiB.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::stats::bump;

/// Parts of a power of two.
const PARTS_LOG2: u32 = 4;
const PARTS: usize = 1 << PARTS_LOG2;
/// Values are cut to this: 69 minutes in nanoseconds.
const VALUE_MAX: u64 = (1 << 42) - 1;
const BUCKETS: usize = (42 - PARTS_LOG2 as usize + 1) * PARTS;

/// One thread's histogram.
#[derive(Debug)]
pub struct Histogram([AtomicU64; BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }
}

/// Where a value is counted.
#[inline]
#[must_use]
pub fn bucket_of(value: u64) -> usize {
    let value = value.min(VALUE_MAX);
    if value < PARTS as u64 {
        return value as usize;
    }
    let power = 63 - value.leading_zeros();
    let part = (value >> (power - PARTS_LOG2)) as usize & (PARTS - 1);
    (power - PARTS_LOG2 + 1) as usize * PARTS + part
}

/// The highest value that is counted in a bucket.
fn highest_of(bucket: usize) -> u64 {
    if bucket < PARTS {
        return bucket as u64;
    }
    let shift = bucket / PARTS - 1;
    let part = (bucket % PARTS) as u64;
    ((PARTS as u64 + part + 1) << shift) - 1
}

impl Histogram {
    /// Counts `times` values of a [bucket](bucket_of). Only the owning thread does so.
    #[inline]
    pub fn add(&self, bucket: usize, times: u64) {
        bump(&self.0[bucket], times);
    }
    /// Forgets everything. Only the owning thread does so.
    pub fn clear(&self) {
        self.0.iter().for_each(|count| count.store(0, Relaxed));
    }
}

/// The sum of several threads' histograms.
#[derive(Clone, Debug)]
pub struct Counts(Box<[u64; BUCKETS]>);

impl Default for Counts {
    fn default() -> Self {
        Self(Box::new([0; BUCKETS]))
    }
}

impl Counts {
    /// Adds a thread's part.
    pub fn add(&mut self, part: &Histogram) {
        self.0.iter_mut().zip(&part.0).for_each(|(sum, count)| *sum += count.load(Relaxed));
    }
    /// What has come since, as far as it is more.
    #[must_use]
    pub fn behind(&self, before: &Self) -> Self {
        let mut since = self.clone();
        since.0.iter_mut().zip(before.0.iter()).for_each(|(now, before)| *now = now.saturating_sub(*before));
        since
    }
    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.iter().sum()
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }
    /// The value that `percent` of all are not above; 0 of none.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = ((self.len() as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.0.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return highest_of(bucket);
            }
        }
        0
    }
    /// For each power of two of `unit` up to the highest value: how many are not above it. Powers below which there is
    /// nothing are left out, as are those that add nothing.
    #[must_use]
    pub fn powers_of_two(&self, unit: u64) -> Vec<(u64, u64)> {
        let mut list = Vec::new();
        let (mut seen, mut bucket) = (0, 0);
        let total = self.len();
        let mut power = 1;
        while seen < total {
            let before = seen;
            while bucket < BUCKETS && (highest_of(bucket) < power * unit || power * unit > VALUE_MAX) {
                seen += self.0[bucket];
                bucket += 1;
            }
            if seen > before {
                list.push((power, seen));
            }
            power *= 2;
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other() {
        let mut last = 0;
        for value in (0..5000).chain((13..42).map(|power| (1 << power) - 1)).chain([VALUE_MAX, u64::MAX]) {
            let bucket = bucket_of(value);
            assert!(bucket >= last && bucket < BUCKETS, "{value}");
            assert!(highest_of(bucket) >= value.min(VALUE_MAX), "{value}");
            assert!(bucket == 0 || highest_of(bucket - 1) < value, "{value}");
            last = bucket;
        }
    }

    #[test]
    fn percentiles_and_powers() {
        let histogram = Histogram::default();
        for value in 1..=1000 {
            histogram.add(bucket_of(value * 1000), 1);
        }
        let mut counts = Counts::default();
        counts.add(&histogram);
        assert_eq!(counts.len(), 1000);
        for percent in [1, 50, 99, 100_u64] {
            let exact = percent * 10_000;
            let found = counts.percentile(percent as f64);
            assert!(found >= exact && found <= exact + exact / 16, "{percent}: {found}");
        }
        let powers = counts.powers_of_two(1000);
        assert_eq!(powers.last().map(|(power, seen)| (*power, *seen)), Some((1024, 1000)));
        histogram.clear();
        let mut counts = Counts::default();
        counts.add(&histogram);
        assert!(counts.is_empty() && counts.powers_of_two(1000).is_empty() && counts.percentile(50.0) == 0);
    }
}
