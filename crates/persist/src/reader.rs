//! Owns: the blocks of one file, in their order, each proven; where a file ends, and whether what does not prove is a
//! torn end or damage. Does not own: which files there are (`crate::manifest`), what blocks say (`crate::frames`).

use std::io;
use std::sync::Arc;

use crate::block::{BlockHead, FILE_HEAD_BYTES, FileHead, HEAD_BYTES, unpack};
use crate::disk::File;
use crate::sums::{STRIDE, Sums};

/// Epochs between two neighbouring blocks, at most: among bytes that are no block few look like the head of one.
const EPOCHS_BETWEEN_MAX: u64 = 1 << 40;
/// Beyond it no log comes; a server counts on from the last one.
const EPOCH_MAX: u64 = 1 << 62;
/// Bytes that are looked at together.
const WINDOW_BYTES: usize = 1 << 20;

/// How much of a file is known to have been on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes, all of them: what is not there or does not prove is damage.
    Whole(u64),
    /// Up to what its blocks say: behind that it may be torn.
    Open,
}

/// What a file does not give.
#[derive(Debug)]
pub enum Fault {
    /// The system could not read it.
    Io(io::Error),
    /// It has no head of this kind.
    Head(&'static str),
    /// Bytes that were on the disk prove to be others.
    Damage {
        /// Where.
        at: u64,
        /// The next block that proves, if there is one.
        next: Option<u64>,
        /// Where the file ends, as far as is known.
        end: u64,
    },
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A block that proved.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Where it begins.
    pub at: u64,
    /// Its head.
    pub head: BlockHead,
    /// Its requests.
    pub requests: &'a [u8],
}

/// How a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Behind the last block.
    pub at: u64,
    /// Bytes behind it that are not zeros and never were safe: those of a block that was being written.
    pub torn: u64,
}

/// Reads the blocks of one file.
#[derive(Debug)]
pub struct Blocks {
    file: Arc<dyn File>,
    head: FileHead,
    extent: Extent,
    /// Bytes of the file.
    len: u64,
    at: u64,
    epoch: u64,
    /// Where an open file may be torn: the blocks before this are there with all that belongs to them.
    whole: u64,
    /// The present block. As large as the largest one, all of which is in the file.
    buffer: Vec<u8>,
    /// Its requests, if they were packed.
    unpacked: Vec<u8>,
    /// What a search proves large blocks with.
    sums: Option<Sums>,
    end: Option<End>,
}

impl Blocks {
    /// Of a file.
    ///
    /// # Errors
    /// When it has no head, or is shorter than it was.
    pub fn open(file: Arc<dyn File>, extent: Extent) -> Result<Self, Fault> {
        let mut bytes = [0; FILE_HEAD_BYTES];
        let read = file.read(0, &mut bytes)?;
        let head = FileHead::read(&bytes[..read]).map_err(Fault::Head)?;
        let len = file.bytes()?;
        let len = match extent {
            Extent::Whole(whole) if len < whole => {
                return Err(Fault::Damage { at: len, next: None, end: whole });
            }
            Extent::Whole(whole) => whole,
            Extent::Open => len,
        };
        let at = FILE_HEAD_BYTES as u64;
        Ok(Self {
            file,
            head,
            extent,
            len,
            at,
            epoch: 0,
            whole: at,
            buffer: Vec::new(),
            unpacked: Vec::new(),
            sums: None,
            end: None,
        })
    }
    /// The file's head.
    #[must_use]
    pub const fn head(&self) -> &FileHead {
        &self.head
    }
    /// Bytes that there are, and how many of them were read.
    #[must_use]
    pub const fn progress(&self) -> (u64, u64) {
        (self.at, self.len)
    }
    /// How it ended, when all blocks were given.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// Goes on at a place, as behind damage: that of the next block that proves.
    pub fn skip_to(&mut self, at: u64) {
        self.at = at;
        self.end = None;
    }

    /// The next block; nothing at the end.
    ///
    /// # Errors
    /// When the disk fails, or where bytes are damaged that were on it.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>, Fault> {
        if self.end.is_some() {
            return Ok(None);
        }
        let at = self.at;
        match self.read_whole(at)? {
            Some(head) => {
                self.at = at + (HEAD_BYTES + head.len as usize) as u64;
                self.epoch = head.epoch;
                let mut requests = &self.buffer[HEAD_BYTES..];
                if head.is_packed {
                    unpack(requests, &mut self.unpacked).ok_or(Fault::Head(
                        "a block is whole and packed in a way that this version does not know",
                    ))?;
                    requests = &self.unpacked;
                }
                Ok(Some(Block { at, head, requests }))
            }
            None => self.finish(at).map(|()| None),
        }
    }

    /// Reads the block at a place, if one proves to be there, and in a file that may be torn so do those that belong to
    /// it. Else the first place where none does is the present one.
    fn read_whole(&mut self, at: u64) -> Result<Option<BlockHead>, Fault> {
        let first = self.read_at(at)?;
        let Some(mut head) = first else { return Ok(None) };
        if !head.is_open || self.extent != Extent::Open || at < self.whole {
            return Ok(first);
        }
        let before = self.epoch;
        while head.is_open {
            self.at += (HEAD_BYTES + head.len as usize) as u64;
            self.epoch = head.epoch;
            let Some(next) = self.read_at(self.at)? else { return Ok(None) };
            head = next;
        }
        (self.whole, self.at, self.epoch) = (self.at, at, before);
        self.read_at(at)
    }

    /// Reads the block at a place into the buffer, if one proves to be there that may follow the last one.
    fn read_at(&mut self, at: u64) -> Result<Option<BlockHead>, Fault> {
        self.buffer.resize(HEAD_BYTES, 0);
        if self.len.saturating_sub(at) < HEAD_BYTES as u64
            || self.file.read(at, &mut self.buffer)? < HEAD_BYTES
        {
            return Ok(None);
        }
        let Some(bytes) = self.buffer.first_chunk::<HEAD_BYTES>().copied() else { return Ok(None) };
        let head = BlockHead::read(&bytes);
        let whole = HEAD_BYTES + head.len as usize;
        if !self.may_follow(&head, at) {
            return Ok(None);
        }
        self.buffer.resize(whole, 0);
        let read = self.file.read(at + HEAD_BYTES as u64, &mut self.buffer[HEAD_BYTES..])?;
        let proves =
            read == head.len as usize && head.proves(&bytes, &self.buffer[HEAD_BYTES..], &self.head.salt);
        Ok(proves.then_some(head))
    }
    /// Whether a head can be one that stands at a place, before its block is read.
    fn may_follow(&self, head: &BlockHead, at: u64) -> bool {
        head.epoch >= self.epoch
            && head.epoch <= EPOCH_MAX
            && (self.epoch == 0 || head.epoch - self.epoch < EPOCHS_BETWEEN_MAX)
            && u64::from(head.behind) <= at
            && u64::from(head.len) <= self.len - at - HEAD_BYTES as u64
    }

    /// There is no block at the present place: the file ends here, is torn here, or is damaged. What is there from a
    /// place on is not whole without it.
    fn finish(&mut self, from: u64) -> Result<(), Fault> {
        let at = self.at;
        let end = self.len;
        let damage = |next| Fault::Damage { at, next, end };
        if let Extent::Whole(whole) = self.extent {
            if at != whole {
                let next = self.find_after(at, end)?.map(|(next, _)| next);
                return Err(damage(next));
            }
            self.end = Some(End { at, torn: 0 });
            return Ok(());
        }
        let used = self.used()?.max(at);
        // Each block that proves says how far the file was safe when it was written.
        let mut found = self.find_after(at, used)?;
        let first = found.map(|(next, _)| next);
        while let Some((next, head)) = found {
            if next - u64::from(head.behind) > at {
                return Err(damage(first));
            }
            // Right behind it is the next one, as a rule.
            let end = next + (HEAD_BYTES + head.len as usize) as u64;
            found = match self.read_at(end)? {
                Some(head) => Some((end, head)),
                None => self.find_after(end - 1, used)?,
            };
        }
        self.end = Some(End { at: from, torn: used - from });
        Ok(())
    }

    /// Behind the last byte that is not zero.
    fn used(&self) -> io::Result<u64> {
        let mut window = vec![0; WINDOW_BYTES.min((self.len - self.at) as usize)];
        let mut end = self.len;
        let zeros = vec![0; window.len()];
        while end > self.at {
            let from = end.saturating_sub(WINDOW_BYTES as u64).max(self.at);
            let read = self.file.read(from, &mut window[..(end - from) as usize])?;
            // Room that was never written to is long, and compared in large pieces.
            if window[..read] != zeros[..read]
                && let Some(last) = window[..read].iter().rposition(|byte| *byte != 0)
            {
                return Ok(from + last as u64 + 1);
            }
            end = from;
        }
        Ok(self.at)
    }

    /// Whether a block at a place is worth to be read: a large one only where it proves.
    fn may_prove(&mut self, at: u64, head: &BlockHead, bytes: &[u8; HEAD_BYTES]) -> io::Result<bool> {
        if head.len as usize <= STRIDE {
            return Ok(true);
        }
        let sums = match self.sums.take().filter(|sums| sums.covers(at)) {
            Some(sums) => sums,
            None => Sums::read(&*self.file, at, self.len)?,
        };
        let from = at + HEAD_BYTES as u64;
        let crc = head.crc_of_itself(bytes, &self.head.salt);
        let crc = sums.append(crc, &*self.file, (from, from + u64::from(head.len)))?;
        self.sums = Some(sums);
        Ok(crc.is_some_and(|crc| head.is_proven_by(crc)))
    }

    /// The next block that proves and begins between two places.
    fn find_after(&mut self, at: u64, until: u64) -> Result<Option<(u64, BlockHead)>, Fault> {
        let mut window = vec![0; (WINDOW_BYTES + HEAD_BYTES).min((self.len - at) as usize)];
        let mut from = at + 1;
        loop {
            let read = self.file.read(from, &mut window)?;
            let starts = read.saturating_sub(HEAD_BYTES - 1).min(WINDOW_BYTES);
            let starts = starts.min(until.saturating_sub(from) as usize);
            for start in 0..starts {
                let Some(bytes) = window[start..].first_chunk::<HEAD_BYTES>() else { break };
                let place = from + start as u64;
                let head = BlockHead::read(bytes);
                let may_be = self.len >= place + HEAD_BYTES as u64 && self.may_follow(&head, place);
                if may_be
                    && bytes.iter().any(|byte| *byte != 0)
                    && self.may_prove(place, &head, bytes)?
                    && let Some(head) = self.read_at(place)?
                {
                    return Ok(Some((place, head)));
                }
            }
            if starts < WINDOW_BYTES {
                return Ok(None);
            }
            from += WINDOW_BYTES as u64;
        }
    }
}

/// The requests of a file, one block behind the other, for who reads RESPB and knows no blocks.
#[derive(Debug)]
pub struct Requests {
    blocks: Blocks,
    /// Those of the present block, and how many of their bytes were read.
    present: Vec<u8>,
    read: usize,
}

impl Requests {
    /// Of a segment, up to where it is torn, or of a snapshot.
    ///
    /// # Errors
    /// When it has no head.
    pub fn open(file: Arc<dyn File>) -> io::Result<Self> {
        let blocks = Blocks::open(file, Extent::Open).map_err(said)?;
        Ok(Self { blocks, present: Vec::new(), read: 0 })
    }
}

impl io::Read for Requests {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.read == self.present.len() {
            let Some(block) = self.blocks.next_block().map_err(said)? else { return Ok(0) };
            self.present.clear();
            self.present.extend_from_slice(block.requests);
            self.read = 0;
        }
        let len = into.len().min(self.present.len() - self.read);
        into[..len].copy_from_slice(&self.present[self.read..][..len]);
        self.read += len;
        Ok(len)
    }
}

fn said(fault: Fault) -> io::Error {
    match fault {
        Fault::Io(error) => error,
        Fault::Head(why) => io::Error::other(why),
        Fault::Damage { at, .. } => {
            io::Error::other(format!("it is damaged at byte {at}: weft log check says what is lost"))
        }
    }
}
