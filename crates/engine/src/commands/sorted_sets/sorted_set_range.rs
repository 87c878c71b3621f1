//! Owns: the commands about ranges of sorted sets: by index, by score, by member. Does not own: how a range becomes
//! ranks (`weft_store::sorted_set`).

use std::ops::Range;
use weft_store::{Changed, LexBound, Object, ScoreRange, SortedSet, SortedSetMut, SortedSetRef};

use super::sorted_set::{read, removed};
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::number::parse_bound;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("ZRANGE", Scope::Keys, zrange),
    ("ZRANGESTORE", Scope::Keys, zrangestore),
    ("ZREVRANGE", Scope::Keys, zrevrange),
    ("ZRANGEBYSCORE", Scope::Keys, zrangebyscore),
    ("ZREVRANGEBYSCORE", Scope::Keys, zrevrangebyscore),
    ("ZRANGEBYLEX", Scope::Keys, zrangebylex),
    ("ZREVRANGEBYLEX", Scope::Keys, zrevrangebylex),
    ("ZCOUNT", Scope::Keys, zcount),
    ("ZLEXCOUNT", Scope::Keys, zlexcount),
    ("ZREMRANGEBYRANK", Scope::Keys, zremrangebyrank),
    ("ZREMRANGEBYSCORE", Scope::Keys, zremrangebyscore),
    ("ZREMRANGEBYLEX", Scope::Keys, zremrangebylex),
];

/// What a range's ends are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Rank,
    Score,
    Lex,
}

/// A range as the arguments say it.
#[derive(Clone, Copy)]
enum Bounds<'a> {
    /// First and last index; negative ones count from the end.
    Rank(i64, i64),
    Score(ScoreRange),
    Lex(LexBound<'a>, LexBound<'a>),
}

/// A bound of scores: a number, or `(` and a number.
fn score_bound(text: &[u8]) -> Option<(f64, bool)> {
    match text {
        [b'(', rest @ ..] => parse_bound(rest).map(|score| (score, true)),
        _ => parse_bound(text).map(|score| (score, false)),
    }
}

fn lex_bound(text: &[u8]) -> Option<LexBound<'_>> {
    match text {
        b"-" => Some(LexBound::Min),
        b"+" => Some(LexBound::Max),
        [b'[', member @ ..] => Some(LexBound::Inclusive(member)),
        [b'(', member @ ..] => Some(LexBound::Exclusive(member)),
        _ => None,
    }
}

impl<'a> Bounds<'a> {
    /// Reads the lower end from argument `min`, the upper from `max`.
    fn parse(args: &Args<'a>, by: By, (min, max): (usize, usize)) -> Result<Self> {
        match by {
            By::Rank => Ok(Self::Rank(args.int(min)?, args.int(max)?)),
            By::Score => {
                let ends = score_bound(args.bytes(min)).zip(score_bound(args.bytes(max)));
                let ((min, min_exclusive), (max, max_exclusive)) =
                    ends.ok_or_else(|| Error::err("min or max is not a float"))?;
                Ok(Self::Score(ScoreRange { min, min_exclusive, max, max_exclusive }))
            }
            By::Lex => {
                let ends = lex_bound(args.bytes(min)).zip(lex_bound(args.bytes(max)));
                let (min, max) = ends.ok_or_else(|| Error::err("min or max not valid string range item"))?;
                Ok(Self::Lex(min, max))
            }
        }
    }
    /// The ranks in a set; of indexes, counted from the other end if `reverse`.
    fn ranks(self, set: SortedSetRef<'_>, reverse: bool) -> Range<usize> {
        match self {
            Self::Rank(start, stop) => index_ranks((start, stop), set.len(), reverse),
            Self::Score(range) => set.ranks_by_score(range),
            Self::Lex(min, max) => set.ranks_by_lex(min, max),
        }
    }
}

fn index_ranks((start, stop): (i64, i64), len: usize, reverse: bool) -> Range<usize> {
    let from_end = |index: i64| if index < 0 { index.saturating_add_unsigned(len as u64) } else { index };
    let start = usize::try_from(from_end(start)).unwrap_or(0);
    let end = usize::try_from(from_end(stop).saturating_add(1)).unwrap_or(0).min(len);
    if start >= end {
        return 0..0;
    }
    if reverse { len - end..len - start } else { start..end }
}

/// A range command as its arguments say it.
struct Request<'a> {
    bounds: Bounds<'a>,
    reverse: bool,
    with_scores: bool,
    /// How many to leave out, and how many to take then; a negative number takes all.
    limit: (i64, i64),
}

/// What a command's name fixes: the kind of range and the direction, or nothing.
type Fixed = (Option<By>, Option<bool>);

impl<'a> Request<'a> {
    /// Reads the ends at `at` and `at + 1`, and the options behind them.
    fn parse(args: &Args<'a>, at: usize, fixed: Fixed, store: bool) -> Result<Self> {
        let (mut by, mut reverse) = fixed;
        let mut with_scores = false;
        let mut limit = (0, -1);
        let mut next = at + 2;
        while next < args.len() {
            if !store && args.is(next, "WITHSCORES") {
                with_scores = true;
            } else if args.is(next, "LIMIT") && next + 2 < args.len() {
                limit = (args.int(next + 1)?, args.int(next + 2)?);
                next += 2;
            } else if fixed.1.is_none() && reverse.is_none() && args.is(next, "REV") {
                reverse = Some(true);
            } else if by.is_none() && args.is(next, "BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && args.is(next, "BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(ErrorCode::Syntax.into());
            }
            next += 1;
        }
        let (by, reverse) = (by.unwrap_or(By::Rank), reverse.unwrap_or(false));
        if limit.1 != -1 && by == By::Rank {
            let text = "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
            return Err(Error::err(text));
        }
        if with_scores && by == By::Lex {
            return Err(Error::err("syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        let ends = if reverse && by != By::Rank { (at + 1, at) } else { (at, at + 1) };
        Ok(Self { bounds: Bounds::parse(args, by, ends)?, reverse, with_scores, limit })
    }

    /// The ranks that are asked for. With the limit: from the end if reversed.
    fn ranks(&self, set: SortedSetRef<'_>) -> Range<usize> {
        let Range { start, end } = self.bounds.ranks(set, self.reverse);
        if matches!(self.bounds, Bounds::Rank(..)) {
            return start..end;
        }
        let Ok(offset) = usize::try_from(self.limit.0) else { return 0..0 };
        let count = usize::try_from(self.limit.1).unwrap_or(usize::MAX);
        if self.reverse {
            let end = end.saturating_sub(offset).max(start);
            end.saturating_sub(count).max(start)..end
        } else {
            let start = start.saturating_add(offset).min(end);
            start..end.min(start.saturating_add(count))
        }
    }
}

/// How many members of a set the ends span that stand at `at` and behind it, with the options behind them: before the
/// command runs. Ends that make no sense span nothing; the command says so.
pub(crate) fn spanned(args: &Args<'_>, at: usize, by: By, set: SortedSetRef<'_>) -> usize {
    // The lower end stands first or last: between ends in the wrong order there is nothing.
    let fixed: &[Fixed] = match by {
        By::Rank => &[(None, None)],
        By::Score => &[(Some(By::Score), Some(false)), (Some(By::Score), Some(true))],
        By::Lex => &[(Some(By::Lex), Some(false)), (Some(By::Lex), Some(true))],
    };
    let len =
        |fixed: &Fixed| Request::parse(args, at, *fixed, false).map_or(0, |request| request.ranks(set).len());
    fixed.iter().map(len).max().unwrap_or(0)
}

fn zrange(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    range(context, args, sink, (None, None))
}

fn zrevrange(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    range(context, args, sink, (Some(By::Rank), Some(true)))
}

fn zrangebyscore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    range(context, args, sink, (Some(By::Score), Some(false)))
}

fn zrevrangebyscore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    range(context, args, sink, (Some(By::Score), Some(true)))
}

fn zrangebylex(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    range(context, args, sink, (Some(By::Lex), Some(false)))
}

fn zrevrangebylex(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    range(context, args, sink, (Some(By::Lex), Some(true)))
}

fn range(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, fixed: Fixed) -> Result {
    let request = Request::parse(args, 2, fixed, false)?;
    let key = context.key(args, 1);
    let Some(set) = read(context, &key)? else {
        sink.array(0);
        return Ok(());
    };
    let ranks = request.ranks(set);
    if request.with_scores {
        sink.pairs(ranks.len());
        set.visit(ranks, request.reverse, |element| {
            sink.pair();
            sink.bulk(element.member);
            sink.double(element.score);
        });
    } else {
        sink.array_of_bulks(ranks.len(), |out| {
            set.visit(ranks, request.reverse, |element| out.push(element.member));
        });
    }
    Ok(())
}

fn zrangestore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let request = Request::parse(args, 3, (None, None), true)?;
    let (target, source) = (context.key(args, 1), context.key(args, 2));
    let (limits, backing) = (context.sorted_set_limits(), context.engine.keyspace.backing());
    let mut result = SortedSet::default();
    if let Some(set) = read(context, &source)? {
        let ranks = request.ranks(set);
        let mut change = SortedSetMut::new(&mut result, limits, backing);
        if matches!(request.bounds, Bounds::Rank(..)) {
            change.announce(ranks.len(), 0);
        }
        set.iter(ranks).for_each(|element| {
            change.add(element.member, element.score);
        });
    }
    sink.count(result.view().len());
    context.store(&target, (notify::ZSET, "zrangestore"), Object::SortedSet(result))?;
    Ok(())
}

fn zcount(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    count(context, args, sink, By::Score)
}

fn zlexcount(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    count(context, args, sink, By::Lex)
}

fn count(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, by: By) -> Result {
    let bounds = Bounds::parse(args, by, (2, 3))?;
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    sink.count(set.map_or(0, |set| bounds.ranks(set, false).len()));
    Ok(())
}

fn zremrangebyrank(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    remove_range(context, args, sink, (By::Rank, "zremrangebyrank"))
}

fn zremrangebyscore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    remove_range(context, args, sink, (By::Score, "zremrangebyscore"))
}

fn zremrangebylex(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    remove_range(context, args, sink, (By::Lex, "zremrangebylex"))
}

fn remove_range(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    (by, event): (By, &str),
) -> Result {
    let bounds = Bounds::parse(args, by, (2, 3))?;
    let key = context.key(args, 1);
    let limits = context.sorted_set_limits();
    let (shard, mut op) = context.shard(&key)?;
    let count = shard.change_sorted_set(&mut op, &key, false, limits, |set| {
        let ranks = bounds.ranks(set.view(), false);
        let count = set.remove_ranks(ranks, |_| ());
        Changed { result: count, changed: count > 0 }
    })?;
    let count = count.unwrap_or(0);
    if count > 0 {
        removed(context, &key, event)?;
    }
    sink.count(count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_become_ranks() {
        for (start, stop, reverse, expected) in [
            (0, -1, false, 0..5),
            (1, 2, false, 1..3),
            (1, 2, true, 2..4),
            (-2, -1, false, 3..5),
            (-2, -1, true, 0..2),
            (-100, 100, true, 0..5),
            (3, 1, false, 0..0),
            (5, 9, false, 0..0),
            (i64::MIN, i64::MAX, false, 0..5),
            (0, i64::MIN, false, 0..0),
        ] {
            assert_eq!(index_ranks((start, stop), 5, reverse), expected, "{start} {stop}");
        }
    }
}
