//! Owns: reading bytes of an RDB payload one after the other: numbers, lengths, strings in their encodings. Does not
//! own: what they are for.
//!
//! A length never becomes an allocation before the bytes that it counts are seen to be there; a compressed string may
//! grow to [`super::lzf::EXPANSION_MAX`] times its bytes.

use super::{Malformed, lzf};
use std::borrow::Cow;
use weft_store::value::Digits;

/// What is left to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

/// A length, or the encoding of a string that is not stored as its bytes.
enum Length {
    Plain(u64),
    Encoded(u8),
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }
    pub(super) const fn is_empty(self) -> bool {
        self.rest.is_empty()
    }
    pub(super) const fn remaining(self) -> usize {
        self.rest.len()
    }
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*taken)
    }
    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }
    /// A time in milliseconds, or any other signed number of 8 bytes.
    pub(super) fn i64_le(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    fn length_or_encoding(&mut self) -> Result<Length, Malformed> {
        let first = self.byte()?;
        Ok(match first >> 6 {
            0 => Length::Plain(u64::from(first & 0x3f)),
            1 => Length::Plain(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            3 => Length::Encoded(first & 0x3f),
            _ => match first {
                0x80 => Length::Plain(u64::from(u32::from_be_bytes(self.array()?))),
                0x81 => Length::Plain(u64::from_be_bytes(self.array()?)),
                _ => return Err(Malformed),
            },
        })
    }
    /// A length, or any other unsigned number.
    pub(super) fn length(&mut self) -> Result<u64, Malformed> {
        match self.length_or_encoding()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(_) => Err(Malformed),
        }
    }
    /// The number of items that follow, each of which takes a byte at least.
    pub(super) fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.length()?;
        if count > self.rest.len() as u64 {
            return Err(Malformed);
        }
        Ok(count as usize)
    }
    /// The number of items of a collection, which is never without any.
    pub(super) fn count_of_some(&mut self) -> Result<usize, Malformed> {
        match self.count()? {
            0 => Err(Malformed),
            count => Ok(count),
        }
    }

    /// How many bytes the string is that comes now, as its length says; an integer's are few.
    pub(super) fn string_bytes(mut self) -> Result<u64, Malformed> {
        Ok(match self.length_or_encoding()? {
            Length::Plain(length) => length,
            Length::Encoded(3) => {
                self.length()?;
                self.length()?
            }
            Length::Encoded(_) => 0,
        })
    }
    /// A string: bytes, an integer, or compressed bytes.
    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>, Malformed> {
        let number = match self.length_or_encoding()? {
            Length::Plain(length) => {
                let length = usize::try_from(length).map_err(|_| Malformed)?;
                return Ok(Cow::Borrowed(self.take(length)?));
            }
            Length::Encoded(0) => i64::from(self.byte()? as i8),
            Length::Encoded(1) => i64::from(i16::from_le_bytes(self.array()?)),
            Length::Encoded(2) => i64::from(i32::from_le_bytes(self.array()?)),
            Length::Encoded(3) => {
                let compressed = self.count()?;
                let length = self.length()?;
                return Ok(Cow::Owned(lzf::decompress(self.take(compressed)?, length)?));
            }
            Length::Encoded(_) => return Err(Malformed),
        };
        Ok(Cow::Owned(Digits::default().write(number).to_vec()))
    }

    /// A score as RDB wrote it before version 8: digits with their length, or one of three special lengths.
    pub(super) fn text_double(&mut self) -> Result<f64, Malformed> {
        let length = match self.byte()? {
            253 => return Err(Malformed),
            254 => return Ok(f64::INFINITY),
            255 => return Ok(f64::NEG_INFINITY),
            length => length,
        };
        let digits = std::str::from_utf8(self.take(length.into())?).map_err(|_| Malformed)?;
        parse_score(digits)
    }
    /// A score in 8 bytes.
    pub(super) fn score(&mut self) -> Result<f64, Malformed> {
        let score = f64::from_le_bytes(self.array()?);
        if score.is_nan() { Err(Malformed) } else { Ok(score) }
    }
}

/// A score from its digits.
pub(super) fn parse_score(digits: &str) -> Result<f64, Malformed> {
    let score: f64 = digits.parse().map_err(|_| Malformed)?;
    if score.is_nan() { Err(Malformed) } else { Ok(score) }
}
