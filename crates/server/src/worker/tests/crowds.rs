//! What ends or comes for thousands in one moment: it is seen to in steps, and none of it is another's.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use super::{Alone, argv, received, sends};
use crate::connection::Life;
use crate::limits::{
    GIVEN_UP_PER_TICK_MAX, MESSAGES_PER_TICK_MAX, PLACES_PER_TICK_MAX, SWEEP_MS, TIMERS_PER_TICK_MAX,
};

/// Channels of a connection that all wait.
const WAITS: u16 = 3000;
/// A time that comes only where a test lets it.
const TIMEOUT_MS: u64 = 600_000;
/// Ticks that only a hang needs.
const TICKS_MAX: usize = 100_000;

fn tick_at(alone: &mut Alone, now_ms: u64) {
    alone.worker.look(0).expect("sockets can be looked at");
    let now_us = alone.worker.clock_us();
    alone.worker.tick(now_ms, now_us);
}

/// A connection whose channels from 1 on wait, each for a key of its own or all for one.
fn waiting(alone: &mut Alone, are_apart: bool) -> UnixStream {
    waiting_by(alone, WAITS, |channel| {
        let key = if are_apart { format!("k{channel}") } else { "k".to_owned() };
        argv(channel, &[b"BLPOP", key.as_bytes(), b"600"])
    })
}

/// A connection of which so many channels from 1 on wait by these requests.
fn waiting_by(alone: &mut Alone, count: u16, wait: impl Fn(u16) -> Vec<u8>) -> UnixStream {
    let mut client = alone.connect();
    let all: Vec<u16> = (1..=count).collect();
    for some in all.chunks(500) {
        let bytes: Vec<u8> = some.iter().flat_map(|&channel| wait(channel)).collect();
        client.write_all(&bytes).expect("it fits into the socket");
        (0..4).for_each(|_| alone.tick());
    }
    while alone.engine.waits.len() < usize::from(count) {
        alone.tick();
    }
    client
}

/// Ticks at this time until nobody waits; the most waits that one of them ended.
fn most_ended(alone: &mut Alone, now_ms: u64) -> usize {
    let mut most = 0;
    for _ in 0..TICKS_MAX {
        let before = alone.engine.waits.len();
        if before == 0 {
            return most;
        }
        assert!(alone.worker.is_due(now_ms), "{before} are left to the next tick");
        tick_at(alone, now_ms);
        most = most.max(before - alone.engine.waits.len());
    }
    panic!("{} still wait", alone.engine.waits.len());
}

#[test]
fn thousands_of_times_that_come_at_once_are_seen_to_in_steps() {
    let mut alone = Alone::new();
    let mut client = waiting(&mut alone, false);
    let then_ms = alone.engine.clock.now_ms() + TIMEOUT_MS;
    assert_eq!(most_ended(&mut alone, then_ms), TIMERS_PER_TICK_MAX);
    tick_at(&mut alone, then_ms);
    // Each has null: a header and nothing else.
    assert_eq!(received(&mut client).len(), 4 * usize::from(WAITS));
}

/// Readers whom one write serves: with it, and by a step behind it.
const SERVED_PER_TICK_MAX: usize = 2 * 128;

#[test]
fn thousands_who_read_what_one_write_brings_are_served_in_steps() {
    let by_itself = argv(0, &[b"XADD", b"k", b"7-7", b"field", b"value"]);
    let script = b"redis.call('XADD', 'k', '7-7', 'field', 'value')";
    for write in [by_itself, argv(0, &[b"EVAL", script, b"1", b"k"])] {
        let mut alone = Alone::with_stack();
        let read = |channel| argv(channel, &[b"XREAD", b"BLOCK", b"600000", b"STREAMS", b"k", b"$"]);
        let mut client = waiting_by(&mut alone, WAITS, read);
        let (mut writer, mut other) = (alone.connect(), alone.connect());
        let now_ms = alone.engine.clock.now_ms();
        writer.write_all(&write).expect("it fits into the socket");
        while alone.engine.waits.len() == usize::from(WAITS) {
            tick_at(&mut alone, now_ms);
        }
        other.write_all(b"PING\r\n").expect("it fits into the socket");
        tick_at(&mut alone, now_ms);
        assert_eq!(received(&mut other), b"+PONG\r\n", "others have their turns");
        assert!(!alone.engine.waits.is_empty(), "not all are served");
        let most = most_ended(&mut alone, now_ms);
        assert!(most <= SERVED_PER_TICK_MAX, "{most} in a tick");
        all_of(&mut alone, &mut client, (WAITS, "value"));
    }
}

/// Those beyond what is served at once get theirs in steps, in their order too.
#[test]
fn those_who_take_beyond_thousands_are_served_in_steps() {
    const COUNT: u16 = 6000;
    let elements: Vec<String> = (1..=COUNT).map(|channel| format!("element {channel}.")).collect();
    let push: Vec<&[u8]> =
        [&b"RPUSH"[..], b"k"].into_iter().chain(elements.iter().map(String::as_bytes)).collect();
    let script = format!("for i = 1, {COUNT} do redis.call('RPUSH', 'k', 'element ' .. i .. '.') end");
    for write in [argv(0, &push), argv(0, &[b"EVAL", script.as_bytes(), b"1", b"k"])] {
        let mut alone = Alone::with_stack();
        let wait = |channel| argv(channel, &[b"BLPOP", b"k", b"600"]);
        let mut client = waiting_by(&mut alone, COUNT, wait);
        let (mut writer, mut other) = (alone.connect(), alone.connect());
        let now_ms = alone.engine.clock.now_ms();
        writer.write_all(&write).expect("it fits into the socket");
        while alone.engine.waits.len() == usize::from(COUNT) {
            tick_at(&mut alone, now_ms);
        }
        let at_once = usize::from(COUNT) - alone.engine.waits.len();
        assert!((TAKERS_AT_ONCE..=TAKERS_AT_ONCE + 128).contains(&at_once), "{at_once}");
        other.write_all(b"PING\r\n").expect("it fits into the socket");
        tick_at(&mut alone, now_ms);
        assert_eq!(received(&mut other), b"+PONG\r\n", "others have their turns");
        assert!(!alone.engine.waits.is_empty(), "not all are served: {at_once} were, {}", write.len());
        let most = most_ended(&mut alone, now_ms);
        assert!(most <= 128, "{most} in a tick");
        let got = all_of(&mut alone, &mut client, (COUNT, "element"));
        let mut from = 0;
        for element in &elements {
            from += got[from..].find(element.as_str()).expect("who came first has the first");
        }
    }
}
/// Those who take whom one tick serves at once.
const TAKERS_AT_ONCE: usize = 4096;

/// Nobody comes between those who take: neither one who takes without waiting, nor one who begins to wait.
#[test]
fn thousands_who_take_what_one_write_brings_are_served_with_it_in_their_order() {
    let mut alone = Alone::new();
    let mut client = waiting(&mut alone, false);
    let mut writer = alone.connect();
    let now_ms = alone.engine.clock.now_ms();
    let elements: Vec<String> = (1..=WAITS).map(|channel| format!("element {channel}.")).collect();
    let push: Vec<&[u8]> =
        [&b"RPUSH"[..], b"k"].into_iter().chain(elements.iter().map(String::as_bytes)).collect();
    writer.write_all(&[argv(0, &push), argv(0, &[b"LPOP", b"k"])].concat()).expect("it fits into the socket");
    while alone.engine.waits.len() == usize::from(WAITS) {
        tick_at(&mut alone, now_ms);
    }
    assert!(alone.engine.waits.is_empty(), "all are served");
    let got = all_of(&mut alone, &mut client, (WAITS, "element"));
    let mut from = 0;
    for element in &elements {
        from += got[from..].find(element.as_str()).expect("who came first has the first");
    }
}

/// What has come when each of those who wait has his reply, which has this word in it.
fn all_of(alone: &mut Alone, client: &mut UnixStream, (count, word): (u16, &str)) -> String {
    let (mut got, now_ms) = (Vec::new(), alone.engine.clock.now_ms());
    for _ in 0..TICKS_MAX {
        got.extend(received(client));
        let text = String::from_utf8_lossy(&got);
        if text.matches(word).count() == usize::from(count) {
            return text.into_owned();
        }
        tick_at(alone, now_ms);
    }
    panic!("{word}: not all have come");
}

#[test]
fn thousands_who_wait_on_a_connection_that_goes_away_give_up_in_steps() {
    for are_apart in [false, true] {
        let mut alone = Alone::new();
        let mut client = waiting(&mut alone, are_apart);
        let now_ms = alone.engine.clock.now_ms();
        client.write_all(&[0x90, 0, 0, 0]).expect("it is sent");
        tick_at(&mut alone, now_ms);
        assert_eq!(alone.worker.io.get(0).map(|connection| connection.life), Some(Life::Closing));
        let most = most_ended(&mut alone, now_ms);
        assert!(most <= 2 * GIVEN_UP_PER_TICK_MAX, "{most} in a tick");
        (0..2).for_each(|_| tick_at(&mut alone, now_ms));
        let life = alone.worker.io.get(0).expect("its client has not ended").life;
        assert!(matches!(life, Life::Draining { .. }), "{life:?}");
        assert!(received(&mut client).starts_with(&[0xFF, 4, 0, 0]), "GOAWAY");
        assert!(alone.worker.io.giving_up.is_empty(), "nothing is left");
        // What is due by the clock, which has gone on, is done too.
        let now_ms = alone.engine.clock.now_ms();
        tick_at(&mut alone, now_ms);
        assert!(alone.worker.timeout_ms() > 0, "the next tick waits for an event");
    }
}

/// Waits for many keys: what ends with them is as much as their keys.
#[test]
fn waits_with_thousands_of_keys_end_in_steps() {
    const CHANNELS: u16 = 8;
    const KEYS: usize = 2000;
    let all = usize::from(CHANNELS) * KEYS;
    for how in ["the connection is gone", "each is cancelled", "their times come"] {
        let (mut alone, [mut client]) = Alone::with_clients();
        let mut now_ms = alone.engine.clock.now_ms();
        for channel in 1..=CHANNELS {
            let names: Vec<String> = (0..KEYS).map(|at| format!("{channel}:{at}")).collect();
            let words: Vec<&[u8]> = [&b"BLPOP"[..]]
                .into_iter()
                .chain(names.iter().map(String::as_bytes))
                .chain([&b"600"[..]])
                .collect();
            client.write_all(&argv(channel, &words)).expect("it fits into the socket");
            while alone.engine.waits.len() < usize::from(channel) {
                alone.tick();
            }
        }
        assert_eq!(alone.engine.waits.key_count(), all);
        match how {
            "the connection is gone" => client.shutdown(Shutdown::Both).expect("it is open"),
            "each is cancelled" => {
                let cancel = |channel| [0xFF, 2, 0, channel as u8, 0, 0, 0, 4, 0, 0, 0, 0];
                let bytes: Vec<u8> = (1..=CHANNELS).flat_map(cancel).collect();
                client.write_all(&bytes).expect("it is sent");
            }
            _ => now_ms = alone.engine.clock.now_ms() + TIMEOUT_MS,
        }
        let mut ticks = 0;
        while alone.engine.waits.key_count() > 0 {
            let before = alone.engine.waits.key_count();
            tick_at(&mut alone, now_ms);
            let gone = before - alone.engine.waits.key_count();
            assert!(gone <= PLACES_PER_TICK_MAX, "{how}: {gone} in a tick");
            ticks += 1;
            let (waits, keys) = (alone.engine.waits.len(), alone.engine.waits.key_count());
            assert!(ticks < TICKS_MAX, "{how}: {waits} wait for {keys} keys");
            let is_left = gone > 0 && alone.engine.waits.key_count() > 0;
            assert!(!is_left || alone.worker.is_due(now_ms), "{how}: the rest is for the next tick");
        }
        assert!(alone.engine.waits.is_empty(), "{how}");
    }
}

#[test]
fn thousands_who_are_killed_at_once_go_in_steps() {
    let mut alone = Alone::new();
    let client = waiting(&mut alone, false);
    let mut other = alone.connect();
    let now_ms = alone.engine.clock.now_ms();
    other.write_all(b"CLIENT KILL TYPE normal SKIPME yes\r\n").expect("it is sent");
    // It runs, and some of what it asks for is done.
    tick_at(&mut alone, now_ms);
    assert_eq!(alone.worker.mail.waiting(), usize::from(WAITS) + 1 - MESSAGES_PER_TICK_MAX);
    let most = most_ended(&mut alone, now_ms);
    assert!(most <= MESSAGES_PER_TICK_MAX + GIVEN_UP_PER_TICK_MAX, "{most} in a tick");
    drop(client);
    alone.ticks_until(1);
}

/// The place of a connection is another's before all of its channels have been taken down.
#[test]
fn a_time_of_who_is_gone_is_not_that_of_who_has_the_place_now() {
    let mut alone = Alone::new();
    drop(waiting(&mut alone, true));
    let now_ms = alone.engine.clock.now_ms();
    while alone.worker.io.free.is_empty() {
        tick_at(&mut alone, now_ms);
    }
    let mut next = alone.arrive();
    next.write_all(b"BLPOP nothing 0\r\n").expect("it is sent");
    for _ in 0..3 {
        tick_at(&mut alone, now_ms);
    }
    assert!(!alone.worker.io.leaving.is_empty(), "channels of the one before are left");
    assert_eq!(alone.worker.io.slots.iter().flatten().count(), 1, "and there is one connection");
    tick_at(&mut alone, now_ms + 2 * TIMEOUT_MS);
    assert!(received(&mut next).is_empty(), "it waits for ever");
    while !alone.worker.io.leaving.is_empty() {
        tick_at(&mut alone, now_ms + 2 * TIMEOUT_MS);
    }
    let mut other = alone.connect();
    sends(&mut alone, &mut other, b"RPUSH nothing x\r\n");
    assert_eq!(received(&mut next), b"*2\r\n$7\r\nnothing\r\n$1\r\nx\r\n");
}

/// While a script takes its time, who comes and goes leaves nothing, and who is silent has no more time than otherwise.
#[test]
fn a_script_that_takes_its_time_keeps_neither_who_has_gone_nor_who_is_silent() {
    let mut alone = Alone::with_stack();
    alone
        .engine
        .set_config(&[(b"busy-reply-threshold", b"1"), (b"auth-timeout", b"30")], false)
        .expect("they are directives");
    let mut runner = alone.connect();
    sends(&mut alone, &mut runner, b"EVAL \"while true do end\" 0\r\n");
    assert!(alone.engine.is_busy(), "it has been left in the middle");
    alone.engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
    let before = alone.clients();
    for _ in 0..40 {
        drop(alone.connect());
        (0..3).for_each(|_| alone.tick());
    }
    assert_eq!(alone.ticks_until(before), 0, "they are taken down at once");
    let silent = alone.connect();
    assert_eq!(alone.clients(), before + 1);
    let then_ms = alone.engine.clock.now_ms() + 31_000;
    (0..3).for_each(|_| tick_at(&mut alone, then_ms));
    (0..3).for_each(|_| tick_at(&mut alone, then_ms + 20 * SWEEP_MS));
    assert_eq!(alone.clients(), before, "auth-timeout");
    assert!(alone.engine.is_busy());
    drop(silent);
    let mut other = alone.connect();
    sends(&mut alone, &mut other, b"AUTH secret\r\nSCRIPT KILL\r\n");
    assert!((0..TICKS_MAX).any(|_| {
        alone.tick();
        !alone.engine.is_busy()
    }));
}

/// What a server keeps of numbers that it refuses is little, wherever they lie, and counts.
#[test]
fn channels_that_are_refused_far_apart_take_little() {
    const KEPT_BYTES_MAX: usize = 16 << 10;
    let mut alone = Alone::new();
    alone.engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
    alone.engine.set_config(&[(b"respb-unauthenticated-channels", b"1")], false).expect("it can be set");
    let mut client = alone.connect();
    let mut refused = 0;
    for page in 1..=255_u16 {
        sends(&mut alone, &mut client, &argv(page * 256, &[b"PING"]));
        refused += usize::from(received(&mut client).starts_with(&[0xFF, 1]));
    }
    assert_eq!(refused, 255);
    let connection = alone.worker.io.get(0).expect("it is there");
    let kept = connection.counted.kept;
    assert!((255..KEPT_BYTES_MAX).contains(&kept), "{kept} bytes");
    // What is open counts too, by its pages.
    let mut alone = Alone::with(crate::shared::Shared::with_unauthenticated_max(40_000));
    alone.engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
    let mut client = alone.connect();
    for page in 1..15_u16 {
        sends(&mut alone, &mut client, &argv(page * 256, &[b"PING"]));
    }
    assert!(
        alone.worker.io.get(0).is_none_or(|connection| connection.life != Life::Open),
        "it is told that it keeps too much"
    );
}

/// Thousands of channels are answered in a tick: nothing is noted of those behind which nothing waits.
#[test]
fn of_channels_that_are_answered_those_go_on_that_hold_something() {
    let mut alone = Alone::new();
    let mut client = alone.connect();
    for channel in 1..=2 {
        sends(&mut alone, &mut client, &argv(channel, &[b"BLPOP", b"nothing", b"0"]));
    }
    sends(&mut alone, &mut client, &argv(2, &[b"PING"]));
    let mut noted = |channel| {
        alone.worker.waits_no_more(0, channel);
        std::mem::take(&mut alone.worker.io.aftermath).len()
    };
    assert_eq!([noted(1), noted(2)], [0, 1]);
}
