//! The `weft` command: its command line, and the way from an error to an exit status.
//!
//! Owns the list of commands and what they share: [`window`] (reading a stream with bounded memory), [`lacks`]
//! (what a broken stream lacks, in words), [`endpoint`] (which server), [`source`] (which files), [`insert`]
//! (sending very many commands), [`text`] (bytes as people read them), [`heap`] (the allocator, which alone has
//! unsafe code). Each command is a module of its own. Exit status: 0 done; 1 the input, the output or the
//! connection was at fault; 2 the command line was.

// `forbid` would not let `heap` allow what an allocator needs.
#![deny(unsafe_code)]

mod about;
mod bench;
mod cli;
mod convert;
mod endpoint;
mod export;
mod gateway;
mod heap;
mod import;
mod insert;
mod inspect;
mod lacks;
mod log;
mod measure;
mod program;
mod progress;
mod quiet;
mod script;
mod serve;
mod source;
mod text;
mod tls;
mod token;
mod window;
mod wire;
mod workload;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  weft serve --port 7000                        a server; `weft cli -p 7000` is a prompt for it
  weft serve weft.conf --maxmemory 1gb
  weft cli -4 set greeting hello                a command over RESPB
  weft import dump.rdb                          the data of a Redis into a running server
  weft inspect --hex 0000000000056d796b6579     what a request of RESPB says

`weft help COMMAND` or `weft COMMAND --help` explains a command and has more examples; `weft version` is the version.";

/// The exit status where the command line is at fault.
const WRONG_LINE: u8 = 2;

/// An in-memory store behind RESP2, RESP3, RESPB and HTTP, and its tools
#[derive(Debug, Parser)]
#[command(
    name = "weft",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    propagate_version = true
)]
#[command(after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(Box<bench::Options>),
    Cli(Box<cli::Options>),
    Completions(about::Completions),
    Convert(convert::Options),
    #[command(subcommand)]
    Export(export::Options),
    Gateway(gateway::Options),
    Import(Box<import::Options>),
    Inspect(inspect::Options),
    #[command(subcommand)]
    Log(log::Options),
    Man(about::Man),
    #[command(subcommand, hide = true)]
    Measure(measure::Options),
    Peers(Box<bench::peers::Options>),
    #[command(subcommand)]
    Program(program::Options),
    #[command(subcommand)]
    Script(script::Options),
    Serve(serve::Options),
    #[command(subcommand)]
    Token(Box<token::Options>),
    Wire(wire::Options),
    Workload(workload::Options),
}

fn main() -> ExitCode {
    quiet::end_with_the_reader();
    let (name, outcome) = match parse().command {
        Command::Bench(options) => ("bench", bench::run(&options)),
        Command::Cli(options) => ("cli", cli::run(&options)),
        Command::Completions(options) => ("completions", about::completions(&options, Cli::command())),
        Command::Convert(options) => ("convert", convert::run(&options)),
        Command::Export(options) => ("export", export::run(&options)),
        Command::Gateway(options) => ("gateway", gateway::run(&options)),
        Command::Import(options) => ("import", import::run(&options)),
        Command::Inspect(options) => ("inspect", inspect::run(&options)),
        Command::Log(options) => ("log", log::run(&options)),
        Command::Man(options) => ("man", about::man(&options, Cli::command())),
        Command::Measure(options) => ("measure", measure::run(&options)),
        Command::Peers(options) => ("peers", bench::peers::run(&options)),
        Command::Program(options) => ("program", program::run(&options)),
        Command::Script(options) => ("script", script::run(&options)),
        Command::Serve(options) => ("serve", serve::run(&options)),
        Command::Token(options) => ("token", token::run(&options)),
        Command::Wire(options) => ("wire", wire::run(&options)),
        Command::Workload(options) => ("workload", workload::run(&options)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if quiet::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weft {name}: {error:#}");
            if endpoint::wants_login(&error) {
                eprintln!("{}", endpoint::LOGIN_HINT);
            }
            ExitCode::FAILURE
        }
    }
}

/// The command line. An unknown command is answered with those there are.
fn parse() -> Cli {
    let words = about::as_flags(std::env::args_os()).unwrap_or_else(|wrong| {
        eprintln!("weft: {wrong}");
        std::process::exit(WRONG_LINE.into())
    });
    Cli::try_parse_from(words).unwrap_or_else(|error| {
        if error.kind() == ErrorKind::UnknownArgument
            && let Some(why) = about::lacking(&error)
        {
            eprintln!("{why}");
            std::process::exit(error.exit_code());
        }
        if error.kind() != ErrorKind::InvalidSubcommand {
            about::without_wrong_tips(error).exit();
        }
        if let Some(instead) = about::of_server(&error) {
            eprintln!("{instead}");
            std::process::exit(error.exit_code());
        }
        // Nothing can be done about a standard error that is closed.
        let error = about::with_near_command(error, &Cli::command());
        let _ = error.print();
        eprintln!("\nCommands:");
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            eprintln!("  {:<11}  {}", command.get_name(), command.get_about().unwrap_or_default());
        }
        std::process::exit(error.exit_code())
    })
}
