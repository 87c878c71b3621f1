//! Owns: BITFIELD and BITFIELD_RO. Does not own: single bits (`super::bitmap`).

use weft_store::Key;

use super::bitmap::{offset, with_string};
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("BITFIELD", Scope::Keys, |context, args, sink| bitfield(context, args, sink, false)),
    ("BITFIELD_RO", Scope::Keys, |context, args, sink| bitfield(context, args, sink, true)),
];

/// A field of 64 bits at any bit touches so many bytes.
const WINDOW_BYTES: usize = 9;

/// `i1` to `i64`, `u1` to `u63`.
#[derive(Clone, Copy)]
struct Width {
    signed: bool,
    bits: u32,
}

impl Width {
    fn parse(text: &[u8]) -> Result<Self> {
        let (signed, digits) = match text {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => (false, &b""[..]),
        };
        let max = if signed { 64 } else { 63 };
        match weft_store::parse_int(digits) {
            Some(bits) if (1..=max).contains(&bits) => Ok(Self { signed, bits: bits as u32 }),
            _ => Err(Error::err(
                "Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
            )),
        }
    }
    /// The smallest and the largest value.
    const fn bounds(self) -> (i128, i128) {
        if self.signed {
            (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        } else {
            (0, (1 << self.bits) - 1)
        }
    }
    /// The value that the low bits of a number are.
    const fn value_of(self, raw: u128) -> i128 {
        let raw = raw & ((1 << self.bits) - 1);
        if self.signed && raw >> (self.bits - 1) == 1 { raw as i128 - (1 << self.bits) } else { raw as i128 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Get,
    Set(i64),
    Increment(i64),
}

#[derive(Clone, Copy)]
struct Operation {
    kind: Kind,
    width: Width,
    offset: u64,
    overflow: Overflow,
}

impl Operation {
    const fn wraps_in_test(&self, room: i128) -> bool {
        matches!(self.kind, Kind::Set(_)) && self.width.bits < 64 && room > i64::MAX as i128
    }
    /// The value to be stored, and the one to be answered; nothing when it must not overflow and would.
    fn outcome(&self, old: i128) -> Option<(i128, i128)> {
        let wanted = match self.kind {
            Kind::Get => return Some((old, old)),
            // A negative number is a large one to an unsigned field.
            Kind::Set(value) if !self.width.signed => i128::from(value as u64),
            Kind::Set(value) => i128::from(value),
            Kind::Increment(by) => old + i128::from(by),
        };
        let (min, max) = self.width.bounds();
        let new = if (min..=max).contains(&wanted) {
            wanted
        } else {
            match self.overflow {
                Overflow::Fail => return None,
                // Valkey's test for the upper bound subtracts in 64 bits: SET of a number so low wraps around there.
                Overflow::Saturate if self.wraps_in_test(max - wanted) => max,
                Overflow::Saturate => wanted.clamp(min, max),
                Overflow::Wrap => self.width.value_of(wanted as u128),
            }
        };
        Some((new, if matches!(self.kind, Kind::Set(_)) { old } else { new }))
    }
}

fn parse(context: &Context<'_, '_>, args: &Args<'_>) -> Result<Vec<Operation>> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while at < args.len() {
        let more = args.len() - at - 1;
        let takes_value = match () {
            () if args.is(at, "GET") && more >= 2 => false,
            () if (args.is(at, "SET") || args.is(at, "INCRBY")) && more >= 3 => true,
            () if args.is(at, "OVERFLOW") && more >= 1 => {
                overflow = match args.bytes(at + 1).to_ascii_uppercase().as_slice() {
                    b"WRAP" => Overflow::Wrap,
                    b"SAT" => Overflow::Saturate,
                    b"FAIL" => Overflow::Fail,
                    _ => return Err(Error::err("Invalid OVERFLOW type specified")),
                };
                at += 2;
                continue;
            }
            () => return Err(ErrorCode::Syntax.into()),
        };
        let width = Width::parse(args.bytes(at + 1))?;
        let offset = offset(context, args.bytes(at + 2), Some(width.bits))?;
        let kind = match takes_value {
            false => Kind::Get,
            true if args.is(at, "SET") => Kind::Set(args.int(at + 3)?),
            true => Kind::Increment(args.int(at + 3)?),
        };
        operations.push(Operation { kind, width, offset, overflow });
        at += if takes_value { 4 } else { 3 };
    }
    Ok(operations)
}

/// The bytes from the one on that a field begins in, with zeros behind the end of the string.
fn window(bytes: &[u8], at: usize) -> [u8; WINDOW_BYTES] {
    let mut window = [0; WINDOW_BYTES];
    let there = bytes.get(at..).unwrap_or_default();
    let len = there.len().min(WINDOW_BYTES);
    window[..len].copy_from_slice(&there[..len]);
    window
}

/// A window as one number, and how far its field is from the low end.
fn number(window: [u8; WINDOW_BYTES], operation: &Operation) -> (u128, u32) {
    let mut all = [0; 16];
    all[16 - WINDOW_BYTES..].copy_from_slice(&window);
    let behind = WINDOW_BYTES as u32 * 8 - (operation.offset & 7) as u32 - operation.width.bits;
    (u128::from_be_bytes(all), behind)
}

fn bitfield(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    read_only: bool,
) -> Result {
    let operations = parse(context, args)?;
    let key = context.key(args, 1);
    let writes = operations.iter().filter(|operation| operation.kind != Kind::Get);
    let last_bit = writes.map(|operation| operation.offset + u64::from(operation.width.bits) - 1).max();
    if last_bit.is_some() && read_only {
        return Err(Error::err("BITFIELD_RO only supports the GET subcommand"));
    }
    let len = with_string(context, &key, |bytes| bytes.map_or(0, <[u8]>::len))?;
    let mut changed = false;
    let needed = last_bit.map_or(0, |bit| (bit >> 3) as usize + 1);
    let grows = needed > len;
    if grows {
        let (shard, mut op) = context.shard(&key)?;
        shard.set_range(&mut op, &key, needed - 1, &[0])?;
    }
    sink.array(operations.len());
    for operation in &operations {
        match run(context, &key, operation, grows)? {
            Some((answer, differs)) => {
                sink.int(answer);
                changed |= operation.kind != Kind::Get && (grows || differs);
            }
            None => sink.null(),
        }
    }
    if changed {
        context.notify(notify::STRING, "setbit", &key);
    }
    Ok(())
}

/// Runs one operation: what it answers, and whether the stored value is another now. `counted`: the command has written
/// already.
fn run(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    operation: &Operation,
    counted: bool,
) -> Result<Option<(i64, bool)>> {
    let at = (operation.offset >> 3) as usize;
    let window = with_string(context, key, |bytes| window(bytes.unwrap_or_default(), at))?;
    let (number, behind) = number(window, operation);
    let old = operation.width.value_of(number >> behind);
    let Some((new, answer)) = operation.outcome(old) else { return Ok(None) };
    if new != old {
        let mask = ((1_u128 << operation.width.bits) - 1) << behind;
        let changed = number & !mask | (new as u128) << behind & mask;
        let bytes = changed.to_be_bytes();
        // Only bytes that the field touches: those behind it may not be in the string.
        let touched = (operation.offset & 7) as usize + operation.width.bits as usize;
        let from = 16 - WINDOW_BYTES;
        let (shard, mut op) = context.shard(key)?;
        let bytes = &bytes[from..from + touched.div_ceil(8)];
        if counted {
            shard.write_more(&mut op, key, at, bytes)?;
        } else {
            shard.set_range(&mut op, key, at, bytes)?;
        }
    }
    Ok(Some((answer as i64, new != old)))
}
