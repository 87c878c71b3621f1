//! Owns: the channels of a RESPB connection: opening and closing them, requests that wait behind a blocked one, credit,
//! the order in which the replies of many channels share a slow socket. Does not own: commands, sockets.
//!
//! **Output.** While the socket keeps up, a reply is written straight into the connection's output. A reply that is to
//! be sent in slices, one whose channel has no credit, and every reply while the socket lags behind, goes to a queue of
//! its channel, small ones joined; `pump` takes pieces and slices from these queues in turn when there is room.

mod ending;
mod flow;
mod heirs;
mod table;
mod turns;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use weft_engine::config::Settings;
use weft_engine::reply::{OutputPlace, Protocol, Wire};
use weft_engine::requests::Origin;
use weft_engine::respb;
use weft_engine::session::{ConnectionInfo, Session};
use weft_engine::{Postponed, Requests};
use weft_protocol::respb::{Control, Frame, RequestDecoder};
use weft_protocol::{Limits, Malformed, Outcome};
use weft_store::Keyspace;

use ending::Ending;
pub(crate) use flow::Flow;
use heirs::Heirs;
use table::Table;
use turns::Turns;

use crate::client::{Client, HeldRequest};
use crate::connection::Stop;
use crate::limits::UNAUTHENTICATED;

/// Why the server closes a channel or the connection (spec section 8.4).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) code: u16,
    pub(crate) text: &'static str,
}

/// The reasons.
pub(crate) mod close {
    use super::Reason;

    const fn reason(code: u16, text: &'static str) -> Reason {
        Reason { code, text }
    }
    pub(crate) static DONE: Reason = reason(0, "");
    pub(crate) static QUEUE: Reason = reason(1, "the channel's queue is full (queue_bytes)");
    pub(crate) static CONNECTION_QUEUE: Reason =
        reason(1, "the queues of the connection's channels are full (connection_queue_bytes)");
    pub(crate) static OUTPUT: Reason = reason(2, "the channel's output limit was exceeded (output_bytes)");
    pub(crate) static CONNECTION_OUTPUT: Reason =
        reason(2, "the channels of the connection owe too much (connection_output_bytes)");
    pub(crate) static CLASS_OUTPUT: Reason =
        reason(2, "the output limit of the channel's class was exceeded (client-output-buffer-limit)");
    pub(crate) static IDLE: Reason = reason(3, "idle for too long (timeout)");
    pub(crate) static KILLED: Reason = reason(4, "killed");
    pub(crate) static UPSTREAM: Reason =
        reason(4, "the server behind the gateway sends nothing more of what was subscribed to");
    pub(crate) static CHANNELS: Reason = reason(5, "too many channels on this connection (channels)");
    pub(crate) static SHUTDOWN: Reason = reason(6, "the server shuts down");
    pub(crate) static USER: Reason = reason(7, "the user was removed or disabled");
    /// The code where the text says what could not be read.
    pub(crate) const UNREADABLE: u16 = 8;
    /// The code where the text says what a client that has not authenticated has done.
    pub(crate) const UNAUTHENTICATED: u16 = 10;
}

/// Limits of RESPB connections (spec section 10).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RespbLimits {
    pub(crate) channels: u32,
    pub(crate) unauthenticated_channels: u32,
    pub(crate) queue_bytes: usize,
    pub(crate) output_bytes: usize,
    pub(crate) connection_queue_bytes: usize,
    pub(crate) connection_output_bytes: usize,
    /// Of the decoder, once somebody has authenticated.
    pub(crate) decoder: Limits,
}

impl RespbLimits {
    /// Those in force.
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            channels: settings.respb_channels_max.load(Relaxed),
            unauthenticated_channels: settings.respb_unauthenticated_channels_max.load(Relaxed),
            queue_bytes: settings.respb_queue_bytes_max.load(Relaxed),
            output_bytes: settings.respb_output_bytes_max.load(Relaxed),
            connection_queue_bytes: settings.respb_connection_queue_bytes_max.load(Relaxed),
            connection_output_bytes: settings.respb_connection_output_bytes_max.load(Relaxed),
            decoder: Limits {
                argument_bytes_max: u32_of(&settings.string_bytes_max),
                frame_bytes_max: u32_of(&settings.respb_frame_bytes_max),
                ..Limits::DEFAULT
            },
        }
    }
}

fn u32_of(bytes: &AtomicUsize) -> u32 {
    u32::try_from(bytes.load(Relaxed)).unwrap_or(u32::MAX)
}

/// A channel that is open.
pub(crate) struct Channel {
    pub(crate) client: Client,
    /// Requests decoded since it opened, modulo 2³².
    requests: u32,
    /// Credit and frames that wait to be sent; nothing for a channel that needs neither.
    pub(crate) flow: Option<Box<Flow>>,
}

/// What a number takes that is kept until the client's CLOSE.
const CLOSING_BYTES: usize = 8;

/// Neighbouring requests of one channel.
#[derive(Clone, Copy)]
struct ChannelRun {
    channel: u16,
    /// The channel's database.
    db: u8,
    requests: u32,
}

/// What the server knows of a channel's number.
enum Place {
    Open(Box<Channel>),
    /// The server ends it: nothing of it runs any more, and CLOSE comes behind what it is still owed.
    Ending(Box<Ending>),
}

/// A control frame that waits for the requests before it to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    Close(u16),
    Cancel(u16, u32),
    Window(u16, u32),
    /// A request for a channel that may not open.
    TooMany(u16),
    /// A request or WINDOW has named a channel that is not open.
    Open(u16),
}

/// The channels of one connection.
pub(crate) struct Channels {
    decoder: RequestDecoder,
    table: Table<Place>,
    open: u32,
    /// Bytes of a frame that are still to come and are passed over: it has been seen to.
    missing_bytes: usize,
    /// No frame has been decoded: a stream of zeros is told by its first.
    fresh: bool,
    /// Some channel has authenticated, or need not.
    pub(crate) authenticated: bool,
    /// What the client can (HELLO's CAPS) stands here.
    connection: Arc<ConnectionInfo>,
    pub(crate) pending: Option<Pending>,
    /// Channels with requests that wait to run, and the memory of all those.
    held: BTreeSet<u16>,
    held_bytes: usize,
    /// The channel whose requests, held by CLIENT PAUSE, are as many as may be: nothing is decoded before some run.
    held_back_by: Option<u16>,
    /// Channels that wait for their user.
    heirs: Heirs,
    /// Numbers of which the server has sent CLOSE, and waits for the client's.
    closing: BTreeSet<u16>,
    /// How many the server ends and has not sent CLOSE of.
    ending: usize,
    /// Channels that end, alone or with the connection, and whose last reply somebody else is writing.
    owed: BTreeSet<u16>,
    /// GOAWAY has been sent: no CLOSE any more.
    is_leaving: bool,
    /// The page of channels that is to give up next what it waits for.
    gives_up: Option<usize>,
    /// The pages of channels, from the first on, of which nothing is under way since the client sends no more.
    ended_pages: usize,
    /// Before it no channel watches keys for nothing.
    unwatched_pages: usize,
    /// Channels that were above the soft limit of their class when it was looked at last.
    pub(crate) over_soft: BTreeSet<u16>,
    /// Channels with frames that could be sent if there were room, in turn.
    turns: Turns,
    /// Channels whose first waiting frame may not be sent yet.
    waiting_for_safe: BTreeSet<u16>,
    /// Memory of the frames that wait to be sent, of all channels, and of those among them that end.
    queued_bytes: usize,
    ending_bytes: usize,
    pub(crate) limits: RespbLimits,
    /// The channel that was lent to the executor last, and where the output ended then.
    writing: Option<Writing>,
}

/// A channel whose request runs, and what the output was before.
#[derive(Clone, Copy, Debug)]
struct Writing {
    channel: u16,
    from: OutputPlace,
}

impl Channels {
    /// The connection of a client that has become channel 0.
    pub(crate) fn new(mut session: Session, fresh: bool, limits_of: RespbLimits) -> Self {
        session.set_protocol(Protocol::Respb);
        session.wire = Wire { protocol: Protocol::Respb, channel: 0 };
        let authenticated = session.authenticated;
        let decoder = RequestDecoder::new(if authenticated { limits_of.decoder } else { UNAUTHENTICATED });
        let connection = Arc::clone(&session.info.connection);
        let mut table = Table::default();
        table.put(0, Place::Open(Box::new(Channel::new(session))));
        Self {
            decoder,
            table,
            open: 1,
            missing_bytes: 0,
            fresh,
            authenticated,
            connection,
            pending: None,
            held: BTreeSet::new(),
            held_bytes: 0,
            held_back_by: None,
            heirs: Heirs::default(),
            closing: BTreeSet::new(),
            ending: 0,
            owed: BTreeSet::new(),
            is_leaving: false,
            gives_up: None,
            ended_pages: 0,
            unwatched_pages: 0,
            over_soft: BTreeSet::new(),
            turns: Turns::default(),
            waiting_for_safe: BTreeSet::new(),
            queued_bytes: 0,
            ending_bytes: 0,
            limits: limits_of,
            writing: None,
        }
    }

    /// Whether the client puts FRAGMENT frames together.
    fn fragments(&self) -> bool {
        self.connection.caps.load(Relaxed) & respb::CAP_FRAGMENT != 0
    }

    /// A channel that is open.
    pub(crate) fn get(&self, channel: u16) -> Option<&Channel> {
        match self.table.get(channel) {
            Some(Place::Open(open)) => Some(open),
            _ => None,
        }
    }
    /// A channel that is open.
    pub(crate) fn get_mut(&mut self, channel: u16) -> Option<&mut Channel> {
        match self.table.get_mut(channel) {
            Some(Place::Open(open)) => Some(open),
            _ => None,
        }
    }
    /// The numbers of all open channels, ascending.
    pub(crate) fn numbers(&self) -> Vec<u16> {
        self.table
            .iter()
            .filter(|(_, place)| matches!(place, Place::Open(_)))
            .map(|(number, _)| number)
            .collect()
    }
    /// The channels with requests that wait to run.
    pub(crate) fn held(&self) -> impl Iterator<Item = u16> {
        self.held.iter().copied()
    }
    /// Whether requests of this one do.
    pub(crate) fn holds(&self, channel: u16) -> bool {
        self.get(channel).is_some_and(|open| open.client.is_held())
    }
    /// Takes some clients out, a page of them, with their numbers: the connection has ended. Nothing when there are
    /// none left.
    pub(crate) fn take_some(&mut self) -> Option<impl Iterator<Item = (u16, Client)>> {
        let open = |(number, place)| match place {
            Place::Open(channel) => Some((number, channel.client)),
            Place::Ending(ending) => Some((number, ending.client?)),
        };
        Some(self.table.take_page()?.filter_map(open))
    }
    /// Whether a client of a page of channels waits or is subscribed; nothing behind the last page.
    pub(crate) fn is_page_busy(&self, page: usize) -> Option<bool> {
        let busy = |(_, place): (u16, &Place)| match place {
            Place::Open(open) => open.client.is_busy(),
            Place::Ending(_) => false,
        };
        Some(self.table.page(page)?.any(busy))
    }
    /// Channels that may be open now.
    fn channels_max(&self) -> u32 {
        if self.authenticated { self.limits.channels } else { self.limits.unauthenticated_channels }
    }

    /// Memory of its numbers: before anybody has authenticated it counts with what was received.
    pub(crate) fn table_bytes(&self) -> usize {
        self.table.memory_bytes() + self.closing.len() * CLOSING_BYTES
    }

    /// Some channel has authenticated: the lower limits end.
    pub(crate) fn set_authenticated(&mut self) {
        if !self.authenticated {
            self.authenticated = true;
            self.decoder.set_limits(self.limits.decoder);
        }
    }

    /// Decodes requests up to a control frame, a channel that is to be opened, or the end.
    pub(crate) fn decode(
        &mut self,
        index: u32,
        from: (&[u8], &mut usize),
        requests: &mut Requests,
        keyspace: &Keyspace,
    ) -> Stop {
        let (bytes, at) = from;
        if self.missing_bytes > 0 {
            self.pass_missing(bytes, at);
        }
        let mut run = None;
        let stop = self.decode_runs(index, (bytes, at), (requests, keyspace), &mut run);
        self.end_run(run);
        stop
    }

    /// Counts the requests of a run.
    fn end_run(&mut self, run: Option<ChannelRun>) {
        if let Some(run) = run
            && let Some(open) = self.get_mut(run.channel)
        {
            open.requests = open.requests.wrapping_add(run.requests);
        }
    }

    /// The run of the channel that the next frame is for, if it is open: the one there is, or one that begins.
    #[inline]
    fn run_of<'r>(&mut self, next: &[u8], run: &'r mut Option<ChannelRun>) -> Option<&'r mut ChannelRun> {
        let channel = u16::from_be_bytes(*next.get(2..)?.first_chunk()?);
        if run.as_ref().is_none_or(|run| run.channel != channel) {
            let db = self.get(channel).filter(|_| !self.fresh)?.client.session.db;
            self.end_run(run.replace(ChannelRun { channel, db, requests: 0 }));
        }
        run.as_mut()
    }

    /// Does what [`Self::decode`] does, and leaves the last run to be counted.
    #[inline]
    fn decode_runs(
        &mut self,
        index: u32,
        (bytes, at): (&[u8], &mut usize),
        (requests, keyspace): (&mut Requests, &Keyspace),
        run: &mut Option<ChannelRun>,
    ) -> Stop {
        loop {
            let rest = &bytes[*at..];
            if let Some(run) = self.run_of(rest, run) {
                let before = requests.list().len();
                let client = Origin { connection: index, channel: run.channel, db: run.db };
                *at = requests.repeat_respb(keyspace, client, (bytes, *at), &self.decoder);
                run.requests += (requests.list().len() - before) as u32;
                if requests.is_full() {
                    return Stop::Full;
                }
            }
            let rest = &bytes[*at..];
            let (len, channel, frame) = match self.decoder.decode(rest, requests.visitor()) {
                Outcome::Complete(frame) => (frame.len, frame.channel, frame.frame),
                Outcome::Incomplete { .. } => match self.decoder.passed_over(rest) {
                    Some(frame) => (frame.len, frame.channel, frame.frame),
                    None => return Stop::Incomplete,
                },
                Outcome::Invalid(error) => {
                    return Stop::InvalidFrame(error.kind, head(rest));
                }
            };
            if self.fresh {
                self.fresh = false;
                if is_zero_stream(rest) {
                    return Stop::InvalidFrame(Malformed::ZeroStream, [0; 8]);
                }
            }
            if let Frame::Control(control) = frame {
                // It may be about what has been counted.
                self.end_run(run.take());
                let stop = self.control(channel, control);
                // Only a WINDOW for a channel that is to be opened first is decoded again.
                if stop != Some(Stop::Barrier) {
                    self.pass(len, bytes, at);
                }
                match stop {
                    Some(_) => return Stop::Control,
                    None => continue,
                }
            }
            let db = match (&mut *run, self.table.get(channel)) {
                (Some(run), _) if run.channel == channel => {
                    run.requests += 1;
                    run.db
                }
                (_, Some(Place::Open(open))) => {
                    let db = open.client.session.db;
                    self.end_run(run.replace(ChannelRun { channel, db, requests: 1 }));
                    db
                }
                (_, Some(Place::Ending(_))) => {
                    requests.drop_open();
                    self.pass(len, bytes, at);
                    continue;
                }
                (_, None) if self.closing.contains(&channel) => {
                    requests.drop_open();
                    self.pass(len, bytes, at);
                    continue;
                }
                (_, None) => {
                    requests.drop_open();
                    if self.open >= self.channels_max() {
                        self.pass(len, bytes, at);
                        self.pending = Some(Pending::TooMany(channel));
                    } else {
                        self.pending = Some(Pending::Open(channel));
                    }
                    return Stop::Control;
                }
            };
            let frame_at = *at;
            self.pass(len, bytes, at);
            let client = Origin { connection: index, channel, db };
            if requests.end_respb(keyspace, client, frame, (bytes, frame_at)) {
                return Stop::Barrier;
            }
            if requests.is_full() {
                return Stop::Full;
            }
        }
    }

    /// How much of the frame that is being decoded must be there before it is looked at again.
    pub(crate) const fn need(&self) -> usize {
        self.decoder.need()
    }

    /// Goes on behind a frame, of which not all need be there: the rest is passed over when it comes.
    #[inline]
    fn pass(&mut self, len: usize, bytes: &[u8], at: &mut usize) {
        let here = len.min(bytes.len() - *at);
        *at += here;
        self.missing_bytes = len - here;
    }

    /// Passes over what is missing of a frame that has been seen to.
    #[cold]
    fn pass_missing(&mut self, bytes: &[u8], at: &mut usize) {
        self.pass(self.missing_bytes, bytes, at);
    }

    /// Notes a control frame. Nothing when it is to be ignored; `Barrier` when it must be decoded once more.
    fn control(&mut self, channel: u16, control: Control<'_>) -> Option<Stop> {
        self.pending = Some(match control {
            Control::Close { .. } => Pending::Close(channel),
            Control::Cancel { sequence } => Pending::Cancel(channel, sequence),
            Control::Window { more } => match self.table.get(channel) {
                Some(Place::Open(_)) => Pending::Window(channel, more),
                Some(Place::Ending(_)) => return None,
                None if self.closing.contains(&channel) => return None,
                None if self.open >= self.channels_max() => Pending::TooMany(channel),
                None => {
                    self.pending = Some(Pending::Open(channel));
                    return Some(Stop::Barrier);
                }
            },
            Control::Goaway { .. } | Control::Fragment { .. } | Control::Unknown { .. } => return None,
        });
        Some(Stop::Control)
    }

    /// Opens a channel with its new session.
    pub(crate) fn open(&mut self, channel: u16, session: Session) {
        self.table.put(channel, Place::Open(Box::new(Channel::new(session))));
        self.open += 1;
    }
    /// Keeps a request behind one that waits, or that CLIENT PAUSE holds. Ends the channel, and says so, where there is
    /// no room for what waits. What a pause holds is not the client's doing: there the connection is held back.
    pub(crate) fn postpone(&mut self, channel: u16, postponed: Postponed) -> bool {
        let Some(Place::Open(open)) = self.table.get_mut(channel) else { return false };
        self.held_bytes += open.client.hold(postponed);
        self.held.insert(channel);
        let full = if open.client.held_bytes() > self.limits.queue_bytes {
            &close::QUEUE
        } else if self.held_bytes > self.limits.connection_queue_bytes {
            &close::CONNECTION_QUEUE
        } else {
            return false;
        };
        if open.client.session.is_waiting() || self.is_heir(channel) {
            return self.end(channel, full);
        }
        self.held_back_by = Some(channel);
        false
    }
    /// The next request that waited on a channel and may run.
    pub(crate) fn next_held(&mut self, channel: u16) -> Option<HeldRequest> {
        let Some(Place::Open(open)) = self.table.get_mut(channel) else { return None };
        let before = open.client.held_bytes();
        let held = open.client.next_held();
        self.held_bytes -= before - open.client.held_bytes();
        if !open.client.is_held() {
            self.held.remove(&channel);
        }
        held
    }
    /// Puts a request back that could not run yet.
    pub(crate) fn hold_again(&mut self, channel: u16, held: HeldRequest) {
        let Some(Place::Open(open)) = self.table.get_mut(channel) else { return };
        self.held_bytes += open.client.hold_again(held);
        self.held.insert(channel);
    }
    /// Memory of all requests that wait to run.
    #[cfg(test)]
    pub(crate) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }
    /// Whether nothing is decoded for now.
    pub(crate) const fn is_held_back(&self) -> bool {
        self.held_back_by.is_some()
    }
    /// The channel that holds the connection back, and why it ends, if it is not a pause any more that keeps its
    /// requests: they wait for it, or for channel 0, and all others that wait do as well.
    pub(crate) fn blocks_hold(&self) -> Option<(u16, &'static Reason)> {
        let channel = self.held_back_by?;
        let waits = |channel: u16| {
            self.is_heir(channel) || self.get(channel).is_some_and(|open| open.client.session.is_waiting())
        };
        if !waits(channel) {
            return None;
        }
        if self.get(channel)?.client.held_bytes() > self.limits.queue_bytes {
            return Some((channel, &close::QUEUE));
        }
        let is_full = self.held_bytes > self.limits.connection_queue_bytes && self.held().all(waits);
        is_full.then_some((channel, &close::CONNECTION_QUEUE))
    }
    /// Requests have run that waited, or their channel is gone: whether decoding may go on that could not.
    pub(crate) fn end_hold(&mut self) -> bool {
        let Some(channel) = self.held_back_by else { return false };
        let held = self.get(channel).map_or(0, |open| open.client.held_bytes());
        let has_room =
            held <= self.limits.queue_bytes && self.held_bytes <= self.limits.connection_queue_bytes;
        self.held_back_by.take_if(|_| has_room).is_some()
    }

    /// Cancels request `sequence` of a channel: marks it if it waits in the queue. Says whether it is the one that
    /// blocks.
    pub(crate) fn cancel(&mut self, channel: u16, sequence: u32) -> bool {
        let Some(open) = self.get_mut(channel) else { return false };
        let (held, first_held) = (open.client.held_len() as u32, open.first_held());
        let place = sequence.wrapping_sub(first_held);
        if place < held {
            open.client.cancel_held(place as usize);
            return false;
        }
        open.client.session.is_waiting() && sequence == first_held.wrapping_sub(1)
    }
}

impl Channel {
    fn new(session: Session) -> Self {
        Self { client: Client::new(session), requests: 0, flow: None }
    }
    /// The number of the first request that has neither run nor begun to.
    fn first_held(&self) -> u32 {
        self.requests.wrapping_sub(self.client.held_len() as u32)
    }
}

/// Whether the first frame of a connection is what a stream of zero bytes would give: a command with an empty key on
/// channel 0.
fn is_zero_stream(frame: &[u8]) -> bool {
    frame.get(..6).is_some_and(|head| head == [0; 6])
}

/// The first bytes of a frame, for the message about an opcode that is not known.
fn head(frame: &[u8]) -> [u8; 8] {
    std::array::from_fn(|at| frame.get(at).copied().unwrap_or(0))
}
