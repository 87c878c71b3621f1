//! Owns: what thousands of handshakes at once cost a client that has a session: its latency alone, beside a client's
//! core that is busy, and during them. Does not own: attacks.
//!
//! The server has the first core, all clients the second. Those who shake hands are as little urgent as a thread can
//! be, so that the client that is measured waits for the server and not for them.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use rustix::thread::{CpuSet, sched_setaffinity};
use weft_client::{Config, Connection, Timeouts, TlsConfig};

use crate::hostile::{Hostile, Line, Target, Trouble};
use crate::latency;
use crate::server::{PASSWORD, Server};

const SERVER_CORE: usize = 0;
const CLIENT_CORE: usize = 1;
/// How long the client is measured where nothing ends the time.
const ALONE: Duration = Duration::from_secs(3);
/// How long the end of thousands of connections is measured.
const ENDING: Duration = Duration::from_secs(1);
/// Between two of its requests.
const THINKING: Duration = Duration::from_micros(200);
/// Least urgent.
const NICE: i32 = 19;
/// An answer that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures, and prints what came of it.
pub(crate) fn run(mut server: impl FnMut() -> Result<Server>, count: usize) -> Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    ensure!(cores > CLIENT_CORE, "it takes two cores, one for the server and one for its clients");
    pin(SERVER_CORE)?;
    let mut server = server()?;
    pin(CLIENT_CORE)?;
    let mut client = client(&server)?;
    let mut admin = crate::state::administrator(&server)?;

    let alone = measured(&mut client, || std::thread::sleep(ALONE))?;
    let busy = measured(&mut client, || {
        let until = Instant::now() + ALONE;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    })?;
    admin.command(&["CONFIG", "RESETSTAT"])?;
    let target = Target::new(server.port, false)?;
    let mut shaken = Ok((Duration::ZERO, Vec::new()));
    let during = measured(&mut client, || shaken = shake_hands(&target, count))?;
    let (took, lines) = shaken?;
    let rounds = longest_rounds(&mut admin)?;
    let ending = measured(&mut client, || {
        drop(lines);
        std::thread::sleep(ENDING);
    })?;
    let last_rounds = longest_rounds(&mut admin)?;

    println!(
        "a client under TLS that asks GET, a request at a time; the server on one core, its clients on the other"
    );
    println!("{:<44} {:>8} {:>9} {:>9} {:>9}", "microseconds", "requests", "p50", "p99", "longest");
    let rows = [
        ("alone".to_string(), &alone),
        ("beside somebody who uses the clients' core".into(), &busy),
        (format!("during {count} handshakes, {:.1} s", took.as_secs_f64()), &during),
        ("while their connections end".into(), &ending),
    ];
    for (name, latencies) in rows {
        let [half, most] = [0.5, 0.99].map(|quantile| latencies.value_at_quantile(quantile));
        println!("{name:<44} {:>8} {half:>9} {most:>9} {:>9}", latencies.len(), latencies.max());
    }
    let longer_us = during.value_at_quantile(0.99).saturating_sub(busy.value_at_quantile(0.99));
    println!("p99 is {longer_us} us longer; {:.0} handshakes a second", count as f64 / took.as_secs_f64());
    println!("the longest rounds of the server: {rounds} in the handshakes, {last_rounds} when they ended");
    server.stop()?;
    Ok(())
}

/// The longest rounds since the figures were taken last, by the wall and by CPU.
fn longest_rounds(admin: &mut Connection) -> Result<String> {
    let info: String = admin.query(&["INFO", "stats"])?;
    admin.command(&["CONFIG", "RESETSTAT"])?;
    let figure = |name| info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("unknown");
    let (wall, cpu) = (figure("eventloop_duration_max:"), figure("eventloop_duration_max_cpu:"));
    Ok(format!("{wall} us ({cpu} of CPU)"))
}

fn pin(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}

fn client(server: &Server) -> Result<Connection> {
    let config = Config::new("127.0.0.1", server.port)
        .with_auth(None, PASSWORD)
        .with_timeouts(Timeouts::all(Some(PATIENCE)));
    let insecure = TlsConfig { insecure: true, ..TlsConfig::default() };
    let mut client = Connection::connect(&Config { tls: Some(insecure), ..config })?;
    client.command(&["SET", "key", "value"])?;
    Ok(client)
}

/// The latencies of a client, in microseconds, while a thread that is less urgent does something.
fn measured(client: &mut Connection, act: impl FnOnce() + Send) -> Result<Histogram<u64>> {
    let mut latencies = latency::histogram();
    let is_over = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let told = Arc::clone(&is_over);
        scope.spawn(move || {
            // Where it fails, the figures are worse than they are.
            let _ = rustix::process::nice(NICE);
            act();
            told.store(true, Relaxed);
        });
        while !is_over.load(Relaxed) {
            let asked = Instant::now();
            let reply: String = client.query(&["GET", "key"])?;
            latency::note(&mut latencies, asked.elapsed());
            ensure!(reply == "value", "GET answered {reply}");
            std::thread::sleep(THINKING);
        }
        Ok(latencies)
    })
}

/// All of them begin before the first one ends, and each must end well.
fn shake_hands(target: &Target, count: usize) -> Result<(Duration, Vec<Line>)> {
    let mut hostile = Hostile::new(target, 1);
    let began = Instant::now();
    let mut begun = Vec::with_capacity(count);
    for _ in 0..count {
        let mut socket = hostile.socket()?;
        let mut session = hostile.session().map_err(told)?;
        let mut hello = Vec::new();
        session.write_tls(&mut hello)?;
        socket.write_all(&hello)?;
        begun.push((socket, session));
    }
    let mut lines: Vec<Line> = Vec::with_capacity(count);
    for (socket, session) in begun {
        lines.push(Line::under(session, socket).map_err(told)?);
    }
    Ok((began.elapsed(), lines))
}

fn told(trouble: Trouble) -> anyhow::Error {
    anyhow::anyhow!("a handshake failed: {trouble:?}")
}
