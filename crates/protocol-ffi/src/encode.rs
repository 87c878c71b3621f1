//! Encoding requests and control frames into buffers of the caller.
//!
//! Owns the forms; the encoders are the protocol crate's, over a buffer that counts what does not fit.

use core::ffi::{CStr, c_char};

use weft_protocol::respb::{Control, Mode, RequestWriter};
use weft_protocol::{Buffer as _, FixedBuffer, resp};

use crate::memory;
use crate::types::Value;
use crate::value::Argv;

/// Encodes a request.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_encode_request(
    form: i32,
    channel: u16,
    name: *const c_char,
    args: *const Value,
    count: usize,
    buffer: *mut u8,
    capacity: usize,
) -> usize {
    // SAFETY: null or a string that ends with a zero byte, as the caller promises.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes());
    // SAFETY: the caller's promise, handed on.
    let argv = unsafe { memory::items(args, count).and_then(|values| Argv::new(name, values)) };
    // SAFETY: the same.
    let (Some(argv), Some(buffer)) = (argv, unsafe { memory::buffer(buffer, capacity) }) else { return 0 };
    if name.is_none() && count == 0 {
        return 0;
    }
    let mut out = FixedBuffer::new(buffer, 0);
    let mut writer = RequestWriter::new(&mut out, channel);
    match form {
        0 => resp::encode::request(None, &argv, &mut out),
        1 => _ = writer.arguments(&argv, Mode::Exact),
        2 => _ = writer.arguments(&argv, Mode::Fold),
        3 => writer.argv(&argv),
        4 => writer.passthrough(&argv),
        _ => {}
    }
    out.len()
}

/// Encodes a control frame whose bytes are at `data`.
///
/// # Safety
/// `data` and `buffer` must be what the header says.
unsafe fn control<'a>(
    channel: u16,
    data: *const u8,
    len: usize,
    buffer: *mut u8,
    capacity: usize,
    make: impl FnOnce(&'a [u8]) -> Control<'a>,
) -> usize {
    // SAFETY: the caller's promise, handed on.
    let (Some(bytes), Some(buffer)) =
        (unsafe { memory::bytes(data, len) }, unsafe { memory::buffer(buffer, capacity) })
    else {
        return 0;
    };
    if u32::try_from(bytes.len().saturating_add(2)).is_err() {
        return 0;
    }
    let mut out = FixedBuffer::new(buffer, 0);
    make(bytes).encode(channel, &mut out);
    out.len()
}

/// Encodes CLOSE.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_encode_close(
    channel: u16,
    code: u16,
    reason: *const u8,
    len: usize,
    buffer: *mut u8,
    capacity: usize,
) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { control(channel, reason, len, buffer, capacity, |reason| Control::Close { code, reason }) }
}

/// Encodes GOAWAY, which is about all channels and is sent on channel 0.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_encode_goaway(
    code: u16,
    reason: *const u8,
    len: usize,
    buffer: *mut u8,
    capacity: usize,
) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { control(0, reason, len, buffer, capacity, |reason| Control::Goaway { code, reason }) }
}

/// Encodes CANCEL.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_encode_cancel(
    channel: u16,
    sequence: u32,
    buffer: *mut u8,
    capacity: usize,
) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { control(channel, core::ptr::null(), 0, buffer, capacity, |_| Control::Cancel { sequence }) }
}

/// Encodes WINDOW.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_encode_window(
    channel: u16,
    more: u32,
    buffer: *mut u8,
    capacity: usize,
) -> usize {
    // SAFETY: the caller's promise, handed on.
    unsafe { control(channel, core::ptr::null(), 0, buffer, capacity, |_| Control::Window { more }) }
}

/// Encodes FRAGMENT.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_encode_fragment(
    channel: u16,
    last: i32,
    slice: *const u8,
    len: usize,
    buffer: *mut u8,
    capacity: usize,
) -> usize {
    let last = last != 0;
    // SAFETY: the caller's promise, handed on.
    unsafe { control(channel, slice, len, buffer, capacity, |slice| Control::Fragment { last, slice }) }
}
