//! Owns: WAIT and WAITAOF, as a server answers them that has no replicas. Does not own: replication, the log.

use std::sync::atomic::Ordering::Relaxed;

use crate::args::Args;
use crate::blocking::Empty;
use crate::context::Context;
use crate::durable::Order;
use crate::error::{Error, Result};
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[("WAIT", Scope::None, wait), ("WAITAOF", Scope::None, waitaof)];

/// A timeout argument in milliseconds; 0 waits for ever.
fn timeout_ms(context: &Context<'_, '_>, args: &Args<'_>, index: usize) -> Result<u64> {
    let ms = args.int_said(index, "timeout is not an integer or out of range")?;
    let ms = u64::try_from(ms).map_err(|_| Error::err("timeout is negative"))?;
    if ms > (i64::MAX as u64).saturating_sub(context.now_ms) {
        return Err(Error::err("timeout is out of range"));
    }
    Ok(ms)
}

fn wait(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let replicas = args.int(1)?;
    let timeout_ms = timeout_ms(context, args, 2)?;
    if replicas <= 0 || !context.may_block() {
        sink.int(0);
        return Ok(());
    }
    // Nothing can end it but its time.
    context.block(args.to_owned_args(), (0..0, &[]), (timeout_ms, Empty::Zero))
}

fn waitaof(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let local = args.int_in(1, 0..=1)?;
    let replicas = args.count(2)?;
    let timeout_ms = timeout_ms(context, args, 3)?;
    let durable = &context.engine.durable;
    if local > 0 && !durable.log.is_on.load(Relaxed) {
        let text = "WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
        return Err(Error::err(text));
    }
    let told = context.engine.keyspace.told_epoch();
    let is_synced = durable.log.is_on.load(Relaxed) && durable.unsynced_epoch.load(Relaxed) > told;
    if replicas == 0 && (local == 0 || is_synced) || !context.may_block() {
        sink.array(2);
        sink.int(is_synced.into());
        sink.int(0);
        return Ok(());
    }
    if replicas > 0 {
        // There are none: nothing comes but the end of its time.
        return context.block(args.to_owned_args(), (0..0, &[]), (timeout_ms, Empty::Kept(is_synced)));
    }
    context.await_order(args, (timeout_ms, Empty::Kept(false)), |waiting| Order::Synced(waiting, told))
}
