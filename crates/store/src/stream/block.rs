//! Owns: one run of entries, packed into a buffer. Does not own: which blocks there are, and counts of the stream.
//!
//! ```text
//!  0                             head                                                            len
//! +-----------------------------+---------------------------------------------------------------+
//! | names of the first entry    | entry | entry | …                                             |
//! | count, then length and name | size, body, size backwards                                    |
//! +-----------------------------+---------------------------------------------------------------+
//!  body:  ms − first.ms | seq (− first.seq if ms is the same) | 0, or 1 + number of fields | value … or name, value …
//! ```
//! All numbers are LEB128. An entry with the names of the block's first entry, in their order, stores 0 and its values
//! only. `size` counts the body. Entries are ordered, so a deleted one can be cut out: a block is a few KiB. The names
//! stay when the first entry goes.
//!
//! A block is full when Valkey's would be: trimming with `~` cuts whole blocks, so its result shows where they end.
//! Hence `packed`, the bytes that Valkey's listpack would have, tombstones included.

use super::id::StreamId;
use super::varint;
use crate::value::parse_int;

/// When a block is full: `stream-node-max-bytes` and `stream-node-max-entries`, 0 being no limit (and 1 GiB).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimit {
    /// Packed bytes.
    pub block_bytes_max: u64,
    /// Entries, deleted ones included.
    pub block_entries_max: u64,
}

impl Default for StreamLimit {
    fn default() -> Self {
        Self { block_bytes_max: 4096, block_entries_max: 100 }
    }
}

/// The most bytes of names and values in an entry, and of a block.
pub const ENTRY_BYTES_MAX: u64 = 1 << 30;

/// One entry: its id and its fields, borrowed from the stream.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The id.
    pub id: StreamId,
    /// The fields.
    pub fields: Fields<'a>,
}

/// Names and values of an entry, in the order they were given.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// The block's names when the entry shares them.
    names: Option<&'a [u8]>,
    /// Values, or names and values.
    packed: &'a [u8],
    count: usize,
}

impl<'a> Fields<'a> {
    /// Number of pairs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }
    /// Whether there are none, which no command makes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Whether the names are those of the block, which RDB marks likewise.
    #[must_use]
    pub const fn shares_names(&self) -> bool {
        self.names.is_some()
    }
    /// The pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let Self { mut names, mut packed, count } = *self;
        (0..count).map(move |_| {
            let name = match &mut names {
                Some(names) => take(names),
                None => take(&mut packed),
            };
            (name, take(&mut packed))
        })
    }
}

/// Takes one length and its bytes from the front.
fn take<'a>(packed: &mut &'a [u8]) -> &'a [u8] {
    let (len, start) = varint::read(packed, 0);
    let (bytes, rest) = packed[start..].split_at(len as usize);
    *packed = rest;
    bytes
}

fn put(buf: &mut Vec<u8>, bytes: &[u8]) {
    varint::push(buf, bytes.len() as u64);
    buf.extend_from_slice(bytes);
}

/// Bytes of an integer in a listpack.
const fn listpack_int_bytes(value: i64) -> u64 {
    match value {
        0..=127 => 2,
        -4096..=4095 => 3,
        -32_768..=32_767 => 4,
        -8_388_608..=8_388_607 => 5,
        -2_147_483_648..=2_147_483_647 => 6,
        _ => 10,
    }
}

/// Bytes of a string in a listpack.
fn listpack_bytes(element: &[u8]) -> u64 {
    if let Some(value) = parse_int(element) {
        return listpack_int_bytes(value);
    }
    let len = element.len() as u64;
    let coded = len
        + match len {
            0..64 => 1,
            64..4096 => 2,
            _ => 5,
        };
    coded
        + match coded {
            0..128 => 1,
            128..16_384 => 2,
            16_384..2_097_152 => 3,
            2_097_152..268_435_456 => 4,
            _ => 5,
        }
}

/// A listpack's header and its end.
const LISTPACK_EMPTY_BYTES: u64 = 7;

#[derive(Clone, Debug)]
pub(crate) struct Block {
    buf: Vec<u8>,
    /// Where the entries start.
    head: usize,
    /// The id that the entries' ids count from.
    pub(super) first: StreamId,
    /// The id of the last entry that was added, deleted or not.
    pub(super) last: StreamId,
    /// Entries there are.
    pub(super) live: u64,
    /// Entries that were deleted.
    dead: u64,
    /// What a listpack would need beside its two counts.
    packed: u64,
}

/// Where a block ended, and what it counted: what is added behind it can be cut off again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockEnd {
    len: usize,
    last: StreamId,
    live: u64,
    packed: u64,
}

impl Block {
    pub(super) const fn end_mark(&self) -> BlockEnd {
        BlockEnd { len: self.buf.len(), last: self.last, live: self.live, packed: self.packed }
    }
    /// Cuts off what was added behind a mark; nothing else has been changed since.
    pub(super) fn cut_back(&mut self, end: BlockEnd) {
        self.buf.truncate(end.len);
        (self.last, self.live, self.packed) = (end.last, end.live, end.packed);
    }
    /// An empty block whose entries will mostly have these names, and ids from `first` on.
    pub(super) fn new<'f>(first: StreamId, names: impl Iterator<Item = &'f [u8]> + Clone) -> Self {
        let count = names.clone().count();
        let mut buf = Vec::new();
        varint::push(&mut buf, count as u64);
        let mut packed = LISTPACK_EMPTY_BYTES + listpack_int_bytes(count as i64) + listpack_int_bytes(0);
        for name in names {
            put(&mut buf, name);
            packed += listpack_bytes(name);
        }
        let head = buf.len();
        Self { buf, head, first, last: first, live: 0, dead: 0, packed }
    }

    /// Bytes allocated for the entries.
    pub(super) const fn capacity(&self) -> usize {
        self.buf.capacity()
    }
    /// Whether an entry of so many bytes of names and values still belongs here.
    pub(super) const fn fits(&self, entry_bytes: u64, limit: StreamLimit) -> bool {
        let bytes_max = match limit.block_bytes_max {
            1..=ENTRY_BYTES_MAX => limit.block_bytes_max,
            _ => ENTRY_BYTES_MAX,
        };
        let packed =
            self.packed + listpack_int_bytes(self.live as i64) + listpack_int_bytes(self.dead as i64);
        packed + entry_bytes < bytes_max
            && (limit.block_entries_max == 0 || self.live + self.dead < limit.block_entries_max)
    }
    /// Gives back spare memory: the block will not grow soon.
    pub(super) fn fit(&mut self) {
        self.buf.shrink_to_fit();
    }

    /// The names that most entries share: their number, and the packed names.
    fn names(&self) -> (usize, &[u8]) {
        let (count, start) = varint::read(&self.buf, 0);
        (count as usize, &self.buf[start..self.head])
    }
    /// The names one by one.
    pub(super) fn names_iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let (count, mut names) = self.names();
        (0..count).map(move |_| take(&mut names))
    }
    fn has_names<'f>(&self, mut fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> bool {
        let (count, mut names) = self.names();
        (0..count).all(|_| fields.next().is_some_and(|(name, _)| name == take(&mut names)))
            && fields.next().is_none()
    }

    /// Adds an entry at the end. Its id is above all others.
    pub(super) fn push<'f>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
    ) {
        let same = self.has_names(fields.clone());
        let ms = id.ms - self.first.ms;
        let seq = if ms == 0 { id.seq - self.first.seq } else { id.seq };
        let (mut count, mut size, mut packed) = (0_u64, 0, 0);
        let part = |bytes: &[u8]| varint::bytes(bytes.len() as u64) + bytes.len();
        for (name, value) in fields.clone() {
            count += 1;
            size += part(value);
            packed += listpack_bytes(value);
            if !same {
                size += part(name);
                packed += listpack_bytes(name);
            }
        }
        let mark = if same { 0 } else { count + 1 };
        size += varint::bytes(ms) + varint::bytes(seq) + varint::bytes(mark);
        let size = size as u64;
        self.buf.reserve(size as usize + 2 * varint::bytes(size));
        varint::push(&mut self.buf, size);
        let start = self.buf.len();
        for number in [ms, seq, mark] {
            varint::push(&mut self.buf, number);
        }
        for (name, value) in fields {
            if !same {
                put(&mut self.buf, name);
            }
            put(&mut self.buf, value);
        }
        debug_assert_eq!(self.buf.len() - start, size as usize);
        varint::push_back(&mut self.buf, size);
        // Flags, two differences (the second may be negative there), and how many parts the entry has.
        let difference = listpack_int_bytes(id.seq.wrapping_sub(self.first.seq) as i64);
        let parts = if same { count + 3 } else { 2 * count + 4 };
        let number = if same { 0 } else { listpack_int_bytes(count as i64) };
        self.packed += packed + 2 + listpack_int_bytes(ms as i64) + difference + number;
        self.packed += listpack_int_bytes(parts as i64);
        self.live += 1;
        self.last = id;
    }

    pub(super) const fn start(&self) -> usize {
        self.head
    }
    pub(super) const fn end(&self) -> usize {
        self.buf.len()
    }
    /// The body's bounds and the next entry's place, of the entry at `at`.
    fn span(&self, at: usize) -> (usize, usize, usize) {
        let (size, start) = varint::read(&self.buf, at);
        let end = start + size as usize;
        (start, end, end + (start - at))
    }
    /// Where the entry before `at` starts.
    pub(super) fn before(&self, at: usize) -> Option<usize> {
        if at <= self.head {
            return None;
        }
        let (size, start) = varint::read_back(&self.buf, at);
        Some(start - size as usize - (at - start))
    }
    fn id_at(&self, start: usize) -> (StreamId, usize) {
        let (ms, at) = varint::read(&self.buf, start);
        let (seq, at) = varint::read(&self.buf, at);
        let seq = if ms == 0 { self.first.seq + seq } else { seq };
        (StreamId::new(self.first.ms + ms, seq), at)
    }
    /// The entry at a place, and the place after it.
    pub(super) fn entry(&self, at: usize) -> Option<(Entry<'_>, usize)> {
        if at >= self.buf.len() {
            return None;
        }
        let (start, end, next) = self.span(at);
        let (id, at) = self.id_at(start);
        let (mark, at) = varint::read(&self.buf, at);
        let packed = &self.buf[at..end];
        let fields = match mark.checked_sub(1) {
            Some(count) => Fields { names: None, packed, count: count as usize },
            None => {
                let (count, names) = self.names();
                Fields { names: Some(names), packed, count }
            }
        };
        Some((Entry { id, fields }, next))
    }
    /// The place of the first entry that is not below `id`, and how many entries are before it.
    pub(super) fn seek(&self, id: StreamId) -> (usize, u64) {
        if id <= self.first {
            return (self.head, 0);
        }
        self.skip(|seen, _| seen < id)
    }
    /// The place after the first `count` entries.
    pub(super) fn skip_entries(&self, count: u64) -> (usize, u64) {
        self.skip(|_, before| before < count)
    }
    fn skip(&self, passes: impl Fn(StreamId, u64) -> bool) -> (usize, u64) {
        let (mut at, mut before) = (self.head, 0);
        while at < self.buf.len() {
            let (start, _, next) = self.span(at);
            if !passes(self.id_at(start).0, before) {
                break;
            }
            at = next;
            before += 1;
        }
        (at, before)
    }

    /// Removes the first `count` entries, which end at `to`.
    pub(super) fn remove_front(&mut self, to: usize, count: u64) {
        self.buf.drain(self.head..to);
        self.removed(count);
    }
    /// Removes the entry at a place.
    pub(super) fn remove_at(&mut self, at: usize) {
        let (_, _, next) = self.span(at);
        self.buf.drain(at..next);
        self.removed(1);
    }
    fn removed(&mut self, count: u64) {
        self.live -= count;
        self.dead += count;
        if self.buf.capacity() > 256 && self.buf.capacity() > 4 * self.buf.len() {
            self.buf.shrink_to(2 * self.buf.len());
        }
    }
}
