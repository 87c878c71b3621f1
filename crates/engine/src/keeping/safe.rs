//! Owns: up to which epoch what was written is safe, telling the workers when that moves on, and that it never will.
//! Does not own: what makes it safe (a log), which replies wait for it ([`crate::reply::Output::withhold`]), sending
//! them.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::Mutex;

use crate::error::{Error, ErrorCode};

/// The last epoch that is safe; without somebody who makes epochs safe, all are.
pub struct Safe {
    pub(crate) epoch: AtomicU64,
    /// What waits for a later epoch than that waits in vain.
    pub(crate) is_lost: AtomicBool,
    /// Whoever has replies wait, or not any more, is one at a time: it must go with `appendfsync` and with what is
    /// known of the log.
    pub(crate) changes: Mutex<()>,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for Safe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Safe").field(&self.epoch).finish()
    }
}

impl Default for Safe {
    fn default() -> Self {
        Self {
            epoch: AtomicU64::new(u64::MAX),
            is_lost: AtomicBool::new(false),
            changes: Mutex::new(()),
            waker: OnceLock::new(),
        }
    }
}

impl Safe {
    /// The last epoch that is safe.
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Acquire)
    }
    /// Whether what waits for a later epoch waits in vain.
    #[inline]
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Acquire)
    }
    /// What a request is answered whose reply has waited in vain: what it did stands in memory, and may be on the disk
    /// or not.
    #[must_use]
    pub fn lost_error() -> Error {
        let text = "the log could not be written: whether what this request did is kept is unknown; ask again when \
                    writes go on";
        Error::new(ErrorCode::Misconfigured, text)
    }
    /// How whoever makes epochs safe is told that replies wait. Once, before the first client.
    pub fn set_waker(&self, waker: impl Fn() + Send + Sync + 'static) {
        let _ = self.waker.set(Box::new(waker));
    }
    /// Replies wait.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker();
        }
    }
}
