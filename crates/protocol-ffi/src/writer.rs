//! Encoding replies into a buffer of the caller, value by value.
//!
//! Owns the state between calls and the checks that keep a reply one reply. The encoders are the protocol crate's.

use weft_protocol::buffer::{FixedStack, Stack};
use weft_protocol::limits::NESTING_MAX;
use weft_protocol::resp::encode_reply as resp;
use weft_protocol::respb::encode_reply as respb;
use weft_protocol::{Aggregate, Buffer as _, FixedBuffer, ReplyVisitor, Text};

use crate::memory;
use crate::types::{EDEPTH, EINVAL, FULL, OK, Protocol, Status, Value, kind};

const DEPTH: usize = NESTING_MAX as usize;

/// The aggregates that are open, as the encoder of the protocol keeps them.
#[derive(Debug)]
enum Open {
    Resp(FixedStack<resp::Open, DEPTH>),
    Respb(FixedStack<respb::Open, DEPTH>),
}

/// `respb_writer`
#[derive(Debug)]
pub struct Writer {
    buffer: *mut u8,
    capacity: usize,
    len: usize,
    protocol: Protocol,
    channel: u16,
    /// Where the streamed text stands that is open.
    text_at: Option<usize>,
    open: Open,
}

/// 64-bit words that the header gives a writer.
pub const WRITER_WORDS: usize = 416;
const _: () = assert!(size_of::<Writer>() <= WRITER_WORDS * 8);
const _: () = assert!(align_of::<Writer>() <= align_of::<u64>());

/// What a call asks of an encoder beyond writing.
trait Encoder: ReplyVisitor {
    fn state(&self) -> (Option<usize>, bool);
}

impl<B: weft_protocol::Buffer, S: Stack<resp::Open>> Encoder for resp::ReplyWriter<'_, B, S> {
    fn state(&self) -> (Option<usize>, bool) {
        (self.text_at(), self.can_close())
    }
}

impl<B: weft_protocol::Buffer, S: Stack<respb::Open>> Encoder for respb::ReplyWriter<'_, B, S> {
    fn state(&self) -> (Option<usize>, bool) {
        (self.text_at(), self.can_close())
    }
}

impl Writer {
    fn is_between_replies(&mut self) -> bool {
        self.text_at.is_none() && self.depth() == 0
    }

    fn depth(&mut self) -> usize {
        match &mut self.open {
            Open::Resp(open) => Stack::depth(&open),
            Open::Respb(open) => Stack::depth(&open),
        }
    }

    fn reset(&mut self) {
        self.text_at = None;
        self.open = match self.protocol {
            Protocol::Respb => Open::Respb(FixedStack::new()),
            Protocol::Resp2 | Protocol::Resp3 => Open::Resp(FixedStack::new()),
        };
    }

    /// Lends the encoder of the protocol, with the buffer and what is open.
    ///
    /// # Safety
    /// The buffer must be what `respb_writer_init` or `respb_writer_buffer` was promised.
    unsafe fn encode(&mut self, call: impl FnOnce(&mut dyn Encoder) -> Status) -> Status {
        // SAFETY: the caller's promise, handed on.
        let Some(bytes) = (unsafe { memory::buffer(self.buffer, self.capacity) }) else { return EINVAL };
        let mut out = FixedBuffer::new(bytes, self.len);
        let (status, text_at) = match &mut self.open {
            Open::Resp(open) => {
                let version = if self.protocol == Protocol::Resp2 {
                    resp::Version::Resp2
                } else {
                    resp::Version::Resp3
                };
                let mut writer = resp::ReplyWriter::resume(&mut out, version, open, self.text_at);
                (call(&mut writer), writer.text_at())
            }
            Open::Respb(open) => {
                let mut writer = respb::ReplyWriter::resume(&mut out, self.channel, open, self.text_at);
                (call(&mut writer), writer.text_at())
            }
        };
        (self.len, self.text_at) = (out.len(), text_at);
        match status {
            OK if self.len > self.capacity => FULL,
            status => status,
        }
    }
}

/// Whether a line of RESP can hold these bytes.
fn is_line(bytes: &[u8]) -> bool {
    !bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n'))
}

/// Writes one value.
///
/// # Safety
/// `value` must be what the header says.
unsafe fn write(encoder: &mut dyn Encoder, depth: usize, value: &Value) -> Status {
    let (text_at, can_close) = encoder.state();
    // Inside a streamed text only its chunks and its end make sense.
    if text_at.is_some() && !matches!(value.kind, kind::BYTES | kind::CLOSE) {
        return EINVAL;
    }
    let text = match value.kind {
        kind::BYTES | kind::KEYWORD => Text::Bulk,
        kind::SIMPLE => Text::Simple,
        kind::ERROR => Text::Error,
        kind::BIG_NUMBER => Text::BigNumber,
        kind::VERBATIM => Text::Verbatim(value.format),
        // SAFETY: the caller's promise, handed on.
        _ => return unsafe { write_other(encoder, depth, can_close, value) },
    };
    // SAFETY: for these kinds it is `data`, with `len` bytes, as the caller promises.
    let Some(bytes) = (unsafe { memory::bytes(value.value.data, value.len as usize) }) else { return EINVAL };
    let sound = match text {
        Text::Simple => is_line(bytes),
        Text::BigNumber => weft_protocol::number::is_big(bytes),
        _ => true,
    };
    if !sound {
        return EINVAL;
    }
    encoder.text(text, 0, bytes);
    OK
}

/// Writes one value that is no text.
///
/// # Safety
/// As [`write`].
unsafe fn write_other(encoder: &mut dyn Encoder, depth: usize, can_close: bool, value: &Value) -> Status {
    // SAFETY: every bit pattern is an integer, and a double.
    let (integer, number) = unsafe { (value.value.integer, value.value.number) };
    match value.kind {
        kind::INTEGER => encoder.int(integer),
        kind::DOUBLE => encoder.double(number),
        kind::BOOLEAN if integer == 0 || integer == 1 => encoder.boolean(integer == 1),
        kind::NULL => encoder.null(false),
        kind::NULL_ARRAY => encoder.null(true),
        kind::TEXT => encoder.open_text(),
        kind::CLOSE if can_close => encoder.close(),
        kind::ARRAY => return open(encoder, depth, Aggregate::Array, integer),
        kind::MAP => return open(encoder, depth, Aggregate::Map, integer),
        kind::SET => return open(encoder, depth, Aggregate::Set, integer),
        kind::PUSH => return open(encoder, depth, Aggregate::Push, integer),
        kind::ATTRIBUTE => return open(encoder, depth, Aggregate::Attribute, integer),
        _ => return EINVAL,
    }
    OK
}

/// Opens an aggregate; −1 for a length that is known late.
fn open(encoder: &mut dyn Encoder, depth: usize, aggregate: Aggregate, len: i64) -> Status {
    let streams = !matches!(aggregate, Aggregate::Push | Aggregate::Attribute);
    let len = match u32::try_from(len) {
        Ok(len) => Some(len),
        Err(_) if len == -1 && streams => None,
        Err(_) => return EINVAL,
    };
    if depth >= DEPTH {
        return EDEPTH;
    }
    encoder.open(aggregate, len);
    OK
}

/// Makes a writer.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_writer_init(
    writer: *mut Writer,
    size: usize,
    protocol: i32,
    buffer: *mut u8,
    capacity: usize,
) -> Status {
    // SAFETY: the caller's promise, handed on; the buffer is only looked at.
    let (Some(protocol), Some(_)) = (Protocol::of(protocol), unsafe { memory::buffer(buffer, capacity) })
    else {
        return EINVAL;
    };
    let open = Open::Resp(FixedStack::new());
    let mut value = Writer { buffer, capacity, len: 0, protocol, channel: 0, text_at: None, open };
    value.reset();
    // SAFETY: the caller's promise, handed on.
    if unsafe { memory::init(writer, size, value) } { OK } else { EINVAL }
}

/// The writer, if it stands between replies.
///
/// # Safety
/// `writer` must be null or a writer that nothing else uses.
unsafe fn between<'a>(writer: *mut Writer) -> Option<&'a mut Writer> {
    // SAFETY: the caller's promise, handed on.
    let writer = unsafe { memory::object(writer) }?;
    writer.is_between_replies().then_some(writer)
}

/// Goes on in another buffer.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_writer_buffer(
    writer: *mut Writer,
    buffer: *mut u8,
    capacity: usize,
    len: usize,
) -> Status {
    // SAFETY: the caller's promise, handed on; the buffer is only looked at.
    let (Some(writer), Some(_)) = (unsafe { between(writer) }, unsafe { memory::buffer(buffer, capacity) })
    else {
        return EINVAL;
    };
    if len > capacity {
        return EINVAL;
    }
    (writer.buffer, writer.capacity, writer.len) = (buffer, capacity, len);
    OK
}

/// Replies for another channel.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_writer_channel(writer: *mut Writer, channel: u16) -> Status {
    // SAFETY: the caller's promise, handed on.
    let Some(writer) = (unsafe { between(writer) }) else { return EINVAL };
    writer.channel = channel;
    OK
}

/// Replies in another protocol.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_writer_protocol(writer: *mut Writer, protocol: i32) -> Status {
    // SAFETY: the caller's promise, handed on.
    let (Some(writer), Some(protocol)) = (unsafe { between(writer) }, Protocol::of(protocol)) else {
        return EINVAL;
    };
    if writer.protocol != protocol {
        writer.protocol = protocol;
        writer.reset();
    }
    OK
}

/// Bytes written, or wanted.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_writer_len(writer: *const Writer) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { memory::items(writer, 1) }.and_then(<[Writer]>::first).map_or(0, |writer| writer.len)
}

/// Forgets what stands behind `len`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_writer_truncate(writer: *mut Writer, len: usize) -> Status {
    // SAFETY: the caller's promise, handed on.
    let Some(writer) = (unsafe { memory::object(writer) }).filter(|writer| len <= writer.len) else {
        return EINVAL;
    };
    writer.len = len;
    if !writer.is_between_replies() {
        writer.reset();
    }
    OK
}

/// Appends values.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_write_values(
    writer: *mut Writer,
    values: *const Value,
    count: usize,
) -> Status {
    // SAFETY: the caller's promise, handed on.
    let (Some(writer), Some(values)) =
        (unsafe { memory::object(writer) }, unsafe { memory::items(values, count) })
    else {
        return EINVAL;
    };
    let mut outcome = OK;
    for value in values {
        let depth = writer.depth();
        // SAFETY: the same.
        let status = unsafe { writer.encode(|encoder| write(encoder, depth, value)) };
        if status < 0 {
            return status;
        }
        outcome = status;
    }
    outcome
}

/// Appends one value.
///
/// # Safety
/// As the header says.
unsafe fn one(writer: *mut Writer, value: &Value) -> Status {
    // SAFETY: the caller's promise, handed on.
    unsafe { respb_write_values(writer, value, 1) }
}

/// Appends a text of one kind.
///
/// # Safety
/// As the header says.
unsafe fn text(writer: *mut Writer, kind: u8, data: *const u8, len: usize) -> Status {
    // SAFETY: the caller's promise, handed on.
    let Some(bytes) = (unsafe { memory::bytes(data, len) }) else { return EINVAL };
    if u32::try_from(len).is_err() {
        return EINVAL;
    }
    // SAFETY: the value is made of the bytes that were checked.
    unsafe { one(writer, &Value::bytes(kind, 0, bytes)) }
}

macro_rules! texts {
    ($($name:ident = $kind:expr;)*) => {
        $(
            /// Appends a text.
            ///
            /// # Safety
            /// As the header says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(writer: *mut Writer, data: *const u8, len: usize) -> Status {
                // SAFETY: the caller's promise, handed on.
                unsafe { text(writer, $kind, data, len) }
            }
        )*
    };
}

texts! {
    respb_write_simple = kind::SIMPLE;
    respb_write_error = kind::ERROR;
    respb_write_bulk = kind::BYTES;
}

macro_rules! scalars {
    ($($name:ident($($arg:ident: $type:ty),*) = $kind:expr, $field:ident: $value:expr;)*) => {
        $(
            /// Appends a value.
            ///
            /// # Safety
            /// As the header says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(writer: *mut Writer $(, $arg: $type)*) -> Status {
                let value = Value::number($kind, crate::types::Payload { $field: $value });
                // SAFETY: the caller's promise, handed on; the value is no pointer.
                unsafe { one(writer, &value) }
            }
        )*
    };
}

scalars! {
    respb_write_integer(value: i64) = kind::INTEGER, integer: value;
    respb_write_double(value: f64) = kind::DOUBLE, number: value;
    respb_write_boolean(value: i32) = kind::BOOLEAN, integer: i64::from(value != 0);
    respb_write_null() = kind::NULL, integer: 0;
    respb_write_close() = kind::CLOSE, integer: 0;
}

/// Opens an aggregate.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_write_open(writer: *mut Writer, kind: i32, count: i64) -> Status {
    let Some(kind) = u8::try_from(kind).ok().filter(|kind| (kind::ARRAY..=kind::ATTRIBUTE).contains(kind))
    else {
        return EINVAL;
    };
    // SAFETY: the caller's promise, handed on; the value is no pointer.
    unsafe { one(writer, &Value::number(kind, crate::types::Payload { integer: count })) }
}
