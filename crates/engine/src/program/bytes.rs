//! Owns: the bytes of a text: short ones in the value itself, long ones shared by its copies. Does not own: what a text
//! means (`super::value`).
//!
//! Most texts of a program are ids, counters and words: making, copying and dropping one costs no memory of its own.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that a value has room for.
const SHORT_MAX: usize = 22;

/// The bytes of a text.
#[derive(Clone)]
pub struct Bytes(Form);

#[derive(Clone)]
enum Form {
    /// So many of these.
    Short(u8, [u8; SHORT_MAX]),
    Long(Arc<[u8]>),
}

// A value is no larger than one that only shares.
const _: () = assert!(size_of::<super::value::Value>() == 24);

impl From<&[u8]> for Bytes {
    #[inline]
    fn from(bytes: &[u8]) -> Self {
        if bytes.len() > SHORT_MAX {
            return Self(Form::Long(bytes.into()));
        }
        let mut room = [0; SHORT_MAX];
        room[..bytes.len()].copy_from_slice(bytes);
        Self(Form::Short(bytes.len() as u8, room))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Short(len, room) => &room[..usize::from(*len)],
            Form::Long(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_are_what_they_were_made_of() {
        for len in 0..=2 * SHORT_MAX {
            let bytes: Vec<u8> = (0..len as u8).collect();
            let text = Bytes::from(&bytes[..]);
            assert_eq!((&*text, &*text.clone()), (&bytes[..], &bytes[..]));
            assert_eq!(matches!(text.0, Form::Short(..)), len <= SHORT_MAX, "{len} bytes");
        }
    }
}
