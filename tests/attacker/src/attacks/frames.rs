//! Owns: attacks by what stands in the bytes. Does not own: sizes (`limits`), control frames (`channels`).

use weft_client::{Incoming, Protocol, Reply};

use crate::hostile::{Hostile, Line, Outcome, is_busy, wrong};
use crate::words;

/// First bytes that choose a wire, and some that choose none.
const FIRST: [u8; 14] = [0x00, 0x03, 0x07, 0x08, 0x16, b'*', b'*', b'G', b'P', b'$', 0x80, 0xF0, 0xFF, b'\r'];
/// Channels of random requests.
const CHANNELS: usize = 40;

/// A connection of a random kind, authenticated or not.
fn any_line(hostile: &mut Hostile) -> Result<Line, crate::hostile::Trouble> {
    match hostile.rng.below(4) {
        0 => hostile.line(),
        1 => hostile.authenticated(),
        _ => hostile.authenticated_respb(),
    }
}

/// Bytes that mean nothing, behind a first one that may.
pub(super) fn random(hostile: &mut Hostile) -> Outcome {
    for _ in 0..hostile.rng.between(1, 8) {
        let mut line = any_line(hostile)?;
        let len = if hostile.rng.one_in(10) { 100_000 } else { hostile.rng.between(0, 3000) };
        let mut bytes = hostile.rng.bytes(len);
        bytes.insert(0, *hostile.rng.pick(&FIRST));
        let sent = line.send(&bytes);
        line.drain();
        hostile.end(line);
        sent?;
    }
    Ok(())
}

/// Requests of all commands, one behind the other, by clients of one connection.
fn some_requests(hostile: &mut Hostile, respb: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..hostile.rng.between(10, 200) {
        let words = words::request(&mut hostile.rng);
        if respb {
            let channel = hostile.rng.below(CHANNELS) as u16;
            bytes.extend(words::as_respb(&mut hostile.rng, channel, &words));
        } else {
            bytes.extend(words::as_resp(&words));
        }
    }
    bytes
}

/// A connection that speaks RESP or RESPB.
fn speaking(hostile: &mut Hostile) -> Result<(Line, bool), crate::hostile::Trouble> {
    let respb = hostile.rng.one_in(2);
    let line = if respb { hostile.authenticated_respb()? } else { hostile.authenticated()? };
    Ok((line, respb))
}

/// Sends bytes in some pieces, and reads now and then.
fn send_in_pieces(hostile: &mut Hostile, line: &mut Line, bytes: &[u8]) -> Outcome {
    let mut rest = bytes;
    while !rest.is_empty() && !hostile.is_over() {
        let len = hostile.rng.between(1, rest.len());
        line.send(&rest[..len])?;
        rest = &rest[len..];
        if hostile.rng.one_in(4) {
            line.drain();
        }
    }
    line.drain();
    Ok(())
}

pub(super) fn requests(hostile: &mut Hostile) -> Outcome {
    let (mut line, respb) = speaking(hostile)?;
    let bytes = some_requests(hostile, respb);
    let done = send_in_pieces(hostile, &mut line, &bytes);
    hostile.end(line);
    done
}

pub(super) fn mutated(hostile: &mut Hostile) -> Outcome {
    let (mut line, respb) = speaking(hostile)?;
    let mut bytes = some_requests(hostile, respb);
    words::mutate(&mut hostile.rng, &mut bytes);
    let done = send_in_pieces(hostile, &mut line, &bytes);
    hostile.end(line);
    done
}

/// Right requests, byte by byte: each is answered.
pub(super) fn crumbs(hostile: &mut Hostile) -> Outcome {
    let (mut line, respb) = speaking(hostile)?;
    let texts: Vec<String> =
        (0..hostile.rng.between(1, 20)).map(|_| hostile.rng.next().to_string()).collect();
    for text in &texts {
        let words = ["ECHO", text];
        let bytes = if respb { words::as_respb(&mut hostile.rng, 3, &words) } else { words::as_resp(&words) };
        for byte in bytes {
            line.send(&[byte])?;
        }
    }
    let protocol = if respb { Protocol::Respb } else { Protocol::Resp2 };
    for text in texts {
        match line.frame(protocol)? {
            Incoming::Reply { reply: Reply::Bulk(got), .. } if got == text.as_bytes() => {}
            Incoming::Reply { reply, .. } if is_busy(&reply) => {}
            other => return wrong(format!("ECHO {text} in pieces of one byte is answered {other:?}")),
        }
    }
    hostile.end(line);
    Ok(())
}
