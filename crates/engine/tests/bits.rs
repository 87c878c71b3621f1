//! Owns the tests of bitmaps, HyperLogLog, dumps and SORT through the engine: one conversation of each, over every
//! protocol. What single commands answer is compared with a real server elsewhere.

mod support;

use support::{ALL, Bench, script};
use weft_engine::reply::Protocol;

#[test]
fn bitmaps() {
    script(&[
        ("SETBIT b 7 1", "0"),
        ("SETBIT b 7 1", "1"),
        ("SETBIT b 20 1", "0"),
        ("STRLEN b", "3"),
        ("GETBIT b 20", "1"),
        ("GETBIT b 4000", "0"),
        ("BITCOUNT b", "2"),
        ("BITCOUNT b 8 -1 BIT", "1"),
        ("BITCOUNT b 1", "1"),
        ("BITCOUNT b -1 -2", "0"),
        ("BITPOS b 1 1", "20"),
        ("BITPOS b 0 0 -1 BIT", "0"),
        ("BITPOS none 0", "0"),
        ("BITPOS none 1", "-1"),
        ("SET full \u{7f}", "OK"),
        ("BITOP NOT inverse full", "1"),
        ("BITCOUNT inverse", "1"),
        ("BITOP OR all b full", "3"),
        ("BITCOUNT all", "8"),
        ("BITOP AND all b none", "3"),
        ("BITCOUNT all", "0"),
        ("BITOP XOR b none", "0"),
        ("EXISTS b", "0"),
        ("SETBIT b 4294967296 1", "-ERR bit offset is not an integer or out of range"),
        ("SETBIT b 1 2", "-ERR bit is not an integer or out of range"),
        ("BITPOS b 2", "-ERR The bit argument must be 1 or 0."),
        ("BITOP NOT b b b", "-ERR BITOP NOT must be called with a single source key."),
        ("RPUSH l a", "1"),
        ("GETBIT l 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BITOP OR b full l", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

#[test]
fn bitfields() {
    script(&[
        ("BITFIELD f SET i5 100 7 GET u4 0", "[0 0]"),
        ("BITFIELD f INCRBY u2 100 1 OVERFLOW SAT INCRBY u2 102 3", "[1 3]"),
        ("BITFIELD f OVERFLOW FAIL INCRBY u2 102 1 GET u2 102", "[nil 3]"),
        ("BITFIELD f SET u8 #1 255 GET i8 #1", "[0 -1]"),
        ("BITFIELD_RO f GET i8 8 GET u63 3", "[-1 287104476244869120]"),
        ("BITFIELD_RO f SET i8 8 1", "-ERR BITFIELD_RO only supports the GET subcommand"),
        ("BITFIELD n OVERFLOW SAT SET i7 0 -9223372036854775808 GET i7 0", "[0 63]"),
        ("BITFIELD f GET u64 0", INVALID_TYPE),
        ("BITFIELD f", "[]"),
    ]);
}

const INVALID_TYPE: &str =
    "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";

#[test]
fn hyperloglogs() {
    script(&[
        ("PFADD h a b c", "1"),
        ("PFADD h a", "0"),
        ("PFCOUNT h", "3"),
        ("PFADD g c d", "1"),
        ("PFCOUNT h g none", "4"),
        ("PFDEBUG TODENSE g", "1"),
        ("PFADD g e", "1"),
        ("PFADD g e", "0"),
        ("PFCOUNT g", "3"),
        ("PFMERGE sum h g", "OK"),
        ("PFCOUNT sum", "5"),
        ("PFDEBUG ENCODING sum", "dense"),
        ("PFADD empty", "1"),
        ("PFCOUNT empty", "0"),
        ("SET text x", "OK"),
        ("PFADD text a", "-WRONGTYPE Key is not a valid HyperLogLog string value."),
        ("SETRANGE h 16 z", "27"),
        ("PFCOUNT h g", "-INVALIDOBJ Corrupted HLL object detected"),
        ("PFSELFTEST", "OK"),
    ]);
}

#[test]
fn sorting() {
    script(&[
        ("RPUSH l 3 1 2", "3"),
        ("SORT l", "[1 2 3]"),
        ("SORT l DESC LIMIT 0 2", "[3 2]"),
        ("SORT l BY nosort DESC", "[2 1 3]"),
        ("MSET w1 30 w2 20 w3 10 n1 one", "OK"),
        ("SORT l BY w* GET # GET n*", "[3 nil 2 nil 1 one]"),
        ("SORT l BY w* STORE out", "3"),
        ("LRANGE out 0 -1", "[3 2 1]"),
        ("SORT_RO l STORE out", "-ERR syntax error"),
        ("RPUSH l x", "4"),
        ("SORT l", "-ERR One or more scores can't be converted into double"),
        ("SORT l ALPHA", "[1 2 3 x]"),
        ("SORT none STORE out", "0"),
        ("EXISTS out", "0"),
        ("SORT w1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

#[test]
fn sorting_needs_rights_to_what_it_names() {
    script(&[
        ("RPUSH a 2 1", "2"),
        ("ACL SETUSER u on nopass +@all ~a*", "OK"),
        ("AUTH u x", "OK"),
        ("SORT a STORE ab", "2"),
        ("SORT a STORE b", "-NOPERM No permissions to access a key"),
        ("SORT a BY w*", "-ERR BY option of SORT denied due to insufficient ACL permissions."),
        ("SORT a GET a*", "-ERR GET option of SORT denied due to insufficient ACL permissions."),
        ("SORT a BY nosort", "[2 1]"),
    ]);
}

#[test]
fn a_waiter_gets_what_sort_stores() {
    let (mut bench, [waiter, client]) = Bench::with_clients([Protocol::Resp2; 2]);
    assert!(bench.run(waiter, "BLPOP out 0").is_empty());
    bench.text(client, "RPUSH l 2 1");
    assert_eq!(bench.text(client, "SORT l STORE out"), "2");
    assert_eq!(bench.take(waiter).iter().map(support::show).collect::<Vec<_>>(), ["[out 1]"]);
}

#[test]
fn dumps() {
    for protocol in ALL {
        let (mut bench, client) = Bench::with(protocol);
        bench.text(client, "RPUSH l a 1 70000");
        bench.text(client, "XADD s 1-1 a 1");
        bench.text(client, "XGROUP CREATE s g 0");
        bench.text(client, "SET t 12");
        for key in [&b"l"[..], b"s", b"t"] {
            let support::Reply::Bulk(payload) = bench.run_args(client, &[b"DUMP", key]).remove(0) else {
                panic!("a payload")
            };
            let mut restore = |target: &[u8], ttl: &[u8], rest: &[&[u8]]| {
                let words = [&[b"RESTORE", target, ttl, &payload], rest].concat();
                support::show(&bench.run_args(client, &words)[0])
            };
            assert_eq!(restore(key, b"0", &[]), "-BUSYKEY Target key name already exists.");
            assert_eq!(restore(key, b"-1", &[b"REPLACE"]), "-ERR Invalid TTL value, must be >= 0");
            assert_eq!(restore(b"copy", b"0", &[b"REPLACE", b"FREQ", b"256"]), FREQUENCY);
            assert_eq!(restore(b"gone", b"1", &[b"ABSTTL"]), "OK");
            assert_eq!(restore(b"copy", b"5000", &[b"REPLACE"]), "OK");
            assert_eq!(bench.text(client, "PTTL copy"), "5000");
            assert_eq!(bench.text(client, "EXISTS gone"), "0");
            let again = bench.run_args(client, &[b"DUMP", b"copy"]).remove(0);
            assert_eq!(again, support::Reply::Bulk(payload.clone()));
            let mut bad = payload.clone();
            bad[1] ^= 1;
            let refused = bench.run_args(client, &[b"RESTORE", b"bad", b"0", &bad]);
            assert_eq!(support::show(&refused[0]), "-ERR DUMP payload version or checksum are wrong");
        }
        assert_eq!(bench.text(client, "DUMP none"), "nil");
    }
}

const FREQUENCY: &str = "-ERR Invalid FREQ value, must be >= 0 and <= 255";
