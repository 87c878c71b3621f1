//! Owns: what a reply that has come means for whoever waits for it, and for its connection; the gateway's own errors.
//! Does not own: connections (`crate::link`), who has one (`crate::upstream`).

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;

use weft_client::Address;
use weft_engine::Postponed;
use weft_engine::blocking::End;
use weft_engine::error::{Error, ErrorCode};
use weft_engine::mailbox::Recipient;
use weft_engine::tracking::Names;

use crate::dial::{Checks, UNCHECKED};
use crate::link::{Asleep, Due, Expect, Link, OK, Tried};
use crate::scripts::words;

/// Whose a request is, and which of his.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whose {
    /// His address.
    pub to: Recipient,
    /// The number that it was given when it was sent; 0 for none. A cluster's client may be answered by several nodes.
    pub stamp: u64,
}

impl Whose {
    pub(crate) const fn client(&self) -> u64 {
        self.to.client
    }
}

impl From<Recipient> for Whose {
    fn from(to: Recipient) -> Self {
        Self { to, stamp: 0 }
    }
}

/// What a client is to be told.
#[derive(Debug)]
pub enum Answer<'a> {
    /// A whole reply as it came. `resp2`: over RESP2.
    Reply {
        /// Its bytes.
        bytes: &'a [u8],
        /// Its protocol.
        resp2: bool,
    },
    /// SELECT has succeeded: the client is in this database.
    Selected {
        /// This one.
        db: u8,
        /// It does not want to hear so.
        silent: bool,
    },
    /// An error of the gateway's own: it has not run.
    Error(Error),
    /// It has not run, or only reads: it may go again, elsewhere; or this is its answer.
    NotRun(Error),
    /// Whether it has run is not known.
    Doubt(Error),
    /// Null, where RESP2 has a null array.
    Null,
    /// Nothing, but its request is over.
    Nothing,
    /// What it asked to be subscribed to comes: this request is to run now.
    Confirmed(Box<Postponed>),
}

/// An answer that waits for those before it.
#[derive(Clone, Debug)]
pub(crate) enum Arrived {
    Reply(Vec<u8>, bool),
    Selected(u8),
    /// It has not run.
    Error(Error),
    /// Whether it has is not known.
    Doubt(Error),
    Null,
    Nothing,
}

impl Arrived {
    pub(crate) fn of(answer: Answer<'_>) -> Self {
        match answer {
            Answer::Reply { bytes, resp2 } => Self::Reply(bytes.to_vec(), resp2),
            Answer::Selected { db, .. } => Self::Selected(db),
            Answer::Error(error) | Answer::NotRun(error) => Self::Error(error),
            Answer::Doubt(error) => Self::Doubt(error),
            Answer::Null => Self::Null,
            Answer::Nothing | Answer::Confirmed(_) => Self::Nothing,
        }
    }
}

/// Clients and their worker, as the upstream sees them.
pub trait Front {
    /// A request that was forwarded is over. A client that is gone is passed over.
    fn answer(&mut self, whose: Whose, answer: Answer<'_>);
    /// Has the worker tell of a socket, under this place, once for each change. `false` if it cannot.
    fn watch(&mut self, socket: BorrowedFd<'_>, place: u32) -> bool;
    /// So many bytes of a client's replies wait for others from now on, beside what it is owed.
    fn holds(&mut self, to: Recipient, bytes: usize);
    /// A client is about to be passed a reply of keys that the server tells of when they change.
    fn track(&mut self, to: Recipient, names: &Names);
    /// It has been passed a reply that was held back, or whose keys the server does not tell of: what is not noted any
    /// more it must not keep.
    fn track_late(&mut self, to: Recipient, names: &Names);
    /// Keys have changed; without names, any.
    fn changed(&mut self, names: Option<&[Box<[u8]>]>);
    /// Whether a request of a client may wait for what others do. That of one who sends no more may not: it is let go,
    /// and the client's end looked at again.
    fn may_wait(&mut self, to: Recipient) -> bool;
    /// Whoever runs the gateway is to know something.
    fn warn(&mut self, text: &str);
}

/// What follows a reply.
pub(crate) enum Next {
    GoOn,
    /// The connection is nobody's any more.
    Free,
    /// Nor is what is watched over it anybody's.
    Unwatch,
    /// This one was woken.
    Woken(Asleep),
    /// It was not, and maybe has not begun to block.
    NotWoken(Asleep),
    /// One answer less must come before somebody else has the connection.
    Cleared,
    /// The request has found nothing: it waits, over a connection of its own.
    Wait(Whose, bool, bool, Box<Tried>),
    /// It may be that the server is no master any more.
    Doubt,
    /// A database was not selected, with this error: nothing may run that was to run in it.
    Refused(Box<[u8]>),
    /// The connection cannot be used.
    End(String),
}

/// Answers a request; one whose reply nobody wants is over without.
pub(crate) fn deliver(front: &mut impl Front, whose: impl Into<Whose>, silent: bool, answer: Answer<'_>) {
    front.answer(
        whose.into(),
        match answer {
            Answer::Selected { db, .. } => Answer::Selected { db, silent },
            _ if silent => Answer::Nothing,
            answer => answer,
        },
    );
}

/// The same of a reply that is due; nobody is told of one whose client is gone.
fn deliver_due(front: &mut impl Front, due: &Due, answer: Answer<'_>) {
    if let Some(to) = due.to {
        deliver(front, to, due.silent, answer);
    }
}

/// A reply has come.
pub(crate) fn replied(
    link: &mut Link,
    due: Due,
    place: Range<usize>,
    checks: &Checks,
    front: &mut impl Front,
) -> Next {
    link.asks_role &= !matches!(due.expect, Expect::Role);
    let bytes = link.reply(place.clone());
    // EXEC does not say why: what was queued does.
    let says = due.failed.as_deref().filter(|_| is_error(bytes)).unwrap_or(bytes);
    let says_copy = says.starts_with(b"-READONLY");
    let is_copy = checks.moves && says_copy;
    let is_scripts = says_copy && link.may_say_anything(&due);
    let tracked = due.to.zip(due.tracks.clone()).filter(|_| !is_error(bytes));
    // One that was refused before it may have been what notes it.
    let is_noted = due.noted && due.failed.is_none();
    if let Some((whose, names)) = &tracked
        && is_noted
    {
        front.track(whose.to, names);
    }
    let next = match due.expect {
        Expect::Aside
        | Expect::Database
        | Expect::Own
        | Expect::Role
        | Expect::Tracking
        | Expect::Unblock(..) => of_gateway(link, &due.expect, place),
        Expect::Exec | Expect::Try(..) => of_transaction(link, due, place, front),
        _ => of_client(link, due, place, checks, front),
    };
    if let Some((whose, names)) = &tracked
        && !is_noted
    {
        front.track_late(whose.to, names);
    }
    link.refused_write = says_copy.then_some(is_scripts);
    match is_copy {
        true if is_scripts => Next::Doubt,
        true => Next::End(NO_MASTER.into()),
        false => next,
    }
}

/// One that nobody but the gateway waits for.
fn of_gateway(link: &mut Link, expect: &Expect, place: Range<usize>) -> Next {
    let bytes = link.reply(place);
    match expect {
        Expect::Database if is_error(bytes) => return Next::Refused(bytes.into()),
        Expect::Database if bytes != OK => return Next::End(text(bytes)),
        Expect::Database => link.is_selected(),
        Expect::Role if !is_error(bytes) && words(bytes).next().is_none_or(|role| role != b"master") => {
            return Next::End(NO_MASTER.into());
        }
        Expect::Unblock(asleep) if bytes == b":1\r\n" => return Next::Woken(*asleep),
        Expect::Unblock(asleep) => return Next::NotWoken(*asleep),
        // Nothing is noted then of what is read; the next read asks again.
        Expect::Tracking => link.tracks = bytes == OK,
        // Those that answer by a line answer OK.
        Expect::Own if is_error(bytes) || bytes.first() == Some(&b'+') && bytes != OK => {
            return Next::End(text(bytes));
        }
        Expect::Own => return Next::Cleared,
        _ => {}
    }
    Next::GoOn
}

/// One of a client's request.
fn of_client(
    link: &mut Link,
    due: Due,
    place: Range<usize>,
    checks: &Checks,
    front: &mut impl Front,
) -> Next {
    let (bytes, resp2) = (link.reply(place), link.resp2);
    // It may be another client's by now.
    let free = if due.lends == link.lends { Next::Free } else { Next::GoOn };
    match due.expect {
        Expect::Track(_) if is_error(bytes) => {
            let text = format!("the server behind the gateway does not tell of changes: {}", text(bytes));
            deliver_due(front, &due, Answer::Error(Error::err(text)));
        }
        Expect::Track(request) => {
            if let Some(to) = due.to {
                front.answer(to, Answer::Confirmed(request));
            }
            link.tracks = true;
        }
        Expect::Instead(ref error) => deliver_due(front, &due, Answer::Error((**error).clone())),
        Expect::Select(_) if is_error(bytes) => {
            deliver_due(front, &due, Answer::Reply { bytes, resp2 });
            return Next::Refused(bytes.into());
        }
        Expect::Select(db) => {
            link.is_selected();
            checks.db_max.fetch_max(db, Relaxed);
            deliver_due(front, &due, Answer::Selected { db, silent: due.silent });
        }
        Expect::Block(Some(end)) if bytes.starts_with(b"-UNBLOCKED") => {
            if let Some(to) = due.to {
                deliver_end(front, to, due.silent, end);
            }
            return match link.watches {
                // Nothing more of it comes that what it watches would matter to.
                true if end == End::Gone => Next::Unwatch,
                true => Next::GoOn,
                false => free,
            };
        }
        Expect::Block(_) => {
            deliver_due(front, &due, Answer::Reply { bytes, resp2 });
            return match link.watches {
                // It closes the connection behind that.
                _ if bytes.starts_with(COPY_NOW) => Next::End(NO_MASTER.into()),
                true => Next::GoOn,
                false => free,
            };
        }
        Expect::Alone => {
            deliver_due(front, &due, Answer::Reply { bytes, resp2 });
            return match link.watches {
                true => Next::GoOn,
                false if link.id == UNCHECKED => Next::End("it was made while a script ran".into()),
                false => free,
            };
        }
        Expect::Watch => {
            let is_watched = bytes == OK && due.lends == link.lends;
            deliver_due(front, &due, Answer::Reply { bytes, resp2 });
            link.watched = link.watched.saturating_add(u32::from(is_watched));
        }
        _ => deliver_due(front, &due, Answer::Reply { bytes, resp2 }),
    }
    Next::GoOn
}

/// One to EXEC.
fn of_transaction(link: &mut Link, mut due: Due, place: Range<usize>, front: &mut impl Front) -> Next {
    let (bytes, resp2) = (link.reply(place), link.resp2);
    let is_open = is_error(bytes) && !is_over(bytes);
    let Expect::Try(request, unblocked) = std::mem::replace(&mut due.expect, Expect::Exec) else {
        if is_open {
            let why = still_open(bytes);
            deliver_due(front, &due, Answer::Doubt(in_doubt(bytes)));
            link.watches = false;
            return Next::End(why);
        }
        let answer = match due.failed.as_deref().filter(|_| is_error(bytes)) {
            // Without MULTI all that was behind it has run, but for what was refused.
            _ if bytes.starts_with(NO_MULTI) => Answer::Doubt(in_doubt(bytes)),
            Some(first) if Redirect::of(first).is_some() => Answer::Reply { bytes: first, resp2 },
            Some(first) => Answer::Error(aborted(first)),
            None => Answer::Reply { bytes, resp2 },
        };
        deliver_due(front, &due, answer);
        // It may be another client's by now.
        return if due.lends == link.lends { Next::Free } else { Next::GoOn };
    };
    if is_open {
        let answer = unblocked.map_or_else(|| Answer::Doubt(in_doubt(bytes)), ended);
        deliver_due(front, &due, answer);
        return Next::End(still_open(bytes));
    }
    let inner = bytes.strip_prefix(b"*1\r\n");
    let is_nothing = inner.is_some_and(|inner| matches!(inner, b"_\r\n" | b"$-1\r\n" | b"*-1\r\n"));
    match (due.failed.as_deref(), due.to) {
        // It says by itself what is wrong with it, unless it was voided.
        (Some(first), _) => match unblocked {
            Some(end) => deliver_due(front, &due, ended(end)),
            None => deliver_due(front, &due, Answer::Reply { bytes: first, resp2 }),
        },
        (None, Some(to)) if is_nothing => match unblocked {
            Some(end) => deliver(front, to, due.silent, ended(end)),
            None => return Next::Wait(to, due.silent, resp2, request),
        },
        (None, _) => deliver_due(front, &due, Answer::Reply { bytes: inner.unwrap_or(bytes), resp2 }),
    }
    Next::GoOn
}

fn is_error(reply: &[u8]) -> bool {
    reply.first() == Some(&b'-')
}

/// What a server says to whoever blocks when it becomes a copy: nothing was taken.
pub(crate) const COPY_NOW: &[u8] = b"-UNBLOCKED force unblock";

const NO_MASTER: &str = "the server takes only reads: it is no master any more";

/// What a node says instead of running a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// The slot is that node's.
    Moved(Address),
    /// This time that node is to be asked.
    Ask(Address),
    /// Not now.
    Later,
    /// At once, put otherwise.
    Otherwise,
}

impl Redirect {
    /// What an error reply tells, if it is one of these.
    pub(crate) fn of(reply: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(reply).ok()?.strip_prefix('-')?.trim_end();
        let mut words = line.split(' ');
        let kind = words.next()?;
        match kind {
            "MOVED" | "ASK" => {
                let (host, port) = words.nth(1)?.rsplit_once(':')?;
                let address = Address::Tcp(host.into(), port.parse().ok()?);
                Some(if kind == "ASK" { Self::Ask(address) } else { Self::Moved(address) })
            }
            "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" => Some(Self::Later),
            _ => None,
        }
    }
}

/// The answer to a request whose wait was ended before it began.
pub(crate) fn ended(end: End) -> Answer<'static> {
    match end {
        End::Timeout => Answer::Null,
        End::Error => Answer::Error(ErrorCode::Unblocked.into()),
        End::Cancel => Answer::Error(ErrorCode::Cancelled.into()),
        End::Leaving | End::Gone => Answer::Nothing,
    }
}

/// A wait has been ended. Who sends no more has found nothing, and is let go.
pub(crate) fn deliver_end(front: &mut impl Front, whose: Whose, silent: bool, end: End) {
    match end {
        End::Gone => _ = front.may_wait(whose.to),
        end => deliver(front, whose, silent, ended(end)),
    }
}

const NO_MULTI: &[u8] = b"-ERR EXEC without MULTI";

/// Whether an error is the end of a transaction. Other servers, or older ones, refuse EXEC itself and leave MULTI open.
fn is_over(error: &[u8]) -> bool {
    let ends: [&[u8]; 6] = [b"-EXECABORT ", b"-MOVED ", b"-ASK ", b"-TRYAGAIN ", b"-CLUSTERDOWN ", NO_MULTI];
    ends.iter().any(|end| error.starts_with(end))
}

fn still_open(error: &[u8]) -> String {
    format!("it has left a transaction open, whose EXEC it has refused: {}", text(error))
}

fn in_doubt(error: &[u8]) -> Error {
    let text = format!("the server behind the gateway has refused EXEC ({})", text(error));
    Error::new(ErrorCode::Upstream, format!("{text}: whether the transaction has run is not known"))
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end().trim_start_matches('-').to_string()
}

/// What EXEC answers when the server has refused what was queued: with the reason.
fn aborted(first: &[u8]) -> Error {
    Error::new(ErrorCode::ExecAbort, format!("Transaction discarded because of: {}", text(first)))
}
/// The reason in such an error.
pub(crate) fn aborted_by(line: &str) -> Option<&str> {
    line.strip_prefix("-EXECABORT Transaction discarded because of: ")
}

/// Why there is no connection to a server that is there and runs a script: its own word is passed on.
pub(crate) const BUSY: &str = "BUSY";

pub(crate) fn unreachable(why: &str) -> Error {
    if why == BUSY {
        return ErrorCode::Busy.into();
    }
    Error::new(ErrorCode::Upstream, format!("the server behind the gateway cannot be reached: {why}"))
}

pub(crate) fn keeps_too_much(bytes_max: usize) -> Error {
    let text = format!("the gateway keeps too much that is not answered ({bytes_max} bytes in a worker)");
    Error::new(ErrorCode::Limit, text)
}

/// For a reply that waits for others there is no room: its request has run.
pub(crate) fn holds_too_much(bytes_max: usize) -> Error {
    let text = format!(
        "the gateway keeps too much that is not answered ({bytes_max} bytes in a worker): the request has been answered, \
         and its reply, which has to wait for others, is not kept"
    );
    Error::new(ErrorCode::Limit, text)
}

pub(crate) fn lost(why: &str, sent: bool) -> Error {
    let known = if sent { "whether the request has run is not known" } else { "the request was not sent" };
    Error::new(
        ErrorCode::Upstream,
        format!("the connection to the server behind the gateway was lost ({why}): {known}"),
    )
}
