//! The line that is written over while a test runs. Owns what stands on it.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use weft_client::fleet::Counts;

use super::generator::{Live, histogram};
use crate::text::grouped;

/// How often it is written.
const INTERVAL: Duration = Duration::from_millis(250);
/// How soon the end of a test is seen.
const LOOK: Duration = Duration::from_millis(20);

pub(super) struct LiveLine {
    label: String,
    threads: Vec<Arc<Mutex<Live>>>,
}

impl LiveLine {
    pub(super) fn new(label: &str, threads: Vec<Arc<Mutex<Live>>>) -> LiveLine {
        LiveLine { label: label.to_string(), threads }
    }

    /// Writes until the test is over, then clears the line.
    pub(super) fn show_while(&self, mut runs: impl FnMut() -> bool) {
        let (mut shown, mut before) = (Instant::now(), (Counts::default(), histogram()));
        while runs() {
            std::thread::sleep(LOOK);
            if shown.elapsed() < INTERVAL {
                continue;
            }
            let now = self.sum();
            let line = line(&self.label, &before, &now, shown.elapsed());
            // Standard error that is gone has nobody who reads it.
            let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
            (shown, before) = (Instant::now(), now);
        }
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }

    fn sum(&self) -> (Counts, Histogram<u64>) {
        let (mut counts, mut latency) = (Counts::default(), histogram());
        for live in &self.threads {
            if let Ok(live) = live.lock() {
                counts.add(&live.counts);
                // Both have the same bounds.
                let _ = latency.add(&live.latency);
            }
        }
        (counts, latency)
    }
}

/// Rate, median and 99th percentile since the last line, errors so far.
fn line(
    label: &str,
    before: &(Counts, Histogram<u64>),
    now: &(Counts, Histogram<u64>),
    time: Duration,
) -> String {
    let mut recent = now.1.clone();
    let _ = recent.subtract(&before.1);
    let rate = (now.0.replies - before.0.replies) as f64 / time.as_secs_f64();
    let ms = |quantile| recent.value_at_quantile(quantile) as f64 / 1e6;
    let label: String = label.chars().take(24).collect();
    format!(
        "{label}: {} requests/s, p50 {:.3} ms, p99 {:.3} ms, {} done, {} errors",
        grouped(rate as u64),
        ms(0.5),
        ms(0.99),
        grouped(now.0.replies),
        grouped(now.0.errors)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_what_is_new() {
        let mut before = (Counts::default(), histogram());
        before.0.replies = 1000;
        before.1.record_n(9_000_000, 1000).unwrap();
        let mut now = before.clone();
        now.0.replies += 500;
        now.0.errors = 3;
        now.1.record_n(1_000_000, 500).unwrap();
        let text = line("GET", &before, &now, Duration::from_millis(500));
        assert_eq!(text, "GET: 1,000 requests/s, p50 1.000 ms, p99 1.000 ms, 1,500 done, 3 errors");
    }
}
