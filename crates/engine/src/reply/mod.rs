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
//! | `answers(n)`, then `answer(m)` for each | nothing, array of m | nothing, push of m | array of n, array of m |
//! | `array_of_bulks(n)` and its like | array of n bulks at once | the same | the same |
//! | `double`, `bool`, `big_number`, `verbatim` | bulk, 1 or 0, bulk, bulk | themselves | themselves |
//! | `null`, `null_array` | `$-1`, `*-1` | `_` | null |
//!
//! What becomes of them in JSON says `json`. A sink for [`Protocol::Captured`] keeps the calls themselves, to be read
//! again or written to another sink ([`Captured`]). Each value is a `match` over all wires.

mod aggregate;
mod bulks;
mod captured;
mod json;
mod lost;
mod output;
mod protocol;
mod resource_state;
mod resp;
mod respb;

use aggregate::Kind;
pub use aggregate::Mark;
pub use bulks::Bulks;
pub use captured::{Aggregate, Captured, CapturedError, Item, Items};
pub(crate) use json::push_base64;
pub use output::{Output, OutputPlace, PIN_BYTES_MIN, Pin};
pub use protocol::{JsonForm, Protocol, Wire};
pub use resource_state::{ResourceOutcome, ResourceState, Tag};
use weft_protocol::number::{DOUBLE_TEXT_MAX, double_text};
use weft_store::{Digits, SharedBytes, ValueRef};

use crate::error::{Error, ErrorCode};

/// Receives one reply, value by value.
#[derive(Debug)]
pub struct ReplySink<'a> {
    out: &'a mut Output,
    wire: Wire,
    errors: u32,
}

impl<'a> ReplySink<'a> {
    /// A sink that appends to `out`.
    #[inline]
    #[must_use]
    pub fn new(out: &'a mut Output, wire: Wire) -> Self {
        Self { out, wire, errors: 0 }
    }
    /// The wire: only what a protocol itself prescribes may depend on it (a push that only one of them has).
    #[must_use]
    pub const fn wire(&self) -> Wire {
        self.wire
    }
    /// Later values are written for another protocol: HELLO answers in the one it chose. A reply that goes elsewhere
    /// than to the client stays as it is.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => self.wire.protocol = protocol,
            Protocol::Respb | Protocol::Json(_) | Protocol::Captured => {}
        }
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

    /// `OK`.
    #[inline]
    pub fn ok(&mut self) {
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => self.out.bytes.extend_from_slice(b"+OK\r\n"),
            Protocol::Respb => self.respb_ok(),
            Protocol::Json(form) => self.json_simple(form, b"OK"),
            Protocol::Captured => self.capture_simple(b"OK"),
        }
        self.end();
    }
    /// `PONG`, PING's answer.
    #[inline]
    pub fn pong(&mut self) {
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => self.out.bytes.extend_from_slice(b"+PONG\r\n"),
            Protocol::Respb => self.respb_pong(),
            Protocol::Json(form) => self.json_simple(form, b"PONG"),
            Protocol::Captured => self.capture_simple(b"PONG"),
        }
        self.end();
    }
    /// A status.
    pub fn simple(&mut self, text: &str) {
        let text = text.as_bytes();
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => self.resp_line(b'+', text),
            Protocol::Respb => self.respb_simple(text),
            Protocol::Json(form) => self.json_simple(form, text),
            Protocol::Captured => self.capture_simple(text),
        }
        self.end();
    }
    /// An error of a kind, with its own text.
    pub fn error_code(&mut self, code: ErrorCode) {
        self.error(&code.into());
    }
    /// An error.
    pub fn error(&mut self, error: &Error) {
        self.error_line(error.code, error.prefix().len(), &error.line());
    }
    /// An error as a line, its prefix first.
    fn error_line(&mut self, code: ErrorCode, prefix_len: usize, line: &str) {
        self.errors += 1;
        if self.at_top() {
            self.out.error = Some(code);
        }
        let bytes = line.as_bytes();
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => self.resp_line(b'-', bytes),
            Protocol::Respb => self.respb_error(bytes),
            Protocol::Json(form) => self.json_error(form, line),
            Protocol::Captured => self.capture_error(code, prefix_len, bytes),
        }
        self.end();
    }
    /// An integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        if self.wire.protocol.is_resp() && self.at_top() {
            // Nothing else is to be done: what a count or a flag is answered as, mostly.
            return self.resp_int(b':', value);
        }
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => self.resp_int(b':', value),
            Protocol::Respb => self.respb_int(value),
            Protocol::Json(form) => self.json_int(form, value),
            Protocol::Captured => self.capture_int(value),
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
            Protocol::Resp2 => self.resp_bulk(double_text(value, &mut [0; DOUBLE_TEXT_MAX])),
            Protocol::Resp3 => self.resp_line(b',', double_text(value, &mut [0; DOUBLE_TEXT_MAX])),
            Protocol::Respb => self.respb_double(value),
            Protocol::Json(form) => self.json_double(form, value),
            Protocol::Captured => self.capture_double(value),
        }
        self.end();
    }
    /// A double that has a text of its own where doubles are text.
    pub fn double_text(&mut self, text: &str) {
        match self.wire.protocol {
            Protocol::Resp2 => self.resp_bulk(text.as_bytes()),
            Protocol::Resp3 => self.resp_line(b',', text.as_bytes()),
            Protocol::Json(form) if form.is_flat() => self.json_bulk(form, text.as_bytes()),
            Protocol::Respb | Protocol::Json(_) => {
                return self.double(text.parse().unwrap_or(f64::NAN));
            }
            Protocol::Captured => self.capture_double_text(text.as_bytes()),
        }
        self.end();
    }
    /// A boolean.
    pub fn bool(&mut self, value: bool) {
        match self.wire.protocol {
            Protocol::Resp2 => self.resp_int(b':', i64::from(value)),
            Protocol::Resp3 => self.out.bytes.extend_from_slice(if value { b"#t\r\n" } else { b"#f\r\n" }),
            Protocol::Respb => self.respb_bool(value),
            Protocol::Json(form) => self.json_bool(form, value),
            Protocol::Captured => self.capture_bool(value),
        }
        self.end();
    }
    /// A whole number of any size, in digits.
    pub fn big_number(&mut self, digits: &str) {
        let digits = digits.as_bytes();
        match self.wire.protocol {
            Protocol::Resp2 => self.resp_bulk(digits),
            Protocol::Resp3 => self.resp_line(b'(', digits),
            Protocol::Respb => self.respb_big_number(digits),
            Protocol::Json(form) => self.json_bulk(form, digits),
            Protocol::Captured => self.capture_big_number(digits),
        }
        self.end();
    }
    /// A byte string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => self.resp_bulk(bytes),
            Protocol::Respb => self.respb_bulk(bytes),
            Protocol::Json(form) => self.json_bulk(form, bytes),
            Protocol::Captured => self.capture_bulk(bytes),
        }
        self.end();
    }
    /// A byte string of fewer than 256 bytes that is a whole reply.
    #[inline(always)]
    pub(crate) fn short_bulk(&mut self, bytes: &[u8]) {
        debug_assert!(self.at_top() && bytes.len() < 256);
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => self.resp_bulk(bytes),
            Protocol::Respb => self.respb_short_bulk(bytes),
            Protocol::Json(_) | Protocol::Captured => self.bulk(bytes),
        }
    }
    /// A large byte string: sent from where it is.
    pub fn bulk_shared(&mut self, value: &SharedBytes) {
        let bytes = value.as_slice();
        if bytes.len() < PIN_BYTES_MIN {
            return self.bulk(bytes);
        }
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => {
                self.resp_int(b'$', bytes.len() as i64);
                self.out.pin(value.clone());
                self.out.bytes.extend_from_slice(b"\r\n");
            }
            Protocol::Respb => {
                self.respb_bulk_head(bytes.len());
                self.out.pin(value.clone());
            }
            // It does not stand there as it is.
            Protocol::Json(form) => self.json_bulk(form, bytes),
            Protocol::Captured => {
                self.capture_shared_head(bytes.len());
                self.out.pin(value.clone());
            }
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
    /// A whole reply that was written for this protocol elsewhere.
    pub fn whole_reply(&mut self, bytes: &[u8]) {
        self.errors += u32::from(bytes.first() == Some(&b'-'));
        self.out.bytes.extend_from_slice(bytes);
        self.end();
    }
    /// Bytes as they are: a resource's, whose length the answer's head says.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.bytes.extend_from_slice(bytes);
    }
    /// The same for a large value, which is sent from where it is.
    pub(crate) fn raw_shared(&mut self, value: &SharedBytes) {
        match value.as_slice() {
            bytes if bytes.len() < PIN_BYTES_MIN => self.raw(bytes),
            _ => self.out.pin(value.clone()),
        }
    }
    /// What the answer about a resource says beside it.
    pub(crate) fn resource_state(&mut self, state: ResourceState) {
        self.out.resource_state = Some(Box::new(state));
    }
    /// An integer as a byte string.
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(Digits::default().write(value));
    }
    /// A double as a byte string.
    pub fn bulk_double(&mut self, value: f64) {
        self.bulk(double_text(value, &mut [0; DOUBLE_TEXT_MAX]));
    }
    /// Text with a format of three letters (`txt`, `mkd`).
    pub fn verbatim(&mut self, format: [u8; 3], bytes: &[u8]) {
        match self.wire.protocol {
            Protocol::Resp2 => self.resp_bulk(bytes),
            Protocol::Resp3 => self.resp_verbatim(format, bytes),
            Protocol::Respb => self.respb_verbatim(format, bytes),
            Protocol::Json(form) => self.json_bulk(form, bytes),
            Protocol::Captured => self.capture_verbatim(format, bytes),
        }
        self.end();
    }
    /// Null, where RESP2 has a null bulk.
    #[inline]
    pub fn null(&mut self) {
        match self.wire.protocol {
            Protocol::Resp2 => self.out.bytes.extend_from_slice(b"$-1\r\n"),
            Protocol::Resp3 => self.out.bytes.extend_from_slice(b"_\r\n"),
            Protocol::Respb => self.respb_null(),
            Protocol::Json(form) => self.json_null(form),
            Protocol::Captured => self.capture_null(),
        }
        self.end();
    }
    /// Null, where RESP2 has a null array.
    pub fn null_array(&mut self) {
        match self.wire.protocol {
            Protocol::Resp2 => self.out.bytes.extend_from_slice(b"*-1\r\n"),
            Protocol::Resp3 => self.out.bytes.extend_from_slice(b"_\r\n"),
            Protocol::Respb => self.respb_null(),
            Protocol::Json(form) => self.json_null(form),
            Protocol::Captured => self.capture_null_array(),
        }
        self.end();
    }
}

#[cfg(test)]
mod tests;
