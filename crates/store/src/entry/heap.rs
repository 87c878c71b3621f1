//! Owns: one shard's entries: the tables that refer to them and the slab they live in, bound together so that
//! everything above is safe code. Does not own: expiry as a rule, access clocks, effects, locks.
//!
//! **Invariant.** Every pointer in `tables` is a live entry of this heap (a slot of `slab` or a large allocation), each
//! entry is in exactly one table, and nothing else points to it. So a slot may move when its one pointer is changed,
//! and an entry borrowed from `&self` stays where it is for that borrow.
//!
//! A heap is used with one [`Env`] all its life: its arrays are published there and its slots came from there.

mod walk;

pub(crate) use walk::SetAside;

use super::{
    Draft, Entry, Garbage, Spare, ValueMut, rewrite_inline, set_expire_ms, set_inline_len, take_owned,
    value_mut,
};
use crate::entry::INLINE_BYTES_MAX;
use crate::hash::KeyHasher;
use crate::slab::Slab;
use crate::slab::pages::PageSource;
use crate::slab::span::SLOT_BYTES_MIN;
use crate::slab::span::class_of;
use crate::table::array::Tagged;
use crate::table::head::{Directory, Private, Published};
use crate::table::{Drain, Facts, Pos, Table};
use crate::value::{Digits, NewValue, SharedBytes, ValueRef};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Larger entries come from the global allocator. With `--cfg weft_plain_memory` all do, so that AddressSanitizer sees
/// each.
const SLOT_BYTES_MAX: usize = if cfg!(weft_plain_memory) { 0 } else { crate::slab::span::SLOT_BYTES_MAX };

/// A key with its hash, made by [`crate::Keyspace::key`].
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    pub(crate) hash: u64,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Key<'a> {
    /// The bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// The hash, for prefetching.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }
}

/// What a heap needs from its keyspace.
#[derive(Clone, Copy)]
pub(crate) struct Env<'k> {
    pub(crate) directory: &'k Directory,
    pub(crate) pages: &'k PageSource,
    pub(crate) hasher: &'k KeyHasher,
    /// The head of database 0 of this shard; that of the next database is `heads_stride` on.
    pub(crate) first_head: usize,
    pub(crate) heads_stride: usize,
}

impl<'k> Env<'k> {
    const fn home(self, db: usize) -> Published<'k> {
        Published { directory: self.directory, index: self.first_head + db * self.heads_stride }
    }
}

/// An entry's identity, to be compared only. It says nothing about whether the entry is still there.
#[derive(Clone, Copy)]
pub(crate) struct Pointer(Tagged);

/// An entry found in a table; good until the heap's next change.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) pos: Pos,
    tagged: Tagged,
}

impl Found {
    /// Whether the entry has an expiry.
    #[inline]
    pub(crate) fn expires(self) -> bool {
        self.tagged.marked()
    }
}

pub(crate) struct Heap {
    tables: Box<[Table]>,
    slab: Slab,
    /// Entries too large for the slab.
    large_bytes: usize,
    /// Shared strings and objects.
    owned_bytes: usize,
    table_bytes: usize,
    /// Tables thrown away and not yet emptied.
    drains: Vec<Drain>,
}

/// What the table must know of an entry. Used with this module's tables only, whose pointers are live entries.
#[inline]
fn facts(hasher: &KeyHasher) -> impl Fn(Tagged) -> Facts + '_ {
    move |tagged| {
        // SAFETY: the table calls this with pointers it holds, which are live entries (invariant).
        let entry = unsafe { Entry::new(tagged.entry()) };
        (hasher.hash(entry.key()), entry.expire_ms())
    }
}

/// What the table holds of an entry. What takes the same class of memory has the same size in it.
#[inline]
fn tagged(entry: NonNull<u8>, expires: bool, bytes: usize) -> Tagged {
    Tagged::new(entry, expires).with_bytes(class_of(bytes) * 8)
}

/// Whether two keys are equal: most are 8 to 32 bytes long, and two overlapping words then do without a call.
#[inline]
pub(super) fn same(one: &[u8], two: &[u8]) -> bool {
    if one.len() != two.len() {
        return false;
    }
    if one.len() <= 16
        && let (Some(head), Some(tail)) = (one.first_chunk::<8>(), one.last_chunk::<8>())
        && let (Some(other_head), Some(other_tail)) = (two.first_chunk::<8>(), two.last_chunk::<8>())
    {
        return u64::from_ne_bytes(*head) == u64::from_ne_bytes(*other_head)
            && u64::from_ne_bytes(*tail) == u64::from_ne_bytes(*other_tail);
    }
    if one.len() <= 32
        && let (Some(head), Some(tail)) = (one.first_chunk::<16>(), one.last_chunk::<16>())
        && let (Some(other_head), Some(other_tail)) = (two.first_chunk::<16>(), two.last_chunk::<16>())
    {
        return u128::from_ne_bytes(*head) == u128::from_ne_bytes(*other_head)
            && u128::from_ne_bytes(*tail) == u128::from_ne_bytes(*other_tail);
    }
    one == two
}

impl Heap {
    pub(crate) fn new(databases: usize, jitter: u8) -> Self {
        Self {
            tables: (0..databases).map(|_| Table::new(jitter)).collect(),
            slab: Slab::new(),
            large_bytes: 0,
            owned_bytes: 0,
            table_bytes: 0,
            drains: Vec::new(),
        }
    }

    /// Where the tables stand: for prefetching only. They stay there for the heap's life.
    pub(crate) fn tables_address(&self) -> usize {
        self.tables.as_ptr().addr()
    }
    /// What a table takes there.
    pub(crate) const TABLE_BYTES: usize = size_of::<Table>();

    /// Memory of entries, what they own, and tables: what `maxmemory` limits. Free slots of the slab are not in it,
    /// since deleting keys would then not bring it down.
    pub(crate) const fn used_bytes(&self) -> usize {
        self.slab.used_bytes() + self.large_bytes + self.owned_bytes + self.table_bytes
    }
    /// Memory of what entries own.
    pub(crate) const fn owned_bytes(&self) -> usize {
        self.owned_bytes
    }
    pub(crate) fn len(&self, db: usize) -> usize {
        self.tables[db].len()
    }

    /// Finds a key: one line of the table, one or two of the entry.
    #[inline]
    pub(crate) fn find(&self, db: usize, key: &Key<'_>) -> Option<Found> {
        let mut seen = None;
        let pos = self.tables[db].find(key.hash, |tagged| {
            // SAFETY: pointers in the table are live entries (invariant).
            let equal = unsafe { Entry::new(tagged.entry()) }.is_of(key.bytes);
            seen = Some(tagged);
            equal
        })?;
        Some(Found { pos, tagged: seen? })
    }

    /// The entry that was found.
    #[inline]
    pub(crate) fn entry(&self, db: usize, found: Found) -> Entry<'_> {
        debug_assert!(self.tables[db].at(found.pos) == found.tagged);
        // SAFETY: `found` is used before the next change (all changes take it by `&mut self` and give a new one), so
        // its pointer is still in the table, hence a live entry; it stays for the borrow of self.
        unsafe { Entry::new(found.tagged.entry()) }
    }

    fn alloc(&mut self, bytes: usize, env: Env<'_>) -> NonNull<u8> {
        if bytes <= SLOT_BYTES_MAX {
            return self.slab.alloc(bytes.max(SLOT_BYTES_MIN), env.pages);
        }
        let layout = large_layout(bytes);
        self.large_bytes += layout.size();
        // SAFETY: the layout's size is above 0.
        let memory = unsafe { alloc(layout) };
        NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// # Safety
    /// `at` was allocated by `alloc` with `bytes` (or others of the same class) and is in no table any more.
    unsafe fn free(&mut self, at: NonNull<u8>, bytes: usize, env: Env<'_>) {
        if bytes <= SLOT_BYTES_MAX {
            // SAFETY: by the contract it is a slot of this slab that is not used any more.
            unsafe { self.slab.free(at, env.pages) };
        } else {
            let layout = large_layout(bytes);
            self.large_bytes -= layout.size();
            // SAFETY: by the contract it came from `alloc` with this layout.
            unsafe { dealloc(at.as_ptr(), layout) };
        }
    }

    /// Takes an unreferenced entry apart and frees it.
    ///
    /// # Safety
    /// `at` is a live entry of this heap that is in no table any more.
    unsafe fn dispose(&mut self, at: NonNull<u8>, env: Env<'_>) -> Garbage {
        // SAFETY: by the contract nobody else has the entry.
        unsafe {
            let bytes = Entry::new(at).allocated_bytes();
            let garbage = take_owned(at);
            self.owned_bytes -= garbage.memory_bytes();
            self.free(at, bytes, env);
            garbage
        }
    }

    /// Adds an entry whose key is not there.
    pub(crate) fn insert(&mut self, env: Env<'_>, db: usize, hash: u64, draft: Draft<'_>) -> Found {
        let (bytes, expire_ms, expires) = (draft.bytes(), draft.expire_ms, draft.expires());
        let at = self.alloc(bytes, env);
        self.owned_bytes += owned_bytes(&draft.value);
        // SAFETY: the memory is fresh and large enough.
        unsafe { draft.write(at) };
        let tagged = tagged(at, expires, bytes);
        let before = self.tables[db].bytes();
        let pos = self.tables[db].insert((hash, expire_ms), tagged, &facts(env.hasher), &env.home(db));
        self.table_bytes = self.table_bytes + self.tables[db].bytes() - before;
        Found { pos, tagged }
    }

    /// Replaces a key's entry: in place if the new one takes the same class of memory, else in a new slot.
    #[inline]
    pub(crate) fn overwrite(
        &mut self,
        env: Env<'_>,
        db: usize,
        found: Found,
        mut draft: Draft<'_>,
    ) -> (Found, Garbage) {
        let old = self.tables[db].at(found.pos).entry();
        // SAFETY: a pointer in the table is a live entry; the borrow ends here.
        let fits = draft.fits(unsafe { Entry::new(old) });
        let (bytes, expire_ms, expires) = (draft.bytes(), draft.expire_ms, draft.expires());
        self.owned_bytes += owned_bytes(&draft.value);
        if fits {
            // SAFETY: `&mut self` keeps everyone else away; the draft's bytes are borrowed from outside this heap,
            // since `&mut self` excludes borrows of it; the memory has this class's size. What the old entry owned is
            // taken out before it is overwritten.
            let garbage = unsafe {
                let garbage = take_owned(old);
                draft.write(old);
                garbage
            };
            self.owned_bytes -= garbage.memory_bytes();
            let tagged = tagged(old, expires, bytes);
            if tagged != found.tagged || expires {
                self.tables[db].replace(found.pos, tagged, expire_ms);
            }
            return (Found { pos: found.pos, tagged }, garbage);
        }
        let at = self.alloc(bytes, env);
        // SAFETY: the memory is fresh and large enough.
        unsafe { draft.write(at) };
        let tagged = tagged(at, expires, bytes);
        self.tables[db].replace(found.pos, tagged, expire_ms);
        // SAFETY: the table now refers to the new entry, and nothing to the old one.
        let garbage = unsafe { self.dispose(old, env) };
        (Found { pos: found.pos, tagged }, garbage)
    }

    /// Replaces an inline string by another that fits into the same class of memory, everything else staying. Says
    /// whether it could: SET's most frequent case, without taking the entry apart.
    #[inline]
    pub(crate) fn rewrite_text(&mut self, found: Found, text: &[u8], clock: u32) -> bool {
        let at = found.tagged.entry();
        // SAFETY: a pointer in the table is a live entry, and `&mut self` keeps everyone else away; `text` is from
        // outside this heap for the same reason.
        unsafe { rewrite_inline(at, text, clock) }
    }

    /// Removes a key's entry.
    pub(crate) fn remove(&mut self, env: Env<'_>, db: usize, found: Found, hash: u64) -> Garbage {
        let before = self.tables[db].bytes();
        let tagged = self.tables[db].remove(found.pos, hash, &facts(env.hasher), &env.home(db));
        self.table_bytes = self.table_bytes + self.tables[db].bytes() - before;
        // SAFETY: the pointer has just been taken out of its table.
        unsafe { self.dispose(tagged.entry(), env) }
    }

    /// Brings the tables to the size that they need, after they have grown ahead.
    pub(crate) fn fit(&mut self, env: Env<'_>) {
        for db in 0..self.tables.len() {
            let before = self.tables[db].bytes();
            self.tables[db].fit(&facts(env.hasher), &env.home(db));
            self.table_bytes = self.table_bytes + self.tables[db].bytes() - before;
        }
    }

    /// An entry has lost its expiry in its place.
    pub(crate) const fn lost_expiry(&mut self, db: usize) {
        self.tables[db].unmarked();
    }

    /// Sets or (with `u64::MAX`) removes the expiry. An entry that gains or loses it is rewritten.
    pub(crate) fn set_expiry(&mut self, env: Env<'_>, db: usize, found: Found, expire_ms: u64) -> Found {
        let at = self.tables[db].at(found.pos).entry();
        if found.expires() && expire_ms != u64::MAX {
            // SAFETY: the entry has an expiry (its mark says so), and `&mut self` keeps everyone else away.
            unsafe { set_expire_ms(at, expire_ms) };
            self.tables[db].replace(found.pos, found.tagged, expire_ms);
            return found;
        }
        if found.expires() == (expire_ms != u64::MAX) {
            return found;
        }
        // The key is copied once, since the draft must not borrow what it replaces.
        let packed;
        let (key, text, number, clock, raw) = {
            let entry = self.entry(db, found);
            packed = entry.packed().map(|(kind, _)| kind);
            let (text, number) = match entry.value() {
                ValueRef::Bytes(bytes) => (Some(bytes.to_vec()), None),
                ValueRef::Int(value) => (None, Some(value)),
                _ => (entry.packed().map(|(_, bytes)| bytes.to_vec()), None),
            };
            (entry.key().to_vec(), text, number, entry.clock(), entry.raw())
        };
        let value = match (&text, number) {
            (Some(text), _) => NewValue::Bytes(text),
            (None, Some(number)) => NewValue::Int(number),
            (None, None) => self.lift(db, found),
        };
        let draft = Draft { key: &key, value, expire_ms, clock, raw, spare: Spare::Keep, packed };
        self.overwrite(env, db, found, draft).0
    }

    /// Takes the out-of-line value of an entry, leaving the integer 0.
    fn lift(&mut self, db: usize, found: Found) -> NewValue<'static> {
        let at = self.tables[db].at(found.pos).entry();
        // SAFETY: `&mut self` keeps everyone else away; the entry is made whole again at once.
        let garbage = unsafe { take_owned(at) };
        self.owned_bytes -= garbage.memory_bytes();
        // SAFETY: an entry whose value was out of line has a word; an integer takes the same place and owns nothing.
        unsafe { super::set_int(at, 0) };
        garbage.into_value().unwrap_or(NewValue::Int(0))
    }

    /// Opens a value for change in place. Changes in size of what it owns must be told to [`Heap::grow_owned`].
    #[inline]
    pub(crate) fn value_mut(&mut self, db: usize, found: Found) -> ValueMut<'_> {
        debug_assert!(self.tables[db].at(found.pos) == found.tagged);
        // SAFETY: as for `entry`; `&mut self` keeps everyone else away for the borrow.
        unsafe { value_mut(found.tagged.entry()) }
    }

    /// Counts a change in what entries own.
    pub(crate) const fn grow_owned(&mut self, before: usize, after: usize) {
        self.owned_bytes = self.owned_bytes + after - before;
    }

    /// Makes a string `len` bytes long (not shorter than it is), new bytes being zero, and opens it. Amortised O(1) a
    /// byte once it is out of line.
    pub(crate) fn lengthen(&mut self, env: Env<'_>, db: usize, found: Found, len: usize) -> &mut [u8] {
        let found = self.as_text(env, db, found);
        let entry = self.entry(db, found);
        let (clock, expire_ms) = (entry.clock(), entry.expire_ms());
        let found = match entry.value() {
            ValueRef::Bytes(old) if len <= INLINE_BYTES_MAX => {
                let bytes = entry.allocated_bytes();
                self.lengthen_inline(env, db, found, (bytes, bytes + len - old.len(), len))
            }
            ValueRef::Bytes(old) => {
                let mut text = Vec::with_capacity(len + len / 4);
                text.extend_from_slice(old);
                text.resize(len, 0);
                let key = entry.key().to_vec();
                let value = NewValue::Shared(SharedBytes::new(text));
                self.overwrite_raw(env, db, found, (&key, value, expire_ms, clock))
            }
            _ => found,
        };
        if let ValueMut::Shared(shared) = self.value_mut(db, found) {
            let before = shared.memory_bytes();
            shared.vec_mut().resize(len, 0);
            let after = shared.memory_bytes();
            self.grow_owned(before, after);
        }
        match self.value_mut(db, found) {
            ValueMut::Bytes(bytes) => bytes,
            ValueMut::Shared(shared) => shared.vec_mut().as_mut_slice(),
            ValueMut::Packed | ValueMut::Int(_) | ValueMut::Object(_) => &mut [],
        }
    }

    /// Turns an integer into its digits.
    fn as_text(&mut self, env: Env<'_>, db: usize, found: Found) -> Found {
        let entry = self.entry(db, found);
        let ValueRef::Int(number) = entry.value() else { return found };
        let mut digits = Digits::default();
        let (key, clock, expire_ms) = (entry.key().to_vec(), entry.clock(), entry.expire_ms());
        let value = NewValue::Bytes(digits.write(number));
        self.overwrite_raw(env, db, found, (&key, value, expire_ms, clock))
    }

    /// Replaces a string that is being modified.
    fn overwrite_raw(
        &mut self,
        env: Env<'_>,
        db: usize,
        found: Found,
        (key, value, expire_ms, clock): (&[u8], NewValue<'_>, u64, u32),
    ) -> Found {
        let draft = Draft { key, value, expire_ms, clock, raw: true, spare: Spare::Keep, packed: None };
        self.overwrite(env, db, found, draft).0
    }

    fn lengthen_inline(
        &mut self,
        env: Env<'_>,
        db: usize,
        found: Found,
        (old_bytes, bytes, len): (usize, usize, usize),
    ) -> Found {
        let old = self.tables[db].at(found.pos).entry();
        if class_of(old_bytes) == class_of(bytes) {
            // SAFETY: the memory has its class's size, and `&mut self` keeps everyone else away.
            unsafe { set_inline_len(old, len) };
            return found;
        }
        let at = self.alloc(bytes, env);
        // SAFETY: both are live and different; an inline entry is `old_bytes` of plain bytes, which own nothing, and
        // the new memory is larger. Then the copy alone is used, and its memory has room for the new length.
        unsafe {
            at.copy_from_nonoverlapping(old, old_bytes);
            set_inline_len(at, len);
        }
        let tagged = tagged(at, found.expires(), bytes);
        // The hint was noted when the expiry was set, and covers the group whichever pointer stands there.
        self.tables[db].replace(found.pos, tagged, u64::MAX);
        // SAFETY: the table refers to the copy now; the old inline entry owns nothing out of line.
        unsafe { self.free(old, old_bytes, env) };
        Found { pos: found.pos, tagged }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let tables = self.tables.iter_mut().map(|table| table.take(&Private));
        for mut drain in tables.chain(self.drains.drain(..)) {
            let mut done = false;
            while !done {
                done = drain.step(u32::MAX, &Private, |tagged| {
                    let at = tagged.entry();
                    // SAFETY: the entry is out of its table. Slots need no freeing: the page source, which the keyspace
                    // drops after all heaps, takes them away as a whole.
                    unsafe {
                        let bytes = Entry::new(at).allocated_bytes();
                        drop(take_owned(at));
                        if bytes > SLOT_BYTES_MAX {
                            dealloc(at.as_ptr(), large_layout(bytes));
                        }
                    }
                });
            }
        }
    }
}

fn large_layout(bytes: usize) -> Layout {
    Layout::from_size_align(class_of(bytes) * 8, 8).expect("keys are far below isize::MAX")
}

fn owned_bytes(value: &NewValue<'_>) -> usize {
    match value {
        NewValue::Bytes(_) | NewValue::Int(_) => 0,
        NewValue::Shared(bytes) => bytes.memory_bytes(),
        NewValue::Object(object) => object.memory_bytes(),
    }
}
