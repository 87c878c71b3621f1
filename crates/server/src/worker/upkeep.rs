//! Owns: taking away connections that have ended, idle ones and memory that nobody uses, and the end of the worker, all
//! of it in steps that hold nobody up. Does not own: what a tick does for clients (`super`).

use std::sync::atomic::Ordering::Relaxed;

use weft_engine::durable::Farewell;
use weft_engine::reply::Output;

use super::Worker;
use crate::channels::close;
use crate::client::Client;
use crate::connection::{Connection, Life, Peer};
use crate::limits::{
    BURIED_PER_TICK_MAX, CROWD_PER_TICK_MAX, LEAVING_PER_TICK_MAX, SWEEP_MS, SWEPT_PER_TICK_MAX,
};
use crate::notice;
use crate::poll::borrowed;
use crate::shared::Counted;

/// How far a look at all connections has come: idle ones, buffers that are larger than they need be.
pub(super) struct Sweep {
    /// When the last one began.
    began_ms: u64,
    /// The connection that is next, and the page of its channels.
    next: Option<(u32, usize)>,
}

impl Sweep {
    pub(super) const fn new(now_ms: u64) -> Self {
        Self { began_ms: now_ms, next: None }
    }
    pub(super) const fn is_due(&self, now_ms: u64) -> bool {
        self.next.is_some() || now_ms.saturating_sub(self.began_ms) >= SWEEP_MS
    }
    pub(super) const fn is_under_way(&self) -> bool {
        self.next.is_some()
    }
}

/// What a sweep has found.
enum Swept {
    Passed,
    /// It has been idle for too long.
    Idle,
    /// Whether it is idle, the rest of its channels must tell.
    More,
}

impl Worker<'_> {
    /// Takes away connections that have ended, some of them.
    pub(super) fn bury(&mut self) {
        for _ in 0..self.crowd(BURIED_PER_TICK_MAX, 0) {
            let Some(index) = self.io.dead.pop_front() else { return };
            self.crowd_left -= 1;
            self.io.set_deadline(index, 0);
            let Some(connection) = self.io.slots[index as usize].take() else { continue };
            self.poll.remove(borrowed(&connection.fd));
            self.inbox.shared().recount_unauthenticated(connection.counted, Counted::default());
            match connection.peer {
                Peer::Resp(single) => self.take_down(index, single.client),
                Peer::Http(http) => {
                    self.end_following(index);
                    self.end_watching(index);
                    self.take_down(index, http.client);
                }
                Peer::Respb(channels) => self.io.leaving.push_back((index, channels)),
            }
            self.io.free.push(index);
            self.inbox.closed();
        }
    }

    /// Takes down the only client of a connection that has ended.
    fn take_down(&mut self, index: u32, mut client: Client) {
        client.set_alarm(&mut self.io.timers, (index, 0), 0);
        self.executor.disconnect(client.session);
    }

    /// Takes down sessions of RESPB connections that have ended: some, since one connection may have 65,536.
    pub(super) fn take_down_leaving(&mut self) {
        let mut taken = 0;
        while taken < LEAVING_PER_TICK_MAX
            && let Some((index, channels)) = self.io.leaving.front_mut()
        {
            let Some(page) = channels.take_some() else {
                self.io.leaving.pop_front();
                continue;
            };
            for (channel, mut client) in page {
                client.set_alarm(&mut self.io.timers, (*index, channel), 0);
                self.executor.disconnect(client.session);
                taken += 1;
            }
        }
    }

    /// Once a second all connections are looked at, some in each tick.
    pub(super) fn sweep(&mut self) {
        if !self.sweep.is_due(self.now_ms) {
            return;
        }
        let (mut index, mut page) = self.sweep.next.unwrap_or_else(|| {
            self.sweep.began_ms = self.now_ms;
            (0, 0)
        });
        for _ in 0..SWEPT_PER_TICK_MAX {
            if index as usize >= self.io.slots.len() {
                self.sweep.next = None;
                // Those that were idle for too long.
                self.bury();
                if self.io.arena_used == 0 {
                    self.io.spare.truncate(8);
                }
                self.executor.forget_old_scripts();
                return;
            }
            match self.sweep_one(index, page) {
                Swept::More => {
                    page += 1;
                    continue;
                }
                Swept::Idle => self.end_idle(index),
                Swept::Passed => {}
            }
            (index, page) = (index + 1, 0);
        }
        self.sweep.next = Some((index, page));
        self.bury();
    }

    /// Looks at a connection, and at one page of its channels.
    fn sweep_one(&mut self, index: u32, page: usize) -> Swept {
        let (now_us, timeout_s) = (self.now_us, self.engine.settings.idle_timeout_s.load(Relaxed));
        let Some(connection) = self.io.get(index) else { return Swept::Passed };
        let idle_ms = now_us.saturating_sub(connection.active_us) / 1000;
        connection.give_memory_back(idle_ms);
        connection.info.input_bytes.store(connection.input_bytes() as u64, Relaxed);
        if connection.counted != Counted::default() {
            self.recount(index);
        }
        // Nothing need happen to one that has been above its soft limit for too long.
        if page == 0 {
            self.end_channels_over_soft(index);
            if self.exceeds_output(index) {
                self.owes_too_much(index);
                return Swept::Passed;
            }
        }
        let engine = self.engine;
        let Some(connection) = self.io.get(index) else { return Swept::Passed };
        if connection.life == Life::Open
            && let Peer::Http(http) = &mut connection.peer
            && http.ends_with_its_token(engine, &mut connection.output)
        {
            self.close_after_output(index);
            return Swept::Passed;
        }
        if timeout_s == 0 || idle_ms <= u64::from(timeout_s) * 1000 {
            return Swept::Passed;
        }
        let busy = match &connection.peer {
            Peer::Resp(single) => Some(single.client.is_busy()),
            Peer::Http(http) => Some(http.client.is_busy() || http.ledger.flows()),
            Peer::Respb(channels) => match channels.is_page_busy(page) {
                Some(false) => None,
                Some(true) => Some(true),
                None => Some(false),
            },
        };
        match busy {
            None => Swept::More,
            Some(false) => Swept::Idle,
            Some(true) => {
                // Whoever waits is not idle: its time begins anew.
                connection.active_us = now_us;
                Swept::Passed
            }
        }
    }

    /// A connection has been idle for too long.
    fn end_idle(&mut self, index: u32) {
        match self.io.get(index).map(|connection| &connection.peer) {
            Some(Peer::Respb(_)) => self.end_connection(index, &close::IDLE),
            _ => {
                // It is meant: under TLS it is said. Where something is on its way it is not all that there was.
                if let Some(connection) = self.io.get(index).filter(|connection| connection.unsent() == 0) {
                    connection.say_goodbye();
                }
                self.io.kill(index);
            }
        }
    }

    /// The clock of the wall was set back: what is waited for comes when it was to come, not later by as much.
    pub(super) fn clock_was_set_back(&mut self, by_ms: u64) {
        self.io.timers.set_back(by_ms);
        self.sweep.began_ms = self.sweep.began_ms.saturating_sub(by_ms);
        self.stop_ms = self.stop_ms.map(|stop_ms| stop_ms.saturating_sub(by_ms));
    }

    /// Whether a stopping worker has nothing left to send, or no more time.
    pub(super) fn has_stopped(&mut self) -> bool {
        let Some(stop_ms) = self.stop_ms else { return false };
        if self.executor.is_busy() {
            // While it lasts nothing that others have written since is safe, and no reply of theirs goes out.
            self.executor.end_left(!self.waits_for_script());
            self.stop_ms = Some(self.stop_by());
            return false;
        }
        // Whose script it was, and who has come since.
        for index in 0..self.io.slots.len() as u32 {
            if self.io.get(index).is_some_and(|connection| connection.life == Life::Open) {
                self.close_for_shutdown(index);
            }
        }
        let is_ending = |connection: &Connection| {
            connection.has_unsent()
                || connection.owes(None)
                || connection.waits_for_upstream()
                || matches!(connection.life, Life::Draining { .. })
        };
        let waits = !self.io.turns.is_empty()
            || self.io.slots.iter().flatten().any(|connection| is_ending(connection));
        if waits && self.now_ms < stop_ms {
            return false;
        }
        for index in 0..self.io.slots.len() as u32 {
            self.io.kill(index);
        }
        while !self.io.dead.is_empty() {
            self.crowd_left = CROWD_PER_TICK_MAX;
            self.bury();
        }
        while !self.io.leaving.is_empty() {
            self.take_down_leaving();
        }
        true
    }

    /// The server stops: nothing more is read, what there is to send is sent.
    pub(super) fn stop(&mut self) {
        if self.stop_ms.is_none() {
            self.stop_ms = Some(self.stop_by());
            let runs = if self.waits_for_script() { self.executor.left() } else { None };
            if runs.is_some() {
                notice!(
                    "A script runs, which is waited for if it has written; a second SIGTERM stops the server at once"
                );
            }
            for index in 0..self.io.slots.len() as u32 {
                if runs.is_none_or(|(connection, _)| connection != index) {
                    self.close_for_shutdown(index);
                }
            }
        }
    }
    /// Until when clients may take what is for them.
    fn stop_by(&self) -> u64 {
        let drain_s = self.engine.settings.shutdown_timeout_s.load(Relaxed);
        self.now_ms + u64::from(drain_s) * 1000
    }
    /// A script that was left may have done the half of what it does. SHUTDOWN NOSAVE ends it all the same: nothing of
    /// it is kept.
    fn waits_for_script(&self) -> bool {
        self.executor.is_busy() && !matches!(self.engine.durable.farewell(), Farewell::NoSave)
    }
}

impl Connection {
    /// Lets go of buffers that are not in use.
    fn give_memory_back(&mut self, idle_ms: u64) {
        if self.pending.is_empty() && self.pending.capacity() > 0 {
            self.forget_input();
        }
        if self.partial.is_empty() && self.partial.capacity() > 0 {
            self.partial = Vec::new();
        }
        if idle_ms >= SWEEP_MS && self.output.is_empty() && self.output.bytes.capacity() > 0 {
            self.output = Output::default();
        }
    }
}
