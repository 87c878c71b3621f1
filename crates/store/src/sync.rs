//! Owns: the choice between real atomics and loom's model of them, for the modules whose ordering loom checks
//! (`epoch`). Does not own: the table's atomics, which are relaxed and carry no ordering of their own.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering, fence},
    sync::{Mutex, MutexGuard},
};
#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long somebody waits before he asks whether to go on waiting.
pub(crate) const STEP: Duration = Duration::from_millis(10);

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

/// Locks a mutex, unless somebody has it for a whole [`STEP`].
pub(crate) fn lock_for_step<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    #[cfg(loom)]
    return mutex.try_lock().ok().or_else(|| {
        loom::thread::yield_now();
        None
    });
    #[cfg(not(loom))]
    mutex.try_lock_for(STEP)
}

/// A wait for a flag that another thread will clear at the end of its batch: mostly at once, so that this thread lets
/// others run first; behind that it sleeps, longer the longer it has waited.
#[derive(Default)]
pub(crate) struct Pause {
    rounds: u32,
    began: Option<Instant>,
}

impl Pause {
    /// Rounds in which others only run first.
    const ROUNDS: u32 = 64;
    const SLEEP_MAX: Duration = Duration::from_millis(1);

    /// One round.
    pub(crate) fn wait(&mut self) {
        #[cfg(loom)]
        return loom::thread::yield_now();
        #[cfg(not(loom))]
        if self.rounds < Self::ROUNDS {
            self.rounds += 1;
            std::thread::yield_now();
        } else {
            let began = *self.began.get_or_insert_with(Instant::now);
            let sleep = (began.elapsed() / 8).clamp(Duration::from_micros(20), Self::SLEEP_MAX);
            std::thread::sleep(sleep);
        }
    }
}
