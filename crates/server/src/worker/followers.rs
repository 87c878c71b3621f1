//! Owns: a worker's connections that follow what happens to keys: telling them what is new. Does not own: the events
//! (`weft_engine::feed`), which of them a connection wants (`crate::http::following`).
//!
//! All of them stand at one number. What is new is read and written as text once, and each takes what it wants of it.

use std::collections::BTreeSet;

use weft_engine::feed::Missed;

use super::Worker;
use crate::connection::Peer;
use crate::http::following::{self, Written};

/// Events that are read at once.
const EVENTS_PER_READ_MAX: usize = 1024;

/// The connections.
#[derive(Debug, Default)]
pub(super) struct Followers {
    connections: BTreeSet<u32>,
    /// The number of the first event that they were not told of.
    next: u64,
}

impl Worker<'_> {
    /// An event stream has begun: if it is one of keys, it is told what it has missed, and from now on what is new.
    pub(super) fn begin_to_follow(&mut self, index: u32) {
        let engine = self.engine;
        let Some(connection) = self.io.get(index) else { return };
        let Peer::Http(http) = &mut connection.peer else { return };
        if http.following().is_none() {
            return;
        }
        engine.join_feed(self.id);
        if self.followers.connections.is_empty() {
            self.followers.next = engine.feed.next();
        }
        // The others come to the same number.
        self.send_to_followers();
        let Some(connection) = self.io.get(index) else { return };
        let Peer::Http(http) = &mut connection.peer else { return };
        let Some((following, ledger, session)) = http.following() else { return };
        let (epoch, end) = (engine.feed.epoch(), self.followers.next);
        let begin = following.begin(engine);
        let mut text = match begin {
            Ok(from) => following::mark("ready", epoch, from.min(end)),
            Err(_) => following::mark("reset", epoch, end),
        };
        let mut from = begin.unwrap_or(end);
        while from < end {
            let count = EVENTS_PER_READ_MAX.min((end - from) as usize);
            let Ok(events) = engine.feed.read(from, count) else {
                text = following::mark("reset", epoch, end);
                break;
            };
            from += events.len() as u64;
            let written: Vec<_> = events.into_iter().map(|event| Written::of(event, epoch)).collect();
            following.write(&written, session, &mut text);
        }
        ledger.events(&text, &mut connection.output);
        self.followers.connections.insert(index);
        self.io.touch(index);
    }

    /// A connection has ended, which may have followed.
    pub(super) fn end_following(&mut self, index: u32) {
        if self.followers.connections.remove(&index) {
            self.engine.leave_feed(self.id);
        }
    }

    /// There are more events.
    pub(super) fn send_to_followers(&mut self) {
        let engine = self.engine;
        engine.feed.looks(self.id);
        let epoch = engine.feed.epoch();
        loop {
            match engine.feed.read(self.followers.next, EVENTS_PER_READ_MAX) {
                Ok(events) if events.is_empty() => return,
                Ok(events) => {
                    self.followers.next += events.len() as u64;
                    let written: Vec<_> = events.into_iter().map(|event| Written::of(event, epoch)).collect();
                    self.send_to_each(&written, &[]);
                }
                Err(Missed) => {
                    self.followers.next = engine.feed.next();
                    self.send_to_each(&[], &following::mark("reset", epoch, self.followers.next));
                }
            }
        }
    }

    fn send_to_each(&mut self, events: &[Written], mark: &[u8]) {
        let connections: Vec<u32> = self.followers.connections.iter().copied().collect();
        for index in connections {
            let engine = self.engine;
            let Some(connection) = self.io.get(index) else { continue };
            let Peer::Http(http) = &mut connection.peer else { continue };
            let Some((following, ledger, session)) = http.following() else { continue };
            engine.keep_user(session);
            let mut text = mark.to_vec();
            following.write(events, session, &mut text);
            if text.is_empty() {
                continue;
            }
            ledger.events(&text, &mut connection.output);
            self.io.touch(index);
            if self.exceeds_output(index) {
                self.io.kill(index);
            }
        }
    }
}
