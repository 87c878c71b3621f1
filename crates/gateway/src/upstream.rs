//! Owns: a worker's connections to the server behind, and the way of each request over them: shared or leased, lost,
//! broken. Does not own: bytes of a connection (`crate::link`), what a reply means (`crate::answer`), making one
//! (`crate::dial`), lending one (`crate::lending`), what is late (`crate::late`), subscriptions (`crate::hub`), clients
//! (the front).
//!
//! **Sent again**, once, when a shared connection breaks: all that a client has under way there, if nothing of it was
//! sent but reads. Other clients are told, and whether their request was sent.

use std::collections::{HashMap, HashSet};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weft_engine::behind::State;
use weft_engine::forward::{Forward, Forwards, Kind};
use weft_engine::mailbox::Recipient;

use crate::answer::{Answer, BUSY, Front, Next, deliver, lost, replied, unreachable};
use crate::dial::{self, Arrival, Checks, Inbox, UNCHECKED};
use crate::figures::{Figures, bump};
use crate::hub::Hub;
use crate::kept_bytes::{KeptBytes, Share};
use crate::lanes::Lane;
use crate::leases::Leases;
use crate::link::{Asleep, Came, Due, EMPTY_BYTES_MAX, Expect, Link, Tried};
use crate::options::Options;
use crate::reply::{Changed, changed};

/// One on which nothing comes of what is due for so long is slow.
const SLOW_MS: u64 = 1_000;
/// How often whoever runs the gateway is told of the same.
const WARN_MS: u64 = 60_000;
/// How often late replies and waits are looked for.
const LOOK_MS: u64 = 100;
/// Receiving calls for one connection in a tick.
const RECEIVES_MAX: usize = 8;
/// Bit of a place that tells these connections from those of clients.
const PLACE: u32 = 1 << 30;
/// Bits of a place that say which connection of a server it is; those above say which server.
const LINK_BITS: u32 = 20;
const LINK_MASK: u32 = (1 << LINK_BITS) - 1;
/// Servers that places have room for.
pub(crate) const SERVERS_MAX: usize = 1 << (30 - LINK_BITS - 1);

pub(crate) const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
pub(crate) const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";
pub(crate) const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const ROLE: &[u8] = b"*1\r\n$4\r\nROLE\r\n";
pub(crate) const TRACKING: &[u8] = b"*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nOPTIN\r\n";

/// A worker's connections.
#[derive(Debug)]
pub struct Upstream {
    pub(crate) options: Arc<Options>,
    pub(crate) hub: Arc<Hub>,
    checks: Arc<Checks>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) links: Vec<Option<Box<Link>>>,
    /// The shared ones: of all databases over RESP3 and over RESP2, then those of one.
    pub(crate) lanes: Vec<Lane>,
    pub(crate) leases: Leases,
    /// Where first tries of clients' requests that block are due: on which connection, and where their bytes begin.
    pub(crate) tries: HashMap<u64, (u32, u64)>,
    /// Who subscribes and wants no reply.
    pub(crate) silent: HashSet<u64>,
    /// Places of those that have something to be sent.
    dirty: Vec<u32>,
    /// Those that had more than one tick receives.
    unread: Vec<u32>,
    /// Requests that are to be woken once more.
    pub(crate) still_asleep: Vec<Asleep>,
    attempts: u64,
    pub(crate) now_ms: u64,
    looked_ms: u64,
    /// What its places begin with.
    base: u32,
    /// Somebody else sends again what may be: it knows where.
    pub(crate) is_routed: bool,
    /// What the worker keeps, if that is counted here.
    pub(crate) kept: Option<KeptBytes>,
}

/// The server of a place.
pub(crate) const fn server_of(place: u32) -> usize {
    ((place & !PLACE) >> LINK_BITS) as usize
}

impl Upstream {
    pub(crate) fn new(
        options: Arc<Options>,
        leases: usize,
        (hub, checks, figures): (Arc<Hub>, Arc<Checks>, Arc<Figures>),
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self {
            options,
            hub,
            checks,
            inbox: Arc::new(Inbox::new(wake)),
            figures,
            links: Vec::new(),
            lanes: Lane::first(),
            leases: Leases::new(leases),
            tries: HashMap::new(),
            silent: HashSet::new(),
            dirty: Vec::new(),
            unread: Vec::new(),
            still_asleep: Vec::new(),
            attempts: 0,
            now_ms: 0,
            looked_ms: 0,
            base: PLACE,
            is_routed: false,
            kept: None,
        }
    }

    /// As all that a worker has: what it keeps is counted.
    pub(crate) fn counting(self, kept: KeptBytes) -> Self {
        Self { kept: Some(kept), ..self }
    }

    /// As one of several servers, of this number.
    pub(crate) fn routed(self, number: usize) -> Self {
        Self { base: PLACE | (number as u32) << LINK_BITS, is_routed: true, ..self }
    }

    /// Whether a place of an event is one of its connections'.
    #[must_use]
    pub const fn is_place(place: u32) -> bool {
        place & PLACE != 0 && place != u32::MAX
    }
    /// Its sockets with their places.
    pub fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, u64)> {
        self.links
            .iter()
            .zip(0..)
            .filter_map(|(link, at)| Some((link.as_ref()?.socket()?, u64::from(self.base | at))))
    }
    /// Whether there is something to do although no socket has told.
    #[must_use]
    pub fn is_due(&self, now_ms: u64) -> bool {
        !self.unread.is_empty() || self.waits() && now_ms >= self.looked_ms + LOOK_MS
    }
    /// How long the worker may sleep for all it knows.
    #[must_use]
    pub fn timeout_ms(&self, now_ms: u64) -> u64 {
        if !self.unread.is_empty() {
            0
        } else if self.waits() {
            (self.looked_ms + LOOK_MS).saturating_sub(now_ms)
        } else {
            u64::MAX
        }
    }
    /// Whether a time may come at which something is late.
    pub(crate) fn waits(&self) -> bool {
        self.links.iter().any(Option::is_some)
            || !self.is_routed && self.lanes.iter().any(|lane| lane.breaker.is_open())
    }

    /// Connections over which nothing is under way are closed: the server is nobody's any more.
    pub(crate) fn leave(&mut self, front: &mut impl Front) {
        for at in 0..self.links.len() as u32 {
            let is_still = self.link(at).is_some_and(|link| {
                link.is_up() && link.owner.is_none() && link.due().is_empty() && !link.has_unsent()
            });
            if is_still {
                self.end(at, "it is no node of the cluster any more", front);
            }
        }
    }

    /// Whether a shared connection has owed something for so long that somebody else may have taken its place.
    pub(crate) fn is_slow(&mut self) -> bool {
        let now_ms = self.now_ms;
        let mut shared = self.links.iter_mut().flatten().filter(|link| !link.is_lease);
        shared.any(|link| now_ms > link.stirred_ms + SLOW_MS && (!link.is_up() || !link.due().is_empty()))
    }

    /// Takes what other threads have done, and sees to what is late.
    pub fn begin_tick(&mut self, now_ms: u64, front: &mut impl Front) {
        self.now_ms = now_ms;
        for arrival in self.inbox.take() {
            match arrival {
                Arrival::Link(attempt, made) => self.made(attempt, made, front),
                Arrival::Subscribed(to, args, Ok(generation)) => {
                    let silent = self.silent.remove(&to.client);
                    if self.hub.is_current(generation) {
                        front.answer(to.into(), Answer::Confirmed(args));
                    } else {
                        deliver(front, to, silent, Answer::Error(lost("the server closed it", true)));
                    }
                    self.hub.settled(to, generation);
                }
                Arrival::Subscribed(to, _, Err(why)) => {
                    let silent = self.silent.remove(&to.client);
                    deliver(front, to, silent, Answer::Error(unreachable(&why)));
                }
            }
        }
        for place in std::mem::take(&mut self.unread) {
            self.read(place, front);
        }
        if now_ms >= self.looked_ms + LOOK_MS {
            self.looked_ms = now_ms;
            self.look(front);
        }
    }

    /// Something has happened to a socket. `ends`: nothing comes behind what is there.
    pub fn event(&mut self, place: u32, ends: bool, front: &mut impl Front) {
        let at = place & LINK_MASK;
        if let Some(link) = self.link(at) {
            link.ends |= ends;
            if link.has_unsent() {
                self.touch(at);
            }
        }
        self.read(at, front);
    }

    /// Takes what clients want to have run, and sends it.
    pub fn submit(&mut self, forwards: &mut Forwards, front: &mut impl Front) {
        let mut begin = 0;
        let mut all: Vec<(usize, Forward)> = Vec::with_capacity(forwards.list.len());
        for forward in forwards.list.drain(..) {
            let end = forward.end;
            all.push((std::mem::replace(&mut begin, end), forward));
        }
        // Whoever is in another database than the one before waits until that is selected. A client's plain requests
        // that come at once are all of one database.
        let is_plain = |forward: &Forward| matches!(forward.kind, Kind::Plain);
        for some in all.chunk_by_mut(|(_, one), (_, next)| is_plain(one) && is_plain(next)) {
            some.sort_by_key(|(_, forward)| forward.db);
        }
        for (begin, forward) in all {
            let bytes = &forwards.bytes[begin..forward.end];
            self.forward(forward, (self.now_ms, 0, b""), bytes, front);
        }
        forwards.bytes.clear();
        forwards.bytes.shrink_to(EMPTY_BYTES_MAX);
        self.flush(front);
    }

    /// Sends what waits.
    pub fn flush(&mut self, front: &mut impl Front) {
        while let Some(at) = self.dirty.pop() {
            let Some(link) = self.link(at) else { continue };
            if let Err(why) = link.send() {
                self.end(at, &why, front);
            }
        }
    }

    pub(crate) fn link(&mut self, at: u32) -> Option<&mut Link> {
        self.links.get_mut(at as usize)?.as_deref_mut()
    }
    pub(crate) fn touch(&mut self, at: u32) {
        if let Some(link) = self.link(at)
            && !std::mem::replace(&mut link.dirty, true)
        {
            self.dirty.push(at);
        }
    }
    pub(crate) fn ask(&mut self, at: u32, pieces: &[&[u8]], db: Option<u8>, due: Due) {
        let now_ms = self.now_ms;
        bump(&self.figures.requests, u64::from(due.to.is_some()));
        if let Some(link) = self.link(at) {
            if due.noted && !link.tracks {
                link.tracks = true;
                link.ask(&[TRACKING], None, Due::new(None, Expect::Tracking, true), now_ms);
            }
            let tried = due.tried();
            link.ask(pieces, db, due, now_ms);
            if let (Some(client), Some(last)) = (tried, link.due().back()) {
                let begin = last.begin;
                self.tries.insert(client, (at, begin));
            }
            self.touch(at);
        }
    }

    /// So many bytes that are kept, as they are counted.
    pub(crate) fn share(&self, bytes: usize) -> Share {
        self.kept.as_ref().map(|kept| kept.share(bytes)).unwrap_or_default()
    }

    /// Has a connection made, and gives its place.
    pub(crate) fn dial(&mut self, resp2: bool, is_lease: bool) -> u32 {
        self.attempts += 1;
        let mut link = Box::new(Link::new(self.attempts, resp2, is_lease, self.now_ms));
        link.share = self.share(0);
        dial::begin(&self.options, &self.checks, &self.inbox, (self.attempts, resp2));
        match self.links.iter().position(Option::is_none) {
            Some(at) => {
                self.links[at] = Some(link);
                at as u32
            }
            None => {
                self.links.push(Some(link));
                self.links.len() as u32 - 1
            }
        }
    }

    /// Shows what there is to whoever asks.
    pub(crate) fn show(&self) {
        let figures = &self.figures;
        let up = self.links.iter().flatten().filter(|link| link.is_up());
        let shared = up.clone().filter(|link| !link.is_lease).count();
        figures.connections.store(shared as u64, Relaxed);
        figures.leases.store(up.clone().count() as u64 - shared as u64, Relaxed);
        figures.waiting.store(self.leases.waiting.len() as u64, Relaxed);
        figures.in_flight.store(up.map(|link| link.asked() as u64).sum(), Relaxed);
        figures.set_state(match () {
            () if shared > 0 => State::Up,
            () if self.lanes.iter().any(|lane| lane.link.is_some()) => State::Trying,
            () if self.lanes.iter().any(|lane| lane.breaker.is_open()) => State::Down,
            () => State::Unused,
        });
    }

    /// A connection stands, or could not be made.
    fn made(
        &mut self,
        attempt: u64,
        made: Result<(weft_client::fleet::Wire, i64), String>,
        front: &mut impl Front,
    ) {
        let found = self
            .links
            .iter()
            .zip(0..)
            .find(|(link, _)| link.as_ref().is_some_and(|link| link.attempt == attempt && !link.is_up()));
        let Some((_, at)) = found else { return };
        let now_ms = self.now_ms;
        let Some(link) = self.link(at) else { return };
        let (is_lease, resp2) = (link.is_lease, link.resp2);
        if is_lease {
            self.leases.coming -= 1;
        }
        let base = self.base;
        let stands = made.and_then(|(wire, id)| {
            if id == UNCHECKED && !(is_lease && self.leases.alone_first()) {
                return Err(BUSY.into());
            }
            let Some(link) = self.link(at) else { return Ok(()) };
            link.stands(wire, id, now_ms);
            let watched = link.socket().is_some_and(|socket| front.watch(socket, base | at));
            if watched { Ok(()) } else { Err("its socket cannot be watched".to_string()) }
        });
        let lane = self.lane_at(at, resp2);
        let lane = &mut self.lanes[lane];
        match stands {
            Err(why) => {
                // One that stands says more than one that could not be had beside it.
                if !is_lease || lane.link.is_none() {
                    lane.breaker.fails(now_ms, &why);
                }
                bump(&self.figures.failed, 1);
                self.end(at, &why, front);
            }
            Ok(()) => {
                lane.breaker.works();
                if is_lease {
                    self.leases.free.push(at);
                    self.lend(front);
                }
                self.touch(at);
                self.show();
            }
        }
    }

    /// Receives from a connection, and sees to what has come.
    fn read(&mut self, at: u32, front: &mut impl Front) {
        for _ in 0..RECEIVES_MAX {
            let now_ms = self.now_ms;
            let Some(link) = self.link(at).filter(|link| link.is_up()) else { return };
            let received = link.receive(now_ms);
            if !self.take_replies(at, front) {
                return;
            }
            match received {
                Ok(true) => {}
                Ok(false) => return,
                Err(why) => return self.end(at, &why, front),
            }
        }
        if !self.unread.contains(&at) {
            self.unread.push(at);
        }
    }

    /// Sees to the replies that have come as a whole. `false` when the connection has ended by one.
    fn take_replies(&mut self, at: u32, front: &mut impl Front) -> bool {
        loop {
            let Some(link) = self.link(at) else { return false };
            match link.next() {
                Came::Nothing => {
                    // A database that was selected, or not, lets others go.
                    if link.has_unsent() {
                        self.touch(at);
                    }
                    return true;
                }
                Came::Broken(why) => {
                    self.end(at, &why, front);
                    return false;
                }
                Came::Push(place) => {
                    let told = changed(link.reply(place));
                    if let Some(Changed::Keys(names)) = &told {
                        bump(&self.figures.changed, names.len() as u64);
                    }
                    match told {
                        Some(Changed::Keys(names)) => front.changed(Some(&names)),
                        Some(Changed::All) => front.changed(None),
                        None => {}
                    }
                }
                Came::Reply(due, place) => {
                    // It is lent out while its bytes are read.
                    self.is_tried(&due);
                    let Some(mut link) = self.links[at as usize].take() else { return false };
                    let next = replied(&mut link, *due, place, &self.checks, front);
                    let refused_write = link.refused_write.take();
                    self.links[at as usize] = Some(link);
                    if let Some(is_scripts) = refused_write {
                        self.is_copy(is_scripts, front);
                    }
                    match next {
                        Next::GoOn => {}
                        Next::Free => self.free(at, front),
                        Next::Unwatch => self.unwatch(at, front),
                        Next::Woken(asleep) => self.woken(asleep, front),
                        Next::NotWoken(asleep) => self.not_woken(asleep, front),
                        Next::Cleared => self.cleared(at, front),
                        Next::Wait(to, silent, resp2, tried) => {
                            let Tried { bytes, db, since, .. } = *tried;
                            let who = (to, db, resp2, silent);
                            self.wait_for_lease(who, (0, &bytes), (Expect::Block(None), since), front);
                        }
                        Next::Doubt => self.ask_role(at),
                        Next::Refused(why) => self.refuse(at, &why, front),
                        Next::End(why) => {
                            self.end(at, &why, front);
                            return false;
                        }
                    }
                }
            }
        }
    }

    /// What is due is not any more.
    pub(crate) fn is_tried(&mut self, due: &Due) {
        if let Some(client) = due.tried() {
            self.tries.remove(&client);
        }
    }
    /// The first try of a client's request, if it has not come back.
    pub(crate) fn tried(&mut self, to: Recipient) -> Option<&mut Due> {
        let (at, begin) = *self.tries.get(&to.client)?;
        self.link(at)?.due_at(begin).filter(|due| due.tried() == Some(to.client))
    }

    /// A database was not selected: nothing that was to run in it was sent, and it is answered as SELECT was.
    fn refuse(&mut self, at: u32, why: &[u8], front: &mut impl Front) {
        let Some(link) = self.link(at) else { return };
        let (resp2, is_lease, watches) = (link.resp2, link.is_lease, link.watches);
        for (due, bytes) in link.refused() {
            self.is_tried(&due);
            if due.db.is_none() {
                let due = Due { skip: due.skips, ..due };
                self.ask(at, &[&bytes], None, due);
                continue;
            }
            if let Some(to) = due.to {
                deliver(front, to, due.silent, Answer::Reply { bytes: why, resp2 });
            }
            match due.expect {
                Expect::Exec if is_lease => self.unwatch(at, front),
                Expect::Block(_) | Expect::Alone if is_lease && !watches => self.free(at, front),
                _ => {}
            }
        }
    }

    /// It has answered READONLY, as a replica does. Where nothing tells of another server the gateway stays with it:
    /// its clients are answered as they would be there, and whoever runs it must know.
    fn is_copy(&mut self, is_scripts: bool, front: &mut impl Front) {
        bump(&self.figures.read_only, 1);
        if is_scripts || self.is_routed || self.checks.moves {
            return;
        }
        let (told_ms, now_ms) = (self.checks.warned_ms.load(Relaxed), self.now_ms);
        let is_due = told_ms == 0 || now_ms.abs_diff(told_ms) >= WARN_MS;
        // Of several workers one says so.
        if is_due && self.checks.warned_ms.compare_exchange(told_ms, now_ms, Relaxed, Relaxed).is_ok() {
            front.warn(&format!(
                "{} behind the gateway refuses writes as a replica does (READONLY); the gateway stays with it, since \
                 nothing tells it of another server: make it a primary, or restart with another --to, or sentinel://",
                self.options.shown()
            ));
        }
    }

    /// A script has said that the server takes only reads, and may say what it likes.
    fn ask_role(&mut self, at: u32) {
        if self.link(at).is_some_and(|link| !std::mem::replace(&mut link.asks_role, true)) {
            self.ask(at, &[ROLE], None, Due::new(None, Expect::Role, true));
        }
    }

    /// Takes a connection away, and nobody is told.
    pub(crate) fn forget(&mut self, at: u32) -> Option<Box<Link>> {
        let link = self.links.get_mut(at as usize)?.take()?;
        if link.is_lease {
            self.leases.count -= 1;
            self.leases.turning -= usize::from(link.turns);
            self.leases.free.retain(|free| *free != at);
            if let Some(owner) = link.owner {
                self.leases.disown(owner.client, at);
            }
        } else if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.link == Some(at)) {
            lane.link = None;
        }
        Some(link)
    }

    /// A connection has broken, or could not be made: whoever waits for something of it is told.
    pub(crate) fn end(&mut self, at: u32, why: &str, front: &mut impl Front) {
        // Another connection of the same lane takes what goes again: a client's requests stay behind each other.
        let lane = self.lanes.iter().position(|lane| lane.link == Some(at));
        let Some(mut link) = self.forget(at) else { return };
        let (was_up, is_shared) = (link.is_up(), !link.is_lease);
        bump(&self.figures.lost, u64::from(was_up));
        if link.tracks {
            // Nobody tells of what was read over it any more.
            front.changed(None);
        }
        let unanswered = link.take_unanswered();
        // The order of a client's replies is that of its requests: all of them go again, or none.
        let stays = |due: &Due, sent| due.again || sent && !due.reads;
        let staying = unanswered.iter().filter(|(due, _, sent)| stays(due, *sent));
        let stay: HashSet<u64> = staying.filter_map(|(due, ..)| Some(due.to?.client())).collect();
        for (due, bytes, sent) in unanswered {
            self.is_tried(&due);
            if let Expect::Unblock(asleep) = due.expect {
                self.not_woken(asleep, front);
            }
            let Some(to) = due.to else { continue };
            let error = match was_up && is_shared && !stay.contains(&to.client()) {
                true if self.is_routed => {
                    front.answer(to, Answer::NotRun(lost(why, sent)));
                    continue;
                }
                true => match self.over(lane.unwrap_or_default()) {
                    Ok(at) => {
                        bump(&self.figures.again, 1);
                        let due = Due { again: true, skip: due.skips, failed: None, ..due };
                        self.ask(at, &[&bytes], due.db, due);
                        continue;
                    }
                    Err(error) => error,
                },
                false if was_up && sent => {
                    deliver(front, to, due.silent, Answer::Doubt(lost(why, sent)));
                    continue;
                }
                false if was_up => lost(why, sent),
                false => {
                    deliver(front, to, due.silent, Answer::NotRun(unreachable(why)));
                    continue;
                }
            };
            deliver(front, to, due.silent, Answer::Error(error));
        }
        if link.is_lease && !was_up {
            // Others cannot be made either.
            for waiting in self.leases.waiting.take() {
                deliver(front, waiting.to, waiting.silent, Answer::NotRun(unreachable(why)));
            }
        }
        self.lend(front);
        self.show();
    }
}

#[cfg(test)]
mod odd;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod waking;
#[cfg(test)]
mod watching;
