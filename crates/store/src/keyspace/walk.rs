//! Owns: walks over the whole keyspace one lock at a time: SCAN and RANDOMKEY. Does not own: the walk inside a shard's
//! table.

use super::Batch;
use crate::clock::Rng;
use crate::shard::Op;
use crate::value::ValueRef;

/// Buckets that one SCAN call visits beyond those that COUNT asks for, so that shards without keys are passed quickly.
const SCAN_SPARE_BUCKETS: u64 = 1024;
/// COUNT is taken as at most this: a call stays below a few ms.
const SCAN_COUNT_MAX: u64 = 10_000;

/// Where a SCAN stands: 0 at the start and at the end.
///
/// ```text
///  63      48 47      32 31                            0
/// +----------+----------+------------------------------+
/// |    0     |  shard   | position in hash order       |
/// +----------+----------+------------------------------+
/// ```
/// Below 2^48, so it survives clients that keep numbers as doubles. Positions mean the same in a table of any size, so
/// a key that is there all the time is met exactly once, and the cursor only grows, so every walk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cursor(u64);

impl Cursor {
    /// The start.
    pub const START: Self = Self(0);

    /// From a client's number. What lies beyond the last shard ends the walk at once.
    #[must_use]
    pub const fn from_u64(value: u64) -> Self {
        Self(value)
    }
    /// For the client.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
    /// Whether the walk is over.
    #[must_use]
    pub const fn is_end(self) -> bool {
        self.0 == 0
    }
}

/// The walk of SCAN over shards that are locked in some way: `bucket` visits one bucket and says how many keys it met
/// and where the shard goes on.
pub(super) fn walk(
    shards: u32,
    cursor: Cursor,
    count: u64,
    mut bucket: impl FnMut(u32, u32) -> (u64, Option<u32>),
) -> Cursor {
    let count = count.clamp(1, SCAN_COUNT_MAX);
    let (mut shard, mut position) = (cursor.0 >> 32, cursor.0 as u32);
    let mut visited = 0;
    for _ in 0..count + SCAN_SPARE_BUCKETS {
        if shard >= u64::from(shards) {
            return Cursor::START;
        }
        if visited >= count {
            break;
        }
        let (met, next) = bucket(shard as u32, position);
        visited += met;
        match next {
            Some(next) => position = next,
            None => (shard, position) = (shard + 1, 0),
        }
    }
    if shard >= u64::from(shards) {
        return Cursor::START;
    }
    Cursor(shard << 32 | u64::from(position))
}

impl Batch<'_> {
    /// SCAN: visits about `count` keys from the cursor on and returns the next cursor. Locks a shard for one bucket at
    /// a time; nothing where somebody keeps one of them for long.
    pub fn scan(
        &self,
        op: &mut Op<'_>,
        cursor: Cursor,
        count: u64,
        mut visit: impl FnMut(&[u8], ValueRef<'_>),
    ) -> Option<Cursor> {
        let mut is_kept = false;
        let next = walk(self.keyspace.shard_count(), cursor, count, |shard, position| {
            let mut visited = 0;
            let Some(mut guard) = self.lock_shard_in_time(shard) else {
                is_kept = true;
                // As far as this walk goes.
                return (SCAN_COUNT_MAX, None);
            };
            let next = guard.scan(op, position, |key, value| {
                visited += 1;
                visit(key, value);
            });
            // What had expired there went by itself.
            op.recorder.end_group();
            (visited, next)
        });
        (!is_kept).then_some(next)
    }

    /// RANDOMKEY: looks into a random shard, and into those after it while they are empty, as long as nobody keeps one
    /// of them for long.
    pub fn random_key(&self, op: &Op<'_>, rng: &mut impl Rng) -> Option<Vec<u8>> {
        let shards = self.keyspace.shard_count();
        let start = rng.below(shards);
        let guards = (0..shards).map_while(|step| self.lock_shard_in_time((start + step) & (shards - 1)));
        guards.map(|mut guard| guard.random_key(op, <[u8]>::to_vec)).find_map(|key| key)
    }
}
