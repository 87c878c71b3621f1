//! Module frames and ARGV in straight code: the commonest layouts of modules, and arguments of `u32` length.
//!
//! Owns no rule: what is here is a shorter way to what [`super::walk`] does. Nothing is handed out unless the whole
//! frame is there; other layouts are read ahead from the table, and whatever is odd is left to the walk, which names
//! the error.

use super::ahead;
use super::frame::{HEADER_LEN, LONG_HEADER_LEN};
use super::request::{Frame, ROOMY_ARGUMENTS, blob32, str16};
use super::walk::Walk;
use crate::request::ArgVisitor;
use crate::table::{self, Layout, Shape};

/// What the longer straight code made of a frame, and the table read ahead.
pub(super) enum Long {
    /// All of it, of so many bytes.
    Done(usize),
    /// Something is missing or odd, or the visitor has no more room: the walk goes on from here.
    Stopped(Walk),
}

/// A whole frame of a module's command at the start of `visible`; nothing when nothing was handed out.
#[inline(always)]
pub(super) fn module<'a>(visible: &[u8], args: &mut impl ArgVisitor) -> Option<(Long, Frame<'a>)> {
    let [_, _, _, _, m1, m0, n1, n0] = *visible.first_chunk::<LONG_HEADER_LEN>()?;
    let id = table::by_module(u16::from_be_bytes([m1, m0]), u16::from_be_bytes([n1, n0]))?;
    let long = match id.spec().layout {
        Layout::Args => arguments(visible, LONG_HEADER_LEN, false, args)?,
        Layout::Fields { shape, .. } => {
            let straight = fields(shape, visible, args);
            straight.or_else(|| ahead::command(id, LONG_HEADER_LEN, visible, args))?
        }
    };
    Some((long, Frame::Module(id)))
}

/// A whole ARGV frame at the start of `visible`. One without a name is left to the walk.
#[inline(always)]
pub(super) fn argv<'a>(visible: &[u8], args: &mut impl ArgVisitor) -> Option<(Long, Frame<'a>)> {
    match arguments(visible, HEADER_LEN, true, args)? {
        Long::Done(LONG_HEADER_LEN) => None,
        long => Some((long, Frame::Argv)),
    }
}

/// `[u32 total]` at `at`, then arguments of `u32` length each.
#[inline(always)]
pub(super) fn arguments(visible: &[u8], at: usize, named: bool, args: &mut impl ArgVisitor) -> Option<Long> {
    let total = u32::from_be_bytes(*visible.get(at..)?.first_chunk()?);
    // An argument takes four bytes at least: fewer than the limit on arguments without counting them.
    if total >= 4 * ROOMY_ARGUMENTS {
        return None;
    }
    let end = at + 4 + total as usize;
    let (mut rest, mut count) = (visible.get(at + 4..end)?, 0);
    while !rest.is_empty() {
        let argument = rest.split_first_chunk::<4>().filter(|_| args.has_room()).and_then(|(len, body)| {
            let (argument, behind) = body.split_at_checked(u32::from_be_bytes(*len) as usize)?;
            Some((argument, body, behind))
        });
        let Some((argument, body, behind)) = argument else {
            return Some(Long::Stopped(Walk::in_args(end - rest.len(), end, count + u32::from(!named))));
        };
        args.bytes(end - body.len(), argument);
        (rest, count) = (behind, count + 1);
    }
    Some(Long::Done(end))
}

/// The fields of a module's command behind its header.
#[inline(always)]
fn fields(shape: Shape, visible: &[u8], args: &mut impl ArgVisitor) -> Option<Long> {
    const FIRST_AT: usize = LONG_HEADER_LEN + 2;
    let (first, at) = str16(visible, LONG_HEADER_LEN)?;
    let len = match shape {
        Shape::S => {
            args.bytes(FIRST_AT, first);
            at
        }
        Shape::SS => {
            let (second, end) = str16(visible, at)?;
            args.bytes(FIRST_AT, first);
            args.bytes(at + 2, second);
            end
        }
        Shape::SL => {
            let count = u16::from_be_bytes(*visible.get(at..)?.first_chunk()?);
            // Once over the lengths, to know that all of the list is there, and once to hand it out.
            let mut end = at + 2;
            for _ in 0..count {
                end = str16(visible, end)?.1;
            }
            args.bytes(FIRST_AT, first);
            let (mut item_at, mut left) = (at + 2, u32::from(count));
            while left > 0 {
                let Some((item, behind)) = str16(visible, item_at).filter(|_| args.has_room()) else {
                    return Some(Long::Stopped(Walk::in_list(1, left, item_at)));
                };
                args.bytes(item_at + 2, item);
                (item_at, left) = (behind, left - 1);
            }
            end
        }
        Shape::SSBO => {
            let (second, middle) = str16(visible, at)?;
            let (blob, end) = blob32(visible, middle)?;
            if *visible.get(end)? != 0 {
                return None;
            }
            args.bytes(FIRST_AT, first);
            args.bytes(at + 2, second);
            args.bytes(middle + 4, blob);
            end + 1
        }
        _ => return None,
    };
    Some(Long::Done(len))
}
