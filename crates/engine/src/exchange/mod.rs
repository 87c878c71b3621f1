//! Owns: what comes in, on any wire: arguments and batches of requests, where the keys of a command stand, what is
//! asked of a command before it runs; and errors. Does not own: replies (`crate::reply`), running a request.

pub mod args;
pub mod error;
pub mod keys;
pub mod queued;
pub mod requests;
pub mod special;
pub mod traits;
