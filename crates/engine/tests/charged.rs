//! What the clients of a connection hold beside requests and replies, counted together, and what logs keep of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use support::{Bench, show};
use weft_engine::blocking::End;
use weft_engine::reply::Protocol;
use weft_protocol::Reply;

const CHARGED_BYTES_MAX: usize = 256 << 20;
/// A name of one byte.
const NAME: usize = 64 + 1;
const TOO_MUCH: &str =
    "-ERR all that the clients of this connection watch, listen to and wait for takes more than";

/// The last answer.
fn said(bench: &mut Bench, client: u32, command: &str) -> String {
    bench.run(client, command).last().map(show).unwrap_or_default()
}

#[test]
fn what_all_clients_of_a_connection_hold_is_bounded_and_given_back() {
    for protocol in [Protocol::Resp3, Protocol::Respb] {
        let (mut bench, a) = Bench::with(protocol);
        let connection = Arc::clone(&bench.session(a).info.connection);
        let charged = || connection.charged_bytes.load(Relaxed);
        let with_room_for = |bytes: usize| connection.charged_bytes.store(CHARGED_BYTES_MAX - bytes, Relaxed);

        with_room_for(2 * NAME);
        let before = charged();
        assert_eq!(said(&mut bench, a, "WATCH a b"), "OK");
        assert_eq!(charged(), CHARGED_BYTES_MAX);
        assert!(said(&mut bench, a, "WATCH c").starts_with(TOO_MUCH));
        assert_eq!(said(&mut bench, a, "WATCH a"), "OK", "what is watched already takes no more");
        bench.run(a, "UNWATCH");
        assert_eq!(charged(), before);
        for end in ["EXEC", "DISCARD"] {
            assert_eq!(said(&mut bench, a, "WATCH c d"), "OK");
            bench.run(a, "MULTI");
            bench.run(a, end);
            assert_eq!(charged(), before, "{end}");
        }

        // A subscription's name stands in two places.
        with_room_for(4 * NAME);
        let before = charged();
        for kind in ["", "P", "S"] {
            assert!(!said(&mut bench, a, &format!("{kind}SUBSCRIBE a b")).starts_with('-'));
            assert_eq!(charged(), CHARGED_BYTES_MAX);
            assert!(said(&mut bench, a, &format!("{kind}SUBSCRIBE c")).starts_with(TOO_MUCH));
            bench.run(a, &format!("{kind}UNSUBSCRIBE a x"));
            assert_eq!(charged(), CHARGED_BYTES_MAX - 2 * NAME);
            assert!(!said(&mut bench, a, &format!("{kind}SUBSCRIBE c")).starts_with('-'));
            bench.run(a, &format!("{kind}UNSUBSCRIBE"));
            assert_eq!(charged(), before, "{kind}");
        }
        bench.run(a, "SUBSCRIBE a");
        bench.run(a, "RESET");
        assert_eq!(charged(), before);
        with_room_for(2 * NAME);
        let before = charged();
        if protocol == Protocol::Respb {
            // Each channel is a client of its own.
            let b = bench.connect_channel(a, 7);
            assert_eq!(said(&mut bench, b, "WATCH a b"), "OK");
            assert!(said(&mut bench, a, "WATCH c").starts_with(TOO_MUCH));
            bench.disconnect(b);
            assert_eq!(charged(), before);
        }

        // What waits holds its request, and its keys twice.
        assert!(said(&mut bench, a, "BLPOP a 0").starts_with(TOO_MUCH) && !bench.is_waiting(a));
        with_room_for(4096);
        let before = charged();
        assert!(bench.run(a, "BLPOP a 0").is_empty() && bench.is_waiting(a));
        assert!(charged() > before + 2 * NAME, "{}", charged() - before);
        bench.end_wait(a, End::Timeout);
        assert_eq!(charged(), before);
        bench.run(a, "WATCH a");
        bench.run(a, "SUBSCRIBE a");
        bench.disconnect(a);
        assert_eq!(charged(), before);
    }
}

/// Above what all connections may hold together, those that hold much get no more, and those that hold little do.
#[test]
fn what_all_connections_hold_together_is_bounded() {
    const TOGETHER_BYTES_MAX: usize = 1 << 30;
    const SHARE_BYTES: usize = 64 << 10;
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp3; 2]);
    let long = "n".repeat(SHARE_BYTES - 2 * NAME);
    let together = Arc::clone(&bench.engine.charged_bytes);
    assert_eq!(said(&mut bench, a, &format!("WATCH {long}")), "OK");
    let charged = together.load(Relaxed);
    assert_eq!(charged, long.len() + NAME - 1);
    together.store(TOGETHER_BYTES_MAX - NAME, Relaxed);
    assert_eq!(said(&mut bench, b, "WATCH a"), "OK");
    assert_eq!(together.load(Relaxed), TOGETHER_BYTES_MAX);
    // What is left of its share.
    assert_eq!(said(&mut bench, a, "WATCH a"), "OK");
    let refused = "-ERR all that the clients of all connections watch, listen to and wait for takes more than 1073741824";
    assert!(said(&mut bench, a, "WATCH b").starts_with(refused));
    assert!(said(&mut bench, a, "BLPOP b 0").starts_with(refused) && !bench.is_waiting(a));
    assert!(bench.run(b, "BLPOP b 0").is_empty() && bench.is_waiting(b));
    bench.end_wait(b, End::Timeout);
    bench.run(b, "UNWATCH");
    bench.run(a, "UNWATCH");
    assert_eq!(together.load(Relaxed), TOGETHER_BYTES_MAX - NAME - charged, "all is given back");
}

#[test]
fn names_that_clients_give_themselves_are_bounded() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    for (len, fits) in [(1024, true), (1025, false)] {
        let name = "n".repeat(len);
        for command in
            ["CLIENT SETNAME", "CLIENT SETINFO LIB-NAME", "CLIENT SETINFO LIB-VER", "HELLO 3 SETNAME"]
        {
            let reply = bench.one(a, &format!("{command} {name}"));
            assert_eq!(!matches!(&reply, Reply::Error(_)), fits, "{command}: {}", show(&reply));
            assert!(fits || show(&reply).ends_with("cannot be longer than 1024 bytes."), "{}", show(&reply));
        }
    }
}

/// Whoever may do nothing chooses what stands in ACL LOG.
#[test]
fn acl_log_keeps_little_of_long_names() {
    let (mut bench, [a, u]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.text(a, "ACL SETUSER u on nopass +get");
    let (fits, long) = ("f".repeat(1024), "l".repeat(100_000));
    bench.text(u, &format!("AUTH {long} x"));
    bench.text(u, "AUTH u x");
    bench.text(u, &format!("GET {fits}"));
    bench.text(u, &format!("GET {long}"));
    let log = bench.text(a, "ACL LOG");
    let cut = format!(" {}... (98976 more bytes) ", &long[..1024]);
    assert_eq!(log.matches(&cut).count(), 2, "a user and a key");
    assert!(log.contains(&format!(" {fits} ")) && !log.contains(&long[..1025]));
}

/// What was read and is tracked gives way when the names take too much, as it does to `tracking-table-max-keys`.
#[test]
fn names_of_tracked_keys_are_bounded() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp3; 2]);
    assert_eq!(bench.text(a, "CLIENT TRACKING ON"), "OK");
    let each = 48 << 20;
    let mut key = vec![b'k'; each];
    for at in 0..6 {
        key[0] = b'0' + at;
        bench.run_args(a, &[b"GET", &key]);
        assert!(bench.engine.tracking.name_bytes() <= 256 << 20);
    }
    assert_eq!(bench.engine.tracking.key_count(), 5);
    bench.text(b, "FLUSHALL");
    assert_eq!((bench.engine.tracking.key_count(), bench.engine.tracking.name_bytes()), (0, 0));
    // Twice, and it is told of FLUSHALL.
    bench.run(a, "GET k");
    bench.run(a, "GET k");
    assert_eq!(bench.engine.tracking.name_bytes(), 1);
    bench.text(b, "SET k v");
    assert_eq!(bench.engine.tracking.name_bytes(), 0);

    assert_eq!(bench.text(b, "CLIENT TRACKING ON BCAST"), "OK");
    assert_eq!(bench.text(b, "CLIENT TRACKING OFF"), "OK");
    let refused = "-ERR A client has at most 4096 prefixes of at most 1024 bytes";
    for (len, answer) in [(1024, "OK"), (1025, refused)] {
        assert_eq!(bench.text(b, &format!("CLIENT TRACKING ON BCAST PREFIX {}", "p".repeat(len))), answer);
    }
    bench.text(b, "CLIENT TRACKING OFF");
    let prefixes =
        |range: std::ops::Range<u32>| -> String { range.map(|at| format!(" PREFIX {at:05}")).collect() };
    assert_eq!(bench.text(b, &format!("CLIENT TRACKING ON BCAST{}", prefixes(0..4097))), refused);
    assert_eq!(bench.text(b, &format!("CLIENT TRACKING ON BCAST{}", prefixes(0..4096))), "OK");
    assert_eq!(bench.text(b, "CLIENT TRACKING ON BCAST PREFIX 05000"), refused);
}

/// Libraries are beside `maxmemory`: what they take together is bounded, and what is refused changes nothing.
#[test]
fn sources_of_libraries_are_bounded() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    let source = |number: usize, len: usize| {
        let head = format!(
            "#!lua name=l{number:02}\nredis.register_function('f{number}', function() return 1 end) -- "
        );
        [head.as_bytes(), &vec![b'x'; len - head.len()]].concat()
    };
    let load = |bench: &mut Bench, number: usize, len: usize| {
        shown(&bench.run_args(a, &[b"FUNCTION", b"LOAD", b"REPLACE", &source(number, len)]))
    };
    // As many of nearly the longest as there may be, with their names.
    let (each, count) = ((4 << 20) - 64, 64);
    assert_eq!(load(&mut bench, 0, each), "l00");
    let dump = bench.run_args(a, &[b"FUNCTION", b"DUMP"]);
    let [Reply::Bulk(dump)] = &dump[..] else { panic!("no dump") };
    for number in 1..count {
        load(&mut bench, number, each);
    }
    let refused = "ERR Functions may take 268435456 bytes together: delete some first";
    assert_eq!(load(&mut bench, count, each), refused);
    assert_eq!(load(&mut bench, 63, each), "l63", "it replaces as much");
    let bytes = |bench: &mut Bench| {
        let info = bench.text(a, "INFO memory");
        info.lines().find_map(|line| line.strip_prefix("used_memory_functions:")).map(str::to_owned)
    };
    assert_eq!(bytes(&mut bench), Some((count * (each + 3)).to_string()));
    bench.text(a, "FUNCTION DELETE l00");
    load(&mut bench, count, each);
    let restore = |bench: &mut Bench, policy: &[u8]| {
        shown(&bench.run_args(a, &[b"FUNCTION", b"RESTORE", dump, policy]))
    };
    assert_eq!(restore(&mut bench, b"APPEND"), refused);
    assert_eq!(bytes(&mut bench), Some((count * (each + 3)).to_string()));
    assert_eq!(restore(&mut bench, b"FLUSH"), "OK");
    assert_eq!(bytes(&mut bench), Some((each + 3).to_string()));
}

fn shown(replies: &[Reply]) -> String {
    match replies {
        [Reply::Bulk(text) | Reply::Simple(text) | Reply::Error(text)] => {
            String::from_utf8_lossy(text).into()
        }
        other => format!("{other:?}"),
    }
}
