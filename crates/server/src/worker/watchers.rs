//! Owns: a worker's connections that are told something each second: the figures, or which keys are hot. Does not own:
//! the figures (`weft_engine::history`), the keys (`weft_engine::hot`).

use std::collections::BTreeMap;

use weft_engine::acl::User;

use super::Worker;
use crate::connection::Peer;

/// The connections.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    /// Each, and whether it is told which keys are hot.
    connections: BTreeMap<u32, bool>,
    /// Rows of figures that the others have been told of.
    count: u64,
    /// Lists of hot keys that they have been told of.
    lists: u64,
}

impl Worker<'_> {
    /// A stream has begun. One of figures begins with all that are kept.
    pub(super) fn begin_to_watch(&mut self, index: u32) {
        // The others come to the same row.
        self.send_rows();
        let engine = self.engine;
        let Some(connection) = self.io.get(index) else { return };
        let Peer::Http(http) = &mut connection.peer else { return };
        let Some((is_hot, ledger, _)) = http.watching() else { return };
        if is_hot {
            engine.join_hot();
            ledger.events(b"event: begin\ndata: {}\n\n", &mut connection.output);
        } else {
            engine.history.join();
            let (count, rows) = engine.history.all();
            ledger.events(format!("event: begin\ndata: {rows}\n\n").as_bytes(), &mut connection.output);
            if !self.watchers.connections.values().any(|is_hot| !is_hot) {
                self.watchers.count = count;
            }
        }
        self.watchers.connections.insert(index, is_hot);
        self.io.touch(index);
    }

    /// A connection has ended, which may have watched.
    pub(super) fn end_watching(&mut self, index: u32) {
        match self.watchers.connections.remove(&index) {
            Some(true) => self.engine.leave_hot(),
            Some(false) => self.engine.history.leave(),
            None => {}
        }
    }

    /// A second has passed, for the figures or for the keys.
    pub(super) fn send_to_watchers(&mut self) {
        self.send_rows();
        if !self.watchers.connections.values().any(|&is_hot| is_hot) {
            return;
        }
        let (lists, found) = self.engine.hot.found();
        if std::mem::replace(&mut self.watchers.lists, lists) != lists {
            self.send_to_each_watcher(true, |user| [b"data: ", &found.json(user)[..], b"\n\n"].concat());
        }
    }

    fn send_rows(&mut self) {
        let (count, rows) = self.engine.history.behind(self.watchers.count);
        self.watchers.count = count;
        if rows.is_empty() {
            return;
        }
        let text: String = rows.iter().map(|row| format!("data: {row}\n\n")).collect();
        self.send_to_each_watcher(false, |_| text.as_bytes().to_vec());
    }

    /// Tells those who look, as long as they may.
    fn send_to_each_watcher(&mut self, of_hot: bool, text: impl Fn(&User) -> Vec<u8>) {
        let engine = self.engine;
        let wanted = self.watchers.connections.iter().filter(|&(_, &is_hot)| is_hot == of_hot);
        let connections: Vec<u32> = wanted.map(|(&index, _)| index).collect();
        for index in connections {
            let Some(connection) = self.io.get(index) else { continue };
            let Peer::Http(http) = &mut connection.peer else { continue };
            let Some((_, ledger, session)) = http.watching() else { continue };
            if !engine.still_may(session, b"INFO") {
                self.io.kill(index);
                continue;
            }
            ledger.events(&text(&session.user), &mut connection.output);
            self.io.touch(index);
            if self.exceeds_output(index) {
                self.io.kill(index);
            }
        }
    }
}
