//! Owns: how long answers took, in microseconds, however long that was. Does not own: who was asked.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Nobody waits for an answer for longer.
const LONGEST: Duration = Duration::from_secs(600);
/// Digits of a latency that are kept.
const DIGITS: u8 = 3;

pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST.as_micros() as u64, DIGITS).expect("bounds that are constants")
}

pub(crate) fn note(latencies: &mut Histogram<u64>, took: Duration) {
    latencies.saturating_record(took.as_micros() as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is beyond a histogram's bounds is counted as one of them.
    #[test]
    fn the_slow_are_not_counted_among_the_fast() {
        let mut latencies = histogram();
        for took in [1, 50, 3_000, 250_000, 60_000_000] {
            note(&mut latencies, Duration::from_micros(took));
            let slowest = latencies.value_at_quantile(1.0) as f64;
            assert!((slowest / took as f64 - 1.0).abs() < 0.01, "{took} us are shown as {slowest}");
        }
    }
}
