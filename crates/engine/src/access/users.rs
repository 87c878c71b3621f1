//! Owns: changing users, and closing clients of those that may not stay. Does not own: the rules (`crate::acl`), ACL
//! LOAD and SAVE (`super::file`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::acl::{DEFAULT_USER, User, hash, rules};
use crate::engine::Engine;
use crate::forwards::SubscriptionKind;
use crate::mailbox::Kill;

impl Engine {
    /// ACL SETUSER: a user gets these rules on top of those that it has, all or none of them.
    pub fn set_user(&self, name: &[u8], rules: &[&[u8]]) -> Result<(), String> {
        if rules::has_spaces(name) {
            return Err("Usernames can't contain spaces or null characters".into());
        }
        let Ok(name) = std::str::from_utf8(name) else { return Err("Usernames must be UTF-8".into()) };
        let _changing = self.acl.changing.lock();
        let mut user = match self.acl.user(name.as_bytes()) {
            Some(old) => User::clone(&old),
            None => self.new_user(name),
        };
        self.apply(&mut user, rules)?;
        self.install(user);
        Ok(())
    }

    /// Gives a user these rules on top of those that it has. Where it fails it may have some of them.
    pub(super) fn apply(&self, user: &mut User, rules: &[&[u8]]) -> Result<(), String> {
        rules::check_count(rules)?;
        let words = rules::merge(rules)
            .map_err(|word| format!("Unmatched parenthesis in acl selector starting at '{word}'."))?;
        for word in &words {
            user.apply(word, self.new_users_use_all_channels()).map_err(|error| {
                let word = String::from_utf8_lossy(word);
                format!("Error in ACL SETUSER modifier '{word}': {}", error.text())
            })?;
        }
        user.check_size().map_err(|error| error.text().to_owned())
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

    pub(super) fn new_users_use_all_channels(&self) -> bool {
        self.acl.new_users_have_all_channels.load(Relaxed)
    }
    pub(super) fn new_user(&self, name: &str) -> User {
        let serial = self.acl.next_serial.fetch_add(1, Relaxed);
        User::new(name, self.new_users_use_all_channels()).with_serial(serial)
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

    pub(super) fn close_clients_of(&self, user: &User) {
        for info in self.clients.all() {
            let its = info.user.lock().serial == user.serial;
            if its {
                self.kill(&info, Kill::User);
            }
        }
    }

    /// Closes clients of a user that are subscribed to what it may not use any more.
    pub(super) fn close_forbidden_subscribers(&self, user: &User) {
        if user.all || user.root().all_channels {
            return;
        }
        let is_forbidden = |name: &[u8], kind| !user.allows_channel(name, kind == SubscriptionKind::Pattern);
        for who in self.pubsub.subscribers_where(is_forbidden) {
            if let Some(info) = self.clients.get(who.client)
                && info.user.lock().serial == user.serial
            {
                self.kill(&info, Kill::User);
            }
        }
    }
}
