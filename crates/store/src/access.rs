//! Owns: the meaning of an entry's 24-bit access clock, as LRU seconds or as LFU counter and minutes, by Redis's rules.
//! Does not own: where the clock is kept, when eviction reads it.
//!
//! ```text
//!  LRU: | 24 bits: seconds, modulo 2^24 (194 days) |
//!  LFU: | 16 bits: minutes of the last decay | 8 bits: logarithmic counter |
//! ```

use crate::clock::Rng;

/// How accesses are remembered. LFU when `maxmemory-policy` is an lfu policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMode {
    /// The second of the last access.
    Lru,
    /// A counter that grows with the logarithm of accesses and decays with time.
    Lfu {
        /// `lfu-log-factor`.
        log_factor: u8,
        /// `lfu-decay-time`.
        decay_min: u16,
    },
}

const SECONDS_MASK: u64 = 0x00ff_ffff;
/// What a new key's counter starts with, so that it is not the first to go.
const LFU_INIT: u8 = 5;

fn minutes(now_ms: u64) -> u32 {
    ((now_ms / 60_000) & 0xffff) as u32
}

impl AccessMode {
    /// The clock of a new entry.
    #[inline]
    #[must_use]
    pub fn fresh(self, now_ms: u64) -> u32 {
        match self {
            Self::Lru => ((now_ms / 1000) & SECONDS_MASK) as u32,
            Self::Lfu { .. } => minutes(now_ms) << 8 | u32::from(LFU_INIT),
        }
    }
    /// The clock after an access.
    #[inline]
    #[must_use]
    pub fn touched(self, clock: u32, now_ms: u64, rng: &mut impl Rng) -> u32 {
        match self {
            Self::Lru => ((now_ms / 1000) & SECONDS_MASK) as u32,
            Self::Lfu { log_factor, .. } => {
                let counter = self.frequency(clock, now_ms);
                minutes(now_ms) << 8 | u32::from(count(counter, log_factor, rng))
            }
        }
    }
    /// Seconds since the last access; 0 under LFU.
    #[must_use]
    pub fn idle_s(self, clock: u32, now_ms: u64) -> u32 {
        match self {
            Self::Lru => ((now_ms / 1000).wrapping_sub(u64::from(clock)) & SECONDS_MASK) as u32,
            Self::Lfu { .. } => 0,
        }
    }
    /// The counter after decay; 0 under LRU.
    #[must_use]
    pub fn frequency(self, clock: u32, now_ms: u64) -> u8 {
        let Self::Lfu { decay_min, .. } = self else { return 0 };
        let counter = clock as u8;
        let passed = minutes(now_ms).wrapping_sub(clock >> 8) & 0xffff;
        match passed.checked_div(u32::from(decay_min)) {
            Some(periods) => counter.saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX)),
            None => counter,
        }
    }
    /// How much an entry deserves eviction: larger goes first.
    #[must_use]
    pub fn staleness(self, clock: u32, now_ms: u64) -> u64 {
        match self {
            Self::Lru => u64::from(self.idle_s(clock, now_ms)),
            Self::Lfu { .. } => u64::from(u8::MAX - self.frequency(clock, now_ms)),
        }
    }
}

/// Counts up with probability 1 / ((counter − 5)·factor + 1).
fn count(counter: u8, log_factor: u8, rng: &mut impl Rng) -> u8 {
    if counter == u8::MAX {
        return counter;
    }
    let base = u32::from(counter.saturating_sub(LFU_INIT));
    let odds = base * u32::from(log_factor) + 1;
    if rng.below(odds) == 0 { counter + 1 } else { counter }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::XorShift;

    #[test]
    fn lru_wraps() {
        let near_wrap = (SECONDS_MASK - 1) * 1000;
        let clock = AccessMode::Lru.fresh(near_wrap);
        assert_eq!(AccessMode::Lru.idle_s(clock, near_wrap + 5000), 5);
    }

    #[test]
    fn lfu_counts_logarithmically_and_decays() {
        let mode = AccessMode::Lfu { log_factor: 10, decay_min: 1 };
        let mut rng = XorShift::new(3);
        let mut clock = mode.fresh(0);
        for _ in 0..1000 {
            clock = mode.touched(clock, 0, &mut rng);
        }
        let counter = mode.frequency(clock, 0);
        assert!((10..=30).contains(&counter), "1000 accesses give about 18 in Redis's table, here {counter}");
        assert_eq!(mode.frequency(clock, 3 * 60_000), counter - 3);
        let frozen = AccessMode::Lfu { log_factor: 10, decay_min: 0 };
        assert_eq!(frozen.frequency(clock, 300 * 60_000), counter);
    }
}
