//! What stands behind the server's front when another server has the keys (ADR 0055).
//!
//! Owns: which commands go there, connections to that server, whose reply comes next on each, who has a connection to
//! himself, subscriptions there. Does not own: clients, their wires and rights (`weft-server`, `weft-engine`), what
//! commands do.
//!
//! | module | owns |
//! |---|---|
//! | [`ways`] | which way each command goes |
//! | `options` | which server, and how much of it |
//! | `link` | one connection: what is to be sent, what is due |
//! | `upstream` | a worker's connections: shared ones, leased ones |
//! | `answer` | what a reply means for who waits for it |
//! | `leases` | who has a connection to himself, and who waits for one |
//! | `dial` | making connections, on threads that may wait |
//! | `hub` | subscriptions: one connection for all |
//! | [`reply`] | a reply as another wire has it |
//!
//! A worker has two shared connections at most, one that speaks RESP2 and one that speaks RESP3, so that a reply is
//! passed on to a client of either as it is; what differs between them only the server itself knows. RESPB has what
//! RESP3 has, HTTP what RESP2 has.

#![forbid(unsafe_code)]

mod answer;
mod dial;
mod hub;
mod leases;
mod link;
mod options;
pub mod reply;
mod upstream;
pub mod ways;

use std::sync::Arc;
use std::time::Duration;

use weft_client::Timeouts;
use weft_engine::Engine;

pub use answer::{Answer, Front};
pub use options::{Options, OptionsError, Sentinel};
pub use upstream::Upstream;

/// What all workers share.
#[derive(Debug)]
pub struct Gateway {
    options: Arc<Options>,
    hub: Arc<hub::Hub>,
    checks: Arc<dial::Checks>,
}

impl Gateway {
    /// A gateway that has asked for nothing yet; its thread for subscriptions runs until the process ends.
    ///
    /// # Errors
    /// The thread, or what wakes it, could not be had.
    pub fn start(mut options: Options, engine: &'static Engine) -> std::io::Result<Self> {
        options.to.timeouts = Timeouts::all(Some(Duration::from_millis(options.timeout_ms)));
        let options = Arc::new(options);
        let hub = hub::Hub::start(Arc::clone(&options), engine)?;
        let checks = dial::Checks { moves: options.sentinel.is_some(), ..Default::default() };
        Ok(Self { options, hub, checks: Arc::new(checks) })
    }

    /// One worker's part. `wake` wakes it when a connection stands or a subscription is confirmed.
    #[must_use]
    pub fn upstream(&self, workers: u16, wake: impl Fn() + Send + Sync + 'static) -> Upstream {
        let leases = (self.options.leases / usize::from(workers.max(1))).max(1);
        let (hub, checks) = (Arc::clone(&self.hub), Arc::clone(&self.checks));
        Upstream::new(Arc::clone(&self.options), leases, (hub, checks), wake)
    }

    /// The server behind, as it is shown.
    #[must_use]
    pub fn shown(&self) -> String {
        self.options.shown()
    }
}
