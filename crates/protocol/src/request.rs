//! What a decoder of requests hands out: arguments, one call each, in the order of the argument form.
//!
//! Owns [`ArgVisitor`], [`Arg`] and the collecting visitor [`ArgList`]. Knows no encoding. An argument is bytes, a
//! number or a keyword of the table, so that a binary wire need not print a number which the command would parse again.

use alloc::vec::Vec;

use crate::buffer::Buffer;
use crate::number;
use crate::reply::Passed;
use crate::table::Field;

/// The most arguments that a decoder hands out without asking [`ArgVisitor::has_room`] in between.
pub const STEP_ARGUMENTS_MAX: usize = 8;

/// Receives the arguments of one request. Byte arguments come with their offset from the start of the frame, because
/// the buffer may have moved by the time a request that arrives in pieces is whole.
pub trait ArgVisitor {
    /// A byte string of the frame.
    fn bytes(&mut self, offset: usize, bytes: &[u8]);
    /// An integer field.
    fn int(&mut self, value: i64);
    /// A floating-point field. Never NaN.
    fn double(&mut self, value: f64);
    /// A keyword that the layout implies: an option's name, an enumeration's value.
    fn keyword(&mut self, word: &'static str);
    /// The bits of the option field, before the arguments that they announce. Handlers that know a command's options
    /// can read them here instead of matching keywords.
    fn options(&mut self, bits: u16) {
        let _ = bits;
    }
    /// Whether [`STEP_ARGUMENTS_MAX`] more arguments can be taken. Told that they cannot, a decoder hands out no more
    /// of the frame and answers [`Incomplete`](crate::Outcome::Incomplete) with a `need` that is there already; called
    /// again with the same bytes, when there is room, it goes on.
    #[inline(always)]
    fn has_room(&self) -> bool {
        true
    }
    /// An argument of an inline command, as it stands in the frame with its quotes and escapes; [`unquote`] resolves
    /// it.
    fn quoted(&mut self, offset: usize, raw: &[u8]);
    /// Where in a RESPB frame the field stands that is read next or was read last: for tools that show frames. Comes
    /// from the walk only; [`RequestDecoder::walking`](crate::respb::RequestDecoder::walking) takes no other way. In a
    /// frame that is fed in pieces a place may be told twice.
    #[inline]
    fn place(&mut self, place: Place) {
        let _ = place;
    }
}

impl ArgVisitor for Passed {
    #[inline(always)]
    fn bytes(&mut self, _: usize, _: &[u8]) {}
    #[inline(always)]
    fn int(&mut self, _: i64) {}
    #[inline(always)]
    fn double(&mut self, _: f64) {}
    #[inline(always)]
    fn keyword(&mut self, _: &'static str) {}
    #[inline(always)]
    fn quoted(&mut self, _: usize, _: &[u8]) {}
}

/// Where something stands in the payload of a RESPB request. Offsets count from the start of the frame.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// A field begins here: what a frame that ends or breaks before the next place lacks.
    Expected {
        /// The field.
        field: &'static Field,
        /// Its first byte.
        at: usize,
    },
    /// A field that is one value, its length included.
    Value {
        /// The field.
        field: &'static Field,
        /// Its first byte.
        at: usize,
        /// Behind its last byte.
        end: usize,
    },
    /// The count of a list; its items follow.
    Count {
        /// The list.
        field: &'static Field,
        /// The first of two bytes.
        at: usize,
        /// Items.
        count: u16,
    },
    /// Option bits; the fields of those that are set follow.
    Options {
        /// The options.
        field: &'static Field,
        /// The first byte.
        at: usize,
        /// The bits.
        bits: u16,
    },
    /// The total length of arguments in their own form, which follow.
    Total {
        /// The first of four bytes.
        at: usize,
        /// Bytes.
        total: u32,
    },
    /// An argument begins here.
    ExpectedArgument {
        /// The first byte of its length.
        at: usize,
    },
    /// An argument with its length.
    Argument {
        /// The first byte of its length.
        at: usize,
        /// Behind its last byte.
        end: usize,
    },
}

/// One argument of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg<'a> {
    /// Bytes, borrowed from the frame.
    Bytes(&'a [u8]),
    /// An integer that the wire carried in binary.
    Int(i64),
    /// A double that the wire carried in binary.
    Double(f64),
    /// A keyword of the command table.
    Keyword(&'static str),
}

impl Arg<'_> {
    /// Appends the argument as a text wire would carry it.
    pub fn push_text(&self, out: &mut impl Buffer) {
        match *self {
            Arg::Bytes(bytes) => out.extend_from_slice(bytes),
            Arg::Int(value) => number::push_int(out, value),
            Arg::Double(value) => number::push_double(out, value),
            Arg::Keyword(word) => out.extend_from_slice(word.as_bytes()),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Frame { offset: u32, len: u32 },
    Unquoted { offset: u32, len: u32 },
    Int(i64),
    Double(f64),
    Keyword(&'static str),
}

/// The arguments of one request, collected as spans of its frame. Reused from request to request it stops allocating;
/// it grows by what has arrived, never by what a header announces.
#[derive(Clone, Debug, Default)]
pub struct ArgList {
    slots: Vec<Slot>,
    /// Inline arguments with their quotes resolved.
    unquoted: Vec<u8>,
    options: u16,
}

impl ArgList {
    /// An empty list.
    pub const fn new() -> Self {
        ArgList { slots: Vec::new(), unquoted: Vec::new(), options: 0 }
    }

    /// Forgets the arguments and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.unquoted.clear();
        self.options = 0;
    }

    /// How many arguments there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The option bits of a typed layout, 0 where there are none.
    pub fn options(&self) -> u16 {
        self.options
    }

    /// Argument `index`; `frame` is the frame from its first byte. Panics when `index` is not below [`len`](Self::len).
    pub fn get<'a>(&'a self, frame: &'a [u8], index: usize) -> Arg<'a> {
        match self.slots[index] {
            Slot::Frame { offset, len } => Arg::Bytes(&frame[offset as usize..][..len as usize]),
            Slot::Unquoted { offset, len } => Arg::Bytes(&self.unquoted[offset as usize..][..len as usize]),
            Slot::Int(value) => Arg::Int(value),
            Slot::Double(value) => Arg::Double(value),
            Slot::Keyword(word) => Arg::Keyword(word),
        }
    }

    /// All arguments, in order.
    pub fn iter<'a>(&'a self, frame: &'a [u8]) -> impl ExactSizeIterator<Item = Arg<'a>> {
        (0..self.slots.len()).map(move |index| self.get(frame, index))
    }
}

impl ArgVisitor for ArgList {
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        // Offsets fit: a frame is at most `Limits::frame_bytes_max`, a u32.
        self.slots.push(Slot::Frame { offset: offset as u32, len: bytes.len() as u32 });
    }
    fn int(&mut self, value: i64) {
        self.slots.push(Slot::Int(value));
    }
    fn double(&mut self, value: f64) {
        self.slots.push(Slot::Double(value));
    }
    fn keyword(&mut self, word: &'static str) {
        self.slots.push(Slot::Keyword(word));
    }
    fn options(&mut self, bits: u16) {
        self.options = bits;
    }
    fn quoted(&mut self, _offset: usize, raw: &[u8]) {
        let offset = self.unquoted.len();
        unquote(raw, &mut self.unquoted);
        self.slots.push(Slot::Unquoted { offset: offset as u32, len: (self.unquoted.len() - offset) as u32 });
    }
}

/// Appends an inline argument with its quotes and escapes resolved. The decoder has checked that it is well-formed.
pub fn unquote(raw: &[u8], out: &mut impl Buffer) {
    let mut i = 0;
    let mut quote = None;
    while i < raw.len() {
        let byte = raw[i];
        i += 1;
        match quote {
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            Some(open) if byte == open => quote = None,
            Some(b'\'') if byte == b'\\' && raw.get(i) == Some(&b'\'') => {
                out.push(b'\'');
                i += 1;
            }
            Some(b'"') if byte == b'\\' && i < raw.len() => i += escape(&raw[i..], out),
            _ => out.push(byte),
        }
    }
}

/// Resolves what follows a backslash; returns how many bytes that took.
fn escape(rest: &[u8], out: &mut impl Buffer) -> usize {
    if let [b'x', high, low, ..] = *rest
        && let (Some(high), Some(low)) = ((high as char).to_digit(16), (low as char).to_digit(16))
    {
        out.push((high * 16 + low) as u8);
        return 3;
    }
    out.push(match rest[0] {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    });
    1
}

/// Arguments by index: what an encoder reads.
pub trait Arguments {
    /// How many there are.
    fn len(&self) -> usize;
    /// One of them. Panics when `index` is not below [`len`](Self::len).
    fn arg(&self, index: usize) -> Arg<'_>;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Arguments for [Arg<'_>] {
    fn len(&self) -> usize {
        <[Arg<'_>]>::len(self)
    }
    fn arg(&self, index: usize) -> Arg<'_> {
        self[index]
    }
}

/// A slice of byte strings as arguments.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a, T>(pub &'a [T]);

impl<T: AsRef<[u8]>> Arguments for Texts<'_, T> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn arg(&self, index: usize) -> Arg<'_> {
        Arg::Bytes(self.0[index].as_ref())
    }
}

/// Collected arguments with the frame that they point into.
#[derive(Clone, Copy, Debug)]
pub struct Decoded<'a> {
    /// The arguments.
    pub list: &'a ArgList,
    /// The frame, from its first byte.
    pub frame: &'a [u8],
}

impl Arguments for Decoded<'_> {
    fn len(&self) -> usize {
        self.list.len()
    }
    fn arg(&self, index: usize) -> Arg<'_> {
        self.list.get(self.frame, index)
    }
}
