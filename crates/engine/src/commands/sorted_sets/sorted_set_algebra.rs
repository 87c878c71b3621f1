//! Owns: ZUNION, ZINTER, ZDIFF and their siblings, over sorted sets and sets. Does not own: the structures.

use weft_store::{Key, Object, SetRef, SortedSet, SortedSetMut, SortedSetRef, ValueRef};

use crate::args::Args;
use crate::commands::common::collection::positive;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result, full_name};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("ZUNION", Scope::Keys, zunion),
    ("ZUNIONSTORE", Scope::Keys, zunionstore),
    ("ZINTER", Scope::Keys, zinter),
    ("ZINTERSTORE", Scope::Keys, zinterstore),
    ("ZINTERCARD", Scope::Keys, zintercard),
    ("ZDIFF", Scope::Keys, zdiff),
    ("ZDIFFSTORE", Scope::Keys, zdiffstore),
];

/// What is done with the sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
    /// Only the number of common members.
    Card,
}

/// What becomes of scores that meet.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn join(self, one: f64, two: f64) -> f64 {
        match self {
            Self::Sum => number_or_zero(one + two),
            // Of −0 and 0 the one that came first.
            Self::Min if two < one => two,
            Self::Max if two > one => two,
            Self::Min | Self::Max => one,
        }
    }
}

/// Infinities that cancel each other out count as nothing.
const fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// A source: a set's members have the score 1.
#[derive(Clone, Copy)]
enum Source<'c> {
    None,
    Set(SetRef<'c>),
    Sorted(SortedSetRef<'c>),
}

impl<'c> Source<'c> {
    fn of(value: Option<ValueRef<'c>>) -> Result<Self> {
        let Some(value) = value else { return Ok(Self::None) };
        let set = value.as_set().map(Self::Set);
        set.or_else(|| value.as_sorted_set().map(Self::Sorted)).ok_or_else(|| ErrorCode::WrongType.into())
    }
    fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Set(set) => set.len(),
            Self::Sorted(set) => set.len(),
        }
    }
    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Set(set) => set.contains(member).then_some(1.0),
            Self::Sorted(set) => set.score(member),
        }
    }
    /// Visits members with their scores until told to stop with `false`.
    fn each(self, mut visit: impl FnMut(&[u8], f64) -> bool) {
        match self {
            Self::None => {}
            Self::Set(set) => {
                set.iter().all(|member| visit(&member, 1.0));
            }
            Self::Sorted(set) => {
                set.iter(0..set.len()).all(|element| visit(element.member, element.score));
            }
        }
    }
}

/// A request, its keys looked up.
struct Request<'k> {
    keys: Vec<Key<'k>>,
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
    limit: usize,
}

impl<'k> Request<'k> {
    /// Reads the number of keys from argument `at`, the keys, and the options.
    fn parse(
        context: &mut Context<'_, '_>,
        args: &Args<'k>,
        at: usize,
        operation: Operation,
    ) -> Result<Self> {
        let count = args.int(at)?;
        if count < 1 {
            let name = full_name(args.spec);
            return Err(Error::err(format!("at least 1 input key is needed for '{name}' command")));
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > args.len() - at - 1 {
            return Err(ErrorCode::Syntax.into());
        }
        let keys: Vec<Key<'k>> = (at + 1..=at + count).map(|place| context.key(args, place)).collect();
        for key in &keys {
            let (shard, mut op) = context.shard(key)?;
            Source::of(shard.get(&mut op, key))?;
        }
        let mut request = Self {
            weights: vec![1.0; keys.len()],
            keys,
            aggregate: Aggregate::Sum,
            with_scores: false,
            limit: 0,
        };
        request.options(args, (at + 1 + count, at == 2), operation)?;
        Ok(request)
    }

    fn options(&mut self, args: &Args<'_>, (from, store): (usize, bool), operation: Operation) -> Result {
        let scored = matches!(operation, Operation::Union | Operation::Inter);
        let count = self.keys.len();
        let mut at = from;
        while at < args.len() {
            let left = args.len() - at;
            if scored && left > count && args.is(at, "WEIGHTS") {
                for (index, weight) in self.weights.iter_mut().enumerate() {
                    let given = args.double(at + 1 + index);
                    *weight = given.map_err(|_| Error::err("weight value is not a float"))?;
                }
                at += count + 1;
            } else if scored && left >= 2 && args.is(at, "AGGREGATE") {
                self.aggregate = match () {
                    () if args.is(at + 1, "SUM") => Aggregate::Sum,
                    () if args.is(at + 1, "MIN") => Aggregate::Min,
                    () if args.is(at + 1, "MAX") => Aggregate::Max,
                    () => return Err(ErrorCode::Syntax.into()),
                };
                at += 2;
            } else if !store && operation != Operation::Card && args.is(at, "WITHSCORES") {
                self.with_scores = true;
                at += 1;
            } else if operation == Operation::Card && left >= 2 && args.is(at, "LIMIT") {
                self.limit = positive(args, at + 1, "LIMIT can't be negative")?;
                at += 2;
            } else {
                return Err(ErrorCode::Syntax.into());
            }
        }
        Ok(())
    }

    /// The sources with their weights, in the order of the arguments.
    fn sources<'c>(&self, context: &'c Context<'_, '_>) -> Vec<(Source<'c>, f64)> {
        let sources = self.keys.iter().map(|key| Source::of(context.view(key)).unwrap_or(Source::None));
        sources.zip(self.weights.iter().copied()).collect()
    }
    /// The same, the smallest first.
    fn by_size<'c>(&self, context: &'c Context<'_, '_>) -> Vec<(Source<'c>, f64)> {
        let mut sources = self.sources(context);
        sources.sort_by_key(|(source, _)| source.len());
        sources
    }

    /// Visits the members that all sources have, with their joined scores.
    fn common(&self, context: &Context<'_, '_>, mut visit: impl FnMut(&[u8], f64) -> bool) {
        let sources = self.by_size(context);
        let Some(((smallest, weight), others)) = sources.split_first() else { return };
        smallest.each(|member, score| {
            let mut joined = number_or_zero(weight * score);
            for (other, weight) in others {
                let Some(score) = other.score(member) else { return true };
                joined = self.aggregate.join(joined, score * weight);
            }
            visit(member, joined)
        });
    }

    fn build(&self, context: &Context<'_, '_>, operation: Operation) -> SortedSet {
        let mut result = SortedSet::default();
        let (limits, backing) = (context.sorted_set_limits(), context.engine.keyspace.backing());
        let mut set = SortedSetMut::new(&mut result, limits, backing);
        // Large at first, as in Valkey: the compact form does not know −0, and what is too much for it on the way may
        // be little in the end.
        set.announce(usize::MAX, 0);
        match operation {
            Operation::Union => {
                for (source, weight) in self.by_size(context) {
                    source.each(|member, score| {
                        let score = number_or_zero(weight * score);
                        set.update(member, |old| {
                            Some(old.map_or(score, |old| self.aggregate.join(old, score)))
                        });
                        true
                    });
                }
            }
            Operation::Inter => self.common(context, |member, score| {
                set.add(member, score);
                true
            }),
            Operation::Diff => {
                let sources = self.sources(context);
                if let Some(((first, _), others)) = sources.split_first() {
                    first.each(|member, score| {
                        if others.iter().all(|(other, _)| other.score(member).is_none()) {
                            set.add(member, score);
                        }
                        true
                    });
                }
            }
            Operation::Card => {}
        }
        result
    }
}

fn zunion(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    show(context, args, sink, Operation::Union)
}

fn zinter(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    show(context, args, sink, Operation::Inter)
}

fn zdiff(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    show(context, args, sink, Operation::Diff)
}

fn show(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    operation: Operation,
) -> Result {
    let request = Request::parse(context, args, 1, operation)?;
    let result = request.build(context, operation);
    let set = result.view();
    if request.with_scores {
        sink.pairs(set.len())
    } else {
        sink.array(set.len())
    }
    for element in set.iter(0..set.len()) {
        if request.with_scores {
            sink.pair();
        }
        sink.bulk(element.member);
        if request.with_scores {
            sink.double(element.score);
        }
    }
    Ok(())
}

fn zunionstore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    store(context, args, sink, (Operation::Union, "zunionstore"))
}

fn zinterstore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    store(context, args, sink, (Operation::Inter, "zinterstore"))
}

fn zdiffstore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    store(context, args, sink, (Operation::Diff, "zdiffstore"))
}

fn store(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    (operation, event): (Operation, &str),
) -> Result {
    let request = Request::parse(context, args, 2, operation)?;
    let mut result = request.build(context, operation);
    let (limits, backing) = (context.sorted_set_limits(), context.engine.keyspace.backing());
    SortedSetMut::new(&mut result, limits, backing).settle();
    let target = context.key(args, 1);
    sink.count(result.view().len());
    context.store(&target, (notify::ZSET, event), Object::SortedSet(result))?;
    Ok(())
}

fn zintercard(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let request = Request::parse(context, args, 1, Operation::Card)?;
    let mut found = 0;
    request.common(context, |_, _| {
        found += 1;
        found != request.limit
    });
    sink.count(found);
    Ok(())
}
