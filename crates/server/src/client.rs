//! Owns: one logical client of a connection: its session, its requests that wait to run, the time at which it is looked
//! at. Does not own: the connection, when those requests run (`crate::worker`).

use std::collections::VecDeque;

use weft_engine::Postponed;
use weft_engine::mailbox::Recipient;
use weft_engine::requests::What;
use weft_engine::session::{Session, client_flag};

use crate::timers::{About, Alarm, Timer, Timers};

/// A logical client: a RESP connection has one, a RESPB connection one for each channel.
pub(crate) struct Client {
    pub(crate) session: Session,
    /// When its wait, or the pause that holds it, ends.
    pub(crate) alarm: Alarm,
    /// Requests behind one that blocks, or held by CLIENT PAUSE; nothing for nearly every client.
    held: Option<Box<Queue>>,
    /// Bytes of its replies that have come to a gateway and wait there for earlier ones.
    pub(crate) replies_bytes: usize,
}

/// Requests that wait to run.
#[derive(Default)]
struct Queue {
    requests: VecDeque<HeldRequest>,
    bytes: usize,
}

/// A request that waits to run.
pub(crate) struct HeldRequest {
    pub(crate) postponed: Postponed,
    /// CANCEL has named it: it is answered and does not run.
    pub(crate) cancelled: bool,
}

impl HeldRequest {
    /// Memory that it takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.postponed.args.memory_bytes()
    }
}

impl Client {
    pub(crate) fn new(session: Session) -> Self {
        Self { session, alarm: Alarm::default(), held: None, replies_bytes: 0 }
    }

    /// Asks for the time at which it is looked at, in place of any before; 0 for none.
    pub(crate) fn set_alarm(&mut self, timers: &mut Timers, (connection, channel): (u32, u16), at_ms: u64) {
        let (about, client) = (About::Client(channel), self.session.id());
        timers.set(&mut self.alarm, Timer { at_ms, connection, about, client });
    }

    /// Keeps a request: no other one of the client runs before it. Gives the memory that it takes.
    pub(crate) fn hold(&mut self, postponed: Postponed) -> usize {
        let held = HeldRequest { postponed, cancelled: false };
        let queue = self.held.get_or_insert_default();
        let bytes = held.bytes();
        queue.bytes += bytes;
        queue.requests.push_back(held);
        bytes
    }
    /// Puts a request back that could not run yet.
    pub(crate) fn hold_again(&mut self, held: HeldRequest) -> usize {
        let queue = self.held.get_or_insert_default();
        let bytes = held.bytes();
        queue.bytes += bytes;
        queue.requests.push_front(held);
        bytes
    }
    /// Nothing that waits will run.
    pub(crate) fn forget_held(&mut self) {
        self.held = None;
    }
    /// Takes the next request that may run.
    pub(crate) fn next_held(&mut self) -> Option<HeldRequest> {
        if self.session.is_waiting() || self.session.is_away() {
            return None;
        }
        let queue = self.held.as_mut()?;
        let held = queue.requests.pop_front();
        queue.bytes -= held.as_ref().map_or(0, HeldRequest::bytes);
        if queue.requests.is_empty() {
            self.held = None;
        }
        held
    }

    /// Whether it waits for something, so that being silent does not make it idle.
    pub(crate) const fn is_busy(&self) -> bool {
        self.session.is_waiting() || self.session.subscriptions.is_some()
    }
    /// Whether it will be answered whatever its peer still sends: another server answers it, its script takes its time,
    /// or requests are about to run. What blocks may never be answered, and a pause holds what it likes. `awaits`:
    /// whether what may block at another server will be answered, since it is not known yet that it does.
    pub(crate) fn is_under_way(&self, awaits: &mut dyn FnMut(Recipient) -> bool) -> bool {
        let may_block = self.session.wait.is_some() || self.session.info.has(client_flag::BLOCKED);
        let blocks = may_block && !(self.may_block_elsewhere() && awaits(self.session.info.recipient()));
        let is_paused = self.alarm.is_set();
        !blocks && (self.session.is_waiting() || self.session.is_away() || self.is_held() && !is_paused)
    }
    /// Whether a request of it may be decoded: nothing that was decoded waits to run.
    pub(crate) fn may_go_on(&self) -> bool {
        !self.session.is_waiting() && !self.session.is_away() && !self.is_held()
    }
    /// Whether it has asked another server for what may block there.
    pub(crate) fn may_block_elsewhere(&self) -> bool {
        self.session.forwarded > 0 && self.session.info.has(client_flag::BLOCKED)
    }
    /// Whether it keeps a connection behind for keys that it watches, if its peer sends no more.
    pub(crate) fn watches_in_vain(&self) -> bool {
        self.session.watches_elsewhere() && self.may_go_on()
    }
    /// Whether requests wait.
    pub(crate) const fn is_held(&self) -> bool {
        self.held.is_some()
    }
    /// How many requests wait.
    pub(crate) fn held_len(&self) -> usize {
        self.held.as_ref().map_or(0, |queue| queue.requests.len())
    }
    /// Memory of the requests that wait.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |queue| queue.bytes)
    }
    /// The place of the last request that waits and is of a kind.
    pub(crate) fn last_held(&self, is: impl Fn(What) -> bool) -> Option<usize> {
        self.held.as_ref()?.requests.iter().rposition(|held| is(held.postponed.what))
    }
    /// Marks the request at a place among those that wait.
    pub(crate) fn cancel_held(&mut self, place: usize) {
        if let Some(held) = self.held.as_mut().and_then(|queue| queue.requests.get_mut(place)) {
            held.cancelled = true;
        }
    }
}
