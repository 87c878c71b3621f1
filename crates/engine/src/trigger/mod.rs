//! Owns: triggers: what happens when keys change. Does not own: the commands that store them (`crate::commands`),
//! programs (`crate::program`), when changes are looked at (`crate::runner`).
//!
//! | module | owns |
//! |---|---|
//! | [`definition`] | a trigger, read from its JSON |
//! | [`index`] | which triggers a key may fire, by its first bytes |
//! | [`event`] | what has happened, from the effects of a command |
//! | `fire` | a command with the triggers that it fires, in one group |
//! | `outbox` | what is done afterwards: attempts, back-off, dead letters |

pub mod definition;
pub mod event;
mod fire;
pub mod index;
mod outbox;

use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weft_store::Section;

use crate::engine::Engine;
use crate::special;
use definition::{Trigger, kind};
pub(crate) use fire::{may_fire, needs, run};
use index::Index;
pub use outbox::Outbox;
pub(crate) use outbox::Runner;

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
    /// How often what it does failed.
    pub failed: AtomicU64,
    /// How often its condition did not hold.
    pub passed_over: AtomicU64,
    /// How often what it does afterwards was given up.
    pub dead: AtomicU64,
}

/// All triggers.
#[derive(Debug, Default)]
pub struct Triggers {
    by_name: RwLock<BTreeMap<Box<[u8]>, Arc<Trigger>>>,
    index: RwLock<Arc<Index>>,
    /// Changes with every change of them.
    version: AtomicU64,
    /// What is done afterwards.
    pub outbox: Outbox,
}

impl Triggers {
    /// A trigger.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<Arc<Trigger>> {
        self.by_name.read().get(name).cloned()
    }
    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Trigger>> {
        self.by_name.read().values().cloned().collect()
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
    /// A number that changes with every change of them.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }
    /// Those that keys may fire, as they are now.
    #[must_use]
    pub fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index.read())
    }
}

impl Engine {
    /// Puts a trigger in the place of what has its name, or takes that away.
    pub(crate) fn put_trigger(&self, name: &[u8], trigger: Option<Trigger>) {
        self.put_triggers([(name.into(), trigger)]);
    }
    /// Several at once: what keys may fire is found out anew, which takes time in proportion to all of them.
    fn put_triggers(&self, triggers: impl IntoIterator<Item = (Box<[u8]>, Option<Trigger>)>) {
        let mut by_name = self.triggers.by_name.write();
        for (name, trigger) in triggers {
            match trigger {
                Some(trigger) => drop(by_name.insert(name, Arc::new(trigger))),
                None => drop(by_name.remove(&name)),
            }
        }
        let enabled: Vec<Arc<Trigger>> =
            by_name.values().filter(|trigger| trigger.enabled).cloned().collect();
        let by_itself = enabled.iter().any(|trigger| trigger.on & kind::BY_ITSELF != 0);
        self.special.set(special::TRIGGERS, !enabled.is_empty());
        self.special.set(special::TRIGGERS_BY_ITSELF, by_itself);
        *self.triggers.index.write() = Arc::new(Index::new(enabled));
        self.triggers.version.fetch_add(1, Relaxed);
    }

    /// Reads the triggers of the catalogue: when it came from a log or a snapshot. Says which could not be read, and
    /// why.
    pub(crate) fn load_triggers(&self) -> Vec<String> {
        let (mut problems, mut all) = (Vec::new(), Vec::new());
        for (name, entry) in self.keyspace.catalogue().entries(Section::Triggers) {
            match Trigger::of_entry(&name, &entry) {
                Ok(trigger) => all.push((name, Some(trigger))),
                Err(why) => problems.push(format!("trigger '{}': {why}", String::from_utf8_lossy(&name))),
            }
        }
        self.put_triggers(all);
        self.triggers.outbox.begin(self);
        problems
    }
}

impl Figures {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }
}
