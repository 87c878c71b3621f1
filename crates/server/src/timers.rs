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
    /// The client it is for: the place may have a new owner while the old one is taken down, whom it does not concern.
    pub(crate) client: u64,
}

/// The time that somebody has asked for; 0 for none.
#[derive(Debug, Default)]
pub(crate) struct Alarm(u64);

/// All times.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    of_clients: BTreeSet<Timer>,
    of_connections: BTreeSet<Timer>,
}

impl Timers {
    /// Asks for `timer.at_ms`, in place of what was asked for before; for nothing where that is 0.
    pub(crate) fn set(&mut self, alarm: &mut Alarm, timer: Timer) {
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
        [of_clients, self.of_connections.first()].into_iter().flatten().map(|timer| timer.at_ms).min()
    }
    /// Takes a time of a connection that has come, or also of a client. Its owner is to [forget](Alarm::forget) it.
    pub(crate) fn take_due(&mut self, now_ms: u64, of_clients_too: bool) -> Option<Timer> {
        let is_due = |timer: Option<&Timer>| timer.is_some_and(|timer| timer.at_ms <= now_ms);
        if is_due(self.of_connections.first()) {
            return self.of_connections.pop_first();
        }
        if of_clients_too && is_due(self.of_clients.first()) { self.of_clients.pop_first() } else { None }
    }
}

impl Alarm {
    /// When it rings; 0 for never.
    pub(crate) const fn at_ms(&self) -> u64 {
        self.0
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
}
