//! Owns: what the engine knows of what is kept on disk: orders to whoever keeps it, how loading goes on, why writes
//! are refused or held back, the figures of INFO. Does not own: files, threads (the server's), up to which epoch all is
//! safe (`crate::safe`).

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;

use crate::error::{Error, ErrorCode, Result};
use crate::waits::Blocked;

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
    /// The server stops in the middle of what a script has written, and keeps nothing of it.
    Stop,
}

/// A client that waits for an order.
#[derive(Debug)]
pub struct Waiting(pub(crate) Arc<Blocked>);

/// Takes orders, without waiting for them; gives back one for which there is no room.
pub type Take = Box<dyn Fn(Order) -> Result<(), Order> + Send + Sync>;

/// What is kept, as the engine knows it.
#[derive(Default)]
pub struct Durable {
    take: OnceLock<Take>,
    /// Why writes are refused, by [`Refuser`].
    pub(crate) refusals: Mutex<[Option<Box<str>>; 3]>,
    farewell: Mutex<Farewell>,
    /// SHUTDOWN FORCE: the server stops though no snapshot can be made.
    is_forced: AtomicBool,
    /// Since when something that was written is not on the disk, by a clock that nobody sets; nothing where all is, or
    /// that does not matter.
    pub unsynced_since: Mutex<Option<Instant>>,
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
    pub(crate) fn order(&self, order: Order) -> Result {
        self.check()?;
        let too_many =
            || Error::new(ErrorCode::Limit, "too many orders wait for the thread that keeps the log");
        self.take.get().map_or(Ok(()), |take| take(order).map_err(|_| too_many()))
    }
    /// Whether anybody takes orders: to be asked before a client waits for one.
    pub(crate) fn check(&self) -> Result {
        let no_disk = || Error::err("Nothing is kept here: this engine has no disk");
        self.take.get().map(drop).ok_or_else(no_disk)
    }
}
