//! Owns: triggers: what is to happen when keys change, which of them a key may fire, what waits to be done. Does not
//! own: firing them and the commands that store them (`crate::logic`), programs (`crate::program`), when changes are
//! looked at (`crate::runner`).
//!
//! | module | owns |
//! |---|---|
//! | [`definition`] | a trigger, read from its JSON |
//! | [`index`], `tree` | which triggers a key may fire, by its first bytes and its last ones |
//! | [`event`] | what has happened, from the effects of a command |
//! | `direct` | the commonest of them |
//! | `counted` | what is counted while they fire |
//! | `ahead` | what queued commands bring as texts, read |
//! | `waiting` | what waits to be done afterwards |

mod ahead;
mod counted;
pub mod definition;
mod direct;
pub mod event;
pub mod index;
mod parse;
mod tree;
mod waiting;

use parking_lot::RwLock;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::catalogue::Named;
pub(crate) use ahead::Ahead;
pub(crate) use counted::Counted;
use definition::{Trigger, kind};
pub(crate) use direct::Direct;
use index::Index;
pub use waiting::Outbox;
pub(crate) use waiting::{WAITING_BYTES_MAX, Way};

/// Triggers that may be stored.
pub const TRIGGERS_MAX: usize = 65_536;
/// How deep what a trigger does may fire others.
pub const DEPTH_MAX: u32 = 8;
/// How often one command may fire.
pub const FIRED_MAX: u32 = 1024;

/// What has come of a trigger.
#[derive(Debug, Default)]
pub struct Figures {
    /// How often it fired.
    pub fired: AtomicU64,
    /// How often what it does failed: each attempt counts.
    pub failed: AtomicU64,
    /// How often its condition did not hold.
    pub passed_over: AtomicU64,
    /// How often what it does afterwards was given up.
    pub dead: AtomicU64,
}

/// All triggers.
#[derive(Debug, Default)]
pub struct Triggers {
    stored: Named<Trigger>,
    /// Those that writes may fire: a trigger that is about keys which go by themselves alone costs no write anything.
    index: RwLock<Arc<Index>>,
    /// Those that keys may fire which go by themselves.
    gone: RwLock<Arc<Index>>,
    /// What is done afterwards.
    pub outbox: Outbox,
}

impl Deref for Triggers {
    type Target = Named<Trigger>;

    fn deref(&self) -> &Named<Trigger> {
        &self.stored
    }
}

impl Triggers {
    /// Puts some in the place of what has their names, or takes that away. Says whether there are any then that writes
    /// may fire, and any for keys that go by themselves; and how many bytes have gone and come.
    pub(crate) fn put(
        &self,
        triggers: impl IntoIterator<Item = (Box<[u8]>, Option<Trigger>)>,
    ) -> ([bool; 2], (usize, usize)) {
        let changes = self.stored.put(triggers);
        let bytes = |of: &Option<Arc<Trigger>>| of.as_ref().map_or(0, |trigger| trigger.bytes);
        let sums = changes
            .iter()
            .fold((0, 0), |(freed, taken), (old, new)| (freed + bytes(old), taken + bytes(new)));
        let of_kinds = [(&self.index, kind::SET | kind::DELETE), (&self.gone, kind::BY_ITSELF)];
        let are_there = of_kinds.map(|(index, kinds)| {
            let mut index = index.write();
            let index = Arc::make_mut(&mut index);
            let of =
                |trigger: &Option<Arc<Trigger>>| trigger.clone().filter(|trigger| trigger.on & kinds != 0);
            let changes: Vec<_> = changes.iter().map(|(old, new)| (of(old), of(new))).collect();
            index.change(changes.iter().map(|(old, new)| (old.as_ref(), new.as_ref())));
            !index.is_empty()
        });
        (are_there, sums)
    }
    /// Those that writes may fire, as they are now.
    #[must_use]
    pub fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index.read())
    }
    /// Those that keys may fire which go by themselves.
    pub(crate) fn gone(&self) -> Arc<Index> {
        Arc::clone(&self.gone.read())
    }
}

/// Which keys may fire, as a worker has looked at it last.
#[derive(Debug)]
pub(crate) struct Seen {
    version: u64,
    index: Arc<Index>,
    /// What the last trigger of the commonest form does.
    direct: Option<Box<Direct>>,
    /// The trigger that is to be stored, read before everything is locked.
    read: Option<definition::Read>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { version: u64::MAX, index: Arc::default(), direct: None, read: None }
    }
}

impl Seen {
    /// As it is now. Triggers change while nobody is in a batch: what is looked at inside one holds until its end.
    #[inline]
    pub(crate) fn index(&mut self, triggers: &Triggers) -> &Arc<Index> {
        let version = triggers.version();
        if version != self.version {
            (self.version, self.index, self.direct) = (version, triggers.index(), None);
        }
        &self.index
    }
    /// As it was then.
    #[inline]
    pub(crate) fn last(&self) -> &Index {
        &self.index
    }
}

impl Figures {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }
}
