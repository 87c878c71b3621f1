//! Owns: the figures that only Weft has: its protocols and channels, batches, effects, programs and triggers, the log,
//! threads, TLS.

use std::sync::atomic::Ordering::Relaxed;

use weft_store::Counter as Counted;

use super::text::Kind::{Counter, Gauge, Info};
use super::text::Page;
use crate::behind::{Figure, State};
use crate::engine::Engine;
use crate::info::VERSION;

/// Programs, and triggers, that are told of by name; the rest of them together, as `(others)`.
const NAMES_MAX: usize = 100;
const OTHERS: &str = "(others)";

pub(super) fn write(engine: &Engine, page: &mut Page, now_ms: u64) {
    page.family("weft_build_info", Info, "The version").labelled(&[("version", VERSION)], 1);
    clients(engine, page);
    work(engine, page);
    programs(engine, page);
    triggers(engine, page);
    kept(engine, page);
    tls(engine, page, now_ms);
    behind(engine, page);
}

/// The servers behind a gateway.
fn behind(engine: &Engine, page: &mut Page) {
    let Some(behind) = engine.behind.get() else { return };
    let nodes = behind.nodes();
    let mut family = page.family(
        "weft_gateway_node_up",
        Gauge,
        "Whether a connection to a server behind stands; 0 while it is tried or left alone for a while",
    );
    for node in &nodes {
        let is_up = u8::from(node.state == State::Up);
        family.labelled(&[("node", node.address.as_str()), ("state", node.state.name())], is_up);
    }
    let kind = |figure: &Figure| if figure.is_counter { Counter } else { Gauge };
    for (figure, value) in behind.of_all() {
        page.family(&format!("weft_{}", figure.name), kind(figure), figure.help).value(value);
    }
    for (place, figure) in behind.figures().iter().enumerate() {
        let name = format!("weft_{}", figure.name);
        let mut family = page.family(&name, kind(figure), figure.help.trim_start());
        for node in &nodes {
            family.labelled(&[("node", node.address.as_str())], node.values[place]);
        }
    }
}

fn clients(engine: &Engine, page: &mut Page) {
    const NAMES: [&str; 3] = ["resp2", "resp3", "respb"];
    let (mut by_protocol, mut channels, mut held_bytes) = ([0_u64; 3], 0_u64, 0_u64);
    engine.clients.each(|info| {
        let number = usize::from(info.protocol.load(Relaxed));
        by_protocol[number.wrapping_sub(2).min(NAMES.len() - 1)] += 1;
        channels += u64::from(info.address.channel != 0);
        held_bytes += info.queued_bytes.load(Relaxed);
    });
    let mut family = page.family(
        "weft_clients",
        Gauge,
        "Logical clients by the protocol of their replies; HTTP counts as what its JSON is like",
    );
    for (name, count) in NAMES.iter().zip(by_protocol) {
        family.labelled(&[("protocol", name)], count);
    }
    page.family("weft_channels", Gauge, "Channels of RESPB besides the first of each connection")
        .value(channels);
    page.family("weft_queued_bytes", Gauge, "What transactions and channels hold that has not run")
        .value(held_bytes);
}

fn work(engine: &Engine, page: &mut Page) {
    let stats = &engine.stats;
    page.family("weft_batches_total", Counter, "Batches of requests that ran").value(stats.batches());
    let [ticks, tick_ns] = stats.ticks();
    page.family("weft_ticks_total", Counter, "Rounds of the workers").value(ticks);
    page.family("weft_tick_seconds_total", Counter, "Time that they took").value(tick_ns as f64 / 1e9);
    let [wall_us, cpu_us] = stats.longest_tick.us();
    page.family("weft_tick_seconds_max", Gauge, "The longest of them by the wall")
        .value(wall_us as f64 / 1e6);
    page.family("weft_tick_cpu_seconds_max", Gauge, "The longest by CPU time").value(cpu_us as f64 / 1e6);
    let [step_us, _] = stats.longest_step.us();
    page.family("weft_background_step_seconds_max", Gauge, "The longest step of background work")
        .value(step_us as f64 / 1e6);
    page.family("weft_worker_threads", Gauge, "Workers").value(engine.worker_count());
    page.family("weft_worker_threads_active", Gauge, "Threads that drive workers now")
        .value(stats.active_threads.load(Relaxed));
    page.family("weft_worker_handovers_total", Counter, "Times that a worker went to another thread")
        .value(stats.thread_handovers.load(Relaxed));
    let keyspace = &engine.keyspace;
    page.family("weft_effects_total", Counter, "Changes of keys")
        .value(keyspace.total(Counted::Writes).max(0));
    page.family("weft_effect_backlog_bytes", Gauge, "Effects that the log has not taken")
        .value(keyspace.backlog_bytes());
    page.family(
        "weft_script_undeclared_reruns_total",
        Counter,
        "Scripts that ran again under the world gate",
    )
    .value(engine.scripts.reruns.load(Relaxed));
}

fn programs(engine: &Engine, page: &mut Page) {
    let all = engine.programs.all();
    let rows: Vec<_> = all
        .iter()
        .map(|(name, stored)| {
            let figures = &stored.figures;
            let failures = figures.failures.load(Relaxed);
            (String::from_utf8_lossy(name), [figures.runs.load(Relaxed), failures])
        })
        .collect();
    let rows = bounded(rows);
    page.family("weft_programs", Gauge, "Programs that are stored").value(all.len());
    for (at, (name, help)) in [
        ("weft_program_runs_total", "Runs of a program"),
        ("weft_program_failures_total", "Runs that failed, of which nothing stayed"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut family = page.family(name, Counter, help);
        rows.iter().for_each(|(program, figures)| family.labelled(&[("program", program)], figures[at]));
    }
}

fn triggers(engine: &Engine, page: &mut Page) {
    let all = engine.triggers.all();
    let rows: Vec<_> = all
        .iter()
        .map(|(name, trigger)| {
            let figures = &trigger.figures;
            let counts = [&figures.fired, &figures.failed, &figures.passed_over, &figures.dead];
            (String::from_utf8_lossy(name), counts.map(|count| count.load(Relaxed)))
        })
        .collect();
    let rows = bounded(rows);
    page.family("weft_triggers", Gauge, "Triggers that are stored").value(all.len());
    for (at, (name, help)) in [
        ("weft_trigger_fired_total", "Times that a trigger fired"),
        ("weft_trigger_failed_total", "Times that what it does failed"),
        ("weft_trigger_passed_over_total", "Times that its condition did not hold"),
        ("weft_trigger_dead_total", "Times that what it does afterwards was given up"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut family = page.family(name, Counter, help);
        rows.iter().for_each(|(trigger, figures)| family.labelled(&[("trigger", trigger)], figures[at]));
    }
    let outbox = &engine.triggers.outbox;
    page.family("weft_trigger_waiting", Gauge, "What triggers have still to do afterwards")
        .value(outbox.len(&engine.keyspace));
    page.family(
        "weft_trigger_lost_total",
        Counter,
        "Events of keys that went by themselves, of which too many waited",
    )
    .value(outbox.lost.load(Relaxed));
}

/// A name and its figures.
type Row<'n, const N: usize> = (std::borrow::Cow<'n, str>, [u64; N]);

/// Those that were used most by name, the rest as one.
fn bounded<const N: usize>(mut rows: Vec<Row<'_, N>>) -> Vec<Row<'_, N>> {
    if rows.len() > NAMES_MAX {
        rows.sort_by_key(|(_, figures)| std::cmp::Reverse(figures[0]));
        let mut others = [0; N];
        for (_, figures) in rows.drain(NAMES_MAX..) {
            others.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        }
        rows.push((OTHERS.into(), others));
    }
    rows
}

fn kept(engine: &Engine, page: &mut Page) {
    let log = &engine.durable.log;
    for (name, help, figure) in [
        ("weft_log_bytes", "The log since its last snapshot", &log.bytes),
        ("weft_log_base_bytes", "What that was right behind it", &log.base_bytes),
        ("weft_log_unsynced_bytes", "Written and not synced", &log.unsynced_bytes),
    ] {
        page.family(name, Gauge, help).value(figure.load(Relaxed));
    }
    let unsynced_s = engine.durable.unsynced_since.lock().map_or(0.0, |since| since.elapsed().as_secs_f64());
    page.family(
        "weft_log_unsynced_seconds",
        Gauge,
        "For how long something was written that is not on the disk",
    )
    .value(unsynced_s);
    page.family("weft_log_failed", Gauge, "Whether the last write to the log failed")
        .value(u8::from(log.has_failed.load(Relaxed)));
    page.family("weft_writes_refused", Gauge, "Whether writes are refused, because they could not be kept")
        .value(u8::from(engine.special.has(crate::special::REFUSING)));
    page.family("weft_log_syncs_total", Counter, "Syncs of the log").value(log.syncs.load(Relaxed));
    page.family("weft_log_rewrites_total", Counter, "Snapshots that old segments of the log went for")
        .value(log.rewrites.load(Relaxed));
    page.family("weft_snapshots_total", Counter, "Snapshots that were made")
        .value(engine.durable.saves.count.load(Relaxed));
}

fn tls(engine: &Engine, page: &mut Page, now_ms: u64) {
    let stats = &engine.stats;
    if let Some(expires_s) = *engine.facts.tls_expires_s.read() {
        page.family("weft_tls_certificate_seconds", Gauge, "Until the certificate expires")
            .value(expires_s as i64 - (now_ms / 1000) as i64);
    }
    for (name, help, figure) in [
        ("weft_tls_handshakes_total", "Handshakes that succeeded", &stats.tls_handshakes),
        ("weft_tls_handshakes_resumed_total", "Those that resumed a session", &stats.tls_handshakes_resumed),
        ("weft_tls_handshakes_failed_total", "Handshakes that failed", &stats.tls_handshakes_failed),
    ] {
        page.family(name, Counter, help).value(figure.load(Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded() {
        let rows =
            |count: usize| (0..count).map(|at| (format!("p{at}").into(), [at as u64])).collect::<Vec<_>>();
        assert_eq!(bounded(rows(NAMES_MAX)).len(), NAMES_MAX);
        let rows = bounded(rows(NAMES_MAX + 2));
        assert_eq!(rows.len(), NAMES_MAX + 1);
        assert_eq!(rows.last(), Some(&(OTHERS.into(), [1])), "the two that were used least");
        assert_eq!(rows[0].1, [NAMES_MAX as u64 + 1]);
    }
}
