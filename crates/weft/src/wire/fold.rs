//! The work that every contestant does on what it decodes: fold it into a sum, so that nothing of the decoding can be
//! left out.
//!
//! Owns the rule. Of each argument: its length, its first byte and its last byte are added. Of each number that the
//! wire carries in binary: the number. Of each command that the wire names by an opcode: the opcode. RESP carries
//! names and numbers as text and RESPB does not, so the sums differ by an amount that is known for a stream before
//! the clock starts ([`super::stream`]); it is added after the clock has stopped, and then all contestants must have
//! the same sum. `bench/drivers/driver.h` has the same in C.

use weft_protocol::ArgVisitor;

/// Adds up what it is handed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fold(pub(super) u64);

/// Keeps the fold of an empty argument out of the way of the others.
#[cold]
fn empty() {}

impl Fold {
    #[inline(always)]
    pub(super) fn add(&mut self, value: u64) {
        self.0 = self.0.wrapping_add(value);
    }

    #[inline(always)]
    pub(super) fn argument(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u64);
        match bytes {
            [first, ..] => self.add(u64::from(*first) + u64::from(bytes[bytes.len() - 1])),
            [] => empty(),
        }
    }
}

impl ArgVisitor for Fold {
    #[inline(always)]
    fn bytes(&mut self, _offset: usize, bytes: &[u8]) {
        self.argument(bytes);
    }
    #[inline(always)]
    fn int(&mut self, value: i64) {
        self.add(value as u64);
    }
    #[inline(always)]
    fn double(&mut self, value: f64) {
        self.add(value.to_bits());
    }
    #[inline(always)]
    fn keyword(&mut self, word: &'static str) {
        self.argument(word.as_bytes());
    }
    #[inline(always)]
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.bytes(offset, raw);
    }
}
