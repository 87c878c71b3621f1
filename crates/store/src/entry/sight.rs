//! Owns: what a batch has seen of its requests' entries while it prefetched them, so that a read need not search again.
//! Does not own: prefetching itself (`crate::table::head`), what a read answers.
//!
//! **Why it is sound.** A sight remembers a slot of a published array and the pointer that stood there. The array stays
//! allocated for as long as the batch is pinned. Whoever frees an entry has taken its pointer out of its slot before
//! (the invariant of `super::heap`; moving buckets and draining tables clear slots as well), so with the shard held, a
//! slot in which the same pointer still stands is a live entry of the shard. It may be another key's by now: keys are
//! compared.

use super::heap::Key;
use super::{Draft, Entry, INLINE_BYTES_MAX, Spare, rewrite_inline};
use crate::epoch::Closed;
use crate::guarded::Guard;
use crate::hash::tag_of;
use crate::keyspace::Guards;
use crate::prefetch;
use crate::shard::ShardData;
use crate::table::array::{Array, Bucket, Tagged, matches, slot_of};
use crate::value::{NewValue, Object, ValueRef};
use std::ptr::NonNull;

/// What was seen of one key.
pub(crate) struct Sight {
    bucket: *const Bucket,
    /// The shard that the array belongs to.
    shard: u32,
    /// Buckets of the array that lie behind it and may be looked at.
    left: u8,
    /// What stood in `slot`; nothing where no tag fitted.
    entry: Option<Tagged>,
    slot: u8,
}

/// What a batch has seen, in the order in which it asked for buckets. Kept by the worker for its memory; the next batch
/// begins by forgetting it.
#[derive(Default)]
pub(crate) struct Sights {
    list: Vec<Sight>,
    /// Sights that have gone on to the next bucket, which has been asked for and not looked at.
    passed: Vec<Passed>,
    /// Objects that have been asked for and not looked at.
    objects: Vec<*const Object>,
}

/// A key that has passed the bucket in which it belongs.
#[derive(Clone, Copy)]
pub(crate) struct Passed {
    pub(crate) at: usize,
    pub(crate) hash: u64,
    /// See [`crate::Batch::prefetch_entries`].
    pub(crate) whole: bool,
}

// SAFETY: the pointers are used in the batch alone that made them, and by the one thread that it is bound to.
unsafe impl Send for Sights {}

impl Sight {
    /// The bucket that was asked for.
    ///
    /// # Safety
    /// The bucket was given under a pin that is still there, and `'p` ends before it does.
    #[inline]
    pub(crate) unsafe fn bucket<'p>(&self) -> Option<&'p Bucket> {
        // SAFETY: it points into a published array, and by the contract that is still allocated.
        unsafe { self.bucket.as_ref() }
    }
    /// Goes on to the bucket behind, if there is one.
    ///
    /// # Safety
    /// As for [`Sight::bucket`].
    pub(crate) unsafe fn go_on<'p>(&mut self) -> Option<&'p Bucket> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: the array has a bucket behind this one.
        self.bucket = unsafe { self.bucket.add(1) };
        // SAFETY: by the contract the array is still allocated.
        unsafe { self.bucket.as_ref() }
    }
    /// Remembers the entry that stood in a slot of the bucket.
    #[inline]
    pub(crate) fn found(&mut self, slot: usize, entry: Tagged) {
        (self.slot, self.entry) = (slot as u8, Some(entry));
    }
}

impl Sights {
    /// Forgets everything: another batch begins.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.passed.clear();
        self.objects.clear();
    }
    /// Remembers the bucket in which the search for the next key starts, or that there is none. The pointer may be used
    /// for as many behind it.
    #[inline]
    pub(crate) fn push(&mut self, shard: u32, bucket: Option<(*const Bucket, u8)>) {
        let (bucket, left) = bucket.unwrap_or((std::ptr::null(), 0));
        self.list.push(Sight { bucket, shard, left, entry: None, slot: 0 });
    }
    /// All of them, in order, and those that have gone on and are to be looked at again when their buckets have come.
    #[inline]
    pub(crate) fn all(&mut self) -> (&mut [Sight], &mut Vec<Passed>) {
        (&mut self.list, &mut self.passed)
    }
    /// Asks for the objects of the entries that were seen, and when these have come for what they lead to. `_alone`: in
    /// the batch that has asked for the entries, before anything runs in it.
    pub(crate) fn prefetch_objects(&mut self, _alone: &Closed<'_, Array>) {
        debug_assert!(self.objects.is_empty(), "objects of an earlier batch may be freed");
        for (at, sight) in self.list.iter().enumerate() {
            let Some(entry) = self.there(at, sight.shard) else { continue };
            // SAFETY: the slot still refers to it and nobody else is in the keyspace, so it is live (module comment).
            if let Some(object) = unsafe { Entry::new(entry.entry()) }.object() {
                prefetch::value(object);
                self.objects.push(object);
            }
        }
        for object in self.objects.drain(..) {
            // SAFETY: the list was empty before, so it is of a live entry, as above, and nothing has run since.
            unsafe { &*object }.prefetch();
        }
    }
    /// Whether there is anything to read or to write over: asked before a lock is taken for it.
    #[inline]
    pub(crate) fn has(&self, at: usize) -> bool {
        self.list.get(at).is_some_and(|sight| sight.entry.is_some())
    }

    /// Reads the value of sight number `at`, if its entry is still there, has not expired and is the key's; notes the
    /// access unless `read` says that it wants another way. `sole` is for `shard`, in the keyspace and the batch that
    /// the sight is of.
    #[inline]
    pub(crate) fn read(
        &self,
        (at, key): (usize, &Key<'_>),
        (shard, _sole): (u32, &impl Sole),
        (clock, now_ms): (u32, u64),
        read: impl FnOnce(&ValueRef<'_>) -> bool,
    ) -> bool {
        let Some(entry) = self.visible(at, shard, now_ms) else { return false };
        // SAFETY: it is live, and stays so until the end of this function: `read` has the value only, and cannot reach
        // the batch, which is borrowed.
        let entry = unsafe { Entry::new(entry) };
        let Some(value) = entry.value_of(key.bytes()) else {
            return self.read_other((at, shard), key, clock, read);
        };
        let is_read = read(&value);
        if is_read {
            entry.set_clock(clock);
        }
        is_read
    }

    /// The string of sight number `at`, if its entry is still there, has not expired, is the key's and the string is
    /// shorter than `short_max`; notes the access. `sole` as for [`Sights::read`].
    #[inline(always)]
    pub(crate) fn short<'s>(
        &'s self,
        (at, key): (usize, &Key<'_>),
        (shard, _sole): (u32, &'s impl Sole),
        (clock, now_ms): (u32, u64),
        short_max: usize,
    ) -> Option<&'s [u8]> {
        // SAFETY: it is live, and stays so for `'s`: the batch and the shard are borrowed as long.
        let entry = unsafe { Entry::new(self.visible(at, shard, now_ms)?) };
        match entry.value_of(key.bytes())? {
            ValueRef::Bytes(text) if text.len() < short_max => {
                entry.set_clock(clock);
                Some(text)
            }
            _ => None,
        }
    }

    /// [`Sights::read`] for an entry whose tag is also another's that stands before it.
    #[cold]
    #[inline(never)]
    fn read_other(
        &self,
        sight: (usize, u32),
        key: &Key<'_>,
        clock: u32,
        read: impl FnOnce(&ValueRef<'_>) -> bool,
    ) -> bool {
        let Some(other) = self.other(sight, key) else { return false };
        // SAFETY: as in `read`.
        let entry = unsafe { Entry::new(other) };
        let is_read = read(&entry.value());
        if is_read {
            entry.set_clock(clock);
        }
        is_read
    }

    /// The key's entry in the bucket of sight number `at`, if its tag is also another's that stands before it, and it
    /// has no expiry. Only with `shard` held.
    #[cold]
    #[inline(never)]
    fn other(&self, (at, shard): (usize, u32), key: &Key<'_>) -> Option<NonNull<u8>> {
        let sight = self.list.get(at).filter(|sight| sight.shard == shard)?;
        // SAFETY: the batch is pinned, so the array is allocated (module comment).
        let bucket = unsafe { sight.bucket.as_ref()? };
        let mut matched = matches(bucket.meta(), tag_of(key.hash()));
        while matched != 0 {
            if let Some(entry) = bucket.slot(slot_of(matched)).filter(|entry| !entry.marked()) {
                // SAFETY: a slot refers to it and the shard is held, so it is live (module comment).
                let found = unsafe { Entry::new(entry.entry()) };
                if found.is_of(key.bytes()) {
                    return Some(entry.entry());
                }
            }
            matched &= matched - 1;
        }
        None
    }

    /// The entry of sight number `at`, if it is of `shard` and is still there. It is live when that shard is held.
    #[inline]
    fn there(&self, at: usize, shard: u32) -> Option<Tagged> {
        let sight = self.list.get(at).filter(|sight| sight.shard == shard)?;
        let entry = sight.entry?;
        // SAFETY: the batch is pinned, so the array is allocated (module comment).
        let bucket = unsafe { sight.bucket.as_ref()? };
        (bucket.slot(usize::from(sight.slot)) == Some(entry)).then_some(entry)
    }
    /// The same, if it has not expired. Only with that shard held.
    #[inline]
    fn visible(&self, at: usize, shard: u32, now_ms: u64) -> Option<NonNull<u8>> {
        let found = self.there(at, shard)?;
        // SAFETY: a slot refers to it and the shard is held, so it is live (module comment).
        let expires_ms = || unsafe { Entry::new(found.entry()) }.expire_ms();
        (!found.marked() || expires_ms() > now_ms).then(|| found.entry())
    }

    /// Writes another short string over the one of sight number `at`, if its entry is still there, has not expired, is
    /// the key's and has room; notes the access. `sole` is for `shard`, in the keyspace and the batch that the sight is
    /// of; whoever has it counts an expiry that is gone.
    #[inline(always)]
    pub(crate) fn rewrite(
        &self,
        (at, key): (usize, &Key<'_>),
        (shard, sole): (u32, &mut Guard<'_, ShardData>),
        (clock, now_ms): (u32, u64),
        text: &[u8],
    ) -> Rewrote {
        let Some(found) = self.there(at, shard) else { return Rewrote::Nothing };
        if found.marked() {
            return self.rewrite_expiring((at, key), found, (clock, sole.time(now_ms)), text);
        }
        let mut entry = found.entry();
        // SAFETY: the slot still refers to it and the shard is held, so it is live (module comment).
        if !unsafe { Entry::new(entry) }.is_of(key.bytes()) {
            let Some(other) = self.other((at, shard), key) else { return Rewrote::Nothing };
            entry = other;
        }
        // SAFETY: it is live, and the shard is held and borrowed alone, so nobody else refers to it; `text` is from
        // outside, since the store lends nothing while the batch is borrowed.
        if unsafe { rewrite_inline(entry, text, clock) } { Rewrote::Text } else { Rewrote::Nothing }
    }

    /// [`Sights::rewrite`] for an entry with an expiry, `found` in the slot of sight number `at`.
    #[inline(never)]
    fn rewrite_expiring(
        &self,
        (at, key): (usize, &Key<'_>),
        found: Tagged,
        (clock, now_ms): (u32, u64),
        text: &[u8],
    ) -> Rewrote {
        let sight = &self.list[at];
        // SAFETY: the batch is pinned, so the array is allocated (module comment).
        let Some(bucket) = (unsafe { sight.bucket.as_ref() }) else { return Rewrote::Nothing };
        // SAFETY: the slot still refers to it and the shard is held, so it is live (module comment).
        let entry = unsafe { Entry::new(found.entry()) };
        let value = NewValue::Bytes(text);
        let (expire_ms, spare) = (u64::MAX, Spare::Keep);
        let mut draft = Draft { key: key.bytes(), value, expire_ms, clock, raw: false, spare, packed: None };
        if !entry.is_text()
            || text.len() > INLINE_BYTES_MAX
            || entry.expire_ms() <= now_ms
            || !entry.is_of(key.bytes())
            || !draft.fits(entry)
        {
            return Rewrote::Nothing;
        }
        // SAFETY: the entry's memory has the class that the draft takes; the shard is held and borrowed alone, so
        // nobody else refers to it; key and text are from outside. A short string owns nothing.
        unsafe { draft.write(found.entry()) };
        bucket.put(usize::from(sight.slot), Tagged::new(found.entry(), false).with_size_of(found));
        Rewrote::TextAndExpiry
    }
}

/// What writing by a sight has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rewrote {
    /// Nothing: it must be done another way.
    Nothing,
    /// The string is another one.
    Text,
    /// The same, and its expiry is gone.
    TextAndExpiry,
}

/// Proofs that somebody has a shard to himself for as long as they live.
pub(crate) trait Sole {}

/// He has the keyspace.
impl Sole for Closed<'_, Array> {}
/// He has its lock.
impl Sole for Guard<'_, ShardData> {}
/// He has it with others.
impl Sole for Guards<'_> {}
