//! Owns: the commands about the expiry of fields: HEXPIRE and its like, HTTL and its like, HPERSIST, HSETEX, HGETEX.
//! Does not own: when a field goes (`weft_store`), events of fields that went by themselves.

use weft_store::{Changed, FieldExpiry, HashMut, Key};

use super::hash::{fields_at, look, read};
use crate::args::Args;
use crate::commands::common::expiry::{self, Conditions};
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result, full_name};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("HEXPIRE", Scope::Keys, hexpire),
    ("HPEXPIRE", Scope::Keys, hpexpire),
    ("HEXPIREAT", Scope::Keys, hexpireat),
    ("HPEXPIREAT", Scope::Keys, hpexpireat),
    ("HPERSIST", Scope::Keys, hpersist),
    ("HTTL", Scope::Keys, httl),
    ("HPTTL", Scope::Keys, hpttl),
    ("HEXPIRETIME", Scope::Keys, hexpiretime),
    ("HPEXPIRETIME", Scope::Keys, hpexpiretime),
    ("HSETEX", Scope::Keys, hsetex),
    ("HGETEX", Scope::Keys, hgetex),
];

/// What HEXPIRE and HPERSIST answer for a field.
mod outcome {
    /// There is no such field.
    pub(super) const MISSING: i64 = -2;
    /// The field has no expiry.
    pub(super) const NO_EXPIRY: i64 = -1;
    /// NX, XX, GT or LT does not allow it.
    pub(super) const REFUSED: i64 = 0;
    /// Done.
    pub(super) const DONE: i64 = 1;
    /// The time has come: the field is gone.
    pub(super) const DELETED: i64 = 2;
}

/// An expiry argument as absolute milliseconds. `base_ms` is the present for those that count from it.
fn expire_at(args: &Args<'_>, index: usize, (base_ms, seconds): (u64, bool)) -> Result<u64> {
    let invalid = || Error::err(format!("invalid expire time in '{}' command", full_name(args.spec)));
    let value = args.int(index)?;
    let value = if seconds { value.checked_mul(1000) } else { Some(value) };
    let value = value.filter(|value| *value >= 0).ok_or_else(invalid)?;
    let at = value.checked_add(i64::try_from(base_ms).unwrap_or(i64::MAX)).ok_or_else(invalid)?;
    Ok(at.unsigned_abs().max(expiry::FIRST_MS))
}

/// Where `FIELDS` stands, from argument `from` on. HSETEX and HGETEX look at the key too, as Valkey does: one of that
/// name takes the word's place.
fn fields_word(args: &Args<'_>, from: usize) -> Option<usize> {
    (from..args.len() - 1).find(|&at| args.is(at, "FIELDS"))
}

fn wrong_count() -> Error {
    Error::err("numfields should be greater than 0 and match the provided number of fields")
}

fn hexpire(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let now_ms = context.now_ms;
    expire(context, args, sink, (now_ms, true))
}

fn hpexpire(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let now_ms = context.now_ms;
    expire(context, args, sink, (now_ms, false))
}

fn hexpireat(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    expire(context, args, sink, (0, true))
}

fn hpexpireat(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    expire(context, args, sink, (0, false))
}

fn expire(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    unit: (u64, bool),
) -> Result {
    let word = fields_word(args, 3).ok_or_else(wrong_count)?;
    let conditions = Conditions::read(args, 3..word)?;
    let first = fields_at(args, word)?;
    let at = expire_at(args, 2, unit)?;
    let has_come = context.has_come();
    let mut touched = Touched::default();
    change_fields(context, args, (first, sink, &mut touched), |hash, field| {
        let Some(old) = hash.view().expire_ms(field) else { return outcome::MISSING };
        if !conditions.hold(old, at) {
            return outcome::REFUSED;
        }
        if has_come(at) {
            hash.remove(field, |_| ());
            return outcome::DELETED;
        }
        hash.set_expire_ms(field, Some(at));
        outcome::DONE
    })?;
    let key = context.key(args, 1);
    touched.notify(context, &key, Some(at))?;
    Ok(())
}

/// Fields that a command has changed.
#[derive(Default)]
struct Touched {
    deleted: usize,
    changed: usize,
}

impl Touched {
    const fn any(&self) -> bool {
        self.deleted > 0 || self.changed > 0
    }
    /// Events: fields were given an expiry (or lost it: `None`), or were deleted by it.
    fn notify(&self, context: &mut Context<'_, '_>, key: &Key<'_>, at: Option<u64>) -> Result {
        if self.deleted > 0 {
            context.count_expired_fields(key, self.deleted)?;
            context.notify(notify::HASH, "hexpired", key);
        }
        if self.changed > 0 && self.deleted == 0 {
            context.notify(notify::HASH, if at.is_some() { "hexpire" } else { "hpersist" }, key);
        }
        if self.deleted > 0 && context.is_gone(key)? {
            context.notify(notify::GENERIC, "del", key);
        }
        Ok(())
    }
}

/// Answers an array of outcomes, one for each field from argument `first` on.
fn change_fields(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    (first, sink, touched): (usize, &mut ReplySink<'_>, &mut Touched),
    mut change: impl FnMut(&mut HashMut<'_>, &[u8]) -> i64,
) -> Result {
    let key = context.key(args, 1);
    let limits = context.hash_limits();
    let (shard, mut op) = context.shard(&key)?;
    sink.array(args.len() - first);
    let found = shard.change_hash(&mut op, &key, false, limits, |hash| {
        for field in args.rest(first) {
            let outcome = change(hash, field);
            match outcome {
                outcome::DONE => touched.changed += 1,
                outcome::DELETED => touched.deleted += 1,
                _ => {}
            }
            sink.int(outcome);
        }
        Changed { result: (), changed: touched.any() }
    })?;
    if found.is_none() {
        args.rest(first).for_each(|_| sink.int(outcome::MISSING));
    }
    Ok(())
}

fn hpersist(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if !args.is(2, "FIELDS") {
        return Err(ErrorCode::Syntax.into());
    }
    let first = fields_at(args, 2)?;
    let mut touched = Touched::default();
    change_fields(context, args, (first, sink, &mut touched), |hash, field| {
        match hash.view().expire_ms(field) {
            None => outcome::MISSING,
            Some(None) => outcome::NO_EXPIRY,
            Some(Some(_)) => {
                hash.set_expire_ms(field, None);
                outcome::DONE
            }
        }
    })?;
    let key = context.key(args, 1);
    touched.notify(context, &key, None)?;
    Ok(())
}

fn httl(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let now_ms = context.now_ms;
    show_expiry(context, args, sink, |at| (at.saturating_sub(now_ms) + 500) / 1000)
}

fn hpttl(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let now_ms = context.now_ms;
    show_expiry(context, args, sink, |at| at.saturating_sub(now_ms))
}

fn hexpiretime(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    show_expiry(context, args, sink, |at| (at + 500) / 1000)
}

fn hpexpiretime(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    show_expiry(context, args, sink, |at| at)
}

fn show_expiry(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    show: impl Fn(u64) -> u64,
) -> Result {
    if !args.is(2, "FIELDS") {
        return Err(ErrorCode::Syntax.into());
    }
    // These answer another text than their siblings where the number of fields is wrong.
    args.int(3)?;
    let first = fields_at(args, 2).map_err(|_| ErrorCode::Syntax)?;
    let key = context.key(args, 1);
    let hash = read(context, &key)?;
    sink.array(args.len() - first);
    for field in args.rest(first) {
        sink.int(match hash.and_then(|hash| hash.expire_ms(field)) {
            None => outcome::MISSING,
            Some(None) => outcome::NO_EXPIRY,
            Some(Some(at)) => i64::try_from(show(at)).unwrap_or(i64::MAX),
        });
    }
    Ok(())
}

/// The options of HSETEX and HGETEX, before `FIELDS`.
#[derive(Default)]
struct Options {
    nx: bool,
    xx: bool,
    fnx: bool,
    fxx: bool,
    keep: bool,
    persist: bool,
    /// The argument of EX, PX, EXAT or PXAT, whether it is in seconds, and whether it counts from now.
    expire: Option<(usize, bool, bool)>,
    word: Option<&'static str>,
}

impl Options {
    /// `setting`: of HSETEX, else of HGETEX.
    fn parse(args: &Args<'_>, end: usize, setting: bool) -> Result<Self> {
        const TIMES: [(&str, bool, bool); 4] =
            [("EX", true, true), ("PX", false, true), ("EXAT", true, false), ("PXAT", false, false)];
        let mut all = Self::default();
        let mut at = 2;
        while at < end {
            let time = TIMES.iter().find(|(word, ..)| args.is(at, word));
            // One word for the expiry; the same word may be said again, and the last one counts.
            let free = |word| all.word.is_none_or(|other| other == word);
            match time {
                Some(&(word, seconds, relative)) if free(word) && at + 1 < end => {
                    all.word = Some(word);
                    all.expire = Some((at + 1, seconds, relative));
                    at += 1;
                }
                None if setting && args.is(at, "NX") && !all.xx => all.nx = true,
                None if setting && args.is(at, "XX") && !all.nx => all.xx = true,
                None if setting && args.is(at, "FNX") && !all.fxx => all.fnx = true,
                None if setting && args.is(at, "FXX") && !all.fnx => all.fxx = true,
                None if setting && args.is(at, "KEEPTTL") && free("KEEPTTL") => {
                    (all.keep, all.word) = (true, Some("KEEPTTL"));
                }
                None if !setting && args.is(at, "PERSIST") && free("PERSIST") => {
                    (all.persist, all.word) = (true, Some("PERSIST"));
                }
                _ => return Err(ErrorCode::Syntax.into()),
            }
            at += 1;
        }
        Ok(all)
    }
    /// The absolute time that they ask for.
    fn expire_at(&self, args: &Args<'_>, now_ms: u64) -> Result<Option<u64>> {
        let Some((index, seconds, relative)) = self.expire else { return Ok(None) };
        expire_at(args, index, (if relative { now_ms } else { 0 }, seconds)).map(Some)
    }
}

fn hsetex(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let word = fields_word(args, 1).ok_or_else(wrong_count)?;
    let options = Options::parse(args, word, true)?;
    let count = args.int(word + 1)?;
    let first = word + 2;
    if count < 1
        || usize::try_from(count).ok().and_then(|count| count.checked_mul(2)) != Some(args.len() - first)
    {
        return Err(wrong_count());
    }
    let key = context.key(args, 1);
    let hash = look(context, &key)?;
    let allowed = !(options.nx && hash.is_some() || options.xx && hash.is_none());
    if !allowed {
        sink.int(0);
        return Ok(());
    }
    let now_ms = context.now_ms;
    let at = options.expire_at(args, now_ms)?;
    let fields = || (first..args.len()).step_by(2);
    let hash = look(context, &key)?;
    let has = |index: usize| hash.is_some_and(|hash| hash.contains(args.bytes(index)));
    if options.fnx && fields().any(has) || options.fxx && !fields().all(has) {
        sink.int(0);
        return Ok(());
    }
    set_fields(context, args, (first, &options, at))?;
    sink.int(1);
    Ok(())
}

/// HSETEX after its conditions.
fn set_fields(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    (first, options, at): (usize, &Options, Option<u64>),
) -> Result {
    let key = context.key(args, 1);
    let limits = context.hash_limits();
    let expired = at.is_some_and(context.has_come());
    let expiry = match at {
        _ if options.keep => FieldExpiry::Keep,
        Some(at) => FieldExpiry::At(at),
        None => FieldExpiry::None,
    };
    let mut gone = false;
    if expired && look(context, &key)?.is_none() {
        // The server adds the key and removes it again.
        context.notify(notify::NEW, "new", &key);
    }
    let (shard, mut op) = context.shard(&key)?;
    shard.change_hash(&mut op, &key, !expired, limits, |hash| {
        for index in (first..args.len()).step_by(2) {
            let field = args.bytes(index);
            if !expired {
                hash.set_with(field, args.bytes(index + 1), expiry);
            } else {
                gone |= hash.remove(field, |_| ()).is_some();
            }
        }
        Changed { result: (), changed: !expired || gone }
    })?;
    context.notify(notify::HASH, "hset", &key);
    if at.is_some() {
        context.notify(notify::HASH, "hexpire", &key);
    }
    if expired {
        context.count_expired_fields(&key, (args.len() - first) / 2)?;
        context.notify(notify::HASH, "hexpired", &key);
        context.notify_if_gone(&key)?;
    }
    Ok(())
}

fn hgetex(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let word = fields_word(args, 1).ok_or_else(wrong_count)?;
    let options = Options::parse(args, word, false)?;
    let first = fields_at(args, word)?;
    let key = context.key(args, 1);
    // The type is looked at before the time.
    read(context, &key)?;
    let has_come = context.has_come();
    let at = options.expire_at(args, context.now_ms)?;
    let limits = context.hash_limits();
    let mut touched = Touched::default();
    let (shard, mut op) = context.shard(&key)?;
    sink.array(args.len() - first);
    let found = shard.change_hash(&mut op, &key, false, limits, |hash| {
        for field in args.rest(first) {
            match hash.view().get(field) {
                Some(value) => sink.bulk(value),
                None => {
                    sink.null();
                    continue;
                }
            }
            match at {
                Some(at) if has_come(at) => {
                    hash.remove(field, |_| ());
                    touched.deleted += 1;
                }
                Some(at) => {
                    hash.set_expire_ms(field, Some(at));
                    touched.changed += 1;
                }
                None if options.persist && hash.view().expire_ms(field).flatten().is_some() => {
                    hash.set_expire_ms(field, None);
                    touched.changed += 1;
                }
                None => {}
            }
        }
        Changed { result: (), changed: touched.any() }
    })?;
    if found.is_none() {
        args.rest(first).for_each(|_| sink.null());
    }
    touched.notify(context, &key, at)?;
    Ok(())
}
