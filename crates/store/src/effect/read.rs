//! Owns: reading effects back from a tape. Does not own: how they are written (`super::tape`), what they mean.

use super::tape::{Place, SAME_KEY, Tape, TapeMark, read_frame, verb};
use super::{Cause, Effect, Kind, Pairs, Text};
use crate::catalogue::Section;
use crate::list::End;
use crate::stream::StreamId;

/// One effect as it was told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyedEffect<'a> {
    /// The database.
    pub db: u8,
    /// The key; empty for barriers.
    pub key: &'a [u8],
    /// What happened.
    pub effect: Effect<'a>,
}

impl KeyedEffect<'_> {
    /// The last database that it is on.
    #[must_use]
    pub fn last_db(&self) -> u8 {
        match self.effect {
            Effect::Swap { with: other }
            | Effect::Move { to_db: other, .. }
            | Effect::Copy { to_db: other, .. } => self.db.max(other),
            _ => self.db,
        }
    }
}

/// The effects of a tape, in their order.
#[derive(Clone, Debug)]
pub struct Read<'a> {
    bytes: &'a [u8],
    at: usize,
    key: Option<Place>,
    /// Bytes of the tape before these, and the tape, if more pieces of it may follow.
    before: usize,
    tape: Option<&'a Tape>,
}

impl<'a> Read<'a> {
    /// Of the bytes of a whole tape. They must be a tape's: what is read wrong here was written wrong in this process.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, key: None, before: 0, tape: None }
    }
    pub(super) fn from(tape: &'a Tape, mark: TapeMark) -> Self {
        let (bytes, before) = tape.piece(mark.at);
        let at = mark.at - before;
        // No piece begins with the key of the one before it.
        let key = if at == 0 { None } else { mark.key };
        Self { bytes, at, key, before, tape: Some(tape) }
    }
    /// Bytes that are left, where it is of a group's: what is kept of them takes about as many.
    #[inline]
    #[must_use]
    pub const fn bytes_left(&self) -> usize {
        self.bytes.len() - self.at
    }
    /// Database, key and value, if all that there is is a string that was set and has no expiry: what logs consist of.
    #[inline]
    #[must_use]
    pub fn as_set(&self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let [verb::SET_BYTES, db, key_len @ ..128, rest @ ..] = self.bytes.get(self.at..)? else {
            return self.as_long_set();
        };
        match rest.split_at_checked(usize::from(*key_len))? {
            // Lengths are a byte each.
            (key, [0, len @ ..128, text @ ..]) => {
                (text.len() == usize::from(*len)).then_some((*db, key, text))
            }
            _ => self.as_long_set(),
        }
    }
    /// The same of any lengths.
    fn as_long_set(&self) -> Option<(u8, &'a [u8], &'a [u8])> {
        if self.bytes.get(self.at) != Some(&verb::SET_BYTES) {
            return None;
        }
        let mut read = Read { at: self.at + 1, ..Read::new(self.bytes) };
        let (db, key) = (read.byte(), read.slice());
        let text = (read.number() == 0).then(|| read.slice())?;
        (read.at == read.bytes.len()).then_some((db, key, text))
    }
    /// Where it stands.
    #[must_use]
    pub const fn mark(&self) -> TapeMark {
        TapeMark { at: self.before + self.at, key: self.key }
    }

    #[inline]
    fn byte(&mut self) -> u8 {
        let byte = self.bytes[self.at];
        self.at += 1;
        byte
    }
    #[inline]
    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return value;
            }
            shift += 7;
        }
    }
    #[inline]
    fn slice(&mut self) -> &'a [u8] {
        let len = self.number() as usize;
        self.at += len;
        &self.bytes[self.at - len..self.at]
    }
    fn optional(&mut self) -> Option<u64> {
        (self.number() == 1).then(|| self.number())
    }
    fn id(&mut self) -> StreamId {
        StreamId::new(self.number(), self.number())
    }
    fn end(&mut self) -> End {
        if self.byte() == End::Front as u8 { End::Front } else { End::Back }
    }

    fn effect(&mut self, verb: u8) -> Effect<'a> {
        match verb {
            verb::SET_BYTES => {
                let expire_ms = self.optional();
                Effect::Set { value: Text::Bytes(self.slice()), expire_ms }
            }
            verb::SET_INT => {
                let (expire_ms, coded) = (self.optional(), self.number());
                let value = (coded >> 1) as i64 ^ -((coded & 1) as i64);
                Effect::Set { value: Text::Int(value), expire_ms }
            }
            verb::NEW => {
                let kind = match self.byte() {
                    0 => Kind::List,
                    1 => Kind::Hash,
                    2 => Kind::Set,
                    3 => Kind::SortedSet,
                    _ => Kind::Stream,
                };
                Effect::New { kind, expire_ms: self.optional() }
            }
            verb::WRITE => Effect::Write { offset: self.number(), bytes: self.slice() },
            verb::EXPIRE => Effect::Expire { expire_ms: self.optional() },
            verb::DELETE => {
                let cause = match self.byte() {
                    0 => Cause::Deleted,
                    1 => Cause::Expired,
                    2 => Cause::Overdue,
                    _ => Cause::Evicted,
                };
                Effect::Delete { cause }
            }
            verb::MOVE => Effect::Move { to_db: self.byte(), to: self.slice() },
            verb::COPY => Effect::Copy { to_db: self.byte(), to: self.slice() },
            verb::FLUSH => Effect::Flush,
            verb::SWAP => Effect::Swap { with: self.byte() },
            verb::CATALOGUE => {
                let section = Section::ALL[usize::from(self.byte())];
                let (is_there, bytes) = (self.byte() != 0, self.slice());
                Effect::Catalogue { section, value: is_there.then_some(bytes) }
            }
            verb::WROTE => Effect::Wrote { by_itself: self.byte() != 0 },
            verb::CREATED => Effect::Created,
            verb::MISSED => Effect::Missed,
            verb::EVENT => Effect::Event {
                class: self.number() as u32,
                name: std::str::from_utf8(self.slice()).unwrap_or_default(),
            },
            _ => self.member_effect(verb),
        }
    }

    fn member_effect(&mut self, verb: u8) -> Effect<'a> {
        match verb {
            verb::LIST_PUSH => Effect::ListPush { end: self.end(), element: self.slice() },
            verb::LIST_POP => Effect::ListPop { end: self.end(), count: self.number() },
            verb::LIST_SET => Effect::ListSet { index: self.number(), element: self.slice() },
            verb::LIST_INSERT => Effect::ListInsert { index: self.number(), element: self.slice() },
            verb::LIST_REMOVE => Effect::ListRemove { index: self.number() },
            verb::HASH_SET => {
                Effect::HashSet { field: self.slice(), value: self.slice(), expire_ms: self.optional() }
            }
            verb::HASH_EXPIRE => Effect::HashExpire { field: self.slice(), expire_ms: self.optional() },
            verb::HASH_DELETE => Effect::HashDelete { field: self.slice() },
            verb::FIELD_EXPIRED => Effect::FieldExpired { field: self.slice() },
            verb::FIELDS_EXPIRED => Effect::FieldsExpired { last: self.byte() != 0 },
            verb::SET_ADD => Effect::SetAdd { member: self.slice() },
            verb::SET_REMOVE => Effect::SetRemove { member: self.slice() },
            verb::SORTED_SET_ADD => {
                let member = self.slice();
                self.at += 8;
                let score =
                    self.bytes[self.at - 8..self.at].first_chunk().map_or(0.0, |s| f64::from_le_bytes(*s));
                Effect::SortedSetAdd { member, score }
            }
            verb::SORTED_SET_REMOVE => Effect::SortedSetRemove { member: self.slice() },
            _ => self.stream_effect(verb),
        }
    }

    fn stream_effect(&mut self, verb: u8) -> Effect<'a> {
        match verb {
            verb::STREAM_APPEND => {
                let (id, count) = (self.id(), self.number() as usize);
                let pairs = PackedPairs { bytes: self.bytes, at: self.at, count };
                for _ in 0..2 * count {
                    self.slice();
                }
                Effect::StreamAppend { id, fields: Pairs::Packed(pairs) }
            }
            verb::STREAM_DELETE => Effect::StreamDelete { id: self.id() },
            verb::STREAM_TRIM => Effect::StreamTrim { len: self.number() },
            verb::STREAM_COUNTERS => Effect::StreamCounters {
                last_id: self.id(),
                entries_added: self.number(),
                max_deleted_id: self.id(),
            },
            verb::GROUP_CREATE => {
                Effect::GroupCreate { group: self.slice(), last_id: self.id(), entries_read: self.optional() }
            }
            verb::GROUP_DESTROY => Effect::GroupDestroy { group: self.slice() },
            verb::GROUP_POSITION => Effect::GroupPosition {
                group: self.slice(),
                last_id: self.id(),
                entries_read: self.optional(),
            },
            verb::CONSUMER => Effect::Consumer {
                group: self.slice(),
                consumer: self.slice(),
                seen_ms: self.number(),
                active_ms: self.optional(),
            },
            verb::CONSUMER_DELETE => Effect::ConsumerDelete { group: self.slice(), consumer: self.slice() },
            verb::PENDING => Effect::Pending {
                group: self.slice(),
                consumer: self.slice(),
                id: self.id(),
                delivered_ms: self.number(),
                deliveries: self.number(),
            },
            verb::PENDING_REMOVE => Effect::PendingRemove { group: self.slice(), id: self.id() },
            verb => unreachable!("no effect has the verb {verb}"),
        }
    }
}

impl<'a> Iterator for Read<'a> {
    type Item = KeyedEffect<'a>;
    fn next(&mut self) -> Option<KeyedEffect<'a>> {
        if self.at >= self.bytes.len() {
            let (tape, end) = (self.tape?, TapeMark { at: self.before + self.at, key: None });
            let (next, before) = tape.piece(end.at);
            if before == self.before || next.is_empty() {
                return None;
            }
            *self = Read::from(tape, end);
        }
        if let Some((db, key, text, len)) = read_frame(&self.bytes[self.at..]) {
            self.at += len;
            return Some(KeyedEffect {
                db,
                key,
                effect: Effect::Set { value: Text::Bytes(text), expire_ms: None },
            });
        }
        let verb = self.byte();
        if verb & SAME_KEY == 0 {
            let db = self.byte();
            let len = self.slice().len();
            self.key = Some(Place { db, at: self.at - len, len });
        }
        let Place { db, at, len } = self.key?;
        let key = &self.bytes[at..at + len];
        Some(KeyedEffect { db, key, effect: self.effect(verb & !SAME_KEY) })
    }
}

/// Names and values as they stand on a tape.
#[derive(Clone, Copy)]
pub struct PackedPairs<'a> {
    bytes: &'a [u8],
    at: usize,
    count: usize,
}

impl<'a> PackedPairs<'a> {
    pub(super) fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone {
        let mut read = Read { at: self.at, ..Read::new(self.bytes) };
        (0..self.count).map(move |_| (read.slice(), read.slice()))
    }
}
