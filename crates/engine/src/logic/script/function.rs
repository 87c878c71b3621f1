//! Owns: FUNCTION: libraries, as entries of the catalogue. Does not own: compiling them (`crate::script::space`),
//! calling their functions (`super`).
//!
//! | locks | commands |
//! |---|---|
//! | everything | FUNCTION LOAD, DELETE, FLUSH, RESTORE |
//! | none | the others |

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weft_lua::{Registered, shebang};
use weft_store::Section;

use super::{look, with_space};
use crate::args::Args;
use crate::commands::common::help;
use crate::context::Context;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::excerpt::shown;
use crate::glob;
use crate::handler::{Entry, Scope};
use crate::rdb;
use crate::reply::ReplySink;
use crate::script::SOURCE_BYTES_MAX;
use crate::script::shelf::Known;
use crate::script::space::{Loading, Space};
use crate::upkeep::catalogue::SECTION_BYTES_MAX;

pub(in crate::logic) const LIST: &[Entry] = &[
    ("FUNCTION LOAD", Scope::World, load),
    ("FUNCTION DELETE", Scope::World, delete),
    ("FUNCTION FLUSH", Scope::World, flush),
    ("FUNCTION RESTORE", Scope::World, restore),
    ("FUNCTION LIST", Scope::None, list),
    ("FUNCTION DUMP", Scope::None, dump),
    ("FUNCTION STATS", Scope::None, stats),
    ("FUNCTION KILL", Scope::None, kill),
    ("FUNCTION HELP", Scope::None, help::help),
];

/// Libraries.
const LIBRARIES_MAX: usize = 10_000;

/// A library that may be stored.
struct Checked {
    /// The names of its functions, by themselves in lower case.
    names: HashMap<Vec<u8>, Vec<u8>>,
    functions: Arc<[Known]>,
}

/// Whether a library may be stored: it loads, and its functions have names that no other library has. `gone` are
/// libraries that go before it comes.
fn check(
    (engine, loading): (&Engine, &mut Loading<'_>),
    space: &mut Space,
    (name, code): (&[u8], &[u8]),
    gone: &dyn Fn(&[u8]) -> bool,
) -> Result<Checked> {
    look(engine, space);
    let functions = space.load(code, loading).map_err(Error::err)?;
    let mut own = HashMap::new();
    let mut checked = if functions.is_empty() { Err(Error::err("No functions registered")) } else { Ok(()) };
    for function in &functions {
        if checked.is_err() {
            break;
        }
        if !shebang::is_name(&function.name) {
            checked = Err(Error::err(
                "Function names can only contain letters, numbers, or underscores(_) and must be at least one \
                 character long",
            ));
        } else if own.insert(function.name.to_ascii_lowercase(), function.name.clone()).is_some() {
            checked = Err(Error::err("Function already exists in the library"));
        }
    }
    // Whose names are others' is asked when all are known.
    let is_others = |function: &&Registered| {
        let known = space.function(&function.name);
        known.is_some_and(|known| *known.library != *name && !gone(&known.library))
    };
    if let (Ok(()), Some(function)) = (&checked, functions.iter().find(is_others)) {
        let shown = shown(&function.name);
        checked = Err(Error::err(format!("Function {shown} already exists")));
    }
    let known = functions.iter().map(Known::of).collect();
    space.release(functions);
    checked.map(|()| Checked { names: own, functions: known })
}

/// Stores a library that may be. Nobody need load it to know what it has.
fn store(context: &mut Context<'_, '_>, (name, code): (&[u8], &[u8]), functions: Arc<[Known]>) -> Result {
    context.set_entry(Section::Functions, name, Some(code))?;
    let engine = context.engine;
    if let Some(code) = engine.keyspace.catalogue().get(Section::Functions, name) {
        engine.scripts.shelf.put(name, &code, Ok(functions));
    }
    Ok(())
}

/// The name of a library, whose length is looked at before anything else.
fn name_of(code: &[u8]) -> Result<Cow<'_, [u8]>> {
    if code.len() > SOURCE_BYTES_MAX {
        let text = format!("the library is longer than {SOURCE_BYTES_MAX} bytes");
        return Err(Error::new(ErrorCode::Limit, text));
    }
    shebang::library(code).map(|library| library.name).map_err(Error::err)
}

/// Whether there is room for libraries of these names, beside those that they do not replace.
fn check_count(engine: &Engine, names: &[&[u8]], flush: bool) -> Result {
    let catalogue = engine.keyspace.catalogue();
    let replaced = || names.iter().filter(|name| catalogue.get(Section::Functions, name).is_some()).count();
    let stay = if flush { 0 } else { catalogue.len(Section::Functions) - replaced() };
    if stay + names.len() > LIBRARIES_MAX {
        let text = format!("there can be {LIBRARIES_MAX} libraries: delete some first");
        return Err(Error::new(ErrorCode::Limit, text));
    }
    Ok(())
}

fn load(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let mut replace = false;
    for at in 2..args.len() - 1 {
        if !args.is(at, "REPLACE") {
            let option = shown(args.bytes(at));
            return Err(Error::err(format!("Unknown option given: {option}")));
        }
        replace = true;
    }
    let code = args.bytes(args.len() - 1);
    let name = name_of(code)?;
    let name = &*name;
    if !replace && context.engine.keyspace.catalogue().get(Section::Functions, name).is_some() {
        let shown = shown(name);
        return Err(Error::err(format!("Library '{shown}' already exists")));
    }
    check_count(context.engine, &[name], false)?;
    let checked = with_space(context, |context, space| {
        let engine = context.engine;
        check((engine, &mut Loading::new(&engine.facts)), space, (name, code), &|_| false)
    })?;
    store(context, (name, code), checked.functions)?;
    sink.bulk(name);
    Ok(())
}

fn delete(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if context.set_entry(Section::Functions, args.bytes(2), None)?.is_none() {
        return Err(Error::err("Library not found"));
    }
    sink.ok();
    Ok(())
}

fn flush(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 3 {
        return Err(unknown_form(args));
    }
    if args.len() == 3 && !args.is(2, "SYNC") && !args.is(2, "ASYNC") {
        return Err(Error::err("FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    remove_all(context)?;
    sink.ok();
    Ok(())
}
fn remove_all(context: &mut Context<'_, '_>) -> Result {
    let all = context.engine.keyspace.catalogue().entries(Section::Functions);
    all.iter().try_for_each(|(name, _)| context.set_entry(Section::Functions, name, None).map(drop))
}

fn list(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (mut with_code, mut pattern, mut at) = (false, None, 2);
    while at < args.len() {
        if !with_code && args.is(at, "WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && args.is(at, "LIBRARYNAME") {
            at += 1;
            if at == args.len() {
                return Err(Error::err("library name argument was not given"));
            }
            pattern = Some(args.bytes(at));
        } else {
            let shown = shown(args.bytes(at));
            return Err(Error::err(format!("Unknown argument {shown}")));
        }
        at += 1;
    }
    with_space(context, |context, space| {
        look(context.engine, space);
        let shown = |name: &[u8]| pattern.is_none_or(|pattern| glob::matches_nocase(pattern, name));
        let libraries: Vec<_> = space.libraries().iter().filter(|(name, _)| shown(name)).collect();
        sink.array(libraries.len());
        for (name, library) in libraries {
            sink.map(if with_code { 4 } else { 3 });
            sink.bulk(b"library_name");
            sink.bulk(name);
            sink.bulk(b"engine");
            sink.bulk(b"LUA");
            sink.bulk(b"functions");
            sink.array(library.functions.len());
            library.functions.iter().for_each(|function| describe(space, function, sink));
            if with_code {
                sink.bulk(b"library_code");
                sink.bulk(&library.code);
            }
        }
        Ok(())
    })
}

fn describe(space: &Space, name: &[u8], sink: &mut ReplySink<'_>) {
    let Some(function) = space.function(name) else { return sink.map(0) };
    sink.map(3);
    sink.bulk(b"name");
    sink.bulk(&function.name);
    sink.bulk(b"description");
    match &function.description {
        Some(text) => sink.bulk(text),
        None => sink.null(),
    }
    sink.bulk(b"flags");
    let flags: Vec<&str> = shebang::flag::NAMES
        .iter()
        .filter(|(flag, _)| function.flags & flag != 0)
        .map(|(_, name)| *name)
        .collect();
    sink.set(flags.len());
    flags.iter().for_each(|name| sink.simple(name));
}

fn dump(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let all = context.engine.keyspace.catalogue().entries(Section::Functions);
    sink.bulk(&rdb::write_libraries(all.iter().map(|(_, code)| &**code)));
    Ok(())
}

fn restore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 4 {
        return Err(unknown_form(args));
    }
    let (flush, replace) = match () {
        () if args.len() == 3 || args.is(3, "APPEND") => (false, false),
        () if args.is(3, "REPLACE") => (false, true),
        () if args.is(3, "FLUSH") => (true, false),
        () => {
            return Err(Error::err(
                "Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let libraries = rdb::read_libraries(args.bytes(2), SECTION_BYTES_MAX as u64).map_err(Error::err)?;
    let names = libraries.iter().map(|code| name_of(code)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<&[u8]> = names.iter().map(|name| &**name).collect();
    check_count(context.engine, &names, flush)?;
    let (mut named, mut replacing) = (Vec::new(), HashSet::new());
    for (name, code) in names.into_iter().zip(&libraries) {
        let is_there = context.engine.keyspace.catalogue().get(Section::Functions, name).is_some();
        if is_there && !flush && !replace || !replacing.insert(name) {
            let shown = shown(name);
            return Err(Error::err(format!("Library {shown} already exists")));
        }
        named.push((name, code));
    }
    let functions = with_space(context, |context, space| {
        let replaced = |other: &[u8]| flush || replacing.contains(other);
        let (engine, mut all, mut functions) = (context.engine, HashMap::new(), Vec::new());
        let mut loading = Loading::new(&engine.facts);
        for (name, code) in &named {
            let checked = check((engine, &mut loading), space, (name, code), &replaced)?;
            if let Some((_, twice)) = checked.names.iter().find(|(lower, _)| all.contains_key(*lower)) {
                let name = shown(twice);
                return Err(Error::err(format!("Function {name} already exists")));
            }
            all.extend(checked.names);
            functions.push(checked.functions);
        }
        Ok(functions)
    })?;
    let entries: Vec<_> = named.iter().map(|(name, code)| (*name, &***code)).collect();
    context.check_entries(Section::Functions, &entries, flush)?;
    if flush {
        remove_all(context)?;
    }
    for ((name, code), functions) in named.into_iter().zip(functions) {
        store(context, (name, code), functions)?;
    }
    sink.ok();
    Ok(())
}

/// What a subcommand with too many arguments answers.
fn unknown_form(args: &Args<'_>) -> Error {
    let shown = shown(args.bytes(1));
    Error::err(format!("unknown subcommand or wrong number of arguments for '{shown}'. Try FUNCTION HELP."))
}

fn stats(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let engine = context.engine;
    let running = engine.scripts.running();
    if running.as_ref().is_some_and(|running| running.is_eval) {
        return Err(crate::script::busy(true));
    }
    if running.is_none() {
        with_space(context, |context, space| {
            look(context.engine, space);
            Ok(())
        })?;
    }
    sink.map(2);
    sink.bulk(b"running_script");
    match running {
        None => sink.null(),
        Some(running) => {
            sink.map(3);
            sink.bulk(b"name");
            sink.bulk(&running.name);
            sink.bulk(b"command");
            sink.array(running.command.len());
            running.command.iter().for_each(|word| sink.bulk(word));
            sink.bulk(b"duration_ms");
            sink.int(running.since.elapsed().as_millis() as i64);
        }
    }
    sink.bulk(b"engines");
    sink.map(1);
    sink.bulk(b"LUA");
    sink.map(2);
    let [functions, libraries] = &engine.scripts.function_counts;
    sink.bulk(b"libraries_count");
    sink.int(libraries.load(Relaxed) as i64);
    sink.bulk(b"functions_count");
    sink.int(functions.load(Relaxed) as i64);
    Ok(())
}

fn kill(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.scripts.kill(false)?;
    sink.ok();
    Ok(())
}

impl Engine {
    /// Loads the libraries that a start has found, each once: what they have is known then, and no worker loads all of
    /// them while its clients wait. One that does not load is named in the log.
    pub fn load_libraries(&self) {
        if self.keyspace.catalogue().is_empty(Section::Functions) {
            return;
        }
        // Where there is no memory for it, each worker finds that out by itself.
        if let Ok(mut space) = Space::new(&self.scripts, self.settings.lua_insecure.load(Relaxed)) {
            look(self, &mut space);
        }
    }
}
