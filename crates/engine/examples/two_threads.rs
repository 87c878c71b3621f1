//! An engine driven by one thread and by two, in one process and without sockets. `two_threads WHAT ROUNDS SECONDS
//! [KEYS]` prints a line for each round: requests a second of one thread, of two threads of one engine together, and of
//! two threads with an engine each, which share nothing: what the machine has for two. Clients and the kernel's network
//! are not in it, so that two threads have two cores to themselves. `scripts/bench-scripts` and
//! `scripts/bench-conditions` read it.
//!
//! A thread drives a worker with clients of its own, as a server's thread does with what one look at the sockets has
//! brought: pipelines of 16 requests are decoded and run, and their replies are compared. One thread is an engine that
//! is driven by one thread; two are two workers of one engine. All take turns in each round. WHAT is
//!
//! - `scripts`: of 100 commands, by one client; each declares its one key, of `KEYS` that its thread alone uses; keys of
//!   both threads share shards, as they do in a server;
//! - `commands`: four GETs to a SET, by 16 clients, of `KEYS` that both threads use.

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
const SCRIPT_REPLY: &[u8] = b"$2\r\n50\r\n";
/// Requests of a client that are decoded together.
const PIPELINE: usize = 16;
/// Batches that are made beforehand.
const BATCHES: usize = 256;
/// Of so many commands one writes.
const SET_EVERY: usize = 5;

/// What is asked.
#[derive(Clone, Copy)]
enum What {
    Scripts,
    Commands,
}

impl What {
    fn keys(self) -> usize {
        match self {
            What::Scripts => 10_000,
            What::Commands => 100_000,
        }
    }
    fn clients(self) -> usize {
        match self {
            What::Scripts => 1,
            What::Commands => 16,
        }
    }
    /// What a worker is asked once, before all others.
    fn prepare(self, worker: &mut Worker, keys: usize) {
        let mut send = |words: &[Vec<u8>]| {
            let mut bytes = Vec::new();
            encode(words, Protocol::Resp2, &mut bytes);
            worker.run(&[bytes]);
        };
        match self {
            What::Scripts => send(&[b"SCRIPT".to_vec(), b"LOAD".to_vec(), SCRIPT.into()]),
            What::Commands => (0..keys).for_each(|key| send(&set(key))),
        }
    }
    /// Request number `at` of a thread, and its reply.
    fn request(self, (thread, at): (u16, usize), keys: usize) -> (Vec<Vec<u8>>, Vec<u8>) {
        // In no order.
        let key = at.wrapping_mul(7919) % keys;
        match self {
            What::Scripts => {
                let sha = weft_lua::sha1_hex(SCRIPT.as_bytes()).to_vec();
                let key = format!("key:{thread}:{key:05}").into();
                (vec![b"EVALSHA".to_vec(), sha, b"1".to_vec(), key], SCRIPT_REPLY.to_vec())
            }
            What::Commands if at.is_multiple_of(SET_EVERY) => (set(key).to_vec(), b"+OK\r\n".to_vec()),
            What::Commands => {
                let [_, name, value] = set(key);
                let reply = format!("${}\r\n{}\r\n", value.len(), String::from_utf8_lossy(&value));
                (vec![b"GET".to_vec(), name], reply.into())
            }
        }
    }
}

/// The one value that a key ever has.
fn set(key: usize) -> [Vec<u8>; 3] {
    [b"SET".to_vec(), format!("key:{key:08}").into(), format!("value:{key:010}").into()]
}

fn main() {
    let usage =
        "usage: two_threads scripts|commands ROUNDS SECONDS [KEYS], such as two_threads scripts 15 0.5";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let what = match args.first().map(String::as_str) {
        Some("scripts") => What::Scripts,
        Some("commands") => What::Commands,
        _ => panic!("{usage}"),
    };
    let [rounds, seconds] =
        [1, 2].map(|at| args.get(at).and_then(|arg| arg.parse::<f64>().ok()).expect(usage));
    let keys = args.get(3).map_or(what.keys(), |arg| arg.parse().expect(usage));
    let turn = Duration::from_secs_f64(seconds);
    let (alone, both, each) = (engine(1), engine(2), [engine(1), engine(1)]);
    // The first time only warms up.
    for round in 0..=rounds as usize {
        let of_engine = |threads: &[(&'static Engine, u16)]| rate(what, threads, keys, turn);
        let one = of_engine(&[(alone, 0)]);
        let two = of_engine(&[(both, 0), (both, 1)]);
        let apart = of_engine(&[(each[0], 0), (each[1], 0)]);
        if round > 0 {
            println!("{one:.0} {two:.0} {apart:.0}");
        }
    }
}

/// Requests a second of all threads together, each with its engine and its worker there.
fn rate(what: What, threads: &[(&'static Engine, u16)], keys: usize, turn: Duration) -> f64 {
    let barrier = Barrier::new(threads.len());
    std::thread::scope(|scope| {
        let all: Vec<_> = (0_u16..)
            .zip(threads)
            .map(|(thread, &of)| {
                let barrier = &barrier;
                scope.spawn(move || drive((what, thread), of, keys, (turn, barrier)))
            })
            .collect();
        all.into_iter().map(|thread| thread.join().expect("a thread ends well")).sum()
    })
}

/// One thread's requests a second, from when all have begun.
fn drive(
    (what, thread): (What, u16),
    (engine, number): (&'static Engine, u16),
    keys: usize,
    (turn, barrier): (Duration, &Barrier),
) -> f64 {
    let clients = what.clients();
    let mut worker = Worker::of(engine, number, Protocol::Resp2, clients as u32);
    what.prepare(&mut worker, keys);
    // Of each batch, what each client sends and what it is answered.
    let batches: Vec<(Vec<Vec<u8>>, Vec<Vec<u8>>)> = (0..BATCHES)
        .map(|batch| {
            let pipeline = |client| {
                let (mut bytes, mut replies) = (Vec::new(), Vec::new());
                for at in 0..PIPELINE {
                    let at = (batch * clients + client) * PIPELINE + at;
                    let (words, reply) = what.request((thread, at), keys);
                    encode(&words, Protocol::Resp2, &mut bytes);
                    replies.extend_from_slice(&reply);
                }
                (bytes, replies)
            };
            (0..clients).map(pipeline).unzip()
        })
        .collect();
    barrier.wait();
    let begun = Instant::now();
    let mut done = 0;
    while begun.elapsed() < turn {
        let (sent, expected) = &batches[done % BATCHES];
        worker.run(sent);
        for (client, expected) in expected.iter().enumerate() {
            assert!(worker.replies(client) == *expected, "each is answered what was written last");
        }
        done += 1;
    }
    (done * clients * PIPELINE) as f64 / begun.elapsed().as_secs_f64()
}
