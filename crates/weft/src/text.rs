//! Bytes and counts as people read them. Owns no layout of any output.

use std::fmt::Write as _;

/// Bytes in double quotes, what is not printable ASCII escaped; of more than `max` bytes the first ones and how many
/// there are.
pub(crate) fn quoted(bytes: &[u8], max: usize) -> String {
    let shown = if bytes.len() > max { &bytes[..max] } else { bytes };
    let mut text = String::with_capacity(shown.len() + 2);
    text.push('"');
    for &byte in shown {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(byte as char);
            }
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            0x20..0x7F => text.push(byte as char),
            // Writing to a String cannot fail.
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('"');
    if shown.len() < bytes.len() {
        let _ = write!(text, "… ({} bytes)", grouped(bytes.len() as u64));
    }
    text
}

/// Bytes as pairs of hexadecimal digits with blanks; of more than `max` bytes the first and the last ones.
pub(crate) fn hex(bytes: &[u8], max: usize) -> String {
    let mut text = String::new();
    let mut pairs = |bytes: &[u8]| {
        for byte in bytes {
            if !text.is_empty() {
                text.push(' ');
            }
            let _ = write!(text, "{byte:02x}");
        }
    };
    if bytes.len() <= max {
        pairs(bytes);
        return text;
    }
    // The ellipsis takes the place of one byte.
    let tail = max / 4;
    pairs(&bytes[..max - tail - 1]);
    let head = std::mem::take(&mut text);
    for byte in &bytes[bytes.len() - tail..] {
        let _ = write!(text, " {byte:02x}");
    }
    format!("{head} ..{text}")
}

/// A number with a comma after every three digits.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes with a unit of 1000s, three digits.
pub(crate) fn size(bytes: f64) -> String {
    let mut value = bytes;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 999.5 {
            return if unit == "B" { format!("{value:.0} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

/// `54.2% saved`, or `14.3% more`.
pub(crate) fn saved(before: usize, after: usize) -> String {
    let percent = 100.0 * (1.0 - after as f64 / before.max(1) as f64);
    if percent < 0.0 { format!("{:.1}% more", -percent) } else { format!("{percent:.1}% saved") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_quoted_and_cut() {
        assert_eq!(quoted(b"a\"\\\r\n\x00\xff", 99), r#""a\"\\\r\n\x00\xff""#);
        assert_eq!(quoted(&[b'x'; 2000], 3), "\"xxx\"… (2,000 bytes)");
        assert_eq!(hex(b"\x00\xab", 8), "00 ab");
        assert_eq!(hex(&(0..20).collect::<Vec<u8>>(), 8), "00 01 02 03 04 .. 12 13");
    }

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")] {
            assert_eq!(grouped(value), text);
        }
        assert_eq!(
            (size(12.0), size(999_600.0), size(2.5e9)),
            ("12 B".into(), "1.0 MB".into(), "2.5 GB".into())
        );
    }
}
