//! Owns: the times at which something is to be looked at, in order; each can be taken back. Does not own: what is done
//! then.
//!
//! Whoever has asked for a time keeps it, in its [`Alarm`], and has at most one: so a time that is changed, and one
//! whose owner is gone, leave nothing.

use std::collections::BTreeSet;

/// Whom a time is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About {
    /// A logical client: its wait ends, or a pause.
    Client(u16),
    /// The connection itself: what it must have done by then depends on where it stands (`worker::aftermath`).
    Connection,
}

/// A time that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub(crate) at_ms: u64,
    pub(crate) connection: u32,
    pub(crate) about: About,
    /// The client it is for: the place may have a new owner while the old one is taken down.
    pub(crate) client: u64,
}

/// The time that somebody has asked for; 0 for none.
#[derive(Debug, Default)]
pub(crate) struct Alarm(u64);

/// All times.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<Timer>);

impl Timers {
    /// Asks for `timer.at_ms`, in place of what was asked for before; for nothing where that is 0.
    pub(crate) fn set(&mut self, alarm: &mut Alarm, timer: Timer) {
        if alarm.0 == timer.at_ms {
            return;
        }
        if alarm.0 != 0 {
            self.0.remove(&Timer { at_ms: alarm.0, ..timer });
        }
        if timer.at_ms != 0 {
            self.0.insert(timer);
        }
        alarm.0 = timer.at_ms;
    }

    /// When the next time comes.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.0.first().map(|timer| timer.at_ms)
    }
    /// Takes a time that has come. Its owner is to [forget](Alarm::forget) it.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<Timer> {
        self.next_ms().filter(|&at_ms| at_ms <= now_ms)?;
        self.0.pop_first()
    }
}

impl Alarm {
    /// When it rings; 0 for never.
    pub(crate) const fn at_ms(&self) -> u64 {
        self.0
    }
    pub(crate) const fn is_set(&self) -> bool {
        self.0 != 0
    }
    /// It has rung.
    pub(crate) fn forget(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(at_ms: u64, client: u64) -> Timer {
        Timer { at_ms, connection: 0, about: About::Client(0), client }
    }

    #[test]
    fn what_is_taken_back_or_changed_leaves_nothing() {
        let mut timers = Timers::default();
        let mut alarms: Vec<Alarm> = (0..1000).map(|_| Alarm::default()).collect();
        for round in 1..=3 {
            for (client, alarm) in (0..).zip(&mut alarms) {
                timers.set(alarm, timer(round * 1000 + client % 7, client));
            }
            assert_eq!(timers.0.len(), alarms.len());
        }
        for (client, alarm) in (0..).zip(&mut alarms).skip(1) {
            timers.set(alarm, timer(0, client));
        }
        assert_eq!(timers.next_ms(), Some(3000));
        assert_eq!(timers.take_due(2999), None);
        assert_eq!(timers.take_due(3000), Some(timer(3000, 0)));
        assert!(timers.0.is_empty());
    }
}
