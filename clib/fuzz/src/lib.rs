//! What the Rust codec makes of bytes, written down as `tests/fuzz.c` writes down what the C library makes of them.
//!
//! Owns the Rust half of a comparison. Each record is the values of a frame and then what the frame says of itself;
//! the end is an error with its place, or where the last whole frame ended.

use weft_protocol::respb::reply::ReplyKind;
use weft_protocol::respb::{Control, Frame, Mode, RequestWriter};
use weft_protocol::{Aggregate, ArgVisitor, Limits, Malformed, Outcome, ReplyVisitor, Text, number, resp, respb, table};

/// Numbers of `respb_value.kind`.
mod kind {
    pub const BYTES: u8 = 0;
    pub const QUOTED: u8 = 1;
    pub const INTEGER: u8 = 2;
    pub const DOUBLE: u8 = 3;
    pub const KEYWORD: u8 = 4;
    pub const SIMPLE: u8 = 5;
    pub const ERROR: u8 = 6;
    pub const BIG_NUMBER: u8 = 7;
    pub const VERBATIM: u8 = 8;
    pub const BOOLEAN: u8 = 9;
    pub const NULL: u8 = 10;
    pub const NULL_ARRAY: u8 = 11;
    pub const ARRAY: u8 = 12;
    pub const CLOSE: u8 = 17;
    pub const TEXT: u8 = 18;
}

#[derive(Default)]
struct Record {
    out: Vec<u8>,
    options: u16,
}

impl Record {
    fn text(&mut self, kind: u8, bytes: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.out.extend_from_slice(bytes);
    }

    fn number(&mut self, kind: u8, value: i64) {
        self.out.push(kind);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    fn real(&mut self, value: f64) {
        let bits = if value.is_nan() { 0 } else { value.to_bits() };
        self.number(kind::DOUBLE, bits as i64);
    }

    /// What a frame says of itself.
    fn frame(&mut self, len: usize, channel: u16, frame_kind: u8, number: u32) {
        self.out.push(0xF0);
        self.out.extend_from_slice(&(len as u32).to_le_bytes());
        self.out.extend_from_slice(&channel.to_le_bytes());
        self.out.push(frame_kind);
        self.out.extend_from_slice(&number.to_le_bytes());
        self.out.push(self.options as u8);
        self.options = 0;
    }

    fn control(&mut self, len: usize, channel: u16, control: Control<'_>) {
        let (frame_kind, number) = match control {
            Control::Close { code, reason } => {
                self.text(kind::BYTES, reason);
                (5, u32::from(code))
            }
            Control::Goaway { code, reason } => {
                self.text(kind::BYTES, reason);
                (8, u32::from(code))
            }
            Control::Fragment { last, slice } => {
                self.text(kind::BYTES, slice);
                (9, u32::from(last))
            }
            Control::Cancel { sequence } => (6, sequence),
            Control::Window { more } => (7, more),
            Control::Unknown { .. } => (11, 0),
        };
        self.frame(len, channel, frame_kind, number);
    }
}

impl ArgVisitor for Record {
    fn bytes(&mut self, _: usize, bytes: &[u8]) {
        self.text(kind::BYTES, bytes);
    }
    fn int(&mut self, value: i64) {
        self.number(kind::INTEGER, value);
    }
    fn double(&mut self, value: f64) {
        self.real(value);
    }
    fn keyword(&mut self, word: &'static str) {
        self.text(kind::KEYWORD, word.as_bytes());
    }
    fn options(&mut self, bits: u16) {
        self.options = bits;
    }
    fn quoted(&mut self, _: usize, raw: &[u8]) {
        self.text(kind::QUOTED, raw);
    }
}

impl ReplyVisitor for Record {
    fn text(&mut self, text: Text, _: usize, bytes: &[u8]) {
        let number = match text {
            Text::Bulk => kind::BYTES,
            Text::Simple => kind::SIMPLE,
            Text::Error => kind::ERROR,
            Text::BigNumber => kind::BIG_NUMBER,
            Text::Verbatim(format) => {
                self.out.extend_from_slice(&format);
                kind::VERBATIM
            }
        };
        Record::text(self, number, bytes);
    }
    fn int(&mut self, value: i64) {
        self.number(kind::INTEGER, value);
    }
    fn double(&mut self, value: f64) {
        self.real(value);
    }
    fn boolean(&mut self, value: bool) {
        self.number(kind::BOOLEAN, i64::from(value));
    }
    fn null(&mut self, array: bool) {
        self.number(if array { kind::NULL_ARRAY } else { kind::NULL }, 0);
    }
    fn open(&mut self, aggregate: Aggregate, len: Option<u32>) {
        self.number(kind::ARRAY + aggregate as u8, len.map_or(-1, i64::from));
    }
    fn close(&mut self) {
        self.number(kind::CLOSE, 0);
    }
    fn open_text(&mut self) {
        self.number(kind::TEXT, 0);
    }
}

/// The frames of a stream, one after the other; `decode` writes one down and gives its length.
fn stream(input: &[u8], mut decode: impl FnMut(&[u8], &mut Record) -> Outcome<usize>) -> Vec<u8> {
    let (mut record, mut at) = (Record::default(), 0);
    loop {
        let before = record.out.len();
        let end = match decode(&input[at..], &mut record) {
            _ if at == input.len() => None,
            Outcome::Complete(len) => {
                at += len;
                continue;
            }
            Outcome::Incomplete { .. } => None,
            Outcome::Invalid(error) => Some(error),
        };
        record.out.truncate(before);
        let (name, offset) = end.map_or(("", 0), |error| (Malformed::name(error.kind), error.offset));
        record.out.extend_from_slice(name.as_bytes());
        record.out.extend_from_slice(&(offset as u32).to_le_bytes());
        record.out.extend_from_slice(&(at as u32).to_le_bytes());
        return record.out;
    }
}

fn mapped<T>(outcome: Outcome<T>, complete: impl FnOnce(T) -> usize) -> Outcome<usize> {
    match outcome {
        Outcome::Complete(value) => Outcome::Complete(complete(value)),
        Outcome::Incomplete { need } => Outcome::Incomplete { need },
        Outcome::Invalid(error) => Outcome::Invalid(error),
    }
}

fn respb_requests(input: &[u8], limits: Limits) -> Vec<u8> {
    let mut decoder = respb::RequestDecoder::new(limits);
    stream(input, |input, record| {
        let outcome = decoder.decode(input, record);
        mapped(outcome, |frame| {
            let frame_kind = match frame.frame {
                Frame::Core(_) => 1,
                Frame::Module(_) => 2,
                Frame::Argv => 3,
                Frame::Passthrough => 4,
                Frame::Unknown { .. } => 10,
                Frame::Control(control) => {
                    record.control(frame.len, frame.channel, control);
                    return frame.len;
                }
            };
            record.frame(frame.len, frame.channel, frame_kind, 0);
            frame.len
        })
    })
}

fn respb_replies(input: &[u8], limits: Limits) -> Vec<u8> {
    let mut decoder = respb::ReplyDecoder::new(limits);
    stream(input, |input, record| {
        let outcome = decoder.decode(input, record);
        mapped(outcome, |frame| {
            let frame_kind = match frame.kind {
                ReplyKind::Reply => 12,
                ReplyKind::Push => 13,
                ReplyKind::Unknown { .. } => 10,
                ReplyKind::Control(control) => {
                    record.control(frame.len, frame.channel, control);
                    return frame.len;
                }
            };
            record.frame(frame.len, frame.channel, frame_kind, 0);
            frame.len
        })
    })
}

fn resp_requests(input: &[u8], limits: Limits) -> Vec<u8> {
    let mut decoder = resp::RequestDecoder::new(limits);
    stream(input, |input, record| {
        let outcome = decoder.decode(input, record);
        mapped(outcome, |frame| {
            record.frame(frame.len, 0, 0, 0);
            frame.len
        })
    })
}

fn resp_replies(input: &[u8], limits: Limits) -> Vec<u8> {
    let mut decoder = resp::ReplyDecoder::new(limits);
    stream(input, |input, record| {
        let outcome = decoder.decode(input, record);
        mapped(outcome, |frame| {
            record.frame(frame.len, 0, if frame.push { 13 } else { 12 }, 0);
            frame.len
        })
    })
}

/// A command of the table and arguments, one for each line end, as a request.
fn request(input: &[u8], mode: Mode) -> Vec<u8> {
    let [high, low, text @ ..] = input else { return Vec::new() };
    let index = usize::from(u16::from_be_bytes([*high, *low])) % table::COMMANDS.len();
    let mut argv: Vec<&[u8]> = vec![table::COMMANDS[index].name.as_bytes()];
    argv.extend(text.split(|byte| *byte == b'\n'));
    let mut out = Vec::new();
    RequestWriter::new(&mut out, 7).command(&argv, mode);
    out
}

/// The replies of a stream in another protocol.
fn again(input: &[u8], form: u8) -> Vec<u8> {
    let (mut decoder, mut out, mut at) = (respb::ReplyDecoder::new(Limits::DEFAULT), Vec::new(), 0);
    loop {
        let before = out.len();
        let outcome = match form {
            4 => decoder.decode(&input[at..], &mut respb::ReplyWriter::new(&mut out, 7)),
            form => {
                let version = if form == 2 {
                    resp::encode_reply::Version::Resp2
                } else {
                    resp::encode_reply::Version::Resp3
                };
                decoder.decode(&input[at..], &mut resp::encode_reply::ReplyWriter::new(&mut out, version))
            }
        };
        match outcome {
            Outcome::Complete(frame) => at += frame.len,
            _ => {
                out.truncate(before);
                return out;
            }
        }
    }
}

/// Eight bytes as a double, in text; the bytes as the text of a double, and of an integer.
fn numbers(input: &[u8]) -> Vec<u8> {
    let mut out = number::parse_double(input).map_or(1, f64::to_bits).to_le_bytes().to_vec();
    out.extend_from_slice(&number::parse_int(input).unwrap_or(1).to_le_bytes());
    if let Some(bits) = input.first_chunk::<8>() {
        number::push_double(&mut out, f64::from_ne_bytes(*bits));
    }
    out
}

/// Writes down what the codec makes of `len` bytes at `data`; returns how many bytes that takes, and writes no more
/// than `capacity` of them. `mode` and `choice` are those of `tests/fuzz.c`.
///
/// # Safety
/// `len` bytes at `data` must be readable, and `capacity` bytes at `out` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_shows(
    mode: u8,
    choice: u8,
    data: *const u8,
    len: usize,
    out: *mut u8,
    capacity: usize,
) -> usize {
    let input = if len == 0 {
        &[][..]
    } else {
        // SAFETY: the caller's promise.
        unsafe { core::slice::from_raw_parts(data, len) }
    };
    let mut limits = Limits::DEFAULT;
    if choice & 1 == 1 {
        limits = Limits {
            arguments_max: 5,
            argument_bytes_max: 20,
            frame_bytes_max: 64,
            inline_bytes_max: 24,
            nesting_max: 3,
            elements_max: 4,
            unauthenticated: choice & 2 == 2,
        };
    }
    let shown = match mode {
        0 => respb_requests(input, limits),
        1 => respb_replies(input, Limits { unauthenticated: false, ..limits }),
        2 => resp_requests(input, limits),
        3 => resp_replies(input, Limits { unauthenticated: false, ..limits }),
        4 => request(input, Mode::Exact),
        5 => request(input, Mode::Fold),
        6 => again(input, 2 + choice % 3),
        7 => numbers(input),
        _ => Vec::new(),
    };
    let fits = shown.len().min(capacity);
    // SAFETY: the caller's promise; the two do not overlap.
    unsafe { core::ptr::copy_nonoverlapping(shown.as_ptr(), out, fits) };
    shown.len()
}
