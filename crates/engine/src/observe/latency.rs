//! Owns: the latency monitor: what took longer than `latency-monitor-threshold`, by event and second. Does not own:
//! measuring it, the histograms of commands (`crate::stats`).

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Seconds with a sample that an event keeps.
const SAMPLES_MAX: usize = 160;
/// Kinds of events; they come from the code, not from clients.
const EVENTS_MAX: usize = 64;
/// Columns and rows of a picture.
const COLUMNS: usize = 80;
const ROWS: usize = 4;

/// The longest time in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Seconds since 1970.
    pub time_s: u64,
    /// Milliseconds.
    pub latency_ms: u64,
}

/// One event's samples.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The oldest first.
    pub samples: Vec<Sample>,
    /// The longest time ever.
    pub max_ms: u64,
    /// All times added up.
    pub sum_ms: u64,
    /// How many there were.
    pub count: u64,
}

/// All events.
#[derive(Debug, Default)]
pub struct LatencyEvents(Mutex<BTreeMap<&'static str, Series>>);

impl LatencyEvents {
    /// Something took so long.
    #[cold]
    pub fn add(&self, event: &'static str, latency_ms: u64, now_ms: u64) {
        let mut events = self.0.lock();
        if events.len() >= EVENTS_MAX && !events.contains_key(event) {
            return;
        }
        let series = events.entry(event).or_default();
        let time_s = now_ms / 1000;
        series.max_ms = series.max_ms.max(latency_ms);
        series.sum_ms += latency_ms;
        series.count += 1;
        match series.samples.last_mut() {
            Some(last) if last.time_s == time_s => last.latency_ms = last.latency_ms.max(latency_ms),
            _ => {
                if series.samples.len() == SAMPLES_MAX {
                    series.samples.remove(0);
                }
                series.samples.push(Sample { time_s, latency_ms });
            }
        }
    }
    /// Everything, by name.
    #[must_use]
    pub fn all(&self) -> BTreeMap<&'static str, Series> {
        self.0.lock().clone()
    }
    /// One event's series.
    #[must_use]
    pub fn series(&self, event: &[u8]) -> Option<(&'static str, Series)> {
        let events = self.0.lock();
        events.iter().find(|(name, _)| name.as_bytes() == event).map(|(name, series)| (*name, series.clone()))
    }
    /// Forgets one event, or all; says how many there were.
    pub fn reset(&self, event: Option<&[u8]>) -> usize {
        let mut events = self.0.lock();
        let before = events.len();
        events.retain(|name, _| event.is_some_and(|event| !name.as_bytes().eq_ignore_ascii_case(event)));
        before - events.len()
    }
}

/// What an event's samples come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Mean of the samples, in milliseconds.
    pub mean_ms: u64,
    /// Mean distance from it.
    pub deviation_ms: u64,
    /// Seconds from one sample to the next, in the mean.
    pub period_s: f64,
}

impl Series {
    /// What the samples come to. There is at least one.
    #[must_use]
    pub fn summary(&self, now_ms: u64) -> Summary {
        let count = self.samples.len().max(1) as u64;
        let mean_ms = self.samples.iter().map(|sample| sample.latency_ms).sum::<u64>() / count;
        let off = self.samples.iter().map(|sample| sample.latency_ms.abs_diff(mean_ms)).sum::<u64>();
        let first_s = self.samples.first().map_or(0, |sample| sample.time_s);
        let span_s = (now_ms / 1000).saturating_sub(first_s).max(1);
        Summary { mean_ms, deviation_ms: off / count, period_s: span_s as f64 / count as f64 }
    }

    /// A picture of the samples, one column each: how high, and below it how long ago.
    #[must_use]
    pub fn graph(&self, event: &str, now_ms: u64) -> String {
        let ages: Vec<String> =
            self.samples.iter().map(|sample| age((now_ms / 1000).saturating_sub(sample.time_s))).collect();
        let high = self.samples.iter().map(|sample| sample.latency_ms).max().unwrap_or(0);
        let low = self.samples.iter().map(|sample| sample.latency_ms).min().unwrap_or(0);
        let mut text = format!("{event} - high {high} ms, low {low} ms (all time high {} ms)\n", self.max_ms);
        text.push_str(&"-".repeat(COLUMNS));
        text.push('\n');
        for (samples, ages) in self.samples.chunks(COLUMNS).zip(ages.chunks(COLUMNS)) {
            bars(&mut text, samples, (low, high));
            labels(&mut text, ages);
        }
        text
    }
}

/// Rows of columns: `#` below the top, and at the top `_`, `o` or `#`, thirds of a row.
fn bars(text: &mut String, samples: &[Sample], (low, high): (u64, u64)) {
    let steps = ROWS as u64 * 3;
    let span = (high - low).max(1);
    for row in (0..ROWS as u64).rev() {
        for sample in samples {
            let height = 1 + (sample.latency_ms - low) * (steps - 1) / span;
            text.push(match height.saturating_sub(row * 3) {
                0 if row == 0 => '_',
                0 => ' ',
                1 => '_',
                2 => 'o',
                _ => '#',
            });
        }
        text.push('\n');
    }
    text.push('\n');
}

/// Ages below their columns, from top to bottom.
fn labels(text: &mut String, ages: &[String]) {
    let longest = ages.iter().map(String::len).max().unwrap_or(0);
    for line in 0..longest {
        for age in ages {
            text.push(age.as_bytes().get(line).copied().map_or(' ', char::from));
        }
        text.push('\n');
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// What LATENCY DOCTOR says.
#[must_use]
pub fn report(
    events: &BTreeMap<&'static str, Series>,
    threshold_ms: u64,
    slowlog_us: i64,
    now_ms: u64,
) -> String {
    if events.is_empty() && threshold_ms == 0 {
        return "Latency is not watched. CONFIG SET latency-monitor-threshold <milliseconds> switches it on.\n".into();
    }
    if events.is_empty() {
        return format!("No latency spikes: nothing has taken {threshold_ms} ms or more since the start.\n");
    }
    let mut text = String::from("Latency spikes were seen:\n\n");
    for (number, (event, series)) in events.iter().enumerate() {
        let Summary { mean_ms, deviation_ms, period_s } = series.summary(now_ms);
        let _ = writeln!(
            text,
            "{}. {event}: {} latency spikes (average {mean_ms}ms, mean deviation {deviation_ms}ms, period \
             {period_s:.2} sec). Worst all time event {}ms.",
            number + 1,
            series.samples.len(),
            series.max_ms,
        );
    }
    text.push_str("\nWhat can be done:\n\n");
    if events.contains_key("command") {
        if u64::try_from(slowlog_us).is_ok_and(|us| us / 1000 <= threshold_ms) {
            text.push_str("- SLOWLOG GET names the commands that were slow.\n");
        } else {
            let us = threshold_ms.saturating_mul(1000);
            let _ = writeln!(
                text,
                "- The slow log does not see these commands. CONFIG SET slowlog-log-slower-than {us} makes it."
            );
        }
        text.push_str(
            "- Commands over whole keyspaces and large values take long: KEYS, SORT, LRANGE and SMEMBERS of millions, \
             scripts. SCAN and its likes do the same in steps.\n",
        );
    }
    if events.contains_key("fast-command") {
        text.push_str(
            "- Commands that should take microseconds took milliseconds: the machine gives this process too little \
             time. Lower its load, give Weft fewer threads than there are cores, or look for a noisy neighbour.\n",
        );
    }
    if events.contains_key("eviction-cycle") {
        text.push_str(
            "- Keys are evicted in bulk. A higher maxmemory, or smaller steps in lowering it, spread that.\n",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_keeps_its_worst() {
        let events = LatencyEvents::default();
        for (latency_ms, now_ms) in [(10, 1000), (30, 1500), (20, 1900), (40, 3000)] {
            events.add("command", latency_ms, now_ms);
        }
        let (name, series) = events.series(b"command").unwrap();
        let sample = |time_s, latency_ms| Sample { time_s, latency_ms };
        assert_eq!((name, &*series.samples), ("command", &[sample(1, 30), sample(3, 40)][..]));
        assert_eq!((series.max_ms, series.sum_ms, series.count), (40, 100, 4));
        let summary = series.summary(5000);
        assert_eq!(summary, Summary { mean_ms: 35, deviation_ms: 5, period_s: 2.0 });
        for second in 0..1000 {
            events.add("command", 1, second * 1000);
        }
        assert_eq!(events.series(b"command").unwrap().1.samples.len(), SAMPLES_MAX);
        assert_eq!(
            (events.reset(Some(b"none")), events.reset(Some(b"COMMAND")), events.reset(None)),
            (0, 1, 0)
        );
    }

    #[test]
    fn pictures() {
        let samples = [(99_000, 1), (40_000, 12), (0, 6)];
        let series = Series {
            samples: samples
                .map(|(ago_ms, latency_ms)| Sample { time_s: (100_000 - ago_ms) / 1000, latency_ms })
                .into(),
            max_ms: 20,
            ..Series::default()
        };
        let graph = series.graph("command", 100_000);
        let mut lines = graph.lines();
        assert_eq!(lines.next(), Some("command - high 12 ms, low 1 ms (all time high 20 ms)"));
        assert_eq!(lines.next().map(str::len), Some(COLUMNS));
        assert_eq!(lines.collect::<Vec<_>>(), [" # ", " # ", " ##", "_##", "", "140", "m0s", " s "]);
    }

    #[test]
    fn the_doctor_says_what_to_do() {
        let events = LatencyEvents::default();
        assert!(report(&events.all(), 0, 10_000, 0).contains("latency-monitor-threshold"));
        assert!(report(&events.all(), 10, 10_000, 0).contains("No latency spikes"));
        events.add("command", 50, 1000);
        assert!(report(&events.all(), 5, 10_000, 2000).contains("slowlog-log-slower-than 5000"));
        assert!(report(&events.all(), 10, 10_000, 2000).contains("SLOWLOG GET"));
    }
}
