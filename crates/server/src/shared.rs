//! Owns: what all workers of a server have together: counts, TLS. Does not own: what follows from it.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::limits::UNAUTHENTICATED_INPUT_BYTES_MAX;
use crate::tls::Service;

/// What is there once in a server.
pub(crate) struct Shared {
    /// Connections.
    pub(crate) connections: AtomicU32,
    /// Input that connections keep which have not authenticated.
    unauthenticated_bytes: AtomicUsize,
    unauthenticated_bytes_max: usize,
    pub(crate) tls: Service,
}

impl Default for Shared {
    fn default() -> Self {
        Self::with_unauthenticated_max(UNAUTHENTICATED_INPUT_BYTES_MAX)
    }
}

impl Shared {
    pub(crate) fn with_unauthenticated_max(bytes: usize) -> Self {
        Self {
            connections: AtomicU32::new(0),
            unauthenticated_bytes: AtomicUsize::new(0),
            unauthenticated_bytes_max: bytes,
            tls: Service::default(),
        }
    }

    /// A connection counts for `now` bytes in place of `before`. Says whether all of them are still within the limit.
    pub(crate) fn recount_unauthenticated(&self, before: usize, now: usize) -> bool {
        let all = &self.unauthenticated_bytes;
        let was = all.fetch_add(now.wrapping_sub(before), Relaxed);
        was.wrapping_add(now).wrapping_sub(before) <= self.unauthenticated_bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_have_not_authenticated_may_keep_so_much() {
        let shared = Shared::default();
        assert!(shared.recount_unauthenticated(0, UNAUTHENTICATED_INPUT_BYTES_MAX - 10));
        assert!(shared.recount_unauthenticated(0, 10), "at the limit");
        assert!(!shared.recount_unauthenticated(10, 11), "one past it");
        assert!(shared.recount_unauthenticated(11, 10), "and what is given back may be had again");
    }
}
