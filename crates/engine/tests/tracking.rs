//! Client-side caching and MONITOR: who is told of what, when, and in which form.

mod support;

use support::{ALL, Bench, show};
use weft_engine::reply::Protocol;

const PUSHING: [Protocol; 2] = [Protocol::Resp3, Protocol::Respb];
fn got(bench: &mut Bench, client: u32) -> Vec<String> {
    bench.take(client).iter().map(show).collect()
}

fn run(bench: &mut Bench, client: u32, command: &str) -> Vec<String> {
    bench.run(client, command).iter().map(show).collect()
}

#[test]
fn a_key_that_was_read_is_told_of_once() {
    for protocol in PUSHING {
        let (mut bench, [a, b]) = Bench::with_clients([protocol; 2]);
        bench.text(b, "SET k 0");
        bench.text(a, "CLIENT TRACKING on");
        bench.text(b, "SET k 1");
        assert!(got(&mut bench, a).is_empty(), "it was not read since tracking began");
        bench.text(a, "GET k");
        bench.text(a, "GET k");
        bench.text(b, "GET k");
        assert!(got(&mut bench, a).is_empty());
        bench.text(b, "SET k 2");
        assert_eq!(got(&mut bench, a), [">[invalidate [k]]"]);
        bench.text(b, "SET k 3");
        assert!(got(&mut bench, a).is_empty());
        // What is not there can be cached too.
        bench.text(a, "GET none");
        bench.text(b, "SET none 1");
        assert_eq!(got(&mut bench, a), [">[invalidate [none]]"]);
        // The client's own write is told behind its reply.
        bench.text(a, "GET k");
        assert_eq!(run(&mut bench, a, "SET k 4"), ["OK", ">[invalidate [k]]"]);
        bench.text(a, "GET k");
        bench.text(a, "CLIENT TRACKING off");
        bench.text(b, "SET k 5");
        assert!(got(&mut bench, a).is_empty());
    }
}

/// Its name may be one that who has fired it may not know.
#[test]
fn what_a_trigger_reads_is_not_tracked_for_who_has_fired_it() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp3; 2]);
    let program = r#"{"steps":[{"do":["GET","secret"],"as":"x"},{"do":["STRLEN","secret"],"as":"y"}]}"#;
    bench.run_args(b, &[b"PROGRAM", b"SET", b"p", program.as_bytes()]);
    assert_eq!(bench.text(b, r#"TRIGGER SET t {"key":"k*","inside":"p"}"#), "1");
    bench.text(a, "CLIENT TRACKING on");
    for command in ["SET k v", "MSET k v k2 v", "EVAL return(redis.call('SET',KEYS[1],'v')) 1 k"] {
        assert_eq!(bench.text(a, command), "OK");
        bench.text(b, "SET secret 1");
        assert!(got(&mut bench, a).is_empty(), "{command}");
    }
    // What it reads by itself is.
    bench.text(a, "PROGRAM RUN p");
    bench.text(b, "SET secret 2");
    assert_eq!(got(&mut bench, a), [">[invalidate [secret]]"]);
}

#[test]
fn every_way_to_change_a_key_is_told() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp3; 2]);
    bench.text(a, "CLIENT TRACKING on");
    for (before, read, write) in [
        ("SET k 1", "GET k", "DEL k"),
        ("SET k 1", "GET k", "INCR k"),
        ("SET k 1", "GET k", "APPEND k x"),
        ("SET k 1", "GET k", "EXPIRE k 100"),
        ("SET k 1", "GET k", "RENAME k k2"),
        ("SET k2 1", "GET k", "RENAME k2 k"),
        ("DEL k", "LLEN k", "RPUSH k a b"),
        ("PING", "LLEN k", "LPOP k"),
        ("DEL k", "LLEN k", "LPUSH k a b"),
        ("DEL k", "XLEN k", "XADD k 1-1 f v"),
        ("PING", "XLEN k", "XADD k 2-1 f v"),
        ("DEL k", "ZCARD k", "ZADD k 1 a 2 b"),
        ("PING", "ZSCORE k a", "ZINCRBY k 1 a"),
        ("PING", "ZCARD k", "ZREM k a"),
        ("DEL k", "HLEN k", "HSET k f v"),
        ("PING", "HGET k f", "HDEL k f"),
        ("DEL k", "SCARD k", "SADD k a b"),
        ("PING", "SCARD k", "SPOP k"),
    ] {
        bench.text(b, before);
        bench.take(a);
        bench.text(a, read);
        let reply = bench.text(b, write);
        assert!(!reply.starts_with('-'), "{write}: {reply}");
        assert_eq!(got(&mut bench, a), [">[invalidate [k]]"], "{write}");
    }
}

#[test]
fn expiry_flush_and_swap_are_told() {
    for protocol in PUSHING {
        let (mut bench, [a, b]) = Bench::with_clients([protocol; 2]);
        bench.text(a, "CLIENT TRACKING on NOLOOP");
        bench.text(b, "SET k 1 PX 100");
        bench.text(a, "GET k");
        bench.clock.advance(200);
        // Whoever sees it go, even under NOLOOP: nobody has deleted it.
        assert_eq!(run(&mut bench, a, "GET k")[1..], [">[invalidate [k]]"]);
        for command in ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1"] {
            bench.text(b, "SET k 1");
            bench.take(a);
            bench.text(a, "GET k");
            bench.text(b, command);
            assert_eq!(got(&mut bench, a), [">[invalidate nil]"], "{command}");
            assert_eq!(bench.engine.tracking.key_count(), 0);
            assert_eq!(bench.engine.tracking.item_count(), 0);
        }
    }
}

#[test]
fn noloop_spares_who_wrote() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp3; 2]);
    bench.text(a, "CLIENT TRACKING on NOLOOP");
    bench.text(a, "GET k");
    assert_eq!(run(&mut bench, a, "SET k 1"), ["OK"]);
    bench.text(a, "GET k");
    bench.text(b, "SET k 2");
    assert_eq!(got(&mut bench, a), [">[invalidate [k]]"]);
}

/// PFCOUNT keeps its count with the value: who has read that before is told, and who counts keeps on being told.
#[test]
fn who_counts_and_writes_so_is_told_of_what_comes_after() {
    for (options, own) in [("on", true), ("on NOLOOP", false)] {
        for count in ["PFCOUNT h", "MULTI", "STRLEN h"] {
            let mut bench = Bench::new();
            let [a, b, c] = [(); 3].map(|()| bench.connect(Protocol::Resp3));
            bench.text(b, "PFADD h x");
            bench.text(a, &format!("CLIENT TRACKING {options}"));
            bench.text(c, "CLIENT TRACKING on");
            bench.text(c, "STRLEN h");
            if count == "STRLEN h" {
                bench.text(a, count);
                assert_eq!(run(&mut bench, a, "PFCOUNT h").len(), 1 + usize::from(own), "{options}");
            } else if count == "MULTI" {
                for command in ["MULTI", "PFCOUNT h"] {
                    bench.text(a, command);
                }
                assert_eq!(run(&mut bench, a, "EXEC"), ["[1]"], "{options}");
            } else {
                assert_eq!(run(&mut bench, a, count), ["1"], "{options}");
            }
            assert_eq!(got(&mut bench, c), [">[invalidate [h]]"], "{options}");
            bench.text(b, "PFADD h y");
            assert_eq!(got(&mut bench, a), [">[invalidate [h]]"], "{options} {count}");
        }
    }
}

/// What an operation writes is told at its end, which takes nothing out that was read behind it.
#[test]
fn noloop_spares_nothing_that_an_operation_reads_behind_its_writes() {
    let program = r#"{"steps":[["SET","k","1"],{"do":["GET","k"],"as":"x"}]}"#;
    let many = "redis.call('SET', KEYS[1], 1) for i = 1, 2000 do redis.call('GET', 'k'..i) end return redis.call('GET', KEYS[1])";
    let cases: [(&[&[u8]], &str, bool); 8] = [
        (
            &[b"EVAL", b"redis.call('SET', KEYS[1], 1) return redis.call('GET', KEYS[1])", b"1", b"k"],
            "SET k 0",
            true,
        ),
        (
            &[b"EVAL", b"redis.call('SET', KEYS[2], 1) return redis.call('GET', KEYS[1])", b"2", b"k", b"l"],
            "SET k 0",
            true,
        ),
        (
            &[b"EVAL", b"redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], 1)", b"1", b"k"],
            "SET k 0",
            false,
        ),
        (&[b"EVAL", b"return redis.call('PFCOUNT', KEYS[1])", b"1", b"k"], "PFADD k x", true),
        // It has written behind its read, too: once too often rather than never.
        (
            &[
                b"EVAL",
                b"redis.call('PFCOUNT', KEYS[1]) redis.call('PFADD', KEYS[1], 'z') return 1",
                b"1",
                b"k",
            ],
            "PFADD k x",
            true,
        ),
        (
            &[b"EVAL", b"redis.call('SET', 'n', 1) return redis.call('PFCOUNT', KEYS[1])", b"1", b"k"],
            "PFADD k x",
            true,
        ),
        (&[b"EVAL", many.as_bytes(), b"1", b"k"], "SET k 0", true),
        (&[b"PROGRAM", b"EVAL", program.as_bytes()], "SET k 0", true),
    ];
    for (operation, first, noted) in cases {
        let shown = String::from_utf8_lossy(operation[1]);
        let mut bench = Bench::new();
        let [a, b, c] = [(); 3].map(|()| bench.connect(Protocol::Resp3));
        bench.text(b, first);
        bench.text(a, "CLIENT TRACKING on NOLOOP");
        bench.text(c, "CLIENT TRACKING on");
        bench.text(c, "STRLEN k");
        let reply: Vec<String> = bench.run_args(a, operation).iter().map(show).collect();
        assert!(reply.len() == 1 && !reply[0].starts_with('-'), "{shown}: {reply:?}");
        assert_eq!(got(&mut bench, c).is_empty(), shown.contains("KEYS[2]"), "{shown}");
        bench.text(b, if first.starts_with("PF") { "PFADD k y" } else { "SET k 2" });
        assert_eq!(got(&mut bench, a).join(""), if noted { ">[invalidate [k]]" } else { "" }, "{shown}");
    }
}

#[test]
fn optin_and_optout_choose_commands() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp3; 2]);
    bench.text(a, "CLIENT TRACKING on OPTIN");
    let changed = |bench: &mut Bench, keys: &str| {
        for key in keys.split(' ') {
            bench.text(b, &format!("SET {key} x"));
        }
        got(bench, a).join(" ")
    };
    bench.text(a, "GET x");
    assert_eq!(changed(&mut bench, "x"), "");
    bench.text(a, "CLIENT CACHING yes");
    bench.text(a, "CLIENT ID");
    bench.text(a, "GET x");
    bench.text(a, "GET y");
    assert_eq!(changed(&mut bench, "x y"), ">[invalidate [x]]");
    // For a whole transaction.
    for command in ["CLIENT CACHING yes", "MULTI", "PTTL x", "GET y", "EXEC", "GET z"] {
        bench.text(a, command);
    }
    assert_eq!(changed(&mut bench, "x y z"), ">[invalidate [x]] >[invalidate [y]]");
    bench.text(a, "CLIENT TRACKING off");
    bench.text(a, "CLIENT TRACKING on OPTOUT");
    bench.text(a, "CLIENT CACHING no");
    bench.text(a, "GET x");
    bench.text(a, "GET y");
    assert_eq!(changed(&mut bench, "x y"), ">[invalidate [y]]");
}

#[test]
fn prefixes_are_broadcast() {
    for protocol in PUSHING {
        let (mut bench, [a, b]) = Bench::with_clients([protocol; 2]);
        bench.text(a, "CLIENT TRACKING on BCAST PREFIX user: PREFIX item: NOLOOP");
        bench.text(b, "MSET user:1 a user:2 b other c item:1 d");
        assert_eq!(got(&mut bench, a), [">[invalidate [item:1]]", ">[invalidate [user:1 user:2]]"]);
        assert_eq!(run(&mut bench, a, "SET user:1 x"), ["OK"]);
        for (command, expected) in [
            ("CLIENT TRACKING on BCAST PREFIX user:1", "existing prefix 'user:'"),
            ("CLIENT TRACKING on BCAST PREFIX a PREFIX ab", "another provided prefix 'ab'"),
            ("CLIENT TRACKING on", "You can't switch BCAST mode on/off before disabling"),
            ("CLIENT TRACKING on BCAST OPTIN", "OPTIN and OPTOUT are not compatible with BCAST"),
            ("CLIENT TRACKING on PREFIX x", "PREFIX option requires BCAST mode to be enabled"),
            ("CLIENT TRACKING on OPTIN OPTOUT", "You can't"),
            ("CLIENT TRACKING on REDIRECT 999", "The client ID you want redirect to does not exist"),
            ("CLIENT TRACKING on REDIRECT", "syntax error"),
            ("CLIENT TRACKING maybe", "syntax error"),
            (
                "CLIENT CACHING yes",
                "CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ),
        ] {
            let reply = bench.text(a, command);
            assert!(reply.starts_with("-ERR ") && reply.contains(expected), "{command}: {reply}");
        }
        let info = bench.text(a, "CLIENT TRACKINGINFO");
        assert_eq!(info, "{flags:[on bcast noloop] redirect:0 prefixes:[item: user:]}");
        bench.text(a, "RESET");
        assert_eq!(bench.engine.tracking.prefix_count(), 0);
        bench.run(a, "HELLO 3");
        bench.text(a, "CLIENT TRACKING on BCAST");
        bench.text(b, "SET anything 1");
        assert_eq!(got(&mut bench, a), [">[invalidate [anything]]"]);
        bench.disconnect(a);
        bench.text(b, "SET anything 1");
        assert_eq!(bench.engine.tracking.prefix_count(), 0);
    }
}

/// Its connection may still be there for a while when somebody else runs a command.
#[test]
fn who_has_quit_is_gone() {
    let (mut bench, [a, b, c]) = Bench::with_clients([Protocol::Resp3, Protocol::Resp3, Protocol::Resp2]);
    let id = bench.session(b).id();
    bench.text(b, "SUBSCRIBE news");
    bench.text(a, &format!("CLIENT TRACKING on REDIRECT {id}"));
    bench.text(a, "GET k");
    assert_eq!(bench.text(b, "QUIT"), "OK");
    assert_eq!(bench.text(c, "SET k 1"), "OK");
    assert_eq!(got(&mut bench, a), [format!(">[tracking-redir-broken {id}]")]);
    assert!(got(&mut bench, b).is_empty());
    assert_eq!(bench.text(c, "PUBLISH news x"), "0");
    assert_eq!(bench.text(c, &format!("CLIENT LIST ID {id}")), "");
}

#[test]
fn invalidations_go_to_another_client() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    let c = bench.connect(Protocol::Resp3);
    bench.run(b, "SUBSCRIBE __redis__:invalidate");
    let id = bench.session(b).id();
    bench.text(a, &format!("CLIENT TRACKING on REDIRECT {id}"));
    assert_eq!(bench.text(a, "CLIENT GETREDIR"), id.to_string());
    bench.text(a, "GET k");
    bench.text(c, "SET k 1");
    assert_eq!(got(&mut bench, b), ["[message __redis__:invalidate [k]]"]);
    bench.text(c, "FLUSHALL");
    assert_eq!(got(&mut bench, b), ["[message __redis__:invalidate nil]"]);
    bench.run(c, &format!("CLIENT TRACKING on REDIRECT {id}"));
    bench.text(c, "GET k");
    bench.text(a, "GET k");
    bench.disconnect(b);
    assert_eq!(run(&mut bench, c, "SET k 1"), ["OK".to_string(), format!(">[tracking-redir-broken {id}]")]);
    assert!(got(&mut bench, a).is_empty());
    assert!(bench.text(a, "CLIENT TRACKINGINFO").contains("broken_redirect"));
    assert!(bench.text(a, "CLIENT INFO").contains(" flags=tR "));
}

#[test]
fn the_table_is_bounded() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp3; 2]);
    bench.text(a, "CONFIG SET tracking-table-max-keys 3");
    bench.text(a, "CLIENT TRACKING on");
    let mut told = Vec::new();
    for key in 0..10 {
        told.extend(run(&mut bench, a, &format!("GET {key}")).into_iter().skip(1));
        assert!(bench.engine.tracking.key_count() <= 3);
    }
    assert_eq!(told.len(), 7, "each key that is taken out is told of");
    for key in 0..10 {
        bench.text(b, &format!("SET {key} x"));
    }
    told.extend(got(&mut bench, a));
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), 10, "each key is told of once: {told:?}");
    assert_eq!((bench.engine.tracking.key_count(), bench.engine.tracking.item_count()), (0, 0));
}

#[test]
fn monitor_shows_commands_and_no_passwords() {
    for protocol in ALL {
        let (mut bench, [a, b]) = Bench::with_clients([protocol, Protocol::Resp3]);
        assert_eq!(bench.text(a, "MONITOR"), "OK");
        for command in [
            "SET k \"\\\u{1}",
            "SELECT 2",
            "MULTI",
            "GET k",
            "EXEC",
            "AUTH default secret",
            "HELLO 3 AUTH default secret SETNAME x",
            "ACL SETUSER bob >secret",
            "GET",
        ] {
            bench.run(b, command);
        }
        let lines: Vec<String> = got(&mut bench, a)
            .iter()
            .map(|line| line.trim_start_matches(">[monitor ").trim_end_matches(']').to_owned())
            .collect();
        let expected = [
            r#"0 10.0.0.1:5000] "SET" "k" "\"\\\x01""#,
            r#"2 10.0.0.1:5000] "SELECT" "2""#,
            r#"2 10.0.0.1:5000] "MULTI""#,
            r#"2 10.0.0.1:5000] "GET" "k""#,
            r#"2 10.0.0.1:5000] "EXEC""#,
            r#"2 10.0.0.1:5000] "AUTH" "(redacted)" "(redacted)""#,
            r#"2 10.0.0.1:5000] "HELLO" "3" "AUTH" "(redacted)" "(redacted)" "SETNAME" "x""#,
        ];
        let expected = expected.map(|line| format!("1700000000.000000 [{line}"));
        assert_eq!(lines, expected, "{protocol:?}");
        bench.text(a, "RESET");
        bench.text(b, "PING");
        assert!(got(&mut bench, a).is_empty());
    }
}

#[test]
fn monitor_shows_scripts_before_what_they_call() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.text(a, "MONITOR");
    let library: &[u8] =
        b"#!lua name=l\nserver.register_function('f', function() return server.call('INCR', 'n') end)";
    bench.run_args(b, &[b"FUNCTION", b"LOAD", library]);
    got(&mut bench, a);
    // As beside another thread: what comes to everything is taken back, and runs again with it.
    bench.engine.stats.active_threads.store(2, std::sync::atomic::Ordering::Relaxed);
    let everything: &[u8] = b"redis.call('SET', KEYS[1], 'x') return #redis.call('KEYS', '*')";
    let nested: &[u8] = b"redis.pcall('CONFIG', 'GET', 'port') redis.pcall('NOSUCH') return 1";
    for words in [
        &[b"EVAL", &b"redis.call('SELECT', 2) return redis.call('SET', KEYS[1], 'x')"[..], b"1", b"k"][..],
        &[b"EVAL", b"return 1", b"2", b"k"],
        &[b"EVAL", b"nonsense(", b"0"],
        &[b"EVALSHA", b"x", b"0"],
        &[b"FCALL", b"nosuch", b"0"],
        &[b"EVAL_RO", b"return redis.call('SET', 'k', 'x')", b"0"],
        &[b"MULTI"],
        &[b"EVAL", nested, b"0"],
        &[b"EXEC"],
        &[b"EVAL", everything, b"1", b"k"],
        &[b"EVAL", everything, b"1", b"k"],
        &[b"FCALL", b"F", b"0"],
        &[b"FCALL_RO", b"f", b"0"],
    ] {
        bench.run_args(b, words);
    }
    assert_eq!(bench.engine.scripts.reruns.load(std::sync::atomic::Ordering::Relaxed), 1);
    let lines: Vec<String> = got(&mut bench, a)
        .iter()
        .map(|line| line.trim_start_matches("1700000000.000000 [").replace("10.0.0.1:5000", "client"))
        .collect();
    assert_eq!(
        lines,
        [
            r#"0 client] "EVAL" "redis.call('SELECT', 2) return redis.call('SET', KEYS[1], 'x')" "1" "k""#,
            r#"2 lua] "SELECT" "2""#,
            r#"2 lua] "SET" "k" "x""#,
            r#"0 client] "EVAL" "return 1" "2" "k""#,
            r#"0 client] "EVAL" "nonsense(" "0""#,
            r#"0 client] "EVALSHA" "x" "0""#,
            r#"0 client] "FCALL" "nosuch" "0""#,
            r#"0 client] "EVAL_RO" "return redis.call('SET', 'k', 'x')" "0""#,
            r#"0 client] "MULTI""#,
            r#"0 client] "EVAL" "redis.pcall('CONFIG', 'GET', 'port') redis.pcall('NOSUCH') return 1" "0""#,
            r#"0 client] "EXEC""#,
            r#"0 client] "EVAL" "redis.call('SET', KEYS[1], 'x') return #redis.call('KEYS', '*')" "1" "k""#,
            r#"0 lua] "SET" "k" "x""#,
            r#"0 lua] "KEYS" "*""#,
            r#"0 client] "EVAL" "redis.call('SET', KEYS[1], 'x') return #redis.call('KEYS', '*')" "1" "k""#,
            r#"0 lua] "SET" "k" "x""#,
            r#"0 lua] "KEYS" "*""#,
            r#"0 client] "FCALL" "F" "0""#,
            r#"0 lua] "INCR" "n""#,
            r#"0 client] "FCALL_RO" "f" "0""#,
        ]
    );
}
