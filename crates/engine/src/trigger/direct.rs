//! Owns: the shorter form of what is common: a SET that fires one trigger, whose program is one quick command with
//! constant arguments. Does not own: everything else (`super::fire`).
//!
//! The program's command runs first. If it fails nothing has happened, and all is done the long way, whose error names
//! the trigger and the step; behind it a SET of three arguments cannot fail. So there is nothing to be taken back, and
//! no journal. It is not taken where anybody could see in which order the two ran.

use std::sync::Arc;

use weft_protocol::table::policy;

use super::definition::{Action, Trigger, kind};
use super::index::Index;
use crate::args::Args;
use crate::context::Context;
use crate::engine::command_id;
use crate::error::Error;
use crate::handler::{Handler, Scope};
use crate::program::stored::Stored;
use crate::reply::ReplySink;
use crate::stats::bump;
use crate::{runner, special};

/// With one of these somebody looks at each command, or at the order of events, or room may be short.
const OTHERS: u32 = special::EACH | special::HANDLERS | special::LIMITED;

/// Runs a command and what it fires, if it is of this form.
#[inline]
pub(super) fn run(
    context: &mut Context<'_, '_>,
    index: &Index,
    (handler, args): (Handler, &Args<'_>),
    sink: &mut ReplySink<'_>,
) -> Option<Result<(), Error>> {
    let (trigger, stored) = fired(context, index, args)?;
    let command = stored.program.direct.as_ref()?.args();
    // What it writes fires nothing; so it is not the key that is set.
    if index.has(command.bytes(1)) {
        return None;
    }
    let own = context.engine.handler(command_id(&command)).filter(|own| matches!(own.scope, Scope::Keys))?;
    let mut reply = context.local.reply.take().unwrap_or_default();
    reply.clear();
    let outcome = runner::run_handler(context, own, &command, &mut reply.sink());
    context.local.reply = Some(reply);
    outcome.ok()?;
    let stats = &context.engine.stats.workers[usize::from(context.local.worker)];
    bump(&stats.by_command[usize::from(command_id(&command).0)].calls, 1);
    super::Figures::count(&trigger.figures.fired);
    Some(runner::run_handler(context, handler, args, sink))
}

/// The one trigger that a plain SET fires, and its program, where both run with the rights of one who may do all.
fn fired<'i>(
    context: &Context<'_, '_>,
    index: &'i Index,
    args: &Args<'_>,
) -> Option<(&'i Trigger, Arc<Stored>)> {
    let Context { engine, session, local, .. } = context;
    let recorder = &local.effects.recorder;
    if args.spec.policy & policy::FAST_SET == 0
        || args.len() != 3
        || engine.special.has(OTHERS)
        || recorder.has_journal()
        || recorder.wanted() != 0
    {
        return None;
    }
    let mut found = index.find(context.db, args.bytes(1), kind::SET);
    let (trigger, None) = (found.next()?, found.next()) else { return None };
    let is_owners =
        session.user.all && *session.user.name == *trigger.owner && session.acl_epoch == engine.acl.epoch();
    if !is_owners || trigger.when.is_some() || !matches!(trigger.action, Action::Inside(_)) {
        return None;
    }
    Some((trigger, trigger.program(&engine.programs)?))
}
