//! Owns: the end of a connection that the server ends: what is still answered, GOAWAY, and reading on until the client
//! has ended too. Does not own: why it ends.
//!
//! A RESPB client must know of each request whether it has run (spec section 8.5). So nothing is begun any more, what
//! blocks is given up, a reply that another worker is handing over is waited for, everything is sent, and only then is
//! the server's direction ended. What the client still sends is read and thrown away, for otherwise the kernel would
//! answer it with a reset, which destroys what the client has not read yet.

use std::sync::atomic::Ordering::Relaxed;

use rustix::net::{Shutdown, shutdown};
use weft_engine::Executor;
use weft_engine::blocking::End;
use weft_engine::error::Error;
use weft_engine::reply::{Output, ReplySink};
use weft_engine::session::Session;
use weft_protocol::respb::Control;

use super::Worker;
use crate::channels::{Reason, close};
use crate::connection::{Life, Peer};
use crate::limits::{
    DRAIN_BYTES_MAX, DRAIN_MS, DRAIN_STEP_BYTES, FAREWELL_MS, GIVEN_UP_PAGE_COST, GIVEN_UP_PER_TICK_MAX,
    SWEEP_MS,
};
use crate::warning;

/// Ends the wait of a client that is to go: it has not run. `false` where somebody has begun to serve it, or its script
/// has been left in the middle: its reply is on the way.
pub(super) fn gives_up(executor: &mut Executor<'_>, client: (u32, u16), session: &mut Session) -> bool {
    let is_idle = !session.is_waiting() && executor.left() != Some(client);
    // Nothing is written for who leaves.
    is_idle || executor.end_wait(session, &mut Output::default(), End::Leaving)
}

impl Worker<'_> {
    /// What was before has an answer; then comes the reason, an error or GOAWAY, and the connection ends.
    pub(super) fn refuse(&mut self, index: u32, code: u16, error: &Error) {
        self.run_batch();
        self.settle(index);
        self.see_to_aftermath();
        self.io.touch(index);
        let Some(connection) = self.io.get(index) else { return };
        if let Peer::Resp(single) = &connection.peer {
            let wire = single.client.session.wire;
            ReplySink::new(&mut connection.output, wire).error(error);
            return self.close_after_output(index);
        }
        if let Peer::Http(http) = &mut connection.peer {
            http.refuse(error);
            return self.settle(index);
        }
        self.go_away(index, code, &error.line());
    }

    /// The connection ends; a RESPB client is told why.
    pub(super) fn end_connection(&mut self, index: u32, reason: &Reason) {
        self.go_away(index, reason.code, reason.text);
    }

    fn go_away(&mut self, index: u32, code: u16, text: &str) {
        self.settle(index);
        let is_open = self.io.get(index).is_some_and(|connection| connection.life == Life::Open);
        self.close_after_output(index);
        let Some((_, output)) = self.io.channels(index).filter(|_| is_open) else { return };
        Control::Goaway { code, reason: text.as_bytes() }.encode(0, &mut output.bytes);
        self.begin_giving_up(index);
    }

    /// What blocks on a connection that goes away is given up: some of it now, the rest by later ticks.
    fn begin_giving_up(&mut self, index: u32) {
        let Some((channels, _)) = self.io.channels(index) else { return };
        channels.leave();
        let left = self.executor.left().filter(|&(connection, _)| connection == index);
        self.give_up(index, left.into_iter().map(|(_, channel)| channel).collect());
        self.io.giving_up.push_back(index);
        self.give_up_some(GIVEN_UP_PAGE_COST);
    }

    /// Goes on with what channels of connections that go away have to give up.
    pub(super) fn give_up_some(&mut self, mut left: usize) {
        while left > 0
            && let Some(&index) = self.io.giving_up.front()
        {
            if let Some(waiting) = self.io.channels(index).and_then(|(channels, _)| channels.give_up_page()) {
                left = left.saturating_sub(GIVEN_UP_PAGE_COST + waiting.len());
                self.give_up(index, waiting);
                continue;
            }
            self.io.giving_up.pop_front();
            // It may be that nothing keeps it any more.
            self.io.touch(index);
        }
    }

    /// What blocks on these channels of a connection that goes away is given up. Where it cannot be, its reply is on
    /// the way: `send` waits for it.
    pub(super) fn give_up(&mut self, index: u32, waiting: Vec<u16>) {
        for channel in waiting {
            let Some((session, _)) = self.io.client(index, channel) else { continue };
            let to = session.info.recipient();
            let is_over = gives_up(&mut self.executor, (index, channel), session);
            if let Some((channels, _)) = self.io.channels(index) {
                if is_over {
                    channels.pay(channel);
                } else {
                    channels.owe(channel);
                }
            }
            if !is_over {
                self.unblock_upstream(to, End::Leaving);
            }
        }
    }

    /// A connection that goes away has sent so many bytes: its client has more time, a second for each kilobyte.
    /// Whoever reads slower than that does it on purpose.
    pub(super) fn farewell_goes_on(&mut self, index: u32, sent: u64) {
        if self.io.get(index).is_some_and(|connection| connection.life == Life::Closing) {
            let at_ms = self.io.deadline(index) + sent;
            self.io.set_deadline(index, at_ms.min(self.now_ms + FAREWELL_MS));
        }
    }

    /// A connection owes more than may be. Over RESPB its client, if it has authenticated, gets what has run, and the
    /// reason; nothing more runs.
    pub(super) fn owes_too_much(&mut self, index: u32) {
        let Some(connection) = self.io.get(index) else { return };
        if connection.life == Life::Open {
            self.engine.stats.output_limit_closed.fetch_add(1, Relaxed);
            // Strangers could fill the log.
            if let Some(info) = connection.first_client().filter(|_| connection.is_authenticated()) {
                let name = info.labels.lock().as_ref().map(|labels| labels.name.clone());
                warning!(
                    "client id={} addr={} name={} user={} was closed: it has not read what it is owed, more than \
                     client-output-buffer-limit allows",
                    info.id,
                    info.connection.peer,
                    String::from_utf8_lossy(&name.unwrap_or_default()),
                    info.user.lock().name
                );
            }
        }
        match connection.peer {
            Peer::Respb(_) if connection.is_authenticated() => {
                self.end_connection(index, &close::CLASS_OUTPUT)
            }
            _ => self.io.kill(index),
        }
    }

    /// A connection that goes away has sent nothing for long. It is not waited for any more, unless it is not its
    /// client that it waits for.
    pub(super) fn farewell_takes_long(&mut self, index: u32) {
        let Some(connection) = self.io.get(index) else { return };
        let mut is_ours = connection.waits_for_safe();
        let mut owes = false;
        if let Peer::Respb(channels) = &connection.peer {
            owes = channels.owes() && !channels.is_giving_up();
            is_ours |= channels.owes() || channels.is_giving_up();
        }
        if !is_ours {
            return self.io.kill(index);
        }
        if owes {
            // While a script took its time nothing could be given up.
            self.begin_giving_up(index);
        }
        self.io.touch(index);
        self.io.set_deadline(index, self.now_ms + FAREWELL_MS);
    }

    /// Nothing more is decoded; the connection ends when its output has been sent, or when its client has taken nothing
    /// of it for long.
    pub(super) fn close_after_output(&mut self, index: u32) {
        self.io.touch(index);
        if let Some(connection) = self.io.get(index)
            && connection.life == Life::Open
        {
            connection.life = Life::Closing;
            connection.forget_input();
            self.set_reading(index, false);
            self.io.set_deadline(index, self.now_ms + FAREWELL_MS);
        }
    }

    /// A connection that is closing has sent all that it had: it ends, or waits for the end of a RESPB client.
    pub(super) fn all_sent(&mut self, index: u32) {
        let now_ms = self.now_ms;
        // A script has kept waits from being given up: it may be over.
        let owed = self.io.channels(index).map(|(channels, _)| channels.owed_waits(GIVEN_UP_PER_TICK_MAX));
        self.give_up(index, owed.unwrap_or_default());
        let again_ms = if self.engine.is_busy() { SWEEP_MS } else { FAREWELL_MS };
        let Some(connection) = self.io.get(index) else { return };
        if connection.waits_for_upstream() {
            return;
        }
        match &mut connection.peer {
            // Whoever sees to the last of its channels touches it.
            Peer::Respb(channels) if channels.is_giving_up() => return,
            Peer::Respb(channels) if channels.owes() => {
                return self.io.set_deadline(index, now_ms + again_ms);
            }
            Peer::Respb(_) | Peer::Http(_)
                if !connection.ended && shutdown(&connection.fd, Shutdown::Write).is_ok() => {}
            _ => return self.io.kill(index),
        }
        connection.life = Life::Draining { left_bytes: DRAIN_BYTES_MAX };
        self.io.set_deadline(index, now_ms + DRAIN_MS);
        self.set_reading(index, true);
        self.drain(index);
    }

    /// Throws away what comes on a connection that has ended for the server.
    pub(super) fn drain(&mut self, index: u32) {
        let mut room = [0; DRAIN_STEP_BYTES];
        let Some(Some(connection)) = self.io.slots.get_mut(index as usize) else { return };
        let Life::Draining { left_bytes } = connection.life else { return };
        match connection.receive(&mut self.io.scratch, &mut room) {
            None => {}
            Some(len) if len > 0 && len < left_bytes => {
                connection.life = Life::Draining { left_bytes: left_bytes - len };
            }
            Some(_) => self.io.kill(index),
        }
    }

    /// The server stops: a connection gets what it is owed, RESPB clients the reason.
    pub(super) fn close_for_shutdown(&mut self, index: u32) {
        self.run_batch();
        self.end_connection(index, &close::SHUTDOWN);
    }
}
