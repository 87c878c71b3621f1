//! Owns: the commands about the server: figures, settings, users, logs, the command table, what is kept on disk. Does
//! not own: what they show and change.

pub(crate) mod acl;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod debug;
pub(crate) mod front;
pub(crate) mod general;
pub(crate) mod logs;
pub(crate) mod memory;
pub(crate) mod replication;
pub(crate) mod standalone;

use crate::handler::Entry;

/// Their handlers.
pub(super) const LISTS: &[&[Entry]] = &[
    acl::LIST,
    command::LIST,
    config::LIST,
    debug::LIST,
    general::LIST,
    logs::LIST,
    memory::LIST,
    replication::LIST,
    standalone::LIST,
];
