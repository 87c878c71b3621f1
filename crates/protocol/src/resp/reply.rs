//! Decoding RESP replies: every type of RESP2 and RESP3, streamed ones included.
//!
//! Owns the lines. Resumes at the value it stopped at; a line in pieces is looked at again, a bulk is not.

use crate::limits::Limits;
use crate::number::{is_big, parse_int};
use crate::outcome::{Malformed, Outcome, Step, Stop};
use crate::reply::{Aggregate, Nesting, ReplyVisitor, Text};

/// A whole reply; its values went to the visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyFrame {
    /// Bytes of the frame.
    pub len: usize,
    /// It is a push, and answers nothing.
    pub push: bool,
}

/// Decodes replies, one after the other, resuming where one that is not whole stopped.
#[derive(Clone, Debug)]
pub struct ReplyDecoder {
    limits: Limits,
    /// Bytes that must be there before another attempt; 0 between replies.
    need: usize,
    /// Offset of the value that is read next.
    at: usize,
    /// Where the search for a line's end goes on.
    scanned: usize,
    nesting: Nesting,
    /// Inside a streamed byte string.
    in_text: bool,
    push: bool,
    /// The limits leave room for all that the straight code reads.
    is_straight: bool,
}

/// The most bytes of a bulk that the straight code reads: what four digits can say.
const STRAIGHT_MAX: u32 = 9_999;

impl ReplyDecoder {
    /// A decoder at the start of a reply.
    pub const fn new(limits: Limits) -> Self {
        ReplyDecoder {
            limits,
            need: 0,
            at: 0,
            scanned: 0,
            nesting: Nesting::NONE,
            in_text: false,
            push: false,
            is_straight: limits.frame_bytes_max > STRAIGHT_MAX + 16
                && limits.argument_bytes_max >= STRAIGHT_MAX
                && limits.inline_bytes_max >= 4,
        }
    }

    /// Decodes the reply at the start of `input`. After [`Outcome::Incomplete`] it is called again with the same bytes
    /// and more, and with the same visitor: values that were handed out are not handed out again.
    pub fn decode(&mut self, input: &[u8], visitor: &mut impl ReplyVisitor) -> Outcome<ReplyFrame> {
        if input.len() < self.need {
            return Outcome::Incomplete { need: self.need };
        }
        if self.need == 0
            && let Some(len) = self.whole(input, visitor)
        {
            return Outcome::Complete(ReplyFrame { len, push: false });
        }
        loop {
            match self.value(input, visitor) {
                Ok(false) => {}
                Ok(true) => {
                    let frame = ReplyFrame { len: self.at, push: self.push };
                    (self.need, self.at, self.scanned, self.push) = (0, 0, 0, false);
                    return Outcome::Complete(frame);
                }
                Err(Stop::Need(need)) => {
                    self.need = need;
                    return Outcome::Incomplete { need };
                }
                Err(Stop::Bad(error)) => return Outcome::Invalid(error),
            }
        }
    }

    /// Straight code for the commonest replies that are there as a whole: a bulk of up to [`STRAIGHT_MAX`] bytes, OK,
    /// null, small numbers.
    /// It leaves no state. What it does not take, good or bad, is read as everything else is.
    #[inline]
    fn whole(&self, input: &[u8], visitor: &mut impl ReplyVisitor) -> Option<usize> {
        if !self.is_straight || !visitor.has_room() {
            return None;
        }
        if let Some(rest) = input.strip_prefix(b"+OK\r\n") {
            visitor.text(Text::Simple, 1, &input[1..3]);
            visitor.span(0, input.len() - rest.len());
            return Some(input.len() - rest.len());
        }
        let (len, start) = match *input {
            [b'$', a @ b'0'..=b'9', b'\r', b'\n', ..] => (usize::from(a - b'0'), 4),
            [b'$', a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', b'\n', ..] => (digits([a, b]), 5),
            [b'$', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', b'\n', ..] => {
                (digits([a, b, c]), 6)
            }
            [b'$', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', d @ b'0'..=b'9', b'\r', b'\n', ..] => {
                (digits([a, b, c, d]), 7)
            }
            _ => return small(input, visitor),
        };
        let [bytes @ .., b'\r', b'\n'] = input.get(start..start + len + 2)? else { return None };
        visitor.text(Text::Bulk, start, bytes);
        visitor.span(0, start + len + 2);
        Some(start + len + 2)
    }

    /// Reads the value at `self.at`; returns whether the reply is complete.
    fn value(&mut self, input: &[u8], visitor: &mut impl ReplyVisitor) -> Step<bool> {
        let at = self.at;
        if !visitor.has_room() {
            return Err(Stop::FULL);
        }
        if at >= self.limits.frame_bytes_max as usize {
            return Err(Stop::bad(Malformed::FrameTooLong, at));
        }
        let kind = *input.get(at).ok_or(Stop::Need(at + 1))?;
        if self.in_text {
            return self.chunk(kind, input, visitor);
        }
        match kind {
            b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(' => {
                let line = self.line(input)?;
                scalar(kind, line, at, visitor)?;
                self.advance(at + 1 + line.len() + 2);
                visitor.span(at, self.at);
                Ok(self.nesting.complete_one())
            }
            b'$' | b'!' | b'=' => self.bulk(kind, input, visitor),
            b'*' | b'%' | b'~' | b'>' | b'|' => self.aggregate(kind, input, visitor),
            b'.' => {
                let line = self.line(input)?;
                if !line.is_empty() {
                    return Err(Stop::bad(Malformed::BadStream, at));
                }
                let complete = self.nesting.end_stream(at)?;
                visitor.close();
                self.advance(at + 3);
                visitor.span(at, self.at);
                Ok(complete)
            }
            _ => Err(Stop::bad(Malformed::UnknownType, at)),
        }
    }

    fn advance(&mut self, at: usize) {
        (self.at, self.scanned) = (at, at);
    }

    /// The line at `self.at`, without its type byte and line end.
    fn line<'a>(&mut self, input: &'a [u8]) -> Step<&'a [u8]> {
        let start = self.at + 1;
        let from = self.scanned.max(start);
        let limit = start.saturating_add(self.limits.inline_bytes_max as usize);
        match input[from..].iter().position(|&byte| byte == b'\r' || byte == b'\n') {
            Some(offset) => {
                let end = from + offset;
                if end > limit {
                    return Err(Stop::bad(Malformed::LineTooLong, self.at));
                }
                if input[end] == b'\n' {
                    return Err(Stop::bad(Malformed::BadLine, end));
                }
                match input.get(end + 1) {
                    Some(b'\n') if end + 2 > self.limits.frame_bytes_max as usize => {
                        Err(Stop::bad(Malformed::FrameTooLong, self.at))
                    }
                    Some(b'\n') => Ok(&input[start..end]),
                    Some(_) => Err(Stop::bad(Malformed::BadLine, end)),
                    None => {
                        self.scanned = end;
                        Err(Stop::Need(end + 2))
                    }
                }
            }
            None if input.len() > limit => Err(Stop::bad(Malformed::LineTooLong, self.at)),
            None => {
                self.scanned = input.len();
                Err(Stop::Need(input.len() + 1))
            }
        }
    }

    /// `$n`, `!n`, `=n`: where the bytes begin and how many; none for null and for a streamed string.
    fn bulk(&mut self, kind: u8, input: &[u8], visitor: &mut impl ReplyVisitor) -> Step<bool> {
        let at = self.at;
        let line = self.line(input)?;
        let start = at + 1 + line.len() + 2;
        match line {
            b"-1" if kind == b'$' => {
                visitor.null(false);
                self.advance(start);
                visitor.span(at, start);
                return Ok(self.nesting.complete_one());
            }
            b"?" if kind == b'$' => {
                visitor.open_text();
                self.in_text = true;
                self.advance(start);
                visitor.span(at, start);
                return Ok(false);
            }
            _ => {}
        }
        let bytes = self.sized(line, start, input)?;
        match kind {
            b'$' => visitor.text(Text::Bulk, start, bytes),
            b'!' => visitor.text(Text::Error, start, bytes),
            _ => match bytes {
                [a, b, c, b':', text @ ..] => visitor.text(Text::Verbatim([*a, *b, *c]), start + 4, text),
                _ => return Err(Stop::bad(Malformed::BadVerbatim, start)),
            },
        }
        self.advance(start + bytes.len() + 2);
        visitor.span(at, self.at);
        Ok(self.nesting.complete_one())
    }

    /// The bytes that a length line announces, once they and their line end are there.
    fn sized<'a>(&self, line: &[u8], start: usize, input: &'a [u8]) -> Step<&'a [u8]> {
        let len = parse_int(line).and_then(|len| usize::try_from(len).ok());
        let len = len.ok_or(Stop::bad(Malformed::BadLength, self.at))?;
        if len > self.limits.argument_bytes_max as usize {
            return Err(Stop::bad(Malformed::ArgumentTooLong, self.at));
        }
        let end = start.saturating_add(len);
        if end.saturating_add(2) > self.limits.frame_bytes_max as usize {
            return Err(Stop::bad(Malformed::FrameTooLong, self.at));
        }
        let body = input.get(start..end + 2).ok_or(Stop::Need(end + 2))?;
        let (bytes, line_end) = body.split_at(len);
        if line_end != b"\r\n" {
            return Err(Stop::bad(Malformed::BulkEnd, end));
        }
        Ok(bytes)
    }

    /// A chunk of a streamed string: `;n`, of length 0 at its end.
    fn chunk(&mut self, kind: u8, input: &[u8], visitor: &mut impl ReplyVisitor) -> Step<bool> {
        let at = self.at;
        if kind != b';' {
            return Err(Stop::bad(Malformed::BadStream, at));
        }
        let line = self.line(input)?;
        let start = at + 1 + line.len() + 2;
        if line == b"0" {
            visitor.close();
            self.in_text = false;
            self.advance(start);
            visitor.span(at, start);
            return Ok(self.nesting.complete_one());
        }
        let bytes = self.sized(line, start, input)?;
        visitor.text(Text::Bulk, start, bytes);
        self.advance(start + bytes.len() + 2);
        visitor.span(at, self.at);
        Ok(false)
    }

    fn aggregate(&mut self, kind: u8, input: &[u8], visitor: &mut impl ReplyVisitor) -> Step<bool> {
        let at = self.at;
        let line = self.line(input)?;
        let next = at + 1 + line.len() + 2;
        if kind == b'*' && line == b"-1" {
            visitor.null(true);
            self.advance(next);
            visitor.span(at, next);
            return Ok(self.nesting.complete_one());
        }
        let aggregate = match kind {
            b'*' => Aggregate::Array,
            b'%' => Aggregate::Map,
            b'~' => Aggregate::Set,
            b'>' => Aggregate::Push,
            _ => Aggregate::Attribute,
        };
        let len = match line {
            b"?" if kind != b'>' && kind != b'|' => None,
            _ => {
                let len = parse_int(line).and_then(|len| u32::try_from(len).ok());
                Some(len.ok_or(Stop::bad(Malformed::BadLength, at))?)
            }
        };
        self.push |= aggregate == Aggregate::Push;
        let complete = self.nesting.open(aggregate, len, &self.limits, at)?;
        visitor.open(aggregate, len);
        visitor.span(at, next);
        self.advance(next);
        Ok(complete)
    }
}

/// The part of the straight code for replies without bytes: null, and integers of up to three digits.
#[inline]
fn small(input: &[u8], visitor: &mut impl ReplyVisitor) -> Option<usize> {
    let (number, len) = match *input {
        [b'$', b'-', b'1', b'\r', b'\n', ..] => (None, 5),
        [b'_', b'\r', b'\n', ..] => (None, 3),
        [b':', a @ b'0'..=b'9', b'\r', b'\n', ..] => (Some(digits([a])), 4),
        [b':', a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', b'\n', ..] => (Some(digits([a, b])), 5),
        [b':', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', b'\n', ..] => {
            (Some(digits([a, b, c])), 6)
        }
        _ => return None,
    };
    match number {
        Some(number) => visitor.int(number as i64),
        None => visitor.null(false),
    }
    visitor.span(0, len);
    Some(len)
}

fn digits<const N: usize>(digits: [u8; N]) -> usize {
    digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

/// The types that are one line.
fn scalar(kind: u8, line: &[u8], at: usize, visitor: &mut impl ReplyVisitor) -> Step<()> {
    match kind {
        b'+' => visitor.text(Text::Simple, at + 1, line),
        b'-' => visitor.text(Text::Error, at + 1, line),
        b':' => {
            // RESP allows a plus sign here; nothing else that is not canonical.
            let digits = line.strip_prefix(b"+").filter(|rest| rest.first() != Some(&b'-')).unwrap_or(line);
            visitor.int(parse_int(digits).ok_or(Stop::bad(Malformed::BadNumber, at))?);
        }
        b',' => visitor.double(double(line).ok_or(Stop::bad(Malformed::BadNumber, at))?),
        b'#' => match line {
            b"t" => visitor.boolean(true),
            b"f" => visitor.boolean(false),
            _ => return Err(Stop::bad(Malformed::BadBool, at)),
        },
        b'_' if line.is_empty() => visitor.null(false),
        b'_' => return Err(Stop::bad(Malformed::BadLine, at)),
        _ => {
            if !is_big(line) {
                return Err(Stop::bad(Malformed::BadNumber, at));
            }
            visitor.text(Text::BigNumber, at + 1, line);
        }
    }
    Ok(())
}

/// RESP3's `,`: digits, a fraction, an exponent, or one of `inf`, `-inf`, `nan`.
fn double(line: &[u8]) -> Option<f64> {
    match line {
        b"inf" | b"+inf" => return Some(f64::INFINITY),
        b"-inf" => return Some(f64::NEG_INFINITY),
        b"nan" | b"-nan" => return Some(f64::NAN),
        _ => {}
    }
    if !line.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
        return None;
    }
    core::str::from_utf8(line).ok()?.parse().ok()
}
