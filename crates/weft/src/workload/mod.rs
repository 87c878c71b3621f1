//! `weft workload`: streams of commands to measure with, as RESP and as RESPB.
//!
//! Owns the command line and the files. What is in them: [`kind`] and [`values`] make them up, [`trace`] takes them
//! from what a server has seen. A file is the bytes of one connection and nothing else, so any server or client can
//! be fed with it.

pub(crate) mod kind;
mod monitor;
mod pcap;
pub(crate) mod trace;
pub(crate) mod values;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use weft_protocol::request::Texts;
use weft_protocol::{resp, respb};

use kind::Kind;
use weft_measure::Random;

/// Bytes of a megabyte on the command line and in every report.
pub(crate) const MB: usize = 1_000_000;

/// Write workloads as RESP and as RESPB
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Directory for the files workload_NAME_resp.bin and workload_NAME_respb.bin
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Size of the RESP file in MB (1,000,000 bytes); the RESPB file has the same commands
    #[arg(long, value_name = "MB", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=4000))]
    size: u32,
    /// Seed of the random numbers: the same seed gives the same files
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Bytes of a key: 6, as the founding benchmark's sizes imply, or 20, as its text says
    #[arg(long, value_name = "BYTES", default_value_t = 6, value_parser = key_length)]
    key_length: usize,
    /// small, medium, large, mixed or all
    #[arg(long, short, value_name = "NAME", default_value = "all")]
    workload: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    Trace(trace::Options),
}

/// Reads a length of keys.
pub(crate) fn key_length(text: &str) -> Result<usize, String> {
    let length = text.parse().ok().filter(|length| values::KEY_LENGTHS.contains(length));
    length.ok_or_else(|| "keys have 6 or 20 bytes".to_string())
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if let Some(Command::Trace(trace)) = &options.command {
        return trace::run(trace);
    }
    let output = options.output.as_deref().context("--output DIR is missing: where do the files go?")?;
    for kind in Kind::parse(&options.workload)? {
        let commands = generate(kind, options.size as usize * MB, options.key_length, options.seed);
        write_pair(output, kind.name(), &Pair::encode(&commands))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The argument lists of a workload whose RESP form has at least `bytes` bytes, and less than one command more.
pub(crate) fn generate(kind: Kind, bytes: usize, key_length: usize, seed: u64) -> Vec<Vec<Vec<u8>>> {
    let mut random = Random::new(seed);
    let (mut commands, mut size, mut scratch) = (Vec::new(), 0, Vec::new());
    while size < bytes {
        let argv = kind.command(&mut random, key_length);
        scratch.clear();
        resp::encode::request(None, &Texts(&argv), &mut scratch);
        size += scratch.len();
        commands.push(argv);
    }
    commands
}

/// The same commands on both wires.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    pub(crate) resp: Vec<u8>,
    pub(crate) respb: Vec<u8>,
    pub(crate) commands: u64,
    /// Commands that have a typed frame; the others go as ARGV.
    pub(crate) typed: u64,
}

impl Pair {
    pub(crate) fn encode(commands: &[Vec<Vec<u8>>]) -> Pair {
        let mut pair = Pair::default();
        commands.iter().for_each(|argv| pair.push(argv));
        pair
    }

    pub(crate) fn push(&mut self, argv: &[Vec<u8>]) {
        resp::encode::request(None, &Texts(argv), &mut self.resp);
        let typed = respb::RequestWriter::new(&mut self.respb, 0).command(argv, respb::Mode::Exact);
        self.commands += 1;
        self.typed += u64::from(typed);
    }
}

/// Writes both files and says what is in them.
fn write_pair(directory: &Path, name: &str, pair: &Pair) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
    for (wire, bytes) in [("resp", &pair.resp), ("respb", &pair.respb)] {
        let path = directory.join(format!("workload_{name}_{wire}.bin"));
        std::fs::write(&path, bytes).with_context(|| format!("{}", path.display()))?;
        println!("{}  {} commands  {} bytes", path.display(), pair.commands, bytes.len());
    }
    let saved = 100.0 - 100.0 * pair.respb.len() as f64 / pair.resp.len().max(1) as f64;
    println!(
        "  RESPB is {saved:.1} % smaller; {} of {} commands have a typed frame",
        pair.typed, pair.commands
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the founding benchmark prints, in per cent, with its keys of 6 bytes.
    const SAVED_MIN: [(Kind, f64); 4] =
        [(Kind::Small, 52.0), (Kind::Medium, 8.3), (Kind::Large, 0.9), (Kind::Mixed, 38.3)];

    #[test]
    fn savings_are_at_least_those_of_the_seed() {
        for (kind, least) in SAVED_MIN {
            let pair = Pair::encode(&generate(kind, MB, 6, 1));
            let saved = 100.0 - 100.0 * pair.respb.len() as f64 / pair.resp.len() as f64;
            assert!(saved >= least, "{}: {saved:.2} %", kind.name());
            assert_eq!(pair.typed, pair.commands);
        }
    }

    #[test]
    fn a_seed_gives_the_same_bytes() {
        for kind in Kind::ALL {
            assert_eq!(generate(kind, 10_000, 20, 7), generate(kind, 10_000, 20, 7));
            assert_ne!(generate(kind, 10_000, 20, 7), generate(kind, 10_000, 20, 8));
        }
    }

    #[test]
    fn keys_and_values_have_their_lengths_and_differ() {
        for length in values::KEY_LENGTHS {
            let commands = generate(Kind::Medium, MB, length, 3);
            assert!(commands.iter().all(|argv| argv[1].len() == length && argv[2].len() == 50));
            let keys: std::collections::HashSet<_> = commands.iter().map(|argv| &argv[1]).collect();
            assert!(keys.len() * 10 > commands.len() * 9, "{} keys", keys.len());
        }
    }

    #[test]
    fn an_unknown_workload_lists_those_there_are() {
        let error = Kind::parse("tiny").unwrap_err().to_string();
        assert!(error.contains("small, medium, large, mixed"), "{error}");
    }
}
