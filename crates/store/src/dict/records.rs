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
const CLASSES: usize = RECORD_BYTES_MAX / UNIT + 1;
/// The first chunk begins with this and grows.
const CHUNK_BYTES_MIN: usize = 512;
/// Large records under one vector, so that adding one never copies many.
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
    /// Units of the last chunk that have been handed out.
    bump: usize,
    /// First free slot of each size in units.
    free: Box<[u32; CLASSES]>,
    live_units: usize,
    /// Units handed out at least once.
    touched_units: usize,
    bytes: usize,
}

impl Arena {
    fn new() -> Self {
        Self {
            chunks: Vec::new(),
            bump: 0,
            free: Box::new([NONE; CLASSES]),
            live_units: 0,
            touched_units: 0,
            bytes: 0,
        }
    }
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
        let first = self.free[units];
        if first != NONE {
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
    generations: [Arena; 2],
    current: usize,
    large: Vec<Vec<Box<[u8]>>>,
    large_free: Vec<u32>,
    large_bytes: usize,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self {
            generations: [Arena::new(), Arena::new()],
            current: 0,
            large: Vec::new(),
            large_free: Vec::new(),
            large_bytes: 0,
        }
    }
    /// Memory of everything.
    pub(crate) fn memory_bytes(&self) -> usize {
        let fixed = 2 * size_of::<[u32; CLASSES]>();
        let arena = |arena: &Arena| arena.bytes + arena.chunks.capacity() * size_of::<Vec<u8>>();
        let rows = self.large.len() * LARGE_ROW * size_of::<Box<[u8]>>();
        fixed
            + self.generations.iter().map(arena).sum::<usize>()
            + rows
            + self.large.capacity() * size_of::<Vec<Box<[u8]>>>()
            + self.large_free.capacity() * 4
            + self.large_bytes
    }
    /// Makes room for a record of `len` bytes, which are then written through [`Records::bytes_mut`].
    pub(crate) fn alloc(&mut self, len: usize) -> Handle {
        let len = len.max(1);
        if len <= RECORD_BYTES_MAX
            && let Some(handle) = self.generations[self.current].alloc(len.div_ceil(UNIT))
        {
            return Handle(handle | if self.current == 1 { GENERATION } else { 0 });
        }
        self.large_bytes += len;
        let record = vec![0; len].into_boxed_slice();
        if let Some(index) = self.large_free.pop() {
            self.large[index as usize / LARGE_ROW][index as usize % LARGE_ROW] = record;
            return Handle(index | LARGE);
        }
        if self.large.last().is_none_or(|row| row.len() == LARGE_ROW) {
            self.large.push(Vec::with_capacity(LARGE_ROW));
        }
        let row = self.large.len() - 1;
        self.large[row].push(record);
        Handle((row * LARGE_ROW + self.large[row].len() - 1) as u32 | LARGE)
    }
    /// The record's bytes, and some after it: a record knows its length.
    #[inline]
    pub(crate) fn bytes(&self, Handle(handle): Handle) -> &[u8] {
        if handle & LARGE != 0 {
            let index = (handle & !LARGE) as usize;
            return &self.large[index / LARGE_ROW][index % LARGE_ROW];
        }
        self.generations[usize::from(handle & GENERATION != 0)].slice(handle)
    }
    pub(crate) fn bytes_mut(&mut self, Handle(handle): Handle) -> &mut [u8] {
        if handle & LARGE != 0 {
            let index = (handle & !LARGE) as usize;
            return &mut self.large[index / LARGE_ROW][index % LARGE_ROW];
        }
        self.generations[usize::from(handle & GENERATION != 0)].slice_mut(handle)
    }
    /// Frees a record of `len` bytes.
    pub(crate) fn free(&mut self, Handle(handle): Handle, len: usize) {
        let len = len.max(1);
        if handle & LARGE != 0 {
            let index = handle & !LARGE;
            let record = &mut self.large[index as usize / LARGE_ROW][index as usize % LARGE_ROW];
            self.large_bytes -= record.len();
            *record = Box::default();
            self.large_free.push(index);
            return;
        }
        let arena = &mut self.generations[usize::from(handle & GENERATION != 0)];
        let units = len.div_ceil(UNIT);
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
        let [one, two] = &mut self.generations;
        let (from, to) = if self.current == 1 { (one, two) } else { (two, one) };
        to.slice_mut(new.0)[..len].copy_from_slice(&from.slice(old.0)[..len]);
        new
    }

    /// Whether so much is free that the records should move together.
    pub(crate) fn is_wasteful(&self, waste: Waste) -> bool {
        let arena = &self.generations[self.current];
        let free = arena.touched_units - arena.live_units;
        let is_much = match waste {
            Waste::Little => free * 2 > arena.live_units,
            Waste::Much => free > arena.live_units * 2,
        };
        self.generations[1 - self.current].chunks.is_empty() && free * UNIT >= WASTE_BYTES_MIN && is_much
    }
    /// Bytes of the records in chunks of the old generation.
    pub(crate) const fn old_live_bytes(&self) -> usize {
        self.generations[1 - self.current].live_units * UNIT
    }
    /// Begins a new generation: from now on records are allocated there.
    pub(crate) const fn turn(&mut self) {
        self.current = 1 - self.current;
    }
    /// Whether a record still stands in the old generation.
    pub(crate) const fn is_old(&self, Handle(handle): Handle) -> bool {
        handle & LARGE == 0 && (handle & GENERATION != 0) != (self.current == 1)
    }
    /// Frees up to `chunks` chunks of the old generation, in which no record is left. Returns whether that was all.
    pub(crate) fn drop_old(&mut self, chunks: usize) -> bool {
        let old = &mut self.generations[1 - self.current];
        debug_assert_eq!(old.live_units, 0);
        for _ in 0..chunks {
            let Some(chunk) = old.chunks.pop() else { break };
            old.bytes -= chunk.len();
        }
        let done = old.chunks.is_empty();
        if done {
            *old = Arena::new();
        }
        done
    }
    /// Frees up to `chunks` chunks of what nobody refers to any more. Returns whether that was all.
    pub(crate) fn free_step(&mut self, chunks: usize) -> bool {
        for _ in 0..chunks {
            let row = self.large.pop();
            self.large_bytes -= row.iter().flatten().map(|record| record.len()).sum::<usize>();
            for arena in &mut self.generations {
                arena.bytes -= arena.chunks.pop().map_or(0, |chunk| chunk.len());
            }
        }
        self.large.is_empty() && self.generations.iter().all(|arena| arena.chunks.is_empty())
    }
}
