//! Owns: beginning and ending to look on, and telling those who do: MONITOR, the feed of events, figures of each
//! second, hot keys. Does not own: what is kept for them and their lists (`crate::observe`).

use weft_protocol::table::flag;

use crate::args::Args;
use crate::engine::Engine;
use crate::history::Sources;
use crate::session::Session;
use crate::special;

impl Engine {
    /// Shows a command of a client that has run to those who watch: EXEC stands behind what it ran.
    #[inline]
    pub(crate) fn monitor(&self, session: &Session, args: &Args<'_>, now_ms: u64) {
        self.show(session, args, (now_ms, None));
    }
    /// Shows a command that a script runs.
    pub fn monitor_script(&self, session: &Session, args: &Args<'_>, now_ms: u64) {
        self.show(session, args, (now_ms, Some("lua")));
    }
    #[inline]
    fn show(&self, session: &Session, args: &Args<'_>, (now_ms, by): (u64, Option<&str>)) {
        if self.special.has(special::MONITORED) && args.spec.flags & (flag::SKIP_MONITOR | flag::ADMIN) == 0 {
            self.monitors.show(&self.mailboxes, session, args, (now_ms, by));
        }
    }

    /// A client of a worker follows what happens to keys from now on.
    pub fn join_feed(&self, worker: u16) {
        self.feed.join(worker, || self.look_at_events());
    }
    /// It does not any more.
    pub fn leave_feed(&self, worker: u16) {
        self.feed.leave(worker, self.clock.now_ms());
    }
    /// Ends the feed when nobody has followed it for long. Called now and then.
    pub fn look_at_feed(&self, now_ms: u64) {
        self.feed.look(now_ms, || self.look_at_events());
    }

    /// Somebody looks which keys are hot from now on.
    pub fn join_hot(&self) {
        self.hot.join(&self.special, self.clock.now_ms());
    }
    /// Somebody looks no more.
    pub fn leave_hot(&self) {
        self.hot.leave(&self.special);
    }

    /// A second may have passed: what it has brought is noted and told. Called some ten times a second.
    pub(crate) fn note_second(&self, now_ms: u64) {
        if !self.history.is_new_second(now_ms) {
            return;
        }
        self.hot.note_second(&self.mailboxes, now_ms);
        let from = Sources { keyspace: &self.keyspace, stats: &self.stats, clients: &self.clients };
        self.history.note_second(&from, &self.mailboxes, now_ms);
    }
}
