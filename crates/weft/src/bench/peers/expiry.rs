//! Keys of which one in a hundred expires: how late the last one is gone, and who had to wait for it. Owns the trial.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use weft_client::{Connection, Protocol};

use super::super::cases::{self, Setup};
use super::super::run;
use super::super::sizes::Sizes;
use super::super::template::{DATA, RANDOM};
use super::contestants::{Field, Running};
use super::measure::Manner;
use super::memory::filling;
use super::probe::{self, Probe};
use super::trial::Trial;
use weft_measure::verdict::Goal;

/// One key in so many has a time to live.
const SHARE: u64 = 100;
/// How long after its time a key may be there.
const LATE_MS_MAX: f64 = 1000.0;
/// Half of the keys expire at one time, the others in so many groups behind it, so far from each other.
const GROUPS: u64 = 50;
const GROUP_MS: u64 = 100;
/// Room for storing the keys that expire before the first of them does.
const AHEAD_MS: u64 = 10_000;
/// Between two looks at how many keys are left.
const LOOK: Duration = Duration::from_millis(5);
/// How long it is waited for keys that do not go.
const PATIENCE_MS: u64 = 60_000;
/// Bytes of a value.
const VALUE_BYTES: usize = 8;

/// Keys that are due at one time.
struct Group {
    at_ms: u64,
    keys: u64,
}

fn now_ms() -> u64 {
    // A clock before 1970 is not one to measure with.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// Stores `count` keys in Weft and in Valkey, and waits for those that expire.
pub(super) fn expiry(field: &Field, manner: &Manner, count: u64, stop: &AtomicBool) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for (index, contestant) in field.contestants.iter().enumerate() {
        if !matches!(contestant.id, "weft" | "valkey") {
            continue;
        }
        eprintln!("expiry: {}", contestant.id);
        let running = contestant.start(manner.start(index, 1, VALUE_BYTES))?;
        trials.push(expire(&running, contestant.id, count, stop)?);
    }
    Ok(trials)
}

fn groups(expiring: u64, first_ms: u64) -> Vec<Group> {
    let mut groups = vec![Group { at_ms: first_ms, keys: expiring / 2 }];
    let each = expiring / 2 / GROUPS;
    groups.extend((1..=GROUPS).map(|number| Group { at_ms: first_ms + number * GROUP_MS, keys: each }));
    groups
}

fn expire(running: &Running, id: &str, count: u64, stop: &AtomicBool) -> Result<Trial> {
    let server = running.server(Protocol::Resp2);
    let staying = count - count / SHARE;
    let sizes = Sizes::Fixed(VALUE_BYTES);
    run::prepare(&server, &filling(staying, sizes.clone()), &[cases::preload(staying)], stop)?;
    let idle = Probe::idle(running, staying)?;
    let groups = groups(count / SHARE, now_ms() + AHEAD_MS);
    for (number, group) in groups.iter().enumerate() {
        let argv = ["SET", &format!("ttl:{number}:{RANDOM}"), DATA, "PXAT", &group.at_ms.to_string()];
        let setup = Setup { argv: argv.map(str::to_string).into(), times: group.keys };
        run::prepare(&server, &filling(group.keys, sizes.clone()), &[setup], stop)?;
    }
    let spare_ms = groups[0].at_ms.saturating_sub(now_ms());
    anyhow::ensure!(spare_ms > 0, "storing the keys that expire took longer than {AHEAD_MS} ms");
    running.ask(&["CONFIG", "RESETSTAT"])?;
    let probe = Probe::start(running, staying)?;
    std::thread::sleep(Duration::from_millis(spare_ms.saturating_sub(LOOK.as_millis() as u64)));
    let watched = Instant::now();
    let late_ms = latest(running, staying, &groups, stop)?;
    let watched = watched.elapsed();
    let seen = probe.end()?;
    let mut trial = Trial::new("expiry", format!("1 % of {count} keys expire"), id);
    trial.asked("a key is gone after its time, ms at most", late_ms, Goal::AtMost(LATE_MS_MAX));
    probe::pauses(&mut trial, running, &seen, &idle);
    trial.note("watched, s", watched.as_secs_f64());
    Ok(trial)
}

/// Looks how many keys are there until those that expire are gone; the most that any of them was late. A look that
/// finds keys of a group still there says that they are as late as the time since the group's.
fn latest(running: &Running, staying: u64, groups: &[Group], stop: &AtomicBool) -> Result<f64> {
    let mut connection = Connection::connect(&running.config(Protocol::Resp3))?;
    let expiring: u64 = groups.iter().map(|group| group.keys).sum();
    let last_ms = groups.last().map_or(0, |group| group.at_ms);
    let mut late_ms: u64 = 0;
    loop {
        if stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        let asked_ms = now_ms();
        let keys: i64 = connection.query(&["DBSIZE"]).context("DBSIZE")?;
        let gone = expiring.saturating_sub((keys as u64).saturating_sub(staying));
        late_ms = late_ms.max(lateness_ms(groups, gone, asked_ms));
        if gone == expiring {
            return Ok(late_ms as f64);
        }
        anyhow::ensure!(asked_ms < last_ms + PATIENCE_MS, "{} keys did not expire", expiring - gone);
        std::thread::sleep(LOOK);
    }
}

/// How late the earliest key is that was still there at `asked_ms`, if `gone` keys were not.
fn lateness_ms(groups: &[Group], gone: u64, asked_ms: u64) -> u64 {
    let mut due = 0;
    for group in groups {
        due += group.keys;
        if gone < due {
            return asked_ms.saturating_sub(group.at_ms);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_of_the_earliest_that_is_left() {
        let groups = groups(200_000, 1000);
        assert_eq!((groups.len(), groups[0].keys, groups[50].at_ms), (51, 100_000, 6000));
        // All there, before and after the first time.
        assert_eq!((lateness_ms(&groups, 0, 900), lateness_ms(&groups, 0, 1007)), (0, 7));
        // The first group is gone: the second is due at 1100.
        assert_eq!((lateness_ms(&groups, 100_000, 1050), lateness_ms(&groups, 100_000, 1150)), (0, 50));
        assert_eq!(lateness_ms(&groups, 200_000, 9000), 0);
    }
}
