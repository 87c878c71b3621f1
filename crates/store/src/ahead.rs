//! Owns: what is known of the requests behind the present one: which members of the same collection they will look for.
//! Does not own: finding that out (the engine's batch), the look-up itself.
//!
//! A collection is found under its lock, so its buckets and records cannot be asked for before, as those of keys are.
//! In a deep pipeline the next requests are mostly for the same collection: while one runs, the bucket of the one after
//! the next is asked for, and the record of the next, whose bucket has come meanwhile. Costs some 5 ns a request, saves
//! up to two cache misses of 80 ns; only in collections that are too large to be near anyhow (`crate::dict`).

/// Hashes of members; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Of the next request's.
    pub near: u64,
    /// Of the one's behind it.
    pub far: u64,
}
