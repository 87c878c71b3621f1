//! Owns: the byte layout of an entry, reading it, and writing it. Does not own: where entries live and who refers to
//! them (`heap`), what the access clock means (`crate::access`).
//!
//! One allocation per entry, aligned to 8:
//!
//! ```text
//!  0      1           4           6         8           16           24       32
//! +------+-----------+-----------+---------+-----------+------------+--------+-----+----------------+
//! | kind | access    | value len | key len | expiry ms | key length | word   | key | inline value   |
//! |+flags| clock, 24 | u16       | u16     | u64 *     | u64 **     | u64 ***| …   | …              |
//! +------+-----------+-----------+---------+-----------+------------+--------+-----+----------------+
//!  *   only with an expiry          **  only for keys of 64 KiB and more, whose key len says 65,535
//!  *** not for what is inline: the integer, or the pointer to the shared bytes or to the object
//!
//!  byte 0:  kind in bits 0–3 (never 0, see `crate::slab::span`), bit 4 expiry, bit 5 long key, bit 6 raw, bit 7 spare
//! ```
//! So a 16-byte key with a 16-byte value takes 40 bytes: 8 beyond key and value. `raw` remembers that a string was
//! modified in place, which OBJECT ENCODING shows. `spare` says that 8 bytes are left at the end, those of an expiry
//! that it had: a key that is given a time to live again and again, and written over, keeps its memory.

pub(crate) mod heap;
pub(crate) mod sight;

use crate::hash_object::HashRef;
use crate::list::ListRef;
use crate::set::SetRef;
use crate::slab::span::class_of;
use crate::sorted_set::SortedSetRef;
use crate::value::{NewValue, Object, ObjectRef, SharedBytes, ValueRef};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Longer string values go out of line.
pub const INLINE_BYTES_MAX: usize = 4096;
const HEADER_BYTES: usize = 8;
const LONG_KEY: u16 = u16::MAX;

/// What stands where the value does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    Inline = 1,
    Int = 2,
    Shared = 3,
    Object = 4,
    // Compact collections inside the entry.
    Hash = 5,
    Ints = 6,
    Set = 7,
    SortedSet = 8,
    List = 9,
}

/// Longer compact collections go out of line, boxed: with an expiry and a key of up to 48 bytes the largest fits the
/// slab.
pub(crate) const PACKED_BYTES_MAX: usize = 1088;

/// What a compact collection inside an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PackedKind {
    Hash,
    Ints,
    Set,
    SortedSet,
    List,
}

impl From<PackedKind> for Kind {
    fn from(packed: PackedKind) -> Self {
        match packed {
            PackedKind::Hash => Self::Hash,
            PackedKind::Ints => Self::Ints,
            PackedKind::Set => Self::Set,
            PackedKind::SortedSet => Self::SortedSet,
            PackedKind::List => Self::List,
        }
    }
}

/// The first 8 bytes of an entry, in one register. Native byte order: nothing outside the process sees it.
#[derive(Clone, Copy)]
pub(crate) struct Header(u64);

const EXPIRY: u64 = 1 << 4;
const LONG: u64 = 1 << 5;
const RAW: u64 = 1 << 6;
const SPARE: u64 = 1 << 7;
const CLOCK_SHIFT: u32 = 8;
const CLOCK_MASK: u64 = 0x00ff_ffff;

impl Header {
    fn new(kind: Kind, raw: bool, expires: bool, key_len: usize, value_len: usize, clock: u32) -> Self {
        let long = key_len >= LONG_KEY as usize;
        let short = if long { LONG_KEY } else { key_len as u16 };
        let flags =
            if expires { EXPIRY } else { 0 } | if long { LONG } else { 0 } | if raw { RAW } else { 0 };
        Self(
            kind as u64
                | flags
                | (u64::from(clock) & CLOCK_MASK) << CLOCK_SHIFT
                | (value_len as u64) << 32
                | u64::from(short) << 48,
        )
    }
    #[inline]
    const fn kind(self) -> Kind {
        match self.0 & 15 {
            1 => Kind::Inline,
            2 => Kind::Int,
            3 => Kind::Shared,
            5 => Kind::Hash,
            6 => Kind::Ints,
            7 => Kind::Set,
            8 => Kind::SortedSet,
            9 => Kind::List,
            _ => Kind::Object,
        }
    }
    #[inline]
    const fn is_text(self) -> bool {
        self.0 & 15 == Kind::Inline as u64
    }
    /// Whether it is a short string without expiry, and its key's length in the header: what most entries are.
    #[inline]
    const fn is_plain(self) -> bool {
        self.0 & (15 | EXPIRY | LONG) == Kind::Inline as u64
    }
    /// Where the value of a plain entry begins.
    #[inline]
    const fn plain_value_at(self) -> usize {
        HEADER_BYTES + (self.0 >> 48) as usize
    }
    /// Whether the value is inside the entry: any kind but those with a word.
    #[inline]
    const fn is_inline(self) -> bool {
        (self.0 & 15).wrapping_sub(Kind::Int as u64) > (Kind::Object as u64 - Kind::Int as u64)
    }
    const fn packed(self) -> Option<PackedKind> {
        match self.kind() {
            Kind::Hash => Some(PackedKind::Hash),
            Kind::Ints => Some(PackedKind::Ints),
            Kind::Set => Some(PackedKind::Set),
            Kind::SortedSet => Some(PackedKind::SortedSet),
            Kind::List => Some(PackedKind::List),
            _ => None,
        }
    }
    #[inline]
    const fn expires(self) -> bool {
        self.0 & EXPIRY != 0
    }
    #[inline]
    const fn long_key(self) -> bool {
        self.0 & LONG != 0
    }
    const fn raw(self) -> bool {
        self.0 & RAW != 0
    }
    #[inline]
    const fn spare(self) -> bool {
        self.0 & SPARE != 0
    }
    /// Whether there are 8 bytes for an expiry, be they used or not.
    #[inline]
    const fn has_expiry_room(self) -> bool {
        self.0 & (EXPIRY | SPARE) != 0
    }
    #[inline]
    const fn value_len(self) -> usize {
        (self.0 >> 32) as u16 as usize
    }
    #[inline]
    const fn clock(self) -> u32 {
        (self.0 >> CLOCK_SHIFT & CLOCK_MASK) as u32
    }
    /// Where the word is, or would be: after header, expiry and long length.
    #[inline]
    const fn word_at(self) -> usize {
        HEADER_BYTES + if self.expires() { 8 } else { 0 } + if self.long_key() { 8 } else { 0 }
    }
    #[inline]
    const fn key_at(self) -> usize {
        self.word_at() + if self.is_inline() { 0 } else { 8 }
    }
}

/// Bytes that an entry needs; `expiry_room` whether it has an expiry or keeps the bytes of one.
pub(crate) const fn entry_bytes(
    kind_inline: bool,
    expiry_room: bool,
    key_len: usize,
    value_len: usize,
) -> usize {
    HEADER_BYTES
        + if expiry_room { 8 } else { 0 }
        + if key_len >= LONG_KEY as usize { 8 } else { 0 }
        + key_len
        + if kind_inline { value_len } else { 8 }
}

/// A live entry, borrowed: valid as long as nothing is changed in the heap it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    at: NonNull<u8>,
    heap: PhantomData<&'a u8>,
}

impl<'a> Entry<'a> {
    /// # Safety
    /// `at` is a live entry that stays unchanged for `'a`, except for its access clock, changed through `set_clock`
    /// by the one thread that has the shard.
    #[inline]
    pub(crate) const unsafe fn new(at: NonNull<u8>) -> Self {
        Self { at, heap: PhantomData }
    }
    #[inline]
    pub(crate) fn header(self) -> Header {
        // SAFETY: an entry begins with its header, aligned to 8.
        Header(unsafe { self.at.cast::<u64>().read() })
    }
    #[inline]
    fn word(self, at: usize) -> u64 {
        // SAFETY: called for words that the header says are there; every part before the key is 8 bytes, so aligned.
        unsafe { self.at.add(at).cast::<u64>().read() }
    }
    #[inline]
    fn bytes(self, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: called for ranges that the header says are there, which were written when the entry was made, and
        // that do not change for 'a (contract of `new`).
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().add(at), len) }
    }
    #[inline]
    fn key_len(self, header: Header) -> usize {
        if header.long_key() { self.word(header.word_at() - 8) as usize } else { (header.0 >> 48) as usize }
    }
    /// The key.
    #[inline]
    pub(crate) fn key(self) -> &'a [u8] {
        let header = self.header();
        self.bytes(header.key_at(), self.key_len(header))
    }
    /// Absolute expiry, or `u64::MAX`.
    #[inline]
    pub(crate) fn expire_ms(self) -> u64 {
        if self.header().expires() { self.word(HEADER_BYTES) } else { u64::MAX }
    }
    /// The access clock (24 bits).
    #[inline]
    pub(crate) fn clock(self) -> u32 {
        self.header().clock()
    }
    /// Sets the access clock, unless it is the same: reads should not dirty a cache line once a second has begun.
    #[inline]
    pub(crate) fn set_clock(self, clock: u32) {
        let header = self.header();
        if header.clock() != clock & CLOCK_MASK as u32 {
            let changed =
                header.0 & !(CLOCK_MASK << CLOCK_SHIFT) | (u64::from(clock) & CLOCK_MASK) << CLOCK_SHIFT;
            // SAFETY: the header's word is in the entry; the thread has the shard to itself (contract of `new`), and no
            // reference to the header's bytes is ever made.
            unsafe { self.at.cast::<u64>().write(changed) }
        }
    }
    /// Whether the string was modified in place.
    pub(crate) fn raw(self) -> bool {
        self.header().raw()
    }
    /// Whether it keeps the bytes of an expiry that it has not.
    pub(crate) fn spare(self) -> bool {
        self.header().spare()
    }
    /// Whether it is a short string.
    #[inline]
    pub(crate) fn is_text(self) -> bool {
        self.header().is_text()
    }
    /// The value.
    #[inline]
    pub(crate) fn value(self) -> ValueRef<'a> {
        let header = self.header();
        match header.kind() {
            Kind::Inline => ValueRef::Bytes(self.inline(header)),
            Kind::Hash => ValueRef::Object(ObjectRef::Hash(HashRef::packed(self.inline(header)))),
            Kind::List => ValueRef::Object(ObjectRef::List(ListRef::packed(self.inline(header)))),
            Kind::Ints => ValueRef::Object(ObjectRef::Set(SetRef::ints(self.inline(header)))),
            Kind::Set => ValueRef::Object(ObjectRef::Set(SetRef::packed(self.inline(header)))),
            Kind::SortedSet => {
                ValueRef::Object(ObjectRef::SortedSet(SortedSetRef::packed(self.inline(header))))
            }
            Kind::Int => ValueRef::Int(self.word(header.word_at()) as i64),
            // SAFETY: the word of a shared entry is a pointer that owns one reference, alive as long as the entry.
            Kind::Shared => ValueRef::Shared(unsafe { &*self.pointer_at(header).cast::<SharedBytes>() }),
            Kind::Object => {
                // SAFETY: the word of an object entry is the pointer of a Box that the entry owns.
                ValueRef::Object(unsafe { &**self.pointer_at(header).cast::<*mut Object>() }.view())
            }
        }
    }
    /// Whether the key is `key`.
    #[inline]
    pub(crate) fn is_of(self, key: &[u8]) -> bool {
        let header = self.header();
        let short = (header.0 >> 48) as usize;
        if header.long_key() {
            return self.key() == key;
        }
        short == key.len() && heap::same(self.bytes(header.key_at(), short), key)
    }
    /// The value if the key is `key`; both lie where they do in most entries, or are looked for.
    #[inline(always)]
    pub(crate) fn value_of(self, key: &[u8]) -> Option<ValueRef<'a>> {
        let header = self.header();
        if header.is_plain() {
            let value_at = header.plain_value_at();
            return heap::same(self.bytes(HEADER_BYTES, value_at - HEADER_BYTES), key)
                .then(|| ValueRef::Bytes(self.bytes(value_at, header.value_len())));
        }
        self.is_of(key).then(|| self.value())
    }
    #[inline]
    fn inline(self, header: Header) -> &'a [u8] {
        self.bytes(header.key_at() + self.key_len(header), header.value_len())
    }
    /// The compact collection that is inside the entry.
    pub(crate) fn packed(self) -> Option<(PackedKind, &'a [u8])> {
        let header = self.header();
        header.packed().map(|kind| (kind, self.inline(header)))
    }
    /// The object that the entry owns out of line.
    pub(crate) fn object(self) -> Option<&'a Object> {
        let header = self.header();
        if header.kind() != Kind::Object {
            return None;
        }
        // SAFETY: the word of an object entry is the pointer of a Box that the entry owns.
        Some(unsafe { &**self.pointer_at(header).cast::<*mut Object>() })
    }
    /// Where the word is, as a pointer: `SharedBytes` is one pointer wide, so the word can be read as one in place.
    #[inline]
    fn pointer_at(self, header: Header) -> *mut u8 {
        self.at.as_ptr().wrapping_add(header.word_at())
    }
    /// Bytes that the entry was allocated with, before rounding.
    pub(crate) fn allocated_bytes(self) -> usize {
        let header = self.header();
        entry_bytes(header.is_inline(), header.has_expiry_room(), self.key_len(header), header.value_len())
    }
}

const _: () = assert!(size_of::<SharedBytes>() == 8 && align_of::<SharedBytes>() == 8);

/// The 8 bytes of an expiry in an entry that has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spare {
    /// They stay if what is written over has them, as an expiry or spare, and nothing else takes them.
    Keep,
    /// They are there, or not.
    Is(bool),
}

/// What an entry is made of.
pub(crate) struct Draft<'v> {
    pub(crate) key: &'v [u8],
    pub(crate) value: NewValue<'v>,
    pub(crate) expire_ms: u64,
    pub(crate) clock: u32,
    pub(crate) raw: bool,
    pub(crate) spare: Spare,
    /// Says that the value, which is bytes, is a compact collection.
    pub(crate) packed: Option<PackedKind>,
}

impl Draft<'_> {
    pub(crate) const fn expires(&self) -> bool {
        self.expire_ms != u64::MAX
    }
    /// Bytes that the entry needs.
    #[inline]
    pub(crate) const fn bytes(&self) -> usize {
        let expiry_room = self.expires() || matches!(self.spare, Spare::Is(true));
        match &self.value {
            NewValue::Bytes(value) => entry_bytes(true, expiry_room, self.key.len(), value.len()),
            _ => entry_bytes(false, expiry_room, self.key.len(), 0),
        }
    }

    /// Says whether it takes the same class of memory as `old`, and decides whether it has spare bytes if it replaces
    /// that.
    #[inline]
    pub(crate) fn fits(&mut self, old: Entry<'_>) -> bool {
        let (class, old_class) = (class_of(self.bytes()), class_of(old.allocated_bytes()));
        let keeps = self.spare == Spare::Keep && !self.expires() && old.header().has_expiry_room();
        if keeps && class + 1 == old_class {
            self.spare = Spare::Is(true);
            return true;
        }
        class == old_class
    }

    /// Writes the entry, which takes over the value.
    ///
    /// # Safety
    /// `at` is 8-aligned memory of at least `self.bytes()` that nobody else uses, and holds no live entry. An inline
    /// value is at most `INLINE_BYTES_MAX` long.
    #[inline]
    pub(crate) unsafe fn write(self, at: NonNull<u8>) {
        let expires = self.expires();
        let (kind, value_len) = match &self.value {
            NewValue::Bytes(value) => (self.packed.map_or(Kind::Inline, Kind::from), value.len()),
            NewValue::Int(_) => (Kind::Int, 0),
            NewValue::Shared(_) => (Kind::Shared, 0),
            NewValue::Object(_) => (Kind::Object, 0),
        };
        let mut header = Header::new(kind, self.raw, expires, self.key.len(), value_len, self.clock);
        if !expires && self.spare == Spare::Is(true) {
            header.0 |= SPARE;
        }
        let key_at = header.key_at();
        // SAFETY: every offset and length below is counted in `bytes()`, so all writes are inside the memory; words are
        // at multiples of 8; `key` and `value` cannot overlap memory that nobody else uses.
        unsafe {
            at.cast::<u64>().write(header.0);
            if expires {
                at.add(HEADER_BYTES).cast::<u64>().write(self.expire_ms);
            }
            if header.long_key() {
                at.add(header.word_at() - 8).cast::<u64>().write(self.key.len() as u64);
            }
            let word = at.add(header.word_at());
            std::ptr::copy_nonoverlapping(self.key.as_ptr(), at.add(key_at).as_ptr(), self.key.len());
            match self.value {
                NewValue::Bytes(value) => {
                    let target = at.add(key_at + self.key.len()).as_ptr();
                    std::ptr::copy_nonoverlapping(value.as_ptr(), target, value.len());
                }
                NewValue::Int(value) => word.cast::<i64>().write(value),
                NewValue::Shared(value) => word.cast::<SharedBytes>().write(value),
                NewValue::Object(value) => word.cast::<*mut Object>().write(Box::into_raw(value)),
            }
        }
    }
}

/// What an entry owned out of line. Dropping it may take long (a large collection), so it is handed out of the lock.
#[derive(Debug, Default)]
pub enum Garbage {
    /// Nothing: the value was in the entry.
    #[default]
    Nothing,
    /// Bytes that a reply in flight may still hold.
    Shared(SharedBytes),
    /// An object.
    Object(Box<Object>),
}

impl Garbage {
    /// Memory that dropping it frees, if nobody else holds it.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Shared(bytes) => bytes.memory_bytes(),
            Self::Object(object) => object.memory_bytes(),
        }
    }
    /// See [`Object::next_due_ms`].
    pub(crate) fn next_due_ms(&self) -> u64 {
        if let Self::Object(object) = self { object.next_due_ms() } else { u64::MAX }
    }
    /// Frees a part of it: `chunks` pieces of about 64 KiB, some 10 µs each. Returns whether what is left may be
    /// dropped at once. [`crate::Keyspace::discard`] has maintenance do this.
    pub fn free_step(&mut self, chunks: usize) -> bool {
        match self {
            Self::Nothing | Self::Shared(_) => true,
            Self::Object(object) => object.free_step(chunks),
        }
    }
    /// The value that it was, if it was one out of line.
    #[must_use]
    pub fn into_value(self) -> Option<NewValue<'static>> {
        match self {
            Self::Nothing => None,
            Self::Shared(bytes) => Some(NewValue::Shared(bytes)),
            Self::Object(object) => Some(NewValue::Object(object)),
        }
    }
}

/// Takes what the entry owns out of it. Afterwards its word means nothing.
///
/// # Safety
/// `at` is a live entry that the caller owns, and its value is not used through it afterwards.
pub(crate) unsafe fn take_owned(at: NonNull<u8>) -> Garbage {
    // SAFETY: by the contract; the borrow ends with this function.
    let entry = unsafe { Entry::new(at) };
    let header = entry.header();
    match header.kind() {
        Kind::Inline | Kind::Int | Kind::Hash | Kind::Ints | Kind::Set | Kind::SortedSet | Kind::List => {
            Garbage::Nothing
        }
        // SAFETY: the word owns one reference, which moves out here.
        Kind::Shared => Garbage::Shared(unsafe { entry.pointer_at(header).cast::<SharedBytes>().read() }),
        Kind::Object => {
            // SAFETY: the word is what `Box::into_raw` gave, and ownership moves out here.
            let object = unsafe { Box::from_raw(entry.pointer_at(header).cast::<*mut Object>().read()) };
            Garbage::Object(object)
        }
    }
}

/// The mutable parts of an entry's value.
pub(crate) enum ValueMut<'a> {
    /// A compact collection, which is taken out to be changed.
    Packed,
    Bytes(&'a mut [u8]),
    Int(&'a mut i64),
    Shared(&'a mut SharedBytes),
    Object(&'a mut Object),
}

/// Opens an entry's value for change in place.
///
/// # Safety
/// `at` is a live entry that nobody else refers to for `'a`.
#[inline]
pub(crate) unsafe fn value_mut<'a>(at: NonNull<u8>) -> ValueMut<'a> {
    // SAFETY: by the contract; only used to read the header here.
    let entry = unsafe { Entry::<'a>::new(at) };
    let header = entry.header();
    let word = entry.pointer_at(header);
    // SAFETY: the header says which of these is there; it is inside the entry, which nobody else refers to for 'a.
    unsafe {
        match header.kind() {
            Kind::Inline => {
                let value = at.as_ptr().add(header.key_at() + entry.key_len(header));
                ValueMut::Bytes(std::slice::from_raw_parts_mut(value, header.value_len()))
            }
            Kind::Hash | Kind::Ints | Kind::Set | Kind::SortedSet | Kind::List => ValueMut::Packed,
            Kind::Int => ValueMut::Int(&mut *word.cast()),
            Kind::Shared => ValueMut::Shared(&mut *word.cast::<SharedBytes>()),
            Kind::Object => ValueMut::Object(&mut **word.cast::<*mut Object>()),
        }
    }
}

/// Changes the length of an inline value inside its slot, the flag `raw` being set. New bytes are zero.
///
/// # Safety
/// `at` is a live inline entry that nobody else refers to; its slot has room for the new length, which is at most
/// `INLINE_BYTES_MAX`.
pub(crate) unsafe fn set_inline_len(at: NonNull<u8>, len: usize) {
    // SAFETY: by the contract; only used to read the header here.
    let entry = unsafe { Entry::new(at) };
    let header = entry.header();
    let old = header.value_len();
    let changed = header.0 & !(0xffff << 32) | (len as u64) << 32 | RAW;
    // SAFETY: by the contract the slot has room up to the new length.
    unsafe {
        if len > old {
            let value = at.as_ptr().add(header.key_at() + entry.key_len(header));
            value.add(old).write_bytes(0, len - old);
        }
        at.cast::<u64>().write(changed);
    }
}

/// Writes another inline value over an inline value, with the clock, if both take the same class of memory. The flag
/// `raw` is cleared.
///
/// # Safety
/// `at` is a live entry that nobody else refers to, in memory of its class's size; `text` is not in it.
#[inline]
pub(crate) unsafe fn rewrite_inline(at: NonNull<u8>, text: &[u8], clock: u32) -> bool {
    // SAFETY: by the contract; only used to read the header here.
    let entry = unsafe { Entry::new(at) };
    let header = entry.header();
    if !header.is_text() || text.len() > INLINE_BYTES_MAX {
        return false;
    }
    let value_at =
        if header.is_plain() { header.plain_value_at() } else { header.key_at() + entry.key_len(header) };
    // Spare bytes come behind either.
    if class_of(value_at + header.value_len()) != class_of(value_at + text.len()) {
        return false;
    }
    let kept = header.0 & !(0xffff << 32 | CLOCK_MASK << CLOCK_SHIFT | RAW);
    let word = kept | (text.len() as u64) << 32 | (u64::from(clock) & CLOCK_MASK) << CLOCK_SHIFT;
    // SAFETY: the memory reaches to the end of the class, which the new value does not exceed.
    unsafe {
        at.cast::<u64>().write(word);
        at.add(value_at).copy_from_nonoverlapping(NonNull::from(text).cast(), text.len());
    }
    true
}

/// Makes the value the integer `value`, in the word that was there.
///
/// # Safety
/// `at` is a live entry with a word, whose owned value has been taken out, and nobody else refers to it.
pub(crate) unsafe fn set_int(at: NonNull<u8>, value: i64) {
    // SAFETY: by the contract; only used to read the header here.
    let header = unsafe { Entry::new(at) }.header();
    debug_assert!(!header.is_inline());
    // SAFETY: by the contract the word is there.
    unsafe {
        at.cast::<u64>().write(header.0 & !15 | Kind::Int as u64);
        at.add(header.word_at()).cast::<i64>().write(value);
    }
}

/// Writes another expiry into an entry that has one.
///
/// # Safety
/// `at` is a live entry with an expiry that nobody else refers to.
pub(crate) unsafe fn set_expire_ms(at: NonNull<u8>, expire_ms: u64) {
    // SAFETY: by the contract the expiry's word is there.
    unsafe { at.add(HEADER_BYTES).cast::<u64>().write(expire_ms) }
}
