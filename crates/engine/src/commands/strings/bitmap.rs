//! Owns: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP. Does not own: BITFIELD (`super::bitfield`).
//!
//! Bit 0 is the highest bit of the first byte; a string goes on with zeros behind its end.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::Relaxed;
use weft_store::{Digits, Expiry, INLINE_BYTES_MAX, Key, NewValue, SharedBytes};

use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("SETBIT", Scope::Keys, setbit),
    ("GETBIT", Scope::Keys, getbit),
    ("BITCOUNT", Scope::Keys, bitcount),
    ("BITPOS", Scope::Keys, bitpos),
    ("BITOP", Scope::Keys, bitop),
];

/// Shows a string's bytes, or nothing where the key is missing.
pub(crate) fn with_string<R>(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    show: impl FnOnce(Option<&[u8]>) -> R,
) -> Result<R> {
    let (shard, mut op) = context.shard(key)?;
    let Some(value) = shard.get(&mut op, key) else { return Ok(show(None)) };
    let mut digits = Digits::default();
    let bytes = value.as_bytes(&mut digits).ok_or(ErrorCode::WrongType)?;
    Ok(show(Some(bytes)))
}

/// A place of a bit: `text` is an integer, below the length that a string may have. With `bits` also `#n`, the place of
/// the n-th field of so many bits.
pub(crate) fn offset(context: &Context<'_, '_>, text: &[u8], bits: Option<u32>) -> Result<u64> {
    let (text, factor) = match (text, bits) {
        ([b'#', rest @ ..], Some(bits)) => (rest, i64::from(bits)),
        _ => (text, 1),
    };
    let bytes_max = context.engine.settings.string_bytes_max.load(Relaxed) as u64;
    weft_store::parse_int(text)
        .and_then(|value| value.checked_mul(factor))
        .and_then(|value| u64::try_from(value).ok())
        .filter(|value| value >> 3 < bytes_max)
        .ok_or_else(|| Error::err("bit offset is not an integer or out of range"))
}

/// The byte of a bit, and the bit within it.
const fn place(offset: u64) -> (usize, u8) {
    ((offset >> 3) as usize, 0x80 >> (offset & 7))
}

fn setbit(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (at, mask) = place(offset(context, args.bytes(2), None)?);
    let on = args.int_in_said(3, 0..=1, "bit is not an integer or out of range")? == 1;
    let key = context.key(args, 1);
    let (old, grows) = with_string(context, &key, |bytes| {
        let byte = bytes.and_then(|bytes| bytes.get(at));
        (byte.copied().unwrap_or(0), byte.is_none())
    })?;
    let was = old & mask != 0;
    if grows || was != on {
        let new = if on { old | mask } else { old & !mask };
        let (shard, mut op) = context.shard(&key)?;
        shard.set_range(&mut op, &key, at, &[new])?;
        context.notify(notify::STRING, "setbit", &key);
    }
    sink.int(i64::from(was));
    Ok(())
}

fn getbit(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let (at, mask) = place(offset(context, args.bytes(2), None)?);
    let key = context.key(args, 1);
    let byte = with_string(context, &key, |bytes| bytes.and_then(|bytes| bytes.get(at)).copied())?;
    sink.int(i64::from(byte.unwrap_or(0) & mask != 0));
    Ok(())
}

/// `start [end [BIT | BYTE]]`.
struct Span {
    start: i64,
    end: Option<i64>,
    in_bits: bool,
}

impl Span {
    /// Reads it from argument `at` on; nothing where the arguments end before.
    fn parse(args: &Args<'_>, at: usize) -> Result<Option<Self>> {
        if args.len() == at {
            return Ok(None);
        }
        if args.len() > at + 3 {
            return Err(ErrorCode::Syntax.into());
        }
        let start = args.int(at)?;
        let in_bits = match args.len() == at + 3 {
            true if args.is(at + 2, "BIT") => true,
            true if !args.is(at + 2, "BYTE") => return Err(ErrorCode::Syntax.into()),
            _ => false,
        };
        let end = if args.len() > at + 1 { Some(args.int(at + 1)?) } else { None };
        Ok(Some(Self { start, end, in_bits }))
    }

    /// The bits of a string of `len` bytes that are meant, if there are any. Negative places count from the end.
    fn bits(&self, len: usize) -> Option<RangeInclusive<usize>> {
        let total = if self.in_bits { len as i64 * 8 } else { len as i64 };
        let from_end = |place: i64| if place < 0 { (total + place).max(0) } else { place };
        let start = from_end(self.start);
        let end = from_end(self.end.unwrap_or(total - 1)).min(total - 1);
        if start > end {
            return None;
        }
        let (start, end) = (start as usize, end as usize);
        Some(if self.in_bits { start..=end } else { start * 8..=end * 8 + 7 })
    }
}

/// The bytes that hold a range of bits, and masks of the bits that count in the first and the last of them.
fn cut<'b>(bytes: &'b [u8], bits: &RangeInclusive<usize>) -> (&'b [u8], u8, u8) {
    let (start, end) = (*bits.start(), *bits.end());
    (&bytes[start / 8..=end / 8], 0xff >> (start % 8), 0xff << (7 - end % 8))
}

/// The set bits of a string: 8 bytes at a time.
fn count_ones(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    whole + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

fn bitcount(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let span = Span::parse(args, 2)?;
    let key = context.key(args, 1);
    let count = with_string(context, &key, |bytes| {
        let bytes = bytes.unwrap_or_default();
        let Some(span) = &span else { return count_ones(bytes) };
        // Valkey calls a range of two places from the end empty before it looks at the length.
        if span.start < 0 && span.end.is_some_and(|end| end < 0 && span.start > end) {
            return 0;
        }
        let Some(bits) = span.bits(bytes.len()) else { return 0 };
        let (bytes, first, last) = cut(bytes, &bits);
        let outside = bytes[0] & !first;
        let behind = bytes[bytes.len() - 1] & !last;
        count_ones(bytes) - u64::from(outside.count_ones()) - u64::from(behind.count_ones())
    })?;
    sink.int(count as i64);
    Ok(())
}

fn bitpos(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let bit = match args.int(2)? {
        0 => false,
        1 => true,
        _ => return Err(Error::err("The bit argument must be 1 or 0.")),
    };
    let span = Span::parse(args, 3)?;
    let key = context.key(args, 1);
    let found = with_string(context, &key, |bytes| {
        let Some(bytes) = bytes else { return if bit { -1 } else { 0 } };
        let whole = Span { start: 0, end: None, in_bits: false };
        let span = span.as_ref().unwrap_or(&whole);
        let Some(bits) = span.bits(bytes.len()) else { return -1 };
        match find(bytes, &bits, bit) {
            Some(place) => place as i64,
            // Behind a string whose end was not named there are zeros.
            None if !bit && span.end.is_none() => bytes.len() as i64 * 8,
            None => -1,
        }
    })?;
    sink.int(found);
    Ok(())
}

/// The first bit of a value within a range of bits.
fn find(bytes: &[u8], bits: &RangeInclusive<usize>, bit: bool) -> Option<usize> {
    let (cut, first, last) = cut(bytes, bits);
    let base = bits.start() / 8;
    // Bits outside the range are made what is not looked for.
    let flip = if bit { 0 } else { 0xff };
    let at_place = |at: usize| {
        let edge = if at == 0 { first } else { 0xff } & if at + 1 == cut.len() { last } else { 0xff };
        (cut[at] ^ flip) & edge
    };
    let skip = 8 * usize::from(at_place(0) == 0);
    let passed = if skip > 0 && cut.len() > 9 {
        let (words, _) = cut[1..cut.len() - 1].as_chunks::<8>();
        let none = [flip; 8];
        1 + 8 * words.iter().take_while(|word| **word == none).count()
    } else {
        0
    };
    let at = (passed..cut.len()).find(|&at| at_place(at) != 0)?;
    Some((base + at) * 8 + at_place(at).leading_zeros() as usize)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
}

impl Operation {
    /// Takes another string into a result that is at least as long; what is missing counts as zeros.
    fn apply(self, result: &mut [u8], other: &[u8]) {
        let (both, behind) = result.split_at_mut(other.len());
        let pairs = both.iter_mut().zip(other);
        match self {
            Self::And => {
                pairs.for_each(|(byte, other)| *byte &= other);
                behind.fill(0);
            }
            Self::Or => pairs.for_each(|(byte, other)| *byte |= other),
            Self::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
            Self::Not => {}
        }
    }
}

fn bitop(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let operation = match args.bytes(1).to_ascii_uppercase().as_slice() {
        b"AND" => Operation::And,
        b"OR" => Operation::Or,
        b"XOR" => Operation::Xor,
        b"NOT" => Operation::Not,
        _ => return Err(ErrorCode::Syntax.into()),
    };
    if operation == Operation::Not && args.len() != 4 {
        return Err(Error::err("BITOP NOT must be called with a single source key."));
    }
    let mut result: Vec<u8> = Vec::new();
    for (index, name) in args.rest(3).enumerate() {
        let key = context.key_of(name);
        with_string(context, &key, |bytes| {
            let bytes = bytes.unwrap_or_default();
            if index == 0 {
                result.extend_from_slice(bytes);
            } else {
                result.resize(result.len().max(bytes.len()), 0);
                operation.apply(&mut result, bytes);
            }
        })?;
    }
    if operation == Operation::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let (key, len) = (context.key(args, 2), result.len());
    if len == 0 {
        context.delete(&key)?;
    } else {
        put_bytes(context, &key, result, Expiry::None)?;
        context.notify(notify::STRING, "set", &key);
    }
    sink.count(len);
    Ok(())
}

/// Sets a string that is no number, without copying a long one.
pub(crate) fn put_bytes(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    bytes: Vec<u8>,
    expiry: Expiry,
) -> Result {
    let (shard, mut op) = context.shard(key)?;
    let garbage = if bytes.len() > INLINE_BYTES_MAX {
        shard.set(&mut op, key, NewValue::Shared(SharedBytes::new(bytes)), expiry).0
    } else {
        shard.set(&mut op, key, NewValue::Bytes(&bytes), expiry).0
    };
    context.discard(garbage);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_store::{Rng, XorShift};

    fn bit_of(bytes: &[u8], at: usize) -> bool {
        bytes[at / 8] & (0x80 >> (at % 8)) != 0
    }

    #[test]
    fn finds_and_counts_like_a_walk_over_bits() {
        println!("seed 11");
        let mut rng = XorShift::new(11);
        for _ in 0..4000 {
            let len = 1 + rng.below(40) as usize;
            let fill = [0, 0xff, 0x10, 0xfe][rng.below(4) as usize];
            let mut bytes = vec![fill; len];
            if rng.below(2) == 0 {
                let at = rng.below(len as u32) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
            let (one, two) = (rng.below(len as u32 * 8) as usize, rng.below(len as u32 * 8) as usize);
            let bits = one.min(two)..=one.max(two);
            for bit in [false, true] {
                let expected = bits.clone().find(|&at| bit_of(&bytes, at) == bit);
                assert_eq!(find(&bytes, &bits, bit), expected, "{bytes:?} {bits:?} {bit}");
            }
            let expected = (0..len * 8).filter(|&at| bit_of(&bytes, at)).count() as u64;
            assert_eq!(count_ones(&bytes), expected);
        }
    }
}
