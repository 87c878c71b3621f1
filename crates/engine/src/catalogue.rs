//! Owns: changing the catalogue from a command. Does not own: the entries (`weft_store::catalogue`), what they mean:
//! functions, programs and triggers each compile their own section.

use std::sync::Arc;

use weft_store::{Op, Section};

use crate::context::{Context, Hold};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode};

impl Engine {
    /// Reads the catalogue when it came from a log or a snapshot. Says what could not be read, and why; that stays
    /// where it is.
    pub fn load_catalogue(&self) -> Vec<String> {
        let mut problems = self.load_programs();
        problems.extend(self.load_triggers());
        problems
    }
}

impl Context<'_, '_> {
    /// Has an entry hold these bytes, or be gone; gives what it held. The command has the keyspace to itself
    /// (`Scope::World`): entries change between commands, never under one.
    pub fn set_entry(
        &mut self,
        section: Section,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> Result<Option<Arc<[u8]>>, Error> {
        let Hold::World(_, guards) = &mut self.hold else { return Err(ErrorCode::NeedsWorld.into()) };
        let key = self.engine.keyspace.key(name);
        // Entries belong to no database.
        let mut op = Op::untouched(0, self.now_ms, &mut self.local.effects.recorder);
        Ok(guards.shard(&key).set_entry(&mut op, section, name, value))
    }
}
