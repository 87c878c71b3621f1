//! Owns: when the time of an operation is over, by its thread's time on a CPU. Does not own: how much it has
//! (`super::budget`, `crate::trigger`).
//!
//! A thread that the system has stopped computes nothing: what it runs is not to fail for that. So a clock of the wall
//! is looked at, which is cheap, and only where that says that the time is over the other one, a system call, which
//! decides. What an operation has used when it begins is not asked for each: the time on a CPU that was asked for a
//! moment ago and the time since then are as much at least.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// So many times its limit an operation may take by the wall, whatever its thread has had: it holds locks.
const WALL_FACTOR: u32 = 100;
/// For so long a thread's time on a CPU is not asked for anew. An operation may take that much more than its limit.
const FRESH: Duration = Duration::from_micros(250);

thread_local! {
    /// When this thread's time on a CPU was asked for last, and what it was.
    static ASKED: Cell<Option<(Instant, u64)>> = const { Cell::new(None) };
}

/// Nanoseconds that this thread has been on a CPU.
pub(super) fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// As much as this thread has been on a CPU now, or a little more.
fn cpu_ns_at(now: Instant) -> u64 {
    if let Some((at, ns)) = ASKED.get() {
        let since = now.saturating_duration_since(at);
        if since < FRESH {
            return ns + nanos(since);
        }
    }
    let ns = cpu_ns();
    ASKED.set(Some((now, ns)));
    ns
}

/// When the time of something is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Before that it is not.
    soonest: Instant,
    /// It is when its thread has been on a CPU for so long,
    cpu_ns: u64,
    /// or it is this late.
    latest: Instant,
}

impl Ends {
    /// Of something that has begun right now and may take so long.
    pub(crate) fn behind(began: Instant, limit: Duration) -> Self {
        Self::of(began, limit, cpu_ns_at(began))
    }
    fn of(began: Instant, limit: Duration, cpu_ns: u64) -> Self {
        Self {
            soonest: began + limit,
            cpu_ns: cpu_ns.saturating_add(nanos(limit)),
            latest: began + limit * WALL_FACTOR,
        }
    }
    /// The sooner of both.
    pub(crate) fn min(self, other: Self) -> Self {
        Self {
            soonest: self.soonest.min(other.soonest),
            cpu_ns: self.cpu_ns.min(other.cpu_ns),
            latest: self.latest.min(other.latest),
        }
    }
    /// The later of both.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            soonest: self.soonest.max(other.soonest),
            cpu_ns: self.cpu_ns.max(other.cpu_ns),
            latest: self.latest.max(other.latest),
        }
    }
    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over_in(0)
    }
    /// Whether it would be behind something that takes so long.
    pub(crate) fn is_over_in(&self, ns: u64) -> bool {
        self.is_over_at(Instant::now(), ns, cpu_ns)
    }
    #[inline]
    fn is_over_at(&self, now: Instant, ns: u64, cpu_ns: impl FnOnce() -> u64) -> bool {
        // More than a second is too much for any limit.
        let then = now + Duration::from_nanos(ns.min(NS_MAX));
        then >= self.soonest && (then >= self.latest || cpu_ns().saturating_add(ns) >= self.cpu_ns)
    }
}

/// As long as no limit is.
const NS_MAX: u64 = 1 << 50;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_thread_that_was_stopped_has_not_used_its_time() {
        let (began, limit) = (Instant::now(), Duration::from_millis(5));
        let ends = Ends::of(began, limit, 7 * MS);
        let is_over = |ms: u64, in_ns: u64, cpu_ms: u64| {
            ends.is_over_at(began + Duration::from_millis(ms), in_ns, || cpu_ms * MS)
        };
        let never_asked = || -> u64 { panic!("its time by the wall is not over") };
        assert!(!ends.is_over_at(began + Duration::from_millis(4), 0, never_asked));
        assert!(!ends.is_over_at(began + Duration::from_millis(2), 2 * MS, never_asked));
        // Stopped for long: it has been on a CPU for 4 of its 5 milliseconds, then for all of them.
        assert!(!is_over(300, 0, 11) && is_over(300, 0, 12));
        assert!(!is_over(300, MS, 10) && is_over(300, MS, 11));
        // But not for as long as it likes.
        assert!(!is_over(499, 0, 7) && is_over(500, 0, 7));
        assert!(ends.is_over_at(began, u64::MAX, || 0));
    }

    #[test]
    fn what_is_inside_of_something_ends_with_it() {
        let now = Instant::now();
        let [short, long] = [5, 50].map(|ms| Ends::of(now, Duration::from_millis(ms), 0));
        assert_eq!((short.min(long), short.max(long)), (short, long));
    }

    #[test]
    fn time_on_a_cpu_is_told_as_what_it_is_or_a_little_more() {
        // It is asked for anew, and then told without being asked for.
        ASKED.set(None);
        for _ in 0..1000 {
            let now = Instant::now();
            let told = cpu_ns_at(now);
            let (asked_at, asked) = ASKED.get().expect("it was asked for");
            assert_eq!(told - asked, nanos(now - asked_at));
            assert!(told - asked < nanos(FRESH));
        }
        std::thread::spawn(|| assert!(ASKED.get().is_none(), "each thread has its own")).join().unwrap();
    }
}
