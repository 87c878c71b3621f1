//! Owns: XCLAIM and XAUTOCLAIM. Does not own: what claiming does (`weft_store::stream::Group`).

use weft_store::stream::{Claimed, Entry, StreamClaim};
use weft_store::{Changed, Key, StreamId};

use super::read::{find_group, tell_claim, tell_consumer, tell_position};
use super::{reply_entry, reply_id, shown, start_id, strict_id, tell};
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode};
use crate::reply::ReplySink;

/// COUNT of XAUTOCLAIM where none is given.
const COUNT_DEFAULT: u64 = 100;
/// The largest COUNT: Valkey's `LONG_MAX` over the size of an id.
const COUNT_MAX: i64 = i64::MAX / 16;

/// A number, or an error of its own.
fn int_or(args: &Args<'_>, at: usize, text: &'static str) -> Result<i64, Error> {
    args.int(at).map_err(|_| Error::err(text))
}

struct Request {
    ids: Vec<StreamId>,
    claim: StreamClaim,
    last_id: StreamId,
}

impl Request {
    fn parse(args: &Args<'_>, now_ms: u64) -> Result<Self, Error> {
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

/// What claiming has done, for the effects stream.
#[derive(Default)]
struct Done {
    new_consumer: bool,
    taken: Vec<StreamId>,
    gone: Vec<StreamId>,
    moved: bool,
}

fn reply_claimed(sink: &mut ReplySink<'_>, entry: &Entry<'_>, just_id: bool) {
    if just_id { reply_id(sink, entry.id) } else { reply_entry(sink, entry) }
}

pub(super) fn xclaim(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result<(), Error> {
    let (key, names) = (context.key(args, 1), (args.bytes(2), args.bytes(3)));
    find_group(context, &key, names.0)?;
    let now_ms = context.now_ms;
    let Request { ids, claim, last_id } = Request::parse(args, now_ms)?;
    sink.deferred();
    let (shard, mut op) = context.shard(&key)?;
    let done = shard.change_beside_entries(&mut op, &key, |stream| {
        let mut done = Done::default();
        let Some((log, mut group)) = stream.group_mut(names.0) else { return Changed::no(done) };
        done.moved = group.advance(last_id);
        let (consumer, is_new) = group.find_or_create_consumer(names.1, now_ms);
        done.new_consumer = is_new;
        group.consumer_mut(consumer).seen_ms = now_ms;
        for id in ids {
            match group.claim(log, consumer, id, &claim) {
                Claimed::Taken(entry) => {
                    reply_claimed(sink, &entry, claim.just_id);
                    done.taken.push(id);
                }
                Claimed::Gone => done.gone.push(id),
                Claimed::Left => {}
            }
        }
        let changed = is_new || done.moved || !done.taken.is_empty() || !done.gone.is_empty();
        Changed { result: done, changed }
    })?;
    sink.close();
    tell_done(context, &key, names, done.unwrap_or_default())
}

/// Tells of what was claimed: the new owner with its state, and an acknowledgement of what is gone.
fn tell_done(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    names: (&[u8], &[u8]),
    done: Done,
) -> Result<(), Error> {
    if done.new_consumer {
        tell_consumer(context, key, names.0, names.1);
    }
    if !context.local.effects.is_wanted() {
        return Ok(());
    }
    for id in done.gone {
        tell(context, key, "XACK", &[names.0, id.to_string().as_bytes()]);
    }
    let group = find_group(context, key, names.0)?;
    let position = (group.last_id(), group.entries_read());
    let taken: Vec<_> = done.taken.iter().filter_map(|&id| Some((id, *group.pending(id)?))).collect();
    for (id, pending) in taken {
        tell_claim(context, key, names, id, &pending, position.0);
    }
    if done.moved {
        tell_position(context, key, names.0, position);
    }
    Ok(())
}

pub(super) fn xautoclaim(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result<(), Error> {
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
    let result = shard.change_beside_entries(&mut op, &key, |stream| {
        let Some((log, mut group)) = stream.group_mut(names.0) else { return Changed::no(None) };
        let (consumer, new_consumer) = group.find_or_create_consumer(names.1, now_ms);
        group.consumer_mut(consumer).seen_ms = now_ms;
        let mut done = Done { new_consumer, ..Done::default() };
        let mut entries = Vec::new();
        let next = group.claim_from(log, consumer, start, count, &claim, |id, entry| match entry {
            Some(entry) => entries.push(entry),
            None => done.gone.push(id),
        });
        sink.array(3);
        reply_id(sink, next);
        sink.array(entries.len());
        entries.iter().for_each(|entry| reply_claimed(sink, entry, just_id));
        sink.array(done.gone.len());
        done.gone.iter().for_each(|&id| reply_id(sink, id));
        done.taken = entries.iter().map(|entry| entry.id).collect();
        let changed = new_consumer || !done.taken.is_empty() || !done.gone.is_empty();
        Changed { result: Some(done), changed }
    })?;
    tell_done(context, &key, names, result.flatten().unwrap_or_default())
}
