//! Owns: running commands inside an operation: a script, a program, a trigger. Whether a command may run there, running
//! it under the operation's locks with its reply kept, and taking back. Does not own: what operations are, which locks
//! they take (`crate::executor`), what is done about a refusal (whoever runs the operation).
//!
//! An operation is a command whose handler makes an [`Inner`] of its context: time, locks and session are its own. What
//! it writes is one group. A command that comes to a key whose lock is not held answers
//! [`ErrorCode::Undeclared`], and one that needs everything is [`Refusal::NeedsWorld`]: whoever runs the operation says
//! whether that is an error, or whether all is taken back and the operation runs again with the keyspace to itself
//! ([`ErrorCode::NeedsWorld`]).
//!
//! With a journal ([`Inner::begin_undo`]) nobody is told of anything before [`Inner::commit`]: no watch is touched, no
//! event or message published, nobody who waits is served.

use std::sync::atomic::Ordering::Relaxed;

use weft_protocol::table::{CommandId, CommandSpec, flag, policy};
use weft_store::{Guards, Savepoint, wants};

use crate::acl::{Denied, LogPlace};
use crate::args::{Args, check_arity, command_id};
use crate::context::{Context, Local, Locked};
use crate::error::{Error, ErrorCode, Result, full_name};
use crate::handler::{Handler, Scope};
use crate::reply::{Captured, Items, ReplySink};
use crate::runner;
use crate::session::Session;
use crate::special;
use crate::stats::{CommandStats, bump};

/// Why a command does not run inside an operation. Nothing has happened.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// There is no such command, or it is not served.
    Unknown,
    /// The wrong number of arguments.
    Arity(&'static CommandSpec),
    /// It is not for operations.
    Forbidden(&'static CommandSpec),
    /// The user may not.
    Denied(Denied, String),
    /// It may store more than it frees, and `maxmemory` is reached.
    NoRoom,
    /// It writes, and what is written could not be kept: in these words.
    NotKept(Error),
    /// It needs the whole keyspace, and the operation has locked some keys.
    NeedsWorld,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unknown => Self::err("unknown command"),
            Refusal::Arity(spec) => Self::arity(spec),
            Refusal::Forbidden(spec) => {
                Self::err(format!("'{}' cannot run inside an operation", full_name(spec)))
            }
            Refusal::Denied(_, text) => Self::new(ErrorCode::NoPerm, text),
            Refusal::NoRoom => ErrorCode::OutOfMemory.into(),
            Refusal::NotKept(error) => error,
            Refusal::NeedsWorld => ErrorCode::NeedsWorld.into(),
        }
    }
}

/// A place in an operation to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    savepoint: Savepoint,
    /// Keys that others wait for.
    ready: usize,
    /// Messages to be published.
    messages: usize,
}

/// An operation, for the commands inside it.
pub struct Inner<'c, 'a, 'b> {
    context: &'c mut Context<'a, 'b>,
    place: LogPlace,
}

impl<'c, 'a, 'b> Inner<'c, 'a, 'b> {
    /// Commands inside an operation; `place` is where ACL LOG says that they were.
    pub fn new(context: &'c mut Context<'a, 'b>, place: LogPlace) -> Self {
        if !context.is_inner {
            context.local.time_us = 0;
        }
        Self { context, place }
    }
    /// The operation's context.
    pub const fn context(&mut self) -> &mut Context<'a, 'b> {
        self.context
    }
    /// Whether the operation has the keyspace to itself.
    #[must_use]
    pub const fn has_world(&self) -> bool {
        matches!(self.context.locked, Locked::World(..))
    }

    /// Whether a command may run here with these arguments.
    pub fn admit(&mut self, args: &Args<'_>) -> Result<Handler, Refusal> {
        let outcome = self.may_run(args);
        // One that is to run again is no refusal.
        if matches!(&outcome, Err(refusal) if !matches!(refusal, Refusal::Unknown | Refusal::NeedsWorld)) {
            self.rejected(command_id(args), 1);
        }
        outcome
    }
    /// A command is refused by whoever runs the operation, or runs though it was: so many more are counted.
    pub(crate) fn rejected(&self, id: CommandId, more: i64) {
        bump(&self.counted(id).rejected, more.cast_unsigned());
    }
    fn may_run(&mut self, args: &Args<'_>) -> Result<Handler, Refusal> {
        let spec = args.spec;
        let handler = self.context.engine.handler(command_id(args)).ok_or(Refusal::Unknown)?;
        check_arity(spec, args.len()).map_err(|_| Refusal::Arity(spec))?;
        let lifted =
            spec.flags & flag::ADMIN != 0 && self.context.engine.settings.any_in_scripts.load(Relaxed);
        if (spec.flags & flag::NOSCRIPT != 0 && !lifted)
            || matches!(handler.scope, Scope::Exec | Scope::Unwatch | Scope::Operation(_) | Scope::Brief(_))
        {
            return Err(Refusal::Forbidden(spec));
        }
        self.check_rights(args)?;
        self.check_kept(spec)?;
        self.check_room(spec)?;
        let needs_world = match handler.scope {
            Scope::World | Scope::Walk => true,
            Scope::KeysOrWorld(asks) => asks(args),
            _ => false,
        };
        if needs_world && !self.has_world() {
            return Err(Refusal::NeedsWorld);
        }
        Ok(handler)
    }
    /// Whether the user whose rights hold may run a command.
    pub(crate) fn check_rights(&self, args: &Args<'_>) -> Result<(), Refusal> {
        let Context { engine, session, now_ms, .. } = &*self.context;
        if session.user.all {
            return Ok(());
        }
        let checked = session.user.check(args, session.db, engine.keyspace.database_count());
        let Err(denied) = checked else { return Ok(()) };
        engine.log_denied(session, args, denied, self.place, (*now_ms, None));
        Err(Refusal::Denied(denied, denied.text(&session.user, args, false)))
    }
    fn check_kept(&self, spec: &CommandSpec) -> Result<(), Refusal> {
        let engine = self.context.engine;
        if spec.flags & flag::WRITE == 0 || !engine.special.has(special::REFUSING) {
            return Ok(());
        }
        engine.refusal().map_or(Ok(()), |error| Err(Refusal::NotKept(error)))
    }
    fn check_room(&mut self, spec: &CommandSpec) -> Result<(), Refusal> {
        let engine = self.context.engine;
        if (spec.flags & flag::DENYOOM == 0 && spec.policy & policy::GROWS == 0)
            || !engine.special.has(special::LIMITED)
        {
            return Ok(());
        }
        if let Locked::Guards(guards) | Locked::World(_, guards) = &mut self.context.locked {
            guards.settle();
        }
        let may = engine.has_room()
            || engine.may_run_without_room(spec)
            || engine.gives_way()
            || self.place == LogPlace::Lua && engine.makes_room();
        if may { Ok(()) } else { Err(Refusal::NoRoom) }
    }

    /// Runs a command that [may run](Self::admit). What it answers is [`reply`](Self::reply) until the next one; a
    /// command that failed has written nothing to the keyspace that it does not leave there in EXEC either.
    pub fn run(&mut self, handler: Handler, args: &Args<'_>) -> Result {
        // Commands that this one fires have replies of their own meanwhile.
        let mut reply = self.context.local.reply.take().unwrap_or_default();
        reply.clear();
        let outcome = self.run_to(handler, args, &mut reply.sink());
        if outcome.is_err() {
            reply.clear();
        }
        self.context.local.reply = Some(reply);
        outcome
    }
    /// As [`run`](Self::run) for a command behind which nothing can fail: what it writes is not to be taken back, also
    /// where what was written before it is. If it fails itself it has written nothing.
    pub fn run_for_good(&mut self, handler: Handler, args: &Args<'_>) -> Result {
        self.within(true, |inner| inner.run(handler, args))
    }
    /// Does something; what it writes is not to be taken back if it is `for_good`.
    #[inline]
    pub(crate) fn within<R>(&mut self, for_good: bool, work: impl FnOnce(&mut Self) -> R) -> R {
        if !for_good || !self.context.local.effects.recorder.has_journal() {
            return work(self);
        }
        self.context.local.effects.recorder.want_also(wants::UNDO, false);
        let outcome = work(self);
        self.context.local.effects.recorder.want_also(wants::UNDO, true);
        outcome
    }
    /// A command has run here: it is counted.
    #[inline]
    pub(crate) fn count_run(&mut self, id: CommandId, failed: bool) {
        let stats = self.counted(id);
        bump(&stats.calls, 1);
        bump(&stats.failed, u64::from(failed));
        self.context.local.counted.command(id, failed);
    }
    fn counted(&self, id: CommandId) -> &CommandStats {
        let worker = usize::from(self.context.local.worker);
        &self.context.engine.stats.workers[worker].by_command[usize::from(id.0)]
    }
    /// As [`run`](Self::run), with the reply written to a sink. What a command that failed has written there is taken
    /// back.
    pub fn run_to(&mut self, handler: Handler, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
        let Context { engine, session, local, now_ms, locked, fires, depth, .. } = &mut *self.context;
        let locked = match locked {
            Locked::Nothing => Locked::Nothing,
            Locked::Batch(batch) => Locked::Batch(batch),
            Locked::Guards(guards) => Locked::Guards(guards),
            Locked::Key(guard) => Locked::Key(guard),
            Locked::World(world, guards) => Locked::World(world, guards),
        };
        let mut inner = Context::new(engine, session, local, *now_ms, locked).without_blocking();
        (inner.is_inner, inner.fires, inner.depth) = (true, *fires, *depth);
        let mark = sink.mark();
        let outcome = runner::run(&mut inner, handler, args, sink);
        if outcome.is_err() {
            sink.rollback(mark);
        }
        self.count_run(command_id(args), outcome.is_err());
        outcome
    }
    /// What the last command answered; nothing if it has failed.
    #[must_use]
    pub fn reply(&self) -> Items<'_> {
        self.context.local.reply.as_deref().map(Captured::items).unwrap_or_default()
    }
    /// The same, to make more of it.
    #[must_use]
    pub fn captured(&self) -> Option<&Captured> {
        self.context.local.reply.as_deref()
    }
    /// The operation is over: nobody reads the last reply any more. It may be large, and hold values that are gone.
    pub(crate) fn forget_reply(&mut self) {
        if let Some(reply) = &mut self.context.local.reply {
            reply.clear_if_large();
        }
    }
    /// Bytes that it takes as it is kept.
    #[must_use]
    pub fn reply_bytes(&self) -> usize {
        self.context.local.reply.as_deref().map_or(0, Captured::len)
    }

    /// Does something of which nothing stays if it fails.
    pub fn whole<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let undoing = self.begin_undo();
        let outcome = work(self);
        match &outcome {
            Ok(_) => self.commit(undoing),
            Err(_) => self.abandon(undoing),
        }
        outcome
    }
    /// From now on what the operation does can be taken back. Inside an operation that has begun so before it is a
    /// place of that.
    pub fn begin_undo(&mut self) -> Undoing {
        let owns = !self.context.local.effects.recorder.has_journal();
        Undoing { begun: if owns { begin(self.context.local) } else { mark(self.context.local) }, owns }
    }
    /// What is kept of what the operation does, so that it can be taken back and nobody hears of it before: in bytes,
    /// about.
    pub fn undo_bytes(&self) -> usize {
        let local = &*self.context.local;
        local.effects.recorder.undo_bytes() + local.pending_bytes()
    }
    /// A place to go back to, with a journal.
    pub fn point(&mut self) -> Point {
        mark(self.context.local)
    }
    /// Takes back what was done behind a place.
    pub fn rollback(&mut self, to: Point) {
        if let Locked::Guards(guards) | Locked::World(_, guards) = &mut self.context.locked {
            rollback(self.context.local, guards, to);
        }
    }
    /// What was done stays; if the journal was begun [here](Self::begin_undo), all is told.
    pub fn commit(&mut self, undoing: Undoing) {
        if let Locked::Guards(guards) | Locked::World(_, guards) = &mut self.context.locked
            && undoing.owns
        {
            commit(self.context.local, guards);
            self.context.engine.send_messages(self.context.local);
        }
    }
    /// What was done is taken back; if the journal was begun [here](Self::begin_undo), it ends.
    pub fn abandon(&mut self, undoing: Undoing) {
        self.rollback(undoing.begun);
        self.commit(undoing);
    }
    /// Does something with the rights of another user, who is called `whose` owner in the error if there is none any
    /// more.
    pub fn as_user<R>(
        &mut self,
        name: &str,
        whose: &str,
        work: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let Context { engine, session, .. } = &mut *self.context;
        // Who may do everything is no other than who may do everything.
        if session.user.all && *session.user.name == *name && session.acl_epoch == engine.acl.epoch() {
            return work(self);
        }
        let owner = engine.acl.owner(name, whose)?;
        let caller = std::mem::replace(&mut session.user, owner);
        let outcome = work(self);
        self.context.session.user = caller;
        outcome
    }
    /// The session whose rights, database and name the commands have.
    pub const fn session(&mut self) -> &mut Session {
        self.context.session
    }
}

/// What can be taken back, since it began.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Undoing {
    begun: Point,
    /// Its journal is its own, and not that of an operation around it.
    owns: bool,
}

impl Undoing {
    /// Where it began.
    #[must_use]
    pub const fn begun(&self) -> Point {
        self.begun
    }
}

/// Begins a journal.
pub(crate) fn begin(local: &mut Local) -> Point {
    let savepoint = local.effects.recorder.begin_undo();
    Point { savepoint, ready: local.ready.len(), messages: local.messages.len() }
}
/// A place in a journal.
pub(crate) fn mark(local: &mut Local) -> Point {
    let savepoint = local.effects.recorder.savepoint();
    Point { savepoint, ready: local.ready.len(), messages: local.messages.len() }
}
/// Goes back to a place in a journal.
pub(crate) fn rollback(local: &mut Local, guards: &mut Guards<'_>, to: Point) {
    guards.rollback(&mut local.effects.recorder, to.savepoint);
    local.ready.truncate(to.ready);
    local.messages.truncate(to.messages);
}
/// Ends a journal: what was done stays.
pub(crate) fn commit(local: &mut Local, guards: &mut Guards<'_>) {
    local.garbage.extend(guards.commit(&mut local.effects.recorder));
}
