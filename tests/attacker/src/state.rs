//! Owns: what the server has in use when only the honest are there, as its administrator and /proc tell it. Does not
//! own: who was there before.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use weft_client::{Config, Connection, Reply, Timeouts};

use crate::hostile::is_busy;
use crate::server::{LOOK, PASSWORD, Server};
use crate::{honest, hostile, watch};

/// How long memory and descriptors may take to come back.
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// How long the administrator waits for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(120);
/// Memory must come back to within so many hundredths.
const MEMORY_HUNDREDTHS: u64 = 110;
/// Slow commands that are told of, and characters of each.
const SLOW_MAX: &str = "10";
const SLOW_SHOWN: usize = 200;
/// Databases in which hostile clients can have keys, and keys of one SCAN.
const DATABASES: u32 = 16;
const SCAN_COUNT: &str = "1000";

/// What is in use.
pub(crate) struct State {
    descriptors: usize,
    resident_bytes: u64,
    /// What it may have more than before.
    kept_bytes: u64,
    settled_after: Duration,
    /// `INFO memory`, in which to look for what has grown.
    info: String,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { descriptors, resident_bytes, kept_bytes: _, settled_after, info: _ } = self;
        write!(f, "{descriptors} descriptors, {} KiB resident", resident_bytes >> 10)?;
        write!(f, ", {} ms after the attack", settled_after.as_millis())
    }
}

impl State {
    /// Waits until hostile clients are gone, what they have stored is thrown away, and, if there was a state before
    /// them, all is as it was, as far as that comes.
    pub(crate) fn settled(admin: &mut Connection, server: &Server, before: Option<&Self>) -> Result<Self> {
        let _step = watch::step("the administrator throws away what hostile clients have stored".into());
        let began = Instant::now();
        throw_away(admin)?;
        loop {
            let list: String = admin.query(&["CLIENT", "LIST"])?;
            let left: Vec<&str> = list.lines().filter(|line| is_hostile(line)).collect();
            // Those behind a gateway come and go as clients need them.
            let descriptors = server.descriptors()?.saturating_sub(connections_behind(admin)?);
            let settled_after = began.elapsed();
            let resident_bytes = server.resident_bytes()?;
            let info = admin.query(&["INFO", "memory"])?;
            let kept_bytes = server.kept_bytes();
            let state = Self { descriptors, resident_bytes, kept_bytes, settled_after, info };
            let are_gone = left.is_empty() && before.is_none_or(|before| descriptors <= before.descriptors);
            if are_gone && before.is_none_or(|before| state.is_as(before)) {
                return Ok(state);
            }
            if settled_after > SETTLE_MAX {
                if !are_gone {
                    bail!("{descriptors} descriptors are open, and these clients: {left:#?}");
                }
                return Ok(state);
            }
            // Nothing tells when a server has let go of something.
            std::thread::sleep(LOOK);
        }
    }

    /// The numbers of `INFO memory`.
    fn fields(&self) -> HashMap<String, f64> {
        let numbers = self.info.lines().filter_map(|line| line.split_once(':'));
        numbers.filter_map(|(name, value)| Some((name.into(), value.trim().parse().ok()?))).collect()
    }

    /// What the server itself says to be more than before.
    pub(crate) fn grown_since(&self, before: &Self) -> String {
        let (then, now) = (before.fields(), self.fields());
        let grown = now.iter().filter(|&(name, value)| then.get(name).is_none_or(|before| value > before));
        let text = |(name, value): (&String, &f64)| format!("{name} {:?} -> {value}", then.get(name));
        grown.map(text).collect::<Vec<_>>().join(", ")
    }

    /// Whether memory is what it was.
    pub(crate) fn is_as(&self, before: &Self) -> bool {
        self.resident_bytes <= before.resident_bytes * MEMORY_HUNDREDTHS / 100 + self.kept_bytes
    }
}

/// How many connections a gateway has to the server behind it, beside the one for subscriptions.
fn connections_behind(admin: &mut Connection) -> Result<usize> {
    let info: String = admin.query(&["INFO", "gateway"])?;
    let nodes = info.lines().filter(|line| line.starts_with("gateway_node0:"));
    let fields = nodes.flat_map(|line| line.split([',', ':'])).filter_map(|field| field.split_once('='));
    let counts = fields.filter(|(name, _)| ["connections", "leases"].contains(name));
    Ok(counts.filter_map(|(_, count)| count.trim().parse::<usize>().ok()).sum())
}

fn is_hostile(line: &str) -> bool {
    let honest = format!(" user={} ", honest::USER.0);
    !line.contains(&honest) && !line.contains(" name=administrator ")
}

/// An administrator.
pub(crate) fn connected(server: &Server) -> Result<Connection> {
    let config = Config::new("127.0.0.1", server.port)
        .with_auth(None, PASSWORD)
        .with_name("administrator")
        .with_timeouts(Timeouts::all(Some(ANSWER_MAX)));
    Ok(Connection::connect(&config)?)
}

/// The administrator, who makes the users.
pub(crate) fn administrator(server: &Server) -> Result<Connection> {
    let mut admin = connected(server)?;
    // A server with a log begins by loading it, though it may be empty.
    loop {
        match admin.exchange(&["DBSIZE"])? {
            Reply::Error(text) if text.starts_with(b"LOADING ") => std::thread::sleep(LOOK),
            Reply::Error(text) => bail!("DBSIZE is answered {}", text.escape_ascii()),
            _ => break,
        }
    }
    let password = |user: (&str, &str)| format!(">{}", user.1);
    let (honest, hostile) = (password(honest::USER), password(hostile::USER));
    admin.command(&["ACL", "SETUSER", honest::USER.0, "on", &honest, "~h:*", "&h:*", "+@all"])?;
    // LCS takes the product of two lengths, and its rules would allow it.
    let rules = ["~a:*", "&a:*", "+@all", "-@admin", "-@dangerous", "-lcs"];
    let words = ["ACL", "SETUSER", hostile::USER.0, "on", &hostile];
    admin.command(&words.into_iter().chain(rules).collect::<Vec<_>>())?;
    Ok(admin)
}

/// What has held a thread of the server for long, as it tells it itself.
pub(crate) fn slow_commands(admin: &mut Connection) -> Result<String> {
    let Reply::Array(entries) = admin.command(&["SLOWLOG", "GET", SLOW_MAX])? else {
        return Ok(String::new());
    };
    let text = |entry: &Reply| match entry {
        Reply::Array(parts) => match &parts[..] {
            [_, _, Reply::Int(us), Reply::Array(words), ..] => {
                let words = words.iter().map(|word| match word {
                    Reply::Bulk(bytes) => bytes.escape_ascii().to_string(),
                    other => format!("{other:?}"),
                });
                let words: String = words.collect::<Vec<_>>().join(" ").chars().take(SLOW_SHOWN).collect();
                format!("{} ms {words}", us / 1000)
            }
            _ => format!("{parts:?}"),
        },
        other => format!("{other:?}"),
    };
    Ok(entries.iter().map(text).collect::<Vec<_>>().join("; "))
}

/// Throws away what hostile clients have stored in any database, and their scripts, functions and programs.
fn throw_away(admin: &mut Connection) -> Result<()> {
    // A script of theirs may have its last moments.
    while is_busy(&admin.exchange(&["PING"])?) {
        std::thread::sleep(LOOK);
    }
    forget_all(admin, "TRIGGER")?;
    forget_all(admin, "PROGRAM")?;
    admin.command(&["SCRIPT", "FLUSH"])?;
    admin.command(&["FUNCTION", "FLUSH"])?;
    for db in 0..DATABASES {
        admin.command(&["SELECT", &db.to_string()])?;
        let mut cursor = "0".to_string();
        loop {
            let reply = admin.command(&["SCAN", &cursor, "MATCH", "a:*", "COUNT", SCAN_COUNT])?;
            let Reply::Array(parts) = reply else { bail!("SCAN gives {reply:?}") };
            let [Reply::Bulk(next), Reply::Array(keys)] = &parts[..] else { bail!("SCAN gives {parts:?}") };
            for key in keys {
                let Reply::Bulk(key) = key else { bail!("a key is {key:?}") };
                admin.command(&[&b"UNLINK"[..], key])?;
            }
            cursor = String::from_utf8(next.clone())?;
            if cursor == "0" {
                break;
            }
        }
    }
    admin.command(&["SELECT", "0"])?;
    Ok(())
}

/// Removes all that a container of commands lists.
fn forget_all(admin: &mut Connection, container: &str) -> Result<()> {
    let Reply::Array(all) = admin.command(&[container, "LIST"])? else {
        bail!("{container} LIST gives no array")
    };
    for entry in all {
        let name = match entry {
            Reply::Array(pairs) => pairs.into_iter().nth(1),
            Reply::Map(pairs) => pairs.into_iter().next().map(|(_, name)| name),
            _ => None,
        };
        let Some(Reply::Bulk(name)) = name else { bail!("{container} LIST gives an entry without a name") };
        admin.command(&[container.as_bytes(), b"DEL", &name])?;
    }
    Ok(())
}
