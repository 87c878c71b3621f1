//! Owns: a write command with the triggers that it fires: what they do inside belongs to its group, and a failure takes
//! the command back. Does not own: what is done afterwards (`super::outbox`).
//!
//! Before the locks are taken, the keys of the command find the triggers that it may fire, whose programs' keys join
//! the lock set; one whose keys cannot be known takes the keyspace for itself. What then is written elsewhere, or fires
//! further triggers, is taken back and runs again so.

use weft_protocol::table::flag;
use weft_store::wants;

use super::definition::{Action, Trigger, kind};
use super::event::{Event, since};
use super::{DEPTH_MAX, FIRED_MAX, Figures};
use crate::acl::LogPlace;
use crate::args::{Args, Composed};
use crate::commands::program::run_stored;
use crate::context::{Context, Hold};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, full_name};
use crate::glob;
use crate::handler::{Handler, Needs};
use crate::inner::{self, Inner};
use crate::keys;
use crate::program::budget::{Budget, Limits};
use crate::program::expr::{Expr, Frame};
use crate::program::value::Value;
use crate::reply::ReplySink;
use crate::runner;

/// Whether a command may fire triggers here: one that writes keys which any are for. Under the lock of one key that has
/// been asked before.
#[cold]
pub(crate) fn may_fire(context: &Context<'_, '_>, args: &Args<'_>) -> bool {
    let holds = matches!(context.hold, Hold::Guards(_) | Hold::World(..));
    if !context.fires || !holds || args.spec.flags & flag::WRITE == 0 {
        return false;
    }
    let (index, mut fires) = (context.engine.triggers.index(), false);
    keys::each(args, |at| fires |= index.has(args.bytes(at)));
    fires
}

/// What the triggers of a command need beside its own keys; nothing if it fires none.
pub(crate) fn needs(engine: &Engine, db: u8, args: &Args<'_>) -> Option<Needs> {
    let index = engine.triggers.index();
    let (mut shards, mut fires, mut world) = (Vec::new(), false, false);
    keys::each(args, |at| {
        let key = args.bytes(at);
        for trigger in index.find(db, key, u8::MAX) {
            fires = true;
            let event = Event { kind: kind::SET, db, key: key.into() };
            match trigger.needs(engine, &event, args) {
                Needs::World => world = true,
                Needs::Shards(more) => shards.extend(more),
            }
        }
    });
    fires.then_some(if world { Needs::World } else { Needs::Shards(shards) })
}

impl Trigger {
    fn needs(&self, engine: &Engine, event: &Event, args: &Args<'_>) -> Needs {
        let known = Value::object(event.members(&full_name(args.spec)));
        match &self.action {
            Action::After(_) | Action::Publish(_) => Needs::Shards(Vec::new()),
            Action::Inside(name) => match engine.programs.get(name) {
                Some(stored) => match stored.program.event_params(known) {
                    Ok(params) => stored.program.needs(engine, params),
                    Err(_) => Needs::Shards(Vec::new()),
                },
                None => Needs::Shards(Vec::new()),
            },
            Action::Stream(name) => {
                let (mut frame, mut text) = (self.frame(engine, known), Vec::new());
                let key = frame.write_text(name, &mut text).map(|()| engine.keyspace.key(&text));
                Needs::Shards(key.map(|key| engine.keyspace.shard_of(&key)).into_iter().collect())
            }
        }
    }
    /// Whether it would fire for an event, and why.
    pub(crate) fn would_fire(&self, engine: &Engine, event: Value) -> Result<(bool, &'static str), Error> {
        let Value::Object(members) = &event else { return Err(Error::err("event: expected an object")) };
        let text = |name: &str| members.get(name.as_bytes()).and_then(|value| value.to_text().ok());
        let key = text("key").ok_or_else(|| Error::err("event: expected the member \"key\""))?;
        let kinds = text("kind").unwrap_or_else(|| b"set"[..].into());
        let kind = kind::NAMES.iter().find(|(name, _)| name.as_bytes() == &*kinds).map(|(_, bit)| *bit);
        let kind = kind.ok_or_else(|| Error::err("event: kind is one of set, delete, expire, evict"))?;
        let db = match members.get(&b"db"[..]) {
            Some(Value::Int(db)) => u8::try_from(*db).ok(),
            _ => Some(0),
        };
        if !self.enabled {
            return Ok((false, "it is disabled"));
        }
        if self.on & kind == 0 {
            return Ok((false, "the kind is another"));
        }
        if self.db.is_some() && self.db != db {
            return Ok((false, "the database is another"));
        }
        if !glob::matches(&self.pattern, &key) {
            return Ok((false, "the key does not match"));
        }
        let Some(when) = &self.when else { return Ok((true, "everything matches")) };
        let holds = self.frame(engine, event.clone()).holds(when);
        match holds.map_err(|fault| Error::new(ErrorCode::Program, fault))? {
            true => Ok((true, "everything matches, and the condition holds")),
            false => Ok((false, "the condition does not hold")),
        }
    }
    pub(super) fn frame(&self, engine: &Engine, event: Value) -> Frame {
        let mut values = vec![event];
        values.resize(self.slots, Value::Null);
        Frame { values, now_ms: engine.clock.now_ms(), budget: Budget::new(Limits::DEFAULT) }
    }
}

/// A command with the triggers that it fires.
struct Firing<'i, 'c, 'a, 'b> {
    inner: &'i mut Inner<'c, 'a, 'b>,
    command: String,
    fired: u32,
    /// The triggers whose doing the present one is, the first one first.
    chain: Vec<Box<[u8]>>,
}

/// Runs a write command, and what it fires, with nothing of both staying if either fails.
#[cold]
pub(crate) fn run(
    context: &mut Context<'_, '_>,
    handler: Handler,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result<(), Error> {
    debug_assert!(args.spec.flags & flag::WRITE != 0, "only what writes fires");
    let recorder = &mut context.local.effects.recorder;
    let (had_values, mark) = (recorder.wanted() & wants::VALUES != 0, recorder.tape().mark());
    recorder.want_also(wants::VALUES, true);
    let mut inner = Inner::new(context, LogPlace::Script);
    let undoing = inner.begin_undo();
    let outcome = runner::run_handler(inner.context(), handler, args, sink).and_then(|()| {
        let command = full_name(args.spec);
        let mut firing = Firing { inner: &mut inner, command, fired: 0, chain: Vec::new() };
        firing.events_since(mark)
    });
    match outcome {
        Ok(()) => inner.commit(undoing),
        Err(_) => inner.abandon(undoing),
    }
    context.local.effects.recorder.want_also(wants::VALUES, had_values);
    outcome
}

impl Firing<'_, '_, '_, '_> {
    /// Fires what the effects behind a mark fire.
    fn events_since(&mut self, mark: weft_store::effect::TapeMark) -> Result<(), Error> {
        let events = since(self.inner.context(), mark);
        for event in events {
            let index = self.inner.context().engine.triggers.index();
            for trigger in index.find(event.db, &event.key, event.kind) {
                self.fire(&trigger, &event)?;
            }
        }
        Ok(())
    }

    fn fire(&mut self, trigger: &Trigger, event: &Event) -> Result<(), Error> {
        self.fired += 1;
        self.chain.push(trigger.name.clone());
        let outcome = if self.chain.len() > DEPTH_MAX as usize {
            Err(Error::new(ErrorCode::Limit, format!("triggers fire {DEPTH_MAX} deep at most")))
        } else if self.fired > FIRED_MAX {
            Err(Error::new(ErrorCode::Limit, format!("a command fires {FIRED_MAX} triggers at most")))
        } else {
            self.act(trigger, event)
        };
        let outcome = outcome.map_err(|error| self.named(trigger, error));
        self.chain.pop();
        outcome
    }

    /// An error with the names of the triggers that led to it, once.
    fn named(&self, trigger: &Trigger, error: Error) -> Error {
        if error.code == ErrorCode::NeedsWorld || error.code == ErrorCode::Trigger {
            return error;
        }
        Figures::count(&trigger.figures.failed);
        let names: Vec<_> = self.chain.iter().map(|name| String::from_utf8_lossy(name)).collect();
        let text = format!("trigger {}: {}", names.join(" > "), error.text).into();
        Error { code: ErrorCode::Trigger, prefix: Some(error.prefix().into()), text }
    }

    fn act(&mut self, trigger: &Trigger, event: &Event) -> Result<(), Error> {
        let engine = self.inner.context().engine;
        let value = event.value(&self.command, self.inner.context());
        let mut frame = trigger.frame(engine, value.clone());
        let failed = |fault| Error::new(ErrorCode::Program, fault);
        if let Some(when) = &trigger.when
            && !frame.holds(when).map_err(failed)?
        {
            Figures::count(&trigger.figures.passed_over);
            return Ok(());
        }
        // What the trigger writes is fired for here, and not by the commands that write it.
        let mark = self.inner.context().local.effects.recorder.tape().mark();
        match &trigger.action {
            Action::Inside(name) => {
                let stored = engine.programs.get(name).ok_or_else(|| {
                    let name = String::from_utf8_lossy(name);
                    Error::new(ErrorCode::NoProgram, format!("no program '{name}' is stored"))
                })?;
                let params = stored.program.event_params(value)?;
                self.as_owner(trigger, event.db, |inner| {
                    run_stored(inner.context(), &stored, params).map(drop)
                })?;
            }
            Action::After(_) => {
                engine.triggers.outbox.add(self.inner.context(), trigger, event, &self.command)?;
            }
            Action::Stream(name) => {
                let words = [Expr::Literal(Value::text(b"XADD")), Expr::Literal(Value::text(b"*"))];
                let [xadd, any] = &words;
                let mut args = Composed::default();
                args.push_with(|text| frame.write_text(xadd, text)).map_err(failed)?;
                args.push_with(|text| frame.write_text(name, text)).map_err(failed)?;
                args.push_with(|text| frame.write_text(any, text)).map_err(failed)?;
                push_members(&value, &mut args);
                self.as_owner(trigger, event.db, |inner| run_command(inner, b"XADD", &args))?;
            }
            Action::Publish(channel) => {
                let mut args = Composed::default();
                args.push(b"PUBLISH");
                args.push_with(|text| frame.write_text(channel, text)).map_err(failed)?;
                args.push(&value.to_json());
                self.as_owner(trigger, event.db, |inner| run_command(inner, b"PUBLISH", &args))?;
            }
        }
        self.events_since(mark)?;
        // Behind it: what needs more locks runs again.
        Figures::count(&trigger.figures.fired);
        Ok(())
    }

    /// Does something with the rights of the trigger's owner, in the database of the event.
    fn as_owner(
        &mut self,
        trigger: &Trigger,
        db: u8,
        work: impl FnOnce(&mut Inner<'_, '_, '_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let engine = self.inner.context().engine;
        let owner = engine.acl.user(trigger.owner.as_bytes()).ok_or_else(|| {
            Error::new(ErrorCode::NoPerm, format!("its owner '{}' is no user any more", trigger.owner))
        })?;
        let context = self.inner.context();
        let (caller, own_db, own_session_db) =
            (std::mem::replace(&mut context.session.user, owner), context.db, context.session.db);
        context.fires = false;
        (context.db, context.session.db) = (db, db);
        let outcome = work(self.inner);
        let context = self.inner.context();
        context.fires = true;
        context.session.user = caller;
        (context.db, context.session.db) = (own_db, own_session_db);
        outcome
    }
}

/// The members of an event as names and values.
fn push_members(event: &Value, args: &mut Composed) {
    if let Value::Object(members) = event {
        for (name, value) in &**members {
            args.push(name);
            args.push(&value.to_text().unwrap_or_default());
        }
    }
}

/// Runs a command of a trigger.
pub(super) fn run_command(inner: &mut Inner<'_, '_, '_>, name: &[u8], args: &Composed) -> Result<(), Error> {
    let id = inner::find(name, None).ok_or(ErrorCode::Generic)?;
    let args = args.args(id.spec());
    let handler = inner.admit(&args)?;
    inner.run(handler, &args).map_err(|error| match error.code {
        ErrorCode::Undeclared => ErrorCode::NeedsWorld.into(),
        _ => error,
    })
}
