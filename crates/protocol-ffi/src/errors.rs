//! Numbers, names and texts of wire errors.
//!
//! Owns the numbers: they are part of the interface and never change, while the list in the protocol crate may grow.

use core::ffi::c_char;

use weft_protocol::Malformed;

/// Longest name or text, with the zero byte at its end.
const TEXT_MAX: usize = 64;

/// `RESPB_ERR_…`, in order from 1.
const NUMBERS: [Malformed; 37] = [
    Malformed::MultibulkLength,
    Malformed::MultibulkLine,
    Malformed::ExpectedBulk,
    Malformed::BulkLength,
    Malformed::BulkLine,
    Malformed::BulkEnd,
    Malformed::InlineTooLong,
    Malformed::UnbalancedQuotes,
    Malformed::TooManyArguments,
    Malformed::UnauthenticatedArguments,
    Malformed::ArgumentTooLong,
    Malformed::UnauthenticatedArgument,
    Malformed::FrameTooLong,
    Malformed::UnknownType,
    Malformed::LineTooLong,
    Malformed::BadLine,
    Malformed::BadNumber,
    Malformed::BadLength,
    Malformed::BadBool,
    Malformed::BadVerbatim,
    Malformed::TooDeep,
    Malformed::TooManyElements,
    Malformed::Misplaced,
    Malformed::BadStream,
    Malformed::UnknownOpcode,
    Malformed::WrongDirection,
    Malformed::UnknownBit,
    Malformed::ExclusiveBits,
    Malformed::MissingBit,
    Malformed::BadEnum,
    Malformed::LengthMismatch,
    Malformed::EmptyCommand,
    Malformed::NotOneCommand,
    Malformed::BadControl,
    Malformed::UnknownTag,
    Malformed::UnknownProtocol,
    Malformed::ZeroStream,
];

/// The number of an error. A test sees to it that every error has one.
#[cold]
pub fn number(error: Malformed) -> u32 {
    NUMBERS.iter().position(|each| *each == error).map_or(0, |index| index as u32 + 1)
}

/// A text with zero bytes behind it; one that is too long does not compile.
pub(crate) const fn zero_ended<const N: usize>(text: &str) -> [u8; N] {
    let (bytes, mut out, mut at) = (text.as_bytes(), [0; N], 0);
    assert!(bytes.len() < N);
    while at < bytes.len() {
        out[at] = bytes[at];
        at += 1;
    }
    out
}

static NAMES: [[u8; TEXT_MAX]; NUMBERS.len()] = {
    let (mut out, mut at) = ([[0; TEXT_MAX]; NUMBERS.len()], 0);
    while at < NUMBERS.len() {
        out[at] = zero_ended(NUMBERS[at].name());
        at += 1;
    }
    out
};

static TEXTS: [[u8; TEXT_MAX]; NUMBERS.len()] = {
    let (mut out, mut at) = ([[0; TEXT_MAX]; NUMBERS.len()], 0);
    while at < NUMBERS.len() {
        out[at] = zero_ended(NUMBERS[at].text());
        at += 1;
    }
    out
};

fn text_of(texts: &'static [[u8; TEXT_MAX]], error: u32) -> *const c_char {
    let index = (error as usize).wrapping_sub(1);
    texts.get(index).map_or(core::ptr::null(), |text| text.as_ptr().cast())
}

/// The name of an error.
#[unsafe(no_mangle)]
pub extern "C" fn respb_error_name(error: u32) -> *const c_char {
    text_of(&NAMES, error)
}

/// The text of an error.
#[unsafe(no_mangle)]
pub extern "C" fn respb_error_text(error: u32) -> *const c_char {
    text_of(&TEXTS, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_number() {
        for error in Malformed::ALL {
            assert_ne!(number(*error), 0, "{}", error.name());
        }
        assert_eq!(Malformed::ALL.len(), NUMBERS.len());
    }
}
