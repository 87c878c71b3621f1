//! Owns: what a command's reply becomes in Lua, and what a script's result is written to. Does not own: what the result
//! becomes (`weft_lua`), the wires (`crate::reply`).
//!
//! With `setresp(2)`, the default, a script sees what a client of RESP2 would: doubles are text, maps are lists, null
//! is false. With `setresp(3)` what Lua has not is a table with one field: `{double=…}`, `{map=…}`, `{set=…}`,
//! `{big_number=…}`, `{verbatim_string=…}`; null is nil.

use weft_lua::{Frame, Kind, Out};
use weft_protocol::number::{DOUBLE_TEXT_MAX, double_text};

use crate::error::{Error, ErrorCode};
use crate::reply::{Aggregate, Item, Items, ReplySink};
use crate::stats::WorkerStats;

/// Pushes a reply: one value, or nothing where there is no memory for it.
pub(crate) fn push(frame: &mut Frame<'_>, items: &mut Items<'_>, resp: u8) -> Pushed {
    let before = frame.top();
    let pushed = push_next(frame, items, resp);
    if pushed.is_err() {
        frame.pop(frame.top() - before);
    }
    pushed
}
/// There is no memory for a reply, or no place on the stack.
#[derive(Debug)]
pub(crate) struct NoRoom;

type Pushed = std::result::Result<(), NoRoom>;

/// Texts up to this size are not asked for.
const SHORT_BYTES_MAX: usize = 4 << 10;

fn push_next(frame: &mut Frame<'_>, items: &mut Items<'_>, resp: u8) -> Pushed {
    let Some(item) = items.next() else {
        frame.push_nil();
        return Ok(());
    };
    let flat = resp == 2;
    let text = |frame: &mut Frame<'_>, value: f64| {
        frame.push_bytes(double_text(value, &mut [0; DOUBLE_TEXT_MAX]));
    };
    if let Item::Bulk(bytes) | Item::Verbatim(_, bytes) = item {
        has_room(frame, bytes.len())?;
    } else if let Item::Shared(value) = item {
        has_room(frame, value.as_slice().len())?;
    }
    match item {
        Item::Simple(text) => single(frame, "ok", |frame| frame.push_bytes(text.as_bytes())),
        Item::Error(error) => push_error(frame, error.line, true),
        Item::Int(value) => frame.push_number(value as f64),
        Item::Double(value) if flat => text(frame, value),
        Item::Double(value) => single(frame, "double", |frame| frame.push_number(value)),
        Item::DoubleText(text) if flat => frame.push_bytes(text.as_bytes()),
        Item::DoubleText(text) => {
            single(frame, "double", |frame| frame.push_number(text.parse().unwrap_or(f64::NAN)));
        }
        Item::Bool(value) if flat => frame.push_number(f64::from(u8::from(value))),
        Item::Bool(value) => frame.push_boolean(value),
        Item::BigNumber(digits) if flat => frame.push_bytes(digits.as_bytes()),
        Item::BigNumber(digits) => {
            single(frame, "big_number", |frame| frame.push_bytes(digits.as_bytes()));
        }
        Item::Bulk(bytes) => frame.push_bytes(bytes),
        Item::Shared(value) => frame.push_bytes(value.as_slice()),
        Item::Verbatim(_, bytes) if flat => frame.push_bytes(bytes),
        Item::Verbatim(format, bytes) => single(frame, "verbatim_string", |frame| {
            frame.push_table(0, 2);
            frame.push_bytes(bytes);
            frame.set_field(-2, "string");
            frame.push_bytes(&format);
            frame.set_field(-2, "format");
        }),
        Item::Null | Item::NullArray if flat => frame.push_boolean(false),
        Item::Null | Item::NullArray => frame.push_nil(),
        Item::Open(aggregate, len) => push_aggregate(frame, items, (aggregate, len), resp)?,
    }
    Ok(())
}

fn has_room(frame: &Frame<'_>, bytes: usize) -> Pushed {
    if bytes <= SHORT_BYTES_MAX || frame.has_room(bytes) { Ok(()) } else { Err(NoRoom) }
}

/// Pushes an error's table. `counted`: it is that of a command, and was counted.
pub(crate) fn push_error(frame: &mut Frame<'_>, line: &str, counted: bool) {
    frame.push_error(line);
    if counted {
        frame.push_boolean(true);
        frame.set_field(-2, "ignore_error_stats_update");
    }
}

fn single(frame: &mut Frame<'_>, name: &str, push: impl FnOnce(&mut Frame<'_>)) {
    frame.push_table(0, 1);
    push(frame);
    frame.set_field(-2, name);
}

fn push_aggregate(
    frame: &mut Frame<'_>,
    items: &mut Items<'_>,
    (aggregate, len): (Aggregate, usize),
    resp: u8,
) -> Pushed {
    // Replies are not as deep as the stack.
    if !frame.has_places(8) || !frame.has_room(0) {
        return Err(NoRoom);
    }
    match (aggregate, resp) {
        (Aggregate::Map, 3) | (Aggregate::MapOfArrays, 3) => {
            frame.push_table(0, 1);
            frame.push_table(0, len);
            for at in 0..len {
                push_element(frame, items, (at, resp))?;
                push_next(frame, items, resp)?;
                set_pair(frame);
            }
            frame.set_field(-2, "map");
        }
        (Aggregate::Set, 3) => {
            frame.push_table(0, 1);
            frame.push_table(0, len);
            for at in 0..len {
                push_element(frame, items, (at, resp))?;
                frame.push_boolean(true);
                set_pair(frame);
            }
            frame.set_field(-2, "set");
        }
        (Aggregate::Pairs, 3) | (Aggregate::MapOfArrays, _) => {
            frame.push_table(len, 0);
            for pair in 1..=len {
                frame.push_table(2, 0);
                for at in 1..=2 {
                    push_element(frame, items, (pair, resp))?;
                    frame.raw_set_at(-2, at);
                }
                frame.raw_set_at(-2, pair);
            }
        }
        (aggregate, _) => {
            let count = aggregate.elements(len);
            frame.push_table(count, 0);
            for at in 1..=count {
                push_element(frame, items, (at, resp))?;
                frame.raw_set_at(-2, at);
            }
        }
    }
    Ok(())
}

/// Elements behind which it is asked again whether there is room.
const ELEMENTS: usize = 64;

/// Pushes an element, which is one of many.
fn push_element(frame: &mut Frame<'_>, items: &mut Items<'_>, (at, resp): (usize, u8)) -> Pushed {
    if at.is_multiple_of(ELEMENTS) && !frame.has_room(0) {
        return Err(NoRoom);
    }
    push_next(frame, items, resp)
}

/// Takes a key and a value and sets them; what cannot be a key is left out.
fn set_pair(frame: &mut Frame<'_>) {
    let is_key = match frame.kind(-2) {
        Kind::Nil => false,
        Kind::Number => !frame.number(-2).is_some_and(f64::is_nan),
        _ => true,
    };
    if is_key { frame.raw_set(-3) } else { frame.pop(2) }
}

/// Where a script's result goes.
pub(crate) struct ScriptResult<'s, 'o> {
    /// The client's reply.
    pub sink: &'s mut ReplySink<'o>,
    /// What `setresp` has chosen.
    pub resp: u8,
    /// Where errors are counted.
    pub stats: &'s WorkerStats,
}

impl Out for ScriptResult<'_, '_> {
    fn resp(&self) -> u8 {
        self.resp
    }
    fn bulk(&mut self, bytes: &[u8]) {
        self.sink.bulk(bytes);
    }
    fn status(&mut self, text: &[u8]) {
        self.sink.simple(&String::from_utf8_lossy(text));
    }
    fn error(&mut self, line: &[u8], counted: bool) {
        let error = error_of(line);
        if !counted {
            self.stats.error(&error);
        }
        self.sink.error(&error);
    }
    fn int(&mut self, value: i64) {
        self.sink.int(value);
    }
    fn double(&mut self, value: f64) {
        self.sink.double(value);
    }
    fn boolean(&mut self, value: bool) {
        self.sink.bool(value);
    }
    fn big_number(&mut self, digits: &[u8]) {
        self.sink.big_number(&String::from_utf8_lossy(digits));
    }
    fn verbatim(&mut self, format: &[u8], text: &[u8]) {
        let mut short = *b"   ";
        short.iter_mut().zip(format).for_each(|(to, from)| *to = *from);
        self.sink.verbatim(short, text);
    }
    fn null(&mut self) {
        self.sink.null();
    }
    fn array(&mut self, len: usize) {
        self.sink.array(len);
    }
    fn map(&mut self, len: usize) {
        self.sink.map(len);
    }
    fn set(&mut self, len: usize) {
        self.sink.set(len);
    }
}

/// The error of a line, its code first. Where a script has written it on several lines it is one: as the reply has it,
/// and so that what is counted by its code forges no line of INFO.
#[must_use]
pub(crate) fn error_of(line: &[u8]) -> Error {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches(['\r', '\n']).replace(['\r', '\n'], " ");
    match line.split_once(' ') {
        Some(("ERR", text)) => Error::err(text.to_owned()),
        Some((prefix, text)) => match ErrorCode::ALL.iter().find(|code| code.prefix() == prefix) {
            Some(code) => Error::new(*code, text.to_owned()),
            None if text.is_empty() => Error::with_prefix(&line, ""),
            None => Error::with_prefix(prefix, text.to_owned()),
        },
        None => Error::with_prefix(&line, ""),
    }
}
