//! Owns: COMMAND DOCS and COMMAND OPCODES: a command's documentation, and how it is written on RESPB. Does not own: the
//! facts (`weft_protocol::table`).

use weft_protocol::table::{self, Argument, ArgumentKind, CommandId, Opcode};

use super::{named, served};
use crate::args::Args;
use crate::context::Context;
use crate::engine::Engine;
use crate::error::{Result, full_name};
use crate::reply::ReplySink;
use crate::respb;

/// The commands that the arguments name, or all; names that are not known are passed over.
fn asked(context: &Context<'_, '_>, args: &Args<'_>) -> Vec<CommandId> {
    match args.len() {
        2 => served(context.engine),
        _ => args.rest(2).filter_map(|name| named(context.engine, name)).collect(),
    }
}

pub(super) fn docs(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let ids = asked(context, args);
    sink.map(ids.len());
    for id in ids {
        sink.bulk(full_name(id.spec()).as_bytes());
        write_docs(context.engine, id, sink);
    }
    Ok(())
}

fn write_docs(engine: &Engine, id: CommandId, sink: &mut ReplySink<'_>) {
    let (spec, docs) = (id.spec(), id.docs());
    let arguments = id.arguments();
    let subs: Vec<CommandId> = table::subcommands(id).filter(|&sub| engine.serves(sub)).collect();
    let lists = [!docs.flags.is_empty(), !docs.history.is_empty(), !arguments.is_empty(), !subs.is_empty()];
    let texts = [
        ("summary", Some(spec.summary)),
        ("since", Some(spec.since)),
        ("group", Some(spec.group)),
        ("complexity", Some(spec.complexity).filter(|text| !text.is_empty())),
        ("module", docs.module),
        ("deprecated_since", docs.deprecated_since),
        ("replaced_by", docs.replaced_by),
    ];
    let count = lists.iter().filter(|list| **list).count();
    sink.map(count + texts.iter().filter(|(_, text)| text.is_some()).count());
    for (name, text) in texts {
        if name == "deprecated_since" && !docs.flags.is_empty() {
            sink.bulk(b"doc_flags");
            sink.set(docs.flags.len());
            docs.flags.iter().for_each(|flag| sink.simple(flag));
        }
        write_text(name, text, sink);
    }
    if !docs.history.is_empty() {
        sink.bulk(b"history");
        sink.set(docs.history.len());
        for (since, change) in docs.history {
            sink.array(2);
            sink.bulk(since.as_bytes());
            sink.bulk(change.as_bytes());
        }
    }
    if !arguments.is_empty() {
        sink.bulk(b"arguments");
        write_arguments(arguments, sink);
    }
    if !subs.is_empty() {
        sink.bulk(b"subcommands");
        sink.map(subs.len());
        for sub in subs {
            sink.bulk(full_name(sub.spec()).as_bytes());
            write_docs(engine, sub, sink);
        }
    }
}

fn write_text(name: &str, text: Option<&str>, sink: &mut ReplySink<'_>) {
    if let Some(text) = text {
        sink.bulk(name.as_bytes());
        sink.bulk(text.as_bytes());
    }
}

fn write_arguments(arguments: &[Argument], sink: &mut ReplySink<'_>) {
    sink.array(arguments.len());
    arguments.iter().for_each(|argument| write_argument(argument, sink));
}

fn write_argument(argument: &Argument, sink: &mut ReplySink<'_>) {
    let is_group = matches!(argument.kind, ArgumentKind::Oneof | ArgumentKind::Block);
    let flags: Vec<&str> = [
        (argument.optional, "optional"),
        (argument.multiple, "multiple"),
        (argument.multiple_token, "multiple_token"),
    ]
    .into_iter()
    .filter_map(|(set, name)| set.then_some(name))
    .collect();
    // A group has no text of its own to show.
    let display = argument.display_text.or((!is_group).then_some(argument.name));
    let before =
        [("name", Some(argument.name)), ("type", Some(argument.kind.name())), ("display_text", display)];
    let behind_key = [
        ("token", argument.token),
        ("since", argument.since),
        ("deprecated_since", argument.deprecated_since),
    ];
    let texts = before.iter().chain(&behind_key).filter(|(_, text)| text.is_some()).count();
    let others = [argument.key_spec_index.is_some(), !flags.is_empty(), is_group];
    sink.map(texts + others.iter().filter(|other| **other).count());
    before.into_iter().for_each(|(name, text)| write_text(name, text, sink));
    if let Some(index) = argument.key_spec_index {
        sink.bulk(b"key_spec_index");
        sink.int(index.into());
    }
    behind_key.into_iter().for_each(|(name, text)| write_text(name, text, sink));
    if !flags.is_empty() {
        sink.bulk(b"flags");
        sink.set(flags.len());
        flags.iter().for_each(|flag| sink.simple(flag));
    }
    if is_group {
        sink.bulk(b"arguments");
        write_arguments(argument.arguments, sink);
    }
}

/// Which table this is, and for each command its opcode, module and number, and layout (spec section 13.2).
pub(super) fn opcodes(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let ids = asked(context, args);
    sink.map(2);
    sink.bulk(b"table");
    respb::write_table(sink);
    sink.bulk(b"commands");
    sink.map(ids.len());
    for id in ids {
        sink.bulk(full_name(id.spec()).as_bytes());
        sink.array(4);
        match id.spec().opcode {
            Opcode::Core(opcode) => {
                sink.int(opcode.into());
                sink.null();
                sink.null();
            }
            Opcode::Module { module, command } => {
                sink.int(weft_protocol::respb::frame::MODULE.into());
                sink.int(module.into());
                sink.int(command.into());
            }
        }
        sink.bulk(id.docs().layout.as_bytes());
    }
    Ok(())
}
