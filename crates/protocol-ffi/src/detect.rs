//! Telling a connection's protocol by its first bytes (spec section 7.1).
//!
//! Owns the table of first bytes. What a server does about it is its own affair.

use weft_protocol::Limits;

use crate::memory;

const MORE: i32 = 0;
const RESP: i32 = 3;
const RESPB: i32 = 4;
const HTTP: i32 = 5;
const TLS: i32 = 6;
const UNKNOWN: i32 = -1;

/// The protocol of bytes that do not begin with a blank.
fn protocol(input: &[u8]) -> i32 {
    match input.first() {
        None => MORE,
        Some(0x00..=0x07 | 0xF0..=0xFF) => RESPB,
        Some(b'*') => RESP,
        Some(0x16) => TLS,
        Some(b'a'..=b'z' | b'A'..=b'Z') => line(input),
        Some(_) => UNKNOWN,
    }
}

/// A line of letters: HTTP or an inline command.
fn line(input: &[u8]) -> i32 {
    let visible = &input[..input.len().min(Limits::DEFAULT.inline_bytes_max as usize + 2)];
    let Some(end) = visible.iter().position(|&byte| byte == b'\n') else {
        // A line that is too long for both is left to the decoder to refuse.
        return if visible.len() < input.len() { RESP } else { MORE };
    };
    let line = visible[..end].strip_suffix(b"\r").unwrap_or(&visible[..end]);
    match line {
        [.., b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9'] => HTTP,
        _ => RESP,
    }
}

/// The protocol of a connection.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_detect(data: *const u8, len: usize, skip: *mut usize) -> i32 {
    // SAFETY: the caller's promise, handed on.
    let Some(input) = (unsafe { memory::bytes(data, len) }) else { return UNKNOWN };
    let blanks = input.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    // SAFETY: null or a number of the caller.
    if let Some([skip]) = unsafe { memory::places(skip, usize::from(!skip.is_null())) } {
        skip.write(blanks);
    }
    protocol(&input[blanks..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes() {
        for (bytes, expected) in [
            (&b""[..], MORE),
            (b"*1\r\n", RESP),
            (b"\x00\x00", RESPB),
            (b"\x07", RESPB),
            (b"\x08", UNKNOWN),
            (b"\xf0", RESPB),
            (b"\xef", UNKNOWN),
            (b"\x16\x03", TLS),
            (b"$3\r\n", UNKNOWN),
            (b"PING", MORE),
            (b"PING\r\n", RESP),
            (b"GET / HTTP/1.1\r\n", HTTP),
            (b"GET / HTTP/1.1", MORE),
            (b"GET / HTTP/2.0\r\n", RESP),
        ] {
            assert_eq!(protocol(bytes), expected, "{bytes:?}");
        }
        assert_eq!(protocol(&[b'a'; 70_000]), RESP);
    }
}
