//! Owns: attacks on TLS: what is no handshake, half of one, thousands of them, and records that are torn. Does not own:
//! what passes through a session that stands.

use weft_client::{Incoming, Protocol, Reply};

use crate::hostile::{Hostile, Outcome, Trouble, wrong};
use crate::words::{as_resp, mutate};

/// The first thing that a client says.
fn hello(hostile: &mut Hostile) -> Result<Vec<u8>, Trouble> {
    let mut bytes = Vec::new();
    let mut session = hostile.session()?;
    while session.wants_write() {
        session.write_tls(&mut bytes)?;
    }
    Ok(bytes)
}

/// Records that are none, and first messages with some bytes changed.
pub(super) fn garbage(hostile: &mut Hostile) -> Outcome {
    for _ in 0..hostile.rng.between(1, 10) {
        let bytes = if hostile.rng.one_in(2) {
            let len = hostile.rng.between(1, 20_000);
            let mut bytes = hostile.rng.bytes(len);
            bytes[0] = 0x16;
            bytes
        } else {
            let mut bytes = hello(hostile)?;
            mutate(&mut hostile.rng, &mut bytes);
            if let Some(first) = bytes.first_mut() {
                *first = 0x16;
            }
            bytes
        };
        let mut line = hostile.plain()?;
        let sent = line.send(&bytes);
        line.drain();
        hostile.end(line);
        sent?;
    }
    Ok(())
}

/// Handshakes that end, stall or go mad at a random place.
pub(super) fn truncated(hostile: &mut Hostile) -> Outcome {
    let mut lines = Vec::new();
    for _ in 0..hostile.rng.between(1, 30) {
        let bytes = hello(hostile)?;
        let cut = hostile.rng.between(1, bytes.len());
        let mut line = hostile.plain()?;
        line.send(&bytes[..cut])?;
        if hostile.rng.one_in(4) {
            line.drain();
            let noise = hostile.rng.bytes(300);
            let _ = line.send(&noise);
        }
        lines.push(line);
    }
    hostile.end_all(lines);
    Ok(())
}

/// Whole handshakes, as fast as they go.
pub(super) fn flood(hostile: &mut Hostile) -> Outcome {
    let count = hostile.rng.between(1, 60);
    for _ in 0..count {
        let line = hostile.tls()?;
        hostile.end(line);
        if hostile.is_over() {
            break;
        }
    }
    Ok(())
}

/// First messages of whoever is gone before they are answered.
pub(super) fn reset(hostile: &mut Hostile) -> Outcome {
    for _ in 0..hostile.rng.between(20, 400) {
        let bytes = hello(hostile)?;
        let mut line = hostile.plain()?;
        line.send(&bytes)?;
        hostile.count(&line);
        line.reset();
        if hostile.is_over() {
            break;
        }
    }
    Ok(())
}

/// A session that stands: its keys change time and again, an answer comes nevertheless; then a record that is none.
pub(super) fn torn(hostile: &mut Hostile) -> Outcome {
    let mut line = hostile.tls()?;
    for _ in 0..hostile.rng.between(1, 40) {
        if let Some(session) = line.session() {
            // TLS 1.2 has no such thing.
            let _ = session.refresh_traffic_keys();
        }
        line.send(&as_resp(&["AUTH", "nobody", "nothing"]))?;
        match line.frame(Protocol::Resp2)? {
            Incoming::Reply { reply: Reply::Error(_), .. } => {}
            other => return wrong(format!("behind a change of keys comes {other:?}")),
        }
    }
    let noise = match hostile.rng.below(3) {
        0 => b"*1\r\n$4\r\nPING\r\n".to_vec(),
        1 => [&[0x17, 3, 3, 0, 40][..], &hostile.rng.bytes(40)].concat(),
        _ => [&[0x17, 3, 3, 0xFF, 0xFF][..], &hostile.rng.bytes(400)].concat(),
    };
    let sent = line.send_raw(&noise);
    let said = line.until_closed()?;
    if said.windows(4).any(|word| word == b"PONG") {
        return wrong("what is not encrypted is answered under TLS");
    }
    hostile.count(&line);
    Ok(sent?)
}
