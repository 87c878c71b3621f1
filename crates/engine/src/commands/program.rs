//! Owns: PROGRAM. Does not own: programs (`crate::program`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use weft_store::{Section, wants};

use crate::args::Args;
use crate::context::Context;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode};
use crate::glob;
use crate::handler::{Entry, Needs, Scope};
use crate::program::keys::Keys;
use crate::program::stored::{NAME_BYTES_MAX, PROGRAMS_MAX, Stored};
use crate::program::value::Value;
use crate::program::{Problem, Program};
use crate::reply::ReplySink;

pub(super) const LIST: &[Entry] = &[
    ("PROGRAM SET", Scope::World, set),
    ("PROGRAM GET", Scope::None, get),
    ("PROGRAM DEL", Scope::World, del),
    ("PROGRAM LIST", Scope::None, list),
    ("PROGRAM RUN", Scope::Operation(needs), run),
    ("PROGRAM EVAL", Scope::Operation(needs), eval),
    ("PROGRAM DRYRUN", Scope::Operation(needs), dry_run),
    ("PROGRAM EXPLAIN", Scope::None, explain),
    ("PROGRAM STATS", Scope::None, stats),
    ("PROGRAM HELP", Scope::None, super::help::help),
];

/// Percentiles that STATS tells.
const PERCENTILES: [(&str, f64); 3] = [("p50-us", 50.0), ("p99-us", 99.0), ("p999-us", 99.9)];

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::err(format!("program {problem}"))
    }
}

fn no_program(name: &[u8]) -> Error {
    Error::new(ErrorCode::NoProgram, format!("no program '{}' is stored", String::from_utf8_lossy(name)))
}

/// A stored program, or one that came as a text: no name begins as JSON does.
enum Which {
    Stored(Arc<Stored>),
    Text(Arc<Program>),
}

impl Which {
    fn of(engine: &Engine, args: &Args<'_>) -> Result<Self, Error> {
        let named = args.bytes(2);
        if named.trim_ascii_start().starts_with(b"{") {
            return Ok(Self::Text(engine.programs.of_text(named)?));
        }
        engine.programs.get(named).map(Self::Stored).ok_or_else(|| no_program(named))
    }
    fn program(&self) -> &Program {
        match self {
            Self::Stored(stored) => &stored.program,
            Self::Text(program) => program,
        }
    }
    fn params(&self, args: &Args<'_>) -> Result<Vec<Value>, Error> {
        self.program().params(args.rest(3))
    }
}

/// What a run needs. A mistake in the request is told by the run.
fn needs(engine: &Engine, args: &Args<'_>) -> Needs {
    let needs =
        Which::of(engine, args).and_then(|which| Ok(which.program().needs(engine, which.params(args)?)));
    needs.unwrap_or(Needs::Shards(Vec::new()))
}

fn set(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let (name, text) = (args.bytes(2), args.bytes(3));
    let expected = match args.len() {
        4 => None,
        6 if args.is(4, "VERSION") => Some(args.int(5)?),
        _ => return Err(ErrorCode::Syntax.into()),
    };
    check_name(name)?;
    let engine = context.engine;
    let present = engine.programs.get(name);
    let version = present.as_ref().map_or(0, |stored| stored.version);
    if expected.is_some_and(|expected| u64::try_from(expected) != Ok(version)) {
        let text = format!("the version of the program is {version}, 0 being none");
        return Err(Error::new(ErrorCode::WrongVersion, text));
    }
    if present.is_none() && engine.programs.len() >= PROGRAMS_MAX {
        return Err(Error::new(ErrorCode::Limit, format!("{PROGRAMS_MAX} programs may be stored")));
    }
    let stored = Stored::new(version + 1, &context.session.user.name, text)?;
    context.set_entry(Section::Programs, name, Some(&stored.entry()))?;
    engine.programs.put(name, Some(stored));
    sink.int(version as i64 + 1);
    Ok(())
}

pub(super) fn check_name(name: &[u8]) -> Result<(), Error> {
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(byte));
    if is_name {
        return Ok(());
    }
    Err(Error::err(format!("a name has 1 to {NAME_BYTES_MAX} letters, digits and _ - . :")))
}

fn get(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
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

fn del(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let mut removed = 0;
    for name in args.rest(2) {
        removed += i64::from(context.set_entry(Section::Programs, name, None)?.is_some());
        context.engine.programs.put(name, None);
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
    let mut all = context.engine.programs.all();
    all.retain(|(name, _)| pattern.is_none_or(|pattern| glob::matches(pattern, name)));
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

fn run(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let name = args.bytes(2);
    let stored = context.engine.programs.get(name).ok_or_else(|| no_program(name))?;
    let params = stored.program.params(args.rest(3))?;
    let started = Instant::now();
    let outcome = run_stored(context, &stored, params);
    if !matches!(&outcome, Err(error) if error.code == ErrorCode::NeedsWorld) {
        stored.figures.ran(started.elapsed(), outcome.is_err());
    }
    outcome?.answer(sink);
    Ok(())
}

/// Runs a stored program with the rights that it says.
pub(crate) fn run_stored(
    context: &mut Context<'_, '_>,
    stored: &Stored,
    params: Vec<Value>,
) -> Result<Value, Error> {
    if !stored.program.as_owner {
        return stored.program.run(context, params);
    }
    let owner = context.engine.acl.user(stored.owner.as_bytes()).ok_or_else(|| {
        Error::new(ErrorCode::NoPerm, format!("the program's owner '{}' is no user any more", stored.owner))
    })?;
    let caller = std::mem::replace(&mut context.session.user, owner);
    let outcome = stored.program.run(context, params);
    context.session.user = caller;
    outcome
}

fn eval(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let program = context.engine.programs.of_text(args.bytes(2))?;
    let params = program.params(args.rest(3))?;
    program.run(context, params)?.answer(sink);
    Ok(())
}

fn dry_run(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let which = Which::of(context.engine, args)?;
    let params = which.params(args)?;
    let recorder = &mut context.local.effects.recorder;
    let (wanted, from) = (recorder.wanted(), recorder.tape().mark());
    recorder.want_also(wants::VALUES, true);
    let outcome = which.program().look(context, params, |outcome, context| match outcome {
        Err(error) if error.code == ErrorCode::NeedsWorld => Err(error),
        outcome => {
            sink.map(2);
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
                crate::program::effects::answer(&told, sink);
            }
            Ok(())
        }
    });
    context.local.effects.recorder.want_also(wants::VALUES, wanted & wants::VALUES != 0);
    outcome
}

fn explain(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let which = Which::of(context.engine, args)?;
    let program = which.program();
    let (locks, why) = match &program.keys {
        Keys::Declared(_) => ("declared keys", "\"keys\"".to_owned()),
        Keys::Found(_) => ("keys found", "all keys follow from constants and parameters".to_owned()),
        Keys::World(at, why) => ("everything", format!("{at}: {why}")),
    };
    let keys = if args.len() > 3 || program.params.is_empty() {
        program.named_keys(context.engine, which.params(args)?)?
    } else {
        Vec::new()
    };
    let limits = program.limits.within(context.engine.settings.program_limits());
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

fn stats(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let all = match args.len() {
        2 => context.engine.programs.all(),
        3 => {
            let name = args.bytes(2);
            vec![(name.into(), context.engine.programs.get(name).ok_or_else(|| no_program(name))?)]
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
