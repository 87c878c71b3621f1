//! Owns the way from bytes that arrive to replies and pushes: over RESP2 and for MONITOR a push looks like a reply, and
//! the confirmations of a subscription come one by one. Does not own who waits for them.

use std::io;
use std::time::Duration;

use weft_protocol::Reply;

use super::{Connection, Event};
use crate::codec::Incoming;
use crate::config::Protocol;
use crate::error::{Error, Result, ServerError, Waiting};
use crate::session::{Change, Kind, confirmation_kind};

impl Connection {
    /// The next reply or push that arrives; none when nothing comes for so long.
    pub(super) fn arrive(&mut self, limit: Option<Duration>) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.arrived()? {
                return Ok(Some(event));
            }
            if !self.read_more(limit)? {
                return Ok(None);
            }
        }
    }

    /// The next reply or push of what has been read.
    pub(super) fn arrived(&mut self) -> Result<Option<Event>> {
        loop {
            match self.decoder.decode(self.input.filled()) {
                Err(error) => {
                    let error = Error::malformed(error, self.input.filled());
                    return Err(self.fail(error));
                }
                Ok(None) => return Ok(None),
                Ok(Some((len, incoming))) => {
                    self.input.consume(len);
                    let Some(incoming) = incoming else { continue };
                    match self.sort(incoming) {
                        Ok(None) => {}
                        Ok(event) => return Ok(event),
                        Err(error) => return Err(self.fail(error)),
                    }
                }
            }
        }
    }

    /// Reads what there is; false when nothing comes for so long.
    pub(super) fn read_more(&mut self, limit: Option<Duration>) -> Result<bool> {
        let read = if limit == Some(Duration::ZERO) {
            let nonblocking = self.stream.set_nonblocking(true);
            let read = nonblocking.and_then(|()| self.stream.read(self.input.spare()));
            self.stream.set_nonblocking(false).and(read)
        } else {
            let mut set = Ok(());
            if self.read_limit != limit {
                set = self.stream.set_read_timeout(limit);
                self.read_limit = limit;
            }
            set.and_then(|()| self.stream.read(self.input.spare()))
        };
        match read {
            Ok(0) => {
                // In the midst of a frame, or of slices, it is no clean end.
                let is_clean = self.input.filled().is_empty() && self.decoder.is_between_frames();
                let goes_away = self.goes_away.take().filter(|_| is_clean);
                let error = goes_away.unwrap_or(Error::Closed);
                Err(self.fail(error))
            }
            Ok(len) => {
                self.input.add(len);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(false)
            }
            Err(error) => Err(self.fail(Error::from_socket(error, Waiting::Reply, limit))),
        }
    }

    fn sort(&mut self, incoming: Incoming) -> Result<Option<Event>> {
        match incoming {
            Incoming::Close { channel, code, reason } if channel == self.channel => {
                Err(Error::ChannelClosed { channel, code, reason })
            }
            Incoming::Close { .. } => Ok(None),
            // What has run is still answered.
            Incoming::GoAway { code, reason } => {
                self.goes_away = Some(Error::GoAway { code, reason });
                Ok(None)
            }
            Incoming::Slice { .. } => Ok(None),
            Incoming::Reply { channel, .. } | Incoming::Push { channel, .. } if channel != self.channel => {
                Err(Error::Unexpected("a frame for a channel that was not opened"))
            }
            Incoming::Push { reply, .. } => Ok(self.sort_push(reply)),
            Incoming::Reply { reply, .. } => {
                if self.is_message(&reply) {
                    let Reply::Array(parts) = reply else { return Ok(None) };
                    return Ok(self.sort_push(Reply::Push(parts)));
                }
                match self.monitor_line(reply) {
                    Ok(push) => Ok(Some(Event::Push(push))),
                    Err(reply) => self.answer(reply).map(|reply| Some(Event::Reply(reply))),
                }
            }
        }
    }

    /// A push; or one of the confirmations that the foremost request is answered with over RESP.
    fn sort_push(&mut self, push: Reply) -> Option<Event> {
        let confirmation = confirmation(&push);
        if confirmation.is_some() && confirmation == self.confirmation_due() {
            return self.gather(push).map(Event::Reply);
        }
        if confirmation.is_some() {
            self.session.confirm(&push);
        }
        Some(Event::Push(push))
    }

    /// What the confirmations of the foremost request say, if it has such.
    fn confirmation_due(&self) -> Option<(Kind, bool)> {
        match self.expected.front()?.change.as_deref()? {
            Change::Subscriptions { kind, add, .. } => Some((*kind, *add)),
            _ => None,
        }
    }

    /// Adds a confirmation; gives the reply when it was the last.
    fn gather(&mut self, push: Reply) -> Option<Reply> {
        let left = match (self.gather_left, self.expected.front()?.change.as_deref()?) {
            (Some(left), _) => left,
            (None, Change::Subscriptions { kind, names: 0, .. }) => {
                self.session.subscriptions_of(*kind).max(1)
            }
            (None, Change::Subscriptions { names, .. }) => *names,
            (None, _) => return None,
        };
        self.session.confirm(&push);
        let Reply::Push(parts) = push else { return None };
        self.gathered.push(Reply::Array(parts));
        if left > 1 {
            self.gather_left = Some(left - 1);
            return None;
        }
        self.gather_left = None;
        self.expected.pop_front();
        self.note_answer();
        Some(Reply::Array(std::mem::take(&mut self.gathered)))
    }

    /// The reply to the foremost request.
    fn answer(&mut self, reply: Reply) -> Result<Reply> {
        let Some(expected) = self.expected.pop_front() else {
            return Err(match reply {
                // What a server says before it closes a connection that it does not want.
                Reply::Error(text) => Error::Dismissed(ServerError::new(&text)),
                _ => Error::Unexpected("a reply that nothing asked for"),
            });
        };
        (self.gather_left, self.gathered) = (None, Vec::new());
        self.session.apply(expected.change.as_deref(), &reply);
        self.note_answer();
        Ok(reply)
    }

    fn note_answer(&mut self) {
        if self.expected.is_empty() {
            self.unanswered_bytes = 0;
        }
    }

    /// Over RESP2 messages and confirmations are arrays like any other; a subscriber gets no other arrays but PING's.
    fn is_message(&self, reply: &Reply) -> bool {
        if self.session.protocol() != Protocol::Resp2 {
            return false;
        }
        let Reply::Array(parts) = reply else { return false };
        let Some(Reply::Bulk(word)) = parts.first() else { return false };
        let due = self.confirmation_due();
        match (&word[..], parts.len()) {
            (b"message" | b"smessage", 3) | (b"pmessage", 4) => {
                due.is_some() || self.session.subscriptions() > 0
            }
            (word, 3) => match confirmation_kind(word) {
                Some(said) => due == Some(said) || self.session.subscriptions() > 0,
                None => false,
            },
            _ => false,
        }
    }

    /// Over RESP a line of MONITOR is a simple string: `1700000000.000000 [0 127.0.0.1:1] "ping"`.
    fn monitor_line(&self, reply: Reply) -> Result<Reply, Reply> {
        match reply {
            Reply::Simple(line)
                if self.session.is_monitoring()
                    && line.first().is_some_and(u8::is_ascii_digit)
                    && line.windows(2).any(|pair| pair == b" [") =>
            {
                Ok(Reply::Push(vec![Reply::Bulk(b"monitor".to_vec()), Reply::Bulk(line)]))
            }
            other => Err(other),
        }
    }
}

/// What a push confirms, if it is a confirmation.
fn confirmation(push: &Reply) -> Option<(Kind, bool)> {
    let Reply::Push(parts) = push else { return None };
    let Some(Reply::Bulk(word)) = parts.first() else { return None };
    confirmation_kind(word)
}
