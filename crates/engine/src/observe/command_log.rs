//! Owns: the three logs of remarkable commands: slow ones, large requests, large replies. Does not own: noticing them
//! (`crate::executor`), the commands that show them.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use weft_protocol::table::{flag, policy};

use crate::args::Args;
use crate::config::Settings;
use crate::config::table::{self, DIRECTIVES};
use crate::excerpt::cut;
use crate::session::Session;

/// Arguments that an entry keeps; the last one says how many more there were.
const ARGUMENTS_MAX: usize = 32;
/// Bytes of an argument that an entry keeps; behind them it says how many more there were.
const ARGUMENT_BYTES_MAX: usize = 128;
/// What is shown in place of a secret.
pub(crate) const REDACTED: &[u8] = b"(redacted)";

/// Which log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Time, in microseconds.
    Slow,
    /// Bytes of the request, as RESP.
    LargeRequest,
    /// Bytes of the reply.
    LargeReply,
}

impl LogKind {
    /// By its name in any case.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let names: [(&[u8], Self); 3] = [
            (b"slow", Self::Slow),
            (b"large-request", Self::LargeRequest),
            (b"large-reply", Self::LargeReply),
        ];
        names.iter().find(|(other, _)| name.eq_ignore_ascii_case(other)).map(|(_, kind)| *kind)
    }
    const fn entries_max(self, settings: &Settings) -> &AtomicUsize {
        match self {
            Self::Slow => &settings.slowlog_max,
            Self::LargeRequest => &settings.large_requests_max,
            Self::LargeReply => &settings.large_replies_max,
        }
    }
    /// The value from which on a command is logged; negative for never.
    pub(crate) const fn threshold(self, settings: &Settings) -> &AtomicI64 {
        match self {
            Self::Slow => &settings.slowlog_slower_than_us,
            Self::LargeRequest => &settings.request_larger_than_bytes,
            Self::LargeReply => &settings.reply_larger_than_bytes,
        }
    }
}

/// One command.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// Counts up.
    pub id: u64,
    /// Seconds since 1970.
    pub time_s: u64,
    /// Microseconds or bytes.
    pub value: u64,
    /// Its arguments, cut and without secrets.
    pub arguments: Vec<Box<[u8]>>,
    /// Whose it was.
    pub peer: Box<str>,
    /// What that client is called.
    pub name: Box<[u8]>,
}

#[derive(Debug, Default)]
struct Log {
    next_id: u64,
    /// The newest first.
    entries: VecDeque<LogEntry>,
}

/// The logs.
#[derive(Debug, Default)]
pub struct CommandLogs([Mutex<Log>; 3]);

impl CommandLogs {
    fn log(&self, kind: LogKind) -> &Mutex<Log> {
        &self.0[kind as usize]
    }
    /// Entries, the newest first.
    #[must_use]
    pub fn get(&self, kind: LogKind, count: usize) -> Vec<LogEntry> {
        self.log(kind).lock().entries.iter().take(count).cloned().collect()
    }
    /// How many there are.
    #[must_use]
    pub fn len(&self, kind: LogKind) -> usize {
        self.log(kind).lock().entries.len()
    }
    /// Forgets all; numbers go on.
    pub fn reset(&self, kind: LogKind) {
        self.log(kind).lock().entries.clear();
    }
    /// Keeps a command, if its value reaches the threshold.
    pub(crate) fn offer(
        &self,
        kind: LogKind,
        settings: &Settings,
        of: (&Session, &Args<'_>),
        value_and_now: (u64, u64),
    ) {
        if let Some(entry) = LogEntry::of(kind, settings, of, value_and_now) {
            self.keep(kind, settings, entry);
        }
    }
    /// Keeps an entry, which has its number from here.
    pub(crate) fn keep(&self, kind: LogKind, settings: &Settings, mut entry: LogEntry) {
        let mut log = self.log(kind).lock();
        entry.id = log.next_id;
        log.next_id += 1;
        log.entries.push_front(entry);
        log.entries.truncate(kind.entries_max(settings).load(Relaxed));
    }
}

impl LogEntry {
    /// What is kept of a command, if its value reaches the threshold.
    pub(crate) fn of(
        kind: LogKind,
        settings: &Settings,
        (session, args): (&Session, &Args<'_>),
        (value, now_ms): (u64, u64),
    ) -> Option<Self> {
        let over = u64::try_from(kind.threshold(settings).load(Relaxed)).is_ok_and(|limit| value >= limit);
        let is_logged = args.spec.flags & flag::SKIP_COMMANDLOG == 0;
        if !over || !is_logged || kind.entries_max(settings).load(Relaxed) == 0 {
            return None;
        }
        let info = &session.info;
        Some(Self {
            id: 0,
            time_s: now_ms / 1000,
            value,
            arguments: shown(args),
            peer: info.connection.peer.clone(),
            name: info.labels.lock().as_ref().map(|labels| labels.name.clone()).unwrap_or_default(),
        })
    }
}

/// The arguments as an entry keeps them.
fn shown(args: &Args<'_>) -> Vec<Box<[u8]>> {
    let kept = args.len().min(ARGUMENTS_MAX);
    let mut list = Vec::with_capacity(kept);
    for index in 0..kept {
        if index + 1 == ARGUMENTS_MAX && args.len() > ARGUMENTS_MAX {
            let more = args.len() - ARGUMENTS_MAX + 1;
            list.push(format!("... ({more} more arguments)").into_bytes().into());
            break;
        }
        let bytes = if is_secret(args, index) { REDACTED } else { args.bytes(index) };
        list.push(cut(bytes, ARGUMENT_BYTES_MAX));
    }
    list
}

/// Whether no log and no MONITOR may show an argument: a password or what may hold one.
#[must_use]
pub fn is_secret(args: &Args<'_>, index: usize) -> bool {
    let policy = args.spec.policy;
    if policy & policy::SECRET_ALL != 0 {
        index > 0
    } else if policy & policy::SECRET_AUTH != 0 {
        // HELLO 3 AUTH user password.
        (1..index).any(|before| args.is(before, "AUTH") && index <= before + 2)
    } else if policy & policy::SECRET_AUTH2 != 0 {
        (1..index).any(|before| {
            args.is(before, "AUTH") && index == before + 1 || args.is(before, "AUTH2") && index <= before + 2
        })
    } else if policy & policy::SECRET_VALUES != 0 {
        let name = args.bytes(index.wrapping_sub(1));
        index > 2 && index % 2 == 1 && table::find(name).is_some_and(|at| DIRECTIVES[at].secret)
    } else {
        policy & policy::SECRET_NAMES != 0 && index > 1
    }
}
