//! Owns: what the executor does for requests that another server runs: which may follow each other, EXEC. Does not own:
//! their way there (`crate::forward`).

use super::{Core, Executor};
use crate::args::{Args, check_arity};
use crate::error::{ErrorCode, Result};
use crate::forward::{self, FORWARDED_MAX, Forwards, Way};
use crate::handler::{Handler, Scope};
use crate::reply::{Output, ReplySink};
use crate::requests::{Postponed, What};
use crate::session::{Session, WATCHES_LOST, client_flag};
use crate::special;
use crate::transaction::Transaction;

impl Executor<'_> {
    /// What another server is to run, as it has come together.
    pub const fn forwards(&mut self) -> &mut Forwards {
        &mut self.core.local.forwards
    }

    /// What a client wants to be told of comes from over there: the request that asked for it runs now, here. Says
    /// whether it has run; if not, or if it is refused, nothing else runs here in its place.
    pub fn run_confirmed(&mut self, request: &Postponed, session: &mut Session, output: &mut Output) -> bool {
        session.confirmed = true;
        session.hold_back();
        let has_run = self.run_owned(request, session, output);
        session.confirmed = false;
        has_run
    }

    /// A session gives back the connection over which it watches keys: it will send no EXEC. One that comes all the
    /// same does nothing.
    pub fn give_back_elsewhere(&mut self, session: &mut Session) {
        if session.watches_elsewhere() && !session.is_waiting() {
            self.core.local.forwards.give_back(session);
            session.watches = WATCHES_LOST;
        }
    }

    /// Whether there is anything for another server to run.
    #[must_use]
    pub const fn has_forwards(&self) -> bool {
        !self.core.local.forwards.list.is_empty()
    }
}

impl Core<'_> {
    /// Whether a request may follow others that another server has not answered, on the same connection: so that
    /// it is admitted, and its reply is not written before theirs.
    #[cold]
    pub(super) fn joins(&self, what: What, args: &Args<'_>, session: &Session) -> bool {
        let What::Command(id) = what else { return false };
        let goes_there = |handler: Handler| matches!(handler.scope, Scope::Forward(Way::There));
        session.joins
            && session.held == 0
            && session.forwarded < FORWARDED_MAX
            && self.engine.handler(id).is_some_and(goes_there)
            && check_arity(id.spec(), args.len()).is_ok()
            && session.acl_epoch == self.engine.acl.epoch()
            && session.authenticated
            && session.user.check(args, session.db, self.engine.keyspace.database_count()).is_ok()
            && self.check_reach(args, session, session.db).is_ok()
            && session.asked.is_none()
            && !self.engine.special.has(special::EACH)
            && !session.info.has(client_flag::MONITOR)
    }

    /// Whether a session's user may have another server run a request, if one does.
    pub(super) fn check_reach(&self, args: &Args<'_>, session: &Session, db: u8) -> Result {
        if session.user.all || !self.engine.forwards() {
            return Ok(());
        }
        forward::check_reach(self.engine, &session.user, args, db)
    }

    /// Has another server run the transaction, in which all keys that are watched are watched.
    pub(super) fn exec_elsewhere(
        &mut self,
        transaction: &mut Transaction,
        session: &mut Session,
        sink: &mut ReplySink<'_>,
    ) -> Result {
        let refused = transaction.refused.then(|| ErrorCode::ExecAbort.into());
        // Rights may have changed since a command was queued.
        let refused = refused.or_else(|| {
            let mut queued = transaction.queued.iter();
            queued.find_map(|args| {
                let allowed = self.engine.check_acl_again(session, &args, self.now_ms);
                allowed.and_then(|()| self.check_reach(&args, session, session.db)).err()
            })
        });
        if let Some(error) = refused {
            self.local.forwards.release(session);
            return Err(error);
        }
        if transaction.queued.is_empty() && session.watches == 0 {
            sink.array(0);
            return Ok(());
        }
        forward::exec(self.engine, &mut self.local, session, &transaction.queued)
    }
}
