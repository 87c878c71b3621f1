//! Owns: MIGRATE's way between its two halves: what is to be sent, and what follows here when it has arrived. Does not
//! own: sending it (the server's thread does), the command's arguments (`crate::commands::migrate`).
//!
//! The client waits like one that is blocked, so no worker does. Its keys are not locked meanwhile: what has been
//! changed since it was sent stays here, and the client is told.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use weft_store::{Batch, Key};

use crate::blocking::{self, Blocked};
use crate::commands::dump;
use crate::context::{Context, Local};
use crate::engine::Engine;
use crate::error::Error;

/// Sends a cargo away, without waiting for it; or gives it back, where there is no thread left that could.
pub type Send = Box<dyn Fn(Box<Cargo>) -> Result<(), Box<Cargo>> + std::marker::Send + Sync>;

/// Who takes cargoes; nobody in an engine without a server.
#[derive(Default)]
pub struct Carrier {
    send: OnceLock<Send>,
    /// Memory of all cargoes there are.
    bytes: Arc<AtomicUsize>,
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carrier").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Carrier {
    /// Set once, before the first client.
    pub fn set(&self, send: Send) {
        // A second one would be a second server on one engine.
        let _ = self.send.set(send);
    }
    pub(crate) fn get(&self) -> Option<&Send> {
        self.send.get()
    }
    /// An empty cargo's weight.
    pub(crate) fn weight(&self) -> Weight {
        Weight { bytes: 0, all: Arc::clone(&self.bytes) }
    }
}

/// One key of a cargo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name.
    pub key: Box<[u8]>,
    /// Its value as DUMP gives it.
    pub payload: Vec<u8>,
    /// When it expires.
    pub expire_ms: Option<u64>,
}

/// What a cargo takes in memory, which `maxmemory` does not know: counted with all others as long as it lasts.
#[derive(Debug)]
pub(crate) struct Weight {
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl Weight {
    /// The cargo becomes heavier by an item. Says whether all of them are within the limit.
    pub(crate) fn add(&mut self, item: &Item, bytes_max: usize) -> bool {
        let bytes = size_of::<Item>() + item.key.len() + item.payload.len();
        self.bytes += bytes;
        self.all.fetch_add(bytes, Relaxed) + bytes <= bytes_max
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Relaxed);
    }
}

/// What a MIGRATE sends. There is at most one for each client, who waits for it.
#[derive(Debug)]
pub struct Cargo {
    /// The target.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// By when all of it must have been answered.
    pub until: Instant,
    /// AUTH's arguments: a password, or a user and a password; none for no AUTH.
    pub credentials: Vec<Vec<u8>>,
    /// The database there.
    pub target_db: i64,
    /// REPLACE.
    pub replace: bool,
    /// COPY: the keys stay.
    pub copy: bool,
    /// The keys.
    pub items: Vec<Item>,
    #[expect(dead_code, reason = "it counts as long as the cargo lasts")]
    pub(crate) weight: Weight,
    pub(crate) wait: Arc<Blocked>,
}

/// How a cargo has fared.
#[derive(Debug, Default)]
pub struct Arrival {
    /// For each key whether the target has it.
    pub arrived: Vec<bool>,
    /// The error that the client is told, with its prefix.
    pub error: Option<(&'static str, String)>,
}

impl Engine {
    /// Tells the client of a cargo that nobody could take: its keys stay.
    pub(crate) fn give_back(&self, cargo: &Cargo, error: &Error) {
        blocking::refuse(self, &cargo.wait, error);
    }

    /// The second half of a MIGRATE: takes away what has arrived and answers the client. On a thread of its own, with
    /// its own place in the keyspace and its own `local`.
    pub fn unload(&self, cargo: &Cargo, arrival: Arrival, batch: &Batch<'_>, local: &mut Local) {
        let now_ms = self.clock.now_ms();
        local.effects.begin(self);
        let keys: Vec<Key<'_>> = cargo.items.iter().map(|item| self.keyspace.key(&item.key)).collect();
        let mut guards = batch.lock_keys(&keys);
        blocking::answer(self, local, &mut guards, (&cargo.wait, now_ms), |context, _, sink| {
            // Who was unblocked, cancelled or closed keeps its keys.
            if !context.commit() {
                return Ok(());
            }
            let changed = take_away(context, cargo, &arrival.arrived)?;
            match arrival.error {
                Some((prefix, text)) => Err(Error::with_prefix(prefix, text)),
                None if changed => Err(Error::with_prefix("TRYAGAIN", CHANGED)),
                None => {
                    sink.ok();
                    Ok(())
                }
            }
        });
        local.effects.end_group();
        if !local.ready.is_empty() {
            blocking::serve_covered(self, local, &mut guards, now_ms);
        }
        drop(guards);
        blocking::serve_rest(self, local, batch, now_ms);
        self.after_background(&mut local.effects);
        local.garbage.drain(..).for_each(|garbage| self.keyspace.discard(garbage));
    }
}

/// Removes the keys that have arrived and are as they were. Says whether others were changed meanwhile.
fn take_away(context: &mut Context<'_, '_>, cargo: &Cargo, arrived: &[bool]) -> Result<bool, Error> {
    let mut changed = false;
    let arrived = cargo.items.iter().zip(arrived).filter(|(_, arrived)| **arrived && !cargo.copy);
    for (item, _) in arrived {
        let key = context.key_of(&item.key);
        if dump::item(context, &key)?.as_ref() == Some(item) {
            context.delete(&key)?;
            context.written(&key);
        } else {
            changed = true;
        }
    }
    Ok(changed)
}

/// What a client is told whose key has been changed while it was on its way.
const CHANGED: &str = "A key was changed while it was sent: it stays here, and the target has it as it was";

impl Local {
    /// For a thread that is no worker.
    #[must_use]
    pub fn of_thread(seed: u64) -> Self {
        Self::new(seed, 0)
    }
}
