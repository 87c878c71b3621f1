//! Owns: what waits to be done by triggers afterwards: how much of it there is, and events of keys that went by
//! themselves, which are kept in memory only. Does not own: the other entries (`weft_store::catalogue`), doing it
//! (`crate::logic`).

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use weft_store::{Effect, Keyspace, Section};

use super::definition::Trigger;
use super::event::{Event, kind_of};
use super::index::Index;

/// Events of keys that went by themselves that may wait; further ones are counted as lost.
const BY_ITSELF_MAX: usize = 100_000;
/// Bytes of the entries that may wait, and of the names of keys that went by themselves.
pub(crate) const WAITING_BYTES_MAX: usize = 64 << 20;

/// What is to be done afterwards.
#[derive(Debug, Default)]
pub struct Outbox {
    /// How often entries came from elsewhere: from a log or a snapshot.
    pub(crate) loads: AtomicU64,
    /// Events of keys that went by themselves, with the triggers that they fire, in the order of their numbers.
    pub(crate) by_itself: Mutex<VecDeque<(u64, Arc<Trigger>, Event)>>,
    /// How many of them are not done yet: these, and those that stand in queues.
    pub(crate) gone: AtomicUsize,
    /// Bytes of the names of their keys.
    pub(crate) gone_bytes: AtomicUsize,
    /// How many of them were too many.
    pub lost: AtomicU64,
}

/// How triggers have led to what is done afterwards.
#[derive(Debug, Default)]
pub(crate) struct Way {
    /// Their names, the first one first; none if it is a client's doing.
    pub(crate) names: String,
    /// What would have been done afterwards was too deep: another attempt is in vain.
    pub(crate) is_too_deep: bool,
    /// The server has refused what was fired, because its memory is full.
    pub(crate) has_no_room: bool,
}

impl Way {
    /// The names with these behind them.
    pub(crate) fn and(&self, names: &str) -> String {
        match (&*self.names, names) {
            ("", names) => names.to_owned(),
            (way, "") => way.to_owned(),
            (way, names) => format!("{way} > {names}"),
        }
    }
}

impl Outbox {
    /// Goes on behind the entries that there are.
    pub(crate) fn begin(&self, keyspace: &Keyspace) {
        let entries = keyspace.catalogue().entries(Section::Outbox);
        let last = entries.last().and_then(|(name, _)| Some(u64::from_be_bytes(*name.first_chunk()?)));
        keyspace.catalogue().number_behind(last.unwrap_or(0));
        self.loads.fetch_add(1, Relaxed);
    }
    /// A key went by itself. Whoever tells it is in the batch in which it happened, so that who does what waits, with
    /// the keyspace to itself, has been told of all that has happened.
    #[cold]
    pub(crate) fn note(
        &self,
        (keyspace, index): (&Keyspace, &Index),
        (db, key): (u8, &[u8]),
        effect: &Effect<'_>,
        number: Option<u64>,
    ) {
        let Some(kind) = kind_of(effect) else { return };
        let number = number.unwrap_or_else(|| keyspace.catalogue().last_number());
        let event = Event { kind, db, key: key.into() };
        let found = index.find(db, key, kind);
        if found.is_cut() {
            // Nobody can be refused: it counts as one for which there was no room.
            self.lost.fetch_add(1, Relaxed);
        }
        for trigger in found {
            let mut waiting = self.by_itself.lock();
            let bytes = self.gone_bytes.load(Relaxed).saturating_add(key.len());
            if self.gone.load(Relaxed) < BY_ITSELF_MAX && bytes <= WAITING_BYTES_MAX {
                self.gone.fetch_add(1, Relaxed);
                self.gone_bytes.store(bytes, Relaxed);
                put_by_number(&mut waiting, (number, Arc::clone(trigger), event.clone()));
            } else {
                self.lost.fetch_add(1, Relaxed);
            }
        }
    }
    /// Whether anything waits, be it for triggers that are gone: that is dropped when its turn comes.
    pub(crate) fn waits(&self, keyspace: &Keyspace) -> bool {
        self.len(keyspace) > 0
    }
    /// Entries that wait.
    #[must_use]
    pub fn len(&self, keyspace: &Keyspace) -> usize {
        keyspace.catalogue().len(Section::Outbox) + self.gone.load(Relaxed)
    }
}

/// Puts an event behind those whose numbers are as high; nearly always it is the last one.
fn put_by_number(waiting: &mut VecDeque<(u64, Arc<Trigger>, Event)>, event: (u64, Arc<Trigger>, Event)) {
    let higher = waiting.iter().rev().take_while(|(number, ..)| *number > event.0).count();
    waiting.insert(waiting.len() - higher, event);
}
