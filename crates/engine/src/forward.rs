//! Owns: noting requests that another server runs. Does not own: what is noted (`crate::forwards`), connections to that
//! server, which commands go which way (`weft-gateway`), what it answers.
//!
//! A handler table made by [`Handlers::forwarding`](crate::handler::Handlers::forwarding) has [`Scope::Forward`] in the
//! place of whatever another server does. Such a request goes through the same admission as any other; then its bytes
//! are put behind those of others ([`Forwards`]), and its session waits as one that is blocked: the server's front
//! holds back what comes behind it. Plain requests of one client may follow each other without waiting
//! ([`Session::joins`]): they go to one connection there, so their replies come in order.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use weft_protocol::table::{CommandSpec, flag, policy};
use weft_protocol::{Arg, request::Arguments, resp};

use crate::acl::User;
use crate::args::Args;
use crate::blocking;
use crate::context::{Context, Local};
use crate::engine::{Engine, command_id};
use crate::error::{Error, ErrorCode, Result, full_name};
pub use crate::forwards::*;
use crate::keys;
use crate::queued::Queued;
use crate::requests::{Postponed, What};
use crate::session::{Session, client_flag};
use crate::tracking::Names;

/// Requests of one client that may be on their way at once.
pub const FORWARDED_MAX: u32 = 64;

/// Bits of SCAN's cursor that say which primary it is of, by one of its slots.
pub const SLOT_BITS: u32 = 14;
/// Bytes of a key that an error shows.
const SHOWN_KEY_MAX: usize = 64;

/// Arguments as an encoder reads them.
struct Words<'w, 'a>(&'w Args<'a>);

impl Arguments for Words<'_, '_> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn arg(&self, index: usize) -> Arg<'_> {
        self.0.get(index).unwrap_or(Arg::Bytes(b""))
    }
}

/// Texts as an encoder reads them.
struct Slices<'s>(&'s [&'s [u8]]);

impl Arguments for Slices<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn arg(&self, index: usize) -> Arg<'_> {
        Arg::Bytes(self.0.get(index).copied().unwrap_or_default())
    }
}

fn encode(args: &Args<'_>, into: &mut Vec<u8>) {
    resp::encode::request(None, &Words(args), into);
}

/// Notes a request that was admitted.
pub(crate) fn run(
    engine: &Engine,
    local: &mut Local,
    (way, args): (Way, &Args<'_>),
    session: &mut Session,
) -> Result {
    if session.asked.take().is_some() {
        return Err(Error::err(
            "keys as resources, with their conditions, are not served by a gateway: name the command",
        ));
    }
    let forwards = &mut local.forwards;
    if let Way::Refused(why) = way {
        return Err(refused(args.spec, why));
    }
    if let Way::Scatter(merge) = way {
        let tracks = engine.tracked_elsewhere(session, [args].into_iter());
        scatter(forwards, (merge, args, tracks), session);
        return Ok(());
    }
    let keys = if engine.is_cluster() { keys_of([args].into_iter())? } else { Keys::default() };
    let kind = match way {
        Way::There => Kind::Plain,
        Way::Everywhere(merge) => Kind::Everywhere(merge),
        Way::Scan => return scan(forwards, args, session),
        Way::Alone => Kind::Alone,
        Way::Blocks => match block_time(args) {
            Some(time) => {
                session.info.set_flag(client_flag::BLOCKED, true);
                Kind::Blocks(time)
            }
            None => Kind::Plain,
        },
        Way::Select => Kind::Select(database(engine, args)?),
        // Seen to above.
        Way::Scatter(_) | Way::Refused(_) => return Ok(()),
        Way::Watch => {
            encode(args, &mut forwards.bytes);
            forwards.add(session, Kind::Watch, false, keys, None);
            session.watches = session.watches.saturating_add(1);
            return Ok(());
        }
        Way::Subscribe(kind) => {
            let (what, args) = (What::Command(command_id(args)), args.to_owned_args());
            Kind::Subscribe(kind, Postponed { what, args, until_ms: 0, turn: false })
        }
        Way::Track => {
            check_tracking(args, session)?;
            let (what, args) = (What::Command(command_id(args)), args.to_owned_args());
            Kind::Track(Postponed { what, args, until_ms: 0, turn: false })
        }
        // It has a handler of its own.
        Way::Here | Way::Anywhere => return Ok(()),
    };
    let tracks = match kind {
        Kind::Plain => engine.tracked_elsewhere(session, [args].into_iter()),
        _ => None,
    };
    encode(args, &mut forwards.bytes);
    forwards.add(session, kind, args.spec.flags & flag::READONLY != 0, keys, tracks);
    Ok(())
}

/// The slot of all keys of some requests. The error names two that have different ones.
fn keys_of<'a, 'r: 'a>(requests: impl Iterator<Item = &'a Args<'r>>) -> Result<Keys> {
    let (mut first, mut all): (Option<(u16, Vec<u8>)>, _) = (None, Keys::default());
    let mut other = None;
    for args in requests {
        each_with_slot(args, |index| {
            let key = args.bytes(index);
            let slot = keys::key_slot(key);
            match &first {
                None => {
                    let mut hasher = DefaultHasher::new();
                    key.hash(&mut hasher);
                    all = Keys { slot: Some(slot), only: Some(hasher.finish()) };
                    first = Some((slot, key.to_vec()));
                }
                Some((of, _)) if *of != slot => other = other.take().or(Some((slot, key.to_vec()))),
                Some(_) => all.only = None,
            }
        });
    }
    match (first, other) {
        (Some(one), Some(two)) => Err(cross_slot(&one, &two)),
        _ => Ok(all),
    }
}

/// Visits keys, and shard channels, which have slots as keys do.
fn each_with_slot(args: &Args<'_>, mut visit: impl FnMut(usize)) {
    let (first, last, _) = args.spec.keys;
    if args.spec.group == "pubsub" && first > 0 {
        // They stand where keys do: one, or all from there on.
        let end = if last < 0 { args.len() } else { last as usize + 1 };
        return (first as usize..end).for_each(visit);
    }
    keys::each_with_flags(args, |index, _| visit(index));
}

fn cross_slot(one: &(u16, Vec<u8>), two: &(u16, Vec<u8>)) -> Error {
    let shown = |(slot, key): &(u16, Vec<u8>)| {
        let short = &key[..key.len().min(SHOWN_KEY_MAX)];
        format!("'{}' has slot {slot}", short.escape_ascii())
    };
    let text = format!("Keys in request don't hash to the same slot: {}, {}", shown(one), shown(two));
    Error::with_prefix("CROSSSLOT", text)
}

/// Notes a request with one key in each argument as one for each slot.
fn scatter(
    forwards: &mut Forwards,
    (merge, args, tracks): (Merge, &Args<'_>, Option<Names>),
    session: &mut Session,
) {
    let mut slots: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
    for (place, key) in args.rest(1).enumerate() {
        slots.entry(keys::key_slot(key)).or_default().push(place as u32);
    }
    let reads = args.spec.flags & flag::READONLY != 0;
    if slots.len() == 1 {
        encode(args, &mut forwards.bytes);
        let keys = Keys { slot: slots.keys().next().copied(), only: None };
        return forwards.add(session, Kind::Plain, reads, keys, tracks);
    }
    let begin = forwards.bytes.len();
    let mut pieces = Vec::with_capacity(slots.len());
    for (slot, places) in slots {
        let words = places.iter().map(|place| args.bytes(*place as usize + 1));
        let words: Vec<&[u8]> = std::iter::once(args.bytes(0)).chain(words).collect();
        resp::encode::request(None, &Slices(&words), &mut forwards.bytes);
        pieces.push(Piece { slot, end: forwards.bytes.len() - begin, places });
    }
    forwards.add(session, Kind::Scatter(merge, pieces), reads, Keys::default(), tracks);
}

/// Notes SCAN of the primary that its cursor names by a slot: the cursor's lowest bits.
fn scan(forwards: &mut Forwards, args: &Args<'_>, session: &mut Session) -> Result {
    let cursor = std::str::from_utf8(args.bytes(1)).ok().and_then(|text| text.parse::<u64>().ok());
    let Some(cursor) = cursor else { return Err(Error::err("invalid cursor")) };
    let own = (cursor >> SLOT_BITS).to_string();
    let mut words: Vec<&[u8]> = args.rest(0).collect();
    words[1] = own.as_bytes();
    resp::encode::request(None, &Slices(&words), &mut forwards.bytes);
    let keys = Keys { slot: Some((cursor & ((1 << SLOT_BITS) - 1)) as u16), only: None };
    forwards.add(session, Kind::Scan, true, keys, None);
    Ok(())
}

/// Notes a transaction whose commands were queued.
pub(crate) fn exec(engine: &Engine, local: &mut Local, session: &mut Session, queued: &Queued) -> Result {
    let keys = if engine.is_cluster() {
        let queued: Vec<Args<'_>> = queued.iter().collect();
        keys_of(queued.iter()).inspect_err(|_| local.forwards.release(session))?
    } else {
        Keys::default()
    };
    let tracks = if session.info.has(client_flag::TRACKING) {
        let queued: Vec<Args<'_>> = queued.iter().collect();
        engine.tracked_elsewhere(session, queued.iter())
    } else {
        None
    };
    let bytes = &mut local.forwards.bytes;
    bytes.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
    queued.iter().for_each(|args| encode(&args, bytes));
    bytes.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
    // The connection that it has goes with it.
    local.forwards.add(session, Kind::Exec(queued.len() as u32), false, keys, tracks);
    session.watches = 0;
    Ok(())
}

fn refused(spec: &CommandSpec, why: &str) -> Error {
    Error::err(format!("'{}' is not served by a gateway: {why}", full_name(spec)))
}

/// Whether a user who may not do everything may have a request run where everybody is one user, who may: not if it does
/// what its words do not show.
pub(crate) fn check_reach(engine: &Engine, user: &User, args: &Args<'_>, db: u8) -> Result {
    let spec = args.spec;
    if spec.policy & policy::LOOKS_UP != 0 {
        return (engine.logic().may_look_up)(user, args, (db, engine.keyspace.database_count()));
    }
    let runs = policy::RUNS_SCRIPT | policy::RUNS_SHA | policy::RUNS_FUNCTION | policy::RUNS_STORED;
    if spec.policy & runs == 0 {
        return Ok(());
    }
    let name = full_name(spec);
    let why = "what it runs has no user of its own in the server behind";
    let text = format!("'{name}' is served by a gateway to users who may do everything: {why}");
    Err(Error::new(ErrorCode::NoPerm, text))
}

/// What of CLIENT TRACKING ON is not served.
fn check_tracking(args: &Args<'_>, session: &Session) -> Result {
    let refuse = |what: &str| Err(Error::err(format!("CLIENT TRACKING {what}")));
    for index in 3..args.len() {
        if args.is(index, "BCAST") {
            return refuse("with BCAST is not served by a gateway: it would be told of every write");
        }
        if args.is(index, "REDIRECT") {
            return refuse("with REDIRECT is not served by a gateway: track over RESP3 or RESPB");
        }
    }
    if is_resp2(session) {
        return refuse("needs RESP3 or RESPB in front of a gateway: HELLO 3");
    }
    Ok(())
}

/// Whether a request goes there. CLIENT TRACKING OFF does not, nor what has come back from there to run here.
pub(crate) fn goes(way: Way, args: &Args<'_>, session: &mut Session) -> bool {
    !std::mem::take(&mut session.confirmed) && (!matches!(way, Way::Track) || args.is(2, "ON"))
}

fn database(engine: &Engine, args: &Args<'_>) -> Result<u8> {
    let count = engine.keyspace.database_count();
    let db = args.int(1)?;
    if engine.is_cluster() && db != 0 {
        return Err(Error::err("SELECT is not served in front of a cluster: it has database 0"));
    }
    match u8::try_from(db) {
        Ok(number) if usize::from(number) < count => Ok(number),
        _ => Err(Error::err(format!("DB index is out of range: the gateway has {count} (databases)"))),
    }
}

/// How long a request blocks, if it does.
fn block_time(args: &Args<'_>) -> Option<BlockTime> {
    let argument = match args.spec.policy {
        policy if policy & policy::TIME_OPTION != 0 => return block_option(args),
        policy if policy & policy::TIME_FIRST != 0 => 1,
        _ => args.len() - 1,
    };
    let ms = blocking::seconds(args, argument).map_or(0.0, |seconds| (seconds * 1_000.0).ceil());
    // What is no time the server behind refuses.
    let ms = if ms > 0.0 && ms < i64::MAX as f64 { ms as u64 } else { 0 };
    Some(BlockTime { argument, ms, in_seconds: true })
}

/// The same of one that says so by its option BLOCK.
fn block_option(args: &Args<'_>) -> Option<BlockTime> {
    let options = || (1..args.len()).take_while(|&index| !args.is(index, "STREAMS"));
    if !options().any(|index| args.is(index, "BLOCK")) {
        return None;
    }
    let (mut at, mut time) = (1, None);
    while at < args.len() && !args.is(at, "STREAMS") {
        at += match () {
            () if args.is(at, "BLOCK") => {
                let argument = at + 1;
                let ms = args.int(argument).ok().and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0);
                time = Some(BlockTime { argument, ms, in_seconds: false });
                2
            }
            () if args.is(at, "COUNT") => 2,
            () if args.is(at, "GROUP") => 3,
            () if args.is(at, "NOACK") => 1,
            // The server behind may know other options: how long it blocks is not known.
            () => return Some(BlockTime::default()),
        };
    }
    time
}

/// Whether a command that goes this way may stand in a transaction that another server runs.
pub(crate) fn check_queued(way: Way, spec: &CommandSpec) -> Result {
    match way {
        Way::There | Way::Blocks | Way::Anywhere | Way::Scatter(_) => Ok(()),
        Way::Refused(why) => Err(refused(spec, why)),
        Way::Everywhere(_) | Way::Scan => {
            let text = "is run by all primaries, and a transaction by one";
            Err(Error::err(format!("'{}' {text}", full_name(spec))))
        }
        _ => {
            let text = "has to do with the gateway, and a transaction is run by the server behind it";
            Err(Error::err(format!("'{}' {text}", full_name(spec))))
        }
    }
}

impl Context<'_, '_> {
    /// A client gives up the keys that it watches over there.
    pub(crate) fn give_up_lease(&mut self) {
        if self.session.watches > 0 {
            self.local.forwards.release(self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::OwnedArgs;

    fn time(words: &[&str]) -> Option<BlockTime> {
        let What::Command(id) = What::of(words[0].as_bytes(), words.get(1).map(|word| word.as_bytes()))
        else {
            panic!("{words:?} is no command");
        };
        let owned = OwnedArgs::new(id.spec(), words.iter().map(|word| word.as_bytes()));
        block_time(&owned.args())
    }

    #[test]
    fn how_long_a_request_blocks_stands_in_it() {
        let seconds = |argument, ms| Some(BlockTime { argument, ms, in_seconds: true });
        let ms = |argument, ms| Some(BlockTime { argument, ms, in_seconds: false });
        for (words, blocks) in [
            (&["BLPOP", "a", "b", "1.5"][..], seconds(3, 1_500)),
            (&["BLPOP", "a", "0"], seconds(2, 0)),
            (&["BLPOP", "a", "0.0001"], seconds(2, 1)),
            (&["BLPOP", "a", "no time"], seconds(2, 0)),
            (&["BLMPOP", "2", "1", "a", "LEFT"], seconds(1, 2_000)),
            (&["XREAD", "STREAMS", "BLOCK", "0"], None),
            (&["XREAD", "COUNT", "1", "block", "70", "STREAMS", "a", "0"], ms(4, 70)),
            (&["XREADGROUP", "GROUP", "g", "BLOCK", "BLOCK", "8", "STREAMS", "a", ">"], ms(5, 8)),
            (&["XREADGROUP", "GROUP", "BLOCK", "7", "NOACK", "STREAMS", "a", ">"], None),
            (&["XREADGROUP", "GROUP", "g", "c", "NEW", "BLOCK", "8", "STREAMS", "a", ">"], ms(0, 0)),
        ] {
            assert_eq!(time(words), blocks, "{words:?}");
        }
    }
}
