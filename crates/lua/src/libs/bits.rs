//! Owns: `bit`: operations on 32 bits. Does not own: anything of a script.

use crate::frame::{Answer, Frame, Raise, c_function};
use crate::libs::set_functions;

pub(super) fn open(frame: &mut Frame<'_>) {
    frame.push_table(0, 12);
    let functions = [
        ("tobit", c_function!(tobit)),
        ("bnot", c_function!(bnot)),
        ("band", c_function!(band)),
        ("bor", c_function!(bor)),
        ("bxor", c_function!(bxor)),
        ("lshift", c_function!(lshift)),
        ("rshift", c_function!(rshift)),
        ("arshift", c_function!(arshift)),
        ("rol", c_function!(rol)),
        ("ror", c_function!(ror)),
        ("bswap", c_function!(bswap)),
        ("tohex", c_function!(tohex)),
    ];
    set_functions(frame, &functions);
}

/// An argument's lowest 32 bits: of a number that is rounded to the next whole one, to the even one between two.
fn bits(frame: &mut Frame<'_>, arg: usize) -> Result<u32, Raise> {
    let number = frame.arg_number(arg)?;
    // Adding 2^52 · 1.5 leaves the rounded number in the lowest bits, also of what is far too large.
    Ok((number + 6_755_399_441_055_744.0).to_bits() as u32)
}
fn answer(frame: &mut Frame<'_>, value: u32) -> Answer {
    frame.push_number(f64::from(value.cast_signed()));
    Ok(1)
}
fn fold(frame: &mut Frame<'_>, with: impl Fn(u32, u32) -> u32) -> Answer {
    let mut value = bits(frame, 1)?;
    // From the last one on: of several that are no numbers it is named.
    for arg in (2..=frame.args()).rev() {
        value = with(value, bits(frame, arg)?);
    }
    answer(frame, value)
}
fn shift(frame: &mut Frame<'_>, with: impl Fn(u32, u32) -> u32) -> Answer {
    let (value, by) = (bits(frame, 1)?, bits(frame, 2)?);
    answer(frame, with(value, by & 31))
}

fn tobit(frame: &mut Frame<'_>) -> Answer {
    let value = bits(frame, 1)?;
    answer(frame, value)
}
fn bnot(frame: &mut Frame<'_>) -> Answer {
    let value = bits(frame, 1)?;
    answer(frame, !value)
}
fn band(frame: &mut Frame<'_>) -> Answer {
    fold(frame, |one, two| one & two)
}
fn bor(frame: &mut Frame<'_>) -> Answer {
    fold(frame, |one, two| one | two)
}
fn bxor(frame: &mut Frame<'_>) -> Answer {
    fold(frame, |one, two| one ^ two)
}
fn lshift(frame: &mut Frame<'_>) -> Answer {
    shift(frame, |value, by| value << by)
}
fn rshift(frame: &mut Frame<'_>) -> Answer {
    shift(frame, |value, by| value >> by)
}
fn arshift(frame: &mut Frame<'_>) -> Answer {
    shift(frame, |value, by| (value.cast_signed() >> by).cast_unsigned())
}
fn rol(frame: &mut Frame<'_>) -> Answer {
    shift(frame, u32::rotate_left)
}
fn ror(frame: &mut Frame<'_>) -> Answer {
    shift(frame, u32::rotate_right)
}
fn bswap(frame: &mut Frame<'_>) -> Answer {
    let value = bits(frame, 1)?;
    answer(frame, value.swap_bytes())
}

fn tohex(frame: &mut Frame<'_>) -> Answer {
    let value = bits(frame, 1)?;
    let digits = if frame.args() < 2 { 8 } else { bits(frame, 2)?.cast_signed() };
    let count = digits.unsigned_abs().min(8) as usize;
    let text = if digits < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    frame.push_bytes(&text.as_bytes()[8 - count..]);
    Ok(1)
}
