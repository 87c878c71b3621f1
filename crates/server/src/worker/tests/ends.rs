//! How channels and RESPB connections end where others have a hand in it, or their client does not read. What a client
//! sees of all other ends is in `tests/e2e/test_respb_ends.py`.

use std::io::Write;
use std::os::unix::net::UnixStream;

use super::{Alone, argv, channels, received, sends};
use crate::channels::close;
use crate::connection::Life;
use crate::limits::{
    DRAIN_BYTES_MAX, DRAIN_MS, ENDS_PAGES_PER_LOOK, FAREWELL_MS, LEAVING_PER_TICK_MAX, SWEEP_MS,
};

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

/// Nothing happens to it meanwhile: it asks for nothing more, and takes nothing.
#[test]
fn who_is_owed_for_long_what_may_be_owed_for_a_while_is_closed() {
    for (soft_bytes, is_closed) in [("100000", true), ("2000000", false)] {
        let (mut alone, client, now_ms) = leaving(("RESP", b"", false));
        let limits = format!("normal 0 {soft_bytes} 3");
        alone
            .engine
            .set_config(&[(b"client-output-buffer-limit", limits.as_bytes())], false)
            .expect("they are limits");
        for (passed_ms, is_there) in [(1_000, true), (4_000, true), (5_000, !is_closed)] {
            tick_at(&mut alone, now_ms + passed_ms);
            tick_at(&mut alone, now_ms + passed_ms);
            assert_eq!(alone.clients() > 0, is_there, "{soft_bytes}, {passed_ms}");
        }
        drop(client);
    }
}

/// A channel has a class of its own.
#[test]
fn a_channel_that_is_owed_for_long_what_may_be_owed_for_a_while_is_closed() {
    for (soft_bytes, is_closed) in [("100000", true), ("2000000", false)] {
        let mut alone = Alone::new();
        let limits = format!("pubsub 0 {soft_bytes} 3");
        alone
            .engine
            .set_config(&[(b"client-output-buffer-limit", limits.as_bytes())], false)
            .expect("they are limits");
        let (mut client, mut says) = (alone.connect(), alone.connect());
        sends(&mut alone, &mut client, &argv(1, &[b"SUBSCRIBE", b"news"]));
        // From here on it is without credit.
        sends(&mut alone, &mut client, &[0xFF, 3, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0]);
        let publish =
            [&b"*3\r\n$7\r\nPUBLISH\r\n$4\r\nnews\r\n$50000\r\n"[..], &[b'm'; 50_000], b"\r\n"].concat();
        (0..4).for_each(|_| sends(&mut alone, &mut says, &publish));
        let now_ms = alone.engine.clock.now_ms();
        for (passed_ms, is_open) in [(1_000, true), (2_900, true), (5_000, !is_closed)] {
            tick_at(&mut alone, now_ms + passed_ms);
            tick_at(&mut alone, now_ms + passed_ms);
            assert_eq!(channels(&mut alone).is_open(1), is_open, "{soft_bytes}, {passed_ms}");
        }
        assert!(channels(&mut alone).is_open(0));
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
    let (mut alone, [mut client]) = Alone::with_clients();
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

/// A script that takes so long that others are told of it: by what it does, whatever clocks and other tests do.
const SPINS: &[u8] = b"for _ = 1, 2e7 do end return 'spun'";

fn half_close(client: &UnixStream) {
    client.shutdown(std::net::Shutdown::Write).expect("it is open");
}

#[test]
fn who_sends_no_more_is_answered_what_its_script_and_what_is_behind_it_say() {
    let eval = [b"*3\r\n$4\r\nEVAL\r\n$35\r\n", SPINS, b"\r\n$1\r\n0\r\n"].concat();
    assert_eq!(SPINS.len(), 35);
    let resp = [&eval[..], b"ECHO behind\r\n"].concat();
    let on_channels = [argv(3, &[b"EVAL", SPINS, b"0"]), argv(3, &[b"ECHO", b"behind"])].concat();
    for bytes in [resp, on_channels] {
        let mut alone = Alone::with_stack();
        alone.engine.set_config(&[(b"busy-reply-threshold", b"1")], false).expect("it is one");
        let mut client = alone.connect();
        sends(&mut alone, &mut client, &bytes);
        half_close(&client);
        let mut answer = Vec::new();
        for _ in 0..TICKS_MAX {
            alone.tick();
            answer.extend(received(&mut client));
            if alone.clients() == 0 {
                break;
            }
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.contains("spun") && answer.contains("behind"), "{answer:?}");
        assert_eq!(alone.clients(), 0);
    }
}

/// What blocks is given up with the end of who sends no more, and what waits behind it.
#[test]
fn who_sends_no_more_and_waits_is_gone() {
    let blocks = argv(0, &[b"BLPOP", b"none", b"0"]);
    let behind = argv(0, &[b"ECHO", b"behind"]);
    let heir = [argv(0, &[b"HELLO", b"3", b"AUTH", b"default", b"x"]), argv(1, &[b"ECHO", b"heir"])].concat();
    for bytes in [[&blocks[..], &behind].concat(), [&blocks[..], &heir].concat()] {
        let (mut alone, [mut client]) = Alone::with_clients();
        sends(&mut alone, &mut client, &bytes);
        assert!(received(&mut client).is_empty());
        half_close(&client);
        (0..3).for_each(|_| alone.tick());
        assert_eq!(alone.clients(), 0);
    }
}

/// Of very many channels some are looked at in a tick, and a channel that is answered late is found behind them.
#[test]
fn very_many_channels_of_who_sends_no_more_are_looked_at_in_steps() {
    let mut alone = Alone::with_stack();
    alone.engine.set_config(&[(b"busy-reply-threshold", b"1")], false).expect("it is one");
    let mut client = alone.connect();
    let count = 256 * (2 * ENDS_PAGES_PER_LOOK as u16 + 3);
    for first in (0..count).step_by(256) {
        let pings: Vec<u8> = (first..first + 256).flat_map(|channel| wide(channel, &[b"PING"])).collect();
        sends(&mut alone, &mut client, &pings);
        (0..2).for_each(|_| alone.tick());
        received(&mut client);
    }
    sends(&mut alone, &mut client, &wide(count - 1, &[b"EVAL", SPINS, b"0"]));
    half_close(&client);
    let mut answer = Vec::new();
    for _ in 0..TICKS_MAX {
        alone.tick();
        answer.extend(received(&mut client));
        if alone.worker.io.get(0).is_none() {
            break;
        }
    }
    assert!(String::from_utf8_lossy(&answer).contains("spun"), "{answer:?}");
    assert!(alone.worker.io.get(0).is_none());
}

/// The same as [`argv`], for numbers of channels that take two bytes.
fn wide(channel: u16, words: &[&[u8]]) -> Vec<u8> {
    let mut frame = argv(0, words);
    frame[2..4].copy_from_slice(&channel.to_be_bytes());
    frame
}

/// A client of a server whose script takes so long that others are told of it.
fn beside_a_script(alone: &mut Alone, script: &[u8]) -> UnixStream {
    alone.engine.set_config(&[(b"busy-reply-threshold", b"1")], false).expect("it is one");
    let mut runner = alone.connect();
    let head = format!("*4\r\n$4\r\nEVAL\r\n${}\r\n", script.len());
    sends(alone, &mut runner, &[head.as_bytes(), script, b"\r\n$1\r\n1\r\n$1\r\nq\r\n"].concat());
    runner
}

fn until_it_is_over(alone: &mut Alone) {
    let over = (0..TICKS_MAX).find(|_| {
        alone.tick();
        !alone.engine.is_busy()
    });
    assert!(over.is_some(), "the script does not end");
}

#[test]
fn what_a_script_pushes_is_not_lost_to_who_has_gone_meanwhile() {
    let (mut alone, client) = waiting(Alone::with_stack());
    let spins_and_pushes = [SPINS, b" .. redis.call('RPUSH', KEYS[1], 'x')"].concat();
    let mut runner = beside_a_script(&mut alone, &spins_and_pushes);
    assert!(alone.engine.is_busy(), "it has been left in the middle");
    drop(client);
    until_it_is_over(&mut alone);
    (0..3).for_each(|_| alone.tick());
    received(&mut runner);
    sends(&mut alone, &mut runner, b"LRANGE q 0 -1\r\n");
    assert_eq!(received(&mut runner), b"*1\r\n$1\r\nx\r\n");
}

/// No request need come for that, and nobody waits for all of them.
#[test]
fn sessions_that_watch_and_end_beside_a_script_are_taken_down_in_steps() {
    const MORE: usize = 7;
    let mut alone = Alone::with_stack();
    let mut client = alone.connect();
    let count = LEAVING_PER_TICK_MAX + MORE;
    let watch = |channel: usize| wide(channel as u16, &[b"WATCH", b"q"]);
    sends(&mut alone, &mut client, &(0..count).flat_map(watch).collect::<Vec<u8>>());
    (0..4).for_each(|_| alone.tick());
    assert_eq!(received(&mut client).len(), 4 * count);
    let runner = beside_a_script(&mut alone, SPINS);
    assert!(alone.engine.is_busy(), "it has been left in the middle");
    drop(client);
    (0..4).for_each(|_| alone.tick());
    assert!(!alone.engine.is_busy() || alone.engine.clients.len() == count + 1);
    until_it_is_over(&mut alone);
    assert_eq!(alone.engine.clients.len(), MORE + 1);
    assert_eq!(alone.worker.timeout_ms(), 0, "the next tick does not wait for an event");
    alone.tick();
    assert_eq!(alone.engine.clients.len(), 1);
    drop(runner);
}
