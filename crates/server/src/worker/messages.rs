//! Owns: applying what other workers have sent. Does not own: the mailbox.

use weft_engine::mailbox::{Kill, Message, Recipient};
use weft_engine::push::Push;
use weft_engine::reply::{Protocol, ReplySink};
use weft_engine::safe::Safe;
use weft_engine::session::client_flag;

use super::Worker;
use super::mail::Next;
use crate::channels::close;
use crate::connection::{Life, Peer};
use crate::io::{Aftermath, Io};
use crate::limits::PUSHED_BYTES_MAX;

impl Worker<'_> {
    /// Applies messages, between two batches: as many as a tick may, in an order that is to each client the one in
    /// which they came. `is_awake`: it does so again before it sleeps, or does not sleep.
    pub(super) fn take_messages(&mut self, is_awake: bool) {
        let mailbox = self.engine.mailbox(self.id);
        // Most of them come to keys, which a script has locked that takes its time: they wait, and are counted.
        if self.engine.is_busy() {
            if self.stop_ms.is_none() && (self.mail.stops() || mailbox.is_stopped()) {
                self.stop();
            }
            return;
        }
        let mut mail = std::mem::take(&mut self.mail);
        mail.fill(mailbox, is_awake);
        while self.messages_left > 0
            && self.pushes_left > 0
            && let Some(next) = mail.next(self.pushes_left)
        {
            self.messages_left -= 1;
            match next {
                Next::Message(message) => self.apply(message),
                Next::Pushes(to, count, cost) => {
                    self.pushes_left = self.pushes_left.saturating_sub(cost);
                    self.push_all(to, mail.pushes(count));
                }
            }
            self.see_to_aftermath();
        }
        mail.tidy();
        self.is_behind |= mail.waiting() > 0;
        self.mail = mail;
    }

    /// Goes on with a script that takes its time; when it has run, its client goes on.
    pub(super) fn go_on_with_script(&mut self) {
        let Some((index, channel)) = self.executor.go_on(&mut self.io) else { return };
        self.settle(index);
        self.paid(index, channel);
        self.waits_no_more(index, channel);
        self.see_to_aftermath();
    }

    fn apply(&mut self, message: Message) {
        match message {
            Message::Push(..) | Message::PushAll(..) => unreachable!("`Mail` gives pushes together"),
            Message::Served(to, reply) => {
                if self.is_there(to) {
                    let (index, channel) = (to.address.connection, to.address.channel);
                    self.io.touch(index);
                    self.lend(index, channel);
                    if let Some((session, output)) = self.io.client(index, channel) {
                        self.executor.served(session, output, *reply);
                    }
                    self.settle(index);
                    self.paid(index, channel);
                    self.waits_no_more(index, channel);
                }
            }
            Message::Kill(to, kill) => {
                if self.is_there(to) {
                    self.killed(to, kill);
                }
            }
            Message::Unblock(to, end) => self.unblock_upstream(to, end),
            Message::Resume => self.resume_all(),
            Message::Safe => self.release_outputs(),
            Message::Events => self.send_to_followers(),
            Message::Figures => self.send_to_watchers(),
            Message::Stop => self.stop(),
        }
    }

    /// Whether a message's recipient is still the one it was for.
    pub(super) fn is_there(&mut self, to: Recipient) -> bool {
        let client = self.io.client(to.address.connection, to.address.channel);
        client.is_some_and(|(session, _)| session.id() == to.client)
    }

    /// Whether what nobody has asked for may still come: not once the client, or its connection, goes away.
    fn takes_pushes(&mut self, index: u32, channel: u16) -> bool {
        let Some(connection) = self.io.get(index) else { return false };
        connection.life == Life::Open
            && match &connection.peer {
                Peer::Resp(_) | Peer::Http(_) => true,
                Peer::Respb(channels) => channels.is_open(channel),
            }
    }

    /// Tells a client what it gets, one thing behind the other.
    fn push_all<'p>(&mut self, to: Recipient, mut pushes: impl Iterator<Item = &'p Push>) {
        let (index, channel) = (to.address.connection, to.address.channel);
        // What one push sets going may be the end of the client.
        while self.is_there(to) && self.takes_pushes(index, channel) && self.push(to, &mut pushes) {
            if self.io.get(index).is_some_and(|connection| connection.fills_up()) {
                self.send_early(index);
            }
        }
    }
    /// Tells a client one or more of the pushes that are left: as many as need not be looked at each by itself. Says
    /// whether there was any.
    fn push<'p>(&mut self, to: Recipient, pushes: &mut impl Iterator<Item = &'p Push>) -> bool {
        let (index, channel) = (to.address.connection, to.address.channel);
        let Some(first) = pushes.next() else { return false };
        self.io.touch(index);
        self.lend(index, channel);
        let engine = self.executor.engine();
        if let Some(connection) = self.io.get(index)
            && let Peer::Http(http) = &mut connection.peer
        {
            let from = connection.output.end();
            http.ledger.event(first, &mut connection.output);
            engine.withhold_brought(&mut connection.output, from, false);
        } else {
            let until = self.io.get(index).map_or(0, |connection| match &connection.peer {
                // What waits must do so on its channel, frame by frame.
                Peer::Respb(_) if engine.may_withhold_brought() => 0,
                Peer::Respb(channels) => {
                    channels.shared_bytes(channel, &connection.output).min(PUSHED_BYTES_MAX)
                }
                Peer::Resp(_) | Peer::Http(_) => PUSHED_BYTES_MAX,
            });
            let Some((session, output)) = self.io.client(index, channel) else { return false };
            let begun = output.end();
            let (mut last, mut next) = (begun, Some(first));
            while let Some(push) = next {
                last = output.end();
                if session.hears(push) {
                    push.write(&mut ReplySink::new(output, session.wire));
                }
                next = if output.len() - begun.len < until { pushes.next() } else { None };
            }
            engine.withhold_brought(output, begun, false);
            if let Some((channels, _)) = self.io.channels(index) {
                channels.lent_from(channel, last);
            }
        }
        self.settle(index);
        if self.exceeds_output(index) {
            self.owes_too_much(index);
        } else if self.channel_exceeds_output(index, channel) {
            self.close_channel(index, channel, &close::CLASS_OUTPUT);
        }
        true
    }

    fn killed(&mut self, to: Recipient, kill: Kill) {
        let (index, channel) = (to.address.connection, to.address.channel);
        let respb = self
            .io
            .client(index, channel)
            .is_some_and(|(session, _)| session.wire.protocol == Protocol::Respb);
        if respb {
            let reason = match kill {
                Kill::Command => &close::KILLED,
                Kill::User => &close::USER,
                Kill::Output => &close::OUTPUT,
                Kill::Upstream => &close::UPSTREAM,
            };
            self.close_channel(index, channel, reason);
        } else {
            // What it is owed goes out first.
            self.close_after_output(index);
        }
    }

    /// More is safe: what waited for it is sent at the end of the tick.
    fn release_outputs(&mut self) {
        for index in std::mem::take(&mut self.io.waiting_for_safe) {
            if let Some(connection) = self.io.get(index) {
                connection.waiting_for_safe = false;
                self.io.touch(index);
            }
        }
    }

    /// What waits on a connection never will be safe: each reply becomes an error. Where that cannot be said, among
    /// messages in RESP2 or within an answer of HTTP that has begun, the end of the connection says it.
    #[cold]
    pub(super) fn lose_withheld(&mut self, index: u32) {
        let safe = self.engine.safe.epoch();
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return };
        connection.output.sendable(safe);
        let (output, error) = (&mut connection.output, Safe::lost_error());
        let is_said = match &mut connection.peer {
            Peer::Resp(single) => {
                let session = &single.client.session;
                let hears = session.in_resp2_pubsub() || session.info.has(client_flag::MONITOR);
                !output.is_withheld() || !hears && output.lose_withheld(session.wire, &error)
            }
            Peer::Respb(channels) => !output.is_withheld() && channels.lose_withheld(safe, &error),
            Peer::Http(http) => http.ledger.lose_withheld(output, &mut self.io.pen, &error),
        };
        if is_said {
            self.settle_http(index, true);
        } else {
            self.io.kill(index);
        }
    }

    /// CLIENT PAUSE has ended: everything that it held goes on.
    fn resume_all(&mut self) {
        let Io { slots, aftermath, .. } = &mut self.io;
        for (slot, index) in slots.iter().zip(0..) {
            match slot.as_ref().map(|connection| &connection.peer) {
                Some(Peer::Resp(single)) if single.client.is_held() => {
                    aftermath.push_back(Aftermath::Resume(index, 0));
                }
                Some(Peer::Http(http)) if http.client.is_held() => {
                    aftermath.push_back(Aftermath::Resume(index, 0));
                }
                Some(Peer::Respb(channels)) => {
                    aftermath.extend(channels.held().map(|channel| Aftermath::Resume(index, channel)));
                }
                _ => {}
            }
        }
    }
}
