//! Owns: what the engine tells those who look on: MONITOR, the slow log, tracking, events of keys that went by
//! themselves. Does not own: the commands that switch these on.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::args::Args;
use crate::context::Effects;
use crate::engine::Engine;
use crate::notify;
use crate::pubsub::Space;
use crate::session::Session;

impl Engine {
    /// Whether anybody needs the store's effects.
    #[must_use]
    pub fn wants_effects(&self) -> bool {
        self.settings.notify_flags.load(Relaxed) & (notify::EXPIRED | notify::EVICTED) != 0
    }

    /// Hands on what the store told during a command.
    pub(crate) fn after_effects(&self, effects: &mut Effects, _by: &Session) {
        self.after_background(effects);
    }

    /// Hands on what the store told during background work.
    pub fn after_background(&self, effects: &mut Effects) {
        let flags = self.settings.notify_flags.load(Relaxed);
        for (db, key, evicted) in effects.gone.drain(..) {
            let (class, event) =
                if evicted { (notify::EVICTED, "evicted") } else { (notify::EXPIRED, "expired") };
            if flags & class != 0 {
                notify::publish(self, db, flags, event, &key);
            }
        }
        effects.changed.clear();
    }

    /// Shows a command to MONITOR before it runs.
    #[inline]
    pub(crate) fn monitor(&self, _session: &Session, _args: &Args<'_>, _now_ms: u64) {}

    /// A command took so long: the slow log and the latency monitor.
    pub(crate) fn took(&self, _session: &Session, _args: &Args<'_>, _took: Duration, _now_ms: u64) {}

    /// All subscriptions of a session end, without an answer.
    pub(crate) fn unsubscribe_all(&self, session: &mut Session) {
        if let Some(all) = session.subscriptions.take() {
            let id = session.id();
            all.channels.iter().for_each(|name| self.pubsub.unsubscribe(Space::Global, name, id));
            all.shard_channels.iter().for_each(|name| self.pubsub.unsubscribe(Space::Shard, name, id));
            all.patterns.iter().for_each(|name| self.pubsub.unsubscribe_pattern(name, id));
        }
        crate::commands::subscriptions_changed(session);
    }
}
