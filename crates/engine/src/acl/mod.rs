//! Owns: users and what they may do. Does not own: when it is asked (the dispatcher does, when a command is queued and
//! when it runs).

use std::sync::Arc;
use weft_protocol::table::CommandSpec;

use crate::args::Args;
use crate::error::Error;

/// A user. Never changed: ACL SETUSER puts a new one in its place, and sessions are told to look again.
#[derive(Debug)]
pub struct User {
    /// Its name.
    pub name: Box<str>,
    /// Whether it may do everything, so that nothing need be checked.
    pub all: bool,
}

impl User {
    /// The default user, as it is at the start.
    #[must_use]
    pub fn default_user() -> Arc<Self> {
        Arc::new(Self { name: "default".into(), all: true })
    }
    /// Whether the user may run this command with these arguments.
    pub fn check(&self, _spec: &CommandSpec, _args: &Args<'_>) -> Result<(), Error> {
        Ok(())
    }
}
