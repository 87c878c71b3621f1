//! Owns: the one instruction that asks the memory system for a cache line early. Does not own: what to ask for.

/// Asks for the cache line at `address`. A hint: it never faults, reads nothing into the program and may be given any
/// address, so a pointer that another thread is about to free is allowed. Costs one load slot.
#[inline(always)]
pub(crate) fn line(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: PREFETCHT0 is in every x86-64 and has no effect on the architectural state, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: PRFM is a hint with no effect on registers, flags or memory, whatever the address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

/// Asks for all lines of a value.
#[inline(always)]
pub(crate) fn value<T>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<u8>();
    // From each line one byte, and the last: it may not begin with one.
    (0..size_of::<T>()).step_by(64).for_each(|at| line(first.wrapping_add(at)));
    line(first.wrapping_add(size_of::<T>() - 1));
}

/// The same for a line that is about to be written, and that another core may have written last: the core then has it
/// to itself when the write comes.
#[inline(always)]
pub(crate) fn line_to_write(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: PREFETCHW has no effect on the architectural state, whatever the address; a processor that does not know
    // it passes it over.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}
