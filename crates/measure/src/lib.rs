//! What every report measures with: the same statistics, verdicts, tables and plots for `weft bench`, `weft peers`,
//! `weft wire` and the scripts behind `make bench-…` (docs/adr/0061-one-way-to-a-verdict.md).
//!
//! Owns what is made of figures. Does not own how they come about, nor what a page says: it knows no server and no
//! command. Reading order: [`Spread`] (the rounds of a figure), [`verdict`] (what may be said of two of them),
//! [`Table`], [`plot`], [`Claim`] (a line of the index of all claims). A crate of its own, so that it is built and
//! tested in seconds and cannot come to know what it judges.

#![forbid(unsafe_code)]

mod claim;
mod machine;
mod page;
pub mod plot;
mod random;
mod spread;
mod table;
pub mod verdict;

pub use claim::Claim;
pub use machine::{Machine, Origin};
pub use page::write_page;
pub use random::Random;
pub use spread::Spread;
pub use table::{Table, escape, number};
