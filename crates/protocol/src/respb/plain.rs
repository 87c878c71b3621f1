//! Core layouts with options of which none is given, and XADD's, in straight code.
//!
//! Owns no rule: what is here is a shorter way to what [`super::walk`] does. Nothing is handed out unless the whole
//! frame is there and within what a visitor takes without being asked; whatever is odd is left to the walk, which names
//! the error.

use super::frame::HEADER_LEN;
use super::request::{blob32, str16};
use crate::request::{ArgVisitor, STEP_ARGUMENTS_MAX};
use crate::table::Shape;

/// Where the key's bytes begin.
const KEY_AT: usize = HEADER_LEN + 2;
/// Pairs behind a key and an id.
const PAIRS_MAX: u16 = (STEP_ARGUMENTS_MAX as u16 - 2) / 2;

/// The fields of a frame of one of three shapes at the start of `visible`, and the frame's length; nothing when nothing
/// was handed out.
#[inline(always)]
pub(super) fn fields(shape: Shape, visible: &[u8], args: &mut impl ArgVisitor) -> Option<usize> {
    let (key, at) = str16(visible, HEADER_LEN)?;
    match shape {
        Shape::SO => {
            no_options(visible, at)?;
            args.bytes(KEY_AT, key);
            args.options(0);
            Some(at + 1)
        }
        Shape::SOLDS => {
            no_options(visible, at)?;
            let (count, score_at) = (count(visible, at + 1)?, at + 3);
            let score = f64::from_be_bytes(*visible.get(score_at..)?.first_chunk()?);
            let (member, end) = str16(visible, score_at + 8)?;
            if count != 1 || score.is_nan() {
                return None;
            }
            args.bytes(KEY_AT, key);
            args.options(0);
            args.double(score);
            args.bytes(score_at + 10, member);
            Some(end)
        }
        Shape::SSLSB => {
            let (second, list_at) = str16(visible, at)?;
            let count = count(visible, list_at).filter(|count| (1..=PAIRS_MAX).contains(count))?;
            // Once over the lengths, to know that all of the list is there, and once to hand it out.
            let mut end = list_at + 2;
            for _ in 0..count {
                end = blob32(visible, str16(visible, end)?.1)?.1;
            }
            args.bytes(KEY_AT, key);
            args.bytes(at + 2, second);
            let mut at = list_at + 2;
            for _ in 0..count {
                let (first, middle) = str16(visible, at)?;
                let (second, behind) = blob32(visible, middle)?;
                args.bytes(at + 2, first);
                args.bytes(middle + 4, second);
                at = behind;
            }
            Some(end)
        }
        _ => None,
    }
}

/// Nothing where an option is given, or the bits are not there yet.
#[inline(always)]
fn no_options(visible: &[u8], at: usize) -> Option<()> {
    visible.get(at).filter(|bits| **bits == 0).map(|_| ())
}

#[inline(always)]
fn count(visible: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*visible.get(at..)?.first_chunk()?))
}
