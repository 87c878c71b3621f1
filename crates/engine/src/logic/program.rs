//! Owns: PROGRAM; running programs, all or nothing, and reading those of the catalogue. Does not own: programs
//! (`crate::program`), locks, taking back (`crate::inner`).
//!
//! | module | owns |
//! |---|---|
//! | `run`, `short` | running a program's steps; GET, SET and INCR in their shorter form |
//! | `cost` | what a command costs of what a program may do |

pub(super) mod cost;
mod run;
mod short;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weft_store::{Section, wants};

use super::named::{self, listed, next_version};
use crate::acl::{LogPlace, User};
use crate::args::{Args, Composed, find};
use crate::catalogue::DELETED;
use crate::context::Context;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::inner::Inner;
use crate::keys::Needs;
use crate::program::Program;
use crate::program::budget::Limits;
use crate::program::keys::Keys;
use crate::program::prepared::{By, Which, unknown};
use crate::program::stored::{PROGRAMS_MAX, Stored};
use crate::program::value::Value;
use crate::reply::ReplySink;
use crate::trigger::definition::Trigger;

pub(super) const LIST: &[Entry] = &[
    ("PROGRAM SET", Scope::Brief(|_, local, args, _| local.programs.read(args.bytes(3))), set),
    ("PROGRAM GET", Scope::None, get),
    ("PROGRAM DEL", Scope::World, del),
    ("PROGRAM LIST", Scope::None, list),
    (
        "PROGRAM RUN",
        Scope::Brief(|engine, local, args, open| {
            local.programs.needs(engine.before_programs(), By::Name, args, open)
        }),
        run,
    ),
    (
        "PROGRAM EVAL",
        Scope::Brief(|engine, local, args, open| {
            local.programs.needs(engine.before_programs(), By::Text, args, open)
        }),
        eval,
    ),
    (
        "PROGRAM DRYRUN",
        Scope::Brief(|engine, local, args, open| {
            local.programs.needs(engine.before_programs(), By::Either, args, open)
        }),
        dry_run,
    ),
    ("PROGRAM EXPLAIN", Scope::Brief(|_, _, _, _| Needs::Shards(Vec::new())), explain),
    ("PROGRAM STATS", Scope::None, stats),
    ("PROGRAM HELP", Scope::None, crate::commands::common::help::help),
];

/// Percentiles that STATS tells.
const PERCENTILES: [(&str, f64); 3] = [("p50-us", 50.0), ("p99-us", 99.0), ("p999-us", 99.9)];

fn set(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (name, text) = (args.bytes(2), args.bytes(3));
    let read = context.local.programs.take_read(text);
    let programs = &context.engine.programs;
    may_change(context, name)?;
    let present = programs.get(name).map_or(0, |stored| stored.version);
    let version = next_version(
        context.engine,
        args,
        (Section::Programs, "program"),
        present,
        (programs.len(), PROGRAMS_MAX),
    )?;
    let stored = Stored::of((version, &context.session.user.name), text, read?);
    programs.check_room(name, &stored, context.engine.settings.maxmemory_bytes.load(Relaxed))?;
    context.set_entry(Section::Programs, name, Some(&stored.entry()))?;
    let gone = programs.put([(name.into(), Some(stored))]);
    context.local.programs.free_later(gone);
    sink.int(version as i64);
    Ok(())
}

/// What a trigger runs has the rights of the trigger's owner: who changes it may also store triggers, or is its owner.
fn may_change(context: &mut Context<'_, '_>, name: &[u8]) -> Result {
    let user = &context.session.user;
    let is_others = |trigger: &Trigger| trigger.runs(name) && *trigger.owner != *user.name;
    if user.all || !context.engine.triggers.any(is_others) {
        return Ok(());
    }
    may(&Inner::new(context, LogPlace::Script), &[b"TRIGGER", b"SET", name, b"{}"])
}

/// Whether the user may run a command.
fn may(inner: &Inner<'_, '_, '_>, words: &[&[u8]]) -> Result {
    let id = find(words[0], Some(words[1])).ok_or(ErrorCode::Generic)?;
    let mut args = Composed::default();
    words.iter().for_each(|word| args.push(word));
    inner.check_rights(&args.args(id.spec())).map_err(Error::from)
}

fn get(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let Some(stored) = context.engine.programs.get(args.bytes(2)) else {
        sink.null();
        return Ok(());
    };
    sink.map(4);
    sink.bulk(b"name");
    sink.bulk(args.bytes(2));
    sink.bulk(b"version");
    sink.int(stored.version as i64);
    sink.bulk(b"owner");
    sink.bulk(stored.owner.as_bytes());
    sink.bulk(b"program");
    sink.bulk(&stored.text);
    Ok(())
}

fn del(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    args.rest(2).try_for_each(|name| may_change(context, name))?;
    let mut gone = Vec::new();
    let outcome = named::del(context, args, sink, Section::Programs, |engine, names| {
        gone = engine.programs.put(names.into_iter().map(|name| (name, None)));
    });
    context.local.programs.free_later(gone);
    outcome
}

fn list(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let listed = listed(args)?;
    let mut all = context.engine.programs.all();
    all.retain(|(name, _)| listed(name));
    sink.array(all.len());
    for (name, stored) in &all {
        sink.map(6);
        sink.bulk(b"name");
        sink.bulk(name);
        sink.bulk(b"version");
        sink.int(stored.version as i64);
        sink.bulk(b"owner");
        sink.bulk(stored.owner.as_bytes());
        sink.bulk(b"description");
        sink.bulk(stored.program.description.as_bytes());
        sink.bulk(b"params");
        answer_params(&stored.program, sink);
        sink.bulk(b"writes");
        sink.bool(stored.program.writes);
    }
    Ok(())
}

fn answer_params(program: &Program, sink: &mut ReplySink<'_>) {
    sink.array(program.params.len());
    for param in &program.params {
        let default = if param.default.is_some() { "?" } else { "" };
        sink.bulk(format!("{}{default}:{}", param.name, param.kind.name()).as_bytes());
    }
}

fn run(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (which, params) = context.local.programs.take(context.engine.before_programs(), By::Name, args)?;
    let Which::Stored(stored) = which else { return Err(unknown(args.bytes(2))) };
    let began = context.local.began;
    let mut inner = Inner::new(context, LogPlace::Script);
    let outcome = stored.run_inside(&mut inner, params);
    inner.forget_reply();
    if !matches!(&outcome, Err(error) if error.code == ErrorCode::NeedsWorld) {
        context.local.programs.count_run(stored, began, outcome.is_err());
    }
    outcome?.answer(sink);
    Ok(())
}

fn eval(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (which, params) = context.local.programs.take(context.engine.before_programs(), By::Text, args)?;
    let mut inner = Inner::new(context, LogPlace::Script);
    let outcome = which.program().run_in(&mut inner, params);
    inner.forget_reply();
    context.local.programs.free_text_later(which);
    outcome?.answer(sink);
    Ok(())
}

fn dry_run(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (which, params) = context.local.programs.take(context.engine.before_programs(), By::Either, args)?;
    let begin = |sink: &mut ReplySink<'_>| sink.map(2);
    // Whoever it runs for, it is shown to who asks.
    let asks = Arc::clone(&context.session.user);
    match &which {
        Which::Stored(stored) if stored.program.as_owner => {
            let mut inner = Inner::new(context, LogPlace::Script);
            // Who may not run a program does not see either what it would do with the rights of its owner.
            may(&inner, &[b"PROGRAM", b"RUN", args.bytes(2)])?;
            inner.as_user(&stored.owner, "the program's", |inner| {
                look(inner.context(), (&stored.program, params), &asks, sink, begin)
            })
        }
        _ => look(context, (which.program(), params), &asks, sink, begin),
    }
}

/// Runs a program, answers two members of a map, what comes of it and what it would change, behind what `begin` writes,
/// and takes all back. What an effect says of a key is shown to who `asks` if he may read it.
pub(super) fn look(
    context: &mut Context<'_, '_>,
    (program, params): (&Program, Vec<Value>),
    asks: &User,
    sink: &mut ReplySink<'_>,
    begin: impl FnOnce(&mut ReplySink<'_>),
) -> Result {
    let recorder = &mut context.local.effects.recorder;
    let (wanted, from) = (recorder.wanted(), recorder.tape().mark());
    recorder.want_also(wants::VALUES, true);
    let outcome = program.look(context, params, |outcome, context| match outcome {
        Err(error) if error.code == ErrorCode::NeedsWorld => Err(error),
        outcome => {
            begin(sink);
            match outcome {
                Ok(value) => {
                    sink.bulk(b"result");
                    value.answer(sink);
                }
                Err(error) => {
                    sink.bulk(b"error");
                    sink.bulk(error.line().as_bytes());
                }
            }
            sink.bulk(b"effects");
            let told: Vec<_> = context
                .local
                .effects
                .recorder
                .tape()
                .read_from(from)
                .filter(|told| told.effect.wanted_by() & wants::VALUES != 0)
                .collect();
            sink.array(told.len());
            for told in told {
                let sees = asks.reads_key_in(told.db, told.key);
                crate::program::effects::answer(&told, sees, sink);
            }
            Ok(())
        }
    });
    context.local.effects.recorder.want_also(wants::VALUES, wanted & wants::VALUES != 0);
    outcome
}

fn explain(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let which = context.local.programs.find(&context.engine.programs, By::Either, args.bytes(2))?;
    let program = which.program();
    let (locks, why) = match &program.keys {
        Keys::Declared(_) => ("declared keys", "\"keys\"".to_owned()),
        Keys::Found(_) => ("keys found", "all keys follow from constants and parameters".to_owned()),
        Keys::World(at, why) => ("everything", format!("{at}: {why}")),
    };
    let keys = if args.len() > 3 || program.params.is_empty() {
        program.named_keys(
            context.engine.before_programs(),
            program.params(&context.engine.settings, args.rest(3))?,
        )?
    } else {
        Vec::new()
    };
    let limits = program.limits.within(Limits::of(&context.engine.settings));
    sink.map(6);
    sink.bulk(b"locks");
    sink.bulk(locks.as_bytes());
    sink.bulk(b"because");
    sink.bulk(why.as_bytes());
    sink.bulk(b"keys");
    sink.array(keys.len());
    keys.iter().for_each(|key| sink.bulk(key));
    sink.bulk(b"params");
    answer_params(program, sink);
    sink.bulk(b"writes");
    sink.bool(program.writes);
    sink.bulk(b"limits");
    sink.map(5);
    for (name, limit) in limits.named() {
        sink.bulk(name.as_bytes());
        sink.int(limit as i64);
    }
    Ok(())
}

fn stats(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let all = match args.len() {
        2 => context.engine.programs.all(),
        3 => {
            let name = args.bytes(2);
            vec![(name.into(), context.engine.programs.get(name).ok_or_else(|| unknown(name))?)]
        }
        _ => return Err(ErrorCode::Syntax.into()),
    };
    sink.array(all.len());
    for (name, stored) in &all {
        let figures = &stored.figures;
        sink.map(3 + PERCENTILES.len());
        sink.bulk(b"name");
        sink.bulk(name);
        sink.bulk(b"runs");
        sink.int(figures.runs.load(Relaxed) as i64);
        sink.bulk(b"failures");
        sink.int(figures.failures.load(Relaxed) as i64);
        let times = figures.percentiles_us(&PERCENTILES.map(|(_, percent)| percent));
        for ((name, _), time) in PERCENTILES.iter().zip(times) {
            sink.bulk(name.as_bytes());
            sink.double(time);
        }
    }
    Ok(())
}

impl Engine {
    /// Reads the programs of the catalogue: when it came from a log or a snapshot. Says which could not be read, and
    /// why; they stay where they are.
    pub(crate) fn load_programs(&self) -> Vec<String> {
        let (mut problems, mut all) = (Vec::new(), Vec::new());
        for (name, entry) in self
            .keyspace
            .catalogue()
            .entries(Section::Programs)
            .into_iter()
            .filter(|(name, _)| **name != *DELETED)
        {
            match Stored::of_entry(&entry) {
                Ok(stored) => all.push((name, Some(stored))),
                Err(why) => problems.push(format!("program '{}': {why}", String::from_utf8_lossy(&name))),
            }
        }
        self.programs.put(all);
        problems
    }
}
