//! Owns: the values that programs compute with, what they are compared and calculated as, and their texts. Does not
//! own: expressions (`super::expr`), where values come from.
//!
//! A text is bytes. One that is the canonical text of a number (what the number would be written as) compares and
//! calculates as that number, since the keyspace keeps numbers as texts; `05` and `1e3` are texts and no numbers. All
//! values have one order: null, false, true, numbers, texts bytewise, lists and objects element by element.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use weft_protocol::number;

use super::budget::LITTLE_BYTES;
use super::bytes::Bytes;
use super::json::Json;

/// Members of an object, in the order of their names' bytes.
pub type Members = BTreeMap<Box<[u8]>, Value>;

/// A value. Copies share what is large.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Nothing: a missing key, field or member.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A double, which is no NaN.
    Float(f64),
    /// Bytes.
    Text(Bytes),
    /// A list.
    List(Arc<Whole<Vec<Value>>>),
    /// An object.
    Object(Arc<Whole<Members>>),
}

/// What is inside of a list or an object, and how much all of it is. It does not change.
#[derive(Clone, Debug, Default)]
pub struct Whole<T> {
    inside: T,
    extent: Extent,
}

impl<T> Deref for Whole<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inside
    }
}

/// How much a value is to somebody who goes through all of it, at every level, and meets what is shared each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Levels of lists and objects.
    pub depth: u32,
    /// Values, with those inside.
    pub values: u64,
    /// Bytes of texts and names.
    pub bytes: u64,
}

impl Extent {
    /// Puts another one inside of it.
    fn hold(mut self, inside: Self) -> Self {
        self.depth = self.depth.max(inside.depth.saturating_add(1));
        self.and(inside)
    }
    /// Both, one behind the other.
    #[must_use]
    pub const fn and(mut self, other: Self) -> Self {
        self.values = self.values.saturating_add(other.values);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self
    }
    /// What a comparison of two goes through at most.
    #[must_use]
    pub fn lesser(self, other: Self) -> Self {
        if self.values <= other.values { self } else { other }
    }
    /// What a list or an object begins with.
    const EMPTY: Self = Self { depth: 1, values: 1, bytes: 0 };
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// A double, which is no NaN.
    Float(f64),
}

/// 2^63, which is the first double beyond the integers.
const INT_END: f64 = 9_223_372_036_854_775_808.0;

impl Number {
    /// As a double.
    #[must_use]
    pub const fn float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
    /// Exactly, also between an integer and a double.
    #[must_use]
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(one), Self::Int(two)) => one.cmp(&two),
            (Self::Float(one), Self::Float(two)) => one.partial_cmp(&two).unwrap_or(Ordering::Equal),
            (Self::Int(one), Self::Float(two)) => compare_mixed(one, two),
            (Self::Float(one), Self::Int(two)) => compare_mixed(two, one).reverse(),
        }
    }
}

fn compare_mixed(int: i64, float: f64) -> Ordering {
    if float >= INT_END {
        return Ordering::Less;
    }
    if float < -INT_END {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    // It lies inside the integers, so it is one.
    int.cmp(&(whole as i64)).then(0.0_f64.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal))
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(value) => Self::Int(value),
            Number::Float(value) => Self::Float(value),
        }
    }
}

impl Value {
    /// A text.
    #[must_use]
    pub fn text(bytes: &[u8]) -> Self {
        Self::Text(bytes.into())
    }
    /// A list.
    #[must_use]
    pub fn list(elements: Vec<Self>) -> Self {
        let extent = elements.iter().fold(Extent::EMPTY, |all, element| all.hold(element.extent()));
        Self::List(Arc::new(Whole { inside: elements, extent }))
    }
    /// An object.
    #[must_use]
    pub fn object(members: Members) -> Self {
        let extent = members.iter().fold(Extent::EMPTY, |mut all, (name, member)| {
            all.bytes = all.bytes.saturating_add(name.len() as u64);
            all.hold(member.extent())
        });
        Self::Object(Arc::new(Whole { inside: members, extent }))
    }
    /// The members of an object, to be changed and made an object again; what is none comes back.
    pub fn into_members(self) -> Result<Members, Self> {
        match self {
            Self::Object(whole) => {
                Ok(Arc::try_unwrap(whole).unwrap_or_else(|shared| (*shared).clone()).inside)
            }
            other => Err(other),
        }
    }
    /// How much it is.
    #[must_use]
    pub fn extent(&self) -> Extent {
        match self {
            Self::List(list) => list.extent,
            Self::Object(members) => members.extent,
            Self::Text(text) => Extent { depth: 0, values: 1, bytes: text.len() as u64 },
            _ => Extent { depth: 0, values: 1, bytes: 0 },
        }
    }
    /// Whether going through it is worth counting: a list, an object, a long text.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        match self {
            Self::Text(text) => text.len() >= LITTLE_BYTES,
            _ => self.is_whole(),
        }
    }
    /// Whether a comparison of both may go through much: two texts, two lists or objects.
    #[inline]
    pub(super) fn is_long_beside(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(two)) => one.len().min(two.len()) >= LITTLE_BYTES,
            _ => self.is_whole() && other.is_whole(),
        }
    }
    /// Whether there are values inside of it.
    #[inline]
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        matches!(self, Self::List(_) | Self::Object(_))
    }

    /// The number that it is, or whose canonical text it is.
    #[must_use]
    pub fn number(&self) -> Option<Number> {
        match self {
            Self::Int(value) => Some(Number::Int(*value)),
            Self::Float(value) => Some(Number::Float(*value)),
            Self::Text(bytes) => canonical(bytes),
            _ => None,
        }
    }
    /// Whether a condition that gives it holds: not for null, false, 0 and what is empty.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => *value,
            Self::List(list) => !list.is_empty(),
            Self::Object(members) => !members.is_empty(),
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(bytes) => !matches!(&**bytes, b"" | b"0" | b"-0"),
        }
    }
    /// What its type is called.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "text",
            Self::List(_) => "list",
            Self::Object(_) => "object",
        }
    }
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) | Self::Float(_) => 2,
            Self::Text(bytes) => 3 - u8::from(canonical(bytes).is_some()),
            Self::List(_) => 4,
            Self::Object(_) => 5,
        }
    }
    /// The order of all values. As deep as they are, which is bounded when they are made (`Budget::check_extent`).
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        if let (Some(one), Some(two)) = (self.number(), other.number()) {
            return one.compare(two);
        }
        match (self, other) {
            (Self::Bool(one), Self::Bool(two)) => one.cmp(two),
            (Self::Text(one), Self::Text(two)) if self.rank() == other.rank() => (**one).cmp(&**two),
            (Self::List(one), Self::List(two)) => {
                let differs = one.iter().zip(two.iter()).map(|(one, two)| one.compare(two));
                let first = differs.into_iter().find(|order| order.is_ne());
                first.unwrap_or_else(|| one.len().cmp(&two.len()))
            }
            (Self::Object(one), Self::Object(two)) => {
                let pairs = one.iter().zip(two.iter());
                let mut differs = pairs.map(|((a, x), (b, y))| a.cmp(b).then_with(|| x.compare(y)));
                differs.find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&two.len()))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// Appends its text: what a command is given for it. Null, a list and an object have none.
    pub fn write_text(&self, out: &mut Vec<u8>) -> Result<(), &'static str> {
        match self {
            Self::Bool(value) => out.push(if *value { b'1' } else { b'0' }),
            Self::Int(value) => out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes()),
            Self::Float(value) => write_float(*value, out),
            Self::Text(bytes) => out.extend_from_slice(bytes),
            Self::Null | Self::List(_) | Self::Object(_) => return Err(self.type_name()),
        }
        Ok(())
    }
    /// Its text.
    pub fn to_text(&self) -> Result<Cow<'_, [u8]>, &'static str> {
        if let Self::Text(bytes) = self {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut out = Vec::new();
        self.write_text(&mut out)?;
        Ok(Cow::Owned(out))
    }
    /// It as a JSON text.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = Vec::new();
        super::text::write_json(self, &mut text);
        text
    }
    /// Bytes that a copy of its own takes, not counting what is inside a list or an object.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(bytes) => bytes.len(),
                Self::List(list) => list.len() * size_of::<Self>(),
                Self::Object(members) => members.len() * 2 * size_of::<Self>(),
                _ => 0,
            }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }
}

impl From<&Json> for Value {
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Int(value) => Self::Int(*value),
            Json::Float(value) => Self::Float(*value),
            Json::Text(text) => Self::text(text.as_bytes()),
            Json::List(list) => Self::list(list.iter().map(Self::from).collect()),
            Json::Object(members) => Self::object(
                members.iter().map(|(name, value)| (name.as_bytes().into(), Self::from(value))).collect(),
            ),
        }
    }
}

/// From 2^53 on, the shortest digits of a double without a fraction are those of another integer.
const DOUBLE_EXACT: f64 = 9_007_199_254_740_992.0;

/// A double as the keyspace writes it: the shortest digits that give it again; all digits where they are read as an
/// integer, which has to be the same number.
pub fn write_float(value: f64, out: &mut Vec<u8>) {
    if (DOUBLE_EXACT..INT_END).contains(&value.abs()) {
        return out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    }
    let mut buffer = [0; number::DOUBLE_TEXT_MAX];
    out.extend_from_slice(number::double_text(value, &mut buffer));
}

/// The number whose canonical text this is.
#[must_use]
pub fn canonical(text: &[u8]) -> Option<Number> {
    let first = *text.first()?;
    // What nearly all texts are not is seen by their first byte.
    if !(first.is_ascii_digit() || first == b'-') || text.len() > number::DOUBLE_TEXT_MAX {
        return None;
    }
    if let Some(value) = weft_store::parse_int(text) {
        return Some(Number::Int(value));
    }
    let value = crate::number::parse_double(text).filter(|value| value.is_finite())?;
    let mut out = Vec::with_capacity(number::DOUBLE_TEXT_MAX);
    write_float(value, &mut out);
    (out == text).then_some(Number::Float(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::text(text.as_bytes())
    }

    #[test]
    fn canonical_texts_are_numbers_and_others_are_texts() {
        assert_eq!(canonical(b"-5"), Some(Number::Int(-5)));
        assert_eq!(canonical(b"9223372036854775807"), Some(Number::Int(i64::MAX)));
        assert_eq!(canonical(b"1.5"), Some(Number::Float(1.5)));
        for other in ["05", "+5", "1e3", "1.50", " 1", "1 ", "", "-", "inf", "nan", "0x1", "-a", "."] {
            assert_eq!(canonical(other.as_bytes()), None, "{other}");
        }
        assert!(text("5") == Value::Int(5) && text("05") != Value::Int(5));
        assert!(text("10").compare(&text("9")).is_gt() && text("10a").compare(&text("9a")).is_lt());
    }

    #[test]
    fn the_order_is_total() {
        let all = [
            Value::Null,
            Value::Bool(false),
            Value::Bool(true),
            Value::Float(-1e18),
            Value::Int(-1),
            text("0.5"),
            Value::Int(1),
            Value::Int((1 << 53) + 1),
            Value::Float(9_007_199_254_740_994.0),
            Value::Int(i64::MAX),
            Value::Float(1e19),
            text(""),
            text("05"),
            text("a"),
            Value::list(vec![]),
            Value::list(vec![Value::Int(1)]),
            Value::list(vec![Value::Int(1), Value::Null]),
            Value::list(vec![Value::Int(2)]),
            Value::object(Members::new()),
            Value::object(Members::from([(b"a".as_slice().into(), Value::Int(1))])),
            Value::object(Members::from([(b"b".as_slice().into(), Value::Null)])),
        ];
        for (i, one) in all.iter().enumerate() {
            for (j, two) in all.iter().enumerate() {
                assert_eq!(one.compare(two), i.cmp(&j), "{one:?} {two:?}");
            }
        }
    }

    #[test]
    fn what_is_shared_counts_each_time() {
        let mut value = text("ab");
        for _ in 0..3 {
            value = Value::list(vec![value.clone(), value]);
        }
        assert_eq!(value.extent(), Extent { depth: 3, values: 15, bytes: 16 });
        let object = Value::object(Members::from([(b"name".as_slice().into(), value)]));
        assert_eq!(object.extent(), Extent { depth: 4, values: 16, bytes: 20 });
        let mut most = object;
        for _ in 0..100 {
            most = Value::list(vec![most.clone(), most]);
        }
        assert_eq!((most.extent().depth, most.extent().values), (104, u64::MAX));
        let members = most.into_members().unwrap_err();
        assert!(members.is_whole() && Value::Null.into_members().is_err());
    }

    #[test]
    fn what_is_nothing_does_not_hold() {
        for value in [Value::Null, Value::Bool(false), Value::Int(0), text(""), text("0"), Value::Float(0.0)]
        {
            assert!(!value.holds(), "{value:?}");
        }
        for value in [Value::Bool(true), Value::Int(-1), text("no"), text("00"), Value::Float(0.1)] {
            assert!(value.holds(), "{value:?}");
        }
    }
}
