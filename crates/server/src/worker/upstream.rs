//! Owns: a worker of a gateway: giving the server behind what it is to run, and its answers to clients. Does not own:
//! connections to that server (`weft-gateway`).
//!
//! What clients want to have run goes there once a tick, behind the batches, and before a client's end is looked at;
//! where a client waits no more, what it has sent meanwhile goes with the next. What many ask at once may wait for the
//! next tick ([`Gather`](super::gather::Gather)).

use std::sync::atomic::Ordering::Relaxed;

use rustix::time::{ClockId, clock_gettime};
use weft_engine::Postponed;
use weft_engine::blocking::End;
use weft_engine::error::Error;
use weft_engine::forward::Forwards;
use weft_engine::mailbox::Recipient;
use weft_engine::reply::ReplySink;
use weft_engine::tracking::Names;
use weft_gateway::{Answer, Behind, Front, Upstream, Whose, reply};

use super::{Worker, unsent_max};
use crate::channels::close;
use crate::connection::Peer;
use crate::io::Aftermath;
use crate::poll::BorrowedFd;
use crate::warning;

/// Milliseconds of a clock that nobody sets: what a gateway waits for is late, or is tried again, whatever time it is.
fn steady_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

impl Worker<'_> {
    /// Whether what is behind has something to do although nothing has come.
    pub(super) fn is_upstream_due(&self) -> bool {
        self.upstream.as_ref().is_some_and(|upstream| upstream.is_due(steady_ms()))
    }
    /// How long the worker may sleep for all that is behind.
    pub(super) fn upstream_timeout_ms(&self) -> u64 {
        self.upstream.as_ref().map_or(u64::MAX, |upstream| upstream.timeout_ms(steady_ms()))
    }

    /// From now on another server has the keys.
    pub(crate) fn set_upstream(&mut self, upstream: Behind) {
        self.upstream = Some(Box::new(upstream));
    }

    /// Takes what other threads have done for this worker's connections to it.
    pub(super) fn begin_upstream(&mut self) {
        let now_ms = steady_ms();
        self.with_upstream(|upstream, worker| upstream.begin_tick(now_ms, worker));
    }

    /// The tick is over: sends what clients want to have run, unless it waits for more.
    pub(super) fn end_upstream(&mut self) {
        let forwards = self.executor.forwards();
        if self.upstream.is_none() || !self.gather.keeps(forwards, self.now_ms) {
            return self.go_upstream();
        }
        // What was given away before goes on.
        self.with_upstream(|upstream, worker| upstream.submit(&mut Forwards::default(), worker));
    }
    /// Sends what clients want to have run.
    pub(super) fn go_upstream(&mut self) {
        self.with_upstream(|upstream, worker| worker.submit_to(upstream));
    }
    fn submit_to(&mut self, upstream: &mut Behind) {
        self.gather.begin_anew();
        let mut forwards = std::mem::take(self.executor.forwards());
        upstream.submit(&mut forwards, self);
        // What answers have set going meanwhile is for the next time.
        let newer = std::mem::replace(self.executor.forwards(), forwards);
        if !newer.list.is_empty() {
            *self.executor.forwards() = newer;
        }
    }

    /// Something has happened to one of those connections, or to none. `ends`: nothing comes behind what is there.
    pub(super) fn upstream_event(&mut self, place: u32, ends: bool) {
        if Upstream::is_place(place) {
            self.with_upstream(|upstream, worker| upstream.event(place, ends, worker));
        }
    }

    /// Ends what a client waits for there, if it does. What it has asked for in this tick goes there first.
    pub(super) fn unblock_upstream(&mut self, to: Recipient, end: End) {
        if self.is_upstream_lent {
            // It ends by an answer that has just come.
            return self.to_unblock.push((to, end));
        }
        if self.executor.has_forwards() {
            self.go_upstream();
        }
        self.with_upstream(|upstream, worker| upstream.unblock(to, end, worker));
    }

    /// A peer sends no more: whether its clients will be answered; nothing where that takes another look. What they
    /// have asked for there and may block is awaited where it is not known yet that it does.
    pub(super) fn is_under_way_at_its_end(&mut self, index: u32) -> Option<bool> {
        // Nothing is decoded meanwhile: what answers set going by themselves comes to an end.
        while self.upstream.is_some() && self.executor.has_forwards() {
            self.go_upstream();
        }
        let (mut awaited, upstream) = (Vec::new(), self.upstream.as_deref());
        let mut awaits = |to| {
            let is_awaited = upstream.is_some_and(|upstream| upstream.awaits(to));
            awaited.extend(is_awaited.then_some(to));
            is_awaited
        };
        let is_under_way =
            self.io.get(index).map_or(Some(false), |connection| connection.is_under_way(&mut awaits));
        for to in awaited {
            self.with_upstream(|upstream, worker| upstream.hurry(to, worker));
        }
        is_under_way
    }

    /// A client of RESPB sends no more, and is still answered on some channel: others give back the connections over
    /// which they watch keys, which may be what that one waits for. Some pages of them; says whether all are seen to.
    pub(super) fn unwatch_idle_page(&mut self, index: u32) -> bool {
        let has_all = self.io.get(index).is_some_and(|connection| connection.has_decoded_all());
        let Some((channels, _)) = self.io.channels(index).filter(|_| has_all && self.upstream.is_some())
        else {
            // Behind what keeps it from decoding the end is met again.
            return true;
        };
        let idle = channels.idle_keepers();
        idle.iter().flatten().for_each(|&channel| self.unwatch_idle(index, channel));
        idle.is_none()
    }
    /// The same of a channel that has nothing left to run. Before all is decoded that has come it may have: it is
    /// looked at again where the end is met next.
    pub(super) fn unwatch_idle(&mut self, index: u32, channel: u16) {
        let Some(connection) = self.io.get(index).filter(|connection| connection.is_last_awaited) else {
            return;
        };
        let has_all = connection.has_decoded_all();
        // Over the other wires nobody else of the same connection waits.
        let Peer::Respb(channels) = &mut connection.peer else { return };
        if !has_all {
            return channels.look_again(channel);
        }
        let Some(client) = connection.peer.client(channel) else { return };
        if client.watches_in_vain() {
            self.executor.give_back_elsewhere(&mut client.session);
        } else if client.may_block_elsewhere() {
            let to = client.session.info.recipient();
            self.with_upstream(|upstream, worker| upstream.hurry(to, worker));
        }
    }

    /// A connection ends now; its sessions are taken down later.
    pub(super) fn leave_upstream(&mut self, index: u32) {
        let Some(connection) = self.io.get(index) else { return };
        let only = match connection.peer.only() {
            Some(client) if client.session.forwarded == 0 => return,
            only => only.map(|client| client.session.info.recipient()),
        };
        self.with_upstream(|upstream, worker| upstream.leave(index, only, worker));
    }

    fn with_upstream(&mut self, work: impl FnOnce(&mut Behind, &mut Self)) {
        let Some(mut upstream) = self.upstream.take() else { return };
        self.is_upstream_lent = true;
        work(&mut upstream, self);
        while let Some((to, end)) = self.to_unblock.pop() {
            if self.executor.has_forwards() {
                self.submit_to(&mut upstream);
            }
            upstream.unblock(to, end, self);
        }
        self.is_upstream_lent = false;
        self.upstream = Some(upstream);
        self.see_to_aftermath();
    }

    /// Whoever does not read what it is answered has nothing more run: it is owed what is under way.
    fn lets_wait_for_room(&mut self, index: u32) {
        let Some(connection) = self.io.get(index) else { return };
        let lags = match &connection.peer {
            Peer::Resp(_) => connection.unsent() > unsent_max(connection),
            // What waits for credit does not: the WINDOW that brings it has to be read.
            Peer::Respb(channels) => channels.has_turns() && connection.owed_bytes() > unsent_max(connection),
            Peer::Http(_) => false,
        };
        if lags {
            connection.waits_for_room = true;
            // Its end is not seen either, which would be that of what it has asked for.
            self.set_reading(index, false);
        }
    }

    /// Who has waited for room goes on, unless more of it is to be sent first.
    pub(super) fn has_room(&mut self, index: u32) {
        let Some(connection) = self.io.get(index) else { return };
        let held: Vec<u16> = match &connection.peer {
            Peer::Respb(channels) if channels.has_turns() => return,
            Peer::Respb(channels) => channels.held().collect(),
            _ => Vec::new(),
        };
        let is_respb = matches!(connection.peer, Peer::Respb(_));
        connection.waits_for_room = false;
        for channel in held {
            self.io.aftermath.push_back(Aftermath::Resume(index, channel));
        }
        if is_respb {
            return self.read_again(index);
        }
        // What was decoded before it came to wait is first.
        self.resume(index, 0);
    }

    /// Whether what comes for a channel is passed over, since the connection owes all that it may: then it is ended.
    fn is_dropped(&mut self, index: u32, channel: u16) -> bool {
        let max = self.engine.settings.respb_connection_output_bytes_max.load(Relaxed);
        let Some(connection) = self.io.get(index) else { return true };
        let Peer::Respb(channels) = &connection.peer else { return false };
        if connection.owed_bytes() <= max {
            return false;
        }
        if channels.is_open(channel) {
            self.close_channel(index, channel, &close::CONNECTION_OUTPUT);
        }
        true
    }

    /// What a client has asked to be told of comes: its request runs here.
    fn confirmed(&mut self, to: Recipient, request: &Postponed) {
        let (index, channel) = (to.address.connection, to.address.channel);
        let Some((session, output)) = self.io.client(index, channel) else { return };
        session.has_heard();
        if !self.executor.run_confirmed(request, session, output) {
            session.drop_held();
            let text = "CLIENT PAUSE has begun before the server behind had confirmed: ask again";
            ReplySink::new(output, session.wire).error(&Error::err(text));
        }
        self.io.aftermath.push_back(Aftermath::FollowUp(index, channel));
    }
}

impl Front for Worker<'_> {
    fn answer(&mut self, Whose { to, .. }: Whose, answer: Answer<'_>) {
        if !self.is_there(to) {
            return;
        }
        let (index, channel) = (to.address.connection, to.address.channel);
        self.io.touch(index);
        if self.is_dropped(index, channel) {
            let is_last = self.io.client(index, channel).is_none_or(|(session, _)| session.has_heard());
            if is_last {
                self.paid(index, channel);
                self.waits_no_more(index, channel);
            }
            return;
        }
        self.lend(index, channel);
        if let Answer::Confirmed(request) = answer {
            self.confirmed(to, &request);
            self.settle(index);
            self.paid(index, channel);
            return self.waits_no_more(index, channel);
        }
        let Some((session, output)) = self.io.client(index, channel) else { return };
        let mut sink = ReplySink::new(output, session.wire);
        match answer {
            Answer::Reply { bytes, resp2 } => reply::write(bytes, resp2, &mut sink),
            Answer::Selected { db, silent } => {
                session.select(db);
                if !silent {
                    sink.ok();
                }
            }
            Answer::Error(error) | Answer::NotRun(error) | Answer::Doubt(error) => sink.error(&error),
            Answer::Null => sink.null_array(),
            Answer::Nothing | Answer::Confirmed(_) => {}
        }
        let is_last = session.has_heard();
        self.settle(index);
        self.lets_wait_for_room(index);
        if is_last {
            self.paid(index, channel);
            self.waits_no_more(index, channel);
        }
        if self.exceeds_output(index) {
            self.owes_too_much(index);
        } else if self.channel_exceeds_output(index, channel) {
            self.close_channel(index, channel, &close::CLASS_OUTPUT);
        }
    }

    fn watch(&mut self, socket: BorrowedFd<'_>, place: u32) -> bool {
        self.poll.add(socket, u64::from(place)).is_ok()
    }

    fn holds(&mut self, to: Recipient, bytes: usize) {
        if !self.is_there(to) {
            return;
        }
        let (index, channel) = (to.address.connection, to.address.channel);
        if let Some(connection) = self.io.get(index) {
            let before = connection.replies_bytes;
            connection.set_replies_bytes(channel, bytes);
            // What waits no more is about to be owed: it is looked at then.
            if connection.replies_bytes > before && self.exceeds_output(index) {
                self.owes_too_much(index);
            }
        }
    }

    fn track(&mut self, to: Recipient, names: &Names) {
        self.engine.note_elsewhere(to.client, names);
    }

    fn track_late(&mut self, to: Recipient, names: &Names) {
        self.engine.invalidate_unnoted(to.client, names);
    }

    fn changed(&mut self, names: Option<&[Box<[u8]>]>) {
        self.engine.changed_elsewhere(names);
    }

    fn may_wait(&mut self, to: Recipient) -> bool {
        let (index, channel) = (to.address.connection, to.address.channel);
        let is_there = self.is_there(to);
        let Some(connection) = self.io.get(index).filter(|connection| is_there && connection.is_last_awaited)
        else {
            return true;
        };
        connection.unread = true;
        let waits_for_room = connection.waits_for_room;
        if let Some((session, _)) = self.io.client(index, channel) {
            session.is_let_go = true;
        }
        if !waits_for_room {
            self.set_reading(index, true);
        }
        false
    }

    fn warn(&mut self, text: &str) {
        warning!("{text}");
    }
}
