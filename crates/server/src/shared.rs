//! Owns: what all workers of a server have together: counts, TLS. Does not own: what follows from it.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::limits::UNAUTHENTICATED_INPUT_BYTES_MAX;
use crate::tls::Service;

/// What a connection counts for that has not authenticated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// What it keeps.
    pub(crate) kept: usize,
    /// What its handshake keeps: whoever fills the other sum keeps nobody from beginning one.
    pub(crate) handshake: usize,
}

/// What is there once in a server.
pub(crate) struct Shared {
    /// Connections.
    pub(crate) connections: AtomicU32,
    /// What connections keep which have not authenticated.
    unauthenticated_bytes: AtomicUsize,
    handshake_bytes: AtomicUsize,
    unauthenticated_bytes_max: usize,
    pub(crate) tls: Service,
}

impl Default for Shared {
    fn default() -> Self {
        Self::with_unauthenticated_max(UNAUTHENTICATED_INPUT_BYTES_MAX)
    }
}

impl Shared {
    /// One with another limit, for each of the two sums.
    pub(crate) fn with_unauthenticated_max(bytes: usize) -> Self {
        Self {
            connections: AtomicU32::new(0),
            unauthenticated_bytes: AtomicUsize::new(0),
            handshake_bytes: AtomicUsize::new(0),
            unauthenticated_bytes_max: bytes,
            tls: Service::default(),
        }
    }

    /// A connection counts for `now` in place of `before`. Says whether all of them are still within the limits that it
    /// counts to.
    pub(crate) fn recount_unauthenticated(&self, before: Counted, now: Counted) -> bool {
        let is_within = |all: &AtomicUsize, before: usize, now: usize| {
            let was = all.fetch_add(now.wrapping_sub(before), Relaxed);
            now <= before || was.wrapping_add(now).wrapping_sub(before) <= self.unauthenticated_bytes_max
        };
        let kept = is_within(&self.unauthenticated_bytes, before.kept, now.kept);
        is_within(&self.handshake_bytes, before.handshake, now.handshake) && kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_have_not_authenticated_may_keep_so_much() {
        let shared = Shared::default();
        let kept = |kept: usize| Counted { kept, handshake: 0 };
        let handshake = |handshake: usize| Counted { kept: 0, handshake };
        for count in [kept as fn(usize) -> Counted, handshake] {
            let within = |before, now| shared.recount_unauthenticated(count(before), count(now));
            assert!(within(0, UNAUTHENTICATED_INPUT_BYTES_MAX - 10));
            assert!(within(0, 10), "at the limit");
            assert!(!within(10, 11), "one past it");
            assert!(within(11, 10), "and what is given back may be had again");
        }
    }
}
