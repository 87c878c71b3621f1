//! Owns: CLIENT but for its filters and tracking: who a client is, what it says of itself, its replies, pausing and
//! ending others. Does not own: the registry of clients (`crate::clients`).

mod filter;
mod line;
mod tracking;

use std::sync::atomic::Ordering::Relaxed;

use self::filter::Filter;
use crate::args::Args;
use crate::blocking::{End, end_other};
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::mailbox::{Kill, Message};
use crate::reply::ReplySink;
use crate::session::{ReplyMode, Session, Then, client_capa, client_flag};

pub(crate) const LIST: &[Entry] = &[
    ("CLIENT ID", Scope::None, id),
    ("CLIENT HELP", Scope::None, crate::commands::common::help::help),
    ("CLIENT INFO", Scope::None, info),
    ("CLIENT LIST", Scope::None, list),
    ("CLIENT KILL", Scope::None, kill),
    ("CLIENT GETNAME", Scope::None, getname),
    ("CLIENT SETNAME", Scope::None, setname),
    ("CLIENT SETINFO", Scope::None, setinfo),
    ("CLIENT NO-EVICT", Scope::None, |context, args, sink| {
        switch(context, args, sink, client_flag::NO_EVICT)
    }),
    ("CLIENT NO-TOUCH", Scope::None, |context, args, sink| {
        switch(context, args, sink, client_flag::NO_TOUCH)
    }),
    ("CLIENT IMPORT-SOURCE", Scope::None, import_source),
    ("CLIENT CAPA", Scope::None, capa),
    ("CLIENT REPLY", Scope::None, reply),
    ("CLIENT PAUSE", Scope::None, pause),
    ("CLIENT UNPAUSE", Scope::None, unpause),
    ("CLIENT UNBLOCK", Scope::None, unblock),
    ("CLIENT TRACKING", Scope::None, tracking::tracking),
    ("CLIENT TRACKINGINFO", Scope::None, tracking::trackinginfo),
    ("CLIENT CACHING", Scope::None, tracking::caching),
    ("CLIENT GETREDIR", Scope::None, tracking::getredir),
];

/// Bytes of a client's name, and of what it says of its library: they stand in each line of a log.
const LABEL_BYTES_MAX: usize = 1024;

/// Names and versions are shown in a list whose parts are separated by blanks.
pub(super) fn check_attribute(text: &[u8], what: &str) -> Result {
    if text.len() > LABEL_BYTES_MAX {
        return Err(Error::err(format!("{what} cannot be longer than {LABEL_BYTES_MAX} bytes.")));
    }
    if text.iter().all(u8::is_ascii_graphic) {
        return Ok(());
    }
    Err(Error::err(format!("{what} cannot contain spaces, newlines or special characters.")))
}

/// Gives a session a name that was checked; an empty one is none.
pub(super) fn set_name(session: &Session, name: &[u8]) {
    let mut labels = session.info.labels.lock();
    if !name.is_empty() || labels.is_some() {
        labels.get_or_insert_default().name = name.into();
    }
}

fn id(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.int(context.session.id() as i64);
    Ok(())
}

fn info(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    note_command(context, args);
    let line = context.session.info.line(context.now_ms) + "\n";
    sink.verbatim(*b"txt", line.as_bytes());
    Ok(())
}

fn list(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    note_command(context, args);
    let filter = match args.len() {
        2 => Filter::default(),
        3 => return Err(ErrorCode::Syntax.into()),
        _ => Filter::parse(context.engine, args)?,
    };
    let mut text = String::new();
    for info in context.engine.clients.all() {
        if filter.matches(&info, context.session.id(), context.now_ms) {
            text.push_str(&info.line(context.now_ms));
            text.push('\n');
        }
    }
    sink.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// The client's own line shows this command, not the one before it.
fn note_command(context: &Context<'_, '_>, args: &Args<'_>) {
    let info = &context.session.info;
    info.last_command.store(crate::engine::command_id(args).0, Relaxed);
    info.active_ms.store(context.now_ms, Relaxed);
}

fn kill(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let old_form = args.len() == 3;
    let filter =
        if old_form { Filter::address(args.bytes(2)) } else { Filter::of_kill(context.engine, args)? };
    let own = context.session.id();
    let mut killed = 0;
    for info in context.engine.clients.all() {
        if !filter.matches(&info, own, context.now_ms) {
            continue;
        }
        killed += 1;
        if info.id == own {
            // Its reply goes out first; a channel gets CLOSE behind it, with the code of killed ones.
            // Nothing behind it runs.
            info.set_flag(client_flag::CLOSING, true);
            context.session.then = Then::Killed;
        } else {
            context.engine.kill(&info, Kill::Command);
        }
    }
    match (old_form, killed) {
        (true, 0) => return Err(Error::err("No such client")),
        (true, _) => sink.ok(),
        (false, _) => sink.int(killed),
    }
    Ok(())
}

fn getname(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    match &*context.session.info.labels.lock() {
        Some(labels) if !labels.name.is_empty() => sink.bulk(&labels.name),
        _ => sink.null(),
    }
    Ok(())
}

fn setname(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    check_attribute(args.bytes(2), "Client names")?;
    set_name(context.session, args.bytes(2));
    sink.ok();
    Ok(())
}

fn setinfo(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (is_name, is_version) = (args.is(2, "LIB-NAME"), args.is(2, "LIB-VER"));
    let attribute = String::from_utf8_lossy(args.bytes(2));
    if !is_name && !is_version {
        return Err(Error::err(format!("Unrecognized option '{attribute}'")));
    }
    check_attribute(args.bytes(3), &attribute)?;
    let mut labels = context.session.info.labels.lock();
    let labels = labels.get_or_insert_default();
    *(if is_name { &mut labels.lib_name } else { &mut labels.lib_ver }) = args.bytes(3).into();
    sink.ok();
    Ok(())
}

fn on_or_off(args: &Args<'_>, index: usize) -> Result<bool> {
    match (args.is(index, "ON"), args.is(index, "OFF")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(ErrorCode::Syntax.into()),
    }
}

fn switch(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, flag: u32) -> Result {
    context.session.info.set_flag(flag, on_or_off(args, 2)?);
    sink.ok();
    Ok(())
}

/// Who brings keys in sees those whose time has come.
fn import_source(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if !args.is(2, "OFF") && !context.engine.keyspace.is_importing() {
        return Err(Error::err("Server is not in import mode"));
    }
    switch(context, args, sink, client_flag::IMPORT_SOURCE)
}

fn capa(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if (2..args.len()).any(|index| args.is(index, "REDIRECT")) {
        context.session.info.capa.fetch_or(client_capa::REDIRECT, Relaxed);
    }
    sink.ok();
    Ok(())
}

fn reply(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let session = &mut *context.session;
    if let Some(wire) = session.always_answers() {
        return Err(Error::err(format!("CLIENT REPLY is not available over {wire}")));
    }
    if args.is(2, "ON") {
        session.reply_mode = ReplyMode::On;
    } else if args.is(2, "OFF") {
        session.reply_mode = ReplyMode::Off;
    } else if args.is(2, "SKIP") {
        if session.reply_mode != ReplyMode::Off {
            session.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(ErrorCode::Syntax.into());
    }
    sink.ok();
    Ok(())
}

fn pause(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let writes_only = args.len() == 4 && args.is(3, "WRITE");
    if args.len() == 4 && !writes_only && !args.is(3, "ALL") {
        return Err(Error::err("CLIENT PAUSE mode must be WRITE or ALL"));
    }
    let ms = args.int(2).map_err(|_| Error::err("timeout is not an integer or out of range"))?;
    let ms = u64::try_from(ms).map_err(|_| Error::err("timeout is negative"))?;
    let until_ms = context.now_ms.checked_add(ms).filter(|until| i64::try_from(*until).is_ok());
    let until_ms = until_ms.ok_or_else(|| Error::err("timeout is out of range"))?;
    let engine = context.engine;
    engine.begin_pause(until_ms, writes_only, context.now_ms);
    sink.ok();
    Ok(())
}

fn unpause(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.end_pause();
    context.engine.post_all(|| Message::Resume);
    sink.ok();
    Ok(())
}

fn unblock(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let end = match args.len() {
        4 if args.is(3, "ERROR") => End::Error,
        4 if !args.is(3, "TIMEOUT") => {
            return Err(Error::err("CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
        _ => End::Timeout,
    };
    let id = args.int(2)?;
    let ended = u64::try_from(id).is_ok_and(|id| end_other(context.engine, id, end));
    if ended && end == End::Error {
        context.engine.stats.workers[usize::from(context.local.worker)].error(&ErrorCode::Unblocked.into());
    }
    sink.int(i64::from(ended));
    Ok(())
}
