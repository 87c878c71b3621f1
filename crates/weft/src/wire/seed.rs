//! What the founding benchmark claims, what this one must reach, and where the founding documents contradict
//! themselves.

use weft_measure::verdict::{Goal, Ratio, Verdict};

use super::results::{Cell, Results};

/// A line of the founding benchmark's table.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) workload: &'static str,
    /// Millions of commands a second.
    pub(super) resp: f64,
    pub(super) respb: f64,
    pub(super) speedup: f64,
    pub(super) bandwidth: f64,
    pub(super) memory: f64,
}

pub(super) const CLAIMS: [Claim; 4] = [
    Claim { workload: "small", resp: 5.7, respb: 164.3, speedup: 29.0, bandwidth: 52.0, memory: 71.7 },
    Claim { workload: "medium", resp: 3.9, respb: 155.9, speedup: 40.4, bandwidth: 8.3, memory: 51.9 },
    Claim { workload: "large", resp: 4.1, respb: 74.0, speedup: 18.2, bandwidth: 0.9, memory: 48.4 },
    Claim { workload: "mixed", resp: 3.6, respb: 136.7, speedup: 38.2, bandwidth: 38.3, memory: 65.7 },
];

/// What must be reached.
pub(super) struct Target {
    pub(super) what: String,
    pub(super) least: f64,
    /// With its interval; what is counted has none.
    pub(super) reached: Option<Ratio>,
}

impl Target {
    pub(super) fn goal(&self) -> Goal {
        Goal::AtLeast(self.least)
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        Some(self.goal().verdict(self.reached?))
    }

    pub(super) fn is_reached(&self) -> bool {
        self.verdict() == Some(Verdict::Reached)
    }
}

/// What is counted, and is the same in each run.
fn counted(value: f64) -> Ratio {
    Ratio { value, low: value, high: value }
}

pub(super) const VALKEY: &str = "valkey/parse";
pub(super) const RESP: &str = "weft/resp/fields";
pub(super) const RESPB: &str = "weft/respb/fields";

/// The targets, with what the cells of 1 MB and keys of 6 bytes reach.
pub(super) fn targets(results: &Results) -> Vec<Target> {
    let cell = |workload: &str| {
        results
            .cells
            .iter()
            .find(|cell| cell.workload == workload && cell.size_mb == 1 && cell.key_length == 6)
    };
    let times =
        |workload: &str, slow: &str, fast: &str| cell(workload).and_then(|cell| cell.paired(slow, fast));
    let mut targets = Vec::new();
    for (workload, least) in [("small", 12.0), ("medium", 8.0), ("large", 8.0), ("mixed", 8.0)] {
        let what = format!("{workload}: RESPB, fields decoded and checked, against Valkey's parser, times");
        targets.push(Target { what, least, reached: times(workload, VALKEY, RESPB) });
    }
    let what = "small: Weft's RESP decoder against Valkey's parser, times".to_string();
    targets.push(Target { what, least: 5.0, reached: times("small", VALKEY, RESP) });
    for (workload, least) in [("small", 1.8), ("mixed", 1.4)] {
        let what = format!("{workload}: RESPB against Weft's RESP decoder, times");
        targets.push(Target { what, least, reached: times(workload, RESP, RESPB) });
    }
    for claim in &CLAIMS {
        let what = format!("{}: bytes saved, per cent", claim.workload);
        // As the seed rounds: to one decimal.
        let saved = cell(claim.workload).map(|cell| (cell.saved() * 10.0).round() / 10.0);
        targets.push(Target { what, least: claim.bandwidth, reached: saved.map(counted) });
    }
    let allocations = |cell: &Cell| {
        let heap = [RESP, RESPB].map(|id| cell.get(id).and_then(|measured| measured.heap));
        heap.iter().flatten().map(|heap| heap.allocations).fold(0.0, f64::max)
    };
    let most = results.cells.iter().map(allocations).fold(0.0, f64::max);
    let what = "allocations of Weft's decoders (0 is the target; shown negative)".to_string();
    targets.push(Target {
        what,
        least: 0.0,
        reached: (!results.cells.is_empty()).then(|| counted(-most + 0.0)),
    });
    targets
}

/// Where the founding documents contradict themselves or what can be counted.
pub(super) const CONTRADICTIONS: &[&str] = &[
    "The founding benchmark has two summaries: 33.5 times, 24.9 % and 59.4 % at its beginning; 20.3 times, 24.6 % \
     and 58.0 % at its end. The averages of its table are 31.5 times, 24.9 % and 59.4 %: neither 33.5 nor 20.3.",
    "RESP takes large commands (4.1 million a second) faster than medium ones (3.9 million), though it copies twenty \
     times as many bytes for each. Its large workload announces keys of 9 bytes and sends 10 and so does not parse.",
    "The RESP form of `GET mykey` is printed with `$6` for a key of 5 bytes, and its RESPB form as 10 bytes; it is \
     24 and 11.",
    "`JSON.SET` is said to take 64 and 44 bytes, with `$12` before ten bytes; it takes 59 and 39. `SET foo bar` as \
     passthrough is said to take 33 and 41; it takes 31 and 39.",
    "The proposal's sizes: `SET key val` 37 and 18 where it takes 31 and 17, `MGET k1 k2 k3` 51 and 22 where it \
     takes 38 and 18, `HGETALL hash` 32 where it takes 27.",
    "Savings of 52.0 % for small need keys of 6 bytes (25 and 12 bytes); the text says keys of about 20 bytes, with \
     which they are 35 %. Savings of 8.3 % for medium need bytes in the RESPB frame that carry nothing: with keys of \
     6 bytes a SET of 50 bytes saves 18 %.",
    "The tests are 6 of 6 in the list of files and 9 of 9 in the chapter on testing.",
    "The mixed workload is GET, SET, DEL, MGET, JSON.SET, JSON.GET, BF.ADD and FT.SEARCH in one place and GET, SET, \
     DEL, MGET in another, without shares in either.",
    "Memory is the resident size of a process, in which one side copies its whole input: 21.6 MB for every workload \
     alike. It says nothing about a command.",
    "The parser is called Valkey's own and runs on replacements of Valkey's strings, objects and allocator; it is said \
     to be 200 lines of a file and to have become 700.",
    "The prose reduces CPU time by 92 to 97 %, the tables by 94.5 to 97.5 %.",
];
