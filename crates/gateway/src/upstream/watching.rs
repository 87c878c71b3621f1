//! Owns: tests of EXEC behind WATCH: it does nothing unless all that its client watches is watched over the connection
//! that it would run over. Does not own: what a server does about keys that are watched.

use std::sync::mpsc::channel;

use weft_engine::blocking::End;
use weft_engine::forward::{BlockTime, Forward, Kind};

use crate::testing::{Bench, CLOSES, Peer, client, transaction_of};

/// Before a server that closes the connection when it is asked for `cut`.
fn before(more: &[(&str, &str)]) -> (Bench, Peer) {
    let peer = Peer::start(|asked| {
        Some(match asked {
            "INCR n" => "+QUEUED\r\n".into(),
            "EXEC" => "*1\r\n:1\r\n".into(),
            _ if asked.ends_with(" cut") => CLOSES.into(),
            _ => "+OK\r\n".into(),
        })
    });
    let options = peer.options(&[&[("upstream-timeout", "3600000")], more].concat());
    (Bench::new(options), peer)
}

/// A client that has sent so many WATCHes asks for something.
fn ask(bench: &mut Bench, kind: Kind, watches: u32, words: &[&str]) -> String {
    bench.ask_so(Forward { watches, ..Forward::of(client(1), kind) }, words);
    bench.answer()
}
fn watch(bench: &mut Bench, watches: u32, key: &str) -> String {
    ask(bench, Kind::Watch, watches, &["WATCH", key])
}
fn exec(bench: &mut Bench, watches: u32) {
    let exec = Forward { watches, ..Forward::of(client(1), Kind::Exec(1)) };
    bench.submit([(exec, transaction_of(&["INCR", "n"]))]);
}
/// EXEC does nothing, and the next one, behind keys that are watched again, does all.
fn is_null(bench: &mut Bench, peer: &Peer, watches: u32) {
    let ran = |peer: &Peer| peer.asked().iter().filter(|asked| *asked == "EXEC").count();
    let before = ran(peer);
    exec(bench, watches);
    assert_eq!(bench.answer(), "Null");
    assert_eq!(watch(bench, 0, "again"), "+OK");
    exec(bench, 1);
    assert_eq!(bench.answer(), "*1\r\n:1");
    assert_eq!(ran(peer), before + 1);
}

#[test]
fn keys_are_watched_to_exec() {
    let (mut bench, peer) = before(&[]);
    for watches in 0..3 {
        assert_eq!(watch(&mut bench, watches, "k"), "+OK");
    }
    exec(&mut bench, 3);
    assert_eq!(bench.answer(), "*1\r\n:1");
    assert_eq!(peer.asked(), ["WATCH k", "WATCH k", "WATCH k", "MULTI", "INCR n", "EXEC"]);
}

#[test]
fn a_connection_that_is_lost_takes_what_is_watched_with_it() {
    // However often is watched behind it.
    for more in 0..3 {
        let (mut bench, peer) = before(&[]);
        assert_eq!(watch(&mut bench, 0, "k"), "+OK");
        assert!(ask(&mut bench, Kind::Plain, 1, &["GET", "cut"]).contains("was lost"));
        for watches in 1..=more {
            assert_eq!(watch(&mut bench, watches, "k"), "+OK");
        }
        is_null(&mut bench, &peer, 1 + more);
    }
}

#[test]
fn a_connection_that_is_lost_under_watch_watches_nothing() {
    for before_it in 0..2 {
        let (mut bench, peer) = before(&[]);
        for watches in 0..before_it {
            assert_eq!(watch(&mut bench, watches, "k"), "+OK");
        }
        assert!(watch(&mut bench, before_it, "cut").contains("was lost"));
        assert_eq!(watch(&mut bench, before_it + 1, "k"), "+OK");
        is_null(&mut bench, &peer, before_it + 2);
    }
}

/// Nobody can be asked there to let it go: its connection ends, and what was watched over it.
#[test]
fn who_is_woken_without_his_server_watches_nothing() {
    let (mut bench, peer) = before(&[]);
    assert_eq!(watch(&mut bench, 0, "k"), "+OK");
    // Its server says nothing to this one.
    bench.ask_so(
        Forward { watches: 1, ..Forward::of(client(1), Kind::Blocks(BlockTime::default())) },
        &["BLPOP", "l", "0"],
    );
    let now_ms = bench.now_ms;
    bench.upstream.lanes.iter_mut().for_each(|lane| lane.breaker.fails(now_ms, "no"));
    bench.upstream.unblock(client(1), End::Timeout, &mut bench.delivered);
    assert_eq!(bench.answer(), "Null");
    bench.upstream.lanes.iter_mut().for_each(|lane| lane.breaker.works());
    assert_eq!(watch(&mut bench, 1, "k"), "+OK");
    is_null(&mut bench, &peer, 2);
}

/// An EXEC that is late keeps its connection, over which its client watches nothing any more.
#[test]
fn an_exec_that_is_late_watches_nothing_for_the_next_one() {
    let (go, waits) = channel::<()>();
    let waits = std::sync::Mutex::new(Some(waits));
    let peer = Peer::start(move |asked| {
        Some(match asked {
            "EXEC" => {
                let first = waits.lock().expect("nobody has panicked").take();
                first.into_iter().for_each(|first| _ = first.recv());
                "*1\r\n:1\r\n".into()
            }
            "INCR n" => "+QUEUED\r\n".into(),
            _ => "+OK\r\n".into(),
        })
    });
    let flags = [("upstream-timeout", "3000"), ("command-timeout", "1000"), ("leases", "1")];
    let mut bench = Bench::new(peer.options(&flags));
    assert_eq!(watch(&mut bench, 0, "k"), "+OK");
    exec(&mut bench, 1);
    peer.wait_for("INCR n", 1);
    bench.now_ms += 1_100;
    assert!(bench.answer().contains("command-timeout"));
    bench.ask_so(Forward::of(client(1), Kind::Watch), &["WATCH", "k"]);
    assert!(bench.delivered.0.is_empty(), "the one connection is not free");
    bench.now_ms += 1_100;
    assert!(bench.answer().contains("came free"), "it has waited for too long");
    exec(&mut bench, 1);
    assert_eq!(bench.answer(), "Null");
    go.send(()).expect("it waits");
    peer.wait_for("EXEC", 1);
    is_null(&mut bench, &peer, 1);
}
