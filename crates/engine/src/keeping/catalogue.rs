//! Owns: changing the catalogue from a command; what stands in it in the form that it is used in, by name. Does not
//! own: the entries (`weft_store::catalogue`), what they mean: functions, programs, triggers and users each read their
//! own section.

use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weft_store::{Op, Section};

use crate::context::{Context, Hold};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode};

/// Bytes of the names and entries of one section: they are beside `maxmemory`.
const SECTION_BYTES_MAX: usize = 256 << 20;

/// The entries of a section in the form that they are used in.
#[derive(Debug)]
pub struct Named<T> {
    by_name: RwLock<BTreeMap<Box<[u8]>, Arc<T>>>,
    version: AtomicU64,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { by_name: RwLock::default(), version: AtomicU64::new(1) }
    }
}

impl<T> Named<T> {
    /// The one of this name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<Arc<T>> {
        self.by_name.read().get(name).cloned()
    }
    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<(Box<[u8]>, Arc<T>)> {
        self.by_name.read().iter().map(|(name, value)| (name.clone(), Arc::clone(value))).collect()
    }
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.read().len()
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A number that changes with every change of them, which happens while nobody is in a batch; never 0.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }
    /// Puts several in the place of what has their names, or takes that away.
    pub(crate) fn put(&self, entries: impl IntoIterator<Item = (Box<[u8]>, Option<T>)>) {
        let mut by_name = self.by_name.write();
        for (name, value) in entries {
            match value {
                Some(value) => drop(by_name.insert(name, Arc::new(value))),
                None => drop(by_name.remove(&name)),
            }
        }
        self.version.fetch_add(1, Relaxed);
    }
}

impl Engine {
    /// Reads the catalogue when it came from a log or a snapshot. Says what could not be read, and why; that stays
    /// where it is.
    pub fn load_catalogue(&self) -> Vec<String> {
        let mut problems = self.load_users();
        problems.extend(self.load_programs());
        problems.extend(self.load_triggers());
        problems
    }
}

impl Context<'_, '_> {
    /// Has an entry hold these bytes, or be gone; gives what it held. The command has the keyspace to itself
    /// (`Scope::World`): entries change between commands, never under one. What a command's user stores needs
    /// [room](Self::check_entries).
    pub fn set_entry(
        &mut self,
        section: Section,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> Result<Option<Arc<[u8]>>, Error> {
        if let Some(value) = value {
            self.check_entries(section, &[(name, value)], false)?;
        }
        let Hold::World(_, guards) = &mut self.hold else { return Err(ErrorCode::NeedsWorld.into()) };
        let key = self.engine.keyspace.key(name);
        // Entries belong to no database.
        let mut op = Op::untouched(0, self.now_ms, &mut self.local.effects.recorder);
        Ok(guards.shard(&key).set_entry(&mut op, section, name, value))
    }
    /// Whether a section has room for entries that take the place of those of their names, or of all there are.
    pub fn check_entries(&self, section: Section, new: &[(&[u8], &[u8])], of_all: bool) -> Result<(), Error> {
        let catalogue = self.engine.keyspace.catalogue();
        let replaced = |name: &[u8]| catalogue.get(section, name).map_or(0, |entry| name.len() + entry.len());
        let stay = match of_all {
            true => 0,
            false => catalogue.bytes(section) - new.iter().map(|(name, _)| replaced(name)).sum::<usize>(),
        };
        let come: usize = new.iter().map(|(name, value)| name.len() + value.len()).sum();
        if come > 0 && stay + come > SECTION_BYTES_MAX {
            let text = format!("{section:?} may take {SECTION_BYTES_MAX} bytes together: delete some first");
            return Err(Error::new(ErrorCode::Limit, text));
        }
        Ok(())
    }
}
