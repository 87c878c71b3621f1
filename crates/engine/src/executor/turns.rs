//! Owns: the turns of programs that take long: so that whoever has come meanwhile waits for one of them and not for
//! all. Does not own: those that wait (whoever drives the executor holds them, and gives them their turn).

use super::{Core, Executor};
use crate::handler::{Handler, Scope};
use crate::requests::What;

/// What the programs of one turn may take before those behind them wait for the next, in nanoseconds: others are looked
/// at in between.
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
        self.core.turn_ns.is_some_and(|taken_ns| taken_ns >= TURN_NS)
    }
    /// Whether a request is a program that may take long, and the present turn is over.
    #[must_use]
    pub fn waits_for_turn(&self, what: What) -> bool {
        self.core.waits_for_turn(what)
    }
}

impl Core<'_> {
    /// Whether a request is a program that may take long, and the present turn is over. Those that are quick run among
    /// their neighbours, and are not asked about.
    #[inline]
    pub(super) fn waits_for_turn(&self, what: What) -> bool {
        let What::Command(id) = what else { return false };
        let is_program = |handler: Handler| matches!(handler.scope, Scope::Brief(_));
        self.turn_ns.is_some_and(|taken_ns| taken_ns >= TURN_NS)
            && self.engine.handler(id).is_some_and(is_program)
    }
    /// A program has run for so long.
    pub(super) fn take_of_turn(&mut self, took_ns: u64) {
        if let Some(taken_ns) = &mut self.turn_ns {
            *taken_ns += if took_ns < LONG_NS { 0 } else { took_ns };
        }
    }
}
