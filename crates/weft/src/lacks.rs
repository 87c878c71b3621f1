//! What a stream lacks where it ends or breaks, in words.
//!
//! Owns the messages. Runs once, after a decoder has given up: it looks at the one command in question again from its
//! start.

use weft_protocol::request::{ArgVisitor, Place};
use weft_protocol::respb::RequestDecoder;
use weft_protocol::respb::frame;
use weft_protocol::table::{self, Kind};
use weft_protocol::{Limits, Malformed, Outcome, WireError};

use crate::text::{grouped, quoted};

/// How far a RESP array can be read.
pub(crate) struct RespLacks {
    what: &'static str,
    /// Bytes that are missing, where that is known.
    bytes: Option<u64>,
    /// The argument, from 1, and how many there are.
    argument: Option<(u64, u64)>,
    /// The command's name, if that much is there.
    name: Option<String>,
}

impl RespLacks {
    /// ` for argument 2 of 3 of SET`
    pub(crate) fn argument_text(&self) -> String {
        let name = self.name.as_ref().map_or(String::new(), |name| format!(" of {name}"));
        match self.argument {
            Some((index, count)) => format!(" for argument {index} of {count}{name}"),
            None => String::new(),
        }
    }

    /// The whole sentence.
    pub(crate) fn text(&self) -> String {
        let bytes = self.bytes.map_or(String::new(), |bytes| {
            format!("{} more {}, ", grouped(bytes), if bytes == 1 { "byte" } else { "bytes" })
        });
        format!("{bytes}{}{}", self.what, self.argument_text())
    }
}

/// Reads a RESP array as far as it goes.
pub(crate) fn resp(frame: &[u8]) -> RespLacks {
    let mut lacks =
        RespLacks { what: "the number of arguments and CR LF", bytes: None, argument: None, name: None };
    let Some((count, mut at)) = number_line(frame, 0) else { return lacks };
    for index in 1..=count {
        lacks.argument = Some((index, count));
        lacks.what = "'$' and the length";
        let Some((len, start)) = number_line(frame, at) else { return lacks };
        let end = start.saturating_add(len as usize);
        let there = frame.len() as u64;
        if there < end as u64 + 2 {
            lacks.bytes = Some(end as u64 + 2 - there);
            lacks.what = "the rest of the bytes and CR LF";
            return lacks;
        }
        if frame[end..end + 2] != *b"\r\n" {
            lacks.what = "CR LF";
            return lacks;
        }
        if index == 1 {
            lacks.name = Some(quoted(&frame[start..end], 32).trim_matches('"').to_string());
        }
        at = end + 2;
    }
    lacks.argument = None;
    lacks.what = "nothing";
    lacks
}

/// The number on the line at `at`, whose first byte is its type, and the offset behind the line.
fn number_line(frame: &[u8], at: usize) -> Option<(u64, usize)> {
    let line = frame.get(at + 1..)?;
    let end = line.iter().take(32).position(|&byte| byte == b'\r')?;
    let value = std::str::from_utf8(&line[..end]).ok()?.parse().ok()?;
    (line.get(end + 1) == Some(&b'\n')).then_some((value, at + end + 3))
}

/// What should have stood where an error of this kind was found.
pub(crate) fn expected(kind: Malformed) -> &'static str {
    match kind {
        Malformed::MultibulkLength | Malformed::MultibulkLine => "'*', the number of arguments and CR LF",
        Malformed::ExpectedBulk => "'$' and the length",
        Malformed::BulkLength | Malformed::BulkLine => "'$', a length within the limit and CR LF",
        Malformed::BulkEnd => "CR LF behind the bytes",
        Malformed::InlineTooLong => "the end of an inline command's line",
        Malformed::UnbalancedQuotes => "a closing quote and a blank",
        Malformed::TooManyArguments | Malformed::UnauthenticatedArguments => "fewer arguments",
        Malformed::ArgumentTooLong | Malformed::UnauthenticatedArgument => "a shorter argument",
        Malformed::FrameTooLong => "a request within the limit on its size",
        Malformed::UnknownType => "the type of a reply",
        Malformed::LineTooLong => "the end of the line",
        Malformed::BadLine => "CR LF at the end of the line",
        Malformed::BadNumber => "a number",
        Malformed::BadLength => "a length",
        Malformed::BadBool => "a boolean",
        Malformed::BadVerbatim => "three bytes of format and ':'",
        Malformed::TooDeep => "fewer aggregates inside each other",
        Malformed::TooManyElements => "fewer elements",
        Malformed::Misplaced => "a type that may stand here",
        Malformed::BadStream => "a chunk, or the end of what is open",
        Malformed::UnknownOpcode => "an opcode of the table",
        Malformed::WrongDirection => "an opcode of this direction",
        Malformed::UnknownBit => "only option bits that the layout names",
        Malformed::ExclusiveBits => "at most one of the option bits that exclude each other",
        Malformed::MissingBit => "the option bit that another one needs",
        Malformed::BadEnum => "a value of the enumeration",
        Malformed::LengthMismatch => "lengths that fill the frame exactly",
        Malformed::EmptyCommand => "at least the command's name",
        Malformed::NotOneCommand => "exactly one RESP command",
        Malformed::BadControl => "the payload that the control frame has",
        Malformed::UnknownTag => "the tag of an element",
        _ => "well-formed bytes",
    }
}

/// Remembers what the decoder was about to read.
#[derive(Default)]
struct Last {
    place: Option<(Place, u64)>,
    arguments: u64,
}

impl ArgVisitor for Last {
    fn bytes(&mut self, _offset: usize, _bytes: &[u8]) {}
    fn int(&mut self, _value: i64) {}
    fn double(&mut self, _value: f64) {}
    fn keyword(&mut self, _word: &'static str) {}
    fn quoted(&mut self, _offset: usize, _raw: &[u8]) {}
    fn place(&mut self, place: Place) {
        match place {
            Place::ExpectedArgument { .. } => self.arguments += 1,
            Place::Argument { .. } => return,
            _ => {}
        }
        self.place = Some((place, self.arguments));
    }
}

/// The field of a RESPB request that is not there, or is wrong.
fn field(bytes: &[u8], limits: Limits) -> (Option<String>, usize) {
    let mut last = Last::default();
    let outcome = RequestDecoder::walking(limits).decode(bytes, &mut last);
    let need = if let Outcome::Incomplete { need } = outcome { need } else { 0 };
    let text = last.place.map(|(place, arguments)| match place {
        Place::Expected { field, .. } | Place::Value { field, .. } | Place::Count { field, .. } => {
            format!("`{}` ({})", field.name, kind_name(&field.kind))
        }
        Place::Options { field, .. } => format!("the bits of `{}`", field.name),
        Place::Total { .. } => "the total length of the arguments".into(),
        Place::ExpectedArgument { .. } | Place::Argument { .. } => {
            format!("argument {arguments} (length u32, bytes)")
        }
    });
    (text, need)
}

/// The field's type, as the specification writes it.
pub(crate) fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Str16 => "str16",
        Kind::Blob32 => "blob32",
        Kind::I64 => "i64",
        Kind::F64 => "f64",
        Kind::U16 => "u16",
        Kind::U8 => "u8",
        Kind::Enum(_) => "u8 enum",
        Kind::List(_) => "list16",
        Kind::Options(_) => "opts8",
    }
}

/// What a RESPB request lacks that the stream ends in.
pub(crate) fn respb(bytes: &[u8], limits: Limits) -> String {
    let (field, need) = field(bytes, limits);
    let more = grouped((need.saturating_sub(bytes.len())).max(1) as u64);
    let more = format!("{more} more {}", if more == "1" { "byte" } else { "bytes" });
    match (field, frame_name(bytes)) {
        (Some(field), Some(name)) => format!("at least {more}, for {field} of {name}"),
        (_, Some(name)) => format!("at least {more} of {name}"),
        _ => format!("at least {more}, opcode and channel"),
    }
}

/// ` in `options` (opts8) of SET`: where in a RESPB request something is wrong.
pub(crate) fn within(bytes: &[u8], limits: Limits) -> String {
    match (field(bytes, limits).0, frame_name(bytes)) {
        (Some(field), Some(name)) => format!(" in {field} of {name}"),
        (None, Some(name)) => format!(" in {name}"),
        _ => String::new(),
    }
}

/// What is wrong with a RESPB request.
pub(crate) fn respb_wrong(bytes: &[u8], error: WireError, limits: Limits) -> String {
    let found = bytes.get(error.offset..).unwrap_or_default();
    let found = crate::text::hex(&found[..found.len().min(8)], 8);
    let within = within(bytes, limits);
    let hint = match bytes.first() {
        Some(b'*') if error.offset == 0 => ": RESP begins so (--to respb)",
        _ => "",
    };
    format!("expected {}{within}, found {found} ({}){hint}", expected(error.kind), error.kind.name())
}

/// The command or the kind of frame, if its opcode is there and known.
pub(crate) fn frame_name(bytes: &[u8]) -> Option<String> {
    let opcode = u16::from_be_bytes(*bytes.first_chunk()?);
    let named = |name: &str| Some(name.to_string());
    match opcode {
        frame::MODULE => {
            let [_, _, _, _, m1, m0, n1, n0] = *bytes.first_chunk::<8>()?;
            let id = table::by_module(u16::from_be_bytes([m1, m0]), u16::from_be_bytes([n1, n0]))?;
            named(id.spec().name)
        }
        frame::ARGV => named("ARGV"),
        frame::PASSTHROUGH => named("PASSTHROUGH"),
        frame::CLOSE => named("CLOSE"),
        frame::CANCEL => named("CANCEL"),
        frame::WINDOW => named("WINDOW"),
        frame::FRAGMENT => named("FRAGMENT"),
        frame::EXTENDED_FIRST.. => Some(format!("frame {opcode:04X}")),
        _ => named(table::by_opcode(opcode)?.spec().name),
    }
}
