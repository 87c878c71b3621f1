//! Thousands of logical clients driven from one thread: what a load generator is made of.
//!
//! Owns the event loop: one epoll, one `recv` and one `send` for a connection and tick, replies told apart by
//! [`weft_protocol`]'s decoders. Does not own what is sent or what is made of the answers: a [`Load`] gives batches of
//! ready bytes and is told when they are answered. Knows no command.
//!
//! A *logical client* is a connection, or with RESPB a channel of one, or with RESP one of those who share a
//! connection: their requests go out one behind the other as they come, as clients that pipeline by themselves send
//! them. It sends a batch, waits for as many replies as the batch has requests, and sends the next. Clients are
//! numbered connection by connection: client `i` is channel `i % channels` of connection `i / channels`.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use std::time::Duration;
//! use weft_client::Config;
//! use weft_client::fleet::{Batch, Done, Fleet, Load, Pace, Until};
//!
//! /// A hundred PINGs from each client.
//! struct Pings { bytes: Vec<u8>, left: Vec<u32> }
//! impl Load for Pings {
//!     fn next(&mut self, client: u32) -> Option<Batch<'_>> {
//!         let left = &mut self.left[client as usize];
//!         *left = left.checked_sub(1)?;
//!         Some(Batch { bytes: &mut self.bytes, frames: &[0], tag: 0 })
//!     }
//!     fn done(&mut self, done: Done) {
//!         println!("client {} was answered after {} ns", done.client, done.since_sent_ns);
//!     }
//! }
//!
//! # fn main() -> Result<(), weft_client::Error> {
//! let mut fleet = Fleet::connect(&Config::from_url("redis://localhost:6379")?, 50, 1)?;
//! let mut load = Pings { bytes: b"*1\r\n$4\r\nPING\r\n".to_vec(), left: vec![100; 50] };
//! let counts = fleet.run(&mut load, Pace::Closed, Until::Exhausted, &AtomicBool::new(false))?;
//! assert_eq!(counts.replies, 5000);
//! # Ok(())
//! # }
//! ```

mod connect;
mod connection;
mod counts;
mod decode;
mod driver;
mod kind;
mod listen;
pub mod relay;
pub mod stub;
mod wire;

pub use connect::raise_open_files;
pub(crate) use connect::without_waiting;
pub use counts::{Counts, ERROR_TEXTS_MAX, Ended};
pub use driver::{CHANNELS_MAX, Fleet, Pace, Until};
pub(crate) use wire::Session;
pub use wire::Wire;

/// Requests of one logical client, ready to be sent.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The requests, one behind the other. For RESPB the channel of each frame is written by the fleet.
    pub bytes: &'a mut [u8],
    /// Where each request begins; as many as there are requests.
    pub frames: &'a [u32],
    /// What [`Load`] recognises the batch by later.
    pub tag: u32,
}

/// Replies to one client's batch that came together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The client.
    pub client: u32,
    /// The batch.
    pub tag: u32,
    /// The first request of the batch that is answered by these.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// Time since the batch was given to the socket.
    pub since_sent_ns: u64,
    /// Time since the batch was due: at a fixed rate what a user would have waited, otherwise the same.
    pub since_due_ns: u64,
}

/// What a reply is, as far as RESP2, RESP3 and RESPB have it in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `OK`, `QUEUED`, another word.
    Simple,
    /// A whole number.
    Integer,
    /// A double, a boolean or a big number, which RESP2 does not have.
    Scalar,
    /// Bytes.
    Text,
    /// Null.
    Null,
    /// An array, a set or a map.
    Aggregate,
    /// An error.
    Error,
}

/// Where requests come from and where answers go.
pub trait Load {
    /// The next batch of a client; none when there is nothing more to send, for any client, in this run.
    fn next(&mut self, client: u32) -> Option<Batch<'_>>;

    /// Replies have come.
    fn done(&mut self, done: Done);

    /// Whether [`value`](Self::value) is to be called. Asked once for each run.
    fn wants_values(&self) -> bool {
        false
    }

    /// Part number `part` of the reply to request `request` of the client's batch: a text, or no bytes for null.
    fn value(&mut self, client: u32, request: u32, part: u32, bytes: Option<&[u8]>) {
        let _ = (client, request, part, bytes);
    }

    /// Whether [`kind`](Self::kind) is to be called. Asked once for each run.
    fn wants_kinds(&self) -> bool {
        false
    }

    /// What the reply to request `request` of the client's batch is. Not over HTTP.
    fn kind(&mut self, client: u32, request: u32, kind: Kind) {
        let _ = (client, request, kind);
    }

    /// Called about ten times a second, with what has been counted so far.
    fn tick(&mut self, counts: &Counts) {
        let _ = counts;
    }
}
