//! Owns: triggers: what happens when keys change. Does not own: the commands that store them (`crate::logic`),
//! programs (`crate::program`), when changes are looked at (`crate::runner`).
//!
//! | module | owns |
//! |---|---|
//! | [`definition`] | a trigger, read from its JSON |
//! | [`index`], `tree` | which triggers a key may fire, by its first bytes and its last ones |
//! | [`event`] | what has happened, from the effects of a command |
//! | `fire`, `direct` | a command with the triggers that it fires, in one group; the commonest of them |
//! | `counted` | what is counted meanwhile |
//! | `ahead` | what queued commands bring as texts, read |
//! | `outbox` | what is done afterwards: attempts, back-off, dead letters |

mod ahead;
mod counted;
pub mod definition;
mod direct;
pub mod event;
mod fire;
pub mod index;
mod outbox;
mod parse;
mod tree;

use parking_lot::RwLock;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weft_store::Section;

use crate::catalogue::{DELETED, Named};
use crate::engine::Engine;
use crate::special;
pub(crate) use ahead::Ahead;
pub(crate) use counted::Counted;
use definition::Trigger;
pub(crate) use direct::Direct;
pub(crate) use fire::{may_fire, needs, run, stands_at};
use index::Index;
pub use outbox::Outbox;
pub(crate) use outbox::{Runner, Way};

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
    index: RwLock<Arc<Index>>,
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
    /// Those that keys may fire, as they are now.
    #[must_use]
    pub fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index.read())
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
    pub(crate) fn index(&mut self, engine: &Engine) -> &Arc<Index> {
        let version = engine.triggers.version();
        if version != self.version {
            (self.version, self.index, self.direct) = (version, engine.triggers.index(), None);
        }
        &self.index
    }
    /// As it was then.
    #[inline]
    pub(crate) fn last(&self) -> &Index {
        &self.index
    }
}

impl Engine {
    /// Puts triggers in the place of what has their names, or takes that away.
    pub(crate) fn put_triggers(&self, triggers: impl IntoIterator<Item = (Box<[u8]>, Option<Trigger>)>) {
        let changes = self.triggers.put(triggers);
        let mut index = self.triggers.index.write();
        let index = Arc::make_mut(&mut index);
        index.change(changes.iter().map(|(old, new)| (old.as_ref(), new.as_ref())));
        self.special.set(special::TRIGGERS, !index.is_empty());
        self.special.set(special::TRIGGERS_BY_ITSELF, index.has_by_itself());
    }

    /// Reads the triggers of the catalogue: when it came from a log or a snapshot. Says which could not be read, and
    /// why.
    pub(crate) fn load_triggers(&self) -> Vec<String> {
        let (mut problems, mut all) = (Vec::new(), Vec::new());
        for (name, entry) in self
            .keyspace
            .catalogue()
            .entries(Section::Triggers)
            .into_iter()
            .filter(|(name, _)| **name != *DELETED)
        {
            match Trigger::of_entry(&name, &entry) {
                Ok(trigger) => all.push((name, Some(trigger))),
                Err(why) => problems.push(format!("trigger '{}': {why}", String::from_utf8_lossy(&name))),
            }
        }
        self.put_triggers(all);
        problems.extend(self.triggers.outbox.begin(self));
        problems
    }
}

impl Figures {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }
}
