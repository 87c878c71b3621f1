//! Owns: what an answer says beside its value, for a wire that asks of a resource: how it went, its tag. Does not own:
//! when it is said (`crate::resource`).

use std::fmt;

use weft_store::Digest;

/// What stands for a value, as an `ETag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// A hash of a value's type and its bytes.
    Value([u8; 16]),
    /// The version of a program or a trigger.
    Version(u64),
}

impl fmt::Display for Tag {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(bytes) => write!(text, "{:032x}", u128::from_be_bytes(*bytes)),
            Self::Version(version) => write!(text, "{version}"),
        }
    }
}

impl Tag {
    /// The tag that a text stands for, as [`Display`](fmt::Display) writes it.
    #[must_use]
    pub fn of_text(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let is_digits = |is_digit: fn(&u8) -> bool| text.bytes().all(|byte| is_digit(&byte));
        match text.len() {
            1..=19 if is_digits(u8::is_ascii_digit) => text.parse().ok().map(Self::Version),
            32 if is_digits(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) => {
                u128::from_str_radix(text, 16).ok().map(|bits| Self::Value(bits.to_be_bytes()))
            }
            _ => None,
        }
    }
    /// The tag of a value.
    pub(crate) fn of(digest: Digest) -> Self {
        let mut tag = [0; 16];
        tag.copy_from_slice(&digest.bytes()[..16]);
        Self::Value(tag)
    }
}

/// How it went, where that is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceOutcome {
    /// The value follows, all of it.
    Whole,
    /// A part of it follows: its first byte, the one behind its last, and how many there are of all.
    Part(usize, usize, usize),
    /// The string has so many bytes, and none of those that are wanted.
    OutOfRange(usize),
    /// The client has it already.
    NotModified,
    /// It was not there, and is now.
    Created,
    /// It was there, and is another now.
    Changed,
    /// It was there, and is gone.
    Removed,
    /// A page of this content type follows, which is no resource's.
    Page(&'static str),
}

/// What an answer says beside the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceState {
    /// How it went.
    pub outcome: ResourceOutcome,
    /// Of the key as it is now, if it is there.
    pub tag: Option<Tag>,
    /// Its type.
    pub type_name: Option<&'static str>,
    /// The time that is left to it.
    pub left_ms: Option<u64>,
}
