//! Rows at a fixed rate: latency at half of Valkey's peak, and what a second worker costs. Owns both.
//!
//! User time is counted in the kernel's ticks, so that a figure of it needs many of them: a second worker is looked at
//! with a pipeline, where half of the time is the user's, and for longer. Neither it nor the single worker beside it
//! is pinned.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use weft_client::Protocol;

use super::super::cases;
use super::super::keys::Distribution;
use super::super::report;
use super::super::run::{self, Measured, Plan};
use super::super::sizes::Sizes;
use super::contestants::{Contestant, Field, Kind, Running, Start};
use super::measure::Manner;
use weft_measure::Spread;

/// Keys that are read.
const KEYS: u64 = 100_000;
/// The least that a run at a fixed rate lasts, so that its 99.9th percentile is more than a handful of requests.
const SECONDS_MIN: u64 = 4;
/// The pipeline of the rows about workers.
pub(super) const WORKERS_PIPELINE: u32 = 16;
/// Requests a second of those rows, over Valkey's peak without a pipeline: about half of what one worker serves.
const WORKERS_RATE: f64 = 5.0;

/// A server at a fixed rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Rate {
    pub(super) server: String,
    pub(super) protocol: String,
    pub(super) workers: u32,
    #[serde(default = "one")]
    pub(super) pipeline: u32,
    /// Requests a second that were asked for.
    pub(super) rate: f64,
    pub(super) rps: Spread,
    pub(super) p50_ms: Spread,
    pub(super) p99_ms: Spread,
    pub(super) p999_ms: Spread,
    pub(super) server_cpu_us: Spread,
    pub(super) server_user_us: Spread,
}

/// Results from before there was a pipeline have none.
fn one() -> u32 {
    1
}

/// GET of 16 bytes, 50 clients.
fn plan(manner: &Manner, pipeline: u32, rate: Option<f64>) -> Plan {
    let seconds = u64::from(manner.seconds).max(if rate.is_some() { SECONDS_MIN } else { 0 });
    Plan {
        connections: 50,
        channels: 1,
        pipeline,
        requests: u64::MAX,
        duration: Some(Duration::from_secs(seconds)),
        rate,
        keyspace: KEYS,
        distribution: Distribution::Uniform,
        sizes: Sizes::Fixed(16),
        ..Plan::default()
    }
}

fn get() -> cases::Case {
    cases::single(&["GET".to_string(), format!("key:{}", super::super::template::RANDOM)])
}

fn started(contestant: &Contestant, start: Start, stop: &AtomicBool) -> Result<Running> {
    let running = contestant.start(start)?;
    if contestant.kind != Kind::Stub {
        let setup = [cases::preload(KEYS)];
        let plan = super::memory::filling(KEYS, Sizes::Fixed(16));
        run::prepare(&running.server(Protocol::Resp2), &plan, &setup, stop)?;
    }
    Ok(running)
}

/// A server that is asked in turns with others.
struct Turn {
    server: &'static str,
    workers: u32,
    running: usize,
    protocol: Protocol,
    pipeline: u32,
    rate: f64,
    rounds: Vec<Measured>,
}

/// Measures both; `remarks` hears why something is not there.
pub(super) fn rates(
    field: &Field,
    manner: &Manner,
    remarks: &mut Vec<String>,
    stop: &AtomicBool,
) -> Result<Vec<Rate>> {
    let Some(valkey) = field.get("valkey") else {
        remarks.push("fixed rates: they follow Valkey's peak, and there is no Valkey".into());
        return Ok(Vec::new());
    };
    eprintln!("fixed rates");
    let peer = started(valkey, manner.start(0, 1, 16), stop)?;
    let peak = run::run(&peer.server(Protocol::Resp3), &plan(manner, 1, None), &get(), stop)?.rate();
    let half = (peak / 2.0).round();
    let mut turns = vec![Turn {
        server: valkey.id,
        workers: 1,
        running: 0,
        protocol: Protocol::Resp3,
        pipeline: 1,
        rate: half,
        rounds: Vec::new(),
    }];
    let mut servers = vec![peer];
    if let Some(weft) = field.get("weft") {
        let loose = Manner { server_core: None, ..manner.clone() };
        let deep = (WORKERS_PIPELINE, (peak * WORKERS_RATE).round());
        for (workers, manner, (pipeline, rate)) in
            [(1, manner, (1, half)), (1, &loose, deep), (2, &loose, deep)]
        {
            let running = servers.len();
            servers.push(started(weft, manner.start(running, workers, 16), stop)?);
            turns.extend([Protocol::Resp3, Protocol::Respb].map(|protocol| Turn {
                server: weft.id,
                workers,
                running,
                protocol,
                pipeline,
                rate,
                rounds: Vec::new(),
            }));
        }
    }
    take_turns(&servers, &mut turns, manner, stop)
}

fn take_turns(
    servers: &[Running],
    turns: &mut [Turn],
    manner: &Manner,
    stop: &AtomicBool,
) -> Result<Vec<Rate>> {
    for _ in 0..manner.rounds {
        for turn in &mut *turns {
            let server = servers[turn.running].server(turn.protocol);
            let plan = plan(manner, turn.pipeline, Some(turn.rate));
            let measured = run::run(&server, &plan, &get(), stop)?;
            if let Some(trouble) = report::trouble(&measured) {
                bail!("{}: {trouble}", turn.server);
            }
            turn.rounds.push(measured);
        }
    }
    turns.iter().map(summary).collect()
}

fn summary(turn: &Turn) -> Result<Rate> {
    let spread = |pick: &dyn Fn(&Measured) -> Option<f64>| -> Result<Spread> {
        let values: Option<Vec<f64>> = turn.rounds.iter().map(pick).collect();
        Ok(Spread::of(values.context("the server's process is gone")?))
    };
    let user = |measured: &Measured| {
        let (before, after) = measured.server?;
        Some((after.user_ns - before.user_ns) as f64 / measured.counts.replies.max(1) as f64 / 1e3)
    };
    Ok(Rate {
        server: turn.server.to_string(),
        protocol: turn.protocol.to_string(),
        workers: turn.workers,
        pipeline: turn.pipeline,
        rate: turn.rate,
        rps: spread(&|measured| Some(measured.rate()))?,
        p50_ms: spread(&|measured| Some(report::ms(&measured.latency, 0.5)))?,
        p99_ms: spread(&|measured| Some(report::ms(&measured.latency, 0.99)))?,
        p999_ms: spread(&|measured| Some(report::ms(&measured.latency, 0.999)))?,
        server_cpu_us: spread(&|measured| measured.server_cpu_us())?,
        server_user_us: spread(&user)?,
    })
}
