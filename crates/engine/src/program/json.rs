//! Owns: JSON texts as trees that keep what a plain tree loses: the order of members, that a name stands twice, and
//! whether a number is an integer. Does not own: the grammar of JSON (`serde_json`), what a tree means.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

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

/// From this on a double says no integer exactly that a text may have meant.
const FLOAT_MAX: f64 = 9_223_372_036_854_775_808.0;

impl Json {
    /// Reads a text. The error says line and column.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
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
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Json, E> {
        i64::try_from(value).map(Json::Int).map_err(|_| E::custom("an integer beyond 64 bits"))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Json, E> {
        // Digits too many for an integer come as a double, which has lost some of them.
        if value.abs() >= FLOAT_MAX {
            return Err(E::custom("a number beyond 64 bits: write it as a string"));
        }
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
        let mut names = std::collections::HashSet::new();
        while let Some((name, value)) = map.next_entry::<String, Json>()? {
            if !names.insert(name.clone()) {
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
            ("1e300", "beyond 64 bits"),
            ("[1,", "EOF"),
            ("[1] x", "trailing"),
            ("\"\u{1}\"", "control character"),
            ("01", "number"),
            ("NaN", "expected"),
        ] {
            let error = Json::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(part) && error.contains("line 1"), "{text}: {error}");
        }
        let deep = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert!(Json::parse(&deep(127)).is_ok() && Json::parse(&deep(128)).is_err());
    }
}
