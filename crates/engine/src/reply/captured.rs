//! Owns: replies that are kept as what they were written as, and read again: by who makes something else of them
//! (scripts in `logic::script::convert`, programs in `program::reply`), or writes them to a wire later. Does not own:
//! what is made of them.
//!
//! One call of the sink is one item, elements stand behind their aggregate. Large values stand among the output's
//! pins, as on every wire. Numbers are big endian.
//!
//! | item | bytes |
//! |---|---|
//! | simple, big number, bulk, double with a text | tag, u32 length, text |
//! | large bulk | tag, u32 length; the value is the next pin |
//! | verbatim | tag, format (3), u32 length, text |
//! | error | tag, u8 code, u8 length of the prefix, u32 length, line |
//! | integer, double | tag, 8 bytes |
//! | boolean | tag, 1 or 0 |
//! | null, null array | tag |
//! | aggregate | [`tag::AGGREGATES`] and its number, u32 length |

use weft_store::SharedBytes;

use super::aggregate::Kind;
use super::{Output, Pin, Protocol, ReplySink, Wire};
use crate::error::ErrorCode;

mod tag {
    pub(super) const SIMPLE: u8 = 0;
    pub(super) const ERROR: u8 = 1;
    pub(super) const INT: u8 = 2;
    pub(super) const DOUBLE: u8 = 3;
    pub(super) const DOUBLE_TEXT: u8 = 4;
    pub(super) const BOOL: u8 = 5;
    pub(super) const BIG_NUMBER: u8 = 6;
    pub(super) const BULK: u8 = 7;
    pub(super) const SHARED: u8 = 8;
    pub(super) const VERBATIM: u8 = 9;
    pub(super) const NULL: u8 = 10;
    pub(super) const NULL_ARRAY: u8 = 11;
    pub(super) const AGGREGATES: u8 = 0x80;
}

/// What a cleared reply keeps of its memory.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// A reply that is kept.
#[derive(Debug, Default)]
pub struct Captured(Output);

/// A call of the sink. Texts are what they were when they were written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'c> {
    /// A status.
    Simple(&'c str),
    /// An error.
    Error(CapturedError<'c>),
    /// An integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// A double with a text of its own.
    DoubleText(&'c str),
    /// A boolean.
    Bool(bool),
    /// A whole number of any size.
    BigNumber(&'c str),
    /// A byte string.
    Bulk(&'c [u8]),
    /// A large byte string.
    Shared(&'c SharedBytes),
    /// Text with a format.
    Verbatim([u8; 3], &'c [u8]),
    /// Null, where RESP2 has a null bulk.
    Null,
    /// Null, where RESP2 has a null array.
    NullArray,
    /// An aggregate of so many elements, or pairs; they follow.
    Open(Aggregate, usize),
}

/// An error as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedError<'c> {
    /// Its kind.
    pub code: ErrorCode,
    /// The line, its prefix first.
    pub line: &'c str,
    /// Bytes of the prefix.
    pub prefix_len: usize,
}

/// Kinds of aggregates, as handlers write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Aggregate {
    /// [`ReplySink::array`], or a deferred one.
    Array,
    /// [`ReplySink::set`].
    Set,
    /// [`ReplySink::map`].
    Map,
    /// [`ReplySink::pairs`].
    Pairs,
    /// [`ReplySink::map_of_arrays`].
    MapOfArrays,
    /// [`ReplySink::push`].
    Push,
    /// [`ReplySink::answers`].
    Answers,
    /// [`ReplySink::answer`].
    Answer,
}

impl Aggregate {
    /// All of them, in the order of their numbers.
    const ALL: [Self; 8] = [
        Self::Array,
        Self::Set,
        Self::Map,
        Self::Pairs,
        Self::MapOfArrays,
        Self::Push,
        Self::Answers,
        Self::Answer,
    ];
    /// Values that follow one of this length.
    #[must_use]
    pub const fn elements(self, len: usize) -> usize {
        match self {
            Self::Map | Self::Pairs | Self::MapOfArrays => 2 * len,
            Self::Array | Self::Set | Self::Push | Self::Answers | Self::Answer => len,
        }
    }
}

impl From<Kind> for Aggregate {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Array => Self::Array,
            Kind::Map => Self::Map,
            Kind::Set => Self::Set,
            Kind::Push => Self::Push,
        }
    }
}

impl Captured {
    /// Keeps what is written.
    pub fn of(write: impl FnOnce(&mut ReplySink<'_>)) -> Self {
        let mut captured = Self::default();
        write(&mut captured.sink());
        captured
    }
    /// What was written to an output by a sink for [`Protocol::Captured`].
    #[must_use]
    pub const fn new(output: Output) -> Self {
        Self(output)
    }
    /// Forgets what was kept, and keeps its memory, but for what few replies take.
    pub fn clear(&mut self) {
        self.0.clear();
        self.0.bytes.shrink_to(KEPT_BYTES_MAX);
    }
    /// The same if it keeps much, or values that may be gone.
    #[inline]
    pub(crate) fn clear_if_large(&mut self) {
        if self.0.bytes.len() > KEPT_BYTES_MAX || !self.0.pins.is_empty() {
            self.clear();
        }
    }
    /// What keeps more, behind what was kept.
    pub fn sink(&mut self) -> ReplySink<'_> {
        ReplySink::new(&mut self.0, Wire { protocol: Protocol::Captured, channel: 0 })
    }
    /// Bytes that are kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether nothing is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Bytes that it has in RESP of this version.
    pub(crate) fn resp_bytes(&self, resp: u8) -> usize {
        let protocol = if resp == 3 { Protocol::Resp3 } else { Protocol::Resp2 };
        let mut output = Output::default();
        self.write(&mut ReplySink::new(&mut output, Wire { protocol, channel: 0 }));
        output.len()
    }
    /// All that was written, in its order.
    #[must_use]
    pub fn items(&self) -> Items<'_> {
        Items { bytes: &self.0.bytes, pins: &self.0.pins }
    }
    /// Writes it, as if whoever wrote it had done so there.
    pub fn write(&self, sink: &mut ReplySink<'_>) {
        // Aggregates that are open, with their elements to come.
        let mut open: Vec<(Aggregate, usize)> = Vec::new();
        for item in self.items() {
            if let Some((aggregate, left)) = open.last_mut() {
                match aggregate {
                    Aggregate::Pairs if left.is_multiple_of(2) => sink.pair(),
                    Aggregate::MapOfArrays if left.is_multiple_of(2) => sink.entry(),
                    _ => {}
                }
                *left -= 1;
            }
            item.write(sink);
            if let Item::Open(aggregate, len) = item {
                open.push((aggregate, aggregate.elements(len)));
            }
            while open.last().is_some_and(|(_, left)| *left == 0) {
                open.pop();
            }
        }
    }
}

impl Item<'_> {
    fn write(&self, sink: &mut ReplySink<'_>) {
        match *self {
            Self::Simple(text) => sink.simple(text),
            Self::Error(error) => sink.error_line(error.code, error.prefix_len, error.line),
            Self::Int(value) => sink.int(value),
            Self::Double(value) => sink.double(value),
            Self::DoubleText(text) => sink.double_text(text),
            Self::Bool(value) => sink.bool(value),
            Self::BigNumber(digits) => sink.big_number(digits),
            Self::Bulk(bytes) => sink.bulk(bytes),
            Self::Shared(value) => sink.bulk_shared(value),
            Self::Verbatim(format, bytes) => sink.verbatim(format, bytes),
            Self::Null => sink.null(),
            Self::NullArray => sink.null_array(),
            Self::Open(aggregate, len) => match aggregate {
                Aggregate::Array => sink.array(len),
                Aggregate::Set => sink.set(len),
                Aggregate::Map => sink.map(len),
                Aggregate::Pairs => sink.pairs(len),
                Aggregate::MapOfArrays => sink.map_of_arrays(len),
                Aggregate::Push => sink.push(len),
                Aggregate::Answers => sink.answers(len),
                Aggregate::Answer => sink.answer(len),
            },
        }
    }
}

/// The items of a reply that is kept.
#[derive(Clone, Debug, Default)]
pub struct Items<'c> {
    bytes: &'c [u8],
    /// Large values that are still to come.
    pins: &'c [Pin],
}

impl<'c> Items<'c> {
    /// Whether the next one is an error.
    pub(crate) fn are_error(&self) -> bool {
        self.bytes.first() == Some(&tag::ERROR)
    }
    fn take(&mut self, len: usize) -> Option<&'c [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(taken)
    }
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
    fn len(&mut self) -> Option<usize> {
        Some(u32::from_be_bytes(self.array()?) as usize)
    }
    fn bulk(&mut self) -> Option<&'c [u8]> {
        let len = self.len()?;
        self.take(len)
    }
    fn text(&mut self) -> Option<&'c str> {
        std::str::from_utf8(self.bulk()?).ok()
    }
    fn error(&mut self) -> Option<CapturedError<'c>> {
        let [code, prefix_len] = self.array()?;
        let code = *ErrorCode::ALL.get(usize::from(code))?;
        Some(CapturedError { code, prefix_len: usize::from(prefix_len), line: self.text()? })
    }
    fn shared(&mut self) -> Option<&'c SharedBytes> {
        self.len()?;
        let (pin, rest) = self.pins.split_first()?;
        self.pins = rest;
        Some(&pin.value)
    }
}

impl<'c> Iterator for Items<'c> {
    type Item = Item<'c>;

    fn next(&mut self) -> Option<Item<'c>> {
        let [tag] = self.array()?;
        Some(match tag {
            tag::SIMPLE => Item::Simple(self.text()?),
            tag::ERROR => Item::Error(self.error()?),
            tag::INT => Item::Int(i64::from_be_bytes(self.array()?)),
            tag::DOUBLE => Item::Double(f64::from_be_bytes(self.array()?)),
            tag::DOUBLE_TEXT => Item::DoubleText(self.text()?),
            tag::BOOL => Item::Bool(self.array()? == [1]),
            tag::BIG_NUMBER => Item::BigNumber(self.text()?),
            tag::BULK => Item::Bulk(self.bulk()?),
            tag::SHARED => Item::Shared(self.shared()?),
            tag::VERBATIM => Item::Verbatim(self.array()?, self.bulk()?),
            tag::NULL => Item::Null,
            tag::NULL_ARRAY => Item::NullArray,
            number => {
                let aggregate = *Aggregate::ALL.get(usize::from(number.checked_sub(tag::AGGREGATES)?))?;
                Item::Open(aggregate, self.len()?)
            }
        })
    }
}

impl ReplySink<'_> {
    fn capture_text(&mut self, tag: u8, text: &[u8]) {
        self.out.bytes.reserve(text.len() + 5);
        self.capture_len(tag, text.len());
        self.out.bytes.extend_from_slice(text);
    }
    fn capture_len(&mut self, tag: u8, len: usize) {
        let [b3, b2, b1, b0] = (len as u32).to_be_bytes();
        self.out.bytes.extend_from_slice(&[tag, b3, b2, b1, b0]);
    }
    #[cold]
    pub(super) fn capture_simple(&mut self, text: &[u8]) {
        self.capture_text(tag::SIMPLE, text);
    }
    #[cold]
    pub(super) fn capture_error(&mut self, code: ErrorCode, prefix_len: usize, line: &[u8]) {
        self.out.bytes.extend_from_slice(&[tag::ERROR, code as u8, prefix_len.min(0xFF) as u8]);
        self.out.bytes.extend_from_slice(&(line.len() as u32).to_be_bytes());
        self.out.bytes.extend_from_slice(line);
    }
    #[cold]
    pub(super) fn capture_int(&mut self, value: i64) {
        self.out.bytes.push(tag::INT);
        self.out.bytes.extend_from_slice(&value.to_be_bytes());
    }
    #[cold]
    pub(super) fn capture_double(&mut self, value: f64) {
        self.out.bytes.push(tag::DOUBLE);
        self.out.bytes.extend_from_slice(&value.to_be_bytes());
    }
    #[cold]
    pub(super) fn capture_double_text(&mut self, text: &[u8]) {
        self.capture_text(tag::DOUBLE_TEXT, text);
    }
    #[cold]
    pub(super) fn capture_bool(&mut self, value: bool) {
        self.out.bytes.extend_from_slice(&[tag::BOOL, u8::from(value)]);
    }
    #[cold]
    pub(super) fn capture_big_number(&mut self, digits: &[u8]) {
        self.capture_text(tag::BIG_NUMBER, digits);
    }
    #[cold]
    pub(super) fn capture_bulk(&mut self, bytes: &[u8]) {
        self.capture_text(tag::BULK, bytes);
    }
    /// Everything of a large byte string but its bytes.
    #[cold]
    pub(super) fn capture_shared_head(&mut self, len: usize) {
        self.capture_len(tag::SHARED, len);
    }
    #[cold]
    pub(super) fn capture_verbatim(&mut self, format: [u8; 3], bytes: &[u8]) {
        self.out.bytes.push(tag::VERBATIM);
        self.out.bytes.extend_from_slice(&format);
        self.out.bytes.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.out.bytes.extend_from_slice(bytes);
    }
    #[cold]
    pub(super) fn capture_null(&mut self) {
        self.out.bytes.push(tag::NULL);
    }
    #[cold]
    pub(super) fn capture_null_array(&mut self) {
        self.out.bytes.push(tag::NULL_ARRAY);
    }
    #[cold]
    pub(super) fn capture_head(&mut self, aggregate: Aggregate, len: usize) {
        self.capture_len(tag::AGGREGATES + aggregate as u8, len);
    }
}
