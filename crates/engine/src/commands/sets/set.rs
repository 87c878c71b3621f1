//! Owns: the set commands. Does not own: the structure (`weft_store::set`).

use std::ops::ControlFlow;
use weft_store::set::intersect;
use weft_store::{Changed, Key, Object, Set, SetLimits, SetMut, SetRef};

use crate::args::Args;
use crate::commands::common::collection::{
    NOT_POSITIVE, check_random, key_count, positive, random_count, scan_cursor, scan_nothing, scan_options,
};
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("SADD", Scope::Keys, sadd),
    ("SREM", Scope::Keys, srem),
    ("SMOVE", Scope::Keys, smove),
    ("SISMEMBER", Scope::Keys, sismember),
    ("SMISMEMBER", Scope::Keys, smismember),
    ("SCARD", Scope::Keys, scard),
    ("SPOP", Scope::Keys, spop),
    ("SRANDMEMBER", Scope::Keys, srandmember),
    ("SMEMBERS", Scope::Keys, smembers),
    ("SINTER", Scope::Keys, sinter),
    ("SINTERCARD", Scope::Keys, sintercard),
    ("SINTERSTORE", Scope::Keys, sinterstore),
    ("SUNION", Scope::Keys, sunion),
    ("SUNIONSTORE", Scope::Keys, sunionstore),
    ("SDIFF", Scope::Keys, sdiff),
    ("SDIFFSTORE", Scope::Keys, sdiffstore),
    ("SSCAN", Scope::Keys, sscan),
];

/// For what only takes members out: no set becomes larger, and any limits will do.
const NO_LIMIT_MET: SetLimits = SetLimits { ints_max: 0, entries_max: 0, value_bytes_max: 0 };

/// The set at a key, for reading.
fn read<'c>(context: &'c mut Context<'_, '_>, key: &Key<'_>) -> Result<Option<SetRef<'c>>> {
    let (shard, mut op) = context.shard(key)?;
    Ok(shard.get_set(&mut op, key)?)
}

fn sadd(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let limits = context.set_limits();
    let (shard, mut op) = context.shard(&key)?;
    let added = shard.change_set(&mut op, &key, true, limits, |set| {
        set.announce(args.bytes(2), args.len() - 2);
        let added = args.rest(2).filter(|member| set.add(member)).count();
        Changed { result: added, changed: added > 0 }
    })?;
    let added = added.unwrap_or(0);
    if added > 0 {
        context.notify(notify::SET, "sadd", &key);
    }
    sink.count(added);
    Ok(())
}

/// Removes a set's members. Returns how many were there.
fn remove<'a>(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    members: impl Iterator<Item = &'a [u8]>,
) -> Result<usize> {
    let (shard, mut op) = context.shard(key)?;
    let gone = shard.change_set(&mut op, key, false, NO_LIMIT_MET, |set| {
        let gone = members.filter(|member| set.remove(member)).count();
        Changed { changed: gone > 0, result: gone }
    })?;
    let gone = gone.unwrap_or(0);
    if gone > 0 {
        context.notify(notify::SET, "srem", key);
        context.notify_if_gone(key)?;
    }
    Ok(gone)
}

fn srem(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let gone = remove(context, &key, args.rest(2))?;
    sink.count(gone);
    Ok(())
}

fn smove(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (from, to, member) = (context.key(args, 1), context.key(args, 2), args.bytes(3));
    let (shard, mut op) = context.shard(&from)?;
    let Some(source) = shard.peek(&mut op, &from) else {
        sink.int(0);
        return Ok(());
    };
    let contains = source.as_set().ok_or(ErrorCode::WrongType)?.contains(member);
    let (shard, mut op) = context.shard(&to)?;
    if shard.peek(&mut op, &to).is_some_and(|value| value.as_set().is_none()) {
        return Err(ErrorCode::WrongType.into());
    }
    sink.int(contains.into());
    if !contains || from.bytes() == to.bytes() {
        return Ok(());
    }
    remove(context, &from, std::iter::once(member))?;
    let limits = context.set_limits();
    let (shard, mut op) = context.shard(&to)?;
    let added = shard.change_set(&mut op, &to, true, limits, |set| {
        if set.view().is_empty() {
            set.announce(member, 1);
        }
        let added = set.add(member);
        Changed { result: added, changed: added }
    })?;
    if added == Some(true) {
        context.notify(notify::SET, "sadd", &to);
    }
    Ok(())
}

fn sismember(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    sink.int(set.is_some_and(|set| set.contains(args.bytes(2))).into());
    Ok(())
}

fn smismember(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    sink.array(args.len() - 2);
    for member in args.rest(2) {
        sink.int(set.is_some_and(|set| set.contains(member)).into());
    }
    Ok(())
}

fn scard(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    sink.count(set.map_or(0, SetRef::len));
    Ok(())
}

fn spop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 3 {
        return Err(ErrorCode::Syntax.into());
    }
    let count = if args.len() == 3 { Some(positive(args, 2, NOT_POSITIVE)?) } else { None };
    let key = context.key(args, 1);
    let Some(count) = count else {
        if pop_some(context, &key, 1, sink)? == 0 {
            sink.null();
        }
        return Ok(());
    };
    let (shard, mut op) = context.shard(&key)?;
    let len = match shard.peek(&mut op, &key) {
        None => 0,
        Some(value) => value.as_set().ok_or(ErrorCode::WrongType)?.len(),
    };
    if len == 0 || count == 0 {
        sink.set(0);
    } else if count >= len {
        pop_all(context, &key, sink)?;
    } else {
        sink.set(count);
        pop_some(context, &key, count, sink)?;
    }
    Ok(())
}

/// SPOP of everything.
fn pop_all(context: &mut Context<'_, '_>, key: &Key<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (shard, mut op) = context.shard(key)?;
    if let Some(set) = shard.peek(&mut op, key).and_then(|value| value.as_set()) {
        sink.set(set.len());
        set.iter().for_each(|member| sink.bulk(&member));
    }
    let garbage = shard.remove(&mut op, key).unwrap_or_default();
    context.discard(garbage);
    context.notify(notify::SET, "spop", key);
    context.notify(notify::GENERIC, "del", key);
    Ok(())
}

/// Takes up to `count` members into the reply, one by one. Says how many there were.
fn pop_some(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    count: usize,
    sink: &mut ReplySink<'_>,
) -> Result<usize> {
    let popped = context.with_dice(|context, dice| {
        let (shard, mut op) = context.shard(key)?;
        let popped = shard.change_set(&mut op, key, false, NO_LIMIT_MET, |set| {
            let pop = |_: &usize| set.pop(dice, |member| sink.bulk(member)).is_some();
            let popped = (0..count).take_while(pop).count();
            Changed { result: popped, changed: popped > 0 }
        })?;
        Ok::<_, Error>(popped)
    })?;
    let popped = popped.unwrap_or(0);
    if popped > 0 {
        context.notify(notify::SET, "spop", key);
        context.notify_if_gone(key)?;
    }
    Ok(popped)
}

fn srandmember(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 3 {
        return Err(ErrorCode::Syntax.into());
    }
    let key = context.key(args, 1);
    let count = if args.len() == 3 { Some(random_count(args, "")?) } else { None };
    context.with_dice(|context, dice| {
        let set = read(context, &key)?.filter(|set| !set.is_empty());
        let Some((count, repeat, _)) = count else {
            match set.and_then(|set| set.random(dice)) {
                Some(member) => sink.bulk(&member),
                None => sink.null(),
            }
            return Ok(());
        };
        let Some(set) = set.filter(|_| count > 0) else {
            sink.array(0);
            return Ok(());
        };
        check_random(count, repeat)?;
        sink.array(if repeat { count } else { count.min(set.len()) });
        if repeat {
            set.random_each(count, dice, |member| sink.bulk(member));
        } else {
            set.random_distinct(count, dice, |member| sink.bulk(member));
        }
        Ok(())
    })
}

fn smembers(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    sink.set_of_bulks(set.map_or(0, SetRef::len), |out| {
        if let Some(set) = set {
            set.visit(|member| out.push(member));
        }
    });
    Ok(())
}

/// The keys of some arguments, all looked up: an error if one holds something else.
fn look_up<'k>(
    context: &mut Context<'_, '_>,
    args: &Args<'k>,
    places: std::ops::Range<usize>,
) -> Result<Vec<Key<'k>>> {
    let keys: Vec<Key<'k>> = places.map(|place| context.key(args, place)).collect();
    for key in &keys {
        read(context, key)?;
    }
    Ok(keys)
}

/// The sets of keys that were looked up; nothing for keys that are not there.
fn view<'c>(context: &'c Context<'_, '_>, keys: &[Key<'_>]) -> Vec<Option<SetRef<'c>>> {
    keys.iter().map(|key| context.view(key).and_then(|value| value.as_set())).collect()
}

/// The members that all sets have. Without one of the sets there are none.
fn intersection(context: &Context<'_, '_>, keys: &[Key<'_>], visit: impl FnMut(&[u8]) -> ControlFlow<()>) {
    let sets: Option<Vec<SetRef<'_>>> = view(context, keys).into_iter().collect();
    if let Some(sets) = sets {
        intersect(&sets, visit);
    }
}

fn sinter(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let keys = look_up(context, args, 1..args.len())?;
    let mut members = Vec::new();
    intersection(context, &keys, |member| {
        members.push(member.to_vec());
        ControlFlow::Continue(())
    });
    sink.set(members.len());
    members.iter().for_each(|member| sink.bulk(member));
    Ok(())
}

fn sintercard(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let count = key_count(args, 1)?;
    let mut limit = 0;
    let mut at = 2 + count;
    while at < args.len() {
        if !args.is(at, "LIMIT") || at + 1 == args.len() {
            return Err(ErrorCode::Syntax.into());
        }
        limit = positive(args, at + 1, "LIMIT can't be negative")?;
        at += 2;
    }
    let keys = look_up(context, args, 2..2 + count)?;
    let mut found = 0;
    intersection(context, &keys, |_| {
        found += 1;
        if found == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    sink.count(found);
    Ok(())
}

/// Builds a set outside the keyspace.
fn build(context: &Context<'_, '_>, fill: impl FnOnce(&mut SetMut<'_>)) -> Set {
    let mut set = Set::default();
    fill(&mut SetMut::new(&mut set, context.set_limits(), context.engine.keyspace.backing()));
    set
}

fn store(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    event: &str,
    result: Set,
) -> Result {
    let key = context.key(args, 1);
    sink.count(result.view().len());
    context.store(&key, (notify::SET, event), Object::Set(result))
}

fn sinterstore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let keys = look_up(context, args, 2..args.len())?;
    let smallest = view(context, &keys).into_iter().flatten().min_by_key(|set| set.len());
    let from_ints = smallest.is_some_and(SetRef::is_ints);
    let result = build(context, |set| {
        // The form that the result has follows from that of the smallest set.
        if !from_ints {
            set.announce(b"", 1);
        }
        intersection(context, &keys, |member| {
            set.add(member);
            ControlFlow::Continue(())
        });
        set.settle_ints();
    });
    store(context, args, sink, "sinterstore", result)
}

fn union(context: &Context<'_, '_>, keys: &[Key<'_>]) -> Set {
    build(context, |set| {
        for other in view(context, keys).into_iter().flatten() {
            other.iter().for_each(|member| {
                set.add(&member);
            });
        }
    })
}

fn show(sink: &mut ReplySink<'_>, result: &Set) {
    sink.set(result.view().len());
    result.view().iter().for_each(|member| sink.bulk(&member));
}

fn sunion(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let keys = look_up(context, args, 1..args.len())?;
    show(sink, &union(context, &keys));
    Ok(())
}

fn sunionstore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let keys = look_up(context, args, 2..args.len())?;
    let result = union(context, &keys);
    store(context, args, sink, "sunionstore", result)
}

/// The members of the first set that no other has: by looking each of them up, or, where the others are together so
/// small that this is less work, by taking their members out.
fn difference(context: &Context<'_, '_>, keys: &[Key<'_>]) -> Set {
    let sets = view(context, keys);
    let Some((Some(first), others)) = sets.split_first() else { return Set::default() };
    if keys[1..].iter().any(|key| key.bytes() == keys[0].bytes()) {
        return Set::default();
    }
    let mut others: Vec<SetRef<'_>> = others.iter().flatten().copied().collect();
    others.sort_by_key(|set| std::cmp::Reverse(set.len()));
    let look_ups = first.len().saturating_mul(others.len() + 1) / 2;
    let removals = others.iter().map(|set| set.len()).sum::<usize>() + first.len();
    build(context, |set| {
        let by_looking = look_ups <= removals;
        for member in first.iter() {
            if !by_looking || !others.iter().any(|other| other.contains(&member)) {
                set.add(&member);
            }
        }
        if !by_looking {
            for other in &others {
                other.iter().for_each(|member| {
                    set.remove(&member);
                });
            }
        }
    })
}

fn sdiff(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let keys = look_up(context, args, 1..args.len())?;
    show(sink, &difference(context, &keys));
    Ok(())
}

fn sdiffstore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let keys = look_up(context, args, 2..args.len())?;
    let result = difference(context, &keys);
    store(context, args, sink, "sdiffstore", result)
}

fn sscan(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let cursor = scan_cursor(args)?;
    let key = context.key(args, 1);
    let Some(set) = read(context, &key)? else {
        scan_nothing(sink);
        return Ok(());
    };
    let options = scan_options(args, "")?;
    let mut met: Vec<Vec<u8>> = Vec::new();
    let next = set.scan(cursor, options.count, |member| {
        if options.matches(member) {
            met.push(member.to_vec());
        }
    });
    sink.array(2);
    sink.bulk(next.to_string().as_bytes());
    sink.array(met.len());
    met.iter().for_each(|member| sink.bulk(member));
    Ok(())
}
