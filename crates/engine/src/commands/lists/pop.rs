//! Owns: taking elements from the ends of lists, and from one list to another. Does not own: waiting for them
//! (`super::block`).

use weft_store::{Changed, End, Key};

use super::{end_argument, is_list, limit, pop_event, push_event};
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::notify;
use crate::reply::ReplySink;

pub(super) fn lpop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    pop(context, args, sink, End::Front)
}

pub(super) fn rpop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    pop(context, args, sink, End::Back)
}

fn pop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, end: End) -> Result {
    let key = context.key(args, 1);
    match args.len() {
        2 => {
            if !take(context, &key, end, |element| sink.bulk(element))? {
                sink.null();
            }
        }
        3 => {
            let count = args.count(2)?;
            if !is_list(context, &key)? {
                sink.null_array();
            } else if count == 0 {
                sink.array(0);
            } else {
                take_many(context, &key, (end, count), sink)?;
            }
        }
        _ => return Err(Error::arity(args.spec)),
    }
    Ok(())
}

/// Takes one element and shows it to `taken`. `false` without a list.
pub(super) fn take(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    end: End,
    taken: impl FnOnce(&[u8]),
) -> Result<bool> {
    let limit = limit(context);
    let (shard, mut op) = context.shard(key)?;
    let emptied = shard.change_list(&mut op, key, false, limit, |list| {
        list.pop(end, taken);
        Changed::yes(list.is_empty())
    })?;
    let Some(emptied) = emptied else { return Ok(false) };
    notify_taken(context, key, end, emptied);
    Ok(true)
}

/// Takes up to `count` elements and answers them as an array.
pub(super) fn take_many(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    (end, count): (End, usize),
    sink: &mut ReplySink<'_>,
) -> Result {
    let limit = limit(context);
    let (shard, mut op) = context.shard(key)?;
    let emptied = shard.change_list(&mut op, key, false, limit, |list| {
        let count = count.min(list.len());
        sink.array(count);
        for _ in 0..count {
            list.pop(end, |element| sink.bulk(element));
        }
        Changed::yes(list.is_empty())
    })?;
    notify_taken(context, key, end, emptied == Some(true));
    Ok(())
}

#[inline]
fn notify_taken(context: &mut Context<'_, '_>, key: &Key<'_>, end: End, emptied: bool) {
    context.notify(notify::LIST, pop_event(end), key);
    if emptied {
        context.notify(notify::GENERIC, "del", key);
    }
}

/// What LMPOP and BLMPOP are asked for.
pub(super) struct Multiple {
    /// The places of the keys.
    pub(super) keys: std::ops::Range<usize>,
    /// Where to take from.
    pub(super) end: End,
    /// How many at most.
    pub(super) count: usize,
}

impl Multiple {
    /// Reads the arguments from the number of keys on.
    pub(super) fn read(args: &Args<'_>, from: usize) -> Result<Self> {
        let text = "numkeys should be greater than 0";
        let keys = args.int_in_said(from, 1..=i64::MAX, text)?;
        let end_at = usize::try_from(keys).ok().and_then(|keys| keys.checked_add(from + 1));
        let end_at = end_at.filter(|&index| index < args.len()).ok_or(ErrorCode::Syntax)?;
        let end = end_argument(args, end_at)?;
        let count = match args.len() - end_at {
            1 => 1,
            3 if args.is(end_at + 1, "COUNT") => {
                let text = "count should be greater than 0";
                args.int_in_said(end_at + 2, 1..=i64::MAX, text)? as usize
            }
            _ => return Err(multiple_error(args, end_at)),
        };
        Ok(Self { keys: from + 1..end_at, end, count })
    }
}

/// What is wrong behind the end: a bad count is told before what comes after it.
fn multiple_error(args: &Args<'_>, end_at: usize) -> Error {
    if args.is(end_at + 1, "COUNT") && end_at + 2 < args.len() {
        let text = "count should be greater than 0";
        if let Err(error) = args.int_in_said(end_at + 2, 1..=i64::MAX, text) {
            return error;
        }
    }
    ErrorCode::Syntax.into()
}

pub(super) fn lmpop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let asked = Multiple::read(args, 1)?;
    for index in asked.keys {
        let key = context.key(args, index);
        if is_list(context, &key)? {
            sink.array(2);
            sink.bulk(key.bytes());
            return take_many(context, &key, (asked.end, asked.count), sink);
        }
    }
    sink.null_array();
    Ok(())
}

pub(super) fn lmove(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let ends = (end_argument(args, 3)?, end_argument(args, 4)?);
    move_one(context, args, sink, ends)
}

pub(super) fn rpoplpush(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    move_one(context, args, sink, (End::Back, End::Front))
}

fn move_one(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    ends: (End, End),
) -> Result {
    let (from, to) = (context.key(args, 1), context.key(args, 2));
    if !is_list(context, &from)? {
        sink.null();
        return Ok(());
    }
    is_list(context, &to)?;
    move_between(context, (&from, &to), ends, sink)
}

/// Moves an element of a list that is there onto one that is there or not, and answers it.
pub(super) fn move_between(
    context: &mut Context<'_, '_>,
    (from, to): (&Key<'_>, &Key<'_>),
    (pop_end, push_end): (End, End),
    sink: &mut ReplySink<'_>,
) -> Result {
    let limit = limit(context);
    let same = from.bytes() == to.bytes();
    let mut element = Vec::new();
    let (shard, mut op) = context.shard(from)?;
    let emptied = shard.change_list(&mut op, from, false, limit, |list| {
        if !same {
            list.pop(pop_end, |bytes| element.extend_from_slice(bytes));
        } else if list.len() == 1 {
            // It is put where it stands: a list that is empty in between would be another one, without an expiry, for
            // whoever follows its effects one by one.
            element.extend(list.view().peek(pop_end).into_iter().flatten());
            list.set(0, &element);
        } else if list.is_compact() {
            // Taken out first: with it twice the list could be too much for one chunk.
            list.pop(pop_end, |bytes| element.extend_from_slice(bytes));
            list.push(push_end, &element);
        } else {
            // Put in first: without it the list could be little enough for one chunk.
            element.extend(list.view().peek(pop_end).into_iter().flatten());
            list.push(push_end, &element);
            list.pop(pop_end, |_| ());
        }
        Changed::yes(list.is_empty())
    })?;
    if !same {
        let (shard, mut op) = context.shard(to)?;
        shard.change_list(&mut op, to, true, limit, |list| {
            list.push(push_end, &element);
            Changed::yes(())
        })?;
    }
    context.notify(notify::LIST, push_event(push_end), to);
    notify_taken(context, from, pop_end, emptied == Some(true));
    sink.bulk(&element);
    Ok(())
}
