//! Byte strings that remember repetition, so that a vector of a million bytes is one short line of JSON.
//!
//! It owns the repeat notation: plain hex, or an array of hex strings and `{"repeat": hex, "count": n}`.

use serde_json::{Value as Json, json};

/// A byte string in pieces.
#[derive(Clone, Debug, Default)]
pub struct Bytes(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Plain(Vec<u8>),
    Repeat(Vec<u8>, usize),
}

impl Bytes {
    /// No bytes.
    #[must_use]
    pub fn new() -> Self {
        Bytes(Vec::new())
    }

    /// These bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Bytes::new().and(bytes)
    }

    /// `count` times `unit`; short ones are written out.
    #[must_use]
    pub fn repeated(unit: &[u8], count: usize) -> Self {
        let mut bytes = Bytes::new();
        bytes.push_repeat(unit, count);
        bytes
    }

    /// With these bytes behind.
    #[must_use]
    pub fn and(mut self, bytes: &[u8]) -> Self {
        self.push(bytes);
        self
    }

    /// With another string behind.
    #[must_use]
    pub fn join(mut self, other: &Bytes) -> Self {
        self.append(other);
        self
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(Piece::Plain(last)) => last.extend_from_slice(bytes),
            _ => self.0.push(Piece::Plain(bytes.to_vec())),
        }
    }

    /// Appends `count` times `unit`. Up to 48 bytes are written out.
    pub fn push_repeat(&mut self, unit: &[u8], count: usize) {
        if unit.len() * count <= 48 {
            self.push(&unit.repeat(count));
        } else {
            self.0.push(Piece::Repeat(unit.to_vec(), count));
        }
    }

    /// Appends another string.
    pub fn append(&mut self, other: &Bytes) {
        for piece in &other.0 {
            match piece {
                Piece::Plain(bytes) => self.push(bytes),
                Piece::Repeat(unit, count) => self.push_repeat(unit, *count),
            }
        }
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        let len = |piece: &Piece| match piece {
            Piece::Plain(bytes) => bytes.len(),
            Piece::Repeat(unit, count) => unit.len() * count,
        };
        self.0.iter().map(len).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, written out.
    #[must_use]
    pub fn expand(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        for piece in &self.0 {
            match piece {
                Piece::Plain(bytes) => out.extend_from_slice(bytes),
                Piece::Repeat(unit, count) => out.extend_from_slice(&unit.repeat(*count)),
            }
        }
        out
    }

    /// The first `len` bytes, written out again.
    #[must_use]
    pub fn prefix(&self, len: usize) -> Bytes {
        Bytes::of(&self.expand()[..len])
    }

    /// The notation.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let piece = |piece: &Piece| match piece {
            Piece::Plain(bytes) => json!(hex(bytes)),
            Piece::Repeat(unit, count) => json!({"repeat": hex(unit), "count": count}),
        };
        match self.0.as_slice() {
            [] => json!(""),
            [Piece::Plain(bytes)] => json!(hex(bytes)),
            pieces => Json::Array(pieces.iter().map(piece).collect()),
        }
    }

    /// `{"text": …}` where all of it is short printable ASCII, else `{"bytes": …}`.
    #[must_use]
    pub fn to_value(&self) -> Json {
        match self.0.as_slice() {
            [Piece::Plain(bytes)] if bytes.iter().all(|byte| (0x20..0x7F).contains(byte)) => {
                json!({"text": String::from_utf8_lossy(bytes)})
            }
            _ => json!({"bytes": self.to_json()}),
        }
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Bytes::of(text.as_bytes())
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.expand() == other.expand()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_is_kept_and_short_ones_are_written_out() {
        let bytes = Bytes::of(b"\x01").join(&Bytes::repeated(b"ab", 3)).join(&Bytes::repeated(b"z", 70_000));
        assert_eq!(bytes.len(), 70_007);
        assert_eq!(bytes.expand().len(), bytes.len());
        assert_eq!(bytes.to_json(), json!(["01616261626162", {"repeat": "7a", "count": 70_000}]));
        assert_eq!(Bytes::new().to_value(), json!({"bytes": ""}));
        assert_eq!(Bytes::from("a b").to_value(), json!({"text": "a b"}));
    }
}
