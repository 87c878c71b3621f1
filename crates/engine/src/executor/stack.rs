//! Owns: the stack on which a worker runs operations, so that one that takes too long can be left: what goes there,
//! what comes back, what is kept meanwhile. Does not own: leaving (`crate::logic::script` does so when a script's time
//! is over), running a request (`super`).
//!
//! An operation runs on a second executor of the worker, with its own place in the keyspace and its own recorder: it
//! may keep its locks, or have the keyspace to itself, while the worker answers others. Those are told BUSY, and
//! nothing that they may do comes to the keyspace ([`super::Tier::Busy`]).
//!
//! The session goes along, and a stand-in takes its place: the client may leave, and the request ends all the same.
//!
//! Going there costs as much as a short script, so neighbouring operations of a client go together. If one of them is
//! left, those before it are answered, and those behind it stay outside and wait with everything else of their client.
//! The same is so where the turn of the worker's programs and scripts is over (`super::turns`).

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use weft_lua::fiber::Fiber;

use super::{Core, Host, RunOutcome, Tier};
use crate::args::{Args, Texts, check_arity};
use crate::context::Local;
use crate::engine::{Engine, command_id};
use crate::handler::{Handler, Scope};
use crate::job::{Done, Door, Input, Job, JobOutcome};
use crate::reply::{Output, OutputPlace, Protocol, ReplySink};
use crate::requests::{Requests, What};
use crate::script::Place;
use crate::session::{ReplyMode, Session, Then};

/// Operations that go there together.
const ASKED_MAX: usize = 16;
/// Bytes of their arguments, before no further one goes along.
const ASKED_BYTES_MAX: usize = 64 << 10;

/// A worker's stack.
#[derive(Debug, Default)]
pub(super) struct Stack<'e> {
    fiber: Option<Fiber<'e, Input, JobOutcome>>,
    /// The one before, for its memory. Its session is some client's stand-in, at which nobody looks.
    spare: Option<Box<Job>>,
    /// None can be had.
    refused: bool,
    /// Where the client of the request is that was left.
    left: Option<(u32, u16)>,
    /// How far the requests have come that are there.
    done: Arc<Mutex<Done>>,
    /// Sessions that have ended meanwhile, and watch keys that were locked.
    ended: VecDeque<Session>,
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

    /// What was left in the middle is to end, unless it has written; or `at_once`, whatever it has done, and then
    /// nothing of it is kept.
    pub fn end_left(&self, at_once: bool) {
        match self.stack.end.filter(|_| self.is_busy()) {
            Some(place) if at_once => place.end(),
            Some(place) => place.end_unwritten(),
            None => {}
        }
    }

    /// Runs an admitted request on the stack that was held back. Its reply stands in `output` when it has run;
    /// otherwise the session waits.
    pub(super) fn on_stack(
        &mut self,
        (what, args): (What, &Args<'_>),
        (session, output): (&mut Session, &mut Output),
    ) {
        // Its turn has come, also if it is left: then a stand-in holds back what comes meanwhile.
        session.held -= 1;
        let mut job = self.job(session);
        job.ask(what, args);
        self.run_job(job, (session, output), usize::MAX);
    }
    /// A job of nothing yet.
    fn job(&mut self, session: &Session) -> Box<Job> {
        let stand_in = || self.core.engine.stand_in(&session.info, session.wire, session.db);
        self.stack.spare.take().unwrap_or_else(|| Job::new(stand_in()))
    }
    /// Runs what a job asks for until the replies take so many bytes. Says how many of its requests have run or were
    /// left, and where the last reply begins.
    fn run_job(
        &mut self,
        mut job: Box<Job>,
        (session, output): (&mut Session, &mut Output),
        bytes_max: usize,
    ) -> (usize, OutputPlace) {
        let engine = self.core.engine;
        // What the stand-in is made of, if there must be one.
        let (info, wire, db) = (Arc::clone(&session.info), session.wire, session.db);
        std::mem::swap(session, &mut job.session);
        job.space = self.core.local.scripts.take();
        job.turn_ns = self.core.turn_ns;
        let done = Arc::clone(&job.done);
        {
            let mut done = done.lock();
            (done.ran, done.bytes_max, done.stops) = (0, bytes_max, false);
        }
        self.stack.done = done;
        if let Some(JobOutcome::Done(mut job)) = self.resume(Input::Job(job)) {
            let (ran, last) = self.take_back(&mut job, session, output);
            job.rest();
            self.stack.spare = Some(job);
            return (ran, last);
        }
        let address = info.address;
        *session = engine.stand_in(&info, wire, db);
        let (ran, last) = self.take_replies(output, true);
        // What it has taken so far is not that of its quick neighbours.
        let took = engine.scripts.place(self.core.local.worker).has_run_for();
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.core.charged_ns = self.core.charged_ns.saturating_add(took_ns);
        session.hold_back();
        session.away = true;
        self.stack.left = Some((address.connection, address.channel));
        engine.scripts.set_busy(true, &engine.special, &engine.keyspace);
        (ran + 1, last)
    }
    /// Takes the replies of what has run so far. Says how many there are, and where the last one begins.
    fn take_replies(&mut self, output: &mut Output, stops: bool) -> (usize, OutputPlace) {
        let done = Arc::clone(&self.stack.done);
        let mut done = done.lock();
        done.stops = stops;
        self.core.charged_ns += std::mem::take(&mut done.charged_ns);
        let from = output.end();
        let last = done.last.behind(from);
        output.take_from(&mut done.output);
        self.core.withhold_for(output, from, done.told_epoch);
        (done.ran, last)
    }
    fn resume(&mut self, input: Input) -> Option<JobOutcome> {
        self.stack.fiber.as_mut().and_then(|fiber| fiber.resume(input))
    }
    /// The requests have run: their session comes back, and their replies, if it wants any.
    fn take_back(
        &mut self,
        job: &mut Job,
        session: &mut Session,
        output: &mut Output,
    ) -> (usize, OutputPlace) {
        std::mem::swap(session, &mut job.session);
        session.held += std::mem::take(&mut job.session.held);
        self.take_rest(job);
        if session.reply_mode != ReplyMode::On {
            job.done.lock().output.clear();
        }
        let taken = self.take_replies(output, false);
        session.reply_mode = session.reply_mode.next();
        session.look();
        taken
    }

    /// What they have left to the worker.
    fn take_rest(&mut self, job: &mut Job) {
        self.core.local.scripts = job.space.take();
        self.core.local.serving.append(&mut job.serving);
        // It may have been left, and end in another turn than it has begun in.
        self.core.turn_ns = self.core.turn_ns.max(job.turn_ns);
    }

    /// Goes on with the operation that was left, for a moment. When it has run, says whose it was: its reply is there,
    /// and what stood behind it may go on.
    pub fn go_on(&mut self, host: &mut impl Host) -> Option<(u32, u16)> {
        let (connection, channel) = self.stack.left?;
        let Some(JobOutcome::Done(mut job)) = self.resume(Input::GoOn) else { return None };
        self.stack.left = None;
        let engine = self.core.engine;
        if !engine.scripts.set_busy(false, &engine.special, &engine.keyspace) {
            // Others have put off what they could not have the locks for, and may sleep.
            engine.mailboxes.wake_all();
        }
        match host.lend(connection, channel) {
            Some(lent) if lent.session.id() == job.session.id() => {
                lent.session.drop_held();
                // No batch of now has had that time.
                job.done.lock().charged_ns = 0;
                self.take_back(&mut job, lent.session, lent.output);
            }
            // The client has gone.
            _ => {
                self.take_rest(&mut job);
                let batch = self.worker.enter_in_time();
                self.core.release(batch.as_ref(), &mut job.session);
                drop(batch);
                let Job { session, .. } = *job;
                if session.holds_keys() {
                    self.keep_ended(session);
                }
            }
        }
        self.core.wake_for_withheld();
        host.follow_up(connection, channel);
        Some((connection, channel))
    }

    /// Keeps a session that has ended until what it watches can be given back.
    pub(super) fn keep_ended(&mut self, session: Session) {
        self.stack.ended.push_back(session);
    }
    /// Whether sessions that have ended can give back what they watch.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !self.stack.ended.is_empty() && !self.core.engine.is_busy()
    }
    /// Gives back what sessions watch that have ended while something took its time: so many of them.
    pub fn disconnect_ended(&mut self, count: usize) {
        for _ in 0..count.min(self.stack.ended.len()) {
            if self.core.engine.is_busy() {
                return;
            }
            if let Some(session) = self.stack.ended.pop_front() {
                self.disconnect(session);
            }
        }
    }

    /// Runs a request of a batch on the stack, which was admitted, and with it those behind it that need not be asked
    /// about. Says how many.
    pub(super) fn requests_on_stack(
        &mut self,
        requests: &Requests,
        at: usize,
        host: &mut impl Host,
    ) -> usize {
        let list = &requests.list()[at..];
        let client = list[0].client;
        let (connection, channel) = (client.connection, client.channel);
        let Some(lent) = host.lend(connection, channel) else { return 1 };
        let texts = Texts::default();
        let mut job = self.job(lent.session);
        let mut bytes = job.ask(list[0].what, &requests.args(&list[0], lent.bytes, &texts));
        if self.core.are_plain(lent.session) {
            let alike = list[1..].iter().take_while(|request| request.client == client);
            for request in alike.take(ASKED_MAX - 1) {
                let args = requests.args(request, lent.bytes, &texts);
                if bytes > ASKED_BYTES_MAX || !self.core.is_operation(request.what, &args) {
                    break;
                }
                bytes += job.ask(request.what, &args);
            }
        }
        let end = lent.output.len().saturating_add(lent.shared_bytes);
        let (ran, last) = self.run_job(job, (lent.session, lent.output), lent.shared_bytes);
        let outgrown = ran > 1 && lent.output.len() > end;
        if lent.session.then != Then::GoOn || lent.session.is_waiting() {
            host.follow_up(connection, channel);
        }
        if outgrown {
            host.outgrew(connection, channel, last);
        }
        ran
    }
}

impl Core<'_> {
    /// Whether a request may take so long that others must be served meanwhile.
    pub(super) fn may_take_long(&self, handler: Handler, session: &Session) -> bool {
        // A client that has no connection waits for nothing.
        let has_stack = session.wire.protocol != Protocol::Captured;
        let is_long = |handler: Handler| matches!(handler.scope, Scope::Operation(_));
        has_stack
            && match handler.scope {
                Scope::Exec => session.transaction.as_ref().is_some_and(|transaction| {
                    let mut handlers = transaction.queued.iter().map(|args| command_id(&args));
                    handlers.any(|id| self.engine.handler(id).is_some_and(is_long))
                }),
                _ => is_long(handler),
            }
    }
    /// Whether an operation needs to be asked about no more, where its client's [terms](Self::are_plain) are plain.
    fn is_operation(&self, what: What, args: &Args<'_>) -> bool {
        let What::Command(id) = what else { return false };
        let handler = self.engine.handler(id);
        handler.is_some_and(|handler| matches!(handler.scope, Scope::Operation(_)))
            && check_arity(id.spec(), args.len()).is_ok()
    }
    /// Runs these requests of a job. Says at which it has stopped, since that needs everything, or where it has come
    /// to.
    fn run_asked(&mut self, tier: Tier<'_>, job: &mut Job, range: Range<usize>) -> usize {
        let Job { asked, count, session, output, done, .. } = job;
        let end = range.end;
        for (at, (what, args)) in asked.iter().enumerate().take(end).skip(range.start) {
            let outcome = self.run_one(tier, *what, &args.args(what.spec()), session, output);
            if outcome == RunOutcome::NeedsWorld && matches!(tier, Tier::Batch(_)) {
                return at;
            }
            // The next one begins where this one has ended.
            self.begins = self.ended.take();
            let mut done = done.lock();
            done.last = done.output.end();
            done.output.take_from(output);
            done.ran += 1;
            done.told_epoch = self.local.effects.recorder.told_epoch();
            done.charged_ns += std::mem::take(&mut self.charged_ns);
            if done.is_over() || self.is_turn_over() {
                self.begins = None;
                return *count;
            }
        }
        self.begins = None;
        end
    }
    /// Runs an admitted request, whose reply begins the output. One that cannot have what it needs, as a script keeps
    /// it, is asked for again, and is told so.
    fn run_one(
        &mut self,
        tier: Tier<'_>,
        what: What,
        args: &Args<'_>,
        session: &mut Session,
        output: &mut Output,
    ) -> RunOutcome {
        let mut sink = ReplySink::new(output, session.wire);
        let What::Command(id) = what else { return RunOutcome::Done };
        let Some(handler) = self.engine.handler(id) else { return RunOutcome::Done };
        if matches!(tier, Tier::Busy) {
            return self.dispatch_to(tier, what, args, session, &mut sink);
        }
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
            self.stack.fiber = fiber(self.core.engine, &self.core.local);
            self.stack.refused = self.stack.fiber.is_none();
            self.stack.end = Some(self.core.engine.scripts.place(self.core.local.worker));
        }
        self.stack.fiber.is_some()
    }
}

/// The stack of a worker whose own is `outer`.
fn fiber<'e>(engine: &'e Engine, outer: &Local) -> Option<Fiber<'e, Input, JobOutcome>> {
    let mut place = engine.keyspace.worker()?;
    // What a stack is begun with has 1 KiB at most.
    let mut core = Box::new(Core::new(engine, outer.worker, outer.worker.into()));
    if outer.serves_in_steps {
        core.local.serve_in_steps();
    }
    Fiber::new(move |door: Door, mut input| {
        core.local.door = Some(door.clone());
        while let Input::Job(mut job) = input {
            core.begin();
            core.local.begin_step();
            core.local.scripts = job.space.take();
            core.turn_ns = job.turn_ns;
            let mut at = 0;
            while at < job.count {
                // Where nobody else is met it has everything at once, and nothing of it need ever be taken back.
                let is_alone = core.engine.stats.one_thread();
                if !is_alone && let Some(batch) = place.enter_in_time() {
                    let all = at..job.count;
                    at = core.run_asked(Tier::Batch(&batch), &mut job, all);
                }
                if at < job.count {
                    // Another worker's script may keep it. Where it is that of this one that has taken long, and has
                    // come to more than it had locked, it waits for those who are inside, and others are served.
                    let was_left = job.done.lock().stops;
                    let world = loop {
                        let world = place.world_in_time();
                        if world.is_some()
                            || !was_left
                            || !matches!(door.give(JobOutcome::Left), Ok(Input::GoOn))
                        {
                            break world;
                        }
                    };
                    let (tier, end) = match &world {
                        Some(world) if is_alone => (Tier::World(world), job.count),
                        world => (world.as_ref().map_or(Tier::Busy, Tier::World), at + 1),
                    };
                    at = core.run_asked(tier, &mut job, at..end);
                }
            }
            job.serving.append(&mut core.local.serving);
            job.turn_ns = core.turn_ns;
            job.output.renew();
            job.space = core.local.scripts.take();
            let Ok(next) = door.give(JobOutcome::Done(job)) else { return };
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
        // Another worker that takes this place begins with nothing of it.
        if let Some(place) = self.end {
            place.renew();
        }
    }
}
