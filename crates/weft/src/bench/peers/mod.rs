//! `weft peers`: Weft beside the servers that people use now, in one run. What `make bench-server` calls.
//!
//! Owns the order of things and the stored results. Reading order: [`rows`] (what is measured), [`contestants`] (the
//! servers), [`measure`] (a row), [`memory`], [`rates`], [`trial`] (what is asked of a server as a whole) with
//! [`compaction`] and [`expiry`], [`page`] (what is shown); and [`workloads`], a
//! comparison of its own, with goals of its own, over the files of bench/workloads.

mod compaction;
mod contestants;
mod expiry;
mod measure;
mod memory;
mod page;
mod probe;
mod rates;
mod rows;
mod trial;
mod workloads;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGTERM};
use weft_client::fleet::raise_open_files;
use weft_client::fleet::stub::{Stub, Trouble};

use self::contestants::Field;
use self::measure::{Manner, Outcome};
use self::memory::Weight;
use self::rates::Rate;
use self::trial::Trial;
use self::workloads::Condition;
use weft_measure::{Machine, Origin, write_page};

/// Keys and collections that are weighed.
const WEIGHED: u64 = 1_000_000;
/// Keys, over those that are weighed, of which some expire.
const EXPIRING_TIMES: u64 = 10;
/// What `--parts` takes without more, in the order in which it is measured; `before` too, where a build is named.
const PARTS: &str = "table,types,rates,memory,collections,compaction,expiry,overwriting";

/// Compare Weft with Valkey and Redis: CPU for each command, memory, latency; see docs/benchmarks
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What scripts/peers printed: NAME=PATH lines; before=PATH names another build of Weft for the part `before`
    #[arg(long, value_name = "FILE")]
    peers: Option<PathBuf>,
    /// Rounds of each row
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds of each run
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Two rounds, a tenth of the keys that are weighed, no row of ten million keys
    #[arg(long)]
    quick: bool,
    /// Parts, with commas; `before` is this build beside another one
    #[arg(long, value_name = "PARTS", default_value = PARTS)]
    parts: String,
    /// How long values are overwritten with others of random sizes; a tenth with --quick
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    overwrite_seconds: u64,
    /// Only rows whose name contains one of these, with commas: get-100, mux, zrange …
    #[arg(long, value_name = "NAMES")]
    rows: Option<String>,
    /// Only these servers, with commas: weft, valkey, valkey-debian, redis, stub
    #[arg(long, value_name = "NAMES")]
    servers: Option<String>,
    /// The first of the ports that servers are started on
    #[arg(long, value_name = "PORT", default_value_t = 27_900)]
    port: u16,
    /// The core of the servers; the client takes another. Without it nothing is pinned
    #[arg(long, value_name = "CORE")]
    server_core: Option<usize>,
    /// The core of the client
    #[arg(long, value_name = "CORE", requires = "server_core")]
    client_core: Option<usize>,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Take stored results instead of measuring; each file is a section of the page
    #[arg(long, value_name = "FILE", num_args = 1..)]
    report: Vec<PathBuf>,
    /// Write the page in Markdown, and beside it, with other ends of the name, its plot and its claims
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Measure these workloads instead: files as of bench/workloads; the results of each go into --data
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "data", conflicts_with_all = ["report", "parts"])]
    workloads: Vec<PathBuf>,
    /// Measure them with both servers under this, in a closed loop alone; the files of results begin with its name
    #[arg(long, value_name = "CONDITION", requires = "workloads", conflicts_with = "page")]
    under: Option<Condition>,
    /// Where the results of workloads are, a file each; without --workloads they are taken from there
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// What is asked of Weft over the workloads
    #[arg(long, value_name = "FILE", default_value = "bench/goals.toml")]
    goals: PathBuf,
    /// Memory in huge pages where a server can and the system lets it; without it in no server
    #[arg(long)]
    huge_pages: bool,
    /// Serve fixed replies on a port: the floor
    #[arg(long, value_name = "PORT", hide = true)]
    stub: Option<u16>,
    /// Bytes of the stub's values
    #[arg(long, value_name = "BYTES", default_value_t = 16, hide = true)]
    stub_value: usize,
}

/// A run, as it is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Results {
    version: String,
    machine: Machine,
    /// When and of which commit; not in results from before this was noted.
    #[serde(default)]
    origin: Origin,
    rounds: u32,
    seconds: u32,
    servers: Vec<(String, String)>,
    absent: Vec<String>,
    table: Vec<Outcome>,
    types: Vec<Outcome>,
    rates: Vec<Rate>,
    memory: Vec<Weight>,
    collections: Vec<Weight>,
    #[serde(default)]
    trials: Vec<Trial>,
    #[serde(default)]
    before: Vec<Outcome>,
    remarks: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    raise_open_files();
    if let Some(port) = options.stub {
        let stub = Stub::bind(&format!("127.0.0.1:{port}"), options.stub_value, Trouble::None)?;
        stub.serve(&stop)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut runs = options.report.iter().map(|path| stored(path)).collect::<Result<Vec<_>>>()?;
    if runs.is_empty() && (options.data.is_none() || !options.workloads.is_empty()) {
        let name = options.json.as_ref().and_then(|path| path.file_name()).unwrap_or_default();
        runs.extend(measure(options, &stop)?.map(|results| (name.to_string_lossy().into_owned(), results)));
    }
    if options.under.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(folder) = &options.data {
        return workloads::show(folder, &options.goals, options.page.as_deref());
    }
    for (_, results) in &runs {
        page::tables(results).iter().for_each(|table| println!("{}", table.text()));
        page::remarks(results).iter().for_each(|line| println!("{line}"));
    }
    if let Some(path) = &options.page {
        write_page(path, &page::markdown(&runs), &page::plot(&runs), &page::claims(&runs))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The results of a file, and its name.
fn stored(path: &Path) -> Result<(String, Results)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let results = serde_json::from_str(&text)
        .with_context(|| format!("{}: not results of weft peers", path.display()))?;
    Ok((name, results))
}

fn field(options: &Options) -> Result<Field> {
    let peers = match &options.peers {
        Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
        None => String::new(),
    };
    let mut field = Field::gather(&peers)?;
    if let Some(names) = &options.servers {
        let names: Vec<&str> = names.split(',').collect();
        field.contestants.retain(|contestant| names.contains(&contestant.id));
    }
    field.absent.iter().for_each(|line| eprintln!("not there: {line}"));
    Ok(field)
}

fn measure(options: &Options, stop: &AtomicBool) -> Result<Option<Results>> {
    // Before it is pinned: a process on one core sees one.
    let origin = Origin::now();
    let machine = origin.machine.clone();
    if let Some(core) = options.client_core {
        let mut cores = CpuSet::new();
        cores.set(core).context("--client-core")?;
        sched_setaffinity(Pid::from_raw(0), &cores).context("--client-core")?;
    }
    let field = field(options)?;
    let quick = options.quick;
    let manner = Manner {
        rounds: if quick { options.rounds.min(2) } else { options.rounds },
        seconds: options.seconds,
        scale: if quick { 0.25 } else { 1.0 },
        port: options.port,
        server_core: options.server_core,
        huge_pages: options.huge_pages || options.under == Some(Condition::HugePages),
    };
    if !options.workloads.is_empty() {
        workloads::measure(options, &field, &manner, origin, stop)?;
        return Ok(None);
    }
    let mut results = Results {
        version: env!("CARGO_PKG_VERSION").to_string(),
        machine,
        origin,
        rounds: manner.rounds,
        seconds: manner.seconds,
        servers: field.contestants.iter().map(|one| (one.id.to_string(), one.version.clone())).collect(),
        absent: field.absent.clone(),
        ..Results::default()
    };
    let wanted: Option<Vec<&str>> = options.rows.as_deref().map(|names| names.split(',').collect());
    let chosen = |row: &rows::Row| {
        let named = wanted.as_ref().is_none_or(|names| names.iter().any(|name| row.id.contains(name)));
        named && !(quick && row.keys > 1_000_000)
    };
    for part in options.parts.split(',') {
        measure_part(part, &mut results, (&field, &manner), (options, &chosen), stop)?;
        store(options, &results)?;
    }
    Ok(Some(results))
}

fn measure_part(
    part: &str,
    results: &mut Results,
    (field, manner): (&Field, &Manner),
    (options, chosen): (&Options, &impl Fn(&rows::Row) -> bool),
    stop: &AtomicBool,
) -> Result<()> {
    let weighed = if options.quick { WEIGHED / 10 } else { WEIGHED };
    let mut rows =
        |rows: &[rows::Row], into: &mut dyn FnMut(&mut Results) -> &mut Vec<Outcome>, field: &Field| {
            for row in rows.iter().filter(|row| chosen(row)) {
                eprintln!("{}", row.label);
                let outcome = measure::row(field, row, manner, stop).with_context(|| row.label)?;
                into(results).push(outcome);
                store(options, results)?;
            }
            Ok::<(), anyhow::Error>(())
        };
    match part {
        "table" => rows(&rows::table(), &mut |results| &mut results.table, field)?,
        "types" => rows(&rows::types(), &mut |results| &mut results.types, field)?,
        "before" => {
            let both = [rows::table(), rows::types()].concat();
            rows(&both, &mut |results| &mut results.before, &field.with_before()?)?;
        }
        "rates" => results.rates = rates::rates(field, manner, &mut results.remarks, stop)?,
        "memory" => results.memory = memory::keys(field, manner, weighed, stop)?,
        "collections" => {
            let (weights, remarks) = memory::collections(field, manner, weighed, stop)?;
            results.collections = weights;
            results.remarks.extend(remarks);
        }
        "compaction" => results.trials.extend(compaction::compaction(field, manner, weighed, stop)?),
        "expiry" => results.trials.extend(expiry::expiry(field, manner, weighed * EXPIRING_TIMES, stop)?),
        "overwriting" => {
            let time = Duration::from_secs(options.overwrite_seconds) / if options.quick { 10 } else { 1 };
            results.trials.extend(compaction::overwriting(field, manner, (weighed, time), stop)?);
        }
        _ => bail!("--parts: {part:?} is none of {}, before", PARTS.replace(',', ", ")),
    }
    Ok(())
}

/// After each row and part, so that what took minutes is not lost with what comes later.
fn store(options: &Options, results: &Results) -> Result<()> {
    let Some(path) = &options.json else { return Ok(()) };
    let text = serde_json::to_string(results)?;
    std::fs::write(path, text + "\n").with_context(|| path.display().to_string())
}
