//! Owns: what a node's answer means for the request of a cluster's client that it answers: it is over, or goes again,
//! elsewhere or put otherwise. Does not own: when it goes again, in which order replies are handed out
//! (`crate::orders`).

use weft_engine::forward::SLOT_BITS;
use weft_engine::mailbox::Recipient;
use weft_engine::tracking::Names;

use crate::answer::{Answer, Arrived, COPY_NOW, Front, Redirect, Whose, deliver};
use crate::figures::bump;
use crate::logic;
use crate::merge;
use crate::orders::{Order, Orders, delivered};
use crate::scripts::{Scripts, runs_logic};
use crate::upstream::MULTI;
use crate::what::What;

/// What a script is answered that no node takes.
const NOT_COMPILED: &[u8] = b"-ERR Error compiling script";

/// The front, as a node sees it.
pub(crate) struct Seen<'s, F> {
    pub(crate) orders: &'s mut Orders,
    pub(crate) node: usize,
    pub(crate) front: &'s mut F,
}

impl<F: Front> Front for Seen<'_, F> {
    fn answer(&mut self, whose: Whose, answer: Answer<'_>) {
        self.orders.heard(self.node, whose, answer, self.front);
    }
    fn watch(&mut self, socket: std::os::fd::BorrowedFd<'_>, place: u32) -> bool {
        self.front.watch(socket, place)
    }
    fn holds(&mut self, to: Recipient, bytes: usize) {
        self.front.holds(to, bytes);
    }
    fn track(&mut self, to: Recipient, names: &Names) {
        self.front.track(to, names);
    }
    /// Once it has been passed on, which is not now.
    fn track_late(&mut self, _: Recipient, _: &Names) {}
    fn changed(&mut self, names: Option<&[Box<[u8]>]>) {
        self.front.changed(names);
    }
    fn may_wait(&mut self, to: Recipient) -> bool {
        self.front.may_wait(to)
    }
    fn warn(&mut self, text: &str) {
        self.front.warn(text);
    }
}

impl Orders {
    /// A node has answered a client.
    pub(crate) fn heard(&mut self, node: usize, whose: Whose, answer: Answer<'_>, front: &mut impl Front) {
        let Whose { to, stamp } = whose;
        // What is nobody's order goes through: a subscription, or something of a client that has given up the rest.
        let known = self.clients.get_mut(&to.client).filter(|_| stamp != 0);
        let Some(client) = known else { return front.answer(whose, answer) };
        // One that it does not wait for is not taken for another one's.
        let Some(at) = client.stamped(stamp) else { return };
        let mut room = Vec::new();
        let (answer, is_nodes) = said_by(&client.orders[at], answer, &mut room);
        if let Some(redirect) = redirect(&client.orders[at], &answer, is_nodes) {
            self.count(node, &redirect, &answer);
            return self.redirected((to, at), node, redirect, answer, front);
        }
        let Some(order) = client.orders.get_mut(at) else { return };
        if is_nodes && goes_otherwise(order, &answer, &self.scripts) {
            return self.again(to.client, at, Redirect::Otherwise, Arrived::of(answer), front);
        }
        learn(order, &answer, is_nodes, &self.scripts);
        if order.what == What::Watch {
            client.leased = Some((node, order.keys.slot));
        }
        if order.what == What::Scan {
            let slot = order.keys.slot.unwrap_or_default();
            let arrived = self.scanned(slot, answer);
            return self.done(to.client, at, arrived, front);
        }
        let (silent, is_only) = (order.silent, client.parts.is_none() && client.leased.is_none());
        if is_only && client.orders.len() == 1 {
            let tracks = client.orders[at].tracks.take();
            self.clients.remove(&to.client);
            deliver(front, to, silent, answer);
            return delivered(front, to, tracks.as_ref());
        }
        self.done(to.client, at, Arrived::of(answer), front);
    }

    fn count(&self, node: usize, redirect: &Redirect, answer: &Answer<'_>) {
        if let (Some(figures), Answer::Reply { .. }) = (self.figures.get(node), answer) {
            let figure = match redirect {
                Redirect::Moved(_) => &figures.moved,
                Redirect::Ask(_) => &figures.asked,
                Redirect::Later | Redirect::Otherwise => &figures.later,
            };
            bump(figure, 1);
        }
    }

    /// A node has not run a request.
    fn redirected(
        &mut self,
        (to, at): (Recipient, usize),
        node: usize,
        redirect: Redirect,
        answer: Answer<'_>,
        front: &mut impl Front,
    ) {
        self.wants_map = true;
        let Some(client) = self.clients.get_mut(&to.client) else { return };
        let (what, leased) = (client.orders[at].what, client.orders[at].leased);
        match what {
            // What was watched is not there any more.
            What::Exec(_) if leased => self.done(to.client, at, Arrived::Null, front),
            What::Watch if leased => {
                self.releases.push((node, to));
                client.leased = None;
                self.done(to.client, at, Arrived::Reply(b"+OK\r\n".to_vec(), true), front);
            }
            _ => {
                if what == What::Watch {
                    self.releases.push((node, to));
                }
                self.again(to.client, at, redirect, Arrived::of(answer), front);
            }
        }
    }

    /// SCAN's reply with the cursor of all nodes.
    fn scanned(&self, slot: u16, answer: Answer<'_>) -> Arrived {
        let Answer::Reply { bytes, resp2 } = answer else { return Arrived::of(answer) };
        let next = self.lowest.iter().copied().find(|lowest| *lowest > slot);
        let change = |cursor: u64| match cursor {
            0 => Some(next.map_or(0, u64::from)),
            own if own >> (u64::BITS - SLOT_BITS) == 0 => Some(own << SLOT_BITS | u64::from(slot)),
            _ => None,
        };
        match merge::with_cursor(bytes, change) {
            Some(reply) => Arrived::Reply(reply, resp2),
            None => Arrived::of(answer),
        }
    }
}

/// What an answer says of a request, and whether that is the node's own word. `room`: for its bytes, where they are
/// others.
fn said_by<'a>(order: &Order, answer: Answer<'a>, room: &'a mut Vec<u8>) -> (Answer<'a>, bool) {
    match order.what {
        What::Logic(queued) => logic::said(answer, queued, order.resp2, room),
        // Over its client's own connection, or where it cannot be in a transaction.
        What::Plain => (answer, !runs_logic(&order.bytes)),
        _ => (answer, true),
    }
}

/// Where a request is to go instead, if it has not run.
fn redirect(order: &Order, answer: &Answer<'_>, is_nodes: bool) -> Option<Redirect> {
    match answer {
        // Its slot's new primary is to be found.
        Answer::Reply { bytes, .. }
            if matches!(order.what, What::Blocks(_)) && bytes.starts_with(COPY_NOW) =>
        {
            Some(Redirect::Later)
        }
        Answer::Reply { bytes, .. } if is_nodes && bytes.first() == Some(&b'-') => Redirect::of(bytes),
        Answer::NotRun(_) => Some(Redirect::Later),
        _ => None,
    }
}

/// Whether a script goes again, put otherwise: by itself where the node does not queue it, behind its text where the
/// node does not have it.
fn goes_otherwise(order: &mut Order, answer: &Answer<'_>, scripts: &Scripts) -> bool {
    let (What::Logic(queued), Answer::Reply { bytes, .. }) = (order.what, answer) else { return false };
    if logic::is_not_queued(bytes) {
        (order.bytes, order.what) = (logic::unwrapped(&order.bytes, queued), What::Plain);
        return true;
    }
    if !logic::is_no_script(bytes) || !order.is_alone() {
        return false;
    }
    order.asks_before(scripts.loads(&order.bytes).into());
    !order.is_alone()
}

/// Keeps the scripts that a request has brought, if the node has taken them.
fn learn(order: &Order, answer: &Answer<'_>, is_nodes: bool, scripts: &Scripts) {
    let Answer::Reply { bytes, .. } = answer else { return };
    let is_compiled = !bytes.starts_with(NOT_COMPILED);
    match order.what {
        What::Plain if is_compiled => scripts.learn_one(&order.bytes),
        What::Logic(1) if is_compiled && !is_nodes => scripts.learn_one(&order.bytes[MULTI.len()..]),
        What::Exec(_) if bytes.first() == Some(&b'*') => scripts.learn(&order.bytes),
        _ => {}
    }
}
