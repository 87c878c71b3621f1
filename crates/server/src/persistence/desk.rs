//! Owns: what the thread that keeps things is told by others: orders, a snapshot that is over, that the server stops.
//! Does not own: what follows from it (`super`).

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weft_engine::durable::Order;

use super::snapshot::Made;

/// Orders that may wait: more are refused by who would give them.
const ORDERS_MAX: usize = 4096;

/// What others leave for the thread.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) orders: Vec<Order>,
    /// A snapshot is over.
    pub(super) made: Option<Made>,
    /// Replies wait, or orders.
    is_woken: bool,
    /// What was kept, or an import, is being loaded: nothing is written.
    is_loading: bool,
    /// The server stops, and no command runs any more.
    is_stopping: bool,
}

/// What is shared with workers and the snapshot's thread.
#[derive(Default)]
pub(crate) struct Desk {
    inbox: Mutex<Inbox>,
    changed: Condvar,
}

impl Desk {
    pub(super) fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(super) fn wake(&self) {
        let mut inbox = self.inbox();
        if !inbox.is_woken {
            inbox.is_woken = true;
            self.changed.notify_all();
        }
    }
    /// Takes an order, or gives it back where too many wait. Those that nobody waits for are few and are always taken.
    pub(super) fn order(&self, order: Order) -> Result<(), Order> {
        let mut inbox = self.inbox();
        if inbox.orders.len() >= ORDERS_MAX && !matches!(order, Order::Log(_)) {
            return Err(order);
        }
        inbox.orders.push(order);
        inbox.is_woken = true;
        self.changed.notify_all();
        Ok(())
    }
    pub(super) fn hand_in(&self, made: Made) {
        let mut inbox = self.inbox();
        inbox.made = Some(made);
        inbox.is_woken = true;
        self.changed.notify_all();
    }
    /// The thread begins by loading.
    pub(super) fn loads(&self) {
        self.inbox().is_loading = true;
    }
    /// All is loaded, or cannot be. Says whether the server stops without it: nothing may be written then.
    pub(super) fn ends_loading(&self) -> bool {
        let mut inbox = self.inbox();
        if !inbox.is_stopping {
            inbox.is_loading = false;
        }
        inbox.is_loading
    }
    /// No command runs any more: what was told is written, and the thread ends. Says whether it loads still: then it
    /// has nothing to write, and nobody need wait for it.
    pub(crate) fn stop(&self) -> bool {
        let mut inbox = self.inbox();
        inbox.is_stopping = true;
        inbox.is_woken = true;
        self.changed.notify_all();
        inbox.is_loading
    }
    pub(crate) fn is_stopping(&self) -> bool {
        self.inbox().is_stopping
    }
    /// Waits until there is something, or for so long.
    pub(super) fn wait(&self, time: Duration) {
        let mut inbox = self.inbox();
        if !inbox.is_woken {
            inbox = self.changed.wait_timeout(inbox, time).unwrap_or_else(PoisonError::into_inner).0;
        }
        inbox.is_woken = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stops_while_it_loads_has_nothing_written() {
        let desk = Desk::default();
        assert!(!desk.ends_loading() && !desk.stop(), "there was nothing to load");
        let desk = Desk::default();
        desk.loads();
        assert!(!desk.ends_loading() && !desk.stop(), "all was loaded before");
        let desk = Desk::default();
        desk.loads();
        assert!(desk.stop() && desk.ends_loading(), "it had not come to its end");
    }

    #[test]
    fn orders_are_bounded_and_those_beyond_are_given_back() {
        let desk = Desk::default();
        for _ in 0..ORDERS_MAX {
            desk.order(Order::Rewrite).expect("there is room");
        }
        assert!(matches!(desk.order(Order::Snapshot(None)), Err(Order::Snapshot(None))));
        // It must not be lost: nobody waits for it.
        desk.order(Order::Log(false)).expect("it is always taken");
        assert_eq!(desk.inbox().orders.len(), ORDERS_MAX + 1);
    }
}
