//! Weft beside another that runs the same random commands, whose replies and what they leave behind must agree: a
//! real server; and Weft's own engine on its full way (`twin.rs`), which proves that what is faster does the same, also
//! where no server is installed.
//!
//! The engine runs in this process, the server (Valkey 9.1.2 as `scripts/valkey-driver` builds it, else what Debian
//! installs) in another; both see the same time. Rounds take turns with RESP2, RESP3 and RESPB on Weft's side, where
//! RESPB is compared with the server's RESP3. At the end of a round every key is compared: type, encoding, expiry,
//! value; beside a server the keyspace events that were told; between two engines also digests, what INFO counts, and
//! what who tracks keys is told. A round that differs is made shorter until nothing can be left out, and printed.
//!
//! # Modes
//!
//! What else is so while commands run, and which way they take, is a *mode* (`mode.rs`): names with `+` between them,
//! `single` if nothing is so. Each run prints its mode. With two threads each has clients and databases of its own,
//! whose keys share shards with the other's, so that replies can be told in advance.
//!
//! # Running
//!
//! ```text
//! cargo test -p weft-engine --test differential -- --nocapture
//! WEFT_DIFF_MODES=batches+lru,threads   these modes only
//! WEFT_DIFF_GROUPS=a,b    these groups only
//! WEFT_DIFF_EACH=yes      each group by itself, as it always is between two engines
//! WEFT_DIFF_SECONDS=600   each mode, or each group in each mode, for so long instead of a few seconds; progress every
//!                         ten seconds. A time that the process was stopped for does not count
//! WEFT_DIFF_SEED=7        the first round's seed; a difference names the one that shows it alone
//! WEFT_DIFF_ROUNDS=1      so many rounds
//! WEFT_DIFF_SERVER=PATH   this server
//! WEFT_DIFF_EVENTS=AKEmn  these keyspace events
//! ```
//!
//! Ten minutes for each group in each mode, beside both: `make differential-long`. At its end, as at that of every run,
//! stands a table of what was run.
//!
//! # Adding a group
//!
//! Write `groups/NAME.rs` with a list of templates like its neighbours; `template.rs` explains them in ten lines.
//! Name it in `groups/mod.rs`. Templates of commands that Weft or the server does not have are left out, and named.
//! Words are dropped, doubled, swapped and replaced by themselves, so templates need not be wrong on purpose. Chance
//! must not change what is stored: SPOP belongs here only with a count that takes everything. Times that could pass
//! during a round do not: use `{seconds}`, `{milliseconds}`, `{unix}`, `{unix-ms}`. A command that reads a new type
//! back for the comparison of states goes into `state.rs`.
//!
//! A difference that is meant to be goes into `accepted.txt` with its reason. Where no Valkey is built the comparison
//! is with Redis 7.0, and only with groups that say so (`redis: true`): those whose lines stand in `accepted.txt`.

#[path = "../support/mod.rs"]
mod support;

mod accepted;
mod compare;
mod dice;
mod groups;
mod mode;
mod ours;
mod pair;
mod peer;
mod plan;
mod server;
#[path = "../../../protocol/tests/support/skipped.rs"]
mod skipped;
mod state;
mod table;
mod template;
mod twin;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weft_engine::reply::Protocol;

use groups::{GROUPS, Group};
use mode::{Mode, Part};
use pair::{Difference, Pair, Step};
use peer::{Peer, Remote};
use plan::{Plan, prepare};
use table::Cell;
use twin::Twin;

/// Modes beside a server, and their rounds, when nothing else is asked for.
const BESIDE_SERVER: [(&str, u64); 4] = [
    ("events", 130),
    ("batches+channels", 60),
    ("batches+threads+lru+ttl", 40),
    ("batches+volatile+user+pause+tracked", 40),
];
/// Modes beside the full way, and the rounds of each group.
const BESIDE_FULL_WAY: [(&str, u64); 11] = [
    ("single", 2),
    ("batches", 2),
    ("batches+channels", 3),
    ("batches+lru", 2),
    ("batches+volatile+ttl", 2),
    ("batches+user", 2),
    ("batches+pause", 2),
    ("batches+tracked", 2),
    ("batches+events", 2),
    ("batches+threads", 2),
    ("batches+channels+threads+lru+user+pause+ttl+tracked", 2),
];
/// The longest that one round counts for in a limit of seconds: where it took longer, the process was stopped.
const ROUND_COUNTS: Duration = Duration::from_secs(1);
/// Kinds of differences after which a run ends.
const KINDS_MAX: usize = 40;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Says which round it was when a test panics in it.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}: the test itself has failed here", self.0);
        }
    }
}

/// Leaves out what is not needed to see a difference, and nothing without which the rest is no plan.
fn shorten(
    mut steps: Vec<Step>,
    mut round: impl FnMut(&[Step]) -> Result<(), Difference>,
) -> (Vec<Step>, Difference) {
    let mut difference = round(&steps).err();
    let kind = difference.as_ref().map(Difference::kind);
    let mut chunk = steps.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut shorter = steps.clone();
            shorter.drain(at..(at + chunk).min(steps.len()));
            let ran = if plan::pauses_one_by_one(&shorter) { round(&shorter) } else { Ok(()) };
            match ran {
                Err(other) if Some(other.kind()) == kind => (steps, difference) = (shorter, Some(other)),
                _ => at += chunk,
            }
        }
        chunk /= 2;
    }
    let vanished = || Difference::other("the difference has not come again");
    (steps, difference.unwrap_or_else(vanished))
}

/// The groups that were asked for; none means all.
fn wanted_groups() -> Vec<String> {
    let text = std::env::var("WEFT_DIFF_GROUPS").unwrap_or_default();
    let names: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
    let chosen = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let chosen = chosen.inspect(|name| {
        assert!(names.contains(name), "no group is called {name:?}; there are {}", names.join(", "));
    });
    chosen.map(str::to_owned).collect()
}

/// The modes that were asked for, and in how many rounds each is to run.
fn wanted_modes(short: &[(&str, u64)]) -> Vec<(Mode, u64)> {
    let asked = std::env::var("WEFT_DIFF_MODES").ok();
    let rounds_each = number("WEFT_DIFF_ROUNDS");
    let all: Vec<(&str, u64)> = match &asked {
        Some(asked) => asked.split(',').map(|name| (name, short[0].1)).collect(),
        None => short.to_vec(),
    };
    let unlimited = std::env::var_os("WEFT_DIFF_SECONDS").map(|_| u64::MAX);
    let rounds = |rounds| rounds_each.or(unlimited).unwrap_or(rounds);
    all.into_iter().map(|(name, default)| (Mode::parse(name), rounds(default))).collect()
}

/// Runs rounds of some groups.
fn compare(
    pair: &mut Pair,
    plan: &dyn Fn(&Pair, u64) -> Vec<Step>,
    (mode, group, rounds): (&str, &str, u64),
) -> Cell {
    let name = format!("{mode}, {group}");
    let seconds = number("WEFT_DIFF_SECONDS").map(Duration::from_secs);
    let first = number("WEFT_DIFF_SEED").unwrap_or(1);
    let (mut ran, mut shown) = (Duration::ZERO, Instant::now());
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let before = pair.tally;
    let mut done = 0;
    while done < rounds && seconds.is_none_or(|limit| ran < limit) && kinds.len() < KINDS_MAX {
        let seed = first.wrapping_add(done);
        done += 1;
        let protocol = [Protocol::Resp2, Protocol::Resp3, Protocol::Respb][(seed % 3) as usize];
        let (started, _named) = (Instant::now(), Named(seed));
        let steps = plan(pair, seed);
        if let Err(difference) = pair.round(&steps, protocol) {
            let count = kinds.entry(difference.kind()).or_default();
            *count += 1;
            if *count == 1 {
                let (steps, shorter) = shorten(steps, |steps| pair.round(steps, protocol));
                println!(
                    "\n{name}, seed {seed}, {protocol:?}: {difference}\nthe shortest way there: {shorter}"
                );
                for step in &steps {
                    println!("    {step}");
                }
            }
        }
        ran += started.elapsed().min(ROUND_COUNTS);
        if shown.elapsed() > Duration::from_secs(10) {
            shown = Instant::now();
            let commands = pair.tally.commands - before.commands;
            println!("{name}: {done} rounds, {commands} commands, {} kinds of differences", kinds.len());
        }
    }
    println!(
        "{name}: {done} rounds from seed {first} in {:.1} s, {}",
        ran.as_secs_f64(),
        pair.tally.since(before)
    );
    let commands = pair.tally.commands - before.commands;
    Cell { mode: mode.into(), group: group.into(), commands, kinds }
}

/// Runs every mode beside a peer that `peer` makes anew for each.
fn run(short: &[(&str, u64)], each: bool, mut peer: impl FnMut() -> Box<dyn Peer>) {
    let wanted = wanted_groups();
    let mut cells = Vec::new();
    for (mode, rounds) in wanted_modes(short) {
        let mut pair = Pair::new(peer(), mode);
        if pair.peer.kind() == "redis" && mode.has(Part::User) {
            skipped::left_out(&format!("{}: Redis 7.0 says otherwise that a right is missing", mode.name()));
            continue;
        }
        let mut left_out = Vec::new();
        let of_kind = |group: &&&Group| group.redis || pair.peer.kind() != "redis";
        let chosen: Vec<&'static Group> = GROUPS.iter().filter(of_kind).copied().collect();
        let mut groups: Vec<plan::Prepared> =
            chosen.into_iter().map(|group| prepare(&mut pair, group, &mut left_out)).collect();
        groups.retain(|group| {
            let name = group.group.name;
            let is_wanted = wanted.is_empty() || name == "generic" || wanted.iter().any(|it| it == name);
            group.weight > 0 && is_wanted
        });
        let common = plan::common(&mut pair);
        if !left_out.is_empty() {
            left_out.dedup();
            println!("left out: {}", left_out.join(", "));
        }
        let (is_told, name) = (pair.is_twin(), mode.name());
        let steps = |groups: &[plan::Prepared], from: usize| {
            let (groups, common) = (groups.to_vec(), common.clone());
            move |pair: &Pair, seed: u64| {
                let accepted = &pair.accepted;
                Plan { groups: &groups, from, common: &common, accepted, mode, is_told }.steps(seed)
            }
        };
        if each {
            for group in &groups {
                let both = [groups[0].clone(), group.clone()];
                cells.push(compare(&mut pair, &steps(&both, 1), (&name, group.group.name, rounds)));
            }
        } else {
            cells.push(compare(&mut pair, &steps(&groups, 0), (&name, "all groups", rounds)));
        }
        accepted::report(&pair.accepted);
    }
    println!("{}", table::table(&cells));
    let differences: Vec<String> = cells.iter().flat_map(Cell::differences).collect();
    assert!(differences.is_empty(), "differences:\n{}", differences.join("\n"));
}

#[test]
fn weft_and_a_server_agree() {
    let Some(program) = server::find() else {
        skipped::skipped("no valkey-server and no redis-server; scripts/tools-needed installs one");
        return;
    };
    let each = std::env::var_os("WEFT_DIFF_EACH").is_some();
    run(&BESIDE_SERVER, each, || {
        let server = server::Server::start(&program);
        println!("the server: {} {}, {}", server.kind, server.version, program.display());
        Box::new(Remote::new(server))
    });
}

#[test]
fn the_fast_ways_and_the_full_way_agree() {
    run(&BESIDE_FULL_WAY, true, || Box::new(Twin::new()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use compare::Rule;
    use pair::ADMIN;

    const ALL: &str = "CLIENT PAUSE 1000000 ALL";
    const WRITES: &str = "CLIENT PAUSE 1000000 WRITE";
    const END: &str = "CLIENT UNPAUSE";

    #[test]
    fn what_is_made_shorter_pauses_one_by_one() {
        let step = |(client, line): (usize, &str)| {
            let words = line.split(' ').map(Into::into).collect();
            Step { client, ..Step::new(Rule::Exact, words) }
        };
        let steps = [(ADMIN, ALL), (0, "GET a"), (ADMIN, END), (0, "GET b"), (ADMIN, WRITES), (0, "GET c")];
        let lines = |steps: &[Step]| -> Vec<String> {
            steps.iter().map(|step| String::from_utf8_lossy(&step.words.join(&b' ')).into_owned()).collect()
        };
        // What is to be seen needs both pauses: the end of the first one has to stay.
        let (steps, _) = shorten(steps.map(step).to_vec(), |steps| {
            let lines = lines(steps);
            let pauses: Vec<&str> =
                lines.iter().map(String::as_str).filter(|line| line.starts_with("CLIENT")).collect();
            assert!(!pauses.windows(2).any(|two| two == [ALL, WRITES]), "it would be held: {lines:?}");
            let both = pauses.contains(&ALL) && pauses.contains(&WRITES);
            if both { Err(Difference::other("both")) } else { Ok(()) }
        });
        assert_eq!(lines(&steps), [ALL, END, WRITES]);
    }
}
