//! Owns: the commands that set, show and remove the expiry of a key. Does not own: expiry itself (`weft_store`), times
//! in the options of SET (`crate::commands::common::expiry`).

use crate::args::Args;
use crate::commands::common::expiry::{self, Conditions, EX, EXAT, PX, PXAT, Unit};
use crate::context::Context;
use crate::error::Result;
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("EXPIRE", Scope::Keys, expire),
    ("PEXPIRE", Scope::Keys, pexpire),
    ("EXPIREAT", Scope::Keys, expireat),
    ("PEXPIREAT", Scope::Keys, pexpireat),
    ("TTL", Scope::Keys, ttl),
    ("PTTL", Scope::Keys, pttl),
    ("EXPIRETIME", Scope::Keys, expiretime),
    ("PEXPIRETIME", Scope::Keys, pexpiretime),
    ("PERSIST", Scope::Keys, persist),
];

/// An argument that fits in 32 bits: a database.
pub(super) fn i32_argument(args: &Args<'_>, index: usize) -> Result<i64> {
    args.int_in(index, i64::from(i32::MIN)..=i64::from(i32::MAX))
}

fn expire(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    set_expiry(context, args, sink, EX)
}

fn pexpire(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    set_expiry(context, args, sink, PX)
}

fn expireat(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    set_expiry(context, args, sink, EXAT)
}

fn pexpireat(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    set_expiry(context, args, sink, PXAT)
}

fn set_expiry(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    unit: Unit,
) -> Result {
    let conditions = Conditions::read(args, 3..args.len())?;
    let at_ms = any_time(args, 2, unit, context.now_ms)?;
    let (key, has_come) = (context.key(args, 1), context.has_come());
    let (shard, mut op) = context.shard(&key)?;
    let Some(old_ms) = shard.expire_ms(&mut op, &key) else {
        sink.int(0);
        return Ok(());
    };
    if !conditions.hold(old_ms, at_ms) {
        sink.int(0);
        return Ok(());
    }
    if has_come(at_ms) {
        context.expire_now(&key)?;
    } else {
        shard.set_expire_ms(&mut op, &key, Some(at_ms));
        context.notify(notify::GENERIC, "expire", &key);
    }
    sink.int(1);
    Ok(())
}

/// A time argument as milliseconds since 1970. It may lie in the past, and what is
/// before all others counts as the first.
fn any_time(args: &Args<'_>, index: usize, unit: Unit, now_ms: u64) -> Result<u64> {
    let value = args.int(index)?;
    let ms = if unit.seconds { value.checked_mul(1000) } else { Some(value) };
    let base = if unit.relative { now_ms } else { 0 };
    let ms = ms.and_then(|ms| ms.checked_add_unsigned(base)).ok_or_else(|| expiry::invalid(args))?;
    Ok(u64::try_from(ms).unwrap_or(0).max(expiry::FIRST_MS))
}

fn ttl(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    show_expiry(context, args, sink, EX)
}

fn pttl(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    show_expiry(context, args, sink, PX)
}

fn expiretime(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    show_expiry(context, args, sink, EXAT)
}

fn pexpiretime(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    show_expiry(context, args, sink, PXAT)
}

/// −2 without the key, −1 without an expiry; seconds are rounded to the nearest.
fn show_expiry(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    unit: Unit,
) -> Result {
    let (key, now_ms) = (context.key(args, 1), context.now_ms);
    let (shard, mut op) = context.shard(&key)?;
    op.touch = false;
    if shard.get(&mut op, &key).is_none() {
        sink.int(-2);
        return Ok(());
    }
    let Some(at_ms) = shard.expire_ms(&mut op, &key).flatten() else {
        sink.int(-1);
        return Ok(());
    };
    let ms = if unit.relative { at_ms.saturating_sub(now_ms) } else { at_ms };
    let shown = if unit.seconds { ms.saturating_add(500) / 1000 } else { ms };
    sink.int(i64::try_from(shown).unwrap_or(i64::MAX));
    Ok(())
}

fn persist(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key)?;
    let expires = shard.expire_ms(&mut op, &key).flatten().is_some();
    if expires {
        shard.set_expire_ms(&mut op, &key, None);
        context.notify(notify::GENERIC, "persist", &key);
    }
    sink.int(i64::from(expires));
    Ok(())
}
