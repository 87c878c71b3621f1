//! Owns: `cjson.decode`. Does not own: its settings (`super::json`).
//!
//! A value is one of JSON's, or one of those that `strtod` reads beside them as long as `decode_invalid_numbers` is on:
//! leading zeros, hexadecimal digits, `nan` and `inf`.

use super::json::DEPTH_MAX;
use crate::frame::{Answer, Frame, PIECE_BYTES, Raise};

pub(super) fn decode(frame: &mut Frame<'_>) -> Answer {
    if frame.args() != 1 {
        return Err(frame.arg_error(1, "expected 1 argument"));
    }
    let text = frame.arg_bytes(1)?;
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(frame.error("JSON parser does not support UTF-16 or UTF-32"));
    }
    frame.fits(text.len())?;
    frame.step_bytes(text.len())?;
    let settings = *super::json::settings(frame);
    let mut decoder = Decoder {
        text,
        at: 0,
        depth: 0,
        depth_max: settings.decode_depth.min(DEPTH_MAX),
        invalid: settings.decode_invalid,
        unescaped: Vec::new(),
    };
    let token = decoder.token(frame);
    decoder.value(frame, token)?;
    match decoder.token(frame) {
        Token { kind: What::End, .. } => Ok(1),
        token => Err(decoder.expected(frame, "the end", &token)),
    }
}

/// Whole numbers of so many digits are doubles, each its own.
const EXACT_DIGITS: usize = 15;

struct Decoder<'t> {
    text: &'t [u8],
    at: usize,
    depth: i64,
    depth_max: i64,
    invalid: bool,
    /// A string that had escapes.
    unescaped: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// From and to; the text without escapes stands in `unescaped` where there were some.
    String(usize, usize, bool),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

#[derive(Clone, Copy, Debug)]
struct Token {
    kind: What,
    /// Where it begins; of an error, where it is.
    at: usize,
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String(..) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Error(what) => what,
        }
    }
}

impl Decoder<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }
    fn expected(&self, frame: &mut Frame<'_>, what: &str, token: &Token) -> Raise {
        let found = token.kind.name();
        frame.error(format!("Expected {what} but found {found} at character {}", token.at + 1))
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }
    /// Takes a sign where it comes next. Where it does not, the next token says what is there.
    #[inline]
    fn takes(&mut self, sign: u8) -> bool {
        self.skip_blanks();
        let comes = self.byte(0) == sign;
        self.at += usize::from(comes);
        comes
    }
    fn token(&mut self, frame: &mut Frame<'_>) -> Token {
        self.skip_blanks();
        let at = self.at;
        let single = match self.byte(0) {
            b'{' => What::ObjectBegin,
            b'}' => What::ObjectEnd,
            b'[' => What::ArrayBegin,
            b']' => What::ArrayEnd,
            b':' => What::Colon,
            b',' => What::Comma,
            0 => return Token { kind: What::End, at },
            b'"' => return self.string(frame, at),
            b'-' | b'0'..=b'9' => {
                if !self.invalid && self.is_invalid_number() {
                    return Token { kind: What::Error("invalid number"), at };
                }
                return self.number(at);
            }
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+' => return self.word(at),
            _ => return Token { kind: What::Error("invalid token"), at },
        };
        self.at += 1;
        Token { kind: single, at }
    }
    fn word(&mut self, at: usize) -> Token {
        let words =
            [(&b"true"[..], What::Boolean(true)), (b"false", What::Boolean(false)), (b"null", What::Null)];
        for (word, kind) in words {
            if self.text[at..].starts_with(word) {
                self.at += word.len();
                return Token { kind, at };
            }
        }
        if self.invalid && self.is_invalid_number() {
            return self.number(at);
        }
        Token { kind: What::Error("invalid token"), at }
    }
    fn is_invalid_number(&self) -> bool {
        if self.byte(0) == b'+' {
            return true;
        }
        let skip = usize::from(self.byte(0) == b'-');
        let (first, second) = (self.byte(skip), self.byte(skip + 1));
        if first == b'0' {
            return second | 0x20 == b'x' || second.is_ascii_digit();
        }
        let rest = &self.text[(self.at + skip).min(self.text.len())..];
        first > b'9'
            && [&b"inf"[..], b"nan"]
                .iter()
                .any(|word| rest.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(word)))
    }
    fn number(&mut self, at: usize) -> Token {
        match read_number(&self.text[at..]) {
            Some((number, len)) => {
                self.at += len;
                Token { kind: What::Number(number), at }
            }
            None => Token { kind: What::Error("invalid number"), at },
        }
    }

    fn string(&mut self, frame: &mut Frame<'_>, at: usize) -> Token {
        self.at += 1;
        let from = self.at;
        let (mut has_escapes, mut told) = (false, from);
        loop {
            if self.at - told >= PIECE_BYTES {
                // Whoever ends it is asked again before anything comes of the error.
                if frame.step_bytes(self.at - told).is_err() {
                    frame.pop_any(1);
                    return Token { kind: What::Error("unexpected end of string"), at: self.at };
                }
                told = self.at;
            }
            let rest = &self.text[self.at..];
            let piece = &rest[..rest.len().min(PIECE_BYTES)];
            let plain = plain_len(piece);
            if has_escapes {
                self.unescaped.extend_from_slice(&piece[..plain]);
            }
            self.at += plain;
            if plain == PIECE_BYTES {
                continue;
            }
            match self.byte(0) {
                b'"' => break,
                b'\\' => {
                    if !has_escapes {
                        self.unescaped.clear();
                        self.unescaped.extend_from_slice(&self.text[from..self.at]);
                        has_escapes = true;
                    }
                    if let Err(what) = self.escape() {
                        return Token { kind: What::Error(what), at: self.at };
                    }
                }
                _ => return Token { kind: What::Error("unexpected end of string"), at: self.at },
            }
        }
        let to = self.at;
        self.at += 1;
        Token { kind: What::String(from, to, has_escapes), at }
    }
    fn escape(&mut self) -> Result<(), &'static str> {
        let byte = match self.byte(1) {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 8,
            b't' => 9,
            b'n' => 10,
            b'f' => 12,
            b'r' => 13,
            b'u' => return self.unicode().ok_or("invalid unicode escape code"),
            _ => return Err("invalid escape code"),
        };
        self.unescaped.push(byte);
        self.at += 2;
        Ok(())
    }
    fn unicode(&mut self) -> Option<()> {
        let mut point = self.hex(2)?;
        let mut len = 6;
        if point & 0xF800 == 0xD800 {
            if point & 0x400 != 0 || self.byte(6) != b'\\' || self.byte(7) != b'u' {
                return None;
            }
            let low = self.hex(8)?;
            if low & 0xFC00 != 0xDC00 {
                return None;
            }
            point = (((point & 0x3FF) << 10) | (low & 0x3FF)) + 0x10000;
            len = 12;
        }
        let letter = char::from_u32(point)?;
        self.unescaped.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += len;
        Some(())
    }
    fn hex(&self, ahead: usize) -> Option<u32> {
        (0..4).try_fold(0, |value, at| Some(value << 4 | char::from(self.byte(ahead + at)).to_digit(16)?))
    }

    fn push_string(&self, frame: &mut Frame<'_>, from: usize, to: usize, has_escapes: bool) {
        frame.push_bytes(if has_escapes { &self.unescaped } else { &self.text[from..to] });
    }
    /// Pushes the value that begins with a token.
    fn value(&mut self, frame: &mut Frame<'_>, token: Token) -> Result<(), Raise> {
        match token.kind {
            What::String(from, to, has_escapes) => self.push_string(frame, from, to, has_escapes),
            What::Number(number) => frame.push_number(number),
            What::Boolean(value) => frame.push_boolean(value),
            What::Null => frame.push_null(),
            What::ObjectBegin => self.object(frame)?,
            What::ArrayBegin => self.array(frame)?,
            _ => return Err(self.expected(frame, "value", &token)),
        }
        Ok(())
    }
    fn descend(&mut self, frame: &mut Frame<'_>) -> Result<(), Raise> {
        self.depth += 1;
        if self.depth <= self.depth_max && frame.reserve(4).is_ok() {
            return Ok(());
        }
        let text = format!("Found too many nested data structures ({}) at character {}", self.depth, self.at);
        Err(frame.error(&text))
    }
    fn object(&mut self, frame: &mut Frame<'_>) -> Result<(), Raise> {
        self.descend(frame)?;
        frame.push_table(0, 0);
        // Only right behind the brace may there be no key.
        if !self.takes(b'}') {
            loop {
                frame.step(1)?;
                let key = self.token(frame);
                let What::String(from, to, has_escapes) = key.kind else {
                    return Err(self.expected(frame, "object key string", &key));
                };
                self.push_string(frame, from, to, has_escapes);
                if !self.takes(b':') {
                    let found = self.token(frame);
                    return Err(self.expected(frame, "colon", &found));
                }
                let value = self.token(frame);
                self.value(frame, value)?;
                frame.raw_set(-3);
                if self.takes(b',') {
                    continue;
                }
                if self.takes(b'}') {
                    break;
                }
                let found = self.token(frame);
                return Err(self.expected(frame, "comma or object end", &found));
            }
        }
        self.depth -= 1;
        Ok(())
    }
    fn array(&mut self, frame: &mut Frame<'_>) -> Result<(), Raise> {
        self.descend(frame)?;
        frame.push_table(0, 0);
        if !self.takes(b']') {
            for index in 1.. {
                frame.step(1)?;
                let value = self.token(frame);
                self.value(frame, value)?;
                frame.raw_set_at(-2, index);
                if self.takes(b',') {
                    continue;
                }
                if self.takes(b']') {
                    break;
                }
                let found = self.token(frame);
                return Err(self.expected(frame, "comma or array end", &found));
            }
        }
        self.depth -= 1;
        Ok(())
    }
}

/// How much of a string stands as it is: up to its end, an escape, or a zero.
fn plain_len(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    // The lowest bit that is set belongs to the first byte of this kind; above it there may be others by mistake.
    let is = |word: u64, byte: u8| {
        let without = word ^ (ONES * u64::from(byte));
        without.wrapping_sub(ONES) & !without & HIGHS
    };
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let special = is(word, b'"') | is(word, b'\\') | is(word, 0);
        if special != 0 {
            return at * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let plain = rest.iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0));
    words.len() * 8 + plain.unwrap_or(rest.len())
}

/// What `strtod` reads at the beginning of a text, and how long it is.
fn read_number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let negative = text.first() == Some(&b'-');
    let signed = |number: f64| if negative { -number } else { number };
    let rest = &text[sign..];
    let starts = |word: &[u8]| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if starts(b"infinity") {
        return Some((signed(f64::INFINITY), sign + 8));
    }
    if starts(b"inf") {
        return Some((signed(f64::INFINITY), sign + 3));
    }
    if starts(b"nan") {
        return Some((signed(f64::NAN), sign + 3 + nan_payload_len(&rest[3..])));
    }
    let is_hex = |at: usize| rest.get(at).is_some_and(u8::is_ascii_hexdigit);
    if starts(b"0x") && (is_hex(2) || rest.get(2) == Some(&b'.') && is_hex(3)) {
        let (number, len) = read_hex(&rest[2..]);
        return Some((signed(number), sign + 2 + len));
    }
    let digits =
        |from: usize| rest[from.min(rest.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut len = whole;
    if rest.get(len) == Some(&b'.') {
        let behind = digits(len + 1);
        if whole + behind == 0 {
            return None;
        }
        len += 1 + behind;
    }
    if len == 0 {
        return None;
    }
    if matches!(rest.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(len + 1), Some(b'-' | b'+')));
        let exponent = digits(len + 1 + sign);
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    let digits = &rest[..len];
    let number = if len == whole && len <= EXACT_DIGITS {
        digits.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0')) as f64
    } else {
        std::str::from_utf8(digits).ok()?.parse().ok()?
    };
    Some((signed(number), sign + len))
}

/// How long what C allows behind `nan` is: letters, digits and underscores in parentheses.
fn nan_payload_len(text: &[u8]) -> usize {
    let Some((b'(', inner)) = text.split_first() else { return 0 };
    let len = inner.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
    if inner.get(len) == Some(&b')') { len + 2 } else { 0 }
}

/// Hexadecimal digits with a point and a binary exponent.
fn read_hex(text: &[u8]) -> (f64, usize) {
    // Digits that no longer fit only say whether there is anything behind the others: so they are rounded once.
    let (mut digits, mut at, mut scale, mut behind) = (0_u64, 0, 0_i64, false);
    while let Some(&byte) = text.get(at) {
        match char::from(byte).to_digit(16) {
            Some(digit) if digits < 1 << 60 => {
                digits = digits << 4 | u64::from(digit);
                scale -= i64::from(behind) * 4;
            }
            Some(digit) => {
                digits |= u64::from(digit != 0);
                scale += i64::from(!behind) * 4;
            }
            None if byte == b'.' && !behind => behind = true,
            None => break,
        }
        at += 1;
    }
    if matches!(text.get(at), Some(b'p' | b'P')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'-' | b'+')));
        let exponent = text[at + 1 + sign..].iter().take_while(|byte| byte.is_ascii_digit());
        let (len, exponent) = exponent.fold((0, 0_i64), |(len, exponent), byte| {
            (len + 1, exponent.saturating_mul(10).saturating_add(i64::from(byte - b'0')))
        });
        if len > 0 {
            scale = scale.saturating_add(if text[at + 1] == b'-' { -exponent } else { exponent });
            at += 1 + sign + len;
        }
    }
    let scale = scale.clamp(-1200, 1200) as i32;
    (digits as f64 * 2.0_f64.powi(scale / 2) * 2.0_f64.powi(scale - scale / 2), at)
}
