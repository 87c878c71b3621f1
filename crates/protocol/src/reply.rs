//! What a decoder of replies hands out, and the same as an owned tree.
//!
//! Owns [`ReplyVisitor`] and [`Reply`]. Knows no encoding: RESP2, RESP3 and RESPB replies give the same calls.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::limits::{Limits, NESTING_MAX};
use crate::outcome::{Malformed, Step, Stop};

/// Kinds of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// A status such as `OK`.
    Simple,
    /// An error, its code first.
    Error,
    /// A byte string.
    Bulk,
    /// A whole number of any size, in decimal digits.
    BigNumber,
    /// Text with a format of three bytes (`txt`, `mkd`).
    Verbatim([u8; 3]),
}

/// Kinds of aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// A list.
    Array,
    /// Pairs.
    Map,
    /// Members, in no order.
    Set,
    /// Not a reply: something that the server sends of its own accord.
    Push,
    /// Pairs about the value that follows; no value of their own.
    Attribute,
}

impl Aggregate {
    /// Elements for each unit of the announced length.
    pub const fn width(self) -> u64 {
        match self {
            Aggregate::Map | Aggregate::Attribute => 2,
            Aggregate::Array | Aggregate::Set | Aggregate::Push => 1,
        }
    }
}

/// Receives one reply, value by value, aggregates before their elements. Text comes with its offset from the start of
/// the frame, because the buffer may have moved by the time a reply that arrives in pieces is whole.
pub trait ReplyVisitor {
    /// Text.
    fn text(&mut self, kind: Text, offset: usize, bytes: &[u8]);
    /// An integer.
    fn int(&mut self, value: i64);
    /// A double.
    fn double(&mut self, value: f64);
    /// A boolean.
    fn boolean(&mut self, value: bool);
    /// Null; `array` where RESP2 says so with `*-1`.
    fn null(&mut self, array: bool);
    /// An aggregate of so many elements (pairs for maps and attributes); no length when it is streamed.
    fn open(&mut self, kind: Aggregate, len: Option<u32>);
    /// The end of a streamed aggregate or text.
    fn close(&mut self);
    /// A streamed byte string: chunks follow as texts, then [`close`](Self::close).
    fn open_text(&mut self);
    /// Whether one more call can be taken. Told that it cannot, a decoder hands out no more of the frame and answers
    /// [`Incomplete`](crate::Outcome::Incomplete) with a `need` that is there already; called again with the same
    /// bytes, when there is room, it goes on.
    #[inline(always)]
    fn has_room(&self) -> bool {
        true
    }
    /// Where the value stands that was handed out last, from its type to its last byte, and of an aggregate what comes
    /// before its elements: for tools that show frames.
    #[inline]
    fn span(&mut self, start: usize, end: usize) {
        let _ = (start, end);
    }
}

/// Visits nothing: where a reply, or a request, ends is all that is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed;

impl ReplyVisitor for Passed {
    fn text(&mut self, _: Text, _: usize, _: &[u8]) {}
    fn int(&mut self, _: i64) {}
    fn double(&mut self, _: f64) {}
    fn boolean(&mut self, _: bool) {}
    fn null(&mut self, _: bool) {}
    fn open(&mut self, _: Aggregate, _: Option<u32>) {}
    fn close(&mut self) {}
    fn open_text(&mut self) {}
}

/// The aggregates that are open while a reply is read, and how many elements each still lacks.
#[derive(Clone, Debug)]
pub(crate) struct Nesting {
    left: [u64; NESTING_MAX as usize],
    /// Aggregate i is an attribute, whose end completes no value.
    attributes: Levels,
    /// Aggregate i is a streamed map.
    maps: Levels,
    /// Aggregate i, a streamed map, has a key without its value.
    odd: Levels,
    /// An attribute has been read whose value must follow.
    owed: bool,
    depth: u8,
}

/// A bit for each level. Not a `u128`, which would ask C callers for memory aligned to 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Levels([u64; NESTING_MAX as usize / 64]);

impl Levels {
    const NONE: Levels = Levels([0; NESTING_MAX as usize / 64]);

    fn get(&self, level: usize) -> bool {
        self.0[level / 64] >> (level % 64) & 1 == 1
    }

    fn set(&mut self, level: usize, value: bool) {
        let word = &mut self.0[level / 64];
        *word = *word & !(1 << (level % 64)) | u64::from(value) << (level % 64);
    }
}

/// Elements of a streamed aggregate: it ends by its own mark.
const STREAMED: u64 = u64::MAX;

impl Nesting {
    pub(crate) const NONE: Nesting = Nesting {
        left: [0; NESTING_MAX as usize],
        attributes: Levels::NONE,
        maps: Levels::NONE,
        odd: Levels::NONE,
        owed: false,
        depth: 0,
    };

    /// Opens an aggregate; returns whether that completed the reply, which an empty one at the top does.
    pub(crate) fn open(
        &mut self,
        kind: Aggregate,
        len: Option<u32>,
        limits: &Limits,
        at: usize,
    ) -> Step<bool> {
        if kind == Aggregate::Push && self.depth > 0 {
            return Err(Stop::bad(Malformed::Misplaced, at));
        }
        if len.is_some_and(|len| len > limits.elements_max) {
            return Err(Stop::bad(Malformed::TooManyElements, at));
        }
        if self.depth >= limits.nesting_max.min(NESTING_MAX) {
            return Err(Stop::bad(Malformed::TooDeep, at));
        }
        let left = len.map_or(STREAMED, |len| u64::from(len) * kind.width());
        let attribute = kind == Aggregate::Attribute;
        self.owed = attribute && left == 0;
        if left == 0 {
            return Ok(!attribute && self.complete_one());
        }
        let level = usize::from(self.depth);
        self.left[level] = left;
        self.attributes.set(level, attribute);
        self.maps.set(level, kind == Aggregate::Map && len.is_none());
        self.odd.set(level, false);
        self.depth += 1;
        Ok(false)
    }

    /// A value is complete; returns whether the reply is.
    pub(crate) fn complete_one(&mut self) -> bool {
        self.owed = false;
        while self.depth > 0 {
            let top = usize::from(self.depth - 1);
            if self.left[top] == STREAMED {
                self.odd.set(top, self.maps.get(top) && !self.odd.get(top));
                return false;
            }
            self.left[top] -= 1;
            if self.left[top] != 0 {
                return false;
            }
            self.depth -= 1;
            if self.attributes.get(top) {
                self.owed = true;
                return false;
            }
        }
        true
    }

    /// The end of a streamed aggregate; returns whether the reply is complete.
    pub(crate) fn end_stream(&mut self, at: usize) -> Step<bool> {
        match self.depth.checked_sub(1) {
            Some(top) if self.left[usize::from(top)] == STREAMED => {
                if self.owed {
                    return Err(Stop::bad(Malformed::Misplaced, at));
                }
                if self.odd.get(usize::from(top)) {
                    return Err(Stop::bad(Malformed::BadStream, at));
                }
                self.depth = top;
                Ok(self.complete_one())
            }
            _ => Err(Stop::bad(Malformed::BadStream, at)),
        }
    }
}

/// A reply as an owned tree.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// A status.
    Simple(Vec<u8>),
    /// An error, its code first.
    Error(Vec<u8>),
    /// A byte string.
    Bulk(Vec<u8>),
    /// An integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// A boolean.
    Bool(bool),
    /// A whole number of any size.
    BigNumber(Vec<u8>),
    /// Text with its format.
    Verbatim([u8; 3], Vec<u8>),
    /// Null.
    Null,
    /// RESP2's other null, `*-1`.
    NullArray,
    /// A list.
    Array(Vec<Reply>),
    /// Pairs.
    Map(Vec<(Reply, Reply)>),
    /// Members.
    Set(Vec<Reply>),
    /// A push.
    Push(Vec<Reply>),
    /// A value with attributes.
    Attributed(Vec<(Reply, Reply)>, Box<Reply>),
}

impl Reply {
    /// Hands the tree to a visitor, as a decoder would; with an encoder as the visitor, encodes it.
    pub fn visit(&self, visitor: &mut impl ReplyVisitor) {
        match self {
            Reply::Simple(bytes) => visitor.text(Text::Simple, 0, bytes),
            Reply::Error(bytes) => visitor.text(Text::Error, 0, bytes),
            Reply::Bulk(bytes) => visitor.text(Text::Bulk, 0, bytes),
            Reply::BigNumber(bytes) => visitor.text(Text::BigNumber, 0, bytes),
            Reply::Verbatim(format, bytes) => visitor.text(Text::Verbatim(*format), 0, bytes),
            Reply::Int(value) => visitor.int(*value),
            Reply::Double(value) => visitor.double(*value),
            Reply::Bool(value) => visitor.boolean(*value),
            Reply::Null => visitor.null(false),
            Reply::NullArray => visitor.null(true),
            Reply::Array(elements) => Self::visit_all(Aggregate::Array, elements, visitor),
            Reply::Set(elements) => Self::visit_all(Aggregate::Set, elements, visitor),
            Reply::Push(elements) => Self::visit_all(Aggregate::Push, elements, visitor),
            Reply::Map(pairs) => Self::visit_pairs(Aggregate::Map, pairs, visitor),
            Reply::Attributed(pairs, value) => {
                Self::visit_pairs(Aggregate::Attribute, pairs, visitor);
                value.visit(visitor);
            }
        }
    }

    fn visit_all(kind: Aggregate, elements: &[Reply], visitor: &mut impl ReplyVisitor) {
        visitor.open(kind, Some(elements.len() as u32));
        elements.iter().for_each(|element| element.visit(visitor));
    }

    fn visit_pairs(kind: Aggregate, pairs: &[(Reply, Reply)], visitor: &mut impl ReplyVisitor) {
        visitor.open(kind, Some(pairs.len() as u32));
        for (key, value) in pairs {
            key.visit(visitor);
            value.visit(visitor);
        }
    }
}

/// Builds a [`Reply`] from the calls of a decoder. Grows by what has arrived.
#[derive(Debug, Default)]
pub struct ReplyBuilder {
    open: Vec<Open>,
    streamed_text: Option<Vec<u8>>,
    done: Option<Reply>,
}

#[derive(Debug)]
struct Open {
    kind: Aggregate,
    /// Elements to come; none for a streamed aggregate.
    left: Option<u64>,
    elements: Vec<Reply>,
}

impl ReplyBuilder {
    /// A builder for one reply after another.
    pub fn new() -> Self {
        Self::default()
    }

    /// The reply, once the decoder said that it is complete.
    pub fn take(&mut self) -> Option<Reply> {
        self.open.clear();
        self.streamed_text = None;
        self.done.take()
    }

    fn push(&mut self, mut value: Reply) {
        loop {
            // Attributes read before this value, at the same level, wrap it; the last one read is innermost.
            while let Some(top) = self.open.last()
                && top.kind == Aggregate::Attribute
                && top.left == Some(0)
            {
                let Some(attribute) = self.open.pop() else { return };
                value = Reply::Attributed(pairs(attribute.elements), Box::new(value));
            }
            let Some(top) = self.open.last_mut() else {
                self.done = Some(value);
                return;
            };
            top.elements.push(value);
            if let Some(left) = &mut top.left {
                *left -= 1;
            }
            match self.finish_top() {
                Some(aggregate) => value = aggregate,
                None => return,
            }
        }
    }

    /// The innermost aggregate as a value, if it is full. A full attribute stays until its value comes.
    fn finish_top(&mut self) -> Option<Reply> {
        self.open.pop_if(|top| top.left == Some(0) && top.kind != Aggregate::Attribute).map(Open::into_reply)
    }
}

impl Open {
    fn into_reply(self) -> Reply {
        match self.kind {
            Aggregate::Array => Reply::Array(self.elements),
            Aggregate::Map | Aggregate::Attribute => Reply::Map(pairs(self.elements)),
            Aggregate::Set => Reply::Set(self.elements),
            Aggregate::Push => Reply::Push(self.elements),
        }
    }
}

fn pairs(elements: Vec<Reply>) -> Vec<(Reply, Reply)> {
    let mut elements = elements.into_iter();
    let mut pairs = Vec::with_capacity(elements.len() / 2);
    while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
        pairs.push((key, value));
    }
    pairs
}

impl ReplyVisitor for ReplyBuilder {
    fn text(&mut self, kind: Text, _offset: usize, bytes: &[u8]) {
        if let Some(text) = &mut self.streamed_text {
            text.extend_from_slice(bytes);
            return;
        }
        let bytes = bytes.to_vec();
        self.push(match kind {
            Text::Simple => Reply::Simple(bytes),
            Text::Error => Reply::Error(bytes),
            Text::Bulk => Reply::Bulk(bytes),
            Text::BigNumber => Reply::BigNumber(bytes),
            Text::Verbatim(format) => Reply::Verbatim(format, bytes),
        });
    }
    fn int(&mut self, value: i64) {
        self.push(Reply::Int(value));
    }
    fn double(&mut self, value: f64) {
        self.push(Reply::Double(value));
    }
    fn boolean(&mut self, value: bool) {
        self.push(Reply::Bool(value));
    }
    fn null(&mut self, array: bool) {
        self.push(if array { Reply::NullArray } else { Reply::Null });
    }
    fn open(&mut self, kind: Aggregate, len: Option<u32>) {
        let left = len.map(|len| u64::from(len) * kind.width());
        self.open.push(Open { kind, left, elements: Vec::new() });
        if let Some(empty) = self.finish_top() {
            self.push(empty);
        }
    }
    fn close(&mut self) {
        if let Some(text) = self.streamed_text.take() {
            self.push(Reply::Bulk(text));
            return;
        }
        if let Some(top) = self.open.last_mut() {
            top.left = Some(0);
        }
        if let Some(aggregate) = self.finish_top() {
            self.push(aggregate);
        }
    }
    fn open_text(&mut self) {
        self.streamed_text = Some(Vec::new());
    }
}
