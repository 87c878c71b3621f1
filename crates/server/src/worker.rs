//! Owns: what a worker does in a tick: receive, decode, run, send. Does not own: the loop and the thread
//! (`crate::crew`), what a connection is (`crate::connection`), commands.
//!
//! One tick, after a look at the sockets:
//!
//! 1. Apply what others have sent, and see to the times that have come: waits end, and what stood behind them runs.
//! 2. Decode what connections have kept in their own buffers and may go on with.
//! 3. Receive from every socket that is readable, once each, into the arena, and decode. A batch runs when it is full,
//!    when a request is a barrier, and when all sockets have been read: the requests of many connections run together.
//!    Of connections that begin or end only some are read from; the next tick goes on with the others. What all these
//!    have told clients of this worker is applied as in step 1.
//! 4. Programs that have waited for their turn since the tick before have one: whoever has come meanwhile was before
//!    them, and has been sent what it asked for.
//! 5. Send the output of every connection that has some, one call each.
//! 6. Take away connections that have ended, some of them.
//!
//! The steps do not call each other. What one of them sets going, it leaves in a list (`Io::aftermath`, `put_off`,
//! `touched`, `dead`) that a later one, or the next tick, goes through. In particular only steps 2 and 3 decode
//! (`feed`), one connection behind the other.

mod aftermath;
mod farewell;
mod feed;
mod followers;
mod gather;
mod handshake;
mod http;
mod mail;
mod messages;
#[cfg(test)]
mod tests;
mod turn;
mod upkeep;
mod upstream;
mod watchers;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use weft_engine::blocking::End;
use weft_engine::mailbox::{Address, Recipient};
use weft_engine::reply::Wire;
use weft_engine::{Engine, Executor, Requests};
use weft_gateway::Behind;

use crate::clock::{cpu_ns, micros};
use crate::connection::{Connection, Life, Peer};
use crate::io::Io;
use crate::limits::{
    ARRIVALS_PER_TICK_MAX, CROWD_PER_TICK_MAX, GIVEN_UP_PER_TICK_MAX, LEAVING_PER_TICK_MAX,
    MESSAGES_PER_TICK_MAX, OWN_OUTPUT_BYTES_MAX, PASSING_PER_TICK_MAX, PLACES_PER_TICK_MAX,
    PUSHES_PER_TICK_MAX, RESUMED_PER_TICK_MAX, SWEEP_MS, UNSENT_BYTES_MAX,
};
use crate::listener::{Arrival, Inbox, Speaks};
use crate::poll::{Poll, Ready, Waker, borrowed};
use followers::Followers;
use gather::Gather;
use mail::Mail;
use turn::Turn;
pub(crate) use turn::Turns;
use upkeep::Sweep;
use watchers::Watchers;

/// A worker.
pub(crate) struct Worker<'e> {
    id: u16,
    engine: &'e Engine,
    executor: Executor<'e>,
    requests: Requests,
    io: Io,
    poll: Poll,
    inbox: Arc<Inbox>,
    mail: Mail,
    /// How much more of it this tick tells.
    messages_left: usize,
    pushes_left: usize,
    /// What the last look at the sockets has brought.
    ready: Vec<Ready>,
    /// A connection's input is being decoded.
    is_feeding: bool,
    /// A look has brought something, and there was no tick since.
    has_news: bool,
    /// There was more of something than one tick takes: arrivals, messages, times.
    is_behind: bool,
    /// Programs have used up their turn in the last tick: in the next one whoever has come meanwhile is before them.
    has_run_long: bool,
    /// How much more this tick does for those who begin or end.
    crowd_left: usize,
    now_ms: u64,
    /// The time of this tick on a clock that is never set, from when the server began.
    now_us: u64,
    began: Instant,
    sweep: Sweep,
    /// When a round was last timed, and how many have passed since.
    timed_ms: u64,
    untimed_ticks: u64,
    /// The server stops at this time at the latest.
    stop_ms: Option<u64>,
    is_over: bool,
    followers: Followers,
    watchers: Watchers,
    /// The server behind, where this one is a gateway.
    upstream: Option<Box<Behind>>,
    /// It is at work.
    is_upstream_lent: bool,
    /// Whose wait there is to end, and how, when that is over.
    to_unblock: Vec<(Recipient, End)>,
    /// Whether what that server is to run waits for more.
    gather: Gather,
}

impl<'e> Worker<'e> {
    pub(crate) fn new(
        engine: &'e Engine,
        id: u16,
        inbox: Arc<Inbox>,
        poll: Poll,
        began: Instant,
    ) -> io::Result<Self> {
        let waker = poll.waker();
        inbox.set_waker(waker.clone());
        engine.mailbox(id).set_waker(move || waker.wake());
        let seed = engine.keyspace.key(&id.to_le_bytes()).hash();
        let mut executor = Executor::new(engine, id, seed)
            .ok_or_else(|| io::Error::other("the keyspace has no place for another worker"))?;
        executor.serves_in_steps();
        let now_ms = engine.clock.now_ms();
        Ok(Self {
            id,
            engine,
            executor,
            requests: Requests::default(),
            io: Io::new(),
            poll,
            inbox,
            mail: Mail::default(),
            messages_left: 0,
            pushes_left: 0,
            ready: Vec::new(),
            is_feeding: false,
            has_news: false,
            is_behind: false,
            has_run_long: false,
            crowd_left: 0,
            now_ms,
            now_us: 0,
            began,
            sweep: Sweep::new(now_ms),
            timed_ms: 0,
            untimed_ticks: 0,
            stop_ms: None,
            is_over: false,
            followers: Followers::default(),
            watchers: Watchers::default(),
            upstream: None,
            is_upstream_lent: false,
            to_unblock: Vec::new(),
            gather: Gather::default(),
        })
    }

    /// Waits for something to do.
    pub(crate) fn look(&mut self, timeout_ms: u64) -> io::Result<()> {
        self.has_news = true;
        self.poll.wait(timeout_ms, &mut self.ready)
    }

    /// Does what the last look has brought and what the time brings, as the only worker of its thread. Says whether the
    /// worker has stopped.
    pub(crate) fn tick(&mut self, now_ms: u64, now_us: u64) -> bool {
        self.tick_in_turn(now_ms, now_us, Turn::of_one(self))
    }

    /// The same with the turn of its thread's workers.
    pub(crate) fn tick_in_turn(&mut self, now_ms: u64, now_us: u64, turn: Turn) -> bool {
        if now_ms < self.now_ms {
            self.clock_was_set_back(self.now_ms - now_ms);
        }
        (self.now_ms, self.now_us) = (now_ms, now_us);
        self.io.pen.set_time(now_ms);
        self.io.resumes_left = RESUMED_PER_TICK_MAX;
        (self.messages_left, self.pushes_left) = (MESSAGES_PER_TICK_MAX, PUSHES_PER_TICK_MAX);
        self.io.take_later();
        let waiting = self.io.turns.len();
        self.executor.begin_turn(turn.is_over);
        (self.has_news, self.is_behind) = (false, false);
        self.crowd_left = CROWD_PER_TICK_MAX;
        // A thread's CPU time is a system call: asked for once a millisecond.
        let began_cpu_ns = (now_ms != self.timed_ms).then(cpu_ns);
        self.go_on_with_script();
        self.take_messages(true);
        self.begin_upstream();
        self.fire_timers();
        self.accept();
        self.take_steps_back();
        self.feed_kept();
        self.read_more();
        let ready = std::mem::take(&mut self.ready);
        for event in &ready {
            self.event(*event);
        }
        self.ready = ready;
        self.ready.clear();
        self.see_to_passing();
        self.run_batch();
        // What clients have told each other goes with what they have asked for, unless there is too much of it.
        if !self.is_behind {
            self.take_messages(false);
        }
        if turn.is_own && waiting > 0 {
            // What others have asked for is sent before a program may take long.
            self.send_all();
            self.take_turns(waiting);
        }
        // Where it was over to begin with nothing has had any.
        self.has_run_long = self.executor.is_turn_over() && (!turn.is_over || turn.is_own && waiting > 0);
        self.end_upstream();
        self.give_up_some(GIVEN_UP_PER_TICK_MAX);
        self.send_all();
        self.bury();
        self.take_down_leaving();
        self.executor.disconnect_ended(LEAVING_PER_TICK_MAX);
        self.executor.serve_some();
        self.executor.leave_places(PLACES_PER_TICK_MAX);
        self.sweep();
        self.count_tick(began_cpu_ns);
        self.is_over = self.has_stopped();
        self.is_over
    }

    /// Takes what a look has brought for many workers, so that each can be told of its own. Both lists keep their
    /// memory.
    pub(crate) fn swap_news(&mut self, news: &mut Vec<Ready>) {
        self.has_news = false;
        std::mem::swap(&mut self.ready, news);
    }
    pub(crate) fn add_news(&mut self, event: Ready) {
        self.has_news = true;
        self.ready.push(event);
    }
    /// Whether there is anything for a tick to do.
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        self.has_news
            || self.has_more_to_do()
            || self.stop_ms.is_some()
            || now_ms < self.now_ms
            || self.next_timer_ms().is_some_and(|at_ms| at_ms <= now_ms)
            || self.sweep.is_due(now_ms)
            || self.is_upstream_due()
    }
    /// Whether the last tick has left something to the next one.
    fn has_more_to_do(&self) -> bool {
        self.executor.is_busy()
            || self.executor.has_forwards()
            || self.is_behind
            || !self.io.unread.is_empty()
            || !self.io.put_off.is_empty()
            || !self.io.later.is_empty()
            || !self.io.turns.is_empty()
            || !self.io.passing.is_empty()
            || !self.io.dead.is_empty()
            || !self.io.leaving.is_empty()
            || !self.io.giving_up.is_empty()
            || self.executor.has_some_to_serve()
            || self.executor.has_places_to_leave()
            || self.executor.has_ended()
            || self.sweep.is_under_way()
    }
    /// The time since the server began.
    pub(crate) fn clock_us(&self) -> u64 {
        micros(self.began)
    }
    pub(crate) fn waker(&self) -> Waker {
        self.poll.waker()
    }
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop_ms.is_some()
    }
    /// Whether a script takes its time on it.
    pub(crate) const fn is_busy(&self) -> bool {
        self.executor.is_busy()
    }
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
    pub(crate) fn id(&self) -> u16 {
        self.id
    }

    /// From now on a look of another worker brings what this one's would; or its own looks do again.
    pub(crate) fn wait_with(&mut self, other: Option<&Self>) -> io::Result<()> {
        let sockets = self.io.slots.iter().zip(0..).filter_map(|(slot, index)| {
            let connection = slot.as_ref()?;
            Some((borrowed(&connection.fd), index))
        });
        let upstream = self.upstream.iter().flat_map(|upstream| upstream.sockets());
        for place in self.poll.move_to(other.map(|other| &other.poll), sockets.chain(upstream))? {
            self.io.kill(place as u32);
            self.has_news = true;
        }
        Ok(())
    }

    /// Counts a round of the loop. Of those of a millisecond the first is timed, for all since the last such one.
    fn count_tick(&mut self, began_cpu_ns: Option<u64>) {
        self.untimed_ticks += 1;
        if let Some(began_ns) = began_cpu_ns {
            let took_ns = micros(self.began).saturating_sub(self.now_us) * 1000;
            let stats = &self.engine.stats;
            stats.workers[usize::from(self.id)].ticks.passed(self.untimed_ticks, took_ns);
            stats.longest_tick.note(took_ns, cpu_ns().saturating_sub(began_ns));
            (self.timed_ms, self.untimed_ticks) = (self.now_ms, 0);
        }
    }

    /// How long the next look may wait.
    pub(crate) fn timeout_ms(&self) -> u64 {
        if self.has_more_to_do() {
            return 0;
        }
        // The tick may have taken long: the time at its start would let the next timer come late by as much.
        let left_ms = |at_ms: u64| at_ms.saturating_sub(self.engine.clock.now_ms());
        let next = self.next_timer_ms().map_or(u64::MAX, left_ms);
        let next = next.min(self.upstream_timeout_ms());
        if self.stop_ms.is_some() { next.min(20) } else { next.min(SWEEP_MS) }
    }

    /// When the next time comes that is seen to: while a script takes its time those of clients are not.
    fn next_timer_ms(&self) -> Option<u64> {
        self.io.timers.next_ms(!self.engine.is_busy())
    }

    /// How much of one kind a tick does for those who begin or end: at most so much, and so that so many kinds behind
    /// it have half as much.
    fn crowd(&self, most: usize, behind: usize) -> usize {
        most.min(self.crowd_left.saturating_sub(behind * most / 2))
    }

    /// Takes connections that the listener has accepted for this worker.
    fn accept(&mut self) {
        for _ in 0..self.crowd(ARRIVALS_PER_TICK_MAX, 3) {
            let Some(arrival) = self.inbox.take() else { return };
            self.crowd_left -= 1;
            if self.stop_ms.is_none() {
                self.join(arrival);
            }
        }
        self.is_behind = true;
    }

    fn join(&mut self, arrival: Arrival) {
        let Arrival { fd, info, speaks } = arrival;
        let index = self.io.free.pop().unwrap_or(self.io.slots.len() as u32);
        let address = Address { worker: self.id, channel: 0, connection: index };
        let info = Arc::new(info);
        let session = self.engine.connect(address, Wire::default(), Arc::clone(&info), None);
        if self.poll.add(borrowed(&fd), u64::from(index)).is_err() {
            self.io.free.push(index);
            self.executor.disconnect(session);
            return self.inbox.closed();
        }
        let limits = crate::connection::limits(&session, &self.engine.settings);
        let authenticated = session.authenticated;
        let connection = Box::new(Connection::new(fd, info, (session, limits), self.now_us));
        match self.io.slots.get_mut(index as usize) {
            Some(slot) => *slot = Some(connection),
            None => self.io.slots.push(Some(connection)),
        }
        let auth_timeout_s = self.engine.settings.auth_timeout_s.load(Relaxed);
        if !authenticated && auth_timeout_s > 0 {
            self.ask_to_authenticate(index, u64::from(auth_timeout_s) * 1000);
        }
        match speaks {
            Speaks::Any => {}
            Speaks::Tls if self.start_tls(index, &[]) => {}
            Speaks::Tls => self.io.kill(index),
            Speaks::Http => self.switch_to_http(index),
        }
    }

    fn event(&mut self, event: Ready) {
        // What is for a worker that has left this thread, its new thread is told of too.
        if event.worker != self.id {
            return;
        }
        // Connections that end leave their places at the end of a tick only, and their sockets with them, so an event
        // of this tick is never for a successor.
        let index = event.place;
        let Some(connection) = self.io.get(index) else {
            return self.upstream_event(index, event.ended || event.broken);
        };
        connection.unread |= event.readable || event.ended;
        connection.ended |= event.ended;
        let waits_for_room = event.writable && connection.unsent() > 0;
        let passes = connection.is_new || event.ended;
        if waits_for_room {
            self.io.touch(index);
        }
        if event.broken {
            return self.io.kill(index);
        }
        if passes {
            return self.io.pass(index);
        }
        self.read_if_unread(index);
    }

    /// Reads from connections that begin or end: a handshake's first step, a goodbye and their like cost several
    /// requests, and thousands of them may come at once.
    fn see_to_passing(&mut self) {
        let mut left = self.crowd(PASSING_PER_TICK_MAX, 1);
        while left > 0
            && let Some(index) = self.io.passing.pop_front()
        {
            // A place whose owner was taken away meanwhile costs nothing.
            let passes = self.io.get(index).is_some_and(|connection| std::mem::take(&mut connection.passing));
            if passes {
                (left, self.crowd_left) = (left - 1, self.crowd_left - 1);
                self.read_if_unread(index);
            }
        }
    }

    /// Reads from a connection of which an event has told, or that had more than one receive could take.
    fn read_if_unread(&mut self, index: u32) {
        if let Some(connection) = self.io.get(index)
            && matches!(connection.life, Life::Draining { .. })
            && connection.unread
        {
            self.drain(index);
            if self.io.get(index).is_some_and(|connection| connection.life != Life::Dead && connection.unread)
            {
                self.io.unread.push(index);
            }
            return;
        }
        let ready = |connection: &mut Connection| {
            connection.life == Life::Open
                && connection.reading
                && connection.unread
                && !connection.put_off
                && !connection.is_away()
        };
        if self.io.get(index).is_some_and(ready) {
            self.readable(index);
            if self.io.get(index).is_some_and(ready) {
                self.io.unread.push(index);
            }
        }
    }

    /// Goes on with connections that had more input than one receive takes: one receive each, in turn.
    fn read_more(&mut self) {
        for index in std::mem::take(&mut self.io.unread) {
            self.read_if_unread(index);
        }
    }

    /// Sends what the tick has produced.
    fn send_all(&mut self) {
        let mut touched = std::mem::take(&mut self.io.touched);
        for &index in &touched {
            self.send(index);
        }
        touched.clear();
        // Sending may have touched others no more than itself: nothing was added meanwhile that is not looked at now.
        touched.append(&mut self.io.touched);
        self.io.touched = touched;
    }

    pub(super) fn send(&mut self, index: u32) {
        self.settle(index);
        self.settle_http(index, true);
        self.see_to_aftermath();
        // What has run just now may have begun an answer, which must not be sent in pieces without their heads.
        self.settle_http(index, true);
        let Some(connection) = self.io.get(index) else { return };
        if connection.waits_for_safe() && self.engine.safe.is_lost() {
            self.lose_withheld(index);
        }
        let Some(connection) = self.io.get(index) else { return };
        connection.touched = false;
        if connection.life == Life::Dead {
            return;
        }
        let mut failed = false;
        let mut sent = 0;
        let safe = self.engine.safe.epoch();
        loop {
            match connection.send(safe) {
                Ok(bytes) => sent += bytes,
                Err(()) => failed = true,
            }
            let unsent = connection.unsent();
            if unsent == 0 {
                connection.output.clear();
                connection.sent = 0;
            }
            let Peer::Respb(channels) = &mut connection.peer else { break };
            if channels.waits_for_safe() {
                channels.release_safe(safe);
            }
            if failed || !channels.has_turns() {
                break;
            }
            let before = connection.output.len();
            channels.pump(&mut connection.output, unsent);
            if connection.output.len() == before {
                break;
            }
        }
        if sent > 0 {
            connection.info.bytes_out.store(connection.info.bytes_out.load(Relaxed) + sent, Relaxed);
            self.engine.stats.workers[usize::from(self.id)].traffic.sent(sent);
        }
        let (unsent, owed) = (connection.unsent(), connection.owed_bytes());
        connection.info.output_bytes.store(owed as u64, Relaxed);
        let waits_for_safe = connection.waits_for_safe();
        if waits_for_safe && !connection.waiting_for_safe {
            connection.waiting_for_safe = true;
            self.io.waiting_for_safe.push(index);
        }
        let Some(connection) = self.io.get(index) else { return };
        let done = !connection.has_unsent() && connection.life == Life::Closing;
        if unsent == 0 {
            // A small buffer stays until the connection has been idle for a while (`sweep`).
            if connection.output.bytes.capacity() > OWN_OUTPUT_BYTES_MAX {
                let output = std::mem::take(&mut connection.output);
                self.io.give_back(output);
            }
            if let Some(connection) = self.io.get(index)
                && let Peer::Http(http) = &mut connection.peer
                && http.has_sent_all()
            {
                self.io.put_off(index);
            }
        }
        if let Some(connection) = self.io.get(index)
            && connection.waits_for_room
            && unsent <= unsent_max(connection) / 2
        {
            self.has_room(index);
        }
        if owed > 0 && self.exceeds_output(index) {
            self.owes_too_much(index);
        }
        if sent > 0 && !done {
            self.farewell_goes_on(index, sent);
        }
        if done && let Some(connection) = self.io.get(index) {
            connection.say_goodbye();
        }
        if failed {
            self.io.kill(index);
        } else if done {
            self.all_sent(index);
        }
    }

    /// A connection has so much time to authenticate.
    fn ask_to_authenticate(&mut self, index: u32, time_ms: u64) {
        let by_ms = self.now_ms + time_ms;
        if let Some(connection) = self.io.get(index) {
            connection.authenticate_by_ms = by_ms;
        }
        self.expect_by(index, 0);
    }
    /// A connection must have done by then what it is waited for, a part of a handshake or of a request; 0 where there
    /// is no such thing. By when it must have authenticated stays as it is.
    fn expect_by(&mut self, index: u32, at_ms: u64) {
        let Some(connection) = self.io.get(index) else { return };
        // The time of one that goes away is for its end (`farewell`).
        if connection.life != Life::Open {
            return;
        }
        if connection.is_authenticated() {
            connection.authenticate_by_ms = 0;
        }
        let times = [at_ms, connection.authenticate_by_ms];
        let first_ms = times.into_iter().filter(|&at_ms| at_ms > 0).min();
        self.io.set_deadline(index, first_ms.unwrap_or(0));
    }

    /// Changes whether a connection is read from.
    fn set_reading(&mut self, index: u32, read: bool) {
        let Some(connection) = self.io.get(index) else { return };
        let was_read = std::mem::replace(&mut connection.reading, read);
        if read && !was_read && connection.unread {
            self.io.unread.push(index);
        }
    }
}

/// What a client may leave unread before what it asks for next waits, over HTTP or from a gateway; one that has not
/// authenticated nothing, so that it is owed one page at most.
fn unsent_max(connection: &Connection) -> usize {
    if connection.is_authenticated() { UNSENT_BYTES_MAX } else { 0 }
}
