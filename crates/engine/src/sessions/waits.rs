//! Owns: what is known of a request that waits: for its own session, for others, and of all of them by client. Does not
//! own: when requests wait, who serves and ends them (`crate::blocking`), the queues under the shards' locks and the
//! claim (`weft_store::waiters`).

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use weft_protocol::table::{CommandSpec, policy};
use weft_store::waiters::Kind;
use weft_store::{Claim, ValueRef};

use crate::args::OwnedArgs;
use crate::held::Held;
use crate::reply::{ReplySink, Wire};
use crate::session::ClientInfo;

/// Parts of the registry of waits, each with a lock of its own.
const PARTS: usize = 64;

/// What a request answers when its time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// Null, in RESP2 a null array.
    NullArray,
    /// Null, in RESP2 a null bulk.
    Null,
    /// 0: WAIT.
    Zero,
    /// An array of whether it is on the disk here, as it was when the wait began, and of 0 copies: WAITAOF.
    Kept(bool),
}

impl Empty {
    /// Writes the answer.
    pub fn write(self, sink: &mut ReplySink<'_>) {
        match self {
            Self::NullArray => sink.null_array(),
            Self::Null => sink.null(),
            Self::Zero => sink.int(0),
            Self::Kept(is_kept) => {
                sink.array(2);
                sink.int(is_kept.into());
                sink.int(0);
            }
        }
    }
}

/// How a wait is ended by somebody other than a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Time is up, or CLIENT UNBLOCK … TIMEOUT.
    Timeout,
    /// CLIENT UNBLOCK … ERROR.
    Error,
    /// RESPB's CANCEL.
    Cancel,
    /// The connection is about to end: what blocks has not run, and has no answer.
    Leaving,
    /// The session goes away; nobody reads an answer.
    Gone,
}

/// A blocked request, as its own session knows it.
#[derive(Debug)]
pub struct Wait {
    /// When it ends; `None` for never.
    pub deadline_ms: Option<u64>,
    pub(crate) shared: Arc<Blocked>,
}

impl Wait {
    /// It has run for so long before it waited.
    pub(crate) fn spent(&self, ns: u64) {
        self.shared.spent_ns.store(ns, Relaxed);
    }
    /// As others know it.
    pub(crate) fn shared(&self) -> Arc<Blocked> {
        Arc::clone(&self.shared)
    }
}

/// A blocked request, as others know it.
#[derive(Debug)]
pub struct Blocked {
    pub(crate) args: OwnedArgs,
    /// What it counts.
    pub(crate) _held: Held,
    pub(crate) claim: Claim,
    pub(crate) db: u8,
    /// What it waits for.
    pub(crate) kind: Kind,
    /// The keys in whose queues it stands, and the number of its place in each.
    pub(crate) keys: Vec<(Box<[u8]>, u64)>,
    /// The shards of all keys that it names, each once.
    pub(crate) shards: Box<[u32]>,
    /// Whether its time will be up some day.
    pub(crate) ends: bool,
    pub(crate) empty: Empty,
    pub(crate) wire: Wire,
    pub(crate) info: Arc<ClientInfo>,
    /// How it counts when it has ended: [`RAN`], [`FAILED`] or [`REFUSED`].
    pub(crate) counts_as: AtomicU8,
    /// How long it ran before it waited. Counted with it.
    pub(crate) spent_ns: AtomicU64,
}

/// A call.
pub(crate) const RAN: u8 = 0;
/// A call that has answered an error.
pub(crate) const FAILED: u8 = 1;
/// No call: the rights that it began with are gone.
pub(crate) const REFUSED: u8 = 2;

/// Kinds of waits, by what of a key they have use for: a list is of none to BZPOPMIN, and BLPOP goes on waiting when
/// its key becomes a string; XREAD asks for what has come.
const FOR_LIST: Kind = 0;
const FOR_SORTED_SET: Kind = 1;
const FOR_STREAM: Kind = 2;
/// XREADGROUP must hear of any change, since its group may be gone.
const FOR_ANY: Kind = 3;

/// What waits for a request of this command.
pub(crate) fn kind_of(spec: &CommandSpec) -> Kind {
    match spec.group {
        "list" => FOR_LIST,
        "sorted-set" => FOR_SORTED_SET,
        "stream" if spec.policy & policy::HEARS_OF_END == 0 => FOR_STREAM,
        _ => FOR_ANY,
    }
}

/// The kinds to which what a key holds now is of use, as a set of bits.
pub(crate) fn kinds_for(value: Option<&ValueRef<'_>>, arrived: bool) -> u8 {
    let for_this = match value.map(ValueRef::type_name) {
        Some("list") => 1 << FOR_LIST,
        Some("zset") => 1 << FOR_SORTED_SET,
        Some("stream") if arrived => 1 << FOR_STREAM,
        _ => 0,
    };
    for_this | 1 << FOR_ANY
}

impl Blocked {
    /// Whether it must hear of it when its key goes away: the group that it reads with has gone too.
    pub(crate) fn hears_of_end(&self) -> bool {
        self.args.args().spec.policy & policy::HEARS_OF_END != 0
    }
}

/// All blocked requests, by the id of their client.
#[derive(Debug)]
pub struct Waits([Mutex<HashMap<u64, Arc<Blocked>>>; PARTS]);

impl Default for Waits {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl Waits {
    pub(crate) fn part(&self, client: u64) -> &Mutex<HashMap<u64, Arc<Blocked>>> {
        &self.0[client as usize % PARTS]
    }
    pub(crate) fn get(&self, client: u64) -> Option<Arc<Blocked>> {
        self.part(client).lock().get(&client).cloned()
    }
    /// How many requests are blocked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|part| part.lock().len()).sum()
    }
    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// What INFO tells of them: a walk over all, that copies the names of their keys.
    pub(crate) fn figures(&self) -> WaitFigures {
        let (mut keys, mut hear_of_end) = (HashSet::new(), HashSet::new());
        let mut figures = WaitFigures::default();
        for part in &self.0 {
            for blocked in part.lock().values() {
                figures.with_end += usize::from(blocked.ends);
                for (key, _) in &blocked.keys {
                    keys.insert((blocked.db, key.clone()));
                    if blocked.hears_of_end() {
                        hear_of_end.insert((blocked.db, key.clone()));
                    }
                }
            }
        }
        (figures.keys, figures.keys_heard_of_end) = (keys.len(), hear_of_end.len());
        figures
    }
}

/// What INFO tells of waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitFigures {
    /// Requests whose time will be up some day.
    pub(crate) with_end: usize,
    /// Keys that anybody waits for.
    pub(crate) keys: usize,
    /// Those of them whose end is also waited for.
    pub(crate) keys_heard_of_end: usize,
}

/// A key that somebody wrote to while others wait for it.
#[derive(Debug)]
pub struct Ready {
    pub(crate) db: u8,
    pub(crate) key: Box<[u8]>,
    /// What stands there now came with this write, or was added to. Only readers of streams ask, who hear of another
    /// type at one of their keys when something has come to another: where there is no stream it says nothing.
    pub(crate) arrived: bool,
}
