//! Decoding RESPB replies: `[opcode][channel]` and a value, elements as `[tag]` and a value (spec section 5).
//!
//! Owns the value encodings of both forms. Resumes at the value it stopped at.

use super::frame::{self, Control, HEADER_LEN, kind};
use super::request::long_payload;
use crate::limits::Limits;
use crate::number::is_big;
use crate::outcome::{Malformed, Outcome, Step, Stop};
use crate::reply::{Aggregate, Nesting, ReplyVisitor, Text};

/// A whole frame from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyFrame<'a> {
    /// Bytes of the frame.
    pub len: usize,
    /// The channel it belongs to.
    pub channel: u16,
    /// What it is.
    pub kind: ReplyKind<'a>,
}

/// What a frame from a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind<'a> {
    /// The answer to a request; its values went to the visitor.
    Reply,
    /// A push, which answers nothing; its values went to the visitor.
    Push,
    /// A control frame. Slices of FRAGMENT are the caller's to put together.
    Control(Control<'a>),
    /// A frame of 0xF002 to 0xFEFF, which this version does not know and which is passed over.
    Unknown {
        /// Its opcode.
        opcode: u16,
    },
}

/// Decodes what a server sends, one frame after the other, resuming where one that is not whole stopped.
#[derive(Clone, Debug)]
pub struct ReplyDecoder {
    limits: Limits,
    /// Bytes that must be there before another attempt; 0 between frames.
    need: usize,
    /// Offset of the element that is read next; 0 at the start of a frame.
    at: usize,
    nesting: Nesting,
    push: bool,
}

impl ReplyDecoder {
    /// A decoder at the start of a frame.
    pub const fn new(limits: Limits) -> Self {
        ReplyDecoder { limits, need: 0, at: 0, nesting: Nesting::NONE, push: false }
    }

    /// Decodes the frame at the start of `input`. After [`Outcome::Incomplete`] it is called again with the same bytes
    /// and more, and with the same visitor: values that were handed out are not handed out again.
    pub fn decode<'a>(
        &mut self,
        input: &'a [u8],
        visitor: &mut impl ReplyVisitor,
    ) -> Outcome<ReplyFrame<'a>> {
        if input.len() < self.need {
            return Outcome::Incomplete { need: self.need };
        }
        let step = self.frame(input, visitor);
        match step {
            Err(Stop::Need(need)) => self.need = need,
            _ => (self.need, self.at, self.push) = (0, 0, false),
        }
        step.into()
    }

    fn frame<'a>(&mut self, input: &'a [u8], visitor: &mut impl ReplyVisitor) -> Step<ReplyFrame<'a>> {
        let [o1, o0, c1, c0] = *input.first_chunk::<HEADER_LEN>().ok_or(Stop::Need(HEADER_LEN))?;
        let (opcode, channel) = (u16::from_be_bytes([o1, o0]), u16::from_be_bytes([c1, c0]));
        match opcode {
            frame::REPLY_FIRST..=frame::REPLY_LAST => {}
            0..=frame::CORE_LAST
            | frame::MODULE
            | frame::ARGV
            | frame::PASSTHROUGH
            | frame::CANCEL
            | frame::WINDOW => {
                return Err(Stop::bad(Malformed::WrongDirection, 0));
            }
            frame::EXTENDED_FIRST.. => {
                let (len, payload) = long_payload(input, &self.limits)?;
                let kind = match opcode {
                    frame::IGNORABLE_FIRST.. => {
                        ReplyKind::Control(Control::parse(opcode, payload, frame::LONG_HEADER_LEN)?)
                    }
                    _ => ReplyKind::Unknown { opcode },
                };
                return Ok(ReplyFrame { len, channel, kind });
            }
            _ => return Err(Stop::bad(Malformed::UnknownOpcode, 0)),
        }
        let mut complete = false;
        if !visitor.has_room() {
            return Err(Stop::FULL);
        }
        if self.at == 0 {
            complete = self.top(o1, o0, input, visitor)?;
        }
        while !complete {
            if !visitor.has_room() {
                return Err(Stop::FULL);
            }
            complete = self.element(input, visitor)?;
        }
        let kind = if self.push { ReplyKind::Push } else { ReplyKind::Reply };
        Ok(ReplyFrame { len: self.at, channel, kind })
    }

    /// The value of the header; returns whether it is the whole reply.
    fn top(&mut self, high: u8, low: u8, input: &[u8], visitor: &mut impl ReplyVisitor) -> Step<bool> {
        let short = |text| {
            let end = HEADER_LEN + usize::from(low);
            self.check(0, usize::from(low), end)?;
            Ok::<_, Stop>((text, input.get(HEADER_LEN..end).ok_or(Stop::Need(end))?))
        };
        let (text, bytes) = match high {
            0x80 => return self.value(low, HEADER_LEN, 0, input, visitor),
            frame::SMALL_INT => {
                visitor.int(i64::from(low));
                visitor.span(0, HEADER_LEN);
                self.at = HEADER_LEN;
                return Ok(true);
            }
            frame::SHORT_BULK => short(Text::Bulk)?,
            frame::SHORT_SIMPLE => short(Text::Simple)?,
            _ => return Err(Stop::bad(Malformed::UnknownOpcode, 0)),
        };
        visitor.text(text, HEADER_LEN, bytes);
        self.at = HEADER_LEN + bytes.len();
        visitor.span(0, self.at);
        Ok(true)
    }

    fn element(&mut self, input: &[u8], visitor: &mut impl ReplyVisitor) -> Step<bool> {
        let at = self.at;
        self.check(at, 0, at + 1)?;
        let tag = *input.get(at).ok_or(Stop::Need(at + 1))?;
        match tag {
            0..0x20 => return self.value(tag, at + 1, at, input, visitor),
            frame::TAG_INT_FIRST..=frame::TAG_INT_LAST => {
                visitor.int(i64::from(tag) - i64::from(frame::TAG_INT_FIRST) - 1);
                self.at = at + 1;
            }
            frame::TAG_BULK_FIRST.. => {
                let end = at + 1 + usize::from(tag & 0x7F);
                self.check(at, usize::from(tag & 0x7F), end)?;
                visitor.text(Text::Bulk, at + 1, input.get(at + 1..end).ok_or(Stop::Need(end))?);
                self.at = end;
            }
            _ => return Err(Stop::bad(Malformed::UnknownTag, at)),
        }
        visitor.span(at, self.at);
        Ok(self.nesting.complete_one())
    }

    /// The limits on a text of `len` bytes and on a frame that goes on to `end`; `at` is where an error is reported.
    fn check(&self, at: usize, len: usize, end: usize) -> Step<()> {
        check(&self.limits, at, len, end)
    }

    /// A value of type `tag` whose payload begins at `at`; its tag or opcode stands at `tag_at`.
    fn value(
        &mut self,
        tag: u8,
        at: usize,
        tag_at: usize,
        input: &[u8],
        visitor: &mut impl ReplyVisitor,
    ) -> Step<bool> {
        let mut reader = Reader { input, limits: &self.limits, at };
        match tag {
            kind::OK => visitor.text(Text::Simple, tag_at, b"OK"),
            kind::NULL => visitor.null(false),
            kind::INT => visitor.int(i64::from_be_bytes(reader.array()?)),
            kind::INT32 => visitor.int(i64::from(i32::from_be_bytes(reader.array()?))),
            kind::DOUBLE => visitor.double(f64::from_be_bytes(reader.array()?)),
            kind::BOOL => match reader.array()? {
                [0] => visitor.boolean(false),
                [1] => visitor.boolean(true),
                [_] => return Err(Stop::bad(Malformed::BadBool, at)),
            },
            kind::ERROR => reader.text16(Text::Error, visitor)?,
            kind::SIMPLE => reader.text16(Text::Simple, visitor)?,
            kind::BULK => reader.text32(Text::Bulk, visitor)?,
            kind::LONG_ERROR => reader.text32(Text::Error, visitor)?,
            kind::BIG_NUMBER => reader.text32(Text::BigNumber, visitor)?,
            kind::VERBATIM => {
                let format = reader.array()?;
                reader.text32(Text::Verbatim(format), visitor)?;
            }
            kind::ARRAY | kind::MAP | kind::SET | kind::PUSH | kind::ATTRIBUTE => {
                let len = u32::from_be_bytes(reader.array()?);
                let next = reader.at;
                return self.aggregate(tag, len, tag_at, next, visitor);
            }
            _ if tag_at == 0 => return Err(Stop::bad(Malformed::UnknownOpcode, 0)),
            _ => return Err(Stop::bad(Malformed::UnknownTag, tag_at)),
        }
        self.at = reader.at;
        visitor.span(tag_at, self.at);
        Ok(self.nesting.complete_one())
    }

    fn aggregate(
        &mut self,
        tag: u8,
        len: u32,
        tag_at: usize,
        next: usize,
        visitor: &mut impl ReplyVisitor,
    ) -> Step<bool> {
        let aggregate = match tag {
            kind::ARRAY => Aggregate::Array,
            kind::MAP => Aggregate::Map,
            kind::SET => Aggregate::Set,
            kind::PUSH => Aggregate::Push,
            _ => Aggregate::Attribute,
        };
        // A push inside an attribute that is the frame itself would make the frame two things at once.
        if aggregate == Aggregate::Push && tag_at != 0 {
            return Err(Stop::bad(Malformed::Misplaced, tag_at));
        }
        self.push |= aggregate == Aggregate::Push;
        let complete = self.nesting.open(aggregate, Some(len), &self.limits, tag_at)?;
        visitor.open(aggregate, Some(len));
        visitor.span(tag_at, next);
        self.at = next;
        Ok(complete)
    }
}

fn check(limits: &Limits, at: usize, len: usize, end: usize) -> Step<()> {
    if len > limits.argument_bytes_max as usize {
        return Err(Stop::bad(Malformed::ArgumentTooLong, at));
    }
    if end > limits.frame_bytes_max as usize {
        return Err(Stop::bad(Malformed::FrameTooLong, at));
    }
    Ok(())
}

struct Reader<'a> {
    input: &'a [u8],
    limits: &'a Limits,
    at: usize,
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        check(self.limits, self.at, 0, self.at + N)?;
        let bytes = self.input.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let bytes = *bytes.ok_or(Stop::Need(self.at + N))?;
        self.at += N;
        Ok(bytes)
    }

    fn text16(&mut self, text: Text, visitor: &mut impl ReplyVisitor) -> Step<()> {
        let at = self.at;
        let len = u16::from_be_bytes(self.array()?);
        self.text(at, text, usize::from(len), visitor)
    }

    fn text32(&mut self, text: Text, visitor: &mut impl ReplyVisitor) -> Step<()> {
        let at = self.at;
        let len = u32::from_be_bytes(self.array()?);
        self.text(at, text, len as usize, visitor)
    }

    /// `field_at` is where the length stands: what is wrong with it is reported there.
    fn text(&mut self, field_at: usize, text: Text, len: usize, visitor: &mut impl ReplyVisitor) -> Step<()> {
        let end = self.at.saturating_add(len);
        check(self.limits, field_at, len, end)?;
        let bytes = self.input.get(self.at..end).ok_or(Stop::Need(end))?;
        if text == Text::BigNumber && !is_big(bytes) {
            return Err(Stop::bad(Malformed::BadNumber, self.at));
        }
        visitor.text(text, self.at, bytes);
        self.at = end;
        Ok(())
    }
}
