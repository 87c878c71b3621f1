//! Owns: LCS, the longest common subsequence of two strings. Does not own: anything else.
//!
//! The table of dynamic programming takes 4 bytes for each pair of bytes of the two strings; what is larger than
//! `proto-max-bulk-len` is refused, as in Valkey.

use std::sync::atomic::Ordering::Relaxed;
use weft_store::Digits;

use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[("LCS", Scope::Keys, lcs)];

/// What LCS shall answer.
#[derive(Default)]
struct Options {
    len: bool,
    index: bool,
    with_len: bool,
    len_min: u32,
}

impl Options {
    fn read(args: &Args<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut index = 3;
        while index < args.len() {
            if args.is(index, "IDX") {
                options.index = true;
            } else if args.is(index, "LEN") {
                options.len = true;
            } else if args.is(index, "WITHMATCHLEN") {
                options.with_len = true;
            } else if args.is(index, "MINMATCHLEN") && index + 1 < args.len() {
                index += 1;
                let value = args.int(index)?.max(0);
                options.len_min = u32::try_from(value).unwrap_or(u32::MAX);
            } else {
                return Err(ErrorCode::Syntax.into());
            }
            index += 1;
        }
        if options.len && options.index {
            return Err(Error::err("If you want both the length and indexes, please just use IDX."));
        }
        Ok(options)
    }
}

fn lcs(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    // Both are looked for before either can be an error.
    let (one, other) = (string(context, args, 1), string(context, args, 2));
    let (one, other) = (one?, other?);
    let options = Options::read(args)?;
    let max = context.engine.settings.string_bytes_max.load(Relaxed);
    let table = Table::new(&one, &other, max)?;
    if options.index {
        sink.map(2);
        sink.bulk(b"matches");
        sink.deferred();
        let mut write = |found: &Match| found.write(options.with_len, sink);
        table.walk(
            &one,
            &other,
            |_| (),
            |found| {
                if found.len >= options.len_min {
                    write(found);
                }
            },
        );
        sink.close();
        sink.bulk(b"len");
        sink.int(i64::from(table.len()));
    } else if options.len {
        sink.int(i64::from(table.len()));
    } else {
        let mut common = Vec::with_capacity(table.len() as usize);
        table.walk(&one, &other, |byte| common.push(byte), |_| ());
        common.reverse();
        sink.bulk(&common);
    }
    Ok(())
}

/// A copy of a key's string: both must be at hand, whichever shards they are in.
fn string(context: &mut Context<'_, '_>, args: &Args<'_>, index: usize) -> Result<Vec<u8>> {
    let key = context.key(args, index);
    let (shard, mut op) = context.shard(&key)?;
    let Some(value) = shard.get(&mut op, &key) else { return Ok(Vec::new()) };
    let mut digits = Digits::default();
    let bytes = value.as_bytes(&mut digits);
    bytes.map(<[u8]>::to_vec).ok_or_else(|| Error::err("The specified keys must contain string values"))
}

/// A range that both strings have.
struct Match {
    one: u32,
    other: u32,
    len: u32,
}

impl Match {
    fn write(&self, with_len: bool, sink: &mut ReplySink<'_>) {
        sink.array(if with_len { 3 } else { 2 });
        for start in [self.one, self.other] {
            sink.array(2);
            sink.int(i64::from(start));
            sink.int(i64::from(start + self.len - 1));
        }
        if with_len {
            sink.int(i64::from(self.len));
        }
    }
}

/// Lengths of the common subsequences of all prefixes.
struct Table {
    cells: Vec<u32>,
    columns: usize,
}

impl Table {
    fn new(one: &[u8], other: &[u8], bytes_max: usize) -> Result<Self> {
        let longest = u32::MAX as usize - 1;
        if one.len() >= longest || other.len() >= longest {
            return Err(Error::err("String too long for LCS"));
        }
        // Below 2^64, since both are below 2^32.
        let (rows, columns) = (one.len() + 1, other.len() + 1);
        let cells_max = bytes_max / size_of::<u32>();
        if rows * columns > cells_max {
            let text = "Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
            return Err(Error::err(text));
        }
        let mut cells = Vec::new();
        if cells.try_reserve_exact(rows * columns).is_err() {
            let text = "Insufficient memory, failed allocating transient memory for LCS";
            return Err(Error::err(text));
        }
        cells.resize(columns, 0);
        for (row, a) in one.iter().enumerate() {
            let above = row * columns;
            cells.push(0);
            let mut left = 0;
            for (column, b) in other.iter().enumerate() {
                let here = &cells[above + column..above + column + 2];
                left = if a == b { here[0] + 1 } else { here[1].max(left) };
                cells.push(left);
            }
        }
        Ok(Self { cells, columns })
    }

    fn at(&self, row: usize, column: usize) -> u32 {
        self.cells[row * self.columns + column]
    }
    fn len(&self) -> u32 {
        self.cells.last().copied().unwrap_or(0)
    }

    /// Goes back from the ends of both strings: each byte of the subsequence, and each range of adjacent ones.
    fn walk(&self, one: &[u8], other: &[u8], mut byte: impl FnMut(u8), mut range: impl FnMut(&Match)) {
        let (mut row, mut column) = (one.len(), other.len());
        let mut open: Option<Match> = None;
        while row > 0 && column > 0 {
            if one[row - 1] != other[column - 1] {
                if self.at(row - 1, column) > self.at(row, column - 1) {
                    row -= 1
                } else {
                    column -= 1
                }
                if let Some(found) = open.take() {
                    range(&found);
                }
                continue;
            }
            (row, column) = (row - 1, column - 1);
            byte(one[row]);
            let (at, other_at) = (row as u32, column as u32);
            match &mut open {
                Some(found) if found.one == at + 1 && found.other == other_at + 1 => {
                    *found = Match { one: at, other: other_at, len: found.len + 1 };
                }
                _ => {
                    if let Some(found) = open.replace(Match { one: at, other: other_at, len: 1 }) {
                        range(&found);
                    }
                }
            }
        }
        if let Some(found) = open {
            range(&found);
        }
    }
}
