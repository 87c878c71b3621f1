//! Owns: reading a directive's value: is it of its kind, and how is it shown. Does not own: what follows from it.
//!
//! Every value has a canonical text, which CONFIG GET shows and REWRITE writes, and a number, where its kind has one.

use std::borrow::Cow;

use super::classes;
use super::directive::{Directive, Kind};

/// Addresses to bind at most.
const ADDRESSES_MAX: usize = 16;
/// Save points, percentiles and the like at most.
const WORDS_MAX: usize = 128;

/// A value that has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// As it is shown.
    pub text: Box<[u8]>,
    /// A switch: 0 or 1; a number; bytes; the place among the words; bits. Otherwise 0.
    pub number: i64,
}

impl Value {
    /// A switch.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.number != 0
    }
    /// A number that is not negative, in a narrower type: the most that it can hold if it is too large.
    #[must_use]
    pub fn u32(&self) -> u32 {
        u32::try_from(self.number.max(0)).unwrap_or(u32::MAX)
    }
    /// Bytes or a count.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::try_from(self.number).unwrap_or(0)
    }
    /// The text, where it is UTF-8; what is not is shown as such.
    #[must_use]
    pub fn str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }
    fn number(number: i64) -> Self {
        Self { text: number.to_string().into_bytes().into(), number }
    }
    pub(super) fn of_text(text: impl Into<Vec<u8>>) -> Self {
        Self { text: text.into().into(), number: 0 }
    }
}

/// Why a value is not taken.
pub type Refusal = Cow<'static, str>;

/// Reads a value given as words. `old` is the one before, of which a list of classes keeps those that are not named.
pub fn parse(directive: &Directive, words: &[&[u8]], old: &Value) -> Result<Value, Refusal> {
    let value = parse_kind(directive, words, old)?;
    if let Some((values, why)) = directive.only
        && !values.iter().any(|only| value.text.eq_ignore_ascii_case(only.as_bytes()))
    {
        let shown = |value: &&str| if value.is_empty() { "\"\"".to_string() } else { format!("'{value}'") };
        let or: Vec<String> = values.iter().map(shown).collect();
        return Err(format!("'{}' is not served: {why}; use {}", value.str(), or.join(" or ")).into());
    }
    Ok(value)
}

/// The value of a directive's default text.
///
/// # Panics
/// When a default is not of its kind: a mistake in the table, which every start would show.
pub(super) fn default_of(directive: &Directive) -> Value {
    let nothing = Value::of_text("");
    let words: Vec<&[u8]> = match directive.kind {
        _ if directive.default.is_empty() => vec![b""],
        kind if kind.takes_many() => directive.default.split(' ').map(str::as_bytes).collect(),
        _ => vec![directive.default.as_bytes()],
    };
    parse(directive, &words, &nothing)
        .unwrap_or_else(|why| panic!("the default of {}: {why}", directive.name))
}

fn parse_kind(directive: &Directive, words: &[&[u8]], old: &Value) -> Result<Value, Refusal> {
    if words.len() > WORDS_MAX {
        return Err("too many arguments".into());
    }
    match directive.kind {
        Kind::Flags(all) => flags(all, words),
        Kind::Addresses => addresses(words),
        Kind::SavePoints => save_points(words),
        Kind::OutputLimits => output_limits(words, old),
        Kind::OomScores => oom_scores(words),
        Kind::Percentiles => percentiles(words),
        Kind::Primary => primary(words),
        kind => match *words {
            [word] => parse_one(kind, word),
            _ => Err("wrong number of arguments".into()),
        },
    }
}

fn parse_one(kind: Kind, word: &[u8]) -> Result<Value, Refusal> {
    match kind {
        Kind::Bool => match () {
            () if word.eq_ignore_ascii_case(b"yes") => Ok(Value { text: (*b"yes").into(), number: 1 }),
            () if word.eq_ignore_ascii_case(b"no") => Ok(Value { text: (*b"no").into(), number: 0 }),
            () => Err("argument must be 'yes' or 'no'".into()),
        },
        Kind::Int { min, max } => {
            let number = weft_store::parse_int(word).ok_or("argument couldn't be parsed into an integer")?;
            in_range(number, min, max).map(Value::number)
        }
        Kind::Octal { max } => {
            let number = std::str::from_utf8(word)
                .ok()
                .and_then(|word| i64::from_str_radix(word, 8).ok())
                .ok_or("argument couldn't be parsed as an octal number")?;
            if !(0..=max).contains(&number) {
                return Err(format!("argument must be between 0 and {max:o} inclusive").into());
            }
            Ok(Value { text: format!("{number:o}").into_bytes().into(), number })
        }
        Kind::Memory { min, max } => {
            let signed = if min < 0 { weft_store::parse_int(word) } else { None };
            let number = match bytes(word).or(signed) {
                Some(number) => in_range(number, min, max)?,
                // Valkey reads 64 bits before it looks at the range.
                None if weft_store::parse_int(word).is_none() && is_u64(word) => {
                    return Err(format!("argument must be between {min} and {max} inclusive").into());
                }
                None => return Err(format!("argument must be a memory value{UNITS}").into()),
            };
            Ok(Value::number(number))
        }
        Kind::MemoryOrPercent => memory_or_percent(word),
        Kind::Enum(all) => {
            let at = all.iter().position(|other| word.eq_ignore_ascii_case(other.as_bytes()));
            let at = at.ok_or_else(|| one_of(all))?;
            Ok(Value { text: all[at].as_bytes().into(), number: at as i64 })
        }
        Kind::Text(what) => {
            if !what.is_empty() && word.is_empty() {
                return Err(format!("{what} can't be empty").into());
            }
            if !what.is_empty() && word.contains(&b'/') {
                let form = if what.ends_with("dirname") { "dirname" } else { "filename" };
                return Err(format!("{what} can't be a path, just a {form}").into());
            }
            Ok(Value::of_text(word))
        }
        Kind::Folder if word.is_empty() => Err("dir can't be empty".into()),
        Kind::Folder => Ok(Value::of_text(word)),
        Kind::Events => {
            let flags = std::str::from_utf8(word).ok().and_then(classes::parse);
            let flags = flags.ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
            Ok(Value { text: classes::letters(flags).into_bytes().into(), number: i64::from(flags) })
        }
        _ => Err("wrong number of arguments".into()),
    }
}

fn is_u64(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_digit)
        && std::str::from_utf8(word).is_ok_and(|word| word.parse::<u64>().is_ok())
}

fn in_range(number: i64, min: i64, max: i64) -> Result<i64, Refusal> {
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(format!("argument must be between {min} and {max} inclusive").into())
    }
}

fn one_of(all: &[&str]) -> Refusal {
    format!("argument(s) must be one of the following: {}", all.join(", ")).into()
}

/// What bytes can be written as, behind the text that Valkey has.
const UNITS: &str =
    ": bytes, or a number with k, m, g (powers of 1000), kb, mb, gb or kib, mib, gib (of 1024)";

/// Bytes with a unit: `k` and `kb` are 1000 and 1024, and so on; nothing for anything else, or beyond 63 bits.
#[must_use]
pub fn bytes(word: &[u8]) -> Option<i64> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number: i64 = std::str::from_utf8(&word[..digits]).ok()?.parse().ok()?;
    let unit = match word[digits..].to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" | b"kib" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" | b"mib" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" | b"gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

fn memory_or_percent(word: &[u8]) -> Result<Value, Refusal> {
    if let Some(number) = bytes(word) {
        return Ok(Value::number(number));
    }
    let percent = word.strip_suffix(b"%").and_then(weft_store::parse_int).filter(|percent| *percent >= 0);
    match percent {
        Some(percent) if percent <= 100 => {
            Ok(Value { text: format!("{percent}%").into_bytes().into(), number: -percent })
        }
        Some(_) => Err("percentage argument must be less or equal to 100".into()),
        None => Err(format!("argument must be a memory or percent value{UNITS}").into()),
    }
}

fn is_nothing(words: &[&[u8]]) -> bool {
    matches!(words, [] | [b""])
}

fn joined<T: AsRef<[u8]>>(words: &[T]) -> Vec<u8> {
    words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(&b' ')
}

fn flags(all: &[&str], words: &[&[u8]]) -> Result<Value, Refusal> {
    let mut bits = 0_i64;
    for word in words {
        let at = all.iter().position(|other| word.eq_ignore_ascii_case(other.as_bytes()));
        bits |= at.ok_or_else(|| one_of(all))?.checked_sub(1).map_or(0, |at| 1 << at);
    }
    let bit =
        |name: &str| all.iter().position(|other| *other == name).is_some_and(|at| bits & 1 << (at - 1) != 0);
    if bits != 0 && bit("save") && bit("nosave") {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".into());
    }
    let names: Vec<&str> = (1..all.len()).filter(|at| bits & 1 << (at - 1) != 0).map(|at| all[at]).collect();
    let text = if names.is_empty() { all[0].to_string() } else { names.join(" ") };
    Ok(Value { text: text.into_bytes().into(), number: bits })
}

fn addresses(words: &[&[u8]]) -> Result<Value, Refusal> {
    if is_nothing(words) {
        return Ok(Value::of_text(""));
    }
    if words.len() > ADDRESSES_MAX {
        return Err("Too many bind addresses specified.".into());
    }
    Ok(Value::of_text(joined(words)))
}

fn save_points(words: &[&[u8]]) -> Result<Value, Refusal> {
    if is_nothing(words) {
        return Ok(Value::of_text(""));
    }
    let is_right = |(at, word): (usize, &&[u8])| {
        weft_store::parse_int(word).is_some_and(|number| number >= i64::from(at % 2 == 0))
    };
    if words.len() % 2 == 1 || !words.iter().enumerate().all(is_right) {
        return Err("Invalid save parameters".into());
    }
    Ok(Value::of_text(joined(words)))
}

/// The classes of `client-output-buffer-limit`, in the order in which they are shown.
const CLASSES: [&[u8]; 3] = [b"normal", b"slave", b"pubsub"];

fn output_limits(words: &[&[u8]], old: &Value) -> Result<Value, Refusal> {
    if words.is_empty() || !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    }
    let mut limits = limits_of(old);
    for four in words.chunks_exact(4) {
        let class = if four[0].eq_ignore_ascii_case(b"replica") { b"slave" } else { four[0] };
        let class = CLASSES.iter().position(|other| class.eq_ignore_ascii_case(other));
        let class = class.ok_or("Invalid client class specified in buffer limit configuration.")?;
        let wrong = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        let seconds = weft_store::parse_int(four[3]).filter(|seconds| *seconds >= 0);
        limits[class] = [bytes(four[1]).ok_or(wrong)?, bytes(four[2]).ok_or(wrong)?, seconds.ok_or(wrong)?];
    }
    let parts: Vec<String> = CLASSES
        .iter()
        .zip(limits)
        .map(|(class, [hard, soft, seconds])| {
            format!("{} {hard} {soft} {seconds}", String::from_utf8_lossy(class))
        })
        .collect();
    Ok(Value::of_text(parts.join(" ")))
}

/// Hard bytes, soft bytes and soft seconds of the classes normal, replica and pubsub.
#[must_use]
pub fn limits_of(value: &Value) -> [[i64; 3]; 3] {
    let mut limits = [[0; 3]; 3];
    let words: Vec<&[u8]> = value.text.split(|byte| *byte == b' ').collect();
    for (limits, four) in limits.iter_mut().zip(words.chunks_exact(4)) {
        for (limit, word) in limits.iter_mut().zip(&four[1..]) {
            *limit = weft_store::parse_int(word).unwrap_or(0);
        }
    }
    limits
}

fn oom_scores(words: &[&[u8]]) -> Result<Value, Refusal> {
    if words.len() != 3 {
        return Err("wrong number of arguments".into());
    }
    let is_right =
        |word: &&[u8]| weft_store::parse_int(word).is_some_and(|score| (-2000..=2000).contains(&score));
    if !words.iter().all(is_right) {
        return Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000.".into());
    }
    Ok(Value::of_text(joined(words)))
}

fn percentiles(words: &[&[u8]]) -> Result<Value, Refusal> {
    if is_nothing(words) {
        return Ok(Value::of_text(""));
    }
    let mut texts = Vec::new();
    for word in words {
        let percent = crate::number::parse_double(word)
            .ok_or("Invalid latency-tracking-info-percentiles parameters")?;
        if !(0.0..=100.0).contains(&percent) {
            return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".into());
        }
        texts.push(trimmed(percent).into_bytes());
    }
    Ok(Value::of_text(joined(&texts)))
}

/// A percentage with at most six decimals and no zeros behind them.
#[must_use]
pub fn trimmed(percent: f64) -> String {
    let text = format!("{percent:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn primary(words: &[&[u8]]) -> Result<Value, Refusal> {
    match *words {
        [] | [b""] => Ok(Value::of_text("")),
        [no, one] if no.eq_ignore_ascii_case(b"no") && one.eq_ignore_ascii_case(b"one") => {
            Ok(Value::of_text(""))
        }
        [_, port] if weft_store::parse_int(port).is_none_or(|port| !(0..=65_535).contains(&port)) => {
            Err("Invalid primary port".into())
        }
        [_, _] => Ok(Value::of_text(joined(words))),
        _ => Err("wrong number of arguments".into()),
    }
}
