//! Owns: when a thread whose clients are busy waits a moment before it looks at its sockets again. Does not own: the
//! loop (`crate::crew`), waiting for sockets (`crate::poll`).
//!
//! A thread that is faster than its clients finds one or two requests each time it looks: with 50 clients that send a
//! command a round trip as fast as their core allows, it looks for every other command and falls asleep for every
//! fourteenth. Each look costs a tenth of a command, each sleep half of one and in a virtual machine up to five, and a
//! client pays for waking it. So looks are a moment apart, and bring more (ADR 0021).
//!
//! What keeps it from costing anybody time:
//!
//! - The time between two looks is at most half of the time between two requests of a connection, less what a request
//!   takes of it in any case. A client alone, or a few, see no difference; nor does a thread that is busy for that long
//!   anyway.
//! - Every now and then looks follow each other at once, and the thread counts how often it had to wait. Where that is
//!   often, clients are not busy, and there are no moments.
//! - When a moment has brought fewer than [`GATHERED_MIN`] connections, none follows for a while, and if that repeats
//!   itself, for longer.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::thread::{Timespec, nanosleep, set_current_timer_slack};

/// The share of a connection's own time that may pass between two looks, when what the way of a request and falling
/// asleep take in any case does not count: otherwise the clients have nothing left to do in the meantime.
const CYCLE_SHARE: u64 = 2;
const CYCLE_WAY_US: u64 = 80;
/// What is longer than this between two requests of a connection counts as this.
const CYCLE_US_MAX: u64 = 1000;
/// A shorter time between two looks gathers too little: the clients are few.
const INTERVAL_US_MIN: u64 = 40;
/// A shorter moment is not worth what falling asleep costs.
const MOMENT_US_MIN: u64 = 20;
/// Connections that a moment must bring.
const GATHERED_MIN: usize = 4;
/// Looks of a sample, and how many of them at most may have to wait.
const SAMPLE_LOOKS: u32 = 16;
const SAMPLE_WAITS_MAX: u32 = 5;
/// A look that takes as long as this had to wait.
const WAIT_US_MIN: u64 = 5;
/// Looks from one sample to the next while moments pay.
const MOMENTS: u32 = 256;
/// Looks without moments when they do not, at first and at most.
const REST_LOOKS_MIN: u32 = 64;
const REST_LOOKS_MAX: u32 = 4096;
/// One over the weight of a connection in the average.
const WEIGHT: u64 = 16;

/// How much later than asked the kernel may wake this thread. Its own 50 µs are as long as a moment.
const SLACK_NS: NonZeroU64 = NonZeroU64::new(2000).expect("is not zero");

/// Lets the thread sleep for moments and not for longer.
pub(crate) fn prepare() {
    // Where it fails, moments are longer.
    let _ = set_current_timer_slack(Some(SLACK_NS));
}

/// Waits.
pub(crate) fn sleep(moment: Duration) {
    // A signal may end it early, which does no harm.
    let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: i64::from(moment.subsec_nanos()) });
}

/// What a thread does at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It looks as often as it can, and counts how often it has to wait.
    Sample { looks: u32, waits: u32 },
    /// It lets moments pass, for so many looks more.
    Moments(u32),
    /// It looks as often as it can, for so many looks more.
    Rest(u32),
}

/// The time between two requests of a connection, on the average over a thread's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cycles {
    /// Times [`WEIGHT`].
    sum_us: u64,
}

impl Cycles {
    /// A connection has brought something, so long after it did so before.
    #[inline]
    pub(crate) fn heard(&mut self, cycle_us: u64) {
        self.sum_us = self.sum_us - self.sum_us / WEIGHT + cycle_us.min(CYCLE_US_MAX);
    }
    pub(crate) const fn average_us(&self) -> u64 {
        self.sum_us / WEIGHT
    }
}

/// When a thread looks at its sockets.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When the thread looked last.
    looked_us: u64,
    phase: Phase,
    /// When the look began that is in a sample.
    sampled_us: Option<u64>,
    /// A moment passed before the look.
    after_moment: bool,
    /// How long the next rest is.
    next_rest: u32,
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Self {
            looked_us: 0,
            phase: Phase::Sample { looks: 0, waits: 0 },
            sampled_us: None,
            after_moment: false,
            next_rest: REST_LOOKS_MIN,
        }
    }

    /// A look has brought something of so many connections.
    pub(crate) fn looked(&mut self, now_us: u64, connections: usize) {
        self.looked_us = now_us;
        if std::mem::take(&mut self.after_moment) {
            match connections {
                GATHERED_MIN.. => self.next_rest = REST_LOOKS_MIN,
                _ => self.rest(),
            }
        }
        if let (Phase::Sample { looks, waits }, Some(since_us)) = (self.phase, self.sampled_us.take()) {
            let waits = waits + u32::from(now_us - since_us >= WAIT_US_MIN);
            self.phase = Phase::Sample { looks: looks + 1, waits };
            if waits > SAMPLE_WAITS_MAX {
                self.rest();
            } else if looks + 1 == SAMPLE_LOOKS {
                self.phase = Phase::Moments(MOMENTS);
            }
        }
    }

    fn rest(&mut self) {
        self.phase = Phase::Rest(self.next_rest);
        self.next_rest = (self.next_rest * 2).min(REST_LOOKS_MAX);
    }

    /// How long to wait before the next look, which is to come `interval_us` after the last one, when a connection
    /// brings something every `cycle_us`.
    pub(crate) fn moment(
        &mut self,
        interval_us: u64,
        cycle_us: u64,
        now_us: impl FnOnce() -> u64,
    ) -> Option<Duration> {
        let own_us = cycle_us.saturating_sub(CYCLE_WAY_US);
        let interval_us = interval_us.min(own_us / CYCLE_SHARE);
        if interval_us < INTERVAL_US_MIN {
            return None;
        }
        match self.phase {
            Phase::Rest(0) | Phase::Moments(0) => self.phase = Phase::Sample { looks: 0, waits: 0 },
            Phase::Rest(left) => self.phase = Phase::Rest(left - 1),
            Phase::Sample { .. } => self.sampled_us = Some(now_us()),
            Phase::Moments(left) => {
                self.phase = Phase::Moments(left - 1);
                let left_us = (self.looked_us + interval_us).saturating_sub(now_us());
                if left_us >= MOMENT_US_MIN {
                    self.after_moment = true;
                    return Some(Duration::from_micros(left_us));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_US: u64 = 80;

    /// Clients and a clock.
    struct World {
        pace: Pace,
        cycles: Cycles,
        now_us: u64,
        moments: u32,
    }

    impl World {
        /// Connections that bring something every `cycle_us`.
        fn new(cycle_us: u64) -> Self {
            let mut cycles = Cycles::default();
            (0..1000).for_each(|_| cycles.heard(cycle_us));
            Self { pace: Pace::new(), cycles, now_us: 1000, moments: 0 }
        }
        /// One look that takes `wait_us` and brings `at_once`, or `gathered` after a moment, and 5 µs of work.
        fn look(&mut self, wait_us: u64, at_once: usize, gathered: usize) -> Option<Duration> {
            let now_us = self.now_us;
            let moment = self.pace.moment(INTERVAL_US, self.cycles.average_us(), || now_us);
            self.now_us += moment.map_or(wait_us, |moment| moment.as_micros() as u64);
            self.pace.looked(self.now_us, if moment.is_some() { gathered } else { at_once });
            self.moments += u32::from(moment.is_some());
            self.now_us += 5;
            moment
        }
    }

    #[test]
    fn looks_of_busy_clients_are_an_interval_apart() {
        let mut world = World::new(400);
        let moments: Vec<_> = (0..1000).filter_map(|_| world.look(1, 2, 9)).collect();
        assert!(moments.len() > 750, "{}", moments.len());
        assert!(
            moments.iter().all(|moment| moment.as_micros() == u128::from(INTERVAL_US) - 5),
            "{moments:?}"
        );
    }

    #[test]
    fn a_worker_that_is_busy_for_as_long_looks_at_once() {
        let mut world = World::new(400);
        for _ in 0..1000 {
            world.now_us += INTERVAL_US - 5 - MOMENT_US_MIN + 1;
            assert_eq!(world.look(1, 20, 20), None);
        }
    }

    #[test]
    fn zero_is_off_and_nothing_is_known_at_first() {
        let mut pace = World::new(400).pace;
        assert!((0..100).all(|_| pace.moment(0, 400, || 0).is_none()));
        let cycle_us = Cycles::default().average_us();
        let mut pace = Pace::new();
        assert!((0..100).all(|_| pace.moment(INTERVAL_US, cycle_us, || 0).is_none()));
    }

    #[test]
    fn half_of_a_connections_own_time_is_the_most() {
        let mut world = World::new(200);
        let longest = (0..100).filter_map(|_| world.look(1, 2, 9)).max().expect("moments");
        assert!((50..=55).contains(&longest.as_micros()), "{longest:?}");
        let mut few = World::new(CYCLE_WAY_US + CYCLE_SHARE * INTERVAL_US_MIN - 2);
        (0..1000).for_each(|_| assert_eq!(few.look(1, 1, 9), None));
    }

    #[test]
    fn long_silence_is_not_taken_for_a_rhythm_for_long() {
        let mut world = World::new(u64::MAX);
        assert!(world.cycles.average_us() <= CYCLE_US_MAX);
        (0..100).for_each(|_| world.cycles.heard(30));
        (0..1000).for_each(|_| assert_eq!(world.look(1, 1, 9), None));
    }

    #[test]
    fn clients_that_are_waited_for_are_not_made_to_wait() {
        let mut world = World::new(1000);
        for look in 0..100_000_u32 {
            // Bursts: of three looks, two wait.
            world.look(if look % 3 == 0 { 1 } else { 80 }, 6, 12);
        }
        assert_eq!(world.moments, 0);
        // As soon as a sample finds them busy, there are moments again.
        (0..REST_LOOKS_MAX + SAMPLE_LOOKS + 2).for_each(|_| {
            world.look(1, 2, 9);
        });
        assert!(world.look(1, 2, 9).is_some());
    }

    #[test]
    fn moments_that_bring_little_become_rare() {
        let mut world = World::new(1000);
        (0..100_000).for_each(|_| {
            world.look(1, 1, GATHERED_MIN - 1);
        });
        assert!((10..40).contains(&world.moments), "{}", world.moments);
        // One that brings enough makes them as frequent as they can be.
        while world.look(1, 1, GATHERED_MIN).is_none() {}
        (0..MOMENTS + SAMPLE_LOOKS + 2).for_each(|_| {
            world.look(1, 1, GATHERED_MIN);
        });
        while world.look(1, 1, GATHERED_MIN - 1).is_none() {}
        assert_eq!(world.pace.phase, Phase::Rest(REST_LOOKS_MIN));
    }
}
