//! Owns: how a channel ends, whoever ends it (spec sections 8.1, 8.4, 8.5). Does not own: its session, which the worker
//! takes down (`crate::worker`).
//!
//! **The server ends a channel** in one way, whatever the reason: a limit, QUIT, a kill. From then on nothing of it
//! runs, what waits to run is dropped, and what comes is discarded. What it has run is answered, whatever credit is
//! left; a reply that somebody else is writing is waited for. Behind all that comes CLOSE. So its client knows of each
//! request whether it has run: what has no reply has not. A connection that goes away ends all its channels so, and
//! sends no CLOSE, since GOAWAY says the same of all of them.
//!
//! **The client ends a channel** by CLOSE, which says that it wants nothing of it any more: all is dropped at once.

use weft_engine::mailbox::Recipient;
use weft_engine::reply::Output;
use weft_engine::session::Session;
use weft_protocol::respb::Control;

use super::table::PAGE;
use super::{Channels, Flow, Place, Reason, close};
use crate::client::Client;
use crate::limits::{ENDS_PAGES_PER_LOOK, REFUSED_CHANNELS_MAX};

/// A channel that the server ends.
pub(super) struct Ending {
    reason: &'static Reason,
    /// Until the worker has taken it down, which it does at once unless somebody else is writing its last reply.
    pub(super) client: Option<Client>,
    pub(super) flow: Option<Box<Flow>>,
}

impl Channels {
    /// The server ends a channel, if it is open: the worker is to take its client down. Channel 0 is the connection.
    pub(crate) fn end(&mut self, channel: u16, reason: &'static Reason) -> bool {
        if !self.is_open(channel) {
            return false;
        }
        let Some(Place::Open(open)) = self.table.take(channel) else { return false };
        let (mut client, mut flow) = (open.client, open.flow);
        self.open -= 1;
        self.forget(channel, &client);
        client.forget_held();
        if let Some(flow) = &mut flow {
            flow.release_credit();
            self.ending_bytes += flow.bytes();
        }
        self.table.put(channel, Place::Ending(Box::new(Ending { reason, client: Some(client), flow })));
        self.ending += 1;
        self.take_turn(channel);
        true
    }
    /// Takes out the client of a channel that ends, and why that is.
    pub(crate) fn take_ended(&mut self, channel: u16) -> Option<(Client, &'static Reason)> {
        let Some(Place::Ending(ending)) = self.table.get_mut(channel) else { return None };
        Some((ending.client.take()?, ending.reason))
    }
    /// Somebody else is writing the last reply of a channel that ends: its client stays until then.
    pub(crate) fn put_back(&mut self, channel: u16, client: Client) {
        if let Some(Place::Ending(ending)) = self.table.get_mut(channel) {
            ending.client = Some(client);
            self.owed.insert(channel);
        }
    }
    /// The client that requests and replies are for: of a channel that ends, only if a reply is owed to it.
    pub(crate) fn client_mut(&mut self, channel: u16) -> Option<&mut Client> {
        match self.table.get_mut(channel)? {
            Place::Open(open) => Some(&mut open.client),
            Place::Ending(ending) if self.owed.contains(&channel) => ending.client.as_mut(),
            Place::Ending(_) => None,
        }
    }
    /// Sends CLOSE where a channel that ends has nothing left to be answered.
    pub(crate) fn close_if_done(&mut self, channel: u16, output: &mut Output) {
        let Some(Place::Ending(ending)) = self.table.get(channel) else { return };
        let waits = ending.flow.as_ref().is_some_and(|flow| !flow.is_empty());
        if waits || ending.client.is_some() || self.is_leaving || channel == 0 {
            return;
        }
        let Reason { code, text } = *ending.reason;
        Control::Close { code, reason: text.as_bytes() }.encode(channel, &mut output.bytes);
        self.table.take(channel);
        self.ending -= 1;
        self.closing.insert(channel);
    }

    /// A channel is refused: its number is in state *closing*. `false` when too many are.
    pub(crate) fn refuse(&mut self, channel: u16) -> bool {
        self.closing.insert(channel);
        self.closing.len() + self.ending <= REFUSED_CHANNELS_MAX
    }

    /// The client has sent CLOSE. Gives the CLOSE that answers it, or nothing where it is an answer itself or about no
    /// channel; and the session that has ended.
    pub(crate) fn closed_by_client(&mut self, channel: u16) -> (Option<&'static Reason>, Option<Session>) {
        match self.table.take(channel) {
            None => {
                self.closing.remove(&channel);
                (None, None)
            }
            // They have met.
            Some(Place::Ending(ending)) => {
                self.ending -= 1;
                self.ending_bytes -= ending.flow.as_ref().map_or(0, |flow| flow.bytes());
                self.forget_flow(channel, ending.flow.as_deref());
                self.owed.remove(&channel);
                (Some(ending.reason), ending.client.map(|client| client.session))
            }
            Some(Place::Open(open)) => {
                self.open -= 1;
                self.forget_flow(channel, open.flow.as_deref());
                self.forget(channel, &open.client);
                (Some(&close::DONE), Some(open.client.session))
            }
        }
    }
    /// What waits to run on a channel will not.
    fn forget(&mut self, channel: u16, client: &Client) {
        self.held_bytes -= client.held_bytes();
        self.held.remove(&channel);
        self.heirs.forget(channel);
    }
    /// What waits to be sent on a channel will not be.
    fn forget_flow(&mut self, channel: u16, flow: Option<&Flow>) {
        if let Some(flow) = flow {
            self.queued_bytes -= flow.bytes();
            self.turns.leave(flow.turn);
        }
        self.waiting_for_safe.remove(&channel);
        self.writing.take_if(|writing| writing.channel == channel);
    }

    /// The connection goes away: no CLOSE any more, and what waits to be sent is, whatever credit is left.
    /// All that takes many steps, of which [`Self::give_up_page`] is one.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
        self.gives_up = Some(0);
    }
    /// Sees to the next page of channels: they may send what waits, and those are told that have a blocked request.
    /// Nothing behind the last page.
    pub(crate) fn give_up_page(&mut self) -> Option<Vec<u16>> {
        let page = self.gives_up?;
        let (mut waiting, mut flowing) = (Vec::new(), Vec::new());
        let Some(places) = self.table.page(page) else {
            self.gives_up = None;
            return None;
        };
        for (number, place) in places {
            let Place::Open(open) = place else { continue };
            if open.client.session.is_waiting() {
                waiting.push(number);
            }
            if open.flow.is_some() {
                flowing.push(number);
            }
        }
        self.gives_up = Some(page + 1);
        for channel in flowing {
            if let Some(flow) = self.get_mut(channel).and_then(|open| open.flow.as_mut()) {
                flow.release_credit();
                self.take_turn(channel);
            }
        }
        Some(waiting)
    }
    /// Whether there are pages that have not been seen to since the connection began to go away.
    pub(crate) const fn is_giving_up(&self) -> bool {
        self.gives_up.is_some()
    }
    /// Some of the channels that wait though nothing of theirs may: their waits could not be ended.
    pub(crate) fn owed_waits(&self, count: usize) -> Vec<u16> {
        let waits = |channel: &u16| self.get(*channel).is_some_and(|open| open.client.session.is_waiting());
        self.owed.iter().copied().filter(waits).take(count).collect()
    }
    /// The client sends no more: whether some channel will still be answered; nothing where that takes another look. A
    /// page that has none is passed for good, since nothing can come for it.
    pub(crate) fn are_under_way(&mut self, awaits: &mut dyn FnMut(Recipient) -> bool) -> Option<bool> {
        for _ in 0..ENDS_PAGES_PER_LOOK {
            let Some(mut places) = self.table.page(self.ended_pages) else { return Some(false) };
            let is_under_way = places.any(|(number, place)| match place {
                // Whoever waits for the user of channel 0 goes on when that does.
                Place::Open(open) => open.client.is_under_way(awaits) && !self.is_heir(number),
                Place::Ending(_) => self.owed.contains(&number),
            });
            if is_under_way {
                return Some(true);
            }
            self.ended_pages += 1;
        }
        None
    }
    /// The same client: channels of the next pages that keep a connection behind for nothing: they watch keys and have
    /// nothing left to run, or block. Nothing once all have been looked at.
    pub(crate) fn idle_keepers(&mut self) -> Option<Vec<u16>> {
        let (first, end) = (self.unwatched_pages, self.unwatched_pages + ENDS_PAGES_PER_LOOK);
        let mut pages = (first..end).map_while(|page| self.table.page(page)).peekable();
        pages.peek()?;
        let in_vain = |client: &Client| client.watches_in_vain() || client.may_block_elsewhere();
        let keeps = |place: &Place| matches!(place, Place::Open(open) if in_vain(&open.client));
        let idle = pages.flatten().filter(|(_, place)| keeps(place)).map(|(number, _)| number).collect();
        self.unwatched_pages = end;
        Some(idle)
    }
    /// This channel has to be looked at once more.
    pub(crate) fn look_again(&mut self, channel: u16) {
        self.unwatched_pages = self.unwatched_pages.min(usize::from(channel) / PAGE);
    }
    /// Somebody else is writing the last reply of a channel.
    pub(crate) fn owe(&mut self, channel: u16) {
        self.owed.insert(channel);
    }
    /// It has come, or will not.
    pub(crate) fn pay(&mut self, channel: u16) -> bool {
        self.owed.remove(&channel)
    }
    /// Whether such a reply has still to come.
    pub(crate) fn owes(&self) -> bool {
        !self.owed.is_empty()
    }
    /// Whether it has on this channel.
    pub(crate) fn owes_to(&self, channel: u16) -> bool {
        self.owed.contains(&channel)
    }
    /// Whether a channel is open.
    pub(crate) fn is_open(&self, channel: u16) -> bool {
        self.get(channel).is_some()
    }
}
