//! Owns: the list commands, blocking ones included. Does not own: the structure (`weft_store::list`).

use std::sync::atomic::Ordering::Relaxed;
use weft_store::{Changed, End, ListLimit, ObjectRef, ValueRef};

use crate::args::Args;
use crate::blocking::Empty;
use crate::context::Context;
use crate::error::{Error, ErrorCode};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(super) const LIST: &[Entry] = &[
    ("LPUSH", Scope::Keys, lpush),
    ("RPUSH", Scope::Keys, rpush),
    ("LLEN", Scope::Keys, llen),
    ("BLPOP", Scope::Keys, blpop),
    ("BRPOP", Scope::Keys, brpop),
];

fn limit(context: &Context<'_, '_>) -> ListLimit {
    ListLimit::from_config(context.engine.settings.list_max_listpack_size.load(Relaxed))
}

fn lpush(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    push(context, args, sink, (End::Front, true))
}

fn rpush(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    push(context, args, sink, (End::Back, true))
}

fn push(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    (end, create): (End, bool),
) -> Result<(), Error> {
    let key = context.key(args, 1);
    let limit = limit(context);
    let (shard, mut op) = context.shard(&key);
    let len = shard.change_list(&mut op, &key, create, |list| {
        args.rest(2).for_each(|element| list.push(end, element, limit));
        Changed::yes(list.len())
    })?;
    if len.is_some() {
        let event = if end == End::Front { "lpush" } else { "rpush" };
        context.notify(notify::LIST, event, &key);
    }
    sink.count(len.unwrap_or(0));
    Ok(())
}

fn llen(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key);
    match shard.get(&mut op, &key) {
        None => sink.int(0),
        Some(ValueRef::Object(ObjectRef::List(list))) => sink.count(list.len()),
        Some(_) => return Err(ErrorCode::WrongType.into()),
    }
    Ok(())
}

/// A timeout argument: seconds, with a fraction, as milliseconds; 0 waits for ever.
pub(crate) fn timeout_ms(args: &Args<'_>, index: usize) -> Result<u64, Error> {
    let seconds = args.double(index).map_err(|_| Error::err("timeout is not a float or out of range"))?;
    if seconds < 0.0 {
        return Err(Error::err("timeout is negative"));
    }
    let ms = (seconds * 1000.0).ceil();
    if ms > i64::MAX as f64 / 2.0 {
        return Err(Error::err("timeout is out of range"));
    }
    Ok(ms as u64)
}

fn blpop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    pop_first(context, args, sink, End::Front)
}

fn brpop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    pop_first(context, args, sink, End::Back)
}

/// BLPOP and BRPOP: from the first key that has a list.
fn pop_first(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    end: End,
) -> Result<(), Error> {
    let last = args.len() - 1;
    let timeout_ms = timeout_ms(args, last)?;
    for index in 1..last {
        let key = context.key(args, index);
        let (shard, mut op) = context.shard(&key);
        match shard.peek(&mut op, &key) {
            None => continue,
            Some(ValueRef::Object(ObjectRef::List(_))) => {}
            Some(_) => return Err(ErrorCode::WrongType.into()),
        }
        if !context.commit() {
            return Ok(());
        }
        let limit = limit(context);
        let (shard, mut op) = context.shard(&key);
        sink.array(2);
        sink.bulk(key.bytes());
        shard.change_list(&mut op, &key, false, |list| {
            Changed::yes(list.pop(end, limit, |element| sink.bulk(element)))
        })?;
        let emptied = !shard.exists(&mut op, &key);
        context.notify(notify::LIST, if end == End::Front { "lpop" } else { "rpop" }, &key);
        if emptied {
            context.notify(notify::GENERIC, "del", &key);
        }
        return Ok(());
    }
    if !context.may_block() {
        sink.null_array();
        return Ok(());
    }
    let keys: Vec<&[u8]> = (1..last).map(|index| args.bytes(index)).collect();
    context.block(&keys, (timeout_ms, Empty::NullArray), args.to_owned_args())
}
