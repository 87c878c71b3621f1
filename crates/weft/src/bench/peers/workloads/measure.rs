//! Measuring a workload: rounds in which each server has its turn, until the ratios are close, then the same at rates
//! that all of them hold. Owns the order of things.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use weft_client::Protocol;
use weft_measure::Spread;
use weft_measure::verdict::{Rounds, paired};

use super::{AtRate, Cell, Condition, Latency, PIPELINES, Results, Turn, Weight};
use crate::bench::cases::Case;
use crate::bench::peers::contestants::{Field, Kind, Running};
use crate::bench::peers::measure::Manner;
use crate::bench::report;
use crate::bench::run::{self, Measured, Plan};
use crate::bench::workloads::Workload;

/// How long a server is asked in one round.
const TURN: Duration = Duration::from_millis(500);
/// And before it, unmeasured: another server was asked last.
const WARMUP: Duration = Duration::from_millis(50);
/// How many times as many rounds as are asked for are run at most.
const ROUNDS_TIMES_MAX: u32 = 3;
/// Parts of the slowest one's peak at which latencies are looked at.
const PARTS: [f64; 2] = [0.5, 0.9];

/// Who is asked over which wire.
struct Way<'r> {
    running: &'r Running,
    server: &'static str,
    protocol: Protocol,
    rounds: Vec<Measured>,
}

pub(super) fn workload(
    field: &Field,
    workload: &Workload,
    mut results: Results,
    manner: &Manner,
    stop: &AtomicBool,
) -> Result<Results> {
    let cases = workload.cases();
    let under = results.under;
    let stub = under.is_none_or(Condition::has_stub);
    let files = std::env::temp_dir().join(format!("weft-peers-{}", std::process::id()));
    let servers: Vec<(&'static str, Running)> = field
        .contestants
        .iter()
        .enumerate()
        .filter(|(_, one)| matches!(one.id, "weft" | "valkey") || stub && one.kind == Kind::Stub)
        .map(|(index, one)| {
            let start = manner.start(index, under.map_or(1, Condition::threads), workload.value_bytes());
            let mut settings = workload.settings.clone();
            settings.extend(under.map_or(Ok(Vec::new()), |under| under.settings(&files, start.port))?);
            Ok((one.id, one.start_with(start, &settings)?))
        })
        .collect::<Result<_>>()?;
    // Servers have read what was in it.
    if files.exists() {
        std::fs::remove_dir_all(&files).with_context(|| files.display().to_string())?;
    }
    for name in ["weft", "valkey"] {
        ensure!(servers.iter().any(|(id, _)| *id == name), "{name} is not there");
    }
    for (id, running) in servers.iter().filter(|(_, running)| running.kind != Kind::Stub) {
        eprintln!("{}: {id} is filled", workload.title);
        let plan = workload.plan(&plan(1), None)?;
        run::prepare(&running.server(Protocol::Resp2), &plan, &cases[0].setup, stop)?;
        let usage = running.usage()?;
        results.weights.push(Weight {
            server: (*id).to_string(),
            resident_bytes: usage.resident_bytes,
            used_bytes: running.info("memory", "used_memory"),
            keys: keys(running),
        });
    }
    for case in &cases {
        for pipeline in PIPELINES {
            eprintln!("{}, pipeline {pipeline}", case.label);
            results.cells.push(cell(&servers, (workload, case), pipeline, (manner, under), stop)?);
        }
    }
    Ok(results)
}

fn keys(running: &Running) -> u64 {
    match running.ask(&["DBSIZE"]) {
        Ok(weft_client::Reply::Int(count)) => count.unsigned_abs(),
        _ => 0,
    }
}

fn plan(pipeline: u32) -> Plan {
    Plan { pipeline, duration: Some(TURN), warmup: Some(WARMUP), ..Plan::default() }
}

fn cell(
    servers: &[(&'static str, Running)],
    (workload, case): (&Workload, &Case),
    pipeline: u32,
    (manner, under): (&Manner, Option<Condition>),
    stop: &AtomicBool,
) -> Result<Cell> {
    // What it needs is there already.
    let case = Case { setup: Vec::new(), ..case.clone() };
    let shaped = workload.plan(&plan(pipeline), None)?;
    let mut ways: Vec<Way<'_>> = Vec::new();
    for (server, running) in servers {
        let protocols: &[Protocol] =
            if *server == "valkey" { &[Protocol::Resp3] } else { &[Protocol::Resp3, Protocol::Respb] };
        ways.extend(protocols.iter().map(|&protocol| Way { running, server, protocol, rounds: Vec::new() }));
    }
    let wanted = Rounds { least: manner.rounds, most: manner.rounds * ROUNDS_TIMES_MAX };
    let mut done = 0;
    while wanted.go_on(done, close(&ways)) {
        for way in &mut ways {
            way.ask(&Plan { seed: u64::from(done) + 1, ..shaped.clone() }, &case, stop)?;
        }
        done += 1;
    }
    let turns: Vec<Turn> = ways.iter().map(turn).collect::<Result<_>>()?;
    let asked = turns.iter().filter(|turn| turn.server != "stub");
    let peak = asked.map(|turn| Spread::of(turn.rps.clone()).median).fold(f64::INFINITY, f64::min);
    ways.retain(|way| way.server != "stub");
    let mut rates = Vec::new();
    for &part in if under.is_none() { &PARTS[..] } else { &[] } {
        ways.iter_mut().for_each(|way| way.rounds.clear());
        for round in 0..manner.rounds {
            for way in &mut ways {
                let seed = u64::from(round) + 1;
                way.ask(&Plan { rate: Some(peak * part), seed, ..shaped.clone() }, &case, stop)?;
            }
        }
        rates.push(AtRate { part, rate: peak * part, turns: ways.iter().map(latency).collect() });
    }
    Ok(Cell { label: case.label.clone(), pipeline, seconds: TURN.as_secs_f64(), turns, rates })
}

impl Way<'_> {
    fn ask(&mut self, plan: &Plan, case: &Case, stop: &AtomicBool) -> Result<()> {
        if stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        let name = || format!("{} over {}", self.server, self.protocol);
        // What the stub answers is nothing to compare.
        let plan = Plan { verify: self.server != "stub", ..plan.clone() };
        let measured = run::run(&self.running.server(self.protocol), &plan, case, stop).with_context(name)?;
        if let Some(trouble) = report::trouble(&measured) {
            bail!("{}: {trouble}", name());
        }
        self.rounds.push(measured);
        Ok(())
    }

    fn cpu_us(&self) -> Vec<f64> {
        self.rounds.iter().filter_map(Measured::server_cpu_us).collect()
    }
}

/// Weft's ratios to Valkey so far.
fn close(ways: &[Way<'_>]) -> Vec<Option<weft_measure::verdict::Ratio>> {
    let Some(valkey) = ways.iter().find(|way| way.server == "valkey") else { return Vec::new() };
    let ours = ways.iter().filter(|way| way.server == "weft");
    ours.map(|way| paired(&way.cpu_us(), &valkey.cpu_us())).collect()
}

fn turn(way: &Way<'_>) -> Result<Turn> {
    let cpu_us = way.cpu_us();
    ensure!(cpu_us.len() == way.rounds.len(), "{}: the server's process is gone", way.server);
    let (mut user, mut system, mut there, mut absent) = (0, 0, 0, 0);
    for measured in &way.rounds {
        if let Some((before, after)) = measured.server {
            user += after.user_ns - before.user_ns;
            system += after.system_ns - before.system_ns;
        }
        there += measured.checked;
        absent += measured.absent;
    }
    Ok(Turn {
        server: way.server.to_string(),
        wire: way.protocol.to_string(),
        cpu_us,
        rps: way.rounds.iter().map(Measured::rate).collect(),
        kernel: system as f64 / ((user + system) as f64).max(1.0),
        hits: (absent > 0).then(|| there as f64 / (there + absent) as f64),
        compared: there,
    })
}

fn latency(way: &Way<'_>) -> Latency {
    let at = |quantile: f64| {
        Spread::of(way.rounds.iter().map(|measured| report::ms(&measured.latency, quantile)).collect())
    };
    Latency {
        server: way.server.to_string(),
        wire: way.protocol.to_string(),
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        p999_ms: at(0.999),
    }
}
