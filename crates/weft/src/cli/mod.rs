//! `weft cli`: a prompt, single commands and tools against any server of the protocols.
//!
//! Owns which of them is run. Reading order: [`flags`] (what can be asked for), [`target`] (where to connect), [`link`]
//! (the connection), [`output`] (how replies are shown), [`once`] (a command), [`repl`] (the prompt); then the tools,
//! which stand by themselves: [`keys`], [`watch`],
//! [`simulate`], [`insert`], [`script`], [`replica`], [`cluster`]. The connection is [`weft_client`]'s.

mod cluster;
mod editor;
mod flags;
mod grammar;
mod help;
mod keys;
mod link;
mod once;
mod output;
mod pager;
mod peek;
mod pipe;
mod repl;
mod replica;
mod script;
mod simulate;
mod target;
mod watch;
pub(crate) mod words;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::Result;
use weft_client::{Config, Connection, Error, Protocol};

pub(crate) use self::flags::{LACKING, Options};
use self::link::Link;
use self::output::{Format, Style};

/// The exit status where the command line is at fault.
const WRONG_LINE: u8 = 2;

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if let (Some(tool), Some(word)) = (options.tool_without_command(), options.command.first()) {
        let word = word.to_string_lossy();
        eprintln!(
            "{tool} takes no command: what is '{word}' for? Flags stand before it: weft cli {tool} --pattern GLOB"
        );
        return Ok(ExitCode::from(WRONG_LINE));
    }
    if let Some(seconds) = options.intrinsic_latency {
        return simulate::intrinsic_latency(seconds);
    }
    let config = match target::config(options) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{error:#}");
            return Ok(ExitCode::FAILURE);
        }
    };
    if options.verbose {
        say_server(&config);
    }
    if options.pipe {
        return tool(&config, |connection| pipe::run(options, connection));
    }
    if let Some(keys) = options.lru_test {
        return tool(&config, |connection| simulate::lru_test(options, keys, connection));
    }
    if options.stat {
        return tool(&config, |connection| watch::stat(options, connection));
    }
    if options.latency || options.latency_history || options.latency_dist {
        return tool(&config, |connection| watch::latency(options, connection));
    }
    if options.scan {
        return tool(&config, |connection| keys::scan(options, connection));
    }
    if options.bigkeys || options.memkeys || options.hotkeys {
        return tool(&config, |connection| keys::find(options, connection));
    }
    if let Some(copy) = copied(options, &config) {
        return copy;
    }
    let format = format(options);
    if !options.manage.cluster_command.is_empty() {
        return cluster::run(&config, &options.manage, &format);
    }
    let interactive = options.command.is_empty() && options.eval.is_none() && std::io::stdin().is_terminal();
    if interactive {
        return repl::run(options, config, format);
    }
    let mut link = Link::new(config, None, options.cluster);
    if let Some(file) = &options.eval {
        return script::run(options, file, &mut link, &format);
    }
    if options.command.is_empty() {
        return once::lines(options, &mut link, &format);
    }
    once::command(options, &mut link, &format)
}

/// `--rdb`, `--functions-rdb` and `--replica`, if one of them was asked for. Replicas are spoken to in RESP2.
fn copied(options: &Options, config: &Config) -> Option<Result<ExitCode>> {
    let config = Config { protocol: Protocol::Resp2, channel: 0, ..config.clone() };
    let copy: Box<dyn FnOnce(Connection) -> Result<ExitCode>> =
        match (&options.rdb, &options.functions_rdb, options.replica) {
            (Some(file), ..) => Box::new(|connection| replica::save(file, false, connection)),
            (_, Some(file), _) => Box::new(|connection| replica::save(file, true, connection)),
            (.., true) => Box::new(replica::follow),
            _ => return None,
        };
    Some(connected(&config, copy))
}

/// `--verbose`: who answers, and over what. The connection is one of its own.
fn say_server(config: &Config) {
    match Connection::connect(config) {
        Ok(connection) => {
            let server = connection.server();
            let version = [server.server.as_str(), server.version.as_str()].join(" ");
            let tls = if config.tls.is_some() { ", TLS" } else { "" };
            let (name, protocol) = (target::name(config), config.protocol);
            eprintln!("Connected to {name} over {protocol}{tls}, database {}: {}", config.db, version.trim());
        }
        Err(error) => eprintln!("{}", could_not_connect(config, &error)),
    }
}

/// Connects and runs a tool.
fn tool(config: &Config, run: impl FnOnce(&mut Connection) -> Result<ExitCode>) -> Result<ExitCode> {
    connected(config, |mut connection| run(&mut connection))
}

/// Connects and hands the connection over.
fn connected(config: &Config, run: impl FnOnce(Connection) -> Result<ExitCode>) -> Result<ExitCode> {
    match Connection::connect(config) {
        Ok(connection) => run(connection),
        Err(error) => {
            eprintln!("{}", could_not_connect(config, &error));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// How replies are shown: as asked for, or as the output is a terminal or not.
fn format(options: &Options) -> Format {
    let style = match () {
        () if options.csv => Style::Csv,
        () if options.json => Style::Json,
        () if options.quoted_json => Style::QuotedJson,
        () if options.raw => Style::Raw,
        () if options.no_raw || std::io::stdout().is_terminal() => Style::Standard,
        () => Style::Raw,
    };
    Format {
        style,
        element_delimiter: options.element_delimiter.clone().into_bytes(),
        reply_delimiter: options.reply_delimiter.clone().into_bytes(),
    }
}

/// Whether colours are wanted: on a terminal, unless the environment says otherwise (no-color.org).
fn colors() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether there was no connection to begin with.
fn is_connecting(error: &Error) -> bool {
    matches!(
        error,
        Error::Connect { .. }
            | Error::Resolve { .. }
            | Error::Tls(_)
            | Error::Handshake { .. }
            | Error::NoProtocol { .. }
            | Error::Timeout(weft_client::Waiting::Connect, _)
    )
}

/// What to say when there is no connection.
fn could_not_connect(config: &Config, error: &Error) -> String {
    let name = target::name(config);
    match error {
        Error::Connect { source, .. } => {
            let source = source.to_string();
            // Without the number that the system has for it.
            let source = source.split(" (os error").next().unwrap_or_default();
            format!("Could not connect to the server at {name}: {source}")
        }
        Error::NoProtocol { protocol: Protocol::Respb, error } => {
            format!("{name} does not speak RESPB, which -4 asks for; it answered: {error}")
        }
        Error::Handshake { error: said, .. } if matches!(said.code(), "NOAUTH" | "WRONGPASS") => {
            format!("Could not connect to the server at {name}: {error}\n{}", link::LOGIN_HINT)
        }
        error => format!("Could not connect to the server at {name}: {error}"),
    }
}
