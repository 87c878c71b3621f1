//! Weft's server: sockets in front of the engine.
//!
//! Owns: listening, workers and their loops, connections, RESPB channels, limits of input and output, background work.
//! Does not own: commands (`weft-engine`), codecs (`weft-protocol`).

#![forbid(unsafe_code)]

pub mod log;
pub mod options;

pub use options::{Options, OptionsError};
