//! Clients of Redis-compatible servers over RESP2, RESP3 and RESPB.
//!
//! Owns connections. Does not own the encodings, which are [`weft_protocol`]'s, nor the meaning of a command.
//! [`fleet`] drives thousands of connections and channels from one thread, for load generators.

#![forbid(unsafe_code)]

pub mod fleet;
