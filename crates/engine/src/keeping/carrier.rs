//! Owns: what a MIGRATE sends, and who takes it. Does not own: sending it (the server's thread does), what is done here
//! before and behind that (`crate::commands::keys::migrate`).
//!
//! The client waits like one that is blocked, so no worker does. Its keys are not locked meanwhile: what has been
//! changed since it was sent stays here, and the client is told.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::waits::Blocked;

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
