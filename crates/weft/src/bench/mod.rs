//! `weft bench`: a load generator that checks what it counts.
//!
//! Owns the way from the command line to the results. Reading order: [`flags`] (what can be asked for), [`cases`] (what
//! is sent), [`workloads`] (mixes of real use, from files), [`template`] and [`generator`] (how it is made), [`verify`]
//! (whether it is answered as it must be), [`run`] (one case against one server), [`report`]
//! (what is shown), [`versus`] (several servers in one run), [`presets`], [`peers`] (a command of its own).
//! The event loop is [`weft_client::fleet`].

mod cases;
mod cluster;
mod flags;
mod generator;
mod keys;
mod live;
pub(crate) mod peers;
mod presets;
mod process;
mod report;
mod run;
mod sizes;
mod subscribers;
mod template;
mod verify;
mod versus;
mod workloads;

use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use signal_hook::consts::{SIGINT, SIGTERM};
use weft_client::fleet::raise_open_files;
use weft_client::fleet::relay::Relay;
use weft_client::{Address, Config, Protocol, Timeouts};

use self::cases::Case;
pub(crate) use self::flags::{LACKING, Options};
use self::keys::Distribution;
use self::run::{Fleets, Measured, Plan, Server};
use self::sizes::Sizes;
use self::workloads::Workload;
use crate::endpoint;

/// Requests of a test where nothing else is said, as in redis-benchmark.
const REQUESTS: u64 = 100_000;
/// Connections where nothing else is said, likewise.
const CLIENTS: u32 = 50;

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends the process at once.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut plan = plan(options)?;
    let workload = options.workload.as_deref().map(Workload::read).transpose()?;
    if let Some(workload) = &workload {
        ensure!(
            protocol(options)? != Protocol::Http,
            "--workload: what a reply is, is not looked at over HTTP; take -2, -3 or -4"
        );
        plan = workload.plan(&plan, options.clients)?;
    }
    // Beside connections there are files, and for a cluster a connection to each master that asks.
    let wanted = u64::from(plan.connections) + 64 + if options.cluster { 256 } else { 0 };
    let allowed = raise_open_files();
    ensure!(
        allowed >= wanted,
        "{} connections: this process may have {allowed} files open",
        plan.connections
    );
    let server = server(options)?;
    plan.threads = server.threads(&plan);
    measure(options, (&server, workload.as_ref()), &plan, &stop)
        .map_err(|error| endpoint::explained(&server.config, error))
}

fn measure(
    options: &Options,
    (server, workload): (&Server, Option<&Workload>),
    plan: &Plan,
    stop: &AtomicBool,
) -> Result<ExitCode> {
    if options.idle {
        return idle(server, plan, stop);
    }
    if let Some(preset) = options.preset {
        return presets::run(options, preset, plan, stop);
    }
    let cases = match workload {
        Some(workload) => {
            workload.remind(server);
            workload.cases()
        }
        None => cases(options)?,
    };
    if !options.versus.is_empty() {
        return versus::run(options, server, plan, &cases, stop);
    }
    let mut clean = true;
    loop {
        clean &= pass(options, server, plan, &cases, stop)?;
        if !options.forever || stop.load(Ordering::Relaxed) {
            return Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
}

/// All cases once; whether nothing was wrong.
fn pass(options: &Options, server: &Server, plan: &Plan, cases: &[Case], stop: &AtomicBool) -> Result<bool> {
    if options.preload {
        let preload = cases::preload(options.keyspace);
        let preload = if options.cluster { preload.with_tags() } else { preload };
        run::prepare(server, plan, &[preload], stop)?;
    }
    let precision = usize::from(options.precision);
    if options.csv {
        println!("{}", report::CSV_HEAD);
    }
    let mut all: Vec<Measured> = Vec::new();
    for case in cases {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let measured = match run::run(server, plan, case, stop) {
            Ok(measured) => measured,
            // What has been measured is not lost because a later test cannot be run.
            Err(error) if !all.is_empty() => {
                show(options, plan, &all)?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        if options.csv {
            println!("{}", report::csv(&measured, precision));
        } else if options.quiet && !options.json {
            println!("{}", report::line(&measured, precision));
        }
        if let Some(folder) = &options.hdr {
            report::write_hdr(folder, all.len(), &measured)?;
        }
        all.push(measured);
    }
    show(options, plan, &all)?;
    Ok(all.iter().all(Measured::is_clean))
}

/// What is shown when all is done.
fn show(options: &Options, plan: &Plan, all: &[Measured]) -> Result<()> {
    give_json(options, || {
        let mut value = report::json_head(plan);
        value["tests"] = all.iter().map(report::json).collect();
        value
    })?;
    if !options.json && !options.csv && !options.quiet {
        println!("{}", report::table(all, plan, usize::from(options.precision)).text());
    }
    if let Some(path) = &options.svg {
        std::fs::write(path, report::svg(all)).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &options.html {
        let page = report::html(all, plan, usize::from(options.precision));
        std::fs::write(path, page).with_context(|| path.display().to_string())?;
    }
    for measured in all {
        if let Some(trouble) = report::trouble(measured).filter(|_| !options.quiet) {
            eprintln!("{}: {trouble}", measured.label);
        }
        if let Some(remark) = report::unverified(measured) {
            eprintln!("{}: {remark}", measured.label);
        }
    }
    Ok(())
}

/// The results as JSON, printed and written where that was asked for.
fn give_json(options: &Options, value: impl FnOnce() -> serde_json::Value) -> Result<()> {
    if !options.json && options.save.is_none() {
        return Ok(());
    }
    let value = value();
    if let Some(path) = &options.save {
        std::fs::write(path, format!("{value}\n")).with_context(|| path.display().to_string())?;
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&value)?);
    }
    Ok(())
}

/// Opens the connections and waits.
fn idle(server: &Server, plan: &Plan, stop: &AtomicBool) -> Result<ExitCode> {
    let fleets = Fleets::connect(server, plan)?;
    let before = server.pid.and_then(process::Usage::of);
    println!(
        "{} connections are open; Ctrl-C ends{}",
        plan.connections,
        before.map_or(String::new(), |usage| format!(
            "; the server has {} kB resident",
            usage.resident_bytes / 1024
        ))
    );
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(fleets);
    Ok(ExitCode::SUCCESS)
}

fn cases(options: &Options) -> Result<Vec<Case>> {
    let mut command = options.command.clone();
    if options.stdin {
        let mut last = Vec::new();
        std::io::stdin().lock().read_to_end(&mut last).context("standard input")?;
        command.push(String::from_utf8(last).context("-x: standard input is no UTF-8")?);
    }
    if !command.is_empty() {
        return Ok(vec![cases::single(&command)]);
    }
    let own = |case: Case| if options.cluster { case.with_tags() } else { case };
    if let Some(text) = &options.mix {
        return Ok(vec![own(cases::mix(text)?)]);
    }
    if let Some(path) = &options.mix_file {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
        return Ok(vec![cases::mix_file(&name, &text)?]);
    }
    let cases = options.tests.as_deref().map_or_else(|| Ok(cases::default_cases()), cases::named)?;
    let cases = cases.into_iter().map(own).collect();
    cases::possible(cases, protocol(options)?)
}

fn plan(options: &Options) -> Result<Plan> {
    let seconds = |value: Option<f64>| value.map(Duration::from_secs_f64);
    let protocol = protocol(options)?;
    let is_http = protocol == Protocol::Http;
    ensure!(options.mux == 1 || !is_http, "--mux: HTTP has no clients on a connection; take -2, -3 or -4");
    let has_http = is_http || options.versus.iter().any(|text| text.split(',').any(|part| part == "http"));
    ensure!(!options.pipeline_body || has_http, "--pipeline-body: only HTTP has bodies; add --http");
    ensure!(!options.cluster || !is_http, "--cluster: nodes of a cluster do not speak HTTP; take -2 or -3");
    ensure!(options.keep_alive == 1 || options.mux == 1, "-k 0 and --mux exclude each other");
    ensure!(
        !options.enable_tracking || matches!(protocol, Protocol::Resp3 | Protocol::Respb),
        "--enable-tracking: what is to be forgotten comes as pushes, which RESP2 does not have; add -3 or -4"
    );
    ensure!(
        !options.enable_tracking || options.keep_alive == 1,
        "-k 0 and --enable-tracking exclude each other"
    );
    ensure!(!options.preload || options.keyspace > 0, "--preload stores the keys of -r, which is not given");
    Ok(Plan {
        connections: options.clients.unwrap_or(CLIENTS),
        channels: options.mux,
        pipeline: options.pipeline,
        in_one_body: options.pipeline_body,
        threads: options.threads,
        requests: options.requests.unwrap_or(REQUESTS),
        duration: seconds(options.duration),
        warmup: seconds(options.warmup),
        rate: options.rps.map(|rate| rate as f64),
        keyspace: options.keyspace,
        distribution: Distribution::parse(&options.distribution)?,
        sizes: Sizes::parse(&options.data)?,
        ttls: Plan::default().ttls,
        seed: options.seed,
        verify: options.verify,
        reconnect: options.keep_alive == 0,
        tracking: options.enable_tracking,
        live: !options.quiet && !options.csv && !options.json && std::io::stderr().is_terminal(),
        rest: None,
    })
}

/// The server of `-h` and `-p`, behind a relay if there is to be a delay.
fn server(options: &Options) -> Result<Server> {
    aim(options, address(options)?, protocol(options)?, options.server_pid)
}

/// That of the flags, or of the URL.
fn protocol(options: &Options) -> Result<Protocol> {
    Ok(match (options.wire.protocol(), &options.url) {
        (Some(protocol), _) => protocol,
        (None, Some(url)) if endpoint::names_protocol(url) => Config::from_url(url)?.protocol,
        (None, _) => Protocol::Resp2,
    })
}

/// Where `-u`, `-s`, or `-h` and `-p` lead.
fn address(options: &Options) -> Result<Address> {
    Ok(match (&options.url, &options.socket) {
        (Some(url), _) => Config::from_url(url)?.address,
        (None, Some(path)) => Address::Unix(path.clone()),
        (None, None) => Address::Tcp(options.host.clone(), options.port),
    })
}

/// A server as it is spoken to.
fn aim(options: &Options, address: Address, protocol: Protocol, pid: Option<u32>) -> Result<Server> {
    let pid = pid.or_else(|| local_process(&address));
    let address = match (&address, options.delay) {
        (Address::Tcp(..), Some(delay)) if delay > 0.0 => {
            let relay = Relay::start(&address.to_string(), Duration::from_secs_f64(delay / 2e3))?;
            Address::Tcp(relay.address().ip().to_string(), relay.address().port())
        }
        _ => address,
    };
    let patience = Duration::from_secs_f64(options.timeout);
    // As with -a and --user, it is that of every server of a comparison.
    let login = match &options.url {
        Some(url) => Config::from_url(url)?,
        None => Config {
            username: options.user.clone(),
            password: options.password.clone(),
            db: options.db,
            ..Config::default()
        },
    };
    let config = Config {
        address,
        protocol,
        tls: options.tls.config(login.tls.is_some()),
        username: login.username,
        password: login.password.or_else(endpoint::password_from_environment),
        db: login.db,
        timeouts: Timeouts::all(Some(patience)),
        ..Config::default()
    };
    let mut server = Server::alone(config, pid);
    if options.cluster {
        server.shards = cluster::shards(&server.config, local_process)?;
    }
    Ok(server)
}

/// The process that listens there, if that is on this machine.
fn local_process(address: &Address) -> Option<u32> {
    let Address::Tcp(host, port) = address else { return None };
    let is_local = matches!(host.as_str(), "localhost" | "::1" | "0.0.0.0") || host.starts_with("127.");
    if is_local { process::listening_on(*port) } else { None }
}
