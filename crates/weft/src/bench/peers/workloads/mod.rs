//! `weft peers --workloads`: Weft beside Valkey over the files of bench/workloads, at pipeline 1 and 16, in a closed
//! loop and at fixed rates. What `make bench-workloads` calls, and `make bench-conditions`, which has a page of its own.
//!
//! Owns the stored results; [`measure`] makes them, [`page`] shows and judges them, [`condition`] is what both servers
//! may have to work under.

mod condition;
mod goals;
mod measure;
mod page;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use weft_measure::{Origin, Spread, write_page};

pub(super) use self::condition::Condition;
use self::goals::Goals;
use super::Options;
use super::contestants::Field;
use super::measure::Manner;
use crate::bench::workloads::Workload;

/// What is measured of each workload.
const PIPELINES: [u32; 2] = [1, 16];

/// One workload, as it is stored: what a file of `data/workloads` holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Results {
    /// The name of its file, without its end.
    id: String,
    origin: Origin,
    servers: Vec<(String, String)>,
    /// What both servers worked under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    under: Option<Condition>,
    /// Whether memory could be in huge pages.
    huge_pages: bool,
    /// Whether memory was short, so that keys were evicted.
    evicts: bool,
    cells: Vec<Cell>,
    weights: Vec<Weight>,
}

/// A workload at one pipeline, or with so many subscribers.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cell {
    label: String,
    pipeline: u32,
    seconds: f64,
    turns: Vec<Turn>,
    rates: Vec<AtRate>,
}

/// A server over one wire in a closed loop; all lists are by round, and all turns have as many.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Turn {
    server: String,
    wire: String,
    /// CPU time of the server for each request.
    cpu_us: Vec<f64>,
    rps: Vec<f64>,
    /// The part of the CPU time that is the kernel's, over all rounds.
    kernel: f64,
    /// Of what was asked for, the part that was there, where a workload reads what may be gone.
    hits: Option<f64>,
    /// Replies whose values were compared, of all rounds.
    compared: u64,
}

/// Latencies at a fixed rate, from when a request was due.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AtRate {
    /// Of the slowest one's peak.
    part: f64,
    /// Requests a second.
    rate: f64,
    turns: Vec<Latency>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Latency {
    server: String,
    wire: String,
    p50_ms: Spread,
    p99_ms: Spread,
    p999_ms: Spread,
}

/// Memory when everything was stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Weight {
    server: String,
    resident_bytes: u64,
    used_bytes: Option<u64>,
    keys: u64,
}

/// Measures the workloads, each into a file of its own.
pub(super) fn measure(
    options: &Options,
    field: &Field,
    manner: &Manner,
    origin: Origin,
    stop: &AtomicBool,
) -> Result<()> {
    let folder = options.data.as_deref().context("--data")?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for path in &options.workloads {
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let workload = Workload::read(path)?;
        let results = Results {
            id: id.clone(),
            origin: origin.clone(),
            servers: field.contestants.iter().map(|one| (one.id.to_string(), one.version.clone())).collect(),
            under: options.under,
            huge_pages: manner.huge_pages,
            evicts: workload.settings.iter().any(|(name, _)| name == "maxmemory"),
            cells: Vec::new(),
            weights: Vec::new(),
        };
        let results =
            measure::workload(field, &workload, results, manner, stop).with_context(|| id.clone())?;
        let under = options.under.map_or_else(String::new, |under| under.name() + "-");
        let path = folder.join(format!("{under}{id}.json"));
        let text = serde_json::to_string(&results)? + "\n";
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Shows all that is stored in a folder, and writes the page.
pub(super) fn show(folder: &Path, goals: &Path, page: Option<&Path>) -> Result<ExitCode> {
    let goals = Goals::read(goals)?;
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    ensure!(!paths.is_empty(), "{}: no results", folder.display());
    let mut all: Vec<Results> = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let results = serde_json::from_str(&text);
        all.push(results.with_context(|| format!("{}: not results of a workload", path.display()))?);
    }
    for table in page::tables(&all, &goals) {
        println!("{}", table.text());
    }
    if let Some(path) = page {
        write_page(
            path,
            &page::markdown(&all, &goals),
            &page::plot(&all, &goals),
            &page::claims(&all, &goals),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
