//! `weft wire`: what RESPB buys over RESP, measured against Valkey's own parser so that a sceptic can run it again.
//!
//! Owns the command line. Reading order: [`stream`] (the workload on each wire), [`fold`] (the work that everyone
//! does), [`ladder`] (Weft's contestants, step by step), [`driver`] (those that are programs of their own),
//! [`contest`] (the measuring), [`results`] (what is stored), [`tables`], [`page`] and [`html`] (what is shown).

mod contest;
mod counts;
mod driver;
mod fold;
pub(crate) mod html;
mod ladder;
mod page;
mod results;
mod runner;
mod sample;
mod seed;
mod sizes;
mod stream;
mod tables;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::workload::MB;
use crate::workload::kind::Kind;
use contest::{Drivers, Field, Plan};
use results::Results;
use stream::Stream;
use weft_measure::Machine;

/// Measure what decoding a request costs: Valkey's parser, Weft's RESP, Weft's RESPB
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// small, medium, large or mixed
    #[arg(short, long, value_name = "NAME", default_value = "mixed")]
    workload: String,
    /// Read the workload from a file, RESP or RESPB, instead
    #[arg(short, long, value_name = "FILE", conflicts_with = "suite")]
    file: Option<PathBuf>,
    /// Passes over the workload
    #[arg(short, long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,
    /// Sample latencies: 10,000 batches of 64 commands
    #[arg(short, long)]
    latency: bool,
    /// Size of the workload's RESP form in MB (1,000,000 bytes)
    #[arg(long, value_name = "MB", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    size: u32,
    /// Bytes of a key: 6 or 20
    #[arg(long, value_name = "BYTES", default_value_t = 6, value_parser = crate::workload::key_length)]
    key_length: usize,
    /// Seed of the workload
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Count instructions and misses with callgrind
    #[arg(long)]
    counts: bool,
    /// Everything: four workloads, keys of 6 and 20 bytes, 1 MB in cache and 10 MB out of it, latencies and counts
    #[arg(long)]
    suite: bool,
    /// Build the tables from stored results instead of measuring
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["suite", "file"])]
    report: Vec<PathBuf>,
    /// Write the report as HTML, with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the report as a page in Markdown
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Print the size of every command on both wires
    #[arg(long, conflicts_with_all = ["suite", "file", "report"])]
    sizes: bool,
    /// Print JSON; with measurements, what --report reads
    #[arg(long)]
    json: bool,
    /// Serve one contestant on stdin and stdout, for valgrind
    #[arg(long, value_name = "ID", hide = true)]
    serve: Option<String>,
}

/// Latencies that are sampled, as in the founding benchmark.
const SAMPLES: usize = 10_000;

/// Rounds that the passes are divided into.
const ROUNDS: u64 = 50;

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if let Some(id) = &options.serve {
        serve(id)?;
        return Ok(ExitCode::SUCCESS);
    }
    if options.sizes {
        print!("{}", if options.json { sizes::json()? } else { sizes::text() });
        return Ok(ExitCode::SUCCESS);
    }
    let results = match options.report.as_slice() {
        [] => measure(options)?,
        files => stored(files)?,
    };
    if let Some(path) = &options.html {
        std::fs::write(path, html::report(&results)).with_context(|| format!("{}", path.display()))?;
    }
    if let Some(path) = &options.page {
        weft_measure::write_page(
            path,
            &page::page(&results),
            &html::speedups(&results),
            &page::claims(&results),
        )?;
    }
    if options.json {
        println!("{}", serde_json::to_string(&results)?);
    } else {
        tables::all(&results).iter().for_each(|table| println!("{}", table.text()));
        results.absent.iter().for_each(|line| println!("not there: {line}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn serve(id: &str) -> Result<()> {
    for wire in stream::Wire::ALL {
        for step in ladder::Step::ALL {
            if format!("weft/{}/{}", wire.id(), step.id()) == id {
                return runner::serve(&mut runner::Local::new(wire, step));
            }
        }
    }
    bail!("no contestant {id:?}")
}

/// Puts stored results together.
fn stored(files: &[PathBuf]) -> Result<Results> {
    let mut all = Results::default();
    for path in files {
        let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        let results: Results = serde_json::from_str(&text)
            .with_context(|| format!("{}: not results of weft wire", path.display()))?;
        let cells = std::mem::take(&mut all.cells);
        all = Results { cells: cells.into_iter().chain(results.cells.clone()).collect(), ..results };
    }
    Ok(all)
}

fn measure(options: &Options) -> Result<Results> {
    let mut field = Field::gather(&Drivers::find())?;
    let mut results = Results {
        version: env!("CARGO_PKG_VERSION").to_string(),
        machine: Machine::this(),
        absent: field.absent.clone(),
        cells: Vec::new(),
    };
    results.absent.iter().for_each(|line| eprintln!("not there: {line}"));
    if options.suite {
        return suite(options, field, results);
    }
    let plan = plan(options.iterations, if options.latency { SAMPLES } else { 0 }, options.counts);
    let (workload, stream, key_length, size) = match &options.file {
        Some(path) => (path.display().to_string(), stream::load(path)?, 0, 0),
        None => {
            let [kind] = Kind::parse(&options.workload)?[..] else {
                bail!("--workload all: that is --suite")
            };
            let size = options.size as usize;
            let stream = Stream::generate(kind, size * MB, options.key_length, options.seed)?;
            (kind.name().to_string(), stream, options.key_length, size)
        }
    };
    let mut cell = field.run(&stream, &plan)?;
    (cell.workload, cell.key_length, cell.size_mb) = (workload, key_length, size);
    (cell.passes, cell.rounds) = (plan.passes, plan.rounds);
    results.cells.push(cell);
    Ok(results)
}

fn plan(iterations: u64, samples: usize, counts: bool) -> Plan {
    let rounds = iterations.min(ROUNDS);
    Plan { rounds, passes: iterations / rounds, samples, counts }
}

fn suite(options: &Options, mut field: Field, mut results: Results) -> Result<Results> {
    for size in [1, 10] {
        for key_length in crate::workload::values::KEY_LENGTHS {
            for kind in Kind::ALL {
                eprintln!("{} with keys of {key_length} bytes, {size} MB", kind.name());
                let stream = Stream::generate(kind, size * MB, key_length, options.seed)?;
                // The same number of bytes at each size: 10 MB as often as it says, 1 MB ten times as often.
                let passes = options.iterations * 10 / size as u64;
                let plan = plan(passes, SAMPLES, size == 1);
                let mut cell = field.run(&stream, &plan)?;
                (cell.workload, cell.key_length, cell.size_mb) = (kind.name().to_string(), key_length, size);
                (cell.passes, cell.rounds) = (plan.passes, plan.rounds);
                results.cells.push(cell);
            }
        }
    }
    Ok(results)
}
