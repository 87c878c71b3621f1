//! Owns: the times at which something is to be looked at, in order; each can be taken back. Does not own: what is done
//! then.
//!
//! Whoever has asked for a time keeps it, in its [`Alarm`], and has at most one: so a time that is changed, and one
//! whose owner is gone, leave nothing.
//!
//! Times are asked for by the clock of the wall. Where that is set back they come when they were to come, and not later
//! by as much: here they are counted as if it had not been.

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
    /// The client it is for: the place may have a new owner while the old one is taken down, whom it does not concern.
    pub(crate) client: u64,
}

/// The time that somebody has asked for, as [`Timers`] counts; 0 for none.
#[derive(Debug, Default)]
pub(crate) struct Alarm(u64);

/// All times.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    of_clients: BTreeSet<Timer>,
    of_connections: BTreeSet<Timer>,
    /// By so much the clock was set back, all times together.
    set_back_ms: u64,
}

impl Timers {
    /// The clock was set back.
    pub(crate) fn set_back(&mut self, by_ms: u64) {
        self.set_back_ms += by_ms;
    }
    /// When an alarm rings, as the clock is now; 0 for never.
    pub(crate) const fn time_of(&self, alarm: &Alarm) -> u64 {
        alarm.0.saturating_sub(self.set_back_ms)
    }
    /// Asks for `timer.at_ms`, in place of what was asked for before; for nothing where that is 0.
    pub(crate) fn set(&mut self, alarm: &mut Alarm, mut timer: Timer) {
        if timer.at_ms != 0 {
            timer.at_ms = timer.at_ms.saturating_add(self.set_back_ms);
        }
        if alarm.0 == timer.at_ms {
            return;
        }
        let all = match timer.about {
            About::Client(_) => &mut self.of_clients,
            About::Connection => &mut self.of_connections,
        };
        if alarm.0 != 0 {
            all.remove(&Timer { at_ms: alarm.0, ..timer });
        }
        if timer.at_ms != 0 {
            all.insert(timer);
        }
        alarm.0 = timer.at_ms;
    }

    /// When the next time of a connection comes, or also of a client.
    pub(crate) fn next_ms(&self, of_clients_too: bool) -> Option<u64> {
        let of_clients = self.of_clients.first().filter(|_| of_clients_too);
        let firsts = [of_clients, self.of_connections.first()];
        firsts.into_iter().flatten().map(|timer| timer.at_ms.saturating_sub(self.set_back_ms)).min()
    }
    /// Takes a time of a connection that has come, or also of a client. Its owner is to [forget](Alarm::forget) it.
    pub(crate) fn take_due(&mut self, now_ms: u64, of_clients_too: bool) -> Option<Timer> {
        let now_ms = now_ms.saturating_add(self.set_back_ms);
        let is_due = |timer: Option<&Timer>| timer.is_some_and(|timer| timer.at_ms <= now_ms);
        if is_due(self.of_connections.first()) {
            return self.of_connections.pop_first();
        }
        if of_clients_too && is_due(self.of_clients.first()) { self.of_clients.pop_first() } else { None }
    }
}

impl Alarm {
    /// Whether a time was asked for.
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
            assert_eq!(timers.of_clients.len(), alarms.len());
        }
        for (client, alarm) in (0..).zip(&mut alarms).skip(1) {
            timers.set(alarm, timer(0, client));
        }
        assert_eq!((timers.next_ms(true), timers.next_ms(false)), (Some(3000), None));
        assert_eq!(timers.take_due(2999, true), None);
        assert_eq!(timers.take_due(3000, false), None, "of a client");
        assert_eq!(timers.take_due(3000, true), Some(timer(3000, 0)));
        assert!(timers.of_clients.is_empty());
    }
    /// What was asked for before the clock was set back comes after as long as it was to take, and so does what is
    /// asked for behind that.
    #[test]
    fn a_clock_that_is_set_back_makes_nothing_late() {
        let mut timers = Timers::default();
        let mut alarms = [Alarm::default(), Alarm::default(), Alarm::default()];
        timers.set(&mut alarms[0], timer(10_005, 0));
        timers.set(&mut alarms[1], timer(u64::MAX, 1));
        timers.set_back(9_000);
        assert_eq!((timers.next_ms(true), timers.time_of(&alarms[0])), (Some(1_005), 1_005));
        timers.set(&mut alarms[2], timer(1_003, 2));
        let mut due = |now_ms| timers.take_due(now_ms, true).map(|timer| timer.client);
        assert_eq!(due(1_002), None);
        assert_eq!(due(1_003), Some(2));
        assert_eq!(due(1_004), None);
        assert_eq!(due(1_005), Some(0));
        alarms[0].forget();
        assert_eq!(timers.time_of(&alarms[0]), 0);
        timers.set(&mut alarms[1], timer(0, 1));
        assert_eq!(timers.next_ms(true), None, "it was taken back");
    }
}
