//! Owns: serving those who wait for keys that somebody has written to: whom a write is of use to, in which order, how
//! many at once. Does not own: how a wait begins and ends (`super`).
//!
//! Whoever takes what was written is served with the write, so that nobody comes between: they are no more than it
//! brought. But readers of a stream all get its entry, tens of thousands of them. [`READERS_AT_ONCE`] are served
//! with the write, the others in steps of as many, between which others have their turns. Each step sees the stream as
//! it is by then. So are takers beyond [`crate::context::TAKERS_AT_ONCE`] in one tick: they get what is left by then,
//! in their order.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use weft_store::stream::Group;
use weft_store::waiters::{ClaimOutcome, Line, Spot};
use weft_store::{Batch, Guards, Key, ObjectRef, Op, ShardGuard, StreamId, ValueRef, Waiter};

use super::{each_named, in_queues, leave};
use crate::args::Args;
use crate::context::{Context, Local, Locked};
use crate::engine::Engine;
use crate::error::Result;
use crate::mailbox::Message;
use crate::reply::{Output, ReplySink};
use crate::runner;
use crate::waits::{Blocked, FAILED, Kind, News, REFUSED, Ready, Serving, Visit};

/// Readers of several streams whom a write to one of them looks at though nothing has come for them, since another of
/// their keys may have another type: those who wait for the lowest ids.
const IN_VAIN_MAX: usize = 64;
/// Readers whom a write serves at once, and a step behind it. Each costs 1 to 4 us.
const READERS_AT_ONCE: usize = 128;
/// How many takers a step behind serves.
const TAKERS_IN_STEP: usize = 128;

/// How many are still served now, and not by a later step.
struct Left {
    readers: usize,
    takers: usize,
}

impl Left {
    /// Of those whom one write serves.
    const fn of_write(local: &Local) -> Self {
        Self {
            readers: if local.serves_in_steps { READERS_AT_ONCE } else { usize::MAX },
            takers: local.takers_left,
        }
    }
    /// Whether this one is.
    fn take(&mut self, blocked: &Blocked) -> bool {
        let left = if blocked.kind == Kind::Reader { &mut self.readers } else { &mut self.takers };
        let is_in_time = *left > 0;
        *left -= usize::from(is_in_time);
        is_in_time
    }
}

/// What stands at a key, as far as those who wait for it ask.
#[derive(Clone, Copy)]
enum Stand {
    List,
    SortedSet,
    /// With the id of its last entry, and how many groups it has.
    Stream(Option<StreamId>, usize),
    Other,
}

impl Stand {
    fn of(value: Option<&ValueRef<'_>>) -> Self {
        match value {
            Some(ValueRef::Object(ObjectRef::Stream(stream))) => {
                let last = stream.log().range_back(StreamId::MIN, StreamId::MAX).next();
                Self::Stream(last.map(|entry| entry.id), stream.groups().len())
            }
            Some(value) if value.type_name() == "list" => Self::List,
            Some(value) if value.type_name() == "zset" => Self::SortedSet,
            _ => Self::Other,
        }
    }
    /// Whether it can be of use to such a wait.
    fn is_for(self, kind: Kind) -> bool {
        match self {
            Self::List => matches!(kind, Kind::List | Kind::WithGroup),
            Self::SortedSet => matches!(kind, Kind::SortedSet | Kind::WithGroup),
            Self::Stream(..) => matches!(kind, Kind::Reader | Kind::WithGroup),
            Self::Other => kind == Kind::WithGroup,
        }
    }
}

impl Visit {
    fn begin(shard: &mut ShardGuard<'_>) -> Self {
        Self { end: shard.waiters().end(), step: 0, from: Spot::default(), vain: 0, groups: None }
    }

    /// The lines of the value itself, one after the other.
    fn line(&self, news: &News, stand: Stand) -> Option<(Line<'static>, Range<Spot>)> {
        let in_turn = Spot::default()..(StreamId::MIN, self.end);
        match (self.step, stand) {
            (0, Stand::List) => Some((Line::List, in_turn)),
            (0, Stand::SortedSet) => Some((Line::SortedSet, in_turn)),
            _ if !matches!(news, News::Came | News::Entry | News::GroupGone(_)) => None,
            (0, Stand::Stream(Some(last), _)) => Some((Line::Readers, Spot::default()..(last, 0))),
            (1, Stand::Stream(Some(last), _)) => Some((Line::WideReaders, Spot::default()..(last, 0))),
            // Another of their keys may have another type.
            (2, Stand::Stream(last, _)) if self.vain < IN_VAIN_MAX => {
                Some((Line::WideReaders, (last.unwrap_or_default(), 0)..(StreamId::MAX, u64::MAX)))
            }
            _ => None,
        }
    }

    /// The next of them, as the key is now.
    fn next(
        &mut self,
        (engine, local): (&Engine, &mut Local),
        shard: &mut ShardGuard<'_>,
        (ready, key, now_ms): (&Ready, &Key<'_>, u64),
    ) -> Option<Waiter> {
        let whose = (ready.db, &*ready.key);
        let mut op = Op::untouched(ready.db, now_ms, &mut local.effects.recorder);
        let stand = Stand::of(shard.peek(&mut op, key).as_ref());
        while self.step < 3 {
            if let Some((line, spots)) = self.line(&ready.news, stand)
                && let Some(next) = self.first(engine, shard, whose, (line, spots))
            {
                self.vain += usize::from(self.step == 2);
                return Some(next);
            }
            (self.step, self.from) = (self.step + 1, Spot::default());
        }
        if self.groups.is_none() {
            self.groups = Some(groups(shard, whose, &ready.news, stand));
        }
        while let Some(name) = self.groups.as_mut()?.pop_front() {
            let read = match shard.peek(&mut op, key) {
                Some(ValueRef::Object(ObjectRef::Stream(stream))) => stream.group(&name).map(Group::last_id),
                _ => None,
            };
            let is_served =
                read.is_none_or(|read| matches!(stand, Stand::Stream(Some(last), _) if last > read));
            let spots = Spot::default()..(StreamId::MIN, self.end);
            if is_served && let Some(next) = self.first(engine, shard, whose, (Line::Group(&name), spots)) {
                self.groups.as_mut()?.push_front(name);
                return Some(next);
            }
            if let Some(read) = read {
                shard.waiters().has_read(whose, &name, read);
            }
            self.from = Spot::default();
        }
        None
    }

    /// Whom it has met last it meets again.
    const fn goes_back(&mut self) {
        self.from.1 -= 1;
    }

    fn first(
        &mut self,
        engine: &Engine,
        shard: &mut ShardGuard<'_>,
        whose: (u8, &[u8]),
        (line, spots): (Line<'_>, Range<Spot>),
    ) -> Option<Waiter> {
        let spots = self.from.max(spots.start)..spots.end;
        let (spot, waiter) = in_queues(engine, shard, |waiters| waiters.first(whose, line, spots))?;
        self.from = (spot.0, spot.1 + 1);
        Some(waiter)
    }
}

/// The groups whose waiters may have use for what is new.
fn groups(shard: &mut ShardGuard<'_>, whose: (u8, &[u8]), news: &News, stand: Stand) -> VecDeque<Box<[u8]>> {
    let waiters = shard.waiters();
    let all = match (news, stand) {
        // Where there are more, they were there before: a stream that has come anew, after the time of another, has
        // gone through this with none or one.
        (News::Entry, Stand::Stream(last, 2..)) => waiters.groups(whose, Some(last.unwrap_or_default())),
        (News::Group(name) | News::GroupGone(name), Stand::Stream(_, 2..)) => vec![name.clone()],
        (News::Nothing, _) => Vec::new(),
        _ => waiters.groups(whose, None),
    };
    all.into()
}

/// Serves those who wait for the keys that were written to, under the locks of the writer as far as they go. What is
/// left stands in `local.ready` and is for [`serve_rest`], and where they are too many in `local.serving` and is for
/// [`serve_some`]. Of those who wait it looks at as many as it serves, at one of each group that may have use for what
/// is new, and at few readers of several keys.
pub(crate) fn serve_covered(engine: &Engine, local: &mut Local, guards: &mut Guards<'_>, now_ms: u64) {
    let (mut rest, mut left) = (VecDeque::new(), Left::of_write(local));
    while let Some(ready) = local.ready.pop_front() {
        let key = engine.keyspace.key(&ready.key);
        let mut visit = Visit::begin(guards.shard(&key));
        while let Some(waiter) = visit.next((engine, local), guards.shard(&key), (&ready, &key, now_ms)) {
            let Some(blocked) = engine.waits.get(waiter.token) else { continue };
            if !blocked.shards.iter().all(|&shard| guards.covers_shard(shard)) {
                rest.push_back(ready);
                break;
            }
            if !left.take(&blocked) {
                visit.goes_back();
                put_off(local, Serving { ready, visit: Some(visit) });
                break;
            }
            serve(engine, local, guards, &blocked, now_ms);
            local.effects.end_group();
        }
    }
    (local.ready, local.takers_left) = (rest, left.takers);
}

/// Serves the others, as many as at once: each with the locks of all its keys. The caller holds none. Ends
/// because every round either serves a waiter, who is then gone, or takes a key or a group off the list; who comes to
/// wait meanwhile has seen what there is.
pub(crate) fn serve_rest(engine: &Engine, local: &mut Local, batch: &Batch<'_>, now_ms: u64) {
    let mut left = Left::of_write(local);
    while let Some(ready) = local.ready.pop_front() {
        let left_over = go_on((engine, local), batch, Serving { ready, visit: None }, (&mut left, now_ms));
        left_over.into_iter().for_each(|rest| put_off(local, rest.serving()));
    }
    local.takers_left = left.takers;
}

/// Goes on where one write has given more to do than is done at once. The caller holds no lock.
pub(crate) fn serve_some(engine: &Engine, local: &mut Local, batch: &Batch<'_>, now_ms: u64) {
    let mut left = Left { readers: READERS_AT_ONCE, takers: TAKERS_IN_STEP };
    while left.readers > 0
        && left.takers > 0
        && let Some(serving) = local.serving.pop_front()
    {
        match go_on((engine, local), batch, serving, (&mut left, now_ms)) {
            None => {}
            Some(Rest::Later(serving)) => local.serving.push_front(serving),
            // A script keeps what this one needs: the next step asks again.
            Some(Rest::Kept(serving)) => {
                local.serving.push_front(serving);
                break;
            }
        }
    }
    // What those have done who were served.
    while let Some(ready) = local.ready.pop_front() {
        put_off(local, Serving { ready, visit: None });
    }
}

/// Later steps go on with it. One of the same key that was put off just before has nobody whom this one has not.
fn put_off(local: &mut Local, serving: Serving) {
    let ready = &serving.ready;
    if let Some(last) = local.serving.back_mut()
        && (last.ready.db, &last.ready.key, &last.ready.news) == (ready.db, &ready.key, &ready.news)
    {
        *last = serving;
    } else {
        local.serving.push_back(serving);
    }
}

/// What is to be done later.
enum Rest {
    /// Enough has been done.
    Later(Serving),
    /// A script keeps what it needs.
    Kept(Serving),
}
impl Rest {
    fn serving(self) -> Serving {
        let (Self::Later(serving) | Self::Kept(serving)) = self;
        serving
    }
}

/// Serves so many of those who wait for a key, and gives back what is to be done later.
fn go_on(
    (engine, local): (&Engine, &mut Local),
    batch: &Batch<'_>,
    Serving { ready, mut visit }: Serving,
    (left, now_ms): (&mut Left, u64),
) -> Option<Rest> {
    let name = ready.key.clone();
    let key = engine.keyspace.key(&name);
    loop {
        let Some(mut shard) = batch.lock_in_time(&key) else {
            return Some(Rest::Kept(Serving { ready, visit }));
        };
        let way = visit.get_or_insert_with(|| Visit::begin(&mut shard));
        let waiter = way.next((engine, local), &mut shard, (&ready, &key, now_ms))?;
        drop(shard);
        let Some(blocked) = engine.waits.get(waiter.token) else { continue };
        if !left.take(&blocked) {
            way.goes_back();
            return Some(Rest::Later(Serving { ready, visit }));
        }
        let mut shards = Vec::new();
        each_named(&blocked.args, |name| shards.push(engine.keyspace.shard_of(&engine.keyspace.key(name))));
        let Some(mut guards) = batch.lock_shards_in_time(shards) else {
            way.goes_back();
            return Some(Rest::Kept(Serving { ready, visit }));
        };
        // Another may have written since.
        let mut op = Op::untouched(blocked.db, now_ms, &mut local.effects.recorder);
        if Stand::of(guards.shard(&key).peek(&mut op, &key).as_ref()).is_for(blocked.kind) {
            serve(engine, local, &mut guards, &blocked, now_ms);
        }
        local.effects.end_group();
    }
}

/// Runs a blocked request again; if it has found something, sends its reply. A waiter whose claim is gone, or for whom
/// there is still nothing, stays as it is.
fn serve(engine: &Engine, local: &mut Local, guards: &mut Guards<'_>, blocked: &Blocked, now_ms: u64) {
    if blocked.claim.outcome().is_some() {
        return;
    }
    answer_locked(engine, local, guards, (blocked, now_ms), |context, args, sink| {
        let handler = context.engine.handler_of(args)?;
        runner::run(context, handler, args, sink)
    });
}

/// Lets `work` write the reply of a blocked request, under the locks of its keys, and sends it. It is its client's if
/// `work` has taken the claim, or has failed and nobody else has ended the wait; otherwise nothing has happened.
pub(crate) fn answer_locked(
    engine: &Engine,
    local: &mut Local,
    guards: &mut Guards<'_>,
    (blocked, now_ms): (&Blocked, u64),
    work: impl FnOnce(&mut Context<'_, '_>, &Args<'_>, &mut ReplySink<'_>) -> Result,
) {
    let mut output = Output::default();
    let mut session = engine.stand_in(&blocked.info, blocked.wire, blocked.db);
    let stats = &engine.stats.workers[usize::from(local.worker)];
    let mut context =
        Context::new(engine, &mut session, local, now_ms, Locked::Guards(guards)).for_waiter(&blocked.claim);
    let args = blocked.args.args();
    let mut sink = ReplySink::new(&mut output, blocked.wire);
    let mark = sink.mark();
    let started = Instant::now();
    // Rights may have changed while it waited.
    let outcome = engine.check_acl_of_blocked(context.session, &args, now_ms);
    let counts_as = if outcome.is_err() { REFUSED } else { FAILED };
    // An error does not go through `commit`: it is the answer if nobody else has ended the wait.
    if let Err(error) = outcome.and_then(|()| work(&mut context, &args, &mut sink)) {
        if blocked.claim.outcome().is_none() && !blocked.claim.take(ClaimOutcome::HandOver) {
            return;
        }
        runner::fail(stats, &mut sink, mark, &error);
        blocked.counts_as.store(counts_as, Relaxed);
    }
    if blocked.claim.outcome() != Some(ClaimOutcome::HandOver) {
        return;
    }
    engine.took(&session, &args, started.elapsed(), now_ms);
    blocked.info.commands.fetch_add(1, Relaxed);
    leave(engine, guards, blocked);
    engine.post(Message::Served(blocked.info.recipient(), Box::new(output)));
}
