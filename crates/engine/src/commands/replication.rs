//! Owns: WAIT and WAITAOF, as a server answers them that has no replicas and no append-only file. Does not own:
//! replication.

use crate::args::Args;
use crate::blocking::Empty;
use crate::context::Context;
use crate::error::Error;
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;

pub(super) const LIST: &[Entry] = &[("WAIT", Scope::None, wait), ("WAITAOF", Scope::None, waitaof)];

/// A timeout argument in milliseconds; 0 waits for ever.
fn timeout_ms(context: &Context<'_, '_>, args: &Args<'_>, index: usize) -> Result<u64, Error> {
    let ms = args.int_said(index, "timeout is not an integer or out of range")?;
    let ms = u64::try_from(ms).map_err(|_| Error::err("timeout is negative"))?;
    if ms > (i64::MAX as u64).saturating_sub(context.now_ms) {
        return Err(Error::err("timeout is out of range"));
    }
    Ok(ms)
}

fn wait(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let replicas = args.int(1)?;
    let timeout_ms = timeout_ms(context, args, 2)?;
    if replicas <= 0 || !context.may_block() {
        sink.int(0);
        return Ok(());
    }
    // Nothing can end it but its time.
    context.block(&[], (timeout_ms, Empty::Zero), args.to_owned_args())
}

fn waitaof(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let local = args.int_in(1, 0..=1)?;
    let replicas = args.count(2)?;
    let timeout_ms = timeout_ms(context, args, 3)?;
    if local > 0 {
        let text = "WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
        return Err(Error::err(text));
    }
    if replicas == 0 || !context.may_block() {
        Empty::TwoZeros.write(sink);
        return Ok(());
    }
    context.block(&[], (timeout_ms, Empty::TwoZeros), args.to_owned_args())
}
