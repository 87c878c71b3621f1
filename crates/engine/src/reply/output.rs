//! Owns: the bytes that wait to be sent to one connection, with large values that are sent from where they are. Does
//! not own: what they mean, sending.

use std::collections::VecDeque;

use weft_store::SharedBytes;

use super::ResourceState;
use super::aggregate::Open;
use crate::error::ErrorCode;

/// Values of at least so many bytes are not copied into the output but kept until they are sent (`writev`).
pub const PIN_BYTES_MIN: usize = 16 << 10;

/// A large value that stands in the output by reference.
#[derive(Clone, Debug)]
pub struct Pin {
    /// Where it stands: before this byte of [`Output::bytes`].
    pub at: usize,
    /// The value.
    pub value: SharedBytes,
}

/// Where in an output something begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OutputPlace {
    /// Plain bytes before it.
    pub bytes: usize,
    /// Large values before it.
    pub pins: usize,
    /// Bytes of both.
    pub len: usize,
}

impl OutputPlace {
    /// The same place when all of this comes before it.
    pub(crate) const fn behind(self, before: Self) -> Self {
        Self { bytes: self.bytes + before.bytes, pins: self.pins + before.pins, len: self.len + before.len }
    }
    /// The same place when all of this is gone from before it.
    const fn since(self, gone: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(gone.bytes),
            pins: self.pins.saturating_sub(gone.pins),
            len: self.len.saturating_sub(gone.len),
        }
    }
}

/// Places from which on something is withheld, of one output: beyond it a later one waits together with the one before.
pub(super) const WITHHELD_MAX: usize = 64;

/// What stands behind a place waits until an epoch is safe.
#[derive(Clone, Copy, Debug)]
struct WithheldFrom {
    from: OutputPlace,
    epoch: u64,
}

/// Bytes of an output's memory that are kept for what is written next.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Large values that there is room for, in such memory.
const KEPT_PINS_MAX: usize = 1 << 10;

/// Replies and pushes of one connection, not yet sent.
#[derive(Debug, Default)]
pub struct Output {
    /// The bytes without the large values.
    pub bytes: Vec<u8>,
    /// The large values, by their place, ascending.
    pub pins: Vec<Pin>,
    /// Sum of the pinned values' lengths.
    pub pinned_bytes: usize,
    /// What must not be sent yet: both ascending.
    withheld: VecDeque<WithheldFrom>,
    /// The last error that was a whole reply: of it an HTTP answer has its status.
    pub(super) error: Option<ErrorCode>,
    /// What the answer about a resource says beside it.
    pub(super) resource_state: Option<Box<ResourceState>>,
    /// Whole replies in JSON that stand here as elements of one list: before the next one comes a comma.
    pub(super) answers: u32,
    /// Aggregates that are open: a stack that is empty between replies, kept for its memory.
    pub(super) open: Vec<Open>,
}

impl Output {
    /// Bytes to send.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len() + self.pinned_bytes
    }
    /// Whether there is nothing to send.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.pins.is_empty()
    }
    /// Where what comes next will begin.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> OutputPlace {
        OutputPlace { bytes: self.bytes.len(), pins: self.pins.len(), len: self.len() }
    }
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.pins.clear();
        self.pinned_bytes = 0;
        self.withheld.clear();
        self.error = None;
        self.resource_state = None;
        self.answers = 0;
        self.open.clear();
    }
    /// Forgets everything, and keeps the memory unless it is much.
    pub fn renew(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES_MAX || self.pins.capacity() > KEPT_PINS_MAX {
            *self = Self::default();
        } else {
            self.clear();
        }
    }
    /// Whether no aggregate lacks elements: what is there are whole replies.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.open.is_empty()
    }
    /// The kind of the last error that was a whole reply, since this was asked last.
    #[must_use]
    pub const fn take_error(&mut self) -> Option<ErrorCode> {
        self.error.take()
    }
    /// Whether an answer about a resource says something beside it. It may be all that it says.
    #[must_use]
    pub const fn has_resource_state(&self) -> bool {
        self.resource_state.is_some()
    }
    /// What it says, since this was asked last.
    #[must_use]
    pub const fn take_resource_state(&mut self) -> Option<Box<ResourceState>> {
        self.resource_state.take()
    }
    /// The list of replies in JSON that is written next has so many already.
    pub const fn go_on_behind(&mut self, answers: u32) {
        self.answers = answers;
    }
    /// How many whole replies in JSON the list that is being written has.
    #[must_use]
    pub const fn answers(&self) -> u32 {
        self.answers
    }
    /// What stands behind this place, which is not before the last such place, waits until the epoch is safe.
    pub fn withhold(&mut self, from: OutputPlace, epoch: u64) {
        let is_full = self.withheld.len() == WITHHELD_MAX;
        match self.withheld.back_mut() {
            Some(last) if last.epoch >= epoch => {}
            Some(last) if is_full => last.epoch = epoch,
            _ => self.withheld.push_back(WithheldFrom { from, epoch }),
        }
    }
    /// Whether something was withheld when [`sendable`](Self::sendable) was asked last, or has been since.
    #[inline]
    #[must_use]
    pub fn is_withheld(&self) -> bool {
        !self.withheld.is_empty()
    }
    /// Whether something is withheld that stands at or behind this place.
    #[inline]
    #[must_use]
    pub fn is_withheld_behind(&self, from: OutputPlace) -> bool {
        self.withheld.back().is_some_and(|last| last.from.len >= from.len)
    }
    /// Bytes that may be sent when epochs up to `safe` are.
    #[inline]
    pub fn sendable(&mut self, safe: u64) -> usize {
        while self.withheld.front().is_some_and(|first| first.epoch <= safe) {
            self.withheld.pop_front();
        }
        self.withheld.front().map_or(self.len(), |first| first.from.len)
    }
    /// From where on something was withheld when [`sendable`](Self::sendable) was asked last.
    #[must_use]
    pub fn first_withheld(&self) -> Option<OutputPlace> {
        self.withheld.front().map(|first| first.from)
    }
    /// Moves all of another output behind this one.
    pub fn append(&mut self, mut other: Self) {
        self.take_from(&mut other);
    }
    /// The same, and the other keeps its memory.
    pub fn take_from(&mut self, other: &mut Self) {
        if self.answers > 0 && other.answers > 0 {
            self.bytes.push(b',');
        }
        self.answers += other.answers;
        let base = self.bytes.len();
        let end = self.end();
        for WithheldFrom { from, epoch } in other.withheld.drain(..) {
            self.withhold(from.behind(end), epoch);
        }
        self.bytes.append(&mut other.bytes);
        self.pins.extend(other.pins.drain(..).map(|pin| Pin { at: base + pin.at, value: pin.value }));
        self.pinned_bytes += other.pinned_bytes;
        self.error = other.error.take().or(self.error);
        self.resource_state = other.resource_state.take().or(self.resource_state.take());
        other.clear();
    }
    /// Moves out what stands behind so many plain bytes and so many pins.
    #[must_use]
    pub fn split_off(&mut self, bytes: usize, pins: usize) -> Self {
        let mut rest =
            Self { bytes: self.bytes.split_off(bytes), pins: self.pins.split_off(pins), ..Self::default() };
        for pin in &mut rest.pins {
            pin.at -= bytes;
            rest.pinned_bytes += pin.value.as_slice().len();
        }
        self.pinned_bytes -= rest.pinned_bytes;
        let end = self.end();
        while let Some(one) = self.withheld.pop_back_if(|last| last.from.len >= end.len) {
            rest.withheld.push_front(WithheldFrom { from: one.from.since(end), ..one });
        }
        rest
    }
    /// Lets go of the first `sent` bytes, up to the last large value that has not been sent whole; gives how many bytes
    /// of what is left have been sent.
    #[must_use]
    pub fn consume(&mut self, sent: usize) -> usize {
        let (mut plain, mut pins, mut left) = (0, 0, sent);
        for pin in &self.pins {
            let len = pin.value.as_slice().len();
            let before = pin.at - plain;
            if left < before + len {
                break;
            }
            left -= before + len;
            plain = pin.at;
            pins += 1;
        }
        let next = self.pins.get(pins).map_or(self.bytes.len(), |pin| pin.at);
        let more = left.min(next - plain);
        plain += more;
        left -= more;
        let gone = OutputPlace { bytes: plain, pins, len: sent - left };
        self.withheld.iter_mut().for_each(|one| one.from = one.from.since(gone));
        self.bytes.drain(..plain);
        for pin in self.pins.drain(..pins) {
            self.pinned_bytes -= pin.value.as_slice().len();
        }
        self.pins.iter_mut().for_each(|pin| pin.at -= plain);
        left
    }
    /// Puts a large value at the end.
    pub fn pin(&mut self, value: SharedBytes) {
        self.pinned_bytes += value.as_slice().len();
        self.pins.push(Pin { at: self.bytes.len(), value });
    }
    /// Forgets what came behind so many bytes and so many pins.
    pub(super) fn truncate(&mut self, bytes: usize, pins: usize) {
        self.bytes.truncate(bytes);
        for pin in self.pins.drain(pins..) {
            self.pinned_bytes -= pin.value.as_slice().len();
        }
    }
    /// Inserts bytes at a place: what is withheld or pinned behind it moves along.
    pub fn insert_at(&mut self, place: OutputPlace, bytes: &[u8]) {
        let inserted = OutputPlace { bytes: bytes.len(), pins: 0, len: bytes.len() };
        let behind = |one: &&mut WithheldFrom| one.from.len > place.len;
        self.withheld.iter_mut().filter(behind).for_each(|one| one.from = one.from.behind(inserted));
        self.insert(place.bytes, place.pins, bytes);
    }
    /// Forgets what stands behind a place.
    pub fn take_back(&mut self, place: OutputPlace) {
        self.truncate(place.bytes, place.pins);
        while self.withheld.pop_back_if(|last| last.from.len >= place.len).is_some() {}
    }
    /// Inserts bytes at a place; pins behind it, of those from `pins` on, move along.
    pub(super) fn insert(&mut self, at: usize, pins: usize, bytes: &[u8]) {
        let end = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.bytes.copy_within(at..end, at + bytes.len());
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        for pin in &mut self.pins[pins..] {
            pin.at += bytes.len();
        }
    }
    /// All bytes in one piece, for tests and for copies that need it.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        let mut at = 0;
        for pin in &self.pins {
            all.extend_from_slice(&self.bytes[at..pin.at]);
            all.extend_from_slice(pin.value.as_slice());
            at = pin.at;
        }
        all.extend_from_slice(&self.bytes[at..]);
        all
    }
}
