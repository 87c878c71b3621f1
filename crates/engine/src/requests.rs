//! Owns: the requests that a worker has decoded and not yet run: a batch. Does not own: the bytes they point into,
//! decoding, running.
//!
//! The server decodes into a batch, from several connections if several have something, and runs it; up to
//! [`BATCH_MAX`] requests are enough to hide the cache misses of their keys behind each other.

use weft_protocol::respb::Frame;
use weft_protocol::table::{self, CommandId, CommandSpec};
use weft_store::{Ahead, Keyspace};

use crate::args::{Args, Slot, Slots, Texts};
use crate::{keys, traits};

/// Requests in a batch at most.
pub const BATCH_MAX: usize = 64;

/// Keys behind the first that a batch prefetches: what they need fits into the second-level cache.
const MORE_KEYS_MAX: usize = 1024;

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// A command of the table, or a subcommand.
    Command(CommandId),
    /// No command of the table.
    UnknownCommand,
    /// A container without such a subcommand.
    UnknownSubcommand(CommandId),
    /// A RESPB frame of F002 to FEFF.
    UnknownFrame(u16),
}

impl What {
    /// The command of a name and, for a container, of the first argument.
    #[must_use]
    pub fn of(name: &[u8], first: Option<&[u8]>) -> Self {
        table::by_name(name).map_or(Self::UnknownCommand, |id| Self::within(id, first))
    }
    /// The subcommand, if the command is a container.
    #[must_use]
    pub fn within(id: CommandId, first: Option<&[u8]>) -> Self {
        match first {
            Some(first) if is_container(id) => {
                table::subcommand(id, first).map_or(Self::UnknownSubcommand(id), Self::Command)
            }
            _ => Self::Command(id),
        }
    }
    /// The command's entry; of what is unknown, one that stands for it.
    #[must_use]
    pub fn spec(self) -> &'static CommandSpec {
        match self {
            Self::Command(id) | Self::UnknownSubcommand(id) => id.spec(),
            Self::UnknownCommand | Self::UnknownFrame(_) => CommandId(0).spec(),
        }
    }
}

/// Whether a command has subcommands.
#[must_use]
pub fn is_container(id: CommandId) -> bool {
    traits::of(id) & traits::CONTAINER != 0
}

/// A name of up to 16 bytes as one number, and the command that it was: most requests have the name of the one before.
#[derive(Clone, Copy, Debug)]
struct Recent {
    name: u128,
    len: usize,
    id: CommandId,
}

/// The bytes of a short name as a number.
#[inline]
fn packed(name: &[u8]) -> Option<u128> {
    if name.len() > 16 {
        return None;
    }
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name);
    Some(u128::from_ne_bytes(bytes))
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The connection, in the worker's own numbering.
    pub connection: u32,
    /// RESPB channel; 0 elsewhere.
    pub channel: u16,
    /// Whether the slots begin with the command's name.
    named: bool,
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
    /// Where its first key stands; 0 for none.
    key_at: u16,
    /// The hashes of its further keys.
    more: (u32, u32),
}

impl Request {
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
#[derive(Debug, Default)]
pub struct Requests {
    slots: Slots,
    list: Vec<Request>,
    /// Where the slots of the request begin that is being decoded.
    open: usize,
    recent: Option<Recent>,
    /// Hashes of the keys behind the first of requests with several, for prefetching.
    more: Vec<u64>,
}

impl Requests {
    /// Forgets all requests. Slots of one that is not whole are to be [taken](Self::take_open) before.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.list.clear();
        self.more.clear();
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
        self.list.len() >= BATCH_MAX
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// The hashes of all keys of a request, as far as they are prefetched.
    pub(crate) fn hashes(&self, request: &Request) -> impl Iterator<Item = u64> + '_ {
        let (start, end) = request.more;
        let first = (request.hash != 0).then_some(request.hash);
        first.into_iter().chain(self.more[start as usize..end as usize].iter().copied())
    }
    /// Whether prefetching helps: there is more than one key to wait for.
    pub(crate) fn has_many_keys(&self) -> bool {
        self.list.len() > 1 || !self.more.is_empty()
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
    pub fn end_resp(
        &mut self,
        keyspace: &Keyspace,
        connection: u32,
        (bytes, frame_at): (&[u8], usize),
    ) -> bool {
        self.end_named(keyspace, (connection, 0), (bytes, frame_at))
    }

    fn end_named(
        &mut self,
        keyspace: &Keyspace,
        client: (u32, u16),
        (bytes, frame_at): (&[u8], usize),
    ) -> bool {
        let slot = |index: usize| match self.slots.list.get(self.open + index) {
            Some(&Slot::Frame { offset, len }) => Some(&bytes[frame_at + offset as usize..][..len as usize]),
            Some(&Slot::Side { offset, len }) => Some(&self.slots.side[offset as usize..][..len as usize]),
            _ => None,
        };
        let name = slot(0).unwrap_or_default();
        let name_packed = packed(name);
        let what = match self.recent {
            Some(recent) if Some(recent.name) == name_packed && recent.len == name.len() => {
                What::within(recent.id, slot(1))
            }
            _ => {
                let id = table::by_name(name);
                let remember = |id| Some(Recent { name: name_packed?, len: name.len(), id });
                let what = id.map_or(What::UnknownCommand, |id| What::within(id, slot(1)));
                self.recent = id.and_then(remember);
                what
            }
        };
        self.end(keyspace, client, (bytes, frame_at), what, true)
    }

    /// The request is whole: RESPB.
    #[inline]
    pub fn end_respb(
        &mut self,
        keyspace: &Keyspace,
        (connection, channel): (u32, u16),
        frame: Frame<'_>,
        (bytes, frame_at): (&[u8], usize),
    ) -> bool {
        let client = (connection, channel);
        let id = match frame {
            Frame::Unknown { opcode } => {
                return self.end(keyspace, client, (bytes, frame_at), What::UnknownFrame(opcode), true);
            }
            _ => frame.command(),
        };
        let Some(id) = id else { return self.end_named(keyspace, client, (bytes, frame_at)) };
        let first = match self.slots.list.get(self.open) {
            Some(&Slot::Frame { offset, len }) => Some(&bytes[frame_at + offset as usize..][..len as usize]),
            _ => None,
        };
        self.end(keyspace, client, (bytes, frame_at), What::within(id, first), false)
    }

    fn end(
        &mut self,
        keyspace: &Keyspace,
        (connection, channel): (u32, u16),
        (bytes, frame_at): (&[u8], usize),
        what: What,
        named: bool,
    ) -> bool {
        let slots = (self.open as u32, self.slots.list.len() as u32);
        let options = std::mem::take(&mut self.slots.options);
        let mut request = Request {
            connection,
            channel,
            named,
            options,
            what,
            slots,
            frame_at,
            hash: 0,
            key_at: 0,
            more: (0, 0),
        };
        let mut is_barrier = false;
        if let What::Command(id) = what {
            let traits = traits::of(id);
            is_barrier = traits & traits::BARRIER != 0;
            if traits & traits::KEYS != 0 {
                let texts = Texts::default();
                let mut more = std::mem::take(&mut self.more);
                let start = more.len();
                let args = self.args(&request, bytes, &texts);
                let mut first = None;
                if traits & traits::ONE_KEY != 0 {
                    first = (args.len() > 1).then_some(1);
                } else {
                    keys::each(&args, |index| match first {
                        None => first = Some(index),
                        Some(_) if more.len() < MORE_KEYS_MAX => {
                            more.push(keyspace.key(args.bytes(index)).hash());
                        }
                        Some(_) => {}
                    });
                }
                if let Some(index) = first {
                    request.hash = keyspace.key(args.bytes(index)).hash();
                    request.key_at = u16::try_from(index).unwrap_or(0);
                }
                request.more = (start as u32, more.len() as u32);
                self.more = more;
            }
        }
        self.list.push(request);
        self.open = self.slots.list.len();
        is_barrier
    }

    /// What the two requests behind one will look for, if they are of the same client and about the same key. `before`:
    /// the answer for the request before it, if that was the one before. Costs two comparisons where they are not.
    #[inline]
    pub(crate) fn ahead(&self, at: usize, bytes: &[u8], keyspace: &Keyspace, before: Ahead) -> Ahead {
        let [this, next, rest @ ..] = &self.list[at..] else { return Ahead::default() };
        let is_like = |other: &Request| other.hash == this.hash && other.connection == this.connection;
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
        let place = match traits::of(id) {
            traits if traits & traits::MEMBER_SECOND != 0 => 2,
            traits if traits & traits::MEMBER_THIRD != 0 => 3,
            _ => return 0,
        };
        let texts = Texts::default();
        let args = self.args(request, bytes, &texts);
        if place < args.len() { keyspace.key(args.bytes(place)).hash() } else { 0 }
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
    }
}
