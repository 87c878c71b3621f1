//! The picture of a reply, of either protocol: each value with its place, elements indented.

use weft_protocol::reply::{Aggregate, ReplyVisitor, Text};
use weft_protocol::respb::frame::HEADER_LEN;
use weft_protocol::respb::reply::ReplyKind;
use weft_protocol::{Limits, Outcome, resp, respb};

use super::Seen;
use super::picture::{Datum, Picture, Row};
use super::request::{bytes_text, control, head, unknown};
use crate::text::grouped;

/// Draws the RESPB reply at the start of `bytes`.
pub(super) fn draw_respb(bytes: &[u8], limits: Limits) -> (Picture, Seen) {
    let mut values = Values::new(bytes, true);
    let outcome = respb::ReplyDecoder::new(limits).decode(bytes, &mut values);
    let mut picture = Picture { role: "reply", rows: head(bytes), ..Picture::default() };
    picture.channel = bytes.get(2..4).and_then(|b| b.first_chunk()).map(|b| u16::from_be_bytes(*b));
    if let (Some(opcode), Some(top)) = (picture.rows.first_mut(), values.rows.first()) {
        opcode.meaning = top.kind.clone();
    }
    picture.name = values.name();
    picture.rows.append(&mut values.rows);
    let frame = match outcome {
        Outcome::Complete(frame) => frame,
        Outcome::Incomplete { need } => return (picture, Seen::Cut { need }),
        Outcome::Invalid(error) => return (picture, Seen::Wrong(error)),
    };
    match frame.kind {
        ReplyKind::Reply => {}
        ReplyKind::Push => picture.role = "push",
        ReplyKind::Control(inner) => {
            picture.name = crate::lacks::frame_name(bytes).unwrap_or_default();
            control(&mut picture, &inner, frame.len);
        }
        ReplyKind::Unknown { opcode } => {
            unknown(&mut picture, opcode, frame.len);
            picture.rows[0].meaning = "unknown, and passed over".into();
        }
    }
    (picture, Seen::Whole(frame.len))
}

/// Draws the RESP reply at the start of `bytes`.
pub(super) fn draw_resp(bytes: &[u8], limits: Limits) -> (Picture, Seen) {
    let mut values = Values::new(bytes, false);
    let outcome = resp::ReplyDecoder::new(limits).decode(bytes, &mut values);
    let name = values.name();
    let mut picture = Picture { role: "reply", name, rows: values.rows, ..Picture::default() };
    match outcome {
        Outcome::Complete(frame) => {
            if frame.push {
                picture.role = "push";
            }
            (picture, Seen::Whole(frame.len))
        }
        Outcome::Incomplete { need } => (picture, Seen::Cut { need }),
        Outcome::Invalid(error) => (picture, Seen::Wrong(error)),
    }
}

/// An aggregate whose elements are being read.
struct Open {
    kind: Aggregate,
    /// Elements so far.
    index: u64,
    /// Elements to come; none while it is streamed.
    left: Option<u64>,
}

/// Makes a row of each value.
struct Values<'a> {
    frame: &'a [u8],
    binary: bool,
    rows: Vec<Row>,
    open: Vec<Open>,
    /// The value that was handed out and whose place comes next: its type, its value, what it means.
    value: Option<(String, Datum, String)>,
    /// It opens an aggregate.
    opens: Option<(Aggregate, Option<u32>)>,
    /// It ends something that is streamed.
    closes: bool,
    in_text: bool,
}

impl<'a> Values<'a> {
    fn new(frame: &'a [u8], binary: bool) -> Self {
        let rows = Vec::new();
        Values {
            frame,
            binary,
            rows,
            open: Vec::new(),
            value: None,
            opens: None,
            closes: false,
            in_text: false,
        }
    }

    /// The top value in a few words.
    fn name(&self) -> String {
        let Some(top) = self.rows.first() else { return String::new() };
        let text = top.value.text(self.frame, 48);
        match &top.value {
            Datum::None => top.kind.clone(),
            Datum::Null => "null".into(),
            Datum::Int(_) if !top.meaning.is_empty() => format!("{} of {}", top.kind, top.meaning),
            _ => format!("{} {text}", top.kind),
        }
    }

    /// The name of the value that comes next: its place in what is open.
    fn role(&self, kind: &str) -> String {
        if self.closes {
            return "end".into();
        }
        if kind == "chunk" {
            return kind.into();
        }
        match self.open.last() {
            None => "value".into(),
            Some(top) => match top.kind {
                Aggregate::Map | Aggregate::Attribute => {
                    format!("{}[{}]", if top.index % 2 == 0 { "key" } else { "value" }, top.index / 2)
                }
                _ => format!("[{}]", top.index),
            },
        }
    }

    /// A value is complete: it counts in the aggregate around it.
    fn complete_one(&mut self) {
        while let Some(top) = self.open.last_mut() {
            top.index += 1;
            let Some(left) = &mut top.left else { return };
            *left -= 1;
            if *left > 0 {
                return;
            }
            let attribute = top.kind == Aggregate::Attribute;
            self.open.pop();
            // The value that an attribute describes comes after it, in its place.
            if attribute {
                return;
            }
        }
    }

    fn settle(&mut self) {
        if std::mem::take(&mut self.closes) {
            if std::mem::take(&mut self.in_text) {
                return self.complete_one();
            }
            let attribute = self.open.pop().is_some_and(|top| top.kind == Aggregate::Attribute);
            if !attribute {
                self.complete_one();
            }
            return;
        }
        let Some((kind, len)) = self.opens.take() else {
            if !self.in_text {
                self.complete_one();
            }
            return;
        };
        let left = len.map(|len| u64::from(len) * kind.width());
        if left == Some(0) {
            if kind != Aggregate::Attribute {
                self.complete_one();
            }
        } else {
            self.open.push(Open { kind, index: 0, left });
        }
    }
}

impl ReplyVisitor for Values<'_> {
    fn text(&mut self, kind: Text, offset: usize, bytes: &[u8]) {
        let meaning = bytes_text(bytes.len());
        let name = match kind {
            _ if self.in_text => "chunk".into(),
            Text::Simple => "simple string".into(),
            Text::Error => "error".into(),
            Text::Bulk => "bulk".into(),
            Text::BigNumber => "big number".into(),
            Text::Verbatim(format) => format!("verbatim {}", format.escape_ascii()),
        };
        // RESPB's OK has no bytes of its own.
        let own = self.frame.get(offset..offset + bytes.len()) == Some(bytes);
        let value =
            if own { Datum::Bytes(offset..offset + bytes.len()) } else { Datum::Words("\"OK\"".into()) };
        self.value = Some((name, value, if own { meaning } else { String::new() }));
    }
    fn int(&mut self, value: i64) {
        self.value = Some(("integer".into(), Datum::Int(value), String::new()));
    }
    fn double(&mut self, value: f64) {
        self.value = Some(("double".into(), Datum::Double(value), String::new()));
    }
    fn boolean(&mut self, value: bool) {
        self.value = Some(("boolean".into(), Datum::Bool(value), String::new()));
    }
    fn null(&mut self, array: bool) {
        let meaning = if array { "RESP2's null array" } else { "" };
        self.value = Some(("null".into(), Datum::Null, meaning.into()));
    }
    fn open(&mut self, kind: Aggregate, len: Option<u32>) {
        let name = match kind {
            Aggregate::Array => "array",
            Aggregate::Map => "map",
            Aggregate::Set => "set",
            Aggregate::Push => "push",
            Aggregate::Attribute => "attribute",
        };
        let unit = match (kind.width(), len) {
            (2, Some(1)) => "pair",
            (2, _) => "pairs",
            (_, Some(1)) => "element",
            _ => "elements",
        };
        let (value, meaning) = match len {
            Some(len) => (Datum::Int(len.into()), format!("{} {unit}", grouped(len.into()))),
            None => (Datum::None, format!("streamed: {unit} until the end mark")),
        };
        self.value = Some((name.into(), value, meaning));
        self.opens = Some((kind, len));
    }
    fn close(&mut self) {
        self.value = Some(("end of stream".into(), Datum::None, String::new()));
        self.closes = true;
    }
    fn open_text(&mut self) {
        self.value = Some(("streamed string".into(), Datum::None, "chunks until an empty one".into()));
        self.in_text = true;
    }
    fn span(&mut self, start: usize, end: usize) {
        let Some((kind, value, meaning)) = self.value.take() else { return };
        let (role, depth) = (self.role(&kind), self.open.len());
        // The header of a RESPB reply has rows of its own.
        let start = if self.binary && start == 0 { HEADER_LEN.min(end) } else { start };
        // Tag and length stand before a text, a type byte or tag before anything else but the value of a RESPB header.
        let prefix = match &value {
            Datum::Bytes(text) => text.start.saturating_sub(start),
            _ if start == end || self.rows.is_empty() && self.binary => 0,
            _ => 1,
        };
        let row = Row::new(start..end, role, kind, value).behind(prefix).at_depth(depth);
        self.rows.push(row.means(meaning));
        self.settle();
    }
}
