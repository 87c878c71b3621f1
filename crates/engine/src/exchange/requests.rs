//! Owns: the requests that a worker has decoded and not yet run: a batch. Does not own: the bytes they point into,
//! decoding, running.
//!
//! The server decodes into a batch, from several connections if several have something, and runs it; up to
//! [`BATCH_MAX`] requests are enough to hide the cache misses of their keys behind each other.
//!
//! | file | owns |
//! |---|---|
//! | here | a batch and what is asked of its requests |
//! | `ends` | a request is whole: its command and its keys are found |
//! | `repeats` | requests that begin as others did are not looked at anew |
//! | `fast`, `what` | which may run without their handlers; what a request asks for |

use weft_protocol::respb::Piece;
use weft_protocol::table::CommandId;
use weft_store::{Ahead, Keyspace};

use crate::args::{Args, OwnedArgs, Slot, Slots, TYPED_BYTES_MAX, Texts};
use crate::traits;

mod ends;
mod fast;
mod repeats;
mod what;

pub(crate) use fast::Fast;
use repeats::{Known, Recent, RecentInside, SHAPES};
pub use what::{What, is_container};

/// Requests in a batch at most.
pub const BATCH_MAX: usize = 64;

/// Keys behind the first of a request from which on a batch is full: what they and the first ones need still fits into
/// the first-level cache.
const MORE_KEYS_FULL: usize = 64;

/// Keys behind the first of its requests that a batch prefetches: what they need fits into the second-level cache. Of a
/// request with about so many, not all hashes may be known.
const MORE_KEYS_MAX: usize = 1024;

/// Whose request it is, in the worker's own numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The connection.
    pub connection: u32,
    /// RESPB channel; 0 elsewhere.
    pub channel: u16,
    /// Its database when the request was decoded: for prefetching, so that any will do.
    pub db: u8,
}

impl Origin {
    /// Whether both are the same client.
    #[inline]
    pub(crate) fn is_same(self, other: Self) -> bool {
        (self.connection, self.channel) == (other.connection, other.channel)
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Whose it is.
    pub client: Origin,
    /// Whether the slots begin with the command's name.
    named: bool,
    /// How it can be run without its handler.
    pub(crate) fast: Fast,
    /// Option bits of a typed layout.
    options: u16,
    /// What it asks for.
    pub what: What,
    /// Its slots.
    slots: (u32, u32),
    /// Where its frame begins in the bytes that the host lends.
    pub frame_at: usize,
    /// The hash of its first key, for prefetching; 0 for none.
    pub hash: u64,
    /// Where its first key lies, if that is its first argument and a piece of the frame.
    key: Piece,
    /// Where its first key stands; 0 for none.
    key_at: u16,
    /// The hashes of its further keys.
    more: (u32, u32),
    /// Keys of the requests before it that are prefetched.
    pub(crate) keys_before: u32,
}

impl Request {
    /// The hash of its first argument, if that is a key and the hash is known.
    #[inline]
    pub(crate) fn first_hash(&self) -> Option<u64> {
        (self.key_at == 1).then_some(self.hash)
    }
    /// The command, if it is one of the table.
    #[inline]
    #[must_use]
    pub const fn command(&self) -> Option<CommandId> {
        match self.what {
            What::Command(id) => Some(id),
            _ => None,
        }
    }
}

/// A batch.
#[derive(Debug)]
pub struct Requests {
    /// Of all commands.
    traits: &'static [u16],
    slots: Slots,
    list: Vec<Request>,
    /// Where the slots of the request begin that is being decoded.
    open: usize,
    recent: Option<Recent>,
    recent_inside: Option<RecentInside>,
    shapes: [Option<Known>; SHAPES],
    /// Hashes of the keys behind the first of requests with several, for prefetching.
    more: Vec<u64>,
    /// Keys that are prefetched.
    keys: u32,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            traits: traits::all(),
            slots: Slots::default(),
            list: Vec::new(),
            open: 0,
            recent: None,
            recent_inside: None,
            shapes: [None; SHAPES],
            more: Vec::new(),
            keys: 0,
        }
    }
}

impl Requests {
    /// Forgets all requests. Slots of one that is not whole are to be [taken](Self::take_open) before.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.list.clear();
        self.more.clear();
        self.keys = 0;
        self.open = 0;
    }
    /// The requests.
    #[must_use]
    pub fn list(&self) -> &[Request] {
        &self.list
    }
    /// Whether no further request should be decoded before the batch has run.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.list.len() >= BATCH_MAX || self.more.len() >= MORE_KEYS_FULL
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// The hashes of a request's keys behind its first, as far as they are prefetched.
    #[inline]
    pub(crate) fn more_hashes(&self, request: &Request) -> &[u64] {
        &self.more[request.more.0 as usize..request.more.1 as usize]
    }
    /// The hashes of the keys of a request whose first argument is one.
    #[inline]
    pub(crate) fn hashes(&self, request: &Request) -> impl Iterator<Item = u64> + Clone + '_ {
        let (first, more) = (request.hash, self.more_hashes(request));
        std::iter::once(first).chain(more.iter().copied())
    }
    /// Whether prefetching helps: there is more than one key to wait for.
    pub(crate) fn has_many_keys(&self) -> bool {
        self.list.len() > 1 || !self.more.is_empty()
    }
    /// Whether every request has one key that is prefetched.
    pub(crate) fn has_one_key_each(&self) -> bool {
        self.more.is_empty() && self.keys as usize == self.list.len()
    }
    /// The visitor to decode the next request with.
    #[inline]
    pub fn visitor(&mut self) -> &mut Slots {
        &mut self.slots
    }
    /// Puts back the slots of a request that has been decoded in part.
    pub fn resume(&mut self, slots: &[Slot]) {
        self.slots.list.extend_from_slice(slots);
    }
    /// Whether a request has been decoded in part.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.slots.list.len() > self.open
    }
    /// Forgets the request that is being decoded.
    pub fn drop_open(&mut self) {
        self.slots.list.truncate(self.open);
        self.slots.options = 0;
    }
    /// Takes out the slots of the request that is not whole.
    pub fn take_open(&mut self, into: &mut Vec<Slot>) {
        into.clear();
        into.extend_from_slice(&self.slots.list[self.open..]);
        self.slots.list.truncate(self.open);
    }

    /// About what a request takes in the bytes that it came in: where the last of its arguments ends that is a piece of
    /// the frame.
    #[inline]
    pub(crate) fn bytes(&self, request: &Request) -> usize {
        match self.slots.list[request.slots.0 as usize..request.slots.1 as usize].last() {
            Some(&Slot::Frame { offset, len }) => offset as usize + len as usize,
            Some(&Slot::Side { len, .. }) => len as usize,
            _ => 0,
        }
    }
    /// More than the same takes as RESP, where it may be for the log of large requests.
    pub(crate) fn bytes_max(&self, request: &Request) -> usize {
        let arguments = request.slots.1 as usize - request.slots.0 as usize;
        self.bytes(request) + (2 + arguments) * TYPED_BYTES_MAX
    }
    /// The key of a request that goes fast and has one.
    #[inline(always)]
    pub(crate) fn key<'a>(&self, request: &Request, bytes: &'a [u8]) -> &'a [u8] {
        request.key.of(request.frame_at, bytes)
    }
    /// An argument that lies in the request's frame, which the first of a [fast](Fast) request do. `bytes` is
    /// what was given when it ended.
    #[inline]
    pub(crate) fn framed<'a>(&self, request: &Request, index: usize, bytes: &'a [u8]) -> &'a [u8] {
        match self.slots.list.get(request.slots.0 as usize + usize::from(request.named) + index) {
            Some(&Slot::Frame { offset, len }) => {
                bytes.get(request.frame_at + offset as usize..).and_then(|rest| rest.get(..len as usize))
            }
            _ => None,
        }
        .unwrap_or_default()
    }

    /// What the two requests behind one will look for, if they are of the same client and about the same key. `before`:
    /// the answer for the request before it, if that was the one before. Costs two comparisons where they are not.
    #[inline]
    pub(crate) fn ahead(&self, at: usize, bytes: &[u8], keyspace: &Keyspace, before: Ahead) -> Ahead {
        let [this, next, rest @ ..] = &self.list[at..] else { return Ahead::default() };
        let is_like =
            |other: &Request| other.hash == this.hash && other.client.connection == this.client.connection;
        if this.hash == 0 || !is_like(next) {
            return Ahead::default();
        }
        let near = if before.far == 0 { self.member(next, bytes, keyspace) } else { before.far };
        let far = rest.first().filter(|far| is_like(far)).map_or(0, |far| self.member(far, bytes, keyspace));
        Ahead { near, far }
    }
    /// The hash of the member that a request looks for; 0 for none.
    fn member(&self, request: &Request, bytes: &[u8], keyspace: &Keyspace) -> u64 {
        let What::Command(id) = request.what else { return 0 };
        let behind_the_key = match self.traits[usize::from(id.0)] {
            traits if traits & traits::MEMBER_SECOND != 0 => 1,
            traits if traits & traits::MEMBER_THIRD != 0 => 2,
            _ => return 0,
        };
        match self.framed(request, behind_the_key, bytes) {
            [] => 0,
            member => keyspace.key(member).hash(),
        }
    }

    /// The arguments of a request. `bytes` is what was given when it ended.
    #[inline]
    #[must_use]
    pub fn args<'a>(&'a self, request: &Request, bytes: &'a [u8], texts: &'a Texts) -> Args<'a> {
        let slots = &self.slots.list[request.slots.0 as usize..request.slots.1 as usize];
        let frame = bytes.get(request.frame_at..).unwrap_or_default();
        let more = self.more_hashes(request);
        Args::new(
            request.what.spec(),
            (slots, request.named, request.options),
            (frame, &self.slots.side, texts),
        )
        .with_key(request.key_at, request.hash)
        .with_more(more, more.len() < MORE_KEYS_MAX - MORE_KEYS_FULL)
    }
}

/// A request that runs later.
#[derive(Debug)]
pub struct Postponed {
    /// What it asks for.
    pub what: What,
    /// Its arguments.
    pub args: OwnedArgs,
    /// Not before; 0 for as soon as the session waits no more.
    pub until_ms: u64,
    /// It is a program that waits for its turn, which the host gives it.
    pub turn: bool,
}

impl Postponed {
    /// Whether what its client may send, and how that is read, may be other than before when it has run.
    #[must_use]
    pub fn may_be_barrier(&self) -> bool {
        let What::Command(id) = self.what else { return false };
        traits::of(id) & (traits::BARRIER | traits::ENDS_TRANSACTION) != 0
    }
}
