//! `weft import`: the data of Redis and Valkey into a server that runs. Owns the command line and what is said at
//! the end; [`data`] reads the files, `insert` sends the commands.

mod data;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use weft_server::{Import, ImportCommand};

use self::data::{Choices, Counts, Data};
use crate::endpoint::Endpoint;
use crate::insert::{self, Commands as _};
use crate::source;
use crate::text::grouped;

const EXAMPLES: &str = "\
Examples:
  weft import dump.rdb                        a file of RDB into 127.0.0.1:6379
  weft import -p 7000 --replace appendonlydir the files that a manifest lists; keys that are there are replaced
  weft import --dry-run dump.rdb              reads it, checks checksum and values, says what is in it

Keys keep their databases, times and use. Reading needs no more memory than the largest value. While it runs, others see
what has come so far.
Status: 0 all of it is there; 1 the file was at fault, or the server refused something.";

/// Bring the data of Redis or Valkey, RDB or append-only files, into a running server
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// A dump.rdb, an append-only file, its .manifest or its folder; - is standard input
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    endpoint: Endpoint,
    /// Replace keys and libraries that are there already
    #[arg(long)]
    replace: bool,
    /// Leave out values of modules, and name them
    #[arg(long)]
    skip_modules: bool,
    /// Only read, and say what there is
    #[arg(long)]
    dry_run: bool,
    /// Seconds without a reply after which to give up; 0 is never
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let (pieces, notes) = source::pieces(Some(&options.path))?;
    notes.iter().for_each(|note| eprintln!("weft import: {note}"));
    let total = pieces.iter().map(|piece| piece.len).sum::<Option<u64>>();
    let choices =
        Choices { skip_modules: options.skip_modules, replace: options.replace, checks: options.dry_run };
    let mut data = Data::new(pieces, choices);
    let began = Instant::now();
    if options.dry_run {
        let mut told = 0;
        while data.next()?.is_some() {
            let name = data.place().map_or_else(|| "standard input".into(), |(name, _)| name);
            for fault in data.counts.faults.drain(..) {
                told += 1;
                if told <= insert::ERRORS_SHOWN_MAX {
                    eprintln!("weft import: {name}: {fault}");
                }
            }
        }
        println!("{}", summary(&data.counts));
        return Ok(if data.counts.refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let mut connection = options.endpoint.connect()?;
    let silence = (options.timeout > 0).then(|| Duration::from_secs(options.timeout));
    let sent = insert::send_all(&mut data, &mut connection, silence, Some(total.unwrap_or(0)));
    println!("{}", summary(&data.counts));
    let seconds = began.elapsed().as_secs_f64();
    println!("{} commands in {seconds:.1} s; errors: {}", grouped(sent.replies), grouped(sent.errors));
    if sent.errors > 0 && sent.replies == 0 {
        bail!("nothing was imported");
    }
    Ok(sent.status())
}

/// Takes `--import PATH` and `--skip-modules` out of the words of `weft serve`: what the server begins with.
pub(crate) fn for_server(words: &[OsString]) -> Result<(Vec<OsString>, Option<Import>)> {
    let (mut rest, mut path, mut skip_modules) = (Vec::new(), None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--import") => path = Some(words.next().context("--import needs a path behind it")?.clone()),
            Some("--skip-modules") => skip_modules = true,
            Some(word) if word.starts_with("--import=") => path = Some(word["--import=".len()..].into()),
            _ => rest.push(word.clone()),
        }
    }
    let Some(path) = path.map(PathBuf::from) else { return Ok((rest, None)) };
    // Whatever `dir` says.
    let path = std::path::absolute(&path).unwrap_or(path);
    let (pieces, notes) = source::pieces(Some(&path))?;
    notes.iter().for_each(|note| eprintln!("weft serve: {note}"));
    let bytes = pieces.iter().map(|piece| piece.len).sum::<Option<u64>>();
    let mut data = Data::new(pieces, Choices { skip_modules, replace: true, checks: false });
    let mut file: Arc<str> = "".into();
    let next = move || {
        let command = data.next().map_err(|error| format!("{error:#}"))?;
        if command.is_none() {
            summary(&data.counts).lines().for_each(|line| eprintln!("weft serve: {line}"));
        }
        let mut at = 0;
        if let Some((name, place)) = data.place() {
            (file, at) = (name, place);
        }
        Ok(command.map(|words| ImportCommand { words, read: data.offset(), file: Arc::clone(&file), at }))
    };
    Ok((rest, Some(Import { name: path.display().to_string(), bytes, next: Box::new(next) })))
}

/// What the data held, in words.
fn summary(counts: &Counts) -> String {
    let mut text = format!("{} keys", grouped(counts.keys));
    if counts.refused > 0 {
        text += &format!(", {} of them with a value that cannot be read", grouped(counts.refused));
    }
    if counts.libraries > 0 {
        text += &format!(", {} libraries of functions", grouped(counts.libraries));
    }
    if counts.commands > 0 {
        text += &format!(", {} commands", grouped(counts.commands));
    }
    if let Some(server) = &counts.written_by {
        text += &format!(", written by {server}");
    }
    for (module, count) in &counts.modules {
        text += &format!("\nleft out: {} values of the module type {module}", grouped(*count));
    }
    if counts.cut_bytes > 0 {
        text += &format!(
            "\nleft out: the last {} bytes, which are no whole command, as when a server ends while it writes",
            grouped(counts.cut_bytes)
        );
    }
    if counts.cut_transaction {
        text += "\nleft out: the last transaction, which has no end";
    }
    text
}
