//! Owns: what is counted of the servers behind, for each worker and server, and the sums that INFO and metrics tell.
//! Does not own: what happens there.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use weft_engine::behind::{Figure, Node, Nodes, State};

use crate::kept_bytes::{KEPT_BYTES_MAX, KeptBytes};

macro_rules! figures {
    ($($(#[doc = $help:literal])+ $field:ident $name:literal $is_counter:literal;)*) => {
        /// One worker's figures of one server. Only that worker writes them.
        #[derive(Debug, Default)]
        pub(crate) struct Figures {
            state: AtomicU8,
            $($(#[doc = $help])+ pub(crate) $field: AtomicU64,)*
        }
        /// Which there are.
        const ALL: &[Figure] =
            &[$(Figure { name: $name, is_counter: $is_counter, help: concat!($($help),+) }),*];
        impl Figures {
            fn values(&self) -> Vec<u64> {
                vec![$(self.$field.load(Relaxed)),*]
            }
        }
    };
}

figures! {
    /// Shared connections to it
    connections "gateway_connections" false;
    /// Connections to it that clients have to themselves, or may get
    leases "gateway_leases" false;
    /// Clients that wait for such a connection
    waiting "gateway_leases_waiting" false;
    /// Requests that it has not answered
    in_flight "gateway_in_flight" false;
    /// Requests of clients that were put on a connection to it
    requests "gateway_requests_total" true;
    /// Requests that went again: reads whose connection broke, what it has said it did not run
    again "gateway_sent_again_total" true;
    /// MOVED, that it answered
    moved "gateway_moved_total" true;
    /// ASK, that it answered
    asked "gateway_asked_total" true;
    /// TRYAGAIN, CLUSTERDOWN, LOADING, that it answered
    later "gateway_try_again_total" true;
    /// READONLY, that it answered, as a replica does
    read_only "gateway_readonly_total" true;
    /// Connections that broke or were given up
    lost "gateway_connections_lost_total" true;
    /// Connections that could not be made
    failed "gateway_connections_failed_total" true;
    /// Requests that took longer than command-timeout
    late "gateway_late_total" true;
    /// Requests that were refused at once, since it could not be reached
    refused "gateway_refused_total" true;
    /// Keys that it said have changed
    changed "gateway_changed_keys_total" true;
}

impl Figures {
    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }
    fn state(&self) -> State {
        let all = [State::Unused, State::Down, State::Trying, State::Up];
        all.into_iter().find(|state| *state as u8 == self.state.load(Relaxed)).unwrap_or_default()
    }
}

/// One more. There is one writer.
pub(crate) fn bump(figure: &AtomicU64, by: u64) {
    figure.store(figure.load(Relaxed).wrapping_add(by), Relaxed);
}

/// What is told of all workers and servers together.
const OF_ALL: &[Figure] = &[
    Figure {
        name: "gateway_kept_bytes",
        is_counter: false,
        help: "Bytes of requests that are not answered, and of replies that wait for others",
    },
    Figure {
        name: "gateway_kept_bytes_max",
        is_counter: false,
        help: "Bytes of them that all workers together may keep; each has its part",
    },
];

/// Figures of all workers and servers.
#[derive(Debug, Default)]
pub(crate) struct Board {
    nodes: Mutex<Vec<(String, Arc<Figures>)>>,
    workers: Mutex<Vec<KeptBytes>>,
}

impl Board {
    /// What one more worker keeps.
    pub(crate) fn worker(&self) -> KeptBytes {
        let kept = KeptBytes::default();
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(kept.clone());
        kept
    }
    /// Figures of one more worker for a server of this name.
    pub(crate) fn add(&self, address: String) -> Arc<Figures> {
        let figures = Arc::<Figures>::default();
        let mut all = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((address, Arc::clone(&figures)));
        figures
    }
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
    /// What was forgotten is there again.
    pub(crate) fn show(&self, address: &str, figures: &Arc<Figures>) {
        let mut all = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.iter().any(|(_, one)| Arc::ptr_eq(one, figures)) {
            all.push((address.into(), Arc::clone(figures)));
        }
    }
    /// What is gone is not shown any more.
    pub(crate) fn forget(&self, figures: &Arc<Figures>) {
        let mut all = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, one)| !Arc::ptr_eq(one, figures));
    }
}

/// Tells the engine.
pub(crate) struct BoardNodes(pub(crate) Arc<Board>);

impl Nodes for BoardNodes {
    fn of_all(&self) -> Vec<(&'static Figure, u64)> {
        let workers = self.0.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = workers.iter().map(KeptBytes::bytes).sum();
        let values = [kept, KEPT_BYTES_MAX * workers.len()];
        OF_ALL.iter().zip(values.map(|value| value as u64)).collect()
    }
    fn figures(&self) -> &'static [Figure] {
        ALL
    }
    fn nodes(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        for (address, figures) in &*self.0.nodes.lock().unwrap_or_else(PoisonError::into_inner) {
            let values = figures.values();
            match nodes.iter_mut().find(|node| node.address == *address) {
                Some(node) => {
                    node.state = node.state.max(figures.state());
                    node.values.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                }
                None => nodes.push(Node { address: address.clone(), state: figures.state(), values }),
            }
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_added_up() {
        let board = Arc::new(Board::default());
        let figures = ["a", "b", "a"].map(|address| board.add(address.into()));
        figures[0].set_state(State::Down);
        figures[2].set_state(State::Up);
        bump(&figures[0].moved, 2);
        bump(&figures[2].moved, 3);
        let nodes = BoardNodes(board).nodes();
        let place = ALL.iter().position(|figure| figure.name == "gateway_moved_total").unwrap();
        let told: Vec<_> =
            nodes.iter().map(|node| (node.address.as_str(), node.state, node.values[place])).collect();
        assert_eq!(told, [("a", State::Up, 5), ("b", State::Unused, 0)]);
    }

    #[test]
    fn what_workers_keep_is_added_up() {
        let board = Arc::new(Board::default());
        let shares = [5, 6].map(|bytes| board.worker().share(bytes));
        let of_all = || {
            BoardNodes(Arc::clone(&board)).of_all().into_iter().map(|(_, value)| value).collect::<Vec<_>>()
        };
        assert_eq!(of_all(), [11, 2 * KEPT_BYTES_MAX as u64]);
        drop(shares);
        assert_eq!(of_all()[0], 0);
    }
}
