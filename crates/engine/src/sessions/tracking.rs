//! Owns: which client may have cached which key, and telling it when the key changes (client-side caching). Does not
//! own: CLIENT TRACKING, what has changed (the store's effects), writing pushes.
//!
//! A client that tracks is noted for each key that a read command of its names, under the lock of the key's shard; a
//! writer looks the key up behind its own lock. So a client that has read the old value is either in the table by then,
//! or reads the new one. An entry is used up by the first change. In broadcast mode nothing is noted: all changes
//! under a prefix are told.
//!
//! While nobody tracks, a write costs one look at a number. The table is bounded by `tracking-table-max-keys`: above
//! it keys are taken out at random, as if they had changed.

use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weft_store::KeyHasher;

use crate::session::client_flag;

/// Flags that CLIENT TRACKING sets and clears.
pub(crate) const FLAGS: u32 = client_flag::TRACKING
    | client_flag::REDIR_BROKEN
    | client_flag::BCAST
    | client_flag::OPTIN
    | client_flag::OPTOUT
    | client_flag::NOLOOP;

/// Names of keys.
pub type Names = Arc<[Box<[u8]>]>;

/// Parts of the table, each with a lock of its own.
const PARTS: usize = 64;

/// Keys and the clients that may have cached them.
#[derive(Debug, Default)]
struct Part {
    places: HashMap<Arc<[u8]>, usize>,
    /// Keys in no order, so that one can be taken out at random; the clients of each ascending.
    entries: Vec<(Arc<[u8]>, Vec<u64>)>,
}

impl Part {
    /// Says whether the key and whether the client are new.
    fn add(&mut self, key: &[u8], client: u64) -> (bool, bool) {
        let Some(&place) = self.places.get(key) else {
            let key: Arc<[u8]> = key.into();
            self.places.insert(Arc::clone(&key), self.entries.len());
            self.entries.push((key, vec![client]));
            return (true, true);
        };
        let clients = &mut self.entries[place].1;
        match clients.binary_search(&client) {
            Ok(_) => (false, false),
            Err(at) => {
                clients.insert(at, client);
                (false, true)
            }
        }
    }

    /// Takes the other clients of a key out, where this one is noted; all of them where it is not.
    fn remove_others(&mut self, key: &[u8], client: u64) -> Option<(Vec<u64>, bool)> {
        let clients = &mut self.entries[*self.places.get(key)?].1;
        let Ok(at) = clients.binary_search(&client) else { return self.remove(key).map(|all| (all, false)) };
        clients.remove(at);
        Some((std::mem::replace(clients, vec![client]), true))
    }
    fn remove(&mut self, key: &[u8]) -> Option<Vec<u64>> {
        let place = self.places.remove(key)?;
        let (_, clients) = self.entries.swap_remove(place);
        if let Some((moved, _)) = self.entries.get(place) {
            self.places.insert(Arc::clone(moved), place);
        }
        Some(clients)
    }
}

/// Keys that are known one by one of what an operation has read behind its writes; beyond them all are taken for such.
const READ_BEHIND_MAX: usize = 1024;

/// Keys that an operation has read behind what it wrote, for a client that is not told of its own writes: what is
/// written is told at the operation's end, and must not take out what was noted since.
#[derive(Debug, Default)]
pub(crate) struct ReadBehind {
    keys: HashSet<Box<[u8]>>,
    all: bool,
}

impl ReadBehind {
    pub(crate) fn add(&mut self, key: &[u8]) {
        if self.keys.len() < READ_BEHIND_MAX {
            self.keys.insert(key.into());
        } else {
            self.all = true;
        }
    }
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.all || self.keys.contains(key)
    }
}

/// Who tracks what.
#[derive(Debug)]
pub struct Tracking {
    hasher: KeyHasher,
    parts: [Mutex<Part>; PARTS],
    keys: AtomicUsize,
    items: AtomicUsize,
    /// Bytes of the keys' names.
    bytes: AtomicUsize,
    /// Prefixes with the clients that want to know of every change under them.
    pub(crate) prefixes: RwLock<BTreeMap<Box<[u8]>, Vec<u64>>>,
}

impl Default for Tracking {
    fn default() -> Self {
        Self {
            hasher: KeyHasher::from_entropy(),
            parts: std::array::from_fn(|_| Mutex::default()),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            prefixes: RwLock::default(),
        }
    }
}

impl Tracking {
    /// Keys in the table.
    #[must_use]
    pub fn key_count(&self) -> usize {
        self.keys.load(Relaxed)
    }
    /// Keys in the table, each as often as there are clients that may have it.
    #[must_use]
    pub fn item_count(&self) -> usize {
        self.items.load(Relaxed)
    }
    /// Bytes of the names of these keys.
    #[must_use]
    pub fn name_bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
    /// Prefixes that are told of.
    #[must_use]
    pub fn prefix_count(&self) -> usize {
        self.prefixes.read().len()
    }
    /// The prefixes of one client.
    pub(crate) fn prefixes_of(&self, client: u64) -> Vec<Box<[u8]>> {
        let prefixes = self.prefixes.read();
        let own = prefixes.iter().filter(|(_, clients)| clients.contains(&client));
        own.map(|(prefix, _)| prefix.clone()).collect()
    }

    fn part(&self, key: &[u8]) -> &Mutex<Part> {
        &self.parts[self.hasher.hash(key) as usize % PARTS]
    }

    /// Whether a client is noted for a key.
    pub(crate) fn has(&self, key: &[u8], client: u64) -> bool {
        let part = self.part(key).lock();
        let place = part.places.get(key);
        place.is_some_and(|place| part.entries[*place].1.binary_search(&client).is_ok())
    }

    /// Notes that a client may have a key. If the key is new: a number by which another one can be chosen.
    pub(crate) fn note(&self, key: &[u8], client: u64) -> Option<usize> {
        // Counted first, so that whoever takes it out finds it counted.
        self.bytes.fetch_add(key.len(), Relaxed);
        self.keys.fetch_add(1, Relaxed);
        let (new_key, new_client) = self.part(key).lock().add(key, client);
        self.items.fetch_add(usize::from(new_client), Relaxed);
        if !new_key {
            self.bytes.fetch_sub(key.len(), Relaxed);
            self.keys.fetch_sub(1, Relaxed);
            return None;
        }
        Some(self.hasher.hash(key) as usize >> 6)
    }

    /// Takes all keys out.
    pub(crate) fn drain(&self, mut each: impl FnMut(&[u8])) {
        for part in &self.parts {
            let entries = {
                let mut part = part.lock();
                part.places.clear();
                std::mem::take(&mut part.entries)
            };
            entries.iter().for_each(|(key, _)| each(key));
            self.bytes.fetch_sub(entries.iter().map(|(key, _)| key.len()).sum(), Relaxed);
            self.keys.fetch_sub(entries.len(), Relaxed);
            self.items.fetch_sub(entries.iter().map(|(_, clients)| clients.len()).sum(), Relaxed);
        }
    }

    /// Takes a key out: the clients that may have it.
    pub(crate) fn take(&self, key: &[u8]) -> Vec<u64> {
        let clients = self.part(key).lock().remove(key);
        self.taken(key, clients.unwrap_or_default())
    }

    /// Takes the clients of a key out, but for one; whether the key stays, with that one alone.
    pub(crate) fn take_others(&self, key: &[u8], client: u64) -> (Vec<u64>, bool) {
        match self.part(key).lock().remove_others(key, client) {
            Some((others, true)) => {
                self.items.fetch_sub(others.len(), Relaxed);
                (others, true)
            }
            Some((all, false)) => (self.taken(key, all), false),
            None => (Vec::new(), true),
        }
    }

    fn taken(&self, key: &[u8], clients: Vec<u64>) -> Vec<u64> {
        if !clients.is_empty() {
            self.bytes.fetch_sub(key.len(), Relaxed);
            self.keys.fetch_sub(1, Relaxed);
            self.items.fetch_sub(clients.len(), Relaxed);
        }
        clients
    }

    /// Takes some key out, in no order, but for one. `start` chooses where to look first.
    pub(crate) fn take_any(&self, start: usize, but: &[u8]) -> Option<(Arc<[u8]>, Vec<u64>)> {
        for part in (0..PARTS).map(|step| &self.parts[(start + step) % PARTS]) {
            let mut part = part.lock();
            let len = part.entries.len();
            let chosen = (0..len.min(2)).map(|step| (start / PARTS + step) % len);
            let key = chosen.map(|place| Arc::clone(&part.entries[place].0)).find(|key| **key != *but);
            if let Some(key) = key {
                let clients = part.remove(&key).unwrap_or_default();
                drop(part);
                let clients = self.taken(&key, clients);
                return Some((key, clients));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_finds_its_keys_whatever_was_removed() {
        let mut part = Part::default();
        for key in 0..20_u8 {
            assert_eq!(part.add(&[key], 7), (true, true));
            assert_eq!(part.add(&[key], 7), (false, false));
            assert_eq!(part.add(&[key], 3), (false, true));
        }
        for key in (0..20_u8).step_by(2) {
            assert_eq!(part.remove(&[key]), Some(vec![3, 7]));
            assert_eq!(part.remove(&[key]), None);
        }
        assert_eq!(part.remove_others(&[1], 3), Some((vec![7], true)));
        assert_eq!(part.remove_others(&[1], 7), Some((vec![3], false)));
        assert_eq!(part.remove_others(&[1], 7), None);
        assert!((3..20_u8).step_by(2).all(|key| part.remove(&[key]) == Some(vec![3, 7])));
        assert!(part.entries.is_empty() && part.places.is_empty());
    }
}
