//! Owns: how many bytes of what is not answered a worker keeps, and how many it may keep. Does not own: the
//! requests (`crate::link`, `crate::leases`, `crate::orders`), what becomes of one for which there is no room.
//!
//! Requests count where they wait: in front of one server on a connection or for one; in front of a cluster where they
//! are noted until they are answered, with the copy that a node's connection has. There replies count that wait for
//! others, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that a worker keeps at once; what comes beyond is refused.
pub(crate) const KEPT_BYTES_MAX: usize = 512 << 20;

/// The bytes that a worker keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptBytes(Arc<AtomicUsize>);

impl KeptBytes {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }
    /// Some of them, which are counted as long as this is there.
    pub(crate) fn share(&self, bytes: usize) -> Share {
        self.0.fetch_add(bytes, Relaxed);
        Share { kept: self.clone(), bytes }
    }
}

/// So many of them are one's.
#[derive(Debug, Default)]
pub(crate) struct Share {
    kept: KeptBytes,
    bytes: usize,
}

impl Share {
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
    /// They are so many from now on.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.kept.0.fetch_add(bytes.wrapping_sub(self.bytes), Relaxed);
            self.bytes = bytes;
        }
    }
}

impl Clone for Share {
    fn clone(&self) -> Self {
        self.kept.share(self.bytes)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_not_counted() {
        let kept = KeptBytes::default();
        let mut one = kept.share(10);
        let two = one.clone();
        assert_eq!(kept.bytes(), 20);
        one.set(3);
        assert_eq!(kept.bytes(), 13);
        drop(two);
        one.set(5);
        assert_eq!(kept.bytes(), 5);
        drop(one);
        assert_eq!(kept.bytes(), 0);
    }
}
