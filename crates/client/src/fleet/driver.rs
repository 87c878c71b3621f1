//! The event loop. Owns who is waiting for what, the pace, and when a run ends.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::connect::{self, Once};
use super::connection::{Connection, Partial, interest};
use super::decode::{Decoder, Front, Seen};
use super::wire::Wire;
use super::{Batch, Counts, Done, Ended, Kind, Load};
use crate::{Config, Encoder, Error, Protocol, Result, ServerError};

/// Channels that a connection can have.
pub const CHANNELS_MAX: u32 = 65_536;

/// Events that are taken from the system at once.
const EVENTS_MAX: usize = 512;
/// Room for what is received at first; a reply that is longer makes it grow.
const RECEIVE_BYTES: usize = 256 << 10;
/// How often a load is told what was counted, and how long the loop sleeps at most.
const TICK: Duration = Duration::from_millis(100);
/// When nothing has come for too long, the sockets are waited for so many times more before the server counts as
/// stalled. Several short waits: a machine that stands still as a whole spends one of them.
const LAST_LOOKS: u32 = 5;
const LAST_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How long answers are waited for when somebody has asked for the end.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// When a client that has its answers sends again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At once.
    Closed,
    /// All clients together so many batches a second. A batch that is due when no client is free waits, and its time
    /// runs: so a slow server does not slow down what is asked of it (coordinated omission).
    Fixed {
        /// Batches a second, more than 0.
        batches_per_second: f64,
    },
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When the load gives no more.
    Exhausted,
    /// After so long, or when the load gives no more.
    Elapsed(Duration),
}

/// A logical client: what it waits for.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    /// Requests of its batch.
    size: u32,
    /// Those that are not answered.
    left: u32,
    /// Answers that came in this tick and have not been told to the load.
    fresh: u32,
    tag: u32,
    sent_ns: u64,
    due_ns: u64,
    /// It takes no part any more.
    closed: bool,
}

/// Replies to one client that stand one behind the other in what was received.
#[derive(Clone, Copy, Debug, Default)]
struct Streak {
    channel: u16,
    /// The request of its batch that the first of them answers.
    request: u32,
    /// How many it is due.
    room: u32,
    count: u32,
}

/// Connections to a server, driven by the thread that calls [`run`](Self::run).
#[derive(Debug)]
pub struct Fleet {
    config: Config,
    /// As the server reads it.
    encoder: Encoder,
    channels: u32,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    clients: Vec<Client>,
    buffer: Vec<u8>,
    /// A decoder between replies: it is large, so that it is kept rather than made for each receiving.
    spare: Option<Box<Decoder>>,
    reconnects: bool,
}

impl Fleet {
    /// Makes the connections, one after the other. Each costs a round trip, and under TLS a
    /// handshake. Of each, `channels` logical clients: channels of RESPB; over RESP they share it, so that what one
    /// client says of itself (MULTI, SELECT, a command that blocks) is said for all.
    pub fn connect(config: &Config, connections: u32, channels: u32) -> Result<Fleet> {
        let channels_max = if config.protocol == Protocol::Http { 1 } else { CHANNELS_MAX };
        if channels == 0 || channels > channels_max {
            return Err(Error::Config(format!(
                "{channels} clients on a connection: RESP and RESPB have 1 to {CHANNELS_MAX}, HTTP only 1"
            )));
        }
        let mut fleet = Fleet {
            // Replies are wanted whole: a fleet puts no slices together.
            config: Config { capabilities: 0, ..config.clone() },
            encoder: Encoder::new(config.protocol, &config.limits),
            channels,
            epoll: epoll::create(CreateFlags::CLOEXEC).map_err(connect::system)?,
            connections: Vec::new(),
            clients: Vec::new(),
            buffer: vec![0; RECEIVE_BYTES],
            spare: None,
            reconnects: false,
        };
        for index in 0..connections {
            let (wire, encoder) = fleet.open(index as usize)?;
            fleet.encoder = encoder;
            fleet.connections.push(Connection::new(wire));
            fleet.clients.extend((0..channels).map(|_| Client::default()));
        }
        if channels > 1 && config.protocol == Protocol::Respb && config.db != 0 {
            // A channel begins with database 0, whatever channel 0 has.
            fleet.command(&["SELECT", &config.db.to_string()])?;
        }
        Ok(fleet)
    }

    /// Runs a command once as each client; an error reply is an error.
    pub fn command(&mut self, args: &[&str]) -> Result<()> {
        let mut load = Once::new(&self.encoder, args, self.clients())?;
        self.run_once(&mut load)
    }

    pub(super) fn run_once(&mut self, load: &mut Once) -> Result<()> {
        let counts = self.run(load, Pace::Closed, Until::Exhausted, &AtomicBool::new(false))?;
        match counts.error_texts.first() {
            Some((text, _)) => Err(Error::Server(ServerError::new(text.as_bytes()))),
            None if counts.is_clean() => Ok(()),
            None => Err(Error::Closed),
        }
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.config.protocol
    }

    /// What encodes requests as this server reads them: over RESPB, as ARGV where it lacks something of our table.
    pub fn encoder(&self) -> Encoder {
        self.encoder.clone()
    }

    /// Makes a connection anew for each batch. Only without channels.
    pub fn reconnect(&mut self, reconnects: bool) {
        self.reconnects = reconnects && self.channels == 1;
    }

    /// Logical clients, those that the server has closed included.
    pub fn clients(&self) -> u32 {
        self.clients.len() as u32
    }

    fn spare_decoder(&mut self) -> Box<Decoder> {
        self.spare.take().unwrap_or_else(|| Box::new(Decoder::new(self.config.protocol)))
    }

    fn open(&self, index: usize) -> Result<(Wire, Encoder)> {
        let (wire, encoder) = connect::wire(&self.config)?;
        epoll::add(&self.epoll, wire.as_fd(), EventData::new_u64(index as u64), interest(false))
            .map_err(connect::system)?;
        Ok((wire, encoder))
    }

    /// Drives the load to its end. Whatever the server does, it ends: after [`Timeouts::reply`](crate::Timeouts)
    /// without an answer that is due, when no connection is left, or a second after `stop` is set.
    pub fn run<L: Load>(
        &mut self,
        load: &mut L,
        pace: Pace,
        until: Until,
        stop: &AtomicBool,
    ) -> Result<Counts> {
        let (values, kinds) = (load.wants_values(), load.wants_kinds());
        let mut run = Run {
            interval_ns: match pace {
                Pace::Closed => 0.0,
                Pace::Fixed { batches_per_second } => 1e9 / batches_per_second,
            },
            kinds: kinds && self.config.protocol != Protocol::Http,
            shared: self.channels > 1 && self.config.protocol != Protocol::Respb,
            fleet: self,
            load,
            values,
            counts: Counts::default(),
            started: Instant::now(),
            now_ns: 0,
            next_due_ns: 0.0,
            idle: VecDeque::new(),
            touched: Vec::new(),
            dirty: Vec::new(),
            unread: Vec::new(),
            due: 0,
            exhausted: false,
        };
        let outcome = run.drive(until, stop);
        let counts = run.counts;
        self.forget_unanswered();
        outcome.map(|ended| Counts { ended, ..counts })
    }

    /// A connection whose requests were not all answered cannot be used in another run: late replies would be taken for
    /// others.
    fn forget_unanswered(&mut self) {
        let channels = self.channels as usize;
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let clients = &mut self.clients[index * channels..(index + 1) * channels];
            if clients.iter().any(|client| client.left > 0) {
                connection.end();
                clients.iter_mut().for_each(|client| *client = Client { closed: true, ..Client::default() });
            }
        }
    }
}

/// What is known only while a run lasts.
struct Run<'a, L> {
    fleet: &'a mut Fleet,
    load: &'a mut L,
    values: bool,
    kinds: bool,
    /// Several clients on each RESP connection, whose replies come in the order of their requests.
    shared: bool,
    counts: Counts,
    started: Instant,
    now_ns: u64,
    /// Between batches at a fixed pace; 0 in a closed loop.
    interval_ns: f64,
    next_due_ns: f64,
    /// Clients that wait for their time, at a fixed pace.
    idle: VecDeque<u32>,
    /// Clients with fresh answers.
    touched: Vec<u32>,
    /// Connections with bytes to send.
    dirty: Vec<u32>,
    /// Connections that may have more to receive, of which the kernel will not tell again.
    unread: Vec<u32>,
    /// Requests that are due an answer.
    due: u64,
    /// Nothing more is begun.
    exhausted: bool,
}

impl<L: Load> Run<'_, L> {
    fn drive(&mut self, until: Until, stop: &AtomicBool) -> Result<Ended> {
        let end_ns = match until {
            Until::Exhausted => u64::MAX,
            Until::Elapsed(time) => time.as_nanos() as u64,
        };
        let patience = self.fleet.config.timeouts.reply;
        let patience_ns = patience.map_or(u64::MAX, |time| time.as_nanos() as u64);
        let (mut progress_ns, mut tick_ns, mut stopped_ns) = (0, TICK.as_nanos() as u64, None);
        let mut received = 0;
        // How often the sockets were looked at since the patience ended: this thread may be what was late, or the whole
        // machine, so that the server needs a moment too.
        let mut looks = 0;
        let mut events = Vec::with_capacity(EVENTS_MAX);
        self.begin();
        loop {
            self.look_at_clock();
            if self.now_ns >= end_ns {
                self.exhausted = true;
            }
            if stopped_ns.is_none() && stop.load(Ordering::Relaxed) {
                self.exhausted = true;
                stopped_ns = Some(self.now_ns);
            }
            self.start_due();
            self.flush_dirty();
            if self.counts.received_bytes != received || self.due == 0 {
                (received, progress_ns, looks) = (self.counts.received_bytes, self.now_ns, 0);
            }
            let late = self.now_ns - progress_ns > patience_ns;
            if let Some(ended) = self.ended(late && looks >= LAST_LOOKS, stopped_ns) {
                return Ok(ended);
            }
            looks += u32::from(late);
            if self.now_ns >= tick_ns {
                tick_ns = self.now_ns + TICK.as_nanos() as u64;
                self.load.tick(&self.counts);
            }
            events.clear();
            match epoll::wait(
                &self.fleet.epoll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&if late { LAST_LOOK } else { self.sleep(end_ns) }),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(connect::system(error)),
            }
            self.receive_unread();
            for event in &events {
                self.event(*event);
            }
        }
    }

    /// Every client begins, or at a fixed pace waits for its turn.
    fn begin(&mut self) {
        for client in 0..self.fleet.clients.len() as u32 {
            if !self.fleet.clients[client as usize].closed {
                self.ready(client);
            }
        }
    }

    fn look_at_clock(&mut self) {
        self.now_ns = self.started.elapsed().as_nanos() as u64;
    }

    fn ended(&mut self, stalled: bool, stopped_ns: Option<u64>) -> Option<Ended> {
        if self.due == 0 && self.exhausted {
            return Some(Ended::Done);
        }
        // Ordered by cost: the connections are looked at only when none of them is due anything.
        if self.due == 0 && self.fleet.clients.iter().all(|client| client.closed) {
            return Some(Ended::Lost);
        }
        let stopped = stopped_ns.is_some_and(|at| self.now_ns - at > STOP_PATIENCE.as_nanos() as u64);
        if stopped || stalled {
            self.counts.lost += self.due;
            return Some(if stopped { Ended::Stopped } else { Ended::Stalled });
        }
        None
    }

    /// How long nothing has to be done without an event.
    fn sleep(&self, end_ns: u64) -> Timespec {
        if !self.unread.is_empty() {
            return Timespec { tv_sec: 0, tv_nsec: 0 };
        }
        let mut wake_ns = self.now_ns + TICK.as_nanos() as u64;
        if !self.exhausted {
            wake_ns = wake_ns.min(end_ns);
            if self.interval_ns > 0.0 && !self.idle.is_empty() {
                wake_ns = wake_ns.min(self.next_due_ns as u64 + 1);
            }
        }
        let sleep_ns = wake_ns.saturating_sub(self.now_ns) as i64;
        Timespec { tv_sec: sleep_ns / 1_000_000_000, tv_nsec: sleep_ns % 1_000_000_000 }
    }

    fn event(&mut self, event: Event) {
        let index = event.data.u64() as usize;
        // The data and flags are read by value: the event's layout is packed.
        let flags = event.flags;
        if flags.contains(EventFlags::OUT) {
            let connection = &mut self.fleet.connections[index];
            connection.flush(index as u64, &self.fleet.epoll, &mut self.counts);
        }
        let ends = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        self.fleet.connections[index].ends |= ends;
        if (ends || flags.contains(EventFlags::IN)) && self.receive(index) {
            self.unread.push(index as u32);
        }
    }

    /// Receives once more where something may be left.
    fn receive_unread(&mut self) {
        for index in std::mem::take(&mut self.unread) {
            if self.receive(index as usize) {
                self.unread.push(index);
            }
        }
    }

    /// A client has nothing to wait for.
    #[inline]
    fn ready(&mut self, client: u32) {
        if self.exhausted {
            return;
        }
        if self.interval_ns == 0.0 {
            return self.start(client, self.now_ns);
        }
        self.idle.push_back(client);
        self.start_due();
    }

    /// At a fixed pace, begins what is due as far as clients are free.
    fn start_due(&mut self) {
        while self.interval_ns > 0.0 && !self.exhausted && self.next_due_ns <= self.now_ns as f64 {
            let Some(client) = self.idle.pop_front() else { return };
            if self.fleet.clients[client as usize].closed {
                continue;
            }
            let due_ns = self.next_due_ns as u64;
            self.next_due_ns += self.interval_ns;
            self.start(client, due_ns);
        }
    }

    #[inline]
    fn start(&mut self, client: u32, due_ns: u64) {
        let Some(Batch { bytes, frames, tag }) = self.load.next(client) else {
            self.exhausted = true;
            return;
        };
        let fleet = &mut *self.fleet;
        let size = frames.len() as u32;
        let state = &mut fleet.clients[client as usize];
        *state = Client { size, left: size, tag, sent_ns: self.now_ns, due_ns, ..Client::default() };
        self.counts.requests += u64::from(size);
        self.due += u64::from(size);
        let index = client / fleet.channels;
        let connection = &mut fleet.connections[index as usize];
        if fleet.channels == 1 {
            if connection.is_idle() {
                connection.send(bytes, u64::from(index), &fleet.epoll, &mut self.counts);
            } else {
                connection.queue(bytes);
            }
            return;
        }
        let channel = (client % fleet.channels) as u16;
        if self.shared {
            connection.turns.push_back((channel, size));
        } else {
            for &frame in frames {
                bytes[frame as usize + 2..frame as usize + 4].copy_from_slice(&channel.to_be_bytes());
            }
        }
        connection.queue(bytes);
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(index);
        }
    }

    fn flush_dirty(&mut self) {
        for index in self.dirty.drain(..) {
            let connection = &mut self.fleet.connections[index as usize];
            connection.flush(u64::from(index), &self.fleet.epoll, &mut self.counts);
        }
    }

    /// Takes what one connection has received, and lets its clients go on. Returns whether more may be there.
    fn receive(&mut self, index: usize) -> bool {
        let connection = &mut self.fleet.connections[index];
        let ends = connection.ends;
        let Some(wire) = &mut connection.wire else { return false };
        let mut buffer = std::mem::take(&mut self.fleet.buffer);
        let partial = connection.partial.take();
        let kept = partial.as_ref().map_or(0, |partial| partial.bytes.len());
        // A reply that has filled half of the buffer gets twice the room: it grows with what has come.
        if buffer.len() / 2 < kept {
            buffer.resize(buffer.len() * 2, 0);
        }
        if let Some(partial) = &partial {
            buffer[..kept].copy_from_slice(&partial.bytes);
        }
        self.counts.receives += 1;
        let count = match wire.receive(&mut buffer[kept..]) {
            Ok(0) => None,
            Ok(count) => Some(count),
            Err(error @ (Errno::AGAIN | Errno::INTR)) => {
                connection.partial = partial;
                self.fleet.buffer = buffer;
                return error == Errno::INTR;
            }
            Err(_) => None,
        };
        self.look_at_clock();
        // Behind the last data stands the end of the stream, which must be seen as well.
        let more = count.is_some_and(|count| kept + count == buffer.len() || ends);
        match count {
            None => self.close(index),
            Some(count) => {
                self.counts.received_bytes += count as u64;
                if let Err(text) = self.replies(index, &buffer[..kept + count], partial) {
                    self.counts.malformed += 1;
                    self.counts.error_text(text.as_bytes());
                    self.close(index);
                }
            }
        }
        self.fleet.buffer = buffer;
        self.tell();
        self.flush_dirty();
        more
    }

    /// Counts the replies in `bytes`. An error means that they are none, or more than were asked for.
    fn replies(&mut self, index: usize, bytes: &[u8], partial: Option<Partial>) -> Result<(), String> {
        let first = index as u32 * self.fleet.channels;
        let (muxed, protocol) = (self.fleet.channels > 1 && !self.shared, self.fleet.config.protocol);
        let (mut decoder, mut part) = match partial {
            Some(partial) => (partial.decoder, partial.part),
            None => (self.fleet.spare_decoder(), 0),
        };
        let mut at = 0;
        let mut streak = self.streak(first, 0);
        while at < bytes.len() {
            let rest = &bytes[at..];
            // Values are handed out while a frame is read, so that its channel is looked at before.
            if let [_, _, high, low, ..] = *rest
                && muxed
                && streak.channel != u16::from_be_bytes([high, low])
            {
                self.end_streak(first, &mut streak);
                streak = self.streak(first, u16::from_be_bytes([high, low]));
            }
            let turn = if self.shared { self.fleet.connections[index].turns.front().copied() } else { None };
            if let Some((channel, _)) = turn
                && streak.channel != channel
            {
                self.end_streak(first, &mut streak);
                streak = self.streak(first, channel);
            }
            let mut seen = Seen {
                counts: &mut self.counts,
                load: self.load,
                values: self.values && streak.count < streak.room,
                client: first + u32::from(streak.channel),
                request: streak.request + streak.count,
                part,
            };
            let front = decoder.front(rest, &mut seen);
            part = seen.part;
            match front {
                Front::Reply { len, channel, count }
                    if (channel == streak.channel || turn.is_some())
                        && count <= streak.room - streak.count =>
                {
                    if self.kinds {
                        let client = first + u32::from(streak.channel);
                        self.load.kind(client, streak.request + streak.count, Kind::of(protocol, rest));
                    }
                    if turn.is_some() {
                        self.fleet.connections[index].took_turn();
                    }
                    (at, part) = (at + len, 0);
                    streak.count += count;
                }
                Front::Reply { channel, .. } => {
                    self.end_streak(first, &mut streak);
                    self.is_open(channel)?;
                    return Err("a reply that nobody had asked for".to_string());
                }
                Front::Other { len, push } => {
                    (at, part) = (at + len, 0);
                    self.counts.pushes += u64::from(push);
                }
                Front::Close { len, channel } => {
                    (at, part) = (at + len, 0);
                    self.end_streak(first, &mut streak);
                    self.close_channel(first, channel)?;
                    streak = self.streak(first, channel);
                }
                Front::GoAway { code } => {
                    self.end_streak(first, &mut streak);
                    return Err(format!("the server ended the connection (GOAWAY, code {code})"));
                }
                Front::Incomplete => {
                    self.end_streak(first, &mut streak);
                    let partial = Partial { decoder, bytes: rest.to_vec(), part };
                    self.fleet.connections[index].partial = Some(partial);
                    return Ok(());
                }
                Front::Invalid(error) => {
                    self.end_streak(first, &mut streak);
                    return Err(format!("not a reply: {error}"));
                }
            }
        }
        self.end_streak(first, &mut streak);
        self.fleet.spare = Some(decoder);
        Ok(())
    }

    /// What is known of a channel whose replies follow. One that is not open is due none.
    #[inline]
    fn streak(&self, first: u32, channel: u16) -> Streak {
        let mut streak = Streak { channel, ..Streak::default() };
        if u32::from(channel) < self.fleet.channels {
            let state = &self.fleet.clients[(first + u32::from(channel)) as usize];
            streak.room = state.left - state.fresh;
            streak.request = state.size - streak.room;
        }
        streak
    }

    /// Notes the replies of a streak.
    #[inline]
    fn end_streak(&mut self, first: u32, streak: &mut Streak) {
        let count = std::mem::take(&mut streak.count);
        if count == 0 {
            return;
        }
        streak.room -= count;
        streak.request += count;
        let client = first + u32::from(streak.channel);
        let state = &mut self.fleet.clients[client as usize];
        if state.fresh == 0 {
            self.touched.push(client);
        }
        state.fresh += count;
    }

    fn is_open(&self, channel: u16) -> Result<(), String> {
        if u32::from(channel) < self.fleet.channels {
            return Ok(());
        }
        Err(format!("a frame for channel {channel}, which is not open"))
    }

    /// Tells the load who was answered; those that have all their answers go on.
    fn tell(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        for client in touched.drain(..) {
            let state = &mut self.fleet.clients[client as usize];
            let count = std::mem::take(&mut state.fresh);
            let done = Done {
                client,
                tag: state.tag,
                first: state.size - state.left,
                count,
                since_sent_ns: self.now_ns - state.sent_ns,
                since_due_ns: self.now_ns - state.due_ns,
            };
            state.left -= count;
            let ready = state.left == 0 && !state.closed;
            self.counts.replies += u64::from(count);
            self.due -= u64::from(count);
            self.load.done(done);
            if ready {
                if self.fleet.reconnects {
                    self.connect_anew(client);
                }
                self.ready(client);
            }
        }
        self.touched = touched;
    }

    fn connect_anew(&mut self, client: u32) {
        let index = client as usize;
        self.fleet.connections[index].end();
        match self.fleet.open(index) {
            Ok((wire, _)) => self.fleet.connections[index].replace(wire),
            Err(error) => {
                self.counts.error_text(error.to_string().as_bytes());
                self.close(index);
            }
        }
    }

    /// The connection has ended: what it owes never comes.
    fn close(&mut self, index: usize) {
        self.fleet.connections[index].end();
        self.counts.closed += 1;
        let channels = self.fleet.channels;
        for client in index as u32 * channels..(index as u32 + 1) * channels {
            self.drop_client(client);
        }
    }

    fn close_channel(&mut self, first: u32, channel: u16) -> Result<(), String> {
        self.is_open(channel)?;
        self.counts.closed += 1;
        self.drop_client(first + u32::from(channel));
        Ok(())
    }

    /// Answers that have come in this tick still count.
    fn drop_client(&mut self, client: u32) {
        let state = &mut self.fleet.clients[client as usize];
        let lost = state.left - state.fresh;
        state.closed = true;
        // So that the answers that did come keep their places in the batch.
        (state.size, state.left) = (state.size - lost, state.left - lost);
        self.counts.lost += u64::from(lost);
        self.due -= u64::from(lost);
    }
}
