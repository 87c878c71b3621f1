//! Owns: requests that another server runs: which way a command goes, what is noted of each request for who sends it,
//! and what its client is meanwhile. Does not own: connections to that server, which commands go which way
//! (`weft-gateway`), what it answers.
//!
//! A handler table made by [`Handlers::forwarding`](crate::handler::Handlers::forwarding) has [`Scope::Forward`] in the
//! place of whatever another server does. Such a request goes through the same admission as any other; then its bytes
//! are put behind those of others ([`Forwards`]), and its session waits as one that is blocked: the server's front
//! holds back what comes behind it. Plain requests of one client may follow each other without waiting
//! ([`Session::joins`]): they go to one connection there, so their replies come in order.

use weft_protocol::table::{CommandId, CommandSpec, flag};
use weft_protocol::{Arg, request::Arguments, resp};

use crate::args::{Args, OwnedArgs};
use crate::context::{Context, Local};
use crate::engine::{Engine, command_id};
use crate::error::{Error, full_name};
use crate::executor::Postponed;
use crate::mailbox::Recipient;
use crate::reply::Protocol;
use crate::requests::What;
use crate::session::{ReplyMode, Session, client_flag};

/// Requests of one client that may be on their way at once.
pub const FORWARDED_MAX: u32 = 64;

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
    /// SUBSCRIBE and its like: the other server is asked for what this one does not get yet.
    Subscribe(SubscriptionKind),
    /// It is refused, and this says why.
    Refused(&'static str),
}

/// Which way each command goes.
pub type Ways = fn(CommandId) -> Way;

/// What is to be done with a request, or for its client.
#[derive(Debug)]
pub enum Kind {
    /// One request, one reply.
    Plain,
    /// SELECT of this database.
    Select(u8),
    /// MULTI, so many commands, EXEC.
    Exec(u32),
    /// It may block.
    Blocks,
    /// WATCH: the client has a connection from here on.
    Watch,
    /// One request over a connection of its own.
    Alone,
    /// Subscriptions: of this kind to these names.
    Subscribe(SubscriptionKind, Postponed),
    /// The client gives up the connection that it has, and whatever it waits for.
    Release,
}

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
    /// Its client has a connection, since it watches keys.
    pub leased: bool,
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
    fn add(&mut self, session: &mut Session, kind: Kind, reads: bool) {
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
            leased: session.leased,
        });
    }
    /// The session gives up what it has there.
    pub(crate) fn release(&mut self, session: &mut Session) {
        if session.leased || session.forwarded > 0 {
            session.leased = false;
            self.list.push(Forward {
                to: session.info.recipient(),
                kind: Kind::Release,
                end: self.bytes.len(),
                db: session.db,
                resp2: false,
                reads: false,
                silent: true,
                leased: false,
            });
        }
    }
}

/// Whether a session's wire has what RESP2 has and no more. An answer over HTTP has, unless it is asked for otherwise.
fn is_resp2(session: &Session) -> bool {
    match session.wire.protocol {
        Protocol::Resp2 => true,
        Protocol::Json(form) => form.is_flat(),
        Protocol::Resp3 | Protocol::Respb | Protocol::Captured => false,
    }
}

/// Arguments as an encoder reads them.
struct Words<'w, 'a>(&'w Args<'a>);

impl Arguments for Words<'_, '_> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn arg(&self, index: usize) -> Arg<'_> {
        self.0.get(index).unwrap_or(Arg::Bytes(b""))
    }
}

fn encode(args: &Args<'_>, into: &mut Vec<u8>) {
    resp::encode::request(None, &Words(args), into);
}

/// Notes a request that was admitted.
pub(crate) fn run(
    engine: &Engine,
    local: &mut Local,
    (way, args): (Way, &Args<'_>),
    session: &mut Session,
) -> Result<(), Error> {
    if session.asked.take().is_some() {
        return Err(Error::err(
            "keys as resources, with their conditions, are not served by a gateway: name the command",
        ));
    }
    let forwards = &mut local.forwards;
    let kind = match way {
        Way::There => Kind::Plain,
        Way::Alone => Kind::Alone,
        Way::Blocks if may_block(args) => {
            session.info.set_flag(client_flag::BLOCKED, true);
            Kind::Blocks
        }
        Way::Blocks => Kind::Plain,
        Way::Select => Kind::Select(database(engine, args)?),
        Way::Watch => {
            encode(args, &mut forwards.bytes);
            forwards.add(session, Kind::Watch, false);
            session.leased = true;
            return Ok(());
        }
        Way::Subscribe(kind) => {
            let (what, args) = (What::Command(command_id(args)), args.to_owned_args());
            Kind::Subscribe(kind, Postponed { what, args, until_ms: 0 })
        }
        Way::Refused(why) => return Err(refused(args.spec, why)),
        // It has a handler of its own.
        Way::Here | Way::Anywhere => return Ok(()),
    };
    encode(args, &mut forwards.bytes);
    forwards.add(session, kind, args.spec.flags & flag::READONLY != 0);
    Ok(())
}

/// Notes a transaction whose commands were queued.
pub(crate) fn exec(local: &mut Local, session: &mut Session, queued: &[OwnedArgs]) {
    let bytes = &mut local.forwards.bytes;
    bytes.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
    queued.iter().for_each(|owned| encode(&owned.args(), bytes));
    bytes.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
    // The connection that it has goes with it.
    local.forwards.add(session, Kind::Exec(queued.len() as u32), false);
    session.leased = false;
}

fn refused(spec: &CommandSpec, why: &str) -> Error {
    Error::err(format!("'{}' is not served by a gateway: {why}", full_name(spec)))
}

fn database(engine: &Engine, args: &Args<'_>) -> Result<u8, Error> {
    let count = engine.keyspace.database_count();
    let db = args.int(1)?;
    match u8::try_from(db) {
        Ok(number) if usize::from(number) < count => Ok(number),
        _ => Err(Error::err(format!("DB index is out of range: the gateway has {count} (databases)"))),
    }
}

/// XREAD and XREADGROUP block only where they are told so.
fn may_block(args: &Args<'_>) -> bool {
    args.spec.group != "stream"
        || (1..args.len())
            .take_while(|&index| !args.is(index, "STREAMS"))
            .any(|index| args.is(index, "BLOCK"))
}

/// Whether a command that goes this way may stand in a transaction that another server runs.
pub(crate) fn check_queued(way: Way, spec: &CommandSpec) -> Result<(), Error> {
    match way {
        Way::There | Way::Blocks | Way::Anywhere => Ok(()),
        Way::Refused(why) => Err(refused(spec, why)),
        _ => {
            let text = "has to do with the gateway, and a transaction is run by the server behind it";
            Err(Error::err(format!("'{}' {text}", full_name(spec))))
        }
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
    /// What it is subscribed to is known over there: the request that asked for it runs now.
    pub fn confirm(&mut self) {
        self.confirmed = true;
        self.hold_back();
    }
}

impl Context<'_, '_> {
    /// A client gives up the keys that it watches over there.
    pub(crate) fn give_up_lease(&mut self) {
        if self.session.leased {
            self.local.forwards.release(self.session);
        }
    }
}
