//! Owns: keyspace notifications: which kinds there are, and publishing them. Does not own: when a command tells of one.
//!
//! An event is published while the shard of its key is locked, so the events of a key come in the order of its writes.

use std::sync::atomic::Ordering::Relaxed;
use weft_store::{Key, wants};

use crate::context::Context;
use crate::engine::Engine;
use crate::pubsub::Space;
use crate::special;

/// `K`: publish to `__keyspace@db__:key`.
pub const KEYSPACE: u32 = 1 << 0;
/// `E`: publish to `__keyevent@db__:event`.
pub const KEYEVENT: u32 = 1 << 1;
/// `g`: commands of any type.
pub const GENERIC: u32 = 1 << 2;
/// `$`
pub const STRING: u32 = 1 << 3;
/// `l`
pub const LIST: u32 = 1 << 4;
/// `s`
pub const SET: u32 = 1 << 5;
/// `h`
pub const HASH: u32 = 1 << 6;
/// `z`
pub const ZSET: u32 = 1 << 7;
/// `x`: a key's time had come.
pub const EXPIRED: u32 = 1 << 8;
/// `e`: a key had to go for memory.
pub const EVICTED: u32 = 1 << 9;
/// `t`
pub const STREAM: u32 = 1 << 10;
/// `m`: a key was looked for and not found.
pub const KEY_MISS: u32 = 1 << 11;
/// `d`: events of modules.
pub const MODULE: u32 = 1 << 12;
/// `n`: a key that was not there is.
pub const NEW: u32 = 1 << 13;
/// `A`: all but `m` and `n`.
pub const ALL: u32 = GENERIC | STRING | LIST | SET | HASH | ZSET | EXPIRED | EVICTED | STREAM | MODULE;

const LETTERS: [(u8, u32); 15] = [
    (b'A', ALL),
    (b'g', GENERIC),
    (b'$', STRING),
    (b'l', LIST),
    (b's', SET),
    (b'h', HASH),
    (b'z', ZSET),
    (b'x', EXPIRED),
    (b'e', EVICTED),
    (b't', STREAM),
    (b'd', MODULE),
    (b'K', KEYSPACE),
    (b'E', KEYEVENT),
    (b'm', KEY_MISS),
    (b'n', NEW),
];

/// The flags that letters stand for; nothing when one is unknown.
#[must_use]
pub fn parse(letters: &str) -> Option<u32> {
    letters.bytes().try_fold(0, |flags, letter| {
        LETTERS.iter().find(|(other, _)| *other == letter).map(|(_, flag)| flags | flag)
    })
}

/// The letters of flags, as CONFIG GET shows them.
#[must_use]
pub fn letters(flags: u32) -> String {
    let mut left = flags;
    let mut text = String::new();
    for (letter, flag) in LETTERS {
        if left & flag == flag {
            text.push(char::from(letter));
            left &= !flag;
        }
    }
    text
}

/// What every channel of an event begins with.
const CHANNELS: &[u8] = b"__key";

/// Whether a channel may be one of events, or a pattern stand for one.
pub(crate) fn may_be_heard_by(name: &[u8], is_pattern: bool) -> bool {
    let literal = if is_pattern {
        name.iter().position(|byte| b"*?[\\".contains(byte)).map_or(name, |end| &name[..end])
    } else {
        name
    };
    let common = literal.len().min(CHANNELS.len());
    literal[..common] == CHANNELS[..common]
        && (is_pattern && literal.len() < name.len() || common == CHANNELS.len())
}

impl Engine {
    /// The classes of events that are wanted; none while nobody would get them.
    #[inline]
    pub(crate) fn events(&self) -> u32 {
        if !self.special.has(special::EVENTS) {
            return 0;
        }
        self.settings.notify_flags.load(Relaxed) | self.feed.classes()
    }
    /// Who is subscribed, or which events are wanted, has changed.
    pub(crate) fn look_at_events(&self) {
        // One at a time: the last one sees how it is.
        let _one = self.looks_at_events.lock();
        let wanted = self.settings.notify_flags.load(Relaxed) != 0;
        let are_heard = wanted && self.pubsub.may_hear_events() || self.feed.classes() != 0;
        self.special.set(special::EVENTS, are_heard);
    }
}

impl Context<'_, '_> {
    /// Tells of an event on a key.
    #[inline]
    pub fn notify(&mut self, class: u32, event: &str, key: &Key<'_>) {
        self.notify_in(self.db, class, event, key);
    }
    /// Tells of an event on a key in another database than the session's: MOVE, COPY.
    #[inline]
    pub fn notify_in(&mut self, db: u8, class: u32, event: &str, key: &Key<'_>) {
        let flags = self.engine.events();
        if flags & class != 0 || self.engine.keyspace.wanted() & wants::EVENTS != 0 {
            self.local.effects.recorder.tell_event(db, key, class, event);
            self.engine.read_effects(&mut self.local.effects);
        }
    }
}

/// Publishes an event, if its class has been asked for: to subscribers by `notify-keyspace-events`, and to who follows.
#[cold]
pub(crate) fn publish(engine: &Engine, db: u8, (class, event): (u32, &str), key: &[u8]) {
    if engine.feed.classes() & class != 0 {
        engine.tell_followers(db, class, event, key);
    }
    let flags = engine.settings.notify_flags.load(Relaxed);
    if flags & class == 0 {
        return;
    }
    if flags & KEYSPACE != 0 {
        let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat();
        engine.pubsub.publish(engine, Space::Global, &channel, event.as_bytes());
    }
    if flags & KEYEVENT != 0 {
        let channel = format!("__keyevent@{db}__:{event}");
        engine.pubsub.publish(engine, Space::Global, channel.as_bytes(), key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_flags() {
        assert_eq!(parse("AKE"), Some(ALL | KEYSPACE | KEYEVENT));
        assert_eq!(letters(ALL | KEYSPACE), "AK");
        assert_eq!(letters(parse("g$").unwrap()), "g$");
        assert_eq!(parse("q"), None);
    }
}
