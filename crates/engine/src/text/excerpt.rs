//! Owns: what is kept of a text that may be long. Does not own: how long it may be.

/// What a log keeps of a text: so many bytes of it, and how many more there were.
pub(crate) fn cut(bytes: &[u8], bytes_max: usize) -> Box<[u8]> {
    match bytes.len().checked_sub(bytes_max) {
        Some(more) if more > 0 => {
            [&bytes[..bytes_max], format!("... ({more} more bytes)").as_bytes()].concat().into()
        }
        _ => bytes.into(),
    }
}
