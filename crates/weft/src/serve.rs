//! Owns: `weft serve` as a command: from its words to a running server, and its help. Does not own: options and serving
//! (`weft-server`).

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use weft_server::directives::{Directive, about};

use crate::import;

/// Serve: RESP2, RESP3, RESPB and HTTP on one port
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// A configuration file, then flags: `[FILE] [--DIRECTIVE VALUE …]`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FILE | --DIRECTIVE VALUE")]
    words: Vec<OsString>,
}

/// Serves until it is asked to stop.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    if options.words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{}", help());
        return Ok(ExitCode::SUCCESS);
    }
    let (words, import) = match import::for_server(&options.words) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("weft serve: {error:#}");
            return Ok(ExitCode::from(2));
        }
    };
    let words = words.into_iter().filter(|word| *word != CHECK);
    let checks = options.words.iter().any(|word| word == CHECK);
    let options = match weft_server::Options::read(words, std::env::vars_os()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("weft serve: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    if checks {
        options.warnings.iter().for_each(|warning| eprintln!("weft serve: {warning}"));
        for remark in weft_server::check(&options)? {
            eprintln!("weft serve: {remark}");
        }
        println!("The configuration is good.");
        return Ok(ExitCode::SUCCESS);
    }
    weft_server::run(options, import)?;
    Ok(ExitCode::SUCCESS)
}

/// The flag under which nothing is served.
const CHECK: &str = "--check-config";

const HEAD: &str = "\
Serve: RESP2, RESP3, RESPB and HTTP on one port.

Usage: weft serve [FILE] [--DIRECTIVE VALUE ...]

FILE is a configuration file as Redis and Valkey have it ('-' is standard input). Every directive of theirs is also a
flag and an environment variable: 'maxmemory 1gb', --maxmemory 1gb, WEFT_MAXMEMORY=1gb. Flags win over the file, the
file over the environment. What Weft does not serve yet is refused, not passed over.
";

const TAIL: &str = "
Examples:
  weft serve
  weft serve --port 7000 --maxmemory 1gb --maxmemory-policy allkeys-lru
  weft serve weft.conf --loglevel verbose
  weft serve --port 0 --unixsocket /run/weft.sock --unixsocketperm 770

--import PATH begins with the data of Redis or Valkey, if nothing was kept: a dump.rdb, an append-only file, its
manifest or its folder; --skip-modules leaves values of modules out. docs/import-export.md says more.
--check-config says whether the server would start so, and serves nothing. docs/configuration.md lists all directives.
SIGHUP reads certificates anew. SIGTERM stops the server when what it owes is sent.
";

pub(crate) fn help() -> String {
    let mut text = String::from(HEAD);
    for (group, list) in about::ABOUT {
        let _ = writeln!(text, "\n{group}:");
        for (name, what) in *list {
            let default = Directive::named(name).map_or("", |directive| directive.default);
            let default = if default.is_empty() { "none" } else { default };
            push_wrapped(&mut text, &format!("  --{name:<32}"), &format!("{what} [{default}]"));
        }
    }
    text.push_str(TAIL);
    text
}

/// Columns of the help.
const COLUMNS: usize = 100;

/// Text behind a margin, in lines that end before [`COLUMNS`].
fn push_wrapped(text: &mut String, margin: &str, words: &str) {
    let mut line = margin.to_string();
    for word in words.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(margin.len());
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}
