//! Owns: LPUSH and its likes, LSET, LINSERT, LREM, LTRIM. Does not own: taking elements out to answer them.

use weft_store::{Changed, End, ListRef};

use super::{as_list, is_list, limit, place, push_event, span};
use crate::args::Args;
use crate::context::Context;
use crate::error::{ErrorCode, Result};
use crate::notify;
use crate::reply::ReplySink;

pub(super) fn lpush(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    push(context, args, sink, (End::Front, true))
}

pub(super) fn rpush(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    push(context, args, sink, (End::Back, true))
}

pub(super) fn lpushx(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    push(context, args, sink, (End::Front, false))
}

pub(super) fn rpushx(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    push(context, args, sink, (End::Back, false))
}

fn push(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    (end, create): (End, bool),
) -> Result {
    let key = context.key(args, 1);
    let limit = limit(context);
    let (shard, mut op) = context.shard(&key)?;
    let len = shard.change_list(&mut op, &key, create, limit, |list| {
        if args.len() > 3 {
            list.expect(args.rest(2).map(<[u8]>::len).sum(), args.len() - 2);
        }
        args.rest(2).for_each(|element| list.push(end, element));
        Changed::yes(list.len())
    })?;
    if len.is_some() {
        context.notify(notify::LIST, push_event(end), &key);
    }
    sink.count(len.unwrap_or(0));
    Ok(())
}

pub(super) fn lset(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    if !is_list(context, &key)? {
        return Err(ErrorCode::NoSuchKey.into());
    }
    let (index, limit) = (args.int(2)?, limit(context));
    let (shard, mut op) = context.shard(&key)?;
    let set = shard.change_list(&mut op, &key, false, limit, |list| match place(index, list.len()) {
        Some(index) => {
            // Counted as if nothing were taken away for it, as Valkey does.
            list.expect(args.bytes(3).len(), 1);
            Changed::yes(list.set(index, args.bytes(3)))
        }
        None => Changed::no(false),
    })?;
    if set != Some(true) {
        return Err(ErrorCode::OutOfRange.into());
    }
    context.notify(notify::LIST, "lset", &key);
    sink.ok();
    Ok(())
}

pub(super) fn linsert(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let behind = args.is(2, "AFTER");
    if !behind && !args.is(2, "BEFORE") {
        return Err(ErrorCode::Syntax.into());
    }
    let (key, limit) = (context.key(args, 1), limit(context));
    let (pivot, element) = (args.bytes(3), args.bytes(4));
    let (shard, mut op) = context.shard(&key)?;
    let len = shard.change_list(&mut op, &key, false, limit, |list| {
        let Some(index) = list.view().iter().position(|other| other == pivot) else {
            return Changed::no(None);
        };
        list.insert(index + usize::from(behind), element);
        Changed::yes(Some(list.len()))
    })?;
    match len {
        None => sink.int(0),
        Some(None) => sink.int(-1),
        Some(Some(len)) => {
            context.notify(notify::LIST, "linsert", &key);
            sink.count(len);
        }
    }
    Ok(())
}

pub(super) fn lrem(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let count = args.int_in(2, -i64::MAX..=i64::MAX)?;
    let (key, limit) = (context.key(args, 1), limit(context));
    let (shard, mut op) = context.shard(&key)?;
    let removed = shard.change_list(&mut op, &key, false, limit, |list| {
        let removed = list.remove(count, args.bytes(3));
        Changed { result: (removed, list.is_empty()), changed: removed > 0 }
    })?;
    let (removed, emptied) = removed.unwrap_or_default();
    if removed > 0 {
        context.notify(notify::LIST, "lrem", &key);
        if emptied {
            context.notify(notify::GENERIC, "del", &key);
        }
    }
    sink.count(removed);
    Ok(())
}

pub(super) fn ltrim(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (start, end) = (args.int(2)?, args.int(3)?);
    let (key, limit) = (context.key(args, 1), limit(context));
    let (shard, mut op) = context.shard(&key)?;
    let Some(len) = as_list(shard.peek(&mut op, &key))?.map(ListRef::len) else {
        sink.ok();
        return Ok(());
    };
    let kept = span(start, end, len);
    context.notify(notify::LIST, "ltrim", &key);
    if kept.is_empty() {
        // The whole list goes when no lock is held.
        context.delete(&key)?;
    } else {
        let (shard, mut op) = context.shard(&key)?;
        shard.change_list(&mut op, &key, false, limit, |list| {
            list.trim(kept.start, kept.end);
            Changed { result: (), changed: kept.len() < len }
        })?;
    }
    sink.ok();
    Ok(())
}
