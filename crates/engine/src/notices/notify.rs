//! Owns: keyspace notifications: publishing them. Does not own: which kinds there are (`crate::config::classes`), when
//! a command tells of one.
//!
//! An event is published while the shard of its key is locked, so the events of a key come in the order of its writes.

use std::sync::atomic::Ordering::Relaxed;
use weft_store::{Key, wants};

pub use crate::config::classes::*;
use crate::context::Context;
use crate::engine::Engine;
use crate::error::Result;
use crate::pubsub::Space;
use crate::special;

impl Engine {
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
    /// Removes a key and tells of `del`. Says whether it was there.
    pub fn delete(&mut self, key: &Key<'_>) -> Result<bool> {
        let (shard, mut op) = self.shard(key)?;
        let Some(garbage) = shard.remove(&mut op, key) else { return Ok(false) };
        self.discard(garbage);
        self.notify(GENERIC, "del", key);
        Ok(true)
    }
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
        engine.feed.add(&engine.mailboxes, db, (class, event), key);
    }
    let flags = engine.settings.notify_flags.load(Relaxed);
    if flags & class == 0 {
        return;
    }
    if flags & KEYSPACE != 0 {
        let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat();
        engine.pubsub.publish(&engine.mailboxes, Space::Global, &channel, event.as_bytes());
    }
    if flags & KEYEVENT != 0 {
        let channel = format!("__keyevent@{db}__:{event}");
        engine.pubsub.publish(&engine.mailboxes, Space::Global, channel.as_bytes(), key);
    }
}
