//! Owns: numbers in the text forms that Valkey accepts beyond the canonical ones of the protocol. Does not own: the
//! canonical forms (`weft_protocol::number`).

/// A double as `strtod` reads it if it uses the whole text: decimal, `inf`, `infinity`, hexadecimal. No blanks, no NaN.
#[must_use]
pub fn parse_double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.is_empty() || text.starts_with(char::is_whitespace) {
        return None;
    }
    let value = match text.trim_start_matches(['+', '-']).get(..2) {
        Some("0x" | "0X") => parse_hex(text)?,
        // Rust's parser takes the same decimal forms, and `nan`, which is refused below.
        _ => text.parse::<f64>().ok()?,
    };
    (!value.is_nan()).then_some(value)
}

fn parse_hex(text: &str) -> Option<f64> {
    let (negative, digits) = match text.as_bytes()[0] {
        b'-' => (true, &text[3..]),
        b'+' => (false, &text[3..]),
        _ => (false, &text[2..]),
    };
    let (mantissa, exponent) = match digits.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let scale = exponent.saturating_sub(i32::try_from(fraction.len()).ok()?.saturating_mul(4));
    let value = value * 2.0_f64.powi(scale);
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_as_strtod_reads_them() {
        for (text, expected) in [
            ("1.5", Some(1.5)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("+inf", Some(f64::INFINITY)),
            ("1e3", Some(1000.0)),
            ("0x1F", Some(31.0)),
            ("-0x.8p1", Some(-1.0)),
            (" 1", None),
            ("1 ", None),
            ("nan", None),
            ("", None),
            ("1x", None),
        ] {
            assert_eq!(parse_double(text.as_bytes()), expected, "{text}");
        }
    }
}
