//! Runs the body of each fuzz target over its committed seeds, on the stable compiler.
//!
//! A seed that once was a finding stays here as a test.

#![allow(clippy::unwrap_used, reason = "a seed that cannot be read fails the test")]

use std::path::{Path, PathBuf};

#[path = "../../../tests/fuzz/src/lib.rs"]
#[allow(dead_code, unreachable_pub)]
mod targets;

fn seeds(target: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Fewest seeds of a target: guards against a folder that was lost.
const SEEDS_MIN: usize = 12;

fn run(target: &str) {
    let (_, body) = targets::TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let seeds = seeds(target);
    assert!(seeds.len() >= SEEDS_MIN, "{target} has {} seeds", seeds.len());
    for seed in seeds {
        // Shown only when the body panics.
        println!("{}", seed.display());
        body(&std::fs::read(&seed).unwrap());
    }
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { run(stringify!($name)); })*

        #[test]
        fn every_target_runs_here() {
            let names: Vec<&str> = targets::TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

targets!(resp_request, resp_reply, respb_request, respb_reply, respb_differential);
