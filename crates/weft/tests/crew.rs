//! Workers that change their thread while clients are served: replies, waiting clients, subscribers, the end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::io::Read as _;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use common::client::Client;
use common::resp;
use common::servers::{LONG, Server};

/// Clients that are busy at once.
const CLIENTS: usize = 12;
/// How often workers are spread over all threads and gathered again.
const TURNS: usize = 3;

/// Messages from one worker to another, and much longer than they take.
const MESSAGES: usize = 40;
const AT_ONCE: Duration = Duration::from_secs(5);

/// A large value, and how often it is asked for.
const LARGE: usize = 1 << 20;
const LARGES: usize = 16;

impl Client {
    fn is_told(&mut self, words: &[&str], expected: &str) {
        self.send(words);
        self.expect(expected);
    }
    /// A field of INFO's part about the server.
    fn info(&mut self, field: &str) -> usize {
        let text = self.bulks(&["INFO", "server"]).remove(0);
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("no {field} in {text}")).parse().unwrap()
    }
    /// Asks until so many threads drive workers. Between two questions the server has nothing to do for this client.
    fn await_threads(&mut self, threads: usize) {
        let began = Instant::now();
        while self.info("worker_threads_active") != threads {
            assert!(began.elapsed() < LONG, "there are not {threads} threads at work");
            self.is_told(&["BLPOP", "nothing", "0.1"], "*-1\r\n");
        }
    }
}

/// Ends the test when a thread of it fails: the others would wait for it for ever.
struct EndsAll;

impl Drop for EndsAll {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::exit(101);
        }
    }
}

/// Writes and reads what nobody else does, many at a time.
fn keep_busy(client: &mut Client, name: usize, turn: usize) {
    let mut requests = Vec::new();
    let mut replies = String::new();
    for number in 0..50 {
        let (key, value) = (format!("key:{name}:{number}"), format!("value {turn}"));
        requests.extend(resp(&["SET", &key, &value]));
        requests.extend(resp(&["GET", &key]));
        replies.push_str(&format!("+OK\r\n${}\r\n{value}\r\n", value.len()));
    }
    client.write(&requests);
    client.expect(&replies);
}

#[test]
fn workers_change_threads_and_clients_do_not_notice() {
    let server = Server::weft(&["--threads", "4"]);
    let mut asks = Client::new(&server);
    let mut waits = Client::new(&server);
    let mut hears = Client::new(&server);
    hears.is_told(&["SUBSCRIBE", "news"], "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    let _ends = EndsAll;
    let spread = AtomicBool::new(false);
    let phase = Barrier::new(CLIENTS + 1);
    let mut longest = Duration::ZERO;
    // More than sockets hold is owed to a client that reads nothing while workers are moved.
    let mut slow = Client::new(&server);
    slow.is_told(&["SET", "large", &"x".repeat(LARGE)], "+OK\r\n");
    slow.write(&resp(&["GET", "large"]).repeat(LARGES));
    thread::scope(|scope| {
        for name in 0..CLIENTS {
            let mut client = Client::new(&server);
            let (spread, phase) = (&spread, &phase);
            scope.spawn(move || {
                let _ends = EndsAll;
                for turn in 0..TURNS {
                    phase.wait();
                    // At least once while all threads have their workers.
                    while !spread.load(SeqCst) {
                        keep_busy(&mut client, name, turn);
                    }
                    keep_busy(&mut client, name, turn);
                    phase.wait();
                    phase.wait();
                    // One thread drives all.
                    keep_busy(&mut client, name, turn);
                }
            });
        }
        for turn in 0..TURNS {
            waits.send(&["BLPOP", "list", "0"]);
            spread.store(false, SeqCst);
            phase.wait();
            asks.is_told(&["CONFIG", "SET", "threads-always-active", "yes"], "+OK\r\n");
            asks.await_threads(4);
            spread.store(true, SeqCst);
            phase.wait();
            asks.is_told(&["LPUSH", "list", "a"], ":1\r\n");
            waits.expect("*2\r\n$4\r\nlist\r\n$1\r\na\r\n");
            asks.is_told(&["PUBLISH", "news", "spread"], ":1\r\n");
            hears.expect("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$6\r\nspread\r\n");
            waits.send(&["BLPOP", "list", "0"]);
            asks.is_told(&["CONFIG", "SET", "threads-always-active", "no"], "+OK\r\n");
            asks.await_threads(1);
            asks.is_told(&["LPUSH", "list", "b"], ":1\r\n");
            waits.expect("*2\r\n$4\r\nlist\r\n$1\r\nb\r\n");
            let began = Instant::now();
            for _ in 0..MESSAGES {
                asks.is_told(&["PUBLISH", "news", "one"], ":1\r\n");
                hears.expect("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$3\r\none\r\n");
            }
            longest = longest.max(began.elapsed());
            phase.wait();
            assert!(asks.info("worker_thread_handovers") >= 6 * (turn + 1));
        }
    });
    slow.expect(&format!("${LARGE}\r\n{}\r\n", "x".repeat(LARGE)).repeat(LARGES));
    // A worker that is not woken sees its messages when it looks for other reasons, once a second.
    assert!(longest < AT_ONCE, "messages to another worker come late: {longest:?}");
}

#[test]
fn a_busy_thread_gives_workers_away_and_gets_them_back() {
    let server = Server::weft(&["--threads", "2"]);
    let mut asks = Client::new(&server);
    assert_eq!(asks.info("worker_threads_active"), 1);
    let numbers: Vec<String> = (0..20_000).map(|number: u64| (number * 7919 % 20_011).to_string()).collect();
    let mut push = vec!["RPUSH", "list"];
    push.extend(numbers.iter().map(String::as_str));
    asks.is_told(&push, ":20000\r\n");
    let _ends = EndsAll;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sorts = Client::new(&server);
            while !done.load(SeqCst) {
                sorts.is_told(&["SORT", "list", "STORE", "sorted"], ":20000\r\n");
            }
        });
        asks.await_threads(2);
        done.store(true, SeqCst);
    });
    asks.await_threads(1);
}

#[test]
fn a_server_stops_however_its_workers_are_spread() {
    for always in ["yes", "no"] {
        let mut server = Server::weft(&["--threads", "3", "--threads-always-active", always]);
        let mut clients: Vec<_> = (0..6).map(|_| Client::new(&server)).collect();
        for client in &mut clients {
            client.is_told(&["PING"], "+PONG\r\n");
        }
        assert_eq!(clients[0].info("worker_threads_active"), if always == "yes" { 3 } else { 1 });
        clients[0].send(&["SHUTDOWN"]);
        for client in &mut clients {
            assert_eq!(client.0.read(&mut [0; 16]).unwrap(), 0, "the connection is closed");
        }
        assert!(server.exit().success());
    }
}

#[test]
fn a_server_stops_while_workers_are_handed_over() {
    for turn in 0..8 {
        let mut server = Server::weft(&["--threads", "4"]);
        let mut clients: Vec<_> = (0..8).map(|_| Client::new(&server)).collect();
        for client in &mut clients {
            client.is_told(&["PING"], "+PONG\r\n");
        }
        for way in ["yes", "no"].iter().cycle().take(turn + 1) {
            clients[0].is_told(&["CONFIG", "SET", "threads-always-active", way], "+OK\r\n");
        }
        clients[turn].send(&["SHUTDOWN"]);
        for client in &mut clients {
            assert_eq!(client.0.read(&mut [0; 16]).unwrap(), 0, "the connection is closed");
        }
        assert!(server.exit().success());
    }
}
