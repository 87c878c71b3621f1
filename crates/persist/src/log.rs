//! Owns: writing a log: groups into blocks, blocks into segments, the next segment, the manifest. Does not own: when it
//! is written and synced, and what follows a failure (the server's thread does); reading it (`crate::kept`).
//!
//! **Room first.** A segment has its room before anything is written to it, and so has the next one. Where that cannot
//! be had ([`Log::lacks_room`]), writes are to be refused: what is under way still fits into the present one. A log
//! that begins, goes on or is cut on a full disk does so without room, so that nothing stops for the want of it.
//!
//! **After an error** nothing more is written with this log. What it held and did not sync is in no known state; the
//! next one begins behind a snapshot ([`Log::begin`]). Where the process ends before there is one, the next one finds
//! what the system has in memory, which it takes for written though it never was: [`Log::go_on`] writes it again.
//!
//! **When it rests** a block without requests says that what is before it was on the disk ([`Log::vouch`]), so that
//! damage of the last block is told from what was being written.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use weft_store::effect::Read;

use crate::block::{BlockHead, FILE_HEAD_BYTES, FileHead, FileKind, HEAD_BYTES, OPEN};
use crate::disk::{Disk, File};
use crate::frames::Encoder;
use crate::kept::FoundLog;
use crate::manifest::{FILES_MAX, Manifest, Piece, UNFINISHED, number_of, segment_name};
use crate::snapshot::Snapshot;

/// Bytes of a segment, as a rule: one group may make it longer.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// Bytes of a block from which on no more groups join it. What is written, summed up and handed to the system one
/// behind the other is still in the processor's own cache then.
const JOINED_BYTES_MAX: usize = 64 << 10;
/// Bytes of a group from which on it has a block of its own, of which no more than this, and what one request has, is
/// in memory.
const LARGE_BYTES: usize = 1 << 20;
/// Bytes of such a block that are written together.
const WRITTEN_BYTES_MAX: usize = 256 << 10;
/// Bytes of a block, its head among them.
const BLOCK_BYTES_MAX: usize = u32::MAX as usize;

/// Segments that are left for cuts where there are nearly as many as a manifest may name: the last one of the others
/// grows meanwhile.
const CUTS_MAX: usize = 64;

/// How a log is written.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// What the names of its files begin with.
    pub base: String,
    /// Bytes of a segment.
    pub segment_bytes: u64,
}

/// The segment that is written to.
#[derive(Debug)]
struct Segment {
    file: Arc<dyn File>,
    salt: [u8; 8],
    /// Where the next block goes.
    at: u64,
    /// Up to where it is on the disk.
    synced: u64,
    /// The same, as is said by what stands behind that: a block, or the manifest.
    vouched: u64,
    /// All of it has its room.
    has_room: bool,
}

/// A log that is written.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    options: LogOptions,
    manifest: Manifest,
    next_number: u64,
    segment: Segment,
    /// The next segment has its room.
    has_spare: bool,
    encoder: Encoder,
    /// The block that is being filled, with room for its head.
    block: Vec<u8>,
    count: u32,
    epoch: u64,
    /// What belongs to the last block that was written goes on behind it: it is closed before anything counts.
    is_open: bool,
    /// Bytes of all segments that are whole.
    closed_bytes: u64,
    /// It counts only from its snapshot on: until then the manifest is that of the log before.
    is_pending: bool,
}

impl Log {
    /// A log of a keyspace in which nothing is. Files of a log of the same name go.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn begin(disk: Arc<dyn Disk>, options: LogOptions) -> io::Result<Self> {
        Self::with(disk, options, Manifest::default(), false)
    }
    /// A log of a keyspace in which something is: it counts when a snapshot has taken the place of its first segments
    /// ([`Log::replace`]). Until then what was kept before is what is kept.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn begin_pending(disk: Arc<dyn Disk>, options: LogOptions) -> io::Result<Self> {
        Self::with(disk, options, Manifest::default(), true)
    }
    /// A log goes on that was kept, behind what was read of it.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn go_on(disk: Arc<dyn Disk>, options: LogOptions, kept: FoundLog) -> io::Result<Self> {
        let (mut manifest, safe) = kept.into_parts();
        if let Some(last) = manifest.segments.last().cloned()
            && let Some(bytes) = last.bytes
        {
            let file = disk.open(&last.name)?;
            // Gives back the room that it did not need, and what was cut off.
            if file.bytes()? > bytes {
                file.set_len(bytes)?;
            }
            // What was read may be in the system's memory only, and is to count from now on. Where a sync has failed
            // the system takes it for written: it has to be changed to be so.
            write_again(&*file, safe..bytes)?;
            file.sync()?;
        }
        // Those that hold nothing say nothing.
        manifest.segments.retain(|segment| segment.bytes != Some(FILE_HEAD_BYTES as u64));
        Self::with(disk, options, manifest, false)
    }

    fn with(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        mut manifest: Manifest,
        is_pending: bool,
    ) -> io::Result<Self> {
        Manifest::ensure(&disk, &options.base)?;
        // Those of an attempt that has failed take room. A snapshot that is being written is not in a manifest yet.
        let counts = Manifest::read(&*disk, &options.base).map_err(io::Error::other)?.unwrap_or_default();
        remove_others(&*disk, &counts, |name| {
            name == spare_name(&options.base)
                || number_of(&options.base, name).is_some() && !name.ends_with(UNFINISHED)
        });
        let numbers = disk.names()?.into_iter().filter_map(|name| number_of(&options.base, &name)).max();
        let mut next_number = numbers.map_or(1, |last| last + 1);
        let segment = Self::segment(&disk, &options, &mut next_number, &mut manifest, false)?;
        if !is_pending {
            manifest.write(&disk, &options.base)?;
        }
        let closed_bytes = manifest.segments.iter().filter_map(|segment| segment.bytes).sum();
        let mut log = Self {
            disk,
            options,
            manifest,
            next_number,
            segment,
            has_spare: false,
            encoder: Encoder::default(),
            block: vec![0; HEAD_BYTES],
            count: 0,
            epoch: 0,
            is_open: false,
            closed_bytes,
            is_pending,
        };
        if !is_pending {
            log.remove_others();
        }
        log.make_room()?;
        Ok(log)
    }

    /// Makes the next segment, with its head on the disk, and names it in the manifest, which is not written yet.
    fn segment(
        disk: &Arc<dyn Disk>,
        options: &LogOptions,
        next_number: &mut u64,
        manifest: &mut Manifest,
        has_spare: bool,
    ) -> io::Result<Segment> {
        let head = FileHead::fresh(FileKind::Segment, *next_number)?;
        let name = segment_name(&options.base, *next_number);
        let made = (|| {
            let file = if has_spare {
                disk.rename(&spare_name(&options.base), &name)?;
                disk.open(&name)?
            } else {
                disk.create(&name)?
            };
            let has_room = has_spare || has_been_made(file.allocate(options.segment_bytes))?;
            file.write(0, &head.bytes())?;
            file.sync()?;
            disk.sync_names()?;
            let at = FILE_HEAD_BYTES as u64;
            Ok(Segment { file, salt: head.salt, at, synced: at, vouched: at, has_room })
        })();
        if made.is_err() {
            // It is in no manifest. What cannot be removed goes when the log is next begun.
            let _ = disk.remove(&name);
        }
        *next_number += 1;
        manifest.segments.push(Piece { name, bytes: None });
        made
    }

    /// Adds a group. Its bytes are written when a block is full, or with [`Log::flush`]: all groups that are added
    /// before that are kept together or not at all.
    ///
    /// # Errors
    /// When the disk fails, or the group is larger than a block can be: the log has to begin anew.
    pub fn push(&mut self, epoch: u64, effects: Read<'_>) -> io::Result<()> {
        if effects.bytes_left() >= LARGE_BYTES {
            return self.push_large(epoch, effects);
        }
        self.join(epoch)?;
        self.count += self.encoder.group(effects, &mut self.block);
        Ok(())
    }
    /// The same of so many groups of one effect each, which are requests already.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn push_row(&mut self, epoch: u64, (requests, count): (&[u8], u32)) -> io::Result<()> {
        self.join(epoch)?;
        self.block.extend_from_slice(requests);
        self.count += count;
        Ok(())
    }
    /// What is added next is of this epoch.
    fn join(&mut self, epoch: u64) -> io::Result<()> {
        if self.block.len() >= JOINED_BYTES_MAX {
            self.write_block(true)?;
        }
        self.epoch = epoch;
        Ok(())
    }
    /// The same of a large group, which has a block of its own: its requests are written as they are made, and the
    /// block's head when they are all there, without which none of them is.
    fn push_large(&mut self, epoch: u64, effects: Read<'_>) -> io::Result<()> {
        if self.block.len() > HEAD_BYTES {
            self.write_block(true)?;
        }
        self.epoch = epoch;
        let behind = self.begin_block(effects.bytes_left() as u64)?;
        let Segment { file, salt, at, .. } = &mut self.segment;
        let from = *at + HEAD_BYTES as u64;
        let (mut len, mut crc) = (0, 0);
        let mut write = |requests: &[u8]| {
            if !is_block(HEAD_BYTES + len + requests.len()) {
                return Err(io::Error::other(
                    "what one command or transaction has done is more than a log can keep: 4 GiB",
                ));
            }
            for piece in requests.chunks(WRITTEN_BYTES_MAX) {
                crc = crc32c::crc32c_append(crc, piece);
                file.write(from + len as u64, piece)?;
                len += piece.len();
            }
            Ok(())
        };
        let mut requests = Vec::new();
        let count = self.encoder.large_group(effects, &mut requests, |requests| {
            if requests.len() >= WRITTEN_BYTES_MAX {
                write(requests)?;
                requests.clear();
                requests.shrink_to(2 * WRITTEN_BYTES_MAX);
            }
            Ok::<(), io::Error>(())
        })?;
        write(&requests)?;
        if count == 0 {
            return Ok(());
        }
        file.write(*at, &BlockHead::sealed(salt, (len as u32, crc), (epoch, count | OPEN, behind)))?;
        *at = from + len as u64;
        self.is_open = true;
        Ok(())
    }

    /// Writes what was added: it is whole.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.block.len() > HEAD_BYTES || self.is_open { self.write_block(false) } else { Ok(()) }
    }

    /// Writes the block, behind which more follows that belongs to it, or not.
    fn write_block(&mut self, is_open: bool) -> io::Result<()> {
        let behind = self.begin_block(self.block.len() as u64)?;
        let Segment { file, salt, at, .. } = &mut self.segment;
        let count = self.count | if is_open { OPEN } else { 0 };
        BlockHead::seal(&mut self.block, salt, (self.epoch, count, behind));
        file.write(*at, &self.block)?;
        *at += self.block.len() as u64;
        self.is_open = is_open;
        self.block.truncate(HEAD_BYTES);
        self.block.shrink_to(2 * JOINED_BYTES_MAX);
        self.count = 0;
        Ok(())
    }
    /// About so many bytes follow: in the next segment, if this one has no room for them. What belongs together stands
    /// in one.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn make_way(&mut self, len: u64) -> io::Result<()> {
        if !self.is_open
            && self.segment.at + len > self.options.segment_bytes
            && self.segment.at > FILE_HEAD_BYTES as u64
            && self.manifest.segments.len() < FILES_MAX - CUTS_MAX
        {
            // Without room for another one the present one goes on beyond its own: there may be some bytes.
            self.make_room()?;
            if self.has_spare {
                self.rotate()?;
            }
        }
        Ok(())
    }
    /// A block of about so many bytes follows. Gives how many bytes before it are not on the disk.
    fn begin_block(&mut self, len: u64) -> io::Result<u32> {
        self.make_way(len)?;
        // A block says how far back the file was safe when it was written, in 32 bits.
        if self.unsynced_bytes() > u64::from(u32::MAX) {
            self.sync()?;
        }
        Ok(u32::try_from(self.unsynced_bytes()).unwrap_or(u32::MAX))
    }

    /// All that was written is on the disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.segment.synced != self.segment.at {
            self.segment.file.sync()?;
            self.segment.synced = self.segment.at;
        }
        Ok(())
    }

    /// Nothing has come for a while: says in the file that what is in it is on the disk, if it is and nothing says so
    /// yet. Says whether it did; that is on the disk too then.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn vouch(&mut self) -> io::Result<bool> {
        let Segment { at, synced, vouched, .. } = self.segment;
        if self.block.len() > HEAD_BYTES || synced != at || vouched == at {
            return Ok(false);
        }
        self.write_block(false)?;
        self.sync()?;
        // That it is there itself need not be said: without it nothing is lost.
        self.segment.vouched = self.segment.at;
        Ok(true)
    }

    /// Ends the present segment, and begins the next one. What was added is in the former.
    fn rotate(&mut self) -> io::Result<()> {
        self.sync()?;
        let ended = std::mem::replace(
            &mut self.segment,
            Self::segment(
                &self.disk,
                &self.options,
                &mut self.next_number,
                &mut self.manifest,
                self.has_spare,
            )?,
        );
        self.has_spare = false;
        let last = self.manifest.segments.len() - 2;
        self.manifest.segments[last].bytes = Some(ended.at);
        if !self.is_pending {
            self.manifest.write(&self.disk, &self.options.base)?;
        }
        self.closed_bytes += ended.at;
        // Gives the room back that it did not need. Readers know its length.
        ended.file.set_len(ended.at)?;
        self.make_room()
    }

    /// Cuts the log: what is added from now on stands in segments of their own. Gives the number of segments before.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn cut(&mut self) -> io::Result<usize> {
        if self.manifest.segments.len() >= FILES_MAX {
            return Err(io::Error::other("there are as many segments as a log may have"));
        }
        self.flush()?;
        self.rotate()?;
        Ok(self.manifest.segments.len() - 1)
    }
    /// A snapshot takes the place of the first segments: what [`Log::cut`] gave when it was begun.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn replace(&mut self, segments: usize, snapshot: Snapshot) -> io::Result<()> {
        let gone: Vec<Piece> = self.manifest.segments.drain(..segments).collect();
        let bytes: u64 = gone.iter().filter_map(|piece| piece.bytes).sum();
        let before = self.manifest.snapshot.replace(snapshot.into_piece());
        self.manifest.write(&self.disk, &self.options.base)?;
        self.closed_bytes -= bytes;
        for piece in gone.into_iter().chain(before) {
            // It is in nobody's way, and goes when the log is next begun.
            let _ = self.disk.remove(&piece.name);
        }
        if std::mem::take(&mut self.is_pending) {
            self.remove_others();
        }
        Ok(())
    }
    /// Whether it counts only from a snapshot on that is not there yet.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// Whether there are so many segments that a snapshot should take their place, however short the log is.
    #[must_use]
    pub const fn is_of_many(&self) -> bool {
        self.manifest.segments.len() >= FILES_MAX / 2
    }
    /// Whether writes are to be refused, since this segment or the next one has no room.
    #[must_use]
    pub const fn lacks_room(&self) -> bool {
        !(self.has_spare && self.segment.has_room)
    }
    /// Whether what is written is still what is found by its name: what somebody has removed, or put another file or
    /// folder in the place of, takes every write and keeps none.
    ///
    /// # Errors
    /// `NotFound` where it is not; else when the disk fails.
    pub fn look_for_itself(&self) -> io::Result<()> {
        let Some(last) = self.manifest.segments.last() else { return Ok(()) };
        if self.disk.has(&last.name, &*self.segment.file)? && self.disk.is_ours() {
            return Ok(());
        }
        let text = format!("{} was removed", self.disk.shown(&last.name));
        Err(io::Error::new(io::ErrorKind::NotFound, text))
    }
    /// Makes room for this segment and the next one, if they have none. A full disk is no error.
    ///
    /// # Errors
    /// When the disk fails otherwise.
    pub fn make_room(&mut self) -> io::Result<()> {
        if !self.segment.has_room {
            self.segment.has_room = has_been_made(self.segment.file.allocate(self.options.segment_bytes))?;
        }
        if self.has_spare || !self.segment.has_room {
            return Ok(());
        }
        let name = spare_name(&self.options.base);
        let made = self.disk.create(&name).and_then(|file| file.allocate(self.options.segment_bytes));
        self.has_spare = has_been_made(made)?;
        if !self.has_spare {
            let _ = self.disk.remove(&name);
        }
        Ok(())
    }

    /// The end: all is on the disk, and a last block says so, so that damage of what is before it is told from a torn
    /// end.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn close(mut self) -> io::Result<()> {
        self.flush()?;
        self.sync()?;
        self.vouch()?;
        let _ = self.disk.remove(&spare_name(&self.options.base));
        Ok(())
    }

    /// Files of logs that this one has taken the place of, or that were never finished.
    fn remove_others(&self) {
        // Its own room for the next segment is in no manifest.
        let base = &self.options.base;
        remove_others(&*self.disk, &self.manifest, |name| {
            number_of(base, name).is_some() || !self.has_spare && name == spare_name(base)
        });
    }

    /// Bytes of the log, without its snapshot.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.closed_bytes + self.segment.at
    }
    /// Bytes that are written and not on the disk.
    #[must_use]
    pub const fn unsynced_bytes(&self) -> u64 {
        self.segment.at - self.segment.synced
    }
    /// Bytes of the snapshot that it begins behind.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        self.manifest.snapshot.as_ref().and_then(|piece| piece.bytes).unwrap_or(0)
    }
    /// The number that a snapshot of this log is to have: it is taken.
    pub const fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }
    /// The disk, and what names begin with.
    #[must_use]
    pub fn place(&self) -> (Arc<dyn Disk>, &str) {
        (Arc::clone(&self.disk), &self.options.base)
    }
}

/// Writes the same bytes of a file over what is there.
fn write_again(file: &dyn File, mut range: Range<u64>) -> io::Result<()> {
    let mut window = vec![0; (range.end.saturating_sub(range.start) as usize).min(WRITTEN_BYTES_MAX)];
    while range.start < range.end {
        let len = window.len().min((range.end - range.start) as usize);
        let read = file.read(range.start, &mut window[..len])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.write(range.start, &window[..read])?;
        range.start += read as u64;
    }
    Ok(())
}

/// Whether a block may have so many bytes: its head counts them in 32 bits.
const fn is_block(bytes: usize) -> bool {
    bytes <= BLOCK_BYTES_MAX
}

fn spare_name(base: &str) -> String {
    format!("{base}.spare{UNFINISHED}")
}

/// Removes files of a log that a manifest does not name.
fn remove_others(disk: &dyn Disk, manifest: &Manifest, is_of_log: impl Fn(&str) -> bool) {
    let Ok(names) = disk.names() else { return };
    for name in names.iter().filter(|name| is_of_log(name) && !manifest.names().any(|own| own == *name)) {
        // What cannot be removed is in nobody's way.
        let _ = disk.remove(name);
    }
}

/// Whether room was made: a full disk is no error.
fn has_been_made(made: io::Result<()>) -> io::Result<bool> {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match made {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::Simulated;
    use weft_store::effect::{Effect, Tape, Text};

    #[test]
    fn a_block_has_no_more_than_its_head_can_say() {
        assert!(is_block(u32::MAX as usize) && !is_block(u32::MAX as usize + 1));
        assert_eq!(1_u64 << 32, BLOCK_BYTES_MAX as u64 + 1, "4 GiB");
    }

    /// A manifest of more files than may be cannot be read: a log that has nearly as many goes on in its last one.
    #[test]
    fn a_log_never_has_more_segments_than_a_manifest_may_name() {
        let disk: Arc<dyn Disk> = Arc::new(Simulated::default());
        let options = LogOptions { base: "a.aof".into(), segment_bytes: 4000 };
        let mut log = Log::begin(Arc::clone(&disk), options).expect("nothing fails");
        assert!(!log.is_of_many());
        let last = log.manifest.segments.pop().expect("it has begun");
        let filled = Piece { name: segment_name("a.aof", 0), bytes: Some(FILE_HEAD_BYTES as u64) };
        log.manifest.segments = vec![filled.clone(); FILES_MAX - CUTS_MAX - 2];
        log.manifest.segments.push(last);
        assert!(log.is_of_many());
        let mut tape = Tape::default();
        let value = [7; 300];
        tape.push(0, b"key", &Effect::Set { value: Text::Bytes(&value), expire_ms: None });
        for epoch in 1..100 {
            log.push(epoch, Read::new(tape.bytes())).expect("nothing fails");
            log.flush().expect("nothing fails");
        }
        assert_eq!(log.manifest.segments.len(), FILES_MAX - CUTS_MAX, "it grows where it ends");
        log.cut().expect("there is room for cuts");
        log.manifest.segments.resize(FILES_MAX, filled);
        let text = log.cut().expect_err("it has as many as it may").to_string();
        assert!(text.contains("as many segments as a log may have"), "{text}");
        assert!(Manifest::read(&*disk, "a.aof").expect("it can be read").is_some());
    }
}
