//! Encoding requests: the typed layout where it says exactly the same as the arguments, an ARGV frame otherwise.
//!
//! Owns the way back from the argument form to a layout (spec section 6). It either finds the typed frame whose
//! decoding gives these arguments back, or gives up and writes ARGV, which says everything.

use alloc::vec::Vec;

use super::frame::{ARGV, MODULE, PASSTHROUGH};
use super::walk::check_bits;
use crate::buffer::Buffer;
use crate::number::{parse_double, parse_int};
use crate::request::{Arg, Arguments, Texts};
use crate::resp;
use crate::table::{self, Bit, CommandId, Field, Kind, Layout, List, Opcode, Options};

/// How faithful a frame must be to the bytes of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every byte: decoding gives back exactly these arguments. What a converter wants.
    Exact,
    /// The meaning: names and options in any case, options in any order. What a client wants.
    Fold,
}

/// Appends requests for one channel to a buffer.
#[derive(Debug)]
pub struct RequestWriter<'a, B = Vec<u8>> {
    pub(super) out: &'a mut B,
    pub(super) channel: u16,
}

/// The arguments do not fit the layout.
struct Unfit;

impl<'a, B: Buffer> RequestWriter<'a, B> {
    /// A writer for `channel` that appends to `out`.
    pub fn new(out: &'a mut B, channel: u16) -> Self {
        RequestWriter { out, channel }
    }

    /// Appends a command, name first, in the shortest frame that says it; returns whether that is a typed one.
    pub fn command<T: AsRef<[u8]>>(&mut self, argv: &[T], mode: Mode) -> bool {
        self.arguments(&Texts(argv), mode)
    }

    /// Like [`command`](Self::command), from arguments of any kind.
    pub fn arguments(&mut self, argv: &(impl Arguments + ?Sized), mode: Mode) -> bool {
        let typed = self.typed(argv, mode).is_some();
        if !typed {
            self.argv(argv);
        }
        typed
    }

    /// Appends an ARGV frame.
    pub fn argv(&mut self, argv: &(impl Arguments + ?Sized)) {
        self.head(ARGV);
        let start = self.out.len();
        self.sized_arguments(argv, 0);
        debug_assert!(self.out.len() > start);
    }

    /// Appends a passthrough frame with the command in RESP.
    pub fn passthrough(&mut self, argv: &(impl Arguments + ?Sized)) {
        self.head(PASSTHROUGH);
        let start = self.placeholder();
        resp::encode::request(None, argv, self.out);
        self.close(start);
    }

    fn head(&mut self, opcode: u16) {
        self.out.extend_from_slice(&opcode.to_be_bytes());
        self.out.extend_from_slice(&self.channel.to_be_bytes());
    }

    /// Room for a `u32` length.
    fn placeholder(&mut self) -> usize {
        self.out.extend_from_slice(&[0; 4]);
        self.out.len()
    }

    fn close(&mut self, start: usize) {
        let len = (self.out.len() - start) as u32;
        self.out.patch(start - 4, &len.to_be_bytes());
    }

    /// `[u32 total]`, then each argument from `first` on with its `u32` length.
    fn sized_arguments(&mut self, argv: &(impl Arguments + ?Sized), first: usize) {
        let start = self.placeholder();
        for index in first..argv.len() {
            let argument = self.placeholder();
            argv.arg(index).push_text(self.out);
            self.close(argument);
        }
        self.close(start);
    }

    /// The typed frame, if there is one that says the same.
    fn typed(&mut self, argv: &(impl Arguments + ?Sized), mode: Mode) -> Option<()> {
        if argv.is_empty() {
            return None;
        }
        let id = command_of(&argv.arg(0), mode)?;
        let start = self.out.len();
        match id.spec().opcode {
            Opcode::Core(opcode) => self.head(opcode),
            Opcode::Module { module, command } => {
                self.head(MODULE);
                self.out.extend_from_slice(&module.to_be_bytes());
                self.out.extend_from_slice(&command.to_be_bytes());
            }
        }
        match id.spec().layout {
            Layout::Args => self.sized_arguments(argv, 1),
            Layout::Fields { fields, .. } => {
                let mut matcher = Matcher { argv, next: 1, mode, out: self.out };
                if matcher.fields(fields).is_err() || matcher.next != argv.len() {
                    self.out.truncate(start);
                    return None;
                }
            }
        }
        Some(())
    }
}

fn command_of(name: &Arg<'_>, mode: Mode) -> Option<CommandId> {
    let name = match name {
        Arg::Bytes(bytes) => bytes,
        Arg::Keyword(word) => word.as_bytes(),
        Arg::Int(_) | Arg::Double(_) => return None,
    };
    let id = table::by_name(name)?;
    (mode == Mode::Fold || id.spec().name.as_bytes() == name).then_some(id)
}

/// Fits arguments to a layout and writes it.
struct Matcher<'a, A: ?Sized, B> {
    argv: &'a A,
    next: usize,
    mode: Mode,
    out: &'a mut B,
}

impl<A: Arguments + ?Sized, B: Buffer> Matcher<'_, A, B> {
    fn left(&self) -> usize {
        self.argv.len() - self.next
    }

    fn fields(&mut self, fields: &[Field]) -> Result<(), Unfit> {
        for (index, field) in fields.iter().enumerate() {
            let after = &fields[index + 1..];
            if !self.words_at(self.next, field.token) {
                return Err(Unfit);
            }
            self.next += field.token.len();
            match &field.kind {
                Kind::List(list) => self.list(list, after)?,
                Kind::Options(options) => self.options(options, arguments_min(after))?,
                _ => self.scalar(field)?,
            }
        }
        Ok(())
    }

    /// Whether these keywords stand at `index`.
    fn words_at(&self, index: usize, words: &[&str]) -> bool {
        index + words.len() <= self.argv.len()
            && words.iter().enumerate().all(|(i, word)| match self.argv.arg(index + i) {
                Arg::Bytes(bytes) if self.mode == Mode::Fold => bytes.eq_ignore_ascii_case(word.as_bytes()),
                Arg::Bytes(bytes) => bytes == word.as_bytes(),
                Arg::Keyword(given) => given == *word,
                Arg::Int(_) | Arg::Double(_) => false,
            })
    }

    fn scalar(&mut self, field: &Field) -> Result<(), Unfit> {
        if let Kind::Enum(values) = field.kind {
            let fits = values.iter().enumerate().filter(|(_, words)| self.words_at(self.next, words));
            let (value, words) = fits.max_by_key(|(_, words)| words.len()).ok_or(Unfit)?;
            self.out.push(value as u8);
            self.next += words.len();
            return Ok(());
        }
        if self.left() == 0 {
            return Err(Unfit);
        }
        self.value(field, self.next)?;
        self.next += 1;
        Ok(())
    }

    /// Writes argument `index` as a field that is one argument.
    fn value(&mut self, field: &Field, index: usize) -> Result<(), Unfit> {
        let arg = self.argv.arg(index);
        match field.kind {
            Kind::Str16 => {
                let start = self.out.len() + 2;
                self.out.extend_from_slice(&[0; 2]);
                arg.push_text(self.out);
                let len = u16::try_from(self.out.len() - start).map_err(|_| Unfit)?;
                self.out.patch(start - 2, &len.to_be_bytes());
            }
            Kind::Blob32 => {
                let start = self.out.len() + 4;
                self.out.extend_from_slice(&[0; 4]);
                arg.push_text(self.out);
                let len = u32::try_from(self.out.len() - start).map_err(|_| Unfit)?;
                self.out.patch(start - 4, &len.to_be_bytes());
            }
            Kind::I64 => self.out.extend_from_slice(&int(&arg).ok_or(Unfit)?.to_be_bytes()),
            Kind::U16 => {
                let value = int(&arg).and_then(|value| u16::try_from(value).ok()).ok_or(Unfit)?;
                self.out.extend_from_slice(&value.to_be_bytes());
            }
            Kind::U8 => self.out.push(int(&arg).and_then(|value| u8::try_from(value).ok()).ok_or(Unfit)?),
            Kind::F64 => self.out.extend_from_slice(&double(&arg).ok_or(Unfit)?.to_be_bytes()),
            Kind::Enum(_) | Kind::List(_) | Kind::Options(_) => return Err(Unfit),
        }
        Ok(())
    }

    fn list(&mut self, list: &List, after: &[Field]) -> Result<(), Unfit> {
        let width = list.items.len();
        let count = if list.counted {
            if self.left() == 0 {
                return Err(Unfit);
            }
            let count = int(&self.argv.arg(self.next)).ok_or(Unfit)?;
            self.next += 1;
            usize::try_from(count).map_err(|_| Unfit)?
        } else {
            self.uncounted(after).filter(|arguments| arguments % width == 0).ok_or(Unfit)? / width
        };
        if count < usize::from(list.min) || self.left() / width < count {
            return Err(Unfit);
        }
        self.out.extend_from_slice(&u16::try_from(count).map_err(|_| Unfit)?.to_be_bytes());
        for row in 0..count {
            for (column, item) in list.items.iter().enumerate() {
                let offset = if list.transposed { column * count + row } else { row * width + column };
                self.value(item, self.next + offset)?;
            }
        }
        self.next += count * width;
        Ok(())
    }

    /// How many arguments belong to a list that does not say: all but those that later fields need, or all before the
    /// first option.
    fn uncounted(&self, after: &[Field]) -> Option<usize> {
        if let [Field { kind: Kind::Options(options), .. }] = after {
            let is_option = |index| options.bits.iter().any(|bit| self.words_at(index, bit.token));
            return Some((self.next..self.argv.len()).take_while(|&index| !is_option(index)).count());
        }
        self.left().checked_sub(arguments_min(after))
    }

    /// Options: finds which bits are given and where, then writes them in the order of the bits. `reserved` arguments
    /// at the end belong to the fields that follow.
    fn options(&mut self, options: &Options, reserved: usize) -> Result<(), Unfit> {
        let positional = options.bits.iter().any(|bit| bit.token.is_empty());
        let ordered = self.mode == Mode::Exact || positional;
        let mut found = [0usize; 16];
        let (mut bits, mut lowest) = (0u16, 0usize);
        while self.left() > reserved {
            let Some(index) = self.next_option(options, bits, lowest, reserved) else { break };
            let bit = &options.bits[index];
            if ordered && index < lowest {
                break;
            }
            (bits, lowest) = (bits | 1 << index, index + 1);
            found[index] = self.next + bit.token.len();
            self.next = found[index] + bit.fields.len();
            if self.next + reserved > self.argv.len() {
                return Err(Unfit);
            }
        }
        check_bits(options, bits).map_err(|_| Unfit)?;
        self.out.push(bits as u8);
        for (index, bit) in options.bits.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1) {
            for (offset, field) in bit.fields.iter().enumerate() {
                self.value(field, found[index] + offset)?;
            }
        }
        Ok(())
    }

    /// The bit that the next argument names; where it names none, the next positional one that it can be.
    fn next_option(&self, options: &Options, bits: u16, lowest: usize, reserved: usize) -> Option<usize> {
        let unset = |index: &usize| bits >> index & 1 == 0;
        let named = |index: &usize| {
            let bit: &Bit = &options.bits[*index];
            !bit.token.is_empty() && self.words_at(self.next, bit.token)
        };
        if let Some(index) = (0..options.bits.len()).filter(unset).find(named) {
            return Some(index);
        }
        (lowest..options.bits.len()).find(|&index| {
            let bit = &options.bits[index];
            bit.token.is_empty() && bit.requires & !bits == 0 && self.left() >= bit.fields.len() + reserved
        })
    }
}

/// The fewest arguments that these fields take.
fn arguments_min(fields: &[Field]) -> usize {
    let min = |field: &Field| {
        field.token.len()
            + match &field.kind {
                Kind::Options(_) => 0,
                Kind::List(list) => usize::from(list.counted) + usize::from(list.min) * list.items.len(),
                _ => 1,
            }
    };
    fields.iter().map(min).sum()
}

fn int(arg: &Arg<'_>) -> Option<i64> {
    match *arg {
        Arg::Int(value) => Some(value),
        Arg::Bytes(text) => parse_int(text),
        Arg::Double(_) | Arg::Keyword(_) => None,
    }
}

/// The greatest whole number up to which every one is a double.
const DOUBLE_WHOLE_MAX: u64 = 1 << 53;

fn double(arg: &Arg<'_>) -> Option<f64> {
    match *arg {
        Arg::Double(value) => (!value.is_nan()).then_some(value),
        Arg::Int(value) => (value.unsigned_abs() <= DOUBLE_WHOLE_MAX).then_some(value as f64),
        Arg::Bytes(text) => parse_double(text),
        Arg::Keyword(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::*;

    #[test]
    fn a_set_is_written_as_its_arguments_are() {
        for (key, value) in [(0, 0), (1, 0), (3, 5), (255, 256), (65_535, 1), (65_536, 70_000)] {
            let (key, value) = (vec![b'k'; key], vec![b'v'; value]);
            let (mut short, mut long) = (Vec::new(), Vec::new());
            RequestWriter::new(&mut short, 7).set(&key, &value);
            let argv = [Arg::Keyword("SET"), Arg::Bytes(&key), Arg::Bytes(&value)];
            RequestWriter::new(&mut long, 7).arguments(&argv[..], Mode::Exact);
            assert_eq!(short, long);
        }
    }
}
