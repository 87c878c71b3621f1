//! Owns: what the functions of stored libraries are: known when a library is stored, and behind a start, so that a
//! worker loads one when a function of it is called, and not all to find out. Does not own: a worker's own state of
//! them (`super::space`), the sources (the catalogue).

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

/// What a library has, or why it does not load.
pub(crate) type Loaded = Result<Arc<[Known]>, Arc<str>>;

/// A library that somebody has loaded, or tried to.
#[derive(Debug)]
struct Entry {
    /// The source that it was, and no other of the same name.
    code: Arc<[u8]>,
    loaded: Loaded,
}

/// All of them, by name.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<HashMap<Box<[u8]>, Entry>>);

impl Shelf {
    /// What is known of a library, if anybody has loaded this source, or tried to.
    pub(crate) fn loaded(&self, name: &[u8], code: &Arc<[u8]>) -> Option<Loaded> {
        let shelf = self.0.lock();
        shelf.get(name).filter(|entry| Arc::ptr_eq(&entry.code, code)).map(|entry| entry.loaded.clone())
    }
    /// Somebody has loaded a library, or tried to: what has been loaded once has its functions, also where there is no
    /// memory for it now.
    pub(crate) fn put(&self, name: &[u8], code: &Arc<[u8]>, loaded: Loaded) {
        if loaded.is_err() && self.loaded(name, code).is_some() {
            return;
        }
        self.0.lock().insert(name.into(), Entry { code: Arc::clone(code), loaded });
    }
    /// Forgets one, unless it is stored like this.
    pub(crate) fn keep(&self, name: &[u8], stored: Option<&Arc<[u8]>>) {
        let mut shelf = self.0.lock();
        let is_old = |entry: &Entry| stored.is_none_or(|code| !Arc::ptr_eq(&entry.code, code));
        if shelf.get(name).is_some_and(is_old) {
            shelf.remove(name);
        }
    }
    /// Forgets those that are not stored any more.
    pub(crate) fn keep_all(&self, stored: &BTreeMap<Box<[u8]>, Arc<[u8]>>) {
        let is_stored =
            |name: &[u8], entry: &Entry| stored.get(name).is_some_and(|code| Arc::ptr_eq(&entry.code, code));
        self.0.lock().retain(|name, entry| is_stored(name, entry));
    }
}
