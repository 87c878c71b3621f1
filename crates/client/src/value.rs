//! Owns the way from a reply to a type of Rust. Does not own what a command answers.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use weft_protocol::Reply;

use crate::error::{Error, Result};

/// Types that a reply can be turned into. Numbers are also read from text, which is how RESP2 carries them.
pub trait FromReply: Sized {
    /// The type's name in errors.
    const NAME: &'static str;

    /// Turns a reply into the type. Attributes have been taken off.
    fn from_reply(reply: Reply) -> Result<Self>;
}

/// The value below any attributes.
fn plain(mut reply: Reply) -> Reply {
    while let Reply::Attributed(_, value) = reply {
        reply = *value;
    }
    reply
}

pub(crate) fn convert<T: FromReply>(reply: Reply) -> Result<T> {
    T::from_reply(plain(reply))
}

/// The bytes of any text.
fn bytes(reply: Reply) -> Result<Vec<u8>, Reply> {
    match reply {
        Reply::Simple(bytes) | Reply::Bulk(bytes) | Reply::BigNumber(bytes) | Reply::Verbatim(_, bytes) => {
            Ok(bytes)
        }
        other => Err(other),
    }
}

impl FromReply for Reply {
    const NAME: &'static str = "reply";
    fn from_reply(reply: Reply) -> Result<Self> {
        Ok(reply)
    }
}

impl FromReply for () {
    const NAME: &'static str = "reply";
    fn from_reply(_: Reply) -> Result<Self> {
        Ok(())
    }
}

impl FromReply for Vec<u8> {
    const NAME: &'static str = "byte string";
    fn from_reply(reply: Reply) -> Result<Self> {
        match reply {
            Reply::Int(value) => Ok(value.to_string().into_bytes()),
            other => bytes(other).map_err(|other| Error::convert(Self::NAME, &other)),
        }
    }
}

impl FromReply for String {
    const NAME: &'static str = "string";
    fn from_reply(reply: Reply) -> Result<Self> {
        String::from_utf8(Vec::from_reply(reply)?)
            .map_err(|error| Error::convert("UTF-8 string", &Reply::Bulk(error.into_bytes())))
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl FromReply for $type {
            const NAME: &'static str = stringify!($type);
            fn from_reply(reply: Reply) -> Result<Self> {
                let value = match &reply {
                    Reply::Int(value) => <$type>::try_from(*value).ok(),
                    Reply::Bool(value) => Some(<$type>::from(*value)),
                    Reply::Bulk(text) | Reply::Simple(text) | Reply::BigNumber(text) => {
                        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
                    }
                    _ => None,
                };
                value.ok_or_else(|| Error::convert(Self::NAME, &reply))
            }
        }
    )*};
}

integers!(i64, u64, i32, u32, u16, usize);

impl FromReply for f64 {
    const NAME: &'static str = "double";
    fn from_reply(reply: Reply) -> Result<Self> {
        let value = match &reply {
            Reply::Double(value) => Some(*value),
            Reply::Int(value) => Some(*value as f64),
            Reply::Bulk(text) | Reply::Simple(text) => {
                std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
            }
            _ => None,
        };
        value.ok_or_else(|| Error::convert(Self::NAME, &reply))
    }
}

/// True is 1, `true` or OK; a null, as a SET that a condition kept from setting gives it, is false.
impl FromReply for bool {
    const NAME: &'static str = "boolean";
    fn from_reply(reply: Reply) -> Result<Self> {
        match &reply {
            Reply::Bool(value) => Ok(*value),
            Reply::Int(0) | Reply::Null | Reply::NullArray => Ok(false),
            Reply::Int(1) => Ok(true),
            Reply::Simple(text) if text == b"OK" => Ok(true),
            Reply::Bulk(text) if text == b"0" || text == b"1" => Ok(text == b"1"),
            _ => Err(Error::convert(Self::NAME, &reply)),
        }
    }
}

impl<T: FromReply> FromReply for Option<T> {
    const NAME: &'static str = T::NAME;
    fn from_reply(reply: Reply) -> Result<Self> {
        match reply {
            Reply::Null | Reply::NullArray => Ok(None),
            other => T::from_reply(other).map(Some),
        }
    }
}

/// The elements of an array, a set or a push; those of a map key by key and value by value.
fn elements(reply: Reply) -> Result<Vec<Reply>, Reply> {
    match reply {
        Reply::Array(elements) | Reply::Set(elements) | Reply::Push(elements) => Ok(elements),
        Reply::Map(pairs) => Ok(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect()),
        other => Err(other),
    }
}

macro_rules! vectors {
    ($($type:ty),*) => {$(
        impl FromReply for Vec<$type> {
            const NAME: &'static str = "array";
            fn from_reply(reply: Reply) -> Result<Self> {
                let elements = elements(reply).map_err(|other| Error::convert(Self::NAME, &other))?;
                elements.into_iter().map(convert).collect()
            }
        }
    )*};
}

// Not for every `T`: a `Vec<u8>` is a byte string.
vectors!(
    Reply,
    Vec<u8>,
    String,
    i64,
    u64,
    f64,
    bool,
    Option<Vec<u8>>,
    Option<String>,
    Option<i64>,
    Option<f64>
);

macro_rules! tuples {
    ($($len:literal: $($name:ident)*;)*) => {$(
        impl<$($name: FromReply),*> FromReply for ($($name,)*) {
            const NAME: &'static str = concat!("array of ", $len);
            fn from_reply(reply: Reply) -> Result<Self> {
                let wrong = |reply: &Reply| Error::convert(Self::NAME, reply);
                let elements = elements(reply).map_err(|other| wrong(&other))?;
                let elements: [Reply; $len] =
                    elements.try_into().map_err(|elements| wrong(&Reply::Array(elements)))?;
                let mut elements = elements.into_iter();
                Ok(($(convert::<$name>(elements.next().unwrap_or(Reply::Null))?,)*))
            }
        }
    )*};
}

tuples! {
    2: A B;
    3: A B C;
    4: A B C D;
}

/// Key and value, from a map, or from the flat array that RESP2 has instead, or from pairs.
fn pairs(reply: Reply) -> Result<Vec<(Reply, Reply)>> {
    let elements = match reply {
        Reply::Map(pairs) => return Ok(pairs),
        Reply::Array(elements) => elements,
        other => return Err(Error::convert("map", &other)),
    };
    if elements.iter().all(|element| matches!(element, Reply::Array(pair) if pair.len() == 2)) {
        return elements.into_iter().map(convert::<(Reply, Reply)>).collect();
    }
    if elements.len() % 2 == 1 {
        return Err(Error::convert("map", &Reply::Array(elements)));
    }
    let mut elements = elements.into_iter();
    let mut pairs = Vec::with_capacity(elements.len() / 2);
    while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
        pairs.push((key, value));
    }
    Ok(pairs)
}

impl<K: FromReply + Eq + Hash, V: FromReply> FromReply for HashMap<K, V> {
    const NAME: &'static str = "map";
    fn from_reply(reply: Reply) -> Result<Self> {
        pairs(reply)?.into_iter().map(|(key, value)| Ok((convert(key)?, convert(value)?))).collect()
    }
}

impl<K: FromReply + Ord, V: FromReply> FromReply for BTreeMap<K, V> {
    const NAME: &'static str = "map";
    fn from_reply(reply: Reply) -> Result<Self> {
        pairs(reply)?.into_iter().map(|(key, value)| Ok((convert(key)?, convert(value)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    #[test]
    fn replies_of_every_protocol_convert() {
        assert_eq!(convert::<i64>(bulk("-5")).unwrap(), -5);
        assert_eq!(convert::<f64>(bulk("1.5")).unwrap(), 1.5);
        assert_eq!(convert::<f64>(Reply::Double(f64::INFINITY)).unwrap(), f64::INFINITY);
        assert_eq!(convert::<Option<String>>(Reply::NullArray).unwrap(), None);
        assert!(convert::<bool>(Reply::Simple(b"OK".to_vec())).unwrap());
        assert!(!convert::<bool>(Reply::Null).unwrap());
        let attributed = Reply::Attributed(Vec::new(), Box::new(Reply::Int(7)));
        assert_eq!(convert::<u16>(attributed).unwrap(), 7);
        let flat = Reply::Array(vec![bulk("a"), bulk("1"), bulk("b"), bulk("2")]);
        let map = Reply::Map(vec![(bulk("a"), Reply::Int(1)), (bulk("b"), Reply::Int(2))]);
        let paired = Reply::Array(vec![
            Reply::Array(vec![bulk("a"), Reply::Double(1.0)]),
            Reply::Array(vec![bulk("b"), Reply::Double(2.0)]),
        ]);
        let expected = BTreeMap::from([("a".to_string(), 1.0), ("b".to_string(), 2.0)]);
        for reply in [flat, map, paired] {
            assert_eq!(convert::<BTreeMap<String, f64>>(reply).unwrap(), expected);
        }
        let scan = Reply::Array(vec![bulk("17"), Reply::Array(vec![bulk("k")])]);
        assert_eq!(convert::<(u64, Vec<String>)>(scan).unwrap(), (17, vec!["k".to_string()]));
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_shows_it() {
        let long = convert::<i64>(bulk(&"é".repeat(500))).unwrap_err();
        let Error::Convert { wanted: "i64", got } = &long else { panic!("{long:?}") };
        assert!(got.len() < 100);
        assert!(convert::<u16>(Reply::Int(65_536)).is_err());
        assert!(convert::<String>(Reply::Bulk(vec![0xFF])).is_err());
        assert!(convert::<(i64, i64)>(Reply::Array(vec![Reply::Int(1)])).is_err());
        assert!(convert::<HashMap<String, i64>>(Reply::Array(vec![bulk("odd")])).is_err());
    }
}
