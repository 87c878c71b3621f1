//! Owns: the commands for keys of any type. Does not own: times (`super::ttl`), walks over all keys
//! (`super::keyspace`).

use super::ttl::i32_argument;
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("DEL", Scope::Keys, del),
    ("UNLINK", Scope::Keys, del),
    ("EXISTS", Scope::Keys, exists),
    ("TYPE", Scope::Keys, type_of),
    ("TOUCH", Scope::Keys, touch),
    ("RENAME", Scope::Keys, rename),
    ("RENAMENX", Scope::Keys, renamenx),
    ("MOVE", Scope::Keys, move_to),
    ("COPY", Scope::Keys, copy),
];

/// DEL and UNLINK: a large value is always freed when no lock is held.
fn del(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let mut removed = 0;
    for name in args.rest(1) {
        removed += usize::from(context.delete(&context.key_of(name))?);
    }
    sink.count(removed);
    Ok(())
}

fn exists(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let mut found = 0;
    for name in args.rest(1) {
        let key = context.key_of(name);
        let (shard, mut op) = context.shard(&key)?;
        op.touch = false;
        found += usize::from(shard.get(&mut op, &key).is_some());
    }
    sink.count(found);
    Ok(())
}

fn type_of(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key)?;
    op.touch = false;
    sink.simple(shard.get(&mut op, &key).map_or("none", |value| value.type_name()));
    Ok(())
}

/// Counts as an access also for a client that has asked for CLIENT NO-TOUCH.
fn touch(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let mut touched = 0;
    for name in args.rest(1) {
        let key = context.key_of(name);
        let (shard, mut op) = context.shard(&key)?;
        op.touch = true;
        touched += usize::from(shard.touch(&mut op, &key));
    }
    sink.count(touched);
    Ok(())
}

fn rename(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    rename_key(context, args, false)?;
    sink.ok();
    Ok(())
}

fn renamenx(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let renamed = rename_key(context, args, true)?;
    sink.int(i64::from(renamed));
    Ok(())
}

/// Says whether the key has got the other name.
fn rename_key(context: &mut Context<'_, '_>, args: &Args<'_>, only_free: bool) -> Result<bool> {
    let (from, to) = (context.key(args, 1), context.key(args, 2));
    let (shard, mut op) = context.shard(&from)?;
    if !shard.exists(&mut op, &from) {
        return Err(ErrorCode::NoSuchKey.into());
    }
    if from.bytes() == to.bytes() {
        return Ok(false);
    }
    let (shard, mut op) = context.shard(&to)?;
    if only_free && shard.exists(&mut op, &to) {
        return Ok(false);
    }
    // Removed first, and not overwritten: the new key counts as such.
    let garbage = shard.remove(&mut op, &to);
    context.discard(garbage.unwrap_or_default());
    let (shard, mut op) = context.shard(&from)?;
    let Some(content) = shard.take(&mut op, &from) else { return Ok(false) };
    let (shard, mut op) = context.shard(&to)?;
    let garbage = shard.put(&mut op, &to, content);
    context.discard(garbage);
    context.written(&to);
    context.notify(notify::GENERIC, "rename_from", &from);
    context.notify(notify::GENERIC, "rename_to", &to);
    Ok(true)
}

/// A database argument.
fn db_argument(context: &Context<'_, '_>, args: &Args<'_>, index: usize) -> Result<u8> {
    let db = i32_argument(args, index)?;
    // There are at most 256 databases.
    if context.has_db(db) { Ok(db as u8) } else { Err(Error::err("DB index is out of range")) }
}

const SAME_OBJECT: &str = "source and destination objects are the same";

fn move_to(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let to_db = db_argument(context, args, 2)?;
    if to_db == context.db {
        return Err(Error::err(SAME_OBJECT));
    }
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard_in(to_db, &key)?;
    if shard.exists(&mut op, &key) {
        sink.int(0);
        return Ok(());
    }
    let (shard, mut op) = context.shard(&key)?;
    let Some(content) = shard.take(&mut op, &key) else {
        sink.int(0);
        return Ok(());
    };
    let (shard, mut op) = context.shard_in(to_db, &key)?;
    let garbage = shard.put(&mut op, &key, content);
    context.discard(garbage);
    context.written_in(to_db, &key);
    context.notify(notify::GENERIC, "move_from", &key);
    context.notify_in(to_db, notify::GENERIC, "move_to", &key);
    sink.int(1);
    Ok(())
}

fn copy(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (mut to_db, mut replace, mut index) = (context.db, false, 3);
    while index < args.len() {
        if args.is(index, "REPLACE") {
            replace = true;
        } else if args.is(index, "DB") && index + 1 < args.len() {
            index += 1;
            to_db = db_argument(context, args, index)?;
        } else {
            return Err(ErrorCode::Syntax.into());
        }
        index += 1;
    }
    let (from, to) = (context.key(args, 1), context.key(args, 2));
    if to_db == context.db && from.bytes() == to.bytes() {
        return Err(Error::err(SAME_OBJECT));
    }
    let (shard, mut op) = context.shard(&from)?;
    let is_there = shard.get(&mut op, &from).is_some();
    let (shard, mut op) = context.shard_in(to_db, &to)?;
    let taken = !replace && shard.exists(&mut op, &to);
    let (shard, mut op) = context.shard(&from)?;
    let content = if is_there && !taken { shard.copy(&mut op, &from) } else { None };
    let Some(content) = content else {
        sink.int(0);
        return Ok(());
    };
    let (shard, mut op) = context.shard_in(to_db, &to)?;
    let old = shard.remove(&mut op, &to);
    let garbage = shard.put(&mut op, &to, content);
    context.discard(old.unwrap_or_default());
    context.discard(garbage);
    context.written_in(to_db, &to);
    context.notify_in(to_db, notify::GENERIC, "copy_to", &to);
    sink.int(1);
    Ok(())
}
