//! Owns the tests of stream commands that need several clients, or more than one protocol. What single commands answer
//! is compared with a real server elsewhere.

mod support;

use support::{ALL, Bench};
use weft_engine::reply::Protocol;

#[test]
fn entries_come_back_over_every_protocol() {
    for protocol in ALL {
        let (mut bench, client) = Bench::with(protocol);
        assert_eq!(bench.text(client, "XADD s 5-1 a 1 b 2"), "5-1");
        assert_eq!(bench.text(client, "XADD s 5-* a 3"), "5-2");
        assert_eq!(bench.text(client, "XADD s * a 4"), "1700000000000-0");
        assert_eq!(bench.text(client, "XRANGE s - (1700000000000-0"), "[[5-1 [a 1 b 2]] [5-2 [a 3]]]");
        assert_eq!(bench.text(client, "XREVRANGE s + - COUNT 1"), "[[1700000000000-0 [a 4]]]");
        let read = bench.text(client, "XREAD STREAMS s none 5-1 0");
        let entries = "[[5-2 [a 3]] [1700000000000-0 [a 4]]]";
        let expected = match protocol {
            Protocol::Resp2 => format!("[[s {entries}]]"),
            _ => format!("{{s:{entries}}}"),
        };
        assert_eq!(read, expected);
        assert_eq!(bench.text(client, "XREAD STREAMS s 1700000000000-0"), "nil");
        assert_eq!(bench.text(client, "XADD s 5-1 a"), "-ERR wrong number of arguments for 'xadd' command");
    }
}

#[test]
fn a_reader_waits_for_what_comes_after_now() {
    for protocol in ALL {
        let (mut bench, [reader, writer]) = Bench::with_clients([protocol, Protocol::Resp2]);
        bench.text(writer, "XADD s 1-1 old 1");
        assert!(bench.run(reader, "XREAD BLOCK 0 STREAMS s other $ $").is_empty());
        assert!(bench.is_waiting(reader));
        // Another type at the other key does not wake a reader; when it wakes, it hears of it.
        bench.text(writer, "SET other x");
        assert!(bench.take(reader).is_empty() && bench.is_waiting(reader));
        bench.text(writer, "XDEL s 1-1");
        assert!(bench.take(reader).is_empty() && bench.is_waiting(reader));
        bench.text(writer, "DEL other");
        bench.text(writer, "XADD s 1-2 new 1");
        let got = bench.take(reader);
        let expected =
            if protocol == Protocol::Resp2 { "[[s [[1-2 [new 1]]]]]" } else { "{s:[[1-2 [new 1]]]}" };
        assert_eq!(got.iter().map(support::show).collect::<Vec<_>>(), [expected]);
        assert!(!bench.is_waiting(reader));
    }
}

/// A reader hears that one of its keys has another type when something comes to the other one.
#[test]
fn a_reader_hears_of_another_type_when_it_wakes() {
    let cases: [(&[&str], &[&str], bool); 17] = [
        (&[], &["XADD s 1-1 a 1"], true),
        // Also when what came is gone again, is not what was asked for, or is a stream without entries.
        (&[], &["XADD s MAXLEN 0 1-1 a 1"], true),
        (&["XADD s 3-1 a 1"], &["XADD s 4-1 a 1"], true),
        (&["XADD s 3-1 a 1"], &["XADD s 5-0 a 1"], true),
        (&[], &["XGROUP CREATE s g $ MKSTREAM"], true),
        (&["XGROUP CREATE from g $ MKSTREAM"], &["RENAME from s"], true),
        (&["XGROUP CREATE from g $ MKSTREAM"], &["COPY from s"], true),
        (
            &["XGROUP CREATE from g $ MKSTREAM"],
            &["SELECT 1", "XGROUP CREATE s g $ MKSTREAM", "MOVE s 0"],
            true,
        ),
        (&["XGROUP CREATE s g $ MKSTREAM"], &["XGROUP DESTROY s g"], true),
        // What changes a stream brings nothing, nor does what leaves it alone.
        (&["XADD s 3-1 a 1"], &["RPOPLPUSH none s", "SMOVE none s x"], false),
        (
            &["XGROUP CREATE s g $ MKSTREAM"],
            &["XGROUP CREATE s h $ MKSTREAM", "XGROUP CREATECONSUMER s g c"],
            false,
        ),
        (
            &["XGROUP CREATE s g $ MKSTREAM"],
            &["XGROUP DESTROY s h", "XGROUP SETID s g 7", "XSETID s 9-0"],
            false,
        ),
        (&["XADD s 3-1 a 1", "XADD s 3-2 a 1"], &["XDEL s 3-1", "XTRIM s MAXLEN 0"], false),
        (&["XADD s 3-1 a 1"], &["EXPIRE s 100", "PERSIST s", "XGROUP CREATE s g 0"], false),
        (
            &["XADD s 3-1 a 1", "XGROUP CREATE s g 0"],
            &["XREADGROUP GROUP g c STREAMS s >", "XACK s g 3-1"],
            false,
        ),
        (&["XADD s 3-1 a 1", "XADD from 1-1 a 1"], &["COPY from s", "RENAMENX from s", "COPY s to"], false),
        (&["XADD s 3-1 a 1"], &["SELECT 1", "XADD s 1-1 a 1", "SELECT 0", "MOVE s 1"], false),
    ];
    for (before, after, hears) in cases {
        for keys in ["s other 5-0 0", "other s 0 5-0"] {
            let (mut bench, [reader, writer]) = Bench::with_clients([Protocol::Resp2; 2]);
            before.iter().for_each(|command| drop(bench.text(writer, command)));
            assert!(bench.run(reader, &format!("XREAD BLOCK 0 STREAMS {keys}")).is_empty());
            bench.text(writer, "SET other x");
            assert!(bench.is_waiting(reader));
            for command in after {
                let reply = bench.text(writer, command);
                assert!(!reply.starts_with('-'), "{command}: {reply}");
            }
            let error = "-WRONGTYPE Operation against a key holding the wrong kind of value";
            let expected: &[&str] = if hears { &[error] } else { &[] };
            let got: Vec<_> = bench.take(reader).iter().map(support::show).collect();
            assert_eq!(got, expected, "{before:?} {after:?} {keys}");
        }
    }
}

/// What changes groups and counters counts as a write, but is no change of the stream for who watches or caches it.
#[test]
fn groups_are_not_watched() {
    let changes = |bench: &mut Bench, client| {
        let info = bench.text(client, "INFO persistence");
        let line = info.lines().find(|line| line.starts_with("rdb_changes_since_last_save:"));
        line.expect("INFO has the field").to_owned()
    };
    for (command, is_change) in [
        ("XGROUP CREATE s h $", false),
        ("XGROUP CREATE s h $ MKSTREAM", false),
        ("XGROUP SETID s g 0", false),
        ("XGROUP CREATECONSUMER s g d", false),
        ("XGROUP DELCONSUMER s g c", false),
        ("XGROUP DESTROY s g", false),
        ("XREADGROUP GROUP g c STREAMS s >", false),
        ("XREADGROUP GROUP g d STREAMS s 0", false),
        ("XACK s g 3-0", false),
        ("XCLAIM s g d 0 3-0", false),
        ("XAUTOCLAIM s g d 0 0", false),
        ("XSETID s 9-0", false),
        ("XADD s 5-0 a 1", true),
        ("XADD s MAXLEN 0 5-0 a 1", true),
        ("XDEL s 3-0", true),
        ("XTRIM s MAXLEN 1", true),
        ("XGROUP CREATE new g $ MKSTREAM", true),
    ] {
        let (mut bench, [reader, writer]) = Bench::with_clients([Protocol::Resp3, Protocol::Resp2]);
        for before in ["XADD s 3-0 a 1", "XADD s 4-0 a 1", "XGROUP CREATE s g 0"] {
            bench.text(writer, before);
        }
        bench.text(writer, "XREADGROUP GROUP g c COUNT 1 STREAMS s >");
        bench.text(reader, "CLIENT TRACKING ON BCAST");
        bench.text(reader, "WATCH s new");
        let before = changes(&mut bench, writer);
        let reply = bench.text(writer, command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
        assert_ne!(changes(&mut bench, writer), before, "{command}");
        assert_eq!(!bench.take(reader).is_empty(), is_change, "{command}");
        bench.text(reader, "MULTI");
        assert_eq!(bench.text(reader, "EXEC"), if is_change { "nil" } else { "[]" }, "{command}");
    }
}

#[test]
fn consumers_of_a_group_are_served_in_turn() {
    let mut bench = Bench::new();
    let clients: Vec<u32> = (0..3).map(|_| bench.connect(Protocol::Resp2)).collect();
    let [one, two, writer] = clients[..] else { unreachable!() };
    assert_eq!(bench.text(writer, "XGROUP CREATE s g $ MKSTREAM"), "OK");
    assert!(bench.run(one, "XREADGROUP GROUP g c1 BLOCK 0 STREAMS s >").is_empty());
    assert!(bench.run(two, "XREADGROUP GROUP g c2 BLOCK 0 STREAMS s >").is_empty());
    // Both consumers are there though they have got nothing.
    assert_eq!(bench.text(writer, "XGROUP CREATECONSUMER s g c2"), "0");
    bench.text(writer, "XADD s 1-1 a 1");
    assert_eq!(bench.take(one).iter().map(support::show).collect::<Vec<_>>(), ["[[s [[1-1 [a 1]]]]]"]);
    assert!(bench.take(two).is_empty() && bench.is_waiting(two));
    assert_eq!(bench.text(writer, "XPENDING s g"), "[1 1-1 1-1 [[c1 1]]]");
    assert_eq!(bench.text(writer, "XACK s g 1-1 7-7"), "1");
    assert!(bench.is_waiting(two));
    assert_eq!(bench.text(writer, "XGROUP DESTROY s g"), "1");
    let error = "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";
    assert_eq!(bench.take(two).iter().map(support::show).collect::<Vec<_>>(), [error]);
    assert!(!bench.is_waiting(two));
}

/// Whoever reads with a group hears of what changes for it, whichever way that comes, and of nothing else.
#[test]
fn readers_with_a_group_hear_of_what_is_new_to_it() {
    let gone = "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let came = |id: &str| format!("[[s [[{id} [a 1]]]]]");
    let cases: [(&[&str], &str); 17] = [
        (&["XADD s 5-0 a 1"], &came("5-0")),
        // The group has been behind all that came, and is set back.
        (&["XGROUP SETID s g 9-0", "XADD s 5-0 a 1", "XGROUP SETID s g 3-0"], &came("5-0")),
        (&["XGROUP SETID s g 9-0", "XADD s 5-0 a 1", "XADD s 9-1 a 1"], &came("9-1")),
        (&["XGROUP DESTROY s g"], gone),
        (&["DEL s"], gone),
        (&["SET s x"], wrong),
        (&["XADD t 1-1 a 1", "RENAME t s"], gone),
        (&["XADD t 7-0 a 1", "XGROUP CREATE t g 0", "RENAME t s"], &came("7-0")),
        (&["XADD t 7-0 a 1", "XGROUP CREATE t g 0", "COPY t s REPLACE"], &came("7-0")),
        (&["SWAPDB 0 1"], gone),
        (&["FLUSHALL"], gone),
        // When its time is up nothing is told, but by who makes it anew.
        (&["PEXPIRE s 10", "pass", "XADD s 1-0 a 1"], gone),
        (&["PEXPIRE s 10", "pass", "XGROUP CREATE s h $ MKSTREAM"], gone),
        (&["PEXPIRE s 10", "pass", "XGROUP CREATE s g $ MKSTREAM", "XADD s 1-0 a 1"], &came("1-0")),
        // What changes nothing for it.
        (&["XADD s MAXLEN 0 5-0 a 1", "XSETID s 6-0", "XGROUP CREATECONSUMER s g x", "XTRIM s MAXLEN 0"], ""),
        (&["XGROUP DESTROY s other", "XGROUP CREATE s new 0", "XACK s g 1-0", "XDEL s 1-0"], ""),
        (&["XGROUP SETID s g 9-0", "XADD s 5-0 a 1"], ""),
    ];
    for (commands, expected) in cases {
        for others in [0, 3] {
            let (mut bench, [reader, writer]) = Bench::with_clients([Protocol::Resp2; 2]);
            bench.text(writer, "XADD s 2-0 a 1");
            bench.text(writer, "XGROUP CREATE s g $");
            bench.text(writer, "XGROUP CREATE s other $");
            // Others wait with groups of their own, which are behind all that comes.
            for at in 0..others {
                bench.text(writer, &format!("XGROUP CREATE s ahead{at} 100-0"));
                let other = bench.connect(Protocol::Resp2);
                assert!(
                    bench.run(other, &format!("XREADGROUP GROUP ahead{at} c BLOCK 0 STREAMS s >")).is_empty()
                );
            }
            assert!(bench.run(reader, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >").is_empty());
            for &command in commands {
                if command == "pass" {
                    bench.pass(20);
                } else {
                    let reply = bench.text(writer, command);
                    assert!(!reply.starts_with('-'), "{command}: {reply}");
                }
            }
            let got: Vec<_> = bench.take(reader).iter().map(support::show).collect();
            assert_eq!(got.concat(), expected, "{commands:?}, {others} others");
            assert_eq!(bench.is_waiting(reader), expected.is_empty());
        }
    }
}

/// The command table looks for the word STREAMS behind the group; a consumer of this name leads it astray.
#[test]
fn a_consumer_may_be_called_streams() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    for key in ["s", "t"] {
        bench.text(client, &format!("XADD {key} 1-1 a 1"));
        bench.text(client, &format!("XGROUP CREATE {key} STREAMS 0"));
    }
    let read = "XREADGROUP NOACK GROUP STREAMS STREAMS COUNT 1 STREAMS s t > >";
    assert_eq!(bench.text(client, read), "[[s [[1-1 [a 1]]]] [t [[1-1 [a 1]]]]]");
    bench.text(client, "MULTI");
    bench.text(client, read);
    assert_eq!(bench.text(client, "EXEC"), "[nil]");
    let writer = bench.connect(Protocol::Resp2);
    assert!(bench.run(client, "XREADGROUP NOACK GROUP STREAMS STREAMS BLOCK 0 STREAMS s t > >").is_empty());
    bench.text(writer, "XADD t 2-1 a 2");
    assert_eq!(bench.take(client).iter().map(support::show).collect::<Vec<_>>(), ["[[t [[2-1 [a 2]]]]]"]);
}

#[test]
fn a_stream_named_twice_is_read_on() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    for ms in 1..=3 {
        bench.text(client, &format!("XADD s {ms}-0 a {ms}"));
    }
    bench.text(client, "XGROUP CREATE s g 0");
    let first = "XREADGROUP GROUP g c COUNT 2 STREAMS s s s > > >";
    assert_eq!(bench.text(client, first), "{s:[[1-0 [a 1]] [2-0 [a 2]]] s:[[3-0 [a 3]]]}");
}

#[test]
fn times_follow_the_clock() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    bench.text(client, "XADD s 1-1 a 1");
    bench.text(client, "XGROUP CREATE s g 0");
    bench.text(client, "XREADGROUP GROUP g c STREAMS s >");
    bench.clock.advance(500);
    assert_eq!(bench.text(client, "XPENDING s g - + 9"), "[[1-1 c 500 1]]");
    assert_eq!(bench.text(client, "XPENDING s g IDLE 501 - + 9"), "[]");
    assert_eq!(bench.text(client, "XCLAIM s g d 501 1-1"), "[]");
    assert_eq!(bench.text(client, "XCLAIM s g d 500 1-1 JUSTID"), "[1-1]");
    bench.clock.advance(20);
    assert_eq!(
        bench.text(client, "XINFO CONSUMERS s g"),
        "[[name c pending 0 idle 520 inactive 520] [name d pending 1 idle 20 inactive 20]]"
    );
    assert_eq!(bench.text(client, "XAUTOCLAIM s g c 20 0"), "[0-0 [[1-1 [a 1]]] []]");
    bench.text(client, "XDEL s 1-1");
    assert_eq!(bench.text(client, "XAUTOCLAIM s g c 0 0"), "[0-0 [] [1-1]]");
}
