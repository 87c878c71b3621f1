//! Owns: COMMAND and its subcommands: what the server can do, from the command table. Does not own: the table
//! (`weft_protocol::table`), documentation of a command (`docs`).
//!
//! Only what the engine serves is listed. Lists are in the order of the table, by name.

mod docs;

use weft_protocol::table::{
    self, COMMANDS, CommandId, CommandSpec, KeyBegin, KeyFind, KeySpec, acl, flag, key_flag,
};

use crate::acl::{category, command};
use crate::args::{Args, OwnedArgs, check_arity};
use crate::context::Context;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result, full_name};
use crate::glob;
use crate::handler::{Entry, Scope};
use crate::keys;
use crate::reply::ReplySink;
use crate::requests::{What, is_container};

pub(crate) const LIST: &[Entry] = &[
    ("COMMAND", Scope::None, all),
    ("COMMAND COUNT", Scope::None, count),
    ("COMMAND INFO", Scope::None, info),
    ("COMMAND DOCS", Scope::None, docs::docs),
    ("COMMAND OPCODES", Scope::None, docs::opcodes),
    ("COMMAND HELP", Scope::None, crate::commands::common::help::help),
    ("COMMAND LIST", Scope::None, list),
    ("COMMAND GETKEYS", Scope::None, |context, args, sink| getkeys(context, args, sink, false)),
    ("COMMAND GETKEYSANDFLAGS", Scope::None, |context, args, sink| getkeys(context, args, sink, true)),
];

/// Whether a command is served: a container is when any of its subcommands is.
fn is_served(engine: &Engine, id: CommandId) -> bool {
    engine.serves(id) || is_container(id) && table::subcommands(id).any(|sub| engine.serves(sub))
}

/// Commands that are served, without subcommands.
fn served(engine: &Engine) -> Vec<CommandId> {
    let ids = (0..COMMANDS.len() as u16).map(CommandId);
    ids.filter(|&id| id.spec().container.is_none() && is_served(engine, id)).collect()
}

/// A command by the name that INFO and DOCS take, `get` or `config|get`, if it is served.
fn named(engine: &Engine, name: &[u8]) -> Option<CommandId> {
    command(name).filter(|&id| is_served(engine, id))
}

fn all(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let ids = served(context.engine);
    sink.array(ids.len());
    ids.into_iter().for_each(|id| write_info(context.engine, id, sink));
    Ok(())
}

fn count(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.count(served(context.engine).len());
    Ok(())
}

fn info(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() == 2 {
        return all(context, args, sink);
    }
    sink.array(args.len() - 2);
    for name in args.rest(2) {
        match named(context.engine, name) {
            Some(id) => write_info(context.engine, id, sink),
            None => sink.null(),
        }
    }
    Ok(())
}

fn list(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let engine = context.engine;
    let filter: Box<dyn Fn(CommandId) -> bool> = match args.len() {
        2 => Box::new(|_| true),
        5 if args.is(2, "FILTERBY") && args.is(3, "ACLCAT") => {
            let category = category(args.bytes(4)).unwrap_or(0);
            Box::new(move |id| id.spec().acl & category != 0)
        }
        5 if args.is(2, "FILTERBY") && args.is(3, "PATTERN") => {
            let pattern = args.bytes(4);
            Box::new(move |id| glob::matches_nocase(pattern, full_name(id.spec()).as_bytes()))
        }
        5 if args.is(2, "FILTERBY") && args.is(3, "MODULE") => {
            // Commands of modules are built in: no module has a name.
            Box::new(|_| false)
        }
        _ => return Err(ErrorCode::Syntax.into()),
    };
    sink.deferred();
    for id in served(engine) {
        let subs = table::subcommands(id).filter(|&sub| engine.serves(sub));
        for id in std::iter::once(id).chain(subs).filter(|&id| filter(id)) {
            sink.bulk(full_name(id.spec()).as_bytes());
        }
    }
    sink.close();
    Ok(())
}

fn getkeys(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    with_flags: bool,
) -> Result {
    let What::Command(id) = What::of(args.bytes(2), (args.len() > 3).then(|| args.bytes(3))) else {
        return Err(Error::err("Invalid command specified"));
    };
    let spec = id.spec();
    if !is_served(context.engine, id) {
        return Err(Error::err("Invalid command specified"));
    }
    if spec.key_specs.iter().all(|spec| spec.flags & key_flag::NOT_KEY != 0) {
        return Err(Error::err("The command has no key arguments"));
    }
    if check_arity(spec, args.len() - 2).is_err() {
        return Err(Error::err("Invalid number of arguments specified for command"));
    }
    let owned = OwnedArgs::new(spec, args.rest(2));
    let inner = owned.args();
    let mut found = Vec::new();
    keys::each_with_flags(&inner, |index, flags| found.push((index, flags)));
    if keys::are_too_few(&inner) {
        found.clear();
    }
    if found.is_empty() && spec.flags & flag::NO_MANDATORY_KEYS == 0 {
        return Err(Error::err("Invalid arguments specified for command"));
    }
    sink.array(found.len());
    for (index, flags) in found {
        if with_flags {
            sink.array(2);
            sink.bulk(inner.bytes(index));
            write_key_flags(flags, sink);
        } else {
            sink.bulk(inner.bytes(index));
        }
    }
    Ok(())
}

fn write_info(engine: &Engine, id: CommandId, sink: &mut ReplySink<'_>) {
    let spec = id.spec();
    sink.array(10);
    sink.bulk(full_name(spec).as_bytes());
    sink.int(spec.arity.into());
    write_names(flag::NAMES, shown_flags(spec), "", sink);
    sink.int(spec.keys.0.into());
    sink.int(spec.keys.1.into());
    sink.int(spec.keys.2.into());
    write_names(acl::NAMES, spec.acl, "@", sink);
    let docs = id.docs();
    sink.set(docs.hints.len());
    docs.hints.iter().for_each(|hint| sink.bulk(hint.as_bytes()));
    sink.set(spec.key_specs.len());
    for (index, spec) in spec.key_specs.iter().enumerate() {
        write_key_spec(spec, docs.key_notes.get(index).copied().flatten(), sink);
    }
    let subs: Vec<CommandId> = table::subcommands(id).filter(|&sub| engine.serves(sub)).collect();
    sink.array(subs.len());
    subs.into_iter().for_each(|sub| write_info(engine, sub, sink));
}

/// Flags that servers keep to themselves are left out.
fn shown_flags(spec: &CommandSpec) -> u32 {
    let inner = flag::MAY_REPLICATE | flag::TOUCHES_ARBITRARY_KEYS | flag::ALL_DBS;
    spec.flags & !(flag::ONLY_SENTINEL | flag::SENTINEL | flag::PROTECTED | inner)
}

fn write_names(names: &[(u32, &str)], bits: u32, prefix: &str, sink: &mut ReplySink<'_>) {
    sink.set(bits.count_ones() as usize);
    for (_, name) in names.iter().filter(|(bit, _)| bits & bit != 0) {
        sink.simple(&format!("{prefix}{name}"));
    }
}

fn write_key_flags(flags: u16, sink: &mut ReplySink<'_>) {
    let flags = flags & !(key_flag::VARIABLE_FLAGS | key_flag::INCOMPLETE);
    sink.set(flags.count_ones() as usize);
    for (_, name) in key_flag::NAMES.iter().filter(|(bit, _)| flags & bit != 0) {
        sink.simple(name);
    }
}

fn write_key_spec(spec: &KeySpec, notes: Option<&str>, sink: &mut ReplySink<'_>) {
    sink.map(3 + usize::from(notes.is_some()));
    if let Some(notes) = notes {
        sink.bulk(b"notes");
        sink.bulk(notes.as_bytes());
    }
    sink.bulk(b"flags");
    sink.set(spec.flags.count_ones() as usize);
    for (_, name) in key_flag::NAMES.iter().filter(|(bit, _)| spec.flags & bit != 0) {
        sink.simple(name);
    }
    sink.bulk(b"begin_search");
    match spec.begin {
        KeyBegin::Unknown => write_unknown(sink),
        KeyBegin::Index(index) => write_search("index", &[("index", index.into())], None, sink),
        KeyBegin::Keyword(word, from) => {
            write_search("keyword", &[("startfrom", from.into())], Some(word), sink)
        }
    }
    sink.bulk(b"find_keys");
    match spec.find {
        KeyFind::Unknown => write_unknown(sink),
        KeyFind::Range { last, step, limit } => {
            let fields = [("lastkey", last.into()), ("keystep", step.into()), ("limit", limit.into())];
            write_search("range", &fields, None, sink);
        }
        KeyFind::Count { at, first, step } => {
            let fields = [("keynumidx", at.into()), ("firstkey", first.into()), ("keystep", step.into())];
            write_search("keynum", &fields, None, sink);
        }
    }
}

fn write_unknown(sink: &mut ReplySink<'_>) {
    sink.map(2);
    sink.bulk(b"type");
    sink.bulk(b"unknown");
    sink.bulk(b"spec");
    sink.map(0);
}

fn write_search(kind: &str, fields: &[(&str, i64)], keyword: Option<&str>, sink: &mut ReplySink<'_>) {
    sink.map(2);
    sink.bulk(b"type");
    sink.bulk(kind.as_bytes());
    sink.bulk(b"spec");
    sink.map(fields.len() + usize::from(keyword.is_some()));
    if let Some(keyword) = keyword {
        sink.bulk(b"keyword");
        sink.bulk(keyword.as_bytes());
    }
    for (name, value) in fields {
        sink.bulk(name.as_bytes());
        sink.int(*value);
    }
}
