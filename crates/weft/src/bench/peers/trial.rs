//! What is asked of a server as a whole rather than of a command: figures beside their bounds. Owns the verdicts.

use serde::{Deserialize, Serialize};
use weft_measure::verdict::{Goal, Ratio, Verdict};

use super::Results;
use weft_measure::{Table, number};

/// The bytes over key and value that a key may need.
const KEY_OVERHEAD_BYTES_MAX: f64 = 28.0;
/// What a second worker may add to the user time of a request.
const SECOND_WORKER_MAX: f64 = 1.15;
/// The longest time that background work may hold anybody up.
pub(super) const PAUSE_MS_MAX: f64 = 1.0;

/// Whether a figure of a single trial, which has no rounds, is on the goal's side.
fn holds(goal: Goal, value: f64) -> bool {
    goal.verdict(Ratio { value, low: value, high: value }) == Verdict::Reached
}

/// One figure of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Figure {
    /// With its unit.
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) asked: Option<Goal>,
    /// The same figure while nothing goes on. Where that is beyond the bound already, the trial says nothing.
    #[serde(default)]
    pub(super) idle: Option<f64>,
}

impl Figure {
    fn verdict(&self) -> String {
        match (self.asked, self.idle) {
            (None, _) => String::new(),
            (Some(asked), _) if holds(asked, self.value) => "reached".to_string(),
            (Some(asked), Some(idle)) if !holds(asked, idle) => "the machine's own".to_string(),
            (Some(_), _) => "missed".to_string(),
        }
    }
}

/// A server under one trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trial {
    /// The part of the run: `compaction`, `overwriting`, `expiry`.
    pub(super) part: String,
    pub(super) label: String,
    pub(super) server: String,
    pub(super) figures: Vec<Figure>,
}

impl Trial {
    pub(super) fn new(part: &str, label: String, server: &str) -> Trial {
        Trial { part: part.to_string(), label, server: server.to_string(), figures: Vec::new() }
    }

    /// A figure that explains others.
    pub(super) fn note(&mut self, name: &str, value: f64) {
        self.figures.push(Figure { name: name.to_string(), value, asked: None, idle: None });
    }

    /// A figure with a bound, which is Weft's alone.
    pub(super) fn asked(&mut self, name: &str, value: f64, asked: Goal) {
        let asked = Some(asked).filter(|_| self.server == "weft");
        self.figures.push(Figure { name: name.to_string(), value, asked, idle: None });
    }

    /// The same of a figure that is not nothing while nothing goes on.
    pub(super) fn asked_over(&mut self, name: &str, (value, idle): (f64, f64), asked: Goal) {
        self.asked(name, value, asked);
        if let Some(figure) = self.figures.last_mut() {
            figure.idle = Some(idle);
        }
    }
}

/// Bounds on figures that other parts have measured: memory of keys, two workers, latency at a fixed rate.
fn derived(results: &Results) -> Vec<Trial> {
    let mut trials = Vec::new();
    for weight in results.memory.iter().filter(|weight| weight.server == "weft") {
        let mut trial = Trial::new("memory", format!("memory: {}", weight.what), "weft");
        let over = |bytes: f64| bytes - weight.payload as f64;
        let most = Goal::AtMost(KEY_OVERHEAD_BYTES_MAX);
        trial.asked("bytes over key and value, resident", over(weight.resident), most);
        if let Some(used) = weight.used {
            trial.asked("bytes over key and value, used_memory", over(used), most);
        }
        trials.push(trial);
    }
    let rate = |server: &str, protocol: &str, workers: u32, pipeline: u32| {
        results.rates.iter().find(|rate| {
            rate.server == server
                && rate.protocol == protocol
                && rate.workers == workers
                && rate.pipeline == pipeline
        })
    };
    for protocol in ["RESP3", "RESPB"] {
        let of = |workers| rate("weft", protocol, workers, super::rates::WORKERS_PIPELINE);
        if let (Some(one), Some(two)) = (of(1), of(2)) {
            let label = format!("two workers, GET, pipeline {}, {protocol}", one.pipeline);
            let mut trial = Trial::new("rates", label, "weft");
            let ratio = two.server_user_us.median / one.server_user_us.median;
            trial.asked("user time of two over one", ratio, Goal::AtMost(SECOND_WORKER_MAX));
            trial.note("CPU time of two over one", two.server_cpu_us.median / one.server_cpu_us.median);
            trials.push(trial);
        }
        if let (Some(weft), Some(valkey)) = (rate("weft", protocol, 1, 1), rate("valkey", "RESP3", 1, 1)) {
            let mut trial = Trial::new("rates", format!("half of Valkey's peak, {protocol}"), "weft");
            let ratio = weft.p999_ms.median / valkey.p999_ms.median;
            trial.asked("p99.9 over Valkey's", ratio, Goal::AtMost(1.0));
            trials.push(trial);
        }
    }
    trials
}

/// All trials, each figure a line.
pub(super) fn table(results: &Results) -> Table {
    let mut table = Table::new(
        "The server as a whole: memory, compaction, expiry, two workers",
        &["case", "server", "figure", "measured", "asked", ""],
    );
    for trial in derived(results).iter().chain(&results.trials) {
        for figure in &trial.figures {
            let digits = if figure.value.abs() < 100.0 { 2 } else { 0 };
            table.row(vec![
                trial.label.clone(),
                trial.server.clone(),
                figure.name.clone(),
                number(Some(figure.value), digits),
                figure.asked.map_or_else(|| "–".to_string(), |goal| goal.to_string()),
                figure.verdict(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_wefts_alone() {
        let mut results = Results::default();
        for server in ["weft", "valkey"] {
            let mut trial = Trial::new("expiry", "expiry".into(), server);
            trial.asked("longest GET, ms", 1.5, Goal::AtMost(PAUSE_MS_MAX));
            trial.asked("given back, %", 80.0, Goal::AtLeast(80.0));
            trial.asked_over("GET of a client, ms", (9.0, 7.0), Goal::AtMost(PAUSE_MS_MAX));
            results.trials.push(trial);
        }
        let text = table(&results).markdown();
        assert!(text.contains("| expiry | weft | longest GET, ms | 1.50 | at most 1 | missed |"), "{text}");
        assert!(text.contains("| expiry | weft | given back, % | 80.00 | at least 80 | reached |"), "{text}");
        assert!(
            text.contains("| expiry | weft | GET of a client, ms | 9.00 | at most 1 | the machine's own |"),
            "{text}"
        );
        assert!(text.contains("| expiry | valkey | longest GET, ms | 1.50 | – |  |"), "{text}");
    }
}
