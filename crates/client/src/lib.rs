//! A blocking client of Redis-compatible servers over RESP2, RESP3 and RESPB.
//!
//! Owns connections: addresses, the handshake, sending and receiving, channels, pools, what is restored after a loss.
//! Does not own the encodings, which are [`weft_protocol`]'s, nor the meaning of a command.
//!
//! ```no_run
//! # fn main() -> Result<(), weft_client::Error> {
//! use weft_client::{Config, Connection};
//!
//! let mut connection = Connection::connect(&Config::from_url("redis://localhost:6379/2")?)?;
//! connection.command(&["SET", "greeting", "hello"])?;
//! let greeting: Option<String> = connection.query(&["GET", "greeting"])?;
//! # Ok(())
//! # }
//! ```
//!
//! | type | what it is | threads |
//! |---|---|---|
//! | [`Connection`] | one connection, any protocol: commands, [`Pipeline`]s, subscriptions | one at a time |
//! | [`Mux`] | one RESPB connection; each [`Channel`] of it is a whole logical client | any number |
//! | [`Pool`] | connections that are lent out, tested and given back | any number |
//! | [`Reconnecting`] | a connection that is made again when it is lost, with its session | one at a time |
//!
//! **One request, one reply.** Whatever the protocol, each request has exactly one reply, in order, and everything else
//! is a push, which is kept apart. A SUBSCRIBE of n names has one reply, an array of n confirmations, as RESPB says it;
//! over RESP the client gathers them.
//!
//! **Errors.** [`Connection::command`] gives a server's error reply as [`Error::Server`]; [`Connection::exchange`] and
//! [`Connection::receive`] give it as a [`Reply`]. After any other error than those two and [`Error::Convert`] a
//! connection is finished, and says so with [`Error::Finished`] from then on; a reply that came too late could
//! otherwise be taken for that of another request.
//!
//! **Time.** Nothing waits without a limit, unless a limit is set to `None`: [`Timeouts`]. Blocking commands may take
//! as long as they themselves say, and then the reply's time.
//!
//! [`fleet`] is another thing: it drives thousands of connections and channels from one thread, for load generators.
//!
//! There is no runtime: sockets block, and a [`Mux`] has one thread that reads.

#![forbid(unsafe_code)]

/// The programs of the guide, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust-client.md")]
struct Guide;

mod codec;
mod config;
mod connection;
mod error;
pub mod fleet;
mod handshake;
mod http;
mod input;
mod mux;
mod pipeline;
mod pool;
mod raw;
mod reconnect;
mod session;
mod stream;
mod url;
mod value;
mod waiting;

pub use codec::{Decoder, Encoder, Incoming};
pub use config::{
    Address, CAPABILITY_FRAGMENT, Config, PORT, Protocol, ReconnectPolicy, Timeouts, TlsConfig,
};
pub use connection::{Connection, Event};
pub use error::{Error, Result, ServerError, Waiting};
pub use handshake::{RespbInfo, ServerInfo, TableInfo};
pub use mux::{Channel, Mux};
pub use pipeline::Pipeline;
pub use pool::{Pool, PoolConfig, Pooled};
pub use raw::Raw;
pub use reconnect::{Reconnecting, only_reads};
pub use session::Session;
pub use stream::Socket;
#[cfg(feature = "tls")]
pub use stream::tls::client_config as tls_client_config;
pub use value::FromReply;
pub use weft_protocol::{Limits, Reply, WireError};
