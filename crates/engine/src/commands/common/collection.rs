//! Owns: what the commands of hashes, sets and sorted sets have in common: limits, options of the scans, counts, random
//! choices. Does not own: any command.

use std::sync::atomic::Ordering::Relaxed;

use weft_store::{Expiry, HashLimits, Key, NewValue, Object, SetLimits, SortedSetLimits, ValueRef, XorShift};

use crate::args::Args;
use crate::context::{Context, Locked};
use crate::error::{Error, ErrorCode, Result};
use crate::glob;
use crate::notify;
use crate::reply::ReplySink;

/// Elements that a negative count may ask for, which may be more than the collection has: a reply of some 100 MiB.
const RANDOM_COUNT_MAX: usize = 1 << 22;
/// Elements of a scan's step without COUNT.
const SCAN_COUNT: usize = 10;

impl Context<'_, '_> {
    pub(crate) fn hash_limits(&self) -> HashLimits {
        let settings = &self.engine.settings;
        HashLimits {
            entries_max: settings.hash_max_listpack_entries.load(Relaxed),
            value_bytes_max: settings.hash_max_listpack_value.load(Relaxed),
        }
    }
    pub(crate) fn set_limits(&self) -> SetLimits {
        let settings = &self.engine.settings;
        SetLimits {
            ints_max: settings.set_max_intset_entries.load(Relaxed),
            entries_max: settings.set_max_listpack_entries.load(Relaxed),
            value_bytes_max: settings.set_max_listpack_value.load(Relaxed),
        }
    }
    pub(crate) fn sorted_set_limits(&self) -> SortedSetLimits {
        let settings = &self.engine.settings;
        SortedSetLimits {
            entries_max: settings.zset_max_listpack_entries.load(Relaxed),
            value_bytes_max: settings.zset_max_listpack_value.load(Relaxed),
        }
    }

    /// A key's value, borrowed together with those of other keys, after each was looked up.
    pub(crate) fn view(&self, key: &Key<'_>) -> Option<ValueRef<'_>> {
        match &self.locked {
            Locked::Key(guard) if guard.is_of(key) => guard.view(self.db, key, self.seen_ms()),
            Locked::Guards(guards) | Locked::World(_, guards) => guards.view(self.db, key, self.seen_ms()),
            Locked::Key(_) | Locked::Batch(_) | Locked::Nothing => None,
        }
    }

    /// Makes a key hold the result of a …STORE command, with its event; an empty one removes the key.
    pub(crate) fn store(&mut self, key: &Key<'_>, (class, event): (u32, &str), result: Object) -> Result {
        let (shard, mut op) = self.shard(key)?;
        if result.is_empty() {
            let Some(garbage) = shard.remove(&mut op, key) else { return Ok(()) };
            self.discard(garbage);
            self.notify(notify::GENERIC, "del", key);
            return Ok(());
        }
        let (garbage, _) = shard.set(&mut op, key, NewValue::Object(Box::new(result)), Expiry::None);
        self.discard(garbage);
        self.notify(class, event, key);
        Ok(())
    }

    /// Counts fields that were removed because they were given a time that has come.
    pub(crate) fn count_expired_fields(&mut self, key: &Key<'_>, count: usize) -> Result {
        let (shard, mut op) = self.shard(key)?;
        shard.count_expired_fields(&mut op, count);
        Ok(())
    }

    /// Whether a key is gone, after a change that may have emptied it.
    pub(crate) fn is_gone(&mut self, key: &Key<'_>) -> Result<bool> {
        let (shard, mut op) = self.shard(key)?;
        Ok(!shard.exists(&mut op, key))
    }

    /// Tells of `del` if the key has gone with what was taken out of it. Looks only if anybody wants to know.
    pub(crate) fn notify_if_gone(&mut self, key: &Key<'_>) -> Result {
        if self.engine.events() & notify::GENERIC != 0 && self.is_gone(key)? {
            self.notify(notify::GENERIC, "del", key);
        }
        Ok(())
    }

    /// Lends the worker's dice together with the rest of the context.
    pub(crate) fn with_dice<R>(&mut self, work: impl FnOnce(&mut Self, &mut XorShift) -> R) -> R {
        let mut dice = self.local.rng.clone();
        let result = work(self, &mut dice);
        self.local.rng = dice;
        result
    }
}

/// The options of HSCAN, SSCAN and ZSCAN.
pub(crate) struct ScanOptions<'a> {
    pub(crate) count: usize,
    pattern: Option<&'a [u8]>,
    /// NOVALUES or NOSCORES.
    pub(crate) names_only: bool,
}

impl ScanOptions<'_> {
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name))
    }
}

/// A cursor argument, in the forms that C's `strtoull` reads; a negative one, which that reads too, is none.
pub(crate) fn cursor(args: &Args<'_>, index: usize) -> Result<u64> {
    let text = args.bytes(index).trim_ascii_start();
    let digits = match text {
        [b'+', digits @ ..] => digits,
        [b'-', zeros @ ..] if zeros.iter().all(|&byte| byte == b'0') => zeros,
        digits => digits,
    };
    let value = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
    value.and_then(|digits| digits.parse().ok()).ok_or_else(|| Error::err("invalid cursor"))
}

/// A scan's cursor: argument 2.
pub(crate) fn scan_cursor(args: &Args<'_>) -> Result<u64> {
    cursor(args, 2)
}

/// A scan's options, behind the cursor. `names_only` is the option of the type: `NOVALUES`, `NOSCORES` or none.
pub(crate) fn scan_options<'a>(args: &Args<'a>, names_only: &str) -> Result<ScanOptions<'a>> {
    let mut options = ScanOptions { count: SCAN_COUNT, pattern: None, names_only: false };
    let mut at = 3;
    while at < args.len() {
        let more = at + 1 < args.len();
        if more && args.is(at, "COUNT") {
            let count = args.int(at + 1)?;
            if count < 1 {
                return Err(ErrorCode::Syntax.into());
            }
            options.count = usize::try_from(count).unwrap_or(usize::MAX);
            at += 2;
        } else if more && args.is(at, "MATCH") {
            options.pattern = Some(args.bytes(at + 1)).filter(|pattern| *pattern != b"*");
            at += 2;
        } else if args.is(at, "NOVALUES") || args.is(at, "NOSCORES") {
            if !args.is(at, names_only) {
                return Err(Error::err(if args.is(at, "NOVALUES") {
                    "NOVALUES option can only be used in HSCAN"
                } else {
                    "NOSCORES option can only be used in ZSCAN"
                }));
            }
            options.names_only = true;
            at += 1;
        } else {
            return Err(ErrorCode::Syntax.into());
        }
    }
    Ok(options)
}

/// The answer to a scan of a key that is not there.
pub(crate) fn scan_nothing(sink: &mut ReplySink<'_>) {
    sink.array(2);
    sink.bulk(b"0");
    sink.array(0);
}

/// How many random elements are asked for, and whether they may repeat (a negative count), in argument 2; and whether
/// the word behind it is there, which asks for two values for each.
pub(crate) fn random_count(args: &Args<'_>, word: &str) -> Result<(usize, bool, bool)> {
    let count = args.int(2)?;
    if count == i64::MIN {
        return Err(Error::err(
            "value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ));
    }
    let paired = args.len() > 3;
    if args.len() > 4 || paired && !args.is(3, word) {
        return Err(ErrorCode::Syntax.into());
    }
    if paired && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(Error::err("value is out of range"));
    }
    Ok((usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX), count < 0, paired))
}

/// Refuses a reply of more elements than there are that would be too large. A collection that is not there has none.
pub(crate) fn check_random(count: usize, repeat: bool) -> Result {
    if repeat && count > RANDOM_COUNT_MAX {
        let text = format!("a reply has at most {RANDOM_COUNT_MAX} random elements");
        return Err(Error::new(ErrorCode::Limit, text));
    }
    Ok(())
}

/// A count that must not be negative.
pub(crate) fn positive(args: &Args<'_>, index: usize, text: &'static str) -> Result<usize> {
    let count = args.int(index).ok().and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(|| Error::err(text))
}

/// What [`positive`] says where Valkey has no better text.
pub(crate) const NOT_POSITIVE: &str = "value is out of range, must be positive";

/// A number of keys that the arguments announce at `index`, checked against the arguments that are there.
pub(crate) fn key_count(args: &Args<'_>, index: usize) -> Result<usize> {
    let count = args.int_or(index, ErrorCode::Generic);
    let count = count.map_err(|_| Error::err("numkeys should be greater than 0"))?;
    if count < 1 {
        return Err(Error::err("numkeys should be greater than 0"));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > args.len() - index - 1 {
        return Err(Error::err("Number of keys can't be greater than number of args"));
    }
    Ok(count)
}
