//! Decoding what a client sends: typed commands, ARGV, passthrough and control frames (spec sections 3 to 8).
//!
//! Owns the frame header, the dispatch on the opcode and the straight code for the commonest layouts. All other layouts,
//! and every frame that arrives in pieces, are walked by [`super::walk`] from the table.

use super::frame::{self, Control, HEADER_LEN, LONG_HEADER_LEN};
use super::walk::Walk;
use crate::limits::Limits;
use crate::outcome::{Malformed, Outcome, Step, Stop};
use crate::request::ArgVisitor;
use crate::resp;
use crate::table::{self, CommandId, Layout, Shape};

/// A whole request frame. Its arguments went to the visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFrame<'a> {
    /// Bytes of the frame.
    pub len: usize,
    /// The channel it is for.
    pub channel: u16,
    /// What it is.
    pub frame: Frame<'a>,
}

/// What a request frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A core command in its typed layout. The name is not among the arguments; [`table::by_opcode`] has it.
    Core(u16),
    /// A module's command in its typed layout. The name is not among the arguments.
    Module(CommandId),
    /// A command as arguments; the first is its name.
    Argv,
    /// A RESP command; the first argument is its name. It is answered in RESPB.
    Passthrough,
    /// A control frame.
    Control(Control<'a>),
    /// A frame of 0xF002 to 0xFEFF that this version does not know: to be answered with an error, and skipped.
    Unknown {
        /// Its opcode.
        opcode: u16,
    },
}

impl Frame<'_> {
    /// The command of a typed frame.
    pub fn command(&self) -> Option<CommandId> {
        match *self {
            Frame::Core(opcode) => table::by_opcode(opcode),
            Frame::Module(id) => Some(id),
            _ => None,
        }
    }
}

/// Decodes requests, one frame after the other, resuming where a frame that is not whole stopped.
#[derive(Clone, Debug)]
pub struct RequestDecoder {
    limits: Limits,
    /// Bytes that the straight code may look at: the least of the limits on frames and arguments.
    fast_bytes_max: usize,
    /// Bytes that must be there before another attempt; 0 between frames.
    need: usize,
    walk: Walk,
    inner: resp::RequestDecoder,
}

impl RequestDecoder {
    /// A decoder at the start of a frame.
    pub const fn new(limits: Limits) -> Self {
        RequestDecoder {
            limits,
            fast_bytes_max: fast_bytes_max(&limits),
            need: 0,
            walk: Walk::START,
            inner: resp::RequestDecoder::new(limits),
        }
    }

    /// Other limits from the next frame on (authentication).
    pub fn set_limits(&mut self, limits: Limits) {
        *self = Self::new(limits);
    }

    /// Decodes the frame at the start of `input`. After [`Outcome::Incomplete`] it is called again with the same bytes
    /// and more, and with the same visitor: arguments that were handed out are not handed out again. After
    /// [`Outcome::Invalid`] the stream is lost and what the visitor has of this frame is void.
    #[inline]
    pub fn decode<'a>(&mut self, input: &'a [u8], args: &mut impl ArgVisitor) -> Outcome<RequestFrame<'a>> {
        if self.need == 0
            && let Some(&[o1, o0, c1, c0]) = input.first_chunk::<HEADER_LEN>()
        {
            let opcode = u16::from_be_bytes([o1, o0]);
            let visible = &input[..input.len().min(self.fast_bytes_max)];
            match fast(table::shape(opcode), visible, self.limits.arguments_max, args) {
                Fast::Done(len) => {
                    let channel = u16::from_be_bytes([c1, c0]);
                    return Outcome::Complete(RequestFrame { len, channel, frame: Frame::Core(opcode) });
                }
                Fast::Stopped { field, left, at } => self.walk = Walk::in_list(field, left, at),
                Fast::No => {}
            }
        }
        self.slow(input, args)
    }

    #[cold]
    #[inline(never)]
    fn slow<'a>(&mut self, input: &'a [u8], args: &mut impl ArgVisitor) -> Outcome<RequestFrame<'a>> {
        if input.len() < self.need {
            return Outcome::Incomplete { need: self.need };
        }
        let step = self.frame(input, args);
        self.need = match step {
            Err(Stop::Need(need)) => need,
            _ => 0,
        };
        if step.is_ok() {
            self.walk = Walk::START;
        }
        step.into()
    }

    fn frame<'a>(&mut self, input: &'a [u8], args: &mut impl ArgVisitor) -> Step<RequestFrame<'a>> {
        let [o1, o0, c1, c0] = *input.first_chunk::<HEADER_LEN>().ok_or(Stop::Need(HEADER_LEN))?;
        let (opcode, channel) = (u16::from_be_bytes([o1, o0]), u16::from_be_bytes([c1, c0]));
        let (len, frame) = match opcode {
            0..=frame::CORE_LAST => {
                let id = table::by_opcode(opcode).ok_or(Stop::bad(Malformed::UnknownOpcode, 0))?;
                (self.command(id, HEADER_LEN, input, args)?, Frame::Core(opcode))
            }
            frame::MODULE => {
                let [_, _, _, _, m1, m0, n1, n0] =
                    *input.first_chunk::<LONG_HEADER_LEN>().ok_or(Stop::Need(LONG_HEADER_LEN))?;
                let id = table::by_module(u16::from_be_bytes([m1, m0]), u16::from_be_bytes([n1, n0]))
                    .ok_or(Stop::bad(Malformed::UnknownOpcode, HEADER_LEN))?;
                (self.command(id, LONG_HEADER_LEN, input, args)?, Frame::Module(id))
            }
            frame::ARGV => (self.walk.args(input, HEADER_LEN, true, &self.limits, args)?, Frame::Argv),
            frame::REPLY_FIRST..=frame::REPLY_LAST | frame::FRAGMENT => {
                return Err(Stop::bad(Malformed::WrongDirection, 0));
            }
            frame::EXTENDED_FIRST.. => self.long(opcode, input, args)?,
            _ => return Err(Stop::bad(Malformed::UnknownOpcode, 0)),
        };
        Ok(RequestFrame { len, channel, frame })
    }

    /// A typed layout whose payload begins at `at`; gives the length of the frame.
    fn command(&mut self, id: CommandId, at: usize, input: &[u8], args: &mut impl ArgVisitor) -> Step<usize> {
        match id.spec().layout {
            Layout::Args => self.walk.args(input, at, false, &self.limits, args),
            Layout::Fields { fields, .. } => self.walk.fields(fields, input, at, &self.limits, args),
        }
    }

    /// Frames that carry their length: passthrough, control frames, what a later version may add.
    fn long<'a>(
        &mut self,
        opcode: u16,
        input: &'a [u8],
        args: &mut impl ArgVisitor,
    ) -> Step<(usize, Frame<'a>)> {
        let (len, payload) = long_payload(input, &self.limits)?;
        let frame = match opcode {
            frame::PASSTHROUGH => {
                self.inner.decode_exact(payload, LONG_HEADER_LEN, args)?;
                Frame::Passthrough
            }
            frame::IGNORABLE_FIRST.. => Frame::Control(Control::parse(opcode, payload, LONG_HEADER_LEN)?),
            _ => Frame::Unknown { opcode },
        };
        Ok((len, frame))
    }
}

/// The length of a frame with `[len u32]` after the channel, and its payload once that is there.
pub(super) fn long_payload<'a>(input: &'a [u8], limits: &Limits) -> Step<(usize, &'a [u8])> {
    let [_, _, _, _, length @ ..] =
        *input.first_chunk::<LONG_HEADER_LEN>().ok_or(Stop::Need(LONG_HEADER_LEN))?;
    let length = u32::from_be_bytes(length) as usize;
    let end = LONG_HEADER_LEN.saturating_add(length);
    if end > limits.frame_bytes_max as usize {
        return Err(Stop::bad(Malformed::FrameTooLong, HEADER_LEN));
    }
    Ok((end, input.get(LONG_HEADER_LEN..end).ok_or(Stop::Need(end))?))
}

/// What the straight code made of a frame.
enum Fast {
    /// The whole frame, of so many bytes.
    Done(usize),
    /// The frame ends inside the list that is field `field`: `left` items are missing, the next one is at `at`.
    Stopped { field: u8, left: u32, at: usize },
    /// Nothing was handed out.
    No,
}

/// The most arguments of a layout without a list that the straight code knows, the name included: it does not count them.
const FAST_ARGUMENTS: u32 = 4;

const fn fast_bytes_max(limits: &Limits) -> usize {
    if limits.arguments_max < FAST_ARGUMENTS {
        0
    } else if limits.argument_bytes_max < limits.frame_bytes_max {
        limits.argument_bytes_max as usize
    } else {
        limits.frame_bytes_max as usize
    }
}

/// The commonest layouts in straight code. `input` is cut at the limits, so that nothing here can exceed them but the
/// number of arguments. Whatever is odd goes to the walk, which names the error.
#[inline(always)]
fn fast(shape: Shape, input: &[u8], arguments_max: u32, args: &mut impl ArgVisitor) -> Fast {
    let mut cursor = Cursor { total: input.len(), rest: input.get(HEADER_LEN..).unwrap_or_default() };
    match shape {
        Shape::Unknown | Shape::Walked => Fast::No,
        Shape::Empty => Fast::Done(HEADER_LEN),
        Shape::L => cursor.list(0, arguments_max, 1, args),
        Shape::LSB => cursor.pairs(0, arguments_max, args),
        Shape::SL => match cursor.str16() {
            // The count must be there before the key is handed out.
            Some(key) if cursor.rest.len() >= 2 => {
                args.bytes(HEADER_LEN + 2, key);
                cursor.list(1, arguments_max, 2, args)
            }
            _ => Fast::No,
        },
        Shape::SLSB => match cursor.str16() {
            Some(key) if cursor.rest.len() >= 2 => {
                args.bytes(HEADER_LEN + 2, key);
                cursor.pairs(1, arguments_max, args)
            }
            _ => Fast::No,
        },
        _ => match cursor.scalars(shape, args) {
            Some(()) => Fast::Done(cursor.at()),
            None => Fast::No,
        },
    }
}

/// Reads forward over what is visible of a frame.
struct Cursor<'a> {
    total: usize,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Offset in the frame.
    #[inline(always)]
    fn at(&self) -> usize {
        self.total - self.rest.len()
    }

    #[inline(always)]
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    #[inline(always)]
    fn str16(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.rest.split_first_chunk::<2>()?;
        let (text, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        self.rest = rest;
        Some(text)
    }

    #[inline(always)]
    fn blob32(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.rest.split_first_chunk::<4>()?;
        let (blob, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        self.rest = rest;
        Some(blob)
    }

    #[inline(always)]
    fn i64(&mut self) -> Option<i64> {
        let (bytes, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(i64::from_be_bytes(*bytes))
    }

    /// Layouts without a list: nothing is handed out before all of it is there.
    #[inline(always)]
    fn scalars(&mut self, shape: Shape, args: &mut impl ArgVisitor) -> Option<()> {
        let key = self.str16()?;
        let key_at = HEADER_LEN + 2;
        match shape {
            Shape::S => args.bytes(key_at, key),
            Shape::SS => {
                let second = self.str16()?;
                args.bytes(key_at, key);
                args.bytes(self.at() - second.len(), second);
            }
            Shape::SB => {
                let blob = self.blob32()?;
                args.bytes(key_at, key);
                args.bytes(self.at() - blob.len(), blob);
            }
            Shape::SBO => {
                let blob = self.blob32()?;
                let [0] = *self.take(1)? else { return None };
                args.bytes(key_at, key);
                args.bytes(self.at() - 1 - blob.len(), blob);
            }
            Shape::SI => {
                let first = self.i64()?;
                args.bytes(key_at, key);
                args.int(first);
            }
            Shape::SII => {
                let (first, second) = (self.i64()?, self.i64()?);
                args.bytes(key_at, key);
                args.int(first);
                args.int(second);
            }
            _ => return None,
        }
        Some(())
    }

    /// `list16(str16)`. `before` is the number of arguments so far, the name included.
    #[inline(always)]
    fn list(&mut self, field: u8, arguments_max: u32, before: u32, args: &mut impl ArgVisitor) -> Fast {
        let Some(mut left) = self.count() else { return Fast::No };
        if left + before > arguments_max {
            return if before == 1 { Fast::No } else { self.stopped(field, left) };
        }
        while left > 0 {
            let Some(item) = self.str16() else { return self.stopped(field, left) };
            args.bytes(self.at() - item.len(), item);
            left -= 1;
        }
        Fast::Done(self.at())
    }

    /// `list16(str16 blob32)`
    #[inline(always)]
    fn pairs(&mut self, field: u8, arguments_max: u32, args: &mut impl ArgVisitor) -> Fast {
        let Some(mut left) = self.count() else { return Fast::No };
        let before = 1 + u32::from(field);
        if left * 2 + before > arguments_max {
            return if before == 1 { Fast::No } else { self.stopped(field, left) };
        }
        while left > 0 {
            let start = self.rest;
            let (Some(first), Some(second)) = (self.str16(), self.blob32()) else {
                self.rest = start;
                return self.stopped(field, left);
            };
            let at = self.at() - second.len();
            args.bytes(at - 4 - first.len(), first);
            args.bytes(at, second);
            left -= 1;
        }
        Fast::Done(self.at())
    }

    #[inline(always)]
    fn count(&mut self) -> Option<u32> {
        let (count, rest) = self.rest.split_first_chunk::<2>()?;
        self.rest = rest;
        Some(u32::from(u16::from_be_bytes(*count)))
    }

    fn stopped(&self, field: u8, left: u32) -> Fast {
        Fast::Stopped { field, left, at: self.at() }
    }
}
