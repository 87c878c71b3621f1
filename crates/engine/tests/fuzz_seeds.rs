//! Runs the bodies of the engine's fuzz targets over their committed seeds, on the stable compiler.
//!
//! A seed that once was a finding stays here as a test.

#![allow(clippy::unwrap_used, reason = "a seed that cannot be read fails the test")]

use std::path::Path;

#[path = "../../../tests/fuzz/engine/mod.rs"]
#[allow(unreachable_pub)]
mod engine;

/// Fewest seeds of a target: guards against a folder that was lost.
const SEEDS_MIN: usize = 5;

fn run(target: &str, body: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= SEEDS_MIN, "{target} has {} seeds", paths.len());
    for path in paths {
        // Shown only when the body panics.
        println!("{}", path.display());
        body(&std::fs::read(&path).unwrap());
    }
}

#[test]
fn dump() {
    run("dump", engine::dump);
}

#[test]
fn hyperloglog() {
    run("hyperloglog", engine::hyperloglog);
}

#[test]
fn rdb_file() {
    run("rdb_file", engine::rdb_file);
}

#[test]
fn program() {
    run("program", engine::program);
}
