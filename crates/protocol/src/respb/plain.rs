//! Core layouts that are common, but not the commonest, in straight code; for all others, and for options that are
//! given, the table is read ahead.
//!
//! Owns no rule: what is here is a shorter way to what [`super::walk`] does. Whatever is odd is left to the walk, which
//! names the error.

use super::ahead;
use super::frame::HEADER_LEN;
use super::module::Long;
use super::request::{blob32, i64_at, str16};
use crate::request::{ArgVisitor, STEP_ARGUMENTS_MAX};
use crate::table::{self, Shape};

/// Items of a list before one argument: what a visitor takes without being asked.
const ITEMS_MAX: u16 = STEP_ARGUMENTS_MAX as u16 - 1;

/// A field, or several: read as a whole before anything of it is handed out.
trait Piece {
    /// What was read.
    type Read<'v>;
    /// How many arguments there are.
    const ARGUMENTS: u8;
    /// Reads it at `at`; and the offset behind it.
    fn read(visible: &[u8], at: usize) -> Option<(Self::Read<'_>, usize)>;
    /// Hands it out.
    fn give(read: Self::Read<'_>, args: &mut impl ArgVisitor);
}

/// `str16`, `blob32`, `i64`, `f64`.
struct S;
struct B;
struct I;
struct D;

impl Piece for S {
    type Read<'v> = (usize, &'v [u8]);
    const ARGUMENTS: u8 = 1;
    #[inline(always)]
    fn read(visible: &[u8], at: usize) -> Option<(Self::Read<'_>, usize)> {
        let (text, end) = str16(visible, at)?;
        Some(((at + 2, text), end))
    }
    #[inline(always)]
    fn give((at, text): Self::Read<'_>, args: &mut impl ArgVisitor) {
        args.bytes(at, text);
    }
}

impl Piece for B {
    type Read<'v> = (usize, &'v [u8]);
    const ARGUMENTS: u8 = 1;
    #[inline(always)]
    fn read(visible: &[u8], at: usize) -> Option<(Self::Read<'_>, usize)> {
        let (text, end) = blob32(visible, at)?;
        Some(((at + 4, text), end))
    }
    #[inline(always)]
    fn give((at, text): Self::Read<'_>, args: &mut impl ArgVisitor) {
        args.bytes(at, text);
    }
}

impl Piece for I {
    type Read<'v> = i64;
    const ARGUMENTS: u8 = 1;
    #[inline(always)]
    fn read(visible: &[u8], at: usize) -> Option<(i64, usize)> {
        Some((i64_at(visible, at)?, at + 8))
    }
    #[inline(always)]
    fn give(value: i64, args: &mut impl ArgVisitor) {
        args.int(value);
    }
}

impl Piece for D {
    type Read<'v> = f64;
    const ARGUMENTS: u8 = 1;
    #[inline(always)]
    fn read(visible: &[u8], at: usize) -> Option<(f64, usize)> {
        let value = f64::from_bits(i64_at(visible, at)? as u64);
        (!value.is_nan()).then_some((value, at + 8))
    }
    #[inline(always)]
    fn give(value: f64, args: &mut impl ArgVisitor) {
        args.double(value);
    }
}

impl<P: Piece, Q: Piece> Piece for (P, Q) {
    type Read<'v> = (P::Read<'v>, Q::Read<'v>);
    const ARGUMENTS: u8 = P::ARGUMENTS + Q::ARGUMENTS;
    #[inline(always)]
    fn read(visible: &[u8], at: usize) -> Option<(Self::Read<'_>, usize)> {
        let (first, at) = P::read(visible, at)?;
        let (second, end) = Q::read(visible, at)?;
        Some(((first, second), end))
    }
    #[inline(always)]
    fn give((first, second): Self::Read<'_>, args: &mut impl ArgVisitor) {
        P::give(first, args);
        Q::give(second, args);
    }
}

/// The fields of a core frame at the start of `visible`, and the frame's length, or where the walk goes on; nothing
/// when nothing was handed out.
#[inline(always)]
pub(super) fn fields(shape: Shape, opcode: u16, visible: &[u8], args: &mut impl ArgVisitor) -> Option<Long> {
    match shape {
        Shape::SO => optional::<S>(opcode, visible, args),
        Shape::SBO => optional::<(S, B)>(opcode, visible, args),
        Shape::SSO => optional::<(S, S)>(opcode, visible, args),
        Shape::SIO => optional::<(S, I)>(opcode, visible, args),
        Shape::SIIO => optional::<(S, (I, I))>(opcode, visible, args),
        Shape::SSSO => optional::<(S, (S, S))>(opcode, visible, args),
        Shape::SSI => whole::<(S, (S, I))>(visible, args),
        Shape::SDS => whole::<(S, (D, S))>(visible, args),
        Shape::LD => {
            let (count, at) = (count(visible, HEADER_LEN)?, HEADER_LEN + 2);
            if count > ITEMS_MAX {
                return by_table(opcode, visible, args);
            }
            let (timeout, end) = D::read(visible, behind_items::<S>(visible, count, at)?)?;
            give_items::<S>(visible, count, at, args);
            args.double(timeout);
            Some(Long::Done(end))
        }
        Shape::SSL => behind_two::<S>(opcode, visible, args),
        Shape::SSLSB => behind_two::<(S, B)>(opcode, visible, args),
        Shape::SOLDS => {
            let (key, at) = S::read(visible, HEADER_LEN)?;
            let is_one = *visible.get(at)? == 0 && count(visible, at + 1)? == 1;
            if !is_one {
                return by_table(opcode, visible, args);
            }
            let (pair, end) = <(D, S)>::read(visible, at + 3)?;
            S::give(key, args);
            args.options(0);
            <(D, S)>::give(pair, args);
            Some(Long::Done(end))
        }
        Shape::Ahead => by_table(opcode, visible, args),
        _ => None,
    }
}

/// Whatever the layout.
#[inline(always)]
fn by_table(opcode: u16, visible: &[u8], args: &mut impl ArgVisitor) -> Option<Long> {
    ahead::command(table::by_opcode(opcode)?, HEADER_LEN, visible, args)
}

/// Nothing but this.
#[inline(always)]
fn whole<P: Piece>(visible: &[u8], args: &mut impl ArgVisitor) -> Option<Long> {
    let (read, end) = P::read(visible, HEADER_LEN)?;
    P::give(read, args);
    Some(Long::Done(end))
}

/// This, and options.
#[inline(always)]
fn optional<P: Piece>(opcode: u16, visible: &[u8], args: &mut impl ArgVisitor) -> Option<Long> {
    let (read, at) = P::read(visible, HEADER_LEN)?;
    let bits = *visible.get(at)?;
    P::give(read, args);
    if bits != 0 {
        return Some(ahead::last_options((opcode, P::ARGUMENTS, at), visible, args));
    }
    args.options(0);
    Some(Long::Done(at + 1))
}

/// Two strings, and a list that ends the frame.
#[inline(always)]
fn behind_two<P: Piece>(opcode: u16, visible: &[u8], args: &mut impl ArgVisitor) -> Option<Long> {
    let (two, at) = <(S, S)>::read(visible, HEADER_LEN)?;
    let (count, at) = (count(visible, at)?, at + 2);
    if count > (STEP_ARGUMENTS_MAX as u16 - 2) / u16::from(P::ARGUMENTS) {
        return by_table(opcode, visible, args);
    }
    // Once over the lengths, to know that all of the list is there, and once to hand it out.
    let end = behind_items::<P>(visible, count, at)?;
    <(S, S)>::give(two, args);
    give_items::<P>(visible, count, at, args);
    Some(Long::Done(end))
}

#[inline(always)]
fn count(visible: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*visible.get(at..)?.first_chunk()?))
}

/// Behind the items of a list.
#[inline(always)]
fn behind_items<P: Piece>(visible: &[u8], count: u16, at: usize) -> Option<usize> {
    (0..count).try_fold(at, |at, _| Some(P::read(visible, at)?.1))
}

/// Hands out items that are there.
#[inline(always)]
fn give_items<P: Piece>(visible: &[u8], count: u16, mut at: usize, args: &mut impl ArgVisitor) {
    for _ in 0..count {
        let Some((item, behind)) = P::read(visible, at) else { return };
        P::give(item, args);
        at = behind;
    }
}
