//! Owns: values in the format of RDB, as DUMP gives and RESTORE takes them: reading every form that Redis up to 7.4 and
//! Valkey up to 9 write, writing what Redis 7.0 loads where it has a form for it. Does not own: keys.
//!
//! ```text
//! +------+-------+--------------------+----------------+
//! | kind | value | RDB version, u16 LE | CRC-64, u64 LE |
//! +------+-------+--------------------+----------------+
//! ```
//! Input is not trusted: see `tests/fuzz`. Every length is compared with what is there before it counts.
//!
//! | module | owns |
//! |---|---|
//! | `cursor` | numbers, lengths, strings |
//! | `lzf` | compressed strings |
//! | `packed` | listpack, ziplist, intset, zipmap |
//! | `decode`, `stream` | values |
//! | `encode` | writing values |
//! | [`file`] | the parts of a file of RDB |
//! | [`load`] | from a payload to a value of the store |

mod cursor;
mod decode;
mod encode;
pub mod file;
mod libraries;
pub mod load;
mod lzf;
mod packed;
mod stream;

pub use decode::Collect;
pub use encode::{Writer, write_stream};
pub use libraries::{read_libraries, write_libraries};

use crc::{CRC_64_REDIS, Crc, Table};

/// The version that Weft writes where nothing needs a later one: that of Redis 7.0.
pub const VERSION: u16 = 10;
/// The version of Redis 7.2, of Valkey 7.2 and 8: of streams whose consumers were active at other times than seen.
const VERSION_7_2: u16 = 11;
/// The version of values that only Valkey 9 knows: hashes with expiring fields.
pub const VERSION_VALKEY: u16 = 80;
/// Versions from 12 up to this one are Redis's own, since 7.4; kinds from 22 on mean something else in them.
const VERSION_REDIS_MAX: u16 = 79;
/// Bytes after the value.
const FOOTER_BYTES: usize = 10;

/// What a value is and how it is written: the first byte. `REDIS` ones count only in versions up to 79.
mod kind {
    pub(super) const STRING: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    pub(super) const ZSET: u8 = 3;
    pub(super) const HASH: u8 = 4;
    pub(super) const ZSET_2: u8 = 5;
    pub(super) const HASH_ZIPMAP: u8 = 9;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_INTSET: u8 = 11;
    pub(super) const ZSET_ZIPLIST: u8 = 12;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    pub(super) const LIST_QUICKLIST: u8 = 14;
    pub(super) const STREAM: u8 = 15;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const ZSET_LISTPACK: u8 = 17;
    pub(super) const LIST_QUICKLIST_2: u8 = 18;
    pub(super) const STREAM_2: u8 = 19;
    pub(super) const SET_LISTPACK: u8 = 20;
    pub(super) const STREAM_3: u8 = 21;
    pub(super) const HASH_2: u8 = 22;
    pub(super) const REDIS_HASH_EXPIRING_EARLY: u8 = 22;
    pub(super) const REDIS_HASH_LISTPACK_EXPIRING_EARLY: u8 = 23;
    pub(super) const REDIS_HASH_EXPIRING: u8 = 24;
    pub(super) const REDIS_HASH_LISTPACK_EXPIRING: u8 = 25;
}

static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// The bytes are not a value of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Why a payload was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadError {
    /// Too short, another checksum, or a version that is not known.
    VersionOrChecksum,
    /// The value is malformed.
    Malformed,
}

/// Closes a payload: version and checksum.
#[must_use]
pub fn seal(mut value: Vec<u8>, version: u16) -> Vec<u8> {
    value.extend(version.to_le_bytes());
    let sum = CRC.checksum(&value);
    value.extend(sum.to_le_bytes());
    value
}

/// What a payload is not checked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trust {
    /// A version that is not known yet is read as the newest that is: `rdb-version-check relaxed`.
    pub any_version: bool,
    /// The checksum may be wrong: tests of malformed values.
    pub any_checksum: bool,
}

/// A payload of DUMP whose version and checksum are right.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    value: &'a [u8],
    version: u16,
}

impl<'a> Payload<'a> {
    /// Compares version and checksum.
    pub fn open(payload: &'a [u8], trust: Trust) -> Result<Self, PayloadError> {
        let value = payload.len().checked_sub(FOOTER_BYTES).ok_or(PayloadError::VersionOrChecksum)?;
        let (value, footer) = payload.split_at(value);
        let version = u16::from_le_bytes([footer[0], footer[1]]);
        let is_known = (1..=VERSION_VALKEY).contains(&version) || trust.any_version && version > 0;
        let is_whole =
            || trust.any_checksum || footer[2..] == CRC.checksum(&payload[..value.len() + 2]).to_le_bytes();
        if is_known && is_whole() {
            Ok(Self { value, version })
        } else {
            Err(PayloadError::VersionOrChecksum)
        }
    }
    /// What its compressed strings announce to be when they are unpacked, of which nothing is. A payload that could
    /// not come to more than `heeded` bytes in sum is not gone through.
    pub fn unpacked(&self, heeded: u64) -> Result<Unpacked, PayloadError> {
        if self.value.len() as u64 * lzf::EXPANSION_MAX <= heeded {
            return Ok(Unpacked::default());
        }
        file::weigh(self.value, self.version).map_err(|Malformed| PayloadError::Malformed)
    }
    /// Reads it into `into`, which on an error may have got a part of it.
    pub fn read(&self, into: &mut impl Collect) -> Result<(), PayloadError> {
        decode::value(self.value, self.version, into).map_err(|Malformed| PayloadError::Malformed)
    }
}

/// Bytes of compressed strings when they are unpacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Of all together.
    pub bytes: u64,
    /// Of the longest.
    pub longest: u64,
}

#[cfg(test)]
mod tests;
