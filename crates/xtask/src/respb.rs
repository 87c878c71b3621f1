//! The `respb` member of a command file: opcode and layout, as Rust values.
//!
//! It owns the description only. What a layout means on the wire stands in `spec/RESPB.md`; code that encodes and
//! decodes it is generated from these values elsewhere.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::is_false;

/// A 16-bit number that is written `"0x0307"` in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hex16(pub u16);

impl std::fmt::Display for Hex16 {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "0x{:04X}", self.0)
    }
}

impl Serialize for Hex16 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hex16 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 4);
        let number = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        number.map(Hex16).ok_or_else(|| D::Error::custom(format!("{text:?} is not 0x and four hex digits")))
    }
}

/// Opcode of every module command.
pub const MODULE_OPCODE: Hex16 = Hex16(0xF000);

/// Opcode and layout of a command. Exactly one of `via`, `layout` and `fields` is present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Respb {
    /// First two bytes of the frame.
    pub opcode: Hex16,
    /// Module number, with opcode `0xF000` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<Hex16>,
    /// Command number within the module, with opcode `0xF000` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Hex16>,
    /// A subcommand travels in its container's frame: the container's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The layout that is not made of fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<NamedLayout>,
    /// The fields of a typed layout, in wire order; empty for a frame that is only a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<Field>>,
}

/// Layouts with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamedLayout {
    /// A u32 total length, then arguments with u32 lengths.
    Args,
}

/// What follows the header of a command's frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout<'a> {
    /// These fields, in this order.
    Typed(&'a [Field]),
    /// The arguments as they are.
    Args,
    /// The frame of this container.
    Via(&'a str),
}

impl Respb {
    /// The layout; none when the file has no or more than one of the three members.
    #[must_use]
    pub fn layout(&self) -> Option<Layout<'_>> {
        match (&self.fields, self.layout, &self.via) {
            (Some(fields), None, None) => Some(Layout::Typed(fields)),
            (None, Some(NamedLayout::Args), None) => Some(Layout::Args),
            (None, None, Some(container)) => Some(Layout::Via(container)),
            _ => None,
        }
    }
}

/// Wire types of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// Bytes behind a u16 length.
    Str16,
    /// Bytes behind a u32 length.
    Blob32,
    /// Signed 64 bits.
    I64,
    /// IEEE double.
    F64,
    /// Unsigned 16 bits.
    U16,
    /// Unsigned 8 bits, or the index of a keyword.
    U8,
    /// A u16 count and as many items.
    List16,
    /// Eight option bits, then the fields of those that are set.
    Opts8,
}

impl FieldType {
    /// The name the files use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Str16 => "str16",
            Self::Blob32 => "blob32",
            Self::I64 => "i64",
            Self::F64 => "f64",
            Self::U16 => "u16",
            Self::U8 => "u8",
            Self::List16 => "list16",
            Self::Opts8 => "opts8",
        }
    }
}

/// One field of a typed layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Name, unique in its list.
    pub name: String,
    /// Wire type.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// The field is a key.
    #[serde(default, skip_serializing_if = "is_false")]
    pub key: bool,
    /// Keyword before the field in the argument form; may be several words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// `u8` only: value i stands for keyword i; without it the field is a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// `list16` only: the fields of an item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Field>,
    /// `list16` only: whether the argument form carries the number of items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// `list16` only: how the argument form orders the fields of several items; interleaved when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// `list16` only: smallest number of items, 0 or 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u8>,
    /// `opts8` only: bit i is entry i, the lowest bit being 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bits: Vec<Bit>,
    /// `opts8` only: sets of bit names of which at most one may be set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusive: Vec<Vec<String>>,
}

/// Whether the argument form of a list carries the number of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Count {
    /// It does not.
    None,
    /// It does, as an argument before the items.
    Argument,
}

/// Order of the fields of several items in the argument form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// a1 b1 a2 b2.
    Interleaved,
    /// a1 a2 b1 b2.
    Transposed,
}

/// One option bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bit {
    /// Keyword in the argument form; a positional optional has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Name, where it is not the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields that are present when the bit is set, after all the bits, in bit order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// Name of a bit that must be set as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<String>,
}

impl Bit {
    /// What `exclusive` and `requires` call the bit: its name, else its token.
    #[must_use]
    pub fn label(&self) -> &str {
        self.name.as_deref().or(self.token.as_deref()).unwrap_or("")
    }
}
