//! Owns: XINFO. Does not own: the figures, which the stream keeps.

use weft_store::StreamId;
use weft_store::stream::{Group, Log, Pending, Stream};

use super::group::no_group_for_key;
use super::{find, reply_entry, reply_id};
use crate::args::Args;
use crate::commands::common::help;
use crate::commands::common::help::subcommand_syntax;
use crate::context::Context;
use crate::error::{ErrorCode, Result};
use crate::reply::ReplySink;

/// COUNT of FULL where none is given.
const COUNT_DEFAULT: u64 = 10;

fn field(sink: &mut ReplySink<'_>, name: &str) {
    sink.bulk(name.as_bytes());
}
fn int_field(sink: &mut ReplySink<'_>, name: &str, value: u64) {
    field(sink, name);
    sink.int(value as i64);
}
fn optional_field(sink: &mut ReplySink<'_>, name: &str, value: Option<i64>) {
    field(sink, name);
    match value {
        Some(value) => sink.int(value),
        None => sink.null(),
    }
}
fn id_field(sink: &mut ReplySink<'_>, name: &str, id: StreamId) {
    field(sink, name);
    reply_id(sink, id);
}

pub(super) fn stream(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 2);
    let stream = find(context, &key)?.ok_or(ErrorCode::NoSuchKey)?;
    let count = match args.len() {
        3 => None,
        4 | 6 if args.is(3, "FULL") => Some(COUNT_DEFAULT),
        _ => return Err(subcommand_syntax(args)),
    };
    let count = match args.len() {
        6 if !args.is(4, "COUNT") => return Err(subcommand_syntax(args)),
        // 0 is everything; a negative one counts as none given.
        6 => Some(u64::try_from(args.int(5)?).unwrap_or(COUNT_DEFAULT)),
        _ => count,
    };
    sink.map(if count.is_some() { 9 } else { 10 });
    reply_figures(sink, stream.log());
    match count {
        None => reply_ends(sink, stream),
        Some(count) => reply_full(sink, stream, if count == 0 { usize::MAX } else { count as usize }),
    }
    Ok(())
}

fn reply_figures(sink: &mut ReplySink<'_>, log: &Log) {
    int_field(sink, "length", log.len());
    // There is no radix tree: blocks are its keys, and a tree of so many has one node more.
    int_field(sink, "radix-tree-keys", log.block_count() as u64);
    int_field(sink, "radix-tree-nodes", log.block_count() as u64 + 1);
    id_field(sink, "last-generated-id", log.last_id());
    id_field(sink, "max-deleted-entry-id", log.max_deleted_id());
    int_field(sink, "entries-added", log.entries_added());
    id_field(sink, "recorded-first-entry-id", log.first_id());
}

fn reply_ends(sink: &mut ReplySink<'_>, stream: &Stream) {
    int_field(sink, "groups", stream.groups().len() as u64);
    let log = stream.log();
    let first = log.range(StreamId::MIN, StreamId::MAX).next();
    let last = log.range_back(StreamId::MIN, StreamId::MAX).next();
    for (name, entry) in [("first-entry", first), ("last-entry", last)] {
        field(sink, name);
        match entry {
            Some(entry) => reply_entry(sink, &entry),
            None => sink.null(),
        }
    }
}

fn reply_full(sink: &mut ReplySink<'_>, stream: &Stream, count: usize) {
    let log = stream.log();
    field(sink, "entries");
    sink.deferred();
    log.range(StreamId::MIN, StreamId::MAX).take(count).for_each(|entry| reply_entry(sink, &entry));
    sink.close();
    field(sink, "groups");
    sink.array(stream.groups().len());
    for (name, group) in stream.groups() {
        sink.map(7);
        field(sink, "name");
        sink.bulk(name);
        id_field(sink, "last-delivered-id", group.last_id());
        optional_field(sink, "entries-read", group.entries_read().map(|read| read as i64));
        optional_field(sink, "lag", group.lag(log));
        int_field(sink, "pel-count", group.pending_len() as u64);
        field(sink, "pending");
        reply_pending(sink, group.pending_from(StreamId::MIN).take(count), |sink, pending| {
            sink.bulk(group.consumer(pending.consumer).name());
        });
        field(sink, "consumers");
        reply_consumers(sink, group, count);
    }
}

/// Pending entries, each with its id, what `owner` writes, and time and number of deliveries.
fn reply_pending<'p>(
    sink: &mut ReplySink<'_>,
    pending: impl Iterator<Item = (StreamId, &'p Pending)>,
    owner: impl Fn(&mut ReplySink<'_>, &Pending),
) {
    sink.deferred();
    for (id, pending) in pending {
        sink.deferred();
        reply_id(sink, id);
        owner(sink, pending);
        sink.int(pending.delivered_ms as i64);
        sink.int(pending.deliveries as i64);
        sink.close();
    }
    sink.close();
}

fn reply_consumers(sink: &mut ReplySink<'_>, group: &Group, count: usize) {
    sink.array(group.consumers().len());
    for consumer in group.consumers() {
        sink.map(5);
        field(sink, "name");
        sink.bulk(consumer.name());
        int_field(sink, "seen-time", consumer.seen_ms);
        field(sink, "active-time");
        sink.int(consumer.active_ms.map_or(-1, |time| time as i64));
        int_field(sink, "pel-count", consumer.pending_len() as u64);
        field(sink, "pending");
        let ids = consumer.pending_from(StreamId::MIN).take(count);
        reply_pending(sink, ids.filter_map(|id| Some((id, group.pending(id)?))), |_, _| {});
    }
}

pub(super) fn groups(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 2);
    let stream = find(context, &key)?.ok_or(ErrorCode::NoSuchKey)?;
    sink.array(stream.groups().len());
    for (name, group) in stream.groups() {
        sink.map(6);
        field(sink, "name");
        sink.bulk(name);
        int_field(sink, "consumers", group.consumers().len() as u64);
        int_field(sink, "pending", group.pending_len() as u64);
        id_field(sink, "last-delivered-id", group.last_id());
        optional_field(sink, "entries-read", group.entries_read().map(|read| read as i64));
        optional_field(sink, "lag", group.lag(stream.log()));
    }
    Ok(())
}

pub(super) fn consumers(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (key, now_ms) = (context.key(args, 2), context.now_ms);
    let stream = find(context, &key)?.ok_or(ErrorCode::NoSuchKey)?;
    let group = stream.group(args.bytes(3)).ok_or_else(|| no_group_for_key(&key, args.bytes(3)))?;
    sink.array(group.consumers().len());
    for consumer in group.consumers() {
        sink.map(4);
        field(sink, "name");
        sink.bulk(consumer.name());
        int_field(sink, "pending", consumer.pending_len() as u64);
        int_field(sink, "idle", now_ms.saturating_sub(consumer.seen_ms));
        field(sink, "inactive");
        sink.int(consumer.active_ms.map_or(-1, |time| now_ms as i64 - time as i64));
    }
    Ok(())
}

pub(super) fn show_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    help::answer(
        sink,
        "XINFO",
        &[
            "CONSUMERS <key> <groupname>",
            "    Show consumers of <groupname>.",
            "GROUPS <key>",
            "    Show the stream consumer groups.",
            "STREAM <key> [FULL [COUNT <count>]",
            "    Show information about the stream.",
        ],
    );
    Ok(())
}
