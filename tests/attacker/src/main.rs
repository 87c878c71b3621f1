//! Plays hostile clients against `weft serve`, or `weft gateway` in front of one, while honest ones check every reply.
//!
//! Owns the order of a run and its verdict: honest clients alone, each attack once, a fifth of the time in which the
//! allocator gets what so many clients need at once, the attack, then whether all is as before: every honest reply
//! right, memory back within a tenth, no descriptor left, the server alive and in order. [`server`] is the child
//! process, [`honest`] and [`hostile`] its clients, [`attacks`] what is done to it, [`state`] what it has in use,
//! [`latency`] how long it took, [`watch`] what takes too long. [`handshakes`] is a measurement and no attack.
//!
//! The seed decides what each hostile client does, round by round; which of them meet, the machine decides.

#![forbid(unsafe_code)]

mod attacks;
mod handshakes;
mod honest;
mod hostile;
mod latency;
mod rng;
mod server;
mod state;
mod watch;
mod web;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use clap::Parser;
use hdrhistogram::Histogram;
use weft_client::{Connection, Reply};

use attacks::{ATTACKS, Attack};
use honest::{Crowd, Loss};
use hostile::{Hostile, Tally, Target, Trouble, is_busy};
use rng::Rng;
use server::{LOOK, Role, Server};
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
/// Clients are paused for so long at most, and for a while not.
const PAUSE_MS_MAX: usize = 100;
/// An honest client that has waited for longer was held up: machines stall for seconds, and a server that does so for
/// the one will do it for longer for the next. Under a sanitizer it is shown and not judged.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// A round of an attack, a request of an honest client, the end of a server take no longer, or something hangs: far
/// longer than anything waits by itself, and for what a sanitizer makes slow.
const STEP_MAX: Duration = Duration::from_secs(180);
const SANITIZED_STEP_MAX: Duration = Duration::from_secs(900);
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
    /// More flags of the server, as `--with appendfsync=always`; each wins over the attacker's own.
    #[arg(long, value_name = "NAME=VALUE", value_parser = flag)]
    with: Vec<(String, String)>,
    /// The server is a gateway in front of another one.
    #[arg(long)]
    gateway: bool,
    /// The server behind that gateway closes what leaves too much unread: honest clients may be told that something is
    /// not known, and must be told nothing that is wrong.
    #[arg(long, requires = "gateway")]
    limited_behind: bool,
    /// Somebody uses CLIENT PAUSE again and again.
    #[arg(long)]
    pauses: bool,
    /// How often the server is stopped while it is attacked and started with what it has kept, which `--with
    /// appendonly=yes` lets it do.
    #[arg(long, default_value_t = 0)]
    restarts: u32,
    /// The server runs under a sanitizer, which keeps memory that was given back: it is shown and not judged.
    #[arg(long)]
    sanitized: bool,
}

fn flag(text: &str) -> Result<(String, String)> {
    let (name, value) = text.split_once('=').ok_or_else(|| anyhow::anyhow!("it wants NAME=VALUE"))?;
    Ok((format!("--{name}"), value.to_string()))
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
    let more = MEASURED.map(|(name, value)| (name.to_string(), value.to_string()));
    match handshakes::run(|| Server::start(program, 1, &more, Role::Server), count) {
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
    let role = match options.gateway {
        true => Role::Gateway { limits_behind: options.limited_behind },
        false => Role::Server,
    };
    watch::begin(if options.sanitized { SANITIZED_STEP_MAX } else { STEP_MAX });
    let mut server = Server::start(&options.server, THREADS, &options.with, role)?;
    let mut admin = state::administrator(&server)?;
    let mut crowd = Crowd::start(&server, Loss::of(&options.with), options.limited_behind, &mut rng)?;
    std::thread::sleep(IDLE);
    let alone = latencies(&crowd);

    let mut siege = Siege::new(options, chosen, Target::new(server.port, options.pauses)?, rng);
    siege.each_once();
    let time = Duration::from_secs(options.seconds);
    siege.last(time / WARMING, &mut server, &crowd, |_| {})?;
    for _ in 0..options.restarts {
        if siege.goes_on(&mut server, &crowd) {
            admin = siege.until_a_restart(time / WARMING, &mut server, &crowd)?;
        }
    }
    let before = State::settled(&mut admin, &server, None)?;
    println!("before: {before}");
    let _ = latencies(&crowd);
    siege.last(time - time / WARMING, &mut server, &crowd, |_| {})?;
    let attacked = latencies(&crowd);
    let mut findings = std::mem::take(&mut *lock(&siege.findings));
    let mut slow = String::new();
    if server.ended()?.is_none() {
        slow = state::slow_commands(&mut admin)?;
        let after = State::settled(&mut admin, &server, Some(&before).filter(|_| !options.sanitized))?;
        println!("after:  {after}");
        if !options.sanitized && !after.is_as(&before) {
            let grown = after.grown_since(&before);
            findings.push(format!("memory: {after}, and was {before}; the server says: {grown}"));
        }
    }
    findings.extend(crowd.stop());
    report(&siege.chosen, &lock(&siege.tallies), &crowd, &alone, &attacked);
    let held_up = crowd.seen.iter().filter(|seen| !options.sanitized && seen.longest() > WAIT_MAX);
    findings.extend(held_up.map(|seen| {
        let (wire, longest) = (&seen.wire, seen.longest());
        format!("{wire}: a client has waited for {longest:.1?}, and may for {WAIT_MAX:?}; slow were: {slow}")
    }));
    let _step = watch::step("the server ends".into());
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
    tallies: Mutex<Vec<Tally>>,
    findings: Mutex<Vec<String>>,
    /// The server is told to stop.
    server_ends: Arc<AtomicBool>,
}

impl<'o> Siege<'o> {
    fn new(options: &'o Options, chosen: Vec<&'static Attack>, target: Target, rng: Rng) -> Self {
        let tallies = Mutex::new(vec![Tally::default(); chosen.len()]);
        Self {
            options,
            chosen,
            target,
            rng,
            tallies,
            findings: Mutex::default(),
            server_ends: Arc::default(),
        }
    }

    /// Each attack by itself: what a server needs once, it has afterwards.
    fn each_once(&mut self) {
        for attack in &self.chosen {
            let mut hostile = Hostile::new(&self.target, self.rng.next());
            lock(&self.findings).extend(one_round(attack, &mut hostile));
        }
    }

    /// Nothing is found yet.
    fn goes_on(&self, server: &mut Server, crowd: &Crowd) -> bool {
        lock(&self.findings).is_empty() && crowd.failures().is_empty() && matches!(server.ended(), Ok(None))
    }

    /// All hostile clients at once, for so long, or until something is found; at its end, while they are still there,
    /// something is done to the server.
    fn last<T>(
        &mut self,
        time: Duration,
        server: &mut Server,
        crowd: &Crowd,
        end: impl FnOnce(&mut Server) -> T,
    ) -> Result<T> {
        let until = Instant::now() + time;
        let seeds: Vec<u64> = (0..self.options.attackers).map(|_| self.rng.next()).collect();
        let pauser = self.options.pauses.then(|| Rng::new(self.rng.next()));
        let pauser = pauser.map(|rng| state::connected(server).map(|admin| (admin, rng))).transpose()?;
        let (stop, siege) = (AtomicBool::new(false), &*self);
        std::thread::scope(|scope| {
            for seed in seeds {
                let stop = &stop;
                scope.spawn(move || siege.attack(seed, stop));
            }
            if let Some((admin, rng)) = pauser {
                let stop = &stop;
                scope.spawn(move || {
                    let found = pause(admin, rng, stop);
                    lock(&siege.findings).extend(found);
                });
            }
            while Instant::now() < until && siege.goes_on(server, crowd) {
                std::thread::sleep(LOOK);
            }
            let done = end(server);
            stop.store(true, Relaxed);
            Ok(done)
        })
    }

    /// What one hostile client does, until it is told to stop. What a server says that is about to end is no finding.
    fn attack(&self, seed: u64, stop: &AtomicBool) {
        let mut hostile = Hostile::new(&self.target, seed);
        while !stop.load(Relaxed) {
            let (at, found) = next_round(&self.chosen, &mut hostile);
            lock(&self.tallies)[at].add(&std::mem::take(&mut hostile.tally));
            if !self.server_ends.load(Relaxed) {
                lock(&self.findings).extend(found);
            }
        }
    }

    /// The same, but at the end the server is stopped and started; its administrator. Honest clients come back with
    /// what they know.
    fn until_a_restart(&mut self, time: Duration, server: &mut Server, crowd: &Crowd) -> Result<Connection> {
        let ends = Arc::clone(&self.server_ends);
        let (held, status) = self.last(time, server, crowd, |server| {
            ends.store(true, Relaxed);
            (crowd.hold(), server.stop())
        })?;
        self.server_ends.store(false, Relaxed);
        let status = status?;
        ensure!(status.success(), "the server was stopped and ended with {status}: {}", server.said());
        server.start_again()?;
        let admin = state::administrator(server)?;
        self.target = Target::new(server.port, self.options.pauses)?;
        held.go_on_at(server.port);
        Ok(admin)
    }
}

/// Pauses clients again and again, of writes or of all requests; what was found.
fn pause(mut admin: Connection, mut rng: Rng, stop: &AtomicBool) -> Option<String> {
    while !stop.load(Relaxed) {
        let time_ms = rng.between(1, PAUSE_MS_MAX).to_string();
        let mode = *rng.pick(&["WRITE", "ALL"]);
        // Where the server is gone, `Siege::last` notices.
        let told = admin.exchange(&["CLIENT", "PAUSE", &time_ms, mode]).ok()?;
        if matches!(told, Reply::Error(_)) && !is_busy(&told) {
            return Some(format!("CLIENT PAUSE is answered {told:?}"));
        }
        std::thread::sleep(Duration::from_millis(rng.between(1, 2 * PAUSE_MS_MAX) as u64));
        if rng.one_in(4) {
            admin.exchange(&["CLIENT", "UNPAUSE"]).ok()?;
        }
    }
    admin.exchange(&["CLIENT", "UNPAUSE"]).ok()?;
    None
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
    let _step = watch::step(format!("a round of '{}'", attack.name));
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
    println!(
        "\nhonest                  replies     refused  p99 alone, ms  p99 under attack, ms  longest, ms"
    );
    for ((seen, alone), attacked) in crowd.seen.iter().zip(alone).zip(attacked) {
        let ms = |latencies: &Histogram<u64>| latencies.value_at_quantile(0.99) as f64 / 1000.0;
        let (replies, refused) = (seen.replies.load(Relaxed), seen.refused.load(Relaxed));
        let (alone, attacked, longest) = (ms(alone), ms(attacked), seen.longest().as_secs_f64() * 1000.0);
        println!(
            "{:<20} {replies:>10} {refused:>11} {alone:>14.2} {attacked:>21.2} {longest:>12.1}",
            seen.wire
        );
    }
}
