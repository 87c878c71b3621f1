//! Owns: what all workers share: keyspace, settings, clients, subscriptions, waits, users, statistics; what a command's
//! handler is and works with. Does not own: the state that it puts together (each room has its own), threads, sockets.

pub mod context;
pub mod handler;
pub(crate) mod job;
pub(crate) mod plan;

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use weft_protocol::table::CommandId;
use weft_store::{Clock, Keyspace};

use crate::acl::{Acl, User};
use crate::args::Args;
pub(crate) use crate::args::command_id;
use crate::behind::Behind;
use crate::carrier::Carrier;
use crate::clients::Clients;
use crate::command_log::CommandLogs;
use crate::config::web::Web;
use crate::config::{Config, Settings};
use crate::durable::Durable;
use crate::error::{Error, Result, full_name};
use crate::feed::Feed;
use crate::forwards::Ways;
use crate::handler::{Handler, Handlers, Logic};
use crate::history::History;
use crate::hot::Hot;
use crate::latency::LatencyEvents;
use crate::mailbox::{Address, Kill, Mailbox, Mailboxes, Message};
use crate::monitor::Monitors;
use crate::observe::facts::Facts;
use crate::plan::Plans;
use crate::program::keys::Before;
use crate::program::stored::Programs;
use crate::pubsub::PubSub;
use crate::reply::Wire;
use crate::safe::Safe;
use crate::script::Scripts;
use crate::session::{ClientInfo, ConnectionInfo, ReplyMode, Session, Then};
use crate::special::{self, Special};
use crate::stats::Stats;
use crate::tracking::Tracking;
use crate::trigger::Triggers;
use crate::waits::Waits;

/// How an engine is made.
pub struct Setup {
    /// The keyspace.
    pub keyspace: Keyspace,
    /// Time.
    pub clock: Box<dyn Clock>,
    /// Workers: each has a mailbox.
    pub workers: u16,
}

/// The engine.
pub struct Engine {
    /// All keys.
    pub keyspace: Keyspace,
    /// Time.
    pub clock: Box<dyn Clock>,
    /// Settings that hot paths read.
    pub settings: Settings,
    /// Every directive with its text; most settings follow from it.
    pub config: Config,
    /// Logical clients.
    pub clients: Clients,
    /// Channels and patterns.
    pub pubsub: PubSub,
    /// Blocked requests.
    pub waits: Waits,
    /// MEMORY PURGE asks for what the allocator keeps; whoever gives it back takes this.
    pub purge: AtomicBool,
    /// At the last attempt to make room nothing was there that may be evicted.
    pub(crate) nothing_goes: AtomicBool,
    /// What the clients of all connections hold (`crate::charge`).
    pub charged_bytes: Arc<AtomicUsize>,
    /// Counters.
    pub stats: Stats,
    /// The slow log and its likes.
    pub command_logs: CommandLogs,
    /// The latency monitor.
    pub latency: LatencyEvents,
    /// What the server tells of itself.
    pub facts: Facts,
    /// CLIENT PAUSE.
    pub pause: Pause,
    /// Up to which epoch what was written is safe.
    pub safe: Safe,
    /// What is kept on disk.
    pub durable: Durable,
    /// Users.
    pub acl: Acl,
    /// Client-side caching.
    pub tracking: Tracking,
    /// Scripts and functions.
    pub scripts: Scripts,
    /// MONITOR.
    pub monitors: Monitors,
    /// Who takes the keys of MIGRATE away.
    pub carrier: Carrier,
    /// Programs.
    pub programs: Programs,
    /// Pages and names that may use the server over HTTP.
    pub web: Web,
    /// Triggers.
    pub triggers: Triggers,
    /// What happened to keys, for who follows it.
    pub feed: Feed,
    /// Each second's figures, for who looks at them.
    pub history: History,
    /// Which keys are asked for most, while somebody looks.
    pub hot: Hot,
    /// The servers behind, if this is a gateway.
    pub behind: Behind,
    /// What of all this must be asked for before a request runs.
    pub special: Special,
    /// Held by whoever looks whether events are wanted.
    pub(crate) looks_at_events: Mutex<()>,
    /// What workers tell each other.
    pub mailboxes: Mailboxes,
    handlers: Handlers,
    /// How commands run among neighbours.
    pub(crate) plans: Plans,
    ways: Option<Ways>,
    /// It is in front of a cluster.
    is_cluster: bool,
}

/// CLIENT PAUSE as it is now.
#[derive(Debug, Default)]
pub struct Pause {
    /// Until when; 0 for not at all.
    until_ms: AtomicU64,
    /// Whether only writes wait.
    writes_only: AtomicBool,
    /// Held by whoever changes it.
    changing: Mutex<()>,
}

impl Pause {
    /// Until when it lasts; a time that has passed, or 0, for not at all.
    #[must_use]
    pub fn until_ms(&self) -> u64 {
        self.until_ms.load(Relaxed)
    }
    /// Whether only writes wait.
    #[must_use]
    pub fn writes_only(&self) -> bool {
        self.writes_only.load(Relaxed)
    }
}

impl Engine {
    /// A pause begins, or one that there is becomes longer and stricter.
    pub(crate) fn begin_pause(&self, until_ms: u64, writes_only: bool, now_ms: u64) {
        let pause = &self.pause;
        let _changing = pause.changing.lock();
        let present_ms = pause.until_ms();
        let paused = present_ms > now_ms;
        pause.writes_only.store(writes_only && (!paused || pause.writes_only()), Relaxed);
        let until_ms = if paused { until_ms.max(present_ms) } else { until_ms };
        pause.until_ms.store(until_ms, Relaxed);
        self.keyspace.pause_expiry(until_ms);
        self.special.set(special::PAUSED, true);
    }
    /// The pause ends.
    pub(crate) fn end_pause(&self) {
        let _changing = self.pause.changing.lock();
        self.pause.until_ms.store(0, Relaxed);
        self.keyspace.pause_expiry(0);
        self.special.set(special::PAUSED, false);
    }
    /// Forgets a pause that is over, so that nobody asks for it any more.
    #[cold]
    pub(crate) fn look_at_pause(&self, now_ms: u64) {
        let _changing = self.pause.changing.lock();
        if self.pause.until_ms() <= now_ms {
            self.special.set(special::PAUSED, false);
        }
    }
}

impl Engine {
    /// An engine of these handlers, without clients. `ways`: another server, or a cluster, runs what these say.
    pub(crate) fn with(setup: Setup, handlers: Handlers, (ways, is_cluster): (Option<Ways>, bool)) -> Self {
        let now_ms = setup.clock.now_ms();
        Self {
            stats: Stats::new(setup.workers, now_ms),
            keyspace: setup.keyspace,
            clock: setup.clock,
            settings: Settings::default(),
            config: Config::default(),
            clients: Clients::default(),
            pubsub: PubSub::default(),
            waits: Waits::default(),
            purge: AtomicBool::new(false),
            nothing_goes: AtomicBool::new(false),
            charged_bytes: Arc::default(),
            pause: Pause::default(),
            safe: Safe::default(),
            durable: Durable::default(),
            command_logs: CommandLogs::default(),
            latency: LatencyEvents::default(),
            facts: Facts::default(),
            mailboxes: Mailboxes::new(setup.workers),
            plans: Plans::new(&handlers),
            handlers,
            ways,
            is_cluster,
            acl: Acl::default(),
            tracking: Tracking::default(),
            scripts: Scripts::new(setup.workers),
            monitors: Monitors::default(),
            carrier: Carrier::default(),
            programs: Programs::default(),
            web: Web::default(),
            triggers: Triggers::default(),
            feed: Feed::new(setup.workers, now_ms),
            history: History::default(),
            hot: Hot::new(setup.workers),
            behind: Behind::default(),
            special: Special::default(),
            looks_at_events: Mutex::default(),
        }
    }

    /// Whether something takes its time.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.special.has(special::BUSY)
    }
    /// The classes of events that are wanted; none while nobody would get them.
    #[inline]
    pub(crate) fn events(&self) -> u32 {
        if !self.special.has(special::EVENTS) {
            return 0;
        }
        self.settings.notify_flags.load(Relaxed) | self.feed.classes()
    }
    /// Whether a cluster has the keys, of which this process shows itself as the only node.
    #[must_use]
    pub const fn is_cluster(&self) -> bool {
        self.is_cluster
    }
    /// What it calls itself: `cluster` in front of one.
    pub(crate) const fn mode(&self) -> &'static str {
        if self.is_cluster { "cluster" } else { "standalone" }
    }
    /// Whether another server has the keys.
    #[must_use]
    pub const fn forwards(&self) -> bool {
        self.ways.is_some()
    }
    /// Which way each command goes, if another server has the keys.
    pub(crate) const fn ways(&self) -> Option<Ways> {
        self.ways
    }

    /// A worker's mailbox.
    #[must_use]
    pub fn mailbox(&self, worker: u16) -> &Mailbox {
        self.mailboxes.of(worker)
    }
    /// Workers.
    #[must_use]
    pub fn worker_count(&self) -> u16 {
        self.mailboxes.count()
    }
    /// Sends a message to whom it names.
    pub fn post(&self, message: Message) {
        self.mailboxes.post(message);
    }
    /// Sends a message of no client to every worker.
    pub fn post_all(&self, message: fn() -> Message) {
        self.mailboxes.post_all(message);
    }

    /// A new logical client. `user`: whom it takes over from (RESPB: channel 0 of its connection); otherwise the
    /// default user, who must authenticate if a password is set.
    #[must_use]
    pub fn connect(
        &self,
        address: Address,
        wire: Wire,
        connection: Arc<ConnectionInfo>,
        from: Option<&Session>,
    ) -> Session {
        connection.charged_together.get_or_init(|| Arc::clone(&self.charged_bytes));
        // Before the user is looked up: a change in between is seen by the first request.
        let epoch = self.acl.epoch();
        let user = from.map_or_else(|| self.acl.default_user(), |from| Arc::clone(&from.user));
        let authenticated =
            from.map_or_else(|| !self.settings.auth_required.load(Relaxed), |from| from.authenticated);
        let info = self.clients.join(address, connection, Arc::clone(&user), self.clock.now_ms());
        let mut session = session(&info, user, wire);
        session.authenticated = authenticated;
        session.acl_epoch = from.map_or(epoch, |from| from.acl_epoch);
        session.set_protocol(wire.protocol);
        self.stats.connections.fetch_add(1, Relaxed);
        session
    }

    /// A session of no client, which brings what is loaded: its commands run while all others are refused.
    #[must_use]
    pub fn loading_session(&self, address: Address) -> Session {
        let mut session = self.connect(address, Wire::default(), Arc::default(), None);
        self.clients.leave(session.id());
        // Whatever the users of this server may.
        session.user = Acl::default().default_user();
        session.authenticated = true;
        session.acl_epoch = self.acl.epoch();
        session.loads = true;
        session
    }

    /// A session that stands in for a client whose blocked request is run by somebody else.
    pub(crate) fn stand_in(&self, info: &Arc<ClientInfo>, wire: Wire, db: u8) -> Session {
        let user = Arc::clone(&info.user.lock());
        Session { db, ..session(info, user, wire) }
    }

    /// Closes a client of any worker. It is gone from the registry at once.
    pub(crate) fn kill(&self, info: &ClientInfo, why: Kill) {
        self.clients.leave(info.id);
        self.post(Message::Kill(info.recipient(), why));
    }

    #[inline]
    pub(crate) fn handler(&self, id: CommandId) -> Option<Handler> {
        self.handlers.get(id)
    }
    /// What running a command comes to besides its handler.
    #[inline]
    pub(crate) const fn logic(&self) -> &Logic {
        &self.handlers.logic
    }
    /// What is looked at before a program runs.
    #[inline]
    pub(crate) fn before_programs(&self) -> Before<'_> {
        let Self { keyspace, clock, settings, programs, .. } = self;
        Before { keyspace, clock: &**clock, settings, programs }
    }
    /// The handler of the command that arguments are for.
    pub(crate) fn handler_of(&self, args: &Args<'_>) -> Result<Handler> {
        let unknown = || Error::err(format!("unknown command '{}'", full_name(args.spec)));
        self.handler(command_id(args)).ok_or_else(unknown)
    }
    /// Whether a command of the table is served.
    #[must_use]
    pub fn serves(&self, id: CommandId) -> bool {
        self.handlers.get(id).is_some()
    }
}

fn session(info: &Arc<ClientInfo>, user: Arc<User>, wire: Wire) -> Session {
    Session {
        wire,
        db: 0,
        authenticated: true,
        reply_mode: ReplyMode::On,
        then: Then::GoOn,
        caching: None,
        user,
        acl_epoch: 0,
        info: Arc::clone(info),
        transaction: None,
        subscriptions: None,
        has_left: false,
        wait: None,
        forwarded: 0,
        is_let_go: false,
        joins: false,
        watches: 0,
        confirmed: false,
        asked: None,
        loads: false,
        over_http: false,
        held: 0,
        away: false,
        plain: false,
    }
}
