//! Numbers as text: the canonical forms, and nothing else.
//!
//! A number on a text wire is canonical when exactly one spelling is allowed, so that text → number → text gives the
//! same bytes back. Typed RESPB fields carry only numbers whose text is canonical (spec section E.3).

use crate::buffer::Buffer;

/// Longest text of an `i64`: a sign and 19 digits.
pub const INT_TEXT_MAX: usize = 20;

/// Reads a canonical decimal integer: an optional `-`, no `+`, no leading zero, no `-0`.
pub fn parse_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > INT_TEXT_MAX - 1 {
        return None;
    }
    if digits[0] == b'0' && (digits.len() > 1 || negative) {
        return None;
    }
    let mut value: u64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // 19 digits are below 10^19 < 2^64: this cannot wrap.
        value = value * 10 + u64::from(digit);
    }
    match (negative, value) {
        (false, v) if v <= i64::MAX as u64 => Some(v as i64),
        (true, v) if v <= i64::MIN.unsigned_abs() => Some((v as i64).wrapping_neg()),
        _ => None,
    }
}

/// Whether a text is a whole number of any size: an optional sign and digits.
pub fn is_big(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Reads a canonical double: the one text that [`push_double`] writes for it. NaN has none.
pub fn parse_double(text: &[u8]) -> Option<f64> {
    if text.len() > DOUBLE_TEXT_MAX {
        return None;
    }
    let value: f64 = core::str::from_utf8(text).ok()?.parse().ok()?;
    if value.is_nan() {
        return None;
    }
    let mut buffer = [0u8; DOUBLE_TEXT_MAX];
    (double_text(value, &mut buffer) == text).then_some(value)
}

/// Longest text of a double: a sign, 17 digits, a point and an exponent; or a sign and 24 digits.
pub const DOUBLE_TEXT_MAX: usize = 32;

/// Appends an integer.
pub fn push_int(out: &mut impl Buffer, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a double in its canonical text.
pub fn push_double(out: &mut impl Buffer, value: f64) {
    let mut buffer = [0u8; DOUBLE_TEXT_MAX];
    out.extend_from_slice(double_text(value, &mut buffer));
}

/// Whole numbers up to this magnitude (2⁶²) are written out in full.
const WHOLE_MAX: f64 = 4_611_686_018_427_387_904.0;

/// The canonical text of a double (spec section E.3), in the form of Valkey's replies. (Valkey's own digits come from
/// Grisu2 and are, for 2 of 1,000 random doubles, one longer than the shortest that these are.) Whole numbers of at
/// most 2⁶² in magnitude are written as integers. Other values take the shortest digits that read back as the same
/// value: with `n` digits and value `digits · 10^k`, plain when `k ≥ 0` and `k + n − 1 < n + 7`, with a point when `k <
/// 0` and (`k > −7` or `|k + n − 1| < 4`), otherwise as `d.ddde±x`.
pub fn double_text(value: f64, buffer: &mut [u8; DOUBLE_TEXT_MAX]) -> &[u8] {
    if value.is_nan() {
        return b"nan";
    }
    if value.is_infinite() {
        return if value > 0.0 { b"inf" } else { b"-inf" };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { b"-0" } else { b"0" };
    }
    if value.abs() <= WHOLE_MAX && value as i64 as f64 == value {
        let mut formatter = itoa::Buffer::new();
        let text = formatter.format(value as i64).as_bytes();
        buffer[..text.len()].copy_from_slice(text);
        return &buffer[..text.len()];
    }
    let mut digits = [0u8; 20];
    let (count, exponent) = shortest(value.abs(), &mut digits);
    let mut text = Text { buffer, len: 0 };
    if value < 0.0 {
        text.push(b'-');
    }
    layout(&mut text, &digits[..count], exponent);
    let len = text.len;
    &buffer[..len]
}

/// The shortest decimal digits of a positive finite double, without leading or trailing zeros, and the exponent of
/// the last one: the value is `digits · 10^exponent`.
fn shortest(value: f64, digits: &mut [u8; 20]) -> (usize, i32) {
    let mut formatter = ryu::Buffer::new();
    let text = formatter.format_finite(value).as_bytes();
    let (mut count, mut exponent, mut after_point, mut i) = (0usize, 0i32, false, 0usize);
    while i < text.len() {
        match text[i] {
            b'.' => after_point = true,
            b'e' => {
                exponent += parse_int(&text[i + 1..]).unwrap_or(0) as i32;
                break;
            }
            digit => {
                if count > 0 || digit != b'0' {
                    digits[count] = digit;
                    count += 1;
                }
                exponent -= i32::from(after_point);
            }
        }
        i += 1;
    }
    while count > 1 && digits[count - 1] == b'0' {
        count -= 1;
        exponent += 1;
    }
    (count, exponent)
}

struct Text<'a> {
    buffer: &'a mut [u8; DOUBLE_TEXT_MAX],
    len: usize,
}

impl Text<'_> {
    fn push(&mut self, byte: u8) {
        self.buffer[self.len] = byte;
        self.len += 1;
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.buffer[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn zeros(&mut self, count: usize) {
        for _ in 0..count {
            self.push(b'0');
        }
    }
}

fn layout(text: &mut Text<'_>, digits: &[u8], k: i32) {
    let n = digits.len() as i32;
    let leading = k + n - 1;
    if k >= 0 && leading < n + 7 {
        text.extend(digits);
        text.zeros(k as usize);
    } else if k < 0 && (k > -7 || leading.abs() < 4) {
        let point = n + k;
        if point <= 0 {
            text.extend(b"0.");
            text.zeros(point.unsigned_abs() as usize);
            text.extend(digits);
        } else {
            text.extend(&digits[..point as usize]);
            text.push(b'.');
            text.extend(&digits[point as usize..]);
        }
    } else {
        text.push(digits[0]);
        if digits.len() > 1 {
            text.push(b'.');
            text.extend(&digits[1..]);
        }
        text.push(b'e');
        text.push(if leading < 0 { b'-' } else { b'+' });
        text.extend(itoa::Buffer::new().format(leading.unsigned_abs()).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn text(value: f64) -> String {
        let mut buffer = [0u8; DOUBLE_TEXT_MAX];
        String::from_utf8_lossy(double_text(value, &mut buffer)).into_owned()
    }

    #[test]
    fn doubles_are_laid_out_as_valkey_does() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (2.5066282746310007, "2.5066282746310007"),
            (1e7, "10000000"),
            (1e8, "100000000"),
            (4611686018427387904.0, "4611686018427387904"),
            (9223372036854775808.0, "9223372036854776000"),
            (1e20, "1e+20"),
            (1e22, "1e+22"),
            (123456789.0, "123456789"),
            (1.5e300, "1.5e+300"),
            (1e-5, "0.00001"),
            (1e-7, "1e-7"),
            (1.5e-7, "1.5e-7"),
            (0.0001234567891234, "1.234567891234e-4"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(text(value), expected, "{value:e}");
            assert_eq!(parse_double(expected.as_bytes()).map(f64::to_bits), Some(value.to_bits()));
        }
    }

    #[test]
    fn spellings_that_are_not_canonical_are_refused() {
        for bad in
            ["", "+1", "1.0", "01", ".5", "1e8", "+inf", "Infinity", "nan", "1e+08", " 1", "0x1", "1e400"]
        {
            assert_eq!(parse_double(bad.as_bytes()), None, "{bad}");
        }
        for bad in [
            "",
            "-",
            "+1",
            "01",
            "-0",
            " 1",
            "1 ",
            "9223372036854775808",
            "-9223372036854775809",
            "1e3",
            "99999999999999999999",
        ] {
            assert_eq!(parse_int(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse_int(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_int(b"9223372036854775807"), Some(i64::MAX));
    }

    #[test]
    fn every_double_round_trips() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..20_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let value = f64::from_bits(state);
            if value.is_nan() {
                continue;
            }
            let mut buffer = [0u8; DOUBLE_TEXT_MAX];
            let text = double_text(value, &mut buffer);
            assert_eq!(parse_double(text).map(f64::to_bits), Some(value.to_bits()));
        }
    }
}
