//! Owns: one set of rights: which commands, keys, channels and databases; and the question whether a request keeps to
//! it. Does not own: the text of rules (`super::rules`), users.

use std::collections::BTreeSet;
use weft_protocol::table::{COMMANDS, CommandId, KeySpec, acl, flag, key_flag, policy};

use crate::args::{Args, command_id};
use crate::{glob, keys};

/// Words of a set of commands.
const WORDS: usize = 16;

/// A set of commands of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct CommandSet([u64; WORDS]);

impl CommandSet {
    pub(super) const ALL: Self = Self([u64::MAX; WORDS]);

    pub(super) fn has(&self, id: CommandId) -> bool {
        self.0[usize::from(id.0) / 64] & 1 << (id.0 % 64) != 0
    }
    pub(super) fn put(&mut self, id: CommandId, on: bool) {
        let (word, bit) = (&mut self.0[usize::from(id.0) / 64], 1 << (id.0 % 64));
        *word = if on { *word | bit } else { *word & !bit };
    }
}

/// Read access to keys.
pub(super) const READ: u8 = 1;
/// Write access to keys.
pub(super) const WRITE: u8 = 2;

/// Keys that may be read, written or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPattern {
    pub(super) access: u8,
    pub(super) pattern: Box<[u8]>,
}

/// Which part of a set of rights forbids a request. A later one is preferred to an earlier one as the reason that is
/// told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The database.
    Database,
    /// The command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
    /// Not a request: AUTH failed.
    Auth,
}

/// Why a request is forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// What forbids it.
    pub reason: Reason,
    /// The argument at fault; 0 for the command as a whole.
    pub index: usize,
}

/// A set of rights. A user has one at least, the root; a request must be allowed by any one of them as a whole.
#[derive(Clone, Debug)]
pub struct Selector {
    /// `+@all` is in force and nothing was taken away since.
    pub(super) all_commands: bool,
    /// The rules began with `+@all`: what is not named is allowed.
    pub(super) begins_with_all: bool,
    pub(super) commands: CommandSet,
    /// `+select|0`, `+program|run|sell`: commands that are allowed with this first argument only.
    pub(super) first_args: Vec<(CommandId, Box<[u8]>)>,
    /// Rules about commands behind the first `±@all`, in order.
    pub(super) rules: Vec<String>,
    pub(super) all_keys: bool,
    pub(super) keys: Vec<KeyPattern>,
    pub(crate) all_channels: bool,
    pub(super) channels: Vec<Box<[u8]>>,
    /// `None`: all of them.
    pub(super) dbs: Option<BTreeSet<u32>>,
}

/// What a set of rights allows, as far as that is quickly said: what is not allowed by it may still be.
#[derive(Clone, Debug, Default)]
pub(super) struct PlainRights {
    commands: CommandSet,
    prefixes: Vec<Box<[u8]>>,
}

impl PlainRights {
    #[inline]
    pub(super) fn allow(&self, id: CommandId) -> bool {
        self.commands.has(id)
    }
    #[inline]
    pub(super) fn allow_key(&self, key: &[u8]) -> bool {
        self.prefixes.iter().any(|prefix| key.starts_with(prefix))
    }
}

impl Selector {
    /// One that allows nothing, in any database.
    pub(super) fn new(all_channels: bool) -> Self {
        const { assert!(WORDS * 64 > 1000) };
        debug_assert!(COMMANDS.len() <= WORDS * 64, "the set has a bit for each command");
        Self {
            all_commands: false,
            begins_with_all: false,
            commands: CommandSet::default(),
            first_args: Vec::new(),
            rules: Vec::new(),
            all_keys: false,
            keys: Vec::new(),
            all_channels,
            channels: Vec::new(),
            dbs: None,
        }
    }

    /// The rights in a form that takes little time, if they have one: all databases, and keys by what they begin with.
    pub(super) fn plain(&self) -> Option<PlainRights> {
        let begins = |key: &KeyPattern| {
            let (star, literal) = key.pattern.split_last()?;
            let is_plain = *star == b'*' && !literal.iter().any(|byte| b"*?[\\".contains(byte));
            (is_plain && key.access == READ | WRITE).then(|| literal.into())
        };
        let prefixes = if self.all_keys {
            vec![[].into()]
        } else {
            self.keys.iter().map(begins).collect::<Option<_>>()?
        };
        let commands = if self.all_commands { CommandSet::ALL } else { self.commands };
        self.dbs.is_none().then_some(PlainRights { commands, prefixes })
    }

    /// Whether nothing need be checked.
    pub(super) fn allows_all(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels && self.dbs.is_none()
    }

    /// Whether a request keeps to the rights, in a database of a server that has so many.
    pub(super) fn check(&self, args: &Args<'_>, db: u8, db_count: usize) -> Result<(), Denied> {
        self.check_database(args, db, db_count)?;
        self.check_command(args)?;
        if !self.all_keys {
            self.check_keys(args)?;
        }
        if !self.all_channels {
            self.check_channels(args)?;
        }
        Ok(())
    }

    fn check_database(&self, args: &Args<'_>, db: u8, db_count: usize) -> Result<(), Denied> {
        let Some(dbs) = &self.dbs else { return Ok(()) };
        let spec = args.spec;
        let denied = |index| Err(Denied { reason: Reason::Database, index });
        let named = named_databases(args);
        for &index in &named {
            // What is no database of this server is the command's own error.
            let db = args.int(index).ok().and_then(|db| u32::try_from(db).ok());
            if db.is_some_and(|db| (db as usize) < db_count && !dbs.contains(&db)) {
                return denied(index);
            }
        }
        let is_key = |spec: &KeySpec| spec.flags & key_flag::NOT_KEY == 0;
        let has_keys = spec.key_specs.iter().any(is_key);
        let names_databases = !named.is_empty() || spec.policy & (policy::DB_FIRST | policy::DB_BOTH) != 0;
        let restricted = if names_databases {
            has_keys && !dbs.contains(&db.into())
        } else if spec.flags & flag::ALL_DBS != 0 {
            !(0..db_count as u32).all(|db| dbs.contains(&db))
        } else {
            (spec.acl & (acl::KEYSPACE | acl::READ | acl::WRITE) != 0 || has_keys)
                && !dbs.contains(&db.into())
        };
        if restricted { denied(0) } else { Ok(()) }
    }

    fn check_command(&self, args: &Args<'_>) -> Result<(), Denied> {
        if self.all_commands || args.spec.flags & flag::NO_AUTH != 0 {
            return Ok(());
        }
        let id = command_id(args);
        let is_named = args.spec.policy & policy::RULE_BY_NAME != 0;
        let first = |&(command, ref first): &(CommandId, Box<[u8]>)| {
            command == id
                && match is_named {
                    true => args.len() > 2 && args.bytes(2) == &**first,
                    false => args.len() > 1 && args.bytes(1).eq_ignore_ascii_case(first),
                }
        };
        if self.commands.has(id) || self.first_args.iter().any(first) {
            return Ok(());
        }
        Err(Denied { reason: Reason::Command, index: 0 })
    }

    fn check_keys(&self, args: &Args<'_>) -> Result<(), Denied> {
        let mut denied = None;
        keys::each_with_flags(args, |index, flags| {
            if denied.is_none() && !self.allows_key(args.bytes(index), access(flags)) {
                denied = Some(Denied { reason: Reason::Key, index });
            }
        });
        denied.map_or(Ok(()), Err)
    }

    /// Whether a key may be read, written or both.
    /// Whether a command is allowed with some arguments at least.
    pub(super) fn allows_some(&self, id: CommandId) -> bool {
        self.commands.has(id) || self.first_args.iter().any(|(other, _)| *other == id)
    }
    pub(super) fn allows_key(&self, key: &[u8], access: u8) -> bool {
        self.all_keys
            || self
                .keys
                .iter()
                .any(|other| other.access & access == access && glob::matches(&other.pattern, key))
    }

    /// Whether keys of a database may be used.
    pub(super) fn allows_db(&self, db: u8) -> bool {
        self.dbs.as_ref().is_none_or(|dbs| dbs.contains(&db.into()))
    }

    /// Whether every key may be read.
    pub(super) fn reads_every_key(&self) -> bool {
        self.all_keys || self.keys.iter().any(|other| other.access & READ != 0 && *other.pattern == *b"*")
    }

    fn check_channels(&self, args: &Args<'_>) -> Result<(), Denied> {
        let Some((places, is_pattern)) = channels(args) else { return Ok(()) };
        match places.into_iter().find(|&index| !self.allows_channel(args.bytes(index), is_pattern)) {
            Some(index) => Err(Denied { reason: Reason::Channel, index }),
            None => Ok(()),
        }
    }

    /// Whether a channel may be used; a pattern of PSUBSCRIBE must be allowed literally.
    pub(super) fn allows_channel(&self, name: &[u8], is_pattern: bool) -> bool {
        let allows = |pattern: &[u8]| if is_pattern { pattern == name } else { glob::matches(pattern, name) };
        self.all_channels || self.channels.iter().any(|pattern| allows(pattern))
    }
}

/// The access that a key's flags ask for. A key that is neither read nor written (its mere existence is asked for)
/// needs none but must match a pattern.
fn access(flags: u16) -> u8 {
    let read = if flags & key_flag::ACCESS != 0 { READ } else { 0 };
    let write = if flags & (key_flag::INSERT | key_flag::DELETE | key_flag::UPDATE) != 0 { WRITE } else { 0 };
    read | write
}

/// The channels that a command publishes to or subscribes to, and whether they are patterns.
fn channels(args: &Args<'_>) -> Option<(std::ops::Range<usize>, bool)> {
    match args.spec.policy {
        policy if policy & policy::CHANNELS_EACH != 0 => Some((1..args.len(), false)),
        policy if policy & policy::PATTERNS_EACH != 0 => Some((1..args.len(), true)),
        policy if policy & policy::CHANNEL_FIRST != 0 => Some((1..2, false)),
        _ => None,
    }
}

/// The arguments that name a database other than the session's.
fn named_databases(args: &Args<'_>) -> Vec<usize> {
    match args.spec.policy {
        policy if policy & policy::DB_FIRST != 0 => vec![1],
        policy if policy & policy::DB_BOTH != 0 => vec![1, 2],
        policy if policy & policy::DB_SECOND != 0 => vec![2],
        policy if policy & policy::DB_OPTIONS != 0 => optional_databases(args),
        _ => Vec::new(),
    }
}

/// Every database that options name: the last one counts, and of those before it a user may not learn either.
fn optional_databases(args: &Args<'_>) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), 3);
    while at < args.len() {
        if args.is(at, "DB") && at + 1 < args.len() {
            at += 1;
            found.push(at);
        }
        at += 1;
    }
    found
}
