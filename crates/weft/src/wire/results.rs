//! The results as they are stored: JSON from which every table and the report can be rebuilt.
//!
//! Owns the format. A file is what one run of `weft wire --json` prints.

use serde::{Deserialize, Serialize};
use weft_measure::verdict::{Ratio, paired};
use weft_measure::{Machine, Spread};

use super::counts::Counts;
use super::stream::{Stream, Wire};

/// One run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Results {
    /// Version of Weft.
    pub(super) version: String,
    pub(super) machine: Machine,
    /// A line for each contestant that could not take part.
    pub(super) absent: Vec<String>,
    pub(super) cells: Vec<Cell>,
}

/// One workload at one size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) workload: String,
    /// Bytes of a key; 0 for a file.
    pub(super) key_length: usize,
    /// Size of the RESP stream that was asked for, in MB; 0 for a file.
    pub(super) size_mb: usize,
    pub(super) passes: u64,
    pub(super) rounds: u64,
    pub(super) commands: u64,
    pub(super) arguments: u64,
    /// Commands that have a typed RESPB frame.
    pub(super) typed: u64,
    pub(super) resp_bytes: u64,
    pub(super) respb_bytes: u64,
    pub(super) argv_bytes: u64,
    /// The fold of all arguments: every contestant's.
    pub(super) checksum: String,
    /// Nanoseconds for each command of only reading the bytes: RESP, RESPB.
    pub(super) reading: Vec<f64>,
    pub(super) contestants: Vec<Measured>,
}

impl Cell {
    pub(super) fn of(stream: &Stream) -> Cell {
        let bytes = |wire| stream.on(wire).bytes.len() as u64;
        Cell {
            commands: stream.commands,
            arguments: stream.arguments,
            typed: stream.typed,
            resp_bytes: bytes(Wire::Resp),
            respb_bytes: bytes(Wire::Respb),
            argv_bytes: bytes(Wire::Argv),
            checksum: format!("{:016x}", stream.checksum),
            ..Cell::default()
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&Measured> {
        self.contestants.iter().find(|measured| measured.id == id)
    }

    /// Nanoseconds of CPU time for each command.
    pub(super) fn cpu(&self, id: &str) -> Option<f64> {
        self.get(id).map(|measured| measured.cpu_ns.median)
    }

    /// How many times the second one's cost the first one has.
    pub(super) fn times(&self, slow: &str, fast: &str) -> Option<f64> {
        Some(self.cpu(slow)? / self.cpu(fast)?)
    }

    /// The same as a ratio of pairs of rounds, with its interval.
    pub(super) fn paired(&self, slow: &str, fast: &str) -> Option<Ratio> {
        paired(&self.get(slow)?.cpu_ns.rounds, &self.get(fast)?.cpu_ns.rounds)
    }

    /// How much smaller RESPB is, in per cent.
    pub(super) fn saved(&self) -> f64 {
        100.0 - 100.0 * self.respb_bytes as f64 / self.resp_bytes as f64
    }
}

/// A contestant's results; all numbers but the peak are for one command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) cpu_ns: Spread,
    pub(super) heap: Option<HeapPer>,
    pub(super) latency: Option<Percentiles>,
    pub(super) counts: Option<Counts>,
}

/// What it allocates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HeapPer {
    pub(super) allocations: f64,
    pub(super) bytes: f64,
    /// The most bytes in use at once in a pass.
    pub(super) peak_bytes: u64,
}

/// Latencies of batches in nanoseconds, the clock's own cost taken off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Percentiles {
    pub(super) samples: usize,
    /// What was taken off.
    pub(super) clock_ns: u64,
    pub(super) p50: u64,
    pub(super) p90: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
}

impl Percentiles {
    pub(super) fn of(mut times: Vec<u64>, clock_ns: u64) -> Percentiles {
        times.sort_unstable();
        // The smallest sample that is not below so many per cent of them.
        let at = |per_cent: usize| {
            let rank = (times.len() * per_cent).div_ceil(100).max(1) - 1;
            times.get(rank).map_or(0, |time| time.saturating_sub(clock_ns))
        };
        Percentiles { samples: times.len(), clock_ns, p50: at(50), p90: at(90), p99: at(99), max: at(100) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let percentiles = Percentiles::of((1..=100).rev().collect(), 1);
        assert_eq!((percentiles.p50, percentiles.p90, percentiles.p99, percentiles.max), (49, 89, 98, 99));
    }
}
