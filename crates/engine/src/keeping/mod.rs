//! Owns: what the engine knows of stored data beside the keyspace: what is kept on disk and when that is safe, what
//! stands outside of databases in the form that it is used in, what MIGRATE sends. Does not own: acting on it
//! (`crate::upkeep`), files of the log and snapshots, threads (the server's).

pub mod carrier;
pub(crate) mod catalogue;
pub mod durable;
pub mod safe;
