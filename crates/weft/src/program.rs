//! `weft program`: programs looked at before they are stored. Owns the command line, and the cases that stand in a
//! program's file. Does not own what a program is, or what is wrong with one (`weft_engine::program`).
//!
//! A case runs against an engine of its own, in this process: nothing is listened to and nothing is kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use clap::Subcommand;
use serde_json::Value;
use weft_engine::args::{OwnedArgs, find};
use weft_engine::mailbox::Address;
use weft_engine::program::Program;
use weft_engine::reply::{JsonForm, Output, Protocol, Wire};
use weft_engine::requests::What;
use weft_engine::session::{ConnectionInfo, Session};
use weft_engine::{Engine, Executor, Postponed, Setup};
use weft_store::{Config, Keyspace, SystemClock};

const EXAMPLES: &str = "\
Examples:
  weft program check sell.json transfer.json
  weft program test sell.json

A case is a member of the file's array \"cases\":
  {\"name\": \"too little\", \"given\": [[\"SET\", \"stock:7\", \"1\"]], \"run\": [\"7\", \"3\"], \"fails\": \"OUTOFSTOCK\",
   \"then\": [[[\"GET\", \"stock:7\"], \"1\"]]}
`given` are commands before it, `run` the arguments, `returns` what comes back or `fails` the error's first word, `then`
commands behind it, each with what it answers.
Status: 0 nothing is wrong; 1 something is.";

/// Check programs, and run the cases that stand in their files
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Options {
    /// Say what is wrong with programs, and where
    Check {
        /// Files with a program each
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Run the cases of programs
    Test {
        /// Files with a program each, and its cases
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut wrong = 0;
    match options {
        Options::Check { files } => {
            for file in files {
                match Program::parse(&read(file)?) {
                    Ok(_) => println!("{}: fine", file.display()),
                    Err(problem) => {
                        println!("{}: {problem}", file.display());
                        wrong += 1;
                    }
                }
            }
        }
        Options::Test { files } => {
            for file in files {
                wrong += test(file)?;
            }
        }
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("{} cannot be read", file.display()))
}

/// Runs the cases of a file, and says how many failed.
fn test(file: &Path) -> Result<usize> {
    let text = read(file)?;
    if let Err(problem) = Program::parse(&text) {
        println!("{}: {problem}", file.display());
        return Ok(1);
    }
    let document: Value = serde_json::from_slice(&text)?;
    let cases = document["cases"].as_array().map_or(&[][..], Vec::as_slice);
    ensure!(!cases.is_empty(), "{}: no cases: expected an array \"cases\" with one at least", file.display());
    let mut failed = 0;
    for (at, case) in cases.iter().enumerate() {
        let name = case["name"].as_str().map_or_else(|| format!("case {at}"), str::to_owned);
        let outcome = run_case(&text, case).with_context(|| format!("{}: {name}", file.display()))?;
        match outcome {
            None => println!("{}: {name}: fine", file.display()),
            Some(why) => {
                println!("{}: {name}: {why}", file.display());
                failed += 1;
            }
        }
    }
    Ok(failed)
}

/// Runs a case; gives what is wrong.
fn run_case(program: &[u8], case: &Value) -> Result<Option<String>> {
    let keyspace = Keyspace::new(Config { shards: 16, ..Config::default() });
    let engine = Engine::new(Setup { keyspace, clock: Box::new(SystemClock), workers: 1 });
    let mut bench = Bench::new(&engine)?;
    for command in list(&case["given"], "given")? {
        let reply = bench.run(&words(command)?)?;
        ensure!(reply.get("error").is_none(), "given: {command} answers {reply}");
    }
    let mut run = vec![b"PROGRAM".to_vec(), b"EVAL".to_vec(), program.to_vec()];
    run.extend(list(&case["run"], "run")?.iter().map(word));
    let reply = bench.run(&run)?;
    let error = reply.get("error").and_then(Value::as_str);
    match (error, case.get("returns"), case["fails"].as_str()) {
        (Some(error), _, Some(code)) if error.split(' ').next() == Some(code) => {}
        (Some(error), ..) => return Ok(Some(format!("fails: {error}"))),
        (None, _, Some(code)) => return Ok(Some(format!("returns {reply}, and does not fail with {code}"))),
        (None, Some(expected), None) if *expected != reply => {
            return Ok(Some(format!("returns {reply}, and not {expected}")));
        }
        (None, ..) => {}
    }
    for pair in list(&case["then"], "then")? {
        let (command, expected) = (&pair[0], &pair[1]);
        let reply = bench.run(&words(command)?)?;
        if reply != *expected {
            return Ok(Some(format!("then {command} answers {reply}, and not {expected}")));
        }
    }
    Ok(None)
}

fn list<'v>(value: &'v Value, name: &str) -> Result<&'v [Value]> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(list) => Ok(list),
        _ => anyhow::bail!("{name}: expected an array"),
    }
}

/// An argument: a string as it is, anything else as its JSON.
fn word(value: &Value) -> Vec<u8> {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned).into_bytes()
}

fn words(command: &Value) -> Result<Vec<Vec<u8>>> {
    let words = command.as_array().filter(|words| !words.is_empty());
    let words = words.with_context(|| format!("expected a command as an array, met {command}"))?;
    Ok(words.iter().map(word).collect())
}

/// An engine with one client, whose replies are JSON.
pub(crate) struct Bench<'e> {
    executor: Executor<'e>,
    session: Session,
}

impl<'e> Bench<'e> {
    pub(crate) fn new(engine: &'e Engine) -> Result<Self> {
        let wire = Wire { protocol: Protocol::Json(JsonForm::Plain), channel: 0 };
        let address = Address { worker: 0, connection: 0, channel: 0 };
        let session = engine.connect(address, wire, Arc::new(ConnectionInfo::default()), None);
        let executor = Executor::new(engine, 0, 1).context("the engine has no place for a worker")?;
        Ok(Self { executor, session })
    }
    pub(crate) fn run(&mut self, words: &[Vec<u8>]) -> Result<Value> {
        let first = words.get(1).map(Vec::as_slice);
        let id = find(&words[0], first)
            .with_context(|| format!("unknown command {}", String::from_utf8_lossy(&words[0])))?;
        let args = OwnedArgs::new(id.spec(), words.iter().map(Vec::as_slice));
        let mut output = Output::default();
        self.session.hold_back();
        let postponed = Postponed { what: What::Command(id), args, until_ms: 0, turn: false };
        self.executor.run_owned(&postponed, &mut self.session, &mut output);
        Ok(serde_json::from_slice(&output.to_vec())?)
    }
}
