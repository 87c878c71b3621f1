//! Owns how the command line becomes a configuration of the client. Does not own the flags.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use weft_client::{Config, Protocol, ReconnectPolicy, TlsConfig};

use super::flags::Options;

/// What the password is taken from when it is not given.
const PASSWORD_VARIABLES: [&str; 3] = ["WEFTCLI_AUTH", "VALKEYCLI_AUTH", "REDISCLI_AUTH"];

/// Where to connect to, and how.
pub(super) fn config(options: &Options) -> Result<Config> {
    let mut config = match (&options.url, &options.socket) {
        (Some(url), _) => Config::from_url(url)?,
        (None, Some(path)) => Config::unix(path),
        (None, None) => Config::new(options.host.clone(), options.port),
    };
    let has_protocol = options.url.as_ref().is_some_and(|url| url.contains("protocol="));
    config.protocol = match (options.resp2, options.resp3, options.respb) {
        (true, ..) => Protocol::Resp2,
        (_, true, _) => Protocol::Resp3,
        (_, _, true) => Protocol::Respb,
        _ if has_protocol => config.protocol,
        _ if options.json || options.quoted_json => Protocol::Resp3,
        _ => Protocol::Resp2,
    };
    config.channel = options.mux.unwrap_or(0);
    config.db = options.db.unwrap_or(config.db);
    config.name = options.client_name.clone().or(config.name);
    config.password = match (&options.password, options.askpass) {
        (Some(password), _) => Some(password.clone()),
        (None, true) => Some(ask()?),
        _ => config.password.or_else(from_environment),
    };
    if options.user.is_some() {
        config.username = options.user.clone();
    }
    ensure!(
        config.username.is_none() || config.password.is_some(),
        "A user is given, by --user or before the @ of the URL, and no password: give it with --askpass, the variable \
         WEFTCLI_AUTH, -a, or as user:password@ in the URL. The password of the default user alone stands behind a \
         colon: redis://:password@host"
    );
    tls(options, &mut config);
    config.timeouts.connect =
        Some(Duration::from_secs_f64(options.connect_timeout)).filter(|limit| !limit.is_zero());
    // Whoever sits at the terminal decides how long to wait for a reply.
    config.timeouts.reply = None;
    config.reconnect = ReconnectPolicy { attempts_max: 1, ..ReconnectPolicy::default() };
    let shown = options.password.is_some() || (options.url.is_some() && config.password.is_some());
    if shown && !options.no_auth_warning {
        eprintln!(
            "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe."
        );
    }
    Ok(config)
}

fn tls(options: &Options, config: &mut Config) {
    let asked = options.tls
        || options.insecure
        || [&options.cacert, &options.cacertdir, &options.cert, &options.key]
            .iter()
            .any(|file| file.is_some())
        || options.sni.is_some();
    if !asked && config.tls.is_none() {
        return;
    }
    config.tls = Some(TlsConfig {
        ca_file: options.cacert.clone(),
        ca_dir: options.cacertdir.clone(),
        cert_file: options.cert.clone(),
        key_file: options.key.clone(),
        server_name: options.sni.clone(),
        insecure: options.insecure,
    });
}

fn from_environment() -> Option<String> {
    PASSWORD_VARIABLES.iter().find_map(|name| std::env::var(name).ok())
}

/// Asks for the password, without showing it where there is a terminal.
pub(super) fn ask() -> Result<String> {
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

/// How the prompt and messages name the server.
pub(super) fn name(config: &Config) -> String {
    config.address.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use weft_client::Address;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parse(line: &str) -> Config {
        let words = std::iter::once("cli").chain(line.split(' ').filter(|word| !word.is_empty()));
        config(&Line::try_parse_from(words).unwrap().options).unwrap()
    }

    #[test]
    fn flags_become_a_configuration() {
        let config = parse("-h example.org -p 7000 -n 3 -4 --mux 9 -a secret --user alice --no-auth-warning");
        assert_eq!(config.address, Address::Tcp("example.org".into(), 7000));
        assert_eq!((config.db, config.protocol, config.channel), (3, Protocol::Respb, 9));
        assert_eq!((config.username.as_deref(), config.password.as_deref()), (Some("alice"), Some("secret")));
        assert_eq!(parse("").protocol, Protocol::Resp2);
        assert_eq!(parse("--json").protocol, Protocol::Resp3);
        assert_eq!(parse("-2 --json").protocol, Protocol::Resp2);
        let config = parse("-u rediss://u:p@h:1/5?protocol=respb -n 6 --insecure --no-auth-warning");
        assert_eq!((config.db, config.protocol), (6, Protocol::Respb));
        assert!(config.tls.unwrap().insecure);
        assert_eq!(parse("-s /run/x.sock").address, Address::Unix("/run/x.sock".into()));
    }

    #[test]
    fn what_follows_the_command_is_its_own() {
        let words = ["cli", "-p", "1", "SET", "k", "-1", "-x", "--raw"];
        let options = Line::try_parse_from(words).unwrap().options;
        assert_eq!(options.command, ["SET", "k", "-1", "-x", "--raw"]);
        assert!(!options.raw && !options.stdin);
    }
}
