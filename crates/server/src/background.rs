//! Owns: the thread of background work: when a step runs, for how long, and how long it took. Does not own: what a step
//! does (`weft_engine::background`).
//!
//! It sleeps between rounds, longer the less there was to do, so that an idle server costs next to nothing. Each part
//! of a step is timed, because its length is what a command may have to wait (INFO's `background_step_max_us`); CPU
//! time beside it, because on a busy machine the wall measures who else wanted the core.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use weft_engine::Engine;
use weft_engine::background::Background;
use weft_engine::special::LOADING;

use crate::clock::cpu_ns;
use crate::heap::Heap;

/// How long one round may take before it sleeps: a tenth of a core at the shortest sleep.
const ROUND: Duration = Duration::from_millis(2);
/// Sleeps between rounds, when there was much to do and when there was nothing.
const SLEEP_MIN: Duration = Duration::from_millis(5);
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// Tells the thread to stop.
#[derive(Default)]
pub(crate) struct StopFlag {
    stopped: Mutex<bool>,
    changed: Condvar,
    flag: AtomicBool,
}

impl StopFlag {
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

/// When the part of a step began that is running: by the wall, and by the thread's CPU time.
struct Step {
    began: (Instant, u64),
}

impl Step {
    fn begin() -> Self {
        Self { began: (Instant::now(), cpu_ns()) }
    }
    /// It ends, and another begins.
    fn end(&mut self, engine: &Engine) {
        let ended = Self::begin().began;
        let wall_ns = u64::try_from((ended.0 - self.began.0).as_nanos()).unwrap_or(u64::MAX);
        engine.stats.longest_step.note(wall_ns, ended.1 - self.began.1);
        self.began = ended;
    }
}

/// Runs until it is told to stop.
pub(crate) fn run(engine: &Engine, stop: &StopFlag) {
    let Some(mut worker) = engine.keyspace.worker() else { return };
    let mut background = Background::new(engine);
    let mut heap = Heap::new();
    let mut sleep = SLEEP_MIN;
    while !stop.is_set() {
        engine.look_at_log(Instant::now());
        engine.look_at_feed(engine.clock.now_ms());
        if engine.special.has(LOADING) {
            // What has expired goes when it is told of.
            stop.wait(SLEEP_MIN);
            continue;
        }
        let started = Instant::now();
        let mut busy = false;
        let mut step = Step::begin();
        while started.elapsed() < ROUND {
            let done = background.step(engine, &mut worker, |_| step.end(engine));
            busy |= done.was_busy;
            if !done.goes_on {
                break;
            }
        }
        engine.sample(engine.clock.now_ms());
        heap.look(engine.purge.swap(false, Relaxed));
        sleep = if busy { SLEEP_MIN } else { (sleep * 2).min(SLEEP_MAX) };
        stop.wait(sleep);
    }
}
