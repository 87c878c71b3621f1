//! Owns: the commands of a client about itself and others: its connection, transactions, publish/subscribe. Does not
//! own: what a client is (`crate::session`).

pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod pubsub;
pub(crate) mod transaction;

use crate::handler::Entry;

/// Their handlers.
pub(super) const LISTS: &[&[Entry]] = &[client::LIST, connection::LIST, pubsub::LIST, transaction::LIST];
