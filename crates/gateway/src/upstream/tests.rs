//! Owns: tests of one server behind, spoken to without a socket of a client. Does not own: what that server answers.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::testing::{Bench, Peer, Told};

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
    let mut bench = Bench::new(peer.options(&[("upstream-timeout", "3600000")]));
    bench.ask(1, Kind::Plain, 0, &["SET", "a", "0"]);
    bench.until("an answer", |bench| bench.told.0.len() == 1);
    for (client, db, words) in [
        (1, 3, ["SET", "b", "3"]),
        (2, 3, ["SET", "c", "3"]),
        (3, 0, ["SET", "d", "0"]),
        (4, 3, ["SET", "e", "3"]),
    ] {
        bench.ask(client, Kind::Plain, db, &words);
    }
    bench.until("four answers", |bench| bench.told.0.len() == 5);
    assert_eq!(bench.told.0, ["+OK", "-BUSY no", "-BUSY no", "+OK", "-BUSY no"]);
    bench.ask(1, Kind::Select(99), 0, &["SELECT", "99"]);
    bench.ask(2, Kind::Plain, 3, &["SET", "f", "3"]);
    bench.until("two answers", |bench| bench.told.0.len() == 7);
    assert_eq!(bench.told.0[5..], ["-ERR DB index is out of range", "+OK"]);
    let selects = ["SELECT 3", "SELECT 0", "SET d 0", "SELECT 3", "SELECT 99", "SELECT 3", "SET f 3"];
    assert_eq!(peer.asked(), [&["SET a 0"], &selects[..]].concat());
}

/// What comes at once is sent database by database: each change costs a round trip.
#[test]
fn what_comes_at_once_is_sent_by_databases() {
    let peer = Peer::start(ok);
    let mut bench = Bench::new(peer.options(&[("upstream-timeout", "3600000")]));
    let mut forwards = Forwards::default();
    for number in 0..6 {
        weft_protocol::resp::encode::request(
            None,
            &weft_protocol::request::Texts(&["GET", &number.to_string()]),
            &mut forwards.bytes,
        );
        let to = crate::testing::client(number);
        forwards.list.push(Bench::forward(to, Kind::Plain, (number % 2) as u8, forwards.bytes.len()));
    }
    bench.upstream.submit(&mut forwards, &mut bench.told);
    bench.until("all answers", |bench| bench.told.0.len() == 6);
    assert_eq!(peer.asked(), ["GET 0", "GET 2", "GET 4", "SELECT 1", "GET 1", "GET 3", "GET 5"]);
}

/// A script may answer what no decoder here takes: that is its client's trouble alone.
#[test]
fn a_reply_that_cannot_be_read_is_one_clients() {
    let deep = [b"*1\r\n".repeat(1_000), b":1\r\n".to_vec()].concat();
    let odd = [
        String::from_utf8(deep).expect("it is text"),
        format!("-{}\r\n", "x".repeat(100_000)),
        "(abc\r\n".into(),
    ];
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
        bench.told = Told::default();
        bench.ask(1, Kind::Plain, 0, &["GET", "a"]);
        bench.ask(2, Kind::Plain, 0, &["EVAL", &number]);
        bench.ask(3, Kind::Plain, 0, &["SET", "a", "1"]);
        bench.until("three answers", |bench| bench.told.0.len() == 3);
        assert!(
            bench.told.0[1].starts_with("-ERR the server behind the gateway has answered what"),
            "{:?}",
            bench.told
        );
        assert_eq!([&bench.told.0[0], &bench.told.0[2]], ["+OK", "+OK"]);
        // In a transaction it is the answer to each request.
        let mut forwards = Forwards::default();
        for words in [&["MULTI"][..], &["FCALL", &number], &["EXEC"]] {
            weft_protocol::resp::encode::request(
                None,
                &weft_protocol::request::Texts(words),
                &mut forwards.bytes,
            );
        }
        let to = crate::testing::client(2);
        forwards.list.push(Bench::forward(to, Kind::Exec(1), 0, forwards.bytes.len()));
        bench.upstream.submit(&mut forwards, &mut bench.told);
        bench.ask(3, Kind::Plain, 0, &["SET", "a", "1"]);
        bench.until("two answers", |bench| bench.told.0.len() == 5);
        assert!(bench.told.0[3].starts_with("*1\r\n-ERR the server behind"), "{:?}", bench.told);
        assert_eq!(bench.told.0[4], "+OK");
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
    bench.until("an answer", |bench| bench.told.0.len() == 1);
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
