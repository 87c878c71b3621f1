//! What is generated from the command table, and whether the committed files are what would be generated now.
//!
//! It owns the list of generated files. A generator is a function from all commands to the text of one file; add one by
//! adding a line to [`GENERATED`].

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::model::Command;
use crate::{
    annex, c_table, compared, csv, go_helpers, go_layouts, go_table, openapi, reference, rust_arguments,
    rust_docs, rust_table, wireshark,
};

/// Makes the text of one file from all commands, sorted by full name, and the root of the repository.
pub type Generator = fn(&Path, &[Command]) -> Result<String>;

/// Every generated file: its path from the root of the repository, and what makes it.
pub const GENERATED: &[(&str, Generator)] = &[
    ("clib/respb_errors.h", |root, _| c_table::errors(root)),
    ("clib/respb_table.h", |_, commands| Ok(c_table::generate(commands))),
    ("docs/commands.md", reference::generate),
    ("spec/commands.csv", |_, commands| Ok(csv::generate(commands))),
    ("spec/commands-compared.md", |root, _| compared::generate(root)),
    ("crates/protocol/src/table/arguments_gen.rs", |_, commands| Ok(rust_arguments::generate(commands))),
    ("crates/protocol/src/table/commands_gen.rs", |_, commands| Ok(rust_table::commands(commands))),
    ("crates/protocol/src/table/docs_gen.rs", |_, commands| Ok(rust_docs::generate(commands))),
    ("crates/protocol/src/table/index_gen.rs", |_, commands| Ok(rust_table::index(commands))),
    ("crates/protocol/src/table/layouts_gen.rs", |_, commands| Ok(rust_table::layouts(commands))),
    ("crates/server/src/http/openapi_gen.json", openapi::openapi),
    ("crates/server/src/http/docs_gen.html", openapi::page),
    ("spec/layouts.md", |_, commands| Ok(annex::generate(commands))),
    ("sdk/go/internal/frame/layouts_gen.go", |_, commands| Ok(go_layouts::generate(commands))),
    ("sdk/go/respb/commands_gen.go", |_, commands| go_helpers::generate(commands)),
    ("spec/wireshark/respb.lua", |_, commands| wireshark::generate(commands)),
    ("sdk/go/internal/commands/table_gen.go", |_, commands| go_table::generate(commands)),
];

/// Writes every generated file that is not up to date. Returns the paths written.
///
/// # Errors
/// When a file cannot be written, or a generator finds something it has no form for.
pub fn write(root: &Path, commands: &[Command]) -> Result<Vec<&'static str>> {
    let mut written = Vec::new();
    for (path, text) in stale(root, commands)? {
        let target = root.join(path);
        if let Some(dir) = target.parent() {
            fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        fs::write(&target, text).with_context(|| format!("cannot write {path}"))?;
        written.push(path);
    }
    Ok(written)
}

/// The generated files that are missing or differ from what would be generated now, with their new text.
///
/// # Errors
/// When a generator finds something it has no form for.
pub fn stale(root: &Path, commands: &[Command]) -> Result<Vec<(&'static str, String)>> {
    let mut stale = Vec::new();
    for (path, generator) in GENERATED {
        let text = generator(root, commands).with_context(|| format!("cannot generate {path}"))?;
        if fs::read_to_string(root.join(path)).ok().as_ref() != Some(&text) {
            stale.push((*path, text));
        }
    }
    Ok(stale)
}
