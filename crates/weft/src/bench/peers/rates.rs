//! Rows at a fixed rate: latency at half of Valkey's peak, and what a second worker costs. Owns both.

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
use super::contestants::{Contestant, Field, Kind, Running};
use super::measure::Manner;
use crate::wire::results::Spread;

/// Keys that are read.
const KEYS: u64 = 100_000;
/// The least that a run at a fixed rate lasts, so that its 99.9th percentile is more than a handful of requests.
const SECONDS_MIN: u64 = 2;

/// A server at a fixed rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Rate {
    pub(super) server: String,
    pub(super) protocol: String,
    pub(super) workers: u32,
    /// Requests a second that were asked for.
    pub(super) rate: f64,
    pub(super) rps: Spread,
    pub(super) p50_ms: Spread,
    pub(super) p99_ms: Spread,
    pub(super) p999_ms: Spread,
    pub(super) server_cpu_us: Spread,
    pub(super) server_user_us: Spread,
}

/// GET of 16 bytes, 50 clients, one command each at a time.
fn plan(manner: &Manner, rate: Option<f64>) -> Plan {
    let seconds = u64::from(manner.seconds).max(if rate.is_some() { SECONDS_MIN } else { 0 });
    Plan {
        connections: 50,
        channels: 1,
        pipeline: 1,
        threads: 1,
        requests: u64::MAX,
        duration: Some(Duration::from_secs(seconds)),
        warmup: None,
        rate,
        keyspace: KEYS,
        distribution: Distribution::Uniform,
        sizes: Sizes::Fixed(16),
        seed: 1,
        verify: false,
        reconnect: false,
        live: false,
    }
}

fn get() -> cases::Case {
    cases::single(&["GET".to_string(), format!("key:{}", super::super::template::RANDOM)])
}

fn started(
    contestant: &Contestant,
    index: usize,
    workers: u32,
    manner: &Manner,
    stop: &AtomicBool,
) -> Result<Running> {
    // Workers beyond the first need a core of their own: they are not pinned.
    let manner = Manner { server_core: manner.server_core.filter(|_| workers == 1), ..manner.clone() };
    let running = contestant.start(manner.start(index, workers, 16))?;
    if contestant.kind != Kind::Stub {
        let setup = [cases::preload(KEYS)];
        run::prepare(&running.server(Protocol::Resp2), &plan(&manner, None), &setup, stop)?;
    }
    Ok(running)
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
    let peer = started(valkey, 0, 1, manner, stop)?;
    let peak = run::run(&peer.server(Protocol::Resp3), &plan(manner, None), &get(), stop)?.rate();
    let half = (peak / 2.0).round();
    let mut turns = vec![(0, Protocol::Resp3)];
    let mut servers = vec![(valkey.id, 1, peer)];
    if let Some(weft) = field.get("weft") {
        for workers in [1, 2] {
            let running = started(weft, servers.len(), workers, manner, stop)?;
            turns.extend([Protocol::Resp3, Protocol::Respb].map(|protocol| (servers.len(), protocol)));
            servers.push((weft.id, workers, running));
        }
    }
    let mut all: Vec<Vec<Measured>> = turns.iter().map(|_| Vec::new()).collect();
    for _ in 0..manner.rounds {
        for ((index, protocol), rounds) in turns.iter().zip(&mut all) {
            let server = servers[*index].2.server(*protocol);
            let measured = run::run(&server, &plan(manner, Some(half)), &get(), stop)?;
            if let Some(trouble) = report::trouble(&measured) {
                bail!("{}: {trouble}", servers[*index].0);
            }
            rounds.push(measured);
        }
    }
    turns
        .iter()
        .zip(&all)
        .map(|((index, protocol), rounds)| {
            let (server, workers, _) = &servers[*index];
            summary(server, *workers, *protocol, half, rounds)
        })
        .collect()
}

fn summary(server: &str, workers: u32, protocol: Protocol, rate: f64, rounds: &[Measured]) -> Result<Rate> {
    let spread = |pick: &dyn Fn(&Measured) -> Option<f64>| -> Result<Spread> {
        let values: Option<Vec<f64>> = rounds.iter().map(pick).collect();
        Ok(Spread::of(values.context("the server's process is gone")?))
    };
    let user = |measured: &Measured| {
        let (before, after) = measured.server?;
        Some((after.user_ns - before.user_ns) as f64 / measured.counts.replies.max(1) as f64 / 1e3)
    };
    Ok(Rate {
        server: server.to_string(),
        protocol: protocol.to_string(),
        workers,
        rate,
        rps: spread(&|measured| Some(measured.rate()))?,
        p50_ms: spread(&|measured| Some(report::ms(&measured.latency, 0.5)))?,
        p99_ms: spread(&|measured| Some(report::ms(&measured.latency, 0.99)))?,
        p999_ms: spread(&|measured| Some(report::ms(&measured.latency, 0.999)))?,
        server_cpu_us: spread(&|measured| measured.server_cpu_us())?,
        server_user_us: spread(&user)?,
    })
}
