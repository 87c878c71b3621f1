//! Owns: what a script's result becomes as a reply: Lua's values, and the tables that stand for what Lua has not. Does
//! not own: how it is written (`crate::Out`).
//!
//! | Lua | reply |
//! |---|---|
//! | string, number | bulk, integer (what is behind the point is cut off) |
//! | true, false | 1 and null; with `setresp(3)` booleans |
//! | `{ok=…}`, `{err=…}`, `{double=…}`, `{big_number=…}` | status, error, double, big number |
//! | `{verbatim_string={format=…, string=…}}` | verbatim |
//! | `{map={…}}`, `{set={…}}` | map, set |
//! | another table | an array up to the first nil |
//! | anything else | null |

use crate::frame::{Frame, Kind, Raise};
use crate::host::Out;
use crate::vm::RESULT_DEPTH_MAX;

/// Writes the value on top and takes it.
pub(crate) fn write(frame: &mut Frame<'_>, out: &mut dyn Out, depth: usize) {
    if depth > RESULT_DEPTH_MAX || frame.reserve(6).is_err() {
        out.error(b"ERR reached lua stack limit", false);
        return frame.pop_any(1);
    }
    match frame.kind(-1) {
        Kind::String => out.bulk(frame.bytes(-1).unwrap_or_default()),
        Kind::Boolean => match (frame.truth(-1), out.resp()) {
            (value, 3) => out.boolean(value),
            (true, _) => out.int(1),
            (false, _) => out.null(),
        },
        Kind::Number => out.int(truncated(frame.number(-1).unwrap_or_default())),
        Kind::Table => table(frame, out, depth),
        _ => out.null(),
    }
    frame.pop_any(1);
}

/// Goes through the value on top as `write` will, and refuses what takes more memory than scripts may have: tables that
/// stand in each other many times, texts that many elements are.
pub(crate) fn weigh(frame: &mut Frame<'_>, depth: usize, bytes: &mut usize) -> Result<(), Raise> {
    *bytes += VALUE_BYTES;
    match frame.kind(-1) {
        Kind::String => *bytes += frame.raw_len(-1),
        Kind::Table if depth <= RESULT_DEPTH_MAX && frame.reserve(6).is_ok() => {
            frame.step(1)?;
            if *bytes > WEIGHED_BYTES {
                frame.fits(*bytes)?;
            }
            let name = ["map", "set"].into_iter().find(|name| field(frame, name, Kind::Table));
            if name.is_some() {
                frame.push_nil();
                while frame.next_unchanged(-2) {
                    frame.step(1)?;
                    weigh(frame, depth + 1, bytes)?;
                    frame.pop_any(1);
                    weigh(frame, depth + 1, bytes)?;
                }
                frame.pop_any(1);
                return Ok(());
            }
            for index in 1.. {
                frame.raw_get_at(-1, index);
                let kind = frame.kind(-1);
                if kind != Kind::Nil {
                    frame.step(1)?;
                    weigh(frame, depth + 1, bytes)?;
                }
                frame.pop_any(1);
                if kind == Kind::Nil {
                    break;
                }
            }
        }
        _ => {}
    }
    if *bytes > WEIGHED_BYTES { frame.fits(*bytes) } else { Ok(()) }
}
/// What each value of a result is taken for, beside its text.
const VALUE_BYTES: usize = 8;
/// Bytes of a result from which on it is asked whether there is room for it.
const WEIGHED_BYTES: usize = 1 << 20;

/// As C casts a double: what does not fit is the least integer.
fn truncated(number: f64) -> i64 {
    if number.is_nan() || !(-9.3e18..9.223_372_036_854_775e18).contains(&number) {
        return i64::MIN;
    }
    number as i64
}

fn table(frame: &mut Frame<'_>, out: &mut dyn Out, depth: usize) {
    if field(frame, "err", Kind::String) {
        let line = until_zero(frame.bytes(-1).unwrap_or_default()).to_vec();
        frame.pop_any(1);
        frame.field(-1, super::server::COUNTED);
        let counted = frame.truth(-1);
        frame.pop_any(1);
        return out.error(&line, counted);
    }
    if field(frame, "ok", Kind::String) {
        out.status(&one_line(frame.bytes(-1).unwrap_or_default()));
    } else if field(frame, "double", Kind::Number) {
        out.double(frame.number(-1).unwrap_or_default());
    } else if field(frame, "big_number", Kind::String) {
        out.big_number(&one_line(frame.bytes(-1).unwrap_or_default()));
    } else if field(frame, "verbatim_string", Kind::Table) {
        if field(frame, "format", Kind::String) {
            frame.field(-2, "string");
            if frame.kind(-1) == Kind::String {
                let format = frame.bytes(-2).unwrap_or_default();
                out.verbatim(format, frame.bytes(-1).unwrap_or_default());
                return frame.pop_any(3);
            }
            frame.pop_any(2);
        }
        frame.pop_any(1);
        return aggregate(frame, out, depth);
    } else {
        return aggregate(frame, out, depth);
    }
    frame.pop_any(1);
}

fn aggregate(frame: &mut Frame<'_>, out: &mut dyn Out, depth: usize) {
    if field(frame, "map", Kind::Table) {
        out.map(count(frame));
        frame.push_nil();
        while frame.next(-2) == Some(true) {
            frame.push_copy(-2);
            write(frame, out, depth + 1);
            write(frame, out, depth + 1);
        }
        return frame.pop_any(1);
    }
    if field(frame, "set", Kind::Table) {
        out.set(count(frame));
        frame.push_nil();
        while frame.next(-2) == Some(true) {
            frame.pop_any(1);
            frame.push_copy(-1);
            write(frame, out, depth + 1);
        }
        return frame.pop_any(1);
    }
    let mut len = 0;
    loop {
        frame.raw_get_at(-1, len + 1);
        let is_end = frame.kind(-1) == Kind::Nil;
        frame.pop_any(1);
        if is_end {
            break;
        }
        len += 1;
    }
    out.array(len);
    for index in 1..=len {
        frame.raw_get_at(-1, index);
        write(frame, out, depth + 1);
    }
}

/// Pushes a field of this kind of the table on top; nothing where there is none.
fn field(frame: &mut Frame<'_>, name: &str, kind: Kind) -> bool {
    frame.field(-1, name);
    let found = frame.kind(-1) == kind;
    if !found {
        frame.pop_any(1);
    }
    found
}
fn count(frame: &mut Frame<'_>) -> usize {
    let mut count = 0;
    frame.push_nil();
    while frame.next(-2) == Some(true) {
        frame.pop_any(1);
        count += 1;
    }
    count
}
/// What C takes for a text.
pub(crate) fn until_zero(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}
fn one_line(text: &[u8]) -> Vec<u8> {
    until_zero(text).iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect()
}
