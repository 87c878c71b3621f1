//! Owns: ACL LOG: what was denied lately. Does not own: deciding and noting it
//! (`crate::access`).

use std::collections::VecDeque;

use super::Reason;

/// A denial that is like one within this time counts it up.
const GROUPING_MS: u64 = 60_000;

/// Entries that are compared with a new one.
const GROUPING_ENTRIES: usize = 10;

/// Where a command was when it was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// Sent by a client.
    TopLevel,
    /// In a transaction.
    Multi,
    /// In a Lua script.
    Lua,
    /// In a program of another kind.
    Script,
}

impl LogPlace {
    /// Its name in ACL LOG.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TopLevel => "toplevel",
            Self::Multi => "multi",
            Self::Lua => "lua",
            Self::Script => "script",
        }
    }
}

impl Reason {
    /// Its name in ACL LOG.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Database => "database",
            Self::Auth => "auth",
        }
    }
}

/// One denial, or several of one kind.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// How many.
    pub count: u64,
    /// What forbade it.
    pub reason: Reason,
    /// Where.
    pub place: LogPlace,
    /// The command, key or channel.
    pub object: Box<[u8]>,
    /// The user.
    pub user: Box<str>,
    /// The client, as CLIENT LIST shows it: the last one.
    pub client: String,
    /// Number of the entry.
    pub id: u64,
    /// When it was made.
    pub created_ms: u64,
    /// When it was counted up last.
    pub updated_ms: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The newest first.
    entries: VecDeque<LogEntry>,
    next: u64,
}

impl Log {
    /// The newest denials.
    pub(crate) fn newest(&self, count: usize) -> Vec<LogEntry> {
        self.entries.iter().take(count).cloned().collect()
    }
    /// ACL LOG RESET.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
    pub(crate) fn add(&mut self, entry: LogEntry, max: usize) {
        let like = |other: &LogEntry| {
            (other.reason, other.place) == (entry.reason, entry.place)
                && entry.updated_ms.abs_diff(other.updated_ms) <= GROUPING_MS
                && other.object == entry.object
                && other.user == entry.user
        };
        let known = self.entries.iter().take(GROUPING_ENTRIES).position(like);
        let known = known.filter(|_| max > 0).and_then(|at| self.entries.remove(at));
        let entry = match known {
            Some(known) => LogEntry {
                count: known.count + 1,
                client: entry.client,
                updated_ms: entry.updated_ms,
                ..known
            },
            None => {
                self.next += 1;
                LogEntry { id: self.next - 1, ..entry }
            }
        };
        self.entries.push_front(entry);
        self.entries.truncate(max);
    }
}
