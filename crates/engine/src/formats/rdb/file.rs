//! Owns: the parts of an RDB file: where each begins and ends, what it is called, the checksum at the end. Does
//! not own: what values hold (`decode`), opening files (whoever has a [`Source`]), what becomes of the parts.
//!
//! ```text
//! +-------------------------+-------+-------+-----+------+-----------------+
//! | REDISnnnn or VALKEYnnn  | part  | part  | ... | 0xFF | CRC-64, u64 LE  |
//! +-------------------------+-------+-------+-----+------+-----------------+
//! ```
//! A part is an opcode from 243 on and what belongs to it, or a kind, a key and a value. Numbers from 22 on mean
//! one thing behind `REDIS` and another behind `VALKEY`. A kind that is not known has no known length: reading
//! ends there. A value is handed out as its bytes; a part is kept in the source's memory as a whole, which grows
//! by what has arrived and never by what a length announces.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::ops::Range;

use weft_store::Stream;

use super::cursor::Cursor;
use super::decode::{self, Collect};
use super::{CRC, Unpacked, VERSION_REDIS_MAX, VERSION_VALKEY, seal};

mod weigh;
mod write;

pub(super) use weigh::weigh;
pub use write::{WriteError, Writer};

/// Bytes of `REDISnnnn` and `VALKEYnnn`.
pub const MAGIC_BYTES: usize = 9;
/// The first version with a checksum.
const CHECKED_SINCE: u16 = 5;
/// What the mark of the end looks like where a length is to be: an encoding of strings that there is not.
const ENCODING_OF_END: u8 = 0x3F;

/// Bytes of a file, in order: those that have been read and not yet used stand in one slice.
pub trait Source {
    /// Reads on until so many unused bytes are there; false when the file ends before.
    fn fill_to(&mut self, count: usize) -> io::Result<bool>;
    /// The unused bytes that are there.
    fn bytes(&self) -> &[u8];
    /// So many of them have been used.
    fn consume(&mut self, count: usize);
    /// Offset in the file of the first unused byte.
    fn offset(&self) -> u64;
}

impl<S: Source + ?Sized> Source for &mut S {
    fn fill_to(&mut self, count: usize) -> io::Result<bool> {
        (**self).fill_to(count)
    }
    fn bytes(&self) -> &[u8] {
        (**self).bytes()
    }
    fn consume(&mut self, count: usize) {
        (**self).consume(count);
    }
    fn offset(&self) -> u64 {
        (**self).offset()
    }
}

/// Why a file was not read further, and where.
#[derive(Debug)]
pub struct FileError {
    /// The byte that is at fault.
    pub offset: u64,
    /// What is the matter with it.
    pub fault: Fault,
}

/// What is the matter with a file.
#[derive(Debug)]
pub enum Fault {
    /// It could not be read.
    Io(io::Error),
    /// It ends here; so many bytes more were expected at least.
    Ends(usize),
    /// It does not begin as an RDB does.
    Magic,
    /// A version that is not known.
    Version(u16),
    /// A byte that begins no length.
    Length(u8),
    /// An encoding of strings that is not known, or where a length must stand.
    Encoding(u8),
    /// A kind or opcode that is not known.
    Kind(u8, Maker),
    /// A compressed string that is none.
    Compressed,
    /// A module's data that have no end.
    Module,
    /// The checksum is another.
    Checksum,
}

/// Who made a file: the two projects use the same numbers for different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Redis, or Valkey before version 9.
    Redis,
    /// Valkey since version 9.
    Valkey,
}

impl fmt::Display for FileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "byte {}: ", self.offset)?;
        match &self.fault {
            Fault::Io(error) => error.fmt(out),
            Fault::Ends(count) => write!(out, "the RDB ends here: expected {count} more bytes"),
            Fault::Magic => write!(out, "expected REDIS or VALKEY and the version of an RDB"),
            Fault::Version(version) => write!(
                out,
                "an RDB of version {version}: up to {VERSION_REDIS_MAX} behind REDIS and {VERSION_VALKEY} behind VALKEY \
                 are read"
            ),
            Fault::Length(found) => write!(out, "expected a length in the RDB, found {found:#04x}"),
            Fault::Encoding(ENCODING_OF_END) => {
                write!(out, "the RDB ends here, by its mark 0xff, where a string or a length must stand")
            }
            Fault::Encoding(encoding) => write!(out, "unknown string encoding {encoding} in the RDB"),
            Fault::Kind(kind, maker) => write!(
                out,
                "unknown type {kind} in an RDB of {maker:?}: its length is not known, so that what follows cannot be \
                 found"
            ),
            Fault::Compressed => write!(out, "a compressed string that cannot be read"),
            Fault::Module => write!(out, "what a module wrote cannot be read"),
            Fault::Checksum => {
                write!(
                    out,
                    "the checksum at the end of the RDB is another: the file has been changed or damaged"
                )
            }
        }
    }
}

impl std::error::Error for FileError {}

/// A part of a file, borrowed until the next is asked for.
#[derive(Debug)]
pub enum Part<'a> {
    /// A fact about the file: the version of the server that wrote it, the time, and others.
    Fact(Cow<'a, [u8]>, Cow<'a, [u8]>),
    /// The database of the keys that follow.
    Database(u64),
    /// How many keys a database has, and how many of them expire: a hint.
    Sizes(u64, u64),
    /// A library of functions: its code.
    Library(Cow<'a, [u8]>),
    /// A function as the release candidates of Redis 7.0 wrote it, which nothing since reads.
    EarlyFunction,
    /// A key with its value.
    Key(KeyPart<'a>),
    /// What a module wrote: a key with its value, or data of its own. Its name, and the key.
    Module(String, Option<Cow<'a, [u8]>>),
    /// A slot of a cluster, or its import.
    Slot,
    /// The end; nothing follows that belongs to the RDB.
    End,
}

/// A key with its value.
#[derive(Debug)]
pub struct KeyPart<'a> {
    /// The byte of the file where it begins: its kind.
    pub offset: u64,
    /// The key.
    pub key: Cow<'a, [u8]>,
    /// When it expires, in Unix time.
    pub expire_ms: Option<u64>,
    /// Seconds since its last use.
    pub idle_s: Option<u64>,
    /// How often it is used, as LFU counts.
    pub frequency: Option<u8>,
    kind: u8,
    value: &'a [u8],
    version: u16,
}

impl KeyPart<'_> {
    /// The value as RESTORE takes it.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.value.len() + 11);
        payload.push(self.kind);
        payload.extend_from_slice(self.value);
        seal(payload, self.version)
    }
    /// Whether RESTORE would read the value: its inner form too, and no name twice.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let mut bytes = Vec::with_capacity(self.value.len() + 1);
        bytes.push(self.kind);
        bytes.extend_from_slice(self.value);
        decode::value(&bytes, self.version, &mut Names::default()).is_ok()
    }
}

/// Members and fields of the one value that is looked at: nothing else of it is kept.
#[derive(Default)]
struct Names(HashSet<Box<[u8]>>);

impl Collect for Names {
    fn string(&mut self, _: &[u8]) {}
    fn list_element(&mut self, _: &[u8]) {}
    fn set_member(&mut self, bytes: &[u8]) -> bool {
        self.0.insert(bytes.into())
    }
    fn hash_field(&mut self, name: &[u8], _: &[u8], _: Option<u64>) -> bool {
        self.0.insert(name.into())
    }
    fn zset_member(&mut self, member: &[u8], _: f64) -> bool {
        self.0.insert(member.into())
    }
    fn stream(&mut self, _: Stream) {}
}

/// Whether these are the first bytes of an RDB.
#[must_use]
pub fn is_rdb(bytes: &[u8]) -> bool {
    bytes.starts_with(b"REDIS") || bytes.starts_with(b"VALKEY")
}

/// Reads a file part by part.
pub struct Reader<S: Source> {
    source: S,
    /// Bytes behind the first unused one that belong to the part that is being read, or was handed out.
    at: usize,
    version: u16,
    maker: Maker,
    digest: crc::Digest<'static, u64, crc::Table<16>>,
    /// Checksums are compared.
    checks: bool,
    keys: u64,
    unpacked: Unpacked,
}

impl<S: Source> fmt::Debug for Reader<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Reader")
            .field("version", &self.version)
            .field("maker", &self.maker)
            .finish_non_exhaustive()
    }
}

/// A length, or the encoding of a string that is not stored as its bytes.
enum Length {
    Plain(u64),
    Encoded(u8),
}

type Result<T> = std::result::Result<T, FileError>;

impl<S: Source> Reader<S> {
    /// Reads the magic and the version.
    pub fn new(source: S) -> Result<Self> {
        let mut reader = Self::of(source, Maker::Redis);
        let magic = reader.take::<MAGIC_BYTES>()?;
        let digits = match &magic {
            [b'R', b'E', b'D', b'I', b'S', digits @ ..] => &digits[..],
            [b'V', b'A', b'L', b'K', b'E', b'Y', digits @ ..] => {
                reader.maker = Maker::Valkey;
                &digits[..]
            }
            _ => return Err(reader.fault_at(0, Fault::Magic)),
        };
        let version = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
        reader.version = version.ok_or_else(|| reader.fault_at(0, Fault::Magic))?;
        let newest = if reader.maker == Maker::Redis { VERSION_REDIS_MAX } else { VERSION_VALKEY };
        if reader.version == 0 || reader.version > newest {
            return Err(reader.fault_at(0, Fault::Version(reader.version)));
        }
        Ok(reader)
    }
    /// A reader that stands before a part.
    fn of(source: S, maker: Maker) -> Self {
        let (digest, unpacked) = (CRC.digest(), Unpacked::default());
        Self { source, at: 0, version: 0, maker, digest, checks: true, keys: 0, unpacked }
    }
    /// The version of the format.
    #[must_use]
    pub const fn version(&self) -> u16 {
        self.version
    }
    /// Keys so far, those of modules among them.
    #[must_use]
    pub const fn keys(&self) -> u64 {
        self.keys
    }
    /// Does not compare the checksum.
    pub const fn trust(&mut self) {
        self.checks = false;
    }

    /// The file, where it has been read to.
    pub const fn source(&self) -> &S {
        &self.source
    }
    /// The file, behind the part that was read last.
    pub fn into_source(mut self) -> S {
        self.release();
        self.source
    }

    /// The next part. After [`Part::End`] the source stands behind the RDB.
    pub fn part(&mut self) -> Result<Part<'_>> {
        let (mut expire_ms, mut idle_s, mut frequency) = (None, None, None);
        loop {
            self.release();
            match self.byte()? {
                255 => {
                    self.end()?;
                    return Ok(Part::End);
                }
                254 => return Ok(Part::Database(self.length()?)),
                253 => {
                    let seconds = i32::from_le_bytes(self.take()?);
                    expire_ms = Some(u64::try_from(seconds).unwrap_or(0) * 1000);
                }
                252 => expire_ms = Some(u64::try_from(i64::from_le_bytes(self.take()?)).unwrap_or(0)),
                251 => return Ok(Part::Sizes(self.length()?, self.length()?)),
                250 => {
                    let (name, value) = (self.string()?, self.string()?);
                    return Ok(Part::Fact(self.text(name)?, self.text(value)?));
                }
                249 => frequency = Some(self.byte()?),
                248 => idle_s = Some(self.length()?),
                247 => {
                    let id = self.length()?;
                    // When the data were written: before or behind the keys.
                    self.lengths(2)?;
                    self.module()?;
                    return Ok(Part::Module(module_name(id), None));
                }
                246 => return self.early_function(),
                245 => {
                    let code = self.string()?;
                    return Ok(Part::Library(self.text(code)?));
                }
                244 => {
                    self.lengths(3)?;
                    return Ok(Part::Slot);
                }
                243 if self.maker == Maker::Valkey => {
                    self.string()?;
                    let ranges = self.length()?;
                    self.lengths(ranges.saturating_mul(2))?;
                    return Ok(Part::Slot);
                }
                kind => return self.key(kind, (expire_ms, idle_s, frequency)),
            }
        }
    }

    /// Name, engine, whether there is a description, and the code.
    fn early_function(&mut self) -> Result<Part<'_>> {
        self.strings(2)?;
        if self.length()? != 0 {
            self.string()?;
        }
        self.string()?;
        Ok(Part::EarlyFunction)
    }

    /// A key, with what was said before it: its time, how long nobody has come to it, how often somebody has.
    fn key(
        &mut self,
        kind: u8,
        (expire_ms, idle_s, frequency): (Option<u64>, Option<u64>, Option<u8>),
    ) -> Result<Part<'_>> {
        if !self.knows(kind) {
            return Err(self.fault_at(0, Fault::Kind(kind, self.maker)));
        }
        self.keys += 1;
        let key = self.string()?;
        if kind == KIND_MODULE {
            let id = self.length()?;
            self.module()?;
            return Ok(Part::Module(module_name(id), Some(self.text(key)?)));
        }
        let start = self.at;
        self.value(kind)?;
        let value = start..self.at;
        let (key, offset) = (self.text(key)?, self.source.offset());
        let value = &self.source.bytes()[value];
        let version = self.version;
        Ok(Part::Key(KeyPart { offset, key, expire_ms, idle_s, frequency, kind, value, version }))
    }

    /// What was read of this part has been used.
    fn release(&mut self) {
        self.digest.update(&self.source.bytes()[..self.at]);
        self.source.consume(self.at);
        self.at = 0;
    }
    fn end(&mut self) -> Result<()> {
        self.release();
        if self.version < CHECKED_SINCE {
            return Ok(());
        }
        let found = u64::from_le_bytes(self.take()?);
        let expected = self.digest.clone().finalize();
        // 0: written without, by `rdbchecksum no`.
        if self.checks && found != 0 && found != expected {
            return Err(self.fault_at(0, Fault::Checksum));
        }
        self.source.consume(self.at);
        self.at = 0;
        Ok(())
    }

    fn fault_at(&self, at: usize, fault: Fault) -> FileError {
        FileError { offset: self.source.offset() + at as u64, fault }
    }
    /// Has so many more bytes of the part there.
    fn need(&mut self, count: u64) -> Result<Range<usize>> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let there = end.map_or_else(|| Ok(false), |end| self.source.fill_to(end));
        match (end, there) {
            (Some(end), Ok(true)) => {
                let span = self.at..end;
                self.at = end;
                Ok(span)
            }
            (_, Ok(_)) => {
                let there = self.source.bytes().len();
                let missing = count.saturating_sub((there - self.at.min(there)) as u64);
                Err(self.fault_at(there, Fault::Ends(usize::try_from(missing).unwrap_or(usize::MAX))))
            }
            (_, Err(error)) => Err(self.fault_at(self.at, Fault::Io(error))),
        }
    }
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let span = self.need(N as u64)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.source.bytes()[span]);
        Ok(bytes)
    }
    fn byte(&mut self) -> Result<u8> {
        Ok(self.take::<1>()?[0])
    }
    fn pass(&mut self, count: u64) -> Result<()> {
        self.need(count).map(|_| ())
    }

    fn length_or_encoding(&mut self) -> Result<Length> {
        let at = self.at;
        let first = self.byte()?;
        Ok(match first >> 6 {
            0 => Length::Plain(u64::from(first & 0x3F)),
            1 => Length::Plain(u64::from(first & 0x3F) << 8 | u64::from(self.byte()?)),
            3 => Length::Encoded(first & 0x3F),
            _ => match first {
                0x80 => Length::Plain(u64::from(u32::from_be_bytes(self.take()?))),
                0x81 => Length::Plain(u64::from_be_bytes(self.take()?)),
                _ => return Err(self.fault_at(at, Fault::Length(first))),
            },
        })
    }
    fn length(&mut self) -> Result<u64> {
        let at = self.at;
        match self.length_or_encoding()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(encoding) => Err(self.fault_at(at, Fault::Encoding(encoding))),
        }
    }
    fn lengths(&mut self, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| self.length().map(|_| ()))
    }
    /// A string, in whichever encoding; where it stands.
    fn string(&mut self) -> Result<Range<usize>> {
        let at = self.at;
        match self.length_or_encoding()? {
            Length::Plain(length) => self.pass(length)?,
            Length::Encoded(0) => self.pass(1)?,
            Length::Encoded(1) => self.pass(2)?,
            Length::Encoded(2) => self.pass(4)?,
            Length::Encoded(3) => {
                let (compressed, unpacked) = (self.length()?, self.length()?);
                self.unpacked.add(unpacked);
                self.pass(compressed)?;
            }
            Length::Encoded(other) => return Err(self.fault_at(at, Fault::Encoding(other))),
        }
        Ok(at..self.at)
    }
    fn strings(&mut self, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| self.string().map(|_| ()))
    }
    /// What a string says.
    fn text(&self, span: Range<usize>) -> Result<Cow<'_, [u8]>> {
        let fault = self.fault_at(span.start, Fault::Compressed);
        Cursor::new(&self.source.bytes()[span]).string().map_err(|_| fault)
    }

    fn knows(&self, kind: u8) -> bool {
        matches!(kind, 0..=5 | KIND_MODULE | 9..=22)
            || (self.maker == Maker::Redis && matches!(kind, 23..=25))
    }
    /// A value of a kind that is known.
    fn value(&mut self, kind: u8) -> Result<()> {
        match (kind, self.maker) {
            // One string: a string, or a whole collection in a packed form.
            (0 | 9..=13 | 16 | 17 | 20, _) => self.string().map(|_| ()),
            // LIST, SET, QUICKLIST
            (1 | 2 | 14, _) => {
                let count = self.length()?;
                self.strings(count)
            }
            (3, _) => self.repeat(|file| {
                file.string()?;
                file.text_double()
            }),
            (4, _) => self.repeat(|file| file.strings(2)),
            (5, _) => self.repeat(|file| {
                file.string()?;
                file.pass(8)
            }),
            // QUICKLIST_2: each node tells its container.
            (18, _) => self.repeat(|file| {
                file.length()?;
                file.string().map(|_| ())
            }),
            (15 | 19 | 21, _) => self.stream(kind),
            // Valkey's HASH_2: field, value, absolute expiry.
            (22, Maker::Valkey) => self.repeat(|file| {
                file.strings(2)?;
                file.pass(8)
            }),
            // Redis 7.4's hashes with expiring fields, before and after its release.
            (22, Maker::Redis) => self.repeat(Self::expiring_field),
            (23, _) => self.string().map(|_| ()),
            (24, _) => {
                self.pass(8)?;
                self.repeat(Self::expiring_field)
            }
            _ => {
                self.pass(8)?;
                self.string().map(|_| ())
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
        self.repeat(|file| file.strings(2))?;
        // Length and last ID; from version 2 on the first ID, the greatest deleted ID and the count of all entries
        // ever.
        self.lengths(if kind >= 19 { 8 } else { 3 })?;
        self.repeat(|file| {
            file.string()?;
            file.lengths(if kind >= 19 { 3 } else { 2 })?;
            // Pending entries: ID, time of delivery, count of deliveries.
            file.repeat(|file| {
                file.pass(16 + 8)?;
                file.lengths(1)
            })?;
            // Consumers: name, when seen (and, from version 3 on, when active), their pending IDs.
            file.repeat(|file| {
                file.string()?;
                file.pass(if kind >= 21 { 16 } else { 8 })?;
                file.repeat(|file| file.pass(16))
            })
        })
    }
    /// What a module wrote: values behind opcodes, up to opcode 0.
    fn module(&mut self) -> Result<()> {
        loop {
            let at = self.at;
            match self.length()? {
                0 => return Ok(()),
                1 | 2 => self.lengths(1)?,
                3 => self.pass(4)?,
                4 => self.pass(8)?,
                5 => self.string().map(|_| ())?,
                _ => return Err(self.fault_at(at, Fault::Module)),
            }
        }
    }
}

/// A value of a module, with its parts behind opcodes. The older form, 6, has no known length.
const KIND_MODULE: u8 = 7;

/// The name in a module type's number: nine characters of 6 bits, and 10 bits of version.
fn module_name(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9).map(|at| LETTERS[(id >> (58 - 6 * at) & 0x3f) as usize] as char).collect()
}

#[cfg(test)]
mod tests;
