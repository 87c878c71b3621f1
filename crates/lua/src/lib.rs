//! Lua 5.1 for scripts: a state that is sandboxed as Valkey's, counts its steps, is limited in its memory, and can run
//! on a stack of its own.
//!
//! Owns: the interpreter's state, the libraries that scripts see, what Rust sees of Lua's stack. Does not own:
//! commands,
//! replies, keys: whoever runs a script is its [`Host`].
//!
//! | module | owns |
//! |---|---|
//! | [`vm`] | a state: compiling, calling, what a run gives |
//! | [`frame`] | the safe window of Lua's stack that libraries are written over |
//! | `memory` | the allocator and its limit |
//! | [`fiber`] | a stack that can be left in the middle |
//! | [`host`] | what a script asks of whoever runs it |
//! | [`shebang`] | the first line of a script or library: its engine, name and flags |
//! | `libs` | `string`, `table`, `cjson`, `cmsgpack`, `struct`, `bit`, `redis` (`server`): ours, which count steps |
//!
//! `unsafe` stands in `frame`, `memory`, `vm` and `fiber` alone; the libraries are safe Rust.

#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod fiber;
#[allow(unsafe_code)]
pub mod frame;
pub mod host;
mod libs;
#[allow(unsafe_code)]
mod memory;
pub mod shebang;
#[allow(unsafe_code)]
pub mod vm;

pub use frame::{Frame, Kind};
pub use host::{Called, Host, Level, Out, Verdict};
pub use libs::server::sha1_hex;
pub use memory::Budget;
pub use vm::{Chunk, Identity, Registered, RunError, Vm};
