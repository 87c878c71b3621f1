//! Taken back: random commands, a savepoint, more commands, and back; then everything is as it was: values, expiries,
//! watches, who waits, counters, memory. What is committed is told, and what was taken back is not.

use std::collections::BTreeMap;

use weft_engine::args::OwnedArgs;
use weft_engine::executor::Attempt;
use weft_engine::reply::{Output, Protocol};
use weft_protocol::table;
use weft_store::{Counter, Digest, Op, Recorder, WatchVersion, World};

use crate::commands::{Commands, Rounds, shown};
use crate::dice::{Dice, KEYS};
use crate::shadow::{Shadow, all, config};
use crate::support::{self, Bench};

/// Databases that commands reach.
const DATABASES: u8 = 3;
/// Commands before an attempt, and of each of its parts at most.
const BEFORE: usize = 60;
const PART: usize = 25;
/// Longer words make values large, which are taken back change by change: their tables keep their size.
const SMALL_WORD: usize = 40;
/// Of at most so much memory a value is kept as a whole before it changes (`IMAGE_BYTES_MAX` of the store).
const WHOLE_BYTES: usize = 4096;
/// `hash-max-listpack-entries` and `hash-max-listpack-value`.
const LIMITS: [(&str, &str); 5] =
    [("512", "64"), ("512", "64"), ("512", "1000"), ("20", "10"), ("33", "3000")];

/// All that must be as it was.
#[derive(Debug, PartialEq)]
struct State {
    digest: Digest,
    keys: Vec<(usize, usize, usize)>,
    counters: Vec<i64>,
    /// The encoding of each key, with its memory if that comes back to the byte.
    forms: BTreeMap<(u8, String), (&'static str, usize)>,
    changed_watches: Vec<(u8, &'static str)>,
}

type Watched = Vec<(u8, &'static str, WatchVersion)>;

fn watch(world: &World<'_>) -> Watched {
    let mut guards = world.guards();
    let mut all = Vec::new();
    for db in 0..DATABASES {
        for name in KEYS {
            let key = world.keyspace().key(name.as_bytes());
            let version = guards.shard(&key).watches().add(db, key.hash());
            all.push((db, name, version.expect("few are watched")));
        }
    }
    all
}

fn unwatch(world: &World<'_>, watched: &Watched) {
    let mut guards = world.guards();
    for (db, name, _) in watched {
        let key = world.keyspace().key(name.as_bytes());
        guards.shard(&key).watches().remove(*db, key.hash());
    }
}

fn forms(world: &World<'_>, exact: bool) -> BTreeMap<(u8, String), (&'static str, usize)> {
    let mut names = Vec::new();
    world.each_key(|db, key, _, _| names.push((db, key.to_vec())));
    let (mut guards, mut recorder) = (world.guards(), Recorder::default());
    let forms = names.into_iter().map(|(db, name)| {
        let key = world.keyspace().key(&name);
        // At time 0 nothing has expired.
        let info = guards.shard(&key).info(&mut Op::untouched(db, 0, &mut recorder), &key);
        let form = info.map_or(("", 0), |info| (info.encoding, if exact { info.memory_bytes } else { 0 }));
        ((db, name.escape_ascii().to_string()), form)
    });
    forms.collect()
}

impl State {
    fn of(world: &World<'_>, watched: &Watched, exact: bool) -> Self {
        let keyspace = world.keyspace();
        let counters = [Counter::Writes, Counter::Expired, Counter::Evicted, Counter::ExpiredFields];
        let mut guards = world.guards();
        let mut is_changed = |db: u8, name: &str, version| {
            let key = keyspace.key(name.as_bytes());
            !guards.shard(&key).watches().unchanged(db, key.hash(), version)
        };
        let changed = watched.iter().filter(|(db, name, version)| is_changed(*db, name, *version));
        let changed_watches = changed.map(|(db, name, _)| (*db, *name)).collect();
        drop(guards);
        Self {
            digest: Digest::of_keyspace(world),
            keys: (0..DATABASES)
                .map(|db| (keyspace.len(db), keyspace.expiring(db), keyspace.with_fields(db)))
                .collect(),
            counters: counters.iter().map(|&counter| keyspace.total(counter)).collect(),
            forms: forms(world, exact),
            changed_watches,
        }
    }
}

/// A command as an attempt takes it; nothing for what no attempt runs.
fn args_of(words: &[Vec<u8>]) -> Option<OwnedArgs> {
    let name = words[0].to_ascii_uppercase();
    if matches!(
        &name[..],
        b"MULTI" | b"EXEC" | b"DISCARD" | b"WATCH" | b"UNWATCH" | b"CONFIG" | b"RESET" | b"AUTH"
    ) {
        return None;
    }
    let mut id = table::by_name(&name)?;
    if let Some(sub) = words.get(1).and_then(|word| table::subcommand(id, &word.to_ascii_uppercase())) {
        id = sub;
    }
    Some(OwnedArgs::new(id.spec(), words.iter().map(Vec::as_slice)))
}

/// Large values of every type, of many chunks and blocks, whose members the commands will meet.
fn fill(bench: &mut Bench, client: u32, dice: &mut Dice) {
    let mut keys = KEYS;
    dice.shuffle(&mut keys);
    let member =
        |at: usize| if at < 6 { ["x", "y", "z", "X", "10", "-7"][at].into() } else { format!("member:{at}") };
    let mut words: [Vec<String>; 4] = [
        vec!["RPUSH".into(), keys[0].into()],
        vec!["SADD".into(), keys[1].into()],
        vec!["ZADD".into(), keys[2].into()],
        vec!["HSET".into(), keys[3].into()],
    ];
    for at in 0..300 {
        words[0].extend((0..4).map(|more| member((at + 10 * more) % 40)));
        words[1].push(member(at));
        words[2].extend([(at % 50).to_string(), member(at)]);
        words[3].extend([member(at), format!("value of {at}")]);
    }
    for words in words {
        bench.run_args(client, &words.iter().map(String::as_bytes).collect::<Vec<_>>());
    }
    for at in 0..120 {
        // Below most of the ids that commands add, and among those that they delete.
        let id = format!("{}-{}", at / 60, at % 60 + 1);
        bench.run(client, &format!("XADD {} {id} name {at} value some-text-{at}", keys[4]));
    }
    bench.run(client, &format!("XGROUP CREATE {} g 0", keys[4]));
    bench.run(client, &format!("XREADGROUP GROUP g c COUNT 30 STREAMS {} >", keys[4]));
    bench.run(client, &format!("SET {} {}", keys[5], "s".repeat(6000)));
}

/// What a round does, for who reads what went wrong.
#[derive(Default)]
struct Steps(Vec<String>);

impl Steps {
    fn part(
        &mut self,
        attempt: &mut Attempt<'_, '_>,
        (commands, of): (&Commands, [usize; 4]),
        dice: &mut Dice,
        small: bool,
    ) -> u64 {
        let mut count = 0;
        for _ in 0..dice.below(PART) {
            let words = commands.any(of, dice);
            if small && words.iter().any(|word| word.len() > SMALL_WORD) {
                continue;
            }
            let Some(args) = args_of(&words) else { continue };
            self.0.push(shown(&words));
            let mut output = Output::default();
            // Also what answers an error may have changed something.
            let _ = attempt.run(&args.args(), &mut output);
            count += 1;
        }
        count
    }
    fn say(&mut self, what: &str) {
        self.0.push(format!("  -- {what}"));
    }
}

#[test]
fn what_is_taken_back_has_not_been() {
    let commands = Commands::new();
    let mut bench = Bench::of(support::engine_of(config(3), 1), 0);
    let keyspace = &bench.engine.keyspace;
    let mut shadow = Shadow::of(keyspace);
    let mut own = keyspace.worker().expect("a place for one more");
    let admin = bench.connect(Protocol::Resp2);
    let (mut rounds, mut ran_in_all, mut undone, mut committed) = (0, 0, 0, 0);
    for seed in Rounds::few(80) {
        let mut dice = Dice::new(seed);
        let small = dice.one_in(2);
        let of = commands.of_round(&mut dice);
        bench.run_args(admin, &[b"FLUSHALL"]);
        bench.run_args(admin, &[b"CONFIG", b"SET", b"notify-keyspace-events", b"AKEn"]);
        let (client, waiter) = (bench.connect(Protocol::Resp2), bench.connect(Protocol::Resp2));
        let mut ran = Steps::default();
        // Small nodes, so that the commands meet their ends.
        let nodes = ["4", "128"][dice.below(2)];
        for name in ["list-max-listpack-size", "stream-node-max-entries"] {
            bench.run_args(admin, &[b"CONFIG", b"SET", name.as_bytes(), nodes.as_bytes()]);
        }
        if !small {
            fill(&mut bench, client, &mut dice);
        }
        for _ in 0..if small { BEFORE } else { 8 } {
            let words = commands.any(of, &mut dice);
            if args_of(&words).is_some() && !(small && words.iter().any(|word| word.len() > SMALL_WORD)) {
                ran.0.push(shown(&words));
                bench.run_args(client, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
            if bench.is_waiting(client) {
                break;
            }
        }
        bench.run(waiter, "BLPOP a b c d e 0");
        let waits = [bench.is_waiting(client), bench.is_waiting(waiter)];
        bench.pass(dice.below(3) as u64 * 50);
        bench.maintain();
        shadow.follow();
        let watched = watch(&own.world());
        let before = State::of(&own.world(), &watched, small);
        let before_all = all(&own.world());
        ran.say("attempt");
        let keep = dice.one_in(2);
        bench.attempt(client, |attempt| {
            ran_in_all += ran.part(attempt, (&commands, of), &mut dice, small);
            let mut marks = Vec::new();
            for depth in 0..dice.below(3) {
                ran.say(&format!("savepoint {depth}"));
                let there = attempt.look(|world| (State::of(world, &watched, small), all(world)));
                marks.push((attempt.savepoint(), there));
                undone += ran.part(attempt, (&commands, of), &mut dice, small);
            }
            while let Some((mark, (state, lines))) = marks.pop() {
                if dice.one_in(4) {
                    continue;
                }
                ran.say(&format!("back to {}", marks.len()));
                attempt.rollback(mark);
                let (now, now_lines) = attempt.look(|world| (State::of(world, &watched, small), all(world)));
                check(seed, &ran, (&state, &lines), (&now, &now_lines));
                if dice.one_in(2) {
                    ran_in_all += ran.part(attempt, (&commands, of), &mut dice, small);
                }
            }
            assert!(attempt.look(|world| State::of(world, &watched, false)).changed_watches.is_empty());
            ran.say(if keep { "kept" } else { "taken back" });
            keep
        });
        if keep {
            committed += 1;
        } else {
            let after = State::of(&own.world(), &watched, small);
            check(seed, &ran, (&before, &before_all), (&after, &all(&own.world())));
            let still = [bench.is_waiting(client), bench.is_waiting(waiter)];
            assert_eq!(still, waits, "seed {seed}: who waits goes on to wait\n{}", ran.0.join("\n"));
        }
        bench.maintain();
        let (kept, counted, _) = own.world().value_bytes();
        assert_eq!(kept, counted, "seed {seed}: what is counted is what is there\n{}", ran.0.join("\n"));
        shadow.follow();
        assert!(shadow.agrees(), "seed {seed}:\n{}\n{}", ran.0.join("\n"), shadow.differences());
        unwatch(&own.world(), &watched);
        bench.disconnect(client);
        bench.disconnect(waiter);
        bench.run_args(admin, &[b"FLUSHALL"]);
        bench.maintain();
        assert_eq!(keyspace.used_bytes(), 0, "seed {seed}: nothing is left\n{}", ran.0.join("\n"));
        rounds += 1;
    }
    println!(
        "{rounds} rounds, {ran_in_all} commands of attempts, {undone} taken back to savepoints, {committed} kept"
    );
}

fn set_limits(bench: &mut Bench, client: u32, dice: &mut Dice) {
    let (entries, value) = LIMITS[dice.below(LIMITS.len())];
    let limits = ["CONFIG", "SET", "hash-max-listpack-entries", entries, "hash-max-listpack-value", value];
    bench.run_args(client, &limits.map(str::as_bytes));
}

/// Records, and streams with what their consumers have: what is small has its memory again too.
#[test]
fn records_and_consumers_come_back_to_the_byte() {
    let commands = Commands::new();
    let of = ["records", "records", "records", "consumers"].map(|name| commands.named(name));
    let mut bench = Bench::of(support::engine_of(config(4), 1), 0);
    let mut own = bench.engine.keyspace.worker().expect("a place for one more");
    let (mut undone, mut exact, mut wide, mut pending) = (0, 0, 0, 0);
    for seed in Rounds::few(150) {
        let mut dice = Dice::new(seed);
        let client = bench.connect(Protocol::Resp2);
        let mut ran = Steps::default();
        set_limits(&mut bench, client, &mut dice);
        let mut list: Vec<_> = (0..BEFORE).map(|_| commands.any(of, &mut dice)).collect();
        list.splice(..0, of.iter().skip(2).flat_map(|group| commands.opening(*group, &mut dice)));
        for words in list.iter().filter(|words| args_of(words).is_some()) {
            ran.0.push(shown(words));
            bench.run_args(client, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        let has = bench.text(client, "XPENDING t g");
        pending += usize::from(!has.starts_with('-') && !has.starts_with("[0 "));
        // Others may lower them, too.
        set_limits(&mut bench, client, &mut dice);
        let mut before = State::of(&own.world(), &Vec::new(), true);
        let lines = all(&own.world());
        ran.say("taken back");
        bench.attempt(client, |attempt| {
            undone += ran.part(attempt, (&commands, of), &mut dice, false);
            false
        });
        let mut after = State::of(&own.world(), &Vec::new(), true);
        for (key, (encoding, memory)) in &mut before.forms {
            exact += usize::from(*memory <= WHOLE_BYTES);
            wide += usize::from(*encoding == "hashtable" && *memory <= WHOLE_BYTES / 2);
            if *memory > WHOLE_BYTES {
                *memory = 0;
                after.forms.entry(key.clone()).and_modify(|form| form.1 = 0);
            }
        }
        check(seed, &ran, (&before, &lines), (&after, &all(&own.world())));
        let (kept, counted, _) = own.world().value_bytes();
        assert_eq!(kept, counted, "seed {seed}: what is counted is what is there\n{}", ran.0.join("\n"));
        bench.run_args(client, &[b"FLUSHALL"]);
        bench.disconnect(client);
        bench.maintain();
        assert_eq!(
            bench.engine.keyspace.used_bytes(),
            0,
            "seed {seed}: nothing is left\n{}",
            ran.0.join("\n")
        );
    }
    println!(
        "{undone} commands taken back; {exact} values to the byte, {wide} of them records; {pending} groups"
    );
    assert!(
        undone > 1000 && exact > 300 && wide > 100 && pending > 50,
        "{undone}, {exact}, {wide}, {pending}"
    );
}

fn check(
    seed: u64,
    ran: &Steps,
    (before, lines): (&State, &std::collections::BTreeSet<String>),
    (after, now): (&State, &std::collections::BTreeSet<String>),
) {
    let only = |one: &std::collections::BTreeSet<String>, other: &std::collections::BTreeSet<String>| {
        one.difference(other).cloned().collect::<Vec<_>>().join("\n")
    };
    assert!(
        before == after,
        "seed {seed}: {before:?}\nis now {after:?}\nof:\n{}\nonly before:\n{}\nonly now:\n{}",
        ran.0.join("\n"),
        only(lines, now),
        only(now, lines)
    );
}
