//! Owns: what has happened to keys, from the effects of a command, and an event as programs and readers see it. Does
//! not own: effects (`weft_store::effect`), which triggers an event fires.

use weft_store::effect::TapeMark;
use weft_store::{Cause, Effect, Told};

use super::definition::kind;
use crate::context::Context;
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
pub(super) const fn kind_of(effect: &Effect<'_>) -> Option<u8> {
    match effect {
        Effect::Delete { cause: Cause::Deleted } | Effect::Move { .. } => Some(kind::DELETE),
        Effect::Delete { cause: Cause::Expired } => Some(kind::EXPIRE),
        Effect::Delete { cause: Cause::Evicted } => Some(kind::EVICT),
        Effect::Wrote { .. }
        | Effect::Created
        | Effect::Missed
        | Effect::Event { .. }
        | Effect::FieldsExpired { .. }
        | Effect::Flush
        | Effect::Swap { .. }
        | Effect::Copy { .. }
        | Effect::Catalogue { .. } => None,
        _ => Some(kind::SET),
    }
}

/// What has happened behind a mark, each key once in the order of its first change: what became of it in the end.
pub(super) fn since(context: &Context<'_, '_>, mark: TapeMark) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for Told { db, key, effect } in context.local.effects.recorder.tape().read_from(mark) {
        // Keys that went by themselves are told of elsewhere.
        if let Some(kind) = kind_of(&effect).filter(|kind| kind & kind::BY_ITSELF == 0) {
            note(&mut events, Event { kind, db, key: key.into() });
        }
        if let Effect::Move { to_db, to } | Effect::Copy { to_db, to } = effect {
            note(&mut events, Event { kind: kind::SET, db: to_db, key: to.into() });
        }
    }
    events
}

fn note(events: &mut Vec<Event>, event: Event) {
    match events.iter_mut().find(|other| other.db == event.db && other.key == event.key) {
        // What had expired when a command came to it and is there again was set.
        Some(other) => other.kind = event.kind,
        None => events.push(event),
    }
}

impl Event {
    /// As programs see it: `kind`, `command`, `db`, `key`, and of what is there now `type`, and `value` of a string.
    pub(super) fn value(&self, command: &str, context: &mut Context<'_, '_>) -> Value {
        let mut members = self.members(command);
        let keyspace = &context.engine.keyspace;
        let key = keyspace.key(&self.key);
        if self.kind == kind::SET
            && let Ok((shard, mut op)) = context.shard_in(self.db, &key)
            && let Some(value) = shard.peek(&mut op, &key)
        {
            let mut put = |name: &str, value: Value| drop(members.insert(name.as_bytes().into(), value));
            put("type", Value::text(value.type_name().as_bytes()));
            let mut digits = weft_store::Digits::default();
            if let Some(bytes) = value.as_bytes(&mut digits) {
                put("length", Value::Int(bytes.len() as i64));
                if bytes.len() <= VALUE_BYTES_MAX {
                    put("value", Value::text(bytes));
                }
            }
        }
        Value::object(members)
    }
    /// What is known of it before it has happened.
    pub(super) fn members(&self, command: &str) -> Members {
        let member = |name: &str, value: Value| (Box::from(name.as_bytes()), value);
        Members::from([
            member("kind", Value::text(kind::name(self.kind).as_bytes())),
            member("command", Value::text(command.as_bytes())),
            member("db", Value::Int(self.db.into())),
            member("key", Value::text(&self.key)),
        ])
    }
}
