//! Owns: numbers, patterns, dates and names in bytes, read as Redis does and written; words of a line; files that are
//! replaced. Does not own: commands, replies, the keyspace; this room uses nothing else of the engine.

pub mod base64;
pub mod calendar;
pub(crate) mod excerpt;
pub mod extended;
pub(crate) mod files;
pub(crate) mod find;
pub mod glob;
pub mod near;
pub mod number;
pub mod words;
