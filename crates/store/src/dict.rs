//! Owns: the large form of hashes and sets, and the dictionary of sorted sets: `crate::table` over records of one
//! collection. Does not own: when a collection becomes large, what an expired field means to a command.
//!
//! The table's slots hold handles instead of pointers, shifted so that the table's mark (the record has an expiry)
//! keeps its bit. A record is
//!
//! ```text
//! +---------------+-------------------+--------------------+-----+-------+
//! | expiry, u64 * | key length, LEB128 | value length ** … | key | value |
//! +---------------+-------------------+--------------------+-----+-------+
//!  * only if marked      ** not in sets
//! ```
//! so a member of 16 bytes takes 24 bytes and about 12 of the table.
//!
//! The table is in hash order, and so is a walk over it. Members of one collection that are added to another one in the
//! order of a walk must not come in the order of the other's table: they would all crowd into its first buckets, and
//! each would be looked for past all before it. So each dictionary multiplies hashes by a number of its own, which is
//! the keyed hash of how many there were before it ([`Hashes`]): nobody can make a second one with the same, whatever
//! is put into it.
//!
//! Nothing here is done at once that grows with the collection: the table resizes as it does in the keyspace, records
//! move a bucket at a time ([`Dict::tidy`]), and what takes long to free goes to the reaper.

mod records;
#[cfg(test)]
pub(crate) mod tests;

use crate::ahead::Ahead;
use crate::clock::Rng;
use crate::hash::KeyHasher;
use crate::leb;
use crate::prefetch;
use crate::reaper::Backing;
use crate::table::array::{Array, Tagged};
use crate::table::head::Home;
use crate::table::{Facts, Pos, Table};
pub(crate) use records::Handle;
use records::Records;
use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

/// Buckets whose records a write moves while a generation ends: some 12 records, 1 µs.
const MOVE_BUCKETS: usize = 2;
/// Records whose lines are asked for together.
const MOVE_RECORDS: usize = 64;
/// Records up to this many bytes are moved at once: about 50 µs.
const MOVE_AT_ONCE_BYTES: usize = 16 << 10;
/// Chunks of an old generation freed by a write.
const DROP_CHUNKS: usize = 2;
/// No expiry.
pub(crate) const NEVER: u64 = u64::MAX;
/// Members from which on it pays to ask for what the next look-ups will touch: what fewer take is near anyhow.
const AHEAD_MIN: usize = 4096;
/// Tries after which a random choice goes on to the next record instead of rolling again.
const ROLLS_MAX: u32 = 256;

/// A record, borrowed from its dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// [`NEVER`] without one.
    pub(crate) expire_ms: u64,
    /// Bytes of the whole record.
    len: usize,
}

/// Where a key was found. Good until the dictionary's next change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pos: Pos,
    hash: u64,
    pub(crate) handle: Handle,
    /// Bytes of the whole record, and of its value, which is the end of it.
    len: u32,
    value_len: u32,
    expires: bool,
}

/// That a key is not there, for who adds it: what the look-up has worked out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Absent {
    hash: u64,
}

impl Spot {
    fn new(pos: Pos, hash: u64, tagged: Tagged, record: &Record<'_>) -> Self {
        // Both fit: a value is at most 512 MiB.
        let (len, value_len) = (record.len as u32, record.value.len() as u32);
        Self { pos, hash, handle: untag(tagged), len, value_len, expires: tagged.marked() }
    }
}

/// See the module's comment.
pub(crate) struct Dict {
    table: Table,
    records: Records,
    hashes: Hashes,
    /// Whether records have a value: not in sets.
    valued: bool,
    /// The earliest expiry or something earlier.
    next_due_ms: u64,
    /// The position from which on records have not moved to the new generation yet.
    moving: Option<u32>,
    /// How much may be free before records move.
    waste: Waste,
}

/// The hashes of one dictionary's members.
#[derive(Clone)]
struct Hashes {
    keys: KeyHasher,
    /// Odd, so that no two hashes become one.
    factor: u64,
}

impl Hashes {
    fn new(backing: Backing<'_>) -> Self {
        let number = backing.dicts.fetch_add(1, Relaxed);
        Self { keys: backing.hasher.clone(), factor: backing.hasher.hash(&number.to_le_bytes()) | 1 }
    }
    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        self.of(self.keys.hash(key))
    }
    /// The same of a hash that the keyspace's hasher gave.
    #[inline]
    const fn of(&self, hash: u64) -> u64 {
        hash.wrapping_mul(self.factor)
    }
}

/// How much of the memory of records may be free before they move together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waste {
    /// Half as much as the records: hashes and sets.
    Little,
    /// Twice as much, and a table three quarters empty: sorted sets, which are emptied element by element, and whose
    /// tree has the handles of the records too.
    Much,
}

fn tag(handle: Handle, marked: bool) -> Tagged {
    let address = NonZero::<usize>::MIN.saturating_add(handle.0 as usize).get() << 3;
    Tagged::new(NonNull::without_provenance(NonZero::new(address).unwrap_or(NonZero::<usize>::MAX)), marked)
}

#[inline]
fn untag(tagged: Tagged) -> Handle {
    Handle(((tagged.entry().addr().get() >> 3) - 1) as u32)
}

/// Reads a record.
#[inline]
fn read(records: &Records, valued: bool, tagged: Tagged) -> Record<'_> {
    let bytes = records.bytes(untag(tagged));
    let mut at = 0;
    let mut expire_ms = NEVER;
    if tagged.marked() {
        expire_ms = bytes.first_chunk().map_or(NEVER, |word| u64::from_le_bytes(*word));
        at = 8;
    }
    let (key_len, head) = leb::read(&bytes[at..]);
    at += head;
    let mut value_len = 0;
    if valued {
        let (len, head) = leb::read(&bytes[at..]);
        (value_len, at) = (len, at + head);
    }
    let (key, rest) = bytes[at..].split_at(key_len);
    Record { key, value: &rest[..value_len], expire_ms, len: at + key_len + value_len }
}

fn record_bytes(valued: bool, key: usize, value: usize, expires: bool) -> usize {
    let values = if valued { leb::size(value) + value } else { 0 };
    leb::size(key) + key + values + if expires { 8 } else { 0 }
}

/// Writes a record over the head of `out`.
fn write(out: &mut [u8], valued: bool, key: &[u8], value: &[u8], expire_ms: u64) {
    let mut at = 0;
    if expire_ms != NEVER {
        out[..8].copy_from_slice(&expire_ms.to_le_bytes());
        at = 8;
    }
    let head = leb::size(key.len());
    leb::write(&mut out[at..at + head], key.len());
    at += head;
    if valued {
        let head = leb::size(value.len());
        leb::write(&mut out[at..at + head], value.len());
        at += head;
    }
    out[at..at + key.len()].copy_from_slice(key);
    if valued {
        out[at + key.len()..at + key.len() + value.len()].copy_from_slice(value);
    }
}

/// The table's home, which knows the records that its slots name.
struct Owner<'o> {
    backing: Backing<'o>,
    records: &'o Records,
}

impl Home for Owner<'_> {
    #[inline]
    fn ask_for(&self, entry: Tagged) {
        prefetch::line(self.records.bytes(untag(entry)).as_ptr());
    }
    fn publish(&self, main: Option<&Array>, next: Option<&Array>) {
        self.backing.publish(main, next);
    }
    fn advance(&self, migrated: u32) {
        self.backing.advance(migrated);
    }
    fn retire(&self, array: Array) {
        self.backing.retire(array);
    }
    fn array(&self, step: u8) -> Array {
        self.backing.array(step)
    }
}

/// What the table must know of a record.
#[inline]
fn facts<'d>(records: &'d Records, hashes: &'d Hashes, valued: bool) -> impl Fn(Tagged) -> Facts + 'd {
    move |tagged| {
        let record = read(records, valued, tagged);
        (hashes.hash(record.key), record.expire_ms)
    }
}

impl Dict {
    pub(crate) fn new(valued: bool, waste: Waste, backing: Backing<'_>) -> Self {
        let table = match waste {
            Waste::Little => Table::new(0),
            Waste::Much => Table::new(0).slow_to_shrink(),
        };
        Self {
            table,
            records: Records::new(),
            hashes: Hashes::new(backing),
            valued,
            next_due_ms: NEVER,
            moving: None,
            waste,
        }
    }
    pub(crate) const fn len(&self) -> usize {
        self.table.len()
    }
    /// Records with an expiry.
    pub(crate) const fn expiring(&self) -> usize {
        self.table.marked()
    }
    /// The earliest expiry or something earlier; [`NEVER`] when no record has one.
    pub(crate) const fn next_due_ms(&self) -> u64 {
        self.next_due_ms
    }
    /// Memory beyond the struct. Constant time.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.bytes() + self.records.memory_bytes()
    }
    /// The record of a handle without an expiry.
    #[inline]
    pub(crate) fn record(&self, handle: Handle) -> Record<'_> {
        read(&self.records, self.valued, tag(handle, false))
    }
    /// The key of a handle without an expiry.
    #[inline]
    pub(crate) fn key(&self, handle: Handle) -> &[u8] {
        let bytes = self.records.bytes(handle);
        let (len, mut at) = leb::read(bytes);
        if self.valued {
            at += leb::read(&bytes[at..]).1;
        }
        &bytes[at..at + len]
    }
    /// The record at a spot.
    pub(crate) fn at(&self, spot: Spot) -> Record<'_> {
        read(&self.records, self.valued, self.table.at(spot.pos))
    }
    /// Finds a key: a line of the table, then the record's.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<Spot> {
        self.find_record(key).map(|(spot, _)| spot)
    }
    /// The same with the record.
    #[inline]
    pub(crate) fn find_record(&self, key: &[u8]) -> Option<(Spot, Record<'_>)> {
        self.seek(key).ok()
    }
    /// The same for who adds the key where it is not there.
    #[inline]
    pub(crate) fn seek(&self, key: &[u8]) -> Result<(Spot, Record<'_>), Absent> {
        let hash = self.hashes.hash(key);
        let mut seen = None;
        let pos = self.table.find(hash, |tagged| {
            let record = read(&self.records, self.valued, tagged);
            let equal = record.key == key;
            if equal {
                seen = Some((tagged, record));
            }
            equal
        });
        match (pos, seen) {
            (Some(pos), Some((tagged, record))) => Ok((Spot::new(pos, hash, tagged, &record), record)),
            _ => Err(Absent { hash }),
        }
    }
    /// Whether a key is there.
    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        let equal = |tagged| read(&self.records, self.valued, tagged).key == key;
        self.table.find(self.hashes.hash(key), equal).is_some()
    }
    /// Asks for what the next look-ups will touch.
    #[inline]
    pub(crate) fn look_ahead(&self, ahead: Ahead) {
        if self.len() >= AHEAD_MIN {
            self.ask_ahead(ahead);
        }
    }
    fn ask_ahead(&self, ahead: Ahead) {
        if ahead.near != 0 {
            // Looks at tags only: no key is equal.
            let _ = self.table.find(self.hashes.of(ahead.near), |tagged| {
                self.prefetch(untag(tagged));
                false
            });
        }
        if ahead.far != 0 {
            self.table.prefetch(self.hashes.of(ahead.far));
        }
    }
    /// Asks for a record of up to two lines.
    #[inline]
    pub(crate) fn prefetch(&self, handle: Handle) {
        let start = self.records.bytes(handle).as_ptr();
        prefetch::line(start);
        prefetch::line(start.wrapping_add(48));
    }
    /// Asks for the bucket of a record.
    pub(crate) fn prefetch_bucket(&self, handle: Handle) {
        self.table.prefetch(self.hashes.hash(self.key(handle)));
    }
    /// The record of a key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<Record<'_>> {
        self.find_record(key).map(|(_, record)| record)
    }

    /// Adds a record whose key is not there.
    pub(crate) fn insert(
        &mut self,
        key: &[u8],
        value: &[u8],
        expire_ms: u64,
        backing: Backing<'_>,
    ) -> Handle {
        self.insert_sought(self.absent(key), (key, value, expire_ms), backing)
    }
    /// A key that is known not to be there.
    pub(crate) fn absent(&self, key: &[u8]) -> Absent {
        Absent { hash: self.hashes.hash(key) }
    }
    /// The same behind a look-up.
    pub(crate) fn insert_sought(
        &mut self,
        Absent { hash }: Absent,
        (key, value, expire_ms): (&[u8], &[u8], u64),
        backing: Backing<'_>,
    ) -> Handle {
        let expires = expire_ms != NEVER;
        let handle = self.records.alloc(record_bytes(self.valued, key.len(), value.len(), expires));
        write(self.records.bytes_mut(handle), self.valued, key, value, expire_ms);
        self.next_due_ms = self.next_due_ms.min(expire_ms);
        let Self { table, records, hashes, valued, .. } = self;
        let facts = facts(records, hashes, *valued);
        table.insert((hash, expire_ms), tag(handle, expires), &facts, &Owner { backing, records });
        handle
    }

    /// Gives the record at `spot` another value and expiry: in place when it takes as many units.
    pub(crate) fn replace(&mut self, spot: Spot, value: &[u8], expire_ms: u64) -> Handle {
        let len = spot.len as usize;
        if expire_ms == NEVER && !spot.expires && value.len() == spot.value_len as usize {
            self.records.bytes_mut(spot.handle)[len - value.len()..len].copy_from_slice(value);
            return spot.handle;
        }
        let old = self.at(spot);
        let (old_len, expires) = (old.len, expire_ms != NEVER);
        let len = record_bytes(self.valued, old.key.len(), value.len(), expires);
        let mut handle = spot.handle;
        if Records::same_size(handle, old_len, len) {
            if old.value.len() == value.len() && expires == (old.expire_ms != NEVER) {
                let bytes = self.records.bytes_mut(handle);
                bytes[len - value.len()..len].copy_from_slice(value);
                if expires {
                    bytes[..8].copy_from_slice(&expire_ms.to_le_bytes());
                }
            } else {
                let key = old.key.to_vec();
                write(self.records.bytes_mut(handle), self.valued, &key, value, expire_ms);
            }
        } else {
            let key = old.key.to_vec();
            handle = self.records.alloc(len);
            write(self.records.bytes_mut(handle), self.valued, &key, value, expire_ms);
            self.records.free(spot.handle, old_len);
        }
        self.next_due_ms = self.next_due_ms.min(expire_ms);
        self.table.replace(spot.pos, tag(handle, expires), expire_ms);
        handle
    }

    /// [`Dict::replace`] and [`Dict::tidy`]: what stays as long as it was makes nothing free.
    #[inline]
    pub(crate) fn replace_tidily(&mut self, spot: Spot, value: &[u8], expire_ms: u64) {
        let stays = expire_ms == NEVER && !spot.expires && value.len() == spot.value_len as usize;
        self.replace(spot, value, expire_ms);
        if !stays || self.moving.is_some() {
            self.tidy();
        }
    }

    /// Sets or removes the expiry of the record at `spot`.
    pub(crate) fn set_expire_ms(&mut self, spot: Spot, expire_ms: u64) {
        let value = self.at(spot).value.to_vec();
        self.replace(spot, &value, expire_ms);
    }

    /// Takes the record of a handle without an expiry out, after showing it.
    pub(crate) fn remove_handle(
        &mut self,
        handle: Handle,
        backing: Backing<'_>,
        show: impl FnOnce(Record<'_>),
    ) {
        let (tagged, record) = (tag(handle, false), self.record(handle));
        show(record);
        let hash = self.hashes.hash(record.key);
        if let Some(pos) = self.table.find_pointer(hash, tagged) {
            self.remove(Spot::new(pos, hash, tagged, &record), backing);
        }
    }

    /// Takes a record out.
    pub(crate) fn remove(&mut self, spot: Spot, backing: Backing<'_>) {
        let len = spot.len as usize;
        let Self { table, records, hashes, valued, .. } = self;
        table.remove(spot.pos, spot.hash, &facts(records, hashes, *valued), &Owner { backing, records });
        records.free(spot.handle, len);
        if self.table.marked() == 0 {
            self.next_due_ms = NEVER;
        }
    }

    /// Goes on with moving records to a new generation, or begins to when much is free. To be called after every
    /// removal and replacement.
    pub(crate) fn tidy(&mut self) {
        let Some(at_once) = self.moves() else { return };
        let buckets = if at_once { usize::MAX } else { MOVE_BUCKETS };
        for _ in 0..buckets {
            let Some(from) = self.moving else { break };
            let next = self.move_bucket(from);
            if next.is_none() && !self.records.drop_old(DROP_CHUNKS) {
                // The chunks that are left go with the next writes; there is nothing left to move.
                self.moving = Some(u32::MAX);
                break;
            }
            self.moving = next;
        }
    }

    /// Whether records move to a new generation, which begins when much is free; if so, whether that is little enough
    /// to be done at once. Who knows the records by their handles moves them by [`Dict::move_records`], all others by
    /// [`Dict::tidy`].
    pub(crate) fn moves(&mut self) -> Option<bool> {
        if self.moving.is_some() {
            return Some(false);
        }
        if !self.records.is_wasteful(self.waste) {
            return None;
        }
        self.records.turn();
        self.moving = Some(0);
        Some(self.records.old_live_bytes() <= MOVE_AT_ONCE_BYTES)
    }

    /// After some were moved: whether none is left in the old generation, whose memory then goes with this call and the
    /// next ones.
    pub(crate) fn has_moved(&mut self) -> bool {
        let done = self.records.old_live_bytes() == 0;
        if done && self.records.drop_old(DROP_CHUNKS) {
            self.moving = None;
        }
        done
    }

    /// Moves the records of some handles to the new generation, unless they are there, and writes down their new
    /// handles. None has an expiry. Their lines, then their buckets, are asked for together: some 40 ns a record.
    pub(crate) fn move_records(&mut self, handles: &mut [u32]) {
        let mut hashes = [0; MOVE_RECORDS];
        for handles in handles.chunks_mut(MOVE_RECORDS) {
            let old = |handle: &u32| self.records.is_old(Handle(*handle));
            handles.iter().filter(|handle| old(handle)).for_each(|&handle| self.prefetch(Handle(handle)));
            for (handle, hash) in handles.iter().zip(&mut hashes).filter(|(handle, _)| old(handle)) {
                *hash = self.hashes.hash(self.key(Handle(*handle)));
                self.table.prefetch(*hash);
            }
            for (handle, &hash) in handles.iter_mut().zip(&hashes) {
                if self.records.is_old(Handle(*handle)) {
                    *handle = self.move_record(tag(Handle(*handle), false), hash).0;
                }
            }
        }
    }

    fn move_bucket(&mut self, from: u32) -> Option<u32> {
        let mut found = Vec::with_capacity(16);
        let hash_of = |tagged| self.hashes.hash(read(&self.records, self.valued, tagged).key);
        let next = self.table.scan(from, &hash_of, |tagged, hash| found.push((tagged, hash)));
        for (tagged, hash) in found {
            if self.records.is_old(untag(tagged)) {
                self.move_record(tagged, hash);
            }
        }
        next
    }

    /// Moves one record of the old generation. Returns its new handle.
    fn move_record(&mut self, tagged: Tagged, hash: u64) -> Handle {
        let old = untag(tagged);
        let record = read(&self.records, self.valued, tagged);
        let (len, expire_ms) = (record.len, record.expire_ms);
        let new = self.records.copy(old, len);
        let pos = self.table.find_pointer(hash, tagged).expect("a record that moves is in the table");
        self.table.replace(pos, tag(new, tagged.marked()), expire_ms);
        self.records.free(old, len);
        new
    }

    /// Visits the records from a cursor on, until `count` have been met or everything is; returns the next cursor, 0 at
    /// the end. Promises what SCAN does: what stays is met, whatever resizes happen in between.
    pub(crate) fn scan<'d>(&'d self, cursor: u64, count: usize, mut visit: impl FnMut(Record<'d>)) -> u64 {
        let hash_of = |tagged| self.hashes.hash(read(&self.records, self.valued, tagged).key);
        let mut met = 0;
        let mut at = u32::try_from(cursor).ok();
        // As in Redis, empty stretches count a tenth of an element each, so that a call ends.
        let mut buckets = count.saturating_mul(10);
        while let Some(from) = at
            && met < count
            && buckets > 0
        {
            buckets -= 1;
            at = self.table.scan(from, &hash_of, |tagged, _| {
                met += 1;
                visit(read(&self.records, self.valued, tagged));
            });
        }
        at.map_or(0, u64::from)
    }

    /// All records, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Record<'_>> + '_ {
        self.table.entries().map(|tagged| read(&self.records, self.valued, tagged))
    }

    /// A record by chance, each equally likely.
    pub(crate) fn random(&self, rng: &mut dyn Rng) -> Option<Record<'_>> {
        let (_, tagged) = self.table.random(rng, ROLLS_MAX)?;
        Some(read(&self.records, self.valued, tagged))
    }
    /// The same with its place.
    pub(crate) fn random_spot(&self, rng: &mut dyn Rng) -> Option<(Spot, Record<'_>)> {
        let (pos, tagged) = self.table.random(rng, ROLLS_MAX)?;
        let record = read(&self.records, self.valued, tagged);
        Some((Spot::new(pos, self.hashes.hash(record.key), tagged, &record), record))
    }

    /// Removes records whose time has come, up to about `max` (a group of at most 224 is always finished), showing
    /// each. Returns how many.
    pub(crate) fn expire_due(
        &mut self,
        now_ms: u64,
        max: usize,
        backing: Backing<'_>,
        mut gone: impl FnMut(Record<'_>),
    ) -> usize {
        let mut removed = 0;
        let mut due = Vec::new();
        let mut start = 0;
        while removed < max {
            let Some((number, group)) = self.table.due_group(start, now_ms) else {
                if start == 0 {
                    break;
                }
                // Removals move entries, also to groups that were passed. Every visit raises a hint, so this ends.
                start = 0;
                continue;
            };
            let mut rest = NEVER;
            let (records, valued) = (&self.records, self.valued);
            self.table.visit_group(group, |tagged| {
                let record = read(records, valued, tagged);
                if record.expire_ms <= now_ms {
                    due.push(tagged);
                } else {
                    rest = rest.min(record.expire_ms);
                }
            });
            self.table.set_group_hint(group, rest);
            for tagged in due.drain(..) {
                let record = read(&self.records, self.valued, tagged);
                let hash = self.hashes.hash(record.key);
                let Some(pos) = self.table.find_pointer(hash, tagged) else { continue };
                gone(record);
                self.remove(Spot::new(pos, hash, tagged, &record), backing);
                removed += 1;
            }
            start = number + 1;
        }
        self.next_due_ms = self.table.next_expiry_ms();
        removed
    }

    /// A copy: the records' chunks and the table's buckets as they are.
    pub(crate) fn duplicate(&self) -> Self {
        Self {
            table: self.table.duplicate(),
            records: self.records.clone(),
            hashes: self.hashes.clone(),
            valued: self.valued,
            next_due_ms: self.next_due_ms,
            moving: self.moving,
            waste: self.waste,
        }
    }

    /// Frees a part of what nobody refers to any more: `chunks` times 64 KiB. Returns whether that was all but the
    /// table.
    pub(crate) fn free_step(&mut self, chunks: usize) -> bool {
        self.records.free_step(chunks)
    }
}

impl std::fmt::Debug for Dict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Dict").field("len", &self.len()).finish_non_exhaustive()
    }
}
