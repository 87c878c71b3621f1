//! Owns: the memory of a large collection's records: chunks of 64 KiB cut into units of 8 bytes, with free lists by
//! size; records above 1 KiB in allocations of their own. Does not own: what a record says, who refers to it.
//!
//! Why not one allocation each: an allocator's classes are 16 bytes apart and more, and freeing ten million of them
//! takes a second; here it is one call for each 64 KiB. A record is named by a [`Handle`] of 4 bytes:
//!
//! ```text
//!  31      30           29          13 12         0
//! +-------+------------+--------------+------------+
//! | large | generation | chunk        | unit       |
//! +-------+------------+--------------+------------+
//! ```
//! **Generations.** When free lists hold too much beside the records ([`Waste`]), the dictionary copies its records one
//! after the other into chunks of the other generation, and the old chunks go when the last one has moved. A collection
//! beyond 8 GiB puts the rest into allocations of their own.

use super::Waste;

/// Bytes of a unit.
const UNIT: usize = 8;
/// Bytes of a chunk.
const CHUNK_BYTES: usize = 64 << 10;
const CHUNK_UNITS: usize = CHUNK_BYTES / UNIT;
/// Chunks of a generation: what the handle's 17 bits can say.
const CHUNKS_MAX: usize = 1 << 17;
/// Longer records have an allocation of their own.
pub(super) const RECORD_BYTES_MAX: usize = 1024;
/// The first chunk begins with this and grows.
const CHUNK_BYTES_MIN: usize = 128;
/// Large records under one vector, so that adding one never copies more names of them than this.
const LARGE_ROW: usize = 512;
/// Waste below this is not worth moving records.
const WASTE_BYTES_MIN: usize = 4096;

const LARGE: u32 = 1 << 31;
const GENERATION: u32 = 1 << 30;
const NONE: u32 = u32::MAX;

/// A record's name. Good until the record is freed or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(pub(crate) u32);

/// The chunks of one generation.
#[derive(Clone, Debug)]
struct Arena {
    chunks: Vec<Vec<u8>>,
    /// First free slot of each size in units, up to the largest that was freed: most small collections have none.
    free: Vec<u32>,
    bytes: usize,
    live_units: usize,
    /// Units handed out at least once.
    touched_units: usize,
    /// Units of the last chunk that have been handed out.
    bump: usize,
}

impl Arena {
    const fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), bytes: 0, live_units: 0, touched_units: 0, bump: 0 }
    }
    /// Memory of all of it.
    #[inline]
    const fn memory_bytes(&self) -> usize {
        self.bytes + self.chunks.capacity() * size_of::<Vec<u8>>() + self.free.capacity() * 4
    }
    #[inline]
    fn slice(&self, handle: u32) -> &[u8] {
        let handle = (handle & !GENERATION) as usize;
        &self.chunks[handle / CHUNK_UNITS][handle % CHUNK_UNITS * UNIT..]
    }
    fn slice_mut(&mut self, handle: u32) -> &mut [u8] {
        let handle = (handle & !GENERATION) as usize;
        &mut self.chunks[handle / CHUNK_UNITS][handle % CHUNK_UNITS * UNIT..]
    }
    /// A slot; nothing when all chunks are full.
    fn alloc(&mut self, units: usize) -> Option<u32> {
        if let Some(&first) = self.free.get(units)
            && first != NONE
        {
            let next = self.slice(first).first_chunk().map_or(NONE, |word| u32::from_le_bytes(*word));
            self.free[units] = next;
            self.live_units += units;
            return Some(first);
        }
        if self.chunks.is_empty() || self.bump + units > CHUNK_UNITS {
            self.open_chunk()?;
        }
        self.lengthen((self.bump + units) * UNIT);
        let handle = (self.chunks.len() - 1) * CHUNK_UNITS + self.bump;
        self.bump += units;
        self.touched_units += units;
        self.live_units += units;
        Some(handle as u32)
    }
    /// Starts a chunk; what is left of the last one becomes a free slot.
    fn open_chunk(&mut self) -> Option<()> {
        if self.chunks.len() >= CHUNKS_MAX {
            return None;
        }
        if let Some(last) = self.chunks.len().checked_sub(1) {
            let left = CHUNK_UNITS - self.bump;
            if left > 0 {
                self.lengthen(CHUNK_BYTES);
                self.touched_units += left;
                self.put((last * CHUNK_UNITS + self.bump) as u32, left);
            }
        }
        if self.chunks.is_empty() {
            self.chunks.reserve_exact(1);
        }
        self.chunks.push(Vec::new());
        self.bump = 0;
        Some(())
    }
    /// Makes the last chunk at least `need` bytes long: by an eighth of everything, so that small collections stay
    /// small.
    fn lengthen(&mut self, need: usize) {
        let more = (self.bytes / 8).max(CHUNK_BYTES_MIN);
        let Some(chunk) = self.chunks.last_mut() else { return };
        if chunk.len() < need {
            let len = need.max(chunk.len() + more).next_multiple_of(UNIT).min(CHUNK_BYTES);
            self.bytes += len - chunk.len();
            chunk.reserve_exact(len - chunk.len());
            chunk.resize(len, 0);
        }
    }
    fn put(&mut self, handle: u32, units: usize) {
        if self.free.len() <= units {
            self.free.reserve_exact(units + 1 - self.free.len());
            self.free.resize(units + 1, NONE);
        }
        let next = self.free[units];
        if let Some(word) = self.slice_mut(handle).first_chunk_mut() {
            *word = next.to_le_bytes();
        }
        self.free[units] = handle;
    }
}

/// All records of a collection.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    /// The present generation.
    arena: Arena,
    /// The one before, while its records move.
    old: Option<Box<Arena>>,
    /// The bit of handles of the present one.
    generation: u32,
    large: Option<Box<Large>>,
}

/// Records that have an allocation of their own.
#[derive(Clone, Debug, Default)]
struct Large {
    rows: Vec<Vec<Box<[u8]>>>,
    free: Vec<u32>,
    bytes: usize,
}

impl Large {
    /// Memory of all of them. Constant time: all rows but the last one are full.
    fn memory_bytes(&self) -> usize {
        let places = self.rows.last().map_or(0, |last| (self.rows.len() - 1) * LARGE_ROW + last.capacity());
        let rows = self.rows.capacity() * size_of::<Vec<Box<[u8]>>>();
        size_of::<Self>() + places * size_of::<Box<[u8]>>() + rows + self.free.capacity() * 4 + self.bytes
    }
    fn alloc(&mut self, len: usize) -> u32 {
        self.bytes += len;
        let record = vec![0; len].into_boxed_slice();
        if let Some(index) = self.free.pop() {
            *self.at_mut(index) = record;
            return index;
        }
        if self.rows.last().is_none_or(|row| row.len() == LARGE_ROW) {
            self.rows.push(Vec::new());
        }
        let row = self.rows.len() - 1;
        self.rows[row].push(record);
        (row * LARGE_ROW + self.rows[row].len() - 1) as u32
    }
    fn at(&self, index: u32) -> &[u8] {
        &self.rows[index as usize / LARGE_ROW][index as usize % LARGE_ROW]
    }
    fn at_mut(&mut self, index: u32) -> &mut Box<[u8]> {
        &mut self.rows[index as usize / LARGE_ROW][index as usize % LARGE_ROW]
    }
    fn give_back(&mut self, index: u32) {
        self.bytes -= std::mem::take(self.at_mut(index)).len();
        self.free.push(index);
    }
}

impl Records {
    pub(crate) const fn new() -> Self {
        Self { arena: Arena::new(), old: None, generation: 0, large: None }
    }
    /// Memory of everything.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        let beside = if self.old.is_none() && self.large.is_none() { 0 } else { self.memory_bytes_beside() };
        self.arena.memory_bytes() + beside
    }
    #[cold]
    fn memory_bytes_beside(&self) -> usize {
        let old = self.old.as_ref().map_or(0, |old| size_of::<Arena>() + old.memory_bytes());
        old + self.large.as_ref().map_or(0, |large| large.memory_bytes())
    }
    /// Makes room for a record of `len` bytes, which are then written through [`Records::bytes_mut`].
    pub(crate) fn alloc(&mut self, len: usize) -> Handle {
        let len = len.max(1);
        if len <= RECORD_BYTES_MAX
            && let Some(handle) = self.arena.alloc(len.div_ceil(UNIT))
        {
            return Handle(handle | self.generation);
        }
        Handle(self.large.get_or_insert_default().alloc(len) | LARGE)
    }
    /// The generation of a handle that is not large.
    #[inline]
    fn arena_of_mut(&mut self, handle: u32) -> &mut Arena {
        match &mut self.old {
            Some(old) if handle & GENERATION != self.generation => old,
            _ => &mut self.arena,
        }
    }
    /// The record's bytes, and some after it: a record knows its length.
    #[inline]
    pub(crate) fn bytes(&self, Handle(handle): Handle) -> &[u8] {
        // One look says that it stands where nearly all do.
        if handle & (LARGE | GENERATION) == self.generation {
            return self.arena.slice(handle);
        }
        self.bytes_elsewhere(handle)
    }
    fn bytes_elsewhere(&self, handle: u32) -> &[u8] {
        if handle & LARGE != 0 {
            return self.large.as_ref().map_or(&[], |large| large.at(handle & !LARGE));
        }
        self.old.as_ref().map_or(&[], |old| old.slice(handle))
    }
    pub(crate) fn bytes_mut(&mut self, Handle(handle): Handle) -> &mut [u8] {
        if handle & LARGE != 0 {
            return self.large.as_mut().map_or(&mut [], |large| large.at_mut(handle & !LARGE));
        }
        self.arena_of_mut(handle).slice_mut(handle)
    }
    /// Frees a record of `len` bytes.
    pub(crate) fn free(&mut self, Handle(handle): Handle, len: usize) {
        if handle & LARGE != 0 {
            if let Some(large) = &mut self.large {
                large.give_back(handle & !LARGE);
            }
            return;
        }
        let units = len.max(1).div_ceil(UNIT);
        let arena = self.arena_of_mut(handle);
        arena.live_units -= units;
        arena.put(handle & !GENERATION, units);
    }
    /// Whether a record of `len` bytes fits where one of `old` bytes stands.
    pub(crate) const fn same_size(handle: Handle, old: usize, len: usize) -> bool {
        if handle.0 & LARGE != 0 { old == len } else { old.div_ceil(UNIT) == len.div_ceil(UNIT) }
    }

    /// Copies a record of `len` bytes of the old generation into the present one.
    pub(crate) fn copy(&mut self, old: Handle, len: usize) -> Handle {
        let new = self.alloc(len);
        if new.0 & LARGE != 0 {
            let bytes = self.bytes(old)[..len].to_vec();
            self.bytes_mut(new)[..len].copy_from_slice(&bytes);
            return new;
        }
        if let Some(from) = &self.old {
            self.arena.slice_mut(new.0)[..len].copy_from_slice(&from.slice(old.0)[..len]);
        }
        new
    }

    /// Whether so much is free that the records should move together.
    pub(crate) fn is_wasteful(&self, waste: Waste) -> bool {
        let free = self.arena.touched_units - self.arena.live_units;
        let is_much = match waste {
            Waste::Little => free * 2 > self.arena.live_units,
            Waste::Much => free > self.arena.live_units * 2,
        };
        self.old.is_none() && free * UNIT >= WASTE_BYTES_MIN && is_much
    }
    /// Bytes of the records in chunks of the old generation.
    pub(crate) fn old_live_bytes(&self) -> usize {
        self.old.as_ref().map_or(0, |old| old.live_units * UNIT)
    }
    /// Begins a new generation: from now on records are allocated there.
    pub(crate) fn turn(&mut self) {
        self.old = Some(Box::new(std::mem::replace(&mut self.arena, Arena::new())));
        self.generation ^= GENERATION;
    }
    /// Whether a record still stands in the old generation.
    pub(crate) const fn is_old(&self, Handle(handle): Handle) -> bool {
        handle & LARGE == 0 && handle & GENERATION != self.generation
    }
    /// Frees up to `chunks` chunks of the old generation, in which no record is left. Returns whether that was all.
    pub(crate) fn drop_old(&mut self, chunks: usize) -> bool {
        let Some(old) = &mut self.old else { return true };
        debug_assert_eq!(old.live_units, 0);
        for _ in 0..chunks {
            let Some(chunk) = old.chunks.pop() else { break };
            old.bytes -= chunk.len();
        }
        if old.chunks.is_empty() {
            self.old = None;
        }
        self.old.is_none()
    }
    /// Frees up to `chunks` chunks of what nobody refers to any more. Returns whether that was all.
    pub(crate) fn free_step(&mut self, chunks: usize) -> bool {
        let mut left = false;
        if let Some(large) = &mut self.large {
            for _ in 0..chunks {
                let row = large.rows.pop();
                large.bytes -= row.iter().flatten().map(|record| record.len()).sum::<usize>();
            }
            left |= !large.rows.is_empty();
        }
        for arena in std::iter::once(&mut self.arena).chain(self.old.as_deref_mut()) {
            for _ in 0..chunks {
                arena.bytes -= arena.chunks.pop().map_or(0, |chunk| chunk.len());
            }
            left |= !arena.chunks.is_empty();
        }
        !left
    }
}
