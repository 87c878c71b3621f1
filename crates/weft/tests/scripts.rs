//! Scripts that take their time: others are told BUSY, and may end them, although one thread drives all workers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use common::resp;
use common::servers::{LONG, Server};

struct Client(BufReader<UnixStream>);

impl Client {
    fn new(server: &Server) -> Self {
        let stream = UnixStream::connect(&server.socket).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self(BufReader::new(stream))
    }
    fn send(&mut self, words: &[&str]) {
        self.0.get_mut().write_all(&resp(words)).unwrap();
    }
    /// The next line, without its end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
    fn ask(&mut self, words: &[&str]) -> String {
        self.send(words);
        self.line()
    }
    /// Asks until a script takes its time: each answer is an event of the server's.
    fn until_busy(&mut self) {
        while !self.ask(&["PING"]).starts_with("-BUSY") {}
    }
    fn until_calm(&mut self) {
        while self.ask(&["PING"]).starts_with("-BUSY") {}
    }
}

fn serve(more: &[&str]) -> Server {
    let mut flags = vec!["--threads", "1", "--busy-reply-threshold", "20"];
    flags.extend_from_slice(more);
    Server::weft(&flags)
}

const KILLED: &str = "-ERR Script killed by user with SCRIPT KILL. script: on @user_script:1.";

#[test]
fn a_script_that_loops_is_killed_on_the_one_thread_that_there_is() {
    let server = serve(&[]);
    let (mut looping, mut other) = (Client::new(&server), Client::new(&server));
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "return string.rep('a', 100000):find('.-.-.-.-b')",
        "local n = redis.call('get', KEYS[1]) while true do n = redis.call('get', KEYS[1]) end",
        "redis.call('keys', '*') while true do end",
        "table.sort({1, 2, 3}, function() while true do end end)",
        "return setmetatable({}, {__index = function() while true do end end}).x",
        "local t = {} for i = 1, 7900 do t[i] = i end while true do local a = unpack(t) end",
    ] {
        looping.send(&["EVAL", script, "1", "key"]);
        looping.send(&["PING"]);
        other.until_busy();
        assert!(other.ask(&["GET", "key"]).starts_with("-BUSY"));
        assert_eq!(other.ask(&["MULTI"]), "+OK");
        assert!(other.ask(&["SET", "key", "1"]).starts_with("-BUSY"));
        assert_eq!(other.ask(&["DISCARD"]), "+OK");
        assert!(other.ask(&["FUNCTION", "KILL"]).starts_with("-BUSY"));
        assert_eq!(other.ask(&["SCRIPT", "KILL"]), "+OK");
        assert_eq!(looping.line(), KILLED, "{script}");
        assert_eq!(looping.line(), "+PONG");
        other.until_calm();
        assert_eq!(other.ask(&["SET", "key", "1"]), "+OK");
    }
}

#[test]
fn a_transaction_that_is_told_busy_is_over() {
    let server = serve(&[]);
    let (mut looping, mut other, mut third) =
        (Client::new(&server), Client::new(&server), Client::new(&server));
    assert_eq!(other.ask(&["WATCH", "watched"]), "+OK");
    assert_eq!(other.ask(&["MULTI"]), "+OK");
    assert_eq!(other.ask(&["SET", "key", "never"]), "+QUEUED");
    looping.send(&["EVAL", "while true do end", "0"]);
    third.until_busy();
    // As in Valkey. Whoever were still in MULTI would have his next commands queued.
    let refused = other.ask(&["EXEC"]);
    assert!(refused.starts_with("-EXECABORT Transaction discarded because of: BUSY"), "{refused}");
    assert_eq!(other.ask(&["PING"]), third.ask(&["PING"]), "nothing is queued");
    assert_eq!(third.ask(&["SCRIPT", "KILL"]), "+OK");
    assert_eq!(looping.line(), KILLED);
    third.until_calm();
    // What was watched then counts no more; what is watched now does.
    assert_eq!(third.ask(&["SET", "watched", "1"]), "+OK");
    for (changed, answer) in [(false, "*1"), (true, "*-1")] {
        assert_eq!(other.ask(&["WATCH", "watched"]), "+OK");
        assert_eq!(other.ask(&["MULTI"]), "+OK");
        assert_eq!(other.ask(&["PING"]), "+QUEUED");
        if changed {
            assert_eq!(third.ask(&["SET", "watched", "2"]), "+OK");
        }
        assert_eq!(other.ask(&["EXEC"]), answer);
        if !changed {
            assert_eq!(other.line(), "+PONG");
        }
    }
    assert_eq!(other.ask(&["EXISTS", "key"]), ":0");
}

#[test]
fn a_script_that_has_written_is_ended_by_shutdown_alone_or_taken_back() {
    let server = serve(&[]);
    let (mut looping, mut other) = (Client::new(&server), Client::new(&server));
    other.ask(&["SET", "key", "before"]);
    other.ask(&["CONFIG", "SET", "script-kill-undo", "yes"]);
    let script = "redis.call('set', KEYS[1], 'x') redis.call('set', 'made', 1) while true do end";
    looping.send(&["EVAL", script, "1", "key"]);
    other.until_busy();
    assert_eq!(other.ask(&["SCRIPT", "KILL"]), "+OK");
    assert_eq!(looping.line(), KILLED);
    other.until_calm();
    assert_eq!((other.ask(&["GET", "key"]), other.line()), ("$6".into(), "before".into()));
    assert_eq!(other.ask(&["EXISTS", "made"]), ":0");
    other.ask(&["CONFIG", "SET", "script-kill-undo", "no"]);
    looping.send(&["EVAL", script, "1", "key"]);
    other.until_busy();
    assert!(other.ask(&["SCRIPT", "KILL"]).starts_with("-UNKILLABLE"));
    other.send(&["SHUTDOWN", "NOSAVE"]);
    let mut rest = String::new();
    // The server ends, script or not.
    while looping.0.read_line(&mut rest).unwrap_or(0) > 0 {}
}

#[test]
fn a_client_that_leaves_while_its_script_runs_does_not_end_it() {
    let server = serve(&[]);
    let mut other = Client::new(&server);
    let mut leaving = Client::new(&server);
    let script = "local t = os.clock() while os.clock() - t < 0.2 do end redis.call('set', KEYS[1], 'done')";
    leaving.send(&["EVAL", script, "1", "key"]);
    other.until_busy();
    drop(leaving);
    other.until_calm();
    assert_eq!((other.ask(&["GET", "key"]), other.line()), ("$4".into(), "done".into()));
}

/// What a script answers, the bytes of a bulk string behind its head.
fn answer(client: &mut Client, command: &str, script: &str) -> String {
    let head = client.ask(&[command, script, "1", "key", "value"]);
    match head.strip_prefix('$') {
        Some("-1") | None => head,
        Some(_) => client.line(),
    }
}

#[test]
fn what_scripts_must_not_do_is_an_error_and_the_server_goes_on() {
    let server = serve(&["--script-memory-limit", "32mb", "--busy-reply-threshold", "0"]);
    let mut client = Client::new(&server);
    let million = 1 << 20;
    let long = format!("return #'{}'", "a".repeat(million));
    let commented = format!("--{}\nreturn 7", " ".repeat(million));
    let nested = format!("return {}1{}", "(".repeat(million), ")".repeat(million));
    let call_itself = "local function f() return 1 + f() end return f()";
    for (script, expected) in [
        (&long[..], ":1048576"),
        (&commented, ":7"),
        (
            &nested,
            "-ERR Error compiling script (new function): user_script:1: chunk has too many syntax levels",
        ),
        ("return string.rep('a', 1e10)", "not enough memory"),
        ("local s = 'a' while true do s = s .. s end", "not enough memory"),
        ("local t = {} while true do t[#t + 1] = {} end", "not enough memory"),
        ("local t = {} while true do t[#t + 1] = #t .. 'x' end", "not enough memory"),
        (call_itself, "stack overflow"),
        ("local function f() return pcall(f) end return tostring(f())", "true"),
        ("return string.gsub('a', '.', function() error('inside') end)", "inside"),
        ("error({})", "-ERR unknown error"),
        ("error({err = 'MINE said'})", "-MINE said"),
        ("error()", "-ERR"),
        ("return 'a\0b'", "a\0b"),
        ("local t = 1 for i = 1, 100 do t = {t} end return #t", ":1"),
        ("local t = 1 for i = 1, 1000 do t = {t} end return cjson.encode(t):sub(1, 3)", "[[["),
        ("local t = 1 for i = 1, 1001 do t = {t} end return cjson.encode(t)", "excessive nesting (1001)"),
        ("return redis.call('NOSUCH')", "-ERR Unknown command called from script"),
        ("return redis.call('BLPOP', KEYS[1], 0)", "*-1"),
        ("return redis.call('XREAD', 'BLOCK', 0, 'STREAMS', KEYS[1], '$')", "*-1"),
        ("return redis.call('SUBSCRIBE', 'c')", "not allowed from script"),
        ("return redis.call('EVAL', 'return 1', 0)", "not allowed from script"),
        ("return redis.call('MULTI')", "not allowed from script"),
        ("return redis.call('WATCH', KEYS[1])", "not allowed from script"),
        ("return redis.call('SHUTDOWN')", "not allowed from script"),
    ] {
        let got = answer(&mut client, "EVAL", script);
        let is_null = expected == "*-1" && got == "$-1";
        assert!(got.contains(expected) || is_null, "{:.80}: {got}", script);
        assert_eq!(client.ask(&["PING"]), "+PONG", "{script:.80}");
    }
    let got = answer(&mut client, "EVAL_RO", "return redis.call('SET', KEYS[1], ARGV[1])");
    assert!(got.contains("-ERR Write commands are not allowed from read-only scripts."), "{got}");
    assert_eq!(client.ask(&["EXISTS", "key"]), ":0");
    // What the scripts took is given back.
    assert_eq!(answer(&mut client, "EVAL", "return #string.rep('a', 10000000)"), ":10000000");
}

/// A field of INFO memory.
fn memory(client: &mut Client, name: &str) -> u64 {
    let header = client.ask(&["INFO", "memory"]);
    let mut left: usize = header.trim_start_matches('$').parse().unwrap();
    let mut value = None;
    while left > 0 {
        let mut line = String::new();
        left -= client.0.read_line(&mut line).unwrap();
        value = value.or_else(|| line.strip_prefix(name)?.trim_start_matches(':').trim_end().parse().ok());
    }
    client.line();
    value.unwrap()
}

#[test]
fn what_scripts_have_left_goes_with_script_flush() {
    let server = serve(&[]);
    let mut client = Client::new(&server);
    // Garbage that waits to be collected.
    let script = "local all = {} for i = 1, 100000 do all[i] = 'text ' .. i end return #all";
    assert_eq!(client.ask(&["EVAL", script, "0"]), ":100000");
    assert!(memory(&mut client, "used_memory_lua") > 1 << 20);
    assert_eq!(client.ask(&["SCRIPT", "FLUSH"]), "+OK");
    // Each answer is an event of the server's; nobody runs a script.
    while memory(&mut client, "used_memory_lua") > 1 << 20 {}
    assert_eq!(client.ask(&["EVAL", "return 7", "0"]), ":7");
}
