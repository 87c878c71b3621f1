//! Owns: running one command whose checks are made and whose locks are held. Does not own: the checks, the locks, what
//! follows when they are gone (`crate::executor`), who is served (`crate::blocking`).
//!
//! Every handler is called by [`run_handler`]. [`run`] asks before whether a trigger may fire, and is what runs a
//! request of a batch alone, one that needs the whole keyspace, one that was postponed, the commands of EXEC, and
//! requests that have waited; a request among its neighbours (`crate::executor`) and a trigger's own command
//! (`crate::logic`) have been asked already. Not so the shorter forms of five commands (`crate::executor`'s fast
//! functions), which run only where nothing is special.

use weft_protocol::table::flag;

use crate::args::Args;
use crate::context::{Context, Local, Locked};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::handler::Handler;
use crate::reply::{Mark, ReplySink};
use crate::stats::WorkerStats;
use crate::trigger::index::Asked;
use crate::{blocking, keys, special};

/// Runs a command: what it reads is noted for those who track, before its handler runs, and behind it the keys that
/// others may wait for.
#[inline]
pub(crate) fn run(
    context: &mut Context<'_, '_>,
    handler: Handler,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    if context.fires && context.engine.special.has(special::TRIGGERS) && may_fire(context, args) {
        return (context.engine.logic().fire)(context, handler, args, sink);
    }
    run_handler(context, handler, args, sink)
}

/// Whether a command may fire triggers here: one that writes keys which any are for. Under the lock of one key that has
/// been asked before.
#[cold]
fn may_fire(context: &mut Context<'_, '_>, args: &Args<'_>) -> bool {
    let holds = matches!(context.locked, Locked::Guards(_) | Locked::World(..));
    if !holds || args.spec.flags & flag::WRITE == 0 {
        return false;
    }
    may_fire_at(context.engine, context.local, args)
}

/// Whether there are triggers at the keys of a command, or that would take too long to find out.
pub(crate) fn may_fire_at(engine: &Engine, local: &mut Local, args: &Args<'_>) -> bool {
    let (index, mut asked, mut stands) = (local.triggers.index(&engine.triggers), Asked::default(), false);
    keys::each(args, |at| stands = stands || index.has_beside(args.bytes(at), &mut asked));
    stands
}

/// Runs a command without what it fires: for whoever has asked that.
#[inline]
pub(crate) fn run_handler(
    context: &mut Context<'_, '_>,
    handler: Handler,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    // Without a lock no key is touched, or each by the handler itself.
    let locked = !matches!(context.locked, Locked::Batch(_) | Locked::Nothing);
    context.local.effects.begin_command(args.spec);
    let outcome = (handler.run)(context, args, sink);
    // What a trigger reads is read by its owner, and not by who has fired it. A read that writes is noted behind what
    // it has told of that itself.
    if locked && (context.fires || !context.is_inner) {
        let behind = context.is_inner.then_some(&mut context.local.effects);
        context.engine.track_read(context.session, args, behind);
    }
    outcome?;
    if locked && context.has_committed() {
        blocking::note_written(context, args);
    }
    Ok(())
}

/// Answers an error in the place of what a command may have written since `mark`.
#[cold]
pub(crate) fn fail(stats: &WorkerStats, sink: &mut ReplySink<'_>, mark: Mark, error: &Error) {
    sink.rollback(mark);
    stats.error(error);
    sink.error(error);
}
