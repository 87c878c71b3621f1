//! Owns: what scripts leave to those beside them: what is kept so that they can be taken back, whose time is whose, who
//! is told of their end, and that nobody loads libraries for others. Does not own: what scripts do (`scripts.rs`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use support::stored::{store_library, words};
use support::{Bench, show};
use weft_engine::reply::Protocol;

/// Beside others all is kept that takes a script back. One that does so much that this would take all memory has the
/// keyspace to itself, and is done once.
#[test]
fn what_could_take_a_large_script_back_has_a_limit() {
    let (mut bench, [client, listens]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.engine.stats.active_threads.store(2, Relaxed);
    let reruns = |bench: &Bench| bench.engine.scripts.reruns.load(Relaxed);
    words(&mut bench, client, &["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0"]);
    bench.text(listens, "SUBSCRIBE news");
    // 10 MB, then 70.
    let publishes = "redis.call('incr', KEYS[1]) local text = string.rep('x', 1000000) \
                     for i = 1, tonumber(ARGV[1]) do redis.call('publish', 'news', text) end";
    let told = |bench: &mut Bench, count: &str| {
        words(bench, client, &["EVAL", publishes, "1", "count", count]);
        bench.hear(listens).len()
    };
    assert_eq!((told(&mut bench, "10"), reruns(&bench)), (10, 0));
    assert_eq!((told(&mut bench, "70"), reruns(&bench)), (70, 1));
    assert_eq!(words(&mut bench, client, &["GET", "count"]), "2", "what was taken back has not counted");
    let writes = "local text = string.rep('x', 1000000) \
                  for i = 1, tonumber(ARGV[1]) do redis.call('setrange', KEYS[1], i, text) end";
    words(&mut bench, client, &["EVAL", writes, "1", "text", "10"]);
    assert_eq!(reruns(&bench), 1);
    words(&mut bench, client, &["EVAL", writes, "1", "text", "70"]);
    assert_eq!(reruns(&bench), 2);
    assert_eq!(words(&mut bench, client, &["STRLEN", "text"]), "1000070");
    // Where all of it can be killed there is no way to do without.
    words(&mut bench, client, &["CONFIG", "SET", "script-kill-undo", "yes"]);
    let lasts = "local ran, why = pcall(function() for i = 1, 70 do redis.call('setrange', KEYS[1], i, ARGV[1]) end end) \
                 return ran and 'all' or why";
    let large = "y".repeat(1_000_000);
    let refused = words(&mut bench, client, &["EVAL", lasts, "1", "text", &large]);
    assert!(refused.contains("writes more than can be taken back"), "{refused}");
    assert_eq!(
        words(&mut bench, client, &["GETRANGE", "text", "1", "1"]),
        "y",
        "an error keeps what was written"
    );
    // What was not there before needs nothing to be taken back.
    assert_eq!(words(&mut bench, client, &["EVAL", lasts, "1", "other", &large]), "all");
}

/// A run that is taken back has said nothing: neither to subscribers nor in the log.
#[test]
fn what_a_script_says_is_said_once_though_it_runs_twice() {
    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut bench = Bench::new();
    let log = |line: &str| LINES.lock().unwrap().push(line.to_owned());
    assert!(bench.engine.facts.logger.set(log).is_ok());
    let said = || std::mem::take(&mut *LINES.lock().unwrap());
    let (client, listens) = (bench.connect(Protocol::Resp2), bench.connect(Protocol::Resp2));
    bench.engine.stats.active_threads.store(2, Relaxed);
    bench.text(listens, "SUBSCRIBE news");
    let reruns = |bench: &Bench| bench.engine.scripts.reruns.load(Relaxed);
    // It wants everything behind what it has said; remembered, it has it from the beginning.
    let strays = "redis.call('incr', KEYS[1]) redis.call('publish', 'news', 'a') redis.log(redis.LOG_WARNING, 'one') \
                  redis.call('keys', '*') redis.log(redis.LOG_WARNING, 'two')";
    for _ in 0..2 {
        words(&mut bench, client, &["EVAL", strays, "1", "key"]);
        assert_eq!(said(), ["script, warning: one", "script, warning: two"]);
        assert_eq!(bench.hear(listens).len(), 1);
        assert_eq!(reruns(&bench), 1);
    }
    // Beyond 64 MiB of undo.
    let large = "local text = string.rep('x', 1000000) redis.log(redis.LOG_WARNING, 'begins') \
                 for i = 1, 70 do redis.call('setrange', KEYS[1], i, text) end redis.log(redis.LOG_WARNING, 'ends')";
    words(&mut bench, client, &["EVAL", "redis.call('setrange', KEYS[1], 1000000, 'x')", "1", "text"]);
    words(&mut bench, client, &["EVAL", large, "1", "text"]);
    assert_eq!(
        (said().as_slice(), reruns(&bench)),
        (&["script, warning: begins", "script, warning: ends"].map(str::to_owned)[..], 2)
    );
    // One that fails has said it all the same.
    words(&mut bench, client, &["EVAL", "redis.log(redis.LOG_WARNING, 'fails') error('x')", "0"]);
    assert_eq!(said(), ["script, warning: fails"]);
    // As many lines as are kept, and one more.
    for (count, again) in [(900, 2), (1_100, 3)] {
        let says = "local text = string.rep('x', 1000) for i = 1, tonumber(ARGV[1]) do redis.log(redis.LOG_WARNING, text) end";
        words(&mut bench, client, &["EVAL", says, "0", &count.to_string()]);
        assert_eq!((said().len(), reruns(&bench)), (count, again));
    }
}

/// Others have put off what they could not have, and may sleep: they are woken when they can.
#[test]
fn the_end_of_a_script_that_takes_long_wakes_all_workers() {
    let mut team = Bench::team(2);
    let mut bench = team.remove(0);
    bench.engine.settings.busy_reply_ms.store(1, Relaxed);
    let woken = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&woken);
    bench.engine.mailbox(1).set_waker(move || {
        counts.fetch_add(1, Relaxed);
    });
    let (client, other) = (bench.connect(Protocol::Resp2), bench.connect(Protocol::Resp2));
    for round in 1..3 {
        assert_eq!(
            words(&mut bench, client, &["EVAL", "while true do end", "0"]),
            "",
            "it is left in the middle"
        );
        assert_eq!(words(&mut bench, other, &["SCRIPT", "KILL"]), "OK");
        assert_eq!(woken.load(Relaxed), round - 1, "it has not ended");
        while !bench.go_on() {}
        assert_eq!(woken.load(Relaxed), round);
        bench.take(client);
        team[0].deliver();
    }
}

/// One that has taken long, and comes to more than it has locked while somebody is inside, waits for him without
/// holding up anybody else.
#[test]
fn who_strays_behind_the_threshold_waits_and_others_are_answered() {
    let mut bench = Bench::team(2).remove(0);
    bench.engine.settings.busy_reply_ms.store(1, Relaxed);
    bench.engine.stats.active_threads.store(2, Relaxed);
    let (client, other) = (bench.connect(Protocol::Resp2), bench.connect(Protocol::Resp2));
    let mut somebody = bench.engine.keyspace.worker().expect("a place");
    let inside = somebody.enter();
    let script = "redis.call('incr', KEYS[1]) for i = 1, 20000000 do end return #redis.call('keys', '*')";
    assert_eq!(words(&mut bench, client, &["EVAL", script, "1", "key"]), "", "it is left in the middle");
    while bench.engine.scripts.reruns.load(Relaxed) == 0 {
        assert!(!bench.go_on(), "somebody is inside");
    }
    for _ in 0..3 {
        assert!(!bench.go_on(), "somebody is inside");
        assert!(words(&mut bench, other, &["GET", "key"]).starts_with("-BUSY"));
        assert_eq!(words(&mut bench, other, &["SELECT", "0"]), "OK");
    }
    drop(inside);
    while !bench.go_on() {}
    assert_eq!(bench.take(client).iter().map(show).collect::<String>(), "1");
    assert_eq!(words(&mut bench, other, &["GET", "key"]), "1", "what was taken back has not counted");
}

/// What a script takes before it is left is its own time, and not that of quick commands of the same batch.
#[test]
fn a_script_that_is_left_costs_its_neighbours_no_time() {
    const THRESHOLD_MS: u64 = 200;
    let mut bench = Bench::new();
    bench.engine.settings.busy_reply_ms.store(THRESHOLD_MS, Relaxed);
    let (client, other) = (bench.connect(Protocol::Resp2), bench.connect(Protocol::Resp2));
    let mut get_us = || {
        words(&mut bench, other, &["CONFIG", "RESETSTAT"]);
        // Comments part words where a line is parted at blanks.
        let loops = "EVAL while--[[]]true--[[]]do--[[]]end 0";
        bench.run_batch(&[(other, vec!["GET key".to_owned()]), (client, vec![loops.to_owned()])]);
        assert!(bench.engine.is_busy(), "it is left in the middle");
        assert_eq!(words(&mut bench, other, &["SCRIPT", "KILL"]), "OK");
        while !bench.go_on() {}
        bench.take(client);
        let stats = words(&mut bench, other, &["INFO", "commandstats"]);
        let line = stats.lines().find(|line| line.starts_with("cmdstat_get:")).unwrap().to_owned();
        let us = line.split("usec=").nth(1).unwrap().split(',').next().unwrap();
        us.parse::<u64>().unwrap()
    };
    // The least of some: this thread may have had to wait.
    let least_us = (0..5).map(|_| get_us()).min().unwrap();
    assert!(least_us < THRESHOLD_MS * 1000 / 2, "a GET has taken {least_us} µs");
}

/// Who lists libraries, counts them, or asks under a pause whether a function writes, loads none: a start has done so,
/// or whoever has stored them.
#[test]
fn nobody_loads_libraries_to_find_out_what_they_have() {
    static LOADED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let loaded = || std::mem::take(&mut *LOADED.lock().unwrap());
    let mut team = Bench::team(2);
    let log: fn(&str) = |line| LOADED.lock().unwrap().push(line.to_owned());
    assert!(team[0].engine.facts.logger.set(log).is_ok());
    let source = |name: &str| {
        format!(
            "#!lua name={name}\nredis.log(redis.LOG_WARNING, '{name}') \
             redis.register_function{{function_name = 'reads_{name}', flags = {{'no-writes'}}, \
             callback = function() return '{name}' end}} \
             redis.register_function('writes_{name}', function() return redis.call('set', 'k', '{name}') end)"
        )
    };
    for name in ["a", "b"] {
        store_library(team[0].engine, name, &source(name));
    }
    store_library(team[0].engine, "c", "#!lua name=c\nerror('not here')");
    team[0].engine.load_libraries();
    let said = loaded();
    assert_eq!(said[..2], ["script, warning: a", "script, warning: b"]);
    assert!(said.len() == 3 && said[2].contains("the library c does not load: "), "{said:?}");
    for bench in &mut team {
        let (client, other) = (bench.connect(Protocol::Resp2), bench.connect(Protocol::Resp2));
        assert!(words(bench, client, &["FUNCTION", "LIST"]).contains("reads_b"));
        assert!(words(bench, client, &["FUNCTION", "STATS"]).contains("libraries_count 3"));
        assert_eq!(loaded(), [""; 0]);
        bench.text(other, "CLIENT PAUSE 100000 WRITE");
        assert_eq!(words(bench, client, &["FCALL", "reads_b", "0"]), "b", "a pause of writes lets it pass");
        assert_eq!(loaded(), ["script, warning: b"], "that one alone is called");
        assert_eq!(words(bench, client, &["FCALL", "writes_a", "0"]), "", "it is held");
        assert_eq!(loaded(), [""; 0]);
        bench.text(other, "CLIENT UNPAUSE");
        bench.resume(client);
        assert_eq!(loaded(), ["script, warning: a"]);
        let refused = words(bench, client, &["FCALL", "none", "0"]);
        assert!(refused.contains("the library c does not load here: "), "{refused}");
        assert_eq!(loaded(), [""; 0]);
    }
    let client = team[0].connect(Protocol::Resp2);
    assert_eq!(words(&mut team[0], client, &["FUNCTION", "LOAD", "REPLACE", &source("c")]), "c");
    assert_eq!(loaded(), ["script, warning: c"]);
    let client = team[1].connect(Protocol::Resp2);
    assert!(words(&mut team[1], client, &["FUNCTION", "LIST"]).contains("reads_c"));
    assert!(words(&mut team[1], client, &["FUNCTION", "STATS"]).contains("functions_count 6"));
    assert_eq!(loaded(), [""; 0], "who has stored it has loaded it");
}

/// An error on several lines is counted by the code that its reply has.
#[test]
fn an_error_on_several_lines_forges_no_line_of_info() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    for script in [
        r"error(redis.error_reply('-ERR\r\n-ERR FAKE'))",
        r"return redis.error_reply('-ERR\r\nused_memory:1')",
        r"return {err='ERR\nx'}",
    ] {
        words(&mut bench, client, &["CONFIG", "RESETSTAT"]);
        let reply = words(&mut bench, client, &["EVAL", script, "0"]);
        assert!(reply.starts_with("-ERR "), "{reply}");
        let stats = words(&mut bench, client, &["INFO", "errorstats"]);
        assert_eq!(stats.lines().collect::<Vec<_>>(), ["# Errorstats", "errorstat_ERR:count=1"], "{script}");
    }
}
