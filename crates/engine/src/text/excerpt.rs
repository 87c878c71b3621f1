//! Owns: what is kept or shown of a text that may be long. Does not own: how much a log keeps.

use std::borrow::Cow;

/// Bytes of a client's own word that an error repeats, as in Valkey.
pub(crate) const SHOWN_BYTES_MAX: usize = 128;

/// A word for an error.
pub(crate) fn shown(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES_MAX)])
}

/// What a log keeps of a text: so many bytes of it, and how many more there were.
pub(crate) fn cut(bytes: &[u8], bytes_max: usize) -> Box<[u8]> {
    match bytes.len().checked_sub(bytes_max) {
        Some(more) if more > 0 => {
            [&bytes[..bytes_max], format!("... ({more} more bytes)").as_bytes()].concat().into()
        }
        _ => bytes.into(),
    }
}
