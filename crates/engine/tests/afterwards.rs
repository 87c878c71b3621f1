//! What triggers do afterwards, and of keys that go by themselves: what waits, how often it is tried, what is lost; and
//! what of an event is told.

mod support;

use support::stored::{background, bench, done_or_given_up, of_event, store, words};
use support::{Bench, show};
use weft_engine::reply::Protocol;
use weft_store::{Op, Recorder, Section};

fn told(bench: &mut Bench, listener: u32) -> Vec<String> {
    bench.take(listener).iter().map(show).collect()
}

#[test]
fn what_is_evicted_and_what_expires_is_told_to_channels_and_programs() {
    let (mut bench, client) = bench();
    let listener = bench.connect(Protocol::Resp3);
    bench.run(listener, "SUBSCRIBE gone");
    store(
        &mut bench,
        client,
        "PROGRAM",
        "note",
        &of_event(r#"["RPUSH","log","${event.kind}:${event.key}"]"#),
    );
    store(&mut bench, client, "TRIGGER", "p", r#"{"key":"k:*","on":["evict","expire"],"publish":"gone"}"#);
    store(&mut bench, client, "TRIGGER", "a", r#"{"key":"k:*","on":["evict","expire"],"after":"note"}"#);
    let value = "x".repeat(10_000);
    // The one whose time comes first goes first; what has none stays.
    bench.text(client, "CONFIG SET maxmemory-policy volatile-ttl maxmemory-samples 64");
    for at in 0..20 {
        words(&mut bench, client, &["SET", &format!("k:{at}"), &value, "EX", &(1000 + at).to_string()]);
    }
    let used = bench.engine.keyspace.used_bytes();
    bench.text(client, &format!("CONFIG SET maxmemory {}", used - 5_000));
    assert_eq!(words(&mut bench, client, &["SET", "other", "v"]), "OK");
    assert_eq!(bench.text(client, "EXISTS k:0"), "0", "it had to go");
    bench.text(client, "CONFIG SET maxmemory 0");
    background(&bench)();
    let log = bench.text(client, "LRANGE log 0 -1");
    assert!(log.starts_with("[evict:k:0") && !log.contains("expire"), "{log}");
    let evicted = told(&mut bench, listener);
    assert!(evicted[0].contains(r#""key":"k:0","kind":"evict""#), "{evicted:?}");
    assert_eq!(evicted.len(), log.matches("evict").count(), "{log}");
    bench.text(client, "DEL log");
    bench.text(client, "SET k:short v PX 10");
    bench.pass(20);
    background(&bench)();
    assert_eq!(bench.text(client, "LRANGE log 0 -1"), "[expire:k:short]");
    let expired = told(&mut bench, listener);
    assert!(expired.len() == 1 && expired[0].contains(r#""key":"k:short","kind":"expire""#), "{expired:?}");
    let stats = bench.text(client, "TRIGGER STATS");
    assert!(stats.starts_with("{waiting:0 lost:0 ") && !stats.contains("fired:0"), "{stats}");
}

/// What waits is dropped when its trigger has become one that does nothing afterwards: it neither happens nor counts.
#[test]
fn what_waits_is_not_done_by_a_trigger_that_tells_at_once() {
    let (mut bench, client) = bench();
    let listener = bench.connect(Protocol::Resp3);
    bench.run(listener, "SUBSCRIBE now");
    bench.take(listener);
    store(&mut bench, client, "PROGRAM", "note", &of_event(r#"["INCR","done"]"#));
    let becomes = [r#"{"key":"k","publish":"now"}"#, r#"{"key":"k","inside":"note"}"#];
    let waits = [r#"{"key":"k","after":"note"}"#, r#"{"key":"k","on":"expire","after":"note"}"#];
    for (before, behind) in waits.iter().flat_map(|one| becomes.map(|other| (one, other))) {
        store(&mut bench, client, "TRIGGER", "t", before);
        bench.text(client, "SET k v PX 10");
        bench.pass(20);
        assert_eq!(bench.text(client, "EXISTS k"), "0");
        store(&mut bench, client, "TRIGGER", "t", behind);
        background(&bench)();
        let stats = bench.text(client, "TRIGGER STATS t");
        let left = (told(&mut bench, listener).len(), bench.text(client, "EXISTS done"));
        assert_eq!(left, (0, "0".into()), "{before} became {behind}");
        assert!(stats.contains("fired:0 failed:0"), "{before} became {behind}: {stats}");
    }
}

#[test]
fn each_attempt_waits_twice_as_long_as_the_one_before() {
    let (mut bench, client) = bench();
    store(&mut bench, client, "PROGRAM", "never", &of_event(r#"{"fail":"NEVER"}"#));
    store(&mut bench, client, "TRIGGER", "t", r#"{"key":"k","after":"never"}"#);
    bench.text(client, "SET k v");
    let mut work = background(&bench);
    let mut failed = |bench: &mut Bench| {
        work();
        let stats = bench.text(client, "TRIGGER STATS t");
        let (_, figure) = stats.split_once("failed:").expect("it is there");
        (figure.split(' ').next().expect("a number").to_owned(), stats.contains("dead:1"))
    };
    assert_eq!(failed(&mut bench), ("1".into(), false));
    for (attempt, ms) in [50, 100, 200, 400, 800, 1600, 3200].into_iter().enumerate() {
        bench.pass(ms - 1);
        assert_eq!(failed(&mut bench), ((attempt + 1).to_string(), false), "before {ms} ms");
        bench.pass(1);
        assert_eq!(failed(&mut bench), ((attempt + 2).to_string(), attempt == 6), "after {ms} ms");
    }
}

#[test]
fn what_waits_is_dropped_when_its_trigger_is_switched_off_or_does_something_else() {
    let (mut bench, client) = bench();
    store(&mut bench, client, "PROGRAM", "note", &of_event(r#"["RPUSH","log","${event.key}"]"#));
    store(&mut bench, client, "TRIGGER", "off", r#"{"key":"a","after":"note"}"#);
    store(&mut bench, client, "TRIGGER", "other", r#"{"key":"b","after":"note"}"#);
    store(&mut bench, client, "TRIGGER", "stays", r#"{"key":"c","after":"note"}"#);
    bench.text(client, "MSET a 1 b 1 c 1");
    let waits = bench.text(client, "TRIGGER STATS stays");
    assert!(waits.starts_with("{waiting:3 "), "{waits}");
    bench.text(client, "TRIGGER DISABLE off");
    store(&mut bench, client, "TRIGGER", "other", r#"{"key":"b","stream":"events"}"#);
    background(&bench)();
    assert_eq!(bench.text(client, "LRANGE log 0 -1"), "[c]");
    assert_eq!(bench.text(client, "EXISTS events"), "0");
    bench.text(client, "TRIGGER ENABLE off");
    background(&bench)();
    assert_eq!(bench.text(client, "LRANGE log 0 -1"), "[c]", "it does not come back");
    let stats = bench.text(client, "TRIGGER STATS off");
    assert!(stats.starts_with("{waiting:0 lost:0 ") && stats.contains("fired:1 failed:0"), "{stats}");
    // Stored anew a trigger has done nothing yet; switching it keeps what it has.
    let stats = bench.text(client, "TRIGGER STATS other");
    assert!(stats.contains("fired:0 failed:0"), "{stats}");
}

#[test]
fn a_new_value_is_told_up_to_64_kib_and_of_a_longer_one_the_length() {
    let (mut bench, client) = bench();
    let note = of_event(r#"["RPUSH","log",{"length":{"coalesce":["${event.value}",""]}},"${event.length}"]"#);
    store(&mut bench, client, "PROGRAM", "note", &note);
    store(&mut bench, client, "TRIGGER", "in", r#"{"key":"k","inside":"note"}"#);
    words(&mut bench, client, &["SET", "k", &"x".repeat(65_536)]);
    words(&mut bench, client, &["SET", "k", &"x".repeat(65_537)]);
    assert_eq!(bench.text(client, "LRANGE log 0 -1"), "[65536 65536 0 65537]");
}

#[test]
fn when_100_000_wait_changes_that_would_add_to_them_are_refused() {
    let (mut bench, client) = bench();
    store(&mut bench, client, "PROGRAM", "note", &of_event(r#"["INCR","n"]"#));
    store(&mut bench, client, "TRIGGER", "t", r#"{"key":"k:*","after":"note"}"#);
    store(&mut bench, client, "TRIGGER", "u", r#"{"key":"k:*","on":"expire","after":"note"}"#);
    for round in 0..100 {
        let pairs: Vec<String> = (0..1000).map(|at| format!("k:{round}:{at} v")).collect();
        assert_eq!(bench.text(client, &format!("MSET {}", pairs.join(" "))), "OK", "round {round}");
    }
    let refused = bench.text(client, "SET k:more v");
    assert_eq!(refused, "-ERR trigger t: 100000 things wait to be done by triggers: try again later");
    assert_eq!(bench.text(client, "EXISTS k:more"), "0", "nothing of it stays");
    assert_eq!(bench.text(client, "SET other v"), "OK");
    background(&bench)();
    assert_eq!(bench.text(client, "GET n"), "100000");
    assert_eq!(bench.text(client, "SET k:more v"), "OK");
}

/// Entries in a form that is not known: of a later version, or of a damaged snapshot.
#[test]
fn an_entry_that_cannot_be_read_is_told_of_and_goes() {
    let (mut bench, client) = bench();
    store(&mut bench, client, "PROGRAM", "note", &of_event(r#"["RPUSH","log","${event.key}"]"#));
    store(&mut bench, client, "TRIGGER", "t", r#"{"key":"k:*","after":"note"}"#);
    bench.text(client, "SET k:1 v");
    let mut worker = bench.engine.keyspace.worker().expect("a place");
    {
        let world = worker.world();
        let (key, mut recorder) = (bench.engine.keyspace.key(b""), Recorder::default());
        recorder.attach(&bench.engine.keyspace);
        let number = bench.engine.keyspace.catalogue().next_number().to_be_bytes();
        let mut op = Op::untouched(0, 0, &mut recorder);
        world.guards().shard(&key).set_entry(&mut op, Section::Outbox, &number, Some(b"cut"));
        recorder.end_group();
    }
    drop(worker);
    bench.text(client, "SET k:2 v");
    let problems = bench.engine.load_catalogue();
    assert!(problems.len() == 1 && problems[0].contains("cannot be read"), "{problems:?}");
    background(&bench)();
    assert_eq!(bench.text(client, "LRANGE log 0 -1"), "[k:1 k:2]");
    let stats = bench.text(client, "TRIGGER STATS t");
    assert!(stats.starts_with("{waiting:0 lost:1 "), "{stats}");
}

/// Only the server's own refusal for memory is waited out: a program may fail with the same word.
#[test]
fn a_program_that_fails_with_oom_is_given_up() {
    let (mut bench, client) = bench();
    store(&mut bench, client, "PROGRAM", "oom", &of_event(r#"{"fail":"OOM","message":"of its own"}"#));
    store(&mut bench, client, "PROGRAM", "write", &of_event(r#"["SET","inner","v"]"#));
    store(&mut bench, client, "TRIGGER", "inner", r#"{"key":"inner","inside":"oom"}"#);
    store(&mut bench, client, "TRIGGER", "direct", r#"{"key":"a","after":"oom"}"#);
    store(&mut bench, client, "TRIGGER", "chain", r#"{"key":"b","after":"write"}"#);
    bench.text(client, "MSET a 1 b 1");
    done_or_given_up(&bench);
    for name in ["direct", "chain"] {
        let stats = bench.text(client, &format!("TRIGGER STATS {name}"));
        assert!(stats.starts_with("{waiting:0 ") && stats.contains("failed:8"), "{stats}");
        assert!(stats.contains("dead:1"), "{stats}");
    }
}

/// Subscriptions, all of one client, to patterns that match the channel `c`.
fn subscribe(bench: &mut Bench, count: usize) -> u32 {
    let listener = bench.connect(Protocol::Resp3);
    for from in (0..count).step_by(1000) {
        let patterns: Vec<String> = (from..(from + 1000).min(count)).map(|at| format!("[c{at}]")).collect();
        bench.run(listener, &format!("PSUBSCRIBE {}", patterns.join(" ")));
    }
    bench.take(listener);
    listener
}

/// Whom a program tells belongs to its budget, though they are told behind it.
#[test]
fn a_message_counts_for_all_who_get_it() {
    let (mut bench, client) = bench();
    let listener = subscribe(&mut bench, 10_000);
    let publish = |times: usize| {
        format!(
            r#"{{"limits":{{"time-ms":100}},"steps":[{{"for":"i","range":[0,{times}],"do":[["PUBLISH","c","v"]]}}]}}"#
        )
    };
    assert_eq!(words(&mut bench, client, &["PROGRAM", "EVAL", &publish(1)]), "nil");
    assert_eq!(told(&mut bench, listener).len(), 10_000);
    let refused = words(&mut bench, client, &["PROGRAM", "EVAL", &publish(2)]);
    assert!(refused.contains("/steps/0/do/0 PUBLISH: too many steps"), "{refused}");
    assert!(told(&mut bench, listener).is_empty(), "nobody hears of what was taken back");
    let elsewhere = publish(5).replace("\"c\"", "\"quiet\"");
    assert_eq!(words(&mut bench, client, &["PROGRAM", "EVAL", &elsewhere]), "nil");
}

/// So does whom triggers tell: one message is told as PUBLISH does, further ones within the time.
#[test]
fn messages_of_triggers_count_for_all_who_get_them() {
    let (mut bench, client) = bench();
    let listener = subscribe(&mut bench, 25_000);
    store(&mut bench, client, "TRIGGER", "t", r#"{"key":"k:*","publish":"c"}"#);
    assert_eq!(bench.text(client, "SET k:1 v"), "OK", "for 6 ms");
    assert_eq!(told(&mut bench, listener).len(), 25_000);
    let refused = bench.text(client, "MSET k:1 v k:2 v");
    assert!(refused.contains("trigger t: all that a command fires has the time of one program"), "{refused}");
    let program = r#"{"steps":[["SET","k:1","v"],["SET","k:2","v"]]}"#;
    let refused = words(&mut bench, client, &["PROGRAM", "EVAL", program]);
    assert!(refused.contains("/steps/1 SET: trigger t: all that"), "{refused}");
    assert!(told(&mut bench, listener).is_empty());
    assert_eq!(bench.text(client, "SET k:1 v"), "OK");
}
