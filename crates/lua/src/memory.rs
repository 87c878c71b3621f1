//! Owns: the memory of a Lua state: what it takes, the limit that all states share, who is refused above it. Does not
//! own: what is done with it.
//!
//! Lua answers a refused allocation by raising an error, past whatever runs. So nothing is refused while a function of
//! Rust runs (`crate::frame`): it takes what it needs, after it has asked whether a large result [fits](Memory::fits).

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What all Lua states of a server take together, and may take.
#[derive(Debug)]
pub struct Budget {
    used_bytes: AtomicUsize,
    limit_bytes: AtomicUsize,
}

impl Budget {
    /// Nothing is taken yet.
    #[must_use]
    pub const fn new(limit_bytes: usize) -> Self {
        Self { used_bytes: AtomicUsize::new(0), limit_bytes: AtomicUsize::new(limit_bytes) }
    }
    /// What all states take, to some 64 KiB for each.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Relaxed)
    }
    /// What they may take.
    pub fn set_limit(&self, bytes: usize) {
        self.limit_bytes.store(bytes, Relaxed);
    }
}

/// Where there is little left, everything is collected when a state has taken this part of the limit since the last
/// time: it takes as long as going through all of it.
const COLLECTED_PART: usize = 32;

/// The depth while a state is made, whatever calls whom: until it stands there is nobody to catch an error.
const MAKING: u32 = 1 << 30;

/// A change of a state's memory that the others are told of.
const SETTLED_BYTES: isize = 64 << 10;

/// Blocks up to this size are kept for the next ones of theirs when they are given back: a script makes and leaves a
/// dozen.
const SMALL_BYTES_MAX: usize = 256;
/// Bytes of the kept blocks of one size, 4 MiB of all sizes together: what is collected at once of scripts that leave
/// two tables each, before the next ones are made.
const KEPT_BYTES_MAX: u32 = 256 << 10;
const SIZES: usize = SMALL_BYTES_MAX / ALIGN + 1;

/// Small blocks that were given back, by size: each begins with the address of the next.
#[derive(Debug)]
struct SpareBlocks {
    first: [*mut u8; SIZES],
    bytes: [u32; SIZES],
}

/// Blocks from this size on are counted: what goes through one takes longer than the usual instruction.
const LARGE_BYTES_MIN: usize = 4 << 10;
/// Bytes of blocks that are not small, after which it is time for a look.
const TAKEN_BYTES_MAX: usize = 8 << 20;
/// Sizes of large blocks, each twice the one before.
const LARGE_SIZES: usize = (usize::BITS - LARGE_BYTES_MIN.trailing_zeros()) as usize;

/// Blocks that are not small, as far as they say how long an instruction may take.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Large ones that there are, by size.
    counts: [u32; LARGE_SIZES],
    /// Sizes up to the largest of those.
    sizes: usize,
    /// Bytes that were taken since the last look.
    taken_bytes: usize,
}

impl Blocks {
    /// Nothing is as large as this; 0 where nothing is large.
    pub(crate) const fn largest_bytes(&self) -> usize {
        if self.sizes == 0 { 0 } else { LARGE_BYTES_MIN.saturating_mul(1 << self.sizes) }
    }
    pub(crate) const fn looked(&mut self) {
        self.taken_bytes = 0;
    }
    const fn size(bytes: usize) -> usize {
        (bytes / LARGE_BYTES_MIN).ilog2() as usize
    }
    /// A block has become one of another size; 0: there is none. Says whether it is time for a look.
    fn changed(&mut self, old_bytes: usize, new_bytes: usize) -> bool {
        let before = self.sizes;
        if new_bytes >= LARGE_BYTES_MIN {
            let size = Self::size(new_bytes);
            self.counts[size] += 1;
            self.sizes = self.sizes.max(size + 1);
        }
        if old_bytes >= LARGE_BYTES_MIN {
            self.counts[Self::size(old_bytes)] -= 1;
            while self.sizes > 0 && self.counts[self.sizes - 1] == 0 {
                self.sizes -= 1;
            }
        }
        self.taken_bytes += new_bytes;
        self.sizes > before || self.taken_bytes > TAKEN_BYTES_MAX
    }
}

/// A state's part.
#[derive(Debug)]
pub(crate) struct Memory {
    kept: SpareBlocks,
    pub(crate) blocks: Blocks,
    budget: Arc<Budget>,
    /// Taken or given back since the others were told.
    unsettled_bytes: isize,
    used_bytes: usize,
    /// What was in use when everything that is not used was collected last.
    collected_bytes: usize,
    /// The same, when no script ran.
    rest_bytes: usize,
    /// Functions of Rust that run, one inside the other.
    depth: u32,
}

impl Memory {
    pub(crate) const fn new(budget: Arc<Budget>) -> Self {
        let kept = SpareBlocks { first: [std::ptr::null_mut(); SIZES], bytes: [0; SIZES] };
        Self {
            kept,
            blocks: Blocks { counts: [0; LARGE_SIZES], sizes: 0, taken_bytes: 0 },
            budget,
            unsettled_bytes: 0,
            used_bytes: 0,
            collected_bytes: 0,
            rest_bytes: 0,
            depth: MAKING,
        }
    }
    pub(crate) const fn used_bytes(&self) -> usize {
        self.used_bytes
    }
    fn total(&self) -> usize {
        self.budget.used_bytes().saturating_add_signed(self.unsettled_bytes)
    }
    /// What all states may take.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.budget.limit_bytes.load(Relaxed)
    }
    /// Whether so many bytes more are within the limit.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.total().saturating_add(bytes) <= self.budget.limit_bytes.load(Relaxed)
    }
    /// Whether it is time to collect everything that is not used: there is little left, and there may be something to
    /// collect.
    pub(crate) fn is_high(&mut self) -> bool {
        let limit = self.budget.limit_bytes.load(Relaxed);
        self.collected_bytes = self.collected_bytes.min(self.used_bytes);
        self.total() > limit / 4 * 3 && self.used_bytes - self.collected_bytes >= limit / COLLECTED_PART
    }
    /// A script is over: what it used is not used any more.
    pub(crate) fn rests(&mut self) {
        self.collected_bytes = self.rest_bytes;
    }
    /// What is in use when no script runs has been collected, or was not worth it.
    pub(crate) const fn rested(&mut self) {
        self.rest_bytes = self.collected_bytes;
    }
    /// Everything has been collected.
    pub(crate) const fn collected(&mut self) {
        self.collected_bytes = self.used_bytes;
    }
    /// A function of Rust begins; gives what [`leave`](Self::leave) is told.
    pub(crate) const fn enter(&mut self) -> u32 {
        self.depth += 1;
        self.depth - 1
    }
    pub(crate) const fn leave(&mut self, depth: u32) {
        self.depth = depth;
    }
    /// It calls back into Lua.
    pub(crate) const fn pause(&mut self) -> u32 {
        let depth = self.depth;
        if depth < MAKING {
            self.depth = 0;
        }
        depth
    }
    pub(crate) const fn resume(&mut self, depth: u32) {
        self.depth = depth;
    }
    /// A kept block of so many bytes, which are not 0, where nobody has to be told or asked; null otherwise.
    #[inline]
    fn take_kept(&mut self, bytes: usize) -> *mut u8 {
        let unsettled_bytes = self.unsettled_bytes.saturating_add_unsigned(bytes);
        if unsettled_bytes > SETTLED_BYTES || self.depth == 0 && !self.fits(bytes) {
            return std::ptr::null_mut();
        }
        let block = self.kept.take_kept(bytes);
        if !block.is_null() {
            self.used_bytes += bytes;
            self.unsettled_bytes = unsettled_bytes;
        }
        block
    }
    /// Keeps a block that is given back, where nobody has to be told.
    ///
    /// # Safety
    /// As for [`SpareBlocks::keep`].
    #[inline]
    unsafe fn keep(&mut self, block: *mut u8, bytes: usize) -> bool {
        let unsettled_bytes = self.unsettled_bytes.saturating_sub_unsigned(bytes);
        // SAFETY: the caller's.
        if unsettled_bytes < -SETTLED_BYTES || !unsafe { self.kept.keep(block, bytes) } {
            return false;
        }
        self.used_bytes -= bytes;
        self.unsettled_bytes = unsettled_bytes;
        true
    }
    fn count(&mut self, bytes: isize) {
        self.used_bytes = self.used_bytes.wrapping_add_signed(bytes);
        self.unsettled_bytes += bytes;
        if self.unsettled_bytes.abs() > SETTLED_BYTES {
            self.settle();
        }
    }
    #[cold]
    fn settle(&mut self) {
        let bytes = std::mem::take(&mut self.unsettled_bytes);
        if bytes >= 0 {
            self.budget.used_bytes.fetch_add(bytes.unsigned_abs(), Relaxed);
        } else {
            self.budget.used_bytes.fetch_sub(bytes.unsigned_abs(), Relaxed);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.settle();
        self.kept.give_back();
    }
}

const ALIGN: usize = 16;

/// What a block of so many bytes takes: the kept ones fit all of their size.
fn layout(bytes: usize) -> Option<Layout> {
    let bytes = if bytes <= SMALL_BYTES_MAX { bytes.next_multiple_of(ALIGN) } else { bytes };
    Layout::from_size_align(bytes, ALIGN).ok()
}

/// Which size a block has; from [`SIZES`] on blocks are not kept.
const fn size_of_block(bytes: usize) -> usize {
    bytes.div_ceil(ALIGN)
}

impl SpareBlocks {
    /// A kept block of so many bytes, which are not 0; null where there is none.
    #[inline]
    fn take_kept(&mut self, bytes: usize) -> *mut u8 {
        let size = size_of_block(bytes);
        if size >= SIZES || self.first[size].is_null() {
            return std::ptr::null_mut();
        }
        let block = self.first[size];
        // SAFETY: `keep` has written the next one's address there, and nobody has the block.
        self.first[size] = unsafe { block.cast::<*mut u8>().read() };
        self.bytes[size] -= (size * ALIGN) as u32;
        block
    }
    /// Keeps a block, if it is small and there are not many yet.
    ///
    /// # Safety
    /// It came from `take` with so many bytes, and nobody has it.
    #[inline]
    unsafe fn keep(&mut self, block: *mut u8, bytes: usize) -> bool {
        let size = size_of_block(bytes);
        if size >= SIZES || self.bytes[size] >= KEPT_BYTES_MAX {
            return false;
        }
        // SAFETY: it is aligned, and has at least `ALIGN` bytes.
        unsafe { block.cast::<*mut u8>().write(self.first[size]) };
        self.first[size] = block;
        self.bytes[size] += (size * ALIGN) as u32;
        true
    }
    /// A block of so many bytes, which are not 0; null where there is no memory for it.
    fn take(&mut self, bytes: usize) -> *mut u8 {
        let kept = self.take_kept(bytes);
        if kept.is_null() { Self::take_new(bytes) } else { kept }
    }
    #[cold]
    fn take_new(bytes: usize) -> *mut u8 {
        // SAFETY: the size is not 0.
        layout(bytes).map_or(std::ptr::null_mut(), |layout| unsafe { alloc(layout) })
    }
    /// Takes a block back.
    ///
    /// # Safety
    /// As for `keep`.
    unsafe fn give(&mut self, block: *mut u8, bytes: usize) {
        // SAFETY: the caller's.
        unsafe {
            if !self.keep(block, bytes) {
                Self::give_up(block, bytes);
            }
        }
    }
    /// # Safety
    /// As for `give`.
    #[cold]
    unsafe fn give_up(block: *mut u8, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: the caller's.
            unsafe { dealloc(block, layout) }
        }
    }
    /// A block of another size that holds what an old one held, as far as it fits; null where there is no memory for
    /// it, and the old one stays. Neither size is 0.
    ///
    /// # Safety
    /// The old one came from here with so many bytes, and nobody has it.
    unsafe fn resize(&mut self, old: *mut u8, old_bytes: usize, new_bytes: usize) -> *mut u8 {
        let (Some(new_layout), Some(old_layout)) = (layout(new_bytes), layout(old_bytes)) else {
            return std::ptr::null_mut();
        };
        if new_layout == old_layout {
            return old;
        }
        if old_bytes > SMALL_BYTES_MAX && new_bytes > SMALL_BYTES_MAX {
            // SAFETY: neither size is 0; what there was came from here with its size.
            return unsafe { realloc(old, old_layout, new_bytes) };
        }
        let new = self.take(new_bytes);
        if !new.is_null() {
            // SAFETY: both have so many bytes and are two blocks; the old one is not used any more.
            unsafe {
                std::ptr::copy_nonoverlapping(old, new, old_bytes.min(new_bytes));
                self.give(old, old_bytes);
            }
        }
        new
    }
    fn give_back(&mut self) {
        for size in 1..SIZES {
            while let (false, Some(layout)) = (self.first[size].is_null(), layout(size * ALIGN)) {
                let block = self.take(size * ALIGN);
                // SAFETY: it was kept with this layout.
                unsafe { dealloc(block, layout) };
            }
        }
    }
}

/// Lua's allocator: `lua_Alloc` over the program's. Mostly Lua takes a small block where one is kept, or gives one
/// back: that calls nobody.
///
/// # Safety
/// As Lua calls it: `place` is the state's `Shared`; `old` has `old_bytes` and came from here, or is null.
pub(crate) unsafe extern "C" fn allocate(
    place: *mut c_void,
    old: *mut c_void,
    old_bytes: usize,
    new_bytes: usize,
) -> *mut c_void {
    // SAFETY: the allocator's datum is a `Shared` that outlives the state. Only this field is borrowed, for this call,
    // which calls nobody.
    let memory = unsafe { &mut (*place.cast::<crate::frame::Shared>()).memory };
    if old.is_null() {
        if new_bytes == 0 {
            // Lua asks for and gives back also what is not there: the elements of a table that has none.
            return old;
        }
        let kept = memory.take_kept(new_bytes);
        if !kept.is_null() {
            return kept.cast();
        }
    } else if new_bytes == 0 {
        // SAFETY: it came from here with this size, and Lua has it no more.
        if unsafe { memory.keep(old.cast(), old_bytes) } {
            return std::ptr::null_mut();
        }
    }
    // SAFETY: the caller's.
    unsafe { change(place, old, old_bytes, new_bytes) }
}

/// [`allocate`] for any sizes.
///
/// # Safety
/// As there; something is taken, resized, or given back.
#[inline(never)]
unsafe extern "C" fn change(
    place: *mut c_void,
    old: *mut c_void,
    old_bytes: usize,
    new_bytes: usize,
) -> *mut c_void {
    // SAFETY: as in `allocate`.
    let memory = unsafe { &mut (*place.cast::<crate::frame::Shared>()).memory };
    let old_bytes = if old.is_null() { 0 } else { old_bytes };
    if new_bytes == 0 {
        // SAFETY: it came from here with this size.
        unsafe { memory.kept.give(old.cast(), old_bytes) };
        memory.count(-(old_bytes as isize));
        if old_bytes >= LARGE_BYTES_MIN {
            memory.blocks.changed(old_bytes, 0);
        }
        return std::ptr::null_mut();
    }
    let more = new_bytes as isize - old_bytes as isize;
    if more > 0 && memory.depth == 0 && !memory.fits(more.unsigned_abs()) {
        return std::ptr::null_mut();
    }
    let new = if old_bytes == 0 {
        memory.kept.take(new_bytes)
    } else {
        // SAFETY: it came from here with this size.
        unsafe { memory.kept.resize(old.cast(), old_bytes, new_bytes) }
    };
    if !new.is_null() {
        memory.count(more);
        if new_bytes > SMALL_BYTES_MAX && (memory.blocks.changed(old_bytes, new_bytes) || memory.is_high()) {
            // SAFETY: the datum outlives the state; `memory` is not used behind this.
            unsafe { crate::vm::hurry(place.cast()) }
        } else if old_bytes >= LARGE_BYTES_MIN && new_bytes <= SMALL_BYTES_MAX {
            memory.blocks.changed(old_bytes, 0);
        }
    }
    new.cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Shared;

    /// What a block of this number holds.
    fn is_whole(block: *mut c_void, bytes: usize, mark: u8) -> bool {
        // SAFETY: the test has it, with so many bytes.
        unsafe { std::slice::from_raw_parts(block.cast::<u8>(), bytes) }.iter().all(|byte| *byte == mark)
    }

    #[test]
    fn blocks_keep_what_they_hold_and_all_are_given_back() {
        let budget = Arc::new(Budget::new(1 << 30));
        let shared = Box::into_raw(Box::new(Shared::new(Memory::new(Arc::clone(&budget)))));
        let resize = |block: *mut c_void, from: usize, to: usize| {
            // SAFETY: as Lua calls it.
            unsafe { allocate(shared.cast(), block, from, to) }
        };
        let mut blocks: Vec<(*mut c_void, usize, u8)> = Vec::new();
        let mut dice = 7_u64;
        let mut throw = |sides: usize| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) as usize % sides
        };
        for round in 0..if cfg!(miri) { 300 } else { 50_000 } {
            let bytes = [1, 15, 16, 17, 255, 256, 257, 4096][throw(8)] + throw(3) - 1;
            let (place, mark) = (throw(blocks.len() + 1), round as u8);
            if place == blocks.len() {
                let block = resize(std::ptr::null_mut(), 0, bytes);
                assert!(bytes == 0 || block.addr().is_multiple_of(ALIGN));
                if bytes > 0 {
                    // SAFETY: it is new and has so many bytes.
                    unsafe { block.cast::<u8>().write_bytes(mark, bytes) };
                    blocks.push((block, bytes, mark));
                }
                continue;
            }
            let (block, before, held) = blocks.swap_remove(place);
            assert!(is_whole(block, before, held));
            let block = resize(block, before, bytes);
            if bytes > 0 {
                assert!(is_whole(block, bytes.min(before), held));
                // SAFETY: it has so many bytes.
                unsafe { block.cast::<u8>().write_bytes(mark, bytes) };
                blocks.push((block, bytes, mark));
            }
        }
        for (block, bytes, mark) in blocks {
            assert!(is_whole(block, bytes, mark));
            resize(block, bytes, 0);
        }
        // More than are kept.
        let kept = KEPT_BYTES_MAX / 32;
        let many: Vec<_> = (0..2 * kept).map(|_| resize(std::ptr::null_mut(), 0, 32)).collect();
        assert!(many.into_iter().all(|block| resize(block, 32, 0).is_null()));
        // SAFETY: it was made above, and nobody has it.
        let shared = unsafe { Box::from_raw(shared) };
        assert_eq!((shared.memory.kept.bytes[2], shared.memory.used_bytes()), (KEPT_BYTES_MAX, 0));
        drop(shared);
        assert_eq!(budget.used_bytes(), 0);
    }
}
