//! Owns: the choice between real atomics and loom's model of them, for the modules whose ordering loom checks
//! (`epoch`). Does not own: the table's atomics, which are relaxed and carry no ordering of their own.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering, fence},
    sync::{Condvar, Mutex, MutexGuard},
};
#[cfg(not(loom))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(not(any(loom, weft_tsan)))]
pub(crate) use std::sync::atomic::fence;
/// ThreadSanitizer knows no fences: in its build (`make test-tsan`) all of them are changes of one word, which order
/// what is before and behind them at least as much. That the fences suffice is what loom proves.
#[cfg(all(weft_tsan, not(loom)))]
pub(crate) fn fence(_: Ordering) {
    static WORD: AtomicU64 = AtomicU64::new(0);
    WORD.fetch_add(1, Ordering::SeqCst);
}

/// Locks a mutex of either kind; loom's returns a poison result that cannot be poisoned here because no holder panics.
#[cfg(loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
/// Locks a mutex of either kind.
#[cfg(not(loom))]
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Locks a mutex unless somebody has it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    #[cfg(loom)]
    return mutex.try_lock().ok();
    #[cfg(not(loom))]
    mutex.try_lock()
}

/// Gives a mutex back until it is told to, and has it again then; it may be told without a cause.
pub(crate) fn wait<'m, T>(told: &Condvar, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
    #[cfg(loom)]
    return told.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
    #[cfg(not(loom))]
    {
        let mut guard = guard;
        told.wait(&mut guard);
        guard
    }
}

/// Lets another thread run while waiting for a flag that it will clear within one batch.
pub(crate) fn yield_now() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}
