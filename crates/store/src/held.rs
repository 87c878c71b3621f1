//! Owns: access to what a shard's lock protects: by taking the lock, or without it by whoever has the keyspace to
//! himself. Does not own: what is protected, how somebody comes to be alone (`crate::epoch`).
//!
//! A lock and its release are two atomic operations that the processor must finish before it goes on. A batch that is
//! alone (see [`Domain::enter_alone`](crate::epoch::Domain::enter_alone)) needs none: everybody else who could come to
//! the data waits outside. A plain flag is left, so that taking the same shard twice is seen as the mistake that it is,
//! where a lock would hang.

use crate::epoch::Closed;
use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Data behind a lock.
pub(crate) struct Held<T> {
    lock: RawMutex,
    /// Somebody who is alone uses the data.
    busy: AtomicBool,
    data: UnsafeCell<T>,
}

// SAFETY: the data is reached through a `Hold` only. One made by `lock` excludes others made so; one made by `alone`
// comes with a proof that no other thread is in a batch, hence that none has or makes a hold, for as long as it lives;
// and within its thread `busy` lets only one be made at a time. So there is one user at a time, on any thread:
// `T: Send` is enough, as for a mutex.
unsafe impl<T: Send> Sync for Held<T> {}

/// Exclusive access to the data.
pub(crate) struct Hold<'h, T> {
    held: &'h Held<T>,
    locked: bool,
    /// Lent like the data itself: to other threads only if that may be.
    _data: PhantomData<&'h mut T>,
}

impl<T> Held<T> {
    pub(crate) const fn new(data: T) -> Self {
        Self { lock: RawMutex::INIT, busy: AtomicBool::new(false), data: UnsafeCell::new(data) }
    }

    /// Where the lock stands, for prefetching.
    #[inline]
    pub(crate) fn lock_address(&self) -> *const u8 {
        std::ptr::from_ref(&self.lock).cast()
    }

    /// Waits for the lock.
    #[inline]
    pub(crate) fn lock(&self) -> Hold<'_, T> {
        self.lock.lock();
        Hold { held: self, locked: true, _data: PhantomData }
    }

    /// The lock, if nobody has it now.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Hold<'_, T>> {
        self.lock.try_lock().then(|| Hold { held: self, locked: true, _data: PhantomData })
    }

    /// The data without the lock. The proof is of the keyspace that the data belongs to.
    ///
    /// # Panics
    /// When the same thread has it already.
    #[inline]
    pub(crate) fn alone<'h, P>(&'h self, _proof: &'h Closed<'_, P>) -> Hold<'h, T> {
        assert!(!self.busy.load(Relaxed), "a shard is taken once at a time");
        self.busy.store(true, Relaxed);
        Hold { held: self, locked: false, _data: PhantomData }
    }
}

impl<T> Deref for Hold<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this hold is the only one (see `Sync`), and the borrow of it keeps `deref_mut` away.
        unsafe { &*self.held.data.get() }
    }
}

impl<T> DerefMut for Hold<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this hold is the only one (see `Sync`), and it is borrowed alone.
        unsafe { &mut *self.held.data.get() }
    }
}

impl<T> Drop for Hold<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.locked {
            // SAFETY: this hold has taken the lock and gives it back once.
            unsafe { self.held.lock.unlock() }
        } else {
            self.held.busy.store(false, Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::epoch::Domain;

    #[test]
    #[should_panic(expected = "taken once at a time")]
    fn taking_it_twice_alone_is_seen() {
        let domain = Domain::<()>::new(1);
        let closed = domain.close();
        let held = Held::new(1);
        let _first = held.alone(&closed);
        let _second = held.alone(&closed);
    }

    #[test]
    fn both_ways_reach_the_same_data() {
        let domain = Domain::<()>::new(1);
        let held = Held::new(1);
        let mut hold = held.lock();
        *hold += 1;
        assert!(held.try_lock().is_none(), "somebody has it");
        drop(hold);
        assert_eq!(held.try_lock().map(|hold| *hold), Some(2));
        *held.alone(&domain.close()) += 1;
        assert_eq!(*held.lock(), 3);
    }
}
