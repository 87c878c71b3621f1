//! Owns: where users are kept: the ACL file, and without one the configuration file and the catalogue. Does not own:
//! the text form of users.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weft_store::Section;

use crate::acl::{DEFAULT_USER, RuleError, User, hash, rules};
use crate::config::rewrite::{UserLine, Users};
use crate::engine::Engine;
use crate::files;

/// Bytes of an ACL file that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What ACL LOAD and SAVE answer without `aclfile`.
pub(crate) const NO_FILE: &str = "This instance is not configured to use an ACL file. You may want to specify users \
                                  via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a \
                                  configuration file set) in order to store users in the configuration.";

impl Engine {
    /// Whether users are kept in a file.
    pub(crate) fn has_acl_file(&self) -> bool {
        self.acl.file.lock().is_some()
    }
    /// Users that a log or a snapshot has carried. The files of the operator go before: where there is `aclfile`, all
    /// users are its, and a user that the configuration defines is as it stands there. Says what could not be read.
    pub(crate) fn load_users(&self) -> Vec<String> {
        if self.has_acl_file() {
            return Vec::new();
        }
        let mut problems = Vec::new();
        let untouched = User::new_default().describe();
        for (name, rules) in self.keyspace.catalogue().entries(Section::Users) {
            let is_default = *name == *DEFAULT_USER.as_bytes();
            let defined = |user: Arc<User>| !is_default || user.describe() != untouched;
            if self.acl.user(&name).is_some_and(defined) {
                continue;
            }
            let words: Vec<&[u8]> =
                std::iter::once(&b"reset"[..]).chain(rules.split(|byte| *byte == b' ')).collect();
            if let Err(error) = self.set_user(&name, &words) {
                problems.push(format!("user {}: {error}", String::from_utf8_lossy(&name)));
            }
            if is_default && self.settings.auth_required.load(Relaxed) {
                // Whoever came meanwhile was taken for it without a password.
                self.close_clients_of(&self.acl.default_user());
            }
        }
        problems
    }

    /// CONFIG REWRITE: the file has the settings of now and, where there is no `aclfile`, the users of now, but for
    /// those that other files define. The default user has a line where `requirepass` does not say all of it.
    pub(crate) fn rewrite_config(&self, file: &Path) -> std::io::Result<()> {
        if self.has_acl_file() {
            return self.config.rewrite(file, None);
        }
        let elsewhere = self.acl.elsewhere.lock().clone();
        let untouched = {
            let values = self.config.values();
            let password = &*values.get("requirepass").text;
            let mut user = User::new_default();
            if !password.is_empty() {
                user.nopass = false;
                user.passwords = vec![hash(password)];
            }
            user.describe()
        };
        let lines = self.acl.users().into_iter().filter(|user| !elsewhere.contains(&user.name)).map(|user| {
            let rules = user.describe();
            let is_needed = *user.name != *DEFAULT_USER || rules != untouched;
            (user.name.clone(), UserLine { rules, is_needed })
        });
        let lines: BTreeMap<_, _> = lines.collect();
        let now: BTreeMap<_, _> =
            lines.iter().map(|(name, line)| (name.clone(), line.rules.clone())).collect();
        let is_so = |name: &str, rules: &[&[u8]]| {
            let mut user = User::new(name, self.new_users_use_all_channels());
            let reset = std::iter::once(&b"reset"[..]).chain(rules.iter().copied()).collect::<Vec<_>>();
            self.apply(&mut user, &reset).is_ok() && now.get(name).is_some_and(|now| *now == user.describe())
        };
        self.config.rewrite(file, Some(Users { lines, is_so: &is_so }))
    }

    /// ACL LOAD: all users are those of the file, or none changes. Clients of users that are gone are closed.
    pub fn load_acl_file(&self) -> Result<(), String> {
        let path = self.acl.file.lock().clone().ok_or(NO_FILE)?;
        let shown = path.display().to_string();
        let text =
            read(&path).map_err(|error| format!("Error loading ACLs, opening file '{shown}': {error}"))?;
        let _changing = self.acl.changing.lock();
        let mut users = BTreeMap::new();
        let mut errors = String::new();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let at = format!("{shown}:{}", index + 1);
            match self.user_of_line(line.trim_ascii(), &at, &users) {
                Ok(None) => {}
                Ok(Some(user)) => {
                    users.insert(user.name.clone(), user);
                }
                Err(error) => errors.push_str(&error),
            }
        }
        if !errors.is_empty() {
            errors.push_str(
                "WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
            );
            return Err(errors);
        }
        self.replace_users(users);
        Ok(())
    }

    fn user_of_line(
        &self,
        line: &[u8],
        at: &str,
        users: &BTreeMap<Box<str>, User>,
    ) -> Result<Option<User>, String> {
        if line.is_empty() {
            return Ok(None);
        }
        let mut words = line.split(|byte| *byte == b' ');
        let name = (words.next() == Some(b"user")).then(|| words.next()).flatten();
        let name =
            name.ok_or_else(|| format!("{at} should start with user keyword followed by the username. "))?;
        let shown = String::from_utf8_lossy(name);
        let name = std::str::from_utf8(name).ok().filter(|name| !rules::has_spaces(name.as_bytes()));
        let name = name.ok_or_else(|| format!("'{at}: username '{shown}' contains invalid characters. "))?;
        if users.contains_key(name) {
            let line = at.rsplit(':').next().unwrap_or_default();
            return Err(format!("WARNING: Duplicate user '{name}' found on line {line}. "));
        }
        let words: Vec<&[u8]> = words.collect();
        rules::check_count(&words).map_err(|why| format!("{at}: {why}. "))?;
        let words = rules::merge(&words)
            .map_err(|_| format!("{at}: Unmatched parenthesis in selector definition."))?;
        let mut user = self.new_user(name);
        if let Some(old) = self.acl.user(name.as_bytes()) {
            user.serial = old.serial;
        }
        let mut errors = String::new();
        let mut told = false;
        for word in &words {
            match user.apply(word.trim_ascii(), self.new_users_use_all_channels()) {
                Ok(()) => {}
                Err(error @ RuleError::Unknown) => {
                    let word = String::from_utf8_lossy(word);
                    errors
                        .push_str(&format!("{at}: Error in applying operation '{word}': {}. ", error.text()));
                }
                // The first one only: it may be why the others are wrong.
                Err(_) if told => {}
                Err(error) => {
                    told = true;
                    errors.push_str(&format!("{at}: {}. ", error.text()));
                }
            }
        }
        if let Err(error) = user.check_size() {
            errors.push_str(&format!("{at}: {}. ", error.text()));
        }
        if errors.is_empty() { Ok(Some(user)) } else { Err(errors) }
    }

    fn replace_users(&self, mut users: BTreeMap<Box<str>, User>) {
        users.entry(DEFAULT_USER.into()).or_insert_with(User::new_default);
        let mut all = BTreeMap::new();
        for (name, mut user) in users {
            user.note_rights();
            all.insert(name, Arc::new(user));
        }
        self.settings.auth_required.store(!all[DEFAULT_USER].is_open(), Relaxed);
        let old = std::mem::replace(&mut *self.acl.users.write(), all);
        self.acl.epoch.fetch_add(1, Relaxed);
        for (name, user) in old {
            match self.acl.user(name.as_bytes()) {
                Some(new) => self.close_forbidden_subscribers(&new),
                None => self.close_clients_of(&user),
            }
        }
    }

    /// ACL SAVE: the file is replaced as a whole.
    pub fn save_acl_file(&self) -> Result<(), String> {
        let path = self.acl.file.lock().clone().ok_or(NO_FILE)?;
        let mut text = Vec::new();
        for user in self.acl.users() {
            text.extend_from_slice(format!("user {} ", user.name).as_bytes());
            text.extend_from_slice(&user.describe());
            text.push(b'\n');
        }
        files::replace(&path, &text).map_err(|_| {
            "There was an error trying to save the ACLs. Please check the server logs for more information".into()
        })
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > FILE_BYTES_MAX {
        return Err(std::io::Error::other("larger than 64 MiB"));
    }
    fs::read(path)
}
