//! Owns: a worker's part of a cluster: which request goes to which node, new nodes, new maps. Does not own: connections
//! to a node (`crate::upstream`), what goes again and when (`crate::orders`), who has which slots (`crate::atlas`).

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use weft_client::Address;
use weft_engine::blocking::End;
use weft_engine::error::Error;
use weft_engine::forward::{Forward, Forwards, Keys, Kind};
use weft_engine::mailbox::Recipient;

use crate::answer::{Answer, Arrived, Front, Redirect, deliver, ended, keeps_too_much, unreachable};
use crate::atlas::{Atlas, Map, NOBODY};
use crate::dial::Checks;
use crate::figures::Board;
use crate::heard::Seen;
use crate::hub::Hub;
use crate::kept_bytes::Share;
use crate::link::EMPTY_BYTES_MAX;
use crate::options::Options;
use crate::orders::{Client, Order, Orders, State, kept_bytes};
use crate::parts::{PARTS_A_TURN, Parts};
use crate::replicas::Replicas;
use crate::scripts::{Scripts, publishes};
use crate::upstream::{SERVERS_MAX, Upstream, server_of};

/// How often a request that came before the map is looked at.
const EARLY_MS: u64 = 100;
/// How often nodes are looked for that are slow: another one may have their slots by now.
const SLOW_LOOK_MS: u64 = 1_000;
/// How long a node may be in no map until connections to it are closed that nobody uses.
const STRANGE_MS: u64 = 30_000;

/// What all workers share.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) options: Arc<Options>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) scripts: Arc<Scripts>,
    pub(crate) board: Arc<Board>,
    /// Who may be read from beside primaries, if anybody may.
    pub(crate) replicas: Option<Arc<Replicas>>,
}

/// A worker's part of a cluster.
pub struct Cluster {
    common: Common,
    atlas: Arc<Atlas>,
    version: u64,
    map: Option<Arc<Map>>,
    /// The nodes of the map's primaries.
    primaries: Vec<usize>,
    leases: usize,
    wake: Arc<dyn Fn() + Send + Sync>,
    /// By their numbers, as `orders.addresses`.
    nodes: Vec<Upstream>,
    /// As many as there may be.
    nodes_max: usize,
    /// Those that are replicas which are read from.
    readers: Vec<bool>,
    orders: Orders,
    /// Requests that came before there was a map.
    early: Vec<Early>,
    /// When slow nodes were looked for, and those that are none any more.
    looked_ms: u64,
    /// Of each node, when it was one of the cluster's last, or something was sent there.
    seen_ms: Vec<u64>,
}

/// A request that waits for a map, until a time.
struct Early {
    begun_ms: u64,
    until_ms: u64,
    forward: Forward,
    bytes: Box<[u8]>,
    share: Share,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("nodes", &self.orders.addresses).finish_non_exhaustive()
    }
}

impl Cluster {
    pub(crate) fn new(
        common: Common,
        atlas: Arc<Atlas>,
        leases: usize,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        atlas.wake_by(Arc::clone(&wake));
        let mut orders = Orders::new(Arc::clone(&common.scripts), common.options.patience_ms());
        orders.kept = common.board.worker();
        orders.kept_bytes_max = common.options.kept_bytes_max;
        let first = common.options.to.address.clone();
        let mut cluster = Self {
            common,
            atlas,
            version: 0,
            map: None,
            primaries: Vec::new(),
            leases,
            wake,
            nodes: Vec::new(),
            nodes_max: SERVERS_MAX,
            readers: Vec::new(),
            orders,
            early: Vec::new(),
            looked_ms: 0,
            seen_ms: Vec::new(),
        };
        // Subscriptions are brought by it, whoever it connects to.
        let _ = cluster.node(&first, false);
        cluster
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, u64)> {
        self.nodes.iter().flat_map(Upstream::sockets)
    }
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        !self.orders.ready.is_empty()
            || self.orders.later.iter().any(|(at_ms, _)| *at_ms <= now_ms)
            || self.nodes.iter().any(|node| node.is_due(now_ms))
    }
    pub(crate) fn timeout_ms(&self, now_ms: u64) -> u64 {
        let later = self.orders.later.iter().map(|(at_ms, _)| at_ms.saturating_sub(now_ms));
        let nodes = self.nodes.iter().map(|node| node.timeout_ms(now_ms));
        let early = (!self.early.is_empty()).then_some(EARLY_MS);
        later.chain(nodes).chain(early).min().unwrap_or(u64::MAX)
    }

    pub(crate) fn begin_tick(&mut self, now_ms: u64, front: &mut impl Front) {
        self.orders.now_ms = now_ms;
        if self.atlas.version() != self.version {
            self.version = self.atlas.version();
            if let Ok(map) = self.atlas.map() {
                if self.adopt(map) {
                    // Who has had them may not tell of changes any more.
                    front.changed(None);
                }
                self.take_early(front);
            }
        }
        self.give_up_early(front);
        for (node, upstream) in self.nodes.iter_mut().enumerate() {
            upstream.begin_tick(now_ms, &mut Seen { orders: &mut self.orders, node, front: &mut *front });
        }
        if now_ms >= self.looked_ms + SLOW_LOOK_MS {
            self.looked_ms = now_ms;
            self.orders.wants_map |= self.nodes.iter_mut().any(Upstream::is_slow);
            self.leave_strangers(front);
        }
        let orders = &mut self.orders;
        let ready = &mut orders.ready;
        orders.later.retain(|(at_ms, client)| {
            let is_later = *at_ms > now_ms;
            if !is_later && ready.last() != Some(client) {
                ready.push(*client);
            }
            is_later
        });
        self.go(front);
    }

    pub(crate) fn event(&mut self, place: u32, ends: bool, front: &mut impl Front) {
        let node = server_of(place);
        if let Some(upstream) = self.nodes.get_mut(node) {
            upstream.event(place, ends, &mut Seen { orders: &mut self.orders, node, front: &mut *front });
        }
        if !self.orders.ready.is_empty() || !self.orders.releases.is_empty() {
            self.go(front);
        }
    }

    pub(crate) fn submit(&mut self, forwards: &mut Forwards, front: &mut impl Front) {
        let mut begin = 0;
        for forward in forwards.list.drain(..) {
            let bytes = &forwards.bytes[begin..forward.end];
            begin = forward.end;
            self.accept((forward, self.orders.now_ms), bytes, front);
        }
        forwards.bytes.clear();
        forwards.bytes.shrink_to(EMPTY_BYTES_MAX);
        self.go(front);
    }

    pub(crate) fn unblock(&mut self, to: Recipient, end: End, front: &mut impl Front) {
        let blocks = |early: &Early| {
            early.forward.to.client == to.client && matches!(early.forward.kind, Kind::Blocks(_))
        };
        if let Some(at) = self.early.iter().position(blocks) {
            let early = self.early.remove(at);
            return deliver(front, to, early.forward.silent, ended(end));
        }
        self.orders.unblock(to, end, front);
        for (node, upstream) in self.nodes.iter_mut().enumerate() {
            upstream.unblock(to, end, &mut Seen { orders: &mut self.orders, node, front: &mut *front });
        }
        self.go(front);
    }

    pub(crate) fn awaits(&self, to: Recipient) -> bool {
        self.nodes.iter().any(|node| node.awaits(to))
    }
    pub(crate) fn hurry(&mut self, to: Recipient, front: &mut impl Front) {
        for (node, upstream) in self.nodes.iter_mut().enumerate() {
            upstream.hurry(to, &mut Seen { orders: &mut self.orders, node, front: &mut *front });
        }
    }

    /// Slots are as this map says from now on. Says whether others had some before.
    fn adopt(&mut self, map: Arc<Map>) -> bool {
        let others = |old: &Map| old.primaries != map.primaries || old.owners != map.owners;
        let is_other = self.map.as_deref().is_some_and(others);
        self.map = Some(Arc::clone(&map));
        // Those that have a number keep it: nobody else may be given it.
        let known: Vec<_> = map.primaries.iter().map(|address| self.known(address, false)).collect();
        self.primaries = known.iter().flatten().copied().collect();
        let mut all = Vec::with_capacity(known.len());
        for (address, known) in map.primaries.iter().zip(known) {
            let Ok(node) = known.map_or_else(|| self.node(address, false), Ok) else { break };
            if known.is_none() {
                self.primaries.push(node);
            }
            all.push(node);
        }
        self.primaries = all;
        self.orders.lowest.clone_from(&map.lowest);
        // Beyond what a gateway can have, requests are refused one by one.
        self.map = (self.primaries.len() == map.primaries.len()).then_some(map);
        is_other
    }

    /// The number of a node that has one; of one as a replica, which is another one.
    fn known(&self, address: &Address, reads_only: bool) -> Option<usize> {
        let mut known = self.orders.addresses.iter().zip(&self.readers);
        known.position(|known| known == (address, &reads_only))
    }

    /// The same; it is given one, if it has none.
    fn node(&mut self, address: &Address, reads_only: bool) -> Result<usize, Error> {
        if let Some(at) = self.known(address, reads_only) {
            return Ok(at);
        }
        let options = self.common.options.at(address, reads_only);
        // A number of one that nothing is left of, first of one that is no node any more: else all that have ever been
        // would be shown.
        let named = self.orders.named();
        let is_over =
            |at: &usize| !self.primaries.contains(at) && !named.contains(at) && !self.nodes[*at].waits();
        let is_gone = |at: &usize| {
            let address = &self.orders.addresses[*at];
            self.map.as_ref().is_some_and(|map| !map.nodes.contains(address)) && is_over(at)
        };
        let is_full = self.nodes.len() >= self.nodes_max;
        let over = (1..self.nodes.len()).find(is_gone);
        let over = over.or_else(|| (1..self.nodes.len()).find(is_over).filter(|_| is_full));
        if let Some(over) = over {
            self.common.board.forget(&self.orders.figures[over]);
        } else if is_full {
            return Err(unreachable("it has more nodes than a gateway can have"));
        }
        let at = over.unwrap_or(self.nodes.len());
        let addresses = &mut self.orders.addresses;
        let (wake, hub) = (Arc::clone(&self.wake), Arc::clone(&self.common.hub));
        let figures = self.common.board.add(address.to_string());
        let shared = (hub, Arc::clone(&self.common.checks), Arc::clone(&figures));
        let upstream = Upstream::new(Arc::new(options), self.leases, shared, move || wake()).routed(at);
        if at == self.nodes.len() {
            self.nodes.push(upstream);
            addresses.push(address.clone());
            self.readers.push(reads_only);
            self.orders.figures.push(figures);
            self.seen_ms.push(self.orders.now_ms);
        } else {
            self.nodes[at] = upstream;
            addresses[at] = address.clone();
            self.readers[at] = reads_only;
            self.orders.figures[at] = figures;
            self.seen_ms[at] = self.orders.now_ms;
        }
        Ok(at)
    }

    /// Whoever is in no map has nobody's slots, and is not shown: the first seed, too, which keeps its number. What is
    /// under way there is waited for; after a while connections that nobody uses are closed.
    fn leave_strangers(&mut self, front: &mut impl Front) {
        let Some(map) = self.map.clone() else { return };
        // It looks at all that is under way, and is asked for where there is a stranger.
        let mut named = None;
        let now_ms = self.orders.now_ms;
        for node in 0..self.nodes.len() {
            let (address, board) = (&self.orders.addresses[node], &self.common.board);
            let is_node = map.nodes.contains(address) || self.primaries.contains(&node);
            if is_node || named.get_or_insert_with(|| self.orders.named()).contains(&node) {
                self.seen_ms[node] = now_ms;
            } else if now_ms >= self.seen_ms[node] + STRANGE_MS {
                let mut seen = Seen { orders: &mut self.orders, node, front: &mut *front };
                self.nodes[node].leave(&mut seen);
            }
            if self.seen_ms[node] == now_ms || self.nodes[node].waits() {
                board.show(&self.orders.addresses[node].to_string(), &self.orders.figures[node]);
            } else {
                board.forget(&self.orders.figures[node]);
            }
        }
    }

    /// Tells those that wait for a map, and have waited for too long, why there is none.
    fn give_up_early(&mut self, front: &mut impl Front) {
        if self.early.is_empty() {
            return;
        }
        let why = self.atlas.map().err().unwrap_or_default();
        let now_ms = self.orders.now_ms;
        for early in std::mem::take(&mut self.early) {
            if early.until_ms > now_ms {
                self.early.push(early);
            } else {
                deliver(front, early.forward.to, early.forward.silent, Answer::Error(unreachable(&why)));
            }
        }
    }

    /// Takes those that have waited for a map.
    fn take_early(&mut self, front: &mut impl Front) {
        for Early { begun_ms, forward, bytes, share, .. } in std::mem::take(&mut self.early) {
            // It counts anew.
            drop(share);
            self.accept((forward, begun_ms), &bytes, front);
        }
    }

    /// Takes a request of a client, which waits since a time.
    fn accept(&mut self, (forward, begun_ms): (Forward, u64), bytes: &[u8], front: &mut impl Front) {
        let (id, now_ms) = (forward.to.client, self.orders.now_ms);
        if let Kind::Release = forward.kind {
            return self.release(forward.to, front);
        }
        let copies = if let Kind::Everywhere(_) = forward.kind { self.primaries.len().max(1) } else { 1 };
        let prefix: Arc<[u8]> = match forward.kind {
            Kind::Scatter(..) | Kind::Everywhere(_) | Kind::Subscribe(..) | Kind::Track(_) => [].into(),
            _ => self.common.scripts.before(&forward, bytes),
        };
        let bytes_in_all = kept_bytes(&forward.kind, prefix.len() + bytes.len()).saturating_mul(copies);
        if self.orders.kept.bytes().saturating_add(bytes_in_all) > self.orders.kept_bytes_max {
            return self.refuse(&forward, front);
        }
        if self.map.is_none() {
            let until_ms = now_ms + self.common.options.patience_ms();
            let share = self.orders.kept.share(bytes_in_all);
            return self.early.push(Early { begun_ms, until_ms, forward, bytes: bytes.into(), share });
        }
        if let Kind::Subscribe(..) = forward.kind {
            let mut seen = Seen { orders: &mut self.orders, node: 0, front };
            return self.nodes[0].forward(forward, (begun_ms, 0, b""), bytes, &mut seen);
        }
        if let Kind::Track(_) = forward.kind {
            // What one node does the others do.
            let node = self.primaries.first().copied().unwrap_or_default();
            let mut seen = Seen { orders: &mut self.orders, node, front };
            return self.nodes[node].forward(forward, (begun_ms, 0, b""), bytes, &mut seen);
        }
        let primaries = &self.primaries;
        let kept = self.orders.kept.clone();
        let client = self.orders.clients.entry(id).or_default();
        match &forward.kind {
            Kind::Scatter(how, pieces) => {
                let mut begin = 0;
                for piece in pieces {
                    let part = &bytes[begin..piece.end];
                    begin = piece.end;
                    let order = Order::part(&forward, part, piece.slot, piece.places.clone(), begun_ms);
                    client.orders.push_back(order.kept(&kept));
                }
                client.parts = Some(Parts::new(*how, forward.reads, client.orders.len(), now_ms));
            }
            Kind::Everywhere(how) => {
                for node in primaries {
                    let order = Order::new(&forward, bytes, begun_ms).kept(&kept);
                    client.orders.push_back(order.pinned_to(*node));
                }
                client.parts = Some(Parts::new(*how, forward.reads, client.orders.len(), now_ms));
            }
            Kind::Watch | Kind::Exec(_) if forward.watches > 0 => {
                return self.accept_watching((&forward, begun_ms), (prefix, bytes), front);
            }
            kind => {
                let mut order = Order::new(&forward, bytes, begun_ms).kept(&kept);
                order.asks_before(prefix);
                if matches!(kind, Kind::Plain) && forward.watches == 0 {
                    order.wrap(&self.common.scripts);
                }
                client.orders.push_back(order);
            }
        }
        self.orders.is_ready(id);
    }

    /// WATCH of a client that watches keys, or its EXEC: nothing else of it is under way.
    fn accept_watching(
        &mut self,
        (forward, begun_ms): (&Forward, u64),
        (prefix, bytes): (Arc<[u8]>, &[u8]),
        front: &mut impl Front,
    ) {
        let mut order = Order::new(forward, bytes, begun_ms).kept(&self.orders.kept);
        order.asks_before(prefix);
        let id = forward.to.client;
        let client = self.orders.clients.entry(id).or_default();
        let is_exec = matches!(forward.kind, Kind::Exec(_));
        let arrived = match (client.leased, forward.keys.slot) {
            (Some((_, Some(slot))), Some(own)) if own != slot => {
                let text = "Keys in request don't hash to the same slot: those that are watched have slot";
                let text = format!("{text} {slot}, these {own}");
                Some(Arrived::Error(Error::with_prefix("CROSSSLOT", text)))
            }
            (Some((node, _)), _) => {
                (order.pinned, order.leased) = (Some(node), true);
                None
            }
            // The node that it was watched at has given the slot away.
            (None, _) => is_exec.then_some(Arrived::Null),
        };
        if is_exec
            && let Some((node, _)) = client.leased.take()
            && order.pinned.is_none()
        {
            self.orders.releases.push((node, forward.to));
        }
        client.orders.push_back(order);
        let at = client.orders.len() - 1;
        match arrived {
            Some(arrived) => self.orders.done(id, at, arrived, front),
            None => self.orders.is_ready(id),
        }
    }

    /// A request for which there is no room: its answer is behind those of its client's others.
    fn refuse(&mut self, forward: &Forward, front: &mut impl Front) {
        let (id, error) = (forward.to.client, keeps_too_much(self.common.options.kept_bytes_max));
        // Those that wait for a map would be answered behind it.
        let is_own = |early: &mut Early| early.forward.to.client == id;
        for early in self.early.extract_if(.., is_own) {
            deliver(front, early.forward.to, early.forward.silent, Answer::Error(error.clone()));
        }
        let client = self.orders.clients.entry(id).or_default();
        if matches!(forward.kind, Kind::Exec(_))
            && let Some((node, _)) = client.leased.take()
        {
            self.orders.releases.push((node, forward.to));
        }
        let mut order = Order::new(forward, b"", self.orders.now_ms);
        order.keys = Keys::default();
        client.orders.push_back(order);
        let at = client.orders.len() - 1;
        self.orders.done(id, at, Arrived::Error(error), front);
    }

    /// A client gives up what it has, and what it waits for.
    pub(crate) fn release(&mut self, to: Recipient, front: &mut impl Front) {
        self.early.retain(|early| early.forward.to.client != to.client);
        let Some(client) = self.orders.clients.remove(&to.client) else { return };
        if client.held_bytes > 0 {
            front.holds(to, 0);
        }
        let mut nodes: Vec<usize> = client.leased.iter().map(|(node, _)| *node).collect();
        nodes.extend(client.orders.iter().filter_map(|order| match order.state {
            State::Sent(node) => Some(node),
            _ => None,
        }));
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            self.release_at(node, to, front);
        }
    }
    pub(crate) fn void_of(&mut self, connection: u32) {
        let is_its = |early: &Early| {
            early.forward.to.address.connection == connection && matches!(early.forward.kind, Kind::Blocks(_))
        };
        self.early.retain(|early| !is_its(early));
        self.nodes.iter_mut().for_each(|node| node.void_of(connection));
    }
    fn release_at(&mut self, node: usize, to: Recipient, front: &mut impl Front) {
        let forward = Forward { silent: true, ..Forward::of(to, Kind::Release) };
        let mut seen = Seen { orders: &mut self.orders, node, front };
        self.nodes[node].forward(forward, (0, 0, b""), b"", &mut seen);
    }

    /// Sends all that may go.
    fn go(&mut self, front: &mut impl Front) {
        loop {
            // Before its client has something else at the same node.
            for (node, to) in std::mem::take(&mut self.orders.releases) {
                self.release_at(node, to, front);
            }
            while let Some(client) = self.orders.ready.pop() {
                self.go_for(client, front);
            }
            for (node, upstream) in self.nodes.iter_mut().enumerate() {
                upstream.flush(&mut Seen { orders: &mut self.orders, node, front: &mut *front });
            }
            if self.orders.ready.is_empty() && self.orders.releases.is_empty() {
                break;
            }
        }
        if std::mem::take(&mut self.orders.wants_map) {
            self.atlas.want();
        }
    }

    fn go_for(&mut self, id: u64, front: &mut impl Front) {
        let is_parted = |client: &Client| client.parts.is_some();
        if self.orders.clients.get(&id).is_some_and(is_parted) {
            return self.go_for_parts(id, front);
        }
        let mut at = 0;
        loop {
            let Some(client) = self.orders.clients.get(&id) else { return };
            let Some(order) = client.orders.get(at) else { return };
            if !matches!(order.state, State::Waiting) || order.at_ms > self.orders.now_ms {
                at += 1;
                continue;
            }
            let count = client.orders.len();
            self.send(id, at, front);
            let now = self.orders.clients.get(&id).map_or(0, |client| client.orders.len());
            at = if now == count { at + 1 } else { 0 };
        }
    }

    /// Whether parts of a client's request may go. Those of one that writes begin when a connection to each of their
    /// nodes stands: were one not to be had, a part of it would have run.
    fn may_begin(&mut self, id: u64, front: &mut impl Front) -> bool {
        let Some(client) = self.orders.clients.get_mut(&id) else { return false };
        let (Some(parts), Some(first)) = (&client.parts, client.orders.front()) else { return false };
        if parts.has_begun {
            return true;
        }
        let (how, reads, resp2, now_ms) = (parts.how, first.reads, first.resp2, self.orders.now_ms);
        if first.pinned.is_some() && !self.primaries.is_empty() {
            // Others may be primaries by now.
            let at = |node: &usize| first.clone().pinned_to(*node);
            client.orders = self.primaries.iter().map(at).collect();
            client.parts = Some(Parts::new(how, reads, client.orders.len(), now_ms));
        }
        let Some(client) = self.orders.clients.get(&id) else { return false };
        let (mut nodes, mut lacks) = (BTreeSet::new(), None);
        for order in &client.orders {
            match order.pinned.map_or_else(|| self.owner(id, order.keys.slot), Ok) {
                Ok(node) => {
                    nodes.insert(node);
                }
                Err(error) => lacks = Some(error),
            }
        }
        for node in nodes {
            match self.nodes[node].stands(resp2) {
                Ok(true) => {}
                Ok(false) => lacks = lacks.or_else(|| Some(unreachable("no connection stands yet"))),
                Err(error) => lacks = Some(error),
            }
        }
        if let Some(why) = lacks {
            self.orders.wants_map = true;
            self.orders.wait_for_nodes(id, &why, front);
            return false;
        }
        let parts = self.orders.clients.get_mut(&id).and_then(|client| client.parts.as_mut());
        parts.into_iter().for_each(|parts| parts.has_begun = true);
        true
    }

    fn go_for_parts(&mut self, id: u64, front: &mut impl Front) {
        if !self.may_begin(id, front) {
            return;
        }
        for _ in 0..PARTS_A_TURN {
            let Some(at) = self.orders.next_part(id) else { return };
            self.send(id, at, front);
        }
        self.orders.goes_on(id, self.orders.now_ms);
    }

    /// Sends one that waits, if it may go.
    fn send(&mut self, id: u64, at: usize, front: &mut impl Front) {
        let Some(client) = self.orders.clients.get(&id) else { return };
        let Some(order) = client.orders.get(at) else { return };
        let (pinned, slot) = (order.pinned, order.keys.slot);
        let next = order.next.as_ref().map(|(address, _)| address.clone());
        let node = match (pinned, next) {
            (Some(node), _) => Ok(node),
            (None, Some(address)) => self.node(&address, false),
            (None, None) if slot.is_none() && publishes(&order.bytes) => self.publisher(order.tries),
            // A node that is gone has no keys that it would have to be waited for.
            (None, None) => {
                let any = id.wrapping_add(order.tries.into());
                self.reader(id, at).map_or_else(|| self.owner(any, slot), Ok)
            }
        };
        let node = match node {
            Ok(node) => node,
            Err(error) => {
                self.orders.wants_map = true;
                return self.orders.again(id, at, Redirect::Later, Arrived::Error(error), front);
            }
        };
        let Some(client) = self.orders.clients.get_mut(&id).filter(|client| client.may_go(at, node)) else {
            return;
        };
        self.orders.stamp += 1;
        client.orders[at].leased |= client.leased.is_some_and(|(leased, _)| leased == node);
        let begun_ms = client.orders[at].begun_ms;
        let stamp = self.orders.stamp;
        let (forward, prefix, bytes) = client.send(at, node, (stamp, self.orders.now_ms));
        self.seen_ms[node] = self.orders.now_ms;
        let mut seen = Seen { orders: &mut self.orders, node, front: &mut *front };
        self.nodes[node].forward(forward, (begun_ms, stamp, &prefix), &bytes, &mut seen);
    }

    /// A replica that a request may be read from.
    fn reader(&mut self, id: u64, at: usize) -> Option<usize> {
        let replicas = self.common.replicas.as_ref()?;
        let slot = self.orders.reads_slot(id, at)?;
        let map = self.map.as_ref()?;
        let of = map.replicas.get(usize::from(map.owners[usize::from(slot)]))?;
        let address = replicas.choose(of, id as usize)?.clone();
        let resp2 = self.orders.clients.get(&id)?.orders.get(at)?.resp2;
        let node = self.node(&address, true).ok()?;
        // One that stands still is left alone: the primary answers at once.
        self.nodes[node].stands(resp2).ok().map(|_| node)
    }

    /// Who is told of messages: the node that brings them here, which counts who listens here; or where it would be
    /// looked for.
    fn publisher(&mut self, tries: u32) -> Result<usize, Error> {
        match self.common.hub.brought_by() {
            Some(address) => self.node(&address, false),
            None => self.owner(tries.into(), None),
        }
    }

    /// Who has a slot; for what has none, a node by a number.
    fn owner(&self, any: u64, slot: Option<u16>) -> Result<usize, Error> {
        let Some(slot) = slot else {
            let count = self.primaries.len().max(1) as u64;
            let any = self.primaries.get((any % count) as usize);
            return any.copied().ok_or_else(|| unreachable("no node is known"));
        };
        let owner = self.map.as_ref().map_or(NOBODY, |map| map.owners[usize::from(slot)]);
        let node = self.primaries.get(usize::from(owner)).copied();
        node.ok_or_else(|| Error::with_prefix("CLUSTERDOWN", format!("no node has slot {slot}")))
    }
}

#[cfg(test)]
mod tests;
