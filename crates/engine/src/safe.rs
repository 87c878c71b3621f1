//! Owns: up to which epoch what was written is safe, and telling the workers when that moves on. Does not own: what
//! makes it safe (a log), which replies wait for it ([`crate::reply::Output::hold`]), sending them.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::engine::Engine;
use crate::mailbox::Message;
use crate::reply::{Output, OutputPlace};

/// The last epoch that is safe; without somebody who makes epochs safe, all are.
pub struct Safe {
    epoch: AtomicU64,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for Safe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Safe").field(&self.epoch).finish()
    }
}

impl Default for Safe {
    fn default() -> Self {
        Self { epoch: AtomicU64::new(u64::MAX), waker: OnceLock::new() }
    }
}

impl Safe {
    /// The last epoch that is safe.
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Acquire)
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

impl Engine {
    /// Epochs up to this one are safe: what waits for them is sent.
    pub fn set_safe(&self, epoch: u64) {
        self.safe.epoch.store(epoch, Release);
        self.post_all(|| Message::Safe);
    }

    /// What was written behind this place waits, if anything has been told that is not safe yet: who reads does not see
    /// it before either (`strict-reads`). `own`: the last epoch that the writer has told something in. Says whether it
    /// waits.
    #[cold]
    pub fn hold_output(&self, output: &mut Output, from: OutputPlace, own: u64) -> bool {
        let strict = self.settings.strict_reads.load(Relaxed);
        let epoch = if strict { self.keyspace.told_epoch() } else { own };
        let waits = epoch > self.safe.epoch() && (output.end() != from || output.has_told());
        if waits {
            output.hold(from, epoch);
        }
        waits
    }
}
