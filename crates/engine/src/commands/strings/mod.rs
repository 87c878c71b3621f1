//! Owns: the commands of strings: whole ones, parts, numbers, bits, what is counted in them. Does not own: their expiry
//! ([`super::keys`]).

pub(crate) mod bitfield;
pub(crate) mod bitmap;
pub(crate) mod hyperloglog;
pub(crate) mod lcs;
pub(crate) mod number;
pub(crate) mod string;
pub(crate) mod text;

use crate::handler::Entry;

/// Their handlers.
pub(super) const LISTS: &[&[Entry]] =
    &[bitfield::LIST, bitmap::LIST, hyperloglog::LIST, lcs::LIST, number::LIST, string::LIST, text::LIST];
