//! Owns: writing a file of RDB from keys and their payloads. Does not own: which keys, nor where the bytes go.
//!
//! The version stands at the start of a file and is known at its end: it is that of the newest kind in it, so that what
//! older servers can read, they do read. So the start is written last ([`Writer::finish`]), and the checksum, which
//! begins with it, after that.

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::super::encode::{length, raw_string};
use super::super::{CRC, FOOTER_BYTES, VERSION, VERSION_7_2, VERSION_REDIS_MAX, VERSION_VALKEY, kind};
use super::MAGIC_BYTES;

/// Bytes that are read at a time for the checksum.
const READ_BYTES: usize = 1 << 16;

/// A file on its way.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    version: u16,
    part: Vec<u8>,
}

/// Why a key was not written.
#[derive(Debug)]
pub enum WriteError {
    /// The file could not be written.
    Io(io::Error),
    /// The payload is none, or of a version that cannot stand in one file with another key's.
    Payload(u16),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The oldest version that has what the payload holds.
fn version_of(payload: &[u8]) -> Result<(u16, &[u8]), WriteError> {
    let at = payload.len().checked_sub(FOOTER_BYTES).filter(|&at| at > 0).ok_or(WriteError::Payload(0))?;
    let (value, footer) = payload.split_at(at);
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let needs = match value[0] {
        kind::STRING..=kind::STREAM_2 => VERSION,
        kind::SET_LISTPACK | kind::STREAM_3 => VERSION_7_2,
        _ => version,
    };
    Ok((needs, value))
}

impl<W: Write> Writer<W> {
    /// A file, with these facts at its start.
    pub fn new(mut out: W, facts: &[(&str, &str)]) -> io::Result<Self> {
        out.write_all(&[0; MAGIC_BYTES])?;
        let mut writer = Self { out, version: VERSION, part: Vec::new() };
        for (name, value) in facts {
            writer.part.push(250);
            raw_string(&mut writer.part, name.as_bytes());
            raw_string(&mut writer.part, value.as_bytes());
        }
        writer.send()?;
        Ok(writer)
    }
    fn send(&mut self) -> io::Result<()> {
        self.out.write_all(&self.part)?;
        self.part.clear();
        Ok(())
    }
    /// The keys that follow are of this database.
    pub fn database(&mut self, number: u64) -> io::Result<()> {
        self.part.push(254);
        length(&mut self.part, number);
        self.send()
    }
    /// Libraries of functions, as FUNCTION DUMP gives them.
    pub fn libraries(&mut self, payload: &[u8]) -> Result<(), WriteError> {
        let at = payload.len().checked_sub(FOOTER_BYTES).ok_or(WriteError::Payload(0))?;
        self.out.write_all(&payload[..at])?;
        Ok(())
    }
    /// A key with its value as DUMP gives it.
    pub fn key(&mut self, key: &[u8], expire_ms: Option<u64>, payload: &[u8]) -> Result<(), WriteError> {
        let (version, value) = version_of(payload)?;
        let is_redis = |version: u16| version > VERSION_7_2 && version <= VERSION_REDIS_MAX;
        let is_valkey = |version: u16| version > VERSION_REDIS_MAX;
        if version > VERSION_VALKEY
            || is_redis(version) && is_valkey(self.version)
            || is_valkey(version) && is_redis(self.version)
        {
            return Err(WriteError::Payload(version));
        }
        self.version = self.version.max(version);
        if let Some(time) = expire_ms {
            self.part.push(252);
            self.part.extend_from_slice(&time.to_le_bytes());
        }
        self.part.push(value[0]);
        raw_string(&mut self.part, key);
        self.send()?;
        self.out.write_all(&value[1..])?;
        Ok(())
    }
}

impl<W: Read + Write + Seek> Writer<W> {
    /// Ends the file: its version, the checksum. Gives the version.
    pub fn finish(mut self) -> io::Result<(W, u16)> {
        self.out.write_all(&[255])?;
        self.out.seek(SeekFrom::Start(0))?;
        let maker = if self.version > VERSION_REDIS_MAX { "VALKEY" } else { "REDIS" };
        let magic = format!("{maker}{:0width$}", self.version, width = MAGIC_BYTES - maker.len());
        self.out.write_all(magic.as_bytes())?;
        self.out.seek(SeekFrom::Start(0))?;
        let mut digest = CRC.digest();
        let mut chunk = vec![0; READ_BYTES];
        loop {
            match self.out.read(&mut chunk)? {
                0 => break,
                count => digest.update(&chunk[..count]),
            }
        }
        self.out.write_all(&digest.finalize().to_le_bytes())?;
        self.out.flush()?;
        Ok((self.out, self.version))
    }
}
