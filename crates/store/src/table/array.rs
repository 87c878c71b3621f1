//! Owns: one array of buckets: its memory, its bucket layout, the size steps, linear probing with overflow counts.
//! Does not own: when to resize, what a pointer points to, who may still be reading an array (see `head`).
//!
//! A bucket is one cache line; 7 keys cost 64 bytes, so 9.1 bytes a key when full:
//!
//! ```text
//!   0      1            6      7       8        16              56       63
//! +------+------+ … +------+--------+--------+--------+ … +-----------+
//! | tag0 | tag1 |   | tag6 | passed | slot 0 | slot 1 |   |  slot 6   |
//! +------+------+ … +------+--------+--------+--------+ … +-----------+
//! ```
//! A tag is 0 for an empty slot, else 8 bits of the hash that neither the bucket nor the shard uses.
//!
//! **Overflow.** A key whose home bucket is full goes to the next bucket with room (wrapping). Every bucket that it had
//! to pass counts it in `passed`, and uncounts it when it is removed, so a lookup stops at the first bucket that
//! nothing has passed: a miss in a bucket without overflow costs one cache line, and there are no tombstones. At the
//! highest load used here (0.91) the passed keys follow a queue with arrivals of mean 6.4 and 7 services: the chance
//! that more than x keys pass a bucket falls as e^(-0.18 x); at the mean load of 0.78 as e^(-0.5 x). A count that
//! reaches 255 sticks there until the next resize, which is only slower, never wrong; a probe ends after one round at
//! the latest.

use crate::slab::os;
use crate::slab::runs::{RUN_BYTES_MAX, RUN_BYTES_MIN, RunSource};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// Larger arrays that are in no run have pages of their own.
const PAGES_BYTES_MIN: usize = 512 << 10;
/// Buckets whose memory goes back together: 256 KiB, some 20 µs.
const PIECE_BUCKETS: u32 = 4096;
/// Slots in a bucket.
pub(crate) const SLOTS: usize = 7;
/// `passed` at its limit: it no longer counts exactly.
const PASSED_MAX: u64 = 255;
const PASSED_SHIFT: u32 = 56;
const TAGS: u64 = 0x00ff_ffff_ffff_ffff;
const LOW_BITS: u64 = 0x0001_0101_0101_0101;
const HIGH_BITS: u64 = 0x0080_8080_8080_8080;
/// Buckets under one expiry hint: 8 bytes of hint for 2 KiB of buckets.
pub(crate) const GROUP_BUCKETS: u32 = 32;
/// Arrays are aligned so that a published pointer has 7 bits free for its size step.
pub(crate) const ARRAY_ALIGN: usize = 128;
/// The largest size step: 4·2^30 buckets, beyond the 32-bit position.
pub(crate) const STEP_MAX: u8 = 120;

/// The bits of a pointer that tell its entry's size.
const SIZE: usize = 3 << 1;

/// A pointer to an entry, 8-aligned, with bits of the table's own: the mark, which says that the entry has an expiry,
/// and two that say about how many cache lines it takes, so that it can be prefetched whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tagged(NonNull<u8>);

impl Tagged {
    /// Joins an 8-aligned pointer and the mark.
    #[inline]
    pub(crate) fn new(entry: NonNull<u8>, marked: bool) -> Self {
        debug_assert_eq!(entry.as_ptr() as usize & 7, 0);
        Self(entry.map_addr(|address| address | usize::from(marked)))
    }
    /// The same for an entry of so many bytes; what takes the same class of memory has the same.
    #[inline]
    pub(crate) fn with_bytes(self, bytes: usize) -> Self {
        let size = match bytes {
            0..=112 => 0,
            113..=256 => 1 << 1,
            257..=640 => 2 << 1,
            _ => SIZE,
        };
        Self(self.0.map_addr(|address| address | size))
    }
    /// The same with the size of another.
    #[inline]
    pub(crate) fn with_size_of(self, other: Self) -> Self {
        let size = other.0.as_ptr() as usize & SIZE;
        Self(self.0.map_addr(|address| address | size))
    }
    /// Cache lines behind the first two that the entry takes, at most.
    #[inline]
    pub(crate) fn more_lines(self) -> usize {
        static LINES: [u8; 4] = [0, 3, 9, 16];
        usize::from(LINES[(self.0.as_ptr() as usize & SIZE) >> 1])
    }
    /// The pointer without the mark.
    #[inline]
    pub(crate) fn entry(self) -> NonNull<u8> {
        let raw = self.0.as_ptr().map_addr(|address| address & !7);
        // SAFETY: `new` was given a non-null 8-aligned pointer, so clearing the low 3 bits leaves it non-null.
        unsafe { NonNull::new_unchecked(raw) }
    }
    /// The mark.
    #[inline]
    pub(crate) fn marked(self) -> bool {
        self.0.as_ptr() as usize & 1 != 0
    }
}

/// A cache line of tags and pointers. Written under the owner's lock only, with relaxed stores, so that a prefetcher
/// without the lock may read it: it sees some mix of old and new words and acts on neither.
#[repr(C, align(64))]
pub(crate) struct Bucket {
    meta: AtomicU64,
    slots: [AtomicPtr<u8>; SLOTS],
}
const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    /// The tags and the passed count in one word.
    #[inline]
    pub(crate) fn meta(&self) -> u64 {
        self.meta.load(Relaxed)
    }
    /// The pointer of a slot, or nothing when the slot is empty.
    #[inline]
    pub(crate) fn slot(&self, slot: usize) -> Option<Tagged> {
        NonNull::new(self.slots[slot].load(Relaxed)).map(Tagged)
    }
    #[inline]
    pub(crate) fn put(&self, slot: usize, entry: Tagged) {
        self.slots[slot].store(entry.0.as_ptr(), Relaxed);
    }
    fn fill(&self, slot: usize, tag: u8, entry: Tagged) {
        self.put(slot, entry);
        self.meta.store(self.meta() | u64::from(tag) << (slot * 8), Relaxed);
    }
    fn clear(&self, slot: usize) {
        self.slots[slot].store(std::ptr::null_mut(), Relaxed);
        self.meta.store(self.meta() & !(0xff << (slot * 8)), Relaxed);
    }
    fn count_passed(&self, up: bool) {
        let meta = self.meta();
        let passed = meta >> PASSED_SHIFT;
        let changed = match (passed, up) {
            (PASSED_MAX, _) => PASSED_MAX,
            (count, true) => count + 1,
            (count, false) => count.saturating_sub(1),
        };
        self.meta.store(meta & TAGS | changed << PASSED_SHIFT, Relaxed);
    }
    /// The occupied slots.
    pub(crate) fn occupied(&self) -> impl Iterator<Item = (usize, Tagged)> + '_ {
        (0..SLOTS).filter_map(|slot| self.slot(slot).map(|entry| (slot, entry)))
    }
}

/// Whether a key that belongs in or before this bucket may stand in a later one.
#[inline]
pub(crate) const fn passed(meta: u64) -> bool {
    meta >> PASSED_SHIFT != 0
}

/// The slots whose tag is `tag`, as bit 7 of their byte. May also set the byte right above a true match (the borrow of
/// the subtraction); a comparison of keys follows in any case.
#[inline]
pub(crate) const fn matches(meta: u64, tag: u8) -> u64 {
    let different = (meta & TAGS) ^ (tag as u64 * LOW_BITS);
    different.wrapping_sub(LOW_BITS) & !different & HIGH_BITS
}

/// The slot of the lowest bit that [`matches`] set.
#[inline]
pub(crate) const fn slot_of(matched: u64) -> usize {
    (matched.trailing_zeros() / 8) as usize
}

/// Sizes go 1, 2, 3, then 4·2^k, 5·2^k, 6·2^k, 7·2^k: each at most 5/4 of the one before, and each a size class of
/// the allocators that keep four classes a doubling, so a table loses nothing to rounding.
#[inline]
pub(crate) const fn buckets_of_step(step: u8) -> u64 {
    if step < 3 { step as u64 + 1 } else { (4 + (step as u64 - 3) % 4) << ((step - 3) / 4) }
}

/// [`buckets_of_step`] of every step that fits into 32 bits, for the path of every lookup's prefetch.
static BUCKETS_OF: [u32; STEP_MAX as usize + 1] = {
    let mut buckets_of = [u32::MAX; STEP_MAX as usize + 1];
    let mut step = 0;
    while step <= STEP_MAX {
        let buckets = buckets_of_step(step);
        if buckets <= u32::MAX as u64 {
            buckets_of[step as usize] = buckets as u32;
        }
        step += 1;
    }
    buckets_of
};

/// The buckets of a step that an array has.
#[inline]
pub(crate) fn buckets_of(step: u8) -> u32 {
    BUCKETS_OF[step.min(STEP_MAX) as usize]
}

/// The smallest step with at least `buckets`.
pub(crate) fn step_for(buckets: u64) -> u8 {
    (0..=STEP_MAX).find(|&step| buckets_of_step(step) >= buckets).unwrap_or(STEP_MAX)
}

/// The bucket of a position in an array of `buckets`: hash order, so that any size will do.
#[inline]
pub(crate) const fn home(position: u32, buckets: u32) -> u32 {
    ((position as u64 * buckets as u64) >> 32) as u32
}

/// The first position of bucket `bucket`; 2^32 for the bucket after the last.
pub(crate) const fn first_position(bucket: u32, buckets: u32) -> u64 {
    ((bucket as u64) << 32).div_ceil(buckets as u64)
}

/// Where an entry's pointer stands in one array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bucket: u32,
    pub(crate) slot: u8,
}

/// Where an array's memory came from.
enum Source {
    Allocator,
    Runs(Arc<RunSource>),
    /// Pages of its own.
    Pages,
}

/// An owned array of buckets. Dropping it frees the memory, so an array that was published is dropped by the limbo
/// only.
pub(crate) struct Array {
    buckets: NonNull<Bucket>,
    step: u8,
    count: u32,
    source: Source,
    /// The earliest expiry in each group of buckets or something earlier; absent until the first key with an expiry.
    pub(crate) hints: Option<Box<[u64]>>,
}

// SAFETY: an Array owns its memory and gives out only `&Bucket`, whose fields are atomics.
unsafe impl Send for Array {}
// SAFETY: as above: shared access reaches nothing but atomics and the immutable size.
unsafe impl Sync for Array {}

impl Array {
    /// A zeroed array, in runs if there is a source and the size is for it. Clearing costs 10 µs for 128 KiB; from
    /// [`PAGES_BYTES_MIN`] on it is untouched pages, for an allocator would clear megabytes that it has used before.
    pub(crate) fn new(step: u8, source: Option<&Arc<RunSource>>) -> Self {
        let count = buckets_of(step);
        let layout = Self::layout(count);
        let source = source
            .filter(|_| !cfg!(weft_plain_memory) && (RUN_BYTES_MIN..=RUN_BYTES_MAX).contains(&layout.size()));
        if let Some(source) = source {
            let buckets = source.take(layout.size()).cast();
            return Self { buckets, step, count, source: Source::Runs(Arc::clone(source)), hints: None };
        }
        if layout.size() >= PAGES_BYTES_MIN && !cfg!(weft_plain_memory) {
            let Some(pages) = os::map_bytes(layout.size()) else { handle_alloc_error(layout) };
            return Self { buckets: pages.cast(), step, count, source: Source::Pages, hints: None };
        }
        // SAFETY: the layout has a size above 0; all-zero is a valid Bucket (empty tags, null pointers).
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(buckets) = NonNull::new(memory.cast()) else { handle_alloc_error(layout) };
        Self { buckets, step, count, source: Source::Allocator, hints: None }
    }
    /// A copy in memory of its own.
    pub(crate) fn duplicate(&self) -> Self {
        let mut copy = Self::new(self.step, None);
        for at in 0..self.count {
            let (from, to) = (self.bucket(at), copy.bucket(at));
            for (slot, entry) in from.occupied() {
                to.put(slot, entry);
            }
            to.meta.store(from.meta(), Relaxed);
        }
        copy.hints.clone_from(&self.hints);
        copy
    }
    fn layout(count: u32) -> Layout {
        Layout::from_size_align(count as usize * size_of::<Bucket>(), ARRAY_ALIGN)
            .expect("2^32 buckets of 64 bytes are below isize::MAX")
    }
    #[inline]
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }
    pub(crate) const fn step(&self) -> u8 {
        self.step
    }
    pub(crate) const fn pointer(&self) -> NonNull<Bucket> {
        self.buckets
    }
    /// Memory of the buckets, and of the hints whether they are there yet or not.
    #[inline]
    pub(crate) const fn bytes(&self) -> usize {
        self.count as usize * size_of::<Bucket>() + self.count.div_ceil(GROUP_BUCKETS) as usize * 8
    }
    #[inline]
    pub(crate) fn bucket(&self, index: u32) -> &Bucket {
        assert!(index < self.count);
        // SAFETY: the index is below the count that the memory was allocated for, and the memory lives as long as self.
        unsafe { self.buckets.add(index as usize).as_ref() }
    }
    #[inline]
    pub(crate) const fn after(&self, bucket: u32) -> u32 {
        if bucket + 1 == self.count { 0 } else { bucket + 1 }
    }

    /// Finds the entry with this position and tag for which `equal` holds.
    #[inline]
    pub(crate) fn find(
        &self,
        position: u32,
        tag: u8,
        mut equal: impl FnMut(Tagged) -> bool,
    ) -> Option<Place> {
        let mut at = home(position, self.count);
        for _ in 0..self.count {
            let bucket = self.bucket(at);
            let meta = bucket.meta();
            let mut matched = matches(meta, tag);
            while matched != 0 {
                let slot = slot_of(matched);
                if let Some(entry) = bucket.slot(slot)
                    && equal(entry)
                {
                    return Some(Place { bucket: at, slot: slot as u8 });
                }
                matched &= matched - 1;
            }
            if !passed(meta) {
                return None;
            }
            at = self.after(at);
        }
        None
    }

    /// Puts an entry into the first free slot from its home on. `None` when every slot is taken.
    pub(crate) fn place(&self, position: u32, tag: u8, entry: Tagged) -> Option<Place> {
        let first = home(position, self.count);
        let mut at = first;
        for _ in 0..self.count {
            let bucket = self.bucket(at);
            let free = matches(bucket.meta(), 0);
            if free != 0 {
                // The lowest match is always a true one: a borrow only runs upwards.
                let slot = slot_of(free);
                bucket.fill(slot, tag, entry);
                self.count_passed(first, at, true);
                return Some(Place { bucket: at, slot: slot as u8 });
            }
            at = self.after(at);
        }
        None
    }

    /// Takes the entry at `place` out; `position` is that of its hash.
    pub(crate) fn take(&self, place: Place, position: u32) {
        self.bucket(place.bucket).clear(place.slot as usize);
        self.count_passed(home(position, self.count), place.bucket, false);
    }

    /// Empties a slot of an array that is being thrown away, without counting.
    pub(super) fn forget(&self, bucket: u32, slot: usize) {
        self.bucket(bucket).clear(slot);
    }

    /// Bucket `end` has been reached by who empties the array from the front: gives the memory of the last
    /// [`PIECE_BUCKETS`] back if they are behind it, since all of a large array at once would take the kernel
    /// milliseconds. `counted`: others may still stand behind, or have passed it, so it must be seen to be empty.
    pub(super) fn give_back(&self, end: u32, counted: bool) {
        if !matches!(self.source, Source::Pages) || end == 0 || !end.is_multiple_of(PIECE_BUCKETS) {
            return;
        }
        let start = end - PIECE_BUCKETS;
        if counted && (start..end).any(|bucket| self.bucket(bucket).meta() != 0) {
            return;
        }
        let (offset, bytes) =
            (start as usize * size_of::<Bucket>(), PIECE_BUCKETS as usize * size_of::<Bucket>());
        // SAFETY: the range is whole pages of the mapping (a piece is 256 KiB). Its buckets hold nothing and count
        // nothing, or nobody will look at them again; as zeros they are empty buckets, which is what they are.
        unsafe { os::discard_bytes(self.buckets.cast(), offset, bytes) }
    }

    fn count_passed(&self, first: u32, end: u32, up: bool) {
        let mut at = first;
        while at != end {
            self.bucket(at).count_passed(up);
            at = self.after(at);
        }
    }

    /// Lowers the hint of the group that `bucket` is in.
    pub(crate) fn note_expiry(&mut self, bucket: u32, expire_ms: u64) {
        let groups = self.count.div_ceil(GROUP_BUCKETS) as usize;
        let hints = self.hints.get_or_insert_with(|| vec![u64::MAX; groups].into_boxed_slice());
        let hint = &mut hints[(bucket / GROUP_BUCKETS) as usize];
        *hint = (*hint).min(expire_ms);
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        let layout = Self::layout(self.count);
        match &self.source {
            // SAFETY: the memory came from this source with this size; Buckets need no drop.
            Source::Runs(source) => unsafe { source.give(self.buckets.cast(), layout.size()) },
            // SAFETY: the memory came from `map_bytes` with this size; Buckets need no drop.
            Source::Pages => unsafe { os::unmap_bytes(self.buckets.cast(), layout.size()) },
            // SAFETY: the memory came from `alloc_zeroed` with this layout; Buckets need no drop.
            Source::Allocator => unsafe { dealloc(self.buckets.as_ptr().cast(), layout) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_by_a_quarter_at_most() {
        for step in 6..STEP_MAX {
            let (now, next) = (buckets_of_step(step), buckets_of_step(step + 1));
            assert!(next > now && next * 4 <= now * 5, "{now} {next}");
        }
        assert_eq!((0..9).map(buckets_of_step).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 10]);
        assert_eq!(buckets_of_step(step_for(11)), 12);
    }

    #[test]
    fn match_finds_every_slot_with_the_tag() {
        let meta = 0x03_05_01_00_05_05_ff_05;
        let mut matched = matches(meta, 5);
        let mut slots = vec![];
        while matched != 0 {
            slots.push(slot_of(matched));
            matched &= matched - 1;
        }
        for slot in [0, 2, 3, 6] {
            assert!(slots.contains(&slot), "{slots:?}");
        }
        assert_eq!(slot_of(matches(meta, 0)), 4);
    }

    #[test]
    fn homes_and_first_positions_agree() {
        for count in [1_u32, 3, 7, 160, 1792] {
            for bucket in 0..count {
                let first = first_position(bucket, count);
                assert_eq!(home(first as u32, count), bucket);
                if bucket > 0 {
                    assert_eq!(home((first - 1) as u32, count), bucket - 1);
                }
            }
            assert_eq!(first_position(count, count), 1 << 32);
        }
    }
}
