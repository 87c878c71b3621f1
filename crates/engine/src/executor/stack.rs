//! Owns: the stack on which a worker runs operations, so that one that takes too long can be left: what goes there,
//! what comes back, what is kept meanwhile. Does not own: leaving (`crate::script::run` does so when a script's time is
//! over), running a request (`super`).
//!
//! An operation runs on a second executor of the worker, with its own place in the keyspace and its own recorder: it
//! may keep its locks, or have the keyspace to itself, while the worker answers others. Those are told BUSY, and
//! nothing that they may do comes to the keyspace ([`super::Tier::Busy`]).
//!
//! The session goes along, and a stand-in takes its place: the client may leave, and the request ends all the same.

use std::sync::Arc;
use weft_lua::fiber::{Fiber, Inside};

use super::{Core, Host, Ran, Tier};
use crate::args::{Args, Composed, Texts};
use crate::engine::{Engine, command_id};
use crate::handler::{Handler, Scope};
use crate::reply::{Output, Protocol, ReplySink};
use crate::requests::{Requests, What};
use crate::script::Place;
use crate::script::space::Space;
use crate::session::{ReplyMode, Session, Then};

/// A request that runs there.
#[derive(Debug)]
pub struct Job {
    what: What,
    args: Composed,
    session: Session,
    output: Output,
    /// The worker's state of Lua.
    space: Option<Box<Space>>,
    /// The last epoch in which it has told something: its reply waits until that is safe.
    told_epoch: u64,
}

impl Job {
    /// One that asks for nothing yet.
    fn new(stand_in: Session) -> Box<Self> {
        Box::new(Self {
            what: What::UnknownCommand,
            args: Composed::default(),
            session: stand_in,
            output: Output::default(),
            space: None,
            told_epoch: 0,
        })
    }
}

/// What goes in.
#[derive(Debug)]
pub enum Input {
    /// A request.
    Job(Box<Job>),
    /// The one that was left goes on.
    GoOn,
    /// The executor ends.
    End,
}

/// What comes out.
#[derive(Debug)]
pub enum Outcome {
    /// The request has run.
    Done(Box<Job>),
    /// It takes its time.
    Left,
}

/// From inside.
pub type Door = Inside<Input, Outcome>;

/// A worker's stack.
#[derive(Debug, Default)]
pub(super) struct Stack<'e> {
    fiber: Option<Fiber<'e, Input, Outcome>>,
    /// The one before, for its memory. Its session is some client's stand-in, at which nobody looks.
    spare: Option<Box<Job>>,
    /// None can be had.
    refused: bool,
    /// Where the client of the request is that was left.
    left: Option<(u32, u16)>,
    /// Sessions that have ended meanwhile.
    ended: Vec<Session>,
    /// What tells a script to end.
    end: Option<&'e Place>,
}

impl super::Executor<'_> {
    /// Whether an operation was left, and is to be gone on with.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.stack.left.is_some()
    }

    /// Where the client is whose operation was left.
    #[must_use]
    pub const fn left(&self) -> Option<(u32, u16)> {
        self.stack.left
    }

    /// Runs an admitted request on the stack. Its reply stands in `output` when it has run; otherwise the session
    /// waits.
    pub(super) fn on_stack(
        &mut self,
        (what, args): (What, &Args<'_>),
        (session, output): (&mut Session, &mut Output),
    ) {
        let engine = self.core.engine;
        let (info, wire, db) = (Arc::clone(&session.info), session.wire, session.db);
        let mut job = self.stack.spare.take().unwrap_or_else(|| Job::new(engine.stand_in(&info, wire, db)));
        job.what = what;
        args.rest(0).for_each(|word| job.args.push(word));
        std::mem::swap(session, &mut job.session);
        job.space = self.core.local.scripts.take();
        let address = info.address;
        match self.resume(Input::Job(job)) {
            Some(Outcome::Done(mut job)) => {
                self.take_back(&mut job, session, output);
                job.args.clear();
                job.output.renew();
                self.stack.spare = Some(job);
            }
            _ => {
                *session = engine.stand_in(&info, wire, db);
                session.hold_back();
                self.stack.left = Some((address.connection, address.channel));
                engine.begin_busy();
            }
        }
    }
    fn resume(&mut self, input: Input) -> Option<Outcome> {
        self.stack.fiber.as_mut().and_then(|fiber| fiber.resume(input))
    }
    /// The request has run: its session comes back, and its reply, if it wants one.
    fn take_back(&mut self, job: &mut Job, session: &mut Session, output: &mut Output) {
        std::mem::swap(session, &mut job.session);
        session.held += std::mem::take(&mut job.session.held);
        self.core.local.scripts = job.space.take();
        if session.reply_mode == ReplyMode::On {
            let from = output.end();
            output.take_from(&mut job.output);
            self.core.hold_for(output, from, job.told_epoch);
        }
        session.reply_mode = session.reply_mode.next();
        session.look();
    }

    /// Goes on with the operation that was left, for a moment. When it has run, says whose it was: its reply is there,
    /// and what stood behind it may go on.
    pub fn go_on(&mut self, host: &mut impl Host) -> Option<(u32, u16)> {
        let (connection, channel) = self.stack.left?;
        let Some(Outcome::Done(mut job)) = self.resume(Input::GoOn) else { return None };
        self.stack.left = None;
        self.core.engine.end_busy();
        self.disconnect_ended();
        match host.lend(connection, channel) {
            Some(lent) if lent.session.id() == job.session.id() => {
                lent.session.drop_held();
                self.take_back(&mut job, lent.session, lent.output);
            }
            // The client has gone.
            _ => {
                self.core.local.scripts = job.space.take();
                let batch = self.worker.enter();
                self.core.release(&batch, &mut job.session);
            }
        }
        self.core.wake_for_held();
        host.ran(connection, channel);
        Some((connection, channel))
    }

    /// Keeps a session that has ended as long as something takes its time; gives it back where nothing does.
    pub(super) fn end_later(&mut self, session: Session) -> Option<Session> {
        if !self.core.engine.is_busy() {
            return Some(session);
        }
        self.stack.ended.push(session);
        None
    }
    /// Gives back what sessions held that have ended meanwhile.
    pub(super) fn disconnect_ended(&mut self) {
        if !self.stack.ended.is_empty() && !self.core.engine.is_busy() {
            std::mem::take(&mut self.stack.ended).into_iter().for_each(|session| self.disconnect(session));
        }
    }

    /// Runs a request of a batch on the stack.
    pub(super) fn request_on_stack(&mut self, requests: &Requests, at: usize, host: &mut impl Host) {
        let request = &requests.list()[at];
        let (connection, channel) = (request.client.connection, request.client.channel);
        let Some(lent) = host.lend(connection, channel) else { return };
        let texts = Texts::default();
        let args = requests.args(request, lent.bytes, &texts);
        self.on_stack((request.what, &args), (lent.session, lent.output));
        if lent.session.then != Then::GoOn || lent.session.is_waiting() {
            host.ran(connection, channel);
        }
    }
}

impl Core<'_> {
    /// Whether a request may take so long that others must be served meanwhile.
    pub(super) fn may_take_long(&self, handler: Handler, session: &Session) -> bool {
        let has_stack = matches!(session.wire.protocol, Protocol::Resp2 | Protocol::Resp3 | Protocol::Respb);
        let is_long = |handler: Handler| matches!(handler.scope, Scope::Operation(_));
        has_stack
            && match handler.scope {
                Scope::Exec => session.transaction.as_ref().is_some_and(|transaction| {
                    let mut handlers = transaction.queued.iter().map(|owned| command_id(&owned.args()));
                    handlers.any(|id| self.engine.handler(id).is_some_and(is_long))
                }),
                _ => is_long(handler),
            }
    }
    /// Runs an admitted request, whose reply begins the output.
    fn run_job(
        &mut self,
        tier: Tier<'_>,
        what: What,
        args: &Args<'_>,
        session: &mut Session,
        output: &mut Output,
    ) -> Ran {
        let mut sink = ReplySink::new(output, session.wire);
        let What::Command(id) = what else { return Ran::Done };
        let Some(handler) = self.engine.handler(id) else { return Ran::Done };
        let mark = sink.mark();
        self.run_admitted(tier, (id, handler), args, session, (&mut sink, mark))
    }
}

/// Whether a command may run while something takes its time: it comes to no key.
pub(super) fn may_run_while_busy(scope: Scope, session: &Session) -> bool {
    match scope {
        Scope::None => true,
        Scope::Unwatch => {
            session.transaction.as_ref().is_none_or(|transaction| transaction.watched.is_empty())
        }
        _ => false,
    }
}

impl<'e> super::Executor<'e> {
    /// Whether operations can run on a stack of their own.
    pub(super) fn has_stack(&mut self) -> bool {
        if self.stack.fiber.is_none() && !self.stack.refused {
            self.stack.fiber = fiber(self.core.engine, self.core.local.worker, self.core.local.worker.into());
            self.stack.refused = self.stack.fiber.is_none();
            self.stack.end = Some(self.core.engine.scripts.place(self.core.local.worker));
        }
        self.stack.fiber.is_some()
    }
}

fn fiber(engine: &Engine, worker: u16, seed: u64) -> Option<Fiber<'_, Input, Outcome>> {
    let mut place = engine.keyspace.worker()?;
    let mut core = Core::new(engine, worker, seed);
    Fiber::new(move |door: Door, mut input| {
        core.local.door = Some(door.clone());
        while let Input::Job(mut job) = input {
            core.begin();
            core.local.scripts = job.space.take();
            let Job { what, args, session, output, .. } = &mut *job;
            let args = args.args(what.spec());
            // Where nobody else is met it has everything at once, and nothing of it need ever be taken back.
            let ran = if core.engine.stats.one_thread() {
                Ran::NeedsWorld
            } else {
                let batch = place.enter();
                core.run_job(Tier::Batch(&batch), *what, &args, session, output)
            };
            if ran == Ran::NeedsWorld {
                let world = place.world();
                core.run_job(Tier::World(&world), *what, &args, session, output);
            }
            job.space = core.local.scripts.take();
            job.told_epoch = core.local.effects.recorder.told_epoch();
            let Ok(next) = door.give(Outcome::Done(job)) else { return };
            input = next;
        }
    })
}

impl Drop for Stack<'_> {
    fn drop(&mut self) {
        let Some(fiber) = &mut self.fiber else { return };
        // What runs is told to end, and when it has the body returns: nothing is left on the stack to be dropped.
        if let Some(place) = self.end {
            place.end();
        }
        while fiber.resume(Input::End).is_some() {}
    }
}
