//! A client that only looks how long a GET takes while something else goes on. Owns its thread.
//!
//! It asks at a fixed rate on a connection of its own and measures from sending to receiving. So a pause of the server
//! is seen by a request that was on its way, and lateness of the probe itself, which sleeps in between, is not counted.
//! What it cannot tell apart is a server that pauses and a machine that gives it no time: the same is measured while
//! nothing goes on, and both figures are shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use hdrhistogram::Histogram;
use weft_client::{Connection, Protocol};

use super::super::generator::histogram;
use super::contestants::Running;
use super::trial::{PAUSE_MS_MAX, Trial};
use weft_measure::Random;
use weft_measure::verdict::Goal;

/// Between two requests: short enough that a pause of a millisecond is met by several.
const INTERVAL: Duration = Duration::from_micros(250);
/// How long it is looked what the machine does by itself.
pub(super) const IDLE: Duration = Duration::from_secs(5);

/// A probe that runs.
pub(super) struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Histogram<u64>>>,
}

/// What a probe has seen.
pub(super) struct Seen(Histogram<u64>);

impl Probe {
    /// Asks for keys below `keyspace`, at random, so that every shard is met.
    pub(super) fn start(running: &Running, keyspace: u64) -> Result<Probe> {
        let mut connection = Connection::connect(&running.config(Protocol::Resp3))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen = histogram();
            let mut random = Random::new(11);
            let mut due = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                let key = format!("key:{:012}", random.below(keyspace.max(1)));
                let sent = Instant::now();
                connection.exchange(&["GET", &key])?;
                let took = u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX);
                seen.saturating_record(took);
                // What was missed is not made up for: a burst would be load of the probe's own.
                due = (due + INTERVAL).max(sent);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            Ok(seen)
        });
        Ok(Probe { stop, thread })
    }

    pub(super) fn end(self) -> Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.join().map_err(|_| anyhow!("the probe's thread panicked"))?;
        Ok(Seen(joined.context("the probe")?))
    }

    /// Looks for a while without anything going on.
    pub(super) fn idle(running: &Running, keyspace: u64) -> Result<Seen> {
        let probe = Probe::start(running, keyspace)?;
        std::thread::sleep(IDLE);
        probe.end()
    }
}

impl Seen {
    fn longest_ms(&self) -> f64 {
        self.0.max() as f64 / 1e6
    }
}

/// Adds what a client saw and what the server says to a trial. `seen`: while it was at work; `idle`: before.
pub(super) fn pauses(trial: &mut Trial, running: &Running, seen: &Seen, idle: &Seen) {
    let most = Goal::AtMost(PAUSE_MS_MAX);
    if let Some(us) = running.info("stats", "background_step_max_cpu_us") {
        trial.asked("longest step of the server, CPU time, ms", us as f64 / 1e3, most);
    }
    if let Some(us) = running.info("stats", "background_step_max_us") {
        trial.note("longest step of the server, by the wall, ms", us as f64 / 1e3);
    }
    trial.asked_over("longest GET of a client, ms", (seen.longest_ms(), idle.longest_ms()), most);
    trial.note("longest GET while nothing goes on, ms", idle.longest_ms());
    let over = |seen: &Seen| {
        let bound_ns = (PAUSE_MS_MAX * 1e6) as u64;
        seen.0.len() - seen.0.count_between(0, bound_ns)
    };
    trial.note("GETs above 1 ms", over(seen) as f64);
    trial.note("GETs above 1 ms while nothing goes on", over(idle) as f64);
    trial.note("GETs looked at", seen.0.len() as f64);
}
