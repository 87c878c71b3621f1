//! Tables in one go: RESP3 beside RESPB, or beside HTTP, on one server, the figures of the founding proposal beside
//! ours. Owns what each preset runs and how it is shown.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use weft_client::Protocol;

use super::cases::{self, Case};
use super::flags::Preset;
use super::process::Usage;
use super::run::{self, Fleets, Measured, Plan, Server};
use super::sizes::Sizes;
use super::versus::{self, Contestant, ratio_text};
use super::{Options, address, aim, give_json, protocol, report};
use crate::text::grouped;
use weft_measure::Spread;
use weft_measure::plot::{self, Line};
use weft_measure::verdict::paired;
use weft_measure::{Table, number};

/// Seconds of each run, where neither `--duration` nor `-n` says otherwise.
const SECONDS: f64 = 2.0;
/// Keys that are stored and read, unless `-r` says otherwise.
const KEYS: u64 = 100_000;
/// Logical clients of the preset `mux`.
const MUX_CLIENTS: [u32; 4] = [10, 100, 1000, 10_000];
/// Round trips of the preset `network`, in milliseconds.
const NETWORKS_MS: [f64; 4] = [0.0, 0.2, 1.0, 20.0];

/// Tests of the preset `types`.
const TYPES: &str = "incr,lpush,rpop,sadd,spop,hset,hget,zadd,zpopmin,xadd,lrange_100,hgetall_50,zrange_100,\
                     smembers_100";

/// What all presets share.
struct Show<'a> {
    options: &'a Options,
    plan: Plan,
    /// What RESP3 stands beside.
    other: Protocol,
    stop: &'a AtomicBool,
    tables: Vec<Value>,
    clean: bool,
}

pub(super) fn run(options: &Options, preset: Preset, plan: &Plan, stop: &AtomicBool) -> Result<ExitCode> {
    let duration = match options.requests {
        Some(_) => plan.duration,
        None => plan.duration.or(Some(Duration::from_secs_f64(SECONDS))),
    };
    eprintln!("{}", expected(preset, options.rounds, duration, plan.requests));
    let plan = Plan {
        duration,
        keyspace: if plan.keyspace == 0 { KEYS } else { plan.keyspace },
        channels: 1,
        live: false,
        ..plan.clone()
    };
    let other = if protocol(options)? == Protocol::Http { Protocol::Http } else { Protocol::Respb };
    ensure!(
        preset != Preset::Mux || other == Protocol::Respb,
        "--preset mux: only RESPB has channels; leave out --http"
    );
    let mut show = Show { options, plan, other, stop, tables: Vec::new(), clean: true };
    match preset {
        Preset::SeedThroughput => show.seed_throughput()?,
        Preset::SeedPipeline => show.seed_pipeline()?,
        Preset::Mux => show.mux()?,
        Preset::Network => show.network()?,
        Preset::Types => show.types()?,
    }
    let (plan, tables) = (show.plan, show.tables);
    give_json(options, || {
        let mut value = report::json_head(&plan);
        value["tables"] = tables.into();
        value
    })?;
    Ok(if show.clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How long a preset takes, before it begins.
fn expected(preset: Preset, rounds: u32, duration: Option<Duration>, requests: u64) -> String {
    let (pairs, tests) = match preset {
        Preset::SeedThroughput => (2, "tests"),
        Preset::SeedPipeline => (5, "pipelines"),
        Preset::Mux => (MUX_CLIENTS.len(), "numbers of clients"),
        Preset::Network => (NETWORKS_MS.len(), "round trips"),
        Preset::Types => (TYPES.split(',').count(), "tests"),
    };
    let runs = pairs as u64 * 2 * u64::from(rounds);
    let each = match duration {
        Some(time) => format!(
            "{} seconds each: about {:.0} seconds (--rounds, --duration, or -n for requests)",
            time.as_secs_f64(),
            time.as_secs_f64() * runs as f64
        ),
        None => format!("{} requests each (--rounds, -n)", grouped(requests)),
    };
    format!("{pairs} {tests}, 2 protocols, {rounds} rounds: {runs} runs, {each}")
}

/// RESP3 and the other on the same server, after the rounds.
struct Both {
    label: String,
    contestants: [Contestant; 2],
}

impl Both {
    fn ratio(&self, pick: fn(&versus::Figures) -> &Spread) -> String {
        let [resp, other] = self.contestants.each_ref().map(Contestant::figures);
        ratio_text(paired(&pick(&other).rounds, &pick(&resp).rounds))
    }
}

impl Show<'_> {
    fn server(&self, protocol: Protocol, delay_ms: Option<f64>) -> Result<Server> {
        let options = Options { delay: delay_ms.or(self.options.delay), ..self.options.clone() };
        aim(&options, address(&options)?, protocol, options.server_pid)
    }

    fn preload(&self, plan: &Plan) -> Result<()> {
        let server = self.server(Protocol::Resp2, None)?;
        run::prepare(&server, plan, &[cases::preload(plan.keyspace)], self.stop)
    }

    /// Rounds of both protocols; with channels, RESPB has as many clients on one connection, HTTP a connection for
    /// each.
    fn both(
        &mut self,
        label: String,
        case: &Case,
        plan: &Plan,
        channels: u32,
        delay_ms: Option<f64>,
    ) -> Result<Both> {
        let contestant = |protocol: Protocol, channels: u32| -> Result<Contestant> {
            let plan = Plan { connections: plan.connections / channels, channels, ..plan.clone() };
            Ok(Contestant {
                name: protocol.to_string(),
                server: self.server(protocol, delay_ms)?,
                plan,
                rounds: Vec::new(),
            })
        };
        let channels = if self.other == Protocol::Respb { channels } else { 1 };
        let mut contestants = [contestant(Protocol::Resp3, 1)?, contestant(self.other, channels)?];
        versus::rounds(&mut contestants, case, self.options.rounds, self.stop)?;
        for measured in contestants.iter().flat_map(|contestant| &contestant.rounds) {
            self.note(&label, measured);
        }
        let refs: Vec<&Contestant> = contestants.iter().collect();
        let mut value = versus::json_of(case, &refs);
        value["test"] = json!(label);
        self.tables.push(value);
        Ok(Both { label, contestants })
    }

    fn note(&mut self, label: &str, measured: &Measured) {
        self.clean &= measured.is_clean();
        if let Some(trouble) = report::trouble(measured) {
            eprintln!("{label}: {trouble}");
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn print(&self, table: &Table) {
        if !self.options.json {
            println!("{}", table.text());
        }
    }

    fn seed_throughput(&mut self) -> Result<()> {
        // Operation, RESP3 requests, RESPB requests, RESP3 latency, RESPB latency, as the proposal prints them.
        const SEED: [(&str, &str, &str); 2] =
            [("get", "2.1M → 4.8M, 5.32 → 3.30 ms", "2.29"), ("set", "2.3M → 1.9M, 3.86 → 2.09 ms", "0.83")];
        let plan = Plan { connections: 128, pipeline: 128, sizes: Sizes::Fixed(1024), ..self.plan.clone() };
        self.preload(&plan)?;
        let mut rows = Vec::new();
        for (name, seed, factor) in SEED {
            let case = cases::named(name)?.remove(0);
            let both = self.both(case.label.clone(), &case, &plan, 1, None)?;
            rows.push((both, seed.to_string(), factor.to_string()));
            if self.is_stopped() {
                break;
            }
        }
        self.print(&seed_table("GET and SET, 128 clients, pipeline 128, 1 KB", &rows));
        Ok(())
    }

    fn seed_pipeline(&mut self) -> Result<()> {
        const SEED: [(u32, &str, &str); 5] = [
            (1, "177K → 184K, −4 %", "1.04"),
            (10, "982K → 1.27M, −29 %", "1.29"),
            (50, "1.88M → 3.64M, −48 %", "1.94"),
            (100, "1.90M → 4.12M, −36 %", "2.16"),
            (200, "2.02M → 4.57M, −11 %", "2.26"),
        ];
        let plan = Plan { connections: 128, sizes: Sizes::Fixed(1024), ..self.plan.clone() };
        self.preload(&plan)?;
        let case = cases::named("get")?.remove(0);
        let mut rows = Vec::new();
        for (pipeline, seed, factor) in SEED {
            let plan = Plan { pipeline, ..plan.clone() };
            let both = self.both(format!("P={pipeline}"), &case, &plan, 1, None)?;
            rows.push((both, seed.to_string(), factor.to_string()));
            if self.is_stopped() {
                break;
            }
        }
        self.print(&seed_table("GET, 128 clients, 1 KB", &rows));
        Ok(())
    }

    fn types(&mut self) -> Result<()> {
        let pipeline = if self.plan.pipeline == 1 { 100 } else { self.plan.pipeline };
        let plan = Plan { pipeline, sizes: Sizes::Fixed(16), ..self.plan.clone() };
        let mut rows = Vec::new();
        for case in cases::named(TYPES)? {
            rows.push(self.both(case.label.clone(), &case, &plan, 1, None)?);
            if self.is_stopped() {
                break;
            }
        }
        let title = format!("{} connections, pipeline {pipeline}, 16 bytes", plan.connections);
        self.print(&both_table(&title, &rows));
        Ok(())
    }

    fn network(&mut self) -> Result<()> {
        let plan = Plan { connections: 50, sizes: Sizes::Fixed(16), ..self.plan.clone() };
        self.preload(&plan)?;
        let case = cases::named("get")?.remove(0);
        let mut rows = Vec::new();
        for delay_ms in NETWORKS_MS {
            rows.push(self.both(format!("{delay_ms} ms"), &case, &plan, 50, Some(delay_ms))?);
            if self.is_stopped() {
                break;
            }
        }
        let title = match self.other {
            Protocol::Respb => {
                "GET 16 B, 50 clients, one command each at a time; RESPB: 50 channels of one connection"
            }
            _ => "GET 16 B, 50 clients, one command each at a time",
        };
        self.print(&both_table(title, &rows));
        Ok(())
    }

    /// Logical clients as connections and as channels of one connection.
    fn mux(&mut self) -> Result<()> {
        let plan = Plan { pipeline: 1, sizes: Sizes::Fixed(16), ..self.plan.clone() };
        self.preload(&plan)?;
        let mut table = Table::new(
            "GET 16 B, one command each at a time: clients as RESP3 connections and as channels of one RESPB \
             connection; medians",
            &[
                "clients",
                "as",
                "a second",
                "p50 ms",
                "p99 ms",
                "server CPU µs",
                "ratio",
                "resident B/client",
                "socket B/client",
            ],
        );
        let mut lines =
            ["connections", "channels"].map(|name| Line { label: name.into(), points: Vec::new() });
        for clients in MUX_CLIENTS {
            let mut rounds: [Vec<MemoryHeld>; 2] = [Vec::new(), Vec::new()];
            for _ in 0..self.options.rounds {
                for (index, channels) in [1, clients].into_iter().enumerate() {
                    if !self.is_stopped() {
                        rounds[index].push(self.held(&plan, clients, channels)?);
                    }
                }
            }
            let cpu = |index: usize| -> Vec<f64> {
                rounds[index].iter().filter_map(|held| held.measured.server_cpu_us()).collect()
            };
            for (index, line) in lines.iter_mut().enumerate().filter(|(index, _)| !rounds[*index].is_empty())
            {
                let median = |pick: &dyn Fn(&MemoryHeld) -> Option<f64>| {
                    let values: Vec<f64> = rounds[index].iter().filter_map(pick).collect();
                    (!values.is_empty()).then(|| Spread::of(values).median)
                };
                let cpu_us = median(&|held| held.measured.server_cpu_us());
                line.points.extend(cpu_us.map(|cpu| (f64::from(clients), cpu)));
                let to_first = if index == 1 { paired(&cpu(1), &cpu(0)) } else { None };
                let rate = median(&|held| Some(held.measured.rate())).unwrap_or(0.0);
                table.row(vec![
                    grouped(u64::from(clients)),
                    line.label.clone(),
                    grouped(rate.round() as u64),
                    number(median(&|held| Some(report::ms(&held.measured.latency, 0.5))), 3),
                    number(median(&|held| Some(report::ms(&held.measured.latency, 0.99))), 3),
                    number(cpu_us, 3),
                    ratio_text(to_first),
                    number(median(&|held| held.resident), 0),
                    number(median(&|held| held.socket), 0),
                ]);
                let rounds: Vec<Value> = rounds[index].iter().map(MemoryHeld::json).collect();
                self.tables.push(json!({ "clients": clients, "as": line.label, "rounds": rounds }));
            }
        }
        self.print(&table);
        if let Some(path) = &self.options.svg {
            let svg = plot::over_factors("Server CPU of a GET by logical clients", "µs", &lines);
            std::fs::write(path, svg).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    fn held(&mut self, plan: &Plan, clients: u32, channels: u32) -> Result<MemoryHeld> {
        let protocol = if channels == 1 { Protocol::Resp3 } else { Protocol::Respb };
        let plan = Plan { connections: clients / channels, channels, ..plan.clone() };
        let case = cases::named("get")?.remove(0);
        let server = self.server(protocol, None)?;
        let before = server.pid.and_then(Usage::of);
        let mut fleets = Fleets::connect(&server, &plan)?;
        let measured = run::run_on(&mut fleets, &server, &plan, &case, self.stop)?;
        self.note(&format!("{clients} clients"), &measured);
        // The connections are still open here: what they take is still taken.
        let after = server.pid.and_then(Usage::of);
        drop(fleets);
        let growth = |pick: fn(&Usage) -> u64| {
            let (before, after) = (before.as_ref()?, after.as_ref()?);
            Some((pick(after) as f64 - pick(before) as f64) / f64::from(clients))
        };
        Ok(MemoryHeld {
            resident: growth(|usage| usage.resident_bytes),
            socket: growth(|usage| usage.socket_bytes),
            measured,
        })
    }
}

/// A run, and what its clients took while they were there, in bytes for each.
struct MemoryHeld {
    measured: Measured,
    resident: Option<f64>,
    socket: Option<f64>,
}

impl MemoryHeld {
    fn json(&self) -> Value {
        let mut value = report::json(&self.measured);
        value["resident_bytes_per_client"] = json!(self.resident);
        value["socket_bytes_per_client"] = json!(self.socket);
        value
    }
}

fn cells(both: &Both) -> Vec<String> {
    let [resp, other] = both.contestants.each_ref().map(Contestant::figures);
    let some = |spread: &Spread| Some(spread.median).filter(|_| !spread.rounds.is_empty());
    vec![
        grouped(resp.rate.median.round() as u64),
        grouped(other.rate.median.round() as u64),
        both.ratio(|figures| &figures.rate),
        number(some(&resp.p50_ms), 3),
        number(some(&other.p50_ms), 3),
        number(some(&resp.server_cpu_us), 3),
        number(some(&other.server_cpu_us), 3),
        both.ratio(|figures| &figures.server_cpu_us),
    ]
}

/// The columns of [`cells`].
fn head(rows: impl IntoIterator<Item = String>) -> Vec<String> {
    let other = rows.into_iter().next().unwrap_or_default();
    let mut head = vec!["test".to_owned(), "RESP3/s".to_owned(), format!("{other}/s"), "factor".to_owned()];
    head.extend(["RESP3 p50".to_owned(), format!("{other} p50"), "RESP3 CPU".to_owned()]);
    head.extend([format!("{other} CPU"), "ratio".to_owned()]);
    head
}

fn table_of(title: &str, head: &[String]) -> Table {
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    Table::new(format!("{title}; medians, ms, server µs a request"), &head)
}

fn both_table(title: &str, rows: &[Both]) -> Table {
    let head = head(rows.iter().map(|both| both.contestants[1].name.clone()));
    let mut table = table_of(title, &head);
    for both in rows {
        let mut row = vec![both.label.clone()];
        row.extend(cells(both));
        table.row(row);
    }
    table
}

fn seed_table(title: &str, rows: &[(Both, String, String)]) -> Table {
    let mut head = head(rows.iter().map(|(both, ..)| both.contestants[1].name.clone()));
    head.extend(["proposal".to_owned(), "its factor".to_owned()]);
    let mut table = table_of(title, &head);
    for (both, seed, factor) in rows {
        let mut row = vec![both.label.clone()];
        row.extend(cells(both));
        row.extend([seed.clone(), factor.clone()]);
        table.row(row);
    }
    table
}
