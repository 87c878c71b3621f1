//! Owns: one connection for subscriptions: which names it brings, which of its requests asks for which, what waits
//! until it stands. Does not own: who wants them and what becomes of messages (`crate::hub`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::Instant;

use weft_client::Address;
use weft_client::fleet::Wire;
use weft_engine::forward::SubscriptionKind;
use weft_protocol::request::Texts;
use weft_protocol::resp::encode::request;

use crate::dial::UNCHECKED;
use crate::link::{Came, Due, Expect, Link};
use crate::scripts::words;

/// Bytes of requests that may wait on one connection to be answered. What is wanted beyond is refused; one on which
/// what is not wanted any more has no room is ended.
const UNSENT_BYTES_MAX: usize = 64 << 20;

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

/// A connection for subscriptions, which may be being made. It is never waited for: neither for room to send, nor for
/// what comes.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The node; nothing where any will do.
    pub(crate) to: Option<Address>,
    /// It was tried in vain, and why; until when it is left alone.
    pub(crate) down: Option<(Instant, String)>,
    link: Option<Box<Link>>,
    /// Names that were asked for, and by which request.
    names: HashMap<Name, u64>,
    /// For each request that is due, what it is answered, and of which names it is not answered yet.
    asked: VecDeque<(&'static str, HashSet<Box<[u8]>>)>,
    /// Requests that were put on it, and that were answered.
    sent: u64,
    confirmed: u64,
    /// It may have brought more than was taken.
    pub(crate) unread: bool,
}

/// What a connection has brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Brought {
    /// A message, or what else nobody has asked for: its parts.
    Message(Vec<Vec<u8>>),
    /// The next request is answered.
    Answer,
    /// The next request is refused: it brings none of its names.
    Refusal(Vec<u8>),
}

impl Line {
    pub(crate) fn to(to: Option<Address>) -> Self {
        Self { to, ..Self::default() }
    }
    /// It is being made, by this attempt.
    pub(crate) fn begins(&mut self, attempt: u64, now_ms: u64) {
        self.link = Some(Box::new(Link::new(attempt, false, false, now_ms)));
    }
    /// Whether it stands, or is being made.
    pub(crate) const fn is_there(&self) -> bool {
        self.link.is_some()
    }
    /// Whether this attempt is to make it.
    pub(crate) fn is_made_by(&self, attempt: u64) -> bool {
        self.link.as_ref().is_some_and(|link| link.attempt == attempt && !link.is_up())
    }
    pub(crate) fn is_being_made(&self) -> bool {
        self.link.as_ref().is_some_and(|link| !link.is_up())
    }
    /// It stands.
    pub(crate) fn stands(&mut self, wire: Wire, now_ms: u64) {
        self.down = None;
        if let Some(link) = &mut self.link {
            link.stands(wire, UNCHECKED, now_ms);
        }
    }
    /// Its socket, and whether something is to be sent there.
    pub(crate) fn socket(&self) -> Option<(BorrowedFd<'_>, bool)> {
        let link = self.link.as_ref()?;
        Some((link.socket()?, link.has_unsent()))
    }
    /// Asks for those of some names that it does not bring yet. The request with whose answer it brings all of them;
    /// the error says why it cannot be asked.
    pub(crate) fn want(
        &mut self,
        kind: SubscriptionKind,
        names: &[Box<[u8]>],
        now_ms: u64,
    ) -> Result<u64, String> {
        let mut last = self.confirmed;
        let mut new = Vec::new();
        for name in names {
            match self.names.get(&(kind, name.clone())) {
                Some(request) => last = last.max(*request),
                None => new.push(name.clone()),
            }
        }
        if !new.is_empty() {
            self.put(command(kind, true), &new, now_ms)?;
            last = self.sent;
            self.names.extend(new.into_iter().map(|name| ((kind, name), last)));
        }
        Ok(last)
    }
    /// Puts a request behind the others, if there is room.
    fn put(&mut self, command: &'static str, names: &[Box<[u8]>], now_ms: u64) -> Result<(), String> {
        let words: Vec<&[u8]> =
            std::iter::once(command.as_bytes()).chain(names.iter().map(AsRef::as_ref)).collect();
        let mut bytes = Vec::new();
        request(None, &Texts(&words), &mut bytes);
        let Some(link) = &mut self.link else { return Ok(()) };
        if link.waiting() + bytes.len() > UNSENT_BYTES_MAX {
            return Err(format!("too much waits on it to be answered ({UNSENT_BYTES_MAX} bytes)"));
        }
        link.ask(&[&bytes], None, Due::new(None, Expect::Aside, true), now_ms);
        self.sent += 1;
        self.asked.push_back((command, names.iter().cloned().collect()));
        Ok(())
    }
    /// Sends what its socket takes.
    pub(crate) fn flush(&mut self) -> Result<(), String> {
        self.link.as_mut().map_or(Ok(()), |link| link.send())
    }
    /// Receives once. Says whether there may be more.
    pub(crate) fn receive(&mut self, now_ms: u64) -> Result<bool, String> {
        self.link.as_mut().map_or(Ok(false), |link| link.receive(now_ms))
    }
    /// The next of what has come.
    pub(crate) fn next(&mut self) -> Result<Option<Brought>, String> {
        while let Some(link) = &mut self.link {
            match link.next() {
                Came::Nothing => break,
                Came::Broken(why) => return Err(why),
                Came::Reply(_, place) => {
                    self.asked.pop_front();
                    let refusal = link.reply(place).strip_prefix(b"-").map(<[u8]>::trim_ascii_end);
                    return Ok(Some(refusal.map_or(Brought::Answer, |text| Brought::Refusal(text.into()))));
                }
                Came::Push(place) => {
                    let parts: Vec<Vec<u8>> = words(link.reply(place)).map(<[u8]>::to_vec).collect();
                    let [kind, name, ..] = parts.as_slice() else { continue };
                    let left = self.asked.front_mut().and_then(|(command, names)| {
                        let is_its =
                            command.as_bytes().eq_ignore_ascii_case(kind) && names.remove(name.as_slice());
                        is_its.then_some(names.len())
                    });
                    let Some(left) = left else { return Ok(Some(Brought::Message(parts))) };
                    if left == 0 {
                        self.asked.pop_front();
                        link.due().pop_front();
                        return Ok(Some(Brought::Answer));
                    }
                }
            }
        }
        Ok(None)
    }
    /// Whether a request is not answered.
    pub(crate) const fn is_due(&self) -> bool {
        self.sent > self.confirmed
    }
    /// Asks whether the server is there, when nothing has come for so long. The error says that nothing comes of what
    /// is due.
    pub(crate) fn look(&mut self, now_ms: u64, silent_ms: u64, timeout_ms: u64) -> Result<(), String> {
        let Some(link) = self.link.as_ref().filter(|link| link.is_up()) else { return Ok(()) };
        let still_ms = now_ms.saturating_sub(link.stirred_ms);
        if self.is_due() && still_ms > timeout_ms {
            return Err(nothing_came(timeout_ms));
        }
        if !self.is_due() && still_ms >= silent_ms {
            return self.put("PING", &[], now_ms);
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
    pub(crate) fn give_up(&mut self, now_ms: u64, is_wanted: impl Fn(&Name) -> bool) -> Result<(), String> {
        for kind in [SubscriptionKind::Channel, SubscriptionKind::Pattern, SubscriptionKind::Shard] {
            let unwanted = self.names.keys().filter(|name| name.0 == kind && !is_wanted(name));
            let unwanted: Vec<Box<[u8]>> = unwanted.map(|(_, name)| name.clone()).collect();
            if !unwanted.is_empty() {
                unwanted.iter().for_each(|name| _ = self.names.remove(&(kind, name.clone())));
                self.put(command(kind, false), &unwanted, now_ms)?;
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

    fn names(names: &[&str]) -> Vec<Box<[u8]>> {
        names.iter().map(|name| name.as_bytes().into()).collect()
    }
    fn line() -> Line {
        let mut line = Line::default();
        line.begins(1, 0);
        line
    }

    #[test]
    fn a_name_is_asked_for_once_and_given_up() {
        let mut line = line();
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["a", "b"]), 0), Ok(1));
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["b"]), 0), Ok(1));
        assert_eq!(line.want(SubscriptionKind::Pattern, &names(&["b"]), 0), Ok(2));
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["b", "c"]), 0), Ok(3));
        line.confirm();
        assert!(line.has_confirmed(1) && !line.has_confirmed(2));
        assert_eq!(line.refuse(), 2);
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["a"]), 0), Ok(2));
        assert_eq!(line.names().count(), 3);
        line.give_up(0, |(_, name)| **name == *b"a").unwrap();
        assert_eq!(line.names().count(), 1);
        let (word, given_up) = line.asked.back().unwrap();
        assert_eq!((*word, given_up), ("UNSUBSCRIBE", &names(&["b", "c"]).into_iter().collect()));
        assert_eq!(line.end().len(), 1);
        line.begins(2, 0);
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["a"]), 0), Ok(1));
    }

    #[test]
    fn an_answer_is_there_when_all_names_are() {
        let mut line = line();
        assert_eq!(line.want(SubscriptionKind::Shard, &names(&["a", "b"]), 0), Ok(1));
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["c"]), 0), Ok(2));
        let push =
            |kind: &str, name: &str| format!(">3\r\n${}\r\n{kind}\r\n$1\r\n{name}\r\n:1\r\n", kind.len());
        let link = line.link.as_mut().unwrap();
        link.hears(&push("ssubscribe", "a"));
        link.hears(">3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$1\r\nm\r\n");
        // Its slot has moved: nobody has asked for that.
        link.hears(&push("sunsubscribe", "a"));
        link.hears(&push("ssubscribe", "b"));
        link.hears("-NOPERM no\r\n");
        let parts =
            |parts: &[&str]| Brought::Message(parts.iter().map(|part| part.as_bytes().into()).collect());
        for brought in [
            parts(&["message", "b", "m"]),
            parts(&["sunsubscribe", "a"]),
            Brought::Answer,
            Brought::Refusal(b"NOPERM no".to_vec()),
        ] {
            assert_eq!(line.next(), Ok(Some(brought)));
        }
        assert_eq!(line.next(), Ok(None));
    }

    #[test]
    fn what_waits_to_be_sent_is_bounded() {
        let mut line = line();
        let long = vec![0; UNSENT_BYTES_MAX / 2].into_boxed_slice();
        assert_eq!(line.want(SubscriptionKind::Channel, &[long], 0), Ok(1));
        let other = vec![1; UNSENT_BYTES_MAX / 2].into_boxed_slice();
        assert!(line.want(SubscriptionKind::Channel, &[other], 0).is_err());
        // It is not taken for one that comes.
        assert_eq!(line.names().count(), 1);
        assert_eq!(line.want(SubscriptionKind::Channel, &names(&["a"]), 0), Ok(2));
    }
}
