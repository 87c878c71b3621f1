//! What the commands of hashes and sets answer, errors included.

mod support;

use support::{Bench, script};
use weft_engine::reply::Protocol;
use weft_store::Counter;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn fields_are_set_and_read() {
    script(&[
        ("HSET h a 1 b 2", "2"),
        ("HSET h a 3 c 4", "1"),
        ("HSET h a", "-ERR wrong number of arguments for 'hset' command"),
        ("HMSET h d 5", "OK"),
        ("HSETNX h d 6", "0"),
        ("HSETNX h e 6", "1"),
        ("HGET h a", "3"),
        ("HGET h x", "nil"),
        ("HMGET h a x e", "[3 nil 6]"),
        ("HMGET none a b", "[nil nil]"),
        ("HLEN h", "5"),
        ("HSTRLEN h a", "1"),
        ("HSTRLEN h x", "0"),
        ("HEXISTS h a", "1"),
        ("HEXISTS h x", "0"),
        ("HKEYS h", "[a b c d e]"),
        ("HVALS h", "[3 2 4 5 6]"),
        ("HDEL h a x b", "2"),
        ("HGETDEL h FIELDS 2 c x", "[4 nil]"),
        (
            "HGETDEL h FIELDS 3 c x",
            "-ERR numfields should be greater than 0 and match the provided number of fields",
        ),
        ("HGETDEL h FIELD 1 c", "-ERR syntax error"),
        ("HINCRBY h d 10", "15"),
        ("HINCRBY h n -7", "-7"),
        ("HINCRBY h n 9223372036854775807", "9223372036854775800"),
        ("HINCRBY h n 8", "-ERR increment or decrement would overflow"),
        ("HSET h s text", "1"),
        ("HINCRBY h s 1", "-ERR hash value is not an integer"),
        ("HINCRBYFLOAT h f 0.1", "0.1"),
        ("HINCRBYFLOAT h f 0.2", "0.3"),
        ("HINCRBYFLOAT h s 1", "-ERR hash value is not a float"),
        ("HINCRBYFLOAT h f x", "-ERR value is not a valid float"),
        ("HINCRBYFLOAT h f inf", "-ERR value is NaN or Infinity"),
        ("HDEL h f", "1"),
        ("HSCAN h 0 MATCH d", "[0 [d 15]]"),
        ("HSCAN h 0 MATCH d NOVALUES", "[0 [d]]"),
        ("HSCAN h 0 NOSCORES", "-ERR NOSCORES option can only be used in ZSCAN"),
        ("HSCAN h 0 COUNT 0", "-ERR syntax error"),
        ("HSCAN h x", "-ERR invalid cursor"),
        ("HSCAN none 0", "[0 []]"),
        ("HDEL h d e n s", "4"),
        ("HLEN h", "0"),
        ("SET str x", "OK"),
        ("HGET str a", WRONG_TYPE),
        ("HSET str a b", WRONG_TYPE),
        ("HINCRBY str a 1", WRONG_TYPE),
        ("SADD str a", WRONG_TYPE),
    ]);
}

#[test]
fn fields_expire() {
    script(&[
        ("HSET h a 1 b 2 c 3", "3"),
        ("HEXPIRE h 100 FIELDS 2 a x", "[1 -2]"),
        ("HTTL h FIELDS 3 a b x", "[100 -1 -2]"),
        ("HPTTL h FIELDS 1 a", "[100000]"),
        ("HEXPIRETIME h FIELDS 1 a", "[1700000100]"),
        ("HPEXPIRETIME h FIELDS 1 a", "[1700000100000]"),
        ("HEXPIRE h 50 GT FIELDS 2 a b", "[0 0]"),
        ("HEXPIRE h 50 LT FIELDS 2 a b", "[1 1]"),
        ("HEXPIRE h 60 NX FIELDS 2 a c", "[0 1]"),
        (
            "HEXPIRE h 60 NX XX FIELDS 1 a",
            "-ERR NX and XX, GT or LT options at the same time are not compatible",
        ),
        ("HEXPIRE h 60 LT GT FIELDS 1 a", "-ERR GT and LT options at the same time are not compatible"),
        ("HEXPIRE h 60 ZZ FIELDS 1 a", "-ERR Unsupported option ZZ"),
        ("HEXPIRE h -1 FIELDS 1 a", "-ERR invalid expire time in 'hexpire' command"),
        (
            "HEXPIRE h 60 FIELDS 2 a",
            "-ERR numfields should be greater than 0 and match the provided number of fields",
        ),
        ("HTTL h FIELDS 2 a", "-ERR syntax error"),
        ("HPERSIST h FIELDS 3 a b x", "[1 1 -2]"),
        ("HPERSIST h FIELDS 1 a", "[-1]"),
        ("HEXPIREAT h 1 FIELDS 2 a x", "[2 -2]"),
        ("HEXISTS h a", "0"),
        ("HEXPIRE none 10 FIELDS 1 a", "[-2]"),
        ("HSETEX h EX 10 FIELDS 2 p 1 q 2", "1"),
        ("HSETEX h FNX EX 10 FIELDS 2 p 1 r 2", "0"),
        ("HSETEX h FXX KEEPTTL FIELDS 1 p 7", "1"),
        ("HTTL h FIELDS 1 p", "[10]"),
        ("HSETEX h NX FIELDS 1 p 7", "0"),
        ("HSETEX none XX FIELDS 1 p 7", "0"),
        ("HSETEX h EX 10 PX 10 FIELDS 1 p 7", "-ERR syntax error"),
        ("HSETEX h PXAT 1 FIELDS 1 p 7", "1"),
        ("HEXISTS h p", "0"),
        ("HGETEX h PERSIST FIELDS 2 q x", "[2 nil]"),
        ("HTTL h FIELDS 1 q", "[-1]"),
        ("HGETEX h EX 20 FIELDS 1 q", "[2]"),
        ("HTTL h FIELDS 1 q", "[20]"),
        ("HINCRBY h q 5", "7"),
        ("HTTL h FIELDS 1 q", "[20]"),
        ("HSET h q 1", "0"),
        ("HTTL h FIELDS 1 q", "[-1]"),
        ("HGETEX h PXAT 1 FIELDS 3 q b c", "[1 2 3]"),
        ("HLEN h", "0"),
    ]);
}

#[test]
fn expired_fields_are_gone() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    bench.text(client, "HSETEX h PX 100 FIELDS 2 a 1 b 2");
    bench.text(client, "HSET h c 3");
    bench.clock.advance(99);
    assert_eq!(bench.text(client, "HMGET h a c"), "[1 3]");
    bench.clock.advance(1);
    assert_eq!(bench.text(client, "HMGET h a c"), "[nil 3]");
    assert_eq!(bench.text(client, "HLEN h"), "1");
    assert_eq!(bench.text(client, "HSETEX h PX 100 FIELDS 1 c 3"), "1");
    bench.clock.advance(100);
    assert_eq!(bench.text(client, "HLEN h"), "0");
    assert_eq!(bench.text(client, "SADD h now-a-set"), "1");
}

#[test]
fn sets_are_changed_and_read() {
    script(&[
        ("SADD s 3 1 2 1", "3"),
        ("SMEMBERS s", "[1 2 3]"),
        ("SADD s 2", "0"),
        ("SISMEMBER s 2", "1"),
        ("SISMEMBER s 02", "0"),
        ("SMISMEMBER s 1 9", "[1 0]"),
        ("SMISMEMBER none 1 9", "[0 0]"),
        ("SCARD s", "3"),
        ("SREM s 1 9", "1"),
        ("SMOVE s t 2", "1"),
        ("SMOVE s t 9", "0"),
        ("SMOVE s s 3", "1"),
        ("SMEMBERS t", "[2]"),
        ("SADD t 3 4 x", "3"),
        ("SINTER s t", "[3]"),
        ("SINTER s none", "[]"),
        ("SINTERCARD 2 s t", "1"),
        ("SINTERCARD 2 s t LIMIT 1", "1"),
        ("SINTERCARD 0 s", "-ERR numkeys should be greater than 0"),
        ("SINTERCARD 3 s t", "-ERR Number of keys can't be greater than number of args"),
        ("SINTERCARD 2 s t LIMIT -1", "-ERR LIMIT can't be negative"),
        ("SINTERCARD 2 s t LIMIT", "-ERR syntax error"),
        ("SUNION s none", "[3]"),
        ("SDIFF t s", "[2 4 x]"),
        ("SDIFFSTORE d t s", "3"),
        ("SUNIONSTORE d s d", "4"),
        ("SINTERSTORE d s none", "0"),
        ("SMEMBERS d", "[]"),
        ("SPOP s", "3"),
        ("SPOP s", "nil"),
        ("SPOP s 3", "[]"),
        ("SPOP t -1", "-ERR value is out of range, must be positive"),
        ("SPOP t 1 2", "-ERR syntax error"),
        ("SADD one x", "1"),
        ("SRANDMEMBER one", "x"),
        ("SRANDMEMBER one -3", "[x x x]"),
        ("SRANDMEMBER one 3", "[x]"),
        ("SRANDMEMBER none", "nil"),
        ("SRANDMEMBER none 5", "[]"),
        ("SSCAN one 0", "[0 [x]]"),
        ("SSCAN one 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN"),
        ("SPOP t 9", "[2 3 4 x]"),
        ("SCARD t", "0"),
        ("SET str x", "OK"),
        ("SINTER none str", WRONG_TYPE),
        ("SUNION one str", WRONG_TYPE),
        ("SMOVE none str x", "0"),
        ("SMOVE one str x", WRONG_TYPE),
        ("SPOP str", WRONG_TYPE),
    ]);
}

#[test]
fn expired_fields_are_told_of() {
    let (mut bench, [client, listener]) = Bench::with_clients([Protocol::Resp3; 2]);
    bench.text(client, "CONFIG SET notify-keyspace-events KA");
    bench.run(listener, "PSUBSCRIBE *");
    bench.text(client, "HSETEX h PX 100 FIELDS 1 a 1");
    bench.text(client, "HSETEX h PX 200 FIELDS 1 b 2");
    bench.take(listener);
    for expected in [&["hexpired"][..], &["hexpired", "del"]] {
        bench.clock.advance(100);
        bench.text(client, "HGET h a");
        let told: Vec<String> = bench.take(listener).iter().map(support::show).collect();
        assert_eq!(told.len(), expected.len(), "{told:?}");
        assert!(told.iter().zip(expected).all(|(told, event)| told.contains(event)), "{told:?}");
    }
}

#[test]
fn what_has_expired_in_a_pause_is_in_no_set_that_is_computed() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    for command in [
        "SADD lives m n",
        "SADD goes m x",
        "PEXPIRE goes 10",
        "ZADD scored 1 m 2 n",
        "ZADD passes 3 m 4 x",
        "PEXPIRE passes 10",
        "CLIENT PAUSE 1000 WRITE",
    ] {
        bench.text(a, command);
    }
    bench.pass(20);
    for (command, reply) in [
        ("SUNION goes", "[]"),
        ("SINTER lives goes", "[]"),
        ("SINTERCARD 2 lives goes", "0"),
        ("SDIFF goes lives", "[]"),
        ("SDIFF lives goes lives", "[]"),
        ("ZUNION 1 passes", "[]"),
        ("ZINTER 2 scored passes", "[]"),
        ("ZINTERCARD 2 scored passes", "0"),
        ("ZDIFF 2 passes scored", "[]"),
        ("ZDIFF 2 scored passes", "[m n]"),
        ("ZUNION 2 goes scored", "[m n]"),
    ] {
        assert_eq!(bench.text(a, command), reply, "{command}");
    }
    assert_eq!(bench.engine.keyspace.total(Counter::Expired), 0, "they are kept");
}

/// Records stand in their entry or beside it, to the byte (1,088 with head and lengths), or are tables: what they say
/// of themselves and what is in them is the same.
#[test]
fn records_of_long_fields_are_hashtables_wherever_they_go() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    for bytes in [100, 984, 985, 1900, 5000] {
        let long = "v".repeat(bytes);
        bench.text(a, "FLUSHALL");
        bench.text(a, &format!("HSET record name {long} age 36 mail {}", "m".repeat(80)));
        for step in [
            "HSET record age 37",
            "EXPIRE record 100",
            "PERSIST record",
            "RENAME record other",
            "COPY other record",
            "MOVE other 1",
            "HINCRBY record age -1",
        ] {
            assert!(!bench.text(a, step).starts_with('-'), "{step}");
            let known = if step.starts_with("RENAME") { "other" } else { "record" };
            assert_eq!(bench.text(a, &format!("OBJECT ENCODING {known}")), "hashtable", "{bytes}, {step}");
            assert_eq!(
                bench.text(a, &format!("HMGET {known} name mail x")),
                format!("[{long} {} nil]", "m".repeat(80))
            );
        }
        // Short ones again: memory is given back, the name of its form is not.
        bench.text(a, "HSET record name Ada mail a@b");
        let memory: usize = bench.text(a, "MEMORY USAGE record").parse().unwrap();
        assert!(memory < 500 || bytes > 2048, "{bytes}: {memory} bytes");
        assert_eq!(bench.text(a, "OBJECT ENCODING record"), "hashtable");
        let mut scanned = bench.text(a, "HSCAN record 0");
        scanned.retain(|letter| letter.is_alphanumeric());
        assert_eq!(scanned.len(), "0nameAdaage36mailab".len(), "{scanned}");
        // Nor through a transaction, and with a field that expires.
        for step in
            ["MULTI", "HSET record age 38", "HDEL record mail", "EXEC", "HPEXPIRE record 50 FIELDS 1 name"]
        {
            bench.text(a, step);
        }
        bench.pass(60);
        assert_eq!(bench.text(a, "HGETALL record"), "[age 38]");
        assert_eq!(bench.text(a, "OBJECT ENCODING record"), "hashtable");
        bench.text(a, "SELECT 1");
        assert_eq!(bench.text(a, "HGET other age"), "37");
        bench.text(a, "SELECT 0");
        bench.text(a, "DEL record");
        bench.text(a, "HSET record name Ada");
        assert_eq!(bench.text(a, "OBJECT ENCODING record"), "listpack", "another one");
    }
}

/// The room of an entry is shared with its key and its expiry: around it, and around what one buffer holds, nothing is
/// lost, and what is counted is the bytes and an eighth, which a size of memory may be larger; and what is around them:
/// 200 bytes, or 3,000 where it may have become a table.
#[test]
fn records_fit_beside_keys_of_any_length() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    // A head of 4, names of 1 with their lengths, and that of the long value.
    let around = 4 + 2 + 3 + 2 + 2;
    for key_len in [1, 40, 47, 48, 49, 56, 57, 100, 200] {
        let key = "k".repeat(key_len);
        for bytes in (1080..=1092).chain([1140, 1152, 1160]).chain(2044..=2052) {
            let value = |more: usize| "v".repeat(bytes - around + more);
            assert_eq!(bench.text(a, &format!("HSET {key} a x l {}", value(0))), "2");
            let steps: [(String, usize); 8] = [
                (format!("EXPIRE {key} 100"), 0),
                (format!("HSET {key} l {}", value(1)), 1),
                (format!("PERSIST {key}"), 1),
                (format!("RENAME {key} other"), 1),
                (format!("RENAME other {key}"), 1),
                (format!("COPY {key} other"), 1),
                (format!("HSET {key} l {}", value(0)), 0),
                (format!("HINCRBY {key} n 5"), 0),
            ];
            for (step, more) in steps {
                assert!(!bench.text(a, &step).starts_with('-'), "{step}");
                let known =
                    if step.ends_with(" other") && step.starts_with("RENAME") { "other" } else { &key };
                let got = bench.text(a, &format!("HMGET {known} l a l"));
                assert_eq!(got, format!("[{0} x {0}]", value(more)), "{key_len}, {bytes}: {step}");
                assert_eq!(bench.text(a, &format!("OBJECT ENCODING {known}")), "hashtable");
                let memory: usize = bench.text(a, &format!("MEMORY USAGE {known}")).parse().unwrap();
                let room = bytes * 9 / 8 + key_len + if bytes < 2044 { 200 } else { 3000 };
                assert!((bytes - 10..room).contains(&memory), "{key_len}, {bytes}: {memory} after {step}");
            }
            assert_eq!(bench.text(a, "HGET other l"), value(1));
            // What is short needs no more than if it had never been long, unless it has become a table.
            bench.text(a, &format!("HSET {key} l {}", "s".repeat(10)));
            let memory: usize = bench.text(a, &format!("MEMORY USAGE {key}")).parse().unwrap();
            assert!(memory < 200 + key_len || bytes > 2040, "{key_len}, {bytes}: {memory}");
            assert_eq!(bench.text(a, &format!("DEL {key} other")), "2");
        }
    }
    bench.maintain();
    assert_eq!(bench.engine.keyspace.used_bytes(), 0);
}
