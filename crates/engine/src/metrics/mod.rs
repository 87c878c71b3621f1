//! Owns: `/metrics`: what INFO and the logs tell, under the names that redis_exporter gives it, and Weft's own figures,
//! as text of Prometheus or of OpenMetrics. Does not own: the figures, HTTP, who may ask (whoever may call INFO).
//!
//! What INFO has is read from INFO, so that it says the same here; `fields` has the names. What is Weft's own begins
//! with `weft_` and stands in `own`.

mod fields;
mod own;
mod text;

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

use weft_protocol::table::{COMMANDS, CommandId};

pub use crate::asked::Form;
use crate::command_log::LogKind;
use crate::engine::Engine;
use crate::error::full_name;
use crate::info;
use fields::{FIELDS, Unit};
use text::Kind::{Counter, Gauge, Histogram, Info, Summary};
use text::Page;
pub use text::{OPENMETRICS, PROMETHEUS};

/// What INFO tells, by the names of its fields.
struct Fields<'i>(HashMap<&'i str, &'i str>);

impl<'i> Fields<'i> {
    fn of(info: &'i str) -> Self {
        Self(info.split("\r\n").filter_map(|line| line.split_once(':')).collect())
    }
    fn text(&self, name: &str) -> &'i str {
        self.0.get(name).copied().unwrap_or_default()
    }
    /// A figure; words that say whether something went well are 1 and 0.
    fn number(&self, name: &str) -> Option<f64> {
        match *self.0.get(name)? {
            "ok" => Some(1.0),
            "err" | "fail" => Some(0.0),
            text => text.parse().ok(),
        }
    }
}

/// The whole page.
#[must_use]
pub fn metrics(engine: &Engine, form: Form, now_ms: u64) -> String {
    let info = info::info(engine, [&b"default"[..], b"commandstats"].into_iter(), now_ms);
    let fields = Fields::of(&info);
    let mut page = Page::new(form);
    page.family("redis_up", Gauge, "Whether the server answers").value(1);
    instance(&fields, &mut page);
    for &(field, name, kind, unit) in FIELDS {
        if let Some(number) = fields.number(field) {
            let number = match unit {
                Unit::AsItIs => number,
                Unit::Microseconds => number / 1e6,
            };
            page.family(name, kind, &format!("{field} of INFO")).value(number);
        }
    }
    settings(engine, &mut page);
    databases(engine, &mut page);
    commands(engine, &mut page);
    errors(engine, &mut page);
    logs(engine, &mut page);
    own::write(engine, &mut page, now_ms);
    page.end()
}

fn instance(fields: &Fields<'_>, page: &mut Page) {
    let labels = [
        "role",
        "redis_version",
        "redis_build_id",
        "redis_mode",
        "os",
        "maxmemory_policy",
        "tcp_port",
        "run_id",
        "process_id",
    ]
    .map(|name| (name, fields.text(name)));
    page.family("redis_instance_info", Info, "What this server is").labelled(&labels, 1);
    let started_s = fields
        .number("server_time_usec")
        .zip(fields.number("uptime_in_seconds"))
        .map(|(now_us, up_s)| (now_us / 1e6).floor() - up_s);
    if let Some(started_s) = started_s {
        page.family("redis_start_time_seconds", Gauge, "When it started, in seconds since 1970")
            .value(started_s);
    }
}

fn settings(engine: &Engine, page: &mut Page) {
    let values = engine.config.values();
    for (setting, name) in [
        ("maxclients", "redis_config_maxclients"),
        ("maxmemory", "redis_config_maxmemory"),
        ("io-threads", "redis_config_io_threads"),
    ] {
        page.family(name, Gauge, &format!("{setting} of CONFIG")).value(values.get(setting).number);
    }
}

fn databases(engine: &Engine, page: &mut Page) {
    let names: Vec<String> = (0..engine.keyspace.database_count()).map(|db| format!("db{db}")).collect();
    let mut each = |name: &str, help: &str, figure: &dyn Fn(u8) -> Option<usize>| {
        let mut family = page.family(name, Gauge, help);
        for (db, label) in (0..).zip(&names) {
            if let Some(figure) = figure(db) {
                family.labelled(&[("db", label)], figure);
            }
        }
    };
    let keyspace = &engine.keyspace;
    each("redis_db_keys", "Keys of a database", &|db| Some(keyspace.len(db)));
    each("redis_db_keys_expiring", "Keys of a database that have a time", &|db| Some(keyspace.expiring(db)));
    // INFO has it as 0 too: it is not counted.
    each("redis_db_avg_ttl_seconds", "avg_ttl of INFO", &|db| (keyspace.len(db) > 0).then_some(0));
}

/// A command that was asked for.
struct Command {
    id: CommandId,
    name: String,
    calls: u64,
    time_ns: u64,
    rejected: u64,
    failed: u64,
}

fn commands(engine: &Engine, page: &mut Page) {
    let asked: Vec<Command> = (0..COMMANDS.len())
        .map(|at| CommandId(at as u16))
        .filter_map(|id| {
            let [calls, time_ns, rejected, failed] = engine.stats.command(id);
            let name = || full_name(id.spec());
            (calls + rejected > 0).then(|| Command { id, name: name(), calls, time_ns, rejected, failed })
        })
        .collect();
    let mut each = |name: &str, help: &str, figure: &dyn Fn(&Command) -> f64| {
        let mut family = page.family(name, Counter, help);
        asked.iter().for_each(|command| family.labelled(&[("cmd", &command.name)], figure(command)));
    };
    each("redis_commands_total", "Calls of a command", &|command| command.calls as f64);
    each("redis_commands_duration_seconds_total", "Time that a command took", &|command| {
        command.time_ns as f64 / 1e9
    });
    each("redis_commands_rejected_calls_total", "Calls that were refused before they ran", &|command| {
        command.rejected as f64
    });
    each("redis_commands_failed_calls_total", "Calls that answered an error", &|command| {
        command.failed as f64
    });
    let percents = info::percentiles(engine);
    let times: Vec<_> =
        asked.iter().filter_map(|command| Some((command, engine.stats.histogram(command.id)?))).collect();
    let mut family = page.family(
        "redis_latency_percentiles_usec",
        Summary,
        "Microseconds that so many of a hundred calls do not exceed",
    );
    for (command, counts) in &times {
        for &percent in &percents {
            let us = counts.percentile(percent) as f64 / 1000.0;
            family.labelled(&[("cmd", &command.name), ("quantile", &percent.to_string())], us);
        }
    }
    family.sums(times.iter().map(|(command, _)| (&*command.name, command.time_ns / 1000, command.calls)));
    let mut family = page.family("redis_commands_latencies_usec", Histogram, "Microseconds that calls took");
    for (command, counts) in &times {
        let sums = (command.time_ns / 1000, counts.len());
        family.histogram(("cmd", &command.name), &counts.powers_of_two(1000), sums);
    }
}

fn errors(engine: &Engine, page: &mut Page) {
    let mut family = page.family("redis_errors_total", Counter, "Error replies by their first word");
    for (prefix, count) in engine.stats.errors_by_prefix() {
        family.labelled(&[("err", &prefix)], count);
    }
}

fn logs(engine: &Engine, page: &mut Page) {
    let slow = engine.command_logs.get(LogKind::Slow, 1);
    let last = slow.first();
    page.family("redis_slowlog_length", Gauge, "Commands in the slow log")
        .value(engine.command_logs.len(LogKind::Slow));
    page.family("redis_slowlog_last_id", Gauge, "The number of the last one")
        .value(last.map_or(0, |entry| entry.id));
    page.family("redis_last_slow_execution_duration_seconds", Gauge, "How long the last one took")
        .value(last.map_or(0.0, |entry| entry.value as f64 / 1e6));
    let spikes = engine.latency.all();
    let mut each = |name: &str, help: &str, figure: &dyn Fn(&crate::latency::Sample) -> f64| {
        let mut family = page.family(name, Gauge, help);
        for (event, series) in &spikes {
            if let Some(sample) = series.samples.last() {
                family.labelled(&[("event_name", event)], figure(sample));
            }
        }
    };
    each("redis_latency_spike_last", "When an event of the latency monitor was last seen", &|sample| {
        sample.time_s as f64
    });
    each("redis_latency_spike_duration_seconds", "How long it took then", &|sample| {
        sample.latency_ms as f64 / 1000.0
    });
    let clients = engine.settings.clients_max.load(Relaxed);
    page.family("redis_max_clients", Gauge, "maxclients of INFO").value(clients);
}
