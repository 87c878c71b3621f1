//! Owns: the set of locked shards that a command runs on. Does not own: which keys a command has.

use super::walk::{Cursor, walk};
use super::{Counters, Keyspace};
use crate::entry::heap::Key;
use crate::epoch::Closed;
use crate::shard::{Op, ShardGuard};
use crate::table::array::Array;
use crate::value::ValueRef;
use smallvec::SmallVec;
use std::cell::OnceCell;

/// Locked shards, each once. `execute_locked(guards, …)` of every command takes one of these, whether it runs alone, in
/// EXEC, in a script or in replay.
pub struct Guards<'b> {
    keyspace: &'b Keyspace,
    counters: &'b Counters,
    locked: Locked<'b>,
}

enum Locked<'b> {
    /// The common case, without a list.
    One(ShardGuard<'b>),
    /// Ascending by shard.
    Many(Vec<ShardGuard<'b>>),
    /// Behind the closed gate: locked when first used, in any order, since nobody else locks anything. A script or a
    /// program has mostly one.
    World(SmallVec<[ShardGuard<'b>; 1]>),
    /// In a batch that is alone: the shard that was used last, and those that views look at.
    Alone { proof: &'b Closed<'b, Array>, current: Option<ShardGuard<'b>>, viewed: Viewed<'b> },
}

/// Shards that are looked at together: a tree that grows while it is lent. The bits of a shard's number, the lowest
/// first, say the way to it, so that no shard stands deeper than the numbers have bits: 16.
#[derive(Default)]
struct Viewed<'b>(OnceCell<Box<(ShardGuard<'b>, [Viewed<'b>; 2])>>);

impl<'b> Viewed<'b> {
    /// The guard of a shard, made if it is not there.
    fn shard(&self, id: u32, make: impl FnOnce() -> ShardGuard<'b>) -> &ShardGuard<'b> {
        let (mut place, mut way) = (self, id);
        while let Some(entry) = place.0.get() {
            if entry.0.id() == id {
                return &entry.0;
            }
            place = &entry.1[way as usize & 1];
            way >>= 1;
        }
        &place.0.get_or_init(|| Box::new((make(), Default::default()))).0
    }
}

impl<'b> Guards<'b> {
    pub(super) fn lock(
        keyspace: &'b Keyspace,
        counters: &'b Counters,
        shards: impl IntoIterator<Item = u32>,
    ) -> Self {
        let open = |id| Some(ShardGuard::open(keyspace, counters, id, None));
        Self::lock_by(keyspace, counters, shards, open).expect("who does not give up comes to it")
    }
    /// The same; nothing where somebody keeps one of them for long.
    pub(super) fn lock_in_time(
        keyspace: &'b Keyspace,
        counters: &'b Counters,
        shards: impl IntoIterator<Item = u32>,
    ) -> Option<Self> {
        let open = |id| ShardGuard::open_in_time(keyspace, counters, id, None);
        Self::lock_by(keyspace, counters, shards, open)
    }
    #[inline]
    fn lock_by(
        keyspace: &'b Keyspace,
        counters: &'b Counters,
        shards: impl IntoIterator<Item = u32>,
        open: impl Fn(u32) -> Option<ShardGuard<'b>>,
    ) -> Option<Self> {
        let mut shards = shards.into_iter();
        let locked = match (shards.next(), shards.next()) {
            (Some(only), None) => Locked::One(open(only)?),
            (first, second) => {
                let mut ids: Vec<u32> = first.into_iter().chain(second).chain(shards).collect();
                ids.sort_unstable();
                ids.dedup();
                let mut guards = Vec::with_capacity(ids.len());
                for id in ids {
                    guards.push(open(id)?);
                }
                Locked::Many(guards)
            }
        };
        Some(Self { keyspace, counters, locked })
    }
    #[inline]
    pub(super) const fn one(guard: ShardGuard<'b>) -> Self {
        Self { keyspace: guard.keyspace, counters: guard.counters, locked: Locked::One(guard) }
    }
    #[inline]
    pub(super) const fn alone(
        keyspace: &'b Keyspace,
        counters: &'b Counters,
        proof: &'b Closed<'b, Array>,
    ) -> Self {
        let locked = Locked::Alone { proof, current: None, viewed: Viewed(OnceCell::new()) };
        Self { keyspace, counters, locked }
    }
    pub(super) fn world(keyspace: &'b Keyspace, counters: &'b Counters) -> Self {
        Self { keyspace, counters, locked: Locked::World(SmallVec::new()) }
    }

    /// The guard of a key's shard.
    ///
    /// # Panics
    /// When the key was not among those that were locked: a command that touches a key it has not declared is a bug
    /// that must not go on without the lock.
    #[inline]
    pub fn shard(&mut self, key: &Key<'_>) -> &mut ShardGuard<'b> {
        self.shard_by_id(self.keyspace.shard_of(key))
    }

    /// The guard of a shard. Panics as [`Guards::shard`] does.
    #[inline]
    pub fn shard_by_id(&mut self, id: u32) -> &mut ShardGuard<'b> {
        self.find(id).expect("the shard is among those that were locked")
    }

    /// The guard of a key's shard, if it is among those that were locked.
    #[inline]
    pub fn find_shard(&mut self, key: &Key<'_>) -> Option<&mut ShardGuard<'b>> {
        self.find(self.keyspace.shard_of(key))
    }

    #[inline]
    fn find(&mut self, id: u32) -> Option<&mut ShardGuard<'b>> {
        let (keyspace, counters) = (self.keyspace, self.counters);
        match &mut self.locked {
            Locked::One(guard) => (guard.id() == id).then_some(guard),
            Locked::Many(guards) => {
                guards.binary_search_by_key(&id, ShardGuard::id).ok().map(|at| &mut guards[at])
            }
            Locked::World(guards) => {
                let at = guards.binary_search_by_key(&id, ShardGuard::id).unwrap_or_else(|at| {
                    guards.insert(at, ShardGuard::open(keyspace, counters, id, None));
                    at
                });
                Some(&mut guards[at])
            }
            Locked::Alone { proof, current, viewed } => {
                if current.as_ref().is_none_or(|guard| guard.id() != id) {
                    // Given up first: the shard may be among them.
                    *viewed = Viewed::default();
                    *current = None;
                    *current = Some(ShardGuard::open(keyspace, counters, id, Some(proof)));
                }
                current.as_mut()
            }
        }
    }

    /// Has a key's shard among the locked ones from now on, unless somebody else has it: waiting for him while others
    /// wait for what is locked here could hang both. Says whether it is there.
    pub fn try_cover(&mut self, key: &Key<'_>) -> bool {
        if self.covers(key) {
            return true;
        }
        let (keyspace, counters) = (self.keyspace, self.counters);
        let Some(guard) = ShardGuard::try_open(keyspace, counters, keyspace.shard_of(key)) else {
            return false;
        };
        let mut guards = match std::mem::replace(&mut self.locked, Locked::Many(Vec::new())) {
            Locked::One(one) => vec![one],
            Locked::Many(guards) => guards,
            Locked::World(guards) => guards.into_vec(),
            Locked::Alone { .. } => unreachable!("whoever is alone has every shard"),
        };
        let at = guards.partition_point(|locked| locked.id() < guard.id());
        guards.insert(at, guard);
        self.locked = Locked::Many(guards);
        true
    }

    /// A key's value as it stands, borrowed together with others: for commands that read several keys at once. First
    /// call [`ShardGuard::get`] or [`ShardGuard::exists`] for each, which remove what has expired and count; this does
    /// neither. Panics as [`Guards::shard`] does, and behind the gate when the shard was not used yet.
    #[must_use]
    pub fn view(&self, db: u8, key: &Key<'_>, now_ms: u64) -> Option<ValueRef<'_>> {
        let id = self.keyspace.shard_of(key);
        let found = match &self.locked {
            Locked::One(guard) => (guard.id() == id).then_some(guard),
            Locked::Many(guards) => {
                guards.binary_search_by_key(&id, ShardGuard::id).ok().map(|at| &guards[at])
            }
            Locked::World(guards) => {
                guards.binary_search_by_key(&id, ShardGuard::id).ok().map(|at| &guards[at])
            }
            Locked::Alone { current: Some(guard), .. } if guard.id() == id => Some(guard),
            Locked::Alone { proof, viewed, .. } => {
                let make = || ShardGuard::open(self.keyspace, self.counters, id, Some(proof));
                Some(viewed.shard(id, make))
            }
        };
        found.expect("a command uses the keys that it has declared").view(db, key, now_ms)
    }

    /// Whether a key's shard is among the locked ones (always behind the gate, and in a batch that is alone).
    #[inline]
    #[must_use]
    pub fn covers(&self, key: &Key<'_>) -> bool {
        self.covers_shard(self.keyspace.shard_of(key))
    }
    /// The same of a shard.
    #[inline]
    #[must_use]
    pub fn covers_shard(&self, id: u32) -> bool {
        match &self.locked {
            Locked::One(guard) => guard.id() == id,
            Locked::Many(guards) => guards.binary_search_by_key(&id, ShardGuard::id).is_ok(),
            Locked::World(_) | Locked::Alone { .. } => true,
        }
    }

    /// SCAN behind the closed gate, where every shard may be touched.
    pub fn scan(
        &mut self,
        op: &mut Op<'_>,
        cursor: Cursor,
        count: u64,
        mut visit: impl FnMut(&[u8], ValueRef<'_>),
    ) -> Cursor {
        walk(self.keyspace.shard_count(), cursor, count, |shard, position| {
            let mut visited = 0;
            let next = self.shard_by_id(shard).scan(op, position, |key, value| {
                visited += 1;
                visit(key, value);
            });
            (visited, next)
        })
    }

    /// Brings the counters up to date without giving up the locks: for used-memory inside EXEC.
    pub fn settle(&mut self) {
        match &mut self.locked {
            Locked::One(guard) => guard.settle(),
            Locked::Many(guards) => guards.iter_mut().for_each(ShardGuard::settle),
            Locked::World(guards) => guards.iter_mut().for_each(ShardGuard::settle),
            Locked::Alone { current, .. } => current.iter_mut().for_each(ShardGuard::settle),
        }
    }

    pub(crate) const fn counters(&self) -> &'b Counters {
        self.counters
    }
    /// The keyspace, to make keys with.
    #[must_use]
    pub const fn keyspace(&self) -> &'b Keyspace {
        self.keyspace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::Config;

    fn depth(viewed: &Viewed<'_>) -> u32 {
        viewed.0.get().map_or(0, |entry| 1 + entry.1.iter().map(depth).max().unwrap_or(0))
    }

    #[test]
    fn a_shard_is_added_unless_somebody_has_it() {
        let keyspace = Keyspace::new(Config { shards: 1 << 4, databases: 1, ..Config::default() });
        let names: Vec<[u8; 4]> = (0..64_u32).map(u32::to_le_bytes).collect();
        let keys: Vec<Key<'_>> = names.iter().map(|name| keyspace.key(name)).collect();
        let first = keyspace.shard_of(&keys[0]);
        let other = keys.iter().find(|key| keyspace.shard_of(key) != first).expect("64 keys, 16 shards");
        let (mut one, mut two) = (keyspace.worker().expect("one"), keyspace.worker().expect("two"));
        let (one, two) = (one.enter(), two.enter());
        let mut mine = one.lock_keys([&keys[0]]);
        let theirs = two.lock_keys([other]);
        assert!(!mine.try_cover(other) && !mine.covers(other));
        drop(theirs);
        for key in &keys {
            assert!(mine.try_cover(key) && mine.find_shard(key).is_some());
        }
        let Locked::Many(locked) = &mine.locked else { unreachable!("several are locked") };
        assert!(locked.len() > 1 && locked.is_sorted_by_key(ShardGuard::id), "each once, ascending");
        drop(mine);
        assert!(two.lock_keys([other]).covers(other), "it was given back");
    }

    #[test]
    fn a_view_of_every_shard_is_a_short_way_and_given_up_without_depth() {
        let bits = if cfg!(miri) { 4 } else { 12 };
        let keyspace = Keyspace::new(Config { shards: 1 << bits, databases: 1, ..Config::default() });
        let mut worker = keyspace.worker().expect("the first");
        let batch = worker.enter_alone();
        let guards = batch.guards_alone().expect("nobody else is there");
        let mut number = 0u32;
        let mut seen = vec![false; 1 << bits];
        // Until each shard has had a key.
        while seen.iter().any(|seen| !seen) {
            for _ in 0..1 << bits {
                let name = number.to_le_bytes();
                let key = keyspace.key(&name);
                assert!(guards.view(0, &key, 1).is_none());
                seen[keyspace.shard_of(&key) as usize] = true;
                number += 1;
            }
        }
        let Locked::Alone { viewed, .. } = &guards.locked else { unreachable!("the batch is alone") };
        assert!(depth(viewed) <= bits + 1, "{} deep", depth(viewed));
        drop(guards);
    }
}
