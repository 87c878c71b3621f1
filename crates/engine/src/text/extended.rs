//! Owns: the numbers of INCRBYFLOAT and HINCRBYFLOAT: 64 bits of precision, as the 80-bit format of x86 has them, read
//! and written in decimal without loss. Does not own: doubles (`crate::number`, `weft_protocol::number`).
//!
//! A double has 53 bits: 0.1 + 0.2 is 0.30000000000000004 with them and 0.3 here. Text is read correctly rounded,
//! sums are rounded once to the nearest and to even, and 17 decimals are written, trailing zeros left out: what Valkey
//! answers on x86, on any machine.
//!
//! A number is `mantissa · 2^exponent`. Reading and adding need at most 128 bits, but for texts of many digits and for
//! large exponents; those go through [`Natural`], whose size is bounded by [`TEXT_BYTES_MAX`].

use std::cmp::Ordering;

/// Bytes of a text that is taken for a number at most, as in Valkey.
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;
/// Decimal exponents beyond this are zero or infinite whatever the digits.
const DECIMAL_EXPONENT_MAX: i64 = 5000;
/// The exponent of the least bit that there is, and the one that no number reaches.
const LEAST_EXPONENT: i32 = -16_445;
const TOP_EXPONENT: i32 = 16_384;
/// Decimals that are written.
const DECIMALS: u32 = 17;

/// A finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    negative: bool,
    mantissa: u64,
    exponent: i32,
}

/// What a text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A finite number.
    Finite(Extended),
    /// Infinity, of either sign: valid as a number, but no sum with it is.
    Infinite,
}

impl From<i64> for Extended {
    fn from(value: i64) -> Self {
        Self { negative: value < 0, mantissa: value.unsigned_abs(), exponent: 0 }
    }
}

/// A text as C's `strtold` reads it if it uses all of it: decimal, hexadecimal, `inf`. Nothing for blanks, NaN, what is
/// too large, and what is not zero but too small.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Parsed> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
        return Some(Parsed::Infinite);
    }
    let number = match text {
        [b'0', b'x' | b'X', digits @ ..] => parse_hexadecimal(digits)?,
        _ => parse_decimal(text)?,
    };
    Some(Parsed::Finite(Extended { negative, ..number }))
}

/// Digits around a point, and an exponent behind a letter: (digits, how many stand behind the point, exponent).
fn split(text: &[u8], letter: u8, is_digit: fn(&u8) -> bool) -> Option<(Vec<u8>, i64, i64)> {
    let at = text.iter().position(|byte| byte.eq_ignore_ascii_case(&letter));
    let (mantissa, exponent) = match at {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let point = mantissa.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (&mantissa[..point], &mantissa[point + 1..]),
        None => (mantissa, &b""[..]),
    };
    if whole.is_empty() && fraction.is_empty() || !whole.iter().chain(fraction).all(is_digit) {
        return None;
    }
    Some(([whole, fraction].concat(), fraction.len() as i64, exponent))
}

/// An exponent; one that is beyond all bounds stays so without overflowing.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0_i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(1 << 40));
    Some(if negative { -magnitude } else { magnitude })
}

fn parse_decimal(text: &[u8]) -> Option<Extended> {
    let (digits, behind, exponent) = split(text, b'e', u8::is_ascii_digit)?;
    let exponent = exponent - behind;
    let first = digits.iter().position(|&digit| digit != b'0');
    let Some(first) = first else { return Some(Extended::from(0)) };
    let digits = &digits[first..];
    let magnitude = digits.len() as i64 + exponent;
    if magnitude.abs() > DECIMAL_EXPONENT_MAX {
        return None;
    }
    // Below 2 · TEXT_BYTES_MAX, since the magnitude and the digits are bounded.
    let power = exponent.unsigned_abs() as u32;
    let mut number = Natural::from_decimal(digits);
    if exponent >= 0 {
        number.multiply_by_ten_to(power);
        let (top, shift, sticky) = number.top();
        return Extended::rounded(top, shift, sticky);
    }
    let mut divisor = Natural::from_decimal(b"1");
    divisor.multiply_by_ten_to(power);
    // So that the quotient has 66 or 67 bits: 64, one to round by, and one to spare.
    let shift = 66 + divisor.bits() as i32 - number.bits() as i32;
    if shift >= 0 {
        number.shift_left(shift as u32)
    } else {
        divisor.shift_left(shift.unsigned_abs())
    }
    let (quotient, sticky) = number.divide(divisor);
    Extended::rounded(quotient, -shift, sticky)
}

fn parse_hexadecimal(text: &[u8]) -> Option<Extended> {
    let (digits, behind, exponent) = split(text, b'p', u8::is_ascii_hexdigit)?;
    let mut mantissa = 0_u128;
    let (mut sticky, mut dropped) = (false, 0_i64);
    for digit in digits {
        let digit = char::from(digit).to_digit(16)?;
        if mantissa >> 120 == 0 {
            mantissa = mantissa << 4 | u128::from(digit);
        } else {
            sticky |= digit != 0;
            dropped += 1;
        }
    }
    let exponent = (exponent + 4 * (dropped - behind)).clamp(-1 << 24, 1 << 24);
    Extended::rounded(mantissa, exponent as i32, sticky)
}

impl Extended {
    /// `value · 2^exponent`, and a little more if `sticky`, rounded to the nearest and to even. Nothing when it is too
    /// large, or is not zero and too small.
    fn rounded(value: u128, exponent: i32, sticky: bool) -> Option<Self> {
        if value == 0 {
            return (!sticky).then_some(Self::from(0));
        }
        let bits = 128 - value.leading_zeros() as i32;
        let shift = (bits - 64).max(LEAST_EXPONENT - exponent);
        if shift <= 0 {
            let number = Self { negative: false, mantissa: value as u64, exponent };
            return (bits + exponent <= TOP_EXPONENT).then_some(number);
        }
        if shift > 127 {
            return None;
        }
        let rest = value & ((1 << shift) - 1);
        let mut mantissa = value >> shift;
        mantissa += match rest.cmp(&(1 << (shift - 1))) {
            Ordering::Less => 0,
            Ordering::Equal if !sticky => mantissa & 1,
            Ordering::Equal | Ordering::Greater => 1,
        };
        let mut exponent = exponent + shift;
        if mantissa >> 64 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
        let bits = 128 - mantissa.leading_zeros() as i32;
        if mantissa == 0 || bits + exponent > TOP_EXPONENT {
            return None;
        }
        Some(Self { negative: false, mantissa: mantissa as u64, exponent })
    }

    /// As a double, rounded; infinite beyond its range.
    #[must_use]
    pub fn to_double(self) -> f64 {
        // A power of two beyond 2^1023 is made in two steps, neither of which rounds.
        let half = self.exponent / 2;
        let value = self.mantissa as f64 * 2_f64.powi(half) * 2_f64.powi(self.exponent - half);
        if self.negative { -value } else { value }
    }

    /// The sum, or nothing when it is infinite.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        if self.mantissa == 0 || other.mantissa == 0 {
            let both = self.mantissa == 0 && other.mantissa == 0;
            let number = if self.mantissa == 0 { other } else { self };
            return Some(Self {
                negative: number.negative && (!both || self.negative == other.negative),
                ..number
            });
        }
        let (large, small) = (self.aligned(), other.aligned());
        let (large, small) =
            if (small.2, small.1) > (large.2, large.1) { (small, large) } else { (large, small) };
        let ((negative, value, exponent), (other_negative, small, small_exponent)) = (large, small);
        let distance = (exponent - small_exponent).unsigned_abs();
        // 62 bits lie below the mantissa: what falls off the end can only matter as a tie breaker.
        let (mut small, lost) = match distance {
            0..=127 => (small >> distance, small & ((1_u128 << distance) - 1) != 0),
            _ => (0, true),
        };
        small |= u128::from(lost);
        let sum = if negative == other_negative { value + small } else { value - small };
        let number = Self::rounded(sum, exponent, false);
        number.map(|number| Self { negative: negative && number.mantissa != 0, ..number })
    }

    /// Sign, mantissa with its highest bit at 125, and exponent.
    fn aligned(self) -> (bool, u128, i32) {
        let shift = u128::from(self.mantissa).leading_zeros() - 2;
        (self.negative, u128::from(self.mantissa) << shift, self.exponent - shift as i32)
    }

    /// 17 decimals, rounded to even, without zeros at the end; no exponent, however large the number.
    #[must_use]
    pub fn text(self) -> String {
        let mut text = if self.exponent > 63 {
            let mut number = Natural::from_u128(u128::from(self.mantissa));
            number.shift_left(self.exponent.unsigned_abs());
            number.to_decimal()
        } else if self.exponent >= 0 {
            (u128::from(self.mantissa) << self.exponent).to_string()
        } else {
            // Below 2^121.
            let scaled = u128::from(self.mantissa) * 10_u128.pow(DECIMALS);
            fixed(shift_right_to_even(scaled, self.exponent.unsigned_abs()))
        };
        if self.negative && text != "0" {
            text.insert(0, '-');
        }
        text
    }
}

fn shift_right_to_even(value: u128, shift: u32) -> u128 {
    if shift > 127 {
        return 0;
    }
    let (kept, rest) = (value >> shift, value & ((1 << shift) - 1));
    match rest.cmp(&(1 << (shift - 1))) {
        Ordering::Less => kept,
        Ordering::Equal => kept + (kept & 1),
        Ordering::Greater => kept + 1,
    }
}

/// A whole number of 10^-17 as text.
fn fixed(value: u128) -> String {
    let one = 10_u128.pow(DECIMALS);
    let text = format!("{}.{:017}", value / one, value % one);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A natural number of any size, in digits of 32 bits, the lowest first, without zeros at the end.
#[derive(Clone, Debug)]
struct Natural(Vec<u32>);

impl Natural {
    fn from_u128(value: u128) -> Self {
        let mut number = Self((0..4).map(|at| (value >> (32 * at)) as u32).collect());
        number.trim();
        number
    }
    fn from_decimal(digits: &[u8]) -> Self {
        let mut number = Self(Vec::with_capacity(digits.len() / 9 + 1));
        for group in digits.chunks(9) {
            let value = group.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
            number.multiply_add(10_u32.pow(group.len() as u32), value);
        }
        number
    }
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
    fn multiply_add(&mut self, factor: u32, term: u32) {
        let mut carry = u64::from(term);
        for digit in &mut self.0 {
            let value = u64::from(*digit) * u64::from(factor) + carry;
            *digit = value as u32;
            carry = value >> 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }
    fn multiply_by_ten_to(&mut self, power: u32) {
        for _ in 0..power / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10_u32.pow(power % 9), 0);
    }
    fn bits(&self) -> u32 {
        self.0.last().map_or(0, |top| self.0.len() as u32 * 32 - top.leading_zeros())
    }
    fn shift_left(&mut self, by: u32) {
        let small = by % 32;
        if small > 0 {
            self.multiply_add(1 << small, 0);
        }
        self.0.splice(0..0, std::iter::repeat_n(0, (by / 32) as usize));
    }
    fn halve(&mut self) {
        let mut carry = 0;
        for digit in self.0.iter_mut().rev() {
            (*digit, carry) = (*digit >> 1 | carry, *digit << 31);
        }
        self.trim();
    }
    fn is_below(&self, other: &Self) -> bool {
        let lens = self.0.len().cmp(&other.0.len());
        lens.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())).is_lt()
    }
    /// Takes away a number that is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (at, digit) in self.0.iter_mut().enumerate() {
            let (value, first) = digit.overflowing_sub(other.0.get(at).copied().unwrap_or(0));
            let (value, second) = value.overflowing_sub(u32::from(borrow));
            (*digit, borrow) = (value, first | second);
        }
        self.trim();
    }
    /// The quotient, which has at most 67 bits, and whether something is left.
    fn divide(mut self, mut divisor: Self) -> (u128, bool) {
        const BITS: u32 = 67;
        divisor.shift_left(BITS);
        let mut quotient = 0;
        for _ in 0..=BITS {
            quotient <<= 1;
            if !self.is_below(&divisor) {
                self.subtract(&divisor);
                quotient |= 1;
            }
            divisor.halve();
        }
        (quotient, !self.0.is_empty())
    }
    /// The highest 96 bits or more, the power of two that they stand for, and whether anything is set below.
    fn top(&self) -> (u128, i32, bool) {
        let below = self.0.len().saturating_sub(4);
        let top = self.0[below..].iter().rev().fold(0, |sum: u128, &digit| sum << 32 | u128::from(digit));
        (top, below as i32 * 32, self.0[..below].iter().any(|&digit| digit != 0))
    }
    fn to_decimal(&self) -> String {
        let mut number = self.clone();
        let mut groups = Vec::new();
        while !number.0.is_empty() {
            let mut rest = 0;
            for digit in number.0.iter_mut().rev() {
                let value = rest << 32 | u64::from(*digit);
                *digit = (value / 1_000_000_000) as u32;
                rest = value % 1_000_000_000;
            }
            number.trim();
            groups.push(rest);
        }
        let Some(first) = groups.pop() else { return "0".into() };
        let rest: String = groups.iter().rev().map(|group| format!("{group:09}")).collect();
        format!("{first}{rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(one: &str, two: &str) -> Option<String> {
        match (parse(one.as_bytes())?, parse(two.as_bytes())?) {
            (Parsed::Finite(one), Parsed::Finite(two)) => Some(one.checked_add(two)?.text()),
            _ => Some("infinite".into()),
        }
    }

    /// Expected texts are what Valkey 9.1.2 answers on x86-64.
    #[test]
    fn sums_as_valkey_has_them() {
        for (one, two, expected) in [
            ("0.1", "0.2", "0.3"),
            ("3", "1.1", "4.1"),
            ("10.5", "-10.5", "0"),
            ("-0.1", "0.1", "0"),
            ("1e17", "0.5", "100000000000000000.5"),
            ("1.0e2", "0", "100"),
            ("5.0e3", "2.0e2", "5200"),
            ("1e-17", "0", "0.00000000000000001"),
            ("4e-18", "0", "0"),
            ("-4e-18", "0", "0"),
            ("0x1p-1", "1", "1.5"),
            ("1.", ".5", "1.5"),
            ("9223372036854775807", "1", "9223372036854775808"),
            ("18446744073709551616", "1", "18446744073709551616"),
            ("18446744073709551616", "1.5", "18446744073709551618"),
            ("1e22", "1", "10000000000000000000000"),
            ("123456789012345678", "0.123456789", "123456789012345678.125"),
        ] {
            assert_eq!(sum(one, two).as_deref(), Some(expected), "{one} + {two}");
        }
        assert_eq!(sum("1e4932", "0").map(|text| text.len()), Some(4933));
        assert_eq!(sum("inf", "1").as_deref(), Some("infinite"));
        for text in [
            "",
            " 1",
            "1 ",
            "1e",
            "e5",
            ".",
            "0x",
            "nan",
            "1e5000",
            "1e-5000",
            "1..2",
            "--1",
            "1e99999999999",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(sum("1e4932", "1.1e4932"), None, "the sum is infinite");
    }

    #[test]
    fn what_64_bits_can_say_comes_back() {
        let mut state = 7_u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // At most 44 + 15 bits, all of which 15 decimals show.
            let text = format!("{:.15}", (state >> 20) as f64 / f64::from(1_u32 << (state & 15)));
            let Some(Parsed::Finite(number)) = parse(text.as_bytes()) else { panic!("{text}") };
            assert_eq!(number.text(), text.trim_end_matches('0').trim_end_matches('.'));
        }
    }

    #[test]
    fn long_texts_are_read_and_longer_ones_refused() {
        let long = "1".repeat(TEXT_BYTES_MAX - 120) + "e-4800";
        assert!(parse(long.as_bytes()).is_some());
        let limit = "0".repeat(TEXT_BYTES_MAX);
        assert_eq!(parse(limit.as_bytes()), Some(Parsed::Finite(Extended::from(0))));
        assert_eq!(parse(format!("{limit}0").as_bytes()), None);
    }
}
