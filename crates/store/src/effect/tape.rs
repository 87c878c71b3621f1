//! Owns: effects one behind the other in one buffer. Does not own: reading them back (`super::read`), what they mean.
//!
//! ```text
//!  0        1
//! +--------+----+----------------+---------------------------------+
//! | verb   | db | length, key    | the verb's fields, in order     |
//! +--------+----+----------------+---------------------------------+
//! ```
//! Bit 7 of the verb says that database and key are those of the effect before, and left out. Numbers and lengths are
//! LEB128 of up to 64 bits, ids two of them, an optional number is one more than it says and 0 for none; a score is its
//! 8 bytes. An HSET of one field of 16 bytes with a value of 16 takes 36 bytes beside its key.
//!
//! What logs mostly consist of, a short string that is set and has no expiry, stands in rows ([`frame`]) as logs have
//! it: whoever writes them copies a row as it is. Bytes are big endian there, and the first one is no other verb.
//! ```text
//!  0    1    2    3    4       6
//! +----+----+----+----+-------+-----+-------+-------+----+
//! | 0  | 1  | 0  | db | len   | key | len   | text  | 0  |
//! +----+----+----+----+-------+-----+-------+-------+----+
//!                       u16           u32
//! ```

use super::read::Read;
use super::{Effect, Text};
use crate::stream::StreamId;
use std::sync::Arc;

/// Database and key are those of the effect before.
pub(super) const SAME_KEY: u8 = 0x80;
/// What a tape keeps of its memory when it is cleared.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Effects in their order.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// What was lent to others, and is read here still: where each piece begins.
    lent: Vec<(usize, Arc<Vec<u8>>)>,
    /// Bytes of them.
    before: usize,
    bytes: Vec<u8>,
    /// Where database and key of the last effect stand, if there is one.
    key: Option<Place>,
}

/// A place on a tape, to go back to or to read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapeMark {
    pub(super) at: usize,
    pub(super) key: Option<Place>,
}

impl TapeMark {
    /// Whether it stands behind another one of the same tape.
    #[must_use]
    pub const fn is_behind(self, other: Self) -> bool {
        self.at > other.at
    }
    /// Bytes that stand before it.
    pub(crate) const fn at(self) -> usize {
        self.at
    }
}

/// Where a key stands in its piece of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) db: u8,
    pub(super) at: usize,
    pub(super) len: usize,
}

/// Effects of a tape that somebody else reads.
#[derive(Clone, Debug)]
pub(crate) struct Loan {
    bytes: Arc<Vec<u8>>,
    from: usize,
}

impl Loan {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..]
    }
}

/// Bytes of a [`frame`] before its key, before its text, and behind that.
const FRAME_HEAD_BYTES: usize = 6;
const FRAME_LEN_BYTES: usize = 4;
const FRAME_END_BYTES: usize = 1;

/// Bytes of the [`frame`] of a key and a text, where these are not too long.
#[inline]
pub(crate) fn frame_bytes(key: &[u8], text: &[u8]) -> Option<usize> {
    let is_short = key.len() <= usize::from(u16::MAX) && text.len() <= u32::MAX as usize;
    is_short.then(|| FRAME_HEAD_BYTES + key.len() + FRAME_LEN_BYTES + text.len() + FRAME_END_BYTES)
}
/// Writes a string that is set and has no expiry as RESPB has it, into the [`frame_bytes`] that it takes. Says whether
/// it has as many: a row that is written piece by piece would look at its end for each.
#[inline(always)]
pub(crate) fn frame(out: &mut [u8], db: u8, key: &[u8], text: &[u8]) -> bool {
    let [high, low] = (key.len() as u16).to_be_bytes();
    let Some((head, out)) = out.split_first_chunk_mut() else { return false };
    *head = [verb::SET_FRAME, 1, 0, db, high, low];
    let Some((name, out)) = out.split_at_mut_checked(key.len()) else { return false };
    copy_short(name, key);
    let Some((len, out)) = out.split_first_chunk_mut::<FRAME_LEN_BYTES>() else { return false };
    *len = (text.len() as u32).to_be_bytes();
    let Some((end, out)) = out.split_last_mut() else { return false };
    *end = 0;
    if out.len() != text.len() {
        return false;
    }
    copy_short(out, text);
    true
}
/// Copies as many bytes as there are, without a call where they are few, as keys and texts are mostly.
#[inline(always)]
fn copy_short(to: &mut [u8], from: &[u8]) {
    // Two pieces, which overlap.
    if from.len() <= 32
        && let (Some(first), Some(last)) = (from.first_chunk::<16>(), from.last_chunk::<16>())
    {
        if let Some(to) = to.first_chunk_mut() {
            *to = *first;
        }
        if let Some(to) = to.last_chunk_mut() {
            *to = *last;
        }
    } else if from.len() <= 16
        && let (Some(first), Some(last)) = (from.first_chunk::<8>(), from.last_chunk::<8>())
    {
        if let Some(to) = to.first_chunk_mut() {
            *to = *first;
        }
        if let Some(to) = to.last_chunk_mut() {
            *to = *last;
        }
    } else {
        copy_long(to, from);
    }
}
/// A call that the loop around it need not keep registers for.
#[cold]
#[inline(never)]
fn copy_long(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}
/// Database, key and text of the frame that some bytes begin with, and its length.
#[inline]
pub(crate) fn read_frame(bytes: &[u8]) -> Option<(u8, &[u8], &[u8], usize)> {
    let (&[verb::SET_FRAME, 1, 0, db, high, low], rest) = bytes.split_first_chunk()? else { return None };
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
    let (len, rest) = rest.split_first_chunk::<FRAME_LEN_BYTES>()?;
    let text = rest.get(..u32::from_be_bytes(*len) as usize)?;
    let beside = FRAME_HEAD_BYTES + FRAME_LEN_BYTES + FRAME_END_BYTES;
    Some((db, key, text, beside + key.len() + text.len()))
}

/// What [`Tape::push`] writes of a string without an expiry, where nothing is before it.
pub(crate) fn set(out: &mut Vec<u8>, db: u8, key: &[u8], text: &[u8]) {
    out.extend_from_slice(&[verb::SET_BYTES, db]);
    slice(out, key);
    number(out, 0);
    slice(out, text);
}

fn slice(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

impl Tape {
    /// Whether nothing is on it.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.before + self.bytes.len() == 0
    }
    /// Its bytes, of which nothing was lent; [`Read::new`] takes them again.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        debug_assert!(self.lent.is_empty(), "it has several pieces");
        &self.bytes
    }
    /// Its end.
    #[must_use]
    pub const fn mark(&self) -> TapeMark {
        TapeMark { at: self.before + self.bytes.len(), key: self.key }
    }
    /// Forgets what was told behind a mark.
    pub fn rollback(&mut self, mark: TapeMark) {
        while mark.at < self.before
            && let Some((before, bytes)) = self.lent.pop()
        {
            self.before = before;
            self.bytes = Arc::unwrap_or_clone(bytes);
        }
        self.bytes.truncate(mark.at - self.before);
        // No piece begins with the key of the one before it.
        self.key = mark.key.filter(|_| mark.at > self.before);
    }
    /// Forgets all.
    pub fn clear(&mut self) {
        self.lent.clear();
        self.before = 0;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.key = None;
    }
    /// The next effect says its key again: what follows can be read by itself.
    pub const fn forget_key(&mut self) {
        self.key = None;
    }
    /// Adds all of another one, of which nothing was lent.
    pub(crate) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(other.bytes());
        self.key = None;
    }
    /// The bytes from a mark on, where [`Tape::forget_key`] was called.
    pub(crate) fn bytes_from(&self, mark: TapeMark) -> &[u8] {
        &self.bytes[mark.at - self.before..]
    }
    /// The same for somebody else, who need not copy them: what follows is a piece of its own.
    pub(crate) fn lend_from(&mut self, mark: TapeMark) -> Loan {
        let bytes = Arc::new(std::mem::take(&mut self.bytes));
        let from = mark.at - self.before;
        self.lent.push((self.before, Arc::clone(&bytes)));
        self.before += bytes.len();
        self.key = None;
        Loan { bytes, from }
    }
    /// The piece in which a place lies, and where it begins.
    pub(super) fn piece(&self, at: usize) -> (&[u8], usize) {
        if at < self.before {
            let next = self.lent.partition_point(|(before, _)| *before <= at);
            let (before, bytes) = &self.lent[next - 1];
            return (bytes, *before);
        }
        (&self.bytes, self.before)
    }
    /// The effects from a mark on.
    pub fn read_from(&self, mark: TapeMark) -> Read<'_> {
        Read::from(self, mark)
    }
    /// The effects.
    pub fn read(&self) -> Read<'_> {
        Read::from(self, TapeMark::default())
    }

    /// Adds an effect.
    pub fn push(&mut self, db: u8, key: &[u8], effect: &Effect<'_>) {
        let at = self.bytes.len();
        let same = self
            .key
            .is_some_and(|place| place.db == db && self.bytes[place.at..place.at + place.len] == *key);
        self.bytes.push(if same { SAME_KEY } else { 0 });
        if !same {
            self.bytes.push(db);
            self.slice(key);
            self.key = Some(Place { db, at: self.bytes.len() - key.len(), len: key.len() });
        }
        self.bytes[at] |= self.fields(effect);
    }

    fn slice(&mut self, bytes: &[u8]) {
        slice(&mut self.bytes, bytes);
    }
    fn number(&mut self, value: u64) {
        number(&mut self.bytes, value);
    }
    /// No optional number is the greatest: that stands for none elsewhere too.
    fn optional(&mut self, value: Option<u64>) {
        match value {
            None => self.number(0),
            Some(value) => {
                self.number(1);
                self.number(value);
            }
        }
    }
    fn id(&mut self, id: StreamId) {
        self.number(id.ms);
        self.number(id.seq);
    }

    /// Writes an effect's fields and returns its verb.
    fn fields(&mut self, effect: &Effect<'_>) -> u8 {
        match *effect {
            Effect::Set { value, expire_ms } => {
                self.optional(expire_ms);
                match value {
                    Text::Int(value) => {
                        // Zigzag: small numbers of either sign are short.
                        self.number((value << 1 ^ value >> 63) as u64);
                        return verb::SET_INT;
                    }
                    Text::Bytes(bytes) => self.slice(bytes),
                }
                verb::SET_BYTES
            }
            Effect::New { kind, expire_ms } => {
                self.bytes.push(kind as u8);
                self.optional(expire_ms);
                verb::NEW
            }
            Effect::Write { offset, bytes } => {
                self.number(offset);
                self.slice(bytes);
                verb::WRITE
            }
            Effect::Expire { expire_ms } => {
                self.optional(expire_ms);
                verb::EXPIRE
            }
            Effect::Delete { cause } => {
                self.bytes.push(cause as u8);
                verb::DELETE
            }
            Effect::Move { to_db, to } => {
                self.bytes.push(to_db);
                self.slice(to);
                verb::MOVE
            }
            Effect::Copy { to_db, to } => {
                self.bytes.push(to_db);
                self.slice(to);
                verb::COPY
            }
            Effect::Flush => verb::FLUSH,
            Effect::Swap { with } => {
                self.bytes.push(with);
                verb::SWAP
            }
            Effect::Catalogue { section, value } => {
                self.bytes.push(section as u8);
                self.bytes.push(value.is_some().into());
                self.slice(value.unwrap_or_default());
                verb::CATALOGUE
            }
            Effect::Wrote { by_itself } => {
                self.bytes.push(by_itself.into());
                verb::WROTE
            }
            Effect::Created => verb::CREATED,
            Effect::Missed => verb::MISSED,
            Effect::Event { class, name } => {
                self.number(class.into());
                self.slice(name.as_bytes());
                verb::EVENT
            }
            _ => self.member_fields(effect),
        }
    }

    fn member_fields(&mut self, effect: &Effect<'_>) -> u8 {
        match *effect {
            Effect::ListPush { end, element } => {
                self.bytes.push(end as u8);
                self.slice(element);
                verb::LIST_PUSH
            }
            Effect::ListPop { end, count } => {
                self.bytes.push(end as u8);
                self.number(count);
                verb::LIST_POP
            }
            Effect::ListSet { index, element } => {
                self.number(index);
                self.slice(element);
                verb::LIST_SET
            }
            Effect::ListInsert { index, element } => {
                self.number(index);
                self.slice(element);
                verb::LIST_INSERT
            }
            Effect::ListRemove { index } => {
                self.number(index);
                verb::LIST_REMOVE
            }
            Effect::HashSet { field, value, expire_ms } => {
                self.slice(field);
                self.slice(value);
                self.optional(expire_ms);
                verb::HASH_SET
            }
            Effect::HashExpire { field, expire_ms } => {
                self.slice(field);
                self.optional(expire_ms);
                verb::HASH_EXPIRE
            }
            Effect::HashDelete { field } => {
                self.slice(field);
                verb::HASH_DELETE
            }
            Effect::FieldExpired { field } => {
                self.slice(field);
                verb::FIELD_EXPIRED
            }
            Effect::FieldsExpired { last } => {
                self.bytes.push(last.into());
                verb::FIELDS_EXPIRED
            }
            Effect::SetAdd { member } => {
                self.slice(member);
                verb::SET_ADD
            }
            Effect::SetRemove { member } => {
                self.slice(member);
                verb::SET_REMOVE
            }
            Effect::SortedSetAdd { member, score } => {
                self.slice(member);
                self.bytes.extend_from_slice(&score.to_le_bytes());
                verb::SORTED_SET_ADD
            }
            Effect::SortedSetRemove { member } => {
                self.slice(member);
                verb::SORTED_SET_REMOVE
            }
            _ => self.stream_fields(effect),
        }
    }

    fn stream_fields(&mut self, effect: &Effect<'_>) -> u8 {
        match *effect {
            Effect::StreamAppend { id, fields } => {
                self.id(id);
                self.number(fields.iter().count() as u64);
                for (name, value) in fields.iter() {
                    self.slice(name);
                    self.slice(value);
                }
                verb::STREAM_APPEND
            }
            Effect::StreamDelete { id } => {
                self.id(id);
                verb::STREAM_DELETE
            }
            Effect::StreamTrim { len } => {
                self.number(len);
                verb::STREAM_TRIM
            }
            Effect::StreamCounters { last_id, entries_added, max_deleted_id } => {
                self.id(last_id);
                self.number(entries_added);
                self.id(max_deleted_id);
                verb::STREAM_COUNTERS
            }
            Effect::GroupCreate { group, last_id, entries_read } => {
                self.position(group, last_id, entries_read);
                verb::GROUP_CREATE
            }
            Effect::GroupPosition { group, last_id, entries_read } => {
                self.position(group, last_id, entries_read);
                verb::GROUP_POSITION
            }
            Effect::GroupDestroy { group } => {
                self.slice(group);
                verb::GROUP_DESTROY
            }
            Effect::Consumer { group, consumer, seen_ms, active_ms } => {
                self.slice(group);
                self.slice(consumer);
                self.number(seen_ms);
                self.optional(active_ms);
                verb::CONSUMER
            }
            Effect::ConsumerDelete { group, consumer } => {
                self.slice(group);
                self.slice(consumer);
                verb::CONSUMER_DELETE
            }
            Effect::Pending { group, consumer, id, delivered_ms, deliveries } => {
                self.slice(group);
                self.slice(consumer);
                self.id(id);
                self.number(delivered_ms);
                self.number(deliveries);
                verb::PENDING
            }
            Effect::PendingRemove { group, id } => {
                self.slice(group);
                self.id(id);
                verb::PENDING_REMOVE
            }
            _ => unreachable!("every other effect is written by the two functions before"),
        }
    }

    fn position(&mut self, group: &[u8], last_id: StreamId, entries_read: Option<u64>) {
        self.slice(group);
        self.id(last_id);
        self.optional(entries_read);
    }
}

/// What stands in an effect's first byte. Nothing outside the process sees it.
pub(super) mod verb {
    /// What a frame begins with.
    pub(in crate::effect) const SET_FRAME: u8 = 0;
    pub(in crate::effect) const SET_BYTES: u8 = 1;
    pub(in crate::effect) const SET_INT: u8 = 2;
    pub(in crate::effect) const NEW: u8 = 3;
    pub(in crate::effect) const WRITE: u8 = 4;
    pub(in crate::effect) const EXPIRE: u8 = 5;
    pub(in crate::effect) const DELETE: u8 = 6;
    pub(in crate::effect) const MOVE: u8 = 7;
    pub(in crate::effect) const COPY: u8 = 8;
    pub(in crate::effect) const LIST_PUSH: u8 = 9;
    pub(in crate::effect) const LIST_POP: u8 = 10;
    pub(in crate::effect) const LIST_SET: u8 = 11;
    pub(in crate::effect) const LIST_INSERT: u8 = 12;
    pub(in crate::effect) const LIST_REMOVE: u8 = 13;
    pub(in crate::effect) const HASH_SET: u8 = 14;
    pub(in crate::effect) const HASH_EXPIRE: u8 = 15;
    pub(in crate::effect) const HASH_DELETE: u8 = 16;
    pub(in crate::effect) const FIELD_EXPIRED: u8 = 17;
    pub(in crate::effect) const FIELDS_EXPIRED: u8 = 18;
    pub(in crate::effect) const SET_ADD: u8 = 19;
    pub(in crate::effect) const SET_REMOVE: u8 = 20;
    pub(in crate::effect) const SORTED_SET_ADD: u8 = 21;
    pub(in crate::effect) const SORTED_SET_REMOVE: u8 = 22;
    pub(in crate::effect) const STREAM_APPEND: u8 = 23;
    pub(in crate::effect) const STREAM_DELETE: u8 = 24;
    pub(in crate::effect) const STREAM_TRIM: u8 = 25;
    pub(in crate::effect) const STREAM_COUNTERS: u8 = 26;
    pub(in crate::effect) const GROUP_CREATE: u8 = 27;
    pub(in crate::effect) const GROUP_DESTROY: u8 = 28;
    pub(in crate::effect) const GROUP_POSITION: u8 = 29;
    pub(in crate::effect) const CONSUMER: u8 = 30;
    pub(in crate::effect) const CONSUMER_DELETE: u8 = 31;
    pub(in crate::effect) const PENDING: u8 = 32;
    pub(in crate::effect) const PENDING_REMOVE: u8 = 33;
    pub(in crate::effect) const FLUSH: u8 = 34;
    pub(in crate::effect) const SWAP: u8 = 35;
    pub(in crate::effect) const WROTE: u8 = 36;
    pub(in crate::effect) const CREATED: u8 = 37;
    pub(in crate::effect) const MISSED: u8 = 38;
    pub(in crate::effect) const EVENT: u8 = 39;
    pub(in crate::effect) const CATALOGUE: u8 = 40;
}

#[cfg(test)]
mod tests;
