//! Owns: the commands of sets. Does not own: the structure (`weft_store::set`).

pub(crate) mod set;

use crate::handler::Entry;

/// Their handlers.
pub(super) const LISTS: &[&[Entry]] = &[set::LIST];
