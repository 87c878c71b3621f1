//! Owns: the commands for keys of any type: names, times, whole databases, values as bytes, sorting. Does not own: what
//! a key holds.

pub(crate) mod dump;
pub(crate) mod generic;
pub(crate) mod keyspace;
pub(crate) mod migrate;
pub(crate) mod object;
pub(crate) mod sort;
pub(crate) mod ttl;

use crate::handler::Entry;

/// Their handlers.
pub(super) const LISTS: &[&[Entry]] =
    &[dump::LIST, generic::LIST, keyspace::LIST, migrate::LIST, object::LIST, sort::LIST, ttl::LIST];
