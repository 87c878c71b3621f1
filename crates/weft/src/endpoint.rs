//! Owns: the flags that say which server a tool talks to, whose names are redis-cli's, the configuration of the client
//! that they make, and what to try when it does not get there. Does not own: protocols and databases, which each tool
//! chooses.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use weft_client::{Config, Connection, Error, Protocol, ReconnectPolicy, Waiting};

use crate::tls::TlsFlags;

/// What the password is taken from when it is not given.
const PASSWORD_VARIABLES: [&str; 3] = ["WEFTCLI_AUTH", "VALKEYCLI_AUTH", "REDISCLI_AUTH"];

/// What to do where a server wants a login first.
pub(crate) const LOGIN_HINT: &str = "To log in at the start: --askpass, the variable WEFTCLI_AUTH, or -a.";

/// Which server. `-h` is the host, as in redis-cli, and so is no help.
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Endpoint {
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// Server host
    #[arg(short = 'h', value_name = "HOST", default_value = "127.0.0.1", value_parser = host)]
    host: String,
    /// Server port
    #[arg(short, value_name = "PORT", default_value_t = 6379)]
    port: u16,
    /// Server Unix socket, instead of host and port
    #[arg(short, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Server URL, instead of host, port and socket: redis://, rediss:// for TLS, unix://, http://, https://
    #[arg(short = 'u', value_name = "URL", conflicts_with_all = ["host", "port", "socket"])]
    url: Option<String>,
    /// Password; other users of the machine may see it, unlike the environment
    #[arg(short = 'a', long = "pass", value_name = "PASSWORD", allow_hyphen_values = true)]
    password: Option<String>,
    /// User, with a password
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Ask for the password
    #[arg(long, conflicts_with = "password")]
    askpass: bool,
    /// Do not warn of a password on the command line
    #[arg(long)]
    no_auth_warning: bool,
    /// Seconds to wait for a connection
    #[arg(short = 't', value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    connect_timeout: f64,

    #[command(flatten)]
    tls: TlsFlags,
}

/// What is spoken with it.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Wire {
    /// Speak RESP2, as without any of the four
    #[arg(short = '2', group = "protocol")]
    resp2: bool,
    /// Speak RESP3
    #[arg(short = '3', group = "protocol")]
    resp3: bool,
    /// Speak RESPB
    #[arg(short = '4', group = "protocol")]
    respb: bool,
    /// Speak HTTP, as -u http://… does: GET for what reads, POST for the rest
    #[arg(long, group = "protocol")]
    http: bool,
}

impl Wire {
    /// What was asked for.
    pub(crate) fn protocol(self) -> Option<Protocol> {
        match self {
            Wire { resp2: true, .. } => Some(Protocol::Resp2),
            Wire { resp3: true, .. } => Some(Protocol::Resp3),
            Wire { respb: true, .. } => Some(Protocol::Respb),
            Wire { http: true, .. } => Some(Protocol::Http),
            _ => None,
        }
    }
}

/// A time in seconds, of at most a year.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=31_536_000.0).contains(&value) => Ok(value),
        _ => Err("not a number of seconds".into()),
    }
}

/// A host; an address of IPv6 may stand in brackets, as it does in a URL.
pub(crate) fn host(text: &str) -> Result<String, String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match bare {
        Some(bare) if bare.contains(':') => Ok(bare.into()),
        Some(_) => Err("what stands in brackets is to be an address of IPv6".into()),
        None => Ok(text.into()),
    }
}

/// The number of a database.
pub(crate) fn database(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "databases are numbered from 0".into())
}

/// An error with what to try, if there is something.
pub(crate) fn hinted(config: &Config, error: &Error) -> String {
    hint(config, error).map_or_else(|| error.to_string(), |hint| format!("{error} ({hint})"))
}

/// The same for an error of a tool, which may be one of the connection.
pub(crate) fn explained(config: &Config, error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Error>().and_then(|error| hint(config, error)) {
        Some(hint) => anyhow!("{error:#} ({hint})"),
        None => error,
    }
}

/// Whether a tool has ended because the server wants a login first: in a step of the handshake, or at a command.
pub(crate) fn wants_login(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<Error>() {
        Some(Error::Handshake { error, .. } | Error::Server(error)) => error.code() == "NOAUTH",
        _ => error.root_cause().to_string().starts_with("NOAUTH "),
    }
}

/// What to try where a flag is too many or missing.
fn hint(config: &Config, error: &Error) -> Option<&'static str> {
    match (error, &config.tls) {
        (Error::Tls(_), None) => Some("--tls speaks it"),
        (Error::Tls(what), Some(_)) if what.contains("nobody who is trusted") => {
            Some("--cacert FILE trusts an authority, or the certificate itself")
        }
        (Error::Tls(what), Some(_)) if what.contains("certificate is not for") => {
            Some("--sni NAME is the name that the certificate is to have")
        }
        (Error::Tls(what), Some(_)) if what.contains("certificate of the client") => {
            Some("--cert FILE and --key FILE show one")
        }
        (Error::Timeout(Waiting::Connect, _), Some(_)) => Some("does it offer TLS on this port?"),
        (error, _) if config.protocol == Protocol::Http && is_no_answer(error) => {
            Some("does it speak HTTP? Redis and Valkey do not")
        }
        _ => None,
    }
}

/// Whether a server has ended the connection, or answered what nobody can read.
fn is_no_answer(error: &Error) -> bool {
    match error {
        Error::Closed | Error::Wire(_) => true,
        Error::OutcomeUnknown(inner) | Error::Lost(inner) => is_no_answer(inner),
        _ => false,
    }
}

impl Endpoint {
    /// A connection to it.
    pub(crate) fn connect(&self) -> Result<Connection> {
        let config = self.config()?;
        Connection::connect(&config).map_err(|error| anyhow!(hinted(&config, &error)))
    }

    /// Where to connect to.
    pub(crate) fn config(&self) -> Result<Config> {
        let mut config = match (&self.url, &self.socket) {
            (Some(url), _) => Config::from_url(url)?,
            (None, Some(path)) => Config::unix(path),
            (None, None) => Config::new(self.host.clone(), self.port),
        };
        config.password = match (&self.password, self.askpass) {
            (Some(password), _) => Some(password.clone()),
            (None, true) => Some(ask()?),
            _ => config.password.or_else(password_from_environment),
        };
        if self.user.is_some() {
            config.username = self.user.clone();
        }
        ensure!(
            config.username.is_none() || config.password.is_some(),
            "A user is given, by --user or before the @ of the URL, and no password: give it with --askpass, the variable \
             WEFTCLI_AUTH, -a, or as user:password@ in the URL. The password of the default user alone stands behind a \
             colon: redis://:password@host"
        );
        config.tls = self.tls.config(config.tls.is_some());
        config.timeouts.connect =
            Some(Duration::from_secs_f64(self.connect_timeout)).filter(|limit| !limit.is_zero());
        // Whoever sits at the terminal decides how long to wait for a reply.
        config.timeouts.reply = None;
        config.reconnect = ReconnectPolicy { attempts_max: 1, ..ReconnectPolicy::default() };
        let shown = self.password.is_some() || (self.url.is_some() && config.password.is_some());
        if shown && !self.no_auth_warning {
            eprintln!(
                "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe."
            );
        }
        Ok(config)
    }

    /// Whether the URL names a protocol.
    pub(crate) fn names_protocol(&self) -> bool {
        self.url.as_deref().is_some_and(names_protocol)
    }
}

/// Whether a URL names a protocol.
pub(crate) fn names_protocol(url: &str) -> bool {
    url.contains("protocol=") || url.to_ascii_lowercase().starts_with("http")
}

/// The password of the first of the variables that is set.
pub(crate) fn password_from_environment() -> Option<String> {
    PASSWORD_VARIABLES.iter().find_map(|name| std::env::var(name).ok())
}

/// Asks for the password, without showing it where there is a terminal.
pub(crate) fn ask() -> Result<String> {
    let stdin = std::io::stdin();
    let terminal = stdin.is_terminal();
    let _quiet = terminal.then(Quiet::begin).transpose()?;
    eprint!("Please input password: ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    stdin.read_line(&mut line).context("cannot read the password")?;
    eprintln!();
    Ok(line.trim_end_matches(['\r', '\n']).to_string())
}

/// A terminal that does not show what is typed, until it is dropped.
struct Quiet(nix::sys::termios::Termios);

impl Quiet {
    fn begin() -> Result<Quiet> {
        use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
        let before = tcgetattr(std::io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(std::io::stdin(), SetArg::TCSAFLUSH, &quiet)?;
        Ok(Quiet(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        use nix::sys::termios::{SetArg, tcsetattr};
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(std::io::stdin(), SetArg::TCSAFLUSH, &self.0);
    }
}
