//! Owns: the options that SET, GETEX, MSETEX and their likes have in common: conditions and times, read from arguments
//! in any order. Does not own: what follows from them.
//!
//! Times are read here as Valkey reads them: positive, in seconds or milliseconds, relative to now or absolute, without
//! overflow.

use weft_store::Expiry;

use crate::args::Args;
use crate::error::{Error, Result, full_name};

/// The first time that something can end at: before it lies what who brings keys in looks at, and nothing has ended.
pub(crate) const FIRST_MS: u64 = 1;

/// Which options a command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// SET: conditions, IFEQ, GET, times, KEEPTTL.
    Set,
    /// GETEX: times, PERSIST.
    GetEx,
    /// MSETEX: NX and XX, times, KEEPTTL.
    MSetEx,
}

/// When a value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Always.
    Always,
    /// NX: the key is not there.
    Absent,
    /// XX: the key is there.
    Present,
    /// IFEQ: the key holds the string at this place of the arguments.
    Equal(usize),
}

/// NX, XX, GT and LT: under which conditions something gets an expiry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conditions {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Conditions {
    /// Reads the arguments of these places.
    pub(crate) fn read(args: &Args<'_>, places: std::ops::Range<usize>) -> Result<Self> {
        let mut all = Self::default();
        for at in places {
            let known = [("NX", &mut all.nx), ("XX", &mut all.xx), ("GT", &mut all.gt), ("LT", &mut all.lt)];
            let Some((_, flag)) = known.into_iter().find(|(word, _)| args.is(at, word)) else {
                let shown = String::from_utf8_lossy(args.bytes(at));
                return Err(Error::err(format!("Unsupported option {shown}")));
            };
            *flag = true;
        }
        if all.nx && (all.xx || all.gt || all.lt) {
            let text = "NX and XX, GT or LT options at the same time are not compatible";
            return Err(Error::err(text));
        }
        if all.gt && all.lt {
            return Err(Error::err("GT and LT options at the same time are not compatible"));
        }
        Ok(all)
    }

    /// Whether they hold for what has this expiry. No expiry is later than any.
    pub(crate) fn hold(self, old_ms: Option<u64>, new_ms: u64) -> bool {
        match old_ms {
            Some(old_ms) => !(self.nx || self.gt && new_ms <= old_ms || self.lt && new_ms >= old_ms),
            None => !(self.xx || self.gt),
        }
    }
}

/// What a time is counted in and from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Seconds, else milliseconds.
    pub(crate) seconds: bool,
    /// From now, else from 1970.
    pub(crate) relative: bool,
}

/// EX, SETEX.
pub(crate) const EX: Unit = Unit { seconds: true, relative: true };
/// PX, PSETEX.
pub(crate) const PX: Unit = Unit { seconds: false, relative: true };
/// EXAT.
pub(crate) const EXAT: Unit = Unit { seconds: true, relative: false };
/// PXAT.
pub(crate) const PXAT: Unit = Unit { seconds: false, relative: false };

/// Options as they were given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// NX, XX, IFEQ.
    pub(crate) condition: Condition,
    /// GET.
    pub(crate) get: bool,
    /// KEEPTTL.
    pub(crate) keep: bool,
    /// PERSIST.
    pub(crate) persist: bool,
    /// EX, PX, EXAT, PXAT, and the place of the time.
    pub(crate) time: Option<(Unit, usize)>,
}

impl Options {
    /// Reads the options from argument `from` on. An option may be repeated, but not together with another of its kind.
    pub(crate) fn read(args: &Args<'_>, from: usize, family: Family) -> Result<Self> {
        let mut options =
            Self { condition: Condition::Always, get: false, keep: false, persist: false, time: None };
        let mut index = from;
        while index < args.len() {
            index = options.read_one(args, index, family).ok_or(crate::error::ErrorCode::Syntax)?;
        }
        Ok(options)
    }

    /// Reads one option and gives the place behind it; nothing if it does not belong here.
    fn read_one(&mut self, args: &Args<'_>, index: usize, family: Family) -> Option<usize> {
        let word = args.bytes(index);
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let has_next = index + 1 < args.len();
        if let Some(unit) = unit(word) {
            let clashes = self.keep || self.persist || self.time.is_some_and(|(other, _)| other != unit);
            self.time = Some((unit, index + 1));
            return (has_next && !clashes).then_some(index + 2);
        }
        let sets = family != Family::GetEx;
        match () {
            () if sets && is("NX") => self.condition(Condition::Absent)?,
            () if sets && is("XX") => self.condition(Condition::Present)?,
            () if family == Family::Set && is("IFEQ") => {
                let first = self.condition == Condition::Always;
                self.condition = Condition::Equal(index + 1);
                return (has_next && first).then_some(index + 2);
            }
            () if family == Family::Set && is("GET") => self.get = true,
            () if sets && is("KEEPTTL") && self.time.is_none() => self.keep = true,
            () if !sets && is("PERSIST") && self.time.is_none() => self.persist = true,
            () => return None,
        }
        Some(index + 1)
    }

    fn condition(&mut self, condition: Condition) -> Option<()> {
        let free = self.condition == Condition::Always || self.condition == condition;
        self.condition = condition;
        free.then_some(())
    }

    /// The absolute time that was given, if one was.
    pub(crate) fn at_ms(&self, args: &Args<'_>, now_ms: u64) -> Result<Option<u64>> {
        self.time.map(|(unit, index)| time(args, index, unit, now_ms)).transpose()
    }

    /// What becomes of a key's expiry when it is set.
    pub(crate) const fn expiry(&self, at_ms: Option<u64>) -> Expiry {
        match at_ms {
            Some(at_ms) => Expiry::At(at_ms),
            None if self.keep => Expiry::Keep,
            None => Expiry::None,
        }
    }
}

fn unit(word: &[u8]) -> Option<Unit> {
    match word.len() {
        2 if word.eq_ignore_ascii_case(b"EX") => Some(EX),
        2 if word.eq_ignore_ascii_case(b"PX") => Some(PX),
        4 if word.eq_ignore_ascii_case(b"EXAT") => Some(EXAT),
        4 if word.eq_ignore_ascii_case(b"PXAT") => Some(PXAT),
        _ => None,
    }
}

/// A time argument as milliseconds since 1970: it must be positive.
pub(crate) fn time(args: &Args<'_>, index: usize, unit: Unit, now_ms: u64) -> Result<u64> {
    let value = args.int(index)?;
    let ms = if unit.seconds { value.checked_mul(1000) } else { Some(value) };
    let ms = match ms {
        Some(ms) if ms > 0 && unit.relative => ms.checked_add_unsigned(now_ms),
        ms => ms,
    };
    let ms = ms.and_then(|ms| u64::try_from(ms).ok()).filter(|&ms| ms > 0);
    ms.ok_or_else(|| invalid(args))
}

/// `ERR invalid expire time in 'set' command`
#[cold]
pub(crate) fn invalid(args: &Args<'_>) -> Error {
    Error::err(format!("invalid expire time in '{}' command", full_name(args.spec)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OwnedArgs;
    use weft_protocol::table;

    fn read(command: &str, family: Family) -> Result<(Options, Option<u64>)> {
        let spec = table::by_name(command.split(' ').next().unwrap().as_bytes()).unwrap().spec();
        let owned = OwnedArgs::new(spec, command.split(' ').map(str::as_bytes));
        let from = if family == Family::GetEx { 2 } else { 3 };
        let options = Options::read(&owned.args(), from, family)?;
        let at_ms = options.at_ms(&owned.args(), 1000)?;
        Ok((options, at_ms))
    }

    #[test]
    fn options_in_any_order() {
        let (options, at_ms) = read("SET k v get px 5 nx NX", Family::Set).unwrap();
        assert_eq!((options.condition, options.get, at_ms), (Condition::Absent, true, Some(1005)));
        assert_eq!(read("SET k v EXAT 7 EXAT 8", Family::Set).unwrap().1, Some(8000));
        assert_eq!(read("SET k v IFEQ NX", Family::Set).unwrap().0.condition, Condition::Equal(4));
        assert!(read("GETEX k PERSIST", Family::GetEx).unwrap().0.persist);
        for wrong in [
            "NX XX",
            "EX",
            "EX 1 PX 1",
            "KEEPTTL EX 1",
            "EX 1 KEEPTTL",
            "IFEQ a IFEQ a",
            "NX IFEQ a",
            "PERSIST",
            "IFEQ",
        ] {
            let error = read(&format!("SET k v {wrong}"), Family::Set).unwrap_err();
            assert_eq!(error.text, "syntax error", "{wrong}");
        }
        assert!(
            read("GETEX k NX", Family::GetEx).is_err()
                && read("GETEX k PERSIST EX 1", Family::GetEx).is_err()
        );
        for wrong in ["EX 0", "EX -1", "EX 9223372036854775807", "PX 9223372036854775807"] {
            let error = read(&format!("SET k v {wrong}"), Family::Set).unwrap_err();
            assert_eq!(error.text, "invalid expire time in 'set' command", "{wrong}");
        }
    }
}
