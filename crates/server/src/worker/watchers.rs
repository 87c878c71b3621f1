//! Owns: a worker's connections that are told each second's figures. Does not own: the figures
//! (`weft_engine::history`).

use std::collections::BTreeSet;

use super::Worker;
use crate::connection::Peer;

/// The connections.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    connections: BTreeSet<u32>,
    /// Rows that they have been told of.
    count: u64,
}

impl Worker<'_> {
    /// A stream of figures has begun: first all that are kept.
    pub(super) fn begin_to_watch(&mut self, index: u32) {
        // The others come to the same row.
        self.tell_watchers();
        let history = &self.engine.history;
        let Some(connection) = self.io.get(index) else { return };
        let Peer::Http(http) = &mut connection.peer else { return };
        let Some((ledger, _)) = http.watching() else { return };
        history.join();
        let (count, rows) = history.all();
        ledger.events(format!("event: begin\ndata: {rows}\n\n").as_bytes(), &mut connection.output);
        if self.watchers.connections.is_empty() {
            self.watchers.count = count;
        }
        self.watchers.connections.insert(index);
        self.io.touch(index);
    }

    /// A connection has ended, which may have watched.
    pub(super) fn end_watching(&mut self, index: u32) {
        if self.watchers.connections.remove(&index) {
            self.engine.history.leave();
        }
    }

    /// A second has passed.
    pub(super) fn tell_watchers(&mut self) {
        let engine = self.engine;
        let (count, rows) = engine.history.behind(self.watchers.count);
        self.watchers.count = count;
        let text: String = rows.iter().map(|row| format!("data: {row}\n\n")).collect();
        let connections: Vec<u32> = self.watchers.connections.iter().copied().collect();
        for index in connections {
            let Some(connection) = self.io.get(index) else { continue };
            let Peer::Http(http) = &mut connection.peer else { continue };
            let Some((ledger, session)) = http.watching() else { continue };
            if !engine.still_may(session, b"INFO") {
                self.io.kill(index);
                continue;
            }
            ledger.events(text.as_bytes(), &mut connection.output);
            self.io.touch(index);
            if self.exceeds_output(index) {
                self.io.kill(index);
            }
        }
    }
}
