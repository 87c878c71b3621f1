//! Passing over an RDB: how long it is, from the lengths in it, without reading what it holds.
//!
//! Owns the opcodes and types of Redis up to RDB 12 (7.4) and of Valkey up to RDB 80 (9.x). Numbers from 22 on mean one
//! thing behind the magic `REDIS` and another behind `VALKEY`. A type that is not known has no known length: passing
//! over ends there, with its place. The checksum at the end is passed over, not computed.

use anyhow::{Context as _, Result, bail};

use crate::window::Window;

/// Bytes of `REDISnnnn` and `VALKEYnnn`.
const MAGIC_LEN: usize = 9;

/// What was passed over.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Skipped {
    /// Bytes from the magic to the checksum.
    pub(super) bytes: u64,
    /// Keys.
    pub(super) keys: u64,
    /// Libraries of functions.
    pub(super) functions: u64,
}

/// Whether these are the first bytes of an RDB.
pub(super) fn is_rdb(bytes: &[u8]) -> bool {
    bytes.starts_with(b"REDIS") || bytes.starts_with(b"VALKEY")
}

/// Passes over the RDB at the window's start.
pub(super) fn skip(window: &mut Window) -> Result<Skipped> {
    let start = window.offset();
    let mut walk = Walk { window, foreign: false };
    let magic = walk.take::<MAGIC_LEN>().context("in the RDB's magic")?;
    let (valkey, digits) = match &magic {
        [b'R', b'E', b'D', b'I', b'S', digits @ ..] => (false, &digits[..]),
        [b'V', b'A', b'L', b'K', b'E', b'Y', digits @ ..] => (true, &digits[..]),
        _ => bail!("byte {start}: expected REDIS or VALKEY and the version of an RDB"),
    };
    let version = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<u32>().ok());
    let version = version.with_context(|| {
        format!("byte {start}: expected the version of an RDB, found {}", crate::text::quoted(digits, 9))
    })?;
    walk.foreign = !valkey;
    let mut skipped = Skipped { bytes: 0, keys: 0, functions: 0 };
    while walk.entry(&mut skipped)? {}
    // The checksum came with version 5.
    if version >= 5 {
        walk.pass(8)?;
    }
    skipped.bytes = window.offset() - start;
    Ok(skipped)
}

struct Walk<'a> {
    window: &'a mut Window,
    /// Written by Redis: types from 22 on are Redis's.
    foreign: bool,
}

/// A length, or the encoding of a string that is not stored as its bytes.
enum Length {
    Plain(u64),
    Encoded(u8),
}

impl Walk<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let there = self.window.fill_to(N)?;
        let Some(bytes) = self.window.bytes().first_chunk::<N>().copied().filter(|_| there) else {
            bail!("byte {}: the RDB ends here: expected {N} more bytes", self.end());
        };
        self.window.consume(N);
        Ok(bytes)
    }

    fn pass(&mut self, count: u64) -> Result<()> {
        let start = self.window.offset();
        if !self.window.pass_over(count)? {
            bail!("byte {}: the RDB ends here: expected {count} bytes from byte {start} on", self.end());
        }
        Ok(())
    }

    fn end(&self) -> u64 {
        self.window.offset() + self.window.bytes().len() as u64
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take::<1>()?[0])
    }

    fn length_or_encoding(&mut self) -> Result<Length> {
        let at = self.window.offset();
        let first = self.byte()?;
        Ok(match first >> 6 {
            0 => Length::Plain(u64::from(first & 0x3F)),
            1 => Length::Plain(u64::from(first & 0x3F) << 8 | u64::from(self.byte()?)),
            3 => Length::Encoded(first & 0x3F),
            _ => match first {
                0x80 => Length::Plain(u64::from(u32::from_be_bytes(self.take()?))),
                0x81 => Length::Plain(u64::from_be_bytes(self.take()?)),
                _ => bail!("byte {at}: expected a length in the RDB, found {first:#04x}"),
            },
        })
    }

    fn length(&mut self) -> Result<u64> {
        let at = self.window.offset();
        match self.length_or_encoding()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(encoding) => {
                bail!("byte {at}: expected a length, found string encoding {encoding}")
            }
        }
    }

    fn lengths(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            self.length()?;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<()> {
        let at = self.window.offset();
        match self.length_or_encoding()? {
            Length::Plain(length) => self.pass(length),
            Length::Encoded(0) => self.pass(1),
            Length::Encoded(1) => self.pass(2),
            Length::Encoded(2) => self.pass(4),
            Length::Encoded(3) => {
                let compressed = self.length()?;
                self.length()?;
                self.pass(compressed)
            }
            Length::Encoded(other) => bail!("byte {at}: unknown string encoding {other} in the RDB"),
        }
    }

    fn strings(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            self.string()?;
        }
        Ok(())
    }

    /// An opcode or a key with its value; false at the end.
    fn entry(&mut self, skipped: &mut Skipped) -> Result<bool> {
        let at = self.window.offset();
        match self.byte()? {
            255 => return Ok(false),
            254 | 248 => self.lengths(1)?,
            253 => self.pass(4)?,
            252 => self.pass(8)?,
            251 => self.lengths(2)?,
            250 => self.strings(2)?,
            249 => self.pass(1)?,
            247 => {
                self.lengths(1)?;
                self.module()?;
            }
            // Functions of the 7.0 release candidates: name, engine, whether there is a description, and the code.
            246 => {
                self.strings(2)?;
                if self.length()? != 0 {
                    self.string()?;
                }
                self.string()?;
                skipped.functions += 1;
            }
            245 => {
                self.string()?;
                skipped.functions += 1;
            }
            244 => self.lengths(3)?,
            243 if !self.foreign => {
                self.string()?;
                let ranges = self.length()?;
                self.lengths(ranges.saturating_mul(2))?;
            }
            kind => {
                if !self.knows(kind) {
                    bail!(
                        "byte {at}: unknown type {kind} in an RDB of {}: its length is not known, so that what follows \
                         cannot be found",
                        if self.foreign { "Redis" } else { "Valkey" }
                    );
                }
                self.string()?;
                self.value(kind)?;
                skipped.keys += 1;
            }
        }
        Ok(true)
    }

    fn knows(&self, kind: u8) -> bool {
        matches!(kind, 0..=5 | 7 | 9..=21) || (self.foreign && matches!(kind, 22..=25)) || kind == 22
    }

    fn value(&mut self, kind: u8) -> Result<()> {
        match (kind, self.foreign) {
            // One string: a string, or a whole collection in a packed form.
            (0 | 9..=13 | 16 | 17 | 20, _) => self.string(),
            // LIST, SET, QUICKLIST
            (1 | 2 | 14, _) => {
                let count = self.length()?;
                self.strings(count)
            }
            (3, _) => self.repeat(|walk| {
                walk.string()?;
                walk.text_double()
            }),
            (4, _) => self.repeat(|walk| walk.strings(2)),
            (5, _) => self.repeat(|walk| {
                walk.string()?;
                walk.pass(8)
            }),
            (7, _) => {
                self.lengths(1)?;
                self.module()
            }
            // QUICKLIST_2: each node tells its container.
            (18, _) => self.repeat(|walk| {
                walk.length()?;
                walk.string()
            }),
            (15 | 19 | 21, _) => self.stream(kind),
            // Valkey's HASH_2: field, value, absolute expiry.
            (22, false) => self.repeat(|walk| {
                walk.strings(2)?;
                walk.pass(8)
            }),
            // Redis 7.4's hashes with expiring fields, before and after its release.
            (22, true) => self.repeat(Self::expiring_field),
            (23, true) => self.string(),
            (24, true) => {
                self.pass(8)?;
                self.repeat(Self::expiring_field)
            }
            _ => {
                self.pass(8)?;
                self.string()
            }
        }
    }

    fn expiring_field(&mut self) -> Result<()> {
        self.length()?;
        self.strings(2)
    }

    /// A count and so many items.
    fn repeat(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        for _ in 0..self.length()? {
            item(self)?;
        }
        Ok(())
    }

    /// A score of RDB 7 and older: a length and digits, or one of three special lengths.
    fn text_double(&mut self) -> Result<()> {
        match self.byte()? {
            253..=255 => Ok(()),
            length => self.pass(u64::from(length)),
        }
    }

    fn stream(&mut self, kind: u8) -> Result<()> {
        // Nodes: the first ID, as a string of 16 bytes, and a listpack.
        self.repeat(|walk| walk.strings(2))?;
        // Length and last ID; from version 2 on the first ID, the greatest deleted ID and the count of all entries
        // ever.
        self.lengths(if kind >= 19 { 8 } else { 3 })?;
        self.repeat(|walk| {
            walk.string()?;
            walk.lengths(if kind >= 19 { 3 } else { 2 })?;
            // Pending entries: ID, time of delivery, count of deliveries.
            walk.repeat(|walk| {
                walk.pass(16 + 8)?;
                walk.lengths(1)
            })?;
            // Consumers: name, when seen (and, from version 3 on, when active), their pending IDs.
            walk.repeat(|walk| {
                walk.string()?;
                walk.pass(if kind >= 21 { 16 } else { 8 })?;
                walk.repeat(|walk| walk.pass(16))
            })
        })
    }

    /// What a module wrote: values behind opcodes, up to opcode 0.
    fn module(&mut self) -> Result<()> {
        loop {
            let at = self.window.offset();
            match self.length()? {
                0 => return Ok(()),
                1 | 2 => self.lengths(1)?,
                3 => self.pass(4)?,
                4 => self.pass(8)?,
                5 => self.string()?,
                other => bail!("byte {at}: unknown opcode {other} in the value of a module"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip_of(body: &[u8]) -> (Result<Skipped>, Vec<u8>) {
        let mut window = Window::new(Box::new(std::io::Cursor::new(body.to_vec())));
        let skipped = skip(&mut window);
        (skipped, window.bytes().to_vec())
    }

    fn rdb(magic: &str, entries: &[&[u8]]) -> Vec<u8> {
        let mut bytes = magic.as_bytes().to_vec();
        entries.iter().for_each(|entry| bytes.extend_from_slice(entry));
        bytes.extend_from_slice(b"\xff12345678");
        bytes
    }

    /// Each entry is a key `k` of one type, written from the formats' descriptions.
    const COMMON: &[&[u8]] = &[
        b"\xfa\x01a\x01b\xfe\x00\xfb\x02\x00",
        b"\xfc12345678\x00\x01k\x02ab",
        b"\xfd1234\x00\x01k\xc0\x05",
        b"\xf8\x05\xf9\x07\x00\x01k\xc1\x05\x06",
        b"\x00\x01k\xc2abcd",
        b"\x00\x01k\xc3\x03\x40\x80xyz",
        b"\x00\x01k\x40\x03abc",
        b"\x00\x01k\x80\x00\x00\x00\x03abc",
        b"\x00\x01k\x81\x00\x00\x00\x00\x00\x00\x00\x03abc",
        b"\x01\x01k\x02\x01a\x01b",
        b"\x02\x01k\x01\x01a",
        b"\x03\x01k\x02\x01a\x031.5\x01b\xfe",
        b"\x04\x01k\x01\x01a\x01b",
        b"\x05\x01k\x01\x01a12345678",
        b"\x07\x01k\x81abcdefgh\x02\x05\x01\x05\x03abcd\x04abcdefgh\x05\x02xy\x00",
        b"\x0a\x01k\x02zz",
        b"\x0e\x01k\x01\x02zz",
        b"\x12\x01k\x01\x02\x02lp",
        b"\xf7\x05\x02\x01\x05\x01x\x00",
        b"\xf5\x03lib",
        b"\xf4\x01\x02\x03",
    ];

    #[test]
    fn passes_over_every_common_type() {
        let mut bytes = rdb("REDIS0012", COMMON);
        let whole = bytes.len() as u64;
        bytes.extend_from_slice(b"*1\r\n");
        let (skipped, rest) = skip_of(&bytes);
        assert_eq!(skipped.unwrap(), Skipped { bytes: whole, keys: 17, functions: 1 });
        assert_eq!(rest, b"*1\r\n");
        let (old, rest) = skip_of(b"REDIS0004\xfe\x00\xff*1");
        assert_eq!((old.unwrap().bytes, rest), (12, b"*1".to_vec()), "no checksum before version 5");
    }

    #[test]
    fn types_of_each_server_are_its_own() {
        let valkey: &[u8] = b"\x16\x01k\x01\x01f\x01v12345678";
        let redis: &[u8] = b"\x18\x01k12345678\x01\x00\x01f\x01v";
        let packed: &[u8] = b"\x19\x01k12345678\x02lp";
        let import: &[u8] = b"\xf3\x03job\x02\x01\x02\x03\x04";
        assert_eq!(skip_of(&rdb("VALKEY080", &[valkey, import])).0.unwrap().keys, 1);
        assert_eq!(skip_of(&rdb("REDIS0012", &[redis, packed])).0.unwrap().keys, 2);
        for (magic, entry, said) in [
            ("VALKEY080", redis, "byte 9: unknown type 24 in an RDB of Valkey"),
            ("REDIS0012", import, "byte 9: unknown type 243 in an RDB of Redis"),
        ] {
            let error = skip_of(&rdb(magic, &[entry])).0.unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn a_cut_names_its_place() {
        let bytes = rdb("REDIS0011", COMMON);
        for cut in 0..bytes.len() {
            let error = format!("{:#}", skip_of(&bytes[..cut]).0.unwrap_err());
            assert!(error.contains(&format!("byte {cut}: the RDB ends here")), "{cut}: {error}");
        }
    }
}
