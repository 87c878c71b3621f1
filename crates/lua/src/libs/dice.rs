//! Owns: `math.random` and `math.randomseed`: the same sequence on every machine, as `lrand48` gives it. Does not own:
//! the rest of `math`, which is Lua's.

use crate::frame::{Answer, Frame, c_function};
use crate::libs::replace_functions;

/// The generator's state: 48 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice(u64);

impl Default for Dice {
    fn default() -> Self {
        Self(0x1234_ABCD_330E)
    }
}

impl Dice {
    /// A number below 2^31.
    const fn roll(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & ((1 << 48) - 1);
        (self.0 >> 17) as u32
    }
    const fn seed(&mut self, seed: u32) {
        self.0 = ((seed as u64) << 16) | 0x330E;
    }
}

pub(super) fn open(frame: &mut Frame<'_>, names: i32) {
    replace_functions(
        frame,
        names,
        "math",
        &[("random", c_function!(random)), ("randomseed", c_function!(randomseed))],
    );
}

const MAX: u32 = i32::MAX as u32;

fn random(frame: &mut Frame<'_>) -> Answer {
    let share = f64::from(frame.shared().dice.roll() % MAX) / f64::from(MAX);
    let number = match frame.args() {
        0 => share,
        1 => {
            let upper = f64::from(frame.arg_int(1, None)?);
            if upper < 1.0 {
                return Err(frame.arg_error(1, "interval is empty"));
            }
            (share * upper).floor() + 1.0
        }
        2 => {
            let (lower, upper) = (frame.arg_int(1, None)?, frame.arg_int(2, None)?);
            if lower > upper {
                return Err(frame.arg_error(2, "interval is empty"));
            }
            (share * (f64::from(upper) - f64::from(lower) + 1.0)).floor() + f64::from(lower)
        }
        _ => return Err(frame.error("wrong number of arguments")),
    };
    frame.push_number(number);
    Ok(1)
}

fn randomseed(frame: &mut Frame<'_>) -> Answer {
    let seed = frame.arg_integer(1)?;
    frame.shared().dice.seed(seed as u32);
    Ok(0)
}
