//! Owns: what a handler writes its reply to, and what each value becomes on each wire. Does not own: which value a
//! command answers.
//!
//! A handler calls one method for each value; an aggregate is announced with its length and its elements follow. Below
//! the sink nothing knows a protocol. `mark` and `rollback` take back what an error made void; `deferred` opens an
//! array whose length is known late.
//!
//! | call | RESP2 | RESP3 | RESPB |
//! |---|---|---|---|
//! | `map(n)` | array of 2n | map | map |
//! | `set(n)` | array | set | set |
//! | `pairs(n)`, then `pair()` before each | array of 2n | array of n arrays of 2 | as RESP3 |
//! | `map_of_arrays(n)`, then `entry()` before each | array of n arrays of 2 | map | map |
//! | `push(n)` | array | push | push |
//! | `array_of_bulks(n)` and its like | array of n bulks at once | the same | the same |
//! | `double`, `bool`, `big_number`, `verbatim` | bulk, 1 or 0, bulk, bulk | themselves | themselves |
//! | `null`, `null_array` | `$-1`, `*-1` | `_` | null |

mod bulks;
mod output;
mod resp;
mod respb;

pub use bulks::Bulks;
pub use output::{Output, OutputPlace, PIN_BYTES_MIN, Pin};
use weft_store::{Digits, SharedBytes, ValueRef};

use crate::error::{Error, ErrorCode};

/// The protocol that a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// RESP2.
    #[default]
    Resp2,
    /// RESP3.
    Resp3,
    /// RESPB.
    Respb,
}

/// Where a client's replies go: its protocol and, on RESPB, its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Wire {
    /// The protocol.
    pub protocol: Protocol,
    /// The channel; 0 but for RESPB.
    pub channel: u16,
}

/// An aggregate that is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Elements to come; of a deferred one, elements so far.
    elements: u64,
    /// Of a deferred one, where its length belongs, and how many pins were before it.
    deferred: Option<(usize, usize)>,
}

/// A place to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    bytes: usize,
    pins: usize,
    open: usize,
    top: Option<Open>,
}

/// Receives one reply, value by value.
#[derive(Debug)]
pub struct ReplySink<'a> {
    out: &'a mut Output,
    wire: Wire,
    errors: u32,
}

/// Kinds of aggregates, as RESPB and RESP3 have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Array,
    Map,
    Set,
    Push,
}

impl<'a> ReplySink<'a> {
    /// A sink that appends to `out`.
    #[inline]
    #[must_use]
    pub fn new(out: &'a mut Output, wire: Wire) -> Self {
        Self { out, wire, errors: 0 }
    }
    /// The wire: only what a protocol itself prescribes may depend on it (the form of SUBSCRIBE's answer).
    #[must_use]
    pub const fn wire(&self) -> Wire {
        self.wire
    }
    /// Whether the client reads RESP2: for the few replies that differ in more than form.
    #[must_use]
    pub fn is_resp2(&self) -> bool {
        self.wire.protocol == Protocol::Resp2
    }
    /// Later values are written for another protocol: HELLO answers in the one it chose.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.wire.protocol = protocol;
    }
    /// Where in the output the next value will begin.
    #[inline]
    #[must_use]
    pub fn place(&self) -> OutputPlace {
        self.out.end()
    }
    /// Bytes of the output so far: for limits on a reply's size.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }
    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }
    /// How many errors were written.
    #[must_use]
    pub const fn errors(&self) -> u32 {
        self.errors
    }

    fn is_respb(&self) -> bool {
        self.wire.protocol == Protocol::Respb
    }
    /// Whether the next value stands at the top: RESPB gives it a header instead of a tag.
    fn at_top(&self) -> bool {
        self.out.open.is_empty()
    }
    /// A value is complete.
    #[inline]
    fn end(&mut self) {
        if !self.out.open.is_empty() {
            self.end_inside();
        }
    }
    fn end_inside(&mut self) {
        while let Some(top) = self.out.open.last_mut() {
            if top.deferred.is_some() {
                top.elements += 1;
                return;
            }
            top.elements = top.elements.saturating_sub(1);
            if top.elements > 0 {
                return;
            }
            self.out.open.pop();
        }
    }

    /// `OK`.
    #[inline]
    pub fn ok(&mut self) {
        if self.is_respb() {
            self.respb_ok()
        } else {
            self.out.bytes.extend_from_slice(b"+OK\r\n")
        }
        self.end();
    }
    /// `PONG`, PING's answer.
    #[inline]
    pub fn pong(&mut self) {
        if self.is_respb() {
            self.respb_pong()
        } else {
            self.out.bytes.extend_from_slice(b"+PONG\r\n")
        }
        self.end();
    }
    /// A status.
    pub fn simple(&mut self, text: &str) {
        if self.is_respb() {
            self.respb_simple(text.as_bytes())
        } else {
            self.resp_line(b'+', text.as_bytes())
        }
        self.end();
    }
    /// An error of a kind, with its own text.
    pub fn error_code(&mut self, code: ErrorCode) {
        self.error(&code.into());
    }
    /// An error.
    pub fn error(&mut self, error: &Error) {
        let text = format!("{} {}", error.prefix(), error.text);
        self.error_text(&text);
    }
    /// An error as a whole line, its code first.
    pub fn error_text(&mut self, text: &str) {
        self.errors += 1;
        // A line end of what an error repeats is left out at its end, and a blank inside.
        let text = text.trim_end_matches(['\r', '\n']);
        if self.is_respb() {
            self.respb_error(text.as_bytes())
        } else {
            self.resp_error(text.as_bytes())
        }
        self.end();
    }
    /// An integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        if self.is_respb() {
            self.respb_int(value)
        } else {
            self.resp_int(b':', value)
        }
        self.end();
    }
    /// A count.
    #[inline]
    pub fn count(&mut self, value: usize) {
        self.int(value as i64);
    }
    /// A double.
    pub fn double(&mut self, value: f64) {
        match self.wire.protocol {
            Protocol::Respb => self.respb_double(value),
            Protocol::Resp3 => self.resp_double(value),
            Protocol::Resp2 => self.resp_double_bulk(value),
        }
        self.end();
    }
    /// A boolean.
    pub fn bool(&mut self, value: bool) {
        match self.wire.protocol {
            Protocol::Respb => self.respb_bool(value),
            Protocol::Resp3 => self.out.bytes.extend_from_slice(if value { b"#t\r\n" } else { b"#f\r\n" }),
            Protocol::Resp2 => self.resp_int(b':', i64::from(value)),
        }
        self.end();
    }
    /// A whole number of any size, in digits.
    pub fn big_number(&mut self, digits: &str) {
        match self.wire.protocol {
            Protocol::Respb => self.respb_big_number(digits.as_bytes()),
            Protocol::Resp3 => self.resp_line(b'(', digits.as_bytes()),
            Protocol::Resp2 => self.resp_bulk(digits.as_bytes()),
        }
        self.end();
    }
    /// A byte string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        if self.is_respb() {
            self.respb_bulk(bytes)
        } else {
            self.resp_bulk(bytes)
        }
        self.end();
    }
    /// A byte string of fewer than 256 bytes that is a whole reply.
    #[inline(always)]
    pub(crate) fn short_bulk(&mut self, bytes: &[u8]) {
        debug_assert!(self.at_top() && bytes.len() < 256);
        if self.is_respb() { self.respb_short_bulk(bytes) } else { self.resp_bulk(bytes) }
    }
    /// A large byte string: sent from where it is.
    pub fn bulk_shared(&mut self, value: &SharedBytes) {
        let bytes = value.as_slice();
        if bytes.len() < PIN_BYTES_MIN {
            return self.bulk(bytes);
        }
        if self.is_respb() {
            self.respb_bulk_head(bytes.len());
            self.out.pin(value.clone());
        } else {
            self.resp_int(b'$', bytes.len() as i64);
            self.out.pin(value.clone());
            self.out.bytes.extend_from_slice(b"\r\n");
        }
        self.end();
    }
    /// A stored string in any of its forms; an object is none and gives null.
    #[inline]
    pub fn value(&mut self, value: &ValueRef<'_>) {
        match value {
            ValueRef::Bytes(bytes) => self.bulk(bytes),
            ValueRef::Int(number) => self.bulk(Digits::default().write(*number)),
            ValueRef::Shared(bytes) => self.bulk_shared(bytes),
            _ => self.null(),
        }
    }
    /// An integer as a byte string.
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(Digits::default().write(value));
    }
    /// A double as a byte string.
    pub fn bulk_double(&mut self, value: f64) {
        let mut buffer = [0; weft_protocol::number::DOUBLE_TEXT_MAX];
        self.bulk(weft_protocol::number::double_text(value, &mut buffer));
    }
    /// Text with a format of three letters (`txt`, `mkd`).
    pub fn verbatim(&mut self, format: [u8; 3], bytes: &[u8]) {
        match self.wire.protocol {
            Protocol::Respb => self.respb_verbatim(format, bytes),
            Protocol::Resp3 => self.resp_verbatim(format, bytes),
            Protocol::Resp2 => self.resp_bulk(bytes),
        }
        self.end();
    }
    /// Null, where RESP2 has a null bulk.
    #[inline]
    pub fn null(&mut self) {
        match self.wire.protocol {
            Protocol::Respb => self.respb_null(),
            Protocol::Resp3 => self.out.bytes.extend_from_slice(b"_\r\n"),
            Protocol::Resp2 => self.out.bytes.extend_from_slice(b"$-1\r\n"),
        }
        self.end();
    }
    /// Null, where RESP2 has a null array.
    pub fn null_array(&mut self) {
        match self.wire.protocol {
            Protocol::Respb => self.respb_null(),
            Protocol::Resp3 => self.out.bytes.extend_from_slice(b"_\r\n"),
            Protocol::Resp2 => self.out.bytes.extend_from_slice(b"*-1\r\n"),
        }
        self.end();
    }

    /// An array of `len` elements, which follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.aggregate(Kind::Array, len, len);
    }
    /// A set of `len` members.
    pub fn set(&mut self, len: usize) {
        self.aggregate(Kind::Set, len, len);
    }
    /// A map of `len` pairs: twice as many values follow.
    pub fn map(&mut self, len: usize) {
        self.aggregate(Kind::Map, len, 2 * len);
    }
    /// A push of `len` elements. Not inside anything.
    pub fn push(&mut self, len: usize) {
        self.aggregate(Kind::Push, len, len);
    }
    /// `len` pairs, flat in RESP2; [`pair`](Self::pair) goes before each.
    pub fn pairs(&mut self, len: usize) {
        self.array(if self.is_resp2() { 2 * len } else { len });
    }
    /// The next of [`pairs`](Self::pairs): two values follow.
    pub fn pair(&mut self) {
        if !self.is_resp2() {
            self.array(2);
        }
    }
    /// `len` keys with arrays, an array of pairs in RESP2; [`entry`](Self::entry) goes before each.
    pub fn map_of_arrays(&mut self, len: usize) {
        if self.is_resp2() { self.array(len) } else { self.map(len) }
    }
    /// The next of [`map_of_arrays`](Self::map_of_arrays): a key and a value follow.
    pub fn entry(&mut self) {
        if self.is_resp2() {
            self.array(2);
        }
    }

    fn aggregate(&mut self, kind: Kind, len: usize, elements: usize) {
        self.head_of(kind, len, elements);
        if elements == 0 {
            return self.end();
        }
        // RESP needs to count elements only inside a deferred aggregate.
        if self.is_respb() || !self.out.open.is_empty() {
            self.out.open.push(Open { elements: elements as u64, deferred: None });
        }
    }

    /// The header of an aggregate.
    fn head_of(&mut self, kind: Kind, len: usize, elements: usize) {
        match self.wire.protocol {
            Protocol::Respb => self.respb_aggregate(kind, len),
            Protocol::Resp3 => self.resp_int(kind.resp3(), len as i64),
            Protocol::Resp2 => self.resp_int(b'*', elements as i64),
        }
    }

    /// An array whose length is known when it is [closed](Self::close). In RESP its length line is put in before what
    /// stands behind it, which moves it once.
    pub fn deferred(&mut self) {
        let pins = self.out.pins.len();
        let at = if self.is_respb() {
            self.respb_aggregate(Kind::Array, 0);
            self.out.bytes.len() - 4
        } else {
            self.out.bytes.len()
        };
        self.out.open.push(Open { elements: 0, deferred: Some((at, pins)) });
    }
    /// Elements so far of the deferred array that was opened last.
    #[must_use]
    pub fn deferred_len(&self) -> usize {
        self.out.open.last().map_or(0, |top| top.elements as usize)
    }
    /// Ends a deferred array. It must be the innermost open one.
    pub fn close(&mut self) {
        let Some(Open { elements, deferred: Some((at, pins)) }) = self.out.open.pop() else {
            debug_assert!(false, "close needs a deferred array");
            return;
        };
        if self.is_respb() {
            self.out.bytes[at..at + 4].copy_from_slice(&(elements as u32).to_be_bytes());
        } else {
            let mut digits = itoa::Buffer::new();
            let line = format!("*{}\r\n", digits.format(elements));
            self.out.insert(at, pins, line.as_bytes());
        }
        self.end();
    }

    /// A place to go back to, before a value.
    #[must_use]
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark {
            bytes: self.out.bytes.len(),
            pins: self.out.pins.len(),
            open: self.out.open.len(),
            top: self.out.open.last().copied(),
        }
    }
    /// Takes back everything since the mark. The value begun there must not have been completed.
    pub fn rollback(&mut self, mark: Mark) {
        self.out.truncate(mark.bytes, mark.pins);
        self.out.open.truncate(mark.open);
        if let (Some(top), Some(before)) = (self.out.open.last_mut(), mark.top) {
            *top = before;
        }
    }
    /// Whether anything was written since the mark.
    #[must_use]
    pub fn has_written(&self, mark: Mark) -> bool {
        self.out.bytes.len() != mark.bytes
    }
}

impl Kind {
    const fn resp3(self) -> u8 {
        match self {
            Self::Array => b'*',
            Self::Map => b'%',
            Self::Set => b'~',
            Self::Push => b'>',
        }
    }
}

#[cfg(test)]
mod tests;
