//! Scripts of 100 commands by one thread and by two, in one process and without sockets. `script_threads ROUNDS SECONDS
//! [KEYS]` prints a line for each round: scripts a second of one thread, of two threads of one engine together, and of
//! two threads with an engine each, which share nothing: what the machine has for two. Clients and the kernel's network
//! are not in it, so that two threads have two cores to themselves. `scripts/bench-scripts` reads it.
//!
//! A thread drives a worker with a client of its own, as a server's thread does with what one receive has brought: 16
//! requests are decoded and run, and their replies are compared. Each script declares its one key, of `KEYS` that its
//! thread alone uses; keys of both threads share shards, as they do in a server. One thread is an engine that is driven
//! by one thread; two are two workers of one engine. All take turns in each round.

#[path = "support/worker.rs"]
mod worker;

use std::sync::Barrier;
use std::time::{Duration, Instant};

use weft_engine::Engine;
use weft_engine::reply::Protocol;
use worker::{Worker, encode, engine};

/// 101 calls: what `scripts/bench-scripts` runs as well.
const SCRIPT: &str = "for i = 1, 50 do redis.call('SET', KEYS[1], i) redis.call('GET', KEYS[1]) end \
                      return redis.call('GET', KEYS[1])";
const REPLY: &[u8] = b"$2\r\n50\r\n";
/// Requests that are decoded and run together.
const PIPELINE: usize = 16;
/// Keys of a thread, where the command line says nothing of them.
const KEYS: usize = 10_000;
/// Pipelines that are made beforehand.
const PIPELINES: usize = 256;

fn main() {
    let usage = "usage: script_threads ROUNDS SECONDS [KEYS], such as script_threads 15 0.5";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [rounds, seconds] =
        [0, 1].map(|at| args.get(at).and_then(|arg| arg.parse::<f64>().ok()).expect(usage));
    let keys = args.get(2).map_or(KEYS, |arg| arg.parse().expect(usage));
    let turn = Duration::from_secs_f64(seconds);
    let (alone, both, each) = (engine(1), engine(2), [engine(1), engine(1)]);
    // The first time only warms up.
    for round in 0..=rounds as usize {
        let of_engine = |threads: &[(&'static Engine, u16)]| rate(threads, keys, turn);
        let one = of_engine(&[(alone, 0)]);
        let two = of_engine(&[(both, 0), (both, 1)]);
        let apart = of_engine(&[(each[0], 0), (each[1], 0)]);
        if round > 0 {
            println!("{one:.0} {two:.0} {apart:.0}");
        }
    }
}

/// Scripts a second of all threads together, each with its engine and its worker there.
fn rate(threads: &[(&'static Engine, u16)], keys: usize, turn: Duration) -> f64 {
    let barrier = Barrier::new(threads.len());
    std::thread::scope(|scope| {
        let all: Vec<_> = threads
            .iter()
            .map(|&of| {
                let barrier = &barrier;
                scope.spawn(move || drive(of, keys, (turn, barrier)))
            })
            .collect();
        all.into_iter().map(|thread| thread.join().expect("a thread ends well")).sum()
    })
}

/// One thread's scripts a second, from when all have begun.
fn drive(
    (engine, number): (&'static Engine, u16),
    keys: usize,
    (turn, barrier): (Duration, &Barrier),
) -> f64 {
    let mut worker = Worker::of(engine, number, Protocol::Resp2, 1);
    let load = [b"SCRIPT".to_vec(), b"LOAD".to_vec(), SCRIPT.into()];
    let mut bytes = Vec::new();
    encode(&load, Protocol::Resp2, &mut bytes);
    worker.run(&[bytes]);
    let sha = weft_lua::sha1_hex(SCRIPT.as_bytes()).to_vec();
    let pipelines: Vec<[Vec<u8>; 1]> = (0..PIPELINES)
        .map(|first| {
            let mut bytes = Vec::new();
            for at in 0..PIPELINE {
                // In no order.
                let key = (first * PIPELINE + at).wrapping_mul(7919) % keys;
                let words = [
                    b"EVALSHA".to_vec(),
                    sha.clone(),
                    b"1".to_vec(),
                    format!("key:{number}:{key:05}").into(),
                ];
                encode(&words, Protocol::Resp2, &mut bytes);
            }
            [bytes]
        })
        .collect();
    let expected = REPLY.repeat(PIPELINE);
    barrier.wait();
    let begun = Instant::now();
    let mut done = 0;
    while begun.elapsed() < turn {
        worker.run(&pipelines[done % PIPELINES]);
        assert_eq!(worker.replies(0), expected, "each script answers what it has written last");
        done += 1;
    }
    (done * PIPELINE) as f64 / begun.elapsed().as_secs_f64()
}
