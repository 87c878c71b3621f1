//! Owns what is to be known before a connection is made, with its defaults. Does not own the making of it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use weft_protocol::Limits;

use crate::error::{Error, Result};
use crate::url;

/// The port that servers have when none is given.
pub const PORT: u16 = 6379;

/// Bit 0 of the capabilities that HELLO announces: slices of large replies are put together (section 7.4).
pub const CAPABILITY_FRAGMENT: u32 = 1;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host, by name or number, and port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// RESP2, which every server speaks.
    Resp2,
    /// RESP3: maps, doubles, pushes.
    Resp3,
    /// RESPB/1: binary, with channels.
    Respb,
    /// HTTP/1.1 as Upstash's REST API has it: each request for itself, replies as RESP2 has them.
    Http,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Resp2 => "RESP2",
            Protocol::Resp3 => "RESP3",
            Protocol::Respb => "RESPB",
            Protocol::Http => "HTTP",
        })
    }
}

/// The longest waits. `None` waits for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For each address of the name, until the connection stands.
    pub connect: Option<Duration>,
    /// While the server takes nothing of what is sent.
    pub write: Option<Duration>,
    /// While nothing comes of a reply that is due. A blocking command's own time is added.
    pub reply: Option<Duration>,
}

impl Timeouts {
    /// The same time for each.
    pub const fn all(limit: Option<Duration>) -> Self {
        Timeouts { connect: limit, write: limit, reply: limit }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = |n| Some(Duration::from_secs(n));
        Timeouts { connect: seconds(5), write: seconds(30), reply: seconds(30) }
    }
}

/// How often, and with which pauses, a lost connection is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// Attempts for each loss; 0 leaves it lost.
    pub attempts_max: u32,
    /// The pause after the first attempt; it doubles with each. Half of each pause is random, so that many clients do
    /// not come back at once.
    pub pause_first: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        ReconnectPolicy {
            attempts_max: 5,
            pause_first: Duration::from_millis(50),
            pause_max: Duration::from_secs(2),
        }
    }
}

/// How TLS is done. The default trusts what the system trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// Certificates to trust instead of the system's, PEM.
    pub ca_file: Option<PathBuf>,
    /// A folder whose files, PEM all of them, are trusted instead of the system's; with `ca_file` both.
    pub ca_dir: Option<PathBuf>,
    /// The client's certificate and its chain, PEM; with `key_file`.
    pub cert_file: Option<PathBuf>,
    /// The key of `cert_file`, PEM.
    pub key_file: Option<PathBuf>,
    /// The name that the server's certificate must have, instead of the host.
    pub server_name: Option<String>,
    /// Accept any certificate. Whoever can redirect the connection can then read and change it.
    pub insecure: bool,
}

/// Everything about a connection that is to be made. What `Debug` shows has no password.
#[derive(Clone)]
pub struct Config {
    /// Where to.
    pub address: Address,
    /// TLS; needs the feature `tls`.
    pub tls: Option<TlsConfig>,
    /// Which protocol.
    pub protocol: Protocol,
    /// The user; without it `password` is the default user's.
    pub username: Option<String>,
    /// The password; without it nobody is authenticated.
    pub password: Option<String>,
    /// RESPB: the channel that a [`Connection`](crate::Connection) uses. Another than 0 has the user of channel 0.
    pub channel: u16,
    /// The database that is selected.
    pub db: u32,
    /// What CLIENT LIST shows.
    pub name: Option<String>,
    /// The longest waits.
    pub timeouts: Timeouts,
    /// What [`Reconnecting`](crate::Reconnecting) does about a loss.
    pub reconnect: ReconnectPolicy,
    /// RESPB: the capabilities that are announced. Without [`CAPABILITY_FRAGMENT`] a large reply holds up all channels.
    pub capabilities: u32,
    /// RESPB: the credit of each channel of a [`Mux`](crate::Mux) in bytes, which bounds what waits here for a channel
    /// that nobody reads. `None` gives none: the server's output limit alone bounds it.
    pub window_bytes: Option<u32>,
    /// What is refused of a server.
    pub limits: Limits,
    /// The most pushes that wait to be taken; one more ends the connection, or the channel.
    pub pushes_max: usize,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("address", &self.address)
            .field("tls", &self.tls)
            .field("protocol", &self.protocol)
            .field("username", &self.username)
            .field("channel", &self.channel)
            .field("db", &self.db)
            .field("name", &self.name)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// A server by host and port, over RESP3, without a password.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Config::at(Address::Tcp(host.into(), port))
    }

    /// A server by its Unix socket.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Config::at(Address::Unix(path.into()))
    }

    /// A server by its address.
    pub fn at(address: Address) -> Self {
        Config {
            address,
            tls: None,
            protocol: Protocol::Resp3,
            username: None,
            password: None,
            channel: 0,
            db: 0,
            name: None,
            timeouts: Timeouts::default(),
            reconnect: ReconnectPolicy::default(),
            capabilities: CAPABILITY_FRAGMENT,
            window_bytes: None,
            limits: Limits::OF_REPLIES,
            pushes_max: 65_536,
        }
    }

    /// `redis://[user[:password]@]host[:port][/db]`, `rediss://…` for TLS, `unix://[user[:password]@]/path[?db=n]`;
    /// `valkey`, `valkeys` and `weft`, `wefts` are other names of the first two. Parameters behind `?`: `db`,
    /// `protocol` (`2`, `3`, `respb`, `http`), `name`, `timeout_ms`. Text is percent-decoded.
    /// `http://[token@|user:password@]host[:port]` and `https://…` are HTTP.
    pub fn from_url(url: &str) -> Result<Self> {
        url::parse(url)
    }

    /// The same with another protocol.
    pub fn with_protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// The same with a user, or the default user, and a password.
    pub fn with_auth(mut self, username: Option<&str>, password: impl Into<String>) -> Self {
        self.username = username.map(str::to_string);
        self.password = Some(password.into());
        self
    }

    /// The same with another database.
    pub fn with_db(mut self, db: u32) -> Self {
        self.db = db;
        self
    }

    /// The same with a name.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same with other waits.
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Whether something that stands in the head of a request would end its line.
    fn has_line_end(&self) -> bool {
        let host = match &self.address {
            Address::Tcp(host, _) => Some(host),
            Address::Unix(_) => None,
        };
        let mut all = [host, self.username.as_ref(), self.password.as_ref()].into_iter().flatten();
        all.any(|text| text.bytes().any(|byte| byte.is_ascii_control()))
    }

    /// Whether the settings go together.
    pub(crate) fn check(&self) -> Result<()> {
        if self.username.is_some() && self.password.is_none() {
            return Err(Error::Config(
                "a user needs a password; the default user's alone stands behind a colon, redis://:password@host"
                    .into(),
            ));
        }
        if self.channel != 0 && self.protocol != Protocol::Respb {
            return Err(Error::Config("channels are RESPB's".into()));
        }
        if self.protocol == Protocol::Http && (self.db != 0 || self.name.is_some()) {
            return Err(Error::Config(
                "over HTTP each request is for itself: it has database 0 and no name; leave them out".into(),
            ));
        }
        if self.protocol == Protocol::Http && self.has_line_end() {
            return Err(Error::Config("a token, user or host of HTTP has no line ends".into()));
        }
        if self.tls.is_some() && cfg!(not(feature = "tls")) {
            return Err(Error::Config(
                "TLS is asked for, and this build is without it (feature `tls`)".into(),
            ));
        }
        if self.tls.is_some() && matches!(self.address, Address::Unix(_)) {
            return Err(Error::Config("TLS over a Unix socket is not offered".into()));
        }
        Ok(())
    }
}

impl Default for Config {
    /// The server of this machine at the usual port.
    fn default() -> Self {
        Config::new("127.0.0.1", PORT)
    }
}
