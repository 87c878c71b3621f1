//! Owns: what clients are told that they have not asked for just then: keyspace events, messages, invalidations,
//! MONITOR, the feed, figures of each second; and what is noted of a command that has run. Does not own: who wants to
//! be told (`crate::sessions`, `crate::observe`), when a command tells of something.

mod invalidations;
pub mod notify;
mod onlookers;
mod watchers;
