//! Owns: who writes down what an operation does: the tape of its effects, the group that they belong to, the journal
//! that takes them back. Does not own: the list of effects (`crate::effect`), merging groups (`crate::groups`), taking
//! back (`crate::undo`).
//!
//! Every operation brings a recorder ([`crate::Op`]), and only the primitives of the store change anything, so nothing
//! changes untold. A primitive looks once at whether anybody wants to know: one word of the keyspace, one of the
//! recorder. If nobody does, that is all it pays.
//!
//! **Two kinds of readers.** Those of the same worker read the tape where it is, in order and under the locks if they
//! like ([`Recorder::tape`]); [`Recorder::clear`] throws it away when all have read. Those elsewhere get whole groups
//! from a [`crate::Merger`].
//!
//! **A group** is what becomes true together. It begins with its first effect and ends with [`Recorder::end_group`],
//! under the locks of the operation or right behind them: whoever takes another lock first ends the group of the one
//! before.

use crate::effect::{Effect, Tape, TapeMark, wants};
use crate::entry::heap::Key;
use crate::groups::{LARGE_BYTES, Outbox, Row};
use crate::keyspace::Keyspace;
use crate::undo::{Inverse, Journal, Undo};
use std::cell::Cell;
use std::sync::Arc;

/// What operations bring to write down what they do. One for each worker.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Bits of [`wants`], beside those of the keyspace.
    own: u32,
    tape: Tape,
    /// Where the present group begins.
    begun: TapeMark,
    /// Where on the tape a key went by itself, and the number of that (`crate::catalogue`), in the order of both.
    numbers: Vec<(usize, u64)>,
    /// The shards that the present group has written, ascending, with the count that it has of each.
    shards: Vec<(u32, u64)>,
    /// Of the present group's last shard, if it has any; else of the last group that had.
    epoch: Cell<u64>,
    outbox: Option<Arc<Outbox>>,
    /// Nothing more is told elsewhere.
    is_over: bool,
    pub(crate) journal: Option<Box<Journal>>,
    /// The journal of an operation that has ended, for its memory.
    pub(crate) resting: Option<Box<Journal>>,
}

impl Recorder {
    /// Has its groups go to the keyspace's merger. Without it only its tape can be read.
    pub fn attach(&mut self, keyspace: &Keyspace) {
        if self.outbox.is_none() {
            self.outbox = Some(keyspace.hub().join());
        }
    }
    /// What the owner of this recorder wants to read from its tape, as bits of [`wants`]; beside what everybody wants
    /// of the keyspace.
    pub const fn want(&mut self, bits: u32) {
        self.own = self.own & wants::UNDO | bits & !wants::UNDO;
    }
    /// Wants more, or no more.
    pub const fn want_also(&mut self, bits: u32, is_wanted: bool) {
        self.own = if is_wanted { self.own | bits } else { self.own & !bits };
    }
    /// What is wanted by its owner.
    #[inline]
    #[must_use]
    pub const fn wanted(&self) -> u32 {
        self.own
    }
    /// The last epoch in which it has told a merger of something; 0 for none.
    #[must_use]
    pub const fn told_epoch(&self) -> u64 {
        self.epoch.get()
    }
    /// Groups of one effect each follow, in epochs that are said with [`Recorder::told_in`]; nothing where they go
    /// nowhere, or too many wait.
    pub(crate) fn row(&self) -> Option<Row<'_>> {
        debug_assert!(self.shards.is_empty(), "a group ends before the next one begins");
        self.outbox.as_ref().filter(|_| !self.is_over)?.row()
    }
    /// A group of [`Recorder::row`] became true in this epoch.
    pub(crate) fn told_in(&self, epoch: u64) {
        self.epoch.set(epoch);
    }
    /// Who waits for what this one has told waits for all that has become true so far, whoever has told it.
    pub fn waits_for_all(&self, keyspace: &Keyspace) {
        self.epoch.set(keyspace.hub().begin_group(keyspace.present_epoch()));
    }
    /// What has been told since [`Recorder::clear`].
    #[must_use]
    pub const fn tape(&self) -> &Tape {
        &self.tape
    }
    /// Whether nothing has been told since then.
    #[inline]
    #[must_use]
    pub const fn is_clear(&self) -> bool {
        self.tape.is_empty()
    }
    /// All readers of the tape have read it.
    pub fn clear(&mut self) {
        debug_assert!(self.shards.is_empty(), "a group ends before its effects are forgotten");
        self.tape.clear();
        self.numbers.clear();
        self.begun = TapeMark::default();
    }

    /// Writes an effect down, if it is wanted.
    #[inline(never)]
    #[cold]
    pub(crate) fn tell(&mut self, wanted: u32, db: u8, key: &[u8], effect: &Effect<'_>) {
        if wanted & effect.wanted_by() != 0 {
            self.tape.push(db, key, effect);
        }
    }
    /// What is told next is that a key went by itself, which has this number.
    pub(crate) fn number_next(&mut self, number: u64) {
        self.numbers.push((self.tape.mark().at(), number));
    }
    /// The number of a key that went by itself, which is told at a mark.
    #[must_use]
    pub fn number_at(&self, mark: TapeMark) -> Option<u64> {
        let at = self.numbers.binary_search_by_key(&mark.at(), |(at, _)| *at).ok()?;
        Some(self.numbers[at].1)
    }
    /// A keyspace event, as a command names it. The caller has asked whether anybody wants it.
    #[cold]
    pub fn tell_event(&mut self, db: u8, key: &Key<'_>, class: u32, name: &str) {
        self.tape.push(db, key.bytes(), &Effect::Event { class, name });
    }
    /// The present group writes to a shard, whose lock is held: takes its next count, once for each group, and the
    /// present epoch. A script locks shards one after the other: in the last one others may have written meanwhile, in
    /// later epochs than that of its first one.
    pub(crate) fn enter_shard(&mut self, shard: u32, count: &mut u64, epoch: impl FnOnce() -> u64) {
        if let Err(at) = self.shards.binary_search_by_key(&shard, |(shard, _)| *shard) {
            self.epoch.set(epoch());
            *count += 1;
            self.shards.insert(at, (shard, *count));
        }
    }
    /// The present group ends: what was told in it has become true together. To be called before another lock is taken,
    /// and before the batch ends.
    #[inline]
    pub fn end_group(&mut self) {
        if !self.tape.is_empty() || !self.shards.is_empty() {
            self.hand_over();
        }
    }
    /// A group that was taken back is handed over all the same, without effects: its counts are taken.
    #[cold]
    fn hand_over(&mut self) {
        debug_assert!(self.journal.is_none(), "a group ends when it is committed or taken back");
        if !self.shards.is_empty() {
            if let Some(outbox) = &self.outbox {
                let effects = if self.is_over { &[] } else { self.tape.bytes_from(self.begun) };
                if effects.len() < LARGE_BYTES {
                    outbox.push(self.epoch.get(), &self.shards, effects);
                } else {
                    let effects = self.tape.lend_from(self.begun);
                    outbox.push_large(self.epoch.get(), &self.shards, effects);
                }
            }
            self.shards.clear();
        }
        self.tape.forget_key();
        self.begun = self.tape.mark();
    }

    /// Nothing of the present group is told, nor of what follows, though it becomes true here: the server stops in the
    /// middle of it.
    pub fn forget_rest(&mut self) {
        self.is_over = true;
    }
    /// Forgets what was told behind a mark: what its owner alone wanted, and has read.
    pub fn forget_from(&mut self, mark: TapeMark) {
        debug_assert!(self.journal.is_none() && self.shards.is_empty(), "nobody else wants it");
        self.unwind(mark);
    }
    /// Forgets what was told behind a mark, which lies in the present group.
    pub(crate) fn unwind(&mut self, mark: TapeMark) {
        self.tape.rollback(mark);
        while self.numbers.last().is_some_and(|(at, _)| *at >= mark.at()) {
            self.numbers.pop();
        }
    }
    pub(crate) const fn set_undo(&mut self, on: bool) {
        self.own = if on { self.own | wants::UNDO } else { self.own & !wants::UNDO };
    }
}

/// What the primitives of one collection write down with: for a key that is wanted by somebody.
#[derive(Debug)]
pub(crate) struct Pen<'a> {
    recorder: &'a mut Recorder,
    wanted: u32,
    db: u8,
    key: &'a [u8],
}

impl<'a> Pen<'a> {
    /// Nothing if nobody wants to know.
    #[inline]
    pub(crate) const fn new(recorder: &'a mut Recorder, wanted: u32, db: u8, key: &'a [u8]) -> Option<Self> {
        if wanted == 0 { None } else { Some(Self { recorder, wanted, db, key }) }
    }
    /// The same for a part of the collection.
    pub(crate) const fn lend(&mut self) -> Pen<'_> {
        Pen { recorder: self.recorder, wanted: self.wanted, db: self.db, key: self.key }
    }
    /// Writes an effect down, if it is wanted.
    pub(crate) fn tell(&mut self, effect: &Effect<'_>) {
        self.recorder.tell(self.wanted, self.db, self.key, effect);
    }
    /// Bytes that were told since the recorder was clear.
    pub(crate) fn told_bytes(&self) -> usize {
        self.recorder.tape.mark().at()
    }
    /// Whether the inverse is to be written down too.
    pub(crate) const fn undoes(&self) -> bool {
        self.wanted & wants::UNDO != 0
    }
    /// What takes the change back.
    pub(crate) fn undo(&mut self, undo: Undo) {
        if let Some(journal) = &mut self.recorder.journal {
            journal.push(Inverse::Member { db: self.db, key: self.key.into(), undo });
        }
    }
}
