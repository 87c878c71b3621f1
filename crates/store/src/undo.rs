//! Owns: taking operations back: the journal of an operation, savepoints, commit and rollback. Does not own: what each
//! primitive pushes (they do), when an operation carries a journal (the engine does).
//!
//! A journal holds what takes the changes back, in their order. **Small values** (compact collections, and anything of
//! [`IMAGE_BYTES_MAX`] at most) are kept as a whole before they are first changed behind a savepoint, so that order,
//! encoding and memory come back exactly; what then happens to them needs nothing more. Of **large ones** each
//! primitive pushes its inverse. **Removed values** are kept until commit, not dropped.
//!
//! While a journal is carried, watches are not touched, nothing is counted as a write, and nobody is told: that happens
//! at [commit](crate::Guards::commit), with all locks still held. What was only read counts at once.
//!
//! Memory: a large collection that grew keeps its table, as it does when members are deleted; the count of used memory
//! is that of what is there.

mod apply;

use crate::catalogue::Section;
use crate::counters::Counter;
use crate::effect::TapeMark;
use crate::entry::PackedKind;
use crate::entry::heap::Key;
use crate::entry::heap::SetAside;
use crate::list::{End, ListLimit};
use crate::recorder::Recorder;
use crate::stream::StreamUndo;
use crate::value::{Object, SharedBytes};
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Larger values that are not compact are not copied before they are changed.
pub(crate) const IMAGE_BYTES_MAX: usize = 4096;
/// Inverses for which a journal keeps memory when its operation has ended.
const RESTING_MAX: usize = 1024;
/// Counters that wait for commit.
const COUNTERS: [Counter; 4] = [Counter::Writes, Counter::Expired, Counter::Evicted, Counter::ExpiredFields];

/// Changes inside a large value, each with what takes it back.
#[derive(Debug)]
pub(crate) enum Undo {
    ListPop(End, ListLimit),
    ListPush(End, Box<[u8]>, ListLimit),
    ListSet(usize, Box<[u8]>, ListLimit),
    ListInsert(usize, Box<[u8]>, ListLimit),
    ListRemove(usize, ListLimit),
    /// The value and expiry that a field had.
    HashField(Box<[u8]>, Option<(Box<[u8]>, u64)>),
    SetAdd(Box<[u8]>),
    SetRemove(Box<[u8]>),
    /// The score that a member had.
    SortedSetMember(Box<[u8]>, Option<f64>),
    Stream(StreamUndo),
    /// Bytes of a large string, and the length that it had.
    Text {
        offset: usize,
        bytes: Box<[u8]>,
        len: usize,
    },
}

/// What a key held, taken out or copied.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) value: ValueBefore,
    pub(crate) expire_ms: u64,
    pub(crate) clock: u32,
    pub(crate) raw: bool,
    /// See [`crate::entry::Spare`].
    pub(crate) spare: bool,
}

#[derive(Debug)]
pub(crate) enum ValueBefore {
    Text(Box<[u8]>),
    Packed(PackedKind, Box<[u8]>),
    Int(i64),
    Shared(SharedBytes),
    Object(Box<Object>),
}

/// What takes one change back.
#[derive(Debug)]
pub(crate) enum Inverse {
    /// The key held this, or was not there.
    Key { db: u8, key: Box<[u8]>, before: Option<Before> },
    /// The expiry that it had, or whether it kept the bytes of one.
    Expire { db: u8, key: Box<[u8]>, expire_ms: u64, spare: bool },
    /// A change inside its value.
    Member { db: u8, key: Box<[u8]>, undo: Undo },
    /// A key got another name.
    Move { from: (u8, Box<[u8]>), to: (u8, Box<[u8]>) },
    /// Two databases have changed places.
    Swap { one: u8, two: u8 },
    /// An entry of the catalogue held this, or was not there.
    Entry { section: Section, name: Box<[u8]>, before: Option<Arc<[u8]>> },
    /// One shard's keys of a database were set aside.
    Flush { db: u8, shard: u32, table: SetAside, fields: BTreeSet<(u64, u64)> },
}

/// What a change takes in a journal beside its bytes: its inverse, its places among what is kept and among the writes.
const CHANGE_BYTES: usize = size_of::<Inverse>() + 64;
/// What a change of a stream is taken to keep: mostly the end of a block, at times a block.
const STREAM_CHANGE_BYTES: usize = 512;

impl Inverse {
    /// Bytes that it holds and that were not there before it, or would have gone.
    fn bytes(&self) -> usize {
        match self {
            Self::Key { key, before, .. } => key.len() + before.as_ref().map_or(0, |kept| kept.value.bytes()),
            Self::Member { key, undo, .. } => key.len() + undo.bytes(),
            Self::Expire { key, .. } => key.len(),
            Self::Move { from, to } => from.1.len() + to.1.len(),
            Self::Entry { name, .. } => name.len(),
            Self::Swap { .. } | Self::Flush { .. } => 0,
        }
    }
}

impl ValueBefore {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(bytes) | Self::Packed(_, bytes) => bytes.len(),
            Self::Shared(bytes) => bytes.as_slice().len(),
            // It is moved, not copied.
            Self::Int(_) | Self::Object(_) => 0,
        }
    }
}

impl Undo {
    fn bytes(&self) -> usize {
        match self {
            Self::ListPush(_, bytes, _)
            | Self::ListSet(_, bytes, _)
            | Self::ListInsert(_, bytes, _)
            | Self::Text { bytes, .. } => bytes.len(),
            Self::HashField(field, before) => {
                field.len() + before.as_ref().map_or(0, |(value, _)| value.len())
            }
            Self::SetAdd(member) | Self::SetRemove(member) | Self::SortedSetMember(member, _) => member.len(),
            Self::Stream(_) => STREAM_CHANGE_BYTES,
            Self::ListPop(..) | Self::ListRemove(..) => 0,
        }
    }
}

/// A place to go back to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Savepoint {
    inverses: usize,
    bytes: usize,
    writes: usize,
    counts: [i64; COUNTERS.len()],
    tape: TapeMark,
}

/// What an operation has done so far.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    inverses: Vec<Inverse>,
    /// What they hold.
    bytes: usize,
    /// Keys that were written to, for their watches.
    writes: Vec<(u8, u64)>,
    counts: [i64; COUNTERS.len()],
    /// Where among the inverses the keys stand that are kept as a whole since the last savepoint, by
    /// [`place`](Self::place).
    kept: HashMap<u64, usize, BuildHasherDefault<Hashed>>,
    begun: Savepoint,
}

/// The hasher of what is a hash already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Journal {
    pub(crate) fn push(&mut self, inverse: Inverse) {
        self.bytes += inverse.bytes();
        self.inverses.push(inverse);
    }
    /// One number for a key of a database: keys that share one are told apart by who asks.
    const fn place(db: u8, key: &Key<'_>) -> u64 {
        key.hash.rotate_left(db as u32)
    }
    /// Whether the key is kept as a whole since the last savepoint. One whose place another has taken meanwhile is not,
    /// and is kept twice: what was kept first is put back last.
    pub(crate) fn keeps(&self, db: u8, key: &Key<'_>) -> bool {
        let at = self.kept.get(&Self::place(db, key));
        at.and_then(|at| self.inverses.get(*at)).is_some_and(|inverse| match inverse {
            Inverse::Key { db: other_db, key: other, .. } => *other_db == db && **other == *key.bytes,
            _ => false,
        })
    }
    /// Keeps a key as a whole.
    pub(crate) fn keep(&mut self, db: u8, key: &Key<'_>, before: Option<Before>) {
        self.kept.insert(Self::place(db, key), self.inverses.len());
        self.push(Inverse::Key { db, key: key.bytes.into(), before });
    }
    /// A key holds now what another held: it is no more what was kept.
    pub(crate) fn moved(&mut self, (from_db, from): (u8, &[u8]), (db, key): (u8, &Key<'_>)) {
        self.kept.remove(&Self::place(db, key));
        self.push(Inverse::Move { from: (from_db, from.into()), to: (db, key.bytes.into()) });
    }
    /// Databases were emptied or have changed places.
    pub(crate) fn forget_kept(&mut self) {
        self.kept.clear();
    }
    pub(crate) fn wrote(&mut self, db: u8, hash: u64) {
        // Many operations write one key again and again. What was written before a savepoint is written behind it too.
        if self.writes.last() != Some(&(db, hash)) {
            self.writes.push((db, hash));
        }
    }
    /// Counts at commit. Says whether this counter waits.
    pub(crate) fn count(&mut self, counter: Counter, by: i64) -> bool {
        let place = COUNTERS.iter().position(|&other| other == counter);
        place.map(|at| self.counts[at] += by).is_some()
    }
    const fn savepoint(&self, tape: TapeMark) -> Savepoint {
        let Self { inverses, bytes, writes, counts, .. } = self;
        Savepoint { inverses: inverses.len(), bytes: *bytes, writes: writes.len(), counts: *counts, tape }
    }
    /// Forgets all, and keeps the memory that a usual operation takes.
    fn rest(&mut self) {
        self.inverses.clear();
        self.bytes = 0;
        self.writes.clear();
        self.kept.clear();
        if self.inverses.capacity().max(self.kept.capacity()).max(self.writes.capacity()) > RESTING_MAX {
            (self.inverses, self.writes, self.kept) = Default::default();
        }
        self.counts = [0; COUNTERS.len()];
    }
    fn counts(&self) -> impl Iterator<Item = (Counter, i64)> {
        COUNTERS.into_iter().zip(self.counts).filter(|(_, count)| *count != 0)
    }
}

impl Recorder {
    /// From now on operations can be taken back, until [`crate::Guards::commit`], or [`crate::Guards::rollback`] to
    /// what this returns and then a commit of nothing.
    pub fn begin_undo(&mut self) -> Savepoint {
        debug_assert!(self.journal.is_none(), "one journal at a time");
        let begun = Savepoint { tape: self.tape().mark(), ..Savepoint::default() };
        let mut journal = self.resting.take().unwrap_or_default();
        journal.begun = begun;
        self.journal = Some(journal);
        self.set_undo(true);
        begun
    }
    /// The journal's operation has ended.
    fn end_undo(&mut self, mut journal: Box<Journal>) {
        self.set_undo(false);
        journal.rest();
        self.resting = Some(journal);
    }
    /// A place to go back to, inside what is to be committed.
    ///
    /// # Panics
    /// Without a journal.
    pub fn savepoint(&mut self) -> Savepoint {
        let tape = self.tape().mark();
        let journal = self.journal.as_mut().expect("a savepoint is one of a journal");
        journal.forget_kept();
        journal.savepoint(tape)
    }
    /// What the journal takes, about, if there is one.
    #[must_use]
    pub fn undo_bytes(&self) -> usize {
        self.journal.as_ref().map_or(0, |journal| journal.inverses.len() * CHANGE_BYTES + journal.bytes)
    }
    /// Whether what is done now can be taken back: nobody is to be told of it yet.
    #[inline]
    #[must_use]
    pub const fn has_journal(&self) -> bool {
        self.journal.is_some()
    }
}
