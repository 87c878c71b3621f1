//! Owns: scores in the compact form, each in as few bytes as give it back exactly. Does not own: what surrounds them.
//!
//! ```text
//! +----------+----------+----------------------+
//! | form     | bytes    | 0 to 8 bytes, lowest |
//! | 4 bits   | 4 bits   | first                |
//! +----------+----------+----------------------+
//! ```
//! | form | the bytes are |
//! |---|---|
//! | 0 | a whole number, with its sign |
//! | 1 to 6 | one with so many decimals: 1.25 is 125 with two |
//! | 15 | the upper bytes of a double whose others are 0 |
//!
//! So a whole number of up to 53 bits takes 0 to 7 bytes, 0.5 takes 2, 19.99 takes 2, and any other score 8. A number
//! with decimals is read by one division, which rounds as reading its digits does.

/// The longest.
pub(super) const BYTES_MAX: usize = 9;
/// The form of doubles.
const DOUBLE: u8 = 15;
/// The most decimals.
const DECIMALS_MAX: u8 = 6;
/// Of a number with decimals, the digits without the point are below this, so that they and the powers are exact.
const DIGITS_END: f64 = 9_007_199_254_740_992.0;
const POWERS: [f64; DECIMALS_MAX as usize + 1] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6];
/// Doubles that take no more bytes than this are not tried as numbers with decimals: these are read more slowly.
const SHORT_DOUBLE: usize = 3;

/// Bytes of a whole number with its sign.
const fn whole_bytes(whole: i64) -> usize {
    if whole == 0 {
        return 0;
    }
    let bits = 65 - (whole ^ (whole >> 63)).leading_zeros() as usize;
    bits.div_ceil(8)
}

/// A score as a whole number and how many of its digits are decimals.
fn decimal(score: f64) -> Option<(i64, u8)> {
    let scaled = score * POWERS[DECIMALS_MAX as usize];
    if scaled.abs() >= DIGITS_END {
        return None;
    }
    let mut digits = (scaled + 0.5_f64.copysign(scaled)) as i64;
    if digits as f64 / POWERS[DECIMALS_MAX as usize] != score {
        return None;
    }
    let mut decimals = DECIMALS_MAX;
    while decimals > 0 && digits % 10 == 0 {
        digits /= 10;
        decimals -= 1;
    }
    Some((digits, decimals))
}

/// Writes a score, its form first; −0 becomes 0, as it does in Valkey's compact form.
pub(super) fn write(score: f64, out: &mut [u8; BYTES_MAX]) -> &[u8] {
    let double = score.to_bits();
    let whole = score as i64;
    // What is larger than digits may be is no shorter as a whole number.
    let is_whole = whole as f64 == score && score.abs() < DIGITS_END;
    let mut form = (DOUBLE, 8 - double.trailing_zeros() as usize / 8, 0);
    if is_whole {
        if whole_bytes(whole) <= form.1 || whole == 0 {
            form = (0, whole_bytes(whole), whole);
        }
    } else if form.1 > SHORT_DOUBLE
        && let Some((digits, decimals)) = decimal(score)
        && whole_bytes(digits) < form.1
    {
        form = (decimals, whole_bytes(digits), digits);
    }
    let (form, len, number) = form;
    out[0] = form << 4 | len as u8;
    let word = if form == DOUBLE { double >> (64 - 8 * len) } else { number as u64 };
    out[1..].copy_from_slice(&word.to_le_bytes());
    &out[..1 + len]
}

/// Bytes of a score that begins with this one.
#[inline]
pub(super) const fn size(first: u8) -> usize {
    1 + (first & 15) as usize
}

/// Reads what [`write`] has written at an offset.
#[inline]
pub(super) fn read(buffer: &[u8], at: usize) -> f64 {
    let Some((&first, rest)) = buffer.get(at..).and_then(<[u8]>::split_first) else { return 0.0 };
    let len = (first & 15) as usize;
    if len == 0 {
        return 0.0;
    }
    let word = match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    let unused = (64 - 8 * len as u32) & 63;
    let high = word << unused;
    match first >> 4 {
        DOUBLE => f64::from_bits(high),
        decimals => {
            let number = (high.cast_signed() >> unused) as f64;
            match decimals {
                0 => number,
                _ => number / POWERS.get(decimals as usize).copied().unwrap_or(1.0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Rng, XorShift};

    /// The bytes that a score takes, which gives it back with others behind it and without.
    fn bytes(score: f64) -> usize {
        let mut buffer = [0; BYTES_MAX];
        let written = write(score, &mut buffer).to_vec();
        assert_eq!(size(written[0]), written.len(), "{score}");
        assert_eq!(read(&written, 0).to_bits(), score.to_bits(), "{score}");
        let mut surrounded = vec![0xA5; 3];
        surrounded.extend_from_slice(&written);
        surrounded.extend_from_slice(&[0xFF; 9]);
        assert_eq!(read(&surrounded, 3).to_bits(), score.to_bits(), "{score}");
        written.len() - 1
    }

    #[test]
    fn scores_come_back_in_few_bytes() {
        for (score, expected) in [
            (0.0, 0),
            (1.0, 1),
            (-1.0, 1),
            (-128.0, 1),
            (128.0, 2),
            (70_000.0, 3),
            (f64::from(i32::MIN), 2),
            (1_700_000_000.0, 4),
            (1_700_000_000_123.0, 6),
            (3_471_579_339_700_058.0, 7),
            (DIGITS_END - 1.0, 7),
            (DIGITS_END, 2),
            (1e15, 6),
            (0.5, 2),
            (-9.5, 2),
            (0.1, 1),
            (-0.1, 1),
            (19.99, 2),
            (1_700_000_000.123_456, 7),
            (0.000_001, 1),
            (0.000_000_1, 8),
            (f64::INFINITY, 2),
            (f64::NEG_INFINITY, 2),
            (5e-324, 8),
            (1e300, 8),
            (std::f64::consts::PI, 8),
        ] {
            assert_eq!(bytes(score), expected, "{score}");
        }
        // Valkey's compact form has no −0 either.
        assert_eq!(write(-0.0, &mut [0; BYTES_MAX]), [0]);
    }

    #[test]
    fn any_score_comes_back() {
        let mut rng = XorShift::new(7);
        for _ in 0..200_000 {
            let any = f64::from_bits(rng.next_u64());
            if !any.is_nan() {
                bytes(any);
            }
            let whole = (rng.next_u64() >> rng.below(64)) as i64;
            bytes(whole as f64);
            bytes(-1.0 - (whole as f64).abs());
            for power in POWERS.iter().skip(1) {
                let digits = rng.next_u64() >> (12 + rng.below(50));
                if digits > 0 {
                    bytes(digits as f64 / power);
                    bytes(-(digits as f64) / power);
                }
            }
        }
    }
}
