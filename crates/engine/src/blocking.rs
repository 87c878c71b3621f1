//! Owns: requests that wait for a key: registering them, ending them. Does not own: serving them (`serving`), what is
//! known of one that waits (`crate::waits`), the queues under the shards' locks and the claim (`weft_store::waiters`),
//! timers (the server's).
//!
//! A blocked request is run again by whoever has written to one of its keys, under the locks of that write if they
//! cover all its keys, else after them with locks of its own. Its handler asks [`Context::commit`] before its first
//! effect: that takes the claim, which timeout, CANCEL and KILL race for. Its reply goes to its client's worker.
//!
//! Waiters of a key are served in the order in which they came, readers of a stream in that of what they wait for, and
//! those of each of its groups for themselves; one with keys in other shards sends the whole key to the second way, so
//! that it is not overtaken. Nobody is run again who would find nothing.
//!
//! A wait may have more keys than there is time for in one step: then its places are given back by later ones.

mod serving;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use weft_protocol::table::{flag, policy};
use weft_store::waiters::{ClaimOutcome, GROUP_LINE_BYTES, PLACE_BYTES};
use weft_store::{Batch, Claim, Guards, Key, ShardGuard, StreamId, Waiter, Waiters};

use crate::args::{Args, OwnedArgs};
use crate::charge::Charge;
use crate::context::{Context, Local, Locked};
use crate::durable::{Order, Waiting};
use crate::engine::{Engine, command_id};
use crate::error::{Error, ErrorCode, Result};
use crate::extended::{self, Parsed};
use crate::mailbox::Message;
use crate::reply::{Output, ReplySink};
use crate::session::{Session, client_flag};
use crate::stats::bump;
use crate::waits::{Blocked, FAILED, GROUP_AT, Kind, News, RAN, REFUSED, Ready, Wait};
pub use crate::waits::{Empty, End};
pub(crate) use serving::{answer_locked, serve_covered, serve_rest, serve_some};

/// What a wait takes beside its request and its places, about.
const WAIT_BYTES: usize = 512;
/// Places that are given back at once; a wait that has more gives them back in steps.
const PLACES_AT_ONCE: usize = 64;

/// A timeout argument: seconds, with a fraction, as milliseconds rounded up; 0 waits for ever.
pub(crate) fn timeout_ms(context: &Context<'_, '_>, args: &Args<'_>, index: usize) -> Result<u64> {
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
pub(crate) fn seconds(args: &Args<'_>, index: usize) -> Option<f64> {
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

    /// Blocks the session until one of its keys is written to, or `timeout_ms` have passed (0: for ever). The handler
    /// returns without having written anything; `args` is what is run again: the request, or a form of it in which
    /// what depended on the moment is resolved (XREAD's `$`). The keys stand at `keys` in it; readers say behind which
    /// id they read each.
    pub fn block(
        &mut self,
        args: OwnedArgs,
        (keys, after): (Range<usize>, &[StreamId]),
        (timeout_ms, empty): (u64, Empty),
    ) -> Result {
        let kind = Kind::of(args.args().spec);
        let group_bytes = match kind {
            Kind::WithGroup => GROUP_LINE_BYTES + args.args().bytes(GROUP_AT).len(),
            _ => 0,
        };
        let name_bytes: usize = keys.clone().map(|at| args.args().bytes(at).len()).sum();
        let bytes = WAIT_BYTES + args.memory_bytes() + name_bytes + keys.len() * (PLACE_BYTES + group_bytes);
        self.session.info.connection.check_room(bytes)?;
        let mut shards = Vec::new();
        each_named(&args, |name| shards.push(self.engine.keyspace.shard_of(&self.engine.keyspace.key(name))));
        shards.sort_unstable();
        shards.dedup();
        let mut blocked = Blocked {
            args,
            _charge: Charge::new(&self.session.info.connection, bytes),
            shards: shards.into(),
            claim: Claim::default(),
            db: self.db,
            kind,
            places: Box::default(),
            keys_at: keys.start,
            after: after.into(),
            ends: timeout_ms > 0,
            empty,
            wire: self.session.wire,
            info: Arc::clone(&self.session.info),
            counts_as: AtomicU8::new(RAN),
            spent_ns: AtomicU64::new(0),
        };
        blocked.places = self.take_places(&blocked, keys.len())?;
        let shared = Arc::new(blocked);
        self.engine.waits.insert(self.session.id(), Arc::clone(&shared));
        self.session.info.set_flag(client_flag::BLOCKED, true);
        let deadline_ms = (timeout_ms > 0).then(|| self.now_ms.saturating_add(timeout_ms));
        self.session.wait = Some(Box::new(Wait { deadline_ms, shared }));
        Ok(())
    }

    /// Takes a place at each key, or at none.
    fn take_places(&mut self, blocked: &Blocked, keys: usize) -> Result<Box<[u64]>> {
        let (engine, db, line) = (self.engine, self.db, blocked.line());
        let mut places = Vec::with_capacity(keys);
        for index in 0..keys {
            let key = engine.keyspace.key(blocked.key(index));
            let waiter = Waiter { token: self.session.id(), claim: blocked.claim.clone() };
            let after = blocked.after.get(index).copied().unwrap_or(StreamId::MIN);
            let join = |waiters: &mut Waiters| waiters.join((db, key.bytes()), (line, after), waiter);
            if let Some(number) = in_queues(engine, self.guard(&key)?, join) {
                places.push((after, number));
                continue;
            }
            for (index, &spot) in places.iter().enumerate() {
                let key = engine.keyspace.key(blocked.key(index));
                in_queues(engine, self.guard(&key)?, |waiters| waiters.leave((db, key.bytes()), line, spot));
            }
            return Err(Error::new(ErrorCode::Limit, "too many clients are blocked on keys of one shard"));
        }
        Ok(places.into_iter().map(|(_, number)| number).collect())
    }

    /// Blocks the session on the keys at these arguments, or answers a null array where nothing may block: BLPOP and
    /// its like.
    pub(crate) fn wait_for_one(
        &mut self,
        args: &Args<'_>,
        sink: &mut ReplySink<'_>,
        (keys, timeout_ms): (Range<usize>, u64),
    ) -> Result {
        if !self.may_block() {
            sink.null_array();
            return Ok(());
        }
        self.block(args.to_owned_args(), (keys, &[]), (timeout_ms, Empty::NullArray))
    }

    /// Before the first effect of a command that can block: `false` when it runs for a waiter whose wait has ended, and
    /// nothing may be done.
    #[must_use]
    pub fn commit(&mut self) -> bool {
        match &self.claim {
            Some(claim) => claim.take(ClaimOutcome::HandOver),
            None => true,
        }
    }

    /// Whether the command has done what it does: always, but for a waiter that goes on waiting.
    #[inline]
    pub(crate) fn has_committed(&self) -> bool {
        self.claim.as_ref().is_none_or(|claim| claim.outcome() == Some(ClaimOutcome::HandOver))
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
        self.ready(db, key, || News::Came);
    }
    /// Whether anybody can wait for what the command has written.
    #[inline]
    fn may_be_awaited(&mut self) -> bool {
        match &mut self.locked {
            Locked::Key(guard) => !guard.waiters().is_empty(),
            _ => true,
        }
    }
    /// The same, and what is new there.
    #[inline]
    pub(crate) fn ready(&mut self, db: u8, key: &Key<'_>, news: impl FnOnce() -> News) {
        // A key whose shard is not held has not been written to.
        if self.guard(key).is_ok_and(|guard| !guard.waiters().is_empty()) {
            let news = news();
            if news != News::Nothing {
                self.local.ready.push_back(Ready { db, key: key.bytes().into(), news });
            }
        }
    }
    /// Notes all keys of a database that anybody waits for: SWAPDB, FLUSHALL. Only with the world.
    pub fn written_all(&mut self, db: u8) {
        let Locked::World(_, guards) = &mut self.locked else { return };
        if self.engine.waits.is_empty() {
            return;
        }
        for id in 0..self.engine.keyspace.shard_count() {
            let keys = guards.shard_by_id(id).waiters().keys(db);
            self.local.ready.extend(keys.into_iter().map(|key| Ready { db, key, news: News::Came }));
        }
    }
}

/// All keys that a command names, also those that it does not wait for (BLMOVE's destination): their shards must be
/// locked while it runs.
fn each_named<'a>(args: &'a OwnedArgs, mut visit: impl FnMut(&'a [u8])) {
    let args = args.args();
    crate::keys::each(&args, |index| visit(args.bytes(index)));
}

/// Works with the queues of a shard, and counts what has changed.
fn in_queues<R>(engine: &Engine, shard: &mut ShardGuard<'_>, work: impl FnOnce(&mut Waiters) -> R) -> R {
    let waiters = shard.waiters();
    let before = waiters.figures();
    let result = work(waiters);
    engine.waits.changed(before, waiters.figures());
    result
}

impl Context<'_, '_> {
    /// Gives an order and waits until it is answered. One that is not taken is an error, and nothing waits.
    pub(crate) fn await_order(
        &mut self,
        args: &Args<'_>,
        ends: (u64, Empty),
        order: impl FnOnce(Waiting) -> Order,
    ) -> Result {
        self.engine.durable.check()?;
        self.block(args.to_owned_args(), (0..0, &[]), ends)?;
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
        answer_keyless(self, &waiting.0, write);
    }
    /// Whether it waits no more.
    #[must_use]
    pub fn waits_no_more(&self, waiting: &Waiting) -> bool {
        waiting.0.claim.outcome().is_some()
    }
}

/// Answers a blocked request with an error, if nobody else has ended its wait.
pub(crate) fn refuse(engine: &Engine, blocked: &Blocked, error: &Error) {
    answer_keyless(engine, blocked, |sink| sink.error(error));
}

/// Answers a blocked request that has no keys, if nobody else has ended its wait.
pub(crate) fn answer_keyless(engine: &Engine, blocked: &Blocked, write: impl FnOnce(&mut ReplySink<'_>)) {
    if blocked.claim.take(ClaimOutcome::HandOver) {
        let mut output = Output::default();
        write(&mut ReplySink::new(&mut output, blocked.wire));
        engine.post(Message::Served(blocked.info.recipient(), Box::new(output)));
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
        context.ready(context.db, &key, || news_of(args));
    });
}

/// What is new at the keys of a write command. Those that bring something only sometimes, or at one of their keys, say
/// it themselves.
fn news_of(args: &Args<'_>) -> News {
    let brings = args.spec.policy & policy::BRINGS != 0;
    match args.spec.group {
        "stream" if brings => News::Entry,
        // XGROUP's subcommands.
        "stream" if args.spec.container.is_some() => News::Group(args.bytes(3).into()),
        "stream" => News::Nothing,
        _ if brings => News::Came,
        _ => News::Other,
    }
}

/// Gives one of a wait's places back.
fn leave_place(
    engine: &Engine,
    blocked: &Blocked,
    (index, key): (usize, &Key<'_>),
    shard: &mut ShardGuard<'_>,
) {
    in_queues(engine, shard, |waiters| {
        waiters.leave((blocked.db, key.bytes()), blocked.line(), blocked.spot(index));
    });
}
/// Gives some of a wait's places back, until it comes to one whose shard a script keeps. Says at which that is, or
/// where they end. The caller holds no lock.
fn leave_places(engine: &Engine, batch: &Batch<'_>, blocked: &Blocked, mut indexes: Range<usize>) -> usize {
    let left = indexes.find(|&index| {
        let key = engine.keyspace.key(blocked.key(index));
        let Some(mut shard) = batch.lock_in_time(&key) else { return true };
        leave_place(engine, blocked, (index, &key), &mut shard);
        false
    });
    left.unwrap_or(indexes.end)
}

/// Takes a wait whose claim is spent out of the queues that the guards cover; its places elsewhere are dropped when
/// they are met, or by [`forget`].
fn leave(engine: &Engine, guards: &mut Guards<'_>, blocked: &Blocked) {
    engine.waits.remove(blocked.info.id);
    if blocked.places.len() <= PLACES_AT_ONCE {
        for index in 0..blocked.places.len() {
            let key = engine.keyspace.key(blocked.key(index));
            if guards.covers(&key) {
                leave_place(engine, blocked, (index, &key), guards.shard(&key));
            }
        }
    }
}

/// Takes a wait out of all queues, at once or in steps: these come to it too where a script keeps what it needs. The
/// caller holds no lock.
fn forget(engine: &Engine, local: &mut Local, batch: Option<&Batch<'_>>, blocked: &Arc<Blocked>) {
    engine.waits.remove(blocked.info.id);
    let count = blocked.places.len();
    let left = match batch {
        Some(batch) if count <= PLACES_AT_ONCE => leave_places(engine, batch, blocked, 0..count),
        _ => 0,
    };
    if left < count {
        local.leaving.push_back((Arc::clone(blocked), left));
    }
}

/// Gives back so many of the places that are left, as far as no script keeps them. The caller holds no lock.
pub(crate) fn leave_some(engine: &Engine, local: &mut Local, batch: &Batch<'_>, mut count: usize) {
    while count > 0
        && let Some((blocked, from)) = local.leaving.front_mut()
    {
        let some = *from..blocked.places.len().min(*from + count);
        (count, *from) = (count - some.len(), leave_places(engine, batch, blocked, some.clone()));
        if *from < some.end {
            return;
        }
        if *from == blocked.places.len() {
            local.leaving.pop_front();
        }
    }
}

/// Ends the session's wait and writes its answer, unless a writer was faster: then its reply is on its way and `false`
/// comes back.
pub(crate) fn end_own(
    (engine, local): (&Engine, &mut Local),
    batch: Option<&Batch<'_>>,
    session: &mut Session,
    output: &mut Output,
    end: End,
) -> bool {
    if session.forwarded > 0 {
        // Its reply is on its way, unless it has been let go.
        return end == End::Gone || session.is_let_go;
    }
    let Some(wait) = session.wait.take() else { return true };
    let outcome = match end {
        End::Timeout => ClaimOutcome::TimedOut,
        End::Error | End::Cancel => ClaimOutcome::Cancelled,
        End::Leaving | End::Gone => ClaimOutcome::Killed,
    };
    if !wait.shared.claim.take(outcome) {
        if end == End::Gone {
            // Nobody will come to give its places back.
            forget(engine, local, batch, &wait.shared);
        } else {
            session.wait = Some(wait);
        }
        return false;
    }
    forget(engine, local, batch, &wait.shared);
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
    let outcome = if end == End::Timeout { ClaimOutcome::TimedOut } else { ClaimOutcome::Cancelled };
    if !blocked.claim.take(outcome) {
        return false;
    }
    let mut output = Output::default();
    write_end(&mut ReplySink::new(&mut output, blocked.wire), blocked.empty, end);
    // Its worker takes it out of the queues when it applies the message.
    engine.post(Message::Served(blocked.info.recipient(), Box::new(output)));
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
pub(crate) fn served(engine: &Engine, local: &mut Local, batch: Option<&Batch<'_>>, session: &mut Session) {
    let Some(wait) = session.wait.take() else { return };
    forget(engine, local, batch, &wait.shared);
    count(engine, &wait.shared);
    session.info.set_flag(client_flag::BLOCKED, false);
}

/// A command that blocks is counted when its wait has ended. On its session's own worker.
fn count(engine: &Engine, blocked: &Blocked) {
    let id = command_id(&blocked.args.args());
    let worker = &engine.stats.workers[usize::from(blocked.info.address.worker)];
    let stats = &worker.by_command[usize::from(id.0)];
    let counts_as = blocked.counts_as.load(Relaxed);
    let unblocked = blocked.claim.outcome() == Some(ClaimOutcome::Cancelled);
    bump(&stats.calls, u64::from(counts_as != REFUSED));
    let spent_ns = blocked.spent_ns.load(Relaxed);
    if counts_as != REFUSED && spent_ns > 0 {
        stats.took(spent_ns, 1, engine.settings.latency_tracking.load(Relaxed));
    }
    bump(&stats.failed, u64::from(counts_as == FAILED));
    bump(&stats.rejected, u64::from(counts_as == REFUSED || unblocked));
}
