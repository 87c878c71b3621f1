//! Owns: what commands of several families have in common: HELP, options with times, limits and random choices. Does
//! not own: any command.

pub(crate) mod collection;
pub(crate) mod expiry;
pub(crate) mod help;
