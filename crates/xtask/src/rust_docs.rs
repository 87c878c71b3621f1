//! The Rust table of what only COMMAND DOCS, COMMAND INFO and COMMAND OPCODES need: `table/docs_gen.rs`.
//!
//! It owns its text; the arguments stand in a table of their own.

use std::fmt::Write as _;

use crate::model::Command;
use crate::notation;

/// `docs_gen.rs`: one entry for each command, in the order of `commands_gen.rs`.
#[must_use]
pub fn generate(commands: &[Command]) -> String {
    let mut out = String::from("// Generated from spec/commands by `cargo xtask gen`. Do not edit.\n\n");
    out.push_str("use super::docs::Docs;\n\n/// By the number of the command.\n");
    out.push_str("pub(super) static DOCS: &[Docs] = &[\n");
    for command in commands {
        let notes: Vec<Option<&str>> = command.key_specs.iter().map(|spec| spec.notes.as_deref()).collect();
        let notes = if notes.iter().any(Option::is_some) { format!("{notes:?}") } else { "[]".into() };
        let layout = command.respb.as_ref().map(notation::layout).unwrap_or_default();
        let _ = writeln!(
            out,
            "    Docs {{ hints: &{:?}, flags: &{:?}, module: {:?}, deprecated_since: {:?}, replaced_by: {:?}, \
             history: &{:?}, key_notes: &{notes}, layout: {layout:?} }},",
            command.hints,
            command.doc_flags,
            command.module,
            command.deprecated_since,
            command.replaced_by,
            command.history,
        );
    }
    out.push_str("];\n");
    out
}
