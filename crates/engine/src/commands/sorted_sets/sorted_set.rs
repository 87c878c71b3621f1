//! Owns: the commands of sorted sets about single members. Does not own: ranges (`sorted_set_range`), taking from the
//! ends (`sorted_set_pop`), several sets (`sorted_set_algebra`), the structure (`weft_store::sorted_set`).

use std::io::Write as _;

use weft_protocol::Arg;
use weft_store::{Changed, Key, SortedSetRef, parse_int};

use crate::args::Args;
use crate::commands::common::collection::{
    check_random, random_count, scan_cursor, scan_nothing, scan_options,
};
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("ZADD", Scope::Keys, zadd),
    ("ZINCRBY", Scope::Keys, zincrby),
    ("ZREM", Scope::Keys, zrem),
    ("ZCARD", Scope::Keys, zcard),
    ("ZSCORE", Scope::Keys, zscore),
    ("ZMSCORE", Scope::Keys, zmscore),
    ("ZRANK", Scope::Keys, zrank),
    ("ZREVRANK", Scope::Keys, zrevrank),
    ("ZRANDMEMBER", Scope::Keys, zrandmember),
    ("ZSCAN", Scope::Keys, zscan),
];

/// The sorted set at a key, for reading.
pub(crate) fn read<'c>(context: &'c mut Context<'_, '_>, key: &Key<'_>) -> Result<Option<SortedSetRef<'c>>> {
    let (shard, mut op) = context.shard(key)?;
    Ok(shard.get_sorted_set(&mut op, key)?)
}

/// The first integer of 18 digits.
const DIGITS_17: f64 = 1e17;

/// A score as a number's shortest text.
pub(crate) fn score_text(score: f64) -> Vec<u8> {
    let mut buffer = [0; weft_protocol::number::DOUBLE_TEXT_MAX];
    weft_protocol::number::double_text(score, &mut buffer).to_vec()
}

/// The options of ZADD.
#[derive(Clone, Copy, Default)]
pub(crate) struct Options {
    pub(crate) nx: bool,
    pub(crate) xx: bool,
    gt: bool,
    lt: bool,
    pub(crate) ch: bool,
    incr: bool,
}

impl Options {
    /// Reads them from argument 2 on. Returns them with the place of the first score.
    fn parse(args: &Args<'_>) -> (Self, usize) {
        let mut all = Self::default();
        // No option begins as nearly all scores do.
        let first = args.get(2);
        if let Some(Arg::Bytes([b'0'..=b'9' | b'-' | b'+' | b'.', ..]) | Arg::Double(_) | Arg::Int(_)) = first
        {
            return (all, 2);
        }
        for at in 2..args.len() {
            match () {
                () if args.is(at, "NX") => all.nx = true,
                () if args.is(at, "XX") => all.xx = true,
                () if args.is(at, "GT") => all.gt = true,
                () if args.is(at, "LT") => all.lt = true,
                () if args.is(at, "CH") => all.ch = true,
                () if args.is(at, "INCR") => all.incr = true,
                () => return (all, at),
            }
        }
        (all, args.len())
    }
    fn check(self, pairs: usize) -> Result {
        if self.nx && self.xx {
            return Err(Error::err("XX and NX options at the same time are not compatible"));
        }
        if self.nx && (self.gt || self.lt) || self.gt && self.lt {
            return Err(Error::err("GT, LT, and/or NX options at the same time are not compatible"));
        }
        if self.incr && pairs > 1 {
            return Err(Error::err("INCR option supports a single increment-element pair"));
        }
        Ok(())
    }
    /// The score that a member gets; none if it stays as it is. An error if it would be no number.
    fn choose(self, old: Option<f64>, score: f64) -> Result<Option<f64>, ()> {
        let Some(old) = old else { return Ok((!self.xx).then_some(score)) };
        if self.nx {
            return Ok(None);
        }
        let score = if self.incr { old + score } else { score };
        if score.is_nan() {
            return Err(());
        }
        Ok((!(self.lt && score >= old || self.gt && score <= old)).then_some(score))
    }
}

/// What ZADD has done.
#[derive(Default)]
struct Added {
    added: usize,
    updated: usize,
    /// The score of the last member that was not left alone.
    score: Option<f64>,
    no_number: bool,
}

fn zadd(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (options, first) = Options::parse(args);
    let left = args.len() - first;
    if left == 0 || !left.is_multiple_of(2) {
        return Err(ErrorCode::Syntax.into());
    }
    options.check(left / 2)?;
    if left == 2 {
        let pair = (args.bytes(first + 1), args.double(first)?);
        return add(context, args, sink, (options, &[pair]));
    }
    let pairs = pairs(args, first)?;
    add(context, args, sink, (options, &pairs))
}

fn zincrby(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    // Valkey reads ZADD's options here too, and finds no pair behind them.
    if ["NX", "XX", "GT", "LT", "CH", "INCR"].iter().any(|name| args.is(2, name)) {
        return Err(ErrorCode::Syntax.into());
    }
    let pairs = pairs(args, 2)?;
    add(context, args, sink, (Options { incr: true, ..Options::default() }, &pairs))
}

/// Members with scores, from the score at `first` on.
fn pairs<'a>(args: &Args<'a>, first: usize) -> Result<Vec<(&'a [u8], f64)>> {
    (first..args.len()).step_by(2).map(|at| Ok((args.bytes(at + 1), args.double(at)?))).collect()
}

/// ZADD, ZINCRBY and GEOADD, on the key in argument 1.
pub(crate) fn add(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    (options, pairs): (Options, &[(&[u8], f64)]),
) -> Result {
    let longest = pairs.iter().map(|(member, _)| member.len()).max().unwrap_or(0);
    let key = context.key(args, 1);
    let limits = context.sorted_set_limits();
    let (shard, mut op) = context.shard(&key)?;
    let done = shard.change_sorted_set(&mut op, &key, !options.xx, limits, |set| {
        set.announce(pairs.len(), longest);
        let mut done = Added::default();
        for &(member, score) in pairs {
            // What INCR answers: the sum, also where it equals the old score (−0 and 0 do).
            let mut chosen = None;
            let (old, new) = set.update(member, |old| {
                let choice = options.choose(old, score);
                done.no_number |= choice.is_err();
                chosen = choice.ok().flatten();
                // An equal score leaves the old one, −0 where 0 was given too.
                chosen.filter(|&score| old != Some(score))
            });
            if done.no_number {
                break;
            }
            done.score = chosen.or(done.score);
            done.added += usize::from(old.is_none() && new.is_some());
            done.updated += usize::from(old.is_some() && old != new);
        }
        Changed { changed: done.added + done.updated > 0, result: done }
    })?;
    let done = done.unwrap_or_default();
    if done.added + done.updated > 0 {
        context.notify(notify::ZSET, if options.incr { "zincr" } else { "zadd" }, &key);
    }
    if done.no_number {
        return Err(Error::err("resulting score is not a number (NaN)"));
    }
    match done.score {
        Some(score) if options.incr => sink.double(score),
        None if options.incr => sink.null(),
        _ => sink.count(if options.ch { done.added + done.updated } else { done.added }),
    }
    Ok(())
}

fn zrem(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let limits = context.sorted_set_limits();
    let (shard, mut op) = context.shard(&key)?;
    let gone = shard.change_sorted_set(&mut op, &key, false, limits, |set| {
        let gone = args.rest(2).filter(|member| set.remove(member).is_some()).count();
        Changed { changed: gone > 0, result: gone }
    })?;
    let gone = gone.unwrap_or(0);
    if gone > 0 {
        removed(context, &key, "zrem")?;
    }
    sink.count(gone);
    Ok(())
}

/// Tells of members that were removed, and of the key if it went with them.
pub(crate) fn removed(context: &mut Context<'_, '_>, key: &Key<'_>, event: &str) -> Result {
    context.notify(notify::ZSET, event, key);
    context.notify_if_gone(key)
}

fn zcard(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    sink.count(set.map_or(0, SortedSetRef::len));
    Ok(())
}

fn zscore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    match read(context, &key)?.and_then(|set| set.score(args.bytes(2))) {
        Some(score) => sink.double(score),
        None => sink.null(),
    }
    Ok(())
}

fn zmscore(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    sink.array(args.len() - 2);
    for member in args.rest(2) {
        match set.and_then(|set| set.score(member)) {
            Some(score) => sink.double(score),
            None => sink.null(),
        }
    }
    Ok(())
}

fn zrank(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    rank(context, args, sink, |rank, _| rank)
}

fn zrevrank(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    rank(context, args, sink, |rank, len| len - 1 - rank)
}

fn rank(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    show: impl Fn(usize, usize) -> usize,
) -> Result {
    if args.len() > 4 {
        return Err(Error::arity(args.spec));
    }
    let with_score = args.len() > 3;
    if with_score && !args.is(3, "WITHSCORE") {
        return Err(ErrorCode::Syntax.into());
    }
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    let found =
        set.and_then(|set| set.rank(args.bytes(2)).map(|(rank, score)| (show(rank, set.len()), score)));
    match found {
        Some((rank, score)) => {
            if with_score {
                sink.array(2);
            }
            sink.count(rank);
            if with_score {
                sink.double(score);
            }
        }
        None if with_score => sink.null_array(),
        None => sink.null(),
    }
    Ok(())
}

fn zrandmember(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    if args.len() == 2 {
        return context.with_dice(|context, dice| {
            match read(context, &key)?.filter(|set| !set.is_empty()) {
                Some(set) => set.random_each(1, dice, |element| sink.bulk(element.member)),
                None => sink.null(),
            }
            Ok(())
        });
    }
    let (count, repeat, with_scores) = random_count(args, "WITHSCORES")?;
    context.with_dice(|context, dice| {
        let set = read(context, &key)?;
        let Some(set) = set.filter(|set| count > 0 && !set.is_empty()) else {
            sink.array(0);
            return Ok(());
        };
        check_random(count, repeat)?;
        let len = if repeat { count } else { count.min(set.len()) };
        if with_scores {
            sink.pairs(len)
        } else {
            sink.array(len)
        }
        let show = |element: weft_store::Scored<'_>| {
            if with_scores {
                sink.pair();
            }
            sink.bulk(element.member);
            if with_scores {
                sink.double(element.score);
            }
        };
        if repeat {
            set.random_each(count, dice, show)
        } else {
            set.random_distinct(count, dice, show)
        }
        Ok(())
    })
}

fn zscan(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let cursor = scan_cursor(args)?;
    let key = context.key(args, 1);
    let Some(set) = read(context, &key)? else {
        scan_nothing(sink);
        return Ok(());
    };
    let options = scan_options(args, "NOSCORES")?;
    // Valkey writes the scores of large sets with 17 digits, those of small ones as they were stored.
    let exact = set.encoding() == "listpack";
    let (mut met, mut text) = (Vec::new(), Vec::new());
    let next = set.scan(cursor, options.count, |element| {
        if options.matches(element.member) {
            met.push(element);
        }
    });
    sink.array(2);
    sink.bulk(next.to_string().as_bytes());
    sink.array(if options.names_only { met.len() } else { 2 * met.len() });
    for element in met {
        sink.bulk(element.member);
        if !options.names_only {
            if exact {
                sink.bulk_double(element.score);
                continue;
            }
            text.clear();
            write_text_17(element.score, &mut text);
            sink.bulk(&text);
        }
    }
    Ok(())
}

/// Appends a score with 17 significant digits, as C's `%.17g` writes it. Each of a whole scan is written so.
fn write_text_17(score: f64, text: &mut Vec<u8>) {
    if score.is_infinite() || score == 0.0 {
        text.extend_from_slice(&score_text(score));
        return;
    }
    // What has no fraction and no more digits is written as it is.
    if score.abs() < DIGITS_17 && score.trunc() == score {
        text.extend_from_slice(itoa::Buffer::new().format(score as i64).as_bytes());
        return;
    }
    // `-1.2345000000000000e-5`: the digits are the same where it is written without an exponent.
    let mut scratch = [0; weft_protocol::number::DOUBLE_TEXT_MAX];
    let mut room = &mut scratch[..];
    let fits = write!(room, "{score:.16e}");
    debug_assert!(fits.is_ok(), "a sign, 17 digits, a point, and an exponent of five at most");
    let left = room.len();
    let written = &scratch[..scratch.len() - left];
    let Some(e) = written.iter().rposition(|byte| *byte == b'e') else { return };
    let exponent = parse_int(&written[e + 1..]).and_then(|value| i32::try_from(value).ok()).unwrap_or(0);
    let (sign, mantissa) = written[..e].split_at(usize::from(score < 0.0));
    let mut digits = [b'0'; 17];
    digits[0] = mantissa[0];
    digits[1..].copy_from_slice(&mantissa[2..]);
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    let digits = &digits[..digits.len() - zeros];
    text.extend_from_slice(sign);
    match usize::try_from(exponent) {
        Ok(places @ 0..17) => {
            let whole = digits.len().min(places + 1);
            text.extend_from_slice(&digits[..whole]);
            text.resize(text.len() + places + 1 - whole, b'0');
            if whole < digits.len() {
                text.push(b'.');
                text.extend_from_slice(&digits[whole..]);
            }
        }
        Err(_) if exponent >= -4 => {
            text.extend_from_slice(b"0.");
            text.resize(text.len() + exponent.unsigned_abs() as usize - 1, b'0');
            text.extend_from_slice(digits);
        }
        _ => {
            text.push(digits[0]);
            if digits.len() > 1 {
                text.push(b'.');
                text.extend_from_slice(&digits[1..]);
            }
            text.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
            let exponent = exponent.unsigned_abs();
            if exponent < 10 {
                text.push(b'0');
            }
            text.extend_from_slice(itoa::Buffer::new().format(exponent).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_with_17_digits() {
        for (score, expected) in [
            (0.1, "0.10000000000000001"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1e300, "1.0000000000000001e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (f64::INFINITY, "inf"),
            (0.0, "0"),
            (123_456.789, "123456.789"),
        ] {
            assert_eq!(text_17(score), expected);
        }
    }

    fn text_17(score: f64) -> String {
        let mut text = Vec::new();
        write_text_17(score, &mut text);
        String::from_utf8(text).unwrap()
    }

    /// With each number of places that a number may have, as they are written one by one.
    #[test]
    fn seventeen_digits_of_any_score() {
        let plain = |score: f64| {
            let text = format!("{score:.16e}");
            let (digits, exponent) = text.split_once('e').unwrap();
            let exponent: i32 = exponent.parse().unwrap();
            let trim = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
            if !(-4..17).contains(&exponent) {
                let sign = if exponent < 0 { '-' } else { '+' };
                return format!("{}e{sign}{:02}", trim(digits), exponent.unsigned_abs());
            }
            let places = usize::try_from(16 - exponent).unwrap();
            let text = format!("{score:.places$}");
            if places > 0 { trim(&text) } else { text }
        };
        let mut bits = 17_u64;
        for at in 0..100_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let any = f64::from_bits(bits);
            let score = match at % 4 {
                0 => any,
                1 => (bits >> 40) as f64 / 100.0,
                2 => (bits >> (at % 60)) as f64,
                _ => (bits as i64) as f64 * 10_f64.powi(at % 40 - 30),
            };
            if score.is_finite() && score != 0.0 {
                assert_eq!(text_17(score), plain(score), "{score:e}");
            }
        }
    }
}
