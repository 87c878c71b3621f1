//! Instructions, branch misses and cache misses of a command, counted by callgrind.
//!
//! Owns the calls of valgrind. A contestant runs as a program of its own and decodes the stream a few times; the cost
//! is the difference between two numbers of passes, so that starting, loading and ending cancel out. Caches and
//! branches are callgrind's model of this machine's first and last level, not the machine's own counters.

use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::driver::Driver;
use super::runner::Runner as _;

/// What a command costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) instructions: f64,
    pub(super) branch_misses: f64,
    /// Misses of the first level, data and instructions.
    pub(super) l1_misses: f64,
    /// Misses of the last level.
    pub(super) last_misses: f64,
}

/// Passes of the two runs.
const PASSES: [u64; 2] = [1, 3];

/// Counts a contestant's commands; nothing where there is no valgrind.
pub(super) fn of(command: &[OsString], mode: &str, bytes: &[u8]) -> Result<Option<Counts>> {
    let bytes = Rc::new(bytes.to_vec());
    let mut runs = [([0.0; 4], 0u64); 2];
    for (run, passes) in runs.iter_mut().zip(PASSES) {
        let out = std::env::temp_dir().join(format!("weft-wire-{}.callgrind", std::process::id()));
        let Some(commands) = run_once(command, mode, &bytes, passes, &out)? else { return Ok(None) };
        let text = std::fs::read_to_string(&out).context("what callgrind wrote")?;
        let _ = std::fs::remove_file(&out);
        *run = (totals(&text).context("callgrind wrote no totals")?, commands);
    }
    let per = |index: usize| (runs[1].0[index] - runs[0].0[index]) / (runs[1].1 - runs[0].1) as f64;
    Ok(Some(Counts { instructions: per(0), branch_misses: per(1), l1_misses: per(2), last_misses: per(3) }))
}

fn run_once(
    command: &[OsString],
    mode: &str,
    bytes: &Rc<Vec<u8>>,
    passes: u64,
    out: &Path,
) -> Result<Option<u64>> {
    let mut arguments: Vec<OsString> =
        ["valgrind", "--tool=callgrind", "--branch-sim=yes", "--cache-sim=yes"].map(OsString::from).to_vec();
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(out);
    arguments.push(file);
    arguments.extend_from_slice(command);
    let Ok(mut driver) = Driver::start(&arguments, mode) else { return Ok(None) };
    driver.load(bytes)?;
    let commands = driver.pass(passes)?.commands;
    driver.finish()?;
    Ok(Some(commands))
}

/// Instructions, mispredicted branches, first-level and last-level misses, from a callgrind file.
fn totals(text: &str) -> Option<[f64; 4]> {
    let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let names: Vec<&str> = line("events:")?.split_whitespace().collect();
    let values: Vec<&str> = line("totals:").or_else(|| line("summary:"))?.split_whitespace().collect();
    let sum = |wanted: &[&str]| {
        let pairs = names.iter().zip(&values).filter(|(name, _)| wanted.contains(name));
        pairs.filter_map(|(_, value)| value.parse::<f64>().ok()).sum::<f64>()
    };
    Some([sum(&["Ir"]), sum(&["Bcm", "Bim"]), sum(&["I1mr", "D1mr", "D1mw"]), sum(&["ILmr", "DLmr", "DLmw"])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_by_their_names() {
        let text = "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\nfn=(1)\n1 2\n\
            totals: 100 1 1 2 3 4 5 6 7 50 8 9 1\n";
        assert_eq!(totals(text), Some([100.0, 9.0, 9.0, 18.0]));
        assert_eq!(totals("nothing"), None);
    }
}
