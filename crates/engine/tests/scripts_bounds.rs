//! Owns: what scripts and libraries may take at most, and how their errors are counted. Does not own: what they do
//! (`scripts.rs`), Lua (`crates/lua/tests`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::Bench;
use support::stored::words as text;
use weft_engine::info::Memory;
use weft_engine::reply::Protocol;

/// A reply that is more than scripts may have is an error of the call, of which nothing is left; what the command has
/// done stays.
#[test]
fn replies_count_as_memory_of_scripts() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    text(&mut bench, client, &["CONFIG", "SET", "script-memory-limit", "2mb"]);
    for protocol in ["2", "3"] {
        text(&mut bench, client, &["FLUSHALL"]);
        let filling = "for n = 1, ARGV[1] do local element = ('.'):rep(40) .. n redis.call('RPUSH', 'l', element) \
                       redis.call('HSET', 'h', element, 'value') redis.call('SADD', 's', element) end";
        text(&mut bench, client, &["EVAL", filling, "0", "30000"]);
        text(&mut bench, client, &["SET", "v", &"x".repeat(3 << 20)]);
        for call in
            ["'LRANGE', 'l', 0, -1", "'HGETALL', 'h'", "'SMEMBERS', 's'", "'GET', 'v'", "'MGET', 'n', 'v'"]
        {
            let script = format!(
                "redis.setresp({protocol}) local told = redis.pcall({call}) local before = collectgarbage('count') \
                 return {{told.err or 'fits', before < 2048 and 'bounded' or before}}"
            );
            let got = text(&mut bench, client, &["EVAL", &script, "0"]);
            assert_eq!(
                got, "[ERR not enough memory for the reply of this call bounded]",
                "{call}, {protocol}"
            );
            let raised = text(&mut bench, client, &["EVAL", &format!("redis.call({call})"), "0"]);
            assert!(
                raised.starts_with("-ERR not enough memory for the reply of this call script: on"),
                "{raised}"
            );
        }
        // What is not used any more makes room.
        let again = "local n = 0 for i = 1, 30 do n = n + #redis.call('LRANGE', 'l', 0, 8000) end return n";
        assert_eq!(text(&mut bench, client, &["EVAL", again, "0"]), "240030");
        let nested = "local kept = {} while true do kept = {kept, redis.call('LRANGE', 'l', 0, 2000)} end";
        let got = text(&mut bench, client, &["EVAL", nested, "0"]);
        assert!(got.contains("not enough memory"), "{got}");
        // What it has done is done.
        let popped =
            "local told = redis.pcall('LPOP', 'l', 30000) return {told.err, redis.call('LLEN', 'l')}";
        let got = text(&mut bench, client, &["EVAL", popped, "0"]);
        assert_eq!(got, "[ERR not enough memory for the reply of this call 0]");
    }
    assert_eq!(text(&mut bench, client, &["EVAL", "return redis.call('PING')", "0"]), "PONG");
}

/// What a script or program was answered goes with it: a value that is removed behind it takes no memory any more.
#[test]
fn replies_inside_scripts_are_not_kept_behind_them() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let script = ["EVAL", "return #redis.call('GET', 'v')", "0"];
    let program = ["PROGRAM", "EVAL", r#"{"steps":[["GET","v"],{"return":"read"}]}"#];
    for (run, told) in [(script, "100000001"), (program, "read")] {
        text(&mut bench, client, &["SETRANGE", "v", "1", "x"]);
        text(&mut bench, client, &run);
        let before = Memory::now().resident_bytes;
        text(&mut bench, client, &["SETRANGE", "v", "100000000", "x"]);
        assert_eq!(text(&mut bench, client, &run), told);
        text(&mut bench, client, &["DEL", "v"]);
        text(&mut bench, client, &["SCRIPT", "FLUSH"]);
        // Others take memory meanwhile.
        let more = Memory::now().resident_bytes.saturating_sub(before);
        assert!(more < 60_000_000, "{run:?}: {more} bytes more");
    }
}

/// `lua-enable-insecure-api` changes what scripts find at once, and forgets them, as in Valkey 9.1.2.
#[test]
fn the_insecure_interface_comes_and_goes() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let script = ["EVAL", "return type(rawget(_G, 'getfenv'))", "0"];
    assert_eq!(text(&mut bench, client, &script), "nil");
    let sha = text(&mut bench, client, &["SCRIPT", "LOAD", "return 1"]);
    let set = |bench: &mut Bench, value: &str| {
        let pairs: &[(&[u8], &[u8])] = &[(b"lua-enable-insecure-api", value.as_bytes())];
        bench.engine.set_config(pairs, true).expect("a value of it");
    };
    set(&mut bench, "yes");
    assert_eq!(text(&mut bench, client, &script), "function");
    assert_eq!(text(&mut bench, client, &["SCRIPT", "EXISTS", &sha]), "[0]");
    text(&mut bench, client, &["SCRIPT", "LOAD", "return 1"]);
    set(&mut bench, "yes");
    assert_eq!(text(&mut bench, client, &["SCRIPT", "EXISTS", &sha]), "[1]", "nothing has changed");
    set(&mut bench, "no");
    assert_eq!(text(&mut bench, client, &script), "nil");
}

/// As Valkey 9.1.2 counts them.
#[test]
fn errors_of_scripts_are_counted_by_few_and_short_words() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    text(&mut bench, client, &["CONFIG", "RESETSTAT"]);
    let long = "W".repeat(31);
    for error in ["ONE", "TWO words", "THREE ", &format!("{long} is text"), &format!("{} x", &long[1..])] {
        text(&mut bench, client, &["EVAL", "return {err = ARGV[1]}", "0", error]);
    }
    let counted = |bench: &mut Bench| -> Vec<String> {
        let all = text(bench, client, &["INFO", "errorstats"]);
        all.lines().filter_map(|line| line.strip_prefix("errorstat_")).map(str::to_owned).collect()
    };
    let mut expected = ["ERR:count=2", "THREE:count=1", "TWO:count=1", &format!("{}:count=1", &long[1..])]
        .map(str::to_owned);
    expected.sort();
    let mut told = counted(&mut bench);
    told.sort();
    assert_eq!(told, expected);
    for number in 0..200 {
        text(&mut bench, client, &["EVAL", "return {err = ARGV[1]}", "0", &format!("E{number} x")]);
    }
    let told = counted(&mut bench);
    assert!(
        told.len() <= 130 && told.iter().any(|line| line.starts_with("ERRORSTATS_OVERFLOW:")),
        "{told:?}"
    );
}

/// What is refused inside scripts counts as in Valkey 9.1.2, and so do errors.
#[test]
fn what_scripts_are_refused_is_counted() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    text(&mut bench, client, &["ACL", "SETUSER", "u", "on", "nopass", "~*", "+eval", "-incr"]);
    text(&mut bench, client, &["SET", "s", "x"]);
    text(&mut bench, client, &["CONFIG", "RESETSTAT"]);
    text(&mut bench, client, &["EVAL_RO", "return redis.call('SET', 'a', 'b')", "0"]);
    text(&mut bench, client, &["EVAL_RO", "return redis.pcall('SET', 'a', 'b')", "0"]);
    for script in [
        "redis.pcall('GET') redis.pcall('SUBSCRIBE', 'x') redis.pcall('nosuch') return redis.pcall('GET', 's')",
        "return redis.call('INCR', 's')",
        "return redis.pcall('LPUSH', 's', '1')",
    ] {
        text(&mut bench, client, &["EVAL", script, "0"]);
    }
    let other = bench.connect(Protocol::Resp2);
    text(&mut bench, other, &["AUTH", "u", "x"]);
    let denied = "ERR ACL failure in script: User u has no permissions to run the 'incr' command";
    for call in ["call", "pcall"] {
        let script = format!("return redis.{call}('INCR', 's')");
        let reply = text(&mut bench, other, &["EVAL", &script, "0"]);
        assert!(reply.starts_with(&format!("-{denied}")), "{reply}");
    }
    // A write behind the first one runs where there is no room, and is not refused.
    text(&mut bench, client, &["CONFIG", "SET", "maxmemory", "1"]);
    let script = "redis.call('DEL', 'a') return redis.call('SETEX', 'a', '100', 'b')";
    assert_eq!(text(&mut bench, client, &["EVAL", script, "0"]), "OK");
    let stats = text(&mut bench, client, &["INFO", "commandstats", "errorstats"]);
    let counts = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:")));
        let fields = line.unwrap_or_default().split(',').filter_map(|field| field.split_once('='));
        let of =
            |wanted: &str| fields.clone().find(|(name, _)| *name == wanted).map_or("-", |(_, value)| value);
        format!("{} {} {}", of("calls"), of("rejected_calls"), of("failed_calls"))
    };
    for (name, calls_rejected_failed) in [
        ("set", "0 2 0"),
        ("get", "1 1 0"),
        ("subscribe", "0 1 0"),
        ("incr", "1 2 1"),
        ("lpush", "1 0 1"),
        ("setex", "1 0 0"),
        ("eval_ro", "2 0 2"),
    ] {
        assert_eq!(counts(name), calls_rejected_failed, "{name}: {stats}");
    }
    let error = |name: &str| stats.lines().find_map(|line| line.strip_prefix(&format!("errorstat_{name}:")));
    assert_eq!(error("NOPERM"), Some("count=2"), "{stats}");
}

#[test]
fn a_library_has_ten_thousand_functions_and_no_more() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let library = |count: u32| {
        format!(
            "#!lua name=many\nfor i = 1, {count} do \
             server.register_function('f' .. i, function() return i end) end"
        )
    };
    let reply = text(&mut bench, client, &["FUNCTION", "LOAD", &library(10_001)]);
    assert_eq!(reply, "-ERR Error registering functions: ERR a library registers at most 10000 functions");
    assert!(text(&mut bench, client, &["FCALL", "f1", "0"]).ends_with("Function not found"));
    assert_eq!(text(&mut bench, client, &["FUNCTION", "LOAD", &library(10_000)]), "many");
    assert_eq!(text(&mut bench, client, &["FCALL", "f10000", "0"]), "10000");
}
