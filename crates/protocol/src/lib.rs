//! RESP2, RESP3 and RESPB without I/O: bytes in, borrowed requests and replies out, and back.
//!
//! The crate owns the wire: where a frame ends, what its fields are, which limits hold, what is malformed.
//! It does not own sockets, buffers, sessions or the meaning of a command.
//!
//! Reading order: [`outcome`] (the three outcomes of every decoder), [`request`] (what a decoder of requests hands
//! out), [`resp`] and [`respb`] (the two encodings), [`reply`] (the same for replies), [`table`] (the command
//! table, generated from `spec/commands`).
//!
//! A decoder is fed the bytes from the start of one frame. It answers [`Outcome::Incomplete`] until the frame is
//! whole, and is then called again with the same bytes and more behind them; it goes on at the argument where it
//! stopped and never hands out an argument twice. It allocates nothing.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod buffer;
pub mod limits;
pub mod number;
pub mod outcome;
pub mod reply;
pub mod request;
pub mod resp;
pub mod respb;
pub mod table;

pub use buffer::{Buffer, FixedBuffer};
pub use limits::Limits;
pub use outcome::{Malformed, Outcome, WireError};
pub use reply::{Aggregate, Reply, ReplyVisitor, Text};
pub use request::{Arg, ArgList, ArgVisitor};
