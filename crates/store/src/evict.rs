//! Owns: `maxmemory`: which keys go when memory is short. Does not own: when it is looked at (the engine does, before
//! it takes the locks of a command), what an access is (`crate::access`).
//!
//! As in Redis, a pool keeps the best candidates of many small samples, so that a sample of a few keys comes close to
//! true LRU. A candidate is named by its hash: it may have changed since, so it is looked at again before it goes.

use crate::access::AccessMode;
use crate::clock::{Rng, XorShift};
use crate::effect::Cause;
use crate::entry::heap::Key;
use crate::keyspace::{Batch, Keyspace};
use crate::recorder::Recorder;
use crate::shard::{Op, ShardGuard};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;

/// Candidates kept.
const POOL_MAX: usize = 16;
/// Keys in a sample at most (`maxmemory-samples` is cut to this).
pub const SAMPLES_MAX: usize = 64;
/// Buckets looked through for one sample.
const SAMPLE_BUCKETS_MAX: u32 = 32;
/// Shards looked into for one sample, once one of them had a key: while shards have less than a key each, a sample of
/// one shard would be chance.
const SAMPLE_SHARDS_MAX: u32 = 64;
/// Rounds of sampling without a victim after which eviction gives up for now.
const FRUITLESS_MAX: usize = 16;

/// `maxmemory-policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Refuse writes instead.
    NoEviction,
    /// Any key, in this order.
    AllKeys(Order),
    /// Keys with an expiry, in this order.
    Volatile(Order),
}

/// Which of the eligible keys goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Least recently used.
    Lru,
    /// Least frequently used.
    Lfu,
    /// Any.
    Random,
    /// Soonest to expire (volatile only).
    Ttl,
}

/// Redis's names.
pub const NAMES: [(&str, Policy); 8] = [
    ("noeviction", Policy::NoEviction),
    ("allkeys-lru", Policy::AllKeys(Order::Lru)),
    ("allkeys-lfu", Policy::AllKeys(Order::Lfu)),
    ("allkeys-random", Policy::AllKeys(Order::Random)),
    ("volatile-lru", Policy::Volatile(Order::Lru)),
    ("volatile-lfu", Policy::Volatile(Order::Lfu)),
    ("volatile-random", Policy::Volatile(Order::Random)),
    ("volatile-ttl", Policy::Volatile(Order::Ttl)),
];

impl Policy {
    /// From Redis's name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|&(_, policy)| policy)
    }
    /// Redis's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|&&(_, policy)| policy == self).map_or("noeviction", |&(name, _)| name)
    }
    /// Whether entries must keep LFU counters under it.
    #[must_use]
    pub const fn is_lfu(self) -> bool {
        matches!(self, Self::AllKeys(Order::Lfu) | Self::Volatile(Order::Lfu))
    }
}

/// How making room ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomOutcome {
    /// Memory is within the limit.
    Enough,
    /// It is not yet; the bound of this call was reached.
    More,
    /// Nothing may go: writes that need memory get the out-of-memory error.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    score: u64,
    shard: u32,
    db: u8,
    hash: u64,
}

/// A worker's eviction: its pool and its dice.
#[derive(Debug)]
pub struct Evictor {
    /// Ascending by score: the last one goes first.
    pool: Vec<Candidate>,
    rng: XorShift,
    key: Vec<u8>,
}

impl Evictor {
    /// An empty pool.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { pool: Vec::with_capacity(POOL_MAX + 1), rng: XorShift::new(seed), key: Vec::new() }
    }

    /// Removes keys until used memory is at most `limit_bytes`, at most `keys_max` of them. The caller holds no lock.
    /// Each key costs one sample of `samples` keys and two locks, about 2 µs in a large keyspace. Returns how it ended
    /// and how many went.
    pub fn evict_until(
        &mut self,
        batch: &Batch<'_>,
        (policy, samples): (Policy, usize),
        (limit_bytes, keys_max): (usize, usize),
        now_ms: u64,
        recorder: &mut Recorder,
    ) -> (RoomOutcome, usize) {
        let mut evicted = 0;
        let mut fruitless = 0;
        while batch.keyspace().used_bytes() > limit_bytes {
            let is_asked = evicted == 0 || fruitless > 0;
            if fruitless >= FRUITLESS_MAX || is_asked && !batch.keyspace().has_any_for(policy) {
                return (RoomOutcome::Nothing, evicted);
            }
            if evicted >= keys_max {
                return (RoomOutcome::More, evicted);
            }
            self.sample(batch, policy, samples.clamp(1, SAMPLES_MAX), now_ms);
            if self.evict_best(batch, policy, now_ms, recorder) {
                evicted += 1;
                fruitless = 0;
            } else {
                fruitless += 1;
            }
        }
        (RoomOutcome::Enough, evicted)
    }

    /// Forgets the candidates, whose scores mean nothing under another policy.
    pub fn reset(&mut self) {
        self.pool.clear();
    }

    fn sample(&mut self, batch: &Batch<'_>, policy: Policy, samples: usize, now_ms: u64) {
        let keyspace = batch.keyspace();
        let shards = keyspace.shard_count();
        let start = self.rng.below(shards);
        let volatile = matches!(policy, Policy::Volatile(_));
        let mut seen = 0;
        for step in 0..shards {
            if seen >= samples || seen > 0 && step >= SAMPLE_SHARDS_MAX {
                return;
            }
            let shard = (start + step) & (shards - 1);
            if volatile && keyspace.shard(shard).next_expiry_ms.load(Relaxed) == u64::MAX {
                continue;
            }
            let Self { pool, rng, .. } = self;
            // What is kept for long is passed.
            let Some(mut guard) = batch.lock_shard_in_time(shard) else { continue };
            guard.sample_for_eviction(policy, samples - seen, now_ms, rng, |candidate| {
                seen += 1;
                offer(pool, candidate);
            });
        }
    }

    fn evict_best(
        &mut self,
        batch: &Batch<'_>,
        policy: Policy,
        now_ms: u64,
        recorder: &mut Recorder,
    ) -> bool {
        while let Some(Candidate { shard, db, hash, .. }) = self.pool.pop() {
            let Some(mut guard) = batch.lock_shard_in_time(shard) else { continue };
            let Some(found) = guard.heap().find_hash(guard.env(), db as usize, hash) else { continue };
            if matches!(policy, Policy::Volatile(_)) && !found.expires() {
                continue;
            }
            self.key.clear();
            self.key.extend_from_slice(guard.heap().entry(db as usize, found).key());
            let mut op = Op::new(db, now_ms, recorder);
            let key = Key { hash, bytes: &self.key };
            let garbage = guard.remove_found(&mut op, &key, found, Cause::Evicted);
            recorder.end_group();
            drop(guard);
            batch.keyspace().discard(garbage);
            return true;
        }
        false
    }
}

/// Puts a candidate into the pool, which keeps the best.
fn offer(pool: &mut Vec<Candidate>, candidate: Candidate) {
    if pool.iter().any(|other| other.hash == candidate.hash && other.db == candidate.db) {
        return;
    }
    let at = pool.partition_point(|other| other.score <= candidate.score);
    pool.insert(at, candidate);
    if pool.len() > POOL_MAX {
        pool.remove(0);
    }
}

impl Keyspace {
    /// Whether any key may go, as far as can be said without a look at one: a server that is full of others has this
    /// asked by each write that it refuses.
    fn has_any_for(&self, policy: Policy) -> bool {
        match policy {
            Policy::NoEviction => false,
            Policy::AllKeys(_) => true,
            Policy::Volatile(_) => (0..self.database_count()).any(|db| self.expiring(db as u8) > 0),
        }
    }
}

impl ShardGuard<'_> {
    fn sample_for_eviction(
        &mut self,
        policy: Policy,
        samples: usize,
        now_ms: u64,
        rng: &mut XorShift,
        mut offer: impl FnMut(Candidate),
    ) {
        let (order, volatile) = match policy {
            Policy::NoEviction => return,
            Policy::AllKeys(order) => (order, false),
            Policy::Volatile(order) => (order, true),
        };
        let Some(db) = self.random_database(volatile, rng) else {
            if volatile {
                // What has expired, or gone, left a time that would have this shard looked into until it comes.
                let next = self.next_field_due_ms();
                self.keyspace.shard(self.id()).next_expiry_ms.store(next, Relaxed);
            }
            return;
        };
        let mode = self.keyspace.access_mode();
        let (env, shard) = (self.env(), self.id());
        let mut left = samples;
        self.heap_mut().sample_facts(
            env,
            (db, rng.next_u64() as u32, SAMPLE_BUCKETS_MAX, volatile),
            |clock, expire_ms, hash| {
                let score = score(order, mode, (clock, expire_ms), now_ms, rng);
                offer(Candidate { score, shard, db: db as u8, hash });
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
    }

    /// A database of this shard, by its share of the keys, or of those that expire.
    fn random_database(&self, volatile: bool, rng: &mut XorShift) -> Option<usize> {
        let databases = self.keyspace.database_count();
        let heap = self.heap();
        let len_of = |db| if volatile { heap.count_expiring(db) } else { heap.len(db) };
        let total: usize = (0..databases).map(len_of).sum();
        let mut pick = rng.below(u32::try_from(total).unwrap_or(u32::MAX).max(1)) as usize;
        (0..databases).find(|&db| {
            let len = len_of(db);
            let here = pick < len;
            pick = pick.saturating_sub(len);
            here
        })
    }
}

fn score(
    order: Order,
    mode: AccessMode,
    (clock, expire_ms): (u32, u64),
    now_ms: u64,
    rng: &mut XorShift,
) -> u64 {
    match order {
        Order::Lru | Order::Lfu => mode.staleness(clock, now_ms),
        Order::Random => rng.next_u64(),
        Order::Ttl => u64::MAX - expire_ms,
    }
}
