//! Owns: reading keys: GET's path, EXISTS, TYPE, OBJECT, SCAN, RANDOMKEY. Does not own: how values are written to a
//! reply.

use super::{Op, ShardGuard};
use crate::clock::Rng;
use crate::counters::Counter;
use crate::effect::{Effect, wants};
use crate::entry::heap::Key;
use crate::value::{Object, ValueRef};
use std::ops::ControlFlow;

/// Bytes of Valkey's object up to which it keeps a string inside it, which OBJECT ENCODING calls `embstr`.
const EMBSTR_OBJECT_BYTES_MAX: usize = 128;
/// Buckets that RANDOMKEY looks through from a random one on.
const RANDOM_BUCKETS_MAX: u32 = 64;
/// What a key takes of the table on average (64 bytes for 7 slots at a load of 0.78).
const TABLE_BYTES_PER_KEY: usize = 12;

/// What OBJECT and MEMORY USAGE ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// OBJECT ENCODING.
    pub encoding: &'static str,
    /// OBJECT IDLETIME in seconds; 0 under an LFU policy.
    pub idle_s: u32,
    /// OBJECT FREQ; 0 under an LRU policy.
    pub frequency: u8,
    /// MEMORY USAGE: entry, what it owns, and its share of the table.
    pub memory_bytes: usize,
}

/// What a key with a string takes in one object of Valkey's: 8 bytes of header, the expiry, the key behind a length of
/// its own size, and the string with 4 bytes around it.
const fn valkey_object_bytes(key_len: usize, expires: bool, len: usize) -> usize {
    let key_head = match key_len {
        0..32 => 3,
        32..256 => 5,
        _ => 7,
    };
    8 + if expires { 8 } else { 0 } + key_head + key_len + len + 4
}

impl ShardGuard<'_> {
    /// GET: the value, counted as a hit or miss and, with `op.touch`, as an access.
    #[inline]
    pub fn get(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<ValueRef<'_>> {
        let Some(found) = self.visible(op, key) else {
            self.counters.add(Counter::Misses, 1);
            let wanted = self.wanted(op, key);
            if wanted & wants::MISSES != 0 {
                op.recorder.tell(wanted, op.db, key.bytes, &Effect::Missed);
            }
            return None;
        };
        self.counters.add(Counter::Hits, 1);
        let mode = self.mode();
        let data = &mut *self.data;
        let entry = data.heap.entry(op.db as usize, found);
        if op.touch {
            entry.set_clock(mode.touched(entry.clock(), op.now_ms, &mut data.rng));
        }
        Some(entry.value())
    }

    /// The value for a command that goes on to write: no hit, no miss, no access.
    #[inline]
    pub fn peek(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<ValueRef<'_>> {
        let found = self.visible(op, key)?;
        Some(self.heap().entry(op.db as usize, found).value())
    }

    /// Counts an access: TOUCH. Says whether the key exists.
    pub fn touch(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> bool {
        self.get(op, key).is_some()
    }

    /// EXISTS.
    pub fn exists(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> bool {
        self.visible(op, key).is_some()
    }

    /// The absolute expiry: `None` without a key, `Some(None)` without an expiry.
    pub fn expire_ms(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<Option<u64>> {
        let found = self.visible(op, key)?;
        let expire_ms = self.heap().entry(op.db as usize, found).expire_ms();
        Some((expire_ms != u64::MAX).then_some(expire_ms))
    }

    /// OBJECT and MEMORY USAGE, without counting an access.
    pub fn info(&mut self, op: &mut Op<'_>, key: &Key<'_>) -> Option<KeyInfo> {
        let found = self.visible(op, key)?;
        let mode = self.mode();
        let entry = self.heap().entry(op.db as usize, found);
        let (encoding, owned) = match entry.value() {
            ValueRef::Int(_) => ("int", 0),
            ValueRef::Bytes(bytes)
                if !entry.raw()
                    && valkey_object_bytes(key.bytes.len(), found.expires(), bytes.len())
                        <= EMBSTR_OBJECT_BYTES_MAX =>
            {
                ("embstr", 0)
            }
            ValueRef::Bytes(_) => ("raw", 0),
            ValueRef::Shared(bytes) => ("raw", bytes.memory_bytes()),
            ValueRef::Object(object) => (object.encoding(), entry.object().map_or(0, Object::memory_bytes)),
        };
        let memory_bytes = entry.allocated_bytes().next_multiple_of(8) + owned + TABLE_BYTES_PER_KEY;
        Some(KeyInfo {
            encoding,
            idle_s: mode.idle_s(entry.clock(), op.now_ms),
            frequency: mode.frequency(entry.clock(), op.now_ms),
            memory_bytes,
        })
    }

    /// One bucket of SCAN from a position on; expired keys are removed. Returns the next position, or nothing at the
    /// shard's end. About 6 keys, of which each costs a cache line or two.
    pub fn scan(
        &mut self,
        op: &mut Op<'_>,
        from: u32,
        mut visit: impl FnMut(&[u8], ValueRef<'_>),
    ) -> Option<u32> {
        let now_ms = self.seen_at(op);
        let mut expired: Vec<Vec<u8>> = Vec::new();
        let next = self.data.heap.scan(self.env(), op.db as usize, from, |entry, _| {
            if entry.expire_ms() > now_ms {
                visit(entry.key(), entry.value());
            } else {
                expired.push(entry.key().to_vec());
            }
        });
        for key in expired {
            // Seeing an expired key removes it.
            self.visible(op, &self.keyspace.key(&key));
        }
        next
    }

    /// Shows all keys as they stand, expired ones too, with their absolute expiry.
    pub(crate) fn each_key(&self, db: u8, mut visit: impl FnMut(&[u8], ValueRef<'_>, Option<u64>)) {
        let mut from = Some(0);
        while let Some(position) = from {
            from = self.data.heap.scan(self.keyspace.env(self.id()), db as usize, position, |entry, _| {
                let expire_ms = entry.expire_ms();
                visit(entry.key(), entry.value(), (expire_ms != u64::MAX).then_some(expire_ms));
            });
        }
    }

    /// A key of this shard by chance, unless none is found in a bounded search. `pick` sees up to 7 keys; the last
    /// counts. While what has expired is kept and no other key is found, one that has expired is better than none.
    pub fn random_key<R>(&mut self, op: &Op<'_>, mut pick: impl FnMut(&[u8]) -> R) -> Option<R> {
        let now_ms = self.seen_at(op);
        let found = self.random_key_at(op, now_ms, &mut pick);
        let again = found.is_none() && self.keyspace.keeps_expired(now_ms);
        if again { self.random_key_at(op, 0, &mut pick) } else { found }
    }
    fn random_key_at<R>(&mut self, op: &Op<'_>, now_ms: u64, pick: &mut impl FnMut(&[u8]) -> R) -> Option<R> {
        let data = &mut *self.data;
        let (position, skip) = (data.rng.next_u64() as u32, data.rng.below(7));
        let mut picked = None;
        let mut seen = 0;
        data.heap.sample(op.db as usize, position, RANDOM_BUCKETS_MAX, false, |entry| {
            if entry.expire_ms() <= now_ms {
                return ControlFlow::Continue(());
            }
            // A random one of the first few, so that the first key of a bucket is not preferred.
            seen += 1;
            picked = Some(pick(entry.key()));
            if seen > skip { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        picked
    }

    /// Keys of a database in this shard, expired ones included.
    #[must_use]
    pub fn len(&self, db: u8) -> usize {
        self.heap().len(db as usize)
    }
    /// Whether the shard has no keys in a database.
    #[must_use]
    pub fn is_empty(&self, db: u8) -> bool {
        self.len(db) == 0
    }
}
