//! Owns: the closed list of what can happen to a keyspace, in terms that replay without a clock, dice or settings. Does
//! not own: how it is kept ([`Tape`], [`Read`]), who tells it (`crate::recorder`), what readers do with it: the log,
//! keyspace notifications, triggers, tracking and replicas all read this one stream.
//!
//! An effect says what became true, never what was asked for: times are absolute, members are chosen, a position is a
//! number. It is told by the primitive that makes it true, under the lock of its shard, so the effects of a key come
//! in the order of its writes.
//!
//! | kind | effects |
//! |---|---|
//! | keys | `Set`, `New`, `Write`, `Expire`, `Delete`, `Move`, `Copy` |
//! | members | `List…`, `Hash…`, `FieldsExpired`, `Set…`, `SortedSet…` |
//! | streams | `Stream…`, `Group…`, `Consumer…`, `Pending…` |
//! | barriers | `Flush`, `Swap` |
//! | outside of databases | `Catalogue`: its key is the entry's name |
//! | beside the data | `Wrote`, `Created`, `Missed`, `Event`: nothing to replay |
//!
//! A whole collection (SUNIONSTORE, RESTORE) is `New`, followed by its members, so that a large one needs no frame of
//! its size. An effect on a member of a key that is not there makes the key.

mod read;
pub(crate) mod tape;

use crate::catalogue::Section;
use crate::list::End;
use crate::stream::StreamId;
pub use read::{KeyedEffect, PackedPairs, Read};
pub use tape::{Tape, TapeMark};

/// Why a key went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A command removed it.
    Deleted,
    /// Its time had come.
    Expired,
    /// A command gave it a time that had come.
    Overdue,
    /// Memory was needed.
    Evicted,
}

/// What kind of collection a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A list.
    List,
    /// A hash.
    Hash,
    /// A set.
    Set,
    /// A sorted set.
    SortedSet,
    /// A stream.
    Stream,
}

/// What readers ask for, as bits of one word: an effect that nobody wants is not told.
pub mod wants {
    /// Which keys were written to: [`Wrote`](super::Effect::Wrote), and the barriers.
    pub const KEYS: u32 = 1 << 0;
    /// What became of them: all that [replay](crate::replay) needs.
    pub const VALUES: u32 = 1 << 1;
    /// What keyspace notifications tell: [`Event`](super::Effect::Event), [`Created`](super::Effect::Created), keys and
    /// fields that went by themselves.
    pub const EVENTS: u32 = 1 << 2;
    /// Keys that were looked for in vain: [`Missed`](super::Effect::Missed).
    pub const MISSES: u32 = 1 << 3;
    /// Groups go to the [merger](crate::Merger), and shards count them.
    pub const GROUPS: u32 = 1 << 4;
    /// The operation carries a journal: mutators push what takes them back. Not of a reader, but of an operation.
    pub const UNDO: u32 = 1 << 5;
    /// As [`KEYS`], but of the keys only that the keyspace has been [told of](crate::Keyspace::note): operations on
    /// others pay a look at one number.
    pub const NOTED_KEYS: u32 = 1 << 6;
    /// Keys are saved before they are changed (`crate::save`). Nothing is told of it.
    pub const SAVE: u32 = 1 << 7;
}

/// A string on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// An integer, in its shortest form.
    Int(i64),
}

/// What happened to one key, or beside it. The key stands in [`KeyedEffect`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect<'a> {
    /// The key holds this string now, and has this absolute expiry.
    Set {
        /// The string.
        value: Text<'a>,
        /// Absolute expiry.
        expire_ms: Option<u64>,
    },
    /// The key holds an empty collection now, whose members follow, and has this absolute expiry.
    New {
        /// Of what kind.
        kind: Kind,
        /// Absolute expiry.
        expire_ms: Option<u64>,
    },
    /// Bytes were written into the string at an offset, the gap before being zeros.
    Write {
        /// Where.
        offset: u64,
        /// What.
        bytes: &'a [u8],
    },
    /// The key's absolute expiry, or that it has none any more.
    Expire {
        /// Absolute expiry.
        expire_ms: Option<u64>,
    },
    /// The key is gone.
    Delete {
        /// Why.
        cause: Cause,
    },
    /// The key has become this other one, value and expiry, whatever that held.
    Move {
        /// The other one's database.
        to_db: u8,
        /// The other one.
        to: &'a [u8],
    },
    /// This other key holds the same now, value and expiry, whatever it held.
    Copy {
        /// The other one's database.
        to_db: u8,
        /// The other one.
        to: &'a [u8],
    },
    /// An element was added at an end.
    ListPush {
        /// Which end.
        end: End,
        /// The element.
        element: &'a [u8],
    },
    /// Elements are gone from an end.
    ListPop {
        /// Which end.
        end: End,
        /// How many.
        count: u64,
    },
    /// The element at an index is another.
    ListSet {
        /// Where.
        index: u64,
        /// The element.
        element: &'a [u8],
    },
    /// An element was inserted before an index.
    ListInsert {
        /// Where.
        index: u64,
        /// The element.
        element: &'a [u8],
    },
    /// The element at an index is gone.
    ListRemove {
        /// Where.
        index: u64,
    },
    /// A field has this value and expiry.
    HashSet {
        /// The field.
        field: &'a [u8],
        /// Its value.
        value: &'a [u8],
        /// Its absolute expiry.
        expire_ms: Option<u64>,
    },
    /// A field has this expiry, or none any more.
    HashExpire {
        /// The field.
        field: &'a [u8],
        /// Its absolute expiry.
        expire_ms: Option<u64>,
    },
    /// A field is gone.
    HashDelete {
        /// The field.
        field: &'a [u8],
    },
    /// A field is gone because its time had come.
    FieldExpired {
        /// The field.
        field: &'a [u8],
    },
    /// The fields before this one went together; if they were the last ones, [`Effect::Delete`] follows.
    FieldsExpired {
        /// Whether they were the last ones.
        last: bool,
    },
    /// A member was added.
    SetAdd {
        /// The member.
        member: &'a [u8],
    },
    /// A member is gone.
    SetRemove {
        /// The member.
        member: &'a [u8],
    },
    /// A member has this score.
    SortedSetAdd {
        /// The member.
        member: &'a [u8],
        /// Its score.
        score: f64,
    },
    /// A member is gone.
    SortedSetRemove {
        /// The member.
        member: &'a [u8],
    },
    /// An entry was added.
    StreamAppend {
        /// Its id.
        id: StreamId,
        /// Its fields.
        fields: Pairs<'a>,
    },
    /// An entry was deleted, which leaves its mark.
    StreamDelete {
        /// Its id.
        id: StreamId,
    },
    /// Entries are gone from the front, until so many were left.
    StreamTrim {
        /// How many were left.
        len: u64,
    },
    /// The stream's counters.
    StreamCounters {
        /// The last id given.
        last_id: StreamId,
        /// Entries ever added.
        entries_added: u64,
        /// The largest id deleted.
        max_deleted_id: StreamId,
    },
    /// A group was made.
    GroupCreate {
        /// Its name.
        group: &'a [u8],
        /// Where it goes on.
        last_id: StreamId,
        /// How many entries that is, if known.
        entries_read: Option<u64>,
    },
    /// A group is gone, with its consumers.
    GroupDestroy {
        /// Its name.
        group: &'a [u8],
    },
    /// A group goes on from here.
    GroupPosition {
        /// Its name.
        group: &'a [u8],
        /// The last id delivered.
        last_id: StreamId,
        /// How many entries that is, if known.
        entries_read: Option<u64>,
    },
    /// A consumer is there, with these times.
    Consumer {
        /// Its group.
        group: &'a [u8],
        /// Its name.
        consumer: &'a [u8],
        /// When it last tried to do something.
        seen_ms: u64,
        /// When it last got something.
        active_ms: Option<u64>,
    },
    /// A consumer is gone, with what it had pending.
    ConsumerDelete {
        /// Its group.
        group: &'a [u8],
        /// Its name.
        consumer: &'a [u8],
    },
    /// An entry is pending for a consumer, whoever had it.
    Pending {
        /// The group.
        group: &'a [u8],
        /// Who has it.
        consumer: &'a [u8],
        /// The entry.
        id: StreamId,
        /// When it was last delivered.
        delivered_ms: u64,
        /// How often.
        deliveries: u64,
    },
    /// An entry is pending no longer.
    PendingRemove {
        /// The group.
        group: &'a [u8],
        /// The entry.
        id: StreamId,
    },
    /// All keys of the database are gone: a barrier. It has no key.
    Flush,
    /// The database has changed places with another: a barrier. It has no key.
    Swap {
        /// The other one.
        with: u8,
    },
    /// An entry of the catalogue, whose name stands as the key, holds these bytes now, or is gone.
    Catalogue {
        /// Among which entries.
        section: Section,
        /// Its bytes.
        value: Option<&'a [u8]>,
    },
    /// The key was written to in some way: once for each change of it as a whole.
    Wrote {
        /// It went by itself: its time had come, or memory was needed.
        by_itself: bool,
    },
    /// The key was not there and is now.
    Created,
    /// The key was looked for to be read, and was not there.
    Missed,
    /// A keyspace event, as a command names it.
    Event {
        /// Its class, in the engine's numbering.
        class: u32,
        /// Its name.
        name: &'a str,
    },
}

impl Effect<'_> {
    /// The [bits](wants) of those who want to be told of it.
    #[must_use]
    pub const fn wanted_by(&self) -> u32 {
        match self {
            Self::Wrote { .. } => wants::KEYS,
            Self::Created | Self::Event { .. } => wants::EVENTS,
            Self::Missed => wants::MISSES,
            Self::Flush | Self::Swap { .. } => wants::KEYS | wants::NOTED_KEYS | wants::VALUES,
            Self::FieldsExpired { .. } => wants::EVENTS,
            Self::Delete { cause: Cause::Expired | Cause::Overdue | Cause::Evicted } => {
                wants::VALUES | wants::EVENTS
            }
            _ => wants::VALUES,
        }
    }
}

/// Names and values of a stream's entry, in their order.
#[derive(Clone, Copy)]
pub enum Pairs<'a> {
    /// As a command has them.
    Slices(&'a [(&'a [u8], &'a [u8])]),
    /// As they stand on the tape.
    Packed(PackedPairs<'a>),
}

impl<'a> Pairs<'a> {
    /// The pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let (slices, packed) = match *self {
            Self::Slices(slices) => (slices, None),
            Self::Packed(packed) => (&[][..], Some(packed)),
        };
        slices.iter().copied().chain(packed.into_iter().flat_map(PackedPairs::iter))
    }
}

impl PartialEq for Pairs<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl std::fmt::Debug for Pairs<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}
