//! Owns: `cmsgpack`: values as MessagePack and back. Does not own: anything of a script.

use crate::frame::{Answer, Frame, Kind, Raise, c_function};
use crate::libs::set_functions;

/// Tables nested in what is packed: deeper ones are nil.
const PACK_DEPTH_MAX: usize = 16;
/// Tables nested in what is unpacked; deeper ones are an error.
const UNPACK_DEPTH_MAX: usize = 1000;

pub(super) fn open(frame: &mut Frame<'_>) {
    frame.push_table(0, 8);
    let functions = [
        ("pack", c_function!(pack)),
        ("unpack", c_function!(unpack)),
        ("unpack_one", c_function!(unpack_one)),
        ("unpack_limit", c_function!(unpack_limit)),
    ];
    set_functions(frame, &functions);
    let texts = [
        ("_NAME", "cmsgpack"),
        ("_VERSION", "lua-cmsgpack 0.4.0"),
        ("_COPYRIGHT", "Copyright (C) 2012, Redis Ltd."),
        ("_DESCRIPTION", "MessagePack C implementation for Lua"),
    ];
    for (name, value) in texts {
        frame.push_bytes(value.as_bytes());
        frame.set_field(-2, name);
    }
}

fn pack(frame: &mut Frame<'_>) -> Answer {
    if frame.args() == 0 {
        return Err(frame.arg_error(0, "MessagePack pack needs input."));
    }
    let mut out = Vec::new();
    for arg in 1..=frame.args() {
        frame.push_copy(arg as i32);
        pack_value(frame, &mut out, 0)?;
        frame.pop(1);
    }
    frame.fits(out.len())?;
    frame.push_bytes(&out);
    Ok(1)
}

/// Appends the value on top, which stays.
fn pack_value(frame: &mut Frame<'_>, out: &mut Vec<u8>, depth: usize) -> Result<(), Raise> {
    frame.step(1)?;
    if out.len() > GROWN_BYTES {
        frame.fits(out.len())?;
    }
    match frame.kind(-1) {
        Kind::String => {
            let bytes = frame.bytes(-1).unwrap_or_default();
            match bytes.len() {
                len @ 0..=31 => out.push(0xA0 | len as u8),
                len @ ..=0xFF => out.extend_from_slice(&[0xD9, len as u8]),
                len => push_len(out, len, 0xDA, 0xDB),
            }
            out.extend_from_slice(bytes);
            let len = bytes.len();
            return frame.step_bytes(len);
        }
        Kind::Boolean => out.push(if frame.truth(-1) { 0xC3 } else { 0xC2 }),
        Kind::Number => pack_number(out, frame.number(-1).unwrap_or_default()),
        Kind::Table if depth < PACK_DEPTH_MAX => return pack_table(frame, out, depth),
        _ => out.push(0xC0),
    }
    Ok(())
}

/// Bytes of a result from which on each further piece is asked for.
const GROWN_BYTES: usize = 64 << 10;

fn push_len(out: &mut Vec<u8>, len: usize, short: u8, long: u8) {
    match u16::try_from(len) {
        Ok(len) => {
            out.push(short);
            out.extend_from_slice(&len.to_be_bytes());
        }
        Err(_) => {
            out.push(long);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

fn pack_number(out: &mut Vec<u8>, number: f64) {
    // As C casts it: what does not fit is the least integer, which is not the same number.
    let integer = if (-9.223_372_036_854_775e18..9.223_372_036_854_775e18).contains(&number) {
        number as i64
    } else {
        i64::MIN
    };
    if integer as f64 == number {
        return pack_integer(out, integer);
    }
    let short = number as f32;
    if f64::from(short) == number {
        out.push(0xCA);
        out.extend_from_slice(&short.to_be_bytes());
    } else {
        out.push(0xCB);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn pack_integer(out: &mut Vec<u8>, value: i64) {
    let bytes = value.to_be_bytes();
    let (tag, from) = match value {
        -32..=127 => return out.push(value as u8),
        128..=0xFF => (0xCC, 7),
        0x100..=0xFFFF => (0xCD, 6),
        0x1_0000..=0xFFFF_FFFF => (0xCE, 4),
        0x1_0000_0000.. => (0xCF, 0),
        -128..=-33 => (0xD0, 7),
        -0x8000..=-129 => (0xD1, 6),
        -0x8000_0000..=-0x8001 => (0xD2, 4),
        _ => (0xD3, 0),
    };
    out.push(tag);
    out.extend_from_slice(&bytes[from..]);
}

fn pack_table(frame: &mut Frame<'_>, out: &mut Vec<u8>, depth: usize) -> Result<(), Raise> {
    frame.reserve(5)?;
    let (mut count, mut max, mut is_array) = (0_usize, 0.0_f64, true);
    frame.push_nil();
    while frame.next(-2) == Some(true) {
        frame.step(1)?;
        frame.pop_any(1);
        let key = if frame.kind(-1) == Kind::Number { frame.number(-1) } else { None };
        let index = key.filter(|key| *key > 0.0 && key.trunc() == *key && *key <= f64::from(i32::MAX));
        is_array &= index.is_some();
        max = max.max(index.unwrap_or(0.0));
        count += 1;
    }
    if is_array && max == count as f64 {
        match count {
            0..=15 => out.push(0x90 | count as u8),
            _ => push_len(out, count, 0xDC, 0xDD),
        }
        for index in 1..=count {
            frame.raw_get_at(-1, index);
            pack_value(frame, out, depth + 1)?;
            frame.pop_any(1);
        }
        return Ok(());
    }
    match count {
        0..=15 => out.push(0x80 | count as u8),
        _ => push_len(out, count, 0xDE, 0xDF),
    }
    frame.push_nil();
    while frame.next(-2) == Some(true) {
        frame.step(1)?;
        frame.push_copy(-2);
        pack_value(frame, out, depth + 1)?;
        frame.pop_any(1);
        pack_value(frame, out, depth + 1)?;
        frame.pop_any(1);
    }
    Ok(())
}

fn unpack(frame: &mut Frame<'_>) -> Answer {
    run(frame, 0, 0)
}
fn unpack_one(frame: &mut Frame<'_>) -> Answer {
    let offset = frame.arg_integer_or(2, 0)?;
    run(frame, 1, offset)
}
fn unpack_limit(frame: &mut Frame<'_>) -> Answer {
    let limit = frame.arg_integer(2)?;
    let offset = frame.arg_integer_or(3, 0)?;
    run(frame, limit, offset)
}

fn run(frame: &mut Frame<'_>, limit: i64, offset: i64) -> Answer {
    let text = frame.arg_bytes(1)?;
    let (Ok(most), Ok(from)) = (usize::try_from(limit), usize::try_from(offset)) else {
        // C's text of them has their lowest bits.
        let (offset, len) = (offset as i32, text.len() as i32);
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(frame.error(&text));
    };
    if from > text.len() {
        let (from, len) = (from as i32, text.len() as i32);
        return Err(frame.error(format!("Start offset {from} greater than input length {len}.")));
    }
    let all = limit == 0 && offset == 0;
    let mut rest = &text[from..];
    let before = frame.top();
    if !all {
        frame.push_nil();
    }
    let mut count = 0;
    while !rest.is_empty() && (all || count < most) {
        match unpack_value(frame, &mut rest, 0) {
            Ok(()) => count += 1,
            Err(Fault::Missing) => return Err(frame.error("Missing bytes in input.")),
            Err(Fault::Format) => return Err(frame.error("Bad data format in input.")),
            Err(Fault::Raised(raise)) => return Err(raise),
        }
    }
    if all {
        return Ok(count);
    }
    frame.push_number(if rest.is_empty() { -1.0 } else { (text.len() - rest.len()) as f64 });
    frame.replace(before as i32 + 1);
    Ok(count + 1)
}

enum Fault {
    Missing,
    Format,
    Raised(Raise),
}

impl From<Raise> for Fault {
    fn from(raise: Raise) -> Self {
        Self::Raised(raise)
    }
}

fn take<'t>(rest: &mut &'t [u8], len: usize) -> Result<&'t [u8], Fault> {
    let (taken, left) = rest.split_at_checked(len).ok_or(Fault::Missing)?;
    *rest = left;
    Ok(taken)
}
fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Fault> {
    take(rest, N)?.try_into().map_err(|_| Fault::Missing)
}

/// Pushes the value that stands first.
fn unpack_value(frame: &mut Frame<'_>, rest: &mut &[u8], depth: usize) -> Result<(), Fault> {
    frame.step(1)?;
    if frame.reserve(3).is_err() {
        frame.pop_any(1);
        let text = "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";
        return Err(frame.error(text).into());
    }
    let [tag] = array(rest)?;
    let short = usize::from(tag & 0x0F);
    let bulk = |frame: &mut Frame<'_>, rest: &mut &[u8], len: usize| {
        frame.step_bytes(len.min(rest.len()))?;
        frame.push_bytes(take(rest, len)?);
        Ok(())
    };
    let number = |frame: &mut Frame<'_>, number: f64| {
        frame.push_number(number);
        Ok(())
    };
    match tag {
        0x00..=0x7F => number(frame, f64::from(tag)),
        0xE0..=0xFF => number(frame, f64::from(tag.cast_signed())),
        0x80..=0x8F => unpack_map(frame, rest, short, depth),
        0x90..=0x9F => unpack_array(frame, rest, short, depth),
        0xA0..=0xBF => bulk(frame, rest, usize::from(tag & 0x1F)),
        0xC0 => {
            frame.push_nil();
            Ok(())
        }
        0xC2 | 0xC3 => {
            frame.push_boolean(tag == 0xC3);
            Ok(())
        }
        0xCA => number(frame, f64::from(f32::from_be_bytes(array(rest)?))),
        0xCB => number(frame, f64::from_be_bytes(array(rest)?)),
        0xCC => number(frame, f64::from(u8::from_be_bytes(array(rest)?))),
        0xCD => number(frame, f64::from(u16::from_be_bytes(array(rest)?))),
        0xCE => number(frame, f64::from(u32::from_be_bytes(array(rest)?))),
        // As Lua's integers are: those from 2^63 on are negative.
        0xCF => number(frame, i64::from_be_bytes(array(rest)?) as f64),
        0xD0 => number(frame, f64::from(i8::from_be_bytes(array(rest)?))),
        0xD1 => number(frame, f64::from(i16::from_be_bytes(array(rest)?))),
        0xD2 => number(frame, f64::from(i32::from_be_bytes(array(rest)?))),
        0xD3 => number(frame, i64::from_be_bytes(array(rest)?) as f64),
        0xD9..=0xDB => {
            let len = length(rest, tag - 0xD9)?;
            bulk(frame, rest, len)
        }
        0xDC | 0xDD => {
            let len = length(rest, tag - 0xDB)?;
            unpack_array(frame, rest, len, depth)
        }
        0xDE | 0xDF => {
            let len = length(rest, tag - 0xDD)?;
            unpack_map(frame, rest, len, depth)
        }
        0xC1 | 0xC4..=0xC9 | 0xD4..=0xD8 => Err(Fault::Format),
    }
}
/// A length of 1, 2 or 4 bytes.
fn length(rest: &mut &[u8], size: u8) -> Result<usize, Fault> {
    Ok(match size {
        0 => usize::from(u8::from_be_bytes(array(rest)?)),
        1 => usize::from(u16::from_be_bytes(array(rest)?)),
        _ => u32::from_be_bytes(array(rest)?) as usize,
    })
}
fn nested(frame: &mut Frame<'_>, depth: usize) -> Result<usize, Fault> {
    if depth == UNPACK_DEPTH_MAX {
        return Err(frame.error("Found too many nested data structures").into());
    }
    Ok(depth + 1)
}
fn unpack_array(frame: &mut Frame<'_>, rest: &mut &[u8], len: usize, depth: usize) -> Result<(), Fault> {
    let depth = nested(frame, depth)?;
    frame.push_table(0, 0);
    for index in 1..=len {
        unpack_value(frame, rest, depth)?;
        frame.raw_set_at(-2, index);
    }
    Ok(())
}
fn unpack_map(frame: &mut Frame<'_>, rest: &mut &[u8], len: usize, depth: usize) -> Result<(), Fault> {
    let depth = nested(frame, depth)?;
    frame.push_table(0, 0);
    for _ in 0..len {
        unpack_value(frame, rest, depth)?;
        unpack_value(frame, rest, depth)?;
        super::base::check_key(frame, -2)?;
        frame.raw_set(-3);
    }
    Ok(())
}
