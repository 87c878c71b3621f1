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
    /// Whether any is such a one.
    pub(crate) fn any(&self, is_so: impl Fn(&T) -> bool) -> bool {
        self.by_name.read().values().any(|value| is_so(value))
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
    /// Puts several in the place of what has their names, or takes that away. Gives what went and what came, by turns.
    pub(crate) fn put(&self, entries: impl IntoIterator<Item = (Box<[u8]>, Option<T>)>) -> Vec<Change<T>> {
        let mut by_name = self.by_name.write();
        let put = |(name, value): (Box<[u8]>, Option<T>)| match value.map(Arc::new) {
            Some(value) => (by_name.insert(name, Arc::clone(&value)), Some(value)),
            None => (by_name.remove(&name), None),
        };
        let changes = entries.into_iter().map(put).collect();
        self.version.fetch_add(1, Relaxed);
        changes
    }
}

/// What had a name, and what has it now.
pub(crate) type Change<T> = (Option<Arc<T>>, Option<Arc<T>>);
