//! Owns how the command line becomes a configuration of the client. Does not own the flags.

use anyhow::Result;
use weft_client::{Config, Protocol};

use super::flags::Options;

/// Where to connect to, and how.
pub(super) fn config(options: &Options) -> Result<Config> {
    let mut config = options.endpoint.config()?;
    config.protocol = match options.wire.protocol() {
        Some(protocol) => protocol,
        None if options.endpoint.names_protocol() => config.protocol,
        None if options.json || options.quoted_json => Protocol::Resp3,
        None => Protocol::Resp2,
    };
    config.channel = options.mux.unwrap_or(0);
    config.db = options.db.unwrap_or(config.db);
    config.name = options.client_name.clone().or(config.name);
    Ok(config)
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
    #[command(version)]
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
        assert_eq!(parse("--http -h h").protocol, Protocol::Http);
        let config = parse("-u http://token@h:80 --no-auth-warning");
        assert_eq!((config.protocol, config.password.as_deref()), (Protocol::Http, Some("token")));
        assert_eq!(parse("-u http://h -3").protocol, Protocol::Resp3);
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
