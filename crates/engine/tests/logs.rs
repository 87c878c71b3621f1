//! SLOWLOG, COMMANDLOG, LATENCY, MEMORY, DEBUG, SHUTDOWN and the commands of what Weft does not have.

mod support;

use support::{Bench, show};
use weft_engine::reply::Protocol;
use weft_protocol::Reply;

fn array(reply: Reply) -> Vec<Reply> {
    match reply {
        Reply::Array(items) => items,
        other => panic!("{other:?}"),
    }
}

/// A message is quick, and neither timed nor logged, unless there are many patterns that it is compared with.
#[test]
fn a_message_to_many_patterns_may_be_slow() {
    let mut bench = Bench::new();
    let [a, b] = [0; 2].map(|_| bench.connect(Protocol::Resp3));
    // With less every command would be timed.
    bench.text(a, "CONFIG SET slowlog-log-slower-than 1000");
    let message = format!("PUBLISH n{}s m", "e".repeat(1000));
    for count in [64, 10_000] {
        let patterns = (0..count).map(|at| format!("n*{at}*s")).collect::<Vec<_>>().join(" ");
        bench.run(b, &format!("PSUBSCRIBE {patterns}"));
        bench.run(a, "SLOWLOG RESET");
        bench.run_batch(&[(a, vec![message.clone(), message.clone()])]);
        let logged = show(&bench.one(a, "SLOWLOG GET -1")).matches("PUBLISH").count();
        assert_eq!(logged, if count > 64 { 2 } else { 0 });
    }
}

#[test]
fn slow_commands_are_logged() {
    let mut bench = Bench::new();
    bench.allow_debug();
    let a = bench.connect(Protocol::Resp3);
    assert_eq!(bench.text(a, "SLOWLOG LEN"), "0");
    bench.text(a, "CONFIG SET slowlog-log-slower-than 10000");
    bench.run(a, "PING");
    assert_eq!(bench.text(a, "DEBUG SLEEP 0.02"), "OK");
    bench.text(a, "CONFIG SET slowlog-log-slower-than -1");
    let entries: Vec<_> = array(bench.one(a, "SLOWLOG GET")).into_iter().map(array).collect();
    // On a machine that stalls, others may be slow too, but only what was slow is logged.
    let us = |entry: &[Reply]| show(&entry[2]).parse::<u64>().expect("a number");
    assert!(entries.iter().all(|entry| entry.len() == 6 && us(entry) >= 10_000), "{entries:?}");
    let slept: Vec<_> = entries.iter().filter(|entry| show(&entry[3]) == "[DEBUG SLEEP 0.02]").collect();
    assert_eq!(slept.len(), 1, "{entries:?}");
    assert_eq!(show(&slept[0][1]), "1700000000");
    assert!(us(slept[0]) >= 20_000);
    assert_eq!(show(&entries[entries.len() - 1][0]), "0", "the first is number 0");
    assert_eq!(bench.text(a, "SLOWLOG RESET"), "OK");
    assert_eq!(bench.text(a, "SLOWLOG LEN"), "0");
    // Everything, quick commands too, the newest first, and at most so many.
    bench.text(a, "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3");
    assert_eq!(bench.text(a, "SLOWLOG LEN"), "1", "what sets it is measured by what it has set");
    for command in ["SET k v", "GET k", "MULTI", "INCR n", "EXEC", "AUTH x"] {
        bench.run(a, command);
    }
    let names: Vec<String> =
        array(bench.one(a, "SLOWLOG GET -1")).into_iter().map(|entry| show(&array(entry)[3])).collect();
    assert_eq!(names, ["[AUTH (redacted)]", "[INCR n]", "[MULTI]"]);
    bench.text(a, "CONFIG SET slowlog-log-slower-than -1");
    let newest = array(array(bench.one(a, "SLOWLOG GET 1")).remove(0));
    assert_eq!(show(&newest[3]), "[SLOWLOG GET -1]", "what ends it is not logged");
    assert_eq!(bench.text(a, "SLOWLOG RESET"), "OK");
    bench.run(a, "DEBUG SLEEP 0.02");
    assert_eq!(bench.text(a, "SLOWLOG LEN"), "0");
    // Inside a transaction too it holds from what sets it on, and ends with what ends it.
    for command in [
        "MULTI",
        "SET a 1",
        "CONFIG SET slowlog-log-slower-than 0",
        "INCR a",
        "CONFIG SET slowlog-log-slower-than -1",
    ] {
        bench.run(a, command);
    }
    bench.run(a, "GET a");
    bench.text(a, "EXEC");
    let names: Vec<String> =
        array(bench.one(a, "SLOWLOG GET -1")).into_iter().map(|entry| show(&array(entry)[3])).collect();
    assert_eq!(names, ["[INCR a]", "[CONFIG SET slowlog-log-slower-than 0]"]);
    assert_eq!(bench.text(a, "SLOWLOG GET -2"), "-ERR count should be greater than or equal to -1");
}

#[test]
fn entries_are_cut_and_hide_secrets() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    bench.text(a, "CONFIG SET slowlog-log-slower-than 0");
    bench.text(a, "CONFIG SET masterauth secret timeout 5");
    let long = vec![b'x'; 200];
    bench.run_args(a, &[b"SET", b"k", &long]);
    let mut many: Vec<&[u8]> = vec![b"DEL"];
    many.resize(40, b"k");
    bench.run_args(a, &many);
    let entries: Vec<Vec<Reply>> = array(bench.one(a, "SLOWLOG GET 3"))
        .into_iter()
        .map(|entry| array(array(entry)[3].clone()))
        .collect();
    assert_eq!(entries[0].len(), 32);
    assert_eq!(show(&entries[0][31]), "... (9 more arguments)");
    assert_eq!(show(&entries[1][2]), format!("{}... (72 more bytes)", "x".repeat(128)));
    let config: Vec<String> = entries[2].iter().map(show).collect();
    assert_eq!(config, ["CONFIG", "SET", "masterauth", "(redacted)", "timeout", "5"]);
}

#[test]
fn large_requests_and_replies_are_logged() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.text(a, "CONFIG SET commandlog-request-larger-than 1000 commandlog-reply-larger-than 1000");
    bench.run_args(a, &[b"SET", b"k", &vec![b'x'; 2000]]);
    bench.run(a, "GET k");
    bench.run(a, "GET none");
    let of = |bench: &mut Bench, kind: &str| {
        let entries = array(bench.one(a, &format!("COMMANDLOG GET -1 {kind}")));
        entries
            .into_iter()
            .map(|entry| {
                let entry = array(entry);
                (show(&entry[2]), show(&array(entry[3].clone())[0]))
            })
            .collect::<Vec<_>>()
    };
    // *3, $3, $1, $2000 with their line ends.
    assert_eq!(of(&mut bench, "large-request"), [("2029".to_string(), "SET".to_string())]);
    assert_eq!(of(&mut bench, "large-reply"), [("2009".to_string(), "GET".to_string())]);
    assert_eq!(bench.text(a, "COMMANDLOG LEN large-reply"), "1");
    assert_eq!(bench.text(a, "COMMANDLOG RESET LARGE-REPLY"), "OK");
    assert_eq!(bench.text(a, "COMMANDLOG LEN large-reply"), "0");
    assert_eq!(
        bench.text(a, "COMMANDLOG LEN huge"),
        "-ERR type should be one of the following: slow, large-request, large-reply"
    );
    // Many small arguments are as large as one, also among others of one client.
    bench.text(a, "COMMANDLOG RESET large-request");
    let (key, value) = ("k".repeat(600), "v".repeat(600));
    let keys = vec![key.clone(); 2].join(" ");
    let large = ["GET none", "SET s v", "MGET none s", "MSET s v"].map(str::to_owned).into_iter().chain([
        format!("GET {key}{key}"),
        format!("MGET {keys}"),
        format!("SET {key} {value}"),
        format!("MSET {key} {value}"),
        format!("INCR {key}{key}"),
    ]);
    bench.run_batch(&[(a, large.collect())]);
    let names = of(&mut bench, "large-request").into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    assert_eq!(names, ["INCR", "MSET", "SET", "MGET", "GET"]);
    bench.text(a, "COMMANDLOG RESET large-reply");
    // With its frame a reply of 95 bytes is larger than 100, also among others of one client.
    bench.text(a, "CONFIG SET commandlog-reply-larger-than 100");
    bench.run_args(a, &[b"SET", b"s", &[b'x'; 95]]);
    bench.run_batch(&[(a, vec!["GET s".to_string(); 8])]);
    assert_eq!(bench.text(a, "COMMANDLOG LEN large-reply"), "8");
    bench.text(a, "COMMANDLOG RESET large-reply");
    bench.text(a, "CONFIG SET commandlog-reply-larger-than -1");
    bench.run(a, "GET k");
    assert_eq!(bench.text(a, "COMMANDLOG LEN large-reply"), "0");
}

#[test]
fn latency_is_watched() {
    let mut bench = Bench::new();
    bench.allow_debug();
    let a = bench.connect(Protocol::Resp3);
    assert!(bench.text(a, "LATENCY DOCTOR").contains("is not watched"));
    bench.text(a, "CONFIG SET latency-monitor-threshold 10");
    bench.run(a, "DEBUG SLEEP 0.02");
    // From here on nothing is added, wherever the machine stalls. It may have stalled when the threshold was set.
    bench.text(a, "CONFIG SET latency-monitor-threshold 1000000");
    let samples = array(array(bench.one(a, "LATENCY HISTORY command")).remove(0));
    assert_eq!(show(&samples[0]), "1700000000");
    assert!(show(&samples[1]).parse::<u64>().expect("a number") >= 20);
    let latest = array(array(bench.one(a, "LATENCY LATEST")).remove(0));
    assert_eq!((latest.len(), show(&latest[0])), (6, "command".into()));
    assert!(["1", "2"].contains(&show(&latest[5]).as_str()), "{latest:?}");
    assert!(bench.text(a, "LATENCY GRAPH command").starts_with("command - high "));
    assert!(bench.text(a, "LATENCY DOCTOR").contains("1. command: "));
    assert_eq!(bench.text(a, "LATENCY GRAPH none"), "-ERR No samples available for event 'none'");
    assert_eq!(bench.text(a, "LATENCY HISTORY none"), "[]");
    assert_eq!(bench.text(a, "LATENCY RESET none COMMAND"), "1");
    assert_eq!(bench.text(a, "LATENCY LATEST"), "[]");
}

#[test]
fn commands_have_histograms() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    bench.run(a, "SET k v");
    bench.run(a, "SET k v");
    bench.run(a, "CONFIG GET port");
    let set = bench.text(a, "LATENCY HISTOGRAM set get nosuch");
    assert!(set.starts_with("{set:{calls:2 histogram_usec:{") && set.ends_with(":2}}}"), "{set}");
    let config = bench.text(a, "LATENCY HISTOGRAM config");
    assert!(config.starts_with("{config|get:{calls:1 "), "{config}");
    assert_eq!(bench.text(a, "LATENCY HISTOGRAM config|set"), "{}");
    assert!(bench.text(a, "LATENCY HISTOGRAM").contains("latency|histogram:"));
    bench.text(a, "CONFIG SET latency-tracking no");
    bench.text(a, "CONFIG RESETSTAT");
    bench.run(a, "SET k v");
    assert_eq!(bench.text(a, "LATENCY HISTOGRAM set"), "{}");
}

#[test]
fn memory_of_keys_and_server() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    bench.run(a, "RPUSH list a b c");
    assert!(bench.text(a, "MEMORY USAGE list").parse::<u64>().expect("a number") > 20);
    assert_eq!(bench.text(a, "MEMORY USAGE none"), "nil");
    assert_eq!(bench.text(a, "MEMORY USAGE list SAMPLES -1"), "-ERR syntax error");
    assert_eq!(bench.text(a, "MEMORY USAGE list SAMPLES"), "-ERR syntax error");
    let Reply::Map(stats) = bench.one(a, "MEMORY STATS") else { panic!("a map") };
    assert_eq!(stats.len(), 35);
    let stat = |name: &str| show(&stats.iter().find(|(other, _)| show(other) == name).expect("a name").1);
    assert_eq!(stat("keys.count"), "1");
    assert!(stat("db.0").starts_with("{overhead.hashtable.main:"));
    assert!(bench.text(a, "MEMORY DOCTOR").contains("too little data"));
    assert_eq!(bench.text(a, "MEMORY PURGE"), "OK");
    assert!(bench.text(a, "MEMORY MALLOC-STATS").contains("pages in use"));
}

#[test]
fn debug_is_for_those_who_may() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    assert!(bench.text(a, "DEBUG SLEEP 0").starts_with("-ERR DEBUG command not allowed."));
    bench.allow_debug();
    assert_eq!(bench.text(a, "DEBUG SLEEP 0"), "OK");
    assert_eq!(
        bench.text(a, "DEBUG JMAP"),
        "-ERR unknown subcommand or wrong number of arguments for 'JMAP'. Try DEBUG HELP."
    );
    assert_eq!(bench.text(a, "DEBUG SET-ACTIVE-EXPIRE 0"), "OK");
    assert!(!bench.engine.settings.active_expire.load(std::sync::atomic::Ordering::Relaxed));
    let error = bench.run_args(a, &[b"DEBUG", b"ERROR", b"MYERR is mine"]).remove(0);
    assert_eq!(show(&error), "-MYERR is mine");
    assert_eq!(bench.text(a, "DEBUG STRINGMATCH-LEN 10 a*a"), "1");
    assert_eq!(bench.text(a, "DEBUG QUICKLIST-PACKED-THRESHOLD 200b"), "OK");
    assert!(bench.text(a, "DEBUG QUICKLIST-PACKED-THRESHOLD 5gb").starts_with("-ERR argument must"));
    assert!(bench.text(a, "DEBUG RELOAD NOSAVE").starts_with("-ERR NOSAVE would load an older snapshot"));
    assert!(bench.text(a, "DEBUG RELOAD OTHER").starts_with("-ERR DEBUG RELOAD only supports"));
    assert!(bench.text(a, "DEBUG SEGFAULT").starts_with("-ERR Weft does not crash"));
    assert_eq!(bench.text(a, "DEBUG OBJECT k"), "-ERR no such key");
    bench.run(a, "SET k 123");
    let object = bench.text(a, "DEBUG OBJECT k");
    assert!(
        object.contains(" encoding:int serializedlength:") && object.contains(" lru_seconds_idle:0"),
        "{object}"
    );
    let id = bench.text(a, "INFO replication");
    assert_eq!(bench.text(a, "DEBUG CHANGE-REPL-ID"), "OK");
    assert_ne!(bench.text(a, "INFO replication"), id);
    for kind in ["string", "integer", "double", "bignum", "null", "array", "set", "map", "verbatim", "true"] {
        assert!(!bench.text(a, &format!("DEBUG PROTOCOL {kind}")).starts_with('-'), "{kind}");
    }
    assert_eq!(bench.text(a, "DEBUG PROTOCOL map"), "{0:false 1:true 2:false}");
    // What belongs to a value is RESP3's, and is no value of its own.
    let value = Reply::Bulk(b"Some real reply following the attribute".to_vec());
    let popular = Reply::Array(vec![Reply::Bulk(b"key:123".to_vec()), Reply::Int(90)]);
    let pairs = vec![(Reply::Bulk(b"key-popularity".to_vec()), popular)];
    let attributed = Reply::Attributed(pairs, Box::new(value.clone()));
    assert_eq!(bench.run(a, "DEBUG PROTOCOL attrib"), std::slice::from_ref(&attributed));
    bench.run(a, "MULTI");
    bench.run(a, "DEBUG PROTOCOL attrib");
    assert_eq!(bench.run(a, "EXEC"), [Reply::Array(vec![attributed])]);
    let pushed = Reply::Push(vec![Reply::Bulk(b"server-cpu-usage".to_vec()), Reply::Int(42)]);
    let before = Reply::Bulk(b"Some real reply following the push reply".to_vec());
    assert_eq!(bench.run(a, "DEBUG PROTOCOL push"), [before, pushed]);
    for protocol in [Protocol::Resp2, Protocol::Respb] {
        let other = bench.connect(protocol);
        assert_eq!(bench.run(other, "DEBUG PROTOCOL attrib"), std::slice::from_ref(&value));
    }
}

/// The digest is the same for the same data, however it came to be, and differs for any other.
#[test]
fn digests() {
    let mut bench = Bench::new();
    bench.allow_debug();
    let a = bench.connect(Protocol::Resp3);
    assert_eq!(bench.text(a, "DEBUG DIGEST"), "0".repeat(40));
    let mut seen = vec!["0".repeat(40)];
    for command in [
        "SET s 1",
        "RPUSH l a b",
        "RPUSH l c",
        "SADD set x y",
        "HSET h f v",
        "HSET h g w",
        "ZADD z 1 a",
        "ZADD z 2 a",
        "EXPIRE s 100",
        "XADD x 1-1 f v",
        "SELECT 1",
        "SET s 1",
    ] {
        bench.run(a, command);
        let digest = bench.text(a, "DEBUG DIGEST");
        assert!(command == "SELECT 1" || !seen.contains(&digest), "{command}");
        seen.push(digest);
    }
    let last = bench.text(a, "DEBUG DIGEST");
    bench.run(a, "FLUSHALL");
    for command in [
        "SET s 1",
        "SELECT 0",
        "XADD x 1-1 f v",
        "ZADD z 2 a",
        "HSET h g w f v",
        "SADD set y",
        "SADD set x",
        "RPUSH l b c",
        "LPUSH l a",
        "SET s 1 EX 100",
    ] {
        bench.run(a, command);
    }
    assert_eq!(bench.text(a, "DEBUG DIGEST"), last);
    let values = bench.text(a, "DEBUG DIGEST-VALUE s none");
    assert!(values.ends_with(&format!(" {}]", "0".repeat(40))), "{values}");
    bench.run(a, "FLUSHALL");
    assert_eq!(bench.text(a, "DEBUG POPULATE 100 p 10"), "OK");
    assert_eq!((bench.text(a, "DBSIZE"), bench.text(a, "STRLEN p:99")), ("100".into(), "10".into()));
}

#[test]
fn shutdown_stops_the_server_and_answers_nothing() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    for (command, error) in [
        ("SHUTDOWN NOSAVE SAVE", "-ERR syntax error"),
        ("SHUTDOWN SOON", "-ERR syntax error"),
        ("SHUTDOWN ABORT NOW", "-ERR syntax error"),
        ("SHUTDOWN ABORT", "-ERR No shutdown in progress."),
    ] {
        assert_eq!(bench.text(a, command), error, "{command}");
    }
    assert!(bench.run(a, "SHUTDOWN NOSAVE NOW FORCE").is_empty());
    assert!(bench.is_shutting_down(a));
}

#[test]
fn what_weft_does_not_have_says_so() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    assert_eq!(bench.text(a, "MODULE LIST"), "[]");
    assert_eq!(bench.text(a, "MODULE LOAD x.so"), "-ERR Error loading the extension: Weft has no modules");
    // Without a server there is nobody who could.
    for command in ["SAVE", "BGSAVE SCHEDULE", "BGREWRITEAOF"] {
        assert_eq!(bench.text(a, command), "-ERR Nothing is kept here: this engine has no disk");
    }
    assert_eq!(bench.text(a, "BGSAVE soon"), "-ERR syntax error");
    assert_eq!(bench.text(a, "LASTSAVE"), "1700000000");
    assert_eq!(bench.text(a, "TIME"), "[1700000000 0]");
    bench.pass(1234);
    assert_eq!(bench.text(a, "TIME"), "[1700000001 234000]");
    assert!(bench.text(a, "LOLWUT").contains("Weft ver. "));
    assert_eq!(bench.text(a, "LOLWUT VERSION 5 3 2").lines().count(), 4);
    assert_eq!(bench.text(a, "LOLWUT VERSION x"), "-ERR value is not an integer or out of range");
    for container in ["CONFIG", "SLOWLOG", "COMMANDLOG", "LATENCY", "MEMORY", "MODULE"] {
        assert!(
            bench.text(a, &format!("{container} HELP")).starts_with(&format!("[{container} <subcommand>"))
        );
    }
}
