//! Several servers in one run: rounds that go from one to the next, medians, and how sure their ratio is. Owns the
//! comparison.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use weft_client::{Address, Protocol};

use super::cases::{self, Case};
use super::report;
use super::run::{self, Measured, Plan, Server};
use super::{Options, aim, give_json};
use crate::text::grouped;
use weft_measure::Spread;
use weft_measure::verdict::{Ratio, paired};
use weft_measure::{Table, number};

/// A target and what its rounds gave for the case at hand.
pub(super) struct Contestant {
    pub(super) name: String,
    pub(super) server: Server,
    pub(super) plan: Plan,
    pub(super) rounds: Vec<Measured>,
}

/// What one case gave of one target, each figure with all its rounds.
pub(super) struct Figures {
    pub(super) rate: Spread,
    pub(super) p50_ms: Spread,
    pub(super) p99_ms: Spread,
    pub(super) server_cpu_us: Spread,
    pub(super) client_cpu_us: Spread,
}

pub(super) fn run(
    options: &Options,
    server: &Server,
    plan: &Plan,
    cases: &[Case],
    stop: &AtomicBool,
) -> Result<ExitCode> {
    let plan = Plan { live: false, ..plan.clone() };
    let first = Contestant {
        name: name(&server.config.address.to_string(), server.config.protocol, plan.channels),
        server: server.clone(),
        plan: plan.clone(),
        rounds: Vec::new(),
    };
    let mut contestants = vec![first];
    for text in &options.versus {
        contestants.push(parse(options, &plan, text)?);
    }
    if options.preload {
        for contestant in &contestants {
            run::prepare(&contestant.server, &plan, &[cases::preload(options.keyspace)], stop)
                .with_context(|| contestant.name.clone())?;
        }
    }
    let (mut values, mut clean) = (Vec::new(), true);
    for case in cases {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        rounds(&mut contestants, case, options.rounds, stop)?;
        let done: Vec<&Contestant> = contestants.iter().filter(|one| !one.rounds.is_empty()).collect();
        for measured in done.iter().flat_map(|one| &one.rounds) {
            clean &= measured.is_clean();
            if let Some(trouble) = report::trouble(measured) {
                eprintln!("{}: {trouble}", case.label);
            }
        }
        values.push(json_of(case, &done));
        if !options.json {
            println!("{}", table(case, &done).text());
        }
    }
    give_json(options, || {
        let mut value = report::json_head(&plan);
        value["tests"] = values.into();
        value
    })?;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One round of each after the other, so that whatever disturbs the machine disturbs all alike.
pub(super) fn rounds(
    contestants: &mut [Contestant],
    case: &Case,
    count: u32,
    stop: &AtomicBool,
) -> Result<()> {
    contestants.iter_mut().for_each(|contestant| contestant.rounds.clear());
    for round in 0..count {
        for contestant in contestants.iter_mut() {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let plan = Plan { seed: contestant.plan.seed + u64::from(round), ..contestant.plan.clone() };
            let measured = run::run(&contestant.server, &plan, case, stop)
                .with_context(|| format!("{}: {}", contestant.name, case.label))?;
            contestant.rounds.push(measured);
        }
    }
    Ok(())
}

fn name(address: &str, protocol: Protocol, channels: u32) -> String {
    match channels {
        1 => format!("{address} {protocol}"),
        channels => format!("{address} {protocol} x{channels}"),
    }
}

/// `HOST:PORT[,resp2|resp3|respb|http][,mux=N]`. With other channels it has as many logical clients as the first one.
fn parse(options: &Options, plan: &Plan, text: &str) -> Result<Contestant> {
    let mut parts = text.split(',');
    let address = parts.next().unwrap_or_default();
    let Some((host, port)) = address.rsplit_once(':') else { bail!("--vs {text}: no HOST:PORT") };
    let port = port.parse().with_context(|| format!("--vs {text}: {port:?} is no port"))?;
    let address = Address::Tcp(host.trim_matches(['[', ']']).to_string(), port);
    let (mut protocol, mut channels) = (Protocol::Resp2, 1);
    for part in parts {
        match part {
            "resp2" => protocol = Protocol::Resp2,
            "resp3" => protocol = Protocol::Resp3,
            "respb" => protocol = Protocol::Respb,
            "http" => protocol = Protocol::Http,
            _ => match part.strip_prefix("mux=").map(str::parse::<u32>) {
                Some(Ok(count)) => channels = count,
                _ => bail!("--vs {text}: {part:?} is none of resp2, resp3, respb, http, mux=N"),
            },
        }
    }
    ensure!(channels == 1 || protocol != Protocol::Http, "--vs {text}: HTTP has no clients on a connection");
    let clients = plan.connections * plan.channels;
    ensure!(
        channels > 0 && clients.is_multiple_of(channels),
        "--vs {text}: {clients} clients are not divided by mux={channels}"
    );
    Ok(Contestant {
        name: name(&address.to_string(), protocol, channels),
        server: aim(options, address, protocol, None)?,
        plan: Plan { connections: clients / channels, channels, ..plan.clone() },
        rounds: Vec::new(),
    })
}

impl Contestant {
    pub(super) fn figures(&self) -> Figures {
        let spread = |value: &dyn Fn(&Measured) -> Option<f64>| {
            Spread::of(self.rounds.iter().filter_map(value).collect())
        };
        Figures {
            rate: spread(&|measured| Some(measured.rate())),
            p50_ms: spread(&|measured| Some(report::ms(&measured.latency, 0.5))),
            p99_ms: spread(&|measured| Some(report::ms(&measured.latency, 0.99))),
            server_cpu_us: spread(&|measured| measured.server_cpu_us()),
            client_cpu_us: spread(&|measured| Some(measured.client_cpu_us())),
        }
    }
}

/// `0.48 (0.46–0.51)`
pub(super) fn ratio_text(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(|| "–".to_string(), |ratio| ratio.to_string())
}

fn table(case: &Case, contestants: &[&Contestant]) -> Table {
    let rounds = contestants.first().map_or(0, |one| one.rounds.len());
    let mut table = Table::new(
        format!("{}: medians of {rounds} rounds; ratios are to the first, with 95 % confidence", case.label),
        &["target", "a second", "ratio", "p50 ms", "p99 ms", "server CPU µs", "ratio", "own CPU µs"],
    );
    let first = contestants.first().map(|one| one.figures());
    for (index, contestant) in contestants.iter().enumerate() {
        let figures = contestant.figures();
        let to_first = |pick: fn(&Figures) -> &Spread| {
            let base = first.as_ref().filter(|_| index > 0)?;
            paired(&pick(&figures).rounds, &pick(base).rounds)
        };
        let some = |spread: &Spread| Some(spread.median).filter(|_| !spread.rounds.is_empty());
        table.row(vec![
            contestant.name.clone(),
            grouped(figures.rate.median.round() as u64),
            ratio_text(to_first(|figures| &figures.rate)),
            number(some(&figures.p50_ms), 3),
            number(some(&figures.p99_ms), 3),
            number(some(&figures.server_cpu_us), 3),
            ratio_text(to_first(|figures| &figures.server_cpu_us)),
            number(some(&figures.client_cpu_us), 3),
        ]);
    }
    table
}

pub(super) fn json_of(case: &Case, contestants: &[&Contestant]) -> Value {
    let first = contestants.first().map(|one| one.figures());
    let of = |ratio: Option<Ratio>| {
        ratio.map(|ratio| json!({ "value": ratio.value, "low": ratio.low, "high": ratio.high }))
    };
    let targets: Vec<Value> = contestants
        .iter()
        .enumerate()
        .map(|(index, contestant)| {
            let figures = contestant.figures();
            let base = first.as_ref().filter(|_| index > 0);
            json!({
                "target": contestant.name,
                "protocol": contestant.server.config.protocol.to_string(),
                "connections": contestant.plan.connections,
                "channels": contestant.plan.channels,
                "rps": figures.rate,
                "p50_ms": figures.p50_ms,
                "p99_ms": figures.p99_ms,
                "server_cpu_us": figures.server_cpu_us,
                "client_cpu_us": figures.client_cpu_us,
                "rps_ratio": base.and_then(|base| of(paired(&figures.rate.rounds, &base.rate.rounds))),
                "server_cpu_ratio":
                    base.and_then(|base| of(paired(&figures.server_cpu_us.rounds, &base.server_cpu_us.rounds))),
                "rounds": contestant.rounds.iter().map(report::json).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "test": case.label, "targets": targets })
}
