//! Owns: what a directive is: its name, the kind of its value, whether it may change while the server runs, and what
//! follows from it. Does not own: which there are (`super::table`), reading their values (`super::value`).

use weft_lua::Budget;
use weft_store::Keyspace;

use super::Settings;
use super::value::Value;
use super::web::Web;
use crate::acl::Acl;
use crate::special::Special;

/// What a value must look like, and how it is shown.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A whole number.
    Int {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// Access rights, in octal.
    Octal {
        /// The most.
        max: i64,
    },
    /// Bytes, with an optional unit (`100mb`).
    Memory {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// Bytes, or a percentage of `maxmemory`, which is kept as a negative number.
    MemoryOrPercent,
    /// One of these words.
    Enum(&'static [&'static str]),
    /// Some of these words; the first stands for none.
    Flags(&'static [&'static str]),
    /// Any text. Where the word is not empty, it names what must not be empty or a path.
    Text(&'static str),
    /// A folder that exists; it becomes the present one.
    Folder,
    /// Addresses.
    Addresses,
    /// `seconds changes …`, or nothing.
    SavePoints,
    /// `class hard soft seconds …`.
    OutputLimits,
    /// Three numbers.
    OomScores,
    /// Letters of [`crate::notify`].
    Events,
    /// Percentages.
    Percentiles,
    /// `host port`, or `no one`.
    Primary,
}

impl Kind {
    /// Whether a value may consist of several words.
    #[must_use]
    pub const fn takes_many(self) -> bool {
        matches!(
            self,
            Self::Flags(_)
                | Self::Addresses
                | Self::SavePoints
                | Self::OutputLimits
                | Self::OomScores
                | Self::Percentiles
                | Self::Primary
        )
    }
}

/// When a value may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At any time.
    Always,
    /// At the start only.
    AtStart,
    /// At any time, if `enable-protected-configs` allows it.
    Protected,
}

/// What directives act on.
pub struct Reach<'e> {
    /// What hot paths read.
    pub settings: &'e Settings,
    /// Pages and names over HTTP.
    pub web: &'e Web,
    /// All keys.
    pub keyspace: &'e Keyspace,
    /// Users.
    pub acl: &'e Acl,
    /// What must be asked for before a request runs.
    pub special: &'e Special,
    /// Memory of scripts.
    pub script_memory: &'e Budget,
    /// What has to be looked at again.
    pub then: &'e dyn Follow,
}

/// What others do when a setting of theirs has changed.
pub trait Follow {
    /// `requirepass`: the default user's only password; none for no password at all.
    fn set_default_password(&self, password: Option<&[u8]>);
    /// `appendonly`.
    fn follow_appendonly(&self, wanted: bool);
    /// `appendfsync`, as its place in [`SYNCS`](super::settings::SYNCS).
    fn follow_appendfsync(&self, place: u8);
    /// Whether writes are refused while snapshots fail.
    fn look_at_snapshots(&self);
    /// Whether keyspace events are wanted.
    fn look_at_events(&self);
    /// How many keys clients may track.
    fn trim_tracked(&self);
    /// What scripts find has changed: they are forgotten, with what they have compiled.
    fn forget_scripts(&self);
}

/// What follows from a new value.
pub type Apply = fn(&Reach<'_>, &Value);

/// What follows from a directive.
#[derive(Clone, Copy, Debug)]
pub enum Actor {
    /// The engine acts on it.
    Engine(Apply),
    /// The server acts on it: when it starts, or when it is told of a change.
    Server,
    /// The server acts on all of these together, once they are set: certificate and key of one CONFIG SET belong to
    /// each other.
    Tls,
    /// It is accepted, kept and shown; nothing follows.
    Kept,
}

/// One directive.
#[derive(Clone, Copy, Debug)]
pub struct Directive {
    /// Its name.
    pub name: &'static str,
    /// Its other name; empty for none.
    pub alias: &'static str,
    /// Its value.
    pub kind: Kind,
    /// Its value at first.
    pub default: &'static str,
    /// When it may change.
    pub change: Change,
    /// What follows.
    pub actor: Actor,
    /// The only values that are served yet, if not all are, and why.
    pub only: Option<(&'static [&'static str], &'static str)>,
    /// CONFIG GET shows it to those who know its name only.
    pub hidden: bool,
    /// Logs do not show its value.
    pub secret: bool,
}

impl Directive {
    /// By its name or alias.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        super::table::find(name.as_bytes()).map(|at| &super::table::DIRECTIVES[at])
    }
    pub(super) const fn new(name: &'static str, kind: Kind, default: &'static str) -> Self {
        Self {
            name,
            alias: "",
            kind,
            default,
            change: Change::Always,
            actor: Actor::Kept,
            only: None,
            hidden: false,
            secret: false,
        }
    }
    pub(super) const fn alias(self, alias: &'static str) -> Self {
        Self { alias, ..self }
    }
    pub(super) const fn at_start(self) -> Self {
        Self { change: Change::AtStart, ..self }
    }
    pub(super) const fn protected(self) -> Self {
        Self { change: Change::Protected, ..self }
    }
    pub(super) const fn acts(self, apply: Apply) -> Self {
        Self { actor: Actor::Engine(apply), ..self }
    }
    pub(super) const fn server(self) -> Self {
        Self { actor: Actor::Server, ..self }
    }
    pub(super) const fn tls(self) -> Self {
        Self { actor: Actor::Tls, ..self }
    }
    pub(super) const fn only(self, values: &'static [&'static str], why: &'static str) -> Self {
        Self { only: Some((values, why)), ..self }
    }
    pub(super) const fn hidden(self) -> Self {
        Self { hidden: true, ..self }
    }
    pub(super) const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }
}

pub(super) const fn switch(name: &'static str, default: &'static str) -> Directive {
    Directive::new(name, Kind::Bool, default)
}
pub(super) const fn int(name: &'static str, (min, max): (i64, i64), default: &'static str) -> Directive {
    Directive::new(name, Kind::Int { min, max }, default)
}
pub(super) const fn memory(name: &'static str, (min, max): (i64, i64), default: &'static str) -> Directive {
    Directive::new(name, Kind::Memory { min, max }, default)
}
pub(super) const fn word(
    name: &'static str,
    words: &'static [&'static str],
    default: &'static str,
) -> Directive {
    Directive::new(name, Kind::Enum(words), default)
}
pub(super) const fn text(name: &'static str, default: &'static str) -> Directive {
    Directive::new(name, Kind::Text(""), default)
}
