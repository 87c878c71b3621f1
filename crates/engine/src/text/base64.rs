//! Owns: base64 (RFC 4648), written and read. Does not own: where it stands for what.

/// The digits, in their order.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends bytes in base64, with padding.
pub fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len().div_ceil(3) * 4);
    let digits = |group: [u8; 3]| {
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]) as usize;
        [18, 12, 6, 0].map(|shift| DIGITS[bits >> shift & 63])
    };
    let (groups, rest) = bytes.as_chunks::<3>();
    groups.iter().for_each(|group| out.extend_from_slice(&digits(*group)));
    if let Some(&first) = rest.first() {
        let last = digits([first, rest.get(1).copied().unwrap_or(0), 0]);
        out.extend_from_slice(&last[..rest.len() + 1]);
        out.extend_from_slice(&b"=="[..3 - rest.len()]);
    }
}

/// The bytes that a text stands for, with its padding or without, in the digits of texts or in those of addresses;
/// nothing if it is none.
#[must_use]
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|&byte| byte != b'=').map_or(0, |last| last + 1);
    let padding = text.len() - end;
    if end % 4 == 1 || padding > 0 && padding != (4 - end % 4) % 4 {
        return None;
    }
    let (mut bytes, mut held, mut bits) = (Vec::with_capacity(end * 3 / 4), 0_u32, 0);
    for digit in &text[..end] {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        (held, bits) = (held << 6 | u32::from(value), bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    // Bits that no byte has could be anything: two texts would be the same bytes.
    (held == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for len in 0..20_u8 {
            let bytes: Vec<u8> = (0..len).map(|at| at.wrapping_mul(37)).collect();
            let mut text = Vec::new();
            push(&mut text, &bytes);
            assert_eq!(decode(&text).as_deref(), Some(&bytes[..]));
        }
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm8", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYmFy", "foobar"),
            ("YTo6Yg==", "a::b"),
            ("Pz8_", "???"),
            ("Pz8/", "???"),
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        for bad in ["Z", "Zm9vY", "Zm9v!mFy", "Zg===", "Zg=", "Z g=", "ab=c", "YR==", "="] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }
}
