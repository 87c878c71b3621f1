//! Owns: the id of a stream's entry: order, neighbours, its text. Does not own: reading what clients write, with its
//! short forms and errors.

use crate::value::Digits;
use std::fmt;

/// The longest text of an id: two numbers of 20 digits and the dash.
pub const ID_TEXT_BYTES_MAX: usize = 41;

/// Milliseconds and a sequence within them. The order of ids is the order of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Usually the time that the entry was added at.
    pub ms: u64,
    /// Tells entries of one millisecond apart.
    pub seq: u64,
}

impl StreamId {
    /// `0-0`, which no entry has.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The largest id.
    pub const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// An id from its parts.
    #[must_use]
    pub const fn new(ms: u64, seq: u64) -> Self {
        Self { ms, seq }
    }
    /// The next larger id.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match (self.seq.checked_add(1), self.ms.checked_add(1)) {
            (Some(seq), _) => Some(Self { ms: self.ms, seq }),
            (None, Some(ms)) => Some(Self { ms, seq: 0 }),
            (None, None) => None,
        }
    }
    /// The next smaller id.
    #[must_use]
    pub const fn previous(self) -> Option<Self> {
        match (self.seq.checked_sub(1), self.ms.checked_sub(1)) {
            (Some(seq), _) => Some(Self { ms: self.ms, seq }),
            (None, Some(ms)) => Some(Self { ms, seq: u64::MAX }),
            (None, None) => None,
        }
    }
    /// Whether it is `0-0`.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.ms == 0 && self.seq == 0
    }
    /// Its text, `ms-seq`, written into `text`.
    pub fn write(self, text: &mut [u8; ID_TEXT_BYTES_MAX]) -> &[u8] {
        let mut len = put(text, 0, self.ms);
        text[len] = b'-';
        len = put(text, len + 1, self.seq);
        &text[..len]
    }
}

/// Writes a number's digits at `at` and returns the place after them.
fn put(text: &mut [u8; ID_TEXT_BYTES_MAX], at: usize, value: u64) -> usize {
    let mut digits = Digits::default();
    let mut end = at;
    // Numbers beyond 2^63 are written in two pieces, since `Digits` is signed.
    if let Ok(value) = i64::try_from(value) {
        let digits = digits.write(value);
        text[end..end + digits.len()].copy_from_slice(digits);
        return end + digits.len();
    }
    for part in [value / 10, value % 10] {
        let digits = digits.write(part as i64);
        text[end..end + digits.len()].copy_from_slice(digits);
        end += digits.len();
    }
    end
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_carry_over() {
        assert_eq!(StreamId::new(1, u64::MAX).next(), Some(StreamId::new(2, 0)));
        assert_eq!(StreamId::new(2, 0).previous(), Some(StreamId::new(1, u64::MAX)));
        assert_eq!(StreamId::MAX.next(), None);
        assert_eq!(StreamId::MIN.previous(), None);
        assert_eq!(StreamId::new(7, 3).next().and_then(StreamId::previous), Some(StreamId::new(7, 3)));
    }

    #[test]
    fn text_is_what_display_says() {
        for ms in [0, 9, 10, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
            for seq in [0, 1, u64::MAX - 1, u64::MAX] {
                let id = StreamId::new(ms, seq);
                assert_eq!(id.write(&mut [0; ID_TEXT_BYTES_MAX]), id.to_string().as_bytes());
            }
        }
    }
}
