//! Owns: INFO, TIME, LOLWUT, SHUTDOWN, the commands of what is kept on disk, and those of modules, which Weft does not
//! have. Does not own: INFO's text (`crate::info`); stopping, files (the server's).
//!
//! | locks | commands |
//! |---|---|
//! | none | all |

use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::args::Args;
use crate::blocking::Empty;
use crate::commands::common::help;
use crate::context::Context;
use crate::durable::{Farewell, Order};
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::info::{self, VERSION};
use crate::reply::ReplySink;
use crate::session::Then;

pub(crate) const LIST: &[Entry] = &[
    ("BGREWRITEAOF", Scope::None, bgrewriteaof),
    ("BGSAVE", Scope::None, bgsave),
    ("INFO", Scope::None, server_info),
    ("LASTSAVE", Scope::None, lastsave),
    ("LOLWUT", Scope::None, lolwut),
    ("MODULE HELP", Scope::None, module_help),
    ("MODULE LIST", Scope::None, module_list),
    ("MODULE LOAD", Scope::None, no_modules),
    ("MODULE LOADEX", Scope::None, no_modules),
    ("MODULE UNLOAD", Scope::None, no_such_module),
    ("SAVE", Scope::None, save),
    ("SHUTDOWN", Scope::None, shutdown),
    ("TIME", Scope::None, time),
];

fn server_info(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let text = info::info(context.engine, args.rest(1), context.now_ms);
    sink.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// Seconds and microseconds. The one command whose answer is finer than the time that commands run at. Within an
/// operation, for which time stands still, it is that of its first TIME.
fn time(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let fine = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64);
    // A clock that is not the system's (in tests) is right, however coarse.
    let us = if fine / 1000 >= context.now_ms && fine / 1000 - context.now_ms < 60_000 {
        fine
    } else {
        context.now_ms * 1000
    };
    let first = &mut context.local.time_us;
    let us = if context.is_inner && *first != 0 { *first } else { us };
    *first = us;
    sink.array(2);
    sink.bulk((us / 1_000_000).to_string().as_bytes());
    sink.bulk((us % 1_000_000).to_string().as_bytes());
    Ok(())
}

/// A snapshot by itself, which the client waits for. Others go on meanwhile.
fn save(context: &mut Context<'_, '_>, args: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    if !context.may_block() {
        return Err(Error::err("SAVE waits for the disk: it cannot run inside a transaction; BGSAVE can"));
    }
    context.engine.durable.check()?;
    if context.engine.durable.saves.is_saving.load(Relaxed) {
        return Err(Error::err("Background save already in progress"));
    }
    context.await_order(args, (0, Empty::Null), |waiting| Order::Snapshot(Some(waiting)))
}

fn bgsave(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 2 || args.len() == 2 && !args.is(1, "SCHEDULE") && !args.is(1, "CANCEL") {
        return Err(ErrorCode::Syntax.into());
    }
    let durable = &context.engine.durable;
    if args.len() == 2 && args.is(1, "CANCEL") {
        if !durable.saves.is_saving.load(Relaxed) {
            return Err(Error::err("Background saving is currently not in progress or scheduled"));
        }
        durable.order(Order::Cancel)?;
        sink.simple("Background saving cancelled");
        return Ok(());
    }
    // Said at once, so that CANCEL right behind it finds it.
    if durable.saves.is_saving.swap(true, Relaxed) {
        return Err(Error::err("Background save already in progress"));
    }
    durable.order(Order::Snapshot(None)).inspect_err(|_| durable.saves.is_saving.store(false, Relaxed))?;
    sink.simple("Background saving started");
    Ok(())
}

fn bgrewriteaof(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let durable = &context.engine.durable;
    if durable.log.is_rewriting.load(Relaxed) {
        return Err(Error::err("Background append only file rewriting already in progress"));
    }
    durable.order(Order::Rewrite)?;
    if durable.log.is_on.load(Relaxed) && durable.saves.is_saving.load(Relaxed) {
        sink.simple("Background append only file rewriting scheduled");
    } else {
        sink.simple("Background append only file rewriting started");
    }
    Ok(())
}

/// When the last snapshot was made; when the server started, as Valkey answers while there is none.
fn lastsave(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.int((context.engine.last_save_ms() / 1000) as i64);
    Ok(())
}

/// There is no answer but that the connection ends.
fn shutdown(context: &mut Context<'_, '_>, args: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    let (mut abort, mut save, mut nosave, mut force) = (false, false, false, false);
    for index in 1..args.len() {
        match () {
            () if args.is(index, "ABORT") => abort = true,
            () if args.is(index, "FORCE") => force = true,
            () if args.is(index, "SAVE") => save = true,
            () if args.is(index, "NOSAVE") => nosave = true,
            () if ["NOW", "SAFE"].iter().any(|word| args.is(index, word)) => {}
            () if args.is(index, "FAILOVER") => {
                return Err(Error::err("SHUTDOWN FAILOVER is only supported in cluster mode."));
            }
            () => return Err(ErrorCode::Syntax.into()),
        }
    }
    if abort && args.len() > 2 || save && nosave {
        return Err(ErrorCode::Syntax.into());
    }
    if abort {
        return Err(Error::err("No shutdown in progress."));
    }
    // A script that takes long may be in the middle of what it writes.
    if !nosave && context.engine.is_busy() {
        return Err(context.engine.scripts.busy_error());
    }
    let farewell = if save {
        Farewell::Save
    } else if nosave {
        Farewell::NoSave
    } else {
        Farewell::AsConfigured
    };
    context.engine.durable.set_farewell(farewell, force);
    context.session.then = Then::Shutdown;
    Ok(())
}

fn module_list(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.array(0);
    Ok(())
}

fn no_modules(_: &mut Context<'_, '_>, _: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    Err(Error::err("Error loading the extension: Weft has no modules"))
}

fn no_such_module(_: &mut Context<'_, '_>, _: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    Err(Error::err("Error unloading module: no such module with that name"))
}

fn module_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let lines = [
        "LIST",
        "    Return a list of loaded modules.",
        "LOAD <path> [<arg> ...]",
        "    Load a module library from <path>, passing to it any optional arguments.",
        "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
        "    Load a module library from <path>, while passing it module configurations and optional arguments.",
        "UNLOAD <name>",
        "    Unload a module.",
    ];
    help::answer(sink, "MODULE", &lines);
    Ok(())
}

/// Columns and rows of the cloth: at most so many when a client asks for its own.
const CLOTH_MAX: i64 = 200;

/// A piece of cloth whose threads go over and under each other as chance has it, and the version. `LOLWUT VERSION n
/// [columns [rows]]` for a piece of another size.
fn lolwut(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    use weft_store::Rng as _;

    let first = if args.is(1, "VERSION") && args.len() > 2 { 3 } else { 1 };
    if first == 3 {
        args.int(2)?;
    }
    let size = |index: usize, default: i64| {
        if index < args.len() { args.int(index).map(|size| size.clamp(1, CLOTH_MAX)) } else { Ok(default) }
    };
    let (columns, rows) = (size(first, 40)?, size(first + 1, 12)?);
    let mut text = String::new();
    for row in 0..rows {
        for column in 0..columns {
            let under = context.local.rng.below(8) == 0;
            text.push(if ((row + column) % 2 == 0) != under { '═' } else { '║' });
        }
        text.push('\n');
    }
    text.push_str(&format!("\nWeft ver. {VERSION}\n"));
    sink.verbatim(*b"txt", text.as_bytes());
    Ok(())
}
