//! Owns: the list commands. Does not own: the structure (`weft_store::list`), waiting (`crate::blocking`).
//!
//! | file | commands |
//! |---|---|
//! | `read` | what only looks |
//! | `edit` | pushing, setting, inserting, removing |
//! | `pop` | taking from the ends, and from list to list |
//! | `block` | the same, waiting for something to take |

mod block;
mod edit;
mod pop;
mod read;

use std::sync::atomic::Ordering::Relaxed;
use weft_store::{End, Key, ListLimit, ListRef, ObjectRef, ValueRef};

use crate::args::Args;
use crate::context::Context;
use crate::error::{ErrorCode, Result};
use crate::handler::{Entry, Scope};

pub(crate) const LIST: &[Entry] = &[
    ("LPUSH", Scope::Keys, edit::lpush),
    ("RPUSH", Scope::Keys, edit::rpush),
    ("LPUSHX", Scope::Keys, edit::lpushx),
    ("RPUSHX", Scope::Keys, edit::rpushx),
    ("LSET", Scope::Keys, edit::lset),
    ("LINSERT", Scope::Keys, edit::linsert),
    ("LREM", Scope::Keys, edit::lrem),
    ("LTRIM", Scope::Keys, edit::ltrim),
    ("LLEN", Scope::Keys, read::llen),
    ("LINDEX", Scope::Keys, read::lindex),
    ("LRANGE", Scope::Keys, read::lrange),
    ("LPOS", Scope::Keys, read::lpos),
    ("LPOP", Scope::Keys, pop::lpop),
    ("RPOP", Scope::Keys, pop::rpop),
    ("LMPOP", Scope::Keys, pop::lmpop),
    ("LMOVE", Scope::Keys, pop::lmove),
    ("RPOPLPUSH", Scope::Keys, pop::rpoplpush),
    ("BLPOP", Scope::Keys, block::blpop),
    ("BRPOP", Scope::Keys, block::brpop),
    ("BLMPOP", Scope::Keys, block::blmpop),
    ("BLMOVE", Scope::Keys, block::blmove),
    ("BRPOPLPUSH", Scope::Keys, block::brpoplpush),
];

/// `list-max-listpack-size`.
fn limit(context: &Context<'_, '_>) -> ListLimit {
    ListLimit::from_config(context.engine.settings.list_max_listpack_size.load(Relaxed))
}

/// The list at a key, for reading.
#[inline]
fn find<'c>(context: &'c mut Context<'_, '_>, key: &Key<'_>) -> Result<Option<ListRef<'c>>> {
    let (shard, mut op) = context.shard(key)?;
    as_list(shard.get(&mut op, key))
}

fn as_list(value: Option<ValueRef<'_>>) -> Result<Option<ListRef<'_>>> {
    match value {
        None => Ok(None),
        Some(ValueRef::Object(ObjectRef::List(list))) => Ok(Some(list)),
        Some(_) => Err(ErrorCode::WrongType.into()),
    }
}

/// Whether a key holds a list, before a write to it; another type is an error.
fn is_list(context: &mut Context<'_, '_>, key: &Key<'_>) -> Result<bool> {
    let (shard, mut op) = context.shard(key)?;
    as_list(shard.peek(&mut op, key)).map(|list| list.is_some())
}

/// A place in a list of `len` elements, negative ones counted from the end; nothing outside it.
fn place(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(len as i64)? } else { index };
    usize::try_from(index).ok().filter(|&index| index < len)
}

/// The elements from `start` to `end`, both included and negative ones counted from the end, as a range of places; it
/// may be empty.
pub(crate) fn span(start: i64, end: i64, len: usize) -> std::ops::Range<usize> {
    // A list is shorter than 2^63.
    let len = len as i64;
    let from_end = |index: i64| if index < 0 { index.saturating_add(len) } else { index };
    let (start, end) = (from_end(start).max(0), from_end(end).min(len - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

/// `LEFT` or `RIGHT`.
fn end_argument(args: &Args<'_>, index: usize) -> Result<End> {
    if args.is(index, "LEFT") {
        Ok(End::Front)
    } else if args.is(index, "RIGHT") {
        Ok(End::Back)
    } else {
        Err(ErrorCode::Syntax.into())
    }
}

/// The event of taking from an end.
const fn pop_event(end: End) -> &'static str {
    match end {
        End::Front => "lpop",
        End::Back => "rpop",
    }
}

/// The event of adding at an end.
const fn push_event(end: End) -> &'static str {
    match end {
        End::Front => "lpush",
        End::Back => "rpush",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_spans() {
        assert_eq!((place(0, 3), place(-1, 3), place(3, 3), place(-4, 3)), (Some(0), Some(2), None, None));
        assert_eq!((place(i64::MIN, 3), place(0, 0)), (None, None));
        assert_eq!((span(0, -1, 3), span(1, 100, 3), span(-100, 0, 3)), (0..3, 1..3, 0..1));
        assert_eq!((span(2, 1, 3), span(3, 5, 3), span(0, -5, 3), span(0, -1, 0)), (0..0, 0..0, 0..0, 0..0));
        assert_eq!(span(i64::MIN, i64::MAX, 3), 0..3);
    }
}
