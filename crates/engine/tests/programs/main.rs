//! Programs: the pages' examples, what is refused, undo, keys, budgets, rights; and random ones beside a plain
//! interpreter; how long any command of one may take, and one that runs out its time.

#[path = "../support/mod.rs"]
mod support;

mod beside_triggers;
mod budgets;
mod differential;
mod edges;
mod overtime;
mod pages;
mod refused;
mod running;
mod sweep;
