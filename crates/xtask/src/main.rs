//! Code generation from `spec/` and checks of the repository; run as `cargo xtask` or through the Makefile.
//!
//! It owns the command line. What a subcommand does lives in a module of its own.

use std::path::Path;

use xtask::model;

fn main() -> anyhow::Result<()> {
    let files = model::load_files(Path::new("."))?;
    for file in &files {
        anyhow::ensure!(file.command.to_text()? == file.text, "{}: not in canonical form", file.file);
    }
    println!("{} commands", files.len());
    Ok(())
}
