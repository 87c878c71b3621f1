//! Owns: users and what they may do. Does not own: who a client is and asking for its rights (`crate::access`), the
//! ACL commands.
//!
//! A [`User`] is never changed: ACL SETUSER puts a new one in its place and raises an epoch, which every request
//! compares with its session's (one relaxed load), so that a change holds from a session's next request on. The
//! number that a user got when its name was created tells a user that was deleted and made again from the old one.

mod describe;
mod log;
pub(crate) mod rules;
mod selector;

use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use weft_protocol::table::{COMMANDS, CommandId};

pub use log::{LogEntry, LogPlace};
pub use rules::RuleError;
pub(crate) use rules::{category, command};
use selector::PlainRights;
pub use selector::{Denied, Reason, Selector};

use crate::args::Args;
use crate::error::{Error, ErrorCode, Result, full_name};

/// SHA-256 of a password.
pub(crate) type Hash = [u8; 32];

/// The name of the user that clients have before they authenticate.
pub const DEFAULT_USER: &str = "default";

pub(crate) fn hash(password: &[u8]) -> Hash {
    Sha256::digest(password).into()
}

/// Whether two hashes are the same, in a time that does not depend on where they differ.
fn same(one: &Hash, other: &Hash) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    std::hint::black_box(differing) == 0
}

/// A user.
#[derive(Clone, Debug)]
pub struct User {
    /// Its name.
    pub name: Box<str>,
    /// Whether it may do everything, so that nothing need be checked.
    pub all: bool,
    pub(crate) enabled: bool,
    pub(crate) nopass: bool,
    pub(crate) passwords: Vec<Hash>,
    /// The root first; a request must be allowed by one of them.
    selectors: Vec<Selector>,
    /// What the root allows, in a form that takes little time; nothing where it has none.
    plain: PlainRights,
    pub(crate) serial: u64,
}

impl User {
    /// A new user: switched off, without passwords and rights.
    pub(crate) fn new(name: &str, all_channels: bool) -> Self {
        Self {
            name: name.into(),
            all: false,
            enabled: false,
            nopass: false,
            passwords: Vec::new(),
            selectors: vec![Selector::new(all_channels)],
            plain: PlainRights::default(),
            serial: 0,
        }
    }
    /// The same with another number: what tells it from one of its name that there was before.
    pub(crate) fn with_serial(self, serial: u64) -> Self {
        Self { serial, ..self }
    }
    /// The default user, as it is at the start: it may do everything and needs no password.
    pub(crate) fn new_default() -> Self {
        let mut user = Self::new(DEFAULT_USER, true);
        for rule in ["on", "nopass", "~*", "&*", "+@all"] {
            user.apply(rule.as_bytes(), true).expect("these are rules");
        }
        user
    }
    /// The server itself, which may do everything.
    pub(crate) fn of_server() -> Arc<Self> {
        Arc::new(Self { all: true, ..Self::new_default() })
    }

    fn root_mut(&mut self) -> &mut Selector {
        &mut self.selectors[0]
    }
    pub(crate) fn root(&self) -> &Selector {
        &self.selectors[0]
    }
    /// Its rules are what they are to be: notes what follows from them.
    pub(crate) fn note_rights(&mut self) {
        self.all = self.selectors.iter().any(Selector::allows_all);
        self.plain = self.root().plain().unwrap_or_default();
    }
    /// Sets of rights beside the root.
    pub(crate) fn more(&self) -> &[Selector] {
        &self.selectors[1..]
    }
    pub(crate) fn passwords(&self) -> impl Iterator<Item = String> {
        self.passwords.iter().map(describe::hex)
    }
    /// Whether every password is right.
    pub(crate) fn is_nopass(&self) -> bool {
        self.nopass
    }
    /// Whether clients are this user without AUTH, if it is the default one.
    pub(crate) fn is_open(&self) -> bool {
        self.nopass && self.enabled
    }
    /// Whether somebody who says this password may be this user. Takes the same time whichever password it is.
    pub(crate) fn accepts(&self, password: &[u8]) -> bool {
        let hash = hash(password);
        let known = self.passwords.iter().fold(false, |known, other| known | same(&hash, other));
        self.enabled && (self.nopass || known)
    }

    /// Whether the user may run a command in any database, as far as that is quickly said: a command without channels,
    /// whose keys [may be used](Self::allows_key_plainly). `false` says nothing.
    #[inline]
    pub(crate) fn allows_plainly(&self, id: CommandId) -> bool {
        self.plain.allow(id)
    }
    /// Whether such a command may read and write a key. `false` says nothing.
    #[inline]
    pub(crate) fn allows_key_plainly(&self, key: &[u8]) -> bool {
        self.plain.allow_key(key)
    }
    /// Whether the user may send messages to a channel by a command that has nothing else. `false` says nothing.
    #[inline]
    pub(crate) fn allows_message_plainly(&self, id: CommandId, channel: &[u8]) -> bool {
        self.plain.allow(id) && self.root().allows_channel(channel, false)
    }
    /// Whether the user may run this command with these arguments in a database.
    pub fn check(&self, args: &Args<'_>, db: u8, db_count: usize) -> Result<(), Denied> {
        let mut worst: Option<Denied> = None;
        for selector in &self.selectors {
            match selector.check(args, db, db_count) {
                Ok(()) => return Ok(()),
                Err(denied) => {
                    let prefer = |worst: Denied| (denied.reason, denied.index) > (worst.reason, worst.index);
                    if worst.is_none_or(prefer) {
                        worst = Some(denied);
                    }
                }
            }
        }
        worst.map_or(Ok(()), Err)
    }
    /// The commands that the user may run with some arguments at least, by their full names. Nobody is told what else
    /// there is: on which keys, the server says when they are asked for.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        let allows =
            |id: &CommandId| self.all || self.selectors.iter().any(|selector| selector.allows_some(*id));
        let all = (0..COMMANDS.len()).map(|at| CommandId(at as u16));
        all.filter(allows).map(|id| full_name(id.spec())).collect()
    }
    /// Whether the user may use a channel; a pattern of PSUBSCRIBE must be allowed literally.
    #[must_use]
    pub fn allows_channel(&self, name: &[u8], is_pattern: bool) -> bool {
        self.all || self.selectors.iter().any(|selector| selector.allows_channel(name, is_pattern))
    }
    /// Whether the user may run this command and read every key with it: SORT's BY and GET make names that nothing can
    /// be checked against. One selector must allow both.
    #[must_use]
    pub fn reads_every_key(&self, args: &Args<'_>, db: u8, db_count: usize) -> bool {
        let allows =
            |selector: &Selector| selector.reads_every_key() && selector.check(args, db, db_count).is_ok();
        self.all || self.selectors.iter().any(allows)
    }
    /// Whether the user may read or write a key.
    #[must_use]
    pub fn allows_key(&self, key: &[u8], read: bool, write: bool) -> bool {
        let access = if read { selector::READ } else { 0 } | if write { selector::WRITE } else { 0 };
        self.all || self.selectors.iter().any(|selector| selector.allows_key(key, access))
    }
    /// Whether the user may read a key in a database.
    #[must_use]
    pub fn reads_key_in(&self, db: u8, key: &[u8]) -> bool {
        let allows = |selector: &Selector| selector.allows_db(db) && selector.allows_key(key, selector::READ);
        self.all || self.selectors.iter().any(allows)
    }
}

impl Denied {
    /// The text that a client sees; `verbose` names the key or channel, for ACL DRYRUN.
    #[must_use]
    pub fn text(self, user: &User, args: &Args<'_>, verbose: bool) -> String {
        let object = || String::from_utf8_lossy(args.bytes(self.index)).into_owned();
        let name = &user.name;
        match (self.reason, verbose) {
            (Reason::Command, _) => {
                format!("User {name} has no permissions to run the '{}' command", full_name(args.spec))
            }
            (Reason::Key, true) => format!("User {name} has no permissions to access the '{}' key", object()),
            (Reason::Channel, true) => {
                format!("User {name} has no permissions to access the '{}' channel", object())
            }
            (Reason::Database, true) => {
                format!("User {name} has no permissions to access database {}", object())
            }
            (Reason::Key, false) => "No permissions to access a key".into(),
            (Reason::Channel, false) => "No permissions to access a channel".into(),
            (Reason::Database, false) => "No permissions to access database".into(),
            (Reason::Auth, _) => ErrorCode::WrongPass.text().into(),
        }
    }
}

/// All users, and what was denied to them.
#[derive(Debug)]
pub struct Acl {
    pub(crate) users: RwLock<BTreeMap<Box<str>, Arc<User>>>,
    /// Raised with every change of a user.
    pub(crate) epoch: AtomicU64,
    pub(crate) next_serial: AtomicU64,
    /// Changes are made one at a time: each works on a copy of what it replaces.
    pub(crate) changing: Mutex<()>,
    pub(crate) log: Mutex<log::Log>,
    /// `acllog-max-len`.
    pub log_len_max: AtomicUsize,
    /// `acl-pubsub-default allchannels`: new users may use every channel.
    pub new_users_have_all_channels: AtomicBool,
    /// `aclfile`.
    pub file: Mutex<Option<PathBuf>>,
    /// Users that other files than the configuration file define: those that it includes, flags.
    pub elsewhere: Mutex<BTreeSet<Box<str>>>,
    pub(crate) denials: [AtomicU64; 5],
    /// Accepts nothing, and takes as long for it as a user does.
    pub(crate) nobody: User,
}

impl Default for Acl {
    fn default() -> Self {
        let user = User::of_server();
        Self {
            users: RwLock::new(BTreeMap::from([(DEFAULT_USER.into(), user)])),
            epoch: AtomicU64::new(0),
            next_serial: AtomicU64::new(1),
            changing: Mutex::new(()),
            log: Mutex::default(),
            log_len_max: AtomicUsize::new(128),
            new_users_have_all_channels: AtomicBool::new(false),
            file: Mutex::new(None),
            elsewhere: Mutex::default(),
            denials: Default::default(),
            nobody: User { passwords: vec![Hash::default()], ..User::new("", false) },
        }
    }
}

impl Acl {
    /// The number that changes whenever a user does.
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }
    /// A user by name.
    #[must_use]
    pub fn user(&self, name: &[u8]) -> Option<Arc<User>> {
        self.users.read().get(std::str::from_utf8(name).ok()?).cloned()
    }
    /// The user with whose rights something acts that he has stored, and who is called `whose` owner in the error if
    /// there is none of this name any more, or he is switched off.
    pub(crate) fn owner(&self, name: &str, whose: &str) -> Result<Arc<User>> {
        let why = match self.user(name.as_bytes()) {
            Some(user) if user.enabled => return Ok(user),
            Some(_) => "switched off",
            None => "no user any more",
        };
        Err(Error::new(ErrorCode::NoPerm, format!("{whose} owner '{name}' is {why}")))
    }
    /// All users, by name.
    #[must_use]
    pub fn users(&self) -> Vec<Arc<User>> {
        self.users.read().values().cloned().collect()
    }
    /// The user that clients have before they authenticate.
    #[must_use]
    pub fn default_user(&self) -> Arc<User> {
        let users = self.users.read();
        Arc::clone(users.get(DEFAULT_USER).expect("the default user cannot be deleted"))
    }
    /// How often something was denied for this reason, since the start: for INFO.
    #[must_use]
    pub fn denials(&self, reason: Reason) -> u64 {
        self.denials[reason as usize].load(Relaxed)
    }
}
