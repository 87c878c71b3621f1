//! Owns: CLIENT PAUSE and requests that come meanwhile: nothing overtakes what it holds, and it leaves nothing behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::{ALL, Bench, show};
use weft_engine::reply::Protocol;
use weft_engine::special::PAUSED;

fn shown(replies: &[weft_protocol::reply::Reply]) -> Vec<String> {
    replies.iter().map(show).collect()
}

fn batch(bench: &mut Bench, client: u32, commands: &[&str]) -> Vec<String> {
    let commands = commands.iter().map(ToString::to_string).collect();
    shown(&bench.run_batch(&[(client, commands)])[0])
}

#[test]
fn nothing_overtakes_what_a_pause_holds() {
    for protocol in ALL {
        let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2, protocol]);
        bench.text(b, "SET k old");
        bench.text(a, "CLIENT PAUSE 700 WRITE");
        assert_eq!(batch(&mut bench, b, &["GET k", "SET k new", "GET k", "PING"]), ["old"], "{protocol:?}");
        assert!(batch(&mut bench, b, &["GET k", "HGET k f"]).is_empty(), "a later batch waits behind them");
        assert_eq!(bench.text(a, "GET k"), "old", "others go on");
        assert!(bench.resume(b).is_empty(), "it is not over");
        bench.pass(700);
        let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(shown(&bench.resume(b)), ["OK", "new", "PONG", "new", wrong_type], "{protocol:?}");
        assert_eq!(batch(&mut bench, b, &["GET k"]), ["new"], "nothing is held any more");
    }
}

#[test]
fn what_a_second_pause_holds_again_keeps_its_place() {
    for protocol in ALL {
        for command in ["SET k new", "FLUSHALL", "SORT s BY x_* STORE d"] {
            let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2, protocol]);
            bench.text(b, "RPUSH s 1");
            bench.text(a, "CLIENT PAUSE 100 ALL");
            assert!(batch(&mut bench, b, &["LLEN s", command, "PING"]).is_empty());
            bench.pass(100);
            bench.text(a, "CLIENT PAUSE 100 WRITE");
            assert_eq!(shown(&bench.resume(b)), ["1"], "{command} waits again");
            assert!(batch(&mut bench, b, &["LLEN s"]).is_empty());
            bench.pass(100);
            assert_eq!(bench.resume(b).len(), 3, "{command}, PING and LLEN");
        }
    }
}

/// What triggers do afterwards writes too.
#[test]
fn what_is_done_afterwards_waits_for_the_end_of_a_pause() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    let commands: [&[&[u8]]; 2] = [
        &[
            b"PROGRAM",
            b"SET",
            b"count",
            br#"{"params":[{"name":"e","type":"object"}],"steps":[["INCR","n"]]}"#,
        ],
        &[b"TRIGGER", b"SET", b"t", br#"{"key":"k","after":"count"}"#],
    ];
    for command in commands {
        assert_eq!(shown(&bench.run_args(client, command)), ["1"]);
    }
    let mut worker = bench.engine.keyspace.worker().expect("a place");
    let mut background = weft_engine::background::Background::new(bench.engine);
    for (round, kind) in (1..).zip(["WRITE", "ALL"]) {
        bench.text(client, "SET k v");
        bench.text(client, &format!("CLIENT PAUSE 700 {kind}"));
        let before = bench.engine.keyspace.catalogue().len(weft_store::Section::Outbox);
        for _ in 0..10 {
            background.step(bench.engine, &mut worker, |_| {});
        }
        assert_eq!(before, 1, "{kind}");
        assert_eq!(bench.engine.keyspace.catalogue().len(weft_store::Section::Outbox), before, "{kind}");
        bench.pass(700);
        for _ in 0..10 {
            background.step(bench.engine, &mut worker, |_| {});
        }
        assert_eq!(bench.text(client, "GET n"), round.to_string(), "{kind}");
    }
}

#[test]
fn a_pause_that_is_over_is_forgotten() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.text(a, "CLIENT PAUSE 100 WRITE");
    bench.pass(99);
    bench.text(a, "PING");
    assert!(bench.engine.special.has(PAUSED), "one millisecond is left");
    bench.pass(1);
    bench.text(a, "PING");
    assert!(!bench.engine.special.has(PAUSED));
}

#[test]
fn a_pause_of_writes_holds_scripts_by_what_they_say_of_themselves() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    let library: &[u8] = b"#!lua name=l\nserver.register_function('w', function() return 1 end) \
        server.register_function{function_name='r', flags={'no-writes'}, callback=function() return 1 end}";
    bench.run_args(a, &[b"FUNCTION", b"LOAD", library]);
    let reads: &[u8] = b"#!lua flags=no-writes\nreturn 1";
    let writes: &[u8] = b"#!lua\nreturn 1";
    let mut load = |script: &[u8]| show(&bench.run_args(a, &[b"SCRIPT", b"LOAD", script])[0]).into_bytes();
    let (reads_sha, plain_sha) = (load(reads), load(b"return 1"));
    let missing: &[u8] = &[b'0'; 40];
    // The request, and whether it is held.
    let requests: [(&[&[u8]], bool); 19] = [
        (&[b"EVAL", reads, b"0"], false),
        (&[b"EVAL", writes, b"0"], true),
        (&[b"EVAL", b"return 1", b"0"], true),
        (&[b"EVAL", b"#!lua flags=bad\nreturn 1", b"0"], true),
        (&[b"EVAL_RO", b"return 1", b"0"], false),
        (&[b"EVAL_RO", reads, b"0"], false),
        (&[b"EVAL_RO", writes, b"0"], true),
        (&[b"EVALSHA", &reads_sha, b"0"], false),
        (&[b"EVALSHA", &plain_sha, b"0"], true),
        (&[b"EVALSHA", missing, b"0"], true),
        (&[b"EVALSHA", b"x", b"0"], true),
        (&[b"EVALSHA_RO", &plain_sha, b"0"], false),
        (&[b"FCALL", b"r", b"0"], false),
        (&[b"FCALL", b"W", b"0"], true),
        (&[b"FCALL", b"none", b"0"], true),
        (&[b"FCALL_RO", b"R", b"0"], false),
        (&[b"FCALL_RO", b"w", b"0"], true),
        (&[b"FCALL_RO", b"none", b"0"], false),
        (&[b"PUBLISH", b"c", b"m"], true),
    ];
    for in_exec in [false, true] {
        for (words, is_held) in requests {
            if in_exec {
                bench.text(b, "MULTI");
                assert_eq!(show(&bench.run_args(b, words)[0]), "QUEUED");
            }
            bench.text(a, "CLIENT PAUSE 100 WRITE");
            let replies = if in_exec { bench.run(b, "EXEC") } else { bench.run_args(b, words) };
            let shown = words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>();
            assert_eq!(replies.is_empty(), is_held, "{shown:?}, in EXEC: {in_exec}");
            bench.pass(100);
            assert_eq!(bench.resume(b).len(), usize::from(is_held), "{shown:?}");
        }
    }
}
