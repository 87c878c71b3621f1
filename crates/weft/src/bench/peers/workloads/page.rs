//! The workloads as a page: tables, verdicts, plot and claims. Owns what is judged by which goal.

use std::fmt::Write as _;

use weft_measure::plot::{Bar, bars};
use weft_measure::verdict::{Goal, Ratio, drift, geometric, paired};
use weft_measure::{Claim, Spread, Table, number};

use super::goals::Goals;
use super::{AtRate, Cell, Latency, PIPELINES, Results, Turn};

/// Weft's wires, as results name them.
const WIRES: [&str; 2] = ["RESP3", "RESPB"];
/// From which part on the kernel's is most of the work.
const MOSTLY_KERNEL: f64 = 0.5;

impl Cell {
    fn turn(&self, server: &str, wire: &str) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.server == server && turn.wire == wire)
    }

    fn valkey(&self) -> Option<&Turn> {
        self.turn("valkey", "RESP3")
    }

    /// Weft's CPU over Valkey's.
    fn cpu(&self, wire: &str) -> Option<Ratio> {
        paired(&self.turn("weft", wire)?.cpu_us, &self.valkey()?.cpu_us)
    }

    /// Whether most of Valkey's CPU is the kernel's.
    fn is_mostly_kernel(&self) -> bool {
        self.valkey().is_some_and(|valkey| valkey.kernel >= MOSTLY_KERNEL)
    }

    /// What is asked of its CPU, and the ratio that it is asked of.
    fn judged(&self, results: &Results, wire: &str, goals: &Goals) -> Option<(Ratio, Goal, &'static str)> {
        let ratio = self.cpu(wire)?;
        if self.pipeline == 1 {
            return Some((ratio, Goal::AtMost(goals.cpu_1_each), ""));
        }
        if results.evicts {
            return Some((ratio, Goal::AtMost(goals.cpu_evicting), ""));
        }
        if self.is_mostly_kernel()
            && let Some(stub) = self.turn("stub", wire)
            && let Some(ratio) = paired(&self.turn("weft", wire)?.cpu_us, &stub.cpu_us)
        {
            return Some((ratio, Goal::AtMost(goals.cpu_16_each_over_stub), " of the stub"));
        }
        Some((ratio, Goal::AtMost(goals.cpu_16_each), ""))
    }
}

impl AtRate {
    fn of(&self, server: &str, wire: &str) -> Option<&Latency> {
        self.turns.iter().find(|turn| turn.server == server && turn.wire == wire)
    }
}

/// The cells of a pipeline, with the workload of each.
fn cells(all: &[Results], pipeline: u32) -> impl Iterator<Item = (&Results, &Cell)> {
    all.iter().flat_map(move |results| {
        let of_it = results.cells.iter().filter(move |cell| cell.pipeline == pipeline);
        of_it.map(move |cell| (results, cell))
    })
}

fn median(values: &[f64]) -> f64 {
    Spread::of(values.to_vec()).median
}

/// All tables.
pub(super) fn tables(all: &[Results], goals: &Goals) -> Vec<Table> {
    let mut tables: Vec<Table> = PIPELINES.iter().map(|&pipeline| cpu(all, pipeline, goals)).collect();
    tables.push(means(all, goals));
    tables.push(latencies(all));
    tables.push(throughput(all));
    tables.push(memory(all));
    tables
}

fn cpu(all: &[Results], pipeline: u32, goals: &Goals) -> Table {
    let mut table = Table::new(
        format!("Server CPU, µs a request, pipeline {pipeline}"),
        &[
            "workload",
            "Valkey",
            "its kernel",
            "RESP",
            "ratio",
            "goal",
            "",
            "RESPB",
            "ratio",
            "goal",
            "",
            "rounds",
        ],
    );
    for (results, cell) in cells(all, pipeline) {
        let Some(valkey) = cell.valkey() else { continue };
        let mut row = vec![
            cell.label.clone(),
            format!("{:.2}", median(&valkey.cpu_us)),
            format!("{:.0} %", valkey.kernel * 100.0),
        ];
        let mut is_close = true;
        for wire in WIRES {
            let judged = cell.judged(results, wire, goals);
            row.push(number(cell.turn("weft", wire).map(|turn| median(&turn.cpu_us)), 2));
            row.push(cell.cpu(wire).map_or_else(|| "–".into(), |ratio| ratio.to_string()));
            match judged {
                Some((ratio, goal, of)) => {
                    row.extend([format!("{goal}{of}"), goal.verdict(ratio).to_string()])
                }
                None => row.extend([String::new(), String::new()]),
            }
            is_close &= cell.cpu(wire).is_none_or(Ratio::is_close);
        }
        row.push(format!("{}{}", valkey.cpu_us.len(), if is_close { "" } else { ", wide" }));
        table.row(row);
    }
    table
}

/// The means over all workloads, with their goals.
fn judged_means(all: &[Results], goals: &Goals) -> Vec<(String, &'static str, Option<Ratio>, Goal)> {
    let mut rows = Vec::new();
    for (pipeline, most) in [
        (1, [goals.cpu_1_mean_resp, goals.cpu_1_mean_respb]),
        (16, [goals.cpu_16_mean_resp, goals.cpu_16_mean_respb]),
    ] {
        for (wire, most) in WIRES.into_iter().zip(most) {
            let pairs: Option<Vec<_>> = cells(all, pipeline)
                .map(|(_, cell)| Some((&cell.turn("weft", wire)?.cpu_us[..], &cell.valkey()?.cpu_us[..])))
                .collect();
            let ratio = pairs.and_then(|pairs| geometric(&pairs));
            rows.push((format!("CPU, pipeline {pipeline}"), wire, ratio, Goal::AtMost(most)));
        }
    }
    for wire in WIRES {
        let mut pairs: Vec<(&[f64], &[f64])> = Vec::new();
        for at in all.iter().flat_map(|results| &results.cells).flat_map(|cell| &cell.rates) {
            if let (Some(weft), Some(valkey)) = (at.of("weft", wire), at.of("valkey", "RESP3")) {
                pairs.push((&weft.p99_ms.rounds, &valkey.p99_ms.rounds));
            }
        }
        rows.push(("p99 at fixed rates".into(), wire, geometric(&pairs), Goal::AtMost(goals.p99_mean)));
    }
    rows
}

fn means(all: &[Results], goals: &Goals) -> Table {
    let mut table = Table::new(
        "Geometric means over the workloads that are here, Weft over Valkey",
        &["what", "over", "mean", "goal", ""],
    );
    for (what, wire, ratio, goal) in judged_means(all, goals) {
        let verdict = ratio.map_or_else(String::new, |ratio| goal.verdict(ratio).to_string());
        let ratio = ratio.map_or_else(|| "–".into(), |ratio| ratio.to_string());
        table.row(vec![what, wire.to_string(), ratio, goal.to_string(), verdict]);
    }
    // Not a mean, but asked for beside one.
    for wire in WIRES {
        let above = above(all, wire, goals);
        let text = if above.is_empty() { "none".to_string() } else { above.join("; ") };
        let verdict = if above.is_empty() { "reached" } else { "missed" };
        table.row(vec![
            "p99 whose interval lies wholly above its bound".into(),
            wire.into(),
            text,
            format!("none above {}", goals.p99_each),
            verdict.into(),
        ]);
    }
    table
}

/// Where p99 is above its bound with its whole interval.
fn above(all: &[Results], wire: &str, goals: &Goals) -> Vec<String> {
    let mut found = Vec::new();
    for cell in all.iter().flat_map(|results| &results.cells) {
        for at in &cell.rates {
            let ratio = p99(at, wire);
            if ratio.is_some_and(|ratio| ratio.low > goals.p99_each) {
                found.push(format!("{}, pipeline {}, at {}", cell.label, cell.pipeline, at.part));
            }
        }
    }
    found
}

fn p99(at: &AtRate, wire: &str) -> Option<Ratio> {
    paired(&at.of("weft", wire)?.p99_ms.rounds, &at.of("valkey", "RESP3")?.p99_ms.rounds)
}

fn latencies(all: &[Results]) -> Table {
    let mut table = Table::new(
        "Latencies at fixed rates, ms, p50 / p99 / p99.9, from when a request was due",
        &["workload", "pipeline", "rate", "Valkey", "Weft RESP3", "p99 ratio", "Weft RESPB", "p99 ratio"],
    );
    let three = |latency: Option<&Latency>| {
        let of = |latency: &Latency| {
            let [p50, p99, p999] =
                [&latency.p50_ms, &latency.p99_ms, &latency.p999_ms].map(|spread| spread.median);
            format!("{p50:.2} / {p99:.2} / {p999:.2}")
        };
        latency.map_or_else(|| "–".into(), of)
    };
    for cell in all.iter().flat_map(|results| &results.cells) {
        for at in &cell.rates {
            let mut row = vec![
                cell.label.clone(),
                cell.pipeline.to_string(),
                format!("{:.0} ({} of the slowest peak)", at.rate, at.part),
                three(at.of("valkey", "RESP3")),
            ];
            for wire in WIRES {
                row.push(three(at.of("weft", wire)));
                row.push(p99(at, wire).map_or_else(|| "–".into(), |ratio| ratio.to_string()));
            }
            table.row(row);
        }
    }
    table
}

fn throughput(all: &[Results]) -> Table {
    let mut table = Table::new(
        "Thousand requests a second in a closed loop, and of what was read the part that was there",
        &[
            "workload",
            "pipeline",
            "Valkey",
            "Weft RESP3",
            "Weft RESPB",
            "stub",
            "there: Valkey",
            "Weft",
            "the host's drift",
        ],
    );
    for cell in all.iter().flat_map(|results| &results.cells) {
        let rate = |server, wire| number(cell.turn(server, wire).map(|turn| median(&turn.rps) / 1e3), 0);
        let hits = |turn: Option<&Turn>| {
            turn.and_then(|turn| turn.hits).map_or_else(String::new, |part| format!("{:.1} %", part * 100.0))
        };
        let stub = cell.turn("stub", "RESP3").and_then(|stub| drift(&stub.cpu_us));
        table.row(vec![
            cell.label.clone(),
            cell.pipeline.to_string(),
            rate("valkey", "RESP3"),
            rate("weft", "RESP3"),
            rate("weft", "RESPB"),
            rate("stub", "RESP3"),
            hits(cell.valkey()),
            hits(cell.turn("weft", "RESP3")),
            stub.map_or_else(|| "–".into(), |(low, high)| format!("{low:.2} to {high:.2}")),
        ]);
    }
    table
}

fn memory(all: &[Results]) -> Table {
    let mut table = Table::new(
        "Memory when all is stored, MiB: resident / used_memory",
        &["workload", "keys", "Valkey", "Weft", "resident, Weft over Valkey"],
    );
    for results in all {
        let of = |server: &str| results.weights.iter().find(|weight| weight.server == server);
        let (Some(valkey), Some(weft)) = (of("valkey"), of("weft")) else { continue };
        let both = |weight: &super::Weight| {
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            format!("{:.0} / {}", mib(weight.resident_bytes), number(weight.used_bytes.map(mib), 0))
        };
        table.row(vec![
            results.id.clone(),
            weft.keys.to_string(),
            both(valkey),
            both(weft),
            format!("{:.2}", weft.resident_bytes as f64 / valkey.resident_bytes as f64),
        ]);
    }
    table
}

/// Weft's ratios at pipeline 16.
pub(super) fn plot(all: &[Results], goals: &Goals) -> String {
    let mut drawn = Vec::new();
    for (results, cell) in cells(all, 16) {
        for (index, wire) in WIRES.into_iter().enumerate() {
            let Some(ratio) = cell.cpu(wire) else { continue };
            let judged = cell.judged(results, wire, goals).filter(|(_, _, of)| of.is_empty());
            let goal = judged.map(|(_, Goal::AtMost(bound) | Goal::AtLeast(bound), _)| bound);
            drawn.push(Bar {
                label: format!("{}, {wire}", cell.label),
                value: ratio.value,
                spread: Some((ratio.low, ratio.high)),
                group: index + 1,
                goal,
            });
        }
    }
    bars("Server CPU a request at pipeline 16, Weft over Valkey: less is better", "", 2, &drawn)
}

pub(super) fn claims(all: &[Results], goals: &Goals) -> Vec<Claim> {
    let mut claims = Vec::new();
    for pipeline in PIPELINES {
        for (results, cell) in cells(all, pipeline) {
            for wire in WIRES {
                let Some((ratio, goal, of)) = cell.judged(results, wire, goals) else { continue };
                let over = if of.is_empty() { "Valkey's" } else { "the stub's" };
                let id = format!("{}/{pipeline}/{}", id(results, cell), wire.to_lowercase());
                let claim = format!("CPU of {}, pipeline {pipeline}, over {wire}, over {over}", cell.label);
                claims.push(Claim::of_ratio(id, claim, ratio, Some(goal)));
            }
        }
    }
    for (what, wire, ratio, goal) in judged_means(all, goals) {
        if let Some(ratio) = ratio {
            let name = what.replace(", pipeline ", "-").replace(' ', "-").to_lowercase();
            let id = format!("mean/{name}/{}", wire.to_lowercase());
            claims.push(Claim::of_ratio(
                id,
                format!("{what}, geometric mean, over {wire}, over Valkey's"),
                ratio,
                Some(goal),
            ));
        }
    }
    claims
}

/// A workload's name; where it has several cases, with the number of subscribers.
fn id(results: &Results, cell: &Cell) -> String {
    match cell.label.rsplit_once(", ") {
        Some((_, rest)) if rest.ends_with(" subscribers") => {
            format!("{}-{}", results.id, rest.trim_end_matches(" subscribers"))
        }
        _ => results.id.clone(),
    }
}

pub(super) fn markdown(all: &[Results], goals: &Goals) -> String {
    let mut page = String::from(
        "# Workloads\n\n<!-- Generated by `weft peers --data … --page`, which `make bench-pages` calls; not by hand. \
         -->\n\nWeft beside Valkey over mixes as people run them, each a file of \
         [`bench/workloads`](../../bench/workloads/) that names\nwhere its figures come from. One thread of each \
         server on one core, `weft bench` on another; every reply is compared.\nValkey in RESP3; Weft in RESP3 and in \
         RESPB, with the same clients. Memory in huge pages for neither.\n\n- In each round every server and wire has \
         its turn, the stub too, which only counts requests and sends on what is\n  published: what it takes is the \
         floor, and how it changes from round to round is the host's drift. Rounds go on\n  until the ratios of CPU \
         are within ±5 %, up to three times as many as the least; where they are not, *wide* stands\n  behind their \
         number. How ratios are judged: [verdicts](README.md#verdicts). The goals stand in\n  \
         [`bench/goals.toml`](../../bench/goals.toml).\n- Where half and more of Valkey's CPU is the kernel's, which \
         no server can do less of with the same calls, the goal\n  at pipeline 16 is over the stub.\n- *Logical \
         clients*: 2,000 on four connections; over RESP they pipeline by themselves, over RESPB they are \
         channels.\n\n![Server CPU a request at pipeline 16, Weft over \
         Valkey; the dashes are the goals](plots/workloads.svg)\n\n",
    );
    // Writing to a String cannot fail.
    for results in all {
        let machine = &results.origin.machine;
        let servers: Vec<String> = results
            .servers
            .iter()
            .filter(|(id, _)| matches!(&**id, "weft" | "valkey"))
            .map(|(_, version)| version.clone())
            .collect();
        let _ = writeln!(
            page,
            "- [`{0}`](data/workloads/{0}.json): {1}, commit {2}, {3} cores of {4}, Linux {5}; {6}{7}",
            results.id,
            results.origin.date,
            results.origin.commit,
            machine.cores,
            machine.cpu,
            machine.kernel,
            servers.join(", "),
            if results.huge_pages { "; huge pages" } else { "" }
        );
    }
    for table in tables(all, goals) {
        let _ = write!(page, "\n## {}\n\n{}", table.title, table.markdown());
    }
    page.push_str(
        "\n<!-- not run: measures for minutes, needs a Valkey -->\n```sh\nmake bench-workloads                      # \
         all of them, about 25 minutes\nmake bench-workloads WORKLOADS=\"cache queues\"\n```\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(server: &str, wire: &str, cpu: f64, kernel: f64) -> Turn {
        Turn {
            server: server.into(),
            wire: wire.into(),
            cpu_us: vec![cpu; 5],
            rps: vec![1e6 / cpu; 5],
            kernel,
            hits: Some(0.9),
            compared: 10,
        }
    }

    fn latency(server: &str, wire: &str, p99: f64) -> Latency {
        let of = |value: f64| Spread::of(vec![value; 5]);
        Latency {
            server: server.into(),
            wire: wire.into(),
            p50_ms: of(0.1),
            p99_ms: of(p99),
            p999_ms: of(2.0),
        }
    }

    /// Weft at half of Valkey's CPU, in a workload of which this part is the kernel's in Valkey.
    fn results(kernel: f64, evicts: bool) -> Results {
        let cell = |pipeline| Cell {
            label: "T".into(),
            pipeline,
            seconds: 0.5,
            turns: vec![
                turn("valkey", "RESP3", 1.0, kernel),
                turn("weft", "RESP3", 0.55, 0.5),
                turn("weft", "RESPB", 0.5, 0.5),
                turn("stub", "RESP3", 0.5, 1.0),
                turn("stub", "RESPB", 0.4, 1.0),
            ],
            rates: vec![AtRate {
                part: 0.5,
                rate: 1e5,
                turns: vec![
                    latency("valkey", "RESP3", 1.0),
                    latency("weft", "RESP3", 0.9),
                    latency("weft", "RESPB", 1.2),
                ],
            }],
        };
        Results {
            id: "t".into(),
            origin: weft_measure::Origin::default(),
            servers: Vec::new(),
            under: None,
            huge_pages: false,
            evicts,
            cells: vec![cell(1), cell(16)],
            weights: Vec::new(),
        }
    }

    fn verdict(results: Results, id: &str) -> (String, String) {
        let claims = claims(&[results], &Goals::ours());
        let claim = claims.into_iter().find(|claim| claim.id == id).unwrap();
        (claim.goal, claim.verdict)
    }

    #[test]
    fn a_workload_is_judged_by_its_kind() {
        let of = |goal: &str, verdict: &str| (goal.to_string(), verdict.to_string());
        assert_eq!(verdict(results(0.3, false), "t/16/resp3"), of("at most 0.6", "reached"));
        // Mostly the kernel's: 0.55 over the stub's 0.5, 0.5 over its 0.4.
        assert_eq!(verdict(results(0.6, false), "t/16/resp3"), of("at most 1.15", "reached"));
        assert_eq!(verdict(results(0.6, false), "t/16/respb"), of("at most 1.15", "missed"));
        assert_eq!(verdict(results(0.3, true), "t/16/resp3"), of("at most 0.5", "missed"));
        assert_eq!(verdict(results(0.3, false), "t/1/respb"), of("at most 0.88", "reached"));
        assert_eq!(verdict(results(0.3, false), "mean/cpu-16/respb"), of("at most 0.37", "missed"));
        assert_eq!(verdict(results(0.3, false), "mean/p99-at-fixed-rates/resp3"), of("at most 1", "reached"));
    }

    #[test]
    fn latencies_above_their_bound_are_named() {
        let all = [results(0.3, false)];
        assert!(above(&all, "RESP3", &Goals::ours()).is_empty());
        assert_eq!(above(&all, "RESPB", &Goals::ours()), ["T, pipeline 1, at 0.5", "T, pipeline 16, at 0.5"]);
        let page = markdown(&all, &Goals::ours());
        assert!(page.contains("| p99 whose interval lies wholly above its bound | RESP3 | none |"), "{page}");
        assert!(plot(&all, &Goals::ours()).contains("T, RESPB"));
    }
}
