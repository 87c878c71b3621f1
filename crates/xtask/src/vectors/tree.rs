//! A reply as a tree: its JSON, its shortest frame on RESPB, its lines in RESP2 and RESP3.
//!
//! It owns the naive encoders of replies, which know nothing of `crates/protocol`.

use serde_json::{Value as Json, json};

use super::bytes::Bytes;

/// A reply.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A status.
    Simple(Bytes),
    /// An error.
    Error(Bytes),
    /// A byte string.
    Bulk(Bytes),
    /// An integer.
    Int(i64),
    /// A double and its canonical text.
    Double(f64, &'static str),
    /// A boolean.
    Bool(bool),
    /// Null.
    Null,
    /// `*-1`
    NullArray,
    /// A whole number of any size.
    Big(Bytes),
    /// Text with its format.
    Verbatim(&'static str, Bytes),
    /// A list.
    Array(Vec<Tree>),
    /// Pairs.
    Map(Vec<(Tree, Tree)>),
    /// Members.
    Set(Vec<Tree>),
    /// A push.
    Push(Vec<Tree>),
    /// Pairs about a value, and the value.
    Attribute(Vec<(Tree, Tree)>, Box<Tree>),
    /// An array of one element many times.
    Many(Box<Tree>, usize),
    /// A value so many levels down, each an aggregate of it alone. JSON readers dislike depth.
    Nest(Nest, usize, Box<Tree>),
}

/// What a level of [`Tree::Nest`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nest {
    /// An array of one.
    Array,
    /// A set of one.
    Set,
    /// A map of the key `k` and the value.
    MapValue,
    /// A map of the value as key and null.
    MapKey,
}

impl Nest {
    /// Every kind and its name.
    pub const ALL: [(&'static str, Nest); 4] = [
        ("array", Nest::Array),
        ("set", Nest::Set),
        ("map_value", Nest::MapValue),
        ("map_key", Nest::MapKey),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, nest)| *nest == self).map_or("", |(name, _)| name)
    }

    /// One level around a tree, or an empty aggregate of the kind.
    #[must_use]
    pub fn around(self, tree: Option<Tree>) -> Tree {
        match self {
            Nest::Array => Tree::Array(tree.into_iter().collect()),
            Nest::Set => Tree::Set(tree.into_iter().collect()),
            Nest::MapValue => Tree::Map(tree.into_iter().map(|tree| (bulk("k"), tree)).collect()),
            Nest::MapKey => Tree::Map(tree.into_iter().map(|tree| (tree, Tree::Null)).collect()),
        }
    }

    /// The outermost level written out.
    fn level(self, depth: usize, inner: &Tree) -> Tree {
        let inner = inner.clone();
        self.around(Some(if depth == 1 { inner } else { Tree::Nest(self, depth - 1, Box::new(inner)) }))
    }
}

/// Short for tests and tables.
#[must_use]
pub fn bulk(text: &str) -> Tree {
    Tree::Bulk(Bytes::from(text))
}

/// A bulk of so many bytes.
#[must_use]
pub fn bulk_of(len: usize) -> Tree {
    Tree::Bulk(Bytes::repeated(b"b", len))
}

impl Tree {
    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let all = |trees: &[Tree]| Json::Array(trees.iter().map(Tree::to_json).collect());
        let pairs = |pairs: &[(Tree, Tree)]| {
            Json::Array(pairs.iter().map(|(key, value)| json!([key.to_json(), value.to_json()])).collect())
        };
        match self {
            Tree::Simple(text) => json!({"simple": text.to_value()}),
            Tree::Error(text) => json!({"error": text.to_value()}),
            Tree::Bulk(text) => json!({"bulk": text.to_value()}),
            Tree::Int(value) => json!({"int": value.to_string()}),
            Tree::Double(value, text) => json!({"double": text, "bits": format!("{:016x}", value.to_bits())}),
            Tree::Bool(value) => json!({"bool": value}),
            Tree::Null => json!({"null": true}),
            Tree::NullArray => json!({"null_array": true}),
            Tree::Big(digits) => json!({"big": digits.to_value()}),
            Tree::Verbatim(format, text) => json!({"verbatim": [format, text.to_value()]}),
            Tree::Array(trees) => json!({"array": all(trees)}),
            Tree::Map(members) => json!({"map": pairs(members)}),
            Tree::Set(trees) => json!({"set": all(trees)}),
            Tree::Push(trees) => json!({"push": all(trees)}),
            Tree::Attribute(members, value) => json!({"attribute": pairs(members), "value": value.to_json()}),
            Tree::Nest(kind, depth, tree) => {
                json!({"nest": kind.name(), "depth": depth, "value": tree.to_json()})
            }
            Tree::Many(tree, count) => json!({"array": [{"repeat": [tree.to_json()], "count": count}]}),
        }
    }

    /// Bytes of the longest text in it.
    #[must_use]
    pub fn text_len(&self) -> usize {
        match self {
            Tree::Simple(text)
            | Tree::Error(text)
            | Tree::Bulk(text)
            | Tree::Big(text)
            | Tree::Verbatim(_, text) => text.len(),
            Tree::Array(trees) | Tree::Set(trees) | Tree::Push(trees) => {
                trees.iter().map(Tree::text_len).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// The shortest frame on RESPB.
    #[must_use]
    pub fn to_respb(&self, channel: u16) -> Bytes {
        let (head, payload) = self.short_head().unwrap_or_else(|| {
            let (kind, payload) = self.typed();
            (0x8000 | u16::from(kind), payload)
        });
        Bytes::of(&head.to_be_bytes()).and(&channel.to_be_bytes()).join(&payload)
    }

    /// Forms with a number or a length in the opcode.
    fn short_head(&self) -> Option<(u16, Bytes)> {
        match self {
            Tree::Int(value @ 0..=255) => Some((0x8100 + *value as u16, Bytes::new())),
            Tree::Bulk(text) if text.len() <= 255 => Some((0x8200 + text.len() as u16, text.clone())),
            Tree::Simple(text) if text.len() <= 255 && *text != Bytes::from("OK") => {
                Some((0x8300 + text.len() as u16, text.clone()))
            }
            _ => None,
        }
    }

    /// As an element: a tag, and what it announces.
    #[must_use]
    pub fn to_element(&self) -> Bytes {
        match self {
            Tree::Int(value @ -1..=62) => Bytes::of(&[(0x41 + value) as u8]),
            Tree::Bulk(text) if text.len() <= 127 => Bytes::of(&[0x80 + text.len() as u8]).join(text),
            _ => {
                let (kind, payload) = self.typed();
                Bytes::of(&[kind]).join(&payload)
            }
        }
    }

    /// Type and payload.
    fn typed(&self) -> (u8, Bytes) {
        let sized32 = |text: &Bytes| Bytes::of(&(text.len() as u32).to_be_bytes()).join(text);
        let sized16 = |text: &Bytes| Bytes::of(&(text.len() as u16).to_be_bytes()).join(text);
        let count = |count: usize| Bytes::of(&(count as u32).to_be_bytes());
        let all =
            |trees: &[Tree]| trees.iter().fold(count(trees.len()), |out, tree| out.join(&tree.to_element()));
        let pairs = |pairs: &[(Tree, Tree)]| {
            let pair = |out: Bytes, (key, value): &(Tree, Tree)| {
                out.join(&key.to_element()).join(&value.to_element())
            };
            pairs.iter().fold(count(pairs.len()), pair)
        };
        match self {
            Tree::Simple(text) if *text == Bytes::from("OK") => (0x00, Bytes::new()),
            Tree::Simple(text) => (0x0B, sized16(text)),
            Tree::Error(text) if text.len() <= 0xFFFF => (0x01, sized16(text)),
            Tree::Error(text) => (0x0F, sized32(text)),
            Tree::Bulk(text) => (0x03, sized32(text)),
            Tree::Int(value) => match i32::try_from(*value) {
                Ok(value) => (0x10, Bytes::of(&value.to_be_bytes())),
                Err(_) => (0x02, Bytes::of(&value.to_be_bytes())),
            },
            // One NaN stands for all.
            Tree::Double(value, _) if value.is_nan() => {
                (0x07, Bytes::of(&0x7FF8_0000_0000_0000u64.to_be_bytes()))
            }
            Tree::Double(value, _) => (0x07, Bytes::of(&value.to_be_bytes())),
            Tree::Bool(value) => (0x06, Bytes::of(&[u8::from(*value)])),
            Tree::Null | Tree::NullArray => (0x05, Bytes::new()),
            Tree::Big(digits) => (0x0C, sized32(digits)),
            Tree::Verbatim(format, text) => (0x0D, Bytes::from(*format).join(&sized32(text))),
            Tree::Array(trees) => (0x04, all(trees)),
            Tree::Map(members) => (0x08, pairs(members)),
            Tree::Set(trees) => (0x09, all(trees)),
            Tree::Push(trees) => (0x0A, all(trees)),
            Tree::Nest(kind, depth, tree) => kind.level(*depth, tree).typed(),
            Tree::Attribute(members, value) => (0x0E, pairs(members).join(&value.to_element())),
            Tree::Many(tree, times) => {
                (0x04, count(*times).join(&Bytes::repeated(&tree.to_element().expand(), *times)))
            }
        }
    }

    /// The lines in RESP3; in RESP2 where the tree has only types of RESP2.
    #[must_use]
    pub fn to_resp(&self, version: u8) -> Bytes {
        let line = |kind: &str, text: &str| Bytes::from(format!("{kind}{text}\r\n").as_str());
        let sized = |kind: &str, text: &Bytes| line(kind, &text.len().to_string()).join(text).and(b"\r\n");
        let all = |kind: &str, trees: &[Tree]| {
            trees
                .iter()
                .fold(line(kind, &trees.len().to_string()), |out, tree| out.join(&tree.to_resp(version)))
        };
        let pairs = |kind: &str, pairs: &[(Tree, Tree)]| {
            let pair = |out: Bytes, (key, value): &(Tree, Tree)| {
                out.join(&key.to_resp(version)).join(&value.to_resp(version))
            };
            pairs.iter().fold(line(kind, &pairs.len().to_string()), pair)
        };
        match self {
            Tree::Simple(text) => Bytes::from("+").join(text).and(b"\r\n"),
            Tree::Error(text) if text.expand().contains(&b'\n') => sized("!", text),
            Tree::Error(text) => Bytes::from("-").join(text).and(b"\r\n"),
            Tree::Bulk(text) => sized("$", text),
            Tree::Int(value) => line(":", &value.to_string()),
            Tree::Double(_, text) => line(",", text),
            Tree::Bool(value) => line("#", if *value { "t" } else { "f" }),
            Tree::Null if version == 2 => line("$", "-1"),
            Tree::NullArray if version == 2 => line("*", "-1"),
            Tree::Null | Tree::NullArray => line("_", ""),
            Tree::Big(digits) => Bytes::from("(").join(digits).and(b"\r\n"),
            Tree::Verbatim(format, text) => {
                sized("=", &Bytes::from(format!("{format}:").as_str()).join(text))
            }
            Tree::Array(trees) => all("*", trees),
            Tree::Map(members) => pairs("%", members),
            Tree::Set(trees) => all("~", trees),
            Tree::Push(trees) => all(">", trees),
            Tree::Nest(kind, depth, tree) => kind.level(*depth, tree).to_resp(version),
            Tree::Attribute(members, value) => pairs("|", members).join(&value.to_resp(version)),
            Tree::Many(tree, times) => {
                line("*", &times.to_string()).join(&Bytes::repeated(&tree.to_resp(version).expand(), *times))
            }
        }
    }
}
