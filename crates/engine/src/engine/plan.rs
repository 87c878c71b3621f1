//! Owns: what is known of a command before any request: whether and how it may run among neighbours. Does not own:
//! running it (`crate::executor`), what the hot path asks of every command (`crate::traits`).

use weft_protocol::table::{COMMANDS, CommandId, flag, policy};

use crate::handler::{Handler, Handlers, Scope};
use crate::traits;

/// What is known of a command before any request.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) handler: Handler,
    /// How many arguments it has, the name included: at least, and at most.
    arguments: (u32, u32),
    /// Whether it can run under the lock of its first argument, its one key.
    pub(crate) one_lock: bool,
    /// Whether it runs without a lock: it has a channel and no key.
    pub(crate) no_lock: bool,
    /// Whether it is timed by itself: it may take longer than its neighbours.
    pub(crate) timed: bool,
    /// Whether it runs a stored program: one that is quick stays among neighbours.
    pub(crate) program: bool,
    /// Whether it opens a transaction: one that has come whole stays among neighbours.
    pub(crate) opens: bool,
    /// Whether others may wait for what it does.
    pub(crate) writes: bool,
    /// Whether it may store more than it frees.
    pub(crate) grows: bool,
    /// Whether it looks for a member, so that its neighbours' can be asked for meanwhile.
    pub(crate) looks: bool,
}

/// The plans of all commands, by id; nothing for those that never run among neighbours.
pub(crate) struct Plans(Box<[Option<Plan>]>);

impl Plans {
    #[inline]
    pub(crate) fn of(&self, id: CommandId) -> Option<&Plan> {
        self.0[usize::from(id.0)].as_ref()
    }
    /// Those that may run among neighbours are no barrier and have one key, their first argument, or a channel and no
    /// key, or a fast function; and PROGRAM RUN, and MULTI.
    pub(crate) fn new(handlers: &Handlers) -> Self {
        let of = |at: usize| {
            let id = CommandId(u16::try_from(at).ok()?);
            let (spec, traits) = (id.spec(), traits::of(id));
            // What another server runs has no shorter form here.
            let handler = handlers.get(id).filter(|handler| !matches!(handler.scope, Scope::Forward(_)))?;
            let one_lock = traits & traits::ONE_KEY != 0
                && matches!(handler.scope, Scope::Keys)
                && spec.flags & flag::ADMIN == 0;
            let no_lock = spec.policy & policy::CHANNEL_FIRST != 0
                && matches!(handler.scope, Scope::None)
                && traits & traits::QUICK != 0;
            let takes = (one_lock || no_lock || traits & traits::FAST != 0) && spec.container.is_none();
            // PROGRAM RUN: of what runs brief operations it alone names one.
            let program = matches!(handler.scope, Scope::Brief(_)) && spec.policy & policy::RULE_BY_NAME != 0;
            let opens = traits & traits::OPENS_TRANSACTION != 0;
            ((takes || program || opens) && traits & traits::BARRIER == 0).then_some(Plan {
                handler,
                arguments: arguments(spec.arity),
                one_lock: one_lock && takes,
                no_lock: no_lock && takes,
                timed: one_lock && traits & traits::QUICK == 0,
                program,
                opens,
                writes: spec.flags & flag::WRITE != 0,
                grows: spec.flags & flag::DENYOOM != 0,
                looks: traits & (traits::MEMBER_SECOND | traits::MEMBER_THIRD) != 0,
            })
        };
        Self((0..COMMANDS.len()).map(of).collect())
    }
}

impl Plan {
    /// Whether it may have so many arguments.
    #[inline]
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let (least, most) = self.arguments;
        least as usize <= arguments && arguments <= most as usize
    }
}

/// From the arity as the table has it: the number of arguments, or minus the least number.
fn arguments(arity: i16) -> (u32, u32) {
    let least = u32::from(arity.unsigned_abs());
    (least, if arity < 0 { u32::MAX } else { least })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_protocol::table;

    #[test]
    fn what_runs_without_a_lock_are_messages() {
        let plans = Plans::new(&crate::handlers());
        let ids = (0..COMMANDS.len()).map(|at| CommandId(at as u16));
        let no_lock = ids.filter(|id| plans.of(*id).is_some_and(|plan| plan.no_lock));
        let known = ["PUBLISH", "SPUBLISH"].map(|name| table::by_name(name.as_bytes()).expect("a command"));
        assert_eq!(no_lock.collect::<Vec<_>>(), known);
    }
}
