//! The program's allocator: the system's, which counts what it hands out while it is told to.
//!
//! Owns the counters and the only unsafe code of the binary. `weft wire` reads from it how many allocations, how many
//! bytes and what peak a contestant costs; everything else passes through with a load and a branch that is never
//! taken.

#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait; nothing else here is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use serde::{Deserialize, Serialize};

struct Counting;

/// What this thread has asked for since it began to count.
#[derive(Clone, Copy)]
struct Counters {
    on: bool,
    allocations: u64,
    bytes: u64,
    /// Bytes handed out less bytes given back; below zero when older memory is freed.
    live: i64,
    peak: i64,
}

const NOTHING: Counters = Counters { on: false, allocations: 0, bytes: 0, live: 0, peak: 0 };

thread_local! {
    // Made at compile time and without a destructor: reaching it never allocates.
    static COUNTERS: Cell<Counters> = const { Cell::new(NOTHING) };
}

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

/// Runs `work` and counts what this thread allocates meanwhile.
pub(crate) fn count<T>(work: impl FnOnce() -> T) -> (T, Heap) {
    COUNTERS.set(Counters { on: true, ..NOTHING });
    let value = work();
    let Counters { allocations, bytes, peak, .. } = COUNTERS.replace(NOTHING);
    (value, Heap { allocations, bytes, peak_bytes: u64::try_from(peak).unwrap_or(0) })
}

#[inline]
fn is_on() -> bool {
    COUNTERS.with(|counters| counters.get().on)
}

#[cold]
fn handed_out(bytes: usize, given_back: usize) {
    let mut counters = COUNTERS.get();
    counters.allocations += 1;
    counters.bytes += bytes as u64;
    counters.live += bytes as i64 - given_back as i64;
    counters.peak = counters.peak.max(counters.live);
    COUNTERS.set(counters);
}

#[cold]
fn given_back(bytes: usize) {
    let mut counters = COUNTERS.get();
    counters.live -= bytes as i64;
    COUNTERS.set(counters);
}

// SAFETY: every call goes to the system's allocator with its arguments unchanged, and its result goes back unchanged;
// the counters are a thread local that needs no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_on() {
            handed_out(layout.size(), 0);
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_on() {
            handed_out(layout.size(), 0);
        }
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if is_on() {
            given_back(layout.size());
        }
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_on() {
            handed_out(size, layout.size());
        }
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
