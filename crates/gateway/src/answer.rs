//! Owns: what a reply that has come means for whoever waits for it, and for its connection; the gateway's own errors.
//! Does not own: connections (`crate::link`), who has one (`crate::upstream`).

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;

use weft_client::Address;
use weft_engine::Postponed;
use weft_engine::blocking::End;
use weft_engine::error::{Error, ErrorCode};
use weft_engine::mailbox::Recipient;
use weft_engine::tracking::Names;

use crate::dial::{Checks, UNCHECKED};
use crate::link::{Due, Expect, Link, OK};
use crate::scripts::words;

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
    /// An error of the gateway's own.
    Error(Error),
    /// It has not run, or only reads: it may go again, elsewhere; or this is its answer.
    NotRun(Error),
    /// Null, where RESP2 has a null array.
    Null,
    /// Nothing, but its request is over.
    Nothing,
    /// What it asked to be subscribed to comes: this request is to run now.
    Confirmed(Box<Postponed>),
}

/// An answer that waits for those before it.
#[derive(Debug)]
pub(crate) enum Held {
    Reply(Vec<u8>, bool),
    Selected(u8),
    Error(Error),
    Null,
    Nothing,
}

impl Held {
    pub(crate) fn of(answer: Answer<'_>) -> Self {
        match answer {
            Answer::Reply { bytes, resp2 } => Self::Reply(bytes.to_vec(), resp2),
            Answer::Selected { db, .. } => Self::Selected(db),
            Answer::Error(error) | Answer::NotRun(error) => Self::Error(error),
            Answer::Null => Self::Null,
            Answer::Nothing | Answer::Confirmed(_) => Self::Nothing,
        }
    }
}

/// Clients and their worker, as the upstream sees them.
pub trait Front {
    /// A request that was forwarded is over. A client that is gone is passed over.
    fn answer(&mut self, to: Recipient, answer: Answer<'_>);
    /// Has the worker tell of a socket, under this place, once for each change. `false` if it cannot.
    fn watch(&mut self, socket: BorrowedFd<'_>, place: u32) -> bool;
    /// A client is about to be passed a reply of keys that the server tells of when they change.
    fn track(&mut self, to: Recipient, names: &Names);
    /// It has been passed a reply that was held back, or whose keys the server does not tell of: what is not noted any
    /// more it must not keep.
    fn held(&mut self, to: Recipient, names: &Names);
    /// Keys have changed; without names, any.
    fn changed(&mut self, names: Option<&[Box<[u8]>]>);
}

/// What follows a reply.
pub(crate) enum Next {
    GoOn,
    /// The connection is nobody's any more.
    Free,
    /// Who blocked at this place, over the connection of this attempt, is not woken any more.
    Woken(u32, u64),
    /// One answer less must come before somebody else has the connection.
    Cleared,
    /// The request has found nothing: it waits, over a connection of its own.
    Wait(Recipient, bool, bool, Box<[u8]>),
    /// It may be that the server is no master any more.
    Doubt,
    /// A database was not selected, with this error: nothing may run that was to run in it.
    Refused(Box<[u8]>),
    /// The connection cannot be used.
    End(String),
}

/// Answers a request; one whose reply nobody wants is over without.
pub(crate) fn tell(front: &mut impl Front, to: Recipient, silent: bool, answer: Answer<'_>) {
    front.answer(
        to,
        match answer {
            Answer::Selected { db, .. } => Answer::Selected { db, silent },
            _ if silent => Answer::Nothing,
            answer => answer,
        },
    );
}

/// A reply has come.
pub(crate) fn replied(
    link: &mut Link,
    due: Due,
    place: std::ops::Range<usize>,
    checks: &Checks,
    front: &mut impl Front,
) -> Next {
    let (resp2, mut tracks) = (link.resp2, link.tracks);
    link.asks_role &= !matches!(due.expect, Expect::Role);
    let bytes = link.reply(place);
    let is_error = bytes.first() == Some(&b'-');
    let is_copy = checks.moves && bytes.starts_with(b"-READONLY");
    let is_scripts = is_copy && link.may_say_anything(&due);
    let tell = |front: &mut dyn FnMut(Recipient, Answer<'_>), answer| {
        if let Some(to) = due.to {
            front(to, if due.silent { Answer::Nothing } else { answer });
        }
    };
    let tracked = match (due.to, &due.tracks) {
        (Some(to), Some(names)) if !is_error => Some((to, names)),
        _ => None,
    };
    // One that was refused before it may have been what notes it.
    let is_noted = due.noted && due.failed.is_none();
    if let Some((to, names)) = tracked
        && is_noted
    {
        front.track(to, names);
    }
    let behind = &mut *front;
    let mut front = |to, answer: Answer<'_>| behind.answer(to, answer);
    let mut next = Next::GoOn;
    // It may be another client's by now.
    let free = if due.lends == link.lends { Next::Free } else { Next::GoOn };
    match due.expect {
        Expect::Aside => {}
        Expect::Database if is_error => next = Next::Refused(bytes.into()),
        Expect::Database if bytes != OK => next = Next::End(text(bytes)),
        Expect::Database => link.is_selected(),
        Expect::Role => {
            if !is_error && words(bytes).next().is_none_or(|role| role != b"master") {
                next = Next::End(NO_MASTER.into());
            }
        }
        Expect::Unblock(at, attempt) => next = Next::Woken(at, attempt),
        // Those that answer by a line answer OK.
        Expect::Own if is_error || bytes.first() == Some(&b'+') && bytes != OK => {
            next = Next::End(text(bytes));
        }
        Expect::Own => next = Next::Cleared,
        Expect::Track(_) if is_error => {
            let text = format!("the server behind the gateway does not tell of changes: {}", text(bytes));
            tell(&mut front, Answer::Error(Error::err(text)));
        }
        Expect::Track(request) => {
            if let Some(to) = due.to {
                front(to, Answer::Confirmed(request));
            }
            tracks = true;
        }
        Expect::Plain | Expect::Watch => tell(&mut front, Answer::Reply { bytes, resp2 }),
        Expect::Select(db) if !is_error => {
            link.is_selected();
            checks.db_max.fetch_max(db, Relaxed);
            if let Some(to) = due.to {
                front(to, Answer::Selected { db, silent: due.silent });
            }
        }
        Expect::Select(_) => {
            tell(&mut front, Answer::Reply { bytes, resp2 });
            next = Next::Refused(bytes.into());
        }
        Expect::Exec if is_error && !is_over(bytes) => {
            tell(&mut front, Answer::Error(in_doubt(bytes)));
            next = Next::End(still_open(bytes));
            link.watches = false;
        }
        Expect::Exec => {
            match due.failed.as_deref().filter(|_| is_error) {
                // Without MULTI all that was behind it has run, but for what was refused.
                _ if bytes.starts_with(NO_MULTI) => tell(&mut front, Answer::Error(in_doubt(bytes))),
                Some(first) if Redirect::of(first).is_some() => {
                    tell(&mut front, Answer::Reply { bytes: first, resp2 });
                }
                Some(first) => tell(&mut front, Answer::Error(aborted(first))),
                None => tell(&mut front, Answer::Reply { bytes, resp2 }),
            }
            next = free;
        }
        Expect::Try(.., unblocked) if is_error && !is_over(bytes) => {
            match (due.to, unblocked) {
                (Some(to), Some(end)) => front(to, ended(end)),
                _ => tell(&mut front, Answer::Error(in_doubt(bytes))),
            }
            next = Next::End(still_open(bytes));
        }
        Expect::Try(request, unblocked) => {
            let inner = bytes.strip_prefix(b"*1\r\n");
            let nothing = inner.is_some_and(|inner| matches!(inner, b"_\r\n" | b"$-1\r\n" | b"*-1\r\n"));
            match (due.failed, inner, due.to) {
                // It says by itself what is wrong with it.
                (Some(first), ..) => tell(&mut front, Answer::Reply { bytes: &first, resp2 }),
                (None, _, Some(to)) if nothing => match unblocked {
                    Some(end) => front(to, ended(end)),
                    None => next = Next::Wait(to, due.silent, resp2, request),
                },
                (None, Some(inner), _) => tell(&mut front, Answer::Reply { bytes: inner, resp2 }),
                (None, None, _) => tell(&mut front, Answer::Reply { bytes, resp2 }),
            }
        }
        Expect::Block(cancelled) => {
            if cancelled && bytes.starts_with(b"-UNBLOCKED") {
                tell(&mut front, Answer::Error(ErrorCode::Cancelled.into()));
            } else {
                tell(&mut front, Answer::Reply { bytes, resp2 });
            }
            next = if link.watches { Next::GoOn } else { free };
        }
        Expect::Alone => {
            tell(&mut front, Answer::Reply { bytes, resp2 });
            next = match link.watches {
                true => Next::GoOn,
                false if link.id == UNCHECKED => Next::End("it was made while a script ran".into()),
                false => free,
            };
        }
    }
    if let Some((to, names)) = tracked
        && !is_noted
    {
        behind.held(to, names);
    }
    link.tracks = tracks;
    if is_copy {
        return if is_scripts { Next::Doubt } else { Next::End(NO_MASTER.into()) };
    }
    next
}

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

/// A blocked request with its database before it, for the time that it is looked at again.
pub(crate) fn with_db(bytes: &[u8], db: u8) -> Box<[u8]> {
    [&[db], bytes].concat().into()
}
pub(crate) fn split_db(bytes: &[u8]) -> (u8, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(db, bytes)| (*db, bytes))
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

pub(crate) fn lost(why: &str, sent: bool) -> Error {
    let known = if sent { "whether the request has run is not known" } else { "the request was not sent" };
    Error::new(
        ErrorCode::Upstream,
        format!("the connection to the server behind the gateway was lost ({why}): {known}"),
    )
}
