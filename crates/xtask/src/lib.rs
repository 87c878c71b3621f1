//! Code generation from `spec/` and checks of the repository, as a library so that each part can be tested.
//!
//! It owns nothing itself: `model` and `respb` are the command table as values; the other modules read or write it.

pub mod model;
pub mod respb;
pub mod rust_table;
pub mod vectors;
