//! Owns the reading of URLs. Does not own what a configuration is.

use std::time::Duration;

use crate::config::{Address, Config, PORT, Protocol, Timeouts, TlsConfig};
use crate::error::{Error, Result};

/// The longest URL: it comes from a command line or a setting.
const URL_BYTES_MAX: usize = 8192;

pub(crate) fn parse(url: &str) -> Result<Config> {
    if url.len() > URL_BYTES_MAX {
        return Err(Error::Url("longer than 8192 bytes"));
    }
    let (scheme, rest) = url.split_once("://").ok_or(Error::Url("no scheme, such as redis://"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let scheme = scheme.to_ascii_lowercase();
    let mut config = match scheme.as_str() {
        "redis" | "valkey" | "weft" | "rediss" | "valkeys" | "wefts" => tcp(rest)?,
        "http" | "https" => http(rest)?,
        "unix" | "redis+unix" | "valkey+unix" => unix(rest)?,
        _ => {
            return Err(Error::Url(
                "the scheme is none of redis, rediss, valkey, valkeys, weft, wefts, http, https, unix",
            ));
        }
    };
    if matches!(scheme.as_str(), "rediss" | "valkeys" | "wefts" | "https") {
        config.tls = Some(TlsConfig::default());
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        parameter(&mut config, key, &decode(value)?)?;
    }
    Ok(config)
}

fn tcp(rest: &str) -> Result<Config> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, authority),
    };
    let (host, port) = host_and_port(place)?;
    let mut config = Config::at(Address::Tcp(host, port));
    credentials(&mut config, user)?;
    if !path.is_empty() {
        config.db = path.parse().map_err(|_| Error::Url("the path is not the number of a database"))?;
    }
    Ok(config)
}

/// What stands alone before the `@` is a token.
fn http(rest: &str) -> Result<Config> {
    let mut config = tcp(rest.strip_suffix('/').unwrap_or(rest))?.with_protocol(Protocol::Http);
    if config.password.is_none() {
        config.password = config.username.take();
    }
    Ok(config)
}

fn unix(rest: &str) -> Result<Config> {
    // A path begins with a slash, so an @ behind one is part of the path.
    let (user, path) = match rest.split_once('/') {
        Some((user, _)) if user.ends_with('@') => (Some(&user[..user.len() - 1]), &rest[user.len()..]),
        _ => (None, rest),
    };
    if path.is_empty() {
        return Err(Error::Url("no path"));
    }
    let mut config = Config::unix(decode(path)?);
    credentials(&mut config, user)?;
    Ok(config)
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`, `:port`; an empty host is this machine.
fn host_and_port(place: &str) -> Result<(String, u16)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(Error::Url("no ] behind the address"))?;
            match rest {
                "" => (host, None),
                _ => (host, Some(rest.strip_prefix(':').ok_or(Error::Url("no : behind the ]"))?)),
            }
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        None | Some("") => PORT,
        Some(port) => port.parse().map_err(|_| Error::Url("the port is not a number up to 65535"))?,
    };
    let host = decode(host)?;
    Ok((if host.is_empty() { "127.0.0.1".to_string() } else { host }, port))
}

/// `user:password`, `:password`, and `user` alone, as URLs have it. redis-cli takes the last for a password; a
/// connection with a user and without a password is refused (`Config::check`), so that nothing goes on as somebody
/// else.
fn credentials(config: &mut Config, user: Option<&str>) -> Result<()> {
    let Some(user) = user.filter(|user| !user.is_empty()) else { return Ok(()) };
    let (name, password) =
        user.split_once(':').map_or((user, None), |(name, password)| (name, Some(password)));
    config.username = Some(decode(name)?).filter(|name| !name.is_empty());
    config.password = password.map(decode).transpose()?;
    Ok(())
}

fn parameter(config: &mut Config, key: &str, value: &str) -> Result<()> {
    match key {
        "db" => config.db = value.parse().map_err(|_| Error::Url("db is not a number"))?,
        "name" => config.name = Some(value.to_string()),
        "timeout_ms" => {
            let ms = value.parse().map_err(|_| Error::Url("timeout_ms is not a number"))?;
            config.timeouts = Timeouts::all((ms > 0).then(|| Duration::from_millis(ms)));
        }
        "protocol" => {
            config.protocol = match value.to_ascii_lowercase().as_str() {
                "2" | "resp2" => Protocol::Resp2,
                "3" | "resp3" => Protocol::Resp3,
                "4" | "respb" => Protocol::Respb,
                "http" => Protocol::Http,
                _ => return Err(Error::Url("protocol is none of 2, 3, respb, http")),
            };
        }
        _ => return Err(Error::Url("unknown parameter")),
    }
    Ok(())
}

fn decode(text: &str) -> Result<String> {
    const BAD: Error = Error::Url("a % without two hexadecimal digits");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or(BAD);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).map_err(|_| Error::Url("not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp_of(url: &str) -> (String, u16) {
        match parse(url).unwrap().address {
            Address::Tcp(host, port) => (host, port),
            Address::Unix(path) => panic!("{path:?}"),
        }
    }

    #[test]
    fn hosts_and_ports() {
        for (url, host, port) in [
            ("redis://", "127.0.0.1", 6379),
            ("redis://:7000", "127.0.0.1", 7000),
            ("REDIS://example.org", "example.org", 6379),
            ("valkey://example.org:1/3", "example.org", 1),
            ("weft://[::1]", "::1", 6379),
            ("redis://[::1]:65535/", "::1", 65535),
            ("redis://a@b@host:1", "host", 1),
        ] {
            assert_eq!(tcp_of(url), (host.to_string(), port), "{url}");
        }
    }

    #[test]
    fn credentials_and_parameters() {
        let config =
            parse("rediss://al%40ice:p%3Aw%2f@h:1/5?protocol=respb&name=x%20y&timeout_ms=250").unwrap();
        assert_eq!(config.username.as_deref(), Some("al@ice"));
        assert_eq!(config.password.as_deref(), Some("p:w/"));
        assert_eq!((config.db, config.protocol), (5, Protocol::Respb));
        assert_eq!(config.name.as_deref(), Some("x y"));
        assert_eq!(config.timeouts.reply, Some(Duration::from_millis(250)));
        assert!(config.tls.is_some());
        let config = parse("redis://:secret@h").unwrap();
        assert_eq!((config.username, config.password.as_deref()), (None, Some("secret")));
        let config = parse("http://a.b%2Fc@h:8080/").unwrap();
        assert_eq!(
            (config.protocol, config.username, config.password.as_deref()),
            (Protocol::Http, None, Some("a.b/c"))
        );
        let config = parse("https://u:p@h").unwrap();
        assert_eq!((config.username.as_deref(), config.password.as_deref()), (Some("u"), Some("p")));
        assert!(config.tls.is_some());
        assert!(parse("http://h/3").unwrap().check().is_err(), "a request has database 0");
        let config = parse("redis://alice@h").unwrap();
        assert_eq!((config.username.as_deref(), &config.password), (Some("alice"), &None));
        assert!(config.check().is_err(), "nothing goes on as somebody else");
        assert_eq!(parse("redis://h?timeout_ms=0").unwrap().timeouts.reply, None);
    }

    #[test]
    fn unix_sockets() {
        let config = parse("unix:///run/we%20ft.sock?db=2").unwrap();
        assert_eq!(config.address, Address::Unix("/run/we ft.sock".into()));
        assert_eq!(config.db, 2);
        let config = parse("unix://u:p@/run/a@b").unwrap();
        assert_eq!(config.address, Address::Unix("/run/a@b".into()));
        assert_eq!(config.username.as_deref(), Some("u"));
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for url in [
            "",
            "localhost:6379",
            "ftp://localhost",
            "redis://h:65536",
            "redis://h:x",
            "redis://h/db",
            "redis://[::1",
            "redis://[::1]x",
            "redis://%zz",
            "redis://%ff",
            "redis://h?what=1",
            "redis://h?protocol=5",
            "unix://",
        ] {
            assert!(matches!(parse(url), Err(Error::Url(_))), "{url}");
        }
        assert!(parse(&format!("redis://{}", "h".repeat(URL_BYTES_MAX))).is_err());
    }
}
