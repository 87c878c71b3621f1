//! Walking a payload field by field from the table, resuming at the field where it stopped.
//!
//! Owns every rule of spec section 4: what a field is, which option bits may stand together, how the argument form
//! is read from the wire form. The straight code of [`super::request`] is a shorter way to the same arguments.

use crate::limits::Limits;
use crate::outcome::{Malformed, Step, Stop};
use crate::request::{ArgVisitor, Place};
use crate::table::{Field, Kind, List, Options};

/// Where in a payload the decoder stands. A position is left only when all of it has been handed out.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// Offset in the frame of what is read next; 0 at the start of a payload.
    pub(super) at: usize,
    /// Arguments handed out, the name included.
    pub(super) arguments: u32,
    /// The field.
    pub(super) field: u8,
    /// Inside a list: the item's field. Inside options: the bit's field.
    pub(super) sub: u8,
    /// Inside options: the bit.
    pub(super) bit: u8,
    /// Inside a list or options, or at a field's start.
    pub(super) inside: bool,
    /// Inside options: the bits.
    pub(super) bits: u16,
    /// Inside a list: items to come. In an ARGV frame: the end of the frame.
    pub(super) left: u32,
    /// Inside a transposed list: where its items begin.
    pub(super) items_at: usize,
    /// Inside a transposed list that is there as a whole: the item whose field `sub` is handed out next.
    pub(super) column_at: usize,
}

/// A field's value.
enum Scalar<'a> {
    /// Bytes and their offset in the frame.
    Bytes(usize, &'a [u8]),
    Int(i64),
    Double(f64),
    Words(&'static [&'static str]),
}

impl Walk {
    pub(super) const START: Walk = Walk {
        at: 0,
        arguments: 1,
        field: 0,
        sub: 0,
        bit: 0,
        inside: false,
        bits: 0,
        left: 0,
        items_at: 0,
        column_at: 0,
    };

    /// Before a field, when so many arguments, the name included, have been handed out.
    #[inline(always)]
    pub(super) fn before(field: u8, at: usize, arguments: u32) -> Walk {
        Walk { at, field, arguments, ..Walk::START }
    }

    /// In the list that is field `field`, before the item at `at`, after the straight code handed out what precedes.
    pub(super) fn in_list(field: u8, left: u32, at: usize) -> Walk {
        Walk { at, field, left, inside: true, arguments: 1 + u32::from(field), ..Walk::START }
    }

    /// In arguments of `u32` length that end at `end`, before the one at `at`, when so many, the name included, have
    /// been handed out.
    pub(super) fn in_args(at: usize, end: usize, arguments: u32) -> Walk {
        // A frame's end fits: it is within `frame_bytes_max`, a u32.
        Walk { at, left: end as u32, arguments, ..Walk::START }
    }

    /// Whether something was handed out that must not be handed out again, or a length is known that must not be read
    /// again; otherwise the frame may as well be walked from its start.
    pub(super) fn keeps_its_place(&self) -> bool {
        self.inside || self.field > 0 || self.left > 0
    }

    /// Walks the fields of a typed layout; gives the offset behind the last one.
    pub(super) fn fields(
        &mut self,
        fields: &'static [Field],
        input: &[u8],
        start: usize,
        limits: &Limits,
        args: &mut impl ArgVisitor,
    ) -> Step<usize> {
        if self.at == 0 {
            self.at = start;
        }
        let mut reader = Reader { input, limits, args };
        while let Some(field) = fields.get(usize::from(self.field)) {
            reader.ask_for_room()?;
            match &field.kind {
                Kind::List(list) => self.list(field, list, &mut reader)?,
                Kind::Options(options) => self.options(field, options, &mut reader)?,
                _ => {
                    let (value, next) = reader.field(field, self.at)?;
                    reader.words(field.token, self)?;
                    reader.hand_out(value, self)?;
                    self.at = next;
                }
            }
            self.field += 1;
            self.inside = false;
            self.sub = 0;
        }
        Ok(self.at)
    }

    fn list<V: ArgVisitor>(
        &mut self,
        field: &'static Field,
        list: &'static List,
        reader: &mut Reader<'_, V>,
    ) -> Step<()> {
        if !self.inside {
            reader.args.place(Place::Expected { field, at: self.at });
            let count = u16::from_be_bytes(reader.array(self.at)?);
            reader.args.place(Place::Count { field, at: self.at, count });
            // The keyword and the count are this field's arguments: one too many is reported here.
            reader.words(field.token, self)?;
            if list.counted {
                reader.hand_out(Scalar::Int(i64::from(count)), self)?;
            }
            self.at += 2;
            self.left = u32::from(count);
            (self.items_at, self.column_at) = (self.at, self.at);
            self.inside = true;
        }
        while self.left > 0 {
            while let Some(item) = list.items.get(usize::from(self.sub)) {
                reader.ask_for_room()?;
                let (value, next) = reader.field(item, self.at)?;
                if list.transposed {
                    reader.count_argument(self)?;
                } else {
                    reader.hand_out(value, self)?;
                }
                self.at = next;
                self.sub += 1;
            }
            self.sub = 0;
            self.left -= 1;
        }
        while list.transposed && usize::from(self.sub) < list.items.len() {
            reader.column(list, usize::from(self.sub), &mut self.column_at, self.at)?;
            self.column_at = self.items_at;
            self.sub += 1;
        }
        Ok(())
    }

    fn options<V: ArgVisitor>(
        &mut self,
        field: &'static Field,
        options: &'static Options,
        reader: &mut Reader<'_, V>,
    ) -> Step<()> {
        if !self.inside {
            reader.args.place(Place::Expected { field, at: self.at });
            let bits = u16::from(reader.array::<1>(self.at)?[0]);
            reader.args.place(Place::Options { field, at: self.at, bits });
            check_bits(options, bits).map_err(|kind| Stop::bad(kind, self.at))?;
            (self.bits, self.at, self.inside, self.bit) = (bits, self.at + 1, true, 0);
            reader.args.options(bits);
        }
        while let Some(bit) = options.bits.get(usize::from(self.bit)) {
            if self.bits >> self.bit & 1 == 1 {
                reader.ask_for_room()?;
                if bit.fields.is_empty() {
                    reader.words(bit.token, self)?;
                }
                while let Some(field) = bit.fields.get(usize::from(self.sub)) {
                    reader.ask_for_room()?;
                    let (value, next) = reader.field(field, self.at)?;
                    if self.sub == 0 {
                        reader.words(bit.token, self)?;
                    }
                    reader.hand_out(value, self)?;
                    self.at = next;
                    self.sub += 1;
                }
                self.sub = 0;
            }
            self.bit += 1;
        }
        Ok(())
    }

    /// `[u32 total]`, then arguments of `u32` length each that fill it exactly: the payload of ARGV (`named`: the first
    /// argument is the command's name) and of the `args` layout. Gives the offset behind it.
    pub(super) fn args(
        &mut self,
        input: &[u8],
        start: usize,
        named: bool,
        limits: &Limits,
        args: &mut impl ArgVisitor,
    ) -> Step<usize> {
        let mut reader = Reader { input, limits, args };
        if self.at == 0 {
            let total = u32::from_be_bytes(reader.array(start)?);
            reader.args.place(Place::Total { at: start, total });
            let end = (start + 4).saturating_add(total as usize);
            if end > limits.frame_bytes_max as usize {
                return Err(Stop::bad(Malformed::FrameTooLong, start));
            }
            if named && total == 0 {
                return Err(Stop::bad(Malformed::EmptyCommand, start));
            }
            // A frame's end fits: it is within `frame_bytes_max`, a u32.
            (self.at, self.left, self.arguments) = (start + 4, end as u32, u32::from(!named));
        }
        let end = self.left as usize;
        while self.at < end {
            reader.ask_for_room()?;
            reader.args.place(Place::ExpectedArgument { at: self.at });
            if end - self.at < 4 {
                return Err(Stop::bad(Malformed::LengthMismatch, self.at));
            }
            let len = u32::from_be_bytes(reader.array(self.at)?) as usize;
            if len > end - self.at - 4 {
                return Err(Stop::bad(Malformed::LengthMismatch, self.at));
            }
            let (value, next) = reader.bytes(self.at, self.at + 4, len)?;
            reader.args.place(Place::Argument { at: self.at, end: next });
            reader.hand_out(value, self)?;
            self.at = next;
        }
        Ok(end)
    }
}

/// Whether these bits may stand together.
#[inline]
pub(super) fn check_bits(options: &Options, bits: u16) -> Result<(), Malformed> {
    if u32::from(bits) >> options.bits.len() != 0 {
        return Err(Malformed::UnknownBit);
    }
    if options.exclusive.iter().any(|set| !(set & bits).is_power_of_two() && set & bits != 0) {
        return Err(Malformed::ExclusiveBits);
    }
    let mut left = bits;
    while let Some(bit) = options.bits.get(left.trailing_zeros() as usize) {
        if bits & bit.requires != bit.requires {
            return Err(Malformed::MissingBit);
        }
        left &= left - 1;
    }
    Ok(())
}

struct Reader<'a, V> {
    input: &'a [u8],
    limits: &'a Limits,
    args: &'a mut V,
}

impl<'a, V: ArgVisitor> Reader<'a, V> {
    fn array<const N: usize>(&self, at: usize) -> Step<[u8; N]> {
        if at + N > self.limits.frame_bytes_max as usize {
            return Err(Stop::bad(Malformed::FrameTooLong, at));
        }
        let bytes = self.input.get(at..).and_then(|rest| rest.first_chunk::<N>());
        bytes.copied().ok_or(Stop::Need(at + N))
    }

    /// `len` bytes at `at`; `field_at` is where an error about them is reported.
    fn bytes(&self, field_at: usize, at: usize, len: usize) -> Step<(Scalar<'a>, usize)> {
        if len > self.limits.argument_bytes_max as usize {
            let kind = if self.limits.unauthenticated {
                Malformed::UnauthenticatedArgument
            } else {
                Malformed::ArgumentTooLong
            };
            return Err(Stop::bad(kind, field_at));
        }
        let end = at.saturating_add(len);
        if end > self.limits.frame_bytes_max as usize {
            return Err(Stop::bad(Malformed::FrameTooLong, field_at));
        }
        Ok((Scalar::Bytes(at, self.input.get(at..end).ok_or(Stop::Need(end))?), end))
    }

    /// The value of a field, with its places for those who want them.
    fn field(&mut self, field: &'static Field, at: usize) -> Step<(Scalar<'a>, usize)> {
        self.args.place(Place::Expected { field, at });
        let (value, end) = self.scalar(field, at)?;
        self.args.place(Place::Value { field, at, end });
        Ok((value, end))
    }

    fn scalar(&self, field: &Field, at: usize) -> Step<(Scalar<'a>, usize)> {
        Ok(match field.kind {
            Kind::Str16 => {
                let len = u16::from_be_bytes(self.array(at)?);
                self.bytes(at, at + 2, usize::from(len))?
            }
            Kind::Blob32 => {
                let len = u32::from_be_bytes(self.array(at)?);
                self.bytes(at, at + 4, len as usize)?
            }
            Kind::I64 => (Scalar::Int(i64::from_be_bytes(self.array(at)?)), at + 8),
            Kind::F64 => {
                let value = f64::from_be_bytes(self.array(at)?);
                if value.is_nan() {
                    return Err(Stop::bad(Malformed::BadNumber, at));
                }
                (Scalar::Double(value), at + 8)
            }
            Kind::U16 => (Scalar::Int(i64::from(u16::from_be_bytes(self.array(at)?))), at + 2),
            Kind::U8 => (Scalar::Int(i64::from(self.array::<1>(at)?[0])), at + 1),
            Kind::Enum(values) => {
                let [value] = self.array(at)?;
                let words = values.get(usize::from(value)).ok_or(Stop::bad(Malformed::BadEnum, at))?;
                (Scalar::Words(words), at + 1)
            }
            // The table has only scalars inside lists and options, and `fields` handles those itself.
            Kind::List(_) | Kind::Options(_) => return Err(Stop::bad(Malformed::UnknownOpcode, at)),
        })
    }

    fn count_argument(&self, walk: &mut Walk) -> Step<()> {
        if walk.arguments >= self.limits.arguments_max {
            let kind = if self.limits.unauthenticated {
                Malformed::UnauthenticatedArguments
            } else {
                Malformed::TooManyArguments
            };
            return Err(Stop::bad(kind, walk.at));
        }
        walk.arguments += 1;
        Ok(())
    }

    fn hand_out(&mut self, value: Scalar<'a>, walk: &mut Walk) -> Step<()> {
        if let Scalar::Words(words) = value {
            return self.words(words, walk);
        }
        self.count_argument(walk)?;
        self.emit(value);
        Ok(())
    }

    fn words(&mut self, words: &'static [&'static str], walk: &mut Walk) -> Step<()> {
        for word in words {
            self.count_argument(walk)?;
            self.args.keyword(word);
        }
        Ok(())
    }

    fn emit(&mut self, value: Scalar<'a>) {
        match value {
            Scalar::Bytes(offset, bytes) => self.args.bytes(offset, bytes),
            Scalar::Int(value) => self.args.int(value),
            Scalar::Double(value) => self.args.double(value),
            Scalar::Words(words) => words.iter().for_each(|word| self.args.keyword(word)),
        }
    }

    /// Hands out one column of a transposed list that is there as a whole, from the item at `place` on: a second pass
    /// over its lengths.
    fn column(&mut self, list: &'static List, column: usize, place: &mut usize, end: usize) -> Step<()> {
        while *place < end {
            self.ask_for_room()?;
            let mut at = *place;
            for (index, item) in list.items.iter().enumerate() {
                let (value, next) = self.scalar(item, at)?;
                if index == column {
                    self.emit(value);
                }
                at = next;
            }
            *place = at;
        }
        Ok(())
    }

    /// Stops where the visitor can take no more.
    #[inline(always)]
    fn ask_for_room(&self) -> Step<()> {
        if self.args.has_room() { Ok(()) } else { Err(Stop::FULL) }
    }
}
