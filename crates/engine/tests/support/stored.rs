//! Owns: what tests of programs and triggers have in common: storing them, and what their group has changed. Does not
//! own: a host for commands (`super::Bench`).

use weft_engine::reply::Protocol;
use weft_store::Digest;

use super::{Bench, show};

/// A worker and its first client, which may do everything.
pub(crate) fn bench() -> (Bench, u32) {
    let mut bench = Bench::new();
    let client = bench.connect(Protocol::Resp3);
    (bench, client)
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

/// All that the keyspace holds.
pub(crate) fn digest(bench: &mut Bench, client: u32) -> Digest {
    let mut digest = Digest::default();
    bench.attempt(client, |attempt| {
        digest = attempt.digest();
        false
    });
    digest
}
