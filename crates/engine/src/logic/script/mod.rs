//! Owns: EVAL, EVALSHA, FCALL and their `_RO` forms, SCRIPT. Does not own: running (`run`), libraries
//! (`function`), sources (`crate::script`).
//!
//! | locks | commands |
//! |---|---|
//! | the declared keys, or everything | EVAL, EVALSHA, FCALL, `_RO` |
//! | none | SCRIPT |

mod convert;
mod function;
mod logged;
mod run;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use weft_lua::vm::World;
use weft_lua::{Chunk, Vm};
use weft_protocol::table::flag;

use crate::args::Args;
use crate::commands::common::help;
use crate::context::Context;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::excerpt::shown;
use crate::handler::{Entry, Scope};
use crate::inner::Inner;
use crate::keys::Needs;
use crate::reply::ReplySink;
use crate::script::space::{Compiled, Function, Killed, Loading, Space};
use crate::script::{Scripts, Sha, sha_of};
use run::{PLACE, ScriptRun, Subject, Taking};
use weft_lua::sha1_hex;

pub(super) const LIST: &[Entry] = &[
    ("EVAL", Scope::Operation(needs_of_script), eval),
    ("EVAL_RO", Scope::Operation(needs_of_script), eval),
    ("EVALSHA", Scope::Operation(needs_of_sha), evalsha),
    ("EVALSHA_RO", Scope::Operation(needs_of_sha), evalsha),
    ("FCALL", Scope::Operation(needs_of_function), fcall),
    ("FCALL_RO", Scope::Operation(needs_of_function), fcall),
    ("SCRIPT LOAD", Scope::None, load),
    ("SCRIPT EXISTS", Scope::None, exists),
    ("SCRIPT FLUSH", Scope::None, flush),
    ("SCRIPT KILL", Scope::None, kill),
    ("SCRIPT SHOW", Scope::None, show),
    ("SCRIPT DEBUG", Scope::None, debug),
    ("SCRIPT HELP", Scope::None, help::help),
];
pub(super) use function::LIST as FUNCTIONS;

/// Where the keys begin.
const KEYS_AT: usize = 3;

/// Keys and arguments of a call that stand on the machine's stack; more take memory.
const FEW_WORDS: usize = 8;

/// Keys and arguments of a call.
struct Given<'g> {
    few: [&'g [u8]; FEW_WORDS],
    /// All of them, where they are not few.
    many: Vec<&'g [u8]>,
    count: usize,
    /// So many of them are keys.
    keys: usize,
}

impl<'g> Given<'g> {
    /// Keys, then arguments.
    fn split(&self) -> (&[&'g [u8]], &[&'g [u8]]) {
        let all = if self.count <= FEW_WORDS { &self.few[..self.count] } else { &self.many };
        all.split_at(self.keys)
    }
}

fn given<'a>(args: &Args<'a>, not_a_number: &'static str) -> Result<Given<'a>> {
    let count = if not_a_number.is_empty() { args.int(2)? } else { args.int_said(2, not_a_number)? };
    if count > (args.len() - KEYS_AT) as i64 {
        return Err(Error::err("Number of keys can't be greater than number of args"));
    }
    let keys = usize::try_from(count).map_err(|_| Error::err("Number of keys can't be negative"))?;
    let count = args.len() - KEYS_AT;
    let mut given = Given { few: [&b""[..]; FEW_WORDS], many: Vec::new(), count, keys };
    if count <= FEW_WORDS {
        given.few.iter_mut().zip(args.rest(KEYS_AT)).for_each(|(place, word)| *place = word);
    } else {
        given.many.extend(args.rest(KEYS_AT));
    }
    Ok(given)
}

fn needs(engine: &Engine, args: &Args<'_>, strays: bool) -> Needs {
    if strays {
        return Needs::World;
    }
    let count = args.int(2).ok().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let end = KEYS_AT.saturating_add(count).min(args.len());
    let keyspace = &engine.keyspace;
    Needs::Shards((KEYS_AT..end).map(|at| keyspace.shard_of(&args.key(keyspace, at))).collect())
}
fn needs_of_script(engine: &Engine, args: &Args<'_>) -> Needs {
    needs(engine, args, engine.scripts.strays(|| sha1_hex(args.bytes(1))))
}
fn needs_of_sha(engine: &Engine, args: &Args<'_>) -> Needs {
    let sha = || sha_of(args.bytes(1)).unwrap_or([0; 40]);
    needs(engine, args, engine.scripts.strays(sha))
}
fn needs_of_function(engine: &Engine, args: &Args<'_>) -> Needs {
    needs(engine, args, engine.scripts.strays(|| name_of_function(args.bytes(1))))
}

/// What a function that strays is remembered by.
fn name_of_function(name: &[u8]) -> Sha {
    sha1_hex(&[b"fcall:", &*name.to_ascii_lowercase()].concat())
}

/// Runs `with` with the worker's state of Lua.
fn with_space<R>(
    context: &mut Context<'_, '_>,
    with: impl FnOnce(&mut Context<'_, '_>, &mut Space) -> Result<R>,
) -> Result<R> {
    let engine = context.engine;
    let insecure = engine.settings.lua_insecure.load(Relaxed);
    let mut space = Space::taken(&mut context.local.scripts, &engine.scripts, insecure)?;
    let outcome = with(context, &mut space);
    context.local.scripts = Some(space);
    outcome
}

/// Looks at the libraries of the catalogue, if it has changed, and loads those that nobody has loaded.
fn look(engine: &Engine, space: &mut Space) {
    let looked = space.look(&engine.scripts, &engine.keyspace, &mut Loading::again(&engine.facts, None));
    debug_assert!(looked.is_ok(), "nobody can end it");
}

/// The same, and has a function ready to be called: what that takes counts as the function's own time.
fn make_ready(context: &mut Context<'_, '_>, space: &mut Space, (name, args): (&[u8], &Args<'_>)) -> Result {
    let engine = context.engine;
    let (mut taking, mut is_shown) = (Taking::new(Instant::now()), false);
    let local = &*context.local;
    let mut looks = || {
        is_shown = true;
        taking.look(engine, local, (name, false, args))
    };
    let mut loading = Loading::again(&engine.facts, Some(&mut looks));
    let ready = space
        .look(&engine.scripts, &engine.keyspace, &mut loading)
        .and_then(|()| space.make_ready(&engine.scripts, name, &mut loading));
    let place = engine.scripts.place(local.worker);
    let stops = ready.is_err() && place.is_stopped();
    if is_shown {
        place.clear();
    }
    if stops {
        stop(context);
    }
    ready.map_err(|Killed| Error::err("Script killed by user with FUNCTION KILL."))
}

/// What runs was ended since the server stops: nothing of it is kept, nor of the transaction around it, what is behind
/// it there included; and nobody comes to what it has left.
fn stop(context: &mut Context<'_, '_>) {
    context.engine.stop_in_the_middle();
    context.local.effects.forget_rest();
}

/// A script that this worker has compiled, of those that the server has.
fn compiled(engine: &Engine, space: &mut Space, sha: &Sha) -> Option<Arc<Compiled>> {
    if let Some(compiled) = space.has(sha) {
        return Some(Arc::clone(compiled));
    }
    let script = engine.scripts.get(sha)?;
    let chunk = space.compile(&script).ok()?;
    Some(space.keep(script, chunk))
}

/// A new script, compiled before it is kept.
fn taken(engine: &Engine, space: &mut Space, body: &[u8], loaded: bool) -> Result<Arc<Compiled>> {
    let script = Scripts::parse(body)?;
    if let Some(known) = compiled(engine, space, &script.sha) {
        if loaded {
            engine.scripts.keep(script, true)?;
        }
        return Ok(known);
    }
    let chunk = space.compile(&script)?;
    let script = engine.scripts.keep(script, loaded)?;
    Ok(space.keep(script, chunk))
}

/// Runs what a request names with the worker's state of Lua. Those who watch see the request before what that calls,
/// and nothing of what is taken back to run again.
fn with_watched_space(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    with: impl FnOnce(&mut Context<'_, '_>, &mut Space) -> Result,
) -> Result {
    context.note_script(args);
    let ran = with_space(context, with);
    match &ran {
        Err(error) if error.code == ErrorCode::NeedsWorld => context.local.lines.clear(),
        _ => context.show_notes(),
    }
    ran
}

fn eval(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    with_watched_space(context, args, |context, space| {
        let given = given(args, "")?;
        let script = taken(context.engine, space, args.bytes(1), false)?;
        run_script(context, space, &script, (args, &given), sink)
    })
}

fn evalsha(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let unknown = || Error::new(ErrorCode::NoScript, "No matching script.");
    with_watched_space(context, args, |context, space| {
        let sha = sha_of(args.bytes(1)).ok_or_else(unknown)?;
        let given = given(args, "")?;
        let script = compiled(context.engine, space, &sha).ok_or_else(unknown)?;
        run_script(context, space, &script, (args, &given), sink)
    })
}

fn run_script(
    context: &mut Context<'_, '_>,
    space: &mut Space,
    Compiled { script, chunk }: &Compiled,
    (args, given): (&Args<'_>, &Given<'_>),
    sink: &mut ReplySink<'_>,
) -> Result {
    context.engine.scripts.touch(script);
    let subject = Subject {
        name: &script.sha,
        is_eval: true,
        flags: script.flags,
        read_only: args.spec.flags & flag::READONLY != 0,
    };
    let ran = run(context, &mut space.vm, (subject, chunk), (args, given), sink);
    if matches!(&ran, Err(error) if error.code == ErrorCode::NeedsWorld) {
        context.engine.scripts.strayed(script.sha);
    }
    ran
}

fn fcall(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let name = args.bytes(1);
    with_watched_space(context, args, |context, space| {
        if space.is_current(&context.engine.keyspace)
            && let Some(found) = space.function_to_run(name)
        {
            return run_function(context, found, (name, args), sink);
        }
        make_ready(context, space, (name, args))?;
        match space.function_to_run(name) {
            Some(found) => run_function(context, found, (name, args), sink),
            None => Err(space.failed().map_or_else(|| Error::err("Function not found"), not_loaded)),
        }
    })
}

fn run_function(
    context: &mut Context<'_, '_>,
    (function, chunk, vm): (&Function, &Chunk, &mut Vm),
    (name, args): (&[u8], &Args<'_>),
    sink: &mut ReplySink<'_>,
) -> Result {
    let given = given(args, "Bad number of keys provided")?;
    let read_only = args.spec.flags & flag::READONLY != 0;
    let subject = Subject { name: &function.name, is_eval: false, flags: function.flags, read_only };
    let ran = run(context, vm, (subject, chunk), (args, &given), sink);
    if matches!(&ran, Err(error) if error.code == ErrorCode::NeedsWorld) {
        context.engine.scripts.strayed(name_of_function(name));
    }
    ran
}

/// What is answered for a function that nobody knows while a library does not load, whose it may be.
fn not_loaded((library, why): (&[u8], &str)) -> Error {
    let library = String::from_utf8_lossy(library);
    Error::err(format!("Function not found; the library {library} does not load here: {why}"))
}

/// Runs what was found, and writes its result.
fn run(
    context: &mut Context<'_, '_>,
    vm: &mut Vm,
    (subject, chunk): (Subject<'_>, &Chunk),
    (args, given): (&Args<'_>, &Given<'_>),
    sink: &mut ReplySink<'_>,
) -> Result {
    let (engine, db) = (context.engine, context.session.db);
    let stats = &engine.stats.workers[usize::from(context.local.worker)];
    let world = if subject.is_eval { World::Scripts } else { World::Functions };
    let mut run = ScriptRun::new(Inner::new(context, PLACE), subject, args);
    run.check()?;
    let outcome = vm.call(world, chunk, given.split(), &mut run);
    let resp = run.resp;
    let ended = run.end();
    // SELECT inside is for what is inside.
    context.session.select(db);
    if let Err(error) = ended {
        vm.forget(world);
        return Err(error);
    }
    match outcome {
        Ok(()) => vm.write(world, &mut convert::ScriptResult { sink, resp, stats }),
        Err(error) => {
            let line = convert::error_of(&error.line);
            if !error.counted {
                stats.error(&line);
            }
            sink.error(&line);
        }
    }
    Ok(())
}

fn load(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    with_space(context, |context, space| {
        let script = taken(context.engine, space, args.bytes(2), true)?;
        sink.bulk(&script.script.sha);
        Ok(())
    })
}

fn exists(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.array(args.len() - 2);
    for name in args.rest(2) {
        let script = sha_of(name).and_then(|sha| context.engine.scripts.get(&sha));
        sink.int(i64::from(script.is_some()));
    }
    Ok(())
}

fn flush(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 3 || args.len() == 3 && !args.is(2, "SYNC") && !args.is(2, "ASYNC") {
        return Err(Error::err("SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    context.engine.scripts.flush();
    context.local.scripts = None;
    sink.ok();
    Ok(())
}

fn kill(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.scripts.kill(true)?;
    sink.ok();
    Ok(())
}

fn show(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let script = sha_of(args.bytes(2)).and_then(|sha| context.engine.scripts.get(&sha));
    match script {
        Some(script) => sink.bulk(&script.body),
        None => return Err(Error::new(ErrorCode::NoScript, "No matching script.")),
    }
    Ok(())
}

/// There is no debugger: only turning it off is possible.
fn debug(_: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 4 {
        return Err(help::subcommand_syntax(args));
    }
    if args.len() > 3 && !args.is(3, "LUA") {
        let text = format!("No scripting engine found with name '{}' to enable debug", shown(args.bytes(3)));
        return Err(Error::err(text));
    }
    if args.is(2, "NO") {
        sink.ok();
        return Ok(());
    }
    if args.is(2, "YES") || args.is(2, "SYNC") {
        return Err(Error::err("scripts are not debugged here: weft script run FILE shows each call"));
    }
    Err(Error::err("Use SCRIPT DEBUG YES/SYNC/NO"))
}
