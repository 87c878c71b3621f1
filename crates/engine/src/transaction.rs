//! Owns: what MULTI and WATCH keep for a session. Does not own: EXEC itself (`crate::executor::exec`), the versions of
//! watched keys (`weft_store::watch`).

use weft_store::{Batch, WatchVersion};

use crate::args::OwnedArgs;

/// Bytes of queued commands that a transaction may hold; one more aborts it.
pub const QUEUED_BYTES_MAX: usize = 1 << 30;

/// A key that is watched.
#[derive(Debug)]
pub struct Watched {
    /// Its database.
    pub db: u8,
    /// The key.
    pub key: Box<[u8]>,
    /// Whether it was there when WATCH ran.
    pub there: bool,
    /// What it was then.
    pub version: WatchVersion,
}

/// A transaction: queued commands, or only watched keys.
#[derive(Debug, Default)]
pub struct Transaction {
    /// MULTI has run.
    pub open: bool,
    /// A command was refused: EXEC will abort.
    pub refused: bool,
    /// There is no room for what it would store: EXEC will say so.
    pub no_room: bool,
    /// The database that the next command will run in, if a queued SELECT chose one.
    pub db: Option<u8>,
    /// The commands.
    pub queued: Vec<OwnedArgs>,
    /// What the commands take.
    pub queued_bytes: usize,
    /// WATCH. Each is registered in the shard of its key until it is given back there.
    pub watched: Vec<Watched>,
    /// The first ones count no more: those of a transaction that ended while a script had their shards. They go with
    /// the others.
    pub stale: usize,
}

impl Transaction {
    /// It has ended. What remains is the watches that could not be given back.
    #[must_use]
    pub fn ended(self: Box<Self>) -> Option<Box<Self>> {
        let stale = self.watched.len();
        (stale > 0).then(|| Box::new(Self { watched: self.watched, stale, ..Self::default() }))
    }
    /// The watches that count.
    #[must_use]
    pub fn counting(&self) -> &[Watched] {
        &self.watched[self.stale..]
    }
    /// Gives the watches back to their shards. The caller holds no lock.
    pub fn unwatch(&mut self, batch: &Batch<'_>) {
        self.stale = 0;
        for watched in self.watched.drain(..) {
            let key = batch.keyspace().key(&watched.key);
            batch.lock(&key).watches().remove(watched.db, key.hash());
        }
    }
}
