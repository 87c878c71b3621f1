//! Owns: one step of what no command waits for: expiry, eviction, ending resizes, compaction, giving memory back; and
//! telling what was removed; reading the catalogue at the start. Does not own: when steps run and who measures them
//! (the server's thread), the work itself (`weft_store`).
//!
//! A step has three parts, because a command may have to wait for the first two: they hold shards.

mod loading;

use std::sync::atomic::Ordering::Relaxed;

use weft_store::expire::ExpiryStep;
use weft_store::{ExpiryCycle, Maintenance, Worker};

use crate::context::EffectReader;
use crate::engine::Engine;
use crate::eviction::Eviction;
use crate::logic::OutboxRunner;

/// Keys that one step of expiry removes, and up to 239 more (`ExpiryCycle::step`): in a keyspace of 10 million keys,
/// where nearly every one of them is a miss of all caches, a step was 1.3 ms with 512, and with 64 still 0.9 while the
/// machine's memory was slow.
const EXPIRE_KEYS_PER_STEP: usize = 16;

/// A part of a step that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Keys were removed under the locks of their shards, and told of.
    Removed,
    /// Structures were maintained under a lock.
    Locked,
    /// What needs no lock was done.
    Outside,
}

/// What a step has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// It did something.
    pub was_busy: bool,
    /// More of the same is to be done at once.
    pub goes_on: bool,
    /// Nothing is left: every shard has been looked at since something was found.
    pub is_idle: bool,
}

/// Background work and how far it has come.
#[derive(Debug)]
pub struct Background {
    expiry: ExpiryCycle,
    maintenance: Maintenance,
    eviction: Eviction,
    effects: EffectReader,
    /// Does what triggers do afterwards.
    afterwards: Option<OutboxRunner>,
}

impl Background {
    /// Work that begins with the first shard.
    #[must_use]
    pub fn new(engine: &Engine) -> Self {
        Self {
            expiry: ExpiryCycle::default(),
            maintenance: Maintenance::default(),
            eviction: Eviction::new(engine.clock.now_ms()),
            effects: EffectReader::default(),
            afterwards: None,
        }
    }

    /// Does one step, and says of each part when it has ended.
    pub fn step(&mut self, engine: &Engine, worker: &mut Worker<'_>, mut ended: impl FnMut(Part)) -> Done {
        self.effects.begin(engine);
        let now_ms = engine.clock.now_ms();
        let (expired, room) = {
            let batch = worker.enter();
            let active =
                engine.settings.active_expire.load(Relaxed) && !engine.keyspace.keeps_expired(now_ms);
            let expired = if active {
                self.expiry.step(&batch, now_ms, EXPIRE_KEYS_PER_STEP, &mut self.effects.recorder)
            } else {
                ExpiryStep { round_done: true, ..ExpiryStep::default() }
            };
            // A limit that was lowered is kept also when no command comes.
            let room = self.eviction.make_room(engine, &batch, now_ms, &mut self.effects);
            // Within the batch: what triggers do of other events of these keys does not come before it.
            if !self.effects.is_empty() {
                engine.after_background(&mut self.effects);
            }
            (expired, room)
        };
        ended(Part::Removed);
        let fired = engine.triggers.outbox.waits(&engine.keyspace)
            && self.afterwards.get_or_insert_with(|| OutboxRunner::new(engine)).step(engine, worker);
        let locked = self.maintenance.step_under_lock(&worker.enter());
        ended(Part::Locked);
        let maintained = self.maintenance.step_outside(&worker.enter(), locked);
        ended(Part::Outside);
        let removes = expired.expired > 0 || room.evicted > 0;
        let more = expired.expired > 0 && !expired.round_done || room.evicted > 0;
        Done {
            was_busy: removes || fired || maintained.worked || maintained.purged_bytes > 0,
            goes_on: more || fired || !maintained.idle,
            is_idle: expired.round_done && room.evicted == 0 && maintained.idle,
        }
    }
}
