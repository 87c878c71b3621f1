//! Owns: commands about the connection itself: PING, ECHO, SELECT, QUIT, RESET, HELLO. Does not own: CLIENT, users.

use crate::args::Args;
use crate::blocking::{End, end_other};
use crate::context::Context;
use crate::error::{Error, ErrorCode};
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;
use crate::session::Then;

pub(super) const LIST: &[Entry] = &[
    ("PING", Scope::None, ping),
    ("ECHO", Scope::None, echo),
    ("SELECT", Scope::None, select),
    ("QUIT", Scope::None, quit),
    ("CLIENT UNBLOCK", Scope::None, unblock),
];

fn ping(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    if args.len() > 2 {
        return Err(Error::arity(args.spec));
    }
    if context.session.in_resp2_pubsub() {
        sink.array(2);
        sink.bulk(b"pong");
        sink.bulk(args.bytes(1));
    } else if args.len() == 2 {
        sink.bulk(args.bytes(1));
    } else {
        sink.simple("PONG");
    }
    Ok(())
}

fn echo(_: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    sink.bulk(args.bytes(1));
    Ok(())
}

fn select(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let db = args.int_or(1, ErrorCode::NotAnInteger)?;
    let count = context.engine.keyspace.database_count() as i64;
    if !(0..count).contains(&db) {
        return Err(Error::err("DB index is out of range"));
    }
    context.session.select(db as u8);
    sink.ok();
    Ok(())
}

fn quit(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    context.session.then = Then::Close;
    sink.ok();
    Ok(())
}

fn unblock(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let id = args.int(2)?;
    let end = match args.len() {
        3 => End::Timeout,
        4 if args.is(3, "TIMEOUT") => End::Timeout,
        4 if args.is(3, "ERROR") => End::Error,
        _ => return Err(Error::err("CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };
    let ended = u64::try_from(id).is_ok_and(|id| end_other(context.engine, id, end));
    sink.int(i64::from(ended));
    Ok(())
}
