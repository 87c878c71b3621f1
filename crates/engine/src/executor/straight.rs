//! Owns: the straight way of what most requests are: GET, SET without options, MGET, MSET, PING, for clients of which
//! nothing special is to be asked. Does not own: what these commands mean where anything is special: that is their
//! handlers'.
//!
//! What [`Core::check`](super::Core) asks of every request is asked once for the neighbouring requests of one client,
//! and what follows every command is counted for all of them together. A request takes its handler's way when
//! [`Core::is_plain`] says so or the straight way meets something that it does not do; it has then changed nothing.

use std::sync::atomic::Ordering::Relaxed;

use weft_protocol::table::CommandId;
use weft_store::{Batch, Expiry, Garbage, Key, NewValue, Op, ValueRef};

use super::{Core, Host, Lent};
use crate::args::Texts;
use crate::error::{Error, ErrorCode};
use crate::reply::ReplySink;
use crate::requests::{Request, Requests, Straight};
use crate::session::{ReplyMode, Session, client_flag};
use crate::stats::bump;

/// What any reply but a long string may take, with its header.
const REPLY_BYTES_MIN: usize = 64;

/// Values that [`Core::gets`] answers are shorter: RESPB has their length in the header.
const SHORT_BYTES_MAX: usize = 256;

/// What the requests of one client that ran straight are counted as, when the next client's turn comes.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    requests: u64,
    last: Option<CommandId>,
    /// How often the last one, without another between.
    times: u32,
}

impl Core<'_> {
    /// Runs requests from the front of `list` as long as they go straight, and says how many.
    pub(super) fn straight(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        list: &[Request],
        host: &mut impl Host,
    ) -> usize {
        let mut at = 0;
        while let Some(first) = list.get(at).filter(|request| request.straight != Straight::No) {
            let (connection, channel) = (first.client.connection, first.client.channel);
            let Some(mut lent) = host.lend(connection, channel) else { break };
            if !self.is_plain(lent.session) {
                break;
            }
            let mut run = Run::default();
            let (from, end) = (at, lent.output.len().saturating_add(lent.shared_bytes));
            // The first may write as much as it likes.
            let mut room = usize::MAX;
            while let Some(request) = list.get(at)
                && request.straight != Straight::No
                && (request.client.connection, request.client.channel) == (connection, channel)
            {
                let mut ran = 0;
                if request.straight == Straight::Get {
                    ran = self.gets(batch, requests, &list[at..], &mut lent, end);
                }
                if ran == 0 {
                    if !self.run_straight(batch, requests, request, &mut lent, room) {
                        break;
                    }
                    ran = 1;
                }
                run.requests += ran as u64;
                if run.last != request.command() {
                    self.count(&mut run);
                    run.last = request.command();
                }
                run.times += ran as u32;
                at += ran;
                if end != usize::MAX {
                    room = end.saturating_sub(lent.output.len());
                }
            }
            self.end_run(lent.session, &mut run);
            if at == from {
                break;
            }
        }
        at
    }

    /// Whether nothing is to be asked before a request of this client runs, and nobody is to be told of it.
    #[inline]
    pub(super) fn is_plain(&self, session: &Session) -> bool {
        let engine = self.engine;
        !self.measures.every
            && session.acl_epoch == engine.acl.epoch()
            && session.authenticated
            && session.user.all
            && !session.must_queue()
            && session.transaction.is_none()
            && session.subscriptions.is_none()
            && session.caching.is_none()
            && session.reply_mode == ReplyMode::On
            && session.info.flags.load(Relaxed) & (client_flag::TRACKING | client_flag::NO_TOUCH) == 0
            && !engine.pause.is_on()
            && engine.settings.notify_flags.load(Relaxed) == 0
            && self.has_room()
            && !engine.is_monitored()
    }

    /// Whether nothing is to be evicted.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        let limit = self.engine.settings.maxmemory_bytes.load(Relaxed);
        limit == 0 || self.engine.keyspace.used_bytes() <= limit
    }

    /// Runs one request whose reply may take `room` bytes. `false`: its handler must, or it must come first among the
    /// requests of its client; and nothing has been changed.
    #[inline]
    fn run_straight(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        request: &Request,
        lent: &mut Lent<'_>,
        room: usize,
    ) -> bool {
        if room < REPLY_BYTES_MIN {
            return false;
        }
        match request.straight {
            Straight::Get => self.get(batch, requests, request, lent, room),
            Straight::Set => self.set(batch, requests, request, lent),
            Straight::Ping => {
                ReplySink::new(lent.output, lent.session.wire).pong();
                true
            }
            // What is one command to others must not be several.
            Straight::MGet if batch.is_alone() && room == usize::MAX => {
                self.get_many(batch, requests, request, lent);
                true
            }
            Straight::MSet if batch.is_alone() => self.set_many(batch, requests, request, lent),
            Straight::MGet | Straight::MSet | Straight::No => false,
        }
    }

    /// Runs GETs of one client from the front of `list` whose values have been seen and are short, and says how many.
    /// Their replies may reach to `end` in the output.
    #[inline]
    fn gets(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        list: &[Request],
        lent: &mut Lent<'_>,
        end: usize,
    ) -> usize {
        let Some(mut reads) = batch.reads(self.now_ms) else { return 0 };
        let (client, db) = (list[0].client, lent.session.db);
        if client.db != db {
            return 0;
        }
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let short_max = self.measures.reply_bytes.saturating_sub(REPLY_BYTES_MIN).min(SHORT_BYTES_MAX);
        let mut ran = 0;
        while let Some(request) = list.get(ran)
            && request.straight == Straight::Get
            && request.client == client
            && sink.len() + short_max + REPLY_BYTES_MIN <= end
        {
            let key = self.engine.keyspace.key_with_hash(requests.key(request, lent.bytes), request.hash);
            let Some(text) = reads.short(request.keys_before as usize, &key, short_max) else { break };
            sink.short_bulk(text);
            ran += 1;
        }
        ran
    }

    #[inline]
    fn get(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        request: &Request,
        lent: &mut Lent<'_>,
        room: usize,
    ) -> bool {
        let key = self.engine.keyspace.key_with_hash(requests.key(request, lent.bytes), request.hash);
        let db = lent.session.db;
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let before = sink.len();
        let short = |value: &ValueRef<'_>| match value {
            ValueRef::Bytes(bytes) if bytes.len() <= room - REPLY_BYTES_MIN => {
                sink.bulk(bytes);
                true
            }
            ValueRef::Int(_) => {
                sink.value(value);
                true
            }
            _ => false,
        };
        // A sight is of the database that the client had when the request came.
        let seen =
            request.client.db == db && batch.read(request.keys_before as usize, &key, self.now_ms, short);
        if !seen {
            if room != usize::MAX {
                return false;
            }
            let mut op = Op::new(db, self.now_ms, &mut self.local.effects.recorder);
            let mut guard = batch.lock(&key);
            match guard.get(&mut op, &key) {
                None => sink.null(),
                Some(ValueRef::Object(_)) => {
                    drop(guard);
                    self.wrong_type(request, &mut sink);
                }
                Some(value) => sink.value(&value),
            }
            self.local.effects.end_group();
        }
        let bytes = sink.len() - before;
        if bytes >= self.measures.reply_bytes {
            self.tell_large(requests, request, lent, bytes);
        }
        true
    }

    #[inline]
    fn set(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        request: &Request,
        lent: &mut Lent<'_>,
    ) -> bool {
        let key = self.engine.keyspace.key_with_hash(requests.key(request, lent.bytes), request.hash);
        let value = requests.framed(request, 1, lent.bytes);
        if key.bytes().len().max(value.len()) >= self.measures.request_bytes
            || self.engine.settings.maxmemory_bytes.load(Relaxed) != 0
        {
            return false;
        }
        let seen = (request.client.db == lent.session.db).then_some(request.keys_before as usize);
        let is_set = self.put(batch, lent.session.db, &key, value, seen);
        if is_set {
            ReplySink::new(lent.output, lent.session.wire).ok();
        }
        is_set
    }

    /// Sets a key, unless somebody waits for one of its shard.
    #[inline]
    fn put(
        &mut self,
        batch: &mut Batch<'_>,
        db: u8,
        key: &Key<'_>,
        value: &[u8],
        seen: Option<usize>,
    ) -> bool {
        let value = NewValue::string(value);
        let mut op = Op::new(db, self.now_ms, &mut self.local.effects.recorder);
        if let (NewValue::Bytes(text), Some(at)) = (&value, seen)
            && batch.rewrite(at, &mut op, key, text)
        {
            return true;
        }
        let mut guard = batch.lock(key);
        if !guard.waiters().is_empty() {
            return false;
        }
        let (garbage, _) = guard.set(&mut op, key, value, Expiry::None);
        op.recorder.end_group();
        if !matches!(garbage, Garbage::Nothing) {
            self.local.garbage.push(garbage);
        }
        true
    }

    fn get_many(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        request: &Request,
        lent: &mut Lent<'_>,
    ) {
        let db = lent.session.db;
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let before = sink.len();
        let bytes = lent.bytes;
        sink.array_of_bulks(1 + requests.more_hashes(request).len(), |row| {
            let key_of = |(index, hash): (usize, u64)| {
                let key = self.engine.keyspace.key_with_hash(requests.framed(request, index, bytes), hash);
                (request.keys_before as usize + index, key)
            };
            let mut keys = requests.hashes(request).enumerate().map(key_of);
            loop {
                let mut reads = batch.reads(self.now_ms).filter(|_| request.client.db == db);
                // Up to one that has not been seen, or is no text.
                let unseen = keys.find(|(at, key)| {
                    match reads.as_mut().and_then(|reads| reads.short(*at, key, usize::MAX)) {
                        Some(text) => row.push(text),
                        None => return true,
                    }
                    false
                });
                drop(reads);
                let Some((at, key)) = unseen else { break };
                let write = |value: &ValueRef<'_>| {
                    row.value(value);
                    true
                };
                if request.client.db == db && batch.read(at, &key, self.now_ms, write) {
                    continue;
                }
                let mut op = Op::new(db, self.now_ms, &mut self.local.effects.recorder);
                match batch.lock(&key).get(&mut op, &key) {
                    // What is no string is null too.
                    Some(value) => row.value(&value),
                    None => row.null(),
                }
                self.local.effects.end_group();
            }
        });
        let bytes = sink.len() - before;
        if bytes >= self.measures.reply_bytes {
            self.tell_large(requests, request, lent, bytes);
        }
    }

    fn set_many(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        request: &Request,
        lent: &mut Lent<'_>,
    ) -> bool {
        let keyspace = &self.engine.keyspace;
        let pair = |(index, hash): (usize, u64)| {
            let key = keyspace.key_with_hash(requests.framed(request, 2 * index, lent.bytes), hash);
            (key, requests.framed(request, 2 * index + 1, lent.bytes))
        };
        let pairs = || requests.hashes(request).enumerate().map(pair);
        let limit = self.measures.request_bytes;
        if self.engine.settings.maxmemory_bytes.load(Relaxed) != 0
            || pairs()
                .any(|(key, value)| key.bytes().len().max(value.len()) >= limit || batch.is_awaited(&key))
        {
            return false;
        }
        let db = lent.session.db;
        let is_set = pairs().enumerate().all(|(index, (key, value))| {
            let seen = (request.client.db == db).then_some(request.keys_before as usize + index);
            self.put(batch, db, &key, value, seen)
        });
        debug_assert!(is_set, "nobody can have begun to wait meanwhile");
        ReplySink::new(lent.output, lent.session.wire).ok();
        true
    }

    /// Counts the last commands of a run, which were the same.
    #[inline]
    fn count(&mut self, run: &mut Run) {
        if let Some(id) = run.last {
            self.ran(id, run.times);
        }
        run.times = 0;
    }

    /// What follows the requests of one client.
    #[inline]
    fn end_run(&mut self, session: &Session, run: &mut Run) {
        self.count(run);
        if let Some(last) = run.last {
            self.end_neighbours(session, run.requests, last);
        }
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
