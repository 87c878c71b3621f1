//! Owns: which server is behind, and how much of it is used. Does not own: the front's own settings.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use weft_client::{Address, Config, Timeouts};

use crate::atlas::Atlas;
use crate::kept_bytes::KEPT_BYTES_MAX;
use crate::lanes::OWN_DATABASES_MAX;
use crate::link::WAITING_BYTES_MAX;

/// Connections that clients may have to themselves at once, if nothing else is said.
const LEASES: usize = 64;
/// The most that may be asked for.
const LEASES_MAX: usize = 10_000;
/// How long nothing may come of what is due.
const TIMEOUT_MS: u64 = 10_000;
/// The longest that may be asked for.
const TIMEOUT_MS_MAX: u64 = 3_600_000;
/// A connection on which nothing comes for so long is asked whether it is there, if that is less than the above.
const SILENT_MS: u64 = 10_000;

/// A replica that says nothing for so long, or for half of the time that a request has, is left: its primary is asked.
const REPLICA_TIMEOUT_MS: u64 = 1_000;

/// The longest file that a password is read from.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// The port of a Sentinel, if none is given.
const SENTINEL_PORT: u16 = 26_379;

/// What a gateway starts from.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server; behind Sentinel, all that is known of it but its address.
    pub to: Config,
    /// Who knows where it is, if it may move.
    pub sentinel: Option<Sentinel>,
    /// Nodes of a cluster, any of which tells of the others; none if it is no cluster.
    pub cluster: Vec<Address>,
    /// What is known of that cluster.
    pub(crate) atlas: Option<Arc<Atlas>>,
    /// `--leases`: connections that clients may have to themselves at once.
    pub leases: usize,
    /// `--upstream-timeout`: how long nothing may come of what is due, and how long a client may wait for a connection
    /// to itself.
    pub timeout_ms: u64,
    /// `--command-timeout`: how long a client waits for the answer of a command that does not block; 0 for as long as
    /// the server is heard of.
    pub command_timeout_ms: u64,
    /// `--replica-reads`: how old what a replica answers may be; 0: they are not read from.
    pub replica_ms: u64,
    /// Databases beside 0 that have shared connections of their own.
    pub(crate) own_databases_max: usize,
    /// Bytes of requests that may wait on one connection, and that a worker may keep.
    pub(crate) waiting_bytes_max: usize,
    pub(crate) kept_bytes_max: usize,
    /// Its connections only read, from a replica.
    pub(crate) reads_only: bool,
}

/// A password from a file.
fn read_password(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(PASSWORD_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    if text.len() as u64 > PASSWORD_BYTES_MAX {
        return Err(format!("{} has more than {PASSWORD_BYTES_MAX} bytes", path.display()));
    }
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    match password {
        "" => Err(format!("{} has no password", path.display())),
        password => Ok(password.into()),
    }
}

/// Sentinels, and the name under which they know the server.
#[derive(Clone, Debug)]
pub struct Sentinel {
    /// Asked in this order, from the one that answered last on, until one answers.
    pub addresses: Vec<Address>,
    /// Their name for the server.
    pub name: String,
    /// Which of them answered last: it is asked first.
    pub(crate) last: Arc<AtomicUsize>,
}

/// What is wrong with an option, in words for whoever gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionsError(String);

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OptionsError {}

impl Options {
    /// Options for a server by its URL.
    ///
    /// # Errors
    /// The URL names no server that can stand behind a gateway.
    pub fn to(url: &str) -> Result<Self, OptionsError> {
        let no = |text: String| Err(OptionsError(format!("--to: {text}")));
        let (mut to, cluster, sentinel) = match read(url) {
            Ok(read) => read,
            Err(why) => return no(why),
        };
        if to.protocol == weft_client::Protocol::Http {
            return no("a server is spoken to in RESP: redis://, rediss:// or unix://".into());
        }
        if to.db != 0 {
            return no("a database has no place in the URL: clients SELECT theirs".into());
        }
        to.name = Some("weft-gateway".into());
        Ok(Self {
            to,
            sentinel,
            cluster,
            atlas: None,
            leases: LEASES,
            timeout_ms: TIMEOUT_MS,
            command_timeout_ms: 0,
            replica_ms: 0,
            own_databases_max: OWN_DATABASES_MAX,
            waiting_bytes_max: WAITING_BYTES_MAX,
            kept_bytes_max: KEPT_BYTES_MAX,
            reads_only: false,
        })
    }

    /// The same for one node of a cluster alone; for one as a replica that is read from.
    pub(crate) fn at(&self, address: &Address, reads_only: bool) -> Self {
        let mut options = self.clone();
        options.to.address = address.clone();
        options.cluster.clear();
        options.reads_only = reads_only;
        if reads_only {
            // What it does not answer is still to be asked of the primary in time.
            options.timeout_ms = (self.patience_ms() / 2).clamp(1, REPLICA_TIMEOUT_MS);
            options.to.timeouts = Timeouts::all(Some(Duration::from_millis(options.timeout_ms)));
        }
        options
    }
    /// When a client that waits since `begun_ms` is told that it takes too long; 0 for never.
    pub(crate) const fn late_ms(&self, begun_ms: u64) -> u64 {
        if self.command_timeout_ms > 0 { begun_ms + self.command_timeout_ms } else { 0 }
    }
    /// A connection that many share is asked whether it is there when nothing has come for so long.
    pub(crate) fn silent_ms(&self) -> u64 {
        SILENT_MS.min(self.timeout_ms)
    }
    /// How long what proves to have done nothing is tried again.
    pub(crate) fn patience_ms(&self) -> u64 {
        if self.command_timeout_ms > 0 {
            self.timeout_ms.min(self.command_timeout_ms)
        } else {
            self.timeout_ms
        }
    }

    /// The server, as it is shown.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.sentinel {
            Some(sentinel) => format!("the master that Sentinel calls {}", sentinel.name),
            None if self.cluster.is_empty() => self.to.address.to_string(),
            None => {
                let nodes: Vec<String> = self.cluster.iter().map(ToString::to_string).collect();
                format!("the cluster of {}", nodes.join(", "))
            }
        }
    }

    /// One more option, by its name and text; `false` if there is none of that name.
    ///
    /// # Errors
    /// The text is no value of it.
    pub fn set(&mut self, name: &str, text: &str) -> Result<bool, OptionsError> {
        let number = |range: std::ops::RangeInclusive<u64>| {
            let number = text.parse().ok().filter(|number| range.contains(number));
            let why =
                || OptionsError(format!("--{name} is a number from {} to {}", range.start(), range.end()));
            number.ok_or_else(why)
        };
        match name {
            "leases" => self.leases = number(1..=LEASES_MAX as u64)? as usize,
            "command-timeout" => self.command_timeout_ms = number(0..=TIMEOUT_MS_MAX)?,
            "replica-reads" if self.cluster.is_empty() => {
                return Err(OptionsError("--replica-reads is about a cluster: --to cluster://host".into()));
            }
            "replica-reads" => self.replica_ms = number(0..=TIMEOUT_MS_MAX)?,
            "upstream-timeout" => self.timeout_ms = number(1..=TIMEOUT_MS_MAX)?,
            "to-password" | "to-password-file" if self.to.password.is_some() => {
                let text =
                    "the password of the server behind is given twice: in --to, by to-password, or by a file";
                return Err(OptionsError(text.into()));
            }
            "to-password" => self.to.password = Some(text.into()),
            "to-password-file" => {
                let password = read_password(Path::new(text));
                self.to.password = Some(password.map_err(|why| OptionsError(format!("--{name}: {why}")))?);
            }
            "upstream-ca" => self.tls(name)?.ca_file = Some(PathBuf::from(text)),
            "upstream-cert" => self.tls(name)?.cert_file = Some(PathBuf::from(text)),
            "upstream-key" => self.tls(name)?.key_file = Some(PathBuf::from(text)),
            "upstream-name" => self.tls(name)?.server_name = Some(text.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn tls(&mut self, name: &str) -> Result<&mut weft_client::TlsConfig, OptionsError> {
        let without = || {
            OptionsError(format!("--{name} is about TLS: --to rediss://host:port, cluster+tls://host:port"))
        };
        self.to.tls.as_mut().ok_or_else(without)
    }
}

/// A server; nodes of a cluster: `cluster://[user:password@]host[:port][,host[:port]…]`; Sentinels that know one:
/// `sentinel://[user:password@]host[:port][,host[:port]…]/name`. With `+tls` behind the scheme all of them under TLS.
fn read(url: &str) -> Result<(Config, Vec<Address>, Option<Sentinel>), String> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let (scheme, is_tls) = scheme.strip_suffix("+tls").map_or((scheme, false), |scheme| (scheme, true));
    if scheme == "cluster" {
        let hosts = rest.strip_suffix('/').unwrap_or(rest);
        let (to, addresses) = several(hosts, None, is_tls)?;
        return Ok((to, addresses, None));
    }
    if scheme != "sentinel" {
        return Ok((parse(url)?, Vec::new(), None));
    }
    let Some((hosts, name)) = rest.split_once('/').filter(|(_, name)| !name.is_empty()) else {
        return Err("behind the Sentinels stands the server's name: sentinel://host:26379/mymaster".into());
    };
    let (to, addresses) = several(hosts, Some(SENTINEL_PORT), is_tls)?;
    Ok((to, Vec::new(), Some(Sentinel { addresses, name: name.into(), last: Arc::default() })))
}

fn parse(url: &str) -> Result<Config, String> {
    Config::from_url(url).map_err(|error| error.to_string())
}

/// Several addresses of one user. `port`: theirs, if they name none and it is not that of a server.
fn several(hosts: &str, port: Option<u16>, is_tls: bool) -> Result<(Config, Vec<Address>), String> {
    let (user, hosts) = hosts.rsplit_once('@').map_or(("", hosts), |(user, hosts)| (user, hosts));
    let at = if user.is_empty() { "" } else { "@" };
    let mut addresses = Vec::new();
    for host in hosts.split(',') {
        if host.is_empty() || host.contains(['/', '?']) {
            return Err("hosts stand behind each other with commas: host:port,host:port".into());
        }
        let mut address = parse(&format!("redis://{host}"))?.address;
        if let Address::Tcp(_, own) = &mut address
            && let Some(port) = port
            && !host.ends_with(&format!(":{own}"))
        {
            *own = port;
        }
        addresses.push(address);
    }
    let scheme = if is_tls { "rediss" } else { "redis" };
    let to = parse(&format!("{scheme}://{user}{at}{}", hosts.split(',').next().unwrap_or_default()))?;
    Ok((to, addresses))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_behind_is_refused_by_name() {
        for (url, why) in [
            ("cluster://a,,b", "commas"),
            ("cluster://a/3", "commas"),
            ("redis+tls://a", "scheme"),
            ("sentinel://a", "sentinel://host:26379/mymaster"),
            ("sentinel://a,b:x/name", "port"),
            ("http://a", "RESP"),
            ("redis://a/3", "SELECT"),
            ("nonsense", "scheme"),
        ] {
            let error = Options::to(url).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
        assert!(Options::to("rediss://user:secret@host:7000").unwrap().to.tls.is_some());
    }

    #[test]
    fn several_may_be_named() {
        let options = Options::to("sentinel://ann:secret@a,b:7000/main").unwrap();
        assert_eq!(
            (options.to.username.as_deref(), options.to.password.as_deref()),
            (Some("ann"), Some("secret"))
        );
        let sentinel = options.sentinel.unwrap();
        let address = |host: &str, port| Address::Tcp(host.into(), port);
        assert_eq!(sentinel.addresses, [address("a", SENTINEL_PORT), address("b", 7000)]);
        assert_eq!(sentinel.name, "main");
        let options = Options::to("cluster://ann:secret@a,b:7000").unwrap();
        assert_eq!(options.cluster, [address("a", 6_379), address("b", 7000)]);
        assert_eq!(options.to.username.as_deref(), Some("ann"));
        assert!(options.to.tls.is_none());
        for url in ["cluster+tls://a,b:7000", "sentinel+tls://a/main"] {
            let mut options = Options::to(url).unwrap();
            assert!(options.to.tls.is_some());
            assert_eq!(options.set("upstream-name", "cache"), Ok(true));
        }
    }

    #[test]
    fn a_replica_leaves_time_for_its_primary() {
        let mut options = Options::to("cluster://host").unwrap();
        let address = Address::Tcp("host".into(), 1);
        let limit = |options: &Options, reads_only| options.at(&address, reads_only).timeout_ms;
        assert_eq!((limit(&options, false), limit(&options, true)), (TIMEOUT_MS, REPLICA_TIMEOUT_MS));
        options.set("upstream-timeout", "500").unwrap();
        assert_eq!((limit(&options, false), limit(&options, true)), (500, 250));
    }

    #[test]
    fn options_have_bounds() {
        let mut options = Options::to("redis://host").unwrap();
        assert_eq!(options.set("leases", "3"), Ok(true));
        assert_eq!(options.leases, 3);
        assert!(options.set("leases", "0").is_err() && options.set("leases", "10001").is_err());
        assert!(options.set("upstream-timeout", "0").is_err());
        assert_eq!((options.late_ms(7), options.patience_ms()), (0, TIMEOUT_MS));
        assert_eq!(options.set("command-timeout", "500"), Ok(true));
        assert_eq!((options.late_ms(7), options.patience_ms()), (507, 500));
        assert!(options.set("command-timeout", "3600001").is_err());
        assert!(options.set("upstream-ca", "file").unwrap_err().to_string().contains("rediss"));
        assert_eq!(options.set("port", "1"), Ok(false));
    }
}
