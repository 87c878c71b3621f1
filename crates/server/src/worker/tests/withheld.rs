//! Replies that wait until something is safe: on no way are they sent before, and nothing else waits for them.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;

use weft_engine::reply::{PIN_BYTES_MIN, ReplySink, Wire};
use weft_engine::safe::Safe;
use weft_store::wants;

use super::{Alone, argv, http::answers};
use crate::limits::SEND_EARLY_BYTES;

/// What has come, of what there may be more.
fn come(client: &mut UnixStream) -> Vec<u8> {
    client.set_nonblocking(true).expect("it can be set");
    let mut all = Vec::new();
    match client.read_to_end(&mut all) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => all,
        other => panic!("{other:?} behind {all:?}"),
    }
}

/// What the only connection is answered from now on waits for this epoch.
fn hold(alone: &mut Alone, epoch: u64) {
    let output = &mut alone.worker.io.get(0).expect("it is there").output;
    output.withhold(output.end(), epoch);
}

#[test]
fn each_reply_waits_for_its_own_epoch() {
    let (mut alone, [mut client]) = Alone::with_clients();
    alone.engine.set_safe(4);
    let output = &mut alone.worker.io.get(0).expect("it is there").output;
    for number in 1..=4 {
        ReplySink::new(output, Wire::default()).int(number);
        // The third waits no longer than the second does.
        output.withhold(output.end(), [5, 5, 7, 7][number as usize - 1]);
    }
    alone.worker.io.touch(0);
    alone.tick();
    assert_eq!(come(&mut client), b":1\r\n");
    alone.engine.set_safe(6);
    alone.tick();
    assert_eq!(come(&mut client), b":2\r\n:3\r\n");
    alone.engine.set_safe(7);
    alone.tick();
    assert_eq!(come(&mut client), b":4\r\n");
}

#[test]
fn what_is_sent_early_is_withheld_too() {
    for len in [100, PIN_BYTES_MIN] {
        let (mut alone, [mut client]) = Alone::with_clients();
        let value = vec![b'x'; len];
        let set = [format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${len}\r\n").as_bytes(), &value, b"\r\n"].concat();
        client.write_all(&set).expect("it fits into the socket");
        while come(&mut client).is_empty() {
            alone.tick();
        }
        alone.engine.set_safe(4);
        hold(&mut alone, 5);
        let count = SEND_EARLY_BYTES / len + 2;
        client.write_all(&b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".repeat(count)).expect("it fits into the socket");
        let reply = [format!("${len}\r\n").as_bytes(), &value, b"\r\n"].concat();
        while alone.worker.io.get(0).expect("it is there").unsent() < reply.len() * count {
            alone.tick();
            assert!(come(&mut client).is_empty(), "{len}");
        }
        alone.engine.set_safe(5);
        let mut all = Vec::new();
        while all.len() < reply.len() * count {
            alone.tick();
            all.append(&mut come(&mut client));
        }
        assert!(all == reply.repeat(count), "{len}");
    }
}

/// SETs over what is there, which are told of in a row: with and without strict reads their replies wait.
#[test]
fn sets_in_a_row_wait_for_what_they_tell() {
    for strict in [true, false] {
        let mut alone = Alone::with_stack();
        alone.engine.settings.strict_reads.store(strict, Relaxed);
        let mut worker = alone.engine.keyspace.worker().expect("there is a place");
        let mut merger = worker.merger(wants::VALUES).expect("there is no other");
        let mut client = alone.connect();
        let sets = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\ntext\r\n".repeat(10);
        client.write_all(&sets).expect("it fits into the socket");
        let mut before = Vec::new();
        while before.len() < 50 {
            alone.tick();
            before.append(&mut come(&mut client));
        }
        alone.engine.set_withheld(true);
        // All that was told so far is safe.
        alone.engine.set_safe(merger.poll(|_| ()).expect("it follows").complete);
        client.write_all(&sets).expect("it fits into the socket");
        while alone.worker.io.get(0).expect("it is there").unsent() < 50 {
            alone.tick();
            assert!(come(&mut client).is_empty(), "strict: {strict}");
        }
        let mut groups = 0;
        let polled = merger.poll(|group| groups += group.row().map_or(1, |(_, count)| count));
        let complete = polled.expect("it follows").complete;
        assert_eq!(groups, 10);
        alone.engine.set_safe(complete);
        alone.tick();
        assert_eq!(come(&mut client), b"+OK\r\n".repeat(10), "strict: {strict}");
    }
}

/// Who waits for what somebody else writes, and who is sent a message, see nothing sooner than who asks for it.
#[test]
fn what_others_bring_waits_too() {
    let asked = [
        (["XREAD BLOCK 0 STREAMS x $\r\n", "XADD x 1-1 n 1\r\n", "1-1"], true),
        (["SUBSCRIBE ch\r\n", "SET k v\r\nPUBLISH ch message\r\n", "message"], true),
        // It writes: with or without strict reads.
        (["BLPOP q 0\r\n", "RPUSH q element\r\n", "element"], false),
    ];
    for (words, strict) in asked {
        let [waits, writes, brings] = words.map(str::as_bytes);
        let mut alone = Alone::with_stack();
        alone.engine.settings.strict_reads.store(strict, Relaxed);
        let mut worker = alone.engine.keyspace.worker().expect("there is a place");
        let mut merger = worker.merger(wants::VALUES).expect("there is no other");
        let (mut reader, mut writer) = (alone.connect(), alone.connect());
        reader.write_all(waits).expect("it fits into the socket");
        (0..20).for_each(|_| alone.tick());
        come(&mut reader);
        alone.engine.set_withheld(true);
        alone.engine.set_safe(merger.poll(|_| ()).expect("it follows").complete);
        writer.write_all(writes).expect("it fits into the socket");
        while alone.worker.io.get(0).expect("it is there").unsent() == 0 {
            alone.tick();
            let early = come(&mut reader);
            assert!(early.is_empty(), "{}", String::from_utf8_lossy(&early));
        }
        alone.tick();
        assert!(come(&mut reader).is_empty() && come(&mut writer).is_empty());
        alone.engine.set_safe(merger.poll(|_| ()).expect("it follows").complete);
        alone.tick();
        let brought = come(&mut reader);
        assert!(brought.windows(brings.len()).any(|bytes| bytes == brings), "{brought:?}");
    }
}

/// CONFIG SET appendfsync always, in a transaction too: when it is answered replies wait, and what was answered before
/// is safe.
#[test]
fn always_is_answered_behind_what_was_answered_before() {
    let plain = ("CONFIG SET appendfsync always\r\n", "", "+OK\r\n");
    let exec = ("MULTI\r\nCONFIG SET appendfsync always\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n", "*1\r\n+OK\r\n");
    for ((asked, early, late), strict) in [(plain, true), (exec, true), (plain, false), (exec, false)] {
        let mut alone = Alone::with_stack();
        alone.engine.settings.strict_reads.store(strict, Relaxed);
        let mut worker = alone.engine.keyspace.worker().expect("there is a place");
        let mut merger = worker.merger(wants::VALUES).expect("there is no other");
        alone.engine.set_unsynced(1);
        let (mut writer, mut client) = (alone.connect(), alone.connect());
        writer.write_all(b"SET k v\r\n").expect("it fits into the socket");
        let mut answered = Vec::new();
        while answered.is_empty() {
            alone.tick();
            answered = come(&mut writer);
        }
        client.write_all(asked.as_bytes()).expect("it fits into the socket");
        let mut come_early = Vec::new();
        while come_early.len() < early.len() || alone.worker.io.get(1).expect("it is there").unsent() == 0 {
            alone.tick();
            come_early.append(&mut come(&mut client));
        }
        assert_eq!(String::from_utf8_lossy(&come_early), early, "strict: {strict}");
        writer.write_all(b"SET k w\r\n").expect("it fits into the socket");
        while alone.worker.io.get(0).expect("it is there").unsent() == 0 {
            alone.tick();
            assert!(come(&mut writer).is_empty(), "strict: {strict}");
        }
        alone.engine.set_unsynced(merger.poll(|_| ()).expect("it follows").complete + 1);
        alone.tick();
        assert_eq!(String::from_utf8_lossy(&come(&mut client)), late, "strict: {strict}");
        assert_eq!(come(&mut writer), b"+OK\r\n");
        // Where there is no log nothing waits.
        alone.engine.end_synced(false);
        client.write_all(asked.as_bytes()).expect("it fits into the socket");
        let mut all = Vec::new();
        while all.len() < early.len() + late.len() {
            alone.tick();
            all.append(&mut come(&mut client));
        }
    }
}

#[test]
fn a_channel_waits_and_others_go_on() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let ping = |channel: u8| [3, 0, 0, channel];
    let pong = |channel: u8| [&[0x83, 4, 0, channel], &b"PONG"[..]].concat();
    client.write_all(&[ping(0), ping(1), ping(2)].concat()).expect("it fits into the socket");
    while alone.clients() < 3 {
        alone.tick();
    }
    alone.tick();
    assert_eq!(come(&mut client), [pong(0), pong(1), pong(2)].concat());
    alone.engine.set_safe(4);
    hold(&mut alone, 5);
    client.write_all(&[ping(1), ping(2), ping(1), ping(0)].concat()).expect("it fits into the socket");
    alone.tick();
    assert_eq!(come(&mut client), [pong(2), pong(0)].concat());
    // What comes behind it on its channel waits too.
    client.write_all(&[ping(1), ping(2)].concat()).expect("it fits into the socket");
    alone.tick();
    assert_eq!(come(&mut client), pong(2));
    alone.engine.set_safe(5);
    alone.tick();
    assert_eq!(come(&mut client), pong(1).repeat(3));
    client.write_all(&ping(1)).expect("it fits into the socket");
    alone.tick();
    assert_eq!(come(&mut client), pong(1));
}

#[test]
fn who_leaves_gets_what_was_withheld() {
    for first in [&b"PING\r\n"[..], &[3, 0, 0, 0]] {
        let (mut alone, [mut client]) = Alone::with_clients();
        client.write_all(first).expect("it fits into the socket");
        let mut before = Vec::new();
        while before.is_empty() {
            alone.tick();
            before = come(&mut client);
        }
        alone.engine.set_safe(4);
        hold(&mut alone, 5);
        client.write_all(first).expect("it fits into the socket");
        alone.tick();
        client.shutdown(Shutdown::Write).expect("it is open");
        alone.tick();
        alone.tick();
        assert_eq!(come(&mut client), b"");
        assert_eq!(alone.clients(), 1);
        alone.engine.set_safe(5);
        let mut all = Vec::new();
        client.set_nonblocking(false).expect("it can be set");
        alone.ticks_until(0);
        client.read_to_end(&mut all).expect("it is sent and ended");
        assert_eq!(all, before);
    }
}

/// All that comes until the connection ends, or nothing more comes.
fn come_by(alone: &mut Alone, client: &mut UnixStream) -> (Vec<u8>, bool) {
    client.set_nonblocking(true).expect("it can be set");
    let mut all = Vec::new();
    for _ in 0..4 {
        alone.tick();
        match client.read_to_end(&mut all) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => return (all, true),
        }
    }
    (all, false)
}

/// A server whose only client has its later replies withheld, and has asked: nothing comes.
fn asked(first: &[u8], then: &[u8]) -> (Alone, UnixStream) {
    let (mut alone, [mut client]) = Alone::with_clients();
    client.write_all(first).expect("it fits into the socket");
    assert!(!come_by(&mut alone, &mut client).0.is_empty());
    alone.engine.set_withheld(true);
    alone.engine.set_safe(4);
    hold(&mut alone, 5);
    client.write_all(then).expect("it fits into the socket");
    assert_eq!(come_by(&mut alone, &mut client), (vec![], false));
    (alone, client)
}

#[test]
fn what_waits_in_vain_becomes_an_error_for_each_request() {
    let error = format!("-{}\r\n", Safe::lost_error().line());
    let get = b"SET k v\r\nGET k\r\nLRANGE l 0 -1\r\nCONFIG GET maxmemory\r\n";
    for (first, count) in [(&b"PING\r\n"[..], 4), (b"HELLO 3\r\n", 4)] {
        let (mut alone, mut client) = asked(first, get);
        alone.engine.lose_withheld();
        let (all, has_ended) = come_by(&mut alone, &mut client);
        assert_eq!(String::from_utf8(all).expect("it is text"), error.repeat(count));
        assert!(!has_ended);
        // What comes behind does not wait.
        client.write_all(b"GET k\r\n").expect("it fits into the socket");
        assert!(come_by(&mut alone, &mut client).0.starts_with(b"$1\r\nv"));
        // A new log begins: replies wait again.
        alone.engine.set_withheld(true);
        alone.engine.set_safe(7);
        hold(&mut alone, 8);
        client.write_all(b"GET k\r\n").expect("it fits into the socket");
        assert_eq!(come_by(&mut alone, &mut client).0, b"");
        alone.engine.set_safe(8);
        assert!(come_by(&mut alone, &mut client).0.starts_with(b"$1\r\nv"));
    }
}

#[test]
fn what_waits_in_vain_on_a_channel_becomes_an_error_there() {
    let (mut alone, mut client) = asked(&[3, 0, 0, 7], &[3, 0, 0, 7]);
    alone.engine.lose_withheld();
    let text = Safe::lost_error().line();
    let error = [&[0x80, 1, 0, 7][..], &(text.len() as u16).to_be_bytes(), text.as_bytes()].concat();
    assert_eq!(come_by(&mut alone, &mut client), (error, false));
    client.write_all(&[3, 0, 0, 7]).expect("it fits into the socket");
    assert_eq!(come_by(&mut alone, &mut client).0, [&[0x83, 4, 0, 7], &b"PONG"[..]].concat());
}

/// Several messages that came together wait on their channel, as one would: a WINDOW acts on them, and where they wait
/// in vain the connection stays.
#[test]
fn messages_wait_on_their_channel() {
    for is_lost in [false, true] {
        let mut alone = Alone::with_stack();
        let mut worker = alone.engine.keyspace.worker().expect("there is a place");
        let mut merger = worker.merger(wants::VALUES).expect("there is no other");
        let (mut reader, mut writer) = (alone.connect(), alone.connect());
        alone.engine.settings.strict_reads.store(true, Relaxed);
        for channel in 1..=5 {
            reader.write_all(&argv(channel, &[b"SUBSCRIBE", b"news"])).expect("it fits into the socket");
            assert!(!come_by(&mut alone, &mut reader).0.is_empty());
        }
        alone.engine.set_withheld(true);
        alone.engine.set_safe(merger.poll(|_| ()).expect("it follows").complete);
        writer
            .write_all(b"SET k v\r\nPUBLISH news one\r\nPUBLISH news two\r\n")
            .expect("it fits into the socket");
        assert!(come_by(&mut alone, &mut writer).0.is_empty());
        // Channel 2 is without credit from here on.
        let window = [0xFF, 3, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0];
        reader.write_all(&[&window[..], &[3, 0, 0, 7]].concat()).expect("it fits into the socket");
        assert_eq!(come_by(&mut alone, &mut reader), (vec![], false));
        if is_lost {
            alone.engine.lose_withheld();
        } else {
            alone.engine.set_safe(merger.poll(|_| ()).expect("it follows").complete);
        }
        let (all, has_ended) = come_by(&mut alone, &mut reader);
        let count = |word: &[u8]| all.windows(word.len()).filter(|bytes| *bytes == word).count();
        assert_eq!((count(b"one"), count(b"two"), has_ended), (4, 4, false), "{is_lost}");
        assert_eq!((count(b"PONG"), count(b"MISCONF")), if is_lost { (0, 1) } else { (1, 0) });
    }
}

#[test]
fn what_waits_in_vain_over_http_is_one_error_and_the_end() {
    let get = b"GET /ping HTTP/1.1\r\nHost: h\r\n\r\n";
    let (mut alone, mut client) = asked(get, &get.repeat(2));
    alone.engine.lose_withheld();
    let (all, has_ended) = come_by(&mut alone, &mut client);
    let (answers, is_whole) = answers(&all);
    assert!(is_whole && answers.len() == 1, "{}", String::from_utf8_lossy(&all));
    assert_eq!(answers[0].status, 503);
    assert!(answers[0].text().contains("MISCONF the log could not be written"), "{}", answers[0].text());
    assert!(has_ended);
}

/// In RESP2 messages look as replies do: a subscriber's connection ends.
#[test]
fn where_it_cannot_be_said_the_connection_ends() {
    let (mut alone, mut client) = asked(b"SUBSCRIBE c\r\n", b"PING\r\n");
    alone.engine.lose_withheld();
    assert_eq!(come_by(&mut alone, &mut client), (vec![], true));
}
