//! How channels and RESPB connections end where others have a hand in it, or their client does not read. What a client
//! sees of all other ends is in `tests/e2e/test_respb_ends.py`.

use std::io::Write;
use std::os::unix::net::UnixStream;

use super::{Alone, argv, channels, received, sends};
use crate::channels::close;
use crate::connection::Life;
use crate::limits::{DRAIN_BYTES_MAX, DRAIN_MS, FAREWELL_MS, SWEEP_MS};

const CLOSE: u8 = 1;
const GOAWAY: u8 = 4;

/// A control frame of the server, but for its text.
fn control(kind: u8, channel: u8, reason: &crate::channels::Reason) -> Vec<u8> {
    let len = 2 + reason.text.len() as u8;
    let head = [0xFF, kind, 0, channel, 0, 0, 0, len, 0, reason.code as u8];
    [&head[..], reason.text.as_bytes()].concat()
}

/// A client whose channel 1 waits for the key `q`, of a server whose channels may queue little.
fn waiting(mut alone: Alone) -> (Alone, UnixStream) {
    alone.engine.set_config(&[(b"respb-queue-bytes", b"4096")], false).expect("it is one");
    let mut client = alone.connect();
    sends(&mut alone, &mut client, &argv(1, &[b"BLPOP", b"q", b"0"]));
    assert!(received(&mut client).is_empty());
    (alone, client)
}

/// What it answers when `x` comes.
const SERVED: &[u8] = b"\x80\x04\x00\x01\x00\x00\x00\x02\x81q\x81x";

#[test]
fn a_channel_that_ends_waits_for_the_reply_that_somebody_is_writing() {
    let (mut alone, mut client) = waiting(Alone::new());
    // In one batch: the element is handed over, and before its reply is there the queue is full.
    let push = argv(2, &[b"RPUSH", b"q", b"x"]);
    let flood = argv(1, &[b"SET", b"ran", &[b'v'; 1000]]).repeat(8);
    sends(&mut alone, &mut client, &[push, flood].concat());
    let expected = [&[0x81, 1, 0, 2][..], SERVED, &control(CLOSE, 1, &close::QUEUE)].concat();
    assert_eq!(received(&mut client), expected);
    sends(&mut alone, &mut client, &argv(2, &[b"EXISTS", b"q", b"ran"]));
    assert_eq!(
        received(&mut client),
        [0x81, 0, 0, 2],
        "it was handed over, and what stood behind has not run"
    );
    assert_eq!(alone.clients(), 2);
}

#[test]
fn a_connection_that_ends_waits_for_the_reply_that_somebody_is_writing() {
    let (mut alone, mut client) = waiting(Alone::new());
    let both = [argv(2, &[b"RPUSH", b"q", b"x"]), argv(0, &[b"QUIT"])].concat();
    sends(&mut alone, &mut client, &both);
    let quit = [0x80, 0, 0, 0];
    let expected = [&[0x81, 1, 0, 2][..], &quit, &control(GOAWAY, 0, &close::DONE), SERVED].concat();
    assert_eq!(received(&mut client), expected);
    assert!(matches!(alone.worker.io.get(0).expect("it reads on").life, Life::Draining { .. }));
}

const LIMIT_BYTES: usize = 1_000_000;
const VALUE_BYTES: usize = 100_000;

/// A client that does not read, and what its connection owes.
fn lagging(setting: &[u8]) -> (Alone, UnixStream) {
    let mut alone = Alone::new();
    let limit = LIMIT_BYTES.to_string();
    alone.engine.set_config(&[(setting, limit.as_bytes())], false).expect("it is one");
    let mut client = alone.connect();
    sends(&mut alone, &mut client, &argv(0, &[b"SET", b"k", &[b'v'; VALUE_BYTES]]));
    assert_eq!(received(&mut client), [0x80, 0, 0, 0]);
    (alone, client)
}

#[test]
fn channels_that_end_owe_no_more_than_a_limit_together() {
    let (mut alone, mut client) = lagging(b"respb-connection-output-bytes");
    let (mut channel, mut most, mut closed) = (0, 0, 0);
    while alone.worker.io.get(0).is_some_and(|connection| connection.life == Life::Open) {
        channel += 1;
        assert!(channel < 100, "a client that reads nothing makes the server owe {most} bytes, and no end");
        sends(&mut alone, &mut client, &argv(channel, &[b"GET", b"k"]));
        most = most.max(channels(&mut alone).queued_bytes());
        closed += u32::from(!channels(&mut alone).is_open(channel));
    }
    // One after the other is closed, and at last the connection.
    assert!(closed > 5, "{closed}");
    assert!(most > LIMIT_BYTES && most < 2 * LIMIT_BYTES + 2 * VALUE_BYTES, "{most}");
}

/// A tick at a time that is told.
fn tick_at(alone: &mut Alone, now_ms: u64) {
    alone.worker.look(0).expect("sockets can be looked at");
    let now_us = alone.worker.clock_us();
    alone.worker.tick(now_ms, now_us);
}

#[test]
fn who_is_told_to_go_and_takes_nothing_is_waited_for_a_while() {
    let (mut alone, mut client) = lagging(b"respb-output-bytes");
    sends(&mut alone, &mut client, &argv(0, &[b"GET", b"k"]).repeat(6));
    client.write_all(&argv(0, &[b"QUIT"])).expect("it is sent");
    let mut now_ms = alone.engine.clock.now_ms();
    tick_at(&mut alone, now_ms);
    assert_eq!(alone.worker.io.get(0).expect("it is there").life, Life::Closing);
    now_ms += FAREWELL_MS - 1;
    tick_at(&mut alone, now_ms);
    assert_eq!(alone.worker.io.get(0).expect("it has its time").life, Life::Closing);
    // Who takes something has more.
    assert!(!received(&mut client).is_empty());
    tick_at(&mut alone, now_ms);
    now_ms += FAREWELL_MS - 1;
    tick_at(&mut alone, now_ms);
    assert!(alone.worker.io.get(0).is_some(), "it has taken something");
    tick_at(&mut alone, now_ms + 1);
    assert!(alone.worker.io.get(0).is_none(), "it has taken nothing for long");
    assert_eq!(alone.clients(), 0);
}

/// What a client that is owed more than its socket takes sends at last, and whether it then ends its direction.
const LEAVES: [(&str, &[u8], bool); 4] = [
    ("RESP", b"QUIT\r\n", false),
    ("RESP", b"", true),
    ("RESP", b"*1\r\n$-5\r\n", false),
    ("HTTP", b"GET /get/k HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", false),
];

/// A client over RESP or HTTP that has asked for several values, reads nothing and goes, or is told to.
fn leaving((wire, last, ends): (&str, &[u8], bool)) -> (Alone, UnixStream, u64) {
    let mut alone = Alone::new();
    let value = [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$65536\r\n"[..], &[b'v'; 65536], b"\r\n"].concat();
    let mut client = alone.connect();
    sends(&mut alone, &mut client, &value);
    assert_eq!(received(&mut client), b"+OK\r\n");
    if wire == "HTTP" {
        client = alone.connect();
    }
    let ask: &[u8] = match wire {
        "HTTP" => b"GET /get/k HTTP/1.1\r\nHost: localhost\r\n\r\n",
        _ => b"GET k\r\n",
    };
    sends(&mut alone, &mut client, &ask.repeat(16));
    let now_ms = alone.engine.clock.now_ms();
    tick_at(&mut alone, now_ms);
    client.write_all(last).expect("it is sent");
    if ends {
        client.shutdown(std::net::Shutdown::Write).expect("it can be");
    }
    (alone, client, now_ms)
}

fn last(alone: &mut Alone) -> Option<&mut crate::connection::Connection> {
    alone.worker.io.slots.iter_mut().flatten().next_back().map(|connection| &mut **connection)
}

#[test]
fn who_goes_and_takes_nothing_of_what_it_is_owed_is_waited_for_a_while() {
    for leaves in LEAVES {
        let (mut alone, mut client, mut now_ms) = leaving(leaves);
        tick_at(&mut alone, now_ms);
        assert_eq!(last(&mut alone).expect("it is there").life, Life::Closing, "{leaves:?}");
        now_ms += FAREWELL_MS - 1;
        tick_at(&mut alone, now_ms);
        assert!(last(&mut alone).expect("it has its time").has_unsent(), "{leaves:?}");
        // Who takes what its socket holds has more time.
        assert!(!received(&mut client).is_empty());
        tick_at(&mut alone, now_ms);
        now_ms += FAREWELL_MS - 1;
        tick_at(&mut alone, now_ms);
        assert!(last(&mut alone).is_some_and(|connection| connection.life == Life::Closing), "{leaves:?}");
        tick_at(&mut alone, now_ms + 1);
        let left = alone.worker.io.slots.iter().flatten().filter(|left| left.life == Life::Closing).count();
        assert_eq!(left, 0, "{leaves:?}: it has taken nothing for long");
    }
}

#[test]
fn who_is_killed_and_reads_nothing_leaves_nothing() {
    let (mut alone, client, now_ms) = leaving(("RESP", b"PING\r\n", false));
    let mut killer = alone.connect();
    sends(&mut alone, &mut killer, b"CLIENT KILL TYPE normal SKIPME yes\r\n");
    assert_eq!(received(&mut killer), b":1\r\n");
    tick_at(&mut alone, now_ms + FAREWELL_MS);
    tick_at(&mut alone, now_ms + 2 * FAREWELL_MS);
    assert_eq!(alone.worker.io.slots.iter().flatten().count(), 1, "the killer alone is there");
    drop(client);
}

#[test]
fn who_takes_a_byte_now_and_then_is_not_waited_for_without_end() {
    // Over a socket whose other end takes little, each look at which is a tick of nearly the time that it has.
    let (mut alone, mut client, mut now_ms) = leaving(LEAVES[0]);
    tick_at(&mut alone, now_ms);
    let mut steps = 0;
    while last(&mut alone).is_some_and(|connection| connection.life == Life::Closing) {
        let at_ms = alone.worker.io.deadline(0);
        alone.worker.farewell_goes_on(0, 1);
        let more_ms = alone.worker.io.deadline(0) - at_ms;
        assert!(more_ms <= 1, "{more_ms}");
        now_ms += FAREWELL_MS / 4;
        tick_at(&mut alone, now_ms);
        steps += 1;
        assert!(steps < 6, "it is waited for without end");
    }
    assert!(!received(&mut client).is_empty());
}

/// A client that has been sent GOAWAY and the end of the stream, and has not ended its own direction.
fn drained() -> (Alone, UnixStream) {
    let mut alone = Alone::new();
    let mut client = alone.connect();
    sends(&mut alone, &mut client, &argv(0, &[b"QUIT"]));
    assert_eq!(received(&mut client)[..4], [0x80, 0, 0, 0]);
    let connection = alone.worker.io.get(0).expect("it reads on");
    assert_eq!(connection.life, Life::Draining { left_bytes: DRAIN_BYTES_MAX });
    (alone, client)
}

#[test]
fn what_comes_behind_goaway_is_read_for_so_many_bytes() {
    let (mut alone, mut client) = drained();
    let piece = [b'x'; 32 << 10];
    let mut sent = 0;
    while client.write_all(&piece).is_ok() {
        sent += piece.len();
        assert!(sent <= DRAIN_BYTES_MAX + (1 << 20), "{sent} bytes are read, and no end");
        alone.tick();
        alone.tick();
        if alone.worker.io.get(0).is_none() {
            break;
        }
    }
    assert!(sent >= DRAIN_BYTES_MAX, "{sent}");
    assert_eq!(alone.clients(), 0);
}

#[test]
fn what_comes_behind_goaway_is_read_for_so_long() {
    let (mut alone, mut client) = drained();
    let began_ms = alone.engine.clock.now_ms();
    client.write_all(b"still there").expect("it is read");
    tick_at(&mut alone, began_ms);
    tick_at(&mut alone, began_ms + DRAIN_MS / 2);
    assert!(alone.worker.io.get(0).is_some(), "it has its time");
    tick_at(&mut alone, began_ms + DRAIN_MS + 100);
    tick_at(&mut alone, began_ms + DRAIN_MS + 200);
    assert!(alone.worker.io.get(0).is_none(), "it has had its time");
}

/// Ticks, at one and the same time, that a script needs to be killed and its client to be told.
const TICKS_MAX: usize = 10_000;

/// While a script runs nobody's wait can be given up. The connection ends when it has, and not some seconds later.
#[test]
fn a_connection_that_ends_while_a_script_runs_ends_with_it() {
    for (is_own, last) in [
        (true, argv(0, &[b"QUIT"])),
        (true, vec![0x05, 0xFF, 0, 1]),
        (false, argv(0, &[b"QUIT"])),
        (false, vec![0x05, 0xFF, 0, 1]),
    ] {
        let (mut alone, mut client) = waiting(Alone::with_stack());
        alone.engine.set_config(&[(b"busy-reply-threshold", b"1")], false).expect("it is one");
        let (mut runner, mut other) = (alone.connect(), alone.connect());
        if is_own {
            sends(&mut alone, &mut client, &argv(2, &[b"EVAL", b"while true do end", b"0"]));
        } else {
            sends(&mut alone, &mut runner, b"EVAL \"while true do end\" 0\r\n");
        }
        assert!(alone.engine.is_busy(), "it has been left in the middle");
        let now_ms = alone.engine.clock.now_ms();
        client.write_all(&last).expect("it is sent");
        (0..4).for_each(|_| tick_at(&mut alone, now_ms));
        assert_eq!(alone.worker.io.get(0).expect("it is owed a reply").life, Life::Closing);
        other.write_all(b"SCRIPT KILL\r\n").expect("it is sent");
        let over = (0..TICKS_MAX).find(|_| {
            tick_at(&mut alone, now_ms);
            !alone.engine.is_busy()
        });
        assert!(over.is_some() && received(&mut other) == b"+OK\r\n");
        // Nobody tells the connection of a script that is none of its own: it looks.
        let then_ms = now_ms + if is_own { 0 } else { SWEEP_MS };
        (0..4).for_each(|_| tick_at(&mut alone, then_ms));
        let life = alone.worker.io.get(0).expect("its client has not ended").life;
        assert!(matches!(life, Life::Draining { .. }), "{life:?} with its own script: {is_own}");
        let answers = received(&mut client);
        assert!(!answers.windows(4).any(|head| head == [0x80, 4, 0, 1]), "what waited has not run");
    }
}
