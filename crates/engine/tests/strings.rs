//! The string commands and those for keys of any type: what they answer and leave behind, on every wire.

mod support;

use support::{ALL, Bench, events_are, script, show};
use weft_engine::blocking::End;
use weft_engine::reply::Protocol;

#[test]
fn set_with_options() {
    script(&[
        ("SET k v NX", "OK"),
        ("SET k w NX", "nil"),
        ("SET k w XX GET", "v"),
        ("SET nope w XX", "nil"),
        ("SET nope w XX GET", "nil"),
        ("SET k x IFEQ v", "nil"),
        ("SET k x IFEQ w GET", "w"),
        ("SET k y EX 10", "OK"),
        ("TTL k", "10"),
        ("SET k z KEEPTTL", "OK"),
        ("TTL k", "10"),
        ("SET k z", "OK"),
        ("TTL k", "-1"),
        ("SET k z PXAT 1700000005000", "OK"),
        ("PTTL k", "5000"),
        ("SET k z EXAT 1", "OK"),
        ("EXISTS k", "0"),
        ("SET k z EX 0", "-ERR invalid expire time in 'set' command"),
        ("SET k z NX XX", "-ERR syntax error"),
        ("LPUSH l 1", "1"),
        ("SET l 1 GET", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SET l 1", "OK"),
        ("TYPE l", "string"),
        ("SETEX k 5 v", "OK"),
        ("PSETEX k 0 v", "-ERR invalid expire time in 'psetex' command"),
        ("GETEX k PERSIST", "v"),
        ("TTL k", "-1"),
        ("GETEX k EX 7", "v"),
        ("TTL k", "7"),
        ("GETEX k PXAT 1", "v"),
        ("GET k", "nil"),
        ("MSETEX 2 a 1 b 2 NX EX 9", "1"),
        ("MSETEX 1 a 1 NX", "0"),
        ("TTL b", "9"),
        ("MSETEX 3 a 1", "-ERR syntax error"),
        ("MSETEX 0 a 1", "-ERR invalid numkeys value or out of range"),
    ]);
}

#[test]
fn numbers() {
    script(&[
        ("SET f 3.0e3", "OK"),
        ("INCRBYFLOAT f 200", "3200"),
        ("OBJECT ENCODING f", "embstr"),
        ("SET f 0.1", "OK"),
        ("INCRBYFLOAT f 0.2", "0.3"),
        ("INCRBYFLOAT f inf", "-ERR increment would produce NaN or Infinity"),
        ("INCRBYFLOAT f x", "-ERR value is not a valid float"),
        ("INCR f", "-ERR value is not an integer or out of range"),
        ("INCR n", "1"),
        ("INCRBY n 9223372036854775807", "-ERR increment or decrement would overflow"),
        ("DECRBY n -9223372036854775808", "-ERR decrement would overflow"),
        ("DECRBY n 3", "-2"),
        ("APPEND n 5", "3"),
        ("GET n", "-25"),
        ("OBJECT ENCODING n", "raw"),
        ("INCR n", "-24"),
        ("OBJECT ENCODING n", "int"),
    ]);
}

#[test]
fn parts_of_strings() {
    script(&[
        ("SETRANGE s 3 abc", "6"),
        ("STRLEN s", "6"),
        ("SETRANGE s -1 a", "-ERR offset is out of range"),
        ("SETRANGE s 536870911 ab", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
        ("GETRANGE s 3 -1", "abc"),
        ("SUBSTR s 3 3", "a"),
        ("SET a ohmytext", "OK"),
        ("SET b mynewtext", "OK"),
        ("LCS a b", "mytext"),
        ("LCS a b LEN", "6"),
        ("LCS a b IDX LEN", "-ERR If you want both the length and indexes, please just use IDX."),
    ]);
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    bench.text(client, "MSET a ohmytext b mynewtext");
    assert_eq!(
        bench.text(client, "LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN"),
        "{matches:[[[4 7] [5 8] 4]] len:6}"
    );
}

#[test]
fn keys_of_any_type() {
    script(&[
        ("SET a 1", "OK"),
        ("EXISTS a a b", "2"),
        ("EXPIRE a 10 XX", "0"),
        ("EXPIRE a 10 NX", "1"),
        ("EXPIRE a 5 GT", "0"),
        ("EXPIRE a 5 LT", "1"),
        ("EXPIRE a 5 GT LT", "-ERR GT and LT options at the same time are not compatible"),
        ("EXPIRE a 5 FOO", "-ERR Unsupported option FOO"),
        ("RENAME a b", "OK"),
        ("TTL b", "5"),
        ("PERSIST b", "1"),
        ("RENAME a b", "-ERR no such key"),
        ("COPY b c", "1"),
        ("COPY b c", "0"),
        ("COPY b c REPLACE DB 1", "1"),
        ("COPY b b", "-ERR source and destination objects are the same"),
        ("MOVE c 1", "0"),
        ("MOVE b 1", "1"),
        ("MOVE b 99", "-ERR DB index is out of range"),
        ("DBSIZE", "1"),
        ("SWAPDB 0 1", "OK"),
        ("DBSIZE", "2"),
        ("RANDOMKEY", "b"),
        ("KEYS [a-b]", "[b]"),
        ("SCAN 0 COUNT 100 MATCH b", "[0 [b]]"),
        ("SCAN 0 TYPE nope", "-ERR unknown type name 'nope'"),
        ("SCAN x", "-ERR invalid cursor"),
        ("EXPIRE b -1", "1"),
        ("UNLINK b c", "1"),
        ("FLUSHALL", "OK"),
        ("DBSIZE", "0"),
        ("WAIT 0 0", "0"),
        ("WAITAOF 0 0 0", "[0 0]"),
    ]);
}

#[test]
fn walks_run_inside_transactions() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    bench.text(client, "MULTI");
    for command in
        ["SET k 1", "SCAN 0 COUNT 1000", "RANDOMKEY", "KEYS *", "FLUSHDB", "DBSIZE", "SWAPDB 0 1", "SET k 2"]
    {
        assert_eq!(bench.text(client, command), "QUEUED");
    }
    let reply = bench.text(client, "EXEC");
    assert!(reply.ends_with("k [k] OK 0 OK OK]"), "{reply}");
}

#[test]
fn what_arrives_by_swapdb_and_move_serves_waiters() {
    for protocol in ALL {
        let (mut bench, [waiter, writer]) = Bench::with_clients([protocol; 2]);
        assert!(bench.run(waiter, "BLPOP l 0").is_empty());
        // A string under the key is not what it waits for.
        bench.text(writer, "SET l v");
        assert!(bench.take(waiter).is_empty());
        bench.text(writer, "DEL l");
        bench.text(writer, "SELECT 1");
        bench.text(writer, "RPUSH l a b");
        assert_eq!(bench.text(writer, "SWAPDB 0 1"), "OK");
        assert_eq!(show(&bench.take(waiter)[0]), "[l a]");
        bench.text(writer, "SWAPDB 0 1");
        assert!(bench.run(waiter, "BLPOP l 0").is_empty());
        assert_eq!(bench.text(writer, "MOVE l 0"), "1");
        assert_eq!(show(&bench.take(waiter)[0]), "[l b]");
    }
}

#[test]
fn wait_is_ended_by_time() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    assert!(bench.run(client, "WAIT 1 10").is_empty());
    assert_eq!(show(&bench.end_wait(client, End::Timeout)[0]), "0");
    assert!(bench.run(client, "WAITAOF 0 1 10").is_empty());
    assert_eq!(show(&bench.end_wait(client, End::Timeout)[0]), "[0 0]");
}

#[test]
fn events_are_valkeys() {
    events_are(&[
        ("SET k v EX 5", "set:k expire:k"),
        ("GETEX k PERSIST", "persist:k"),
        ("APPEND k v", "append:k"),
        ("RENAME k l", "rename_from:k rename_to:l"),
        ("COPY l m", "copy_to:m"),
        ("MOVE m 1", "move_from:m move_to:m"),
        ("EXPIRE l -1", "expired:l"),
        ("MSET a 1 b 2", "set:a set:b"),
        ("INCRBYFLOAT a 1", "incrbyfloat:a"),
        ("GETDEL a", "del:a"),
        ("DEL a b", "del:b"),
        ("SET x 1 PXAT 1", ""),
    ]);
}
