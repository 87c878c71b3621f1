//! The same digest after every command, with one worker; and with two at once, compared behind the gate.

use weft_engine::reply::Protocol;
use weft_store::{ExpiryCycle, Keyspace, Recorder};

use crate::commands::{Commands, Rounds, in_one_piece, shown};
use crate::dice::Dice;
use crate::shadow::{Shadow, config};
use crate::support::{self, Bench};

/// Commands of a round.
const STEPS: usize = 150;
/// Clients of a round.
const CLIENTS: usize = 3;

/// What the background thread does to keys whose time has come.
fn expire(keyspace: &'static Keyspace, now_ms: u64) {
    let mut worker = keyspace.worker().expect("a place for one more");
    let mut recorder = Recorder::default();
    recorder.attach(keyspace);
    ExpiryCycle::default().step(&worker.enter(), now_ms, 20, &mut recorder);
    recorder.clear();
}

/// Settings of a round: with a limit of memory, events, and tracking, or without.
fn set_up(bench: &mut Bench, admin: u32, dice: &mut Dice) -> u32 {
    let policy = *dice.pick(&[&"allkeys-lru", &"volatile-ttl", &"allkeys-random"]);
    let events = if dice.one_in(3) { "AKEmn" } else { "" };
    bench.run_args(admin, &[b"FLUSHALL"]);
    bench.maintain();
    // With room for a few keys, or without a limit.
    let memory = if dice.one_in(3) { bench.engine.keyspace.used_bytes() + 3000 } else { 0 }.to_string();
    for (name, value) in
        [("maxmemory", &memory[..]), ("maxmemory-policy", policy), ("notify-keyspace-events", events)]
    {
        let set = bench.run_args(admin, &[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()]);
        assert_eq!(support::show(&set[0]), "OK");
    }
    let client = bench.connect(Protocol::Resp3);
    if dice.one_in(3) {
        bench.run(client, "CLIENT TRACKING ON BCAST");
    }
    client
}

#[test]
fn a_keyspace_that_is_fed_effects_alone_is_the_same() {
    let commands = Commands::new();
    let mut bench = Bench::of(support::engine_of(config(1), 1), 0);
    let keyspace = &bench.engine.keyspace;
    let mut shadow = Shadow::of(keyspace);
    let admin = bench.connect(Protocol::Resp2);
    let (mut steps, mut rounds) = (0_u64, 0);
    for seed in Rounds::few(60) {
        let mut dice = Dice::new(seed);
        let of = commands.of_round(&mut dice);
        let mut clients = vec![set_up(&mut bench, admin, &mut dice)];
        clients.extend((1..CLIENTS).map(|_| bench.connect(Protocol::Resp2)));
        let mut ran: Vec<String> = Vec::new();
        for _ in 0..STEPS {
            let first = if dice.one_in(3) { dice.below(CLIENTS) } else { 0 };
            let mut others = (0..CLIENTS).map(|at| clients[(first + at) % CLIENTS]);
            let Some(client) = others.find(|client| !bench.is_waiting(*client)) else { break };
            match dice.below(12) {
                0 => bench.pass([1, 50, 1000][dice.below(3)]),
                1 => bench.clock.set(bench.clock_ms().saturating_sub([1, 500][dice.below(2)])),
                2 => expire(keyspace, bench.clock_ms()),
                3 if dice.one_in(4) => bench.jump(dice.below(4) as u64),
                _ => {}
            }
            if dice.one_in(8) {
                let row = in_one_piece(&mut dice);
                ran.extend(row.iter().map(|line| format!("{client}> {line}")));
                steps += row.len() as u64;
                bench.run_batch(&[(client, row)]);
            } else {
                let words = commands.any(of, &mut dice);
                ran.push(format!("{client}> {}", shown(&words)));
                bench.run_args(client, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
                steps += 1;
            }
            shadow.follow();
            if !shadow.agrees() {
                panic!("seed {seed}, behind the last of:\n{}\n{}", ran.join("\n"), shadow.differences());
            }
        }
        clients.into_iter().for_each(|client| bench.disconnect(client));
        rounds += 1;
    }
    let f = &shadow.figures;
    println!(
        "{rounds} rounds, {steps} commands: {} groups of {} effects; {} keys expired, {} evicted, {} fields expired, {} \
         swaps",
        f.groups, f.effects, f.expired, f.evicted, f.fields, f.swaps
    );
    assert!(f.expired > 0 && f.evicted > 0 && f.fields > 0 && f.swaps > 0, "all were met");
}
