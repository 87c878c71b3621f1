//! Owns: ACL LOG: what was denied lately. Does not own: deciding it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use super::{Denied, Reason};
use crate::args::Args;
use crate::engine::{Engine, command_id};
use crate::error::full_name;
use crate::excerpt::cut;
use crate::session::Session;

/// A denial that is like one within this time counts it up.
const GROUPING_MS: u64 = 60_000;

/// Entries that are compared with a new one.
const GROUPING_ENTRIES: usize = 10;

/// Bytes of an object, or of the name of a user that there is not, which an entry keeps: whoever may do nothing chooses
/// them.
const TEXT_BYTES_MAX: usize = 1024;

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
    /// Where the session's next command is.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        if session.in_multi() { Self::Multi } else { Self::TopLevel }
    }
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
pub(super) struct Log {
    /// The newest first.
    entries: VecDeque<LogEntry>,
    next: u64,
}

impl Engine {
    /// Notes a denial. `user`: whom AUTH named, where it is not the session's.
    #[cold]
    pub(crate) fn log_denied(
        &self,
        session: &Session,
        args: &Args<'_>,
        denied: Denied,
        place: LogPlace,
        (now_ms, user): (u64, Option<&[u8]>),
    ) {
        self.acl.denials[denied.reason as usize].fetch_add(1, Relaxed);
        let max = self.acl.log_len_max.load(Relaxed);
        let object = match (denied.reason, denied.index) {
            (Reason::Auth, _) => args.bytes(0).into(),
            (_, 0) => full_name(args.spec).into_bytes().into(),
            (_, index) => cut(args.bytes(index), TEXT_BYTES_MAX),
        };
        // The line of the client names this command; that of one whose transaction runs names EXEC.
        let is_queued = place == LogPlace::Multi && !session.in_multi();
        let named = if is_queued { weft_protocol::table::by_name(b"EXEC") } else { Some(command_id(args)) };
        if let Some(id) = named {
            session.info.last_command.store(id.0, Relaxed);
        }
        let entry = LogEntry {
            count: 1,
            reason: denied.reason,
            place,
            object,
            user: match user {
                Some(name) => String::from_utf8_lossy(&cut(name, TEXT_BYTES_MAX)).into(),
                None => session.user.name.clone(),
            },
            client: session.info.line(now_ms),
            id: 0,
            created_ms: now_ms,
            updated_ms: now_ms,
        };
        self.acl.log.lock().add(entry, max);
    }

    /// The newest denials.
    pub(crate) fn acl_log(&self, count: usize) -> Vec<LogEntry> {
        self.acl.log.lock().entries.iter().take(count).cloned().collect()
    }
    /// ACL LOG RESET.
    pub(crate) fn reset_acl_log(&self) {
        self.acl.log.lock().entries.clear();
    }
}

impl Log {
    fn add(&mut self, entry: LogEntry, max: usize) {
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
