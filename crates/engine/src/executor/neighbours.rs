//! Owns: running the neighbouring requests of one client, as most requests come: what is asked of the client is asked
//! once for all of them, what is asked of a command was answered when the engine was made ([`Plan`]), and what is
//! left is asked of the key, under the one lock that the request needs; or of a message's channel, which needs none.
//! Does not own: what commands do, what is asked of a request that comes by itself (`super::admission`), the fast
//! functions (`super::fast`).
//!
//! A transaction that has come whole is one of them (`super::whole`).
//!
//! A request that this does not take goes the full way, and nothing has been changed.

use std::sync::atomic::Ordering::Relaxed;

use weft_protocol::table::CommandId;
use weft_store::{Ahead, Batch};

use super::{Core, Host, Lent, direct, locks};
use crate::acl::User;
use crate::args::{Args, Texts};
use crate::blocking;
use crate::context::{Context, Locked};
use crate::engine::Engine;
use crate::error::{ErrorCode, Result};
use crate::eviction::Eviction;
use crate::handler::Handler;
use crate::plan::Plan;
use crate::reply::{OutputPlace, ReplySink};
use crate::requests::{Fast, Request, Requests, What};
use crate::session::{Session, Then};
use crate::stats::bump;
use crate::{runner, special};

/// More than a request of one key and one value takes as RESP, where it is measured, than it has in any frame.
const FRAMING_BYTES_MAX: usize = 64;

/// What holds for the neighbouring requests of one client.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// Fast functions may stand in for handlers.
    pub(super) fast: bool,
    /// The client's user may not do everything: each request is asked for.
    pub(super) restricted: bool,
    /// There are triggers: writes to keys that may fire any go the full way.
    pub(super) triggered: bool,
    /// There is a `maxmemory`: what a request may store is counted.
    pub(super) limited: bool,
    /// What the client has sent is long enough for a request that is for the log of large ones.
    pub(super) sized: bool,
    /// Where the output may reach before the client must be lent again.
    pub(super) end: usize,
}

impl Terms {
    /// Whether they let a request run that has these keys and, if it may grow the store, brings so many bytes.
    #[inline(always)]
    pub(super) fn let_run<'k>(
        self,
        (engine, eviction): (&Engine, &mut Eviction),
        user: &User,
        (id, mut keys): (CommandId, impl Iterator<Item = &'k [u8]>),
        brings: Option<usize>,
    ) -> bool {
        (!self.restricted || user.allows_plainly(id) && keys.all(|key| user.allows_key_plainly(key)))
            && (!self.limited || eviction.has_room(engine, brings))
    }
    /// The same of a command that has one key and brings so many bytes, if it may grow the store.
    #[inline(always)]
    pub(super) fn let_one_lock_run(
        self,
        room: (&Engine, &mut Eviction),
        user: &User,
        (id, plan, key): (CommandId, &Plan, &[u8]),
        bytes: impl FnOnce() -> usize,
    ) -> bool {
        // What may take long may take more than it brings: a limit is looked at before each.
        let is_known = !(self.limited && plan.timed && plan.grows);
        is_known && self.let_run(room, user, (id, std::iter::once(key)), plan.grows.then(bytes))
    }
}

/// What the neighbouring requests that have run are counted as, when the next client's turn comes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    last: Option<CommandId>,
    /// How often the last one, without another between.
    times: u32,
    /// Requests that were commands of transactions: counted already, and as their client's own not at all.
    queued: u32,
}

impl Tally {
    /// A transaction has run, whose commands are counted already.
    pub(super) const fn ran_whole(&mut self, exec: CommandId, queued: usize) {
        (self.last, self.times) = (Some(exec), 0);
        self.queued += queued as u32;
    }
}

/// How a handler is run.
pub(super) type RunWith = fn(&mut Context<'_, '_>, Handler, &Args<'_>, &mut ReplySink<'_>) -> Result;

impl<'e> Core<'e> {
    /// The plan of a request, if it may run among neighbours.
    #[inline]
    pub(super) fn plan(&self, request: &Request) -> Option<(CommandId, &'e Plan)> {
        let What::Command(id) = request.what else { return None };
        self.engine.plans.of(id).map(|plan| (id, plan))
    }

    /// On which terms the next requests of a client may run among neighbours, which are among so many bytes and whose
    /// replies may reach to `end` in its output; nothing when each must be asked for by itself.
    #[inline]
    fn terms(&self, session: &Session, (bytes, end): (usize, usize)) -> Option<Terms> {
        let special = self.engine.special.bits();
        if special & special::EACH != 0
            || !session.is_plain()
            || self.measures.every
            || session.acl_epoch != self.engine.acl.epoch()
        {
            return None;
        }
        Some(Terms {
            fast: special & special::HANDLERS == 0,
            restricted: !session.user.all,
            triggered: special & special::TRIGGERS != 0,
            limited: special & special::LIMITED != 0,
            sized: bytes + FRAMING_BYTES_MAX >= self.measures.request_bytes,
            end,
        })
    }

    /// Whether each of a client's next requests may run without being asked about.
    pub(super) fn are_plain(&self, session: &Session) -> bool {
        self.terms(session, (0, usize::MAX)).is_some_and(|terms| !terms.restricted && !terms.limited)
    }

    /// Runs requests of one client from place `from` on, as long as they may run among neighbours, and says how many.
    pub(super) fn neighbours(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        from: usize,
        host: &mut impl Host,
    ) -> usize {
        let list = requests.list();
        let (connection, channel) = (list[from].client.connection, list[from].client.channel);
        if self.plan(&list[from]).is_none() {
            return 0;
        }
        let Some(mut lent) = host.lend(connection, channel) else { return 0 };
        // Asked for before the terms: what is special since ends the run.
        let special = self.engine.special.bits();
        let end = lent.output.len().saturating_add(lent.shared_bytes);
        let Some(terms) = self.terms(lent.session, (lent.bytes.len(), end)) else { return 0 };
        if terms.triggered {
            self.local.triggers.index(&self.engine.triggers);
        }
        let begun = lent.output.end();
        let (mut at, mut tally, mut outgrown) = (from, Tally::default(), None);
        while outgrown.is_none()
            && let Some(request) = list.get(at)
            && request.client.is_same(list[from].client)
            && (at == from || self.engine.special.bits() == special)
        {
            // What a reply takes is not known before, so it is seen behind it.
            let place = if end == usize::MAX { OutputPlace::default() } else { lent.output.end() };
            let mut ran = 0;
            if request.fast != Fast::No {
                if terms.fast {
                    ran = self.fast(batch, requests, &list[at..], &mut lent, terms);
                }
                if ran == 0 && terms.triggered {
                    ran = usize::from(self.fires_beside(batch, requests, request, &mut lent, terms));
                }
            }
            if ran == 0 {
                ran = self.one_lock((batch, tally.last), requests, at, &mut lent, terms);
            }
            if ran > 0 {
                self.tally(&mut tally, request.command(), ran);
            } else {
                ran = self.whole_transaction((batch, &mut tally), requests, at, &mut lent, terms);
                if ran == 0 {
                    break;
                }
            }
            at += ran;
            outgrown = (lent.output.len() > end).then(|| self.long_from.take().unwrap_or(place));
        }
        if (from..at).contains(&self.sampled) {
            self.sample(requests, &lent);
        }
        self.withhold(lent.output, begun);
        self.end_neighbours(lent.session, &mut tally, (at - from) as u64);
        if let Some(place) = outgrown {
            host.outgrew(connection, channel, place);
        }
        at - from
    }

    /// Runs a request under the lock of its key, behind a neighbour of the command `last`; or a message; or a program,
    /// with those behind it. Says how many; 0: it must go the full way, and nothing has been changed.
    #[inline]
    fn one_lock(
        &mut self,
        (batch, last): (&Batch<'_>, Option<CommandId>),
        requests: &Requests,
        at: usize,
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> usize {
        let request = &requests.list()[at];
        let Some((id, plan)) = self.plan(request) else { return 0 };
        let texts = Texts::default();
        let args = requests.args(request, lent.bytes, &texts).with_buffer(lent.buffer);
        if !plan.takes(args.len()) {
            return 0;
        }
        if !plan.one_lock {
            return match (plan.program, plan.no_lock) {
                (true, _) => self.programs(batch, (id, plan), (requests, at), lent, terms),
                (_, true) => usize::from(self.no_lock(batch, (id, plan), &args, lent, terms)),
                _ => 0,
            };
        }
        if terms.restricted || terms.limited {
            let room = (self.engine, &mut self.eviction);
            let key = args.bytes(1);
            if !terms.let_one_lock_run(room, &lent.session.user, (id, plan, key), || requests.bytes(request))
            {
                return 0;
            }
        }
        let before = self.local.effects.ahead;
        self.local.effects.ahead = match plan.looks {
            true => requests.ahead(at, lent.bytes, &self.engine.keyspace, before),
            false => Ahead::default(),
        };
        if terms.triggered && plan.writes && self.local.triggers.last().has(args.bytes(1)) {
            if self.is_turn_over() {
                return 0;
            }
            // Who hears what it publishes has heard what was done before it.
            self.act_on_effects(lent.session);
            return usize::from(self.fires(batch, (id, plan), &args, lent));
        }
        let keyspace = &self.engine.keyspace;
        let shard = match request.first_hash() {
            Some(hash) => keyspace.shard_of_hash(hash),
            None => keyspace.shard_of(&args.key(keyspace, 1)),
        };
        let Some(mut guard) = batch.lock_shard_in_time(shard) else { return 0 };
        if plan.writes && !guard.waiters().is_empty() {
            return 0;
        }
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let (mark, len) = (sink.reply_mark(), sink.len());
        // The second of two begins where the first has ended: one look at the clock for each.
        let timed = plan.timed.then(|| self.start(self.ended.filter(|_| last == Some(id))));
        let mut context =
            Context::new(self.engine, lent.session, &mut self.local, self.now_ms, Locked::Key(&mut guard));
        let outcome = runner::run_handler(&mut context, plan.handler, &args, &mut sink);
        self.local.effects.end_group();
        drop(guard);
        if let Err(error) = &outcome {
            runner::fail(self.stats, &mut sink, mark, error);
        }
        let (failed, reply_bytes) = (sink.errors() > 0, sink.len().saturating_sub(len));
        if let Some(timed) = timed {
            self.took((id, &args), lent.session, timed);
        }
        self.look_behind(batch, lent.session, (id, &args), (failed, reply_bytes));
        1
    }

    /// Runs a request that has a channel and no key. `false`: as above.
    #[inline(never)]
    fn no_lock(
        &mut self,
        batch: &Batch<'_>,
        (id, plan): (CommandId, &Plan),
        args: &Args<'_>,
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> bool {
        if terms.restricted && !lent.session.user.allows_message_plainly(id, args.bytes(1))
            // Above the limit any command makes room.
            || terms.limited && !self.eviction.has_room(self.engine, None)
            || self.engine.pubsub.may_take_long()
        {
            return false;
        }
        // Who hears a message has heard what was done before it.
        self.act_on_effects(lent.session);
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let (mark, len) = (sink.reply_mark(), sink.len());
        let locked = Locked::Batch(batch);
        let mut context = Context::new(self.engine, lent.session, &mut self.local, self.now_ms, locked);
        let outcome = runner::run_handler(&mut context, plan.handler, args, &mut sink);
        if let Err(error) = &outcome {
            runner::fail(self.stats, &mut sink, mark, error);
        }
        let (failed, reply_bytes) = (sink.errors() > 0, sink.len().saturating_sub(len));
        self.look_behind(batch, lent.session, (id, args), (failed, reply_bytes));
        true
    }

    /// Runs a SET without options, in its shorter form, and what it fires, if that is one quick command about another
    /// key and this batch has the keyspace to itself. `false`: as above.
    #[inline(never)]
    fn fires_beside(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        request: &Request,
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> bool {
        if request.fast != Fast::Set
            || !terms.fast
            || terms.restricted
            || terms.sized
            || request.client.db != lent.session.db
        {
            return false;
        }
        let key = requests.key(request, lent.bytes);
        let Some(mut guards) = batch.guards_alone() else { return false };
        let locked = Locked::Guards(&mut guards);
        let mut context = Context::new(self.engine, lent.session, &mut self.local, self.now_ms, locked);
        let has_run = direct::fire(&mut context, key);
        drop(guards);
        if !has_run {
            return false;
        }
        if !self.set(batch, requests, request, lent) {
            // Somebody waits for its shard.
            self.set_awaited(batch, requests, request, lent);
        }
        if !self.local.ready.is_empty() {
            blocking::serve_rest(self.engine, &mut self.local, batch, self.now_ms);
        }
        true
    }
    /// The same SET by its handler. It cannot fail.
    #[cold]
    fn set_awaited(
        &mut self,
        batch: &Batch<'_>,
        requests: &Requests,
        request: &Request,
        lent: &mut Lent<'_>,
    ) {
        let (Some(mut guards), Some((_, plan))) = (batch.guards_alone(), self.plan(request)) else { return };
        let texts = Texts::default();
        let args = requests.args(request, lent.bytes, &texts);
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let locked = Locked::Guards(&mut guards);
        let mut context = Context::new(self.engine, lent.session, &mut self.local, self.now_ms, locked);
        let outcome = runner::run_handler(&mut context, plan.handler, &args, &mut sink);
        debug_assert!(outcome.is_ok(), "a SET without options cannot fail");
        self.local.effects.end_group();
        if !self.local.ready.is_empty() {
            blocking::serve_covered(self.engine, &mut self.local, &mut guards, self.now_ms);
        }
    }

    /// Runs a stored program that always takes about the same short time, and with it neighbours that run it too: the
    /// clock is looked at for all together. Says how many; 0: as above.
    #[inline(never)]
    fn programs(
        &mut self,
        batch: &Batch<'_>,
        (id, plan): (CommandId, &Plan),
        (requests, at): (&Requests, usize),
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> usize {
        // What it fires may take long.
        let waits = terms.triggered && self.is_turn_over();
        let is_plain = !(terms.restricted || terms.limited || waits);
        let texts = Texts::default();
        let args = requests.args(&requests.list()[at], lent.bytes, &texts);
        if !is_plain || !self.local.programs.begins_quick(&self.engine.programs, &args) {
            return 0;
        }
        let ran = if terms.fast && batch.guards_alone().is_some() {
            self.programs_alone(batch, (id, plan), (requests, at, args.bytes(2)), lent, terms)
        } else {
            usize::from(self.guarded(batch, (id, plan), &args, lent, runner::run_handler))
        };
        self.local.programs.has_run();
        ran
    }

    /// [`Core::programs`] of a batch that has the keyspace to itself: what a run needs is looked up for the first.
    fn programs_alone(
        &mut self,
        batch: &Batch<'_>,
        (id, plan): (CommandId, &Plan),
        (requests, at, name): (&Requests, usize, &[u8]),
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> usize {
        let Some(stored) = self.local.programs.found() else { return 0 };
        let list = &requests.list()[at..];
        let client = list[0].client;
        let (mut ran, mut runs, mut failures) = (0, 0, 0);
        while let Some(request) = list.get(ran)
            && request.client == client
            && request.command() == Some(id)
        {
            let texts = Texts::default();
            let args = requests.args(request, lent.bytes, &texts);
            if !plan.takes(args.len()) || args.bytes(2) != name {
                break;
            }
            let from = lent.output.end();
            let mut sink = ReplySink::new(lent.output, lent.session.wire);
            let (mark, len) = (sink.reply_mark(), sink.len());
            let Some(mut guards) = batch.guards_alone() else { break };
            self.local.effects.begin_command(args.spec);
            // Its handler does this, and asks for what has been answered here.
            let outcome = self.local.programs.params(&self.engine.settings, &stored.program, &args).and_then(
                |params| {
                    let locked = Locked::Guards(&mut guards);
                    let mut context =
                        Context::new(self.engine, lent.session, &mut self.local, self.now_ms, locked);
                    let outcome = (self.engine.logic().run_program)(&mut context, &stored, params);
                    let everything = matches!(&outcome, Err(error) if error.code == ErrorCode::NeedsWorld);
                    runs += u64::from(!everything);
                    failures += u64::from(outcome.is_err() && !everything);
                    outcome
                },
            );
            self.local.effects.end_group();
            if !self.local.ready.is_empty() {
                blocking::serve_covered(self.engine, &mut self.local, &mut guards, self.now_ms);
            }
            drop(guards);
            let everything = matches!(&outcome, Err(error) if error.code == ErrorCode::NeedsWorld);
            if terms.triggered {
                self.local.counted.end(self.stats, everything);
                self.take_fired_of_turn();
            }
            match outcome {
                Ok(value) => value.answer(&mut sink),
                Err(_) if everything => {
                    sink.rollback(mark);
                    break;
                }
                Err(error) => runner::fail(self.stats, &mut sink, mark, &error),
            }
            let (failed, reply_bytes) = (sink.errors() > 0, sink.len().saturating_sub(len));
            self.look_behind(batch, lent.session, (id, &args), (failed, reply_bytes));
            ran += 1;
            if lent.output.len() > terms.end {
                // How long it is was not known before.
                self.long_from = Some(from);
                break;
            }
            if terms.triggered && self.is_turn_over() {
                break;
            }
        }
        self.eviction.forget();
        self.local.programs.count_runs(stored, runs, failures);
        ran
    }

    /// Runs a request that may fire triggers, with what they do. `false`: it needs the keyspace to itself.
    #[inline(never)]
    fn fires(
        &mut self,
        batch: &Batch<'_>,
        planned: (CommandId, &Plan),
        args: &Args<'_>,
        lent: &mut Lent<'_>,
    ) -> bool {
        self.needs_world = !self.guarded(batch, planned, args, lent, self.engine.logic().fire);
        !self.needs_world
    }

    /// Runs a request under the locks that it needs. `false`: as above.
    #[inline(always)]
    fn guarded(
        &mut self,
        batch: &Batch<'_>,
        (id, plan): (CommandId, &Plan),
        args: &Args<'_>,
        lent: &mut Lent<'_>,
        run: RunWith,
    ) -> bool {
        let asked = (plan.handler, lent.session.db, args);
        let Some(mut guards) = locks::guards(self.engine, &mut self.local, batch, asked) else {
            return false;
        };
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let (mark, len) = (sink.reply_mark(), sink.len());
        let timed = plan.timed.then(|| self.start(None));
        let locked = Locked::Guards(&mut guards);
        let mut context = Context::new(self.engine, lent.session, &mut self.local, self.now_ms, locked);
        let outcome = run(&mut context, plan.handler, args, &mut sink);
        self.local.effects.end_group();
        if !self.local.ready.is_empty() {
            blocking::serve_covered(self.engine, &mut self.local, &mut guards, self.now_ms);
        }
        drop(guards);
        if let Err(error) = &outcome {
            if error.code == ErrorCode::NeedsWorld {
                sink.rollback(mark);
                self.local.counted.end(self.stats, true);
                return false;
            }
            runner::fail(self.stats, &mut sink, mark, error);
        }
        self.local.counted.end(self.stats, false);
        let (failed, reply_bytes) = (sink.errors() > 0, sink.len().saturating_sub(len));
        // What it has fired or has run may have stored more than it brought.
        self.eviction.forget();
        self.take_fired_of_turn();
        if let Some(timed) = timed {
            self.took((id, args), lent.session, timed);
        }
        self.look_behind(batch, lent.session, (id, args), (failed, reply_bytes));
        true
    }

    /// A request has run: whether it has left anything to be done is looked at. It may have `failed`, which is an error
    /// of its own in the reply.
    #[inline]
    fn look_behind(
        &mut self,
        batch: &Batch<'_>,
        session: &Session,
        (id, args): (CommandId, &Args<'_>),
        (failed, reply_bytes): (bool, usize),
    ) {
        debug_assert!(session.then == Then::GoOn && !session.is_waiting(), "what waits has no plan");
        if failed
            || reply_bytes >= self.measures.reply_bytes
            || args.bytes_max() >= self.measures.request_bytes
            || !self.local.ready.is_empty()
        {
            self.see_to_rest(batch, session, (id, args), (failed, reply_bytes));
        }
    }

    /// What few requests leave to be done: an error to count, a line in a log, somebody to be served.
    #[cold]
    fn see_to_rest(
        &mut self,
        batch: &Batch<'_>,
        session: &Session,
        (id, args): (CommandId, &Args<'_>),
        (failed, reply_bytes): (bool, usize),
    ) {
        if failed {
            bump(&self.stats.by_command[usize::from(id.0)].failed, 1);
        }
        self.note_large(session, args, reply_bytes);
        if !self.local.ready.is_empty() {
            self.eviction.forget();
            blocking::serve_rest(self.engine, &mut self.local, batch, self.now_ms);
        }
    }

    /// Requests of one command have run. Neighbours are mostly alike: they are counted when another command comes.
    #[inline]
    pub(super) fn tally(&mut self, tally: &mut Tally, id: Option<CommandId>, ran: usize) {
        if tally.last != id {
            self.count(tally);
            tally.last = id;
        }
        tally.times += ran as u32;
    }
    #[inline]
    pub(super) fn count(&mut self, tally: &mut Tally) {
        if let Some(id) = tally.last
            && tally.times > 0
        {
            self.count_calls(id, tally.times);
        }
        tally.times = 0;
    }
    /// Calls have run that were timed by themselves, or share the time of their batch.
    #[inline]
    fn count_calls(&mut self, id: CommandId, times: u32) {
        if self.engine.plans.of(id).is_some_and(|plan| plan.timed) {
            bump(&self.stats.by_command[usize::from(id.0)].calls, u64::from(times));
        } else {
            self.count_quick(id, times);
        }
    }

    /// What follows so many neighbouring requests of one client.
    #[inline]
    fn end_neighbours(&mut self, session: &Session, tally: &mut Tally, requests: u64) {
        self.count(tally);
        self.local.programs.share_time();
        let Some(last) = tally.last else { return };
        let requests = requests - u64::from(tally.queued);
        bump(&self.stats.commands, requests);
        let info = &session.info;
        info.active_ms.store(self.now_ms, Relaxed);
        info.last_command.store(last.0, Relaxed);
        bump(&info.commands, requests);
        self.act_on_effects(session);
        self.drop_garbage();
    }
}
