//! Single values: arguments as text and as numbers, and arguments for the encoders.
//!
//! Owns the reading of a `respb_value` that C made or a decoder wrote.

use weft_protocol::number::{parse_double, parse_int};
use weft_protocol::request::{Arguments, unquote};
use weft_protocol::{Arg, Buffer as _, FixedBuffer};

use crate::memory;
use crate::types::{EINVAL, INVALID, OK, Status, Value, kind};

/// A value as an argument; `None` for kinds that are none, and for bytes that are not there.
///
/// # Safety
/// `value.value.data` must be what the header says it is for `value.kind`.
pub(crate) unsafe fn argument<'a>(value: &Value) -> Option<Arg<'a>> {
    match value.kind {
        kind::BYTES | kind::KEYWORD => {
            // SAFETY: for these kinds it is `data`, with `len` bytes, as the caller promises.
            unsafe { memory::bytes(value.value.data, value.len as usize) }.map(Arg::Bytes)
        }
        // SAFETY: every bit pattern is an integer.
        kind::INTEGER => Some(Arg::Int(unsafe { value.value.integer })),
        // SAFETY: every bit pattern is a double.
        kind::DOUBLE => Some(Arg::Double(unsafe { value.value.number })),
        _ => None,
    }
}

/// Arguments from C, checked before they are lent to an encoder.
pub(crate) struct Argv<'a> {
    name: Option<&'a [u8]>,
    values: &'a [Value],
}

impl<'a> Argv<'a> {
    /// Checks every value; also that their lengths fit a frame.
    ///
    /// # Safety
    /// The values must be what the header says, for as long as the result lives.
    pub(crate) unsafe fn new(name: Option<&'a [u8]>, values: &'a [Value]) -> Option<Self> {
        let mut total = 0u64;
        for value in values {
            // SAFETY: the caller's promise, handed on.
            unsafe { argument(value) }?;
            total += u64::from(value.len) + ARGUMENT_OVERHEAD;
        }
        (total <= u64::from(u32::MAX)).then_some(Argv { name, values })
    }
}

/// The most that a form adds to an argument: a number's text with its length line.
const ARGUMENT_OVERHEAD: u64 = 40;

impl Arguments for Argv<'_> {
    fn len(&self) -> usize {
        self.values.len() + usize::from(self.name.is_some())
    }

    fn arg(&self, index: usize) -> Arg<'_> {
        let index = match (self.name, index) {
            (Some(name), 0) => return Arg::Bytes(name),
            (Some(_), _) => index - 1,
            (None, _) => index,
        };
        // SAFETY: `new` was promised what `argument` needs, and found every value to be an argument.
        self.values.get(index).and_then(|value| unsafe { argument(value) }).unwrap_or(Arg::Bytes(b""))
    }
}

/// An argument as text.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_value_text(value: *const Value, buffer: *mut u8, capacity: usize) -> usize {
    // SAFETY: the caller's promise, handed on; the value is only read.
    let (Some([value]), Some(buffer)) =
        (unsafe { memory::items(value, 1) }, unsafe { memory::buffer(buffer, capacity) })
    else {
        return 0;
    };
    let mut out = FixedBuffer::new(buffer, 0);
    if value.kind == kind::QUOTED {
        // SAFETY: this kind is bytes, as the caller promises.
        let Some(raw) = (unsafe { memory::bytes(value.value.data, value.len as usize) }) else { return 0 };
        unquote(raw, &mut out);
        return out.len();
    }
    // SAFETY: the caller's promise, handed on.
    if let Some(arg) = unsafe { argument(value) } {
        arg.push_text(&mut out);
    }
    out.len()
}

/// An argument as an integer.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_value_integer(value: *const Value, number: *mut i64) -> Status {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        parsed(value, number, |arg| match arg {
            Arg::Int(value) => Some(value),
            Arg::Bytes(text) => parse_int(text),
            _ => None,
        })
    }
}

/// An argument as a double.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_value_double(value: *const Value, number: *mut f64) -> Status {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        parsed(value, number, |arg| match arg {
            Arg::Double(value) => Some(value),
            Arg::Int(value) => Some(value as f64),
            Arg::Bytes(text) => parse_double(text),
            Arg::Keyword(_) => None,
        })
    }
}

unsafe fn parsed<T>(value: *const Value, number: *mut T, parse: impl Fn(Arg<'_>) -> Option<T>) -> Status {
    // SAFETY: the callers' callers promise both, or null.
    let (Some([value]), Some([number])) =
        (unsafe { memory::items(value, 1) }, unsafe { memory::places(number, 1) })
    else {
        return EINVAL;
    };
    // SAFETY: the value is what the header says.
    match unsafe { argument(value) }.and_then(parse) {
        Some(parsed) => {
            number.write(parsed);
            OK
        }
        None => INVALID,
    }
}
