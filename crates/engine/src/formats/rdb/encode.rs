//! Owns: writing values so that Redis 7.0 and everything later read them. Does not own: where the elements come from.
//!
//! Collections are written element by element, which every version reads and packs by its own limits. A hash with
//! expiring fields takes the one kind that Valkey 9 has for it, and a stream whose consumers were active at other times
//! than they were seen that of Redis 7.2.

use super::{VERSION, VERSION_7_2, VERSION_VALKEY, kind, seal, stream};
use weft_store::Stream;
use weft_store::value::parse_int;

/// A length, or any other unsigned number, in as few bytes as it needs.
pub(super) fn length(out: &mut Vec<u8>, value: u64) {
    match value {
        0..64 => out.push(value as u8),
        64..16_384 => out.extend([0x40 | (value >> 8) as u8, value as u8]),
        16_384..0x1_0000_0000 => {
            out.push(0x80);
            out.extend((value as u32).to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend(value.to_be_bytes());
        }
    }
}

/// Bytes as they are.
pub(super) fn raw_string(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A string: as an integer if it is one of 32 bits.
pub(super) fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    let Some(value) = parse_int(bytes).and_then(|value| i32::try_from(value).ok()) else {
        return raw_string(out, bytes);
    };
    let low = value.to_le_bytes();
    match value {
        -128..=127 => out.extend([0xc0, low[0]]),
        -32_768..=32_767 => out.extend([0xc1, low[0], low[1]]),
        _ => {
            out.push(0xc2);
            out.extend(low);
        }
    }
}

/// A payload being written, of a value whose elements are told one by one.
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
    version: u16,
}

impl Writer {
    fn new(kind: u8, count: usize) -> Self {
        let mut out = vec![kind];
        length(&mut out, count as u64);
        Self { out, version: VERSION }
    }
    /// The payload of a string.
    #[must_use]
    pub fn text(bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![kind::STRING];
        string(&mut out, bytes);
        seal(out, VERSION)
    }
    /// A list of so many elements, each given to [`Self::element`].
    #[must_use]
    pub fn list(count: usize) -> Self {
        Self::new(kind::LIST, count)
    }
    /// A set of so many members, each given to [`Self::element`].
    #[must_use]
    pub fn set(count: usize) -> Self {
        Self::new(kind::SET, count)
    }
    /// A hash of so many fields, each given to [`Self::pair`].
    #[must_use]
    pub fn hash(count: usize) -> Self {
        Self::new(kind::HASH, count)
    }
    /// A hash of so many fields, some of which expire, each given to [`Self::expiring_pair`].
    #[must_use]
    pub fn expiring_hash(count: usize) -> Self {
        Self { version: VERSION_VALKEY, ..Self::new(kind::HASH_2, count) }
    }
    /// A sorted set of so many members, each given to [`Self::scored`]: from the highest score to the lowest, since
    /// reading inserts at the head, which is quickest.
    #[must_use]
    pub fn zset(count: usize) -> Self {
        Self::new(kind::ZSET_2, count)
    }
    /// The next element.
    pub fn element(&mut self, bytes: &[u8]) {
        string(&mut self.out, bytes);
    }
    /// The next field.
    pub fn pair(&mut self, name: &[u8], value: &[u8]) {
        string(&mut self.out, name);
        string(&mut self.out, value);
    }
    /// The next field, with its absolute expiry.
    pub fn expiring_pair(&mut self, name: &[u8], value: &[u8], expire_ms: Option<u64>) {
        self.pair(name, value);
        let time = expire_ms.map_or(-1, |time| i64::try_from(time).unwrap_or(i64::MAX));
        self.out.extend(time.to_le_bytes());
    }
    /// The next member with its score.
    pub fn scored(&mut self, member: &[u8], score: f64) {
        string(&mut self.out, member);
        self.out.extend(score.to_le_bytes());
    }
    /// The payload.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        seal(self.out, self.version)
    }
}

/// The payload of a stream.
#[must_use]
pub fn write_stream(value: &Stream) -> Vec<u8> {
    let (kind, version) = match stream::has_activity(value) {
        true => (kind::STREAM_3, VERSION_7_2),
        false => (kind::STREAM_2, VERSION),
    };
    let mut out = vec![kind];
    stream::write(kind, value, &mut out);
    seal(out, version)
}
