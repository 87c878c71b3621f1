//! Owns: what the engine does about itself beside commands: following its settings, refusing and holding back writes
//! and replies as what is kept wants it, making room, changing the catalogue. Does not own: what these are about
//! (`crate::config`, `crate::keeping`), the keyspace.

pub(crate) mod catalogue;
pub mod eviction;
mod kept;
mod settings;
