//! Owns: running a batch on one worker: prefetching, checks before a command, locks, the command, what follows it. Does
//! not own: connections (the host lends sessions and outputs), the commands.
//!
//! A batch is run in passes: ask for the buckets of all keys, for their entries, in one that is alone for their objects;
//! then run the requests in order.
//! Each request goes: *admission → queue or resolve keys → lock → run → serve who waits → unlock → drop garbage*. What
//! of this can be asked once for the neighbouring requests of a client is asked once (`neighbours`).

mod admission;
mod attempt;
pub(crate) mod direct;
mod elsewhere;
mod exec;
mod fast;
mod locks;
pub(crate) mod measure;
mod neighbours;
mod prefetch;
mod stack;
mod turns;
mod waits;
mod whole;

pub use crate::job::{Door, Input, Job, JobOutcome};
use admission::Verdict;
pub use attempt::Attempt;
use prefetch::prefetch;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use weft_protocol::table::{CommandId, flag, policy};
use weft_store::{Batch, Rng as _, Worker, World};

use crate::args::{Args, Texts};
use crate::blocking::{self, End};
use crate::context::{Context, Local, Locked};
use crate::engine::Engine;
use crate::error::{ErrorCode, Result};
use crate::eviction::Eviction;
use crate::handler::{Handler, Scope};
use crate::reply::{Mark, Output, OutputPlace, ReplySink};
use crate::requests::{BATCH_MAX, Postponed, Requests, What};
use crate::session::{ReplyMode, Session, Then, client_flag};
use crate::stats::{WorkerStats, bump};
use crate::{keys, resource, runner, special};

/// Requests that are worth having the keyspace to oneself for.
const ALONE_MIN: usize = 4;

/// A request's client, as its connection lends it.
pub struct Lent<'h> {
    /// The session.
    pub session: &'h mut Session,
    /// Where replies go.
    pub output: &'h mut Output,
    /// The bytes that the connection's requests of this batch point into.
    pub bytes: &'h [u8],
    /// What these bytes are, where whoever stores much of them may keep it.
    pub buffer: Option<&'h Arc<Vec<u8>>>,
    /// Bytes that neighbouring requests of the client may write before it must be lent again.
    pub shared_bytes: usize,
}

/// The connections of a worker, as the executor needs them.
pub trait Host {
    /// The client of a request; nothing when it has been closed meanwhile, and the request is void. Called right
    /// before a request runs: once for each, or once for several neighbours of one client that write little.
    fn lend(&mut self, connection: u32, channel: u16) -> Option<Lent<'_>>;
    /// The last of the requests that a client was lent for has written more than its neighbours may share; the others
    /// have not. Its reply begins at `from`, and is looked at by itself.
    fn outgrew(&mut self, connection: u32, channel: u16, from: OutputPlace);
    /// The request cannot run yet: its session waits, or CLIENT PAUSE holds it. It is to be [run](Executor::run_owned)
    /// later, behind those of the same client that were postponed before it.
    fn postpone(&mut self, connection: u32, channel: u16, request: Postponed);
    /// A request has run and left something to do for the connection: `session.then` or `session.wait`.
    fn follow_up(&mut self, connection: u32, channel: u16);
}

/// How a request's run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunOutcome {
    /// It has run, or was refused.
    Done,
    /// It needs the whole keyspace to itself: to be called again so.
    NeedsWorld,
    /// It may take long: to be run on a stack of its own.
    NeedsStack,
    /// It must wait for the end of CLIENT PAUSE.
    Paused(u64),
}

/// What is open to a request: a batch, or everything.
#[derive(Clone, Copy)]
pub(crate) enum Tier<'x> {
    Batch(&'x Batch<'x>),
    World(&'x World<'x>),
    /// Nothing: a script keeps what it has locked, and takes its time.
    Busy,
}

/// A worker's executor.
pub struct Executor<'e> {
    worker: Worker<'e>,
    core: Core<'e>,
    stack: stack::Stack<'e>,
}

/// Everything of an executor but its place in the keyspace, which a batch borrows.
pub(crate) struct Core<'e> {
    pub(crate) engine: &'e Engine,
    pub(crate) local: Local,
    stats: &'e WorkerStats,
    eviction: Eviction,
    /// Keys were evicted for the present command.
    evicted: bool,
    now_ms: u64,
    /// Nanoseconds of the present batch that commands have been charged with one by one.
    charged_ns: u64,
    /// When the last command ended that was timed, and when the next one began, if that is the same.
    ended: Option<Instant>,
    begins: Option<Instant>,
    /// The quick commands that have run in the present batch, and how often each.
    quick: Vec<(CommandId, u32)>,
    /// Those outside of a transaction while its commands run.
    quick_outside: Vec<(CommandId, u32)>,
    measures: measure::Measures,
    /// Replies of the present batch wait.
    withholds: bool,
    /// What may take long is run on a stack of its own, by another executor.
    leaves: bool,
    /// Where the last of several replies begins that went beyond the end.
    long_from: Option<OutputPlace>,
    /// The request of the present batch that is noted for who looks what is hot; none of them is `usize::MAX`.
    sampled: usize,
    /// The next request is to have the keyspace to itself: so much was seen among its neighbours.
    needs_world: bool,
    /// What programs that take long have taken of the present turn, in nanoseconds; nothing where there are no turns.
    turn_ns: Option<u64>,
}

impl<'e> Executor<'e> {
    /// The executor of a worker; nothing when the keyspace has no place left.
    #[must_use]
    pub fn new(engine: &'e Engine, worker: u16, seed: u64) -> Option<Self> {
        Some(Self {
            worker: engine.keyspace.worker()?,
            core: Core::new(engine, worker, seed),
            stack: stack::Stack::default(),
        })
    }

    /// The engine.
    #[must_use]
    pub const fn engine(&self) -> &'e Engine {
        self.core.engine
    }
    /// The worker's place in the keyspace, for background work.
    pub const fn worker(&mut self) -> &mut Worker<'e> {
        &mut self.worker
    }

    /// Runs a batch.
    pub fn run(&mut self, requests: &Requests, host: &mut impl Host) {
        let started = Instant::now();
        self.core.begin();
        self.core.leaves = self.has_stack();
        let list = requests.list();
        if self.core.engine.special.has(special::SAMPLED) && !list.is_empty() {
            self.core.sampled = self.core.local.rng.next_u64() as usize % list.len();
        }
        let mut at = 0;
        let mut needs;
        while at < list.len() {
            if self.core.engine.is_busy() {
                self.core.request(Tier::Busy, requests, at, host);
                at += 1;
                continue;
            }
            {
                let alone = self.core.engine.stats.one_thread() && list.len() - at >= ALONE_MIN;
                let entered =
                    if alone { self.worker.enter_alone_in_time() } else { self.worker.enter_in_time() };
                let Some(mut batch) = entered else {
                    // A script has everything, and takes its time.
                    self.core.request(Tier::Busy, requests, at, host);
                    at += 1;
                    continue;
                };
                if at == 0 && requests.has_many_keys() {
                    prefetch(&mut batch, requests);
                }
                needs = RunOutcome::Done;
                while at < list.len() {
                    let ran = self.core.neighbours(&mut batch, requests, at, host);
                    at += ran;
                    if std::mem::take(&mut self.core.needs_world) {
                        needs = RunOutcome::NeedsWorld;
                        break;
                    }
                    if ran > 0 {
                        continue;
                    }
                    needs = self.core.request(Tier::Batch(&batch), requests, at, host);
                    if matches!(needs, RunOutcome::NeedsWorld | RunOutcome::NeedsStack) {
                        break;
                    }
                    at += 1;
                }
            }
            if at < list.len() {
                if needs == RunOutcome::NeedsStack {
                    at += self.requests_on_stack(requests, at, host);
                } else {
                    // What it needs, or all, may be kept by a script that takes its time.
                    let world = self.worker.world_in_time();
                    let tier = world.as_ref().map_or(Tier::Busy, Tier::World);
                    self.core.request(tier, requests, at, host);
                    at += 1;
                }
            }
        }
        self.core.local.programs.free();
        self.core.charge_batch(started);
        self.core.wake_for_withheld();
    }

    /// Runs a request that was postponed. Says whether it has run; otherwise it is to be kept where it was.
    pub fn run_owned(&mut self, postponed: &Postponed, session: &mut Session, output: &mut Output) -> bool {
        self.core.begin();
        let args = postponed.args.args();
        session.info.set_flag(client_flag::BLOCKED, false);
        let from = output.end();
        self.core.leaves = self.has_stack();
        let outcome = {
            let entered = if self.core.engine.is_busy() { None } else { self.worker.enter_in_time() };
            let tier = entered.as_ref().map_or(Tier::Busy, Tier::Batch);
            self.core.dispatch(tier, postponed.what, &args, session, output)
        };
        let had_turn = outcome == RunOutcome::NeedsStack;
        let outcome = match outcome {
            RunOutcome::NeedsStack => {
                self.on_stack((postponed.what, &args), (session, output));
                RunOutcome::Done
            }
            RunOutcome::NeedsWorld => {
                let world = self.worker.world_in_time();
                let tier = world.as_ref().map_or(Tier::Busy, Tier::World);
                self.core.dispatch(tier, postponed.what, &args, session, output)
            }
            outcome => outcome,
        };
        self.core.local.programs.free();
        self.core.withhold(output, from);
        self.core.wake_for_withheld();
        let paused = matches!(outcome, RunOutcome::Paused(_)); // One may have begun meanwhile.
        // What another server runs and does not block says nothing of the kind.
        let blocks = session.wait.is_some() || session.info.has(client_flag::BLOCKED);
        session.info.set_flag(client_flag::BLOCKED, paused || blocks);
        session.held -= u32::from(!paused && !had_turn);
        session.look();
        !paused
    }

    /// A client is gone: everything that it holds is given back. Its wait is over at once, whatever takes its time, and
    /// nothing is handed to it any more.
    pub fn disconnect(&mut self, mut session: Session) {
        self.core.local.forwards.release(&mut session);
        if session.holds_keys() {
            let is_busy = self.core.engine.is_busy();
            let batch = if is_busy { None } else { self.worker.enter_in_time() };
            let mut output = Output::default();
            let own = (self.core.engine, &mut self.core.local);
            blocking::end_own(own, batch.as_ref(), &mut session, &mut output, End::Gone);
            self.core.release(batch.as_ref(), &mut session);
        } else {
            self.core.release_names(&mut session);
        }
        let id = session.id();
        // Watches of shards that a script keeps are given back behind it.
        if session.holds_keys() {
            return self.keep_ended(session);
        }
        self.core.engine.clients.leave(id);
    }
    /// Lets go of the scripts of before the last SCRIPT FLUSH, which otherwise stay until this worker runs another one.
    pub fn forget_old_scripts(&mut self) {
        let scripts = &mut self.core.local.scripts;
        if scripts.as_ref().is_some_and(|scripts| scripts.is_old(&self.core.engine.scripts)) {
            *scripts = None;
        }
    }
    /// What requests have left on a session is gone, but not its user: over HTTP they leave nothing to each other.
    pub fn renew(&mut self, session: &mut Session) {
        let batch = self.worker.enter_in_time();
        self.core.release(batch.as_ref(), session);
        session.show_queued(None);
        self.core.engine.renew(session);
        *session.info.labels.lock() = None;
        session.look();
    }
}

impl<'e> Core<'e> {
    fn new(engine: &'e Engine, worker: u16, seed: u64) -> Self {
        Self {
            engine,
            local: Local::new(seed, worker),
            stats: &engine.stats.workers[usize::from(worker)],
            eviction: Eviction::new(seed ^ 0x5bd1),
            evicted: false,
            now_ms: engine.clock.now_ms(),
            charged_ns: 0,
            ended: None,
            begins: None,
            quick: Vec::with_capacity(BATCH_MAX),
            quick_outside: Vec::with_capacity(BATCH_MAX),
            measures: measure::Measures::new(&engine.settings),
            withholds: false,
            leaves: false,
            long_from: None,
            sampled: usize::MAX,
            needs_world: false,
            turn_ns: None,
        }
    }
}

impl Core<'_> {
    /// A new batch: one look at the clock.
    fn begin(&mut self) {
        self.now_ms = self.engine.clock.now_ms();
        let special = self.engine.special.bits();
        if special & special::PAUSED != 0 {
            self.engine.look_at_pause(self.now_ms);
        }
        if special & special::LIMITED != 0 {
            self.eviction.look(self.engine);
        }
        self.charged_ns = 0;
        self.quick.clear();
        self.engine.stats.begin(self.stats);
        self.local.effects.begin(self.engine);
        self.look_at_measures();
    }

    /// What is read from the settings for many commands at once: before a batch, and behind what may have changed them.
    fn look_at_settings(&mut self) {
        self.look_at_measures();
        self.local.effects.look_at_settings(self.engine);
        self.eviction.look(self.engine);
    }

    fn request(
        &mut self,
        tier: Tier<'_>,
        requests: &Requests,
        at: usize,
        host: &mut impl Host,
    ) -> RunOutcome {
        let request = &requests.list()[at];
        let (connection, channel) = (request.client.connection, request.client.channel);
        let Some(lent) = host.lend(connection, channel) else { return RunOutcome::Done };
        if at == self.sampled {
            self.sample(requests, &lent);
        }
        let before = self.local.effects.ahead;
        self.local.effects.ahead = requests.ahead(at, lent.bytes, &self.engine.keyspace, before);
        let texts = Texts::default();
        let args = requests.args(request, lent.bytes, &texts).with_buffer(lent.buffer);
        let mut turn = false;
        let until_ms = if lent.session.must_queue() && !self.joins(request.what, &args, lent.session) {
            0
        } else if matches!(tier, Tier::Batch(_)) && self.waits_for_turn((request.what, &args), lent.session) {
            turn = true;
            0
        } else {
            let (from, was_busy) = (lent.output.end(), self.is_withheld_and_busy());
            match self.dispatch(tier, request.what, &args, lent.session, lent.output) {
                RunOutcome::Done => {
                    // What is answered while a script takes long has come to no key. What the script has written is not
                    // safe before it ends, and it could not be ended by who waits for that.
                    if !was_busy || !self.is_withheld_and_busy() {
                        self.withhold(lent.output, from);
                    }
                    if lent.session.then != Then::GoOn || lent.session.is_waiting() {
                        host.follow_up(connection, channel);
                    }
                    return RunOutcome::Done;
                }
                outcome @ (RunOutcome::NeedsWorld | RunOutcome::NeedsStack) => return outcome,
                RunOutcome::Paused(until_ms) => {
                    lent.session.info.set_flag(client_flag::BLOCKED, true);
                    until_ms
                }
            }
        };
        lent.session.held += 1;
        lent.session.look();
        let postponed = Postponed { what: request.what, args: args.to_owned_args(), until_ms, turn };
        host.postpone(connection, channel, postponed);
        RunOutcome::Done
    }

    /// Notes the request of the batch that was chosen: one of its keys, by chance, if it has any.
    #[cold]
    fn sample(&mut self, requests: &Requests, lent: &Lent<'_>) {
        let (list, at) = (requests.list(), std::mem::replace(&mut self.sampled, usize::MAX));
        let Some(request) = list.get(at).filter(|request| request.hash != 0) else { return };
        let texts = Texts::default();
        let args = requests.args(request, lent.bytes, &texts);
        // Those that a batch would prefetch: enough to choose from.
        let chosen = self.local.rng.next_u64() as usize % requests.hashes(request).count();
        let mut at = 0;
        keys::each(&args, |index| {
            if at == chosen {
                let name = args.bytes(index);
                let hash = self.engine.keyspace.key(name).hash();
                self.engine.hot.add(self.local.worker, (lent.session.db, hash, name), list.len());
            }
            at += 1;
        });
    }

    #[inline]
    fn is_withheld_and_busy(&self) -> bool {
        const BOTH: u32 = special::WITHHELD | special::BUSY;
        self.engine.special.bits() & BOTH == BOTH
    }
    /// What was written behind this place waits, if there is something that it must wait for.
    #[inline]
    fn withhold(&mut self, output: &mut Output, from: OutputPlace) {
        self.withhold_for(output, from, self.local.effects.recorder.told_epoch());
    }
    /// The same for what was told in this epoch.
    #[inline]
    fn withhold_for(&mut self, output: &mut Output, from: OutputPlace, told_epoch: u64) {
        if self.engine.special.has(special::WITHHELD) {
            self.withholds |= self.engine.withhold_output(output, from, told_epoch);
        }
    }
    /// Replies of this batch wait: whoever makes them safe is told, now that the batch is over.
    #[inline]
    fn wake_for_withheld(&mut self) {
        if std::mem::take(&mut self.withholds) {
            self.engine.safe.wake();
        }
    }

    /// Checks, then queues or runs one request, and writes its reply, if its session wants one.
    fn dispatch(
        &mut self,
        tier: Tier<'_>,
        what: What,
        args: &Args<'_>,
        session: &mut Session,
        output: &mut Output,
    ) -> RunOutcome {
        let mut sink = ReplySink::new(output, session.wire);
        let mark = sink.mark();
        let outcome = self.dispatch_to(tier, what, args, session, &mut sink);
        // Whoever waits is answered later: the mode holds for that.
        if session.reply_mode != ReplyMode::On && outcome == RunOutcome::Done && session.wait.is_none() {
            if !is_subscription(what) {
                sink.rollback(mark);
            }
            session.reply_mode = session.reply_mode.next();
        }
        outcome
    }

    #[inline]
    fn dispatch_to(
        &mut self,
        tier: Tier<'_>,
        what: What,
        args: &Args<'_>,
        session: &mut Session,
        sink: &mut ReplySink<'_>,
    ) -> RunOutcome {
        let admitted = self.admit(tier, what, args, session);
        if self.evicted {
            self.invalidate_evicted(session, sink);
        }
        let mark = sink.mark();
        let (id, handler) = match admitted {
            Ok(Verdict::Run(id, handler)) => (id, handler),
            Ok(Verdict::Queue) => {
                self.show_command(what, session);
                let ahead = self.read_ahead(args);
                admission::queue(&self.engine.settings, session, (args, ahead), sink);
                return RunOutcome::Done;
            }
            Ok(Verdict::Pause(until_ms)) => return RunOutcome::Paused(until_ms),
            Err(error) => {
                self.show_command(what, session);
                self.refuse(tier, what, session, error, sink);
                self.act_on_effects(session);
                return RunOutcome::Done;
            }
        };
        if self.leaves && matches!(tier, Tier::Batch(_)) && self.may_take_long(handler, session) {
            return RunOutcome::NeedsStack;
        }
        self.run_admitted(tier, (id, handler), args, session, (sink, mark))
    }

    /// Runs a request that was admitted.
    fn run_admitted(
        &mut self,
        tier: Tier<'_>,
        (id, handler): (CommandId, Handler),
        args: &Args<'_>,
        session: &mut Session,
        (sink, mark): (&mut ReplySink<'_>, Mark),
    ) -> RunOutcome {
        if matches!(tier, Tier::Batch(_))
            && locks::needs_world((self.engine, &mut self.local), handler, args, session)
        {
            return RunOutcome::NeedsWorld;
        }
        let begun = self.begin_command(id, sink.errors(), sink.len());
        let charged_ns = self.charged_ns;
        let outcome = self.run_locked(tier, handler, args, session, sink);
        let failed = outcome.is_err();
        if let Err(error) = &outcome {
            if error.code == ErrorCode::NeedsWorld && matches!(tier, Tier::Batch(_)) {
                sink.rollback(mark);
                self.local.counted.end(self.stats, true);
                return RunOutcome::NeedsWorld;
            }
            runner::fail(self.stats, sink, mark, error);
        }
        self.local.counted.end(self.stats, false);
        self.engine.monitor(session, args, self.now_ms);
        // What has changed a setting is measured by what it has set.
        if id.spec().flags & flag::ADMIN != 0 || matches!(handler.scope, Scope::Exec) {
            self.look_at_settings();
        }
        // Errors of a transaction's commands are theirs.
        let errors =
            if matches!(handler.scope, Scope::Exec) && !failed { begun.errors() } else { sink.errors() };
        self.end_command((id, args), session, &begun, (errors, sink.len()));
        if matches!(handler.scope, Scope::Brief(_) | Scope::Operation(_) | Scope::Exec) {
            // What a program, a script or a transaction fires is of its time.
            self.local.fired_ns = 0;
            self.take_of_turn(self.charged_ns.saturating_sub(charged_ns));
        }
        self.take_fired_of_turn();
        let info = &session.info;
        info.active_ms.store(self.now_ms, Relaxed);
        info.last_command.store(id.0, Relaxed);
        bump(&info.commands, u64::from(session.wait.is_none()));
        self.after(tier, session);
        if session.caching.is_some() && !session.in_multi() && id.spec().policy & policy::KEEPS_CACHING == 0 {
            session.caching = None;
        }
        session.look();
        RunOutcome::Done
    }

    /// Takes the locks that a command needs, runs it, and serves those who waited for what it wrote.
    fn run_locked(
        &mut self,
        tier: Tier<'_>,
        handler: Handler,
        args: &Args<'_>,
        session: &mut Session,
        sink: &mut ReplySink<'_>,
    ) -> Result {
        match (handler.scope, tier) {
            (Scope::Exec, _) => self.exec(tier, session, sink),
            (scope, Tier::Busy) => {
                if !stack::may_run_while_busy(scope, session) {
                    return Err(self.engine.scripts.busy_error());
                }
                self.run_with(Locked::Nothing, handler, args, session, sink)
            }
            (Scope::Forward(way), _) if crate::forward::goes(way, args, session) => {
                crate::forward::run(self.engine, &mut self.local, (way, args), session)
            }
            (Scope::None | Scope::Walk | Scope::Unwatch | Scope::Forward(_), Tier::Batch(batch)) => {
                self.run_with(Locked::Batch(batch), handler, args, session, sink)
            }
            (
                Scope::Keys | Scope::KeysOrWorld(_) | Scope::World | Scope::Operation(_) | Scope::Brief(_),
                Tier::Batch(batch),
            ) => {
                let asked = (handler, session.db, args);
                let Some(mut guards) = locks::guards(self.engine, &mut self.local, batch, asked) else {
                    return Err(ErrorCode::NeedsWorld.into());
                };
                let outcome = self.run_with(Locked::Guards(&mut guards), handler, args, session, sink);
                self.local.effects.end_group();
                if !self.local.ready.is_empty() {
                    blocking::serve_covered(self.engine, &mut self.local, &mut guards, self.now_ms);
                }
                outcome
            }
            (_, Tier::World(world)) => {
                let mut guards = world.guards();
                let outcome = self.run_with(Locked::World(world, &mut guards), handler, args, session, sink);
                self.local.effects.end_group();
                if !self.local.ready.is_empty() {
                    blocking::serve_covered(self.engine, &mut self.local, &mut guards, self.now_ms);
                }
                outcome
            }
        }
    }

    fn run_with(
        &mut self,
        locked: Locked<'_, '_>,
        handler: Handler,
        args: &Args<'_>,
        session: &mut Session,
        sink: &mut ReplySink<'_>,
    ) -> Result {
        let asked = session.asked.take();
        let mut context = Context::new(self.engine, session, &mut self.local, self.now_ms, locked);
        let Some(asked) = asked else { return runner::run(&mut context, handler, args, sink) };
        let outcome = resource::run(&mut context, &asked, (handler, args), sink);
        if outcome.as_ref().is_err_and(|error| error.code == ErrorCode::NeedsWorld) {
            // It runs again.
            session.asked = Some(asked);
        }
        outcome
    }

    /// What follows a command when its locks are gone.
    #[inline]
    fn after(&mut self, tier: Tier<'_>, session: &Session) {
        self.eviction.forget();
        if !self.local.ready.is_empty()
            && let Tier::Batch(batch) = tier
        {
            blocking::serve_rest(self.engine, &mut self.local, batch, self.now_ms);
        }
        self.act_on_effects(session);
        self.drop_garbage();
    }

    /// Gives up what removed values owned. No lock is held.
    #[inline]
    fn drop_garbage(&mut self) {
        if !self.local.garbage.is_empty() {
            let keyspace = &self.engine.keyspace;
            self.local.garbage.drain(..).for_each(|garbage| keyspace.discard(garbage));
        }
    }
    #[inline]
    fn act_on_effects(&mut self, session: &Session) {
        if !self.local.effects.is_empty() {
            self.engine.after_effects(&mut self.local.effects, session);
        }
    }

    /// Evicts until there is room, if there is a limit. Says whether a command that needs memory may run.
    fn make_room(&mut self, batch: &Batch<'_>) -> bool {
        let room = self.eviction.make_room(self.engine, batch, self.now_ms, &mut self.local.effects);
        self.evicted |= room.evicted > 0;
        room.is_there
    }

    /// Before its own reply a client is told of what was evicted: the reply may come from a key that it has cached, and
    /// is gone.
    #[cold]
    fn invalidate_evicted(&mut self, session: &Session, sink: &mut ReplySink<'_>) {
        self.evicted = false;
        if session.info.has(client_flag::TRACKING) && session.reply_mode == ReplyMode::On {
            self.engine.invalidate_before_reply(&mut self.local.effects, session, sink);
        }
    }

    /// Gives back all that a session holds. Watches that cannot be given back now, as a script keeps their shards,
    /// stay with it and count no more.
    fn release(&mut self, batch: Option<&Batch<'_>>, session: &mut Session) {
        self.local.forwards.release(session);
        if let Some(mut transaction) = session.transaction.take() {
            if let Some(batch) = batch {
                transaction.unwatch(batch);
            }
            session.transaction = transaction.ended();
            session.show_queued(None);
        }
        session.info.watched.store(0, Relaxed);
        self.release_names(session);
    }
    /// The same of what it has not with keys.
    fn release_names(&self, session: &mut Session) {
        self.engine.unsubscribe_all(session);
        self.engine.untrack(&session.info);
        self.engine.monitors.leave(session, &self.engine.special);
    }
}

/// Whether a command is answered by pushes, which CLIENT REPLY OFF does not hold back.
fn is_subscription(what: What) -> bool {
    let What::Command(id) = what else { return false };
    id.spec().policy & policy::ANSWERS_BY_PUSH != 0
}
