//! Owns: OBJECT: how a value is kept. Does not own: MEMORY USAGE.

use weft_store::{AccessMode, KeyInfo};

use crate::args::Args;
use crate::commands::common::help;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("OBJECT ENCODING", Scope::Keys, encoding),
    ("OBJECT REFCOUNT", Scope::Keys, refcount),
    ("OBJECT IDLETIME", Scope::Keys, idletime),
    ("OBJECT FREQ", Scope::Keys, freq),
    ("OBJECT HELP", Scope::None, object_help),
];

/// What is known of a key, without counting an access. Without the key null is the answer.
fn info(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<Option<KeyInfo>> {
    let key = context.key(args, 2);
    let (shard, mut op) = context.shard(&key)?;
    let info = shard.info(&mut op, &key);
    if info.is_none() {
        sink.null();
    }
    Ok(info)
}

fn encoding(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if let Some(info) = info(context, args, sink)? {
        sink.bulk(info.encoding.as_bytes());
    }
    Ok(())
}

/// Always 1: no value belongs to two keys.
fn refcount(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if info(context, args, sink)?.is_some() {
        sink.int(1);
    }
    Ok(())
}

fn is_lfu(context: &Context<'_, '_>) -> bool {
    matches!(context.engine.keyspace.access_mode(), AccessMode::Lfu { .. })
}

fn idletime(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let Some(info) = info(context, args, sink)? else { return Ok(()) };
    if is_lfu(context) {
        return Err(Error::err(
            "An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between \
             policies at runtime LRU and LFU data will take some time to adjust.",
        ));
    }
    sink.int(i64::from(info.idle_s));
    Ok(())
}

fn freq(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let Some(info) = info(context, args, sink)? else { return Ok(()) };
    if !is_lfu(context) {
        return Err(Error::err(
            "An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
             between policies at runtime LRU and LFU data will take some time to adjust.",
        ));
    }
    sink.int(i64::from(info.frequency));
    Ok(())
}

fn object_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let lines = [
        "ENCODING <key>",
        "    Return the kind of internal representation used in order to store the value",
        "    associated with a <key>.",
        "FREQ <key>",
        "    Return the access frequency index of the <key>. The returned integer is",
        "    proportional to the logarithm of the recent access frequency of the key.",
        "IDLETIME <key>",
        "    Return the idle time of the <key>, that is the approximated number of",
        "    seconds elapsed since the last access to the key.",
        "REFCOUNT <key>",
        "    Return the number of references of the value associated with the specified",
        "    <key>.",
    ];
    help::answer(sink, "OBJECT", &lines);
    Ok(())
}
