//! Owns: EXEC: the locks of all queued commands and watched keys, the check of the watches under them, the commands one
//! after the other. Does not own: queuing.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use weft_protocol::table::{CommandSpec, flag};
use weft_store::{Guards, Op};

use super::locks::Shards;
use super::neighbours::RunWith;
use super::{Core, Tier, admission};
use crate::args::Args;
use crate::blocking;
use crate::context::{Context, Locked};
use crate::engine::command_id;
use crate::error::{Error, ErrorCode, Result};
use crate::keys;
use crate::reply::ReplySink;
use crate::runner;
use crate::session::Session;
use crate::transaction::{Transaction, Watched};
use crate::trigger::Ahead;

impl Core<'_> {
    pub(super) fn exec(&mut self, tier: Tier<'_>, session: &mut Session, sink: &mut ReplySink<'_>) -> Result {
        if !session.in_multi() {
            return Err(Error::err("EXEC without MULTI"));
        }
        if matches!(tier, Tier::Busy) {
            // What takes its time has ended since this request was begun with, or admission had refused it. It is
            // refused all the same, and ends the transaction: who was answered BUSY may not find itself in MULTI.
            admission::end_transaction(tier, session);
            return Err(admission::abort(self.engine.scripts.busy_error()));
        }
        // Before anything of it has happened: what is locked for long is not waited for.
        let locked = match (tier, &session.transaction) {
            (Tier::Batch(batch), Some(transaction)) if !self.engine.forwards() => {
                let guards = self.shards(transaction).lock(batch);
                Some(guards.ok_or_else(|| Error::from(ErrorCode::NeedsWorld))?)
            }
            _ => None,
        };
        let Some(mut transaction) = session.transaction.take() else { return Ok(()) };
        session.show_queued(None);
        session.info.watched.store(0, Relaxed);
        if self.engine.forwards() {
            return self.exec_elsewhere(&mut transaction, session, sink);
        }
        match tier {
            Tier::Batch(_) => {
                let Some(mut guards) = locked else { return Ok(()) };
                let outcome = self.exec_locked(&mut transaction, Locked::Guards(&mut guards), session, sink);
                self.local.effects.end_group();
                outcome?;
                if !self.local.ready.is_empty() {
                    self.serve_after(&mut guards);
                }
            }
            // Seen to above.
            Tier::Busy => {}
            Tier::World(world) => {
                let mut guards = world.guards();
                let outcome =
                    self.exec_locked(&mut transaction, Locked::World(world, &mut guards), session, sink);
                self.local.effects.end_group();
                outcome?;
                if !self.local.ready.is_empty() {
                    self.serve_after(&mut guards);
                }
            }
        }
        self.local.spare_transaction = transaction.renewed();
        Ok(())
    }

    /// Serves those who waited for what the transaction wrote. A transaction may have taken long: what it gave a short
    /// time may be over.
    pub(super) fn serve_after(&mut self, guards: &mut Guards<'_>) {
        self.now_ms = self.engine.clock.now_ms().max(self.now_ms);
        blocking::serve_covered(self.engine, &mut self.local, guards, self.now_ms);
    }

    /// The shards of everything that a transaction names.
    fn shards(&self, transaction: &Transaction) -> Shards {
        let keyspace = &self.engine.keyspace;
        let shard = |key: &[u8]| keyspace.shard_of(&keyspace.key(key));
        let mut shards = Shards::default();
        for watched in &transaction.watched {
            shards.add(shard(&watched.key));
        }
        for args in transaction.queued.iter() {
            keys::each(&args, |index| shards.add(shard(args.bytes(index))));
        }
        shards
    }

    fn exec_locked<'b>(
        &mut self,
        transaction: &mut Transaction,
        mut locked: Locked<'_, 'b>,
        session: &mut Session,
        sink: &mut ReplySink<'_>,
    ) -> Result {
        let (Locked::Guards(guards) | Locked::World(_, guards)) = &mut locked else { return Ok(()) };
        self.give_back(guards, &transaction.watched[..transaction.stale]);
        let unchanged = self.give_back(guards, transaction.counting());
        transaction.watched.clear();
        transaction.charge.clear();
        if transaction.refused {
            return Err(ErrorCode::ExecAbort.into());
        }
        if transaction.no_room {
            let text =
                "Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.";
            return Err(Error::new(ErrorCode::ExecAbort, text));
        }
        if !unchanged {
            sink.null_array();
            return Ok(());
        }
        sink.array(transaction.queued.len());
        let outer = self.begin_inner(Instant::now());
        let mut ahead = std::mem::take(&mut transaction.ahead).into_iter().peekable();
        for (at, args) in transaction.queued.iter().enumerate() {
            if let Some((_, read)) = ahead.next_if(|(of, _)| *of == at)
                && let Ok(read) = read.downcast::<Ahead>()
            {
                read.hand_over((&mut self.local.programs, &mut self.local.triggers));
            }
            let locked = match &mut locked {
                Locked::Guards(guards) => Locked::Guards(guards),
                Locked::World(world, guards) => Locked::World(world, guards),
                Locked::Batch(_) | Locked::Key(_) | Locked::Nothing => return Ok(()),
            };
            self.run_queued(locked, (&args, runner::run), session, sink);
        }
        self.charge_inner(&outer, Instant::now());
        Ok(())
    }

    /// Runs one command of a transaction, under the locks of all, by [`runner::run`] or, where nothing is to fire, by
    /// [`runner::run_handler`].
    pub(super) fn run_queued(
        &mut self,
        locked: Locked<'_, '_>,
        (args, run): (&Args<'_>, RunWith),
        session: &mut Session,
        sink: &mut ReplySink<'_>,
    ) {
        let id = command_id(args);
        let begun = self.begin_command(id, sink.errors(), sink.len());
        let mut context =
            Context::new(self.engine, session, &mut self.local, self.now_ms, locked).without_blocking();
        let mark = sink.mark();
        // Rights may have changed since the command was queued.
        let outcome = self.engine.check_acl_again(context.session, args, context.now_ms).and_then(|()| {
            let handler = self.engine.handler_of(args)?;
            let outcome = run(&mut context, handler, args, sink);
            self.engine.monitor(context.session, args, context.now_ms);
            outcome
        });
        if let Err(error) = &outcome {
            runner::fail(self.stats, sink, mark, error);
        }
        // It and what is behind it are measured by what it has set.
        if id.spec().flags & flag::ADMIN != 0 {
            self.look_at_measures();
        }
        self.end_command((id, args), session, &begun, (sink.errors(), sink.len()));
        // Who tracks a key that a later command reads must not be told of this one's change.
        self.engine.invalidate_tracked(&mut self.local.effects, Some(session.id()));
    }

    /// Looks at all watched keys and gives their watches back; says whether none was written to.
    fn give_back(&mut self, guards: &mut Guards<'_>, watched: &[Watched]) -> bool {
        let mut unchanged = true;
        for Watched { db, key, there, version } in watched {
            let key = self.engine.keyspace.key(key);
            let shard = guards.shard(&key);
            // A key whose time has come since WATCH counts as written: looking at it removes it. One that was not there
            // may have been replaced by one whose time had come, which is no change.
            if *there {
                shard.exists(&mut Op::new(*db, self.now_ms, &mut self.local.effects.recorder), &key);
            }
            unchanged &= shard.watches().unchanged(*db, key.hash(), *version);
            shard.watches().remove(*db, key.hash());
        }
        unchanged
    }
}

impl Transaction {
    /// Whether this is so of any queued command.
    pub(crate) fn any(&self, is_so: impl Fn(&CommandSpec) -> bool) -> bool {
        self.queued.iter().any(|args| is_so(args.spec))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weft_protocol::table;
    use weft_store::{Config, Keyspace, ManualClock};

    use super::*;
    use crate::args::OwnedArgs;
    use crate::engine::{Engine, Setup};
    use crate::executor::locks;
    use crate::mailbox::Address;
    use crate::reply::{Output, Protocol, Wire};
    use crate::requests::What;
    use crate::session::ConnectionInfo;
    use crate::trigger::definition::Trigger;

    fn engine() -> Engine {
        let keyspace = Keyspace::new(Config::default());
        Engine::new(Setup { keyspace, clock: Box::new(ManualClock::new(1)), workers: 1 })
    }
    fn session(engine: &Engine) -> Session {
        let address = Address { worker: 0, connection: 0, channel: 0 };
        let wire = Wire { protocol: Protocol::Resp2, channel: 0 };
        engine.connect(address, wire, Arc::new(ConnectionInfo::default()), None)
    }

    /// A trigger anywhere does not have every transaction take everything.
    #[test]
    fn a_transaction_takes_everything_if_a_trigger_stands_at_its_keys() {
        let engine = engine();
        let (mut core, mut session) = (Core::new(&engine, 0, 7), session(&engine));
        let mut output = Output::default();
        for words in [&["MULTI"][..], &["SET", "k", "v"], &["GET", "other"]] {
            let id = table::by_name(words[0].as_bytes()).unwrap();
            let owned = OwnedArgs::new(id.spec(), words.iter().map(|word| word.as_bytes()));
            core.dispatch(Tier::Busy, What::Command(id), &owned.args(), &mut session, &mut output);
        }
        let exec = table::by_name(b"EXEC").unwrap();
        let (handler, owned) =
            (engine.handler(exec).unwrap(), OwnedArgs::new(exec.spec(), [&b"EXEC"[..]].into_iter()));
        let mut takes_all = |text: &str| {
            let trigger = Trigger::parse(b"t", text.as_bytes(), (1, true, "")).unwrap();
            engine.put_triggers([(b"t"[..].into(), Some(trigger))]);
            locks::needs_world((&engine, &mut core.local), handler, &owned.args(), &session)
        };
        assert!(!takes_all(r#"{"key":"other*","publish":"c"}"#), "what is read there fires nothing");
        assert!(takes_all(r#"{"key":"k*","publish":"c"}"#));
        assert!(!takes_all(r#"{"key":"k*","on":"expire","publish":"c"}"#));
    }

    /// The look at whether something takes its time and the admission of a request are two: between them it may end.
    #[test]
    fn exec_that_comes_as_a_script_ends_leaves_no_transaction() {
        let engine = engine();
        let (mut core, mut session) = (Core::new(&engine, 0, 7), session(&engine));
        let mut output = Output::default();
        let mut run = |words: &[&str]| {
            let id = table::by_name(words[0].as_bytes()).unwrap();
            let owned = OwnedArgs::new(id.spec(), words.iter().map(|word| word.as_bytes()));
            core.dispatch(Tier::Busy, What::Command(id), &owned.args(), &mut session, &mut output);
            String::from_utf8(std::mem::take(&mut output).to_vec()).unwrap()
        };
        assert_eq!(run(&["MULTI"]), "+OK\r\n");
        assert_eq!(run(&["SET", "k", "v"]), "+QUEUED\r\n");
        let end = run(&["EXEC"]);
        assert!(end.starts_with("-EXECABORT Transaction discarded because of: BUSY "), "{end}");
        assert_eq!(run(&["EXEC"]), "-ERR EXEC without MULTI\r\n");
    }
}
