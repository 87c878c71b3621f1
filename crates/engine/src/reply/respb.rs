//! Owns: how values are written in RESPB, each in its shortest form (spec section 5.4). Does not own: control frames
//! and the splitting of frames, which are the server's.

use super::bulks::append;
use super::{Kind, ReplySink};
use weft_protocol::respb::frame::{
    HEADER_LEN, SHORT_BULK, SHORT_SIMPLE, SMALL_INT, TAG_BULK_FIRST, TAG_INT_FIRST, kind,
};

/// The NaN that stands for all (spec section 5.2).
const NAN_BITS: u64 = 0x7FF8_0000_0000_0000;

impl ReplySink<'_> {
    #[inline]
    fn head(&mut self, high: u8, low: u8) {
        let [c1, c0] = self.wire.channel.to_be_bytes();
        self.out.bytes.extend_from_slice(&[high, low, c1, c0]);
    }
    /// The frame that begins at byte `at` becomes one of this channel.
    pub(super) fn respb_readdress(&mut self, at: usize) {
        let channel = self.wire.channel.to_be_bytes();
        self.out.bytes[at + HEADER_LEN - channel.len()..at + HEADER_LEN].copy_from_slice(&channel);
    }
    /// Starts a value of a type: a header at the top, a tag inside an aggregate.
    fn begin(&mut self, kind: u8) {
        if self.at_top() { self.head(0x80, kind) } else { self.out.bytes.push(kind) }
    }
    fn sized16(&mut self, kind: u8, bytes: &[u8]) {
        self.begin(kind);
        // The callers have checked that it fits.
        self.out.bytes.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        self.out.bytes.extend_from_slice(bytes);
    }
    fn sized32(&mut self, kind: u8, bytes: &[u8]) {
        self.begin(kind);
        self.out.bytes.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.out.bytes.extend_from_slice(bytes);
    }

    #[inline]
    pub(super) fn respb_ok(&mut self) {
        self.begin(kind::OK);
    }

    /// `PONG`, in one piece where it is the whole reply.
    #[inline]
    pub(super) fn respb_pong(&mut self) {
        if !self.at_top() {
            return self.respb_simple(b"PONG");
        }
        let [c1, c0] = self.wire.channel.to_be_bytes();
        self.out.bytes.extend_from_slice(&[SHORT_SIMPLE, 4, c1, c0, b'P', b'O', b'N', b'G']);
    }

    pub(super) fn respb_simple(&mut self, text: &[u8]) {
        match (self.at_top(), text.len()) {
            (_, 2) if text == b"OK" => self.begin(kind::OK),
            (true, len @ 0..=0xFF) => {
                self.head(SHORT_SIMPLE, len as u8);
                self.out.bytes.extend_from_slice(text);
            }
            (_, 0..=0xFFFF) => self.sized16(kind::SIMPLE, text),
            _ => self.respb_bulk(text),
        }
    }

    pub(super) fn respb_error(&mut self, text: &[u8]) {
        if text.len() <= usize::from(u16::MAX) {
            self.sized16(kind::ERROR, text);
        } else {
            self.sized32(kind::LONG_ERROR, text);
        }
    }

    #[inline]
    pub(super) fn respb_int(&mut self, value: i64) {
        match (self.at_top(), value) {
            (true, 0..=0xFF) => self.head(SMALL_INT, value as u8),
            (false, -1..=62) => self.out.bytes.push(TAG_INT_FIRST + (value + 1) as u8),
            _ => match i32::try_from(value) {
                Ok(value) => {
                    self.begin(kind::INT32);
                    self.out.bytes.extend_from_slice(&value.to_be_bytes());
                }
                Err(_) => {
                    self.begin(kind::INT);
                    self.out.bytes.extend_from_slice(&value.to_be_bytes());
                }
            },
        }
    }

    pub(super) fn respb_double(&mut self, value: f64) {
        self.begin(kind::DOUBLE);
        let bits = if value.is_nan() { NAN_BITS } else { value.to_bits() };
        self.out.bytes.extend_from_slice(&bits.to_be_bytes());
    }

    pub(super) fn respb_bool(&mut self, value: bool) {
        self.begin(kind::BOOL);
        self.out.bytes.push(u8::from(value));
    }

    pub(super) fn respb_big_number(&mut self, digits: &[u8]) {
        self.sized32(kind::BIG_NUMBER, digits);
    }

    /// Everything of a bulk but its bytes.
    #[inline]
    pub(super) fn respb_bulk_head(&mut self, len: usize) {
        match (self.at_top(), len) {
            (true, 0..=0xFF) => self.head(SHORT_BULK, len as u8),
            (false, 0..=0x7F) => self.out.bytes.push(TAG_BULK_FIRST | len as u8),
            _ => {
                self.begin(kind::BULK);
                // A value is at most `proto-max-bulk-len`, which is below 4 GiB.
                self.out.bytes.extend_from_slice(&(len as u32).to_be_bytes());
            }
        }
    }

    #[inline(always)]
    pub(super) fn respb_bulk(&mut self, bytes: &[u8]) {
        self.out.bytes.reserve(bytes.len() + 8);
        self.respb_bulk_head(bytes.len());
        append(&mut self.out.bytes, bytes);
    }

    /// A bulk whose length fits into the header, at the top.
    #[inline(always)]
    pub(super) fn respb_short_bulk(&mut self, bytes: &[u8]) {
        self.out.bytes.reserve(bytes.len() + 32);
        self.head(SHORT_BULK, bytes.len() as u8);
        append(&mut self.out.bytes, bytes);
    }

    pub(super) fn respb_verbatim(&mut self, format: [u8; 3], bytes: &[u8]) {
        self.begin(kind::VERBATIM);
        self.out.bytes.extend_from_slice(&format);
        self.out.bytes.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.out.bytes.extend_from_slice(bytes);
    }

    #[inline]
    pub(super) fn respb_null(&mut self) {
        self.begin(kind::NULL);
    }

    pub(super) fn respb_aggregate(&mut self, aggregate: Kind, len: usize) {
        self.begin(match aggregate {
            Kind::Array => kind::ARRAY,
            Kind::Map => kind::MAP,
            Kind::Set => kind::SET,
            Kind::Push => kind::PUSH,
        });
        self.out.bytes.extend_from_slice(&(len as u32).to_be_bytes());
    }
}
