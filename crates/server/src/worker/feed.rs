//! Owns: the way of bytes from a socket to requests. Does not own: running them, sending.

use std::sync::atomic::Ordering::Relaxed;

use weft_engine::error::Error;
use weft_protocol::Malformed;
use weft_protocol::respb::frame;

use super::{Worker, unsent_max};
use crate::channels::{Channels, RespbLimits, close};
use crate::connection::{Connection, Life, Peer, Source, Stop};
use crate::limits::{
    CONTROLS_PER_TICK_MAX, PAGES_PER_TICK_MAX, RECEIVE_BYTES, RECEIVE_LARGE_BYTES, SEND_EARLY_BYTES,
    TAIL_BYTES_MAX, WAITING_INPUT_BYTES_MAX,
};
use crate::shared::Counted;

/// The end of a connection that has not authenticated and keeps input when all such keep too much.
const TOO_MUCH_UNAUTHENTICATED: &str = "connections that have not authenticated have sent too much that is not \
whole: authenticate before sending more";

impl Worker<'_> {
    /// Receives from a socket, once, and decodes.
    pub(super) fn readable(&mut self, index: u32) {
        if self.requests.is_empty() {
            self.io.arena_used = 0;
        }
        let now_us = self.now_us;
        let Some(connection) = self.io.get(index) else { return };
        connection.active_us = now_us;
        if !connection.may_go_on() {
            return self.receive_waiting(index);
        }
        let tail = connection.kept().len();
        if tail > TAIL_BYTES_MAX || tail > 0 && connection.missing() > 0 {
            connection.sends_large = true;
            return self.receive_own(index);
        }
        let most = if connection.sends_large { RECEIVE_LARGE_BYTES } else { RECEIVE_BYTES };
        if self.io.arena.len() - self.io.arena_used < most + tail {
            self.run_batch();
            self.io.arena_used = 0;
        }
        let start = self.io.arena_used;
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return };
        self.io.arena[start..start + tail].copy_from_slice(connection.kept());
        let room = &mut self.io.arena[start + tail..start + tail + most];
        match connection.receive(&mut self.io.scratch, room) {
            None => self.step_handshake(index),
            Some(0) => self.end_of_stream(index),
            Some(len) => {
                self.engine.stats.workers[usize::from(self.id)].traffic.received(len as u64);
                connection.is_new = false;
                connection.pending.clear();
                connection.pending_at = 0;
                connection.source = Source::Arena;
                self.io.arena_used = start + tail + len;
                // Much has come that was not large.
                let may_be_small = len == RECEIVE_LARGE_BYTES && connection.sends_large;
                self.feed(index, start, start + tail + len);
                if may_be_small && let Some(connection) = self.io.get(index) {
                    connection.sends_large = connection.missing() > 0;
                }
            }
        }
    }

    /// A large request arrives: into the connection's own buffer.
    fn receive_own(&mut self, index: u32) {
        if self.receive_pending(index) {
            self.feed_own(index);
        }
    }

    /// The client waits: what it sends meanwhile is kept, up to a bound.
    fn receive_waiting(&mut self, index: u32) {
        if self.receive_pending(index)
            && self.io.get(index).is_some_and(|connection| connection.kept().len() > WAITING_INPUT_BYTES_MAX)
        {
            self.set_reading(index, false);
        }
    }

    /// Receives behind what is pending. Says whether anything has come.
    fn receive_pending(&mut self, index: u32) -> bool {
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return false };
        match connection.receive_pending(&mut self.io.scratch, RECEIVE_BYTES) {
            None => false,
            Some(0) => {
                self.end_of_stream(index);
                false
            }
            Some(len) => {
                self.engine.stats.workers[usize::from(self.id)].traffic.received(len as u64);
                true
            }
        }
    }

    /// The peer will send no more. What it has sent is answered; then the connection ends.
    fn end_of_stream(&mut self, index: u32) {
        self.run_batch();
        self.settle(index);
        let is_under_way = self.is_under_way_at_its_end(index);
        if let Some(connection) = self.io.get(index)
            && connection.life == Life::Open
            && is_under_way != Some(false)
        {
            // The end is met again: behind replies, or by the next tick.
            (connection.unread, connection.is_last_awaited) = (true, true);
            let is_seen_to = self.unwatch_idle_page(index);
            return self.set_reading(index, is_under_way.is_none() || !is_seen_to);
        }
        let waits = match self.io.get(index).map(|connection| &connection.peer) {
            Some(peer) => peer.only().is_some_and(|client| client.session.is_waiting()),
            None => false,
        };
        if let Some(connection) = self.io.get(index)
            && connection.has_unsent()
            && connection.life == Life::Open
        {
            self.close_after_output(index);
            if waits {
                self.give_up(index, vec![0]);
            }
            return;
        }
        self.leave_upstream(index);
        if let Some(connection) = self.io.get(index) {
            connection.say_goodbye();
        }
        self.io.kill(index);
    }

    /// Decodes what connections have kept and may go on with now.
    pub(super) fn feed_kept(&mut self) {
        for index in std::mem::take(&mut self.io.put_off) {
            let Some(connection) = self.io.get(index) else { continue };
            connection.put_off = false;
            if connection.may_go_on() {
                self.feed_own(index);
            }
            let unread =
                |connection: &mut Connection| connection.unread && connection.reading && !connection.put_off;
            if self.io.get(index).is_some_and(unread) {
                self.io.unread.push(index);
            }
        }
    }

    /// Decodes what stands in the connection's own buffer.
    fn feed_own(&mut self, index: u32) {
        self.run_batch();
        let Some(connection) = self.io.get(index) else { return };
        connection.source = Source::Own;
        let (start, end) = (connection.pending_at, connection.pending.len());
        self.feed(index, start, end);
    }

    /// Decodes and runs what lies between two places of the connection's source, and keeps what is not whole. Only the
    /// tick calls it, for one connection behind the other: what runs meanwhile may change whether the connection goes
    /// on, and never where.
    fn feed(&mut self, index: u32, start: usize, end: usize) {
        assert!(!self.is_feeding, "input is decoded by the top level of the loop only");
        self.is_feeding = true;
        let mut at = start;
        let in_arena = self.io.get(index).is_some_and(|connection| connection.source == Source::Arena);
        let goes_on = self.decode_and_run(index, &mut at, end);
        if goes_on && (at < end || !in_arena) {
            self.keep(index, at, end);
        }
        self.note_http(index);
        self.is_feeding = false;
    }

    /// Does so up to what is not whole, or must wait. `false` when the connection ends by what it has sent.
    fn decode_and_run(&mut self, index: u32, at: &mut usize, end: usize) -> bool {
        let (mut controls, mut pages) = (0, 0);
        loop {
            let stop = self.decode(index, at, end);
            match stop {
                Stop::Incomplete => return true,
                Stop::Full => {
                    self.run_batch();
                    self.send_early(index);
                }
                Stop::Page => {
                    self.run_batch();
                    self.settle_http(index, false);
                    self.send_early(index);
                    pages += 1;
                    if pages == PAGES_PER_TICK_MAX {
                        self.io.put_off(index);
                        return true;
                    }
                }
                Stop::Barrier => {
                    self.run_batch();
                    self.after_barrier(index);
                }
                Stop::Control => {
                    self.run_batch();
                    self.apply_control(index);
                    self.sign_in(index, (*at, end));
                    controls += 1;
                    if controls == CONTROLS_PER_TICK_MAX {
                        self.io.put_off(index);
                        return true;
                    }
                }
                Stop::Switch => self.switch_to_respb(index, true),
                Stop::Invalid(kind, byte) => {
                    self.malformed(index, kind, &expected(kind, byte));
                    return false;
                }
                Stop::InvalidFrame(kind, head) => {
                    self.malformed(index, kind, &opcode(kind, head));
                    return false;
                }
                Stop::Http if self.engine.settings.http_detect.load(Relaxed) => self.switch_to_http(index),
                Stop::Http => {
                    self.malformed(index, Malformed::UnknownProtocol, "");
                    return false;
                }
                Stop::Tls => return self.detected_tls(index, at, end),
            }
            if self.must_wait(index) {
                return true;
            }
        }
    }

    /// Whether nothing more of a connection may be decoded now.
    fn must_wait(&mut self, index: u32) -> bool {
        let Some(connection) = self.io.get(index) else { return true };
        if matches!(&connection.peer, Peer::Http(http) if http.ledger.has_ready()) {
            self.settle_http(index, false);
        }
        let Some(connection) = self.io.get(index) else { return true };
        if matches!(connection.peer, Peer::Http(_)) && connection.unsent() > unsent_max(connection) {
            connection.waits_for_room = true;
            // Its end is not seen either, which would be that of what it has asked for.
            self.set_reading(index, false);
            return true;
        }
        !connection.may_go_on()
    }

    fn decode(&mut self, index: u32, at: &mut usize, end: usize) -> Stop {
        let engine = self.engine;
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return Stop::Incomplete };
        if connection.life != Life::Open {
            return Stop::Incomplete;
        }
        match connection.source {
            Source::Arena => {
                let bytes = &self.io.arena[..end];
                connection.decode(index, (bytes, at), &mut self.requests, engine)
            }
            Source::Own => {
                let pending = std::mem::take(&mut connection.pending);
                let stop = connection.decode(index, (&pending[..end], at), &mut self.requests, engine);
                connection.pending = pending;
                stop
            }
        }
    }

    /// Keeps input that has not been decoded: the part of a request, or all that is behind a barrier.
    fn keep(&mut self, index: u32, at: usize, end: usize) {
        let own = self.io.get(index).is_some_and(|connection| connection.source == Source::Own);
        if own {
            if !self.requests.is_empty()
                && let Some(connection) = self.io.get(index)
            {
                connection.offer();
            }
            // What was decoded points into the buffer that is about to move.
            self.run_batch();
        }
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return };
        if connection.life != Life::Open {
            // It is closing.
            connection.source = Source::Arena;
            connection.forget_input();
            return;
        }
        if own {
            connection.let_go_until(at);
            connection.source = Source::Arena;
        } else {
            connection.keep(&self.io.arena[at..end]);
        }
        if !connection.is_authenticated() && !self.recount(index) {
            return self.refuse(index, close::UNAUTHENTICATED, &Error::err(TOO_MUCH_UNAUTHENTICATED));
        }
        let Some(connection) = self.io.get(index) else { return };
        // The decoder has the limit of the connection's beginning, and looks at one request.
        if connection.not_run_bytes() > self.engine.settings.query_bytes_max.load(Relaxed) {
            self.engine.stats.query_limit_closed.fetch_add(1, Relaxed);
            self.end_connection(index, &close::QUEUE);
        }
    }

    /// Sends what has been made for one connection if it is much: while it is in the cache, and so that the next
    /// connection uses the same memory.
    pub(super) fn send_early(&mut self, index: u32) {
        if self.io.get(index).is_some_and(|connection| connection.unsent() >= SEND_EARLY_BYTES) {
            self.send(index);
            // It stands in the list of those that are sent to at the end.
            if let Some(connection) = self.io.get(index) {
                connection.touched = true;
            }
        }
    }

    /// Runs what has been decoded.
    pub(super) fn run_batch(&mut self) {
        if !self.requests.is_empty() {
            self.executor.run(&self.requests, &mut self.io);
            self.requests.clear();
        }
        self.see_to_aftermath();
    }

    /// A command that may change how bytes are read has run.
    pub(super) fn after_barrier(&mut self, index: u32) {
        self.note_rights(index);
        self.renew(index);
        let Some(connection) = self.io.get(index) else { return };
        let is_watched = connection.authenticate_by_ms > 0 || connection.counted != Counted::default();
        if is_watched && connection.is_authenticated() {
            self.expect_by(index, 0);
            self.recount(index);
        }
    }

    /// What a connection may send follows from what its clients have become.
    fn note_rights(&mut self, index: u32) {
        let Some(connection) = self.io.get(index) else { return };
        let begins_anew = match &mut connection.peer {
            Peer::Resp(single) => {
                let limits = crate::connection::limits(&single.client.session, &self.engine.settings);
                single.decoder.set_limits(limits);
                true
            }
            Peer::Http(_) => false,
            Peer::Respb(channels) => {
                let numbers = if channels.authenticated { Vec::new() } else { channels.numbers() };
                let is_authenticated = numbers.iter().any(|&number| {
                    channels.get(number).is_some_and(|open| open.client.session.authenticated)
                });
                if is_authenticated {
                    channels.set_authenticated();
                }
                is_authenticated
            }
        };
        // What ran may have been held while a part of what is behind it was decoded.
        if begins_anew {
            connection.partial.clear();
        }
    }

    /// The connection speaks RESPB from here on. `fresh`: it never spoke anything else.
    pub(super) fn switch_to_respb(&mut self, index: u32, fresh: bool) {
        let limits = RespbLimits::of(&self.engine.settings);
        let allowed = self.engine.settings.respb_detect.load(Relaxed);
        self.io.set_alarm(index, 0, 0);
        let Some(slot) = self.io.slots.get_mut(index as usize) else { return };
        if fresh && !allowed {
            return self.malformed(index, Malformed::UnknownProtocol, "");
        }
        let Some(connection) = slot.take() else { return };
        let mut connection = *connection;
        let peer = match connection.peer {
            Peer::Resp(single) => Peer::Respb(Box::new(Channels::new(single.client.session, fresh, limits))),
            other @ (Peer::Respb(_) | Peer::Http(_)) => other,
        };
        connection = Connection { peer, ..connection };
        self.io.slots[index as usize] = Some(Box::new(connection));
    }

    /// Counts what a connection that has not authenticated keeps of its input. `false` when all of them keep too much.
    pub(super) fn recount(&mut self, index: u32) -> bool {
        let Some(connection) = self.io.get(index) else { return true };
        let now =
            if connection.is_authenticated() { Counted::default() } else { connection.unauthenticated() };
        let before = std::mem::replace(&mut connection.counted, now);
        self.inbox.shared().recount_unauthenticated(before, now)
    }
    /// Does so, and refuses a connection with which it is too much.
    pub(super) fn count_kept(&mut self, index: u32) {
        let is_open =
            |connection: &mut Connection| connection.life == Life::Open && !connection.is_authenticated();
        if self.io.get(index).is_some_and(is_open) && !self.recount(index) {
            self.refuse(index, close::UNAUTHENTICATED, &Error::err(TOO_MUCH_UNAUTHENTICATED));
        }
    }

    /// Malformed bytes: what was before them has an answer, then the connection ends.
    pub(super) fn malformed(&mut self, index: u32, kind: Malformed, detail: &str) {
        self.refuse(index, close::UNREADABLE, &Error::err(format!("{}{detail}", kind.text())));
    }
}

/// What stood where an argument had to begin, as Redis says it.
fn expected(kind: Malformed, byte: Option<u8>) -> String {
    match (kind, byte) {
        (Malformed::ExpectedBulk, Some(byte)) => format!(", got '{}'", char::from(byte)),
        _ => String::new(),
    }
}

/// The opcode that is not known (spec section 3.2).
fn opcode(kind: Malformed, head: [u8; 8]) -> String {
    if kind != Malformed::UnknownOpcode {
        return String::new();
    }
    let [o1, o0, _, _, m1, m0, c1, c0] = head;
    match u16::from_be_bytes([o1, o0]) {
        frame::MODULE => format!(" 0xF000 module 0x{m1:02X}{m0:02X} command 0x{c1:02X}{c0:02X}"),
        opcode => format!(" 0x{opcode:04X}"),
    }
}
