//! Owns: XGROUP, XACK, XPENDING. Does not own: reading for a group, claiming.

use weft_store::stream::{Group, GroupMut};
use weft_store::{Changed, Key, StreamId, StreamMut};

use super::read::find_group;
use super::{any_id, end_id, find, reply_id, shown, start_id, strict_id};
use crate::args::Args;
use crate::commands::common::help;
use crate::commands::common::help::subcommand_syntax;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::notify;
use crate::reply::ReplySink;
use crate::waits::News;

/// CREATE's and SETID's options after the id.
fn options(args: &Args<'_>, may_create: bool) -> Result<(bool, Option<u64>)> {
    let (mut create, mut entries_read) = (false, None);
    let mut at = 5;
    while at < args.len() {
        if may_create && args.is(at, "MKSTREAM") {
            create = true;
            at += 1;
        } else if args.is(at, "ENTRIESREAD") && at + 1 < args.len() {
            entries_read = match args.int(at + 1)? {
                -1 => None,
                read => Some(
                    u64::try_from(read)
                        .map_err(|_| Error::err("value for ENTRIESREAD must be positive or -1"))?,
                ),
            };
            at += 2;
        } else {
            return Err(subcommand_syntax(args));
        }
    }
    Ok((create, entries_read))
}

/// What most subcommands answer when the key is missing.
fn key_required() -> Error {
    Error::err(
        "The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to \
         create an empty stream automatically.",
    )
}

/// What the subcommands for a group answer when it is missing.
pub(super) fn no_group_for_key(key: &Key<'_>, group: &[u8]) -> Error {
    let text = format!("No such consumer group '{}' for key name '{}'", shown(group), shown(key.bytes()));
    Error::new(ErrorCode::NoGroup, text)
}

/// Checks that key and group are there.
fn require_group(context: &mut Context<'_, '_>, key: &Key<'_>, group: &[u8]) -> Result {
    let stream = find(context, key)?.ok_or_else(key_required)?;
    stream.group(group).map(|_| ()).ok_or_else(|| no_group_for_key(key, group))
}

pub(super) fn create(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (create, entries_read) = options(args, true)?;
    let (key, name) = (context.key(args, 2), args.bytes(3));
    let (last_id, is_new) = match find(context, &key)? {
        None if !create => return Err(key_required()),
        None => (StreamId::MIN, true),
        Some(stream) => (stream.log().last_id(), false),
    };
    if args.len() > 8 {
        return Err(subcommand_syntax(args));
    }
    let id = if args.bytes(4) == b"$" { last_id } else { strict_id(args.bytes(4))? };
    let (shard, mut op) = context.shard(&key)?;
    let add = |stream: &mut StreamMut<'_>| {
        let created = stream.create_group(name, Group::new(id, entries_read));
        Changed { result: created, changed: created }
    };
    let created = if is_new {
        shard.change_stream(&mut op, &key, true, add)?
    } else {
        shard.change_beside_entries(&mut op, &key, add)?
    };
    if created != Some(true) {
        return Err(ErrorCode::BusyGroup.into());
    }
    context.notify(notify::STREAM, "xgroup-create", &key);
    if is_new {
        context.written(&key);
    }
    sink.ok();
    Ok(())
}

pub(super) fn set_id(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (_, entries_read) = options(args, false)?;
    let (key, name) = (context.key(args, 2), args.bytes(3));
    require_group(context, &key, name)?;
    if args.len() > 7 {
        return Err(subcommand_syntax(args));
    }
    let last_id = find(context, &key)?.map_or(StreamId::MIN, |stream| stream.log().last_id());
    let id = if args.bytes(4) == b"$" { last_id } else { any_id(args.bytes(4), 0)? };
    change(context, &key, name, |group| {
        group.set_position(id, entries_read);
        Changed::yes(())
    })?;
    context.notify(notify::STREAM, "xgroup-setid", &key);
    sink.ok();
    Ok(())
}

/// Changes a group that is there.
fn change<R: Default>(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    name: &[u8],
    change: impl FnOnce(&mut GroupMut<'_>) -> Changed<R>,
) -> Result<R> {
    let (shard, mut op) = context.shard(key)?;
    let result = shard.change_beside_entries(&mut op, key, |stream| match stream.group_mut(name) {
        Some((_, mut group)) => change(&mut group),
        None => Changed::no(R::default()),
    })?;
    Ok(result.unwrap_or_default())
}

pub(super) fn destroy(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (key, name) = (context.key(args, 2), args.bytes(3));
    find(context, &key)?.ok_or_else(key_required)?;
    let (shard, mut op) = context.shard(&key)?;
    let removed = shard.change_beside_entries(&mut op, &key, |stream| {
        let removed = stream.remove_group(name);
        Changed { changed: removed.is_some(), result: removed }
    })?;
    let removed = removed.flatten();
    if removed.is_some() {
        context.notify(notify::STREAM, "xgroup-destroy", &key);
        // As in Valkey, where this is for those who read with the group.
        context.ready(context.db, &key, || News::GroupGone(name.into()));
    }
    sink.int(i64::from(removed.is_some()));
    Ok(())
}

pub(super) fn create_consumer(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    let (key, group, name) = (context.key(args, 2), args.bytes(3), args.bytes(4));
    require_group(context, &key, group)?;
    let now_ms = context.now_ms;
    let is_new = change(context, &key, group, |group| {
        let (_, is_new) = group.find_or_create_consumer(name, now_ms);
        Changed { result: is_new, changed: is_new }
    })?;
    if is_new {
        context.notify(notify::STREAM, "xgroup-createconsumer", &key);
    }
    sink.int(i64::from(is_new));
    Ok(())
}

pub(super) fn delete_consumer(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    let (key, group, name) = (context.key(args, 2), args.bytes(3), args.bytes(4));
    require_group(context, &key, group)?;
    let removed = change(context, &key, group, |group| {
        let removed = group.remove_consumer(name);
        Changed { changed: removed.is_some(), result: removed }
    })?;
    if removed.is_some() {
        context.notify(notify::STREAM, "xgroup-delconsumer", &key);
    }
    sink.count(removed.unwrap_or(0));
    Ok(())
}

pub(super) fn show_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    help::answer(
        sink,
        "XGROUP",
        &[
            "CREATE <key> <groupname> <id|$> [option]",
            "    Create a new consumer group. Options are:",
            "    * MKSTREAM",
            "      Create the empty stream if it does not exist.",
            "    * ENTRIESREAD entries_read",
            "      Set the group's entries_read counter (internal use).",
            "CREATECONSUMER <key> <groupname> <consumer>",
            "    Create a new consumer in the specified group.",
            "DELCONSUMER <key> <groupname> <consumer>",
            "    Remove the specified consumer.",
            "DESTROY <key> <groupname>",
            "    Remove the specified group.",
            "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
            "    Set the current group ID and entries_read counter.",
        ],
    );
    Ok(())
}

pub(super) fn xack(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (key, name) = (context.key(args, 1), args.bytes(2));
    if find(context, &key)?.is_none_or(|stream| stream.group(name).is_none()) {
        sink.int(0);
        return Ok(());
    }
    let ids: Vec<StreamId> = args.rest(3).map(strict_id).collect::<Result<_, _>>()?;
    let count = change(context, &key, name, |group| {
        let count = ids.iter().filter(|&&id| group.acknowledge(id)).count();
        Changed { result: count, changed: count > 0 }
    })?;
    sink.count(count);
    Ok(())
}

/// XPENDING's range.
struct Range<'a> {
    min_idle_ms: u64,
    start: StreamId,
    end: StreamId,
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> Range<'a> {
    fn parse(args: &Args<'a>) -> Result<Option<Self>> {
        match args.len() {
            3 => return Ok(None),
            6..=9 => {}
            _ => return Err(ErrorCode::Syntax.into()),
        }
        let (mut at, mut min_idle_ms) = (3, 0);
        if args.is(3, "IDLE") {
            min_idle_ms = u64::try_from(args.int(4)?).unwrap_or(0);
            if args.len() < 8 {
                return Err(ErrorCode::Syntax.into());
            }
            at = 5;
        }
        let count = usize::try_from(args.int(at + 2)?).unwrap_or(0);
        let (start, end) = (start_id(args.bytes(at))?, end_id(args.bytes(at + 1))?);
        let consumer = (at + 3 < args.len()).then(|| args.bytes(at + 3));
        Ok(Some(Self { min_idle_ms, start, end, count, consumer }))
    }
}

pub(super) fn xpending(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let range = Range::parse(args)?;
    let key = context.key(args, 1);
    let now_ms = context.now_ms;
    let group = find_group(context, &key, args.bytes(2))?;
    match range {
        Some(range) => pending_range(group, &range, now_ms, sink),
        None => pending_summary(group, sink),
    }
    Ok(())
}

fn pending_summary(group: &Group, sink: &mut ReplySink<'_>) {
    sink.array(4);
    sink.count(group.pending_len());
    let Some((first, last)) = group.pending_bounds() else {
        sink.null();
        sink.null();
        sink.null_array();
        return;
    };
    reply_id(sink, first);
    reply_id(sink, last);
    sink.deferred();
    for consumer in group.consumers().filter(|consumer| consumer.pending_len() > 0) {
        sink.array(2);
        sink.bulk(consumer.name());
        sink.bulk_int(consumer.pending_len() as i64);
    }
    sink.close();
}

fn pending_range(group: &Group, range: &Range<'_>, now_ms: u64, sink: &mut ReplySink<'_>) {
    let ids: Box<dyn Iterator<Item = StreamId>> = match range.consumer {
        None => Box::new(group.pending_from(range.start).map(|(id, _)| id)),
        Some(name) => match group.find_consumer(name) {
            Some(consumer) => Box::new(group.consumer(consumer).pending_from(range.start)),
            None => return sink.array(0),
        },
    };
    sink.deferred();
    let pending = ids.take_while(|&id| id <= range.end).filter_map(|id| Some((id, group.pending(id)?)));
    let idle = pending.filter(|(_, pending)| pending.idle_ms(now_ms) >= range.min_idle_ms);
    for (id, pending) in idle.take(range.count) {
        sink.array(4);
        reply_id(sink, id);
        sink.bulk(group.consumer(pending.consumer).name());
        sink.int(pending.idle_ms(now_ms) as i64);
        sink.int(pending.deliveries as i64);
    }
    sink.close();
}
