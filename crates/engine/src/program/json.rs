//! Owns: JSON texts as trees that keep what a plain tree loses: the order of members, that a name stands twice, and
//! whether a number is an integer; what reading one takes. Does not own: the grammar of JSON (`serde_json`), what a
//! tree means, who pays for reading it.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::value::canonical;

/// How long reading a byte of JSON takes at most.
pub(super) const JSON_BYTE_NS: u64 = 2;
/// How long reading a value of JSON and making it a program's takes at most, beside its bytes.
pub(super) const JSON_VALUE_NS: u64 = 250;
/// What a value takes in memory while it is read, beside its bytes.
pub(super) const JSON_VALUE_BYTES: u64 = 128;

/// How many values a text has at most, said by its bytes before it is read: names are among them.
pub(super) fn values_in(text: &[u8]) -> u64 {
    1 + text.iter().filter(|byte| b",:[{".contains(byte)).count() as u64
}

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// null.
    Null,
    /// true, false.
    Bool(bool),
    /// A number without a point or an exponent.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object: members in the order of the text, each name once.
    Object(Vec<(String, Json)>),
}

/// Digits from which on an integer may be beyond 64 bits.
const LONG_DIGITS: usize = 19;

impl Json {
    /// Reads a text. The error says line and column.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let json = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        long_integer(text).map_or(Ok(json), |at| {
            let line_begins = text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let line = 1 + text[..at].iter().filter(|byte| **byte == b'\n').count();
            let column = at - line_begins + 1;
            Err(format!("an integer beyond 64 bits: write it as a string at line {line} column {column}"))
        })
    }
    /// What a message calls it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
    /// A member of an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }
}

/// Where a JSON text has an integer beyond 64 bits that would lose digits: one that is no double as it is written.
fn long_integer(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if byte == b'"' {
            at += 1;
            while let Some(&byte) = text.get(at).filter(|byte| **byte != b'"') {
                at += if byte == b'\\' { 2 } else { 1 };
            }
            at += 1;
        } else if byte == b'-' || byte.is_ascii_digit() {
            let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
            let len = text[at..].iter().take_while(|byte| is_part(byte)).count();
            let number = &text[at..at + len];
            let is_long = len >= LONG_DIGITS && !number.iter().any(|byte| b".eE".contains(byte));
            if is_long && canonical(number).is_none() {
                return Some(at);
            }
            at += len;
        } else {
            at += 1;
        }
    }
    None
}

/// Names of members that are compared one by one.
const FEW_NAMES: usize = 8;

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value))
    }
    // Digits too many for an integer come as a double too: whether that has lost some is looked at afterwards.
    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(i64::try_from(value).map_or(Json::Float(value as f64), Json::Int))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }
    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }
    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = seq.next_element()? {
            list.push(element);
        }
        Ok(Json::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut names = HashSet::new();
        while let Some((name, value)) = map.next_entry::<String, Json>()? {
            let stands_twice = if members.len() < FEW_NAMES {
                members.iter().any(|(other, _)| *other == name)
            } else {
                if names.is_empty() {
                    names.extend(members.iter().map(|(name, _)| name.clone()));
                }
                !names.insert(name.clone())
            };
            if stands_twice {
                return Err(de::Error::custom(format!("the member \"{name}\" stands twice")));
            }
            members.push((name, value));
        }
        Ok(Json::Object(members))
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Value;
    use super::*;

    #[test]
    fn texts_keep_order_and_integers_and_refuse_what_would_be_lost() {
        let text = br#"{"b":1,"a":[-9223372036854775808,9223372036854775807,1.5,1e3,"\u00e9",null,true]}"#;
        let Json::Object(members) = Json::parse(text).unwrap() else { panic!("an object") };
        assert_eq!((members[0].0.as_str(), members[1].0.as_str()), ("b", "a"));
        let Json::List(list) = &members[1].1 else { panic!("a list") };
        assert_eq!(list[..3], [Json::Int(i64::MIN), Json::Int(i64::MAX), Json::Float(1.5)]);
        assert_eq!(list[3..], [Json::Float(1000.0), Json::Text("é".into()), Json::Null, Json::Bool(true)]);
        for (text, part) in [
            ("{\"a\":1,\"a\":2}", "stands twice"),
            ("9223372036854775808", "beyond 64 bits"),
            ("-9223372036854775809", "beyond 64 bits"),
            ("[\"9223372036854775808\\\"\",1,18446744073709551615]", "beyond 64 bits"),
            ("1e999", "out of range"),
            ("[1,", "EOF"),
            ("[1] x", "trailing"),
            ("\"\u{1}\"", "control character"),
            ("01", "number"),
            ("NaN", "expected"),
        ] {
            let error = Json::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(part) && error.contains("line 1"), "{text}: {error}");
        }
        // A double as it is written by itself has lost nothing.
        for text in ["1e+300", "1e300", "-1e19", "9223372036854775808.0", "1.7976931348623157e+308"] {
            let read = Json::parse(text.as_bytes());
            assert_eq!(read, Ok(Json::Float(text.parse().unwrap())), "{text}");
        }
        let mut bits = 7_u64;
        for _ in 0..10_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(bits ^ bits >> 29);
            if value.is_finite() {
                // Half of them between 2^53 and 2^63, where digits are an integer's.
                let value = if bits & 1 == 0 { value } else { value.abs().log2().abs() * 9e15 };
                let read = Json::parse(&Value::Float(value).to_json());
                assert_eq!(Value::from(&read.unwrap()), Value::Float(value), "{value:e}");
            }
        }
        let deep = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert!(Json::parse(&deep(127)).is_ok() && Json::parse(&deep(128)).is_err());
    }
}
