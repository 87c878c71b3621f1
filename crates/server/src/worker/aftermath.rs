//! Owns: what follows requests when their batch is over: ended sessions, waits, switched protocols, control frames,
//! limits. Does not own: decoding, sending.

use std::cmp::Reverse;
use std::sync::atomic::Ordering::Relaxed;

use weft_engine::blocking::End;
use weft_engine::error::ErrorCode;
use weft_engine::mailbox::Address;
use weft_engine::reply::{Protocol, ReplySink, Wire};
use weft_engine::session::Then;
use weft_protocol::respb::Control;

use super::Worker;
use crate::channels::{Pending, close};
use crate::connection::{Life, Peer};
use crate::io::{Aftermath, Timer, reason};
use crate::limits::UNAUTHENTICATED_OUTPUT_BYTES_MAX;

impl Worker<'_> {
    /// Sees to everything that the last batch has left.
    pub(super) fn see_to_aftermath(&mut self) {
        while let Some(aftermath) = self.io.aftermath.pop() {
            match aftermath {
                Aftermath::Ran(index, channel) => self.ran(index, channel),
                Aftermath::QueueFull(index, channel) => self.close_channel(index, channel, close::QUEUE),
                Aftermath::OutputFull(index, channel) => self.close_channel(index, channel, close::OUTPUT),
                Aftermath::Paused(index, channel, until_ms) => self.set_timer(index, channel, Some(until_ms)),
            }
        }
    }

    fn ran(&mut self, index: u32, channel: u16) {
        let Some((session, _)) = self.io.client(index, channel) else { return };
        let then = std::mem::take(&mut session.then);
        let deadline_ms = session.wait.as_ref().and_then(|wait| wait.deadline_ms);
        let respb = session.wire.protocol == Protocol::Respb;
        if deadline_ms.is_some() {
            self.set_timer(index, channel, deadline_ms);
        }
        match then {
            Then::GoOn => {}
            Then::Close if respb && channel != 0 => self.close_channel(index, channel, close::DONE),
            Then::Close => self.close_after_output(index),
            Then::SwitchToRespb => self.switch_to_respb(index, false),
            Then::Shutdown => crate::signals::request_stop(),
        }
    }

    fn set_timer(&mut self, index: u32, channel: u16, at_ms: Option<u64>) {
        let client = self.io.client(index, channel).map(|(session, _)| session.id());
        if let (Some(client), Some(at_ms)) = (client, at_ms) {
            self.io.timers.push(Reverse(Timer { at_ms, connection: index, channel, client }));
        }
    }

    /// Ends waits whose time has come, and goes on with what a pause has held.
    pub(super) fn fire_timers(&mut self) {
        while let Some(&Reverse(timer)) = self.io.timers.peek() {
            if timer.at_ms > self.now_ms {
                return;
            }
            self.io.timers.pop();
            let Timer { connection: index, channel, client, .. } = timer;
            let now_ms = self.now_ms;
            let Some((session, _)) = self.io.client(index, channel) else { continue };
            if session.id() != client {
                continue;
            }
            // The timer may be of an earlier wait of the same client.
            let due = session.wait.as_ref().map(|wait| wait.deadline_ms.is_some_and(|at_ms| at_ms <= now_ms));
            match due {
                Some(true) => self.end_wait(index, channel, End::Timeout),
                Some(false) => {}
                None => self.resume(index, channel),
            }
        }
    }

    /// Ends a client's wait and goes on with what stands behind it.
    pub(super) fn end_wait(&mut self, index: u32, channel: u16, end: End) {
        self.io.touch(index);
        self.lend(index, channel);
        let Some((session, output)) = self.io.client(index, channel) else { return };
        let ended = self.executor.end_wait(session, output, end);
        self.settle(index);
        if ended {
            self.resume(index, channel);
        }
    }

    /// Runs what a client's wait or a pause has held, until something waits again.
    pub(super) fn resume(&mut self, index: u32, channel: u16) {
        while let Some((postponed, cancelled)) = self.next_held(index, channel) {
            self.io.touch(index);
            self.lend(index, channel);
            let Some((session, output)) = self.io.client(index, channel) else { return };
            if cancelled {
                session.drop_held();
                ReplySink::new(output, session.wire).error_code(ErrorCode::Cancelled);
                self.settle(index);
                continue;
            }
            let has_run = self.executor.run_owned(&postponed, session, output);
            if !has_run {
                let until_ms = self.engine.pause.until_ms.load(Relaxed);
                self.hold_again(index, channel, postponed);
                self.set_timer(index, channel, Some(until_ms));
                return;
            }
            self.settle(index);
            self.ran(index, channel);
            self.see_to_aftermath();
        }
        self.go_on(index);
    }

    /// The next request that a client may run now.
    fn next_held(&mut self, index: u32, channel: u16) -> Option<(weft_engine::Postponed, bool)> {
        let connection = self.io.get(index).filter(|connection| connection.life == Life::Open)?;
        match &mut connection.peer {
            Peer::Resp(single) if single.session.is_waiting() => None,
            Peer::Resp(single) => single.queue.pop_front().map(|postponed| (postponed, false)),
            Peer::Respb(channels) => {
                let open = channels.get_mut(channel).filter(|open| !open.session.is_waiting())?;
                open.next_held()
            }
        }
    }

    fn hold_again(&mut self, index: u32, channel: u16, postponed: weft_engine::Postponed) {
        let Some(connection) = self.io.get(index) else { return };
        match &mut connection.peer {
            Peer::Resp(single) => single.queue.push_front(postponed),
            Peer::Respb(channels) => {
                if let Some(open) = channels.get_mut(channel) {
                    open.hold_again(postponed);
                }
            }
        }
    }

    /// Notes on a RESPB connection whose output begins here.
    pub(super) fn lend(&mut self, index: u32, channel: u16) {
        let Some((channels, output)) = self.io.channels(index) else { return };
        if let Some(full) = channels.lend(channel, output) {
            self.io.aftermath.push(Aftermath::OutputFull(index, full));
        }
    }

    /// Looks at what the last request of a RESPB connection wrote.
    pub(super) fn settle(&mut self, index: u32) {
        let Some((channels, output)) = self.io.channels(index) else { return };
        if let Some(full) = channels.settle(output) {
            self.close_channel(index, full, close::OUTPUT);
        }
    }

    /// Applies a control frame, all requests before it having run.
    pub(super) fn apply_control(&mut self, index: u32) {
        self.settle(index);
        let Some((channels, _)) = self.io.channels(index) else { return };
        let Some(pending) = channels.pending.take() else { return };
        match pending {
            Pending::Open(channel) => self.open_channel(index, channel),
            Pending::TooMany(channel) => self.send_close(index, channel, close::CHANNELS),
            Pending::Close(channel) => self.closed_by_client(index, channel),
            Pending::Window(channel, more) => {
                channels.window(channel, more);
                self.io.touch(index);
            }
            Pending::Cancel(channel, sequence) => {
                if channels.cancel(channel, sequence) {
                    self.end_wait(index, channel, End::Cancel);
                }
            }
        }
    }

    fn open_channel(&mut self, index: u32, channel: u16) {
        let address = Address { worker: self.id, channel, connection: index };
        let wire = Wire { protocol: Protocol::Respb, channel };
        let engine = self.engine;
        let Some(connection) = self.io.get(index) else { return };
        let info = std::sync::Arc::clone(&connection.info);
        let Peer::Respb(channels) = &mut connection.peer else { return };
        let session = engine.connect(address, wire, info, channels.get(0).map(|zero| &zero.session));
        channels.open(channel, session);
    }

    fn closed_by_client(&mut self, index: u32, channel: u16) {
        let Some((channels, _)) = self.io.channels(index) else { return };
        if channels.is_closing(channel) {
            // It answers a CLOSE of ours.
            channels.remove(channel);
            return;
        }
        if let Some(session) = channels.remove(channel) {
            self.executor.disconnect(session);
        }
        if channel == 0 {
            self.open_again(index);
        }
        self.send_close(index, channel, close::DONE);
    }

    /// Channel 0 starts anew with the default user.
    fn open_again(&mut self, index: u32) {
        let address = Address { worker: self.id, channel: 0, connection: index };
        let wire = Wire { protocol: Protocol::Respb, channel: 0 };
        let engine = self.engine;
        let Some(connection) = self.io.get(index) else { return };
        let info = std::sync::Arc::clone(&connection.info);
        let Peer::Respb(channels) = &mut connection.peer else { return };
        channels.open(0, engine.connect(address, wire, info, None));
    }

    /// The server closes a channel; channel 0 is the connection.
    pub(super) fn close_channel(&mut self, index: u32, channel: u16, code: u16) {
        let Some((channels, _)) = self.io.channels(index) else { return };
        let Some(session) = channels.start_closing(channel) else { return };
        self.executor.disconnect(session);
        self.send_close(index, channel, code);
        if channel == 0 {
            self.close_after_output(index);
        }
    }

    pub(super) fn send_close(&mut self, index: u32, channel: u16, code: u16) {
        self.io.touch(index);
        if let Some((_, output)) = self.io.channels(index) {
            Control::Close { code, reason: reason(code).as_bytes() }.encode(channel, &mut output.bytes);
        }
    }

    /// The server stops: a connection gets what it is owed, RESPB clients the reason.
    pub(super) fn close_for_shutdown(&mut self, index: u32) {
        let numbers = match self.io.channels(index) {
            Some((channels, _)) => channels.numbers(),
            None => Vec::new(),
        };
        for channel in numbers {
            self.send_close(index, channel, close::SHUTDOWN);
        }
        self.close_after_output(index);
    }

    /// Whether a connection's unsent output is over the limit of its class.
    pub(super) fn exceeds_output(&mut self, index: u32, unsent: usize) -> bool {
        let settings = &self.engine.settings;
        let now_ms = self.now_ms;
        let Some(connection) = self.io.get(index) else { return false };
        let (subscriber, authenticated) = match &connection.peer {
            Peer::Resp(single) => (single.session.subscriptions.is_some(), single.session.authenticated),
            Peer::Respb(channels) => (false, channels.authenticated),
        };
        if !authenticated && settings.auth_required.load(Relaxed) && unsent > UNAUTHENTICATED_OUTPUT_BYTES_MAX
        {
            return true;
        }
        let (hard_bytes, soft_bytes, soft_s) = if subscriber {
            let (hard, soft) = (&settings.output_pubsub_hard_bytes, &settings.output_pubsub_soft_bytes);
            (hard.load(Relaxed), soft.load(Relaxed), settings.output_pubsub_soft_s.load(Relaxed))
        } else {
            let (hard, soft) = (&settings.output_normal_hard_bytes, &settings.output_normal_soft_bytes);
            (hard.load(Relaxed), soft.load(Relaxed), settings.output_normal_soft_s.load(Relaxed))
        };
        if hard_bytes > 0 && unsent > hard_bytes {
            return true;
        }
        if soft_bytes == 0 || unsent <= soft_bytes {
            connection.over_soft_ms = 0;
            return false;
        }
        if connection.over_soft_ms == 0 {
            connection.over_soft_ms = now_ms;
        }
        now_ms.saturating_sub(connection.over_soft_ms) > u64::from(soft_s) * 1000
    }
}
