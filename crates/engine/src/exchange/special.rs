//! Owns: what is special engine-wide, as bits of one word, so that a request asks one question where nothing is. Does
//! not own: the states that the bits stand for: whoever owns one sets and clears its bit.
//!
//! A bit says that a state must be asked for, not what it is. It is set before the command that brings the state about
//! has its reply, and a request that begins behind that reply sees it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// CLIENT PAUSE (`crate::engine::Pause`).
pub const PAUSED: u32 = 1 << 0;
/// Somebody runs MONITOR (`crate::monitor`).
pub const MONITORED: u32 = 1 << 1;
/// Keyspace events are wanted, and somebody would get them (`crate::notify`).
pub const EVENTS: u32 = 1 << 2;
/// There is a `maxmemory` (`crate::eviction`).
pub const LIMITED: u32 = 1 << 3;
/// What was kept is being loaded (`crate::durable`).
pub const LOADING: u32 = 1 << 4;
/// Writes are refused, since they could not be kept (`crate::durable`).
pub const REFUSING: u32 = 1 << 5;
/// Writes are held back, since what was told is not on the disk for too long (`crate::durable`).
pub const BEHIND: u32 = 1 << 6;
/// Replies wait for what was told to be safe (`crate::safe`).
pub const WITHHELD: u32 = 1 << 7;
/// A script takes its time (`crate::script`).
pub const BUSY: u32 = 1 << 8;
/// There are triggers: what writes is asked whether it fires any (`crate::trigger`).
pub const TRIGGERS: u32 = 1 << 9;
/// Some of them are about keys that go by themselves.
pub const TRIGGERS_BY_ITSELF: u32 = 1 << 10;
/// Somebody looks which keys are hot: of each batch a request is noted (`crate::hot`).
pub const SAMPLED: u32 = 1 << 11;
/// Another server has the keys (`crate::forward`), for as long as this one runs.
pub const ELSEWHERE: u32 = 1 << 12;

/// With one of these every request is asked by itself whether it may run, and told of when it has.
pub const EACH: u32 = PAUSED | MONITORED | LOADING | REFUSING | BEHIND | BUSY;
/// With one of these a command's handler must run, not a shorter form of it.
pub const HANDLERS: u32 = EVENTS | ELSEWHERE;

/// The word.
#[derive(Debug, Default)]
pub struct Special(AtomicU32);

impl Special {
    /// The bits that are set.
    #[inline]
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.0.load(Relaxed)
    }
    /// Whether one of these is set.
    #[inline]
    #[must_use]
    pub fn has(&self, bits: u32) -> bool {
        self.bits() & bits != 0
    }
    /// Sets or clears a bit. Only its owner does so, one at a time.
    pub fn set(&self, bit: u32, on: bool) {
        if on {
            self.0.fetch_or(bit, Relaxed);
        } else {
            self.0.fetch_and(!bit, Relaxed);
        }
    }
}
