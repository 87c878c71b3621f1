//! Owns: what is known of requests that another server runs: which way a command goes, what is noted of each request
//! for who sends it, and what its client is meanwhile. Does not own: noting them (`crate::forward`), connections to
//! that server, which commands go which way (`weft-gateway`).

use weft_protocol::table::CommandId;

use crate::mailbox::Recipient;
use crate::reply::Protocol;
use crate::requests::Postponed;
use crate::session::{ReplyMode, Session, client_flag};
use crate::tracking::Names;

/// Which way a command goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is this process's own.
    Here,
    /// It is, but in a transaction it goes with the others.
    Anywhere,
    /// Over the connection that all share.
    There,
    /// Over a connection of its own: what must not stand behind others' requests.
    Alone,
    /// It may block there.
    Blocks,
    /// SELECT.
    Select,
    /// WATCH.
    Watch,
    /// CLIENT TRACKING: the other server tells this one of changes, and this one its clients.
    Track,
    /// In front of a cluster: a request for each slot that its keys have, and one reply made of theirs.
    Scatter(Merge),
    /// In front of a cluster: to all primaries, and one reply made of theirs.
    Everywhere(Merge),
    /// In front of a cluster: SCAN, of one primary after the other.
    Scan,
    /// SUBSCRIBE and its like: the other server is asked for what this one does not get yet.
    Subscribe(SubscriptionKind),
    /// It is refused, and this says why.
    Refused(&'static str),
}

/// What one reply is made of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The sum of numbers.
    Sum,
    /// An array with each key's value at the key's place.
    Places,
    /// An array of all that is in theirs.
    Joined,
    /// An array with the least number of each place.
    Least,
    /// An array of all that is in theirs, each once.
    Union,
    /// An array of names with numbers: the sum of each name's.
    Counts,
    /// The first that is not null.
    Any,
    /// They are the same.
    Same,
    /// What has ended something that one of them ran; the others had nothing to end.
    Killed,
}

/// Which way each command goes.
pub type Ways = fn(CommandId) -> Way;

/// Kinds of subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubscriptionKind {
    /// SUBSCRIBE.
    Channel,
    /// PSUBSCRIBE.
    Pattern,
    /// SSUBSCRIBE.
    Shard,
}

/// A part of a request whose keys have several slots.
#[derive(Debug)]
pub struct Piece {
    /// The slot.
    pub slot: u16,
    /// Its bytes end here among those of the request.
    pub end: usize,
    /// Which keys of the request it has, counted from 0.
    pub places: Vec<u32>,
}

/// How long a request that blocks waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockTime {
    /// Which of its arguments says so.
    pub argument: usize,
    /// So many milliseconds; 0 for ever, or where that cannot be told.
    pub ms: u64,
    /// The argument says so in seconds.
    pub in_seconds: bool,
}

/// What is to be done with a request, or for its client.
#[derive(Debug)]
pub enum Kind {
    /// One request, one reply.
    Plain,
    /// SELECT of this database.
    Select(u8),
    /// MULTI, so many commands, EXEC.
    Exec(u32),
    /// It may block for so long.
    Blocks(BlockTime),
    /// WATCH: the client has a connection from here on.
    Watch,
    /// One request over a connection of its own.
    Alone,
    /// Parts of one request.
    Scatter(Merge, Vec<Piece>),
    /// One request to all primaries.
    Everywhere(Merge),
    /// SCAN of one primary.
    Scan,
    /// Subscriptions: of this kind to these names.
    Subscribe(SubscriptionKind, Postponed),
    /// CLIENT TRACKING ON.
    Track(Postponed),
    /// The client gives up the connection that it has, and whatever it waits for.
    Release,
}

/// A request that is to be sent.
#[derive(Debug)]
pub struct Forward {
    /// Whose it is.
    pub to: Recipient,
    /// What it is.
    pub kind: Kind,
    /// Its bytes end here among all.
    pub end: usize,
    /// In which database it runs.
    pub db: u8,
    /// Its reply is wanted as RESP2 has it, not as RESP3 does.
    pub resp2: bool,
    /// It only reads: it may run twice.
    pub reads: bool,
    /// Nobody wants its reply (CLIENT REPLY).
    pub silent: bool,
    /// How often its client has sent WATCH before it, since its last EXEC. It is run as if keys were watched only over
    /// the connection that has all of them.
    pub watches: u32,
    /// In front of a cluster: where its keys are.
    pub keys: Keys,
    /// Keys that its client reads and wants to be told of when they change.
    pub tracks: Option<Names>,
}

impl Forward {
    /// A request of this kind, of database 0 and over RESP3, of which nothing else is known.
    #[must_use]
    pub const fn of(to: Recipient, kind: Kind) -> Self {
        let (end, db, keys, tracks) = (0, 0, Keys { slot: None, only: None }, None);
        let (resp2, reads, silent, watches) = (false, false, false, 0);
        Self { to, kind, end, db, resp2, reads, silent, watches, keys, tracks }
    }
}

/// Where the keys of a request are in a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Their slot, if there are keys.
    pub slot: Option<u16>,
    /// Tells one key from others, if there is only one.
    pub only: Option<u64>,
}

/// A worker's requests that are to be sent.
#[derive(Debug, Default)]
pub struct Forwards {
    /// The requests as RESP, one behind the other.
    pub bytes: Vec<u8>,
    /// What each is.
    pub list: Vec<Forward>,
}

impl Forwards {
    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
    }
    pub(crate) fn add(
        &mut self,
        session: &mut Session,
        kind: Kind,
        reads: bool,
        keys: Keys,
        tracks: Option<Names>,
    ) {
        session.joins = matches!(kind, Kind::Plain);
        session.forwarded += 1;
        self.list.push(Forward {
            to: session.info.recipient(),
            kind,
            end: self.bytes.len(),
            db: session.db,
            resp2: is_resp2(session),
            reads,
            silent: session.reply_mode != ReplyMode::On,
            watches: session.watches,
            keys,
            tracks,
        });
    }
    /// The session gives up what it has there.
    pub(crate) fn release(&mut self, session: &mut Session) {
        if session.watches > 0 || session.forwarded > 0 {
            session.watches = 0;
            self.give_back(session);
        }
    }
    /// Has its connection given back there.
    pub(crate) fn give_back(&mut self, session: &Session) {
        self.list.push(Forward {
            to: session.info.recipient(),
            kind: Kind::Release,
            end: self.bytes.len(),
            db: session.db,
            resp2: false,
            reads: false,
            silent: true,
            watches: 0,
            keys: Keys::default(),
            tracks: None,
        });
    }
}

/// Whether a session's wire has what RESP2 has and no more. An answer over HTTP has, unless it is asked for otherwise.
pub(crate) fn is_resp2(session: &Session) -> bool {
    match session.wire.protocol {
        Protocol::Resp2 => true,
        Protocol::Json(form) => form.is_flat(),
        Protocol::Resp3 | Protocol::Respb | Protocol::Captured => false,
    }
}

impl Session {
    /// A reply to a request that was forwarded has come. Says whether it was the last one that is due.
    pub fn has_heard(&mut self) -> bool {
        self.forwarded = self.forwarded.saturating_sub(1);
        if self.forwarded == 0 {
            self.joins = false;
            if self.info.has(client_flag::BLOCKED) {
                self.info.set_flag(client_flag::BLOCKED, false);
            }
            self.look();
        }
        self.forwarded == 0
    }
}
