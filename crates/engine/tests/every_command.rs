//! What is so of every command, by the scenarios: a key that it changes fires its triggers, and all that it tells is
//! one group, in a transaction and beside other workers too. Does not own: what they answer (`scenarios.rs`).

#[path = "support/scenarios.rs"]
#[allow(dead_code, reason = "replies are looked at elsewhere")]
mod files;
mod support;

use std::collections::{BTreeMap, BTreeSet};

use files::{has_streams, scenarios, words};
use support::stored::store;
use support::{Bench, Reply, show};
use weft_engine::blocking::End;
use weft_engine::reply::Protocol;
use weft_store::wants;

/// A database, by its number as a text, and a key.
type Place = (String, Vec<u8>);

/// What stands at each key, in the databases that scenarios have.
fn all(bench: &mut Bench, looks: u32) -> BTreeMap<Place, String> {
    let mut all = BTreeMap::new();
    for db in ["0", "1", "2", "3", "5", "9"] {
        bench.text(looks, &format!("SELECT {db}"));
        let (Reply::Array(keys) | Reply::Set(keys)) = bench.one(looks, "KEYS *") else { panic!("keys") };
        for key in keys {
            let Reply::Bulk(key) = key else { panic!("a key") };
            let shown = ["DUMP", "PEXPIRETIME"].map(|name| bench.run_args(looks, &[name.as_bytes(), &key]));
            all.insert((db.into(), key), format!("{shown:?}"));
        }
    }
    all
}

/// Runs a command of a scenario, or a transaction of it alone, and what it waits for to the end.
fn run(bench: &mut Bench, client: u32, line: &str, in_multi: bool) {
    let words = words(line);
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    if in_multi {
        bench.run(client, "MULTI");
    }
    bench.run_args(client, &words);
    if in_multi {
        bench.run(client, "EXEC");
    }
    if bench.is_waiting(client) {
        bench.end_wait(client, End::Timeout);
    }
}

/// Scenarios and whether each of their commands is a transaction.
fn of_both_ways() -> impl Iterator<Item = (bool, String, Vec<String>)> {
    [false, true].into_iter().flat_map(|in_multi| {
        let scenarios = scenarios().into_iter().filter(|(_, steps)| !has_streams(steps));
        scenarios.map(move |(name, steps)| {
            // What it pushes in between is not for this client to read.
            let lines = steps.into_iter().map(|(line, _)| line);
            let lines = lines.filter(|line| !in_multi || !line.to_uppercase().contains("SUBSCRIBE"));
            (in_multi, name, lines.collect())
        })
    })
}

/// Whether what a command does is no event of a key: what goes all at once, and what PFCOUNT keeps for itself.
fn fires_nothing(line: &str) -> bool {
    let name = line.split(' ').next().unwrap_or("").to_uppercase();
    ["FLUSHALL", "FLUSHDB", "SWAPDB", "PFCOUNT"].contains(&&*name)
}

#[test]
fn a_key_that_is_changed_fires() {
    let (mut wrong, mut changes) = (Vec::new(), 0);
    let of_triggers = |lines: &[String]| lines.iter().any(|line| line.starts_with("TRIGGER"));
    for (in_multi, name, lines) in of_both_ways().filter(|(.., lines)| !of_triggers(lines)) {
        let mut bench = Bench::new();
        let [boss, client, looks, listens] = [(); 4].map(|()| bench.connect(Protocol::Resp3));
        bench.run(listens, "PSUBSCRIBE fired:*");
        let text = r#"{"key":"*","publish":"fired:${event.db}:${event.key}"}"#;
        store(&mut bench, boss, "TRIGGER", "t", text);
        for line in lines {
            let before = all(&mut bench, looks);
            run(&mut bench, client, &line, in_multi);
            let behind = all(&mut bench, looks);
            let place = |push: Reply| {
                let Reply::Push(items) = push else { return None };
                let Reply::Bulk(channel) = items.get(2)? else { return None };
                let (_, rest) = channel.split_at_checked("fired:".len())?;
                let at = rest.iter().position(|byte| *byte == b':')?;
                Some((String::from_utf8_lossy(&rest[..at]).into_owned(), rest[at + 1..].to_vec()))
            };
            let fired: BTreeSet<Place> = bench.hear(listens).into_iter().filter_map(place).collect();
            if fires_nothing(&line) {
                continue;
            }
            let places: BTreeSet<&Place> = before.keys().chain(behind.keys()).collect();
            for place in places.into_iter().filter(|place| before.get(place) != behind.get(place)) {
                changes += 1;
                if !fired.contains(place) {
                    wrong.push(format!("{name}, {line}: {} {}", place.0, place.1.escape_ascii()));
                }
            }
        }
    }
    println!("{changes} changes");
    assert!(changes > 300, "{changes} changes");
    assert!(wrong.is_empty(), "{} have fired nothing:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_a_command_tells_is_one_group() {
    let (mut wrong, mut groups) = (Vec::new(), 0);
    for workers in [1, 2] {
        for (in_multi, name, lines) in of_both_ways() {
            let mut team = Bench::team(workers);
            let bench = &mut team[0];
            let client = bench.connect(Protocol::Resp3);
            let mut own = bench.engine.keyspace.worker().expect("a place for one more");
            let mut merger = own.merger(wants::VALUES).expect("it is the only one");
            for line in lines {
                run(bench, client, &line, in_multi);
                let mut told = 0;
                // What has been told in an epoch comes when that is over.
                for _ in 0..2 {
                    let polled = merger.poll(|group| told += group.row().map_or(1, |(_, groups)| groups));
                    polled.expect("nothing was lost");
                }
                groups += told;
                if told > 1 {
                    let shown: Vec<String> = bench.take(client).iter().map(show).collect();
                    wrong.push(format!("{workers} workers, {name}, {line}: {told} groups {shown:?}"));
                }
            }
        }
    }
    println!("{groups} groups");
    assert!(groups > 600, "{groups} groups");
    assert!(wrong.is_empty(), "{} tell several:\n{}", wrong.len(), wrong.join("\n"));
}
