//! The program's allocator: the system's, which counts what it hands out while it is told to.
//!
//! Owns the counters and the only unsafe code of the binary. `weft wire` reads from it how many allocations, how many bytes and
//! what peak a contestant costs; everything else passes through with one relaxed load and a branch that is never taken.

#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait; nothing else here is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// Bytes handed out less bytes given back since counting began; below zero when older memory is freed.
static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What was allocated while counting was on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heap {
    /// Calls that handed memory out.
    pub(crate) allocations: u64,
    /// Bytes asked for.
    pub(crate) bytes: u64,
    /// The most bytes that were in use at once, beyond those in use before.
    pub(crate) peak_bytes: u64,
}

/// Runs `work` and counts. Nothing else of the program may run meanwhile, since the counters are the program's.
pub(crate) fn count<T>(work: impl FnOnce() -> T) -> (T, Heap) {
    for counter in [&ALLOCATIONS, &BYTES] {
        counter.store(0, Relaxed);
    }
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    ON.store(true, Relaxed);
    let value = work();
    ON.store(false, Relaxed);
    let peak_bytes = u64::try_from(PEAK.load(Relaxed)).unwrap_or(0);
    (value, Heap { allocations: ALLOCATIONS.load(Relaxed), bytes: BYTES.load(Relaxed), peak_bytes })
}

#[cold]
fn handed_out(bytes: usize, given_back: usize) {
    ALLOCATIONS.fetch_add(1, Relaxed);
    BYTES.fetch_add(bytes as u64, Relaxed);
    let change = bytes as i64 - given_back as i64;
    let live = LIVE.fetch_add(change, Relaxed) + change;
    PEAK.fetch_max(live, Relaxed);
}

#[cold]
fn given_back(bytes: usize) {
    LIVE.fetch_sub(bytes as i64, Relaxed);
}

// SAFETY: every call goes to the system's allocator with its arguments unchanged, and its result goes back unchanged; the
// counters are atomics, which allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ON.load(Relaxed) {
            handed_out(layout.size(), 0);
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if ON.load(Relaxed) {
            handed_out(layout.size(), 0);
        }
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if ON.load(Relaxed) {
            given_back(layout.size());
        }
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if ON.load(Relaxed) {
            handed_out(size, layout.size());
        }
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
