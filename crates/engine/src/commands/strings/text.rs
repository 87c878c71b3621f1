//! Owns: the commands that read and write parts of strings. Does not own: bits, comparing strings (`super::lcs`).

use std::sync::atomic::Ordering::Relaxed;
use weft_store::Digits;

use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("APPEND", Scope::Keys, append),
    ("SETRANGE", Scope::Keys, setrange),
    ("GETRANGE", Scope::Keys, getrange),
    ("SUBSTR", Scope::Keys, getrange),
];

/// Refuses a string longer than `proto-max-bulk-len`.
fn check_len(context: &Context<'_, '_>, len: usize, more: usize) -> Result {
    let max = context.engine.settings.string_bytes_max.load(Relaxed);
    match len.checked_add(more) {
        Some(total) if total <= max => Ok(()),
        _ => Err(ErrorCode::StringTooLong.into()),
    }
}

fn append(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (key, bytes) = (context.key(args, 1), args.bytes(2));
    let (shard, mut op) = context.shard(&key)?;
    let old = match shard.peek(&mut op, &key) {
        None => 0,
        Some(value) => value.string_len().ok_or(ErrorCode::WrongType)?,
    };
    check_len(context, old, bytes.len())?;
    let (shard, mut op) = context.shard(&key)?;
    let len = shard.append(&mut op, &key, bytes)?;
    context.notify(notify::STRING, "append", &key);
    sink.count(len);
    Ok(())
}

fn setrange(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let offset = args.int(2)?;
    let offset = usize::try_from(offset).map_err(|_| Error::err("offset is out of range"))?;
    let (key, bytes) = (context.key(args, 1), args.bytes(3));
    let (shard, mut op) = context.shard(&key)?;
    let old = match shard.peek(&mut op, &key) {
        None => 0,
        Some(value) => value.string_len().ok_or(ErrorCode::WrongType)?,
    };
    if bytes.is_empty() {
        sink.count(old);
        return Ok(());
    }
    check_len(context, offset, bytes.len())?;
    let (shard, mut op) = context.shard(&key)?;
    let len = shard.set_range(&mut op, &key, offset, bytes)?;
    context.notify(notify::STRING, "setrange", &key);
    sink.count(len);
    Ok(())
}

fn getrange(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (start, end) = (args.int(2)?, args.int(3)?);
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key)?;
    let Some(value) = shard.get(&mut op, &key) else {
        sink.bulk(b"");
        return Ok(());
    };
    let mut digits = Digits::default();
    let bytes = value.as_bytes(&mut digits).ok_or(ErrorCode::WrongType)?;
    sink.bulk(range(bytes, start, end));
    Ok(())
}

/// The bytes from `start` to `end`, both included, negative ones from the end.
fn range(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    // A string is shorter than 2^63.
    let len = bytes.len() as i64;
    if start < 0 && end < 0 && start > end {
        return b"";
    }
    let place = |index: i64| if index < 0 { index.saturating_add(len).max(0) } else { index };
    let (start, end) = (place(start), place(end).min(len - 1));
    if start > end { b"" } else { &bytes[start as usize..=end as usize] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (start, end, expected) in [
            (0, -1, "hello"),
            (-3, -2, "ll"),
            (1, 1, "e"),
            (-100, 1, "he"),
            (3, 100, "lo"),
            (4, 2, ""),
            (-2, -3, ""),
            (-100, -100, "h"),
            (i64::MIN, i64::MAX, "hello"),
            (9, 10, ""),
        ] {
            assert_eq!(range(b"hello", start, end), expected.as_bytes(), "{start} {end}");
        }
        assert_eq!(range(b"", 0, -1), b"");
    }
}
