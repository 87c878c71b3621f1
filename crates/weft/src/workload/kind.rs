//! The four workloads of the founding benchmark: what commands they have, in which shares.
//!
//! Owns their names and the shares. What the arguments look like is in [`super::values`].

use anyhow::{Result, bail};

use super::values;
use weft_measure::Random;

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `GET key`
    Small,
    /// `SET key value` of 50 bytes
    Medium,
    /// `SET key value` of 1,024 bytes
    Large,
    /// Reads, writes and module commands, by [`SHARES`]
    Mixed,
}

/// Commands of a mixed workload in a hundred: a cache that is read three times as often as it is written, with some
/// documents, filters and searches.
pub(crate) const SHARES: [(&str, u64); 8] = [
    ("GET", 60),
    ("SET", 12),
    ("DEL", 5),
    ("MGET", 6),
    ("JSON.SET", 4),
    ("JSON.GET", 6),
    ("BF.ADD", 4),
    ("FT.SEARCH", 3),
];

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Small, Kind::Medium, Kind::Large, Kind::Mixed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Small => "small",
            Kind::Medium => "medium",
            Kind::Large => "large",
            Kind::Mixed => "mixed",
        }
    }

    /// The workloads that a name stands for.
    pub(crate) fn parse(name: &str) -> Result<Vec<Kind>> {
        if name == "all" {
            return Ok(Kind::ALL.to_vec());
        }
        match Kind::ALL.iter().find(|kind| kind.name() == name) {
            Some(&kind) => Ok(vec![kind]),
            None => bail!("unknown workload {name:?}; there are small, medium, large, mixed and all"),
        }
    }

    /// The arguments of the next command, its name first.
    pub(crate) fn command(self, random: &mut Random, key_length: usize) -> Vec<Vec<u8>> {
        let key = values::key(random, key_length);
        match self {
            Kind::Small => vec![b"GET".to_vec(), key],
            Kind::Medium => vec![b"SET".to_vec(), key, values::value(random, 50)],
            Kind::Large => vec![b"SET".to_vec(), key, values::value(random, 1024)],
            Kind::Mixed => mixed(key, random, key_length),
        }
    }
}

fn mixed(key: Vec<u8>, random: &mut Random, key_length: usize) -> Vec<Vec<u8>> {
    let mut ticket = random.below(100);
    let mut chosen = SHARES[0].0;
    for (name, share) in SHARES {
        chosen = name;
        if ticket < share {
            break;
        }
        ticket -= share;
    }
    let mut argv = vec![chosen.as_bytes().to_vec(), key];
    match chosen {
        "SET" => {
            let len = random.between(8, 24) as usize;
            argv.push(values::value(random, len));
        }
        "DEL" => (0..random.below(3)).for_each(|_| argv.push(values::key(random, key_length))),
        "MGET" => (0..random.between(4, 12)).for_each(|_| argv.push(values::key(random, key_length))),
        "JSON.SET" => argv.extend([b"$".to_vec(), values::document(random)]),
        "JSON.GET" => argv.push(values::path(random)),
        "BF.ADD" => argv.push(values::item(random)),
        "FT.SEARCH" => {
            argv[1] = b"people".to_vec();
            argv.push(values::query(random));
            argv.extend(["LIMIT", "0", "10"].map(|word| word.as_bytes().to_vec()));
        }
        _ => {}
    }
    argv
}
