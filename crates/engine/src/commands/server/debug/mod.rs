//! Owns: DEBUG: what test suites and developers need. Does not own: anything that a program may rely on.
//!
//! | locks | subcommands |
//! |---|---|
//! | everything | those about keys |
//! | none | the others |
//!
//! Subcommands that steer inner workings which Weft does not have (rehashing, the cron job, reply buffers) are accepted
//! without effect: what they would change cannot be seen from outside. Those that crash the server are refused.

mod digest;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use weft_store::{AccessMode, Cursor, Digest, Digits, Expiry, NewValue, ValueRef};

use super::config::is_allowed;
use crate::args::Args;
use crate::commands::common::help;
use crate::commands::keys::dump;
use crate::config::value::bytes;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, HandlerFn, Scope};
use crate::info::random_id;
use crate::reply::{Protocol, ReplySink};

pub(crate) const LIST: &[Entry] = &[("DEBUG", Scope::KeysOrWorld(is_about_keys), debug)];

/// Keys that a walk visits in one step.
const SCAN_STEP: u64 = 10_000;
/// DEBUG SLEEP at most.
const SLEEP_S_MAX: f64 = 3600.0;

/// Subcommands: name, fewest and most arguments behind it, code.
const SUBCOMMANDS: &[(&str, usize, usize, HandlerFn)] = &[
    ("HELP", 0, 0, debug_help),
    ("CHANGE-REPL-ID", 0, 0, change_repl_id),
    ("DIGEST", 0, 0, dataset_digest),
    ("DIGEST-VALUE", 0, usize::MAX, digest_value),
    ("ERROR", 1, 1, error),
    ("HTSTATS", 1, 2, htstats),
    ("LISTPACK", 1, 1, listpack),
    ("LOG", 1, 1, log),
    ("OBJECT", 1, 2, object),
    ("POPULATE", 1, 3, populate),
    ("PROTOCOL", 1, 1, protocol),
    ("QUICKLIST", 1, 2, quicklist),
    ("QUICKLIST-PACKED-THRESHOLD", 1, 1, packed_threshold),
    ("RELOAD", 0, 3, reload),
    ("REWRITE-REST", 1, 1, rewrite_rest),
    ("LOADAOF", 0, 0, no_log),
    ("SDSLEN", 1, 1, sdslen),
    ("SET-ACTIVE-EXPIRE", 1, 1, set_active_expire),
    ("SET-DISABLE-DENY-SCRIPTS", 1, 1, set_disable_deny_scripts),
    ("SET-SKIP-CHECKSUM-VALIDATION", 1, 1, set_skip_checksum),
    ("SLEEP", 1, 1, sleep),
    ("STRINGMATCH-LEN", 2, 2, stringmatch_len),
    ("STRUCTSIZE", 0, 0, structsize),
    // Without effect.
    ("CLIENT-ENFORCE-REPLY-LIST", 1, 1, nothing),
    ("DICT-RESIZING", 1, 1, nothing),
    ("HASHTABLE-CAN-ABORT-SHRINK", 1, 1, nothing),
    ("PAUSE-CRON", 1, 1, nothing),
    ("REPLYBUFFER", 2, 2, nothing),
    // Would end the server.
    ("ASSERT", 0, usize::MAX, no_crash),
    ("CRASH-AND-RECOVER", 0, usize::MAX, no_crash),
    ("OOM", 0, usize::MAX, no_crash),
    ("PANIC", 0, usize::MAX, no_crash),
    ("RESTART", 0, usize::MAX, no_crash),
    ("SEGFAULT", 0, usize::MAX, no_crash),
];

fn is_about_keys(args: &Args<'_>) -> bool {
    ["DIGEST", "DIGEST-VALUE", "LISTPACK", "OBJECT", "POPULATE", "QUICKLIST", "RELOAD", "SDSLEN"]
        .iter()
        .any(|name| args.is(1, name))
}

fn debug(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if !is_allowed(context.engine.settings.debug_command.load(Relaxed), context.session) {
        return Err(Error::err(
            "DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
             local connection, otherwise you need to set this option in the configuration file, and then restart the \
             server.",
        ));
    }
    let given = args.len() - 2;
    let found = SUBCOMMANDS
        .iter()
        .find(|(name, fewest, most, _)| args.is(1, name) && (*fewest..=*most).contains(&given));
    match found {
        Some((.., run)) => run(context, args, sink),
        None => Err(Error::err(format!(
            "unknown subcommand or wrong number of arguments for '{}'. Try DEBUG HELP.",
            String::from_utf8_lossy(&args.bytes(1)[..args.bytes(1).len().min(128)])
        ))),
    }
}

fn nothing(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.ok();
    Ok(())
}

fn no_crash(_: &mut Context<'_, '_>, _: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    Err(Error::err("Weft does not crash on request; SHUTDOWN stops it, a signal kills it"))
}

fn no_log(_: &mut Context<'_, '_>, _: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    Err(Error::err("What is in the log is in memory already: restart the server to load it"))
}

/// Every key is written as DUMP writes it and read back, one after the other: what a restart with a snapshot does to
/// encodings, expiries and groups, without the file. So NOSAVE, which reads an older one, is refused.
fn reload(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    for index in 2..args.len() {
        if args.is(index, "NOSAVE") {
            return Err(Error::err("NOSAVE would load an older snapshot: restart the server for that"));
        }
        if !args.is(index, "MERGE") && !args.is(index, "NOFLUSH") {
            return Err(Error::err("DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."));
        }
    }
    let own = context.db;
    for db in 0..context.engine.keyspace.database_count() as u8 {
        context.db = db;
        // Writing back moves entries, so the names come first.
        let (mut names, mut cursor) = (Vec::new(), Cursor::START);
        loop {
            cursor = context.scan(cursor, SCAN_STEP, |key, _| names.push(key.to_vec()))?;
            if cursor.is_end() {
                break;
            }
        }
        for name in names {
            dump::reload(context, &name)?;
        }
    }
    context.db = own;
    sink.ok();
    Ok(())
}

fn sleep(_: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let seconds = args.double(2)?;
    if !(0.0..=SLEEP_S_MAX).contains(&seconds) {
        return Err(ErrorCode::NotAFloat.into());
    }
    std::thread::sleep(Duration::from_secs_f64(seconds));
    sink.ok();
    Ok(())
}

fn set_active_expire(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.settings.active_expire.store(args.int(2)? != 0, Relaxed);
    sink.ok();
    Ok(())
}

fn rewrite_rest(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let rest_ms = u64::try_from(args.int(2)?).map_err(|_| Error::err("a rest is not negative"))?;
    context.engine.settings.rewrite_rest_ms.store(rest_ms, Relaxed);
    sink.ok();
    Ok(())
}

/// What has no place in a script for other reasons (it waits, it is about the session) stays refused.
fn set_disable_deny_scripts(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    context.engine.settings.any_in_scripts.store(args.int(2)? != 0, Relaxed);
    sink.ok();
    Ok(())
}

fn set_skip_checksum(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.settings.any_checksum.store(args.int(2)? != 0, Relaxed);
    sink.ok();
    Ok(())
}

fn change_repl_id(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    *context.engine.facts.replication_id.lock() = random_id();
    sink.ok();
    Ok(())
}

/// Weft's lists keep elements of any size in the same way: the threshold is checked and has no effect.
fn packed_threshold(_: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    match bytes(args.bytes(2)) {
        Some(size) if size < 4 << 30 => sink.ok(),
        _ => return Err(Error::err("argument must be a memory value bigger than 1 and smaller than 4gb")),
    }
    Ok(())
}

/// An error whose prefix and text are the client's own.
fn error(_: &mut Context<'_, '_>, args: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    let text = String::from_utf8_lossy(args.bytes(2)).replace(['\r', '\n'], " ");
    let (prefix, rest) = text.split_once(' ').unwrap_or((&text, ""));
    Err(Error { code: ErrorCode::Generic, text: rest.to_string().into(), prefix: Some(prefix.into()) })
}

fn log(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.facts.log(&format!("DEBUG LOG: {}", String::from_utf8_lossy(args.bytes(2))));
    sink.ok();
    Ok(())
}

fn stringmatch_len(_: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let len = args.count(2)?.min(1 << 20);
    sink.int(i64::from(crate::glob::matches(args.bytes(3), &vec![b'a'; len])));
    Ok(())
}

fn structsize(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let text = format!(
        "bits:{} value:{} request:{} session:{} client:{}",
        usize::BITS,
        size_of::<ValueRef<'_>>(),
        size_of::<crate::requests::Request>(),
        size_of::<crate::session::Session>(),
        size_of::<crate::session::ClientInfo>(),
    );
    sink.bulk(text.as_bytes());
    Ok(())
}

fn htstats(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let keyspace = &context.engine.keyspace;
    let db = u8::try_from(args.int(2)?).ok().filter(|db| usize::from(*db) < keyspace.database_count());
    let db = db.ok_or_else(|| Error::err("Out of range database"))?;
    let text = format!(
        "[Dictionary HT]\nshards: {}\nkeys: {}\nresident bytes of all tables: {}\n[Expires HT]\nkeys: {}\n",
        keyspace.shard_count(),
        keyspace.len(db),
        keyspace.table_resident_bytes(),
        keyspace.expiring(db),
    );
    sink.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// Looks at a key's value, or answers that there is none.
fn look<R>(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    what: impl FnOnce(&str, ValueRef<'_>) -> R,
) -> Result<R> {
    let key = context.key(args, 2);
    let (shard, mut op) = context.shard(&key)?;
    let Some(info) = shard.info(&mut op, &key) else { return Err(ErrorCode::NoSuchKey.into()) };
    op.touch = false;
    match shard.get(&mut op, &key) {
        Some(value) => Ok(what(info.encoding, value)),
        None => Err(ErrorCode::NoSuchKey.into()),
    }
}

fn object(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let fast = args.len() == 4 && args.is(3, "FAST");
    let access = context.engine.keyspace.access_mode();
    let now_ms = context.now_ms;
    let info = {
        let key = context.key(args, 2);
        let (shard, mut op) = context.shard(&key)?;
        shard.info(&mut op, &key).ok_or(ErrorCode::NoSuchKey)?
    };
    let (serialized, list) = look(context, args, |_, value| {
        let list = value.as_list().map(|list| list.len());
        (if fast { None } else { Some(digest::serialized_len(value)) }, list)
    })?;
    let mut text = format!("Value at:0x0 refcount:1 encoding:{}", info.encoding);
    if let Some(len) = serialized {
        text.push_str(&format!(" serializedlength:{len}"));
    }
    text.push_str(&match access {
        AccessMode::Lfu { .. } => format!(" lfu_freq:{} lfu_access_time_minutes:0", info.frequency),
        AccessMode::Lru => {
            let clock = (now_ms / 1000).saturating_sub(u64::from(info.idle_s)) & 0xff_ffff;
            format!(" lru:{clock} lru_seconds_idle:{}", info.idle_s)
        }
    });
    if let Some(len) = list.filter(|_| info.encoding == "quicklist") {
        let settings = &context.engine.settings;
        let fill = settings.list_max_listpack_size.load(Relaxed);
        let compressed = u8::from(settings.list_compress_depth.load(Relaxed) != 0);
        let fields =
            format!(" ql_nodes:1 ql_avg_node:{len}.00 ql_listpack_max:{fill} ql_compressed:{compressed}");
        text.push_str(&fields);
        if let Some(len) = serialized {
            text.push_str(&format!(" ql_uncompressed_size:{len}"));
        }
    }
    sink.simple(&text);
    Ok(())
}

fn listpack(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if look(context, args, |encoding, _| encoding != "listpack")? {
        return Err(Error::err("Not a listpack encoded object."));
    }
    sink.simple("Weft's compact form has no structure to print");
    Ok(())
}

fn quicklist(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if look(context, args, |encoding, _| encoding != "quicklist")? {
        return Err(Error::err("Not a quicklist encoded object."));
    }
    sink.simple("Weft's lists have no structure to print");
    Ok(())
}

fn sdslen(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let len = look(context, args, |_, value| value.as_bytes(&mut Digits::default()).map(<[u8]>::len))?;
    let Some(len) = len else { return Err(Error::err("Not an sds encoded string.")) };
    let key = args.bytes(2).len();
    sink.simple(&format!(
        "key_sds_len:{key} key_sds_avail:0 obj_alloc:{key} val_sds_len:{len} val_sds_avail:0 val_alloc:{len}"
    ));
    Ok(())
}

fn populate(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let count = args.count(2)?;
    let prefix = if args.len() > 3 { args.bytes(3) } else { b"key" };
    let size = if args.len() > 4 { args.count(4)? } else { 0 };
    if size > context.engine.settings.string_bytes_max.load(Relaxed) {
        return Err(ErrorCode::StringTooLong.into());
    }
    for number in 0..count {
        let name = [prefix, format!(":{number}").as_bytes()].concat();
        let mut value = format!("value:{number}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        let key = context.key_of(&name);
        let (shard, mut op) = context.shard(&key)?;
        if !shard.exists(&mut op, &key) {
            let (garbage, _) = shard.set(&mut op, &key, NewValue::string(&value), Expiry::None);
            context.discard(garbage);
        }
    }
    sink.ok();
    Ok(())
}

fn dataset_digest(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let own = context.db;
    let mut sum = Digest::default();
    for db in 0..context.engine.keyspace.database_count() as u8 {
        context.db = db;
        let mut cursor = Cursor::START;
        loop {
            let mut found: Vec<(Vec<u8>, Digest)> = Vec::new();
            cursor = context.scan(cursor, SCAN_STEP, |key, value| {
                found.push((key.to_vec(), Digest::of_value(value)));
            })?;
            for (name, value) in found {
                let key = context.key_of(&name);
                let (shard, mut op) = context.shard(&key)?;
                let expire_ms = shard.expire_ms(&mut op, &key).flatten();
                sum.add(Digest::of_key(db, &name, value, expire_ms));
            }
            if cursor.is_end() {
                break;
            }
        }
    }
    context.db = own;
    sink.simple(&digest::hex(sum));
    Ok(())
}

fn digest_value(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.array(args.len() - 2);
    for index in 2..args.len() {
        let key = context.key(args, index);
        let (shard, mut op) = context.shard(&key)?;
        op.touch = false;
        let digest = shard.get(&mut op, &key).map(Digest::of_value).unwrap_or_default();
        sink.simple(&digest::hex(digest));
    }
    Ok(())
}

/// A value of each kind that RESP3 has, for those who test clients.
fn protocol(_: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let kind = String::from_utf8_lossy(args.bytes(2)).to_ascii_lowercase();
    match kind.as_str() {
        "string" => sink.bulk(b"Hello World"),
        "integer" => sink.int(12_345),
        "double" => sink.double(3141.0 / 1000.0),
        "bignum" => sink.big_number("1234567999999999999999999999999999999"),
        "null" => sink.null(),
        "array" => {
            sink.array(3);
            (0..3).for_each(|number| sink.int(number));
        }
        "set" => {
            sink.set(3);
            (0..3).for_each(|number| sink.int(number));
        }
        "map" => {
            sink.map(3);
            for number in 0..3 {
                sink.int(number);
                sink.bool(number == 1);
            }
        }
        "attrib" => {
            if sink.wire().protocol == Protocol::Resp3 {
                // It belongs to the value behind it, and counts for none.
                sink.raw(b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n");
            }
            sink.bulk(b"Some real reply following the attribute");
        }
        "push" => {
            if !sink.wire().protocol.has_pushes() {
                return Err(Error::err("RESP2 is not supported by this command"));
            }
            sink.bulk(b"Some real reply following the push reply");
            sink.push(2);
            sink.bulk(b"server-cpu-usage");
            sink.int(42);
        }
        "verbatim" => sink.verbatim(*b"txt", b"This is a verbatim\nstring"),
        "true" => sink.bool(true),
        "false" => sink.bool(false),
        _ => {
            return Err(Error::err(
                "Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

fn debug_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let lines = [
        "CHANGE-REPL-ID",
        "    Change the replication IDs of the instance.",
        "DIGEST",
        "    Output a hex signature representing the current DB content.",
        "DIGEST-VALUE <key> [<key> ...]",
        "    Output a hex signature of the values of all the specified keys.",
        "ERROR <string>",
        "    Return a RESP protocol error with <string> as message.",
        "HTSTATS <dbid> [full]",
        "    Return hash table statistics of the specified database.",
        "LISTPACK <key>",
        "    Say whether <key> is a listpack.",
        "LOG <message>",
        "    Write <message> to the server log.",
        "OBJECT <key> [fast]",
        "    Show low level info about `key` and associated value.",
        "POPULATE <count> [<prefix>] [<size>]",
        "    Create <count> string keys named key:<num>, or <prefix>:<num>.",
        "PROTOCOL <type>",
        "    Reply with a test value of the specified type.",
        "QUICKLIST <key> [<0|1>]",
        "    Say whether <key> is a list beyond the compact form.",
        "REWRITE-REST <milliseconds>",
        "    Leave a log that has become long as it is for so long when its rewrite failed;",
        "    30000 by default.",
        "SDSLEN <key>",
        "    Show the lengths of a key and its string value.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Setting it to 0 disables expiring keys in background when they are not",
        "    accessed. Setting it to 1 reenables back the default.",
        "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
        "    Take what RESTORE gets also with a wrong checksum, or not.",
        "SLEEP <seconds>",
        "    Stop the worker for <seconds>. Decimals allowed.",
        "STRUCTSIZE",
        "    Return the size of some structures.",
    ];
    help::answer(sink, "DEBUG", &lines);
    Ok(())
}
