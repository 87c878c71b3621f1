//! Owns: lending a worker's connections to one client at a time: waiting for one, having it, giving it back, being
//! woken on it; what ends a request that may block, its first try over a shared one too. Does not own: who waits and
//! who has which (`crate::leases`), what goes over it (`crate::upstream`).

use weft_engine::blocking::End;
use weft_engine::mailbox::Recipient;
use weft_protocol::request::Texts;
use weft_protocol::resp::encode::request;

use crate::answer::{Answer, Front, Whose, deliver, deliver_end, unreachable};
use crate::blocks::Since;
use crate::leases::Waiting;
use crate::link::{Asleep, Due, Expect, Link};
use crate::upstream::Upstream;

/// How often the server is asked to wake who blocks over one of its connections; each time a look after the one before.
pub(crate) const WAKES_MAX: u8 = 30;
/// The same for one whose client sends no more.
const GONE_WAKES_MAX: u8 = 3;

const UNWATCH: &[u8] = b"*1\r\n$7\r\nUNWATCH\r\n";

impl Upstream {
    /// A leased connection speaks the protocol of the client that has it.
    pub(crate) fn speak(&mut self, at: u32, resp2: bool) {
        let Some(link) = self.link(at) else { return };
        if link.resp2 != resp2 {
            (link.resp2, link.owed) = (resp2, link.owed + 1);
            let hello: &[u8] =
                if resp2 { b"*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n" } else { b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n" };
            self.ask(at, &[hello], None, Due::new(None, Expect::Own, true));
        }
    }

    pub(crate) fn wait_for_lease(
        &mut self,
        (to, db, resp2, silent): (Whose, u8, bool, bool),
        (skip, bytes): (u32, &[u8]),
        (expect, since): (Expect, Since),
        front: &mut impl Front,
    ) {
        if matches!(expect, Expect::Block(_)) && !front.may_wait(to.to) {
            return;
        }
        let breaker = &self.lanes[usize::from(resp2)].breaker;
        // Whoever ends a script that runs comes when nobody else gets through.
        let gets_through = matches!(expect, Expect::Alone);
        if !gets_through && self.leases.free.is_empty() && breaker.is_open() && !breaker.is_over(self.now_ms)
        {
            return deliver(front, to, silent, Answer::NotRun(unreachable(breaker.why())));
        }
        if let Some(error) = self.lacks_room_in_all(bytes.len()) {
            return deliver(front, to, silent, Answer::Error(error));
        }
        let _share = self.share(bytes.len());
        let begun_ms = self.now_ms;
        let until_ms = since.waits_until_ms(&self.options, begun_ms);
        self.leases.waiting.push_back(Waiting {
            to,
            bytes: bytes.into(),
            _share,
            expect,
            db,
            resp2,
            silent,
            skip,
            since,
            until_ms,
            begun_ms,
        });
        self.lend(front);
    }

    /// Lends connections that are free to those who have waited longest; has more made, if there may be more.
    pub(crate) fn lend(&mut self, _: &mut impl Front) {
        while let Some(resp2) = self.leases.next_speaks() {
            let speaks = |at: &u32| self.links[*at as usize].as_ref().is_some_and(|link| link.resp2 == resp2);
            let place = self.leases.free.iter().rposition(speaks);
            let Some(at) = place.map(|place| self.leases.free.remove(place)) else {
                // What he sends waits for its answer: it may be refused.
                let Some(at) = self.leases.free.pop() else { break };
                self.speak(at, resp2);
                self.link(at).into_iter().for_each(|link| link.turns = true);
                self.leases.turning += 1;
                continue;
            };
            let Some(waiting) = self.leases.waiting.pop_front() else { break };
            let Waiting { to, bytes, expect, db, silent, skip, since, .. } = waiting;
            if let Some(link) = self.link(at) {
                (link.owner, link.watches, link.watched) = (Some(to.to), matches!(expect, Expect::Watch), 0);
                link.lends += 1;
            }
            self.leases.owners.insert(to.client(), at);
            let until_ms = since.late_ms(&self.options, self.now_ms);
            let due = Due { until_ms, ..Due::new(Some(to), expect, silent) };
            let bytes = since.sent(&bytes, skip, self.now_ms);
            self.ask(at, &[&bytes], Some(db), due.skipping(skip));
        }
        while self.leases.wants_more() {
            let others = self.leases.coming + self.leases.turning;
            let resp2 = self.leases.waiting.iter().nth(others).is_some_and(|waiting| waiting.resp2);
            self.leases.coming += 1;
            self.leases.count += 1;
            self.dial(resp2, true);
        }
    }

    /// A leased connection is nobody's any more. What is still due on it is nobody's either.
    pub(crate) fn free(&mut self, at: u32, front: &mut impl Front) {
        let Some(link) = self.link(at) else { return };
        if let Some(owner) = link.owner.take() {
            self.leases.disown(owner.client, at);
            self.settle(at, front);
        }
    }
    /// A leased connection that nobody has is free when all is answered that must be before somebody else has it.
    fn settle(&mut self, at: u32, front: &mut impl Front) {
        if self.link(at).is_some_and(|link| link.is_lease && link.owner.is_none() && link.owed == 0) {
            self.leases.free.push(at);
            self.lend(front);
        }
    }
    /// One such answer has come.
    pub(crate) fn cleared(&mut self, at: u32, front: &mut impl Front) {
        let Some(link) = self.link(at).filter(|link| link.owed > 0) else { return };
        link.owed -= 1;
        let turns = std::mem::take(&mut link.turns);
        self.leases.turning -= usize::from(turns);
        self.settle(at, front);
    }
    /// What was to wake whoever blocked over a leased connection has been answered, or will not be: it can wake nobody
    /// else.
    pub(crate) fn woken(&mut self, Asleep { at, attempt, .. }: Asleep, front: &mut impl Front) {
        if let Some(link) = self.link(at).filter(|link| link.attempt == attempt) {
            link.hold_no_more();
            self.touch(at);
            self.cleared(at, front);
        }
    }
    /// The server has nobody who blocks over that connection: the request that does may have been behind, since the two
    /// go over different ones. If its reply is not there by then it is woken again at the next look.
    pub(crate) fn not_woken(&mut self, asleep: Asleep, front: &mut impl Front) {
        if self.end_to_tell(asleep).is_some() {
            return self.still_asleep.push(asleep);
        }
        self.woken(asleep, front);
    }
    pub(crate) fn wake_again(&mut self, front: &mut impl Front) {
        for asleep in std::mem::take(&mut self.still_asleep) {
            match self.end_to_tell(asleep) {
                Some(end) => self.wake(asleep, end, front),
                None => self.woken(asleep, front),
            }
        }
    }
    /// How a request that still blocks is to end.
    fn end_to_tell(&mut self, Asleep { at, attempt, begin }: Asleep) -> Option<End> {
        let due = self.link(at).filter(|link| link.attempt == attempt)?.due_at(begin)?;
        if let Expect::Block(end) = due.expect { end } else { None }
    }
    /// Has the server wake who blocks by a request.
    fn wake(&mut self, asleep: Asleep, end: End, front: &mut impl Front) {
        let Asleep { at, begin, .. } = asleep;
        let Some(link) = self.link(at) else { return };
        link.wakes += 1;
        let wakes_max = if end == End::Gone { GONE_WAKES_MAX } else { WAKES_MAX };
        let (id, resp2, is_too_much) = (link.id.to_string(), link.resp2, link.wakes > wakes_max);
        let reason = if end == End::Timeout { "TIMEOUT" } else { "ERROR" };
        let mut bytes = Vec::new();
        request(None, &Texts(&["CLIENT", "UNBLOCK", &id, reason]), &mut bytes);
        if !is_too_much && let Ok(shared) = self.shared(resp2, 0) {
            return self.ask(shared, &[&bytes], None, Due::new(None, Expect::Unblock(asleep), true));
        }
        // Nobody can be asked there to let it go, or is heard: as when it leaves.
        let told =
            self.link(at).and_then(|link| link.due_at(begin)).and_then(|due| Some((due.to?, due.silent)));
        self.forget(at);
        if let Some((to, silent)) = told {
            deliver_end(front, to, silent, end);
        }
        self.lend(front);
    }

    pub(crate) fn unwatch(&mut self, at: u32, front: &mut impl Front) {
        self.ask(at, &[UNWATCH], None, Due::new(None, Expect::Own, true));
        self.link(at).into_iter().for_each(|link| link.owed += 1);
        self.free(at, front);
    }

    /// A client gives up what it has, and what it waits for.
    pub(crate) fn release(&mut self, to: Recipient, front: &mut impl Front) {
        self.leases.leave(to.client);
        let own = self.leases.owners.get(&to.client).copied();
        if let Some(at) = own {
            let blocks = |due: &Due| matches!(due.expect, Expect::Block(_) | Expect::Alone);
            if self.link(at).is_some_and(|link| link.due().iter().any(blocks)) {
                // As when a client of that server leaves.
                self.forget(at);
                return self.lend(front);
            }
            return self.unwatch(at, front);
        }
        // What its first try does not find is not waited for, and one that has not gone does not run.
        if let Some(due) = self.tried(to) {
            due.to = None;
            self.void(to);
        }
        self.tries.remove(&to.client);
    }
    /// A client's first try that has not gone to the server is not to run there.
    fn void(&mut self, to: Recipient) {
        if let Some(&(at, begin)) = self.tries.get(&to.client)
            && let Some(link) = self.link(at)
        {
            link.void(begin);
        }
    }

    /// Ends a client's wait there, if it waits: CLIENT UNBLOCK, CANCEL.
    pub fn unblock(&mut self, to: Recipient, end: End, front: &mut impl Front) {
        if let Some(waiting) = self.leases.leave(to.client) {
            return deliver_end(front, waiting.to, waiting.silent, end);
        }
        if let Some(&at) = self.leases.owners.get(&to.client) {
            let Some(link) = self.link(at) else { return };
            let attempt = link.attempt;
            let Some(due) = link.due().iter_mut().find(|due| matches!(due.expect, Expect::Block(_))) else {
                return;
            };
            let asleep = Asleep { at, attempt, begin: due.begin };
            let is_first = matches!(due.expect, Expect::Block(None));
            due.expect = Expect::Block(Some(end));
            let told = due.to.map(|to| (to, due.silent));
            if link.take_back(asleep.begin) {
                // It waits until whoever wakes the one before has been heard.
                return told.into_iter().for_each(|(to, silent)| deliver_end(front, to, silent, end));
            }
            if is_first {
                // Until the server has answered nobody else may have the connection.
                (link.owed, link.wakes) = (link.owed + 1, 0);
                // Nor his next request, which could be ended in its place.
                link.hold();
                self.wake(asleep, end, front);
            }
            return;
        }
        // It has not come back from its first try.
        if let Some(Due { expect: Expect::Try(_, unblocked), .. }) = self.tried(to) {
            *unblocked = Some(end);
            self.void(to);
        }
    }

    /// A client sends no more, and has asked for what may block: whether it will be answered. It is on its first try,
    /// or goes without one over the connection over which its client watches keys. For a connection that is being made
    /// it does not wait: it may be gone for good, and what is there then somebody else's.
    #[must_use]
    pub fn awaits(&self, to: Recipient) -> bool {
        let link = |at: &u32| self.links.get(*at as usize)?.as_deref();
        let tried = self.tries.get(&to.client).and_then(|(at, _)| link(at));
        let own = self.leases.owners.get(&to.client).and_then(link);
        tried.is_some_and(Link::is_up) || own.is_some_and(|link| link.watches && link.blocks())
    }
    /// What such a client has asked for ends there unless it is served, and its client is let go. What is tried has its
    /// answer.
    pub fn hurry(&mut self, to: Recipient, front: &mut impl Front) {
        if self.tries.contains_key(&to.client) {
            return;
        }
        let own = self.leases.owners.get(&to.client);
        let is_asked =
            own.is_some_and(|at| self.links[*at as usize].as_ref().is_some_and(|link| link.blocks()));
        if is_asked || self.leases.waiting.blocks(to.client) {
            self.unblock(to, End::Gone, front);
        }
    }
    /// What the clients of a connection that ends have asked for and has not gone to the server is not to run there.
    pub(crate) fn void_of(&mut self, connection: u32) {
        let is_its = |due: &&Due| {
            due.tried().is_some() && due.to.is_some_and(|to| to.to.address.connection == connection)
        };
        for link in self.links.iter_mut().flatten().filter(|link| !link.is_up()) {
            let begins: Vec<u64> = link.due().iter().filter(is_its).map(|due| due.begin).collect();
            begins.into_iter().for_each(|begin| link.void(begin));
        }
    }
}
