//! Walking the payload of a frame that is there as a whole, from the table: layouts of core commands and of modules
//! that have no straight code of their own, and those that have with their options given.
//!
//! Owns no rule: what is here is a shorter way to what [`super::walk`] does, without what that asks at each step for
//! the sake of frames that come in pieces. Where something is missing or odd it stops between two fields, and the walk
//! goes on from there, waits, or names the error.

use super::module::{self, Long};
use super::request::ROOMY_ARGUMENTS;
use super::walk::{Walk, check_bits};
use crate::request::ArgVisitor;
use crate::table::{self, CommandId, Field, Kind, Layout, List, Options};

/// Arguments of a frame: fewer than limits allow that have straight code at all, with all that may follow a list.
const ARGUMENTS_MAX: usize = ROOMY_ARGUMENTS as usize - BEHIND_A_LIST_MAX;
const BEHIND_A_LIST_MAX: usize = 256;

/// The fields of a command's frame at the start of `visible`, from `start` on; nothing when nothing was handed out.
#[inline(never)]
pub(super) fn command(
    id: CommandId,
    start: usize,
    visible: &[u8],
    args: &mut impl ArgVisitor,
) -> Option<Long> {
    match id.spec().layout {
        Layout::Args => module::arguments(visible, start, false, args),
        Layout::Fields { fields, .. } => {
            let rest = visible.get(start..)?;
            let long = Ahead { visible, rest, arguments: 1, args }.fields(fields);
            let is_nothing = matches!(&long, Long::Stopped(walk) if !walk.keeps_its_place());
            (!is_nothing).then_some(long)
        }
    }
}

/// The options at `at`, of which some are given, that end a core frame: field `number` of its command, when all fields
/// before it, an argument each, have been handed out.
#[inline(never)]
pub(super) fn last_options(
    (opcode, number, at): (u16, u8, usize),
    visible: &[u8],
    args: &mut impl ArgVisitor,
) -> Long {
    let before = Walk::before(number, at, 1 + u32::from(number));
    let field = table::by_opcode(opcode).and_then(|id| match id.spec().layout {
        Layout::Fields { fields, .. } => fields.get(usize::from(number)),
        Layout::Args => None,
    });
    let given = visible.get(at..).and_then(|rest| rest.split_first());
    let (Some(Field { kind: Kind::Options(options), .. }), Some((bits, mut rest))) = (field, given) else {
        return Long::Stopped(before);
    };
    let bits = u16::from(*bits);
    if check_bits(options, bits).is_err() {
        return Long::Stopped(before);
    }
    args.options(bits);
    let mut left = bits;
    while left != 0 {
        let place = left.trailing_zeros() as usize;
        let Some(bit) = options.bits.get(place).filter(|_| args.has_room()) else { break };
        rest = match bit.fields {
            [] => {
                bit.token.iter().for_each(|word| args.keyword(word));
                rest
            }
            [Field { kind: Kind::I64, .. }] => {
                let Some((value, behind)) = rest.split_first_chunk() else { break };
                bit.token.iter().for_each(|word| args.keyword(word));
                args.int(i64::from_be_bytes(*value));
                behind
            }
            _ => break,
        };
        left &= left - 1;
    }
    let at = visible.len() - rest.len();
    if left == 0 {
        return Long::Done(at);
    }
    // Options end the frame: arguments, which are few, are counted no more.
    let bit = left.trailing_zeros() as u8;
    Long::Stopped(Walk { at, bits, bit, inside: true, ..before })
}

/// Where a frame is read, and who is handed its arguments.
struct Ahead<'v, V> {
    visible: &'v [u8],
    /// What is read next, and all behind it.
    rest: &'v [u8],
    /// Arguments handed out, the name included.
    arguments: u32,
    args: &'v mut V,
}

/// What stands behind a scalar, if all of that is there.
#[inline(always)]
fn behind<'v>(kind: &Kind, rest: &'v [u8]) -> Option<&'v [u8]> {
    let (_, behind) = match kind {
        Kind::Str16 => {
            let (len, rest) = rest.split_first_chunk()?;
            rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))
        }
        Kind::Blob32 => {
            let (len, rest) = rest.split_first_chunk()?;
            rest.split_at_checked(u32::from_be_bytes(*len) as usize)
        }
        Kind::I64 | Kind::F64 => rest.split_at_checked(8),
        Kind::U16 => rest.split_at_checked(2),
        Kind::U8 | Kind::Enum(_) => rest.split_at_checked(1),
        Kind::List(_) | Kind::Options(_) => None,
    }?;
    Some(behind)
}

impl<'v, V: ArgVisitor> Ahead<'v, V> {
    #[inline(always)]
    fn at(&self) -> usize {
        self.visible.len() - self.rest.len()
    }
    /// Before the field of this number.
    #[inline(always)]
    fn before(&self, field: usize) -> Walk {
        Walk::before(field as u8, self.at(), self.arguments)
    }

    /// All of the frame.
    #[inline(always)]
    fn fields(mut self, fields: &'static [Field]) -> Long {
        for (number, field) in fields.iter().enumerate() {
            let passed = match &field.kind {
                Kind::List(list) => self.list(number, field, list),
                Kind::Options(options) => self.options(number, options),
                kind => self.scalar(kind, field.token).ok_or_else(|| self.before(number)),
            };
            if let Err(walk) = passed {
                return Long::Stopped(walk);
            }
        }
        Long::Done(self.at())
    }

    #[inline(always)]
    fn words(&mut self, words: &'static [&'static str]) {
        words.iter().for_each(|word| self.args.keyword(word));
        self.arguments += words.len() as u32;
    }

    /// Hands out a field's value behind its keywords. Nothing where it is not there or not valid, or there is no room;
    /// nothing is handed out then.
    #[inline(always)]
    fn scalar(&mut self, kind: &'static Kind, token: &'static [&'static str]) -> Option<()> {
        if !self.args.has_room() {
            return None;
        }
        match kind {
            Kind::Str16 => {
                let (len, rest) = self.rest.split_first_chunk()?;
                let (text, behind) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
                self.words(token);
                self.args.bytes(self.visible.len() - rest.len(), text);
                self.rest = behind;
            }
            Kind::Blob32 => {
                let (len, rest) = self.rest.split_first_chunk()?;
                let (text, behind) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
                self.words(token);
                self.args.bytes(self.visible.len() - rest.len(), text);
                self.rest = behind;
            }
            Kind::I64 => {
                let (value, behind) = self.rest.split_first_chunk()?;
                self.words(token);
                self.args.int(i64::from_be_bytes(*value));
                self.rest = behind;
            }
            Kind::F64 => {
                let (value, behind) = self.rest.split_first_chunk()?;
                let value = f64::from_be_bytes(*value);
                if value.is_nan() {
                    return None;
                }
                self.words(token);
                self.args.double(value);
                self.rest = behind;
            }
            Kind::U16 => {
                let (value, behind) = self.rest.split_first_chunk()?;
                self.words(token);
                self.args.int(i64::from(u16::from_be_bytes(*value)));
                self.rest = behind;
            }
            Kind::U8 => {
                let (value, behind) = self.rest.split_first()?;
                self.words(token);
                self.args.int(i64::from(*value));
                self.rest = behind;
            }
            Kind::Enum(values) => {
                let (value, behind) = self.rest.split_first()?;
                let words = values.get(usize::from(*value))?;
                self.words(token);
                self.words(words);
                self.rest = behind;
                return Some(());
            }
            Kind::List(_) | Kind::Options(_) => return None,
        }
        self.arguments += 1;
        Some(())
    }

    #[inline(always)]
    fn list(&mut self, number: usize, field: &'static Field, list: &'static List) -> Result<(), Walk> {
        let count = self.rest.split_first_chunk().map(|(count, rest)| (u16::from_be_bytes(*count), rest));
        let before = self.arguments as usize;
        let fits = |count: u16| before + usize::from(count) * list.items.len() <= ARGUMENTS_MAX;
        let Some((count, rest)) = count.filter(|(count, _)| fits(*count) && self.args.has_room()) else {
            return Err(self.before(number));
        };
        self.words(field.token);
        if list.counted {
            self.args.int(i64::from(count));
            self.arguments += 1;
        }
        self.rest = rest;
        if list.transposed {
            return self.columns(number, list, count);
        }
        for left in (1..=count).rev() {
            for (sub, item) in list.items.iter().enumerate() {
                if self.scalar(&item.kind, &[]).is_none() {
                    let walk = self.before(number);
                    return Err(Walk { sub: sub as u8, inside: true, left: u32::from(left), ..walk });
                }
            }
        }
        Ok(())
    }

    /// The items of a transposed list: all first fields, then all second ones. They are strings in the table; of others
    /// the walk would meet what is not valid in another order.
    #[inline(always)]
    fn columns(&mut self, number: usize, list: &'static List, count: u16) -> Result<(), Walk> {
        let (items, items_at, first) = (list.items, self.at(), self.rest);
        // Once over the lengths, to know that all of it is there.
        let mut end = first;
        for _ in 0..count {
            for item in items {
                let Some(rest) = behind(&item.kind, end) else {
                    let (left, walk) = (u32::from(count), self.before(number));
                    return Err(Walk { inside: true, left, items_at, column_at: items_at, ..walk });
                };
                end = rest;
            }
        }
        let arguments = self.arguments + u32::from(count) * items.len() as u32;
        let stopped = |walk: Walk| Walk { inside: true, items_at, column_at: items_at, arguments, ..walk };
        for (column, item) in items.iter().enumerate() {
            // Of one item the columns stand one behind the other.
            if count == 1 {
                if self.scalar(&item.kind, &[]).is_none() {
                    self.rest = end;
                    return Err(Walk { sub: column as u8, ..stopped(self.before(number)) });
                }
                continue;
            }
            self.rest = first;
            for _ in 0..count {
                let column_at = self.at();
                self.pass(&items[..column], end);
                if self.scalar(&item.kind, &[]).is_none() {
                    self.rest = end;
                    return Err(Walk { sub: column as u8, column_at, ..stopped(self.before(number)) });
                }
                self.pass(&items[column + 1..], end);
            }
        }
        self.rest = end;
        Ok(())
    }

    /// Passes fields over that are there before `end`.
    fn pass(&mut self, items: &'static [Field], end: &'v [u8]) {
        for item in items {
            self.rest = behind(&item.kind, self.rest).unwrap_or(end);
        }
    }

    #[inline(always)]
    fn options(&mut self, number: usize, options: &'static Options) -> Result<(), Walk> {
        let first = self.rest.split_first().map(|(bits, rest)| (u16::from(*bits), rest));
        let Some((bits, rest)) = first.filter(|(bits, _)| check_bits(options, *bits).is_ok()) else {
            return Err(self.before(number));
        };
        self.args.options(bits);
        self.rest = rest;
        let mut left = bits;
        while let Some(bit) = options.bits.get(left.trailing_zeros() as usize) {
            let inside = |walk: Walk, sub: usize| {
                let bit = left.trailing_zeros() as u8;
                Err(Walk { bits, bit, sub: sub as u8, inside: true, ..walk })
            };
            if bit.fields.is_empty() {
                if !self.args.has_room() {
                    return inside(self.before(number), 0);
                }
                self.words(bit.token);
            }
            for (sub, field) in bit.fields.iter().enumerate() {
                if self.scalar(&field.kind, if sub == 0 { bit.token } else { &[] }).is_none() {
                    return inside(self.before(number), sub);
                }
            }
            left &= left - 1;
        }
        Ok(())
    }
}
