//! Owns: the calls to the operating system for memory: aligned regions, pages back, regions back, huge pages. Does not
//! own: anything mapped. Under Miri, which has neither aligned mmap nor madvise, the allocator stands in.

pub(crate) use imp::{collapse, discard, discard_bytes, map, map_bytes, unmap, unmap_bytes};

/// Bytes and alignment of a region: a huge page.
pub(crate) const REGION_BYTES: usize = 2 << 20;
/// Bytes of a page: what the operating system can take back.
pub(crate) const PAGE_BYTES: usize = 4096;

#[cfg(not(miri))]
mod imp {
    use super::REGION_BYTES;
    use std::alloc::{Layout, handle_alloc_error};
    use std::ptr::{NonNull, null_mut};

    /// Maps zeroed pages, which cost nothing until they are touched.
    pub(crate) fn map_bytes(bytes: usize) -> Option<NonNull<u8>> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no memory of ours.
        let address = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
        if address == libc::MAP_FAILED { None } else { NonNull::new(address.cast()) }
    }

    /// # Safety
    /// `base` came from `map_bytes` with this length, and nobody uses the pages.
    pub(crate) unsafe fn unmap_bytes(base: NonNull<u8>, bytes: usize) {
        // SAFETY: by the contract.
        unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
    }

    /// Gives pages of such a mapping back; they read as zero afterwards.
    ///
    /// # Safety
    /// The range is whole pages of a mapping of `map_bytes`, and nobody relies on what is in them.
    pub(crate) unsafe fn discard_bytes(base: NonNull<u8>, offset: usize, bytes: usize) {
        // SAFETY: by the contract.
        unsafe { libc::madvise(base.add(offset).as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
    }

    /// Maps one zeroed, aligned region. Without `huge`, the kernel may not make it a huge page.
    pub(crate) fn map(huge: bool) -> NonNull<u8> {
        let base = aligned().unwrap_or_else(|| {
            handle_alloc_error(
                Layout::from_size_align(REGION_BYTES, REGION_BYTES).expect("2 MiB is a valid layout"),
            )
        });
        advise_huge(base, huge);
        base
    }

    /// A refusal only means the kernel's default, so it is ignored.
    fn advise_huge(base: NonNull<u8>, huge: bool) {
        #[cfg(target_os = "linux")]
        {
            let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
            // SAFETY: the range is a region of ours; the advice does not change what is in it.
            unsafe { libc::madvise(base.as_ptr().cast(), REGION_BYTES, advice) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (base, huge);
    }

    fn aligned() -> Option<NonNull<u8>> {
        let exact = map_bytes(REGION_BYTES)?;
        if exact.as_ptr() as usize & (REGION_BYTES - 1) == 0 {
            return Some(exact);
        }
        // SAFETY: `exact` is the mapping just made and nobody uses it.
        unsafe { libc::munmap(exact.as_ptr().cast(), REGION_BYTES) };
        let wide = map_bytes(2 * REGION_BYTES)?;
        let skip = wide.as_ptr().align_offset(REGION_BYTES);
        // SAFETY: all three ranges lie in the mapping just made; the aligned middle is kept, the ends are given back.
        unsafe {
            let base = wide.add(skip);
            if skip > 0 {
                libc::munmap(wide.as_ptr().cast(), skip);
            }
            if skip < REGION_BYTES {
                libc::munmap(base.add(REGION_BYTES).as_ptr().cast(), REGION_BYTES - skip);
            }
            Some(base)
        }
    }

    /// Asks the kernel to put a region into one huge page now, copying it: 0.3 to 4 ms, during which nobody waits who
    /// does not fault in it. Says whether it did.
    pub(crate) fn collapse(base: NonNull<u8>) -> bool {
        advise_huge(base, true);
        #[cfg(target_os = "linux")]
        // SAFETY: the advice does not change what memory contains, whatever is mapped there by now.
        return unsafe { libc::madvise(base.as_ptr().cast(), REGION_BYTES, libc::MADV_COLLAPSE) == 0 };
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Gives pages back; they read as zero afterwards. `first` says that the region was whole until now: it leaves huge
    /// pages then, or the kernel would in time fill the holes again.
    ///
    /// # Safety
    /// The range is whole pages of the region at `base`, and nobody uses them.
    pub(crate) unsafe fn discard(base: NonNull<u8>, offset: usize, bytes: usize, first: bool) {
        if first {
            advise_huge(base, false);
        }
        // SAFETY: by the contract.
        unsafe { libc::madvise(base.add(offset).as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
    }

    /// # Safety
    /// `base` came from `map` and nobody uses the region.
    pub(crate) unsafe fn unmap(base: NonNull<u8>) {
        // SAFETY: by the contract.
        unsafe { libc::munmap(base.as_ptr().cast(), REGION_BYTES) };
    }
}

#[cfg(miri)]
mod imp {
    use super::REGION_BYTES;
    use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
    use std::ptr::NonNull;

    fn layout() -> Layout {
        Layout::from_size_align(REGION_BYTES, REGION_BYTES).expect("2 MiB is a valid layout")
    }
    fn page_layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, super::PAGE_BYTES).expect("arrays are below isize::MAX")
    }
    pub(crate) fn map_bytes(bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the length is above 0.
        NonNull::new(unsafe { alloc_zeroed(page_layout(bytes)) })
    }
    pub(crate) unsafe fn unmap_bytes(base: NonNull<u8>, bytes: usize) {
        // SAFETY: by the contract, `base` came from `map_bytes` with this length.
        unsafe { dealloc(base.as_ptr(), page_layout(bytes)) }
    }
    pub(crate) unsafe fn discard_bytes(base: NonNull<u8>, offset: usize, bytes: usize) {
        // SAFETY: by the contract.
        unsafe { base.add(offset).write_bytes(0, bytes) };
    }
    pub(crate) fn map(_huge: bool) -> NonNull<u8> {
        // SAFETY: the layout has a size above 0.
        NonNull::new(unsafe { alloc_zeroed(layout()) }).unwrap_or_else(|| handle_alloc_error(layout()))
    }
    pub(crate) fn collapse(_: NonNull<u8>) -> bool {
        true
    }
    pub(crate) unsafe fn discard(_: NonNull<u8>, _: usize, _: usize, _: bool) {}
    pub(crate) unsafe fn unmap(base: NonNull<u8>) {
        // SAFETY: by the contract, `base` came from `map`.
        unsafe { dealloc(base.as_ptr(), layout()) }
    }
}
