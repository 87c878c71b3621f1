//! Owns: the two sources of what is not in the input, time and chance, as traits that a test replaces. Does not own:
//! any use of them; a command reads the clock once and passes `now_ms` down.

use std::time::{SystemTime, UNIX_EPOCH};

/// Time in milliseconds since the Unix epoch.
pub trait Clock: Send + Sync {
    /// The present. May step back when the machine's clock is set; a shard's time follows only a large step.
    fn now_ms(&self) -> u64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that stands until it is told to move.
#[derive(Debug, Default)]
pub struct ManualClock(std::sync::atomic::AtomicU64);

impl ManualClock {
    /// A clock that shows `now_ms`.
    #[must_use]
    pub const fn new(now_ms: u64) -> Self {
        Self(std::sync::atomic::AtomicU64::new(now_ms))
    }
    /// Steps to another time, also back.
    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, std::sync::atomic::Ordering::Relaxed);
    }
    /// Moves the clock forward.
    pub fn advance(&self, by_ms: u64) {
        self.0.fetch_add(by_ms, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Chance: sampling for eviction, RANDOMKEY, the LFU counter. Not for secrets.
pub trait Rng {
    /// The next 64 bits.
    fn next_u64(&mut self) -> u64;
    /// A number below `bound`, which must not be 0. Multiply-shift: the bias is below 2^-32 for any table size here.
    fn below(&mut self, bound: u32) -> u32 {
        let product = (self.next_u64() >> 32) * u64::from(bound);
        (product >> 32) as u32
    }
}

/// xorshift64*: 1 ns, 8 bytes of state, good enough to choose victims.
#[derive(Debug, Clone)]
pub struct XorShift(u64);

impl XorShift {
    /// A generator from a seed; 0 is replaced, since the state must not be 0.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(if seed == 0 { 0x9e37_79b9_7f4a_7c15 } else { seed })
    }
}

impl Rng for XorShift {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
