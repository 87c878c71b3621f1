//! Owns: what a worker does for connections that speak HTTP beside what it does for all: whose request comes next, the
//! time that a request may take to come, answers that no command writes, event streams. Does not own: HTTP itself
//! (`crate::http`).

use std::sync::atomic::Ordering::Relaxed;

use super::Worker;
use crate::connection::{Life, Peer, Source};
use crate::http::{Http, Part, events};

impl Worker<'_> {
    /// The connection speaks HTTP from here on.
    pub(super) fn switch_to_http(&mut self, index: u32) {
        self.io.set_alarm(index, 0, 0);
        let Some(slot) = self.io.slots.get_mut(index as usize) else { return };
        let Some(mut connection) = slot.take() else { return };
        connection.peer = match connection.peer {
            Peer::Resp(single) => Peer::Http(Box::new(Http::new(single.client.session))),
            other @ (Peer::Respb(_) | Peer::Http(_)) => other,
        };
        self.io.slots[index as usize] = Some(connection);
    }

    /// The next request is another's than the one before. That has run: the session becomes the next one's.
    pub(super) fn sign_in(&mut self, index: u32, (at, end): (usize, usize)) {
        let engine = self.engine;
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return };
        if !connection.may_go_on() {
            return;
        }
        let source = match connection.source {
            Source::Arena => &self.io.arena[..],
            Source::Own => &connection.pending[..],
        };
        let Peer::Http(http) = &mut connection.peer else { return };
        http.sign_in(&source[at..end], engine);
        self.recount(index);
    }

    /// Input of the connection has been decoded, as far as it goes: what is owed without any command is sent, and what
    /// has come in part has a time in which the rest must come.
    pub(super) fn note_http(&mut self, index: u32) {
        let now_ms = self.now_ms;
        let settings = &self.engine.settings;
        let Some(connection) = self.io.get(index) else { return };
        let Peer::Http(http) = &mut connection.peer else { return };
        let has_ready = http.ledger.has_ready();
        let seconds = |setting: &std::sync::atomic::AtomicU32| u64::from(setting.load(Relaxed)) * 1000;
        let (since_ms, time_ms) = match http.waits_for(now_ms) {
            Some((Part::Head, since_ms)) => (since_ms, seconds(&settings.http_head_timeout_s)),
            // A second for each kilobyte: whoever sends slower than that does it on purpose.
            Some((Part::Body, since_ms)) => {
                (since_ms + connection.kept().len() as u64, seconds(&settings.http_body_timeout_s))
            }
            None => (0, 0),
        };
        let time_to_authenticate_ms = seconds(&settings.auth_timeout_s);
        let Some(connection) = self.io.get(index) else { return };
        // Each request says who asks: one that nobody has asked for behind one that somebody has begins a time.
        if !connection.is_authenticated() && connection.authenticate_by_ms == 0 && time_to_authenticate_ms > 0
        {
            connection.authenticate_by_ms = now_ms + time_to_authenticate_ms;
        }
        self.expect_by(index, if time_ms == 0 { 0 } else { since_ms + time_ms });
        if has_ready {
            self.io.touch(index);
        }
    }

    /// The time is over in which the rest of a request was to come.
    pub(super) fn http_deadline_passed(&mut self, index: u32) {
        let now_ms = self.now_ms;
        let Some(connection) = self.io.get(index) else { return };
        let Peer::Http(http) = &mut connection.peer else { return };
        if http.waits_for(now_ms).is_none() {
            return self.close_after_output(index);
        }
        http.give_up();
        self.io.touch(index);
    }

    /// Looks at what commands have replied. `flush`: the output is about to be sent.
    pub(super) fn settle_http(&mut self, index: u32, flush: bool) {
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return };
        let Peer::Http(http) = &mut connection.peer else { return };
        let len = connection.output.len();
        http.ledger.settle(&mut connection.output, &mut self.io.pen, flush);
        let has_grown = connection.output.len() > len;
        let is_over = http.ledger.is_over() && connection.life == Life::Open;
        if http.ledger.has_begun_to_flow() {
            self.io.set_alarm(index, 0, self.now_ms + events::HEARTBEAT_MS);
            self.begin_to_follow(index);
            self.begin_to_watch(index);
        }
        if has_grown && !flush {
            self.io.touch(index);
        }
        if is_over {
            self.close_after_output(index);
        }
    }

    /// A command has run behind which nothing was decoded, or one that has waited: what requests leave on the session
    /// is taken from it before the next one.
    pub(super) fn renew(&mut self, index: u32) {
        self.settle_http(index, false);
        let Some(connection) = self.io.get(index) else { return };
        let Peer::Http(http) = &mut connection.peer else { return };
        http.forget_identity();
        if http.wants_renewal() {
            self.executor.renew(&mut http.client.session);
        }
    }

    /// It is time to say on an event stream that it is still there. `false` where there is none.
    pub(super) fn heartbeat(&mut self, index: u32) -> bool {
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return false };
        let Peer::Http(http) = &mut connection.peer else { return false };
        if !http.ledger.flows() {
            return false;
        }
        http.ledger.heartbeat(&mut connection.output);
        self.io.touch(index);
        self.io.set_alarm(index, 0, self.now_ms + events::HEARTBEAT_MS);
        true
    }
}
