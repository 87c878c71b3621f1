//! Owns: what of a shard's tables can be seen without its lock: the published arrays, and the prefetches that read
//! them. Does not own: the epochs that keep a published array alive while someone is pinned (`crate::epoch`).
//!
//! A published word is the array's address with its size step in the 7 low bits, so one load gives a pointer and a
//! length that belong together. The array is only ever read as atomics, and entry pointers found in it are prefetched,
//! never followed.

use super::array::{Array, Bucket, STEP_MAX, Tagged, buckets_of, home, matches, passed, slot_of};
use crate::entry::sight::{Passed, Sight, Sights};
use crate::epoch::{Domain, Pin};
use crate::hash::{position_of, tag_of};
use crate::prefetch;
use crate::slab::runs::RunSource;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Buckets behind the key's own in which a prefetch looks for it: with one, as before, 6 % of the look-ups still had to
/// search, each of them two waits for memory in a large keyspace.
const PASSED_BUCKETS_MAX: u32 = 4;
/// What [`Directory::filling`] is when keys come in as they do.
pub(crate) const NOT_FILLING: usize = usize::MAX;
/// A table becomes as large as is expected when it has more than one in so many of the entries.
const EXPECTED_FROM: usize = 32;
const STEP_BITS: usize = 0x7f;
const _: () = assert!(STEP_MAX as usize <= STEP_BITS && super::array::ARRAY_ALIGN == STEP_BITS + 1);

/// The arrays of one table as an unlocked reader sees them.
#[derive(Default)]
pub(crate) struct Head {
    main: AtomicPtr<Bucket>,
    next: AtomicPtr<Bucket>,
    /// Buckets of `main` whose keys are already in `next`. A stale value costs a useless prefetch.
    migrated: AtomicU32,
}

/// Where a table publishes its arrays and gives up old ones.
///
/// A table must be used with one and the same home all its life: an array that was published in one place and retired
/// in another could be freed under a reader.
pub(crate) trait Home {
    /// Asks for what a slot stands for, before its bucket moves. A slot holds an address, or a name that the home
    /// knows.
    #[inline]
    fn ask_for(&self, entry: Tagged) {
        prefetch::line(entry.entry().as_ptr());
    }
    /// Makes these the arrays that prefetchers see.
    fn publish(&self, main: Option<&Array>, next: Option<&Array>);
    /// Tells prefetchers how far a resize is.
    fn advance(&self, migrated: u32);
    /// Takes an array that is no longer published.
    fn retire(&self, array: Array);
    /// A new array.
    fn array(&self, step: u8) -> Array {
        Array::new(step, None)
    }
    /// How many entries a table of so many is to have room for when it grows; nothing for one step more.
    fn ahead(&self, _len: usize) -> Option<usize> {
        None
    }
}

/// For tables that nobody prefetches without the lock, such as a large hash's.
pub(crate) struct Private;

impl Home for Private {
    fn publish(&self, _: Option<&Array>, _: Option<&Array>) {}
    fn advance(&self, _: u32) {}
    fn retire(&self, _: Array) {}
}

/// All heads of a keyspace together with the epochs under which their arrays are retired.
pub(crate) struct Directory {
    heads: Box<[Head]>,
    pub(crate) domain: Domain<Array>,
    pub(crate) runs: Arc<RunSource>,
    /// While many keys come in: how many are expected in each table, or 0 where nobody knows.
    pub(crate) filling: AtomicUsize,
}

/// One head of a directory: the home of a keyspace's table.
pub(crate) struct Published<'d> {
    pub(crate) directory: &'d Directory,
    pub(crate) index: usize,
}

fn encode(array: Option<&Array>) -> *mut Bucket {
    array.map_or(std::ptr::null_mut(), |array| {
        array.pointer().as_ptr().map_addr(|address| address | array.step() as usize)
    })
}

impl Home for Published<'_> {
    fn publish(&self, main: Option<&Array>, next: Option<&Array>) {
        let head = &self.directory.heads[self.index];
        head.migrated.store(0, Ordering::Relaxed);
        // Release: a reader that sees the pointer also sees the array zeroed.
        head.next.store(encode(next), Ordering::Release);
        head.main.store(encode(main), Ordering::Release);
    }
    fn advance(&self, migrated: u32) {
        self.directory.heads[self.index].migrated.store(migrated, Ordering::Relaxed);
    }
    fn retire(&self, array: Array) {
        self.directory.domain.retire(array);
    }
    fn array(&self, step: u8) -> Array {
        Array::new(step, Some(&self.directory.runs))
    }
    fn ahead(&self, len: usize) -> Option<usize> {
        match self.directory.filling.load(Ordering::Relaxed) {
            NOT_FILLING => None,
            // A table that stays small is none of those that were expected.
            expected if len <= expected && len > expected / EXPECTED_FROM => Some(expected),
            expected if len > expected && expected > 0 => None,
            _ => Some(2 * len),
        }
    }
}

impl Directory {
    /// `heads` empty heads, and epochs for `workers`.
    pub(crate) fn new(heads: usize, workers: usize) -> Self {
        Self {
            heads: (0..heads).map(|_| Head::default()).collect(),
            domain: Domain::new(workers),
            runs: Arc::new(RunSource::new()),
            filling: AtomicUsize::new(NOT_FILLING),
        }
    }

    /// The bucket in which the search for `hash` starts, and how many more may be looked at. A pointer and no
    /// reference, since it leads to those too.
    #[inline]
    fn first_bucket(&self, _pin: &Pin<'_, Array>, index: usize, hash: u64) -> Option<(*const Bucket, u8)> {
        let head = &self.heads[index];
        let position = position_of(hash);
        let mut word = head.main.load(Ordering::Acquire);
        if word.is_null() {
            return None;
        }
        let mut count = count_of(word);
        let next = head.next.load(Ordering::Acquire);
        if !next.is_null() && home(position, count) < head.migrated.load(Ordering::Relaxed) {
            word = next;
            count = count_of(word);
        }
        let at = home(position, count);
        let base = word.map_addr(|address| address & !STEP_BITS);
        // SAFETY: `base` and `count` come from one published word, so `at` is in bounds. The array was published in
        // this directory, hence is retired to this directory's domain only, which frees it after every pin that could
        // have seen it is gone; the caller holds such a pin.
        let first = unsafe { base.add(at as usize) };
        Some((first.cast_const(), (count - 1 - at).min(PASSED_BUCKETS_MAX) as u8))
    }

    /// Stage one: asks for the bucket of `hash`, and remembers it as the next sight.
    #[inline]
    pub(crate) fn prefetch_bucket(
        &self,
        pin: &Pin<'_, Array>,
        sights: &mut Sights,
        (shard, index, hash): (u32, usize, u64),
    ) {
        if cfg!(debug_assertions) {
            self.domain.assert_own(pin);
        }
        let bucket = self.first_bucket(pin, index, hash);
        if let Some((bucket, _)) = bucket {
            prefetch::line(bucket.cast());
        }
        sights.push(shard, bucket);
    }
}

/// Stage two: reads the buckets that were asked for under this pin, from number `from` on, and asks for the entries
/// whose tag fits, or for those of the next bucket if none does and keys have passed this one; the first that fits is
/// remembered. An entry of up to 56 bytes may lie across two lines, so two are asked for; of a larger one all if it is
/// wanted whole, 18 of them.
#[inline(always)]
pub(crate) fn prefetch_entries(
    _pin: &Pin<'_, Array>,
    sights: &mut Sights,
    from: usize,
    keys: impl IntoIterator<Item = (u64, bool)>,
) {
    let (sights, passed) = sights.all();
    for ((at, sight), (hash, whole)) in sights.iter_mut().enumerate().skip(from).zip(keys) {
        // SAFETY: sights are forgotten when a batch begins, so all are of the pin of this one, which is borrowed.
        if unsafe { look(sight, hash, whole) } {
            passed.push(Passed { at, hash, whole });
        }
    }
}

/// Looks at the bucket of a sight. Whether the key has gone on, and is for stage three.
///
/// # Safety
/// The sight is of a pin that is still there.
#[inline(always)]
unsafe fn look(sight: &mut Sight, hash: u64, whole: bool) -> bool {
    // SAFETY: by the contract; the bucket is used in here only.
    let Some(bucket) = (unsafe { sight.bucket() }) else { return false };
    let meta = bucket.meta();
    let mut matched = matches(meta, tag_of(hash));
    if matched == 0 {
        // SAFETY: as above.
        return passed(meta) && unsafe { pass_on(sight) };
    }
    let slot = slot_of(matched);
    if let Some(entry) = bucket.slot(slot) {
        prefetch_lines(entry, whole);
        sight.found(slot, entry);
    }
    matched &= matched - 1;
    while matched != 0 {
        bucket.slot(slot_of(matched)).into_iter().for_each(|entry| prefetch_lines(entry, whole));
        matched &= matched - 1;
    }
    false
}

/// Asks for the bucket behind, which stage three looks at, if there is one.
///
/// # Safety
/// As for [`look`].
#[cold]
#[inline(never)]
unsafe fn pass_on(sight: &mut Sight) -> bool {
    // SAFETY: by the contract; the bucket is not looked at.
    let next = unsafe { sight.go_on() };
    next.inspect(|next| prefetch::line(std::ptr::from_ref(*next).cast())).is_some()
}

/// Stage three: the same for keys that have passed their buckets. They are mostly in the next, which stage two has
/// asked for, or soon behind.
#[inline]
pub(crate) fn prefetch_passed(_pin: &Pin<'_, Array>, sights: &mut Sights) {
    let (sights, passed) = sights.all();
    for Passed { at, hash, whole } in passed.drain(..) {
        // SAFETY: as in `prefetch_entries`.
        unsafe { look_behind(&mut sights[at], hash, whole) };
    }
}

/// Looks at the bucket that a sight has gone on to, and at those behind.
///
/// # Safety
/// As for [`look`].
unsafe fn look_behind(sight: &mut Sight, hash: u64, whole: bool) {
    // SAFETY: by the contract; the bucket is used in here only.
    let mut next = unsafe { sight.bucket() };
    while let Some(bucket) = next {
        let meta = bucket.meta();
        let matched = matches(meta, tag_of(hash));
        if matched != 0 {
            let slot = slot_of(matched);
            if let Some(entry) = bucket.slot(slot) {
                prefetch_lines(entry, whole);
                sight.found(slot, entry);
            }
            return;
        }
        if !passed(meta) {
            return;
        }
        // SAFETY: as above.
        next = unsafe { sight.go_on() };
    }
}

#[inline]
fn prefetch_lines(entry: Tagged, whole: bool) {
    let address = entry.entry().as_ptr();
    prefetch::line(address);
    prefetch::line(address.wrapping_add(48));
    if whole {
        (0..entry.more_lines()).for_each(|line| prefetch::line(address.wrapping_add(112 + 64 * line)));
    }
}

#[inline]
fn count_of(word: *mut Bucket) -> u32 {
    buckets_of((word as usize & STEP_BITS) as u8)
}
