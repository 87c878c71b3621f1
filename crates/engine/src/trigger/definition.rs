//! Owns: a trigger: which changes fire it, and what it does. Does not own: finding it for a key (`super::index`).
//!
//! As it stands in the catalogue:
//! ```text
//!  0         8         9        11
//! +---------+---------+--------+----------+------------------+
//! | version | enabled | length | owner    | the definition   |
//! +---------+---------+--------+----------+------------------+
//!   u64       u8        u16
//! ```

use parking_lot::RwLock;
use std::sync::Arc;

use super::Figures;
use super::event::{self, member};
use super::parse::TriggerParts;
use crate::program::expr::Expr;
use crate::program::json::Json;
use crate::program::parse::Problem;
use crate::program::stored::{Programs, Stored};

/// Which changes fire a trigger, as bits.
pub mod kind {
    /// A key was written to.
    pub const SET: u8 = 1;
    /// A key was deleted.
    pub const DELETE: u8 = 2;
    /// A key's time had come.
    pub const EXPIRE: u8 = 4;
    /// A key had to go for memory.
    pub const EVICT: u8 = 8;
    /// Keys that went by themselves.
    pub const BY_ITSELF: u8 = EXPIRE | EVICT;
    /// All by their names.
    pub const NAMES: [(&str, u8); 4] =
        [("set", SET), ("delete", DELETE), ("expire", EXPIRE), ("evict", EVICT)];
    /// The name of one.
    #[must_use]
    pub fn name(kind: u8) -> &'static str {
        NAMES.iter().find(|(_, other)| *other == kind).map_or("", |(name, _)| name)
    }
}

/// What a trigger does.
#[derive(Debug)]
pub enum Action {
    /// Runs a stored program in the group of the change, whose failure fails the command.
    Inside(Box<[u8]>),
    /// Runs a stored program afterwards.
    After(Box<[u8]>),
    /// Appends the event to a stream, in the group of the change.
    Stream(Expr),
    /// Publishes the event, in the group of the change.
    Publish(Expr),
}

impl Action {
    /// Where it stands in the definition.
    pub(crate) const fn pointer(&self) -> &'static str {
        match self {
            Self::Inside(_) => "/inside",
            Self::After(_) => "/after",
            Self::Stream(_) => "/stream",
            Self::Publish(_) => "/publish",
        }
    }
}

/// A trigger's program as it was when it was looked up last, at a version of all programs.
#[derive(Debug, Default)]
struct Link(RwLock<(u64, Option<Arc<Stored>>)>);

/// A trigger.
#[derive(Debug)]
pub struct Trigger {
    /// Its name.
    pub name: Box<[u8]>,
    /// How often a trigger of this name was stored or switched, since there is one.
    pub version: u64,
    /// Whether it fires.
    pub enabled: bool,
    /// Who has stored it: what it does has the owner's rights.
    pub owner: Box<str>,
    /// Its text.
    pub text: Arc<[u8]>,
    /// Which changes.
    pub on: u8,
    /// In which database; nothing for any.
    pub db: Option<u8>,
    /// Of which keys: a pattern.
    pub pattern: Box<[u8]>,
    /// What must hold of the event.
    pub when: Option<Expr>,
    /// What it does.
    pub action: Action,
    /// Places of its frame: the event has the first one.
    pub slots: usize,
    /// The [`member`]s of the event that it looks at, or hands on.
    pub reads: u8,
    /// Whether its own expressions may take long.
    pub long: bool,
    /// Bytes of memory that it takes.
    pub(crate) bytes: usize,
    link: Link,
    /// What has come of it.
    pub figures: Arc<Figures>,
}

/// A trigger that was read, and of what.
#[derive(Debug)]
pub(crate) struct Read {
    name: Box<[u8]>,
    text: Box<[u8]>,
    pub(super) trigger: Result<Trigger, Problem>,
}

impl Read {
    pub(crate) fn of(name: &[u8], text: &[u8]) -> Self {
        Self { name: name.into(), text: text.into(), trigger: Trigger::parse(name, text, (0, true, "")) }
    }
    pub(super) fn is_of(&self, name: &[u8], text: &[u8]) -> bool {
        *self.name == *name && *self.text == *text
    }
    pub(super) const fn text_bytes(&self) -> usize {
        self.text.len()
    }
}

/// Bytes of a definition.
pub const TRIGGER_BYTES_MAX: usize = 64 << 10;

impl Trigger {
    /// Whether what it does is the stored program of this name.
    #[must_use]
    pub fn runs(&self, program: &[u8]) -> bool {
        matches!(&self.action, Action::Inside(name) | Action::After(name) if **name == *program)
    }
    /// Reads a trigger.
    pub fn parse(
        name: &[u8],
        text: &[u8],
        (version, enabled, owner): (u64, bool, &str),
    ) -> Result<Self, Problem> {
        let root = |text: String| Problem { at: String::new(), text };
        if text.len() > TRIGGER_BYTES_MAX {
            return Err(root(format!("a trigger has {TRIGGER_BYTES_MAX} bytes at most")));
        }
        let json = Json::parse(text).map_err(root)?;
        let TriggerParts { on, db, pattern, when, action, slots } = TriggerParts::of(&json)?;
        let of_action = match &action {
            Action::Inside(_) | Action::After(_) => 0,
            Action::Stream(_) | Action::Publish(_) => member::ALL,
        };
        let long = when.is_some()
            || match &action {
                Action::Inside(_) | Action::After(_) => false,
                Action::Stream(to) | Action::Publish(to) => to.may_take_long(),
            };
        let action_bytes = match &action {
            Action::Inside(program) | Action::After(program) => program.len(),
            Action::Stream(to) | Action::Publish(to) => to.weight(),
        };
        // The text stands here and in the catalogue.
        let bytes = size_of::<Self>()
            + size_of::<Figures>()
            + 2 * (name.len() + text.len())
            + pattern.len()
            + when.as_ref().map_or(0, Expr::weight)
            + action_bytes;
        let reads = of_action | when.as_ref().map_or(0, event::members_of);
        Ok(Self {
            name: name.into(),
            version,
            enabled,
            owner: owner.into(),
            text: text.into(),
            on,
            db,
            pattern,
            when,
            action,
            slots,
            reads,
            long,
            bytes,
            link: Link::default(),
            figures: Arc::default(),
        })
    }
    /// As it stands in the catalogue.
    #[must_use]
    pub fn entry(&self) -> Vec<u8> {
        let mut entry = self.version.to_be_bytes().to_vec();
        entry.push(self.enabled.into());
        entry.extend_from_slice(&(self.owner.len() as u16).to_be_bytes());
        entry.extend_from_slice(self.owner.as_bytes());
        entry.extend_from_slice(&self.text);
        entry
    }
    /// From there.
    pub fn of_entry(name: &[u8], entry: &[u8]) -> Result<Self, String> {
        let cut = || "the entry is cut off".to_owned();
        let (version, rest) = entry.split_first_chunk().ok_or_else(cut)?;
        let (enabled, rest) = rest.split_first().ok_or_else(cut)?;
        let (len, rest) = rest.split_first_chunk().ok_or_else(cut)?;
        let (owner, text) = rest.split_at_checked(u16::from_be_bytes(*len).into()).ok_or_else(cut)?;
        let owner = std::str::from_utf8(owner).map_err(|_| "the owner is no text".to_owned())?;
        let of = (u64::from_be_bytes(*version), *enabled != 0, owner);
        Self::parse(name, text, of).map_err(|problem| problem.to_string())
    }
    /// The program that it runs, if it runs one and that is stored.
    #[must_use]
    pub fn program(&self, programs: &Programs) -> Option<Arc<Stored>> {
        let (Action::Inside(name) | Action::After(name)) = &self.action else { return None };
        let version = programs.version();
        {
            let link = self.link.0.read();
            if link.0 == version {
                return link.1.clone();
            }
        }
        let stored = programs.get(name);
        *self.link.0.write() = (version, stored.clone());
        stored
    }
    /// How it does it.
    #[must_use]
    pub const fn how(&self) -> &'static str {
        match self.action {
            Action::Inside(_) => "inside",
            Action::After(_) => "after",
            Action::Stream(_) | Action::Publish(_) => "tell",
        }
    }
}
