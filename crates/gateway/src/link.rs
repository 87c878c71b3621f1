//! Owns: one connection to the server behind: what is to be sent, what has come, which reply is due next. Does not own:
//! making it, what becomes of replies.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use weft_client::fleet::Wire;
use weft_engine::Postponed;
use weft_engine::blocking::End;
use weft_engine::error::Error;
use weft_engine::mailbox::Recipient;
use weft_engine::tracking::Names;
use weft_protocol::Outcome;
use weft_protocol::request::Texts;
use weft_protocol::resp::ReplyDecoder;
use weft_protocol::resp::encode::request;

use crate::answer::Whose;
use crate::blocks::Since;
use crate::kept_bytes::Share;
use crate::reply::{LIMITS, Passed};
use crate::scripts::{requests, runs_logic};
use crate::skip::Skip;
use crate::upstream::MULTI;

/// Bytes of requests that may wait on one connection to be answered; what comes beyond is refused.
pub(crate) const WAITING_BYTES_MAX: usize = 256 << 20;
/// Bytes that are received at once.
const RECEIVE_BYTES: usize = 64 << 10;
/// Memory of an empty buffer that is kept.
pub(crate) const EMPTY_BYTES_MAX: usize = 256 << 10;

pub(crate) const OK: &[u8] = b"+OK\r\n";
pub(crate) const QUEUED: &[u8] = b"+QUEUED\r\n";
/// What a client is answered whose reply cannot be read.
const NOT_READ: &str = "the server behind the gateway has answered what the gateway cannot pass on";
/// Who could get what is another's gets nothing: a connection on which this is seen ends at once.
const OUT_OF_TURN: &str = "a reply came that cannot be the one that is due";

/// What a reply that is due is for.
#[derive(Debug)]
pub(crate) enum Expect {
    /// A client's request.
    Plain,
    /// SELECT of this database, of a client.
    Select(u8),
    /// EXEC.
    Exec,
    /// The form of a request that does not block, which is a transaction of it alone. What is sent if it finds nothing,
    /// and what has ended its wait meanwhile.
    Try(Box<Tried>, Option<End>),
    /// A request that blocks, and what has ended its wait meanwhile.
    Block(Option<End>),
    /// WATCH.
    Watch,
    /// A request over a connection of its own.
    Alone,
    /// The server is to tell of changes; this request of a client runs then.
    Track(Box<Postponed>),
    /// A client's request that is not sent, since there is no room for it: something else is, in whose place it has
    /// this answer.
    Instead(Box<Error>),
    /// Nobody's: SELECT before what runs in another database.
    Database,
    /// Nobody's: the server is to tell of changes.
    Tracking,
    /// Nobody's: what must go well for what is behind it.
    Own,
    /// Nobody's: whether the server is a master.
    Role,
    /// Nobody's: how it goes does not matter.
    Aside,
    /// Nobody's: whether this one was woken.
    Unblock(Asleep),
}

/// A request that blocks over a connection of its own, and is to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asleep {
    /// The connection's place, and the attempt by which it was made.
    pub(crate) at: u32,
    pub(crate) attempt: u64,
    /// Where the request begins among all bytes of it.
    pub(crate) begin: u64,
}

/// A request that blocks, while it is tried without.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) db: u8,
    pub(crate) since: Since,
    /// Its bytes, as they are counted.
    pub(crate) _share: Share,
}

/// A reply that is due.
#[derive(Debug)]
pub(crate) struct Due {
    /// Whose it is; nobody's once the client is gone.
    pub(crate) to: Option<Whose>,
    pub(crate) expect: Expect,
    /// Replies before it that are passed over: those to MULTI and to what it queues.
    pub(crate) skip: u32,
    /// As many as there were at first.
    pub(crate) skips: u32,
    /// So many of them, the last ones, are of MULTI and of what it queues: the reply that is due is EXEC's.
    pub(crate) multi: u32,
    /// The first error among those.
    pub(crate) failed: Option<Box<[u8]>>,
    /// Its client does not want it.
    pub(crate) silent: bool,
    /// Its request only reads: it may run twice.
    pub(crate) reads: bool,
    /// It was under way on a connection that was lost.
    pub(crate) again: bool,
    /// In which database its request runs, if that matters.
    pub(crate) db: Option<u8>,
    /// Keys that its client wants to be told of when they change, and whether the server has been asked to tell.
    pub(crate) tracks: Option<Names>,
    pub(crate) noted: bool,
    /// When its client is told that it takes too long; 0 for never.
    pub(crate) until_ms: u64,
    /// Where its request begins among all bytes.
    pub(crate) begin: u64,
    /// How often its connection had been lent.
    pub(crate) lends: u32,
}

impl Due {
    pub(crate) fn new(to: Option<Whose>, expect: Expect, silent: bool) -> Self {
        let (reads, again) = (false, false);
        Self {
            to,
            expect,
            skip: 0,
            skips: 0,
            multi: 0,
            failed: None,
            silent,
            reads,
            again,
            db: None,
            tracks: None,
            noted: false,
            until_ms: 0,
            begin: 0,
            lends: 0,
        }
    }
    pub(crate) fn skipping(self, skip: u32) -> Self {
        Self { skip, skips: skip, ..self }
    }
    /// Behind those that are skipped stands a transaction of so many requests.
    pub(crate) fn queueing(self, queued: u32) -> Self {
        let (multi, skip) = (queued + 1, self.skip + queued + 1);
        Self { multi, skip, skips: skip, ..self }
    }
    /// The client whose request that blocks is tried.
    pub(crate) fn tried(&self) -> Option<u64> {
        self.to.filter(|_| matches!(self.expect, Expect::Try(..))).map(|to| to.client())
    }
    /// Whether a reply may be the next one of those that are passed over.
    fn skips_over(&self, reply: &[u8]) -> bool {
        reply.first() == Some(&b'-')
            || match self.skip.cmp(&self.multi) {
                Ordering::Greater => reply != QUEUED,
                Ordering::Equal => reply == OK,
                Ordering::Less => reply == QUEUED,
            }
    }
}

/// What has come.
#[derive(Debug)]
pub(crate) enum Came {
    /// A reply, at this place of the input.
    Reply(Box<Due>, Range<usize>),
    /// What nobody has asked for, at this place.
    Push(Range<usize>),
    /// Nothing that is whole.
    Nothing,
    /// What is no reply, or one that nobody has asked for.
    Broken(String),
}

/// A connection, or one that is being made.
#[derive(Debug)]
pub(crate) struct Link {
    /// Nothing while it is being made.
    wire: Option<Wire>,
    /// Which attempt makes it.
    pub(crate) attempt: u64,
    pub(crate) resp2: bool,
    /// Only one client at a time uses it.
    pub(crate) is_lease: bool,
    /// That client, if there is one.
    pub(crate) owner: Option<Recipient>,
    /// He watches keys over it: it is his until EXEC.
    pub(crate) watches: bool,
    /// So many of his WATCHes were answered OK.
    pub(crate) watched: u32,
    /// How often it was lent.
    pub(crate) lends: u32,
    /// How often the server was asked to wake its owner, who blocks by one request.
    pub(crate) wakes: u8,
    /// Answers that must come before somebody else has it: to what wakes who blocks over it, and could wake the next
    /// one, and to what leaves nothing of who had it.
    pub(crate) owed: u32,
    /// One of them is to another protocol, for somebody who waits.
    pub(crate) turns: bool,
    /// The server tells of changes of keys that are read over it, where it is asked to.
    pub(crate) tracks: bool,
    /// CLIENT ID there.
    pub(crate) id: i64,
    /// Where requests end that select a database and are not answered. What is behind the first of them is not sent:
    /// were that refused, it would run in another database.
    gates: VecDeque<u64>,
    /// What is behind this waits: it could be ended in place of what stands before it.
    held_at: Option<u64>,
    /// The database that requests run in which are put behind the others now.
    db: Option<u8>,
    /// Requests from the first that is not answered on.
    out: Vec<u8>,
    /// Its bytes, as they are counted.
    pub(crate) share: Share,
    /// So many bytes of `out` are sent, and `out` begins with this byte of all.
    sent: usize,
    base: u64,
    input: Vec<u8>,
    at: usize,
    decoder: ReplyDecoder,
    /// A reply that is passed over, and why.
    skip: Option<(Skip, String)>,
    due: VecDeque<Due>,
    /// When something was asked while nothing was due, or something came.
    pub(crate) stirred_ms: u64,
    /// It has been asked for its role.
    pub(crate) asks_role: bool,
    /// Its last reply was READONLY, as a replica has it; and whether a script may have said so.
    pub(crate) refused_write: Option<bool>,
    /// It stands in the list of those that are to be sent.
    pub(crate) dirty: bool,
    /// The server sends no more: behind what is there stands the end, of which nobody tells again.
    pub(crate) ends: bool,
}

impl Link {
    /// One that is being made.
    pub(crate) fn new(attempt: u64, resp2: bool, is_lease: bool, now_ms: u64) -> Self {
        Self {
            wire: None,
            attempt,
            resp2,
            is_lease,
            owner: None,
            watches: false,
            watched: 0,
            lends: 0,
            wakes: 0,
            owed: 0,
            turns: false,
            tracks: false,
            id: 0,
            gates: VecDeque::new(),
            held_at: None,
            db: Some(0),
            out: Vec::new(),
            share: Share::default(),
            sent: 0,
            base: 0,
            input: Vec::new(),
            at: 0,
            decoder: ReplyDecoder::new(LIMITS),
            skip: None,
            due: VecDeque::new(),
            stirred_ms: now_ms,
            asks_role: false,
            refused_write: None,
            dirty: false,
            ends: false,
        }
    }
    /// It stands.
    pub(crate) fn stands(&mut self, wire: Wire, id: i64, now_ms: u64) {
        (self.wire, self.id, self.stirred_ms) = (Some(wire), id, now_ms);
    }
    pub(crate) const fn is_up(&self) -> bool {
        self.wire.is_some()
    }
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.wire.as_ref().map(AsFd::as_fd)
    }
    /// TLS may keep the end of what it has taken.
    pub(crate) fn has_unsent(&self) -> bool {
        self.limit() > self.sent || self.wire.as_ref().is_some_and(Wire::keeps_some)
    }
    /// Bytes of requests that wait to be answered.
    pub(crate) const fn waiting(&self) -> usize {
        self.out.len()
    }
    /// Replies that are due.
    pub(crate) fn asked(&self) -> usize {
        self.due.len()
    }
    pub(crate) fn due(&mut self) -> &mut VecDeque<Due> {
        &mut self.due
    }
    /// Whether some request of its owner may block.
    pub(crate) fn blocks(&self) -> bool {
        self.due.iter().any(|due| matches!(due.expect, Expect::Block(_)))
    }

    /// What is due of the request whose bytes begin there.
    pub(crate) fn due_at(&mut self, begin: u64) -> Option<&mut Due> {
        let at = self.due.partition_point(|due| due.begin < begin);
        self.due.get_mut(at).filter(|due| due.begin == begin)
    }

    /// Puts a request behind the others. `db`: where it runs, if that matters.
    pub(crate) fn ask(&mut self, pieces: &[&[u8]], db: Option<u8>, mut due: Due, now_ms: u64) {
        if self.due.is_empty() {
            self.stirred_ms = now_ms;
        }
        if db.is_some() && db != self.db {
            let number = db.unwrap_or_default().to_string();
            self.due.push_back(Due { begin: self.end(), ..Due::new(None, Expect::Database, true) });
            request(None, &Texts(&["SELECT", &number]), &mut self.out);
            self.gates.push_back(self.end());
            self.db = db;
        }
        (due.begin, due.db, due.lends) = (self.end(), db, self.lends);
        pieces.iter().for_each(|piece| self.out.extend_from_slice(piece));
        if let Expect::Select(db) = due.expect {
            self.gates.push_back(self.end());
            self.db = Some(db);
        }
        self.due.push_back(due);
    }
    /// So many of the bytes may be sent.
    fn limit(&self) -> usize {
        let gate = self.gates.front().copied().into_iter().chain(self.held_at).min();
        gate.map_or(self.out.len(), |gate| (gate - self.base) as usize)
    }
    /// What is asked from now on is not sent before this is taken back.
    pub(crate) fn hold(&mut self) {
        self.held_at = Some(self.end());
    }
    pub(crate) fn hold_no_more(&mut self) {
        self.held_at = None;
    }
    /// Takes away the last request, which begins there, if it waits behind that. Says whether it has.
    pub(crate) fn take_back(&mut self, begin: u64) -> bool {
        let is_held = self.held_at.is_some_and(|held_at| begin >= held_at);
        let is_it = is_held && self.due.back().is_some_and(|due| due.begin == begin);
        if is_it {
            self.due.pop_back();
            self.out.truncate((begin - self.base) as usize);
        }
        is_it
    }
    /// Has the server refuse a request that is tried as a transaction of it alone, as one that it does not know: unless
    /// some of its name was sent.
    pub(crate) fn void(&mut self, begin: u64) {
        let at = (begin - self.base) as usize + MULTI.len();
        let mut lines = self.out.iter().enumerate().skip(at).filter(|(_, byte)| **byte == b'\n');
        if let Some((line, _)) = lines.nth(1)
            && line + 1 >= self.sent
        {
            self.out[line + 1] = b'!';
        }
    }
    /// A database was selected: what is behind that may go.
    pub(crate) fn is_selected(&mut self) {
        self.gates.pop_front();
    }
    /// It was refused: takes away what was to run in it, up to where the next one is selected. Nothing of it was sent.
    pub(crate) fn refused(&mut self) -> Vec<(Due, Vec<u8>)> {
        self.gates.pop_front();
        if self.gates.is_empty() {
            self.db = None;
        }
        let selects = |due: &Due| matches!(due.expect, Expect::Database | Expect::Select(_));
        let count = self.due.iter().position(selects).unwrap_or(self.due.len());
        let end = self.due.get(count).map_or(self.end(), |next| next.begin);
        let base = self.base;
        let place = |at: u64| (at - base) as usize;
        self.sent = place(end);
        let ends: Vec<u64> = self.due.iter().take(count).skip(1).map(|due| due.begin).chain([end]).collect();
        let bytes = |due: &Due, end| self.out[place(due.begin)..place(end)].to_vec();
        let with_bytes = |(due, end)| {
            let bytes = bytes(&due, end);
            (due, bytes)
        };
        self.due.drain(..count).zip(ends).map(with_bytes).collect()
    }
    fn end(&self) -> u64 {
        self.base + self.out.len() as u64
    }

    /// Sends what the socket takes. The error says what is wrong with the connection.
    pub(crate) fn send(&mut self) -> Result<(), String> {
        self.dirty = false;
        self.share.set(self.out.len());
        let end = self.limit();
        let Some(wire) = &mut self.wire else { return Ok(()) };
        while self.sent < end || wire.keeps_some() {
            match wire.send(&self.out[self.sent..end]) {
                Ok(0) if self.sent == end => break,
                Ok(len) => self.sent += len,
                Err(error) => match io::Error::from(error).kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => break,
                    _ => return Err(io::Error::from(error).to_string()),
                },
            }
        }
        self.forget_answered();
        Ok(())
    }

    /// Gives back the memory of requests that are answered, by and by.
    fn forget_answered(&mut self) {
        let sent = self.base + self.sent as u64;
        let begin = self.due.front().map_or(sent, |due| due.begin.min(sent));
        let answered = (begin - self.base) as usize;
        if answered == self.out.len() {
            self.out.clear();
            self.out.shrink_to(EMPTY_BYTES_MAX);
        } else if answered > EMPTY_BYTES_MAX && answered > self.out.len() / 2 {
            self.out.drain(..answered);
        } else {
            return;
        }
        self.base = begin;
        self.sent -= answered;
        self.share.set(self.out.len());
    }

    /// Takes all requests that are not answered, with their bytes and whether they were sent, in part at least.
    pub(crate) fn take_unanswered(&mut self) -> Vec<(Due, Vec<u8>, bool)> {
        let ends: Vec<u64> = self.due.iter().skip(1).map(|due| due.begin).chain([self.end()]).collect();
        let place = |at: u64| (at - self.base) as usize;
        let take = |(due, end): (Due, u64)| {
            let (begin, end) = (place(due.begin), place(end));
            let bytes = self.out[begin..end].to_vec();
            (due, bytes, begin < self.sent)
        };
        std::mem::take(&mut self.due).into_iter().zip(ends).map(take).collect()
    }

    /// Receives once. Says whether there may be more.
    pub(crate) fn receive(&mut self, now_ms: u64) -> Result<bool, String> {
        let Some(wire) = &mut self.wire else { return Ok(false) };
        if self.at > 0 {
            self.input.drain(..self.at);
            self.at = 0;
        }
        let before = self.input.len();
        self.input.resize(before + RECEIVE_BYTES, 0);
        let received = wire.receive(&mut self.input[before..]);
        let len = *received.as_ref().unwrap_or(&0);
        self.input.truncate(before + len);
        match received {
            Ok(0) => Err("the server closed it".into()),
            Ok(len) => {
                self.stirred_ms = now_ms;
                Ok(len == RECEIVE_BYTES || self.ends)
            }
            Err(error) => match io::Error::from(error).kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
                _ => Err(io::Error::from(error).to_string()),
            },
        }
    }

    /// Passes over what has come of a reply that cannot be read. When that is over, an error stands in its place.
    fn pass_over(&mut self) -> Result<(), String> {
        let Some((skip, why)) = &mut self.skip else { return Ok(()) };
        let Some(len) = skip.pass(&self.input[self.at..]) else { return Err(std::mem::take(why)) };
        self.at += len;
        if skip.is_over() {
            let error = format!("-ERR {NOT_READ}: {why}\r\n");
            // Whoever waits for EXEC's reply is told of each request.
            let count = self.due.front().map_or(0, |due| due.multi.saturating_sub(1) as usize);
            let head = if count > 0 { format!("*{count}\r\n") } else { String::new() };
            let instead = [head, error.repeat(count.max(1))].concat();
            self.input.splice(..self.at, instead.into_bytes());
            (self.at, self.skip) = (0, None);
        }
        Ok(())
    }

    /// The next reply of what has come.
    pub(crate) fn next(&mut self) -> Came {
        loop {
            if let Err(why) = self.pass_over() {
                return Came::Broken(format!("its reply cannot be read: {why}"));
            }
            if self.skip.is_some() {
                return Came::Nothing;
            }
            let bytes = &self.input[self.at..];
            if bytes.is_empty() {
                self.input.clear();
                self.input.shrink_to(EMPTY_BYTES_MAX);
                self.at = 0;
                self.forget_answered();
                return Came::Nothing;
            }
            let frame = match self.decoder.decode(bytes, &mut Passed) {
                Outcome::Complete(frame) => frame,
                Outcome::Incomplete { .. } => return Came::Nothing,
                Outcome::Invalid(error) if bytes[0] != b'>' => {
                    // It may have been read in part before.
                    self.decoder = ReplyDecoder::new(LIMITS);
                    self.skip = Some((Skip::new(), error.to_string()));
                    continue;
                }
                Outcome::Invalid(error) => return Came::Broken(format!("its reply cannot be read: {error}")),
            };
            let place = self.at..self.at + frame.len;
            self.at = place.end;
            if frame.push {
                return Came::Push(place);
            }
            let Some(due) = self.due.front_mut() else {
                return Came::Broken("a reply came that nobody has asked for".into());
            };
            let reply = &self.input[place.clone()];
            if due.skip > 0 {
                if !due.skips_over(reply) {
                    return Came::Broken(OUT_OF_TURN.into());
                }
                due.skip -= 1;
                if reply[0] == b'-' && due.failed.is_none() {
                    due.failed = Some(reply.into());
                }
                continue;
            }
            let is_queued = reply == QUEUED;
            // There is one: it has just been looked at.
            let Some(due) = self.due.pop_front() else { return Came::Nothing };
            if is_queued && !self.may_say_anything(&due) {
                // Whoever waits for it is told with the others.
                self.due.push_front(due);
                return Came::Broken(OUT_OF_TURN.into());
            }
            return Came::Reply(Box::new(due), place);
        }
    }
    /// Whether the request whose reply has just come is a script or program, whose replies are its own.
    pub(crate) fn may_say_anything(&self, due: &Due) -> bool {
        let end = self.due.front().map_or(self.end(), |next| next.begin);
        let bytes = &self.out[(due.begin - self.base) as usize..(end - self.base) as usize];
        requests(bytes).nth(due.skips as usize).is_some_and(runs_logic)
    }
    /// As if this had come.
    #[cfg(test)]
    pub(crate) fn hears(&mut self, bytes: &str) {
        self.input.extend_from_slice(bytes.as_bytes());
    }
    /// A reply by its place.
    pub(crate) fn reply(&self, place: Range<usize>) -> &[u8] {
        &self.input[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    const INCR: &[u8] = b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n";

    fn asked(pieces: &[(&[u8], Option<u8>)]) -> Link {
        let mut link = Link::new(1, false, false, 0);
        pieces
            .iter()
            .for_each(|(bytes, db)| link.ask(&[bytes], *db, Due::new(None, Expect::Plain, false), 0));
        link
    }

    /// As if so many bytes had gone, and this had come.
    fn heard(link: &mut Link, sent: usize, input: &[u8]) -> usize {
        link.sent = sent;
        link.input.extend_from_slice(input);
        let mut replies = 0;
        while let Came::Reply(..) = link.next() {
            replies += 1;
        }
        replies
    }

    #[test]
    fn what_is_not_answered_is_kept_with_whether_it_was_sent() {
        let mut link = asked(&[(GET, Some(0)), (INCR, Some(0)), (GET, Some(3))]);
        assert_eq!(heard(&mut link, GET.len() + 1, b"+v\r\n"), 1);
        let left: Vec<_> = link.take_unanswered();
        let left: Vec<_> = left.iter().map(|(due, bytes, sent)| (due.db, bytes.as_slice(), *sent)).collect();
        let select = b"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n".as_slice();
        assert_eq!(left, [(Some(0), INCR, true), (None, select, false), (Some(3), GET, false)]);
    }

    /// Requests with what is due for each, all of them sent, and what comes: how many replies are handed out before
    /// the connection is found to be out of turn, if it is.
    fn until_broken(asked: Vec<(Vec<u8>, Due)>, input: &[u8]) -> (usize, bool) {
        let mut link = Link::new(1, false, false, 0);
        for (bytes, due) in asked {
            link.ask(&[&bytes], Some(0), due, 0);
        }
        (link.sent, link.input) = (link.out.len(), input.to_vec());
        let mut replies = 0;
        loop {
            match link.next() {
                Came::Reply(..) => replies += 1,
                Came::Broken(_) => return (replies, true),
                Came::Nothing | Came::Push(_) => return (replies, false),
            }
        }
    }

    #[test]
    fn a_connection_that_is_out_of_turn_hands_out_nothing_more() {
        let plain = |bytes: &[u8]| (bytes.to_vec(), Due::new(None, Expect::Plain, false));
        let of_two = || {
            let bytes = [b"*1\r\n$5\r\nMULTI\r\n", GET, INCR, b"*1\r\n$4\r\nEXEC\r\n"].concat();
            (bytes, Due::new(None, Expect::Exec, false).queueing(2))
        };
        let right = b"+OK\r\n+QUEUED\r\n-ERR no\r\n-EXECABORT no\r\n$1\r\nv\r\n";
        assert_eq!(until_broken(vec![of_two(), plain(GET)], right), (2, false));
        // It stands in somebody's transaction.
        assert_eq!(until_broken(vec![plain(GET), plain(INCR)], b"$1\r\nv\r\n+QUEUED\r\n:1\r\n"), (1, true));
        // One reply too many, or too few, has come before.
        let late = b"$1\r\nv\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\nv\r\n:1\r\n";
        assert_eq!(until_broken(vec![of_two(), plain(GET)], late), (0, true));
        let early = b"+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\nv\r\n:1\r\n$1\r\nv\r\n";
        assert_eq!(until_broken(vec![of_two(), plain(GET)], early), (0, true));
        assert_eq!(until_broken(vec![of_two()], b"+OK\r\n+QUEUED\r\n+OK\r\n"), (0, true));
        // Scripts say what they like.
        let eval = b"*3\r\n$4\r\neval\r\n$25\r\nreturn {ok = 'QUEUED'}   \r\n$1\r\n0\r\n";
        assert_eq!(until_broken(vec![plain(eval), plain(GET)], b"+QUEUED\r\n$1\r\nv\r\n"), (2, false));
        // What stands before a request is not the request.
        let asking = [crate::orders::ASKING, GET].concat();
        let asked = || vec![(asking.clone(), Due::new(None, Expect::Plain, false).skipping(1))];
        assert_eq!(until_broken(asked(), b"+OK\r\n+QUEUED\r\n"), (0, true));
        assert_eq!(until_broken(asked(), b"+OK\r\n$1\r\nv\r\n"), (1, false));
    }

    #[test]
    fn what_is_voided_is_refused_unless_its_name_was_sent() {
        let request = b"*3\r\n$5\r\nBLPOP\r\n$1\r\nl\r\n$1\r\n0\r\n".as_slice();
        let name = MULTI.len() + b"*3\r\n$5\r\n".len();
        for (sent, is_void) in [(0, true), (MULTI.len(), true), (name, true), (name + 1, false), (70, false)]
        {
            let mut link = asked(&[(GET, Some(0)), (INCR, Some(0))]);
            let begin = link.end();
            link.ask(
                &[MULTI, request, crate::upstream::EXEC],
                Some(0),
                Due::new(None, Expect::Exec, false),
                0,
            );
            link.sent = begin as usize + sent;
            link.void(begin);
            let all = [GET, INCR, MULTI, request, crate::upstream::EXEC].concat();
            let voided = String::from_utf8_lossy(&all).replace("BLPOP", "!LPOP").into_bytes();
            assert_eq!(link.out, if is_void { voided } else { all }, "{sent} were sent");
        }
    }

    #[test]
    fn what_is_answered_is_not_kept() {
        let large = vec![b'x'; EMPTY_BYTES_MAX + 1];
        let mut link = asked(&[(&large, Some(0)), (GET, Some(0))]);
        assert_eq!(heard(&mut link, large.len() + GET.len(), b"+OK\r\n"), 1);
        assert_eq!((link.waiting(), link.has_unsent()), (GET.len(), false));
        assert_eq!(heard(&mut link, GET.len(), b"$-1\r\n"), 1);
        assert_eq!((link.waiting(), link.out.capacity() <= EMPTY_BYTES_MAX), (0, true));
        // A reply that came before its request had gone gives nothing back that has still to go.
        let mut link = asked(&[(GET, Some(0)), (INCR, Some(0))]);
        assert_eq!(heard(&mut link, 3, b"+v\r\n"), 1);
        assert_eq!((link.waiting(), link.has_unsent()), (GET.len() + INCR.len(), true));
    }
}
