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
