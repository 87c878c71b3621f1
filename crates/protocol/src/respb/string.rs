//! Owns: the frames that logs and snapshots mostly consist of, a string that is set, written and read without the
//! table. Does not own: what they look like (`spec/commands`, as for all others; tests compare the two).

use super::HEADER_LEN;
use super::encode::{Mode, RequestWriter};
use crate::buffer::Buffer;
use crate::request::Arg;

/// The opcode of SET, and the bit of PXAT among its options: none ever changes.
const SET: u16 = 0x0001;
const PXAT: u8 = 1 << 6;

/// `SET key value`, with an absolute expiry or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringFrame<'a> {
    /// The channel.
    pub channel: u16,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Milliseconds of PXAT.
    pub expire_ms: Option<u64>,
    /// Bytes of the frame.
    pub len: usize,
}

impl<'a> StringFrame<'a> {
    /// Reads one where `bytes` begin with it. Nothing says only that they begin with another frame, or a part of one.
    #[inline]
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
        if u16::from_be_bytes([head[0], head[1]]) != SET {
            return None;
        }
        let (len, rest) = rest.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(u16::from_be_bytes(*len).into())?;
        let (len, rest) = rest.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        let (expire_ms, rest) = match rest.split_first()? {
            (0, rest) => (None, rest),
            (&PXAT, rest) => {
                let (time, rest) = rest.split_first_chunk()?;
                (Some(u64::try_from(i64::from_be_bytes(*time)).ok()?), rest)
            }
            _ => return None,
        };
        let channel = u16::from_be_bytes([head[2], head[3]]);
        Some(Self { channel, key, value, expire_ms, len: bytes.len() - rest.len() })
    }
}

impl<B: Buffer> RequestWriter<'_, B> {
    /// Appends `SET key value`: what [`Self::arguments`] writes.
    #[inline]
    pub fn set(&mut self, key: &[u8], value: &[u8]) {
        let lens = (u16::try_from(key.len()), u32::try_from(value.len()));
        let (Ok(key_len), Ok(value_len)) = lens else {
            self.arguments(&[Arg::Keyword("SET"), Arg::Bytes(key), Arg::Bytes(value)][..], Mode::Exact);
            return;
        };
        let mut head = [0; HEADER_LEN + 2];
        head[..2].copy_from_slice(&SET.to_be_bytes());
        head[2..4].copy_from_slice(&self.channel.to_be_bytes());
        head[4..].copy_from_slice(&key_len.to_be_bytes());
        self.out.extend_from_slice(&head);
        self.out.extend_from_slice(key);
        self.out.extend_from_slice(&value_len.to_be_bytes());
        self.out.extend_from_slice(value);
        // No options.
        self.out.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn written(argv: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        RequestWriter::new(&mut out, 7).command(argv, Mode::Exact);
        out
    }

    #[test]
    fn what_the_table_writes_is_read_and_nothing_else() {
        let plain = written(&["SET", "key", "value"]);
        let mut own = Vec::new();
        RequestWriter::new(&mut own, 7).set(b"key", b"value");
        assert_eq!(own, plain);
        let frame =
            StringFrame { channel: 7, key: b"key", value: b"value", expire_ms: None, len: plain.len() };
        assert_eq!(StringFrame::read(&plain), Some(frame));
        let expiring = written(&["SET", "key", "value", "PXAT", "1795441583000"]);
        let read = StringFrame { expire_ms: Some(1_795_441_583_000), len: expiring.len(), ..frame };
        assert_eq!(StringFrame::read(&expiring), Some(read));
        for frame in [&plain, &expiring] {
            (0..frame.len())
                .for_each(|len| assert_eq!(StringFrame::read(&frame[..len]), None, "{len} bytes"));
            let more = [&frame[..], b"more"].concat();
            assert_eq!(StringFrame::read(&more).map(|read| read.len), Some(frame.len()));
        }
        for argv in [
            &["GET", "key"][..],
            &["SET", "key", "value", "NX"],
            &["SET", "key", "value", "PX", "1"],
            &["SET", "key", "value", "KEEPTTL"],
            &["SET", "key", "value", "PXAT", "-1"],
            &["SET", "key"],
        ] {
            assert_eq!(StringFrame::read(&written(argv)), None, "{argv:?}");
        }
    }
}
