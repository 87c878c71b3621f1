//! Owns: the stream commands: which there are, and what several of them share: ids as clients write them, the form of
//! an entry in a reply. Does not own: the structure (`weft_store::stream`).
//!
//! | file | commands |
//! |---|---|
//! | `add` | XADD, XTRIM, XDEL, XSETID, XLEN |
//! | `read` | XRANGE, XREVRANGE, XREAD, XREADGROUP |
//! | `group` | XGROUP, XACK, XPENDING |
//! | `claim` | XCLAIM, XAUTOCLAIM |
//! | `info` | XINFO |

mod add;
mod claim;
mod group;
mod info;
mod read;

use std::borrow::Cow;
use weft_store::stream::{Entry, ID_TEXT_BYTES_MAX, Stream};
use weft_store::{Key, ObjectRef, StreamId, ValueRef};

use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler;
use crate::handler::Scope;
use crate::reply::ReplySink;

pub(crate) const LIST: &[handler::Entry] = &[
    ("XADD", Scope::Keys, add::xadd),
    ("XTRIM", Scope::Keys, add::xtrim),
    ("XDEL", Scope::Keys, add::xdel),
    ("XSETID", Scope::Keys, add::xsetid),
    ("XLEN", Scope::Keys, add::xlen),
    ("XRANGE", Scope::Keys, read::xrange),
    ("XREVRANGE", Scope::Keys, read::xrevrange),
    ("XREAD", Scope::Keys, read::xread),
    ("XREADGROUP", Scope::KeysOrWorld(read::is_ambiguous), read::xreadgroup),
    ("XGROUP CREATE", Scope::Keys, group::create),
    ("XGROUP SETID", Scope::Keys, group::set_id),
    ("XGROUP DESTROY", Scope::Keys, group::destroy),
    ("XGROUP CREATECONSUMER", Scope::Keys, group::create_consumer),
    ("XGROUP DELCONSUMER", Scope::Keys, group::delete_consumer),
    ("XGROUP HELP", Scope::None, group::show_help),
    ("XACK", Scope::Keys, group::xack),
    ("XPENDING", Scope::Keys, group::xpending),
    ("XCLAIM", Scope::Keys, claim::xclaim),
    ("XAUTOCLAIM", Scope::Keys, claim::xautoclaim),
    ("XINFO STREAM", Scope::Keys, info::stream),
    ("XINFO GROUPS", Scope::Keys, info::groups),
    ("XINFO CONSUMERS", Scope::Keys, info::consumers),
    ("XINFO HELP", Scope::None, info::show_help),
];

/// The longest text that is looked at as an id.
const ID_ARGUMENT_BYTES_MAX: usize = 127;

fn invalid_id() -> Error {
    Error::err("Invalid stream ID specified as stream command argument")
}

/// An id as clients write it, and whether its sequence was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parsed {
    id: StreamId,
    seq_given: bool,
}

/// `ms`, `ms-seq`; with `star` also `ms-*`. The sequence of the short form is `missing_seq`.
fn parse_strict(text: &[u8], missing_seq: u64, star: bool) -> Result<Parsed> {
    if text.len() > ID_ARGUMENT_BYTES_MAX {
        return Err(invalid_id());
    }
    let (ms, seq) = match text.iter().position(|&byte| byte == b'-') {
        Some(dash) => (&text[..dash], Some(&text[dash + 1..])),
        None => (text, None),
    };
    let ms = parse_u64(ms).ok_or_else(invalid_id)?;
    let (seq, seq_given) = match seq {
        None => (missing_seq, true),
        Some(b"*") if star => (0, false),
        Some(seq) => (parse_u64(seq).ok_or_else(invalid_id)?, true),
    };
    Ok(Parsed { id: StreamId::new(ms, seq), seq_given })
}

/// An id that is neither `-` nor `+`; a short one has the sequence 0.
fn strict_id(text: &[u8]) -> Result<StreamId> {
    parse_strict(text, 0, false).map(|parsed| parsed.id)
}

/// An id, or `-` or `+` for the ends.
fn any_id(text: &[u8], missing_seq: u64) -> Result<StreamId> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => parse_strict(text, missing_seq, false).map(|parsed| parsed.id),
    }
}

/// The start of a range: `(` before an id leaves it out.
fn start_id(text: &[u8]) -> Result<StreamId> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => {
            strict_id(rest)?.next().ok_or_else(|| Error::err("invalid start ID for the interval"))
        }
        _ => any_id(text, 0),
    }
}

/// The end of a range.
fn end_id(text: &[u8]) -> Result<StreamId> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => {
            let id = parse_strict(rest, u64::MAX, false)?.id;
            id.previous().ok_or_else(|| Error::err("invalid end ID for the interval"))
        }
        _ => any_id(text, u64::MAX),
    }
}

/// An unsigned number as Valkey reads the parts of an id: what `strtoull` takes too, so blanks in front, a sign and
/// leading zeros are fine.
fn parse_u64(text: &[u8]) -> Option<u64> {
    if let Some(value) = weft_store::parse_int(text) {
        return u64::try_from(value).ok();
    }
    let digits = text.trim_ascii_start();
    let (negative, digits) = match digits {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    Some(if negative { value.wrapping_neg() } else { value })
}

/// An id as a reply.
fn reply_id(sink: &mut ReplySink<'_>, id: StreamId) {
    sink.bulk(id.write(&mut [0; ID_TEXT_BYTES_MAX]));
}

/// An entry as a reply: its id, and names and values in a row.
fn reply_entry(sink: &mut ReplySink<'_>, entry: &Entry<'_>) {
    sink.array(2);
    reply_id(sink, entry.id);
    sink.array(2 * entry.fields.len());
    for (name, value) in entry.fields.iter() {
        sink.bulk(name);
        sink.bulk(value);
    }
}

/// The stream at a key, for reading.
fn find<'c>(context: &'c mut Context<'_, '_>, key: &Key<'_>) -> Result<Option<&'c Stream>> {
    let (shard, mut op) = context.shard(key)?;
    match shard.get(&mut op, key) {
        None => Ok(None),
        Some(ValueRef::Object(ObjectRef::Stream(stream))) => Ok(Some(stream)),
        Some(_) => Err(ErrorCode::WrongType.into()),
    }
}

/// Bytes in the text of an error.
fn shown(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_as_valkey_reads_them() {
        for (text, ms, seq) in [
            ("5", 5, 9),
            ("5-3", 5, 3),
            ("18446744073709551615-18446744073709551615", u64::MAX, u64::MAX),
            (" 7-+2", 7, 2),
            ("007-00", 7, 0),
            ("1--0", 1, 0),
            ("1--03", 1, 3_u64.wrapping_neg()),
        ] {
            assert_eq!(parse_strict(text.as_bytes(), 9, false).unwrap().id, StreamId::new(ms, seq), "{text}");
        }
        for text in ["", "-", "+", "5-", "-5", "a", "5-a", "5-*", "1--3", "18446744073709551616", "5 "] {
            assert!(parse_strict(text.as_bytes(), 0, false).is_err(), "{text}");
        }
        assert!(!parse_strict(b"5-*", 0, true).unwrap().seq_given);
        assert!(parse_strict(&[b'0'; 128], 0, false).is_err());
    }

    #[test]
    fn ends_of_ranges() {
        assert_eq!(start_id(b"(5").unwrap(), StreamId::new(5, 1));
        assert_eq!(end_id(b"(5").unwrap(), StreamId::new(5, u64::MAX - 1));
        assert_eq!((start_id(b"-").unwrap(), end_id(b"+").unwrap()), (StreamId::MIN, StreamId::MAX));
        assert!(start_id(b"(-").is_err() && end_id(b"(+").is_err() && start_id(b"(").is_err());
        let last = format!("({}", StreamId::MAX);
        assert_eq!(start_id(last.as_bytes()).unwrap_err().text, "invalid start ID for the interval");
        assert_eq!(end_id(b"(0-0").unwrap_err().text, "invalid end ID for the interval");
    }
}
