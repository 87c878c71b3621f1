//! `weft cli`: a prompt, single commands and tools against any server of the protocols.
//!
//! Owns which of them is run. Reading order: [`flags`] (what can be asked for), [`target`] (where to connect), [`link`]
//! (the connection), [`output`] (how replies are shown), [`line`] (what a line says), [`once`] (a command), [`repl`]
//! (the prompt); then the tools, which stand by themselves: [`keys`], [`watch`], [`simulate`], [`pipe`], [`script`],
//! [`replica`], [`cluster`]. The connection is [`weft_client`]'s.

mod cluster;
mod editor;
mod flags;
mod grammar;
mod help;
mod keys;
mod line;
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
use crate::endpoint;

/// What clears a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if let (Some(tool), Some(word)) = (options.tool_without_command(), options.command.first()) {
        let word = word.to_string_lossy();
        let hint = match tool {
            "--scan" | "--bigkeys" | "--memkeys" | "--hotkeys" => {
                format!(" Keys are chosen so: weft cli {tool} --pattern GLOB")
            }
            "--pipe" => " It reads commands from the standard input".into(),
            _ => String::new(),
        };
        eprintln!("{tool} takes no command: what is '{word}' for?{hint}");
        return Ok(ExitCode::from(crate::WRONG_LINE));
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
        return cluster::run(&config, &options.manage);
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
    match connect(config) {
        Ok((mut connection, _)) => {
            let tls = if config.tls.is_some() { ", TLS" } else { "" };
            let (name, protocol) = (target::name(config), config.protocol);
            let server = server_name(&mut connection);
            let server = server.map(|server| format!(": {server}")).unwrap_or_default();
            eprintln!("Connected to {name} over {protocol}{tls}, database {}{server}", config.db);
        }
        Err(error) => eprintln!("{}", could_not_connect(config, &error)),
    }
}

/// What a server calls itself, with its own version: HELLO has the one of Redis that a server is like. None where it
/// does not say.
fn server_name(connection: &mut Connection) -> Option<String> {
    let info: String = connection.query(&["INFO", "server"]).ok()?;
    let field =
        |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let name = field("server_name").unwrap_or("redis");
    Some(format!("{name} {}", field(&format!("{name}_version"))?))
}

/// A connection; and, where the server wants no password, what it said of the one that was given.
fn connect(config: &Config) -> Result<(Connection, Option<Error>), Error> {
    match Connection::connect(config) {
        Err(error) if link::wants_no_password(&error) => {
            Ok((Connection::connect(&link::without_login(config))?, Some(error)))
        }
        connection => Ok((connection?, None)),
    }
}

/// Connects and runs a tool.
fn tool(config: &Config, run: impl FnOnce(&mut Connection) -> Result<ExitCode>) -> Result<ExitCode> {
    connected(config, |mut connection| run(&mut connection))
}

/// Connects and hands the connection over.
fn connected(config: &Config, run: impl FnOnce(Connection) -> Result<ExitCode>) -> Result<ExitCode> {
    match connect(config) {
        Ok((connection, said)) => {
            if let Some(said) = said {
                eprintln!("{said}");
            }
            // That a port speaks TLS shows at the first reply.
            run(connection).or_else(|error| match error.downcast_ref() {
                Some(error) if is_connecting(error) => Ok(unreachable_server(config, error)),
                _ => Err(endpoint::explained(config, error)),
            })
        }
        Err(error) => Ok(unreachable_server(config, &error)),
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
        pushes: options.show_pushes.unwrap_or_else(|| std::io::stdout().is_terminal()),
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

/// Says that there is no connection.
fn unreachable_server(config: &Config, error: &Error) -> ExitCode {
    eprintln!("{}", could_not_connect(config, error));
    ExitCode::FAILURE
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
        Error::Resolve { source, .. } => {
            let source = source.to_string();
            let why = source.rsplit(": ").next().unwrap_or_default();
            format!("Could not connect to the server at {name}: {why}")
        }
        Error::NoProtocol { protocol: Protocol::Respb, error } => {
            format!("{name} does not speak RESPB, which -4 asks for; it answered: {error}")
        }
        // There is a connection; what was wrong is what redis-cli says.
        Error::Handshake { error: said, .. } if said.code() == "NOAUTH" => {
            format!("{error}\n{}", endpoint::LOGIN_HINT)
        }
        Error::Handshake { .. } => error.to_string(),
        error => format!("Could not connect to the server at {name}: {}", endpoint::hinted(config, error)),
    }
}

/// What to say of a command that has no reply.
fn without_reply(config: &Config, error: &Error) -> String {
    match is_connecting(error) {
        true => could_not_connect(config, error),
        false => format!("Error: {}", endpoint::hinted(config, error)),
    }
}
