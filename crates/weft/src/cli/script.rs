//! Owns `--eval`: a file as a script, keys and arguments from the command line. Does not own the language.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use weft_client::Reply;

use super::flags::Options;
use super::link::{Link, Outcome};
use super::once;
use super::output::Format;

/// Runs `EVAL script numkeys key… arg…`; a comma that stands alone divides keys from arguments.
pub(super) fn run(options: &Options, file: &Path, link: &mut Link, format: &Format) -> Result<ExitCode> {
    let script = std::fs::read(file).with_context(|| format!("Can't open file '{}'", file.display()))?;
    if lacks_scripts(link) {
        eprintln!(
            "The server has no command EVAL: --eval needs one that runs Lua scripts, as Redis and Valkey do"
        );
        return Ok(ExitCode::FAILURE);
    }
    let words: Vec<Vec<u8>> = options.command.iter().map(|word| word.as_bytes().to_vec()).collect();
    let keys = words.iter().position(|word| word == b",").unwrap_or(words.len());
    let mut args = vec![b"EVAL".to_vec(), script, keys.to_string().into_bytes()];
    args.extend(words.into_iter().enumerate().filter(|(index, _)| *index != keys).map(|(_, word)| word));
    once::repeat(options, link, format, &args)
}

/// Whether the server says that it knows no EVAL. What else may be wrong, EVAL itself tells.
fn lacks_scripts(link: &mut Link) -> bool {
    match link.run(&["COMMAND", "INFO", "EVAL"], &mut |_| {}) {
        Ok(Outcome::Reply(Reply::Array(commands))) => {
            matches!(commands.first(), None | Some(Reply::Null | Reply::NullArray))
        }
        _ => false,
    }
}
