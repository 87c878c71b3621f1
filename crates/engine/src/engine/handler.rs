//! Owns: the table from a command to the code that runs it. Does not own: that code (`crate::commands`).

use weft_protocol::table::{self, COMMANDS, CommandId};

use crate::acl::User;
use crate::args::Args;
use crate::context::{Context, Local};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::forwards::{Way, Ways};
use crate::keys::Needs;
use crate::program::stored::Stored;
use crate::program::value::Value;
use crate::reply::ReplySink;

/// Runs a command: writes exactly one value, or blocks the session and writes none, or gives an error and whatever was
/// written is taken back.
pub type HandlerFn = fn(&mut Context<'_, '_>, &Args<'_>, &mut ReplySink<'_>) -> Result;

/// What must be locked while a command runs.
#[derive(Clone, Copy)]
pub enum Scope {
    /// The shards of the keys that the command table names.
    Keys,
    /// None: the command does not touch keys.
    None,
    /// None, but the command locks shards by itself, one at a time: inside EXEC everything is locked instead.
    Walk,
    /// Everything.
    World,
    /// Everything if these arguments ask for more than the named keys, else those.
    KeysOrWorld(fn(&Args<'_>) -> bool),
    /// What the operation says by itself that it needs with these arguments. If it answers
    /// [`ErrorCode::NeedsWorld`](crate::ErrorCode::NeedsWorld) all the same it runs again with everything: it has taken
    /// back what it did.
    Operation(fn(&Engine, &Args<'_>) -> Needs),
    /// As an operation, of one that ends by itself in a short time: it is not left for others meanwhile. Whether
    /// everything is open anyway, so that shards need not be named, is the last argument; what it has looked up for the
    /// answer it may keep for the run, which follows where it does not need everything.
    Brief(fn(&Engine, &mut Local, &Args<'_>, bool) -> Needs),
    /// EXEC: what its queued commands and watched keys need.
    Exec,
    /// Another server runs it, this way.
    Forward(Way),
    /// DISCARD, UNWATCH and what else gives up watches: no lock held, not queued.
    Unwatch,
}

/// How a command is run.
#[derive(Clone, Copy)]
pub struct Handler {
    /// The code.
    pub run: HandlerFn,
    /// The locks.
    pub scope: Scope,
}

/// One line of a list of handlers: `GET`, or `CLIENT ID` for a subcommand.
pub(crate) type Entry = (&'static str, Scope, HandlerFn);

/// Of a user, a request, its database and how many there are.
pub(crate) type LooksUp = fn(&User, &Args<'_>, (u8, usize)) -> Result;

/// What running a command comes to besides its handler, which itself runs commands (`crate::logic`).
#[derive(Clone, Copy)]
pub(crate) struct Logic {
    /// Runs a write command with the triggers that it fires: nothing of both stays if either fails.
    pub(crate) fire: fn(&mut Context<'_, '_>, Handler, &Args<'_>, &mut ReplySink<'_>) -> Result,
    /// What the triggers of a command need, in this database, beside its own keys; nothing if it fires none. Where
    /// everything is open, which the last argument says, no shard is named.
    pub(crate) fire_needs: fn(&Engine, &mut Local, (u8, &Args<'_>), bool) -> Option<Needs>,
    /// Whether a user may have SORT look up what its options name, in a database of so many.
    pub(crate) may_look_up: LooksUp,
    /// Runs a stored program.
    pub(crate) run_program: fn(&mut Context<'_, '_>, &Stored, Vec<Value>) -> Result<Value>,
}

/// The handlers by [`CommandId`]; nothing where a command of the table is not served.
pub(crate) struct Handlers {
    all: Box<[Option<Handler>]>,
    pub(crate) logic: Logic,
}

impl Handlers {
    /// The handlers of these lists.
    ///
    /// # Panics
    /// When a list names a command that the table does not have, or one twice: a mistake that every test would show.
    pub(crate) fn of<'l>(lists: impl IntoIterator<Item = &'l &'l [Entry]>, logic: Logic) -> Self {
        let mut all: Box<[Option<Handler>]> = vec![None; COMMANDS.len()].into();
        for &(name, scope, run) in lists.into_iter().copied().flatten() {
            let id = find(name);
            let place = &mut all[usize::from(id.0)];
            assert!(place.is_none(), "{name} has two handlers");
            *place = Some(Handler { run, scope });
        }
        Self { all, logic }
    }
    /// The same for a server that has another one run what is not its own.
    pub(crate) fn forwarding(self, ways: Ways) -> Self {
        let Self { mut all, logic } = self;
        for (place, id) in all.iter_mut().zip(0..) {
            let way = ways(CommandId(id));
            let local =
                matches!(way, Way::Here | Way::Anywhere) || crate::requests::is_container(CommandId(id));
            if !local {
                // Subscriptions are also kept here.
                let run = place.map_or(elsewhere as HandlerFn, |handler| handler.run);
                *place = Some(Handler { run, scope: Scope::Forward(way) });
            }
        }
        Self { all, logic }
    }
    #[inline]
    pub(crate) fn get(&self, id: CommandId) -> Option<Handler> {
        self.all[usize::from(id.0)]
    }
}

/// A command that only the other server has never runs here.
fn elsewhere(_: &mut Context<'_, '_>, args: &Args<'_>, _: &mut ReplySink<'_>) -> Result {
    Err(Error::err(format!("unknown command '{}'", crate::error::full_name(args.spec))))
}

fn find(name: &str) -> CommandId {
    let (container, sub) =
        name.split_once(' ').map_or((name, None), |(container, sub)| (container, Some(sub)));
    let id = table::by_name(container.as_bytes());
    let id = match sub {
        Some(sub) => id.and_then(|id| table::subcommand(id, sub.as_bytes())),
        None => id,
    };
    id.unwrap_or_else(|| panic!("the command table has no {name}"))
}
