//! Owns: making room when `maxmemory` is exceeded, before a command or in the background. Does not own: which keys go
//! (`weft_store::evict`).

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use weft_store::evict::Outcome;
use weft_store::{Batch, Evictor, Policy};

use crate::context::Effects;
use crate::engine::Engine;

/// Keys that one call may evict; more memory is found by the next ones.
const KEYS_MAX: usize = 64;

/// One thread's eviction.
#[derive(Debug)]
pub struct Eviction {
    evictor: Evictor,
    /// The policy that the evictor's candidates are for.
    by: Policy,
}

/// What a call has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Whether a command that needs memory may run.
    pub is_there: bool,
    /// Keys that went.
    pub evicted: usize,
}

impl Eviction {
    /// An eviction without candidates. `seed` is of its dice.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { evictor: Evictor::new(seed), by: Policy::NoEviction }
    }

    /// Evicts until there is room, if there is a limit. The caller holds no lock.
    pub fn make_room(
        &mut self,
        engine: &Engine,
        batch: &Batch<'_>,
        now_ms: u64,
        effects: &mut Effects,
    ) -> Room {
        let settings = &engine.settings;
        let limit = settings.maxmemory_bytes.load(Relaxed);
        // A pause of writes is one of eviction and expiry too.
        if limit == 0 || engine.keyspace.used_bytes() <= limit || engine.keyspace.keeps_expired(now_ms) {
            return Room { is_there: true, evicted: 0 };
        }
        let (policy, samples) = (settings.policy(), settings.maxmemory_samples.load(Relaxed) as usize);
        if policy != self.by {
            self.evictor.reset();
            self.by = policy;
        }
        let threshold_ms = settings.latency_threshold_ms.load(Relaxed);
        let watched = (threshold_ms != 0).then(Instant::now);
        let (outcome, evicted) = self.evictor.evict_until(
            batch,
            (policy, samples),
            (limit, KEYS_MAX),
            now_ms,
            &mut effects.recorder,
        );
        if let Some(watched) = watched {
            engine.event_took("eviction-cycle", watched.elapsed(), threshold_ms, now_ms);
        }
        Room { is_there: outcome != Outcome::Nothing, evicted }
    }
}
