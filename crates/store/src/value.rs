//! Owns: what a key can hold: strings in their three forms and boxed objects. Does not own: how an entry stores them
//! (`crate::entry`), what commands do with them.

use crate::effect::Kind;
use crate::entry::{INLINE_BYTES_MAX, PACKED_BYTES_MAX, PackedKind};
use crate::hash_object::{Hash, HashRef};
use crate::list::{List, ListRef};
use crate::prefetch;
use crate::recorder::Pen;
use crate::set::{Set, SetRef};
use crate::sorted_set::{SortedSet, SortedSetRef};
use crate::stream::{Stream, StreamId};
use std::sync::Arc;

/// A large string, counted: a reply may keep a clone and send from it (`writev`) after the lock is gone. Writers copy
/// when somebody else holds it, so a clone never changes.
#[derive(Clone, Debug)]
#[repr(transparent)]
pub struct SharedBytes(Arc<Held>);

/// Where the bytes lie.
#[derive(Clone, Debug)]
enum Held {
    Whole(Vec<u8>),
    /// In the buffer in which they came, which is hardly larger.
    Part {
        of: Arc<Vec<u8>>,
        from: u32,
        len: u32,
    },
}

/// A buffer is kept for a part of it that is all of it but one of so many bytes.
const PART_REST: usize = 32;

impl SharedBytes {
    /// A shorter [part](Self::part) is better copied.
    pub const PART_BYTES_MIN: usize = 16 << 10;

    /// Takes over a buffer without copying it.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Held::Whole(bytes)))
    }
    /// Keeps a part of a buffer where it lies; nothing where it is better copied.
    #[must_use]
    pub fn part(of: &Arc<Vec<u8>>, from: usize, len: usize) -> Option<Self> {
        let rest = of.capacity().checked_sub(len)?;
        let fits = len >= Self::PART_BYTES_MIN && rest <= len / PART_REST && from + len <= of.len();
        let (from, len) = (u32::try_from(from).ok()?, u32::try_from(len).ok()?);
        fits.then(|| Self(Arc::new(Held::Part { of: Arc::clone(of), from, len })))
    }
    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &*self.0 {
            Held::Whole(bytes) => bytes,
            Held::Part { of, from, len } => &of[*from as usize..][..*len as usize],
        }
    }
    /// Whether somebody beside this holder has it: such bytes are not freed by deleting the key. Of a part, the buffer
    /// may be somebody else's for a moment all the same.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
    /// The bytes, to be changed: a copy of their own where they are somebody else's too, or a part.
    pub(crate) fn vec_mut(&mut self) -> &mut Vec<u8> {
        if let Held::Part { .. } = *self.0 {
            *self = Self::new(self.as_slice().to_vec());
        }
        match Arc::make_mut(&mut self.0) {
            Held::Whole(bytes) => bytes,
            Held::Part { .. } => unreachable!("it has just been made whole"),
        }
    }
    /// Memory that it takes, the counts included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        40 + match &*self.0 {
            Held::Whole(bytes) => bytes.capacity(),
            Held::Part { of, .. } => of.capacity() + 40,
        }
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}
impl Eq for SharedBytes {}

const _: () = assert!(size_of::<Held>() == size_of::<Vec<u8>>());

/// Blocks of a stream, about 4 KiB each, or as many pending entries, are freed for one chunk.
const STREAM_BLOCKS_PER_CHUNK: usize = 16;

/// A value that is not a string, boxed behind the entry's word.
///
/// One variant for each type. A small compact one stands inside its entry instead, so commands meet [`ObjectRef`],
/// which is the same for both; they reach it through `get_hash`, `change_hash` and their like on the shard, which
/// answer WRONGTYPE for the others. Each type starts compact in one buffer and grows into a structure of its own; large
/// hashes, sets and the dictionaries of sorted sets use `crate::dict`, which is `crate::table` over records of their
/// own, so that HSCAN, SSCAN and ZSCAN promise what SCAN does.
#[derive(Debug)]
#[non_exhaustive]
pub enum Object {
    /// A list.
    List(List),
    /// A stream, boxed: it is larger than the others.
    Stream(Box<Stream>),
    /// A hash.
    Hash(Hash),
    /// A set.
    Set(Set),
    /// A sorted set.
    SortedSet(SortedSet),
}

impl Object {
    /// To read it.
    #[must_use]
    pub fn view(&self) -> ObjectRef<'_> {
        match self {
            Self::List(list) => ObjectRef::List(list.view()),
            Self::Hash(hash) => ObjectRef::Hash(hash.view()),
            Self::Set(set) => ObjectRef::Set(set.view()),
            Self::SortedSet(set) => ObjectRef::SortedSet(set.view()),
            Self::Stream(stream) => ObjectRef::Stream(stream),
        }
    }
    /// The name TYPE answers.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.view().type_name()
    }
    /// The name OBJECT ENCODING answers.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        self.view().encoding()
    }
    /// Its kind, as effects name it.
    pub(crate) fn kind(&self) -> Kind {
        self.view().kind()
    }
    /// Whether its order and its form are those of one buffer, which no inverse would give back.
    pub(crate) const fn is_compact(&self) -> bool {
        match self {
            Self::List(list) => list.is_compact(),
            Self::Hash(hash) => hash.is_compact(),
            Self::Set(set) => set.is_compact(),
            Self::SortedSet(set) => set.is_compact(),
            Self::Stream(_) => false,
        }
    }
    /// Memory that it takes, its box included. Constant time: every type keeps count.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::List(list) => list.memory_bytes(),
                Self::Hash(hash) => hash.memory_bytes(),
                Self::Set(set) => set.memory_bytes(),
                Self::SortedSet(set) => set.memory_bytes(),
                Self::Stream(stream) => size_of::<Stream>() + stream.memory_bytes(),
            }
    }
    /// Whether it holds nothing: such a key is removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.view().is_empty()
    }
    /// The bytes of a compact collection that is small enough to stand inside an entry.
    pub(crate) fn packed(&self) -> Option<(PackedKind, &[u8])> {
        let (kind, bytes) = match self {
            Self::Stream(_) => None,
            Self::List(list) => list.packed().map(|bytes| (PackedKind::List, bytes)),
            Self::Hash(hash) => hash.packed().map(|bytes| (PackedKind::Hash, bytes)),
            Self::Set(set) => set.packed(),
            Self::SortedSet(set) => set.packed().map(|bytes| (PackedKind::SortedSet, bytes)),
        }?;
        (bytes.len() <= PACKED_BYTES_MAX).then_some((kind, bytes))
    }
    /// A compact collection, from the bytes that [`Object::packed`] gave.
    pub(crate) fn from_packed(kind: PackedKind, bytes: Vec<u8>) -> Self {
        match kind {
            PackedKind::Hash => Self::Hash(Hash::from_packed(bytes)),
            PackedKind::Ints => Self::Set(Set::from_ints(bytes)),
            PackedKind::Set => Self::Set(Set::from_packed(bytes)),
            PackedKind::SortedSet => Self::SortedSet(SortedSet::from_packed(bytes)),
            PackedKind::List => Self::List(List::from_packed(bytes)),
        }
    }
    /// The buffer of a compact collection, to be used again; nothing from others.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        match self {
            Self::Hash(hash) => hash.into_buffer(),
            Self::Set(set) => set.into_buffer(),
            Self::SortedSet(set) => set.into_buffer(),
            Self::List(list) => list.into_buffer(),
            Self::Stream(_) => Vec::new(),
        }
    }
    /// Gives back what the buffer of a compact hash, set or sorted set has allocated and does not use.
    pub(crate) fn fit(&mut self) {
        match self {
            Self::Hash(hash) => hash.fit(),
            Self::Set(set) => set.fit(),
            Self::SortedSet(set) => set.fit(),
            Self::List(_) | Self::Stream(_) => {}
        }
    }
    /// Asks for what it leads to first.
    pub(crate) fn prefetch(&self) {
        match self {
            Self::List(list) => list.prefetch(),
            Self::Hash(hash) => hash.prefetch(),
            Self::Set(set) => set.prefetch(),
            Self::SortedSet(set) => set.prefetch(),
            Self::Stream(stream) => prefetch::value(&**stream),
        }
    }
    /// Frees a part of an object that nobody refers to any more, `chunks` pieces of about 64 KiB. Returns whether what
    /// is left may be dropped.
    pub(crate) fn free_step(&mut self, chunks: usize) -> bool {
        match self {
            Self::List(list) => list.free_step(chunks),
            Self::Hash(hash) => hash.free_step(chunks),
            Self::Set(set) => set.free_step(chunks),
            Self::SortedSet(set) => set.free_step(chunks),
            Self::Stream(stream) => !stream.free_some(chunks.saturating_mul(STREAM_BLOCKS_PER_CHUNK)),
        }
    }
    /// The earliest expiry of something inside it, or something earlier; `u64::MAX` without any.
    pub(crate) fn next_due_ms(&self) -> u64 {
        if let Self::Hash(hash) = self { hash.next_due_ms() } else { u64::MAX }
    }
}

/// How far an object has been told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nothing of it.
    #[default]
    Start,
    /// A collection, up to a place that its type names, or a string up to its byte: never 0.
    At(u64),
    /// A stream, up to this entry.
    Entry(StreamId),
    /// A stream with its entries, and its groups up to what is pending in this one from this id on.
    Pending(Box<[u8]>, StreamId),
}

impl Part {
    /// The place in it.
    pub(crate) const fn number(&self) -> u64 {
        if let Self::At(number) = self { *number } else { 0 }
    }
}

/// An object as it stands in the store: in its box, or compact inside its entry.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ObjectRef<'a> {
    /// A list.
    List(ListRef<'a>),
    /// A hash.
    Hash(HashRef<'a>),
    /// A set.
    Set(SetRef<'a>),
    /// A sorted set.
    SortedSet(SortedSetRef<'a>),
    /// A stream.
    Stream(&'a Stream),
}

impl ObjectRef<'_> {
    /// Its kind, as effects name it.
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::List(_) => Kind::List,
            Self::Hash(_) => Kind::Hash,
            Self::Set(_) => Kind::Set,
            Self::SortedSet(_) => Kind::SortedSet,
            Self::Stream(_) => Kind::Stream,
        }
    }
    /// Tells of all that is in it, to those who have been told of an empty one.
    pub(crate) fn tell(&self, pen: &mut Pen<'_>) {
        let end = self.tell_piece(pen, &Part::Start, usize::MAX);
        debug_assert!(end.is_none(), "nothing is told behind so many bytes");
    }
    /// Tells of what is in it from a place on, until about so many bytes are told; a compact one is told whole. Gives
    /// the place where it goes on, which is good until the next change; nothing at the end.
    pub(crate) fn tell_piece(&self, pen: &mut Pen<'_>, from: &Part, bytes_max: usize) -> Option<Part> {
        match *self {
            Self::List(list) => list.tell_piece(pen, from.number(), bytes_max).map(Part::At),
            Self::Hash(hash) => hash.tell_piece(pen, from.number(), bytes_max).map(Part::At),
            Self::Set(set) => set.tell_piece(pen, from.number(), bytes_max).map(Part::At),
            Self::SortedSet(set) => set.tell_piece(pen, from.number(), bytes_max).map(Part::At),
            Self::Stream(stream) => stream.tell_piece(pen, from, bytes_max),
        }
    }
    /// The name TYPE answers.
    #[must_use]
    pub const fn type_name(self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Hash(_) => "hash",
            Self::Set(_) => "set",
            Self::SortedSet(_) => "zset",
            Self::Stream(_) => "stream",
        }
    }
    /// The name OBJECT ENCODING answers.
    #[must_use]
    pub fn encoding(self) -> &'static str {
        match self {
            Self::List(list) => list.encoding(),
            Self::Hash(hash) => hash.encoding(),
            Self::Set(set) => set.encoding(),
            Self::SortedSet(set) => set.encoding(),
            Self::Stream(_) => "stream",
        }
    }
    /// Whether it holds nothing: such a key is removed. A stream stays: its groups and its last id count.
    #[must_use]
    pub fn is_empty(self) -> bool {
        match self {
            Self::List(list) => list.is_empty(),
            Self::Hash(hash) => hash.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::SortedSet(set) => set.is_empty(),
            Self::Stream(_) => false,
        }
    }
    /// A copy, for COPY.
    #[must_use]
    pub fn duplicate(self) -> Box<Object> {
        Box::new(match self {
            Self::List(list) => Object::List(list.duplicate()),
            Self::Hash(hash) => Object::Hash(hash.duplicate()),
            Self::Set(set) => Object::Set(set.duplicate()),
            Self::SortedSet(set) => Object::SortedSet(set.duplicate()),
            Self::Stream(stream) => Object::Stream(Box::new(stream.clone())),
        })
    }
}

/// A value as it stands in the store, borrowed for as long as the guard is not used to change something.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ValueRef<'a> {
    /// A string inside the entry.
    Bytes(&'a [u8]),
    /// A string that is a canonical 64-bit integer.
    Int(i64),
    /// A large string; clone it to keep it.
    Shared(&'a SharedBytes),
    /// Anything else.
    Object(ObjectRef<'a>),
}

impl<'a> ValueRef<'a> {
    /// The list, if it is one.
    #[must_use]
    pub const fn as_list(self) -> Option<ListRef<'a>> {
        if let Self::Object(ObjectRef::List(list)) = self { Some(list) } else { None }
    }
    /// The hash, if it is one.
    #[must_use]
    pub const fn as_hash(self) -> Option<HashRef<'a>> {
        if let Self::Object(ObjectRef::Hash(hash)) = self { Some(hash) } else { None }
    }
    /// The set, if it is one.
    #[must_use]
    pub const fn as_set(self) -> Option<SetRef<'a>> {
        if let Self::Object(ObjectRef::Set(set)) = self { Some(set) } else { None }
    }
    /// The sorted set, if it is one.
    #[must_use]
    pub const fn as_sorted_set(self) -> Option<SortedSetRef<'a>> {
        if let Self::Object(ObjectRef::SortedSet(set)) = self { Some(set) } else { None }
    }
    /// Whether it is a string of any form.
    #[must_use]
    pub const fn is_string(&self) -> bool {
        !matches!(self, Self::Object(_))
    }
    /// The name TYPE answers.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Object(object) => object.type_name(),
            _ => "string",
        }
    }
    /// A string's bytes. Integers are written into `digits`; objects give nothing.
    #[must_use]
    pub fn as_bytes<'s>(&'s self, digits: &'s mut Digits) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Int(value) => Some(digits.write(*value)),
            Self::Shared(bytes) => Some(bytes.as_slice()),
            Self::Object(_) => None,
        }
    }
    /// A string's length; objects give nothing.
    #[must_use]
    pub fn string_len(&self) -> Option<usize> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::Int(value) => Some(Digits::default().write(*value).len()),
            Self::Shared(bytes) => Some(bytes.as_slice().len()),
            Self::Object(_) => None,
        }
    }
    /// A value to put somewhere else: shared bytes are shared, objects copied.
    #[must_use]
    pub fn to_new(&self) -> NewValue<'a> {
        match self {
            Self::Bytes(bytes) => NewValue::Bytes(bytes),
            Self::Int(value) => NewValue::Int(*value),
            Self::Shared(bytes) => NewValue::Shared((*bytes).clone()),
            Self::Object(object) => NewValue::Object(object.duplicate()),
        }
    }
}

/// A value on its way into the store.
#[derive(Debug)]
#[non_exhaustive]
pub enum NewValue<'a> {
    /// A string of at most [`INLINE_BYTES_MAX`] bytes, copied into the entry.
    Bytes(&'a [u8]),
    /// An integer.
    Int(i64),
    /// A large string.
    Shared(SharedBytes),
    /// Anything else.
    Object(Box<Object>),
}

impl<'a> NewValue<'a> {
    /// The form a string takes: an integer if it is one in canonical form, inline if short, else out of line.
    #[inline]
    #[must_use]
    pub fn string(bytes: &'a [u8]) -> Self {
        if let Some(value) = parse_int(bytes) { Self::Int(value) } else { Self::text(bytes) }
    }
    /// A string that is not looked at as a number.
    #[inline]
    #[must_use]
    pub fn text(bytes: &'a [u8]) -> Self {
        if bytes.len() <= INLINE_BYTES_MAX {
            Self::Bytes(bytes)
        } else {
            Self::Shared(SharedBytes::new(bytes.to_vec()))
        }
    }
}

/// The integer that a string is the shortest writing of. Any string that is not would change if it were stored as one.
#[inline]
#[must_use]
pub fn parse_int(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    match digits {
        [b'0'] => return (!negative).then_some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude = 0_u64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // 19 digits are below 10^19, which fits in a u64.
        magnitude = magnitude * 10 + u64::from(digit - b'0');
    }
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// The digits of 00 to 99, one behind the other.
static PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut at = 0;
    while at < 100 {
        pairs[2 * at] = b'0' + (at / 10) as u8;
        pairs[2 * at + 1] = b'0' + (at % 10) as u8;
        at += 1;
    }
    pairs
};

/// Room for the decimal digits of an i64.
#[derive(Debug, Default, Clone)]
pub struct Digits([u8; 20]);

impl Digits {
    /// The most bytes of a number.
    pub(crate) const BYTES_MAX: usize = 20;
    /// The bytes from `start` on, where the last [`Digits::write`] has left a number.
    pub(crate) fn from(&self, start: usize) -> &[u8] {
        &self.0[start..]
    }
    /// Writes the number and returns its digits.
    pub fn write(&mut self, value: i64) -> &[u8] {
        let mut left = value.unsigned_abs();
        let mut at = self.0.len();
        // Two digits for each division.
        while left >= 10 {
            at -= 2;
            let pair = (left % 100) as usize * 2;
            self.0[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
            left /= 100;
        }
        if left > 0 || value == 0 {
            at -= 1;
            self.0[at] = b'0' + left as u8;
        }
        if value < 0 {
            at -= 1;
            self.0[at] = b'-';
        }
        &self.0[at..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_canonical() {
        for value in [0, 1, -1, 10, i64::MAX, i64::MIN, 1_234_567_890_123_456_789] {
            let text = value.to_string();
            assert_eq!(parse_int(text.as_bytes()), Some(value));
            assert_eq!(Digits::default().write(value), text.as_bytes());
        }
        for text in
            ["", "-", "-0", "00", "01", "+1", "1 ", " 1", "1a", "9223372036854775808", "-9223372036854775809"]
        {
            assert_eq!(parse_int(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_int(b"99999999999999999999"), None);
    }

    #[test]
    fn a_part_is_kept_where_little_else_is() {
        const LEN: usize = SharedBytes::PART_BYTES_MIN;
        let of = |len: usize, more: usize| {
            let mut buffer = Vec::with_capacity(len + more);
            buffer.resize(len + more, b'.');
            buffer[10..10 + len].fill(b'x');
            Arc::new(buffer)
        };
        let buffer = of(LEN, 100);
        let mut part = SharedBytes::part(&buffer, 10, LEN).expect("it is nearly all");
        assert_eq!(part, SharedBytes::new(vec![b'x'; LEN]));
        assert_eq!(part.memory_bytes(), buffer.capacity() + 80);
        assert!(SharedBytes::part(&buffer, 101, LEN).is_none(), "it goes beyond the end");
        assert!(SharedBytes::part(&of(100, 10), 10, 100).is_none(), "it is short");
        assert!(SharedBytes::part(&of(LEN, 2000), 10, LEN).is_none(), "much would be kept");
        // Who changes one has it for himself.
        let reader = part.clone();
        assert!(part.is_pinned());
        part.vec_mut().push(b'y');
        assert_eq!(part.as_slice().len(), LEN + 1);
        assert_eq!(reader.as_slice(), [b'x'; LEN]);
        assert!(!reader.is_pinned() && buffer[10 + LEN] == b'.');
        drop(reader);
        assert_eq!(Arc::strong_count(&buffer), 1);
    }
}
