//! Owns: MONITOR: who watches, and the line that shows a command. Does not own: when a command is shown.

use parking_lot::RwLock;
use std::fmt::Write;
use std::sync::Arc;

use crate::args::Args;
use crate::command_log::{REDACTED, is_secret};
use crate::mailbox::{Mailboxes, Recipient};
use crate::push::Push;
use crate::session::{Session, client_flag};
use crate::special::{self, Special};

/// Those who watch.
#[derive(Debug, Default)]
pub struct Monitors(RwLock<Vec<Recipient>>);

impl Monitors {
    /// MONITOR.
    pub(crate) fn join(&self, session: &Session, special: &Special) {
        if !session.info.has(client_flag::MONITOR) {
            session.info.set_flag(client_flag::MONITOR, true);
            let mut list = self.0.write();
            list.push(session.info.recipient());
            special.set(special::MONITORED, true);
        }
    }
    /// RESET, and the end of a client.
    pub(crate) fn leave(&self, session: &Session, special: &Special) {
        if session.info.has(client_flag::MONITOR) {
            session.info.set_flag(client_flag::MONITOR, false);
            let mut list = self.0.write();
            list.retain(|who| who.client != session.id());
            special.set(special::MONITORED, !list.is_empty());
        }
    }
    /// Shows a line to those who watch.
    #[cold]
    pub(crate) fn show(&self, mailboxes: &Mailboxes, line: &Arc<Push>) {
        for &who in &*self.0.read() {
            mailboxes.push(who, line);
        }
    }
}

/// The line of a command; `by` is what ran it, if its client did not send it.
#[cold]
pub(crate) fn line_of(session: &Session, args: &Args<'_>, (now_ms, by): (u64, Option<&str>)) -> Arc<Push> {
    let line = match by {
        Some(by) => line(session.db, args, now_ms, by),
        None => line(session.db, args, now_ms, &origin(session)),
    };
    Arc::new(Push::Monitor(line.into()))
}

fn origin(session: &Session) -> String {
    let connection = &session.info.connection;
    match connection.unix {
        true => format!("unix:{}", connection.local.trim_end_matches(":0")),
        false => connection.peer.to_string(),
    }
}

fn line(db: u8, args: &Args<'_>, now_ms: u64, origin: &str) -> String {
    let mut line = format!("{}.{:06} [{db} {origin}]", now_ms / 1000, now_ms % 1000 * 1000);
    for (index, argument) in args.rest(0).enumerate() {
        line.push(' ');
        quote(if is_secret(args, index) { REDACTED } else { argument }, &mut line);
    }
    line
}

/// Bytes in double quotes, so that they stand on one line and can be read back.
fn quote(bytes: &[u8], line: &mut String) {
    line.push('"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => line.extend(['\\', char::from(byte)]),
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            b' '..=b'~' => line.push(char::from(byte)),
            // Writing into a string cannot fail.
            _ => drop(write!(line, "\\x{byte:02x}")),
        }
    }
    line.push('"');
}
