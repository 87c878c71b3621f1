//! Owns: what tests of programs, triggers and scripts have in common: storing them, doing what waits, and what their
//! group has changed. Does not own: a host for commands (`super::Bench`).

use weft_engine::Engine;
use weft_engine::background::Background;
use weft_engine::reply::Protocol;
use weft_store::{Digest, Op, Recorder, Section};

use super::{Bench, show};

/// A worker and its first client, which may do everything.
pub(crate) fn bench() -> (Bench, u32) {
    Bench::with(Protocol::Resp3)
}

/// What a client is sent for a command of these words, in words.
pub(crate) fn words(bench: &mut Bench, client: u32, words: &[&str]) -> String {
    let replies = bench.run_args(client, &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    replies.iter().map(show).collect::<Vec<_>>().join(" ")
}

/// Stores a PROGRAM or a TRIGGER.
pub(crate) fn store(bench: &mut Bench, client: u32, kind: &str, name: &str, text: &str) {
    let stored = words(bench, client, &[kind, "SET", name, text]);
    assert!(stored.parse::<u64>().is_ok(), "{name}: {stored}");
}

/// A program of these steps that is given an event.
pub(crate) fn of_event(steps: &str) -> String {
    format!("{{\"params\":[{{\"name\":\"event\",\"type\":\"object\"}}],\"steps\":[{steps}]}}")
}

/// Stores a library as a start finds it, which nobody has loaded here.
pub(crate) fn store_library(engine: &Engine, name: &str, source: &str) {
    let (mut worker, mut recorder) = (engine.keyspace.worker().expect("a place"), Recorder::default());
    let (world, mut op) = (worker.world(), Op::new(0, 1, &mut recorder));
    let (name, source) = (name.as_bytes(), Some(source.as_bytes()));
    world.guards().shard(&engine.keyspace.key(name)).set_entry(&mut op, Section::Functions, name, source);
}

/// The server's background thread. Called it does what can be done now.
pub(crate) fn background(bench: &Bench) -> impl FnMut() + use<> {
    let engine = bench.engine;
    let mut worker = engine.keyspace.worker().expect("a place");
    let mut background = Background::new(engine);
    move || while background.step(engine, &mut worker, |_| {}).was_busy {}
}

/// Does what waits, with all attempts.
pub(crate) fn done_or_given_up(bench: &Bench) {
    let mut work = background(bench);
    for _ in 0..10 {
        work();
        bench.pass(20_000);
    }
}

/// All that the keyspace holds.
pub(crate) fn digest(bench: &mut Bench, client: u32) -> Digest {
    let mut digest = Digest::default();
    bench.attempt(client, |attempt| {
        digest = attempt.digest();
        false
    });
    digest
}
