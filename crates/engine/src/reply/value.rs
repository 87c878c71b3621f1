//! Owns: a reply as a tree. Does not own: how it is kept until somebody asks (`super::captured`).

use weft_store::SharedBytes;

use super::captured::{Aggregate, CapturedError, Item};
use crate::error::Error;

/// A reply. It is as deep as its command has written it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A status.
    Simple(Box<str>),
    /// An error.
    Error(Error),
    /// An integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// A boolean.
    Bool(bool),
    /// A whole number of any size, in digits.
    BigNumber(Box<str>),
    /// A byte string.
    Bulk(Box<[u8]>),
    /// A large byte string, which is the stored one.
    Shared(SharedBytes),
    /// Text with a format of three letters.
    Verbatim([u8; 3], Box<[u8]>),
    /// Null.
    Null,
    /// RESP2's other null.
    NullArray,
    /// A list.
    Array(Vec<Value>),
    /// Members.
    Set(Vec<Value>),
    /// Keys and values.
    Map(Vec<(Value, Value)>),
    /// Pairs that are a flat list in RESP2.
    Pairs(Vec<(Value, Value)>),
    /// Keys and lists, which are a list of pairs in RESP2.
    MapOfArrays(Vec<(Value, Value)>),
    /// A push.
    Push(Vec<Value>),
}

/// An aggregate whose elements are not all there.
struct Partial {
    aggregate: Aggregate,
    left: usize,
    elements: Vec<Value>,
}

impl Value {
    /// The first reply of a list of items, if it is whole.
    pub(super) fn of<'c>(items: impl Iterator<Item = Item<'c>>) -> Option<Self> {
        let mut open: Vec<Partial> = Vec::new();
        for item in items {
            let mut value = match Self::leaf(item) {
                Ok(value) => value,
                Err((aggregate, len)) => {
                    let left = aggregate.elements(len);
                    // Elements that are announced have been written, in no less than a byte each.
                    let partial = Partial { aggregate, left, elements: Vec::with_capacity(left) };
                    if left > 0 {
                        open.push(partial);
                        continue;
                    }
                    partial.whole()
                }
            };
            loop {
                let Some(mut parent) = open.pop() else { return Some(value) };
                parent.elements.push(value);
                parent.left -= 1;
                if parent.left > 0 {
                    open.push(parent);
                    break;
                }
                value = parent.whole();
            }
        }
        None
    }

    /// What an item is by itself, or the aggregate that begins with it.
    fn leaf(item: Item<'_>) -> Result<Self, (Aggregate, usize)> {
        Ok(match item {
            Item::Simple(text) => Self::Simple(text.into()),
            Item::Error(error) => Self::Error(error.into()),
            Item::Int(value) => Self::Int(value),
            Item::Double(value) => Self::Double(value),
            Item::DoubleText(text) => Self::Double(text.parse().unwrap_or(f64::NAN)),
            Item::Bool(value) => Self::Bool(value),
            Item::BigNumber(digits) => Self::BigNumber(digits.into()),
            Item::Bulk(bytes) => Self::Bulk(bytes.into()),
            Item::Shared(value) => Self::Shared(value.clone()),
            Item::Verbatim(format, bytes) => Self::Verbatim(format, bytes.into()),
            Item::Null => Self::Null,
            Item::NullArray => Self::NullArray,
            Item::Open(aggregate, len) => return Err((aggregate, len)),
        })
    }
}

impl Partial {
    fn whole(self) -> Value {
        match self.aggregate {
            Aggregate::Array | Aggregate::Answers | Aggregate::Answer => Value::Array(self.elements),
            Aggregate::Set => Value::Set(self.elements),
            Aggregate::Push => Value::Push(self.elements),
            Aggregate::Map => Value::Map(pairs(self.elements)),
            Aggregate::Pairs => Value::Pairs(pairs(self.elements)),
            Aggregate::MapOfArrays => Value::MapOfArrays(pairs(self.elements)),
        }
    }
}

fn pairs(elements: Vec<Value>) -> Vec<(Value, Value)> {
    let mut elements = elements.into_iter();
    std::iter::from_fn(|| elements.next().zip(elements.next())).collect()
}

impl From<CapturedError<'_>> for Error {
    fn from(error: CapturedError<'_>) -> Self {
        let (prefix, text) = error.line.split_at(error.prefix_len);
        let own = (prefix != error.code.prefix()).then(|| prefix.into());
        Self { code: error.code, text: text.trim_start_matches(' ').to_owned().into(), prefix: own }
    }
}
