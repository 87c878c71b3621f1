//! The `weft` command: its command line, and the way from an error to an exit status.
//!
//! Owns the list of commands and what they share: [`window`] (reading a stream with bounded memory), [`text`] (bytes as
//! people read them), [`heap`] (the allocator, the only module with unsafe code). Each command is a module of its own. Exit status: 0 done; 1 the input, the output or the connection
//! was at fault; 2 the command line was.

// `forbid` would not let `heap` allow what an allocator needs.
#![deny(unsafe_code)]

mod convert;
mod heap;
mod inspect;
mod text;
mod window;
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
    Convert(convert::Options),
    Inspect(inspect::Options),
    Wire(wire::Options),
    Workload(workload::Options),
}

fn main() -> ExitCode {
    let (name, outcome) = match Cli::parse().command {
        Command::Convert(options) => ("convert", convert::run(&options)),
        Command::Inspect(options) => ("inspect", inspect::run(&options)),
        Command::Wire(options) => ("wire", wire::run(&options)),
        Command::Workload(options) => ("workload", workload::run(&options)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weft {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whoever read our output has seen enough (`weft … | head`): no error of ours.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
