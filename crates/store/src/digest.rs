//! Owns: a number that stands for what a keyspace, a key or a value holds, so that two can be compared: elements
//! without an order count in any order, encodings and access clocks do not count. Does not own: who compares.

use crate::catalogue::Section;
use crate::hash::KeyHasher;
use crate::keyspace::World;
use crate::stream::{Group, Stream, StreamId};
use crate::value::{Digits, ObjectRef, ValueRef};

/// 192 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest([u64; 3]);

/// One seed for each part: hashes of the same bytes with different seeds have nothing to do with each other.
const SEEDS: [u64; 3] = [1, 2, 3];

impl Digest {
    /// Of parts in their order. Each part's length counts, so that `ab, c` and `a, bc` differ.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        Self(SEEDS.map(|seed| KeyHasher::with_seed(seed).hash(&bytes)))
    }
    /// Adds something whose order does not matter.
    pub fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own = own.wrapping_add(other));
    }
    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let parts = bytes.chunks_exact_mut(8).zip(self.0);
        parts.for_each(|(part, word)| part.copy_from_slice(&word.to_le_bytes()));
        bytes
    }
    /// Of what follows another in order.
    fn then(self, next: Self) -> Self {
        Self::of(&[&self.bytes(), &next.bytes()])
    }

    /// Of a key with its value's digest.
    #[must_use]
    pub fn of_key(db: u8, key: &[u8], value: Self, expire_ms: Option<u64>) -> Self {
        let expire = expire_ms.map_or_else(Vec::new, |time| time.to_le_bytes().to_vec());
        Self::of(&[&[db], key, &value.bytes(), &expire])
    }
    /// Of a value: of the fields of a hash those that have not expired at its time.
    #[must_use]
    pub fn of_value(value: ValueRef<'_>) -> Self {
        let object = match value {
            ValueRef::Bytes(bytes) => return Self::of(&[b"string", bytes]),
            ValueRef::Int(number) => return Self::of(&[b"string", Digits::default().write(number)]),
            ValueRef::Shared(bytes) => return Self::of(&[b"string", bytes.as_slice()]),
            ValueRef::Object(object) => object,
        };
        let mut sum = Self::default();
        match object {
            ObjectRef::List(list) => {
                sum = list.iter().fold(sum, |sum, element| sum.then(Self::of(&[element])));
            }
            ObjectRef::Stream(stream) => sum = Self::of_stream(stream),
            ObjectRef::Set(set) => set.iter().for_each(|member| sum.add(Self::of(&[&member]))),
            ObjectRef::Hash(hash) => {
                for field in hash.fields() {
                    let expire = field.expire_ms.unwrap_or(0).to_le_bytes();
                    sum.add(Self::of(&[field.name, field.value, &expire]));
                }
            }
            ObjectRef::SortedSet(set) => {
                for scored in set.iter(0..set.len()) {
                    // Which zero it is depends on the encoding: a compact set keeps no −0, as in Valkey.
                    sum.add(Self::of(&[scored.member, &(scored.score + 0.0).to_bits().to_le_bytes()]));
                }
            }
        }
        Self::of(&[object.type_name().as_bytes(), &sum.bytes()])
    }

    /// Entries in their order, counters, groups with their consumers and what these have pending.
    fn of_stream(stream: &Stream) -> Self {
        let log = stream.log();
        let mut sum = Self::default();
        for entry in log.range(StreamId::MIN, StreamId::MAX) {
            let mut parts: Vec<&[u8]> = Vec::new();
            entry.fields.iter().for_each(|(name, value)| parts.extend([name, value]));
            sum = sum.then(Self::of_ids(&[entry.id])).then(Self::of(&parts));
        }
        let added = StreamId::new(log.entries_added(), log.len());
        let counters = Self::of_ids(&[log.first_id(), log.last_id(), log.max_deleted_id(), added]);
        let groups = stream.groups().fold(Self::default(), |sum, (name, group)| {
            sum.then(Self::of(&[name])).then(Self::of_group(group))
        });
        sum.then(counters).then(groups)
    }
    fn of_group(group: &Group) -> Self {
        let number = |value: Option<u64>| StreamId::new(value.is_some().into(), value.unwrap_or(0));
        let mut sum = Self::of_ids(&[group.last_id(), number(group.entries_read())]);
        for consumer in group.consumers() {
            let times = [number(Some(consumer.seen_ms)), number(consumer.active_ms)];
            sum = sum.then(Self::of(&[consumer.name()])).then(Self::of_ids(&times));
        }
        for (id, pending) in group.pending_from(StreamId::MIN) {
            let state = StreamId::new(pending.delivered_ms, pending.deliveries);
            let owner = group.consumer(pending.consumer).name();
            sum = sum.then(Self::of(&[owner])).then(Self::of_ids(&[id, state]));
        }
        sum
    }
    fn of_ids(ids: &[StreamId]) -> Self {
        let bytes: Vec<u8> =
            ids.iter().flat_map(|id| [id.ms.to_le_bytes(), id.seq.to_le_bytes()]).flatten().collect();
        Self::of(&[&bytes])
    }

    /// Of all keys of all databases as they stand, whether they have expired or not, and of the catalogue.
    #[must_use]
    pub fn of_keyspace(world: &World<'_>) -> Self {
        let mut sum = Self::default();
        world.each_key(|db, key, value, expire_ms| {
            sum.add(Self::of_key(db, key, Self::of_value(value), expire_ms));
        });
        for section in Section::ALL {
            for (name, value) in world.keyspace().catalogue().entries(section) {
                sum.add(Self::of(&[b"catalogue", &[section as u8], &name, &value]));
            }
        }
        sum
    }
}
