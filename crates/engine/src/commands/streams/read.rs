//! Owns: XRANGE, XREVRANGE, XREAD, XREADGROUP. Does not own: who waits and how (`crate::blocking`), what a group hands
//! out (`weft_store::stream::Group`).

use std::collections::HashMap;
use weft_store::stream::{Entry, Group, ID_TEXT_BYTES_MAX, Log};
use weft_store::{Changed, Key, ObjectRef, StreamId, ValueRef};

use super::{end_id, find, reply_entry, reply_id, shown, start_id, strict_id};
use crate::args::{Args, OwnedArgs};
use crate::blocking::Empty;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result, full_name};
use crate::notify;
use crate::reply::ReplySink;

pub(super) fn xrange(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    range(context, args, sink, false)
}

pub(super) fn xrevrange(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    range(context, args, sink, true)
}

fn range(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, reverse: bool) -> Result {
    let (start_at, end_at) = if reverse { (3, 2) } else { (2, 3) };
    let start = start_id(args.bytes(start_at))?;
    let end = end_id(args.bytes(end_at))?;
    let mut count = None;
    let mut at = 4;
    while at < args.len() {
        if !args.is(at, "COUNT") || at + 1 >= args.len() {
            return Err(ErrorCode::Syntax.into());
        }
        count = Some(usize::try_from(args.int(at + 1)?).unwrap_or(0));
        at += 2;
    }
    let key = context.key(args, 1);
    let Some(stream) = find(context, &key)? else {
        sink.array(0);
        return Ok(());
    };
    if count == Some(0) {
        sink.null_array();
        return Ok(());
    }
    let log = stream.log();
    let limit = count.unwrap_or(usize::MAX);
    sink.deferred();
    if reverse {
        log.range_back(start, end).take(limit).for_each(|entry| reply_entry(sink, &entry));
    } else {
        log.range(start, end).take(limit).for_each(|entry| reply_entry(sink, &entry));
    }
    sink.close();
    Ok(())
}

/// What XREAD and XREADGROUP are asked for.
struct Request<'a> {
    /// BLOCK.
    timeout_ms: Option<u64>,
    /// COUNT; 0 for all.
    count: u64,
    group: Option<(&'a [u8], &'a [u8])>,
    no_ack: bool,
    /// The place of the first key.
    keys_at: usize,
    streams: usize,
}

impl<'a> Request<'a> {
    fn parse(args: &Args<'a>, with_group: bool) -> Result<Self> {
        let mut request =
            Self { timeout_ms: None, count: 0, group: None, no_ack: false, keys_at: 0, streams: 0 };
        let only_group = |option: &str| {
            let text = "option is only supported by XREADGROUP. You called XREAD instead.";
            Err(Error::err(format!("The {option} {text}")))
        };
        let mut at = 1;
        while at < args.len() {
            let more = args.len() - 1 - at;
            if args.is(at, "BLOCK") && more > 0 {
                at += 1;
                request.timeout_ms = Some(timeout_ms(args, at)?);
            } else if args.is(at, "COUNT") && more > 0 {
                at += 1;
                request.count = u64::try_from(args.int(at)?).unwrap_or(0);
            } else if args.is(at, "STREAMS") && more > 0 {
                request.keys_at = at + 1;
                request.streams = more / 2;
                if !more.is_multiple_of(2) {
                    return Err(unbalanced(args, with_group));
                }
                break;
            } else if args.is(at, "GROUP") && more >= 2 {
                if !with_group {
                    return only_group("GROUP");
                }
                request.group = Some((args.bytes(at + 1), args.bytes(at + 2)));
                at += 2;
            } else if args.is(at, "NOACK") {
                if !with_group {
                    return only_group("NOACK");
                }
                request.no_ack = true;
            } else {
                return Err(ErrorCode::Syntax.into());
            }
            at += 1;
        }
        if request.keys_at == 0 {
            return Err(ErrorCode::Syntax.into());
        }
        if with_group && request.group.is_none() {
            return Err(Error::err("Missing GROUP option for XREADGROUP"));
        }
        Ok(request)
    }
    fn key<'k>(&self, args: &Args<'k>, index: usize) -> &'k [u8] {
        args.bytes(self.keys_at + index)
    }
    fn id<'k>(&self, args: &Args<'k>, index: usize) -> &'k [u8] {
        args.bytes(self.keys_at + self.streams + index)
    }
}

fn unbalanced(args: &Args<'_>, with_group: bool) -> Error {
    let (name, symbol) = (full_name(args.spec), if with_group { '>' } else { '$' });
    let must = format!("for each stream key an ID or '{symbol}' must be specified.");
    Error::err(format!("Unbalanced '{name}' list of streams: {must}"))
}

/// BLOCK: milliseconds.
fn timeout_ms(args: &Args<'_>, at: usize) -> Result<u64> {
    let ms = args.int(at).map_err(|_| Error::err("timeout is not an integer or out of range"))?;
    let ms = u64::try_from(ms).map_err(|_| Error::err("timeout is negative"))?;
    // The end of the wait must be a time.
    if ms > i64::MAX as u64 / 2 { Err(Error::err("timeout is out of range")) } else { Ok(ms) }
}

/// Whether the keys do not stand where the command table looks for them: a consumer may be called STREAMS.
pub(super) fn is_ambiguous(args: &Args<'_>) -> bool {
    // As nearly all are written.
    let is_plain =
        || args.is(4, "STREAMS") || (args.is(4, "COUNT") || args.is(4, "BLOCK")) && args.is(6, "STREAMS");
    if args.is(1, "GROUP") && is_plain() {
        return false;
    }
    let mut places = Vec::new();
    crate::keys::each(args, |index| places.push(index));
    Request::parse(args, true)
        .is_ok_and(|request| !places.iter().copied().eq(request.keys_at..request.keys_at + request.streams))
}

pub(super) fn xread(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let request = Request::parse(args, false)?;
    let mut after = Vec::with_capacity(request.streams);
    let mut served = Vec::new();
    for index in 0..request.streams {
        let key = context.key(args, request.keys_at + index);
        let log = find(context, &key)?.map(weft_store::Stream::log);
        let id = match request.id(args, index) {
            b"$" => log.map_or(StreamId::MIN, Log::last_id),
            b"+" => match log.filter(|log| !log.is_empty()) {
                Some(log) => {
                    let before = log.last_id().previous();
                    before.ok_or_else(|| Error::err("the stream last element ID is 0-0"))?
                }
                None => StreamId::MIN,
            },
            b">" => {
                let text = "The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.";
                return Err(Error::err(text));
            }
            text => strict_id(text)?,
        };
        let last = log.and_then(|log| log.range_back(StreamId::MIN, StreamId::MAX).next());
        if last.is_some_and(|last| last.id > id) {
            served.push(index);
        }
        after.push(id);
    }
    if served.is_empty() {
        return block_or_null(context, args, sink, &request, Some(&after));
    }
    if !context.commit() {
        return Ok(());
    }
    sink.map_of_arrays(served.len());
    for index in served {
        let key = context.key(args, request.keys_at + index);
        sink.entry();
        sink.bulk(key.bytes());
        sink.deferred();
        if let (Some(stream), Some(start)) = (find(context, &key)?, after[index].next()) {
            let limit = if request.count == 0 { usize::MAX } else { request.count as usize };
            let entries = stream.log().range(start, StreamId::MAX).take(limit);
            entries.for_each(|entry| reply_entry(sink, &entry));
        }
        sink.close();
    }
    Ok(())
}

/// Nothing was found: waits if asked to. A waiter's `$` becomes the id that it stands for now.
fn block_or_null(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    request: &Request<'_>,
    after: Option<&[StreamId]>,
) -> Result {
    let Some(timeout_ms) = request.timeout_ms.filter(|_| context.may_block()) else {
        if context.claim.is_none() {
            sink.null_array();
        }
        return Ok(());
    };
    let ids: Vec<Vec<u8>> = (0..request.streams)
        .map(|index| match (request.id(args, index), after) {
            (b"$", Some(after)) => after[index].write(&mut [0; ID_TEXT_BYTES_MAX]).to_vec(),
            (text, _) => text.to_vec(),
        })
        .collect();
    // Options in this order leave no doubt where the keys are: a consumer called STREAMS stands before the place from
    // which the command table looks for that word.
    let mut words: Vec<&[u8]> = vec![args.bytes(0)];
    if let Some((group, consumer)) = request.group {
        words.extend([b"GROUP", group, consumer]);
    }
    if request.no_ack {
        words.push(b"NOACK");
    }
    let (count, timeout) = (request.count.to_string(), timeout_ms.to_string());
    words.extend([b"COUNT", count.as_bytes(), b"BLOCK", timeout.as_bytes(), b"STREAMS"]);
    let keys = words.len()..words.len() + request.streams;
    words.extend((0..request.streams).map(|index| request.key(args, index)));
    words.extend(ids.iter().map(Vec::as_slice));
    let owned = OwnedArgs::new(args.spec, words.into_iter());
    context.block(owned, (keys, after.unwrap_or_default()), (timeout_ms, Empty::NullArray))
}

/// What XREADGROUP reads of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// `>`: what nobody of the group has had.
    New,
    /// An id: what this consumer has had and not acknowledged, after it.
    Pending(StreamId),
}

fn meaningless(symbol: char) -> Error {
    let what = "you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages";
    Error::err(format!(
        "The {symbol} ID is meaningless in the context of XREADGROUP: {what}. The {symbol} ID would just return an empty \
         result set."
    ))
}

pub(super) fn xreadgroup(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let request = Request::parse(args, true)?;
    let (group, consumer) = request.group.unwrap_or_default();
    let mut parts = Vec::with_capacity(request.streams);
    let mut positions = HashMap::new();
    let mut served = Vec::new();
    for index in 0..request.streams {
        let key = context.key(args, request.keys_at + index);
        let Some((group, log)) =
            find(context, &key)?.and_then(|stream| Some((stream.group(group)?, stream.log())))
        else {
            let (key, group) = (shown(key.bytes()), shown(group));
            let text =
                format!("No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option");
            return Err(Error::new(ErrorCode::NoGroup, text));
        };
        let part = match request.id(args, index) {
            b"$" => return Err(meaningless('$')),
            b"+" => return Err(meaningless('+')),
            b">" => Part::New,
            text => match strict_id(text)? {
                // The largest id stands for `>`, as it does in Valkey.
                StreamId::MAX => Part::New,
                id => Part::Pending(id),
            },
        };
        // A stream that is named again goes on where its first reading will end.
        let after = positions.get(key.bytes()).copied().unwrap_or_else(|| group.last_id());
        let end = if part == Part::New { end_of_reading(log, after, request.count) } else { None };
        let has_some = part != Part::New || end.is_some();
        if let Some(end) = end
            && request.streams > 1
        {
            positions.insert(request.key(args, index), end);
        }
        parts.push(part);
        if has_some {
            served.push(index);
        }
    }
    if served.is_empty() && context.claim.is_some() || !context.commit() {
        return Ok(());
    }
    if !served.is_empty() {
        sink.map_of_arrays(served.len());
    }
    for (index, &part) in parts.iter().enumerate() {
        let key = context.key(args, request.keys_at + index);
        if served.contains(&index) {
            sink.entry();
            sink.bulk(key.bytes());
            read_one(context, &key, &request, (group, consumer), Some((part, sink)))?;
        } else {
            read_one(context, &key, &request, (group, consumer), None)?;
        }
    }
    if served.is_empty() { block_or_null(context, args, sink, &request, None) } else { Ok(()) }
}

/// The last of up to `count` entries (0: all) after an id.
fn end_of_reading(log: &Log, after: StreamId, count: u64) -> Option<StreamId> {
    let start = after.next()?;
    if count == 0 {
        return log.range_back(start, StreamId::MAX).next().map(|entry| entry.id);
    }
    log.range(start, StreamId::MAX).take(count as usize).last().map(|entry| entry.id)
}

/// Reads one stream for a consumer, which is made if need be. Without a part only that.
fn read_one(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    request: &Request<'_>,
    (group_name, consumer_name): (&[u8], &[u8]),
    part: Option<(Part, &mut ReplySink<'_>)>,
) -> Result {
    let now_ms = context.now_ms;
    let (shard, mut op) = context.shard(key)?;
    let result = shard.change_beside_entries(&mut op, key, |stream| {
        let Some((log, mut group)) = stream.group_mut(group_name) else { return Changed::no(None) };
        let (consumer, is_new) = group.find_or_create_consumer(consumer_name, now_ms);
        group.set_seen(consumer, now_ms);
        let Some((part, sink)) = part else {
            return Changed { result: Some(is_new), changed: is_new };
        };
        sink.deferred();
        match part {
            Part::New => {
                let owner = (!request.no_ack).then_some(consumer);
                group.deliver(log, owner, request.count, now_ms, |entry| {
                    reply_entry(sink, &entry);
                });
            }
            Part::Pending(after) => {
                let start = after.next().unwrap_or(StreamId::MIN);
                group.redeliver(log, consumer, (start, request.count), now_ms, |id, entry| {
                    reply_pending(sink, id, entry);
                });
            }
        }
        sink.close();
        Changed::yes(Some(is_new))
    })?;
    if result.flatten() == Some(true) {
        context.notify(notify::STREAM, "xgroup-createconsumer", key);
    }
    Ok(())
}

/// An entry of the pending list; one that was deleted has no fields.
fn reply_pending(sink: &mut ReplySink<'_>, id: StreamId, entry: Option<Entry<'_>>) {
    match entry {
        Some(entry) => reply_entry(sink, &entry),
        None => {
            sink.array(2);
            reply_id(sink, id);
            sink.null_array();
        }
    }
}

/// The group of a key, or NOGROUP as most commands say it.
pub(super) fn find_group<'c>(
    context: &'c mut Context<'_, '_>,
    key: &Key<'_>,
    name: &[u8],
) -> Result<&'c Group> {
    let (shard, mut op) = context.shard(key)?;
    let group = match shard.get(&mut op, key) {
        None => None,
        Some(ValueRef::Object(ObjectRef::Stream(stream))) => stream.group(name),
        Some(_) => return Err(ErrorCode::WrongType.into()),
    };
    group.ok_or_else(|| no_group(key, name))
}

fn no_group(key: &Key<'_>, name: &[u8]) -> Error {
    let text = format!("No such key '{}' or consumer group '{}'", shown(key.bytes()), shown(name));
    Error::new(ErrorCode::NoGroup, text)
}
