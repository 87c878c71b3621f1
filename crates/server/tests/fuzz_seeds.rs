//! Runs the bodies of the fuzz targets of HTTP over their committed seeds, and cuts each request at each of its bytes.

#[path = "../../../tests/fuzz/seeded.rs"]
mod seeded;
#[path = "../../../tests/fuzz/server/mod.rs"]
#[allow(unreachable_pub)]
mod server;

use seeded::{run, seeds};

/// Fewest seeds of a target.
const SEEDS_MIN: usize = 5;

#[test]
fn http_request() {
    run("http_request", SEEDS_MIN, server::http_request);
}

#[test]
fn http_json() {
    run("http_json", SEEDS_MIN, server::http_json);
}

#[test]
fn http_target() {
    run("http_target", SEEDS_MIN, server::http_target);
}

#[test]
fn a_request_is_answered_alike_wherever_it_is_cut() {
    for (name, seed) in seeds("http_request", SEEDS_MIN) {
        println!("{name}");
        for at in 1..seed.len() {
            let (before, behind) = seed[1..].split_at(at - 1);
            server::same_answers(&seed[1..], &[before, behind]);
        }
    }
}
