//! Owns: what a worker does for those who wait, beside its batches: their ends, replies that others have written, and
//! in steps what would hold others up at once. Does not own: waiting (`crate::blocking`).

use super::Executor;
use crate::blocking::{self, End};
use crate::reply::Output;
use crate::session::Session;

impl Executor<'_> {
    /// Ends the session's blocked request and writes its answer. `false`: somebody has served it meanwhile, and the
    /// reply is on its way.
    pub fn end_wait(&mut self, session: &mut Session, output: &mut Output, end: End) -> bool {
        if self.core.engine.is_busy() {
            return false;
        }
        let from = output.end();
        // A script that keeps its key may just have begun to take long: then its place there is given back later.
        let batch = self.worker.enter_in_time();
        let own = (self.core.engine, &mut self.core.local);
        let ended = blocking::end_own(own, batch.as_ref(), session, output, end);
        if ended && !session.takes_reply() {
            output.take_back(from);
        }
        session.look();
        ended
    }
    /// The reply of the session's blocked request, written by somebody else, has come.
    pub fn served(&mut self, session: &mut Session, output: &mut Output, reply: Output) {
        if session.takes_reply() {
            let from = output.end();
            output.append(reply);
            self.core.engine.withhold_brought(output, from, true);
        }
        let batch = self.worker.enter_in_time();
        blocking::served(self.core.engine, &mut self.core.local, batch.as_ref(), session);
        session.look();
    }

    /// Gives back so many of the places in queues that waits with many keys have left.
    pub fn leave_places(&mut self, count: usize) {
        if self.has_places_to_leave()
            && let Some(batch) = self.worker.enter_in_time()
        {
            blocking::leave_some(self.core.engine, &mut self.core.local, &batch, count);
        }
    }
    /// Whether there are some, and they can be had: keys may be locked for as long as a script runs.
    #[must_use]
    pub fn has_places_to_leave(&self) -> bool {
        !self.core.local.leaving.is_empty() && !self.core.engine.is_busy()
    }

    /// From now on those whom one write serves are served in steps: its owner comes back for them with each tick.
    pub const fn serves_in_steps(&mut self) {
        self.core.local.serve_in_steps();
    }
    /// Serves some more of those who wait for what has been written.
    pub fn serve_some(&mut self) {
        self.core.local.begin_step();
        if !self.has_some_to_serve() {
            return;
        }
        let core = &mut self.core;
        let (engine, now_ms) = (core.engine, core.engine.clock.now_ms());
        let Some(batch) = self.worker.enter_in_time() else { return };
        core.local.effects.begin(engine);
        blocking::serve_some(engine, &mut core.local, &batch, now_ms);
        drop(batch);
        engine.after_background(&mut core.local.effects);
        core.drop_garbage();
    }
    /// Whether there are some, and their keys can be had.
    #[must_use]
    pub fn has_some_to_serve(&self) -> bool {
        !self.core.local.serving.is_empty() && !self.core.engine.is_busy()
    }
}
