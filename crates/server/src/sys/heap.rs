//! Owns: what the C library's allocator is told, and asked. Does not own: when (`crate::heap`).
//!
//! Other C libraries than glibc have no such calls: there nothing is told, and nothing is free.

#[cfg(target_env = "gnu")]
mod glibc {
    use std::ffi::c_int;

    /// `struct mallinfo2` of malloc.h.
    #[repr(C)]
    pub(super) struct Info {
        arena: usize,
        chunks: usize,
        fast_chunks: usize,
        mapped_chunks: usize,
        mapped_bytes: usize,
        highest_bytes: usize,
        fast_bytes: usize,
        used_bytes: usize,
        pub(super) free_bytes: usize,
        top_bytes: usize,
    }

    /// `M_TRIM_THRESHOLD` and `M_MMAP_THRESHOLD` of malloc.h.
    pub(super) const TRIM_THRESHOLD: c_int = -1;
    pub(super) const MMAP_THRESHOLD: c_int = -3;

    // SAFETY: as malloc.h declares them; they take numbers, may be called at any time by any thread, and touch no
    // memory that is in use.
    unsafe extern "C" {
        pub(super) safe fn mallinfo2() -> Info;
        pub(super) safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
        pub(super) safe fn malloc_trim(left: usize) -> c_int;
    }
}

/// What is free goes back to the system at once where it is so much at the end of an arena; what is as large is
/// mapped by itself, and goes back whenever it is freed. Without this both grow to the largest that was ever freed, up
/// to 64 and 32 MiB, and nothing goes back.
#[cfg(target_env = "gnu")]
pub(crate) fn keep_at_most(bytes: i32) {
    // Neither can fail: they are numbers that the allocator knows.
    glibc::mallopt(glibc::TRIM_THRESHOLD, bytes);
    glibc::mallopt(glibc::MMAP_THRESHOLD, bytes);
}

/// Bytes that the allocator has from the system and nobody has from it, whether or not memory is behind them.
#[cfg(target_env = "gnu")]
pub(crate) fn free_bytes() -> usize {
    glibc::mallinfo2().free_bytes
}

/// Gives back every whole page that nobody uses.
#[cfg(target_env = "gnu")]
pub(crate) fn give_back() {
    glibc::malloc_trim(0);
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn keep_at_most(_: i32) {}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn free_bytes() -> usize {
    0
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back() {}
