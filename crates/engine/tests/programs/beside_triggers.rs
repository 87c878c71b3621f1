//! Quick programs where there are triggers: those whose keys have none run as if there were none, and a write that
//! fires belongs to its program, however the program runs.

use weft_engine::reply::Protocol;

use crate::running::bench;
use crate::support::stored::{digest, store, words};
use crate::support::{Bench, show};

const COUNT: &str = r#"{"params":[{"name":"event","type":"object"}],"steps":[["INCR","fired"],
    {"do":["GET","a"],"as":"a"},["APPEND","seen","${a};"],
    {"assert":{"<":[{"coalesce":["${event.value}",0]},"7"]},"code":"LARGE","message":"${event.key} is ${event.value}"}]}"#;

#[test]
fn what_fires_in_a_quick_program_sees_what_was_written_and_fails_with_it() {
    let (mut bench, client) = bench();
    store(&mut bench, client, "PROGRAM", "count", COUNT);
    store(&mut bench, client, "TRIGGER", "t", r#"{"key":"u:*","inside":"count"}"#);
    let program = r#"{"params":[{"name":"v","type":"int"}],"steps":[
        {"do":["GET","a"],"as":"before"},["SET","a","${v}"],["SET","u:1","${v}"],["INCR","b"],{"return":"${before}"}]}"#;
    store(&mut bench, client, "PROGRAM", "p", program);
    assert_eq!(bench.text(client, "PROGRAM RUN p 3"), "nil");
    assert_eq!(bench.text(client, "MGET a u:1 b fired seen"), "[3 3 1 1 3;]");
    let before = digest(&mut bench, client);
    let failed = bench.text(client, "PROGRAM RUN p 9");
    assert_eq!(failed, "-LARGE /steps/2 SET: trigger t: u:1 is 9");
    assert_eq!(digest(&mut bench, client), before, "nothing of it stays");
    let batch: Vec<String> = [4, 9, 5].map(|v| format!("PROGRAM RUN p {v}")).to_vec();
    let replies: Vec<String> = bench.run_batch(&[(client, batch)])[0].iter().map(show).collect();
    assert_eq!(replies, ["3", "-LARGE /steps/2 SET: trigger t: u:1 is 9", "4"]);
    assert_eq!(bench.text(client, "MGET a u:1 b fired seen"), "[5 5 3 3 3;4;5;]");
    let stats = bench.text(client, "TRIGGER STATS t");
    assert!(stats.contains("fired:3 failed:2"), "{stats}");
    // The last write is not for good where something may fail that it fires.
    let last = r#"{"params":[{"name":"v","type":"int"}],"steps":[["SET","u:2","${v}"]]}"#;
    store(&mut bench, client, "PROGRAM", "last", last);
    assert_eq!(bench.text(client, "PROGRAM RUN last 8"), "-LARGE /steps/0 SET: trigger t: u:2 is 8");
    assert_eq!(bench.text(client, "EXISTS u:2"), "0");
}

/// One that is quick beside the same with a loop behind its end, which makes it none.
#[test]
fn quick_programs_do_beside_triggers_what_others_do() {
    let mut state = 77_u64;
    let mut next = move |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut both = [(); 2].map(|()| {
        let (mut bench, client) = Bench::with(Protocol::Resp3);
        store(&mut bench, client, "PROGRAM", "count", COUNT);
        store(&mut bench, client, "TRIGGER", "t", r#"{"key":"u:*","inside":"count"}"#);
        store(&mut bench, client, "TRIGGER", "tell", r#"{"key":"u:1","on":"delete","stream":"told"}"#);
        (bench, client)
    });
    let (mut fired, mut failed) = (0, 0);
    for round in 0..400 {
        let keys = ["a", "b", "u:1", "u:2", "${p}"];
        let steps: Vec<String> = (0..1 + next(5))
            .map(|at| {
                let key = keys[next(keys.len())];
                match next(8) {
                    0 => format!(r#"{{"do":["GET","{key}"],"as":"x{at}"}}"#),
                    1 | 2 => format!(r#"["SET","{key}",{}]"#, next(9)),
                    3 => format!(r#"["INCR","{key}"]"#),
                    4 => format!(r#"["INCRBY","{key}",{}]"#, next(5)),
                    5 => format!(r#"["DEL","{key}"]"#),
                    6 => format!(r#"["SET","{key}","${{l}}"]"#),
                    _ => format!(r#"{{"if":{{"==":["${{p}}","u:2"]}},"then":[["INCR","{key}"]],"else":[["SET","{key}",1]]}}"#),
                }
            })
            .collect();
        let end = ["", r#",{"fail":"MADE"}"#, r#",["LPUSH","a",1]"#][next(3) * next(2)];
        let parameters = r#"{"name":"p"},{"name":"l","type":"list"}"#;
        let p = ["a", "u:1", "u:2"][next(3)];
        let list = format!("[{}]", next(9));
        let outcomes = [(0, ""), (1, r#",{"for":"i","range":[0,0],"do":[]}"#)].map(|(which, more)| {
            let (bench, client) = &mut both[which];
            let text = format!(r#"{{"params":[{parameters}],"steps":[{}{end}{more}]}}"#, steps.join(","));
            store(bench, *client, "PROGRAM", "p", &text);
            let replies = bench.run_batch(&[(*client, vec![format!("PROGRAM RUN p {p} {list}"); 2])]);
            let replies: Vec<String> = replies[0].iter().map(show).collect();
            let keys = bench.text(*client, "MGET a b u:1 u:2 fired seen");
            let told = bench.text(*client, "XLEN told");
            let stats = bench.text(*client, "TRIGGER STATS t");
            (replies, keys, told, stats)
        });
        assert_eq!(outcomes[0], outcomes[1], "round {round}: {steps:?}{end} {p} {list}");
        fired += u32::from(outcomes[0].1.split(' ').nth(4) != Some("nil"));
        failed += outcomes[0].0.iter().filter(|reply| reply.starts_with("-LARGE")).count();
        if round % 20 == 19 {
            both.iter_mut().for_each(|(bench, client)| drop(bench.text(*client, "FLUSHALL")));
        }
    }
    assert!(fired > 100 && failed > 20, "{fired} fired, {failed} failed");
}

/// The locks that are held are those of what fires: they were not taken for the keys that a trigger's program declares.
#[test]
fn what_fires_a_program_that_declares_its_keys_gets_the_keyspace_if_it_has_not_locked_them() {
    for mut team in [Bench::team(1), Bench::team(2)] {
        let bench = &mut team[0];
        let client = bench.connect(Protocol::Resp3);
        let declares = |steps: &str| {
            format!(r#"{{"params":[{{"name":"event","type":"object"}}],"keys":["other"],"steps":[{steps}]}}"#)
        };
        store(bench, client, "PROGRAM", "declares", &declares(r#"["INCR","other"]"#));
        store(bench, client, "PROGRAM", "strays", &declares(r#"["INCR","third"]"#));
        store(bench, client, "PROGRAM", "outer", r#"{"steps":[["SET","a1","1"]]}"#);
        store(bench, client, "PROGRAM", "outer-declared", r#"{"keys":["a1"],"steps":[["SET","a1","1"]]}"#);
        store(bench, client, "PROGRAM", "chain", r#"{"steps":[["SET","a2","1"]]}"#);
        store(bench, client, "TRIGGER", "t", r#"{"key":"a*","inside":"declares"}"#);
        store(bench, client, "TRIGGER", "u", r#"{"key":"b*","inside":"chain"}"#);
        store(bench, client, "TRIGGER", "v", r#"{"key":"c*","inside":"strays"}"#);
        for (at, (command, answer)) in [
            (&["SET", "a1", "1"][..], "OK"),
            (&["PROGRAM", "RUN", "outer"], "nil"),
            (&["PROGRAM", "RUN", "outer-declared"], "nil"),
            (&["EVAL", "return redis.call('SET',KEYS[1],'1')", "1", "a1"], "OK"),
            (&["EVAL", "return redis.call('SET',ARGV[1],'1')", "0", "a1"], "OK"),
            (&["SET", "b1", "1"], "OK"),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(words(bench, client, command), answer, "{command:?}");
            assert_eq!(bench.text(client, "GET other"), (at + 1).to_string(), "{command:?}");
        }
        let refused = words(bench, client, &["SET", "c1", "1"]);
        assert!(refused.contains("the key 'third' was not declared in \"keys\""), "{refused}");
        assert_eq!(bench.text(client, "EXISTS c1 third"), "0");
    }
}
