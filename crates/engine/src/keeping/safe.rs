//! Owns: up to which epoch what was written is safe, telling the workers when that moves on, and that it never will.
//! Does not own: what makes it safe (a log), which replies wait for it ([`crate::reply::Output::hold`]), sending them.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::engine::Engine;
use crate::error::{Error, ErrorCode};
use crate::mailbox::Message;
use crate::reply::{Output, OutputPlace};
use crate::special;

/// The last epoch that is safe; without somebody who makes epochs safe, all are.
pub struct Safe {
    epoch: AtomicU64,
    /// What waits for a later epoch than that waits in vain.
    is_lost: AtomicBool,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for Safe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Safe").field(&self.epoch).finish()
    }
}

impl Default for Safe {
    fn default() -> Self {
        Self { epoch: AtomicU64::new(u64::MAX), is_lost: AtomicBool::new(false), waker: OnceLock::new() }
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

impl Engine {
    /// Epochs up to this one are safe: what waits for them is sent.
    pub fn set_safe(&self, epoch: u64) {
        self.safe.epoch.store(epoch, Release);
        self.post_all(|| Message::Safe);
    }

    /// Replies wait for what was told to be safe, or not any more.
    pub fn set_held(&self, held: bool) {
        self.safe.is_lost.store(false, Release);
        self.special.set(special::HELD, held);
        if !held {
            self.set_safe(u64::MAX);
        }
    }
    /// What was told and is not safe never will be: replies that wait for it become errors, and later ones do not wait.
    pub fn lose_held(&self) {
        // In this order: whoever is told has nothing held any more.
        self.special.set(special::HELD, false);
        self.safe.is_lost.store(true, Release);
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
