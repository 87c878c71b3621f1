//! The `weft` command: its command line, and the way from an error to an exit status.

#![deny(unsafe_code)]

mod heap;
mod wire;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tools around RESP and RESPB, the protocols of Redis-compatible servers.
#[derive(Debug, Parser)]
#[command(name = "weft", version, about, arg_required_else_help = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Wire(wire::Options),
    Workload(workload::Options),
}

fn main() -> ExitCode {
    let (name, outcome) = match Cli::parse().command {
        Command::Wire(options) => ("wire", wire::run(&options)),
        Command::Workload(options) => ("workload", workload::run(&options)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("weft {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
