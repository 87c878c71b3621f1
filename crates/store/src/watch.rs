//! Owns: one shard's watched keys and their versions. Does not own: which session watches what.
//!
//! Only watched keys have a version: a write looks one up only while the shard has any, so WATCH costs nothing when it
//! is not used. A version is drawn from the shard's counter, so a key that is watched again is never mistaken for its
//! past.
//!
//! Keys are named by their 64-bit hash: two watched keys of one shard with the same hash would abort one another's
//! transactions, once in 2^48 pairs, which is allowed.

use std::collections::HashMap;

/// The most watches in one shard; more are refused.
pub const WATCHES_PER_SHARD_MAX: usize = 1 << 20;

/// What EXEC compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WatchVersion(u64);

#[derive(Debug)]
struct Watched {
    version: u64,
    watchers: u32,
}

/// One shard's watched keys.
#[derive(Debug, Default)]
pub struct Watches {
    keys: HashMap<(u8, u64), Watched>,
    counter: u64,
}

impl Watches {
    /// Starts to watch a key; every `add` needs a `remove`. `None` when the shard has [`WATCHES_PER_SHARD_MAX`].
    pub fn add(&mut self, db: u8, hash: u64) -> Option<WatchVersion> {
        if self.keys.len() >= WATCHES_PER_SHARD_MAX && !self.keys.contains_key(&(db, hash)) {
            return None;
        }
        self.counter += 1;
        let fresh = Watched { version: self.counter, watchers: 0 };
        let watched = self.keys.entry((db, hash)).or_insert(fresh);
        watched.watchers += 1;
        Some(WatchVersion(watched.version))
    }
    /// Whether nothing has written the key since `version` was given out.
    #[must_use]
    pub fn unchanged(&self, db: u8, hash: u64, version: WatchVersion) -> bool {
        self.keys.get(&(db, hash)).is_some_and(|watched| watched.version == version.0)
    }
    /// Ends one watch.
    pub fn remove(&mut self, db: u8, hash: u64) {
        if let Some(watched) = self.keys.get_mut(&(db, hash)) {
            watched.watchers -= 1;
            if watched.watchers == 0 {
                self.keys.remove(&(db, hash));
            }
        }
    }
    /// A write to a key.
    #[inline]
    pub(crate) fn touch(&mut self, db: u8, hash: u64) {
        if !self.keys.is_empty() {
            self.touch_watched(db, hash);
        }
    }
    #[cold]
    fn touch_watched(&mut self, db: u8, hash: u64) {
        if let Some(watched) = self.keys.get_mut(&(db, hash)) {
            self.counter += 1;
            watched.version = self.counter;
        }
    }
    /// The watched keys of a database.
    pub(crate) fn watched(&self, db: u8) -> impl Iterator<Item = u64> + '_ {
        self.keys.keys().filter(move |(in_db, _)| *in_db == db).map(|(_, hash)| *hash)
    }
    /// A write to all those keys of a database that `is_there` (FLUSHDB, SWAPDB).
    pub(crate) fn touch_all(&mut self, db: u8, mut is_there: impl FnMut(u64) -> bool) {
        for (&(in_db, hash), watched) in &mut self.keys {
            if in_db == db && is_there(hash) {
                self.counter += 1;
                watched.version = self.counter;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_tell_writes_apart() {
        let mut watches = Watches::default();
        watches.touch(0, 7);
        let one = watches.add(0, 7).unwrap();
        let two = watches.add(0, 7).unwrap();
        assert_eq!(one, two);
        watches.touch(1, 7);
        watches.touch(0, 8);
        assert!(watches.unchanged(0, 7, one));
        watches.touch(0, 7);
        assert!(!watches.unchanged(0, 7, one));
        watches.remove(0, 7);
        assert!(!watches.unchanged(0, 7, one));
        watches.remove(0, 7);
        let again = watches.add(0, 7).unwrap();
        assert_ne!(again, one);
        watches.touch_all(0, |_| true);
        assert!(!watches.unchanged(0, 7, again));
    }
    #[test]
    fn watches_are_limited() {
        let mut watches = Watches::default();
        for hash in 0..WATCHES_PER_SHARD_MAX as u64 {
            assert!(watches.add(0, hash).is_some());
        }
        assert!(watches.add(0, u64::MAX).is_none(), "one more key is refused");
        assert!(watches.add(0, 5).is_some(), "one more watch of a watched key is not");
    }
}
