//! Telling replies apart in what was received. Owns the visitor that counts errors and misses.

use weft_protocol::outcome::Malformed;
use weft_protocol::reply::{Aggregate, ReplyVisitor, Text};
use weft_protocol::respb::Control;
use weft_protocol::respb::reply::ReplyKind;
use weft_protocol::{Limits, Outcome, WireError, resp, respb};

use super::{Counts, Load};
use crate::Protocol;
use crate::http;

/// Where a reply stopped that has not come as a whole.
#[derive(Clone, Debug)]
pub(super) enum Decoder {
    Resp(resp::reply::ReplyDecoder),
    Respb(respb::ReplyDecoder),
    Http,
}

impl Decoder {
    pub(super) const fn new(protocol: Protocol) -> Decoder {
        match protocol {
            Protocol::Resp2 | Protocol::Resp3 => {
                Decoder::Resp(resp::reply::ReplyDecoder::new(Limits::OF_REPLIES))
            }
            Protocol::Respb => Decoder::Respb(respb::ReplyDecoder::new(Limits::OF_REPLIES)),
            Protocol::Http => Decoder::Http,
        }
    }
}

/// What stands at the front of the bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Front {
    /// A reply to the oldest request of the channel.
    Reply {
        len: usize,
        channel: u16,
        /// Of how many it is the answer: over HTTP a list has many.
        count: u32,
    },
    /// Something that answers nothing.
    Other { len: usize, push: bool },
    /// The server ends the channel.
    Close { len: usize, channel: u16 },
    /// The server ends the connection, with a code of section 8.4.
    GoAway { code: u16 },
    /// Not all of a frame.
    Incomplete,
    /// No reply.
    Invalid(WireError),
}

impl Decoder {
    #[inline]
    pub(super) fn front(&mut self, bytes: &[u8], seen: &mut Seen<'_, impl Load>) -> Front {
        match self {
            Decoder::Resp(decoder) => match decoder.decode(bytes, seen) {
                Outcome::Complete(frame) if frame.push => Front::Other { len: frame.len, push: true },
                Outcome::Complete(frame) => Front::Reply { len: frame.len, channel: 0, count: 1 },
                Outcome::Incomplete { .. } => Front::Incomplete,
                Outcome::Invalid(error) => Front::Invalid(error),
            },
            Decoder::Http => answer(bytes, seen).unwrap_or_else(Front::Invalid),
            Decoder::Respb(decoder) => match decoder.decode(bytes, seen) {
                Outcome::Complete(frame) => {
                    let (len, channel) = (frame.len, frame.channel);
                    match frame.kind {
                        ReplyKind::Reply => Front::Reply { len, channel, count: 1 },
                        ReplyKind::Push => Front::Other { len, push: true },
                        ReplyKind::Control(Control::Close { .. }) => Front::Close { len, channel },
                        ReplyKind::Control(Control::Goaway { code, .. }) => Front::GoAway { code },
                        // It has not announced that it takes slices.
                        ReplyKind::Control(Control::Fragment { .. }) => {
                            Front::Invalid(WireError { kind: Malformed::WrongDirection, offset: 0 })
                        }
                        ReplyKind::Control(_) | ReplyKind::Unknown { .. } => {
                            Front::Other { len, push: false }
                        }
                    }
                }
                Outcome::Incomplete { .. } => Front::Incomplete,
                Outcome::Invalid(error) => Front::Invalid(error),
            },
        }
    }
}

/// An answer of HTTP: its replies are read when it is whole.
fn answer<L: Load>(bytes: &[u8], seen: &mut Seen<'_, L>) -> Result<Front, WireError> {
    let Some(answer) = http::answer(bytes, Limits::DEFAULT.frame_bytes_max as usize)? else {
        return Ok(Front::Incomplete);
    };
    let count = http::replies(&answer.body, seen, |seen| {
        seen.request += 1;
        seen.part = 0;
    })?;
    Ok(Front::Reply { len: answer.len, channel: 0, count })
}

/// Looks at the values of replies.
pub(super) struct Seen<'a, L> {
    pub(super) counts: &'a mut Counts,
    pub(super) load: &'a mut L,
    /// Whether the load wants values.
    pub(super) values: bool,
    /// Whose reply it is.
    pub(super) client: u32,
    /// Which of its batch's requests is answered.
    pub(super) request: u32,
    /// Texts and nulls of this reply so far.
    pub(super) part: u32,
}

impl<L: Load> Seen<'_, L> {
    #[inline]
    fn value(&mut self, bytes: Option<&[u8]>) {
        if self.values {
            self.load.value(self.client, self.request, self.part, bytes);
            self.part += 1;
        }
    }

    #[cold]
    fn error(&mut self, bytes: &[u8]) {
        self.counts.errors += 1;
        self.counts.error_text(bytes);
    }
}

impl<L: Load> ReplyVisitor for Seen<'_, L> {
    #[inline]
    fn text(&mut self, kind: Text, _offset: usize, bytes: &[u8]) {
        match kind {
            Text::Error => self.error(bytes),
            _ => self.value(Some(bytes)),
        }
    }
    #[inline]
    fn int(&mut self, _value: i64) {}
    #[inline]
    fn double(&mut self, _value: f64) {}
    #[inline]
    fn boolean(&mut self, _value: bool) {}
    #[inline]
    fn null(&mut self, _array: bool) {
        self.counts.misses += 1;
        self.value(None);
    }
    #[inline]
    fn open(&mut self, kind: Aggregate, len: Option<u32>) {
        self.counts.misses += u64::from(len == Some(0) && kind != Aggregate::Attribute);
        // What is pushed answers nothing.
        self.values &= kind != Aggregate::Push;
    }
    #[inline]
    fn close(&mut self) {}
    #[inline]
    fn open_text(&mut self) {}
}
