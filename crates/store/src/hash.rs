//! Owns: the seeded hash of a key and which of its bits mean what. Does not own: tables or shards.
//!
//! ```text
//!  63            32 31     24 23   16 15          0
//! +----------------+---------+-------+-------------+
//! | bucket position|  unused |  tag  |    shard    |
//! +----------------+---------+-------+-------------+
//! ```
//! The three uses take disjoint bits: keys of one shard still spread over all buckets, keys of one bucket over all
//! tags.

use ahash::RandomState;
use std::hash::{BuildHasher, Hasher};

/// The most shards that the shard bits can name.
pub const SHARDS_MAX: usize = 1 << 16;

/// A keyed hash. Copies share the key. Someone who does not know the key cannot choose keys that collide, which is
/// what keeps the probe lengths of the tables short whatever clients send.
#[derive(Debug, Clone)]
pub struct KeyHasher(RandomState);

impl KeyHasher {
    /// A hasher with a fixed key: for tests, whose runs must repeat.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self(RandomState::with_seeds(seed, !seed, seed.rotate_left(17), seed ^ 0x6a09_e667_f3bc_c908))
    }

    /// A hasher keyed by the operating system's entropy, which std reads for its own maps.
    #[must_use]
    pub fn from_entropy() -> Self {
        let word = |salt: u64| std::collections::hash_map::RandomState::new().hash_one(salt);
        Self(RandomState::with_seeds(word(1), word(2), word(3), word(4)))
    }

    /// The hash of a key: about 2 ns for 16 bytes.
    #[inline]
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}

/// Of a map whose keys come from clients.
impl BuildHasher for KeyHasher {
    type Hasher = ahash::AHasher;
    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

/// The shard bits. `mask` is the number of shards less one.
#[inline]
#[must_use]
pub const fn shard_of(hash: u64, mask: u32) -> u32 {
    (hash as u32) & mask & 0xffff
}

/// The tag: 1 to 255, since 0 marks an empty slot.
#[inline]
pub(crate) const fn tag_of(hash: u64) -> u8 {
    let tag = (hash >> 16) as u8;
    if tag == 0 { 1 } else { tag }
}

/// The position in hash order, from which every table size computes its bucket.
#[inline]
#[must_use]
pub const fn position_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}
