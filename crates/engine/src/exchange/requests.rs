//! Owns: the requests that a worker has decoded and not yet run: a batch. Does not own: the bytes they point into,
//! decoding, running.
//!
//! The server decodes into a batch, from several connections if several have something, and runs it; up to
//! [`BATCH_MAX`] requests are enough to hide the cache misses of their keys behind each other.

use weft_protocol::resp::Shape;
use weft_protocol::respb::{self, Frame, Payload, Piece};
use weft_protocol::table::{self, CommandId};
use weft_store::{Ahead, Keyspace};

use crate::args::{Args, Slot, Slots, TYPED_BYTES_MAX, Texts};
use crate::{keys, traits};

mod what;

pub use what::{What, is_container};

/// Requests in a batch at most.
pub const BATCH_MAX: usize = 64;

/// Keys behind the first of a request that a batch prefetches: what they need fits into the second-level cache.
const MORE_KEYS_MAX: usize = 1024;
/// Such keys from which on a batch is full: what they and the first ones need still fits into the first-level cache.
const MORE_KEYS_FULL: usize = 64;
/// Keys of a request that has a fast function, at most: it is not timed by itself.
const FAST_KEYS_MAX: usize = 32;

/// A short name and the command that it was: most requests have the name of the one before.
#[derive(Clone, Copy, Debug)]
struct Recent {
    name: Packed,
    id: CommandId,
}

/// The same of a container and its first argument.
#[derive(Clone, Copy, Debug)]
struct RecentInside {
    names: [Packed; 2],
    id: CommandId,
}

/// What a request is that begins as another did.
#[derive(Clone, Copy, Debug)]
struct Known {
    shape: Shape,
    id: CommandId,
    /// How it can be run without its handler: [`Fast::Get`] or [`Fast::Set`], or [`Fast::No`] for all that
    /// must be looked at each time.
    fast: Fast,
}

/// Shapes of requests that are remembered, by what they begin with.
const SHAPES: usize = 8;

/// The place of a shape: most clients send few kinds of requests, again and again.
#[inline]
fn place(head: &[u8; 16]) -> usize {
    let [_, arguments, _, _, _, len, _, _, one, two, three, ..] = *head;
    let word = u32::from_le_bytes([arguments ^ len << 4, one, two, three]);
    (word.wrapping_mul(0x9E37_79B1) >> 29) as usize % SHAPES
}

/// A name of 1 to 16 bytes in two words: its first and its last bytes, which overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed {
    head: u64,
    tail: u64,
    len: usize,
}

impl Packed {
    #[inline]
    fn of(name: &[u8]) -> Option<Self> {
        let len = name.len();
        let (head, tail) = match len {
            8..=16 => (u64::from_ne_bytes(*name.first_chunk()?), u64::from_ne_bytes(*name.last_chunk()?)),
            4..=7 => (
                u64::from(u32::from_ne_bytes(*name.first_chunk()?)),
                u64::from(u32::from_ne_bytes(*name.last_chunk()?)),
            ),
            1..=3 => (u64::from(name[0]), u64::from(name[len / 2]) << 8 | u64::from(name[len - 1])),
            _ => return None,
        };
        Some(Self { head, tail, len })
    }
}

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

/// The fast function that can run a request where nothing is special (`crate::executor`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fast {
    /// Nothing.
    No,
    /// GET of one key.
    Get,
    /// SET of one key, without options.
    Set,
    /// PING without a message.
    Ping,
    /// MGET of a few keys.
    MGet,
    /// MSET of a few keys.
    MSet,
}

impl Fast {
    /// How a request of these traits, arguments and options can be run without its handler: none of its arguments but
    /// pieces of its frame.
    #[inline(always)]
    fn of(traits: u16, args: &[Slot], options: u16) -> Self {
        match (traits & traits::FAST, args) {
            (traits::FAST_GET, [Slot::Frame { .. }]) => Self::Get,
            (traits::FAST_SET, [Slot::Frame { .. }, Slot::Frame { .. }]) if options == 0 => Self::Set,
            (traits::FAST_PING, []) => Self::Ping,
            (traits::FAST_MGET, keys) if (1..=FAST_KEYS_MAX).contains(&keys.len()) => Self::MGet,
            (traits::FAST_MSET, pairs)
                if (1..=FAST_KEYS_MAX).contains(&(pairs.len() / 2)) && pairs.len().is_multiple_of(2) =>
            {
                Self::MSet
            }
            _ => Self::No,
        }
    }
    /// Whether it looks at nothing but the values of its keys.
    pub(crate) const fn reads(self) -> bool {
        matches!(self, Self::Get | Self::MGet)
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

    /// The request is whole: RESP, its name being its first argument. `bytes` is what the host will lend, `frame_at`
    /// its frame in it. Says whether it is a barrier: nothing behind it may be decoded before it has run.
    #[inline]
    pub fn end_resp(&mut self, keyspace: &Keyspace, client: Origin, from: (&[u8], usize)) -> bool {
        let packed = self.slot(0, from).and_then(Packed::of);
        match (self.recent, packed) {
            (Some(recent), Some(packed)) if recent.name == packed => {
                self.learn(recent.id, from);
                self.end(keyspace, client, from, (What::Command(recent.id), true))
            }
            _ => self.end_named(keyspace, client, from),
        }
    }

    /// The request is whole: HTTP, its name being its first argument. The rest is as in [`Self::end_resp`].
    #[inline]
    pub fn end_http(&mut self, keyspace: &Keyspace, client: Origin, from: (&[u8], usize)) -> bool {
        let what = self.recognize(from);
        self.end(keyspace, client, from, (what, true))
    }
    /// Takes requests that begin as others did, as most do: their command and the number of their arguments are known.
    /// Stops at the first that does not or is not whole, and says where. Only between requests, with a decoder that
    /// [would read them straight](weft_protocol::resp::RequestDecoder::is_straight).
    #[inline]
    pub fn repeat_resp(
        &mut self,
        keyspace: &Keyspace,
        client: Origin,
        (bytes, mut at): (&[u8], usize),
    ) -> usize {
        while !self.is_full()
            && let Some(head) = bytes[at..].first_chunk()
            && let Some(Known { shape, id, fast }) = &self.shapes[place(head)]
        {
            let (id, fast) = (*id, *fast);
            let Some(len) = shape.decode(&bytes[at..], &mut self.slots) else {
                self.drop_open();
                break;
            };
            match fast {
                Fast::No => {
                    self.end(keyspace, client, (bytes, at), (What::Command(id), true));
                }
                fast => self.end_known(keyspace, client, (bytes, at), (id, fast, true)),
            }
            at += len;
        }
        at
    }

    #[inline(never)]
    fn end_named(&mut self, keyspace: &Keyspace, client: Origin, from: (&[u8], usize)) -> bool {
        let what = self.recognize(from);
        if let What::Command(id) = what
            && self.recent.is_some_and(|recent| recent.id == id)
        {
            self.learn(id, from);
        }
        self.end(keyspace, client, from, (what, true))
    }

    /// What the request asks for, by its name. A short one is remembered; of a container, with the first argument,
    /// which decides.
    #[inline]
    pub fn recognize(&mut self, from: (&[u8], usize)) -> What {
        let name = self.slot(0, from).unwrap_or_default();
        let packed = Packed::of(name);
        if let (Some(recent), Some(packed)) = (self.recent, packed)
            && recent.name == packed
        {
            return What::Command(recent.id);
        }
        let first = self.slot(1, from);
        if let (Some(recent), Some(name)) = (self.recent_inside, packed)
            && recent.names[0] == name
            && first.and_then(Packed::of) == Some(recent.names[1])
        {
            return What::Command(recent.id);
        }
        let what = What::of(name, first);
        if let What::Command(id) = what {
            self.remember(id, packed, first.and_then(Packed::of));
        }
        what
    }

    /// Remembers what a name was, unless it was too long.
    fn remember(&mut self, id: CommandId, name: Option<Packed>, first: Option<Packed>) {
        let Some(name) = name else { return };
        if id.spec().container.is_some() {
            self.recent_inside = first.map(|first| RecentInside { names: [name, first], id });
        } else if !is_container(id) {
            self.recent = Some(Recent { name, id });
        }
    }

    /// Remembers the shape of the request that is being decoded.
    #[inline]
    fn learn(&mut self, id: CommandId, (bytes, frame_at): (&[u8], usize)) {
        let frame = bytes.get(frame_at..).unwrap_or_default();
        if let Some(head) = frame.first_chunk()
            && self.shapes[place(head)].is_none_or(|known| !known.shape.fits(head))
            && traits::of(id) & traits::BARRIER == 0
            && let Some(shape) = Shape::of(frame, self.slots.list.len() - self.open)
        {
            let args = self.slots.list.get(self.open + 1..).unwrap_or_default();
            let fast = match Fast::of(traits::of(id), args, 0) {
                fast @ (Fast::Get | Fast::Set) => fast,
                _ => Fast::No,
            };
            self.shapes[place(head)] = Some(Known { shape, id, fast });
        }
    }

    /// Takes frames of one client that are GET, SET without options, or PING, as most are. Stops at the first that is
    /// another, or not whole, and says where.
    #[inline]
    pub fn repeat_respb(
        &mut self,
        keyspace: &Keyspace,
        client: Origin,
        (bytes, mut at): (&[u8], usize),
        decoder: &respb::RequestDecoder,
    ) -> usize {
        let slot = |piece: Piece| Slot::Frame { offset: piece.offset, len: piece.len };
        while !self.is_full()
            && let Some(frame) = decoder.plain(&bytes[at..])
            && frame.channel == client.channel
            && let Some(id) = table::by_opcode(frame.opcode)
        {
            match (self.traits[usize::from(id.0)] & traits::FAST, frame.payload) {
                (traits::FAST_GET, Payload::Key(key)) => {
                    self.slots.list.push(slot(key));
                    self.end_known(keyspace, client, (bytes, at), (id, Fast::Get, false));
                }
                (traits::FAST_SET, Payload::Pair(key, value)) => {
                    self.slots.list.extend([slot(key), slot(value)]);
                    self.end_known(keyspace, client, (bytes, at), (id, Fast::Set, false));
                }
                (traits::FAST_PING, Payload::Empty) => {
                    self.end(keyspace, client, (bytes, at), (What::Command(id), false));
                }
                _ => break,
            }
            at += frame.len;
        }
        at
    }

    /// The request is whole, and like one that was GET or SET of one key: as [`Self::end`] would have it.
    #[inline(always)]
    fn end_known(
        &mut self,
        keyspace: &Keyspace,
        client: Origin,
        (bytes, frame_at): (&[u8], usize),
        (id, fast, named): (CommandId, Fast, bool),
    ) {
        let key = self.framed_key(self.open + usize::from(named));
        let hash = keyspace.key(key.of(frame_at, bytes)).hash();
        self.list.push(Request {
            client,
            named,
            fast,
            options: 0,
            what: What::Command(id),
            slots: (self.open as u32, self.slots.list.len() as u32),
            frame_at,
            hash,
            key,
            key_at: 1,
            more: (0, 0),
            keys_before: self.keys,
        });
        self.keys += 1;
        self.open = self.slots.list.len();
    }
    /// Where a slot's bytes lie that is a piece of the frame.
    #[inline(always)]
    fn framed_key(&self, slot: usize) -> Piece {
        match self.slots.list.get(slot) {
            Some(&Slot::Frame { offset, len }) => Piece { offset, len },
            _ => Piece::default(),
        }
    }

    /// The request is whole: RESPB.
    #[inline]
    pub fn end_respb(
        &mut self,
        keyspace: &Keyspace,
        client: Origin,
        frame: Frame<'_>,
        from: (&[u8], usize),
    ) -> bool {
        let what = match frame {
            Frame::Unknown { opcode } => (What::UnknownFrame(opcode), true),
            _ => match frame.command() {
                Some(id) if self.traits[usize::from(id.0)] & traits::CONTAINER == 0 => {
                    (What::Command(id), false)
                }
                Some(id) => (What::within(id, self.slot(0, from)), false),
                None => return self.end_named(keyspace, client, from),
            },
        };
        self.end(keyspace, client, from, what)
    }

    /// The bytes of a slot of the request that is being decoded.
    #[inline]
    fn slot<'a>(&'a self, index: usize, (bytes, frame_at): (&'a [u8], usize)) -> Option<&'a [u8]> {
        match *self.slots.list.get(self.open + index)? {
            Slot::Frame { offset, len } => Some(&bytes[frame_at + offset as usize..][..len as usize]),
            Slot::Side { offset, len } => Some(&self.slots.side[offset as usize..][..len as usize]),
            _ => None,
        }
    }

    #[inline(always)]
    fn end(
        &mut self,
        keyspace: &Keyspace,
        client: Origin,
        (bytes, frame_at): (&[u8], usize),
        (what, named): (What, bool),
    ) -> bool {
        let slots = (self.open as u32, self.slots.list.len() as u32);
        let options = std::mem::take(&mut self.slots.options);
        let traits = match what {
            What::Command(id) => self.traits[usize::from(id.0)],
            _ => 0,
        };
        let name = usize::from(named);
        let (mut key, mut key_at, mut hash, mut more) = (Piece::default(), 0, 0, (0, 0));
        let keys_before = self.keys;
        let mut fast = Fast::No;
        let args = self.slots.list.get(self.open + name..).unwrap_or_default();
        if traits & traits::FAST != 0 {
            fast = Fast::of(traits, args, options);
        }
        if traits & traits::ONE_KEY != 0
            && let Some(&Slot::Frame { offset, len }) = args.first()
        {
            key = Piece { offset, len };
            (key_at, hash) = (1, keyspace.key(key.of(frame_at, bytes)).hash());
            self.keys += 1;
        } else if traits & traits::KEYS != 0 {
            let several = match fast {
                Fast::MGet => self.every_key(keyspace, (name, 1), &bytes[frame_at..]),
                Fast::MSet => self.every_key(keyspace, (name, 2), &bytes[frame_at..]),
                _ => None,
            };
            (key_at, hash, more) = several.unwrap_or_else(|| {
                fast = Fast::No;
                self.find_keys(keyspace, (what, options, named), &bytes[frame_at..])
            });
            self.keys += u32::from(hash != 0) + (more.1 - more.0);
        }
        self.list.push(Request {
            client,
            named,
            fast,
            options,
            what,
            slots,
            frame_at,
            hash,
            key,
            key_at,
            more,
            keys_before,
        });
        self.open = self.slots.list.len();
        traits & traits::BARRIER != 0
    }

    /// The keys of a request each of whose arguments is one, or each second of whose is; as [`Self::find_keys`] gives
    /// them. Nothing if an argument is no piece of the frame.
    #[inline]
    fn every_key(
        &mut self,
        keyspace: &Keyspace,
        (name, step): (usize, usize),
        frame: &[u8],
    ) -> Option<(u16, u64, (u32, u32))> {
        let start = self.more.len();
        let slots = self.slots.list.get(self.open + name..)?;
        if !slots.iter().all(|slot| matches!(slot, Slot::Frame { .. })) {
            return None;
        }
        let keys = slots.iter().step_by(step).filter_map(|slot| match *slot {
            Slot::Frame { offset, len } => frame.get(offset as usize..)?.get(..len as usize),
            _ => None,
        });
        let mut hashes = keys.map(|key| keyspace.key(key).hash());
        let first = hashes.next()?;
        self.more.extend(hashes);
        Some((1, first, (start as u32, self.more.len() as u32)))
    }

    /// The keys of a request that has several, or one that is not its first argument: where the first stands, its hash,
    /// and where the hashes of the others are.
    #[inline(never)]
    fn find_keys(
        &mut self,
        keyspace: &Keyspace,
        (what, options, named): (What, u16, bool),
        frame: &[u8],
    ) -> (u16, u64, (u32, u32)) {
        let texts = Texts::default();
        let slots = (&self.slots.list[self.open..], named, options);
        let args = Args::new(what.spec(), slots, (frame, &self.slots.side, &texts));
        let (start, mut first) = (self.more.len(), None);
        keys::each(&args, |index| {
            let hash = || keyspace.key(args.bytes(index)).hash();
            match first {
                None => first = Some((index, hash())),
                Some(_) if self.more.len() < MORE_KEYS_MAX => self.more.push(hash()),
                Some(_) => {}
            }
        });
        let (index, hash) = first.unwrap_or_default();
        (u16::try_from(index).unwrap_or(0), hash, (start as u32, self.more.len() as u32))
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
        Args::new(
            request.what.spec(),
            (slots, request.named, request.options),
            (frame, &self.slots.side, texts),
        )
        .with_key(request.key_at, request.hash)
        .with_more(self.more_hashes(request))
    }
}
