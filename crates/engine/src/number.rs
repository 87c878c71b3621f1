//! Owns: numbers in the text forms that Valkey accepts beyond the canonical ones of the protocol. Does not own: the
//! canonical forms (`weft_protocol::number`).

/// A double as Valkey 9.1 reads it if it uses the whole text: decimal, `inf`, `infinity`. No blanks, no NaN, no
/// hexadecimal, and nothing that is out of range: neither so large that it would be infinite nor so small that it would
/// be zero.
#[must_use]
pub fn parse_double(text: &[u8]) -> Option<f64> {
    // Most are whole numbers, and those of up to 15 digits are exact.
    if text.len() <= 15
        && let Some(value) = weft_store::parse_int(text)
    {
        return Some(value as f64);
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
