//! Vectors of numbers as text (spec section E.3): doubles on both sides of every boundary, and spellings that only ARGV
//! can say.
//!
//! It owns the rule a second time, word for word from the specification and without `crates/protocol`, so that the two
//! check each other.

use std::borrow::Cow;

use super::argument::Args;
use super::frames::{argv, command, slug};
use super::layout::{Plan, fields};
use super::requests::typed_vector;
use super::vector::Vector;
use crate::model::Command;

/// Whole numbers up to this magnitude, 2⁶², are integers.
const WHOLE_MAX: f64 = 4_611_686_018_427_387_904.0;

/// The canonical text of a double that is a number.
#[must_use]
pub fn text(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let magnitude = value.abs();
    if magnitude.is_infinite() {
        return format!("{sign}inf");
    }
    if magnitude.fract() == 0.0 && magnitude <= WHOLE_MAX {
        return format!("{sign}{magnitude:.0}");
    }
    // Rust's exponent notation has the shortest digits: d.ddde-x.
    let scientific = format!("{magnitude:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let n = digits.len() as i32;
    let e: i32 = exponent.parse().unwrap_or(0);
    let k = e + 1 - n;
    let body = if k >= 0 && e < n + 7 {
        format!("{digits}{}", "0".repeat(k as usize))
    } else if k < 0 && (k > -7 || e.abs() < 4) {
        if e >= 0 {
            format!("{}.{}", &digits[..=e as usize], &digits[e as usize + 1..])
        } else {
            format!("0.{}{digits}", "0".repeat((-e - 1) as usize))
        }
    } else {
        let point = if n > 1 { "." } else { "" };
        let exponent_sign = if e < 0 { '-' } else { '+' };
        format!("{}{point}{}e{exponent_sign}{}", &digits[..1], &digits[1..], e.abs())
    };
    format!("{sign}{body}")
}

/// Around every boundary of the rule. What each is for stands before it.
const DOUBLES: &[f64] = &[
    // Whole numbers around 2⁵³ and 2⁶², and the next ones above.
    9_007_199_254_740_991.0,
    9_007_199_254_740_992.0,
    9_007_199_254_740_994.0,
    -9_007_199_254_740_991.0,
    -9_007_199_254_740_992.0,
    -9_007_199_254_740_994.0,
    4_611_686_018_427_387_392.0,
    4_611_686_018_427_387_904.0,
    4_611_686_018_427_388_928.0,
    -4_611_686_018_427_387_904.0,
    -4_611_686_018_427_388_928.0,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
    18_446_744_073_709_551_616.0,
    // Powers of ten: integers, then one digit.
    1e15,
    1e17,
    1e18,
    4e18,
    5e18,
    1e19,
    1e20,
    1e21,
    1e22,
    1e23,
    1.5e21,
    123_456_789_012_345_680_000.0,
    // k ≥ 0: e = n + 5, n + 6, n + 7, n + 8, of 14, 13, 12 and 11 digits, then of 17 and 16.
    1.234_567_890_123_4e19,
    1.234_567_890_123e19,
    1.234_567_890_12e19,
    1.234_567_890_1e19,
    -1.234_567_890_123e19,
    1.234_567_890_123_456_8e23,
    1.234_567_890_123_456_8e24,
    1.234_567_890_123_456_8e25,
    1.234_567_890_123_456e22,
    1.234_567_890_123_456e23,
    // k < 0: one digit, then two.
    0.1,
    0.01,
    0.001,
    1e-4,
    1e-5,
    1e-6,
    1e-7,
    1e-8,
    1.5e-5,
    1.5e-6,
    1.5e-7,
    -1.5e-7,
    // k = −6, −7, −8 where e = −3, −4, −5.
    1.234e-3,
    1.234_5e-3,
    1.234_56e-3,
    1.23e-4,
    1.234e-4,
    1.234_5e-4,
    1.2e-5,
    1.23e-5,
    1.234e-5,
    1.234_567e-4,
    -1.234e-4,
    // k = −6, −7, −8 where e = 3, 4, 5.
    1_234.123_456,
    1_234.123_456_7,
    1_234.123_456_78,
    12_345.123_456,
    12_345.123_456_7,
    12_345.123_456_78,
    123_456.123_456,
    123_456.123_456_7,
    123_456.123_456_78,
    -12_345.123_456_7,
    // k < −7 and |e| < 4 on the positive side.
    1.123_456_789,
    999.123_456_789_01,
    // Ends and digits.
    5e-324,
    -5e-324,
    2.225_073_858_507_201e-308,
    2.225_073_858_507_201_4e-308,
    f64::MAX,
    f64::MIN,
    0.300_000_000_000_000_04,
    2.506_628_274_631_000_7,
    1.0 / 3.0,
    2.0 / 3.0,
    100.0,
    -100.0,
    0.5,
    // Of the shortest digits that read back, the closest: others would do here.
    5.684_341_886_080_802e-14,
    2.0e-44,
    4_503_599_627_370_495.5,
];

/// Spellings of doubles that are not canonical, and are not in [`super::frames`].
const SPELLINGS: &[&str] = &[
    "+1",
    "01",
    "00",
    "-00",
    "0.0",
    "-0.0",
    "1.",
    ".1",
    "-.5",
    "0.10",
    "1e5",
    "1E5",
    "1e+5",
    "1E+22",
    "1e22",
    "1e+022",
    "1.0e+22",
    "10e+21",
    "5E-324",
    "1e-6",
    "1e-07",
    "0.0000001",
    "0.00000015",
    "0.0001234",
    "1.234e-3",
    "12345.1234567",
    "100000000000000000000",
    "1e+15",
    "12345678901200000000",
    "123456789012345680000000",
    "1.234567890123e+19",
    "9007199254740993",
    "-9007199254740993",
    "4611686018427387905",
    "4611686018427387904.0",
    "9223372036854775807",
    "9223372036854775808",
    "0.30000000000000000",
    "0.1000000000000000055511151231257827",
    "2.50662827463100070",
    "2.4703282292062327e-324",
    "1.7976931348623159e+308",
    "INF",
    "+infinity",
    "infinity",
    "-Infinity",
    "NaN",
    "-nan",
    "nan(0)",
    "1 ",
    " 1",
    "1_000",
    "0x1p+0",
];

/// Spellings of integers that are not canonical, and are not in [`super::frames`].
const INTEGERS: &[&str] = &[
    "-",
    "00",
    "-00",
    "-01",
    "--1",
    "-+1",
    "1_000",
    "0x1",
    "1.",
    "18446744073709551617",
    "-18446744073709551615",
    "99999999999999999999",
    "09223372036854775807",
];

/// All of them.
#[must_use]
pub fn vectors(commands: &[Command]) -> Vec<Vector> {
    let zincrby = command(commands, "ZINCRBY");
    let typed = fields(zincrby).unwrap_or_default();
    let mut out = Vec::new();
    for &value in DOUBLES {
        let text = text(value);
        let plan = Plan { double: (value, Cow::Owned(text.clone())), ..Plan::SMALLEST };
        let comment = format!("{value:e} is spelled {text}");
        out.push(typed_vector(zincrby, typed, &format!("number-{}", slug(&text)), "E.3", &comment, &plan));
    }
    for text in SPELLINGS {
        let (id, comment) = (format!("double-{}", slug(text)), format!("{text:?} is no canonical double"));
        out.push(argv(&id, "E.3", &comment, 0, &Args::texts(&["ZINCRBY", "key", text, "member"])));
    }
    for text in INTEGERS {
        let (id, comment) = (format!("int-{}", slug(text)), format!("{text:?} is no canonical integer"));
        out.push(argv(&id, "E.3", &comment, 0, &Args::texts(&["INCRBY", "key", text])));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_canonical_and_spellings_are_not() {
        for (value, wanted) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e22, "1e+22"),
            (5e-324, "5e-324"),
            (3.25, "3.25"),
            (0.1, "0.1"),
            (9_223_372_036_854_775_808.0, "9223372036854776000"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(text(value), wanted);
        }
        for value in DOUBLES {
            assert_eq!(text(*value).parse::<f64>().map(f64::to_bits), Ok(value.to_bits()));
        }
        for spelling in SPELLINGS {
            let read = spelling.trim().parse::<f64>();
            assert!(read.map_or(true, |value| value.is_nan() || text(value) != *spelling), "{spelling}");
        }
    }
}
