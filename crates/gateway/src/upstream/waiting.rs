//! Owns: tests of how long a client waits for a server that says nothing, over a connection of its own and for one, and
//! of what waits for one at once. Does not own: what is counted of the time (`crate::blocks`).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use weft_engine::forward::{BlockTime, Forward, Kind};

use crate::testing::{Bench, Peer, client, transaction_of};

const LIMIT_MS: u64 = 1_000;

/// Before a server that says nothing to what ends so, and to EXEC behind it.
fn before(more: &[(&str, &str)]) -> (Bench, Peer) {
    let is_silent = AtomicBool::new(false);
    let peer = Peer::start(move |asked| match asked {
        "INCR n" => Some("+QUEUED\r\n".into()),
        // It finds nothing when it is tried.
        "BLPOP l 5" => Some("+QUEUED\r\n".into()),
        "EXEC" if is_silent.load(Relaxed) => None,
        "EXEC" => Some("*1\r\n*-1\r\n".into()),
        _ if asked.ends_with(" silent") => {
            is_silent.store(true, Relaxed);
            None
        }
        _ if asked.starts_with("BLPOP") => None,
        _ => Some("+OK\r\n".into()),
    });
    let flags = [&[("upstream-timeout", "3600000"), ("command-timeout", "1000")], more].concat();
    (Bench::new(peer.options(&flags)), peer)
}
fn ask(bench: &mut Bench, kind: Kind, watches: u32, words: &[&str]) {
    bench.ask_so(Forward { watches, ..Forward::of(client(1), kind) }, words);
}
/// It is answered when its time is over, and not before.
fn is_late_behind(bench: &mut Bench, peer: &Peer, asked: &str, time_ms: u64) -> String {
    peer.wait_for(asked, 1);
    bench.now_ms += time_ms - 1;
    bench.turn();
    assert!(bench.delivered.0.is_empty(), "{asked}: {:?}", bench.delivered);
    // It is looked for every now and then.
    bench.now_ms += 200;
    bench.answer()
}

#[test]
fn who_watches_keys_waits_no_longer_than_others() {
    let all: [(fn() -> Kind, _); 3] = [
        (|| Kind::Plain, ["GET", "silent"]),
        (|| Kind::Watch, ["WATCH", "silent"]),
        (|| Kind::Alone, ["SCRIPT", "silent"]),
    ];
    for (kind, words) in all {
        for is_first in [true, false] {
            let (mut bench, peer) = before(&[]);
            if !is_first {
                ask(&mut bench, Kind::Watch, 0, &["WATCH", "k"]);
                assert_eq!(bench.answer(), "+OK");
            }
            ask(&mut bench, kind(), u32::from(!is_first), &words);
            let asked = words.join(" ");
            bench.until("it is asked", |_| peer.asked().contains(&asked));
            let told = is_late_behind(&mut bench, &peer, &asked, LIMIT_MS);
            assert!(told.contains("command-timeout"), "{words:?}: {told}");
        }
    }
}

#[test]
fn an_exec_waits_no_longer_than_others() {
    let (mut bench, peer) = before(&[]);
    ask(&mut bench, Kind::Watch, 0, &["WATCH", "k"]);
    assert_eq!(bench.answer(), "+OK");
    let exec = Forward { watches: 1, ..Forward::of(client(1), Kind::Exec(1)) };
    bench.submit([(exec, transaction_of(&["GET", "silent"]))]);
    bench.until("it is asked", |_| peer.asked().contains(&"GET silent".to_string()));
    assert!(is_late_behind(&mut bench, &peer, "GET silent", LIMIT_MS).contains("command-timeout"));
}

/// Its own time, what has passed of it elsewhere included, and the limit.
#[test]
fn what_blocks_has_its_own_time_and_the_limit() {
    for (limit, limit_ms) in [("1000", 1_000), ("0", 3_600_000)] {
        let (mut bench, peer) = before(&[("command-timeout", limit)]);
        let time = BlockTime { argument: 2, ms: 5_000, in_seconds: true };
        ask(&mut bench, Kind::Blocks(time), 0, &["BLPOP", "l", "5"]);
        bench.until("a try", |bench| {
            bench.upstream.leases.waiting.len() == 1 || bench.upstream.leases.count == 1
        });
        // While a connection is made for it time goes on.
        bench.now_ms += 2_000;
        let asked = "BLPOP l 3.000";
        bench.until("a connection", |_| peer.asked().iter().any(|one| one == asked));
        let told = is_late_behind(&mut bench, &peer, asked, 3_000 + limit_ms);
        assert!(told.contains("Doubt") && told.contains("time to block"), "{told}");
        assert_eq!(
            bench.upstream.leases.count, 0,
            "what it would bring is nobody's: its connection has ended"
        );
    }
}

#[test]
fn who_waits_for_a_connection_waits_no_longer_than_his_time() {
    let blocks = |ms| Kind::Blocks(BlockTime { argument: 2, ms, in_seconds: true });
    for (kind, time_ms) in [(Kind::Watch, LIMIT_MS), (blocks(3_000), 3_000)] {
        let (mut bench, peer) = before(&[("leases", "1")]);
        bench.ask_so(Forward::of(client(2), Kind::Watch), &["WATCH", "k"]);
        assert_eq!(bench.answer(), "+OK");
        let is_watch = matches!(kind, Kind::Watch);
        ask(&mut bench, kind, 0, if is_watch { &["WATCH", "k"] } else { &["BLPOP", "l", "5"] });
        bench.until("a wait", |bench| bench.upstream.leases.waiting.len() == 1);
        let told = is_late_behind(&mut bench, &peer, "WATCH k", time_ms);
        assert!(told.contains(&format!("came free in {time_ms} ms")), "{told}");
    }
}

/// Behind the last entry the second time would be behind another one.
#[test]
fn what_reads_behind_the_last_entry_is_asked_once() {
    for (words, is_tried) in [
        (["XREAD", "BLOCK", "0", "STREAMS", "s", "$"], false),
        (["xread", "block", "0", "streams", "s", "$"], false),
        (["XREAD", "BLOCK", "0", "STREAMS", "s", "0-1"], true),
    ] {
        let peer = Peer::start(|asked| {
            Some(match asked {
                "MULTI" => "+OK\r\n".into(),
                "EXEC" => "*1\r\n$1\r\nv\r\n".into(),
                _ if asked.contains("0-1") => "+QUEUED\r\n".into(),
                _ => "$1\r\nv\r\n".into(),
            })
        });
        let mut bench = Bench::new(peer.options(&[]));
        ask(&mut bench, Kind::Blocks(BlockTime { argument: 2, ms: 0, in_seconds: false }), 0, &words);
        bench.until("it is answered", |bench| !bench.delivered.0.is_empty());
        assert_eq!(peer.asked().contains(&"MULTI".into()), is_tried, "{words:?}");
    }
}
