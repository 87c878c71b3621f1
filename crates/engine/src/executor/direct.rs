//! Owns: the shorter form of what is common: a SET that fires one trigger, whose program is one quick command with
//! constant arguments. Does not own: that trigger (`crate::trigger`), everything else (`crate::logic`).
//!
//! The program's command runs first. If it fails nothing has happened, and all is done the long way, whose error names
//! the trigger and the step; behind it a SET of three arguments cannot fail. So there is nothing to be taken back, and
//! no journal. It is not taken where anybody could see in which order the two ran.

use weft_protocol::table::policy;

use crate::args::Args;
use crate::context::Context;
use crate::error::Result;
use crate::handler::{Handler, Scope};
use crate::reply::ReplySink;
use crate::stats::bump;
use crate::trigger::{Direct, Figures};
use crate::{runner, special};

/// With one of these somebody looks at each command, or at the order of events, or room may be short.
const OTHERS: u32 = special::EACH | special::HANDLERS | special::LIMITED;

/// Runs a command and what it fires, if it is of this form.
#[inline]
pub(crate) fn run(
    context: &mut Context<'_, '_>,
    (handler, args): (Handler, &Args<'_>),
    sink: &mut ReplySink<'_>,
) -> Option<Result> {
    if args.spec.policy & policy::FAST_SET == 0 || args.len() != 3 {
        return None;
    }
    fire(context, args.bytes(1)).then(|| runner::run_handler(context, handler, args, sink))
}

/// Runs what a plain SET of a key fires, if both run with the rights of one who may do all. Says whether it has run;
/// otherwise nothing has happened.
#[inline]
pub(super) fn fire(context: &mut Context<'_, '_>, key: &[u8]) -> bool {
    let Context { engine, session, local, db, .. } = context;
    let recorder = &local.effects.recorder;
    if engine.special.has(OTHERS) || recorder.has_journal() || recorder.wanted() != 0 {
        return false;
    }
    let direct = local.triggers.take_direct((&engine.programs, &engine.keyspace), (*db, key), |trigger| {
        session.user.all && *session.user.name == *trigger.owner && session.acl_epoch == engine.acl.epoch()
    });
    let Some(direct) = direct else { return false };
    let has_run = direct.run(context);
    context.local.triggers.put_direct_back(direct);
    has_run
}

impl Direct {
    /// Runs the command. Says whether it has run; otherwise nothing has happened.
    #[inline]
    fn run(&self, context: &mut Context<'_, '_>) -> bool {
        let Some(command) = &self.stored.program.direct else { return false };
        let command = command.args().with_key(1, self.hash);
        if self.increments
            && let Some(has_run) = self.increment(context, command.bytes(1))
        {
            return has_run && self.has_run(context);
        }
        let handler = context.engine.handler(self.id).filter(|own| matches!(own.scope, Scope::Keys));
        let Some(handler) = handler else { return false };
        let mut reply = context.local.reply.take().unwrap_or_default();
        reply.clear();
        let outcome = runner::run_handler(context, handler, &command, &mut reply.sink());
        context.local.reply = Some(reply);
        outcome.is_ok() && self.has_run(context)
    }
    /// INCR in a shorter form. Nothing where somebody waits for a key of its shard: then the handler must run, which
    /// sees to them.
    #[inline]
    fn increment(&self, context: &mut Context<'_, '_>, name: &[u8]) -> Option<bool> {
        let key = context.engine.keyspace.key_with_hash(name, self.hash);
        let (shard, mut op) = context.shard(&key).ok()?;
        shard.waiters().is_empty().then(|| shard.increment(&mut op, &key, 1).is_ok())
    }
    /// It is counted.
    #[inline]
    fn has_run(&self, context: &Context<'_, '_>) -> bool {
        let stats = &context.engine.stats.workers[usize::from(context.local.worker)];
        bump(&stats.by_command[usize::from(self.id.0)].calls, 1);
        Figures::count(&self.trigger.figures.fired);
        true
    }
}
