//! Owns: channels that have been opened while channel 0 has yet to run an AUTH, HELLO or RESET that stands before them
//! on the wire: they run nothing until they can take its user (spec section 8.2). Does not own: their queues.

use std::collections::{BTreeMap, VecDeque};

use weft_engine::requests::What;
use weft_protocol::table::policy;

use super::Channels;
use crate::client::Client;

/// Entries of channels that wait no more stay in line until there are so many more of them than of others.
const STALE_MAX: usize = 64;

/// The channels that wait for their user.
#[derive(Debug, Default)]
pub(super) struct Heirs {
    /// By channel, the number of its entry in the line.
    waiting: BTreeMap<u16, u64>,
    /// In the order of the requests that they wait for. An entry whose number `waiting` does not have is of a channel
    /// that has ended.
    line: VecDeque<Heir>,
    /// How many have come.
    count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Heir {
    number: u64,
    channel: u16,
    /// The request of channel 0 that it waits for.
    after: u32,
}

impl Heirs {
    fn push(&mut self, channel: u16, after: u32) {
        self.count += 1;
        self.waiting.insert(channel, self.count);
        self.line.push_back(Heir { number: self.count, channel, after });
        if self.line.len() > 2 * self.waiting.len() + STALE_MAX {
            let Self { waiting, line, .. } = self;
            line.retain(|heir| waiting.get(&heir.channel) == Some(&heir.number));
        }
    }
    /// Takes out those at the head of the line that are due.
    fn take(&mut self, is_due: impl Fn(u32) -> bool) -> Vec<u16> {
        let mut due = Vec::new();
        while let Some(heir) = self.line.pop_front_if(|heir| is_due(heir.after)) {
            if self.waiting.get(&heir.channel) == Some(&heir.number) {
                self.waiting.remove(&heir.channel);
                due.push(heir.channel);
            }
        }
        due
    }
    /// A channel has ended.
    pub(super) fn forget(&mut self, channel: u16) {
        self.waiting.remove(&channel);
    }
}

impl Channels {
    /// A channel has been opened: it waits if channel 0 has a request in its queue that changes the user.
    pub(crate) fn wait_for_user(&mut self, channel: u16) {
        let changes = |client: &Client| {
            client.last_held(|what| match what {
                What::Command(id) => id.spec().policy & policy::CHANGES_USER != 0,
                _ => false,
            })
        };
        let Some(zero) = self.get(0) else { return };
        let Some(place) = changes(&zero.client) else { return };
        let after = zero.first_held().wrapping_add(place as u32);
        if let Some(open) = self.get_mut(channel) {
            open.client.session.hold_back();
            self.heirs.push(channel, after);
        }
    }

    /// Whether a channel waits for its user.
    pub(super) fn is_heir(&self, channel: u16) -> bool {
        self.heirs.waiting.contains_key(&channel)
    }

    /// Gives the user of channel 0 to the channels that have waited for a request that it has run; these may go on.
    pub(crate) fn pass_users_on(&mut self) -> Vec<u16> {
        let Some(first) =
            self.get(0).filter(|_| !self.heirs.waiting.is_empty()).map(|zero| zero.first_held())
        else {
            return Vec::new();
        };
        // The numbers of requests go round at 2³².
        self.release(|after| first.wrapping_sub(after).wrapping_sub(1) < u32::MAX / 2, true)
    }

    /// Channel 0 has ended: what it had not run is void, and whoever waits for it keeps the user that there was.
    pub(crate) fn disinherit(&mut self) -> Vec<u16> {
        self.release(|_| true, false)
    }

    fn release(&mut self, is_due: impl Fn(u32) -> bool, inherits: bool) -> Vec<u16> {
        let due = self.heirs.take(is_due);
        let user = self.get(0).map(|zero| zero.client.session.heritage());
        for &channel in &due {
            let Some(open) = self.get_mut(channel) else { continue };
            open.client.session.drop_held();
            if let Some(user) = user.as_ref().filter(|_| inherits) {
                open.client.session.inherit(user);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended_leaves_nothing_and_takes_nothing_from_who_comes_after() {
        let mut heirs = Heirs::default();
        heirs.push(1, 7);
        for _ in 0..10_000 {
            heirs.push(2, 7);
            heirs.forget(2);
            assert!(heirs.line.len() <= 2 * 2 + STALE_MAX, "{}", heirs.line.len());
        }
        // A later one of the same number waits for its own.
        heirs.push(2, 9);
        assert_eq!(heirs.take(|after| after <= 7), [1_u16]);
        assert!(heirs.take(|after| after <= 8).is_empty());
        assert_eq!(heirs.take(|after| after <= 9), [2_u16]);
        assert!(heirs.waiting.is_empty() && heirs.line.is_empty());
    }
}
