//! The picture of a RESP request: the count, then each argument.

use weft_protocol::request::{ArgList, ArgVisitor, Decoded};
use weft_protocol::resp::RequestDecoder;
use weft_protocol::{Limits, Outcome, table};

use super::Seen;
use super::picture::{Datum, Picture, Row};
use super::request::{bytes_text, command};

/// Draws the request at the start of `bytes`.
pub(super) fn draw(bytes: &[u8], limits: Limits) -> (Picture, Seen) {
    let array = bytes.first() == Some(&b'*');
    let line = bytes.iter().take(32).position(|&byte| byte == b'\n').map(|end| end + 1);
    let mut visitor =
        Arguments { frame: bytes, rows: Vec::new(), args: ArgList::new(), at: line.filter(|_| array) };
    let outcome = RequestDecoder::new(limits).decode(bytes, &mut visitor);
    let mut picture =
        Picture { role: "request", form: if array { "array" } else { "inline" }, ..Picture::default() };
    if let Some(end) = line.filter(|_| array) {
        let digits = bytes.get(1..end.saturating_sub(2)).unwrap_or_default();
        let count = std::str::from_utf8(digits)
            .ok()
            .and_then(|text| text.parse().ok())
            .map_or(Datum::None, Datum::Int);
        picture.rows.push(
            Row::new(0..end, "count", "array", count).behind(1).means("arguments, the name among them"),
        );
    }
    let Arguments { rows, args, .. } = visitor;
    picture.rows.extend(rows);
    match outcome {
        Outcome::Complete(frame) => {
            if frame.arguments > 0 {
                command(&mut picture, None, &Decoded { list: &args, frame: bytes }, frame.len);
                picture.resp_len = None;
            } else {
                picture.note = Some("nothing: servers pass over it in silence".into());
            }
            (picture, Seen::Whole(frame.len))
        }
        Outcome::Incomplete { need } => (picture, Seen::Cut { need }),
        Outcome::Invalid(error) => (picture, Seen::Wrong(error)),
    }
}

struct Arguments<'a> {
    frame: &'a [u8],
    rows: Vec<Row>,
    args: ArgList,
    /// In an array: where the next argument begins.
    at: Option<usize>,
}

impl Arguments<'_> {
    fn row(&mut self, offset: usize, len: usize, kind: &str) {
        let (start, end) = match self.at {
            Some(start) => (start, (offset + len + 2).min(self.frame.len())),
            None => (offset, offset + len),
        };
        self.at = self.at.map(|_| end);
        let index = self.rows.len();
        let bytes = &self.frame[offset..offset + len];
        let (name, meaning) = match table::by_name(bytes).filter(|_| index == 0) {
            Some(id) => ("name".into(), format!("{}: {}", id.spec().name, id.spec().summary)),
            None if index == 0 => ("name".into(), "no command of the table".into()),
            None => (format!("argument {index}"), bytes_text(len)),
        };
        let row = Row::new(start..end, name, kind, Datum::Bytes(offset..offset + len)).behind(offset - start);
        self.rows.push(row.means(meaning));
    }
}

impl ArgVisitor for Arguments<'_> {
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.args.bytes(offset, bytes);
        let kind = if self.at.is_some() { "bulk" } else { "word" };
        self.row(offset, bytes.len(), kind);
    }
    fn int(&mut self, _value: i64) {}
    fn double(&mut self, _value: f64) {}
    fn keyword(&mut self, _word: &'static str) {}
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.args.quoted(offset, raw);
        self.row(offset, raw.len(), "quoted word");
    }
}
