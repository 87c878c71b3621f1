//! Plays hostile clients against `weft serve` while honest ones check every reply.
//!
//! Owns the order of a run and its verdict: honest clients alone, each attack once, a fifth of the time in which the
//! allocator gets what so many clients need at once, the attack, then whether all is as before: every honest reply
//! right, memory back within a tenth, no descriptor left, the server alive and in order. [`server`] is the child
//! process, [`honest`] and [`hostile`] its clients, [`attacks`] what is done to it, [`state`] what it has in use.
//! [`handshakes`] is a measurement and no attack.
//!
//! The seed decides what each hostile client does, round by round; which of them meet, the machine decides.

#![forbid(unsafe_code)]

mod attacks;
mod handshakes;
mod honest;
mod hostile;
mod rng;
mod server;
mod state;
mod web;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use clap::Parser;
use hdrhistogram::Histogram;

use attacks::{ATTACKS, Attack};
use honest::Crowd;
use hostile::{Hostile, Tally, Target, Trouble};
use rng::Rng;
use server::{LOOK, Server};
use state::State;

/// Threads of a server that is attacked.
const THREADS: usize = 2;
/// Flags of one that is measured: as many clients as there are to be, and time for all of them.
const MEASURED: [(&str, &str); 4] = [
    ("--maxclients", "30000"),
    ("--tcp-backlog", "30000"),
    ("--auth-timeout", "120"),
    ("--tls-handshake-timeout", "120"),
];
/// How long the honest are alone at first.
const IDLE: Duration = Duration::from_secs(2);
/// A round ends by itself after so long; one that waits for an answer may take longer.
const ROUND: Duration = Duration::from_millis(700);
/// Rounds of a hostile client after which it throws away what such clients have stored.
const ROUNDS_BETWEEN_CLEANING: u64 = 50;
/// What of the time is spent before memory is first looked at.
const WARMING: u32 = 5;

/// Hostile clients against `weft serve`, while honest ones check every reply.
#[derive(Debug, Parser)]
struct Options {
    /// The program: `weft`.
    #[arg(long)]
    server: PathBuf,
    /// How long the attack takes.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Hostile clients at once.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    attackers: u64,
    /// What they do; a run prints its own.
    #[arg(long)]
    seed: Option<u64>,
    /// Only attacks whose names have this in them.
    #[arg(long, default_value = "")]
    only: String,
    /// No attack: what so many handshakes at once cost a client that has a session.
    #[arg(long)]
    handshakes: Option<usize>,
    /// The server runs under a sanitizer, which keeps memory that was given back: it is shown and not judged.
    #[arg(long)]
    sanitized: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(count) = options.handshakes {
        return measure(&options.server, count);
    }
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = options.seed.unwrap_or(now_s);
    println!("seed {seed}: {} hostile clients, {} s", options.attackers, options.seconds);
    match run(&options, Rng::new(seed)) {
        Ok(findings) if findings.is_empty() => {
            println!("nothing found");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in &findings {
                eprintln!("FOUND: {finding}");
            }
            eprintln!("again with --seed {seed}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("FOUND: {error:#}\nagain with --seed {seed}");
            ExitCode::FAILURE
        }
    }
}

fn measure(program: &Path, count: usize) -> ExitCode {
    weft_client::fleet::raise_open_files();
    match handshakes::run(|| Server::start(program, 1, &MEASURED), count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What was found.
fn run(options: &Options, mut rng: Rng) -> Result<Vec<String>> {
    weft_client::fleet::raise_open_files();
    let chosen: Vec<_> = ATTACKS.iter().filter(|attack| attack.name.contains(&options.only)).collect();
    ensure!(!chosen.is_empty(), "no attack has '{}' in its name", options.only);
    let mut server = Server::start(&options.server, THREADS, &[])?;
    let mut admin = state::administrator(&server)?;
    let mut crowd = Crowd::start(&server, &mut rng)?;
    std::thread::sleep(IDLE);
    let alone = latencies(&crowd);

    let mut siege = Siege::new(options, chosen, Target::new(server.port)?, rng);
    siege.each_once();
    let time = Duration::from_secs(options.seconds);
    siege.last(time / WARMING, &mut server, &crowd);
    let before = State::settled(&mut admin, &server, None)?;
    println!("before: {before}");
    let _ = latencies(&crowd);
    siege.last(time - time / WARMING, &mut server, &crowd);
    let attacked = latencies(&crowd);
    let mut findings = siege.findings;
    if server.ended()?.is_none() {
        let after = State::settled(&mut admin, &server, Some(&before).filter(|_| !options.sanitized))?;
        println!("after:  {after}");
        if !options.sanitized && !after.is_as(&before) {
            let grown = after.grown_since(&before);
            findings.push(format!("memory: {after}, and was {before}; the server says: {grown}"));
        }
    }
    findings.extend(crowd.stop());
    report(&siege.chosen, &siege.tallies, &crowd, &alone, &attacked);
    let status = server.stop()?;
    if !status.success() || !server.said().is_empty() && options.sanitized {
        findings.push(format!("the server has ended with {status}\n{}", server.said()));
    }
    Ok(findings)
}

/// Hostile clients, and what they have come to.
struct Siege<'o> {
    options: &'o Options,
    chosen: Vec<&'static Attack>,
    target: Target,
    rng: Rng,
    tallies: Vec<Tally>,
    findings: Vec<String>,
}

impl<'o> Siege<'o> {
    fn new(options: &'o Options, chosen: Vec<&'static Attack>, target: Target, rng: Rng) -> Self {
        let tallies = vec![Tally::default(); chosen.len()];
        Self { options, chosen, target, rng, tallies, findings: Vec::new() }
    }

    /// Each attack by itself: what a server needs once, it has afterwards.
    fn each_once(&mut self) {
        for attack in &self.chosen {
            let mut hostile = Hostile::new(&self.target, self.rng.next());
            self.findings.extend(one_round(attack, &mut hostile));
        }
    }

    /// All hostile clients at once, for so long, or until something is found.
    fn last(&mut self, time: Duration, server: &mut Server, crowd: &Crowd) {
        let until = Instant::now() + time;
        let (tallies, findings) = (Mutex::new(&mut self.tallies), Mutex::new(&mut self.findings));
        let (stop, chosen) = (AtomicBool::new(false), &self.chosen);
        std::thread::scope(|scope| {
            for _ in 0..self.options.attackers {
                let mut hostile = Hostile::new(&self.target, self.rng.next());
                let (stop, tallies, findings) = (&stop, &tallies, &findings);
                scope.spawn(move || {
                    while !stop.load(Relaxed) {
                        let (at, found) = next_round(chosen, &mut hostile);
                        lock(tallies)[at].add(&std::mem::take(&mut hostile.tally));
                        lock(findings).extend(found);
                    }
                });
            }
            while Instant::now() < until
                && lock(&findings).is_empty()
                && crowd.failures().is_empty()
                && matches!(server.ended(), Ok(None))
            {
                std::thread::sleep(LOOK);
            }
            stop.store(true, Relaxed);
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A round of one of the attacks, by their weights: which, and what was found.
fn next_round(chosen: &[&'static Attack], hostile: &mut Hostile) -> (usize, Option<String>) {
    let mut left = hostile.rng.below(chosen.iter().map(|attack| attack.weight).sum());
    let at = chosen.iter().position(|attack| {
        let is_it = left < attack.weight;
        left = left.saturating_sub(attack.weight);
        is_it
    });
    let at = at.expect("the weights add up");
    let found = one_round(chosen[at], hostile);
    hostile.rounds += 1;
    if hostile.rounds.is_multiple_of(ROUNDS_BETWEEN_CLEANING) {
        // Where the server is gone, `Siege::last` notices.
        let _ = hostile.throw_away();
    }
    (at, found)
}

/// One round; what was found.
fn one_round(attack: &Attack, hostile: &mut Hostile) -> Option<String> {
    hostile.until = Instant::now() + ROUND;
    hostile.tally.rounds += 1;
    match (attack.round)(hostile) {
        Ok(()) => None,
        Err(Trouble::Cut(_)) => {
            hostile.tally.cut += 1;
            None
        }
        Err(Trouble::Wrong(text)) => Some(format!("{}: {text}", attack.name)),
    }
}

fn latencies(crowd: &Crowd) -> Vec<Histogram<u64>> {
    crowd.seen.iter().map(|seen| seen.take_latencies()).collect()
}

fn report(
    chosen: &[&'static Attack],
    tallies: &[Tally],
    crowd: &Crowd,
    alone: &[Histogram<u64>],
    attacked: &[Histogram<u64>],
) {
    println!("\nattack                              rounds connections     cut  KiB sent  received");
    let mut sum = Tally::default();
    for (attack, tally) in chosen.iter().zip(tallies) {
        println!("{:<34} {tally}", attack.name);
        sum.add(tally);
    }
    println!("{:<34} {sum}", "all");
    println!("\nhonest                  replies   told busy  p99 alone, ms  p99 under attack, ms");
    for ((seen, alone), attacked) in crowd.seen.iter().zip(alone).zip(attacked) {
        let ms = |latencies: &Histogram<u64>| latencies.value_at_quantile(0.99) as f64 / 1000.0;
        let (replies, busy) = (seen.replies.load(Relaxed), seen.busy.load(Relaxed));
        println!("{:<20} {replies:>10} {busy:>11} {:>14.2} {:>21.2}", seen.wire, ms(alone), ms(attacked));
    }
}
