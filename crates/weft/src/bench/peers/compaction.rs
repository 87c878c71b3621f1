//! Memory after every second key was deleted at random, and while values of random sizes are overwritten. Owns both
//! trials.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use weft_client::{Connection, Protocol};

use super::super::cases::{self, Case};
use super::super::report;
use super::super::run::{self, Plan};
use super::super::sizes::Sizes;
use super::contestants::{Contestant, Field, Running};
use super::measure::Manner;
use super::memory::{VALUE_BYTES, filling};
use super::probe::{self, Probe};
use super::trial::Trial;
use weft_measure::Random;
use weft_measure::verdict::Goal;

/// How long memory has to come back.
const PATIENCE: Duration = Duration::from_secs(10);
/// The share of the freed bytes that must have come back by then, per cent.
const BACK_MIN: f64 = 80.0;
/// Between two looks at memory.
const LOOK: Duration = Duration::from_millis(100);
/// Keys deleted in one round trip.
const DELETES: usize = 500;
/// Sizes of values that are overwritten.
const SIZES: (usize, usize) = (1, 1000);
/// Keys that are overwritten, over those that are weighed.
const OVERWRITTEN_SHARE: u64 = 4;
/// How much overwriting may add, per cent.
const GROWTH_MAX: f64 = 10.0;
/// Overwriting goes on for so long before growth is counted from there: each key has been written again about twice.
const SETTLING_SHARE: u32 = 20;

/// What is weighed at one time.
#[derive(Clone, Copy, Debug)]
struct Weighed {
    resident: u64,
    used: u64,
}

fn weigh(running: &Running) -> Result<Weighed> {
    let used = running.info("memory", "used_memory").context("used_memory")?;
    Ok(Weighed { resident: running.usage()?.resident_bytes, used })
}

/// Weft, and Valkey to see how much of it is the machine's.
fn servers(field: &Field) -> impl Iterator<Item = (usize, &Contestant)> {
    field.contestants.iter().enumerate().filter(|(_, one)| matches!(one.id, "weft" | "valkey"))
}

/// Deletes every second key at random, for each size of values.
pub(super) fn compaction(
    field: &Field,
    manner: &Manner,
    count: u64,
    stop: &AtomicBool,
) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for bytes in VALUE_BYTES {
        for (index, contestant) in servers(field) {
            eprintln!("compaction: values of {bytes} bytes, {}", contestant.id);
            let running = contestant.start(manner.start(index, 1, bytes))?;
            trials.push(halve(&running, contestant.id, (count, bytes), stop)?);
        }
    }
    Ok(trials)
}

fn halve(running: &Running, id: &str, (count, bytes): (u64, usize), stop: &AtomicBool) -> Result<Trial> {
    let server = running.server(Protocol::Resp2);
    let plan = filling(count, Sizes::Fixed(bytes));
    run::prepare(&server, &plan, &[cases::preload(count)], stop)?;
    let idle = Probe::idle(running, count)?;
    running.ask(&["CONFIG", "RESETSTAT"])?;
    let full = weigh(running)?;
    let deleting = Instant::now();
    delete_every_second(running, count, stop)?;
    let deleting = deleting.elapsed();
    let (freed_by, probe) = (Instant::now(), Probe::start(running, count)?);
    let deleted = weigh(running)?;
    let freed = full.used.saturating_sub(deleted.used);
    let share =
        |now: Weighed| 100.0 * full.resident.saturating_sub(now.resident) as f64 / freed.max(1) as f64;
    let mut reached = None;
    let mut back = share(deleted);
    while freed_by.elapsed() < PATIENCE {
        if stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        std::thread::sleep(LOOK);
        back = share(Weighed { resident: running.usage()?.resident_bytes, used: 0 });
        if reached.is_none() && back >= BACK_MIN {
            reached = Some(freed_by.elapsed());
        }
    }
    let seen = probe.end()?;
    let label = format!("half of {count} keys of {bytes} bytes deleted");
    let mut trial = Trial::new("compaction", label, id);
    trial.asked("given back of the freed bytes after 10 s, %", back, Goal::AtLeast(BACK_MIN));
    if let Some(time) = reached {
        trial.note("80 % given back after, s", time.as_secs_f64());
    }
    probe::pauses(&mut trial, running, &seen, &idle);
    trial.note("freed, MiB", freed as f64 / f64::from(1 << 20));
    trial.note("deleting took, s", deleting.as_secs_f64());
    Ok(trial)
}

/// One of each two neighbours, whichever the dice say: no order that an allocator could profit from.
fn delete_every_second(running: &Running, count: u64, stop: &AtomicBool) -> Result<()> {
    let mut connection = Connection::connect(&running.config(Protocol::Resp3))?;
    let mut random = Random::new(7);
    let mut pair = 0;
    while pair < count / 2 {
        if stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        let mut pipeline = connection.pipeline();
        while pipeline.len() < DELETES && pair < count / 2 {
            let key = format!("key:{:012}", pair * 2 + random.below(2));
            pipeline.add(&["DEL", &key])?;
            pair += 1;
        }
        let replies = pipeline.execute()?;
        ensure!(replies.iter().all(|reply| *reply == weft_protocol::Reply::Int(1)), "a key was not there");
    }
    Ok(())
}

/// Overwrites keys with values of random sizes for `time`, and looks how memory grows.
pub(super) fn overwriting(
    field: &Field,
    manner: &Manner,
    (count, time): (u64, Duration),
    stop: &AtomicBool,
) -> Result<Vec<Trial>> {
    let count = count / OVERWRITTEN_SHARE;
    let mut trials = Vec::new();
    for (index, contestant) in servers(field) {
        eprintln!("overwriting: {}", contestant.id);
        let running = contestant.start(manner.start(index, 1, SIZES.1))?;
        trials.push(overwrite(&running, contestant.id, (count, time), stop)?);
    }
    Ok(trials)
}

fn overwrite(
    running: &Running,
    id: &str,
    (count, time): (u64, Duration),
    stop: &AtomicBool,
) -> Result<Trial> {
    let server = running.server(Protocol::Resp3);
    let sizes = Sizes::Between(SIZES.0, SIZES.1);
    let fill = filling(count, sizes.clone());
    run::prepare(&server, &fill, &[cases::preload(count)], stop)?;
    let filled = weigh(running)?;
    running.ask(&["CONFIG", "RESETSTAT"])?;
    let case: Case = cases::single(&cases::preload(count).argv);
    let (mut most, mut last, mut written) = (filled, filled, 0);
    let began = Instant::now();
    // Sizes and keys are drawn anew in each slice, so that no ring of prepared requests comes round.
    let slice = (time / SETTLING_SHARE).clamp(Duration::from_millis(500), Duration::from_secs(5));
    let mut seed = 1;
    while began.elapsed() < time {
        seed += 1;
        let plan = Plan { connections: 4, pipeline: 50, duration: Some(slice), seed, ..fill.clone() };
        let plan = Plan { distribution: super::super::keys::Distribution::Uniform, ..plan };
        let measured = run::run(&server, &plan, &case, stop)?;
        if let Some(trouble) = report::trouble(&measured) {
            bail!("{trouble}");
        }
        written += measured.counts.replies;
        last = weigh(running)?;
        most.resident = most.resident.max(last.resident);
        most.used = most.used.max(last.used);
    }
    let growth = |now: u64, before: u64| 100.0 * (now as f64 / before as f64 - 1.0);
    let seconds = time.as_secs();
    let label =
        format!("{count} keys overwritten for {seconds} s, values of {} to {} bytes", SIZES.0, SIZES.1);
    let mut trial = Trial::new("overwriting", label, id);
    let bound = Goal::AtMost(GROWTH_MAX);
    trial.asked("growth of resident memory at its most, %", growth(most.resident, filled.resident), bound);
    trial.asked("growth of resident memory at the end, %", growth(last.resident, filled.resident), bound);
    trial.note("growth of used_memory at its most, %", growth(most.used, filled.used));
    trial.note("resident at the beginning, MiB", filled.resident as f64 / f64::from(1 << 20));
    trial.note("values written, millions", written as f64 / 1e6);
    if let Some(us) = running.info("stats", "background_step_max_cpu_us") {
        trial.note("longest step of the server, CPU time, ms", us as f64 / 1e3);
    }
    Ok(trial)
}
