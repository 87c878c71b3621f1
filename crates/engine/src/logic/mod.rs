//! Owns: the commands of what users give the server to run: scripts, functions, programs, triggers; and running a
//! script. Does not own: Lua (`weft_lua`), sources (`crate::script`), programs and triggers themselves
//! (`crate::program`, `crate::trigger`), the other commands (`crate::commands`).

mod named;
mod program;
mod script;
mod trigger;

use crate::handler::Entry;

/// The handlers.
pub(crate) const LISTS: &[&[Entry]] = &[program::LIST, script::FUNCTIONS, script::LIST, trigger::LIST];
