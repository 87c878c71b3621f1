//! Owns: `weft serve` as a command: from its words to a running server. Does not own: options and serving
//! (`weft-server`).

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

/// Serve: RESP2, RESP3 and RESPB on one port.
///
/// Every directive of a Redis configuration is also a flag (`--port 7000`, `--maxmemory 1gb`) and an environment
/// variable (`WEFT_MAXMEMORY=1gb`); flags win over the file, the file over the environment.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// A configuration file, then flags: `[FILE] [--DIRECTIVE VALUE …]`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FILE | --DIRECTIVE VALUE")]
    words: Vec<OsString>,
}

/// Serves until it is asked to stop.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let options = match weft_server::Options::read(options.words.iter().cloned(), std::env::vars_os()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("weft serve: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    weft_server::run(options)?;
    Ok(ExitCode::SUCCESS)
}
