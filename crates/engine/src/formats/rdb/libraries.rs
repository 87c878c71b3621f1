//! Owns: libraries of functions as FUNCTION DUMP gives and FUNCTION RESTORE takes them. Does not own: what they are.
//!
//! ```text
//! +------+--------+     +------+--------+----------------+----------------+
//! | 0xF5 | source | ... | 0xF5 | source | RDB version    | CRC-64         |
//! +------+--------+     +------+--------+----------------+----------------+
//! ```

use super::cursor::Cursor;
use super::{CRC, FOOTER_BYTES, VERSION, VERSION_VALKEY, encode, seal};

/// What stands before a library.
const LIBRARY: u8 = 0xF5;
/// The same as it was before it was released.
const LIBRARY_EARLY: u8 = 0xF6;

/// A payload of these sources.
pub fn write_libraries<'c>(sources: impl Iterator<Item = &'c [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for source in sources {
        out.push(LIBRARY);
        encode::raw_string(&mut out, source);
    }
    seal(out, VERSION)
}

/// The sources of a payload, or what is wrong with it.
pub fn read_libraries(payload: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    const FOOTER: &str = "DUMP payload version or checksum are wrong";
    let value = payload.len().checked_sub(FOOTER_BYTES).ok_or(FOOTER)?;
    let (value, footer) = payload.split_at(value);
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    if !(1..=VERSION_VALKEY).contains(&version)
        || footer[2..] != CRC.checksum(&payload[..value.len() + 2]).to_le_bytes()
    {
        return Err(FOOTER);
    }
    let (mut cursor, mut sources) = (Cursor::new(value), Vec::new());
    while !cursor.is_empty() {
        match cursor.byte() {
            Ok(LIBRARY) => {}
            Ok(LIBRARY_EARLY) => return Err("Pre-GA function format not supported"),
            _ => return Err("given type is not a function"),
        }
        let source = cursor.string().map_err(|_| "failed loading the given functions payload")?;
        sources.push(source.into_owned());
    }
    Ok(sources)
}
