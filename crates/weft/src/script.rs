//! `weft script`: scripts and functions run beside no server, each call shown. Owns the command line and what is shown.
//! Does not own what scripts are (`weft_engine::script`).

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use serde_json::Value;
use weft_engine::reply::{Captured, JsonForm, Output, Protocol, ReplySink, Wire};
use weft_engine::{Engine, Setup};
use weft_store::{Config, Keyspace, SystemClock};

use crate::cli::words;
use crate::program::Bench;

const EXAMPLES: &str = "\
Examples:
  weft script run limit.lua --keys user:7 --args 10 60
  weft script run limit.lua --given 'SET user:7 9' --keys user:7 --args 10 60
  weft script run library.lua --function grow --keys counter --args 5

The script runs against an engine of its own, in this process: nothing is listened to and nothing is kept. Each call of
a command is shown with what it answers, in JSON, and at last what the script returns.
Status: 0 it has returned; 1 it has failed.";

/// Run a script and show each call that it makes
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Options {
    Run(Run),
}

/// Run a script, or a function of a library
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The script; with --function a library
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What KEYS has
    #[arg(long, value_name = "KEY", num_args = 0.., allow_negative_numbers = true)]
    keys: Vec<String>,
    /// What ARGV has
    #[arg(long, value_name = "ARGUMENT", num_args = 0.., allow_negative_numbers = true)]
    args: Vec<String>,
    /// A command to be run before it; may be given again
    #[arg(long, value_name = "COMMAND")]
    given: Vec<String>,
    /// The function of the library that is to be called
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let Options::Run(options) = options;
    let source =
        fs::read(&options.file).with_context(|| format!("{} cannot be read", options.file.display()))?;
    let keyspace = Keyspace::new(Config { shards: 16, ..Config::default() });
    let engine = Engine::new(Setup { keyspace, clock: Box::new(SystemClock), workers: 1 });
    let mut bench = Bench::new(&engine)?;
    for given in &options.given {
        let words = words::arguments(given).with_context(|| format!("--given {given}: a quote is open"))?;
        ensure!(!words.is_empty(), "--given: no command");
        let reply = bench.run(&words)?;
        if let Some(error) = error_of(&reply) {
            bail!("--given {given}: {error}");
        }
    }
    let mut command = match &options.function {
        None => vec![b"EVAL".to_vec(), source],
        Some(name) => {
            let loaded = bench.run(&[b"FUNCTION".to_vec(), b"LOAD".to_vec(), source])?;
            if let Some(error) = error_of(&loaded) {
                bail!("{}: {error}", options.file.display());
            }
            vec![b"FCALL".to_vec(), name.clone().into_bytes()]
        }
    };
    command.push(options.keys.len().to_string().into_bytes());
    command.extend(options.keys.iter().chain(&options.args).map(|word| word.clone().into_bytes()));
    engine.scripts.tracer.set(Box::new(show));
    let reply = bench.run(&command)?;
    if let Some(error) = error_of(&reply) {
        eprintln!("{}: {error}", options.file.display());
        return Ok(ExitCode::FAILURE);
    }
    println!("= {reply}");
    Ok(ExitCode::SUCCESS)
}

fn error_of(reply: &Value) -> Option<&str> {
    reply.get("error").and_then(Value::as_str)
}

/// Prints a call and what it answered.
fn show(call: &[&[u8]], answer: Result<&Captured, &str>) {
    let words: Vec<String> = call.iter().map(|word| shown(word)).collect();
    let answer = match answer {
        Ok(reply) => {
            let mut output = Output::default();
            let wire = Wire { protocol: Protocol::Json(JsonForm::Plain), channel: 0 };
            reply.write(&mut ReplySink::new(&mut output, wire));
            String::from_utf8_lossy(&output.to_vec()).into_owned()
        }
        Err(line) => format!("-{line}"),
    };
    println!("{} -> {answer}", words.join(" "));
}

/// A word as it is, or between quotes where it could be taken for two.
fn shown(word: &[u8]) -> String {
    let is_plain = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"');
    if is_plain { String::from_utf8_lossy(word).into_owned() } else { format!("\"{}\"", word.escape_ascii()) }
}
