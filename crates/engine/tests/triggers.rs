//! Triggers: which changes fire them, in the group of the change and afterwards, order, limits, rights.

mod support;

use support::stored::{background, bench, digest, of_event, store, words};
use support::{Bench, show};
use weft_engine::background::Background;
use weft_engine::context::EffectReader;
use weft_engine::reply::Protocol;
use weft_store::{ExpiryCycle, Section};

fn program(bench: &mut Bench, client: u32, name: &str, steps: &str) {
    store(bench, client, "PROGRAM", name, &of_event(steps));
}

fn trigger(bench: &mut Bench, client: u32, name: &str, text: &str) {
    store(bench, client, "TRIGGER", name, text);
}

/// The server's background thread, step by step.
fn steps(bench: &Bench, count: usize) {
    let mut worker = bench.engine.keyspace.worker().expect("a place");
    let mut background = Background::new(bench.engine);
    for _ in 0..count {
        background.step(bench.engine, &mut worker, |_| {});
    }
}

#[test]
fn inside_belongs_to_the_command_over_every_way_to_write() {
    let (mut bench, client) = bench();
    program(&mut bench, client, "count", r#"["HINCRBY","counts","${event.kind}:${event.command}",1]"#);
    trigger(&mut bench, client, "t", r#"{"key":"user:*","inside":"count"}"#);
    for command in [
        "SET user:1 a",
        "SET other b",
        "MSET user:2 a x b user:3 c",
        "HSET user:h f v",
        "DEL user:1 user:2",
        "RENAME user:3 y",
        "RENAME y user:4",
        "APPEND user:4 z",
        "EXPIRE user:4 100",
        "LPUSH user:l a",
        "LPOP user:l",
        "RPUSH user:r a b",
        "LMOVE user:r user:r LEFT RIGHT",
        "RPOP user:r",
        "LMOVE user:r user:r LEFT RIGHT",
        "GET user:4",
        "SETNX user:4 q",
    ] {
        let answer = bench.text(client, command);
        assert!(!answer.starts_with('-'), "{command}: {answer}");
    }
    bench.text(client, "MULTI");
    bench.text(client, "INCR user:n");
    bench.text(client, "EXEC");
    words(&mut bench, client, &["PROGRAM", "EVAL", r#"{"steps":[["INCR","user:n"],["INCR","user:n"]]}"#]);
    let counts = bench.text(client, "HGETALL counts");
    let mut counts: Vec<&str> = counts.trim_matches(['{', '}']).split(' ').collect();
    counts.sort_unstable();
    assert_eq!(
        counts,
        [
            "delete:del:2",
            "delete:lpop:1",
            "delete:rename:1",
            "set:append:1",
            "set:expire:1",
            "set:hset:1",
            "set:incr:3",
            "set:lmove:2",
            "set:lpush:1",
            "set:mset:2",
            "set:rename:1",
            "set:rpop:1",
            "set:rpush:1",
            "set:set:1"
        ]
    );
    let stats = bench.text(client, "TRIGGER STATS t");
    assert!(stats.contains("fired:19 failed:0"), "{stats}");
}

/// A command that gives a key a time that is over deletes it, whatever the notification is called.
#[test]
fn a_time_that_is_over_deletes_by_a_command_and_not_by_itself() {
    let (mut bench, client) = bench();
    program(&mut bench, client, "kept", r#"{"fail":"KEPT","message":"${event.kind}"}"#);
    program(&mut bench, client, "note", r#"["RPUSH","log","${event.kind}:${event.command}"]"#);
    trigger(&mut bench, client, "guard", r#"{"key":"k","on":"delete","inside":"kept"}"#);
    trigger(&mut bench, client, "note", r#"{"key":"k","on":["delete","expire"],"after":"note"}"#);
    let listener = bench.connect(Protocol::Resp3);
    bench.text(client, "CONFIG SET notify-keyspace-events KEA");
    for (command, name) in [
        ("EXPIRE k -1", "expire"),
        ("PEXPIRE k 0", "pexpire"),
        ("EXPIREAT k 1", "expireat"),
        ("PEXPIREAT k 1", "pexpireat"),
        ("GETEX k PXAT 1", "getex"),
        ("SET k v PXAT 1", "set"),
        ("MSETEX 1 k v PXAT 1", "msetex"),
    ] {
        bench.text(client, "SET k v");
        assert_eq!(bench.text(client, command), "-KEPT trigger guard: delete", "{command}");
        assert_eq!(bench.text(client, "GET k"), "v", "{command}");
        bench.text(client, "TRIGGER DISABLE guard");
        bench.run(listener, "SUBSCRIBE __keyevent@0__:expired");
        assert!(!bench.text(client, command).starts_with('-'), "{command}");
        assert_eq!(bench.take(listener).len(), 1, "{command}: the notification keeps its name");
        bench.run(listener, "UNSUBSCRIBE");
        steps(&bench, 40);
        assert_eq!(bench.text(client, "LRANGE log 0 -1"), format!("[delete:{name}]"), "{command}");
        bench.text(client, "TRIGGER ENABLE guard");
        bench.text(client, "DEL log");
    }
}

#[test]
fn a_failure_inside_takes_the_command_back_and_no_more() {
    let (mut bench, client) = bench();
    let checks = r#"["INCR","checked"],{"assert":{"<=":[{"coalesce":["${event.value}",0]},10]},"code":"TOOLARGE","message":"${event.key} is at most 10"}"#;
    program(&mut bench, client, "check", checks);
    trigger(&mut bench, client, "bounded", r#"{"key":"n:*","on":"set","inside":"check"}"#);
    assert_eq!(bench.text(client, "SET n:1 9"), "OK");
    let before = digest(&mut bench, client);
    assert_eq!(bench.text(client, "INCRBY n:1 5"), "-TOOLARGE trigger bounded: n:1 is at most 10");
    assert_eq!(bench.text(client, "SET n:2 11"), "-TOOLARGE trigger bounded: n:2 is at most 10");
    assert_eq!(digest(&mut bench, client), before);
    // In a transaction its own command only.
    for command in ["MULTI", "SET a 1", "SET n:1 11", "SET n:1 10"] {
        bench.text(client, command);
    }
    assert_eq!(bench.text(client, "EXEC"), "[OK -TOOLARGE trigger bounded: n:1 is at most 10 OK]");
    assert_eq!(bench.text(client, "MGET a n:1 checked"), "[1 10 2]");
    // In a program the program.
    let answer =
        words(&mut bench, client, &["PROGRAM", "EVAL", r#"{"steps":[["SET","b","1"],["SET","n:1","12"]]}"#]);
    assert_eq!(answer, "-TOOLARGE /steps/1 SET: trigger bounded: n:1 is at most 10");
    assert_eq!(bench.text(client, "EXISTS b"), "0");
    // A program that is not there is a failure too.
    trigger(&mut bench, client, "gone", r#"{"key":"g","inside":"nothing"}"#);
    assert_eq!(bench.text(client, "SET g 1"), "-NOPROGRAM trigger gone: no program 'nothing' is stored");
    assert_eq!(bench.text(client, "TRIGGER DISABLE gone"), "2");
    assert_eq!(bench.text(client, "SET g 1"), "OK");
    assert_eq!(bench.text(client, "TRIGGER ENABLE gone"), "3");
    assert!(bench.text(client, "SET g 1").starts_with("-NOPROGRAM"));
    assert_eq!(bench.text(client, "TRIGGER DEL gone bounded"), "2");
    assert_eq!(bench.text(client, "SET n:1 100"), "OK");
}

#[test]
fn several_fire_in_the_order_of_their_names_and_a_circle_ends_with_its_names() {
    let (mut bench, client) = bench();
    for name in ["b", "a", "c"] {
        program(&mut bench, client, name, &format!(r#"["RPUSH","order","{name}"]"#));
        trigger(&mut bench, client, name, &format!(r#"{{"key":"k","inside":"{name}"}}"#));
    }
    bench.text(client, "SET k 1");
    assert_eq!(bench.text(client, "LRANGE order 0 -1"), "[a b c]");
    program(&mut bench, client, "ping", r#"["INCR","pong"]"#);
    program(&mut bench, client, "pong", r#"["INCR","ping"]"#);
    trigger(&mut bench, client, "one", r#"{"key":"ping","inside":"ping"}"#);
    trigger(&mut bench, client, "two", r#"{"key":"pong","inside":"pong"}"#);
    let before = digest(&mut bench, client);
    let answer = bench.text(client, "SET ping 1");
    assert_eq!(
        answer,
        "-ERR trigger one > two > one > two > one > two > one > two > one: triggers fire 8 deep at most"
    );
    assert_eq!(digest(&mut bench, client), before);
}

#[test]
fn a_circle_afterwards_ends_with_its_names_and_is_not_tried_again() {
    let (mut bench, client) = bench();
    program(&mut bench, client, "tob", r#"["INCR","b:1"]"#);
    program(&mut bench, client, "toa", r#"["INCR","mid"]"#);
    program(&mut bench, client, "mid", r#"["INCR","a:1"]"#);
    trigger(&mut bench, client, "ona", r#"{"key":"a:*","after":"tob"}"#);
    trigger(&mut bench, client, "onb", r#"{"key":"b:*","after":"toa"}"#);
    trigger(&mut bench, client, "inside", r#"{"key":"mid","inside":"mid"}"#);
    bench.text(client, "SET a:1 0");
    // Names stay with what waits, also over a start.
    steps(&bench, 1);
    assert!(bench.engine.load_catalogue().is_empty());
    steps(&bench, 20);
    let stats = bench.text(client, "TRIGGER STATS ona");
    assert!(stats.starts_with("{waiting:0 lost:0 "), "{stats}");
    let dead = bench.text(client, "XRANGE weft:triggers:dead - +");
    assert_eq!(dead.matches("trigger onb kind set db 0 key b:1").count(), 1, "{dead}");
    let way = "trigger ona > onb > inside > ona > onb > inside > ona > onb > inside > ona > onb > inside > ona: triggers fire 8 deep at most";
    assert!(dead.contains(way), "{dead}");
    assert_eq!(bench.text(client, "MGET a:1 b:1"), "[3 4]");
}

#[test]
fn a_test_shows_what_a_trigger_would_do_and_does_nothing() {
    let (mut bench, client) = bench();
    let stamp = r#"{"params":[{"name":"event","type":"object"}],"steps":[
        {"assert":{"<":["${event.value}",10]},"code":"LARGE"},["SET","last","${event.key}"],
        {"return":"${event.kind}"}]}"#;
    assert_eq!(words(&mut bench, client, &["PROGRAM", "SET", "stamp", stamp]), "1");
    trigger(&mut bench, client, "in", r#"{"key":"k:*","inside":"stamp"}"#);
    trigger(&mut bench, client, "out", r#"{"key":"k:*","after":"none"}"#);
    trigger(&mut bench, client, "told", r#"{"key":"k:*","stream":"of:${event.key}"}"#);
    trigger(&mut bench, client, "said", r#"{"key":"k:*","publish":"news"}"#);
    let before = digest(&mut bench, client);
    let event = r#"{"key":"k:1","kind":"set","value":5}"#;
    let of =
        |bench: &mut Bench, name: &str, event: &str| words(bench, client, &["TRIGGER", "TEST", name, event]);
    let answer = of(&mut bench, "in", event);
    assert!(answer.ends_with("result:set effects:[[set 0 last k:1 nil]]}"), "{answer}");
    let answer = of(&mut bench, "in", r#"{"key":"k:1","kind":"set","value":50}"#);
    assert!(answer.contains("error:LARGE ") && answer.ends_with("effects:[]}"), "{answer}");
    assert_eq!(of(&mut bench, "out", event), "-NOPROGRAM no program 'none' is stored");
    assert!(of(&mut bench, "told", event).ends_with("stream:of:k:1}"));
    assert!(of(&mut bench, "said", event).ends_with("channel:news}"));
    assert!(of(&mut bench, "said", r#"{"key":"x"}"#).ends_with("event:{command:set db:0 key:x kind:set}}"));
    assert_eq!(digest(&mut bench, client), before);
    // It is whoever asks who runs it.
    bench.text(client, "ACL SETUSER asker on nopass ~k:* +trigger|test");
    let asker = bench.connect(Protocol::Resp3);
    bench.text(asker, "AUTH asker x");
    let answer = words(&mut bench, asker, &["TRIGGER", "TEST", "in", event]);
    assert!(answer.contains("error:NOPERM "), "{answer}");
}

#[test]
fn a_condition_and_the_event_are_about_what_has_happened() {
    let (mut bench, client) = bench();
    program(&mut bench, client, "log", r#"["RPUSH","log",{"to_json":"${event}"}]"#);
    trigger(
        &mut bench,
        client,
        "big",
        r#"{"key":"*","db":0,"when":{">":["${event.value}",10]},"inside":"log"}"#,
    );
    bench.text(client, "SET a 5");
    bench.text(client, "SET a 50");
    bench.text(client, "SELECT 1");
    bench.text(client, "SET a 60");
    bench.text(client, "SELECT 0");
    assert_eq!(
        bench.text(client, "LRANGE log 0 -1"),
        r#"[{"command":"set","db":0,"key":"a","kind":"set","length":2,"type":"string","value":"50"}]"#
    );
    let stats = bench.text(client, "TRIGGER STATS big");
    assert!(stats.contains("fired:1 failed:0 passed-over:2"), "{stats}");
    let test = |bench: &mut Bench, event: &str| words(bench, client, &["TRIGGER", "TEST", "big", event]);
    assert!(
        test(&mut bench, r#"{"key":"x","value":11}"#)
            .starts_with("{fires:true because:everything matches, and")
    );
    assert!(test(&mut bench, r#"{"key":"x","value":1}"#).starts_with("{fires:false because:the condition"));
    assert!(test(&mut bench, r#"{"key":"x","db":1}"#).starts_with("{fires:false because:the database"));
    assert!(test(&mut bench, r#"{"key":"x","kind":"expire"}"#).starts_with("{fires:false because:the kind"));
    assert!(test(&mut bench, "{}").starts_with("-ERR event: expected the member"));
}

#[test]
fn telling_a_stream_and_a_channel() {
    let (mut bench, client) = bench();
    let listener = bench.connect(Protocol::Resp3);
    bench.run(listener, "SUBSCRIBE changes:user:1");
    trigger(&mut bench, client, "s", r#"{"key":"user:*","stream":"events"}"#);
    trigger(&mut bench, client, "p", r#"{"key":"user:*","publish":"changes:${event.key}"}"#);
    bench.text(client, "SET user:1 v");
    bench.text(client, "DEL user:1");
    assert_eq!(bench.text(client, "XLEN events"), "2");
    let entry = bench.text(client, "XREVRANGE events + - COUNT 1");
    assert!(entry.ends_with("[command del db 0 key user:1 kind delete]]]"), "{entry}");
    let told: Vec<String> = bench.take(listener).iter().map(show).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("\"value\":\"v\"") && told[1].contains("\"kind\":\"delete\""), "{told:?}");
}

#[test]
fn afterwards_is_appended_with_the_change_tried_again_and_given_up_in_the_order_of_a_key() {
    let (mut bench, client) = bench();
    program(
        &mut bench,
        client,
        "later",
        r#"{"do":["GET","fail"],"as":"fail"},{"assert":{"not":"${fail}"},"code":"NOTYET"},["RPUSH","done","${event.key}:${event.command}"]"#,
    );
    trigger(&mut bench, client, "t", r#"{"key":"job:*","after":"later"}"#);
    let waiting = |bench: &Bench| bench.engine.keyspace.catalogue().len(Section::Outbox);
    bench.text(client, "SET job:1 a");
    assert_eq!((bench.text(client, "EXISTS done").as_str(), waiting(&bench)), ("0", 1));
    steps(&bench, 1);
    assert_eq!((bench.text(client, "LRANGE done 0 -1").as_str(), waiting(&bench)), ("[job:1:set]", 0));
    // What was taken back is not done afterwards.
    words(&mut bench, client, &["PROGRAM", "EVAL", r#"{"steps":[["SET","job:1","b"],{"fail":"NO"}]}"#]);
    assert_eq!(waiting(&bench), 0);
    // One that fails holds back those of its key, and no others.
    bench.text(client, "SET fail 1");
    bench.text(client, "SET job:1 c");
    steps(&bench, 1);
    bench.text(client, "DEL fail");
    bench.text(client, "APPEND job:1 d");
    bench.text(client, "SET job:2 a");
    // One step does as much as fits into a time, of which others may take most.
    let mut work = background(&bench);
    bench.text(client, "SET fail 1");
    work();
    bench.text(client, "DEL fail");
    work();
    assert_eq!(bench.text(client, "LRANGE done 1 -1"), "[]");
    bench.pass(50);
    work();
    // Keys take turns.
    assert_eq!(bench.text(client, "LRANGE done 1 -1"), "[job:1:set job:2:set job:1:append]");
    // Given up in the end.
    bench.text(client, "SET fail 1");
    bench.text(client, "SET job:9 a");
    for _ in 0..10 {
        work();
        bench.pass(20_000);
    }
    assert_eq!(waiting(&bench), 0);
    let dead = bench.text(client, "XRANGE weft:triggers:dead - +");
    assert!(dead.contains("trigger t kind set db 0 key job:9 command set error NOTYET"), "{dead}");
    // Each attempt counts: one of the second, eight of the last.
    let stats = bench.text(client, "TRIGGER STATS t");
    assert!(stats.contains(" failed:11 passed-over:0 dead:1"), "{stats}");
}

/// An index that is kept by what happens afterwards would keep a key that is gone.
#[test]
fn a_key_that_goes_by_itself_is_told_of_behind_what_waits_for_it() {
    let (mut bench, client) = bench();
    let text = r#"{"do":["GET","fail"],"as":"fail"},{"assert":{"or":[{"not":"${fail}"},{"!=":["${event.key}","k"]}]},"code":"NOTYET"},["RPUSH","log","${event.kind}:${event.key}"]"#;
    program(&mut bench, client, "note", text);
    trigger(&mut bench, client, "t", r#"{"key":"?","on":["set","expire"],"after":"note"}"#);
    let mut worker = bench.engine.keyspace.worker().expect("a place");
    let mut background = Background::new(bench.engine);
    let mut steps = |bench: &Bench| {
        for _ in 0..40 {
            background.step(bench.engine, &mut worker, |_| {});
        }
    };
    // Nothing was taken up yet.
    bench.text(client, "SET k v PX 10");
    bench.pass(20);
    assert_eq!(bench.text(client, "GET k"), "nil");
    bench.text(client, "SET k v PX 10");
    steps(&bench);
    assert_eq!(bench.text(client, "LRANGE log 0 -1"), "[set:k expire:k set:k]");
    // Somebody else sets it again before he is told of it who has removed it.
    bench.text(client, "DEL log");
    bench.text(client, "SET k v PX 10");
    bench.pass(20);
    let mut other = bench.engine.keyspace.worker().expect("a place");
    let mut effects = EffectReader::default();
    effects.begin(bench.engine);
    {
        let batch = other.enter();
        let now_ms = bench.engine.clock.now_ms();
        let expired = ExpiryCycle::default().step(&batch, now_ms, usize::MAX, &mut effects.recorder);
        assert_eq!(expired.expired, 1);
        bench.text(client, "SET k w PX 10");
        bench.engine.after_background(&mut effects);
    }
    steps(&bench);
    assert_eq!(bench.text(client, "LRANGE log 0 -1"), "[set:k expire:k set:k]");
    // What waits for its next attempt holds it back, and no other key.
    bench.text(client, "DEL log");
    bench.text(client, "SET fail 1");
    bench.text(client, "SET j v PX 10");
    bench.text(client, "APPEND k v");
    steps(&bench);
    bench.pass(20);
    steps(&bench);
    assert_eq!(bench.text(client, "LRANGE log 0 -1"), "[set:j expire:j]");
    assert!(bench.text(client, "TRIGGER STATS t").starts_with("{waiting:2 lost:0 "));
    // Entries are taken up anew, as after a start; the event is still behind them.
    assert!(bench.engine.load_catalogue().is_empty());
    bench.text(client, "DEL fail");
    bench.pass(20_000);
    steps(&bench);
    assert_eq!(bench.text(client, "LRANGE log 2 -1"), "[set:k expire:k]");
    assert!(bench.text(client, "TRIGGER STATS t").starts_with("{waiting:0 lost:0 "));
}

#[test]
fn keys_that_go_by_themselves_are_told_of_afterwards() {
    let (mut bench, client) = bench();
    program(&mut bench, client, "gone", r#"["RPUSH","gone","${event.kind}:${event.key}"]"#);
    trigger(&mut bench, client, "t", r#"{"key":"s:*","on":["expire","evict"],"after":"gone"}"#);
    bench.text(client, "SET s:1 a PX 10");
    bench.text(client, "SET other a PX 10");
    bench.text(client, "SET s:2 a PX 10");
    bench.pass(20);
    assert_eq!(bench.text(client, "GET s:1"), "nil");
    steps(&bench, 40);
    assert_eq!(bench.text(client, "SORT gone ALPHA"), "[expire:s:1 expire:s:2]");
    for (text, part) in [
        (r#"{"key":"a","on":"expire","inside":"x"}"#, "/inside: what happens by itself"),
        (r#"{"key":"a","on":["set","evict"],"stream":"x"}"#, "/stream: what happens by itself"),
        (r#"{"key":"a"}"#, "expected one of the members inside, after, stream, publish"),
        (r#"{"key":"a","after":"x","inside":"x"}"#, "expected one of the members"),
        (r#"{"on":"set","after":"x"}"#, "expected the member \"key\""),
        (r#"{"key":"a","on":"create","after":"x"}"#, "/on: unknown kind"),
        (r#"{"key":"a","on":[],"after":"x"}"#, "/on: expected one of"),
        (r#"{"key":"a","db":-1,"after":"x"}"#, "/db: expected the number"),
        (r#"{"key":"a","when":"${x}","after":"x"}"#, "/when: no name"),
        (r#"{"key":"a","afterwards":"x"}"#, "/afterwards: unknown member"),
    ] {
        let answer = words(&mut bench, client, &["TRIGGER", "SET", "wrong", text]);
        assert!(answer.starts_with("-ERR trigger /") && answer.contains(part), "{text}: {answer}");
    }
}

#[test]
fn what_a_trigger_does_has_its_owners_rights_and_it_outlives_a_flush() {
    let (mut bench, admin) = bench();
    program(&mut bench, admin, "audit", r#"["RPUSH","audit","${event.key}"]"#);
    trigger(&mut bench, admin, "t", r#"{"key":"own:*","inside":"audit"}"#);
    bench.text(admin, "ACL SETUSER u on nopass ~own:* +set +trigger|list");
    let user = bench.connect(Protocol::Resp3);
    bench.text(user, "AUTH u x");
    assert_eq!(bench.text(user, "SET own:1 a"), "OK");
    assert_eq!(bench.text(admin, "LRANGE audit 0 -1"), "[own:1]");
    assert!(bench.text(user, "TRIGGER SET x {}").starts_with("-NOPERM"));
    // It acts inside the commands of others: not for whoever may all but what is dangerous.
    bench.text(admin, "ACL SETUSER v on nopass ~* &* +@all -@dangerous");
    let other = bench.connect(Protocol::Resp3);
    bench.text(other, "AUTH v x");
    for command in ["TRIGGER SET x {}", "TRIGGER DEL t", "TRIGGER DISABLE t", "TRIGGER ENABLE t"] {
        assert!(bench.text(other, command).starts_with("-NOPERM"), "{command}");
    }
    bench.text(admin, "FLUSHALL");
    let list = "[{name:t how:inside owner:default trigger:{\"key\":\"own:*\",\"inside\":\"audit\"} version:1 enabled:true}]";
    assert_eq!(bench.text(user, "TRIGGER LIST"), list);
    assert_eq!(
        words(&mut bench, admin, &["TRIGGER", "SET", "t", r#"{"key":"a","inside":"audit"}"#, "VERSION", "7"]),
        "-WRONGVERSION the version of the trigger is 1, 0 being none"
    );
    // As after a start from a log.
    assert!(bench.engine.load_catalogue().is_empty());
    assert_eq!(bench.text(user, "SET own:2 a"), "OK");
    assert_eq!(bench.text(admin, "LRANGE audit 0 -1"), "[own:2]");
}

#[test]
fn a_program_whose_keys_are_not_known_gets_the_keyspace_to_itself() {
    let (mut bench, client) = bench();
    program(
        &mut bench,
        client,
        "index",
        r#"{"do":["HGET","${event.key}","city"],"as":"city"},["SADD","city:${city}","${event.key}"]"#,
    );
    trigger(&mut bench, client, "t", r#"{"key":"user:*","inside":"index"}"#);
    program(&mut bench, client, "total", r#"["INCR","total"]"#);
    trigger(&mut bench, client, "u", r#"{"key":"city:*","inside":"total"}"#);
    assert_eq!(bench.text(client, "HSET user:1 city Rome"), "1");
    assert_eq!(bench.text(client, "HSET user:2 city Rome"), "1");
    assert_eq!(bench.text(client, "SCARD city:Rome"), "2");
    assert_eq!(bench.text(client, "GET total"), "2");
}

#[test]
fn what_waits_for_an_attempt_holds_back_its_own_key_however_many_wait() {
    let (mut bench, client) = bench();
    let text =
        r#"{"assert":{"!=":["${event.value}","bad"]},"code":"NOTYET"},["RPUSH","done","${event.key}"]"#;
    program(&mut bench, client, "later", text);
    trigger(&mut bench, client, "t", r#"{"key":"job:*","after":"later"}"#);
    for at in 0..300 {
        bench.text(client, &format!("SET job:{at} bad"));
    }
    bench.text(client, "SET job:7 good");
    bench.text(client, "SET job:300 good");
    let mut work = background(&bench);
    work();
    assert_eq!(bench.text(client, "LRANGE done 0 -1"), "[job:7 job:7 job:300]");
    let waiting = bench.engine.keyspace.catalogue().len(Section::Outbox);
    assert_eq!(waiting, 299, "what failed waits");
    // What came from elsewhere, as after a start, is taken up anew.
    for at in 0..300 {
        bench.text(client, &format!("SET job:{at} good"));
    }
    assert!(bench.engine.load_catalogue().is_empty());
    bench.pass(20_000);
    work();
    assert_eq!(bench.engine.keyspace.catalogue().len(Section::Outbox), 0);
    assert_eq!(bench.text(client, "LLEN done"), (3 + 299 + 300).to_string());
}

#[test]
fn what_waits_for_the_last_trigger_goes_with_it() {
    let (mut bench, client) = bench();
    program(&mut bench, client, "later", r#"{"fail":"NOTYET"}"#);
    trigger(&mut bench, client, "t", r#"{"key":"job:*","after":"later"}"#);
    for at in 0..5 {
        bench.text(client, &format!("SET job:{at} v"));
    }
    assert_eq!(bench.engine.keyspace.catalogue().len(Section::Outbox), 5);
    assert_eq!(bench.text(client, "TRIGGER DEL t"), "1");
    background(&bench)();
    assert_eq!(bench.engine.keyspace.catalogue().len(Section::Outbox), 0);
}

#[test]
fn an_event_has_what_the_program_looks_at_and_a_program_that_changed_is_the_one_that_runs() {
    let (mut bench, client) = bench();
    trigger(&mut bench, client, "t", r#"{"key":"k:*","inside":"p"}"#);
    for (steps, wanted) in [
        (r#"["SET","seen","${event.key}"]"#, "k:1"),
        (r#"["SET","seen","${event.kind}:${event.command}:${event.db}"]"#, "set:set:0"),
        (r#"["SET","seen","${event.type}:${event.length}:${event.value}"]"#, "string:5:value"),
        (
            r#"{"let":{"e":"${event}"}},["SET","seen",{"join":[{"names":"${e}"},","]}]"#,
            "command,db,key,kind,length,type,value",
        ),
        (r#"["SET","seen",{"type":{"get":["${event}","value"]}}]"#, "text"),
        (r#"["SET","seen","nothing"]"#, "nothing"),
    ] {
        program(&mut bench, client, "p", steps);
        assert_eq!(bench.text(client, "SET k:1 value"), "OK", "{steps}");
        assert_eq!(bench.text(client, "GET seen"), wanted, "{steps}");
    }
    bench.text(client, "PROGRAM DEL p");
    assert_eq!(bench.text(client, "SET k:1 a"), "-NOPROGRAM trigger t: no program 'p' is stored");
    // Its parameter is an event, or nothing.
    let stored =
        words(&mut bench, client, &["PROGRAM", "SET", "p", r#"{"params":[{"name":"n"}],"steps":[]}"#]);
    assert_eq!(stored, "7", "behind what was deleted");
    assert!(bench.text(client, "SET k:1 a").contains("the parameter 'n' is of the type text; met an event"));
}

#[test]
fn flushes_swaps_and_what_a_waiting_client_gets_fire_nothing() {
    let (mut bench, client) = bench();
    program(&mut bench, client, "count", r#"["INCR","fired"]"#);
    trigger(&mut bench, client, "t", r#"{"key":"k:*","inside":"count"}"#);
    bench.text(client, "SET k:1 a");
    bench.text(client, "SWAPDB 0 1");
    bench.text(client, "SWAPDB 0 1");
    assert_eq!(bench.text(client, "GET fired"), "1");
    // The push fires, what it serves does not.
    let waiter = bench.connect(Protocol::Resp3);
    assert!(bench.run(waiter, "BLPOP k:list 0").is_empty());
    bench.text(client, "LPUSH k:list a");
    assert_eq!(bench.take(waiter).iter().map(show).collect::<Vec<_>>(), ["[k:list a]"]);
    assert_eq!(bench.text(client, "GET fired"), "2");
    bench.text(client, "FLUSHDB");
    assert_eq!(bench.text(client, "GET fired"), "nil");
}

#[test]
fn what_a_trigger_writes_inside_has_the_command_that_began_it() {
    let (mut bench, client) = bench();
    program(&mut bench, client, "copy", r#"["HSET","copy:${event.key}","by","${event.command}"]"#);
    program(&mut bench, client, "note", r#"["RPUSH","notes","${event.command} ${event.key}"]"#);
    trigger(&mut bench, client, "a", r#"{"key":"k:*","inside":"copy"}"#);
    trigger(&mut bench, client, "b", r#"{"key":"copy:*","inside":"note"}"#);
    for line in ["SET k:1 a", "APPEND k:1 b", "MULTI", "LPUSH k:2 a", "EXEC", "DEL copy:k:1"] {
        bench.text(client, line);
    }
    let notes = "[set copy:k:1 append copy:k:1 lpush copy:k:2 del copy:k:1]";
    assert_eq!(bench.text(client, "LRANGE notes 0 -1"), notes);
    assert_eq!(bench.text(client, "HGETALL copy:k:2"), "{by:lpush}");
}

/// A SET that fires one command has a shorter form: it must not be told from the long way, which runs where somebody
/// listens to events.
#[test]
fn the_shorter_form_of_a_set_that_fires_does_what_the_long_way_does() {
    let outcome = |listens: bool| {
        let (mut bench, client) = bench();
        if listens {
            let listener = bench.connect(Protocol::Resp3);
            bench.text(client, "CONFIG SET notify-keyspace-events KEA");
            bench.run(listener, "PSUBSCRIBE __key*");
        }
        let mut replies = Vec::new();
        let mut say = |bench: &mut Bench, line: &str| {
            replies.push(format!("{line}: {}", bench.text(client, line)));
        };
        for (name, step) in [
            ("count", r#"["INCR","count"]"#),
            ("itself", r#"["INCR","i:1"]"#),
            ("chain", r#"["INCR","c:count"]"#),
            ("push", r#"["LPUSH","list","x",5]"#),
            ("two", r#"["INCR","count"],["INCR","count"]"#),
        ] {
            program(&mut bench, client, name, step);
        }
        let limited = r#"{"limits":{"bytes":3},"steps":[["INCR","count"]]}"#;
        words(&mut bench, client, &["PROGRAM", "SET", "limited", limited]);
        for (name, key, program) in [
            ("a", "k:*", "count"),
            ("b", "i:*", "itself"),
            ("c", "c:*", "chain"),
            ("d", "l:*", "push"),
            ("e", "two:*", "two"),
            ("f", "limited:*", "limited"),
            ("g", "both:*", "count"),
            ("h", "both:*", "push"),
            ("i", "n:*", "nothing"),
        ] {
            trigger(&mut bench, client, name, &format!(r#"{{"key":"{key}","inside":"{program}"}}"#));
        }
        let when = r#"{"key":"when:*","inside":"count","when":{"==":["${event.value}","yes"]}}"#;
        trigger(&mut bench, client, "when", when);
        for line in [
            "SET k:1 a",
            "SET k:1 b",
            "SET k:2 5",
            "SET i:1 5",
            "SET i:2 5",
            "SET c:1 x",
            "SET l:1 x",
            "SET two:1 x",
            "SET limited:1 x",
            "SET both:1 x",
            "SET n:1 x",
            "SET when:1 no",
            "SET when:1 yes",
            "SET k:1 a EX 100",
            "SET k:1 a NX",
            "SET k:1 b XX GET",
            "MULTI",
            "SET k:5 a",
            "SET l:5 a",
            "EXEC",
            "GET count",
            // What fails leaves nothing, and says where.
            "RPUSH wrong a",
            "RENAME wrong count",
            "SET k:3 a",
            "GET k:3",
            "SET k:1 changed",
            "GET k:1",
            "DEL count",
            "SET count 9223372036854775807",
            "SET k:4 a",
            "GET k:4",
            "LRANGE list 0 -1",
            "TRIGGER STATS",
        ] {
            say(&mut bench, line);
        }
        let calls = bench.text(client, "INFO commandstats");
        let calls: Vec<String> = calls
            .lines()
            .filter(|line| ["_incr:", "_lpush:", "_set:"].iter().any(|name| line.contains(name)))
            .map(|line| {
                let of =
                    |name: &str| line.split([':', ',']).find(|word| word.starts_with(name)).unwrap_or("");
                format!("{} {} {}", line.split(':').next().unwrap_or(""), of("calls="), of("failed_calls="))
            })
            .collect();
        // A user who may not do everything takes the long way, and owns what he stores.
        bench.text(client, "ACL SETUSER u on nopass ~k:* ~count +set +get +incr");
        let user = bench.connect(Protocol::Resp3);
        bench.text(user, "AUTH u x");
        bench.text(client, "DEL count");
        replies.push(bench.text(user, "SET k:9 x"));
        replies.push(bench.text(user, "GET count"));
        (replies, calls, digest(&mut bench, client))
    };
    let (short, long) = (outcome(false), outcome(true));
    assert_eq!(short.0, long.0);
    assert_eq!(short.1, long.1);
    assert_eq!(short.2, long.2);
    assert!(short.0.iter().any(|line| line == "GET count: 10"), "{:?}", short.0);
}
