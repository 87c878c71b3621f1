//! Owns: the filters of CLIENT LIST and CLIENT KILL: reading them and asking whether a client matches. Does not own:
//! what happens to those that do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::line::LETTERS;
use crate::acl::User;
use crate::args::Args;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::session::{ClientInfo, client_capa, client_flag};

/// What a client is for, as TYPE names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    /// There are none: a server without replication.
    Replica,
    Primary,
    Pubsub,
}

/// One condition that a client can meet.
#[derive(Clone, Debug)]
enum Condition {
    Ids(BTreeSet<u64>),
    Kind(Kind),
    Address(Box<[u8]>),
    LocalAddress(Box<[u8]>),
    User(Arc<User>),
    /// All of these letters; `N` for none at all.
    Flags(u32, bool),
    /// A letter that no client of this server has.
    Never,
    Name(Box<[u8]>),
    LibName(Box<[u8]>),
    LibVer(Box<[u8]>),
    Db(u8),
    Capa(u8),
    Ip(Box<[u8]>),
}

/// All conditions of one command: a client must meet each of `wanted` and none of `unwanted`. Of one kind the last one
/// counts, but for IDs, which are added up.
#[derive(Debug, Default)]
pub(super) struct Filter {
    wanted: Vec<Condition>,
    unwanted: Vec<Condition>,
    max_age_s: Option<u64>,
    idle_s: Option<u64>,
    /// Whether the client that asks is left out.
    skip_me: bool,
}

/// The letters that Valkey has and no client of this server: replicas, primaries, slot migrations, closing.
const FOREIGN_LETTERS: &[u8] = b"SMuAiE";

impl Filter {
    /// The old form of CLIENT KILL.
    pub(super) fn address(address: &[u8]) -> Self {
        Self { wanted: vec![Condition::Address(address.into())], ..Self::default() }
    }
    /// The new form of CLIENT KILL: it spares the client itself unless it says otherwise.
    pub(super) fn of_kill(engine: &Engine, args: &Args<'_>) -> Result<Self> {
        Self { skip_me: true, ..Self::default() }.with(engine, args)
    }
    /// The filters of CLIENT LIST.
    pub(super) fn parse(engine: &Engine, args: &Args<'_>) -> Result<Self> {
        Self::default().with(engine, args)
    }

    /// The same with what the arguments from the third on say.
    fn with(mut self, engine: &Engine, args: &Args<'_>) -> Result<Self> {
        let mut at = 2;
        while at < args.len() {
            at = self.option(engine, args, at)?;
        }
        Ok(self)
    }

    /// Reads one filter; returns where the next begins.
    fn option(&mut self, engine: &Engine, args: &Args<'_>, at: usize) -> Result<usize> {
        let word = args.bytes(at).to_ascii_uppercase();
        let (word, negated) = match word.strip_prefix(b"NOT-") {
            Some(word) => (word, true),
            None => (&word[..], false),
        };
        if word == b"ID" {
            return self.ids(args, at + 1, negated);
        }
        if at + 1 >= args.len() {
            return Err(ErrorCode::Syntax.into());
        }
        let value = args.bytes(at + 1);
        let text = || String::from_utf8_lossy(value);
        let condition = match word {
            b"TYPE" => Condition::Kind(kind(value)?),
            b"ADDR" => Condition::Address(value.into()),
            b"LADDR" => Condition::LocalAddress(value.into()),
            b"USER" => {
                let user = engine.acl.user(value);
                Condition::User(user.ok_or_else(|| Error::err(format!("No such user '{}'", text())))?)
            }
            b"FLAGS" => flags(value, negated)?,
            b"NAME" => Condition::Name(value.into()),
            b"LIB-NAME" => Condition::LibName(value.into()),
            b"LIB-VER" => Condition::LibVer(value.into()),
            b"DB" => Condition::Db(db(engine, args, at + 1, negated)?),
            b"CAPA" => capa(value, negated)?,
            b"IP" => Condition::Ip(value.into()),
            b"MAXAGE" if !negated => {
                self.max_age_s = Some(positive(args, at + 1, "maxage")?);
                return Ok(at + 2);
            }
            b"IDLE" if !negated => {
                self.idle_s = Some(positive(args, at + 1, "idle")?);
                return Ok(at + 2);
            }
            b"SKIPME" if !negated => {
                self.skip_me = match (args.is(at + 1, "YES"), args.is(at + 1, "NO")) {
                    (true, _) => true,
                    (_, true) => false,
                    _ => return Err(ErrorCode::Syntax.into()),
                };
                return Ok(at + 2);
            }
            _ => return Err(ErrorCode::Syntax.into()),
        };
        self.put(condition, negated);
        Ok(at + 2)
    }

    fn put(&mut self, condition: Condition, negated: bool) {
        let list = if negated { &mut self.unwanted } else { &mut self.wanted };
        let kind = std::mem::discriminant(&condition);
        list.retain(|other| std::mem::discriminant(other) != kind);
        list.push(condition);
    }

    fn ids(&mut self, args: &Args<'_>, from: usize, negated: bool) -> Result<usize> {
        let list = if negated { &mut self.unwanted } else { &mut self.wanted };
        let known = list.iter().position(|other| matches!(other, Condition::Ids(_)));
        let mut ids = match known.map(|at| list.swap_remove(at)) {
            Some(Condition::Ids(ids)) => ids,
            _ => BTreeSet::new(),
        };
        let mut at = from;
        while at < args.len()
            && let Ok(id) = args.int(at)
        {
            let id = u64::try_from(id).ok().filter(|id| *id > 0);
            ids.insert(id.ok_or_else(|| Error::err("client-id should be greater than 0"))?);
            at += 1;
        }
        list.push(Condition::Ids(ids));
        Ok(at)
    }

    /// Whether a client is meant. `own`: the id of the one that asks.
    pub(super) fn matches(&self, info: &ClientInfo, own: u64, now_ms: u64) -> bool {
        let seconds = |since_ms: u64| now_ms.saturating_sub(since_ms) / 1000;
        !(self.skip_me && info.id == own)
            && self.max_age_s.is_none_or(|age| seconds(info.created_ms) >= age)
            && self.idle_s.is_none_or(|idle| seconds(info.active_ms.load(Relaxed)) >= idle)
            && self.wanted.iter().all(|condition| condition.is_met(info))
            && !self.unwanted.iter().any(|condition| condition.is_met(info))
    }
}

impl Condition {
    fn is_met(&self, info: &ClientInfo) -> bool {
        let label = |wanted: &[u8], pick: fn(&crate::session::Labels) -> &[u8]| {
            let labels = info.labels.lock();
            labels.as_ref().is_some_and(|labels| !pick(labels).is_empty() && pick(labels) == wanted)
        };
        match self {
            Self::Ids(ids) => ids.contains(&info.id),
            Self::Kind(kind) => kind_of(info) == *kind,
            Self::Address(address) => info.connection.peer.as_bytes() == &**address,
            Self::LocalAddress(address) => info.connection.local.as_bytes() == &**address,
            Self::User(user) => info.user.lock().name == user.name,
            Self::Flags(flags, none) => {
                let shown = info.shown_flags();
                shown & flags == *flags && !(*none && LETTERS.iter().any(|(_, flag)| shown & flag != 0))
            }
            Self::Never => false,
            Self::Name(name) => label(name, |labels| &labels.name),
            Self::LibName(name) => label(name, |labels| &labels.lib_name),
            Self::LibVer(version) => label(version, |labels| &labels.lib_ver),
            Self::Db(db) => info.db.load(Relaxed) == *db,
            Self::Capa(capa) => info.capa.load(Relaxed) & capa == *capa,
            Self::Ip(ip) => has_ip(info.connection.peer.as_bytes(), ip),
        }
    }
}

fn kind_of(info: &ClientInfo) -> Kind {
    if info.has(client_flag::PUBSUB) { Kind::Pubsub } else { Kind::Normal }
}

/// Whether a peer, `ip:port` or `[ip]:port`, has this address; the path of a Unix socket, whose port is 0, has none.
fn has_ip(peer: &[u8], ip: &[u8]) -> bool {
    let rest = peer.strip_prefix(b"[").unwrap_or(peer).strip_prefix(ip);
    let rest = rest.map(|rest| rest.strip_prefix(b"]").unwrap_or(rest));
    rest.and_then(|rest| rest.strip_prefix(b":")).is_some_and(|port| !port.starts_with(b"0"))
}

fn kind(value: &[u8]) -> Result<Kind> {
    Ok(match &value.to_ascii_lowercase()[..] {
        b"normal" => Kind::Normal,
        b"replica" | b"slave" => Kind::Replica,
        b"master" | b"primary" => Kind::Primary,
        b"pubsub" => Kind::Pubsub,
        _ => {
            let shown = String::from_utf8_lossy(value);
            return Err(Error::err(format!("Unknown client type '{shown}'")));
        }
    })
}

fn flags(letters: &[u8], negated: bool) -> Result<Condition> {
    let (mut flags, mut none, mut never) = (0, false, false);
    for letter in letters {
        match LETTERS.iter().find(|(other, _)| other == letter) {
            Some((_, flag)) => flags |= flag,
            None if *letter == b'N' => none = true,
            None if FOREIGN_LETTERS.contains(letter) => never = true,
            None => return Err(unknown("flags", "FLAGS", letters, negated)),
        }
    }
    Ok(if never { Condition::Never } else { Condition::Flags(flags, none) })
}

fn capa(letters: &[u8], negated: bool) -> Result<Condition> {
    if letters.iter().any(|letter| *letter != b'r') {
        return Err(unknown("capa", "CAPA", letters, negated));
    }
    Ok(Condition::Capa(if letters.is_empty() { 0 } else { client_capa::REDIRECT }))
}

fn unknown(what: &str, filter: &str, letters: &[u8], negated: bool) -> Error {
    let shown = String::from_utf8_lossy(letters);
    Error::err(match negated {
        false => format!("Unknown {what} found in the provided filter: {shown}"),
        true => format!("Unknown {what} found in the NOT-{filter} filter: {shown}"),
    })
}

fn db(engine: &Engine, args: &Args<'_>, at: usize, negated: bool) -> Result<u8> {
    let what = if negated { "NOT-DB" } else { "DB" };
    let count = engine.keyspace.database_count();
    let number = args.int(at).ok().filter(|db| i32::try_from(*db).is_ok());
    let number = number.ok_or_else(|| Error::err(format!("{what} is not an integer or out of range")))?;
    u8::try_from(number)
        .ok()
        .filter(|db| usize::from(*db) < count)
        .ok_or_else(|| Error::err(format!("{what} number should be between 0 and {}", count - 1)))
}

fn positive(args: &Args<'_>, at: usize, what: &str) -> Result<u64> {
    let value = args.int(at).map_err(|_| Error::err(format!("{what} is not an integer or out of range")))?;
    u64::try_from(value)
        .ok()
        .filter(|value| *value > 0)
        .ok_or_else(|| Error::err(format!("{what} should be greater than 0")))
}
