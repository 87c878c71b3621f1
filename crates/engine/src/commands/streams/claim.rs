//! Owns: XCLAIM and XAUTOCLAIM. Does not own: what claiming does (`weft_store::stream::Group`).

use weft_store::stream::{Claimed, Entry, StreamClaim};
use weft_store::{Changed, Key, StreamId};

use super::read::find_group;
use super::{reply_entry, reply_id, shown, start_id, strict_id};
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::notify;
use crate::reply::ReplySink;

/// COUNT of XAUTOCLAIM where none is given.
const COUNT_DEFAULT: u64 = 100;
/// The largest COUNT: Valkey's `LONG_MAX` over the size of an id.
const COUNT_MAX: i64 = i64::MAX / 16;

/// A number, or an error of its own.
fn int_or(args: &Args<'_>, at: usize, text: &'static str) -> Result<i64> {
    args.int(at).map_err(|_| Error::err(text))
}

struct Request {
    ids: Vec<StreamId>,
    claim: StreamClaim,
    last_id: StreamId,
}

impl Request {
    fn parse(args: &Args<'_>, now_ms: u64) -> Result<Self> {
        let min_idle = int_or(args, 4, "Invalid min-idle-time argument for XCLAIM")?;
        let ids: Vec<StreamId> = (5..args.len()).map_while(|at| strict_id(args.bytes(at)).ok()).collect();
        let mut claim = StreamClaim {
            now_ms,
            min_idle_ms: u64::try_from(min_idle).unwrap_or(0),
            delivered_ms: now_ms,
            deliveries: None,
            just_id: false,
            force: false,
        };
        let mut last_id = StreamId::MIN;
        let mut at = 5 + ids.len();
        // A time that makes no sense counts as now: the client's clock may be another.
        let sane = |time: Option<i64>| {
            time.and_then(|time| u64::try_from(time).ok()).filter(|&time| time <= now_ms).unwrap_or(now_ms)
        };
        while at < args.len() {
            let more = at + 1 < args.len();
            if args.is(at, "FORCE") {
                claim.force = true;
            } else if args.is(at, "JUSTID") {
                claim.just_id = true;
            } else if args.is(at, "IDLE") && more {
                at += 1;
                let idle = int_or(args, at, "Invalid IDLE option argument for XCLAIM")?;
                claim.delivered_ms = sane((now_ms as i64).checked_sub(idle));
            } else if args.is(at, "TIME") && more {
                at += 1;
                let time = int_or(args, at, "Invalid TIME option argument for XCLAIM")?;
                claim.delivered_ms = sane(Some(time));
            } else if args.is(at, "RETRYCOUNT") && more {
                at += 1;
                let count = int_or(args, at, "Invalid RETRYCOUNT option argument for XCLAIM")?;
                claim.deliveries = u64::try_from(count).ok();
            } else if args.is(at, "LASTID") && more {
                at += 1;
                last_id = strict_id(args.bytes(at))?;
            } else {
                return Err(Error::err(format!("Unrecognized XCLAIM option '{}'", shown(args.bytes(at)))));
            }
            at += 1;
        }
        Ok(Self { ids, claim, last_id })
    }
}

fn reply_claimed(sink: &mut ReplySink<'_>, entry: &Entry<'_>, just_id: bool) {
    if just_id { reply_id(sink, entry.id) } else { reply_entry(sink, entry) }
}

pub(super) fn xclaim(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (key, names) = (context.key(args, 1), (args.bytes(2), args.bytes(3)));
    find_group(context, &key, names.0)?;
    let now_ms = context.now_ms;
    let Request { ids, claim, last_id } = Request::parse(args, now_ms)?;
    sink.deferred();
    let (shard, mut op) = context.shard(&key)?;
    let is_new = shard.change_beside_entries(&mut op, &key, |stream| {
        let Some((log, mut group)) = stream.group_mut(names.0) else { return Changed::no(false) };
        let moved = group.advance(last_id);
        let (consumer, is_new) = group.find_or_create_consumer(names.1, now_ms);
        group.set_seen(consumer, now_ms);
        let mut changed = is_new || moved;
        for id in ids {
            let claimed = group.claim(log, consumer, id, &claim);
            changed |= !matches!(claimed, Claimed::Left);
            if let Claimed::Taken(entry) = claimed {
                reply_claimed(sink, &entry, claim.just_id);
            }
        }
        Changed { result: is_new, changed }
    })?;
    sink.close();
    notify_new(context, &key, is_new);
    Ok(())
}

/// Tells of a consumer that was made.
fn notify_new(context: &mut Context<'_, '_>, key: &Key<'_>, is_new: Option<bool>) {
    if is_new == Some(true) {
        context.notify(notify::STREAM, "xgroup-createconsumer", key);
    }
}

pub(super) fn xautoclaim(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let min_idle = int_or(args, 4, "Invalid min-idle-time argument for XAUTOCLAIM")?;
    let start = start_id(args.bytes(5))?;
    let (mut count, mut just_id) = (COUNT_DEFAULT, false);
    let mut at = 6;
    while at < args.len() {
        if args.is(at, "COUNT") && at + 1 < args.len() {
            at += 1;
            let number = int_or(args, at, "COUNT must be > 0")?;
            if !(1..=COUNT_MAX).contains(&number) {
                return Err(Error::err("COUNT must be > 0"));
            }
            count = number as u64;
        } else if args.is(at, "JUSTID") {
            just_id = true;
        } else {
            return Err(ErrorCode::Syntax.into());
        }
        at += 1;
    }
    let (key, names) = (context.key(args, 1), (args.bytes(2), args.bytes(3)));
    find_group(context, &key, names.0)?;
    let now_ms = context.now_ms;
    let min_idle_ms = u64::try_from(min_idle).unwrap_or(0);
    let claim =
        StreamClaim { now_ms, min_idle_ms, delivered_ms: now_ms, deliveries: None, just_id, force: false };
    let (shard, mut op) = context.shard(&key)?;
    let is_new = shard.change_beside_entries(&mut op, &key, |stream| {
        let Some((log, mut group)) = stream.group_mut(names.0) else { return Changed::no(false) };
        let (consumer, is_new) = group.find_or_create_consumer(names.1, now_ms);
        group.set_seen(consumer, now_ms);
        let (mut entries, mut gone) = (Vec::new(), Vec::new());
        let next = group.claim_from(log, consumer, (start, count), &claim, |id, entry| match entry {
            Some(entry) => entries.push(entry),
            None => gone.push(id),
        });
        sink.array(3);
        reply_id(sink, next);
        sink.array(entries.len());
        entries.iter().for_each(|entry| reply_claimed(sink, entry, just_id));
        sink.array(gone.len());
        gone.iter().for_each(|&id| reply_id(sink, id));
        Changed { result: is_new, changed: is_new || !entries.is_empty() || !gone.is_empty() }
    })?;
    notify_new(context, &key, is_new);
    Ok(())
}
