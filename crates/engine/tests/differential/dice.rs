//! Owns: chance, and the values that commands are filled with: few, so that they meet, and at the edges of what is
//! allowed. Does not own: which command gets which.

use weft_store::{Rng, XorShift};

/// The keys of a round.
pub(crate) const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "a-key-that-is-longer-than-thirty-two-bytes"];
/// Elements, members, fields and short strings. Some are numbers, some differ in case only.
const ELEMENTS: [&str; 12] =
    ["x", "y", "z", "X", "", "10", "-7", "3.5", "hello", "0", "10.0", "\u{e9}\u{e8}"];
/// Integers at the edges of ranges, and what is none.
const INTS: [&str; 18] = [
    "0",
    "1",
    "2",
    "3",
    "5",
    "-1",
    "-2",
    "-3",
    "100",
    "-100",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "4294967296",
    "2147483648",
    "01",
    "1.0",
    "one",
];
/// Doubles, in the forms that are accepted, and some that are not.
const DOUBLES: [&str; 20] = [
    "0",
    "1",
    "-1",
    "2.5",
    "0.1",
    "0.2",
    "1e3",
    "-1.5e-2",
    "inf",
    "-inf",
    "+inf",
    "3.0",
    "1e17",
    "nan",
    "0x10",
    "1e400",
    " 1",
    "",
    "abc",
    "17.000000000000001",
];
/// Seconds for a relative time: nothing that could pass while a round runs. Those that are times differ in what is left
/// of them by `APART`.
const SECONDS: [&str; 8] =
    ["1000", "5000", "99900", "0", "-1", "9223372036854775807", "9223372036854775", "soon"];
/// What is added to a relative time, in seconds, for each that the round had before. Of the same time twice GT and LT
/// would tell whether a millisecond has passed in between, which one server may see and the other not.
const APART: u64 = 300;
/// Absolute seconds: long past or far away.
const UNIX: [&str; 8] =
    ["1", "5", "4102444800", "4102444801", "5000000000", "0", "-5", "9223372036854775807"];
/// Words that stand where they do not belong.
const ODD: [&str; 14] = [
    "",
    "-",
    "0",
    "-1",
    "abc",
    "NX",
    "GET",
    "*",
    "(",
    "\n",
    "9223372036854775808",
    "1.5",
    "nan",
    "WITHSCORES",
];
const PATTERNS: [&str; 10] = ["*", "a*", "?", "[a-c]", "[^a]", "*e*", "", "\\a", "[", "[b-]*"];

/// What the places of some groups remember while a round is made.
#[derive(Default)]
pub(crate) struct Notes {
    /// Records: the field that was named last, whether the next one lies before it, and what kind they are of.
    pub(crate) field: usize,
    pub(crate) back: bool,
    pub(crate) style: usize,
    /// Streams: the entry that was added last.
    pub(crate) entry: usize,
}

/// Chance from a seed: the same seed gives the same round.
pub(crate) struct Dice {
    rng: XorShift,
    /// Relative times that were given.
    times: u64,
    pub(crate) notes: Notes,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = XorShift::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
        (0..8).for_each(|_| {
            rng.next_u64();
        });
        Self { rng, times: 0, notes: Notes { style: seed as usize, ..Notes::default() } }
    }
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.rng.below(bound as u32) as usize
    }
    /// One time in `times`.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
    pub(crate) fn pick<'t, T: ?Sized>(&mut self, list: &[&'t T]) -> &'t T {
        list[self.below(list.len())]
    }
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }
    pub(crate) fn odd(&mut self) -> Vec<u8> {
        self.pick(&ODD).into()
    }

    /// A value for one of the names that all groups know; nothing for another.
    pub(crate) fn place(&mut self, name: &str) -> Option<Vec<u8>> {
        Some(match name {
            "key" => self.pick(&KEYS).into(),
            "value" => self.value(),
            "element" => self.pick(&ELEMENTS).into(),
            "int" => self.pick(&INTS).into(),
            // Mostly within what is there.
            "index" if self.one_in(6) => self.pick(&INTS).into(),
            "index" => (self.below(9) as i64 - 4).to_string().into(),
            "count" if self.one_in(6) => self.pick(&INTS).into(),
            "count" => self.below(5).to_string().into(),
            "double" => self.pick(&DOUBLES).into(),
            "seconds" => self.relative(1),
            "milliseconds" => self.relative(1000),
            "unix" => self.pick(&UNIX).into(),
            "later" => self.pick(&["4102444800", "5000000000"]).into(),
            "unix-ms" => {
                let unix = self.pick(&UNIX);
                if unix.len() == 10 { format!("{unix}123").into() } else { unix.into() }
            }
            "pattern" => self.pick(&PATTERNS).into(),
            "odd" => self.odd(),
            "db" => self.pick(&["0", "0", "0", "1", "1", "16", "-1", "x"]).into(),
            _ => return None,
        })
    }

    /// A relative time that is new to the round; `unit` is how many make a second.
    fn relative(&mut self, unit: u64) -> Vec<u8> {
        let text = self.pick(&SECONDS);
        let Ok(seconds @ 1..=9_223_372_036_854_775) = text.parse::<u64>() else { return text.into() };
        self.times += 1;
        let later = self.times * APART * unit;
        // The largest is at the edge of what is a time in milliseconds, and none in seconds.
        let time = if seconds < 1_000_000 { seconds * unit + later } else { seconds - later };
        time.to_string().into()
    }

    /// A string: an element, a number, something random, or something long.
    fn value(&mut self) -> Vec<u8> {
        match self.below(12) {
            0 => self.pick(&INTS).into(),
            1 => self.pick(&DOUBLES).into(),
            2 => (0..self.below(80)).map(|_| b'a' + self.below(3) as u8).collect(),
            3 => (0..self.below(20)).map(|_| self.below(256) as u8).collect(),
            4 if self.one_in(4) => vec![b'l'; 100 + self.below(9000)],
            _ => self.pick(&ELEMENTS).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_times_of_a_round_lie_apart() {
        let mut dice = Dice::new(7);
        let mut all: Vec<u64> = Vec::new();
        for at in 0..2000 {
            let name = if at % 2 == 0 { "seconds" } else { "milliseconds" };
            let text = String::from_utf8(dice.place(name).unwrap()).unwrap();
            let time = text.parse().ok().filter(|time| (1..=9_223_372_036_854_775).contains(time));
            all.extend(
                time.map(|time: u64| if name == "seconds" { time.saturating_mul(1000) } else { time }),
            );
        }
        all.sort_unstable();
        assert!(all.len() > 500 && all.windows(2).all(|pair| pair[1] - pair[0] >= 100_000), "{all:?}");
    }
}
