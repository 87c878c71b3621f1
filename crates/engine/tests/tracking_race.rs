//! A cache that is kept by invalidations is never left with an old value, however reads and writes of two workers meet.

#[path = "../examples/support/worker.rs"]
mod worker;

use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use weft_engine::Engine;
use weft_engine::mailbox::Message;
use weft_engine::push::Push;
use weft_engine::reply::Protocol;
use weft_store::{Rng, XorShift};
use worker::{Worker, encode, engine};

const KEYS: usize = 4;
const ROUNDS: usize = 300;
const WRITES: usize = 200;

/// Runs a command of a worker's only client, and gives its reply.
fn run(worker: &mut Worker, command: &str) -> String {
    let words: Vec<Vec<u8>> = command.split(' ').map(Into::into).collect();
    let mut bytes = Vec::new();
    encode(&words, Protocol::Resp3, &mut bytes);
    worker.run(&[bytes]);
    String::from_utf8(worker.replies(0)).expect("text")
}

/// Takes out of the cache what the first worker's client is told of; says of how many keys.
fn take_invalidations(engine: &Engine, cache: &mut HashMap<usize, String>) -> usize {
    let mut told = 0;
    let mut messages = Vec::new();
    engine.mailbox(0).take_into(&mut messages);
    for message in messages {
        let Message::Push(_, push) = message else { panic!("{message:?}") };
        let Push::Invalidate(Some(keys)) = &*push else { panic!("{push:?}") };
        for key in keys {
            let key = std::str::from_utf8(key).expect("text").trim_start_matches('k');
            cache.remove(&key.parse().expect("a number"));
            told += 1;
        }
    }
    told
}

#[test]
fn a_cache_is_never_left_with_an_old_value() {
    let engine = engine(2);
    let (primed, written) = (Barrier::new(2), Barrier::new(2));
    let writing = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = Worker::of(engine, 1, Protocol::Resp3, 1);
            let mut dice = XorShift::new(3);
            for round in 0..ROUNDS {
                writing.store(true, Relaxed);
                primed.wait();
                for value in 0..WRITES {
                    let key = dice.next_u64() as usize % KEYS;
                    assert_eq!(run(&mut writer, &format!("SET k{key} {round}.{value}")), "+OK\r\n");
                }
                writing.store(false, Relaxed);
                written.wait();
            }
        });
        let mut reader = Worker::of(engine, 0, Protocol::Resp3, 1);
        let mut dice = XorShift::new(5);
        let (mut told, mut stale) = (0, 0);
        for _ in 0..ROUNDS {
            let mut cache = HashMap::new();
            assert_eq!(run(&mut reader, "CLIENT TRACKING on"), "+OK\r\n");
            for key in 0..KEYS {
                cache.insert(key, run(&mut reader, &format!("GET k{key}")));
            }
            primed.wait();
            while writing.load(Relaxed) {
                let key = dice.next_u64() as usize % KEYS;
                cache.entry(key).or_insert_with(|| run(&mut reader, &format!("GET k{key}")));
                told += take_invalidations(engine, &mut cache);
            }
            written.wait();
            told += take_invalidations(engine, &mut cache);
            for (key, value) in cache {
                // Only noted: a panic here would leave the writer waiting.
                stale += usize::from(run(&mut reader, &format!("GET k{key}")) != value);
            }
            assert_eq!(run(&mut reader, "CLIENT TRACKING off"), "+OK\r\n");
            take_invalidations(engine, &mut HashMap::new());
        }
        assert_eq!(stale, 0, "values that nobody was told of");
        assert!(told >= ROUNDS, "each round writes to keys that were read: {told}");
    });
}
