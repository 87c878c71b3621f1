//! Owns: attacks by size: at a limit, which must be served, and one past it, which must not. Does not own: the numbers,
//! which the server's documentation has.

use weft_client::{Incoming, Protocol, Reply};
use weft_protocol::respb::frame;

use crate::hostile::{Hostile, Line, Outcome, Trouble, is_late, wrong};
use crate::server::STRING_BYTES_MAX;
use crate::words::{as_resp, frame as typed, long_frame};

/// What a client may send in one request before it has authenticated.
const UNAUTHENTICATED_BYTES_MAX: usize = 16 << 10;
const UNAUTHENTICATED_ARGUMENTS_MAX: usize = 16;
const UNAUTHENTICATED_CHANNELS_MAX: u16 = 16;
const INLINE_BYTES_MAX: usize = 64 << 10;

/// It is answered, and the connection goes on.
fn is_served(line: &mut Line, protocol: Protocol, what: &str) -> Outcome {
    match line.frame(protocol) {
        Ok(Incoming::Reply { .. }) => Ok(()),
        Ok(other) => wrong(format!("{what} is answered {other:?}")),
        Err(trouble) => wrong(format!("{what} must be served: {trouble:?}")),
    }
}

/// The connection ends, and nothing of the request was done.
pub(super) fn is_refused(line: &mut Line, what: &str) -> Outcome {
    let said = line.until_closed()?;
    if said.windows(4).any(|word| word == b"PONG") {
        wrong(format!("{what} must be refused"))
    } else {
        Ok(())
    }
}

fn auth_of(len: usize) -> Vec<u8> {
    // Digits of the length: the frame is to have so many bytes.
    let head = as_resp(&["AUTH", ""]).len() - 1;
    let password = (0..=len).rev().find(|password| head + password.to_string().len() + password <= len);
    as_resp(&["AUTH", &"p".repeat(password.unwrap_or(0))])
}

pub(super) fn before_authentication(hostile: &mut Hostile) -> Outcome {
    for (past, what) in [(0, "a request at the limit before AUTH"), (64, "one past it")] {
        let mut line = hostile.line()?;
        let sent = line.send(&auth_of(UNAUTHENTICATED_BYTES_MAX + past));
        if past == 0 {
            is_served(&mut line, Protocol::Resp2, what)?
        } else {
            is_refused(&mut line, what)?
        }
        hostile.count(&line);
        sent.or_else(|error| if past == 0 { Err(error) } else { Ok(()) })?;
    }
    for (count, served) in [(UNAUTHENTICATED_ARGUMENTS_MAX, true), (UNAUTHENTICATED_ARGUMENTS_MAX + 1, false)]
    {
        let mut line = hostile.line()?;
        line.send(&as_resp(&vec!["PING"; count]))?;
        let what = format!("{count} arguments before AUTH");
        if served {
            is_served(&mut line, Protocol::Resp2, &what)?
        } else {
            is_refused(&mut line, &what)?
        }
        hostile.count(&line);
    }
    channels_before_authentication(hostile)
}

fn channels_before_authentication(hostile: &mut Hostile) -> Outcome {
    let mut line = hostile.line()?;
    for channel in 0..=UNAUTHENTICATED_CHANNELS_MAX {
        line.send(&typed(channel, &["PING"]))?;
        match line.frame(Protocol::Respb)? {
            Incoming::Reply { channel: got, reply: Reply::Error(_), .. }
                if got == channel && channel < UNAUTHENTICATED_CHANNELS_MAX => {}
            Incoming::Close { channel: got, .. }
                if got == channel && channel == UNAUTHENTICATED_CHANNELS_MAX => {}
            late if is_late(&late) => return Err(Trouble::Cut(std::io::ErrorKind::TimedOut.into())),
            other => return wrong(format!("channel {channel} before AUTH is answered {other:?}")),
        }
    }
    hostile.end(line);
    Ok(())
}

/// Channels that are refused before AUTH, each in another page of numbers.
pub(super) fn refused_far_apart(hostile: &mut Hostile) -> Outcome {
    let mut lines = Vec::new();
    for _ in 0..hostile.rng.between(1, 30) {
        let mut line = hostile.plain()?;
        let step = *hostile.rng.pick(&[256, 255, 64]);
        let bytes: Vec<u8> =
            (0..=u16::MAX).step_by(step).flat_map(|channel| typed(channel, &["PING"])).collect();
        // It may be closed before all of it is sent.
        let _ = line.send(&bytes);
        line.drain();
        lines.push(line);
        if hostile.is_over() {
            break;
        }
    }
    hostile.end_all(lines);
    Ok(())
}

pub(super) fn after_authentication(hostile: &mut Hostile) -> Outcome {
    let text = "x".repeat(STRING_BYTES_MAX + 1);
    for (len, served) in [(STRING_BYTES_MAX, true), (STRING_BYTES_MAX + 1, false)] {
        let mut line = hostile.authenticated()?;
        let sent = line.send(&as_resp(&["ECHO", &text[..len]]));
        let what = format!("an argument of {len} bytes");
        if served {
            sent?;
            is_served(&mut line, Protocol::Resp2, &what)?;
        } else {
            is_refused(&mut line, &what)?;
        }
        hostile.count(&line);
    }
    for past in [false, true] {
        let mut line = hostile.authenticated()?;
        let len = if past { INLINE_BYTES_MAX + 2 } else { INLINE_BYTES_MAX - 2 };
        let mut bytes = format!("PING {}", "y".repeat(len - 5)).into_bytes();
        bytes.extend_from_slice(b"\r\n");
        let sent = line.send(&bytes);
        if past {
            is_refused(&mut line, "an inline command past the limit")?;
        } else {
            sent?;
            is_served(&mut line, Protocol::Resp2, "an inline command at the limit")?;
        }
        hostile.count(&line);
    }
    // A key as long as a typed frame can say, and longer ones as ARGV.
    let mut line = hostile.authenticated_respb()?;
    for len in [65_535, 65_536, 70_000] {
        line.send(&typed(1, &["GET", &format!("a:{}", "k".repeat(len - 2))]))?;
        is_served(&mut line, Protocol::Respb, "a long key")?;
    }
    hostile.end(line);
    Ok(())
}

/// Lengths and counts of what never comes.
pub(super) fn announced(hostile: &mut Hostile) -> Outcome {
    let counts = ["2147483647", "1048577", "-2", "99999999999999999999", "4294967296", "1000000", "0", "-1"];
    let count = *hostile.rng.pick(&counts);
    let head = match hostile.rng.below(4) {
        0 => format!("*{count}\r\n").into_bytes(),
        1 => format!("*2\r\n$4\r\nECHO\r\n${count}\r\n").into_bytes(),
        2 => format!("*{count}\r\n$1\r\na\r\n").into_bytes(),
        _ => {
            let opcode =
                *hostile.rng.pick(&[frame::ARGV, 0xF002, 0xF777, frame::CLOSE, 0xFF7F, frame::PASSTHROUGH]);
            let len =
                *hostile.rng.pick(&[u32::MAX, i32::MAX as u32, 1 << 30, (1 << 30) - 8, 1 << 20, 100, 3]);
            long_frame(opcode, 5, len, &[0; 10])
        }
    };
    let before = hostile.rng.one_in(2);
    let mut lines = Vec::new();
    for _ in 0..hostile.rng.between(1, 30) {
        let is_respb = head[0] != b'*';
        let mut line = match (before, is_respb) {
            (true, _) => hostile.plain()?,
            (false, true) => hostile.authenticated_respb()?,
            (false, false) => hostile.authenticated()?,
        };
        line.send(&head)?;
        lines.push(line);
    }
    let filling = vec![b'z'; 32 << 10];
    while !hostile.is_over() && !lines.is_empty() {
        let at = hostile.rng.below(lines.len());
        if lines[at].send(&filling).is_err() {
            let line = lines.swap_remove(at);
            hostile.end(line);
        }
    }
    hostile.end_all(lines);
    Ok(())
}
