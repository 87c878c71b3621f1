//! Owns: what has happened to keys, from the effects of a command, and what is known of an event. Does not own: what
//! is there now (`crate::logic`), effects (`weft_store::effect`), which triggers an event fires.

use std::collections::HashMap;

use weft_store::effect::TapeMark;
use weft_store::{Cause, Effect, KeyedEffect, Recorder};

use super::definition::kind;
use super::index::{Asked, Index};
pub use crate::program::members::{member, members_of};
use crate::program::value::{Members, Value};

/// Bytes of a new value that an event carries; of a longer one it says the length alone.
pub const VALUE_BYTES_MAX: usize = 64 << 10;

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Of which kind: one bit.
    pub kind: u8,
    /// In which database.
    pub db: u8,
    /// Of which key.
    pub key: Box<[u8]>,
}

/// Of which kind an effect is.
pub(crate) const fn kind_of(effect: &Effect<'_>) -> Option<u8> {
    match effect {
        Effect::Delete { cause: Cause::Deleted | Cause::Overdue } | Effect::Move { .. } => Some(kind::DELETE),
        Effect::Delete { cause: Cause::Expired } | Effect::FieldsExpired { last: true } => Some(kind::EXPIRE),
        Effect::Delete { cause: Cause::Evicted } => Some(kind::EVICT),
        Effect::Wrote { .. }
        | Effect::Created
        | Effect::Missed
        | Effect::Event { .. }
        | Effect::FieldsExpired { last: false }
        | Effect::Flush
        | Effect::Swap { .. }
        | Effect::Copy { .. }
        | Effect::Catalogue { .. } => None,
        _ => Some(kind::SET),
    }
}

/// What has happened behind a mark to keys that may fire any, or of which that would take too long to find out, each
/// once in the order of its first change: what became of it in the end.
pub(crate) fn since(index: &Index, recorder: &Recorder, mark: TapeMark) -> Vec<Event> {
    let (mut events, mut asked) = (Events::default(), Asked::default());
    let mut note = |db: u8, key: &[u8], kind: u8| {
        if index.has_beside(key, &mut asked) {
            events.note(db, key, kind);
        }
    };
    let mut last_expired = false;
    for KeyedEffect { db, key, effect } in recorder.tape().read_from(mark) {
        // A hash whose last fields went by themselves went so too, though its end is told as that of any other.
        let went =
            std::mem::replace(&mut last_expired, matches!(effect, Effect::FieldsExpired { last: true }));
        if went && matches!(effect, Effect::Delete { .. }) {
            continue;
        }
        // Keys that went by themselves are told of elsewhere.
        if let Some(kind) = kind_of(&effect).filter(|kind| kind & kind::BY_ITSELF == 0) {
            note(db, key, kind);
        }
        if let Effect::Move { to_db, to } | Effect::Copy { to_db, to } = effect {
            note(to_db, to, kind::SET);
        }
    }
    events.all
}

/// Events that are looked through one by one for that of a key; more have a table.
const FEW: usize = 16;

/// Events, each key's once.
#[derive(Default)]
struct Events {
    all: Vec<Event>,
    /// Where the event of a key stands, once they are not few.
    places: HashMap<(u8, Box<[u8]>), usize>,
}

impl Events {
    fn note(&mut self, db: u8, key: &[u8], kind: u8) {
        let at = match self.all.len() {
            ..FEW => self.all.iter().position(|other| other.db == db && *other.key == *key),
            _ => self.places.get(&(db, Box::from(key))).copied(),
        };
        // What had expired when a command came to it and is there again was set.
        if let Some(at) = at {
            self.all[at].kind = kind;
            return;
        }
        self.all.push(Event { kind, db, key: key.into() });
        if self.all.len() >= FEW {
            let missing = self.places.len()..self.all.len();
            self.places.extend(missing.map(|at| ((self.all[at].db, self.all[at].key.clone()), at)));
        }
    }
}

impl Event {
    /// What is known of it before it has happened.
    pub(crate) fn members(&self, read: u8, command: &[u8]) -> Members {
        let mut members = Members::new();
        for (name, bit) in member::NAMES {
            let value = match read & bit {
                member::KIND => Value::text(kind::name(self.kind).as_bytes()),
                member::COMMAND => Value::text(command),
                member::DB => Value::Int(self.db.into()),
                member::KEY => Value::text(&self.key),
                _ => continue,
            };
            members.insert(name.as_bytes().into(), value);
        }
        members
    }
}
