//! Owns: a write command with the triggers that it fires: what they do inside belongs to its group, and a failure takes
//! the command back. Does not own: what is done afterwards (`super::outbox`).
//!
//! Before the locks are taken, the keys of the command find the triggers that it may fire, whose programs' keys join
//! the lock set; one whose keys cannot be known takes the keyspace for itself. What then is written elsewhere, or fires
//! further triggers, is taken back and runs again so.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weft_protocol::table::{CommandSpec, flag, key_flag};
use weft_store::effect::TapeMark;
use weft_store::wants;

use super::outbox;
use crate::acl::LogPlace;
use crate::args::{Args, Composed, find};
use crate::context::{Context, Local};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result, full_name};
use crate::executor::direct;
use crate::glob;
use crate::handler::Handler;
use crate::inner::Inner;
use crate::keys::{self, Needs};
use crate::logic::program::cost::delivery_ns;
use crate::program::budget::{Budget, Limits};
use crate::program::ends::Ends;
use crate::program::expr::{Expr, Fault, Frame};
use crate::program::keys::Keys;
use crate::program::prepared::unknown;
use crate::program::value::{Members, Value};
use crate::reply::ReplySink;
use crate::runner;
use crate::trigger::definition::{Action, Trigger, kind};
use crate::trigger::event::{Event, VALUE_BYTES_MAX, member, since};
use crate::trigger::index::{Asked, Index};
use crate::trigger::{DEPTH_MAX, FIRED_MAX, Figures, Way};

/// What the triggers of a command need beside its own keys; nothing if it fires none. Where everything is `open` no
/// shard is named.
pub(crate) fn needs(
    engine: &Engine,
    local: &mut Local,
    (db, args): (u8, &Args<'_>),
    open: bool,
) -> Option<Needs> {
    let index = local.triggers.index(&engine.triggers);
    let (mut shards, mut fires, mut world) = (Vec::new(), false, false);
    // To ask one takes as long as its program may; behind that time no further one is asked, nor are more keys than may
    // fire: it is refused, or most of them are not there.
    let (mut began, mut all, mut asked) = (None, 0, Asked::default());
    keys::each(args, |at| {
        let key = args.bytes(at);
        if world {
            return;
        }
        let found = index.find_beside((db, key, kind::SET | kind::DELETE), &mut asked);
        began = began.or(found.long_since()).or_else(|| asked.is_long().then(Instant::now));
        all += found.total();
        world |= all > FIRED_MAX as usize || found.is_cut();
        fires |= found.is_cut();
        for trigger in found {
            fires = true;
            world |= began.is_some_and(|began: Instant| began.elapsed() > DEFAULT_TIME);
            if world {
                break;
            }
            match trigger.needs(engine, (db, key, args), open, &mut began) {
                Needs::World => world = true,
                Needs::Shards(more) => shards.extend(more),
            }
        }
    });
    if let Some(began) = began {
        local.fired_ns += nanos(began.elapsed());
    }
    fires.then_some(if world { Needs::World } else { Needs::Shards(shards) })
}

/// What a command fires has this time, or that of the program among them that says more.
const DEFAULT_TIME: Duration = Duration::from_millis(Limits::DEFAULT.time_ms);

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What is allowed where nothing is said.
fn default_limits(engine: &Engine) -> Limits {
    Limits::DEFAULT.within(Limits::of(&engine.settings))
}

impl Trigger {
    /// What it needs; `began` is said where that follows from an expression, which may take long.
    fn needs(
        &self,
        engine: &Engine,
        (db, key, args): (u8, &[u8], &Args<'_>),
        open: bool,
        began: &mut Option<Instant>,
    ) -> Needs {
        let nothing = Needs::Shards(Vec::new());
        let known = |read: u8| {
            let event = Event { kind: kind::SET, db, key: key.into() };
            Value::object(event.members(read, full_name(args.spec).as_bytes()))
        };
        match &self.action {
            Action::After(_) | Action::Publish(_) => nothing,
            Action::Inside(_) => match self.program(&engine.programs) {
                Some(stored) if matches!(stored.program.keys, Keys::World(..)) => Needs::World,
                Some(stored) if !open => {
                    let program = &stored.program;
                    if program.event != 0 {
                        began.get_or_insert_with(Instant::now);
                    }
                    let params = program.event_params(|| known(program.event));
                    params.map_or(nothing, |params| program.needs(engine.before_programs(), params).0)
                }
                _ => nothing,
            },
            Action::Stream(_) if open => nothing,
            Action::Stream(name) => {
                began.get_or_insert_with(Instant::now);
                let (mut frame, mut text) =
                    (self.frame(engine, engine.clock.now_ms(), known(member::ALL)), Vec::new());
                let key = frame.write_text(name, &mut text).map(|()| engine.keyspace.key(&text));
                Needs::Shards(key.map(|key| engine.keyspace.shard_of(&key)).into_iter().collect())
            }
        }
    }
    /// Whether it would fire for an event, and why.
    pub(crate) fn would_fire(&self, engine: &Engine, event: Value) -> Result<(bool, &'static str)> {
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
        let holds = self.frame(engine, engine.clock.now_ms(), event.clone()).holds(when);
        match holds.map_err(|fault| at(WHEN, &fault))? {
            true => Ok((true, "everything matches, and the condition holds")),
            false => Ok((false, "the condition does not hold")),
        }
    }
    /// The stream or channel that an event is told to.
    pub(crate) fn target_name(
        &self,
        engine: &Engine,
        to: &Expr,
        now_ms: u64,
        event: Value,
    ) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let written = self.frame(engine, now_ms, event).write_text(to, &mut text);
        written.map_err(|fault| at(self.action.pointer(), &fault))?;
        Ok(text)
    }
    /// Tells a channel of an event. One message is told as PUBLISH does; what telling further ones of an operation
    /// takes belongs to its time, though it is done behind it.
    pub(super) fn publish(&self, inner: &mut Inner<'_, '_, '_>, channel: &Expr, event: &Value) -> Result {
        let Context { engine, now_ms, .. } = *inner.context();
        let mut args = Composed::default();
        args.push(b"PUBLISH");
        args.push(&self.target_name(engine, channel, now_ms, event.clone())?);
        args.push(&event.to_json());
        let id = find(b"PUBLISH", None).ok_or(ErrorCode::Generic)?;
        let (delivery_ns, local) = (delivery_ns(engine, &args.args(id.spec())), &mut *inner.context().local);
        let is_first = local.delivery_ns == 0;
        local.delivery_ns = local.delivery_ns.saturating_add(delivery_ns);
        if !is_first && local.ends.is_some_and(|ends| ends.is_over_in(local.delivery_ns)) {
            return Err(Error::new(ErrorCode::Limit, TOO_LONG));
        }
        run_command(inner, b"PUBLISH", &args)
    }
    /// The error about its program, which is not stored.
    pub(crate) fn no_program(&self) -> Error {
        let name = match &self.action {
            Action::Inside(name) | Action::After(name) => &**name,
            Action::Stream(_) | Action::Publish(_) => b"",
        };
        unknown(name)
    }
    pub(super) fn frame(&self, engine: &Engine, now_ms: u64, event: Value) -> Frame {
        let mut values = Vec::with_capacity(self.slots);
        values.push(event);
        values.resize(self.slots, Value::Null);
        Frame { values, now_ms, budget: Budget::new(default_limits(engine)) }
    }
}

impl Event {
    /// As programs see it, with the [`member`]s that are read: `kind`, `command`, `db`, `key`, and of what is there now
    /// `type`, and `length` and `value` of a string.
    pub(super) fn value(&self, read: u8, command: &[u8], context: &mut Context<'_, '_>) -> Value {
        let mut members = self.members(read, command);
        if read & member::STATE != 0 && self.kind == kind::SET {
            self.state(&mut members, context);
        }
        Value::object(members)
    }
    fn state(&self, members: &mut Members, context: &mut Context<'_, '_>) {
        let key = context.engine.keyspace.key(&self.key);
        let Ok((shard, mut op)) = context.shard_in(self.db, &key) else { return };
        let Some(value) = shard.peek(&mut op, &key) else { return };
        let mut put = |name: &str, value: Value| drop(members.insert(name.as_bytes().into(), value));
        put("type", Value::text(value.type_name().as_bytes()));
        let mut digits = weft_store::Digits::default();
        if let Some(bytes) = value.as_bytes(&mut digits) {
            put("length", Value::Int(bytes.len() as i64));
            if bytes.len() <= VALUE_BYTES_MAX {
                put("value", Value::text(bytes));
            }
        }
    }
}

/// A command with the triggers that it fires.
struct Firing<'i, 'c, 'a, 'b> {
    inner: &'i mut Inner<'c, 'a, 'b>,
    index: &'i Index,
    spec: &'static CommandSpec,
    fired: u32,
    /// When it began, if it is no part of a program, whose time it has.
    began: Option<Instant>,
    /// Something has fired that may take long, or finding what fires has: the clock is looked at from then on.
    long: bool,
    /// What finding that has gone over.
    asked: Asked,
}

/// A trigger, and those whose doing it is.
#[derive(Clone, Copy)]
struct Chain<'t> {
    trigger: &'t Trigger,
    before: Option<&'t Chain<'t>>,
    depth: u32,
}

impl Chain<'_> {
    /// The names on the way, the first one first.
    fn names(&self) -> String {
        let before = self.before.map_or(String::new(), |before| format!("{} > ", before.names()));
        before + &String::from_utf8_lossy(&self.trigger.name)
    }
}

/// Runs a write command, and what it fires, with nothing of both staying if either fails.
#[inline(never)]
pub(crate) fn run(
    context: &mut Context<'_, '_>,
    handler: Handler,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    debug_assert!(args.spec.flags & flag::WRITE != 0, "only what writes fires");
    let index = Arc::clone(context.local.triggers.index(&context.engine.triggers));
    if args.len() > FIRED_MAX as usize
        && let Some(trigger) = one_too_many(context, &index, args)
    {
        let chain = Chain { trigger, before: None, depth: 1 };
        return Err(named(&mut context.local.way, &chain, too_many()));
    }
    if let Some(outcome) = direct::run(context, (handler, args), sink) {
        return outcome;
    }
    let recorder = &mut context.local.effects.recorder;
    let (had_values, mark) = (recorder.wanted() & wants::VALUES != 0, recorder.tape().mark());
    recorder.want_also(wants::VALUES, true);
    // All that it fires has one time, which is that of the program around it, if there is one.
    let around = context.local.ends;
    let began = around.is_none().then(Instant::now);
    if let Some(began) = began {
        context.local.delivery_ns = 0;
        let limit = Duration::from_millis(default_limits(context.engine).time_ms);
        context.local.ends = Some(Ends::behind(began, limit));
    }
    let mut inner = Inner::new(context, LogPlace::Script);
    if !inner.has_world() {
        inner.context().local.counted.begin();
    }
    let outcome = inner.whole(|inner| {
        runner::run_handler(inner.context(), handler, args, sink)?;
        let (spec, asked) = (args.spec, Asked::default());
        Firing { inner, index: &index, spec, fired: 0, began, long: false, asked }.events_since(mark, None)
    });
    context.local.ends = around;
    if let Some(began) = began {
        context.local.fired_ns += nanos(began.elapsed());
    }
    let effects = &mut context.local.effects;
    effects.recorder.want_also(wants::VALUES, had_values);
    // Nobody else has asked for what triggers have read.
    if effects.recorder.wanted() == 0 && context.engine.keyspace.wanted() == 0 {
        effects.forget_from(mark);
    }
    outcome
}

/// A trigger that a command would fire beyond those that it may, as it is known before it runs: keys that it sets, and
/// those that it deletes which are there.
#[cold]
fn one_too_many<'i>(context: &mut Context<'_, '_>, index: &'i Index, args: &Args<'_>) -> Option<&'i Trigger> {
    let (db, mut all, mut last, mut asked) = (context.db, 0, None, Asked::default());
    let (mut deleted, mut is_refused) = (HashSet::new(), false);
    keys::each_with_flags(args, |at, flags| {
        let key = args.bytes(at);
        // MSETNX sets all or none.
        is_refused |= flags & key_flag::INSERT != 0 && is_there(context, key);
        // What would take too long to find out is found out while it runs, within its time.
        if last.is_some() || asked.are_too_many() || !index.has_beside(key, &mut asked) {
            return;
        }
        let kind = if flags & key_flag::OW != 0 {
            kind::SET
        } else if flags & key_flag::RM != 0 && is_there(context, key) && deleted.insert(key) {
            kind::DELETE
        } else {
            return;
        };
        let mut found = index.find_beside((db, key, kind), &mut asked);
        all += found.total();
        if all > FIRED_MAX as usize {
            last = found.next().map(|trigger| &**trigger);
        }
    });
    last.filter(|_| !is_refused)
}

fn is_there(context: &mut Context<'_, '_>, name: &[u8]) -> bool {
    let (key, db) = (context.engine.keyspace.key(name), context.db);
    let Ok((shard, mut op)) = context.shard_in(db, &key) else { return false };
    shard.peek(&mut op, &key).is_some()
}

/// What a write is answered whose triggers would take too long to find.
const TOO_MANY_ASKED: &str = "too many triggers begin like this key, and have wildcards inside (a*b*), to compare it with \
                              all of them: give them longer beginnings or different ends";

#[cold]
fn too_many() -> Error {
    Error::new(ErrorCode::Limit, format!("a command fires {FIRED_MAX} triggers at most"))
}

impl Firing<'_, '_, '_, '_> {
    /// Fires what the effects behind a mark fire.
    fn events_since(&mut self, mark: TapeMark, before: Option<&Chain<'_>>) -> Result {
        let index = self.index;
        let events = since(index, &self.inner.context().local.effects.recorder, mark);
        for event in &events {
            let mut asked = Asked::default();
            let found = index.find_beside((event.db, &event.key, event.kind), &mut asked);
            if found.is_cut() {
                return Err(Error::new(ErrorCode::Limit, TOO_MANY_ASKED));
            }
            self.asked.add(&asked);
            if found.long_since().is_some() || self.asked.are_too_many() {
                self.long = true;
                if self.inner.context().local.ends.is_some_and(|ends| ends.is_over()) {
                    return Err(Error::new(ErrorCode::Limit, TOO_LONG));
                }
            }
            // None of them is to begin where they are too many.
            let is_too_many = self.fired as usize + found.total() > FIRED_MAX as usize;
            for trigger in found {
                let depth = before.map_or(0, |before| before.depth) + 1;
                let chain = Chain { trigger, before, depth };
                if is_too_many {
                    return Err(named(&mut self.inner.context().local.way, &chain, too_many()));
                }
                self.fire(&chain, event)?;
            }
        }
        Ok(())
    }

    fn fire(&mut self, chain: &Chain<'_>, event: &Event) -> Result {
        self.fired += 1;
        let looks = self.long;
        self.long |= self.give_time(chain.trigger);
        let outcome = if chain.depth > DEPTH_MAX {
            Err(Error::new(ErrorCode::Limit, format!("triggers fire {DEPTH_MAX} deep at most")))
        } else if self.fired > FIRED_MAX {
            Err(too_many())
        } else if looks && self.inner.context().local.ends.is_some_and(|ends| ends.is_over()) {
            Err(Error::new(ErrorCode::Limit, TOO_LONG))
        } else {
            self.act(chain, event)
        };
        outcome.map_err(|error| named(&mut self.inner.context().local.way, chain, error))
    }

    /// A trigger whose program says that it may take longer lengthens the time of all. Says whether it may take long:
    /// a quick program does not, and is no reason to look at the clock.
    fn give_time(&mut self, trigger: &Trigger) -> bool {
        let context = self.inner.context();
        // What is done afterwards takes no time of the command.
        let Action::Inside(_) = &trigger.action else { return trigger.long };
        let Some(stored) = trigger.program(&context.engine.programs) else { return trigger.long };
        let long = trigger.long || !stored.program.quick;
        let Some(began) = self.began.filter(|_| long || self.long) else { return long };
        let its = stored.program.limits.within(Limits::of(&context.engine.settings)).time_ms;
        let ends = Ends::behind(began, Duration::from_millis(its));
        context.local.ends = context.local.ends.map(|before| before.max(ends));
        long
    }

    fn act(&mut self, chain: &Chain<'_>, event: &Event) -> Result {
        let trigger = chain.trigger;
        let engine = self.inner.context().engine;
        let stored = trigger.program(&engine.programs);
        let read = trigger.reads
            | match (&trigger.action, &stored) {
                (Action::Inside(_), Some(stored)) => stored.program.event,
                _ => 0,
            };
        // What nobody looks at is not made.
        let value = match read {
            0 => Value::Null,
            read => event.value(read, full_name(self.spec).as_bytes(), self.inner.context()),
        };
        if let Some(when) = &trigger.when
            && !trigger
                .frame(engine, self.inner.context().now_ms, value.clone())
                .holds(when)
                .map_err(|fault| at(WHEN, &fault))?
        {
            self.inner.context().local.counted.passed_over(&trigger.figures);
            return Ok(());
        }
        // What the trigger writes is fired for here, and not by the commands that write it.
        let mark = self.inner.context().local.effects.recorder.tape().mark();
        let told = |fault: Fault| at(trigger.action.pointer(), &fault);
        match &trigger.action {
            Action::Inside(_) => {
                let stored = stored.ok_or_else(|| trigger.no_program())?;
                let object = || if read == 0 { Value::object(Members::new()) } else { value };
                let params = stored.program.event_params(object)?;
                self.as_owner(trigger, event.db, |inner| stored.run_inside(inner, params).map(drop))?;
            }
            Action::After(_) => {
                let command = full_name(self.spec);
                let before = chain.before.map_or_else(String::new, Chain::names);
                outbox::add(self.inner.context(), (trigger, &before), event, &command)?;
            }
            Action::Stream(name) => {
                let mut frame = trigger.frame(engine, self.inner.context().now_ms, value.clone());
                let mut args = Composed::default();
                args.push(b"XADD");
                args.push_with(|text| frame.write_text(name, text)).map_err(told)?;
                args.push(b"*");
                push_members(&value, &mut args);
                self.as_owner(trigger, event.db, |inner| run_command(inner, b"XADD", &args))?;
            }
            Action::Publish(channel) => {
                self.as_owner(trigger, event.db, |inner| trigger.publish(inner, channel, &value))?;
            }
        }
        self.events_since(mark, Some(chain))?;
        self.inner.context().local.counted.fired(&trigger.figures);
        Ok(())
    }

    /// Does something with the rights of the trigger's owner, in the database of the event.
    fn as_owner(
        &mut self,
        trigger: &Trigger,
        db: u8,
        work: impl FnOnce(&mut Inner<'_, '_, '_>) -> Result,
    ) -> Result {
        self.inner.as_user(&trigger.owner, "its", |inner| {
            let context = inner.context();
            let own = (context.db, context.session.db);
            context.fires = false;
            (context.db, context.session.db) = (db, db);
            let outcome = work(inner);
            let context = inner.context();
            context.fires = true;
            (context.db, context.session.db) = own;
            outcome
        })
    }
}

/// What is answered where what was fired takes too long.
const TOO_LONG: &str = "all that a command fires has the time of one program together: 5 ms, or what the one among \
    them says that asks for most (\"limits\": {\"time-ms\"}, at most program-time-ms-max)";

/// Where a condition stands.
pub(super) const WHEN: &str = "/when";

/// The error about an expression of a trigger, with where it stands.
#[cold]
pub(super) fn at(pointer: &str, fault: &Fault) -> Error {
    Error::new(ErrorCode::Program, format!("{pointer}: {fault}"))
}

/// An error with the names of the triggers that led to it, once.
#[cold]
fn named(way: &mut Way, chain: &Chain<'_>, error: Error) -> Error {
    if error.code == ErrorCode::NeedsWorld || error.code == ErrorCode::Trigger {
        return error;
    }
    way.has_no_room |= error.code == ErrorCode::OutOfMemory;
    Figures::count(&chain.trigger.figures.failed);
    let text = format!("trigger {}: {}", way.and(&chain.names()), error.text).into();
    Error { code: ErrorCode::Trigger, prefix: Some(error.prefix().into()), text }
}

/// The members of an event as names and values.
fn push_members(event: &Value, args: &mut Composed) {
    if let Value::Object(members) = event {
        for (name, value) in members.iter() {
            args.push(name);
            args.push(&value.to_text().unwrap_or_default());
        }
    }
}

/// Runs a command of a trigger.
pub(super) fn run_command(inner: &mut Inner<'_, '_, '_>, name: &[u8], args: &Composed) -> Result {
    let id = find(name, None).ok_or(ErrorCode::Generic)?;
    let args = args.args(id.spec());
    let handler = inner.admit(&args)?;
    inner.run(handler, &args).map_err(|error| match error.code {
        ErrorCode::Undeclared => ErrorCode::NeedsWorld.into(),
        _ => error,
    })
}
