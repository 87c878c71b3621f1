//! Measuring a row: each server with each generator, one after the other, in rounds. Owns what a figure is.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::{Deserialize, Serialize};
use weft_client::Protocol;

use super::super::cases;
use super::super::keys::Distribution;
use super::super::report;
use super::super::run::{self, Plan};
use super::super::sizes::Sizes;
use super::contestants::{Contestant, Field, Kind, Running, Start};
use super::rows::{ELEMENTS, Group, Row};
use weft_measure::Spread;

/// Keys whose values are looked at before a row is measured, each once where there are no more.
const SAMPLE_KEYS: u64 = 1_000_000;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Client {
    /// valkey-benchmark, RESP2.
    ValkeyBenchmark,
    /// `weft bench -3`
    WeftResp3,
    /// `weft bench -4`
    WeftRespb,
}

impl Client {
    pub(super) fn label(self) -> &'static str {
        match self {
            Client::ValkeyBenchmark => "valkey-benchmark",
            Client::WeftResp3 => "weft bench -3",
            Client::WeftRespb => "weft bench -4",
        }
    }
}

/// A server asked by a client, all rounds of a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) server: String,
    pub(super) client: Client,
    /// The server's CPU time for each command that it counted.
    pub(super) server_cpu_us: Spread,
    /// The part of it that is user time, by the system's ticks.
    pub(super) server_user_us: Spread,
    pub(super) client_cpu_us: Spread,
    pub(super) rps: Spread,
    pub(super) p50_ms: Spread,
    pub(super) p99_ms: Spread,
}

/// A row with what was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) id: String,
    pub(super) label: String,
    /// The ratio asked for: RESP, RESPB.
    pub(super) targets: (Option<f64>, Option<f64>),
    pub(super) cells: Vec<Cell>,
    /// Why a cell is not there.
    pub(super) remarks: Vec<String>,
}

/// How everything is measured.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    pub(super) rounds: u32,
    pub(super) seconds: u32,
    /// The part of the elements that rows which take elements away begin with.
    pub(super) scale: f64,
    pub(super) port: u16,
    pub(super) server_core: Option<usize>,
    pub(super) huge_pages: bool,
}

impl Manner {
    pub(super) fn start(&self, index: usize, threads: u32, value_bytes: usize) -> Start {
        let (port, core, huge_pages) = (self.port + index as u16, self.server_core, self.huge_pages);
        Start { port, threads, core, value_bytes, huge_pages }
    }
}

/// One figure of one round.
#[derive(Clone, Copy, Debug, Default)]
struct Figure {
    server_cpu_us: f64,
    server_user_us: f64,
    client_cpu_us: f64,
    rps: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Measures a row with all that take part in it.
pub(super) fn row(field: &Field, row: &Row, manner: &Manner, stop: &AtomicBool) -> Result<Outcome> {
    let mut result = Outcome {
        id: row.id.to_string(),
        label: row.label.to_string(),
        targets: row.targets,
        cells: Vec::new(),
        remarks: Vec::new(),
    };
    let mut servers: Vec<(&Contestant, Running)> = Vec::new();
    for (index, contestant) in field.contestants.iter().enumerate() {
        // The stub has no elements; and ten million keys in every server are more than there is to learn.
        let only_two = row.keys > 1_000_000 && matches!(contestant.id, "valkey-debian" | "redis" | "stub");
        if (contestant.kind == Kind::Stub && row.group == Group::Types) || only_two {
            continue;
        }
        let running = contestant.start(manner.start(index, 1, row.value_bytes))?;
        match ready(&running, row, stop) {
            Ok(()) => servers.push((contestant, running)),
            Err(error) => result.remarks.push(format!("{}: {error:#}", contestant.id)),
        }
    }
    let mut turns: Vec<(usize, Client, Vec<Figure>)> = Vec::new();
    for (index, (contestant, _)) in servers.iter().enumerate() {
        turns.extend(
            clients(field, row, contestant.kind).into_iter().map(|client| (index, client, Vec::new())),
        );
    }
    for _ in 0..manner.rounds {
        for (index, client, figures) in &mut turns {
            if stop.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            let (contestant, running) = &servers[*index];
            match turn(field, running, row, *client, manner, stop) {
                Ok(figure) => figures.push(figure),
                Err(error) => {
                    let remark = format!("{} by {}: {error:#}", contestant.id, client.label());
                    if !result.remarks.contains(&remark) {
                        result.remarks.push(remark);
                    }
                }
            }
        }
    }
    for (index, client, figures) in turns.into_iter().filter(|(_, _, figures)| !figures.is_empty()) {
        let spread = |pick: fn(&Figure) -> f64| Spread::of(figures.iter().map(pick).collect());
        result.cells.push(Cell {
            server: servers[index].0.id.to_string(),
            client,
            server_cpu_us: spread(|figure| figure.server_cpu_us),
            server_user_us: spread(|figure| figure.server_user_us),
            client_cpu_us: spread(|figure| figure.client_cpu_us),
            rps: spread(|figure| figure.rps),
            p50_ms: spread(|figure| figure.p50_ms),
            p99_ms: spread(|figure| figure.p99_ms),
        });
    }
    Ok(result)
}

/// Who asks a server of this kind in this row.
fn clients(field: &Field, row: &Row, kind: Kind) -> Vec<Client> {
    let mut clients = Vec::new();
    if field.valkey_benchmark.is_some() && row.group == Group::Table {
        clients.push(Client::ValkeyBenchmark);
    }
    clients.push(Client::WeftResp3);
    if kind != Kind::Redis {
        clients.push(Client::WeftRespb);
    }
    clients
}

fn plan(row: &Row, client: Client, manner: &Manner) -> Plan {
    let channels = if client == Client::WeftRespb { row.channels } else { 1 };
    let elements = (ELEMENTS as f64 * manner.scale) as u64;
    Plan {
        connections: row.clients / channels,
        channels,
        pipeline: row.pipeline,
        requests: elements,
        duration: (!row.consumes).then(|| Duration::from_secs(u64::from(manner.seconds))),
        rate: None,
        keyspace: row.keys,
        distribution: Distribution::Uniform,
        sizes: Sizes::Fixed(row.value_bytes),
        ..Plan::default()
    }
}

/// Stores the keys, and reads each of them once (of very many, a sample), value compared, on every protocol that will
/// be measured.
fn ready(running: &Running, row: &Row, stop: &AtomicBool) -> Result<()> {
    if running.kind == Kind::Stub {
        return Ok(());
    }
    let mut probe = row.argv();
    probe.iter_mut().for_each(|arg| *arg = arg.replace("__rand_int__", "1").replace("__data__", "x"));
    ensure!(running.knows(&probe), "{} is not served", probe[0]);
    running.ask(&["FLUSHALL"])?;
    if row.keys == 0 || row.group == Group::Types {
        return Ok(());
    }
    let manner = Manner { rounds: 1, seconds: 1, scale: 1.0, port: 0, server_core: None, huge_pages: false };
    let plan = plan(row, Client::WeftResp3, &manner);
    run::prepare(&running.server(Protocol::Resp2), &plan, &[cases::preload(row.keys)], stop)?;
    if !row.reads_keys() {
        return Ok(());
    }
    let protocols: &[Protocol] = match running.kind {
        Kind::Weft => &[Protocol::Resp3, Protocol::Respb],
        _ => &[Protocol::Resp3],
    };
    // Each key of a small keyspace is looked at; of a large one a sample, at random.
    let looked_at = row.keys.min(SAMPLE_KEYS);
    let distribution = if looked_at < row.keys { Distribution::Uniform } else { Distribution::Sequential };
    for protocol in protocols {
        let keys_each = if row.command.starts_with("MGET") { 10 } else { 1 };
        let once = Plan {
            connections: 1,
            pipeline: 100,
            requests: looked_at / keys_each,
            duration: None,
            distribution,
            verify: true,
            ..plan.clone()
        };
        let measured = run::run(&running.server(*protocol), &once, &row.case(), stop)?;
        ensure!(
            measured.is_clean() && measured.counts.misses == 0 && measured.checked == looked_at,
            "over {protocol} the values are not those that were stored: {} looked at, {} wrong, {} not there",
            measured.checked,
            measured.mismatches,
            measured.counts.misses
        );
    }
    Ok(())
}

fn turn(
    field: &Field,
    running: &Running,
    row: &Row,
    client: Client,
    manner: &Manner,
    stop: &AtomicBool,
) -> Result<Figure> {
    let plan = plan(row, client, manner);
    if !row.setup.is_empty() {
        let mut setup = row.setup.clone();
        setup.iter_mut().filter(|step| step.times == ELEMENTS).for_each(|step| step.times = plan.requests);
        run::prepare(&running.server(Protocol::Resp2), &plan, &setup, stop)?;
    }
    if client == Client::ValkeyBenchmark {
        let program = field.valkey_benchmark.as_deref().context("valkey-benchmark")?;
        return valkey_benchmark(program, running, row, manner);
    }
    let protocol = if client == Client::WeftRespb { Protocol::Respb } else { Protocol::Resp3 };
    let measured = run::run(&running.server(protocol), &plan, &row.case(), stop)?;
    if let Some(trouble) = report::trouble(&measured) {
        bail!("{trouble}");
    }
    ensure!(measured.counts.misses == 0 || !row.reads_keys(), "{} misses", measured.counts.misses);
    let (before, after) = measured.server.context("the server's process is gone")?;
    let commands = measured.server_commands.filter(|&count| count > 0).unwrap_or(measured.counts.replies);
    Ok(Figure {
        server_cpu_us: measured.server_cpu_us().unwrap_or(0.0),
        server_user_us: (after.user_ns - before.user_ns) as f64 / commands as f64 / 1e3,
        client_cpu_us: measured.client_cpu_us(),
        rps: measured.rate(),
        p50_ms: report::ms(&measured.latency, 0.5),
        p99_ms: report::ms(&measured.latency, 0.99),
    })
}

/// CPU time of children that have ended and were waited for.
fn children_cpu_ns() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("RUSAGE_CHILDREN is always there");
    (usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()).unsigned_abs()
}

fn valkey_benchmark(program: &Path, running: &Running, row: &Row, manner: &Manner) -> Result<Figure> {
    let (commands_before, before) = (running.info("stats", "total_commands_processed"), running.usage()?);
    let misses_before = running.info("stats", "keyspace_misses");
    let cpu_before = children_cpu_ns();
    let output = Command::new(program)
        .args(["-p", &running.port.to_string(), "-c", &row.clients.to_string()])
        .args(["-P", &row.pipeline.to_string(), "-d", &row.value_bytes.to_string(), "--csv"])
        .args(["--duration", &manner.seconds.to_string(), "--precision", "3"])
        .args(["-r", &row.keys.max(1).to_string()])
        .args(row.argv())
        .output()
        .context("valkey-benchmark")?;
    let (after, client_ns) = (running.usage()?, children_cpu_ns() - cpu_before);
    let commands_after = running.info("stats", "total_commands_processed");
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let misses = running.info("stats", "keyspace_misses").zip(misses_before).map(|(b, a)| b - a);
    ensure!(misses.unwrap_or(0) == 0 || !row.reads_keys(), "{misses:?} misses");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line =
        text.lines().rfind(|line| line.starts_with('"')).context("valkey-benchmark printed no result")?;
    // The name may have commas: the seven figures are counted from the end.
    let cells: Vec<f64> =
        line.rsplit(',').take(7).filter_map(|cell| cell.trim_matches('"').parse().ok()).collect();
    let [_max, p99_ms, _p95, p50_ms, _min, _mean, rps] = cells[..] else { bail!("not a result: {line}") };
    // The stub counts nothing that it could be asked for.
    let counted =
        commands_before.zip(commands_after).map(|(a, b)| (b - a) as f64).filter(|&count| count > 0.0);
    let commands = counted.unwrap_or(rps * f64::from(manner.seconds));
    let cpu_us = |ns: u64| ns as f64 / commands / 1e3;
    Ok(Figure {
        server_cpu_us: cpu_us(after.cpu_ns - before.cpu_ns),
        server_user_us: cpu_us(after.user_ns - before.user_ns),
        client_cpu_us: cpu_us(client_ns),
        rps,
        p50_ms,
        p99_ms,
    })
}
