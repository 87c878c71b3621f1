//! Owns: what becomes of stored data beside commands: what is kept on disk as the engine knows it and when that is
//! safe, what stands outside of databases, and what goes because its time or its room is over. Does not own: files of
//! the log and snapshots, threads (the server's).

pub mod background;
pub(crate) mod catalogue;
pub mod durable;
pub mod eviction;
pub mod safe;
