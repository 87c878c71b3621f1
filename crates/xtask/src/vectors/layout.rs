//! A frame of one command, built byte by byte from its layout: the naive encoder that the codec is checked against.
//!
//! It owns what each field type is on the wire and in the argument form, and knows nothing of `crates/protocol`. Which
//! values go in is a [`Plan`]; where each field landed is remembered, so that an invalid frame can name its offset.

use std::borrow::Cow;

use super::argument::{Arg, Args};
use super::bytes::Bytes;
use crate::model::Command;
use crate::respb::{Bit, Count, Field, FieldType, Layout, Order};

/// How long byte fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// The field's own name.
    Name,
    /// So many bytes.
    Exact(usize),
    /// 65,535 for `str16`, 65,536 for `blob32`.
    Max,
}

/// What integer fields hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// 1, 2, 3 … in the order of the fields.
    Counting,
    /// The least that the field can hold.
    Least,
    /// The greatest that the field can hold.
    Greatest,
    /// 0
    Zero,
    /// −1 in signed fields, 1 in others.
    MinusOne,
}

/// The values of a frame's fields.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Option bits, as they stand on the wire.
    pub bits: u16,
    /// Byte fields.
    pub length: Length,
    /// Integer fields.
    pub number: Number,
    /// Double fields: the value and its canonical text.
    pub double: (f64, Cow<'static, str>),
    /// The enumeration at this index of the layout has this value; others have value 0.
    pub choice: (usize, usize),
    /// The list at this index of the layout has so many items; others have as few as the command takes.
    pub list: Option<(usize, usize)>,
    /// The field of this path is these bytes instead.
    pub raw: Option<(String, Vec<u8>)>,
    /// The channel.
    pub channel: u16,
}

impl Plan {
    /// The smallest frame.
    pub const SMALLEST: Plan = Plan {
        bits: 0,
        length: Length::Name,
        number: Number::Counting,
        double: (1.5, Cow::Borrowed("1.5")),
        choice: (0, 0),
        list: None,
        raw: None,
        channel: 0,
    };
}

/// A frame and what it means.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The frame.
    pub wire: Bytes,
    /// Its arguments without the name.
    pub args: Args,
    /// The option bits, where the layout has any.
    pub options: Option<u16>,
    /// Every list has as many items as the command needs.
    pub complete: bool,
    /// Path, type and offset of each field.
    pub fields: Vec<(String, FieldType, usize)>,
}

impl Sample {
    /// Offset of the field of this path.
    ///
    /// # Panics
    /// When there is none: the caller has the path from the same layout.
    #[must_use]
    pub fn offset(&self, path: &str) -> usize {
        let found = self.fields.iter().find(|(name, ..)| name == path);
        found.map(|(.., offset)| *offset).expect("the path comes from the layout")
    }
}

/// `[opcode u16][channel u16]`
#[must_use]
pub fn header(opcode: u16, channel: u16) -> Bytes {
    Bytes::of(&opcode.to_be_bytes()).and(&channel.to_be_bytes())
}

/// A frame that carries its length.
#[must_use]
pub fn long_frame(opcode: u16, channel: u16, payload: &Bytes) -> Bytes {
    header(opcode, channel).and(&(payload.len() as u32).to_be_bytes()).join(payload)
}

/// An ARGV frame.
#[must_use]
pub fn argv_frame(channel: u16, args: &Args) -> Bytes {
    header(0xF001, channel).join(&args.sized())
}

/// The header of a command's frame, with the module's numbers.
///
/// # Panics
/// When the command has no opcode; `xtask commands check` refuses such a table.
#[must_use]
pub fn command_header(command: &Command, channel: u16) -> Bytes {
    let respb = command.respb.as_ref().expect("every command has an opcode");
    let mut wire = header(respb.opcode.0, channel);
    if let (Some(module), Some(number)) = (respb.module, respb.command) {
        wire.push(&module.0.to_be_bytes());
        wire.push(&number.0.to_be_bytes());
    }
    wire
}

/// The fields of a typed layout.
#[must_use]
pub fn fields(command: &Command) -> Option<&[Field]> {
    match command.respb.as_ref()?.layout()? {
        Layout::Typed(fields) => Some(fields),
        Layout::Args | Layout::Via(_) => None,
    }
}

/// Builds the frame of a command with a typed layout.
#[must_use]
pub fn sample(command: &Command, fields: &[Field], plan: &Plan) -> Sample {
    let wire = command_header(command, plan.channel);
    let sample = Sample { wire, args: Args::default(), options: None, complete: true, fields: Vec::new() };
    let mut builder = Builder { plan, sample, letter: 0, number: 0 };
    for (index, field) in fields.iter().enumerate() {
        match field.kind {
            FieldType::List16 => builder.list(index, field),
            FieldType::Opts8 => builder.options(field),
            _ => {
                builder.words(field.token.as_deref());
                let (args, wire) =
                    builder.scalar(&field.name, field, plan.choice == (index, plan.choice.1), 0);
                args.into_iter().for_each(|arg| builder.sample.args.push(arg));
                builder.sample.wire.append(&wire);
            }
        }
    }
    builder.sample
}

struct Builder<'a> {
    plan: &'a Plan,
    sample: Sample,
    letter: u8,
    number: i64,
}

impl Builder<'_> {
    fn words(&mut self, token: Option<&str>) {
        for word in token.into_iter().flat_map(|token| token.split(' ')) {
            self.sample.args.push(Arg::Keyword(word.into()));
        }
    }

    fn mark(&mut self, path: &str, kind: FieldType) {
        self.sample.fields.push((path.into(), kind, self.sample.wire.len()));
    }

    /// A scalar's arguments and bytes. `chosen`: the plan's choice is for this field. `row`: the item of a list.
    fn scalar(&mut self, path: &str, field: &Field, chosen: bool, row: usize) -> (Vec<Arg>, Bytes) {
        self.mark(path, field.kind);
        let (args, wire) = self.value(field, chosen, row);
        match &self.plan.raw {
            Some((raw_path, raw)) if raw_path == path => (args, Bytes::of(raw)),
            _ => (args, wire),
        }
    }

    fn value(&mut self, field: &Field, chosen: bool, row: usize) -> (Vec<Arg>, Bytes) {
        match field.kind {
            FieldType::Str16 => {
                let bytes = self.bytes(field, row, 0xFFFF);
                let wire = Bytes::of(&(bytes.len() as u16).to_be_bytes()).join(&bytes);
                (vec![Arg::Bytes(bytes)], wire)
            }
            FieldType::Blob32 => {
                let bytes = self.bytes(field, row, 0x1_0000);
                let wire = Bytes::of(&(bytes.len() as u32).to_be_bytes()).join(&bytes);
                (vec![Arg::Bytes(bytes)], wire)
            }
            FieldType::I64 => {
                let value = self.int(i64::MIN, i64::MAX);
                (vec![Arg::Int(value)], Bytes::of(&value.to_be_bytes()))
            }
            FieldType::U16 => {
                let value = self.int(0, 0xFFFF);
                (vec![Arg::Int(value)], Bytes::of(&(value as u16).to_be_bytes()))
            }
            FieldType::U8 if field.values.is_empty() => {
                let value = self.int(0, 0xFF);
                (vec![Arg::Int(value)], Bytes::of(&[value as u8]))
            }
            FieldType::U8 => {
                let index = if chosen { self.plan.choice.1 } else { 0 };
                let words = field.values[index].split(' ').map(|word| Arg::Keyword(word.into())).collect();
                (words, Bytes::of(&[index as u8]))
            }
            FieldType::F64 => {
                let (value, text) = self.plan.double.clone();
                (vec![Arg::Double(value, text)], Bytes::of(&value.to_be_bytes()))
            }
            FieldType::List16 | FieldType::Opts8 => (Vec::new(), Bytes::new()),
        }
    }

    fn bytes(&mut self, field: &Field, row: usize, max: usize) -> Bytes {
        let len = match self.plan.length {
            Length::Name if row == 0 => return Bytes::from(field.name.as_str()),
            Length::Name => return Bytes::from(format!("{}{}", field.name, row + 1).as_str()),
            Length::Exact(len) => len,
            Length::Max => max,
        };
        // Another letter for each field, so that two fields in each other's place are seen.
        let letter = b'a' + self.letter % 26;
        self.letter += 1;
        Bytes::repeated(&[letter], len)
    }

    fn int(&mut self, least: i64, greatest: i64) -> i64 {
        self.number += 1;
        match self.plan.number {
            Number::Counting => self.number,
            Number::Least => least,
            Number::Greatest => greatest,
            Number::Zero => 0,
            Number::MinusOne => least.max(-1) + i64::from(least == 0),
        }
    }

    fn list(&mut self, index: usize, field: &Field) {
        let least = usize::from(field.min.unwrap_or(0));
        let count = match self.plan.list {
            Some((list, count)) if list == index => count,
            _ => least,
        };
        self.sample.complete &= count >= least;
        self.mark(&field.name, FieldType::List16);
        self.words(field.token.as_deref());
        if field.count == Some(Count::Argument) {
            self.sample.args.push(Arg::Int(count as i64));
        }
        self.sample.wire.push(&(count as u16).to_be_bytes());
        // A few items differ from each other; many are one item, repeated.
        let (rows, times) = if count <= 2 { (count, 1) } else { (1, count) };
        let mut columns: Vec<Vec<Arg>> = vec![Vec::new(); field.items.len()];
        for row in 0..rows {
            let (mut item_args, mut item_wire) = (Vec::new(), Bytes::new());
            for (column, item) in field.items.iter().enumerate() {
                let path = format!("{}.{}", field.name, item.name);
                let base = self.sample.wire.len() + item_wire.len();
                let (args, wire) = self.scalar(&path, item, false, row);
                if let Some((.., offset)) = self.sample.fields.last_mut() {
                    *offset = base;
                }
                columns[column].extend(args.iter().cloned());
                item_args.extend(args);
                item_wire.append(&wire);
            }
            if field.order != Some(Order::Transposed) {
                self.sample.args.push_repeat(item_args, times);
            }
            if times == 1 {
                self.sample.wire.append(&item_wire);
            } else {
                self.sample.wire.push_repeat(&item_wire.expand(), times);
            }
        }
        if field.order == Some(Order::Transposed) {
            for column in columns.into_iter().filter(|column| !column.is_empty()) {
                self.sample.args.push_repeat(column, times);
            }
        }
    }

    fn options(&mut self, field: &Field) {
        self.mark(&field.name, field.kind);
        let bits = self.plan.bits;
        self.sample.options = Some(bits);
        self.sample.wire.push(&[bits as u8]);
        for (_, bit) in field.bits.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1) {
            self.option(field, bit);
        }
    }

    fn option(&mut self, field: &Field, bit: &Bit) {
        self.words(bit.token.as_deref());
        for inner in &bit.fields {
            let path = format!("{}.{}.{}", field.name, bit.label(), inner.name);
            let (args, wire) = self.scalar(&path, inner, false, 0);
            args.into_iter().for_each(|arg| self.sample.args.push(arg));
            self.sample.wire.append(&wire);
        }
    }
}
