//! Owns: the commands that look at or change a whole database. Does not own: single keys (`super::generic`).
//!
//! SCAN and RANDOMKEY lock one shard at a time and hold nobody up. KEYS, FLUSHDB, FLUSHALL and SWAPDB have the keyspace
//! to themselves; flushing only sets the tables aside, so none but KEYS takes long.

use weft_store::{Cursor, Op, Rng};

use crate::args::Args;
use crate::commands::common::collection::cursor;
use crate::context::{Context, Locked};
use crate::error::{Error, ErrorCode, Result};
use crate::glob;
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("SCAN", Scope::Walk, scan),
    ("RANDOMKEY", Scope::Walk, randomkey),
    ("KEYS", Scope::World, keys),
    ("DBSIZE", Scope::None, dbsize),
    ("FLUSHDB", Scope::World, flushdb),
    ("FLUSHALL", Scope::World, flushall),
    ("SWAPDB", Scope::World, swapdb),
];

/// The types that SCAN can be asked for.
const TYPES: [&str; 6] = ["string", "list", "set", "zset", "hash", "stream"];
/// What SCAN visits when it is not told.
const SCAN_COUNT: u64 = 10;
/// Keys that KEYS visits in one step.
const KEYS_STEP: u64 = 10_000;

/// What SCAN is asked for.
struct ScanOptions<'a> {
    count: u64,
    pattern: Option<&'a [u8]>,
    type_name: Option<&'static str>,
}

impl<'a> ScanOptions<'a> {
    fn read(args: &Args<'a>) -> Result<Self> {
        let mut options = Self { count: SCAN_COUNT, pattern: None, type_name: None };
        let mut index = 2;
        while index < args.len() {
            let has_next = index + 1 < args.len();
            if args.is(index, "COUNT") && has_next {
                let count = args.int(index + 1)?;
                options.count =
                    u64::try_from(count).ok().filter(|&count| count > 0).ok_or(ErrorCode::Syntax)?;
            } else if args.is(index, "MATCH") && has_next {
                options.pattern = Some(args.bytes(index + 1)).filter(|pattern| *pattern != b"*");
            } else if args.is(index, "TYPE") && has_next {
                options.type_name = Some(type_argument(args, index + 1)?);
            } else if args.is(index, "NOVALUES") {
                return Err(Error::err("NOVALUES option can only be used in HSCAN"));
            } else if args.is(index, "NOSCORES") {
                return Err(Error::err("NOSCORES option can only be used in ZSCAN"));
            } else {
                return Err(ErrorCode::Syntax.into());
            }
            index += 2;
        }
        Ok(options)
    }
}

fn type_argument(args: &Args<'_>, index: usize) -> Result<&'static str> {
    let name = TYPES.into_iter().find(|name| args.bytes(index).eq_ignore_ascii_case(name.as_bytes()));
    name.ok_or_else(|| {
        Error::err(format!("unknown type name '{}'", String::from_utf8_lossy(args.bytes(index))))
    })
}

fn scan(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let cursor = cursor(args, 1)?;
    let options = ScanOptions::read(args)?;
    // One buffer for all keys: the cursor goes before them, and is known after them.
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let next = context.scan(Cursor::from_u64(cursor), options.count, |key, value| {
        let wanted = options.type_name.is_none_or(|name| value.type_name() == name)
            && options.pattern.is_none_or(|pattern| glob::matches(pattern, key));
        if wanted {
            bytes.extend_from_slice(key);
            ends.push(bytes.len());
        }
    })?;
    sink.array(2);
    sink.bulk(next.as_u64().to_string().as_bytes());
    sink.array(ends.len());
    let mut start = 0;
    for end in ends {
        sink.bulk(&bytes[start..end]);
        start = end;
    }
    Ok(())
}

/// Keys go into the reply as they are met: memory is that of the reply.
fn keys(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let pattern = Some(args.bytes(1)).filter(|pattern| *pattern != b"*");
    sink.deferred();
    let mut cursor = Cursor::START;
    loop {
        cursor = context.scan(cursor, KEYS_STEP, |key, _| {
            if pattern.is_none_or(|pattern| glob::matches(pattern, key)) {
                sink.bulk(key);
            }
        })?;
        if cursor.is_end() {
            break;
        }
    }
    sink.close();
    Ok(())
}

fn randomkey(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let mut key = context.random_key();
    if key.is_none() && !context.engine.keyspace.is_empty(context.db) {
        // So few keys in such large tables that chance has missed them all.
        let mut cursor = Cursor::START;
        loop {
            cursor = context.scan(cursor, 1, |found, _| key = Some(found.to_vec()))?;
            if key.is_some() || cursor.is_end() {
                break;
            }
        }
    }
    match key {
        Some(key) => sink.bulk(&key),
        None => sink.null(),
    }
    Ok(())
}

impl Context<'_, '_> {
    /// A key of the session's database by chance; nothing when there is none or it was missed.
    fn random_key(&mut self) -> Option<Vec<u8>> {
        let sees_expired = self.sees_expired();
        let op = Op::untouched(self.db, self.now_ms, &mut self.local.effects.recorder);
        let op = Op { sees_expired, ..op };
        match &mut self.locked {
            Locked::Batch(batch) => batch.random_key(&op, &mut self.local.rng),
            Locked::World(_, guards) => {
                let shards = self.engine.keyspace.shard_count();
                let start = self.local.rng.below(shards);
                let mut ids = (start..shards).chain(0..start);
                ids.find_map(|id| guards.shard_by_id(id).random_key(&op, <[u8]>::to_vec))
            }
            Locked::Guards(_) | Locked::Key(_) | Locked::Nothing => {
                unreachable!("a walk does not run under the locks of some keys")
            }
        }
    }
}

fn dbsize(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.count(context.engine.keyspace.len(context.db));
    Ok(())
}

fn flushdb(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    check_flush(args)?;
    let db = context.db;
    flush(context, db..=db);
    sink.ok();
    Ok(())
}

fn flushall(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    check_flush(args)?;
    // At most 256 databases.
    let last = (context.engine.keyspace.database_count() - 1) as u8;
    flush(context, 0..=last);
    sink.ok();
    Ok(())
}

/// SYNC and ASYNC are the same: the keys are gone when the answer comes, and their memory follows in small steps.
fn check_flush(args: &Args<'_>) -> Result {
    let known = args.len() == 1 || args.len() == 2 && (args.is(1, "SYNC") || args.is(1, "ASYNC"));
    if known { Ok(()) } else { Err(ErrorCode::Syntax.into()) }
}

fn flush(context: &mut Context<'_, '_>, dbs: std::ops::RangeInclusive<u8>) {
    if let Locked::World(world, guards) = &mut context.locked {
        // The flush locks every shard itself.
        **guards = world.guards();
        let op = &mut Op::new(*dbs.start(), context.now_ms, &mut context.local.effects.recorder);
        world.flush(op, dbs.clone());
    }
    dbs.for_each(|db| context.written_all(db));
}

fn swapdb(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let bounds = i64::from(i32::MIN)..=i64::from(i32::MAX);
    let one = args.int_in_said(1, bounds.clone(), "invalid first DB index")?;
    let two = args.int_in_said(2, bounds, "invalid second DB index")?;
    if !context.has_db(one) || !context.has_db(two) {
        return Err(Error::err("DB index is out of range"));
    }
    let (one, two) = (one as u8, two as u8);
    if let Locked::World(world, guards) = &mut context.locked
        && one != two
    {
        **guards = world.guards();
        world.swap(&mut Op::new(one, context.now_ms, &mut context.local.effects.recorder), two);
        // Who waits stays in its database, where there may be something now.
        context.written_all(one);
        context.written_all(two);
    }
    sink.ok();
    Ok(())
}
