//! Owns: server-sent events: SUBSCRIBE, PSUBSCRIBE and MONITOR in the form that clients of Upstash's contract read.
//! Does not own: who is subscribed to what (`weft_engine::pubsub`), when events come.
//!
//! `data: message,CHANNEL,PAYLOAD`, and an empty line. A payload of several lines is several lines `data:`, as the
//! format of event streams has it; what is not UTF-8 is replaced.

use weft_engine::push::Push;
use weft_engine::reply::Output;

use super::answer::Extent;

/// Between two lines that say that a stream is still there.
pub(crate) const HEARTBEAT_MS: u64 = 15_000;

const HEARTBEAT: &[u8] = b":\n\n";

/// What a stream begins with.
pub(crate) enum Opening {
    /// `data: subscribe,CHANNEL,1`, for each name.
    Subscribed(&'static str, Vec<Box<[u8]>>),
    /// `data: "OK"`.
    Monitor,
    /// Nothing: what it begins with depends on what there is to be told (`super::following`).
    Follow,
}

impl Opening {
    pub(crate) fn write(&self, output: &mut Output, extent: Extent) {
        match self {
            Self::Subscribed(kind, names) => {
                for (name, count) in names.iter().zip(1..) {
                    let count: u32 = count;
                    write(output, extent, &[kind.as_bytes(), b",", name, b",", count.to_string().as_bytes()]);
                }
            }
            Self::Monitor => write(output, extent, &[b"\"OK\""]),
            Self::Follow => {}
        }
    }
}

pub(super) fn write_push(push: &Push, output: &mut Output, extent: Extent) {
    match push {
        Push::Message { kind, channel, payload } => {
            write(output, extent, &[kind.as_bytes(), b",", channel, b",", payload]);
        }
        Push::PatternMessage { pattern, channel, payload } => {
            write(output, extent, &[b"pmessage,", pattern, b",", channel, b",", payload]);
        }
        Push::Monitor(line) => write(output, extent, &[line.as_bytes()]),
        // Of these nobody is told who has not asked in a way that HTTP does not have.
        Push::Invalidate(_) | Push::TrackingRedirBroken(_) => {}
    }
}

pub(super) fn write_heartbeat(output: &mut Output, extent: Extent) {
    chunk(output, extent, |bytes| bytes.extend_from_slice(HEARTBEAT));
}

pub(super) fn write_text(text: &[u8], output: &mut Output, extent: Extent) {
    chunk(output, extent, |bytes| bytes.extend_from_slice(text));
}

fn write(output: &mut Output, extent: Extent, parts: &[&[u8]]) {
    let text = parts.concat();
    chunk(output, extent, |bytes| {
        for line in String::from_utf8_lossy(&text).split(['\n', '\r']) {
            bytes.extend_from_slice(b"data: ");
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        bytes.push(b'\n');
    });
}

/// Writes bytes as one chunk, if the answer has chunks.
fn chunk(output: &mut Output, extent: Extent, write: impl FnOnce(&mut Vec<u8>)) {
    if extent != Extent::Chunks {
        return write(&mut output.bytes);
    }
    let begin = output.end();
    write(&mut output.bytes);
    let len = output.len() - begin.len;
    output.bytes.extend_from_slice(b"\r\n");
    output.insert_at(begin, format!("{len:x}\r\n").as_bytes());
}
