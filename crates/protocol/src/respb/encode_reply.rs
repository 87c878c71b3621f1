//! Encoding replies: each value in its shortest form (spec section 5.4).
//!
//! Owns the choice of the form and the count of open aggregates, which decides whether a value is a frame or an
//! element.

use alloc::vec::Vec;

use super::frame::{SHORT_BULK, SHORT_SIMPLE, SMALL_INT, TAG_BULK_FIRST, TAG_INT_FIRST, kind};
use crate::buffer::{Buffer, Stack};
use crate::reply::{Aggregate, ReplyVisitor, Text};

/// The NaN that stands for all.
const NAN_BITS: u64 = 0x7FF8_0000_0000_0000;

/// Appends replies for one channel to a buffer. It is a [`ReplyVisitor`]: a decoder can write straight into it.
#[derive(Debug)]
pub struct ReplyWriter<'a, B = Vec<u8>, S = Vec<Open>> {
    out: &'a mut B,
    channel: u16,
    open: S,
    /// Where the `u32` length of a streamed text stands.
    text_at: Option<usize>,
}

/// An aggregate that is open.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// Elements to come; for a streamed aggregate, elements so far.
    elements: u64,
    /// Where the count of a streamed aggregate stands, and its kind.
    streamed: Option<(usize, Aggregate)>,
}

impl<'a, B: Buffer> ReplyWriter<'a, B> {
    /// A writer that appends to `out`.
    pub fn new(out: &'a mut B, channel: u16) -> Self {
        Self::resume(out, channel, Vec::new(), None)
    }
}

impl<'a, B: Buffer, S: Stack<Open>> ReplyWriter<'a, B, S> {
    /// A writer that goes on where another one stopped, with the aggregates that it left open and its
    /// [`text_at`](Self::text_at).
    pub fn resume(out: &'a mut B, channel: u16, open: S, text_at: Option<usize>) -> Self {
        ReplyWriter { out, channel, open, text_at }
    }

    /// Where the streamed text stands that is open, for [`resume`](Self::resume).
    pub fn text_at(&self) -> Option<usize> {
        self.text_at
    }

    fn head(&mut self, high: u8, low: u8) {
        let [c1, c0] = self.channel.to_be_bytes();
        self.out.extend_from_slice(&[high, low, c1, c0]);
    }

    /// Starts a value of a type: a header at the top, a tag inside an aggregate.
    fn begin(&mut self, kind: u8) {
        if self.open.depth() == 0 { self.head(0x80, kind) } else { self.out.push(kind) }
    }

    /// A value is complete.
    fn end(&mut self) {
        while let Some(top) = self.open.last_mut() {
            if top.streamed.is_some() {
                top.elements += 1;
                return;
            }
            top.elements -= 1;
            if top.elements > 0 {
                return;
            }
            self.open.pop();
        }
    }

    fn sized16(&mut self, kind: u8, bytes: &[u8]) {
        self.begin(kind);
        // The callers have checked that it fits.
        self.out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        self.out.extend_from_slice(bytes);
    }

    fn sized32(&mut self, kind: u8, bytes: &[u8]) {
        self.begin(kind);
        self.out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.out.extend_from_slice(bytes);
    }

    fn bulk(&mut self, bytes: &[u8]) {
        match (self.open.depth() == 0, bytes.len()) {
            (true, len @ 0..=0xFF) => self.head(SHORT_BULK, len as u8),
            (false, len @ 0..=0x7F) => self.out.push(TAG_BULK_FIRST | len as u8),
            _ => return self.sized32(kind::BULK, bytes),
        }
        self.out.extend_from_slice(bytes);
    }

    fn simple(&mut self, bytes: &[u8]) {
        match (self.open.depth() == 0, bytes.len()) {
            (_, 2) if bytes == b"OK" => self.begin(kind::OK),
            (true, len @ 0..=0xFF) => {
                self.head(SHORT_SIMPLE, len as u8);
                self.out.extend_from_slice(bytes);
            }
            (_, 0..=0xFFFF) => self.sized16(kind::SIMPLE, bytes),
            // Longer than the type can say: its bytes matter more than its type.
            _ => self.bulk(bytes),
        }
    }
}

impl<B: Buffer, S: Stack<Open>> ReplyVisitor for ReplyWriter<'_, B, S> {
    fn text(&mut self, text: Text, _offset: usize, bytes: &[u8]) {
        if self.text_at.is_some() {
            self.out.extend_from_slice(bytes);
            return;
        }
        match text {
            Text::Bulk => self.bulk(bytes),
            Text::Simple => self.simple(bytes),
            Text::Error if bytes.len() <= usize::from(u16::MAX) => self.sized16(kind::ERROR, bytes),
            Text::Error => self.sized32(kind::LONG_ERROR, bytes),
            Text::BigNumber => self.sized32(kind::BIG_NUMBER, bytes),
            Text::Verbatim(format) => {
                self.begin(kind::VERBATIM);
                self.out.extend_from_slice(&format);
                self.out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                self.out.extend_from_slice(bytes);
            }
        }
        self.end();
    }

    fn int(&mut self, value: i64) {
        match (self.open.depth() == 0, value) {
            (true, 0..=0xFF) => self.head(SMALL_INT, value as u8),
            (false, -1..=62) => self.out.push(TAG_INT_FIRST + (value + 1) as u8),
            _ => match i32::try_from(value) {
                Ok(value) => {
                    self.begin(kind::INT32);
                    self.out.extend_from_slice(&value.to_be_bytes());
                }
                Err(_) => {
                    self.begin(kind::INT);
                    self.out.extend_from_slice(&value.to_be_bytes());
                }
            },
        }
        self.end();
    }

    fn double(&mut self, value: f64) {
        self.begin(kind::DOUBLE);
        // One NaN of the many: spec section 5.2.
        let bits = if value.is_nan() { NAN_BITS } else { value.to_bits() };
        self.out.extend_from_slice(&bits.to_be_bytes());
        self.end();
    }

    fn boolean(&mut self, value: bool) {
        self.begin(kind::BOOL);
        self.out.push(u8::from(value));
        self.end();
    }

    fn null(&mut self, _array: bool) {
        self.begin(kind::NULL);
        self.end();
    }

    fn open(&mut self, aggregate: Aggregate, len: Option<u32>) {
        self.begin(match aggregate {
            Aggregate::Array => kind::ARRAY,
            Aggregate::Map => kind::MAP,
            Aggregate::Set => kind::SET,
            Aggregate::Push => kind::PUSH,
            Aggregate::Attribute => kind::ATTRIBUTE,
        });
        self.out.extend_from_slice(&len.unwrap_or(0).to_be_bytes());
        let streamed = len.is_none().then_some((self.out.len() - 4, aggregate));
        // An attribute holds its pairs and the value that they belong to, which is an element as well.
        let value = u64::from(aggregate == Aggregate::Attribute);
        let elements = len.map_or(0, |len| u64::from(len) * aggregate.width()) + value;
        if elements == 0 && streamed.is_none() {
            self.end();
        } else {
            self.open.push(Open { elements, streamed });
        }
    }

    fn close(&mut self) {
        if let Some(at) = self.text_at.take() {
            let len = (self.out.len() - at - 4) as u32;
            self.out.patch(at, &len.to_be_bytes());
            self.end();
            return;
        }
        if let Some(Open { elements, streamed: Some((at, aggregate)) }) = self.open.pop() {
            let count = (elements / aggregate.width()) as u32;
            self.out.patch(at, &count.to_be_bytes());
            self.end();
        }
    }

    fn open_text(&mut self) {
        self.begin(kind::BULK);
        self.text_at = Some(self.out.len());
        self.out.extend_from_slice(&[0; 4]);
    }
}
