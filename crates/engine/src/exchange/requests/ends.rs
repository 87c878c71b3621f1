//! Owns: what is found out when a request is whole: its command, its keys, whether it is a barrier. Does not own:
//! requests that begin as others did (`super::repeats`).
//!
//! ```text
//!  end_resp ──┬─ as the last one ──────────────────┐
//!             └─ end_named ── by its name ─────────┤
//!  end_http ──── by its name ──────────────────────┼─► end ─► a Request of the batch
//!  end_respb ─┬─ by its opcode ────────────────────┤
//!             └─ end_named (ARGV, passthrough) ────┘
//!  repeat_resp, repeat_respb ── one key, or none ─► end_known ─► the same, as `end` would have it
//! ```

use weft_protocol::respb::{Frame, Piece};
use weft_protocol::table::{KeyBegin, KeyFind, KeySpec};
use weft_store::Keyspace;

use super::repeats::Packed;
use super::{Fast, MORE_KEYS_MAX, Origin, Request, Requests, What};
use crate::args::{Args, Slot, Texts};
use crate::{keys, traits};

impl Requests {
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

    #[inline(always)]
    pub(super) fn end(
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
                _ if self.says_none((what, name), &bytes[frame_at..]) => Some((0, 0, (0, 0))),
                _ => None,
            };
            (key_at, hash, more) = several.unwrap_or_else(|| {
                fast = Fast::No;
                self.find_keys(keyspace, (what, options, named), &bytes[frame_at..])
            });
            self.keys += u32::from(hash != 0) + (more.1 - more.0);
        }
        let is_barrier = traits & traits::BARRIER != 0
            || traits & traits::ENDS_TRANSACTION != 0 && !self.runs_no_barrier(client);
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
        is_barrier
    }

    /// Whether nothing that EXEC of a client runs now can be a barrier: its MULTI stands in this batch, and all between
    /// has one key. If MULTI is refused, it spoils what was open before, of which EXEC then runs nothing.
    pub(super) fn runs_no_barrier(&self, client: Origin) -> bool {
        for request in self.list.iter().rev().take_while(|request| request.client.is_same(client)) {
            let What::Command(id) = request.what else { return false };
            match self.traits[usize::from(id.0)] {
                traits if traits & traits::OPENS_TRANSACTION != 0 => return true,
                traits if traits & (traits::ONE_KEY | traits::BARRIER) != traits::ONE_KEY => return false,
                _ => {}
            }
        }
        false
    }

    /// The bytes of a slot of the request that is being decoded.
    #[inline]
    pub(super) fn slot<'a>(&'a self, index: usize, (bytes, frame_at): (&'a [u8], usize)) -> Option<&'a [u8]> {
        match *self.slots.list.get(self.open + index)? {
            Slot::Frame { offset, len } => Some(&bytes[frame_at + offset as usize..][..len as usize]),
            Slot::Side { offset, len } => Some(&self.slots.side[offset as usize..][..len as usize]),
            _ => None,
        }
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

    /// Whether a request says that it has no keys, by one digit where it says how many: many scripts have none.
    #[inline]
    fn says_none(&self, (what, name): (What, usize), frame: &[u8]) -> bool {
        let [KeySpec { begin: KeyBegin::Index(begin), find: KeyFind::Count { at: 0, .. }, .. }] =
            what.spec().key_specs
        else {
            return false;
        };
        let place = usize::try_from(*begin).ok().and_then(|begin| (self.open + name + begin).checked_sub(1));
        match place.and_then(|place| self.slots.list.get(place)) {
            Some(&Slot::Frame { offset, len: 1 }) => frame.get(offset as usize) == Some(&b'0'),
            _ => false,
        }
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
}
