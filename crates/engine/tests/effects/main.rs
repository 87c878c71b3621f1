//! Effects alone: a second keyspace that is fed nothing but what the store tells has the same digest as the first after
//! every command.
//!
//! Random commands come from the groups of the differential runs, with more that these leave out because chance or the
//! clock decides what they do: SPOP, short expiries, clocks that step forwards and back, eviction, SWAPDB. No server is
//! needed. What differs is printed with the seed that shows it alone, and the commands of its round.
//!
//! ```text
//! cargo test -p weft-engine --test effects -- --nocapture
//! WEFT_EFFECTS_SECONDS=600   each proof for so long instead of a few rounds
//! WEFT_EFFECTS_SEED=7        the first round's seed
//! ```

#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code)]
#[path = "../differential/compare.rs"]
mod compare;
#[allow(dead_code)]
#[path = "../differential/dice.rs"]
mod dice;
#[allow(dead_code)]
#[path = "../differential/groups/mod.rs"]
mod groups;
#[allow(dead_code)]
#[path = "../differential/template.rs"]
mod template;

mod commands;
mod programs;
mod replay;
mod shadow;
mod threads;
mod undo;
