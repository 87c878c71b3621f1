//! Decoding RESP requests: `*n` and n bulks, or an inline line.
//!
//! Owns the length lines and the resuming. Error texts are those of Redis.

use super::inline;
use crate::limits::Limits;
use crate::outcome::{Malformed, Outcome, Step, Stop};
use crate::request::ArgVisitor;

/// A whole request. Its arguments went to the visitor, the command's name first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFrame<'a> {
    /// Bytes of the frame.
    pub len: usize,
    /// What was fed behind the frame.
    pub rest: &'a [u8],
    /// Arguments, the name included. 0 for `*0`, `*-1` and an empty line, which servers pass over in silence.
    pub arguments: u32,
}

/// Longest length line that can be a number: `*`, a sign, 19 digits. Without a line end within it, the line is wrong.
const LENGTH_LINE_MAX: usize = 32;

/// The most arguments, and the most bytes of an argument, that the straight code reads: what four digits can say.
const STRAIGHT_MAX: u32 = 9_999;

/// Decodes requests, one after the other, resuming where one that is not whole stopped.
#[derive(Clone, Debug)]
pub struct RequestDecoder {
    limits: Limits,
    /// The decoder is between requests, and no limit is so low that the straight code could exceed it.
    straight: bool,
    /// Bytes that must be there before another attempt; 0 between requests.
    need: usize,
    /// Offset of what is read next; 0 at the start of a request.
    at: usize,
    /// Arguments announced and arguments to come.
    arguments: u32,
    left: u32,
    /// How far the end of an inline command has been looked for.
    searched: usize,
}

impl RequestDecoder {
    /// A decoder at the start of a request.
    pub const fn new(limits: Limits) -> Self {
        RequestDecoder {
            limits,
            straight: is_roomy(&limits),
            need: 0,
            at: 0,
            arguments: 0,
            left: 0,
            searched: 0,
        }
    }

    /// The limits of its requests.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }
    /// Other limits (authentication). A request of which a part was decoded begins anew: what its visitor has of it is
    /// to be forgotten.
    pub fn set_limits(&mut self, limits: Limits) {
        *self = Self::new(limits);
    }

    /// What [`Outcome::Incomplete`] said last, where the decoder has kept its place in an argument; else 0.
    #[must_use]
    pub const fn need(&self) -> usize {
        self.need
    }

    /// Decodes the request at the start of `input`. After [`Outcome::Incomplete`] it is called again with the same
    /// bytes and more, and with the same visitor: arguments that were handed out are not handed out again. After
    /// [`Outcome::Invalid`] the stream is lost and what the visitor has of this request is void.
    #[inline]
    pub fn decode<'a>(&mut self, input: &'a [u8], args: &mut impl ArgVisitor) -> Outcome<RequestFrame<'a>> {
        match self.decode_whole(input, args) {
            Some(frame) => Outcome::Complete(frame),
            None => self.slow(input, args),
        }
    }

    /// Whether the decoder is between requests, and its limits are above everything that straight code reads: then a
    /// [`Shape`](super::Shape) may be tried.
    #[must_use]
    #[inline]
    pub const fn is_straight(&self) -> bool {
        self.straight
    }

    /// Decodes the request at the start of `input` if it is a whole array of few and short arguments; otherwise
    /// [`decode`](Self::decode) must be called next, with the same bytes and the same visitor. It is straight code
    /// without a call in it, so that a loop over a full buffer keeps its state, and the visitor's, in registers.
    #[inline(always)]
    pub fn decode_whole<'a>(
        &mut self,
        input: &'a [u8],
        args: &mut impl ArgVisitor,
    ) -> Option<RequestFrame<'a>> {
        if !self.straight {
            return None;
        }
        let (arguments, mut rest) = short_length(b'*', input)?;
        let mut left = arguments;
        while left > 0 {
            let Some((bytes, behind)) = short_bulk(rest).filter(|_| args.has_room()) else {
                self.stop(input.len() - rest.len(), arguments, left);
                return None;
            };
            args.bytes(input.len() - behind.len() - 2 - bytes.len(), bytes);
            rest = behind;
            left -= 1;
        }
        Some(RequestFrame { len: input.len() - rest.len(), rest, arguments: arguments as u32 })
    }

    /// The straight code stopped before the argument at `at`.
    #[cold]
    fn stop(&mut self, at: usize, arguments: usize, left: usize) {
        (self.straight, self.at, self.arguments, self.left) = (false, at, arguments as u32, left as u32);
    }

    #[cold]
    #[inline(never)]
    fn slow<'a>(&mut self, input: &'a [u8], args: &mut impl ArgVisitor) -> Outcome<RequestFrame<'a>> {
        if input.len() < self.need {
            return Outcome::Incomplete { need: self.need };
        }
        let step = self.step(input, args);
        match step {
            // Before the first argument the straight code starts anew, and would leave a need behind for the next
            // request.
            Err(Stop::Need(need)) => {
                self.straight = self.at == 0 && is_roomy(&self.limits);
                self.need = if self.at == 0 { 0 } else { need };
            }
            _ => *self = Self::new(self.limits),
        }
        step.into()
    }

    /// Decodes a payload that must be exactly one array request; `base` is the payload's offset in its frame.
    pub(crate) fn decode_exact(
        &mut self,
        payload: &[u8],
        base: usize,
        args: &mut impl ArgVisitor,
    ) -> Step<()> {
        let mut shifted = Shifted { base, args };
        let wrong = |offset| Err(Stop::bad(Malformed::NotOneCommand, offset));
        if payload.first() != Some(&b'*') {
            return wrong(base);
        }
        match self.decode(payload, &mut shifted) {
            Outcome::Complete(frame) if frame.len == payload.len() && frame.arguments > 0 => Ok(()),
            Outcome::Complete(frame) => wrong(base + if frame.arguments > 0 { frame.len } else { 0 }),
            // All of it is there: what was asked for is room.
            Outcome::Incomplete { need } if need <= payload.len() => Err(Stop::FULL),
            Outcome::Incomplete { .. } => {
                *self = Self::new(self.limits);
                wrong(base + payload.len())
            }
            Outcome::Invalid(error) => Err(Stop::bad(error.kind, base + error.offset)),
        }
    }

    fn step<'a>(&mut self, input: &'a [u8], args: &mut impl ArgVisitor) -> Step<RequestFrame<'a>> {
        if self.at == 0 {
            match input.first() {
                Some(b'*') => self.start(input)?,
                Some(_) => return self.inline(input, args),
                None => return Err(Stop::Need(1)),
            }
        } else if self.left == 0 {
            // An array is never left behind its last argument: this is a line whose first words were handed out.
            return self.inline(input, args);
        }
        while self.left > 0 {
            if !args.has_room() {
                return Err(Stop::FULL);
            }
            let (start, len) = self.bulk_header(input)?;
            let end = start + len;
            // One comparison for the bytes and their CR LF.
            let Some(body) = input.get(start..end + 2) else { return Err(Stop::Need(end + 2)) };
            let (bytes, line_end) = body.split_at(len);
            if line_end != b"\r\n" {
                return Err(Stop::bad(Malformed::BulkEnd, end));
            }
            args.bytes(start, bytes);
            self.at = end + 2;
            self.left -= 1;
        }
        Ok(RequestFrame { len: self.at, rest: &input[self.at..], arguments: self.arguments })
    }

    fn inline<'a>(&mut self, input: &'a [u8], args: &mut impl ArgVisitor) -> Step<RequestFrame<'a>> {
        inline::decode(input, &mut self.searched, &self.limits, &mut self.at, &mut self.arguments, args)
    }

    /// `*n`
    fn start(&mut self, input: &[u8]) -> Step<()> {
        let (count, at) = length_line(input, 0, Malformed::MultibulkLength, Malformed::MultibulkLine)?;
        if count > i64::from(self.limits.arguments_max) {
            let kind = if self.limits.unauthenticated {
                Malformed::UnauthenticatedArguments
            } else {
                Malformed::MultibulkLength
            };
            return Err(Stop::bad(kind, 0));
        }
        // Redis takes a negative count for an empty request.
        self.arguments = count.max(0) as u32;
        self.left = self.arguments;
        self.at = at;
        Ok(())
    }

    /// `$n`: where the bytes begin and how many there are.
    fn bulk_header(&self, input: &[u8]) -> Step<(usize, usize)> {
        let at = self.at;
        let (len, start) = match input.get(at) {
            Some(b'$') => length_line(input, at, Malformed::BulkLength, Malformed::BulkLine)?,
            Some(_) => return Err(Stop::bad(Malformed::ExpectedBulk, at)),
            None => return Err(Stop::Need(at + 1)),
        };
        if len < 0 || len > i64::from(self.limits.argument_bytes_max) {
            let kind = if self.limits.unauthenticated && len > 0 {
                Malformed::UnauthenticatedArgument
            } else {
                Malformed::BulkLength
            };
            return Err(Stop::bad(kind, at));
        }
        let len = len as usize;
        if start.saturating_add(len).saturating_add(2) > self.limits.frame_bytes_max as usize {
            return Err(Stop::bad(Malformed::FrameTooLong, at));
        }
        Ok((start, len))
    }
}

const fn is_roomy(limits: &Limits) -> bool {
    let requests_bytes_max = STRAIGHT_MAX as u64 * (STRAIGHT_MAX as u64 + 9);
    limits.arguments_max >= STRAIGHT_MAX
        && limits.argument_bytes_max >= STRAIGHT_MAX
        && limits.frame_bytes_max as u64 >= requests_bytes_max
}

/// A bulk of up to four digits of bytes that is whole, and what follows it.
#[inline(always)]
pub(super) fn short_bulk(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, body) = short_length(b'$', input)?;
    // One comparison for the bytes and their line end.
    let (bytes, behind) = body.split_at_checked(len + 2)?;
    (bytes[len..] == *b"\r\n").then(|| (&bytes[..len], behind))
}

/// A line of `kind`, up to four digits and CR LF, read from one word; the number and what follows the line.
#[inline(always)]
fn short_length(kind: u8, input: &[u8]) -> Option<(usize, &[u8])> {
    let word = u64::from_le_bytes(*input.first_chunk::<8>()?);
    let digit = |index: u32| (word >> (8 * index)) as u8 as usize ^ usize::from(b'0');
    let ends_at = |index: u32| (word >> (8 * index)) as u16 == u16::from_le_bytes(*b"\r\n");
    let first = digit(1);
    if word as u8 != kind || first > 9 {
        return None;
    }
    if ends_at(2) {
        return Some((first, &input[4..]));
    }
    let two = first * 10 + digit(2);
    if first == 0 || digit(2) > 9 {
        return None;
    }
    if ends_at(3) {
        return Some((two, &input[5..]));
    }
    let three = two * 10 + digit(3);
    if digit(3) > 9 {
        return None;
    }
    if ends_at(4) {
        return Some((three, &input[6..]));
    }
    (digit(4) <= 9 && ends_at(5)).then(|| (three * 10 + digit(4), &input[7..]))
}

/// The number of the line at `at`, whose first byte names its type, and the offset behind the line.
fn length_line(input: &[u8], at: usize, bad: Malformed, endless: Malformed) -> Step<(i64, usize)> {
    let line = &input[at + 1..];
    let visible = &line[..line.len().min(LENGTH_LINE_MAX)];
    let Some(len) = visible.iter().position(|&byte| byte == b'\r') else {
        return Err(match visible.len() {
            LENGTH_LINE_MAX => Stop::bad(endless, at),
            _ => Stop::Need(input.len() + 1),
        });
    };
    match line.get(len + 1) {
        Some(b'\n') => {}
        Some(_) => return Err(Stop::bad(bad, at)),
        None => return Err(Stop::Need(input.len() + 1)),
    }
    let value = crate::number::parse_int(&line[..len]).ok_or(Stop::bad(bad, at))?;
    Ok((value, at + 1 + len + 2))
}

/// Hands arguments on with their offset in the frame around the payload.
struct Shifted<'a, V> {
    base: usize,
    args: &'a mut V,
}

impl<V: ArgVisitor> ArgVisitor for Shifted<'_, V> {
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.args.bytes(self.base + offset, bytes);
    }
    fn int(&mut self, value: i64) {
        self.args.int(value);
    }
    fn double(&mut self, value: f64) {
        self.args.double(value);
    }
    fn keyword(&mut self, word: &'static str) {
        self.args.keyword(word);
    }
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.args.quoted(self.base + offset, raw);
    }
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.args.has_room()
    }
}
