//! Owns: the thread that puts full memory into huge pages (`huge-pages`). Does not own: which memory that is, and how
//! (`weft_store`).
//!
//! The kernel copies 2 MiB for each, 0.3 to 5 ms, and a worker that shares the core must not wait for that: the thread
//! has the lowest priority, and rests between regions. It holds no lock of the keyspace and is in no batch.

use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use weft_engine::Engine;
use weft_store::Collapse;

use crate::background::StopFlag;

/// The nicest that a thread can be.
const NICE_MAX: i32 = 19;
/// Rest between two regions, in times of what the last one took, and at least: a third of a core.
const REST_FACTOR: u32 = 2;
const REST_MIN: Duration = Duration::from_millis(5);
/// After a round that has found none, or when the kernel has none to give.
const IDLE: Duration = Duration::from_secs(1);

/// Runs until it is told to stop.
pub(crate) fn run(engine: &Engine, stop: &StopFlag) {
    // Without it the thread only has the priority of all others.
    let _ = setpriority_process(None, NICE_MAX);
    let mut looked_at = 0;
    while !stop.is_set() {
        let began = Instant::now();
        match engine.keyspace.collapse() {
            Collapse::Nothing if looked_at < engine.keyspace.regions() => looked_at += 1,
            Collapse::Done => {
                looked_at = 0;
                stop.wait((began.elapsed() * REST_FACTOR).max(REST_MIN));
            }
            Collapse::Nothing | Collapse::Refused => {
                looked_at = 0;
                stop.wait(IDLE);
            }
        }
    }
}
