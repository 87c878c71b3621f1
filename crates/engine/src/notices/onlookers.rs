//! Owns: beginning and ending to look on, and telling those who do: MONITOR, the feed of events, figures of each
//! second, hot keys. Does not own: what is kept for them and their lists (`crate::observe`).

use weft_protocol::table::flag;

use crate::args::Args;
use crate::context::Context;
use crate::engine::Engine;
use crate::history::Sources;
use crate::monitor::line_of;
use crate::session::Session;
use crate::special;

/// What runs a script stands before what that calls, and is not shown behind it.
const fn may_be_shown(args: &Args<'_>) -> bool {
    args.spec.flags & (flag::SKIP_MONITOR | flag::ADMIN) == 0
}

/// What MONITOR shows of a script: nothing as long as all of it may be taken back and run again, unless it takes long.
impl Context<'_, '_> {
    /// The request that runs it.
    #[inline]
    pub(crate) fn note_script(&mut self, args: &Args<'_>) {
        if self.engine.special.has(special::MONITORED) {
            self.local.lines.push(line_of(self.session, args, (self.now_ms, None)));
        }
    }
    /// A command that it has called.
    #[inline]
    pub(crate) fn note_call(&mut self, args: &Args<'_>) {
        if self.engine.special.has(special::MONITORED) && may_be_shown(args) {
            self.local.lines.push(line_of(self.session, args, (self.now_ms, Some("lua"))));
        }
    }
    /// What was noted is shown.
    pub(crate) fn show_notes(&mut self) {
        for line in self.local.lines.drain(..) {
            self.engine.monitors.show(&self.engine.mailboxes, &line);
        }
    }
}

impl Engine {
    /// Shows a command of a client that has run to those who watch: EXEC stands behind what it ran.
    #[inline]
    pub(crate) fn monitor(&self, session: &Session, args: &Args<'_>, now_ms: u64) {
        if self.special.has(special::MONITORED) && may_be_shown(args) {
            self.monitors.show(&self.mailboxes, &line_of(session, args, (now_ms, None)));
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
