//! Owns: INFO: its sections and their fields, as Valkey 9 and Redis 7.2 name them, and what they need to know of the
//! process. Does not own: the figures (`crate::stats`, the keyspace).

mod activity;
mod commands;
mod server;

use std::fmt::{Display, Write as _};

use crate::engine::Engine;
pub use crate::observe::facts::{Facts, random_id};
pub use crate::observe::process::{Cpu, Memory};
pub(crate) use commands::percentiles;
pub use server::MemoryFigures;

/// Weft's own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Text of an INFO that is being written.
struct Report {
    text: String,
}

impl Report {
    fn section(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push_str("\r\n");
        }
        let _ = write!(self.text, "# {title}\r\n");
    }
    fn field(&mut self, name: &str, value: impl Display) {
        // Writing into a String cannot fail.
        let _ = write!(self.text, "{name}:{value}\r\n");
    }
    /// Several fields that are always the same.
    fn fixed(&mut self, fields: &[(&str, &str)]) {
        fields.iter().for_each(|(name, value)| self.field(name, value));
    }
    /// Bytes, and again for people.
    fn bytes(&mut self, name: &str, bytes: usize) {
        self.field(name, bytes);
        self.field(&format!("{name}_human"), human(bytes));
    }
}

/// Bytes as people read them: `1.50M`.
fn human(bytes: usize) -> String {
    let units = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.2}{}", units[unit])
}

/// A part over a whole; 0 of nothing.
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

type Write = fn(&Engine, &mut Report, u64);

/// Sections in their order: name, whether INFO without arguments has it, what writes it.
const SECTIONS: &[(&str, bool, Write)] = &[
    ("server", true, server::server),
    ("clients", true, server::clients),
    ("memory", true, server::memory),
    ("persistence", true, activity::persistence),
    ("stats", true, activity::stats),
    ("replication", true, activity::replication),
    ("cpu", true, server::cpu),
    ("modules", true, |_, report, _| report.section("Modules")),
    ("tls", true, server::tls),
    ("commandstats", false, commands::commandstats),
    ("errorstats", true, commands::errorstats),
    ("latencystats", false, commands::latencystats),
    ("cluster", true, activity::cluster),
    ("gateway", true, activity::gateway),
    ("keyspace", true, commands::keyspace),
];

/// The text of INFO. Sections come in their own order, each once; names that are none are passed over.
#[must_use]
pub fn info<'a>(engine: &Engine, wanted: impl Iterator<Item = &'a [u8]>, now_ms: u64) -> String {
    let mut take = [false; SECTIONS.len()];
    let mut any = false;
    for name in wanted {
        any = true;
        let all = [b"all".as_slice(), b"everything"].iter().any(|all| name.eq_ignore_ascii_case(all));
        let default = name.eq_ignore_ascii_case(b"default");
        for (take, (section, by_default, _)) in take.iter_mut().zip(SECTIONS) {
            *take |= all || default && *by_default || name.eq_ignore_ascii_case(section.as_bytes());
        }
    }
    engine.sample(now_ms);
    let mut report = Report { text: String::with_capacity(8 << 10) };
    for (take, (_, by_default, write)) in take.iter().zip(SECTIONS) {
        if *take || !any && *by_default {
            write(engine, &mut report, now_ms);
        }
    }
    report.text
}

impl Engine {
    /// Looks at what rates and peaks are made of. The server calls it some ten times a second.
    pub fn sample(&self, now_ms: u64) {
        use std::sync::atomic::Ordering::Relaxed;
        self.stats.used_peak_bytes.fetch_max(self.keyspace.used_bytes(), Relaxed);
        self.stats.sample(now_ms);
        self.note_second(now_ms);
    }
    /// CONFIG RESETSTAT, on a worker's thread.
    pub(crate) fn reset_stats(&self, worker: u16) {
        use std::sync::atomic::Ordering::Relaxed;
        for (base, counter) in self.stats.keyspace_base.iter().zip(commands::KEYSPACE_COUNTERS) {
            base.store(self.keyspace.total(counter).max(0) as u64, Relaxed);
        }
        self.stats.used_peak_bytes.store(self.keyspace.used_bytes(), Relaxed);
        self.stats.reset(worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_for_people() {
        assert_eq!((human(0), human(1023), human(1024)), ("0B".into(), "1023B".into(), "1.00K".into()));
        assert_eq!((human(1_572_864), human(25_276_502_016)), ("1.50M".into(), "23.54G".into()));
        assert_ne!(random_id(), random_id());
        assert_eq!(random_id().len(), 40);
    }
}
