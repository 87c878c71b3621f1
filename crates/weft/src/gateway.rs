//! Owns: `weft gateway` as a command: from its words to a running gateway, and its help. Does not own: options and
//! serving (`weft-server`), what is behind (`weft-gateway`).

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use weft_server::Own;

/// Serve in front of a Redis or Valkey: thousands of clients over few connections
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// Which server is behind, and flags: `--to URL [FILE] [--DIRECTIVE VALUE …]`.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "--to URL | FILE | --DIRECTIVE VALUE"
    )]
    words: Vec<OsString>,
}

/// Serves until it is asked to stop.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    if options.words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    match read(&options.words, std::env::vars_os()) {
        Ok((behind, options)) => weft_server::gateway(options, behind)?,
        Err(error) => {
            eprintln!("weft gateway: {error:#}");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is behind, and what the server in front of it starts from.
fn read(
    words: &[OsString],
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> anyhow::Result<(weft_gateway::Options, weft_server::Options)> {
    let (flags, rest) = take_own(words)?;
    let mut options =
        weft_server::Options::read_beside(NAMES, rest, environment).map_err(anyhow::Error::msg)?;
    let mut all = std::mem::take(&mut options.own);
    all.extend(flags);
    let last = |name: &str| all.iter().rfind(|own| own.name == name);
    let to = last("to").context("--to URL says which server is behind: --to redis://host:port")?;
    let mut behind = at_its_place(to, weft_gateway::Options::to(&to.value))?;
    if to.place == "--to" && behind.to.password.is_some() {
        options.warnings.push(SEEN.into());
    }
    for own in NAMES.iter().filter(|name| **name != "to").filter_map(|name| last(name)) {
        at_its_place(own, behind.set(own.name, &own.value))?;
    }
    Ok((behind, options))
}

/// Errors name flags themselves.
fn at_its_place<T>(own: &Own, read: Result<T, weft_gateway::OptionsError>) -> anyhow::Result<T> {
    match read {
        Err(error) if !own.place.starts_with("--") => Err(error).with_context(|| own.place.clone()),
        read => Ok(read?),
    }
}

/// Takes the gateway's own flags out; the others are the server's.
fn take_own(words: &[OsString]) -> anyhow::Result<(Vec<Own>, Vec<OsString>)> {
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let flag = word.to_str().and_then(|word| word.strip_prefix("--"));
        let (flag, inside) = match flag.and_then(|flag| flag.split_once('=')) {
            Some((flag, value)) => (Some(flag), Some(value.to_string())),
            None => (flag, None),
        };
        let Some(name) = NAMES.iter().copied().find(|name| flag == Some(*name)) else {
            rest.push(word.clone());
            continue;
        };
        anyhow::ensure!(name != SECRET, "--{name} would be seen by everybody on this machine: {OTHERWISE}");
        let value = match inside {
            Some(value) => value,
            None => {
                let value = words.next().with_context(|| format!("--{name} needs a value behind it"))?;
                value.to_str().with_context(|| format!("--{name} is no text"))?.to_string()
            }
        };
        own.push(Own { place: format!("--{name}"), name, value });
    }
    Ok((own, rest))
}

/// What is no flag, but stands in a file or in the environment.
const SECRET: &str = "to-password";
const OTHERWISE: &str =
    "WEFT_TO_PASSWORD in the environment, to-password in the configuration file, or --to-password-file FILE";
/// What is logged of a password among the flags.
const SEEN: &str = "--to has a password, which everybody on this machine may read in the list of processes: give it by \
                    WEFT_TO_PASSWORD in the environment, to-password in the configuration file, or --to-password-file";

/// The settings that a server does not have.
const NAMES: &[&str] = &[
    "to",
    SECRET,
    "to-password-file",
    "leases",
    "command-timeout",
    "replica-reads",
    "upstream-timeout",
    "upstream-ca",
    "upstream-cert",
    "upstream-key",
    "upstream-name",
];

pub(crate) const HELP: &str = "\
Serve in front of a Redis or Valkey: RESP2, RESP3, RESPB and HTTP on one port,
thousands of clients over few connections.

Usage: weft gateway --to URL [FILE] [--DIRECTIVE VALUE ...]

The server behind:
  --to URL                redis://[user:password@]host:port, rediss://... under TLS, unix:///path,
                          sentinel://[user:password@]host:port,host:port/name: the master that Sentinel knows,
                          cluster://[user:password@]host:port,host:port: a cluster, told of by any of these nodes
  --to-password-file FILE the password there, if --to has none; WEFT_TO_PASSWORD, or to-password in FILE, say it too
  --leases N              connections that clients have to themselves at once: who watches keys, who blocks [64]
  --command-timeout MS    how long a command that does not block may take; 0 for as long as its server is heard of [0]
  --upstream-timeout MS   how long nothing may come of what is due, or no such connection be free [10000]
  --replica-reads MS      reads of a cluster go to replicas that have all that is older than this; 0 for none [0]
  --upstream-ca FILE      certificates to trust, PEM; the system's if it is left out
  --upstream-cert FILE    the certificate to show, PEM, with --upstream-key FILE
  --upstream-name NAME    the name that the server's certificate must have, instead of the host

Each of these is also a line of FILE ('to redis://...') and an environment variable (WEFT_TO).

All else is as for 'weft serve': port, users, TLS, limits, log. 'weft serve --help' lists it.

Examples:
  weft gateway --to redis://10.0.0.5:6379
  weft gateway --to rediss://gateway:secret@cache.internal:6380 --port 7000 --leases 200

docs/gateway.md says what goes through, and what is refused. SIGTERM stops it when what is under way is answered.
";

#[cfg(test)]
mod tests {
    use super::*;

    type Read = anyhow::Result<(weft_gateway::Options, weft_server::Options)>;

    fn with(words: &[&str], environment: &[(&str, &str)]) -> Read {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        read(&words, environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))))
    }

    /// A file that is gone behind the test.
    struct File(std::path::PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weft-gateway-{}-{name}", std::process::id()));
            std::fs::write(&path, text).unwrap();
            Self(path)
        }
        fn path(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn its_own_flags_are_taken_out() {
        let file = File::new("a.conf", "maxclients 7\n");
        let words = ["--to", "redis://h:1", file.path(), "--port", "7000", "--leases=9", "--threads", "1"];
        let (behind, options) = with(&words, &[]).unwrap();
        assert_eq!((behind.leases, options.port, options.threads), (9, 7000, 1));
        assert_eq!(options.values.get("maxclients").number, 7);
        assert!(options.config_file.is_some() && options.warnings.is_empty());
    }

    #[test]
    fn each_may_stand_in_the_file_or_in_the_environment() {
        let file = File::new("b.conf", "to redis://gw@file\nto-password \"a b\"\nLEASES 5\nport 1\n");
        let environment =
            [("WEFT_TO", "redis://environment"), ("WEFT_LEASES", "4"), ("WEFT_COMMAND_TIMEOUT", "3")];
        let (behind, _) = with(&[], &environment).unwrap();
        assert_eq!((behind.shown().as_str(), behind.leases), ("environment:6379", 4));
        let (behind, options) = with(&[file.path()], &environment).unwrap();
        assert_eq!((behind.shown().as_str(), behind.leases, behind.command_timeout_ms), ("file:6379", 5, 3));
        assert_eq!((behind.to.username.as_deref(), behind.to.password.as_deref()), (Some("gw"), Some("a b")));
        assert_eq!((options.port, options.warnings.len()), (1, 0));
        let (behind, _) =
            with(&[file.path(), "--to", "redis://flag", "--leases", "6"], &environment).unwrap();
        assert_eq!((behind.shown().as_str(), behind.leases), ("flag:6379", 6));
    }

    #[test]
    fn a_password_needs_not_be_seen() {
        let secret = File::new("secret", "two words\r\n");
        let to = ["--to", "cluster://gw@a,b", "--to-password-file", secret.path()];
        let (behind, options) = with(&to, &[]).unwrap();
        assert_eq!(
            (behind.to.username.as_deref(), behind.to.password.as_deref()),
            (Some("gw"), Some("two words"))
        );
        assert!(options.warnings.is_empty());
        let (behind, _) = with(&["--to", "redis://h"], &[("WEFT_TO_PASSWORD", "x")]).unwrap();
        assert_eq!(behind.to.password.as_deref(), Some("x"));
        let (_, options) = with(&["--to", "redis://:x@h"], &[]).unwrap();
        assert!(options.warnings[0].contains("--to-password-file"), "{:?}", options.warnings);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let (empty, wrong) = (File::new("empty", "\n"), File::new("wrong.conf", "leases 0\n"));
        let large = File::new("large", &"x".repeat(5_000));
        for (words, why) in [
            (&["--port", "1"][..], "--to URL"),
            (&["--to"], "needs a value"),
            (&["--to", "redis://h", "--leases", "x"], "from 1 to"),
            (&["--to", "cluster://h,"], "commas"),
            (&["--to", "redis://h", "--to-password", "x"], "WEFT_TO_PASSWORD"),
            (&["--to", "redis://h", "--to-password-file", "/nothing"], "cannot be read"),
            (&["--to", "redis://h", "--to-password-file", empty.path()], "has no password"),
            (&["--to", "redis://h", "--to-password-file", large.path()], "4096 bytes"),
            (&["--to", "redis://:x@h", "--to-password-file", large.path()], "given twice"),
            (&[wrong.path(), "--to", "redis://h"], "wrong.conf:1: --leases is a number"),
        ] {
            let error = format!("{:#}", with(words, &[]).unwrap_err());
            assert!(error.contains(why), "{words:?}: {error}");
        }
    }
}
