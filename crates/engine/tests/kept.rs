//! Owns: what a script has locked that takes its time, for those on other threads who wait for it. Does not own: what
//! is answered while it runs (`crates/weft/tests/scripts.rs`).

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use support::{Bench, Reply, show};
use weft_engine::reply::Protocol;

/// How long what must come is waited for.
const LONG: Duration = Duration::from_secs(240);
/// When others are told that a script takes its time: long enough for them to have begun to wait.
const THRESHOLD_MS: u64 = 150;

const LOOPS: &str = "while true do end";
const LOOPS_WITH_EVERYTHING: &str = "redis.call('keys', '*') while true do end";

/// Something that the other thread does.
type Work = Box<dyn FnOnce(&mut Bench) -> String + Send>;

/// Two workers: this thread's, on which scripts run, and one of another thread.
struct Two {
    bench: Bench,
    runs: u32,
    kills: u32,
    work: Sender<(bool, Work)>,
    done: Receiver<String>,
}

impl Two {
    fn new() -> Self {
        let mut bench = Bench::team(2).remove(0);
        let engine = bench.engine;
        engine.stats.active_threads.store(2, Relaxed);
        engine.settings.busy_reply_ms.store(THRESHOLD_MS, Relaxed);
        let clock = Arc::clone(&bench.clock);
        let (work, asked) = channel::<(bool, Work)>();
        let (answer, done) = channel();
        // No thread of a scope: where it waits on and on the test is to fail.
        thread::spawn(move || {
            let mut other = Bench::of((engine, clock), 1);
            while let Ok((while_runs, work)) = asked.recv() {
                while while_runs && engine.scripts.running().is_none() {
                    thread::yield_now();
                }
                if answer.send(work(&mut other)).is_err() {
                    break;
                }
            }
        });
        let (runs, kills) = (bench.connect(Protocol::Resp2), bench.connect(Protocol::Resp2));
        Self { bench, runs, kills, work, done }
    }
    /// What the other thread does gives, at any time.
    fn other(&self, work: impl FnOnce(&mut Bench) -> String + Send + 'static) -> String {
        self.work.send((false, Box::new(work))).expect("the other thread is there");
        self.done.recv_timeout(LONG).expect("it has done it")
    }
    /// The same, done once a script runs that ends only when it is killed, and has `key`.
    fn beside(&mut self, script: &str, work: impl FnOnce(&mut Bench) -> String + Send + 'static) -> String {
        self.work.send((true, Box::new(work))).expect("the other thread is there");
        let words = [&b"EVAL"[..], script.as_bytes(), b"1", b"key"];
        assert_eq!(self.bench.run_args(self.runs, &words), [], "it is left in the middle");
        assert!(self.bench.engine.is_busy());
        let done = self.done.recv_timeout(LONG).expect("nobody waits for a script without an end");
        assert_eq!(self.bench.text(self.kills, "SCRIPT KILL"), "OK");
        while !self.bench.go_on() {}
        let killed = self.bench.take(self.runs);
        assert!(
            matches!(&killed[..], [Reply::Error(line)] if line.starts_with(b"ERR Script killed")),
            "{killed:?}"
        );
        done
    }
}

/// What a client's commands answer that are sent together.
fn answers(bench: &mut Bench, client: u32, commands: &[&str]) -> String {
    for command in commands {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        if bench.feed(client, &words) {
            bench.run_fed();
        }
    }
    bench.run_fed();
    let replies = bench.take(client).iter().map(show).collect::<Vec<_>>();
    replies.join(", ").replace(BUSY, "BUSY")
}

const BUSY: &str = "-BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

/// Commands, one behind the other, and what each answers where what it needs is kept.
const ASKED: &[(&[&str], &str)] = &[
    (&["GET key"], "BUSY"),
    (&["SET key 1"], "BUSY"),
    (&["GET key", "GET key", "SET key 1", "SET key 2", "ECHO x"], "BUSY, BUSY, BUSY, BUSY, BUSY"),
    (&["SET key 1", "GET other"], "BUSY, BUSY"),
    (&["MGET other key"], "BUSY"),
    (&["MSET other 1 key 2"], "BUSY"),
    (&["DEL other key"], "BUSY"),
    (&["APPEND key 1"], "BUSY"),
    (&["STRLEN key"], "BUSY"),
    (&["WATCH key"], "BUSY"),
    (&["BLPOP key other 0"], "BUSY"),
    (&["EVAL return{} 1 key"], "BUSY"),
    (&["EVAL return{} 1 key", "EVAL return{} 1 other", "GET key"], "BUSY, BUSY, BUSY"),
    (&["EVAL redis.call('keys','*') 0"], "BUSY"),
    (&["SCAN 0 COUNT 10000"], "BUSY"),
    (&["KEYS *"], "BUSY"),
    (&["FLUSHALL"], "BUSY"),
    (&["SWAPDB 0 1", "GET other"], "BUSY, BUSY"),
    (&["PROGRAM EVAL {\"steps\":[[\"GET\",\"key\"]]}"], "BUSY"),
    (
        &["MULTI", "SET key 1", "EXEC"],
        "OK, QUEUED, -EXECABORT Transaction discarded because of: BUSY Valkey is busy running a script. You can only \
         call SCRIPT KILL or SHUTDOWN NOSAVE.",
    ),
];

#[test]
fn who_waits_for_what_a_script_keeps_is_told_busy() {
    let mut two = Two::new();
    for protocol in [Protocol::Resp2, Protocol::Respb] {
        for script in [LOOPS, LOOPS_WITH_EVERYTHING] {
            for (commands, expected) in ASKED {
                two.other(move |other| {
                    let client = other.connect(protocol);
                    answers(other, client, &["SET key before", "SET other before"])
                });
                let got = two.beside(script, move |other| {
                    let client = other.connect(protocol);
                    answers(other, client, commands)
                });
                // With everything kept MULTI comes late too.
                let late = script == LOOPS_WITH_EVERYTHING && commands[0] == "MULTI" && got.contains("BUSY");
                assert!(got == *expected || late, "{commands:?} beside {script} over {protocol:?}: {got}");
                let after = two.other(move |other| {
                    let client = other.connect(protocol);
                    answers(other, client, &["GET key", "GET other", "DBSIZE"])
                });
                assert_eq!(after, "before, before, 2", "{commands:?} beside {script}");
            }
        }
    }
}

#[test]
fn who_waits_for_a_key_that_is_kept_is_served_behind_the_script() {
    let mut two = Two::new();
    let waits = two.other(|other| {
        let client = other.connect(Protocol::Resp2);
        answers(other, client, &["BLPOP list key 0"]);
        client.to_string()
    });
    let waits: u32 = waits.parse().expect("a number");
    let pushed = two.beside(LOOPS, |other| {
        let client = other.connect(Protocol::Resp2);
        answers(other, client, &["RPUSH list a b"])
    });
    // Where this machine was so slow that it came late.
    assert!(["2", "BUSY"].contains(&pushed.as_str()), "{pushed}");
    let served = two.other(move |other| {
        other.end_tick();
        other.take(waits).iter().map(show).collect()
    });
    assert_eq!(served, if pushed == "BUSY" { "" } else { "[list a]" });
}

#[test]
fn watches_and_waits_end_although_their_keys_are_kept() {
    let mut two = Two::new();
    let connect = |two: &Two, commands: &'static [&str]| {
        let client = two.other(|other| {
            let client = other.connect(Protocol::Resp2);
            answers(other, client, commands);
            client.to_string()
        });
        client.parse::<u32>().expect("a number")
    };
    for end in ["UNWATCH", "DISCARD", "RESET", "disconnect"] {
        let client = connect(&two, &["WATCH key"]);
        let ended = two.beside(LOOPS, move |other| match end {
            "disconnect" => {
                other.disconnect(client);
                "gone".to_owned()
            }
            "DISCARD" => answers(other, client, &["MULTI", end]),
            _ => answers(other, client, &[end]),
        });
        assert!(
            ["gone", "OK", "OK, OK", "RESET", "BUSY", "OK, BUSY"].contains(&ended.as_str()),
            "{end}: {ended}"
        );
        let clients = two.other(move |other| {
            let other_client = other.connect(Protocol::Resp2);
            let list = answers(other, other_client, &["SET key 1", "CLIENT LIST"]);
            if end != "disconnect" {
                // It has no watch that counts, or has kept it with its transaction.
                let after = answers(other, client, &["UNWATCH", "MULTI", "PING", "EXEC"]);
                assert_eq!(after, "OK, OK, QUEUED, [PONG]", "behind {end}");
            }
            list
        });
        assert!(end != "disconnect" || !clients.contains("watch=1"), "{end}: {clients}");
    }
    // A wait whose time comes.
    let client = connect(&two, &["DEL key", "BLPOP key 1"]);
    let ended = two.beside(LOOPS, move |other| {
        // Nothing where this machine was so slow that its time comes when the script has ended.
        other.end_wait(client, weft_engine::blocking::End::Timeout).iter().map(show).collect()
    });
    assert!(["nil", ""].contains(&ended.as_str()), "{ended}");
    if ended.is_empty() {
        two.other(move |other| {
            other.end_wait(client, weft_engine::blocking::End::Timeout).iter().map(show).collect()
        });
    }
    let after = two.other(|other| {
        other.end_tick();
        let client = other.connect(Protocol::Resp2);
        answers(other, client, &["RPUSH key a", "LPOP key", "INFO clients"])
    });
    assert!(after.starts_with("1, a, ") && after.contains("blocked_clients:0"), "{after}");
}
