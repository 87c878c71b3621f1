//! Owns: the commonest triggers, made out once: fired by a SET, whose program is one quick command with constant
//! arguments. Does not own: running it (`crate::executor`), all others (`crate::logic`).

use std::sync::Arc;

use weft_protocol::table::{CommandId, policy};
use weft_store::Keyspace;

use super::Seen;
use super::definition::{Action, Trigger, kind};
use crate::args::command_id;
use crate::program::stored::{Programs, Stored};

/// What a trigger of this form does.
pub(crate) struct Direct {
    pub(crate) trigger: Arc<Trigger>,
    pub(crate) stored: Arc<Stored>,
    /// At which version of all programs.
    version: u64,
    pub(crate) id: CommandId,
    /// Of its key.
    pub(crate) hash: u64,
    /// It is INCR.
    pub(crate) increments: bool,
}

impl Direct {
    fn of(
        (programs, keyspace): (&Programs, &Keyspace),
        trigger: &Arc<Trigger>,
        seen: &Seen,
        version: u64,
    ) -> Option<Box<Self>> {
        if trigger.when.is_some() || !matches!(trigger.action, Action::Inside(_)) {
            return None;
        }
        let stored = trigger.program(programs)?;
        let command = stored.program.direct.as_ref()?.args();
        // What it writes fires nothing; so it is not the key that is set.
        if seen.last().has(command.bytes(1)) {
            return None;
        }
        let id = command_id(&command);
        let hash = keyspace.key(command.bytes(1)).hash();
        let increments = command.spec.policy & policy::INCREMENTS != 0;
        Some(Box::new(Self { trigger: Arc::clone(trigger), stored, version, id, hash, increments }))
    }
}

impl Seen {
    /// What the one trigger does that a SET of a key fires, if it is of this form and `may` run. It is [put
    /// back](Self::put_direct_back) behind its run.
    #[inline]
    pub(crate) fn take_direct(
        &mut self,
        (programs, keyspace): (&Programs, &Keyspace),
        (db, key): (u8, &[u8]),
        may: impl FnOnce(&Trigger) -> bool,
    ) -> Option<Box<Direct>> {
        let mut found = self.last().find(db, key, kind::SET);
        let (trigger, None) = (found.next()?, found.next()) else { return None };
        if found.is_cut() || !may(trigger) {
            return None;
        }
        let version = programs.version();
        let is_its = |direct: &Direct| direct.version == version && Arc::ptr_eq(&direct.trigger, trigger);
        if self.direct.as_deref().is_some_and(is_its) {
            return self.direct.take();
        }
        Direct::of((programs, keyspace), trigger, self, version)
    }
    /// For the next one.
    #[inline]
    pub(crate) fn put_direct_back(&mut self, direct: Box<Direct>) {
        self.direct = Some(direct);
    }
}

impl std::fmt::Debug for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Direct").field("trigger", &self.trigger.name).finish_non_exhaustive()
    }
}
