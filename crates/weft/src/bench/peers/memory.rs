//! Memory rows: bytes over key and value by the size of the value, and of small collections. Owns the filling and the
//! weighing.

use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use weft_client::Protocol;

use super::super::cases::{self, Setup};
use super::super::keys::Distribution;
use super::super::run::{self, Plan};
use super::super::sizes::Sizes;
use super::contestants::{Contestant, Field, Kind};
use super::measure::Manner;
use super::rows;

/// Sizes of values whose keys are weighed.
pub(super) const VALUE_BYTES: [usize; 5] = [8, 32, 64, 100, 256];
/// Bytes of a key: `key:` and twelve digits.
const KEY_BYTES: u64 = 16;

/// What a server needs for something, in bytes for each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Weight {
    pub(super) what: String,
    pub(super) server: String,
    pub(super) count: u64,
    /// Growth of the resident memory.
    pub(super) resident: f64,
    /// Growth of `used_memory`, where the server says it.
    pub(super) used: Option<f64>,
    /// Bytes of key and value themselves.
    pub(super) payload: u64,
}

/// Weighs keys of every size in every server.
pub(super) fn keys(field: &Field, manner: &Manner, count: u64, stop: &AtomicBool) -> Result<Vec<Weight>> {
    let mut weights = Vec::new();
    for bytes in VALUE_BYTES {
        let what = format!("string of {bytes} bytes");
        eprintln!("memory: {what}");
        for (index, contestant) in servers(field) {
            let setup = cases::preload(count);
            let payload = KEY_BYTES + bytes as u64;
            weights.push(weigh(contestant, index, manner, &what, setup, bytes, payload, stop)?);
        }
    }
    Ok(weights)
}

/// Weighs small collections in every server that has them.
pub(super) fn collections(
    field: &Field,
    manner: &Manner,
    count: u64,
    stop: &AtomicBool,
) -> Result<(Vec<Weight>, Vec<String>)> {
    let (mut weights, mut remarks) = (Vec::new(), Vec::new());
    for (what, command) in rows::collections() {
        eprintln!("memory: {what}");
        for (index, contestant) in servers(field) {
            let argv = command.split(' ').map(str::to_string).collect();
            let setup = Setup { argv, times: count };
            // Elements are all that a collection is asked to hold.
            match weigh(contestant, index, manner, what, setup, 0, 160, stop) {
                Ok(weight) => weights.push(weight),
                Err(error) => remarks.push(format!("{what}: {}: {error:#}", contestant.id)),
            }
        }
    }
    Ok((weights, remarks))
}

fn servers(field: &Field) -> impl Iterator<Item = (usize, &Contestant)> {
    field.contestants.iter().enumerate().filter(|(_, contestant)| contestant.kind != Kind::Stub)
}

/// How a server is filled with `count` of something.
pub(super) fn filling(count: u64, sizes: Sizes) -> Plan {
    Plan {
        connections: 1,
        channels: 1,
        pipeline: 1,
        requests: 0,
        duration: None,
        rate: None,
        keyspace: count,
        distribution: Distribution::Sequential,
        sizes,
        ..Plan::default()
    }
}

#[expect(clippy::too_many_arguments, reason = "one call for each table, and no two of them belong together")]
fn weigh(
    contestant: &Contestant,
    index: usize,
    manner: &Manner,
    what: &str,
    setup: Setup,
    value_bytes: usize,
    payload: u64,
    stop: &AtomicBool,
) -> Result<Weight> {
    let running = contestant.start(manner.start(index, 1, value_bytes))?;
    let count = setup.times;
    let plan = filling(count, Sizes::Fixed(value_bytes));
    let server = running.server(Protocol::Resp2);
    // A thousandth first: buffers and tables that every server needs at all are not the keys'.
    let few = Setup { times: (count / 1000).max(1), ..setup.clone() };
    run::prepare(&server, &plan, &[few], stop)?;
    let before = (running.usage()?.resident_bytes, running.info("memory", "used_memory"));
    run::prepare(&server, &plan, &[setup], stop)?;
    let after = (running.usage()?.resident_bytes, running.info("memory", "used_memory"));
    let new = (count - (count / 1000).max(1)) as f64;
    let keys = running.ask(&["DBSIZE"]).context("DBSIZE")?;
    anyhow::ensure!(keys == weft_protocol::Reply::Int(count as i64), "DBSIZE is {keys:?}, not {count}");
    Ok(Weight {
        what: what.to_string(),
        server: contestant.id.to_string(),
        count,
        resident: (after.0 as f64 - before.0 as f64) / new,
        used: after.1.zip(before.1).map(|(after, before)| (after as f64 - before as f64) / new),
        payload,
    })
}
