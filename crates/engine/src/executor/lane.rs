//! Owns: the lane of commands with one key, for clients of which nothing special is to be asked: from the request to
//! its handler, under the one lock that it needs. Does not own: what commands do, which clients are plain
//! ([`Core::is_plain`]), GET, SET, MGET, MSET and PING (`super::straight`).
//!
//! [`Core::check`](super::Core) and what stands around a handler ask some thirty questions of every request. Here those
//! about the client are asked once for its neighbouring requests, those about the command were answered when the
//! executor was made ([`Plan`]), and what is left is asked of the key: does anybody wait for it. A request that the
//! lane does not take goes the full way, and nothing has been changed.

use std::sync::atomic::Ordering::Relaxed;

use weft_protocol::table::{COMMANDS, CommandId, flag};
use weft_store::{Ahead, Batch};

use super::{Core, Host, Lent};
use crate::args::{Args, Texts};
use crate::blocking;
use crate::context::{Context, Hold};
use crate::engine::Engine;
use crate::error::Error;
use crate::handler::{Run, Scope};
use crate::reply::{Mark, ReplySink};
use crate::requests::{Request, Requests, What};
use crate::session::{Session, Then};
use crate::stats::bump;
use crate::traits;

/// What the lane needs to know of a command.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    run: Run,
    /// As the table has it: the number of arguments, or minus the least number.
    arity: i16,
    /// Whether others may wait for what it does.
    writes: bool,
    /// Whether it looks for a member, so that its neighbours' can be asked for meanwhile.
    looks: bool,
}

impl Plan {
    /// The plans of all commands, by id; nothing for those that the lane does not take: it takes who has one key, its
    /// first argument, always needs about the same short time, and is no barrier.
    pub(super) fn all(engine: &Engine) -> Box<[Option<Self>]> {
        let of = |at: usize| {
            let id = CommandId(u16::try_from(at).ok()?);
            let (spec, traits) = (id.spec(), traits::of(id));
            let wanted = traits::ONE_KEY | traits::QUICK;
            let handler = engine.handler(id)?;
            let takes = traits & (wanted | traits::BARRIER) == wanted
                && spec.container.is_none()
                && matches!(handler.scope, Scope::Keys);
            let writes = spec.flags & flag::WRITE != 0;
            let looks = traits & (traits::MEMBER_SECOND | traits::MEMBER_THIRD) != 0;
            takes.then_some(Self { run: handler.run, arity: spec.arity, writes, looks })
        };
        (0..COMMANDS.len()).map(of).collect()
    }
    #[inline]
    fn takes(&self, arguments: usize) -> bool {
        let wanted = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { arguments >= wanted } else { arguments == wanted }
    }
}

/// How a request of the lane went.
struct Went<'a> {
    id: CommandId,
    args: Args<'a>,
    outcome: Result<(), Error>,
    /// Before its reply.
    mark: Mark,
    errors: u32,
    reply_bytes: usize,
}

impl Core<'_> {
    /// The plan of a request, if the lane may take it.
    #[inline]
    pub(super) fn plan(&self, request: &Request) -> Option<(CommandId, Plan)> {
        let What::Command(id) = request.what else { return None };
        self.plans[usize::from(id.0)].map(|plan| (id, plan))
    }

    /// Runs requests of one client from place `from` on, as long as the lane takes them, and says how many.
    pub(super) fn lane(
        &mut self,
        batch: &Batch<'_>,
        requests: &Requests,
        from: usize,
        host: &mut impl Host,
    ) -> usize {
        let list = requests.list();
        let (connection, channel) = (list[from].client.connection, list[from].client.channel);
        let Some(Lent { session, output, bytes, shared_bytes }) = host.lend(connection, channel) else {
            return 0;
        };
        if !self.is_plain(session) {
            return 0;
        }
        let mut sink = ReplySink::new(output, session.wire);
        // What a reply takes is not known before, so it is seen behind it.
        let end = sink.len().saturating_add(shared_bytes);
        let mut outgrown = None;
        let texts = Texts::default();
        let mut at = from;
        // Neighbours are mostly alike: they are counted when another command comes.
        let (mut alike, mut last) = (0, None);
        while outgrown.is_none()
            && let Some(request) = list.get(at)
            && (request.client.connection, request.client.channel) == (connection, channel)
            && let Some((id, plan)) = self.plan(request)
        {
            let before = self.local.effects.ahead;
            self.local.effects.ahead = match plan.looks {
                true => requests.ahead(at, bytes, &self.engine.keyspace, before),
                false => Ahead::default(),
            };
            let args = requests.args(request, bytes, &texts);
            let place = sink.place();
            if !plan.takes(args.len())
                || !self.has_room()
                || !self.run_in_lane(batch, (id, plan), &args, session, &mut sink)
            {
                break;
            }
            if last != Some(id) {
                last.inspect(|&id| self.ran(id, alike));
                (alike, last) = (0, Some(id));
            }
            alike += 1;
            at += 1;
            outgrown = (sink.len() > end).then_some(place);
        }
        if let Some(last) = last {
            self.ran(last, alike);
            self.end_neighbours(session, (at - from) as u64, last);
        }
        if let Some(place) = outgrown {
            host.outgrew(connection, channel, place);
        }
        at - from
    }

    /// Runs one request. `false`: it must go the full way, and nothing has been changed.
    #[inline]
    fn run_in_lane(
        &mut self,
        batch: &Batch<'_>,
        (id, plan): (CommandId, Plan),
        args: &Args<'_>,
        session: &mut Session,
        sink: &mut ReplySink<'_>,
    ) -> bool {
        let key = args.key(&self.engine.keyspace, 1);
        let mut guard = batch.lock(&key);
        if plan.writes && !guard.waiters().is_empty() {
            return false;
        }
        let (mark, errors, len) = (sink.mark(), sink.errors(), sink.len());
        let db = session.db;
        let mut context = Context {
            engine: self.engine,
            session,
            local: &mut self.local,
            now_ms: self.now_ms,
            db,
            may_block: true,
            claim: None,
            hold: Hold::Key(&mut guard),
        };
        let outcome = (plan.run)(&mut context, args, sink);
        self.local.effects.end_group();
        drop(guard);
        let reply_bytes = sink.len().saturating_sub(len);
        debug_assert!(session.then == Then::GoOn && !session.is_waiting(), "the lane takes no such command");
        if outcome.is_err()
            || sink.errors() != errors
            || reply_bytes >= self.measures.reply_bytes
            || args.bytes_max() >= self.measures.request_bytes
            || !self.local.ready.is_empty()
        {
            let went = Went { id, args: *args, outcome, mark, errors, reply_bytes };
            self.went(batch, session, sink, went);
        }
        true
    }

    /// What few requests leave to be done: an error, a line in a log, somebody to be served.
    #[cold]
    fn went(&mut self, batch: &Batch<'_>, session: &Session, sink: &mut ReplySink<'_>, went: Went<'_>) {
        let mut reply_bytes = went.reply_bytes;
        if let Err(error) = went.outcome {
            sink.rollback(went.mark);
            let len = sink.len();
            self.stats.error(&error);
            sink.error(&error);
            reply_bytes = sink.len().saturating_sub(len);
        }
        if sink.errors() > went.errors {
            bump(&self.stats.by_command[usize::from(went.id.0)].failed, 1);
        }
        self.note_large(session, &went.args, reply_bytes);
        if !self.local.ready.is_empty() {
            blocking::serve_rest(self.engine, &mut self.local, batch, self.now_ms);
        }
    }

    /// What follows the neighbouring requests of one client, in the lane or on the straight way.
    #[inline]
    pub(super) fn end_neighbours(&mut self, session: &Session, requests: u64, last: CommandId) {
        bump(&self.stats.commands, requests);
        let info = &session.info;
        info.active_ms.store(self.now_ms, Relaxed);
        info.last_command.store(last.0, Relaxed);
        bump(&info.commands, requests);
        self.tell_effects(session);
        self.drop_garbage();
    }
}
