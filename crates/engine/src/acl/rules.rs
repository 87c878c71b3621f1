//! Owns: the language of ACL rules: what each word changes in a user. Does not own: where rules come from.
//!
//! A word that cannot be understood changes nothing; whoever applies a list of them works on a copy of the user, so
//! that a list counts as a whole or not at all.

use weft_protocol::table::{self, COMMANDS, CommandId, acl, policy};

use super::selector::{CommandSet, KeyPattern, READ, Selector, WRITE};
use super::{Hash, User, hash};
use crate::error::full_name;
use crate::requests::is_container;

/// What describes a user at most, in words: each word of a list is compared with what is there, and each request with
/// all of it.
const RULES_MAX: usize = 4096;
/// Words of one list of rules: what describes the largest user can be read back, behind `reset`.
const WORDS_MAX: usize = RULES_MAX + 16;

/// What is wrong with a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// `+nothing`, `+@nothing`.
    Unknown,
    /// Not a rule.
    Syntax,
    /// A key pattern behind `~*`.
    AfterAllKeys,
    /// A channel pattern behind `&*`.
    AfterAllChannels,
    /// `<password` that the user does not have.
    NoSuchPassword,
    /// `#hash` that is no SHA-256.
    BadHash,
    /// `+config|get|x`.
    ArgumentOfSubcommand,
    /// `db=-1`.
    DatabaseOutOfRange,
    /// More of them than a user may have.
    TooMany,
}

impl RuleError {
    /// The text that clients see.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown command or category name in ACL",
            Self::Syntax => "Syntax error",
            Self::AfterAllKeys => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
                 effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::AfterAllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            Self::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            Self::BadHash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            Self::ArgumentOfSubcommand => "Allowing first-arg of a subcommand is not supported",
            Self::DatabaseOutOfRange => "The provided database ID is out of range",
            Self::TooMany => {
                const {
                    assert!(RULES_MAX == 4096);
                    "A user has at most 4096 rules"
                }
            }
        }
    }
}

impl User {
    /// Whether it has no more rules than a user may have.
    pub(crate) fn check_size(&self) -> Result<(), RuleError> {
        let described = |selector: &Selector| {
            // With the words that each has: all keys or channels, databases, the first about commands.
            4 + selector.keys.len() + selector.channels.len() + selector.rules.len()
        };
        let words = self.passwords.len() + self.selectors.iter().map(described).sum::<usize>();
        if words > RULES_MAX { Err(RuleError::TooMany) } else { Ok(()) }
    }

    /// Applies one rule. `all_channels`: what `acl-pubsub-default` says of new users.
    pub(crate) fn apply(&mut self, rule: &[u8], all_channels: bool) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            [] => {}
            _ if is("on") => self.enabled = true,
            _ if is("off") => self.enabled = false,
            // Accepted for old files: payloads of RESTORE are always checked.
            _ if is("sanitize-payload") || is("skip-sanitize-payload") => {}
            _ if is("nopass") => {
                self.nopass = true;
                self.passwords.clear();
            }
            _ if is("resetpass") => {
                self.nopass = false;
                self.passwords.clear();
            }
            [b'>' | b'#', ..] => {
                let password = password(rule)?;
                if !self.passwords.contains(&password) {
                    self.passwords.push(password);
                }
                self.nopass = false;
            }
            [b'<' | b'!', ..] => {
                let password = password(rule)?;
                let at = self.passwords.iter().position(|other| *other == password);
                self.passwords.remove(at.ok_or(RuleError::NoSuchPassword)?);
            }
            [b'(', inside @ .., b')'] => {
                let mut selector = Selector::new(all_channels);
                let words = inside.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
                words.into_iter().try_for_each(|word| selector.apply(word))?;
                self.selectors.push(selector);
            }
            _ if is("clearselectors") => self.selectors.truncate(1),
            _ if is("reset") => {
                let name = std::mem::take(&mut self.name);
                *self = Self { serial: self.serial, ..Self::new(&name, all_channels) };
            }
            _ => self.root_mut().apply(rule)?,
        }
        Ok(())
    }
}

/// The hash that `>text`, `<text`, `#hash` and `!hash` stand for.
fn password(rule: &[u8]) -> Result<Hash, RuleError> {
    let [kind, text @ ..] = rule else { return Err(RuleError::Syntax) };
    if matches!(kind, b'>' | b'<') {
        return Ok(hash(text));
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(RuleError::BadHash),
    };
    let mut bytes = [0; 32];
    if text.len() != 64 {
        return Err(RuleError::BadHash);
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(bytes)
}

/// Whether bytes hold what would break the text form of rules.
pub(crate) fn has_spaces(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b))
}

impl Selector {
    fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            _ if is("allkeys") || is("~*") => {
                self.all_keys = true;
                self.keys.clear();
            }
            _ if is("resetkeys") => {
                self.all_keys = false;
                self.keys.clear();
            }
            _ if is("allchannels") || is("&*") => {
                self.all_channels = true;
                self.channels.clear();
            }
            _ if is("resetchannels") => {
                self.all_channels = false;
                self.channels.clear();
            }
            _ if is("alldbs") => self.dbs = None,
            _ if is("resetdbs") => self.dbs = Some(std::collections::BTreeSet::new()),
            [b'd' | b'D', b'b' | b'B', b'=', list @ ..] => self.dbs = Some(databases(list)?),
            _ if is("allcommands") || is("+@all") => self.all(true),
            _ if is("nocommands") || is("-@all") => self.all(false),
            [b'~' | b'%', ..] => self.apply_key(rule)?,
            [b'&', pattern @ ..] => self.apply_channel(pattern)?,
            [sign @ (b'+' | b'-'), b'@', category @ ..] => self.apply_category(*sign == b'+', category)?,
            [sign @ (b'+' | b'-'), command @ ..] => self.apply_command(*sign == b'+', command)?,
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    fn all(&mut self, on: bool) {
        self.all_commands = on;
        self.begins_with_all = on;
        self.commands = if on { CommandSet::ALL } else { CommandSet::default() };
        self.first_args.clear();
        self.rules.clear();
    }

    fn apply_key(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::AfterAllKeys);
        }
        let (mut access, mut pattern) = (READ | WRITE, &rule[1..]);
        if rule[0] == b'%' {
            // Without a `~` there is an empty pattern, as in Valkey.
            let at = rule.iter().position(|byte| *byte == b'~').unwrap_or(rule.len());
            access = match &rule[1..at] {
                [b'R' | b'r'] => READ,
                [b'W' | b'w'] => WRITE,
                [b'R' | b'r', b'W' | b'w'] | [b'W' | b'w', b'R' | b'r'] => READ | WRITE,
                _ => return Err(RuleError::Syntax),
            };
            pattern = rule.get(at + 1..).unwrap_or_default();
        }
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        match self.keys.iter_mut().find(|other| *other.pattern == *pattern) {
            Some(other) => other.access |= access,
            None => self.keys.push(KeyPattern { access, pattern: pattern.into() }),
        }
        Ok(())
    }

    fn apply_channel(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.all_channels {
            return Err(RuleError::AfterAllChannels);
        }
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        if !self.channels.iter().any(|other| **other == *pattern) {
            self.channels.push(pattern.into());
        }
        Ok(())
    }

    fn apply_category(&mut self, on: bool, name: &[u8]) -> Result<(), RuleError> {
        let category = category(name).ok_or(RuleError::Unknown)?;
        self.note_rule(on, &format!("@{}", String::from_utf8_lossy(name).to_ascii_lowercase()));
        let is_in = |id: &CommandId| id.spec().acl & category != 0;
        self.first_args.retain(|(id, _)| !is_in(id));
        (0..COMMANDS.len() as u16).map(CommandId).filter(is_in).for_each(|id| self.put(id, on));
        Ok(())
    }

    fn apply_command(&mut self, on: bool, name: &[u8]) -> Result<(), RuleError> {
        if let Some(id) = command(name) {
            self.first_args.retain(|(other, _)| *other != id);
            self.put(id, on);
            self.note_rule(on, &full_name(id.spec()));
            return Ok(());
        }
        // Only the first argument of a command that is no container is left: `+select|0`.
        let at = name.iter().rposition(|byte| *byte == b'|').filter(|_| on).ok_or(RuleError::Unknown)?;
        let (name, first) = (&name[..at], &name[at + 1..]);
        let id = command(name).ok_or(RuleError::Unknown)?;
        // What is stored under a name has its rule by that name, letter by letter: `+program|run|sell`.
        let is_named = id.spec().policy & policy::RULE_BY_NAME != 0;
        if id.spec().container.is_some() && !is_named {
            return Err(RuleError::ArgumentOfSubcommand);
        }
        if first.is_empty() {
            return Err(RuleError::Syntax);
        }
        if is_container(id) {
            return Err(RuleError::Unknown);
        }
        let same = |text: &[u8]| if is_named { text == first } else { text.eq_ignore_ascii_case(first) };
        if !self.first_args.iter().any(|(other, text)| *other == id && same(text)) {
            self.first_args.push((id, first.into()));
        }
        let first = String::from_utf8_lossy(first);
        let first = if is_named { first.into_owned() } else { first.to_ascii_lowercase() };
        self.note_rule(true, &format!("{}|{first}", full_name(id.spec())));
        Ok(())
    }

    /// A command with its subcommands.
    fn put(&mut self, id: CommandId, on: bool) {
        self.commands.put(id, on);
        table::subcommands(id).for_each(|sub| self.commands.put(sub, on));
        self.all_commands &= on;
    }

    /// Keeps a rule for the text form; earlier ones that it makes void go.
    fn note_rule(&mut self, on: bool, rule: &str) {
        self.rules.retain(|other| {
            let other = &other[1..];
            other != rule && !other.strip_prefix(rule).is_some_and(|rest| rest.starts_with('|'))
        });
        self.rules.push(format!("{}{rule}", if on { '+' } else { '-' }));
    }
}

/// The bit of a category's name.
pub(crate) fn category(name: &[u8]) -> Option<u32> {
    acl::NAMES.iter().find(|(_, other)| name.eq_ignore_ascii_case(other.as_bytes())).map(|(bit, _)| *bit)
}

/// A command by the name that rules give it: `get`, `config|get`.
pub(crate) fn command(name: &[u8]) -> Option<CommandId> {
    let mut parts = name.split(|byte| *byte == b'|');
    let id = table::by_name(parts.next()?)?;
    match (parts.next(), parts.next()) {
        (None, _) => Some(id),
        (Some(sub), None) => table::subcommand(id, sub),
        (Some(_), Some(_)) => None,
    }
}

fn databases(list: &[u8]) -> Result<std::collections::BTreeSet<u32>, RuleError> {
    let one = |text: &[u8]| {
        let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(RuleError::Syntax);
        }
        let text = std::str::from_utf8(text).map_err(|_| RuleError::Syntax)?;
        let db: i32 = text.parse().map_err(|_| RuleError::DatabaseOutOfRange)?;
        u32::try_from(db).map_err(|_| RuleError::DatabaseOutOfRange)
    };
    list.split(|byte| *byte == b',').map(one).collect()
}

/// Whether a list has no more words than one may have, those of selectors counted.
pub(crate) fn check_count(words: &[&[u8]]) -> Result<(), String> {
    let blanks = |word: &[u8]| word.iter().filter(|byte| **byte == b' ').count();
    if words.iter().map(|word| 1 + blanks(word)).sum::<usize>() > WORDS_MAX {
        return Err(format!("A list of ACL rules has at most {WORDS_MAX} words"));
    }
    Ok(())
}

/// Puts the words of a selector that is spread over several arguments together. An error is the word that opens one
/// that is not closed.
pub(crate) fn merge(words: &[&[u8]]) -> Result<Vec<Vec<u8>>, String> {
    let mut merged: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    let mut opened_at = 0;
    for (index, word) in words.iter().enumerate() {
        if let Some(selector) = &mut open {
            selector.push(b' ');
            selector.extend_from_slice(word);
            if word.ends_with(b")") {
                merged.extend(open.take());
            }
        } else if word.starts_with(b"(") && !word.ends_with(b")") {
            open = Some(word.to_vec());
            opened_at = index;
        } else {
            merged.push(word.to_vec());
        }
    }
    match open {
        Some(_) => Err(String::from_utf8_lossy(words[opened_at]).into_owned()),
        None => Ok(merged),
    }
}
