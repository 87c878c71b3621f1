//! Owns: `weft gateway` as a command: from its words to a running gateway, and its help. Does not own: options and
//! serving (`weft-server`), what is behind (`weft-gateway`).

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

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
    let read = take_own(&options.words).and_then(|(behind, words)| {
        Ok((behind, weft_server::Options::read(words, std::env::vars_os()).map_err(anyhow::Error::msg)?))
    });
    match read {
        Ok((behind, options)) => weft_server::gateway(options, behind)?,
        Err(error) => {
            eprintln!("weft gateway: {error:#}");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the gateway's own flags out; the others are the server's.
fn take_own(words: &[OsString]) -> anyhow::Result<(weft_gateway::Options, Vec<OsString>)> {
    let (mut to, mut own, mut rest) = (None, Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let name = word.to_str().and_then(|word| word.strip_prefix("--"));
        let (name, inside) = match name.and_then(|name| name.split_once('=')) {
            Some((name, value)) => (Some(name), Some(value.to_string())),
            None => (name, None),
        };
        let Some(name) = name.filter(|name| FLAGS.contains(name)) else {
            rest.push(word.clone());
            continue;
        };
        let value = match inside {
            Some(value) => value,
            None => {
                let value = words.next().with_context(|| format!("--{name} needs a value behind it"))?;
                value.to_str().with_context(|| format!("--{name} is no text"))?.to_string()
            }
        };
        if name == "to" {
            to = Some(value);
        } else {
            own.push((name, value));
        }
    }
    let to = to.context("--to URL says which server is behind: --to redis://host:port")?;
    let mut behind = weft_gateway::Options::to(&to)?;
    for (name, value) in own {
        behind.set(name, &value)?;
    }
    Ok((behind, rest))
}

/// The flags that a server does not have.
const FLAGS: &[&str] = &[
    "to",
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
  --leases N              connections that clients have to themselves at once: who watches keys, who blocks [64]
  --command-timeout MS    how long a command that does not block may take; 0 for as long as its server is heard of [0]
  --upstream-timeout MS   how long nothing may come of what is due, or no such connection be free [10000]
  --replica-reads MS      reads of a cluster go to replicas that have all that is older than this; 0 for none [0]
  --upstream-ca FILE      certificates to trust, PEM; the system's if it is left out
  --upstream-cert FILE    the certificate to show, PEM, with --upstream-key FILE
  --upstream-name NAME    the name that the server's certificate must have, instead of the host

All else is as for 'weft serve': port, users, TLS, limits, log. 'weft serve --help' lists it.

Examples:
  weft gateway --to redis://10.0.0.5:6379
  weft gateway --to rediss://gateway:secret@cache.internal:6380 --port 7000 --leases 200

docs/gateway.md says what goes through, and what is refused. SIGTERM stops it when what is under way is answered.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> anyhow::Result<(weft_gateway::Options, Vec<OsString>)> {
        take_own(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn its_own_flags_are_taken_out() {
        let (behind, rest) =
            read(&["a.conf", "--to", "redis://h:1", "--port", "7000", "--leases=9", "--threads", "1"])
                .unwrap();
        assert_eq!(behind.leases, 9);
        assert_eq!(rest, ["a.conf", "--port", "7000", "--threads", "1"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (words, why) in [
            (&["--port", "1"][..], "--to URL"),
            (&["--to"], "needs a value"),
            (&["--to", "redis://h", "--leases", "x"], "from 1 to"),
            (&["--to", "cluster://h,"], "commas"),
        ] {
            let error = read(words).unwrap_err().to_string();
            assert!(error.contains(why), "{words:?}: {error}");
        }
    }
}
