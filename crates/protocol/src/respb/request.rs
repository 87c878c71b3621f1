//! Decoding what a client sends: typed commands, ARGV, passthrough and control frames (spec sections 3 to 8).
//!
//! Owns the frame header, the dispatch on the opcode and the straight code for the commonest layouts. Others have
//! theirs in `plain` and `module`, or are read ahead from the table (`ahead`); every frame that arrives in pieces, and
//! whatever is odd, is walked field by field.

use super::frame::{self, Control, HEADER_LEN, LONG_HEADER_LEN};
use super::module::{self, Long};
use super::plain;
use super::walk::Walk;
use crate::limits::Limits;
use crate::outcome::{Malformed, Outcome, Step, Stop};
use crate::request::ArgVisitor;
use crate::resp;
use crate::table::{self, CommandId, Layout, Shape, Shapes};

/// A whole request frame. Its arguments went to the visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFrame<'a> {
    /// Bytes of the frame.
    pub len: usize,
    /// What was fed behind the frame.
    pub rest: &'a [u8],
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

/// A whole frame of one of the plainest layouts, which the commonest commands have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Bytes of the frame.
    pub len: usize,
    /// The channel it is for.
    pub channel: u16,
    /// Its opcode, below those of modules.
    pub opcode: u16,
    /// What is in it.
    pub payload: Payload,
}

/// The payload of a [`Plain`] frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing.
    Empty,
    /// `str16`: where it lies in the frame.
    Key(Piece),
    /// `str16 blob32 opts8` without an option.
    Pair(Piece, Piece),
}

/// A piece of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
    pub offset: u32,
    /// Its length.
    pub len: u32,
}

impl Piece {
    /// Its bytes, if the frame begins at `frame_at`; none if they are not there.
    #[inline(always)]
    pub fn of(self, frame_at: usize, bytes: &[u8]) -> &[u8] {
        let at = frame_at + self.offset as usize;
        bytes.get(at..at + self.len as usize).unwrap_or_default()
    }
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
///
/// A frame that is whole and of a common layout is read by straight code and leaves no state. A frame that comes in
/// pieces is walked: once something of it has been handed out, `walk` keeps the place and the straight code stays
/// away.
#[derive(Clone, Debug)]
pub struct RequestDecoder {
    /// The fast path of each opcode; none at all where limits are so low that the straight code would have to check
    /// them.
    shapes: &'static Shapes,
    /// Bytes of a frame that the straight code may look at: the least of the limits on frames and arguments.
    visible_max: usize,
    limits: Limits,
    /// Bytes that must be there before another attempt; 0 between frames, and inside frames that keep no state.
    need: usize,
    walk: Walk,
    inner: resp::RequestDecoder,
}

impl RequestDecoder {
    /// A decoder at the start of a frame.
    pub const fn new(limits: Limits) -> Self {
        let visible_max = if limits.argument_bytes_max < limits.frame_bytes_max {
            limits.argument_bytes_max as usize
        } else {
            limits.frame_bytes_max as usize
        };
        let roomy = visible_max >= KEY_AT + u16::MAX as usize && limits.arguments_max >= ROOMY_ARGUMENTS;
        RequestDecoder {
            shapes: if roomy { &table::SHAPES } else { &table::NO_SHAPES },
            visible_max,
            limits,
            need: 0,
            walk: Walk::START,
            inner: resp::RequestDecoder::new(limits),
        }
    }

    /// A decoder that walks every layout field by field, for visitors that want each [`place`](ArgVisitor::place).
    pub const fn walking(limits: Limits) -> Self {
        RequestDecoder { shapes: &table::NO_SHAPES, ..Self::new(limits) }
    }

    /// Other limits (authentication). A frame of which a part was decoded begins anew: what its visitor has of it is to
    /// be forgotten.
    pub fn set_limits(&mut self, limits: Limits) {
        *self = Self::new(limits);
    }

    /// What [`Outcome::Incomplete`] said last, where the decoder has kept its place in an argument; else 0.
    #[must_use]
    pub const fn need(&self) -> usize {
        self.need
    }

    /// Decodes the frame at the start of `input`. After [`Outcome::Incomplete`] it is called again with the same bytes
    /// and more, and with the same visitor: arguments that were handed out are not handed out again. After
    /// [`Outcome::Invalid`] the stream is lost and what the visitor has of this frame is void.
    #[inline]
    pub fn decode<'a>(&mut self, input: &'a [u8], args: &mut impl ArgVisitor) -> Outcome<RequestFrame<'a>> {
        match self.decode_whole(input, args).or_else(|| self.decode_long(input, args)) {
            Some(frame) => Outcome::Complete(frame),
            None => self.slow(input, args),
        }
    }

    /// The frame at the start of `input` if it is not whole and what is missing of it tells nothing: one that is not
    /// known, or a CLOSE that has its code. Its `len` reaches beyond `input`: the rest is to be passed over as it
    /// comes, so that nothing of it is kept. To be asked after [`Outcome::Incomplete`], with the same bytes; the
    /// decoder stands at the start of a frame then.
    #[cold]
    pub fn passed_over(&self, input: &[u8]) -> Option<RequestFrame<'static>> {
        let [o1, o0, c1, c0, length @ ..] = *input.first_chunk::<LONG_HEADER_LEN>()?;
        let (opcode, channel) = (u16::from_be_bytes([o1, o0]), u16::from_be_bytes([c1, c0]));
        let frame = match opcode {
            frame::CLOSE => {
                let code = u16::from_be_bytes(*input[LONG_HEADER_LEN..].first_chunk()?);
                Frame::Control(Control::Close { code, reason: &[] })
            }
            frame::ARGV | frame::CANCEL | frame::WINDOW | frame::FRAGMENT | frame::PASSTHROUGH => {
                return None;
            }
            frame::IGNORABLE_FIRST.. => Frame::Control(Control::Unknown { opcode }),
            frame::EXTENDED_FIRST.. => Frame::Unknown { opcode },
            _ => return None,
        };
        let len = LONG_HEADER_LEN.checked_add(u32::from_be_bytes(length) as usize)?;
        let is_cut = len > input.len() && len <= self.limits.frame_bytes_max as usize;
        is_cut.then_some(RequestFrame { len, rest: &[], channel, frame })
    }

    /// Decodes the frame at the start of `input` if it is a whole module frame of a common layout, a whole ARGV frame,
    /// or one of the core layouts that [`decode_whole`](Self::decode_whole) leaves; otherwise [`decode`](Self::decode)
    /// must be called next, with the same bytes and the same visitor. In [`decode_whole`](Self::decode_whole) it would
    /// take registers from the frames that are far more common, so a loop over a full buffer calls that first and this
    /// behind it.
    #[inline(always)]
    pub fn decode_long<'a>(
        &mut self,
        input: &'a [u8],
        args: &mut impl ArgVisitor,
    ) -> Option<RequestFrame<'a>> {
        let [o1, o0, c1, c0] = *input.first_chunk::<HEADER_LEN>()?;
        if self.need != 0 || input.len() > self.visible_max {
            return None;
        }
        let (long, frame) = match self.shapes[usize::from(u16::from_ne_bytes([o1, o0]))] {
            Shape::Module => module::module(input, args)?,
            Shape::Argv => module::argv(input, args)?,
            Shape::Walked => return None,
            // Of those that `decode_whole` has, only SBO with options is no frame that is cut or odd.
            shape => {
                let opcode = u16::from_be_bytes([o1, o0]);
                (plain::fields(shape, opcode, input, args)?, Frame::Core(opcode))
            }
        };
        let channel = u16::from_be_bytes([c1, c0]);
        let len = match long {
            Long::Done(len) => len,
            Long::Stopped(walk) => {
                (self.walk, self.need) = (walk, HEADER_LEN);
                return None;
            }
        };
        input.split_at_checked(len).map(|(_, rest)| RequestFrame { len, rest, channel, frame })
    }

    /// Decodes the frame at the start of `input` if it is whole and of one of the commonest layouts; otherwise
    /// [`decode`](Self::decode) must be called next, with the same bytes and the same visitor. It is straight code
    /// without a call in it, so that a loop over a full buffer keeps its state, and the visitor's, in registers.
    #[inline(always)]
    pub fn decode_whole<'a>(
        &mut self,
        input: &'a [u8],
        args: &mut impl ArgVisitor,
    ) -> Option<RequestFrame<'a>> {
        let [o1, o0, c1, c0, l1, l0] = *input.first_chunk::<KEY_AT>()?;
        let opcode = u16::from_be_bytes([o1, o0]);
        let first = usize::from(u16::from_be_bytes([l1, l0]));
        let key_end = KEY_AT + first;
        let whole = |frame: &[u8], rest| RequestFrame {
            len: frame.len(),
            rest,
            channel: u16::from_be_bytes([c1, c0]),
            frame: Frame::Core(opcode),
        };
        let shape = self.shapes[usize::from(u16::from_ne_bytes([o1, o0]))];
        if shape == Shape::S {
            let (frame, rest) = input.split_at_checked(key_end)?;
            args.bytes(KEY_AT, &frame[KEY_AT..]);
            return Some(whole(frame, rest));
        }
        if shape == Shape::SBO {
            let len = input.get(key_end..key_end + 4)?.first_chunk()?;
            let end = (key_end + 5).saturating_add(u32::from_be_bytes(*len) as usize);
            let (frame, rest) = input.split_at_checked(end)?;
            // A SET that came in pieces has handed out its key already: the walk goes on with it.
            if frame[end - 1] != 0 || end > self.visible_max || self.need != 0 {
                return None;
            }
            args.bytes(KEY_AT, &frame[KEY_AT..key_end]);
            args.bytes(key_end + 4, &frame[key_end + 4..end - 1]);
            return Some(whole(frame, rest));
        }
        if self.need != 0 || input.len() > self.visible_max {
            return None;
        }
        let straight = if shape == Shape::L {
            list(input, first, KEY_AT, None, args)
        } else {
            straight(shape, input, args)
        };
        match straight {
            Straight::Done(len) => input.split_at_checked(len).map(|(frame, rest)| whole(frame, rest)),
            Straight::Stopped { field, left, at } => {
                (self.walk, self.need) = (Walk::in_list(field, left, at), at + 1);
                None
            }
            Straight::No => None,
        }
    }

    /// The frame at the start of `input` if it is whole and one of the plainest; otherwise
    /// [`decode`](Self::decode) must be called next, with the same bytes. For a loop that keeps what it knows of the
    /// commonest commands: nothing is handed out, so that nothing is lost where it wants none of this frame.
    #[inline(always)]
    pub fn plain(&self, input: &[u8]) -> Option<Plain> {
        let [o1, o0, c1, c0, l1, l0] = *input.first_chunk::<KEY_AT>()?;
        let (channel, opcode) = (u16::from_be_bytes([c1, c0]), u16::from_be_bytes([o1, o0]));
        let key = Piece { offset: KEY_AT as u32, len: u32::from(u16::from_be_bytes([l1, l0])) };
        let key_end = KEY_AT + key.len as usize;
        let (len, payload) = match self.shapes[usize::from(u16::from_ne_bytes([o1, o0]))] {
            Shape::S => (key_end, Payload::Key(key)),
            Shape::SBO => {
                let len = u32::from_be_bytes(*input.get(key_end..key_end + 4)?.first_chunk()?);
                let end = (key_end + 5).saturating_add(len as usize);
                if end > self.visible_max || *input.get(end - 1)? != 0 {
                    return None;
                }
                (end, Payload::Pair(key, Piece { offset: key_end as u32 + 4, len }))
            }
            Shape::Empty => (HEADER_LEN, Payload::Empty),
            _ => return None,
        };
        (len <= input.len() && self.need == 0).then_some(Plain { len, channel, opcode, payload })
    }

    #[cold]
    #[inline(never)]
    fn slow<'a>(&mut self, input: &'a [u8], args: &mut impl ArgVisitor) -> Outcome<RequestFrame<'a>> {
        if input.len() < self.need {
            return Outcome::Incomplete { need: self.need };
        }
        let step = self.frame(input, args);
        match step {
            Err(Stop::Need(need)) if self.walk.keeps_its_place() => self.need = need,
            _ => (self.need, self.walk) = (0, Walk::START),
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
            frame::REPLY_FIRST..=frame::REPLY_LAST | frame::FRAGMENT | frame::GOAWAY => {
                return Err(Stop::bad(Malformed::WrongDirection, 0));
            }
            frame::EXTENDED_FIRST.. => self.long(opcode, input, args)?,
            _ => return Err(Stop::bad(Malformed::UnknownOpcode, 0)),
        };
        if len > self.limits.frame_bytes_max as usize {
            return Err(Stop::bad(Malformed::FrameTooLong, 0));
        }
        Ok(RequestFrame { len, rest: &input[len..], channel, frame })
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

/// Where the key of a layout begins that starts with one.
const KEY_AT: usize = HEADER_LEN + 2;

/// The most arguments that a list of pairs can hold, with the name and a key.
pub(super) const ROOMY_ARGUMENTS: u32 = 2 * u16::MAX as u32 + 2;

/// What the straight code made of a frame.
enum Straight {
    /// The whole frame, of so many bytes.
    Done(usize),
    /// The frame ends inside the list that is field `field`: `left` items are missing, the next one is at `at`.
    Stopped { field: u8, left: u32, at: usize },
    /// Nothing was handed out.
    No,
}

/// The commonest layouts in straight code. `visible` is cut at the limits, so that nothing here can exceed them but
/// the number of arguments. Whatever is odd goes to the walk, which names the error.
#[inline(always)]
fn straight(shape: Shape, visible: &[u8], args: &mut impl ArgVisitor) -> Straight {
    match shape {
        Shape::Walked | Shape::Ahead | Shape::L | Shape::Module | Shape::Argv => Straight::No,
        Shape::SO | Shape::SOLDS | Shape::SSLSB => Straight::No,
        Shape::Empty => Straight::Done(HEADER_LEN),
        Shape::LSB => pairs(visible, HEADER_LEN, None, args),
        Shape::SL | Shape::SLSB => match str16(visible, HEADER_LEN) {
            Some((key, at)) if shape == Shape::SL => match count(visible, at, Some(key), args) {
                Some((count, at)) => list(visible, count as usize, at, Some(key), args),
                None => Straight::No,
            },
            Some((key, at)) => pairs(visible, at, Some(key), args),
            None => Straight::No,
        },
        _ => scalars(shape, visible, args).map_or(Straight::No, Straight::Done),
    }
}

/// A `str16` at `at`, and the offset behind it.
#[inline(always)]
pub(super) fn str16(visible: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let len = u16::from_be_bytes(*visible.get(at..at + 2)?.first_chunk()?);
    let end = at + 2 + usize::from(len);
    Some((visible.get(at + 2..end)?, end))
}

/// A `blob32` at `at`, and the offset behind it.
#[inline(always)]
pub(super) fn blob32(visible: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let len = u32::from_be_bytes(*visible.get(at..)?.first_chunk()?);
    let end = (at + 4).saturating_add(len as usize);
    Some((visible.get(at + 4..end)?, end))
}

#[inline(always)]
pub(super) fn i64_at(visible: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_be_bytes(*visible.get(at..)?.first_chunk()?))
}

/// Layouts without a list: nothing is handed out before all of it is there.
#[inline(always)]
fn scalars(shape: Shape, visible: &[u8], args: &mut impl ArgVisitor) -> Option<usize> {
    if !matches!(shape, Shape::SS | Shape::SB | Shape::SI | Shape::SII) {
        return None;
    }
    let (key, at) = str16(visible, HEADER_LEN)?;
    Some(match shape {
        Shape::SS => {
            let (second, end) = str16(visible, at)?;
            args.bytes(KEY_AT, key);
            args.bytes(at + 2, second);
            end
        }
        Shape::SB => {
            let (blob, end) = blob32(visible, at)?;
            args.bytes(KEY_AT, key);
            args.bytes(at + 4, blob);
            end
        }
        Shape::SI => {
            let first = i64_at(visible, at)?;
            args.bytes(KEY_AT, key);
            args.int(first);
            at + 8
        }
        Shape::SII => {
            let (first, second) = (i64_at(visible, at)?, i64_at(visible, at + 8)?);
            args.bytes(KEY_AT, key);
            args.int(first);
            args.int(second);
            at + 16
        }
        _ => return None,
    })
}

/// The items of a `list16(str16)` from `at` on, which end the frame, behind a key or behind nothing.
///
/// What follows an item, be it the length of the next one or the next frame, is read along with it: one comparison
/// covers both. The last item of the input has nothing behind it and is left to the walk.
#[inline(always)]
fn list(input: &[u8], count: usize, at: usize, key: Option<&[u8]>, args: &mut impl ArgVisitor) -> Straight {
    let mut left = count;
    let Some((first, mut rest)) = input[at..].split_first_chunk::<2>() else {
        return if left == 0 { Straight::Done(at) } else { list_end(input, at, key.is_some(), left) };
    };
    let mut len = usize::from(u16::from_be_bytes(*first));
    while left > 0 {
        let Some((item, behind)) = rest.split_at_checked(len + 2).filter(|_| args.has_room()) else {
            return list_end(input, at, key.is_some(), left);
        };
        args.bytes(input.len() - rest.len(), &item[..len]);
        len = usize::from(u16::from_be_bytes([item[len], item[len + 1]]));
        rest = behind;
        left -= 1;
    }
    Straight::Done(input.len() - rest.len() - 2)
}

/// The end of the input in a list whose items begin at `at`, when `left` of them have not been handed out. Walks over
/// the others again, which happens once for a frame, rather than have the loop keep track.
#[cold]
#[inline(never)]
fn list_end(input: &[u8], mut at: usize, behind_key: bool, left: usize) -> Straight {
    let count = usize::from(u16::from_be_bytes([input[at - 2], input[at - 1]]));
    for _ in left..count {
        at = str16(input, at).map_or(at, |(_, end)| end);
    }
    Straight::Stopped { field: u8::from(behind_key), left: left as u32, at }
}

/// `list16(str16 blob32)` at `at`, which ends the frame, behind a key or behind nothing.
#[inline(always)]
fn pairs(visible: &[u8], at: usize, key: Option<&[u8]>, args: &mut impl ArgVisitor) -> Straight {
    let Some((mut left, mut at)) = count(visible, at, key, args) else { return Straight::No };
    while left > 0 {
        let Some(((first, middle), (second, end))) = str16(visible, at)
            .and_then(|first| Some((first, blob32(visible, first.1)?)))
            .filter(|_| args.has_room())
        else {
            return Straight::Stopped { field: u8::from(key.is_some()), left, at };
        };
        args.bytes(at + 2, first);
        args.bytes(middle + 4, second);
        at = end;
        left -= 1;
    }
    Straight::Done(at)
}

/// The count of a list, and the offset behind it. The key is handed out only here, when the count is there.
#[inline(always)]
fn count(visible: &[u8], at: usize, key: Option<&[u8]>, args: &mut impl ArgVisitor) -> Option<(u32, usize)> {
    let count = u16::from_be_bytes(*visible.get(at..)?.first_chunk()?);
    if let Some(key) = key {
        args.bytes(KEY_AT, key);
    }
    Some((u32::from(count), at + 2))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn what_is_missing_of_a_frame_that_tells_nothing_is_passed_over() {
        let limits = Limits { frame_bytes_max: 100, ..Limits::DEFAULT };
        let decoder = RequestDecoder::new(limits);
        let frame_of = |opcode: u16, len: u32| {
            let head = [&opcode.to_be_bytes()[..], &7_u16.to_be_bytes(), &len.to_be_bytes()].concat();
            [head, vec![1; len as usize]].concat()
        };
        let close = Frame::Control(Control::Close { code: 0x0101, reason: &[] });
        let ignored = Frame::Control(Control::Unknown { opcode: 0xFF77 });
        let unknown = Frame::Unknown { opcode: 0xF777 };
        for (opcode, from, expected) in
            [(frame::CLOSE, 10, close), (0xFF77, 8, ignored), (0xF777, 8, unknown)]
        {
            let whole = frame_of(opcode, 92);
            for cut in 0..=whole.len() {
                let passed =
                    decoder.passed_over(&whole[..cut]).map(|frame| (frame.len, frame.channel, frame.frame));
                let wanted = (from..whole.len()).contains(&cut).then_some((100, 7, expected));
                assert_eq!(passed, wanted, "{opcode:04x}, {cut}");
            }
            // One past the limit is an error of the decoder.
            assert_eq!(decoder.passed_over(&frame_of(opcode, 93)[..50]), None);
        }
        for opcode in
            [0, 0x0307, frame::MODULE, frame::ARGV, frame::CANCEL, frame::WINDOW, frame::PASSTHROUGH]
        {
            assert_eq!(decoder.passed_over(&frame_of(opcode, 92)[..50]), None, "{opcode:04x}");
        }
    }
}
