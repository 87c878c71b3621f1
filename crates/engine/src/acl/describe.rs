//! Owns: users as text, in the form that creates them again. Does not own: reading that form (`super::rules`).

use super::selector::{KeyPattern, READ, Selector, WRITE};
use super::{Hash, User};

/// A hash in hexadecimal digits.
pub(crate) fn hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl User {
    /// `on`, `off`, `nopass`: as ACL GETUSER lists them.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.enabled { "on" } else { "off" }];
        flags.extend(self.nopass.then_some("nopass"));
        flags
    }

    /// All rules behind the user's name, as ACL LIST and ACL files have them.
    #[must_use]
    pub fn describe(&self) -> Vec<u8> {
        let mut text = self.flags().join(" ").into_bytes();
        text.push(b' ');
        for password in &self.passwords {
            text.extend_from_slice(format!("#{} ", hex(password)).as_bytes());
        }
        for (index, selector) in self.selectors.iter().enumerate() {
            if index == 0 {
                text.extend_from_slice(&selector.describe());
            } else {
                text.extend_from_slice(b" (");
                text.extend_from_slice(&selector.describe());
                text.push(b')');
            }
        }
        text
    }
}

impl KeyPattern {
    fn describe(&self) -> Vec<u8> {
        let prefix: &[u8] = match self.access {
            READ => b"%R~",
            WRITE => b"%W~",
            _ => b"~",
        };
        [prefix, &self.pattern].concat()
    }
}

impl Selector {
    fn describe(&self) -> Vec<u8> {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        match self.all_keys {
            true => parts.push(b"~*".to_vec()),
            false => parts.extend(self.keys.iter().map(KeyPattern::describe)),
        }
        if self.all_channels {
            parts.push(b"&*".to_vec());
        } else {
            parts.push(b"resetchannels".to_vec());
            parts.extend(self.channels.iter().map(|channel| [b"&", &**channel].concat()));
        }
        match &self.dbs {
            None => {}
            Some(dbs) if dbs.is_empty() => parts.push(b"resetdbs".to_vec()),
            Some(_) => parts.push(self.describe_dbs().into_bytes()),
        }
        parts.push(self.describe_commands().into_bytes());
        parts.join(&b' ')
    }

    /// `-@all +get`
    pub(crate) fn describe_commands(&self) -> String {
        let first = if self.begins_with_all { "+@all" } else { "-@all" };
        std::iter::once(first).chain(self.rules.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }
    /// `~a %R~b`
    pub(crate) fn describe_keys(&self) -> Vec<u8> {
        match self.all_keys {
            true => b"~*".to_vec(),
            false => self.keys.iter().map(KeyPattern::describe).collect::<Vec<_>>().join(&b' '),
        }
    }
    /// `&a &b`
    pub(crate) fn describe_channels(&self) -> Vec<u8> {
        match self.all_channels {
            true => b"&*".to_vec(),
            false => {
                let parts: Vec<_> = self.channels.iter().map(|channel| [b"&", &**channel].concat()).collect();
                parts.join(&b' ')
            }
        }
    }
    /// `alldbs`, `db=0,2`, or nothing.
    pub(crate) fn describe_dbs(&self) -> String {
        match &self.dbs {
            None => "alldbs".into(),
            Some(dbs) if dbs.is_empty() => String::new(),
            Some(dbs) => format!("db={}", dbs.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}
