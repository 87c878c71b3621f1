//! What decoders of requests hand out, recorded; and the text of it.

use weft_protocol::request::unquote;
use weft_protocol::{Arg, ArgVisitor};

use super::pieces::Recording;

/// One call of a visitor.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// `bytes`, with its offset.
    Bytes(usize, Vec<u8>),
    /// `int`
    Int(i64),
    /// `double`, as its bits.
    Double(u64),
    /// `keyword`
    Keyword(&'static str),
    /// `options`
    Options(u16),
    /// `quoted`, with its offset.
    Quoted(usize, Vec<u8>),
}

/// The calls of one frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls(pub Vec<Call>);

impl Recording for Calls {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl ArgVisitor for Calls {
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.0.push(Call::Bytes(offset, bytes.to_vec()));
    }
    fn int(&mut self, value: i64) {
        self.0.push(Call::Int(value));
    }
    fn double(&mut self, value: f64) {
        assert!(!value.is_nan(), "a decoder handed out NaN");
        self.0.push(Call::Double(value.to_bits()));
    }
    fn keyword(&mut self, word: &'static str) {
        self.0.push(Call::Keyword(word));
    }
    fn options(&mut self, bits: u16) {
        // No bits mean the same as no call: the straight code leaves it out.
        if bits != 0 {
            self.0.push(Call::Options(bits));
        }
    }
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.0.push(Call::Quoted(offset, raw.to_vec()));
    }
}

impl Call {
    /// The argument's text; none for option bits, which are no argument.
    pub fn text(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        match self {
            Call::Bytes(_, bytes) => out.extend_from_slice(bytes),
            Call::Int(value) => Arg::Int(*value).push_text(&mut out),
            Call::Double(bits) => Arg::Double(f64::from_bits(*bits)).push_text(&mut out),
            Call::Keyword(word) => out.extend_from_slice(word.as_bytes()),
            Call::Quoted(_, raw) => unquote(raw, &mut out),
            Call::Options(_) => return None,
        }
        Some(out)
    }

    /// The argument as encoders take it.
    pub fn arg(&self) -> Option<Arg<'_>> {
        Some(match self {
            Call::Bytes(_, bytes) => Arg::Bytes(bytes),
            Call::Int(value) => Arg::Int(*value),
            Call::Double(bits) => Arg::Double(f64::from_bits(*bits)),
            Call::Keyword(word) => Arg::Keyword(word),
            Call::Options(_) | Call::Quoted(..) => return None,
        })
    }
}

impl Calls {
    /// The texts of all arguments.
    pub fn texts(&self) -> Vec<Vec<u8>> {
        self.0.iter().filter_map(Call::text).collect()
    }

    /// Byte arguments must stand in the frame where their offsets say.
    pub fn assert_in(&self, frame: &[u8]) {
        for call in &self.0 {
            if let Call::Bytes(at, bytes) | Call::Quoted(at, bytes) = call {
                assert_eq!(frame.get(*at..at + bytes.len()), Some(&bytes[..]), "offset {at}");
            }
        }
    }
}
