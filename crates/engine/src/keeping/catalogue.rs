//! Owns: what stands in the catalogue in the form that it is used in, by name. Does not own: changing it
//! (`crate::upkeep`), the entries (`weft_store::catalogue`), what they mean: functions, programs, triggers and users
//! each read their own section.

use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The name of the entry that has the highest version of those of its section that were deleted; nothing that is stored
/// has it.
pub(crate) const DELETED: &[u8] = b"";

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
