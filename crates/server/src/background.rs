//! Owns: the thread that does what no command waits for: expiry, eviction, ending resizes, compaction, giving memory
//! back. Does not own: that work itself (`weft_store`).
//!
//! It sleeps between rounds, longer the less there was to do, so that an idle server costs next to nothing. Each step
//! is timed, because its length is what a command may have to wait (INFO's `background_step_max_us`); CPU time beside
//! it, because on a busy machine the wall measures who else wanted the core.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use weft_engine::Engine;
use weft_engine::context::Effects;
use weft_engine::eviction::Eviction;
use weft_store::expire::ExpiryStep;
use weft_store::{ExpiryCycle, Maintenance};

use crate::clock::cpu_ns;

/// Keys that one step of expiry removes, and up to 239 more (`ExpiryCycle::step`): in a keyspace of 10 million keys,
/// where nearly every one of them is a miss of all caches, a step was 1.3 ms with 512, and with 64 still 0.9 while the
/// machine's memory was slow.
const EXPIRE_KEYS_PER_STEP: usize = 16;
/// How long one round may take before it sleeps: a tenth of a core at the shortest sleep.
const ROUND: Duration = Duration::from_millis(2);
/// Sleeps between rounds, when there was much to do and when there was nothing.
const SLEEP_MIN: Duration = Duration::from_millis(5);
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// Tells the thread to stop.
#[derive(Default)]
pub(crate) struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
    flag: AtomicBool,
}

impl Stop {
    pub(crate) fn stop(&self) {
        self.flag.store(true, Relaxed);
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Relaxed)
    }
    pub(crate) fn wait(&self, time: Duration) {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*stopped {
            let _ = self.changed.wait_timeout(stopped, time);
        }
    }
}

/// When the step began that is running: by the wall, and by the thread's CPU time.
struct Step {
    began: (Instant, u64),
}

impl Step {
    fn begin() -> Self {
        Self { began: (Instant::now(), cpu_ns()) }
    }
    /// The step ends, and another begins.
    fn end(&mut self, engine: &Engine) {
        let ended = Self::begin().began;
        let wall_ns = u64::try_from((ended.0 - self.began.0).as_nanos()).unwrap_or(u64::MAX);
        engine.stats.longest_step.note(wall_ns, ended.1 - self.began.1);
        self.began = ended;
    }
}

/// Runs until it is told to stop.
pub(crate) fn run(engine: &Engine, stop: &Stop) {
    let Some(mut worker) = engine.keyspace.worker() else { return };
    let mut expiry = ExpiryCycle::default();
    let mut maintenance = Maintenance::default();
    let mut eviction = Eviction::new(engine.clock.now_ms());
    let mut effects = Effects::default();
    let mut sleep = SLEEP_MIN;
    while !stop.is_set() {
        let started = Instant::now();
        let mut busy = false;
        let mut step = Step::begin();
        while started.elapsed() < ROUND {
            effects.begin(engine);
            let now_ms = engine.clock.now_ms();
            let (expired, room) = {
                let batch = worker.enter();
                let active =
                    engine.settings.active_expire.load(Relaxed) && !engine.keyspace.keeps_expired(now_ms);
                let expired = if active {
                    expiry.step(&batch, now_ms, EXPIRE_KEYS_PER_STEP, &mut effects.recorder)
                } else {
                    ExpiryStep { round_done: true, ..ExpiryStep::default() }
                };
                // A limit that was lowered is kept also when no command comes.
                let room = eviction.make_room(engine, &batch, now_ms, &mut effects);
                (expired, room)
            };
            if !effects.is_empty() {
                engine.after_background(&mut effects);
            }
            step.end(engine);
            let locked = maintenance.step_under_lock(&worker.enter());
            step.end(engine);
            let maintained = maintenance.step_outside(&worker.enter(), locked);
            step.end(engine);
            let more = expired.expired > 0 && !expired.round_done || room.evicted > 0;
            busy |= expired.expired > 0
                || room.evicted > 0
                || maintained.moved > 0
                || maintained.purged_bytes > 0;
            if !more && maintained.idle {
                break;
            }
        }
        engine.sample(engine.clock.now_ms());
        sleep = if busy { SLEEP_MIN } else { (sleep * 2).min(SLEEP_MAX) };
        stop.wait(sleep);
    }
}
