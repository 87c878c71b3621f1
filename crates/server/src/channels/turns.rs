//! Owns: the order in which channels with waiting frames are served; one can leave at any time. Does not own: their
//! frames (`super::flow`).

use std::collections::BTreeMap;

/// A channel's place in the order; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn(u64);

/// The channels, in the order of their turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    channels: BTreeMap<u64, u16>,
    last: u64,
}

impl Turns {
    /// Nobody waits for a turn.
    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }
    /// A channel queues up, if it does not stand there already.
    pub(super) fn join(&mut self, turn: &mut Turn, channel: u16) {
        if turn.0 == 0 {
            self.last += 1;
            turn.0 = self.last;
            self.channels.insert(self.last, channel);
        }
    }
    /// The channel whose turn it is. It stands there no more: its [`Turn`] is to be forgotten.
    pub(super) fn next(&mut self) -> Option<u16> {
        self.channels.pop_first().map(|(_, channel)| channel)
    }
    /// A channel goes away.
    pub(super) fn leave(&mut self, turn: Turn) {
        self.channels.remove(&turn.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_stands_there_once_and_leaves_nothing() {
        let mut turns = Turns::default();
        let mut own = [Turn::default(); 3];
        for (channel, turn) in (0..).zip(&mut own) {
            turns.join(turn, channel);
            turns.join(turn, channel);
        }
        turns.leave(own[1]);
        turns.leave(Turn::default());
        assert_eq!([turns.next(), turns.next(), turns.next()], [Some(0), Some(2), None]);
        assert!(turns.is_empty());
    }
}
