//! Owns: writing a snapshot: all keys at one moment as effects, in blocks, into a file that has its name only when it
//! is whole. Does not own: which moment (the keyspace's), reading it (`crate::kept`).
//!
//! A key's effects stand in its order: `SET`, or `WEFT.NEW` and its members, in as many blocks as it takes. The last
//! block of the file has no requests, and is there in each that is whole.

use std::io;
use std::sync::Arc;

use weft_store::effect::KeyedEffect;

use crate::block::{BlockHead, FILE_HEAD_BYTES, FileHead, FileKind, HEAD_BYTES, pack};
use crate::disk::{Disk, File};
use crate::frames::Encoder;
use crate::manifest::{Manifest, Piece, UNFINISHED, snapshot_name};

/// Bytes of a block from which on no more effects join it.
const JOINED_BYTES_MAX: usize = 256 << 10;

/// Bytes that are written before they are synced: a disk that has much to write at once holds up the log's syncs.
const SYNC_BYTES: u64 = 32 << 20;

/// A snapshot that is whole and on the disk.
#[derive(Debug)]
pub struct Snapshot {
    disk: Arc<dyn Disk>,
    name: String,
    bytes: u64,
}

impl Snapshot {
    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Nobody wants it any more: its file goes.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn discard(self) -> io::Result<()> {
        self.disk.remove(&self.name)
    }
    pub(crate) fn into_piece(self) -> Piece {
        Piece { name: self.name, bytes: Some(self.bytes) }
    }
}

/// A snapshot that is being written.
#[derive(Debug)]
pub struct SnapshotWriter {
    disk: Arc<dyn Disk>,
    name: String,
    file: Arc<dyn File>,
    salt: [u8; 8],
    at: u64,
    synced: u64,
    encoder: Encoder,
    block: Vec<u8>,
    /// The same, packed.
    packed: Vec<u8>,
    count: u32,
    epoch: u64,
}

/// Removes what a server that was killed has left of a snapshot of this name; not what another one is writing, nor what
/// is no snapshot. Says whether there was something.
///
/// # Errors
/// When the disk fails.
pub fn clear_unfinished(disk: &dyn Disk, name: &str) -> io::Result<bool> {
    let unfinished = format!("{name}{UNFINISHED}");
    let mut head = [0; FILE_HEAD_BYTES];
    let read = match disk.open(&unfinished) {
        Ok(file) => file.read(0, &mut head)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if read > 0 && !FileHead::begins(&head[..read]) {
        return Ok(false);
    }
    match disk.create_alone(&unfinished) {
        Ok(_alone) => disk.remove(&unfinished).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

impl SnapshotWriter {
    /// One that belongs to a log.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn of_log(disk: Arc<dyn Disk>, base: &str, number: u64, epoch: u64) -> io::Result<Self> {
        Manifest::ensure(&disk, base)?;
        Self::create(disk, snapshot_name(base, number), number, epoch)
    }
    /// One by itself.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn create(disk: Arc<dyn Disk>, name: String, number: u64, epoch: u64) -> io::Result<Self> {
        let head = FileHead::fresh(FileKind::Snapshot, number)?;
        let unfinished = format!("{name}{UNFINISHED}");
        let file = disk.create_alone(&unfinished).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                let shown = disk.shown(&unfinished);
                io::Error::new(
                    error.kind(),
                    format!("another server is writing {shown}: choose another dir or dbfilename"),
                )
            }
            _ => error,
        })?;
        let writer = Self {
            disk,
            name,
            file,
            salt: head.salt,
            at: FILE_HEAD_BYTES as u64,
            synced: 0,
            encoder: Encoder::default(),
            block: vec![0; HEAD_BYTES],
            packed: Vec::new(),
            count: 0,
            epoch,
        };
        // What is begun goes where that fails.
        writer.file.write(0, &head.bytes())?;
        Ok(writer)
    }

    /// Adds an effect.
    ///
    /// # Errors
    /// When the disk fails: the snapshot is to be given up.
    pub fn push(&mut self, told: &KeyedEffect<'_>) -> io::Result<()> {
        self.encoder.effect(told, &mut self.block);
        self.count += 1;
        if self.block.len() >= JOINED_BYTES_MAX { self.write_block() } else { Ok(()) }
    }
    /// Adds effects that stand one behind the other: neighbours share requests.
    ///
    /// # Errors
    /// When the disk fails: the snapshot is to be given up.
    pub fn push_all(&mut self, effects: weft_store::effect::Read<'_>) -> io::Result<()> {
        self.count += self.encoder.run(effects, &mut self.block);
        if self.block.len() >= JOINED_BYTES_MAX { self.write_block() } else { Ok(()) }
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.block.len() > u32::MAX as usize {
            return Err(io::Error::other("what stands between two blocks is more than a block can be"));
        }
        let (block, count) = match pack(&self.block, self.count, &mut self.packed) {
            Some(count) => (&mut self.packed, count),
            None => (&mut self.block, self.count),
        };
        BlockHead::seal(block, &self.salt, (self.epoch, count, 0));
        self.file.write(self.at, block)?;
        self.at += block.len() as u64;
        self.packed.shrink_to(2 * JOINED_BYTES_MAX);
        self.block.truncate(HEAD_BYTES);
        self.block.shrink_to(2 * JOINED_BYTES_MAX);
        self.count = 0;
        if self.at - self.synced >= SYNC_BYTES {
            self.file.sync()?;
            self.synced = self.at;
        }
        Ok(())
    }

    /// Bytes that were written.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.at
    }

    /// It is whole: it is on the disk and has its name.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn finish(mut self) -> io::Result<Snapshot> {
        if self.block.len() > HEAD_BYTES {
            self.write_block()?;
        }
        self.write_block()?;
        self.file.sync()?;
        self.disk.rename(&format!("{}{UNFINISHED}", self.name), &self.name)?;
        self.disk.sync_names()?;
        let disk = Arc::clone(&self.disk);
        Ok(Snapshot { disk, name: std::mem::take(&mut self.name), bytes: self.at })
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // It was given up. What cannot be removed is in nobody's way.
            let _ = self.disk.remove(&format!("{}{UNFINISHED}", self.name));
        }
    }
}
