//! Owns: libraries of functions as FUNCTION DUMP gives and FUNCTION RESTORE takes them. Does not own: what they are.
//!
//! ```text
//! +------+--------+     +------+--------+----------------+----------------+
//! | 0xF5 | source | ... | 0xF5 | source | RDB version    | CRC-64         |
//! +------+--------+     +------+--------+----------------+----------------+
//! ```

use std::borrow::Cow;

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

/// The sources of a payload, or what is wrong with it. They may have so many bytes together.
pub fn read_libraries(payload: &[u8], bytes_max: u64) -> Result<Vec<Vec<u8>>, Cow<'static, str>> {
    const FOOTER: &str = "DUMP payload version or checksum are wrong";
    const MALFORMED: &str = "failed loading the given functions payload";
    let value = payload.len().checked_sub(FOOTER_BYTES).ok_or(FOOTER)?;
    let (value, footer) = payload.split_at(value);
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    if !(1..=VERSION_VALKEY).contains(&version)
        || footer[2..] != CRC.checksum(&payload[..value.len() + 2]).to_le_bytes()
    {
        return Err(FOOTER.into());
    }
    let (mut cursor, mut sources, mut bytes) = (Cursor::new(value), Vec::new(), 0);
    while !cursor.is_empty() {
        match cursor.byte() {
            Ok(LIBRARY) => {}
            Ok(LIBRARY_EARLY) => return Err("Pre-GA function format not supported".into()),
            _ => return Err("given type is not a function".into()),
        }
        bytes = cursor.string_bytes().map_err(|_| MALFORMED)?.saturating_add(bytes);
        if bytes > bytes_max {
            return Err(format!("the libraries of the payload have more than {bytes_max} bytes").into());
        }
        let source = cursor.string().map_err(|_| MALFORMED)?;
        sources.push(source.into_owned());
    }
    Ok(sources)
}
