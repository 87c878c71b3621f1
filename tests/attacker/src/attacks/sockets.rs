//! Owns: attacks by how sockets are used: slowly, half, in numbers, or ended at the wrong time. Does not own: TLS.

use weft_client::{Incoming, Protocol, Reply};

use crate::hostile::{Hostile, Outcome, Trouble, is_busy, wrong};
use crate::words::{as_resp, as_respb, frame as typed};

/// A value that a reply of some length has.
const LARGE_BYTES: usize = 500_000;

/// Large replies that nobody reads, until the server has enough or the round is over.
pub(super) fn slow_readers(hostile: &mut Hostile) -> Outcome {
    let mut lines = Vec::new();
    for _ in 0..hostile.rng.between(1, 4) {
        let respb = hostile.rng.one_in(2);
        let mut line = if respb { hostile.authenticated_respb()? } else { hostile.authenticated()? };
        let (value, key) = ("r".repeat(LARGE_BYTES), "a:read");
        let (set, get) = if respb {
            (typed(1, &["SET", key, &value]), typed(1, &["GET", key]))
        } else {
            (as_resp(&["SET", key, &value]), as_resp(&["GET", key]))
        };
        line.send(&set)?;
        for _ in 0..hostile.rng.between(10, 200) {
            if line.send(&get).is_err() {
                break;
            }
        }
        lines.push(line);
    }
    while !hostile.is_over() {
        let at = hostile.rng.below(lines.len());
        // A little is read now and then, so that the server goes on.
        if hostile.rng.one_in(20) {
            lines[at].drain();
        }
        std::thread::sleep(crate::server::LOOK);
    }
    hostile.end_all(lines);
    Ok(())
}

/// Requests that come a byte at a time, on many connections at once, and most never end.
pub(super) fn slow_writers(hostile: &mut Hostile) -> Outcome {
    let mut lines = Vec::new();
    for _ in 0..hostile.rng.between(10, 60) {
        let mut line = if hostile.rng.one_in(2) { hostile.plain()? } else { hostile.authenticated()? };
        line.send(b"*3\r\n$3\r\nSET\r\n$3\r\na:1\r\n$300000\r\n")?;
        lines.push(line);
    }
    while !hostile.is_over() && !lines.is_empty() {
        let at = hostile.rng.below(lines.len());
        let len = if hostile.rng.one_in(10) { 20_000 } else { 1 };
        if lines[at].send(&vec![b'w'; len]).is_err() {
            let line = lines.swap_remove(at);
            hostile.end(line);
        }
        std::thread::yield_now();
    }
    hostile.end_all(lines);
    Ok(())
}

/// What was sent before the end of a direction is answered, all of it, and then the other direction ends.
pub(super) fn half_closed(hostile: &mut Hostile) -> Outcome {
    let respb = hostile.rng.one_in(2);
    let mut line = if respb { hostile.authenticated_respb()? } else { hostile.authenticated()? };
    let count = hostile.rng.between(1, 500);
    let mut bytes = Vec::new();
    for at in 0..count {
        let words = ["ECHO".to_string(), format!("half {at}")];
        bytes.extend(if respb { as_respb(&mut hostile.rng, 2, &words) } else { as_resp(&words) });
    }
    let is_cut = hostile.rng.one_in(3);
    if is_cut {
        bytes.pop();
    }
    line.send(&bytes)?;
    line.end_sending();
    let protocol = if respb { Protocol::Respb } else { Protocol::Resp2 };
    for at in 0..count - usize::from(is_cut) {
        let wanted = format!("half {at}");
        match line.frame(protocol) {
            Ok(Incoming::Reply { reply: Reply::Bulk(text), .. }) if text == wanted.as_bytes() => {}
            Ok(Incoming::Reply { reply, .. }) if is_busy(&reply) => {}
            Err(Trouble::Cut(_)) if hostile.target.pauses => {
                hostile.count(&line);
                return Ok(());
            }
            other => return wrong(format!("request {at} of {count} before the end: {other:?}")),
        }
    }
    match line.frame(protocol) {
        Err(Trouble::Cut(_)) => {}
        other => return wrong(format!("behind the last answer comes {other:?}")),
    }
    hostile.count(&line);
    Ok(())
}

pub(super) fn reset(hostile: &mut Hostile) -> Outcome {
    for _ in 0..hostile.rng.between(1, 20) {
        let mut line = match hostile.rng.below(3) {
            0 => hostile.line()?,
            1 => hostile.authenticated()?,
            _ => hostile.authenticated_respb()?,
        };
        let mut bytes = Vec::new();
        for _ in 0..hostile.rng.below(50) {
            let words = crate::words::request(&mut hostile.rng);
            bytes.extend(as_resp(&words));
        }
        let sent = line.send(&bytes);
        hostile.count(&line);
        line.reset();
        sent?;
    }
    Ok(())
}

/// Connections by the hundred that say nothing, a little, or nonsense.
pub(super) fn flood(hostile: &mut Hostile) -> Outcome {
    let mut lines = Vec::new();
    for _ in 0..hostile.rng.between(50, 600) {
        let mut line = hostile.plain()?;
        let bytes: &[u8] = match hostile.rng.below(5) {
            0 => b"",
            1 => b"*",
            2 => b"PING\r\n",
            3 => &[0, 1, 0, 0],
            _ => &[0x16, 3, 1, 0],
        };
        line.send(bytes)?;
        if hostile.rng.one_in(3) {
            hostile.end(line);
        } else {
            lines.push(line);
        }
        if hostile.is_over() {
            break;
        }
    }
    hostile.end_all(lines);
    Ok(())
}

/// Clients that block, listen, watch and track, and are gone at once.
pub(super) fn vanish(hostile: &mut Hostile) -> Outcome {
    let states: [&[&[&str]]; 7] = [
        &[&["BLPOP", "a:nothing", "0"]],
        &[&["BLMOVE", "a:nothing", "a:1", "LEFT", "LEFT", "0"]],
        &[&["XREAD", "BLOCK", "0", "STREAMS", "a:stream", "$"]],
        &[&["SUBSCRIBE", "a:news"], &["PUBLISH", "a:news", "to oneself"]],
        &[&["WATCH", "a:1"], &["MULTI"], &["SET", "a:1", "v"]],
        &[&["HELLO", "3"], &["CLIENT", "TRACKING", "ON"], &["GET", "a:1"], &["GET", "a:2"]],
        &[&["WAIT", "1", "0"]],
    ];
    let mut lines = Vec::new();
    for _ in 0..hostile.rng.between(5, 60) {
        let mut line = hostile.authenticated()?;
        let state = *hostile.rng.pick(&states);
        let bytes: Vec<u8> = state.iter().flat_map(|words| as_resp(words)).collect();
        line.send(&bytes)?;
        lines.push(line);
    }
    let mut other = hostile.authenticated()?;
    for words in [&["RPUSH", "a:nothing", "v"][..], &["SET", "a:1", "w"], &["PUBLISH", "a:news", "all"]] {
        other.send(&as_resp(words))?;
    }
    while let Some(line) = lines.pop() {
        hostile.end(line);
    }
    other.drain();
    hostile.end(other);
    Ok(())
}

/// Wrong passwords, unknown users, and commands that need a right one.
pub(super) fn passwords(hostile: &mut Hostile) -> Outcome {
    let mut line = hostile.line()?;
    for _ in 0..hostile.rng.between(1, 40) {
        let guess = hostile.rng.next().to_string();
        let words: Vec<&str> = match hostile.rng.below(5) {
            0 => vec!["AUTH", &guess],
            1 => vec!["AUTH", "default", &guess],
            2 => vec!["AUTH", &guess, &guess],
            3 => vec!["HELLO", "3", "AUTH", "honest", &guess],
            _ => vec!["GET", "h:RESP2:sum"],
        };
        line.send(&as_resp(&words))?;
        match line.frame(Protocol::Resp2)? {
            Incoming::Reply { reply: Reply::Error(_), .. } => {}
            other => return wrong(format!("{words:?} without a password is answered {other:?}")),
        }
    }
    hostile.end(line);
    // Whoever is authenticated has his rights and no others.
    let mut line = hostile.authenticated()?;
    for words in
        [&["GET", "h:RESP2:sum"][..], &["SET", "h:RESP2:sum", "1"], &["FLUSHALL"], &["CONFIG", "GET", "*"]]
    {
        line.send(&as_resp(words))?;
        match line.frame(Protocol::Resp2)? {
            Incoming::Reply { reply: Reply::Error(text), .. } if text.starts_with(b"NOPERM") => {}
            other => return wrong(format!("{words:?} without the right is answered {other:?}")),
        }
    }
    hostile.end(line);
    Ok(())
}
