//! Owns: the commands of hashes and of the expiry of their fields. Does not own: the structure
//! (`weft_store::hash_object`).

pub(crate) mod hash;
pub(crate) mod hash_expiry;

use crate::handler::Entry;

/// Their handlers.
pub(super) const LISTS: &[&[Entry]] = &[hash::LIST, hash_expiry::LIST];
