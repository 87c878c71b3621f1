//! Owns: what follows requests when their batch is over: ended sessions, waits, switched protocols, control frames,
//! limits. Does not own: decoding, sending.
//!
//! Nothing here decodes, and nothing here sends: what may go on is put on a list, and the top level of the loop
//! (`super`) goes through it. So a request that is being decoded cannot be met again by what it has set going.

use std::sync::atomic::Ordering::Relaxed;

use weft_engine::blocking::End;
use weft_engine::config::Settings;
use weft_engine::error::{Error, ErrorCode};
use weft_engine::mailbox::Address;
use weft_engine::reply::{Protocol, ReplySink, Wire};
use weft_engine::session::Then;
use weft_protocol::respb::Control;

use super::Worker;
use super::farewell::gives_up;
use crate::channels::{Channels, Pending, Reason, close};
use crate::client::HeldRequest;
use crate::connection::{Connection, Life, Peer};
use crate::io::Aftermath;
use crate::limits::{TIMERS_PER_TICK_MAX, UNAUTHENTICATED_OUTPUT_BYTES_MAX};
use crate::timers::About;
use crate::tls::Transport;

/// The end of a connection that does not authenticate.
const AUTHENTICATION_TOOK_LONG: &str = "this connection has not authenticated in time (auth-timeout): connect again and send AUTH or HELLO first";

impl Worker<'_> {
    /// Sees to everything that is left to be seen to, and to what that leaves; of what was held, to as much as a tick
    /// may run.
    pub(super) fn see_to_aftermath(&mut self) {
        while let Some(aftermath) = self.io.aftermath.pop_front() {
            match aftermath {
                Aftermath::FollowUp(index, channel) => self.follow_up(index, channel),
                Aftermath::Ended(index, channel) => self.channel_ended(index, channel),
                Aftermath::Paused(index, channel, until_ms) => self.io.set_alarm(index, channel, until_ms),
                Aftermath::Resume(..) if self.io.resumes_left == 0 => self.io.later.push_back(aftermath),
                Aftermath::Resume(index, channel) => {
                    self.io.resumes_left -= 1;
                    self.resume(index, channel);
                }
            }
        }
    }

    fn follow_up(&mut self, index: u32, channel: u16) {
        let Some((session, _)) = self.io.client(index, channel) else { return };
        let then = std::mem::take(&mut session.then);
        let deadline_ms = session.wait.as_ref().and_then(|wait| wait.deadline_ms);
        let respb = session.wire.protocol == Protocol::Respb;
        self.io.set_alarm(index, channel, deadline_ms.unwrap_or(0));
        match then {
            Then::GoOn => {}
            Then::Close if respb => self.close_channel(index, channel, &close::DONE),
            Then::Killed if respb => self.close_channel(index, channel, &close::KILLED),
            Then::Close | Then::Killed => self.end_connection(index, &close::DONE),
            Then::SwitchToRespb => self.switch_to_respb(index, false),
            Then::Shutdown => crate::signals::request_stop(),
        }
    }

    /// Ends waits whose time has come, and goes on with what a pause has held: some of them. While a script takes its
    /// time, which has locked keys, only connections are looked at.
    pub(super) fn fire_timers(&mut self) {
        let of_clients_too = !self.engine.is_busy();
        for _ in 0..TIMERS_PER_TICK_MAX {
            let Some(timer) = self.io.timers.take_due(self.now_ms, of_clients_too) else { return };
            match timer.about {
                About::Client(channel) => self.client_due(timer.connection, channel, timer.client),
                About::Connection => self.deadline_passed(timer.connection),
            }
            self.see_to_aftermath();
        }
        self.is_behind = true;
    }

    fn client_due(&mut self, index: u32, channel: u16, id: u64) {
        let client = self.io.get(index).and_then(|connection| connection.peer.client(channel));
        // One that is being taken down has left its place to another, whose time it is not.
        let Some(client) = client.filter(|client| client.session.id() == id) else { return };
        client.alarm.forget();
        if client.session.wait.is_some() {
            self.end_wait(index, channel, End::Timeout);
        } else if !self.heartbeat(index) {
            self.io.aftermath.push_back(Aftermath::Resume(index, channel));
        }
    }

    /// A connection has had the time that there is to authenticate, or to end.
    fn deadline_passed(&mut self, index: u32) {
        let Some(connection) = self.io.get(index) else { return };
        connection.alarm.forget();
        if matches!(connection.life, Life::Draining { .. }) {
            self.io.kill(index);
        } else if connection.life == Life::Closing {
            self.farewell_takes_long(index);
        } else if matches!(&connection.transport, Transport::Tls(tls) if !tls.is_established()) {
            self.engine.stats.tls_handshakes_failed.fetch_add(1, Relaxed);
            self.io.kill(index);
        } else if matches!(connection.peer, Peer::Http(_)) {
            self.http_deadline_passed(index);
        } else if !connection.is_authenticated() {
            self.refuse(index, close::UNAUTHENTICATED, &Error::err(AUTHENTICATION_TOOK_LONG));
        }
    }

    /// Ends a client's wait; what stands behind it is to go on.
    pub(super) fn end_wait(&mut self, index: u32, channel: u16, end: End) {
        self.io.touch(index);
        self.lend(index, channel);
        let Some((session, output)) = self.io.client(index, channel) else { return };
        let to = session.info.recipient();
        let ended = self.executor.end_wait(session, output, end);
        self.settle(index);
        if ended {
            self.paid(index, channel);
            self.waits_no_more(index, channel);
        } else {
            self.unblock_upstream(to, end);
        }
    }

    /// A client's wait has been answered.
    pub(super) fn waits_no_more(&mut self, index: u32, channel: u16) {
        self.io.set_alarm(index, channel, 0);
        self.goes_on(index, channel);
    }

    /// A client waits no more, or is gone: what it has held goes on, and a connection that it has held back, or whose
    /// last replies are awaited. Of a channel mostly none of these is there.
    fn goes_on(&mut self, index: u32, channel: u16) {
        let holds = |connection: &mut Connection| match &connection.peer {
            Peer::Respb(channels) => {
                channels.holds(channel) || channels.is_held_back() || connection.is_last_awaited
            }
            Peer::Resp(_) | Peer::Http(_) => true,
        };
        if self.io.get(index).is_some_and(holds) {
            self.io.aftermath.push_back(Aftermath::Resume(index, channel));
        }
    }

    /// Gives a turn to programs that have waited for it, to so many of them at most: until it is over.
    pub(super) fn take_turns(&mut self, waiting: usize) {
        self.executor.begin_turn(false);
        for _ in 0..waiting {
            if self.executor.is_turn_over() {
                return;
            }
            let Some((index, channel)) = self.io.turns.pop_front() else { return };
            self.resume(index, channel);
            self.see_to_aftermath();
        }
    }

    /// Runs the next request that a client's wait or a pause has held, if there is one that may run; then the one
    /// behind it is seen to.
    pub(super) fn resume(&mut self, index: u32, channel: u16) {
        let Some(held) = self.next_held(index, channel) else {
            self.unwatch_idle(index, channel);
            return self.go_on(index);
        };
        if !held.cancelled
            && let Some((session, _)) = self.io.client(index, channel)
            && self.executor.waits_for_turn(&held.postponed, session)
        {
            self.hold_again(index, channel, held);
            return self.io.turns.push_back((index, channel));
        }
        self.io.touch(index);
        self.lend(index, channel);
        let Some((session, output)) = self.io.client(index, channel) else { return };
        if held.cancelled {
            session.drop_held();
            ReplySink::new(output, session.wire).error_code(ErrorCode::Cancelled);
            self.settle(index);
        } else if self.executor.run_owned(&held.postponed, session, output) {
            self.settle(index);
            self.follow_up(index, channel);
            if held.postponed.may_be_barrier() {
                self.after_barrier(index);
                self.read_again(index);
            }
        } else {
            // Where its reply was to begin is forgotten: the output may be sent before it runs.
            self.settle(index);
            let until_ms = self.engine.held_back_until_ms(self.now_ms);
            self.hold_again(index, channel, held);
            return self.io.set_alarm(index, channel, until_ms);
        }
        if channel == 0 {
            self.pass_users_on(index, Channels::pass_users_on);
        }
        self.io.aftermath.push_back(Aftermath::Resume(index, channel));
    }

    /// Channels that have waited for a user go on.
    fn pass_users_on(&mut self, index: u32, release: impl FnOnce(&mut Channels) -> Vec<u16>) {
        let Some((channels, _)) = self.io.channels(index) else { return };
        let resumed = release(channels).into_iter().map(|channel| Aftermath::Resume(index, channel));
        self.io.aftermath.extend(resumed);
    }

    /// A connection's clients wait no more: its input is taken again, and what it has kept of it is decoded.
    pub(super) fn go_on(&mut self, index: u32) {
        let blocks = self.io.channels(index).and_then(|(channels, _)| channels.blocks_hold());
        if let Some((channel, full)) = blocks {
            return self.close_channel(index, channel, full);
        }
        let Some(connection) = self.io.get(index) else { return };
        // A RESPB connection that is not held back decodes whatever its channels wait for: it has kept a part of a
        // frame at most.
        let was_held = match &mut connection.peer {
            Peer::Resp(_) | Peer::Http(_) => true,
            Peer::Respb(channels) => channels.end_hold() || connection.is_last_awaited,
        };
        if was_held {
            self.read_again(index);
        }
    }

    /// A connection is read from again, if what it has sent may be decoded.
    pub(super) fn read_again(&mut self, index: u32) {
        if self.io.get(index).is_none_or(|connection| !connection.may_go_on()) {
            return;
        }
        self.renew(index);
        let Some(connection) = self.io.get(index) else { return };
        if !connection.kept().is_empty() {
            self.io.put_off(index);
        }
        self.set_reading(index, true);
    }

    fn next_held(&mut self, index: u32, channel: u16) -> Option<HeldRequest> {
        let connection = self.io.get(index).filter(|connection| connection.life == Life::Open)?;
        if connection.waits_for_room {
            return None;
        }
        match &mut connection.peer {
            Peer::Respb(channels) => channels.next_held(channel),
            peer @ (Peer::Resp(_) | Peer::Http(_)) => peer.client(channel)?.next_held(),
        }
    }

    fn hold_again(&mut self, index: u32, channel: u16, held: HeldRequest) {
        let Some(connection) = self.io.get(index) else { return };
        match &mut connection.peer {
            Peer::Respb(channels) => channels.hold_again(channel, held),
            peer @ (Peer::Resp(_) | Peer::Http(_)) => {
                peer.client(channel).map(|client| client.hold_again(held));
            }
        }
    }

    /// Notes on a RESPB connection whose output begins here.
    pub(super) fn lend(&mut self, index: u32, channel: u16) {
        if let Some(Some(connection)) = self.io.slots.get_mut(index as usize)
            && let Peer::Http(http) = &mut connection.peer
        {
            http.ledger.lend(&mut connection.output, &mut self.io.pen);
            return;
        }
        let Some((channels, output)) = self.io.channels(index) else { return };
        if let Some(ended) = channels.lend(channel, output) {
            self.io.aftermath.push_back(Aftermath::Ended(index, ended));
        }
    }

    /// Looks at what the last request of a RESPB or HTTP connection wrote.
    pub(super) fn settle(&mut self, index: u32) {
        let Some((channels, output)) = self.io.channels(index) else { return self.settle_http(index, false) };
        if let Some(ended) = channels.settle(output) {
            self.io.aftermath.push_back(Aftermath::Ended(index, ended));
        }
    }

    /// Applies a control frame, all requests before it having run.
    pub(super) fn apply_control(&mut self, index: u32) {
        self.settle(index);
        self.see_to_aftermath();
        let Some((channels, _)) = self.io.channels(index) else { return };
        let Some(pending) = channels.pending.take() else { return };
        // What ran before it may have ended the connection: behind GOAWAY there is no CLOSE, and nothing opens.
        if self.io.get(index).is_none_or(|connection| connection.life != Life::Open) {
            return;
        }
        let Some((channels, _)) = self.io.channels(index) else { return };
        match pending {
            Pending::Open(channel) => self.open_channel(index, channel),
            Pending::TooMany(channel) => {
                let may_stay = channels.refuse(channel);
                self.send_close(index, channel, &close::CHANNELS);
                if !may_stay {
                    self.end_connection(index, &close::CHANNELS);
                }
                self.count_kept(index);
            }
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
        self.see_to_aftermath();
    }

    fn open_channel(&mut self, index: u32, channel: u16) {
        let address = Address { worker: self.id, channel, connection: index };
        let wire = Wire { protocol: Protocol::Respb, channel };
        let engine = self.engine;
        let Some(connection) = self.io.get(index) else { return };
        let info = std::sync::Arc::clone(&connection.info);
        let Peer::Respb(channels) = &mut connection.peer else { return };
        let session = engine.connect(address, wire, info, channels.get(0).map(|zero| &zero.client.session));
        channels.open(channel, session);
        channels.wait_for_user(channel);
        self.count_kept(index);
    }

    fn closed_by_client(&mut self, index: u32, channel: u16) {
        self.io.set_alarm(index, channel, 0);
        if let Some(connection) = self.io.get(index) {
            connection.set_replies_bytes(channel, 0);
        }
        let Some((channels, _)) = self.io.channels(index) else { return };
        let (answer, session) = channels.closed_by_client(channel);
        if let Some(session) = session {
            self.executor.disconnect(session);
        }
        let Some(reason) = answer else { return };
        if channel == 0 {
            self.open_again(index);
            self.pass_users_on(index, Channels::disinherit);
        }
        self.send_close(index, channel, reason);
        self.goes_on(index, channel);
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

    /// The server closes a channel; channel 0 is the connection. Once GOAWAY has been sent nothing is closed any more.
    pub(super) fn close_channel(&mut self, index: u32, channel: u16, reason: &'static Reason) {
        self.settle(index);
        if self.io.get(index).is_none_or(|connection| connection.life != Life::Open) {
            return;
        }
        let Some((channels, _)) = self.io.channels(index) else { return };
        if channels.end(channel, reason) {
            self.channel_ended(index, channel);
        }
    }

    /// A channel has been ended, or the reply has come that was still owed to one: its client is taken down.
    fn channel_ended(&mut self, index: u32, channel: u16) {
        self.settle(index);
        self.io.touch(index);
        let Some((channels, _)) = self.io.channels(index) else { return };
        let Some((mut client, reason)) = channels.take_ended(channel) else { return };
        client.set_alarm(&mut self.io.timers, (index, channel), 0);
        let to = client.session.info.recipient();
        let is_over = gives_up(&mut self.executor, (index, channel), &mut client.session);
        let Some((channels, output)) = self.io.channels(index) else { return };
        if is_over {
            channels.pay(channel);
            channels.close_if_done(channel, output);
            if let Some(connection) = self.io.get(index) {
                connection.replies_bytes -= client.replies_bytes;
            }
            self.executor.disconnect(client.session);
        } else {
            channels.put_back(channel, client);
            self.unblock_upstream(to, End::Leaving);
        }
        self.goes_on(index, channel);
        if channel == 0 {
            self.end_connection(index, reason);
        }
    }

    /// A reply has come that somebody else was writing: a channel that has waited for no more ends.
    pub(super) fn paid(&mut self, index: u32, channel: u16) {
        let Some((channels, _)) = self.io.channels(index) else { return };
        if channels.pay(channel) {
            self.io.aftermath.push_back(Aftermath::Ended(index, channel));
        }
    }

    /// Answers the CLOSE of a client, or refuses a channel.
    pub(super) fn send_close(&mut self, index: u32, channel: u16, reason: &Reason) {
        self.settle(index);
        self.io.touch(index);
        if let Some((_, output)) = self.io.channels(index) {
            let Reason { code, text } = *reason;
            Control::Close { code, reason: text.as_bytes() }.encode(channel, &mut output.bytes);
        }
    }

    /// Whether what a connection owes is over a limit: of one that has not authenticated, or of its class. What its
    /// channels' frames take that wait to be sent counts, and replies that wait at a gateway.
    pub(super) fn exceeds_output(&mut self, index: u32) -> bool {
        let settings = &self.engine.settings;
        let now_ms = self.now_ms;
        let Some(connection) = self.io.get(index) else { return false };
        let owed = connection.limited_bytes();
        let subscriber = match &connection.peer {
            Peer::Resp(single) => single.client.session.subscriptions.is_some(),
            // A channel has a class of its own.
            Peer::Respb(_) => false,
            Peer::Http(http) => http.ledger.flows(),
        };
        if !connection.is_authenticated()
            && settings.auth_required.load(Relaxed)
            && owed > UNAUTHENTICATED_OUTPUT_BYTES_MAX
        {
            return true;
        }
        OutputLimits::of(settings, subscriber).exceeded(owed, now_ms, &mut connection.over_soft_ms)
    }

    /// Whether a channel's frames that wait to be sent are over the limit of its class. Its own limit, and the
    /// connection's, are looked at when a frame comes to wait.
    pub(super) fn channel_exceeds_output(&mut self, index: u32, channel: u16) -> bool {
        let settings = &self.engine.settings;
        let now_ms = self.now_ms;
        let Some((channels, _)) = self.io.channels(index) else { return false };
        let (mut exceeded, mut is_over_soft) = (false, false);
        if let Some(open) = channels.get_mut(channel)
            && let Some(flow) = &mut open.flow
        {
            let limits = OutputLimits::of(settings, open.client.session.subscriptions.is_some());
            exceeded = limits.exceeded(flow.bytes(), now_ms, &mut flow.over_soft_ms);
            is_over_soft = flow.over_soft_ms > 0;
        }
        if is_over_soft {
            channels.over_soft.insert(channel);
        } else {
            channels.over_soft.remove(&channel);
        }
        exceeded
    }

    /// The same of those of its channels that were above a soft limit when they were looked at last: nothing need
    /// happen to them for it.
    pub(super) fn end_channels_over_soft(&mut self, index: u32) {
        let Some((channels, _)) = self.io.channels(index) else { return };
        let over: Vec<u16> = channels.over_soft.iter().copied().collect();
        for channel in over {
            if self.channel_exceeds_output(index, channel) {
                self.close_channel(index, channel, &close::CLASS_OUTPUT);
            }
        }
    }
}

/// `client-output-buffer-limit` of a class.
struct OutputLimits {
    hard_bytes: usize,
    soft_bytes: usize,
    soft_s: u32,
}

impl OutputLimits {
    fn of(settings: &Settings, subscriber: bool) -> Self {
        let (hard, soft, soft_s) = if subscriber {
            let (hard, soft) = (&settings.output_pubsub_hard_bytes, &settings.output_pubsub_soft_bytes);
            (hard, soft, &settings.output_pubsub_soft_s)
        } else {
            let (hard, soft) = (&settings.output_normal_hard_bytes, &settings.output_normal_soft_bytes);
            (hard, soft, &settings.output_normal_soft_s)
        };
        Self { hard_bytes: hard.load(Relaxed), soft_bytes: soft.load(Relaxed), soft_s: soft_s.load(Relaxed) }
    }

    /// Whether so many bytes are too many. `over_soft_ms`: when they were first seen above the soft limit, 0 for not.
    fn exceeded(&self, bytes: usize, now_ms: u64, over_soft_ms: &mut u64) -> bool {
        if self.hard_bytes > 0 && bytes > self.hard_bytes {
            return true;
        }
        if self.soft_bytes == 0 || bytes <= self.soft_bytes {
            *over_soft_ms = 0;
            return false;
        }
        if *over_soft_ms == 0 {
            *over_soft_ms = now_ms;
        }
        now_ms.saturating_sub(*over_soft_ms) > u64::from(self.soft_s) * 1000
    }
}
