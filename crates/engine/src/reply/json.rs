//! Owns: how values are written in JSON. Does not own: HTTP, which says the status and sends it.
//!
//! It is written as it comes: a value knows from the byte before it whether a comma is due, and from what is open
//! whether it is a key.
//!
//! | value | Upstash | plain |
//! |---|---|---|
//! | the whole reply | `{"result":…}`, `{"error":"…"}` | the value, `{"error":"…"}` |
//! | an integer | a number, however large | a number, as text beyond 2^53 |
//! | a double, a number of any size | its text | a number; text if it is none, or any size |
//! | a boolean | 1 or 0 | `true` or `false` |
//! | a byte string | text; what is no UTF-8 replaced, or base64 | text, or `{"base64":"…"}` if it is no UTF-8 |
//! | a map, pairs | an array of keys and values in turn | an object; an array of arrays of 2 |
//! | a key that is no text | | its JSON as text |

use super::aggregate::Kind;
use super::{JsonForm, ReplySink};
use crate::base64;
use weft_protocol::number::{DOUBLE_TEXT_MAX, double_text};

/// Beyond it JSON's readers lose digits.
const EXACT_MAX: u64 = 1 << 53;

impl JsonForm {
    /// What an aggregate begins and ends with.
    const fn brackets(self, kind: Kind) -> (u8, u8) {
        match kind {
            Kind::Map if !self.is_flat() => (b'{', b'}'),
            Kind::Map | Kind::Array | Kind::Set | Kind::Push => (b'[', b']'),
        }
    }
}

impl ReplySink<'_> {
    /// Whether the next value is a key of an object.
    fn is_json_key(&self) -> bool {
        self.out.open.last().is_some_and(|top| top.closer == b'}' && top.left.is_multiple_of(2))
    }
    /// Whether the next value, or the one that has just ended, is a result: it stands in an object of its own.
    fn is_result(&self, form: JsonForm) -> bool {
        form.envelope() == Some(self.out.open.len())
    }
    /// What is between a value and the one before it.
    fn json_separate(&mut self) {
        let out = &mut self.out.bytes;
        match self.out.open.last() {
            None if self.out.answers > 0 => out.push(b','),
            None => {}
            Some(top) if top.closer == b'}' && !top.left.is_multiple_of(2) => out.push(b':'),
            // No value ends with one of these.
            Some(_) if matches!(out.last(), Some(b'[' | b'{')) => {}
            Some(_) => out.push(b','),
        }
    }
    /// What stands before a value; where the value begins.
    fn json_begin(&mut self, form: JsonForm) -> usize {
        self.json_separate();
        if self.is_result(form) {
            self.out.bytes.extend_from_slice(b"{\"result\":");
        }
        self.out.bytes.len()
    }
    /// What stands behind a value that began there.
    fn json_end(&mut self, form: JsonForm, at: usize) {
        if self.is_json_key() && self.out.bytes.get(at) != Some(&b'"') {
            let text = self.out.bytes.split_off(at);
            push_text(&mut self.out.bytes, &String::from_utf8_lossy(&text));
        }
        if self.is_result(form) {
            self.out.bytes.push(b'}');
        }
        self.json_whole();
    }
    /// Counts a value that is a whole reply.
    fn json_whole(&mut self) {
        if self.at_top() {
            self.out.answers += 1;
        }
    }
    /// What an aggregate begins with; where that is, and what it ends with.
    #[cold]
    pub(super) fn json_head(&mut self, form: JsonForm, kind: Kind) -> (usize, u8) {
        let at = self.json_begin(form);
        let (opener, closer) = form.brackets(kind);
        self.out.bytes.push(opener);
        (at, closer)
    }
    /// The end of an aggregate.
    #[cold]
    pub(super) fn json_close(&mut self, form: JsonForm, at: usize, closer: u8) {
        self.out.bytes.push(closer);
        self.json_end(form, at);
    }
    fn json_piece(&mut self, form: JsonForm, piece: &[u8]) {
        let at = self.json_begin(form);
        self.out.bytes.extend_from_slice(piece);
        self.json_end(form, at);
    }

    #[cold]
    pub(super) fn json_simple(&mut self, form: JsonForm, text: &[u8]) {
        if self.is_result(form) && text == b"OK" {
            return self.json_piece(form, b"\"OK\"");
        }
        self.json_bulk(form, text);
    }

    #[cold]
    pub(super) fn json_error(&mut self, form: JsonForm, line: &str) {
        // It stands in place of the object with the result.
        self.json_separate();
        let at = self.out.bytes.len();
        self.out.bytes.extend_from_slice(b"{\"error\":");
        push_text(&mut self.out.bytes, line);
        self.out.bytes.push(b'}');
        if self.at_top() || self.is_result(form) { self.json_whole() } else { self.json_end(form, at) }
    }

    #[cold]
    pub(super) fn json_int(&mut self, form: JsonForm, value: i64) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(value).as_bytes();
        match form {
            JsonForm::Plain if value.unsigned_abs() > EXACT_MAX => self.json_bulk(form, digits),
            _ => self.json_piece(form, digits),
        }
    }

    #[cold]
    pub(super) fn json_double(&mut self, form: JsonForm, value: f64) {
        let mut buffer = [0; DOUBLE_TEXT_MAX];
        let text = double_text(value, &mut buffer);
        match form {
            JsonForm::Plain if value.is_finite() => self.json_piece(form, text),
            _ => self.json_bulk(form, text),
        }
    }

    #[cold]
    pub(super) fn json_bool(&mut self, form: JsonForm, value: bool) {
        let piece: &[u8] = match (form.is_flat(), value) {
            (false, true) => b"true",
            (false, false) => b"false",
            (true, true) => b"1",
            (true, false) => b"0",
        };
        self.json_piece(form, piece);
    }

    #[cold]
    pub(super) fn json_null(&mut self, form: JsonForm) {
        self.json_piece(form, b"null");
    }

    #[cold]
    pub(super) fn json_bulk(&mut self, form: JsonForm, bytes: &[u8]) {
        let at = self.json_begin(form);
        let out = &mut self.out.bytes;
        if form.is_base64() {
            push_base64(out, bytes);
        } else if is_plain(bytes) {
            out.reserve(bytes.len() + 2);
            out.push(b'"');
            out.extend_from_slice(bytes);
            out.push(b'"');
        } else {
            match std::str::from_utf8(bytes) {
                Ok(text) => push_text(out, text),
                Err(_) if form.is_flat() => push_text(out, &String::from_utf8_lossy(bytes)),
                Err(_) => {
                    out.extend_from_slice(b"{\"base64\":");
                    push_base64(out, bytes);
                    out.push(b'}');
                }
            }
        }
        self.json_end(form, at);
    }
}

/// Whether bytes are a string of JSON as they stand: ASCII, with nothing to escape. Looks at all of them, without a
/// branch for each.
fn is_plain(bytes: &[u8]) -> bool {
    let plain = |byte: u8| (0x20..0x80).contains(&byte) & (byte != b'"') & (byte != b'\\');
    bytes.iter().fold(true, |all, &byte| all & plain(byte))
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("memory takes everything, and text is JSON");
}

/// In quotes.
pub(crate) fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    base64::push(out, bytes);
    out.push(b'"');
}
