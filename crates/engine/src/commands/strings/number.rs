//! Owns: the commands that take a string as a number. Does not own: the arithmetic (`weft_store`, `crate::extended`).

use weft_store::{Expiry, NewValue, ValueRef};

use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::extended::{self, Extended, Parsed};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("INCR", Scope::Keys, incr),
    ("DECR", Scope::Keys, decr),
    ("INCRBY", Scope::Keys, incrby),
    ("DECRBY", Scope::Keys, decrby),
    ("INCRBYFLOAT", Scope::Keys, incrbyfloat),
];

fn incr(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    increment(context, args, sink, 1)
}

fn decr(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    increment(context, args, sink, -1)
}

fn incrby(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let by = args.int(2)?;
    increment(context, args, sink, by)
}

fn decrby(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let by = args.int(2)?.checked_neg().ok_or_else(|| Error::err("decrement would overflow"))?;
    increment(context, args, sink, by)
}

#[inline]
fn increment(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, by: i64) -> Result {
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key)?;
    let value = shard.increment(&mut op, &key, by)?;
    context.notify(notify::STRING, "incrby", &key);
    sink.int(value);
    Ok(())
}

fn incrbyfloat(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key)?;
    let old = match shard.peek(&mut op, &key) {
        None => Parsed::Finite(Extended::from(0)),
        Some(ValueRef::Int(value)) => Parsed::Finite(Extended::from(value)),
        Some(ValueRef::Bytes(bytes)) => parse(bytes)?,
        Some(ValueRef::Shared(bytes)) => parse(bytes.as_slice())?,
        Some(_) => return Err(ErrorCode::WrongType.into()),
    };
    let text = add(old, parse(args.bytes(2))?)?;
    // The result is kept as text, also where it happens to be a whole number.
    let (garbage, _) = shard.set(&mut op, &key, NewValue::text(text.as_bytes()), Expiry::Keep);
    context.discard(garbage);
    context.notify(notify::STRING, "incrbyfloat", &key);
    sink.bulk(text.as_bytes());
    Ok(())
}

fn parse(text: &[u8]) -> Result<Parsed> {
    extended::parse(text).ok_or_else(|| ErrorCode::NotAFloat.into())
}

/// The sum as INCRBYFLOAT and HINCRBYFLOAT answer it.
pub(crate) fn add(one: Parsed, other: Parsed) -> Result<String> {
    let sum = match (one, other) {
        (Parsed::Finite(one), Parsed::Finite(other)) => one.checked_add(other),
        _ => None,
    };
    sum.map(Extended::text).ok_or_else(|| Error::err("increment would produce NaN or Infinity"))
}
