//! Owns: the list commands that wait. Does not own: who is served when (`crate::blocking`).
//!
//! Each is run once when it comes and again whenever one of its keys has got a list; then it may find that another has
//! been faster, writes nothing, and waits on.

use weft_store::End;

use super::pop::{Multiple, move_between, take, take_many};
use super::{end_argument, is_list};
use crate::args::Args;
use crate::blocking::{Empty, timeout_ms};
use crate::context::Context;
use crate::error::Result;
use crate::reply::ReplySink;

pub(super) fn blpop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    pop_first(context, args, sink, End::Front)
}

pub(super) fn brpop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    pop_first(context, args, sink, End::Back)
}

fn pop_first(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, end: End) -> Result {
    let last = args.len() - 1;
    let timeout_ms = timeout_ms(context, args, last)?;
    for index in 1..last {
        let key = context.key(args, index);
        if !is_list(context, &key)? {
            continue;
        }
        if context.commit() {
            sink.array(2);
            sink.bulk(key.bytes());
            take(context, &key, end, |element| sink.bulk(element))?;
        }
        return Ok(());
    }
    context.wait_for_one(args, sink, (1..last, timeout_ms))
}

pub(super) fn blmpop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let asked = Multiple::read(args, 2)?;
    let timeout_ms = timeout_ms(context, args, 1)?;
    for index in asked.keys.clone() {
        let key = context.key(args, index);
        if !is_list(context, &key)? {
            continue;
        }
        if context.commit() {
            sink.array(2);
            sink.bulk(key.bytes());
            take_many(context, &key, (asked.end, asked.count), sink)?;
        }
        return Ok(());
    }
    context.wait_for_one(args, sink, (asked.keys, timeout_ms))
}

pub(super) fn blmove(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let ends = (end_argument(args, 3)?, end_argument(args, 4)?);
    let timeout_ms = timeout_ms(context, args, 5)?;
    move_one(context, args, sink, (ends, timeout_ms))
}

pub(super) fn brpoplpush(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let timeout_ms = timeout_ms(context, args, 3)?;
    move_one(context, args, sink, ((End::Back, End::Front), timeout_ms))
}

fn move_one(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    (ends, timeout_ms): ((End, End), u64),
) -> Result {
    let (from, to) = (context.key(args, 1), context.key(args, 2));
    if is_list(context, &from)? {
        is_list(context, &to)?;
        return if context.commit() { move_between(context, (&from, &to), ends, sink) } else { Ok(()) };
    }
    if !context.may_block() {
        sink.null();
        return Ok(());
    }
    // It waits for the source only; the answer of a wait in vain is that of BLPOP.
    context.block(args.to_owned_args(), (1..2, &[]), (timeout_ms, Empty::NullArray))
}
