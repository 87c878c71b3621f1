//! Owns: the turns of programs and scripts that take long, and of writes that fire such: so that whoever has come
//! meanwhile waits for one of them and not for all. Does not own: those that wait (whoever drives the executor holds
//! them, and gives them their turn).

use std::time::Instant;

use weft_protocol::table::{CommandId, flag};

use super::{Core, Executor, Postponed};
use crate::args::Args;
use crate::engine::command_id;
use crate::handler::{Handler, Scope};
use crate::requests::What;
use crate::session::Session;
use crate::trigger::Ahead;
use crate::{runner, special};

/// What the programs of one turn, and what writes fire, may take before those behind them wait for the next, in
/// nanoseconds: others are looked at in between.
const TURN_NS: u64 = 1_000_000;
/// A program that takes less is as any other command, and counts for nothing.
const LONG_NS: u64 = 100_000;

impl Executor<'_> {
    /// A turn of programs begins. `over`: others wait for theirs, and those that come now are to do so too.
    pub const fn begin_turn(&mut self, over: bool) {
        self.core.turn_ns = Some(if over { TURN_NS } else { 0 });
    }
    /// Whether the programs of the present turn have taken what there is.
    #[must_use]
    pub fn is_turn_over(&self) -> bool {
        self.core.is_turn_over()
    }
    /// Whether a request of a client is a program that may take long, or may fire one, and the present turn is over.
    #[must_use]
    pub fn waits_for_turn(&mut self, postponed: &Postponed, session: &Session) -> bool {
        self.core.waits_for_turn((postponed.what, &postponed.args.args()), session)
    }
}

impl Core<'_> {
    #[inline]
    pub(super) fn is_turn_over(&self) -> bool {
        self.turn_ns.is_some_and(|taken_ns| taken_ns >= TURN_NS)
    }
    /// Whether a request is a program or script that may take long, a write that may fire triggers, or a transaction
    /// with such, and the present turn is over. What is quick runs among its neighbours, and is not asked about.
    #[inline]
    pub(super) fn waits_for_turn(&mut self, request: (What, &Args<'_>), session: &Session) -> bool {
        self.is_turn_over() && self.may_take_long_turn(request, session)
    }
    #[cold]
    fn may_take_long_turn(&mut self, (what, args): (What, &Args<'_>), session: &Session) -> bool {
        let What::Command(id) = what else { return false };
        let handler = self.engine.handler(id);
        match (handler.map(|handler| handler.scope), &session.transaction) {
            (Some(Scope::Exec), Some(transaction)) => {
                transaction.queued.iter().any(|args| self.is_for_turn(command_id(&args), &args))
            }
            // It is queued, and read if there is something to read.
            _ if session.in_multi() => Ahead::is_of(args),
            _ => self.is_for_turn(id, args),
        }
    }
    /// Whether a command is a program or a script, or may fire one.
    fn is_for_turn(&mut self, id: CommandId, args: &Args<'_>) -> bool {
        if self.engine.handler(id).is_some_and(is_program) {
            return true;
        }
        self.engine.special.has(special::TRIGGERS)
            && args.spec.flags & flag::WRITE != 0
            && runner::may_fire_at(self.engine, &mut self.local, args)
    }
    /// A command is queued: what it brings as a text is read now, and not when everything is locked.
    pub(super) fn read_ahead(&mut self, args: &Args<'_>) -> Option<Ahead> {
        if self.engine.forwards() || !Ahead::is_of(args) {
            return None;
        }
        let began = Instant::now();
        let ahead = Ahead::read(&self.engine.programs, args);
        self.take_of_turn(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        ahead
    }
    /// What requests have fired has taken so long.
    #[inline]
    pub(super) fn take_fired_of_turn(&mut self) {
        let fired_ns = std::mem::take(&mut self.local.fired_ns);
        if fired_ns > 0 {
            self.take_of_turn(fired_ns);
        }
    }
    /// A program has run for so long, or what a write has fired.
    pub(super) fn take_of_turn(&mut self, took_ns: u64) {
        if let Some(taken_ns) = &mut self.turn_ns {
            *taken_ns += if took_ns < LONG_NS { 0 } else { took_ns };
        }
    }
}

/// Whether a command is PROGRAM's or TRIGGER's that may take long, or runs a script.
fn is_program(handler: Handler) -> bool {
    matches!(handler.scope, Scope::Brief(_) | Scope::Operation(_))
}
