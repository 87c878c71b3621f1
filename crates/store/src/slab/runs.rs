//! Owns: memory for the keyspace's bucket arrays of up to 512 KiB: regions cut into units of 256 bytes. Does not own:
//! who uses an array, when it may be freed (`crate::epoch`).
//!
//! Why not the global allocator: while a keyspace grows, every shard's array is replaced by one a little larger, and
//! the holes that the old ones leave in an allocator's size classes cost 3 to 10 bytes a key (measured with glibc and
//! mimalloc). Here holes join, the first that is large enough is taken, and whole pages inside holes go back to the
//! system.

use super::os::{self, PAGE_BYTES, REGION_BYTES};
use super::pages::Collapse;
use crate::sync::{Mutex, lock};
use std::ptr::NonNull;

/// Bytes of a unit.
const UNIT_BYTES: usize = 256;
const REGION_UNITS: usize = REGION_BYTES / UNIT_BYTES;
const PAGE_UNITS: usize = PAGE_BYTES / UNIT_BYTES;
const WORDS: usize = REGION_UNITS / 64;
const _: () = assert!(PAGE_UNITS == 16);
/// Larger arrays have mappings of their own from the global allocator.
pub(crate) const RUN_BYTES_MAX: usize = 512 << 10;
/// Smaller ones would waste most of a unit.
pub(crate) const RUN_BYTES_MIN: usize = UNIT_BYTES;
/// Free pages kept for reuse in each region.
const KEEP_PAGES: usize = 4;

/// Pages in the holes of one region at which they go back at once, without waiting for maintenance: about 20 µs.
const HOLE_PAGES_MAX: usize = 48;

/// A region with at most so many free units may become a huge page, for which it takes the memory of its holes: few
/// arrays fill a region to the last unit.
const HUGE_FREE_UNITS_MAX: usize = REGION_UNITS / 6;
/// Pages in the holes of a huge page at which it is broken up and they go back.
const HUGE_HOLE_PAGES_MAX: usize = REGION_BYTES / PAGE_BYTES / 4;

struct Region {
    base: NonNull<u8>,
    /// Bit set: the unit is used.
    used: [u64; WORDS],
    /// Bit set, in the page's first unit: the page has memory behind it (or may have).
    touched: [u64; WORDS],
    free_units: usize,
    /// No free run is longer than this.
    longest: usize,
    purged_before: bool,
    /// Asked to be one huge page.
    collapsed: bool,
    /// Nothing has been taken or given since the last look.
    quiet: bool,
}

// SAFETY: a region's memory belongs to whoever holds its runs; the struct itself is behind the source's mutex.
unsafe impl Send for Region {}

/// Where runs come from.
pub(crate) struct RunSource {
    inner: Mutex<Inner>,
}

struct Inner {
    regions: Vec<Region>,
    /// The region that was purged last; the next is before it.
    purge_at: usize,
    /// Where the search for dense regions goes on.
    dense_at: usize,
}

impl RunSource {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::new(Inner { regions: Vec::new(), purge_at: 0, dense_at: 0 }) }
    }

    /// A zeroed run of `bytes`, aligned to a unit: the first hole that is long enough.
    pub(crate) fn take(&self, bytes: usize) -> NonNull<u8> {
        let units = bytes.div_ceil(UNIT_BYTES);
        let run = {
            let regions = &mut lock(&self.inner).regions;
            let found = regions.iter_mut().find_map(|region| region.take(units));
            found.unwrap_or_else(|| {
                regions.push(Region::new(os::map(false)));
                regions
                    .last_mut()
                    .and_then(|region| region.take(units))
                    .expect("a run fits into an empty region")
            })
        };
        // SAFETY: the run is ours alone now, and `units` long.
        unsafe { run.write_bytes(0, units * UNIT_BYTES) };
        run
    }

    /// Takes a run back.
    ///
    /// # Safety
    /// `run` came from `take` of this source with the same size, and nobody uses it.
    pub(crate) unsafe fn give(&self, run: NonNull<u8>, bytes: usize) {
        let units = bytes.div_ceil(UNIT_BYTES);
        let base = run.as_ptr() as usize & !(REGION_BYTES - 1);
        let at = (run.as_ptr() as usize - base) / UNIT_BYTES;
        let regions = &mut lock(&self.inner).regions;
        if let Some(region) = regions.iter_mut().find(|region| region.base.as_ptr() as usize == base) {
            region.set(at, units, false);
            region.free_units += units;
            region.longest = REGION_UNITS;
            if region.idle_pages() > if region.collapsed { HUGE_HOLE_PAGES_MAX } else { HOLE_PAGES_MAX } {
                region.purge();
            }
        }
    }

    /// Looks at one region and gives the pages inside its holes back to the system, or all of it when it is empty.
    /// Returns the bytes.
    pub(crate) fn purge(&self) -> usize {
        let mut source = lock(&self.inner);
        source.purge_at = source.purge_at.checked_sub(1).unwrap_or(source.regions.len().saturating_sub(1));
        let at = source.purge_at;
        let spare = source.regions.len() > 1;
        let Some(region) = source.regions.get_mut(at) else { return 0 };
        let idle = region.idle_pages();
        if idle <= if region.collapsed { HUGE_HOLE_PAGES_MAX } else { KEEP_PAGES } {
            return 0;
        }
        if region.free_units < REGION_UNITS || !spare {
            return region.purge() * PAGE_BYTES;
        }
        let region = source.regions.swap_remove(at);
        drop(source);
        // SAFETY: no unit of the region is used, and it is out of the list.
        unsafe { os::unmap(region.base) };
        idle * PAGE_BYTES
    }

    /// Looks at the next region and puts it into a huge page if it is nearly full and has been left alone for a round,
    /// as [`PageSource::collapse_dense`](super::pages::PageSource::collapse_dense) does.
    pub(crate) fn collapse_dense(&self) -> Collapse {
        let base = {
            let mut source = lock(&self.inner);
            let at = if source.dense_at < source.regions.len() { source.dense_at } else { 0 };
            source.dense_at = at + 1;
            let Some(region) = source.regions.get_mut(at) else { return Collapse::Nothing };
            let was_quiet = std::mem::replace(&mut region.quiet, true);
            if region.collapsed || !was_quiet || region.free_units > HUGE_FREE_UNITS_MAX {
                return Collapse::Nothing;
            }
            region.base
        };
        // Outside the lock: nobody who needs a run waits for the copy.
        if !os::collapse(base) {
            return Collapse::Refused;
        }
        let mut source = lock(&self.inner);
        if let Some(region) = source.regions.iter_mut().find(|region| region.base == base) {
            region.collapsed = true;
            // The next purge breaks it up.
            region.purged_before = false;
            for page in 0..REGION_UNITS / PAGE_UNITS {
                region.touched[page * PAGE_UNITS / 64] |= 1 << (page * PAGE_UNITS % 64);
            }
        }
        Collapse::Done
    }

    /// Regions mapped.
    pub(crate) fn regions(&self) -> usize {
        lock(&self.inner).regions.len()
    }
    /// Pages with memory behind them.
    pub(crate) fn touched_bytes(&self) -> usize {
        let regions = &lock(&self.inner).regions;
        let pages =
            |region: &Region| region.touched.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        regions.iter().map(pages).sum::<usize>() * PAGE_BYTES
    }
}

impl Region {
    const fn new(base: NonNull<u8>) -> Self {
        Self {
            base,
            used: [0; WORDS],
            touched: [0; WORDS],
            free_units: REGION_UNITS,
            longest: REGION_UNITS,
            purged_before: false,
            collapsed: false,
            quiet: false,
        }
    }

    fn take(&mut self, units: usize) -> Option<NonNull<u8>> {
        if units > self.longest || units > self.free_units {
            return None;
        }
        let Some(at) = self.find(units) else {
            self.longest = units - 1;
            return None;
        };
        self.set(at, units, true);
        self.free_units -= units;
        for page in at / PAGE_UNITS..(at + units).div_ceil(PAGE_UNITS) {
            self.touched[page * PAGE_UNITS / 64] |= 1 << (page * PAGE_UNITS % 64);
        }
        // SAFETY: the unit is inside the region.
        Some(unsafe { self.base.add(at * UNIT_BYTES) })
    }

    /// The first run of free units: a walk over the runs of zeros, at most 8,192 steps and mostly a few dozen.
    fn find(&self, units: usize) -> Option<usize> {
        let mut start = 0;
        while start + units <= REGION_UNITS {
            let used = self.next(start, true);
            if used - start >= units {
                return Some(start);
            }
            start = self.next(used, false);
        }
        None
    }
    /// The first unit at or after `from` that is used (or not).
    fn next(&self, from: usize, used: bool) -> usize {
        let mut at = from;
        while at < REGION_UNITS {
            let word = if used { self.used[at / 64] } else { !self.used[at / 64] } >> (at % 64);
            if word != 0 {
                return at + word.trailing_zeros() as usize;
            }
            at = (at / 64 + 1) * 64;
        }
        REGION_UNITS
    }
    fn set(&mut self, at: usize, units: usize, used: bool) {
        self.quiet = false;
        for unit in at..at + units {
            let bit = 1 << (unit % 64);
            debug_assert_eq!(self.used[unit / 64] & bit == 0, used);
            if used {
                self.used[unit / 64] |= bit;
            } else {
                self.used[unit / 64] &= !bit;
            }
        }
    }
    /// First units of pages that are wholly free and have memory behind them.
    fn idle_word(&self, word: usize) -> u64 {
        // Bit p of `any` becomes the or of bits p to p + 15: of a page, for its first unit.
        let mut any = self.used[word];
        for shift in [1, 2, 4, 8] {
            any |= any >> shift;
        }
        self.touched[word] & !any
    }
    fn idle_pages(&self) -> usize {
        (0..WORDS).map(|word| self.idle_word(word).count_ones() as usize).sum()
    }
    fn purge(&mut self) -> usize {
        let mut purged = 0;
        self.collapsed = false;
        for word in 0..WORDS {
            let mut idle = self.idle_word(word);
            self.touched[word] &= !idle;
            while idle != 0 {
                let first = idle.trailing_zeros() as usize;
                let mut pages = 0;
                while first + pages * PAGE_UNITS < 64 && idle >> (first + pages * PAGE_UNITS) & 1 == 1 {
                    idle &= !(1 << (first + pages * PAGE_UNITS));
                    pages += 1;
                }
                let offset = (word * 64 + first) * UNIT_BYTES;
                // SAFETY: the pages are inside the region, and no unit of theirs is used.
                unsafe { os::discard(self.base, offset, pages * PAGE_BYTES, !self.purged_before) };
                self.purged_before = true;
                purged += pages;
            }
        }
        purged
    }
}

impl Drop for RunSource {
    fn drop(&mut self) {
        for region in lock(&self.inner).regions.drain(..) {
            // SAFETY: every array holds the source alive, so none is left.
            unsafe { os::unmap(region.base) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Rng, XorShift};

    #[test]
    fn runs_do_not_overlap_and_holes_are_used_again() {
        for seed in 1..6 {
            println!("seed {seed}");
            let mut rng = XorShift::new(seed);
            let source = RunSource::new();
            let mut live: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
            for step in 0..2000_u32 {
                if rng.below(10) < 5 || live.is_empty() {
                    let bytes = 1024 * (1 + rng.below(if step % 50 == 0 { 512 } else { 30 })) as usize;
                    let run = source.take(bytes);
                    // SAFETY: the run is ours and that long.
                    let slice = unsafe { std::slice::from_raw_parts_mut(run.as_ptr(), bytes) };
                    assert!(slice.iter().all(|&byte| byte == 0));
                    slice.fill(step as u8);
                    live.push((run, bytes, step as u8));
                } else {
                    let (run, bytes, fill) = live.swap_remove(rng.below(live.len() as u32) as usize);
                    // SAFETY: the run is live and that long; it is not used after it is given.
                    unsafe {
                        let slice = std::slice::from_raw_parts(run.as_ptr(), bytes);
                        assert!(slice.iter().all(|&byte| byte == fill));
                        source.give(run, bytes);
                    }
                }
                if step % 100 == 0 {
                    source.purge();
                }
                if step % 7 == 0 {
                    // Twice in a row, so that all regions are looked at twice without a change between.
                    (0..16).for_each(|_| _ = source.collapse_dense());
                }
            }
            for (run, bytes, _) in live {
                // SAFETY: as above.
                unsafe { source.give(run, bytes) };
            }
            for _ in 0..100 {
                source.purge();
            }
            assert!(source.touched_bytes() <= 2 * KEEP_PAGES * PAGE_BYTES);
        }
    }
}
