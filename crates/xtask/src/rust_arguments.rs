//! The argument trees of `crates/protocol/src/table`, for hints, completion and `COMMAND DOCS`.
//!
//! It owns their text. The types that the text builds stand in `table/mod.rs` of the protocol crate.

use std::fmt::Write as _;

use crate::model::{Argument, ArgumentType, Command};
use crate::rust_table::HEADER;

/// `arguments_gen.rs`: the arguments of each command, in the order of the commands.
#[must_use]
pub fn generate(commands: &[Command]) -> String {
    let mut out = String::from(HEADER);
    out.push_str("use super::ArgumentKind::{Block, Double, Integer, Key, Oneof, Pattern, PureToken, String, UnixTime};\n");
    out.push_str("use super::{Argument, NO_ARGUMENT as N};\n\n");
    out.push_str("/// The arguments of every command, in the order of `COMMANDS`.\n");
    out.push_str("pub(super) static ARGUMENTS: &[&[Argument]] = &[\n");
    for command in commands {
        let _ = writeln!(out, "    // {}\n    &{},", command.full_name(), list(&command.arguments));
    }
    out.push_str("];\n");
    out
}

fn list(arguments: &[Argument]) -> String {
    format!("[{}]", arguments.iter().map(argument).collect::<Vec<_>>().join(", "))
}

/// One argument; members that have their default are left to `N`.
fn argument(argument: &Argument) -> String {
    let kind = match argument.kind {
        ArgumentType::Key => "Key",
        ArgumentType::String => "String",
        ArgumentType::Integer => "Integer",
        ArgumentType::Double => "Double",
        ArgumentType::Pattern => "Pattern",
        ArgumentType::UnixTime => "UnixTime",
        ArgumentType::PureToken => "PureToken",
        ArgumentType::Oneof => "Oneof",
        ArgumentType::Block => "Block",
    };
    let mut out = format!("Argument {{ name: {:?}, kind: {kind}", argument.name);
    let texts = [
        ("token", &argument.token),
        ("display_text", &argument.display_text),
        ("since", &argument.since),
        ("deprecated_since", &argument.deprecated_since),
    ];
    for (member, text) in texts {
        if let Some(text) = text {
            let _ = write!(out, ", {member}: Some({text:?})");
        }
    }
    if let Some(index) = argument.key_spec_index {
        let _ = write!(out, ", key_spec_index: Some({index})");
    }
    let flags = [
        ("optional", argument.optional),
        ("multiple", argument.multiple),
        ("multiple_token", argument.multiple_token),
    ];
    for (member, _) in flags.iter().filter(|(_, set)| *set) {
        let _ = write!(out, ", {member}: true");
    }
    if !argument.arguments.is_empty() {
        let _ = write!(out, ", arguments: &{}", list(&argument.arguments));
    }
    out.push_str(", ..N }");
    out
}
