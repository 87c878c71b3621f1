//! Encoding RESP requests: an array of bulks, the same in both versions.

use crate::buffer::Buffer;
use crate::number;
use crate::request::{Arg, Arguments};

/// Appends a request; `name` stands before the arguments, unless they hold it themselves.
pub fn request(name: Option<&[u8]>, args: &(impl Arguments + ?Sized), out: &mut impl Buffer) {
    length(b'*', args.len() + usize::from(name.is_some()), out);
    if let Some(name) = name {
        bulk(name, out);
    }
    for index in 0..args.len() {
        match args.arg(index) {
            Arg::Bytes(bytes) => bulk(bytes, out),
            Arg::Keyword(word) => bulk(word.as_bytes(), out),
            Arg::Int(value) => bulk(itoa::Buffer::new().format(value).as_bytes(), out),
            Arg::Double(value) => bulk(number::double_text(value, &mut [0; number::DOUBLE_TEXT_MAX]), out),
        }
    }
}

/// `$n`, the bytes and their line end.
pub(super) fn bulk(bytes: &[u8], out: &mut impl Buffer) {
    length(b'$', bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// A type byte, a number and a line end.
pub(super) fn length(kind: u8, len: usize, out: &mut impl Buffer) {
    if len < 10 {
        out.extend_from_slice(&[kind, b'0' + len as u8, b'\r', b'\n']);
        return;
    }
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
    out.extend_from_slice(b"\r\n");
}
