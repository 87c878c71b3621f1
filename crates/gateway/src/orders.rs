//! Owns: requests of the clients of a cluster's gateway, from when they come until they are answered: which may go now,
//! which wait for others, which go again, in which order replies are handed out. Does not own: nodes and connections
//! (`crate::cluster`, `crate::upstream`).
//!
//! **Order.** Two requests of a client are *of one kind* when both are about one slot and either names several keys,
//! or both the same key. One of them goes to a node only when all earlier ones of its kind are answered or go over the
//! same connection. A request that a node has refused, because the slot is elsewhere, goes again when those behind it
//! of its kind are back; had one of them run meanwhile, it is answered an error.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use weft_client::Address;
use weft_engine::blocking::End;
use weft_engine::error::Error;
use weft_engine::forward::{Forward, Keys, Kind};
use weft_engine::mailbox::Recipient;
use weft_engine::tracking::Names;

use crate::answer::{Answer, Arrived, Front, Redirect, deliver, ended, holds_too_much, unreachable};
use crate::figures::{Figures, bump};
use crate::kept_bytes::{KEPT_BYTES_MAX, KeptBytes, Share};
use crate::logic;
use crate::merge;
use crate::parts::Parts;
use crate::scripts::{Scripts, runs_logic};
use crate::what::What;

/// Redirections that are followed at once; what comes behind them waits a little.
const AT_ONCE_MAX: u32 = 3;
/// The first wait before a request goes again, and the longest.
const BACK_OFF_MS: u64 = 10;
const BACK_OFF_MS_MAX: u64 = 250;
/// A request that blocks and has been at a node for so long was not refused there.
const BLOCKED_MS: u64 = 1_000;

#[derive(Clone, Debug)]
pub(crate) enum State {
    /// It is to be sent, when its time has come.
    Waiting,
    /// To this node.
    Sent(usize),
    Done(Arrived),
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) to: Recipient,
    pub(crate) what: What,
    pub(crate) bytes: Arc<[u8]>,
    /// They and what is asked before, as they are counted, and its reply, while that waits for others.
    share: Share,
    held: Share,
    pub(crate) keys: Keys,
    db: u8,
    pub(crate) resp2: bool,
    pub(crate) reads: bool,
    pub(crate) silent: bool,
    /// How often its client has sent WATCH before it, since its last EXEC.
    watches: u32,
    /// It goes over the connection that its client has at its node.
    pub(crate) leased: bool,
    pub(crate) state: State,
    /// When it was sent, as a number that grows.
    stamp: u64,
    pub(crate) begun_ms: u64,
    /// Since when nodes refuse it, or since it began; and when it was sent last.
    refused_ms: u64,
    sent_ms: u64,
    /// Not before this time.
    pub(crate) at_ms: u64,
    pub(crate) tries: u32,
    /// It is this node's, wherever slots are.
    pub(crate) pinned: Option<usize>,
    /// Where it was sent on to, and whether for this time only.
    pub(crate) next: Option<(Address, bool)>,
    /// What is to be asked before it.
    prefix: Arc<[u8]>,
    /// Why it has not run yet.
    reason: Option<Arrived>,
    /// What has ended its wait.
    ended: Option<End>,
    /// Which keys of the request it is a part of it has.
    pub(crate) places: Vec<u32>,
    /// Keys that its client wants to be told of when they change.
    pub(crate) tracks: Option<Names>,
}

impl Order {
    pub(crate) fn new(forward: &Forward, bytes: &[u8], begun_ms: u64) -> Self {
        Self {
            to: forward.to,
            what: What::of(&forward.kind),
            bytes: bytes.into(),
            share: Share::default(),
            held: Share::default(),
            keys: forward.keys,
            db: forward.db,
            resp2: forward.resp2,
            reads: forward.reads,
            silent: forward.silent,
            watches: forward.watches,
            leased: false,
            state: State::Waiting,
            stamp: 0,
            begun_ms,
            refused_ms: begun_ms,
            sent_ms: begun_ms,
            at_ms: begun_ms,
            tries: 0,
            pinned: None,
            next: None,
            prefix: [].into(),
            reason: None,
            ended: None,
            places: Vec::new(),
            tracks: forward.tracks.clone(),
        }
    }
    pub(crate) fn part(forward: &Forward, bytes: &[u8], slot: u16, places: Vec<u32>, begun_ms: u64) -> Self {
        let keys = Keys { slot: Some(slot), only: None };
        let of = |all: &Names| places.iter().filter_map(|place| all.get(*place as usize).cloned()).collect();
        let tracks = forward.tracks.as_ref().map(of);
        Self { keys, places, tracks, ..Self::new(forward, bytes, begun_ms) }
    }
    /// It is a node's, wherever slots are.
    pub(crate) fn pinned_to(self, node: usize) -> Self {
        Self { pinned: Some(node), keys: Keys::default(), ..self }
    }
    /// Its bytes are counted as long as it is there.
    pub(crate) fn kept(self, kept: &KeptBytes) -> Self {
        Self { share: kept.share(self.kept_bytes()), ..self }
    }
    fn kept_bytes(&self) -> usize {
        kept_bytes(&self.what.kind(), self.prefix.len() + self.bytes.len())
    }
    /// This is to be asked before it.
    pub(crate) fn asks_before(&mut self, prefix: Arc<[u8]>) {
        self.prefix = prefix;
        self.share.set(self.kept_bytes());
    }
    pub(crate) fn is_alone(&self) -> bool {
        self.prefix.is_empty()
    }
    /// It goes as a transaction, if it runs a script or a function.
    pub(crate) fn wrap(&mut self, scripts: &Scripts) {
        if runs_logic(&self.bytes) {
            let (bytes, queued) = logic::wrapped(&self.bytes, scripts);
            (self.bytes, self.what) = (bytes, What::Logic(queued));
        }
    }
    const fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting)
    }
    const fn is_done(&self) -> bool {
        matches!(self.state, State::Done(_))
    }
    const fn is_sent_to(&self, node: usize) -> bool {
        matches!(self.state, State::Sent(to) if to == node)
    }
    /// Whether its order with another one matters.
    fn is_of_one_kind(&self, other: &Self) -> bool {
        let is_one_key = self.keys.only.is_some() && other.keys.only.is_some();
        self.keys.slot.is_some()
            && self.keys.slot == other.keys.slot
            && (!is_one_key || self.keys.only == other.keys.only)
    }
    /// It is on its way to a node: what that is told, and what is asked before.
    pub(crate) fn send(&mut self, node: usize, stamp: u64, now_ms: u64) -> (Forward, Arc<[u8]>, Arc<[u8]>) {
        self.state = State::Sent(node);
        (self.stamp, self.sent_ms) = (stamp, now_ms);
        let asks = self.next.take().is_some_and(|(_, asks)| asks);
        let prefix = if asks { [&self.prefix, ASKING].concat().into() } else { Arc::clone(&self.prefix) };
        let forward = Forward {
            end: self.bytes.len(),
            db: self.db,
            resp2: self.resp2,
            reads: self.reads,
            watches: if self.leased { self.watches } else { 0 },
            keys: self.keys,
            tracks: self.tracks.clone(),
            ..Forward::of(self.to, self.what.kind())
        };
        (forward, prefix, Arc::clone(&self.bytes))
    }
}

/// What the gateway keeps of a request of so many bytes in all, with what is asked before it: it is noted here, and on
/// its way on a connection; one that blocks is tried first.
pub(crate) const fn kept_bytes(kind: &Kind, bytes: usize) -> usize {
    bytes.saturating_mul(if matches!(kind, Kind::Blocks(_)) { 3 } else { 2 })
}

pub(crate) const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// A client with requests that are not answered, or with a connection to himself.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) orders: VecDeque<Order>,
    /// Its requests are parts of one.
    pub(crate) parts: Option<Parts>,
    /// Where it watches keys, and their slot.
    pub(crate) leased: Option<(usize, Option<u16>)>,
    /// Bytes of its replies that wait for others.
    pub(crate) held_bytes: usize,
}

impl Client {
    /// Whether a request may go to a node now.
    pub(crate) fn may_go(&self, at: usize, node: usize) -> bool {
        if self.parts.is_some() {
            return true;
        }
        let order = &self.orders[at];
        let is_kin = |other: &&Order| other.is_of_one_kind(order);
        let mut before = self.orders.range(..at).filter(is_kin);
        let mut behind = self.orders.range(at + 1..).filter(is_kin);
        before.all(|other| other.is_done() || other.is_sent_to(node))
            && behind.all(|other| !matches!(other.state, State::Sent(_)))
    }
    /// A request is on its way to a node.
    pub(crate) fn send(
        &mut self,
        at: usize,
        node: usize,
        (stamp, now_ms): (u64, u64),
    ) -> (Forward, Arc<[u8]>, Arc<[u8]>) {
        if let Some(parts) = &mut self.parts {
            parts.send(at, stamp);
        }
        self.orders[at].send(node, stamp, now_ms)
    }
    /// The request that was given this number when it was sent.
    pub(crate) fn stamped(&mut self, stamp: u64) -> Option<usize> {
        if let Some(parts) = &mut self.parts {
            return parts.stamped(stamp);
        }
        let is_it = |order: &Order| order.stamp == stamp && matches!(order.state, State::Sent(_));
        self.orders.iter().position(is_it)
    }
}

/// All clients with something under way.
#[derive(Debug)]
pub(crate) struct Orders {
    pub(crate) clients: HashMap<u64, Client>,
    /// Clients that something may be sent of.
    pub(crate) ready: Vec<u64>,
    /// Clients that something may be sent of at this time.
    pub(crate) later: Vec<(u64, u64)>,
    /// Leases to be given up: of which node, whose.
    pub(crate) releases: Vec<(usize, Recipient)>,
    /// Where the nodes are, by their numbers.
    pub(crate) addresses: Vec<Address>,
    /// What is counted of them.
    pub(crate) figures: Vec<Arc<Figures>>,
    /// The lowest slots of those that have some, in their order.
    pub(crate) lowest: Vec<u16>,
    pub(crate) scripts: Arc<Scripts>,
    pub(crate) wants_map: bool,
    pub(crate) stamp: u64,
    pub(crate) now_ms: u64,
    timeout_ms: u64,
    /// What the worker keeps, and may keep.
    pub(crate) kept: KeptBytes,
    pub(crate) kept_bytes_max: usize,
}

impl Orders {
    pub(crate) fn new(scripts: Arc<Scripts>, timeout_ms: u64) -> Self {
        Self {
            clients: HashMap::new(),
            ready: Vec::new(),
            later: Vec::new(),
            releases: Vec::new(),
            addresses: Vec::new(),
            figures: Vec::new(),
            lowest: Vec::new(),
            scripts,
            wants_map: false,
            stamp: 0,
            now_ms: 0,
            timeout_ms,
            kept: KeptBytes::default(),
            kept_bytes_max: KEPT_BYTES_MAX,
        }
    }

    /// The nodes that clients count on by their numbers.
    pub(crate) fn named(&self) -> HashSet<usize> {
        let of = |client: &Client| {
            let sent =
                |order: &Order| if let State::Sent(node) = order.state { Some(node) } else { order.pinned };
            let orders: Vec<usize> = client.orders.iter().filter_map(sent).collect();
            client.leased.iter().map(|(node, _)| *node).chain(orders).collect::<Vec<_>>()
        };
        self.clients.values().flat_map(of).collect()
    }

    /// The slot that a request reads from, if a replica may answer it: it was not tried elsewhere, its client watches
    /// no keys, which are as its primary has them, and nobody counts on being told of changes.
    pub(crate) fn reads_slot(&self, client: u64, at: usize) -> Option<u16> {
        let order = self.clients.get(&client)?.orders.get(at)?;
        let is_plain = matches!(order.what, What::Plain | What::Logic(_));
        let is_read = order.reads && is_plain && order.tries == 0 && order.tracks.is_none();
        order.keys.slot.filter(|_| is_read && order.watches == 0)
    }

    pub(crate) fn is_ready(&mut self, client: u64) {
        if self.ready.last() != Some(&client) {
            self.ready.push(client);
        }
    }

    /// Takes the part of a client's request that is to be sent next.
    pub(crate) fn next_part(&mut self, client: u64) -> Option<usize> {
        self.clients.get_mut(&client)?.parts.as_mut()?.next(self.now_ms)
    }

    /// Something may be sent of a client at this time.
    pub(crate) fn goes_on(&mut self, client: u64, at_ms: u64) {
        if self.later.last() != Some(&(at_ms, client)) {
            self.later.push((at_ms, client));
        }
    }

    /// A request has not run: it goes again, if it is not late.
    pub(crate) fn again(
        &mut self,
        id: u64,
        at: usize,
        redirect: Redirect,
        reason: Arrived,
        front: &mut impl Front,
    ) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let Some(order) = client.orders.get_mut(at) else { return };
        if let Some(end) = order.ended {
            return self.done(id, at, Arrived::of(ended(end)), front);
        }
        let was_taken = matches!((&order.state, &reason), (State::Sent(_), Arrived::Reply(..)));
        // Where a slot has moved to is the gateway's to know: who is told so would go around it.
        let reason = match redirect {
            Redirect::Moved(_) | Redirect::Ask(_) => {
                Arrived::Error(unreachable("its slot has moved, and was not found in time"))
            }
            Redirect::Later | Redirect::Otherwise => reason,
        };
        // Who has blocked there for a while was taken by that node.
        if was_taken && matches!(order.what, What::Blocks(_)) && self.now_ms >= order.sent_ms + BLOCKED_MS {
            (order.refused_ms, order.tries) = (self.now_ms, 0);
        }
        if self.now_ms >= order.refused_ms + self.timeout_ms {
            return self.done(id, at, reason, front);
        }
        let asked = match order.state {
            State::Sent(node) => self.addresses.get(node),
            _ => None,
        };
        let full = |address: Address| match (address, asked) {
            (Address::Tcp(host, port), Some(Address::Tcp(asked, _))) if host.is_empty() => {
                Address::Tcp(asked.clone(), port)
            }
            (address, _) => address,
        };
        let is_otherwise = redirect == Redirect::Otherwise;
        order.next = match redirect {
            Redirect::Moved(address) => Some((full(address), false)),
            // What it takes from WATCH on would have to be asked there, too: until the slot has moved.
            Redirect::Ask(_) if order.what == What::Watch => None,
            Redirect::Ask(address) => Some((full(address), true)),
            Redirect::Later | Redirect::Otherwise => None,
        };
        order.tries += 1;
        if let (State::Sent(node), Some(figures)) = (&order.state, self.figures.first()) {
            bump(&self.figures.get(*node).unwrap_or(figures).again, 1);
        }
        let is_at_once = (is_otherwise || order.next.is_some()) && order.tries <= AT_ONCE_MAX;
        let back_off = (BACK_OFF_MS << order.tries.min(16)).min(BACK_OFF_MS_MAX);
        order.at_ms = if is_at_once { self.now_ms } else { self.now_ms + back_off };
        let at_ms = order.at_ms;
        (order.state, order.reason) = (State::Waiting, Some(reason));
        if let Some(parts) = &mut client.parts {
            parts.wait(at, at_ms);
        }
        if !is_at_once {
            self.goes_on(id, at_ms);
        }
        self.is_ready(id);
    }

    /// Parts of a client's request wait for their nodes; when that takes too long none of them has run.
    pub(crate) fn wait_for_nodes(&mut self, id: u64, why: &Error, front: &mut impl Front) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let Some(begun_ms) = client.orders.front().map(|order| order.begun_ms) else { return };
        let waits_ms = self.now_ms.saturating_sub(begun_ms);
        if waits_ms >= self.timeout_ms {
            client.orders.iter_mut().for_each(|order| order.state = State::Done(Arrived::Error(why.clone())));
            return self.hand_out(id, front);
        }
        self.goes_on(id, self.now_ms + (waits_ms / 2).clamp(BACK_OFF_MS, BACK_OFF_MS_MAX));
    }

    /// A request is over.
    pub(crate) fn done(&mut self, id: u64, at: usize, arrived: Arrived, front: &mut impl Front) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let order = &mut client.orders[at];
        let waits = client.parts.is_some() || at > 0;
        order.state = State::Done(match arrived {
            Arrived::Reply(bytes, resp2) if waits => {
                // There is none for the reply, or for what its client would be owed.
                if self.kept.bytes() + bytes.len() > self.kept_bytes_max {
                    Arrived::Doubt(holds_too_much(self.kept_bytes_max))
                } else {
                    order.held = self.kept.share(bytes.len());
                    client.held_bytes += bytes.len();
                    front.holds(order.to, client.held_bytes);
                    Arrived::Reply(bytes, resp2)
                }
            }
            arrived => arrived,
        });
        if let Some(parts) = &mut client.parts {
            if parts.done() {
                self.hand_out(id, front);
            }
            return;
        }
        // Whoever was refused before it, and is of its kind, must not run behind it.
        for before in 0..at {
            if client.orders[before].is_of_one_kind(&client.orders[at])
                && client.orders[before].is_waiting()
                && let Some(reason) = client.orders[before].reason.take()
            {
                client.orders[before].state = State::Done(reason);
            }
        }
        self.hand_out(id, front);
    }

    /// Answers what is done and has nothing before it that is not.
    fn hand_out(&mut self, id: u64, front: &mut impl Front) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if let Some(Parts { how, .. }) = client.parts.take() {
            let parts = std::mem::take(&mut client.orders);
            if std::mem::take(&mut client.held_bytes) > 0
                && let Some(part) = parts.front()
            {
                front.holds(part.to, 0);
            }
            merge::merged(how, &parts, (&self.scripts, &self.addresses), front);
            parts.iter().for_each(|part| delivered(front, part.to, part.tracks.as_ref()));
        }
        while client.orders.front().is_some_and(Order::is_done) {
            let Some(Order { to, silent, state: State::Done(arrived), tracks, held, .. }) =
                client.orders.pop_front()
            else {
                break;
            };
            if held.bytes() > 0 {
                client.held_bytes -= held.bytes();
                front.holds(to, client.held_bytes);
            }
            match arrived {
                Arrived::Reply(bytes, resp2) => {
                    deliver(front, to, silent, Answer::Reply { bytes: &bytes, resp2 })
                }
                Arrived::Selected(db) => front.answer(to.into(), Answer::Selected { db, silent }),
                Arrived::Error(error) => deliver(front, to, silent, Answer::Error(error)),
                Arrived::Doubt(error) => deliver(front, to, silent, Answer::Doubt(error)),
                Arrived::Null => deliver(front, to, silent, Answer::Null),
                Arrived::Nothing => front.answer(to.into(), Answer::Nothing),
            }
            delivered(front, to, tracks.as_ref());
        }
        if client.orders.is_empty() && client.leased.is_none() {
            self.clients.remove(&id);
        } else {
            self.is_ready(id);
        }
    }

    /// Ends a client's wait, if what waits is not at a node now.
    pub(crate) fn unblock(&mut self, to: Recipient, end: End, front: &mut impl Front) {
        let Some(client) = self.clients.get_mut(&to.client) else { return };
        let blocks = |order: &Order| matches!(order.what, What::Blocks(_)) && !order.is_done();
        let Some(at) = client.orders.iter().position(blocks) else { return };
        client.orders[at].ended = Some(end);
        if client.orders[at].is_waiting() {
            self.done(to.client, at, Arrived::of(ended(end)), front);
        }
    }
}

/// A client has its reply, which may have waited while keys of it changed.
pub(crate) fn delivered(front: &mut impl Front, to: Recipient, tracks: Option<&Names>) {
    if let Some(names) = tracks {
        front.track_late(to, names);
    }
}

#[cfg(test)]
mod tests;
