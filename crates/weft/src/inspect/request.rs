//! The picture of a RESPB request: header, then each field by the names of its layout.
//!
//! Reads nothing itself: the decoder of `weft-protocol`, told to walk, says where each field stands.

use std::collections::VecDeque;

use weft_protocol::request::{ArgList, ArgVisitor, Arguments, Decoded, Place};
use weft_protocol::respb::frame::{self, Control, HEADER_LEN, LONG_HEADER_LEN};
use weft_protocol::respb::{Frame, Mode, RequestDecoder, RequestWriter};
use weft_protocol::table::{self, CommandId, Field, Kind};
use weft_protocol::{Arg, Limits, Outcome, resp};

use super::picture::{Datum, Picture, Row};
use super::{Seen, resp_request};
use crate::lacks::kind_name;
use crate::text::{grouped, quoted, saved};

/// Bytes of an argument that the command line shows.
const ARGUMENT_BYTES: usize = 64;

/// Arguments that the command line shows.
const ARGUMENTS: usize = 24;

/// Draws the frame at the start of `bytes`.
pub(super) fn draw(bytes: &[u8], limits: Limits) -> (Picture, Seen) {
    let mut visitor =
        Fields { frame: bytes, rows: Vec::new(), args: ArgList::new(), inside: VecDeque::new(), count: 0 };
    let outcome = RequestDecoder::walking(limits).decode(bytes, &mut visitor);
    let mut picture = Picture { role: "request", rows: head(bytes), ..Picture::default() };
    picture.channel = bytes.get(2..4).and_then(|b| b.first_chunk()).map(|b| u16::from_be_bytes(*b));
    picture.name = crate::lacks::frame_name(bytes).unwrap_or_default();
    let Fields { rows, args, .. } = visitor;
    picture.rows.extend(rows);
    let frame = match outcome {
        Outcome::Complete(frame) => frame,
        Outcome::Incomplete { need } => return (picture, Seen::Cut { need }),
        Outcome::Invalid(error) => return (picture, Seen::Wrong(error)),
    };
    let argv = Decoded { list: &args, frame: bytes };
    match frame.frame {
        Frame::Core(_) | Frame::Module(_) => {
            picture.form = if matches!(frame.frame, Frame::Core(_)) { "typed" } else { "module" };
            if let Some(id) = frame.frame.command() {
                command(&mut picture, Some(id), &argv, frame.len);
            }
        }
        Frame::Argv => {
            picture.form = "argv";
            command(&mut picture, None, &argv, frame.len);
        }
        Frame::Passthrough => {
            picture.form = "passthrough";
            let (inner, _) = resp_request::draw(&bytes[LONG_HEADER_LEN..frame.len], limits);
            picture.rows.extend(inner.rows.into_iter().map(|row| shift(row, LONG_HEADER_LEN)));
            command(&mut picture, None, &argv, frame.len);
        }
        Frame::Control(control) => {
            picture.role = "control";
            control_rows(&mut picture, &control, frame.len);
        }
        Frame::Unknown { opcode } => unknown(&mut picture, opcode, frame.len),
    }
    (picture, Seen::Whole(frame.len))
}

/// The same row of a frame inside another, `by` bytes behind its start.
fn shift(mut row: Row, by: usize) -> Row {
    row.span = row.span.start + by..row.span.end + by;
    if let Datum::Bytes(span) = &mut row.value {
        *span = span.start + by..span.end + by;
    }
    row.at_depth(1)
}

/// The header: as much of it as is there.
pub(super) fn head(bytes: &[u8]) -> Vec<Row> {
    let mut rows = Vec::new();
    let Some(opcode) = bytes.first_chunk().map(|b| u16::from_be_bytes(*b)) else { return rows };
    rows.push(Row::new(0..2, "opcode", "u16", Datum::Hex(opcode.into(), 4)).means(opcode_meaning(opcode)));
    let word =
        |at: usize| bytes.get(at..at + 2).and_then(|b| b.first_chunk()).map(|b| u16::from_be_bytes(*b));
    if let Some(channel) = word(2) {
        rows.push(Row::new(2..4, "channel", "u16", Datum::Int(channel.into())));
    }
    if opcode == frame::MODULE
        && let (Some(module), Some(command)) = (word(4), word(6))
    {
        let name = table::by_module(module, command).map(summary).unwrap_or("no command of the table".into());
        let family =
            table::by_module(module, 0).and_then(|id| id.spec().name.split('.').next()).unwrap_or("unknown");
        rows.push(Row::new(4..6, "module", "u16", Datum::Hex(module.into(), 4)).means(family));
        rows.push(Row::new(6..8, "command", "u16", Datum::Hex(command.into(), 4)).means(name));
    }
    if let Some(length) = bytes.get(4..8).and_then(|b| b.first_chunk()).map(|b| u32::from_be_bytes(*b))
        && opcode >= frame::EXTENDED_FIRST
    {
        rows.push(
            Row::new(4..8, "length", "u32", Datum::Int(length.into()))
                .means("bytes that follow: the frame can be skipped"),
        );
    }
    rows
}

fn opcode_meaning(opcode: u16) -> String {
    match opcode {
        0..=frame::CORE_LAST => table::by_opcode(opcode).map_or("no command of the table".into(), summary),
        frame::MODULE => "a module's command".into(),
        frame::ARGV => "ARGV: any command, as arguments".into(),
        frame::PASSTHROUGH => "PASSTHROUGH: one RESP command, answered in RESPB".into(),
        frame::CLOSE => "CLOSE: ends the channel".into(),
        frame::CANCEL => "CANCEL: ends a request that waits or blocks".into(),
        frame::WINDOW => "WINDOW: grants credit".into(),
        frame::FRAGMENT => "FRAGMENT: a slice of a reply".into(),
        frame::REPLY_FIRST..=frame::REPLY_LAST => "a reply".into(),
        frame::IGNORABLE_FIRST.. => "an unknown control frame, to be ignored".into(),
        frame::EXTENDED_FIRST.. => "unknown: a server answers with an error, and skips it".into(),
        _ => "unassigned".into(),
    }
}

/// `GET: Get the value of a key (2 arguments, since 1.0.0)`
fn summary(id: CommandId) -> String {
    let spec = id.spec();
    let arity = match spec.arity {
        1 => "no arguments".into(),
        2 => "1 argument".into(),
        -1 => "any arguments".into(),
        n if n < 0 => format!("{} or more arguments", -n - 1),
        n => format!("{} arguments", n - 1),
    };
    format!("{}: {} ({arity}, since {})", spec.name, spec.summary, spec.since)
}

/// What is known once all arguments are: the command line, its size in RESP, whether a shorter frame says the same.
pub(super) fn command(picture: &mut Picture, id: Option<CommandId>, argv: &Decoded<'_>, len: usize) {
    let name = id.map(|id| id.spec().name.as_bytes());
    let mut resp = Vec::new();
    resp::encode::request(name, argv, &mut resp);
    picture.resp_len = Some(resp.len());
    let mut words: Vec<String> = name.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    for index in 0..argv.len().min(ARGUMENTS) {
        words.push(word(&argv.arg(index)));
    }
    if argv.len() > ARGUMENTS {
        words.push(format!("… ({} arguments)", grouped(argv.len() as u64)));
    }
    picture.command_line = Some(words.join(" "));
    if id.is_some() {
        return;
    }
    if let Some(name) = words.first() {
        picture.name = name.trim_matches('"').to_string();
    }
    if picture.form == "argv" || picture.form == "passthrough" {
        let mut shortest = Vec::new();
        let typed = RequestWriter::new(&mut shortest, 0).arguments(argv, Mode::Exact);
        picture.note = Some(match typed {
            true => format!(
                "not canonical: the typed frame of the same command has {} bytes",
                grouped(shortest.len() as u64)
            ),
            false => "no typed layout says exactly these arguments".into(),
        });
    } else {
        let mut respb = Vec::new();
        let typed = RequestWriter::new(&mut respb, 0).arguments(argv, Mode::Exact);
        let form = if typed { "a typed frame" } else { "ARGV" };
        picture.note = Some(format!(
            "{} bytes in RESPB, as {form}: {}",
            grouped(respb.len() as u64),
            saved(len, respb.len())
        ));
    }
}

/// An argument as it would be typed.
fn word(arg: &Arg<'_>) -> String {
    let mut text = Vec::new();
    arg.push_text(&mut text);
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !text.is_empty() && text.len() <= ARGUMENT_BYTES && text.iter().all(plain) {
        return String::from_utf8_lossy(&text).into_owned();
    }
    quoted(&text, ARGUMENT_BYTES)
}

fn control_rows(picture: &mut Picture, control: &Control<'_>, len: usize) {
    let rows = &mut picture.rows;
    let at = LONG_HEADER_LEN;
    match *control {
        Control::Close { code, reason } if len > at => {
            rows.push(Row::new(at..at + 2, "code", "u16", Datum::Int(code.into())).means(close_code(code)));
            if !reason.is_empty() {
                rows.push(Row::new(at + 2..len, "reason", "bytes", Datum::Bytes(at + 2..len)));
            }
        }
        Control::Close { .. } => picture.note = Some("no payload is the same as code 0: done".into()),
        Control::Goaway { code, reason } => {
            rows.push(Row::new(at..at + 2, "code", "u16", Datum::Int(code.into())).means(close_code(code)));
            if !reason.is_empty() {
                rows.push(Row::new(at + 2..len, "reason", "bytes", Datum::Bytes(at + 2..len)));
            }
            picture.note =
                Some("the connection ends; what has no answer at its clean end did not run".into());
        }
        Control::Cancel { sequence } => rows.push(
            Row::new(at..len, "sequence", "u32", Datum::Int(sequence.into()))
                .means("requests on the channel count from 0"),
        ),
        Control::Window { more } => rows.push(
            Row::new(at..len, "more", "u32", Datum::Int(more.into()))
                .means("bytes that the server may send in addition"),
        ),
        Control::Fragment { last, .. } => {
            let meaning = if last { "the last slice" } else { "more slices follow" };
            rows.push(Row::new(at..at + 1, "flags", "u8", Datum::Int(last.into())).means(meaning));
            rows.push(Row::new(at + 1..len, "slice", "bytes", Datum::Bytes(at + 1..len)));
        }
        Control::Unknown { .. } if len > at => {
            rows.push(Row::new(at..len, "payload", "bytes", Datum::Bytes(at..len)))
        }
        Control::Unknown { .. } => {}
    }
}

pub(super) fn control(picture: &mut Picture, control: &Control<'_>, len: usize) {
    picture.role = "control";
    control_rows(picture, control, len);
}

fn close_code(code: u16) -> &'static str {
    match code {
        0 => "done",
        1 => "the channel's queue is full",
        2 => "the channel's output limit was exceeded",
        3 => "idle for too long",
        4 => "killed",
        5 => "too many channels, or too many connections",
        6 => "the server shuts down",
        7 => "the user was removed or disabled",
        8 => "bytes that could not be read",
        9 => "not from this address, or not without TLS",
        10 => "authentication is missing",
        11..256 => "unassigned",
        256.. => "the application's own",
    }
}

pub(super) fn unknown(picture: &mut Picture, opcode: u16, len: usize) {
    picture.name = format!("frame {opcode:04X}");
    if len > LONG_HEADER_LEN {
        picture.rows.push(Row::new(
            LONG_HEADER_LEN..len,
            "payload",
            "bytes",
            Datum::Bytes(LONG_HEADER_LEN..len),
        ));
    }
}

/// Makes rows of the places that the decoder tells.
struct Fields<'a> {
    frame: &'a [u8],
    rows: Vec<Row>,
    args: ArgList,
    /// The names of the next fields, which are inside a list or behind an option bit.
    inside: VecDeque<String>,
    /// Arguments of the `args` layout so far.
    count: usize,
}

impl Fields<'_> {
    fn value(&mut self, field: &'static Field, at: usize, end: usize) {
        let inside = self.inside.pop_front();
        let bytes = &self.frame[at..end];
        let (prefix, value) = match field.kind {
            Kind::Str16 => (2, Datum::Bytes(at + 2..end)),
            Kind::Blob32 => (4, Datum::Bytes(at + 4..end)),
            Kind::Enum(values) => (
                0,
                Datum::Words(
                    values.get(usize::from(bytes[0])).map_or(String::new(), |words| words.join(" ")),
                ),
            ),
            Kind::F64 => {
                (0, bytes.first_chunk().map_or(Datum::None, |b| Datum::Double(f64::from_be_bytes(*b))))
            }
            Kind::I64 => (0, bytes.first_chunk().map_or(Datum::None, |b| Datum::Int(i64::from_be_bytes(*b)))),
            _ => (0, Datum::Int(bytes.iter().fold(0, |value, byte| value << 8 | i64::from(*byte)))),
        };
        let mut meaning = Vec::new();
        if field.key {
            meaning.push("key".to_string());
        }
        if prefix > 0 {
            meaning.push(bytes_text(end - at - prefix));
        }
        if !field.token.is_empty() {
            meaning.push(format!("behind the keyword {}", field.token.join(" ")));
        }
        let depth = usize::from(inside.is_some());
        let name = inside.unwrap_or_else(|| field.name.to_string());
        self.rows.push(
            Row::new(at..end, name, kind_name(&field.kind), value)
                .behind(prefix)
                .at_depth(depth)
                .means(meaning.join(", ")),
        );
    }

    fn options(&mut self, field: &'static Field, at: usize, bits: u16) {
        let Kind::Options(options) = &field.kind else { return };
        let mut names = Vec::new();
        for index in (0..8).filter(|index| bits >> index & 1 == 1) {
            let Some(bit) = options.bits.get(index) else {
                names.push(format!("bit {index} (not in the layout)"));
                continue;
            };
            names.push(format!("bit {index} {}", bit.name));
            let name = |field: &Field| match field.name.eq_ignore_ascii_case(bit.name) {
                true => bit.name.to_string(),
                false => format!("{} {}", bit.name, field.name),
            };
            self.inside.extend(bit.fields.iter().map(name));
        }
        let meaning = if names.is_empty() { "no options".into() } else { names.join(", ") };
        let value = Datum::Hex(bits.into(), 2);
        self.rows.push(Row::new(at..at + 1, field.name, kind_name(&field.kind), value).means(meaning));
    }

    fn list(&mut self, field: &'static Field, at: usize, count: u16) {
        let Kind::List(list) = &field.kind else { return };
        for index in 0..count {
            self.inside.extend(list.items.iter().map(|item| format!("{}[{index}]", item.name)));
        }
        let mut meaning = format!("{count} {}", if count == 1 { "item" } else { "items" });
        if !field.token.is_empty() {
            meaning.push_str(&format!(", behind the keyword {}", field.token.join(" ")));
        }
        if list.transposed {
            meaning.push_str(", in the command all first fields, then all second ones");
        }
        if count < u16::from(list.min) {
            meaning.push_str("; the command needs more: an error reply");
        }
        let items: Vec<&str> = list.items.iter().map(|item| kind_name(&item.kind)).collect();
        let kind = format!("list16({})", items.join(" "));
        self.rows.push(Row::new(at..at + 2, field.name, kind, Datum::Int(count.into())).means(meaning));
    }
}

pub(super) fn bytes_text(count: usize) -> String {
    format!("{} {}", grouped(count as u64), if count == 1 { "byte" } else { "bytes" })
}

impl ArgVisitor for Fields<'_> {
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.args.bytes(offset, bytes);
    }
    fn int(&mut self, value: i64) {
        self.args.int(value);
    }
    fn double(&mut self, value: f64) {
        self.args.double(value);
    }
    fn keyword(&mut self, word: &'static str) {
        self.args.keyword(word);
    }
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.args.quoted(offset, raw);
    }
    fn place(&mut self, place: Place) {
        match place {
            Place::Expected { .. } | Place::ExpectedArgument { .. } => {}
            Place::Value { field, at, end } => self.value(field, at, end),
            Place::Count { field, at, count } => self.list(field, at, count),
            Place::Options { field, at, bits } => self.options(field, at, bits),
            Place::Total { at, total } => self.rows.push(
                Row::new(at..at + 4, "total", "u32", Datum::Int(total.into()))
                    .means("bytes of arguments that follow"),
            ),
            Place::Argument { at, end } => {
                let named = self.frame.starts_with(&frame::ARGV.to_be_bytes());
                let name = match self.count {
                    0 if named => "name".into(),
                    count => format!("argument {}", count + usize::from(!named)),
                };
                self.count += 1;
                let row =
                    Row::new(at..end, name, "u32 + bytes", Datum::Bytes(at + 4..end)).behind(4).at_depth(1);
                self.rows.push(row.means(bytes_text(end - at - 4)));
            }
        }
    }
}

/// Behind the frame that begins `bytes`, if the frame says how long it is in spite of an error inside it.
pub(super) fn skip(bytes: &[u8]) -> Option<usize> {
    let opcode = u16::from_be_bytes(*bytes.first_chunk()?);
    let args = |id: CommandId| matches!(id.spec().layout, table::Layout::Args);
    let length_at = match opcode {
        frame::ARGV.. => HEADER_LEN,
        frame::MODULE => {
            let [_, _, _, _, m1, m0, n1, n0] = *bytes.first_chunk::<LONG_HEADER_LEN>()?;
            table::by_module(u16::from_be_bytes([m1, m0]), u16::from_be_bytes([n1, n0]))
                .filter(|id| args(*id))?;
            LONG_HEADER_LEN
        }
        _ => {
            table::by_opcode(opcode).filter(|id| args(*id))?;
            HEADER_LEN
        }
    };
    let length = u32::from_be_bytes(*bytes.get(length_at..)?.first_chunk()?);
    Some(length_at + 4 + length as usize)
}
