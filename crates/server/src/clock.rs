//! Owns: the clocks that tell how long something took. Does not own: the time of day (`weft_store::Clock`).

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds that this thread has been on a CPU.
pub(crate) fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Microseconds since then.
pub(crate) fn micros(since: Instant) -> u64 {
    let passed = since.elapsed();
    passed.as_secs() * 1_000_000 + u64::from(passed.subsec_micros())
}
