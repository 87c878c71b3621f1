//! Owns: the commands that take from the ends of sorted sets, blocking ones included. Does not own: waiting
//! (`crate::blocking`).

use weft_store::{Changed, Key};

use super::sorted_set::removed;
use crate::args::Args;
use crate::blocking::timeout_ms;
use crate::commands::common::collection::{NOT_POSITIVE, positive};
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("ZPOPMIN", Scope::Keys, zpopmin),
    ("ZPOPMAX", Scope::Keys, zpopmax),
    ("ZMPOP", Scope::Keys, zmpop),
    ("BZPOPMIN", Scope::Keys, bzpopmin),
    ("BZPOPMAX", Scope::Keys, bzpopmax),
    ("BZMPOP", Scope::Keys, bzmpop),
];

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

impl End {
    /// What is told of taking from it.
    const fn event(self) -> &'static str {
        match self {
            Self::Min => "zpopmin",
            Self::Max => "zpopmax",
        }
    }
}

/// What was taken.
type Taken = Vec<(Vec<u8>, f64)>;

/// How many members the sorted set at a key has; 0 without the key.
fn len(context: &mut Context<'_, '_>, key: &Key<'_>) -> Result<usize> {
    let (shard, mut op) = context.shard(key)?;
    match shard.peek(&mut op, key) {
        None => Ok(0),
        Some(value) => Ok(value.as_sorted_set().ok_or(ErrorCode::WrongType)?.len()),
    }
}

/// Takes up to `count` members from an end, which come in that order.
fn take(context: &mut Context<'_, '_>, key: &Key<'_>, end: End, count: usize) -> Result<Taken> {
    let limits = context.sorted_set_limits();
    let (shard, mut op) = context.shard(key)?;
    let mut taken = Taken::new();
    shard.change_sorted_set(&mut op, key, false, limits, |set| {
        let len = set.view().len();
        let ranks = if end == End::Min { 0..count } else { len.saturating_sub(count)..len };
        set.remove_ranks(ranks, |element| taken.push((element.member.to_vec(), element.score)));
        Changed { result: (), changed: !taken.is_empty() }
    })?;
    if end == End::Max {
        taken.reverse();
    }
    if !taken.is_empty() {
        removed(context, key, end.event())?;
    }
    Ok(taken)
}

fn zpopmin(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    pop(context, args, sink, End::Min)
}

fn zpopmax(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    pop(context, args, sink, End::Max)
}

fn pop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, end: End) -> Result {
    if args.len() > 3 {
        return Err(ErrorCode::Syntax.into());
    }
    let count = if args.len() == 3 { Some(positive(args, 2, NOT_POSITIVE)?) } else { None };
    let key = context.key(args, 1);
    let Some(count) = count else { return pop_one(context, &key, sink, end) };
    let taken = take(context, &key, end, count)?;
    if taken.is_empty() {
        sink.array(0);
    } else {
        sink.pairs(taken.len());
    }
    for (member, score) in &taken {
        sink.pair();
        sink.bulk(member);
        sink.double(*score);
    }
    Ok(())
}

/// Takes one member into the reply, which is flat, also where pairs are not.
fn pop_one(context: &mut Context<'_, '_>, key: &Key<'_>, sink: &mut ReplySink<'_>, end: End) -> Result {
    let limits = context.sorted_set_limits();
    let (shard, mut op) = context.shard(key)?;
    let taken = shard.change_sorted_set(&mut op, key, false, limits, |set| {
        let len = set.view().len();
        let rank = if end == End::Min { 0 } else { len.saturating_sub(1) };
        sink.array(if len == 0 { 0 } else { 2 });
        let count = set.remove_ranks(rank..rank + 1, |element| {
            sink.bulk(element.member);
            sink.double(element.score);
        });
        Changed { result: count > 0, changed: count > 0 }
    })?;
    match taken {
        None => sink.array(0),
        Some(true) => removed(context, key, end.event())?,
        Some(false) => {}
    }
    Ok(())
}

/// What ZMPOP and BZMPOP say behind the keys.
struct Request {
    /// The places of the keys.
    keys: std::ops::Range<usize>,
    end: End,
    count: usize,
}

impl Request {
    /// Reads the number of keys from argument `at`, and what follows.
    fn parse(args: &Args<'_>, at: usize) -> Result<Self> {
        let keys = positive(args, at, "numkeys should be greater than 0")?;
        if keys == 0 {
            return Err(Error::err("numkeys should be greater than 0"));
        }
        let place = at.saturating_add(keys).saturating_add(1);
        let end = match () {
            () if place >= args.len() => return Err(ErrorCode::Syntax.into()),
            () if args.is(place, "MIN") => End::Min,
            () if args.is(place, "MAX") => End::Max,
            () => return Err(ErrorCode::Syntax.into()),
        };
        let mut count = None;
        let mut next = place + 1;
        while next < args.len() {
            if count.is_some() || !args.is(next, "COUNT") || next + 1 == args.len() {
                return Err(ErrorCode::Syntax.into());
            }
            let text = "count should be greater than 0";
            count = Some(positive(args, next + 1, text)?);
            if count == Some(0) {
                return Err(Error::err(text));
            }
            next += 2;
        }
        Ok(Self { keys: at + 1..place, end, count: count.unwrap_or(1) })
    }
}

/// The first of some keys that has members. A waiter does not mind another type until one of its keys has members.
fn first_with_members<'k>(
    context: &mut Context<'_, '_>,
    args: &Args<'k>,
    keys: std::ops::Range<usize>,
) -> Result<Option<Key<'k>>> {
    let mut other_type = None;
    for place in keys {
        let key = context.key(args, place);
        match len(context, &key) {
            Ok(0) => {}
            Ok(_) => return other_type.map_or(Ok(Some(key)), Err),
            Err(error) if context.claim.is_some() => other_type = other_type.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// ZMPOP's answer: the key, and pairs that are arrays on every wire.
fn show_named(sink: &mut ReplySink<'_>, key: &Key<'_>, taken: &Taken) {
    sink.array(2);
    sink.bulk(key.bytes());
    sink.array(taken.len());
    for (member, score) in taken {
        sink.array(2);
        sink.bulk(member);
        sink.double(*score);
    }
}

fn zmpop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let request = Request::parse(args, 1)?;
    let Some(key) = first_with_members(context, args, request.keys)? else {
        sink.null_array();
        return Ok(());
    };
    let taken = take(context, &key, request.end, request.count)?;
    show_named(sink, &key, &taken);
    Ok(())
}

fn bzmpop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let request = Request::parse(args, 2)?;
    let timeout_ms = timeout_ms(context, args, 1)?;
    let Some(key) = first_with_members(context, args, request.keys.clone())? else {
        return context.wait_for_one(args, sink, (request.keys, timeout_ms));
    };
    if context.commit() {
        let taken = take(context, &key, request.end, request.count)?;
        show_named(sink, &key, &taken);
    }
    Ok(())
}

fn bzpopmin(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    blocking_pop(context, args, sink, End::Min)
}

fn bzpopmax(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    blocking_pop(context, args, sink, End::Max)
}

fn blocking_pop(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    end: End,
) -> Result {
    let last = args.len() - 1;
    let timeout_ms = timeout_ms(context, args, last)?;
    let Some(key) = first_with_members(context, args, 1..last)? else {
        return context.wait_for_one(args, sink, (1..last, timeout_ms));
    };
    if context.commit() {
        let taken = take(context, &key, end, 1)?;
        sink.array(3);
        sink.bulk(key.bytes());
        for (member, score) in &taken {
            sink.bulk(member);
            sink.double(*score);
        }
    }
    Ok(())
}
