//! Owns: which kinds of values there are, and handing their elements to a collector. Does not own: the packed forms
//! (`packed`), the parts of a stream (`stream`).

use super::cursor::Cursor;
use super::packed::{Listpack, Piece, Ziplist, intset, zipmap};
use super::{Malformed, VERSION, VERSION_REDIS_MAX, kind, stream};
use weft_store::Stream;
use weft_store::value::Digits;

/// Takes what a payload holds: elements of one type, at least one. What it refuses makes the payload malformed.
pub trait Collect {
    /// The value is this string.
    fn string(&mut self, bytes: &[u8]);
    /// The next element of a list.
    fn list_element(&mut self, bytes: &[u8]);
    /// A member of a set. `false` if it was there already.
    fn set_member(&mut self, bytes: &[u8]) -> bool;
    /// A field of a hash, with its absolute expiry. `false` if it was there already.
    fn hash_field(&mut self, name: &[u8], value: &[u8], expire_ms: Option<u64>) -> bool;
    /// A member of a sorted set; the score is a number. `false` if it was there already.
    fn zset_member(&mut self, member: &[u8], score: f64) -> bool;
    /// The value is this stream.
    fn stream(&mut self, stream: Stream);
}

fn added(is_new: bool) -> Result<(), Malformed> {
    if is_new { Ok(()) } else { Err(Malformed) }
}

/// Reads a value with its kind; nothing may follow.
pub(super) fn value(bytes: &[u8], version: u16, into: &mut impl Collect) -> Result<(), Malformed> {
    let mut cursor = Cursor::new(bytes);
    let kind = cursor.byte()?;
    let redis = version > VERSION && version <= VERSION_REDIS_MAX;
    match kind {
        kind::STRING => into.string(&cursor.string()?),
        kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
            list(kind, &mut cursor, into)?;
        }
        kind::SET | kind::SET_INTSET | kind::SET_LISTPACK => set(kind, &mut cursor, into)?,
        kind::ZSET | kind::ZSET_2 | kind::ZSET_ZIPLIST | kind::ZSET_LISTPACK => {
            zset(kind, &mut cursor, into)?
        }
        kind::HASH | kind::HASH_ZIPMAP | kind::HASH_ZIPLIST | kind::HASH_LISTPACK => {
            hash(kind, &mut cursor, into)?;
        }
        kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => into.stream(stream::read(kind, &mut cursor)?),
        kind::HASH_2 if !redis => {
            for _ in 0..cursor.count_of_some()? {
                let (name, value) = (cursor.string()?, cursor.string()?);
                let expire_ms = match cursor.i64_le()? {
                    -1 => None,
                    time => Some(u64::try_from(time).map_err(|_| Malformed)?),
                };
                added(into.hash_field(&name, &value, expire_ms))?;
            }
        }
        _ if redis => redis_hash(kind, &mut cursor, into)?,
        _ => return Err(Malformed),
    }
    if cursor.is_empty() { Ok(()) } else { Err(Malformed) }
}

/// How a node of a quicklist is stored: one large element, or a listpack.
const NODE_PLAIN: u64 = 1;
const NODE_PACKED: u64 = 2;

fn list(kind: u8, cursor: &mut Cursor<'_>, into: &mut impl Collect) -> Result<(), Malformed> {
    let mut any = false;
    let mut push = |bytes: &[u8]| {
        any = true;
        into.list_element(bytes);
    };
    match kind {
        kind::LIST => {
            for _ in 0..cursor.count_of_some()? {
                push(&cursor.string()?);
            }
        }
        kind::LIST_ZIPLIST => each(Ziplist::new(&cursor.string()?)?, &mut push)?,
        kind::LIST_QUICKLIST => {
            for _ in 0..cursor.count_of_some()? {
                each(Ziplist::new(&cursor.string()?)?, &mut push)?;
            }
        }
        _ => {
            for _ in 0..cursor.count_of_some()? {
                let container = cursor.length()?;
                let node = cursor.string()?;
                match container {
                    NODE_PLAIN => push(&node),
                    NODE_PACKED => each(Listpack::new(&node)?, &mut push)?,
                    _ => return Err(Malformed),
                }
            }
        }
    }
    if any { Ok(()) } else { Err(Malformed) }
}

fn each<'a>(
    pieces: impl Iterator<Item = Result<Piece<'a>, Malformed>>,
    mut push: impl FnMut(&[u8]),
) -> Result<(), Malformed> {
    let mut digits = Digits::default();
    for piece in pieces {
        push(piece?.bytes(&mut digits));
    }
    Ok(())
}

fn set(kind: u8, cursor: &mut Cursor<'_>, into: &mut impl Collect) -> Result<(), Malformed> {
    let mut any = false;
    let mut add = |bytes: &[u8]| {
        any = true;
        added(into.set_member(bytes))
    };
    let mut digits = Digits::default();
    match kind {
        kind::SET => {
            for _ in 0..cursor.count_of_some()? {
                add(&cursor.string()?)?;
            }
        }
        kind::SET_INTSET => {
            for value in intset(&cursor.string()?)? {
                add(digits.write(value))?;
            }
        }
        _ => {
            for piece in Listpack::new(&cursor.string()?)? {
                add(piece?.bytes(&mut digits))?;
            }
        }
    }
    if any { Ok(()) } else { Err(Malformed) }
}

/// Hands over the elements two by two, of which there must be some.
fn pairs<'a>(
    mut pieces: impl Iterator<Item = Result<Piece<'a>, Malformed>>,
    mut pair: impl FnMut(Piece<'a>, Piece<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut any = false;
    while let Some(first) = pieces.next() {
        pair(first?, pieces.next().ok_or(Malformed)??)?;
        any = true;
    }
    if any { Ok(()) } else { Err(Malformed) }
}

fn zset(kind: u8, cursor: &mut Cursor<'_>, into: &mut impl Collect) -> Result<(), Malformed> {
    let mut digits = Digits::default();
    match kind {
        kind::ZSET | kind::ZSET_2 => {
            for _ in 0..cursor.count_of_some()? {
                let member = cursor.string()?;
                let score = if kind == kind::ZSET { cursor.text_double()? } else { cursor.score()? };
                added(into.zset_member(&member, score))?;
            }
            Ok(())
        }
        _ => {
            let packed = cursor.string()?;
            let mut add = |member: Piece<'_>, score: Piece<'_>| {
                added(into.zset_member(member.bytes(&mut digits), score.score()?))
            };
            if kind == kind::ZSET_ZIPLIST {
                pairs(Ziplist::new(&packed)?, &mut add)
            } else {
                pairs(Listpack::new(&packed)?, &mut add)
            }
        }
    }
}

fn hash(kind: u8, cursor: &mut Cursor<'_>, into: &mut impl Collect) -> Result<(), Malformed> {
    if kind == kind::HASH {
        for _ in 0..cursor.count_of_some()? {
            let (name, value) = (cursor.string()?, cursor.string()?);
            added(into.hash_field(&name, &value, None))?;
        }
        return Ok(());
    }
    let packed = cursor.string()?;
    if kind == kind::HASH_ZIPMAP {
        let mut any = false;
        zipmap(&packed, |name, value| {
            any = true;
            added(into.hash_field(name, value, None))
        })?;
        return if any { Ok(()) } else { Err(Malformed) };
    }
    let (mut name_digits, mut value_digits) = (Digits::default(), Digits::default());
    let mut add = |name: Piece<'_>, value: Piece<'_>| {
        added(into.hash_field(name.bytes(&mut name_digits), value.bytes(&mut value_digits), None))
    };
    if kind == kind::HASH_ZIPLIST {
        pairs(Ziplist::new(&packed)?, &mut add)
    } else {
        pairs(Listpack::new(&packed)?, &mut add)
    }
}

/// Hashes with expiring fields as Redis 7.4 writes them. In a table, a field's expiry counts from the earliest of all,
/// plus one, 0 being none; before the release of 7.4 it was absolute. In a listpack it is absolute, 0 being none.
fn redis_hash(kind: u8, cursor: &mut Cursor<'_>, into: &mut impl Collect) -> Result<(), Malformed> {
    let earliest_ms = match kind {
        kind::REDIS_HASH_EXPIRING | kind::REDIS_HASH_LISTPACK_EXPIRING => {
            u64::try_from(cursor.i64_le()?).map_err(|_| Malformed)?
        }
        kind::REDIS_HASH_EXPIRING_EARLY | kind::REDIS_HASH_LISTPACK_EXPIRING_EARLY => 0,
        _ => return Err(Malformed),
    };
    if matches!(kind, kind::REDIS_HASH_EXPIRING | kind::REDIS_HASH_EXPIRING_EARLY) {
        let offset = if kind == kind::REDIS_HASH_EXPIRING { earliest_ms.checked_sub(1) } else { None };
        for _ in 0..cursor.count_of_some()? {
            let expire_ms = match cursor.length()? {
                0 => None,
                time => Some(time.checked_add(offset.unwrap_or(0)).ok_or(Malformed)?),
            };
            let (name, value) = (cursor.string()?, cursor.string()?);
            added(into.hash_field(&name, &value, expire_ms))?;
        }
        return Ok(());
    }
    let packed = cursor.string()?;
    let mut pieces = Listpack::new(&packed)?;
    let (mut name_digits, mut value_digits) = (Digits::default(), Digits::default());
    if pieces.is_at_end() {
        return Err(Malformed);
    }
    while !pieces.is_at_end() {
        let (name, value, time) = (pieces.expect()?, pieces.expect()?, pieces.expect()?);
        let expire_ms = match u64::try_from(time.int()?).map_err(|_| Malformed)? {
            0 => None,
            time => Some(time),
        };
        added(into.hash_field(name.bytes(&mut name_digits), value.bytes(&mut value_digits), expire_ms))?;
    }
    Ok(())
}
