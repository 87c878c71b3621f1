//! Owns: XADD, XTRIM, XDEL, XSETID, XLEN. Does not own: reading.

use std::sync::atomic::Ordering::Relaxed;
use weft_store::stream::{AppendError, NewId, Trim, TrimTo};
use weft_store::{Changed, Key, StreamId, StreamLimit, StreamMut};

use super::{find, parse_strict, reply_id, strict_id};
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::notify;
use crate::reply::ReplySink;

/// Without LIMIT, `~` removes the entries of so many full blocks at most.
const TRIM_BLOCKS_MAX: u64 = 100;
/// And so many entries where the size of a block is not limited.
const TRIM_ENTRIES_DEFAULT: u64 = 10_000;
/// And never more than these.
const TRIM_ENTRIES_MAX: u64 = 1_000_000;

/// Pairs that are gathered without an allocation.
const FEW_PAIRS: usize = 8;

/// Calls `add` with the names and values of XADD from a place on, gathered since they are gone through several times.
fn with_pairs<'a, R>(args: &Args<'a>, from: usize, add: impl FnOnce(&[(&'a [u8], &'a [u8])]) -> R) -> R {
    let pair = |at: usize| (args.bytes(at), args.bytes(at + 1));
    let places = (from..args.len()).step_by(2);
    let mut few: [(&[u8], &[u8]); FEW_PAIRS] = [Default::default(); FEW_PAIRS];
    match few.get_mut(..places.len()) {
        Some(few) => {
            few.iter_mut().zip(places).for_each(|(to, at)| *to = pair(at));
            add(few)
        }
        None => add(&places.map(pair).collect::<Vec<_>>()),
    }
}

/// `stream-node-max-bytes` and `stream-node-max-entries`.
fn limit(context: &Context<'_, '_>) -> StreamLimit {
    let settings = &context.engine.settings;
    StreamLimit {
        block_bytes_max: settings.stream_node_max_bytes.load(Relaxed) as u64,
        block_entries_max: settings.stream_node_max_entries.load(Relaxed) as u64,
    }
}

/// The options that XADD and XTRIM share.
#[derive(Default)]
struct Options {
    to: Option<TrimTo>,
    approximate: bool,
    limit: Option<u64>,
    no_create: bool,
    /// XADD: the place of the id.
    id_at: usize,
}

impl Options {
    fn parse(args: &Args<'_>, is_add: bool) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 2;
        while at < args.len() {
            let more = args.len() - 1 - at;
            if is_add && args.bytes(at) == b"*" {
                break;
            } else if args.is(at, "MAXLEN") && more > 0 {
                at = options.skip_mark(args, at + 1)?;
                let length = u64::try_from(args.int(at)?);
                let length = length.map_err(|_| Error::err("The MAXLEN argument must be >= 0."))?;
                options.to = Some(TrimTo::Length(length));
            } else if args.is(at, "MINID") && more > 0 {
                at = options.skip_mark(args, at + 1)?;
                options.to = Some(TrimTo::Id(strict_id(args.bytes(at))?));
            } else if args.is(at, "LIMIT") && more > 0 {
                at += 1;
                let limit = u64::try_from(args.int(at)?);
                options.limit = Some(limit.map_err(|_| Error::err("The LIMIT argument must be >= 0."))?);
            } else if is_add && args.is(at, "NOMKSTREAM") {
                options.no_create = true;
            } else if is_add {
                break;
            } else {
                return Err(ErrorCode::Syntax.into());
            }
            at += 1;
        }
        options.id_at = at;
        Ok(options)
    }

    /// Passes over `~` or `=` before a threshold.
    fn skip_mark(&mut self, args: &Args<'_>, at: usize) -> Result<usize> {
        if self.to.is_some() {
            let text = "syntax error, MAXLEN and MINID options at the same time are not compatible";
            return Err(Error::err(text));
        }
        // The mark counts only if something stands behind it.
        let mark = if at + 1 < args.len() { args.bytes(at) } else { b"" };
        self.approximate = mark == b"~";
        Ok(if matches!(mark, b"~" | b"=") { at + 1 } else { at })
    }

    /// The trimming asked for, once everything has been parsed.
    fn trim(&self, is_add: bool, block_entries_max: u64) -> Result<Option<Trim>> {
        if self.limit.is_some_and(|limit| limit > 0) && self.to.is_none() {
            let text = "syntax error, LIMIT cannot be used without specifying a trimming strategy";
            return Err(Error::err(text));
        }
        if !is_add && self.to.is_none() {
            return Err(Error::err("syntax error, XTRIM must be called with a trimming strategy"));
        }
        if self.limit.is_some() && !self.approximate {
            return Err(Error::err("syntax error, LIMIT cannot be used without the special ~ option"));
        }
        let limit = match self.limit {
            Some(limit) => limit,
            None if !self.approximate => 0,
            None => match block_entries_max.saturating_mul(TRIM_BLOCKS_MAX) {
                0 => TRIM_ENTRIES_DEFAULT,
                limit => limit.min(TRIM_ENTRIES_MAX),
            },
        };
        Ok(self.to.map(|to| Trim { to, approximate: self.approximate, limit }))
    }
}

pub(super) fn xadd(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let options = Options::parse(args, true)?;
    let at = options.id_at;
    let want = match args.bytes(at) {
        _ if at >= args.len() => NewId::Auto,
        b"*" => NewId::Auto,
        text => {
            let parsed = parse_strict(text, 0, true)?;
            if parsed.seq_given { NewId::Exact(parsed.id) } else { NewId::AutoSeq(parsed.id.ms) }
        }
    };
    let limit = limit(context);
    let trim = options.trim(true, limit.block_entries_max)?;
    let values = args.len().saturating_sub(at + 1);
    if values < 2 || values % 2 == 1 {
        return Err(Error::arity(args.spec));
    }
    if want == NewId::Exact(StreamId::MIN) {
        return Err(Error::err("The ID specified in XADD must be greater than 0-0"));
    }
    let key = context.key(args, 1);
    let now_ms = context.now_ms;
    let (shard, mut op) = context.shard(&key)?;
    let outcome = shard.change_stream(&mut op, &key, !options.no_create, |stream| {
        let added = append(stream, want, now_ms, |stream, id| {
            with_pairs(args, at + 1, |pairs| stream.append(id, pairs.iter().copied(), limit))
        });
        let trimmed = if added.is_ok() { trim.map_or(0, |trim| stream.trim(trim)) } else { 0 };
        Changed { changed: added.is_ok(), result: added.map(|id| (id, trimmed)) }
    })?;
    let Some(outcome) = outcome else {
        sink.null();
        return Ok(());
    };
    let (id, trimmed) = outcome?;
    reply_id(sink, id);
    context.notify(notify::STREAM, "xadd", &key);
    if trimmed > 0 {
        context.notify(notify::STREAM, "xtrim", &key);
    }
    Ok(())
}

/// Chooses the id and adds, with XADD's errors.
fn append(
    stream: &mut StreamMut<'_>,
    want: NewId,
    now_ms: u64,
    add: impl FnOnce(&mut StreamMut<'_>, StreamId) -> Result<(), AppendError>,
) -> Result<StreamId> {
    if stream.log().last_id() == StreamId::MAX {
        return Err(Error::err("The stream has exhausted the last possible ID, unable to add more items"));
    }
    let id = stream.next_id(want, now_ms);
    id.and_then(|id| add(stream, id).map(|()| id)).map_err(|error| {
        Error::err(match error {
            AppendError::NotAbove => {
                "The ID specified in XADD is equal or smaller than the target stream top item"
            }
            AppendError::TooLarge => "Elements are too large to be stored",
        })
    })
}

/// Changes a stream that is there.
fn change<R>(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    change: impl FnOnce(&mut StreamMut<'_>) -> Changed<R>,
) -> Result<Option<R>> {
    let (shard, mut op) = context.shard(key)?;
    Ok(shard.change_stream(&mut op, key, false, change)?)
}

pub(super) fn xtrim(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let block_entries_max = limit(context).block_entries_max;
    let trim = Options::parse(args, false)?.trim(false, block_entries_max)?;
    let key = context.key(args, 1);
    let removed = change(context, &key, |stream| {
        let removed = trim.map_or(0, |trim| stream.trim(trim));
        Changed { result: removed, changed: removed > 0 }
    })?;
    let removed = removed.unwrap_or(0);
    if removed > 0 {
        context.notify(notify::STREAM, "xtrim", &key);
    }
    sink.int(removed as i64);
    Ok(())
}

pub(super) fn xdel(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    if find(context, &key)?.is_none() {
        sink.int(0);
        return Ok(());
    }
    let ids: Vec<StreamId> = args.rest(2).map(strict_id).collect::<Result<_, _>>()?;
    let deleted = change(context, &key, |stream| {
        let deleted = ids.iter().filter(|&&id| stream.delete(id)).count();
        Changed { result: deleted, changed: deleted > 0 }
    })?;
    let deleted = deleted.unwrap_or(0);
    if deleted > 0 {
        context.notify(notify::STREAM, "xdel", &key);
    }
    sink.count(deleted);
    Ok(())
}

pub(super) fn xsetid(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let id = strict_id(args.bytes(2))?;
    let (mut entries_added, mut max_deleted_id) = (None, StreamId::MIN);
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "ENTRIESADDED") && at + 1 < args.len() {
            let added = u64::try_from(args.int(at + 1)?);
            entries_added = Some(added.map_err(|_| Error::err("entries_added must be positive"))?);
        } else if args.is(at, "MAXDELETEDID") && at + 1 < args.len() {
            max_deleted_id = strict_id(args.bytes(at + 1))?;
            if id < max_deleted_id {
                let text = "The ID specified in XSETID is smaller than the provided max_deleted_entry_id";
                return Err(Error::err(text));
            }
        } else {
            return Err(ErrorCode::Syntax.into());
        }
        at += 2;
    }
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key)?;
    let outcome = shard.change_beside_entries(&mut op, &key, |stream| {
        let outcome = set_id(stream, id, entries_added, max_deleted_id);
        Changed { changed: outcome.is_ok(), result: outcome }
    })?;
    outcome.ok_or(ErrorCode::NoSuchKey)??;
    context.notify(notify::STREAM, "xsetid", &key);
    sink.ok();
    Ok(())
}

fn set_id(stream: &mut StreamMut<'_>, id: StreamId, added: Option<u64>, max_deleted_id: StreamId) -> Result {
    let log = stream.log();
    let smaller = |than: &str| Err(Error::err(format!("The ID specified in XSETID is smaller than {than}")));
    if id < log.max_deleted_id() {
        return smaller("current max_deleted_entry_id");
    }
    if let Some(last) = log.range_back(StreamId::MIN, StreamId::MAX).next() {
        if id < last.id {
            return smaller("the target stream top item");
        }
        if added.is_some_and(|added| added < log.len()) {
            let text = "The entries_added specified in XSETID is smaller than the target stream length";
            return Err(Error::err(text));
        }
    }
    let max_deleted_id = if max_deleted_id.is_zero() { log.max_deleted_id() } else { max_deleted_id };
    let added = added.unwrap_or_else(|| log.entries_added());
    stream.set_counters(id, added, max_deleted_id);
    Ok(())
}

pub(super) fn xlen(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let len = find(context, &key)?.map_or(0, |stream| stream.log().len());
    sink.int(len as i64);
    Ok(())
}
