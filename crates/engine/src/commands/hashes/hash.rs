//! Owns: the hash commands but those of field expiry (`hash_expiry`). Does not own: the structure
//! (`weft_store::hash_object`).

use weft_store::{Changed, FieldExpiry, HashRef, Key, parse_int};

use crate::args::Args;
use crate::commands::common::collection::{
    check_random, random_count, scan_cursor, scan_nothing, scan_options,
};
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::extended::{self, Extended, Parsed};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("HSET", Scope::Keys, hset),
    ("HMSET", Scope::Keys, hmset),
    ("HSETNX", Scope::Keys, hsetnx),
    ("HGET", Scope::Keys, hget),
    ("HMGET", Scope::Keys, hmget),
    ("HDEL", Scope::Keys, hdel),
    ("HGETDEL", Scope::Keys, hgetdel),
    ("HLEN", Scope::Keys, hlen),
    ("HSTRLEN", Scope::Keys, hstrlen),
    ("HEXISTS", Scope::Keys, hexists),
    ("HGETALL", Scope::Keys, hgetall),
    ("HKEYS", Scope::Keys, hkeys),
    ("HVALS", Scope::Keys, hvals),
    ("HINCRBY", Scope::Keys, hincrby),
    ("HINCRBYFLOAT", Scope::Keys, hincrbyfloat),
    ("HRANDFIELD", Scope::Keys, hrandfield),
    ("HSCAN", Scope::Keys, hscan),
];

/// The hash at a key, for reading.
pub(super) fn read<'c>(context: &'c mut Context<'_, '_>, key: &Key<'_>) -> Result<Option<HashRef<'c>>> {
    let (shard, mut op) = context.shard(key)?;
    Ok(shard.get_hash(&mut op, key)?)
}

/// The hash at a key, for a command that goes on to write.
pub(super) fn look<'c>(context: &'c mut Context<'_, '_>, key: &Key<'_>) -> Result<Option<HashRef<'c>>> {
    let (shard, mut op) = context.shard(key)?;
    Ok(shard.peek_hash(&mut op, key)?)
}

fn hset(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let created = set_fields(context, args)?;
    sink.count(created);
    Ok(())
}

fn hmset(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    set_fields(context, args)?;
    sink.ok();
    Ok(())
}

/// HSET and HMSET. Returns how many fields are new.
fn set_fields(context: &mut Context<'_, '_>, args: &Args<'_>) -> Result<usize> {
    if !args.len().is_multiple_of(2) {
        return Err(Error::arity(args.spec));
    }
    let key = context.key(args, 1);
    let limits = context.hash_limits();
    let (shard, mut op) = context.shard(&key)?;
    let created = shard.change_hash(&mut op, &key, true, limits, |hash| {
        hash.announce((args.len() - 2) / 2);
        let pairs = (2..args.len()).step_by(2);
        let new = pairs.filter(|&at| hash.set(args.bytes(at), args.bytes(at + 1))).count();
        Changed::yes(new)
    })?;
    context.notify(notify::HASH, "hset", &key);
    Ok(created.unwrap_or(0))
}

fn hsetnx(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let limits = context.hash_limits();
    let (shard, mut op) = context.shard(&key)?;
    let set = shard.change_hash(&mut op, &key, true, limits, |hash| {
        let absent = !hash.view().contains(args.bytes(2));
        if absent {
            hash.set(args.bytes(2), args.bytes(3));
        }
        Changed { result: absent, changed: absent }
    })?;
    let set = set.unwrap_or(false);
    if set {
        context.notify(notify::HASH, "hset", &key);
    }
    sink.int(set.into());
    Ok(())
}

fn hget(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    match read(context, &key)?.and_then(|hash| hash.get(args.bytes(2))) {
        Some(value) => sink.bulk(value),
        None => sink.null(),
    }
    Ok(())
}

fn hmget(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let hash = read(context, &key)?;
    sink.array(args.len() - 2);
    let mut answer = |value| match value {
        Some(value) => sink.bulk(value),
        None => sink.null(),
    };
    match hash {
        Some(hash) => hash.get_each(args.rest(2), answer),
        None => args.rest(2).for_each(|_| answer(None)),
    }
    Ok(())
}

fn hdel(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let removed = remove_fields(context, args, 2, |_| ())?;
    sink.count(removed);
    Ok(())
}

/// Removes the fields from argument `first` on after showing each one's value to `visit`. Returns how many there were.
fn remove_fields(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    first: usize,
    mut visit: impl FnMut(Option<&[u8]>),
) -> Result<usize> {
    let key = context.key(args, 1);
    let limits = context.hash_limits();
    let (shard, mut op) = context.shard(&key)?;
    let mut gone = 0;
    let found = shard.change_hash(&mut op, &key, false, limits, |hash| {
        for field in args.rest(first) {
            match hash.remove(field, |value| visit(Some(value))) {
                Some(()) => gone += 1,
                None => visit(None),
            }
        }
        Changed { result: (), changed: gone > 0 }
    })?;
    if found.is_none() {
        args.rest(first).for_each(|_| visit(None));
    }
    if gone > 0 {
        context.notify(notify::HASH, "hdel", &key);
        context.notify_if_gone(&key)?;
    }
    Ok(gone)
}

/// The fields of a command with `FIELDS numfields field …`, `FIELDS` standing at argument `at`: where the first one is.
pub(super) fn fields_at(args: &Args<'_>, at: usize) -> Result<usize> {
    let count = args.int(at + 1)?;
    if count < 1 || usize::try_from(count).ok() != Some(args.len() - at - 2) {
        return Err(Error::err("numfields should be greater than 0 and match the provided number of fields"));
    }
    Ok(at + 2)
}

fn hgetdel(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if !args.is(2, "FIELDS") {
        return Err(ErrorCode::Syntax.into());
    }
    let first = fields_at(args, 2)?;
    sink.array(args.len() - first);
    remove_fields(context, args, first, |value| match value {
        Some(value) => sink.bulk(value),
        None => sink.null(),
    })?;
    Ok(())
}

fn hlen(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let hash = read(context, &key)?;
    sink.count(hash.map_or(0, HashRef::len));
    Ok(())
}

fn hstrlen(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let value = read(context, &key)?.and_then(|hash| hash.get(args.bytes(2)));
    sink.count(value.map_or(0, <[u8]>::len));
    Ok(())
}

fn hexists(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let hash = read(context, &key)?;
    sink.int(hash.is_some_and(|hash| hash.contains(args.bytes(2))).into());
    Ok(())
}

fn hgetall(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let Some(hash) = read(context, &key)? else {
        sink.map(0);
        return Ok(());
    };
    sink.map_of_bulks(hash.len(), |out| {
        hash.visit(|field, value| {
            out.push(field);
            out.push(value);
        });
    });
    Ok(())
}

fn hkeys(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let hash = read(context, &key)?;
    sink.array_of_bulks(hash.map_or(0, HashRef::len), |out| {
        if let Some(hash) = hash {
            hash.visit(|field, _| out.push(field));
        }
    });
    Ok(())
}

fn hvals(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let hash = read(context, &key)?;
    sink.array_of_bulks(hash.map_or(0, HashRef::len), |out| {
        if let Some(hash) = hash {
            hash.visit(|_, value| out.push(value));
        }
    });
    Ok(())
}

/// HINCRBY and HINCRBYFLOAT: sets a field to what `next` makes of its value, keeping its expiry.
fn change_field(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    event: &str,
    next: impl FnOnce(Option<&[u8]>) -> Result<String>,
) -> Result<String> {
    let key = context.key(args, 1);
    let field = args.bytes(2);
    let limits = context.hash_limits();
    let (shard, mut op) = context.shard(&key)?;
    let changed = shard.change_hash(&mut op, &key, true, limits, |hash| {
        let value = match next(hash.view().get(field)) {
            Ok(value) => value,
            Err(error) => return Changed::no(Err(error)),
        };
        hash.set_with(field, value.as_bytes(), FieldExpiry::Keep);
        Changed::yes(Ok(value))
    })?;
    let value = changed.unwrap_or_else(|| Ok(String::new()))?;
    context.notify(notify::HASH, event, &key);
    Ok(value)
}

fn hincrby(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let by = args.int(3)?;
    let mut sum = 0;
    change_field(context, args, "hincrby", |value| {
        let value = value.map_or(Some(0), parse_int);
        let value = value.ok_or_else(|| Error::err("hash value is not an integer"))?;
        sum = value.checked_add(by).ok_or(ErrorCode::Overflow)?;
        Ok(sum.to_string())
    })?;
    sink.int(sum);
    Ok(())
}

fn hincrbyfloat(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let by = extended::parse(args.bytes(3)).ok_or(ErrorCode::NotAFloat)?;
    if !matches!(by, Parsed::Finite(_)) {
        return Err(Error::err("value is NaN or Infinity"));
    }
    let value = change_field(context, args, "hincrbyfloat", |value| {
        let value = match value {
            None => Parsed::Finite(Extended::from(0)),
            Some(value) => extended::parse(value).ok_or_else(|| Error::err("hash value is not a float"))?,
        };
        crate::commands::strings::number::add(value, by)
    })?;
    sink.bulk(value.as_bytes());
    Ok(())
}

fn hrandfield(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    if args.len() == 2 {
        return context.with_dice(|context, dice| {
            let mut found = false;
            if let Some(hash) = read(context, &key)? {
                hash.random_each(1, dice, |field, _| {
                    found = true;
                    sink.bulk(field);
                });
            }
            if !found {
                sink.null();
            }
            Ok(())
        });
    }
    let (count, repeat, with_values) = random_count(args, "WITHVALUES")?;
    context.with_dice(|context, dice| {
        let hash = read(context, &key)?;
        let Some(hash) = hash.filter(|hash| count > 0 && !hash.is_empty()) else {
            sink.array(0);
            return Ok(());
        };
        check_random(count, repeat)?;
        let len = if repeat { count } else { count.min(hash.len()) };
        if with_values {
            sink.pairs(len)
        } else {
            sink.array(len)
        }
        let show = |field: &[u8], value: &[u8]| {
            if with_values {
                sink.pair();
            }
            sink.bulk(field);
            if with_values {
                sink.bulk(value);
            }
        };
        if repeat {
            hash.random_each(count, dice, show)
        } else {
            hash.random_distinct(count, dice, show)
        }
        Ok(())
    })
}

fn hscan(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let cursor = scan_cursor(args)?;
    let key = context.key(args, 1);
    let Some(hash) = read(context, &key)? else {
        scan_nothing(sink);
        return Ok(());
    };
    let options = scan_options(args, "NOVALUES")?;
    let mut met = Vec::new();
    let next = hash.scan(cursor, options.count, |field, value| {
        if options.matches(field) {
            met.push((field, value));
        }
    });
    sink.array(2);
    sink.bulk(next.to_string().as_bytes());
    sink.array(if options.names_only { met.len() } else { 2 * met.len() });
    for (field, value) in met {
        sink.bulk(field);
        if !options.names_only {
            sink.bulk(value);
        }
    }
    Ok(())
}
