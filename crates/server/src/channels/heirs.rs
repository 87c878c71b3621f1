//! Owns: channels that have been opened while channel 0 has yet to run an AUTH, HELLO or RESET that stands before them
//! on the wire: they run nothing until they can take its user (spec section 8.2). Does not own: their queues.

use weft_engine::requests::What;

use super::Channels;
use crate::client::Client;

/// Commands behind which a client may have another user. EXEC runs what MULTI has queued.
const CHANGE_THE_USER: [&str; 4] = ["AUTH", "HELLO", "RESET", "EXEC"];

/// A channel that waits for its user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heir {
    pub(super) channel: u16,
    /// The request of channel 0 that it waits for.
    after: u32,
}

impl Channels {
    /// A channel has been opened: it waits if channel 0 has a request in its queue that changes the user.
    pub(crate) fn wait_for_user(&mut self, channel: u16) {
        let changes = |client: &Client| {
            client.last_held(|what| match what {
                What::Command(id) => CHANGE_THE_USER.contains(&id.spec().name),
                _ => false,
            })
        };
        let Some(zero) = self.get(0) else { return };
        let Some(place) = changes(&zero.client) else { return };
        let after = zero.first_held().wrapping_add(place as u32);
        if let Some(open) = self.get_mut(channel) {
            open.client.session.hold_back();
            self.heirs.push(Heir { channel, after });
        }
    }

    /// Whether a channel waits for its user.
    pub(super) fn is_heir(&self, channel: u16) -> bool {
        self.heirs.iter().any(|heir| heir.channel == channel)
    }

    /// Gives the user of channel 0 to the channels that have waited for a request that it has run; these may go on.
    pub(crate) fn pass_users_on(&mut self) -> Vec<u16> {
        let Some(first) = self.get(0).filter(|_| !self.heirs.is_empty()).map(|zero| zero.first_held()) else {
            return Vec::new();
        };
        // The numbers of requests go round at 2³².
        let is_due = |heir: &Heir| first.wrapping_sub(heir.after).wrapping_sub(1) < u32::MAX / 2;
        self.release(is_due, true)
    }

    /// Channel 0 has ended: what it had not run is void, and whoever waits for it keeps the user that there was.
    pub(crate) fn disinherit(&mut self) -> Vec<u16> {
        self.release(|_| true, false)
    }

    fn release(&mut self, is_due: impl Fn(&Heir) -> bool, inherits: bool) -> Vec<u16> {
        let due: Vec<u16> = self.heirs.iter().filter(|heir| is_due(heir)).map(|heir| heir.channel).collect();
        self.heirs.retain(|heir| !is_due(heir));
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
