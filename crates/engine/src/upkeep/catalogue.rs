//! Owns: changing the catalogue from a command. Does not own: the entries (`weft_store::catalogue`), what they mean.

use std::sync::Arc;
use weft_store::{Op, Section};

use crate::context::{Context, Locked};
use crate::error::{Error, ErrorCode, Result};

/// Bytes of the names and entries of one section: they are beside `maxmemory`.
pub(crate) const SECTION_BYTES_MAX: usize = 256 << 20;

impl Context<'_, '_> {
    /// Has an entry hold these bytes, or be gone; gives what it held. The command has the keyspace to itself
    /// (`Scope::World`): entries change between commands, never under one. What a command's user stores needs
    /// [room](Self::check_entries).
    pub fn set_entry(
        &mut self,
        section: Section,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> Result<Option<Arc<[u8]>>> {
        if let Some(value) = value {
            self.check_entries(section, &[(name, value)], false)?;
        }
        let Locked::World(_, guards) = &mut self.locked else { return Err(ErrorCode::NeedsWorld.into()) };
        let key = self.engine.keyspace.key(name);
        // Entries belong to no database.
        let mut op = Op::untouched(0, self.now_ms, &mut self.local.effects.recorder);
        Ok(guards.shard(&key).set_entry(&mut op, section, name, value))
    }
    /// Whether a section has room for entries that take the place of those of their names, or of all there are.
    pub fn check_entries(&self, section: Section, new: &[(&[u8], &[u8])], of_all: bool) -> Result {
        let catalogue = self.engine.keyspace.catalogue();
        let replaced = |name: &[u8]| catalogue.get(section, name).map_or(0, |entry| name.len() + entry.len());
        let stay = match of_all {
            true => 0,
            false => catalogue.bytes(section) - new.iter().map(|(name, _)| replaced(name)).sum::<usize>(),
        };
        let come: usize = new.iter().map(|(name, value)| name.len() + value.len()).sum();
        if come > 0 && stay + come > SECTION_BYTES_MAX {
            let text = format!("{section:?} may take {SECTION_BYTES_MAX} bytes together: delete some first");
            return Err(Error::new(ErrorCode::Limit, text));
        }
        Ok(())
    }
}
