//! Owns: a number that stands for a value, so that tests can see whether two keyspaces hold the same: elements without
//! an order count in any order. Does not own: the command that shows it.

use std::fmt::Write as _;
use weft_store::{KeyHasher, ObjectRef, ValueRef};

use crate::rdb::{Writer, write_stream};

/// 160 bits, shown as 40 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest([u64; 3]);

/// One seed for each part: hashes of the same bytes with different seeds have nothing to do with each other.
const SEEDS: [u64; 3] = [1, 2, 3];

impl Digest {
    /// Of parts in their order. Each part's length counts, so that `ab, c` and `a, bc` differ.
    fn of(parts: &[&[u8]]) -> Self {
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        Self(SEEDS.map(|seed| KeyHasher::with_seed(seed).hash(&bytes)))
    }
    /// Adds something whose order does not matter.
    pub(super) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own = own.wrapping_add(other));
    }
    fn bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes
            .chunks_exact_mut(8)
            .zip(self.0)
            .for_each(|(part, word)| part.copy_from_slice(&word.to_le_bytes()));
        bytes
    }
    /// Of a key with its value's digest.
    pub(super) fn of_key(db: u8, key: &[u8], value: Self, expire_ms: Option<u64>) -> Self {
        let expire = expire_ms.map_or_else(Vec::new, |time| time.to_le_bytes().to_vec());
        Self::of(&[&[db], key, &value.bytes(), &expire])
    }
    /// Of a value.
    pub(super) fn of_value(value: ValueRef<'_>) -> Self {
        let object = match value {
            ValueRef::Bytes(bytes) => return Self::of(&[b"string", bytes]),
            ValueRef::Int(number) => return Self::of(&[b"string", number.to_string().as_bytes()]),
            ValueRef::Shared(bytes) => return Self::of(&[b"string", bytes.as_slice()]),
            ValueRef::Object(object) => object,
            _ => return Self::default(),
        };
        let mut sum = Self::default();
        match object {
            ObjectRef::List(list) => {
                return Self::of(&[&[&b"list"[..]][..], &list.iter().collect::<Vec<_>>()].concat());
            }
            ObjectRef::Stream(stream) => return Self::of(&[b"stream", &write_stream(stream)]),
            ObjectRef::Set(set) => set.iter().for_each(|member| sum.add(Self::of(&[&member]))),
            ObjectRef::Hash(hash) => {
                for (field, value) in hash.iter() {
                    let expire = hash.expire_ms(field).flatten().unwrap_or(0).to_le_bytes();
                    sum.add(Self::of(&[field, value, &expire]));
                }
            }
            ObjectRef::SortedSet(set) => {
                for scored in set.iter(0..set.len()) {
                    sum.add(Self::of(&[scored.member, &scored.score.to_bits().to_le_bytes()]));
                }
            }
            _ => {}
        }
        Self::of(&[object.type_name().as_bytes(), &sum.bytes()])
    }
    /// Forty digits; only zeros for nothing.
    pub(super) fn hex(self) -> String {
        let mut text = String::with_capacity(48);
        for byte in self.bytes() {
            let _ = write!(text, "{byte:02x}");
        }
        text.truncate(40);
        text
    }
}

/// How long a value is as DUMP gives it.
pub(super) fn serialized_len(value: ValueRef<'_>) -> usize {
    let object = match value {
        ValueRef::Bytes(bytes) => return Writer::text(bytes).len(),
        ValueRef::Int(number) => return Writer::text(number.to_string().as_bytes()).len(),
        ValueRef::Shared(bytes) => return Writer::text(bytes.as_slice()).len(),
        ValueRef::Object(object) => object,
        _ => return 0,
    };
    let mut writer;
    match object {
        ObjectRef::Stream(stream) => return write_stream(stream).len(),
        ObjectRef::List(list) => {
            writer = Writer::list(list.len());
            list.iter().for_each(|element| writer.element(element));
        }
        ObjectRef::Set(set) => {
            writer = Writer::set(set.len());
            set.iter().for_each(|member| writer.element(&member));
        }
        ObjectRef::Hash(hash) => {
            writer = Writer::hash(hash.len());
            hash.iter().for_each(|(field, value)| writer.pair(field, value));
        }
        ObjectRef::SortedSet(set) => {
            writer = Writer::zset(set.len());
            set.iter(0..set.len()).for_each(|scored| writer.scored(scored.member, scored.score));
        }
        _ => return 0,
    }
    writer.finish().len()
}
