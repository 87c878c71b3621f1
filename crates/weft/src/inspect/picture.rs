//! What is shown of a frame: a title and rows. The decoders' visitors make it, [`super::render`] prints it.

use std::ops::Range;

use serde_json::{Value, json};
use weft_protocol::number;

/// One line about some bytes of a frame. Offsets count from the start of the frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) span: Range<usize>,
    /// So many bytes of the span are a type or a length rather than the value.
    pub(super) prefix: usize,
    /// Fields inside an option, a list or an aggregate are indented.
    pub(super) depth: usize,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) value: Datum,
    /// What it means, in words.
    pub(super) meaning: String,
}

impl Row {
    pub(super) fn new(
        span: Range<usize>,
        name: impl Into<String>,
        kind: impl Into<String>,
        value: Datum,
    ) -> Row {
        let (name, kind) = (name.into(), kind.into());
        Row { span, prefix: 0, depth: 0, name, kind, value, meaning: String::new() }
    }

    pub(super) fn means(mut self, meaning: impl Into<String>) -> Row {
        self.meaning = meaning.into();
        self
    }

    pub(super) fn behind(mut self, prefix: usize) -> Row {
        self.prefix = prefix;
        self
    }

    pub(super) fn at_depth(mut self, depth: usize) -> Row {
        self.depth = depth;
        self
    }
}

/// The value in a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Datum {
    None,
    /// Bytes of the frame.
    Bytes(Range<usize>),
    Int(i64),
    Double(f64),
    Bool(bool),
    Null,
    /// A number whose digits are hexadecimal, with as many digits.
    Hex(u64, usize),
    /// Words of the table.
    Words(String),
}

impl Datum {
    /// As people read it; of long bytes the beginning.
    pub(super) fn text(&self, frame: &[u8], max: usize) -> String {
        match self {
            Datum::None => String::new(),
            Datum::Bytes(span) => crate::text::quoted(frame.get(span.clone()).unwrap_or_default(), max),
            Datum::Int(value) => value.to_string(),
            Datum::Double(value) => {
                String::from_utf8_lossy(number::double_text(*value, &mut [0; number::DOUBLE_TEXT_MAX]))
                    .into_owned()
            }
            Datum::Bool(value) => value.to_string(),
            Datum::Null => "null".into(),
            Datum::Hex(value, digits) => format!("0x{value:0digits$X}"),
            Datum::Words(words) => words.clone(),
        }
    }

    /// As a program reads it. Bytes that are no UTF-8 are an object with their hexadecimal digits.
    pub(super) fn json(&self, frame: &[u8]) -> Value {
        match self {
            Datum::None | Datum::Null => Value::Null,
            Datum::Bytes(span) => {
                let bytes = frame.get(span.clone()).unwrap_or_default();
                match std::str::from_utf8(bytes) {
                    Ok(text) => text.into(),
                    Err(_) => json!({ "hex": crate::text::hex(bytes, usize::MAX).replace(' ', "") }),
                }
            }
            Datum::Int(value) => (*value).into(),
            // JSON has no infinities and no NaN.
            Datum::Double(value) if !value.is_finite() => self.text(frame, 0).into(),
            Datum::Double(value) => (*value).into(),
            Datum::Bool(value) => (*value).into(),
            Datum::Hex(value, _) => (*value).into(),
            Datum::Words(words) => words.as_str().into(),
        }
    }
}

/// A frame, or as much of it as could be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Picture {
    /// `request`, `reply`, `push`, `control`.
    pub(super) role: &'static str,
    /// `typed`, `module`, `argv`, `passthrough`, `array`, `inline`; empty where there is no choice.
    pub(super) form: &'static str,
    /// The command's or the frame's name; empty while it is not known.
    pub(super) name: String,
    pub(super) channel: Option<u16>,
    pub(super) rows: Vec<Row>,
    /// The command in its argument form, as it would be typed.
    pub(super) command_line: Option<String>,
    /// Bytes of the same command in RESP.
    pub(super) resp_len: Option<usize>,
    /// A remark for people.
    pub(super) note: Option<String>,
}
