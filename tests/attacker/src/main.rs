//! Plays hostile clients against `weft serve` while honest ones check every reply.
//!
//! Owns the order of a run and its verdict: honest clients alone, each attack once, the attack for so long, then whether
//! all is as before: every honest reply right, memory back within a tenth, no descriptor left, the server alive and in
//! order. [`server`] is the child process, [`honest`] and [`hostile`] its clients, [`attacks`] what is done to it.
//!
//! The seed decides what each hostile client does, round by round; which of them meet, the machine decides.

#![forbid(unsafe_code)]

mod attacks;
mod honest;
mod hostile;
mod rng;
mod server;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use hdrhistogram::Histogram;
use weft_client::{Config, Connection, Reply, Timeouts, TlsConfig};

use attacks::{ATTACKS, Attack};
use honest::Crowd;
use hostile::{Hostile, Tally, Target, Trouble};
use rng::Rng;
use server::{LOOK, PASSWORD, Server};

/// How long the honest are alone at first.
const IDLE: Duration = Duration::from_secs(2);
/// A round ends by itself after so long; one that waits for an answer may take longer.
const ROUND: Duration = Duration::from_millis(700);
/// How long memory and descriptors may take to come back.
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// How long an administrator waits for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(120);
/// A hostile client stores so much at most before it is thrown away.
const ROUNDS_BETWEEN_CLEANING: u64 = 50;
/// Memory must come back to within so many hundredths of what it was after each attack had been made once.
const MEMORY_HUNDREDTHS: u64 = 110;
/// Keys of a SCAN.
const SCAN_COUNT: &str = "1000";

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
    /// The server runs under a sanitizer, which keeps memory that was given back: it is shown and not judged.
    #[arg(long)]
    sanitized: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = options.seed.unwrap_or(now_s);
    println!("seed {seed}: {} hostile clients, {} s", options.attackers, options.seconds);
    match run(&options, seed) {
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
            eprintln!("{error:#} (seed {seed})");
            ExitCode::FAILURE
        }
    }
}

/// What was found.
fn run(options: &Options, seed: u64) -> Result<Vec<String>> {
    weft_client::fleet::raise_open_files();
    let mut rng = Rng::new(seed);
    let mut server = Server::start(&options.server)?;
    let mut admin = administrator(&server)?;
    let mut crowd = Crowd::start(&server, &mut rng)?;
    std::thread::sleep(IDLE);
    let alone = latencies(&crowd);
    let target = target(&server)?;
    let chosen: Vec<&'static Attack> =
        ATTACKS.iter().filter(|attack| attack.name.contains(&options.only)).collect();
    ensure!(!chosen.is_empty(), "no attack has '{}' in its name", options.only);

    // What a server needs once, it has after each attack.
    let mut findings = Vec::new();
    for attack in &chosen {
        let mut hostile = Hostile::new(&target, rng.next());
        findings.extend(one_round(attack, &mut hostile));
    }
    let clients = Clients::settled(&mut admin, &server, usize::MAX)?;
    forget(&mut admin)?;
    let before = server.resident_bytes()?;
    println!("before: {} descriptors, {} KiB resident", clients.descriptors, before >> 10);

    let _ = latencies(&crowd);
    let (tallies, found) = attack(options, &chosen, &target, &mut rng, &mut server, &crowd);
    findings.extend(found);
    let attacked = latencies(&crowd);
    if let Some(status) = server.ended()? {
        findings.push(format!("the server has ended: {status}\n{}", server.said()));
        return Ok(findings);
    }
    findings.extend(is_as_before(&mut admin, &server, clients.descriptors, before, options.sanitized)?);
    findings.extend(crowd.stop());
    report(&chosen, &tallies, &crowd, &alone, &attacked);
    let status = server.stop()?;
    if !status.success() {
        findings.push(format!("the server has ended with {status}\n{}", server.said()));
    }
    Ok(findings)
}

/// The administrator, who makes the users.
fn administrator(server: &Server) -> Result<Connection> {
    let config = Config::new("127.0.0.1", server.port)
        .with_auth(None, PASSWORD)
        .with_timeouts(Timeouts::all(Some(ANSWER_MAX)));
    let mut admin = Connection::connect(&config)?;
    let password = |user: (&str, &str)| format!(">{}", user.1);
    let (honest, hostile) = (password(honest::USER), password(hostile::USER));
    admin.command(&["ACL", "SETUSER", honest::USER.0, "on", &honest, "~h:*", "&h:*", "+@all"])?;
    // LCS takes the product of two lengths, which its rules would allow it.
    admin.command(&[
        "ACL",
        "SETUSER",
        hostile::USER.0,
        "on",
        &hostile,
        "~a:*",
        "&a:*",
        "+@all",
        "-@admin",
        "-@dangerous",
        "-lcs",
    ])?;
    Ok(admin)
}

fn target(server: &Server) -> Result<Target> {
    let insecure = TlsConfig { insecure: true, ..TlsConfig::default() };
    Ok(Target {
        address: ([127, 0, 0, 1], server.port).into(),
        tls: Arc::new(weft_client::tls_client_config(&insecure)?),
    })
}

impl Hostile {
    fn new(target: &Target, seed: u64) -> Self {
        let (rng, tally) = (Rng::new(seed), Tally::default());
        Self { target: target.clone(), rng, tally, until: Instant::now() + ROUND }
    }
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

/// The attack. Ends early when something is found.
fn attack(
    options: &Options,
    chosen: &[&'static Attack],
    target: &Target,
    rng: &mut Rng,
    server: &mut Server,
    crowd: &Crowd,
) -> (Vec<Tally>, Vec<String>) {
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let tallies = Mutex::new(vec![Tally::default(); chosen.len()]);
    let findings = Mutex::new(Vec::new());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..options.attackers {
            let mut hostile = Hostile::new(target, rng.next());
            let (stop, tallies, findings) = (&stop, &tallies, &findings);
            scope.spawn(move || attacker(chosen, &mut hostile, stop, tallies, findings));
        }
        while Instant::now() < until {
            let is_found = !findings.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
            if is_found || !crowd.failures().is_empty() || !matches!(server.ended(), Ok(None)) {
                break;
            }
            std::thread::sleep(LOOK);
        }
        stop.store(true, Relaxed);
    });
    (
        tallies.into_inner().unwrap_or_else(PoisonError::into_inner),
        findings.into_inner().unwrap_or_else(PoisonError::into_inner),
    )
}

/// One hostile client after the other, by the weights of their attacks.
fn attacker(
    chosen: &[&'static Attack],
    hostile: &mut Hostile,
    stop: &AtomicBool,
    tallies: &Mutex<Vec<Tally>>,
    findings: &Mutex<Vec<String>>,
) {
    let all = chosen.iter().map(|attack| attack.weight).sum();
    let mut rounds = 0;
    while !stop.load(Relaxed) {
        let mut left = hostile.rng.below(all);
        let at = chosen.iter().position(|attack| {
            let is_it = left < attack.weight;
            left = left.saturating_sub(attack.weight);
            is_it
        });
        let at = at.expect("the weights add up");
        hostile.tally = Tally::default();
        let found = one_round(chosen[at], hostile);
        tallies.lock().unwrap_or_else(PoisonError::into_inner)[at].add(&hostile.tally);
        findings.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
        rounds += 1;
        if rounds % ROUNDS_BETWEEN_CLEANING == 0 {
            // Where the server is gone, `attack` notices.
            let _ = clean(hostile);
        }
    }
}

/// Throws away what hostile clients have stored.
fn clean(hostile: &mut Hostile) -> hostile::Outcome {
    let mut line = hostile.authenticated()?;
    let keys = (0..hostile::KEYS).map(|at| format!("a:{at}"));
    let words: Vec<String> = std::iter::once("UNLINK".to_string()).chain(keys).collect();
    line.send(&words::as_resp(&words))?;
    line.drain();
    Ok(())
}

/// What the server has open when only the administrator and the honest are there.
struct Clients {
    descriptors: usize,
}

impl Clients {
    /// Waits until all hostile clients are gone, and their descriptors.
    fn settled(admin: &mut Connection, server: &Server, descriptors_max: usize) -> Result<Self> {
        let began = Instant::now();
        loop {
            let list: String = admin.query(&["CLIENT", "LIST"])?;
            let are_gone =
                list.lines().all(|line| line.contains("user=honest") || line.contains("user=default"));
            let descriptors = server.descriptors()?;
            if are_gone && descriptors <= descriptors_max && list.lines().count() > 1 {
                return Ok(Self { descriptors });
            }
            if began.elapsed() > SETTLE_MAX {
                let left: Vec<&str> =
                    list.lines().filter(|line| !line.contains("user=honest")).take(5).collect();
                anyhow::bail!(
                    "{descriptors} descriptors after {} s, and these clients:\n{}",
                    SETTLE_MAX.as_secs(),
                    left.join("\n")
                );
            }
            // Nothing tells when a server has closed what its clients left.
            std::thread::sleep(LOOK);
        }
    }
}

/// Throws away what hostile clients have stored in any database.
fn forget(admin: &mut Connection) -> Result<()> {
    for db in 0..16 {
        admin.command(&["SELECT", &db.to_string()])?;
        let mut cursor = "0".to_string();
        loop {
            let reply = admin.command(&["SCAN", &cursor, "MATCH", "a:*", "COUNT", SCAN_COUNT])?;
            let Reply::Array(parts) = reply else { anyhow::bail!("SCAN gives {reply:?}") };
            let [Reply::Bulk(next), Reply::Array(keys)] = &parts[..] else {
                anyhow::bail!("SCAN gives {parts:?}")
            };
            for key in keys {
                let Reply::Bulk(key) = key else { anyhow::bail!("a key is {key:?}") };
                admin.command(&[&b"UNLINK"[..], key])?;
            }
            cursor = String::from_utf8(next.clone())?;
            if cursor == "0" {
                break;
            }
        }
    }
    admin.command(&["SELECT", "0"])?;
    Ok(())
}

/// Whether descriptors and memory are what they were.
fn is_as_before(
    admin: &mut Connection,
    server: &Server,
    descriptors: usize,
    before: u64,
    sanitized: bool,
) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let clients = Clients::settled(admin, server, descriptors).context("connections are left")?;
    forget(admin)?;
    let began = Instant::now();
    let bound = before * MEMORY_HUNDREDTHS / 100;
    let after = loop {
        let after = server.resident_bytes()?;
        if sanitized || after <= bound || began.elapsed() > SETTLE_MAX {
            break after;
        }
        std::thread::sleep(LOOK);
    };
    println!(
        "after: {} descriptors, {} KiB resident, {} ms later",
        clients.descriptors,
        after >> 10,
        began.elapsed().as_millis()
    );
    if !sanitized && after > bound {
        let memory: String = admin.query(&["INFO", "memory"])?;
        findings.push(format!("{} KiB are resident, and were {} KiB\n{memory}", after >> 10, before >> 10));
    }
    Ok(findings)
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
    println!(
        "\n{:<34} {:>7} {:>11} {:>7} {:>9} {:>9}",
        "attack", "rounds", "connections", "cut", "KiB sent", "received"
    );
    let mut sum = Tally::default();
    for (attack, tally) in chosen.iter().zip(tallies) {
        line(attack.name, tally);
        sum.add(tally);
    }
    line("all", &sum);
    println!("\n{:<34} {:>9} {:>13} {:>19}", "honest", "replies", "p99 alone, ms", "p99 under attack, ms");
    for ((seen, alone), attacked) in crowd.seen.iter().zip(alone).zip(attacked) {
        let ms = |latencies: &Histogram<u64>| latencies.value_at_quantile(0.99) as f64 / 1000.0;
        println!(
            "{:<34} {:>9} {:>13.2} {:>19.2}",
            seen.wire,
            seen.replies.load(Relaxed),
            ms(alone),
            ms(attacked)
        );
    }
}

fn line(name: &str, tally: &Tally) {
    println!(
        "{name:<34} {:>7} {:>11} {:>7} {:>9} {:>9}",
        tally.rounds,
        tally.connections,
        tally.cut,
        tally.sent_bytes >> 10,
        tally.received_bytes >> 10
    );
}
