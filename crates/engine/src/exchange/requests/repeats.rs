//! Owns: knowing a request by what it begins with, as most begin as one before did. Does not own: reading one anew
//! (`super::ends`).

use weft_protocol::resp::Shape;
use weft_protocol::respb::{self, Payload, Piece};
use weft_protocol::table::{self, CommandId};
use weft_store::Keyspace;

use super::{Fast, Origin, Request, Requests, What, is_container};
use crate::args::Slot;
use crate::traits;

/// A short name and the command that it was: most requests have the name of the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    pub(super) name: Packed,
    pub(super) id: CommandId,
}

/// The same of a container and its first argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentInside {
    names: [Packed; 2],
    id: CommandId,
}

/// What a request is that begins as another did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    shape: Shape,
    id: CommandId,
    way: Way,
}

/// What is known of a request before it is read.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Its first argument is its only key; how it can be run without its handler.
    OneKey(Fast),
    /// It has no keys.
    Keyless(Fast),
    /// It ends a transaction, and is a barrier if that may run one.
    EndsTransaction,
    /// It must be looked at each time.
    Each,
}

impl Way {
    /// Of a request with these arguments, all of them pieces of its frame.
    fn of(traits: u16, args: &[Slot]) -> Self {
        match (Fast::of(traits, args, 0), args) {
            _ if traits & traits::ENDS_TRANSACTION != 0 => Self::EndsTransaction,
            (fast, _) if traits & traits::KEYS == 0 => Self::Keyless(fast),
            (fast, [Slot::Frame { .. }, ..]) if traits & traits::ONE_KEY != 0 => Self::OneKey(fast),
            _ => Self::Each,
        }
    }
}

/// Shapes of requests that are remembered, by what they begin with.
pub(super) const SHAPES: usize = 8;

/// The place of a shape: most clients send few kinds of requests, again and again.
#[inline]
fn place(head: &[u8; 16]) -> usize {
    let [_, arguments, _, _, _, len, _, _, one, two, three, ..] = *head;
    let word = u32::from_le_bytes([arguments ^ len << 4, one, two, three]);
    (word.wrapping_mul(0x9E37_79B1) >> 29) as usize % SHAPES
}

/// A name of 1 to 16 bytes in two words: its first and its last bytes, which overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    head: u64,
    tail: u64,
    len: usize,
}

impl Packed {
    #[inline]
    pub(super) fn of(name: &[u8]) -> Option<Self> {
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

impl Requests {
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
            && let Some(Known { shape, id, way }) = &self.shapes[place(head)]
        {
            let (id, way) = (*id, *way);
            let Some(len) = shape.decode(&bytes[at..], &mut self.slots) else {
                self.drop_open();
                break;
            };
            match way {
                Way::OneKey(fast) => self.end_keyed(keyspace, client, (bytes, at), (id, fast, true)),
                Way::Keyless(fast) => self.end_keyless(client, at, (id, fast, true)),
                Way::EndsTransaction if self.runs_no_barrier(client) => {
                    self.end_keyless(client, at, (id, Fast::No, true));
                }
                Way::EndsTransaction => {
                    self.drop_open();
                    break;
                }
                Way::Each => {
                    self.end(keyspace, client, (bytes, at), (What::Command(id), true));
                }
            }
            at += len;
        }
        at
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
                    self.end_keyed(keyspace, client, (bytes, at), (id, Fast::Get, false));
                }
                (traits::FAST_SET, Payload::Pair(key, value)) => {
                    self.slots.list.extend([slot(key), slot(value)]);
                    self.end_keyed(keyspace, client, (bytes, at), (id, Fast::Set, false));
                }
                (traits::FAST_PING, Payload::Empty) => {
                    self.end_keyless(client, at, (id, Fast::Ping, false));
                }
                _ => break,
            }
            at += frame.len;
        }
        at
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
    pub(super) fn learn(&mut self, id: CommandId, (bytes, frame_at): (&[u8], usize)) {
        let frame = bytes.get(frame_at..).unwrap_or_default();
        if let Some(head) = frame.first_chunk()
            && self.shapes[place(head)].is_none_or(|known| !known.shape.fits(head))
            && traits::of(id) & traits::BARRIER == 0
            && let Some(shape) = Shape::of(frame, self.slots.list.len() - self.open)
        {
            let args = self.slots.list.get(self.open + 1..).unwrap_or_default();
            let way = Way::of(traits::of(id), args);
            self.shapes[place(head)] = Some(Known { shape, id, way });
        }
    }
    /// The request is whole, and its first argument is its only key: as [`Self::end`] would have it.
    #[inline(always)]
    fn end_keyed(
        &mut self,
        keyspace: &Keyspace,
        client: Origin,
        (bytes, frame_at): (&[u8], usize),
        known: (CommandId, Fast, bool),
    ) {
        let key = self.framed_key(self.open + usize::from(known.2));
        let hash = keyspace.key(key.of(frame_at, bytes)).hash();
        self.end_known(client, frame_at, known, (key, 1, hash));
        self.keys += 1;
    }
    /// The same without keys.
    #[inline(always)]
    fn end_keyless(&mut self, client: Origin, frame_at: usize, known: (CommandId, Fast, bool)) {
        self.end_known(client, frame_at, known, (Piece::default(), 0, 0));
    }
    #[inline(always)]
    fn end_known(
        &mut self,
        client: Origin,
        frame_at: usize,
        (id, fast, named): (CommandId, Fast, bool),
        (key, key_at, hash): (Piece, u16, u64),
    ) {
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
            key_at,
            more: (0, 0),
            keys_before: self.keys,
        });
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
}
