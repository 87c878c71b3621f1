//! Owns: the commands of what users give the server to run: scripts, functions, programs, triggers; and running it.
//! Does not own: Lua (`weft_lua`), sources (`crate::script`), programs and triggers themselves (`crate::program`,
//! `crate::trigger`), the other commands (`crate::commands`).

mod named;
mod program;
mod script;
mod trigger;

use crate::acl::LogPlace;
use crate::handler::{Entry, Logic};
use crate::inner::Inner;
pub(crate) use trigger::OutboxRunner;

/// The handlers.
pub(crate) const LISTS: &[&[Entry]] = &[program::LIST, script::FUNCTIONS, script::LIST, trigger::LIST];

/// What running a command comes to.
pub(crate) const LOGIC: Logic = Logic {
    fire: trigger::run,
    fire_needs: trigger::needs,
    may_look_up: crate::commands::keys::sort::check_rights_of,
    run_program: |context, stored, params| {
        stored.run_inside(&mut Inner::new(context, LogPlace::Script), params)
    },
};

#[cfg(test)]
mod tests {
    use weft_protocol::table::{COMMANDS, CommandId, flag};

    use crate::args::OwnedArgs;
    use crate::handler::Scope;
    use crate::program::quick::may_be_quick;
    use crate::requests::is_container;
    use crate::{handlers, keys};

    /// Programs are read without handlers.
    #[test]
    fn what_programs_know_of_commands_by_the_table_is_what_their_handlers_say() {
        let (handlers, mut quick, mut all) = (handlers(), 0, 0);
        for id in (0..COMMANDS.len()).map(|at| CommandId(u16::try_from(at).unwrap())) {
            let (spec, handler) = (id.spec(), handlers.get(id));
            if spec.flags & (flag::NOSCRIPT | flag::ADMIN) != 0 || is_container(id) {
                continue;
            }
            // What nobody serves, as a module's, is refused when it runs.
            let Some(handler) = handler else { continue };
            if may_be_quick(id) {
                assert!(matches!(handler.scope, Scope::Keys), "{spec:?}");
                quick += 1;
            }
            let owned = OwnedArgs::new(spec, [&b"?"[..], b"k", b"BY", b"p*"].into_iter());
            let looks = match handler.scope {
                Scope::World | Scope::Walk => true,
                Scope::KeysOrWorld(asks) => asks(&owned.args()),
                _ => false,
            };
            assert_eq!(keys::looks_at_all(&owned.args()), looks, "{spec:?}");
            all += u32::from(looks);
        }
        assert!(quick > 50 && all == 8, "{quick} may be quick, {all} look at all keys");
    }
}
