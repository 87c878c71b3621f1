//! Owns: what the server has done in each second of the last ten minutes, for whoever looks at it (the console's
//! Overview), and that they are told of the next one. Does not own: the counters (`crate::stats`, the keyspace), how a
//! row is written to a stream (the server).
//!
//! A row is a second's figures under the names of [`NAMES`]; 90 KiB for all rows. It costs some ten microseconds a
//! second, whether anybody looks or not, so that a page that is opened is not empty.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use weft_store::{Counter, Keyspace};

use super::process::{Cpu, Memory};
use crate::clients::Clients;
use crate::histogram::Counts;
use crate::mailbox::{Mailboxes, Message};
use crate::stats::Stats;

/// Rows that are kept.
pub const ROWS_MAX: usize = 600;

/// What the figures of a row are called, in their order. What is counted is that of one second.
pub const NAMES: [&str; 18] = [
    "time_s",
    "up_s",
    "commands",
    "errors",
    "hits",
    "misses",
    "expired",
    "evicted",
    "bytes_in",
    "bytes_out",
    "p50_us",
    "p99_us",
    "p999_us",
    "cpu_ms",
    "clients",
    "keys",
    "used_bytes",
    "resident_bytes",
];

/// One second; nothing where there is nothing to be said, as of the latency when no command has run.
type Row = [Option<u64>; NAMES.len()];

/// What has been counted since the start.
#[derive(Debug)]
struct Totals {
    at_ms: u64,
    figures: [u64; 9],
    times: Counts,
}

#[derive(Debug, Default)]
struct KeptRows {
    rows: VecDeque<Row>,
    /// Rows that there ever were.
    count: u64,
    last: Option<Totals>,
}

/// The rows, and who looks.
#[derive(Debug, Default)]
pub struct History {
    kept: Mutex<KeptRows>,
    /// The second of the last row.
    second: AtomicU64,
    watchers: AtomicUsize,
}

/// What a row is made of.
pub(crate) struct Sources<'e> {
    pub(crate) keyspace: &'e Keyspace,
    pub(crate) stats: &'e Stats,
    pub(crate) clients: &'e Clients,
}

impl KeptRows {
    fn push(&mut self, row: Row) {
        if self.rows.len() == ROWS_MAX {
            self.rows.pop_front();
        }
        self.rows.push_back(row);
        self.count += 1;
    }
}

impl History {
    /// Somebody looks from now on.
    pub fn join(&self) {
        self.watchers.fetch_add(1, Relaxed);
    }
    /// Somebody looks no more.
    pub fn leave(&self) {
        self.watchers.fetch_sub(1, Relaxed);
    }
    /// All rows as JSON, `{"names":[…],"rows":[[…],…]}`, and how many there ever were.
    #[must_use]
    pub fn all(&self) -> (u64, String) {
        let kept = self.kept.lock();
        let rows: Vec<String> = kept.rows.iter().map(json).collect();
        (kept.count, format!("{{\"names\":[\"{}\"],\"rows\":[{}]}}", NAMES.join("\",\""), rows.join(",")))
    }
    /// The rows behind so many, as JSON, each for itself, and how many there ever were.
    #[must_use]
    pub fn behind(&self, count: u64) -> (u64, Vec<String>) {
        let kept = self.kept.lock();
        let new = kept.count.saturating_sub(count).min(kept.rows.len() as u64) as usize;
        (kept.count, kept.rows.range(kept.rows.len() - new..).map(json).collect())
    }
}

fn json(row: &Row) -> String {
    let mut text = String::with_capacity(160);
    for figure in row {
        text.push(if text.is_empty() { '[' } else { ',' });
        // Writing into a String cannot fail.
        let _ = match figure {
            Some(figure) => write!(text, "{figure}"),
            None => text.write_str("null"),
        };
    }
    text.push(']');
    text
}

impl History {
    /// Whether another second has begun than when this was asked last.
    pub(crate) fn is_new_second(&self, now_ms: u64) -> bool {
        self.second.swap(now_ms / 1000, Relaxed) != now_ms / 1000
    }
    /// A second has passed: its row is made, and those who look are told.
    pub(crate) fn note_second(&self, from: &Sources<'_>, mailboxes: &Mailboxes, now_ms: u64) {
        let now = from.totals(now_ms);
        let mut kept = self.kept.lock();
        let before = kept.last.replace(now);
        let (Some(before), Some(now)) = (before, &kept.last) else { return };
        let row = from.row(&before, now);
        kept.push(row);
        drop(kept);
        if self.watchers.load(Relaxed) > 0 {
            mailboxes.post_all(|| Message::Figures);
        }
    }
}

impl Sources<'_> {
    fn totals(&self, at_ms: u64) -> Totals {
        let total = |counter| self.keyspace.total(counter).max(0) as u64;
        let [bytes_in, bytes_out, ..] = self.stats.traffic();
        let cpu = Cpu::own();
        let figures = [
            self.stats.commands(),
            self.stats.errors(),
            total(Counter::Hits),
            total(Counter::Misses),
            total(Counter::Expired),
            total(Counter::Evicted),
            bytes_in,
            bytes_out,
            ((cpu.user_s + cpu.system_s) * 1000.0) as u64,
        ];
        Totals { at_ms, figures, times: self.stats.times() }
    }

    fn row(&self, before: &Totals, now: &Totals) -> Row {
        let passed_ms = now.at_ms.saturating_sub(before.at_ms).max(1);
        // RESETSTAT makes totals smaller: nothing is known of that second.
        let mut each = now
            .figures
            .iter()
            .zip(before.figures)
            .map(|(now, before)| Some(now.saturating_sub(before).saturating_mul(1000) / passed_ms));
        let mut next = || each.next().flatten();
        let counted: [Option<u64>; 9] = std::array::from_fn(|_| next());
        let [commands, errors, hits, misses, expired, evicted, bytes_in, bytes_out, cpu_ms] = counted;
        let times = now.times.behind(&before.times);
        let within = |percent| (!times.is_empty()).then(|| times.percentile(percent) / 1000);
        let keys: usize = (0..self.keyspace.database_count() as u8).map(|db| self.keyspace.len(db)).sum();
        [
            Some(now.at_ms / 1000),
            Some(now.at_ms.saturating_sub(self.stats.started_ms) / 1000),
            commands,
            errors,
            hits,
            misses,
            expired,
            evicted,
            bytes_in,
            bytes_out,
            within(50.0),
            within(99.0),
            within(99.9),
            cpu_ms,
            Some(self.clients.len() as u64),
            Some(keys as u64),
            Some(self.keyspace.used_bytes() as u64),
            Some(Memory::now().resident_bytes as u64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_minutes_are_kept() {
        let history = History::default();
        let push = |second: u64| history.kept.lock().push([Some(second); NAMES.len()]);
        (0..ROWS_MAX as u64).for_each(push);
        assert_eq!(history.kept.lock().rows.len(), ROWS_MAX);
        push(ROWS_MAX as u64);
        let first = history.kept.lock().rows[0][0];
        assert_eq!((history.kept.lock().rows.len(), first), (ROWS_MAX, Some(1)));
        let (count, new) = history.behind(ROWS_MAX as u64);
        assert_eq!((count, new.len()), (ROWS_MAX as u64 + 1, 1));
        assert_eq!(history.behind(0).1.len(), ROWS_MAX, "what is not kept any more is left out");
        assert_eq!(history.behind(count).1.len(), 0);
        assert!(history.all().1.starts_with("{\"names\":[\"time_s\",") && history.all().1.ends_with("]]}"));
        let mut row = [Some(1); NAMES.len()];
        row[1] = None;
        assert!(json(&row).starts_with("[1,null,1,"));
    }
}
