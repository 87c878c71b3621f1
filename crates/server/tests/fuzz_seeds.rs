//! Runs the bodies of the fuzz targets of HTTP over their committed seeds, on the stable compiler, and cuts each
//! request at each of its bytes.
//!
//! A seed that once was a finding stays here as a test.

#![allow(clippy::unwrap_used, reason = "a seed that cannot be read fails the test")]

use std::path::Path;

#[path = "../../../tests/fuzz/server/mod.rs"]
#[allow(unreachable_pub)]
mod server;

/// Fewest seeds of a target: guards against a folder that was lost.
const SEEDS_MIN: usize = 5;

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= SEEDS_MIN, "{target} has {} seeds", paths.len());
    paths.into_iter().map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

fn run(target: &str, body: fn(&[u8])) {
    for (name, seed) in seeds(target) {
        // Shown only when the body panics.
        println!("{name}");
        body(&seed);
    }
}

#[test]
fn http_request() {
    run("http_request", server::http_request);
}

#[test]
fn http_json() {
    run("http_json", server::http_json);
}

#[test]
fn http_target() {
    run("http_target", server::http_target);
}

#[test]
fn a_request_is_answered_alike_wherever_it_is_cut() {
    for (name, seed) in seeds("http_request") {
        println!("{name}");
        for at in 1..seed.len() {
            let (before, behind) = seed[1..].split_at(at - 1);
            server::same_answers(&seed[1..], &[before, behind]);
        }
    }
}
