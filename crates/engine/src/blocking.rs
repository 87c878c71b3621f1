//! Owns: requests that wait for a key: registering them, serving them when somebody has written, ending them. Does not
//! own: what is known of one that waits (`crate::waits`), the queues under the shards' locks and the claim
//! (`weft_store::waiters`), timers (the server's).
//!
//! A blocked request is run again by whoever has written to one of its keys, under the locks of that write if they
//! cover all its keys, else after them with locks of its own. Its handler asks [`Context::commit`] before its first
//! effect: that takes the claim, which timeout, CANCEL and KILL race for. Its reply goes to its client's worker.
//!
//! Waiters of a key are served in the order in which they came; one with keys in other shards sends the whole key to
//! the second way, so that it is not overtaken.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use weft_protocol::table::{flag, policy};
use weft_store::waiters::{Kind, Outcome};
use weft_store::{Batch, Claim, Guards, Key, Op, ShardGuard, Waiter};

use crate::args::{Args, OwnedArgs};
use crate::context::{Context, Hold, Local};
use crate::durable::{Order, Waiting};
use crate::engine::{Engine, command_id};
use crate::error::{Error, ErrorCode};
use crate::extended::{self, Parsed};
use crate::held::{Held, of_name};
use crate::mailbox::Message;
use crate::reply::{Output, ReplySink};
use crate::runner;
use crate::session::{Session, client_flag};
use crate::stats::bump;
use crate::waits::{Blocked, FAILED, RAN, REFUSED, Ready, Wait, kind_of, kinds_for};
pub use crate::waits::{Empty, End};

/// A timeout argument: seconds, with a fraction, as milliseconds rounded up; 0 waits for ever.
pub(crate) fn timeout_ms(context: &Context<'_, '_>, args: &Args<'_>, index: usize) -> Result<u64, Error> {
    let seconds = seconds(args, index).ok_or_else(|| Error::err("timeout is not a float or out of range"))?;
    let ms = (seconds * 1000.0).ceil();
    // 2^63 is a double.
    if ms >= i64::MAX as f64 {
        return Err(Error::err("timeout is out of range"));
    }
    if ms < 0.0 {
        return Err(Error::err("timeout is negative"));
    }
    let ms = ms as u64;
    if ms > 0 && ms > (i64::MAX as u64).saturating_sub(context.now_ms) {
        return Err(Error::err("timeout is out of range"));
    }
    Ok(ms)
}

/// A text of seconds may also be hexadecimal, or beyond a double.
fn seconds(args: &Args<'_>, index: usize) -> Option<f64> {
    args.double(index).ok().or_else(|| match extended::parse(args.bytes(index))? {
        Parsed::Finite(number) => Some(number.to_double()),
        Parsed::Infinite => Some(f64::INFINITY),
    })
}

impl<'b> Context<'_, 'b> {
    /// Whether a handler that found nothing may block: not inside EXEC, nor in a script.
    #[must_use]
    pub const fn may_block(&self) -> bool {
        self.may_block
    }

    /// Blocks the session on these keys until one is written to, or `timeout_ms` have passed (0: for ever). The handler
    /// returns without having written anything; `args` is what is run again: the request, or a form of it in which
    /// what depended on the moment is resolved (XREAD's `$`).
    pub fn block(
        &mut self,
        keys: &[&[u8]],
        (timeout_ms, empty): (u64, Empty),
        args: OwnedArgs,
    ) -> Result<(), Error> {
        // With the names in the queues, and in the list of them.
        let held = args.memory_bytes() + 2 * keys.iter().map(|key| of_name(key)).sum::<usize>();
        self.session.info.connection.check_room(held)?;
        let claim = Claim::default();
        let kind = kind_of(args.args().spec);
        let mut places: Vec<(Box<[u8]>, u64)> = Vec::with_capacity(keys.len());
        for &name in keys {
            let key = self.engine.keyspace.key(name);
            let waiter = Waiter { token: self.session.id(), claim: claim.clone() };
            let db = self.db;
            let Some(number) = self.guard(&key)?.waiters().join(db, name, kind, waiter) else {
                for (name, number) in places {
                    self.leave_place(&name, (kind, number))?;
                }
                return Err(Error::new(
                    ErrorCode::Limit,
                    "too many clients are blocked on keys of one shard",
                ));
            };
            places.push((Box::from(name), number));
        }
        let mut shards = Vec::new();
        each_named(&args, |name| shards.push(self.engine.keyspace.shard_of(&self.engine.keyspace.key(name))));
        shards.sort_unstable();
        shards.dedup();
        let shared = Arc::new(Blocked {
            args,
            _held: Held::new(&self.session.info.connection, held),
            shards: shards.into(),
            claim,
            db: self.db,
            kind,
            keys: places,
            ends: timeout_ms > 0,
            empty,
            wire: self.session.wire,
            info: Arc::clone(&self.session.info),
            counts_as: AtomicU8::new(RAN),
            spent_ns: AtomicU64::new(0),
        });
        self.engine.waits.part(self.session.id()).lock().insert(self.session.id(), Arc::clone(&shared));
        self.session.info.set_flag(client_flag::BLOCKED, true);
        let deadline_ms = (timeout_ms > 0).then(|| self.now_ms.saturating_add(timeout_ms));
        self.session.wait = Some(Box::new(Wait { deadline_ms, shared }));
        Ok(())
    }

    /// Gives a place back that has just been taken.
    fn leave_place(&mut self, name: &[u8], place: (Kind, u64)) -> Result<(), Error> {
        let (db, key) = (self.db, self.engine.keyspace.key(name));
        self.guard(&key)?.waiters().leave(db, name, place);
        Ok(())
    }

    /// Blocks the session on the keys at these arguments, or answers a null array where nothing may block: BLPOP and
    /// its like.
    pub(crate) fn wait_for_one(
        &mut self,
        args: &Args<'_>,
        sink: &mut ReplySink<'_>,
        (keys, timeout_ms): (std::ops::Range<usize>, u64),
    ) -> Result<(), Error> {
        if !self.may_block() {
            sink.null_array();
            return Ok(());
        }
        let keys: Vec<&[u8]> = keys.map(|index| args.bytes(index)).collect();
        self.block(&keys, (timeout_ms, Empty::NullArray), args.to_owned_args())
    }

    /// Before the first effect of a command that can block: `false` when it runs for a waiter whose wait has ended, and
    /// nothing may be done.
    #[must_use]
    pub fn commit(&mut self) -> bool {
        match &self.claim {
            Some(claim) => claim.take(Outcome::HandOver),
            None => true,
        }
    }

    /// Whether the command has done what it does: always, but for a waiter that goes on waiting.
    #[inline]
    pub(crate) fn has_committed(&self) -> bool {
        self.claim.as_ref().is_none_or(|claim| claim.outcome() == Some(Outcome::HandOver))
    }

    /// Notes that a key was written to, if anybody waits for it. The dispatcher does this for the keys of every write
    /// command; handlers need it only for keys that the arguments do not name.
    #[inline]
    pub fn written(&mut self, key: &Key<'_>) {
        self.written_in(self.db, key);
    }
    /// As [`written`](Self::written), in another database than the session's: MOVE, COPY.
    #[inline]
    pub fn written_in(&mut self, db: u8, key: &Key<'_>) {
        self.ready(db, key, || true);
    }
    /// Whether anybody can wait for what the command has written.
    #[inline]
    fn may_be_awaited(&mut self) -> bool {
        match &mut self.hold {
            Hold::Key(guard) => !guard.waiters().is_empty(),
            _ => true,
        }
    }
    /// The same of what a command has not named. `arrived`: whether it has added to a stream.
    #[inline]
    pub(crate) fn ready(&mut self, db: u8, key: &Key<'_>, arrived: impl FnOnce() -> bool) {
        // A key whose shard is not held has not been written to.
        if self.guard(key).is_ok_and(|guard| !guard.waiters().is_empty()) {
            self.local.ready.push_back(Ready { db, key: key.bytes().into(), arrived: arrived() });
        }
    }
    /// Notes all keys of a database that anybody waits for: SWAPDB, FLUSHALL. Only with the world.
    pub fn written_all(&mut self, db: u8) {
        let Hold::World(_, guards) = &mut self.hold else { return };
        if self.engine.waits.is_empty() {
            return;
        }
        for id in 0..self.engine.keyspace.shard_count() {
            let keys = guards.shard_by_id(id).waiters().keys(db);
            self.local.ready.extend(keys.into_iter().map(|key| Ready { db, key, arrived: true }));
        }
    }
}

/// All keys that a command names, also those that it does not wait for (BLMOVE's destination): their shards must be
/// locked while it runs.
fn each_named<'a>(args: &'a OwnedArgs, mut visit: impl FnMut(&'a [u8])) {
    let args = args.args();
    crate::keys::each(&args, |index| visit(args.bytes(index)));
}

/// Serves those who wait for the keys that were written to, under the locks of the writer as far as they go. What is
/// left stands in `local.ready` and is for [`serve_rest`]. Of those who wait it looks at as many as it serves, and at
/// one more.
pub(crate) fn serve_covered(engine: &Engine, local: &mut Local, guards: &mut Guards<'_>, now_ms: u64) {
    let mut rest = std::collections::VecDeque::new();
    while let Some(ready) = local.ready.pop_front() {
        let key = engine.keyspace.key(&ready.key);
        let mut numbers = 0..guards.shard(&key).waiters().end();
        while let Some((number, waiter)) =
            next_waiter(guards.shard(&key), local, (&ready, &key, now_ms), numbers.clone())
        {
            numbers.start = number + 1;
            let Some(blocked) = engine.waits.get(waiter.token) else { continue };
            if !blocked.shards.iter().all(|&shard| guards.covers_shard(shard)) {
                rest.push_back(ready);
                break;
            }
            serve(engine, local, guards, &blocked, (&key, ready.arrived, now_ms));
            local.effects.end_group();
        }
    }
    local.ready = rest;
}

/// Serves the others: each with the locks of all its keys. The caller holds none. Ends because every round either
/// serves a waiter, who is then gone, or takes a key off the list; who comes to wait meanwhile has seen what there is.
pub(crate) fn serve_rest(engine: &Engine, local: &mut Local, batch: &Batch<'_>, now_ms: u64) {
    while let Some(ready) = local.ready.pop_front() {
        let key = engine.keyspace.key(&ready.key);
        let mut numbers = 0..batch.lock(&key).waiters().end();
        loop {
            let next = next_waiter(&mut batch.lock(&key), local, (&ready, &key, now_ms), numbers.clone());
            let Some((number, waiter)) = next else { break };
            numbers.start = number + 1;
            let Some(blocked) = engine.waits.get(waiter.token) else { continue };
            let mut keys = Vec::new();
            each_named(&blocked.args, |name| keys.push(engine.keyspace.key(name)));
            let mut guards = batch.lock_keys(&keys);
            serve(engine, local, &mut guards, &blocked, (&key, ready.arrived, now_ms));
            local.effects.end_group();
        }
    }
}

/// The next of those who wait for a key that has use for what stands there now.
fn next_waiter(
    shard: &mut ShardGuard<'_>,
    local: &mut Local,
    (ready, key, now_ms): (&Ready, &Key<'_>, u64),
    numbers: Range<u64>,
) -> Option<(u64, Waiter)> {
    let mut op = Op::untouched(ready.db, now_ms, &mut local.effects.recorder);
    let kinds = kinds_for(shard.peek(&mut op, key).as_ref(), ready.arrived);
    shard.waiters().first(ready.db, &ready.key, kinds, numbers)
}

/// Runs a blocked request again; if it has found something, sends its reply. A waiter whose claim is gone, or for whom
/// there is still nothing, stays as it is.
fn serve(
    engine: &Engine,
    local: &mut Local,
    guards: &mut Guards<'_>,
    blocked: &Blocked,
    (key, arrived, now_ms): (&Key<'_>, bool, u64),
) {
    if blocked.claim.outcome().is_some() {
        return;
    }
    let mut op = Op::untouched(blocked.db, now_ms, &mut local.effects.recorder);
    let kinds = kinds_for(guards.shard(key).peek(&mut op, key).as_ref(), arrived);
    if kinds & 1 << blocked.kind != 0 {
        answer(engine, local, guards, (blocked, now_ms), |context, args, sink| {
            let handler = context.engine.handler_of(args)?;
            runner::run(context, handler, args, sink)
        });
    }
}

/// Lets `work` write the reply of a blocked request, under the locks of its keys, and sends it. It is its client's if
/// `work` has taken the claim, or has failed and nobody else has ended the wait; otherwise nothing has happened.
pub(crate) fn answer(
    engine: &Engine,
    local: &mut Local,
    guards: &mut Guards<'_>,
    (blocked, now_ms): (&Blocked, u64),
    work: impl FnOnce(&mut Context<'_, '_>, &Args<'_>, &mut ReplySink<'_>) -> Result<(), Error>,
) {
    let mut output = Output::default();
    let mut session = engine.stand_in(&blocked.info, blocked.wire, blocked.db);
    let stats = &engine.stats.workers[usize::from(local.worker)];
    let mut context =
        Context::new(engine, &mut session, local, now_ms, Hold::Guards(guards)).for_waiter(&blocked.claim);
    let args = blocked.args.args();
    let mut sink = ReplySink::new(&mut output, blocked.wire);
    let mark = sink.mark();
    let started = Instant::now();
    // Rights may have changed while it waited.
    let outcome = engine.check_acl_of_blocked(context.session, &args, now_ms);
    let counts_as = if outcome.is_err() { REFUSED } else { FAILED };
    // An error does not go through `commit`: it is the answer if nobody else has ended the wait.
    if let Err(error) = outcome.and_then(|()| work(&mut context, &args, &mut sink)) {
        if blocked.claim.outcome().is_none() && !blocked.claim.take(Outcome::HandOver) {
            return;
        }
        runner::fail(stats, &mut sink, mark, &error);
        blocked.counts_as.store(counts_as, Relaxed);
    }
    if blocked.claim.outcome() != Some(Outcome::HandOver) {
        return;
    }
    engine.took(&session, &args, started.elapsed(), now_ms);
    blocked.info.commands.fetch_add(1, Relaxed);
    leave(engine, guards, blocked);
    engine.post(Message::Served(blocked.info.recipient(), output));
}

impl Context<'_, '_> {
    /// Gives an order and waits until it is answered. One that is not taken is an error, and nothing waits.
    pub(crate) fn await_order(
        &mut self,
        args: &Args<'_>,
        ends: (u64, Empty),
        order: impl FnOnce(Waiting) -> Order,
    ) -> Result<(), Error> {
        self.engine.durable.check()?;
        self.block(&[], ends, args.to_owned_args())?;
        let Some(wait) = &self.session.wait else { return Ok(()) };
        let waiting = Waiting(wait.shared());
        let blocked = Arc::clone(&waiting.0);
        self.engine.durable.order(order(waiting)).or_else(|error| {
            refuse(self.engine, &blocked, &error);
            Ok(())
        })
    }
}

impl Engine {
    /// Answers a client that waited for an order.
    pub fn answer(&self, waiting: &Waiting, write: impl FnOnce(&mut ReplySink<'_>)) {
        answer_with(self, &waiting.0, write);
    }
    /// Whether it waits no more.
    #[must_use]
    pub fn waits_no_more(&self, waiting: &Waiting) -> bool {
        waiting.0.claim.outcome().is_some()
    }
}

/// Answers a blocked request with an error, if nobody else has ended its wait.
pub(crate) fn refuse(engine: &Engine, blocked: &Blocked, error: &Error) {
    answer_with(engine, blocked, |sink| sink.error(error));
}

/// Answers a blocked request that has no keys, if nobody else has ended its wait.
pub(crate) fn answer_with(engine: &Engine, blocked: &Blocked, write: impl FnOnce(&mut ReplySink<'_>)) {
    if blocked.claim.take(Outcome::HandOver) {
        let mut output = Output::default();
        write(&mut ReplySink::new(&mut output, blocked.wire));
        engine.post(Message::Served(blocked.info.recipient(), output));
    }
}

/// Notes the keys of a write command that others may wait for.
#[inline]
pub(crate) fn note_written(context: &mut Context<'_, '_>, args: &Args<'_>) {
    // Who waits has found nothing, and written nothing.
    if args.spec.flags & flag::WRITE != 0 && !context.session.is_waiting() && context.may_be_awaited() {
        note_keys(context, args);
    }
}

#[inline(never)]
fn note_keys(context: &mut Context<'_, '_>, args: &Args<'_>) {
    crate::keys::each(args, |index| {
        let key = context.key(args, index);
        context.ready(context.db, &key, || brings(args));
    });
}

/// Whether a write command adds to the stream at its keys, or puts one there. Those that do so only sometimes, or at
/// one of their keys, say it themselves.
fn brings(args: &Args<'_>) -> bool {
    args.spec.policy & policy::BRINGS != 0
}

/// Takes a wait whose claim is spent out of the queues that the guards cover; its places elsewhere are dropped when
/// they are met, or by [`forget`].
fn leave(engine: &Engine, guards: &mut Guards<'_>, blocked: &Blocked) {
    engine.waits.part(blocked.info.id).lock().remove(&blocked.info.id);
    for (name, number) in &blocked.keys {
        let key = engine.keyspace.key(name);
        if guards.covers(&key) {
            guards.shard(&key).waiters().leave(blocked.db, name, (blocked.kind, *number));
        }
    }
}

/// Takes a wait out of all queues. The caller holds no lock.
fn forget(engine: &Engine, batch: &Batch<'_>, blocked: &Blocked) {
    engine.waits.part(blocked.info.id).lock().remove(&blocked.info.id);
    for (name, number) in &blocked.keys {
        let key = engine.keyspace.key(name);
        batch.lock(&key).waiters().leave(blocked.db, name, (blocked.kind, *number));
    }
}

/// Ends the session's wait and writes its answer, unless a writer was faster: then its reply is on its way and `false`
/// comes back.
pub(crate) fn end_own(
    engine: &Engine,
    batch: &Batch<'_>,
    session: &mut Session,
    output: &mut Output,
    end: End,
) -> bool {
    if session.forwarded > 0 {
        // Its reply is on its way.
        return end == End::Gone;
    }
    let Some(wait) = session.wait.take() else { return true };
    let outcome = match end {
        End::Timeout => Outcome::TimedOut,
        End::Error | End::Cancel => Outcome::Cancelled,
        End::Leaving | End::Gone => Outcome::Killed,
    };
    if !wait.shared.claim.take(outcome) {
        if end == End::Gone {
            // Nobody will come to give its places back.
            forget(engine, batch, &wait.shared);
        } else {
            session.wait = Some(wait);
        }
        return false;
    }
    forget(engine, batch, &wait.shared);
    count(engine, &wait.shared);
    session.info.set_flag(client_flag::BLOCKED, false);
    write_end(&mut ReplySink::new(output, session.wire), wait.shared.empty, end);
    true
}

fn write_end(sink: &mut ReplySink<'_>, empty: Empty, end: End) {
    match end {
        End::Timeout => empty.write(sink),
        End::Error => sink.error_code(ErrorCode::Unblocked),
        End::Cancel => sink.error_code(ErrorCode::Cancelled),
        End::Leaving | End::Gone => {}
    }
}

/// CLIENT UNBLOCK: ends another session's wait. Says whether it was blocked.
pub(crate) fn end_other(engine: &Engine, client: u64, end: End) -> bool {
    if engine.forwards() {
        return unblock_elsewhere(engine, client, end);
    }
    let Some(blocked) = engine.waits.get(client) else { return false };
    let outcome = if end == End::Timeout { Outcome::TimedOut } else { Outcome::Cancelled };
    if !blocked.claim.take(outcome) {
        return false;
    }
    let mut output = Output::default();
    write_end(&mut ReplySink::new(&mut output, blocked.wire), blocked.empty, end);
    // Its worker takes it out of the queues when it applies the message.
    engine.post(Message::Served(blocked.info.recipient(), output));
    true
}

/// The same for a request that another server runs, which ends it there.
fn unblock_elsewhere(engine: &Engine, client: u64, end: End) -> bool {
    let Some(info) = engine.clients.get(client).filter(|info| info.has(client_flag::BLOCKED)) else {
        return false;
    };
    engine.post(Message::Unblock(info.recipient(), end));
    true
}

/// The session's wait was ended by somebody else, whose reply has just been written: it may go on.
pub(crate) fn served(engine: &Engine, batch: &Batch<'_>, session: &mut Session) {
    let Some(wait) = session.wait.take() else { return };
    forget(engine, batch, &wait.shared);
    count(engine, &wait.shared);
    session.info.set_flag(client_flag::BLOCKED, false);
}

/// A command that blocks is counted when its wait has ended. On its session's own worker.
fn count(engine: &Engine, blocked: &Blocked) {
    let id = command_id(&blocked.args.args());
    let worker = &engine.stats.workers[usize::from(blocked.info.address.worker)];
    let stats = &worker.by_command[usize::from(id.0)];
    let counts_as = blocked.counts_as.load(Relaxed);
    let unblocked = blocked.claim.outcome() == Some(Outcome::Cancelled);
    bump(&stats.calls, u64::from(counts_as != REFUSED));
    let spent_ns = blocked.spent_ns.load(Relaxed);
    if counts_as != REFUSED && spent_ns > 0 {
        stats.took(spent_ns, 1, engine.settings.latency_tracking.load(Relaxed));
    }
    bump(&stats.failed, u64::from(counts_as == FAILED));
    bump(&stats.rejected, u64::from(counts_as == REFUSED || unblocked));
}
