//! Owns: one connection for subscriptions: which names it brings, which of its requests asks for which, what waits
//! until it stands. Does not own: who wants them and what becomes of messages (`crate::hub`).

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use weft_client::{Address, Connection};
use weft_engine::forward::SubscriptionKind;

/// What somebody may be subscribed to.
pub(crate) type Name = (SubscriptionKind, Box<[u8]>);

/// Where events of keys are published, in each node for its own keys.
const EVENTS: [&[u8]; 2] = [b"__keyspace@", b"__keyevent@"];

/// Whether a channel is one of events of keys.
pub(crate) fn is_of_events(channel: &[u8]) -> bool {
    EVENTS.iter().any(|begin| channel.starts_with(begin))
}

/// Whether a channel is one of those, or a pattern may stand for one.
pub(crate) fn may_be_of_events(name: &[u8], is_pattern: bool) -> bool {
    if !is_pattern {
        return is_of_events(name);
    }
    let literal = name.iter().position(|byte| b"*?[\\".contains(byte)).map_or(name, |end| &name[..end]);
    EVENTS
        .iter()
        .any(|begin| literal.starts_with(begin) || begin.starts_with(literal) && literal.len() < name.len())
}

/// A connection for subscriptions, which may be being made.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The node; nothing where any will do.
    pub(crate) to: Option<Address>,
    pub(crate) connection: Option<Connection>,
    /// Which attempt makes it, while one does.
    pub(crate) attempt: Option<u64>,
    /// It was tried in vain, and why; until when it is left alone.
    pub(crate) down: Option<(Instant, String)>,
    /// Names that were asked for, and by which request.
    names: HashMap<Name, u64>,
    /// Requests that wait until it stands.
    unsent: Vec<(&'static str, Vec<Box<[u8]>>)>,
    /// Requests that were put on it, and that were answered.
    sent: u64,
    confirmed: u64,
    /// When something was asked while nothing was due, or something came.
    stirred: Option<Instant>,
    /// It may have brought more than was taken.
    pub(crate) unread: bool,
}

impl Line {
    pub(crate) fn to(to: Option<Address>) -> Self {
        Self { to, ..Self::default() }
    }
    /// Asks for those of some names that it does not bring yet. The request with whose answer it brings all of them.
    pub(crate) fn want(&mut self, kind: SubscriptionKind, names: &[Box<[u8]>]) -> Result<u64, String> {
        let mut new = Vec::new();
        let mut last = self.confirmed;
        for name in names {
            let request = *self.names.entry((kind, name.clone())).or_insert_with(|| {
                new.push(name.clone());
                self.sent + 1
            });
            last = last.max(request);
        }
        if !new.is_empty() {
            self.put(command(kind, true), new)?;
        }
        Ok(last)
    }
    fn put(&mut self, command: &'static str, names: Vec<Box<[u8]>>) -> Result<(), String> {
        if !self.is_due() {
            self.stirs();
        }
        self.sent += 1;
        if self.connection.is_none() {
            self.unsent.push((command, names));
            return Ok(());
        }
        self.send(command, &names)
    }
    fn send(&mut self, command: &str, names: &[Box<[u8]>]) -> Result<(), String> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let words: Vec<&[u8]> =
            std::iter::once(command.as_bytes()).chain(names.iter().map(AsRef::as_ref)).collect();
        connection.send(&words).and_then(|_| connection.flush()).map_err(|error| error.to_string())
    }
    /// It stands.
    pub(crate) fn stands(&mut self, connection: Connection) -> Result<(), String> {
        (self.connection, self.attempt, self.down) = (Some(connection), None, None);
        self.stirs();
        for (command, names) in std::mem::take(&mut self.unsent) {
            self.send(command, &names)?;
        }
        Ok(())
    }
    /// Something has come.
    pub(crate) fn stirs(&mut self) {
        self.stirred = Some(Instant::now());
    }
    /// Whether a request is not answered.
    pub(crate) const fn is_due(&self) -> bool {
        self.sent > self.confirmed
    }
    /// Asks whether the server is there, when nothing has come for so long. The error says that nothing comes of what
    /// is due.
    pub(crate) fn look(&mut self, silent_ms: u64, timeout_ms: u64) -> Result<(), String> {
        let Some(stirred) = self.stirred.filter(|_| self.connection.is_some()) else { return Ok(()) };
        let still = stirred.elapsed();
        if self.is_due() && still > Duration::from_millis(timeout_ms) {
            return Err(nothing_came(timeout_ms));
        }
        if !self.is_due() && still >= Duration::from_millis(silent_ms) {
            return self.put("PING", Vec::new());
        }
        Ok(())
    }
    /// Whether a request is answered.
    pub(crate) const fn has_confirmed(&self, request: u64) -> bool {
        self.confirmed >= request
    }
    /// The next request is answered.
    pub(crate) const fn confirm(&mut self) {
        self.confirmed += 1;
    }
    /// The next request is refused: it brings none of its names. Its number.
    pub(crate) fn refuse(&mut self) -> u64 {
        self.confirmed += 1;
        let refused = self.confirmed;
        self.names.retain(|_, request| *request != refused);
        refused
    }
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.names.keys()
    }
    /// It does not bring this one any more. Says whether it did.
    pub(crate) fn forget(&mut self, name: &Name) -> bool {
        self.names.remove(name).is_some()
    }
    /// Gives up the names that nobody wants.
    pub(crate) fn give_up(&mut self, is_wanted: impl Fn(&Name) -> bool) -> Result<(), String> {
        for kind in [SubscriptionKind::Channel, SubscriptionKind::Pattern, SubscriptionKind::Shard] {
            let unwanted = self.names.keys().filter(|name| name.0 == kind && !is_wanted(name));
            let unwanted: Vec<Box<[u8]>> = unwanted.map(|(_, name)| name.clone()).collect();
            if !unwanted.is_empty() {
                unwanted.iter().for_each(|name| _ = self.names.remove(&(kind, name.clone())));
                self.put(command(kind, false), unwanted)?;
            }
        }
        Ok(())
    }
    /// It is over. What it brought.
    pub(crate) fn end(&mut self) -> HashSet<Name> {
        let names = std::mem::take(&mut self.names).into_keys().collect();
        *self = Self { to: self.to.take(), down: self.down.take(), ..Self::default() };
        names
    }
}

/// Why a server is given up, or not waited for.
pub(crate) fn nothing_came(timeout_ms: u64) -> String {
    format!("nothing came for {timeout_ms} ms (upstream-timeout)")
}

const fn command(kind: SubscriptionKind, begins: bool) -> &'static str {
    match (kind, begins) {
        (SubscriptionKind::Channel, true) => "SUBSCRIBE",
        (SubscriptionKind::Channel, false) => "UNSUBSCRIBE",
        (SubscriptionKind::Pattern, true) => "PSUBSCRIBE",
        (SubscriptionKind::Pattern, false) => "PUNSUBSCRIBE",
        (SubscriptionKind::Shard, true) => "SSUBSCRIBE",
        (SubscriptionKind::Shard, false) => "SUNSUBSCRIBE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_of_events() {
        for name in ["__keyspace@0__:k", "__keyevent@*", "__key*", "*", "_?key", "[_]x", "__keyevent@0__:*"] {
            assert!(may_be_of_events(name.as_bytes(), true), "{name}");
        }
        for name in ["__key", "news*", "__keyboard*", "__keyspace", "a"] {
            assert!(!may_be_of_events(name.as_bytes(), true), "{name}");
        }
        assert!(may_be_of_events(b"__keyevent@0__:set", false) && !may_be_of_events(b"__key*", false));
    }

    #[test]
    fn a_name_is_asked_for_once_and_given_up() {
        let names =
            |names: &[&str]| names.iter().map(|name| name.as_bytes().into()).collect::<Vec<Box<[u8]>>>();
        let mut line = Line::default();
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["a", "b"])), Ok(1));
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["b"])), Ok(1));
        assert_eq!(line.want(SubscriptionKind::Pattern, &names(&["b"])), Ok(2));
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["b", "c"])), Ok(3));
        line.confirm();
        assert!(line.has_confirmed(1) && !line.has_confirmed(2));
        assert_eq!(line.refuse(), 2);
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["a"])), Ok(2));
        assert_eq!(line.names().count(), 3);
        line.give_up(|(_, name)| **name == *b"a").unwrap();
        assert_eq!(line.names().count(), 1);
        // In any order.
        let (word, mut given_up) = line.unsent.last().unwrap().clone();
        given_up.sort();
        assert_eq!((word, given_up), ("UNSUBSCRIBE", names(&["b", "c"])));
        assert_eq!(line.end().len(), 1);
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["a"])), Ok(1));
    }
}
