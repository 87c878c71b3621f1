//! Owns: the commands of sorted sets: members, ranges, ends, several sets. Does not own: the structure
//! (`weft_store::sorted_set`).

pub(crate) mod sorted_set;
pub(crate) mod sorted_set_algebra;
pub(crate) mod sorted_set_pop;
pub(crate) mod sorted_set_range;

use crate::handler::Entry;

/// Their handlers.
pub(super) const LISTS: &[&[Entry]] =
    &[sorted_set::LIST, sorted_set_algebra::LIST, sorted_set_pop::LIST, sorted_set_range::LIST];
