//! Two workers at once, and a merger that follows them: compared behind the gate, where both stand still.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use weft_engine::Engine;
use weft_engine::reply::Protocol;
use weft_store::ManualClock;

use crate::commands::{Commands, Rounds, in_one_piece};
use crate::dice::Dice;
use crate::shadow::{Shadow, config};
use crate::support::{self, Bench};

/// Commands of a worker between two looks.
const STEPS: usize = 300;
/// Clients of a worker.
const CLIENTS: usize = 3;

/// One worker's commands of a round.
fn work(bench: &mut Bench, commands: &Commands, seed: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let of = commands.of_round(&mut dice);
    let clients: Vec<u32> = (0..CLIENTS).map(|_| bench.connect(Protocol::Resp2)).collect();
    let mut steps = 0;
    for _ in 0..STEPS {
        // Who waits may have been served by the other worker.
        clients.iter().for_each(|client| drop(bench.hear(*client)));
        let first = if dice.one_in(3) { dice.below(CLIENTS) } else { 0 };
        let mut others = (0..CLIENTS).map(|at| clients[(first + at) % CLIENTS]);
        let Some(client) = others.find(|client| !bench.is_waiting(*client)) else { break };
        if dice.one_in(12) {
            bench.pass([1, 50, 1000][dice.below(3)]);
        }
        if dice.one_in(60) {
            bench.jump(dice.below(4) as u64);
        }
        if dice.one_in(4) {
            let row = in_one_piece(&mut dice);
            steps += row.len() as u64;
            bench.run_batch(&[(client, row)]);
            continue;
        }
        let words = commands.any(of, &mut dice);
        bench.run_args(client, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        steps += 1;
    }
    clients.into_iter().for_each(|client| bench.disconnect(client));
    steps
}

#[test]
fn two_workers_are_followed_by_their_effects_alone() {
    let (engine, clock): (&'static Engine, Arc<ManualClock>) = support::engine_of(config(2), 2);
    let mut shadow = Shadow::of(&engine.keyspace);
    let (mut rounds, steps) = (0, AtomicU64::new(0));
    for seed in Rounds::few(30) {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let workers: Vec<_> = [0, 1]
                .into_iter()
                .map(|worker| {
                    let (clock, steps) = (Arc::clone(&clock), &steps);
                    scope.spawn(move || {
                        let commands = Commands::new();
                        let mut bench = Bench::of((engine, clock), worker);
                        steps.fetch_add(work(&mut bench, &commands, 2 * seed + u64::from(worker)), Relaxed);
                    })
                })
                .collect();
            let (shadow, done) = (&mut shadow, &done);
            let follower = scope.spawn(move || {
                while !done.load(Relaxed) {
                    shadow.follow();
                    thread::yield_now();
                }
            });
            let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            done.store(true, Relaxed);
            follower.join().expect("the merger finds an order");
            assert!(ended.iter().all(Result::is_ok), "seed {seed}: a worker has failed");
        });
        shadow.follow();
        assert!(shadow.agrees(), "seed {seed}:\n{}", shadow.differences());
        rounds += 1;
    }
    let f = &shadow.figures;
    println!(
        "{rounds} rounds, {} commands of two workers: {} groups of {} effects; {} keys expired, {} swaps",
        steps.into_inner(),
        f.groups,
        f.effects,
        f.expired,
        f.swaps
    );
}
