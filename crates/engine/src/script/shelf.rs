//! Owns: what the functions of stored libraries are, as far as a worker has loaded them: other workers, and those that
//! begin anew behind SCRIPT FLUSH, load a library when one of its functions is called, and not all to find out. Does
//! not own: a worker's own state of them (`super::space`), the sources (the catalogue).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use weft_lua::Registered;

/// What a function is, beside what runs.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Its name as it was registered.
    pub(crate) name: Box<[u8]>,
    pub(crate) description: Option<Arc<[u8]>>,
    pub(crate) flags: u32,
}

impl Known {
    pub(crate) fn of(function: &Registered) -> Self {
        let Registered { name, description, flags, .. } = function;
        let description = description.as_deref().map(Arc::from);
        Self { name: name.clone().into(), description, flags: *flags }
    }
}

/// A library that a worker has loaded.
#[derive(Debug)]
struct Entry {
    /// The source that it was, and no other of the same name.
    code: Arc<[u8]>,
    functions: Arc<[Known]>,
}

/// All of them, by name.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<HashMap<Box<[u8]>, Entry>>);

impl Shelf {
    /// The functions of a library, if any worker has loaded this source.
    pub(crate) fn functions(&self, name: &[u8], code: &Arc<[u8]>) -> Option<Arc<[Known]>> {
        let shelf = self.0.lock();
        shelf
            .get(name)
            .filter(|entry| Arc::ptr_eq(&entry.code, code))
            .map(|entry| Arc::clone(&entry.functions))
    }
    /// A worker has loaded a library.
    pub(crate) fn put(&self, name: &[u8], code: &Arc<[u8]>, functions: Arc<[Known]>) {
        self.0.lock().insert(name.into(), Entry { code: Arc::clone(code), functions });
    }
    /// Forgets those that are not stored any more.
    pub(crate) fn keep(&self, stored: &BTreeMap<Box<[u8]>, Arc<[u8]>>) {
        let is_stored =
            |name: &[u8], entry: &Entry| stored.get(name).is_some_and(|code| Arc::ptr_eq(&entry.code, code));
        self.0.lock().retain(|name, entry| is_stored(name, entry));
    }
}
