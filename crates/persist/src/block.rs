//! Owns: blocks, the unit that is written, proven and lost as a whole, and the head of a file of them. Does not own:
//! what stands in a block (`crate::frames`), where it is written (`crate::log`, `crate::snapshot`).
//!
//! ```text
//! head of a file
//!  0          8         10       12                 20          28       32
//! +----------+---------+--------+------------------+-----------+--------+
//! | WEFTFILE | version | kind   | salt             | number    | CRC    |
//! +----------+---------+--------+------------------+-----------+--------+
//! block
//!  0        4         8                 16        20       24
//! +--------+---------+-----------------+---------+--------+----------------------+
//! | CRC    | length  | epoch           | count   | behind | requests …           |
//! +--------+---------+-----------------+---------+--------+----------------------+
//! ```
//! Numbers are big endian, as in RESPB. The CRC is CRC-32C of the file's salt and of what follows it, so that a block
//! of another file that somebody has stored as a value is none. `count` is the number of requests. `behind` says how
//! many bytes before this block were not yet synced when it was written: what is broken further before is no torn end,
//! but was on the disk and is damaged. A block without requests says only that.
//!
//! The highest bit of `count` says that the requests are packed: their length as four bytes, and a block of LZ4. Those
//! of snapshots are, where it makes them shorter. The next one says that the block is *open*: what belongs together
//! with it goes on in the block behind it, and without that is not kept either.
//!
//! Where a block would begin and all is zeros to the end, or nothing is there, the file ends.

/// Bytes before a block's requests.
pub const HEAD_BYTES: usize = 24;
/// Bytes before a file's first block.
pub const FILE_HEAD_BYTES: usize = 32;

/// The bit of a block's count that says that its requests are packed.
const PACKED: u32 = 1 << 31;
/// The bit that says that it is open. A block has fewer requests, of which the shortest has some six bytes.
pub(crate) const OPEN: u32 = 1 << 30;
/// What a byte of LZ4 becomes at most.
const UNPACKED_MAX: usize = 255;
const MAGIC: &[u8; 8] = b"WEFTFILE";
const VERSION: u16 = 1;

/// CRC-32C of pieces one behind the other.
pub(crate) fn crc(pieces: &[&[u8]]) -> u32 {
    pieces.iter().fold(0, |crc, piece| crc32c::crc32c_append(crc, piece))
}

/// What a file of blocks is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A piece of the log.
    Segment,
    /// All keys at one moment.
    Snapshot,
}

/// The head of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHead {
    /// What it is.
    pub kind: FileKind,
    /// What its blocks are proven with.
    pub salt: [u8; 8],
    /// Its number among the files of its log.
    pub number: u64,
}

impl FileHead {
    /// One with a salt of its own.
    ///
    /// # Errors
    /// When the system has no entropy.
    pub fn fresh(kind: FileKind, number: u64) -> std::io::Result<Self> {
        let mut salt = [0; 8];
        getrandom::getrandom(&mut salt).map_err(std::io::Error::from)?;
        Ok(Self { kind, salt, number })
    }
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; FILE_HEAD_BYTES] {
        let mut bytes = [0; FILE_HEAD_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        let kind: u16 = match self.kind {
            FileKind::Segment => 1,
            FileKind::Snapshot => 2,
        };
        bytes[10..12].copy_from_slice(&kind.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.salt);
        bytes[20..28].copy_from_slice(&self.number.to_be_bytes());
        let crc = crc(&[&bytes[..28]]);
        bytes[28..].copy_from_slice(&crc.to_be_bytes());
        bytes
    }
    /// From the first bytes of a file.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read(bytes: &[u8]) -> Result<Self, &'static str> {
        let Some(bytes) = bytes.first_chunk::<FILE_HEAD_BYTES>() else {
            return Err("it is too short to be a file of Weft");
        };
        if !Self::begins(bytes) {
            return Err("it is no file of Weft");
        }
        if bytes[28..] != crc(&[&bytes[..28]]).to_be_bytes() {
            return Err("its head is damaged");
        }
        if bytes[8..10] != VERSION.to_be_bytes() {
            return Err("it was written by a later version of Weft");
        }
        let kind = match bytes[10..12] {
            [0, 1] => FileKind::Segment,
            [0, 2] => FileKind::Snapshot,
            _ => return Err("it is of a kind that this version does not know"),
        };
        let (mut salt, mut number) = ([0; 8], [0; 8]);
        salt.copy_from_slice(&bytes[12..20]);
        number.copy_from_slice(&bytes[20..28]);
        Ok(Self { kind, salt, number: u64::from_be_bytes(number) })
    }
    /// Whether a file that begins so is one of Weft.
    #[must_use]
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }
}

/// The head of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHead {
    crc: u32,
    /// Bytes of its requests.
    pub len: u32,
    /// The epoch of its last group.
    pub epoch: u64,
    /// Requests.
    pub count: u32,
    /// They are packed.
    pub is_packed: bool,
    /// What belongs together with them goes on in the next block.
    pub is_open: bool,
    /// Bytes before it that were not synced when it was written.
    pub behind: u32,
}

impl BlockHead {
    /// Writes it in front of its requests: `block` begins with [`HEAD_BYTES`] for it.
    pub fn seal(block: &mut [u8], salt: &[u8; 8], said: (u64, u32, u32)) {
        // A block is kept below 4 GiB by who fills it.
        let len = (block.len() - HEAD_BYTES) as u32;
        Self::say(block, len, said);
        let crc = crc(&[salt, &block[4..]]);
        block[..4].copy_from_slice(&crc.to_be_bytes());
    }
    /// The head of a block whose requests are written already: so many bytes, with this CRC.
    pub(crate) fn sealed(
        salt: &[u8; 8],
        (len, requests_crc): (u32, u32),
        said: (u64, u32, u32),
    ) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        Self::say(&mut head, len, said);
        let crc = crc32c::crc32c_combine(crc(&[salt, &head[4..]]), requests_crc, len as usize);
        head[..4].copy_from_slice(&crc.to_be_bytes());
        head
    }
    fn say(head: &mut [u8], len: u32, (epoch, count, behind): (u64, u32, u32)) {
        head[4..8].copy_from_slice(&len.to_be_bytes());
        head[8..16].copy_from_slice(&epoch.to_be_bytes());
        head[16..20].copy_from_slice(&count.to_be_bytes());
        head[20..24].copy_from_slice(&behind.to_be_bytes());
    }
    /// From its bytes.
    #[must_use]
    pub fn read(bytes: &[u8; HEAD_BYTES]) -> Self {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let epoch = u64::from(word(8)) << 32 | u64::from(word(12));
        let (said, count) = (word(16), word(16) & !(PACKED | OPEN));
        let (is_packed, is_open) = (said & PACKED != 0, said & OPEN != 0);
        Self { crc: word(0), len: word(4), epoch, count, is_packed, is_open, behind: word(20) }
    }
    /// Whether it is the one of these requests.
    #[must_use]
    pub fn proves(&self, head: &[u8; HEAD_BYTES], requests: &[u8], salt: &[u8; 8]) -> bool {
        self.is_proven_by(crc32c::crc32c_append(self.crc_of_itself(head, salt), requests))
    }
    /// The CRC of what stands before the requests, to be gone on with.
    pub(crate) fn crc_of_itself(&self, head: &[u8; HEAD_BYTES], salt: &[u8; 8]) -> u32 {
        crc(&[salt, &head[4..]])
    }
    /// Whether the CRC of all of a block is the one that it has.
    pub(crate) const fn is_proven_by(&self, crc: u32) -> bool {
        self.crc == crc
    }
}

/// Packs a block's requests, if that makes it shorter: `packed` is then the block to be sealed, with the count that is
/// given back.
pub(crate) fn pack(block: &[u8], count: u32, packed: &mut Vec<u8>) -> Option<u32> {
    let requests = &block[HEAD_BYTES..];
    packed.clear();
    packed.resize(HEAD_BYTES + 4 + lz4_flex::block::get_maximum_output_size(requests.len()), 0);
    packed[HEAD_BYTES..HEAD_BYTES + 4].copy_from_slice(&(requests.len() as u32).to_be_bytes());
    let len = lz4_flex::block::compress_into(requests, &mut packed[HEAD_BYTES + 4..]).ok()?;
    packed.truncate(HEAD_BYTES + 4 + len);
    (packed.len() < block.len()).then_some(count | PACKED)
}
/// Unpacks requests; nothing where they are not what was packed.
pub(crate) fn unpack(packed: &[u8], requests: &mut Vec<u8>) -> Option<()> {
    let (len, packed) = packed.split_first_chunk()?;
    let len = u32::from_be_bytes(*len) as usize;
    if len > packed.len().saturating_mul(UNPACKED_MAX) {
        return None;
    }
    requests.clear();
    requests.resize(len, 0);
    (lz4_flex::block::decompress_into(packed, requests).ok()? == len).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_proven_by_its_own_file_only() {
        let mut block = vec![0; HEAD_BYTES];
        block.extend_from_slice(b"requests");
        BlockHead::seal(&mut block, &[1; 8], (u64::MAX - 7, 3, 9));
        let (head, requests) = block.split_first_chunk::<HEAD_BYTES>().expect("it is longer");
        let read = BlockHead::read(head);
        assert_eq!((read.len, read.epoch, read.count, read.behind), (8, u64::MAX - 7, 3, 9));
        assert!(read.proves(head, requests, &[1; 8]));
        assert!(!read.is_packed);
        assert!(!read.proves(head, requests, &[2; 8]));
        for bit in 0..block.len() * 8 {
            let mut block = block.clone();
            block[bit / 8] ^= 1 << (bit % 8);
            let (head, requests) = block.split_first_chunk::<HEAD_BYTES>().expect("it is longer");
            assert!(!BlockHead::read(head).proves(head, requests, &[1; 8]), "bit {bit}");
        }
    }

    #[test]
    fn what_is_packed_comes_back_and_no_length_is_taken_at_its_word() {
        let block: Vec<u8> = (0..5000_u32).map(|at| (at / 100) as u8).collect();
        let (mut packed, mut requests) = (Vec::new(), Vec::new());
        let count = pack(&block, 7, &mut packed).expect("it becomes shorter");
        BlockHead::seal(&mut packed, &[1; 8], (1, count, 0));
        let (head, rest) = packed.split_first_chunk::<HEAD_BYTES>().expect("it is longer");
        let head = BlockHead::read(head);
        assert_eq!((head.count, head.is_packed), (7, true));
        unpack(rest, &mut requests).expect("it is whole");
        assert_eq!(requests, block[HEAD_BYTES..]);
        assert_eq!(unpack(&rest[..rest.len() - 1], &mut requests), None);
        let mut longer = rest.to_vec();
        longer[3] += 1;
        assert_eq!(unpack(&longer, &mut requests), None);
        let mut huge = rest.to_vec();
        huge[0] = 0xff;
        requests = Vec::new();
        assert_eq!(unpack(&huge, &mut requests), None);
        assert_eq!(requests.capacity(), 0, "nothing is asked for that cannot be there");
        let mut state = 1_u64;
        let random: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .take(5000)
        .collect();
        assert_eq!(pack(&random, 7, &mut packed), None, "it would become longer");
    }

    #[test]
    fn a_flipped_bit_of_a_file_s_head_is_seen() {
        let head = FileHead { kind: FileKind::Snapshot, salt: *b"saltsalt", number: 7 };
        let bytes = head.bytes();
        assert_eq!(FileHead::read(&bytes), Ok(head));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            FileHead::read(&bytes).expect_err("it is damaged");
        }
        FileHead::read(&bytes[..31]).expect_err("it is not whole");
    }
}
