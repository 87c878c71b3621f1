//! Owns: the fast functions: GET, SET without options, MGET, MSET and PING in a shorter form than their handlers have,
//! for where nothing is special. Does not own: when they may run, and what follows them (`super::neighbours`); what
//! these commands mean elsewhere: that is their handlers', and tests compare the two.
//!
//! A fast function that meets something that it does not do says so, and has changed nothing.

use weft_store::{Batch, Expiry, Garbage, Key, NewValue, Op, Reads, ShardGuard, ValueRef, parse_int};

use super::neighbours::Terms;
use super::{Core, Lent};
use crate::args::Texts;
use crate::error::ErrorCode;
use crate::reply::ReplySink;
use crate::requests::{Fast, Request, Requests};
use crate::runner;
use crate::stats::bump;
use crate::trigger::index::Asked;

/// What any reply but a long string may take, with its header.
const REPLY_BYTES_MIN: usize = 64;

/// Values that [`Core::hits`] answers are shorter: RESPB has their length in the header.
const SHORT_BYTES_MAX: usize = 256;

impl Core<'_> {
    /// Runs the first request of `list`, and with it as many behind it as its function takes at once; says how many.
    #[inline(never)]
    pub(super) fn fast(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        list: &[Request],
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> usize {
        let first = &list[0];
        let ran = match first.fast {
            // Each is to be looked at.
            _ if terms.sized => 0,
            // One that may be kept where it lies is its handler's.
            Fast::Set if lent.buffer.is_some() => return 0,
            // Above the limit any command makes room.
            Fast::Get if terms.limited && !self.eviction.has_room(self.engine, None) => 0,
            // One by itself gains nothing from what several ask once.
            Fast::Get if list.get(1).is_none_or(|next| next.client != first.client) => 0,
            Fast::Get if batch.is_alone() => self.gets_alone(batch, requests, list, lent, terms),
            Fast::Get => self.gets_locked(batch, requests, list, lent, terms),
            Fast::Set => match self.sets(batch, requests, list, lent, terms) {
                Some(ran) => ran,
                None => return 0,
            },
            Fast::Ping | Fast::MGet | Fast::MSet | Fast::No => 0,
        };
        if ran > 0 {
            return ran;
        }
        let writes = matches!(first.fast, Fast::Set | Fast::MSet);
        let asks = terms.restricted || terms.limited || terms.sized || terms.triggered && writes;
        // SETs behind a key that was not seen, and where a log is told of each behind any other, may write over what
        // was seen of theirs. Behind one that was seen and is of another kind or length they are mostly as that.
        let goes_back = first.fast == Fast::Set
            && (self.engine.keyspace.wanted() != 0 || !batch.saw(first.keys_before as usize));
        let mut ran = 0;
        while let Some(request) = list.get(ran)
            && request.fast == first.fast
            && request.client == first.client
            && (ran == 0 || !goes_back || !batch.saw(request.keys_before as usize))
            && (!asks || self.lets_fast(requests, request, lent, terms))
        {
            let (has_run, is_short) = match request.fast {
                Fast::Get => (self.get(batch, requests, request, lent), false),
                Fast::Set => (self.set(batch, requests, request, lent), true),
                Fast::Ping => {
                    ReplySink::new(lent.output, lent.session.wire).pong();
                    (true, true)
                }
                Fast::MGet | Fast::MSet if self.may_be_large(requests, request) => (false, false),
                Fast::MGet => (self.get_many(batch, requests, request, lent), false),
                // What is one command to others must not be several.
                Fast::MSet if batch.is_alone() => (self.set_many(batch, requests, request, lent), true),
                Fast::MSet | Fast::No => (false, false),
            };
            ran += usize::from(has_run);
            // Of several replies only the last one may go beyond the end.
            if !has_run || !is_short || lent.output.len() + REPLY_BYTES_MIN > terms.end {
                break;
            }
        }
        ran
    }

    /// Whether a request may be for the log of large ones: behind its handler it is seen whether it is.
    #[inline]
    fn may_be_large(&self, requests: &Requests, request: &Request) -> bool {
        requests.bytes_max(request) >= self.measures.request_bytes
    }
    /// Whether the terms let a request run.
    fn lets_fast(&mut self, requests: &Requests, request: &Request, lent: &Lent<'_>, terms: Terms) -> bool {
        let Some(id) = request.command() else { return false };
        if terms.sized && self.may_be_large(requests, request) {
            return false;
        }
        let (keys, step, brings) = match request.fast {
            Fast::Ping | Fast::No => (0, 1, None),
            Fast::Get => (1, 1, None),
            Fast::MGet => (1 + requests.more_hashes(request).len(), 1, None),
            Fast::Set => (1, 1, Some(requests.bytes(request))),
            Fast::MSet => (1 + requests.more_hashes(request).len(), 2, Some(requests.bytes(request))),
        };
        let keys = (0..keys).map(|at| requests.framed(request, at * step, lent.bytes));
        let (index, mut asked) = (self.local.triggers.last(), Asked::default());
        if terms.triggered && brings.is_some() && keys.clone().any(|key| index.has_beside(key, &mut asked)) {
            return false;
        }
        terms.let_run((self.engine, &mut self.eviction), &lent.session.user, (id, keys), brings)
    }

    /// Runs GETs of one client from the front of `list` whose values have been seen and are short, or of which nothing
    /// has been seen, and says how many. Their replies may reach to the terms' end in the output.
    #[inline(always)]
    fn gets<const LOCKS: bool>(
        &mut self,
        reads: Option<Reads<'_, LOCKS>>,
        requests: &Requests,
        list: &[Request],
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> usize {
        let Some(mut reads) = reads else { return 0 };
        let (client, db) = (list[0].client, lent.session.db);
        let allowed = || list[0].command().is_some_and(|id| lent.session.user.allows_plainly(id));
        if client.db != db || terms.restricted && !allowed() {
            return 0;
        }
        let mut ran = 0;
        while let Some(request) = list.get(ran)
            && request.fast == Fast::Get
            && request.client == client
            && lent.output.len() + self.short_max() + REPLY_BYTES_MIN <= terms.end
        {
            if reads.saw(request.keys_before as usize) {
                let hits = self.hits(&mut reads, requests, &list[ran..], lent, terms);
                if hits == 0 {
                    break;
                }
                ran += hits;
                continue;
            }
            let key = self.engine.keyspace.key_with_hash(requests.key(request, lent.bytes), request.hash);
            if terms.restricted && !lent.session.user.allows_key_plainly(key.bytes()) {
                break;
            }
            let Some(guard) = reads.lock_in_time(&key) else { break };
            let from = lent.output.end();
            let mut sink = ReplySink::new(lent.output, lent.session.wire);
            let large = self.get_by_search((guard, db), request, &key, &mut sink);
            ran += 1;
            if let Some(bytes) = large {
                self.note_large_request(requests, request, lent, bytes);
            }
            if lent.output.len() > terms.end {
                // How long it is was not known before.
                self.long_from = Some(from);
                break;
            }
        }
        ran
    }

    /// Values that [`Core::hits`] answers are shorter.
    #[inline]
    fn short_max(&self) -> usize {
        self.measures.reply_bytes.saturating_sub(REPLY_BYTES_MIN).min(SHORT_BYTES_MAX)
    }

    /// Runs those of [`Core::gets`] whose values have been seen. Code of its own: with the others' it has too few
    /// registers.
    #[inline(never)]
    fn hits<const LOCKS: bool>(
        &self,
        reads: &mut Reads<'_, LOCKS>,
        requests: &Requests,
        list: &[Request],
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> usize {
        let (client, user) = (list[0].client, &lent.session.user);
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let short_max = self.short_max();
        let mut ran = 0;
        while let Some(request) = list.get(ran)
            && request.fast == Fast::Get
            && request.client == client
            && sink.len() + short_max + REPLY_BYTES_MIN <= terms.end
        {
            let key = self.engine.keyspace.key_with_hash(requests.key(request, lent.bytes), request.hash);
            if terms.restricted && !user.allows_key_plainly(key.bytes()) {
                break;
            }
            if !reads.short(request.keys_before as usize, &key, short_max, |text| sink.short_bulk(text)) {
                break;
            }
            ran += 1;
        }
        ran
    }

    /// GET under the lock of its key. Says how long the reply is, if it is for the log of large ones.
    #[inline(never)]
    fn get_by_search(
        &mut self,
        (mut guard, db): (ShardGuard<'_>, u8),
        request: &Request,
        key: &Key<'_>,
        sink: &mut ReplySink<'_>,
    ) -> Option<usize> {
        let before = sink.len();
        let mut op = Op::new(db, self.now_ms, &mut self.local.effects.recorder);
        match guard.get(&mut op, key) {
            None => sink.null(),
            Some(ValueRef::Object(_)) => {
                drop(guard);
                self.wrong_type(request, sink);
            }
            Some(value) => sink.value(&value),
        }
        self.local.effects.end_group();
        let bytes = sink.len() - before;
        (bytes >= self.measures.reply_bytes).then_some(bytes)
    }

    /// [`Core::gets`] of a batch that has the keyspace to itself. Code of its own, as the next: together they have too
    /// few registers.
    #[inline(never)]
    fn gets_alone(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        list: &[Request],
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> usize {
        self.gets(batch.reads(self.now_ms), requests, list, lent, terms)
    }
    /// The same where others may come to the keys meanwhile.
    #[inline(never)]
    fn gets_locked(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        list: &[Request],
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> usize {
        self.gets(batch.locked_reads(self.now_ms), requests, list, lent, terms)
    }

    /// Runs SETs of one client from the front of `list` that write over a string that was seen, and says how many;
    /// nothing if the first one fires a trigger.
    #[inline(never)]
    fn sets(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        list: &[Request],
        lent: &mut Lent<'_>,
        terms: Terms,
    ) -> Option<usize> {
        let (client, db) = (list[0].client, lent.session.db);
        let Some(mut rewrites) = batch.rewrites((db, self.now_ms), &self.local.effects.recorder) else {
            return Some(0);
        };
        let asks = terms.restricted || terms.limited;
        let mut ran = 0;
        while let Some(request) = list.get(ran)
            && request.fast == Fast::Set
            && request.client == client
            && client.db == db
        {
            let key = self.engine.keyspace.key_with_hash(requests.key(request, lent.bytes), request.hash);
            if asks {
                let room = (self.engine, &mut self.eviction);
                let brings = Some(requests.bytes(request));
                let Some(id) = request.command() else { break };
                if !terms.let_run(room, &lent.session.user, (id, std::iter::once(key.bytes())), brings) {
                    break;
                }
            }
            if terms.triggered && self.local.triggers.last().has(key.bytes()) {
                if ran == 0 {
                    return None;
                }
                break;
            }
            let value = requests.framed(request, 1, lent.bytes);
            if parse_int(value).is_some() || !rewrites.text(request.keys_before as usize, &key, value) {
                break;
            }
            ReplySink::new(lent.output, lent.session.wire).ok();
            ran += 1;
            // Of several replies only the last one may go beyond the end.
            if lent.output.len() + REPLY_BYTES_MIN > terms.end {
                break;
            }
        }
        Some(ran)
    }

    #[inline]
    fn get(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        request: &Request,
        lent: &mut Lent<'_>,
    ) -> bool {
        let key = self.engine.keyspace.key_with_hash(requests.key(request, lent.bytes), request.hash);
        let db = lent.session.db;
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let before = sink.len();
        let write = |value: &ValueRef<'_>| match value {
            ValueRef::Bytes(_) | ValueRef::Int(_) => {
                sink.value(value);
                true
            }
            _ => false,
        };
        // A sight is of the database that the client had when the request came.
        let seen =
            request.client.db == db && batch.read(request.keys_before as usize, &key, self.now_ms, write);
        let large = if seen {
            let bytes = sink.len() - before;
            (bytes >= self.measures.reply_bytes).then_some(bytes)
        } else {
            let Some(guard) = batch.lock_in_time(&key) else { return false };
            self.get_by_search((guard, db), request, &key, &mut sink)
        };
        if let Some(bytes) = large {
            self.note_large_request(requests, request, lent, bytes);
        }
        true
    }

    #[inline]
    pub(super) fn set(
        &mut self,
        batch: &mut Batch<'_>,
        requests: &Requests,
        request: &Request,
        lent: &mut Lent<'_>,
    ) -> bool {
        let key = self.engine.keyspace.key_with_hash(requests.key(request, lent.bytes), request.hash);
        let value = requests.framed(request, 1, lent.bytes);
        let seen = (request.client.db == lent.session.db).then_some(request.keys_before as usize);
        let is_set = self.put(batch, lent.session.db, &key, value, seen);
        self.local.effects.end_group();
        if is_set {
            ReplySink::new(lent.output, lent.session.wire).ok();
        }
        is_set
    }

    /// Sets a key, unless somebody waits for one of its shard, or keeps that.
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
        let Some(mut guard) = batch.lock_in_time(key) else { return false };
        if !guard.waiters().is_empty() {
            return false;
        }
        let (garbage, _) = guard.set(&mut op, key, value, Expiry::None);
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
    ) -> bool {
        let db = lent.session.db;
        let mut sink = ReplySink::new(lent.output, lent.session.wire);
        let before = sink.len();
        let bytes = lent.bytes;
        let Some(mut reads) = batch.reads_of(self.now_ms, requests.hashes(request)) else { return false };
        sink.array_of_bulks(1 + requests.more_hashes(request).len(), |row| {
            let key_of = |(index, hash): (usize, u64)| {
                let key = self.engine.keyspace.key_with_hash(requests.framed(request, index, bytes), hash);
                (request.keys_before as usize + index, key)
            };
            for (at, key) in requests.hashes(request).enumerate().map(key_of) {
                if request.client.db == db
                    && let Some(text) = reads.seen(at, &key)
                {
                    row.push(text);
                    continue;
                }
                let mut op = Op::new(db, self.now_ms, &mut self.local.effects.recorder);
                match reads.get(&mut op, &key) {
                    // What is no string is null too.
                    Some(value) => row.value(&value),
                    None => row.null(),
                }
            }
        });
        self.local.effects.end_group();
        let bytes = sink.len() - before;
        if bytes >= self.measures.reply_bytes {
            self.note_large_request(requests, request, lent, bytes);
        }
        true
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
        if pairs().any(|(key, _)| batch.is_awaited(&key)) {
            return false;
        }
        let db = lent.session.db;
        let is_set = pairs().enumerate().all(|(index, (key, value))| {
            let seen = (request.client.db == db).then_some(request.keys_before as usize + index);
            self.put(batch, db, &key, value, seen)
        });
        debug_assert!(is_set, "nobody can have begun to wait meanwhile");
        self.local.effects.end_group();
        ReplySink::new(lent.output, lent.session.wire).ok();
        true
    }

    #[cold]
    fn wrong_type(&self, request: &Request, sink: &mut ReplySink<'_>) {
        let mark = sink.mark();
        runner::fail(self.stats, sink, mark, &ErrorCode::WrongType.into());
        if let Some(id) = request.command() {
            bump(&self.stats.by_command[usize::from(id.0)].failed, 1);
        }
    }

    #[cold]
    fn note_large_request(
        &self,
        requests: &Requests,
        request: &Request,
        lent: &Lent<'_>,
        reply_bytes: usize,
    ) {
        let texts = Texts::default();
        let args = requests.args(request, lent.bytes, &texts);
        self.engine.was_large(lent.session, &args, reply_bytes, self.now_ms);
    }
}
