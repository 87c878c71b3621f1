//! Owns: `cjson`: its settings and encoding. Does not own: decoding (`super::json_decode`).

use crate::frame::{Answer, Frame, Kind, PIECE_BYTES, Raise, c_function};

/// What `cjson` was told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth: i64,
    pub(super) decode_depth: i64,
    encode_invalid: Invalid,
    pub(super) decode_invalid: bool,
    precision: i64,
    keep_buffer: bool,
}

/// What becomes of a number that JSON has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Invalid {
    Refused,
    Written,
    Null,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth: 1000,
            decode_depth: 1000,
            encode_invalid: Invalid::Refused,
            decode_invalid: true,
            precision: 14,
            keep_buffer: true,
        }
    }
}

/// Tables nested in what is encoded or decoded, whatever the settings say: each takes some of the stack.
pub(super) const DEPTH_MAX: i64 = 1000;

/// Pushes the library, with settings of its own, which each of its functions keeps.
pub(super) fn open(frame: &mut Frame<'_>) {
    frame.push_table(0, 14);
    let functions = [
        ("encode", c_function!(encode)),
        ("decode", c_function!(super::json_decode::decode)),
        ("encode_sparse_array", c_function!(encode_sparse_array)),
        ("encode_max_depth", c_function!(encode_max_depth)),
        ("decode_max_depth", c_function!(decode_max_depth)),
        ("encode_number_precision", c_function!(encode_number_precision)),
        ("encode_keep_buffer", c_function!(encode_keep_buffer)),
        ("encode_invalid_numbers", c_function!(encode_invalid_numbers)),
        ("decode_invalid_numbers", c_function!(decode_invalid_numbers)),
        ("new", c_function!(new)),
    ];
    frame.push_object(Settings::default());
    for (name, function) in functions {
        frame.push_copy(-1);
        frame.push_function(function, 1);
        frame.set_field(-3, name);
    }
    frame.pop_any(1);
    frame.push_null();
    frame.set_field(-2, "null");
    for (name, value) in [("_NAME", "cjson"), ("_VERSION", "2.1.0")] {
        frame.push_bytes(value.as_bytes());
        frame.set_field(-2, name);
    }
}

/// The settings of the library whose function runs.
pub(super) fn settings<'s>(frame: &'s mut Frame<'_>) -> &'s mut Settings {
    frame.kept_object(1)
}

fn new(frame: &mut Frame<'_>) -> Answer {
    open(frame);
    Ok(1)
}

/// What is missing of so many arguments is nil: what is pushed meanwhile stands behind them.
fn at_most(frame: &mut Frame<'_>, args: usize) -> Result<(), Raise> {
    if frame.args() > args {
        return Err(frame.arg_error(args + 1, "found too many arguments"));
    }
    for _ in frame.args()..args {
        frame.push_nil();
    }
    Ok(())
}
fn is_given(frame: &Frame<'_>, arg: usize) -> bool {
    !matches!(frame.kind(arg as i32), Kind::None | Kind::Nil)
}

/// Changes an integer if one is given, and pushes it.
fn integer(
    frame: &mut Frame<'_>,
    arg: usize,
    (min, max): (i64, i64),
    of: impl Fn(&mut Settings) -> &mut i64,
) -> Result<(), Raise> {
    if is_given(frame, arg) {
        let value = frame.arg_int(arg, None)?.into();
        if !(min..=max).contains(&value) {
            return Err(frame.arg_error(1, format!("expected integer between {min} and {max}")));
        }
        *of(settings(frame)) = value;
    }
    let value = *of(settings(frame));
    frame.push_number(value as f64);
    Ok(())
}
/// The number of the word that is given, or of a boolean.
fn word(frame: &mut Frame<'_>, arg: usize, words: &[&str]) -> Result<Option<usize>, Raise> {
    if !is_given(frame, arg) {
        return Ok(None);
    }
    if frame.kind(arg as i32) == Kind::Boolean {
        return Ok(Some(usize::from(frame.truth(arg as i32))));
    }
    frame.arg_option(arg, words).map(Some)
}
fn switch(frame: &mut Frame<'_>, arg: usize, of: impl Fn(&mut Settings) -> &mut bool) -> Result<(), Raise> {
    if let Some(on) = word(frame, arg, &["off", "on"])? {
        *of(settings(frame)) = on == 1;
    }
    let value = *of(settings(frame));
    frame.push_boolean(value);
    Ok(())
}

const INT_MAX: i64 = i32::MAX as i64;

fn encode_sparse_array(frame: &mut Frame<'_>) -> Answer {
    at_most(frame, 3)?;
    switch(frame, 1, |settings| &mut settings.sparse_convert)?;
    integer(frame, 2, (0, INT_MAX), |settings| &mut settings.sparse_ratio)?;
    integer(frame, 3, (0, INT_MAX), |settings| &mut settings.sparse_safe)?;
    Ok(3)
}
fn encode_max_depth(frame: &mut Frame<'_>) -> Answer {
    at_most(frame, 1)?;
    integer(frame, 1, (1, INT_MAX), |settings| &mut settings.encode_depth)?;
    Ok(1)
}
fn decode_max_depth(frame: &mut Frame<'_>) -> Answer {
    at_most(frame, 1)?;
    integer(frame, 1, (1, INT_MAX), |settings| &mut settings.decode_depth)?;
    Ok(1)
}
fn encode_number_precision(frame: &mut Frame<'_>) -> Answer {
    at_most(frame, 1)?;
    integer(frame, 1, (1, 14), |settings| &mut settings.precision)?;
    Ok(1)
}
fn encode_keep_buffer(frame: &mut Frame<'_>) -> Answer {
    at_most(frame, 1)?;
    switch(frame, 1, |settings| &mut settings.keep_buffer)?;
    Ok(1)
}
fn decode_invalid_numbers(frame: &mut Frame<'_>) -> Answer {
    at_most(frame, 1)?;
    switch(frame, 1, |settings| &mut settings.decode_invalid)?;
    Ok(1)
}
fn encode_invalid_numbers(frame: &mut Frame<'_>) -> Answer {
    at_most(frame, 1)?;
    const ALL: [Invalid; 3] = [Invalid::Refused, Invalid::Written, Invalid::Null];
    if let Some(number) = word(frame, 1, &["off", "on", "null"])? {
        settings(frame).encode_invalid = ALL[number];
    }
    match settings(frame).encode_invalid {
        Invalid::Null => frame.push_bytes(b"null"),
        invalid => frame.push_boolean(invalid == Invalid::Written),
    }
    Ok(1)
}

fn encode(frame: &mut Frame<'_>) -> Answer {
    if frame.args() != 1 {
        return Err(frame.arg_error(1, "expected 1 argument"));
    }
    let mut encoder = Encoder { settings: *settings(frame), out: Vec::with_capacity(256) };
    encoder.value(frame, 0)?;
    frame.fits(encoder.out.len())?;
    frame.push_bytes(&encoder.out);
    Ok(1)
}

struct Encoder {
    settings: Settings,
    out: Vec<u8>,
}

impl Encoder {
    /// Appends the value on top, which stays.
    fn value(&mut self, frame: &mut Frame<'_>, depth: i64) -> Result<(), Raise> {
        match frame.kind(-1) {
            Kind::String => self.string(frame, -1)?,
            Kind::Number => self.number(frame, -1)?,
            Kind::Boolean => self.out.extend_from_slice(if frame.truth(-1) { b"true" } else { b"false" }),
            Kind::Table => {
                let depth = depth + 1;
                if depth > self.settings.encode_depth.min(DEPTH_MAX) || frame.reserve(4).is_err() {
                    return Err(frame.error(format!("Cannot serialise, excessive nesting ({depth})")));
                }
                match self.array_len(frame)? {
                    Some(len @ 1..) => self.array(frame, len, depth)?,
                    _ => self.object(frame, depth)?,
                }
            }
            Kind::Nil => self.out.extend_from_slice(b"null"),
            Kind::Pointer if frame.address(-1).is_null() => self.out.extend_from_slice(b"null"),
            _ => return Err(refuse(frame, -1, "type not supported")),
        }
        Ok(())
    }

    /// Elements of the table on top as an array; nothing where it is an object.
    fn array_len(&mut self, frame: &mut Frame<'_>) -> Result<Option<usize>, Raise> {
        let (mut max, mut items) = (0_i64, 0_i64);
        frame.push_nil();
        while frame.next_unchanged(-2) {
            frame.step(1)?;
            let key = if frame.kind(-2) == Kind::Number { frame.number(-2) } else { None };
            let index = key.filter(|key| key.floor() == *key && *key >= 1.0);
            let Some(index) = index else {
                frame.pop_any(2);
                return Ok(None);
            };
            // A number that is no int becomes the smallest one where C casts it.
            if index > max as f64 {
                max = if index > INT_MAX as f64 { i64::from(i32::MIN) } else { index as i64 };
            }
            items += 1;
            frame.pop_any(1);
        }
        let Settings { sparse_ratio, sparse_safe, sparse_convert, .. } = self.settings;
        if sparse_ratio > 0 && max > items.saturating_mul(sparse_ratio) && max > sparse_safe {
            if !sparse_convert {
                return Err(refuse(frame, -1, "excessively sparse array"));
            }
            return Ok(None);
        }
        Ok(usize::try_from(max).ok())
    }
    fn array(&mut self, frame: &mut Frame<'_>, len: usize, depth: i64) -> Result<(), Raise> {
        self.out.push(b'[');
        for index in 1..=len {
            self.grows(frame)?;
            if index > 1 {
                self.out.push(b',');
            }
            frame.raw_get_at(-1, index);
            self.value(frame, depth)?;
            frame.pop_any(1);
        }
        self.out.push(b']');
        Ok(())
    }
    fn object(&mut self, frame: &mut Frame<'_>, depth: i64) -> Result<(), Raise> {
        self.out.push(b'{');
        let empty = self.out.len();
        frame.push_nil();
        while frame.next_unchanged(-2) {
            self.grows(frame)?;
            if self.out.len() > empty {
                self.out.push(b',');
            }
            match frame.kind(-2) {
                Kind::Number => {
                    self.out.push(b'"');
                    self.number(frame, -2)?;
                    self.out.extend_from_slice(b"\":");
                }
                Kind::String => {
                    self.string(frame, -2)?;
                    self.out.push(b':');
                }
                _ => return Err(refuse(frame, -2, "table key must be a number or string")),
            }
            self.value(frame, depth)?;
            frame.pop_any(1);
        }
        self.out.push(b'}');
        Ok(())
    }
    fn grows(&self, frame: &mut Frame<'_>) -> Result<(), Raise> {
        frame.step(1)?;
        if self.out.len() > GROWN_BYTES { frame.fits(self.out.len()) } else { Ok(()) }
    }

    fn string(&mut self, frame: &mut Frame<'_>, at: i32) -> Result<(), Raise> {
        let bytes = frame.bytes(at).unwrap_or_default();
        self.out.reserve(bytes.len() + 2);
        self.out.push(b'"');
        let len = bytes.len();
        if len > PIECE_BYTES {
            return self.long_string(frame, at);
        }
        let mut rest = bytes;
        while let Some(place) = rest.iter().position(|&byte| ESCAPED[usize::from(byte)]) {
            self.out.extend_from_slice(&rest[..place]);
            escape(&mut self.out, rest[place]);
            rest = &rest[place + 1..];
        }
        self.out.extend_from_slice(rest);
        self.out.push(b'"');
        frame.step_bytes(len)
    }
    /// A string that is written in pieces, behind its first quote.
    #[cold]
    fn long_string(&mut self, frame: &mut Frame<'_>, at: i32) -> Result<(), Raise> {
        let mut from = 0;
        while from < frame.raw_len(at) {
            let bytes = frame.bytes(at).unwrap_or_default();
            let piece = &bytes[from..bytes.len().min(from + PIECE_BYTES)];
            from += piece.len();
            for &byte in piece {
                if ESCAPED[usize::from(byte)] { escape(&mut self.out, byte) } else { self.out.push(byte) }
            }
            frame.step_bytes(PIECE_BYTES)?;
            frame.fits(self.out.len())?;
        }
        self.out.push(b'"');
        Ok(())
    }
    fn number(&mut self, frame: &mut Frame<'_>, at: i32) -> Result<(), Raise> {
        let number = frame.number(at).unwrap_or_default();
        if !number.is_finite() {
            match self.settings.encode_invalid {
                Invalid::Refused => return Err(refuse(frame, at, "must not be NaN or Inf")),
                Invalid::Null => self.out.extend_from_slice(b"null"),
                Invalid::Written if number.is_nan() => self.out.extend_from_slice(b"nan"),
                Invalid::Written => self.out.extend_from_slice(if number > 0.0 { b"inf" } else { b"-inf" }),
            }
            return Ok(());
        }
        push_general(&mut self.out, number, self.settings.precision as usize);
        Ok(())
    }
}

/// Bytes of a result from which on each further piece is asked for.
const GROWN_BYTES: usize = 64 << 10;

fn refuse(frame: &mut Frame<'_>, at: i32, why: &str) -> Raise {
    let kind = frame.kind(at).name();
    frame.error(format!("Cannot serialise {kind}: {why}"))
}

/// Bytes that are written as an escape.
static ESCAPED: [bool; 256] = {
    let mut all = [false; 256];
    let mut at = 0;
    while at < 32 {
        all[at] = true;
        at += 1;
    }
    all[b'"' as usize] = true;
    all[b'\\' as usize] = true;
    all[b'/' as usize] = true;
    all[127] = true;
    all
};

fn escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' | b'/' => byte,
        8 => b'b',
        9 => b't',
        10 => b'n',
        12 => b'f',
        13 => b'r',
        _ => return out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends a number as `%.*g` of C has it.
pub(super) fn push_general(out: &mut Vec<u8>, number: f64, precision: usize) {
    if number == number.trunc() && number.abs() < 1e14 && precision >= 14 {
        if number == 0.0 && number.is_sign_negative() {
            out.push(b'-');
        }
        return weft_protocol::number::push_int(out, number as i64);
    }
    let text = format!("{number:.*e}", precision.max(1) - 1);
    let Some((mantissa, exponent)) = text.split_once('e') else { return };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        out.extend_from_slice(without_zeros(mantissa).as_bytes());
        let sign = if exponent < 0 { '-' } else { '+' };
        return out.extend_from_slice(format!("e{sign}{:02}", exponent.unsigned_abs()).as_bytes());
    }
    let places = usize::try_from(precision as i32 - 1 - exponent).unwrap_or(0);
    out.extend_from_slice(without_zeros(&format!("{number:.places$}")).as_bytes());
}
fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}
