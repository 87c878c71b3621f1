//! Owns: tests of one server behind, spoken to without a socket of a client. Does not own: what that server answers.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::testing::{Bench, Delivered, Peer, client, request_of, transaction_of};

fn ok(asked: &str) -> Option<String> {
    Some(if asked.starts_with("PING") { "+PONG\r\n" } else { "+OK\r\n" }.into())
}

/// A script that takes long has SELECT refused. Nothing that was to run there is sent before it is known: it would run
/// in another database once the script is over.
#[test]
fn nothing_goes_before_its_database_is_selected() {
    let refusals = AtomicUsize::new(2);
    let peer = Peer::start(move |asked| match asked {
        "SELECT 3" if refusals.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() => {
            Some("-BUSY no\r\n".into())
        }
        "SELECT 99" => Some("-ERR DB index is out of range\r\n".into()),
        asked => ok(asked),
    });
    let mut options = peer.options(&[("upstream-timeout", "3600000")]);
    options.own_databases_max = 0;
    let mut bench = Bench::new(options);
    bench.ask(1, Kind::Plain, 0, &["SET", "a", "0"]);
    bench.until("an answer", |bench| bench.delivered.0.len() == 1);
    for (client, db, words) in [
        (1, 3, ["SET", "b", "3"]),
        (2, 3, ["SET", "c", "3"]),
        (3, 0, ["SET", "d", "0"]),
        (4, 3, ["SET", "e", "3"]),
    ] {
        bench.ask(client, Kind::Plain, db, &words);
    }
    bench.until("four answers", |bench| bench.delivered.0.len() == 5);
    assert_eq!(bench.delivered.0, ["+OK", "-BUSY no", "-BUSY no", "+OK", "-BUSY no"]);
    bench.ask(1, Kind::Select(99), 0, &["SELECT", "99"]);
    bench.ask(2, Kind::Plain, 3, &["SET", "f", "3"]);
    bench.until("two answers", |bench| bench.delivered.0.len() == 7);
    assert_eq!(bench.delivered.0[5..], ["-ERR DB index is out of range", "+OK"]);
    let selects = ["SELECT 3", "SELECT 0", "SET d 0", "SELECT 3", "SELECT 99", "SELECT 3", "SET f 3"];
    assert_eq!(peer.asked(), [&["SET a 0"], &selects[..]].concat());
}

/// Each of few databases has a connection of its own. Of the others what comes at once is sent database by database:
/// each change costs a round trip.
#[test]
fn what_comes_at_once_is_sent_by_databases() {
    let peer = Peer::start(ok);
    let mut bench = Bench::new(peer.options(&[("upstream-timeout", "3600000")]));
    let mut now_ms = bench.now_ms;
    let mut at_once = |now_ms: u64, dbs: &[u8], answers: usize| {
        bench.now_ms = now_ms;
        bench.turn();
        // Those that were silent are asked whether they are there.
        let is_still = |bench: &Bench| bench.upstream.links.iter().flatten().all(|link| link.asked() == 0);
        bench.until("nothing under way", is_still);
        bench.submit((0..).zip(dbs).map(|(number, &db)| {
            let get = Forward { db, ..Forward::of(client(number), Kind::Plain) };
            (get, request_of(&["GET", &format!("{db}{number}")]))
        }));
        bench.until("all answers", |bench| bench.delivered.0.len() == answers);
        bench.upstream.sockets().count()
    };
    assert_eq!(at_once(now_ms, &[0, 7, 0, 7, 8, 9], 6), 4, "a connection each");
    let mut asked = peer.asked();
    asked.sort();
    let selects = ["SELECT 7", "SELECT 8", "SELECT 9"];
    assert_eq!(asked, [&["GET 00", "GET 02", "GET 71", "GET 73", "GET 84", "GET 95"], &selects[..]].concat());
    assert_eq!(at_once(now_ms, &[0, 4, 0, 5, 4], 11), 4, "there are no more");
    assert_eq!(
        peer.asked()[asked.len()..],
        ["GET 00", "GET 02", "SELECT 4", "GET 41", "GET 44", "SELECT 5", "GET 53"]
    );
    // They need not be selected again; the others are where they were.
    assert_eq!(at_once(now_ms, &[7, 9], 13), 4);
    assert_eq!(peer.asked().iter().filter(|asked| asked.starts_with("SELECT")).count(), 5);
    // One that is not used makes room.
    now_ms += 30_000;
    assert_eq!(at_once(now_ms, &[7, 9], 15), 4);
    now_ms += 40_000;
    assert_eq!(at_once(now_ms, &[4, 7, 9], 18), 4);
    assert_eq!(peer.asked().iter().filter(|asked| *asked == "SELECT 4").count(), 2);
    assert_eq!(at_once(now_ms, &[0, 4, 5, 8], 22), 4);
    assert_eq!(peer.asked().iter().filter(|asked| *asked == "SELECT 4").count(), 2);
}

/// A script may answer what no decoder here takes: that is its client's trouble alone.
#[test]
fn a_reply_that_cannot_be_read_is_one_clients() {
    let deep = [b"*1\r\n".repeat(1_000), b":1\r\n".to_vec()].concat();
    let odd = [String::from_utf8(deep).expect("it is text"), "(abc\r\n".into()];
    let said = odd.clone();
    let peer = Peer::start(move |asked| match asked.split_once(' ') {
        Some(("EVAL", number)) => Some(said[number.parse::<usize>().expect("it is a number")].clone()),
        Some(("FCALL", number)) => {
            Some(format!("+QUEUED\r\n*1\r\n{}", said[number.parse::<usize>().expect("it is a number")]))
        }
        _ if asked == "EXEC" => None,
        _ => ok(asked),
    });
    let mut bench = Bench::new(peer.options(&[("upstream-timeout", "3600000")]));
    for number in 0..odd.len() {
        let number = number.to_string();
        bench.delivered = Delivered::default();
        bench.ask(1, Kind::Plain, 0, &["GET", "a"]);
        bench.ask(2, Kind::Plain, 0, &["EVAL", &number]);
        bench.ask(3, Kind::Plain, 0, &["SET", "a", "1"]);
        bench.until("three answers", |bench| bench.delivered.0.len() == 3);
        assert!(
            bench.delivered.0[1].starts_with("-ERR the server behind the gateway has answered what"),
            "{:?}",
            bench.delivered
        );
        assert_eq!([&bench.delivered.0[0], &bench.delivered.0[2]], ["+OK", "+OK"]);
        // In a transaction it is the answer to each request.
        bench.submit([(Forward::of(client(2), Kind::Exec(1)), transaction_of(&["FCALL", &number]))]);
        bench.ask(3, Kind::Plain, 0, &["SET", "a", "1"]);
        bench.until("two answers", |bench| bench.delivered.0.len() == 5);
        assert!(bench.delivered.0[3].starts_with("*1\r\n-ERR the server behind"), "{:?}", bench.delivered);
        assert_eq!(bench.delivered.0[4], "+OK");
    }
    assert_eq!(bench.upstream.figures.lost.load(std::sync::atomic::Ordering::Relaxed), 0);
}

/// A shared connection on which nothing comes is asked whether its server is there, and given up if it says nothing.
#[test]
fn a_silent_server_is_asked_and_given_up() {
    let silent = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let says = Arc::clone(&silent);
    let peer = Peer::start(move |asked| if says.load(SeqCst) { None } else { ok(asked) });
    let mut bench = Bench::new(peer.options(&[("upstream-timeout", "20000")]));
    bench.ask(1, Kind::Plain, 0, &["SET", "a", "1"]);
    bench.until("an answer", |bench| bench.delivered.0.len() == 1);
    for times in 1..4 {
        bench.now_ms += 10_000;
        bench.turn();
        assert_eq!(peer.asked().iter().filter(|asked| *asked == "PING").count(), times - 1, "not yet");
        bench.now_ms += 200;
        bench.turn();
        peer.wait_for("PING", times);
        bench.until("the answer to PING", |bench| {
            bench.upstream.links[0].as_ref().is_some_and(|link| link.asked() == 0)
        });
    }
    silent.store(true, SeqCst);
    bench.now_ms += 10_200;
    bench.turn();
    peer.wait_for("PING", 4);
    bench.now_ms += 20_200;
    bench.turn();
    assert!(bench.upstream.links[0].is_none(), "it is given up");
}

/// What is refused since too much waits is answered as any other request: behind those before it.
#[test]
fn what_there_is_no_room_for_is_answered_in_its_order() {
    for (on_one, in_all, why) in [(100, 1_000, "on a connection"), (1_000, 100, "in a worker")] {
        let peer = Peer::start(ok);
        let mut options = peer.options(&[("upstream-timeout", "3600000")]);
        (options.waiting_bytes_max, options.kept_bytes_max) = (on_one, in_all);
        let mut bench = Bench::new(options);
        let long = "x".repeat(100);
        bench.ask(1, Kind::Plain, 0, &["SET", "a", "1"]);
        // A tick later: what one brings is counted when it is sent.
        assert!(bench.kept.bytes() > 0);
        let set = |value| (Forward::of(client(1), Kind::Plain), request_of(&["SET", "a", value]));
        bench.submit([&long, "2"].map(set));
        bench.until("all answers", |bench| bench.delivered.0.len() == 3);
        assert_eq!([&bench.delivered.0[0], &bench.delivered.0[2]], ["+OK", "+OK"], "{:?}", bench.delivered);
        assert!(bench.delivered.0[1].contains(why), "{:?}", bench.delivered);
        assert_eq!(peer.asked(), ["SET a 1", "PING", "SET a 2"]);
        assert_eq!(bench.kept.bytes(), 0);
        // Nor may what waits for a connection of its own.
        bench.ask(2, Kind::Watch, 0, &["WATCH", &long]);
        match in_all {
            100 => assert!(bench.delivered.0[3].contains(why), "{:?}", bench.delivered),
            _ => {
                assert!(bench.kept.bytes() > 100);
                bench.until("an answer", |bench| bench.delivered.0.len() == 4 && bench.kept.bytes() == 0);
            }
        }
    }
}

/// Whose EXEC is late may watch keys again before it is answered: the answer is about the connection that it had.
#[test]
fn a_late_exec_leaves_the_next_lease_alone() {
    let (go, waits) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Mutex::new(Some(waits));
    let peer = Peer::start(move |asked| match asked {
        "EXEC" => {
            // The first one stands still until it is told to go on.
            let first = waits.lock().expect("nobody has panicked").take();
            first.into_iter().for_each(|first| _ = first.recv());
            Some("*1\r\n:1\r\n".into())
        }
        "INCR n" => Some("+QUEUED\r\n".into()),
        asked => ok(asked),
    });
    let mut bench = Bench::new(peer.options(&[
        ("upstream-timeout", "3600000"),
        ("command-timeout", "1000"),
        ("leases", "2"),
    ]));
    let exec = |bench: &mut Bench| {
        let exec = Forward { watches: 1, ..Forward::of(client(1), Kind::Exec(1)) };
        bench.submit([(exec, transaction_of(&["INCR", "n"]))]);
    };
    bench.ask(1, Kind::Watch, 0, &["WATCH", "k"]);
    bench.until("an answer", |bench| bench.delivered.0.len() == 1);
    exec(&mut bench);
    peer.wait_for("INCR n", 1);
    bench.now_ms += 2_000;
    bench.until("a late answer", |bench| bench.delivered.0.len() == 2);
    assert!(bench.delivered.0[1].contains("command-timeout"), "{:?}", bench.delivered);
    bench.ask(1, Kind::Watch, 0, &["WATCH", "k"]);
    bench.until("an answer", |bench| bench.delivered.0.len() == 3);
    go.send(()).expect("it waits");
    bench.until("the first one is free", |bench| bench.upstream.leases.free.len() == 1);
    exec(&mut bench);
    bench.until("an answer", |bench| bench.delivered.0.len() == 4);
    assert_eq!(bench.delivered.0[3], "*1\r\n:1");
    bench.until("both are free", |bench| bench.upstream.leases.free.len() == 2);
}
