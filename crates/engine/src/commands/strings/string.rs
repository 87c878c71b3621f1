//! Owns: the commands that set and get whole strings. Does not own: parts of strings (`super::text`), numbers
//! (`super::number`), bits.

use weft_store::{Digits, Expiry, Key, NewValue, ValueRef};

use crate::args::Args;
use crate::commands::common::expiry::{self, Condition, Family, Options};
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("GET", Scope::Keys, get),
    ("SET", Scope::Keys, set),
    ("GETEX", Scope::Keys, getex),
    ("GETDEL", Scope::Keys, getdel),
    ("GETSET", Scope::Keys, getset),
    ("DELIFEQ", Scope::Keys, delifeq),
    ("SETNX", Scope::Keys, setnx),
    ("SETEX", Scope::Keys, setex),
    ("PSETEX", Scope::Keys, psetex),
    ("MGET", Scope::Keys, mget),
    ("MSET", Scope::Keys, mset),
    ("MSETNX", Scope::Keys, msetnx),
    ("MSETEX", Scope::Keys, msetex),
    ("STRLEN", Scope::Keys, strlen),
];

/// The hot path: one look-up, one copy.
fn get(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    get_key(context, &context.key(args, 1), sink)
}

#[inline]
fn get_key(context: &mut Context<'_, '_>, key: &Key<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (shard, mut op) = context.shard(key)?;
    match shard.get(&mut op, key) {
        None => sink.null(),
        Some(ValueRef::Object(_)) => return Err(ErrorCode::WrongType.into()),
        Some(value) => sink.value(&value),
    }
    Ok(())
}

/// The hot path: one look-up, one copy, no option.
fn set(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 3 {
        return set_with(context, args, sink);
    }
    put(context, &context.key(args, 1), args.string(2), Expiry::None)?;
    sink.ok();
    Ok(())
}

/// Sets a key whatever it was. The time, if there is one, has not come.
#[inline]
fn put(context: &mut Context<'_, '_>, key: &Key<'_>, value: NewValue<'_>, expiry: Expiry) -> Result {
    let (shard, mut op) = context.shard(key)?;
    let (garbage, _) = shard.set(&mut op, key, value, expiry);
    context.discard(garbage);
    context.notify(notify::STRING, "set", key);
    if matches!(expiry, Expiry::At(_)) {
        context.notify(notify::GENERIC, "expire", key);
    }
    Ok(())
}

fn set_with(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let options = Options::read(args, 3, Family::Set)?;
    let at_ms = options.at_ms(args, context.now_ms)?;
    let key = context.key(args, 1);
    if options.get {
        // The old value is the answer, whether or not there is a new one.
        get_key(context, &key, sink)?;
    }
    if !holds(context, &key, options.condition, args)? {
        if !options.get {
            sink.null();
        }
        return Ok(());
    }
    match at_ms.filter(|&at_ms| context.has_come()(at_ms)) {
        Some(_) => {
            context.expire_now(&key)?;
        }
        None => put(context, &key, args.string(2), options.expiry(at_ms))?,
    }
    if !options.get {
        sink.ok();
    }
    Ok(())
}

/// Whether a condition of SET holds.
fn holds(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    condition: Condition,
    args: &Args<'_>,
) -> Result<bool> {
    let (shard, mut op) = context.shard(key)?;
    Ok(match condition {
        Condition::Always => true,
        Condition::Absent => !shard.exists(&mut op, key),
        Condition::Present => shard.exists(&mut op, key),
        Condition::Equal(index) => match shard.peek(&mut op, key) {
            None => false,
            Some(value) => equals(&value, args.bytes(index))?,
        },
    })
}

/// Whether a stored string is this one; an object is an error.
fn equals(value: &ValueRef<'_>, other: &[u8]) -> Result<bool> {
    let mut digits = Digits::default();
    let bytes = value.as_bytes(&mut digits).ok_or(ErrorCode::WrongType)?;
    Ok(bytes == other)
}

fn getex(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let options = Options::read(args, 2, Family::GetEx)?;
    let at_ms = options.at_ms(args, context.now_ms)?;
    let key = context.key(args, 1);
    let has_come = context.has_come();
    let (shard, mut op) = context.shard(&key)?;
    match shard.get(&mut op, &key) {
        None => {
            sink.null();
            return Ok(());
        }
        Some(ValueRef::Object(_)) => return Err(ErrorCode::WrongType.into()),
        Some(value) => sink.value(&value),
    }
    match at_ms {
        Some(at_ms) if has_come(at_ms) => {
            context.expire_now(&key)?;
        }
        Some(at_ms) => {
            shard.set_expire_ms(&mut op, &key, Some(at_ms));
            context.notify(notify::GENERIC, "expire", &key);
        }
        None if options.persist && shard.expire_ms(&mut op, &key).flatten().is_some() => {
            shard.set_expire_ms(&mut op, &key, None);
            context.notify(notify::GENERIC, "persist", &key);
        }
        None => {}
    }
    Ok(())
}

fn getdel(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    get_key(context, &key, sink)?;
    context.delete(&key)?;
    Ok(())
}

fn getset(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    get_key(context, &key, sink)?;
    put(context, &key, args.string(2), Expiry::None)?;
    Ok(())
}

fn delifeq(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let equal = holds(context, &key, Condition::Equal(2), args)?;
    sink.int(i64::from(equal && context.delete(&key)?));
    Ok(())
}

fn setnx(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let absent = holds(context, &key, Condition::Absent, args)?;
    if absent {
        put(context, &key, args.string(2), Expiry::None)?;
    }
    sink.int(i64::from(absent));
    Ok(())
}

fn setex(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    set_for(context, args, sink, expiry::EX)
}

fn psetex(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    set_for(context, args, sink, expiry::PX)
}

fn set_for(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    unit: expiry::Unit,
) -> Result {
    let at_ms = expiry::time(args, 2, unit, context.now_ms)?;
    put(context, &context.key(args, 1), args.string(3), Expiry::At(at_ms))?;
    sink.ok();
    Ok(())
}

fn mget(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.array(args.len() - 1);
    for index in 1..args.len() {
        let key = args.nth_key(&context.engine.keyspace, index - 1, index);
        let (shard, mut op) = context.shard(&key)?;
        match shard.get(&mut op, &key) {
            // What is no string is null too.
            Some(value) => sink.value(&value),
            None => sink.null(),
        }
    }
    Ok(())
}

fn mset(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    check_pairs(args)?;
    put_pairs(context, args, 1..args.len(), Expiry::None)?;
    sink.ok();
    Ok(())
}

fn msetnx(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    check_pairs(args)?;
    let free = all_hold(context, args, 1..args.len(), Condition::Absent)?;
    if free {
        put_pairs(context, args, 1..args.len(), Expiry::None)?;
    }
    sink.int(i64::from(free));
    Ok(())
}

fn check_pairs(args: &Args<'_>) -> Result {
    if args.len() % 2 == 1 { Ok(()) } else { Err(Error::arity(args.spec)) }
}

/// Whether a condition holds for the keys of pairs.
fn all_hold(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    pairs: std::ops::Range<usize>,
    condition: Condition,
) -> Result<bool> {
    for index in pairs.step_by(2) {
        if !holds(context, &context.key(args, index), condition, args)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn put_pairs(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    pairs: std::ops::Range<usize>,
    expiry: Expiry,
) -> Result {
    for (at, index) in pairs.step_by(2).enumerate() {
        let key = args.nth_key(&context.engine.keyspace, at, index);
        put(context, &key, args.string(index + 1), expiry)?;
    }
    Ok(())
}

fn msetex(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let bounds = 1..=i64::from(i32::MAX);
    let count = args.int_in_said(1, bounds, "invalid numkeys value or out of range")? as usize;
    let pairs = 2..2 + count * 2;
    if pairs.end > args.len() {
        return Err(ErrorCode::Syntax.into());
    }
    let options = Options::read(args, pairs.end, Family::MSetEx)?;
    let at_ms = options.at_ms(args, context.now_ms)?;
    if !all_hold(context, args, pairs.clone(), options.condition)? {
        sink.int(0);
        return Ok(());
    }
    put_pairs(context, args, pairs.clone(), options.expiry(at_ms))?;
    if at_ms.is_some_and(context.has_come()) {
        // The keys are set and gone at once, and both is told.
        for index in pairs.step_by(2) {
            let key = context.key(args, index);
            let (shard, mut op) = context.shard(&key)?;
            // They have that time already, and did not go by themselves.
            op.sees_expired = true;
            if let Some(garbage) = shard.expire(&mut op, &key) {
                context.discard(garbage);
            }
        }
    }
    sink.int(1);
    Ok(())
}

fn strlen(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key)?;
    match shard.get(&mut op, &key) {
        None => sink.int(0),
        Some(value) => sink.count(value.string_len().ok_or(ErrorCode::WrongType)?),
    }
    Ok(())
}
