//! Owns: server-sent events: SUBSCRIBE, PSUBSCRIBE and MONITOR in the form that clients of Upstash's contract read, and
//! `/v1/channels`, the same in JSON. Does not own: who is subscribed to what (`weft_engine::pubsub`), when events come.
//!
//! `data: message,CHANNEL,PAYLOAD`, and an empty line. A payload of several lines is several lines `data:`, as the
//! format of event streams has it; what is not UTF-8 is replaced. Or `data: {"channel":"c","payload":"p"}`, of which
//! nothing is lost.

use weft_engine::push::Push;
use weft_engine::reply::{JsonForm, Output, Protocol, ReplySink, Wire};

use super::answer::Extent;

/// Between two lines that say that a stream is still there.
pub(crate) const HEARTBEAT_MS: u64 = 15_000;

pub(super) const HEARTBEAT: &[u8] = b":\n\n";

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Form {
    #[default]
    Upstash,
    Json,
}

/// What a stream begins with.
pub(crate) enum Opening {
    /// `data: subscribe,CHANNEL,1`, for each name; in JSON the event `ready`.
    Subscribed(&'static str, Vec<Box<[u8]>>, Form),
    /// `data: "OK"`.
    Monitor,
    /// Nothing: what it begins with depends on what there is to be told (`super::following`).
    Follow,
    /// Nothing: all figures that are kept follow.
    Watch,
}

impl Opening {
    pub(crate) fn write(&self, output: &mut Output, extent: Extent) {
        match self {
            Self::Subscribed(_, _, Form::Json) => {
                write_text(b"event: ready\ndata: {}\n\n", output, extent);
            }
            Self::Subscribed(kind, names, Form::Upstash) => {
                for (name, count) in names.iter().zip(1..) {
                    let count: u32 = count;
                    write(output, extent, &[kind.as_bytes(), b",", name, b",", count.to_string().as_bytes()]);
                }
            }
            Self::Monitor => write(output, extent, &[b"\"OK\""]),
            Self::Follow | Self::Watch => {}
        }
    }
    pub(super) const fn form(&self) -> Form {
        match self {
            Self::Subscribed(_, _, form) => *form,
            Self::Monitor | Self::Follow | Self::Watch => Form::Upstash,
        }
    }
}

pub(super) fn write_push(push: &Push, form: Form, output: &mut Output, extent: Extent) {
    match push {
        Push::Message { channel, payload, .. } if form == Form::Json => {
            write_json(&[(b"channel", channel), (b"payload", payload)], output, extent);
        }
        Push::PatternMessage { pattern, channel, payload } if form == Form::Json => {
            let parts = [(&b"pattern"[..], &pattern[..]), (b"channel", channel), (b"payload", payload)];
            write_json(&parts, output, extent);
        }
        Push::Message { kind, channel, payload, .. } => {
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

/// Why nothing follows, in JSON.
pub(super) fn write_error(error: &[u8], output: &mut Output, extent: Extent) {
    write_text(&[b"event: error\ndata: ", error, b"\n\n"].concat(), output, extent);
    if extent == Extent::Chunks {
        output.bytes.extend_from_slice(b"0\r\n\r\n");
    }
}

pub(super) fn write_text(text: &[u8], output: &mut Output, extent: Extent) {
    chunk(output, extent, |bytes| bytes.extend_from_slice(text));
}

fn write_json(parts: &[(&[u8], &[u8])], output: &mut Output, extent: Extent) {
    let mut json = Output::default();
    let wire = Wire { protocol: Protocol::Json(JsonForm::Plain), ..Wire::default() };
    let mut sink = ReplySink::new(&mut json, wire);
    sink.map(parts.len());
    for (name, value) in parts {
        sink.bulk(name);
        sink.bulk(value);
    }
    // JSON has no line end in it.
    write_text(&[b"data: ", &json.bytes[..], b"\n\n"].concat(), output, extent);
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
