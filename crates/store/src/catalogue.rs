//! Owns: named entries that stand outside of databases: what users have stored beside their keys. Does not own: what an
//! entry's bytes mean (the engine), limits of names and entries (whoever owns a section).
//!
//! FLUSHALL leaves them. They are changed under the lock of a shard, which orders the change among the groups of
//! effects: whoever changes one entry again holds the same shard's lock, or the world. They are read without any.

use crate::effect::{Effect, wants};
use crate::shard::{Op, ShardGuard};
use crate::sync::{Mutex, lock};
use crate::undo::Inverse;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Section {
    /// A library of functions.
    Functions,
    /// A program.
    Programs,
    /// A trigger.
    Triggers,
    /// A user.
    Users,
    /// What a trigger has yet to do: the name is its number.
    Outbox,
}

impl Section {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Functions, Self::Programs, Self::Triggers, Self::Users, Self::Outbox];

    /// Whether somebody follows its changes one by one: those of the others are seen by who makes them.
    const fn is_followed(self) -> bool {
        matches!(self, Self::Functions)
    }
}

/// An entry with its name.
pub type Named = (Box<[u8]>, Arc<[u8]>);

/// Changes of a section whose names are known. Who has seen nothing for longer looks at all entries, which then costs
/// each change no more than a few of them.
const CHANGES_MAX: usize = 1 << 10;
/// Bytes of these names.
const CHANGES_BYTES_MAX: usize = 1 << 20;

/// The entries of one section.
#[derive(Debug, Default)]
struct Entries {
    by_name: BTreeMap<Box<[u8]>, Arc<[u8]>>,
    /// The names of what has changed last, the last one being that of the present version; of a section that is
    /// followed.
    changed: VecDeque<Box<[u8]>>,
    /// Bytes of these names.
    changed_bytes: usize,
}

impl Entries {
    fn note_change(&mut self, name: &[u8]) {
        self.changed.push_back(name.into());
        self.changed_bytes += name.len();
        while self.changed.len() > CHANGES_MAX || self.changed_bytes > CHANGES_BYTES_MAX {
            let Some(oldest) = self.changed.pop_front() else { break };
            self.changed_bytes -= oldest.len();
        }
    }
}

/// All entries.
#[derive(Debug, Default)]
pub struct Catalogue {
    sections: [Mutex<Entries>; Section::ALL.len()],
    /// Raised with every change of a section.
    versions: [AtomicU64; Section::ALL.len()],
    /// Bytes of each section's names and entries.
    bytes: [AtomicUsize; Section::ALL.len()],
    /// The last number that was given.
    number: AtomicU64,
}

impl Catalogue {
    /// The next number: of an entry of the [`Outbox`](Section::Outbox), or of a key that went by itself. Whoever takes
    /// it has the lock of the key which it is about, so that the numbers of one key are in the order of what happened.
    pub fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Relaxed) + 1
    }
    /// The last one that was given.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        self.number.load(Relaxed)
    }
    /// The next one is behind this one.
    pub fn number_behind(&self, number: u64) {
        self.number.fetch_max(number, Relaxed);
    }
    fn section(&self, section: Section) -> &Mutex<Entries> {
        &self.sections[section as usize]
    }
    /// An entry.
    #[must_use]
    pub fn get(&self, section: Section, name: &[u8]) -> Option<Arc<[u8]>> {
        lock(self.section(section)).by_name.get(name).cloned()
    }
    /// All entries of a section, by name.
    #[must_use]
    pub fn entries(&self, section: Section) -> Vec<Named> {
        let entries = lock(self.section(section));
        entries.by_name.iter().map(|(name, value)| (name.clone(), Arc::clone(value))).collect()
    }
    /// Looks at all entries of a section, by name. Nobody changes them meanwhile.
    pub fn with<R>(&self, section: Section, look: impl FnOnce(&BTreeMap<Box<[u8]>, Arc<[u8]>>) -> R) -> R {
        look(&lock(self.section(section)).by_name)
    }
    /// The first entries of a section behind a name.
    #[must_use]
    pub fn some_behind(&self, section: Section, name: &[u8], count: usize) -> Vec<Named> {
        let entries = lock(self.section(section));
        let behind = entries.by_name.range::<[u8], _>((Bound::Excluded(name), Bound::Unbounded));
        behind.take(count).map(|(name, value)| (name.clone(), Arc::clone(value))).collect()
    }
    /// How many entries a section has.
    #[must_use]
    pub fn len(&self, section: Section) -> usize {
        lock(self.section(section)).by_name.len()
    }
    /// Whether a section has none.
    #[must_use]
    pub fn is_empty(&self, section: Section) -> bool {
        self.len(section) == 0
    }
    /// Bytes of a section's names and entries.
    #[must_use]
    pub fn bytes(&self, section: Section) -> usize {
        self.bytes[section as usize].load(Relaxed)
    }
    /// A number that changes with every change of a section.
    #[inline]
    #[must_use]
    pub fn version(&self, section: Section) -> u64 {
        self.versions[section as usize].load(Relaxed)
    }
    /// The names of the entries that have changed behind a version, each once, in their order; nothing where that was
    /// too long ago, or nobody follows this section.
    #[must_use]
    pub fn changed_behind(&self, section: Section, version: u64) -> Option<Vec<Box<[u8]>>> {
        let Entries { changed, .. } = &*lock(self.section(section));
        let count = usize::try_from(self.version(section).checked_sub(version)?).ok()?;
        let mut names: Vec<_> = changed.range(changed.len().checked_sub(count)?..).cloned().collect();
        names.sort_unstable();
        names.dedup();
        Some(names)
    }
    /// Has an entry hold this, or be gone. Gives what it held.
    pub(crate) fn put(&self, section: Section, name: &[u8], value: Option<Arc<[u8]>>) -> Option<Arc<[u8]>> {
        let mut entries = lock(self.section(section));
        self.versions[section as usize].fetch_add(1, Relaxed);
        if section.is_followed() {
            entries.note_change(name);
        }
        let bytes = &self.bytes[section as usize];
        if let Some(value) = &value {
            bytes.fetch_add(name.len() + value.len(), Relaxed);
        }
        let before = match value {
            Some(value) => entries.by_name.insert(name.into(), value),
            None => entries.by_name.remove(name),
        };
        if let Some(before) = &before {
            bytes.fetch_sub(name.len() + before.len(), Relaxed);
        }
        before
    }
}

impl ShardGuard<'_> {
    /// Has an entry of the catalogue hold these bytes, or be gone, and tells so. Gives what it held.
    pub fn set_entry(
        &mut self,
        op: &mut Op<'_>,
        section: Section,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> Option<Arc<[u8]>> {
        let before = self.keyspace.catalogue().put(section, name, value.map(Arc::from));
        let wanted = self.keyspace.wanted() | op.recorder.wanted();
        if wanted & wants::UNDO != 0
            && let Some(journal) = &mut op.recorder.journal
        {
            journal.push(Inverse::Entry { section, name: name.into(), before: before.clone() });
        }
        if wanted != 0 {
            self.tell(op, wanted, name, &Effect::Catalogue { section, value });
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Digest, Keyspace, Recorder, Replayer};

    fn small() -> Keyspace {
        Keyspace::new(Config { shards: 4, databases: 2, ..Config::default() })
    }

    #[test]
    fn what_has_changed_behind_a_version_is_known_for_a_while() {
        let keyspace = small();
        let catalogue = keyspace.catalogue();
        let put = |name: &[u8], value: Option<&[u8]>| {
            catalogue.put(Section::Functions, name, value.map(Arc::from));
            catalogue.version(Section::Functions)
        };
        let behind = |version| catalogue.changed_behind(Section::Functions, version);
        let names = |names: &[&[u8]]| Some(names.iter().map(|name| Box::from(*name)).collect::<Vec<_>>());
        assert_eq!(behind(0), names(&[]));
        assert_eq!(behind(1), None, "there is no such version yet");
        let first = put(b"b", Some(b"1"));
        put(b"a", Some(b"1"));
        put(b"b", None);
        assert_eq!(behind(0), names(&[b"a", b"b"]));
        assert_eq!(behind(first), names(&[b"a", b"b"]));
        assert_eq!(behind(first + 1), names(&[b"b"]));
        assert_eq!(behind(first + 2), names(&[]));
        // One more than are kept.
        (0..CHANGES_MAX).for_each(|_| _ = put(b"c", Some(b"1")));
        let last = catalogue.version(Section::Functions);
        assert_eq!(behind(first + 2), names(&[b"c"]));
        assert_eq!(behind(first + 1), None);
        // Long names push out more.
        put(&vec![b'd'; CHANGES_BYTES_MAX - 1], None);
        assert_eq!(behind(last).map(|names| names.len()), Some(1));
        assert_eq!(behind(last - 1).map(|names| names.len()), Some(2));
        assert_eq!(behind(last - 2), None);
        put(&vec![b'e'; CHANGES_BYTES_MAX + 1], None);
        assert_eq!(behind(last + 1), None, "one that is longer than all may be");
        assert_eq!(behind(last + 2), names(&[]));

        catalogue.put(Section::Outbox, b"a", Some(Arc::from(&b"1"[..])));
        assert_eq!(catalogue.changed_behind(Section::Outbox, 0), None, "nobody follows it");
    }

    #[test]
    fn entries_outlive_flush_and_are_replayed_taken_back_and_counted_in_the_digest() {
        let (keyspace, copy) = (small(), small());
        keyspace.subscribe(wants::VALUES);
        let (mut worker, mut other) = (keyspace.worker().unwrap(), copy.worker().unwrap());
        let (world, there) = (worker.world(), other.world());
        let mut recorder = Recorder::default();
        let set = |recorder: &mut Recorder, name: &[u8], value: Option<&[u8]>| {
            let mut guards = world.guards();
            let guard = guards.shard_by_id(0);
            guard.set_entry(&mut Op::new(0, 1, recorder), Section::Programs, name, value)
        };
        assert_eq!(set(&mut recorder, b"a", Some(b"1")), None);
        assert_eq!(set(&mut recorder, b"a", Some(b"2")).as_deref(), Some(&b"1"[..]));
        set(&mut recorder, b"b", Some(b""));
        world.flush(&mut Op::new(0, 1, &mut recorder), 0..=1);
        let digest = Digest::of_keyspace(&world);
        let begun = recorder.begin_undo();
        set(&mut recorder, b"a", None);
        set(&mut recorder, b"c", Some(b"3"));
        assert_ne!(Digest::of_keyspace(&world), digest);
        assert_eq!(keyspace.catalogue().bytes(Section::Programs), 1 + 2);
        let mut guards = world.guards();
        guards.rollback(&mut recorder, begun);
        drop(guards.commit(&mut recorder));
        drop(guards);
        assert_eq!(Digest::of_keyspace(&world), digest);
        assert_eq!(keyspace.catalogue().bytes(Section::Programs), 2 + 1);
        recorder.end_group();

        let mut replayer = Replayer::default();
        recorder.tape().read().for_each(|told| replayer.apply(&there, &told));
        assert_eq!(Digest::of_keyspace(&there), digest);
        assert_eq!(copy.catalogue().entries(Section::Programs).len(), 2);
        assert_eq!(copy.catalogue().get(Section::Programs, b"a").as_deref(), Some(&b"2"[..]));
        assert!(copy.catalogue().is_empty(Section::Triggers));
    }
}
