//! Owns: TRIGGER. Does not own: triggers (`crate::trigger`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weft_store::Section;

use super::program::check_name;
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode};
use crate::glob;
use crate::handler::{Entry, Scope};
use crate::program::json::Json;
use crate::program::value::Value;
use crate::reply::ReplySink;
use crate::trigger::TRIGGERS_MAX;
use crate::trigger::definition::Trigger;

pub(super) const LIST: &[Entry] = &[
    ("TRIGGER SET", Scope::World, set),
    ("TRIGGER GET", Scope::None, get),
    ("TRIGGER DEL", Scope::World, del),
    ("TRIGGER LIST", Scope::None, list),
    ("TRIGGER ENABLE", Scope::World, |context, args, sink| switch(context, args, sink, true)),
    ("TRIGGER DISABLE", Scope::World, |context, args, sink| switch(context, args, sink, false)),
    ("TRIGGER STATS", Scope::None, stats),
    ("TRIGGER TEST", Scope::None, test),
    ("TRIGGER HELP", Scope::None, super::help::help),
];

fn store(context: &mut Context<'_, '_>, trigger: Trigger, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let (name, version) = (trigger.name.clone(), trigger.version);
    context.set_entry(Section::Triggers, &name, Some(&trigger.entry()))?;
    context.engine.put_trigger(&name, Some(trigger));
    sink.int(version as i64);
    Ok(())
}

fn set(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let (name, text) = (args.bytes(2), args.bytes(3));
    let expected = match args.len() {
        4 => None,
        6 if args.is(4, "VERSION") => Some(args.int(5)?),
        _ => return Err(ErrorCode::Syntax.into()),
    };
    check_name(name)?;
    let triggers = &context.engine.triggers;
    let present = triggers.get(name);
    let version = present.as_ref().map_or(0, |trigger| trigger.version);
    if expected.is_some_and(|expected| u64::try_from(expected) != Ok(version)) {
        let text = format!("the version of the trigger is {version}, 0 being none");
        return Err(Error::new(ErrorCode::WrongVersion, text));
    }
    if present.is_none() && triggers.len() >= TRIGGERS_MAX {
        return Err(Error::new(ErrorCode::Limit, format!("{TRIGGERS_MAX} triggers may be stored")));
    }
    let enabled = present.is_none_or(|trigger| trigger.enabled);
    let owner = context.session.user.name.clone();
    let trigger = Trigger::parse(name, text, (version + 1, enabled, &owner))
        .map_err(|problem| Error::err(format!("trigger {problem}")))?;
    store(context, trigger, sink)
}

fn known(context: &Context<'_, '_>, name: &[u8]) -> Result<Arc<Trigger>, Error> {
    context.engine.triggers.get(name).ok_or_else(|| {
        Error::new(ErrorCode::NoTrigger, format!("no trigger '{}' is stored", String::from_utf8_lossy(name)))
    })
}

fn switch(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    enabled: bool,
) -> Result<(), Error> {
    let present = known(context, args.bytes(2))?;
    let of = (present.version + 1, enabled, &*present.owner);
    let mut trigger = Trigger::parse(&present.name, &present.text, of)
        .map_err(|problem| Error::err(format!("trigger {problem}")))?;
    trigger.figures = Arc::clone(&present.figures);
    store(context, trigger, sink)
}

fn get(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
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

fn del(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let mut removed = 0;
    for name in args.rest(2) {
        removed += i64::from(context.set_entry(Section::Triggers, name, None)?.is_some());
        context.engine.put_trigger(name, None);
    }
    sink.int(removed);
    Ok(())
}

fn list(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let pattern = match args.len() {
        2 => None,
        4 if args.is(2, "MATCH") => Some(args.bytes(3)),
        _ => return Err(ErrorCode::Syntax.into()),
    };
    let mut all = context.engine.triggers.all();
    all.retain(|trigger| pattern.is_none_or(|pattern| glob::matches(pattern, &trigger.name)));
    sink.array(all.len());
    all.iter().for_each(|trigger| answer(trigger, sink));
    Ok(())
}

fn stats(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let engine = context.engine;
    let all = match args.len() {
        2 => engine.triggers.all(),
        3 => vec![known(context, args.bytes(2))?],
        _ => return Err(ErrorCode::Syntax.into()),
    };
    let outbox = &engine.triggers.outbox;
    sink.map(3);
    sink.bulk(b"waiting");
    sink.count(outbox.len(engine));
    sink.bulk(b"lost");
    sink.int(outbox.lost.load(Relaxed) as i64);
    sink.bulk(b"triggers");
    sink.array(all.len());
    for trigger in &all {
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

/// Whether a trigger would fire for an event that somebody has made up, and with what.
fn test(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let trigger = known(context, args.bytes(2))?;
    let json = Json::parse(args.bytes(3)).map_err(|text| Error::err(format!("event: {text}")))?;
    let event = Value::from(&json);
    let (fires, why) = trigger.would_fire(context.engine, event.clone())?;
    sink.map(3);
    sink.bulk(b"fires");
    sink.bool(fires);
    sink.bulk(b"because");
    sink.bulk(why.as_bytes());
    sink.bulk(b"event");
    event.answer(sink);
    Ok(())
}
