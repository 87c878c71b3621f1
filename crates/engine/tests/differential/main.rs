//! Weft beside a real server: random commands, run by both, whose replies and what they leave behind must agree.
//!
//! The engine runs in this process, the server (Valkey 9.1.2 as `scripts/valkey-driver` builds it, else what Debian
//! installs) in another; both see the same time. Rounds take turns with RESP2, RESP3 and RESPB on Weft's side, where
//! RESPB is compared with the server's RESP3. At the end of a round every key is compared: type, encoding, expiry,
//! value; and the keyspace events that were told. A round that differs is made shorter until nothing can be left out,
//! and printed.
//!
//! # Running
//!
//! ```text
//! cargo test -p weft-engine --test differential -- --nocapture
//! WEFT_DIFF_SECONDS=600   for so long instead of a few seconds; progress every ten seconds. A time that the process
//!                         was stopped for does not count
//! WEFT_DIFF_GROUPS=a,b    these groups only
//! WEFT_DIFF_SEED=7        the first round's seed; a difference names the one that shows it alone
//! WEFT_DIFF_ROUNDS=1      so many rounds
//! WEFT_DIFF_SERVER=PATH   this server
//! WEFT_DIFF_EVENTS=AKEmn  these keyspace events
//! ```
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
mod pair;
mod server;
mod state;
mod template;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weft_engine::reply::Protocol;
use weft_protocol::table;

use accepted::Accepted;
use compare::Rule;
use dice::Dice;
use groups::{GROUPS, Group};
use pair::{CLIENTS, Difference, Pair, Step};
use template::{Template, disturb};

/// Commands of a round.
const STEPS: usize = 120;
/// Rounds when nothing else is asked for.
const ROUNDS: u64 = 150;
/// The longest that one round counts for in a limit of seconds: where it took longer, the process was stopped.
const ROUND_COUNTS: Duration = Duration::from_secs(1);
/// Kinds of differences after which a run ends.
const KINDS_MAX: usize = 40;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// A group with its templates.
struct Prepared {
    group: &'static Group,
    templates: Vec<Template>,
    weight: usize,
}

fn prepare(pair: &mut Pair, group: &'static Group, left_out: &mut Vec<String>) -> Prepared {
    let mut templates: Vec<Template> = group.templates.iter().map(|text| Template::parse(text)).collect();
    templates.retain(|template| {
        let (name, sub) = template.name();
        let Some(id) = table::by_name(name.as_bytes()) else { return true };
        let sub_id = sub.and_then(|sub| table::subcommand(id, sub.as_bytes()));
        let shown =
            if sub_id.is_some() { format!("{name}|{}", sub.unwrap_or_default()) } else { name.into() };
        let ours = weft_engine::requests::is_container(id) && sub_id.is_none()
            || pair.bench.engine.serves(sub_id.unwrap_or(id));
        let both = ours && pair.server_has(&shown);
        if !both {
            left_out
                .push(format!("{shown} ({})", if ours { "the server has none" } else { "Weft has none" }));
        }
        both
    });
    let weight = templates.iter().map(|template| template.weight).sum();
    Prepared { group, templates, weight }
}

impl Prepared {
    fn step(&self, dice: &mut Dice, accepted: &[Accepted]) -> (Vec<Vec<u8>>, Rule) {
        loop {
            let mut left = dice.below(self.weight);
            let chosen = self.templates.iter().find(|template| {
                let here = left < template.weight;
                left = left.wrapping_sub(template.weight);
                here
            });
            let Some(template) = chosen else { continue };
            let mut words = template.fill(dice, self.group.places);
            disturb(&mut words, dice);
            if !may_pass(&words)
                && !is_chance(&words)
                && !is_endless(&words)
                && !accepted::leaves_out(accepted, &pair::command(&words))
            {
                return (words, template.rule);
            }
        }
    }
}

/// Whether a command sets a time that could pass while a round runs, or waits so long only.
fn may_pass(words: &[Vec<u8>]) -> bool {
    let text = |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let is_short = |at: usize, below: i64| {
        let value = words.get(at).and_then(|word| std::str::from_utf8(word).ok()?.parse::<f64>().ok());
        value.is_some_and(|value| value > 0.0 && value < below as f64)
    };
    let name = text(0);
    match &name[..] {
        b"SETEX" | b"EXPIRE" => return is_short(2, 100),
        b"PSETEX" | b"PEXPIRE" => return is_short(2, 100_000),
        b"BLPOP" | b"BRPOP" | b"BZPOPMIN" | b"BZPOPMAX" | b"BLMOVE" | b"BRPOPLPUSH" => {
            return is_short(words.len() - 1, 60);
        }
        b"BLMPOP" | b"BZMPOP" => return is_short(1, 60),
        b"WAIT" | b"WAITAOF" => return words.len() > 2 && words[words.len() - 2] != b"0",
        // An id that is the time of each side.
        b"XADD" => return words.iter().any(|word| word == b"*"),
        b"HEXPIRE" | b"HPEXPIRE" => return is_short(2, 100_000),
        // Valkey keeps what has no time left until its background work comes by.
        b"MSETEX" => {
            let passed = |at: usize| match &text(at)[..] {
                b"EXAT" => is_short(at + 1, 4_000_000_000),
                b"PXAT" => is_short(at + 1, 4_000_000_000_000),
                b"EX" => is_short(at + 1, 100),
                b"PX" => is_short(at + 1, 100_000),
                _ => false,
            };
            return (1..words.len()).any(passed);
        }
        _ => {}
    }
    (1..words.len()).any(|at| match &text(at)[..] {
        b"EX" => is_short(at + 1, 100),
        b"PX" => is_short(at + 1, 100_000),
        b"BLOCK" => is_short(at + 1, 60_000),
        _ => false,
    })
}

/// Whether chance decides what a command leaves behind, or which part of a collection it shows. BY without a star
/// leaves a set in the order of its table.
fn is_chance(words: &[Vec<u8>]) -> bool {
    let name = words[0].to_ascii_uppercase();
    if name == b"SORT" || name == b"SORT_RO" {
        return words.windows(2).any(|pair| pair[0].eq_ignore_ascii_case(b"BY") && !pair[1].contains(&b'*'));
    }
    let scans = matches!(&name[..], b"HSCAN" | b"SSCAN" | b"ZSCAN");
    words.len() == 2 && name == b"SPOP" || scans && !words.iter().any(|word| word == b"1000")
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

/// Whether a command asks for more random elements than the server can send while somebody waits for it.
fn is_endless(words: &[Vec<u8>]) -> bool {
    let name = words[0].to_ascii_uppercase();
    let count = words.get(2).and_then(|word| std::str::from_utf8(word).ok()?.parse::<i64>().ok());
    matches!(&name[..], b"HRANDFIELD" | b"SRANDMEMBER" | b"ZRANDMEMBER")
        && count.is_some_and(|count| count < -100_000)
}

fn plan(groups: &[Prepared], accepted: &[Accepted], seed: u64) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let (one, two) = (dice.below(groups.len()), dice.below(groups.len()));
    // One client alone is fast; more of them meet while they wait and watch.
    let alone = dice.one_in(2);
    let steps = (0..STEPS).map(|_| {
        let group = match dice.below(8) {
            0 => &groups[0],
            1..=5 => &groups[one],
            _ => &groups[two],
        };
        let (words, rule) = group.step(&mut dice, accepted);
        let client = if !alone && dice.one_in(3) { dice.below(CLIENTS) } else { 0 };
        Step { client, words, rule }
    });
    let mut steps: Vec<Step> = steps.collect();
    leave_to_order(&mut steps);
    steps
}

/// With a small `set-max-intset-entries`, the encoding of what SUNIONSTORE and its like store follows from the order in
/// which a hash table gives its members: one integer too many makes a hash table of integers, but a text that comes
/// before it makes a listpack. A round has one or the other.
fn leave_to_order(steps: &mut Vec<Step>) {
    let is = |step: &Step, at: usize, name: &[u8]| {
        step.words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name))
    };
    if steps.iter().any(|step| is(step, 2, b"set-max-intset-entries")) {
        steps.retain(|step| {
            ![&b"SUNIONSTORE"[..], b"SDIFFSTORE", b"SINTERSTORE"].iter().any(|name| is(step, 0, name))
        });
    }
}

/// Leaves out what is not needed to see a difference.
fn shorten(pair: &mut Pair, mut steps: Vec<Step>, protocol: Protocol) -> (Vec<Step>, Difference) {
    let mut difference = pair.round(&steps, protocol).err();
    let kind = difference.as_ref().map(Difference::kind);
    let mut chunk = steps.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut shorter = steps.clone();
            shorter.drain(at..(at + chunk).min(steps.len()));
            match pair.round(&shorter, protocol) {
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
fn wanted() -> Vec<String> {
    let text = std::env::var("WEFT_DIFF_GROUPS").unwrap_or_default();
    let names: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
    let chosen = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let chosen = chosen.inspect(|name| {
        assert!(names.contains(name), "no group is called {name:?}; there are {}", names.join(", "));
    });
    chosen.map(str::to_owned).collect()
}

#[test]
fn weft_and_a_server_agree() {
    let Some(program) = server::find() else {
        println!("left out: no valkey-server and no redis-server; scripts/packages installs one");
        return;
    };
    let mut pair = Pair::new(server::Server::start(&program));
    println!("the server: {} {}, {}", pair.server.kind, pair.server.version, program.display());
    let wanted = wanted();
    let mut left_out = Vec::new();
    let chosen: Vec<_> = GROUPS
        .iter()
        .filter(|group| {
            let chosen =
                wanted.is_empty() || group.name == "generic" || wanted.iter().any(|name| name == group.name);
            chosen && (group.redis || pair.server.kind == "valkey")
        })
        .collect();
    let groups: Vec<Prepared> =
        chosen.into_iter().map(|group| prepare(&mut pair, group, &mut left_out)).collect();
    let groups: Vec<Prepared> = groups.into_iter().filter(|group| group.weight > 0).collect();
    if !left_out.is_empty() {
        left_out.dedup();
        println!("left out: {}", left_out.join(", "));
    }

    let seconds = number("WEFT_DIFF_SECONDS").map(Duration::from_secs);
    let rounds = number("WEFT_DIFF_ROUNDS").unwrap_or(if seconds.is_some() { u64::MAX } else { ROUNDS });
    let first = number("WEFT_DIFF_SEED").unwrap_or(1);
    let (mut ran, mut shown) = (Duration::ZERO, Instant::now());
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut done = 0;
    while done < rounds && seconds.is_none_or(|limit| ran < limit) && kinds.len() < KINDS_MAX {
        let seed = first.wrapping_add(done);
        done += 1;
        let protocol = [Protocol::Resp2, Protocol::Resp3, Protocol::Respb][(seed % 3) as usize];
        let (started, _named) = (Instant::now(), Named(seed));
        let steps = plan(&groups, &pair.accepted, seed);
        if let Err(difference) = pair.round(&steps, protocol) {
            let count = kinds.entry(difference.kind()).or_default();
            *count += 1;
            if *count == 1 {
                let (steps, shorter) = shorten(&mut pair, steps, protocol);
                println!("\nseed {seed}, {protocol:?}: {difference}\nthe shortest way there: {shorter}");
                for step in &steps {
                    println!("    {step}");
                }
            }
        }
        ran += started.elapsed().min(ROUND_COUNTS);
        if shown.elapsed() > Duration::from_secs(10) {
            shown = Instant::now();
            let rate = pair.commands as f64 / ran.as_secs_f64();
            println!(
                "{done} rounds, {} commands, {rate:.0}/s, {} kinds of differences",
                pair.commands,
                kinds.len()
            );
        }
    }
    let rate = pair.commands as f64 / ran.as_secs_f64();
    println!(
        "{done} rounds from seed {first} in {:.0} s, {} commands, {} of them waited; compared: {} keys, {} events; {rate:.0}/s",
        ran.as_secs_f64(),
        pair.commands,
        pair.waits,
        pair.keys_compared,
        pair.events_compared
    );
    accepted::report(&pair.accepted);
    assert!(kinds.is_empty(), "differences: {kinds:#?}");
}

#[test]
fn the_order_of_a_table_is_left_out() {
    let chance = |command: &str| is_chance(&command.split(' ').map(Into::into).collect::<Vec<_>>());
    assert!(chance("SORT k by x DESC") && chance("sort_ro k LIMIT 0 1 BY ") && !chance("SORT k BY *->f"));
}

#[test]
fn short_times_are_left_out() {
    let passes = |command: &str| {
        let words: Vec<Vec<u8>> = command.split(' ').map(|word| word.into()).collect();
        may_pass(&words)
    };
    assert!(
        passes("MSETEX 2 k v k v EXAT 5")
            && passes("SET k v ex 5")
            && passes("SETEX k 5 v")
            && passes("GETEX k PX 5000")
            && passes("BLPOP k 1")
    );
    assert!(
        !passes("MSETEX 1 k v EXAT 4102444800")
            && !passes("SET k v EX 5000")
            && !passes("SETEX k 0 v")
            && !passes("BLPOP k 0")
            && !passes("SET 5 5")
    );
}
