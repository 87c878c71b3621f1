//! Owns: users, what they may do, and who a client is. Does not own: when rights are asked for (the dispatcher does,
//! when a command is queued and when it runs), the ACL commands.
//!
//! A [`User`] is never changed: ACL SETUSER puts a new one in its place and raises an epoch, which every request
//! compares with its session's (one relaxed load), so that a change holds from a session's next request on. The
//! number that a user got when its name was created tells a user that was deleted and made again from the old one.

mod describe;
mod file;
mod log;
mod rules;
mod selector;

use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use weft_protocol::table::{COMMANDS, CommandId, CommandSpec};

pub use log::{LogEntry, LogPlace};
pub use rules::RuleError;
pub(crate) use rules::{category, command};
use selector::PlainRights;
pub use selector::{Denied, Reason, Selector};

use crate::args::{Args, Composed, Texts};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, full_name};
use crate::mailbox::Kill;
use crate::session::Session;

/// SHA-256 of a password.
type Hash = [u8; 32];

/// The name of the user that clients have before they authenticate.
pub const DEFAULT_USER: &str = "default";

fn hash(password: &[u8]) -> Hash {
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
    enabled: bool,
    nopass: bool,
    passwords: Vec<Hash>,
    /// The root first; a request must be allowed by one of them.
    selectors: Vec<Selector>,
    /// What the root allows, in a form that takes little time; nothing where it has none.
    plain: PlainRights,
    serial: u64,
}

impl User {
    /// A new user: switched off, without passwords and rights.
    fn new(name: &str, all_channels: bool) -> Self {
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
    /// The default user, as it is at the start: it may do everything and needs no password.
    fn new_default() -> Self {
        let mut user = Self::new(DEFAULT_USER, true);
        for rule in ["on", "nopass", "~*", "&*", "+@all"] {
            user.apply(rule.as_bytes(), true).expect("these are rules");
        }
        user
    }

    fn root_mut(&mut self) -> &mut Selector {
        &mut self.selectors[0]
    }
    pub(crate) fn root(&self) -> &Selector {
        &self.selectors[0]
    }
    /// Its rules are what they are to be: notes what follows from them.
    fn note_rights(&mut self) {
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
    fn is_open(&self) -> bool {
        self.nopass && self.enabled
    }
    /// Whether somebody who says this password may be this user. Takes the same time whichever password it is.
    fn accepts(&self, password: &[u8]) -> bool {
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
    users: RwLock<BTreeMap<Box<str>, Arc<User>>>,
    /// Raised with every change of a user.
    epoch: AtomicU64,
    next_serial: AtomicU64,
    /// Changes are made one at a time: each works on a copy of what it replaces.
    changing: Mutex<()>,
    log: Mutex<log::Log>,
    /// `acllog-max-len`.
    pub log_len_max: AtomicUsize,
    /// `acl-pubsub-default allchannels`: new users may use every channel.
    pub new_users_have_all_channels: AtomicBool,
    /// `aclfile`.
    pub file: Mutex<Option<PathBuf>>,
    denials: [AtomicU64; 5],
    /// Accepts nothing, and takes as long for it as a user does.
    nobody: User,
}

impl Default for Acl {
    fn default() -> Self {
        let user = Arc::new(User { all: true, ..User::new_default() });
        Self {
            users: RwLock::new(BTreeMap::from([(DEFAULT_USER.into(), user)])),
            epoch: AtomicU64::new(0),
            next_serial: AtomicU64::new(1),
            changing: Mutex::new(()),
            log: Mutex::default(),
            log_len_max: AtomicUsize::new(128),
            new_users_have_all_channels: AtomicBool::new(false),
            file: Mutex::new(None),
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

impl Engine {
    /// Who has this name and password; otherwise an entry in ACL LOG.
    pub(crate) fn authenticate(
        &self,
        session: &mut Session,
        name: &[u8],
        password: &[u8],
        (args, now_ms): (&Args<'_>, u64),
    ) -> Result<(), Error> {
        let user = self.acl.user(name);
        // Who has no such user takes as long to say so as who has: one is asked all the same, who accepts nothing.
        let accepts = user.as_deref().unwrap_or(&self.acl.nobody).accepts(password);
        if let Some(user) = user.filter(|_| accepts) {
            session.set_user(user);
            return Ok(());
        }
        let denied = Denied { reason: Reason::Auth, index: 0 };
        self.log_denied(session, args, denied, LogPlace::of(session), (now_ms, Some(name)));
        Err(ErrorCode::WrongPass.into())
    }

    /// Who shows name and password with every request, as over HTTP: the session's user from now on. Without them it is
    /// the default user, as at first.
    pub fn sign_in(&self, session: &mut Session, who: Option<(&[u8], &[u8])>) -> Result<(), Error> {
        session.acl_epoch = self.acl.epoch();
        session.set_user(self.acl.default_user());
        session.authenticated = !self.settings.auth_required.load(Relaxed);
        let result = who.map_or(Ok(()), |(name, password)| {
            let texts = Texts::default();
            let args = Args::new(Self::sign_in_spec(), (&[], false, 0), (&[], &[], &texts));
            self.authenticate(session, name, password, (&args, self.clock.now_ms()))
        });
        session.look();
        result
    }
    /// Whether these would be taken now, as [`sign_in`](Self::sign_in) takes them. Nothing is noted in ACL LOG.
    pub fn would_sign_in(&self, who: Option<(&[u8], &[u8])>) -> bool {
        match who {
            Some((name, password)) => self.acl.user(name).is_some_and(|user| user.accepts(password)),
            None => !self.settings.auth_required.load(Relaxed),
        }
    }
    /// The command that it stands for, in ACL LOG.
    fn sign_in_spec() -> &'static CommandSpec {
        weft_protocol::table::by_name(b"AUTH").expect("the table has it").spec()
    }

    /// The user that a client's certificate names: the session's from now on, if there is one that is switched on.
    pub fn authenticate_by_certificate(&self, session: &mut Session, name: &[u8]) -> bool {
        let user = self.acl.user(name).filter(|user| user.enabled);
        let is_there = user.is_some();
        if let Some(user) = user {
            session.set_user(user);
        }
        is_there
    }

    /// The same, if users have changed since.
    pub fn keep_user(&self, session: &mut Session) {
        if session.acl_epoch != self.acl.epoch() {
            self.refresh_user(session);
        }
    }

    /// Whether the session's user, as it is by now, may run a command that has no keys. Nothing is noted in ACL LOG.
    pub fn still_may(&self, session: &mut Session, name: &[u8]) -> bool {
        self.keep_user(session);
        let Some(id) = weft_protocol::table::by_name(name) else { return false };
        let mut composed = Composed::default();
        composed.push(name);
        let args = composed.args(id.spec());
        session.user.check(&args, session.db, self.keyspace.database_count()).is_ok()
    }

    /// Gives a session the user that its user's name stands for by now.
    #[cold]
    pub(crate) fn refresh_user(&self, session: &mut Session) {
        session.acl_epoch = self.acl.epoch();
        match self.acl.user(session.user.name.as_bytes()) {
            Some(user) if user.serial == session.user.serial => {
                let authenticated = session.authenticated;
                session.set_user(user);
                session.authenticated = authenticated;
            }
            // Deleted: the message that closes the client is on its way.
            _ => {
                let nobody = User { serial: session.user.serial, ..User::new(&session.user.name, false) };
                session.set_user(Arc::new(nobody));
                session.authenticated = false;
            }
        }
    }

    /// Whether the session's user may run a command now; what is denied is noted in ACL LOG.
    pub(crate) fn check_acl(
        &self,
        session: &Session,
        args: &Args<'_>,
        place: LogPlace,
        now_ms: u64,
    ) -> Result<(), Error> {
        if session.user.all {
            return Ok(());
        }
        let count = self.keyspace.database_count();
        let Err(denied) = session.user.check(args, session.next_db(), count) else { return Ok(()) };
        self.log_denied(session, args, denied, place, (now_ms, None));
        Err(Error::new(ErrorCode::NoPerm, denied.text(&session.user, args, false)))
    }

    /// The same when EXEC runs what was queued: rights may have changed since.
    #[inline]
    pub(crate) fn check_acl_again(
        &self,
        session: &mut Session,
        args: &Args<'_>,
        now_ms: u64,
    ) -> Result<(), Error> {
        if session.acl_epoch != self.acl.epoch() {
            self.refresh_user(session);
        }
        if session.user.all {
            return Ok(());
        }
        let Err(denied) = session.user.check(args, session.db, self.keyspace.database_count()) else {
            return Ok(());
        };
        self.log_denied(session, args, denied, LogPlace::Multi, (now_ms, None));
        let reason = match denied.reason {
            Reason::Command => "no permission to execute the command or subcommand",
            Reason::Key => "no permission to touch the specified keys",
            Reason::Channel => "no permission to access one of the channels used as arguments",
            Reason::Database | Reason::Auth => "no permission",
        };
        Err(Error::new(
            ErrorCode::NoPerm,
            format!(
                "ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
                 command is no longer allowed for the following reason: {reason}"
            ),
        ))
    }

    /// The same for a request that has waited, before it is run again.
    pub(crate) fn check_acl_of_blocked(
        &self,
        session: &mut Session,
        args: &Args<'_>,
        now_ms: u64,
    ) -> Result<(), Error> {
        if session.acl_epoch != self.acl.epoch() {
            self.refresh_user(session);
        }
        self.check_acl(session, args, LogPlace::TopLevel, now_ms)
    }

    /// Whether a session that has not authenticated must: not when the default user is open by now.
    #[cold]
    pub(crate) fn needs_auth(&self, session: &Session) -> bool {
        self.settings.auth_required.load(Relaxed) || *session.user.name != *DEFAULT_USER
    }

    /// ACL SETUSER: a user gets these rules on top of those that it has, all or none of them.
    pub fn set_user(&self, name: &[u8], rules: &[&[u8]]) -> Result<(), String> {
        if rules::has_spaces(name) {
            return Err("Usernames can't contain spaces or null characters".into());
        }
        let Ok(name) = std::str::from_utf8(name) else { return Err("Usernames must be UTF-8".into()) };
        rules::check_count(rules)?;
        let words = rules::merge(rules)
            .map_err(|word| format!("Unmatched parenthesis in acl selector starting at '{word}'."))?;
        let _changing = self.acl.changing.lock();
        let old = self.acl.user(name.as_bytes());
        let mut user = match &old {
            Some(old) => User::clone(old),
            None => self.new_user(name),
        };
        for word in &words {
            user.apply(word, self.new_users_use_all_channels()).map_err(|error| {
                let word = String::from_utf8_lossy(word);
                format!("Error in ACL SETUSER modifier '{word}': {}", error.text())
            })?;
        }
        user.check_size().map_err(|error| error.text().to_owned())?;
        self.install(user);
        Ok(())
    }

    /// A `user` line of a configuration file: the user has these rules and no others.
    pub fn define_user(&self, name: &[u8], rules: &[&[u8]]) -> Result<(), String> {
        if self.acl.user(name).is_some_and(|user| *user.name != *DEFAULT_USER) {
            return Err("Duplicate user found. A user can only be defined once in config files".into());
        }
        let rules: Vec<&[u8]> = std::iter::once(&b"reset"[..]).chain(rules.iter().copied()).collect();
        self.set_user(name, &rules)
    }

    /// `requirepass`: the default user's only password; none for no password at all.
    pub fn set_default_password(&self, password: Option<&[u8]>) {
        let _changing = self.acl.changing.lock();
        let mut user = User::clone(&self.acl.default_user());
        user.passwords = password.map(hash).into_iter().collect();
        user.nopass = password.is_none();
        self.install(user);
    }

    fn new_users_use_all_channels(&self) -> bool {
        self.acl.new_users_have_all_channels.load(Relaxed)
    }
    fn new_user(&self, name: &str) -> User {
        let serial = self.acl.next_serial.fetch_add(1, Relaxed);
        User { serial, ..User::new(name, self.new_users_use_all_channels()) }
    }

    /// Puts a user in the place of what has its name.
    fn install(&self, mut user: User) {
        user.note_rights();
        let user = Arc::new(user);
        if *user.name == *DEFAULT_USER {
            self.settings.auth_required.store(!user.is_open(), Relaxed);
        }
        self.acl.users.write().insert(user.name.clone(), Arc::clone(&user));
        self.acl.epoch.fetch_add(1, Relaxed);
        self.close_forbidden_subscribers(&user);
    }

    /// ACL DELUSER: says whether there was such a user. Its clients are closed.
    pub(crate) fn delete_user(&self, name: &[u8]) -> bool {
        let _changing = self.acl.changing.lock();
        let Ok(name) = std::str::from_utf8(name) else { return false };
        let removed = self.acl.users.write().remove(name);
        self.acl.epoch.fetch_add(1, Relaxed);
        removed.inspect(|user| self.close_clients_of(user)).is_some()
    }

    fn close_clients_of(&self, user: &User) {
        for info in self.clients.all() {
            let its = info.user.lock().serial == user.serial;
            if its {
                self.kill(&info, Kill::User);
            }
        }
    }

    /// Closes clients of a user that are subscribed to what it may not use any more.
    fn close_forbidden_subscribers(&self, user: &User) {
        if user.all || user.root().all_channels {
            return;
        }
        for who in self.pubsub.subscribers_where(|name, is_pattern| !user.allows_channel(name, is_pattern)) {
            if let Some(info) = self.clients.get(who.client)
                && info.user.lock().serial == user.serial
            {
                self.kill(&info, Kill::User);
            }
        }
    }
}
