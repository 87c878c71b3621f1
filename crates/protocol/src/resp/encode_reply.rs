//! Encoding replies in RESP2 and RESP3.
//!
//! Owns what each RESP3 type becomes in RESP2, and the late lengths of streamed aggregates, which are written as plain
//! ones: clients seldom read the streamed form.

use alloc::vec::Vec;

use super::encode::{bulk, length};
use crate::buffer::{Buffer, FixedBuffer, Stack};
use crate::number;
use crate::reply::{Aggregate, ReplyVisitor, Text};

/// The version that a client understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Maps and pairs become flat arrays, doubles bulks, booleans integers; attributes are left out.
    Resp2,
    /// Everything as it is.
    Resp3,
}

/// Appends replies to a buffer. It is a [`ReplyVisitor`]: a decoder can write straight into it.
#[derive(Debug)]
pub struct ReplyWriter<'a, B = Vec<u8>, S = Vec<Open>> {
    out: &'a mut B,
    version: Version,
    /// Aggregates that are open, kept only while one of them is streamed or left out.
    open: S,
    text_at: Option<usize>,
}

/// An aggregate that is open.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    kind: Aggregate,
    /// Elements to come; for a streamed aggregate, elements so far.
    elements: u64,
    streamed: bool,
    /// Where the aggregate begins in the output.
    at: usize,
}

impl<'a, B: Buffer> ReplyWriter<'a, B> {
    /// A writer that appends to `out`.
    pub fn new(out: &'a mut B, version: Version) -> Self {
        Self::resume(out, version, Vec::new(), None)
    }
}

impl<'a, B: Buffer, S: Stack<Open>> ReplyWriter<'a, B, S> {
    /// A writer that goes on where another one stopped, with the aggregates that it left open and its
    /// [`text_at`](Self::text_at).
    pub fn resume(out: &'a mut B, version: Version, open: S, text_at: Option<usize>) -> Self {
        ReplyWriter { out, version, open, text_at }
    }

    /// Where the streamed text stands that is open, for [`resume`](Self::resume).
    pub fn text_at(&self) -> Option<usize> {
        self.text_at
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    fn verbatim(&mut self, format: [u8; 3], bytes: &[u8]) {
        length(b'=', bytes.len() + 4, self.out);
        self.out.extend_from_slice(&format);
        self.out.push(b':');
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    fn error(&mut self, bytes: &[u8]) {
        // A line cannot hold a line end: RESP3 has a type for such errors, RESP2 gets blanks.
        if !has_line_end(bytes) {
            return self.line(b'-', bytes);
        }
        if self.version == Version::Resp3 {
            length(b'!', bytes.len(), self.out);
            self.out.extend_from_slice(bytes);
            self.out.extend_from_slice(b"\r\n");
            return;
        }
        self.out.push(b'-');
        bytes.iter().for_each(|&byte| self.out.push(if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    /// A value is complete.
    fn end(&mut self) {
        while let Some(top) = self.open.last_mut() {
            if top.streamed {
                top.elements += 1;
                return;
            }
            top.elements -= 1;
            if top.elements > 0 {
                return;
            }
            let Some(top) = self.open.pop() else { return };
            if top.kind == Aggregate::Attribute {
                // Its end completes no value; RESP2 clients do not get it at all.
                if self.version == Version::Resp2 {
                    self.out.truncate(top.at);
                }
                return;
            }
        }
    }

    /// Writes a length line before what stands from `at` on.
    fn insert_length(&mut self, at: usize, kind: u8, len: usize) {
        let mut line = [0; number::INT_TEXT_MAX + 3];
        let mut head = FixedBuffer::new(&mut line, 0);
        length(kind, len, &mut head);
        self.out.insert_from_slice(at, head.written());
    }

    fn type_byte(&self, kind: Aggregate) -> u8 {
        match (self.version, kind) {
            (Version::Resp2, _) | (_, Aggregate::Array) => b'*',
            (_, Aggregate::Map) => b'%',
            (_, Aggregate::Set) => b'~',
            (_, Aggregate::Push) => b'>',
            (_, Aggregate::Attribute) => b'|',
        }
    }

    fn units(&self, kind: Aggregate, elements: u64) -> usize {
        let width = if self.version == Version::Resp2 { 1 } else { kind.width() };
        (elements / width) as usize
    }
}

fn has_line_end(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n'))
}

impl<B: Buffer, S: Stack<Open>> ReplyVisitor for ReplyWriter<'_, B, S> {
    fn text(&mut self, text: Text, _offset: usize, bytes: &[u8]) {
        if self.text_at.is_some() {
            self.out.extend_from_slice(bytes);
            return;
        }
        match (text, self.version) {
            // A status with a line end cannot be a line: its bytes matter more than its type.
            (Text::Simple, _) if has_line_end(bytes) => bulk(bytes, self.out),
            (Text::Simple, _) => self.line(b'+', bytes),
            (Text::Error, _) => self.error(bytes),
            (Text::BigNumber, Version::Resp3) => self.line(b'(', bytes),
            (Text::Verbatim(format), Version::Resp3) => self.verbatim(format, bytes),
            (Text::Bulk, _) | (Text::BigNumber | Text::Verbatim(_), Version::Resp2) => bulk(bytes, self.out),
        }
        self.end();
    }

    fn int(&mut self, value: i64) {
        self.line(b':', itoa::Buffer::new().format(value).as_bytes());
        self.end();
    }

    fn double(&mut self, value: f64) {
        let mut buffer = [0; number::DOUBLE_TEXT_MAX];
        let text = number::double_text(value, &mut buffer);
        match self.version {
            Version::Resp2 => bulk(text, self.out),
            Version::Resp3 => self.line(b',', text),
        }
        self.end();
    }

    fn boolean(&mut self, value: bool) {
        match (self.version, value) {
            (Version::Resp2, _) => self.line(b':', if value { b"1" } else { b"0" }),
            (Version::Resp3, true) => self.line(b'#', b"t"),
            (Version::Resp3, false) => self.line(b'#', b"f"),
        }
        self.end();
    }

    fn null(&mut self, array: bool) {
        self.out.extend_from_slice(match (self.version, array) {
            (Version::Resp3, _) => b"_\r\n",
            (Version::Resp2, true) => b"*-1\r\n",
            (Version::Resp2, false) => b"$-1\r\n",
        });
        self.end();
    }

    fn open(&mut self, kind: Aggregate, len: Option<u32>) {
        let (at, elements) = (self.out.len(), len.map_or(0, |len| u64::from(len) * kind.width()));
        if len.is_some() {
            length(self.type_byte(kind), self.units(kind, elements), self.out);
        }
        let left_out = kind == Aggregate::Attribute && self.version == Version::Resp2;
        let whole = len.is_some() && elements == 0;
        match (kind, whole) {
            (Aggregate::Attribute, true) if left_out => self.out.truncate(at),
            (Aggregate::Attribute, true) => {}
            (_, true) => self.end(),
            // RESP3 attributes need no bookkeeping of their own, and must not count as an element.
            (Aggregate::Attribute, false) if !left_out && self.open.depth() == 0 => {}
            (_, false) if len.is_some() && !left_out && self.open.depth() == 0 => {}
            (_, false) => self.open.push(Open { kind, elements, streamed: len.is_none(), at }),
        }
    }

    fn close(&mut self) {
        if let Some(at) = self.text_at.take() {
            self.insert_length(at, b'$', self.out.len() - at);
            self.out.extend_from_slice(b"\r\n");
            return self.end();
        }
        if let Some(Open { kind, elements, streamed: true, at }) = self.open.pop() {
            self.insert_length(at, self.type_byte(kind), self.units(kind, elements));
            self.end();
        }
    }

    fn open_text(&mut self) {
        self.text_at = Some(self.out.len());
    }
}
