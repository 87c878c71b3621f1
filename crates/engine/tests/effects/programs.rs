//! Programs of random commands that fail at a random step: everything is as it was, and told to nobody; those that do
//! not fail are followed by their effects.

use std::fmt::Write as _;

use weft_engine::program::Program;
use weft_engine::reply::Protocol;
use weft_store::{Digest, World};

use crate::commands::{Commands, Rounds};
use crate::dice::Dice;
use crate::shadow::{Shadow, config};
use crate::support::{self, Bench};

/// Commands of a program at most.
const COMMANDS_MAX: usize = 30;
/// Programs of a round.
const PROGRAMS: usize = 25;

/// Words as JSON: what is no text as base64.
fn json(words: &[Vec<u8>]) -> String {
    let one = |word: &Vec<u8>| match std::str::from_utf8(word) {
        Ok(text) => serde_json::to_string(&text.replace('$', "$$")).expect("a text is JSON"),
        Err(_) => format!("{{\"base64\":\"{}\"}}", base64(word)),
    };
    format!("[{}]", words.iter().map(one).collect::<Vec<_>>().join(","))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().enumerate().fold(0, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at > group.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

/// A command that may be a step, as JSON.
fn step(commands: &Commands, of: [usize; 4], dice: &mut Dice) -> String {
    loop {
        let step = json(&commands.any(of, dice));
        if Program::parse(format!("{{\"steps\":[{step}]}}").as_bytes()).is_ok() {
            return step;
        }
    }
}

#[test]
fn a_program_that_fails_at_a_random_step_leaves_everything_as_it_was() {
    let (engine, clock) = support::engine_of(config(2), 1);
    let mut shadow = Shadow::of(&engine.keyspace);
    let commands = Commands::new();
    let (mut failed, mut kept, mut taken_back) = (0, 0, 0);
    for seed in Rounds::few(60) {
        let mut dice = Dice::new(seed);
        let mut bench = Bench::of((engine, clock.clone()), 0);
        let client = bench.connect(Protocol::Resp3);
        let of = commands.of_round(&mut dice);
        for _ in 0..PROGRAMS {
            let words = commands.any(of, &mut dice);
            bench.run_args(client, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            if bench.is_waiting(client) {
                bench.end_wait(client, weft_engine::blocking::End::Timeout);
            }
            // The command may have been MULTI.
            bench.run_args(client, &[b"DISCARD"]);
            // Of random commands few long programs stay.
            let most = if dice.one_in(2) { COMMANDS_MAX } else { 3 };
            let count = 1 + dice.below(most);
            let mut steps: Vec<String> = (0..count).map(|_| step(&commands, of, &mut dice)).collect();
            let fails = dice.one_in(2);
            if fails {
                steps.insert(dice.below(count + 1), "{\"fail\":\"MADE\"}".into());
            }
            let mut program = String::from("{\"limits\":{\"time-ms\":60000},\"steps\":[");
            let _ = write!(program, "{}]}}", steps.join(","));
            bench.run_args(client, &[b"CONFIG", b"SET", b"program-time-ms-max", b"60000"]);
            let before = digest(&mut bench, client);
            let replies = bench.run_args(client, &[b"PROGRAM", b"EVAL", program.as_bytes()]);
            let has_failed = matches!(&replies[..], [weft_protocol::Reply::Error(_)]);
            assert!(has_failed || !fails, "seed {seed}: {program}: {replies:?}");
            if has_failed {
                assert_eq!(digest(&mut bench, client), before, "seed {seed}: {program}: {replies:?}");
                failed += 1;
                taken_back += count;
            } else {
                kept += 1;
            }
        }
        shadow.follow();
        assert!(shadow.agrees(), "seed {seed}:\n{}", shadow.differences());
        bench.disconnect(client);
    }
    println!(
        "{failed} programs failed, of {taken_back} commands; {kept} stayed, and were followed by their effects"
    );
    assert!(failed > 100 && kept > 100, "{failed} failed, {kept} stayed");
}

fn digest(bench: &mut Bench, client: u32) -> Digest {
    let mut digest = Digest::default();
    bench.attempt(client, |attempt| {
        digest = attempt.look(|world: &World<'_>| Digest::of_keyspace(world));
        false
    });
    digest
}
