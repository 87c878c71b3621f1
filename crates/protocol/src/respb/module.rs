//! Module frames and ARGV in straight code: the commonest layouts of modules, and arguments of `u32` length.
//!
//! Owns no rule: what is here is a shorter way to what [`super::walk`] does. Nothing is handed out unless the whole
//! frame is there; whatever is odd is left to the walk, which names the error.

use super::frame::{HEADER_LEN, LONG_HEADER_LEN};
use super::request::{Frame, ROOMY_ARGUMENTS, blob32, str16};
use crate::request::ArgVisitor;
use crate::table::{self, Layout, Shape};

/// A whole frame of a module's command at the start of `visible`: its length and what it is.
#[inline(always)]
pub(super) fn module<'a>(visible: &[u8], args: &mut impl ArgVisitor) -> Option<(usize, Frame<'a>)> {
    let [_, _, _, _, m1, m0, n1, n0] = *visible.first_chunk::<LONG_HEADER_LEN>()?;
    let id = table::by_module(u16::from_be_bytes([m1, m0]), u16::from_be_bytes([n1, n0]))?;
    let len = match id.spec().layout {
        Layout::Args => arguments(visible, LONG_HEADER_LEN, args)?,
        Layout::Fields { shape, .. } => fields(shape, visible, args)?,
    };
    Some((len, Frame::Module(id)))
}

/// A whole ARGV frame at the start of `visible`. One without a name is left to the walk.
#[inline(always)]
pub(super) fn argv<'a>(visible: &[u8], args: &mut impl ArgVisitor) -> Option<(usize, Frame<'a>)> {
    let len = arguments(visible, HEADER_LEN, args)?;
    (len > LONG_HEADER_LEN).then_some((len, Frame::Argv))
}

/// `[u32 total]` at `at`, then arguments of `u32` length each; gives the offset behind them.
///
/// When lengths contradict each other half of them have been handed out and the walk starts again; the frame is
/// invalid then, and what the visitor has of it is void.
#[inline(always)]
fn arguments(visible: &[u8], at: usize, args: &mut impl ArgVisitor) -> Option<usize> {
    let total = u32::from_be_bytes(*visible.get(at..)?.first_chunk()?);
    // An argument takes four bytes at least: fewer than the limit on arguments without counting them.
    if total >= 4 * ROOMY_ARGUMENTS {
        return None;
    }
    let end = at + 4 + total as usize;
    let mut rest = visible.get(at + 4..end)?;
    while let Some((len, body)) = rest.split_first_chunk::<4>() {
        let (argument, behind) = body.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        args.bytes(end - body.len(), argument);
        rest = behind;
    }
    rest.is_empty().then_some(end)
}

/// The fields of a module's command behind its header.
#[inline(always)]
fn fields(shape: Shape, visible: &[u8], args: &mut impl ArgVisitor) -> Option<usize> {
    const FIRST_AT: usize = LONG_HEADER_LEN + 2;
    let (first, at) = str16(visible, LONG_HEADER_LEN)?;
    match shape {
        Shape::S => {
            args.bytes(FIRST_AT, first);
            Some(at)
        }
        Shape::SS => {
            let (second, end) = str16(visible, at)?;
            args.bytes(FIRST_AT, first);
            args.bytes(at + 2, second);
            Some(end)
        }
        Shape::SL => {
            let count = u16::from_be_bytes(*visible.get(at..)?.first_chunk()?);
            // Once over the lengths, to know that all of the list is there, and once to hand it out.
            let mut end = at + 2;
            for _ in 0..count {
                end = str16(visible, end)?.1;
            }
            args.bytes(FIRST_AT, first);
            let mut item_at = at + 2;
            while item_at < end {
                let (item, behind) = str16(visible, item_at)?;
                args.bytes(item_at + 2, item);
                item_at = behind;
            }
            Some(end)
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
            Some(end + 1)
        }
        _ => None,
    }
}
