//! Passing over an RDB: how long it is, without looking at what it holds. Does not own: the format
//! (`weft_engine::rdb::file`).

use anyhow::Result;
use weft_engine::rdb::file::{Part, Reader};

pub(super) use weft_engine::rdb::file::is_rdb;

use crate::window::Window;

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

/// Passes over the RDB at the window's start. Its checksum is not looked at.
pub(super) fn skip(window: &mut Window) -> Result<Skipped> {
    let start = window.offset();
    let mut reader = Reader::new(&mut *window)?;
    reader.trust();
    let mut functions = 0;
    loop {
        match reader.part()? {
            Part::Library(_) | Part::EarlyFunction => functions += 1,
            Part::End => break,
            _ => {}
        }
    }
    let keys = reader.keys();
    Ok(Skipped { bytes: window.offset() - start, keys, functions })
}
