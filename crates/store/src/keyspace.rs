//! Owns: the shards, the workers' handles, and taking locks: one shard, or many in ascending order. Does not own: what
//! happens under a lock (`crate::shard`), what needs none (`sights`, `reads`, `rewrites`), what needs everything
//! (`world`).
//!
//! How a worker uses it, per batch of commands:
//!
//! 1. [`Worker::enter`] starts a [`Batch`]: one store and one fence.
//! 2. For each command, [`Keyspace::key`] hashes its key and [`Batch::prefetch_bucket`] asks for the bucket; then
//!    [`Batch::prefetch_entries`] asks for the entries that the tags in them point out. Neither takes a lock.
//! 3. A command that only reads strings takes what was seen then, if it is still there ([`Batch::read`]); any other
//!    locks its shards ([`Batch::lock`], [`Batch::lock_keys`]) and runs on the guards.
//! 4. Dropping the batch ends it. Locks do not outlive it, which the borrow checker sees to.
//!
//! A command that cannot name its keys ends the batch and takes [`Worker::world`], which waits until nobody is in one.

mod filling;
mod guards;
mod reads;
mod rewrites;
mod sights;
mod walk;
mod world;

use crate::access::AccessMode;
use crate::catalogue::Catalogue;
use crate::counters::{Counter, Counters, DATABASES_MAX};
use crate::entry::Garbage;
use crate::entry::heap::{Env, Key};
use crate::entry::sight::Sights;
use crate::epoch::{Closed, Pin, WORKERS_MAX};
use crate::groups::Hub;
use crate::hash::{KeyHasher, SHARDS_MAX, shard_of};
use crate::maintain::Flushed;
use crate::reaper::{Backing, Reaper};
use crate::save::Saves;
use crate::shard::{Shard, ShardGuard};
pub use crate::slab::pages::Collapse;
use crate::slab::pages::{PageSource, PageStats};
use crate::table::array::Array;
use crate::table::head::Directory;
pub use guards::Guards;
pub use reads::{Reads, ReadsOf};
pub use rewrites::Rewrites;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub use walk::Cursor;
pub use world::World;

/// How a keyspace is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// Shards: a power of two up to [`SHARDS_MAX`]. 1,024 keep two of 64 workers off one shard most of the time.
    pub shards: usize,
    /// Databases, 1 to [`DATABASES_MAX`].
    pub databases: usize,
    /// Worker handles that can be out at once: threads that run commands, and those for background work.
    pub workers: usize,
    /// The hash's key.
    pub hasher: KeyHasher,
    /// Seed of what is random in shards: sampling, spread of resizes.
    pub seed: u64,
    /// Let [`Keyspace::collapse`] put full regions into huge pages.
    pub huge_pages: bool,
}

impl Default for Config {
    fn default() -> Self {
        let hasher = KeyHasher::from_entropy();
        let seed = hasher.hash(b"seed");
        Self { shards: 1024, databases: DATABASES_MAX, workers: 64, hasher, seed, huge_pages: false }
    }
}

/// All keys of a server.
pub struct Keyspace {
    hasher: KeyHasher,
    mask: u32,
    databases: usize,
    // Before `directory` and `pages`, whose memory the shards' heaps refer to while they are dropped.
    shards: Box<[Shard]>,
    counters: Box<[Counters]>,
    pub(crate) directory: Directory,
    pub(crate) pages: PageSource,
    reaper: Reaper,
    /// Dictionaries that were made.
    dicts: AtomicU64,
    access: AtomicU32,
    hub: Hub,
    saves: Saves,
    catalogue: Catalogue,
    /// Until when what has expired is kept.
    expiry_paused_until_ms: AtomicU64,
    /// Somebody brings keys in whose times he keeps himself.
    importing: AtomicBool,
    pub(crate) flushed: Flushed,
}

impl Keyspace {
    /// An empty keyspace. Sizes outside their limits are brought inside.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let shards = config.shards.clamp(1, SHARDS_MAX).next_power_of_two();
        let databases = config.databases.clamp(1, DATABASES_MAX);
        let workers = config.workers.clamp(1, WORKERS_MAX);
        let shard = |at: usize| {
            let seed = config.hasher.hash(&(config.seed ^ at as u64).to_ne_bytes());
            Shard::new(databases, (seed & 15) as u8, seed)
        };
        Self {
            mask: shards as u32 - 1,
            databases,
            shards: (0..shards).map(shard).collect(),
            counters: (0..workers).map(|_| Counters::default()).collect(),
            directory: Directory::new(shards * databases, workers),
            pages: PageSource::new(config.huge_pages),
            reaper: Reaper::default(),
            dicts: AtomicU64::new(0),
            access: AtomicU32::new(0),
            hub: Hub::default(),
            saves: Saves::default(),
            catalogue: Catalogue::default(),
            expiry_paused_until_ms: AtomicU64::new(0),
            importing: AtomicBool::new(false),
            flushed: Flushed::default(),
            hasher: config.hasher,
        }
    }

    /// A key with its hash: 2 ns for 16 bytes.
    #[inline]
    #[must_use]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key { hash: self.hasher.hash(bytes), bytes }
    }
    /// A key whose hash is known.
    #[inline]
    #[must_use]
    pub fn key_with_hash<'a>(&self, bytes: &'a [u8], hash: u64) -> Key<'a> {
        debug_assert_eq!(hash, self.hasher.hash(bytes), "the hash is of this key");
        Key { hash, bytes }
    }
    /// The shard of a key.
    #[inline]
    #[must_use]
    pub fn shard_of(&self, key: &Key<'_>) -> u32 {
        shard_of(key.hash, self.mask)
    }
    /// The shard of a key with this hash.
    #[inline]
    #[must_use]
    pub const fn shard_of_hash(&self, hash: u64) -> u32 {
        shard_of(hash, self.mask)
    }
    /// Number of shards.
    #[must_use]
    pub fn shard_count(&self) -> u32 {
        self.mask + 1
    }
    /// Number of databases.
    #[must_use]
    pub const fn database_count(&self) -> usize {
        self.databases
    }

    /// A handle for a worker thread; `None` when all are out.
    #[must_use]
    pub fn worker(&self) -> Option<Worker<'_>> {
        self.directory.domain.join().map(|slot| Worker { keyspace: self, slot, sights: Sights::default() })
    }

    /// A counter's sum over all workers: one cache line each.
    #[must_use]
    pub fn total(&self, counter: Counter) -> i64 {
        self.counters.iter().map(|counters| counters.get(counter)).sum()
    }
    /// Memory of entries, values and tables: what `maxmemory` limits.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        usize::try_from(self.total(Counter::UsedBytes)).unwrap_or(0)
    }
    /// Memory taken from the operating system for entries, and tables waiting to be freed.
    #[must_use]
    pub fn page_stats(&self) -> PageStats {
        self.pages.stats()
    }
    /// Memory taken from the operating system for tables.
    #[must_use]
    pub fn table_resident_bytes(&self) -> usize {
        self.directory.runs.touched_bytes()
    }
    /// Tables that are freed as soon as the running batches end.
    #[must_use]
    pub fn limbo_bytes(&self) -> usize {
        self.directory.domain.limbo_sum(Array::bytes)
    }
    /// DBSIZE: without any lock.
    #[must_use]
    pub fn len(&self, db: u8) -> usize {
        usize::try_from(self.counters.iter().map(|counters| counters.keys(db as usize)).sum::<i64>())
            .unwrap_or(0)
    }
    /// Whether a database has no keys.
    #[must_use]
    pub fn is_empty(&self, db: u8) -> bool {
        self.len(db) == 0
    }
    /// Keys with an expiry.
    #[must_use]
    pub fn expiring(&self, db: u8) -> usize {
        let sum = self.counters.iter().map(|counters| counters.expiring(db as usize)).sum::<i64>();
        usize::try_from(sum).unwrap_or(0)
    }
    /// Hashes with fields that expire.
    #[must_use]
    pub fn with_fields(&self, db: u8) -> usize {
        let sum = self.counters.iter().map(|counters| counters.with_fields(db as usize)).sum::<i64>();
        usize::try_from(sum).unwrap_or(0)
    }
    /// Until this time what has expired cannot be seen but is not removed by reading it, so that nothing changes.
    /// Writing removes it. 0 ends the pause.
    pub fn pause_expiry(&self, until_ms: u64) {
        self.expiry_paused_until_ms.store(until_ms, Ordering::Relaxed);
    }
    /// While keys are brought in, what has expired is kept as in a pause, and a time that has come can be given to a
    /// key: who brings it in removes it.
    pub fn set_importing(&self, importing: bool) {
        self.importing.store(importing, Ordering::Relaxed);
    }
    /// Whether keys are brought in.
    #[must_use]
    pub fn is_importing(&self) -> bool {
        self.importing.load(Ordering::Relaxed)
    }
    /// Whether what has expired is kept.
    #[must_use]
    pub fn keeps_expired(&self, now_ms: u64) -> bool {
        now_ms < self.expiry_paused_until_ms.load(Ordering::Relaxed) || self.is_importing()
    }
    /// What stands outside of databases.
    #[must_use]
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }
    /// Somebody keeps what he has locked, shards or everything, for longer than others are to wait; or nobody does any
    /// more. Who waits *in time* (what is called so) then gives up; all others wait on, without running.
    pub fn set_kept(&self, is_kept: bool) {
        self.directory.domain.set_kept(is_kept);
    }
    #[inline]
    pub(crate) const fn hub(&self) -> &Hub {
        &self.hub
    }
    pub(crate) const fn saves(&self) -> &Saves {
        &self.saves
    }

    /// What a collection that is built outside a shard needs of the keyspace it will be set in.
    #[must_use]
    pub const fn backing(&self) -> Backing<'_> {
        Backing { hasher: &self.hasher, reaper: &self.reaper, dicts: &self.dicts }
    }
    /// Looks at one region of memory and puts it into a huge page if it is full, or nearly, and that is configured:
    /// lookups in a keyspace of millions cost a fifth to a third less. It takes 0.3 to 5 ms, in which only those wait
    /// who fault in the region. To be called outside batches, by a thread of its own.
    pub fn collapse(&self) -> Collapse {
        if !self.has_huge_pages() {
            return Collapse::Nothing;
        }
        match self.pages.collapse_dense() {
            Collapse::Nothing => self.directory.runs.collapse_dense(),
            other => other,
        }
    }
    /// Whether full regions are to be put into huge pages.
    #[must_use]
    pub const fn has_huge_pages(&self) -> bool {
        self.pages.is_huge()
    }
    /// Regions of memory: so many calls of [`Keyspace::collapse`] look at all of them.
    #[must_use]
    pub fn regions(&self) -> usize {
        self.pages.stats().regions.max(self.directory.runs.regions())
    }
    /// Drops what a deleted value owned: at once if that is quick, else in the steps of maintenance. The caller need
    /// not have given up its locks: at most 20 µs.
    pub fn discard(&self, garbage: Garbage) {
        self.reaper.discard(garbage);
    }
    /// Memory of deleted values that maintenance has yet to free.
    #[must_use]
    pub fn discarded_bytes(&self) -> usize {
        self.reaper.pending_bytes()
    }
    /// How many they are (`lazyfree_pending_objects`).
    #[must_use]
    pub fn discarded_objects(&self) -> usize {
        self.reaper.pending_objects()
    }
    pub(crate) const fn reaper(&self) -> &Reaper {
        &self.reaper
    }

    /// Chooses how accesses are remembered; clocks of the other mode are read as they are until the next access.
    pub fn set_access_mode(&self, mode: AccessMode) {
        let word = match mode {
            AccessMode::Lru => 0,
            AccessMode::Lfu { log_factor, decay_min } => {
                1 | u32::from(log_factor) << 8 | u32::from(decay_min) << 16
            }
        };
        self.access.store(word, Ordering::Relaxed);
    }
    /// How accesses are remembered.
    #[inline]
    #[must_use]
    pub fn access_mode(&self) -> AccessMode {
        match self.access.load(Ordering::Relaxed) {
            0 => AccessMode::Lru,
            word => AccessMode::Lfu { log_factor: (word >> 8) as u8, decay_min: (word >> 16) as u16 },
        }
    }

    #[inline]
    pub(crate) fn shard(&self, id: u32) -> &Shard {
        &self.shards[id as usize]
    }
    #[inline]
    pub(crate) fn env(&self, shard: u32) -> Env<'_> {
        Env {
            directory: &self.directory,
            pages: &self.pages,
            hasher: &self.hasher,
            first_head: shard as usize,
            heads_stride: self.shards.len(),
        }
    }
    #[inline]
    fn head_of(&self, db: u8, hash: u64) -> usize {
        // Those of one database, mostly the only one, lie together.
        db as usize * self.shards.len() + shard_of(hash, self.mask) as usize
    }
}

/// A thread's place in the keyspace: its pin and its counters. Not shared between threads.
pub struct Worker<'k> {
    keyspace: &'k Keyspace,
    slot: usize,
    sights: Sights,
}

impl<'k> Worker<'k> {
    /// Starts a batch. Waits while someone has the world.
    #[inline]
    pub fn enter(&mut self) -> Batch<'_> {
        let pin = self.keyspace.directory.domain.enter(self.slot);
        Self::batch((self.keyspace, self.slot), &mut self.sights, pin, None)
    }
    /// Starts a batch that has the keyspace to itself if nobody else is in a batch now, and an ordinary one otherwise.
    /// Others wait until it ends, so this is for keyspaces whose commands all run on one worker. Costs some 30 ns more
    /// than [`Worker::enter`] and saves a lock for each key.
    #[inline]
    pub fn enter_alone(&mut self) -> Batch<'_> {
        let (pin, alone) = self.keyspace.directory.domain.enter_alone(self.slot);
        Self::batch((self.keyspace, self.slot), &mut self.sights, pin, alone)
    }
    fn batch<'w>(
        (keyspace, slot): (&'w Keyspace, usize),
        sights: &'w mut Sights,
        pin: Pin<'w, Array>,
        alone: Option<Closed<'w, Array>>,
    ) -> Batch<'w> {
        sights.clear();
        Batch { keyspace, counters: &keyspace.counters[slot], sights, alone, pin, _one_thread: PhantomData }
    }
    /// Closes the gate: waits until every other worker has ended its batch, and keeps new ones out. For FLUSHALL,
    /// SWAPDB, KEYS and scripts with undeclared keys.
    pub fn world(&mut self) -> World<'_> {
        self.world_of(self.keyspace.directory.domain.close())
    }
    fn world_of<'w>(&'w self, closed: Closed<'w, Array>) -> World<'w> {
        let inside = self.keyspace.directory.domain.enter_closed(self.slot, &closed);
        let counters = &self.keyspace.counters[self.slot];
        World { keyspace: self.keyspace, counters, _inside: inside, _closed: closed }
    }
    /// [`Worker::enter`]; nothing where that waits and somebody keeps what he has for long: see
    /// [`Keyspace::set_kept`].
    #[inline]
    pub fn enter_in_time(&mut self) -> Option<Batch<'_>> {
        let pin = self.keyspace.directory.domain.enter_in_time(self.slot)?;
        Some(Self::batch((self.keyspace, self.slot), &mut self.sights, pin, None))
    }
    /// [`Worker::enter_alone`], in the same way.
    #[inline]
    pub fn enter_alone_in_time(&mut self) -> Option<Batch<'_>> {
        let (pin, alone) = self.keyspace.directory.domain.enter_alone_in_time(self.slot)?;
        Some(Self::batch((self.keyspace, self.slot), &mut self.sights, pin, alone))
    }
    /// [`Worker::world`], in the same way.
    pub fn world_in_time(&mut self) -> Option<World<'_>> {
        let closed = self.keyspace.directory.domain.close_in_time()?;
        Some(self.world_of(closed))
    }
    /// The keyspace.
    #[must_use]
    pub const fn keyspace(&self) -> &'k Keyspace {
        self.keyspace
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.keyspace.directory.domain.leave(self.slot);
    }
}

/// A worker inside a batch. While it lasts, tables that prefetches read stay allocated and the world stays open, so it
/// must be short: it holds back FLUSHALL and the freeing of old tables.
pub struct Batch<'w> {
    keyspace: &'w Keyspace,
    counters: &'w Counters,
    /// What the prefetches of this batch have seen.
    sights: &'w mut Sights,
    /// The proof that no other worker is in a batch, if none is.
    alone: Option<Closed<'w, Array>>,
    pin: Pin<'w, Array>,
    /// Not shared between threads: the counters have one writer.
    _one_thread: PhantomData<Cell<()>>,
}

impl<'w> Batch<'w> {
    /// Counts what maintenance has done.
    pub(crate) fn count_kept_up(&self, counter: Counter, by: usize) {
        if by > 0 {
            self.counters.add(counter, by as i64);
        }
    }
    /// Whether somebody waits for a key of this one's shard.
    #[inline]
    #[must_use]
    pub fn is_awaited(&self, key: &Key<'_>) -> bool {
        self.keyspace.shard(self.keyspace.shard_of(key)).hold(self.alone.as_ref()).is_awaited()
    }
    /// Whether no other worker can come between the commands of this batch.
    #[must_use]
    pub const fn is_alone(&self) -> bool {
        self.alone.is_some()
    }
    /// Locks the shard of one key. Never lock a second shard while holding a guard from here: use [`Batch::lock_keys`].
    #[inline]
    pub fn lock(&self, key: &Key<'_>) -> ShardGuard<'_> {
        self.lock_shard(self.keyspace.shard_of(key))
    }
    /// Locks a shard by number.
    #[inline]
    pub fn lock_shard(&self, shard: u32) -> ShardGuard<'_> {
        ShardGuard::open(self.keyspace, self.counters, shard, self.alone.as_ref())
    }
    /// [`Batch::lock`]; nothing where somebody keeps the shard for long: see [`Keyspace::set_kept`].
    #[inline]
    pub fn lock_in_time(&self, key: &Key<'_>) -> Option<ShardGuard<'_>> {
        self.lock_shard_in_time(self.keyspace.shard_of(key))
    }
    /// [`Batch::lock_shard`], in the same way.
    #[inline]
    pub fn lock_shard_in_time(&self, shard: u32) -> Option<ShardGuard<'_>> {
        ShardGuard::open_in_time(self.keyspace, self.counters, shard, self.alone.as_ref())
    }
    /// Guards without a list, if the batch has the keyspace to itself: any shard may be touched.
    #[inline]
    #[must_use]
    pub fn guards_alone(&self) -> Option<Guards<'_>> {
        self.alone.as_ref().map(|proof| Guards::alone(self.keyspace, self.counters, proof))
    }
    /// Locks the shards of these keys, each once, in ascending order.
    pub fn lock_keys<'a>(&self, keys: impl IntoIterator<Item = &'a Key<'a>>) -> Guards<'_> {
        self.lock_shards(keys.into_iter().map(|key| self.keyspace.shard_of(key)))
    }
    /// Locks these shards, each once, in ascending order.
    pub fn lock_shards(&self, shards: impl IntoIterator<Item = u32>) -> Guards<'_> {
        if let Some(guards) = self.guards_alone() {
            return guards;
        }
        Guards::lock(self.keyspace, self.counters, shards)
    }
    /// [`Batch::lock_shard_in_time`], as [`Guards`].
    #[inline]
    pub fn lock_one_in_time(&self, shard: u32) -> Option<Guards<'_>> {
        self.lock_shard_in_time(shard).map(Guards::one)
    }
    /// [`Batch::lock_shards`]; nothing, and none is locked, where somebody keeps one of them for long.
    pub fn lock_shards_in_time(&self, shards: impl IntoIterator<Item = u32>) -> Option<Guards<'_>> {
        if let Some(guards) = self.guards_alone() {
            return Some(guards);
        }
        Guards::lock_in_time(self.keyspace, self.counters, shards)
    }
    /// The keyspace.
    #[must_use]
    pub const fn keyspace(&self) -> &'w Keyspace {
        self.keyspace
    }
}
