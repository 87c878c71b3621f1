//! Owns: the memory under all slabs of a keyspace: regions from the operating system, cut into spans of 4 KiB pages,
//! and giving unused pages back. Does not own: what is inside a span (`crate::slab`).
//!
//! A region is 2 MiB, aligned to its size, so the descriptor of any page is found from an address by masking:
//!
//! ```text
//!  page 0..3                      page 3 … 511
//! +------------------------------+--------+--------+ … +
//! | 512 page descriptors, 24 B   | page   | page   |   |
//! +------------------------------+--------+--------+ … +
//! ```
//! The descriptors cost 0.6 %, and as they are not inside the pages, 32 slots of 128 bytes fill a page exactly. A span
//! is 1 to 8 pages in a row. One mutex guards all of it: it is taken once for a span, so once in 15 to 256 new entries.

use super::os;
use super::span::{Desc, SPAN_PAGES_MAX};
use crate::sync::{Mutex, lock};
use std::ptr::NonNull;

pub(crate) use super::os::{PAGE_BYTES, REGION_BYTES};

const REGION_PAGES: usize = REGION_BYTES / PAGE_BYTES;
/// Pages at the start of a region that hold its descriptors.
pub(crate) const DESC_PAGES: usize = (REGION_PAGES * size_of::<Desc>()).div_ceil(PAGE_BYTES);
const WORDS: usize = REGION_PAGES / 64;
/// Free pages kept for reuse before any go back to the operating system: 1 MiB, and 1/64 of what is in use.
const KEEP_PAGES: usize = 256;

/// A region with at most this many free pages may become a huge page.
const SPARE_PAGES_HUGE_MAX: usize = 8;

/// The region and page number of an address inside a span.
#[inline]
pub(crate) fn desc_of(address: NonNull<u8>) -> (NonNull<Desc>, usize) {
    let offset = address.as_ptr() as usize & (REGION_BYTES - 1);
    let page = offset / PAGE_BYTES;
    let base = address.as_ptr().map_addr(|address| address & !(REGION_BYTES - 1)).cast::<Desc>();
    // SAFETY: the address lies in a region, whose first bytes are an array of REGION_PAGES descriptors; `page` is below
    // that, and the region's base is not null.
    (unsafe { NonNull::new_unchecked(base.add(page)) }, page)
}

/// What is known of one region.
struct Region {
    base: NonNull<u8>,
    /// Bit set: the page is free.
    free: [u64; WORDS],
    /// Bit set: the page is free and still has memory behind it.
    dirty: [u64; WORDS],
    free_pages: usize,
    purged_before: bool,
    /// Asked to be one huge page.
    collapsed: bool,
}

struct Inner {
    regions: Vec<Option<Region>>,
    /// For each span length, no region before this one has room.
    first_with_room: [usize; SPAN_PAGES_MAX + 1],
    used_pages: usize,
    dirty_pages: usize,
    region_count: usize,
    /// Where the next purge goes on.
    purge_at: usize,
    /// Where the search for dense regions goes on.
    dense_at: usize,
}

/// What became of a region that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collapse {
    /// It is not full, or a huge page already, or there is none.
    Nothing,
    /// It is a huge page now.
    Done,
    /// The kernel has refused: it has none, or is not to have any.
    Refused,
}

/// The page source of one keyspace.
pub(crate) struct PageSource {
    inner: Mutex<Inner>,
    huge: bool,
}

// SAFETY: a Region's pointer is the address of memory that the source owns; everything about it is behind the mutex.
unsafe impl Send for PageSource {}
// SAFETY: as above.
unsafe impl Sync for PageSource {}

/// Pages of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageStats {
    /// Pages inside spans.
    pub used_pages: usize,
    /// Free pages that still have memory behind them.
    pub dirty_pages: usize,
    /// Regions mapped.
    pub regions: usize,
}

impl PageStats {
    /// Memory that the operating system counts, or nearly: pages in use, kept ones and descriptors.
    #[must_use]
    pub const fn resident_bytes(&self) -> usize {
        (self.used_pages + self.dirty_pages + self.regions * DESC_PAGES) * PAGE_BYTES
    }
}

impl PageSource {
    /// A source without memory yet. `huge` allows huge pages under regions that are full, see
    /// [`PageSource::collapse_dense`].
    pub(crate) fn new(huge: bool) -> Self {
        let inner = Inner {
            regions: Vec::new(),
            first_with_room: [0; SPAN_PAGES_MAX + 1],
            used_pages: 0,
            dirty_pages: 0,
            region_count: 0,
            purge_at: 0,
            dense_at: 0,
        };
        Self { inner: Mutex::new(inner), huge }
    }

    /// A span of `pages` pages. Aborts like any allocation when the operating system has no more.
    pub(crate) fn take(&self, pages: usize) -> NonNull<u8> {
        debug_assert!((1..=SPAN_PAGES_MAX).contains(&pages));
        let mut inner = lock(&self.inner);
        let mut at = inner.first_with_room[pages];
        let (index, page) = loop {
            if at == inner.regions.len() {
                at = inner.add_region();
            }
            match inner.regions[at].as_ref().and_then(|region| region.find(pages)) {
                Some(page) => break (at, page),
                None => at += 1,
            }
        };
        inner.first_with_room[pages] = index;
        inner.used_pages += pages;
        let region = inner.regions[index].as_mut().expect("a page was found in it");
        let cleaned = region.mark_used(page, pages);
        let base = region.base;
        inner.dirty_pages -= cleaned;
        // SAFETY: the page number is below the region's pages.
        unsafe { base.add(page * PAGE_BYTES) }
    }

    /// Takes a span back. The memory stays until a purge.
    ///
    /// # Safety
    /// The span came from `take` of this source with the same length and nothing in it is used any more.
    pub(crate) unsafe fn give(&self, span: NonNull<u8>, pages: usize) {
        let base = span.as_ptr().map_addr(|address| address & !(REGION_BYTES - 1));
        let page = (span.as_ptr() as usize & (REGION_BYTES - 1)) / PAGE_BYTES;
        // SAFETY: descriptor 0 belongs to the descriptor pages themselves; `add_region` wrote the region's index there
        // and nothing changes it while the region is mapped.
        let index = unsafe { (*base.cast::<Desc>()).region_index() };
        let mut inner = lock(&self.inner);
        inner.used_pages -= pages;
        inner.dirty_pages += pages;
        for first in &mut inner.first_with_room {
            *first = (*first).min(index);
        }
        if let Some(region) = &mut inner.regions[index] {
            region.mark_free(page, pages);
        }
    }

    /// Gives memory of free pages back to the operating system, from at most `regions_max` regions: one system call for
    /// each run of pages, each a few µs. Returns the bytes given back.
    pub(crate) fn purge(&self, regions_max: usize) -> usize {
        let mut freed = 0;
        for _ in 0..regions_max {
            let mut inner = lock(&self.inner);
            if inner.dirty_pages <= KEEP_PAGES + inner.used_pages / 64 || inner.regions.is_empty() {
                break;
            }
            // From the end: spans are taken from the first region with room, so the last ones empty.
            let at = inner.purge_at.checked_sub(1).unwrap_or(inner.regions.len() - 1);
            inner.purge_at = at;
            let Some(region) = &mut inner.regions[at] else { continue };
            if region.free_pages == REGION_PAGES - DESC_PAGES {
                let dirty = region.dirty.iter().map(|word| word.count_ones() as usize).sum::<usize>();
                let base = region.base;
                inner.regions[at] = None;
                inner.dirty_pages -= dirty;
                inner.region_count -= 1;
                while inner.regions.last().is_some_and(Option::is_none) {
                    inner.regions.pop();
                }
                let regions = inner.regions.len();
                for first in &mut inner.first_with_room {
                    *first = (*first).min(regions);
                }
                inner.purge_at = inner.purge_at.min(regions);
                drop(inner);
                // SAFETY: every page of the region is free, and it is out of the list, so nobody can reach it.
                unsafe { os::unmap(base) };
                freed += dirty * PAGE_BYTES;
                continue;
            }
            let pages = region.purge();
            inner.dirty_pages -= pages;
            freed += pages * PAGE_BYTES;
        }
        freed
    }

    /// Whether regions may become huge pages.
    pub(crate) const fn is_huge(&self) -> bool {
        self.huge
    }
    /// Looks at the next region and puts it into a huge page if it is nearly full: a random lookup then misses the TLB
    /// once, not with a walk over page tables that are themselves not cached (15 to 30 % at 10 million keys), and no
    /// memory is added since all of it is in use. A region that empties later goes back to small pages when it is
    /// purged.
    pub(crate) fn collapse_dense(&self) -> Collapse {
        let base = {
            let mut inner = lock(&self.inner);
            let at = if inner.dense_at < inner.regions.len() { inner.dense_at } else { 0 };
            inner.dense_at = at + 1;
            let Some(Some(region)) = inner.regions.get_mut(at) else { return Collapse::Nothing };
            if region.collapsed || region.purged_before || region.free_pages > SPARE_PAGES_HUGE_MAX {
                return Collapse::Nothing;
            }
            region.collapsed = true;
            region.base
        };
        // Outside the lock: nobody who needs a span waits for the copy.
        if os::collapse(base) {
            return Collapse::Done;
        }
        let mut inner = lock(&self.inner);
        let region = inner.regions.iter_mut().flatten().find(|region| region.base == base);
        region.into_iter().for_each(|region| region.collapsed = false);
        Collapse::Refused
    }

    /// Pages in use and kept.
    pub(crate) fn stats(&self) -> PageStats {
        let inner = lock(&self.inner);
        PageStats {
            used_pages: inner.used_pages,
            dirty_pages: inner.dirty_pages,
            regions: inner.region_count,
        }
    }
}

impl Inner {
    fn add_region(&mut self) -> usize {
        let base = os::map(false);
        let index = self.regions.iter().position(Option::is_none).unwrap_or(self.regions.len());
        // SAFETY: the region is fresh, zeroed and ours; its first bytes are descriptor 0.
        unsafe { base.cast::<Desc>().write(Desc::for_region(index)) };
        let mut region = Region {
            base,
            free: [u64::MAX; WORDS],
            dirty: [0; WORDS],
            free_pages: REGION_PAGES,
            purged_before: false,
            collapsed: false,
        };
        region.mark_used(0, DESC_PAGES);
        if index == self.regions.len() {
            self.regions.push(Some(region));
        } else {
            self.regions[index] = Some(region);
        }
        self.region_count += 1;
        index
    }
}

impl Region {
    /// The first run of free pages, searched inside 64-page words only: a run across two words is not found, which
    /// loses at most 7 pages in 64 to long spans, and none to short ones.
    fn find(&self, pages: usize) -> Option<usize> {
        if self.free_pages < pages {
            return None;
        }
        self.free.iter().enumerate().find_map(|(at, &word)| {
            let mut runs = word;
            for shift in 1..pages {
                runs &= word >> shift;
            }
            (runs != 0).then(|| at * 64 + runs.trailing_zeros() as usize)
        })
    }
    fn mask(page: usize, pages: usize) -> (usize, u64) {
        (page / 64, ((1 << pages) - 1) << (page % 64))
    }
    /// Returns how many of the pages had memory behind them.
    fn mark_used(&mut self, page: usize, pages: usize) -> usize {
        let (at, mask) = Self::mask(page, pages);
        debug_assert_eq!(self.free[at] & mask, mask);
        let dirty = (self.dirty[at] & mask).count_ones() as usize;
        self.free[at] &= !mask;
        self.dirty[at] &= !mask;
        self.free_pages -= pages;
        dirty
    }
    fn mark_free(&mut self, page: usize, pages: usize) {
        let (at, mask) = Self::mask(page, pages);
        debug_assert_eq!(self.free[at] & mask, 0);
        self.free[at] |= mask;
        self.dirty[at] |= mask;
        self.free_pages += pages;
    }
    fn purge(&mut self) -> usize {
        let mut purged = 0;
        for at in 0..WORDS {
            while self.dirty[at] != 0 {
                let start = self.dirty[at].trailing_zeros() as usize;
                let pages = (!(self.dirty[at] >> start)).trailing_zeros().min(64 - start as u32) as usize;
                let (offset, bytes) = ((at * 64 + start) * PAGE_BYTES, pages * PAGE_BYTES);
                // SAFETY: the pages are in this region and free.
                unsafe { os::discard(self.base, offset, bytes, !self.purged_before) };
                self.purged_before = true;
                let run = if pages == 64 { u64::MAX } else { ((1 << pages) - 1) << start };
                self.dirty[at] &= !run;
                purged += pages;
            }
        }
        purged
    }
}

impl Drop for PageSource {
    fn drop(&mut self) {
        for region in lock(&self.inner).regions.drain(..).flatten() {
            // SAFETY: the source outlives every slab that took spans from it (the keyspace drops it last).
            unsafe { os::unmap(region.base) };
        }
    }
}
