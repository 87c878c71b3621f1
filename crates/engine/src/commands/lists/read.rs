//! Owns: LLEN, LINDEX, LRANGE, LPOS. Does not own: changes.

use weft_store::ListRef;

use super::{find, place, span};
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::reply::ReplySink;

pub(super) fn llen(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.count(find(context, &context.key(args, 1))?.map_or(0, ListRef::len));
    Ok(())
}

pub(super) fn lindex(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let Some(list) = find(context, &context.key(args, 1))? else {
        sink.null();
        return Ok(());
    };
    // Without the key the index is not looked at.
    match place(args.int(2)?, list.len()).and_then(|index| list.get(index)) {
        Some(element) => sink.bulk(element),
        None => sink.null(),
    }
    Ok(())
}

pub(super) fn lrange(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (start, end) = (args.int(2)?, args.int(3)?);
    let Some(list) = find(context, &context.key(args, 1))? else {
        sink.array(0);
        return Ok(());
    };
    let span = span(start, end, list.len());
    sink.array_of_bulks(span.len(), |out| {
        list.visit(span.start, span.len(), |element| out.push(element));
    });
    Ok(())
}

/// What LPOS looks for.
struct Search {
    /// From the end.
    back: bool,
    /// Matches to pass over.
    skip: usize,
    /// Matches to answer, and whether as an array.
    count: usize,
    many: bool,
    /// Elements to look at.
    visits_max: usize,
}

impl Search {
    fn read(args: &Args<'_>) -> Result<Self> {
        let mut search = Self { back: false, skip: 0, count: 1, many: false, visits_max: usize::MAX };
        let mut index = 3;
        while index < args.len() {
            if index + 1 == args.len() {
                return Err(ErrorCode::Syntax.into());
            }
            if args.is(index, "RANK") {
                let rank = args.int_in(index + 1, -i64::MAX..=i64::MAX)?;
                if rank == 0 {
                    return Err(Error::err(
                        "RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use \
                         negative to start from the end of the list",
                    ));
                }
                search.back = rank < 0;
                search.skip = rank.unsigned_abs() as usize - 1;
            } else if args.is(index, "COUNT") {
                let count = args.int_in_said(index + 1, 0..=i64::MAX, "COUNT can't be negative")?;
                (search.count, search.many) = (unlimited_if_zero(count), true);
            } else if args.is(index, "MAXLEN") {
                let visits = args.int_in_said(index + 1, 0..=i64::MAX, "MAXLEN can't be negative")?;
                search.visits_max = unlimited_if_zero(visits);
            } else {
                return Err(ErrorCode::Syntax.into());
            }
            index += 2;
        }
        Ok(search)
    }

    /// Calls `found` with the place of each match.
    fn run(&self, list: ListRef<'_>, element: &[u8], found: impl FnMut(usize)) {
        let len = list.len();
        let matches = |(index, other): (usize, &[u8])| (other == element).then_some(index);
        if self.back {
            let places = list.iter_back_from(len).take(self.visits_max).enumerate().filter_map(matches);
            places.skip(self.skip).take(self.count).map(|index| len - 1 - index).for_each(found);
        } else {
            let places = list.iter().take(self.visits_max).enumerate().filter_map(matches);
            places.skip(self.skip).take(self.count).for_each(found);
        }
    }
}

fn unlimited_if_zero(value: i64) -> usize {
    usize::try_from(value).ok().filter(|&value| value > 0).unwrap_or(usize::MAX)
}

pub(super) fn lpos(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let search = Search::read(args)?;
    let list = find(context, &context.key(args, 1))?;
    if search.many {
        sink.deferred();
        if let Some(list) = list {
            search.run(list, args.bytes(2), |index| sink.count(index));
        }
        sink.close();
        return Ok(());
    }
    let mut place = None;
    if let Some(list) = list {
        search.run(list, args.bytes(2), |index| place = Some(index));
    }
    match place {
        Some(index) => sink.count(index),
        None => sink.null(),
    }
    Ok(())
}
