//! Owns: what PROGRAM and TRIGGER do alike with what is stored under names: names, versions, DEL, the pattern of LIST.
//! Does not own: programs and triggers themselves.
//!
//! An entry begins with its version. The entry without a name has the highest version of any that was deleted: what is
//! new begins behind it, so that a version that somebody has seen is never that of something else.

use weft_store::Section;

use crate::args::Args;
use crate::catalogue::DELETED;
use crate::context::Context;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::glob;
use crate::program::stored::NAME_BYTES_MAX;
use crate::reply::ReplySink;

/// That a name is one.
pub(super) fn check_name(name: &[u8]) -> Result {
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(byte));
    if is_name {
        return Ok(());
    }
    Err(Error::err(format!("a name has 1 to {NAME_BYTES_MAX} letters, digits and _ - . :")))
}

fn version_of(entry: &[u8]) -> u64 {
    entry.first_chunk().map_or(0, |version| u64::from_be_bytes(*version))
}

/// The highest version of what was deleted.
fn deleted(engine: &Engine, section: Section) -> u64 {
    engine.keyspace.catalogue().get(section, DELETED).map_or(0, |entry| version_of(&entry))
}

/// The version of what SET stores over `present`, 0 for nothing, if that is the one which the arguments ask for, and
/// there may be one more of `what`: there are so many, of so many at most.
pub(super) fn next_version(
    engine: &Engine,
    args: &Args<'_>,
    (section, what): (Section, &str),
    present: u64,
    (count, max): (usize, usize),
) -> Result<u64> {
    let expected = match args.len() {
        4 => None,
        6 if args.is(4, "VERSION") => Some(args.int(5)?),
        _ => return Err(ErrorCode::Syntax.into()),
    };
    check_name(args.bytes(2))?;
    if expected.is_some_and(|expected| u64::try_from(expected) != Ok(present)) {
        let text = format!("the version of the {what} is {present}, 0 being none");
        return Err(Error::new(ErrorCode::WrongVersion, text));
    }
    if present == 0 && count >= max {
        return Err(Error::new(ErrorCode::Limit, format!("{max} {what}s may be stored")));
    }
    Ok(if present == 0 { deleted(engine, section) } else { present } + 1)
}

/// DEL name …
pub(super) fn del(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    section: Section,
    forget: impl FnOnce(&Engine, Vec<Box<[u8]>>),
) -> Result {
    let (mut removed, before) = (Vec::new(), deleted(context.engine, section));
    let mut highest = before;
    for name in args.rest(2).filter(|name| *name != DELETED) {
        if let Some(entry) = context.set_entry(section, name, None)? {
            highest = highest.max(version_of(&entry));
            removed.push(name.into());
        }
    }
    if highest > before {
        context.set_entry(section, DELETED, Some(&highest.to_be_bytes()))?;
    }
    sink.count(removed.len());
    forget(context.engine, removed);
    Ok(())
}

/// Whether LIST [MATCH pattern] names something.
pub(super) fn listed<'a>(args: &Args<'a>) -> Result<impl Fn(&[u8]) -> bool + use<'a>> {
    let pattern = match args.len() {
        2 => None,
        4 if args.is(2, "MATCH") => Some(args.bytes(3)),
        _ => return Err(ErrorCode::Syntax.into()),
    };
    Ok(move |name: &[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, name)))
}
