//! How channels and RESPB connections end where others have a hand in it, or their client does not read. What a client
//! sees of all other ends is in `tests/e2e/test_respb_ends.py`.

use std::io::Write;
use std::os::unix::net::UnixStream;

use super::{Alone, argv, channels, received, sends};
use crate::channels::close;
use crate::connection::Life;
use crate::limits::FAREWELL_MS;
use crate::pace::Cycles;

const CLOSE: u8 = 1;
const GOAWAY: u8 = 4;

/// A control frame of the server, but for its text.
fn control(kind: u8, channel: u8, reason: &crate::channels::Reason) -> Vec<u8> {
    let len = 2 + reason.text.len() as u8;
    let head = [0xFF, kind, 0, channel, 0, 0, 0, len, 0, reason.code as u8];
    [&head[..], reason.text.as_bytes()].concat()
}

/// A client whose channel 1 waits for the key `q`, of a server whose channels may queue little.
fn waiting() -> (Alone, UnixStream) {
    let mut alone = Alone::new();
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
    let (mut alone, mut client) = waiting();
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
    let (mut alone, mut client) = waiting();
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
    alone.worker.tick(now_ms, now_us, &mut Cycles::default());
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
