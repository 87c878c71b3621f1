//! Owns: what the compressed strings of one value announce to become, found without unpacking any. Does not own: what
//! is too much.

use std::io;

use super::super::{Malformed, VERSION, VERSION_REDIS_MAX};
use super::{Maker, Reader, Source, Unpacked};

impl Source for &[u8] {
    fn fill_to(&mut self, count: usize) -> io::Result<bool> {
        Ok(self.len() >= count)
    }
    fn bytes(&self) -> &[u8] {
        self
    }
    fn consume(&mut self, count: usize) {
        *self = &self[count..];
    }
    fn offset(&self) -> u64 {
        0
    }
}

impl Unpacked {
    pub(super) const fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes > self.longest {
            self.longest = bytes;
        }
    }
}

/// What the compressed strings of a value with its kind announce.
pub(in super::super) fn weigh(value: &[u8], version: u16) -> Result<Unpacked, Malformed> {
    let (&kind, rest) = value.split_first().ok_or(Malformed)?;
    let is_of_redis = version > VERSION && version <= VERSION_REDIS_MAX;
    let mut reader = Reader::of(rest, if is_of_redis { Maker::Redis } else { Maker::Valkey });
    if !reader.knows(kind) {
        return Err(Malformed);
    }
    reader.value(kind).map_err(|_| Malformed)?;
    Ok(reader.unpacked)
}
