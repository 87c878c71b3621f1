//! Owns: a worker's connections and buffers, as the executor's host. Does not own: the loop (`crate::worker`).

use std::collections::VecDeque;

use weft_engine::reply::{Output, OutputPlace};
use weft_engine::session::Session;
use weft_engine::{Host, Lent, Postponed};

use crate::channels::Channels;
use crate::connection::{Connection, Life, Peer, Source};
use crate::http::answer::Pen;
use crate::limits::{ARENA_BYTES, RESUMED_PER_TICK_MAX, SPARE_OUTPUT_BYTES_MAX, SPARE_OUTPUTS_MAX};
use crate::timers::{About, Timer, Timers};

/// Something that a request, a message or a time has left for the worker to see to, in the order in which it came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aftermath {
    /// Look at the session.
    FollowUp(u32, u16),
    /// A channel has been ended, since it has gone past a limit.
    Ended(u32, u16),
    /// A request waits for the end of CLIENT PAUSE.
    Paused(u32, u16, u64),
    /// A client waits no more: what it has sent meanwhile is to run.
    Resume(u32, u16),
}

/// A worker's connections and buffers.
pub(crate) struct Io {
    pub(crate) slots: Vec<Option<Box<Connection>>>,
    /// Free places in `slots`.
    pub(crate) free: Vec<u32>,
    /// Input of the present tick.
    pub(crate) arena: Box<[u8]>,
    pub(crate) arena_used: usize,
    /// What is encrypted, between a socket and TLS; nothing before the first such connection.
    pub(crate) scratch: Vec<u8>,
    /// Connections whose output is to be sent.
    pub(crate) touched: Vec<u32>,
    /// Connections with replies that may not be sent yet.
    pub(crate) waiting_for_safe: Vec<u32>,
    /// Connections with input of which no event will tell.
    pub(crate) unread: Vec<u32>,
    /// Connections whose own buffer has input that the next tick is to decode.
    pub(crate) put_off: Vec<u32>,
    /// Connections that begin or end, to be read from some in each tick. A place may stand there that has a new owner.
    pub(crate) passing: VecDeque<u32>,
    /// Connections that are to be taken away, some in each tick.
    pub(crate) dead: VecDeque<u32>,
    /// Channels of connections that have been taken away, whose sessions are taken down some in each tick.
    pub(crate) leaving: VecDeque<(u32, Box<Channels>)>,
    /// Connections that go away and whose channels have yet to give up what they wait for, some in each tick. A place
    /// may stand there that has a new owner.
    pub(crate) giving_up: VecDeque<u32>,
    pub(crate) aftermath: VecDeque<Aftermath>,
    /// What goes on in the next ticks, since this one has resumed as many as it may; and how many it still may.
    pub(crate) later: VecDeque<Aftermath>,
    /// Clients whose next held request is a program that waits for its turn, in the order in which they came.
    pub(crate) turns: VecDeque<(u32, u16)>,
    pub(crate) resumes_left: usize,
    pub(crate) timers: Timers,
    pub(crate) spare: Vec<Output>,
    /// Writes the heads of HTTP's answers.
    pub(crate) pen: Pen,
}

impl Io {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            arena: vec![0; ARENA_BYTES].into(),
            arena_used: 0,
            scratch: Vec::new(),
            touched: Vec::new(),
            waiting_for_safe: Vec::new(),
            unread: Vec::new(),
            put_off: Vec::new(),
            passing: VecDeque::new(),
            dead: VecDeque::new(),
            leaving: VecDeque::new(),
            giving_up: VecDeque::new(),
            aftermath: VecDeque::new(),
            later: VecDeque::new(),
            turns: VecDeque::new(),
            resumes_left: RESUMED_PER_TICK_MAX,
            timers: Timers::default(),
            spare: Vec::new(),
            pen: Pen::new(),
        }
    }

    /// What was left over goes on: as much as this tick resumes. The rest is not touched, however much it is.
    pub(crate) fn take_later(&mut self) {
        let most = self.later.len().min(self.resumes_left);
        self.aftermath.extend(self.later.drain(..most));
    }
    /// A connection that has not been taken away.
    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots.get_mut(index as usize)?.as_deref_mut()
    }
    /// The session of a client, and where its replies go.
    pub(crate) fn client(&mut self, index: u32, channel: u16) -> Option<(&mut Session, &mut Output)> {
        let connection = self.slots.get_mut(index as usize)?.as_deref_mut()?;
        if connection.life == Life::Dead {
            return None;
        }
        Some((&mut connection.peer.client(channel)?.session, &mut connection.output))
    }
    /// The channels of a RESPB connection, and where their replies go.
    pub(crate) fn channels(&mut self, index: u32) -> Option<(&mut Channels, &mut Output)> {
        let connection = self.slots.get_mut(index as usize)?.as_deref_mut()?;
        match &mut connection.peer {
            Peer::Resp(_) | Peer::Http(_) => None,
            Peer::Respb(channels) => Some((channels, &mut connection.output)),
        }
    }

    /// Notes that a connection has something to send, and gives it a buffer that has memory if it has none.
    pub(crate) fn touch(&mut self, index: u32) {
        let Some(Some(connection)) = self.slots.get_mut(index as usize) else { return };
        touch(connection, index, &mut self.touched, &mut self.spare);
    }
    /// Takes an empty output back.
    pub(crate) fn give_back(&mut self, mut output: Output) {
        let capacity = output.bytes.capacity();
        if self.spare.len() < SPARE_OUTPUTS_MAX && capacity > 0 && capacity <= SPARE_OUTPUT_BYTES_MAX {
            output.clear();
            self.spare.push(output);
        }
    }
    /// Asks for the time at which a client is looked at, in place of any before; 0 for none.
    pub(crate) fn set_alarm(&mut self, index: u32, channel: u16, at_ms: u64) {
        let Some(Some(connection)) = self.slots.get_mut(index as usize) else { return };
        let Some(client) = connection.peer.client(channel) else { return };
        client.set_alarm(&mut self.timers, (index, channel), at_ms);
    }
    /// Asks for the time by which a connection must have done what it is waited for: its handshake, its authentication,
    /// the rest of a request, its end; 0 for none.
    pub(crate) fn set_deadline(&mut self, index: u32, at_ms: u64) {
        let Some(Some(connection)) = self.slots.get_mut(index as usize) else { return };
        let timer = Timer { at_ms, connection: index, about: About::Connection, client: 0 };
        self.timers.set(&mut connection.alarm, timer);
    }
    /// The time that was asked for with [`Io::set_deadline`]; 0 for none.
    pub(crate) fn deadline(&self, index: u32) -> u64 {
        let connection = self.slots.get(index as usize).and_then(Option::as_ref);
        connection.map_or(0, |connection| self.timers.time_of(&connection.alarm))
    }
    /// What a connection has sent is decoded in the next tick, and nothing is received before.
    pub(crate) fn put_off(&mut self, index: u32) {
        let Some(Some(connection)) = self.slots.get_mut(index as usize) else { return };
        if !connection.put_off {
            connection.put_off = true;
            self.put_off.push(index);
        }
    }
    /// A connection that begins or ends is read from in its turn.
    pub(crate) fn pass(&mut self, index: u32) {
        let Some(Some(connection)) = self.slots.get_mut(index as usize) else { return };
        if !connection.passing {
            connection.passing = true;
            self.passing.push_back(index);
        }
    }
    /// A connection ends now; it is taken away at the end of this tick or one of the next.
    pub(crate) fn kill(&mut self, index: u32) {
        if let Some(Some(connection)) = self.slots.get_mut(index as usize)
            && connection.life != Life::Dead
        {
            connection.life = Life::Dead;
            self.dead.push_back(index);
        }
    }
}

#[inline]
fn touch(connection: &mut Connection, index: u32, touched: &mut Vec<u32>, spare: &mut Vec<Output>) {
    if !connection.touched {
        connection.touched = true;
        touched.push(index);
        if connection.output.bytes.capacity() == 0
            && let Some(output) = spare.pop()
        {
            connection.output = output;
        }
    }
}

impl Host for Io {
    #[inline]
    fn lend(&mut self, index: u32, channel: u16) -> Option<Lent<'_>> {
        let Some(Some(connection)) = self.slots.get_mut(index as usize) else { return None };
        // A script that has been left may end behind GOAWAY.
        if connection.life != Life::Open && !connection.owes(Some(channel)) {
            return None;
        }
        touch(connection, index, &mut self.touched, &mut self.spare);
        let (bytes, buffer): (&[u8], _) = match (connection.source, &connection.offered) {
            (Source::Arena, _) => (&self.arena, None),
            (Source::Own, None) => (&connection.pending, None),
            (Source::Own, Some(offered)) => (offered, Some(offered)),
        };
        let output = &mut connection.output;
        match &mut connection.peer {
            Peer::Resp(single) => {
                let session = &mut single.client.session;
                Some(Lent { session, output, bytes, buffer, shared_bytes: usize::MAX })
            }
            Peer::Respb(channels) => {
                if let Some(ended) = channels.lend(channel, output) {
                    self.aftermath.push_back(Aftermath::Ended(index, ended));
                }
                let shared_bytes = channels.shared_bytes(channel, output);
                let session = &mut channels.client_mut(channel)?.session;
                Some(Lent { session, output, bytes, buffer, shared_bytes })
            }
            Peer::Http(http) => {
                let shared_bytes = http.ledger.lend(output, &mut self.pen);
                Some(Lent { session: &mut http.client.session, output, bytes, buffer: None, shared_bytes })
            }
        }
    }

    #[cold]
    fn outgrew(&mut self, index: u32, channel: u16, from: OutputPlace) {
        if let Some(Some(connection)) = self.slots.get_mut(index as usize)
            && let Peer::Respb(channels) = &mut connection.peer
        {
            channels.lent_from(channel, from);
        }
    }

    fn postpone(&mut self, index: u32, channel: u16, request: Postponed) {
        let Some(Some(connection)) = self.slots.get_mut(index as usize) else { return };
        if request.turn {
            self.turns.push_back((index, channel));
        }
        if request.until_ms > 0 {
            self.aftermath.push_back(Aftermath::Paused(index, channel, request.until_ms));
        }
        match &mut connection.peer {
            Peer::Resp(single) => {
                single.client.hold(request);
            }
            Peer::Respb(channels) => {
                if channels.postpone(channel, request) {
                    self.aftermath.push_back(Aftermath::Ended(index, channel));
                }
            }
            Peer::Http(http) => {
                http.client.hold(request);
            }
        }
    }

    fn follow_up(&mut self, index: u32, channel: u16) {
        self.aftermath.push_back(Aftermath::FollowUp(index, channel));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_left_over_a_tick_takes_as_much_as_it_resumes() {
        let mut io = Io::new();
        let order = |all: &VecDeque<Aftermath>| -> Vec<u16> {
            let channel = |one: &Aftermath| match one {
                Aftermath::Resume(0, channel) => Some(*channel),
                _ => None,
            };
            all.iter().filter_map(channel).collect()
        };
        let most = RESUMED_PER_TICK_MAX as u16;
        io.later.extend((0..3 * most + 5).map(|channel| Aftermath::Resume(0, channel)));
        io.take_later();
        assert_eq!(order(&io.aftermath), (0..most).collect::<Vec<_>>());
        assert_eq!(
            order(&io.later),
            (most..3 * most + 5).collect::<Vec<_>>(),
            "the others stay, in their order"
        );
        (0..3).for_each(|_| io.take_later());
        assert_eq!((order(&io.aftermath).len(), io.later.len()), (3 * RESUMED_PER_TICK_MAX + 5, 0));
    }
}
