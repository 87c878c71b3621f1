//! Owns: the string commands. Does not own: bits inside strings.

use weft_store::{Expiry, NewValue, ValueRef};

use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode};
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;

pub(super) const LIST: &[Entry] = &[("GET", Scope::Keys, get), ("SET", Scope::Keys, set)];

fn get(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key);
    match shard.get(&mut op, &key) {
        None => sink.null(),
        Some(ValueRef::Object(_)) => return Err(ErrorCode::WrongType.into()),
        Some(value) => sink.value(&value),
    }
    Ok(())
}

fn set(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key);
    let (garbage, _) = shard.set(&mut op, &key, NewValue::string(args.bytes(2)), Expiry::None);
    context.discard(garbage);
    sink.ok();
    Ok(())
}
