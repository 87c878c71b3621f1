//! Owns the first commands of a connection, and what the server says of itself in reply. Does not own the connection.

use weft_protocol::Reply;

use crate::config::{Config, Protocol};
use crate::error::{Error, Result, ServerError};

/// What a server said of itself in its reply to HELLO; over RESP2 HELLO is not sent, and everything is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// `redis`, `valkey`, `weft`.
    pub server: String,
    /// The server's version.
    pub version: String,
    /// `standalone`, `cluster`, `sentinel`.
    pub mode: String,
    /// `master`, `replica`.
    pub role: String,
    /// The client's id.
    pub id: i64,
    /// What RESPB adds.
    pub respb: Option<RespbInfo>,
}

/// The entry `respb` of HELLO's reply (section 7.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RespbInfo {
    /// Version of the protocol.
    pub version: i64,
    /// What the server speaks (section 1.4).
    pub profiles: Vec<String>,
    /// Its command table.
    pub table: TableInfo,
    /// What both sides can.
    pub capabilities: u32,
    /// The limits in force, by the names of section 10.
    pub limits: Vec<(String, i64)>,
}

/// Which command table a server has (section 13.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: i64,
    /// Its hash.
    pub hash: String,
}

impl RespbInfo {
    /// Whether the server speaks a profile.
    pub fn has(&self, profile: &str) -> bool {
        self.profiles.iter().any(|name| name == profile)
    }
    /// A limit by its name.
    pub fn limit(&self, name: &str) -> Option<i64> {
        self.limits.iter().find(|(limit, _)| limit == name).map(|(_, value)| *value)
    }
}

/// What HELLO and AUTH are called in an error.
const HELLO: &str = "HELLO 3";
const AUTH: &str = "AUTH";

/// A command of the handshake, and what to call it in an error: without a password that it holds.
pub(crate) type Step = (String, Vec<String>);

/// HELLO, where the protocol has it.
pub(crate) fn hello(config: &Config) -> Option<Step> {
    let mut args: Vec<String> = ["HELLO", "3"].map(String::from).to_vec();
    match config.protocol {
        Protocol::Resp2 | Protocol::Http => return None,
        Protocol::Resp3 => {}
        Protocol::Respb => args.extend(["PROTO", "respb"].map(String::from)),
    }
    if let Some(password) = &config.password {
        let user = config.username.clone().unwrap_or_else(|| "default".into());
        args.extend(["AUTH".into(), user, password.clone()]);
    }
    if let Some(name) = &config.name {
        args.extend(["SETNAME".into(), name.clone()]);
    }
    if config.protocol == Protocol::Respb && config.capabilities != 0 {
        args.extend(["CAPS".into(), config.capabilities.to_string()]);
    }
    Some((HELLO.into(), args))
}

/// What HELLO has not done.
pub(crate) fn after_hello(config: &Config) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    if config.protocol == Protocol::Resp2 {
        if let Some(password) = &config.password {
            let mut args = vec!["AUTH".to_string()];
            args.extend(config.username.clone());
            args.push(password.clone());
            steps.push((AUTH.into(), args));
        }
        if let Some(name) = &config.name {
            steps.push(set_name(name));
        }
    }
    steps.extend(select(config));
    steps
}

/// What a channel other than 0 needs to be like the connection: its user it has from there.
pub(crate) fn for_channel(config: &Config) -> Vec<Step> {
    let mut steps: Vec<Step> = config.name.iter().map(|name| set_name(name)).collect();
    steps.extend(select(config));
    steps
}

fn select(config: &Config) -> Option<Step> {
    (config.db != 0).then(|| (format!("SELECT {}", config.db), vec!["SELECT".into(), config.db.to_string()]))
}

fn set_name(name: &str) -> Step {
    ("CLIENT SETNAME".into(), vec!["CLIENT".into(), "SETNAME".into(), name.into()])
}

/// Reads HELLO's reply.
pub(crate) fn info(config: &Config, reply: Reply) -> Result<ServerInfo> {
    if let Reply::Error(text) = &reply {
        let error = ServerError::new(text);
        return Err(if lacks_protocol(&error) {
            Error::NoProtocol { protocol: config.protocol, error }
        } else {
            // HELLO has logged in too, where there was something to log in with.
            let step = if error.code() == "WRONGPASS" { AUTH } else { HELLO };
            Error::Handshake { step: step.into(), error }
        });
    }
    let Reply::Map(entries) = &reply else {
        return Err(Error::Unexpected("the reply to HELLO is no map"));
    };
    let info = ServerInfo {
        server: string(get(entries, "server")),
        version: string(get(entries, "version")),
        mode: string(get(entries, "mode")),
        role: string(get(entries, "role")),
        id: int(get(entries, "id")),
        respb: match get(entries, "respb") {
            Some(Reply::Map(entries)) => Some(respb_info(entries)),
            _ => None,
        },
    };
    if config.protocol == Protocol::Respb && info.respb.is_none() {
        // A server that passes over options that it does not know.
        let error = ServerError::new(b"a reply to HELLO without the entry respb");
        return Err(Error::NoProtocol { protocol: Protocol::Respb, error });
    }
    Ok(info)
}

/// Whether the answer to HELLO says that the version, the option or HELLO itself is unknown.
fn lacks_protocol(error: &ServerError) -> bool {
    let text = error.text().to_ascii_lowercase();
    error.code() == "NOPROTO"
        || text.contains("unknown command")
        || text.contains("syntax error")
        || text.contains("wrong number of arguments")
}

fn respb_info(entries: &[(Reply, Reply)]) -> RespbInfo {
    let limits = match get(entries, "limits") {
        Some(Reply::Map(limits)) => {
            limits.iter().map(|(name, value)| (string(Some(name)), int(Some(value)))).collect()
        }
        _ => Vec::new(),
    };
    let profiles = match get(entries, "profiles") {
        Some(Reply::Array(names)) => names.iter().map(|name| string(Some(name))).collect(),
        _ => Vec::new(),
    };
    let table = match get(entries, "table") {
        Some(Reply::Map(about)) => TableInfo {
            name: string(get(about, "name")),
            version: int(get(about, "version")),
            hash: string(get(about, "hash")),
        },
        _ => TableInfo::default(),
    };
    RespbInfo {
        version: int(get(entries, "version")),
        profiles,
        table,
        capabilities: u32::try_from(int(get(entries, "capabilities"))).unwrap_or(0),
        limits,
    }
}

fn get<'a>(entries: &'a [(Reply, Reply)], name: &str) -> Option<&'a Reply> {
    let named =
        |key: &Reply| matches!(key, Reply::Bulk(text) | Reply::Simple(text) if text == name.as_bytes());
    entries.iter().find(|(key, _)| named(key)).map(|(_, value)| value)
}

fn string(reply: Option<&Reply>) -> String {
    match reply {
        Some(Reply::Bulk(text) | Reply::Simple(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}

fn int(reply: Option<&Reply>) -> i64 {
    match reply {
        Some(Reply::Int(value)) => *value,
        _ => 0,
    }
}
