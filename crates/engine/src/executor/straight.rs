//! Owns: the straight way of what most requests are: GET, SET without options, PING, for clients of which nothing
//! special is to be asked. Does not own: what these commands mean where anything is special: that is their handlers'.
//!
//! What [`Core::check`](super::Core) asks of every request is asked once for the neighbouring requests of one client,
//! and what follows every command is counted for all of them together. A request takes its handler's way when
//! [`Core::is_plain`] says so or the straight way meets something that it does not do; it has then changed nothing.

use std::sync::atomic::Ordering::Relaxed;

use weft_protocol::table::CommandId;
use weft_store::{Batch, Expiry, Garbage, NewValue, Op, ValueRef};

use super::{Core, Host, Lent};
use crate::args::Texts;
use crate::error::{Error, ErrorCode};
use crate::reply::{Protocol, ReplySink};
use crate::requests::{Request, Requests, Straight};
use crate::session::{ReplyMode, Session, client_flag};
use crate::stats::bump;

/// What the requests of one client that ran straight are counted as, when the next client's turn comes.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    requests: u64,
    last: Option<CommandId>,
}

impl Core<'_> {
    /// Runs requests from the front of `list` as long as they go straight, and says how many.
    pub(super) fn straight(
        &mut self,
        batch: &Batch<'_>,
        requests: &Requests,
        list: &[Request],
        host: &mut impl Host,
    ) -> usize {
        let mut at = 0;
        while let Some(first) = list.get(at).filter(|request| request.straight != Straight::No) {
            let (connection, channel) = (first.connection, first.channel);
            let Some(mut lent) = host.lend(connection, channel) else { break };
            if !self.is_plain(lent.session) {
                break;
            }
            let mut run = Run::default();
            let from = at;
            // RESPB counts the output of each request by itself.
            let is_shared = lent.session.wire.protocol != Protocol::Respb;
            while let Some(request) = list.get(at)
                && request.straight != Straight::No
                && (request.connection, request.channel) == (connection, channel)
                && (is_shared || at == from)
                && self.run_straight(batch, requests, request, &mut lent)
            {
                run.requests += 1;
                run.last = request.command();
                run.last.inspect(|&id| self.ran(id));
                at += 1;
            }
            self.end_run(lent.session, run);
            if at == from {
                break;
            }
        }
        at
    }

    /// Whether nothing is to be asked before a request of this client runs, and nobody is to be told of it.
    #[inline]
    fn is_plain(&self, session: &Session) -> bool {
        let engine = self.engine;
        !self.measures.every
            && session.acl_epoch == engine.acl.epoch()
            && session.authenticated
            && session.user.all
            && session.wait.is_none()
            && session.transaction.is_none()
            && session.subscriptions.is_none()
            && session.caching.is_none()
            && session.reply_mode == ReplyMode::On
            && session.info.flags.load(Relaxed) & (client_flag::TRACKING | client_flag::NO_TOUCH) == 0
            && engine.pause.until_ms.load(Relaxed) == 0
            && engine.settings.notify_flags.load(Relaxed) == 0
            && self.has_room()
            && !engine.is_monitored()
    }

    /// Whether nothing is to be evicted.
    #[inline]
    fn has_room(&self) -> bool {
        let limit = self.engine.settings.maxmemory_bytes.load(Relaxed);
        limit == 0 || self.engine.keyspace.used_bytes() <= limit
    }

    /// Runs one request. `false`: its handler must, and nothing has been changed.
    #[inline]
    fn run_straight(
        &mut self,
        batch: &Batch<'_>,
        requests: &Requests,
        request: &Request,
        lent: &mut Lent<'_>,
    ) -> bool {
        let keyspace = &self.engine.keyspace;
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        if request.straight == Straight::Ping {
            sink.pong();
            return true;
        }
        let key = keyspace.key_with_hash(requests.framed(request, 0, lent.bytes), request.hash);
        let db = lent.session.db;
        let mut op = Op::new(db, self.now_ms, &mut self.local.effects);
        let mut guard = batch.lock(&key);
        if request.straight == Straight::Get {
            let before = sink.len();
            match guard.get(&mut op, &key) {
                None => sink.null(),
                Some(ValueRef::Object(_)) => {
                    drop(guard);
                    self.wrong_type(request, &mut sink);
                }
                Some(value) => {
                    sink.value(&value);
                    let bytes = sink.len() - before;
                    if bytes >= self.measures.reply_bytes {
                        drop(guard);
                        self.tell_large(requests, request, lent, bytes);
                    }
                }
            }
            return true;
        }
        let value = requests.framed(request, 1, lent.bytes);
        if key.bytes().len().max(value.len()) >= self.measures.request_bytes
            || self.engine.settings.maxmemory_bytes.load(Relaxed) != 0
            || !guard.waiters().is_empty()
        {
            return false;
        }
        let (garbage, _) = guard.set(&mut op, &key, NewValue::string(value), Expiry::None);
        if !matches!(garbage, Garbage::Nothing) {
            self.local.garbage.push(garbage);
        }
        sink.ok();
        true
    }

    /// What follows the requests of one client.
    #[inline]
    fn end_run(&mut self, session: &Session, run: Run) {
        let Some(last) = run.last else { return };
        bump(&self.stats.commands, run.requests);
        let info = &session.info;
        info.active_ms.store(self.now_ms, Relaxed);
        info.last_command.store(last.0, Relaxed);
        bump(&info.commands, run.requests);
        self.tell_effects(session);
        self.drop_garbage();
    }

    #[cold]
    fn wrong_type(&self, request: &Request, sink: &mut ReplySink<'_>) {
        let error = Error::from(ErrorCode::WrongType);
        if let Some(id) = request.command() {
            bump(&self.stats.by_command[usize::from(id.0)].failed, 1);
        }
        self.stats.error(&error);
        sink.error(&error);
    }

    #[cold]
    fn tell_large(&self, requests: &Requests, request: &Request, lent: &Lent<'_>, reply_bytes: usize) {
        let texts = Texts::default();
        let args = requests.args(request, lent.bytes, &texts);
        self.engine.was_large(lent.session, &args, reply_bytes, self.now_ms);
    }
}
