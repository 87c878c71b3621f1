//! Runs the bodies of the engine's fuzz targets over their committed seeds.

#[path = "../../../tests/fuzz/engine/mod.rs"]
#[allow(unreachable_pub)]
mod engine;
#[path = "../../../tests/fuzz/seeded.rs"]
mod seeded;

use seeded::run;

/// Fewest seeds of a target.
const SEEDS_MIN: usize = 5;

#[test]
fn dump() {
    run("dump", SEEDS_MIN, engine::dump);
}

#[test]
fn hyperloglog() {
    run("hyperloglog", SEEDS_MIN, engine::hyperloglog);
}

#[test]
fn rdb_file() {
    run("rdb_file", SEEDS_MIN, engine::rdb_file);
}

#[test]
fn program() {
    run("program", SEEDS_MIN, engine::program);
}
