//! Owns: changes inside strings: APPEND, SETRANGE, INCRBY. Does not own: limits of length, which the engine checks
//! before.

use super::{Op, ShardGuard};
use crate::effect::{Effect, Text, wants};
use crate::entry::ValueMut;
use crate::entry::heap::Key;
use crate::shard::Expiry;
use crate::value::{NewValue, parse_int};

/// The key holds another type than the operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

/// Why a number was not incremented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// Not a string.
    WrongType,
    /// A string, but not a canonical 64-bit integer.
    NotAnInteger,
    /// The result would not fit.
    Overflow,
}

impl ShardGuard<'_> {
    /// INCRBY: in place when the key holds an integer.
    pub fn increment(&mut self, op: &mut Op<'_>, key: &Key<'_>, by: i64) -> Result<i64, NumberError> {
        let Some(found) = self.live(op, key) else {
            self.set(op, key, NewValue::Int(by), Expiry::None);
            return Ok(by);
        };
        let wanted = self.wanted(op, key);
        if wanted & wants::UNDO != 0 {
            self.keep_image(op, key, found);
        }
        let (now_ms, mode, db) = (self.time(op), self.mode(), op.db as usize);
        let data = &mut *self.data;
        let sum = |old: i64| old.checked_add(by).ok_or(NumberError::Overflow);
        let new = match data.heap.value_mut(db, found) {
            ValueMut::Int(number) => {
                *number = sum(*number)?;
                *number
            }
            ValueMut::Bytes(bytes) => {
                let new = sum(parse_int(bytes).ok_or(NumberError::NotAnInteger)?)?;
                self.set(op, key, NewValue::Int(new), Expiry::Keep);
                return Ok(new);
            }
            ValueMut::Shared(_) => return Err(NumberError::NotAnInteger),
            ValueMut::Object(_) | ValueMut::Packed => return Err(NumberError::WrongType),
        };
        let entry = data.heap.entry(db, found);
        entry.set_clock(mode.touched(entry.clock(), now_ms, &mut data.rng));
        let expire_ms = found.expires().then(|| entry.expire_ms());
        if wanted != 0 {
            self.tell(op, wanted, key.bytes, &Effect::Set { value: Text::Int(new), expire_ms });
        }
        self.wrote(op, key, wanted);
        Ok(new)
    }

    /// APPEND: returns the new length.
    pub fn append(&mut self, op: &mut Op<'_>, key: &Key<'_>, bytes: &[u8]) -> Result<usize, WrongType> {
        let old = match self.peek(op, key) {
            None => {
                self.set(op, key, NewValue::string(bytes), Expiry::None);
                return Ok(bytes.len());
            }
            Some(value) => value.string_len().ok_or(WrongType)?,
        };
        self.write_at(op, key, old, bytes)
    }

    /// SETRANGE with bytes to write: pads with zeros up to `offset`, returns the new length.
    pub fn set_range(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        offset: usize,
        bytes: &[u8],
    ) -> Result<usize, WrongType> {
        if self.exists(op, key) {
            return self.write_at(op, key, offset, bytes);
        }
        self.set(op, key, NewValue::Bytes(b""), Expiry::None);
        self.write_more(op, key, offset, bytes)
    }

    /// Writes into an existing string.
    fn write_at(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        offset: usize,
        bytes: &[u8],
    ) -> Result<usize, WrongType> {
        let len = self.write_more(op, key, offset, bytes)?;
        let wanted = self.wanted(op, key);
        self.wrote(op, key, wanted);
        Ok(len)
    }

    /// More bytes of a write to an existing string that has been counted and told under this lock. Bytes that a reply
    /// still holds are copied first (the reader's stay as they were).
    #[inline]
    pub fn write_more(
        &mut self,
        op: &mut Op<'_>,
        key: &Key<'_>,
        offset: usize,
        bytes: &[u8],
    ) -> Result<usize, WrongType> {
        let Some(found) = self.live(op, key) else { return Ok(0) };
        let db = op.db as usize;
        let wanted = self.wanted(op, key);
        if wanted & wants::UNDO != 0 {
            self.keep_text(op, key, found, (offset, bytes.len()));
        }
        let (now_ms, mode, env) = (self.time(op), self.mode(), self.env());
        let data = &mut *self.data;
        let entry = data.heap.entry(db, found);
        let old = entry.value().string_len().ok_or(WrongType)?;
        entry.set_clock(mode.touched(entry.clock(), now_ms, &mut data.rng));
        let len = old.max(offset + bytes.len());
        let target = data.heap.lengthen(env, db, found, len);
        target[offset..offset + bytes.len()].copy_from_slice(bytes);
        if wanted != 0 {
            self.tell(op, wanted, key.bytes, &Effect::Write { offset: offset as u64, bytes });
        }
        Ok(len)
    }
}
