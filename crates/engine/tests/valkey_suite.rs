//! What Valkey's own unit tests, run against Weft, have shown to differ: the same cases, small enough to run always.

mod support;

use support::{ALL, Bench, show};
use weft_engine::reply::Protocol;
use weft_store::Counter;

/// The field of INFO, as a number.
fn info(bench: &mut Bench, client: u32, section: &str, field: &str) -> i64 {
    let text = bench.text(client, &format!("INFO {section}"));
    let line = text.split(['\n', '\r']).find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{field} in {text}"))
}

#[test]
fn the_last_store_of_georadius_counts_and_is_locked() {
    for protocol in ALL {
        let (mut bench, a) = Bench::with(protocol);
        bench.text(a, "GEOADD src 0 0 m");
        for command in [
            "GEORADIUS src 0 0 1 km STORE a STORE b",
            "GEORADIUS src 0 0 1 km STOREDIST a STORE b",
            "GEORADIUS src 0 0 1 km STORE STORE STOREDIST b",
            "GEORADIUSBYMEMBER src m 1 km STORE a STORE b",
        ] {
            assert_eq!(bench.text(a, command), "1", "{command}");
            assert_eq!(bench.text(a, "EXISTS a STORE"), "0", "{command}");
            assert_eq!(bench.text(a, "DEL b"), "1", "{command}");
        }
        let keys = bench.text(a, "COMMAND GETKEYSANDFLAGS GEORADIUS src 0 0 1 km STORE a STORE b");
        assert_eq!(keys.matches("access").count(), 1, "a key that is only written: {keys}");
    }
}

#[test]
fn one_large_element_makes_a_quicklist() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    let large = "x".repeat(8186);
    bench.text(a, &format!("RPUSH fits {}", &large[1..]));
    bench.text(a, &format!("RPUSH alone {large}"));
    bench.text(a, "RPUSH set a");
    bench.text(a, &format!("LSET set 0 {large}"));
    bench.text(a, "CONFIG SET list-max-listpack-size 3");
    bench.text(a, "RPUSH replaced a b c");
    bench.text(a, "LSET replaced 0 x");
    bench.text(a, "RPUSH popped a b c d");
    bench.text(a, "RPOP popped 2");
    for (key, encoding) in [
        ("fits", "listpack"),
        ("alone", "quicklist"),
        ("set", "quicklist"),
        ("replaced", "quicklist"),
        ("popped", "quicklist"),
    ] {
        assert_eq!(bench.text(a, &format!("OBJECT ENCODING {key}")), encoding, "{key}");
    }
    assert_eq!(bench.text(a, "LRANGE replaced 0 -1"), "[x b c]");
    bench.text(a, "RPOP popped");
    assert_eq!(bench.text(a, "OBJECT ENCODING popped"), "listpack");
}

#[test]
fn timeouts_are_read_as_long_doubles() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    for timeout in ["0x7FFFFFFFFFFFFF", "1e400", "inf"] {
        let reply = bench.text(a, &format!("BLPOP k {timeout}"));
        assert_eq!(reply, "-ERR timeout is out of range", "{timeout}");
    }
    for timeout in ["nan", "0x", "1 "] {
        let reply = show(&bench.run_args(a, &[b"BLPOP", b"k", timeout.as_bytes()])[0]);
        assert_eq!(reply, "-ERR timeout is not a float or out of range", "{timeout}");
    }
    assert!(bench.run(a, "BLPOP k 0x1").is_empty() && bench.is_waiting(a));
}

#[test]
fn info_counts_waits_by_key() {
    let (mut bench, [a, b, c]) = Bench::with_clients([Protocol::Resp2; 3]);
    bench.text(c, "XGROUP CREATE s g $ MKSTREAM");
    bench.run(a, "BLPOP k l 0");
    bench.run(b, "XREADGROUP GROUP g c BLOCK 1000 STREAMS s >");
    for (field, expected) in [
        ("blocked_clients", 2),
        ("clients_in_timeout_table", 1),
        ("total_blocking_keys", 3),
        ("total_blocking_keys_on_nokey", 1),
    ] {
        assert_eq!(info(&mut bench, c, "clients", field), expected, "{field}");
    }
}

#[test]
fn what_blocks_is_logged_and_counted_when_it_ends() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.text(b, "CONFIG SET slowlog-log-slower-than 0");
    bench.text(b, "SLOWLOG RESET");
    bench.run(a, "BLPOP k 0");
    assert!(!bench.text(b, "SLOWLOG GET -1").contains("BLPOP"));
    bench.text(b, "RPUSH k v");
    assert!(bench.text(b, "SLOWLOG GET -1").contains("BLPOP"));
}

#[test]
fn rights_that_are_gone_end_a_wait() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.text(b, "ACL SETUSER u on nopass +@all ~*");
    bench.text(a, "AUTH u x");
    bench.run(a, "BLPOP k 0");
    bench.text(b, "ACL SETUSER u resetkeys");
    assert_eq!(bench.text(b, "RPUSH k v"), "1");
    let replies = bench.take(a);
    assert_eq!(replies.iter().map(show).collect::<Vec<_>>(), ["-NOPERM No permissions to access a key"]);
    assert_eq!(bench.text(b, "LLEN k"), "1");
}

#[test]
fn exec_without_room_says_so() {
    for protocol in ALL {
        let (mut bench, [a, b]) = Bench::with_clients([protocol; 2]);
        bench.text(b, "SET other v");
        bench.text(a, "MULTI");
        bench.text(a, "SET k v");
        bench.text(b, "CONFIG SET maxmemory 1");
        let reply = bench.text(a, "EXEC");
        assert!(reply.starts_with("-EXECABORT Transaction discarded because of: OOM"), "{reply}");
        bench.text(a, "MULTI");
        bench.text(a, "GET k");
        assert_eq!(bench.text(a, "EXEC"), "[nil]", "what stores nothing needs no room");
    }
}

#[test]
fn a_key_read_behind_its_change_is_not_told_of_it() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    bench.text(a, "CLIENT TRACKING ON");
    for command in ["MULTI", "SET k v", "GET k"] {
        bench.text(a, command);
    }
    assert_eq!(bench.run(a, "EXEC").len(), 1, "its reply and no push");
    assert_eq!(bench.run(a, "SET k w").len(), 2, "the key is tracked");
    bench.text(a, "CLIENT TRACKING OFF");
    bench.text(a, "CLIENT TRACKING ON BCAST PREFIX k");
    for command in ["MULTI", "SET k1 v", "SET k2 v"] {
        bench.text(a, command);
    }
    let replies = bench.run(a, "EXEC");
    assert_eq!(replies.len(), 2, "one push for all keys of the transaction: {replies:?}");
}

#[test]
fn swapdb_of_expired_keys_is_no_change() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.text(a, "SET x v PX 1");
    bench.pass(5);
    for command in ["SELECT 1", "WATCH x", "SWAPDB 0 1", "MULTI", "PING"] {
        bench.text(a, command);
    }
    assert_eq!(bench.text(a, "EXEC"), "[PONG]");
}

#[test]
fn scan_removes_what_has_expired() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.text(a, "SET stays v");
    bench.text(a, "SET goes v PX 1");
    bench.pass(5);
    bench.text(a, "SCAN 0 COUNT 1000");
    assert_eq!(bench.text(a, "DBSIZE"), "1");
}

#[test]
fn hashes_with_fields_that_expire_are_counted() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    let mut counted = |command: &str| {
        bench.text(a, command);
        let text = bench.text(a, "INFO keyspace");
        text.split("keys_with_volatile_items=").nth(1).map_or(0, |rest| {
            rest.trim_end().split(['\r', '\n']).next().and_then(|count| count.parse().ok()).unwrap_or(-1)
        })
    };
    assert_eq!(counted("HSET h f v"), 0);
    assert_eq!(counted("HEXPIRE h 100 FIELDS 1 f"), 1);
    assert_eq!(counted("HSETEX g EX 100 FIELDS 1 f v"), 2);
    assert_eq!(counted("HPERSIST h FIELDS 1 f"), 1);
    assert_eq!(counted("RENAME g h"), 1);
    assert_eq!(counted("COPY h i"), 2);
    assert_eq!(counted("SET h v"), 1);
    assert_eq!(counted("HEXPIRE i 0 FIELDS 1 f"), 0);
    assert_eq!(info(&mut bench, a, "stats", "expired_fields"), 1);
    bench.text(a, "HSETEX g EX 100 FIELDS 1 f v");
    bench.text(a, "FLUSHDB");
    bench.text(a, "HSETEX g EX 100 FIELDS 1 f v");
    assert!(bench.text(a, "INFO keyspace").contains("keys_with_volatile_items=1"));
}

#[test]
fn replies_off_holds_no_confirmation_of_a_subscription_back() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    bench.run(a, "CLIENT REPLY OFF");
    assert_eq!(bench.run(a, "SUBSCRIBE c").len(), 1);
    assert!(bench.run(a, "PING").is_empty());
}

#[test]
fn rights_are_those_of_the_database_that_multi_selects() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.text(a, "ACL SETUSER u on nopass (db=0 +@all -@read ~*) (db=2 +@all -@write ~*)");
    bench.text(b, "AUTH u x");
    for (command, reply) in [
        ("MULTI", "OK"),
        ("SET k v", "QUEUED"),
        ("SELECT 2", "QUEUED"),
        ("GET k", "QUEUED"),
        ("EXEC", "[OK OK nil]"),
    ] {
        assert_eq!(bench.text(b, command), reply, "{command}");
    }
}

#[test]
fn sort_by_other_keys_needs_one_selector_that_reads_all() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.text(a, "RPUSH l 1");
    bench.text(a, "ACL SETUSER u on nopass (+sort ~l %W~*) (+get ~*)");
    bench.text(b, "AUTH u x");
    assert!(bench.text(b, "SORT l BY v*").starts_with("-ERR BY option of SORT denied"));
    bench.text(a, "ACL SETUSER u (+sort ~l %R~*)");
    assert_eq!(bench.text(b, "SORT l BY v*"), "[1]");
    bench.text(a, "ACL SETUSER w on nopass %RW +@all");
    assert_eq!(
        bench.text(a, "ACL DRYRUN w GET \u{1}"),
        "User w has no permissions to access the '\u{1}' key"
    );
}

#[test]
fn a_client_without_its_channel_is_gone_at_once() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.text(a, "ACL SETUSER u on nopass +@all &c");
    bench.text(b, "AUTH u x");
    bench.run(b, "SUBSCRIBE c");
    bench.text(a, "ACL SETUSER u resetchannels");
    assert_eq!(bench.text(a, "CLIENT LIST").matches("id=").count(), 1);
}

#[test]
fn errors_are_counted_where_they_belong() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    for command in ["SET k v", "MULTI", "INCR k", "EXEC"] {
        bench.text(a, command);
    }
    let text = bench.text(a, "INFO commandstats");
    let failed = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:"))).expect("called");
        line.trim_end().rsplit('=').next().map(str::to_owned)
    };
    assert_eq!((failed("exec").as_deref(), failed("incr").as_deref()), (Some("0"), Some("1")));
    bench.run(b, "BLPOP l 0");
    let id = bench.session(b).id();
    bench.text(a, &format!("CLIENT UNBLOCK {id} ERROR"));
    assert!(bench.text(a, "INFO errorstats").contains("errorstat_UNBLOCKED:count=1"));
}

#[test]
fn reading_makes_room_too() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.text(a, "SET k v");
    bench.text(a, "CONFIG SET maxmemory-policy allkeys-lru maxmemory 1");
    bench.text(a, "GET other");
    assert_eq!(bench.text(a, "DBSIZE"), "0");
}

#[test]
fn a_missing_destination_is_told_once() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    bench.text(a, "CONFIG SET notify-keyspace-events Em");
    bench.text(a, "PFADD h a");
    bench.text(a, "PSUBSCRIBE __keyevent@*");
    let replies: Vec<String> = bench.run(a, "PFMERGE m h").iter().map(show).collect();
    assert_eq!(replies.iter().filter(|reply| reply.contains("keymiss")).count(), 1, "{replies:?}");
}

#[test]
fn a_pause_is_one_of_expiry_and_eviction_too() {
    for mode in ["WRITE", "ALL"] {
        let (mut bench, a) = Bench::with(Protocol::Resp2);
        bench.text(a, "SET goes v PX 10");
        bench.text(a, "HSETEX h PX 10 FIELDS 1 f v");
        for command in ["MULTI", &format!("CLIENT PAUSE 1000 {mode}")] {
            bench.text(a, command);
        }
        bench.pass(20);
        for command in
            ["GET goes", "EXISTS goes", "TTL goes", "HGET h f", "HLEN h", "RANDOMKEY", "DBSIZE", "KEYS g*"]
        {
            bench.text(a, command);
        }
        let key = "nil 0 -2 nil 0";
        let reply = bench.text(a, "EXEC");
        assert!(reply == format!("[OK {key} goes 2 []]") || reply == format!("[OK {key} h 2 []]"), "{reply}");
        let count = |bench: &Bench, counter| bench.engine.keyspace.total(counter);
        assert_eq!(count(&bench, Counter::Expired), 0, "{mode}");
        bench.text(a, "CLIENT UNPAUSE");
        assert_eq!(bench.text(a, "EXISTS goes"), "0");
        assert_eq!(bench.text(a, "HLEN h"), "0");
        assert_eq!(bench.text(a, "DBSIZE"), "0");
        assert_eq!(count(&bench, Counter::Expired), 1, "{mode}");

        for command in ["MULTI", "SET k v", "CONFIG SET maxmemory-policy allkeys-random maxmemory 1"] {
            bench.text(a, command);
        }
        bench.text(a, &format!("CLIENT PAUSE 1000 {mode}"));
        assert_eq!(bench.text(a, "EXEC"), "[OK OK OK]");
        bench.text(a, "AUTH default x");
        assert_eq!(count(&bench, Counter::Evicted), 0, "{mode}");
        bench.pass(1001);
        bench.text(a, "AUTH default x");
        assert_eq!(count(&bench, Counter::Evicted), 1, "{mode}");
    }
}

#[test]
fn what_is_written_in_a_pause_replaces_what_has_expired() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.text(a, "SET k v PX 10");
    bench.text(a, "SADD s m");
    bench.text(a, "PEXPIRE s 10");
    for command in
        ["MULTI", "CLIENT PAUSE 1000 WRITE", "GET k", "APPEND k new", "SADD s n", "SMEMBERS s", "DBSIZE"]
    {
        bench.text(a, command);
    }
    bench.pass(20);
    assert_eq!(bench.text(a, "EXEC"), "[OK nil 3 1 [n] 2]");
}

#[test]
fn what_was_evicted_is_told_before_the_reply() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp3; 2]);
    for command in ["SETEX k 1000 v", "CLIENT TRACKING ON", "GET k"] {
        bench.text(a, command);
    }
    bench.text(b, "CLIENT TRACKING ON");
    bench.text(b, "GET k");
    bench.text(b, "CONFIG SET maxmemory-policy volatile-random maxmemory 1");
    let replies: Vec<String> = bench.run(a, "GET k").iter().map(show).collect();
    assert_eq!(replies.len(), 2, "{replies:?}");
    assert!(replies[0].contains("invalidate") && replies[1] == "nil", "{replies:?}");
    let told: Vec<String> = bench.take(b).iter().map(show).collect();
    assert!(told.len() == 1 && told[0].contains("invalidate"), "{told:?}");
}

#[test]
fn a_wait_that_ends_with_an_error_counts_as_failed() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.text(b, "XGROUP CREATE s g $ MKSTREAM");
    bench.run(a, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
    bench.text(b, "XGROUP DESTROY s g");
    assert!(show(&bench.take(a)[0]).starts_with("-NOGROUP"));
    let text = bench.text(b, "INFO commandstats");
    let line = text.lines().find(|line| line.starts_with("cmdstat_xreadgroup:")).expect("called");
    assert!(line.contains("calls=1,") && line.trim_end().ends_with("failed_calls=1"), "{line}");
}

#[test]
fn a_reload_keeps_what_can_be_seen() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.allow_debug();
    for command in [
        "SET text v EX 1000",
        "SET int 12345",
        "RPUSH list a b c",
        "SADD ints 1 2 3",
        "SADD set x y",
        "ZADD zset 1 a 2.5 b",
        "HSET hash f v",
        "HSETEX fields EX 1000 FIELDS 1 f v",
        "XADD stream 1-1 f v",
        "XGROUP CREATE stream g 0",
        "XREADGROUP GROUP g c STREAMS stream >",
        "PFADD hll a b c",
        "SELECT 3",
        "SET other v",
        "SELECT 0",
    ] {
        bench.text(a, command);
    }
    let keys = ["text", "int", "list", "ints", "set", "zset", "hash", "fields", "stream", "hll"];
    let seen = |bench: &mut Bench| {
        let mut seen = vec![bench.text(a, "DEBUG DIGEST"), bench.text(a, "HPEXPIRETIME fields FIELDS 1 f")];
        seen.push(bench.text(a, "XPENDING stream g"));
        for key in keys {
            seen.push(bench.text(a, &format!("OBJECT ENCODING {key}")));
            seen.push(bench.text(a, &format!("PEXPIRETIME {key}")));
        }
        seen
    };
    let before = seen(&mut bench);
    assert_eq!(bench.text(a, "DEBUG RELOAD"), "OK");
    assert_eq!(seen(&mut bench), before);
    bench.text(a, "CONFIG SET list-max-listpack-size 2 set-max-intset-entries 2");
    assert_eq!(bench.text(a, "DEBUG RELOAD"), "OK");
    assert_eq!(bench.text(a, "OBJECT ENCODING list"), "quicklist", "by the limits of now");
    assert_eq!(bench.text(a, "OBJECT ENCODING ints"), "hashtable");
}

#[test]
fn patterns_with_a_thousand_stars_match_nothing() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.text(a, &format!("SET {} v", "a".repeat(3000)));
    assert_eq!(bench.text(a, &format!("KEYS {}", "*?".repeat(1001))), "[]");
    assert_ne!(bench.text(a, &format!("KEYS {}", "*?".repeat(1000))), "[]");
    assert_ne!(bench.text(a, &format!("KEYS {}*", "*?".repeat(1000))), "[]");
}

#[test]
fn a_refused_value_is_named_as_it_was_given() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    for (command, name, why) in [
        ("CONFIG SET SLOWLOG-MAX-LEN x", "slowlog-max-len", "argument couldn't be parsed into an integer"),
        (
            "CONFIG SET hash-max-listpack-value 9223372036854775808",
            "hash-max-listpack-value",
            "argument must be between 0 and 9223372036854775807 inclusive",
        ),
        (
            "CONFIG SET hash-max-listpack-value 18446744073709551616",
            "hash-max-listpack-value",
            "argument must be a memory value: bytes, or a number with k, m, g (powers of 1000), kb, mb, gb or kib, mib, \
             gib (of 1024)",
        ),
    ] {
        let text = format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - {why}");
        assert_eq!(bench.text(a, command), text, "{command}");
    }
}

#[test]
fn zincrby_takes_an_option_for_one() {
    for protocol in ALL {
        let (mut bench, a) = Bench::with(protocol);
        assert_eq!(bench.text(a, "ZINCRBY z NX 1"), "-ERR syntax error");
        assert_eq!(bench.text(a, "ZINCRBY z x 1"), "-ERR value is not a valid float");
    }
}

#[test]
fn a_reader_hears_of_another_type_when_a_stream_begins_anew() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.text(b, "XADD c 16-0 f v");
    bench.run(a, "XREAD BLOCK 0 STREAMS c d $ $");
    for command in ["SET d v", "DEL c"] {
        bench.text(b, command);
        assert!(bench.is_waiting(a), "{command}");
    }
    bench.text(b, "XADD c 2-0 f v");
    let replies: Vec<String> = bench.take(a).iter().map(show).collect();
    assert_eq!(replies, ["-WRONGTYPE Operation against a key holding the wrong kind of value"]);
}

#[test]
fn a_pause_of_all_holds_another_pause_but_not_its_end() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    bench.text(a, "CLIENT PAUSE 1000 ALL");
    assert!(bench.run(b, "CLIENT PAUSE 10 WRITE").is_empty());
    assert!(bench.run(a, "INFO server").is_empty());
    let c = bench.connect(Protocol::Resp2);
    assert_eq!(bench.text(c, "CLIENT UNPAUSE"), "OK");
    assert_eq!(bench.text(c, "PING"), "PONG");
}

#[test]
fn commands_tell_of_keys_and_flags_as_valkey_does() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    assert_eq!(
        bench.text(a, "COMMAND GETKEYS LMPOP 5 a LEFT"),
        "-ERR Invalid arguments specified for command"
    );
    assert_eq!(bench.text(a, "COMMAND GETKEYS LMPOP 1 a LEFT"), "[a]");
    assert!(!bench.text(a, "COMMAND INFO publish").contains("may_replicate"));
    assert!(bench.text(a, "ACL CAT").contains("scripting"));
    for (command, reply) in [
        ("FAILOVER", "-ERR FAILOVER requires connected replicas."),
        ("FAILOVER ABORT", "-ERR No failover in progress."),
        ("FAILOVER TIMEOUT x", "-ERR value is not an integer or out of range"),
        ("FAILOVER TIMEOUT 0", "-ERR FAILOVER timeout must be greater than 0"),
        ("FAILOVER TO h", "-ERR syntax error"),
        ("FAILOVER TO h 1 TIMEOUT 1 FORCE", "-ERR FAILOVER requires connected replicas."),
    ] {
        assert_eq!(bench.text(a, command), reply, "{command}");
    }
}

#[test]
fn a_wait_counts_when_it_has_ended() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp2; 2]);
    let counted = |bench: &mut Bench| {
        let text = bench.text(b, "INFO commandstats");
        let line = text.lines().find(|line| line.starts_with("cmdstat_blpop:")).unwrap_or_default();
        let figure = |name: &str| {
            let rest = line.split(&format!("{name}=")).nth(1).unwrap_or("0");
            rest.split([',', '\r']).next().and_then(|figure| figure.parse::<u64>().ok())
        };
        [figure("calls"), figure("rejected_calls"), figure("failed_calls")].map(|figure| figure.unwrap_or(99))
    };
    bench.run(a, "BLPOP k 0");
    assert_eq!(counted(&mut bench), [0, 0, 0]);
    bench.text(b, "RPUSH k v");
    assert_eq!(counted(&mut bench), [1, 0, 0]);
    bench.run(a, "BLPOP k 0");
    let id = bench.session(a).id();
    bench.text(b, &format!("CLIENT UNBLOCK {id} ERROR"));
    assert_eq!(counted(&mut bench), [2, 1, 0]);
    bench.text(b, "CONFIG RESETSTAT");
    bench.text(b, "ACL SETUSER default -blpop");
    bench.text(b, "ACL SETUSER default +blpop");
    bench.run(a, "BLPOP k 0");
    bench.text(b, "ACL SETUSER default -blpop");
    bench.text(b, "RPUSH k v");
    assert_eq!(counted(&mut bench), [0, 1, 0]);
    assert!(
        bench.text(b, "INFO commandstats").contains("cmdstat_blpop:calls=0,usec=0,"),
        "what it took is no call's"
    );
}

#[test]
fn a_smaller_table_of_tracked_keys_is_so_at_once() {
    let (mut bench, [a, b]) = Bench::with_clients([Protocol::Resp3, Protocol::Resp2]);
    bench.text(a, "CLIENT TRACKING ON");
    bench.run(a, "MGET x y z");
    bench.text(b, "CONFIG SET tracking-table-max-keys 1");
    assert_eq!(bench.take(a).len(), 2);
    assert_eq!(info(&mut bench, b, "stats", "tracking_total_keys"), 1);
}

#[test]
fn an_exec_that_is_refused_ends_the_transaction() {
    for protocol in ALL {
        let (mut bench, [a, b]) = Bench::with_clients([protocol; 2]);
        let aborted =
            "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command";
        assert_eq!(bench.text(a, "EXEC x"), aborted);
        for command in ["SET k v", "WATCH k", "MULTI", "SET k w"] {
            bench.text(a, command);
        }
        assert_eq!(bench.text(a, "EXEC x"), aborted);
        assert_eq!(bench.text(a, "EXEC"), "-ERR EXEC without MULTI");
        bench.text(b, "SET k other");
        bench.text(a, "MULTI");
        assert_eq!(bench.text(a, "EXEC"), "[]", "the key is not watched any more");

        bench.text(b, "ACL SETUSER default -exec");
        bench.text(a, "MULTI");
        let denied = "NOPERM User default has no permissions to run the 'exec' command";
        let text = format!("-EXECABORT Transaction discarded because of: {denied}");
        assert_eq!(bench.text(a, "EXEC"), text);
        bench.text(b, "ACL SETUSER default +exec");
        assert_eq!(bench.text(a, "EXEC"), "-ERR EXEC without MULTI");
    }
}

#[test]
fn odd_arguments_are_refused_in_valkeys_words() {
    for protocol in ALL {
        let (mut bench, a) = Bench::with(protocol);
        let wrong = |sub: &str| {
            format!("-ERR unknown subcommand or wrong number of arguments for '{sub}'. Try PUBSUB HELP.")
        };
        assert_eq!(bench.text(a, "PUBSUB CHANNELS a b"), wrong("CHANNELS"));
        assert_eq!(bench.text(a, "PUBSUB SHARDCHANNELS a b"), wrong("SHARDCHANNELS"));
        for command in ["SCAN -0", "SCAN +0", "SCAN 00", "HSCAN k -0", "SSCAN k +0", "ZSCAN k 000"] {
            assert_eq!(bench.text(a, command), "[0 []]", "{command}");
        }
        for command in ["SCAN -1", "SCAN -", "SCAN", "HSCAN k ++0", "SSCAN k 0x", "ZSCAN k -7"] {
            assert!(bench.text(a, command).starts_with("-ERR"), "{command}");
        }
        for count in ["4294967296", "9223372036854775807"] {
            let command = format!("GEOSEARCH g BYPOLYGON {count} 0 0 1 1 2 2");
            assert_eq!(bench.text(a, &command), "-ERR invalid number of vertices");
        }
    }
}

#[test]
fn restore_can_be_told_to_trust_more() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.allow_debug();
    let refused = "-ERR DUMP payload version or checksum are wrong";
    let later = b"\x00\x03\x62\x61\x72\xde\x00\x0fYUza\xd3\xec\xe0";
    let broken = b"\x00\x03\x62\x61\x72\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    let restore = |bench: &mut Bench, payload: &[u8]| {
        show(&bench.run_args(a, &[b"RESTORE", b"foo", b"0", payload, b"REPLACE"])[0])
    };
    assert_eq!(restore(&mut bench, later), refused);
    bench.text(a, "CONFIG SET rdb-version-check relaxed");
    assert_eq!(restore(&mut bench, later), "OK");
    assert_eq!(bench.text(a, "GET foo"), "bar");
    assert_eq!(restore(&mut bench, broken), refused, "of a known version, with a wrong checksum");
    bench.text(a, "CONFIG SET rdb-version-check strict");
    assert_eq!(restore(&mut bench, later), refused);
    bench.text(a, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
    assert_eq!(restore(&mut bench, broken), "OK");
    assert_eq!(restore(&mut bench, later), refused);
    bench.text(a, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 0");
    assert_eq!(restore(&mut bench, broken), refused);
}

#[test]
fn channels_are_subscribed_to_inside_exec() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    for command in ["MULTI", "SUBSCRIBE c", "PUBLISH c m"] {
        bench.text(a, command);
    }
    let replies: Vec<String> = bench.run(a, "EXEC").iter().map(show).collect();
    assert_eq!(replies, ["[[subscribe c 1] 1]", "[message c m]"]);
}

#[test]
fn who_watches_has_nothing_to_do_with_keys() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.text(a, "MONITOR");
    for command in ["GET k", "SET k v", "PUBLISH c m"] {
        let replies: Vec<String> = bench.run(a, command).iter().map(show).collect();
        assert_eq!(replies, ["-ERR Replica can't interact with the keyspace"], "{command}");
    }
    assert!(bench.run(a, "PING").iter().any(|reply| show(reply) == "PONG"));
    bench.run(a, "RESET");
    assert_eq!(bench.text(a, "GET k"), "nil");
}

#[test]
fn a_write_counts_once() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    let mut changes = info(&mut bench, a, "persistence", "rdb_changes_since_last_save");
    for (command, expected) in [
        ("SETBIT b 0 0", 1),
        ("SETBIT b 0 0", 0),
        ("SETBIT b 0 1", 1),
        ("SETBIT b 90 0", 1),
        ("BITFIELD f SET i5 0 0", 1),
        ("BITFIELD f SET i5 0 0", 0),
        ("BITFIELD f SET i5 90 0", 1),
        ("BITFIELD g INCRBY i5 0 1", 1),
        ("SETRANGE s 3 x", 1),
        ("SETRANGE s 3 x", 1),
        ("APPEND t x", 1),
        ("APPEND t x", 1),
        ("SWAPDB 0 1", 1),
        ("FLUSHDB", 0),
        ("FLUSHALL", 5),
    ] {
        let reply = bench.text(a, command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
        let before = changes;
        changes = info(&mut bench, a, "persistence", "rdb_changes_since_last_save");
        assert_eq!(changes - before, expected, "{command}");
    }
}
