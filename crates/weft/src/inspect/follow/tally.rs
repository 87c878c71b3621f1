//! Counts of everything that went by, for the summary.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::text::{grouped, size};

/// Commands that are counted one by one; the others together.
const COMMANDS_MAX: usize = 1000;

/// All counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) connections: u64,
    /// From clients and from the server.
    pub(super) bytes: [u64; 2],
    pub(super) requests: u64,
    pub(super) replies: u64,
    pub(super) errors: u64,
    pub(super) pushes: u64,
    pub(super) control_frames: u64,
    /// Directions in which the view lost the stream.
    pub(super) lost: u64,
    commands: BTreeMap<String, Answers>,
}

/// The answered requests of one command.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    count: u64,
    total: Duration,
    max: Duration,
}

impl Tally {
    /// A request of this command was answered.
    pub(super) fn answered(&mut self, command: &str, latency: Duration) {
        let name = command.to_ascii_uppercase();
        let full = self.commands.len() >= COMMANDS_MAX && !self.commands.contains_key(&name);
        let answers = self.commands.entry(if full { "(others)".into() } else { name }).or_default();
        answers.count += 1;
        answers.total += latency;
        answers.max = answers.max.max(latency);
    }

    fn sorted(&self) -> Vec<(&String, &Answers)> {
        let mut commands: Vec<_> = self.commands.iter().collect();
        commands.sort_by_key(|(_, answers)| std::cmp::Reverse(answers.count));
        commands
    }

    /// As people read it.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "\nsummary: {} connections, {} requests, {} replies ({} errors), {} pushes, {} control frames, {} lost streams; \
             {} from clients, {} from the server\n",
            grouped(self.connections),
            grouped(self.requests),
            grouped(self.replies),
            grouped(self.errors),
            grouped(self.pushes),
            grouped(self.control_frames),
            grouped(self.lost),
            size(self.bytes[0] as f64),
            size(self.bytes[1] as f64),
        );
        let width = self.commands.keys().map(|name| name.chars().count()).max().unwrap_or(0).max(7);
        if !self.commands.is_empty() {
            let _ =
                writeln!(text, "{:<width$}  {:>10}  {:>10}  {:>10}", "command", "answered", "mean", "max");
        }
        for (name, answers) in self.sorted() {
            let mean = answers.total.as_secs_f64() / answers.count.max(1) as f64;
            let _ = writeln!(
                text,
                "{name:<width$}  {:>10}  {:>10}  {:>10}",
                grouped(answers.count),
                latency_text(Duration::from_secs_f64(mean)),
                latency_text(answers.max),
            );
        }
        text
    }

    /// As a program reads it.
    pub(super) fn json(&self) -> Value {
        let commands: Vec<Value> = self
            .sorted()
            .into_iter()
            .map(|(name, answers)| {
                json!({
                    "command": name,
                    "answered": answers.count,
                    "latency_mean_us": (answers.total.as_micros() as u64).checked_div(answers.count),
                    "latency_max_us": answers.max.as_micros() as u64,
                })
            })
            .collect();
        json!({
            "connections": self.connections,
            "requests": self.requests,
            "replies": self.replies,
            "errors": self.errors,
            "pushes": self.pushes,
            "control_frames": self.control_frames,
            "lost_streams": self.lost,
            "bytes_from_clients": self.bytes[0],
            "bytes_from_server": self.bytes[1],
            "commands": commands,
        })
    }
}

/// A time with a unit and three digits.
pub(super) fn latency_text(latency: Duration) -> String {
    let micros = latency.as_secs_f64() * 1e6;
    match micros {
        0.0..999.5 => format!("{micros:.0} µs"),
        999.5..999_500.0 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_counted_whatever_their_case_and_bounded() {
        let mut tally = Tally::default();
        tally.answered("get", Duration::from_micros(10));
        tally.answered("GET", Duration::from_micros(30));
        let json = tally.json();
        assert_eq!(json["commands"][0]["answered"], 2);
        assert_eq!(json["commands"][0]["latency_mean_us"], 20);
        for i in 0..2 * COMMANDS_MAX {
            tally.answered(&format!("X{i}"), Duration::ZERO);
        }
        assert_eq!(tally.commands.len(), COMMANDS_MAX + 1);
        assert!(tally.text().contains("GET                2       20 µs       30 µs"), "{}", tally.text());
    }

    #[test]
    fn latencies_have_units() {
        for (micros, text) in [(7, "7 µs"), (1500, "1.50 ms"), (2_500_000, "2.50 s")] {
            assert_eq!(latency_text(Duration::from_micros(micros)), text);
        }
    }
}
