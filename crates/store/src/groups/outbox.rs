//! Owns: what groups look like where they wait, and each worker's outbox that they wait in. Does not own: their order
//! (`super`), when one ends (`crate::recorder`).
//!
//! ```text
//! a group
//!  0        4        12       16
//! +--------+--------+--------+----------------------------+-------------------+
//! | length | epoch  | shards | shard, count | shard, … |   | effects: a tape   |
//! +--------+--------+--------+----------------------------+-------------------+
//!   u32      u64      u32      u32    u64
//! a row of groups of one effect and one shard each, of one epoch
//! +--------+--------+--------+------------+------------------------+--------+
//! | length | epoch  | ROW    | frames …   | shard, count | …       | groups |
//! +--------+--------+--------+------------+------------------------+--------+
//!   u32      u64      u32      `tape`       16 + 48 bits             u32
//! ```
//!
//! The effects of a row stand together and as logs have them: what is merged is copied at once, and not looked at.
//!
//! The effects of a large group stand beside the others, on the tape on which they were told: LENT says so in its
//! number of shards. So what one command tells is in memory once until it is written.

use super::{BACKLOG_BYTES, Group};
use crate::effect::tape::{self, Loan};
use crate::sync::{Mutex, MutexGuard, lock};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Bytes of a group from which on it does not count among those that are thrown away when too many wait: one command or
/// script has made it, and what it tells stands in memory already, where it stays.
pub(crate) const LARGE_BYTES: usize = 1 << 20;
/// Bytes of a group: its head counts them in 32 bits. A larger one is lost, and readers begin anew.
pub(super) const GROUP_BYTES_MAX: usize = u32::MAX as usize;
/// Bytes before the shards of a group.
const HEAD_BYTES: usize = 16;
/// Bytes of a shard with its count.
const SHARD_BYTES: usize = 12;
/// In place of a number of shards: a row follows.
const ROW: u32 = u32::MAX;
/// Beside a number of shards: the effects are lent.
const LENT: u32 = 1 << 31;
/// Bytes of the shard and the count of a group in a row, and of their number.
const PLACE_BYTES: usize = 8;
const PLACES_BYTES: usize = 4;
/// Bytes of room that a row makes at once: about what a client with a pipeline of 16 fills.
const ROOM_BYTES: usize = 1024;
/// Bits of a count in a row: at a million writes a second to one shard they last for nine years.
const COUNT_BITS: u32 = 48;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Where one worker's groups wait.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(super) frames: Mutex<Frames>,
    pub(super) backlog: Arc<Backlog>,
}

/// Groups and rows one behind the other.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) bytes: Vec<u8>,
    /// The effects of large groups among them.
    pub(super) lent: VecDeque<Loan>,
    /// Shard and count of each group of the row that is being added.
    places: Vec<u64>,
}

/// What waits in all of them.
pub(super) struct Backlog {
    pub(super) bytes: AtomicUsize,
    /// Of large groups among them.
    pub(super) large_bytes: AtomicUsize,
    pub(super) bytes_max: AtomicUsize,
    pub(super) overrun: AtomicBool,
    /// Told when more wait than should.
    pub(super) on_behind: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for Backlog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backlog").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Backlog {
    /// Whether there is room for small groups, and large ones.
    pub(super) fn has_room(&self) -> bool {
        let small_bytes = self.bytes.load(Relaxed).saturating_sub(self.large_bytes.load(Relaxed));
        small_bytes <= self.bytes_max.load(Relaxed).saturating_mul(2)
    }
    /// A group of so many bytes waits; whether it may.
    pub(super) fn add_group(&self, len: usize) -> bool {
        if len > GROUP_BYTES_MAX || !self.has_room() {
            self.overrun.store(true, Relaxed);
            return false;
        }
        if len >= LARGE_BYTES {
            self.large_bytes.fetch_add(len, Relaxed);
        }
        self.add(len);
        true
    }
    /// So many bytes of groups wait.
    fn add(&self, len: usize) {
        if self.bytes.fetch_add(len, Relaxed) + len > self.bytes_max.load(Relaxed)
            && let Some(tell) = self.on_behind.get()
        {
            tell();
        }
    }
    /// So many bytes of groups wait no more, the last of which has `last`.
    pub(super) fn take(&self, len: usize, last: usize) {
        self.bytes.fetch_sub(len, Relaxed);
        if last >= LARGE_BYTES {
            self.large_bytes.fetch_sub(last, Relaxed);
        }
    }
}

impl Outbox {
    /// Adds a group.
    pub(crate) fn push(&self, epoch: u64, shards: &[(u32, u64)], effects: &[u8]) {
        let len = HEAD_BYTES + shards.len() * SHARD_BYTES + effects.len();
        if !self.backlog.add_group(len) {
            return;
        }
        let frames = &mut lock(&self.frames).bytes;
        frames.reserve(len);
        frames.extend_from_slice(&head(len, epoch, shards.len() as u32));
        shards.iter().for_each(|place| frames.extend_from_slice(&shard_bytes(*place)));
        frames.extend_from_slice(effects);
    }
    /// The same of a large one.
    #[cold]
    pub(crate) fn push_large(&self, epoch: u64, shards: &[(u32, u64)], effects: Loan) {
        let len = HEAD_BYTES + shards.len() * SHARD_BYTES;
        if !self.backlog.add_group(len + effects.bytes().len()) {
            return;
        }
        let mut frames = lock(&self.frames);
        frames.bytes.extend_from_slice(&head(len, epoch, shards.len() as u32 | LENT));
        shards.iter().for_each(|place| frames.bytes.extend_from_slice(&shard_bytes(*place)));
        frames.lent.push_back(effects);
    }
    /// Small groups that follow each other, unless too many wait.
    pub(crate) fn row(&self) -> Option<Row<'_>> {
        let frames = self.backlog.has_room().then(|| lock(&self.frames))?;
        let from = frames.bytes.len();
        Some(Row { from, at: from, frames, open: None, backlog: &self.backlog })
    }
}

/// Groups of one small effect each that a worker adds to its outbox one behind the other.
pub(crate) struct Row<'o> {
    frames: MutexGuard<'o, Frames>,
    /// Where they begin.
    from: usize,
    /// Where the next one goes. What is behind that in the buffer is room.
    at: usize,
    /// Where the row begins that the next one joins, and its epoch.
    open: Option<(usize, u64)>,
    backlog: &'o Backlog,
}

impl Row<'_> {
    /// Adds the group of a short string that was set, and has no expiry. Part of the loop that it is called in: a call
    /// costs as much as writing the group.
    #[inline(always)]
    pub(crate) fn set(
        &mut self,
        epoch: u64,
        (shard, count): (u32, u64),
        db: u8,
        (key, text): (&[u8], &[u8]),
    ) {
        if self.open.is_none_or(|(_, of)| of != epoch) {
            self.begin(epoch);
        }
        let Some(len) = tape::frame_bytes(key, text) else {
            return self.set_long(epoch, (shard, count), db, (key, text));
        };
        let frames = &mut *self.frames;
        if frames.bytes.len() - self.at < len {
            make_room(&mut frames.bytes, self.at + len);
        }
        let is_written = tape::frame(&mut frames.bytes[self.at..][..len], db, key, text);
        debug_assert!(is_written, "it has its room");
        self.at += len;
        frames.places.push(u64::from(shard) << COUNT_BITS | count & COUNT_MASK);
    }
    /// A row of this epoch begins.
    #[cold]
    fn begin(&mut self, epoch: u64) {
        self.close();
        self.open = Some((self.at, epoch));
        self.frames.bytes.extend_from_slice(&head(0, epoch, ROW));
        self.at = self.frames.bytes.len();
    }
    /// The same of one whose key is too long for a row.
    #[cold]
    fn set_long(&mut self, epoch: u64, shard: (u32, u64), db: u8, (key, text): (&[u8], &[u8])) {
        self.close();
        let at = self.frames.bytes.len();
        self.frames.bytes.extend_from_slice(&head(0, epoch, 1));
        self.frames.bytes.extend_from_slice(&shard_bytes(shard));
        tape::set(&mut self.frames.bytes, db, key, text);
        self.end_frame(at);
        self.at = self.frames.bytes.len();
    }
    /// What comes next joins no row, and stands right behind it.
    fn close(&mut self) {
        if let Some((at, _)) = self.open.take() {
            let Frames { bytes, places, .. } = &mut *self.frames;
            bytes.truncate(self.at);
            bytes.reserve(places.len() * PLACE_BYTES + PLACES_BYTES);
            places.iter().for_each(|place| bytes.extend_from_slice(&place.to_le_bytes()));
            bytes.extend_from_slice(&(places.len() as u32).to_le_bytes());
            places.clear();
            self.end_frame(at);
            self.at = self.frames.bytes.len();
        }
    }
    /// The frame that begins there ends here.
    fn end_frame(&mut self, at: usize) {
        let len = self.frames.bytes.len() - at;
        self.frames.bytes[at..at + 4].copy_from_slice(&(len as u32).to_le_bytes());
    }
}

impl Drop for Row<'_> {
    /// Counts them, before the merger can take them.
    fn drop(&mut self) {
        self.close();
        if self.frames.bytes.len() > self.from {
            self.backlog.add(self.frames.bytes.len() - self.from);
        }
    }
}

/// Makes a buffer so long, and longer than the next groups need: it is not looked at again for each.
#[cold]
fn make_room(bytes: &mut Vec<u8>, len: usize) {
    bytes.resize(len + ROOM_BYTES, 0);
}

/// Of frames those from one number to another.
#[cold]
fn cut(frames: &[u8], from: usize, to: usize) -> &[u8] {
    let (mut begin, mut end) = (0, 0);
    for number in 0..to {
        if number == from {
            begin = end;
        }
        end += tape::read_frame(&frames[end..]).map_or(0, |(.., len)| len);
    }
    &frames[begin..end]
}

fn head(len: usize, epoch: u64, shards: u32) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&(len as u32).to_le_bytes());
    head[4..12].copy_from_slice(&epoch.to_le_bytes());
    head[12..].copy_from_slice(&shards.to_le_bytes());
    head
}

fn shard_bytes((shard, count): (u32, u64)) -> [u8; SHARD_BYTES] {
    let mut bytes = [0; SHARD_BYTES];
    bytes[..4].copy_from_slice(&shard.to_le_bytes());
    bytes[4..].copy_from_slice(&count.to_le_bytes());
    bytes
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            large_bytes: AtomicUsize::new(0),
            bytes_max: AtomicUsize::new(BACKLOG_BYTES),
            overrun: AtomicBool::new(false),
            on_behind: OnceLock::new(),
        }
    }
}

/// Groups of one worker that were taken from its outbox, in the buffers that they stood in there.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) pieces: VecDeque<Vec<u8>>,
    /// The effects of large groups in them.
    pub(super) lent: VecDeque<Loan>,
    /// Where the first frame of the first piece begins.
    at: usize,
    /// Groups of its row that were given.
    pub(super) given: usize,
}

impl Queue {
    /// The first frame.
    #[inline]
    pub(super) fn front(&self) -> Option<Frame<'_>> {
        let rest = &self.pieces.front()?[self.at..];
        let head = rest.first_chunk::<HEAD_BYTES>()?;
        let (len, epoch) =
            (word(head, 0) as usize, u64::from(word(head, 4)) | u64::from(word(head, 8)) << 32);
        let shards = word(head, 12);
        let (shards, lent) = if shards & LENT == 0 || shards == ROW {
            (shards, None)
        } else {
            (shards & !LENT, Some(self.lent.front()?.bytes()))
        };
        Some(Frame { bytes: rest.get(..len)?, epoch, shards, lent })
    }
    /// Its epoch.
    pub(super) fn epoch(&self) -> Option<u64> {
        self.front().map(|frame| frame.epoch)
    }
    /// The first frame, of so many bytes, was given. A buffer in which nothing is any more comes back.
    #[inline]
    pub(super) fn pass(&mut self, len: usize, is_lent: bool) -> Option<Vec<u8>> {
        if is_lent {
            self.lent.pop_front();
        }
        self.given = 0;
        self.at += len;
        if self.pieces.front()?.len() > self.at {
            return None;
        }
        self.at = 0;
        self.pieces.pop_front()
    }
}

/// A group where it waits, or a row of them.
pub(super) struct Frame<'q> {
    pub(super) bytes: &'q [u8],
    pub(super) epoch: u64,
    shards: u32,
    /// Its effects, where they stand beside it.
    lent: Option<&'q [u8]>,
}

impl<'q> Frame<'q> {
    /// The shards that a group writes, with its count of each.
    #[inline]
    fn shards(&self) -> impl Iterator<Item = (u32, u64)> + use<'q> {
        self.bytes[HEAD_BYTES..][..self.shards as usize * SHARD_BYTES]
            .chunks_exact(SHARD_BYTES)
            .map(|place| (word(place, 0), u64::from(word(place, 4)) | u64::from(word(place, 8)) << 32))
    }
    /// Gives what is next: the group, or the row behind the first `done` of its groups, up to one before which
    /// something is missing. Says how many groups were given by now, and whether those are all.
    #[inline]
    pub(super) fn give(
        &self,
        done: usize,
        given: &mut [u64],
        give: &mut impl FnMut(Group<'q>),
    ) -> (usize, bool) {
        let epoch = self.epoch;
        if self.shards == ROW {
            return self.give_row(done, given, give);
        }
        if !self.shards().all(|(shard, count)| given[shard as usize] + 1 == count) {
            return (0, false);
        }
        self.shards().for_each(|(shard, count)| given[shard as usize] = count);
        let effects = self.lent.unwrap_or(&self.bytes[HEAD_BYTES + self.shards as usize * SHARD_BYTES..]);
        if effects.is_empty() {
            return (0, true);
        }
        give(Group { epoch, effects, row: 0 });
        (1, true)
    }
    #[inline]
    fn give_row(&self, done: usize, given: &mut [u64], give: &mut impl FnMut(Group<'q>)) -> (usize, bool) {
        let (rest, number) = self.bytes.split_at(self.bytes.len() - PLACES_BYTES);
        let all = word(number, 0) as usize;
        let (effects, places) = rest[HEAD_BYTES..].split_at(rest.len() - HEAD_BYTES - all * PLACE_BYTES);
        let mut count = done;
        for place in places.as_chunks().0.iter().skip(done) {
            let place = u64::from_le_bytes(*place);
            let last = &mut given[(place >> COUNT_BITS) as usize];
            if (*last + 1) & COUNT_MASK != place & COUNT_MASK {
                break;
            }
            *last += 1;
            count += 1;
        }
        if count > done {
            let effects = if count - done == all { effects } else { cut(effects, done, count) };
            give(Group { epoch: self.epoch, effects, row: (count - done) as u32 });
        }
        (count, count == all)
    }
    /// Bytes of a group that was counted as large where it is; a row never was.
    pub(super) fn large_bytes(&self) -> usize {
        if self.shards == ROW { 0 } else { self.bytes.len() + self.lent_bytes() }
    }
    /// Bytes of its effects that stand beside it.
    pub(super) fn lent_bytes(&self) -> usize {
        self.lent.map_or(0, <[u8]>::len)
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
