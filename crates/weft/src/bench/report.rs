//! Results as people and programs read them: table, lines, CSV, JSON, HDR files, a plot. Owns the formats.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use weft_client::fleet;

use super::run::{Measured, Plan};
use crate::text::{grouped, quoted};
use crate::wire::html::STYLE;
use weft_measure::Machine;
use weft_measure::plot::{self, Line};
use weft_measure::{Table, escape, number};

/// Quantiles that results show.
pub(super) const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// Milliseconds at a quantile.
pub(super) fn ms(latency: &Histogram<u64>, quantile: f64) -> f64 {
    // The highest value of a histogram's bucket may lie above the longest latency that there was.
    latency.value_at_quantile(quantile).min(latency.max()) as f64 / 1e6
}

fn mean_ms(latency: &Histogram<u64>) -> f64 {
    if latency.is_empty() { 0.0 } else { latency.mean() / 1e6 }
}

fn min_ms(latency: &Histogram<u64>) -> f64 {
    if latency.is_empty() { 0.0 } else { latency.min() as f64 / 1e6 }
}

/// One line, as `redis-benchmark -q` has it.
pub(super) fn line(measured: &Measured, precision: usize) -> String {
    let mut line = format!(
        "{}: {:.2} requests per second, p50={:.precision$} msec",
        measured.label,
        measured.rate(),
        ms(&measured.latency, 0.5)
    );
    if let Some(cpu) = measured.server_cpu_us() {
        let _ = write!(line, ", server {cpu:.3} us/request");
    }
    if let Some(trouble) = trouble(measured) {
        let _ = write!(line, ", {trouble}");
    }
    line
}

/// A table of all cases.
pub(super) fn table(all: &[Measured], plan: &Plan, precision: usize) -> Table {
    let clients = match plan.channels {
        1 => format!("{} connections", plan.connections),
        channels => format!(
            "{} connections with {channels} channels each, {} clients",
            plan.connections,
            grouped(u64::from(plan.connections) * u64::from(channels))
        ),
    };
    let protocol = all.first().map_or(String::new(), |measured| format!("{}, ", measured.protocol));
    let mut table = Table::new(
        format!("{protocol}{clients}, pipeline {}; latencies in ms, CPU in µs a request", plan.pipeline),
        &[
            "test",
            "requests",
            "a second",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "max",
            "errors",
            "misses",
            "server CPU",
            "own CPU",
        ],
    );
    for measured in all {
        let row = |label: String, replies: u64, rate: f64, latency: &Histogram<u64>| {
            let mut cells = vec![label, grouped(replies), grouped(rate.round() as u64)];
            cells.extend(
                QUANTILES.iter().map(|(_, quantile)| format!("{:.precision$}", ms(latency, *quantile))),
            );
            cells
        };
        let mut cells =
            row(measured.label.clone(), measured.counts.replies, measured.rate(), &measured.latency);
        cells.extend([grouped(measured.counts.errors), grouped(measured.counts.misses)]);
        cells.extend([number(measured.server_cpu_us(), 3), number(Some(measured.client_cpu_us()), 3)]);
        table.row(cells);
        for (label, replies, latency) in &measured.kinds {
            let rate = *replies as f64 / measured.elapsed.as_secs_f64();
            let mut cells = row(format!("  {label}"), *replies, rate, latency);
            cells.extend(std::iter::repeat_n(String::new(), 4));
            table.row(cells);
        }
        if let Some(service) = &measured.service {
            let mut cells = row("  since sent".into(), measured.counts.replies, measured.rate(), service);
            cells.extend(std::iter::repeat_n(String::new(), 4));
            table.row(cells);
        }
    }
    table
}

/// What went wrong, in words and numbers.
pub(super) fn trouble(measured: &Measured) -> Option<String> {
    let counts = &measured.counts;
    let mut parts = Vec::new();
    let mut part = |count: u64, what: &str| {
        if count > 0 {
            parts.push(format!("{} {what}", grouped(count)));
        }
    };
    part(counts.errors, "errors");
    part(measured.mismatches, "wrong replies or values");
    part(counts.malformed, "connections with what is no reply");
    part(counts.closed, "connections or channels closed");
    part(counts.lost, "requests without a reply");
    match counts.ended {
        fleet::Ended::Stalled => parts.push("the server stopped answering".into()),
        fleet::Ended::Lost => parts.push("no connection was left".into()),
        fleet::Ended::Stopped => parts.push("stopped before all was answered".into()),
        fleet::Ended::Done => {}
    }
    if parts.is_empty() {
        return None;
    }
    let texts = counts.error_texts.iter().map(|(text, count)| format!("{text:?} ({})", grouped(*count)));
    let texts: Vec<String> = texts.collect();
    let texts = if texts.is_empty() { String::new() } else { format!(": {}", texts.join(", ")) };
    let wrong = measured.wrong.as_ref().map_or(String::new(), |wrong| {
        if let Some(kind) = wrong.kind {
            return format!("; {} was answered by {}", wrong.key, kind_name(kind));
        }
        let held = quoted(&wrong.held, wrong.held.len());
        format!(
            "; {} held {} bytes that were not stored for it with this -d: {held}; --preload stores all keys of -r first",
            wrong.key,
            grouped(wrong.held_bytes as u64)
        )
    });
    Some(parts.join(", ") + &texts + &wrong)
}

/// What a reply of a wrong kind is called.
fn kind_name(kind: fleet::Kind) -> &'static str {
    match kind {
        fleet::Kind::Simple => "a word",
        fleet::Kind::Integer => "an integer",
        fleet::Kind::Scalar => "a double or a boolean",
        fleet::Kind::Text => "a text",
        fleet::Kind::Null => "null",
        fleet::Kind::Aggregate => "a list",
        fleet::Kind::Error => "an error",
    }
}

/// What is to be known of `--verify` where it had nothing to compare, because nothing was there.
pub(super) fn unverified(measured: &Measured) -> Option<String> {
    (measured.checked == 0 && measured.absent > 0).then(|| {
        format!(
            "--verify has compared nothing: none of {} values was there; --preload stores all keys of -r first",
            grouped(measured.absent)
        )
    })
}

/// The head of the CSV: redis-benchmark's columns, then ours.
pub(super) const CSV_HEAD: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\",\"protocol\",\"requests\",\"errors\",\"misses\",\
\"server_cpu_us\",\"client_cpu_us\"";

pub(super) fn csv(measured: &Measured, precision: usize) -> String {
    let latency = &measured.latency;
    let mut cells = vec![measured.label.replace('"', "\"\""), format!("{:.2}", measured.rate())];
    let times = [
        mean_ms(latency),
        min_ms(latency),
        ms(latency, 0.5),
        ms(latency, 0.95),
        ms(latency, 0.99),
        ms(latency, 1.0),
    ];
    cells.extend(times.iter().map(|time| format!("{time:.precision$}")));
    cells.push(measured.protocol.to_string());
    cells.extend(
        [measured.counts.replies, measured.counts.errors, measured.counts.misses].map(|n| n.to_string()),
    );
    cells.push(measured.server_cpu_us().map_or(String::new(), |cpu| format!("{cpu:.4}")));
    cells.push(format!("{:.4}", measured.client_cpu_us()));
    cells.iter().map(|cell| format!("\"{cell}\"")).collect::<Vec<_>>().join(",")
}

fn latency_json(latency: &Histogram<u64>) -> Value {
    let mut object = serde_json::Map::new();
    object.insert("mean".into(), json!(mean_ms(latency)));
    object.insert("min".into(), json!(min_ms(latency)));
    for (name, quantile) in QUANTILES {
        object.insert(name.into(), json!(ms(latency, quantile)));
    }
    Value::Object(object)
}

/// One result as JSON.
pub(super) fn json(measured: &Measured) -> Value {
    let counts = &measured.counts;
    let mut value = json!({
        "test": measured.label,
        "protocol": measured.protocol.to_string(),
        "requests": counts.requests,
        "replies": counts.replies,
        "seconds": measured.elapsed.as_secs_f64(),
        "rps": measured.rate(),
        "latency_ms": latency_json(&measured.latency),
        "errors": counts.errors,
        "misses": counts.misses,
        "pushes": counts.pushes,
        "lost": counts.lost,
        "closed": counts.closed,
        "malformed": counts.malformed,
        "values_checked": measured.checked,
        "values_wrong": measured.mismatches,
        "values_absent": measured.absent,
        "first_wrong_key": measured.wrong.as_ref().map(|wrong| &wrong.key),
        "ended": format!("{:?}", counts.ended).to_lowercase(),
        "error_texts": counts.error_texts.iter().map(|(text, n)| json!({ "text": text, "count": n })).collect::<Vec<_>>(),
        "sent_bytes": counts.sent_bytes,
        "received_bytes": counts.received_bytes,
        "sends": counts.sends,
        "receives": counts.receives,
        "client_cpu_us": measured.client_cpu_us(),
        "server_cpu_us": measured.server_cpu_us(),
        "server_commands": measured.server_commands,
    });
    if let Some(service) = &measured.service {
        value["since_sent_ms"] = latency_json(service);
    }
    if let Some((before, after)) = measured.server {
        let per = |ns: u64| ns as f64 / measured.counts.replies.max(1) as f64 / 1e3;
        value["server"] = json!({
            "user_us": per(after.user_ns.saturating_sub(before.user_ns)),
            "system_us": per(after.system_ns.saturating_sub(before.system_ns)),
            "resident_bytes": after.resident_bytes,
            "resident_growth_bytes": after.resident_bytes as i64 - before.resident_bytes as i64,
            "threads": after.threads,
        });
    }
    let kinds = measured.kinds.iter().map(|(label, replies, latency)| {
        json!({ "command": label, "replies": replies, "latency_ms": latency_json(latency) })
    });
    if !measured.kinds.is_empty() {
        value["commands"] = kinds.collect();
    }
    value
}

/// Where and how it was measured.
pub(super) fn json_head(plan: &Plan) -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "machine": Machine::this(),
        "connections": plan.connections,
        "channels": plan.channels,
        "pipeline": plan.pipeline,
        "threads": plan.threads,
        "keys": plan.keyspace,
        "rate": plan.rate,
    })
}

/// Writes a percentile distribution in the text form of HDR histograms, milliseconds.
pub(super) fn write_hdr(folder: &Path, index: usize, measured: &Measured) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let name: String =
        measured.label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let path = folder.join(format!("{index:02}-{}-{name:.40}.hdr", measured.protocol));
    std::fs::write(&path, percentiles(&measured.latency)).with_context(|| path.display().to_string())
}

fn percentiles(latency: &Histogram<u64>) -> String {
    let mut text =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut total = 0;
    for value in latency.iter_quantiles(5) {
        total += value.count_since_last_iteration();
        let quantile = value.quantile_iterated_to();
        let inverse = if quantile < 1.0 { format!("{:14.2}", 1.0 / (1.0 - quantile)) } else { "inf".into() };
        let ms = value.value_iterated_to().min(latency.max()) as f64 / 1e6;
        let _ = writeln!(text, "{ms:12.3} {quantile:14.12} {total:10} {inverse:>14}");
    }
    let _ = writeln!(
        text,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n#[Max     = {:12.3}, Total count    = {:12}]\n\
         #[Buckets = {:12}, SubBuckets     = {:12}]",
        mean_ms(latency),
        latency.stdev() / 1e6,
        ms(latency, 1.0),
        latency.len(),
        latency.buckets(),
        2048
    );
    text
}

/// A page with the table and the plot, for a browser without a network.
pub(super) fn html(all: &[Measured], plan: &Plan, precision: usize) -> String {
    let trouble: String = all
        .iter()
        .filter_map(|measured| Some(format!("{}: {}", measured.label, trouble(measured)?)))
        .map(|text| format!("<p>{}</p>\n", escape(&text)))
        .collect();
    let machine = Machine::this();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>weft bench</title><style>{STYLE}</style>\
         </head>\n<body>\n<h1>weft bench {}</h1>\n<p>{}</p>\n{}{trouble}{}</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        escape(&format!(
            "{}, {} cores, {}, {}",
            machine.cpu, machine.cores, machine.architecture, machine.kernel
        )),
        table(all, plan, precision).html(),
        svg(all),
    )
}

/// The latencies of all cases by percentile.
pub(super) fn svg(all: &[Measured]) -> String {
    let lines = all.iter().map(|measured| {
        let points = measured
            .latency
            .iter_quantiles(4)
            .map(|value| (value.quantile_iterated_to(), value.value_iterated_to() as f64 / 1e6))
            .collect();
        Line { label: format!("{} {}", measured.label, measured.protocol), points }
    });
    plot::percentiles("Latency by percentile", "ms", &lines.collect::<Vec<_>>())
}
