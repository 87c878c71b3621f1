//! What clients are told that they have subscribed to.

use std::io::Write;
use std::os::unix::net::UnixStream;

use weft_protocol::reply::Passed;
use weft_protocol::respb::reply::ReplyKind;
use weft_protocol::respb::{Control, ReplyDecoder};
use weft_protocol::{Limits, Outcome};
use weft_store::{Rng, XorShift};

use super::{Alone, argv, channels, received, sends};

/// Published before and told behind the confirmation it would be taken for another reply.
#[test]
fn nobody_hears_what_he_has_left() {
    for (join, leave, publish, kind) in [
        ("SUBSCRIBE a b", "UNSUBSCRIBE a", "PUBLISH", "\r\nmessage\r\n$1\r\na\r\n"),
        ("SSUBSCRIBE a b", "SUNSUBSCRIBE a", "SPUBLISH", "\r\nsmessage\r\n$1\r\na\r\n"),
        ("PSUBSCRIBE a* b*", "PUNSUBSCRIBE a*", "PUBLISH", "\r\npmessage\r\n$2\r\na*\r\n"),
        ("SUBSCRIBE a b", "RESET", "PUBLISH", "\r\nmessage\r\n"),
    ] {
        let (mut alone, [mut says, mut hears]) = Alone::with_clients();
        sends(&mut alone, &mut hears, format!("{join}\r\n").as_bytes());
        // Who has sent nothing yet is read from behind the others.
        sends(&mut alone, &mut says, b"PING\r\n");
        // One batch, and what is published comes first.
        says.write_all(format!("{publish} a 1\r\n{publish} b 2\r\n").as_bytes()).expect("it is sent");
        sends(&mut alone, &mut hears, format!("{leave}\r\n").as_bytes());
        assert_eq!(received(&mut says), b"+PONG\r\n:1\r\n:1\r\n", "{publish} ran before {leave}");
        let heard = String::from_utf8(received(&mut hears)).expect("it is text");
        assert!(!heard.contains(kind), "{leave}: {heard}");
        assert_eq!(heard.contains("\r\n2\r\n"), leave != "RESET", "{leave}: {heard}");
    }
}

const CHANNELS: usize = 24;

/// What a client of RESPB has got on one of its channels.
#[derive(Clone, Default)]
struct Heard {
    /// The numbers of the messages.
    numbers: Vec<usize>,
    /// Bytes of all frames.
    bytes: i64,
    /// Slices of one that has not all come.
    slices: Vec<u8>,
    /// Below so many bytes a frame may begin, if there is a limit.
    credit: Option<i64>,
}

/// Takes what has come. Of each channel only what its credit allows may have been begun.
fn hear(heard: &mut [Heard], rest: &mut Vec<u8>, came: &[u8]) {
    rest.extend_from_slice(came);
    let mut decoder = ReplyDecoder::new(Limits::DEFAULT);
    let mut at = 0;
    while let Outcome::Complete(frame) = decoder.decode(&rest[at..], &mut Passed) {
        let channel = &mut heard[usize::from(frame.channel)];
        let (bytes, credit) = (channel.bytes, channel.credit);
        assert!(credit.is_none_or(|credit| bytes < credit), "{}: {bytes} of {credit:?}", frame.channel);
        channel.bytes += frame.len as i64;
        let whole = match frame.kind {
            ReplyKind::Control(Control::Fragment { last, slice }) => {
                channel.slices.extend_from_slice(slice);
                if last { std::mem::take(&mut channel.slices) } else { Vec::new() }
            }
            _ => rest[at..at + frame.len].to_vec(),
        };
        let text = String::from_utf8_lossy(&whole);
        if let Some((_, number)) = text.split_once("number ") {
            assert_eq!(whole[2..4], frame.channel.to_be_bytes());
            channel.numbers.push(number.trim_end_matches('x').parse().expect("it is a number"));
        }
        at += frame.len;
    }
    rest.drain(..at);
}

/// The same, until no more comes.
fn hear_all(alone: &mut Alone, client: &mut UnixStream, heard: &mut [Heard], rest: &mut Vec<u8>) {
    let mut came = vec![0];
    while !came.is_empty() {
        (0..4).for_each(|_| alone.tick());
        came = received(client);
        hear(heard, rest, &came);
    }
}

fn window(channel: usize, more: u32) -> Vec<u8> {
    let (head, channel) = ([0xFF, 3], (channel as u16).to_be_bytes());
    [&head[..], &channel, &4_u32.to_be_bytes(), &more.to_be_bytes()].concat()
}

fn publish(number: usize, len: usize) -> Vec<u8> {
    let text = format!("number {number}{}", "x".repeat(len));
    let publish = format!("*3\r\n$7\r\nPUBLISH\r\n$4\r\nnews\r\n${}\r\n{text}\r\n", text.len());
    publish.into_bytes()
}

/// What is told together is no frame of its own.
#[test]
fn slices_are_of_one_message() {
    let (mut alone, [mut hears, mut first, mut second]) = Alone::with_clients();
    sends(&mut alone, &mut hears, &argv(0, &[b"HELLO", b"3", b"CAPS", b"1"]));
    sends(&mut alone, &mut hears, &argv(1, &[b"SUBSCRIBE", b"news"]));
    // Who has sent nothing yet is read from behind the others.
    for client in [&mut first, &mut second] {
        sends(&mut alone, client, b"PING\r\n");
    }
    first.write_all(&publish(0, 10_000)).expect("it fits into the socket");
    second.write_all(&publish(1, 60_000)).expect("it fits into the socket");
    let (mut heard, mut rest) = (vec![Heard::default(); 2], Vec::new());
    hear_all(&mut alone, &mut hears, &mut heard, &mut rest);
    assert_eq!(heard[1].numbers.len(), 2, "{:?}", heard[1].numbers);
}

/// Messages of all sizes, to channels of which some have credit and some get it when much waits. Each channel hears all
/// in order, and without credit nothing is begun.
#[test]
fn channels_that_lag_hear_all_in_order_and_within_their_credit() {
    const MESSAGES: usize = 150;
    for (seed, caps) in [(1, b"1"), (2, b"0"), (3, b"1"), (4, b"0")] {
        let mut dice = XorShift::new(seed);
        let (mut alone, [mut hears, mut says]) = Alone::with_clients();
        let (mut heard, mut rest) = (vec![Heard::default(); CHANNELS], Vec::new());
        sends(&mut alone, &mut hears, &argv(0, &[b"HELLO", b"3", b"CAPS", caps]));
        for channel in 1..CHANNELS as u16 {
            sends(&mut alone, &mut hears, &argv(channel, &[b"SUBSCRIBE", b"news"]));
        }
        let (mut said, mut most) = (0, 0);
        while said < MESSAGES {
            let mut batch = Vec::new();
            for _ in 0..=dice.below(9) {
                let long = [0, 100, 1000, 20_000, 70_000][dice.below(5) as usize];
                let len = if dice.below(4) == 0 { long } else { dice.below(300) as usize };
                batch.extend(publish(said, len));
                said += 1;
            }
            sends(&mut alone, &mut says, &batch);
            received(&mut says);
            most = most.max(channels(&mut alone).queued_bytes());
            let channel = 1 + dice.below(CHANNELS as u32 / 2) as usize;
            match (dice.below(6), heard[channel].credit) {
                (0, None) => {
                    sends(&mut alone, &mut hears, &window(channel, 0));
                    hear(&mut heard, &mut rest, &received(&mut hears));
                    // What it has begun is in its output.
                    let connection = alone.worker.io.get(0).expect("it is there");
                    let begun = &connection.output.to_vec()[connection.sent..];
                    let mut ahead = heard.clone();
                    hear(&mut ahead, &mut rest.clone(), begun);
                    heard[channel].credit = Some(ahead[channel].bytes);
                }
                (0 | 1, Some(credit)) => {
                    let more = dice.below(3000);
                    heard[channel].credit = Some(credit + i64::from(more));
                    sends(&mut alone, &mut hears, &window(channel, more));
                }
                (2, _) => hear(&mut heard, &mut rest, &received(&mut hears)),
                (3, _) => hear_all(&mut alone, &mut hears, &mut heard, &mut rest),
                _ => {}
            }
        }
        assert!(most > 1 << 20, "seed {seed}: no more than {most} bytes waited");
        for (channel, heard) in heard.iter_mut().enumerate() {
            if let Some(credit) = &mut heard.credit {
                *credit += 1 << 30;
                hears.write_all(&window(channel, 1 << 30)).expect("it fits into the socket");
            }
        }
        hear_all(&mut alone, &mut hears, &mut heard, &mut rest);
        let all: Vec<usize> = (0..MESSAGES.max(said)).collect();
        for (channel, heard) in heard.iter().enumerate().skip(1) {
            assert_eq!(heard.numbers, all, "seed {seed}, channel {channel}");
        }
        assert_eq!((channels(&mut alone).queued_bytes(), rest.len()), (0, 0), "seed {seed}");
    }
}
