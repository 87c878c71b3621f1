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
//! | `asking` | one request on its way out |
//! | `blocks` | the time of a request: when it is late, what is left of it |
//! | `late` | what is late: replies, waits, servers that say nothing |
//! | `kept_bytes` | bytes of requests that a worker keeps, and may keep |
//! | `breaker` | when a server that cannot be reached is tried again |
//! | `figures` | what is counted of the servers behind |
//! | `answer` | what a reply means for who waits for it |
//! | `atlas` | which node of a cluster has which slots |
//! | `cluster` | which request goes to which node |
//! | `orders` | requests in front of a cluster: what waits, what goes again, whose reply is next |
//! | `heard` | what a node's answer means for a request in front of a cluster |
//! | `what` | what a request in front of a cluster is |
//! | `parts` | the parts of one request in front of a cluster: which is next, whether all are answered |
//! | `logic` | requests of scripts in front of a cluster: what is sent, whose word a reply is |
//! | `replicas` | which replicas of a cluster may be read from |
//! | `scripts` | scripts for nodes that do not have them |
//! | `merge` | one reply made of several |
//! | `partly` | what is said of a request of which a part has run |
//! | `lanes` | which shared connection a request goes over |
//! | `leases` | who has a connection to himself, and who waits for one |
//! | `lending` | lending connections to one client at a time |
//! | `dial` | making connections, on threads that may wait |
//! | `hub` | subscriptions: which connection brings what |
//! | `lines` | one connection for subscriptions |
//! | [`reply`] | a reply as another wire has it |
//! | `skip` | where a reply ends that cannot be read |
//!
//! A worker has two shared connections to a server, one that speaks RESP2 and one that speaks RESP3, so that a reply is
//! passed on to a client of either as it is; what differs between them only the server itself knows. RESPB has what
//! RESP3 has, HTTP what RESP2 has. Few databases beside 0 have such connections of their own.

#![forbid(unsafe_code)]

mod answer;
mod asking;
mod atlas;
mod blocks;
mod breaker;
mod cluster;
mod dial;
mod figures;
mod heard;
mod hub;
mod kept_bytes;
mod lanes;
mod late;
mod leases;
mod lending;
mod lines;
mod link;
mod logic;
mod merge;
mod options;
mod orders;
mod partly;
mod parts;
mod replicas;
pub mod reply;
mod scripts;
mod skip;
#[cfg(test)]
mod testing;
mod upstream;
pub mod ways;
mod what;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use weft_client::Timeouts;
use weft_engine::Engine;
use weft_engine::blocking::End;
use weft_engine::forward::Forwards;
use weft_engine::mailbox::Recipient;

pub use answer::{Answer, Front, Whose};
pub use options::{Options, OptionsError, Sentinel};
pub use upstream::Upstream;

pub use cluster::Cluster;

use atlas::Atlas;
use cluster::Common;
use figures::{Board, BoardNodes};
use replicas::Replicas;

/// What all workers share.
#[derive(Debug)]
pub struct Gateway {
    common: Common,
    atlas: Option<Arc<Atlas>>,
}

impl Gateway {
    /// A gateway that has asked for nothing yet; its threads, for subscriptions and for what a cluster is like, run
    /// until the process ends.
    ///
    /// # Errors
    /// A thread, or what wakes it, could not be had.
    pub fn start(mut options: Options, engine: &'static Engine) -> std::io::Result<Self> {
        options.to.timeouts = Timeouts::all(Some(Duration::from_millis(options.timeout_ms)));
        let atlas = match options.cluster.as_slice() {
            [] => None,
            seeds => Some(Atlas::start(&options.to, seeds.to_vec())?),
        };
        options.atlas.clone_from(&atlas);
        let options = Arc::new(options);
        let bound = Duration::from_millis(options.replica_ms);
        let replicas = match &atlas {
            Some(atlas) if !bound.is_zero() => Some(Replicas::start(&options.to, Arc::clone(atlas), bound)?),
            _ => None,
        };
        let hub = hub::Hub::start(Arc::clone(&options), engine)?;
        let checks = dial::Checks { moves: options.sentinel.is_some(), ..Default::default() };
        let board = Arc::<Board>::default();
        engine.behind.set(Box::new(BoardNodes(Arc::clone(&board))));
        let common =
            Common { options, hub, checks: Arc::new(checks), scripts: Arc::default(), board, replicas };
        Ok(Self { common, atlas })
    }

    /// One worker's part. `wake` wakes it when a connection stands or a subscription is confirmed.
    #[must_use]
    pub fn upstream(&self, workers: u16, wake: impl Fn() + Send + Sync + 'static) -> Behind {
        let Common { options, hub, checks, board, .. } = self.common.clone();
        let leases = (options.leases / usize::from(workers.max(1))).max(1);
        match &self.atlas {
            None => {
                let (figures, kept) = (board.add(options.shown()), board.worker());
                let shared = (hub, checks, figures);
                Behind::One(Box::new(Upstream::new(options, leases, shared, wake).counting(kept)))
            }
            Some(atlas) => {
                let cluster = Cluster::new(self.common.clone(), Arc::clone(atlas), leases, Arc::new(wake));
                Behind::Many(Box::new(cluster))
            }
        }
    }

    /// The server behind, as it is shown.
    #[must_use]
    pub fn shown(&self) -> String {
        self.common.options.shown()
    }
}

/// A worker's connections to what is behind.
#[derive(Debug)]
pub enum Behind {
    /// One server.
    One(Box<Upstream>),
    /// The nodes of a cluster.
    Many(Box<Cluster>),
}

impl Behind {
    /// Whether a place of an event is one of its connections'.
    #[must_use]
    pub const fn is_place(place: u32) -> bool {
        Upstream::is_place(place)
    }
    /// Its sockets with their places.
    pub fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, u64)> {
        let (one, many) = match self {
            Self::One(one) => (Some(one), None),
            Self::Many(many) => (None, Some(many)),
        };
        let one = one.into_iter().flat_map(|one| one.sockets());
        one.chain(many.into_iter().flat_map(|many| many.sockets()))
    }
    /// Whether there is something to do although no socket has told.
    #[must_use]
    pub fn is_due(&self, now_ms: u64) -> bool {
        match self {
            Self::One(one) => one.is_due(now_ms),
            Self::Many(many) => many.is_due(now_ms),
        }
    }
    /// How long the worker may sleep for all it knows.
    #[must_use]
    pub fn timeout_ms(&self, now_ms: u64) -> u64 {
        match self {
            Self::One(one) => one.timeout_ms(now_ms),
            Self::Many(many) => many.timeout_ms(now_ms),
        }
    }
    /// Takes what other threads have done, and sees to what is late.
    pub fn begin_tick(&mut self, now_ms: u64, front: &mut impl Front) {
        match self {
            Self::One(one) => one.begin_tick(now_ms, front),
            Self::Many(many) => many.begin_tick(now_ms, front),
        }
    }
    /// Something has happened to a socket, of which is told once. `ends`: nothing comes behind what is there.
    pub fn event(&mut self, place: u32, ends: bool, front: &mut impl Front) {
        match self {
            Self::One(one) => one.event(place, ends, front),
            Self::Many(many) => many.event(place, ends, front),
        }
    }
    /// Takes what clients want to have run, and sends it.
    pub fn submit(&mut self, forwards: &mut Forwards, front: &mut impl Front) {
        match self {
            Self::One(one) => one.submit(forwards, front),
            Self::Many(many) => many.submit(forwards, front),
        }
    }
    /// A client sends no more, and has asked for what may block: whether it will be answered.
    #[must_use]
    pub fn awaits(&self, to: Recipient) -> bool {
        match self {
            Self::One(one) => one.awaits(to),
            Self::Many(many) => many.awaits(to),
        }
    }
    /// What such a client has asked for ends there, unless it is served.
    pub fn hurry(&mut self, to: Recipient, front: &mut impl Front) {
        match self {
            Self::One(one) => one.hurry(to, front),
            Self::Many(many) => many.hurry(to, front),
        }
    }
    /// A connection ends: what its clients have asked for, may block and has not gone there is not to run. `only`: its
    /// client, where it has one, which gives up all else, too.
    pub fn leave(&mut self, connection: u32, only: Option<Recipient>, front: &mut impl Front) {
        match (self, only) {
            (Self::One(one), Some(to)) => one.release(to, front),
            (Self::One(one), None) => one.void_of(connection),
            (Self::Many(many), Some(to)) => many.release(to, front),
            (Self::Many(many), None) => many.void_of(connection),
        }
    }
    /// Ends a client's wait there, if it waits: CLIENT UNBLOCK, CANCEL.
    pub fn unblock(&mut self, to: Recipient, end: End, front: &mut impl Front) {
        match self {
            Self::One(one) => one.unblock(to, end, front),
            Self::Many(many) => many.unblock(to, end, front),
        }
    }
}
