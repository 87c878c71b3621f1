//! Owns: aggregates of byte strings and nulls and nothing else (what LRANGE, SMEMBERS, HGETALL, ZRANGE and MGET
//! answer), whose elements are written without what each value by itself asks: the protocol, what is open, room for
//! every piece. Does not own: the form of a byte string alone (`super::resp`, `super::respb`).

use super::aggregate::Kind;
use super::output::PIN_BYTES_MIN;
use super::{Output, Protocol, ReplySink, Wire};
use weft_protocol::respb::frame::{TAG_BULK_FIRST, kind};
use weft_store::{Digits, SharedBytes, ValueRef};

/// Lengths whose RESP header stands ready.
const READY_MAX: usize = 99;
/// Bytes of a header that stands ready, as far as it has two digits.
const READY_BYTES: usize = 8;
/// `\r\n$12\r\n` for each length: the end of what comes before, and the header.
const READY: [[u8; READY_BYTES]; READY_MAX + 1] = {
    let mut ready = [*b"\r\n$0\r\n\0\0"; READY_MAX + 1];
    let mut len = 0;
    while len <= READY_MAX {
        let digits = (b'0' + (len / 10) as u8, b'0' + (len % 10) as u8);
        ready[len] = match len {
            0..10 => [b'\r', b'\n', b'$', digits.1, b'\r', b'\n', 0, 0],
            _ => [b'\r', b'\n', b'$', digits.0, digits.1, b'\r', b'\n', 0],
        };
        len += 1;
    }
    ready
};

/// Appends bytes, short ones without a call: two pieces of a fixed length, the second over the end of the first.
#[inline(always)]
pub(super) fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    #[inline]
    fn pieces<const N: usize>(out: &mut Vec<u8>, bytes: &[u8]) {
        let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>()) else { return };
        out.extend_from_slice(first);
        out.truncate(out.len() - (2 * N - bytes.len()));
        out.extend_from_slice(last);
    }
    match bytes.len() {
        16..=32 => pieces::<16>(out, bytes),
        8..16 => pieces::<8>(out, bytes),
        4..8 => pieces::<4>(out, bytes),
        _ => out.extend_from_slice(bytes),
    }
}

/// Takes the byte strings of an aggregate, one after the other.
#[derive(Debug)]
pub struct Bulks<'s> {
    out: &'s mut Output,
    protocol: Protocol,
    /// Still to come.
    left: usize,
}

impl Bulks<'_> {
    /// The next byte string.
    #[inline(always)]
    pub fn push(&mut self, bytes: &[u8]) {
        self.count();
        let is_respb = match self.protocol {
            Protocol::Resp2 | Protocol::Resp3 => false,
            Protocol::Respb => true,
            Protocol::Json(_) | Protocol::Captured => return self.single().bulk(bytes),
        };
        // With room for the pieces of a short one, and all that surrounds any.
        self.out.bytes.reserve(bytes.len() + 32);
        if is_respb {
            self.respb_head(bytes.len())
        } else {
            self.resp_head(bytes.len())
        }
        append(&mut self.out.bytes, bytes);
    }
    /// A string as a store has it, or null for what is none.
    #[inline(always)]
    pub fn value(&mut self, value: &ValueRef<'_>) {
        match value {
            ValueRef::Bytes(bytes) => self.push(bytes),
            value => self.other_value(value),
        }
    }
    #[inline(never)]
    fn other_value(&mut self, value: &ValueRef<'_>) {
        match value {
            ValueRef::Int(number) => self.push(Digits::default().write(*number)),
            ValueRef::Shared(bytes) => self.shared(bytes),
            _ => self.null(),
        }
    }
    /// A large byte string: sent from where it is.
    fn shared(&mut self, value: &SharedBytes) {
        let bytes = value.as_slice();
        if bytes.len() < PIN_BYTES_MIN {
            return self.push(bytes);
        }
        self.count();
        match self.protocol {
            Protocol::Resp2 | Protocol::Resp3 => self.resp_head(bytes.len()),
            Protocol::Respb => self.respb_head(bytes.len()),
            Protocol::Json(_) | Protocol::Captured => return self.single().bulk_shared(value),
        }
        self.out.pin(value.clone());
    }
    /// Nothing.
    #[inline]
    pub fn null(&mut self) {
        self.count();
        self.out.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"\r\n$-1",
            Protocol::Resp3 => b"\r\n_",
            Protocol::Respb => &[kind::NULL],
            Protocol::Json(_) | Protocol::Captured => return self.single().null(),
        });
    }
    /// Writes one element by itself, as wires have it whose elements know of each other.
    #[cold]
    fn single(&mut self) -> ReplySink<'_> {
        ReplySink::new(self.out, Wire { protocol: self.protocol, channel: 0 })
    }

    #[inline]
    fn count(&mut self) {
        debug_assert!(self.left > 0, "no more are announced");
        self.left = self.left.wrapping_sub(1);
    }
    /// All of a byte string that stands before its bytes, with the end of what comes before.
    #[inline(always)]
    fn resp_head(&mut self, len: usize) {
        let out = &mut self.out.bytes;
        if let Some(ready) = READY.get(len) {
            out.extend_from_slice(ready);
            out.truncate(out.len() - if len < 10 { 2 } else { 1 });
        } else {
            let mut digits = itoa::Buffer::new();
            out.extend_from_slice(b"\r\n$");
            out.extend_from_slice(digits.format(len).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
    /// All of a byte string that stands before its bytes.
    #[inline(always)]
    fn respb_head(&mut self, len: usize) {
        let out = &mut self.out.bytes;
        match len {
            0..=0x7F => out.push(TAG_BULK_FIRST | len as u8),
            _ => {
                out.push(kind::BULK);
                // A value is at most `proto-max-bulk-len`, which is below 4 GiB.
                out.extend_from_slice(&(len as u32).to_be_bytes());
            }
        }
    }
}

impl ReplySink<'_> {
    /// An array of `len` byte strings, all of which `fill` gives.
    #[inline]
    pub fn array_of_bulks(&mut self, len: usize, fill: impl FnOnce(&mut Bulks<'_>)) {
        self.bulks(Kind::Array, len, len, fill);
    }
    /// A set of them.
    #[inline]
    pub fn set_of_bulks(&mut self, len: usize, fill: impl FnOnce(&mut Bulks<'_>)) {
        self.bulks(Kind::Set, len, len, fill);
    }
    /// A map of `len` pairs: key and value in turn.
    #[inline]
    pub fn map_of_bulks(&mut self, len: usize, fill: impl FnOnce(&mut Bulks<'_>)) {
        self.bulks(Kind::Map, len, 2 * len, fill);
    }

    #[inline]
    fn bulks(&mut self, kind: Kind, len: usize, elements: usize, fill: impl FnOnce(&mut Bulks<'_>)) {
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => {
                self.head_of(kind, len, elements);
                if elements > 0 {
                    // Each element begins with the line end of what stands before it.
                    let len = self.out.bytes.len();
                    self.out.bytes.truncate(len - 2);
                    self.fill(elements, fill);
                    self.out.bytes.extend_from_slice(b"\r\n");
                }
                self.end();
            }
            Protocol::Respb => {
                self.head_of(kind, len, elements);
                self.fill(elements, fill);
                self.end();
            }
            // The last element ends it.
            Protocol::Json(_) | Protocol::Captured => {
                self.aggregate(kind, len, elements);
                self.fill(elements, fill);
            }
        }
    }
    #[inline(always)]
    fn fill(&mut self, elements: usize, fill: impl FnOnce(&mut Bulks<'_>)) {
        let mut bulks = Bulks { out: &mut *self.out, protocol: self.wire.protocol, left: elements };
        fill(&mut bulks);
        debug_assert_eq!(bulks.left, 0, "more are announced");
    }
}
