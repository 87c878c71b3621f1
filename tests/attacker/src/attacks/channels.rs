//! Owns: attacks by RESPB's channels. Does not own: what their requests say.

use std::collections::HashMap;

use weft_client::{Incoming, Protocol, Reply};
use weft_protocol::respb::{Control, frame};

use crate::hostile::{Hostile, Line, Outcome, is_busy, wrong};
use crate::words::{as_resp, control, frame as typed, long_frame, request};

/// Channels of the attack by control frames.
const FEW: u16 = 12;

fn close(channel: u16) -> Vec<u8> {
    let mut out = Vec::new();
    Control::Close { code: 0, reason: b"" }.encode(channel, &mut out);
    out
}

/// Puts a channel into one of the states that there are.
fn into_a_state(hostile: &mut Hostile, channel: u16) -> Vec<u8> {
    let words: &[&[&str]] = match hostile.rng.below(9) {
        0 => &[&["BLPOP", "a:nothing", "0"]],
        1 => &[&["BLPOP", "a:nothing", "0.05"], &["GET", "a:1"]],
        2 => &[&["WATCH", "a:1"], &["MULTI"], &["SET", "a:1", "v"]],
        3 => &[&["SUBSCRIBE", "a:news", "a:more"]],
        4 => &[&["CLIENT", "TRACKING", "ON"], &["GET", "a:1"]],
        5 => &[&["XREAD", "BLOCK", "0", "STREAMS", "a:stream", "$"], &["PING"], &["PING"]],
        6 => &[&["RESET"], &["PING"]],
        7 => &[&["HELLO", "3"], &["PING"]],
        _ => &[&["QUIT"]],
    };
    words.iter().flat_map(|words| typed(channel, words)).collect()
}

/// Control frames between requests, on channels in every state, some of them with credit only.
pub(super) fn controls(hostile: &mut Hostile) -> Outcome {
    let mut line = if hostile.rng.one_in(5) { hostile.line()? } else { hostile.authenticated_respb()? };
    let mut bytes = typed(0, &["HELLO", "3", "CAPS", "1"]);
    while !hostile.is_over() {
        for _ in 0..hostile.rng.between(1, 60) {
            let channel = hostile.rng.below(usize::from(FEW)) as u16;
            match hostile.rng.below(5) {
                0 | 1 => bytes.extend(control(&mut hostile.rng, FEW)),
                2 => bytes.extend(into_a_state(hostile, channel)),
                3 => {
                    let words = request(&mut hostile.rng);
                    bytes.extend(typed(channel, &words));
                }
                // One that is decoded in the connection's own buffer.
                _ if hostile.rng.one_in(10) => {
                    bytes.extend(typed(channel, &["SET", "a:large", &"x".repeat(100_000)]));
                }
                _ => bytes.extend(close(channel)),
            }
        }
        let cut = hostile.rng.between(1, bytes.len());
        if line.send(&bytes[..cut]).is_err() || line.drain() {
            break;
        }
        bytes.drain(..cut);
    }
    hostile.end(line);
    Ok(())
}

/// Channels opened by the thousand; each is answered, and each CLOSE too, unless all end at once.
pub(super) fn thousands(hostile: &mut Hostile) -> Outcome {
    let mut line = hostile.authenticated_respb()?;
    let count = hostile.rng.between(100, 4000) as u16;
    let bytes: Vec<u8> = (1..=count).flat_map(|channel| typed(channel, &["PING"])).collect();
    line.send(&bytes)?;
    if hostile.rng.one_in(3) {
        hostile.end(line);
        return Ok(());
    }
    expect_of_each(&mut line, count, |incoming| match incoming {
        Incoming::Reply { channel, reply: Reply::Simple(text), .. } if text == b"PONG" => Some(channel),
        Incoming::Reply { channel, reply, .. } if is_busy(&reply) => Some(channel),
        _ => None,
    })?;
    let bytes: Vec<u8> = (1..=count).flat_map(close).collect();
    line.send(&bytes)?;
    expect_of_each(&mut line, count, |incoming| match incoming {
        Incoming::Close { channel, code: 0, .. } => Some(channel),
        _ => None,
    })?;
    hostile.end(line);
    Ok(())
}

/// One frame of that kind for each channel.
fn expect_of_each(line: &mut Line, count: u16, channel_of: impl Fn(Incoming) -> Option<u16>) -> Outcome {
    let mut seen: HashMap<u16, ()> = HashMap::new();
    for _ in 0..count {
        let incoming = line.frame(Protocol::Respb)?;
        let text = format!("{incoming:?}");
        let Some(channel) = channel_of(incoming) else {
            return wrong(format!("of {count} channels: {text}"));
        };
        if channel == 0 || channel > count || seen.insert(channel, ()).is_some() {
            return wrong(format!("channel {channel} is answered twice, or was never opened"));
        }
    }
    Ok(())
}

/// Channels that wait, queue and owe, and are closed, cancelled or left with it.
pub(super) fn waiting(hostile: &mut Hostile) -> Outcome {
    let mut line = hostile.authenticated_respb()?;
    let count = hostile.rng.between(10, 500) as u16;
    let mut bytes = Vec::new();
    for channel in 1..=count {
        bytes.extend(typed(channel, &["BLPOP", "a:nothing", "0"]));
        for _ in 0..hostile.rng.below(4) {
            bytes.extend(typed(channel, &["SET", "a:held", &"h".repeat(2000)]));
        }
        match hostile.rng.below(4) {
            0 => bytes.extend(close(channel)),
            1 => bytes.extend(long_frame(frame::CANCEL, channel, 4, &0_u32.to_be_bytes())),
            2 => bytes.extend(long_frame(frame::WINDOW, channel, 4, &[0, 0, 0, 1])),
            _ => {}
        }
    }
    let sent = line.send(&bytes);
    line.drain();
    hostile.end(line);
    Ok(sent?)
}

/// Thousands of channels that wait for the same key, and all end in one moment: by their time, an error, a reset, or
/// values that come for them one by one or together.
pub(super) fn queue(hostile: &mut Hostile) -> Outcome {
    let mut line = hostile.authenticated_respb()?;
    let count = hostile.rng.between(500, 6000) as u16;
    let key = format!("a:queue:{}", hostile.rng.next());
    let time = *hostile.rng.pick(&["0", "0.2", "0.5"]);
    let bytes: Vec<u8> = (1..=count).flat_map(|channel| typed(channel, &["BLPOP", &key, time])).collect();
    line.send(&bytes)?;
    match hostile.rng.below(4) {
        // No opcode: the connection goes away.
        0 => line.send(&[0x90, 0, 0, 0])?,
        1 => {
            let mut other = hostile.authenticated()?;
            let values = vec!["v"; 1000];
            other.send(&as_resp(&[&["RPUSH", &key][..], &values].concat()))?;
            other.send(&as_resp(&["RPUSH", &key, "v"]).repeat(200))?;
            other.drain();
            other.send(&as_resp(&["DEL", &key]))?;
            other.drain();
            hostile.end(other);
        }
        2 => {
            hostile.count(&line);
            line.reset();
            return Ok(());
        }
        _ => {}
    }
    line.drain();
    hostile.end(line);
    Ok(())
}
