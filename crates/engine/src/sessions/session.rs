//! Owns: one logical client: what it is at (database, user, protocol), what it holds (transaction, subscriptions, wait)
//! and the part of it that others may look at. Does not own: its connection, its buffers.
//!
//! A RESP connection has one, a RESPB connection one for each channel, an HTTP request borrows one. It is kept small,
//! since thousands of idle channels are the normal case: what few clients have stands behind a pointer.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::acl::{LogPlace, User};
use crate::asked::Asked;
use crate::charge::Charge;
use crate::mailbox::{Address, Recipient};
use crate::push::Push;
use crate::reply::{Protocol, Wire};
use crate::transaction::Transaction;
use crate::waits::Wait;

/// What a session does with its replies (CLIENT REPLY).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReplyMode {
    /// They are sent.
    #[default]
    On,
    /// None is sent.
    Off,
    /// The one to CLIENT REPLY SKIP itself is not sent, and the next one is not either.
    SkipNext,
    /// The present one is not sent.
    Skip,
}

impl ReplyMode {
    /// What it is for the next request.
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::SkipNext => Self::Skip,
            Self::On | Self::Skip => Self::On,
        }
    }
}

/// What the connection must do after the request that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Then {
    /// Nothing special.
    #[default]
    GoOn,
    /// QUIT: close when everything is sent.
    Close,
    /// CLIENT KILL of itself: the same, and a channel is told why.
    Killed,
    /// `HELLO 3 PROTO respb` has succeeded: bytes behind this request are RESPB.
    SwitchToRespb,
    /// SHUTDOWN: the server stops.
    Shutdown,
}

/// What a session is subscribed to. Sorted, so that UNSUBSCRIBE without names answers in one order.
#[derive(Debug, Default)]
pub struct Subscriptions {
    /// SUBSCRIBE.
    pub channels: BTreeSet<Box<[u8]>>,
    /// PSUBSCRIBE.
    pub patterns: BTreeSet<Box<[u8]>>,
    /// SSUBSCRIBE.
    pub shard_channels: BTreeSet<Box<[u8]>>,
    /// What their names count.
    pub charge: Charge,
}

impl Subscriptions {
    /// Channels and patterns: the number that SUBSCRIBE answers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }
}

/// The connection of one or more clients, for CLIENT LIST.
#[derive(Debug, Default)]
pub struct ConnectionInfo {
    /// Peer, `127.0.0.1:50000`; the path of a Unix socket with `:0`.
    pub peer: Box<str>,
    /// Own end.
    pub local: Box<str>,
    /// File descriptor.
    pub fd: i32,
    /// Whether it came over a Unix socket.
    pub unix: bool,
    /// Bytes received.
    pub bytes_in: AtomicU64,
    /// Bytes sent.
    pub bytes_out: AtomicU64,
    /// Bytes in output buffers.
    pub output_bytes: AtomicU64,
    /// Bytes in input buffers.
    pub input_bytes: AtomicU64,
    /// Bytes that transactions of all its clients have queued.
    pub queued_bytes: AtomicU64,
    /// Bytes of what all its clients hold (`crate::charge`).
    pub charged_bytes: AtomicUsize,
    /// The same of all connections, once a client of it is known.
    pub charged_together: OnceLock<Arc<AtomicUsize>>,
    /// What both sides can do over RESPB: bits of [`crate::respb::CAPS`], as HELLO agreed on them.
    pub caps: AtomicU64,
}

/// What a client has told about itself: rare, so behind one pointer.
#[derive(Debug, Default)]
pub struct Labels {
    /// CLIENT SETNAME.
    pub name: Box<[u8]>,
    /// CLIENT SETINFO LIB-NAME.
    pub lib_name: Box<[u8]>,
    /// CLIENT SETINFO LIB-VER.
    pub lib_ver: Box<[u8]>,
}

/// The part of a session that others see: CLIENT LIST and KILL, pub/sub, tracking. Written by its own worker, with
/// plain relaxed stores.
#[derive(Debug)]
pub struct ClientInfo {
    /// CLIENT ID.
    pub id: u64,
    /// Where it lives.
    pub address: Address,
    /// When it connected.
    pub created_ms: u64,
    /// Its connection.
    pub connection: Arc<ConnectionInfo>,
    /// Its user.
    pub user: Mutex<Arc<User>>,
    /// Its names.
    pub labels: Mutex<Option<Box<Labels>>>,
    /// When its last request ran.
    pub active_ms: AtomicU64,
    /// Redirection of tracking, 0 for none.
    pub redirect: AtomicU64,
    /// Requests.
    pub commands: AtomicU64,
    /// Its last command, as an index into the command table; `u16::MAX` before the first.
    pub last_command: AtomicU16,
    /// Bits of [`client_flag`].
    pub flags: AtomicU32,
    /// Queued commands, or `u32::MAX` outside MULTI.
    pub queued: AtomicU32,
    /// Bytes of queued commands.
    pub queued_bytes: AtomicU64,
    /// Watched keys.
    pub watched: AtomicU32,
    /// Channels.
    pub channels: AtomicU32,
    /// Patterns.
    pub patterns: AtomicU32,
    /// Shard channels.
    pub shard_channels: AtomicU32,
    /// Its database.
    pub db: AtomicU8,
    /// Its protocol: 2, 3, or 4 for RESPB.
    pub protocol: AtomicU8,
    /// CLIENT CAPA: bits of [`client_capa`].
    pub capa: AtomicU8,
}

/// What CLIENT LIST shows as letters, and what others must know.
pub mod client_flag {
    /// `O`, MONITOR.
    pub const MONITOR: u32 = 1 << 0;
    /// `b`, blocked.
    pub const BLOCKED: u32 = 1 << 1;
    /// `x`, inside MULTI.
    pub const MULTI: u32 = 1 << 2;
    /// `d`, a watched key was written: EXEC will fail.
    pub const DIRTY: u32 = 1 << 3;
    /// `c`, closes after its replies.
    pub const CLOSING: u32 = 1 << 4;
    /// `P`, subscribed.
    pub const PUBSUB: u32 = 1 << 5;
    /// `t`, tracking.
    pub const TRACKING: u32 = 1 << 6;
    /// `R`, the target of its redirection is gone.
    pub const REDIR_BROKEN: u32 = 1 << 7;
    /// `B`, tracking in broadcast mode.
    pub const BCAST: u32 = 1 << 8;
    /// `U`, a Unix socket.
    pub const UNIX: u32 = 1 << 9;
    /// `e`, CLIENT NO-EVICT.
    pub const NO_EVICT: u32 = 1 << 10;
    /// `T`, CLIENT NO-TOUCH.
    pub const NO_TOUCH: u32 = 1 << 11;
    /// `r`, READONLY.
    pub const READONLY: u32 = 1 << 15;
    /// `I`, CLIENT IMPORT-SOURCE.
    pub const IMPORT_SOURCE: u32 = 1 << 16;
    /// Tracking with OPTIN.
    pub const OPTIN: u32 = 1 << 12;
    /// Tracking with OPTOUT.
    pub const OPTOUT: u32 = 1 << 13;
    /// Tracking with NOLOOP.
    pub const NOLOOP: u32 = 1 << 14;
}

/// Flags that a client asks for, and that nothing else depends on.
pub(crate) const OWN_FLAGS: u32 =
    client_flag::NO_EVICT | client_flag::NO_TOUCH | client_flag::READONLY | client_flag::IMPORT_SOURCE;

/// What a client says that it can do, as CLIENT LIST shows it.
pub mod client_capa {
    /// `r`, it follows redirections.
    pub const REDIRECT: u8 = 1 << 0;
}

impl ClientInfo {
    /// How messages find it.
    #[must_use]
    pub const fn recipient(&self) -> Recipient {
        Recipient { address: self.address, client: self.id }
    }
    /// Whether a flag is set.
    #[must_use]
    pub fn has(&self, flag: u32) -> bool {
        self.flags.load(Relaxed) & flag != 0
    }
    /// Sets or clears a flag. Only the client's own worker does so, but for [`client_flag::REDIR_BROKEN`].
    pub fn set_flag(&self, flag: u32, on: bool) {
        if on {
            self.flags.fetch_or(flag, Relaxed);
        } else {
            self.flags.fetch_and(!flag, Relaxed);
        }
    }
}

/// More than a session may watch elsewhere: what it watched there is lost, and its next EXEC does nothing.
pub const WATCHES_LOST: u32 = u32::MAX;

/// One logical client.
#[derive(Debug)]
pub struct Session {
    /// Its protocol and channel.
    pub wire: Wire,
    /// Its database.
    pub db: u8,
    /// Whether it has authenticated, or need not.
    pub authenticated: bool,
    /// CLIENT REPLY.
    pub reply_mode: ReplyMode,
    /// What follows the present request.
    pub then: Then,
    /// CLIENT CACHING: the answer for the next command.
    pub caching: Option<bool>,
    /// Whose rights it has.
    pub user: Arc<User>,
    /// Which state of all users that was taken from.
    pub(crate) acl_epoch: u64,
    /// What others see of it.
    pub info: Arc<ClientInfo>,
    /// MULTI and WATCH.
    pub transaction: Option<Box<Transaction>>,
    /// What it is subscribed to.
    pub subscriptions: Option<Box<Subscriptions>>,
    /// It has left some of that: of what was published before something may still come.
    pub(crate) has_left: bool,
    /// The request that is blocked. While there is one, no other request of the session may run.
    pub wait: Option<Box<Wait>>,
    /// Requests that another server runs, and whose replies have not come. While there are some, others run only if
    /// they may join them.
    pub forwarded: u32,
    /// Nobody answers those any more: its peer has ended its sending, and it has nothing more run.
    pub is_let_go: bool,
    /// Plain requests may join those.
    pub joins: bool,
    /// How often it has sent WATCH there since its last EXEC: if it has, it has a connection there, unless that is
    /// [`WATCHES_LOST`].
    pub watches: u32,
    /// The request that runs asks for subscriptions that the other server has confirmed.
    pub(crate) confirmed: bool,
    /// What the request that comes asks of its key beside its command: over HTTP, of resources.
    pub(crate) asked: Option<Box<Asked>>,
    /// It brings what is being loaded: it may do all, and nobody else may do anything.
    pub(crate) loads: bool,
    /// It speaks HTTP: each of its requests has one answer, in the form that it was asked for, whatever commands say.
    pub over_http: bool,
    /// Requests that were postponed and have not run: nothing behind them may run before.
    pub(crate) held: u32,
    /// It stands in for one whose script takes its time.
    pub(crate) away: bool,
    /// Nothing about it need be asked before a request of it runs: [`look`](Self::look) says so behind every request
    /// that may have changed anything about it.
    pub(crate) plain: bool,
}

/// The user of a session, for another one.
#[derive(Debug)]
pub struct Heritage {
    user: Arc<User>,
    authenticated: bool,
    acl_epoch: u64,
}

impl Session {
    /// CLIENT ID.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.info.id
    }
    /// What others see of its transaction: how many commands of how many bytes are queued, `None` outside MULTI.
    pub(crate) fn show_queued(&self, queued: Option<(usize, usize)>) {
        let (commands, bytes) = queued.unwrap_or((u32::MAX as usize, 0));
        self.info.queued.store(commands as u32, Relaxed);
        let before = self.info.queued_bytes.swap(bytes as u64, Relaxed);
        self.info.connection.queued_bytes.fetch_add((bytes as u64).wrapping_sub(before), Relaxed);
    }
    /// Whether it hears a push: it does not once it has left what that is of, and been told so.
    #[inline]
    #[must_use]
    pub fn hears(&self, push: &Push) -> bool {
        !self.has_left || self.is_subscribed_to(push)
    }
    #[cold]
    fn is_subscribed_to(&self, push: &Push) -> bool {
        let all = self.subscriptions.as_deref();
        match push {
            Push::Message { kind: "smessage", channel, .. } => {
                all.is_some_and(|all| all.shard_channels.contains(&**channel))
            }
            Push::Message { channel, .. } => all.is_some_and(|all| all.channels.contains(&**channel)),
            Push::PatternMessage { pattern, .. } => all.is_some_and(|all| all.patterns.contains(&**pattern)),
            Push::Invalidate(_) | Push::TrackingRedirBroken(_) | Push::Monitor(_) => true,
        }
    }
    /// What others see of its subscriptions; without any it holds no memory for them.
    pub(crate) fn show_subscriptions(&mut self) {
        self.subscriptions.take_if(|all| all.count() == 0 && all.shard_channels.is_empty());
        let (channels, patterns, shard) = self.subscriptions.as_ref().map_or((0, 0, 0), |all| {
            (all.channels.len() as u32, all.patterns.len() as u32, all.shard_channels.len() as u32)
        });
        self.info.channels.store(channels, Relaxed);
        self.info.patterns.store(patterns, Relaxed);
        self.info.shard_channels.store(shard, Relaxed);
        self.info.set_flag(client_flag::PUBSUB, self.subscriptions.is_some());
    }
    /// Changes the database.
    pub fn select(&mut self, db: u8) {
        self.db = db;
        self.info.db.store(db, Relaxed);
    }
    /// Changes the protocol.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.wire.protocol = protocol;
        self.info.protocol.store(protocol.number(), Relaxed);
    }
    /// The name of its wire, if every request has a reply over it.
    pub(crate) const fn always_answers(&self) -> Option<&'static str> {
        if self.over_http { Some("HTTP") } else { self.wire.protocol.always_answers() }
    }
    /// Whether a command may be answered by what comes later, without end: over HTTP where that is the whole answer.
    pub(crate) fn has_streams(&self) -> bool {
        let protocol = self.wire.protocol;
        protocol.has_streams() && (!self.over_http || protocol == Protocol::Resp3)
    }
    /// Whether commands may change the protocol.
    pub(crate) fn switches_protocol(&self) -> bool {
        !self.over_http && self.wire.protocol.is_resp()
    }
    /// Changes the user.
    pub fn set_user(&mut self, user: Arc<User>) {
        *self.info.user.lock() = Arc::clone(&user);
        self.user = user;
        self.authenticated = true;
    }
    /// What a channel takes over from channel 0.
    #[must_use]
    pub fn heritage(&self) -> Heritage {
        Heritage {
            user: Arc::clone(&self.user),
            authenticated: self.authenticated,
            acl_epoch: self.acl_epoch,
        }
    }
    /// Takes it over.
    pub fn inherit(&mut self, from: &Heritage) {
        self.set_user(Arc::clone(&from.user));
        (self.authenticated, self.acl_epoch) = (from.authenticated, from.acl_epoch);
        self.plain = false;
    }
    /// What its next request asks of its key beside its command. None of its requests may be decoded and not have run.
    pub fn ask(&mut self, asked: Option<Asked>) {
        self.asked = asked.map(Box::new);
        self.look();
    }
    /// Whether it has a blocked request.
    #[must_use]
    pub const fn is_waiting(&self) -> bool {
        self.wait.is_some() || self.forwarded > 0
    }
    /// Whether it has a connection over which another server watches keys for it.
    #[must_use]
    pub const fn watches_elsewhere(&self) -> bool {
        self.watches > 0 && self.watches != WATCHES_LOST
    }
    /// Whether keys know of it: it waits for some, or may watch some.
    pub(crate) const fn holds_keys(&self) -> bool {
        self.wait.is_some() || self.transaction.is_some()
    }
    /// Whether it stands in for a session whose script takes its time: nothing that was held may run before that has.
    #[must_use]
    pub const fn is_away(&self) -> bool {
        self.away
    }
    /// Whether a request that comes now must wait for its turn: one blocks, or others were postponed.
    #[must_use]
    pub const fn must_queue(&self) -> bool {
        self.is_waiting() || self.held > 0
    }
    /// No request may run until [`Self::drop_held`].
    pub const fn hold_back(&mut self) {
        self.held += 1;
        self.plain = false;
    }
    /// Whether nothing about the session need be asked before a request of it runs, but its user's rights.
    #[inline]
    #[must_use]
    pub(crate) const fn is_plain(&self) -> bool {
        self.plain
    }
    /// Looks whether anything about it is special. Whatever changes something about a session that is asked for here
    /// is followed by this: commands that go the full way, and what ends a wait.
    pub(crate) fn look(&mut self) {
        let special =
            client_flag::TRACKING | client_flag::NO_TOUCH | client_flag::MONITOR | client_flag::IMPORT_SOURCE;
        self.plain = self.authenticated
            && !matches!(self.then, Then::Close | Then::Killed)
            && !self.must_queue()
            && self.transaction.is_none()
            && self.subscriptions.is_none()
            && self.caching.is_none()
            && self.asked.is_none()
            && self.reply_mode == ReplyMode::On
            && !self.info.has(special);
    }
    /// A request that has waited is answered: whether its client wants that.
    pub(crate) const fn takes_reply(&mut self) -> bool {
        let takes = matches!(self.reply_mode, ReplyMode::On);
        self.reply_mode = self.reply_mode.next();
        takes
    }
    /// Whether requests have left nothing on it, but perhaps another user.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.db == 0
            && self.transaction.is_none()
            && self.subscriptions.is_none()
            && self.caching.is_none()
            && self.reply_mode == ReplyMode::On
            && !self.info.has(client_flag::TRACKING | client_flag::MONITOR | OWN_FLAGS)
            && self.info.labels.lock().is_none()
    }
    /// One of the requests that were postponed will not run: it was cancelled.
    pub const fn drop_held(&mut self) {
        self.held = self.held.saturating_sub(1);
    }
    /// Whether it is inside MULTI.
    #[must_use]
    pub fn in_multi(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.open)
    }
    /// Where its next command is, for ACL LOG.
    #[must_use]
    pub fn log_place(&self) -> LogPlace {
        if self.in_multi() { LogPlace::Multi } else { LogPlace::TopLevel }
    }
    /// The database that its next command runs in: in MULTI, after what is queued.
    #[must_use]
    pub fn next_db(&self) -> u8 {
        self.transaction.as_ref().and_then(|transaction| transaction.db).unwrap_or(self.db)
    }
    /// A RESP2 client that has subscriptions may only run a few commands.
    #[must_use]
    pub fn in_resp2_pubsub(&self) -> bool {
        self.wire.protocol == Protocol::Resp2 && self.subscriptions.is_some()
    }
}
