//! Owns: access to what a shard's lock protects: by taking the lock, or without it by whoever has the keyspace to
//! himself. Does not own: what is protected, how somebody comes to be alone (`crate::epoch`).
//!
//! A lock and its release are two atomic operations that the processor must finish before it goes on. A batch that is
//! alone (see [`Domain::enter_alone`](crate::epoch::Domain::enter_alone)) needs none: everybody else who could come to
//! the data waits outside. A plain flag is left, so that taking the same shard twice is seen as the mistake that it is,
//! where a lock would hang.

use crate::epoch::{Closed, Domain};
use crate::sync::STEP;
use parking_lot::RawMutex;
use parking_lot::lock_api::{RawMutex as _, RawMutexTimed as _};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What a lock is waited for before anything is asked: longer than a short command has one.
const FIRST_STEP: Duration = Duration::from_millis(1);

/// Data behind a lock.
pub(crate) struct Guarded<T> {
    lock: RawMutex,
    /// Somebody who is alone uses the data.
    busy: AtomicBool,
    data: UnsafeCell<T>,
}

// SAFETY: the data is reached through a `Guard` only. One made by `lock` excludes others made so; one made by `alone`
// comes with a proof that no other thread is in a batch, hence that none has or makes a guard, for as long as it lives;
// and within its thread `busy` lets only one be made at a time. So there is one user at a time, on any thread:
// `T: Send` is enough, as for a mutex.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// Exclusive guard to the data.
pub(crate) struct Guard<'h, T> {
    of: &'h Guarded<T>,
    locked: bool,
    /// Lent like the data itself: to other threads only if that may be.
    _data: PhantomData<&'h mut T>,
}

impl<T> Guarded<T> {
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
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.lock.lock();
        Guard { of: self, locked: true, _data: PhantomData }
    }

    /// Waits for the lock; not on and on where somebody keeps what he has (see [`Domain::set_kept`]). As quick as
    /// [`lock`](Self::lock) where nobody has it.
    #[inline]
    pub(crate) fn lock_in_time<P>(&self, domain: &Domain<P>) -> Option<Guard<'_, T>> {
        let is_had = self.lock.try_lock_for(FIRST_STEP) || self.wait(domain);
        is_had.then(|| Guard { of: self, locked: true, _data: PhantomData })
    }
    #[cold]
    fn wait<P>(&self, domain: &Domain<P>) -> bool {
        loop {
            if domain.is_kept() {
                return false;
            }
            if self.lock.try_lock_for(STEP) {
                return true;
            }
        }
    }

    /// The lock, if nobody has it now.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.lock.try_lock().then(|| Guard { of: self, locked: true, _data: PhantomData })
    }

    /// The data without the lock. The proof is of the keyspace that the data belongs to.
    ///
    /// # Panics
    /// When the same thread has it already.
    #[inline]
    pub(crate) fn alone<'h, P>(&'h self, _proof: &'h Closed<'_, P>) -> Guard<'h, T> {
        assert!(!self.busy.load(Relaxed), "a shard is taken once at a time");
        self.busy.store(true, Relaxed);
        Guard { of: self, locked: false, _data: PhantomData }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one (see `Sync`), and the borrow of it keeps `deref_mut` away.
        unsafe { &*self.of.data.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one (see `Sync`), and it is borrowed alone.
        unsafe { &mut *self.of.data.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.locked {
            // SAFETY: this guard has taken the lock and gives it back once.
            unsafe { self.of.lock.unlock() }
        } else {
            self.of.busy.store(false, Relaxed);
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
        let guarded = Guarded::new(1);
        let _first = guarded.alone(&closed);
        let _second = guarded.alone(&closed);
    }

    #[test]
    fn who_waits_in_time_gives_up_what_is_kept() {
        let domain = Domain::<()>::new(1);
        let guarded = Guarded::new(1);
        let guard = guarded.lock();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| guarded.lock_in_time(&domain).is_some());
            domain.set_kept(true);
            assert!(!waits.join().unwrap(), "it is kept");
            domain.set_kept(false);
            let waits = scope.spawn(|| guarded.lock_in_time(&domain).map(|guard| *guard));
            drop(guard);
            assert_eq!(waits.join().unwrap(), Some(1));
        });
        domain.set_kept(true);
        assert!(guarded.lock_in_time(&domain).is_some(), "nobody has it");
    }

    #[test]
    fn both_ways_reach_the_same_data() {
        let domain = Domain::<()>::new(1);
        let guarded = Guarded::new(1);
        let mut guard = guarded.lock();
        *guard += 1;
        assert!(guarded.try_lock().is_none(), "somebody has it");
        drop(guard);
        assert_eq!(guarded.try_lock().map(|guard| *guard), Some(2));
        *guarded.alone(&domain.close()) += 1;
        assert_eq!(*guarded.lock(), 3);
    }
}
