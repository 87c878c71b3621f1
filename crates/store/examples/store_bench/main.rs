//! Measures the store without a server: memory per key, lookups with and without prefetch, compaction, expiry. Prints
//! tables.
//!
//! `cargo run --release --example store_bench -- [memory|lookup|compact|expire|churn|collections|
//! large|all] [million keys]`
//!
//! Instructions per operation: `WEFT_BATCH=64 valgrind --tool=callgrind --toggle-collect='*lookup::gets*'
//! target/release/examples/store_bench lookup 0.1 0.064`, divided by 64,000; `sets` likewise.
//!
//! Figures of memory are taken in a fresh process for each case, since an allocator remembers. `WEFT_HUGE=1` asks for
//! huge pages, `WEFT_ALLOCATOR=system` uses the system's allocator for what is not in the slab.

mod background;
mod collections;
mod lookup;
mod memory;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use weft_store::{Config, KeyHasher, Keyspace};

/// mimalloc, or the system's allocator when asked for before the first allocation counts.
struct Choice;

static SYSTEM: AtomicBool = AtomicBool::new(false);
static MIMALLOC: mimalloc::MiMalloc = mimalloc::MiMalloc;

// SAFETY: each block goes back to the allocator it came from: blocks of at least 512 bytes follow the switch, which is
// set once before any such block is made by the store; smaller ones always come from the system.
unsafe impl GlobalAlloc for Choice {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on as it came.
        unsafe { if to_system(layout) { System.alloc(layout) } else { MIMALLOC.alloc(layout) } }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on as it came.
        unsafe { if to_system(layout) { System.alloc_zeroed(layout) } else { MIMALLOC.alloc_zeroed(layout) } }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on as it came, to the allocator that the layout names.
        unsafe {
            if to_system(layout) {
                System.dealloc(pointer, layout)
            } else {
                MIMALLOC.dealloc(pointer, layout)
            }
        }
    }
}

/// Only the tables' alignment tells them from what std allocates, so only they follow the switch.
fn to_system(layout: Layout) -> bool {
    layout.align() < 128 || SYSTEM.load(Ordering::Relaxed)
}

#[global_allocator]
static ALLOCATOR: Choice = Choice;

/// A keyspace with a fixed hash key, so that runs repeat.
fn keyspace() -> Keyspace {
    let huge_pages = std::env::var_os("WEFT_HUGE").is_some();
    Keyspace::new(Config { hasher: KeyHasher::with_seed(42), seed: 42, huge_pages, ..Config::default() })
}

/// Key number `number`: 16 bytes.
fn write_key(buffer: &mut [u8; 16], number: u64) {
    *buffer = *b"key:000000000000";
    let mut left = number;
    for digit in buffer[4..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
}

/// CPU time of this thread: a pause is the store's if it computes, the machine's if it waits for a core.
fn cpu() -> std::time::Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Runs this program again with other arguments, in a process of its own.
fn again(arguments: &[&str]) {
    let program = std::env::current_exe().expect("the program's own path is known");
    let status = std::process::Command::new(program).args(arguments).status();
    assert!(status.is_ok_and(|status| status.success()), "{arguments:?} failed");
}

fn main() {
    SYSTEM.store(std::env::var("WEFT_ALLOCATOR").is_ok_and(|name| name == "system"), Ordering::Relaxed);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: f64| {
        arguments.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(otherwise)
    };
    let keys = |otherwise: f64| (number(1, otherwise) * 1e6) as u64;
    match arguments.first().map(String::as_str).unwrap_or("all") {
        "memory" => memory::table(keys(1.0)),
        "memory-one" => memory::one(keys(1.0), number(2, 8.0) as usize),
        "collections" => collections::table(keys(1.0)),
        "collections-one" => collections::one(keys(1.0), arguments.get(2).map_or("", String::as_str)),
        "large" => collections::large(keys(10.0)),
        "lookup" => lookup::run(keys(10.0), (number(2, 4.0) * 1e6) as usize),
        "compact" => background::compact(keys(10.0)),
        "expire" => background::expire(keys(10.0)),
        "churn" => background::churn(keys(1.0), number(2, 60.0)),
        _ => {
            again(&["memory", "1"]);
            again(&["lookup", "10"]);
            again(&["compact", "10"]);
            again(&["expire", "10"]);
        }
    }
}
