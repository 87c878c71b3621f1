//! Owns: numbers in the text forms that Valkey accepts beyond the canonical ones of the protocol. Does not own: the
//! canonical forms (`weft_protocol::number`).

/// A double as Valkey 9.1 reads it if it uses the whole text: decimal, `inf`, `infinity`. No blanks, no NaN, no
/// hexadecimal, and nothing that is out of range: neither so large that it would be infinite nor so small that it would
/// be zero.
#[must_use]
pub fn parse_double(text: &[u8]) -> Option<f64> {
    if let Some(value) = parse_short(text) {
        return Some(value);
    }
    let text = std::str::from_utf8(text).ok()?;
    // Rust's parser takes the same forms, and `nan`.
    let value = text.parse::<f64>().ok().filter(|value| !value.is_nan())?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let in_range = if value.is_infinite() {
        // Spelled out, or digits too many.
        !text.bytes().any(|byte| byte.is_ascii_digit())
    } else {
        value != 0.0 || !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
    };
    in_range.then_some(value)
}

/// Powers of ten that a double has exactly, as far as [`parse_short`] needs them.
const POWERS: [f64; SHORT_BYTES_MAX] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
/// Digits and point of what [`parse_short`] reads.
const SHORT_BYTES_MAX: usize = 16;
/// Whole numbers up to this are exact.
const EXACT_MAX: u64 = 1 << 53;

/// What nearly all are: a few digits, perhaps with a sign and a point. Two exact numbers are divided, which rounds as
/// reading the digits does.
#[inline]
fn parse_short(text: &[u8]) -> Option<f64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.len() > SHORT_BYTES_MAX {
        return None;
    }
    let (mut number, mut point) = (0, None);
    for (at, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    if digits.len() == usize::from(point.is_some()) || number > EXACT_MAX {
        return None;
    }
    let whole = number as f64;
    let value = point.map_or(whole, |at| whole / POWERS[digits.len() - 1 - at]);
    Some(if is_negative { -value } else { value })
}

/// A double that bounds a range: numbers out of a double's range count as infinite or 0, and no text as 0.
#[must_use]
pub fn parse_bound(text: &[u8]) -> Option<f64> {
    if text.is_empty() { Some(0.0) } else { parse_any(text) }
}

fn parse_any(text: &[u8]) -> Option<f64> {
    // Rust's parser takes the same decimal forms, and `nan`, which is refused.
    let value = std::str::from_utf8(text).ok()?.parse::<f64>().ok()?;
    (!value.is_nan()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_what_reading_their_digits_gives() {
        let mut rng = weft_store::XorShift::new(3);
        let mut met = 0;
        for _ in 0..300_000 {
            let len = 1 + weft_store::Rng::below(&mut rng, 18) as usize;
            let digit =
                |rng: &mut weft_store::XorShift| b"0123456789.-+e"[weft_store::Rng::below(rng, 14) as usize];
            let mut text: Vec<u8> = (0..len).map(|_| digit(&mut rng)).collect();
            // Most are numbers: one sign in front, one point.
            if weft_store::Rng::below(&mut rng, 8) > 0 {
                text.iter_mut().skip(1).filter(|byte| !byte.is_ascii_digit()).for_each(|byte| *byte = b'7');
                let at = weft_store::Rng::below(&mut rng, 18) as usize;
                text.get_mut(at).into_iter().for_each(|byte| *byte = b'.');
            }
            if let Some(value) = parse_short(&text) {
                let expected: f64 = std::str::from_utf8(&text).unwrap().parse().unwrap();
                assert_eq!(value.to_bits(), expected.to_bits(), "{}", text.escape_ascii());
                met += 1;
            }
        }
        assert!(met > 100_000, "{met}");
        assert_eq!(parse_short(b"-0").map(f64::to_bits), Some((-0.0_f64).to_bits()));
        for text in ["", ".", "-", "+.", "1.2.3", "1e5", " 1", "9999999999999999"] {
            assert_eq!(parse_short(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn doubles_as_valkey_reads_them() {
        for (text, expected) in [
            ("1.5", Some(1.5)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("+inf", Some(f64::INFINITY)),
            ("iNf", Some(f64::INFINITY)),
            ("Infinity", Some(f64::INFINITY)),
            ("infinit", None),
            ("1e3", Some(1000.0)),
            ("0x1F", None),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("+00012", Some(12.0)),
            ("-0e99", Some(0.0)),
            ("1e-310", Some(1e-310)),
            ("1e-400", None),
            ("1e400", None),
            ("1.8e308", None),
            ("1e", None),
            ("1E3", Some(1000.0)),
            ("1.", Some(1.0)),
            ("+1", Some(1.0)),
            ("00012", Some(12.0)),
            ("0e400", Some(0.0)),
            ("4.9e-324", Some(5e-324)),
            ("-1e400", None),
            ("2e-324", None),
            ("--1", None),
            ("+", None),
            (".", None),
            (" 1", None),
            ("1 ", None),
            ("nan", None),
            ("", None),
            ("1x", None),
        ] {
            assert_eq!(parse_double(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(parse_bound(b""), Some(0.0));
        assert_eq!(parse_bound(b"1e400"), Some(f64::INFINITY));
        assert_eq!(parse_bound(b"x"), None);
    }
}
