//! Owns: what is known of a request that waits: for its own session, for others, and of all of them by client. Does not
//! own: when requests wait, who serves and ends them (`crate::blocking`), the queues under the shards' locks and the
//! claim (`weft_store::waiters`).

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use weft_protocol::table::{CommandSpec, policy};
use weft_store::waiters::{Figures, Line, Spot};
use weft_store::{Claim, StreamId};

use crate::args::OwnedArgs;
use crate::charge::Charge;
use crate::clients::take;
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
    pub(crate) _charge: Charge,
    pub(crate) claim: Claim,
    pub(crate) db: u8,
    /// What it waits for.
    pub(crate) kind: Kind,
    /// The numbers of its places in the queues of its keys, which are as many arguments in a row.
    pub(crate) places: Box<[u64]>,
    /// Where these begin.
    pub(crate) keys_at: usize,
    /// Behind which id it reads each of them: for readers alone.
    pub(crate) after: Box<[StreamId]>,
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
/// its key becomes a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    List,
    SortedSet,
    /// XREAD asks for what has come.
    Reader,
    /// XREADGROUP must also hear that its group is gone.
    WithGroup,
}
/// Where the name of the group stands in the form of XREADGROUP that waits.
pub(crate) const GROUP_AT: usize = 2;

impl Kind {
    /// What a request of this command waits for.
    pub(crate) fn of(spec: &CommandSpec) -> Self {
        match spec.group {
            "list" => Self::List,
            "sorted-set" => Self::SortedSet,
            _ if spec.policy & policy::HEARS_OF_END == 0 => Self::Reader,
            _ => Self::WithGroup,
        }
    }
}

impl Blocked {
    /// The name of one of the keys that it waits for.
    pub(crate) fn key(&self, index: usize) -> &[u8] {
        self.args.args().bytes(self.keys_at + index)
    }
    /// The line in which it stands at each of its keys.
    pub(crate) fn line(&self) -> Line<'_> {
        match self.kind {
            Kind::List => Line::List,
            Kind::SortedSet => Line::SortedSet,
            Kind::Reader if self.after.len() > 1 => Line::WideReaders,
            Kind::Reader => Line::Readers,
            Kind::WithGroup => Line::Group(self.args.args().bytes(GROUP_AT)),
        }
    }
    /// Where in the line of one of its keys.
    pub(crate) fn spot(&self, index: usize) -> Spot {
        (self.after.get(index).copied().unwrap_or(StreamId::MIN), self.places[index])
    }
}

/// All blocked requests, by the id of their client, and what INFO tells of them.
#[derive(Debug)]
pub struct Waits {
    parts: [Mutex<HashMap<u64, Arc<Blocked>>>; PARTS],
    count: AtomicUsize,
    with_end: AtomicUsize,
    keys: AtomicUsize,
    keys_heard_of_end: AtomicUsize,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            parts: std::array::from_fn(|_| Mutex::default()),
            count: AtomicUsize::default(),
            with_end: AtomicUsize::default(),
            keys: AtomicUsize::default(),
            keys_heard_of_end: AtomicUsize::default(),
        }
    }
}

impl Waits {
    fn part(&self, client: u64) -> &Mutex<HashMap<u64, Arc<Blocked>>> {
        &self.parts[client as usize % PARTS]
    }
    pub(crate) fn get(&self, client: u64) -> Option<Arc<Blocked>> {
        self.part(client).lock().get(&client).cloned()
    }
    /// A request of this client waits.
    pub(crate) fn insert(&self, client: u64, blocked: Arc<Blocked>) {
        self.count.fetch_add(1, Relaxed);
        self.with_end.fetch_add(usize::from(blocked.ends), Relaxed);
        let before = self.part(client).lock().insert(client, blocked);
        self.count_out(before);
    }
    /// It waits no more, if it still did.
    pub(crate) fn remove(&self, client: u64) {
        let before = take(&mut self.part(client).lock(), client);
        self.count_out(before);
    }
    fn count_out(&self, blocked: Option<Arc<Blocked>>) {
        if let Some(blocked) = blocked {
            self.count.fetch_sub(1, Relaxed);
            self.with_end.fetch_sub(usize::from(blocked.ends), Relaxed);
        }
    }
    /// A shard's queues have changed.
    pub(crate) fn changed(&self, before: Figures, now: Figures) {
        let count = |figure: &AtomicUsize, before: usize, now: usize| {
            if now != before {
                figure.fetch_add(now.wrapping_sub(before), Relaxed);
            }
        };
        count(&self.keys, before.keys, now.keys);
        count(&self.keys_heard_of_end, before.keys_heard_of_end, now.keys_heard_of_end);
    }
    /// How many requests are blocked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.load(Relaxed)
    }
    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// How many keys are waited for.
    #[must_use]
    pub fn key_count(&self) -> usize {
        self.keys.load(Relaxed)
    }
    /// What INFO tells of them: counted as it changes, since there may be millions.
    pub(crate) fn figures(&self) -> WaitFigures {
        WaitFigures {
            with_end: self.with_end.load(Relaxed),
            keys: self.key_count(),
            keys_heard_of_end: self.keys_heard_of_end.load(Relaxed),
        }
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
    pub(crate) news: News,
}

/// A way through those who wait for a key that was written to: it meets those who have use for what stands there.
#[derive(Debug)]
pub(crate) struct Visit {
    /// Who comes later has seen what there is.
    pub(crate) end: u64,
    /// How many of the ways through lines of the value itself are behind it, and where it is in this one.
    pub(crate) step: u8,
    pub(crate) from: Spot,
    /// Readers whom it has met though nothing has come for them.
    pub(crate) vain: usize,
    /// The groups whose lines are to be gone through, when those of the value itself have been.
    pub(crate) groups: Option<VecDeque<Box<[u8]>>>,
}

/// Those who read a key that was written to and are not served yet: where the way through them is.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) ready: Ready,
    /// Nothing where it has not begun.
    pub(crate) visit: Option<Visit>,
}

/// What of a key that was written to is new to those who wait for it, if it holds a stream. Only readers of streams
/// ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// What stands there now came with this write, and with it all groups.
    Came,
    /// Something that brings no stream: whoever reads with a group hears that it is gone, and XREAD hears nothing, also
    /// of another type, until something comes to another of its keys.
    Other,
    /// An entry was added: it is for those who have not read so far.
    Entry,
    /// A group was made or set to another place.
    Group(Box<[u8]>),
    /// A group was destroyed, which readers are woken by.
    GroupGone(Box<[u8]>),
    /// Nothing that anybody waits for.
    Nothing,
}
