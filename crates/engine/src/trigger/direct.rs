//! Owns: the shorter form of what is common: a SET that fires one trigger, whose program is one quick command with
//! constant arguments. Does not own: everything else (`super::fire`).
//!
//! The program's command runs first. If it fails nothing has happened, and all is done the long way, whose error names
//! the trigger and the step; behind it a SET of three arguments cannot fail. So there is nothing to be taken back, and
//! no journal. It is not taken where anybody could see in which order the two ran.

use std::sync::Arc;

use weft_protocol::table::{CommandId, policy};

use super::Seen;
use super::definition::{Action, Trigger, kind};
use crate::args::Args;
use crate::context::Context;
use crate::engine::{Engine, command_id};
use crate::error::Error;
use crate::handler::{Handler, Scope};
use crate::program::stored::Stored;
use crate::reply::ReplySink;
use crate::session::Session;
use crate::stats::bump;
use crate::{runner, special};

/// With one of these somebody looks at each command, or at the order of events, or room may be short.
const OTHERS: u32 = special::EACH | special::HANDLERS | special::LIMITED;

/// What a trigger of this form does.
pub(crate) struct Direct {
    trigger: Arc<Trigger>,
    stored: Arc<Stored>,
    /// At which version of all programs.
    version: u64,
    id: CommandId,
    handler: Handler,
    /// Of its key.
    hash: u64,
    /// It is INCR.
    increments: bool,
}

/// Runs a command and what it fires, if it is of this form.
#[inline]
pub(super) fn run(
    context: &mut Context<'_, '_>,
    (handler, args): (Handler, &Args<'_>),
    sink: &mut ReplySink<'_>,
) -> Option<Result<(), Error>> {
    if args.spec.policy & policy::FAST_SET == 0 || args.len() != 3 {
        return None;
    }
    let direct = Direct::take(context, args.bytes(1))?;
    let has_run = direct.run(context);
    direct.put_back(context);
    has_run.then(|| runner::run_handler(context, handler, args, sink))
}

impl Direct {
    /// The one of a plain SET of a key, where both run with the rights of one who may do all. It is [put
    /// back](Self::put_back) behind its run.
    #[inline]
    pub(crate) fn take(context: &mut Context<'_, '_>, key: &[u8]) -> Option<Box<Self>> {
        let Context { engine, session, local, db, .. } = context;
        let recorder = &local.effects.recorder;
        if engine.special.has(OTHERS) || recorder.has_journal() || recorder.wanted() != 0 {
            return None;
        }
        local.triggers.take_direct((engine, session), *db, key)
    }
    /// For the next one.
    #[inline]
    pub(crate) fn put_back(self: Box<Self>, context: &mut Context<'_, '_>) {
        context.local.triggers.direct = Some(self);
    }
    /// Runs the command. Says whether it has run; otherwise nothing has happened.
    #[inline]
    pub(crate) fn run(&self, context: &mut Context<'_, '_>) -> bool {
        let Some(command) = &self.stored.program.direct else { return false };
        let command = command.args().with_key(1, self.hash);
        if self.increments
            && let Some(has_run) = self.increment(context, command.bytes(1))
        {
            return has_run && self.has_run(context);
        }
        let mut reply = context.local.reply.take().unwrap_or_default();
        reply.clear();
        let outcome = runner::run_handler(context, self.handler, &command, &mut reply.sink());
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
        super::Figures::count(&self.trigger.figures.fired);
        true
    }
    fn of(engine: &Engine, trigger: &Arc<Trigger>, seen: &Seen, version: u64) -> Option<Box<Self>> {
        if trigger.when.is_some() || !matches!(trigger.action, Action::Inside(_)) {
            return None;
        }
        let stored = trigger.program(&engine.programs)?;
        let command = stored.program.direct.as_ref()?.args();
        // What it writes fires nothing; so it is not the key that is set.
        if seen.last().has(command.bytes(1)) {
            return None;
        }
        let id = command_id(&command);
        let handler = engine.handler(id).filter(|own| matches!(own.scope, Scope::Keys))?;
        let hash = engine.keyspace.key(command.bytes(1)).hash();
        let increments = command.spec.policy & policy::INCREMENTS != 0;
        Some(Box::new(Self { trigger: Arc::clone(trigger), stored, version, id, handler, hash, increments }))
    }
}

impl Seen {
    /// What the one trigger does that a SET of a key fires, if it is of this form.
    #[inline]
    fn take_direct(
        &mut self,
        (engine, session): (&Engine, &Session),
        db: u8,
        key: &[u8],
    ) -> Option<Box<Direct>> {
        let mut found = self.last().find(db, key, kind::SET);
        let (trigger, None) = (found.next()?, found.next()) else { return None };
        let is_owners = session.user.all
            && *session.user.name == *trigger.owner
            && session.acl_epoch == engine.acl.epoch();
        if !is_owners {
            return None;
        }
        let version = engine.programs.version();
        let is_its = |direct: &Direct| direct.version == version && Arc::ptr_eq(&direct.trigger, trigger);
        if self.direct.as_deref().is_some_and(is_its) {
            return self.direct.take();
        }
        Direct::of(engine, trigger, self, version)
    }
}

impl std::fmt::Debug for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Direct").field("trigger", &self.trigger.name).finish_non_exhaustive()
    }
}
