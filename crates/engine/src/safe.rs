//! Owns: up to which epoch what was written is safe, and telling the workers when that moves on. Does not own: what
//! makes it safe (a log), which replies wait for it ([`crate::reply::Output::hold`]), sending them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::engine::Engine;
use crate::mailbox::Message;

/// The last epoch that is safe; without somebody who makes epochs safe, all are.
#[derive(Debug)]
pub struct Safe(AtomicU64);

impl Default for Safe {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Safe {
    /// The last epoch that is safe.
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.0.load(Acquire)
    }
}

impl Engine {
    /// Epochs up to this one are safe: what waits for them is sent.
    pub fn set_safe(&self, epoch: u64) {
        self.safe.0.store(epoch, Release);
        self.post_all(|| Message::Safe);
    }
}
