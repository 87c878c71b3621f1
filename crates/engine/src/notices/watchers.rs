//! Owns: what the engine tells those who look on: the slow log, tracking, events of keys that went by themselves, what
//! an operation has published; and that a session looks on no more. Does
//! not own: the commands that switch these on.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use weft_protocol::table::flag;
use weft_store::{Cause, Effect, KeyedEffect};

use crate::args::Args;
use crate::command_log::LogKind;
use crate::context::{EffectReader, Local};
use crate::engine::Engine;
use crate::notify;
use crate::pubsub::{PendingMessage, Space};
use crate::session::{self, ReplyMode, Session};
use crate::special;

/// What a message takes beside its channel and its text.
const PENDING_BYTES: usize = size_of::<PendingMessage>() + 32;

impl Local {
    /// Publishes a message when what may be taken back stays.
    pub(crate) fn publish_later(&mut self, space: Space, channel: &[u8], payload: &[u8]) {
        let bytes = self.pending_bytes() + PENDING_BYTES + channel.len() + payload.len();
        self.messages.push(PendingMessage { bytes, space, channel: channel.into(), payload: payload.into() });
    }
    /// What the messages take that wait for that.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.messages.last().map_or(0, |message| message.bytes)
    }
}

impl Engine {
    /// Hands on what the store told during a command. The caller holds no lock.
    #[cold]
    pub(crate) fn after_effects(&self, effects: &mut EffectReader, by: &Session) {
        self.end_effects(effects);
        self.invalidate_changed(effects, Some(by.id()));
    }

    /// Hands on what the store told during background work.
    pub fn after_background(&self, effects: &mut EffectReader) {
        self.end_effects(effects);
        self.invalidate_changed(effects, None);
    }

    /// All is told, and forgotten.
    fn end_effects(&self, effects: &mut EffectReader) {
        self.read_effects(effects);
        effects.end_group();
        effects.clear();
    }

    /// Reads what was told since the last time: publishes events, in order, and notes changed keys. Called behind every
    /// event of a command, and behind the command; of what may be taken back nothing is read yet.
    pub(crate) fn read_effects(&self, effects: &mut EffectReader) {
        let EffectReader { recorder, read, changed, flushed, .. } = effects;
        if recorder.has_journal() {
            return;
        }
        let flags = self.events();
        let by_itself = self.special.has(special::TRIGGERS_BY_ITSELF);
        let mut told = recorder.tape().read_from(*read);
        loop {
            let at = told.mark();
            let Some(KeyedEffect { db, key, effect }) = told.next() else { break };
            let publish = |class: u32, event: &str| {
                if flags & class != 0 {
                    notify::publish(self, db, (class, event), key);
                }
            };
            if by_itself
                && let Effect::Delete { cause: Cause::Expired | Cause::Evicted }
                | Effect::FieldsExpired { last: true } = effect
            {
                let (index, number) = (self.triggers.gone(), recorder.number_at(at));
                self.triggers.outbox.note((&self.keyspace, &index), (db, key), &effect, number);
            }
            match effect {
                Effect::Wrote { by_itself } => changed.push((key.into(), by_itself)),
                Effect::Flush | Effect::Swap { .. } => *flushed = true,
                Effect::Event { class, name } => publish(class, name),
                Effect::Created => publish(notify::NEW, "new"),
                Effect::Missed => publish(notify::KEY_MISS, "keymiss"),
                Effect::Delete { cause: Cause::Expired | Cause::Overdue } => {
                    publish(notify::EXPIRED, "expired")
                }
                Effect::Delete { cause: Cause::Evicted } => publish(notify::EVICTED, "evicted"),
                Effect::FieldsExpired { last } => {
                    publish(notify::HASH, "hexpired");
                    if last {
                        publish(notify::GENERIC, "del");
                    }
                }
                _ => {}
            }
        }
        *read = told.mark();
    }

    /// A command took so long: the slow log and the latency monitor.
    pub(crate) fn took(&self, session: &Session, args: &Args<'_>, took: Duration, now_ms: u64) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.command_logs.offer(LogKind::Slow, &self.settings, (session, args), (us, now_ms));
        self.monitor_took(args, took, now_ms);
    }
    /// A command took so long: the latency monitor.
    pub(crate) fn monitor_took(&self, args: &Args<'_>, took: Duration, now_ms: u64) {
        let threshold_ms = self.settings.latency_threshold_ms.load(Relaxed);
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
        let sizes = [(LogKind::LargeRequest, args.resp_bytes()), (LogKind::LargeReply, reply_bytes)];
        for (kind, bytes) in sizes {
            self.command_logs.offer(kind, &self.settings, (session, args), (bytes as u64, now_ms));
        }
    }

    /// All subscriptions of a session end, without an answer.
    pub(crate) fn unsubscribe_all(&self, session: &mut Session) {
        if let Some(all) = session.subscriptions.take() {
            let id = session.id();
            session.has_left = true;
            all.channels.iter().for_each(|name| self.pubsub.unsubscribe(Space::Global, name, id));
            all.shard_channels.iter().for_each(|name| self.pubsub.unsubscribe(Space::Shard, name, id));
            all.patterns.iter().for_each(|name| self.pubsub.unsubscribe_pattern(name, id));
            self.look_at_events();
        }
        session.show_subscriptions();
    }
    /// Everything that a session has been told to be, but its user and its transaction, is as it was at first.
    pub(crate) fn renew(&self, session: &mut Session) {
        self.unsubscribe_all(session);
        self.untrack(&session.info);
        self.monitors.leave(session, &self.special);
        session.select(0);
        session.reply_mode = ReplyMode::On;
        session.caching = None;
        session.info.set_flag(session::OWN_FLAGS, false);
    }

    /// Publishes what an operation had to say that stays, behind the events of what it did.
    pub(crate) fn send_messages(&self, local: &mut Local) {
        if local.messages.is_empty() {
            return;
        }
        self.read_effects(&mut local.effects);
        for PendingMessage { space, channel, payload, .. } in local.messages.drain(..) {
            self.pubsub.publish(&self.mailboxes, space, &channel, &payload);
        }
    }
}
