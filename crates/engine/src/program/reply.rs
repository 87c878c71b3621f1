//! Owns: what a command has answered as a value, and a value as an answer. Does not own: how replies are kept
//! (`crate::reply`).

use super::value::{Members, Value};
use crate::reply::{Aggregate, Item, Items, ReplySink};

/// The value of a reply that was kept: a map is an object, a set and everything else with elements a list; a status is
/// its text.
pub(crate) fn value_of(items: &mut Items<'_>) -> Value {
    let Some(item) = items.next() else { return Value::Null };
    match item {
        Item::Simple(text) | Item::BigNumber(text) => Value::text(text.as_bytes()),
        Item::Error(error) => Value::text(error.line.as_bytes()),
        Item::Int(value) => Value::Int(value),
        Item::Double(value) => double(value),
        Item::DoubleText(text) => text.parse().map_or(Value::Null, double),
        Item::Bool(value) => Value::Bool(value),
        Item::Bulk(bytes) | Item::Verbatim(_, bytes) => Value::text(bytes),
        Item::Shared(bytes) => Value::text(bytes.as_slice()),
        Item::Null | Item::NullArray => Value::Null,
        Item::Open(Aggregate::Map, len) => {
            let mut members = Members::new();
            for _ in 0..len {
                let name = value_of(items);
                let value = value_of(items);
                if let Ok(name) = name.to_text() {
                    members.insert(name.into(), value);
                }
            }
            Value::object(members)
        }
        Item::Open(Aggregate::Pairs | Aggregate::MapOfArrays, len) => {
            let pair = |items: &mut Items<'_>| Value::list(vec![value_of(items), value_of(items)]);
            Value::list((0..len).map(|_| pair(items)).collect())
        }
        Item::Open(_, len) => Value::list((0..len).map(|_| value_of(items)).collect()),
    }
}

/// A double; one that is no finite number is its text.
fn double(value: f64) -> Value {
    if value.is_finite() { Value::Float(value) } else { Value::text(value.to_string().as_bytes()) }
}

impl Value {
    /// Answers it.
    pub(crate) fn answer(&self, sink: &mut ReplySink<'_>) {
        match self {
            Self::Null => sink.null(),
            Self::Bool(value) => sink.bool(*value),
            Self::Int(value) => sink.int(*value),
            Self::Float(value) => sink.double(*value),
            Self::Text(bytes) => sink.bulk(bytes),
            Self::List(list) => {
                sink.array(list.len());
                list.iter().for_each(|element| element.answer(sink));
            }
            Self::Object(members) => {
                sink.map(members.len());
                for (name, value) in members.iter() {
                    sink.bulk(name);
                    value.answer(sink);
                }
            }
        }
    }
}
