//! Owns: MEMORY. Does not own: the figures (`crate::info`, `weft_store`).
//!
//! | locks | commands |
//! |---|---|
//! | shards of the named keys | MEMORY USAGE |
//! | none | the others |

use std::sync::atomic::Ordering::Relaxed;
use weft_store::Section;

use crate::args::Args;
use crate::commands::common::help;
use crate::context::Context;
use crate::error::{ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::info::MemoryFigures;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("MEMORY DOCTOR", Scope::None, doctor),
    ("MEMORY HELP", Scope::None, memory_help),
    ("MEMORY MALLOC-STATS", Scope::None, malloc_stats),
    ("MEMORY PURGE", Scope::None, purge),
    ("MEMORY STATS", Scope::None, stats),
    ("MEMORY USAGE", Scope::Keys, usage),
];

/// Memory that is in use below which nothing can be said.
const EMPTY_BYTES_MAX: usize = 5 << 20;
/// Overheads below this are not worth a word.
const OVERHEAD_BYTES_MIN: usize = 10 << 20;

/// The size of a value is known, so nothing is sampled and SAMPLES changes nothing.
fn usage(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let mut at = 3;
    while at < args.len() {
        if !args.is(at, "SAMPLES") || at + 1 == args.len() || args.int(at + 1)? < 0 {
            return Err(ErrorCode::Syntax.into());
        }
        at += 2;
    }
    let key = context.key(args, 2);
    let (shard, mut op) = context.shard(&key)?;
    match shard.info(&mut op, &key) {
        Some(info) => sink.int(info.memory_bytes as i64),
        None => sink.null(),
    }
    Ok(())
}

fn stats(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let figures = MemoryFigures::now(context.engine);
    let databases: Vec<(u8, usize)> = (0..context.engine.keyspace.database_count() as u8)
        .map(|db| (db, context.engine.keyspace.len(db)))
        .filter(|(_, keys)| *keys > 0)
        .collect();
    let keys: usize = databases.iter().map(|(_, keys)| keys).sum();
    let ints = |sink: &mut ReplySink<'_>, fields: &[(&str, usize)]| {
        for (name, value) in fields {
            sink.bulk(name.as_bytes());
            sink.int(*value as i64);
        }
    };
    let scripts = &context.engine.scripts;
    let lua = scripts.kept().1 + scripts.budget.used_bytes();
    let libraries = context.engine.keyspace.catalogue().bytes(Section::Functions);
    sink.map(34 + databases.len());
    ints(
        sink,
        &[
            ("peak.allocated", figures.peak_bytes),
            ("total.allocated", figures.used_bytes),
            ("startup.allocated", 0),
            ("replication.backlog", 0),
            ("replicas.repl.buffer", 0),
            ("clients.slaves", 0),
            ("clients.normal", figures.buffer_bytes),
            ("cluster.links", 0),
            ("cluster.slot_import", 0),
            ("cluster.slot_export", 0),
            ("aof.buffer", 0),
            ("lua.caches", lua),
            ("functions.caches", libraries),
        ],
    );
    for (db, len) in &databases {
        sink.bulk(format!("db.{db}").as_bytes());
        sink.map(2);
        // Tables are shared out by the number of keys; expiries stand in the same tables.
        let share = figures.table_bytes as u128 * *len as u128 / keys.max(1) as u128;
        ints(sink, &[("overhead.hashtable.main", share as usize), ("overhead.hashtable.expires", 0)]);
    }
    ints(
        sink,
        &[
            ("overhead.db.hashtable.lut", figures.table_bytes),
            ("overhead.db.hashtable.rehashing", 0),
            ("overhead.total", figures.overhead_bytes),
            ("db.dict.rehashing.count", 0),
            ("keys.count", keys),
            ("keys.bytes-per-key", figures.used_bytes.checked_div(keys).unwrap_or(0)),
            ("dataset.bytes", figures.dataset_bytes()),
        ],
    );
    ratio(sink, "dataset.percentage", figures.dataset_bytes() * 100, figures.used_bytes);
    ratio(sink, "peak.percentage", figures.used_bytes * 100, figures.peak_bytes);
    ints(
        sink,
        &[
            ("allocator.allocated", figures.used_bytes),
            ("allocator.active", figures.active_bytes),
            ("allocator.resident", figures.active_bytes),
            ("allocator.muzzy", 0),
        ],
    );
    ratio(sink, "allocator-fragmentation.ratio", figures.active_bytes, figures.used_bytes);
    ints(sink, &[("allocator-fragmentation.bytes", figures.active_bytes.saturating_sub(figures.used_bytes))]);
    ratio(sink, "allocator-rss.ratio", 1, 1);
    ints(sink, &[("allocator-rss.bytes", 0)]);
    ratio(sink, "rss-overhead.ratio", figures.resident_bytes, figures.active_bytes);
    sink.bulk(b"rss-overhead.bytes");
    sink.int(figures.resident_bytes as i64 - figures.active_bytes as i64);
    ratio(sink, "fragmentation", figures.resident_bytes, figures.used_bytes);
    sink.bulk(b"fragmentation.bytes");
    sink.int(figures.resident_bytes as i64 - figures.used_bytes as i64);
    Ok(())
}

fn ratio(sink: &mut ReplySink<'_>, name: &str, part: usize, whole: usize) {
    sink.bulk(name.as_bytes());
    sink.double(if whole == 0 { 0.0 } else { part as f64 / whole as f64 });
}

fn doctor(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let report = report(&MemoryFigures::now(context.engine), context.engine.clients.len());
    sink.verbatim(*b"txt", report.as_bytes());
    Ok(())
}

/// What MEMORY DOCTOR says.
fn report(figures: &MemoryFigures, clients: usize) -> String {
    if figures.used_bytes < EMPTY_BYTES_MAX {
        return "There is too little data to tell anything: less than 5 MiB.\n".into();
    }
    let over = |part: usize, whole: usize, tenths: usize| {
        part * 10 > whole * tenths && part.saturating_sub(whole) > OVERHEAD_BYTES_MIN
    };
    let mut text = String::new();
    if over(figures.peak_bytes, figures.used_bytes, 15) {
        text.push_str(
            " * Peak: more than one and a half times of what is used now was used once. What has been freed goes back \
             to the system by and by; MEMORY PURGE asks for it.\n",
        );
    }
    if over(figures.active_bytes, figures.used_bytes, 13) {
        text.push_str(
            " * Pages: those that hold entries are more than 1.3 times the entries. Sparse pages are compacted in the \
             background; this is usual for some seconds after many keys went.\n",
        );
    }
    if over(figures.resident_bytes, figures.active_bytes, 15) {
        text.push_str(
            " * Process: it holds more than 1.5 times what the keyspace has. Large values, buffers of clients and \
             output that waits to be read are outside of the pages; CLIENT LIST shows the buffers (qbuf, omem).\n",
        );
    }
    if figures.buffer_bytes / clients.max(1) > 200 << 10 {
        text.push_str(
            " * Buffers: clients have more than 200 KiB each. CLIENT LIST shows whose; client-output-buffer-limit \
             bounds them.\n",
        );
    }
    if text.is_empty() {
        return "Nothing is wrong with the memory of this server.\n".into();
    }
    format!("What was found:\n\n{text}")
}

fn malloc_stats(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let keyspace = &context.engine.keyspace;
    let pages = keyspace.page_stats();
    let text = format!(
        "entries and compact values: weft-slab\n\
         used bytes:               {}\n\
         pages in use:             {}\n\
         free pages kept:          {}\n\
         regions:                  {}\n\
         resident bytes of pages:  {}\n\
         resident bytes of tables: {}\n\
         tables waiting to go:     {}\n",
        keyspace.used_bytes(),
        pages.used_pages,
        pages.dirty_pages,
        pages.regions,
        pages.resident_bytes(),
        keyspace.table_resident_bytes(),
        keyspace.limbo_bytes(),
    );
    sink.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// Free pages go back to the system in the background, within the next steps of maintenance; what the allocator keeps
/// goes at the next one, and not only when it is worth it.
fn purge(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.purge.store(true, Relaxed);
    sink.ok();
    Ok(())
}

fn memory_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let lines = [
        "DOCTOR",
        "    Return memory problems reports.",
        "MALLOC-STATS",
        "    Return internal statistics report from the memory allocator.",
        "PURGE",
        "    Attempt to purge dirty pages for reclamation by the allocator.",
        "STATS",
        "    Return information about the memory usage of the server.",
        "USAGE <key> [SAMPLES <count>]",
        "    Return memory in bytes used by <key> and its value. Nested values are",
        "    sampled up to <count> times (default: 5, 0 means sample all).",
    ];
    help::answer(sink, "MEMORY", &lines);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doctor_looks_at_each_figure() {
        const MIB: usize = 1 << 20;
        let sound = MemoryFigures {
            used_bytes: 100 * MIB,
            peak_bytes: 110 * MIB,
            active_bytes: 105 * MIB,
            resident_bytes: 120 * MIB,
            ..MemoryFigures::default()
        };
        assert!(report(&sound, 1).contains("Nothing is wrong"));
        assert!(report(&MemoryFigures { used_bytes: MIB, ..sound }, 1).contains("too little"));
        assert!(report(&MemoryFigures { peak_bytes: 200 * MIB, ..sound }, 1).contains(" * Peak"));
        assert!(report(&MemoryFigures { active_bytes: 140 * MIB, ..sound }, 1).contains(" * Pages"));
        assert!(report(&MemoryFigures { resident_bytes: 200 * MIB, ..sound }, 1).contains(" * Process"));
        assert!(report(&MemoryFigures { buffer_bytes: MIB, ..sound }, 2).contains(" * Buffers"));
    }
}
