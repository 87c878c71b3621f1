//! Owns: DUMP and RESTORE. Does not own: the format (`crate::rdb`).

use std::sync::atomic::Ordering::Relaxed;
use weft_store::hash_object::HashRef;
use weft_store::{AccessMode, Digits, Expiry, Key, NewValue, ObjectRef, ValueRef};

use crate::args::Args;
use crate::carrier::Item;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::rdb::load::Loader;
use crate::rdb::{Payload, PayloadError, Trust, Unpacked, Writer, write_stream};
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[("DUMP", Scope::Keys, dump), ("RESTORE", Scope::Keys, restore)];

fn dump(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key)?;
    match shard.get(&mut op, &key) {
        Some(value) => sink.bulk(&payload(&value)),
        None => sink.null(),
    }
    Ok(())
}

/// A key as MIGRATE sends it.
pub(crate) fn item(context: &mut Context<'_, '_>, key: &Key<'_>) -> Result<Option<Item>> {
    let (shard, mut op) = context.shard(key)?;
    let Some(expire_ms) = shard.expire_ms(&mut op, key) else { return Ok(None) };
    let Some(value) = shard.peek(&mut op, key) else { return Ok(None) };
    Ok(Some(Item { key: key.bytes().into(), payload: payload(&value), expire_ms }))
}

/// The payload of a value.
fn payload(value: &ValueRef<'_>) -> Vec<u8> {
    let ValueRef::Object(object) = value else {
        return Writer::text(value.as_bytes(&mut Digits::default()).unwrap_or_default());
    };
    let mut writer;
    match object {
        ObjectRef::List(list) => {
            writer = Writer::list(list.len());
            list.iter().for_each(|element| writer.element(element));
        }
        ObjectRef::Set(set) => {
            writer = Writer::set(set.len());
            set.iter().for_each(|member| writer.element(&member));
        }
        ObjectRef::Hash(hash) => return hash_payload(*hash),
        ObjectRef::SortedSet(set) => {
            writer = Writer::zset(set.len());
            set.iter_back(0..set.len()).for_each(|scored| writer.scored(scored.member, scored.score));
        }
        ObjectRef::Stream(stream) => return write_stream(stream),
        // The store has no other types.
        _ => return Vec::new(),
    }
    writer.finish()
}

fn hash_payload(hash: HashRef<'_>) -> Vec<u8> {
    // Fields whose time has come count until they are removed, but are not shown.
    let count = hash.iter().count();
    let mut writer = if hash.has_expiring() { Writer::expiring_hash(count) } else { Writer::hash(count) };
    for field in hash.fields() {
        if hash.has_expiring() {
            writer.expiring_pair(field.name, field.value, field.expire_ms);
        } else {
            writer.pair(field.name, field.value);
        }
    }
    writer.finish()
}

/// How many strings of `proto-max-bulk-len` the compressed strings of one payload may come to.
const UNPACKED_STRINGS_MAX: u64 = 4;
/// What they may come to without a question.
const UNPACKED_HEEDED_BYTES: u64 = 16 << 20;

#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_s: Option<i64>,
    frequency: Option<i64>,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 4;
        while at < args.len() {
            let more = at + 1 < args.len();
            if args.is(at, "REPLACE") {
                options.replace = true;
            } else if args.is(at, "ABSTTL") {
                options.absolute = true;
            } else if args.is(at, "IDLETIME") && more && options.frequency.is_none() {
                at += 1;
                let idle = args.int(at)?;
                if idle < 0 {
                    return Err(Error::err("Invalid IDLETIME value, must be >= 0"));
                }
                options.idle_s = Some(idle);
            } else if args.is(at, "FREQ") && more && options.idle_s.is_none() {
                at += 1;
                let frequency = args.int(at)?;
                if !(0..=255).contains(&frequency) {
                    return Err(Error::err("Invalid FREQ value, must be >= 0 and <= 255"));
                }
                options.frequency = Some(frequency);
            } else {
                return Err(ErrorCode::Syntax.into());
            }
            at += 1;
        }
        Ok(options)
    }
}

/// A payload's value; `text` keeps what it borrows.
fn load<'t>(context: &Context<'_, '_>, payload: &[u8], text: &'t mut Vec<u8>) -> Result<NewValue<'t>> {
    let mut loader = Loader::new(&context.engine.settings, context.engine.keyspace.backing());
    let settings = &context.engine.settings;
    let trust = Trust {
        any_version: settings.any_rdb_version.load(Relaxed),
        any_checksum: settings.any_checksum.load(Relaxed),
    };
    let refused = |error| match error {
        PayloadError::VersionOrChecksum => Error::err("DUMP payload version or checksum are wrong"),
        PayloadError::Malformed => Error::err("Bad data format"),
    };
    let payload = Payload::open(payload, trust).map_err(refused)?;
    admit(context, payload.unpacked(UNPACKED_HEEDED_BYTES).map_err(refused)?)?;
    payload.read(&mut loader).map_err(refused)?;
    loader.finish(text).ok_or_else(|| Error::err("Bad data format"))
}

/// Whether compressed strings may be unpacked: a few bytes can stand for many, with the time and the memory of many.
fn admit(context: &Context<'_, '_>, unpacked: Unpacked) -> Result {
    let string_bytes_max = context.engine.settings.string_bytes_max.load(Relaxed) as u64;
    if unpacked.longest > string_bytes_max {
        return Err(ErrorCode::StringTooLong.into());
    }
    let bytes_max = string_bytes_max.saturating_mul(UNPACKED_STRINGS_MAX);
    if unpacked.bytes > bytes_max {
        let text = format!(
            "the compressed strings of the payload come to more than {bytes_max} bytes \
             ({UNPACKED_STRINGS_MAX} times proto-max-bulk-len)"
        );
        return Err(Error::new(ErrorCode::Limit, text));
    }
    if unpacked.bytes > UNPACKED_HEEDED_BYTES && !context.engine.has_room_for(unpacked.bytes) {
        return Err(ErrorCode::OutOfMemory.into());
    }
    Ok(())
}

/// Writes a key out and reads it back, with its expiry and its last use.
pub(crate) fn reload(context: &mut Context<'_, '_>, name: &[u8]) -> Result {
    let key = context.key_of(name);
    let (shard, mut op) = context.shard(&key)?;
    let (expire_ms, info) = (shard.expire_ms(&mut op, &key).flatten(), shard.info(&mut op, &key));
    let (Some(info), Some(value)) = (info, shard.peek(&mut op, &key)) else { return Ok(()) };
    let bytes = payload(&value);
    let mut text = Vec::new();
    let value = load(context, &bytes, &mut text)?;
    let (shard, mut op) = context.shard(&key)?;
    let garbage = shard.remove(&mut op, &key);
    shard.set(&mut op, &key, value, expire_ms.map_or(Expiry::None, Expiry::At));
    shard.set_access(&mut op, &key, info.idle_s, info.frequency);
    context.discard(garbage.unwrap_or_default());
    Ok(())
}

fn restore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let options = Options::parse(args)?;
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key)?;
    if !options.replace && shard.exists(&mut op, &key) {
        return Err(ErrorCode::BusyKey.into());
    }
    let ttl_ms = args.int(2)?;
    let ttl_ms = u64::try_from(ttl_ms).map_err(|_| Error::err("Invalid TTL value, must be >= 0"))?;
    let mut text = Vec::new();
    let value = load(context, args.bytes(3), &mut text)?;
    let expiry = match ttl_ms {
        0 => Expiry::None,
        ttl_ms if options.absolute => Expiry::At(ttl_ms),
        ttl_ms => Expiry::At(context.now_ms.saturating_add(ttl_ms)),
    };
    if matches!(expiry, Expiry::At(at) if context.has_come()(at)) {
        if options.replace {
            context.delete(&key)?;
        }
        sink.ok();
        return Ok(());
    }
    let (shard, mut op) = context.shard(&key)?;
    let garbage = shard.remove(&mut op, &key);
    shard.set(&mut op, &key, value, expiry);
    let (idle_s, frequency) = (options.idle_s.unwrap_or(0), options.frequency.unwrap_or(0));
    let counts_use = matches!(context.engine.keyspace.access_mode(), AccessMode::Lfu { .. });
    if options.idle_s.is_some() && !counts_use || options.frequency.is_some() && counts_use {
        let idle_s = u32::try_from(idle_s).unwrap_or(u32::MAX);
        let (shard, mut op) = context.shard(&key)?;
        shard.set_access(&mut op, &key, idle_s, frequency as u8);
    }
    context.discard(garbage.unwrap_or_default());
    context.notify(notify::GENERIC, "restore", &key);
    sink.ok();
    Ok(())
}
