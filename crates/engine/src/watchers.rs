//! Owns: what the engine tells those who look on: the slow log, tracking, events of keys that went by themselves. Does
//! not own: the commands that switch these on.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use weft_protocol::table::flag;

use crate::args::Args;
use crate::command_log::LogKind;
use crate::context::Effects;
use crate::engine::Engine;
use crate::notify;
use crate::pubsub::Space;
use crate::session::Session;

impl Engine {
    /// Hands on what the store told during a command. The caller holds no lock.
    #[cold]
    pub(crate) fn after_effects(&self, effects: &mut Effects, by: &Session) {
        self.tell_seen(effects);
        self.invalidate_changed(effects, Some(by.id()));
    }

    /// Hands on what the store told during background work.
    pub fn after_background(&self, effects: &mut Effects) {
        self.tell_seen(effects);
        self.invalidate_changed(effects, None);
    }

    /// Tells what the store has seen, in order. Called before every event of a command, so that `new` comes before
    /// `set`, and behind the command.
    pub(crate) fn tell_seen(&self, effects: &mut Effects) {
        let flags = self.settings.notify_flags.load(Relaxed);
        for (db, key, seen) in effects.seen.drain(..) {
            for (class, event) in seen.events() {
                if flags & class != 0 {
                    notify::publish(self, db, flags, event, &key);
                }
            }
        }
    }

    /// A command took so long: the slow log and the latency monitor.
    pub(crate) fn took(&self, session: &Session, args: &Args<'_>, took: Duration, now_ms: u64) {
        let settings = &self.settings;
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let is_logged = args.spec.flags & flag::SKIP_COMMANDLOG == 0;
        if is_logged
            && u64::try_from(settings.slowlog_slower_than_us.load(Relaxed)).is_ok_and(|limit| us >= limit)
        {
            self.command_logs.offer(LogKind::Slow, settings, (session, args), (us, now_ms));
        }
        let threshold_ms = settings.latency_threshold_ms.load(Relaxed);
        let event = if args.spec.flags & flag::FAST != 0 { "fast-command" } else { "command" };
        self.event_took(event, took, threshold_ms, now_ms);
    }

    /// Something that the latency monitor names took so long; `threshold_ms` is the setting, 0 for off.
    pub fn event_took(&self, event: &'static str, took: Duration, threshold_ms: u64, now_ms: u64) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if threshold_ms != 0 && ms >= threshold_ms {
            self.latency.add(event, ms, now_ms);
        }
    }

    /// A request or its reply may have been large: the other two logs.
    #[cold]
    pub(crate) fn was_large(&self, session: &Session, args: &Args<'_>, reply_bytes: usize, now_ms: u64) {
        if args.spec.flags & flag::SKIP_COMMANDLOG == 0 {
            let sizes = [(LogKind::LargeRequest, args.resp_bytes()), (LogKind::LargeReply, reply_bytes)];
            for (kind, bytes) in sizes {
                self.command_logs.offer(kind, &self.settings, (session, args), (bytes as u64, now_ms));
            }
        }
    }

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
