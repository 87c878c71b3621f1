//! The list commands: what they answer, how they wait, which events they tell, on every wire.

mod support;

use support::{ALL, Bench, events_are, script, show};
use weft_engine::blocking::End;
use weft_engine::reply::Protocol;

#[test]
fn ends_and_places() {
    script(&[
        ("LPUSHX l a", "0"),
        ("RPUSH l a b c b", "4"),
        ("LPUSH l x y", "6"),
        ("LRANGE l 0 -1", "[y x a b c b]"),
        ("LINDEX l -1", "b"),
        ("LINDEX l 9", "nil"),
        ("LINDEX nope x", "nil"),
        ("LINDEX l x", "-ERR value is not an integer or out of range"),
        ("LSET l -6 z", "OK"),
        ("LSET l 6 z", "-ERR index out of range"),
        ("LSET nope x z", "-ERR no such key"),
        ("LINSERT l BEFORE b 1", "7"),
        ("LINSERT l AFTER b 2", "8"),
        ("LINSERT l AFTER q 2", "-1"),
        ("LINSERT nope AFTER q 2", "0"),
        ("LRANGE l 0 -1", "[z x a 1 b 2 c b]"),
        ("LPOS l b", "4"),
        ("LPOS l b RANK -1", "7"),
        ("LPOS l b RANK 1 COUNT 0", "[4 7]"),
        ("LPOS l b RANK -1 COUNT 0 MAXLEN 3", "[7]"),
        ("LPOS l q", "nil"),
        ("LPOS l q COUNT 1", "[]"),
        ("LPOS l b COUNT -1", "-ERR COUNT can't be negative"),
        ("LREM l -1 b", "1"),
        ("LREM l 0 q", "0"),
        ("LTRIM l 1 -2", "OK"),
        ("LRANGE l -100 100", "[x a 1 b 2]"),
        ("RPOP l", "2"),
        ("LPOP l 2", "[x a]"),
        ("LPOP l 0", "[]"),
        ("LPOP nope 0", "nil"),
        ("LPOP l -1", "-ERR value is out of range, must be positive"),
        ("LPOP l 1 1", "-ERR wrong number of arguments for 'lpop' command"),
        ("LMOVE l l LEFT RIGHT", "1"),
        ("LMOVE l m LEFT LEFT", "b"),
        ("RPOPLPUSH l m", "1"),
        ("LMOVE l m LEFT UP", "-ERR syntax error"),
        ("LMPOP 2 l m RIGHT COUNT 9", "[m [b 1]]"),
        ("LMPOP 2 l m RIGHT", "nil"),
        ("LMPOP 1 l RIGHT COUNT 0", "-ERR count should be greater than 0"),
        ("LMPOP 1 l RIGHT COUNT 1 COUNT 1", "-ERR syntax error"),
        ("LMPOP 0 l RIGHT", "-ERR numkeys should be greater than 0"),
        ("EXISTS l m", "0"),
        ("RPUSH l a", "1"),
        ("LTRIM l 1 0", "OK"),
        ("TYPE l", "none"),
        ("SET s v", "OK"),
        ("LPUSH s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("RPUSH l a", "1"),
        ("LMOVE l s LEFT LEFT", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LLEN l", "1"),
        ("BLPOP l 0", "[l a]"),
        ("BLPOP l inf", "-ERR timeout is out of range"),
        ("BLPOP l -1", "-ERR timeout is negative"),
        ("BLPOP l x", "-ERR timeout is not a float or out of range"),
    ]);
}

#[test]
fn encodings_are_valkeys() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    bench.text(client, "RPUSH l a");
    assert_eq!(bench.text(client, "OBJECT ENCODING l"), "listpack");
    let long = "x".repeat(8200);
    bench.text(client, &format!("RPUSH l {long}"));
    assert_eq!(bench.text(client, "OBJECT ENCODING l"), "quicklist");
    bench.text(client, "RPOP l");
    assert_eq!(bench.text(client, "OBJECT ENCODING l"), "listpack");
    // What moves within a list is not in it twice.
    let large = "x".repeat(5000);
    for elements in [large.clone(), format!("{large} a")] {
        bench.text(client, "DEL l");
        bench.text(client, &format!("RPUSH l {elements}"));
        assert_eq!(bench.text(client, "LMOVE l l LEFT RIGHT"), large);
        assert_eq!(bench.text(client, "OBJECT ENCODING l"), "listpack");
    }
    // Nor is it left out where a quicklist is looked at whether it has become short.
    bench.text(client, "DEL l");
    bench.text(client, &format!("RPUSH l {large}"));
    bench.text(client, &format!("RPUSH l {large}"));
    bench.text(client, "RPUSH l a");
    bench.text(client, "LPOP l");
    for _ in 0..2 {
        assert_eq!(bench.text(client, "OBJECT ENCODING l"), "quicklist");
        assert_eq!(bench.text(client, "LMOVE l l LEFT RIGHT"), large);
        assert_eq!(bench.text(client, "OBJECT ENCODING l"), "quicklist");
        assert_eq!(bench.text(client, "LMOVE l l LEFT RIGHT"), "a");
    }
    // One element is looked at too: here the limit has been raised since.
    let half = "x".repeat(3000);
    bench.text(client, "CONFIG SET list-max-listpack-size -1");
    for command in ["DEL l", &format!("RPUSH l {half} {half}"), "LPOP l"] {
        bench.text(client, command);
    }
    bench.text(client, "CONFIG SET list-max-listpack-size -5");
    assert_eq!(bench.text(client, "OBJECT ENCODING l"), "quicklist");
    assert_eq!(bench.text(client, "LMOVE l l LEFT RIGHT"), half);
    assert_eq!(bench.text(client, "OBJECT ENCODING l"), "listpack");
}

/// The destination of BLMOVE lies in a shard that the writer has not locked.
#[test]
fn moves_that_wait() {
    for protocol in ALL {
        for destination in ["d1", "d2", "d3", "d4", "d5"] {
            let (mut bench, [waiter, chained, writer]) = Bench::with_clients([protocol; 3]);
            assert!(bench.run(waiter, &format!("BLMOVE s {destination} LEFT RIGHT 0")).is_empty());
            assert!(bench.run(chained, &format!("BLMPOP 0 2 no {destination} LEFT COUNT 5")).is_empty());
            assert_eq!(bench.text(writer, "RPUSH s a b"), "2");
            assert_eq!(show(&bench.take(waiter)[0]), "a", "{protocol:?} {destination}");
            // What one waiter moves serves the next.
            assert_eq!(show(&bench.take(chained)[0]), format!("[{destination} [a]]"));
            assert_eq!(bench.text(writer, "LRANGE s 0 -1"), "[b]");
            bench.text(writer, "DEL s");
            assert!(bench.run(waiter, &format!("BRPOPLPUSH s {destination} 0")).is_empty());
            bench.text(writer, &format!("SET {destination} v"));
            bench.text(writer, "RPUSH s a");
            assert!(show(&bench.take(waiter)[0]).starts_with("-WRONGTYPE"));
            assert_eq!(bench.text(writer, "LRANGE s 0 -1"), "[a]");
            assert!(bench.run(waiter, "BLMOVE x y LEFT LEFT 0.5").is_empty());
            assert_eq!(show(&bench.end_wait(waiter, End::Timeout)[0]), "nil");
            assert!(bench.engine.waits.is_empty());
        }
    }
}

/// Valkey leaves this client waiting as long as there is a list, also when more is pushed.
#[test]
fn a_list_that_sort_stores_over_another_type_serves_who_waits() {
    for protocol in ALL {
        for (wait, expected) in [
            ("BLPOP k 0", "[k 1]"),
            ("BLMOVE k d LEFT LEFT 0", "1"),
            ("BLMPOP 0 1 k LEFT COUNT 5", "[k [1 2]]"),
            ("BRPOPLPUSH k d 0", "2"),
        ] {
            for before in [None, Some("SET k v"), Some("SADD k v")] {
                let (mut bench, [waiter, writer]) = Bench::with_clients([protocol; 2]);
                bench.text(writer, "RPUSH s 2 1");
                assert!(bench.run(waiter, wait).is_empty());
                if let Some(before) = before {
                    bench.text(writer, before);
                }
                assert_eq!(bench.text(writer, "SORT s STORE k"), "2");
                let got: Vec<_> = bench.take(waiter).iter().map(show).collect();
                assert_eq!(got, [expected], "{protocol:?} {wait} {before:?}");
            }
        }
    }
}

/// Keys are served in the order in which a transaction wrote to them.
#[test]
fn a_transaction_serves_in_the_order_of_its_writes() {
    let mut bench = Bench::new();
    let clients: Vec<u32> = (0..4).map(|_| bench.connect(Protocol::Resp2)).collect();
    bench.run(clients[0], "BLMOVE a log LEFT RIGHT 0");
    bench.run(clients[1], "BLMOVE b log LEFT RIGHT 0");
    for command in ["MULTI", "RPUSH a 1", "RPUSH b 2", "EXEC"] {
        bench.run(clients[2], command);
    }
    assert_eq!(bench.text(clients[3], "LRANGE log 0 -1"), "[1 2]");
}

#[test]
fn nobody_waits_inside_a_transaction() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    bench.text(client, "MULTI");
    for command in ["BLPOP a 0", "BLMOVE a b LEFT LEFT 0", "BLMPOP 0 1 a LEFT", "WAIT 3 0"] {
        assert_eq!(bench.text(client, command), "QUEUED");
    }
    assert_eq!(bench.text(client, "EXEC"), "[nil nil nil 0]");
}

#[test]
fn events_are_valkeys() {
    events_are(&[
        ("RPUSH l a b c d", "rpush:l"),
        ("LPUSHX nope a", ""),
        ("LMOVE l m LEFT RIGHT", "rpush:m lpop:l"),
        ("RPOPLPUSH m m", "lpush:m rpop:m"),
        ("RPOPLPUSH m l", "lpush:l rpop:m del:m"),
        ("LINSERT l BEFORE b x", "linsert:l"),
        ("LSET l 0 y", "lset:l"),
        ("LREM l 0 y", "lrem:l"),
        ("LTRIM l 0 -2", "ltrim:l"),
        ("LMPOP 1 l LEFT COUNT 2", "lpop:l"),
        ("BRPOP l 0", "rpop:l del:l"),
        ("RPUSH l a", "rpush:l"),
        ("LTRIM l 1 0", "ltrim:l del:l"),
    ]);
}
