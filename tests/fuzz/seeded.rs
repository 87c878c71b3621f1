//! Owns: the committed seeds of fuzz targets, and running a target's body over them, on the stable compiler: what
//! `fuzz_seeds.rs` of several crates do. A seed that once was a finding stays as a test.

#![allow(clippy::unwrap_used, reason = "a seed that cannot be read fails the test")]

use std::path::Path;

/// The seeds of a target with their paths. There are so many at least: guards against a folder that was lost.
pub(crate) fn seeds(target: &str, least: usize) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= least, "{target} has {} seeds", paths.len());
    paths.into_iter().map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

pub(crate) fn run(target: &str, least: usize, body: fn(&[u8])) {
    for (path, seed) in seeds(target, least) {
        // Shown only when the body panics.
        println!("{path}");
        body(&seed);
    }
}
