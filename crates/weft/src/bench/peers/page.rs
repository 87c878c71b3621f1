//! The results as tables, on the terminal and as a page. Owns what stands in which column.

use std::fmt::Write as _;

use super::super::versus::ratio_text;
use super::Results;
use super::measure::{Cell, Client, Outcome};
use weft_measure::plot::{Bar, bars};
use weft_measure::verdict::{Goal, Ratio, paired};
use weft_measure::{Claim, Table, number};

/// The columns of the table: a server as one client sees it.
const COLUMNS: [(&str, &str, Client); 10] = [
    ("Valkey 9", "valkey", Client::ValkeyBenchmark),
    ("Weft", "weft", Client::ValkeyBenchmark),
    ("Valkey 8", "valkey-debian", Client::ValkeyBenchmark),
    ("Redis 7", "redis", Client::ValkeyBenchmark),
    ("stub", "stub", Client::ValkeyBenchmark),
    ("Valkey 9", "valkey", Client::WeftResp3),
    ("Weft RESP3", "weft", Client::WeftResp3),
    ("Weft RESPB", "weft", Client::WeftRespb),
    ("stub", "stub", Client::WeftResp3),
    ("stub RESPB", "stub", Client::WeftRespb),
];

impl Outcome {
    fn cell(&self, server: &str, client: Client) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.server == server && cell.client == client)
    }

    /// Weft's CPU over Valkey's, both asked by the clients named.
    fn ratio(&self, ours: Client, theirs: Client) -> Option<Ratio> {
        let (ours, theirs) = (self.cell("weft", ours)?, self.cell("valkey", theirs)?);
        paired(&ours.server_cpu_us.rounds, &theirs.server_cpu_us.rounds)
    }

    /// The ratios that targets are about: RESP, by valkey-benchmark where it takes part, and RESPB.
    pub(super) fn ratios(&self) -> [Option<Ratio>; 2] {
        let by_valkey = self.ratio(Client::ValkeyBenchmark, Client::ValkeyBenchmark);
        let resp = by_valkey.or_else(|| self.ratio(Client::WeftResp3, Client::WeftResp3));
        [resp, self.ratio(Client::WeftRespb, Client::WeftResp3)]
    }
}

/// The ratios beside what is asked for.
pub(super) fn ratios(title: &str, outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        format!("{title}: server CPU a command, Weft over Valkey 9.1.2 (95 % confidence)"),
        &["case", "RESP", "asked", "", "RESPB", "asked", ""],
    );
    for outcome in outcomes {
        let mut cells = vec![outcome.label.clone()];
        let targets = [outcome.targets.0, outcome.targets.1];
        for (ratio, target) in outcome.ratios().into_iter().zip(targets) {
            let verdict = ratio.zip(target).map(|(ratio, most)| Goal::AtMost(most).verdict(ratio));
            let verdict = verdict.map_or_else(String::new, |verdict| verdict.to_string());
            cells.extend([ratio_text(ratio), number(target, 2), verdict]);
        }
        table.row(cells);
    }
    table
}

/// A figure of every column, with how far its rounds lie apart.
fn figures(title: String, outcomes: &[Outcome], figure: impl Fn(&Cell) -> String) -> Table {
    let taken: Vec<_> = COLUMNS
        .iter()
        .filter(|(_, server, client)| outcomes.iter().any(|outcome| outcome.cell(server, *client).is_some()))
        .collect();
    let heads: Vec<String> = taken
        .iter()
        .map(|(name, _, client)| match client {
            Client::ValkeyBenchmark => format!("{name} (vb)"),
            _ => format!("{name} (wb)"),
        })
        .collect();
    let mut head = vec!["case"];
    head.extend(heads.iter().map(String::as_str));
    let mut table = Table::new(title, &head);
    for outcome in outcomes {
        let mut cells = vec![outcome.label.clone()];
        cells.extend(taken.iter().map(|(_, server, client)| {
            outcome.cell(server, *client).map_or_else(|| "–".to_string(), &figure)
        }));
        table.row(cells);
    }
    table
}

/// All tables of some results.
pub(super) fn tables(results: &Results) -> Vec<Table> {
    let mut tables = Vec::new();
    for (title, outcomes) in [("Strings", &results.table), ("Other types", &results.types)] {
        if outcomes.is_empty() {
            continue;
        }
        tables.push(ratios(title, outcomes));
        tables.push(figures(
            format!("{title}: server CPU, µs a command (median ± half of the spread of the rounds)"),
            outcomes,
            |cell| {
                let spread = &cell.server_cpu_us;
                format!("{:.3} ±{:.3}", spread.median, (spread.high - spread.low) / 2.0)
            },
        ));
        tables.push(figures(format!("{title}: thousand requests a second"), outcomes, |cell| {
            format!("{:.0}", cell.rps.median / 1e3)
        }));
        tables.push(figures(format!("{title}: client CPU, µs a request"), outcomes, |cell| {
            format!("{:.3}", cell.client_cpu_us.median)
        }));
    }
    if !results.rates.is_empty() {
        let title = "GET 16 B, 50 clients, at a fixed rate (pipeline 1: half of Valkey's peak); latencies from when a \
                     request was due, ms";
        tables.push(rates(title, &results.rates));
    }
    if !results.before.is_empty() {
        tables.push(before(&results.before));
    }
    for (title, weights) in [
        ("Memory: bytes over key and value, by resident growth / by used_memory", &results.memory),
        (
            "Memory of small collections: bytes each, by resident growth / by used_memory",
            &results.collections,
        ),
    ] {
        if !weights.is_empty() {
            tables.push(memory(
                title,
                weights,
                weights.iter().any(|weight| weight.what.starts_with("string")),
            ));
        }
    }
    let whole = super::trial::table(results);
    if !whole.is_empty() {
        tables.push(whole);
    }
    tables
}

/// This build and one before it.
fn before(outcomes: &[Outcome]) -> Table {
    let clients = [Client::ValkeyBenchmark, Client::WeftResp3, Client::WeftRespb];
    let mut table = Table::new(
        "Weft over the build before: server CPU a command, and the ratio's 95 % interval",
        &["case", "RESP2 by valkey-benchmark, µs", "ratio", "RESP3, µs", "ratio", "RESPB, µs", "ratio"],
    );
    for outcome in outcomes {
        let mut cells = vec![outcome.label.clone()];
        for client in clients {
            let pair = ["before", "weft"].map(|server| outcome.cell(server, client));
            cells.push(number(pair[1].map(|cell| cell.server_cpu_us.median), 3));
            let [before, now] = pair.map(|cell| cell.map(|cell| &cell.server_cpu_us.rounds));
            cells.push(ratio_text(now.zip(before).and_then(|(now, before)| paired(now, before))));
        }
        table.row(cells);
    }
    table
}

fn rates(title: &str, rates: &[super::rates::Rate]) -> Table {
    let mut table = Table::new(
        title,
        &["server", "workers", "pipeline", "a second", "p50", "p99", "p99.9", "CPU µs", "user µs"],
    );
    for rate in rates {
        table.row(vec![
            format!("{} {}", rate.server, rate.protocol),
            rate.workers.to_string(),
            rate.pipeline.to_string(),
            format!("{:.0}", rate.rps.median),
            format!("{:.3}", rate.p50_ms.median),
            format!("{:.3}", rate.p99_ms.median),
            format!("{:.3} ±{:.3}", rate.p999_ms.median, (rate.p999_ms.high - rate.p999_ms.low) / 2.0),
            format!("{:.3}", rate.server_cpu_us.median),
            format!("{:.3}", rate.server_user_us.median),
        ]);
    }
    table
}

fn memory(title: &str, weights: &[super::memory::Weight], over_payload: bool) -> Table {
    let mut servers: Vec<&str> = Vec::new();
    let mut whats: Vec<&str> = Vec::new();
    for weight in weights {
        if !servers.contains(&weight.server.as_str()) {
            servers.push(&weight.server);
        }
        if !whats.contains(&weight.what.as_str()) {
            whats.push(&weight.what);
        }
    }
    let mut head = vec!["what"];
    head.extend(&servers);
    let mut table = Table::new(title, &head);
    for what in whats {
        let mut cells = vec![what.to_string()];
        for server in &servers {
            let found = weights.iter().find(|weight| weight.what == what && weight.server == *server);
            cells.push(found.map_or_else(
                || "–".to_string(),
                |weight| {
                    let payload = if over_payload { weight.payload as f64 } else { 0.0 };
                    let used = weight.used.map(|used| used - payload);
                    format!("{:.1} / {}", weight.resident - payload, number(used, 1))
                },
            ));
        }
        table.row(cells);
    }
    table
}

/// What the results leave out, a line each.
pub(super) fn remarks(results: &Results) -> Vec<String> {
    let mut lines: Vec<String> = results.absent.iter().map(|line| format!("not there: {line}")).collect();
    for outcome in results.table.iter().chain(&results.types) {
        lines.extend(outcome.remarks.iter().map(|remark| format!("{}: {remark}", outcome.label)));
    }
    lines.extend(results.remarks.iter().cloned());
    lines
}

/// The page: the method, then each run with its tables.
pub(super) fn markdown(runs: &[(String, Results)]) -> String {
    let mut page = String::from(
        "# Weft beside Valkey and Redis\n\n<!-- Generated by `weft peers --report … --page`, which `make bench-pages` \
         calls; not by hand. -->\n\nWhat a command costs the server in CPU time, over RESP and RESPB, beside Valkey \
         and Redis, and beside a stub that\nonly counts requests and copies a fixed reply: the floor. Measured by \
         `make bench-server`, in one run.\nWhat was found in earlier states, and why: [notes](server-notes.md). \
         Workloads of real use: `make bench-workloads`.\n\n![Server CPU a command, Weft over Valkey; the dashes are \
         the goals](plots/server.svg)\n\n## Method\n\n- One worker of Weft, one thread of the others, on one core; \
         the client on the other. All servers run at once; each\n  round asks each of them, one after the other.\n- \
         The figure is the server process's time on a CPU (`/proc/PID/task/*/schedstat`) divided by the commands \
         that the\n  server itself counted (`total_commands_processed`).\n- Keys are stored before. Before the clock \
         starts each of them is read once over each protocol, and every byte of its\n  value is compared; a run with \
         an error, or with a miss in a row that reads, does not count.\n- Ratios are Weft over Valkey 9.1.2 with the \
         same client: valkey-benchmark for RESP, `weft bench` for RESPB, which\n  asks Valkey in RESP3. How they are \
         judged: [verdicts](README.md#verdicts).\n- *vb*: asked by valkey-benchmark in RESP2; *wb*: asked by `weft \
         bench`, in RESP3 where nothing else is said.\n- Memory is in huge pages in no server, unless `--huge-pages` \
         is given.\n",
    );
    for (name, results) in runs {
        section(&mut page, name, results);
    }
    page
}

fn section(page: &mut String, name: &str, results: &Results) {
    let machine = &results.machine;
    let link = if name.is_empty() { String::new() } else { format!("[`data/{name}`](data/{name}): ") };
    let origin = match (&*results.origin.date, &*results.origin.commit) {
        ("", _) => String::new(),
        (date, commit) => format!("{date}, commit {commit}; "),
    };
    let servers: Vec<String> =
        results.servers.iter().map(|(id, version)| format!("{id}: {version}")).collect();
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "\n## {}\n\n{link}{origin}{} cores of {}, Linux {}; {} rounds of {} s, interleaved. Servers: {}.\n",
        title(name),
        machine.cores,
        machine.cpu,
        machine.kernel,
        results.rounds,
        results.seconds,
        servers.join("; ")
    );
    for table in tables(results) {
        let _ = write!(page, "\n**{}**\n\n{}", table.title, table.markdown());
    }
    let remarks = remarks(results);
    if !remarks.is_empty() {
        let _ = write!(page, "\nLeft out:\n\n");
        remarks.iter().for_each(|line| {
            let _ = writeln!(page, "- {line}");
        });
    }
}

/// What a section is called.
fn title(name: &str) -> String {
    let name = name.strip_suffix(".json").unwrap_or(name);
    if name.is_empty() { "The run".to_string() } else { format!("Run {name}") }
}

/// The verdicts of the first run that has each row.
fn judged(runs: &[(String, Results)]) -> Vec<(&Outcome, [Option<Ratio>; 2])> {
    let mut judged: Vec<(&Outcome, [Option<Ratio>; 2])> = Vec::new();
    for outcome in runs.iter().flat_map(|(_, results)| results.table.iter().chain(&results.types)) {
        if !judged.iter().any(|(known, _)| known.id == outcome.id) {
            judged.push((outcome, outcome.ratios()));
        }
    }
    judged
}

/// A claim for each verdict.
pub(super) fn claims(runs: &[(String, Results)]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (outcome, ratios) in judged(runs) {
        for ((wire, target), ratio) in
            [("resp", outcome.targets.0), ("respb", outcome.targets.1)].into_iter().zip(ratios)
        {
            if let (Some(target), Some(ratio)) = (target, ratio) {
                let claim = format!("CPU of {}, over {}, over Valkey's", outcome.label, wire.to_uppercase());
                let id = format!("{}/{wire}", outcome.id);
                claims.push(Claim::of_ratio(id, claim, ratio, Some(Goal::AtMost(target))));
            }
        }
    }
    claims
}

/// Both ratios of each row with their goals.
pub(super) fn plot(runs: &[(String, Results)]) -> String {
    let mut all = Vec::new();
    for (outcome, ratios) in judged(runs) {
        let wires = [("RESP", 1, outcome.targets.0), ("RESPB", 2, outcome.targets.1)];
        for ((wire, group, goal), ratio) in wires.into_iter().zip(ratios) {
            all.extend(ratio.map(|ratio| Bar {
                label: format!("{}, {wire}", short(&outcome.label)),
                value: ratio.value,
                spread: Some((ratio.low, ratio.high)),
                group,
                goal,
            }));
        }
    }
    bars("Server CPU a command, Weft over Valkey 9.1.2: less is better", "", 2, &all)
}

/// A label that has room beside its bar.
fn short(label: &str) -> String {
    label.split("; ").next().unwrap_or(label).replace("50 clients, ", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_measure::Spread;

    fn cell(server: &str, client: Client, cpu: f64) -> Cell {
        let of = |value: f64| Spread::of(vec![value; 5]);
        Cell {
            server: server.into(),
            client,
            server_cpu_us: of(cpu),
            server_user_us: of(cpu),
            client_cpu_us: of(1.0),
            rps: of(1e6),
            p50_ms: of(1.0),
            p99_ms: of(2.0),
        }
    }

    #[test]
    fn ratios_are_of_the_same_generator() {
        let outcome = Outcome {
            id: "get".into(),
            label: "GET".into(),
            targets: (Some(0.3), Some(0.2)),
            cells: vec![
                cell("weft", Client::ValkeyBenchmark, 0.2),
                cell("valkey", Client::ValkeyBenchmark, 0.8),
                cell("weft", Client::WeftRespb, 0.1),
                cell("valkey", Client::WeftResp3, 0.4),
            ],
            remarks: Vec::new(),
        };
        let [resp, respb] = outcome.ratios().map(|ratio| ratio.map(|ratio| ratio.value));
        assert_eq!((resp, respb), (Some(0.25), Some(0.25)));
        let text = ratios("T", &[outcome]).markdown();
        assert!(text.contains("| 0.25 (0.25–0.25) | 0.30 | reached |"), "{text}");
        assert!(text.contains("| 0.25 (0.25–0.25) | 0.20 | missed |"), "{text}");
    }
}
