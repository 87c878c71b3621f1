//! Owns: the sorted set type: members with scores, in order of score and, where those are equal, of bytes. Does not
//! own: keys, the algebra of many sets, NaN (which never comes in: the command refuses it).
//!
//! Compact (`listpack`) while it is small: members and scores in one buffer, in order ([`compact`]). Then (`skiplist`,
//! the name that Valkey gives it) a dictionary of members with their scores, and a tree of scores that counts
//! ([`tree`]). It never goes back.
//!
//! Everything about ranges goes through ranks: [`SortedSetRef::ranks_by_score`] and [`SortedSetRef::ranks_by_lex`] turn
//! a range into ranks in O(log n), whose length is a count, on which offset and limit are arithmetic, and which
//! [`SortedSetRef::visit`], [`SortedSetRef::iter`] and [`SortedSetRef::iter_back`] walk.
//!
//! | command | calls |
//! |---|---|
//! | ZSCORE, ZMSCORE, ZCARD | [`SortedSetRef::score`], [`SortedSetRef::len`] |
//! | ZRANK, ZREVRANK | [`SortedSetRef::rank`]; the reverse one is `len − 1 − rank` |
//! | ZRANGE…, ZREVRANGE… | `ranks_by_score`, `ranks_by_lex` or indexes; [`SortedSetRef::visit`] |
//! | ZCOUNT, ZLEXCOUNT | the length of `ranks_by_score`, `ranks_by_lex` |
//! | ZRANDMEMBER | [`SortedSetRef::random_each`] (negative count), [`SortedSetRef::random_distinct`] |
//! | ZSCAN | [`SortedSetRef::scan`] |
//! | ZADD, ZINCRBY | [`SortedSetMut::update`]: shows the old score, takes the new one or leaves it |
//! | …STORE, GEOADD | [`SortedSetMut::add`]; [`SortedSetMut::announce`] before many |
//! | ZREM | [`SortedSetMut::remove`] |
//! | ZPOPMIN, ZPOPMAX, ZMPOP, ZREMRANGEBY… | [`SortedSetMut::remove_ranks`] |
//! | RESTORE, loading | [`SortedSetMut::new`] with [`crate::Keyspace::backing`] |

mod change;
mod compact;
mod score;
mod tree;

use crate::ahead::Ahead;
use crate::choice::{Selection, better_walk, index_below, roll_distinct};
use crate::clock::Rng;
use crate::dict::{Dict, Record};
use crate::prefetch;
pub use change::SortedSetMut;
use compact::{Compact, CompactRef, Pairs};
use std::cmp::Ordering;
use std::ops::Range;
use tree::{Item, Tree};

/// When a sorted set stops being compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortedSetLimits {
    /// `zset-max-listpack-entries`.
    pub entries_max: usize,
    /// `zset-max-listpack-value`: bytes of a member.
    pub value_bytes_max: usize,
}

impl Default for SortedSetLimits {
    fn default() -> Self {
        Self { entries_max: 128, value_bytes_max: 64 }
    }
}

/// A range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// The least score.
    pub min: f64,
    /// Whether `min` itself is outside.
    pub min_exclusive: bool,
    /// The greatest score.
    pub max: f64,
    /// Whether `max` itself is outside.
    pub max_exclusive: bool,
}

/// One end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// `-`: before every member.
    Min,
    /// `+`: behind every member.
    Max,
    /// `[member`
    Inclusive(&'a [u8]),
    /// `(member`
    Exclusive(&'a [u8]),
}

impl LexBound<'_> {
    /// Whether a member lies before the lower bound that this is.
    fn is_above(self, member: &[u8]) -> bool {
        match self {
            Self::Min => false,
            Self::Max => true,
            Self::Inclusive(bound) => member < bound,
            Self::Exclusive(bound) => member <= bound,
        }
    }
    /// Whether a member lies behind the upper bound that this is.
    fn is_below(self, member: &[u8]) -> bool {
        match self {
            Self::Min => true,
            Self::Max => false,
            Self::Inclusive(bound) => member > bound,
            Self::Exclusive(bound) => member >= bound,
        }
    }
}

/// A member with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored<'a> {
    /// The member.
    pub member: &'a [u8],
    /// Its score, never NaN.
    pub score: f64,
}

/// A sorted set.
#[derive(Debug, Default)]
pub struct SortedSet(Repr);

#[derive(Debug)]
enum Repr {
    Compact(Compact),
    Large(Box<Large>),
}

/// The large form.
struct Large {
    dict: Dict,
    tree: Tree,
    /// While records move to a new generation: elements from the last one on that have.
    moved: usize,
}

impl std::fmt::Debug for Large {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.dict.fmt(formatter)
    }
}

impl Default for Repr {
    fn default() -> Self {
        Self::Compact(Compact::default())
    }
}

/// The order of a sorted set. Scores are no NaN; −0 and 0 are equal.
fn order(one: Scored<'_>, two: Scored<'_>) -> Ordering {
    one.score.partial_cmp(&two.score).unwrap_or(Ordering::Equal).then_with(|| one.member.cmp(two.member))
}

fn score_of(record: &Record<'_>) -> f64 {
    record.value.first_chunk().map_or(0.0, |bytes| f64::from_le_bytes(*bytes))
}

fn scored(record: Record<'_>) -> Scored<'_> {
    Scored { member: record.key, score: score_of(&record) }
}

/// How an element of the tree stands to a member with a score; only equal scores need the member itself.
fn order_in(dict: &Dict, item: Item, target: Scored<'_>) -> Ordering {
    let by_score = item.score.partial_cmp(&target.score).unwrap_or(Ordering::Equal);
    by_score.then_with(|| dict.key(item.handle).cmp(target.member))
}

impl SortedSet {
    /// Asks for what the next look-ups in a large one will touch.
    #[inline]
    pub(crate) fn look_ahead(&self, ahead: Ahead) {
        if let Repr::Large(large) = &self.0 {
            large.dict.look_ahead(ahead);
        }
    }
    /// To read it.
    #[must_use]
    pub fn view(&self) -> SortedSetRef<'_> {
        SortedSetRef(match &self.0 {
            Repr::Compact(compact) => View::Compact(compact.as_ref()),
            Repr::Large(large) => View::Large(large),
        })
    }
    pub(crate) const fn is_compact(&self) -> bool {
        matches!(self.0, Repr::Compact(_))
    }
    /// Memory beyond the struct itself. Constant time.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Repr::Compact(compact) => compact.capacity(),
            Repr::Large(large) => size_of::<Large>() + large.dict.memory_bytes() + large.tree.memory_bytes(),
        }
    }
    pub(crate) const fn from_packed(bytes: Vec<u8>) -> Self {
        Self(Repr::Compact(Compact::from_bytes(bytes)))
    }
    pub(crate) fn packed(&self) -> Option<&[u8]> {
        if let Repr::Compact(compact) = &self.0 { Some(compact.bytes()) } else { None }
    }
    /// Gives back what a buffer has allocated and does not use.
    pub(crate) fn fit(&mut self) {
        if let Repr::Compact(compact) = &mut self.0 {
            compact.fit();
        }
    }
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        if let Repr::Compact(compact) = self.0 { compact.into_bytes() } else { Vec::new() }
    }
    /// Asks for what it leads to.
    pub(crate) fn prefetch(&self) {
        match &self.0 {
            Repr::Compact(compact) => prefetch::line(compact.bytes().as_ptr()),
            Repr::Large(large) => prefetch::value(&**large),
        }
    }
    pub(crate) fn free_step(&mut self, chunks: usize) -> bool {
        match &mut self.0 {
            Repr::Compact(_) => true,
            // A chunk of records is as large as 128 leaves.
            Repr::Large(large) => large.tree.free_step(chunks * 128) && large.dict.free_step(chunks),
        }
    }
}

/// A sorted set, to be read. What it lends lives as long as the set is not changed.
#[derive(Clone, Copy, Debug)]
pub struct SortedSetRef<'a>(View<'a>);

#[derive(Clone, Copy, Debug)]
enum View<'a> {
    Compact(CompactRef<'a>),
    Large(&'a Large),
}

impl<'a> SortedSetRef<'a> {
    pub(crate) fn packed(bytes: &'a [u8]) -> Self {
        Self(View::Compact(CompactRef::from(bytes)))
    }
    /// A copy, for COPY: memory is copied as it stands.
    #[must_use]
    pub fn duplicate(self) -> SortedSet {
        SortedSet(match self.0 {
            View::Compact(compact) => Repr::Compact(Compact::from_bytes(compact.bytes().to_vec())),
            View::Large(large) => {
                let (dict, tree) = (large.dict.duplicate(), large.tree.clone());
                Repr::Large(Box::new(Large { dict, tree, moved: large.moved }))
            }
        })
    }
    /// Members.
    #[must_use]
    pub fn len(self) -> usize {
        match self.0 {
            View::Compact(compact) => compact.count(),
            View::Large(large) => large.tree.len(),
        }
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// `listpack` or `skiplist`.
    #[must_use]
    pub const fn encoding(self) -> &'static str {
        match self.0 {
            View::Compact(_) => "listpack",
            View::Large(_) => "skiplist",
        }
    }
    /// The score of a member: O(1) in the large form.
    #[must_use]
    pub fn score(self, member: &[u8]) -> Option<f64> {
        match self.0 {
            View::Compact(compact) => compact.find(member).map(|(_, score)| score),
            View::Large(large) => large.dict.get(member).map(|record| score_of(&record)),
        }
    }
    /// The rank of a member, 0 being the least, and its score.
    #[must_use]
    pub fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        match self.0 {
            View::Compact(compact) => compact
                .iter()
                .enumerate()
                .find(|(_, pair)| pair.member == member)
                .map(|(rank, pair)| (rank, pair.score)),
            View::Large(large) => {
                let score = score_of(&large.dict.get(member)?);
                let target = Scored { member, score };
                Some((large.tree.count(|item| order_in(&large.dict, item, target).is_lt()), score))
            }
        }
    }
    /// How many elements come before the first for which `before` does not hold.
    fn count_while(self, before: impl Fn(Scored<'_>) -> bool) -> usize {
        match self.0 {
            View::Compact(compact) => compact.iter().take_while(|pair| before(*pair)).count(),
            View::Large(large) => large
                .tree
                .count(|item| before(Scored { member: large.dict.key(item.handle), score: item.score })),
        }
    }
    /// As [`Self::count_while`], for what does not look at members.
    fn count_scores_while(self, before: impl Fn(f64) -> bool) -> usize {
        match self.0 {
            View::Compact(compact) => compact.iter().take_while(|pair| before(pair.score)).count(),
            View::Large(large) => large.tree.count(|item| before(item.score)),
        }
    }
    /// The ranks of a range of scores.
    #[must_use]
    pub fn ranks_by_score(self, range: ScoreRange) -> Range<usize> {
        let ScoreRange { min, min_exclusive, max, max_exclusive } = range;
        let start = self.count_scores_while(|score| if min_exclusive { score <= min } else { score < min });
        let end = self.count_scores_while(|score| if max_exclusive { score < max } else { score <= max });
        start..end.max(start)
    }
    /// The ranks of a range of members. Means something only while all scores are equal, as with ZRANGEBYLEX.
    #[must_use]
    pub fn ranks_by_lex(self, min: LexBound<'_>, max: LexBound<'_>) -> Range<usize> {
        let start = self.count_while(|pair| min.is_above(pair.member));
        let end = self.count_while(|pair| !max.is_below(pair.member));
        start..end.max(start)
    }
    /// The elements of some ranks, ascending. Ranks beyond the end are left out.
    pub fn iter(self, ranks: Range<usize>) -> Elements<'a> {
        let count = ranks.end.min(self.len()).saturating_sub(ranks.start);
        Elements(match self.0 {
            View::Compact(compact) => {
                Source::Compact { pairs: compact.iter_from(compact.offset(ranks.start)), left: count }
            }
            View::Large(large) => Source::Large {
                dict: &large.dict,
                walk: Box::new(large.tree.iter_from(ranks.start).take(count)),
            },
        })
    }
    /// The elements of some ranks, descending.
    pub fn iter_back(self, ranks: Range<usize>) -> Elements<'a> {
        let end = ranks.end.min(self.len());
        let count = end.saturating_sub(ranks.start);
        Elements(match self.0 {
            View::Compact(compact) => {
                Source::Back(compact.iter().skip(ranks.start).take(count).collect::<Vec<_>>())
            }
            View::Large(large) => Source::Large {
                dict: &large.dict,
                walk: Box::new(large.tree.iter_back_from(end).take(count)),
            },
        })
    }
    /// Visits elements from a cursor on; returns the next cursor, 0 at the end. A compact set is shown whole.
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(Scored<'a>)) -> u64 {
        match self.0 {
            View::Compact(compact) => {
                compact.iter().for_each(visit);
                0
            }
            View::Large(large) => large.dict.scan(cursor, count, |record| visit(scored(record))),
        }
    }
    /// Visits `count` elements by chance, each time any of them.
    pub fn random_each(self, count: usize, rng: &mut dyn Rng, mut visit: impl FnMut(Scored<'a>)) {
        match self.0 {
            View::Compact(compact) => {
                let all: Vec<_> = compact.iter().collect();
                if !all.is_empty() {
                    (0..count).for_each(|_| visit(all[index_below(rng, all.len())]));
                }
            }
            View::Large(large) => {
                for _ in 0..count {
                    let Some(record) = large.dict.random(rng) else { return };
                    visit(scored(record));
                }
            }
        }
    }
    /// Visits up to `count` different elements by chance.
    pub fn random_distinct(self, count: usize, rng: &mut dyn Rng, mut visit: impl FnMut(Scored<'a>)) {
        if let View::Large(large) = self.0
            && !better_walk(large.tree.len(), count)
        {
            let roll = || large.dict.random(rng).map(|record| (record.key.as_ptr() as usize, record));
            return roll_distinct(count, roll, |record| visit(scored(record)));
        }
        let mut selection = Selection::new(self.len(), count);
        for element in self.iter(0..self.len()) {
            if selection.done() {
                return;
            }
            if selection.take(rng) {
                visit(element);
            }
        }
    }
}

/// Iterator over elements, from [`SortedSetRef::iter`] and [`SortedSetRef::iter_back`].
pub struct Elements<'a>(Source<'a>);

enum Source<'a> {
    Compact {
        pairs: Pairs<'a>,
        left: usize,
    },
    /// Of a compact form backwards: the last one first from the end.
    Back(Vec<Scored<'a>>),
    Large {
        dict: &'a Dict,
        walk: Box<dyn Iterator<Item = Item> + 'a>,
    },
}

impl<'a> Iterator for Elements<'a> {
    type Item = Scored<'a>;
    fn next(&mut self) -> Option<Scored<'a>> {
        match &mut self.0 {
            Source::Compact { pairs, left } => {
                *left = left.checked_sub(1)?;
                pairs.next()
            }
            Source::Back(pairs) => pairs.pop(),
            Source::Large { dict, walk } => {
                let item = walk.next()?;
                Some(Scored { member: dict.key(item.handle), score: item.score })
            }
        }
    }
}

impl<'a> SortedSetRef<'a> {
    /// Shows the elements of some ranks, ascending or descending: what [`Self::iter`] and [`Self::iter_back`] give, for
    /// half of the time. Ranks beyond the end are left out.
    #[inline]
    pub fn visit(self, ranks: Range<usize>, back: bool, mut visit: impl FnMut(Scored<'a>)) {
        match self.0 {
            View::Compact(compact) if !back => {
                let left = ranks.end.min(compact.count()).saturating_sub(ranks.start);
                let mut at = compact.offset(ranks.start);
                for _ in 0..left {
                    let Some((pair, next)) = compact.at(at) else { return };
                    visit(pair);
                    at = next;
                }
            }
            View::Compact(_) => self.iter_back(ranks).for_each(visit),
            View::Large(Large { dict, tree, .. }) => {
                let ask = |handle| dict.prefetch(handle);
                tree.visit(ranks, back, ask, |item| {
                    visit(Scored { member: dict.key(item.handle), score: item.score });
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
