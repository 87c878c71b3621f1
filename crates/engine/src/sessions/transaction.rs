//! Owns: what MULTI and WATCH keep for a session. Does not own: EXEC itself (`crate::executor::exec`), the versions of
//! watched keys (`weft_store::watch`).

use std::any::Any;
use std::collections::HashMap;

use weft_store::{Batch, Key, WatchVersion};

use crate::charge::Charge;
use crate::queued::Queued;

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
    pub queued: Queued,
    /// What was read of texts that commands bring, by the numbers of these, in their order: in the form of whoever runs
    /// them (`crate::trigger`).
    pub ahead: Vec<(usize, Box<dyn Any + Send + Sync>)>,
    /// What the commands take.
    pub queued_bytes: usize,
    /// WATCH. Each is registered in the shard of its key until it is given back there.
    pub watched: Vec<Watched>,
    /// Where in `watched` a key of this database and hash stands: the latest, should two have the same.
    places: HashMap<(u8, u64), usize>,
    /// What their names count.
    pub charge: Charge,
    /// The first ones count no more: those of a transaction that ended while a script had their shards. They go with
    /// the others.
    pub stale: usize,
}

impl Transaction {
    /// A new one in the memory of one that has ended, unless watches of that are left.
    #[must_use]
    pub fn renewed(mut self: Box<Self>) -> Option<Box<Self>> {
        if !self.watched.is_empty() {
            return None;
        }
        let mut queued = std::mem::take(&mut self.queued);
        queued.clear();
        *self = Self { queued, ..Self::default() };
        Some(self)
    }
    /// It has ended. What remains is the watches that could not be given back.
    #[must_use]
    pub fn ended(self: Box<Self>) -> Option<Box<Self>> {
        let stale = self.watched.len();
        (stale > 0)
            .then(|| Box::new(Self { watched: self.watched, charge: self.charge, stale, ..Self::default() }))
    }
    /// Whether a key is watched, by a watch that counts.
    #[must_use]
    pub fn watches(&self, db: u8, key: &Key<'_>) -> bool {
        let Some(&place) = self.places.get(&(db, key.hash())) else { return false };
        let is = |watched: &Watched| watched.db == db && *watched.key == *key.bytes();
        is(&self.watched[place]) || self.counting().iter().any(is)
    }
    /// The watches that count.
    #[must_use]
    pub fn counting(&self) -> &[Watched] {
        &self.watched[self.stale..]
    }
    /// One more key is watched.
    pub fn watch(&mut self, hash: u64, watched: Watched) {
        self.places.insert((watched.db, hash), self.watched.len());
        self.watched.push(watched);
    }
    /// Gives the watches back to their shards. The caller holds no lock. Those of a shard that a script keeps stay
    /// there, with all that have not been come to, and count no more.
    pub fn unwatch(&mut self, batch: &Batch<'_>) {
        self.places.clear();
        while let Some(watched) = self.watched.last() {
            let key = batch.keyspace().key(&watched.key);
            let Some(mut shard) = batch.lock_in_time(&key) else { break };
            shard.watches().remove(watched.db, key.hash());
            self.watched.pop();
        }
        self.stale = self.watched.len();
        if self.watched.is_empty() {
            self.charge.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OwnedArgs;
    use weft_protocol::table;
    use weft_store::{Config, Keyspace};

    #[test]
    fn the_next_transaction_finds_nothing_of_the_last_one_but_its_memory() {
        let spec = table::by_name(b"SET").unwrap().spec();
        let set = OwnedArgs::new(spec, [&b"SET"[..], b"k", &[b'x'; 100 << 10]].into_iter());
        let keyspace = Keyspace::new(Config::default());
        let key = keyspace.key(b"k");
        let mut worker = keyspace.worker().expect("there is a place");
        let version = worker.enter().lock(&key).watches().add(0, key.hash()).expect("there is room");
        let watched = || Watched { db: 0, key: (*b"k").into(), there: false, version };
        let mut transaction = Box::<Transaction>::default();
        (transaction.open, transaction.refused, transaction.no_room, transaction.db) =
            (true, true, true, Some(3));
        transaction.queued_bytes = transaction.queued.push(&set.args());
        transaction.ahead.push((0, Box::new(())));
        transaction.watch(1, watched());
        transaction.watched.clear();
        let next = transaction.renewed().expect("no watch is left");
        assert!(!next.open && !next.refused && !next.no_room && next.db.is_none() && next.queued.is_empty());
        assert!(next.queued_bytes == 0 && next.ahead.is_empty() && next.places.is_empty() && next.stale == 0);
        let mut with_watch = Box::<Transaction>::default();
        with_watch.watch(1, watched());
        assert!(with_watch.renewed().is_none(), "its watches have yet to be given back");
    }
}
