//! Owns: running commands that can be taken back: with a journal, as one group, with the keyspace to itself. Does not
//! own: the journal (`weft_store::undo`), why it is taken back.
//!
//! Until the end nobody is told of anything: no watch is touched, no event published, nobody who waits is served.

use weft_store::{Digest, Guards, World};

use super::Core;
use crate::args::{Args, check_arity, command_id};
use crate::blocking;
use crate::context::{Context, Locked};
use crate::error::{Error, Result};
use crate::handler::Scope;
use crate::inner::{self, Point};
use crate::reply::{Output, ReplySink};
use crate::runner;
use crate::session::Session;

/// Commands that are one attempt.
pub struct Attempt<'x, 'e> {
    core: &'x mut Core<'e>,
    world: &'x World<'x>,
    guards: Guards<'x>,
    session: &'x mut Session,
    begun: Point,
}

impl super::Executor<'_> {
    /// Runs `work`, whose commands become true together when it returns `true`, and are taken back otherwise. Waits
    /// until every other worker has ended its batch.
    pub fn attempt(&mut self, session: &mut Session, work: impl FnOnce(&mut Attempt<'_, '_>) -> bool) {
        self.core.begin();
        let world = self.worker.world();
        let begun = inner::begin(&mut self.core.local);
        let guards = world.guards();
        let mut attempt = Attempt { core: &mut self.core, world: &world, guards, session, begun };
        let keep = work(&mut attempt);
        attempt.end(keep);
        self.core.act_on_effects(session);
        self.core.drop_garbage();
    }
}

impl Attempt<'_, '_> {
    /// Runs one command. Its changes stay also when it answers an error, as those of a command in EXEC do.
    pub fn run(&mut self, args: &Args<'_>, output: &mut Output) -> Result {
        let engine = self.core.engine;
        let id = command_id(args);
        check_arity(args.spec, args.len())?;
        let handler = engine.handler_of(args)?;
        if matches!(handler.scope, Scope::Exec | Scope::Unwatch) {
            return Err(Error::err("this command is not one that can be taken back"));
        }
        let mut sink = ReplySink::new(output, self.session.wire);
        let begun = self.core.begin_command(id, sink.errors(), sink.len());
        let locked = Locked::World(self.world, &mut self.guards);
        let mut context = Context::new(engine, self.session, &mut self.core.local, self.core.now_ms, locked)
            .without_blocking();
        let mark = sink.mark();
        let outcome = runner::run(&mut context, handler, args, &mut sink);
        if outcome.is_err() {
            sink.rollback(mark);
        }
        self.core.end_command((id, args), self.session, &begun, (sink.errors(), sink.len()));
        outcome
    }

    /// A place to go back to.
    pub fn savepoint(&mut self) -> Point {
        inner::mark(&mut self.core.local)
    }
    /// Takes back what was done behind a place.
    pub fn rollback(&mut self, to: Point) {
        inner::rollback(&mut self.core.local, &mut self.guards, to);
    }
    /// The session that the commands are of.
    pub const fn session(&mut self) -> &mut Session {
        self.session
    }
    /// Shows the keyspace as it stands.
    pub fn look<R>(&mut self, look: impl FnOnce(&World<'_>) -> R) -> R {
        // Whoever looks locks for himself.
        self.guards = self.world.guards();
        look(self.world)
    }
    /// See [`Digest::of_keyspace`].
    pub fn digest(&mut self) -> Digest {
        self.look(Digest::of_keyspace)
    }

    fn end(mut self, keep: bool) {
        if !keep {
            self.rollback(self.begun);
        }
        let local = &mut self.core.local;
        inner::commit(local, &mut self.guards);
        self.core.engine.send_messages(local);
        local.effects.end_group();
        if !local.ready.is_empty() {
            blocking::serve_covered(self.core.engine, local, &mut self.guards, self.core.now_ms);
        }
    }
}
