//! Owns: MULTI, EXEC, DISCARD, WATCH, UNWATCH as commands. Does not own: EXEC's work (`crate::executor`).

use std::sync::atomic::Ordering::Relaxed;

use crate::args::Args;
use crate::charge::of_name;
use crate::context::{Context, Locked};
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;
use crate::transaction::{Transaction, Watched};

pub(crate) const LIST: &[Entry] = &[
    ("MULTI", Scope::None, multi),
    ("EXEC", Scope::Exec, exec),
    ("DISCARD", Scope::Unwatch, discard),
    ("WATCH", Scope::Keys, watch),
    ("UNWATCH", Scope::Unwatch, unwatch),
];

/// Keys that one session may watch.
const WATCHED_MAX: usize = 1 << 20;

/// The client's transaction, which begins if there is none: in the memory of one that has ended.
fn begun<'c>(context: &'c mut Context<'_, '_>) -> &'c mut Transaction {
    let spare = &mut context.local.spare_transaction;
    context.session.transaction.get_or_insert_with(|| spare.take().unwrap_or_default())
}

fn multi(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let transaction = begun(context);
    if transaction.open {
        transaction.refused = true;
        return Err(Error::err("MULTI calls can not be nested"));
    }
    transaction.open = true;
    context.session.show_queued(Some((0, 0)));
    sink.ok();
    Ok(())
}

/// Runs in the executor; this is reached only where a transaction cannot be: from a script.
fn exec(_: &mut Context<'_, '_>, _: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    Err(Error::err("EXEC without MULTI"))
}

fn discard(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if !context.session.in_multi() {
        return Err(Error::err("DISCARD without MULTI"));
    }
    context.give_up_watches();
    context.session.transaction = None;
    context.session.show_queued(None);
    sink.ok();
    Ok(())
}

fn watch(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if let Some(transaction) = &mut context.session.transaction
        && transaction.open
    {
        transaction.refused = true;
        return Err(Error::err("WATCH inside MULTI is not allowed"));
    }
    for name in args.rest(1) {
        let db = context.db;
        let key = context.key_of(name);
        let transaction = context.session.transaction.as_ref();
        if transaction.is_some_and(|transaction| transaction.watches(db, &key)) {
            continue;
        }
        let room = transaction.is_none_or(|transaction| transaction.watched.len() < WATCHED_MAX);
        let connection = std::sync::Arc::clone(&context.session.info.connection);
        connection.check_room(of_name(name))?;
        let (shard, mut op) = context.shard(&key)?;
        // An expired key goes now, so that its going does not count as a write later.
        let there = shard.exists(&mut op, &key);
        let version = room.then(|| shard.watches().add(db, key.hash())).flatten();
        let version = version.ok_or_else(|| Error::new(ErrorCode::Limit, "too many watched keys"))?;
        let transaction = begun(context);
        transaction.charge.add(&connection, of_name(name));
        transaction.watch(key.hash(), Watched { db, key: name.into(), there, version });
    }
    let count = context.session.transaction.as_ref().map_or(0, |transaction| transaction.watched.len());
    context.session.info.watched.store(count as u32, Relaxed);
    sink.ok();
    Ok(())
}

fn unwatch(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.give_up_watches();
    context.session.transaction.take_if(|transaction| !transaction.open && transaction.watched.is_empty());
    sink.ok();
    Ok(())
}

impl Context<'_, '_> {
    /// Gives up all watches of the session. Inside EXEC there are none: it has given them back before its commands.
    pub(super) fn give_up_watches(&mut self) {
        self.give_up_lease();
        if let (Locked::Batch(batch), Some(transaction)) = (&self.locked, &mut self.session.transaction) {
            transaction.unwatch(batch);
        }
        self.session.info.watched.store(0, Relaxed);
    }
}
