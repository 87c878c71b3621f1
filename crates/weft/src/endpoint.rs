//! Owns: the flags that say which server a tool talks to, whose names are redis-cli's, and the configuration of
//! the client that they make. Does not own: protocols and databases, which each tool chooses.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use weft_client::{Config, ReconnectPolicy};

use crate::tls::TlsFlags;

/// What the password is taken from when it is not given.
const PASSWORD_VARIABLES: [&str; 3] = ["WEFTCLI_AUTH", "VALKEYCLI_AUTH", "REDISCLI_AUTH"];

/// Which server.
#[derive(Clone, Debug, Args)]
pub(crate) struct Endpoint {
    /// Server host
    #[arg(short = 'h', value_name = "HOST", default_value = "127.0.0.1")]
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

/// A time in seconds, of at most a year.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=31_536_000.0).contains(&value) => Ok(value),
        _ => Err("not a number of seconds".into()),
    }
}

impl Endpoint {
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
            _ => config.password.or_else(from_environment),
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
        let names = |url: &String| url.contains("protocol=") || url.to_ascii_lowercase().starts_with("http");
        self.url.as_ref().is_some_and(names)
    }
}

fn from_environment() -> Option<String> {
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
