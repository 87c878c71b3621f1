//! Owns: the sections Commandstats, Errorstats, Latencystats and Keyspace.

use std::sync::atomic::Ordering::Relaxed;
use weft_protocol::table::{COMMANDS, CommandId};
use weft_store::Counter;

use super::Report;
use crate::config::value::trimmed;
use crate::engine::Engine;
use crate::error::full_name;
use crate::number::parse_double;

/// Counters of the keyspace that RESETSTAT sets back.
pub(super) const KEYSPACE_COUNTERS: [Counter; 9] = [
    Counter::Hits,
    Counter::Misses,
    Counter::Expired,
    Counter::Evicted,
    Counter::ExpiredFields,
    Counter::LazyFreed,
    Counter::MovedEntries,
    Counter::MovedBytes,
    Counter::ReturnedBytes,
];

/// A counter of the keyspace, without what was before RESETSTAT.
pub(super) fn since_reset(engine: &Engine, counter: Counter) -> u64 {
    let total = engine.keyspace.total(counter).max(0) as u64;
    let at = KEYSPACE_COUNTERS.iter().position(|other| *other == counter);
    total.saturating_sub(at.map_or(0, |at| engine.stats.keyspace_base[at].load(Relaxed)))
}

fn ids() -> impl Iterator<Item = CommandId> {
    (0..COMMANDS.len()).map(|at| CommandId(at as u16))
}

pub(super) fn commandstats(engine: &Engine, report: &mut Report, _now_ms: u64) {
    report.section("Commandstats");
    for id in ids() {
        let [calls, time_ns, rejected, failed] = engine.stats.command(id);
        if calls == 0 && rejected == 0 {
            continue;
        }
        let us = time_ns / 1000;
        let each = if calls == 0 { 0.0 } else { time_ns as f64 / 1000.0 / calls as f64 };
        report.field(
            &format!("cmdstat_{}", full_name(id.spec())),
            format_args!(
                "calls={calls},usec={us},usec_per_call={each:.2},rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

pub(super) fn errorstats(engine: &Engine, report: &mut Report, _now_ms: u64) {
    report.section("Errorstats");
    for (prefix, count) in engine.stats.errors_by_prefix() {
        report.field(&format!("errorstat_{prefix}"), format_args!("count={count}"));
    }
}

/// Those that `latency-tracking-info-percentiles` names.
pub(crate) fn percentiles(engine: &Engine) -> Vec<f64> {
    let text = engine.config.text("latency-tracking-info-percentiles");
    text.split(|byte| *byte == b' ').filter_map(parse_double).collect()
}

pub(super) fn latencystats(engine: &Engine, report: &mut Report, _now_ms: u64) {
    report.section("Latencystats");
    let percentiles = percentiles(engine);
    if percentiles.is_empty() {
        return;
    }
    for id in ids() {
        let Some(counts) = engine.stats.histogram(id) else { continue };
        let parts: Vec<String> = percentiles
            .iter()
            .map(|&percent| {
                format!("p{}={:.3}", trimmed(percent), counts.percentile(percent) as f64 / 1000.0)
            })
            .collect();
        report.field(&format!("latency_percentiles_usec_{}", full_name(id.spec())), parts.join(","));
    }
}

pub(super) fn keyspace(engine: &Engine, report: &mut Report, _now_ms: u64) {
    report.section("Keyspace");
    for db in 0..engine.keyspace.database_count() as u8 {
        let (keys, expires) = (engine.keyspace.len(db), engine.keyspace.expiring(db));
        let with_fields = engine.keyspace.with_fields(db);
        if keys > 0 {
            report.field(
                &format!("db{db}"),
                format_args!(
                    "keys={keys},expires={expires},avg_ttl=0,keys_with_volatile_items={with_fields}"
                ),
            );
        }
    }
}
