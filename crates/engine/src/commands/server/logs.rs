//! Owns: SLOWLOG, COMMANDLOG, LATENCY. Does not own: what they show (`crate::command_log`, `crate::latency`).
//!
//! | locks | commands |
//! |---|---|
//! | none | all |

use std::sync::atomic::Ordering::Relaxed;
use weft_protocol::table::{self, COMMANDS, CommandId};

use crate::args::Args;
use crate::command_log::LogKind;
use crate::commands::common::help;
use crate::context::Context;
use crate::error::{Error, Result, full_name};
use crate::handler::{Entry, Scope};
use crate::histogram::Counts;
use crate::latency;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("SLOWLOG GET", Scope::None, slowlog_get),
    ("SLOWLOG LEN", Scope::None, slowlog_len),
    ("SLOWLOG RESET", Scope::None, slowlog_reset),
    ("SLOWLOG HELP", Scope::None, slowlog_help),
    ("COMMANDLOG GET", Scope::None, commandlog_get),
    ("COMMANDLOG LEN", Scope::None, commandlog_len),
    ("COMMANDLOG RESET", Scope::None, commandlog_reset),
    ("COMMANDLOG HELP", Scope::None, commandlog_help),
    ("LATENCY DOCTOR", Scope::None, latency_doctor),
    ("LATENCY GRAPH", Scope::None, latency_graph),
    ("LATENCY HELP", Scope::None, latency_help),
    ("LATENCY HISTOGRAM", Scope::None, latency_histogram),
    ("LATENCY HISTORY", Scope::None, latency_history),
    ("LATENCY LATEST", Scope::None, latency_latest),
    ("LATENCY RESET", Scope::None, latency_reset),
];

fn count(args: &Args<'_>, index: usize) -> Result<usize> {
    let count = args.int_in_said(index, -1..=i64::MAX, "count should be greater than or equal to -1")?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn kind(args: &Args<'_>, index: usize) -> Result<LogKind> {
    LogKind::from_name(args.bytes(index))
        .ok_or_else(|| Error::err("type should be one of the following: slow, large-request, large-reply"))
}

fn entries(context: &Context<'_, '_>, kind: LogKind, count: usize, sink: &mut ReplySink<'_>) {
    let entries = context.engine.command_logs.get(kind, count);
    sink.array(entries.len());
    for entry in entries {
        sink.array(6);
        sink.int(entry.id as i64);
        sink.int(entry.time_s as i64);
        sink.int(entry.value as i64);
        sink.array(entry.arguments.len());
        entry.arguments.iter().for_each(|argument| sink.bulk(argument));
        sink.bulk(entry.peer.as_bytes());
        sink.bulk(&entry.name);
    }
}

fn slowlog_get(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 3 {
        return Err(help::subcommand_syntax(args));
    }
    let count = if args.len() == 3 { count(args, 2)? } else { 10 };
    entries(context, LogKind::Slow, count, sink);
    Ok(())
}

fn slowlog_len(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.int(context.engine.command_logs.len(LogKind::Slow) as i64);
    Ok(())
}

fn slowlog_reset(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.command_logs.reset(LogKind::Slow);
    sink.ok();
    Ok(())
}

fn slowlog_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let lines = [
        "GET [<count>]",
        "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
        "    Entries are made of:",
        "    id, timestamp, time in microseconds, arguments array, client IP and port,",
        "    client name",
        "LEN",
        "    Return the length of the slowlog.",
        "RESET",
        "    Reset the slowlog.",
    ];
    help::answer(sink, "SLOWLOG", &lines);
    Ok(())
}

fn commandlog_get(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let count = count(args, 2)?;
    entries(context, kind(args, 3)?, count, sink);
    Ok(())
}

fn commandlog_len(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.int(context.engine.command_logs.len(kind(args, 2)?) as i64);
    Ok(())
}

fn commandlog_reset(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.command_logs.reset(kind(args, 2)?);
    sink.ok();
    Ok(())
}

fn commandlog_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let lines = [
        "GET <count> <type>",
        "    Return top <count> entries of the specified <type> from the commandlog (-1 mean all).",
        "    Entries are made of:",
        "    id, timestamp,",
        "        time in microseconds for type of slow,",
        "        or size in bytes for type of large-request,",
        "        or size in bytes for type of large-reply",
        "    arguments array, client IP and port,",
        "    client name",
        "LEN <type>",
        "    Return the length of the specified type of commandlog.",
        "RESET <type>",
        "    Reset the specified type of commandlog.",
    ];
    help::answer(sink, "COMMANDLOG", &lines);
    Ok(())
}

fn latency_doctor(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let settings = &context.engine.settings;
    let threshold_ms = settings.latency_threshold_ms.load(Relaxed);
    let slowlog_us = settings.slowlog_slower_than_us.load(Relaxed);
    let events = context.engine.latency.all();
    let report = latency::report(&events, threshold_ms, slowlog_us, context.now_ms);
    sink.verbatim(*b"txt", report.as_bytes());
    Ok(())
}

fn latency_graph(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let name = args.bytes(2);
    let Some((event, series)) = context.engine.latency.series(name) else {
        let name = String::from_utf8_lossy(name);
        return Err(Error::err(format!("No samples available for event '{name}'")));
    };
    sink.verbatim(*b"txt", series.graph(event, context.now_ms).as_bytes());
    Ok(())
}

fn latency_history(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let samples = context.engine.latency.series(args.bytes(2)).map(|(_, series)| series.samples);
    let samples = samples.unwrap_or_default();
    sink.array(samples.len());
    for sample in samples {
        sink.array(2);
        sink.int(sample.time_s as i64);
        sink.int(sample.latency_ms as i64);
    }
    Ok(())
}

fn latency_latest(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let events = context.engine.latency.all();
    sink.array(events.len());
    for (event, series) in events {
        let last = series.samples.last();
        sink.array(6);
        sink.bulk(event.as_bytes());
        sink.int(last.map_or(0, |last| last.time_s as i64));
        sink.int(last.map_or(0, |last| last.latency_ms as i64));
        sink.int(series.max_ms as i64);
        sink.int(series.sum_ms as i64);
        sink.int(series.count as i64);
    }
    Ok(())
}

fn latency_reset(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let latency = &context.engine.latency;
    let forgotten = match args.len() {
        0..=2 => latency.reset(None),
        _ => args.rest(2).map(|event| latency.reset(Some(event))).sum(),
    };
    sink.int(forgotten as i64);
    Ok(())
}

/// The commands that names stand for: a container stands for its subcommands too, `config|get` for one of them.
fn named(args: &Args<'_>) -> Vec<CommandId> {
    let mut ids = Vec::new();
    for name in args.rest(2) {
        let (root, sub) = match name.iter().position(|byte| *byte == b'|') {
            Some(bar) => (&name[..bar], Some(&name[bar + 1..])),
            None => (name, None),
        };
        match (table::by_name(root), sub) {
            (Some(id), Some(sub)) => ids.extend(table::subcommand(id, sub)),
            (Some(id), None) => {
                let subs = (0..COMMANDS.len()).map(|at| CommandId(at as u16));
                ids.push(id);
                ids.extend(subs.filter(|sub| sub.spec().container == Some(id)));
            }
            (None, _) => {}
        }
    }
    ids
}

fn latency_histogram(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let ids: Vec<CommandId> = match args.len() {
        0..=2 => (0..COMMANDS.len()).map(|at| CommandId(at as u16)).collect(),
        _ => named(args),
    };
    let found: Vec<(CommandId, Counts)> =
        ids.into_iter().filter_map(|id| Some((id, context.engine.stats.histogram(id)?))).collect();
    sink.map(found.len());
    for (id, counts) in found {
        sink.bulk(full_name(id.spec()).as_bytes());
        sink.map(2);
        sink.bulk(b"calls");
        sink.int(counts.len() as i64);
        sink.bulk(b"histogram_usec");
        let powers = counts.powers_of_two(1024);
        sink.map(powers.len());
        for (power, seen) in powers {
            sink.int((power * 1024 / 1000) as i64);
            sink.int(seen as i64);
        }
    }
    Ok(())
}

fn latency_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let lines = [
        "DOCTOR",
        "    Return a human readable latency analysis report.",
        "GRAPH <event>",
        "    Return an ASCII latency graph for the <event> class.",
        "HISTORY <event>",
        "    Return time-latency samples for the <event> class.",
        "LATEST",
        "    Return the latest latency samples for all events.",
        "RESET [<event> ...]",
        "    Reset latency data of one or more <event> classes.",
        "    (default: reset all data for all event classes)",
        "HISTOGRAM [COMMAND ...]",
        "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
        "    If no commands are specified then all histograms are replied.",
    ];
    help::answer(sink, "LATENCY", &lines);
    Ok(())
}
