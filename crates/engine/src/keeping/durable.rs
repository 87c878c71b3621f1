//! Owns: what the engine knows of what is kept on disk: orders to whoever keeps it, how loading goes on, why writes
//! are refused or held back, the figures of INFO. Does not own: files, threads (the server's), up to which epoch all is
//! safe (`crate::safe`).

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::args::Args;
use crate::blocking::{self, Blocked, Empty};
use crate::context::Context;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode};
use crate::reply::ReplySink;
use crate::special;

/// Something that is to be done about what is kept.
#[derive(Debug)]
pub enum Order {
    /// SAVE and BGSAVE: a snapshot by itself. Who waits for it is answered.
    Snapshot(Option<Waiting>),
    /// BGSAVE CANCEL: the snapshot that is being made is given up.
    Cancel,
    /// BGREWRITEAOF: a snapshot that old segments of the log go for.
    Rewrite,
    /// CONFIG SET appendonly. Who has asked waits for the next order.
    Log(bool),
    /// CONFIG SET appendonly: answered when what is told is kept, or why it is not; where there is to be no log, when
    /// it has ended.
    Settled(Waiting),
    /// WAITAOF: answered when what was told up to this epoch is on the disk.
    Synced(Waiting, u64),
}

/// What is done when the server stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Farewell {
    /// A snapshot, if there are save points.
    #[default]
    AsConfigured,
    /// SHUTDOWN SAVE.
    Save,
    /// SHUTDOWN NOSAVE.
    NoSave,
}

/// Why writes may be refused: each is said and taken back by itself.
#[derive(Clone, Copy, Debug)]
pub enum Refuser {
    /// The log cannot be written, or there is no room for it.
    Log,
    /// The last snapshot failed.
    Snapshot,
}

/// What is answered then; Valkey's words.
const SNAPSHOT_FAILED: &str = "Valkey is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may \
     modify the data set are disabled, because this instance is configured to report errors during writes if RDB \
     snapshotting fails (stop-writes-on-bgsave-error option). Please check the Valkey logs for details about the RDB \
     error.";

/// A client that waits for an order.
#[derive(Debug)]
pub struct Waiting(Arc<Blocked>);

/// Takes orders, without waiting for them; gives back one for which there is no room.
pub type Take = Box<dyn Fn(Order) -> Result<(), Order> + Send + Sync>;

/// How long what was told may not be on the disk before writes are held back.
const UNSYNCED_MS_MAX: u64 = 2000;
/// How long a write waits until it is looked at again whether it is still to be held back.
const BEHIND_MS: u64 = 5;

/// What is kept, as the engine knows it.
#[derive(Default)]
pub struct Durable {
    take: OnceLock<Take>,
    /// Why writes are refused, by [`Refuser`].
    refusals: Mutex<[Option<Box<str>>; 2]>,
    farewell: Mutex<Farewell>,
    /// SHUTDOWN FORCE: the server stops though no snapshot can be made.
    is_forced: AtomicBool,
    /// Since when something that was written is not on the disk, in milliseconds since 1970; 0 for nothing, or where
    /// that does not matter.
    pub unsynced_since_ms: AtomicU64,
    /// The first epoch of which not all that was told is on the disk; 0 where nothing is, as before a log's first
    /// snapshot.
    pub unsynced_epoch: AtomicU64,
    /// Loading.
    pub loading: Loading,
    /// The log.
    pub log: LogFigures,
    /// Snapshots.
    pub saves: SaveFigures,
}

impl std::fmt::Debug for Durable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Durable").field("refusals", &self.refusals).finish_non_exhaustive()
    }
}

/// How far loading has come.
#[derive(Debug, Default)]
pub struct Loading {
    /// Bytes that there are.
    pub bytes: AtomicU64,
    /// Bytes that were read.
    pub done_bytes: AtomicU64,
    /// When it began, in milliseconds since 1970.
    pub started_ms: AtomicU64,
    /// Keys that were there behind it.
    pub keys: AtomicU64,
    /// Keys of the snapshot whose time had passed when it was read: they go behind it.
    pub keys_expired: AtomicU64,
}

impl Loading {
    /// How much of it is done.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.done_bytes.load(Relaxed) as f64 * 100.0 / (self.bytes.load(Relaxed).max(1)) as f64
    }
}

/// Figures of the log.
#[derive(Debug, Default)]
pub struct LogFigures {
    /// There is one.
    pub is_on: AtomicBool,
    /// Bytes since the last snapshot.
    pub bytes: AtomicU64,
    /// What they were right behind it.
    pub base_bytes: AtomicU64,
    /// Bytes that are written and not synced.
    pub unsynced_bytes: AtomicU64,
    /// Syncs.
    pub syncs: AtomicU64,
    /// How often writes were held back since one took long.
    pub syncs_late: AtomicU64,
    /// The last write failed.
    pub has_failed: AtomicBool,
    /// A snapshot for it is being written.
    pub is_rewriting: AtomicBool,
    /// One is to be written when the present snapshot is over.
    pub is_rewrite_scheduled: AtomicBool,
    /// How many have failed since the last one that has not.
    pub rewrites_failed: AtomicU64,
    /// How many there were.
    pub rewrites: AtomicU64,
    /// How long the last one took, in seconds; 0 for none.
    pub rewrite_s: AtomicI64,
}

/// Figures of snapshots.
#[derive(Debug, Default)]
pub struct SaveFigures {
    /// One is being written.
    pub is_saving: AtomicBool,
    /// When it was begun.
    pub started_ms: AtomicU64,
    /// Keys of it that were told.
    pub keys: AtomicU64,
    /// Keys that there were.
    pub keys_total: AtomicU64,
    /// Writes up to the last one.
    pub writes: AtomicI64,
    /// When the last one ended that succeeded, in milliseconds; 0 for none.
    pub last_ms: AtomicU64,
    /// The last one failed.
    pub has_failed: AtomicBool,
    /// How long it took, in seconds; 0 for none.
    pub last_s: AtomicI64,
    /// How many there were.
    pub count: AtomicU64,
    /// CPU time of the longest step of the last one, during which writes to a shard may wait, in microseconds.
    pub longest_step_us: AtomicU64,
}

impl Durable {
    /// Set once, before the first client.
    pub fn set_taker(&self, take: Take) {
        // A second one would be a second server on one engine.
        let _ = self.take.set(take);
    }
    /// Whether there is a log, or a snapshot was made.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.log.is_on.load(Relaxed) || self.saves.last_ms.load(Relaxed) != 0
    }
    /// SHUTDOWN says what is to be done.
    pub(crate) fn set_farewell(&self, farewell: Farewell, is_forced: bool) {
        *self.farewell.lock() = farewell;
        self.is_forced.store(is_forced, Relaxed);
    }
    /// What is to be done when the server stops.
    #[must_use]
    pub fn farewell(&self) -> Farewell {
        *self.farewell.lock()
    }
    /// Whether it stops though that cannot be done.
    #[must_use]
    pub fn is_forced(&self) -> bool {
        self.is_forced.load(Relaxed)
    }
    /// Gives an order; an error where nobody takes any, or too many wait.
    pub(crate) fn order(&self, order: Order) -> Result<(), Error> {
        self.check()?;
        let too_many =
            || Error::new(ErrorCode::Limit, "too many orders wait for the thread that keeps the log");
        self.take.get().map_or(Ok(()), |take| take(order).map_err(|_| too_many()))
    }
    /// Whether anybody takes orders: to be asked before a client waits for one.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let no_disk = || Error::err("Nothing is kept here: this engine has no disk");
        self.take.get().map(drop).ok_or_else(no_disk)
    }
}

impl Engine {
    /// From now on writes are refused, with these words; or not any more, for this reason.
    pub fn refuse_writes(&self, by: Refuser, why: Option<&str>) {
        let mut refusals = self.durable.refusals.lock();
        refusals[by as usize] = why.map(Box::from);
        self.special.set(special::REFUSING, refusals.iter().any(Option::is_some));
    }
    /// `stop-writes-on-bgsave-error`: writes are refused where snapshots are wanted and the last one failed.
    pub fn look_at_snapshots(&self) {
        let wanted = self.settings.stop_writes.load(Relaxed) && self.settings.has_save_points.load(Relaxed);
        let refuses = wanted && self.durable.saves.has_failed.load(Relaxed);
        self.refuse_writes(Refuser::Snapshot, refuses.then_some(SNAPSHOT_FAILED));
    }
    /// Whether writes are to be held back for a moment, since what was told is not on the disk for too long.
    pub fn hold_writes_back(&self, hold: bool) {
        if self.special.has(special::BEHIND) != hold {
            self.special.set(special::BEHIND, hold);
        }
    }
    /// Looks whether what was told is not on the disk for too long, or is too much: whoever keeps it may wait for the
    /// disk just now.
    pub fn look_at_log(&self, now_ms: u64) {
        let since_ms = self.durable.unsynced_since_ms.load(Relaxed);
        let is_late = since_ms != 0 && now_ms.saturating_sub(since_ms) > UNSYNCED_MS_MAX;
        if is_late && !self.special.has(special::BEHIND) {
            self.durable.log.syncs_late.fetch_add(1, Relaxed);
        }
        self.hold_writes_back(is_late || self.keyspace.is_behind());
    }
    /// What is kept is being loaded, or is there.
    pub fn set_loading(&self, is_loading: bool) {
        self.special.set(special::LOADING, is_loading);
    }

    /// CONFIG SET appendonly. At the start nobody takes orders yet: the server looks for itself.
    pub(crate) fn follow_appendonly(&self, wanted: bool) {
        if self.durable.check().is_ok() && self.durable.log.is_on.swap(wanted, Relaxed) != wanted {
            // It is never refused: there is one for each change.
            let _ = self.durable.order(Order::Log(wanted));
        }
    }

    /// When the last snapshot was made, or the server started.
    pub(crate) fn last_save_ms(&self) -> u64 {
        match self.durable.saves.last_ms.load(Relaxed) {
            0 => self.stats.started_ms,
            at_ms => at_ms,
        }
    }

    /// Why a write cannot run now.
    pub(crate) fn refusal(&self) -> Option<Error> {
        let refusals = self.durable.refusals.lock();
        let why = refusals.iter().flatten().next()?;
        Some(Error::new(ErrorCode::Misconfigured, why.to_string()))
    }
    /// What a client is told while what was kept is loaded.
    pub(crate) fn loading_error(&self) -> Error {
        let text =
            format!("Weft is loading the dataset in memory: {:.0}% done", self.durable.loading.percent());
        Error::new(ErrorCode::Loading, text)
    }
    /// Why nothing is served yet: what was kept is being loaded, so far.
    #[must_use]
    pub fn loading(&self) -> Option<Error> {
        self.special.has(special::LOADING).then(|| self.loading_error())
    }
    /// When a request that was held back is looked at again.
    #[must_use]
    pub fn held_back_until_ms(&self, now_ms: u64) -> u64 {
        let pause = self.pause.until_ms();
        if pause <= now_ms && self.special.has(special::BEHIND) { now_ms + BEHIND_MS } else { pause }
    }

    /// Answers a client that waited for an order.
    pub fn answer(&self, waiting: &Waiting, write: impl FnOnce(&mut ReplySink<'_>)) {
        blocking::answer_with(self, &waiting.0, write);
    }
    /// Whether it waits no more.
    #[must_use]
    pub fn waits_no_more(&self, waiting: &Waiting) -> bool {
        blocking::is_over(&waiting.0)
    }
}

impl Context<'_, '_> {
    /// Gives an order and waits until it is answered. One that is not taken is an error, and nothing waits.
    pub(crate) fn await_order(
        &mut self,
        args: &Args<'_>,
        ends: (u64, Empty),
        order: impl FnOnce(Waiting) -> Order,
    ) -> Result<(), Error> {
        self.engine.durable.check()?;
        self.block(&[], ends, args.to_owned_args())?;
        let Some(wait) = &self.session.wait else { return Ok(()) };
        let waiting = Waiting(wait.shared());
        let blocked = Arc::clone(&waiting.0);
        self.engine.durable.order(order(waiting)).or_else(|error| {
            blocking::refuse(self.engine, &blocked, &error);
            Ok(())
        })
    }
}
