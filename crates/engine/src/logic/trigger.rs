//! Owns: TRIGGER; what triggers do when they fire, and reading those of the catalogue. Does not own: triggers
//! (`crate::trigger`), when changes are looked at (`crate::runner`).
//!
//! | module | owns |
//! |---|---|
//! | `fire` | a command with the triggers that it fires, in one group |
//! | `outbox` | what is done afterwards: attempts, back-off, dead letters |

mod fire;
mod outbox;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weft_store::Section;

use super::named::{self, listed, next_version};
use super::program;
use crate::args::Args;
use crate::catalogue::DELETED;
use crate::context::{Context, Local};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::excerpt::shown;
use crate::handler::{Entry, Scope};
use crate::keys::Needs;
use crate::program::keys::Keys;
use crate::program::params::made_up_event;
use crate::program::value::{Members, Value};
use crate::reply::ReplySink;
use crate::special;
use crate::trigger::TRIGGERS_MAX;
use crate::trigger::definition::{Action, Read, Trigger};

pub(crate) use fire::{needs, run};
pub(crate) use outbox::OutboxRunner;

pub(super) const LIST: &[Entry] = &[
    (
        "TRIGGER SET",
        Scope::Brief(|_, local, args, _| {
            local.triggers.has_read(Read::of(args.bytes(2), args.bytes(3)));
            Needs::World
        }),
        set,
    ),
    ("TRIGGER GET", Scope::None, get),
    ("TRIGGER DEL", Scope::World, del),
    ("TRIGGER LIST", Scope::None, list),
    (
        "TRIGGER ENABLE",
        Scope::Brief(|engine, local, args, _| switch_needs(engine, local, args)),
        |context, args, sink| switch(context, args, sink, true),
    ),
    (
        "TRIGGER DISABLE",
        Scope::Brief(|engine, local, args, _| switch_needs(engine, local, args)),
        |context, args, sink| switch(context, args, sink, false),
    ),
    ("TRIGGER STATS", Scope::None, stats),
    ("TRIGGER TEST", Scope::Brief(|engine, _, args, open| test_needs(engine, args, open)), test),
    ("TRIGGER HELP", Scope::None, crate::commands::common::help::help),
];

fn store(context: &mut Context<'_, '_>, trigger: Trigger, sink: &mut ReplySink<'_>) -> Result {
    let (name, version) = (trigger.name.clone(), trigger.version);
    context.set_entry(Section::Triggers, &name, Some(&trigger.entry()))?;
    context.engine.put_triggers([(name, Some(trigger))]);
    sink.int(version as i64);
    Ok(())
}

fn set(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (name, text) = (args.bytes(2), args.bytes(3));
    let triggers = &context.engine.triggers;
    let present = triggers.get(name);
    let version = present.as_ref().map_or(0, |trigger| trigger.version);
    let version = next_version(
        context.engine,
        args,
        (Section::Triggers, "trigger"),
        version,
        (triggers.len(), TRIGGERS_MAX),
    )?;
    let enabled = present.is_none_or(|trigger| trigger.enabled);
    let owner = context.session.user.name.clone();
    let trigger = context
        .local
        .triggers
        .take_read((name, text), (version, enabled, &owner))
        .map_err(|problem| Error::err(format!("trigger {problem}")))?;
    let limit = context.engine.settings.maxmemory_bytes.load(Relaxed);
    let replaced = context.engine.triggers.get(name).map_or(0, |present| present.bytes);
    context.engine.programs.check_bytes((replaced, trigger.bytes), limit)?;
    // One that is stored later is not known yet.
    if let Some(stored) = trigger.program(&context.engine.programs) {
        let params = stored.program.event_params(|| Value::object(Members::new()));
        let wrong =
            |error: Error| Error::err(format!("trigger {}: {}", trigger.action.pointer(), error.text));
        params.map_err(wrong)?;
    }
    store(context, trigger, sink)
}

fn known(context: &Context<'_, '_>, name: &[u8]) -> Result<Arc<Trigger>> {
    context
        .engine
        .triggers
        .get(name)
        .ok_or_else(|| Error::new(ErrorCode::NoTrigger, format!("no trigger '{}' is stored", shown(name))))
}

/// Everything; the trigger is read before that is locked.
fn switch_needs(engine: &Engine, local: &mut Local, args: &Args<'_>) -> Needs {
    if let Some(present) = engine.triggers.get(args.bytes(2)) {
        local.triggers.has_read(Read::of(&present.name, &present.text));
    }
    Needs::World
}

fn switch(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, enabled: bool) -> Result {
    let present = known(context, args.bytes(2))?;
    let of = (present.version + 1, enabled, &*present.owner);
    let read = context.local.triggers.take_read((&present.name, &present.text), of);
    let mut trigger = read.map_err(|problem| Error::err(format!("trigger {problem}")))?;
    trigger.figures = Arc::clone(&present.figures);
    store(context, trigger, sink)
}

fn get(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let Some(trigger) = context.engine.triggers.get(args.bytes(2)) else {
        sink.null();
        return Ok(());
    };
    answer(&trigger, sink);
    Ok(())
}

fn answer(trigger: &Trigger, sink: &mut ReplySink<'_>) {
    sink.map(6);
    for (name, value) in [
        ("name", &*trigger.name),
        ("how", trigger.how().as_bytes()),
        ("owner", trigger.owner.as_bytes()),
        ("trigger", &*trigger.text),
    ] {
        sink.bulk(name.as_bytes());
        sink.bulk(value);
    }
    sink.bulk(b"version");
    sink.int(trigger.version as i64);
    sink.bulk(b"enabled");
    sink.bool(trigger.enabled);
}

fn del(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    named::del(context, args, sink, Section::Triggers, |engine, names| {
        engine.put_triggers(names.into_iter().map(|name| (name, None)));
    })
}

fn list(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let listed = listed(args)?;
    let mut all = context.engine.triggers.all();
    all.retain(|(name, _)| listed(name));
    sink.array(all.len());
    all.iter().for_each(|(_, trigger)| answer(trigger, sink));
    Ok(())
}

fn stats(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let engine = context.engine;
    let all = match args.len() {
        2 => engine.triggers.all(),
        3 => vec![(args.bytes(2).into(), known(context, args.bytes(2))?)],
        _ => return Err(ErrorCode::Syntax.into()),
    };
    let outbox = &engine.triggers.outbox;
    sink.map(3);
    sink.bulk(b"waiting");
    sink.count(outbox.len(&engine.keyspace));
    sink.bulk(b"lost");
    sink.int(outbox.lost.load(Relaxed) as i64);
    sink.bulk(b"triggers");
    sink.array(all.len());
    for (_, trigger) in &all {
        let figures = &trigger.figures;
        sink.map(5);
        sink.bulk(b"name");
        sink.bulk(&trigger.name);
        for (name, figure) in [
            ("fired", &figures.fired),
            ("failed", &figures.failed),
            ("passed-over", &figures.passed_over),
            ("dead", &figures.dead),
        ] {
            sink.bulk(name.as_bytes());
            sink.int(figure.load(Relaxed) as i64);
        }
    }
    Ok(())
}

/// An event that somebody has made up with the members that it has where he does not say them: a SET in database 0.
fn whole_event(event: Value) -> Value {
    let mut members = match event.into_members() {
        Ok(members) => members,
        Err(other) => return other,
    };
    let mut known =
        vec![("kind", Value::text(b"set")), ("command", Value::text(b"set")), ("db", Value::Int(0))];
    if let Some(Ok(len)) = members.get(&b"value"[..]).map(|value| value.to_text().map(|text| text.len())) {
        known.extend([("type", Value::text(b"string")), ("length", Value::Int(len as i64))]);
    }
    for (name, value) in known {
        members.entry(name.as_bytes().into()).or_insert(value);
    }
    Value::object(members)
}

/// What the program needs that a trigger would run. A mistake in the request is told by the run.
fn test_needs(engine: &Engine, args: &Args<'_>, open: bool) -> Needs {
    let trigger = engine.triggers.get(args.bytes(2));
    let needs = trigger.and_then(|trigger| trigger.program(&engine.programs)).and_then(|stored| {
        let program = &stored.program;
        if matches!(program.keys, Keys::World(..)) {
            return Some(Needs::World);
        }
        if open {
            return None;
        }
        let event = made_up_event(&engine.settings, args.bytes(3)).ok()?;
        let params = program.event_params(|| whole_event(event)).ok()?;
        Some(program.needs(engine.before_programs(), params).0)
    });
    needs.unwrap_or_else(|| Needs::Shards(Vec::new()))
}

/// Whether a trigger would fire for an event that somebody has made up, and if so what it would do: of a program what
/// comes of it and what it would change, with the rights of whoever asks, and nothing of it stays.
fn test(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let trigger = known(context, args.bytes(2))?;
    let event = whole_event(made_up_event(&context.engine.settings, args.bytes(3))?);
    let (fires, why) = trigger.would_fire(context.engine, event.clone())?;
    let begin = |sink: &mut ReplySink<'_>, more: usize| {
        sink.map(3 + more);
        sink.bulk(b"fires");
        sink.bool(fires);
        sink.bulk(b"because");
        sink.bulk(why.as_bytes());
        sink.bulk(b"event");
        event.answer(sink);
    };
    let (name, to) = match &trigger.action {
        _ if !fires => {
            begin(sink, 0);
            return Ok(());
        }
        Action::Inside(_) | Action::After(_) => {
            let stored = trigger.program(&context.engine.programs).ok_or_else(|| trigger.no_program())?;
            let params = stored.program.event_params(|| event.clone())?;
            let asks = Arc::clone(&context.session.user);
            return program::look(context, (&stored.program, params), &asks, sink, |sink| begin(sink, 2));
        }
        Action::Stream(to) => ("stream", to),
        Action::Publish(to) => ("channel", to),
    };
    let to = trigger.target_name(context.engine, to, context.now_ms, event.clone())?;
    begin(sink, 1);
    sink.bulk(name.as_bytes());
    sink.bulk(&to);
    Ok(())
}

impl Engine {
    /// Puts triggers in the place of what has their names, or takes that away.
    pub(crate) fn put_triggers(&self, triggers: impl IntoIterator<Item = (Box<[u8]>, Option<Trigger>)>) {
        let ([by_writes, by_itself], bytes) = self.triggers.put(triggers);
        self.programs.count_bytes(bytes);
        self.special.set(special::TRIGGERS, by_writes);
        self.special.set(special::TRIGGERS_BY_ITSELF, by_itself);
    }

    /// Reads the triggers of the catalogue: when it came from a log or a snapshot. Says which could not be read, and
    /// why.
    pub(crate) fn load_triggers(&self) -> Vec<String> {
        let (mut problems, mut all) = (Vec::new(), Vec::new());
        for (name, entry) in self
            .keyspace
            .catalogue()
            .entries(Section::Triggers)
            .into_iter()
            .filter(|(name, _)| **name != *DELETED)
        {
            match Trigger::of_entry(&name, &entry) {
                Ok(trigger) => all.push((name, Some(trigger))),
                Err(why) => problems.push(format!("trigger '{}': {why}", String::from_utf8_lossy(&name))),
            }
        }
        self.put_triggers(all);
        self.triggers.outbox.begin(&self.keyspace);
        problems.extend(outbox::unreadable(&self.keyspace));
        problems
    }
}

#[cfg(test)]
mod tests {
    use weft_store::{Config, Keyspace, SystemClock};

    use super::*;
    use crate::Setup;

    /// What only keys fire that go by themselves is not asked for by writes.
    #[test]
    fn each_kind_of_change_asks_for_those_that_are_about_it() {
        let keyspace = Keyspace::new(Config::default());
        let engine = Engine::new(Setup { keyspace, clock: Box::new(SystemClock), workers: 1 });
        let put = |name: &str, text: Option<&str>| {
            let parse = |text: &str| Trigger::parse(name.as_bytes(), text.as_bytes(), (1, true, "")).unwrap();
            engine.put_triggers([(name.as_bytes().into(), text.map(parse))]);
        };
        let is = || {
            let has = [engine.triggers.index().has(b"k"), engine.triggers.gone().has(b"k")];
            let special = [special::TRIGGERS, special::TRIGGERS_BY_ITSELF].map(|bit| engine.special.has(bit));
            assert_eq!(has, special);
            has
        };
        put("t", Some(r#"{"key":"*","on":"expire","publish":"c"}"#));
        assert_eq!(is(), [false, true]);
        put("t", Some(r#"{"key":"*","on":["set","evict"],"publish":"c"}"#));
        assert_eq!(is(), [true, true]);
        put("t", Some(r#"{"key":"*","publish":"c"}"#));
        assert_eq!(is(), [true, false]);
        put("t", None);
        assert_eq!(is(), [false, false]);
    }
}
